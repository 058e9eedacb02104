"""Held-out rows of a fit and logged rows of an evaluation are judged alike; what is kept in memory changes nothing."""

import numpy as np
import pytest
from easy_logs import FEW, a_policy, easy_log, logged_by, rows_of

import poem
from poem.certificates import paired
from poem.compute import Threads
from poem.data import folds_of
from poem.evaluation import Calibration, Clips, JudgedLog, calibrate, model_for
from poem.learning import contest
from poem.learning.held_out import HeldOut
from poem.learning.training import Training
from poem.models import CrossFitted
from poem.policies import judge_all

LABELS = poem.MultiLabel(3)


def mistakes(x, y, rng):
    return np.count_nonzero(y != (np.stack([x[:, 0], x[:, 1], x[:, 0] + x[:, 1]], axis=1) > 0.0), axis=1).astype(float)


def a_log(kind, **options):
    return easy_log(**options) if kind == "classes" else logged_by(a_policy(LABELS), mistakes, **options)


every_kind = pytest.mark.parametrize("kind", ["classes", "labels"])


@every_kind
def test_a_fit_and_an_evaluation_read_the_same_rows(kind):
    log = a_log(kind, contexts=300, replay=2)
    held = folds_of(log, 2, 0) == 1
    train, rest = log.take(~held), log.take(held)
    calibration = calibrate(train, poem.IPS(), "auto", rest)
    training = Training(train, log.structure, True, calibration)
    policy = a_policy(log.structure, seed=5)
    fit_reads = HeldOut(rest, training, rest.units(), True).rows(policy, Threads())
    model = CrossFitted((training.model,), np.zeros(len(rest), dtype=np.int64))
    judged = JudgedLog(rest, calibration.bounds, model, Threads()).rows(judge_all(policy, rest)[0])
    order = rest.rows_by_context()[0]
    span = calibration.loss_high - calibration.loss_low
    np.testing.assert_allclose(fit_reads.log_ratio, judged.log_ratio[order], rtol=1e-12)
    for name in ("loss", "predicted", "expected"):
        np.testing.assert_allclose(span * getattr(fit_reads, name), getattr(judged, name)[order], rtol=1e-12)


@every_kind
def test_a_fit_and_an_evaluation_choose_the_same_loss_model(kind):
    log = a_log(kind, contexts=300)
    training = Training(log, log.structure, True, calibrate(log, poem.IPS()))
    found = poem.evaluate(a_policy(log.structure, seed=5), log, "DR")
    assert found.model == training.model.name == ("boosted hidden truth" if kind == "classes" else "boosted")


def test_an_evaluation_says_which_loss_model_it_rests_on():
    from sklearn.linear_model import Ridge

    log, policy = a_log("classes", contexts=300), a_policy(poem.MultiClass(3), seed=5)
    found = poem.evaluate(policy, log)
    assert "loss model: boosted hidden truth" in repr(found)
    assert '"model": "boosted hidden truth"' in found.to_json()
    assert poem.evaluate(policy, log, model="linear").model == "linear"
    assert poem.evaluate(policy, log, model=Ridge()).model == "Ridge"
    without = poem.evaluate(policy, log, "IPS")
    assert without.model is None
    assert "loss model" not in repr(without)


def test_the_better_loss_model_makes_narrower_intervals():
    log, policy = a_log("classes", contexts=600), a_policy(poem.MultiClass(3), seed=5)
    lines = {model: poem.evaluate(policy, log, "DR", model=model)["policy", "DR"] for model in ("auto", "linear")}
    assert lines["auto"].stderr < 0.95 * lines["linear"].stderr


def test_losses_that_are_all_the_same_have_a_linear_model():
    log = logged_by(a_policy(poem.MultiClass(3)), lambda x, y, rng: np.full(len(y), 2.0))
    found = poem.evaluate(a_policy(poem.MultiClass(3), seed=5), log, "DR")
    assert found.model == "linear"
    assert found["policy", "DR"].value == pytest.approx(2.0)


def test_probabilities_and_weights_of_one_policy_are_judged_alike():
    log, policy = a_log("classes", contexts=300, replay=2), a_policy(poem.MultiClass(3), seed=5)
    rows = JudgedLog(log, (0.0, 1.1), model_for(log, "auto", 2, (0.0, 1.1), 0, Threads()), Threads())
    one, two = (rows.rows(judge_all(given, log)[0]) for given in (policy, policy.marginals(log.X)))
    for name in ("log_ratio", "predicted", "expected"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), rtol=1e-9, atol=1e-12)


# ---- memory ---------------------------------------------------------------------------------------


@every_kind
def test_policies_that_are_not_kept_change_no_answer(kind, monkeypatch):
    log = a_log(kind)
    kept = poem.fit(log, learners=FEW)
    monkeypatch.setattr(contest, "KEPT_BYTES", 0)
    dropped = poem.fit(log, learners=FEW)
    assert all(candidate.policy is not None for candidate in kept.table)
    assert all(candidate.policy is None for candidate in dropped.table)
    assert rows_of(dropped) == rows_of(kept)
    assert dropped.explain() == kept.explain()
    assert kept.policy is not None
    np.testing.assert_array_equal(dropped.policy.weights, kept.policy.weights)


@every_kind
def test_a_policy_that_was_not_kept_is_made_again(kind, monkeypatch):
    """Where the recipe goes wrong on more rows, the policy of the first fold is the answer."""
    log = a_log(kind)
    options = {"learners": "ips", "certify": False}
    kept = poem.fit(log, **options)
    monkeypatch.setattr(contest, "KEPT_BYTES", 0)

    def goes_wrong(policy, contexts, available, mean_weight):
        return ("ignores x",) if policy.record.n_train == len(log) else ()

    monkeypatch.setattr(contest, "find_problems", goes_wrong)
    found = poem.fit(log, **options)
    np.testing.assert_array_equal(found.policy.weights, kept.table[0].policy.weights)


@pytest.mark.parametrize("labels", [3, 9])
def test_paired_terms_do_not_depend_on_how_many_outputs_are_held_at_a_time(labels, monkeypatch):
    structure = poem.MultiLabel(labels)
    log = logged_by(a_policy(structure), lambda x, y, rng: rng.random(len(y)), contexts=60)
    training = Training(log, structure, True, calibrate(log, poem.IPS()))
    policy, held = a_policy(structure, seed=5), HeldOut(log, training, log.units(), True)
    whole = held.paired(policy, Threads())
    monkeypatch.setattr(paired, "BLOCK_SCORES", 1)
    np.testing.assert_allclose(held.paired(policy, Threads()), whole, rtol=1e-12, atol=1e-13)


# ---- one clip -------------------------------------------------------------------------------------


def test_every_fold_learns_with_the_clip_that_is_printed(monkeypatch):
    log, seen = a_log("classes", contexts=300), set()
    ready = Training._ready

    def watched(self, estimator, ground):
        found = ready(self, estimator, ground)
        seen.add(found.clip)
        return found

    monkeypatch.setattr(Training, "_ready", watched)
    found = poem.fit(log, estimator=poem.IPS(), lam=0.0, selection=poem.Selection(validation=3))
    assert seen == {found.calibration.clip}
    assert f"clip M {found.calibration.clip:.4g}" in repr(found)


def test_the_log_is_hashed_once(monkeypatch, tmp_path):
    log, calls = a_log("classes", contexts=300), []
    hashed = poem.BanditLog.fingerprint
    monkeypatch.setattr(poem.BanditLog, "fingerprint", lambda self: calls.append(self) or hashed(self))
    found = poem.fit(log, lam=0.0, checkpoint=tmp_path)
    assert len(calls) == 1
    assert found.policy.record.log == hashed(log)


def test_a_calibration_has_the_clip_of_any_estimator():
    log = a_log("classes", contexts=300)
    calibration = calibrate(log, poem.IPS())
    assert isinstance(calibration, Calibration)
    assert calibration.clips == Clips.of(log)
    assert calibration.clips.asked_by(poem.IPS("auto")) == (calibration.clip, calibration.clip_rule)
    assert calibration.clips.asked_by(poem.SNIPS(clip=None)) == (None, "none")
    assert calibration.clips.asked_by(poem.IPS(7.0)) == (7.0, "given")
    assert calibration.clips.asked_by(poem.IPS("max"))[0] >= calibration.clip
