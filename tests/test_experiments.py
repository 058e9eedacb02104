"""The paper's experiments: their parts on made-up results, and the whole on Yeast."""

import contextlib
import csv
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import astuple, replace
from html.parser import HTMLParser
from io import BytesIO
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.image import imread
from scipy import stats
from test_cli import RUN, exit_code
from test_datasets import SHARED
from test_laws_risk import make_log, make_risk, random_weights

import poem
from poem.data.layout import Layout
from poem.errors import DatasetError, InputError
from poem.estimators import IPS
from poem.experiments import ITEMS, PROTOCOLS, paper, reproduce
from poem.experiments.document import Grid, Picture, Section, Text, to_html, to_markdown
from poem.experiments.figures import curves_of, section_of
from poem.experiments.record import COLUMNS, Record
from poem.experiments.release import ReleaseIPS
from poem.experiments.reproduction import sections_of
from poem.experiments.run import SKYLINE_C, Result, data_named, perform
from poem.experiments.schedule import run_all
from poem.experiments.spec import FROM_LABELS, FROM_LOG, SWEEPS, TABLES, Logging, Run, runs_for, table_logging
from poem.experiments.summary import Results, paired_test
from poem.experiments.tables import spread
from poem.learning.fitting import MULTIPLIERS
from poem.objectives.risk import Risk
from poem.optimizers import LBFGS, AdaGrad
from poem.progress import BAR, EVERY_LINE, Progress
from poem.simulation.datasets import CATALOG, Dataset
from poem.version import VERSION

PAPER, RELEASE = PROTOCOLS["paper"], PROTOCOLS["release"]
LOGGING = table_logging(RELEASE)

needs_data = pytest.mark.skipif(not SHARED.is_dir(), reason="the paper's data are not on this machine")
every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)


def made_up(method="h0", loss=5.0, seed=0, logging=LOGGING, **changes):
    """A result that nobody has computed."""
    log = {"logger_C": None, "fraction": None, "temperature": None, "replay": None}
    if logging is not None:
        log = dict(zip(log, astuple(logging), strict=True))
    rest = {
        "protocol": "release",
        "dataset": "yeast",
        "data": "made up",
        "c": None,
        "lam": None,
        "steps": None,
        "chosen": True,
        "map_loss": loss / 2,
        "validation": None,
        "cpu_seconds": None,
        "problems": "",
        "poem": VERSION,
    }
    return Result(**(log | rest | {"method": method, "expected_loss": loss, "seed": seed} | changes))


def candidates(method, values, **changes):
    """All fits of a method that chooses, the second one chosen."""
    return [made_up(method, c=c, chosen=position == 1, **changes) for position, c in enumerate(values)]


def timeless(results):
    """Results without what no two runs share, in an order of their own."""
    return sorted((astuple(replace(result, cpu_seconds=None)) for result in results), key=repr)


@pytest.fixture
def tiny():
    """Two training rows and a test row under the name of Yeast."""
    labels = np.array([[1, 0], [0, 1]])
    return Dataset("yeast", "made up", np.eye(2), labels, np.eye(2)[:1], labels[:1])


# ---- the stochastic update of the release ---------------------------------------------------------


def rows_of_a_log(n=50, seed=0):
    rng = np.random.default_rng(seed)
    return np.exp(rng.normal(size=n)), -rng.random(n)


def release_factor(u, batch_u, lam):
    """1 + λ√n·A + 2·(λ/√n)·B·mean(u), with A and B of the paper's Proposition 1."""
    n, sd = len(u), u.std(ddof=1)
    A, B = -u.mean() / ((n - 1) * sd), 1.0 / (2.0 * (n - 1) * sd)
    return 1.0 + lam * np.sqrt(n) * A + 2.0 * lam / np.sqrt(n) * B * batch_u.mean()


def frozen_slopes(estimator, ratio, loss, lam):
    return estimator.point(estimator.sums(ratio, loss), len(loss)).slopes(lam)


@pytest.mark.parametrize("lam", [0.0, 0.5, 30.0])
@pytest.mark.parametrize("batch", [slice(0, 10), slice(35, 50), slice(0, 50)], ids=str)
def test_coefficients_of_the_release_are_the_formula_in_its_text(lam, batch):
    estimator = ReleaseIPS(2.0)
    unclipped, loss = rows_of_a_log()
    ratio = estimator.ratios(np.log(unclipped))
    u, n, size = ratio * loss, len(loss), batch.stop - batch.start
    slopes = frozen_slopes(estimator, ratio, loss, lam)
    found = estimator.coefficients(ratio[batch], loss[batch], slopes * (n / size))  # as Risk's batches scale them
    clipped = unclipped[batch] >= 2.0
    assert clipped.any()
    assert not clipped.all()
    assert np.all(found[clipped] == 0.0)
    gradient_of_u = np.where(clipped, 0.0, u[batch])  # the derivative of u in log h
    np.testing.assert_allclose(found, gradient_of_u / size * release_factor(u, u[batch], lam), rtol=1e-12)


def test_without_a_penalty_the_release_is_plain_ips():
    ratio, loss = rows_of_a_log()
    plain, release = (
        kind(2.0).coefficients(ratio, loss, frozen_slopes(kind(2.0), ratio, loss, 0.0)) for kind in (IPS, ReleaseIPS)
    )
    np.testing.assert_array_equal(release, plain)


def test_with_a_penalty_the_release_is_not_the_majoriser_of_the_paper():
    ratio, loss = rows_of_a_log()
    plain, release = (
        kind(None).coefficients(ratio, loss, frozen_slopes(kind(None), ratio, loss, 30.0)) for kind in (IPS, ReleaseIPS)
    )
    assert np.linalg.norm(release - plain) > 0.1 * np.linalg.norm(plain)


@pytest.mark.parametrize("kind", ["labels", "classes"])
def test_a_batch_of_the_release_steps_along_the_gradient_of_ips(kind):
    log, batch = make_log(kind, "csr-replayed"), slice(20, 50)
    release = make_risk(log, ReleaseIPS(3.0), lam=8.0, l2=0.0)
    plain = make_risk(log, IPS(3.0), lam=0.0, l2=0.0)
    wide = release.for_batches(random_weights(release)).astype(np.float64)
    order = np.random.default_rng(0).permutation(release.n_rows)
    u = release.ratios(release.from_batches(wide)) * release.loss
    gradients = [
        risk.shuffled(order).batch(wide, batch, risk.frozen_point(wide)[1])[1].values for risk in (release, plain)
    ]
    factor = release_factor(u, u[order[batch]], 8.0)
    assert factor > 1.1
    np.testing.assert_allclose(gradients[0], factor * gradients[1], rtol=1e-10, atol=1e-15)


def test_the_release_still_reports_the_objective_itself():
    log = make_log("labels", "csr")
    release, exact = (make_risk(log, kind(3.0), lam=8.0) for kind in (ReleaseIPS, IPS))
    wide = release.for_batches(random_weights(release))
    assert release.frozen_point(wide)[0] == exact.frozen_point(wide)[0]


# ---- a loss in [−1, 0] and one in [−q, 0] ---------------------------------------------------------


def minimised(optimizer, scale):
    log = make_log("labels", "csr-replayed")
    layout = Layout(log, log.structure, True)
    risk = Risk(layout, layout.loss * scale, IPS(3.0), lam=0.5)
    return optimizer.minimize(risk, rng=np.random.default_rng(0))


STOCHASTIC = {"batch_size": 10, "max_batches": 200}


def test_adagrad_on_a_smaller_loss_takes_the_same_way_from_a_smaller_start():
    """With q a power of two nothing is rounded, so that the weights are the same to the bit."""
    large = minimised(AdaGrad(**STOCHASTIC), 8.0)
    small = minimised(AdaGrad(**STOCHASTIC, initial=1 / 64, tol=1e-6 / 8), 1.0)
    np.testing.assert_array_equal(small.weights, large.weights)
    assert small.value == pytest.approx(large.value / 8, rel=1e-12)
    other = minimised(AdaGrad(**STOCHASTIC), 1.0).weights
    assert np.linalg.norm(other - large.weights) > 0.1 * np.linalg.norm(large.weights)


@pytest.mark.parametrize("q", [6, 14, 22])
def test_optimizers_of_the_release_are_those_for_a_loss_q_times_as_large(q):
    rules = {"batch_size": 10, "max_batches": 20, "min_epochs": 1}  # few, as rounding to float32 grows on its way
    small, large, other = (
        minimised(replace(protocol.adagrad(q), **rules), scale).weights
        for protocol, scale in ((RELEASE, 1.0), (PAPER, float(q)), (PAPER, 1.0))
    )
    np.testing.assert_allclose(small, large, atol=1e-4 * np.abs(large).max())
    assert np.abs(other - large).max() > 0.1 * np.abs(large).max()


def test_lbfgs_on_a_smaller_loss_stops_at_the_same_step():
    large = minimised(PAPER.lbfgs(8), 8.0)
    small = minimised(RELEASE.lbfgs(8), 1.0)
    assert (small.steps, small.reason) == (large.steps, large.reason)
    np.testing.assert_allclose(small.weights, large.weights, atol=1e-6 * np.abs(large.weights).max())
    assert minimised(replace(RELEASE.lbfgs(8), floor=100.0), 1.0).steps < small.steps


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan])
@pytest.mark.parametrize(("optimizer", "name"), [(AdaGrad, "initial"), (AdaGrad, "step"), (LBFGS, "floor")])
def test_a_start_or_floor_that_is_not_positive_is_refused(optimizer, name, value):
    with pytest.raises(InputError, match=f"{name} must be above 0; found {value}"):
        optimizer(**{name: value})


# ---- the logging policy ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["labels", "classes"])
@pytest.mark.parametrize("fraction", [0.003, 0.1, 0.35, 1.0])
def test_a_logging_policy_is_fitted_on_the_first_rows_of_one_permutation(request, kind, fraction):
    """So the rows of a smaller fraction are among those of a larger one."""
    X, y = request.getfixturevalue("label_data" if kind == "labels" else "class_data")
    rows = np.random.default_rng(3).permutation(len(y))[: int(np.ceil(fraction * len(y)))]
    found = poem.logging_policy(X, y, fraction=fraction, C=0.5, rng=3)
    names = range(4) if kind == "classes" else None  # a few rows alone do not show all classes
    expected = poem.supervised(X[rows], y[rows], C=0.5, labels=names)
    np.testing.assert_array_equal(found.weights, expected.weights)
    assert found.labels == expected.labels
    assert found.training["n_train"] == len(rows)


def test_a_seed_and_a_generator_of_it_give_the_same_logging_policy(label_data):
    found = [poem.logging_policy(*label_data, rng=rng).weights for rng in (3, np.random.default_rng(3), 4)]
    np.testing.assert_array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])


@pytest.mark.parametrize("temperature", [0.5, 8.0])
def test_the_temperature_multiplies_the_weights(label_data, temperature):
    plain = poem.logging_policy(*label_data, rng=0)
    found = poem.logging_policy(*label_data, temperature=temperature, rng=0)
    np.testing.assert_array_equal(found.weights, plain.at_temperature(temperature).weights)
    np.testing.assert_array_equal(found.weights, plain.weights * temperature)
    assert found.training["temperature"] == temperature


@pytest.mark.parametrize("fraction", [0.0, -0.1, 1.01, np.nan])
def test_a_share_that_is_none_is_refused(label_data, fraction):
    with pytest.raises(InputError, match=f"fraction must be above 0 and at most 1; found {fraction}"):
        poem.logging_policy(*label_data, fraction=fraction, rng=0)


def test_labels_that_were_never_seen_are_never_chosen_or_rarely(label_data):
    X, y = label_data
    y = y.copy()
    y[:, 1], y[:, 2] = 0, 1
    never, rate = (
        poem.logging_policy(X, y, fraction=0.5, unseen=unseen, rng=0).marginals(X) for unseen in ("never", "rate")
    )
    assert np.all(never[:, 1] < 1e-300)
    assert np.all(never[:, 2] == 1.0)
    np.testing.assert_allclose(rate[:, 1], 0.5 / 61)
    np.testing.assert_allclose(rate[:, 2], 1 - 0.5 / 61)
    np.testing.assert_array_equal(never[:, [0, 3]], rate[:, [0, 3]])


@pytest.mark.parametrize("seen", [[0], [1, 3], [0, 1, 3]], ids=str)
def test_classes_that_were_never_seen_are_never_chosen_or_rarely(class_data, seen):
    X, y = class_data
    few, unseen = np.isin(y, seen), np.setdiff1d(range(5), seen)
    never, rate = (
        poem.logging_policy(X[few], y[few], fraction=1.0, labels=range(5), unseen=name, rng=0).marginals(X)
        for name in ("never", "rate")
    )
    assert np.all(never[:, unseen] < 1e-300)
    assert np.all(rate[:, unseen] > 0.0)
    assert np.all(rate[:, unseen] < 0.05)
    np.testing.assert_allclose(never[:, seen].sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("make", [poem.supervised, lambda X, y, **rest: poem.logging_policy(X, y, rng=0, **rest)])
def test_any_other_way_with_the_unseen_is_refused(label_data, make):
    with pytest.raises(InputError, match="unseen must be 'rate' or 'never'; found 'sometimes'"):
        make(*label_data, unseen="sometimes")


# ---- tests and summaries --------------------------------------------------------------------------


@pytest.mark.parametrize("runs", [2, 3, 10])
@pytest.mark.parametrize("shift", [-1.0, 0.0, 0.3, 2.0])
def test_the_paired_test_is_that_of_scipy(runs, shift):
    rng = np.random.default_rng(runs)
    first, second = rng.normal(shift, size=runs), rng.normal(size=runs)
    expected = stats.ttest_rel(first, second, alternative="greater")
    found = paired_test(first, second)
    assert found.t == pytest.approx(expected.statistic, rel=1e-10)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-10)
    assert found.difference == pytest.approx(np.mean(first - second), rel=1e-12)
    assert found.significant == (expected.pvalue < 0.05)


@pytest.mark.parametrize(
    ("difference", "t", "p", "significant"),
    [(0.5, np.inf, 0.0, True), (-0.5, -np.inf, 1.0, False), (0.0, 0.0, 1.0, False)],
)
def test_a_difference_without_any_spread_is_as_sure_as_can_be(difference, t, p, significant):
    second = np.array([1.0, 2.0, 4.0])
    found = paired_test(second + difference, second)
    assert (found.difference, found.t, found.p, found.significant) == (difference, t, p, significant)


@pytest.mark.parametrize("runs", [0, 1])
def test_one_run_is_not_tested(runs):
    assert paired_test(np.ones(runs), np.zeros(runs)) is None


def test_results_are_given_in_the_order_of_the_seeds_that_were_asked_for():
    results = Results([made_up(loss=float(seed), seed=seed) for seed in (4, 2, 3, 9)], range(2, 5))
    assert results.values("yeast", LOGGING, "h0").tolist() == [2.0, 3.0, 4.0]
    assert results.values("yeast", LOGGING, "h0", "map_loss").tolist() == [1.0, 1.5, 2.0]
    assert len(results.values("yeast", replace(LOGGING, replay=8), "h0")) == 0
    assert len(results.values("scene", LOGGING, "h0")) == 0


def test_of_several_fits_the_chosen_one_counts():
    fits = candidates("POEM(B)", MULTIPLIERS)
    results = Results([replace(fit, expected_loss=float(i)) for i, fit in enumerate(fits)], [0])
    assert results.values("yeast", LOGGING, "POEM(B)").tolist() == [1.0]
    assert [len(fits) for fits in results.fits("yeast", LOGGING, "POEM(B)")] == [7]


@pytest.mark.parametrize(("values", "text"), [([], ""), ([1.0], "1.000"), ([1.0, 3.0], "2.000 ± 1.414")])
def test_a_cell_is_the_mean_and_the_deviation(values, text):
    assert spread(np.array(values)) == text


# ---- the record -----------------------------------------------------------------------------------

AWKWARD = [
    made_up(loss=0.1 + 0.2, validation=1e-300, cpu_seconds=1.0 + 2.0**-52, lam=1 / 3, steps=7),
    made_up(
        "CRF", logging=None, c=0.01, chosen=False, validation=np.inf, problems="ignores x; avoids “the log”, often"
    ),
    made_up("IPS(S)", data="a subset, of topics", seed=3, lam=0.0),
]


def recorded(path, results):
    """A record of some results, read again from its file."""
    Record(path).add(results)
    return Record(path)


def run_of(*methods, logging=LOGGING, seed=0):
    return Run("yeast", logging, seed, methods)


def test_results_come_back_as_they_were(tmp_path):
    path = tmp_path / "runs.csv"
    assert list(recorded(path, AWKWARD)) == AWKWARD
    assert path.read_text(encoding="utf-8").splitlines()[0] == ",".join(COLUMNS)
    assert [result.logging for result in Record(path)] == [LOGGING, None, LOGGING]


def test_numbers_of_numpy_come_back_as_well(tmp_path):
    """They are floats too, and one that slips in must not make the file unreadable."""
    result = made_up(loss=np.float64(0.1), validation=np.float64(1 / 3))
    assert list(recorded(tmp_path / "runs.csv", [result])) == [result]


def test_results_are_appended_below_one_heading(tmp_path):
    path = tmp_path / "runs.csv"
    record = recorded(path, AWKWARD[:1])
    before = path.read_bytes()
    record.add(AWKWARD[1:])
    assert path.read_bytes().startswith(before)
    assert len(path.read_bytes().splitlines()) == 1 + len(AWKWARD)
    assert list(record) == list(Record(path)) == AWKWARD


@pytest.mark.parametrize("cut", [1, 2, 25])  # just its newline, a digit as well, half of the line
def test_a_line_that_was_cut_off_is_dropped_and_run_again(tmp_path, tiny, cut):
    path = tmp_path / "runs.csv"
    Record(path).add([made_up("h0"), made_up("IPS(B)")])
    whole = path.read_bytes()
    os.truncate(path, len(whole) - cut)
    record = Record(path)
    assert list(record) == [made_up("h0")]
    assert record.missing(run_of("h0", "IPS(B)"), RELEASE, tiny) == run_of("IPS(B)")
    record.add([made_up("IPS(B)")])
    assert path.read_bytes() == whole
    assert Record(path).missing(run_of("h0", "IPS(B)"), RELEASE, tiny) is None


@pytest.mark.parametrize("content", [b"", b"protocol,data"], ids=["empty", "half a heading"])
def test_a_file_without_a_whole_line_is_begun_again(tmp_path, content):
    path = tmp_path / "runs.csv"
    path.write_bytes(content)
    assert list(Record(path)) == []
    assert list(recorded(path, AWKWARD)) == AWKWARD


@pytest.mark.parametrize("end", [b"", b"\n"], ids=["no newline", "newline"])
def test_a_file_of_other_columns_is_refused_and_left_as_it_is(tmp_path, end):
    path = tmp_path / "runs.csv"
    path.write_bytes(b"name,loss\nmine,1" + end)
    with pytest.raises(DatasetError, match=r"runs.csv' has other columns than this poem writes.*--out"):
        Record(path)
    assert path.read_bytes() == b"name,loss\nmine,1" + end


def test_a_file_of_one_line_that_is_not_ours_is_not_deleted(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_bytes(b"my notes")
    with pytest.raises(DatasetError):
        Record(path)
    assert path.read_bytes() == b"my notes"


def changed_cell(line, column, value):
    cells = next(csv.reader([line]))
    cells[COLUMNS.index(column)] = value
    return ",".join(cells)


@pytest.mark.parametrize(
    "broken",
    [
        lambda line: "",
        lambda line: line + ",more",
        lambda line: line.rsplit(",", 1)[0],
        lambda line: changed_cell(line, "chosen", "yes"),
        lambda line: changed_cell(line, "seed", ""),
        lambda line: changed_cell(line, "seed", "1.5"),
        lambda line: changed_cell(line, "expected_loss", "five"),
        lambda line: changed_cell(line, "expected_loss", ""),
        lambda line: changed_cell(line, "lam", "many"),
    ],
    ids=["blank", "a cell more", "a cell less", "flag", "no seed", "half a seed", "word", "no loss", "word for λ"],
)
def test_a_broken_line_is_named(tmp_path, broken):
    path = tmp_path / "runs.csv"
    Record(path).add([made_up("h0"), made_up("IPS(B)"), made_up("IPS(S)")])
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[2] = broken(lines[2])
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(DatasetError, match=r"line 3 of '.*runs.csv' is broken: .+\. Delete the line"):
        Record(path)


def test_a_file_that_is_not_text_is_refused(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_bytes(",".join(COLUMNS).encode() + b"\n\xff\xfe\n")
    with pytest.raises(DatasetError):
        Record(path)


@pytest.mark.parametrize(
    "change",
    [{"poem": "0.0.1"}, {"protocol": "paper"}, {"data": "another form"}, {"seed": 1}, {"replay": 8}, {"fraction": 0.1}],
    ids=lambda change: next(iter(change)),
)
def test_a_result_of_anything_else_does_not_count_as_done(tmp_path, tiny, change):
    record = recorded(tmp_path / "runs.csv", [replace(made_up("h0"), **change)])
    assert record.missing(run_of("h0"), RELEASE, tiny) == run_of("h0")
    record.add([made_up("h0")])
    assert record.missing(run_of("h0"), RELEASE, tiny) is None


@pytest.mark.parametrize(
    ("method", "values", "logging"), [("POEM(S)", MULTIPLIERS, LOGGING), ("CRF", SKYLINE_C, None)], ids=["POEM", "CRF"]
)
def test_a_method_that_chooses_is_done_when_all_its_fits_are_there(tmp_path, tiny, method, values, logging):
    fits, run = candidates(method, values, logging=logging), run_of(method, logging=logging)
    record = recorded(tmp_path / "runs.csv", fits[:-1])
    assert record.missing(run, RELEASE, tiny) == run
    record.add(fits)  # run again as a whole: those that were there must not count twice
    assert record.missing(run, RELEASE, tiny) is None
    assert list(Record(record.path)) == fits


# ---- what is to be run ----------------------------------------------------------------------------


@every_protocol
def test_tables_and_a_figure_share_what_they_have_in_common(protocol):
    runs = runs_for(["table2", "table4", "figure2"], "yeast", protocol, range(2))
    assert max(Counter((run.dataset, run.logging, run.seed) for run in runs).values()) == 1
    methods = {(run.logging, run.seed): run.methods for run in runs}
    assert methods[table_logging(protocol), 1] == FROM_LOG
    assert methods[None, 1] == FROM_LABELS
    others = {logging.fraction: names for (logging, seed), names in methods.items() if logging and seed == 0}
    assert others.pop(0.05) == FROM_LOG
    assert others == dict.fromkeys((0.01, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0), ("h0", "POEM(S)"))
    assert len(runs) == 2 * 9


def test_repetitions_come_one_after_the_other():
    runs = runs_for(["table2", "figure1"], "yeast", PAPER, range(5, 8))
    assert [run.seed for run in runs] == sorted(run.seed for run in runs)
    assert {run.seed for run in runs} == {5, 6, 7}


def test_the_skyline_of_figure_1_is_that_of_table_2():
    assert [run for run in runs_for(["figure1"], "yeast", PAPER, [0]) if run.logging is None] == [
        run_of("CRF", logging=None)
    ]
    together = runs_for(["figure1", "table2"], "yeast", PAPER, [0])
    assert [run.methods for run in together if run.logging is None] == [FROM_LABELS]


@pytest.mark.parametrize(
    ("item", "sets"),
    [
        ("table1", set()),
        ("table2", {"scene", "yeast", "tmc", "lyrl"}),
        ("table3", {"scene", "yeast", "tmc", "lyrl"}),
        ("table4", {"scene", "yeast", "tmc", "lyrl"}),
        ("figure1", {"yeast"}),
        ("figure2", {"yeast"}),
        ("figure3", {"lyrl"}),
    ],
)
def test_all_sets_are_those_of_the_paper(item, sets):
    assert {run.dataset for run in runs_for([item], "all", PAPER, [0])} == sets
    assert {run.dataset for run in runs_for([item], "scene", PAPER, [0])} == (sets and {"scene"})


@pytest.mark.parametrize(("protocol", "C", "replay"), [(PAPER, 1.0, 4), (RELEASE, 10.0, 8)], ids=PROTOCOLS)
def test_the_figures_have_their_own_logging(protocol, C, replay):
    first, third = (SWEEPS[name].loggings(protocol) for name in ("figure1", "figure3"))
    assert first == [Logging(C, 0.05, 1.0, 2**power) for power in range(9)]
    assert third == [Logging(protocol.logger_C, 0.05, 2.0**power, replay) for power in range(-1, 6)]


@pytest.mark.parametrize("name", SWEEPS)
def test_the_paper_has_a_point_for_each_of_ours(name):
    for points in paper.CURVES[name].values():
        assert set(points) == set(SWEEPS[name].values)


# ---- tables and figures of made-up results --------------------------------------------------------


def test_a_table_mixes_nothing_else_in(tmp_path, tiny):
    mine = [made_up(loss=loss, seed=seed) for seed, loss in enumerate((1.0, 3.0))]
    changes = [{"protocol": "paper"}, {"poem": "0.0.1"}, {"data": "another form"}, {"seed": 2}, {"replay": 8}]
    others = [replace(made_up(loss=100.0), **change) for change in changes]
    record = recorded(tmp_path / "runs.csv", others + mine)
    sections, pictures = sections_of(["table2"], "yeast", RELEASE, record, {"yeast": tiny}, range(2))
    text = to_markdown(sections)
    assert "| h0 | 5.547 | 2.000 ± 1.414 |" in text
    assert "100" not in text
    assert pictures == {}


def test_a_table_tests_the_chosen_fits_and_names_the_degenerate(tmp_path, tiny):
    results = []
    for seed, loss in enumerate((4.0, 4.1, 4.3)):
        results.append(made_up("IPS(B)", loss + 0.5, seed))
        fits = candidates("POEM(B)", MULTIPLIERS, loss=loss, seed=seed)
        results += [replace(fit, expected_loss=loss + 1.0, problems="ignores x") for fit in fits[:1]] + fits[1:]
        results[-6] = replace(results[-6], problems="avoids the log; ignores x" if seed else "")
    record = recorded(tmp_path / "runs.csv", results)
    text = to_markdown(sections_of(["table2"], "yeast", RELEASE, record, {"yeast": tiny}, range(3))[0])
    (tested,) = re.findall(r"\| Yeast: IPS\(B\) − POEM\(B\) \| (\S+) \|.*\| (\w+) \|\n", text)
    assert tested == ("+0.500", "yes")
    assert "| Yeast: POEM(B) | 5.133 | 4.133 | 4.133 | 4.133 | 4.133 | 4.133 | 4.133 | 4.133 | 4.133 |" in text
    assert "| POEM(B) | 2 × avoids the log, 2 × ignores x |" in text
    assert "| IPS(B) | none |" in text


def figure_2(dataset, worse_at=(0.35,)):
    """Figure 2 of two made-up runs, in which POEM is worse than h0 at some fractions."""
    results = []
    for logging in SWEEPS["figure2"].loggings(RELEASE):
        poem_loss = 6.0 if logging.fraction in worse_at else 4.0
        for seed in range(2):
            results.append(made_up("h0", 5.0 + seed, seed, logging, dataset=dataset))
            results.append(made_up("POEM(S)", poem_loss + seed, seed, logging, dataset=dataset))
    curves = curves_of(SWEEPS["figure2"], dataset, RELEASE, Results(results, range(2)))
    return section_of(SWEEPS["figure2"], dataset, curves, "made up", "stem")


def test_a_figure_shows_our_points_beside_those_of_the_paper():
    section, files = figure_2("yeast")
    text = to_markdown([section])
    assert "at or below h0's at 7 of 8 values of f" in text
    assert "| 0.05 | 5.520 | 5.500 ± 0.707 | 4.639 | 4.500 ± 0.707 |" in text
    assert "| 0.35 | 4.605 | 5.500 ± 0.707 | 4.016 | 6.500 ± 0.707 |" in text
    assert set(files) == {"stem.svg", "stem.png"}
    assert files["stem.svg"].startswith(b"<?xml")
    assert min(imread(BytesIO(files["stem.png"])).shape[:2]) > 300


def test_points_of_the_paper_are_not_shown_for_other_data():
    text = to_markdown([figure_2("scene", worse_at=())[0]])
    assert "| 0.05 | 5.500 ± 0.707 | 4.500 ± 0.707 |" in text
    assert "poem" in text
    assert ", paper" not in text
    assert "at or below h0's at 8 of 8 values of f" in text


def test_the_same_results_are_the_same_picture():
    assert figure_2("yeast")[1] == figure_2("yeast")[1]
    assert figure_2("yeast")[1] != figure_2("yeast", worse_at=())[1]


# ---- the document ---------------------------------------------------------------------------------

NASTY = '<b>&amp; "x" $title ${body}'
CELLS = Grid(("", "loss <b>", "p & q"), [("h0", "1.0 ± 0.1", NASTY), ("POEM(S)", "0.5", "")])
DOCUMENT = [Section(NASTY, [Text(NASTY), CELLS]), Section("Second", [Picture("a.png", b"<svg/>", NASTY)])]


class Page(HTMLParser):
    """Checks that every element is closed where it should be, and keeps what the page shows."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.shown, self.links, self.alts = [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.seen.append(tag)
        self.links += [value for name, value in attributes if name in ("src", "href", "srcset", "data", "action")]
        self.alts += [value for name, value in attributes if name == "alt"]
        if tag not in ("meta", "img"):  # these are never closed
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.shown.append(data)


def test_the_page_is_whole_and_shows_every_text_as_it_is():
    page = Page(to_html(NASTY, DOCUMENT))
    shown = Counter(page.shown)
    assert shown[NASTY] == 5  # title, h1, h2, paragraph, cell
    for cell in ("loss <b>", "p & q", "h0", "1.0 ± 0.1", "POEM(S)", "0.5", "Second"):
        assert shown[cell] == 1
    assert page.alts == [NASTY]
    assert "b" not in page.seen
    assert page.seen.count("tr") == 3
    assert page.seen.count("td") == 4


def test_the_page_needs_nothing_else():
    text = to_html("title", DOCUMENT)
    page = Page(text)
    assert page.links == ["data:image/svg+xml;base64,PHN2Zy8+"]
    assert "script" not in page.seen
    assert "link" not in page.seen
    assert "http" not in text
    assert "url(" not in text
    assert "@import" not in text


def table_lines(markdown):
    """The lines of each table of a text."""
    return [table.splitlines() for table in re.findall(r"(?:^\|.*\n)+", markdown, re.MULTILINE)]


def test_a_markdown_table_has_the_same_columns_in_every_line():
    ((head, rule, *rows),) = table_lines(to_markdown(DOCUMENT))
    assert head == "|  | loss <b> | p & q |"
    assert rule == "| --- | ---: | ---: |"
    assert rows == [f"| h0 | 1.0 ± 0.1 | {NASTY} |", "| POEM(S) | 0.5 |  |"]


def test_markdown_blocks_are_apart():
    text = to_markdown(DOCUMENT)
    assert text.startswith(f"## {NASTY}\n\n{NASTY}\n\n|")
    assert f"|\n\n## Second\n\n![{NASTY}](a.png)\n" in text


# ---- Yeast, from the labels to the files ----------------------------------------------------------


def yeast(out, items=TABLES, **changes):
    options = {"dataset": "yeast", "runs": 1, "protocol": "release", "jobs": 1, "data": SHARED, "out": out}
    return reproduce(items, **(options | changes))


def state_of(path):
    return path.read_bytes(), path.stat().st_mtime_ns


@pytest.fixture(scope="module")
def run_of_yeast(tmp_path_factory):
    """All tables of one run on Yeast under the release protocol."""
    out = tmp_path_factory.mktemp("yeast") / "new" / "results"
    return SimpleNamespace(out=out, made=yeast(out), results=list(Record(out / "runs.csv")))


def value(run, method, measure="expected_loss"):
    (found,) = [getattr(result, measure) for result in run.results if result.method == method and result.chosen]
    return found


@needs_data
def test_losses_on_yeast_are_near_those_of_the_paper(run_of_yeast):
    assert 5.0 < value(run_of_yeast, "h0") < 5.9
    assert 2.7 < value(run_of_yeast, "CRF", "map_loss") < 2.95
    assert value(run_of_yeast, "no label") == pytest.approx(4.252, abs=0.001)
    assert value(run_of_yeast, "uniform") == 7.0
    for method in FROM_LOG[1:]:
        assert 2.822 < value(run_of_yeast, method) < value(run_of_yeast, "h0")


@needs_data
def test_choosing_no_label_costs_the_labels_of_a_row(run_of_yeast):
    assert value(run_of_yeast, "no label") == data_named("yeast", str(SHARED)).y_test.sum(axis=1).mean()


@needs_data
def test_every_fit_is_recorded_with_what_it_was_chosen_by(run_of_yeast):
    counts = Counter(result.method for result in run_of_yeast.results)
    assert counts == dict.fromkeys(FROM_LABELS + FROM_LOG, 1) | {"CRF": 5, "POEM(B)": 7, "POEM(S)": 7}
    for method, values in (("CRF", SKYLINE_C), ("POEM(B)", MULTIPLIERS), ("POEM(S)", MULTIPLIERS)):
        fits = [result for result in run_of_yeast.results if result.method == method]
        assert tuple(fit.c for fit in fits) == values
        assert [fit.chosen for fit in fits] == [fit.validation == min(f.validation for f in fits) for fit in fits]
        assert all(fit.cpu_seconds > 0.0 for fit in fits)


@needs_data
def test_the_files_are_there_and_say_the_same(run_of_yeast):
    stem = "release-table1-table2-table3-table4-yeast"
    names = ["runs.csv", f"{stem}.md", f"{stem}.html"]
    assert [file.name for file in run_of_yeast.made.files] == names
    assert sorted(file.name for file in run_of_yeast.out.iterdir()) == sorted(names)
    text = (run_of_yeast.out / f"{stem}.md").read_text(encoding="utf-8")
    assert text.startswith("# ")
    assert text.endswith(run_of_yeast.made.markdown)
    shown = Page((run_of_yeast.out / f"{stem}.html").read_text(encoding="utf-8")).shown
    tables = table_lines(text)
    assert len(tables) == 8
    for head, _rule, *rows in tables:
        for line in [head, *rows]:
            cells = line.strip("| ").split(" | ")
            assert line.count("|") == head.count("|")
            assert set(cells) - {""} <= set(shown)


@needs_data
@pytest.mark.parametrize("number", range(1, 5))
def test_every_table_names_the_data(run_of_yeast, number):
    section = run_of_yeast.made.markdown.split(f"## Table {number}")[1].split("## ")[0]
    assert "LibSVM" in section


@needs_data
def test_the_same_call_again_runs_nothing(run_of_yeast):
    before = state_of(run_of_yeast.out / "runs.csv")
    begin = time.perf_counter()
    again = yeast(run_of_yeast.out)
    assert time.perf_counter() - begin < 2.0
    assert state_of(run_of_yeast.out / "runs.csv") == before
    assert again == run_of_yeast.made


@needs_data
def test_an_interrupted_run_goes_on_where_it_stopped(run_of_yeast, tmp_path):
    """The fits of one method are missing or cut off: they alone are added."""
    lines = (run_of_yeast.out / "runs.csv").read_bytes().splitlines(keepends=True)
    last = [position for position, line in enumerate(lines) if b",POEM(S)," in line]
    kept = b"".join(lines[: last[3]])
    path = tmp_path / "runs.csv"
    path.write_bytes(kept + lines[last[3]][:40])
    made = yeast(tmp_path)
    assert path.read_bytes().startswith(kept)
    added = path.read_bytes()[len(kept) :].splitlines()
    assert len(added) == 7
    assert all(b",POEM(S)," in line for line in added)
    assert timeless(Record(path)) == timeless(run_of_yeast.results)
    assert made.markdown.split("## Table 3")[0] == run_of_yeast.made.markdown.split("## Table 3")[0]


@needs_data
def test_results_depend_neither_on_the_jobs_nor_on_what_else_is_run(run_of_yeast, tmp_path):
    runs = [run_of("h0", "IPS(S)", seed=seed) for seed in range(2)]
    record = Record(tmp_path / "runs.csv")
    run_all(runs, RELEASE, str(SHARED), record, jobs=2, progress=False)
    among_others = [result for result in run_of_yeast.results if result.method in ("h0", "IPS(S)")]
    alone = perform(runs[1], RELEASE, str(SHARED))
    assert timeless(record) == timeless(among_others + alone)
    assert list(Record(record.path)) == list(record)


@needs_data
def test_the_sizes_of_the_data_need_no_run(tmp_path):
    made = yeast(tmp_path, ["table1"], runs=3)
    assert "| Yeast | 103 | 14 | 1500 | 917 | 4.23 / 4.25 |" in made.markdown
    assert sorted(file.name for file in tmp_path.iterdir()) == ["release-table1-yeast.html", "release-table1-yeast.md"]


# ---- Ctrl-C ---------------------------------------------------------------------------------------


def living(group):
    """The processes of a group that have not ended (one that has ended may wait for init to notice)."""
    listed = subprocess.run(["ps", "-ewwo", "pgid=,stat=,args="], capture_output=True, text=True, check=True).stdout
    fields = [line.split(None, 2) for line in listed.splitlines()]
    return [line for line in fields if line[0] == str(group) and not line[1].startswith("Z")]


def wait_for(condition, process):
    deadline = time.monotonic() + 60.0
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def reproducing(tmp_path):
    """``poem reproduce`` on three runs with two workers, in a process group of its own, as a terminal has it."""
    out = tmp_path / "results"
    options = ["--dataset", "yeast", "--runs", "3", "--protocol", "release", "--jobs", "2"]
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, "reproduce", "table2", *options, "--data", str(SHARED), "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    )
    with process:
        yield SimpleNamespace(process=process, out=out)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def interrupt(process):
    """Press Ctrl-C: the signal goes to the workers as well, and they may be faster."""
    process.send_signal(signal.SIGSTOP)
    os.killpg(process.pid, signal.SIGINT)
    time.sleep(0.3)
    process.send_signal(signal.SIGCONT)
    out, err = process.communicate(timeout=30)
    deadline = time.monotonic() + 5.0
    while living(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return out, err


needs_ps = pytest.mark.skipif(shutil.which("ps") is None, reason="ps is not on this machine")


@needs_data
@needs_ps
def test_ctrl_c_keeps_what_is_done_and_leaves_no_process(reproducing):
    path = reproducing.out / "runs.csv"
    wait_for(lambda: path.exists() and path.read_bytes().count(b"\n") > 1, reproducing.process)
    out, err = interrupt(reproducing.process)
    assert reproducing.process.returncode == 130
    assert out == ""
    assert "poem: interrupted" in err
    assert "Traceback" not in err
    assert living(reproducing.process.pid) == []
    assert path.read_bytes().endswith(b"\n")
    assert [file.name for file in reproducing.out.iterdir()] == ["runs.csv"]
    methods = Counter(result.method for result in Record(path))
    assert methods in ({"no label": 1, "uniform": 1, "CRF": 5}, {"no label": 2, "uniform": 2, "CRF": 10})


@needs_data
@needs_ps
def test_ctrl_c_while_the_workers_start_is_no_less_calm(reproducing):
    group = reproducing.process.pid
    wait_for(lambda: sum("spawn_main" in line[2] for line in living(group)) >= 2, reproducing.process)
    time.sleep(0.3)  # now they import poem
    out, err = interrupt(reproducing.process)
    assert reproducing.process.returncode == 130
    assert out == ""
    assert living(reproducing.process.pid) == []
    assert [file.name for file in reproducing.out.iterdir()] == ["runs.csv"]
    assert list(Record(reproducing.out / "runs.csv")) == []  # its first line, to see that it can be written
    said = [line for line in err.splitlines() if line and not line.startswith("reproduce: 0/")]  # but progress
    assert said == ["poem: interrupted; nothing was left half-written"]


# ---- the command line -----------------------------------------------------------------------------


def test_help_names_every_item_set_and_protocol(capsys):
    assert exit_code("reproduce", "--help") == 0
    out, err = capsys.readouterr()
    assert out.startswith("usage: poem reproduce")
    assert "Example:" in out
    assert err == ""
    for word in (*ITEMS, "all", *CATALOG, *PROTOCOLS, "--runs", "--jobs", "--data", "--out", "--seed", "--quiet"):
        assert re.search(rf"(?<![\w-]){word}\b", out), word


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["table9"], f"poem: there is no 'table9'; choose from {', '.join(ITEMS)}, all."),
        (["table2", "figure4"], f"poem: there is no 'figure4'; choose from {', '.join(ITEMS)}, all."),
        (["--runs", "0"], "poem: runs must be at least 1 and seed at least 0; found runs=0, seed=0."),
        (["--seed", "-1"], "poem: runs must be at least 1 and seed at least 0; found runs=10, seed=-1."),
        (["--jobs", "0"], "poem: jobs must not be 0. Pass 1 for one process or -1 for one for each core."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_arguments_are_reported_in_one_line_and_leave_nothing(tmp_path, capsys, arguments, message):
    out = tmp_path / "results"
    assert exit_code("reproduce", *arguments, "--dataset", "yeast", "--out", str(out)) == 2
    assert capsys.readouterr() == ("", message + "\n")
    assert not out.exists()


@pytest.mark.parametrize("arguments", [["--dataset", "mnist"], ["--protocol", "mine"], ["--runs", "ten"]], ids=" ".join)
def test_wrong_usage_shows_the_choices(tmp_path, capsys, arguments):
    out = tmp_path / "results"
    assert exit_code("reproduce", "table1", *arguments, "--out", str(out)) == 2
    assert "usage: poem reproduce" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"items": []}, "there is no 'item'; choose from table1"),
        ({"dataset": "mnist"}, "dataset must be all or one of scene, yeast, tmc, lyrl; found 'mnist'"),
        ({"protocol": "mine"}, "protocol must be one of paper, release; found 'mine'"),
    ],
    ids=["items", "dataset", "protocol"],
)
def test_bad_arguments_of_the_function_are_refused(tmp_path, changes, message):
    with pytest.raises(InputError, match=message):
        reproduce(**({"items": ["table1"], "out": tmp_path / "results"} | changes))
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """A machine without data."""
    monkeypatch.delenv("POEM_DATA", raising=False)
    monkeypatch.setenv("POEM_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    (tmp_path / "data").mkdir()
    return tmp_path


@pytest.mark.parametrize("quiet", [["--quiet"], []], ids=["quiet", "talking"])
def test_data_that_are_nowhere_are_reported_and_leave_nothing(nowhere, capsys, quiet):
    arguments = ["--dataset", "lyrl", "--data", str(nowhere / "data"), "--out", str(nowhere / "results")]
    assert exit_code("reproduce", "table1", *arguments, *quiet) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"poem: lyrl was not found in {nowhere / 'data'}, {nowhere / 'cache'}")
    assert "lyrl_rcv1sub_train.svm.bz2" in err
    assert len(err.splitlines()) == 1
    assert not (nowhere / "results").exists()


@needs_data
def test_tables_go_to_stdout_and_the_names_of_files_to_stderr(tmp_path, capsys):
    arguments = ["--dataset", "yeast", "--data", str(SHARED), "--out", str(tmp_path)]
    assert exit_code("reproduce", "table1", *arguments) == 0
    out, err = capsys.readouterr()
    assert out.startswith("## ")
    assert "| Yeast | 103 |" in out
    assert err == f"files: {tmp_path / 'paper-table1-yeast.md'}, {tmp_path / 'paper-table1-yeast.html'}\n"
    assert exit_code("reproduce", "table1", *arguments, "--quiet") == 0
    assert capsys.readouterr() == (out, "")


@needs_data
@pytest.mark.parametrize("content", [b"name,loss\n", ",".join(COLUMNS).encode() + b"\nrelease,yeast\n"])
def test_a_record_that_cannot_be_read_is_reported_in_one_line(tmp_path, capsys, content):
    (tmp_path / "runs.csv").write_bytes(content)
    arguments = ["--dataset", "yeast", "--data", str(SHARED), "--out", str(tmp_path)]
    assert exit_code("reproduce", "table2", *arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("poem: ")
    assert str(tmp_path / "runs.csv") in err
    assert len(err.splitlines()) == 1
    assert (tmp_path / "runs.csv").read_bytes() == content


# ---- progress -------------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch):
    """A clock for progress that goes only when it is told to."""
    now = SimpleNamespace(seconds=1000.0)
    monkeypatch.setattr("poem.progress.time", SimpleNamespace(monotonic=lambda: now.seconds))
    return now


def take_for_a_terminal(monkeypatch):
    """Let stderr say that it is a terminal; pytest has another one in fixtures than in tests."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)


def work(line, clock, parts, seconds):
    for part in range(parts):
        clock.seconds += seconds
        line.part_done(f"(part {part})")


def test_a_file_gets_a_line_now_and_then_and_a_last_one(clock, capsys):
    with Progress("work", 100, True, "runs") as line:
        work(line, clock, 100, 1.0)
    err = capsys.readouterr().err
    assert "\r" not in err
    assert err.splitlines() == [
        "work: 30/100 runs in 30 s, about 70 s left (part 29)",
        "work: 60/100 runs in 60 s, about 40 s left (part 59)",
        "work: 90/100 runs in 90 s, about 10 s left (part 89)",
        "work: 100/100 runs in 2 min",
    ]


def test_short_work_gives_the_last_line_alone(clock, capsys):
    with Progress("work", 3, True) as line:
        work(line, clock, 3, EVERY_LINE / 4)
        line.note("nearly")
    assert capsys.readouterr().err == "work: 3/3 in 22 s\n"


def test_a_terminal_gets_a_bar_and_the_time_left(clock, capsys, monkeypatch):
    take_for_a_terminal(monkeypatch)
    with Progress("work", 4, True, "runs") as line:
        work(line, clock, 1, 50.0)
        assert capsys.readouterr().err == (
            f"\r\x1b[Kwork [{'█' * (BAR // 4)}{'·' * (BAR - BAR // 4)}] 1/4 runs in 50 s, about 2 min left (part 0)"
        )
        work(line, clock, 3, 50.0)
        *_, last = capsys.readouterr().err.split("\r\x1b[K")
        assert last == f"work [{'█' * BAR}] 4/4 runs in 3 min (part 2)"
    assert capsys.readouterr().err == "\r\x1b[Kwork: 4/4 runs in 3 min\n"


def test_a_terminal_is_not_drawn_on_more_than_five_times_a_second(clock, capsys, monkeypatch):
    take_for_a_terminal(monkeypatch)
    with Progress("work", 1000, True) as line:
        for done in range(100):
            clock.seconds += 0.01
            line.reached(done)
        assert capsys.readouterr().err.count("\r") in (4, 5, 6)


def test_work_that_fails_has_no_last_line(clock, capsys):
    def fail():
        with Progress("work", 3, True) as line:
            work(line, clock, 1, 1.0)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("total", [0, 5])
def test_progress_that_is_not_wanted_writes_nothing(clock, capsys, monkeypatch, total):
    take_for_a_terminal(monkeypatch)
    with Progress("work", total, False) as line:
        work(line, clock, total, 100.0)
    assert capsys.readouterr() == ("", "")


def test_a_folder_that_is_none_is_refused_at_once(tmp_path, capsys):
    out = tmp_path / "results"
    assert exit_code("reproduce", "table1", "--data", str(tmp_path / "nowhere"), "--out", str(out)) == 2
    assert "nowhere' is not a folder" in capsys.readouterr().err
    assert not out.exists()


@needs_data
def test_an_output_folder_that_is_a_file_is_refused(tmp_path, capsys):
    out = tmp_path / "results"
    out.write_text("mine")
    assert exit_code("reproduce", "table1", "--dataset", "scene", "--data", str(SHARED), "--out", str(out)) == 2
    assert "is a file" in capsys.readouterr().err
    assert out.read_text() == "mine"
