"""The doubly robust estimator with weights that sum to one."""

from dataclasses import dataclass
from typing import ClassVar

from poem.estimators.base import Clip, Rows, Weighted
from poem.estimators.sums import Terms


@dataclass(frozen=True)
class SelfNormalisedDR(Weighted):
    """The mean of E_h[m(x, ·)], plus Σr·(loss − m(x, y))/Σr."""

    clip: Clip = None
    name: ClassVar[str] = "SNDR"
    needs_model: ClassVar[bool] = True

    def terms(self, rows: Rows) -> Terms:
        predicted, expected = rows.model
        ratio = self.ratios(rows.log_ratio)
        error = rows.loss - predicted
        held = self.held_of_ratio(ratio, rows, error)
        return Terms(ratio * error, bottom=ratio, base=expected, held=held, luck=rows.luck(ratio, error))
