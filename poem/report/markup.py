"""HTML that escapes by default: only what was built here is taken as it is."""

from html import escape


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def text(value: object) -> Html:
    """Return a value as HTML: escaped, unless it is HTML already."""
    return value if isinstance(value, Html) else Html(escape(str(value)))


def element(name: str, *children: object, **attributes: object) -> Html:
    """Return ``<name …>children</name>``; ``class_`` is class, ``stroke_width`` is stroke-width."""
    inside = "".join(text(child) for child in children)
    named = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{named}>{inside}</{name}>")


def joined(*parts: object) -> Html:
    """Return parts one after the other."""
    return Html("".join(text(part) for part in parts))
