"""The objective of a packed log is that of the same log in memory, for any number of shards and threads."""

import numpy as np
import pytest
from packing import packed
from test_laws_risk import HIGH, LOW, every_estimator, every_form, every_kind, loss_models, make_log
from test_packed import rows_of

import poem
from benchmarks.worlds.adaptive import thompson
from poem.backends import Threads
from poem.data import Layout
from poem.errors import InputError
from poem.estimators import IPS, SNIPS, DoublyRobust
from poem.models import losses_on
from poem.objectives import Risk, ShardedRisk, ShardObjective
from poem.optimizers import LBFGS, AdaGrad
from poem.packed import context_folds


def both(log, folder, estimator, *, shards=3, threads=1, lam=2.0, l2=0.1, intercept=True, centre=None):
    """The same objective in memory and over shards."""
    models = tuple(loss_models(log)) if estimator.needs_model else ()
    layout = Layout(log, log.structure, intercept)
    losses = losses_on(layout, models, context_folds(log, 2), (LOW, HIGH)) if models else None
    scaled = (layout.loss - HIGH) / (HIGH - LOW)
    whole = Risk(layout, scaled, estimator, lam=lam, l2=l2, losses=losses, centre=centre)
    there = poem.open_log(folder) if folder.exists() else packed(log, folder, shards)
    objective = ShardObjective(there, estimator, (LOW, HIGH), intercept, models)
    return whole, ShardedRisk(objective, lam=lam, l2=l2, centre=centre, backend=Threads(threads))


def close(one, two, relative):
    return np.abs(one - two).max() <= relative * np.abs(two).max()


@pytest.fixture(scope="module")
def packs(tmp_path_factory):
    """Where logs are packed once for all estimators."""
    return tmp_path_factory.mktemp("packs")


@every_form
@every_kind
@every_estimator
def test_value_and_gradient_are_those_in_memory(packs, kind, form, estimator):
    log = make_log(kind, form)
    rng = np.random.default_rng(1)
    for shards, threads, lam in [(1, 1, 2.0), (3, 2, 2.0), (7, 2, 0.0)]:
        folder = packs / f"{kind} {form} {shards}"
        whole, parts = both(log, folder, estimator, shards=shards, threads=threads, lam=lam)
        assert parts.shape == whole.shape
        w = 0.5 * rng.normal(size=whole.shape)
        value, gradient = whole(w)
        found, slopes = parts(w)
        assert abs(found - value) <= 1e-12 * abs(value)
        assert close(slopes, gradient, 1e-12)
        point = parts.point(w)
        np.testing.assert_allclose([point.value, point.stderr], [whole.point(w).value, whole.point(w).stderr], 1e-12)
        ratio = whole.ratios(w)
        mean, clipped = parts.weights_of_rows(w)
        np.testing.assert_allclose(mean, ratio.mean(), 1e-12)
        assert clipped == pytest.approx(estimator.clipped(ratio).mean())


def test_the_answer_has_the_same_bits_for_any_number_of_threads(tmp_path):
    log = make_log("classes", "csr", contexts=200)
    found = []
    for threads in (1, 2, 5):
        _, risk = both(log, tmp_path / str(threads), SNIPS(3.0), shards=6, threads=threads)
        found.append(risk(np.full(risk.shape, 0.1)))
    for value, gradient in found[1:]:
        assert value == found[0][0]
        np.testing.assert_array_equal(gradient, found[0][1])


@pytest.mark.parametrize("estimator", [IPS(3.0), SNIPS(3.0), DoublyRobust(3.0)], ids=str)
def test_weights_after_the_same_iterations(tmp_path, estimator):
    log = make_log("classes", "csr", contexts=150)
    centre = 0.1 * np.ones((13, 4))
    whole, parts = both(log, tmp_path / "p", estimator, shards=4, l2=1e-3, centre=centre)
    search = LBFGS(max_iterations=8, ftol=0.0, gtol=0.0)
    one, two = search.minimize(whole, centre), search.minimize(parts, centre)
    assert one.steps == two.steps == 8
    assert close(two.weights, one.weights, 1e-9)


@pytest.mark.parametrize("estimator", [IPS(3.0), DoublyRobust(3.0)], ids=str)
@pytest.mark.parametrize("form", ["dense", "csr"])
def test_batches_of_an_epoch_hold_every_row_once(tmp_path, form, estimator):
    """Their gradients average to that of the whole, though shards come in any order."""
    log = make_log("classes", form, contexts=100)
    whole, parts = both(log, tmp_path / "p", estimator, shards=4, l2=0.0)
    wide = parts.for_batches(0.2 * np.random.default_rng(0).normal(size=whole.shape)).astype(np.float64)
    w = parts.from_batches(wide)  # rounded once, as the batches see it
    value, gradient = whole(w)
    found, slopes = parts.frozen_point(wide)
    assert found == pytest.approx(value, rel=1e-12)
    total, rows = np.zeros_like(wide), 0
    for batch in parts.epoch(np.random.default_rng(1), 32):
        _, part = batch(wide, slopes)
        np.add.at(total[:, : part.values.shape[1]], part.rows, part.values * len(batch.loss) / len(log))
        rows += len(batch.loss)
    assert rows == len(log)
    np.testing.assert_allclose(parts.from_batches(total), gradient, rtol=1e-9, atol=1e-12)


def test_adagrad_goes_through_shards(tmp_path):
    log = make_log("classes", "csr", contexts=400)
    whole, parts = both(log, tmp_path / "p", IPS(3.0), shards=4, lam=0.1, l2=0.0)
    search = AdaGrad(batch_size=20, min_epochs=3, max_batches=200)
    found = [search.minimize(risk, rng=np.random.default_rng(0)).value for risk in (whole, parts)]
    assert found[1] < parts(np.zeros(parts.shape))[0] - 0.02
    assert abs(found[1] - found[0]) < 0.02
    _, offered = both(make_log("candidates", "csr"), tmp_path / "c", IPS(3.0))
    with pytest.raises(InputError, match="shards of candidates"):
        search.minimize(offered)


# ---- fits -------------------------------------------------------------------------------------------


def world(n, seed=0, k=3, d=4):
    """A log of a softmax policy that could be sharper."""
    rng = np.random.default_rng(seed)
    X, W = rng.normal(size=(n, d)), np.random.default_rng(7).normal(size=(d, k))
    scores = X @ W
    chances = np.exp(0.3 * scores)
    chances /= chances.sum(axis=1, keepdims=True)
    y = (rng.random(n)[:, None] < np.cumsum(chances, axis=1)).argmax(axis=1)
    own = scores[np.arange(n), y] - scores.mean(axis=1)
    loss = (rng.random(n) > 1 / (1 + np.exp(-2 * own))).astype(float)
    return poem.BanditLog(X, y, loss=loss, propensity=chances[np.arange(n), y])


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A packed log, and a memory that it does not fit into."""
    folder = tmp_path_factory.mktemp("large") / "p"
    log = packed(world(6000), folder, 5)
    return poem.open_log(folder, memory=int(8 * log.nbytes / 5)), log


def test_a_log_that_fits_is_fitted_as_in_memory(tmp_path):
    log = packed(world(400), tmp_path / "p", 3)
    quick = {"learners": "dr", "seed": 3}
    one, two = poem.fit(log, **quick), poem.fit(world(400), **quick)
    assert one.n_sample is None
    np.testing.assert_array_equal(one.chosen.policy.weights, two.chosen.policy.weights)
    # It is in the order in which it was packed.
    np.testing.assert_array_equal(log.to_log().loss, world(400).loss)
    assert "in the order of time" in one.certificate.conditions[-1]
    backwards = world(400).replaced(time=400.0 - np.arange(400.0))
    timed = packed(backwards, tmp_path / "t", 3)
    assert timed.to_log().fingerprint() == backwards.fingerprint()
    assert "the latest certify" in poem.fit(timed, **quick).certificate.conditions[-1]


@pytest.mark.parametrize("has_times", [False, True])
def test_loggers_that_learn_are_not_certified_at_random(tmp_path, has_times):
    """What certifies is drawn at random, which is no order of time; that propensities change is seen all the same."""
    reasons = []
    for seed in range(4):
        log = thompson(1500, np.random.default_rng(seed), timed=has_times).log()
        found = packed(log, tmp_path / str(seed), 4, parts=3)
        result = poem.fit(found.replaced(memory=2 * found.nbytes), learners="dr", loss_bounds=(-1, 2))
        assert result.n_sample is not None
        assert not result.certified
        reasons.append(result.explain())
    assert sum("propensities change with time" in reason for reason in reasons) >= 2


def test_the_chosen_recipe_is_followed_on_all_shards(large):
    log, _ = large
    found = poem.fit(log, learners="dr")
    assert found.certified
    assert found.n_sample < 2000
    assert found.n_rows == 6000
    learnt = found.policy.record.n_train
    assert 3 * found.n_sample < learnt < 6000
    # What certifies was not learnt from, and the policy is what was certified.
    assert learnt + found.certificate.rows == 6000
    np.testing.assert_array_equal(found.certificate.policy.weights, found.policy.weights)
    assert (
        f"sample of {found.n_sample:,} of 6,000 rows; the chosen policy was learnt from {learnt:,}" in found.explain()
    )
    assert any("drawn at random" in condition for condition in found.certificate.conditions)
    assert poem.policies.was_trained_on(found.policy, log)


def test_fits_do_not_depend_on_the_number_of_shards(large, tmp_path):
    log, _ = large
    other = packed(world(6000), tmp_path / "p", 2).replaced(memory=log.memory)
    one, two = poem.fit(log, learners="dr"), poem.fit(other, learners="dr")
    assert rows_of(log.part(0.0, 0.1).to_log()) == rows_of(other.part(0.0, 0.1).to_log())
    assert one.certificate.rows == two.certificate.rows
    # Sums differ in their last bits, and where a search stops may differ with them.
    assert close(two.policy.weights, one.policy.weights, 1e-3)


def test_a_learner_of_ones_own_sees_all_shards(large):
    log, whole = large
    train = whole.part(0.0, 0.8).to_log()
    options = {"estimator": IPS(5.0), "lam": 0.1, "l2": 0.01, "optimizer": LBFGS(max_iterations=30)}
    one = poem.fit(log, **options, selection=poem.Selection(validation=0.2))
    two = poem.fit(train, **options, selection=poem.Selection(validation=None))
    assert one.n_train == len(train)
    assert one.calibration.lam_star == pytest.approx(two.calibration.lam_star, rel=1e-9)
    assert one.calibration.clips == two.calibration.clips
    assert close(one.policy.weights, two.policy.weights, 1e-6)


def test_what_does_not_fit_is_said(large):
    log, _ = large
    few = log.replaced(memory=100)
    for work in (poem.fit, poem.inspect, poem.estimate_propensities):
        with pytest.raises(InputError, match=r"may take 100 bytes of memory, which is too little for its 6,000"):
            work(few)
    with pytest.raises(InputError, match=r"Hold out at most .*, or allow more memory"):
        poem.fit(log, selection=poem.Selection(validation=0.9))
    with pytest.raises(InputError, match="holds out units of its own"):
        poem.fit(log, selection=poem.Selection(validation=world(50)))


def test_estimated_propensities_are_those_of_unseen_units(tmp_path):
    log = world(900)
    found = packed(log.replaced(propensities="missing", log_propensity=np.full(900, np.nan)), tmp_path / "p", 3)
    with pytest.raises(poem.errors.LogError, match="has no propensities"):
        poem.fit(found)
    fitted = poem.estimate_propensities(found, folds=3)
    assert fitted.log.propensities == "estimated"
    part = fitted.log.part(0.2, 0.7)
    rows = part.to_log()
    column = np.concatenate([part.column(note, "log_propensity") for note in part.shards])
    np.testing.assert_array_equal(np.sort(column), np.sort(rows.log_propensity))
    true = {tuple(x): p for x, p in zip(log.X, log.log_propensity, strict=True)}
    off = [abs(true[tuple(rows.X[c])] - p) for c, p in zip(rows.context, rows.log_propensity, strict=True)]
    assert np.mean(off) < 0.15


def test_inspection_of_a_sample_says_so(large):
    log, whole = large
    some, every = poem.inspect(log), poem.inspect(whole.replaced(memory=1 << 30))
    assert "rows of units drawn at random are inspected" in str(some)
    assert "drawn at random" not in str(every)
    # What can be learnt is what all rows can teach.
    for name in ("rows", "clip"):
        assert some.of(name).value == every.of(name).value
    assert [one.name for one in some.findings if one.topic == "rows"] == ["rows"]
    assert some.of("clip").text == every.of("clip").text  # with λ*
    for name in ("effective rows", "detectable improvement"):
        assert some.of(name).value == pytest.approx(every.of(name).value, rel=0.2)


def test_inspection_says_nothing_of_the_order_that_packing_lost(tmp_path):
    rows = world(400)
    times = np.random.default_rng(0).permutation(400.0 + np.arange(400.0))
    found = poem.inspect(packed(rows.replaced(time=times), tmp_path / "timed", 3))
    assert found.of("span").text == "from 400 to 799"
    # A row is named by its place in what was packed.
    loss = rows.loss.copy()
    loss[123] = 1e6
    found = poem.inspect(packed(rows.replaced(loss=loss), tmp_path / "far", 3))
    assert "row 123)" in found.of("outliers").text


class Interrupted(Threads):
    """Threads that are interrupted in the midst of a pass."""

    def __init__(self, passes):
        super().__init__(1)
        self.left = passes

    def each(self, task, pieces):
        self.left -= 1
        for number, found in enumerate(super().each(task, pieces)):
            if self.left < 0 and number:
                raise KeyboardInterrupt
            yield found


@pytest.mark.parametrize("share", [0.0, 0.8])
def test_an_interrupted_fit_of_shards_resumes_to_the_same_weights(large, tmp_path, share):
    log, _ = large
    once = Counted()
    whole = poem.fit(log.replaced(backend=once), learners="dr")
    half = log.replaced(backend=Interrupted(int(share * once.passes)))
    with pytest.raises(KeyboardInterrupt):
        poem.fit(half, learners="dr", checkpoint=tmp_path / "kept")
    assert any((tmp_path / "kept").glob("state-*")) == (share > 0.0)
    again = Counted()
    found = poem.fit(log.replaced(backend=again), learners="dr", checkpoint=tmp_path / "kept")
    np.testing.assert_array_equal(found.policy.weights, whole.policy.weights)
    assert found.certificate.gain_at_least == whole.certificate.gain_at_least
    assert (again.passes < once.passes) == (share > 0.0)


class Counted(Threads):
    """Threads that count the passes."""

    def __init__(self):
        super().__init__(1)
        self.passes = 0

    def each(self, task, pieces):
        self.passes += 1
        yield from super().each(task, pieces)
