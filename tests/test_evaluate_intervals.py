"""evaluate: its intervals, the units that they count, and the table."""

import json

import numpy as np
import pytest
from evaluated_logs import LABELS, LOGGER, OTHER, POLICY, logged
from refusals import refuses

import poem
from poem.errors import InputError
from poem.estimators.intervals import METHODS, ONLY_FOR
from poem.evaluation.comparison import ALL

WITH_MODEL = [name for name, estimator in ALL.items() if estimator.needs_model]


# ---- intervals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("interval", [method for method in METHODS if method != "clopper-pearson"])
def test_a_higher_level_is_wider(log, interval):
    narrow, wide = (poem.evaluate(POLICY, log, interval=interval, level=level) for level in (0.5, 0.99))
    bounded = 0
    for one, other in zip(narrow.lines, wide.lines, strict=True):
        assert one.value == other.value
        assert one.low <= one.value <= one.high
        if np.isfinite(other.high):
            bounded += 1
            assert other.low < one.low
            assert one.high < other.high
        if np.isfinite(other.difference_high):
            assert other.difference_low < one.difference_low < one.difference_high < other.difference_high
    assert bounded == (1 if interval in ONLY_FOR else len(ALL))
    assert (narrow.level, wide.level, narrow.interval) == (0.5, 0.99, interval)


def test_bounds_that_hold_for_any_n_are_wider(log):
    by_t = poem.evaluate(POLICY, log)
    for interval, name in (("bernstein", "clipped IPS"), ("truncated", "IPS")):
        line = poem.evaluate(POLICY, log, interval=interval)["policy", name]
        assert line.high - line.low > 1.2 * (by_t["policy", name].high - by_t["policy", name].low)
        assert line.high > by_t["policy", name].high


@pytest.mark.parametrize("interval", sorted(set(ONLY_FOR) - {"clopper-pearson"}))
def test_an_estimator_without_an_interval_has_an_empty_cell(log, interval):
    found = poem.evaluate(POLICY, log, ["IPS", "clipped IPS", "SNIPS"], interval=interval)
    text = repr(found)
    assert "inf" not in text
    other = "IPS" if interval == "bernstein" else "clipped IPS"
    assert f"{interval} intervals exist for {ONLY_FOR[interval]} only, not for {other}, SNIPS" in text
    assert found["policy", ONLY_FOR[interval]].high < np.inf
    assert found["policy", "SNIPS"].high == np.inf


@pytest.mark.parametrize("interval", ["truncated", "ls", "betting"])
def test_bounds_for_any_n_have_differences(log, interval):
    found = poem.evaluate({"a": POLICY, "b": OTHER}, log, "IPS", interval=interval, level=0.8)
    for line in found.lines:
        assert line.difference_low <= line.difference <= line.difference_high
    both = poem.evaluate({"a": POLICY, "b": OTHER}, log, "IPS", interval=interval, level=0.8, against="b")["a", "IPS"]
    one, two = poem.evaluate({"a": POLICY, "b": OTHER}, log, "IPS", interval=interval, level=0.9).lines
    assert both.difference_low == pytest.approx(one.low - two.high, rel=1e-9)  # the error is split between both
    assert both.difference_high == pytest.approx(one.high - two.low, rel=1e-9)


@pytest.mark.parametrize("interval", ["ls", "betting"])
def test_a_clearly_better_policy_is_proven_better(interval):
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 2000)
    loss = (rng.random(2000) < np.where(y, 0.2, 0.8)).astype(float)
    log = poem.BanditLog(rng.normal(size=(2000, 1)), y, loss=loss, propensity=np.full(2000, 0.5), labels=range(2))
    line = poem.evaluate(np.tile([0.1, 0.9], (2000, 1)), log, "IPS", interval=interval).lines[0]
    assert line.low <= 0.26 <= line.high
    assert line.difference_low <= 0.26 - 0.5 <= line.difference_high < 0.0
    assert np.isnan(line.probability_better)


def test_differences_have_the_interval_that_was_asked_for(log):
    few = log.take(np.arange(12))  # where Student's t and the normal differ
    by_t, by_normal = (poem.evaluate(POLICY, few, "SNIPS", interval=name).lines[0] for name in ("t", "normal"))
    shrunk = (by_normal.high - by_normal.low) / (by_t.high - by_t.low)
    assert shrunk < 0.95
    ends = by_normal.difference_high - by_normal.difference_low, by_t.difference_high - by_t.difference_low
    assert ends[0] / ends[1] == pytest.approx(shrunk)


def test_the_bootstrap_agrees_with_the_standard_error(log):
    by_t, by_bootstrap = poem.evaluate(POLICY, log), poem.evaluate(POLICY, log, interval="bootstrap")
    for name in ALL:
        one, other = by_t["policy", name], by_bootstrap["policy", name]
        # A bias bound is in both; what is left are 190 rows and 1000 replicates.
        assert other.high - other.low == pytest.approx(one.high - one.low, rel=0.2)


@pytest.mark.parametrize("name", ["IPS", "SNIPS", "DR", "DRos", "clipped IPS"])
@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_the_one_sided_bound_is_between_the_value_and_the_end_of_the_interval(log, name, level):
    found = poem.evaluate(POLICY, log, level=level)
    line = found["policy", name]
    assert line.value < found.bound("policy", name, level) < line.high
    # With probability ½ it is below the value itself, plus what a held-back weight may hide behind a model.
    hidden = line.bias_above
    assert found.bound("policy", name, 0.5) == pytest.approx(line.value + hidden)


# ---- units -----------------------------------------------------------------------------------------


def test_copies_of_a_row_in_one_group_are_no_new_evidence():
    X = np.random.default_rng(0).normal(size=(300, 3))
    rows = logged(LOGGER, X)
    copies = np.repeat(np.arange(300), 4)
    columns = {"loss": rows.loss[copies], "log_propensity": rows.log_propensity[copies], "labels": LABELS}
    y = np.array(LABELS)[rows.y[copies]]
    naive = poem.BanditLog(X[copies], y, **columns)
    grouped = poem.BanditLog(X[copies], y, group=copies, **columns)
    once, apart, together = (poem.evaluate(POLICY, log) for log in (rows, naive, grouped))
    for name in ("IPS", "SNIPS"):
        assert together["policy", name].value == pytest.approx(once["policy", name].value, rel=1e-12)
        assert together["policy", name].stderr == pytest.approx(once["policy", name].stderr, rel=1e-9)
        assert apart["policy", name].stderr == pytest.approx(once["policy", name].stderr / 2.0, rel=0.01)
    for name in WITH_MODEL:
        assert together["policy", name].stderr > 1.5 * apart["policy", name].stderr
    assert together.logged.units == 300


@pytest.fixture(scope="module")
def one_group(log):
    return log.replaced(group=np.zeros(len(log), dtype=int))


@pytest.mark.parametrize("interval", ["t", "normal", "bootstrap", "bernstein"])
def test_one_group_gives_no_interval(one_group, interval):
    found = poem.evaluate(POLICY, one_group, model=None, interval=interval)
    for line in found.lines:
        assert (line.low, line.high) == (-np.inf, np.inf)
        assert (line.difference_low, line.difference_high) == (-np.inf, np.inf)
        assert line.verdict == "don't"
        assert found.bound("policy", line.estimator, 0.975) == np.inf
    assert "only 1 independent unit;" in repr(found)


def test_one_group_is_judged_as_far_as_it_can_be_by_default(one_group):
    # No loss model can be cross-fitted on one unit; what needs none can still be told.
    found = poem.evaluate(POLICY, one_group)
    assert found["policy", "SNIPS"].high == np.inf
    assert found.diagnostics["policy"].verdict == "don't"


def test_one_group_can_be_drawn_and_written(one_group, tmp_path):
    found = poem.evaluate(POLICY, one_group, model=None)
    found.plot().savefig(tmp_path / "unbounded.png")
    assert json.loads(found.to_json())["lines"][0]["high"] is None


@pytest.mark.parametrize("interval", ["t", "bootstrap"])
def test_one_row_of_support_gives_no_interval(log, interval):
    alone = np.zeros(len(log))
    alone[7] = 0.5
    found = poem.evaluate(alone, log, interval=interval)
    assert found["policy", "SNIPS"].value == pytest.approx(log.loss[7])
    assert found.diagnostics["policy"].verdict == "don't"
    line = found["policy", "SNIPS"]
    assert (line.low, line.high) == (-np.inf, np.inf)


def test_the_smallest_probabilities_do_no_harm(log):
    tiny = np.full(len(log), 1e-310)
    tiny[:100] *= np.arange(1, 101)
    found = poem.evaluate(tiny, log)
    assert found.diagnostics["policy"].verdict == "don't"


# ---- the table -------------------------------------------------------------------------------------


def test_the_table_has_every_line_and_the_verdict(log):
    found = poem.evaluate({"new": POLICY, "sharp": OTHER.at_temperature(20.0)}, log)
    text = repr(found)
    table = [line.split() for line in text.splitlines()]
    for line in found.lines:
        words = [line.policy, *line.estimator.split(), f"{line.value:.4g}"]
        assert any(row[: len(words)] == words for row in table)
    assert "95% interval" in text
    assert "− logged" in text
    for name, diagnostics in found.diagnostics.items():
        assert f"{name}: {diagnostics.verdict}" in text
        assert all(reason in text for reason in diagnostics.reasons)
    assert "estimated" not in text


def test_a_line_is_found_by_its_names(log):
    found = poem.evaluate(POLICY, log, "SNIPS")
    assert found["policy", "SNIPS"] is found.lines[0]
    with refuses(InputError, "there is no line ('policy', 'IPS')", "there are [('policy', 'SNIPS')]"):
        _ = found["policy", "IPS"]


def test_a_one_sided_bound_is_by_the_chosen_method(log):
    found = poem.evaluate(POLICY, log, "clipped IPS", interval="bernstein", level=0.9)
    assert found.bound("policy", "clipped IPS", 0.95) == found["policy", "clipped IPS"].high
    with refuses(InputError, "evaluate with level=0.98 for a bound at 0.99"):
        found.bound("policy", "clipped IPS", 0.99)


def test_the_frame_has_a_row_for_each_line(log):
    found = poem.evaluate({"new": POLICY, "other": OTHER}, log)
    frame = found.to_frame()
    expected = ["policy", "estimator", "value", "low", "high", "stderr", "difference", "probability_better", "verdict"]
    assert set(expected) <= set(frame.columns)
    assert len(frame) == 2 * len(ALL)
    assert frame["value"].tolist() == [line.value for line in found.lines]
    assert found.to_dicts()[0] == frame.iloc[0].to_dict()


def test_json_holds_numbers_only(log):
    unbounded = np.zeros(len(log))
    unbounded[7] = 0.5
    found = poem.evaluate({"new": POLICY, "alone": unbounded, "base": OTHER}, log, against="base")

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    content = json.loads(found.to_json(), parse_constant=refuse)
    assert len(content["lines"]) == len(found.lines)
    assert content["against"] == "base"
    assert content["diagnostics"]["alone"]["verdict"] == "don't"
    lines = {(line["policy"], line["estimator"]): line for line in content["lines"]}
    assert lines["new", "SNIPS"]["value"] == found["new", "SNIPS"].value
    assert lines["alone", "SNIPS"]["high"] is None
    assert lines["base", "SNIPS"]["difference"] is None


def test_the_figure_can_be_saved(log, tmp_path):
    unbounded = np.zeros(len(log))
    unbounded[7] = 0.5
    figure = poem.evaluate({"new": POLICY, "alone": unbounded}, log).plot()
    figure.savefig(tmp_path / "evaluation.png")
    assert (tmp_path / "evaluation.png").stat().st_size > 5000
    ticks = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert any(tick.startswith("new (") and tick.endswith("): SNIPS") for tick in ticks)
    assert "alone (don't): IPS" in ticks
