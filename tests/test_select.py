"""How candidates are judged on held-out rows, and which of them is chosen."""

import sys
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from easy_logs import FEW, SHORT, a_policy, best_of, easy, easy_log, logged_by, noise_log
from scipy import special, stats

import poem
from poem.certificates import PAIRED, Forecast
from poem.compute.kernels import Threads
from poem.errors import DegenerateWarning, InputError
from poem.estimators import Estimate
from poem.learning.arguments import splits_of
from poem.learning.portfolio import Learner, Recipe
from poem.learning.prospects import choose_for_certificate
from poem.learning.selection import AVOIDS, IGNORES, OVERFITS, Candidate, Gain, choose_likely
from poem.models.chosen import chosen_strengths, fit_for_estimates
from poem.models.linear import fit_linear, linear_strength
from poem.optimizers import Trace

BOUNDS = (0, 1.1)


@pytest.fixture(scope="module")
def found():
    """The portfolio on a log from which much can be learnt, without a certificate."""
    return poem.fit(easy_log(contexts=200), loss_bounds=BOUNDS, certify=False)


# ---- the bound on a gain --------------------------------------------------------------------------


@pytest.mark.parametrize("freedom", [1.0, 3.7, 50.0, 1e6])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
def test_the_worst_gain_is_student_s_bound(freedom, confidence):
    gain = Gain(-0.3, 0.2, freedom)
    assert gain.at_worst(confidence) == pytest.approx(-0.3 + 0.2 * stats.t.ppf(confidence, freedom), rel=1e-9)
    assert gain.interval(confidence) == pytest.approx(stats.t.interval(confidence, freedom, -0.3, 0.2), rel=1e-9)


@pytest.mark.parametrize("gain", [Gain(-0.3, 0.2, 0.9), Gain(float("nan"), float("inf"), 50.0)], ids=str)
def test_without_two_effective_rows_nothing_is_bounded(gain):
    assert gain.at_worst(0.6) == np.inf
    assert gain.interval()[1] == np.inf
    assert not gain.interval()[0] > -np.inf


def test_decisions_that_the_log_lacks_count_against_a_policy():
    whole = Gain(-0.3, 0.2, 30.0)
    lacking = replace(whole, mean_weight=0.8, room=0.5)
    assert lacking.missing == pytest.approx(0.2)
    assert lacking.at_worst(0.95) == pytest.approx(whole.at_worst(0.95) + 0.1)
    assert lacking.interval() == pytest.approx((whole.interval()[0], whole.interval()[1] + 0.1))
    assert replace(lacking, mean_weight=1.4).at_worst(0.95) == whole.at_worst(0.95)


def test_the_likely_bound_charges_a_typical_error_for_what_chance_does_not_explain():
    whole = Gain(-0.3, 0.2, 30.0)
    assert whole.likely == whole.at_worst(0.95)
    lacking = replace(whole, mean_weight=0.8, weight_stderr=0.05, typical=0.3, room=0.5)
    assert lacking.likely == pytest.approx(whole.likely + 0.15 * 0.3)
    assert replace(lacking, weight_stderr=0.21).likely == whole.likely
    assert replace(lacking, freedom=0.9).likely == np.inf


# ---- the choice for a certificate -----------------------------------------------------------------


def candidate_of(value, stderr, *problems, freedom=1000.0, judged=True, growth=1.0, **missing):
    """A candidate with some gain, which a certificate is expected to need about 8/growth units for."""
    policy = a_policy(poem.MultiClass(3))
    gain = Gain(value, stderr, freedom, **missing) if judged else None
    validation = Estimate(0.5 + value, stderr, 1000, 1000, 1.0, 0.0, freedom + 1.0) if judged else None
    foreseen = Forecast(PAIRED[0], growth, 1.0, np.zeros(2), np.ones(2)) if judged else None
    recipe = Recipe(Learner("POEM"), 1.0, 0.1, None, 0.0)
    trace = Trace(policy.weights, 0.0, 1, 0.0, True, "")
    return Candidate(policy, recipe, 0.1, 0.0, 1.0, 0.0, validation, gain, problems, 0.0, trace, foreseen)


def chosen_of(candidates, units=100):
    return choose_for_certificate(candidates, 0.05, units)


def test_the_lowest_bound_is_chosen_and_not_the_lowest_estimate():
    bold, sure, poor = candidate_of(-0.5, 0.15), candidate_of(-0.4, 0.01), candidate_of(-0.1, 0.01)
    assert chosen_of([bold, sure, poor]) is sure


def test_few_effective_rows_make_a_bound_wide():
    few, many = candidate_of(-0.42, 0.05, freedom=1.2), candidate_of(-0.4, 0.05)
    assert chosen_of([few]) is few
    assert chosen_of([few, many]) is many


def test_what_the_log_lacks_costs_a_typical_error_and_not_the_worst():
    near = candidate_of(-0.2, 0.01)
    lacking = {"mean_weight": 0.8, "weight_stderr": 0.1}
    far, farther = (candidate_of(-0.3, 0.01, room=1.5, typical=typical, **lacking) for typical in (0.2, 1.2))
    assert far.gain.at_worst(0.95) > near.gain.at_worst(0.95)
    assert chosen_of([near, far]) is far
    assert chosen_of([near, farther]) is near


def test_of_those_that_can_expect_a_certificate_the_best_is_chosen():
    slow, fast = candidate_of(-0.3, 0.01, growth=0.01), candidate_of(-0.2, 0.01, growth=0.1)
    assert 50 < fast.forecast.units_needed(0.05) < 100 < slow.forecast.units_needed(0.05) < 1000
    assert chosen_of([slow, fast], 100) is fast
    assert chosen_of([slow, fast], 1000) is slow
    # If none can, it is the one that comes nearest.
    assert chosen_of([slow, fast], 10) is fast


def test_the_number_of_candidates_does_not_matter():
    good = candidate_of(-0.2, 0.01)
    assert chosen_of([good, *(candidate_of(1.0, 0.1, growth=-0.1) for _ in range(100))]) is good


@pytest.mark.parametrize("problem", [AVOIDS, OVERFITS])
def test_a_policy_that_avoids_the_log_or_has_untrustworthy_weights_is_never_tried(problem):
    marked, fine, slow = candidate_of(-0.9, 0.01, problem), candidate_of(-0.1, 0.01), candidate_of(0, 1, growth=1e-3)
    assert chosen_of([marked, fine]) is fine
    assert chosen_of([marked, slow]) is slow
    assert chosen_of([marked]) is None


def test_a_healthy_policy_is_preferred_if_it_can_expect_a_certificate():
    marked, healthy = candidate_of(-0.9, 0.01, IGNORES), candidate_of(-0.1, 0.01)
    slow = candidate_of(-0.1, 1.0, growth=1e-3)
    assert chosen_of([marked, healthy]) is healthy
    # Of one that ignores x the estimate can be trusted all the same.
    assert chosen_of([marked, slow]) is marked


@pytest.mark.parametrize("growth", [0.0, -0.1, -np.inf])
def test_nothing_is_tried_if_nothing_did_better_than_the_log(growth):
    worse, unjudged = candidate_of(0.1, 0.01, growth=growth), candidate_of(0.0, 0.0, judged=False)
    assert chosen_of([worse, unjudged], 10**9) is None
    assert chosen_of([]) is None


def test_without_a_certificate_the_lowest_likely_bound_of_a_healthy_policy_is_chosen():
    bold, good, ignores = candidate_of(-0.5, 0.15), candidate_of(-0.4, 0.01), candidate_of(-0.9, 0.01, IGNORES)
    assert choose_likely([bold, good, ignores]) is good
    one_row = candidate_of(-0.9, 0.01, freedom=0.5)
    assert choose_likely([one_row, good]) is good
    assert choose_likely([one_row]) is one_row
    with pytest.warns(DegenerateWarning, match="ignores x"):
        assert choose_likely([ignores]) is ignores


# ---- a log to learn from --------------------------------------------------------------------------


def test_without_a_certificate_the_lowest_likely_bound_is_chosen(found):
    assert (found.origin, found.certified, found.certificate, found.confidence) == ("learnt", None, None, None)
    assert found.chosen.gain.likely == min(one.gain.likely for one in found.table if not one.problems)
    assert "logging policy" not in [candidate.learner for candidate in found.table]


def test_without_the_guard_the_lowest_estimate_is_chosen_whatever_it_is():
    found = poem.fit(noise_log(), learners=FEW, selection=poem.Selection(guard=False))
    assert (found.origin, found.certificate) == ("learnt", None)
    assert "logging policy" not in [candidate.learner for candidate in found.table]
    assert found.chosen.score == min(candidate.score for candidate in found.table)


def test_a_gain_is_the_difference_to_what_was_logged(found):
    assert found.logged.value == pytest.approx(easy_log(contexts=200).loss.mean(), rel=1e-12)
    for candidate in found.table:
        assert candidate.gain.value == pytest.approx(candidate.validation.value - found.logged.value, abs=1e-12)


def test_bounds_hold_for_the_loss_in_truth(found):
    X = np.random.default_rng(100).normal(size=(20_000, 2))
    logged = a_policy(poem.MultiClass(3)).expected_loss(X, best_of(X))
    for candidate in found.table:
        gain = candidate.policy.expected_loss(X, best_of(X)) - logged  # the noise in the loss cancels out
        assert candidate.gain.at_worst(0.999) >= gain - 0.01


def test_the_chosen_recipe_is_followed_on_all_rows(found):
    log, recipe = easy_log(contexts=200), found.chosen.recipe
    assert found.refitted
    assert not np.array_equal(found.policy.weights, found.chosen.policy.weights)
    assert found.policy.record.n_train == len(log) == found.n_rows
    assert found.chosen.policy.record.n_train == found.n_train < len(log)
    only = replace(recipe.learner, sharpness=(recipe.sharpness,), pull=(recipe.pull,))
    only = only if recipe.c is None else replace(only, multipliers=(recipe.c,))
    again = poem.fit(log, learners=only, loss_bounds=BOUNDS, selection=poem.Selection(validation=None))
    np.testing.assert_array_equal(again.policy.weights, found.policy.weights)


# ---- what a fit says of itself --------------------------------------------------------------------


def test_the_explanation_holds_the_choice_and_the_gain(found):
    said = found.explain()
    low, high = found.chosen.gain.interval()
    chosen = f"{found.chosen.learner} (λ {found.chosen.lam:.3g})"
    for part in (
        f"Chosen: {chosen}, one of {len(found.table)} candidates, then refitted on all 200 rows; not certified.",
        f"Against: a logged loss of {found.logged.value:.4g} on 200 held-out rows in 5 folds",
        f"its own is estimated at {found.chosen.validation}",
        f"Gain: {-found.chosen.gain.value:.4g}, approximate 95% interval [{-high:.4g}, {-low:.4g}]",
    ):
        assert part in said
    assert "losses are taken to lie" not in said  # the bounds were given
    assert 0 < -high < -low


def test_the_result_shows_the_folds_and_nothing_of_certificates(found):
    shown = repr(found)
    assert "candidates were trained on 160 rows and judged on 200 in 5 folds" in shown
    assert "is estimated to be better" in shown
    assert "likely at least" not in shown
    assert "ertif" not in shown
    chosen = next(row for row in found.table.to_dicts() if row["chosen"])
    assert chosen["gain"] == -found.chosen.gain.value
    assert chosen["gain_likely"] is chosen["units_to_certify"] is None
    assert chosen["learner"] == found.chosen.learner


def test_the_explanation_warns_of_what_is_wrong_with_the_policy(found):
    def explained(effective_n, *problems):
        validation = replace(found.chosen.validation, effective_n=effective_n)
        return replace(found, chosen=replace(found.chosen, problems=problems, validation=validation)).explain()

    marked = "Warning: the policy is marked “propensity overfitting”: its mean weight on held-out rows is far from 1"
    assert marked in explained(99.0, OVERFITS)
    assert "Warning: only 12 effective rows of 200 speak for it" in explained(12.0)
    assert "Warning" not in explained(99.0)


def test_the_explanation_warns_of_estimated_propensities():
    log = poem.estimate_propensities(easy_log(), C=1.0).log
    found = poem.fit(log, learners=FEW, certify=False)
    assert "Warning: propensities are estimated, not logged, and no interval accounts for that" in found.explain()


def test_only_a_certificate_speaks_of_confidence():
    found = poem.fit(easy_log(contexts=40), learners=FEW, selection=poem.Selection(guard=False))
    assert "confidence" not in found.explain()


def test_few_units_are_named():
    log = easy_log(contexts=40)
    found = poem.fit(log.with_groups(np.arange(len(log)) % 3), learners=FEW, certify=False)
    assert found.folds == 3
    assert "3 independent units only" in found.explain()


# ---- the verdict ----------------------------------------------------------------------------------


def of_their_own(x, y, rng):
    """Losses that are linear in the features of each class."""
    return np.sum(x * np.array([[1.0, 0.0], [-1.0, 0.5], [0.0, -1.0]])[y], axis=1) + 0.1 * rng.random(len(y))


def linear_predictions(train, x, bounds):
    model = fit_linear(train, linear_strength(train, 0, Threads()), Threads())
    return model.centre + x @ model.weights[:, :-1] + (x @ model.weights[:, -1])[:, None]


def truth_predictions(train, x, bounds):
    model = fit_for_estimates(train, chosen_strengths(train, bounds, 0, Threads()), bounds, Threads())
    assert model.name == "boosted hidden truth"
    right = special.softmax(x @ model.weights + model.forest.scores(x[:, :-1]), axis=1)[:, :-1]
    return bounds[0] + (bounds[1] - bounds[0]) * (1.0 - right)


@pytest.mark.parametrize(("loss", "predictions"), [(easy, truth_predictions), (of_their_own, linear_predictions)])
def test_the_verdict_is_doubly_robust_by_a_model_that_has_not_seen_the_rows(loss, predictions):
    logger = a_policy(poem.MultiClass(3))
    train, held = logged_by(logger, loss, contexts=200), logged_by(logger, loss, 1, contexts=40, replay=3)
    found = poem.fit(train, learners=FEW, selection=poem.Selection(validation=held), certify=False)
    # What is predicted for each class.
    predicted = predictions(train, np.hstack([held.X, np.ones((40, 1))]), found.calibration.bounds)
    context = held.context
    for candidate in found.table:
        probability = candidate.policy.marginals(held.X)
        ratio = probability[context, held.y] / np.exp(held.log_propensity)
        error = held.loss - predicted[context, held.y]
        u = (probability * predicted).sum(axis=1)[context] + ratio * error
        assert candidate.validation.value == pytest.approx(u.mean(), rel=1e-9)
        assert candidate.gain.value == pytest.approx((u - held.loss).mean(), rel=1e-9)
        by_context = np.bincount(context, u - held.loss) / 3  # the rows of a context are one unit
        assert candidate.gain.stderr == pytest.approx(by_context.std(ddof=1) / np.sqrt(40), rel=1e-9)
        effective = np.bincount(context, ratio)
        assert candidate.gain.freedom == pytest.approx(effective.sum() ** 2 / (effective**2).sum() - 1.0, rel=1e-9)
        assert candidate.gain.mean_weight == pytest.approx(ratio.mean(), rel=1e-9)
        by_unit = effective / 3
        assert candidate.gain.weight_stderr == pytest.approx(by_unit.std() / np.sqrt(40), rel=1e-9)
        worst = max(0.0, np.quantile(error, 0.95))
        assert candidate.gain.room == pytest.approx(worst, rel=1e-9)
        assert candidate.gain.typical == pytest.approx(min(worst, np.sqrt(np.mean(error**2))), rel=1e-9)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_dense_and_sparse_contexts_are_judged_alike(fit_intercept):
    log = easy_log(contexts=80, replay=2)
    given = {"loss": log.loss, "log_propensity": log.log_propensity, "context": log.context, "labels": log.labels}
    sparse = poem.BanditLog(sp.csr_array(log.X), log.y, **given)
    options = {
        "learners": ("direct", "dr"),
        "certify": False,
        "fit_intercept": fit_intercept,
        "selection": poem.Selection(validation=0.25),
    }
    one, two = (poem.fit(either, **options) for either in (log, sparse))
    assert one.chosen.learner == two.chosen.learner
    for ours, theirs in zip(one.table, two.table, strict=True):
        assert ours.gain.value == pytest.approx(theirs.gain.value, abs=1e-3)


# ---- folds ----------------------------------------------------------------------------------------


def test_every_row_is_judged_once_by_a_policy_that_has_not_seen_it(found):
    assert (found.folds, found.n_train, found.n_validation) == (5, 160, 200)
    assert all(candidate.validation.n == 200 for candidate in found.table)
    assert all(candidate.validation.units == 200 for candidate in found.table)


def unit_logs():
    log = easy_log(contexts=60, replay=3)
    groups = np.random.default_rng(0).integers(0, 23, len(log))
    return {"contexts": log, "groups": log.replaced(group=np.array([f"user {group}" for group in groups]))}


@pytest.mark.parametrize("by", ["contexts", "groups"])
@pytest.mark.parametrize("validation", ["auto", 3, 0.3])
def test_units_are_never_split_between_training_and_judging(by, validation):
    log = unit_logs()[by]
    unit_of = dict(zip(log.loss, log.units(), strict=True))  # no two losses are equal
    assert len(unit_of) == len(log)
    splits = splits_of(log, validation, 0, by_unit=True)
    assert len(splits) == {"auto": 5, 3: 3, 0.3: 1}[validation]
    for split in splits:
        assert sorted([*split.train.loss, *split.held.loss]) == sorted(log.loss)
        seen, judged = ({unit_of[loss] for loss in part.loss} for part in (split.train, split.held))
        assert seen.isdisjoint(judged)
        pairs = {(unit_of[loss], unit) for loss, unit in zip(split.held.loss, split.units, strict=True)}
        assert len(pairs) == len({unit for _, unit in pairs}) == len(judged)  # the same units as in the log
    if len(splits) > 1:
        assert sorted(loss for split in splits for loss in split.held.loss) == sorted(log.loss)


@pytest.mark.parametrize("by", ["contexts", "groups"])
def test_a_fit_trains_and_judges_on_these_splits(by, monkeypatch):
    log, seen = unit_logs()[by], []

    def spied(*arguments, **options):
        seen.extend(splits_of(*arguments, **options))
        return seen

    monkeypatch.setattr(sys.modules["poem.learning.stages"], "splits_of", spied)
    found = poem.fit(log, learners=FEW, seed=4, certify=False)
    assert [len(split.train) + len(split.held) for split in seen] == [180] * 5
    assert found.n_train == found.chosen.policy.record.n_train == len(seen[0].train)
    assert found.n_validation == found.chosen.validation.n == 180
    assert found.chosen.validation.units == len(np.unique(log.units()))


def test_losses_of_held_out_rows_do_not_enter_into_the_policy_that_they_judge():
    log = easy_log()
    held = np.isin(log.loss, splits_of(log, 5, 0, by_unit=True)[0].held.loss)
    changed = log.replaced(loss=np.where(held, 1.1 - log.loss, log.loss))
    learner = Learner("IPS", lam=0.1, optimizer=SHORT)
    one, two = (poem.fit(part, learners=learner, loss_bounds=BOUNDS, certify=False) for part in (log, changed))
    assert one.table[0].policy.weights.tobytes() == two.table[0].policy.weights.tobytes()
    assert one.table[0].validation.value != two.table[0].validation.value
    assert one.policy.weights.tobytes() != two.policy.weights.tobytes()


@pytest.mark.parametrize("groups", [5, 4, 2])
def test_with_fewer_than_five_units_each_is_a_fold(groups):
    log = easy_log()
    found = poem.fit(log.with_groups(np.arange(len(log)) % groups), learners=FEW, certify=False)
    assert (found.folds, found.n_validation) == (groups, len(log))


def test_one_unit_alone_speaks_for_nothing():
    with pytest.warns(DegenerateWarning, match="ignores x"):
        found = poem.fit(easy_log(contexts=1, replay=200), learners=FEW, certify=False)
    assert (found.n_train, found.n_validation) == (150, 50)
    assert all(candidate.gain.at_worst(0.6) == np.inf for candidate in found.table)
    assert "the log has 1 independent unit only" in found.explain()


def test_a_log_of_one_group_is_split_by_rows():
    log = easy_log(contexts=40)
    found = poem.fit(log.with_groups(np.zeros(len(log), dtype=int)), learners=FEW, certify=False)
    assert found.folds == 1
    assert 0 < found.n_validation < len(log)


# ---- other ways to hold out -----------------------------------------------------------------------


def test_a_share_is_held_out_once_and_the_recipe_refitted():
    found = poem.fit(easy_log(), learners=FEW, selection=poem.Selection(validation=0.25), certify=False)
    assert (found.folds, found.n_train, found.n_validation) == (1, 120, 40)
    assert found.refitted
    assert found.policy.record.n_train == 160
    assert "candidates were trained on 120 rows and judged on 40;" in repr(found)


def test_any_number_of_folds_can_be_asked_for():
    found = poem.fit(easy_log(), learners=FEW, selection=poem.Selection(validation=3), certify=False)
    assert (found.folds, found.n_train, found.n_validation) == (3, 106, 160)
    assert found.refitted
    assert found.policy.record.n_train == 160


def test_a_learner_of_ones_own_can_be_judged_in_folds_too():
    found = poem.fit(easy_log(), lam=[0.1, 1.0], optimizer=SHORT, selection=poem.Selection(validation=4))
    assert (found.folds, found.n_train, found.n_validation) == (4, 120, 160)
    assert found.refitted
    assert found.policy.record.n_train == 160
    assert found.policy.record.lam == found.chosen.lam
    assert found.chosen.score == min(candidate.score for candidate in found.table)


def test_a_log_of_its_own_is_judged_on_whole_and_never_trained_on():
    held = easy_log(1, contexts=70)
    found = poem.fit(easy_log(), learners=FEW, selection=poem.Selection(validation=held), certify=False)
    assert (found.folds, found.n_train, found.n_validation) == (1, 160, 70)
    assert not found.refitted
    assert np.array_equal(found.policy.weights, found.chosen.policy.weights)
    assert found.policy.record.n_train == 160
    assert "refitted" not in found.explain()
    assert found.logged.value == pytest.approx(held.loss.mean())


@pytest.mark.parametrize("learners", ["auto", ["ips", "dr"], "poem"], ids=repr)
def test_without_held_out_rows_several_candidates_are_refused(learners):
    with pytest.raises(InputError, match="several candidates can be told apart on held-out rows only"):
        poem.fit(easy_log(), learners=learners, selection=poem.Selection(validation=None))


def test_without_held_out_rows_one_candidate_is_all():
    found = poem.fit(easy_log(), learners="ips", selection=poem.Selection(validation=None))
    assert (found.n_train, found.n_validation, found.logged, found.refitted) == (160, 0, None, False)
    assert "Warning: nothing was held out, so that nothing is known of its loss" in found.explain()
    assert "Gain" not in found.explain()


@pytest.mark.parametrize("select_by", ["ips", "snips", poem.SNIPS()], ids=str)
def test_another_judge_takes_the_lowest_estimate_and_certifies_nothing(select_by):
    found = poem.fit(noise_log(), learners=FEW, selection=poem.Selection(select_by=select_by))
    assert (found.origin, found.certificate, found.confidence) == ("learnt", None, None)
    assert found.chosen.score == min(candidate.score for candidate in found.table if not candidate.problems)
