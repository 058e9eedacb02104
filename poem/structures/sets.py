"""Sets as 0/1 matrices: shared code of the structures whose outputs are sets."""

from typing import Any

import numpy as np

from poem.arrays import AnyArray, BoolArray, FloatArray, IntArray
from poem.compute import kernel
from poem.errors import LogError
from poem.structures.base import Fixed
from poem.structures.labels import Labels, check_labels, values_of


class Sets(Fixed):
    """Outputs that are sets: codes are (n, q) of 0/1, and φ(x, y) = x ⊗ y."""

    @classmethod
    def encode(cls, y: Any, labels: Labels | None = None) -> tuple[AnyArray, Labels]:
        values, labels = values_of(y, labels)
        if values.ndim != 2:
            raise LogError(
                f"sets of labels are a matrix of 0/1, one column per label; found y with {values.ndim} dimension(s)."
            )
        if values.shape[1] == 0:
            raise LogError("y must have at least one label column; found none.")
        labels = tuple(range(values.shape[1])) if labels is None else labels
        if len(labels) != values.shape[1]:
            raise LogError(
                f"y has {values.shape[1]} label columns, but {len(labels)} labels are known. "
                "Pass one column for each label."
            )
        check_labels(labels)
        _check_binary(values)
        return np.ascontiguousarray(values, dtype=np.uint8), labels

    def decode(self, codes: AnyArray, labels: Labels) -> AnyArray:
        return codes

    def check(self, codes: AnyArray) -> None:
        if codes.ndim != 2 or codes.shape[1] != self.n_scores:
            raise LogError(f"y has the shape {codes.shape}, which is not {self.describe()} per row.")

    def to_arrow(self, codes: AnyArray, labels: Any) -> Any:
        import pyarrow as pa

        rows, columns = np.nonzero(codes)
        starts = np.searchsorted(rows, np.arange(len(codes) + 1)).astype(np.int32)
        return pa.ListArray.from_arrays(starts, labels.take(pa.array(columns)))

    def logged_columns(self, codes: AnyArray) -> Any:
        return slice(None)

    def unlogged(self, codes: AnyArray) -> tuple[BoolArray, BoolArray]:
        return codes.max(axis=0) == 0, codes.min(axis=0) == 1

    def keys(self, codes: AnyArray) -> AnyArray:
        packed = np.packbits(codes, axis=1)
        padded = np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8)))
        return np.ascontiguousarray(padded).view(np.uint64)

    def phrase(self, code: Any, labels: Labels) -> str:
        return "{" + ", ".join(str(labels[j]) for j in np.flatnonzero(code)) + "}"

    def chosen(self, scores: FloatArray, y: AnyArray, starts: IntArray) -> FloatArray:
        out = np.empty(len(y))
        _chosen(scores, y, starts, out)
        return out

    def spread(self, coef: FloatArray, y: AnyArray, starts: IntArray) -> FloatArray:
        out = np.zeros((len(starts) - 1, self.n_scores))
        _spread(coef, y, starts, out)
        return out

    def indicators(self, codes: AnyArray) -> Any:
        return codes.astype(np.float64)

    def loss(self, truth: AnyArray, y: AnyArray) -> FloatArray:
        return np.asarray(np.count_nonzero(truth != y, axis=1), dtype=np.float64)

    def variation(self, scores: FloatArray) -> float:
        marginals = self.marginals(scores)
        return float(np.abs(marginals - marginals.mean(axis=0)).mean(axis=0).max())

    def constant_scores(self, y: AnyArray) -> FloatArray:
        return np.where(np.asarray(y), 1.0, -1.0)


def _check_binary(values: AnyArray) -> None:
    try:
        zero_or_one = (values == 0) | (values == 1)
    except TypeError:
        zero_or_one = np.zeros(values.shape, dtype=bool)
    if not np.all(zero_or_one):
        row, column = np.argwhere(~zero_or_one)[0]
        raise LogError(
            f"a matrix y must hold 0 and 1 only; row {row}, column {column} is {values[row, column]!r}. "
            "For one class a row pass y as a vector."
        )


@kernel
def _chosen(scores: FloatArray, y: AnyArray, starts: IntArray, out: FloatArray) -> None:
    for c in range(scores.shape[0]):
        for i in range(starts[c], starts[c + 1]):
            total = 0.0
            for label in range(y.shape[1]):
                total += scores[c, label] * y[i, label]
            out[i] = total


@kernel
def _spread(coef: FloatArray, y: AnyArray, starts: IntArray, out: FloatArray) -> None:
    for c in range(out.shape[0]):
        for i in range(starts[c], starts[c + 1]):
            for label in range(y.shape[1]):
                out[c, label] += coef[i] * y[i, label]
