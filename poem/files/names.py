"""Names in messages: the nearest one that is known, and a few of many."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches


def did_you_mean(wanted: str, known: Iterable[str], others: Sequence[str] = ()) -> str:
    """Return “ Did you mean 'x'?” where a known name is near the wanted one or is one of ``others``."""
    names = list(known)
    lower = {name.lower(): name for name in reversed(names)}
    near = [lower[other.lower()] for other in others if other.lower() in lower]
    near += [lower[name] for name in get_close_matches(wanted.lower(), lower, n=1, cutoff=0.6)]
    return f" Did you mean {near[0]!r}?" if near else ""


def shown(names: Sequence[str]) -> str:
    """Return some names, and how many more there are."""
    few = ", ".join(map(repr, names[:8]))
    return few if len(names) <= 8 else f"{few} and {len(names) - 8} more"
