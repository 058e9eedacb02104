"""Valid logs of unusual types and numbers, each of which once ended a command with a traceback."""

import json
from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from refusals import refuses
from shop_logs import call, refused

import poem
from poem.certificates.logger import fit_steps
from poem.errors import InputError, LogError, MismatchError
from poem.estimators import LogSmoothing, Rows, bca
from poem.evaluation import Clips
from poem.optimizers.line_search import Found, _between
from poem.readers import read_raw
from poem.report.trivial import trivial_policies
from poem.report.verdict import rows_of_test

pytestmark = pytest.mark.filterwarnings("ignore::poem.errors.DegenerateWarning")  # which commands show
TRAIN = ("--learner", "ips", "--no-certificate", "--force", "--jobs", "1", "--quiet")


def write_log(path, seed=0, n=60, **columns):
    rng = np.random.default_rng(seed)
    usual = {"output": rng.choice(["a", "b"], n).tolist(), "loss": rng.random(n), "propensity": np.full(n, 0.5)}
    pq.write_table(
        pa.table({**usual, **{name: make(rng, n) for name, make in columns.items()}}), path, row_group_size=9
    )
    return path


def all_commands(folder, **columns):
    """Run each command on a log with these columns; return their exit statuses."""
    log, later = write_log(folder / "log.parquet", 0, **columns), write_log(folder / "later.parquet", 1, **columns)
    policy = folder / "policy.poem"
    return {
        "inspect": call("inspect", log),
        "train": call("train", log, "-o", policy, *TRAIN),
        "evaluate": call("evaluate", policy, later),
        "bootstrap": call("evaluate", policy, later, "--interval", "bootstrap"),
        "watch": call("watch", later, "--policy", policy, "--loss-bounds=-1,1"),
        "predict": call("predict", policy, later, "-o", folder / "decisions.jsonl"),
        "sample": call("predict", policy, later, "--sample", "-o", folder / "decisions.parquet"),
        "report": call("report", policy, later, "-o", folder / "page.html"),
        "convert": call("convert", log, folder / "converted.parquet"),
        "again": call("inspect", folder / "converted.parquet"),
        "simulate": call("simulate", log, "--label", "output", "-o", folder / "made.parquet", "--fraction", "0.5"),
    }


def answered(statuses):
    return all(status in (0, 1) for status in statuses.values())


# ---- types ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("kind", [pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.int64())])
def test_categories_go_through_all_commands(tmp_path, kind, gaps):
    values = [7, 8, None] if pa.types.is_integer(kind.value_type) else ["x", "y", None]

    def city(rng, n):
        return pa.array([values[place] for place in rng.integers(0, 2 + gaps, n).tolist()], kind)

    assert answered(all_commands(tmp_path, city=city))


def test_a_log_without_contexts_goes_through_all_commands(tmp_path):
    assert answered(all_commands(tmp_path))
    decisions = [json.loads(line) for line in (tmp_path / "decisions.jsonl").read_text().splitlines()]
    assert len(decisions) == 60
    assert set(decisions[0]) == {"output", "probability"}
    assert pq.read_table(tmp_path / "decisions.parquet").column_names == ["output", "propensity"]


def test_decisions_among_candidates_without_contexts(tmp_path):
    rows = [
        {"output": "ab"[i % 2], "loss": float(i % 3), "propensity": 0.5, "candidates": ["a", "b"]} for i in range(40)
    ]
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert call("train", log, "-o", tmp_path / "policy.poem", *TRAIN) == 0
    policy = poem.load_policy(tmp_path / "policy.poem")
    found = poem.decide(policy, pa.table({"candidates": [["a"], ["b", "a"]]}))
    assert found.num_rows == 2
    assert found.column("output").to_pylist()[0] == "a"


def test_certificates_for_a_log_without_contexts():
    """Trees model steps in propensities from 100 rows on; without features there is nothing to split."""
    rng = np.random.default_rng(0)
    often = rng.choice([0.5, 0.6], 400)
    y = (rng.random(400) < often) * 1
    log = poem.BanditLog(np.zeros((400, 0)), y, loss=y * 1.0, propensity=np.where(y == 1, often, 1.0 - often))
    assert poem.fit(log, learners="ips", n_jobs=1).success


def test_logging_policies_of_labelled_data_without_features():
    y = np.array([0, 1, 1, 2] * 5)
    policy = poem.supervised(np.zeros((20, 0)), y)
    np.testing.assert_allclose(policy.marginals(np.zeros((1, 0)))[0], [0.25, 0.5, 0.25], atol=1e-3)
    sets = poem.supervised(np.zeros((20, 0)), (y[:, None] == np.arange(2)).astype(np.uint8))
    assert sets.weights.shape == (1, 2)


def test_trees_of_propensities_take_what_float32_cannot_hold():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((400, 1)) < 0.5, 1e50, -1e300)
    y = (rng.random(400) < np.where(X[:, 0] > 0, 0.75, 0.25)).astype(int)
    p = np.where((X[:, 0] > 0) == (y == 1), 0.75, 0.25)
    found = fit_steps(poem.BanditLog(X, y, loss=y * 1.0, propensity=p))
    np.testing.assert_allclose(np.exp(found.log_prob(np.array([[1e308], [-1e40]]))), [[0.25, 0.75], [0.75, 0.25]])


def test_categories_in_lists_over_several_row_groups(tmp_path):
    tags = pa.array([["x"], ["y", "x"]] * 10, pa.list_(pa.dictionary(pa.int8(), pa.string())))
    usual = {"output": ["a", "b"] * 10, "loss": [0.0, 1.0] * 10, "propensity": [0.5] * 20}
    pq.write_table(pa.table({"tags": tags, **usual}), tmp_path / "log.parquet", row_group_size=7)
    assert read_raw(tmp_path / "log.parquet").table.column("tags").to_pylist() == [["x"], ["y", "x"]] * 10


@pytest.mark.parametrize("wrap", [pa.list_, pa.large_list, lambda kind: pa.list_(kind, 1)])
def test_sets_of_decimals_and_of_string_views(tmp_path, wrap):
    for kind, labels in [
        (pa.decimal128(5, 1), [Decimal("0.5"), Decimal("1.0")]),
        (pa.decimal256(60, 0), [Decimal(3), Decimal(4)]),
        (pa.string_view(), ["u", "v"]),
    ]:
        output = pa.array([[labels[i % 2]] for i in range(40)], wrap(kind))
        log = poem.read_log(pa.table({"output": output, "loss": [0.0, 1.0] * 20, "propensity": [0.5] * 40}))
        poem.uniform_policy(log).save(tmp_path / "policy.poem")
        assert poem.load_policy(tmp_path / "policy.poem").labels == tuple(labels)


def test_categories_that_are_decimals():
    output = pa.array([Decimal("0.5"), Decimal("1.5")]).dictionary_encode()
    log = poem.read_log(pa.table({"output": output, "loss": [0.0, 1.0], "propensity": [0.5, 0.5]}))
    assert log.labels == (0.5, 1.5)


def test_names_with_nul_characters_stay_apart():
    table = pa.table({"a\0b": [1.0, 2.0], "a\0c": [3.0, 4.0]})
    features = poem.Features.learn(table)
    assert features.columns == ("a\0b", "a\0c")
    np.testing.assert_array_equal(features.transform(table), [[1.0, 3.0], [2.0, 4.0]])


@pytest.mark.parametrize("option", ["--output", "--context", "--ignore", "--one-hot"])
def test_an_option_without_names(tmp_path, capsys, option):
    log = write_log(tmp_path / "log.parquet")
    assert "at least one name is needed" in refused(capsys, "inspect", log, f"{option}= ,")


# ---- labels of policy files -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels",
    [(2**70, 1), (2**64 - 1, -1), (True, 0.5), (2**53 + 1, 0.5), (1, "a"), (True, "a"), (1.5, 2**60 + 1), ("a\0", "a")],
)
@pytest.mark.parametrize("more", [(), ("--sample", "--seed", "1")])
def test_policies_with_labels_of_any_size_and_type(tmp_path, labels, more):
    weights = np.array([[0.0, 0.0], [-9.0, 9.0]])
    poem.Policy(poem.MultiClass(2), weights, True, labels).save(tmp_path / "policy.poem")
    pq.write_table(pa.table({"x": [1.0, 2.0]}), tmp_path / "contexts.parquet")
    out = tmp_path / "decisions.parquet"
    assert call("predict", tmp_path / "policy.poem", tmp_path / "contexts.parquet", "-o", out, *more) == 0
    assert pq.read_table(out).column("output").to_pylist() in ([labels[1]] * 2, [str(labels[1])] * 2)


# ---- numbers ----------------------------------------------------------------------------------------


def edges(*values):
    return lambda rng, n: rng.choice(values, n)


@pytest.mark.parametrize(
    ("loss", "propensity"),
    [
        (edges(0.0, 1.0), edges(1e-300, 0.5)),
        (edges(-1e20, 0.0, 1e20), edges(5e-324, 1e-12, 1.0)),
        (edges(0.0, 1e-300, 1e20), edges(1e-200, 0.5)),
    ],
)
def test_extreme_propensities_and_losses(tmp_path, loss, propensity):
    found = all_commands(tmp_path, x=lambda rng, n: rng.random(n), loss=loss, propensity=propensity)
    found.pop("watch")  # which has bounds
    assert answered(found)


@pytest.mark.parametrize("role", ["loss", "reward"])
def test_losses_beyond_what_can_be_squared_are_refused(tmp_path, capsys, role):
    with refuses(LogError, f"{role} must be at most 1e+20", "row 1 has -1e+300 (1 such row)", "divide every"):
        poem.BanditLog(np.zeros((2, 1)), [0, 1], propensity=[0.5, 0.5], **{role: [0.0, -1e300]})
    with refuses(InputError, "loss_bounds must be at most 1e+20"):
        poem.evaluate(*_policy_and_log(), loss_bounds=(0.0, 1e21))
    log = write_log(tmp_path / "log.parquet", loss=edges(0.0, 1.0, 1e300))
    assert "loss must be at most 1e+20" in refused(capsys, "convert", log, tmp_path / "out.parquet")
    assert call("inspect", log) == 1
    assert "have a loss beyond 1e+20" in capsys.readouterr().out


@pytest.mark.parametrize("role", ["loss", "reward"])
def test_losses_that_differ_by_next_to_nothing_are_refused(tmp_path, capsys, role):
    """Squares of such differences are 0, so that any gain would look certain."""
    log = poem.BanditLog(np.zeros((40, 1)), [0, 1] * 20, propensity=[0.5] * 40, **{role: [0.0, 1e-300] * 20})
    for refused_by in (lambda: poem.evaluate(poem.uniform_policy(log), log), lambda: poem.fit(log, learners="ips")):
        with refuses(InputError, "differ by 1e-300 at the most", f"Multiply every {role}"):
            refused_by()
    path = write_log(tmp_path / "log.parquet", loss=edges(0.0, 5e-324), propensity=edges(5e-324, 0.5))
    assert call("inspect", path) == 1
    assert "60 rows have a loss that differs from the others by less than 1e-100" in capsys.readouterr().out


def test_the_size_of_a_test_of_tiny_gains():
    logged = SimpleNamespace(stderr=0.1, n=100)
    for gain in (5e-324, 1e-200, 0.0):
        case = SimpleNamespace(evaluation=SimpleNamespace(logged=logged, level=0.95), gain=SimpleNamespace(value=gain))
        assert rows_of_test(case) == np.inf


def _policy_and_log():
    log = poem.BanditLog(np.zeros((4, 1)), [0, 1, 0, 1], loss=[0.0, 1.0, 0.0, 1.0], propensity=[0.5] * 4)
    return poem.uniform_policy(log), log


def test_bootstrap_intervals_do_not_depend_on_the_scale():
    rng = np.random.default_rng(0)
    replicates, left_out = rng.normal(size=500), rng.exponential(size=50)
    low, high = bca(replicates, 0.1, left_out, 0.025)
    np.testing.assert_allclose(bca(replicates * 1e150, 1e149, left_out * 1e150, 0.025), (low * 1e150, high * 1e150))


def test_the_best_single_output_of_tiny_propensities():
    """1/p of the rarest row is beyond float64; each output's mean loss is within what it lost."""
    y, log_p = np.repeat([0, 1], 30), np.tile([-9000.0, -0.7, -0.7], 20)
    log = poem.BanditLog(np.zeros((60, 1)), y, loss=np.where(y == 0, 1e20, 5.0), log_propensity=log_p)
    assert "always 1" in trivial_policies(log)


def test_features_too_large_for_logistic_regressions():
    sets = np.array([[0, 1], [1, 0]] * 5)
    with refuses(LogError, "features of at most 1e+30 in size", "found 1e+50", "Scale"):
        poem.supervised(np.full((10, 1), 1e50), sets)


def test_weights_that_are_cut_are_said_to_be():
    log_p = [-9000.0, -0.7, -300.0, -0.7]
    log = poem.BanditLog(np.zeros((4, 1)), [0, 1, 0, 1], loss=[0.0, 1.0, 0.0, 1.0], log_propensity=log_p)
    found = poem.evaluate(poem.uniform_policy(log), log, ["IPS"]).diagnostics["policy"]
    assert "1 row has a weight above e^300, counted as e^300" in str(found)
    assert found.verdict == "don't"


def test_clips_are_no_larger_than_ratios_can_be():
    clips = Clips.of(poem.BanditLog(np.zeros((2, 1)), [0, 1], loss=[0.0, 1.0], log_propensity=[-9000.0, -0.1]))
    assert clips.auto == clips.most == np.exp(300.0)


def test_logarithmic_smoothing_of_tiny_losses():
    rows = Rows(np.array([300.0, 0.0]), np.array([-1e-320, 0.0]))
    found = LogSmoothing().tuned(rows).terms(rows)
    assert np.isfinite(found.top).all()
    assert found.top[0] < 0.0


@pytest.mark.parametrize("slope", [1e200, np.inf, np.nan])
def test_line_searches_take_slopes_too_large_to_square(slope):
    low, high = Found(0.0, 1.0, np.float64(-1e200), None), Found(1.0, 2.0, np.float64(slope), None)
    assert 0.0 < _between(low, high) < 1.0


@pytest.mark.parametrize("loss", [0.0, 0.5, -7.0, 1e18, -1e20])
def test_losses_that_are_all_the_same_are_judged_at_any_size(loss):
    y = np.array([0, 1, 0, 1, 1, 0])
    log = poem.BanditLog(np.arange(6.0)[:, None], y, loss=np.full(6, loss), propensity=np.full(6, 0.5))
    found = poem.evaluate(poem.uniform_policy(log), log)
    assert {round(line.value / (loss or 1.0), 9) for line in found.lines} == {1.0 if loss else 0.0}


@pytest.mark.parametrize("sparse", [False, True])
def test_scores_that_overflow_are_refused(sparse):
    X = np.array([[1.0, 1e50], [-1e50, 2.0]])
    policy = poem.Policy(poem.MultiClass(2), np.array([[1e200, -1e200], [1e-3, 1.0]]), False, ("a", "b"))
    X = sp.csr_array(X) if sparse else X
    assert policy.predict(X).tolist() == ["a", "b"]
    with refuses(MismatchError, "scores are too large", "1e+300", "Scale the features"):
        policy.at_temperature(1e100).predict(X)


def test_loggers_with_large_numbers_stay_whole(tmp_path):
    """numpy takes a list of small and large ones for floats."""
    numbers = [0, 1, 2**63, 2**64 - 1]
    of_rows = pa.array([numbers[i % 4] for i in range(60)], pa.uint64())
    path = write_log(tmp_path / "log.parquet", logger=lambda rng, n: of_rows)
    found = poem.pack_log(path, tmp_path / "packed").to_log()
    for log in (found, poem.read_log(path), poem.read_log(poem.write_log(found, tmp_path / "again.parquet"))):
        assert np.unique(log.logger).tolist() == numbers
