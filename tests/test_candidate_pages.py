"""Logs with available actions: health check, diagnostics, propensities, simulation, regressors and the report."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

import poem
from poem.certificates import adapts
from poem.compute import Threads
from poem.data.folds import folds_of
from poem.evaluation.judging import model_for
from poem.health import inspect
from poem.health.broken import Sound
from poem.health.broken_candidates import check_available
from poem.health.facts import Facts
from poem.health.power import error_of_others
from poem.readers import read_raw
from poem.report import describe, report_html
from poem.report.changes import find_changes
from poem.report.trivial import trivial_policies

K = 8


def softmax(scores, mask):
    p = np.exp(scores - scores.max(axis=1, keepdims=True)) * mask
    return p / p.sum(axis=1, keepdims=True)


def drawn(rng, p):
    chosen = (p.cumsum(axis=1) < rng.random((len(p), 1))).sum(axis=1).clip(max=p.shape[1] - 1)
    return np.where(p[np.arange(len(p)), chosen] > 0.0, chosen, p.argmax(axis=1))


def some_mask(rng, n, k=K, share=0.5):
    mask = rng.random((n, k)) < share
    for _ in range(2):  # mostly two at least
        mask[np.arange(n), rng.integers(0, k, n)] = True
    return mask


def masked(seed=0, n=4000, k=K, propensity=None, scores=None, share=0.5, **more):
    """A log of classes with masks, by a softmax over what is available."""
    rng = np.random.default_rng(seed)
    X, mask = rng.normal(size=(n, 3)), some_mask(rng, n, k, share)
    weights = np.random.default_rng(99).normal(size=(3, k)) * 0.5 if scores is None else scores
    p = softmax(X @ weights, mask)
    y = drawn(rng, p)
    right = p[np.arange(n), y]
    given = right if propensity is None else propensity(right, y)
    options = {"loss": (rng.random(n) < 0.2 + 0.08 * y).astype(float), "available": mask, "labels": range(k)} | more
    return poem.BanditLog(X, y, propensity=given, **options)


def described(seed=0, n=3000, identity=False, own=False, n_actions=30):
    """A log of candidates with a 0/1 and a real feature; the logger is uniform."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"mobile": (rng.random(n) < 0.5) * 1.0})
    z = np.column_stack([np.arange(n_actions) % 2, np.linspace(0.0, 3.0, n_actions)])
    lists = [rng.choice(n_actions, size, replace=False).tolist() for size in rng.integers(2, 6, n)]
    y = np.array([one[rng.integers(len(one))] for one in lists])
    loss = (rng.random(n) < 0.8 - 0.5 * (z[y, 0] == X["mobile"])).astype(float)
    names = ["sport", "length"]
    actions = pd.DataFrame(z, columns=names)
    given = pd.DataFrame(z[np.concatenate(lists)], columns=names) if own else poem.Catalogue(range(n_actions), actions)
    p = [1.0 / len(one) for one in lists]
    return poem.BanditLog(X, y, loss=loss, propensity=p, available=lists, actions=given, identity=identity)


def candidate_policy(log, weights):
    labels = log.structure.known_labels(log.labels)
    return poem.Policy(log.structure, np.array(weights), True, labels, log.feature_names)


# ---- the health check -----------------------------------------------------------------------


def test_a_sound_log_with_availability_is_fit():
    health = inspect(masked())
    assert health.verdict == "fit", health.reasons
    assert inspect(described()).verdict == "fit"
    assert "actions are available on average" in health.of("mean of 1/p").text


def test_an_action_that_is_rarely_available_and_chosen_in_a_tenth_of_these_rows_is_fine():
    rng = np.random.default_rng(1)
    n = 20_000
    mask = np.ones((n, 3), dtype=bool)
    mask[:, 2] = rng.random(n) < 0.1
    p = np.where(mask[:, [2]], [0.5, 0.4, 0.1], [0.6, 0.4, 0.0])
    y = drawn(rng, p)
    given = {"loss": rng.random(n), "propensity": p[np.arange(n), y], "labels": range(3)}
    health = inspect(poem.BanditLog(rng.normal(size=(n, 2)), y, available=mask, **given))
    assert health.verdict == "fit", health.reasons
    rare = health.actions[-1]
    assert rare.action == "2"
    assert (rare.available, rare.chosen) == (int(mask[:, 2].sum()), int((y == 2).sum()))
    assert rare.share_available == pytest.approx(0.1, abs=0.01)
    assert rare.share_chosen == pytest.approx(0.1, abs=0.02)
    # What looks like a lack of support without the lists is none.
    assert inspect(poem.BanditLog(rng.normal(size=(n, 2)), y, **given)).of("weight of outputs") is not None
    assert health.of("weight of outputs") is None


def test_propensities_that_are_too_low_are_found_although_the_action_is_rarely_available():
    """Over all rows the mean of 1/p of action 1 is still below 1; over those in which it is available it is not."""

    def low(p, y):
        return np.where(y == 1, p / 1.5, p)

    log = masked(n=8000, propensity=low, share=0.3)
    finding = inspect(log).of("mean of 1/p")
    assert finding.verdict != "fit"
    assert finding.text.count("1 has 1.5") == 1
    assert "where it was available" in finding.text
    assert inspect(log.with_all_available()).of("mean of 1/p").verdict == "fit"


def test_counts_by_hand_and_most_frequent_first():
    lists = [["a", "b"], ["a", "b", "c"], ["b"], ["b", "c"], ["a", "b"]]
    log = poem.BanditLog(
        np.zeros((5, 0)), ["a", "b", "b", "b", "b", "b"], loss=[0, 1, 0, 1, 0, 1], propensity=[0.5] * 6,
        available=lists, context=[0, 1, 2, 3, 4, 1],
    )  # fmt: skip
    health = inspect(log)
    table = [(one.action, one.available, one.chosen) for one in health.actions]
    assert table == [("b", 6, 5), ("a", 4, 1), ("c", 3, 0)]
    assert health.actions[1].share_chosen == 0.25
    assert "1 to 3 available actions per row, median 2" in health.of("available actions").text
    assert health.of("single actions").value == pytest.approx(1 / 6)
    assert health.of("never chosen").value == 1
    assert "'c'" in health.of("never chosen").text
    assert health.to_dict()["actions"][0] == {
        "action": "b", "available": 6, "share_available": 1.0, "chosen": 5, "share_chosen": 5 / 6,
    }  # fmt: skip
    assert "most often available" in str(health)
    assert "most often available" in health._repr_html_()
    assert inspect(log.with_all_available()).actions == ()


def test_the_table_of_actions_is_bounded():
    log = poem.BanditLog(
        np.zeros((300, 0)),
        np.arange(300) * 4,
        loss=np.arange(300) % 2,
        propensity=np.full(300, 0.25),
        available=[list(range(4 * i, 4 * i + 4)) for i in range(300)],
    )
    health = inspect(log)
    assert len(health.actions) == 100
    assert len(str(health).splitlines()) < 70
    assert "and 896 more" in health.of("never chosen").text


def test_rows_without_a_choice_are_no_deterministic_logger():
    rng = np.random.default_rng(0)
    mask = some_mask(rng, 3000)
    mask[:1500] = np.eye(K, dtype=bool)[rng.integers(0, K, 1500)]
    p = mask / mask.sum(axis=1, keepdims=True)
    y = drawn(rng, p)
    given = {"loss": rng.random(3000), "propensity": p[np.arange(3000), y], "labels": range(K)}
    health = inspect(poem.BanditLog(rng.normal(size=(3000, 2)), y, available=mask, **given))
    assert health.of("determinism").verdict == "fit"
    assert health.of("single actions").verdict == "with care"
    single = poem.BanditLog(rng.normal(size=(1500, 2)), y[:1500], available=mask[:1500], labels=range(K),
                            loss=rng.random(1500), propensity=np.ones(1500))  # fmt: skip
    assert inspect(single).of("single actions").verdict == "unfit"
    assert inspect(single).of("determinism") is None
    # A logger that always takes the first of several is deterministic, whatever the lists are.
    first = poem.BanditLog(rng.normal(size=(1500, 2)), mask[1500:].argmax(axis=1), available=mask[1500:],
                           labels=range(K), loss=rng.random(1500), propensity=np.ones(1500))  # fmt: skip
    assert inspect(first).of("determinism").verdict == "unfit"


@pytest.mark.parametrize(("identity", "verdict"), [(False, "fit"), (True, "fit"), (None, "with care")])
def test_actions_that_were_never_chosen_are_no_fault_if_features_describe_them(identity, verdict):
    log = described(n=400, identity=bool(identity), n_actions=200)
    if identity is None:
        codes = log.available.action
        lists = np.split(codes, log.available.starts[1:-1])
        log = poem.BanditLog(log.X, log.y, loss=log.loss, log_propensity=log.log_propensity, available=lists)
    finding = inspect(log).of("never chosen")
    never = len(set(log.available.action.tolist()) - set(log.y.tolist()))
    assert finding.value == never > 5
    assert finding.verdict == verdict


def test_equal_contexts_with_other_lists_are_other_situations():
    """A uniform logger's propensity depends on the list: it did not change, and frequencies are right."""
    rng = np.random.default_rng(0)
    mask = np.array([[1, 1, 0, 0], [1, 1, 1, 1], [0, 1, 1, 1]], dtype=bool)[rng.integers(0, 3, 3000)]
    p = mask / mask.sum(axis=1, keepdims=True)
    y = drawn(rng, p)
    X = np.eye(5)[rng.integers(0, 5, 3000)]
    given = {"loss": rng.random(3000), "propensity": p[np.arange(3000), y], "labels": range(4)}
    health = inspect(poem.BanditLog(X, y, available=mask, **given))
    assert health.of("changing") is None
    assert health.of("frequencies").verdict == "fit"
    assert inspect(poem.BanditLog(X, y, **given)).of("changing") is not None
    facts = Facts(poem.BanditLog(X, y, available=mask, **given))
    assert facts.n_contexts == 5
    assert len(np.unique(facts.situation)) == 15


def test_a_list_is_the_same_in_any_order_and_another_one_with_other_features():
    z = np.array([[1.0], [2.0], [2.0], [1.0], [1.0], [3.0]])
    log = poem.BanditLog(np.zeros((3, 0)), [0, 0, 0], loss=[0, 1, 0], propensity=[0.5] * 3,
                         available=[[0, 1], [1, 0], [0, 1]], actions=z)  # fmt: skip
    situation = Facts(log).situation
    assert situation[0] == situation[1] != situation[2]


def test_effective_rows_of_a_uniform_logger_are_all_rows():
    log = described()
    assert inspect(log).of("effective rows").value == pytest.approx(len(log))


def test_the_error_of_others_is_that_of_all_deterministic_policies():
    """The mean variance of SNIPS's linear terms over random policies that take one available action per context."""
    log = masked(n=400, k=4)
    rng, inverse = np.random.default_rng(0), np.exp(-log.log_propensity)
    counts = log.available.counts()
    mu = np.average(log.loss, weights=inverse / counts)
    squares, totals = [], []
    for _ in range(4000):
        agrees = rng.integers(0, counts) == log.available.positions(log.context, log.y)
        weight = np.where(agrees, inverse, 0.0)
        squares.append(np.sum((weight * (log.loss - mu)) ** 2))
        totals.append(weight.sum())
    expected = np.sqrt(np.mean(squares)) / np.mean(totals)
    assert error_of_others(Facts(log)) == pytest.approx(expected, rel=0.03)


# ---- raw logs -------------------------------------------------------------------------------


def raw_with(candidates, output):
    n = len(candidates)
    table = {"x": np.arange(n) * 1.0, "output": output, "loss": np.arange(n) % 2, "propensity": np.full(n, 0.5)}
    raw = read_raw(pa.table({**table, "candidates": candidates}))
    assert raw.roles.candidates == "candidates"
    return raw


@pytest.mark.parametrize("form", ["plain", "ids", "positions"])
def test_rows_with_broken_lists_are_named(form):
    n = 400
    lists, output = [["a", "b", "c"] for _ in range(n)], ["a"] * n
    lists[7], output[7] = ["a", "b"], "c"
    lists[9] = []
    lists[11] = ["a", "b", "b"]
    if form == "ids":
        lists = pa.array([[{"id": one, "z": 1.0} for one in row] for row in lists])
    if form == "positions":
        lists = pa.array([[{"z": 1.0} for _ in row] for row in lists])
        output = [{"a": 1, "c": 3}[one] for one in output]
    sound = Sound.start(raw_with(lists, output))
    check_available(sound)
    found = {finding.name: finding for finding in sound.findings}
    assert found["not available"].text == "1 row has an output that was not available (the table, row 7)"
    assert "row 9" in found["no available action"].text
    assert ("actions twice" in found) == (form != "positions")
    assert sound.bad.sum() == (3 if form != "positions" else 2)


def test_too_many_candidates_are_named():
    sound = Sound.start(raw_with([[0], list(range(10_001))], [0, 0]))
    check_available(sound)
    assert [finding.name for finding in sound.findings] == ["too many actions"]
    assert "row 1" in sound.findings[0].text


# ---- time -----------------------------------------------------------------------------------


def rolling(seed, n=3000, k=30, *, learns=False, changes=False):
    """Actions that come and go, under a logger that is always the same, or learns, or changes once."""
    rng = np.random.default_rng(seed)
    time = np.arange(n) / n
    X = rng.normal(size=(n, 2))
    begin = rng.uniform(-0.3, 1.0, k)
    mask = (time[:, None] >= begin) & (time[:, None] <= begin + rng.uniform(0.2, 0.6, k)) & (rng.random((n, k)) < 0.7)
    mask[np.arange(n), rng.integers(0, k, n)] = True
    good, scores = rng.random(k), X @ rng.normal(size=(2, k)) * 0.4 + rng.normal(size=k)
    if changes:
        scores[n // 2 :] += 2.0 * rng.normal(size=k)
    p, won, lost = softmax(scores, mask), np.ones(k), np.ones(k)
    y, draws = drawn(rng, p), rng.random(n)
    for i in range(n if learns else 0):
        weight = np.exp(6.0 * won / (won + lost)) * mask[i]
        p[i] = 0.9 * weight / weight.sum() + 0.1 * mask[i] / mask[i].sum()
        y[i] = rng.choice(k, p=p[i])
        won[y[i]] += draws[i] < good[y[i]]
        lost[y[i]] += draws[i] >= good[y[i]]
    given = {"reward": draws < good[y], "propensity": p[np.arange(n), y], "time": np.arange(n)}
    return poem.BanditLog(X, y, available=mask, labels=range(k), **given)


def test_actions_that_come_and_go_are_neither_drift_nor_learning():
    found = [(adapts(log), inspect(log).of("policy drift").verdict) for log in map(rolling, range(4))]
    assert not any(one.changes or one.follows_rewards for one, _ in found)
    assert [verdict for _, verdict in found] == ["fit"] * 4
    assert inspect(rolling(0).with_all_available()).of("policy drift").verdict == "with care"


def test_a_logger_that_learns_or_changes_is_found_although_actions_come_and_go():
    assert adapts(rolling(0, learns=True)).follows_rewards
    assert adapts(rolling(0, changes=True)).changes
    assert inspect(rolling(0, changes=True)).of("policy drift").verdict == "with care"


def test_without_propensities_drift_is_judged_by_the_lists_as_well():
    log = rolling(1)
    blind = poem.BanditLog(log.X, log.y, loss=log.loss, propensity="missing", time=log.time, labels=log.labels,
                           available=log.available.by_action(np.ones(len(log.available)), len(log.labels)))  # fmt: skip
    assert inspect(blind).of("policy drift").value < 0.1
    assert inspect(blind.with_all_available()).of("policy drift").value > 0.2


# ---- evaluation -----------------------------------------------------------------------------


def test_probability_on_what_was_never_logged_by_hand():
    lists = [["a", "b"], ["a", "c"], ["a", "b", "c"]]
    z = {"a": [0.0], "b": [np.log(3.0)], "c": [np.log(2.0)]}
    given = {"loss": [0, 1, 1, 0], "propensity": [0.5, 0.5, 0.5, 1 / 3], "context": [0, 0, 1, 2], "available": lists}
    flat = [z[one] for row in lists for one in row]
    log = poem.BanditLog(np.zeros((3, 0)), ["a", "b", "a", "a"], actions=flat, **given)
    never = (2 / 3 + 2 / 6) / 4  # of c: 2/(1 + 2) in context 1, 2/(1 + 3 + 2) in context 2; context 0 has two rows
    found = poem.evaluate(candidate_policy(log, [[1.0]]), log).diagnostics["policy"]
    assert found["never logged"].value == pytest.approx(never)
    assert found["never logged"].verdict == "trust"
    assert found.notes == (
        "25% of its probability is on actions never logged, which are known by their features alone",
    )
    actions = {one.action: (one.probability, one.available, one.logged) for one in found.actions}
    assert actions["c"] == (pytest.approx(never), 2, 0)
    assert actions["b"] == (pytest.approx((2 * 3 / 4 + 3 / 6) / 4), 3, 1)
    assert [one.probability for one in found.actions] == sorted((p for p, _, _ in actions.values()), reverse=True)
    plain = poem.BanditLog(np.zeros((3, 0)), ["a", "b", "a", "a"], **given)
    policy = poem.Policy(plain.structure, np.log([[1.0, 3.0, 2.0]]), True, plain.labels)
    doubted = poem.evaluate(policy, plain)
    assert doubted.diagnostics["policy"]["never logged"].value == pytest.approx(never)
    assert doubted.diagnostics["policy"]["never logged"].verdict == "don't"
    assert "b in 50.0% of its decisions (logged in 1 of the 3 rows that could)" in repr(doubted)
    assert "actions" not in poem.evaluate(poem.uniform_policy(easy := plain.with_all_available()), easy).to_json()


def test_features_of_single_actions_say_nothing_of_new_ones():
    log = described(n=300, n_actions=400, identity=True)
    only_ids = poem.BanditLog(
        log.X, log.y, loss=log.loss, log_propensity=log.log_propensity, labels=log.labels, identity=True,
        available=np.split(log.available.action, log.available.starts[1:-1]),
        actions=poem.Catalogue(log.labels, np.zeros((400, 0))),
    )  # fmt: skip
    assert poem.evaluate(poem.uniform_policy(log), log).diagnostics["policy"]["never logged"].verdict == "trust"
    found = poem.evaluate(poem.uniform_policy(only_ids), only_ids).diagnostics["policy"]["never logged"]
    assert found.verdict == "don't"


@pytest.mark.parametrize("kind", ["classes", "candidates"])
def test_a_softmax_over_what_is_available_is_found(kind):
    rng = np.random.default_rng(3)
    if kind == "classes":
        log = masked(n=4000, scores=rng.normal(size=(3, K)))
    else:
        uniform = described(n=4000)
        logger = candidate_policy(uniform, [[1.0, -0.3], [-0.5, 0.8]])
        lists = np.split(uniform.available.action, uniform.available.starts[1:-1])
        z = np.column_stack([np.arange(30) % 2, np.linspace(0.0, 3.0, 30)])
        log = poem.simulate(uniform.X, uniform.y, logger, replay=1, rng=0, available=lists,
                            actions=poem.Catalogue(range(30), z))  # fmt: skip
    fit = poem.estimate_propensities(log)
    assert fit.mean_log_error < 0.08
    assert fit.calibration_error < 0.02
    assert sum(one.count for one in fit.bins) == len(log.available)
    seen = sum(one.count * one.observed for one in fit.bins)
    assert seen == pytest.approx(len(log))
    assert sum(one.count * one.predicted for one in fit.bins) == pytest.approx(len(log))
    if kind == "classes":
        assert poem.estimate_propensities(log.with_all_available()).mean_log_error > 5 * fit.mean_log_error


def test_estimated_propensities_are_cross_fitted_and_need_no_logged_ones():
    log = masked(n=600)
    blind = poem.BanditLog(log.X, log.y, loss=log.loss, propensity="missing", labels=log.labels,
                           available=log.available.by_action(np.ones(len(log.available)), K))  # fmt: skip
    fit = poem.estimate_propensities(blind, C=1.0)
    np.testing.assert_allclose(fit.log.log_propensity, poem.estimate_propensities(log, C=1.0).log.log_propensity)
    fold = folds_of(log, 5, 0)
    other = log.y.copy()
    row = int(np.flatnonzero((fold == 0) & (log.available.counts() > 1))[0])
    choices = log.available.action[log.available.starts[row] : log.available.starts[row + 1]]
    other[row] = next(code for code in choices if code != log.y[row])
    changed = poem.BanditLog(log.X, other, loss=log.loss, propensity="missing", labels=log.labels,
                             available=log.available.by_action(np.ones(len(log.available)), K))  # fmt: skip
    moved = poem.estimate_propensities(changed, C=1.0).log.log_propensity != fit.log.log_propensity
    assert set(np.flatnonzero(moved & (fold == 0))) == {row}


# ---- a regressor as the loss model ----------------------------------------------------------


@pytest.mark.parametrize("regressor", [DecisionTreeRegressor(max_depth=3, random_state=0), Ridge(alpha=0.1)], ids=str)
@pytest.mark.parametrize("kind", ["classes", "catalogue", "own features"])
def test_a_regressor_sees_the_context_and_the_action(kind, regressor):
    log = masked(n=300) if kind == "classes" else described(n=300, own=kind == "own features")
    available, X = log.available, np.asarray(log.X)
    owner = np.repeat(np.arange(log.n_contexts), available.counts())
    if kind == "classes":
        z = np.eye(K)[available.action]
    else:
        z = available.features.toarray()[np.arange(len(available)) if available.row is None else available.row]
    chosen = available.starts[:-1] + available.positions(np.arange(len(log)), log.y)
    model = model_for(log, regressor, 2, (0.0, 1.0), 0, Threads())
    assert model.losses.shape == (2, len(available))
    for part in range(2):
        out = model.fold != part
        fitted = clone(regressor).fit(np.hstack([X, z[chosen]])[out], log.loss[out])
        np.testing.assert_allclose(model.losses[part], fitted.predict(np.hstack([X[owner], z])), atol=1e-9)
    policy = poem.uniform_policy(log)
    table = poem.evaluate(policy, log, ["DM"], model=regressor)
    mean = [
        np.mean(model.losses[model.fold[c], available.starts[c] : available.starts[c + 1]]) for c in range(len(log))
    ]
    assert table["policy", "DM"].value == pytest.approx(np.mean(mean))


# ---- simulation -----------------------------------------------------------------------------


def test_a_simulated_logger_draws_from_what_is_available():
    rng = np.random.default_rng(0)
    X, mask = rng.normal(size=(500, 2)), some_mask(rng, 500)
    best = (X @ rng.normal(size=(2, K))).argmax(axis=1)
    policy = poem.Policy(poem.MultiClass(K), rng.normal(size=(3, K)), True, tuple(range(K)))
    log = poem.simulate(X, best, policy, replay=40, rng=1, available=mask)
    assert mask[log.context, log.y].all()
    np.testing.assert_array_equal(log.loss, best[log.context] != log.y)
    np.testing.assert_allclose(policy.log_prob_of(log), log.log_propensity)
    assert log.available.counts().tolist() == mask.sum(axis=1).tolist()
    # Σ 1/p over the rows of a context has the mean replay × available.
    assert np.exp(-log.log_propensity).mean() == pytest.approx(mask.sum(axis=1).mean(), rel=0.03)
    floored = poem.simulate(X, best, policy.with_floor(0.2), replay=3, rng=1, available=mask)
    assert mask[floored.context, floored.y].all()


def test_candidates_are_simulated_with_any_loss():
    rng = np.random.default_rng(0)
    X, counts = rng.normal(size=(200, 1)), rng.integers(2, 5, 200)
    z = rng.normal(size=(int(counts.sum()), 2))
    policy = poem.Policy(poem.Candidates(4, 2), rng.normal(size=(2, 2)), True, ())
    best = rng.integers(0, counts)
    log = poem.simulate(X, best, policy, replay=2, rng=0, available=counts, actions=z,
                        loss=lambda truth, chosen: np.abs(truth - chosen))  # fmt: skip
    np.testing.assert_array_equal(log.loss, np.abs(best[log.context] - log.y))
    np.testing.assert_allclose(policy.log_prob_of(log), log.log_propensity)
    assert (log.y < counts[log.context]).all()


# ---- the report -----------------------------------------------------------------------------


def test_shares_among_what_is_available_by_hand():
    lists = [["a", "b"], ["b", "c"], ["a", "b", "c"]]
    log = poem.BanditLog(
        np.zeros((3, 0)), ["a", "b", "b", "c"] * 5, loss=[0, 1, 2, 3] * 5, propensity=[0.5, 0.5, 0.5, 1 / 3] * 5,
        context=[0, 0, 1, 2] * 5, available=lists, group=range(20),
    )  # fmt: skip
    policy = poem.Policy(log.structure, np.log([[1.0, 1.0, 2.0]]), True, log.labels)
    content = describe(policy, log)
    found = {one.label: (one.available, one.logged, one.new) for one in content.changes.outputs}
    assert found["a"] == (pytest.approx(3 / 4), 1 / 4, pytest.approx((2 / 2 + 1 / 4) / 4))
    assert found["b"] == (1.0, 1 / 2, pytest.approx((2 / 2 + 1 / 3 + 1 / 4) / 4))
    assert found["c"] == (pytest.approx(2 / 4), 1 / 4, pytest.approx((2 / 3 + 2 / 4) / 4))
    assert content.changes.kinds == ()
    page = report_html(policy, log)
    assert "one of 2 to 3 available actions per decision (3 in all)" in page
    assert "Actions that rise most" in page


def test_kinds_of_action_by_hand():
    log = described(n=1500)
    policy = candidate_policy(log, [[2.0, 0.0], [-0.5, 0.2]])
    kinds = {one.name: one for one in describe(policy, log).changes.kinds}
    z = log.available.features.toarray()
    flat, owner = z[log.available.row], np.repeat(np.arange(len(log)), log.available.counts())
    h, even = policy.marginals_of(log), 1.0 / log.available.counts()[owner]
    for j, name in enumerate(["sport", "length"]):
        one = kinds[name]
        assert one.available == pytest.approx(np.sum(even * flat[:, j]) / len(log))
        assert one.logged == pytest.approx(z[log.y, j].mean())
        assert one.new == pytest.approx(np.sum(h * flat[:, j]) / len(log))
        variance = np.sum(even * flat[:, j] ** 2) / len(log) - one.available**2
        assert one.spread == pytest.approx(np.sqrt(variance))
        ratio = h[log.available.starts[:-1] + log.available.positions(log.context, log.y)] / np.exp(log.log_propensity)
        assert one.weighted == pytest.approx(np.mean(ratio * z[log.y, j]))
    assert kinds["sport"].share
    assert not kinds["length"].share


def test_segments_and_pulls_speak_of_kinds_of_action():
    log = described(n=4000)
    policy = candidate_policy(log, [[6.0, 0.0], [-2.0, 0.4]])  # sport on mobiles, little of it elsewhere
    changes = describe(policy, log).changes
    (mobile,) = changes.segments
    assert mobile.name == "mobile\u00a0=\u00a01"
    assert mobile.rises[0].label == "sport"
    assert mobile.rises[0].new > 0.8 > 0.6 > mobile.rises[0].logged > 0.4
    pulls = {one.label: one for one in changes.pulls}
    assert dict(pulls["sport"].up)["mobile"] == pytest.approx(6.0 * 0.5 * 0.5, rel=0.05)
    assert "in the average context" in dict(pulls["length"].up)


def test_a_page_on_candidates_escapes_names_and_says_what_was_never_logged():
    rng = np.random.default_rng(0)
    lists = [rng.choice(300, 4, replace=False).tolist() for _ in range(200)]
    z = pd.DataFrame({"<b>bold</b>": rng.random(300), "ordinary": (rng.random(300) < 0.5) * 1.0})
    y = [one[0] for one in lists]
    log = poem.BanditLog(np.zeros((200, 0)), y, loss=rng.random(200), propensity=np.full(200, 0.25),
                         available=lists, actions=poem.Catalogue(range(300), z))  # fmt: skip
    page = report_html(candidate_policy(log, [[3.0, 0.5]]), log)
    assert "<b>bold</b>" not in page
    assert "&lt;b&gt;bold&lt;/b&gt;" in page
    assert "Which kinds of action rise and fall" in page
    assert "actions that were available and never logged" in page
    assert "features alone say what to expect of them" in page


@pytest.mark.parametrize("always", [False, True])
def test_trivial_policies_choose_from_what_is_available(always):
    rng = np.random.default_rng(0)
    mask = some_mask(rng, 2000, 3)
    mask[:, 1] |= always
    p = mask / mask.sum(axis=1, keepdims=True)
    y = drawn(rng, p)
    given = {"loss": 1.0 * (y != 1), "propensity": p[np.arange(2000), y]}
    named = trivial_policies(poem.BanditLog(np.zeros((2000, 0)), y, available=mask, labels=range(3), **given))
    np.testing.assert_allclose(named["uniform"], 1.0 / mask.sum(axis=1))
    assert list(named) == (["uniform", "always 1"] if always else ["uniform"])


# ---- size -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["classes", "candidates"])
def test_nothing_is_as_large_as_rows_times_actions(kind):
    rng = np.random.default_rng(0)
    n, actions = 4000, 50_000  # 200 million pairs
    codes = np.sort(rng.integers(0, actions, (n, 6)), axis=1)
    lists = [np.unique(row).tolist() for row in codes]
    y = [row[rng.integers(len(row))] for row in lists]
    given = {"loss": rng.random(n), "propensity": [1.0 / len(row) for row in lists], "time": np.arange(n)}
    if kind == "candidates":
        given["actions"] = poem.Catalogue(range(actions), rng.normal(size=(actions, 3)))
    tracemalloc.start()
    try:
        log = poem.BanditLog(rng.normal(size=(n, 2)), y, available=lists, labels=range(actions), **given)
        health = inspect(log)
        uniform = poem.uniform_policy(log)
        policy = replace(uniform, weights=rng.normal(size=uniform.weights.shape))
        changes = find_changes(policy, log, np.ones(n), 1.0, None)
        assert len(health.actions) == 100
        assert changes.never_logged > 0.5
        assert (len(changes.kinds) > 0) == (kind == "candidates")
        poem.estimate_propensities(log, C=1.0, folds=2)
        poem.evaluate(policy, log, ["DR"], model=Ridge())
        assert tracemalloc.get_traced_memory()[1] < 250e6
    finally:
        tracemalloc.stop()
