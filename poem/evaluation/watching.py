"""Watch a policy against a live log: rows in time order, looks as often as you like, one answer."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from poem.data import BanditLog
from poem.errors import InputError
from poem.evaluation.gate import Answer, Gate, Look
from poem.packed import PackedLog, how_to_open
from poem.text import Grid, Sheet, counted

LOOKS = 10


@dataclass(frozen=True)
class Watch:
    """What :func:`watch` saw.

    Attributes
    ----------
    gate : Gate
        After the last row; it takes further rows.
    looks : list of Look
        The estimated gain, its bounds and the answer after so many rows.
    """

    gate: Gate
    looks: list[Look]

    @property
    def answer(self) -> Answer:
        """ "ship", "keep running" or "stop"."""
        return self.gate.answer

    def explain(self) -> str:
        """Return the answer in words."""
        gate = self.gate
        sure = f"with {gate.confidence:.0%} confidence over all looks"
        than = "above 0" if gate.margin == 0.0 else f"above the margin of {gate.margin:g}"
        if gate.answer == "keep running":
            return (
                f"Answer: keep running. After {counted(gate.rows, 'row')} it is not clear whether the gain is {than}."
            )
        verb = "is" if gate.answer == "ship" else "is not"
        clear = f"this was clear after {counted(gate.decided_at or 0, 'row')}"
        return f"Answer: {gate.answer}. The gain {verb} {than} {sure}; {clear}."

    def sheet(self) -> Sheet:
        """Return the looks and the answer, to be shown."""
        head = ("rows", "gain", f"{100.0 * self.gate.confidence:g}% at all times", "answer")
        rows = [
            (f"{look.rows:,}", f"{look.gain:+.4g}", f"[{look.lower:+.4g}, {look.upper:+.4g}]", look.answer)
            for look in self.looks
        ]
        return Sheet(Grid(head, rows), self.explain())

    def __str__(self) -> str:
        return str(self.sheet())

    def _repr_html_(self) -> str:
        return self.sheet().html()

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        gate = self.gate
        content: dict[str, Any] = {
            "answer": gate.answer,
            "confidence": gate.confidence,
            "margin": gate.margin,
            "text": self.explain(),
            "decided_at": gate.decided_at,
        }
        return content | asdict(self.looks[-1]) | {"looks": [asdict(look) for look in self.looks]}


def watch(
    policy: Any,
    log: BanditLog,
    *,
    loss_bounds: tuple[float, float],
    confidence: float = 0.95,
    margin: float = 0.0,
    every: int | None = None,
) -> Watch:
    """Compare a policy with what is being logged, row by row in time order; see :class:`poem.Gate`.

    Parameters
    ----------
    policy : policy or object with ``predict_proba(X)``
        It must not be trained on these rows.
    log : BanditLog
        Sorted by its times; without times, rows are taken to be in time order.
    loss_bounds : (lowest, highest)
        What a loss can be, or a reward in a log of rewards.
    confidence, margin
        As of :class:`poem.Gate`.
    every : int, optional
        Look every so many rows; by default ten times, at rows that grow by a constant factor.
    """
    if not isinstance(log, BanditLog):
        raise InputError(_no_rows(log))
    gate = Gate(policy, loss_bounds=loss_bounds, confidence=confidence, margin=margin)
    return Watch(gate, _looks(gate, in_time_order(log), every))


def _no_rows(log: object) -> str:
    """Say why something cannot be watched."""
    if not isinstance(log, PackedLog):
        return f"watch takes (policy, log); found {type(log).__name__} as the log.{how_to_open(log)}"
    return (
        "watch takes rows one by one in the order of time, and a packed log has shards of random units. Read the "
        "original files (poem.read_log_for), or pass log.to_log() if it fits into memory."
    )


def in_time_order(log: BanditLog) -> BanditLog:
    """Return the log sorted by time if it has times; otherwise its rows are taken to be in time order."""
    if log.time is None or bool(np.all(np.diff(log.time) >= 0.0)):
        return log
    return log.take(np.argsort(log.time, kind="stable"))


def _looks(gate: Gate, log: BanditLog, every: int | None) -> list[Look]:
    """Feed a log to a gate in parts, and look at it after each of them."""
    n = len(log)
    if every is None:
        ends = np.unique(np.geomspace(min(n, 10), n, LOOKS).round().astype(int))
    else:
        ends = np.append(np.arange(every, n, every), n)
    looks = []
    for first, last in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
        gate.update(log.take(np.arange(first, last)))
        looks.append(gate.look())
    return looks
