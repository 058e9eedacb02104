"""A policy with a floor: exact probabilities of the mixture, everywhere that a policy may be used."""

import numpy as np
import pytest
from earlier_policies import without_checksum

import poem
from poem.errors import InputError, MismatchError, PolicyFileError

KINDS = ["labels", "classes"]
every_kind = pytest.mark.parametrize("kind", KINDS)


def make_policy(kind, seed=0, intercept=True):
    structure = poem.MultiLabel(3) if kind == "labels" else poem.MultiClass(4)
    weights = np.random.default_rng(seed).normal(size=(2 + intercept, structure.n_scores))
    return poem.Policy(structure, weights, intercept, tuple("abcd"[: structure.n_scores]))


def contexts(rows=40, seed=1):
    return np.random.default_rng(seed).normal(size=(rows, 2))


def all_outputs(kind):
    return np.array(list(np.ndindex(2, 2, 2))) if kind == "labels" else np.array(list("abcd"))


@every_kind
def test_probabilities_are_those_of_the_mixture_and_add_up_to_one(kind):
    policy, other, x = make_policy(kind), make_policy(kind, 1), contexts(1)
    outputs = all_outputs(kind)
    X = np.repeat(x, len(outputs), axis=0)
    for floored, second in ((policy.with_floor(0.1), None), (policy.with_floor(0.1, other), other)):
        found = np.exp(floored.log_prob(X, outputs))
        rarely = 1 / len(outputs) if second is None else np.exp(second.log_prob(X, outputs))
        np.testing.assert_allclose(found, 0.9 * np.exp(policy.log_prob(X, outputs)) + 0.1 * rarely, rtol=1e-12)
        assert found.sum() == pytest.approx(1.0, rel=1e-12)
        assert found.min() >= (0.1 / len(outputs) * (1 - 1e-12) if second is None else 0.0)


@every_kind
def test_samples_are_drawn_from_the_mixture(kind):
    policy = make_policy(kind).at_temperature(50.0).with_floor(0.3)
    x = contexts(1)
    drawn = policy.sample(np.repeat(x, 20_000, axis=0), rng=0)
    marginals = policy.marginals(x)[0]
    seen = drawn.mean(axis=0) if kind == "labels" else np.array([(drawn == name).mean() for name in policy.labels])
    np.testing.assert_allclose(seen, marginals, atol=0.015)


@every_kind
def test_losses_and_marginals_are_mixed(kind):
    policy, other, X = make_policy(kind), make_policy(kind, 1), contexts()
    truth = other.sample(X, rng=3)
    floored = policy.with_floor(0.2, other)
    mixed = 0.8 * policy.expected_loss(X, truth) + 0.2 * other.expected_loss(X, truth)
    assert floored.expected_loss(X, truth) == pytest.approx(mixed, rel=1e-12)
    assert floored.map_loss(X, truth) == policy.map_loss(X, truth)
    np.testing.assert_array_equal(floored.predict(X), policy.predict(X))


@every_kind
def test_a_file_holds_both_policies(kind, tmp_path):
    policy, X = make_policy(kind), contexts()
    for floored in (policy.with_floor(0.05), policy.with_floor(0.05, make_policy(kind, 1, intercept=False))):
        again = poem.load_policy(floored.save(tmp_path / "policy.poem"))
        y = floored.sample(X, rng=0)
        np.testing.assert_array_equal(again.log_prob(X, y), floored.log_prob(X, y))
        assert again.share == 0.05
    plain = poem.load_policy(policy.save(tmp_path / "plain.poem"))
    assert isinstance(plain, poem.Policy)


def test_a_broken_floor_is_refused(tmp_path):
    path = without_checksum(make_policy("classes").with_floor(0.05).save(tmp_path / "policy.poem"))
    path.write_bytes(path.read_bytes().replace(b'\\"share\\": 0.05', b'\\"share\\": 5.05'))
    with pytest.raises(PolicyFileError, match="broken content"):
        poem.load_policy(path)


@every_kind
def test_its_own_log_can_be_judged_and_learnt_from(kind):
    policy, X = make_policy(kind).with_floor(0.2), contexts(300)
    truth = make_policy(kind, 5).predict(X)
    log = poem.simulate(X, truth, policy, replay=2, rng=0)
    np.testing.assert_allclose(log.log_propensity, policy.log_prob(X[log.context], _outputs(log)), rtol=1e-12)
    assert poem.estimate(policy, log).value == pytest.approx(log.loss.mean())
    lines = poem.evaluate({"floored": policy}, log, ["IPS", "DR", "DM"]).lines
    assert {line.estimator for line in lines} == {"IPS", "DR", "DM"}
    found = poem.fit(log, learners="dr", start=policy, logging_policy=policy)
    assert found.policy.expected_loss(X, truth) < policy.expected_loss(X, truth)


def _outputs(log):
    return log.y if log.y.ndim == 2 else np.asarray(log.labels)[log.y]


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, np.nan, "much"])
def test_a_share_is_between_0_and_1(share):
    with pytest.raises(InputError, match="must be a share between 0 and 1"):
        make_policy("classes").with_floor(share)


def test_a_floor_is_a_plain_policy_of_the_same_kind():
    policy = make_policy("classes")
    named = poem.Policy(policy.structure, policy.weights, True, policy.labels, ("a", "b"))
    for other in (make_policy("labels"), policy.with_floor(0.1), named, "uniform"):
        with pytest.raises(MismatchError, match="the same outputs and features"):
            policy.with_floor(0.1, other)
