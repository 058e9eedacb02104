"""What is to be run for each table and figure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from poem.experiments.protocol import Protocol
from poem.simulation import CATALOG

FROM_LABELS = ("no label", "uniform", "CRF")
FROM_LOG = ("h0", "IPS(B)", "POEM(B)", "IPS(S)", "POEM(S)")

TABLES = ("table1", "table2", "table3", "table4")
REPLAYS = tuple(2**power for power in range(9))
FRACTIONS = (0.01, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
TEMPERATURES = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
FRACTION = 0.05


@dataclass(frozen=True)
class Logging:
    """How a log is made: the logging policy's C, its share of the training set, its temperature, and the passes."""

    C: float
    fraction: float = FRACTION
    temperature: float = 1.0
    replay: int = 4


@dataclass(frozen=True)
class Run:
    """One repetition of one experiment: a data set, a log (None for methods that see the labels), and methods."""

    dataset: str
    logging: Logging | None
    seed: int
    methods: tuple[str, ...]


@dataclass(frozen=True)
class Sweep:
    """A figure: one knob of the logging is turned, on the paper's data set unless another is asked for."""

    name: str
    knob: str
    values: tuple[float, ...]
    dataset: str
    methods: tuple[str, ...] = ("h0", "POEM(S)")
    skyline: bool = False

    def loggings(self, protocol: Protocol) -> list[Logging]:
        """Return one kind of logging for each value of the knob."""
        fixed = {
            "figure1": Logging(protocol.figure1_C),
            "figure2": table_logging(protocol),
            "figure3": Logging(protocol.logger_C, replay=protocol.figure3_replay),
        }[self.name]
        changes: list[dict[str, Any]] = [{self.knob: value} for value in self.values]
        return [replace(fixed, **change) for change in changes]


SWEEPS = {
    sweep.name: sweep
    for sweep in (
        Sweep("figure1", "replay", REPLAYS, "yeast", skyline=True),
        Sweep("figure2", "fraction", FRACTIONS, "yeast"),
        Sweep("figure3", "temperature", TEMPERATURES, "lyrl"),
    )
}
ITEMS = (*TABLES, *SWEEPS)


def table_logging(protocol: Protocol) -> Logging:
    """Return how the logs of Tables 2 to 4 are made."""
    return Logging(C=protocol.logger_C, replay=protocol.replay)


def datasets_of(item: str, dataset: str) -> tuple[str, ...]:
    """Return the sets that a table or figure is made for; ``"all"`` means those of the paper."""
    if dataset != "all":
        return (dataset,)
    return tuple(CATALOG) if item in TABLES else (SWEEPS[item].dataset,)


def runs_for(items: Sequence[str], dataset: str, protocol: Protocol, seeds: Iterable[int]) -> list[Run]:
    """Return all that must be run, repetition by repetition, each thing once."""
    wanted: dict[tuple[str, Logging | None], set[str]] = {}
    for item in items:
        for name in datasets_of(item, dataset):
            for logging, methods in _parts(item, protocol):
                wanted.setdefault((name, logging), set()).update(methods)
    order = FROM_LABELS + FROM_LOG
    return [
        Run(name, logging, seed, tuple(sorted(methods, key=order.index)))
        for seed in seeds
        for (name, logging), methods in wanted.items()
    ]


def _parts(item: str, protocol: Protocol) -> list[tuple[Logging | None, tuple[str, ...]]]:
    if item == "table1":
        return []
    if item in TABLES:
        return [(None, FROM_LABELS), (table_logging(protocol), FROM_LOG)]
    sweep = SWEEPS[item]
    parts: list[tuple[Logging | None, tuple[str, ...]]] = [(None, ("CRF",))] if sweep.skyline else []
    return [*parts, *((logging, sweep.methods) for logging in sweep.loggings(protocol))]
