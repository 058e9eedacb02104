"""The doubly robust estimator: a loss model, corrected by the logged losses."""

from dataclasses import dataclass
from typing import ClassVar

from poem.estimators.base import Clip, Rows, Weighted
from poem.estimators.objective import MeanObjective
from poem.estimators.sums import Terms


@dataclass(frozen=True)
class DoublyRobust(Weighted, MeanObjective):
    """The mean of E_h[m(x, ·)] + min(M, r)·(loss − m(x, y)): right if the propensities or the model are."""

    clip: Clip = None
    name: ClassVar[str] = "DR"
    needs_model: ClassVar[bool] = True

    def terms(self, rows: Rows) -> Terms:
        predicted, expected = rows.model
        ratio = self.ratios(rows.log_ratio)
        error = rows.loss - predicted
        held = self.held(ratio, rows, error)
        return Terms(ratio * error, base=expected, held=held, luck=rows.luck(ratio, error))
