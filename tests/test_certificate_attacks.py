"""Ways in which certificates were broken once: each is a law now."""

import re

import numpy as np
import pytest
from easy_logs import FEW, easy_log

import poem
from poem.certificates.paired import can_control
from poem.errors import CheckpointError, InputError
from poem.evaluation import calibrate
from poem.learning.certification import _copied
from poem.learning.plan import conditions_of, plan_of
from poem.learning.reserve import WORDS, Reserve

BOUNDS = (0.0, 1.1)


def null_log(n, seed, **more):
    """Ten labels at random in one context, and losses that nothing explains."""
    rng = np.random.default_rng([seed, 3])
    y = (rng.random((n, 10)) < 0.5).astype(int)
    given = {"loss": (rng.random(n) < 0.5) * 1.0, "propensity": np.full(n, 0.5**10), "context": np.zeros(n, dtype=int)}
    return poem.BanditLog(rng.normal(size=(1, 2)), y, **given, **more)


def test_sums_from_samples_are_not_shared_by_units_of_one_context():
    labels, units = poem.MultiLabel(10), np.arange(40)
    grouped, alone = null_log(40, 0, group=np.arange(40)), null_log(40, 0)
    assert not can_control(grouped, labels, grouped.units())
    assert can_control(alone, labels, alone.units())
    assert can_control(grouped, poem.MultiClass(5), units)  # sums over few outputs are exact


def test_no_claim_is_made_where_many_groups_share_a_context():
    claims = [
        poem.fit(null_log(400, seed, group=np.arange(400)), learners="direct", loss_bounds=(0, 1), seed=seed).certified
        for seed in range(12)
    ]
    assert sum(claims) <= 1


def returning(times=True):
    """Six users, of whom the first three come back after all others."""
    rng = np.random.default_rng(0)
    user = np.array([0, 1, 2, 3, 4, 5, 0, 1, 2])
    more = {"time": np.arange(9.0)} if times else {}
    return poem.BanditLog(
        rng.normal(size=(9, 2)), user % 3, loss=rng.random(9), propensity=np.full(9, 0.5), group=user, **more
    )


def test_with_times_what_is_learnt_from_comes_before_what_certifies():
    learnt, held = Reserve.of(returning(), 0).cut(3)
    assert learnt.time.max() < held.time.min()
    assert len(learnt) == 3
    assert sorted(held.group) == [3, 4, 5]


def test_where_units_alternate_and_there_are_no_times_they_are_drawn_at_random():
    drawn = set()
    for seed in range(20):
        reserve = Reserve.of(returning(times=False), seed)
        assert reserve.order == "units"
        learnt, held = reserve.cut(3)
        assert len(learnt) + len(held) == 9
        assert not set(learnt.group) & set(held.group)
        drawn |= set(held.group)
    assert drawn == set(range(6))


def test_with_times_the_conditions_say_that_units_which_come_late_certify():
    assert Reserve.of(returning(), 0).order == "late"
    assert "first seen last" in WORDS["late"]


@pytest.mark.parametrize(
    ("rows", "dropped", "said"),
    [
        (9, 3, "certify; 3 later rows of other groups were dropped)"),
        (7, 1, "; 1 later row of other groups was dropped)"),
    ],
)
def test_the_conditions_say_how_many_rows_were_dropped(rows, dropped, said):
    log = returning().take(np.arange(rows))
    plan = plan_of(log, 0.5, 0, certifies=True)
    *_, order = conditions_of(plan.rest[0], calibrate(log, poem.IPS(), (0, 1)), plan)
    assert plan.dropped == dropped == len(log) - len(plan.first) - len(plan.rest[0])
    assert order.endswith(said)


def test_where_no_row_is_dropped_nothing_is_said_of_it():
    log = returning().take(np.array([0, 1, 2, 3, 4, 5, 5]))
    plan = plan_of(log, 0.5, 0, certifies=True)
    assert plan.dropped == 0
    assert "dropped" not in conditions_of(plan.rest[0], calibrate(log, poem.IPS(), (0, 1)), plan)[-1]


def test_fits_and_certificates_say_how_many_rows_were_dropped():
    rng = np.random.default_rng(0)
    user = rng.integers(0, 150, 600)
    X, y = rng.normal(size=(600, 2)), rng.integers(0, 2, 600)
    loss = np.where(y == (X[:, 0] > 0), 0.0, 1.0)
    log = poem.BanditLog(X, y, loss=loss, propensity=np.full(600, 0.5), group=user, time=np.arange(600.0))
    result = poem.fit(log, learners="ips", loss_bounds=(0, 1), progress=False)
    said = re.search(r"certify; ([\d,]+) later rows of other groups were dropped", result.explain())
    assert 0 < int(said[1]) < 600 - result.certificate.rows
    assert said[0] in result.certificate.to_dict()["conditions"][-1]


def test_a_checkpoint_belongs_to_its_times(tmp_path):
    log = easy_log()
    poem.fit(log, learners=FEW, loss_bounds=BOUNDS, checkpoint=tmp_path / "kept")
    turned = log.replaced(time=-np.arange(float(len(log))))
    assert turned.fingerprint() != log.fingerprint()
    with pytest.raises(CheckpointError, match="another log"):
        poem.fit(turned, learners=FEW, loss_bounds=BOUNDS, checkpoint=tmp_path / "kept")


def test_an_imitation_from_a_checkpoint_is_not_the_policy_that_failed(tmp_path):
    rng = np.random.default_rng(5)
    noise = easy_log().replaced(loss=rng.random(160))
    asked = {"learners": FEW, "loss_bounds": (0, 1), "selection": poem.Selection(imitate=True)}
    plain, kept = poem.fit(noise, **asked), poem.fit(noise, **asked, checkpoint=tmp_path / "kept")
    assert plain.origin == kept.origin == "imitation"
    assert kept.policy.weights.tobytes() == plain.policy.weights.tobytes()


def test_a_policy_is_not_certified_on_the_log_that_it_was_learnt_from():
    log = easy_log()
    policy = poem.fit(log, learners=FEW, certify=False).policy
    with pytest.raises(InputError, match="learnt from this very log"):
        poem.certify(policy, log, loss_bounds=BOUNDS)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_copies_of_rows_certify_nothing(size):
    log = easy_log(contexts=95)
    twice = np.tile(np.arange(len(log)), 2)
    copied = poem.BanditLog(
        size * log.X[log.context][twice], log.y[twice], loss=log.loss[twice], log_propensity=log.log_propensity[twice]
    )
    found = poem.fit(copied, learners=FEW, loss_bounds=BOUNDS)
    assert not found.certified
    assert "copies of rows" in found.explain()


@pytest.mark.parametrize("contexts", [3, 30, 180, 1000])
def test_rows_that_are_equal_by_chance_are_no_copies(contexts):
    for seed in range(20):
        rng = np.random.default_rng([seed, contexts])
        chance = np.array([0.5, 0.3, 0.2])
        place, y = rng.integers(contexts, size=400), rng.choice(3, 400, p=chance)
        log = poem.BanditLog(
            np.c_[place % 13, place // 13] * 1.0,
            y,
            loss=(y != place % 3) * 1.0,
            propensity=chance[y],
            group=rng.integers(200, size=400),
        )
        half = np.isin(log.group, rng.permutation(200)[:100])
        assert not _copied(log.take(np.flatnonzero(half)), log.take(np.flatnonzero(~half)))


def test_another_temperature_is_another_policy():
    found = poem.fit(easy_log(), learners=FEW, loss_bounds=BOUNDS)
    assert found.certified
    assert found.policy.record.certificate["certified"]
    assert found.policy.at_temperature(2.0).record.certificate is None


def retrained(seed):
    """Contexts that drift, and a logger that was retrained halfway on what it had logged."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1500, 1)) + np.linspace(-1.0, 1.0, 1500)[:, None]
    p = np.full((1500, 3), 1.0 / 3.0)
    p[750:] = [0.6, 0.3, 0.1]
    y = (rng.random(1500)[:, None] > p.cumsum(axis=1)).sum(axis=1)
    loss = (rng.random(1500) < 0.5) * 1.0
    return poem.BanditLog(X, y, loss=loss, propensity=p[np.arange(1500), y], labels=range(3))


def test_where_contexts_and_propensities_change_along_the_rows_nothing_is_certified():
    found = [poem.fit(retrained(seed), learners="direct", loss_bounds=(0, 1), seed=seed) for seed in range(5)]
    assert not any(one.certified for one in found)
    objections = [one.certificate.objections for one in found if one.certificate is not None]
    assert any("propensities change along them" in text for texts in objections for text in texts)


def test_a_start_from_the_same_log_is_refused_and_any_other_is_a_condition():
    log, other = easy_log(), easy_log(seed=1)
    own, foreign = (poem.fit(one, learners=FEW, certify=False).policy for one in (log, other))
    for start in (own, own.with_floor(0.1)):
        with pytest.raises(InputError, match="learnt from this very log"):
            poem.fit(log, start=start, loss_bounds=BOUNDS)
    found = poem.fit(log, learners=("auto",), start=foreign, loss_bounds=BOUNDS)
    assert found.certificate.conditions[-1] == "the start was not learnt from rows of this log"


@pytest.mark.parametrize("worst", [True, False])
def test_the_gain_of_a_policy_at_the_edge_of_the_bounds_lies_in_its_interval(worst):
    for seed in range(6):
        rng, p = np.random.default_rng(seed), np.array([0.5, 0.3, 0.2])
        X, y = rng.normal(size=(400, 2)), rng.choice(3, 400, p=p)
        loss = np.where(y == 2, 1.0, 0.9 + rng.uniform(-0.05, 0.05, 400))
        log = poem.BanditLog(X, y, loss=loss if worst else 1.0 - loss, propensity=p[y], labels=range(3))
        weights = np.zeros((3, 3))
        weights[-1, 2] = 8.0
        found = poem.certify(poem.Policy(poem.MultiClass(3), weights, True, (0, 1, 2)), log, loss_bounds=(0, 1))
        low, high = found.interval
        assert found.gain_at_least <= low <= found.gain <= high


def test_two_rows_to_learn_from_are_enough_for_a_model_of_the_logger():
    rng = np.random.default_rng(0)
    log = poem.BanditLog(
        rng.normal(size=(100, 2)), rng.integers(0, 3, 100), loss=rng.random(100), propensity=np.full(100, 1.0 / 3.0)
    )
    found = poem.fit(log, learners="direct", loss_bounds=(0, 2), selection=poem.Selection(validation=0.98))
    assert not found.certified
    assert found.certificate is None or found.certificate.rows == 98
