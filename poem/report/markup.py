"""SVG elements that escape by default: only what was built here is taken as it is."""

from markupsafe import Markup, escape


def element(name: str, *children: object, **attributes: object) -> Markup:
    """Return ``<name …>children</name>``; ``class_`` is class, ``stroke_width`` is stroke-width."""
    inside = joined(*children)
    named = joined(
        *(
            Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), value)
            for key, value in attributes.items()
            if value is not None
        )
    )
    return Markup(f"<{name}{named}>{inside}</{name}>")


def joined(*parts: object) -> Markup:
    """Return parts one after the other, escaped unless they are markup already."""
    return Markup("").join(map(escape, parts))
