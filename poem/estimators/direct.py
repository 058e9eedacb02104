"""The direct method: the mean of a loss model under the policy. It is as accurate as the model."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from poem.arrays import FloatArray
from poem.estimators.base import Rows
from poem.estimators.objective import MeanObjective
from poem.estimators.sums import Terms


@dataclass(frozen=True)
class DirectMethod(MeanObjective):
    """The mean of E_h[m(x, ·)]. Its interval ignores the error of the model."""

    name: ClassVar[str] = "DM"
    needs_model: ClassVar[bool] = True

    def ratios(self, log_ratio: FloatArray) -> FloatArray:
        return np.zeros(len(log_ratio))  # logged losses do not count

    def terms(self, rows: Rows) -> Terms:
        _, expected = rows.model
        return Terms(np.zeros(len(expected)), base=expected)
