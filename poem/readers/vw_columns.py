"""Columns of what was read from Vowpal Wabbit's text: names, values, and the numbers that kernels leave to others."""

import numpy as np
import pyarrow as pa

from poem.arrays import AnyArray, FloatArray, IntArray, frozen
from poem.compute import exact_kernel
from poem.errors import ReadError
from poem.readers.vw_features import COSTS, DISTRIBUTION, PROBABILITIES, VALUES
from poem.readers.vw_names import copy_spans, measure_names, write_names
from poem.readers.vw_problems import BAD_COST, BAD_PAIR, BAD_PROBABILITY, BAD_VALUE, failed
from poem.readers.vw_words import NEWLINE, SPACE, TAB

LARGEST_LIST = 2**31 - 1
_PROBLEMS = {
    VALUES: BAD_VALUE,
    COSTS: BAD_COST,
    PROBABILITIES: BAD_PROBABILITY,
    DISTRIBUTION: BAD_PAIR,
}


@exact_kernel
def _count(data: AnyArray) -> tuple[int, int]:
    """Return how many lines there are at most, and how many blanks: each feature follows one."""
    newlines, blanks = 0, 0
    for byte in data:
        newlines += byte == NEWLINE
        blanks += (byte == SPACE) | (byte == TAB)
    return newlines + 1, blanks


def counted(data: AnyArray, name: str) -> tuple[int, int]:
    """Return how many lines and features there are at most."""
    lines, blanks = _count(data)
    if blanks > LARGEST_LIST:
        raise ReadError(f"{name} may have {blanks} features, which is more than 2^31. Split it, and read the parts.")
    return lines, blanks


def settle_late_numbers(late: IntArray, arrays: dict[int, FloatArray], content: bytes, name: str) -> None:
    """Fill in the numbers that a kernel could not read exactly; ``arrays`` are what they belong to."""
    if len(late) == 0:
        return
    numbers = _parsed_elsewhere(late, content)
    for which, array in arrays.items():
        chosen = late[:, 2] == which
        place = late[chosen, 3]
        with np.errstate(over="ignore", invalid="ignore"):
            # A feature may be here twice: for itself, and for the weight of its namespace.
            np.multiply.at(array, place, numbers[chosen])
        bad = _is_bad(which, array[place])
        if bad.any():
            start, stop = late[chosen][np.argmax(bad), :2]
            raise failed(_PROBLEMS[which], int(start), int(stop), content, name)


def _is_bad(which: int, numbers: FloatArray) -> AnyArray:
    if which == PROBABILITIES:
        return ~((numbers > 0.0) & (numbers <= 1.0))
    if which == DISTRIBUTION:
        return ~((numbers >= 0.0) & (numbers <= 1.0))
    return ~np.isfinite(numbers)


def _parsed_elsewhere(late: IntArray, content: bytes) -> FloatArray:
    """Return the numbers at these places, by Arrow, which rounds correctly as Python's ``float`` does."""
    lengths = late[:, 1] - late[:, 0]
    text = np.empty(int(lengths.sum()), dtype=np.uint8)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    copy_spans(frozen(np.frombuffer(content, dtype=np.uint8)), frozen(late, np.int64), text)
    strings = pa.LargeStringArray.from_buffers(len(late), pa.py_buffer(offsets), pa.py_buffer(text))
    return np.asarray(strings.cast(pa.float64()).to_numpy(zero_copy_only=False))


def without_zeros(values: FloatArray, codes: AnyArray, stops: IntArray) -> tuple[FloatArray, AnyArray, IntArray]:
    """Leave out features of value 0; ``stops`` are where the features of each line stop."""
    kept = values != 0.0
    if kept.all():
        return values, codes, stops
    kept_before = np.concatenate([[0], np.cumsum(kept)])
    return values[kept], codes[kept], kept_before[stops]


def rendered_names(keys: IntArray, content: bytes, name: str) -> pa.Array:
    """Return the names of features as text."""
    lengths = np.empty(len(keys), dtype=np.int64)
    measure_names(frozen(keys, np.int64), lengths)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    if offsets[-1] > LARGEST_LIST:
        raise ReadError(
            f"{name} has {offsets[-1]} bytes of distinct names, more than 2^31. Split it, and read the parts."
        )
    text = np.empty(int(offsets[-1]), dtype=np.uint8)
    write_names(frozen(np.frombuffer(content, dtype=np.uint8)), frozen(keys, np.int64), text)
    return pa.StringArray.from_buffers(len(keys), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(text))


def named(codes: AnyArray, names: pa.Array) -> pa.DictionaryArray:
    """Return the name of each feature, each name once in the dictionary."""
    # Two keys may have one name: the feature n^a of the default namespace, and a of the namespace n.
    distinct = names.dictionary_encode()
    if len(distinct.dictionary) < len(names):
        codes = distinct.indices.to_numpy()[codes]
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), distinct.dictionary)


def lists(stops: IntArray, items: pa.Array) -> pa.Array:
    """Return lists of items; ``stops`` are where they stop."""
    return pa.ListArray.from_arrays(pa.array(np.concatenate([[0], stops]), pa.int32()), items)
