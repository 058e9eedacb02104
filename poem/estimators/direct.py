"""The direct method: the mean of a loss model under the policy. It is as accurate as the model."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from poem.estimators.base import Estimator, Rows
from poem.estimators.sums import Terms


@dataclass(frozen=True)
class DirectMethod(Estimator):
    """The mean of E_h[m(x, ·)]. Its interval ignores the error of the model."""

    name: ClassVar[str] = "DM"
    needs_model: ClassVar[bool] = True

    def terms(self, rows: Rows) -> Terms:
        _, expected = rows.model
        return Terms(np.zeros(len(expected)), base=expected)
