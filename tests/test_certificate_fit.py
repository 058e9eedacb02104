"""A fit returns what it has certified on rows that nothing has seen, the logging policy, or nothing."""

import re
from dataclasses import replace
from shutil import copytree
from types import SimpleNamespace

import numpy as np
import pytest
from easy_logs import BRIEF, FEW, SHORT, a_policy, best_of, bits_of, easy_log, noise_log, rows_of

import poem
from benchmarks.worlds import WORLDS
from poem.compute.kernels import Threads
from poem.data.layout import Layout
from poem.learning.selection import AVOIDS, OVERFITS
from poem.learning.training import Training
from poem.objectives.likelihood import Divergence, imitation
from poem.objectives.risk import Risk

BOUNDS = (0, 1.1)


def rule_log():
    """Where x0 > 0.5, class 0 is always chosen: the log has no support for others there."""
    world = WORLDS["rule"]
    return world.sample(400, world.rng(400, 0)).log


def rich_log():
    """One from which much can be learnt, by trees as well."""
    return easy_log(contexts=200)


@pytest.fixture(scope="module")
def found():
    """The portfolio on a log from which much can be learnt."""
    return poem.fit(rich_log(), loss_bounds=BOUNDS)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The same with a checkpoint: the result, its folder, and the number of minimisations that it took."""
    folder = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        counts = counted(patch)
        result = poem.fit(rich_log(), loss_bounds=BOUNDS, checkpoint=folder)
    return SimpleNamespace(result=result, folder=folder, minimisations=counts["done"])


@pytest.fixture(scope="module")
def nothing():
    """The portfolio on a log from which nothing can be learnt."""
    return poem.fit(noise_log())


# ---- a log of noise -------------------------------------------------------------------------------


def test_on_noise_nearly_nothing_is_certified():
    structures = poem.MultiClass(3), poem.MultiLabel(2)
    logs = [noise_log(seed, structures[seed % 2], contexts=120) for seed in range(20)]
    fits = [
        poem.fit(log, learners=BRIEF, selection=poem.Selection(validation=3), seed=seed)
        for seed, log in enumerate(logs)
    ]
    assert sum(found.certified for found in fits) <= 1


def test_without_a_certificate_there_is_no_policy_and_the_result_says_so(nothing):
    assert (nothing.origin, nothing.policy, nothing.certified) == ("none", None, False)
    assert nothing.certificate is None or nothing.certificate.gain_at_least <= 0.0
    assert repr(nothing).startswith("no policy\n")
    assert "Not certified: " in repr(nothing)
    said = nothing.explain()
    assert f"Best: {nothing.chosen.learner} " in said
    assert f"of {len(nothing.table) - 1} candidates." in said
    assert "Not certified: " in said
    assert "There is no policy: keep what is running." in said
    assert "better" not in said.replace("do not show that it is better", "").replace("no candidate did better", "")


def test_the_explanation_warns_of_bounds_taken_from_the_log(nothing):
    low, high = nothing.calibration.bounds
    assert f"Warning: losses are taken to lie in [{low:.4g}, {high:.4g}], as in the log" in nothing.explain()


def test_an_imitation_is_returned_to_those_who_ask(nothing):
    log, logger = noise_log(), a_policy(poem.MultiClass(3), 0)
    found = poem.fit(log, selection=poem.Selection(imitate=True))
    assert (found.origin, found.certified) == ("imitation", False)
    assert found.certificate.gain_at_least == nothing.certificate.gain_at_least
    assert found.policy.record.n_train == len(log)
    policies = found.policy, poem.uniform_policy(log)
    imitated, uniform = (np.abs(one.marginals(log.X) - logger.marginals(log.X)).mean() for one in policies)
    assert imitated < 0.05
    assert imitated < 0.7 * uniform
    estimate = found.imitation.validation
    assert f"The policy is an imitation of the logging policy, with an estimated loss of {estimate}" in found.explain()
    assert f"where {found.logged.value:.4g} was logged" in found.explain()


def test_the_logging_policy_is_what_one_gets_back():
    logger = a_policy(poem.MultiClass(3), 0)
    found = poem.fit(noise_log(), learners=FEW, logging_policy=logger)
    assert (found.origin, found.certified) == ("logging policy", False)
    assert found.policy is logger
    assert found.imitation.gain.value == pytest.approx(0.0, abs=0.02)
    assert "The policy is the logging policy." in found.explain()
    assert (
        poem.fit(noise_log(), learners=FEW, logging_policy=logger, selection=poem.Selection(imitate=True)).policy
        is logger
    )


def test_a_poor_imitation_is_called_one():
    rng, n = np.random.default_rng(0), 400
    X = rng.choice([-1.0, 1.0], size=(n, 2)) + 0.1 * rng.normal(size=(n, 2))
    best = (X[:, 0] * X[:, 1] > 0).astype(int)  # which no linear policy can do
    y = np.where(rng.random(n) < 0.95, best, 1 - best)
    log = poem.BanditLog(X, y, loss=(y != best) * 1.0, propensity=np.where(y == best, 0.95, 0.05))
    found = poem.fit(log, learners=FEW, selection=poem.Selection(imitate=True))
    assert found.origin == "imitation"
    assert "the imitation is worse than the logging policy itself" in found.explain()


def test_the_logging_policy_is_imitated_for_thousands_of_labels():
    rng, q = np.random.default_rng(0), 3000
    policy = poem.Policy(poem.MultiLabel(q), 4 * rng.normal(size=(6, q)), True, tuple(range(q)))
    X = rng.normal(size=(200, 5))
    y = policy.sample(X, rng)
    log = poem.BanditLog(X, y, loss=rng.random(200), log_propensity=policy.log_prob(X, y), labels=range(q))
    weights = imitation(Layout(log, policy.structure, True), Threads())
    assert np.corrcoef(weights.ravel(), policy.weights.ravel())[0, 1] > 0.9


@pytest.mark.parametrize("n", [3000, 200])
def test_rare_successes_that_hang_on_nothing_are_not_certified(n):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(n, 2)), rng.integers(0, 3, n)
    clicked = np.arange(n) % 100 == 0  # one in a hundred, whatever was chosen
    found = poem.fit(poem.BanditLog(X, y, reward=clicked, propensity=np.full(n, 1 / 3)), learners=FEW)
    assert found.policy is None


# ---- a log to learn from --------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_on_an_easy_log_the_policy_is_better_in_truth(seed):
    found = poem.fit(easy_log(seed), seed=seed)
    X = np.random.default_rng(100).normal(size=(2000, 2))
    logged, learnt = (one.expected_loss(X, best_of(X)) for one in (a_policy(poem.MultiClass(3)), found.policy))
    assert (found.origin, found.certified) == ("certified", True)
    assert learnt < 0.6 * logged
    assert 0.0 < found.certificate.gain_at_least < logged - learnt


def test_the_chosen_one_has_the_lowest_likely_bound_of_those_that_can_be_certified(found):
    usable = [one for one in found.table[:-1] if not {AVOIDS, OVERFITS} & set(one.problems)]
    ready = [one for one in usable if one.forecast.units_needed(0.05) <= 100 and not one.problems]
    assert found.chosen.gain.likely == min(one.gain.likely for one in ready)


def test_the_table_is_about_the_units_that_do_not_certify(found):
    assert (found.folds, found.n_train, found.n_validation, found.n_rows) == (5, 120, 150, 200)
    assert all(candidate.validation.n == candidate.validation.units == 150 for candidate in found.table)
    assert found.logged.value == pytest.approx(rich_log().loss[:150].mean(), rel=1e-12)
    for candidate in found.table:
        assert candidate.gain.value == pytest.approx(candidate.validation.value - found.logged.value, abs=1e-12)


def test_the_certificate_is_about_the_last_units(found):
    certificate = found.certificate
    assert certificate.rows == certificate.units <= 100
    assert certificate.logged == pytest.approx(rich_log().loss[-certificate.rows :].mean(), rel=1e-12)
    assert found.policy.record.n_train == 200 - certificate.rows


def test_the_chosen_recipe_is_followed_on_all_rows_that_do_not_certify(found):
    log = rich_log()
    learnt = log.take(np.arange(200 - found.certificate.rows))
    training = Training(learnt, poem.MultiClass(3), True, found.calibration)
    again = training.policy(found.chosen.recipe, np.random.default_rng(0), lambda *_: None, poem.Record(), Threads())
    assert found.refitted
    np.testing.assert_array_equal(found.policy.weights, again.weights)


# ---- what a fit says of itself --------------------------------------------------------------------


def test_the_explanation_holds_the_choice_the_certificate_and_its_conditions(found):
    said, certificate = found.explain(), found.certificate
    low, high = certificate.interval
    for part in (
        f"Chosen: {found.chosen.learner} (λ {found.chosen.lam:.3g}), of {len(found.table) - 1} candidates.",
        f"Certified: its loss is lower than what was logged, by at least {certificate.gain_at_least:.4g} with 95% "
        f"confidence (on {certificate.rows} fresh rows).",
        f"Gain: {certificate.gain:.4g}, approximate 95% interval [{low:.4g}, {high:.4g}]; the logged loss is "
        f"{certificate.logged:.4g} on these rows.",
        "Provided that: the logged propensities are right; losses lie in [0, 1.1], as you said; rows are independent",
    ):
        assert part in said
    assert "losses are taken to lie" not in said  # the bounds were given


def test_the_result_shows_the_folds_and_the_prospects(found):
    shown = repr(found)
    assert "candidates were trained on 120 rows and judged on 150 in 5 folds" in shown
    assert "gain, likely at least  units to certify" in shown
    assert "Certified: its loss is lower than what was logged" in shown
    chosen = next(row for row in found.table.to_dicts() if row["chosen"])
    assert chosen["gain"] == -found.chosen.gain.value
    assert chosen["gain_likely"] == -found.chosen.gain.likely
    assert chosen["units_to_certify"] == pytest.approx(found.chosen.forecast.units_needed(0.05))
    assert chosen["learner"] == found.chosen.learner


def test_rewards_are_spoken_of_as_rewards():
    log = easy_log()
    given = {"reward": 1.1 - log.loss, "log_propensity": log.log_propensity, "labels": log.labels}
    found = poem.fit(poem.BanditLog(log.X, log.y, **given), learners=FEW)
    assert "Certified: its reward is higher than what was logged, by at least 0." in found.explain()
    assert "rewards lie in [" in found.explain()


def test_a_certificate_on_estimated_propensities_says_so():
    found = poem.fit(poem.estimate_propensities(easy_log(), C=1.0).log, learners=FEW)
    assert "the estimated propensities are right" in found.certificate.conditions
    assert "Warning: propensities are estimated, not logged, and no interval accounts for that" in found.explain()


def test_what_is_not_certified_says_how_many_rows_it_would_take():
    log = easy_log(contexts=40)
    found = poem.fit(log, learners=FEW, selection=poem.Selection(confidence=1.0 - 1e-9))
    assert not found.certified
    assert np.isfinite(found.certificate.units_needed)
    assert found.certificate.units_needed > found.certificate.units
    assert "To certify such a gain with a probability of 95% takes a log of about " in found.explain()
    assert "units would certify it with a probability of 95%" in str(found.certificate)
    assert found.certificate.to_dict()["units_needed"] == found.certificate.units_needed


def test_what_is_certified_does_not_say_how_many_units_it_would_take():
    certificate = poem.fit(easy_log(), learners=FEW).certificate
    lucky = replace(certificate, units_needed=2.0 * certificate.units)
    assert lucky.certified
    assert lucky.to_dict()["units_needed"] is None
    assert "would certify" not in str(lucky)
    unlucky = replace(certificate, gain_at_least=-0.1, units_needed=0.5 * certificate.units)
    assert "would certify" not in str(unlucky)  # there are as many units already


# ---- other ways to hold out -----------------------------------------------------------------------


def test_a_share_certifies_and_the_rest_is_learnt_from():
    found = poem.fit(easy_log(), learners=FEW, selection=poem.Selection(validation=0.25))
    assert (found.folds, found.n_train, found.n_validation) == (5, 96, 120)
    assert (found.certificate.rows, found.policy.record.n_train) == (40, 120)


def test_any_number_of_folds_can_be_asked_for():
    found = poem.fit(easy_log(), learners=FEW, selection=poem.Selection(validation=4))
    assert (found.folds, found.n_train, found.n_validation) == (4, 82, 110)


def test_a_log_of_its_own_certifies_and_is_never_learnt_from():
    fresh = easy_log(1, contexts=70)
    found = poem.fit(easy_log(), learners=FEW, selection=poem.Selection(validation=fresh))
    assert (found.folds, found.n_train, found.n_validation) == (5, 128, 160)
    assert (found.certificate.rows, found.policy.record.n_train) == (70, 160)
    assert found.certificate.logged == pytest.approx(fresh.loss.mean())
    assert "of the log that certifies" in found.certificate.conditions[-1]


@pytest.mark.parametrize(
    "options", [{}, {"selection": poem.Selection(refit=True)}, {"selection": poem.Selection(imitate=True)}], ids=str
)
@pytest.mark.parametrize("log", [rich_log(), noise_log(), rule_log()], ids=["easy", "noise", "rule"])
def test_progress_ends_where_it_said_it_would(log, options, capsys):
    poem.fit(log, progress=True, **options)
    done, total = re.findall(r"(\d+)/(\d+) in", capsys.readouterr().err)[-1]
    assert done == total


def test_groups_are_what_certifies():
    log = easy_log().with_groups(np.arange(160) // 4)
    found = poem.fit(log, learners=FEW, selection=poem.Selection(validation=0.5))
    assert (found.certificate.units, found.certificate.rows) == (20, 80)
    assert "groups are independent" in found.certificate.conditions[-1]


@pytest.mark.parametrize("contexts", [1, 2, 3, 6])
def test_few_units_certify_nothing(contexts):
    found = poem.fit(easy_log(contexts=contexts, replay=200), learners=FEW)
    assert (found.policy, found.certified) == (None, False)
    assert "Not certified: " in found.explain()


def test_a_certificate_can_be_asked_for_with_a_learner_of_ones_own():
    found = poem.fit(noise_log(), lam=0.1, optimizer=SHORT, selection=poem.Selection(select_by="dr"))
    assert (found.origin, found.folds, found.confidence) == ("none", 5, 0.95)
    found = poem.fit(easy_log(), lam=0.1, optimizer=SHORT, selection=poem.Selection(select_by="dr"))
    assert (found.origin, found.folds, found.confidence) == ("certified", 5, 0.95)


def test_more_confidence_takes_more_evidence():
    log = easy_log(contexts=80)
    some, more = (
        poem.fit(log, learners=FEW, selection=poem.Selection(confidence=confidence))
        for confidence in (0.5, 1.0 - 1e-12)
    )
    assert (some.certified, more.certified) == (True, False)
    assert "with 100% confidence" in repr(more)


# ---- the answer depends on the seed only ----------------------------------------------------------


@pytest.mark.parametrize("structure", [poem.MultiClass(3), poem.MultiLabel(2)], ids=str)
def test_the_number_of_jobs_changes_nothing(structure):
    log = noise_log(structure=structure, contexts=60, replay=2)
    one, two = (poem.fit(log, learners=BRIEF, n_jobs=jobs) for jobs in (1, 2))
    assert bits_of(one) == bits_of(two)
    assert rows_of(one) == rows_of(two)
    assert one.explain() == two.explain()


def test_a_seed_makes_a_fit_reproducible_and_another_one_deals_other_folds(found, finished):
    again, other = finished.result, poem.fit(rich_log(), loss_bounds=BOUNDS, seed=1)
    assert bits_of(again) == bits_of(found)
    assert rows_of(again) == rows_of(found)
    assert bits_of(other) != bits_of(found)
    assert other.chosen.validation.value != found.chosen.validation.value


# ---- checkpoints ----------------------------------------------------------------------------------


def counted(monkeypatch):
    """Count the minimisations of candidates, but not of what they share; they can be ended as by Ctrl-C."""
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
def test_an_interrupted_portfolio_resumes(found, finished, monkeypatch, tmp_path, jobs):
    minimised = counted(monkeypatch)
    options = {"loss_bounds": BOUNDS, "n_jobs": jobs, "checkpoint": tmp_path}
    minimised["stop_after"] = 23
    with pytest.raises(KeyboardInterrupt):
        poem.fit(rich_log(), **options)
    kept = len(list(tmp_path.glob("candidate-*.poem")))
    assert kept >= 20
    minimised.update(done=0, stop_after=10**9)
    resumed = poem.fit(rich_log(), **options)
    assert bits_of(resumed) == bits_of(found)
    assert rows_of(resumed) == rows_of(found)
    left = finished.minimisations - 23
    assert left <= minimised["done"] < left + jobs  # what a thread had under way is done again


def test_a_portfolio_interrupted_before_its_certificate_resumes(found, finished, tmp_path):
    copytree(finished.folder, tmp_path, dirs_exist_ok=True)
    options = {"loss_bounds": BOUNDS, "checkpoint": tmp_path}
    last = tmp_path / f"candidate-{len(list(tmp_path.glob('candidate-*.poem'))) - 1}.poem"
    last.unlink()
    assert bits_of(poem.fit(rich_log(), **options)) == bits_of(found)
    assert last.exists()


def test_a_finished_portfolio_is_not_done_again(found, finished, monkeypatch):
    first, minimised = finished.result, counted(monkeypatch)
    names = {path.name for path in finished.folder.iterdir()}
    # Candidates compete twice, first on half of the units; then one of them is learnt from all that do not certify it.
    assert names == {"fit.json", *(f"candidate-{number}.poem" for number in range(len(names) - 1))}
    second = poem.fit(rich_log(), loss_bounds=BOUNDS, checkpoint=finished.folder)
    assert minimised["done"] == 0
    assert bits_of(first) == bits_of(second) == bits_of(found)
    assert second.policy.record == first.policy.record
    assert second.table.to_dicts() == first.table.to_dicts()


@pytest.mark.parametrize(
    ("log", "options"),
    [
        (easy_log(), {"selection": poem.Selection(refit=True)}),
        (noise_log(), {"selection": poem.Selection(imitate=True)}),
    ],
)
def test_what_is_learnt_last_is_kept_apart_from_what_was_certified(log, options, tmp_path):
    options = {"learners": FEW, **options}
    plain, kept, again = (poem.fit(log, checkpoint=folder, **options) for folder in (None, tmp_path, tmp_path))
    assert plain.policy.weights.tobytes() != plain.certificate.policy.weights.tobytes()
    assert bits_of(plain) == bits_of(kept) == bits_of(again)


@pytest.fixture(scope="module")
def few_kept(tmp_path_factory):
    """The folder of a finished fit."""
    folder = tmp_path_factory.mktemp("few")
    poem.fit(easy_log(), learners=FEW, checkpoint=folder)
    return folder


CHANGES = [
    {"learners": "direct"},
    {"selection": poem.Selection(validation=3)},
    {"seed": 1},
    {"selection": poem.Selection(guard=False)},
    {"loss_bounds": (0, 2)},
]


@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_a_folder_of_another_portfolio_is_refused(few_kept, changes):
    options = {"learners": FEW, "checkpoint": few_kept}
    with pytest.raises(poem.PoemError, match="belongs to another log or to other settings"):
        poem.fit(easy_log(), **options | changes)


def test_a_folder_of_another_logging_policy_is_refused(tmp_path):
    options = {"learners": FEW, "checkpoint": tmp_path}
    poem.fit(easy_log(), logging_policy=a_policy(poem.MultiClass(3)), **options)
    with pytest.raises(poem.PoemError, match="belongs to another log or to other settings"):
        poem.fit(easy_log(), logging_policy=a_policy(poem.MultiClass(3), seed=1), **options)


def test_a_checkpoint_of_another_confidence_is_refused(tmp_path):
    log = easy_log(contexts=40)
    poem.fit(log, learners=FEW, checkpoint=tmp_path, selection=poem.Selection(confidence=0.5))
    with pytest.raises(poem.PoemError, match="other settings"):
        poem.fit(log, learners=FEW, checkpoint=tmp_path, selection=poem.Selection(confidence=0.9))
