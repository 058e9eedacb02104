"""Benchmarks: label sets are written, found, read back or refused; worlds of candidates are what they say."""

import bz2

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks import best_policy, candidate_logs, candidate_quality, other_sets, radii


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


def test_radii_of_a_small_set(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(1)
    lines = [
        "x,class",
        *(f"{value:.3f},{'abc'[label]}" for value, label in zip(rng.random(200), rng.integers(0, 3, 200), strict=True)),
    ]
    with bz2.open(tmp_path / "small.csv.bz2", "wt") as file:
        file.write("\n".join(lines))
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
