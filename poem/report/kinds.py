"""Which kinds of action rise and fall, where actions have features: their means under the policy and in the log."""

from dataclasses import dataclass

import numpy as np

from poem.arrays import FloatArray
from poem.data import BanditLog
from poem.report.sums import (
    LEAST_MOVE,
    ActionFeatures,
    AnyPolicy,
    columns_of,
    evenly,
    expected_sums,
    logged_sums,
    of_policy,
    sums_by_column,
)

MOST_KINDS = 10  # that rise, and that fall


@dataclass(frozen=True)
class Kind:
    """One feature of actions: its mean over decisions.

    Attributes
    ----------
    name : str
    feature : int
        Its number.
    available, logged, new, other : float
        Its mean over what is available, over what was logged, and over what the policies choose.
    weighted, weighted_error : float
        Its mean over the weighted log, which estimates ``new``, and the standard error of that.
    spread : float
        Its standard deviation among available actions.
    share : bool
        Whether it is 0 or 1, so that its means are shares.
    """

    name: str
    feature: int
    available: float
    logged: float
    new: float
    other: float | None
    weighted: float
    weighted_error: float
    spread: float
    share: bool

    @property
    def change(self) -> float:
        """How much its mean rises, in standard deviations."""
        return (self.new - self.logged) / self.spread


def find_kinds(policy: AnyPolicy, log: BanditLog, ratio: FloatArray, other: AnyPolicy | None) -> tuple[Kind, ...]:
    """Return the features of actions that rise and fall most, beyond what chance explains; empty without features.

    ``ratio`` are the weights of the policy on the log.
    """
    columns = columns_of(log)
    if not isinstance(columns, ActionFeatures):
        return ()
    n = len(log)
    new, even = (expected_sums(columns, log, one)[0] / n for one in (of_policy(policy, log), evenly(columns.available)))
    theirs = None if other is None else expected_sums(columns, log, of_policy(other, log))[0] / n
    logged = logged_sums(columns, log, np.zeros((log.n_contexts, 0), dtype=bool))[0] / n
    weighted = sums_by_column(columns, log, lambda rows: ratio[rows, None], 1)[0] / n
    squares = ActionFeatures(log, columns.available, squared=True)
    square = sums_by_column(squares, log, lambda rows: ratio[rows, None] ** 2, 1)[0] / n
    error = np.sqrt(np.maximum(square - weighted**2, 0.0) / n)
    change = (new - logged) / columns.scale
    clear = np.flatnonzero(np.abs(change) > max(2.0 / np.sqrt(n), LEAST_MOVE))
    order = clear[np.argsort(-change[clear], kind="stable")]
    rises, falls = order[change[order] > 0.0][:MOST_KINDS], order[change[order] < 0.0][-MOST_KINDS:]
    return tuple(
        Kind(
            columns.names[j],
            int(j),
            float(even[j]),
            float(logged[j]),
            float(new[j]),
            None if theirs is None else float(theirs[j]),
            float(weighted[j]),
            float(error[j]),
            float(columns.scale[j]),
            bool(columns.shares[j]),
        )
        for j in (*rises, *falls)
    )
