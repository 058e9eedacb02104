"""A fit takes a policy only if it is surely better than the log, and says so."""

import sys
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import special, stats

import poem
from poem.arguments import splits_of
from poem.errors import InputError
from poem.estimators import Estimate
from poem.imitate import Divergence, imitation
from poem.kernel import Threads
from poem.layout import Layout
from poem.learners import AUTO, Learner, Recipe
from poem.loss_models.bounded import bounded_error, fit_bounded
from poem.loss_models.held_out import held_out
from poem.loss_models.linear import fit_linear, linear_strength
from poem.loss_models.truth import HiddenTruth
from poem.optimizers import Trace
from poem.risk import Risk
from poem.select import AVOIDS, IGNORES, OVERFITS, Candidate, Gain, choose_safely

SHORT = poem.LBFGS(max_iterations=20)
# One candidate of each learner of the portfolio, in less time.
BRIEF = tuple(replace(one, sharpness=one.sharpness[-1:], pull=one.pull[-1:], optimizer=SHORT) for one in AUTO)
FEW = ("direct", Learner("POEM", start="direct", multipliers=(1e-2,), pull=(6e-4,), optimizer=SHORT))


def a_policy(structure, seed=0, scale=0.5):
    weights = scale * np.random.default_rng(seed).normal(size=(3, structure.n_scores))
    return poem.Policy(structure, weights, True, tuple(range(structure.n_scores)))


def logged_by(policy, loss, seed=0, contexts=200, replay=1, **more):
    """A log of a policy on two normal features; ``loss`` is a function of (contexts, outputs, rng)."""
    rng = np.random.default_rng([seed, 7])
    X, context = rng.normal(size=(contexts, 2)), np.tile(np.arange(contexts), replay)
    y = policy.sample(X[context], rng)
    given = {"loss": loss(X[context], y, rng), "log_propensity": policy.log_prob(X[context], y)}
    return poem.BanditLog(X, y, context=context, labels=policy.labels, **given, **more)


def noise(x, y, rng):
    return rng.random(len(y))


def best_of(x):
    """The class to choose: by the sector that x points to."""
    return (np.arctan2(x[:, 1], x[:, 0]) > 0) + (x[:, 0] > 0.5)


def easy(x, y, rng):
    return (best_of(x) != y) + 0.1 * rng.random(len(y))


def easy_log(seed=0, **options):
    return logged_by(a_policy(poem.MultiClass(3)), easy, seed, **options)


def noise_log(seed=0, structure=None, **options):
    return logged_by(a_policy(structure or poem.MultiClass(3), seed), noise, seed, **options)


@pytest.fixture(scope="module")
def found():
    """The portfolio on a log from which much can be learnt."""
    return poem.fit(easy_log(), loss_bounds=(0, 1.1))


@pytest.fixture(scope="module")
def fallen():
    """The portfolio on a log from which nothing can be learnt."""
    return poem.fit(noise_log())


def bits_of(found):
    return [found.policy.weights.tobytes(), *(candidate.policy.weights.tobytes() for candidate in found.table)]


def rows_of(found):
    return [{name: value for name, value in row.items() if name != "seconds"} for row in found.table.to_dicts()]


# ---- the bound on a gain --------------------------------------------------------------------------


@pytest.mark.parametrize("freedom", [1.0, 3.7, 50.0, 1e6])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
def test_the_upper_bound_is_student_s(freedom, confidence):
    gain = Gain(-0.3, 0.2, freedom)
    assert gain.upper(confidence) == pytest.approx(-0.3 + 0.2 * stats.t.ppf(confidence, freedom), rel=1e-9)
    assert gain.interval(confidence) == pytest.approx(stats.t.interval(confidence, freedom, -0.3, 0.2), rel=1e-9)


@pytest.mark.parametrize("gain", [Gain(-0.3, 0.2, 0.9), Gain(float("nan"), float("inf"), 50.0)], ids=str)
def test_without_two_effective_rows_nothing_is_bounded(gain):
    assert gain.upper(0.6) == np.inf
    assert gain.interval()[1] == np.inf
    assert not gain.interval()[0] > -np.inf


def test_decisions_that_the_log_lacks_count_against_a_policy():
    whole = Gain(-0.3, 0.2, 30.0)
    lacking = replace(whole, mean_weight=0.8, room=0.5)
    assert lacking.missing == pytest.approx(0.2)
    assert lacking.upper(0.95) == pytest.approx(whole.upper(0.95) + 0.1)
    assert lacking.interval() == pytest.approx((whole.interval()[0], whole.interval()[1] + 0.1))
    assert replace(lacking, mean_weight=1.4).upper(0.95) == whole.upper(0.95)


def test_the_likely_bound_charges_a_typical_error_for_what_chance_does_not_explain():
    whole = Gain(-0.3, 0.2, 30.0)
    assert whole.likely == whole.upper(0.95)
    lacking = replace(whole, mean_weight=0.8, weight_stderr=0.05, typical=0.3, room=0.5)
    assert lacking.likely == pytest.approx(whole.likely + 0.15 * 0.3)
    assert replace(lacking, weight_stderr=0.21).likely == whole.likely
    assert replace(lacking, freedom=0.9).likely == np.inf


# ---- the choice -----------------------------------------------------------------------------------


def candidate_of(value, stderr, *problems, freedom=1000.0, judged=True, **missing):
    policy = a_policy(poem.MultiClass(3))
    gain = Gain(value, stderr, freedom, **missing) if judged else None
    validation = Estimate(0.5 + value, stderr, 1000, 1000, 1.0, 0.0, freedom + 1.0) if judged else None
    recipe = Recipe(Learner("POEM"), 1.0, 0.1, None, 0.0)
    trace = Trace(policy.weights, 0.0, 1, 0.0, True, "")
    return Candidate(policy, recipe, 0.1, 0.0, 1.0, 0.0, validation, gain, problems, 0.0, trace)


def chosen_of(candidates, confidence, successes=1000):
    found, sure = choose_safely(candidates, confidence, successes)
    assert sure == (found is not None)
    return found


def test_the_lowest_bound_is_chosen_and_not_the_lowest_estimate():
    bold, sure, poor = candidate_of(-0.5, 0.15), candidate_of(-0.4, 0.01), candidate_of(-0.1, 0.01)
    assert chosen_of([bold, sure, poor], 0.95) is sure


def test_few_effective_rows_make_a_bound_wide():
    few, many = candidate_of(-0.42, 0.05, freedom=1.2), candidate_of(-0.4, 0.05)
    assert chosen_of([few], 0.95) is few
    assert chosen_of([few, many], 0.95) is many


def test_the_worst_case_decides_what_is_sure_and_the_usual_one_what_is_best():
    near = candidate_of(-0.2, 0.01)
    lacking = {"mean_weight": 0.8, "weight_stderr": 0.1, "typical": 0.2}
    far, reckless = candidate_of(-0.3, 0.01, room=0.6, **lacking), candidate_of(-0.3, 0.01, room=1.5, **lacking)
    assert far.gain.upper(0.95) > near.gain.upper(0.95)
    assert chosen_of([near, far], 0.95) is far
    assert chosen_of([near, reckless], 0.95) is near


def test_the_confidence_holds_for_all_candidates_at_once():
    likely, hopeless = candidate_of(-0.18, 0.1), candidate_of(1.0, 0.1)  # likely: sure by 96.4 %
    assert chosen_of([likely], 0.95) is likely
    assert chosen_of([likely], 0.97) is None
    assert chosen_of([likely, hopeless], 0.95) is None  # 97.5 % each would be needed
    assert chosen_of([likely, hopeless], 0.9) is likely


def test_a_policy_that_avoids_the_log_is_never_chosen():
    avoids, fine = candidate_of(-0.9, 0.01, AVOIDS), candidate_of(-0.1, 0.01)
    assert chosen_of([avoids, fine], 0.95) is fine
    assert chosen_of([avoids], 0.95) is None


@pytest.mark.parametrize("problem", [IGNORES, OVERFITS])
def test_a_healthy_policy_is_preferred_if_it_is_surely_better(problem):
    marked, healthy, unsure = candidate_of(-0.9, 0.01, problem), candidate_of(-0.1, 0.01), candidate_of(-0.1, 1.0)
    assert chosen_of([marked, healthy], 0.95) is healthy
    # Of one that ignores x the estimate can be trusted all the same.
    assert chosen_of([marked, unsure], 0.95) is (marked if problem == IGNORES else None)


def test_nothing_is_chosen_if_nothing_is_surely_better():
    worse, unsure = candidate_of(0.1, 0.01), candidate_of(-0.1, 0.2)
    one_row = candidate_of(-0.9, 0.01, freedom=0.5)
    without_a_number = candidate_of(float("nan"), float("inf"))
    unjudged = candidate_of(0.0, 0.0, judged=False)
    assert chosen_of([worse, unsure, one_row, without_a_number, unjudged], 0.95) is None


def test_where_there_is_nothing_to_lose_the_lowest_estimate_is_tried():
    unsure, worse, avoids = candidate_of(-0.1, 0.2), candidate_of(0.1, 0.01), candidate_of(-0.9, 0.01, AVOIDS)
    assert choose_safely([worse, unsure, avoids], 0.95, 5) == (unsure, False)
    assert choose_safely([worse, unsure, avoids], 0.95, 100) == (None, False)
    assert choose_safely([avoids, worse], 0.95, 5) == (None, False)
    sure = candidate_of(-0.05, 0.001)
    assert choose_safely([worse, unsure, sure], 0.95, 5) == (sure, True)


# ---- a log of noise -------------------------------------------------------------------------------


def test_on_noise_nearly_every_fit_falls_back():
    structures = poem.MultiClass(3), poem.MultiLabel(2)
    logs = [noise_log(seed, structures[seed % 2], contexts=120) for seed in range(20)]
    fits = [poem.fit(log, learners=BRIEF, validation=3, seed=seed) for seed, log in enumerate(logs)]
    assert sum(found.fell_back for found in fits) >= 18


def test_a_fall_back_says_so(fallen):
    assert fallen.fell_back
    assert fallen.chosen is fallen.table[-1]
    assert fallen.chosen.learner == "logging policy"
    said = "Nothing is better than the log with 95% confidence; the policy is a linear imitation of the logging policy"
    assert said in repr(fallen)
    assert f"Chosen: none of {len(fallen.table) - 1} candidates. {said}" in fallen.explain()
    assert "shown to be better" not in repr(fallen)


def test_no_candidate_of_a_fall_back_is_surely_better(fallen):
    each = 1.0 - 0.05 / (len(fallen.table) - 1)
    assert all(candidate.gain.upper(each) >= 0.0 for candidate in fallen.table[:-1] if not candidate.problems)


def test_a_fall_back_does_what_the_logging_policy_did(fallen):
    log, logger = noise_log(), a_policy(poem.MultiClass(3), 0)
    assert fallen.refitted
    assert fallen.policy.training["n_train"] == len(log)
    policies = fallen.policy, poem.uniform_policy(log)
    imitated, uniform = (np.abs(one.marginals(log.X) - logger.marginals(log.X)).mean() for one in policies)
    assert imitated < 0.05
    assert imitated < 0.7 * uniform


def test_a_fall_back_is_on_the_logging_policy_that_was_given():
    logger = a_policy(poem.MultiClass(3), 0)
    found = poem.fit(noise_log(), learners=FEW, logging_policy=logger)
    assert found.fell_back
    np.testing.assert_array_equal(found.policy.weights, logger.weights)
    assert found.chosen.gain.value == pytest.approx(0.0, abs=0.02)


def test_without_the_guard_there_is_no_fall_back():
    found = poem.fit(noise_log(), learners=FEW, guard=False)
    assert not found.fell_back
    assert "logging policy" not in [candidate.learner for candidate in found.table]
    assert found.chosen.score == min(candidate.score for candidate in found.table)


# ---- a log to learn from --------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_on_an_easy_log_the_policy_is_better_in_truth(seed):
    found = poem.fit(easy_log(seed), seed=seed)
    X = np.random.default_rng(100).normal(size=(2000, 2))
    logged, learnt = (one.expected_loss(X, best_of(X)) for one in (a_policy(poem.MultiClass(3)), found.policy))
    assert not found.fell_back
    assert learnt < 0.6 * logged


def test_the_chosen_one_has_the_lowest_likely_bound_of_those_that_are_surely_better(found):
    candidates = [one for one in found.table[:-1] if not one.problems]
    sure = [one for one in candidates if one.gain.upper(1.0 - 0.05 / (len(found.table) - 1)) < 0.0]
    assert found.chosen.gain.likely == min(one.gain.likely for one in sure)
    assert found.chosen.problems == ()


def test_a_gain_is_the_difference_to_what_was_logged(found):
    assert found.logged.value == pytest.approx(easy_log().loss.mean(), rel=1e-12)
    for candidate in found.table:
        assert candidate.gain.value == pytest.approx(candidate.validation.value - found.logged.value, abs=1e-12)


def test_bounds_hold_for_the_loss_in_truth(found):
    X = np.random.default_rng(100).normal(size=(20_000, 2))
    logged = a_policy(poem.MultiClass(3)).expected_loss(X, best_of(X))
    for candidate in found.table:
        gain = candidate.policy.expected_loss(X, best_of(X)) - logged  # the noise in the loss cancels out
        assert candidate.gain.upper(0.999) >= gain - 0.01


def test_the_chosen_recipe_is_followed_on_all_rows(found):
    log, recipe = easy_log(), found.chosen.recipe
    assert found.refitted
    assert not np.array_equal(found.policy.weights, found.chosen.policy.weights)
    assert found.policy.training["n_train"] == len(log) == found.n_rows
    assert found.chosen.policy.training["n_train"] == found.n_train < len(log)
    only = replace(recipe.learner, sharpness=(recipe.sharpness,), pull=(recipe.pull,))
    only = only if recipe.c is None else replace(only, multipliers=(recipe.c,))
    again = poem.fit(log, learners=only, loss_bounds=(0, 1.1), validation=None)
    np.testing.assert_array_equal(again.policy.weights, found.policy.weights)


# ---- what a fit says of itself --------------------------------------------------------------------


def test_the_explanation_holds_the_choice_the_gain_and_the_next_best(found):
    said = found.explain()
    low, high = found.chosen.gain.interval()
    for part in (
        f"Chosen: {found.chosen.learner} (λ {found.chosen.lam:.3g}), one of {len(found.table) - 1} candidates",
        "then refitted on all 200 rows",
        f"Against: a logged loss of {found.logged.value:.4g} on 200 held-out rows in 5 folds",
        f"its own is estimated at {found.chosen.validation}",
        f"Gain: {-found.chosen.gain.value:.4g}, 95 % interval [{-high:.4g}, {-low:.4g}]",
        "Next: ",
    ):
        assert part in said
    assert "losses are taken to lie" not in said  # the bounds were given
    assert 0 < -high < -low


def test_the_next_best_is_of_another_learner(found):
    (line,) = (line for line in found.explain().splitlines() if line.startswith("Next: "))
    name = found.chosen.recipe.learner.name
    others = [c for c in found.table if c.recipe.learner.name != name and not c.problems]
    second = min(others, key=lambda candidate: candidate.gain.likely)
    assert line == f"Next: {second.learner} (λ {second.lam:.3g}), estimated at {second.validation}."


def test_the_result_shows_the_folds_and_the_bounds(found):
    shown = repr(found)
    assert "trained on 160 rows, selected on 200 in 5 folds" in shown
    assert "the chosen recipe was then followed on all 200 rows" in shown
    assert "likely gain  gain for sure" in shown
    assert "is estimated to be better" in shown
    chosen = next(row for row in found.table.to_dicts() if row["chosen"])
    assert chosen["gain"] == -found.chosen.gain.value
    assert chosen["gain_likely"] == -found.chosen.gain.likely
    assert chosen["gain_at_least"] == -found.chosen.gain.upper(1.0 - 0.05 / (len(found.table) - 1))
    assert chosen["learner"] == found.chosen.learner


def test_the_explanation_warns_of_bounds_taken_from_the_log(fallen):
    low, high = fallen.calibration.bounds
    assert f"Warning: losses are taken to lie in [{low:.4g}, {high:.4g}], as in the log" in fallen.explain()


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
    found = poem.fit(log, learners=FEW)
    assert "Warning: propensities are estimated, not logged, and no interval accounts for that" in found.explain()


# ---- the verdict ----------------------------------------------------------------------------------


def of_their_own(x, y, rng):
    """Losses that are linear in the features of each class."""
    return np.sum(x * np.array([[1.0, 0.0], [-1.0, 0.5], [0.0, -1.0]])[y], axis=1) + 0.1 * rng.random(len(y))


def linear_predictions(train, x, bounds):
    model = fit_linear(train, linear_strength(train, 0, Threads()), Threads())
    return model.centre + x @ model.weights[:, :-1] + (x @ model.weights[:, -1])[:, None]


def truth_predictions(train, x, bounds):
    strength, _ = bounded_error(HiddenTruth, train, held_out(train, 0), bounds, Threads())
    right = special.softmax(x @ fit_bounded(HiddenTruth, train, strength, bounds, Threads()), axis=1)[:, :-1]
    return bounds[0] + (bounds[1] - bounds[0]) * (1.0 - right)


@pytest.mark.parametrize(("loss", "predictions"), [(easy, truth_predictions), (of_their_own, linear_predictions)])
def test_the_verdict_is_doubly_robust_by_a_model_that_has_not_seen_the_rows(loss, predictions):
    logger = a_policy(poem.MultiClass(3))
    train, held = logged_by(logger, loss), logged_by(logger, loss, 1, contexts=40, replay=3)
    found = poem.fit(train, learners=FEW, validation=held)
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
    options = {"learners": ("direct", "dr"), "validation": 0.25, "fit_intercept": fit_intercept}
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
    return {"contexts": log, "groups": log._with(group=np.array([f"user {group}" for group in groups]))}


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

    monkeypatch.setattr(sys.modules["poem.fit"], "splits_of", spied)
    found = poem.fit(log, learners=FEW, seed=4)
    assert [len(split.train) + len(split.held) for split in seen] == [180] * 5
    assert found.n_train == found.chosen.policy.training["n_train"] == len(seen[0].train)
    assert found.n_validation == found.chosen.validation.n == 180
    assert found.chosen.validation.units == len(np.unique(log.units()))


def test_losses_of_held_out_rows_do_not_enter_into_the_policy_that_they_judge():
    log = easy_log()
    held = np.isin(log.loss, splits_of(log, 5, 0, by_unit=True)[0].held.loss)
    changed = log._with(loss=np.where(held, 1.1 - log.loss, log.loss))
    learner = Learner("IPS", lam=0.1, optimizer=SHORT)
    one, two = (poem.fit(part, learners=learner, loss_bounds=(0, 1.1)) for part in (log, changed))
    assert one.table[0].policy.weights.tobytes() == two.table[0].policy.weights.tobytes()
    assert one.table[0].validation.value != two.table[0].validation.value
    assert one.policy.weights.tobytes() != two.policy.weights.tobytes()


@pytest.mark.parametrize("groups", [5, 4, 2])
def test_with_fewer_than_five_units_each_is_a_fold(groups):
    log = easy_log()
    found = poem.fit(log.with_groups(np.arange(200) % groups), learners=FEW)
    assert (found.folds, found.n_validation) == (groups, 200)


def test_one_unit_alone_speaks_for_nothing():
    found = poem.fit(easy_log(contexts=1, replay=200), learners=FEW)
    assert (found.n_train, found.n_validation, found.fell_back) == (150, 50, True)
    assert all(candidate.gain.upper(0.6) == np.inf for candidate in found.table)
    assert "Nothing is better" in found.explain()


# ---- other ways to hold out -----------------------------------------------------------------------


def test_a_share_is_held_out_once_and_the_recipe_refitted():
    found = poem.fit(easy_log(), learners=FEW, validation=0.25)
    assert (found.folds, found.n_train, found.n_validation) == (1, 150, 50)
    assert found.refitted
    assert found.policy.training["n_train"] == 200
    assert "trained on 150 rows, selected on 50;" in repr(found)


def test_any_number_of_folds_can_be_asked_for():
    found = poem.fit(easy_log(), learners=FEW, validation=3)
    assert (found.folds, found.n_train, found.n_validation) == (3, 133, 200)
    assert found.refitted
    assert found.policy.training["n_train"] == 200


def test_a_learner_of_ones_own_can_be_judged_in_folds_too():
    found = poem.fit(easy_log(), lam=[0.1, 1.0], optimizer=SHORT, validation=4)
    assert (found.folds, found.n_train, found.n_validation) == (4, 150, 200)
    assert found.refitted
    assert found.policy.training["n_train"] == 200
    assert found.policy.training["lam"] == found.chosen.lam
    assert found.chosen.score == min(candidate.score for candidate in found.table)


def test_a_log_of_its_own_is_judged_on_whole_and_never_trained_on():
    held = easy_log(1, contexts=70)
    found = poem.fit(easy_log(), learners=FEW, validation=held)
    assert (found.folds, found.n_train, found.n_validation) == (1, 200, 70)
    assert not found.refitted
    assert np.array_equal(found.policy.weights, found.chosen.policy.weights)
    assert found.policy.training["n_train"] == 200
    assert "refitted" not in found.explain()
    assert found.logged.value == pytest.approx(held.loss.mean())


@pytest.mark.parametrize("learners", ["auto", ["ips", "dr"], "poem"], ids=repr)
def test_without_held_out_rows_several_candidates_are_refused(learners):
    with pytest.raises(InputError, match="several candidates can be told apart on held-out rows only"):
        poem.fit(easy_log(), learners=learners, validation=None)


def test_without_held_out_rows_one_candidate_is_all():
    found = poem.fit(easy_log(), learners="ips", validation=None)
    assert (found.n_train, found.n_validation, found.logged, found.refitted) == (200, 0, None, False)
    assert "Warning: nothing was held out, so that nothing is known of its loss" in found.explain()
    assert "Gain" not in found.explain()


@pytest.mark.parametrize("select_by", ["ips", "snips", poem.SNIPS()], ids=str)
def test_another_judge_takes_the_lowest_estimate_and_never_falls_back(select_by):
    found = poem.fit(noise_log(), learners=FEW, select_by=select_by)
    assert (found.fell_back, found.confidence) == (False, None)
    assert found.chosen.score == min(candidate.score for candidate in found.table if not candidate.problems)


def test_the_safe_rule_can_be_asked_for_with_a_learner_of_ones_own():
    found = poem.fit(noise_log(), lam=0.1, optimizer=SHORT, select_by="dr")
    assert found.fell_back
    assert (found.folds, found.confidence) == (5, 0.95)


def test_more_confidence_makes_a_fit_fall_back():
    log = easy_log(contexts=40)
    sure, surer = (poem.fit(log, learners=FEW, confidence=confidence) for confidence in (0.5, 1.0 - 1e-12))
    assert (sure.fell_back, surer.fell_back) == (False, True)
    assert "with 100% confidence" in repr(surer)


# ---- the answer depends on the seed only ----------------------------------------------------------


@pytest.mark.parametrize("structure", [poem.MultiClass(3), poem.MultiLabel(2)], ids=str)
def test_the_number_of_jobs_changes_nothing(structure):
    log = noise_log(structure=structure, contexts=60, replay=2)
    one, two = (poem.fit(log, learners=BRIEF, n_jobs=jobs) for jobs in (1, 2))
    assert bits_of(one) == bits_of(two)
    assert rows_of(one) == rows_of(two)
    assert one.explain() == two.explain()


def test_a_seed_makes_a_fit_reproducible_and_another_one_deals_other_folds(found):
    again, other = (poem.fit(easy_log(), loss_bounds=(0, 1.1), seed=seed) for seed in (0, 1))
    assert bits_of(again) == bits_of(found)
    assert rows_of(again) == rows_of(found)
    assert bits_of(other) != bits_of(found)
    assert other.chosen.validation.value != found.chosen.validation.value


# ---- checkpoints ----------------------------------------------------------------------------------


@pytest.fixture
def minimised(monkeypatch):
    """Counts the minimisations of candidates, but not of what they share, and can end them as Ctrl-C does."""
    counts = {"done": 0, "stop_after": 10**9}
    plain = poem.LBFGS.minimize

    def minimize(self, problem, *arguments, **options):
        if not isinstance(problem, Risk) or isinstance(problem.estimator, Divergence):
            return plain(self, problem, *arguments, **options)
        if counts["done"] >= counts["stop_after"]:
            raise KeyboardInterrupt
        counts["done"] += 1
        return plain(self, problem, *arguments, **options)

    monkeypatch.setattr(poem.LBFGS, "minimize", minimize)
    return counts


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupted_portfolio_resumes(found, minimised, tmp_path, jobs):
    options = {"loss_bounds": (0, 1.1), "n_jobs": jobs, "checkpoint": tmp_path}
    minimised["stop_after"] = 23
    with pytest.raises(KeyboardInterrupt):
        poem.fit(easy_log(), **options)
    kept = len(list(tmp_path.glob("candidate-*.poem")))
    assert kept >= 20
    minimised.update(done=0, stop_after=10**9)
    resumed = poem.fit(easy_log(), **options)
    assert bits_of(resumed) == bits_of(found)
    assert rows_of(resumed) == rows_of(found)
    optimised = sum(candidate.recipe.learner.estimator is not None for candidate in found.table)
    refits = found.chosen.recipe.learner.estimator is not None
    left = 5 * optimised + refits - 23
    assert left <= minimised["done"] < left + jobs  # what another thread had under way is done again


def test_a_portfolio_interrupted_before_its_refit_resumes(found, tmp_path):
    options = {"loss_bounds": (0, 1.1), "checkpoint": tmp_path}
    poem.fit(easy_log(), **options)
    last = tmp_path / f"candidate-{5 * len(found.table)}.poem"
    last.unlink()
    assert bits_of(poem.fit(easy_log(), **options)) == bits_of(found)
    assert last.exists()


def test_a_finished_portfolio_is_not_done_again(found, minimised, tmp_path):
    options = {"loss_bounds": (0, 1.1), "checkpoint": tmp_path}
    first = poem.fit(easy_log(), **options)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"fit.json", *(f"candidate-{number}.poem" for number in range(5 * len(found.table) + 1))}
    minimised["done"] = 0
    second = poem.fit(easy_log(), **options)
    assert minimised["done"] == 0
    assert bits_of(first) == bits_of(second) == bits_of(found)
    assert second.policy.training == first.policy.training
    assert second.table.to_dicts() == first.table.to_dicts()


CHANGES = [{"learners": "direct"}, {"validation": 3}, {"seed": 1}, {"guard": False}, {"loss_bounds": (0, 2)}]


@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_a_folder_of_another_portfolio_is_refused(tmp_path, changes):
    options = {"learners": FEW, "checkpoint": tmp_path}
    poem.fit(easy_log(), **options)
    with pytest.raises(poem.PoemError, match="belongs to another log or to other settings"):
        poem.fit(easy_log(), **options | changes)


def test_a_folder_of_another_logging_policy_is_refused(tmp_path):
    options = {"learners": FEW, "checkpoint": tmp_path}
    poem.fit(easy_log(), logging_policy=a_policy(poem.MultiClass(3)), **options)
    with pytest.raises(poem.PoemError, match="belongs to another log or to other settings"):
        poem.fit(easy_log(), logging_policy=a_policy(poem.MultiClass(3), seed=1), **options)


# ---- corners ------------------------------------------------------------------------------------


def test_a_checkpoint_of_another_confidence_is_refused(tmp_path):
    log = easy_log(contexts=40)
    poem.fit(log, learners=FEW, checkpoint=tmp_path, confidence=0.5)
    with pytest.raises(poem.PoemError, match="other settings"):
        poem.fit(log, learners=FEW, checkpoint=tmp_path, confidence=0.9)


def test_a_log_of_one_group_is_split_by_rows():
    log = easy_log(contexts=40)
    found = poem.fit(log.with_groups(np.zeros(len(log), dtype=int)), learners=FEW)
    assert found.folds == 1
    assert 0 < found.n_validation < len(log)


def test_only_the_safe_rule_speaks_of_confidence():
    found = poem.fit(easy_log(contexts=40), learners=FEW, guard=False)
    assert "not shown to be better" not in found.explain()


def test_the_logging_policy_is_imitated_for_thousands_of_labels():
    rng, q = np.random.default_rng(0), 3000
    policy = poem.Policy(poem.MultiLabel(q), 4 * rng.normal(size=(6, q)), True, tuple(range(q)))
    X = rng.normal(size=(200, 5))
    y = policy.sample(X, rng)
    log = poem.BanditLog(X, y, loss=rng.random(200), log_propensity=policy.log_prob(X, y), labels=range(q))
    weights = imitation(Layout(log, policy.structure, True), Threads())
    assert np.corrcoef(weights.ravel(), policy.weights.ravel())[0, 1] > 0.9


def test_a_poor_imitation_is_called_one():
    rng, n = np.random.default_rng(0), 400
    X = rng.choice([-1.0, 1.0], size=(n, 2)) + 0.1 * rng.normal(size=(n, 2))
    best = (X[:, 0] * X[:, 1] > 0).astype(int)  # which no linear policy can do
    y = np.where(rng.random(n) < 0.95, best, 1 - best)
    log = poem.BanditLog(X, y, loss=(y != best) * 1.0, propensity=np.where(y == best, 0.95, 0.05))
    found = poem.fit(log, learners=FEW)
    assert found.fell_back
    assert "the imitation is worse than the logging policy itself" in found.explain()


def test_rare_successes_are_protected_if_there_are_enough_to_know():
    rng = np.random.default_rng(1)
    for n, falls_back in ((3000, True), (200, False)):
        X, y = rng.normal(size=(n, 2)), rng.integers(0, 3, n)
        clicked = np.arange(n) % 100 == 0  # one in a hundred, whatever was chosen
        found = poem.fit(poem.BanditLog(X, y, reward=clicked, propensity=np.full(n, 1 / 3)), learners=FEW)
        assert found.fell_back or not found.sure
        assert found.fell_back >= falls_back


def test_few_units_are_named():
    log = easy_log(contexts=40)
    found = poem.fit(log.with_groups(np.arange(len(log)) % 3), learners=FEW)
    assert found.folds == 3
    assert "3 independent units only" in found.explain()
