"""How a policy was made: the record that travels with it, and its plain form in policy files."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from poem.arrays import FloatArray
from poem.errors import InputError
from poem.optimizers import Trace

Plain = dict[str, Any]  # what JSON can hold


@dataclass(frozen=True)
class TraceRecord:
    """How the optimizer went: the figures of a :class:`poem.optimizers.Trace`, and those of the weights at its end.

    ``mean_weight`` is the mean importance weight on the rows that were learnt from, ``clipped_share`` the share of the
    rows whose weight was clipped.
    """

    value: float
    steps: int
    seconds: float
    converged: bool
    reason: str
    curve: tuple[tuple[float, float], ...]
    mean_weight: float
    clipped_share: float

    @classmethod
    def of(cls, trace: Trace, mean_weight: float, clipped_share: float) -> "TraceRecord":
        """Take the figures of a trace."""
        figures = {name: value for name, value in vars(trace).items() if name != "weights"}
        return cls.from_data({**figures, "mean_weight": mean_weight, "clipped_share": clipped_share})

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "TraceRecord":
        """Make the record again from plain data; an error says that it is not of this form."""
        return cls(
            value=float(data["value"]),
            steps=int(data["steps"]),
            seconds=float(data["seconds"]),
            converged=bool(data["converged"]),
            reason=str(data["reason"]),
            curve=tuple((float(moment), float(value)) for moment, value in data["curve"]),
            mean_weight=float(data["mean_weight"]),
            clipped_share=float(data["clipped_share"]),
        )

    def trace(self, weights: FloatArray) -> Trace:
        """Return the trace again, with the weights that it ended at."""
        return Trace(weights, self.value, self.steps, self.seconds, self.converged, self.reason, list(self.curve))


@dataclass(frozen=True)
class Record:
    """How a policy was made. It is saved with the policy, and equal after loading.

    Attributes
    ----------
    made_by : str, optional
        The function that made the policy, if it was not :func:`poem.fit`.
    n_train : int, optional
        The number of rows that it was learnt from.
    log : str, optional
        The fingerprint of its log, or of its part of a packed one, or both: estimates on these rows are too good.
    columns : dict, optional
        Which column of its log is what, so that the next log is read alike.
    learner, start : str, optional
        The learner that made it, and what it began from.
    lam, temperature : float, optional
        λ of the variance penalty; the α of :meth:`poem.Policy.at_temperature`.
    propensities : str, optional
        "logged" or "estimated".
    calibration : dict, optional
        Loss bounds, clip and λ*.
    trace : TraceRecord, optional
        How the optimizer went.
    candidates : tuple of dict
        The table of the candidates that were tried; ``outcome`` says whether estimates are losses or rewards.
    certificate, certificate_before_refit : dict, optional
        What fresh rows certify of the policy, or of the one before it was learnt again from all rows.
    explanation : tuple of str
        What :meth:`poem.Fit.explain` said.
    settings : dict
        Everything else, to be shown only.
    """

    made_by: str | None = None
    n_train: int | None = None
    log: str | None = None
    columns: Plain | None = None
    learner: str | None = None
    start: str | None = None
    lam: float | None = None
    temperature: float | None = None
    propensities: str | None = None
    calibration: Plain | None = None
    trace: TraceRecord | None = None
    candidates: tuple[Plain, ...] = ()
    certificate: Plain | None = None
    certificate_before_refit: Plain | None = None
    explanation: tuple[str, ...] = ()
    settings: Plain = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in list(vars(self).items()):
            if isinstance(value, tuple):
                object.__setattr__(self, name, tuple(map(_plain, value)))
            elif not isinstance(value, TraceRecord):
                object.__setattr__(self, name, _plain(value))
        if twice := sorted(_READERS.keys() & self.settings.keys()):
            raise InputError(f"settings of a record must not repeat its fields; found {', '.join(twice)}.")

    def to_data(self) -> Plain:
        """Return the record as data that JSON can hold: the settings, and beside them the fields that are set."""
        known = {name: getattr(self, name) for name in _READERS}
        data = {name: value for name, value in known.items() if value is not None and value != ()}
        if self.trace is not None:
            data["trace"] = asdict(self.trace)
        return {name: _plain(value) for name, value in (self.settings | data).items()}

    @classmethod
    def from_data(cls, data: Any) -> "Record":
        """Make a record again from data that anybody may have written.

        Fields of a wrong kind are left out. Content that is no record at all raises a TypeError.
        """
        if not isinstance(data, dict):
            raise TypeError(f"a record of type {type(data).__name__}")
        known = {name: read(data[name]) for name, read in _READERS.items() if name in data}
        found = {name: value for name, value in known.items() if value is not None}
        return cls(**found, settings={name: value for name, value in data.items() if name not in _READERS})


def _plain(value: Any) -> Any:
    """Return a copy as plain data: numpy's numbers become Python's, and tuples lists, as after loading."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise InputError(f"a record holds plain data only; found {value!r:.80}, a {type(value).__name__}.")


# ---- content of files: each returns None for what is of a wrong kind -----------------------------------


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: Any) -> float | None:
    try:
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    except OverflowError:  # a whole number of hundreds of digits
        return None


def _mapping(value: Any) -> Plain | None:
    return value if isinstance(value, dict) else None


def _texts(value: Any) -> tuple[str, ...] | None:
    return tuple(map(str, value)) if isinstance(value, list) else None


def _mappings(value: Any) -> tuple[Plain, ...] | None:
    return tuple(one for one in value if isinstance(one, dict)) if isinstance(value, list) else None


def _trace(value: Any) -> TraceRecord | None:
    try:
        return TraceRecord.from_data(value)
    except (KeyError, TypeError, ValueError, OverflowError):  # written by another version
        return None


_READERS: dict[str, Callable[[Any], Any]] = {
    "made_by": _text,
    "n_train": _count,
    "log": _text,
    "columns": _mapping,
    "learner": _text,
    "start": _text,
    "lam": _number,
    "temperature": _number,
    "propensities": _text,
    "calibration": _mapping,
    "trace": _trace,
    "candidates": _mappings,
    "certificate": _mapping,
    "certificate_before_refit": _mapping,
    "explanation": _texts,
}
