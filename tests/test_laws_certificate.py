"""Laws of certificates: the terms that are bet on, the bets, and what a fit may claim and return."""

from functools import cache

import numpy as np
import pytest
from easy_logs import FEW, a_policy, easy, easy_log, logged_by, noise_log
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import poem
from benchmarks.worlds import WORLDS
from poem.certificates.certificate import Evidence, Forecast, corrected
from poem.certificates.paired import CAPS, PAIRED, Control, paired_terms
from poem.compute.kernels import Threads
from poem.data.layout import Layout
from poem.errors import InputError
from poem.estimators.betting import Bets, best_share, downside, goal_bound, log_capital, lower_bound, pilot_bets
from poem.learning.reserve import WORDS
from poem.structures import MultiClass, MultiLabel

BOUNDS = (0.0, 1.1)
seeds = st.integers(0, 2**32 - 1)


# ---- paired terms ---------------------------------------------------------------------------------


class AnyLogger:
    """A model of the logging policy that may be wrong in any way."""

    def __init__(self, scores):
        self.scores = scores

    def of_piece(self, shard, piece):
        return self.scores[shard.first + piece.contexts.start : shard.first + piece.contexts.stop]


class AnyLosses:
    """A loss model that may be wrong in any way."""

    def __init__(self, values, alone):
        self.values, self.alone = values, alone

    def of_piece(self, shard, piece):
        where = slice(shard.first + piece.contexts.start, shard.first + piece.contexts.stop)
        return np.column_stack([self.values[where], self.alone[where]])


class TinyWorld:
    """All that can happen in three contexts: every output that the logging policy ever chooses, once."""

    def __init__(self, structure, seed, lacking, scale, contexts=3):
        rng = np.random.default_rng(seed)
        outputs = structure.every(1 << 12)
        j, k = len(outputs), structure.n_scores
        P = rng.dirichlet(np.full(j, 0.5), size=contexts) + 1e-3
        P *= rng.random((contexts, j)) >= lacking
        P[np.arange(contexts), rng.integers(0, j, contexts)] += 0.1
        self.P = P / P.sum(axis=1, keepdims=True)
        self.R = np.where(rng.random((contexts, j)) < 0.5, rng.integers(0, 2, (contexts, j)), rng.random((contexts, j)))
        self.weights = scale * rng.normal(size=(contexts, k))
        self.context, output = np.nonzero(self.P > 0.0)
        # One context has all features 0 but its own, so that its scores are what the weights say.
        log = poem.BanditLog(
            np.eye(contexts),
            outputs[output],
            loss=-self.R[self.context, output],
            propensity=self.P[self.context, output],
            context=self.context,
            labels=range(k),
        )
        self.layout, self.p = Layout(log, structure, False), self.P[self.context, output]
        policy = poem.Policy(structure, self.weights, False, tuple(range(k)))
        everything = np.tile(outputs, (contexts, *(1,) * (outputs.ndim - 1)))
        h = np.exp(policy.log_prob(np.repeat(np.eye(contexts), j, axis=0), everything)).reshape(contexts, j)
        self.gain = ((h - self.P) * self.R).sum(axis=1)
        self.logger = AnyLogger(scale * rng.normal(size=(contexts, k)))
        self.losses = AnyLosses(rng.normal(size=(contexts, k)), rng.normal(size=contexts) - 0.5)

    def terms(self, seed=0, control=True):
        """Return the term of every row for every cap, and their exact means in each context."""
        control = Control(self.logger, self.losses, (seed,)) if control else None
        terms = paired_terms(self.layout, self.layout.loss, self.weights, control, Threads())
        order = self.layout.order
        means = [np.bincount(self.context[order], weights=self.p[order] * column) for column in terms.T]
        return terms, np.array(means).T


TINY = [MultiClass(2), MultiClass(3), MultiLabel(1), MultiLabel(2)]


@pytest.mark.parametrize("structure", TINY, ids=str)
@given(seed=seeds, lacking=st.sampled_from([0.0, 0.3, 0.7]), scale=st.sampled_from([0.0, 1.0, 5.0, 30.0]))
@settings(max_examples=40, deadline=None)
def test_terms_never_mean_more_than_the_gain(structure, seed, lacking, scale):
    world = TinyWorld(structure, seed, lacking, scale)
    terms, means = world.terms()
    assert terms.shape == (len(world.p), len(CAPS))
    assert np.isfinite(terms).all()
    assert (means <= world.gain[:, None] + 1e-9).all()
    full = (world.P > 0.0).all(axis=1)
    np.testing.assert_allclose(means[full], np.repeat(world.gain[full, None], len(CAPS), axis=1), atol=1e-9)


@pytest.mark.parametrize("structure", [*TINY, MultiLabel(9)], ids=str)
@given(seed=seeds, lacking=st.sampled_from([0.0, 0.5]), scale=st.sampled_from([0.1, 1.0, 5.0, 30.0, 300.0]))
@settings(max_examples=25, deadline=None)
def test_no_term_is_below_its_floor(structure, seed, lacking, scale):
    terms, _ = TinyWorld(structure, seed, lacking, scale, contexts=2).terms()
    floors = np.array([form.floor for form in PAIRED])
    assert (terms >= floors - 1e-9).all()


@pytest.mark.parametrize("structure", TINY, ids=str)
@pytest.mark.parametrize("lacking", [0.0, 0.5])
def test_without_a_control_terms_are_differences_of_weighted_rewards(structure, lacking):
    world = TinyWorld(structure, 5, lacking, 1.0)
    terms, means = world.terms(control=False)
    assert terms.shape == (len(world.p), 1)
    assert (means[:, 0] <= world.gain + 1e-12).all()
    np.testing.assert_allclose(terms, world.terms()[0][:, :1], atol=1e-12)  # the cap of 0
    assert CAPS[0] == 0.0


@pytest.mark.parametrize("structure", TINY, ids=str)
def test_with_the_true_models_terms_are_doubly_robust_differences(structure):
    world = TinyWorld(structure, 5, 0.0, 0.3)
    logger = poem.Policy(structure, world.logger.scores, False, tuple(range(structure.n_scores)))
    outputs = structure.every(64)
    for c in range(3):  # the logging policy is what the model says
        world.P[c] = np.exp(logger.log_prob(np.tile(np.eye(3)[c], (len(outputs), 1)), outputs))
    exact = TinyWorld.__new__(TinyWorld)
    exact.__dict__.update(world.__dict__)
    exact.layout.log_propensity = np.log(world.P.ravel())
    exact.losses = AnyLosses(np.zeros_like(world.losses.values), np.full(3, -0.5))  # q = ½ everywhere
    terms = exact.terms()[0][:, -1]
    policy = poem.Policy(structure, world.weights, False, tuple(range(structure.n_scores)))
    h = np.exp(policy.log_prob(np.repeat(np.eye(3), len(outputs), axis=0), np.concatenate([outputs] * 3)))
    np.testing.assert_allclose(terms, (h / world.P.ravel() - 1.0) * (world.R.ravel() - 0.5), atol=1e-9)


@pytest.mark.parametrize(("lacking", "scale"), [(0.0, 0.5), (0.0, 2.0), (0.5, 0.5)])
@pytest.mark.parametrize("count", [1, 64])
def test_terms_of_many_label_sets_mean_the_gain_over_all_samples(lacking, scale, count, monkeypatch):
    monkeypatch.setattr("poem.certificates.paired.COUNT", count)
    world = TinyWorld(MultiLabel(9), 3, lacking, scale, contexts=2)
    means = np.array([world.terms(seed)[1] for seed in range(200)])
    assert means[:, :, -1].std() > 0.0  # Σ s is sampled: there are 512 outputs
    stderr = means.std(axis=0) / np.sqrt(len(means)) + 1e-9
    excess = (means.mean(axis=0) - world.gain[:, None]) / stderr
    assert (excess < 4.5).all()
    if lacking == 0.0:
        assert (excess > -4.5).all()


# ---- bets -----------------------------------------------------------------------------------------


def capital(terms, floor, mean, bets, sizes):
    """W(m) as it is written down."""
    largest = sizes.max()
    total = 0.0
    for share, weight in zip(bets.share, bets.weight, strict=True):
        above = (terms - floor * sizes) / ((mean - floor) * largest)
        total += weight * np.prod(1.0 - share * sizes / largest + share * above)
    return total


def some_terms(seed, units=60, floor=-2.0):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, units).astype(float)
    return floor * sizes + sizes * rng.gamma(0.7, 3.5, units), floor, sizes


@pytest.mark.parametrize(
    "bets", [Bets.around(0.2), Bets.everywhere(), Bets.around(0.05).and_also(Bets.around(0.5), 0.2)]
)
@pytest.mark.parametrize("alpha", [0.3, 0.05, 0.001])
def test_the_bound_is_the_largest_mean_that_the_capital_speaks_against(bets, alpha):
    for seed in range(5):
        terms, floor, sizes = some_terms(seed)
        bound = lower_bound(terms, floor, alpha, bets, sizes)
        grid = np.linspace(floor, 3.0, 501)[1:]
        rejected = [mean for mean in grid if capital(terms, floor, mean, bets, sizes) >= 1.0 / alpha]
        by_hand = max(rejected, default=floor)
        assert by_hand - 1e-6 <= bound <= by_hand + grid[1] - grid[0] + 1e-6
        for mean in (bound + 0.01, 0.0, 1.0):
            expected = np.log(capital(terms, floor, mean, bets, sizes))
            assert log_capital(terms, floor, mean, bets, sizes) == pytest.approx(expected, abs=1e-9)


def test_the_stakes_share_one_capital():
    for bets in (
        Bets.around(0.3),
        Bets.around(9.0),
        Bets.around(0.0),
        Bets.everywhere().and_also(Bets.around(0.1), 0.4),
    ):
        assert bets.weight.sum() == pytest.approx(1.0)
        assert (bets.share > 0.0).all()
        assert (bets.share < 1.0).all()


@given(seed=seeds)
@settings(max_examples=20, deadline=None)
def test_less_risk_of_error_means_a_lower_bound(seed):
    terms, floor, sizes = some_terms(seed)
    bounds = [lower_bound(terms, floor, alpha, Bets.around(0.2), sizes) for alpha in (0.5, 0.2, 0.05, 1e-3, 1e-9)]
    assert bounds == sorted(bounds, reverse=True)
    assert floor <= bounds[-1] <= bounds[0] <= terms.sum() / sizes.sum()


@given(seed=seeds, scale=st.sampled_from([1e-3, 0.5, 7.0, 1e4]))
@settings(max_examples=20, deadline=None)
def test_the_bound_scales_with_the_terms_and_forgets_their_order(seed, scale):
    terms, floor, sizes = some_terms(seed)
    bound = lower_bound(terms, floor, 0.05, Bets.everywhere(), sizes)
    near = {"abs": 1e-5 * abs(floor)}
    assert lower_bound(scale * terms, scale * floor, 0.05, Bets.everywhere(), sizes) / scale == pytest.approx(
        bound, **near
    )
    assert lower_bound(scale * terms, floor, 0.05, Bets.everywhere(), scale * sizes) == pytest.approx(bound, **near)
    order = np.random.default_rng(seed).permutation(len(terms))
    assert lower_bound(terms[order], floor, 0.05, Bets.everywhere(), sizes[order]) == pytest.approx(bound, **near)
    one = np.ones(len(terms))
    assert lower_bound(terms, 6 * floor, 0.05, Bets.everywhere()) == lower_bound(
        terms, 6 * floor, 0.05, Bets.everywhere(), one
    )


def test_no_units_say_nothing():
    assert lower_bound(np.empty(0), -1.5, 0.05, Bets.everywhere()) == -1.5


def heavy(rng, n):
    return stats.lognorm.rvs(2.0, scale=np.exp(-2.0), size=n, random_state=rng) - 1.0, np.ones(n)


def rare(rng, n):
    return 50.0 * (rng.random(n) < 0.02) - 1.0, np.ones(n)


def clustered(rng, n):
    """Rows of a unit share most of their luck; units are of one to twenty rows."""
    sizes = np.where(rng.random(n) < 0.1, 20, rng.integers(1, 4, n))
    unit = np.repeat(np.arange(n), sizes)
    each = np.repeat(rng.exponential(size=n), sizes) * rng.exponential(size=len(unit)) - 1.0
    return np.bincount(unit, weights=each), sizes.astype(float)


@pytest.mark.parametrize("draw", [heavy, rare, clustered])
@pytest.mark.parametrize("stakes", ["known", "everywhere", "pilot"])
def test_bounds_hold_in_nineteen_cases_of_twenty(draw, stakes):
    misses, n = 0, 150
    for seed in range(300):
        rng = np.random.default_rng([seed, 3])
        terms, sizes = draw(rng, n)  # of a mean of 0
        if stakes == "pilot":
            bets, rest = pilot_bets(terms, -1.0, 0.05, rng, sizes)
            terms, sizes = terms[rest], sizes[rest]
        else:
            bets = Bets.everywhere() if stakes == "everywhere" else Bets.around(best_share(1.5, n, 0.05))
        misses += lower_bound(terms, -1.0, 0.05, bets, sizes) > 1e-9
    assert misses <= 15


@pytest.mark.parametrize("cap", [0, 5])
def test_a_certificate_bets_on_units_with_the_stakes_and_the_floor_that_were_foreseen(cap):
    rng, floor = np.random.default_rng(0), PAIRED[cap].floor
    units = rng.permutation(np.repeat(np.arange(80), rng.integers(1, 5, 80)))
    ratio, reward = rng.exponential(size=len(units)), rng.random(len(units))
    terms = floor + rng.gamma(1.0, 0.3 - floor, len(units))  # of a mean of 0.3
    assert terms.min() < -1.0 or cap == 0
    evidence, earlier = Evidence(terms, PAIRED[cap], ratio, reward, units, 0.4), rng.gamma(1.0, 0.3 - floor, 50) + floor
    foreseen = Forecast(PAIRED[cap], 0.1, 6.0, earlier, np.ones(50))
    found = evidence.certificate(a_policy(MultiClass(3)), foreseen, 0.9, 5.0, ("it is so",))
    sums, sizes = np.bincount(units, weights=terms), np.bincount(units).astype(float)
    spread = downside(earlier, floor, np.ones(50), 6.0) * 6.0 / sizes.max()
    student = stats.ttest_1samp(sums, 0.0)  # of sums: units differ in size
    assert found.gain_at_least == pytest.approx(5.0 * goal_bound(sums, floor, 0.1, spread, sizes), rel=1e-9)
    assert student.statistic > 0.0
    assert (found.rows, found.units, found.conditions) == (len(units), 80, ("it is so",))
    low, high = found.interval
    assert low < 5.0 * terms.mean() < high
    assert found.gain <= 5.0 * terms.mean()


def test_an_interval_is_wide_if_it_would_have_rested_on_few_of_the_earlier_units():
    rng, units = np.random.default_rng(0), np.arange(300)
    ratio, reward = rng.exponential(size=300), rng.random(300)
    evidence = Evidence((ratio - 1.0) * reward - 0.2, PAIRED[0], ratio, reward, units, 0.4)
    usual = rng.normal(0.0, 0.5, 200).clip(-1.0)
    rare = np.where(np.arange(200) < 2, 40.0, usual)

    def interval(earlier):
        foreseen = Forecast(PAIRED[0], 0.1, 1.0, earlier, np.ones(len(earlier)))
        return evidence.certificate(a_policy(MultiClass(3)), foreseen, 0.95, 1.0, ()).interval

    narrow, wide = interval(usual), interval(rare)
    value, reach = evidence.terms.mean(), stats.t.ppf(0.975, 299) * evidence.terms.std(ddof=1) / np.sqrt(300)
    assert narrow == pytest.approx((value - reach, value + reach), rel=1e-9)
    assert wide[0] <= narrow[0] < narrow[1] < wide[1]
    # Of many units in a forecast, as many count as there are fresh ones.
    assert interval(np.tile(usual, 50)) == narrow


@pytest.mark.parametrize("shift", [-3.0, 0.0, 3.0])
@pytest.mark.parametrize("n", [2, 8, 40])
@pytest.mark.parametrize("scale", [0.0, 0.3, 1.0])
def test_a_gain_and_its_interval_are_possible_and_the_bound_is_what_it_was(shift, n, scale):
    rng, units = np.random.default_rng(n), np.arange(n)
    reward, terms = scale * rng.random(n), shift + rng.exponential(2.0, n) - 1.0
    evidence = Evidence(terms, PAIRED[0], rng.exponential(size=n), reward, units, 0.4)
    foreseen = Forecast(PAIRED[0], 0.1, 1.0, terms.clip(-1.0), np.ones(n))
    found = evidence.certificate(a_policy(MultiClass(3)), foreseen, 0.95, 2.0, ())
    low, high = found.interval
    stakes = foreseen.spread * foreseen.largest
    betting = goal_bound(terms, PAIRED[0].floor, 0.05, stakes, np.ones(n))
    student = stats.t.ppf(0.975, n - 1) * terms.std(ddof=1) / np.sqrt(n)
    assert found.gain_at_least == pytest.approx(2.0 * min(betting, terms.mean() - student), rel=1e-9)
    assert found.gain_at_least <= low <= found.gain <= high
    assert low >= -2.0
    if found.gain < high:
        assert found.gain >= 2.0 * -reward.mean() - 1e-12
    if found.gain > low:
        assert found.gain <= 2.0 * (1.0 - reward.mean()) + 1e-12
    if high > low:
        assert high <= 2.0


# ---- the estimate of a certified gain -------------------------------------------------------------


@pytest.mark.parametrize("least", [1.96, 2.1, 2.5])
@pytest.mark.parametrize("above", [0.0, 0.5, 1.0, 2.0, 3.0, 6.0])
def test_certified_gains_are_right_on_average_where_half_of_the_logs_or_more_are_certified(least, above):
    mean = least + above
    estimates = least + np.linspace(0.0, 14.0, 14_001)
    found = np.array([corrected(value, 1.0, value - least, value - least) for value in estimates])
    chance = stats.norm.pdf(estimates, mean)
    assert (found @ chance) / chance.sum() == pytest.approx(mean, rel=0.09)
    assert (estimates @ chance) / chance.sum() > (found @ chance) / chance.sum()
    assert (found <= estimates).all()
    assert (found >= estimates - least - 1e-9).all()
    assert (np.diff(found) > 0.0).all()
    assert 0.3 * found == pytest.approx([corrected(0.3 * z, 0.3, *[0.3 * (z - least)] * 2) for z in estimates])


def test_without_noise_nobody_is_lucky():
    assert corrected(0.3, 0.0, 0.1, 0.1) == 0.3


# ---- no false claims ------------------------------------------------------------------------------

CLAIMS = [
    ("null-uniform", 50),
    ("null-softmax", 200),
    ("rule", 300),
    ("catastrophes", 300),
    ("rare-failures", 500),
    ("thompson", 300),
    ("clusters", 300),
    ("huge-weight", 200),
]


@pytest.mark.filterwarnings("ignore::poem.errors.DegenerateWarning")
@pytest.mark.parametrize(("name", "n"), CLAIMS)
def test_hardly_anything_is_claimed_that_is_not_true(name, n):
    world, false, too_high = WORLDS[name], 0, 0
    for seed in range(12):  # python -m benchmarks.worlds draws 400
        sample = world.sample(n, world.rng(n, seed))
        found = poem.fit(sample.log, learners="direct", seed=seed, n_jobs=1, **world.options)
        if found.certificate is not None:
            gain = sample.true_gain(found.certificate.policy)
            false += found.certificate.certified and gain <= 1e-12
            too_high += found.certificate.gain_at_least > gain + 1e-12
    assert false == 0
    assert too_high <= 1


def test_the_rule_is_respected_and_most_of_what_can_be_gained_is():
    world, enough = WORLDS["rule"], 0
    for seed in range(5):
        sample = world.sample(1000, world.rng(1000, seed))
        found = poem.fit(sample.log, seed=seed, n_jobs=1, **world.options)
        gain = sample.true_gain(found.policy) if found.certified else 0.0
        assert gain >= 0.0
        enough += gain >= 0.5 * sample.best_gain()
    assert enough >= 3


# ---- what is returned -----------------------------------------------------------------------------


def test_what_is_returned_is_what_was_certified_to_the_bit():
    found = poem.fit(easy_log(), learners=FEW, loss_bounds=BOUNDS)
    assert (found.origin, found.certified) == ("certified", True)
    assert found.policy.weights.tobytes() == found.certificate.policy.weights.tobytes()
    again = poem.certify(found.policy, easy_log(1), loss_bounds=BOUNDS)
    assert again.policy is found.policy


def test_a_refitted_policy_is_another_one_and_the_result_says_so():
    plain, found = (
        poem.fit(easy_log(), learners=FEW, loss_bounds=BOUNDS, selection=poem.Selection(refit=refit))
        for refit in (False, True)
    )
    assert (found.origin, found.certified) == ("refitted", True)
    assert found.policy.record.n_train == 160
    assert found.policy.weights.tobytes() != found.certificate.policy.weights.tobytes()
    assert found.certificate.policy.weights.tobytes() == plain.policy.weights.tobytes()
    assert "this is for the policy before refitting" in found.explain()
    assert "refitting" not in plain.explain()


@pytest.mark.parametrize("learners", [FEW, "auto"], ids=["few", "auto"])
@pytest.mark.parametrize("validation", [0.4, "auto"])
def test_rows_that_certify_do_not_enter_into_the_policy(learners, validation):
    n = 200 if learners == validation == "auto" else 160  # there are trees in the former
    log = easy_log(contexts=n)
    options = {"learners": learners, "loss_bounds": BOUNDS, "selection": poem.Selection(validation=validation)}
    found = poem.fit(log, **options)
    rows = found.certificate.rows
    assert rows == 0.4 * n or validation == "auto"
    last = np.arange(n) >= n - rows
    random = np.random.default_rng(0).random(n)
    losses = (1.1 - log.loss, random, np.zeros(n), np.full(n, 1.1))
    fits = [poem.fit(log.replaced(loss=np.where(last, loss, log.loss)), **options) for loss in losses]
    for changed in fits:
        assert changed.certificate.policy.weights.tobytes() == found.policy.weights.tobytes()
        assert changed.certificate.gain_at_least != found.certificate.gain_at_least
        assert changed.table.to_dicts()[0]["validation"] == found.table.to_dicts()[0]["validation"]
    assert not fits[0].certified


def test_other_rows_that_certify_make_the_same_policy():
    log, other = easy_log(), easy_log(9)
    fits = [
        poem.fit(log.take(np.arange(120)), learners=FEW, selection=poem.Selection(validation=one), loss_bounds=BOUNDS)
        for one in (log, other)
    ]
    weights = [found.certificate.policy.weights.tobytes() for found in fits]
    assert weights[0] == weights[1]


def test_without_a_certificate_one_keeps_what_one_has():
    logger = a_policy(poem.MultiClass(3))
    floored = logger.with_floor(0.1)
    assert poem.fit(noise_log(), learners=FEW).policy is None
    assert poem.fit(noise_log(), learners=FEW, logging_policy=logger).policy is logger
    assert poem.fit(noise_log(), learners=FEW, logging_policy=floored).policy is floored


@pytest.mark.parametrize("use", [poem.evaluate, poem.estimate, poem.certify])
def test_no_policy_cannot_be_used(use):
    with pytest.raises(InputError, match=r"is None: the fit certified no policy.*Keep what is running"):
        use(None, easy_log())


# ---- which rows certify, and what is taken for granted --------------------------------------------


def test_with_times_the_latest_units_certify():
    log, hour = easy_log(), np.random.default_rng(0).permutation(160).astype(float)
    found = poem.fit(
        log.replaced(time=hour), learners=FEW, selection=poem.Selection(validation=0.25), loss_bounds=BOUNDS
    )
    assert found.certificate.logged == pytest.approx(log.loss[hour >= 120].mean(), rel=1e-12)
    assert found.logged.value == pytest.approx(log.loss[hour < 120].mean(), rel=1e-12)
    assert WORDS["time"].format(units="rows") in found.certificate.conditions[-1]


def test_rows_sorted_by_a_feature_are_drawn_at_random():
    log = easy_log()
    along = log.take(np.argsort(log.X[log.context, 0]))
    plain, found = (
        poem.fit(one, learners=FEW, selection=poem.Selection(validation=0.25), loss_bounds=BOUNDS)
        for one in (log, along)
    )
    assert WORDS["rows"].format(units="rows") in plain.certificate.conditions[-1]
    assert plain.certificate.logged == pytest.approx(log.loss[120:].mean(), rel=1e-12)
    assert WORDS["random"].format(units="rows") in found.certificate.conditions[-1]
    assert found.certificate.logged != pytest.approx(along.loss[120:].mean(), rel=1e-6)
    timed = poem.fit(
        along.replaced(time=np.arange(160.0)),
        learners=FEW,
        selection=poem.Selection(validation=0.25),
        loss_bounds=BOUNDS,
    )
    assert timed.certificate.logged == pytest.approx(along.loss[120:].mean(), rel=1e-12)


@cache
def good_policy():
    return poem.fit(easy_log(7, contexts=400), learners=FEW, certify=False).policy


def heavy_losses(x, y, rng):
    return easy(x, y, rng) * (1.0 + rng.pareto(1.0, size=len(y)))


def test_heavy_tails_without_bounds_are_objected_to_and_a_cap_is_named():
    log = logged_by(a_policy(poem.MultiClass(3)), heavy_losses, contexts=600)
    found = poem.certify(good_policy(), log)
    (objection,) = found.objections
    assert "losses have a heavy tail" in objection
    cap = float(objection.rsplit(" ", 1)[1])
    assert 1.0 < cap < log.loss.max()
    assert not found.certified
    capped = log.replaced(loss=np.minimum(log.loss, cap))
    assert poem.certify(good_policy(), capped, loss_bounds=(0, cap)).objections == ()
    assert poem.certify(good_policy(), log, loss_bounds=(0, 1e6)).objections == ()


@pytest.mark.parametrize("loss_bounds", ["auto", BOUNDS])
def test_propensities_that_cannot_be_right_are_objected_to(loss_bounds):
    log = easy_log(contexts=600)
    wrong = log.replaced(log_propensity=log.log_propensity - np.log(2.0))
    right, found = (poem.certify(good_policy(), one, loss_bounds=loss_bounds) for one in (log, wrong))
    assert (right.certified, right.objections) == (True, ())
    assert found.gain_at_least > 0.0
    assert not found.certified
    mean, of_one = found.objections
    assert mean.startswith("the propensities cannot be right: the mean weight is above 1.")
    assert of_one.startswith("the propensities cannot be right: 1/p, summed over the rows with output ")


def test_bounds_from_the_data_are_named_as_a_condition():
    low, high = easy_log().loss.min(), easy_log().loss.max()
    found = poem.certify(good_policy(), easy_log())
    assert f"losses lie in [{low:.4g}, {high:.4g}], as in this log (a guess, not your promise)" in (found.conditions)
    given = poem.certify(good_policy(), easy_log(), loss_bounds=BOUNDS)
    assert "losses lie in [0, 1.1], as you said" in given.conditions


def test_rows_that_were_learnt_from_cannot_certify():
    log = easy_log()
    with pytest.raises(InputError, match="must be other rows than those that are learnt from"):
        poem.fit(log, learners=FEW, selection=poem.Selection(validation=log))
    with pytest.raises(InputError, match="must be other rows than those that are learnt from"):
        poem.certify(good_policy(), log, earlier=log)


def test_one_unit_alone_certifies_nothing():
    with pytest.raises(InputError, match="one independent unit only"):
        poem.certify(good_policy(), easy_log(contexts=1, replay=50))
