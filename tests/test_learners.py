"""Learners are combinations of the same parts, by name or as objects."""

from dataclasses import replace

import numpy as np
import pytest

import poem
from poem.errors import InputError
from poem.learning import LEARNERS
from poem.learning.portfolio import AUTO, MULTIPLIERS, NAMED, PULLS, Learner, Recipe, learners_for

NAMES = ["ips", "poem", "norm-poem", "direct", "dr", "ix", "ls"]
SHORT = poem.LBFGS(max_iterations=20)
ONCE = {"seed": 1, "selection": poem.Selection(validation=0.25)}  # one fold only
every_kind = pytest.mark.parametrize("kind", ["labels", "classes"])


@pytest.fixture
def log(kind, label_log, class_log):
    return label_log if kind == "labels" else class_log


@pytest.fixture
def logger(kind, label_logger, class_logger):
    return label_logger if kind == "labels" else class_logger


def alone(log, learner, **options):
    """The policy that a learner of one candidate makes of all rows."""
    return poem.fit(log, learners=learner, selection=poem.Selection(validation=None, guard=False), **options).policy


# ---- names ----------------------------------------------------------------------------------------


def test_every_name_stands_for_a_learner():
    assert list(NAMED) == list(LEARNERS) == [*NAMES, "trees", "leaves"]
    for name in NAMED:
        assert learners_for(name, False) == (NAMED[name],)
    assert learners_for(["ls", "ips"], False) == (NAMED["ls"], NAMED["ips"])
    assert learners_for("auto", False) == AUTO


def test_learners_may_be_objects_and_names_together():
    mine = Learner("mine", poem.IPS(5.0))
    assert learners_for(mine, False) == (mine,)
    assert learners_for(("poem", mine), False) == (NAMED["poem"], mine)


@pytest.mark.parametrize("learners", ["boost", ["poem", "boost"], ("boost",)], ids=repr)
def test_an_unknown_name_is_answered_with_the_known_ones(label_log, learners):
    known = "auto, ips, poem, norm-poem, direct, dr, ix, ls, trees, leaves"
    with pytest.raises(InputError, match=f"there is no learner 'boost'; choose from {known}"):
        poem.fit(label_log, learners=learners)


@pytest.mark.parametrize("learners", [3, None, [], {}], ids=repr)
def test_what_is_no_learner_is_refused(label_log, learners):
    with pytest.raises(InputError, match=r"learners must be 'auto', names or poem\.Learner objects; found"):
        poem.fit(label_log, learners=learners)


@pytest.mark.parametrize(
    "own", [{"lam": 0.1}, {"lam": "auto"}, {"l2": 0.0}, {"estimator": poem.SNIPS()}, {"optimizer": SHORT}], ids=repr
)
def test_learners_and_a_learner_of_ones_own_do_not_go_together(label_log, own):
    with pytest.raises(InputError, match="pass learners=, or a learner of your own by estimator=, lam=, l2= and optim"):
        poem.fit(label_log, learners="poem", **own)


# ---- recipes --------------------------------------------------------------------------------------

LABELS = {
    "IPS": Learner("IPS", lam=0.0),
    "POEM, from the start": Learner("POEM", start="given"),
    "POEM, from direct": Learner("POEM", start="direct"),
    "POEM, from the logging policy": Learner("POEM", start="logging"),
    "POEM, from direct, pull 6e-05": Learner("POEM", start="direct", pull=(6e-5,)),
    "POEM, from direct, sharpness 4, pull 1e-01": Learner("POEM", start="direct", sharpness=(4.0, 8.0), pull=(0.1,)),
    "start": Learner("start", None, "given"),
    "direct method, sharpness 0.5": Learner("direct method", None, "direct", sharpness=(0.5, 2.0)),
}


@pytest.mark.parametrize("label", LABELS)
def test_a_recipe_is_called_by_what_tells_it_apart(label):
    assert LABELS[label].recipes()[0].label == label


def labels_of(learners):
    return [recipe.label for learner in learners for recipe in learner.recipes()]


NUMBERS = {"ips": 1, "poem": 7, "norm-poem": 7, "direct": 5, "dr": 4, "ix": 2, "ls": 2}


@pytest.mark.parametrize("name", NAMES)
def test_a_learner_has_one_recipe_for_each_combination_of_its_strengths(name):
    recipes = NAMED[name].recipes()
    assert len(set(recipes)) == len(recipes) == NUMBERS[name]
    assert all(recipe.learner is NAMED[name] for recipe in recipes)


def test_the_candidates_of_the_portfolio_can_be_told_apart():
    labels = labels_of(AUTO)
    assert len(set(labels)) == len(labels)


def test_recipes_go_by_lambda_in_ascending_order():
    learner = Learner("mine", start="direct", sharpness=(2.0, 4.0), lam=[3.0, 1.0], pull=(0.0, 0.1))
    found = [(recipe.lam, recipe.c, recipe.sharpness, recipe.pull) for recipe in learner.recipes()]
    assert found == [(lam, None, s, p) for lam in (1.0, 3.0) for s in (2.0, 4.0) for p in (0.0, 0.1)]
    assert [recipe.c for recipe in Learner("mine").recipes()] == list(MULTIPLIERS)


def test_only_a_start_that_has_a_scale_can_be_sharpened():
    for start, wanted in (("zero", [1.0]), ("given", [1.0]), ("direct", [2.0, 4.0]), ("logging", [2.0, 4.0])):
        learner = Learner("mine", start=start, sharpness=(2.0, 4.0), lam=0.1)
        assert [recipe.sharpness for recipe in learner.recipes()] == wanted


def test_lambda_is_a_number_or_a_multiple_of_lambda_star():
    assert Recipe(NAMED["poem"], 1.0, 0.0, 0.01, 0.0).lam_for(50.0) == 0.5
    assert Recipe(NAMED["poem"], 1.0, 3.0, None, 0.0).lam_for(50.0) == 3.0


@pytest.mark.parametrize("lam", ["large", -1.0, [0.1, float("nan")], [], [[0.1]]], ids=repr)
def test_the_lambda_of_a_learner_is_checked(label_log, lam):
    with pytest.raises(InputError, match="lam must be"):
        poem.fit(label_log, learners=Learner("mine", lam=lam))


def test_what_needs_a_loss_model_is_known():
    wants = {name for name in NAMES if NAMED[name].recipes()[0].needs_model}
    assert wants == {"direct", "dr", "ix", "ls"}
    assert Learner("mine", poem.DoublyRobust("auto")).recipes()[0].needs_model


# ---- every learner learns -------------------------------------------------------------------------


@every_kind
@pytest.mark.parametrize("name", NAMES)
def test_every_learner_learns(log, logger, kind, name, label_data, class_data):
    found = poem.fit(log, learners=name, certify=False, **ONCE)
    candidates = found.table
    assert [candidate.learner for candidate in candidates] == labels_of([NAMED[name]])
    for policy in (found.policy, *(candidate.policy for candidate in found.table)):
        assert policy.weights.shape == (13, 4)
        assert np.isfinite(policy.weights).all()
    assert all(np.isfinite(candidate.gain.value) for candidate in found.table)
    assert all(candidate.policy.record.learner == NAMED[name].name for candidate in candidates)

    data = label_data if kind == "labels" else class_data
    logged, learnt = logger.expected_loss(*data), found.policy.expected_loss(*data)
    assert learnt < (1.1 if kind == "labels" and name in ("ips", "poem") else 0.9) * logged


def test_a_learner_of_ones_own_making_is_followed(label_log):
    mine = Learner("mine", poem.IPS(5.0), lam=[1.0, 0.1], l2=0.02, optimizer=SHORT)
    found = poem.fit(label_log, learners=mine, **ONCE)
    assert [(candidate.learner, candidate.lam) for candidate in found.table[:-1]] == [("mine", 0.1), ("mine", 1.0)]
    record = found.table[0].policy.record
    assert (record.learner, record.start, record.lam) == ("mine", "zero", 0.1)
    shown = {"estimator": "IPS", "clip": 5.0, "l2": 0.02, "optimizer": SHORT.settings()}
    assert shown.items() <= record.settings.items()


def test_a_learner_of_the_same_parts_makes_the_same_policy(label_log):
    by_parts = poem.fit(
        label_log, estimator=poem.SNIPS(), lam=0.1, l2=0.02, optimizer=SHORT, selection=poem.Selection(validation=None)
    )
    by_learner = alone(label_log, Learner("mine", poem.SNIPS(), lam=0.1, l2=0.02, optimizer=SHORT))
    np.testing.assert_array_equal(by_parts.policy.weights, by_learner.weights)


# ---- a learner of one's own, by arguments ---------------------------------------------------------

OWN = {
    "POEM": {"lam": "auto"},
    "IPS": {"lam": 0},
    "Norm-POEM": {"estimator": poem.SNIPS()},
    "SNIPS": {"estimator": poem.SNIPS(), "lam": 0.0},
    "DR": {"estimator": poem.DoublyRobust("auto"), "lam": 0.1},
    "IX": {"estimator": poem.ImplicitExploration(), "lam": 0.1},
    "LS": {"estimator": poem.LogSmoothing(), "lam": 0.1},
}


@every_kind
@pytest.mark.parametrize("name", OWN)
def test_a_learner_of_ones_own_is_called_by_what_it_is(log, name):
    found = poem.fit(log, optimizer=SHORT, selection=poem.Selection(guard=False), **OWN[name])
    assert {candidate.learner for candidate in found.table} == {name}
    assert found.policy.record.learner == name
    assert np.isfinite(found.policy.weights).all()
    assert (found.folds, found.refitted, found.origin, found.confidence) == (1, False, "learnt", None)


@pytest.mark.parametrize("own", [{"l2": 0.01}, {"optimizer": SHORT}], ids=repr)
def test_a_learner_of_ones_own_is_poem_unless_told_otherwise(label_log, own):
    found = poem.fit(label_log, selection=poem.Selection(guard=False), **own)
    assert [candidate.c for candidate in found.table] == list(MULTIPLIERS)
    assert {candidate.learner for candidate in found.table} == {"POEM"}


# ---- starts ---------------------------------------------------------------------------------------


@every_kind
def test_the_portfolio_tries_a_given_start_and_learns_from_it(log, logger):
    start = logger.at_temperature(2.0)
    found = poem.fit(log, start=start, **ONCE)
    from_start = ["DR-CRM, from the start", "POEM, from the start", "Norm-POEM, from the start"]
    more = ["start", *(f"{name}, pull {pull:.0e}" for name in from_start for pull in PULLS)]
    assert [candidate.learner for candidate in found.table] == [*labels_of(AUTO), *more, "logging policy"]
    itself, *learnt = found.table[len(labels_of(AUTO)) : -1]
    np.testing.assert_array_equal(itself.policy.weights, start.weights)
    assert not any(np.array_equal(candidate.policy.weights, start.weights) for candidate in learnt)


def test_a_start_that_nothing_beats_is_as_good_as_taken(label_log, label_data):
    best = poem.supervised(*label_data, C=100.0)
    found = poem.fit(label_log, start=best, certify=False, **ONCE)
    (itself,) = (candidate for candidate in found.table if candidate.learner == "start")
    assert found.chosen.gain.likely <= itself.gain.likely
    assert found.policy.expected_loss(*label_data) < 1.2 * best.expected_loss(*label_data) + 0.05


def test_named_learners_begin_at_a_given_start(label_log, label_logger):
    found = poem.fit(label_log, learners=["poem", "dr"], start=label_logger, **ONCE)
    from_start = labels_of(replace(NAMED[name], start="given") for name in ("poem", "dr"))
    assert [candidate.learner for candidate in found.table] == [*from_start, "logging policy"]
    assert all(", from the start" in label for label in from_start)
    first = found.table[0].trace.curve[0][1]
    scaled = found.calibration.scale(label_log.loss)
    assert first == pytest.approx(scaled.mean(), abs=0.05)  # the logging policy's own objective


@every_kind
def test_a_strong_pull_leaves_the_start_as_it_is(log, logger):
    held = Learner("held", poem.IPS(), "given", lam=0.1, pull=(1e6,), optimizer=SHORT)
    np.testing.assert_allclose(alone(log, held, start=logger).weights, logger.weights, atol=1e-4)
    free = replace(held, pull=(0.0,))
    assert np.abs(alone(log, free, start=logger).weights - logger.weights).max() > 0.1


@every_kind
@pytest.mark.parametrize("intercept", [True, False])
def test_scores_of_the_direct_method_are_as_spread_as_its_sharpness_says(log, intercept):
    direct = Learner("direct", None, "direct", sharpness=(8.0,))
    policy = alone(log, direct, fit_intercept=intercept)
    X = np.hstack([log.X, np.ones((len(log.X), 1))]) if intercept else log.X
    assert np.std(X @ policy.weights) == pytest.approx(8.0, rel=1e-6)
    sharper = alone(log, replace(direct, sharpness=(16.0,)), fit_intercept=intercept)
    np.testing.assert_allclose(sharper.weights, 2.0 * policy.weights, rtol=1e-12)


@every_kind
def test_the_direct_method_prefers_what_the_loss_model_likes(log, kind, label_data, class_data):
    X, truth = label_data if kind == "labels" else class_data
    policy = alone(log, Learner("direct", None, "direct"))
    assert policy.map_loss(X, truth) < 0.5 * poem.uniform_policy(log).expected_loss(X, truth)


@every_kind
def test_the_logging_policy_is_sharpened_by_a_factor(log):
    learner = Learner("imitated", None, "logging", sharpness=(1.0,))
    once, thrice = (alone(log, replace(learner, sharpness=(sharpness,))) for sharpness in (1.0, 3.0))
    np.testing.assert_allclose(thrice.weights, 3.0 * once.weights, rtol=1e-12)


@every_kind
def test_a_given_logging_policy_is_not_imitated(log, logger):
    learner = Learner("imitated", None, "logging", sharpness=(1.0,))
    np.testing.assert_array_equal(alone(log, learner, logging_policy=logger).weights, logger.weights)
    assert np.abs(alone(log, learner).weights - logger.weights).max() > 0.01


# ---- what a learner may not be ------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [
        {"start": "nowhere"},
        {"estimator": poem.SwitchDR(1.0)},
        {"estimator": "ips"},
        {"optimizer": "lbfgs"},
        {"pull": ()},
        {"pull": -1.0},
        {"sharpness": (np.nan,)},
        {"multipliers": ()},
        {"pull": "x"},
        {"l2": -1.0},
    ],
    ids=str,
)
def test_parts_of_a_wrong_kind_are_refused(fields):
    with pytest.raises(poem.PoemError, match="of a learner must"):
        poem.Learner("mine", **fields)


def test_one_number_stands_for_itself():
    learner = poem.Learner("mine", start="direct", sharpness=4.0, pull=0.1)
    assert (learner.sharpness, learner.pull) == ((4.0,), (0.1,))


def test_a_learner_from_a_start_needs_one(label_log):
    with pytest.raises(poem.PoemError, match="no start= was passed"):
        poem.fit(label_log, learners=poem.Learner("mine", start="given"))


def test_a_start_that_no_learner_begins_from_is_refused(label_log, label_logger):
    with pytest.raises(poem.PoemError, match="none of these learners begins from it"):
        poem.fit(label_log, learners="direct", start=label_logger)


@pytest.mark.parametrize("start", ["a.poem", object(), poem.IPS()], ids=["path", "object", "estimator"])
def test_a_start_of_no_kind_is_refused(label_log, start):
    with pytest.raises(poem.PoemError, match="start must be a policy or its weights"):
        poem.fit(label_log, start=start)


def test_auto_may_be_one_of_several(label_log):
    names = {learner.name for learner in learners_for(["auto", "ls"], False)}
    assert {"LS", "DR-CRM", "direct method"} <= names


def test_a_policy_of_another_structure_is_no_start(class_log):
    k = len(class_log.labels)
    labels = poem.Policy(poem.MultiLabel(k), np.zeros((class_log.n_features + 1, k)), True, class_log.labels)
    for name in ("start", "logging_policy"):
        with pytest.raises(poem.PoemError, match=f"{name} does not fit the log: its outputs are {k} yes/no labels"):
            poem.fit(class_log, **{name: labels})
