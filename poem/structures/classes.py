"""One of several: y is the position of a label. Shared code of the structures whose outputs are such."""

from typing import Any, ClassVar

import numpy as np

from poem.arrays import AnyArray, BoolArray, FloatArray
from poem.errors import LogError
from poem.structures.base import Structure
from poem.structures.labels import Labels, as_array, check_labels, values_of
from poem.text import counted


class Classes(Structure):
    """Outputs that are one label each: codes are (n,) positions in the labels."""

    one_each: ClassVar[bool] = True

    @classmethod
    def encode(cls, y: Any, labels: Labels | None = None) -> tuple[AnyArray, Labels]:
        values, labels = values_of(y, labels)
        if values.ndim != 1:
            raise LogError(f"classes are a vector, one per row; found y with {values.ndim} dimensions.")
        _check_values(values)
        if labels is None:
            known, codes = _distinct(values)
            check_labels(tuple(known.tolist()))
            return codes.astype(np.int32), tuple(known.tolist())
        check_labels(labels)
        return _known_classes(values, labels), labels

    def decode(self, codes: AnyArray, labels: Labels) -> AnyArray:
        return as_array(labels)[codes]

    def check(self, codes: AnyArray) -> None:
        if codes.ndim != 1 or (len(codes) and not 0 <= codes.min() <= codes.max() < self.n_names):
            raise LogError(f"y has the shape {codes.shape}, which is not {self.describe()} per row.")

    def to_arrow(self, codes: AnyArray, labels: Any) -> Any:
        import pyarrow as pa

        return labels.take(pa.array(codes))

    def unlogged(self, codes: AnyArray) -> tuple[BoolArray, BoolArray]:
        return np.bincount(codes, minlength=self.n_names) == 0, np.zeros(self.n_names, dtype=bool)

    def keys(self, codes: AnyArray) -> AnyArray:
        return codes.astype(np.int64)[:, None]

    def indicators(self, codes: AnyArray) -> Any:
        import scipy.sparse as sp

        return sp.csr_array((np.ones(len(codes)), codes, np.arange(len(codes) + 1)), shape=(len(codes), self.n_names))

    def phrase(self, code: Any, labels: Labels) -> str:
        return repr(labels[int(code)])

    def loss(self, truth: AnyArray, y: AnyArray) -> FloatArray:
        return np.asarray(truth != y, dtype=np.float64)


def _check_values(values: AnyArray) -> None:
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise LogError(f"y must not be NaN or infinite; row {row} is {values[row]}. Drop such rows.")
    if values.dtype.kind not in "biufUO":
        raise LogError(f"y must hold numbers or strings; found {values.dtype}. Convert it to strings.")
    if values.dtype != object:
        return
    missing = [row for row, value in enumerate(values) if value is None or value != value]
    if missing:
        raise LogError(f"y is missing in row {missing[0]} ({counted(len(missing), 'such row')}). Drop such rows.")


def _distinct(values: AnyArray) -> tuple[AnyArray, AnyArray]:
    try:
        known, codes = np.unique(values, return_inverse=True)
    except TypeError as error:
        raise LogError(f"y mixes types that cannot be ordered ({error}). Convert it to strings.") from error
    return known, codes


def _in_turn(values: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return the distinct values as they first come, which need no order, and the position of each row's."""
    place: dict[Any, int] = {}
    codes = [place.setdefault(value, len(place)) for value in values.tolist()]
    return as_array(tuple(place)), np.array(codes, dtype=np.int64)


def _known_classes(values: AnyArray, labels: Labels) -> AnyArray:
    present, inverse = _in_turn(values) if values.dtype == object else _distinct(values)
    number_of = {label: code for code, label in enumerate(labels)}
    unseen = [value for value in present.tolist() if value not in number_of]
    if unseen:
        row = int(np.flatnonzero(values == unseen[0])[0])
        raise LogError(
            f"y holds a class that is not known; row {row} is {unseen[0]!r}, known are {list(labels)[:8]}. "
            "Drop such rows or name all classes with labels=."
        )
    codes = np.array([number_of[value] for value in present.tolist()], dtype=np.int32)
    return codes[inverse]
