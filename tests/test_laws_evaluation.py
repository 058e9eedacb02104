"""Statistical laws of estimates and diagnostics, in worlds that are small enough to know the truth.

A new estimator joins by its line in ``poem.evaluate``'s ALL; one that holds weights back also by one in HELD_BACK
of ``known_worlds``.
"""

import numpy as np
import pytest
from estimators.bandits import clopper_pearson as their_clopper_pearson
from estimators.bandits import gaussian as their_gaussian
from estimators.bandits import ips as their_ips
from estimators.bandits import snips as their_snips
from known_worlds import (
    HELD_BACK,
    OUTPUTS,
    PESSIMISTIC,
    PLAIN,
    TAIL,
    UNBIASED,
    WEIGHTS,
    drawn,
    every_plain,
    every_size,
    every_world,
    judged_by_cell,
    many_logs,
    ready,
    small_logs,
    taken,
    world,
)
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.dummy import DummyRegressor

import poem
from poem.certificates import pareto_k
from poem.estimators import IPS, SNIPS, DoublyRobust, Rows, ShrinkageDR, SwitchDR
from poem.estimators.intervals import bernstein, bootstrap, clopper_pearson, least_mean, normal, student, truncated
from poem.evaluation.comparison import ALL
from poem.evaluation.diagnostics import diagnose
from poem.evaluation.support import Support

pytestmark = pytest.mark.usefixtures("one_blas_thread")


# ---- worlds of which all is known ------------------------------------------------------------------


@every_world
@every_size
def test_logs_by_cell_are_judged_as_logs_by_row(outputs, weights, n):
    """What the laws of coverage below rest on."""
    here = world(outputs, weights)
    assert here.probability.sum() == pytest.approx(1.0, rel=1e-12)
    counts = here.draw(n, 3, seed=3)
    for estimator in [*PLAIN.values(), *HELD_BACK]:
        by_row = [estimator.judge(taken(here.cells, drawn(log))) for log in counts]
        by_row = [[found.value, found.stderr, found.effective_n] for found in by_row]
        np.testing.assert_allclose(np.transpose(judged_by_cell(estimator, here, counts)), by_row, rtol=1e-9)


# ---- right on average ------------------------------------------------------------------------------


@every_world
@pytest.mark.parametrize("model", ["cells", "true_model"], ids=["wrong model", "true model"])
@pytest.mark.parametrize("name", UNBIASED)
def test_unbiased(name, outputs, weights, model):
    values = [UNBIASED[name].judge(rows).value for rows in small_logs(outputs, weights, model)]
    assert abs(np.mean(values) - world(outputs, weights).truth) < 3 * np.std(values) / np.sqrt(len(values))


@every_world
@every_plain
def test_the_bias_of_weights_that_are_used_whole_vanishes(name, outputs, weights):
    """That of a ratio of sums is of the order of E r²/n."""
    here, n = world(outputs, weights), 20_000
    values, _, _ = judged_by_cell(PLAIN[name], here, many_logs(outputs, weights, n))
    order = here.probability @ here.cells.ratio**2 / n
    assert abs(values.mean() - here.truth) < 3 * values.std() / np.sqrt(len(values)) + order


@every_world
def test_a_true_model_makes_dr_vary_less_than_ips(outputs, weights):
    logs = small_logs(outputs, weights, "true_model")
    by_ips, by_dr = (np.var([estimator.judge(rows).value for rows in logs]) for estimator in UNBIASED.values())
    # Losses of one cell vary as much as they can, with a deviation of up to one half; the model cannot help that.
    assert by_dr < 0.9 * by_ips


@pytest.mark.parametrize("estimator", [one for one in [*ALL.values(), *HELD_BACK] if one.needs_model], ids=str)
def test_a_model_that_predicts_every_loss_is_not_corrected(estimator):
    rows, _ = rows_in_units()
    right = Rows(rows.log_ratio, rows.loss, rows.log_propensity, predicted=rows.loss, expected=rows.expected)
    found = ready(estimator, right).judge(right)
    assert found.value == pytest.approx(rows.expected.mean(), rel=1e-12)
    assert found.stderr == pytest.approx(rows.expected.std(ddof=1) / np.sqrt(60), rel=1e-12)
    assert found.bias_bound == 0.0


@every_world
@pytest.mark.parametrize("estimator", HELD_BACK, ids=str)
def test_held_back_weights_state_enough_of_their_bias(estimator, outputs, weights):
    found = [estimator.judge(rows) for rows in small_logs(outputs, weights)]
    values, stated = [one.value for one in found], [one.bias_bound for one in found]
    off = np.mean(values) - world(outputs, weights).truth
    assert abs(off) <= np.mean(stated) + 3 * np.std(values) / np.sqrt(len(values))


@every_world
@pytest.mark.parametrize("name", [name for name in ALL if name != "DM"])  # DM is as wrong as its model
def test_estimators_that_set_themselves_state_enough_of_their_bias(name, outputs, weights):
    found = [ready(ALL[name], rows).judge(rows) for rows in small_logs(outputs, weights)[:200]]
    values, stated = [one.value for one in found], [one.bias_bound for one in found]
    off = np.mean(values) - world(outputs, weights).truth
    assert abs(off) <= np.mean(stated) + 3 * np.std(values) / np.sqrt(len(values))


@pytest.mark.parametrize("outputs", OUTPUTS)
@pytest.mark.parametrize("estimator", PESSIMISTIC, ids=str)
def test_held_back_weights_make_losses_look_worse(estimator, outputs):
    values = [estimator.judge(rows).value for rows in small_logs(outputs, "heavy")]
    assert np.mean(values) - world(outputs, "heavy").truth > 10 * np.std(values) / np.sqrt(len(values))


@every_world
@pytest.mark.parametrize("estimator", PESSIMISTIC, ids=str)
def test_what_was_held_back_is_all_that_is_missing(estimator, outputs, weights):
    for rows in small_logs(outputs, weights)[:20]:
        missing = estimator.terms(rows).held.mean()
        assert estimator.judge(rows).value - missing == pytest.approx(IPS(None).judge(rows).value, rel=1e-12)


# ---- poem.evaluate itself --------------------------------------------------------------------------


class KnownLosses(RegressorMixin, BaseEstimator):
    """A loss model that is known before any log is: a table of contexts and classes."""

    def __init__(self, table):
        self.table = table

    def fit(self, features, losses):
        return self

    def predict(self, features):
        return np.einsum("nc,ck,nk->n", features[:, :6], self.table, features[:, 6:])


@pytest.mark.parametrize("weights", WEIGHTS)
@every_plain
def test_evaluate_makes_the_intervals_whose_coverage_is_known(name, weights):
    here = world("classes", weights)
    counts = here.draw(2000, 1, seed=8)
    log, rows = here.log(counts[0]), taken(here.cells, drawn(counts[0]))
    found, sums = PLAIN[name].judge(rows), PLAIN[name].terms(rows).by_unit(None)
    expected = {
        "t": student(found.value, found.stderr, found.effective_n - 1.0, TAIL),
        "normal": normal(found.value, found.stderr, TAIL),
        "bootstrap": bootstrap([sums], 500).interval(0, sums, TAIL),
    }
    if name == "IPS":
        gain, cost = rows.ratio * -rows.loss, rows.ratio * (rows.loss + 1.0)
        expected["truncated"] = truncated(cost, TAIL) - 1.0, -truncated(gain, TAIL)
        for method in ("ls", "betting"):
            by_gain, by_cost = (least_mean(method, terms, np.ones(2000), 0.0, TAIL) for terms in (gain, cost))
            expected[method] = by_cost - 1.0, -by_gain
    model = KnownLosses(here.wrong_losses.reshape(6, 4))
    for interval, ends in expected.items():
        line = poem.evaluate(
            here.new, log, [name], interval=interval, model=model, resampling=poem.Resampling(replicates=500)
        )["policy", name]
        np.testing.assert_allclose([line.value, line.low, line.high], [found.value, *ends], rtol=1e-9)


def test_evaluate_makes_the_bernstein_interval_whose_coverage_is_known():
    here = world("classes", "heavy")
    (counts,) = here.draw(2000, 1, seed=8)
    rows = taken(here.cells, drawn(counts))
    _, high = bernstein(IPS(2.0).terms(rows).by_unit(None), 2.0, TAIL)
    line = poem.evaluate(here.new, here.log(counts), [IPS(2.0)], interval="bernstein").lines[0]
    assert line.high == pytest.approx(high, rel=1e-9)
    assert line.low <= here.truth <= line.high


def test_bernstein_intervals_cover_the_loss_of_a_policy_that_does_what_was_hardly_ever_logged():
    # One row in a thousand is of the better output: most logs of 500 rows have none, and no weight is clipped.
    rng, hits = np.random.default_rng(20), 0
    for _ in range(100):
        y = (rng.random(500) < 0.001).astype(int)
        log = poem.BanditLog(
            rng.normal(size=(500, 1)), y, loss=1.0 - y, propensity=np.where(y, 0.001, 0.999), labels=range(2)
        )
        options = {"interval": "bernstein", "loss_bounds": (0, 1)}
        line = poem.evaluate(np.full((500, 2), 0.5), log, "clipped IPS", **options).lines[0]
        hits += line.low <= 0.5 <= line.high
    assert hits >= 95


def test_switching_leaves_the_largest_weights_to_the_model():
    # One row of a thousand has two thirds of the weight, and the model is nearly right.
    rng = np.random.default_rng(21)
    ratio = np.append(np.full(999, 1.0), 2000.0)
    loss = -rng.random(1000)
    rows = Rows(np.log(ratio), loss, predicted=loss + 0.1 * rng.normal(size=1000), expected=np.full(1000, -0.5))
    whole = DoublyRobust().judge(rows)
    for estimator in (SwitchDR(), ShrinkageDR()):
        assert estimator.tuned(rows).judge(rows).stderr < 0.1 * whole.stderr


def test_a_difference_rests_on_the_weaker_of_both_policies():
    rng = np.random.default_rng(22)
    y = rng.choice(2, 1000, p=[0.995, 0.005])
    log = poem.BanditLog(
        rng.normal(size=(1000, 1)), y, loss=rng.random(1000), propensity=np.where(y, 0.005, 0.995), labels=range(2)
    )
    policies = {"new": np.tile([0.995, 0.005], (1000, 1)), "rare": np.tile([0.0, 1.0], (1000, 1))}
    one = poem.evaluate(policies, log, "SNIPS", against="rare")["new", "SNIPS"]
    other = poem.evaluate(policies, log, "SNIPS", against="new")["rare", "SNIPS"]
    assert (one.difference_low, one.difference_high) == pytest.approx((-other.difference_high, -other.difference_low))
    assert one.freedom > other.freedom


def test_weights_are_diagnosed_unit_by_unit():
    # A hundred sessions of fifty equal rows: three sessions carry nearly all weight.
    ratio = np.repeat(np.where(np.arange(100) < 3, 30.0, 0.1), 50)
    rows = Rows(np.log(ratio), -np.ones(5000))
    unit = np.repeat(np.arange(100), 50)
    assert diagnose(rows, None, Support(0.0), None)["effective units"].value > 100
    assert diagnose(rows, unit, Support(0.0), None)["effective units"].value < 5
    assert diagnose(rows, unit, Support(0.0), None).verdict == "don't"


def constant_loss_log():
    here = world("classes", "heavy")
    log = here.log(here.draw(500, 1, seed=9)[0])
    return here.new, poem.BanditLog(log.X, log.y, loss=np.full(500, 0.1), log_propensity=log.log_propensity)


@pytest.mark.parametrize("interval", ["t", "normal", "bootstrap"])
@pytest.mark.parametrize("name", ["SNIPS", "SNDR"])
def test_a_constant_loss_has_no_width(name, interval):
    line = poem.evaluate(*constant_loss_log(), [name], interval=interval)["policy", name]
    assert line.low == line.high == line.value == 0.1


@pytest.mark.parametrize("interval", ["t", "normal", "bootstrap"])
def test_a_constant_regressor_and_a_constant_loss_have_no_width(interval):
    model = DummyRegressor(strategy="constant", constant=0.1)
    line = poem.evaluate(*constant_loss_log(), ["SNDR"], model=model, interval=interval)["policy", "SNDR"]
    # The mean of predictions that are all 0.1 can be off by the last bit.
    assert (line.low, line.value, line.high) == pytest.approx((0.1, 0.1, 0.1), rel=1e-15)
    assert (line.difference_low, line.difference, line.difference_high) == pytest.approx((0.0, 0.0, 0.0), abs=1e-15)


# ---- laws that evaluate does not obey yet ----------------------------------------------------------


def plain_log(logging, mean_loss, n, seed=17):
    """Classes whose loss is certain, with one column that says nothing."""
    rng = np.random.default_rng(seed)
    y = rng.choice(len(logging), n, p=logging)
    loss = np.asarray(mean_loss)[y]
    X, propensity = rng.normal(size=(n, 1)), np.asarray(logging)[y]
    return poem.BanditLog(X, y, loss=loss, propensity=propensity, labels=range(len(logging)))


def test_clipped_snips_covers_what_it_cannot_see_above():
    logging, new, mean_loss = [0.95, 0.05], [0.05, 0.95], [-1.0, 0.0]
    found = poem.evaluate(np.tile(new, (20_000, 1)), plain_log(logging, mean_loss, 20_000), SNIPS(2.0))
    truth = np.dot(new, mean_loss)
    assert found.lines[0].low <= truth <= found.lines[0].high


def test_clipped_snips_states_enough_of_its_bias():
    logging, new, mean_loss = np.array([0.475, 0.475, 0.05]), np.array([0.05, 0.0, 0.95]), np.array([-1.0, 0.0, -0.5])
    log = plain_log(logging, mean_loss, 20_000)
    found = SNIPS(2.0).judge(Rows(np.log(np.maximum(new, 1e-300) / logging)[log.y], log.loss))
    assert abs(found.value - new @ mean_loss) <= found.bias_bound + 3 * found.stderr


def test_a_difference_covers_what_was_held_back_of_the_other_policy():
    mean_loss, new, other = [-0.4, -1.0], [0.9, 0.1], [0.05, 0.95]
    log = plain_log([0.95, 0.05], mean_loss, 20_000)
    policies = {"new": np.tile(new, (20_000, 1)), "other": np.tile(other, (20_000, 1))}
    line = poem.evaluate(policies, log, IPS(2.0), against="other").lines[0]
    truth = np.dot(new, mean_loss) - np.dot(other, mean_loss)
    assert line.difference_low <= truth <= line.difference_high


@pytest.mark.parametrize("estimator", HELD_BACK, ids=str)
def test_copies_of_a_row_within_its_unit_leave_the_stated_bias_alone(estimator):
    rows, _ = rows_in_units()
    at = np.repeat(np.arange(60), 5)
    assert estimator.judge(taken(rows, at), at).bias_bound == pytest.approx(estimator.judge(rows).bias_bound, rel=1e-9)


@pytest.mark.parametrize(
    ("interval", "estimator", "rare"), [("bernstein", IPS(5.0), -1.0), ("truncated", IPS(None), 1.0)]
)
def test_bounds_for_any_n_hold_for_a_loss_that_is_rare(interval, estimator, rare):
    """One row in a hundred has the rare loss; one log of 200 rows in seven has none of them."""
    rng, logs, hits = np.random.default_rng(18), 200, 0
    for _ in range(logs):
        loss = rare * (rng.random(200) < 0.01)
        log = poem.BanditLog(rng.normal(size=(200, 1)), rng.choice(2, 200), loss=loss, propensity=np.full(200, 0.5))
        bounds = (min(rare, 0.0), max(rare, 0.0))  # which such a log cannot tell
        options = {"interval": interval, "loss_bounds": bounds}
        line = poem.evaluate(np.tile([0.3, 0.7], (200, 1)), log, estimator, **options).lines[0]
        hits += line.low <= 0.01 * rare <= line.high
    assert hits / logs >= 0.95


def test_clopper_pearson_has_two_ends_when_weights_add_up_to_too_much():
    low, high = clopper_pearson(np.full(100, 3.0), np.full(100, 3.0), TAIL)
    assert 0.0 <= low <= high <= 1.0


# ---- an independent implementation -----------------------------------------------------------------


@every_world
def test_vw_estimators_agree(outputs, weights):
    """Theirs are rewards, ours losses: −reward, so that the ends of an interval change places.

    Values and intervals agree as they are: both take the variance of the products with n − 1, and no row of these
    logs shares its unit with another, for which only poem widens its interval. poem's IPS is around the worst logged
    loss, which is 0 here; around any other the two differ by (mean weight − 1)·worst.
    """
    here = world(outputs, weights)
    (counts,) = here.draw(500, 1, seed=10)
    log, rows = here.log(counts), taken(here.cells, drawn(counts))
    ips, snips = their_ips.Estimator(), their_snips.Estimator()
    intervals = {"normal": their_gaussian.Interval()}
    for logged, loss, log_ratio in zip(np.exp(rows.log_propensity), rows.loss, rows.log_ratio, strict=True):
        for one in (ips, snips, *intervals.values()):
            one.add_example(logged, -loss, np.exp(log_ratio) * logged)
    for method, theirs in intervals.items():
        found = poem.evaluate(here.new, log, ["IPS", "SNIPS"], interval=method, level=0.9)
        line = found["policy", "IPS"]
        assert line.value == pytest.approx(-ips.get(), rel=1e-9)
        assert found["policy", "SNIPS"].value == pytest.approx(-snips.get(), rel=1e-9)
        low, high = theirs.get(alpha=0.1)
        assert (line.low, line.high) == pytest.approx((-high, -low), rel=1e-9)


def test_vw_estimators_agree_where_all_weights_are_1():
    """Elsewhere theirs takes the largest weight for one trial, which covers far too rarely."""
    gain, theirs = (np.random.default_rng(23).random(50) < 0.8).astype(float), their_clopper_pearson.Interval()
    for reward in gain.tolist():
        theirs.add_example(0.5, reward, 0.5)
    assert clopper_pearson(gain, np.ones(50), 0.05) == pytest.approx(theirs.get(alpha=0.1), rel=1e-9)


# ---- units -----------------------------------------------------------------------------------------

every_estimator = pytest.mark.parametrize("estimator", [*ALL.values(), *HELD_BACK], ids=str)


def rows_in_units():
    """60 rows in 20 units, all of their fields drawn at random."""
    rng = np.random.default_rng(15)
    rows = Rows(rng.normal(size=60), -rng.random(60), -rng.random(60), -rng.random(60), -rng.random(60))
    return rows, rng.permutation(np.arange(60) % 20)


@every_estimator
def test_the_jackknife_leaves_units_out(estimator):
    rows, unit = rows_in_units()
    fixed = ready(estimator, rows)
    by_hand = [fixed.judge(taken(rows, unit != one)).value for one in range(20)]
    np.testing.assert_allclose(fixed.terms(rows).by_unit(unit).left_out(), by_hand, rtol=1e-12)


@every_estimator
def test_shares_in_the_error_add_up_to_nothing(estimator):
    rows, unit = rows_in_units()
    for of in (unit, None):
        shares = ready(estimator, rows).terms(rows).by_unit(of).shares()
        assert abs(shares.sum()) < 1e-14
        assert np.abs(shares).max() > 1e-3


@every_estimator
@pytest.mark.parametrize("copies", [2, 5])
def test_copies_of_a_row_within_its_unit_tell_nothing_new(estimator, copies):
    rows, _ = rows_in_units()
    fixed, at = ready(estimator, rows), np.repeat(np.arange(60), copies)
    once, often, naive = fixed.judge(rows), fixed.judge(taken(rows, at), at), fixed.judge(taken(rows, at))
    assert (often.units, often.n) == (60, 60 * copies)
    assert often.value == pytest.approx(once.value, rel=1e-12)
    assert often.stderr == pytest.approx(once.stderr, rel=1e-12)
    assert naive.stderr < 0.8 * once.stderr


# ---- outcomes and support --------------------------------------------------------------------------


def trusted_and_covered(loss_of, mean, n, logs=300):
    """Judge a policy that chooses one of two outputs nine times in ten on logs of both, equally often."""
    found = []
    for seed in range(logs):
        rng = np.random.default_rng([seed, 28])
        loss = loss_of(rng, n)
        rows = Rows(np.log(np.where(rng.random(n) < 0.5, 1.8, 0.2)), loss - loss.max(), np.full(n, np.log(0.5)))
        one = SNIPS(None).judge(rows)
        low, high = student(one.value, one.stderr, one.effective_n - 1.0, TAIL)
        found.append((diagnose(rows, None, Support(0.0), None).verdict == "trust", low <= mean - loss.max() <= high))
    return np.transpose(found)


@pytest.mark.parametrize(
    ("loss_of", "mean", "n"),
    [
        (lambda rng, n: (rng.random(n) < 0.005).astype(float), 0.005, 500),
        (lambda rng, n: (rng.random(n) < 0.01).astype(float), 0.01, 1000),
        (lambda rng, n: np.exp(1.5 * rng.normal(size=n)), np.exp(1.125), 500),
        (lambda rng, n: np.exp(2.0 * rng.normal(size=n)), np.exp(2.0), 2000),
    ],
    ids=["0.5% fail", "1% fail", "lognormal 1.5", "lognormal 2"],
)
def test_few_outcomes_are_not_trusted(loss_of, mean, n):
    trusted, covered = trusted_and_covered(loss_of, mean, n)
    assert covered.mean() < 0.93
    assert np.mean(trusted & ~covered) <= 0.05
    assert trusted.mean() <= 0.05


@pytest.mark.parametrize(
    ("loss_of", "mean"),
    [
        (lambda rng, n: (rng.random(n) < 0.3).astype(float), 0.3),
        (lambda rng, n: (rng.random(n) < 0.85).astype(float), 0.85),
        (lambda rng, n: rng.random(n), 0.5),
        (lambda rng, n: rng.normal(size=n), 0.0),
    ],
    ids=["30%", "85%", "uniform", "normal"],
)
def test_many_outcomes_are_trusted(loss_of, mean):
    trusted, covered = trusted_and_covered(loss_of, mean, 500)
    assert trusted.mean() >= 0.9
    assert covered[trusted.astype(bool)].mean() >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / 300)


@pytest.mark.parametrize("name", PLAIN)
def test_what_had_no_choice_is_charged_and_not_trusted(name):
    """A rule decides for a fifth of the contexts; the policy would do otherwise there, which costs 1 and not 0.2."""
    rng, hits, n = np.random.default_rng(29), 0, 600
    for _ in range(20):
        ruled = rng.random(n) < 0.2
        y = np.where(ruled, 0, rng.integers(0, 2, n))
        loss = (rng.random(n) < np.where(ruled, 0.2, 0.4)).astype(float)
        p = np.where(ruled, 1.0, 0.5)
        where = {"context": ruled.astype(int), "group": range(n)}
        log = poem.BanditLog(np.array([[0.0], [1.0]]), y, loss=loss, propensity=p, labels=range(2), **where)
        policy = np.tile([0.1, 0.9], (n, 1))
        found = poem.evaluate(policy, log, name, loss_bounds=(0, 1))
        truth = 0.8 * 0.4 + 0.2 * (0.1 * 0.2 + 0.9 * 1.0)
        finding = found.diagnostics["policy"]["provably unsupported"]
        assert finding.value == pytest.approx(0.9 * ruled.mean())
        assert finding.verdict == "don't"
        assert "propensity 1" in finding.reason
        hits += found.lines[0].low <= truth <= found.lines[0].high
    assert hits >= 18


# ---- the tail of the weights -----------------------------------------------------------------------


@pytest.mark.parametrize("k", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("seed", range(5))
def test_the_shape_of_a_pareto_tail_is_found(k, seed):
    ratio = stats.genpareto(k).rvs(20_000, random_state=seed)
    assert pareto_k(ratio) == pytest.approx(k, abs=0.12)
    assert pareto_k(1e-6 * ratio) == pytest.approx(pareto_k(ratio), abs=1e-6)  # a shape has no scale
    finding = diagnose(Rows(np.log(ratio), -np.ones(20_000)), None, Support(0.0), None)["Pareto k"]
    assert (finding.verdict == "don't") == (k == 0.9)
    assert finding.verdict == "trust" or k > 0.2


@pytest.mark.parametrize("weight", [1e-9, 0.3, 1.0, 7e5])
def test_equal_weights_have_no_tail(weight):
    assert pareto_k(np.full(20_000, weight)) == -np.inf


def test_bounded_weights_have_a_bounded_tail():
    # The shape of a uniform distribution is −1.
    assert pareto_k(np.random.default_rng(16).random(20_000)) == pytest.approx(-1.0, abs=0.12)


@pytest.mark.parametrize("shift", [-1e6, -50.0, 0.0, 50.0, 1e6])
def test_the_tail_of_losses_does_not_depend_on_where_zero_is(shift):
    loss = stats.genpareto(0.6).rvs(5_000, random_state=4)
    assert pareto_k(loss + shift) == pytest.approx(pareto_k(loss), abs=1e-4)


def test_near_ties_and_a_few_others_are_no_heavy_tail():
    # A sharp policy agrees with an ε-greedy logging policy in most rows: its weights there are 1/0.91 but for a trifle.
    rng = np.random.default_rng(5)
    weights = np.where(
        rng.random(2_000) < 0.01, 10.0 * rng.uniform(0.9, 1.0, 2_000), 1.1 - rng.exponential(1e-5, 2_000)
    )
    assert pareto_k(weights) > 0.7
    assert pareto_k(weights, tied=0.01) < 0.5
    assert diagnose(Rows(np.log(weights), -np.ones(2_000)), None, None, None)["Pareto k"].verdict == "trust"


def test_two_different_weights_have_a_shape():
    # 100 to 120 equal excesses put 40 points on the grid, of which the third is 0.
    for many in range(90, 130):
        assert not np.isnan(pareto_k(np.repeat([1.0, 5.0], [2000 - many, many])))
