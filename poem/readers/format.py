"""What a module of a file format declares about it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from poem.files import Source, Table, content_of
from poem.readers.blocks import Cut
from poem.readers.columns import Roles
from poem.structures import Labels

if TYPE_CHECKING:
    from poem.readers.raw import RawLog

HEAD = 1 << 16
NO_ROLES = Roles()
MARK = b"\xef\xbb\xbf"
SLOT_NAME = "_ccb_slot_index^index{}"  # what Vowpal Wabbit calls the feature that tells slots apart
FIXED_ACTIONS = b"poem.fixed_actions"  # a note in tables of one file: what its actions are, if they are known by index


@dataclass(frozen=True)
class Head:
    """The beginning of a file, decompressed: what its format is told by."""

    content: bytes

    @classmethod
    def of(cls, path: Source) -> "Head":
        """Return the beginning of a file."""
        return cls(content_of(path, HEAD))

    @cached_property
    def text(self) -> str:
        """The beginning as text, without a byte order mark."""
        return self.content.removeprefix(MARK).decode(errors="replace")

    @cached_property
    def first_line(self) -> str:
        """The first line that is not blank."""
        return next((line for line in self.text.splitlines() if line.strip()), "")


def no_sides(files: list[Path]) -> list[Path]:
    """Return no files: nothing stands beside the files of most formats."""
    return []


@dataclass(frozen=True)
class Format:
    """One file format.

    Attributes
    ----------
    read : callable
        ``read(path, **options)`` returns the file as a table.
    looks : callable
        Tells whether the beginning of a file looks like this format.
    suffixes : tuple of str
        What names of its files end in.
    refines : str, optional
        The format of which this one is a special case: a file with a suffix of that one may still be of this one.
    has_magic : bool
        Its first bytes are never those of another format, whatever the suffix.
    takes : tuple of str
        The options of ``read``.
    roles : Roles
        Which columns are what.
    counted : "row" or "line"
        What messages call a row.
    ignored : tuple of str
        Patterns of columns that are no context unless they are named.
    categories : tuple of str
        Columns of numbers that are read as text because they are categories.
    sides : callable
        Returns which files of a folder stand beside others and hold no rows of their own.
    beside : callable, optional
        For a format that holds contexts only: returns the table of outputs, losses and propensities of a file.
    labels : callable, optional
        Returns all possible outputs, if something beside a file says so.
    write : callable, optional
        Writes a log to a path; None if poem only reads the format.
    cut : callable, optional
        Yields the blocks of a file; None if it can only be read whole.
    """

    read: Callable[..., Table]
    looks: Callable[[Head], bool]
    suffixes: tuple[str, ...] = ()
    refines: str | None = None
    has_magic: bool = False
    takes: tuple[str, ...] = ()
    roles: Roles = NO_ROLES
    counted: Literal["row", "line"] = "row"
    ignored: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    sides: Callable[[list[Path]], list[Path]] = no_sides
    beside: Callable[[Path], Path] | None = None
    labels: Callable[[Path], Labels | None] | None = None
    write: "Callable[[RawLog, Path], Path] | None" = None
    cut: Cut | None = None
