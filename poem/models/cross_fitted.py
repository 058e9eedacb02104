"""One loss model for each fold of a log: none predicts rows that it has seen."""

from dataclasses import dataclass

from poem.arrays import IntArray
from poem.compute import Threads
from poem.data import BanditLog, folds_of
from poem.models.fitted import LossModel
from poem.models.linear import fit_linear, linear_strength


@dataclass(frozen=True)
class CrossFitted:
    """Models of which none has seen the rows that it predicts: ``fold`` says which one each row takes."""

    models: tuple[LossModel, ...]
    fold: IntArray

    def of_rows(self, rows: IntArray) -> "CrossFitted":
        """Return the models for some rows of the log."""
        return CrossFitted(self.models, self.fold[rows])


def cross_fit(log: BanditLog, folds: int = 2, *, seed: int = 0, threads: Threads | None = None) -> CrossFitted:
    """Fit one loss model for each fold of the log's units on all other folds."""
    fold, threads = folds_of(log, folds, seed), threads or Threads()
    strength = linear_strength(log, seed, threads)
    models = [fit_linear(log.take(fold != part), strength, threads) for part in range(folds)]
    return CrossFitted(tuple(models), fold)
