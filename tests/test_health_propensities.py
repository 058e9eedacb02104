"""Wrong propensities are caught and right ones raise no alarm, also where rows depend on each other."""

import numpy as np
import pyarrow as pa
import pytest
from health_logs import K, drawn, made, parts, sets, softmax

import poem
from poem.health import inspect
from poem.health.facts import Facts
from poem.health.frequencies import _Cells
from poem.readers import read_raw

# ---- whole distributions ---------------------------------------------------------------------------


def distributions(change=lambda p: p, n=1000, **columns):
    X, y, loss, p = parts(n=n)
    table = {"x": X[:, 0], "output": y, "loss": loss, "candidates": [list(range(K))] * n, "all": list(change(p))}
    return read_raw(pa.table(table | columns), poem.Columns(candidates="candidates", distribution="all"))


def test_right_distributions_pass():
    health = inspect(distributions())
    assert health.verdict == "fit", health.reasons
    assert health.of("calibration").verdict == "fit"


def test_distributions_that_do_not_add_up_are_said():
    def change(p):
        p[4] *= 0.5
        return p

    finding = inspect(distributions(change)).of("sums")
    assert finding.value == 1
    assert "row 4" in finding.text
    assert "0.5" in finding.text


def test_an_output_that_is_no_candidate_is_said():
    health = inspect(distributions(candidates=[[9] * K if row == 2 else list(range(K)) for row in range(1000)]))
    assert health.of("not available").value == 1
    assert "row 2" in health.of("not available").text


def test_distributions_that_contradict_the_propensity_are_said():
    _, y, _, p = parts(n=1000)
    right = p[np.arange(1000), y]
    assert inspect(distributions(propensity=right)).verdict == "fit"
    assert inspect(distributions(propensity=right * 0.9)).of("two propensities").value == 1000


def test_distributions_of_another_policy_are_caught():
    sharper = inspect(distributions(lambda p: p**3 / (p**3).sum(axis=1, keepdims=True)))
    assert sharper.of("calibration").verdict != "fit"


@pytest.mark.parametrize("kind", [float, int, str])
def test_candidates_are_matched_as_the_reader_does(kind):
    lists = [[kind(code) for code in range(K)]] * 1000
    as_floats = inspect(distributions(candidates=lists))
    assert as_floats.verdict == "fit", as_floats.reasons
    assert as_floats.of("mean of 1/p").value == pytest.approx(K, rel=0.1)


def test_candidates_that_are_no_whole_numbers_are_matched():
    _, y, _, _ = parts(n=1000)
    lists = [[code + 0.5 * (code == 1) for code in range(K)]] * 1000
    health = inspect(distributions(candidates=lists, output=y + 0.5 * (y == 1)))
    assert health.verdict == "fit", health.reasons


# ---- are the propensities right? -------------------------------------------------------------------


def suspicious(log):
    names = ("mean of 1/p", "frequencies", "weight of outputs", "duplicates")
    return [name for name in names if (found := inspect(log).of(name)) is not None and found.verdict != "fit"]


def test_right_propensities_raise_hardly_ever_an_alarm():
    alarms = sum(bool(suspicious(made(seed, n=1000))) for seed in range(25))
    alarms += sum(bool(suspicious(made(seed, n=1000, contexts=20))) for seed in range(25))
    assert alarms <= 1


def shuffled(p, y, rng):
    return rng.permutation(p)


MISTAKES = {
    "squared": lambda p, y, rng: p**2,
    "shuffled": shuffled,
    "constant": lambda p, y, rng: np.full(len(p), 1.0 / K),
    "in per cent of per cent": lambda p, y, rng: p / 100.0,
    "frequency of the output": lambda p, y, rng: (np.bincount(y) / len(y))[y],
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_wrong_propensities_are_caught(mistake):
    finding = inspect(made(n=20000, propensity=MISTAKES[mistake])).of("mean of 1/p")
    assert finding.verdict != "fit"
    assert "too low" in finding.text


def test_propensities_that_are_too_high_are_caught_where_contexts_repeat():
    health = inspect(made(n=5000, contexts=20, propensity=lambda p, y, rng: np.sqrt(p)))
    assert health.of("frequencies").verdict != "fit"
    assert inspect(made(n=5000, contexts=20)).of("frequencies").verdict == "fit"


def test_outputs_that_are_not_always_available_are_no_wrong_propensities():
    rng = np.random.default_rng(0)
    here = rng.random((5000, K)) < 0.6
    here[:, 0] = True
    p = here / here.sum(axis=1, keepdims=True)
    y = drawn(rng, p)
    chosen = p[np.arange(5000), y]
    loss, X = rng.random(5000), rng.normal(size=5000)
    health = inspect(poem.BanditLog(X[:, None], y, loss=loss, propensity=chosen))
    assert health.of("mean of 1/p").verdict == "fit"
    assert health.of("weight of outputs").value == K - 1
    # With the candidates at hand there is nothing odd about it.
    lists = [np.flatnonzero(row).tolist() for row in here]
    table = pa.table({"x": X, "output": y, "loss": loss, "propensity": chosen, "candidates": lists})
    assert inspect(read_raw(table)).of("weight of outputs") is None


def repeated(seed, k, contexts=8, n=400, cells=None):
    """Return the cells of a log of few contexts; ``cells`` are the outputs whose rows are kept, all others unseen."""
    rng = np.random.default_rng(seed)
    p = softmax(np.random.default_rng(k).normal(size=(contexts, k)) * 0.5)
    at = np.repeat(np.arange(contexts), n)
    y = drawn(rng, p[at])
    log = poem.BanditLog(np.eye(contexts)[at], y, loss=rng.random(len(y)), propensity=p[at, y], labels=range(k))
    facts = Facts(log)
    often = np.arange(len(log)) if cells is None else np.flatnonzero(y < cells)
    return _Cells.of(facts, often, np.bincount(facts.context))


@pytest.mark.parametrize(("k", "cells"), [(2, None), (3, None), (10, None), (2, 1), (3, 2), (10, 4)])
def test_p_values_of_repeated_contexts_are_what_they_say(k, cells):
    found = np.array([repeated(seed, k, cells=cells).p_value for seed in range(300)])
    # Where only some outputs of a context are seen, low p-values are a little rarer than they should be.
    for level, spread in ((0.5, 0.1), (0.1, 0.05), (0.02, 0.025)):
        share = float(np.mean(found < level))
        assert share <= level + spread
        assert cells is not None or share >= level - spread


def test_outputs_of_a_context_are_not_counted_twice():
    cells = repeated(0, 2, contexts=5)
    assert cells.count == 10
    assert cells.freedom == pytest.approx(5.0)


@pytest.mark.parametrize("q", [3, 12])
def test_label_sets(q):
    X, y, loss, p = sets(q=q)
    right = inspect(poem.BanditLog(X, y, loss=loss, propensity=p))
    assert right.verdict == "fit", right.reasons
    assert f"{q} yes/no labels" in str(right)
    wrong = inspect(poem.BanditLog(X, y, loss=loss, propensity=p**2))
    assert wrong.of("mean of 1/p").verdict == ("unfit" if q == 3 else "fit")  # each set of twelve labels is too rare


def test_common_label_sets_are_checked_however_many_labels_there_are():
    rng = np.random.default_rng(0)
    one = np.full(12, 0.02)
    y = (rng.random((4000, 12)) < one).astype(np.uint8)
    p = np.where(y == 1, one, 1.0 - one).prod(axis=1)
    X, loss = rng.normal(size=(4000, 2)), rng.random(4000)
    assert inspect(poem.BanditLog(X, y, loss=loss, propensity=p)).of("mean of 1/p").verdict == "fit"
    assert inspect(poem.BanditLog(X, y, loss=loss, propensity=p**2)).of("mean of 1/p").verdict != "fit"


def test_a_logging_policy_that_changes_is_not_called_wrong_in_repeated_contexts():
    rng = np.random.default_rng(1)
    p = softmax(np.linspace(-3, 3, 4000)[:, None] * np.array([1.0, 0.0, -1.0]))
    y = drawn(rng, p)
    X = np.eye(4)[rng.integers(0, 4, 4000)]
    log = poem.BanditLog(X, y, loss=rng.random(4000), propensity=p[np.arange(4000), y])
    health = inspect(log)
    assert health.of("frequencies") is None
    assert health.of("changing").value > 0.5


# ---- rows that are not independent -----------------------------------------------------------------


def sticky(seed, users=200, rows=100, contexts=None, k=3, grouped=True, **options):
    """Return a log of right propensities in which each user's output is drawn once and kept for all rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(contexts or users, 2))[rng.integers(0, contexts, users) if contexts else slice(None)]
    p = softmax(X @ np.random.default_rng(99).normal(size=(2, k)) * 0.3)
    y = drawn(rng, p)
    user = np.repeat(np.arange(users), rows)
    # Users come one after the other, so that each of them is seen in one part of the time only.
    options = {"loss": (rng.random(len(user)) < 0.3).astype(float), "time": np.arange(float(len(user)))} | options
    X = np.column_stack([X[user], rng.random(len(user)) if contexts is None else user % 2])
    groups = {"group": user} if grouped else {}
    return poem.BanditLog(X, y[user], propensity=p[user, y[user]], labels=range(k), **options, **groups)


TESTED = ("mean of 1/p", "weight of outputs", "frequencies", "duplicates", "policy drift", "loss drift")


def alarms(log):
    health = inspect(log)
    return [name for name in TESTED if (found := health.of(name)) is not None and found.verdict != "fit"]


@pytest.mark.parametrize("contexts", [None, 4])
def test_decisions_that_are_kept_for_a_group_raise_hardly_ever_an_alarm(contexts):
    assert sum(bool(alarms(sticky(seed, contexts=contexts))) for seed in range(30)) <= 1
    # The same rows, taken to be independent, do: it is the groups that make the difference.
    assert sum(bool(alarms(sticky(seed, contexts=contexts, grouped=False))) for seed in range(5)) >= 4


def test_one_large_group_raises_no_alarm():
    sizes = np.r_[3540, np.full(59, 60)]  # one user has half of all rows
    assert [alarms(sticky(seed, users=60, rows=sizes)) for seed in range(30)] == [[]] * 30


def test_decisions_that_are_kept_are_no_copies_but_rows_of_one_moment_are():
    kept = sticky(0, contexts=4, time=None)
    assert inspect(kept).of("duplicates").verdict == "fit"
    assert "counts as one" in inspect(kept).of("duplicates").text
    assert inspect(sticky(0, contexts=4, time=None, grouped=False)).of("duplicates").verdict == "with care"
    copied = sticky(0).take(np.repeat(np.arange(20000), 2))
    assert inspect(copied).of("duplicates").verdict == "with care"


def test_losses_that_differ_between_groups_are_no_drift():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        loss = np.repeat(rng.normal(size=200), 100) + 0.1 * rng.normal(size=20000)
        assert inspect(sticky(seed, loss=loss)).of("loss drift").verdict == "fit"


def sticky_distributions(seed, k=K, users=100, rows=50, change=lambda p: p):
    rng = np.random.default_rng(seed)
    p = softmax(rng.normal(size=(users, k)))
    user = np.repeat(np.arange(users), rows)
    table = {"x": rng.random(len(user)), "output": drawn(rng, p)[user], "loss": rng.random(len(user)), "group": user}
    table |= {"candidates": [list(range(k))] * len(user), "all": list(change(p)[user])}
    return read_raw(pa.table(table), poem.Columns(candidates="candidates", distribution="all", group="group"))


def test_distributions_of_decisions_that_are_kept_raise_no_alarm():
    found = [inspect(sticky_distributions(seed)).of("calibration") for seed in range(10)]
    assert all(finding is None or finding.verdict == "fit" for finding in found)
    assert any(finding is not None for finding in found)
    sharper = sticky_distributions(0, users=1000, rows=3, change=lambda p: p**3 / (p**3).sum(axis=1, keepdims=True))
    assert inspect(sharper).of("calibration").verdict != "fit"


def test_groups_of_one_row_change_nothing():
    log = made(time=np.arange(4000.0))
    assert [one for one in inspect(log).findings if one.topic != "groups"] == [
        one for one in inspect(log.with_groups(np.arange(4000))).findings if one.topic != "groups"
    ]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_wrong_propensities_are_caught_in_groups(mistake):
    log = made(n=20000, propensity=MISTAKES[mistake], group=np.arange(20000) // 10)
    assert inspect(log).of("mean of 1/p").verdict != "fit"


def test_propensities_that_are_too_high_are_caught_in_groups():
    log = made(n=20000, contexts=20, propensity=lambda p, y, rng: np.sqrt(p), group=np.arange(20000) // 4)
    finding = inspect(log).of("frequencies")
    assert finding.verdict != "fit"
    assert "one row of each group" in finding.text


def test_contexts_that_repeat_in_one_group_only_are_said_not_to_be_compared():
    log = made(n=400, contexts=10)
    health = inspect(log.with_groups(log.X[:, 0] > 0.0))
    assert "different groups" in health.of("frequencies").text


def test_drift_is_caught_in_groups_and_said_not_to_be_told_where_they_are_few():
    X, y, loss, p = parts()
    y[2000:], p[2000:] = (y[2000:] + 1) % K, np.roll(p[2000:], 1, axis=1)
    log = poem.BanditLog(X, y, loss=loss, propensity=p[np.arange(4000), y], time=np.arange(4000))
    finding = inspect(log.with_groups(np.arange(4000) // 2)).of("policy drift")
    assert finding.verdict == "with care"
    assert "one row of each group" in finding.text
    assert "too few" in inspect(log.with_groups(np.arange(4000) // 400)).of("policy drift").text
