"""Regions without exploration, adaptive loggers, heavy tails, repeated contexts: found, and only where they are."""

import numpy as np
import pytest
import scipy.sparse as sp
from health_logs import drawn, made, sets, softmax

import poem
from poem.certificates.adaptive import adapts
from poem.certificates.tails import extremes, heavy_tail
from poem.health import inspect

# ---- regions without exploration --------------------------------------------------------------------


def business_rule(seed=0, n=1000, certain=1.0, **options):
    """Return a log in which class 0 is chosen wherever the first of four features is above 0.52."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 4))
    p = np.full((n, 3), 1 / 3)
    p[X[:, 0] > 0.52] = [certain, (1.0 - certain) / 2, (1.0 - certain) / 2]
    y = drawn(rng, p)
    log = poem.BanditLog(X, y, loss=rng.random(n), propensity=p[np.arange(n), y], labels=range(3), **options)
    return log.with_labels("abc"), X, p


def test_a_region_without_exploration_is_described_by_the_feature_that_tells_it():
    log, X, _ = business_rule(feature_names=["age", "x1", "x2", "x3"])
    finding = inspect(log).of("determinism")
    assert finding.verdict == "with care"
    assert finding.value == pytest.approx(np.mean(X[:, 0] > 0.52))
    assert "'age' > 0.52, which holds in 100" in finding.text
    assert "'a' was chosen in 100" in finding.text
    assert finding.advice.startswith("Nothing else was tried there")


def test_nearly_certain_regions_are_said_to_be_nearly_so():
    finding = inspect(business_rule(certain=0.995)[0]).of("determinism")
    assert "0.99 or more" in finding.text
    assert "feature 0 > 0.5" in finding.text
    assert finding.advice.startswith("Next to nothing else")


def test_two_features_tell_a_corner():
    rng = np.random.default_rng(1)
    X = rng.random((3000, 3))
    sure = (X[:, 0] > 0.5) & (X[:, 2] <= 0.4)
    p = np.where(sure, 1.0, 0.5)
    log = poem.BanditLog(X, np.where(sure, 0, rng.integers(0, 2, 3000)), loss=rng.random(3000), propensity=p)
    text = inspect(log).of("determinism").text
    assert "feature 0 > 0.5" in text
    assert "feature 2 ≤ 0.4" in text


def test_sparse_columns_tell_a_region():
    rng = np.random.default_rng(2)
    country = rng.integers(0, 30, 2000)
    X = sp.csr_array((np.ones(2000), (np.arange(2000), country * 1000)), shape=(2000, 2**30))
    p = np.where(country == 7, 1.0, 0.5)
    y = np.where(country == 7, 0, rng.integers(0, 2, 2000))
    text = inspect(poem.BanditLog(X, y, loss=rng.random(2000), propensity=p)).of("determinism").text
    assert "feature 7000 = 1, which holds in 100" in text


def test_rows_that_no_feature_tells_are_said_to_be_anywhere():
    rng = np.random.default_rng(3)
    sure = rng.random(2000) < 0.3
    log = poem.BanditLog(
        rng.normal(size=(2000, 3)),
        np.where(sure, 0, rng.integers(0, 2, 2000)),
        loss=rng.random(2000),
        propensity=np.where(sure, 1.0, 0.5),
    )
    assert "no one or two features tell where" in inspect(log).of("determinism").text


def test_outputs_that_were_possible_are_counted():
    log, _, p = business_rule(n=5000)
    finding = inspect(log).of("weight of outputs")
    assert f"on average about {np.mean((p > 0).sum(axis=1)):.2g}" in finding.text
    assert "of 3 outputs were possible" in finding.text
    assert inspect(made()).of("weight of outputs") is None


# ---- adaptive loggers -------------------------------------------------------------------------------


def static(seed, kind, n=1000, k=5, d=5, contexts=None):
    """Return a log of a policy that is good and never changes."""
    rng = np.random.default_rng([seed, 1])
    X = rng.normal(size=(n, d)) if contexts is None else rng.normal(size=(contexts, d))[rng.integers(0, contexts, n)]
    mean = 0.5 + 0.45 * np.clip(X @ rng.normal(size=(d, k)) / 3, -1, 1)
    p = {"uniform": np.full((n, k), 1 / k), "softmax": softmax(6 * mean)}.get(kind)
    if p is None:
        p = 0.1 / k + 0.9 * (mean.argmax(axis=1)[:, None] == np.arange(k))
    y = drawn(rng, p)
    return _timed(X, y, rng.random(n) < mean[np.arange(n), y], p[np.arange(n), y], k)


def _timed(X, y, reward, p, k):
    return poem.BanditLog(X, y, reward=1.0 * reward, propensity=p, labels=range(k), time=np.arange(float(len(y))))


def learning(seed, kind, n=1000, k=5, d=5):
    """Return a log of linear Thompson sampling, or of UCB with a floor of 5%, where all outputs are equal."""
    rng = np.random.default_rng([seed, 2])
    X, draws = rng.normal(size=(n, d)), rng.normal(size=(n, 200, k))
    F = np.column_stack([np.ones(n), X])
    precision, inverse, score, theta = (
        np.stack([np.eye(d + 1)] * k),
        np.stack([np.eye(d + 1)] * k),
        *np.zeros((2, k, d + 1)),
    )
    y, reward, p = np.zeros(n, dtype=int), (rng.random(n) < 0.5) * 1.0, np.zeros(n)
    for i, f in enumerate(F):
        mean, sd = theta @ f, np.sqrt(np.einsum("i,kij,j->k", f, inverse, f))
        if kind == "Thompson":
            best = np.bincount((mean + 0.5 * sd * draws[i]).argmax(axis=1), minlength=k) / 200
        else:
            best = (np.arange(k) == (mean + sd).argmax()) * 1.0
        q = 0.95 * best + 0.05 / k
        y[i] = a = int(drawn(rng, q[None])[0])
        p[i] = q[a]
        precision[a] += np.outer(f, f)
        score[a] += f * (reward[i] - 0.5)
        inverse[a] = np.linalg.inv(precision[a])
        theta[a] = inverse[a] @ score[a]
    return _timed(X, y, reward, p, k)


@pytest.mark.parametrize("kind", ["uniform", "softmax", "greedy"])
@pytest.mark.parametrize("contexts", [None, 20])
def test_policies_that_do_not_change_are_hardly_ever_called_adaptive(kind, contexts):
    found = [adapts(static(seed, kind, contexts=contexts)) for seed in range(100)]
    assert sum(one.changes or one.follows_rewards for one in found) <= 3


@pytest.mark.parametrize(("kind", "least"), [("Thompson", 10), ("UCB", 6)])
def test_policies_that_learn_are_found(kind, least):
    assert sum(adapts(learning(seed, kind)).follows_rewards for seed in range(10)) >= least


def test_an_adaptive_logger_is_said_and_so_are_missing_times():
    log = learning(0, "Thompson")
    timed = inspect(log).of("adaptive logger")
    assert timed.verdict == "with care"
    assert "follow past rewards" in timed.text
    assert "no times" not in timed.advice
    untimed = inspect(poem.BanditLog(log.X, log.y, loss=log.loss, log_propensity=log.log_propensity))
    assert "Rows have no times" in untimed.of("adaptive logger").advice
    assert not adapts(log.take(np.random.default_rng(0).permutation(1000)).replaced(time=None)).follows_rewards


def test_times_count_and_not_the_order_of_the_rows():
    log = learning(0, "Thompson")
    shuffled = log.take(np.random.default_rng(0).permutation(1000))
    assert adapts(shuffled) == adapts(log)
    assert adapts(log).timed


def test_a_policy_that_changes_by_itself_does_not_follow_rewards():
    def annealed(seed, n=2000):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 3))
        p = softmax(np.linspace(0, 2, n)[:, None] * (X @ rng.normal(size=(3, 4))))
        y = drawn(rng, p)
        return _timed(X, y, rng.random(n) < 0.5, p[np.arange(n), y], 4)

    found = [adapts(annealed(seed)) for seed in range(40)]
    assert sum(one.changes for one in found) >= 38
    assert sum(one.follows_rewards for one in found) <= 1


def test_nothing_is_told_of_label_sets_few_rows_or_missing_propensities():
    X, y, loss, p = sets()
    assert adapts(poem.BanditLog(X, y, loss=loss, propensity=p)).p_value == 1.0
    assert adapts(made(n=50)).p_value == 1.0
    assert not adapts(poem.BanditLog(X, y[:, 0], loss=loss, propensity="missing")).changes


# ---- heavy tails and rare extremes ------------------------------------------------------------------

LIGHT = {
    "0 or 1": lambda rng, n: rng.random(n) < 0.5,
    "rare": lambda rng, n: rng.random(n) < 0.02,
    "uniform": lambda rng, n: rng.random(n),
    "normal": lambda rng, n: rng.normal(size=n),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "Hamming": lambda rng, n: rng.binomial(14, 0.1, n),
}
HEAVY = {
    "lognormal": lambda rng, n: rng.lognormal(0, 2, n),
    "Pareto": lambda rng, n: rng.pareto(1.5, n),
    "Cauchy": lambda rng, n: rng.standard_cauchy(n),
}


@pytest.mark.parametrize("n", [200, 1000, 5000])
@pytest.mark.parametrize("name", LIGHT)
def test_light_tails_are_hardly_ever_called_heavy(name, n):
    losses = [1.0 * LIGHT[name](np.random.default_rng([seed, 3]), n) for seed in range(100)]
    assert sum(heavy_tail(loss).heavy or extremes(loss) is not None for loss in losses) <= 3


@pytest.mark.parametrize("name", HEAVY)
def test_heavy_tails_are_found_on_either_side(name):
    losses = [HEAVY[name](np.random.default_rng([seed, 4]), 1000) for seed in range(50)]
    assert sum(heavy_tail(loss).heavy for loss in losses) >= 42
    upper = [heavy_tail(loss) for loss in losses if name != "Cauchy"]
    assert all(tail.side == "upper" for tail in upper if tail.heavy)
    assert all(heavy_tail(-loss).heavy == heavy_tail(loss).heavy for loss in losses[:10])


def test_a_cap_takes_away_a_twentieth():
    loss = np.random.default_rng(0).lognormal(0, 1.5, 2000)
    tail = heavy_tail(loss)
    around = np.abs(loss - np.median(loss)).mean()
    assert loss.mean() - np.minimum(loss, tail.cap).mean() == pytest.approx(0.05 * around)
    assert heavy_tail(-loss).cap == pytest.approx(-tail.cap)


def test_heavy_tails_are_said_with_a_cap_as_losses_and_as_rewards():
    amounts = np.random.default_rng(1).lognormal(0, 1.2, 4000)
    as_loss = inspect(made(loss=amounts)).of("heavy tail")
    assert f"cap the loss at {heavy_tail(amounts).cap:.3g}" in as_loss.advice
    as_reward = inspect(made(loss=None, reward=amounts)).of("heavy tail")
    assert "large rewards" in as_reward.text
    assert f"cap the reward at {heavy_tail(amounts).cap:.3g}" in as_reward.advice


def test_rare_catastrophes_are_counted_with_their_part_of_the_mean():
    loss = np.where(np.random.default_rng(0).random(4000) < 0.02, 50.0, 0.2)
    rows, share = int((loss > 1).sum()), loss[loss > 1].sum() / loss.sum()
    finding = inspect(made(loss=loss)).of("outliers")
    assert f"{rows} rows have a loss above 2.2" in finding.text
    assert f"{share:.0%}".replace("%", "% of the mean") in finding.text
    assert "--loss-bounds" in finding.advice
    assert inspect(made()).of("outliers") is None


# ---- repeated contexts ------------------------------------------------------------------------------


def users(seed, effect, n=1000, count=50):
    rng = np.random.default_rng(seed)
    user = rng.integers(0, count, n)
    loss = effect * rng.normal(size=count)[user] + rng.normal(size=n)
    X = rng.normal(size=(count, 3))[user]
    return poem.BanditLog(X, rng.integers(0, 3, n), loss=loss, propensity=np.full(n, 1 / 3)), user


def test_users_that_repeat_without_groups_are_said():
    assert all(inspect(users(seed, 0.5)[0]).of("groups").verdict == "with care" for seed in range(10))
    assert all(inspect(users(seed, 0.0)[0]).of("groups").verdict == "fit" for seed in range(20))
    log, user = users(0, 0.5)
    finding = inspect(log).of("groups")
    assert "95% of the rows repeat a context and no group is named" in finding.text
    assert "group=, --group" in finding.advice
    assert inspect(log.with_groups(user)).of("groups").verdict == "fit"


def test_contexts_that_are_stored_once_are_units_already():
    finding = inspect(users(0, 0.5)[0].deduplicated()).of("groups")
    assert finding.verdict == "fit"
    assert "50 contexts, not the rows" in finding.text


def test_losses_that_depend_on_contexts_as_features_say_are_no_users():
    for seed in range(20):
        assert inspect(static(seed, "softmax", contexts=20)).of("groups").verdict == "fit"


def test_propensities_that_are_the_same_whenever_a_context_comes_back_are_not_called_adaptive():
    found = []
    for seed in range(40):
        rng = np.random.default_rng([seed, 12])
        segment = rng.integers(4, size=300)
        p = np.full((300, 3), 0.1 / 3.0)
        p[np.arange(300), segment % 3] += 0.9
        y = (rng.random(300)[:, None] > p.cumsum(axis=1)).sum(axis=1)
        given = {"loss": (rng.random(300) < 0.4) * 1.0, "propensity": p[np.arange(300), y], "labels": range(3)}
        found.append(adapts(poem.BanditLog(np.eye(4)[segment], y, **given)))
    assert not any(one.changes or one.follows_rewards for one in found)
