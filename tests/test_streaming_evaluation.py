"""A packed log is judged as the same rows in memory are, however it is cut and whoever does the work."""

import pickle
from dataclasses import fields, replace

import numpy as np
import pytest
import scipy.sparse as sp
from easy_logs import a_policy, easy, logged_by, noise
from offered_logs import offered_rows, write_lines
from packing import packed
from sklearn.linear_model import LogisticRegression, Ridge

import poem
from poem.backends import Threads
from poem.errors import InputError, LogError, MismatchError
from poem.evaluation.pilot import fold_models, sample_of
from poem.evaluation.table import Line
from poem.packed import open_log, sample_units
from poem.policies import Record, policy_for, uniform_policy

pytestmark = pytest.mark.usefixtures("one_blas_thread")

NUMBERS = [field.name for field in fields(Line) if field.name not in ("policy", "estimator", "verdict")]
SKETCHED = {"moved by the clip": 1e-3}  # findings that are known to some digits only
CLIPPED = [poem.SNIPS("auto"), poem.SelfNormalisedDR(2.0), poem.IPS(5.0), poem.DoublyRobust("max")]


@pytest.fixture(scope="module")
def one_blas_thread():
    with poem.compute.OneBlasThread():
        yield


def classes():
    return logged_by(a_policy(poem.MultiClass(3)), easy, contexts=300)


def repeated():
    return logged_by(a_policy(poem.MultiClass(3)), easy, contexts=150, replay=3)


def grouped():
    log = repeated()
    return log.with_groups([f"user {number}" for number in np.random.default_rng(1).integers(0, 80, len(log))])


def sparse():
    log = grouped()
    return log.with_contexts(sp.csr_array(log.X))


def label_sets():
    return logged_by(a_policy(poem.MultiLabel(3)), noise, contexts=200, replay=2)


def subsets():
    return logged_by(a_policy(poem.Subset(4, 2)), noise, contexts=250)


def offered(folder):
    return poem.read_log(write_lines(folder / "offered.jsonl", offered_rows(250)))


def rare(seed=3):
    """Few classes are logged at all, some of them for certain, and losses lie far from 0 and close together."""
    rng = np.random.default_rng(seed)
    n = 400
    y = rng.choice(3, n, p=[0.6, 0.39, 0.01])
    sure = rng.random(n) < 0.1
    loss = 1e6 + 1e-3 * (rng.random(n) < 0.3 + 0.1 * y)
    p = np.where(sure, 1.0, rng.uniform(0.2, 0.7, n))
    return poem.BanditLog(rng.normal(size=(n, 2)), y, loss=loss, propensity=p, labels=range(4))


def extreme():
    """Some weights are larger than numbers can be."""
    log = rare(4)
    log_propensity = log.log_propensity.copy()
    log_propensity[:5], log_propensity[5:8] = -400.0, -250.0
    return log.with_propensities(log_propensity, "logged")


def alone():
    """All rows are of one unit."""
    return repeated().with_groups(np.zeros(450, dtype=int))


KINDS = {
    "classes": classes,
    "repeated": repeated,
    "grouped": grouped,
    "sparse": sparse,
    "label sets": label_sets,
    "subsets": subsets,
    "offered": offered,
    "rare": rare,
    "extreme": extreme,
    "alone": alone,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("packed")


@pytest.fixture(scope="module")
def cut(folder):
    """Return a function that gives a kind of log in so many shards, packed once."""
    known = {}

    def one(name, shards=1):
        if (name, shards) not in known:
            make = KINDS[name]
            log = make(folder) if name == "offered" else make()
            known[name, shards] = packed(log, folder / f"{name} {shards}", shards, parts=1 + shards % 3)
        return known[name, shards]

    return one


def policies_for(log):
    """Two policies; the first is far enough from uniform for weights to differ."""
    shape = (log.kind.n_features + 1, log.structure.n_scores)
    weights = np.random.default_rng(0).normal(size=shape)
    return {"new": policy_for(log.kind, weights, True, Record(made_by="test")), "even": uniform_policy(log.kind)}


def in_memory(log, model="linear", folds=2, seed=0):
    """The rows of a packed log, and a loss model with the same folds."""
    sample = sample_of(log)
    assert sample.whole
    if log.n_units == 1:
        return sample.log, None
    found = fold_models(sample, model, folds, log.loss_range, seed, poem.compute.Threads())
    return sample.log, found.of(sample.log, sample.unit)


def assert_same(one, two, sketched=SKETCHED):
    assert [(line.policy, line.estimator, line.verdict) for line in one.lines] == [
        (line.policy, line.estimator, line.verdict) for line in two.lines
    ]
    scale = abs(one.logged.value)
    for a, b in zip(one.lines, two.lines, strict=True):
        for name in NUMBERS:
            x, y = getattr(a, name), getattr(b, name)
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-13 * scale, err_msg=f"{a.policy} {a.estimator} {name}")
    for name, found in one.diagnostics.items():
        other = two.diagnostics[name]
        for a, b in zip(found.findings, other.findings, strict=True):
            assert (a.name, a.verdict, a.note) == (b.name, b.verdict, b.note), (a, b)
            np.testing.assert_allclose(a.value, b.value, rtol=1e-9, atol=sketched.get(a.name, 1e-13), err_msg=a.name)
        np.testing.assert_allclose(found.clip_curve, other.clip_curve, rtol=1e-9)
        assert [(each.action, each.available, each.logged) for each in found.actions] == [
            (each.action, each.available, each.logged) for each in other.actions
        ]
    for name in ("value", "stderr", "n", "units", "effective_n"):
        np.testing.assert_allclose(getattr(one.logged, name), getattr(two.logged, name), rtol=1e-9)
    assert one.shares == pytest.approx(two.shares, rel=1e-9, abs=1e-12)
    named = ("interval", "level", "against", "propensities", "outcome", "skipped", "model")
    assert [getattr(one, name) for name in named] == [getattr(two, name) for name in named]


@pytest.mark.parametrize("shards", [1, 2, 7])
@pytest.mark.parametrize("kind", KINDS)
def test_a_packed_log_is_judged_as_its_rows_are(cut, kind, shards):
    log = cut(kind, shards)
    policies, (rows, model) = policies_for(log), in_memory(log)
    for options in ({}, {"against": "even", "interval": "normal"}):
        expected = poem.evaluate(policies, rows, model=model, **options)
        for threads in (1, 2):
            assert_same(poem.evaluate(policies, log, model="linear", n_jobs=threads, **options), expected)


@pytest.mark.parametrize("shards", [1, 2, 7])
@pytest.mark.parametrize("kind", ["classes", "sparse", "label sets", "offered", "rare", "extreme"])
def test_policies_have_the_same_share_in_the_loss_model(cut, kind, shards):
    log = cut(kind, shards)
    policies, (rows, model) = policies_for(log), in_memory(log, "auto")
    for options in ({}, {"against": "even", "interval": "normal"}):
        found = poem.evaluate(policies, log, **options)
        assert_same(found, poem.evaluate(policies, rows, model=model, **options))
        assert set(found.shares) == (set() if kind == "label sets" else set(policies))


@pytest.mark.parametrize("model", ["linear", "auto"])
@pytest.mark.parametrize("kind", ["classes", "grouped", "label sets", "offered"])
def test_bounds_for_any_n_and_clipped_ratios_are_the_same(cut, kind, model):
    log = cut(kind, 2)
    policies, (rows, fitted) = policies_for(log), in_memory(log, model)
    for options in ({"interval": "bernstein"}, {"estimators": CLIPPED}):
        expected = poem.evaluate(policies, rows, model=fitted, **options)
        assert_same(poem.evaluate(policies, log, model=model, **options), expected)


def test_one_estimate_is_the_same(cut):
    for kind in ("classes", "grouped", "rare"):
        log = cut(kind, 7)
        rows, policy = log.to_log(), policies_for(log)["new"]
        for estimator in (None, poem.IPS("auto"), poem.SNIPS(2.0), poem.ImplicitExploration()):
            one, two = poem.estimate(policy, log, estimator), poem.estimate(policy, rows, estimator)
            assert one.estimator == two.estimator
            for field in fields(one)[:-1]:
                np.testing.assert_allclose(
                    getattr(one, field.name), getattr(two, field.name), rtol=1e-9, atol=1e-15, err_msg=field.name
                )


@pytest.mark.parametrize("name", ["DR", "DM"])
def test_one_estimate_by_a_loss_model_is_that_of_evaluate(cut, name):
    log = cut("classes", 7)
    policy = policies_for(log)["new"]
    found, line = poem.estimate(policy, log, name), poem.evaluate(policy, log, name)["policy", name]
    assert (found.value, found.stderr) == pytest.approx((line.value, line.stderr), rel=1e-9)


def test_the_logging_policy_itself_differs_by_nothing(cut):
    log = cut("classes", 2)
    found = poem.evaluate({"same": a_policy(poem.MultiClass(3)), "other": uniform_policy(log.kind)}, log, model=None)
    for name in ("IPS", "SNIPS", "clipped IPS"):
        line = found["same", name]
        assert (line.difference, line.difference_low, line.difference_high) == pytest.approx((0.0, 0.0, 0.0), abs=1e-13)
    twice = {"one": a_policy(poem.MultiClass(3), 5), "two": a_policy(poem.MultiClass(3), 5)}
    for line in poem.evaluate(twice, log, model="linear", against="one").lines[10:]:
        assert line.difference == 0.0
        if line.bias_bound == 0.0:
            assert (line.difference_low, line.difference_high, line.probability_better) == (0.0, 0.0, 0.5)


def test_loss_models_of_others_and_classifiers_are_the_same(cut):
    log = cut("repeated", 7)
    rows, model = in_memory(log, Ridge(), 3)
    classifier = LogisticRegression().fit(rows.X[rows.context], rows.y)
    policies = {"classifier": classifier, "function": lambda log: np.full(len(log), 0.3)}
    options = {"resampling": poem.Resampling(folds=3)}
    assert_same(
        poem.evaluate(policies, log, model=Ridge(), **options), poem.evaluate(policies, rows, model=model, **options)
    )
    assert poem.evaluate(policies, log, model=Ridge(), **options).skipped == ("function",)


@pytest.mark.parametrize("model", ["linear", "auto"])
def test_each_logger_is_judged_alone(folder, model):
    log = grouped()
    names = np.random.default_rng(2).choice(["first", "second"], len(log))
    log = packed(log.with_loggers(names), folder / f"loggers {model}", 3)
    policies, (rows, fitted) = policies_for(log), in_memory(log, model)
    one, two = (poem.evaluate(policies, given, model=by) for given, by in ((log, model), (rows, fitted)))
    assert_same(one, two)
    assert list(one.by_logger) == ["first", "second"]
    for name, found in one.by_logger.items():
        assert_same(found, two.by_logger[name])


def test_several_loggers_are_balanced(folder):
    loggers = {name: a_policy(poem.MultiClass(3), seed) for seed, name in enumerate(("first", "second"))}
    logs = [
        logged_by(policy, easy, seed, contexts=100, replay=2).with_loggers([name] * 200)
        for seed, (name, policy) in enumerate(loggers.items())
    ]
    log = packed(poem.BanditLog.concat(logs), folder / "balanced", 3)
    policies, (rows, model) = policies_for(log), in_memory(log)
    one, two = (
        poem.evaluate(policies, given, model=by, loggers=loggers) for given, by in ((log, "linear"), (rows, model))
    )
    assert one.propensities == "balanced"
    assert_same(one, two)
    for name in loggers:
        assert_same(one.by_logger[name], two.by_logger[name])
    with pytest.raises(InputError, match="Pass the policy that made these rows"):
        poem.evaluate(policies, log, loggers=dict(zip(loggers, reversed(loggers.values()), strict=True)))
    with pytest.raises(InputError, match="no order"):
        poem.balanced(log, {name: np.ones(len(log)) for name in loggers})


def test_estimated_propensities_stand_beside(cut):
    log = cut("repeated", 7)
    policies, (rows, model) = policies_for(log), in_memory(log)
    fitted = poem.estimate_propensities(log)
    found = poem.evaluate(policies, log, model="linear", estimated=fitted)
    assert_same(replace(found, lines=found.lines[:20], diagnostics={}), poem.evaluate(policies, rows, model=model))
    assert [line.policy for line in found.lines[20::10]] == ["new, p estimated", "even, p estimated"]
    by_fit = poem.evaluate(policies, fitted.log, model="linear")
    assert [line.value for line in by_fit.lines] == [line.value for line in found.lines[20:]]
    shares = poem.evaluate(policies, log, estimated=fitted).shares
    assert list(shares) == ["new", "even", "new, p estimated", "even, p estimated"]
    with pytest.raises(InputError, match="of this very log"):
        poem.evaluate(policies, rows, estimated=fitted)


def test_a_part_is_judged_as_its_rows_are(cut):
    policies = policies_for(cut("grouped"))
    for shards in (1, 7):
        part = cut("grouped", shards).part(0.2, 0.7)
        rows, model = in_memory(part)
        assert len(rows) == len(part) < len(cut("grouped"))
        assert_same(poem.evaluate(policies, part, model="linear"), poem.evaluate(policies, rows, model=model))


# ---- the bootstrap -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["grouped", "label sets"])
def test_the_bootstrap_is_the_same_for_any_partition(cut, kind):
    policies = policies_for(cut(kind))
    options = {"interval": "bootstrap", "model": "linear", "resampling": poem.Resampling(replicates=200)}
    found = [
        poem.evaluate(policies, cut(kind, shards), n_jobs=threads, **options)
        for shards, threads in ((1, 1), (2, 2), (7, 1), (7, 2))
    ]
    for other in found[1:]:
        assert_same(other, found[0])
    other = poem.evaluate(policies, cut(kind), seed=1, **options)
    assert other.lines[0].low != found[0].lines[0].low


def test_the_bootstrap_agrees_with_that_in_memory(cut):
    log = cut("classes", 2)
    policies, (rows, model) = policies_for(log), in_memory(log)
    options = {"interval": "bootstrap", "resampling": poem.Resampling(replicates=2000)}
    streamed = poem.evaluate(policies, log, model="linear", **options)
    for one, two in zip(streamed.lines, poem.evaluate(policies, rows, model=model, **options).lines, strict=True):
        assert one.value == pytest.approx(two.value)
        for low, high in (("low", "high"), ("difference_low", "difference_high")):
            ends = [[getattr(line, low), getattr(line, high)] for line in (one, two)]
            np.testing.assert_allclose(
                *ends, atol=0.1 * (ends[0][1] - ends[0][0]), err_msg=f"{one.policy} {one.estimator} {low}"
            )
        # It is not a number where the bias may decide; an interval that hardly reaches 0 may do so in one of them only.
        chances = [one.probability_better, two.probability_better]
        if np.isfinite(chances).all() or one.bias_bound == 0.0:
            np.testing.assert_allclose(*chances, atol=0.05)


# ---- what is sampled -----------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["linear", "auto"])
def test_models_and_thresholds_come_from_a_sample_that_fits(cut, monkeypatch, model):
    monkeypatch.setattr("poem.evaluation.pilot.MOST_UNITS", 40)
    policies = policies_for(cut("grouped"))
    found = [poem.evaluate(policies, cut("grouped", shards), model=model) for shards in (1, 2, 7)]
    assert 20 <= found[0].sampled <= 60
    assert f"come from {found[0].sampled} of 79 independent units" in str(found[0])
    for other in found[1:]:
        assert other.sampled == found[0].sampled
        assert_same(other, found[0])
    rows = cut("grouped").to_log()
    plain = ["IPS", "clipped IPS", "SNIPS", "IX", "LS"]
    assert_same(
        poem.evaluate(policies, cut("grouped", 7), plain, model=None), poem.evaluate(policies, rows, plain, model=None)
    )


def test_a_sample_keeps_to_its_memory(cut):
    log = cut("sparse", 7)
    few = sample_units(log, 10**6, log.nbytes / 4)
    assert not few.whole
    assert 0.1 * len(log) < len(few.log) < 0.5 * len(log)
    assert poem.evaluate(policies_for(log), open_log(log.folder.place, memory=2 * log.nbytes)).sampled is not None


# ---- what it is run by, and refusals -------------------------------------------------------------


class Elsewhere(Threads):
    """Pickles tasks and results, as another process would."""

    def each(self, task, pieces):
        for piece in pieces:
            yield pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(task))(piece)))


def test_work_can_be_done_elsewhere(cut):
    log = cut("grouped", 7)
    there = open_log(log.folder.place, backend=Elsewhere(1))
    policies = policies_for(log)
    assert_same(poem.evaluate(policies, there), poem.evaluate(policies, log), {})


def test_progress_is_shown_in_rows(cut, capsys):
    log = cut("classes", 7)
    poem.evaluate(policies_for(log), log, model=None, estimators="SNIPS", progress=True)
    assert f"evaluate: {len(log)}/{len(log)} rows in" in capsys.readouterr().err


def test_what_needs_all_rows_at_once_is_refused(cut):
    log = cut("classes", 2)
    policy = policies_for(log)["new"]
    with pytest.raises(InputError, match="use one of t, normal, bernstein, bootstrap"):
        poem.evaluate(policy, log, interval="betting")
    with pytest.raises(InputError, match="no order"):
        poem.evaluate(np.full(len(log), 0.5), log)
    with pytest.raises(LogError, match="does not say which logger"):
        poem.evaluate(policy, log, loggers={"a": policy})
    with pytest.raises(InputError, match="against must be one of logged, policy"):
        poem.evaluate(policy, log, against="other")
    with pytest.raises(InputError, match="model must be"):
        poem.evaluate(policy, log, model="other")
    with pytest.raises(InputError, match="certified no policy"):
        poem.evaluate({"none": None}, log)
    with pytest.raises(InputError, match="replicates must be at least 100"):
        poem.evaluate(policy, log, interval="bootstrap", resampling=poem.Resampling(replicates=10))
    with pytest.raises(InputError, match="there is no estimator 'best'; choose from IPS"):
        poem.estimate(policy, log, "best")
    with pytest.raises(MismatchError, match="probability 0"):
        poem.evaluate(lambda log: np.zeros(len(log)), log)


def test_a_log_without_propensities_is_refused(folder):
    log = classes()
    missing = poem.BanditLog(log.X, log.y, loss=log.loss, propensity="missing", labels=log.labels)
    with pytest.raises(LogError, match="no propensities"):
        poem.evaluate(a_policy(poem.MultiClass(3)), packed(missing, folder / "missing", 2))


@pytest.mark.parametrize("least", [-400.0, -290.0, -100.0, -20.0])
@pytest.mark.parametrize("shards", [1, 3])
def test_what_a_clip_holds_back_of_weights_of_any_size(folder, least, shards):
    log = classes()
    log_propensity = log.log_propensity.copy()
    log_propensity[::50] = least
    log = log.with_propensities(log_propensity, "logged")
    found, policy = packed(log, folder / f"clip {least:g} {shards}", shards), a_policy(poem.MultiClass(3), 5)
    for estimator in (poem.SNIPS(10.0), poem.IPS(10.0)):
        one, two = (poem.estimate(policy, source, estimator) for source in (log, found))
        np.testing.assert_allclose([two.value, two.bias_bound], [one.value, one.bias_bound], rtol=1e-9)
