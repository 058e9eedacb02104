"""Benchmarks: label sets are written, found, read back or refused; worlds of candidates are what they say."""

import bz2

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks import (
    best_policy,
    candidate_logs,
    candidate_quality,
    certificate_limits,
    default_fit,
    other_sets,
    radii,
    tabular,
    tabular_tables,
)


@pytest.fixture
def own_set(tmp_path):
    """Nine rows of which one has no label, and one no feature."""
    rng = np.random.default_rng(0)
    X, y = np.round(rng.normal(size=(9, 4)), 3), rng.integers(0, 2, (9, 3))
    y[2], X[3] = 0, 0.0
    other_sets.write(tmp_path, "mine", sp.csr_array(X), y, np.arange(6), np.arange(6, 9))
    return tmp_path, X, y


def test_a_set_is_read_back_as_it_was_written(own_set):
    folder, X, y = own_set
    found = best_policy.load("mine", folder)
    np.testing.assert_array_equal(np.vstack([found.X_train.toarray(), found.X_test.toarray()]), X)
    np.testing.assert_array_equal(np.vstack([found.y_train, found.y_test]), y)


def test_a_set_is_found_where_the_environment_says(own_set, monkeypatch):
    monkeypatch.setenv("POEM_DATA", str(own_set[0]))
    assert best_policy.load("mine", None).X_train.shape == (6, 4)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--datasets mine,yours", "yours is none of scene, yeast, tmc, lyrl, and there is no file"),
        ("--datasets mine --losses hamming,f2", "--losses: there is no f2; choose from hamming, zero-one, f1"),
        ("--datasets mine --methods Default", "--methods: there is no Default; choose from h0, default, refit"),
        ("--datasets mine --first-run -1", "--first-run must be at least 0"),
        ("--datasets mine --runs 0", "--runs at least 1"),
        ("--datasets mine --out nowhere/runs.csv", "nowhere is not a folder"),
        ("--datasets mine --data nowhere", "nowhere is not a folder"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is(own_set, options, said, monkeypatch, capsys):
    monkeypatch.chdir(own_set[0])
    monkeypatch.setattr("sys.argv", ["best_policy", "--data", ".", *options.split()])
    with pytest.raises(SystemExit) as stopped:
        best_policy.main()
    assert stopped.value.code == 2
    assert said in capsys.readouterr().err
    assert not list(own_set[0].glob("*.csv"))


def test_a_run_is_done_once(own_set, monkeypatch, capsys):
    monkeypatch.chdir(own_set[0])
    words = "--data . --datasets mine --losses zero-one --methods h0,skyline --first-run 3 --runs 2 --out runs.csv"
    monkeypatch.setattr("sys.argv", ["best_policy", *words.split()])
    best_policy.main()
    assert "2/2: mine, zero-one, run 4" in capsys.readouterr().err
    best_policy.main()
    assert capsys.readouterr().err == ""
    assert [(row["run"], row["method"]) for row in best_policy.read(own_set[0] / "runs.csv")] == [
        ("3", "h0"),
        ("4", "h0"),
    ]


def test_raw_files_that_are_missing_are_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["other_sets", "--raw", str(tmp_path), "--out", str(tmp_path / "sets")])
    with pytest.raises(SystemExit) as stopped:
        other_sets.main()
    assert stopped.value.code == 1
    shown = capsys.readouterr().err
    assert "emotions.tab" in shown
    assert "reuters-021.json" in shown


# ---- radii ----------------------------------------------------------------------------------------


def write_classes(folder, x, classes):
    """Write a set of one feature and classes a, b, c."""
    lines = ["x,class", *(f"{value:.3f},{'abc'[label]}" for value, label in zip(x, classes, strict=True))]
    with bz2.open(folder / "small.csv.bz2", "wt") as file:
        file.write("\n".join(lines))


def test_radii_of_a_small_set(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(1)
    write_classes(tmp_path, rng.random(200), rng.integers(0, 3, 200))
    words = f"--data {tmp_path} --seeds 1 --streams 5 --rows 300"
    monkeypatch.setattr("sys.argv", ["radii", *words.split()])
    radii.main()
    out = capsys.readouterr().out.splitlines()
    assert out[1].split()[:2] == ["small", "200"]
    assert all(0.0 < float(value) <= 1.0 for value in out[1].split()[2:])
    assert out[3].endswith("of 5 streams of 300 rows")
    assert "vw-estimators" in out[4]


def test_radii_need_sets(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["radii", "--data", str(tmp_path)])
    with pytest.raises(SystemExit):
        radii.main()
    assert "there is no *.csv.bz2 in" in capsys.readouterr().err


# ---- candidates -----------------------------------------------------------------------------------


def test_articles_are_logged_as_often_as_the_propensities_say():
    log, test, logger = candidate_logs.articles(0, rows=400, tests=50)
    assert not set(np.unique(log.requests.row)) >= set(np.unique(test.row))  # some are new
    np.testing.assert_allclose(np.add.reduceat(logger, test.starts[:-1]), 1.0, rtol=1e-12)
    requests = log.requests.take(np.zeros(20_000, dtype=int))
    probability = requests.softmax(np.arange(len(requests.row)) % requests.starts[1] / 3.0)
    drawn = candidate_logs.draw(requests, probability, np.random.default_rng(1))
    expected = probability[: requests.starts[1]]
    share = np.bincount(drawn.position, minlength=len(expected)) / len(drawn)
    assert np.abs(share - expected).max() < 4.5 * np.sqrt(expected.max() / len(drawn))
    np.testing.assert_array_equal(drawn.propensity, expected[drawn.position])


def test_rows_of_a_log_are_taken_with_their_candidates():
    log, _, _ = candidate_logs.articles(0, rows=60, tests=1)
    few = log.take(np.array([7, 3]))
    first = slice(*log.requests.starts[7:9])
    np.testing.assert_array_equal(few.requests.row[: few.requests.starts[1]], log.requests.row[first])
    np.testing.assert_array_equal(few.requests.row[few.chosen], log.requests.row[log.chosen[[7, 3]]])
    assert (log.log().y == log.requests.row[log.chosen]).all()
    text = "".join(candidate_logs.lines(few.requests, few))
    assert text.count("shared |s x0:") == 2
    assert text.count("|a z") == len(few.requests.row)
    assert f"0:{-few.reward[0]:g}:{few.propensity[0]:.9g} |a z" in text


def test_vowpal_wabbit_is_judged_on_known_rewards():
    log, test, _ = candidate_logs.articles(0, rows=300, tests=100)
    judge = candidate_quality.truth(test)
    rows = list(candidate_quality.vowpal_wabbit(log, test, judge))
    assert len(rows) == 3 * 4 * 2 + 1
    best = judge(candidate_quality.greedy(test, test.value))[0]
    assert all(0.0 < row["reward"] <= best for row in rows)
    assert rows[-1]["held_out"] == max(row["held_out"] for row in rows)


# ---- tabular logs ---------------------------------------------------------------------------------


@pytest.fixture
def bands(tmp_path, monkeypatch):
    """Classes that are bands of one feature, the middle one no half line."""
    x = np.random.default_rng(2).random(300)
    write_classes(tmp_path, x, np.digitize(x, [0.35, 0.65]))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def tabular_words(monkeypatch, words):
    monkeypatch.setattr("sys.argv", ["tabular", *words.split()])
    tabular.main()


def test_tabular_methods_see_the_log_and_are_judged_by_the_truth(bands, monkeypatch, capsys):
    words = "--sets small --replays 2 --first-seed 3 --seeds 1 --out runs.csv"
    tabular_words(monkeypatch, words)
    assert "1/1: small, replay 2, seed 3" in capsys.readouterr().err
    tabular_words(monkeypatch, words)
    again = capsys.readouterr()
    assert again.err == ""
    assert "default: 1 of 1 runs certified, 0 of them above the logging policy." in again.out
    rows = {row["method"]: row for row in tabular.read(bands / "runs.csv")}
    assert list(rows)[:6] == list(tabular.METHODS[:6])
    assert len(rows) == len(tabular.METHODS) + 12
    assert float(rows["boosted-dm"]["map"]) < 0.1 < float(rows["logger"]["map"])
    assert rows["vw"]["map"] == rows[f"vw {rows['vw']['learner']}"]["map"]
    assert float(rows["default"]["expected"]) < float(rows["logger"]["expected"])
    assert float(rows["default"]["z"]) < -2.0
    assert rows["default"]["above_logger"] == "False"


def test_tabular_logs_of_a_seed_are_standardised_by_their_training_rows(bands):
    one, two = (tabular.problem_of("small", bands, 4, seed=5) for _ in range(2))
    np.testing.assert_array_equal(one.log.y, two.log.y)
    assert (one.X_train.shape, len(one.y_test), len(one.log)) == ((200, 1), 100, 800)
    np.testing.assert_allclose([one.X_train.mean(), one.X_train.std()], [0.0, 1.0], atol=1e-12)
    np.testing.assert_array_equal(one.log.loss, one.log.y != one.y_train[one.log.context])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--sets small,large", "--sets: there is no large.csv.bz2 in"),
        ("--sets small --methods best", "--methods: there is no best; choose from logger, default"),
        ("--sets small --seeds 0", "--seeds 1; found 0 and 0"),
    ],
)
def test_tabular_runs_that_cannot_be_are_refused(bands, options, said, monkeypatch, capsys):
    with pytest.raises(SystemExit):
        tabular_words(monkeypatch, options)
    assert said in capsys.readouterr().err
    assert not list(bands.glob("*.csv"))


def test_the_default_is_compared_with_its_best_rival_seed_by_seed():
    def row(seed, method, expected):
        return {"set": "s", "replay": "1", "seed": seed, "method": method, "expected": expected, "map": expected}

    figures = {"default": (0.2, 0.3, 0.5), "vw": (0.1, 0.3, 0.2), "before": (0.5, 0.5, 0.5), "boosted-dm": (0.4, 0.4)}
    rows = [row(seed, method, value) for method, values in figures.items() for seed, value in enumerate(values)]
    assert tabular_tables.compared(rows, tabular_tables.RIVALS, "map") == ("vw", "+0.1333 ± 0.0882", "+1.5")
    assert tabular_tables.compared(rows, ["boosted-dm"], "map")[1] == "-0.1500 ± 0.0500"
    assert tabular_tables.compared(rows, ["refit"], "map") is None


# ---- default fits ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["trees", "linear"])
def test_a_made_log_is_logged_as_its_propensities_say(kind):
    world = default_fit.World(kind, 4, 3, 0)
    log = world.log(4_000)
    logged = world.logger(log.X)
    np.testing.assert_allclose(np.exp(log.log_propensity), logged[np.arange(len(log)), log.y], rtol=1e-12)
    share = np.bincount(log.y, minlength=3) / len(log)
    assert np.abs(share - logged.mean(axis=0)).max() < 4.5 * 0.5 / np.sqrt(len(log))
    assert log.loss.mean() == pytest.approx(world.loss(None).mean(), abs=0.03)


def test_of_few_units_the_default_tries_all_candidates_in_five_folds(monkeypatch, capsys):
    monkeypatch.setattr(default_fit, "TESTED", 500)
    monkeypatch.setattr(
        "sys.argv", ["default_fit", "--rows", "190", "--features", "3", "--classes", "3", "--seeds", "1"]
    )
    default_fit.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["trees", "linear"]
    assert all("difference +0.0000 ± 0.0000" in line for line in lines)


# ---- what no certificate can do ---------------------------------------------------------------------


def test_rows_that_tell_a_policy_from_one_without_gain_are_the_fewest_by_enumeration():
    n, truth = 4000, np.array([1.0, 0.0])
    policy, logger = np.array([0.9, 0.2]), np.array([0.3, 0.6])
    outputs = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    h, p = (np.prod(np.where(outputs > 0.0, one, 1.0 - one), axis=1) for one in (policy, logger))
    harm = h * (2.0 - np.abs(outputs - truth).sum(axis=1))  # per row, if the output had the worst loss
    left, rows = 0.7 + 0.6 - 0.1 - 0.2, 0.0
    for cell in sorted(range(4), key=lambda one: -harm[one] / p[one]):
        share = min(1.0, left / harm[cell]) if harm[cell] > 0.0 else 0.0
        rows += share * p[cell] * n * certificate_limits.REPLAY
        left -= share * harm[cell]
    assert left == pytest.approx(0.0, abs=1e-12)
    every = [np.tile(one, (n, 1)) for one in (policy, logger, truth)]
    assert certificate_limits.gain_of(*every) == pytest.approx(1.0)
    assert certificate_limits.telling_rows(*every, np.random.default_rng(0)) == pytest.approx(rows, rel=0.02)


def test_a_certificate_without_telling_rows_can_only_err():
    assert certificate_limits.limit(0.0, 0.5) == pytest.approx(certificate_limits.ALPHA)
    assert certificate_limits.limit(2.0, 0.5) == pytest.approx(0.05 + 1.0 - np.exp(-1.0))
    assert certificate_limits.limit(100.0, 0.5) == 1.0
