"""One sign everywhere: a log of rewards, and the same log as losses, have mirrored figures wherever a user looks."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from easy_logs import FEW, a_policy, best_of, logged_by
from packing import packed

import poem
from poem.errors import LearningError
from poem.evaluation import conclude
from poem.learning.selection import Gain
from poem.report import describe, report_html

POLICY, OTHER = (a_policy(poem.MultiClass(3), seed=seed) for seed in (5, 6))
POLICIES = {"new": POLICY, "other": OTHER}
KINDS = ("reward", "loss")
every_interval = pytest.mark.parametrize("interval", ["t", "normal", "bootstrap", "bernstein", "truncated", "betting"])


def costs(x, y, rng):
    return -0.9 * (best_of(x) == y) - 0.1 * rng.random(len(y))


def as_both(log, **more):
    """The same rows twice: as rewards from 0 to 1, and as losses from −1 to 0."""
    known = {"log_propensity": log.log_propensity, "labels": log.labels} | more
    y = np.asarray(log.labels)[log.y]
    return tuple(
        poem.BanditLog(log.X, y, **{kind: sign * log.loss}, **known)
        for kind, sign in zip(KINDS, (-1.0, 1.0), strict=True)
    )


@pytest.fixture(scope="module")
def logs():
    log = logged_by(a_policy(poem.MultiClass(3)), costs, contexts=190)
    return as_both(log, logger=np.arange(len(log)) % 2)


@pytest.fixture(scope="module")
def fits(logs):
    return tuple(poem.fit(log, learners=FEW) for log in logs)


@pytest.fixture(scope="module")
def plain_fits(logs):
    return tuple(poem.fit(log, learners="direct", certify=False) for log in logs)


def mirrored(reward, loss, *, signed=("value",), ends=(("low", "high"),)):
    """Assert that two dicts are mirror images: some numbers are negated, ends change places, and the rest is equal."""
    expected = dict(loss)
    for name in signed:
        expected[name] = -loss[name]
    for low, high in ends:
        expected[low], expected[high] = -loss[high], -loss[low]
    assert set(reward) == set(expected)
    for name, value in expected.items():
        np.testing.assert_equal(reward[name], value, err_msg=name)


def mirrored_lines(rewards, losses):
    ends = (("low", "high"), ("difference_low", "difference_high"))
    for one, two in zip(rewards.to_dicts(), losses.to_dicts(), strict=True):
        mirrored(one, two, signed=("value", "difference"), ends=ends)
        assert not one["low"] > one["high"]
        assert not one["difference_low"] > one["difference_high"]


# ---- estimates --------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [None, poem.IPS(), poem.IPS(None)], ids=str)
def test_an_estimate_of_rewards_is_a_reward(logs, estimator):
    one, two = (poem.estimate(POLICY, log, estimator) for log in logs)
    low, high = one.interval()
    assert 0.0 < low < one.value < high < 1.0
    assert (one.value, low, high) == (-two.value, *(-end for end in two.interval()[::-1]))
    assert str(one).startswith(f"{one.value:.4g} [{low:.4g}, {high:.4g}] (")
    assert replace(one, value=two.value) == two


def test_a_packed_log_has_the_same_sign(logs, tmp_path):
    reward, loss = (packed(log.replaced(logger=None), tmp_path / log.outcome, 3) for log in logs)
    one, two = (poem.estimate(POLICY, log) for log in (reward, loss))
    assert one.value == pytest.approx(-two.value)
    assert one.value == pytest.approx(poem.estimate(POLICY, logs[0]).value)
    lines = [poem.evaluate(POLICY, log, ["SNIPS"], model=None).lines[0] for log in (reward, loss)]
    assert (lines[0].low, lines[0].difference_high) == pytest.approx((-lines[1].high, -lines[1].difference_low))


# ---- evaluations ------------------------------------------------------------------------------------


@every_interval
@pytest.mark.parametrize("against", ["logged", "other"])
def test_evaluations_are_mirrored(logs, interval, against):
    one, two = (poem.evaluate(POLICIES, log, interval=interval, against=against) for log in logs)
    mirrored_lines(one, two)
    assert one.logged == two.logged.as_outcome("reward")
    assert one.logged.value == pytest.approx(-logs[0].loss.mean())
    assert conclude(one) == conclude(two)
    assert one.diagnostics == two.diagnostics
    assert set(one.by_logger) == {0, 1}
    for name, alone in one.by_logger.items():
        mirrored_lines(alone, two.by_logger[name])


def test_what_is_printed_and_exported_agrees_with_the_lines(logs):
    found = poem.evaluate(POLICIES, logs[0])
    text, data, frame = str(found), json.loads(found.to_json()), found.to_frame()
    for line, shown in zip(found.to_dicts(), data["lines"], strict=True):
        assert shown == {name: None if value != value else value for name, value in line.items()}  # NaN is null
    assert data["logged"]["value"] == found.logged.value
    assert f"logged reward {found.logged.value:.4g} [" in text
    for line, shown in zip(found.lines, frame.itertuples(), strict=True):
        assert (shown.value, shown.low, shown.difference_high) == (line.value, line.low, line.difference_high)
        ends = f"{line.value:.4g}  [{line.low:.4g}, {line.high:.4g}]"
        assert " ".join(ends.split()) in " ".join(text.split())
        assert f"[{line.difference_low:.4g}, {line.difference_high:.4g}]" in text


def test_a_plot_shows_rewards(logs):
    found = poem.evaluate(POLICY, logs[0], ["SNIPS"])
    (axes,) = found.plot().axes
    assert axes.get_xlabel().startswith("reward")
    (line,) = found.lines
    spans = [path.vertices[:, 0] for one in axes.collections for path in one.get_paths()]
    assert any(np.allclose(np.sort(span), [line.low, line.high]) for span in spans)


@pytest.mark.parametrize("policy", [POLICY, OTHER], ids=["new", "other"])
def test_a_better_policy_has_a_positive_difference_of_rewards(logs, policy):
    one, two = (poem.evaluate(policy, log, ["SNIPS"]).lines[0] for log in logs)
    assert (one.difference > 0.0) == (one.probability_better > 0.5) == (two.difference < 0.0)


@pytest.mark.parametrize(("interval", "level"), [("t", 0.9), ("betting", 0.975)])
def test_a_bound_is_on_the_worse_side(logs, interval, level):
    one, two = (poem.evaluate({"new": POLICY}, log, ["IPS"], interval=interval) for log in logs)
    bound, line = one.bound("new", "IPS", level), one["new", "IPS"]
    assert bound == -two.bound("new", "IPS", level)
    assert line.low <= bound < line.value


def test_an_unknown_bound_is_the_worst(logs):
    reward, loss = (
        poem.evaluate({"new": POLICY}, log.replaced(logger=None).with_groups(np.zeros(len(log))), ["IPS"])
        for log in logs
    )
    assert (reward.bound("new", "IPS"), loss.bound("new", "IPS")) == (-math.inf, math.inf)


# ---- fits -------------------------------------------------------------------------------------------


def rows_of(fit):
    return [{name: value for name, value in row.items() if name != "seconds"} for row in fit.table.to_dicts()]


def mirrored_fits(rewards, losses):
    for one, two in zip(rows_of(rewards), rows_of(losses), strict=True):
        mirrored(one, two, signed=("validation",), ends=(("validation_low", "validation_high"),))
    for one, two in zip(rewards.table, losses.table, strict=True):
        assert one.validation == two.validation.as_outcome("reward")
        assert one.gain == two.gain.as_reward
        assert one.gain.interval() == tuple(-end for end in two.gain.interval()[::-1])
        assert one.gain.value == pytest.approx(one.validation.value - rewards.logged.value, abs=1e-12)
    assert rewards.logged == losses.logged.as_outcome("reward")
    assert sum(one is rewards.chosen for one in rewards.table) == 1
    assert rewards.table[0].recipe.label == losses.table[0].recipe.label


def test_fits_are_mirrored(fits):
    one, two = fits
    mirrored_fits(one, two)
    assert any(candidate is one.imitation for candidate in one.table)
    assert one.certificate.logged == -two.certificate.logged > 0.0
    for name in ("gain", "gain_at_least", "interval", "units_needed", "rows"):
        assert getattr(one.certificate, name) == getattr(two.certificate, name)


def test_fits_without_a_certificate_are_mirrored(plain_fits):
    mirrored_fits(*plain_fits)
    one, two = (fit.sheet().parts[-1] for fit in plain_fits)
    assert one.split(": ")[1] == two.split(": ")[1]  # whether it is better


def test_a_printed_fit_agrees_with_its_numbers(fits, plain_fits):
    for one in (fits[0], plain_fits[0]):
        head, _, *lines = str(one.table).splitlines()
        assert "held-out reward" in head
        assert "objective (minimised)" in head
        assert "loss" not in head
        for line, row in zip(lines, one.table.to_dicts(), strict=True):
            low, high = row["validation_low"], row["validation_high"]
            assert f"{row['validation']:.4g} [{low:.4g}, {high:.4g}]" in line
    shown = str(plain_fits[0])
    assert f"logged reward on the held-out rows {plain_fits[0].logged}" in shown
    assert "reward from 0" in shown
    assert "loss" not in shown


def test_a_log_of_losses_keeps_its_headings(plain_fits):
    head, shown = str(plain_fits[1].table).splitlines()[0], str(plain_fits[1])
    assert "held-out loss" in head
    assert "minimised" not in head
    assert f"logged loss on the held-out rows {plain_fits[1].logged}" in shown


def test_a_fit_as_data_agrees_with_its_table(fits):
    one = fits[0]
    data = one.to_dict()
    assert [row["validation"] for row in data["candidates"]] == [found.validation.value for found in one.table]
    assert data["certificate"]["logged"] == one.certificate.logged
    assert f"the logged reward is {one.certificate.logged:.4g} on these rows" in one.explain()


def test_calibrations_are_mirrored(fits):
    one, two = (fit.calibration for fit in fits)
    low, high = one.bounds
    assert 0.0 <= low < high <= 1.0
    assert (low, high) == tuple(-end for end in two.bounds[::-1])
    assert str(one).startswith(f"reward from {low:.4g} to {high:.4g}")
    assert str(two).startswith(f"loss from {-high:.4g} to {-low:.4g}")


def test_certificates_are_mirrored(logs):
    one, two = (poem.certify(POLICY, log) for log in logs)
    assert one.logged == -two.logged > 0.0
    assert one.gain == two.gain


def test_the_worst_gain_is_the_lowest_difference_of_rewards():
    lacking = Gain(-0.3, 0.2, 30.0, mean_weight=0.8, weight_stderr=0.05, typical=0.3, room=0.5)
    for loss in (lacking, replace(lacking, freedom=0.9)):
        reward = loss.as_reward
        assert reward.as_reward is reward
        assert (reward.value, reward.likely, reward.at_worst(0.9)) == (0.3, -loss.likely, -loss.at_worst(0.9))
        assert reward.interval() == tuple(-end for end in loss.interval()[::-1])


def test_scores_are_higher_for_better_policies_of_either_log(logs):
    rows = {"propensity": np.exp(logs[0].log_propensity)}
    learner = poem.CRMLearner(learners="direct").fit(logs[0].X, logs[0].y, reward=-logs[0].loss, **rows)
    one, two = (
        learner.score(log.X, log.y, **{log.outcome: value}, **rows)
        for log, value in zip(logs, (-logs[0].loss, logs[0].loss), strict=True)
    )
    assert one == two == poem.estimate(learner.policy_, logs[0]).value > 0.0


# ---- reports, records and messages ------------------------------------------------------------------


def test_reports_have_the_same_gain(logs):
    one, two = (describe(POLICY, log, other=OTHER) for log in logs)
    assert (one.gain, one.versus_other) == (two.gain, two.versus_other)
    assert (one.value, one.logged) == (two.value.times(-1.0), two.logged.times(-1.0))
    assert one.surely == -two.surely
    assert one.verdict.headline == two.verdict.headline
    for found, other in zip(one.estimates + one.trivial, two.estimates + two.trivial, strict=True):
        assert (found.gain, found.value) == (other.gain, other.value.times(-1.0))


def test_records_hold_rewards_and_reports_show_them(fits, logs):
    """Rows of earlier records do not say what they are: they are losses."""
    policy = fits[0].policy
    rows = policy.record.candidates
    assert [row["validation"] for row in rows] == [one.validation.value for one in fits[0].table]
    assert {row["outcome"] for row in rows} == {"reward"}
    turned = ("validation", "validation_low", "validation_high")
    places = dict(zip(turned, ("validation", "validation_high", "validation_low"), strict=True))
    earlier = [
        {name: -row[places[name]] if name in turned else value for name, value in row.items() if name != "outcome"}
        for row in rows
    ]
    old = replace(policy, record=replace(policy.record, candidates=tuple(earlier)))
    pages = [report_html(one, logs[0]) for one in (policy, old)]
    assert pages[0] == pages[1]
    assert "held-out reward" in pages[0]


def test_a_constant_reward_is_named_as_it_was_logged():
    y = np.arange(40) % 2
    log = poem.BanditLog(np.ones((40, 1)), y, reward=np.full(40, 0.5), propensity=np.full(40, 0.5))
    with pytest.raises(LearningError, match=r"every row has the same reward \(0\.5\)"):
        poem.fit(log)
