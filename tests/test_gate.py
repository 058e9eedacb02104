"""poem.Gate and poem watch: an answer at any time, right over all looks together."""

import json
from time import perf_counter

import numpy as np
import pandas as pd
import pytest

import poem
from poem.cli import main
from poem.errors import InputError
from poem.estimators.betting import Bets, Capital, log_capital, lower_bound

BOUNDS = (0.0, 1.0)


class Prefers:
    """Chooses the second of two outputs with a given probability."""

    classes_ = (0, 1)

    def __init__(self, chance=0.9):
        self.chance = chance

    def predict_proba(self, X):
        return np.tile([1.0 - self.chance, self.chance], (X.shape[0], 1))


def stream(n, seed, better=0.1, share=0.3, time=None):
    """A log in which the second output earns ``better`` more and is chosen with probability ``share``."""
    rng = np.random.default_rng([seed, 30])
    y = (rng.random(n) < share).astype(int)
    reward = (rng.random(n) < 0.5 + better * y).astype(float)
    propensity = np.where(y, share, 1.0 - share)
    return poem.BanditLog(np.ones((n, 1)), y, reward=reward, propensity=propensity, labels=[0, 1], time=time)


def gate_after(log, sizes=(), **options):
    gate = poem.Gate(Prefers(), **{"loss_bounds": BOUNDS} | options)
    for rows in np.split(np.arange(len(log)), np.cumsum(sizes)):
        gate.update(log.take(rows))
    return gate


# ---- the answer -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("better", "answer"), [(0.3, "ship"), (-0.3, "stop"), (0.0, "keep running")])
def test_the_answer_is_found(better, answer):
    gate = gate_after(stream(3000, 0, better))
    assert gate.answer == answer
    assert gate.lower <= gate.gain <= gate.upper
    assert gate.lower <= 0.6 * better <= gate.upper  # 0.9 − 0.3 of the decisions change
    assert (gate.lower > 0.0, gate.upper < 0.0) == (answer == "ship", answer == "stop")
    assert (gate.decided_at is None) == (answer == "keep running")
    assert answer in repr(gate)


def test_a_margin_asks_for_more():
    log = stream(4000, 1, 0.3)  # a gain of 0.18
    assert gate_after(log, margin=0.1).answer == "ship"
    assert gate_after(log, margin=0.3).answer == "stop"
    found = [gate_after(log, margin=margin).decided_at for margin in (-0.2, 0.0, 0.1)]
    assert found == sorted(found)


def test_the_scale_of_the_loss_does_not_matter():
    log = stream(2000, 2, 0.3)
    once = gate_after(log)
    other = gate_after(log.replaced(loss=50.0 * log.loss + 7.0), loss_bounds=(-7.0, 43.0))
    assert other.decided_at == once.decided_at
    for name in ("gain", "lower", "upper"):
        assert getattr(other, name) == pytest.approx(50.0 * getattr(once, name), rel=1e-6)


def test_how_rows_arrive_does_not_matter():
    log = stream(2000, 3, 0.25)
    whole = gate_after(log)
    for sizes in ([1] * 300, [700, 1, 44], [1999]):
        parts = gate_after(log, sizes)
        assert (parts.answer, parts.decided_at, parts.rows) == (whole.answer, whole.decided_at, 2000)
        assert (parts.gain, parts.lower, parts.upper) == (whole.gain, whole.lower, whole.upper)


def test_an_answer_is_final():
    gate = poem.Gate(Prefers(), loss_bounds=BOUNDS)
    assert gate.update(stream(2000, 4, 0.4)) == "ship"
    decided = gate.decided_at
    assert gate.update(stream(6000, 5, -0.4)) == "ship"
    assert gate.decided_at == decided
    # The bounds follow the average, which is below 0 by now.
    assert gate.lower < gate.upper < 0.0


def test_before_the_first_row_nothing_is_known():
    gate = poem.Gate(Prefers(), loss_bounds=(0.0, 4.0))
    assert (gate.rows, gate.answer, gate.lower, gate.upper) == (0, "keep running", -4.0, 4.0)
    assert np.isnan(gate.gain)
    assert "no rows yet" in repr(gate)


def test_capital_by_and_by_is_that_of_all_terms():
    rng, bets = np.random.default_rng(6), Bets.everywhere()
    above = rng.exponential(size=400)
    capital = Capital(bets, 1.0, 1e-12)
    for part in np.split(above, [3, 100, 101]):
        assert capital.add(part) == len(part)
    assert np.log(capital.held.sum()) == pytest.approx(log_capital(above, 0.0, 1.0, bets), rel=1e-9)


def test_the_capital_wins_where_the_bound_passes_the_mean():
    rng, bets = np.random.default_rng(7), Bets.everywhere()
    above = rng.exponential(size=400)
    won = Capital(bets, 0.7, 0.05).add(above)
    assert 0 < won < 400
    assert lower_bound(above[: won + 1], 0.0, 0.05, bets) >= 0.7 - 1e-6
    assert max(lower_bound(above[:n], 0.0, 0.05, bets) for n in range(1, won + 1)) < 0.7 + 1e-6


# ---- the promise, over all looks --------------------------------------------------------------------


@pytest.mark.parametrize(("share", "chance"), [(0.3, 0.9), (0.05, 0.95)])
def test_equal_outputs_are_hardly_ever_told_apart(share, chance):
    """One may look after each of 2000 rows; the answers are wrong in 5% of the streams at the most."""
    wrong = 0
    for seed in range(200):
        gate = poem.Gate(Prefers(chance), loss_bounds=BOUNDS)
        wrong += gate.update(stream(2000, 100 + seed, 0.0, share)) != "keep running"
    assert wrong <= 10 + 3 * np.sqrt(200 * 0.05 * 0.95)


def test_a_logger_that_adapts_does_not_mislead():
    """It logs what has earned more so far; all outputs earn the same."""
    wrong = 0
    for seed in range(100):
        rng, mean, count = np.random.default_rng([seed, 31]), np.zeros(2), np.full(2, 1e-9)
        y, reward, propensity = np.empty(500, int), np.empty(500), np.empty(500)
        for row in range(500):
            chance = 0.8 if mean[1] / count[1] > mean[0] / count[0] else 0.2
            y[row] = rng.random() < chance
            reward[row], propensity[row] = rng.random() < 0.5, chance if y[row] else 1.0 - chance
            mean[y[row]] += reward[row]
            count[y[row]] += 1.0
        log = poem.BanditLog(np.ones((500, 1)), y, reward=reward, propensity=propensity, labels=[0, 1])
        wrong += gate_after(log).answer != "keep running"
    assert wrong <= 5 + 3 * np.sqrt(100 * 0.05 * 0.95)


def test_what_was_never_logged_is_neither_better_nor_worse():
    gate = gate_after(stream(3000, 8, share=1e-12))  # nothing is known about the second output
    assert gate.answer == "keep running"
    assert gate.lower < -0.4
    assert gate.upper > 0.4


def test_a_million_rows_are_quick():
    n, rng = 1_000_000, np.random.default_rng(9)
    y = rng.integers(0, 2, n)
    log = poem.BanditLog(
        np.ones((1, 1)), y, reward=rng.integers(0, 2, n), propensity=np.full(n, 0.5), context=np.zeros(n, int)
    )
    gate_after(log.take(np.arange(10))).look()  # compiled
    start = perf_counter()
    gate = gate_after(log)
    assert gate.lower < 0.0 < gate.upper
    assert gate.upper - gate.lower < 0.02
    assert perf_counter() - start < 20.0  # 2 to 3 seconds where nothing else runs


# ---- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"loss_bounds": "auto"}, r"loss_bounds must be \(lowest, highest\); found 'auto'"),
        ({"loss_bounds": (1.0, 0.0)}, "loss_bounds must be finite with the lower one first"),
        ({"confidence": 95}, "confidence must be between 0 and 1; found 95. Use 0.95"),
        ({"margin": 1.5}, "smaller than the range of the loss, 1; found 1.5"),
        ({"margin": "0"}, "margin must be a gain"),
    ],
)
def test_bad_options_are_refused(options, said):
    with pytest.raises(InputError, match=said):
        poem.Gate(Prefers(), **{"loss_bounds": BOUNDS} | options)


def test_a_refused_chunk_changes_nothing():
    good = stream(500, 10, 0.2, time=np.arange(500.0))
    gate = gate_after(good)
    before = gate.look()
    bad = good.replaced(loss=np.where(np.arange(500) == 17, 2.5, good.loss), time=good.time + 500.0)
    with pytest.raises(InputError, match=r"within loss_bounds \(0, 1\); row 517 has -2.5. Nothing was added"):
        gate.update(bad)
    with pytest.raises(InputError, match=r"rows must come in time order; row 500 is earlier .* Sort the log by time"):
        gate.update(good)
    with pytest.raises(InputError, match=r"the propensities of this log are estimated"):
        gate.update(good.with_propensities(good.log_propensity, "estimated"))
    with pytest.raises(InputError, match=r"update takes a BanditLog of the next rows; found list"):
        gate.update([1, 2])
    assert gate.look() == before


# ---- poem watch -----------------------------------------------------------------------------------


def written(path, log, order=None, **extra):
    table = pd.DataFrame({"x": 1.0, "output": log.y, "reward": -log.loss, "propensity": np.exp(log.log_propensity)})
    table = table.assign(time=np.arange(len(log)), **extra)
    (table if order is None else table.iloc[order]).to_csv(path, index=False)
    return str(path)


@pytest.fixture
def policy(tmp_path):
    """A policy that prefers the second output, as a file."""
    structure = poem.MultiClass(2)
    made = poem.Policy(structure, np.array([[0.0, np.log(9.0)]]), False, (0, 1), feature_names=("x",))
    made.save(tmp_path / "policy.poem")
    return str(tmp_path / "policy.poem")


@pytest.mark.parametrize(
    ("better", "answer", "status"), [(0.3, "ship", 0), (-0.3, "stop", 1), (0.0, "keep running", 1)]
)
def test_watch_answers(tmp_path, policy, capsys, better, answer, status):
    log = stream(2000, 11, better)
    path = written(tmp_path / "log.csv", log)
    arguments = ["watch", path, "--policy", policy, "--loss-bounds", "0,1", "--quiet"]
    assert main(arguments) == status
    out, err = capsys.readouterr()
    assert err == ""
    assert f"Answer: {answer}" in out
    assert len(out.splitlines()) == 2 + 10 + 1  # a table of ten looks, and the answer
    assert main([*arguments, "--json"]) == status
    content = json.loads(capsys.readouterr().out)
    gate = gate_after(log)
    assert (content["answer"], content["rows"], content["decided_at"]) == (answer, 2000, gate.decided_at)
    assert content["lower"] == pytest.approx(gate.lower, abs=1e-9)
    assert content["upper"] == pytest.approx(gate.upper, abs=1e-9)
    assert [look["rows"] for look in content["looks"]][-1] == 2000


def test_watch_sorts_by_time_and_looks_as_often_as_asked(tmp_path, policy, capsys):
    log = stream(950, 12, 0.2)
    found = []
    for order in (None, np.random.default_rng(0).permutation(950)):
        path = written(tmp_path / "log.csv", log, order)
        main(["watch", path, "--policy", policy, "--loss-bounds", "0,1", "--every", "300", "--json", "--quiet"])
        found.append(json.loads(capsys.readouterr().out))
    assert found[0] == found[1]
    assert [look["rows"] for look in found[0]["looks"]] == [300, 600, 900, 950]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--loss-bounds", "0.2,1"], "rewards must be within loss_bounds (0.2, 1); row"),
        (["--loss-bounds", "0,1", "--propensity", "estimate"], "the answer rests on logged propensities"),
        (["--loss-bounds", "0,1", "--margin", "3"], "smaller than the range of the loss, 1; found 3"),
    ],
)
def test_watch_refuses(tmp_path, policy, capsys, options, said):
    path = written(tmp_path / "log.csv", stream(100, 13))
    assert main(["watch", path, "--policy", policy, "--quiet", *options]) == 2
    assert said in capsys.readouterr().err
