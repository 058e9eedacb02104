"""What is tried for a certificate: policies from sure to bold, or one on few units before them."""

from dataclasses import replace

import numpy as np
import pytest
from easy_logs import easy_log, noise_log
from scipy import special
from test_select import candidate_of

import poem
from benchmarks.worlds import WORLDS
from poem.learning import ending
from poem.learning.plan import plan_of
from poem.learning.tries import FIRST_ERROR, HOPE, MOST_STEPS, climb, tries_of

ALPHA = 0.05


def plan_for(units, validation="auto"):
    return plan_of(noise_log(contexts=units), validation, 0, True)


def needing(units, value=-0.3):
    """A candidate with a gain that some number of units certifies."""
    one = candidate_of(value, 0.01)
    return replace(one, forecast=replace(one.forecast, growth=one.forecast.units_needed(ALPHA) / units))


def sizes_of(found):
    return [one.plan.most for one in found]


def test_a_single_try_has_all_of_the_error_and_half_as_many_units_again_as_foreseen():
    one = needing(100)
    (only,) = tries_of([one], plan_for(600), ALPHA)
    assert (only.steps, only.alpha) == ((one,), ALPHA)
    assert only.plan.most == pytest.approx(150, abs=1)
    assert len(only.plan.first) == 600 - only.plan.most


def test_nothing_is_tried_if_no_capital_would_grow():
    losing = candidate_of(0.1, 0.01, growth=-0.1)
    assert tries_of([losing], plan_for(100), ALPHA) == []
    assert tries_of([], plan_for(100), ALPHA) == []


def test_a_first_try_on_few_units_leaves_more_to_learn_from():
    one = needing(15)
    first, second = tries_of([one], plan_for(120), ALPHA)
    assert first.steps == second.steps == (one,)
    assert sizes_of([first, second]) == [20, 50]
    assert len(first.plan.first) == 100


def test_in_a_large_log_a_tenth_of_the_units_is_not_worth_two_tries():
    assert sizes_of(tries_of([needing(15)], plan_for(800), ALPHA)) == [80]


def steps_of(candidates, units=600):
    (only,) = tries_of(candidates, plan_for(units), ALPHA)
    return list(only.steps)


def test_a_bold_policy_that_may_well_fail_follows_a_careful_one():
    bold, careful = needing(270, -0.5), needing(120, -0.3)
    assert steps_of([bold, careful]) == [careful, bold]
    # One that is nearly sure to pass needs no other before it.
    assert steps_of([needing(190, -0.5), careful])[0] is not careful


def test_if_none_is_sure_the_climb_begins_with_the_one_that_comes_nearest():
    bold, nearest = needing(900, -0.5), needing(400, -0.3)
    assert steps_of([bold, nearest]) == [nearest, bold]


def test_each_step_takes_more_units_and_promises_more():
    some = [needing(units, value) for units, value in [(100, -0.2), (150, -0.1), (250, -0.4), (300, -0.3), (400, -0.6)]]
    assert steps_of(some) == [some[0], some[2], some[4]]


def test_no_step_is_hopeless_or_has_problems():
    sure = needing(100, -0.2)
    hopeless = needing(1.01 * HOPE * 300, -0.9)
    marked = replace(needing(250, -0.8), problems=("its weights are large",))
    assert steps_of([sure, hopeless, marked]) == [sure]


def test_of_many_steps_the_first_and_the_last_are_among_those_that_are_taken():
    some = [needing(100 + 20 * k, -0.2 - 0.01 * k) for k in range(30)]
    steps = steps_of(some)
    assert len(steps) == MOST_STEPS
    assert steps[-1] is some[-1]
    assert steps == sorted(steps, key=some.index)


@pytest.mark.parametrize("needed", [15, 40, 90, 130, 160, 250, 1000])
def test_tries_share_the_error_and_take_the_latest_units(needed):
    plan = plan_for(300)
    found = tries_of([needing(needed, -0.5), needing(0.6 * needed, -0.3)], plan, ALPHA)
    assert sum(one.alpha for one in found) == pytest.approx(ALPHA, rel=1e-12)
    for one in found:
        fresh = one.plan.rest[0]
        assert len(fresh) == one.plan.most <= plan.most
        np.testing.assert_array_equal(fresh.loss, plan.rest[0].loss[-len(fresh) :])
        assert len(one.plan.first) + len(fresh) == 300


def test_where_the_rows_that_certify_were_given_a_try_has_all_of_them():
    bold, careful = needing(95, -0.5), needing(40, -0.3)
    for plan in (plan_for(250, 0.4), plan_for(250, noise_log(1, contexts=100))):
        assert sizes_of(tries_of([bold, careful], plan, ALPHA)) == [100]
        assert sizes_of(tries_of([careful], plan, ALPHA)) == [100]


# ---- the climb ------------------------------------------------------------------------------------


def certificate(at_least, *objections):
    gain = max(at_least, 0.0) + 0.1
    return poem.Certificate(None, 0.95, at_least, gain, (at_least, 1.0), 0.5, 10, 10, 20.0, (), objections)


def climbed(*found, enough=0.2):
    """Where a climb ends, what it claims, and how many certificates it asked for."""
    asked = []

    def each():
        for one in found:
            asked.append(one)
            yield one

    step, best = climb(each(), [enough] * len(found))
    return step, best.gain_at_least, len(asked)


def test_a_climb_goes_on_as_long_as_enough_is_certified():
    high, low, none = certificate(0.5), certificate(0.1), certificate(-0.1)
    assert climbed(high, high, high) == (2, 0.5, 3)
    assert climbed(high, low, high) == (1, 0.1, 2)
    assert climbed(low, high) == (0, 0.1, 1)
    assert climbed(none, high) == (0, -0.1, 1)


def test_of_a_policy_that_a_bolder_one_followed_no_more_is_claimed_than_was_foreseen():
    high, none = certificate(0.5), certificate(-0.1)
    assert climbed(high, none, high) == (0, 0.2, 2)
    assert climbed(high, high, none) == (1, 0.2, 3)


def test_an_objection_to_any_of_them_counts():
    high, broken = certificate(0.5), certificate(0.5, "propensities are wrong")
    assert climbed(high, broken, high) == (1, 0.5, 2)
    assert climbed(broken, high) == (0, 0.5, 1)


@pytest.mark.parametrize(
    "gains", [(0.0, 0.0, 0.0), (2.5, 0.0, 0.0), (0.0, 2.0, 3.0), (2.0, 2.0, 2.0), (1.0, 1.5, 2.5), (-1.0, -0.5, 4.0)]
)
@pytest.mark.parametrize("alike", [0.0, 0.8])
def test_what_a_climb_claims_is_too_high_in_one_case_in_twenty(gains, alike):
    """Where bounds are exact. The best of them, or the last one that is certified, would err more often."""
    rng, logs, wrong = np.random.default_rng(5), 4000, 0
    noise = np.sqrt(alike) * rng.normal(size=(logs, 1)) + np.sqrt(1.0 - alike) * rng.normal(size=(logs, 3))
    for bounds in np.asarray(gains) + noise + special.ndtri(ALPHA):
        step, best = climb(map(certificate, bounds), [0.1, 0.2, 0.3])
        wrong += best.certified and best.gain_at_least > gains[step]
    assert wrong <= logs * (ALPHA + 3.0 * np.sqrt(ALPHA / logs))


# ---- in a fit -------------------------------------------------------------------------------------


@pytest.fixture
def certificates(monkeypatch):
    """What a fit asks for: the rows learnt from, the confidence, and the certificate."""
    asked, certificate_of = [], ending.certificate_of

    def watched(policy, training, fresh, foreseen, confidence, plan):
        found = certificate_of(policy, training, fresh, foreseen, confidence, plan)
        asked.append((len(training.log), len(fresh), confidence, found))
        return found

    monkeypatch.setattr(ending, "certificate_of", watched)
    return asked


def test_a_fit_stops_at_the_first_certificate(certificates):
    found = poem.fit(easy_log(5, contexts=160), learners="direct", loss_bounds=(0.0, 1.1))
    ((learnt, fresh, confidence, certificate),) = certificates
    assert (learnt + fresh, confidence) == (160, pytest.approx(1.0 - FIRST_ERROR * ALPHA))
    assert certificate.certified
    assert found.certificate.confidence == pytest.approx(0.95)
    assert found.policy.weights.tobytes() == certificate.policy.weights.tobytes()


def test_a_fit_goes_on_where_the_first_try_fails(certificates):
    found = poem.fit(easy_log(contexts=160), learners="direct", loss_bounds=(0.0, 1.1))
    (few, _, _, failed), (many, fresh, confidence, certificate) = certificates
    assert few > many
    assert not failed.certified
    assert confidence == pytest.approx(1.0 - (1.0 - FIRST_ERROR) * ALPHA)
    assert (found.certified, found.certificate.rows) == (True, fresh)
    assert found.policy.weights.tobytes() == certificate.policy.weights.tobytes()
    assert found.policy.record.n_train == many


def test_an_objection_ends_it(certificates, monkeypatch):
    refuse = ending.certificate_of
    monkeypatch.setattr(
        ending, "certificate_of", lambda *given: replace(refuse(*given), objections=("the world is upside down",))
    )
    found = poem.fit(easy_log(contexts=160), learners="direct", loss_bounds=(0.0, 1.1))
    assert (found.certified, len(certificates)) == (False, 1)
    assert "the world is upside down" in found.explain()


def climbing(n, seed, certificates):
    """The fit of a log in which bolder policies follow, and the bounds of all that it tried."""
    world = WORLDS["linear-rewards"]
    sample = world.sample(n, world.rng(n, seed))
    found = poem.fit(sample.log, seed=seed, progress=False, **world.options)
    assert {(rows, fresh, round(sure, 9)) for rows, fresh, sure, _ in certificates} == {
        (n - found.certificate.rows, found.certificate.rows, 0.95)
    }
    return found, [one for *_, one in certificates]


def test_a_fit_returns_the_boldest_policy_that_its_climb_certifies(certificates):
    found, tried = climbing(1000, 2, certificates)
    assert len(tried) > 1
    assert all(one.certified for one in tried)
    assert found.policy.weights.tobytes() == tried[-1].policy.weights.tobytes()
    assert found.certificate.gain_at_least == tried[-1].gain_at_least


def test_a_fit_returns_the_policy_before_the_one_that_fails(certificates):
    found, tried = climbing(600, 2, certificates)
    assert [one.certified for one in tried[-2:]] == [True, False]
    assert found.policy.weights.tobytes() == tried[-2].policy.weights.tobytes()
    assert 0.0 < found.certificate.gain_at_least < tried[-2].gain_at_least
