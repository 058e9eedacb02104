"""A log that may be larger than memory, as a stream of BanditLogs of one kind."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, replace
from functools import partial, reduce
from pathlib import Path
from typing import Any, TypeVar

from poem.compute import Threads
from poem.data import BanditLog
from poem.data.features import Encoding, Features, value_columns
from poem.errors import InputError, LogError, PoemError, ReadError
from poem.files import Table, plain_table, room_for
from poem.progress import Progress
from poem.readers.block_types import SeenTypes, text_type
from poem.readers.blocks import Block, Cutting, moved
from poem.readers.checked import plain_labels, recipe_or_encoding
from poem.readers.columns import Columns, Roles
from poem.readers.detect import common_format, distinct, files_of
from poem.readers.facts import Facts, with_outputs
from poem.readers.held_contexts import HeldContexts, log_after
from poem.readers.likeness import NOTHING_KNOWN, Likeness
from poem.readers.lines import is_by_line
from poem.readers.log_kind import LogBlock, LogKind, Part
from poem.readers.notes import KEY
from poem.readers.part_files import checked_table, joined, read_part, reader_options
from poem.readers.raw import Origin, RawLog, check_roles, named_error
from poem.readers.read import BY_NAME, with_meaning
from poem.readers.registry import format_named
from poem.readers.values import whole_numbers
from poem.structures import Labels, Wanted

BLOCK_BYTES = 64 << 20
R = TypeVar("R")


@dataclass(frozen=True)
class Turn:
    """A block whose turn it is: which one it is in the whole log, and the rows of contexts that it shares with others.

    ``settings`` are those of the thread that reads: limits on memory hold in other threads as well.
    """

    block: Block
    number: int
    before: Table | None
    settings: Context


@dataclass(frozen=True)
class Looked:
    """What the first pass sees in a block: how it was read, and what it says, or why it cannot be understood."""

    schema: Any
    facts: Facts | None = None
    trouble: PoemError | None = None


class _ActionsDiffer(Exception):  # noqa: N818 - it never leaves this module
    """Not all lines have the same actions: they are known by their features, in all blocks."""


class LogStream:
    """A log in files of any size, read block by block: first to learn of what kind it is, then as BanditLogs.

    Memory is bounded by a few blocks per thread. LibSVM text has no blocks: its files are read one at a time.

    Parameters
    ----------
    sources : sequence of paths
        Files and folders of part files, all of one format; see :func:`poem.read_log` for all that is not said here.
    block_bytes : int
        How much of a file, decompressed, is in one block.
    threads : Threads
        What parses blocks and turns them into logs.
    like : Likeness
        What the columns of an earlier log were, and how its actions became features.
    """

    def __init__(
        self,
        sources: Sequence[str | os.PathLike[str]],
        *,
        columns: Columns = BY_NAME,
        labels: Sequence[Any] | None = None,
        structure: Wanted = None,
        features: Features | Encoding | None = None,
        format: str | None = None,
        delimiter: str | None = None,
        side: str | os.PathLike[str] | None = None,
        actions_vary: bool = False,
        actions: Any = None,
        identity: bool = False,
        block_bytes: int = BLOCK_BYTES,
        threads: Threads | None = None,
        like: Likeness = NOTHING_KNOWN,
        progress: bool = False,
    ) -> None:
        if not sources:
            raise InputError("a log has at least one file; none was given.")
        paths = [Path(source) for source in sources]
        self.files = distinct([file for path in paths for file in files_of(path)])
        self.name = paths[0].name if len(paths) == 1 else f"{paths[0].name} and {len(paths) - 1} more"
        self.missing = columns.propensity == "missing"
        self.columns = replace(columns, propensity=None) if self.missing else columns
        self.labels = None if labels is None else plain_labels(labels)
        self.structure, self.block_bytes, self.progress = structure, block_bytes, progress
        self.recipe, self.encoding = recipe_or_encoding(features)
        self.threads = threads or Threads()
        name = common_format(self.files, format)
        self._format = format_named(name)
        if side is not None and (self._format.beside is None or len(self.files) > 1):
            raise InputError(f"a table beside the log (--side, side=) is for one LibSVM file; {self.name} is {name}.")
        self._side = None if side is None else Path(side)
        options = {"delimiter": delimiter, "actions_vary": actions_vary}
        self._options = reader_options(self._format, options, self.recipe, f"{self.name} is {name}")

        self._known: dict[str, Any] = {"actions": actions, "identity": identity, "defaults": like.roles}
        self._like, self._described = like, like.described and "described" in self._format.takes
        self._typed = "types" in self._format.takes  # types are found block by block
        self._loose = "delimiter" in self._format.takes  # any value can be read as text
        self._meanings: dict[Any, RawLog] = {}

    # ---- the first pass ---------------------------------------------------------------------------

    @room_for()
    def learn(self) -> LogKind:
        """Go over all blocks once, and return what all of them have in common."""
        parts, found = [], []
        with Progress(f"looking at {self.name}", len(self.files), self.progress, after=2.0) as line:
            for file in self.files:
                part, facts = self._learnt(file, line)
                found.append(facts)
                parts.append(part)
                line.part_done()
        return self._kind(tuple(parts), found)

    def _learnt(self, file: Path, line: Progress) -> tuple[Part, Facts]:
        """Return how a file must be read, and what it says; in a few passes if its blocks differ."""
        types: dict[str, Any] = {}
        mixed: set[str] = set()
        described = self._described
        while True:
            try:
                seen, facts, trouble = self._pass(file, self._cutting(types, described, file), line)
            except ReadError:
                if not mixed:
                    raise
                types, mixed = types | dict.fromkeys(mixed, text_type()), set()
                continue
            except _ActionsDiffer:
                described = True
                continue
            common = seen.common(self._loose) if self._typed else {}
            if common and not seen.agree() and common != types:
                types, mixed = common, seen.mixed() if self._loose else set()
                continue
            if trouble is not None:
                raise trouble
            if facts is None:
                raise ReadError(f"{file.name} is empty. Pass a file with at least one decision.")
            return Part(file, facts.rows, common, facts.least, described), facts

    def _pass(self, file: Path, cutting: Cutting, line: Progress) -> tuple[SeenTypes, Facts | None, PoemError | None]:
        """Go over a file once; what cannot be understood may be so when all types are known."""
        seen, facts, trouble, rows = SeenTypes(file.name), None, None, 0
        for turn, count, one in self._over(file, cutting, self._look):
            seen.add(one.schema, turn.block.lines)
            if one.trouble is not None and trouble is None:
                trouble = moved(one.trouble, file.name, rows, turn.block.lines)
                if not self._typed:
                    raise trouble
            if trouble is None and one.facts is not None and (seen.agree() or not self._typed):
                if facts is not None and not facts.has_actions_of(one.facts):
                    raise _ActionsDiffer
                facts = one.facts if facts is None else facts.merged(one.facts)
            rows += count
            line.note(f"{rows:,} rows of {file.name}")
        return seen, facts, trouble

    def _cutting(self, types: Mapping[str, Any], described: bool, looked_at: Path | None = None) -> Cutting:
        """Return how a file is cut; all columns are read unless it is only looked at."""
        options = {**self._options, **({"described": True} if described else {})}
        needed = None if looked_at is None else partial(self._needed, looked_at)
        return Cutting(self.block_bytes, options, types, needed)

    def _look(self, turn: Turn) -> tuple[int, Looked]:
        """Read a block and say what is in it."""
        file = turn.block.file
        table = checked_table(turn.block.read(), file)
        schema, plain = table.schema, plain_table(table)
        try:
            common = self._meanings.get(file) or self._meaning(plain.schema)
            origin = Origin(file.name, ((file.name, plain.num_rows),), "line" if is_by_line(plain) else "row")
            raw = replace(common, table=plain, origin=origin)
            known = self.recipe is not None or common.features is not None
            labelled = self.labels is not None or common.labels is not None
            facts = Facts.of(raw, common.table.schema, self.encoding, known=known, labelled=labelled)
            return plain.num_rows, Looked(schema, facts)
        except PoemError as error:
            return plain.num_rows, Looked(schema, trouble=error)

    def _needed(self, file: Path, schema: Any) -> list[str]:
        """Return the columns of a file that the first pass needs, of a format that says what columns it has."""
        self._meanings[file] = common = self._meaning(schema)
        roles = common.roles
        known = self.recipe is not None or common.features is not None
        unread = set(value_columns(common.table).values()) - set(self.encoding.by_column())
        context = [] if known else [name for name in roles.context if name not in unread]
        offered = None if common.about.encoded else roles.candidates
        single = [name for name in (roles.time, roles.context_id, offered) if name is not None]
        return [*roles.output, *context, *single]

    def _meaning(self, schema: Any) -> RawLog:
        """Return what columns mean, with a table that has no rows."""
        key = (tuple(schema.names), tuple(schema.types), (schema.metadata or {}).get(KEY))
        if key not in self._meanings:
            raw = RawLog(schema.empty_table(), self._format.roles, Origin(self.name), self._labels_beside())
            ignored = self._format.ignored if self.columns.context is None else ()
            self._meanings[key] = self._like.of_actions(with_meaning(raw, self.columns, ignored, **self._known))
        return self._meanings[key]

    def _labels_beside(self) -> Labels | None:
        return None if self._format.labels is None else self._format.labels(self.files[0])

    def _kind(self, parts: tuple[Part, ...], found: list[Facts]) -> LogKind:
        schema = joined([facts.schema.empty_table() for facts in found], [part.file for part in parts]).schema
        facts = reduce(Facts.merged, found)
        common = self._meaning(schema)
        if not facts.rows:
            raise ReadError(f"{self.name} has no rows, only column names. Pass a log with at least one decision.")
        check_roles(common, self.missing)
        facts.check_times(common)
        common = replace(
            common,
            labels=self.labels if self.labels is not None else common.labels,
            structure=common.structure if self.structure is None else self.structure,
            features=self._recipe(common, facts),
            roles=self._roles(common, facts),
        )
        common, structure = with_outputs(common, facts, self.encoding)
        return LogKind(common, parts, self.missing, structure)

    def _roles(self, common: RawLog, facts: Facts) -> Roles:
        """Return the roles without a column of times that nobody asked for, if it is all empty."""
        is_empty = facts.times is not None and not facts.times.there and self.columns.time is None
        return replace(common.roles, time=None) if is_empty else common.roles

    def _recipe(self, common: RawLog, facts: Facts) -> Features:
        if common.features is not None and (self.recipe is None or common.about.encoded):
            return common.features
        if self.recipe is not None:
            return self.recipe
        try:
            return Features(()) if facts.context is None else Features.by(facts.context)
        except LogError as error:
            raise named_error(common, error) from error

    # ---- the second pass --------------------------------------------------------------------------

    def logs(self, kind: LogKind) -> Iterator[BanditLog]:
        """Yield the log block by block, in the order of its rows; see :meth:`learn`.

        The groups of rows are numbers that are the same in all blocks.
        """
        return (block.log for block in self.blocks(kind))

    def blocks(self, kind: LogKind) -> Iterator[LogBlock]:
        """Yield the same, with the numbers of contexts."""
        number = 0
        for position, part in enumerate(kind.parts):
            held = HeldContexts(part.least, self.block_bytes) if part.least else None
            cutting, work = self._cutting(part.types, part.described), partial(self._log, kind, position)
            for turn, _, found in self._over(part.file, cutting, work, number, kind, held):
                number = turn.number + 1
                if found is not None:
                    yield found

    def _log(self, kind: LogKind, position: int, turn: Turn) -> tuple[int, LogBlock | None]:
        """Read a block of the file at some position; None if it has no rows."""
        file = turn.block.file
        table = checked_table(turn.block.read(), file)
        if not table.num_rows:
            return 0, None
        raw = kind.raw(table, file, turn.number)
        log, name = log_after(turn.before, raw, kind.missing), raw.roles.context_id
        return len(log), LogBlock(log, None if name is None else whole_numbers(raw, name), position)

    # ---- blocks -----------------------------------------------------------------------------------

    def _over(
        self,
        file: Path,
        cutting: Cutting,
        work: Callable[[Turn], tuple[int, R]],
        number: int = 0,
        kind: LogKind | None = None,
        held: HeldContexts | None = None,
    ) -> Iterator[tuple[Turn, int, R]]:
        """Yield what ``work`` makes of each block of a file, in order; errors name rows of the whole file."""

        def turns() -> Iterator[Turn]:
            for in_file, block in enumerate(self._blocks(file, cutting)):
                before = None
                if kind is not None and held is not None:
                    before = held.before(kind.raw(block.read(), file, number), in_file)
                yield Turn(block, number + in_file, before, copy_context())

        rows = 0
        for turn, count, result in self.threads.ahead(partial(_tried, work), turns(), max(2, self.threads.count)):
            if isinstance(result, PoemError):
                raise moved(result, file.name, rows, turn.block.lines) from result
            yield turn, count, result
            rows += count

    def _blocks(self, file: Path, cutting: Cutting) -> Iterator[Block]:
        if self._format.cut is not None:
            yield from self._format.cut(file, cutting)
        else:
            yield Block(file, partial(read_part, file, self._format, cutting.options, self._side))


def _tried(work: Callable[[Turn], tuple[int, R]], turn: Turn) -> tuple[Turn, int, R | PoemError]:
    """Return what work makes of a block, or its error, which is raised when it is the block's turn."""
    try:
        return (turn, *turn.settings.run(work, turn))
    except PoemError as error:
        return turn, 0, error
