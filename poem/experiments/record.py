"""All results in one CSV file that is only ever appended to: what was done once is never done again."""

import csv
import io
import os
from collections.abc import Iterable
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from poem.errors import DatasetError
from poem.experiments.protocol import Protocol
from poem.experiments.run import SKYLINE_C, Result
from poem.experiments.spec import Run
from poem.learning import MULTIPLIERS
from poem.simulation import Dataset
from poem.version import VERSION

COLUMNS = tuple(field.name for field in fields(Result))


class Record:
    """The results in a file; a line that was cut off when poem was killed is dropped."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._results: dict[tuple[Any, ...], Result] = {}
        if path.exists():
            self._read()

    def __iter__(self) -> Any:
        return iter(self._results.values())

    def add(self, results: Iterable[Result]) -> None:
        """Append results and make sure that they are on disk."""
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        if not self.path.exists():
            writer.writerow(COLUMNS)
        for result in results:
            writer.writerow(_cell(value) for value in asdict(result).values())
            self._results[_key(result)] = result
        with self.path.open("a", encoding="utf-8", newline="") as file:
            file.write(text.getvalue())
            file.flush()
            os.fsync(file.fileno())

    def begin(self) -> None:
        """Make sure, before any work is done, that results can be written."""
        self.add(())

    def missing(self, run: Run, protocol: Protocol, data: Dataset) -> Run | None:
        """Return what is left to do of a run; None if all of it is here."""
        left = tuple(method for method in run.methods if not self._has(run, method, protocol, data))
        return replace(run, methods=left) if left else None

    def _has(self, run: Run, method: str, protocol: Protocol, data: Dataset) -> bool:
        wanted = (protocol.name, run.dataset, data.version, run.logging, run.seed, method, VERSION)
        return all((*wanted, c) in self._results for c in _multipliers(method))

    def _read(self) -> None:
        content = self.path.read_bytes()
        header = (",".join(COLUMNS) + "\n").encode()
        if content[: len(header)] != header[: len(content)]:
            raise DatasetError(
                f"{str(self.path)!r} has other columns than this poem writes. Choose another folder with --out."
            )
        whole = content.rfind(b"\n") + 1
        if whole == 0:  # killed within the first line
            self.path.unlink()
            return
        if whole < len(content):
            os.truncate(self.path, whole)
        try:
            lines = csv.reader(io.StringIO(content[:whole].decode("utf-8"), newline=""))
        except UnicodeDecodeError as error:
            raise DatasetError(f"{str(self.path)!r} is not text: {error}. Choose another folder with --out.") from error
        next(lines)
        for number, line in enumerate(lines, start=2):
            try:
                result = _parsed(line)
            except ValueError as error:
                raise DatasetError(
                    f"line {number} of {str(self.path)!r} is broken: {error}. Delete the line; it will be run again."
                ) from error
            self._results[_key(result)] = result


def _multipliers(method: str) -> tuple[float | None, ...]:
    if method == "CRF":
        return SKYLINE_C
    return MULTIPLIERS if method.startswith("POEM") else (None,)


def _key(result: Result) -> tuple[Any, ...]:
    return (
        result.protocol,
        result.dataset,
        result.data,
        result.logging,
        result.seed,
        result.method,
        result.poem,
        result.c,
    )


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return repr(float(value)) if isinstance(value, float) else str(value)


def _parsed(line: list[str]) -> Result:
    if len(line) != len(COLUMNS):
        raise ValueError(f"it has {len(line)} cells, not {len(COLUMNS)}")
    return Result(**{field.name: _value(field.type, cell) for field, cell in zip(fields(Result), line, strict=True)})


def _value(kind: Any, cell: str) -> Any:
    if kind is str:
        return cell
    if kind is bool:
        if cell not in ("True", "False"):
            raise ValueError(f"{cell!r} is neither True nor False")
        return cell == "True"
    if cell == "" and kind not in (int, float):
        return None
    return int(cell) if kind in (int, int | None) else float(cell)
