"""What is tried for a certificate: one policy, or two that share the probability of error."""

from dataclasses import replace

import numpy as np
import pytest
from easy_logs import easy_log, noise_log
from test_select import candidate_of

import poem
from poem.learning import ending
from poem.learning.plan import plan_of
from poem.learning.tries import FIRST_ERROR, tries_of

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
    assert (only.candidate, only.alpha) == (one, ALPHA)
    assert only.plan.most == pytest.approx(150, abs=1)
    assert len(only.plan.first) == 600 - only.plan.most


def test_nothing_is_tried_if_no_capital_would_grow():
    losing = candidate_of(0.1, 0.01, growth=-0.1)
    assert tries_of([losing], plan_for(100), ALPHA) == []
    assert tries_of([], plan_for(100), ALPHA) == []


def test_a_first_try_on_few_units_leaves_more_to_learn_from():
    one = needing(15)
    first, second = tries_of([one], plan_for(120), ALPHA)
    assert first.candidate is second.candidate is one
    assert sizes_of([first, second]) == [20, 50]
    assert len(first.plan.first) == 100


def test_in_a_large_log_a_tenth_of_the_units_is_not_worth_two_tries():
    assert sizes_of(tries_of([needing(15)], plan_for(800), ALPHA)) == [80]


def test_a_careful_policy_follows_a_bold_one_that_may_well_fail():
    bold, careful = needing(270, -0.5), needing(120, -0.3)
    first, second = tries_of([careful, bold], plan_for(600), ALPHA)
    assert (first.candidate, second.candidate) == (bold, careful)
    assert first.plan.most <= 300
    # A bold one that is sure enough is tried alone.
    assert [one.candidate for one in tries_of([careful, needing(200, -0.5)], plan_for(600), ALPHA)] != [bold, careful]


def test_if_none_is_sure_the_one_that_comes_nearest_follows():
    bold, nearest = needing(290, -0.5), needing(250, -0.3)
    assert [one.candidate for one in tries_of([nearest, bold], plan_for(600), ALPHA)] == [bold, nearest]


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


def test_where_the_rows_that_certify_were_given_both_tries_have_all_of_them():
    bold, careful = needing(95, -0.5), needing(40, -0.3)
    for plan in (plan_for(250, 0.4), plan_for(250, noise_log(1, contexts=100))):
        assert sizes_of(tries_of([bold, careful], plan, ALPHA)) == [100, 100]
        assert sizes_of(tries_of([careful], plan, ALPHA)) == [100]


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
