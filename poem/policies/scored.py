"""Contexts ready to be scored: their design, and what can be chosen in each of them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from poem.arrays import AnyArray, FloatArray, frozen
from poem.compute import Design
from poem.data import SHARD_SCORES
from poem.errors import LogError, MismatchError
from poem.structures import Available, Labels, Space, Structure


@dataclass(frozen=True)
class Scored:
    """Contexts, the weights that score them, and the labels of what can be chosen.

    ``more`` returns what is added to the scores of some contexts.
    """

    structure: Structure
    weights: FloatArray
    labels: Labels
    design: Design
    available: Available | None = None
    more: Callable[[slice], FloatArray] | None = None

    def stack(self, use: Callable[[FloatArray, Space, slice], AnyArray]) -> AnyArray:
        """Apply ``use`` to the scores of one block of contexts at a time and join the results."""
        wide = self.design.widen(self.weights)
        return np.concatenate([use(*self._block(wide, part), part) for part in self._blocks()])

    def variation(self) -> float:
        """Return how far the policy moves with the context, by the first block of contexts."""
        scores, space = self._block(self.design.widen(self.weights), next(self._blocks()))
        return space.variation(scores)

    def _block(self, wide: FloatArray, part: slice) -> tuple[FloatArray, Space]:
        block = self.design.block(part.start, part.stop)
        with np.errstate(over="ignore", invalid="ignore"):
            scores = block.scores(wide, self.weights.shape[1])
            if self.more is not None:
                scores += self.more(part)
        if not np.isfinite(scores).all():
            largest = np.abs(self.weights).max()
            raise MismatchError(
                f"the policy's scores are too large to compute with: weights up to {largest:.3g} in size times "
                "features. Scale the features, or lower the temperature."
            )
        return scores, self.structure.space(block.borders)

    def _blocks(self) -> Iterator[slice]:
        length = self.design.n_contexts
        height = max(2, int(SHARD_SCORES / self.design.scores_per_context(self.weights.shape[1])))
        for first in range(0, length, height):
            yield slice(first, min(first + height, length))

    def codes(self, y: Any) -> AnyArray:
        """Return one output per context as its scores have it: a code, or a position among the candidates."""
        codes = self.truth(y)
        if self.available is None:
            self.structure.check(codes)
            return codes
        found = self.available.positions(np.arange(len(codes)), codes)
        if len(codes) and found.min() < 0:
            row = int(np.argmin(found))
            raise LogError(f"the output {self.labels[codes[row]]!r} of row {row} is not available there.")
        return frozen(found)

    def truth(self, y: Any) -> AnyArray:
        """Return one output per context as a code; it need not be available, nor possible."""
        codes = frozen(self.structure.encode(y, self.labels)[0])
        if len(codes) != self.design.n_contexts:
            raise MismatchError(
                f"X has {self.design.n_contexts} rows and y has {len(codes)}. Pass one output for each row of X."
            )
        return codes

    def chosen(self, found: AnyArray) -> AnyArray:
        """Return what was chosen in each context as codes."""
        return found if self.available is None else self.available.action[self.available.starts[:-1] + found]

    def decoded(self, found: AnyArray) -> AnyArray:
        """Return what was chosen in each context as users call it."""
        return self.structure.decode(self.chosen(found), self.labels)
