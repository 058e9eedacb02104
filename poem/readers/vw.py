"""Vowpal Wabbit's text for contextual bandits, in three forms.

One decision per line (``--cb``)
    ``action:cost:probability | features``. Words before the bar are actions; one of them has a cost and a probability,
    the others are only said to be available. A line that names one action has all of them. Blank lines are skipped.
One line per action (``--cb_adf``)
    Blocks, with an empty line between them: ``shared | features`` of the context, which may be missing, and one line
    ``| features`` per action. The chosen one has ``0:cost:probability`` before the bar; the number is not read.
Slots (``--ccb_explore_adf``)
    Blocks of ``ccb shared |``, ``ccb action |`` and ``ccb slot action:cost:probability |``, each slot a decision among
    the actions that earlier slots left. Actions are counted from 0. The probabilities of the others may follow the
    label after commas, and a list of the only actions that the slot may take after a space. What Vowpal Wabbit adds to
    tell slots apart is added here too: the feature ``_ccb_slot_index^index0`` and so on.

What is followed: the last word before the bar is a tag if it touches the bar or starts with a quote. Namespaces have
weights, features without a value are 1, features of value 0 are dropped, repeated ones are kept, ``name:text`` is a
category of value 1 whatever the weight of its namespace, and values without a name are counted within their namespace.
Byte order marks are skipped. What stands before a tab in front of the bar is not read.

What is not followed: where Vowpal Wabbit warns and guesses (a value that is not a number, NaN, a probability above 1,
an action that is a word, a line without a bar in a block, a shared line below an action), this is an error; and
numbers stay doubles. Slates are refused: their slots have one cost together.

A feature is called ``namespace^feature``, ``namespace^feature^text`` for a category, ``namespace^[0]`` without a name;
in the default namespace the first part is left out.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pyarrow as pa

from poem.errors import ReadError, WholeError
from poem.files import Source, content_of
from poem.readers.blocks import Block, Cutting, by_lines
from poem.readers.columns import Roles
from poem.readers.format import MARK, Format, Head
from poem.readers.lines import check_parsed, with_lines
from poem.readers.vw_blocks import read_blocks
from poem.readers.vw_lines import read_lines
from poem.readers.vw_problems import line_number

Form = Literal["lines", "blocks", "slots"]
HEAD = 1 << 20  # bytes in which the first two lines should end
ROLES = Roles(output=("action",), loss="cost", propensity="probability")
_LABEL = re.compile(r"\d+(:|$)|'")
_ZERO = re.compile(rb"0+(:|$)")
_FIRST_LINES = re.compile(rb"^(?P<first>[^\n]*[^\s\xef\xbb\xbf][^\n]*)(\n(?P<second>[^\n]*))?", re.MULTILINE)
_BLOCK_WORDS = (b"shared", b"slates")
_KEYWORDS = ("shared", "ccb", "slates", "ca")  # "ca" has continuous actions: known, so that it is refused with its line


def read_vw(content: bytes, name: str, *, unlabelled: bool = False, form: Form | None = None) -> pa.Table:
    """Read Vowpal Wabbit's text.

    Parameters
    ----------
    content : bytes
        The whole file, decompressed.
    name : str
        What messages call it.
    unlabelled : bool
        Accept decisions of several lines without a label, as those to be made have none; their ``action``, ``cost``
        and ``probability`` are null. In a log this is an error.
    form : "lines", "blocks" or "slots", optional
        How many lines a decision has, if that is known; told by the first lines by default.

    Returns
    -------
    pyarrow.Table
        One row for each decision: ``action`` (int64, from 1), ``cost``, ``probability`` (double), ``features.name``
        (list of dictionary-encoded strings) and ``features.value`` (list of doubles). Where lines name several actions,
        ``candidates`` (list of int64) are what each line has. If there are several lines per
        decision, ``candidates`` holds its actions, a list of structs with ``features.name`` and ``features.value``,
        and ``action`` is the position of the chosen one. Slots also have ``group``, which is the same for all slots
        of a request, and, if the file has them, ``distribution``: the probabilities of the candidates.
    """
    _check_text(content, name)
    form = form or _form(content)
    if form == "lines":
        return read_lines(content, name)
    return read_blocks(content, name, with_slots=form == "slots", unlabelled=unlabelled)


def _check_text(content: bytes, name: str) -> None:
    lone = re.search(rb"\r[^\r\n]", content)
    if lone is not None:
        start = lone.start()
        following = content[start + 1 : start + 5].decode("utf-8", "ignore")[:1]
        raise ReadError(
            f"{name}, line {line_number(content, start)}: a carriage return is followed by {following!r}, not by the "
            "end of the line, and Vowpal Wabbit would not read on. End lines by \\n or \\r\\n."
        )
    if content.isascii():
        return
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        found = content[error.start : error.start + 4]
        raise ReadError(
            f"{name}, line {line_number(content, error.start)}: the bytes {found!r} are not UTF-8. "
            "Convert the file to UTF-8 and read it again."
        ) from None


def _form(content: bytes) -> Form:
    """Tell by the first line, and the one below it, how many lines a decision has."""
    text = _FIRST_LINES.search(content)
    if text is None or b"|" not in text["first"]:
        return "lines"
    first, second = _label_words(text["first"]), text["second"] or b""
    if first[:1] == [b"ccb"]:
        return "slots"
    if not first or first[0] in _BLOCK_WORDS or _ZERO.match(first[0]):
        return "blocks"
    return "blocks" if b"|" in second and not _label_words(second) else "lines"


def _label_words(line: bytes) -> list[bytes]:
    """Return the words before the first bar, without a tag."""
    before = line.removeprefix(MARK).partition(b"|")[0]
    before = before[before.find(b"\t") + 1 :]
    words = before.split()
    is_tagged = words and (not before.endswith(b" ") or words[-1].startswith(b"'"))
    return words[:-1] if is_tagged else words


# ---- the format -----------------------------------------------------------------------------------


def read_table(path: Source, unlabelled: bool = False, form: Form | None = None) -> pa.Table:
    """Read a file; ``form`` is that of :func:`read_vw`."""
    content = content_of(path)
    check_parsed(content, path.name, b" ", per_feature=12, per_line=32)
    return with_lines(read_vw(content, path.name, unlabelled=unlabelled, form=form), content)


def _blocks(path: Path, cutting: Cutting) -> Iterator[Block]:
    """Yield the blocks of a file that has one decision per line."""
    if _form(content_of(path, HEAD)) != "lines":
        raise WholeError(
            f"{path.name} has several lines per decision, whose actions are candidates. Such logs cannot be read block "
            "by block yet. Read it whole."
        )
    return by_lines(_read_block)(path, cutting)


def _read_block(path: Source, unlabelled: bool = False) -> pa.Table:
    table = read_table(path, unlabelled, "lines")
    if "candidates" in table.column_names:
        raise WholeError(
            f"{path.name} has lines that name several actions, and a line that names one has all actions of the file. "
            "Such logs cannot be read block by block yet. Read it whole."
        )
    return table


def _looks(head: Head) -> bool:
    """Tell labels and features from column names with bars between them."""
    labels, bar, features = head.first_line.partition("|")
    words = labels.split()
    if words and words[0] in _KEYWORDS:
        return bool(bar) and (labels.endswith(" ") or words[-1].startswith("'"))
    return bool(bar) and all(map(_LABEL.match, words)) and bool(words or " " in features)


FORMAT = Format(read_table, _looks, (".vw",), takes=("unlabelled",), roles=ROLES, counted="line", cut=_blocks)
