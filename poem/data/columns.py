"""The columns of a log, each turned into its array and checked once."""

from typing import Any

import numpy as np

from poem.arrays import AnyArray, FloatArray, IntArray, frozen
from poem.errors import LogError
from poem.text import counted

LARGEST_LOSS = 1e20  # times the largest ratio, e^300, and squared, it is still finite
LEAST_SPREAD = 1e-100  # of losses that differ: its square is still a number
NO_WORDS = "Write numbers instead of words: 1 for yes, 0 for no."
ROUNDING = 1e-9  # a propensity of 1 + 1e-12 is rounding, not a mistake


def _vector(values: Any, name: str, n: int) -> FloatArray:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        words = name in ("loss", "reward") and "string" in str(error)
        advice = f" {NO_WORDS}" if words else ""
        raise LogError(f"{name} must be numbers; found {type(values).__name__} ({error}).{advice}") from error
    if array.shape != (n,):
        raise LogError(f"{name} must have one value for each of the {n} rows of y; found shape {array.shape}.")
    bad = np.flatnonzero(~np.isfinite(array)) if name != "log_propensity" else np.flatnonzero(np.isnan(array))
    if len(bad):
        raise LogError(
            f"{name} must be finite; row {bad[0]} has {array[bad[0]]} ({counted(len(bad), 'such row')}). "
            "Drop or fix them."
        )
    return array


def checked_loss(loss: Any, reward: Any, n: int) -> FloatArray:
    """Return the loss, or the negated reward: exactly one of them."""
    if (loss is None) == (reward is None):
        found = "neither" if loss is None else "both"
        raise LogError(f"pass exactly one of loss= (lower is better) and reward= (higher is better); found {found}.")
    name, values = ("loss", loss) if reward is None else ("reward", reward)
    array = _vector(values, name, n)
    bad = np.flatnonzero(np.abs(array) > LARGEST_LOSS)
    if len(bad):
        raise LogError(
            f"{name} must be at most {LARGEST_LOSS:g} in size, or squares of weighted losses overflow; row {bad[0]} "
            f"has {array[bad[0]]:g} ({counted(len(bad), 'such row')}). Drop such rows, or divide "
            f"every {name} by the same number."
        )
    return array if reward is None else 0.0 - array


def checked_log_propensity(propensity: Any, log_propensity: Any, n: int) -> FloatArray:
    """Return the logarithm of the propensity, from exactly one of both forms."""
    if propensity is not None and log_propensity is not None:
        raise LogError("pass propensity= or log_propensity=, not both.")
    if propensity is None and log_propensity is None:
        raise LogError(
            "propensity is missing: the probability with which the logging policy chose each output. "
            "It is never guessed. Log it, or compute it from the logging policy and pass propensity=; if that "
            "cannot be, pass propensity='missing' and see poem.estimate_propensities."
        )
    if log_propensity is not None:
        logs = _vector(log_propensity, "log_propensity", n)
        bad = np.flatnonzero((logs > ROUNDING) | ~np.isfinite(logs))
        if len(bad):
            raise LogError(
                f"log_propensity must be finite and at most 0; row {bad[0]} has {logs[bad[0]]} "
                f"({counted(len(bad), 'such row')}). Drop such rows or fix the logging."
            )
        return np.minimum(logs, 0.0)
    values = _vector(propensity, "propensity", n)
    bad = np.flatnonzero((values <= 0.0) | (values > 1.0 + ROUNDING))
    if len(bad):
        raise LogError(
            f"propensity must be in (0, 1]; row {bad[0]} has {values[bad[0]]} ({counted(len(bad), 'such row')}). "
            "Drop such rows or fix the logging: an output that was chosen had a probability above 0."
        )
    return np.log(np.minimum(values, 1.0))


def checked_context(context: Any, n_contexts: int, n: int) -> IntArray:
    """Return which row of X each decision saw: its own, unless said otherwise."""
    if context is None:
        if n_contexts != n:
            raise LogError(
                f"X has {n_contexts} rows and y has {n}. Pass rows that match, "
                "or context= to say which row of X each decision saw."
            )
        return np.arange(n, dtype=np.int64)
    array = np.asarray(context)
    if array.shape != (n,) or array.dtype.kind not in "iu":
        raise LogError(
            f"context must be {n} whole numbers, one for each row of y; found {array.dtype} of shape {array.shape}."
        )
    bad = np.flatnonzero((array < 0) | (array >= n_contexts))
    if len(bad):
        raise LogError(f"context must be a row of X, from 0 to {n_contexts - 1}; row {bad[0]} has {array[bad[0]]}.")
    return array.astype(np.int64)


def checked_time(time: Any, n: int) -> FloatArray:
    """Return when each decision was made."""
    return _vector(time, "time", n)


def checked_group(group: Any, n: int, name: str = "group") -> AnyArray | None:
    """Return the group, or the logger, of each row, if there is one: a copy that does not change."""
    if group is None:
        return None
    array = np.asarray(group)
    if array.shape != (n,):
        raise LogError(f"{name} must have one value for each of the {n} rows of y; found shape {array.shape}.")
    if array.dtype == object and any(value is None for value in array.tolist()):
        raise LogError(f"{name} must not be None. Give rows without a {name} a {name} of their own.")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise LogError(f"{name} must not be NaN. Give rows without a {name} a {name} of their own.")
    try:
        np.unique(array)
    except TypeError as error:
        raise LogError(f"{name} mixes types that cannot be ordered ({error}). Convert it to strings.") from error
    return frozen(array.copy())
