"""Files of runs: one CSV row per run, appended as soon as it is done, so that nothing is run twice."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path


def read(path: Path) -> list[dict[str, str]]:
    """Return the runs that a file holds."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def append(path: Path, fields: Sequence[str], rows: Iterable[Mapping[str, object]]) -> None:
    """Add runs to a file; a new file begins with the names of the fields."""
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, fields)
        if new:
            writer.writeheader()
        writer.writerows(rows)


def names(text: str) -> list[str]:
    """Return the names in a list that commas separate."""
    return [name.strip() for name in text.split(",")]
