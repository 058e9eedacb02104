"""Results → the paper's tables, each beside its own figures."""

from collections.abc import Sequence

import numpy as np

from poem.arrays import FloatArray
from poem.experiments import paper
from poem.experiments.document import Grid, Section, Text
from poem.experiments.run import Result
from poem.experiments.spec import FROM_LOG, Logging
from poem.experiments.summary import Measure, PairedTest, Results, paired_test
from poem.learning import MULTIPLIERS
from poem.simulation import Dataset

TITLES = {"scene": "Scene", "yeast": "Yeast", "tmc": "TMC", "lyrl": "LYRL"}
LEARNT = FROM_LOG[1:]
ROWS = ("h0", "no label", "uniform", *LEARNT)
_Pair = tuple[str, str, Measure, Measure]  # first and second method of a test, and what is taken of each
VARIANTS = (("IPS(B)", "POEM(B)"), ("IPS(S)", "POEM(S)"))


class Tables:
    """Makes each table for some data sets."""

    def __init__(self, results: Results, data: dict[str, Dataset], logging: Logging) -> None:
        self.results, self.data, self.logging = results, data, logging

    def section(self, item: str, datasets: Sequence[str]) -> Section:
        """Return a table as a section."""
        make = {"table1": self._sizes, "table2": self._losses, "table3": self._times, "table4": self._map_losses}
        return make[item](datasets)

    def _sizes(self, datasets: Sequence[str]) -> Section:
        head = ("", "features", "labels", "training rows", "test rows", "labels per row", "paper", "data")
        rows = []
        for name in datasets:
            data = self.data[name]
            (n, p), (m, q) = data.X_train.shape, data.y_test.shape
            labels = f"{data.y_train.sum() / n:.2f} / {data.y_test.sum() / m:.2f}"
            published = " × ".join(map(str, paper.SIZES[name]))
            rows.append((TITLES[name], str(p), str(q), str(n), str(m), labels, published, data.version))
        return Section("Table 1: the data", [Grid(head, rows)])

    def _losses(self, datasets: Sequence[str]) -> Section:
        rows = [[method, *self._pairs(datasets, method, paper.LOSS, "expected_loss")] for method in ROWS]
        # The paper's row is the MAP loss, as its release shows; the others are expected losses.
        rows.append(["CRF", *self._pairs(datasets, "CRF", {}, "expected_loss")])
        rows.append(["CRF (MAP)", *self._pairs(datasets, "CRF", paper.LOSS, "map_loss")])
        return Section(
            "Table 2: test Hamming loss",
            [
                Text(f"Mean ± standard deviation over runs. {self._versions(datasets)}"),
                Grid(_beside_paper(datasets), rows),
                Text("One-tailed paired t-tests of IPS against POEM at 0.05, as they come out:"),
                self._tests(datasets, [(a, b, "expected_loss", "expected_loss") for a, b in VARIANTS]),
                Text(
                    "Test loss of POEM for each λ = c·λ*. “chosen” is what held-out rows picked, “best” what the test "
                    "set itself would have picked."
                ),
                self._by_multiplier(datasets),
                Text("How many of the chosen policies are degenerate, and how:"),
                self._problems(datasets),
            ],
        )

    def _times(self, datasets: Sequence[str]) -> Section:
        methods = ("IPS(B)", "IPS(S)", "POEM(B)", "POEM(S)", "CRF")
        rows = [[method, *self._pairs(datasets, method, paper.SECONDS, "cpu_seconds")] for method in methods]
        about = "CPU seconds of one fit, mean ± standard deviation over runs; the paper's are of its own machine."
        return Section(
            "Table 3: time", [Text(f"{about} {self._versions(datasets)}"), Grid(_beside_paper(datasets), rows)]
        )

    def _map_losses(self, datasets: Sequence[str]) -> Section:
        methods = ("h0", *LEARNT, "CRF")
        rows = [[f"{method}, MAP", *self._pairs(datasets, method, paper.MAP_LOSS, "map_loss")] for method in methods]
        tests: list[_Pair] = [
            (method, method, "map_loss", "expected_loss") for method in LEARNT if method.startswith("POEM")
        ]
        return Section(
            "Table 4: test Hamming loss of MAP predictions",
            [
                Text(f"Mean ± standard deviation over runs. {self._versions(datasets)}"),
                Grid(_beside_paper(datasets), rows),
                Text("One-tailed paired t-tests of “the MAP prediction is worse than the stochastic policy” at 0.05:"),
                self._tests(datasets, tests),
            ],
        )

    # ---- parts ----------------------------------------------------------------------------

    def _where(self, method: str) -> Logging | None:
        return self.logging if method in FROM_LOG else None

    def _values(self, dataset: str, method: str, measure: Measure) -> FloatArray:
        return self.results.values(dataset, self._where(method), method, measure)

    def _pairs(
        self, datasets: Sequence[str], method: str, published: dict[str, dict[str, float]], measure: Measure
    ) -> list[str]:
        cells = []
        for name in datasets:
            value = published.get(method, {}).get(name)
            cells += ["" if value is None else f"{value:.3f}", spread(self._values(name, method, measure))]
        return cells

    def _versions(self, datasets: Sequence[str]) -> str:
        return "Data: " + "; ".join(f"{TITLES[name]}: {self.data[name].version}" for name in datasets) + "."

    def _tests(self, datasets: Sequence[str], pairs: Sequence[_Pair]) -> Grid:
        rows = []
        for name in datasets:
            for first, second, measure, other in pairs:
                found = paired_test(self._values(name, first, measure), self._values(name, second, other))
                title = f"{first} − {second}" if first != second else f"{first}, MAP − {first}"
                rows.append([f"{TITLES[name]}: {title}", *_test_cells(found)])
        return Grid(("", "difference", "t", "p", "significant"), rows)

    def _by_multiplier(self, datasets: Sequence[str]) -> Grid:
        rows = []
        for name in datasets:
            for method in (poem for _, poem in VARIANTS):
                fits = self.results.fits(name, self.logging, method)
                losses = np.array([[fit.expected_loss for fit in sorted(run, key=_multiplier)] for run in fits])
                if not len(losses):
                    continue
                chosen = self._values(name, method, "expected_loss").mean()
                means = [*losses.mean(axis=0), chosen, losses.min(axis=1).mean()]
                rows.append([f"{TITLES[name]}: {method}", *(f"{mean:.3f}" for mean in means)])
        return Grid(("", *(f"{c:.0e}" for c in MULTIPLIERS), "chosen", "best"), rows)

    def _problems(self, datasets: Sequence[str]) -> Grid:
        rows = [
            [method, *(problem_counts(self.results.chosen(name, self.logging, method)) or "none" for name in datasets)]
            for method in LEARNT
        ]
        return Grid(("", *(TITLES[name] for name in datasets)), rows)


def _multiplier(fit: Result) -> float:
    return 0.0 if fit.c is None else fit.c


def problem_counts(fits: Sequence[Result]) -> str:
    """Say how many of some policies are degenerate, and how."""
    found = [set(fit.problems.split("; ")) for fit in fits]
    names = sorted(set().union(*found) - {""})
    return ", ".join(f"{sum(name in problems for problems in found)} × {name}" for name in names)


def spread(values: FloatArray) -> str:
    """Return mean ± standard deviation as text."""
    if not len(values):
        return ""
    if len(values) == 1:
        return f"{values[0]:.3f}"
    return f"{values.mean():.3f} ± {values.std(ddof=1):.3f}"


def _beside_paper(datasets: Sequence[str]) -> tuple[str, ...]:
    return ("", *(cell for name in datasets for cell in (f"{TITLES[name]}, paper", f"{TITLES[name]}, poem")))


def _test_cells(found: PairedTest | None) -> list[str]:
    if found is None:
        return ["", "", "", "one run only"]
    return [f"{found.difference:+.3f}", f"{found.t:.2f}", f"{found.p:.3g}", "yes" if found.significant else "no"]
