"""SVG elements that escape by default: only what was built here is taken as it is."""

from markupsafe import Markup, escape

from poem.text import visible


def element(name: str, *children: object, **attributes: object) -> Markup:
    """Return ``<name …>children</name>``; ``class_`` is class, ``stroke_width`` is stroke-width."""
    inside = joined(*children)
    named = joined(
        *(
            Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), harmless(value))
            for key, value in attributes.items()
            if value is not None
        )
    )
    return Markup(f"<{name}{named}>{inside}</{name}>")


def joined(*parts: object) -> Markup:
    """Return parts one after the other, escaped unless they are markup already."""
    return Markup("").join(escape(harmless(part)) for part in parts)


def harmless(part: object) -> object:
    """Return a text with escapes in place of control characters and marks of direction; markup as it is."""
    return visible(part) if isinstance(part, str) and not isinstance(part, Markup) else part
