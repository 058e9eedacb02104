"""Laws of the training objective over every structure × estimator × layout of the data."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from finite_differences import numeric_gradient
from scipy import special

import poem
from poem.arrays import frozen
from poem.compute import catalogue, cutting, touched
from poem.compute.kernels import Threads
from poem.data.layout import Layout
from poem.errors import InputError
from poem.estimators import IPS, SNIPS, DirectMethod, DoublyRobust, ImplicitExploration, LogSmoothing
from poem.models import LossModel, losses_on
from poem.objectives.risk import PREPARED, Risk
from poem.optimizers import LBFGS, AdaGrad

KINDS = ["labels", "classes", "available", "candidates", "own candidates", "touched", "catalogue"]
FORMS = ["dense", "csr", "csr-replayed"]
ESTIMATORS = [
    IPS(None),
    IPS(3.0),
    SNIPS(3.0),
    DoublyRobust(None),
    DoublyRobust(3.0),
    DirectMethod(),
    ImplicitExploration(0.02),
    LogSmoothing(0.5),
]


@pytest.fixture(autouse=True)
def products_that_occur(request, monkeypatch):
    """Of the kind "touched", only the columns of xᵀW are computed that some candidate needs.

    Only of the kind "catalogue", actions have weights of their own.
    """
    kind = request.getfixturevalue("kind") if "kind" in request.fixturenames else None
    monkeypatch.setattr(catalogue, "ENTRY_AS_SLOW", 1e9 if kind == "catalogue" else -1e9)
    if kind == "touched":
        monkeypatch.setattr(touched, "FEWER", 0)
        monkeypatch.setattr(touched, "FEWER_IN_BATCHES", 0)


every_kind = pytest.mark.parametrize("kind", KINDS)
every_form = pytest.mark.parametrize("form", FORMS)
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)


def make_log(kind, form, seed=0, contexts=40, d=12, replay=3):
    rng = np.random.default_rng(seed)
    X = sp.random_array((contexts, d), density=0.3, rng=rng, format="csr")
    context = np.tile(np.arange(contexts), replay)
    n = len(context)
    y = (rng.random((n, 5)) < 0.4).astype(int) if kind == "labels" else rng.integers(0, 4, n)
    uniform = -5 * np.log(2) if kind == "labels" else -np.log(4)
    rows = {"loss": -rng.random(n), "log_propensity": uniform + rng.uniform(-0.7, 0.7, n)}
    if kind in OFFERS:
        y, lists = offered(contexts, context, rng)
        rows |= offers(kind, lists, context, form, rng)
    if form == "dense":
        return poem.BanditLog(X.toarray()[context], y, **rows)
    if form == "csr":
        return poem.BanditLog(X[context], y, **rows)
    return poem.BanditLog(X, y, context=context, **rows)


OFFERS = ("available", "candidates", "own candidates", "touched", "catalogue")


def offered(contexts, context, rng):
    """Return logged outputs and the lists that they were chosen from, of one to four classes each."""
    lists = [np.sort(rng.permutation(4)[: rng.integers(1, 5)]).tolist() for _ in range(contexts)]
    return np.array([lists[c][rng.integers(0, len(lists[c]))] for c in context]), lists


def offers(kind, lists, context, form, rng):
    given = {"available": lists if form == "csr-replayed" else [lists[c] for c in context], "labels": range(4)}
    if kind == "available":
        return given
    features = sp.random_array((4, 6), density=0.5, rng=rng, format="csr")
    if kind in ("candidates", "touched", "catalogue"):
        return given | {"actions": poem.Catalogue(range(4), features)}
    # The features of an action differ from context to context.
    own = sp.random_array((sum(map(len, lists)), 6), density=0.5, rng=rng, format="csr")
    starts = np.append(0, np.cumsum([len(one) for one in lists]))
    rows = np.concatenate([np.arange(starts[c], starts[c + 1]) for c in context])
    return given | {"actions": own if form == "csr-replayed" else own[rows]}


LOW, HIGH = -1.5, 0.5  # what the loss models call −1 and 0


def loss_models(log, seed=3):
    rng = np.random.default_rng(seed)
    shape = log.n_features + 1, log.structure.n_scores + 1
    return [LossModel(0.3 * rng.normal(size=shape), centre) for centre in (-0.4, -0.7)]


def fold_of(log):
    """Which of two models each context takes: equal contexts the same one, in any form of a log."""
    return (log.X.sum(axis=1) > 1.5).astype(np.int64)


def make_risk(log, estimator, lam=2.0, l2=0.1, intercept=True, threads=1, max_scores=1 << 22, centre=None):
    layout = Layout(log, log.structure, intercept, max_scores)
    losses = None
    if estimator.needs_model:
        losses = losses_on(layout, loss_models(log), fold_of(log), (LOW, HIGH), Threads(threads))
    return Risk(layout, layout.loss, estimator, lam=lam, l2=l2, losses=losses, centre=centre, threads=Threads(threads))


def assert_same(found, expected):
    assert np.linalg.norm(found - expected) <= 1e-12 * np.linalg.norm(expected)


def random_weights(risk, seed=1, scale=1.0):
    return scale * np.random.default_rng(seed).normal(size=risk.shape)


@every_kind
@every_form
@every_estimator
@pytest.mark.parametrize(("intercept", "pulled_to"), [(True, "0"), (False, "a centre")])
def test_gradient_equals_finite_differences(kind, form, estimator, intercept, pulled_to):
    log = make_log(kind, form)
    risk = make_risk(log, estimator, intercept=intercept)
    if pulled_to == "a centre":
        risk = make_risk(log, estimator, intercept=intercept, centre=random_weights(risk, seed=2))
    w = random_weights(risk)
    _, gradient = risk(w)
    numeric = numeric_gradient(lambda v: risk(v)[0], w, 1e-6)
    assert np.linalg.norm(gradient - numeric) <= 1e-6 * np.linalg.norm(numeric)


def all_outputs(log):
    if log.y.ndim == 2:
        return np.array(list(itertools.product([0, 1], repeat=log.y.shape[1])))
    return np.arange(len(log.labels))


def features_of(log, context):
    """What describes each output of a context, (outputs, k), and which outputs these are."""
    if log.available is None:
        every = all_outputs(log)
        return every if every.ndim == 2 else np.eye(len(every)), every
    own = slice(*log.available.starts[context : context + 2])
    actions, z = log.available.action[own], log.available.features
    rows = np.arange(own.start, own.stop) if log.available.row is None else log.available.row[own]
    return np.eye(len(log.labels))[actions] if z is None else z.toarray()[rows], actions


def place_of(outputs, y):
    return int(np.flatnonzero(np.all(outputs == y, axis=1) if np.ndim(y) else outputs == y)[0])


def log_probs(log, w, intercept, context):
    """log h of every output of a context, by the formula."""
    x = log.X.toarray()[context]
    scores = features_of(log, context)[0] @ ((np.append(x, 1.0) if intercept else x) @ w)
    return scores - special.logsumexp(scores)


def log_prob_by_hand(log, w, intercept):
    every = [log_probs(log, w, intercept, c) for c in range(log.n_contexts)]
    return np.array([every[c][place_of(features_of(log, c)[1], y)] for c, y in zip(log.context, log.y, strict=True)])


def modelled(log, context, model):
    """What a loss model says of the outputs of one context, on the scale of [−1, 0]."""
    x = np.append(log.X.toarray()[context], 1.0)
    losses = features_of(log, context)[0] @ (x @ model.weights[:, :-1])
    return (model.centre + losses + x @ model.weights[:, -1] - HIGH) / (HIGH - LOW)


def u_by_hand(log, w, intercept, estimator):
    """The number that each row adds to the mean, by the textbook: no marginals, no sums by context."""
    log_prob, p = log_prob_by_hand(log, w, intercept), np.exp(log.log_propensity)
    if isinstance(estimator, ImplicitExploration):
        return np.exp(log_prob) / (p + estimator.gamma) * log.loss
    ratio = np.exp(log_prob) / p
    if isinstance(estimator, LogSmoothing):
        return -np.log(1 - estimator.lam * ratio * log.loss) / estimator.lam
    if isinstance(estimator, DirectMethod):
        ratio = np.zeros(len(ratio))
    elif estimator.clip is not None:
        ratio = np.minimum(ratio, estimator.clip)
    if isinstance(estimator, IPS):
        return ratio * log.loss
    models, fold, u = loss_models(log), fold_of(log), []
    for i, c in enumerate(log.context):
        losses = modelled(log, c, models[fold[c]])
        mean = np.exp(log_probs(log, w, intercept, c)) @ losses
        u.append(mean + ratio[i] * (log.loss[i] - losses[place_of(features_of(log, c)[1], log.y[i])]))
    return np.array(u)


@every_kind
@every_estimator
@pytest.mark.parametrize(("intercept", "pulled_to"), [(True, 1.5), (False, 0.0)])
def test_value_is_the_formula_of_the_paper(kind, estimator, intercept, pulled_to):
    log = make_log(kind, "csr-replayed", contexts=20)
    assert set(fold_of(log)) == {0, 1}
    centre = np.full((12 + intercept, log.structure.n_scores), pulled_to)
    risk = make_risk(log, estimator, lam=2.0, l2=0.1, intercept=intercept, centre=centre)
    w = random_weights(risk)
    if isinstance(estimator, SNIPS):
        ratio = np.exp(log_prob_by_hand(log, w, intercept) - log.log_propensity)
        ratio = np.minimum(ratio, estimator.clip)
        value = (ratio * log.loss).sum() / ratio.sum()
        expected = value + 2.0 * np.sqrt(np.sum((ratio * (log.loss - value)) ** 2)) / ratio.sum()
    else:
        u = u_by_hand(log, w, intercept, estimator)
        expected = u.mean() + 2.0 * np.sqrt(u.var(ddof=1) / len(u))
    assert risk(w)[0] == pytest.approx(expected + 0.05 * np.sum((w - centre) ** 2), rel=1e-12)


def test_an_estimator_that_needs_a_loss_model_is_refused_without_one():
    log = make_log("classes", "dense")
    layout = Layout(log, log.structure, True)
    with pytest.raises(InputError, match="DR needs a loss model to learn with"):
        Risk(layout, layout.loss, DoublyRobust(3.0))


@every_kind
def test_a_loss_model_that_knows_nothing_leaves_ips(kind):
    log = make_log(kind, "csr-replayed")
    layout = Layout(log, log.structure, True)
    nothing = LossModel(np.zeros((13, log.structure.n_scores + 1)), HIGH)
    losses = losses_on(layout, [nothing], np.zeros(40, dtype=np.int64), (LOW, HIGH))
    dr = Risk(layout, layout.loss, DoublyRobust(3.0), lam=2.0, losses=losses)
    w = random_weights(dr)
    value, gradient = make_risk(log, IPS(3.0), l2=0.0)(w)
    assert dr(w)[0] == pytest.approx(value, rel=1e-12)
    assert_same(dr(w)[1], gradient)


@every_kind
@every_estimator
def test_dense_csr_and_deduplicated_logs_are_one_problem(kind, estimator):
    logs = [make_log(kind, form) for form in FORMS]
    logs.append(logs[1].deduplicated())
    logs.append(logs[0].deduplicated())
    assert logs[3].n_contexts == 40
    w = random_weights(make_risk(logs[0], estimator))
    results = [make_risk(log, estimator)(w) for log in logs]
    for value, gradient in results[1:]:
        assert value == pytest.approx(results[0][0], rel=1e-12)
        assert_same(gradient, results[0][1])


@every_kind
@every_form
@every_estimator
def test_any_sharding_gives_the_same_value_and_gradient(kind, form, estimator):
    log = make_log(kind, form)
    whole = make_risk(log, estimator)
    w = random_weights(whole)
    value, gradient = whole(w)
    for max_scores in (1, 17, 60, 150):
        risk = make_risk(log, estimator, max_scores=max_scores)
        assert len(risk.layout.shards) > 1
        again, slopes = risk(w)
        assert again == pytest.approx(value, rel=1e-12)
        assert_same(slopes, gradient)


@every_kind
@every_form
@every_estimator
def test_any_number_of_threads_gives_the_very_same_bits(kind, form, estimator, monkeypatch):
    monkeypatch.setattr(cutting, "PIECE_WORK", 50)  # so that a small log is cut into pieces as well
    log = make_log(kind, form)
    one = make_risk(log, estimator, threads=1)
    assert len(one.layout.shards[0].pieces) > 1
    w = random_weights(one)
    value, gradient = one(w)
    for threads in (2, 5):
        again, slopes = make_risk(log, estimator, threads=threads)(w)
        assert again == value
        np.testing.assert_array_equal(slopes, gradient)


@every_kind
@every_form
def test_batches_that_are_prepared_ahead_give_the_very_same_bits(kind, form):
    log, rules = make_log(kind, form), AdaGrad(batch_size=7, max_batches=40)
    assert len(log) > 7 * PREPARED
    one, two = (
        rules.minimize(make_risk(log, DoublyRobust(3.0), threads=threads), rng=np.random.default_rng(0))
        for threads in (1, 2)
    )
    assert one.value == two.value
    np.testing.assert_array_equal(one.weights, two.weights)


@every_kind
def test_an_epoch_takes_the_rows_in_the_order_of_one_permutation(kind):
    risk = make_risk(make_log(kind, "csr-replayed"), IPS(3.0))
    wide = risk.for_batches(random_weights(risk))
    slopes, rng, again = risk.frozen_point(wide)[1], np.random.default_rng(5), np.random.default_rng(5)
    for _ in range(2):
        order = again.permutation(risk.n_rows)
        for dealt, expected in zip(risk.epoch(rng, 30), risk.batches(order, 30), strict=True):
            (loss, found), (same_loss, same) = dealt(wide, slopes), expected(wide, slopes)
            assert loss == same_loss
            np.testing.assert_array_equal(found.rows, same.rows)
            np.testing.assert_array_equal(found.values, same.values)
    assert rng.bit_generator.state == again.bit_generator.state


@every_kind
@every_form
@every_estimator
def test_contexts_that_no_row_saw_change_nothing(kind, form, estimator):
    log = make_log(kind, form)
    part = log.take(np.flatnonzero(log.context % 3 == 0))
    assert len(make_risk(part, estimator).layout.shards[0].pieces[0].starts) - 1 < part.n_contexts
    seen = np.unique(part.context)
    offers = None if part.available is None else part.available.of(seen)
    alone = part.replaced(X=part.X[seen], context=frozen(part.units()), available=offers)
    w = random_weights(make_risk(part, estimator))
    value, gradient = make_risk(part, estimator)(w)
    again, slopes = make_risk(alone, estimator)(w)
    assert again == pytest.approx(value, rel=1e-12)
    assert_same(slopes, gradient)


@every_kind
@every_form
@every_estimator
@pytest.mark.parametrize("part", [False, True])
@pytest.mark.parametrize(("max_scores", "intercept"), [(1 << 22, True), (30, True), (30, False)])
def test_batches_average_to_the_whole_gradient(kind, form, estimator, part, max_scores, intercept):
    log = make_log(kind, form)
    log = log.take(np.flatnonzero(log.context % 3 == 0)) if part else log
    risk = make_risk(log, estimator, l2=0.0, max_scores=max_scores, intercept=intercept)
    assert (len(risk.layout.shards) == 1) == (max_scores > 30)
    w = random_weights(risk)
    wide = risk.for_batches(w).astype(np.float64)  # AdaGrad itself runs in float32
    w = risk.from_batches(wide)  # rounded once, as the batches see it
    value, gradient = risk(w)
    objective, slopes = risk.frozen_point(wide)
    assert objective == pytest.approx(value, rel=1e-12)
    total, mean = np.zeros_like(wide), 0.0
    for batch in risk.batches(np.random.default_rng(0).permutation(risk.n_rows), 17):
        loss, part = batch(wide, slopes)
        share = len(batch.loss) / risk.n_rows
        mean += share * loss
        np.add.at(total[:, : part.values.shape[1]], part.rows, part.values * share)
    np.testing.assert_allclose(risk.from_batches(total), gradient, rtol=1e-9, atol=1e-12)
    assert not np.any(total[:, w.shape[1] :])
    if not isinstance(estimator, SNIPS | LogSmoothing):  # which are no means of weighted losses
        assert mean == pytest.approx(risk.point(w).value, rel=1e-9)


@every_kind
def test_each_exact_majorise_minimise_step_lowers_the_objective(kind):
    """Minimise slopes·sums + const for frozen slopes: the objective never rises (Proposition 1)."""
    risk = make_risk(make_log(kind, "csr-replayed"), IPS(3.0), lam=5.0, l2=0.0)
    w = random_weights(risk, scale=0.1)
    values = [risk(w)[0]]
    for _ in range(5):
        frozen_slopes = risk.point(w).slopes(risk.lam)
        w = LBFGS(ftol=1e-12).minimize(_Majoriser(risk, frozen_slopes), w).weights
        values.append(risk(w)[0])
    assert np.all(np.diff(values) <= 1e-12)
    assert values[-1] < values[0] - 1e-3


class _Majoriser:
    """slopes·sums of a risk, for slopes that stay as they are."""

    def __init__(self, risk, slopes):
        self.risk, self.slopes, self.shape = risk, slopes, risk.shape

    def __call__(self, w):
        risk, (shard,) = self.risk, self.risk.layout.shards
        ratio = np.empty(risk.n_rows)
        sums, (scores,) = risk._forward(risk.layout.design.widen(w), ratio, None)
        gradient = np.zeros(self.shape)
        coef = frozen(risk.estimator.coefficients(ratio, risk.loss, self.slopes))
        risk.layout.backward(shard, scores, coef, gradient, risk.threads)
        return float(self.slopes @ sums), gradient


@pytest.mark.parametrize("kind", ["labels", "classes"])
def test_a_constant_added_to_the_loss_moves_the_argmin_of_ips_but_not_of_snips(kind):
    """The paper's §4.1: with losses above 0, IPS learns to avoid the log."""
    log = make_log(kind, "csr-replayed")
    layout = Layout(log, log.structure, True)

    def minimiser(estimator, shift):
        risk = Risk(layout, layout.loss + shift, estimator, l2=0.01)
        return risk, LBFGS(ftol=1e-13, gtol=1e-9).minimize(risk).weights

    _, plain = minimiser(SNIPS(None), 0.0)
    _, shifted = minimiser(SNIPS(None), 2.0)
    np.testing.assert_allclose(shifted, plain, atol=1e-4)

    right, w = minimiser(IPS(3.0), 0.0)
    wrong, w_wrong = minimiser(IPS(3.0), 2.0)
    assert right.ratios(w).mean() > 1.0
    assert wrong.ratios(w_wrong).mean() < 0.7


@pytest.mark.parametrize(
    "estimator",
    [IPS(None), IPS(1e4), SNIPS(None), DoublyRobust(None), ImplicitExploration(1e-3), LogSmoothing(0.5)],
    ids=str,
)
def test_a_thousand_labels_with_tiny_propensities_stay_finite(estimator):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    y = (rng.random((40, 1000)) < 0.5).astype(int)
    log = poem.BanditLog(
        X, y, loss=-rng.random(40), log_propensity=np.full(40, -700.0), context=np.tile(np.arange(20), 2)
    )
    risk = make_risk(log, estimator, lam=1.0, l2=0.0)
    for scale in (0.0, 0.01, 1.0, 100.0):
        value, gradient = risk(random_weights(risk, scale=scale))
        assert np.isfinite(value)
        assert np.all(np.isfinite(gradient))


def test_ten_thousand_classes_are_worked_on_in_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    X = sp.random_array((600, 50), density=0.1, rng=rng, format="csr")
    log = poem.BanditLog(
        X, rng.integers(0, 10_000, 600), loss=-rng.random(600), propensity=np.full(600, 1e-4), labels=range(10_000)
    )
    risk = make_risk(log, IPS(None), lam=1.0, l2=0.0)
    assert len(risk.layout.shards) == 2  # 419 contexts × 10,000 classes are 32 MiB
    value, gradient = risk(np.zeros(risk.shape))
    assert np.isfinite(value)
    whole = make_risk(log, IPS(None), lam=1.0, l2=0.0, max_scores=1 << 30)
    assert_same(gradient, whole(np.zeros(risk.shape))[1])


@pytest.mark.parametrize("optimizer", [LBFGS(), AdaGrad(batch_size=20, max_batches=300)], ids=["lbfgs", "adagrad"])
@every_kind
@every_form
def test_optimizers_descend_and_trace_their_way(optimizer, kind, form):
    risk = make_risk(make_log(kind, form), IPS(3.0), lam=0.5, l2=0.01)
    trace = optimizer.minimize(risk, rng=np.random.default_rng(0))
    seconds, values = zip(*trace.curve, strict=True)
    assert values[0] == pytest.approx(risk(np.zeros(risk.shape))[0])
    assert trace.value == pytest.approx(risk(trace.weights)[0], rel=1e-6)
    assert trace.value < values[0] - 0.05
    assert list(seconds) == sorted(seconds)
    started = optimizer.minimize(risk, trace.weights, rng=np.random.default_rng(0))
    assert started.curve[0][1] == pytest.approx(trace.value, rel=1e-6)


@pytest.mark.parametrize("estimator", [IPS(3.0), DoublyRobust(3.0)], ids=str)
def test_adagrad_comes_near_to_the_optimum_of_lbfgs(estimator):
    risk = make_risk(make_log("classes", "csr-replayed"), estimator, lam=0.5, l2=0.05)
    exact = LBFGS(ftol=1e-12, gtol=1e-9).minimize(risk).value
    rules = AdaGrad(batch_size=10, max_batches=4000, patience=10_000)
    assert rules.minimize(risk, rng=np.random.default_rng(0)).value == pytest.approx(exact, rel=0.02)


def test_lazy_l2_of_sparse_rows_is_the_l2_of_dense_rows():
    """Rows that a batch does not touch get their l2 later; by the end of an epoch it is the same pull."""
    results = []
    for form in ("dense", "csr"):
        risk = make_risk(make_log("labels", form, d=30), IPS(3.0), lam=0.0, l2=0.02)
        rules = AdaGrad(batch_size=10, max_batches=4000, patience=10_000)
        results.append(rules.minimize(risk, rng=np.random.default_rng(0)).value)
    assert results[0] == pytest.approx(results[1], rel=0.01)


@every_kind
@every_form
@pytest.mark.parametrize("optimizer", [LBFGS(), AdaGrad(batch_size=10, patience=10_000)], ids=["lbfgs", "adagrad"])
def test_where_the_loss_is_flat_l2_pulls_to_the_centre(kind, form, optimizer):
    layout = Layout(make_log(kind, form), make_log(kind, form).structure, True)
    flat = Risk(layout, np.zeros(len(layout)), IPS(3.0), l2=0.1)
    centre, start = random_weights(flat, seed=2), random_weights(flat, seed=3)
    for wanted, risk in (
        (0.0 * centre, flat),
        (centre, Risk(layout, np.zeros(len(layout)), IPS(3.0), l2=0.1, centre=centre)),
    ):
        trace = optimizer.minimize(risk, start, rng=np.random.default_rng(0))
        np.testing.assert_allclose(trace.weights, wanted, atol=2e-3)
        stayed = optimizer.minimize(risk, wanted, rng=np.random.default_rng(0))
        np.testing.assert_allclose(stayed.weights, wanted, rtol=1e-7)


def test_adagrad_with_a_centre_comes_near_to_the_optimum_of_lbfgs():
    log = make_log("labels", "csr-replayed")
    centre = random_weights(make_risk(log, IPS(3.0)), seed=2)
    risk = make_risk(log, IPS(3.0), lam=0.5, l2=0.05, centre=centre)
    exact = LBFGS(ftol=1e-12, gtol=1e-9).minimize(risk, centre)
    found = AdaGrad(batch_size=10, max_batches=3000, patience=10_000).minimize(
        risk, centre, rng=np.random.default_rng(0)
    )
    assert exact.value < risk(centre)[0] - 0.01
    assert found.value == pytest.approx(exact.value, rel=0.02)
    assert np.linalg.norm(found.weights - exact.weights) < 0.2 * np.linalg.norm(exact.weights - centre)
