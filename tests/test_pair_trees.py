"""Trees over pairs of a context and an action: predictions and policies by hand, and what the default makes of them."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from packing import packed

import poem
from poem.cli import main
from poem.compute import Forest, Threads
from poem.data import Layout, grown_log
from poem.errors import InputError, PolicyFileError
from poem.evaluation import calibrate
from poem.learning.training import Training
from poem.models import Boosting, boosted, chosen_strengths, losses_on
from poem.models.boosting import slopes_of
from poem.models.race import can_boost
from poem.report.changes import find_changes
from poem.report.effects import context_influence, tree_trends
from poem.report.segments import find_segments

BOUNDS = (0.0, 1.0)
ITEMS = 12
CATALOGUE = np.random.default_rng(1).normal(size=(ITEMS, 3))
HOW = Boosting(False, 1.0, 8, 4, 12)


def mean_loss(x, z):
    """An item suits a context if it is not far from it in one feature: no product of features says so."""
    return np.where(np.abs(x[..., 0] - z[..., 0]) < 0.7, 0.1, 0.9)


def pair_log(contexts=900, seed=0, form="catalogue", sparse=False, identity=False, **more):
    """Logs of one of 3 to 6 items, chosen at random."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(contexts, 2))
    lists = [rng.choice(ITEMS, rng.integers(3, 7), replace=False) for _ in range(contexts)]
    y = np.array([one[rng.integers(len(one))] for one in lists])
    loss = (rng.random(contexts) < mean_loss(X, CATALOGUE[y])).astype(float)
    actions = CATALOGUE[np.concatenate(lists)] if form == "own" else poem.Catalogue(range(ITEMS), CATALOGUE)
    kind = {"labels": range(ITEMS)} if form == "own" else {}
    X = sp.csr_array(np.where(np.abs(X) > 0.3, X, 0.0)) if sparse else X
    propensity = [1.0 / len(one) for one in lists]
    return poem.BanditLog(
        X, y, loss=loss, propensity=propensity, available=lists, actions=actions, identity=identity, **kind, **more
    )


def true_loss(policy, seed=99):
    log = pair_log(2000, seed)
    chance, owner = policy.marginals_of(log), np.repeat(np.arange(2000), log.available.counts())
    return float(chance @ mean_loss(log.X[owner], CATALOGUE[log.available.action])) / 2000


def pairs_of(log):
    """Return the features of the contexts and of the actions of all candidates, without those of ids, by hand."""
    X = log.X.toarray() if sp.issparse(log.X) else log.X
    owner = np.repeat(np.arange(log.n_contexts), log.available.counts())
    return X[owner], CATALOGUE[log.available.action]


def offered(log):
    """Return what is available in each context, as users say it."""
    return np.split(log.available.action, log.available.starts[1:-1]), poem.Catalogue(range(ITEMS), CATALOGUE)


forms = pytest.mark.parametrize(
    ("form", "sparse", "identity"),
    [("catalogue", False, False), ("own", True, False), ("catalogue", True, True), ("own", False, True)],
)


@forms
def test_what_a_model_predicts_is_the_sum_of_its_parts(form, sparse, identity):
    log = pair_log(300, form=form, sparse=sparse, identity=identity)
    models = [boosted(log.take(log.context % 2 == part), HOW, BOUNDS, Threads()) for part in (0, 1)]
    x, z = pairs_of(log)
    assert all(model.forest.n_features == 5 and len(model.forest) > 0 for model in models)
    fold = np.arange(log.n_contexts) % 2
    layout = Layout(log, log.structure, True)
    for keep in (True, False):
        losses = losses_on(layout, models, fold, BOUNDS, keep=keep)
        found = np.concatenate([losses.of_piece(shard, piece) for shard in layout.shards for piece in shard.pieces])
        known = np.hstack([z, np.eye(ITEMS)[log.available.action]]) if identity else z
        for part, model in enumerate(models):
            here = np.repeat(fold == part, log.available.counts())
            context = np.hstack([x, np.ones((len(x), 1))]) @ model.weights
            linear = (context[:, :-1] * known).sum(axis=1) + context[:, -1] + model.centre
            expected = linear + model.forest.scores(np.hstack([x, z]))[:, 0]
            np.testing.assert_allclose(found[here] + 1.0, expected[here], atol=1e-9)


def test_slopes_are_those_of_the_squared_error():
    log = pair_log(40)
    model = boosted(log, replace(HOW, rounds=1), BOUNDS, Threads())
    slopes = slopes_of(log, HOW, model, BOUNDS, Threads())
    at = slopes.start + np.random.default_rng(0).normal(size=len(slopes.start))
    found, curves = slopes.at(at)
    for row in (0, 17, 39):
        step = np.zeros(len(at))
        step[row] = 1e-3
        up, down = slopes.missed(at + step), slopes.missed(at - step)
        assert found[row] == pytest.approx((up - down) / 4e-3, abs=1e-6)
        assert curves[row] == pytest.approx((up + down - 2 * slopes.missed(at)) / 2e-6, rel=1e-3)


@cache
def fitted(certify=False):
    return poem.fit(pair_log(), loss_bounds=BOUNDS, certify=certify, learners=("trees", "leaves", "direct"))


@forms
def test_probabilities_are_those_of_the_sum_of_lines_and_trees(form, sparse, identity):
    log = pair_log(60, seed=4, form=form, sparse=sparse, identity=identity)
    model = boosted(pair_log(300, form=form, sparse=sparse, identity=identity), HOW, BOUNDS, Threads())
    rng = np.random.default_rng(2)
    weights = rng.normal(size=(3, 1 + log.structure.n_scores))
    labels = log.structure.known_labels(log.labels)
    policy = poem.Policy(log.structure, weights, True, labels, forest=model.forest)
    x, z = pairs_of(log)
    known = np.hstack([z, np.eye(ITEMS)[log.available.action]]) if identity else z
    context = np.hstack([x, np.ones((len(x), 1))]) @ weights
    score = context[:, 0] * model.forest.scores(np.hstack([x, z]))[:, 0] + (context[:, 1:] * known).sum(axis=1)
    chance = np.exp(score)
    starts = log.available.starts
    chance /= np.repeat(np.add.reduceat(chance, starts[:-1]), log.available.counts())
    np.testing.assert_allclose(policy.marginals_of(log), chance, rtol=1e-9)
    np.testing.assert_allclose(policy.scores(log.X, log.available), score, rtol=1e-9)
    place = starts[:-1][log.context] + log.available.positions(log.context, log.y)
    np.testing.assert_allclose(policy.log_prob_of(log), np.log(chance[place]), rtol=1e-9)
    best = [starts[c] + np.argmax(chance[starts[c] : starts[c + 1]]) for c in range(60)]
    np.testing.assert_array_equal(policy.predict(log.X, *offered(log)), log.available.action[best])
    floored = policy.with_floor(0.2)
    even = np.repeat(1.0 / log.available.counts(), log.available.counts())
    np.testing.assert_allclose(floored.marginals_of(log), 0.8 * chance + 0.2 * even, rtol=1e-9)
    warm = policy.at_temperature(0.5)
    np.testing.assert_allclose(warm.scores(log.X, log.available), 0.5 * score, rtol=1e-9)


def test_the_default_learns_what_no_product_of_features_can():
    found = poem.fit(pair_log(), loss_bounds=BOUNDS)
    assert found.certified
    assert found.policy.forest is not None
    lines = poem.fit(pair_log(), loss_bounds=BOUNDS, certify=False, learners=("direct", "dr"))
    assert true_loss(found.policy) < 0.8 * true_loss(lines.policy)
    assert found.certificate.gain_at_least < float(pair_log().loss.mean()) - true_loss(found.policy)


def test_actions_that_were_never_logged_are_scored():
    policy, rng = fitted().policy, np.random.default_rng(8)
    X, new = rng.normal(size=(500, 2)), rng.normal(size=(40, 3))
    lists = [rng.choice(40, 5, replace=False) + 1000 for _ in range(500)]
    chosen = policy.predict(X, lists, poem.Catalogue(range(1000, 1040), new))
    every = np.mean([mean_loss(X, new[[one[place] - 1000 for one in lists]]).mean() for place in range(5)])
    assert mean_loss(X, new[chosen - 1000]).mean() < 0.6 * every


@pytest.mark.parametrize("floor", [False, True])
def test_a_file_holds_the_trees(tmp_path, floor):
    policy, log = fitted().policy, pair_log(50, seed=3)
    assert policy.forest is not None
    policy = policy.with_floor(0.1) if floor else policy
    policy.save(tmp_path / "policy.poem")
    loaded = poem.load_policy(tmp_path / "policy.poem")
    np.testing.assert_array_equal(loaded.marginals_of(log), policy.marginals_of(log))


def test_trees_that_do_not_fit_are_refused(tmp_path):
    policy = fitted().policy
    with pytest.raises(InputError, match="the forest sees 5 features"):
        replace(policy, weights=policy.weights[1:])
    with pytest.raises(InputError, match="the forest sees"):
        replace(policy, forest=replace(policy.forest, n_features=7))
    broken = replace(policy, weights=np.hstack([policy.weights, policy.weights[:, :1]]))
    broken.save(tmp_path / "policy.poem")
    with pytest.raises(PolicyFileError, match="weights of shape"):
        poem.load_policy(tmp_path / "policy.poem")


def test_candidates_are_scored_a_few_at_a_time(monkeypatch):
    policy, log = fitted().policy, pair_log(200, seed=9).take(np.random.default_rng(0).integers(0, 150, 300))
    whole = policy.log_prob_of(log), policy.marginals_of(log)
    for pairs in (1, 7, 100):
        monkeypatch.setattr("poem.data.grown.PAIRS", pairs)
        np.testing.assert_array_equal(policy.log_prob_of(log), whole[0])
        np.testing.assert_array_equal(policy.marginals_of(log), whole[1])


def test_catalogues_stay_small():
    """What trees say of candidates takes one number each, whatever features they share."""
    log = pair_log(300)
    grown = grown_log(log, fitted().policy.forest)
    assert np.shares_memory(grown.available.features.data, log.available.features.data)
    assert grown.nbytes - log.nbytes == 8 * len(log.available)


@forms
def test_a_feature_that_is_kept_apart_is_a_feature_like_others(form, sparse, identity):
    """Scores and gradients of grown logs are those of candidates with all features as their own."""
    log = pair_log(80, form=form, sparse=sparse, identity=identity)
    grown = grown_log(log, boosted(pair_log(300, form=form), HOW, BOUNDS, Threads()).forest)
    rng = np.random.default_rng(0)
    weights, coef = rng.normal(size=(3, grown.structure.n_scores)), rng.normal(size=80)
    found = []
    for one in (grown, grown.replaced(available=grown.available.joined())):
        layout, gradient = Layout(one, one.structure, True), np.zeros(weights.shape)
        wide = layout.design.widen(weights)
        for shard in layout.shards:
            scores, _ = layout.forward(shard, wide, Threads(), lambda *_: None)
            layout.backward(shard, scores, coef, gradient, Threads(2))
        batches = layout.batches(np.arange(80), 30)
        flat = [some.scores(layout.batch_design.widen(weights), weights.shape[1]) for some, _ in batches]
        found.append((layout.log_prob(weights, Threads()), gradient, np.concatenate(flat)))
    for apart, own in zip(*found, strict=True):
        np.testing.assert_allclose(apart, own, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-6, 100.0])
def test_the_unit_of_losses_changes_nothing(scale):
    log = pair_log(600)
    units = log.replaced(loss=scale * log.loss)
    one, other = (
        poem.fit(some, learners="leaves", loss_bounds=(0, top), certify=False).policy
        for some, top in ((log, 1.0), (units, scale))
    )
    np.testing.assert_allclose(one.marginals_of(log), other.marginals_of(log), atol=0.01)


def test_the_number_of_threads_changes_nothing():
    log = pair_log(500)
    how = chosen_strengths(log, BOUNDS, 0, Threads()).boosting
    assert how == chosen_strengths(log, BOUNDS, 0, Threads(3)).boosting
    assert boosted(log, how, BOUNDS, Threads()).forest == boosted(log, how, BOUNDS, Threads(3)).forest
    one, three = (poem.fit(log, loss_bounds=BOUNDS, learners="trees", certify=False, n_jobs=jobs) for jobs in (1, 3))
    np.testing.assert_array_equal(one.policy.weights, three.policy.weights)


def test_the_objective_is_computed_on_other_units_than_trees_are_grown_on():
    log = pair_log(400)
    training = Training(log, log.structure, True, calibrate(log, poem.IPS(), BOUNDS))
    ground = training.with_leaves
    rows = np.isin(log.context, ground.layout.context)
    assert 0 < rows.sum() < len(log)
    other = log.replaced(loss=np.where(rows, 1.0 - log.loss, log.loss))
    again = Training(other, log.structure, True, training.calibration, strengths=training.strengths)
    assert again.with_leaves.forest == ground.forest


def test_trees_over_actions_need_an_intercept_and_features():
    log = pair_log(300)
    with pytest.raises(InputError, match="need a constant feature"):
        poem.fit(log, loss_bounds=BOUNDS, learners="trees", fit_intercept=False, certify=False)
    assert poem.fit(log, loss_bounds=BOUNDS, fit_intercept=False, certify=False).policy.forest is None
    assert can_boost(log)
    assert not can_boost(log.take(np.arange(150)))
    only_ids = poem.BanditLog(
        log.X,
        log.y,
        loss=log.loss,
        log_propensity=log.log_propensity,
        available=offered(log)[0],
        actions=poem.Catalogue(range(ITEMS), np.empty((ITEMS, 0))),
        identity=True,
    )
    assert not can_boost(only_ids)
    with pytest.raises(InputError, match="no features but their identity"):
        poem.fit(only_ids, loss_bounds=BOUNDS, learners="trees", certify=False)


def test_evaluation_uses_trees_and_is_the_same_over_shards(tmp_path):
    log, policy = pair_log(1500, seed=5), fitted().policy
    found = poem.evaluate(policy, log, "DR", loss_bounds=BOUNDS)
    assert found.model == "boosted"
    (line,) = found.lines
    assert line.low < true_loss(policy) < line.high
    plain = poem.evaluate(policy, log, "DR", loss_bounds=BOUNDS, model="linear").lines[0]
    assert line.high - line.low < 0.9 * (plain.high - plain.low)
    for names in ("IPS", "SNIPS"):
        shards = poem.evaluate(policy, packed(log, tmp_path / names), names, loss_bounds=BOUNDS)
        memory = poem.evaluate(policy, log, names, loss_bounds=BOUNDS)
        assert shards.lines[0].value == pytest.approx(memory.lines[0].value, rel=1e-9)


def test_a_policy_with_trees_can_log_the_next_round():
    policy = fitted().policy.at_temperature(0.1).with_floor(0.2)
    drawn = pair_log(900, seed=6)
    rng = np.random.default_rng(7)
    lists, items = offered(drawn)
    y = policy.sample(drawn.X, rng, lists, items)
    loss = (rng.random(900) < mean_loss(drawn.X, CATALOGUE[y])).astype(float)
    log = poem.BanditLog(
        drawn.X,
        y,
        loss=loss,
        log_propensity=policy.log_prob(drawn.X, y, lists, items),
        available=lists,
        actions=items,
    )
    found = poem.fit(log, loss_bounds=BOUNDS, logging_policy=policy)
    assert found.policy is not None
    assert true_loss(found.policy) <= true_loss(policy) + 0.02


def good_items(contexts=800):
    """One feature of actions decides alone, and is better above a threshold."""
    rng = np.random.default_rng(3)
    X, Z, y = rng.normal(size=(contexts, 2)), rng.normal(size=(4 * contexts, 2)), rng.integers(0, 4, contexts)
    rows = {"loss": np.where(Z[np.arange(contexts) * 4 + y, 1] > 0.8, 0.0, 1.0), "propensity": np.full(contexts, 0.25)}
    return poem.BanditLog(X, y, **rows, available=np.full(contexts, 4), actions=Z)


def test_the_report_says_which_kinds_of_action_trees_prefer(tmp_path):
    log = good_items()
    policy = poem.fit(log, loss_bounds=BOUNDS, learners="trees", certify=False).policy
    ratio = np.exp(policy.log_prob_of(log) - log.log_propensity)
    found = find_changes(policy, log, ratio, 1.0, None)
    assert found.kinds[0].feature == 1
    (best, *_), *_ = (pull.up for pull in found.pulls if pull.label == found.kinds[0].name)
    assert best[0] == "in the average context"
    poem.write_report(policy, log, tmp_path / "report.html")
    assert found.kinds[0].name in (tmp_path / "report.html").read_text(encoding="utf-8")


def stepped(n_features, feature, threshold=0.0):
    """One tree over pairs: 1 above a threshold of one feature."""
    nodes = [feature, 0, 0], [threshold, np.inf, np.inf], [1, 1, 2], [0.0, 0.0, 1.0]
    return Forest(*map(np.array, nodes), np.array([0]), np.array([0]), n_features, 1)


def test_effects_of_trees_are_told_apart_from_those_of_lines():
    log = good_items()
    weights = np.zeros((3, 3))
    weights[-1, :] = 2.0, 0.7, -1.3
    policy = poem.Policy(log.structure, weights, True, (), forest=stepped(4, 2))
    # A step at 0 of a normal feature has a covariance of φ(0) with it.
    np.testing.assert_allclose(tree_trends(policy, log, [0, 1]), [2.0 * 0.399, 0.0], atol=0.06)
    crossed = np.random.default_rng(0).normal(size=(3, 3))
    crossed[:, 0] = 0.0
    influence = context_influence(replace(policy, weights=crossed), log, [0, 1])
    np.testing.assert_allclose(influence, np.linalg.norm(crossed[:2], axis=1) * np.sqrt(3 / 4), rtol=0.15)


def test_the_report_shows_where_trees_count_more():
    """The second feature of the context says how much a step in an action's feature counts: no tree looks at it."""
    log = good_items()
    weights = np.zeros((3, 3))
    weights[1, 0] = 5.0
    policy = poem.Policy(log.structure, weights, True, (), forest=stepped(4, 2))
    found = find_segments(policy, log, np.ones(2))
    assert {segment.name.split("\u00a0")[0] for segment in found} == {"feature 1"}


def test_commands_take_a_policy_with_trees_through_a_round(tmp_path, capsys):
    """Train, decide with a floor, and train again from the policy: trees are no start, but all else is used."""
    log, place = pair_log(700), str(tmp_path / "log.parquet")
    poem.write_log(log, place)
    policy = str(tmp_path / "first.poem")
    bounds = ["--loss-bounds", "0,1", "--quiet"]
    assert main(["train", place, "-o", policy, "--learner", "trees", "--no-certificate", *bounds]) == 0
    assert poem.load_policy(policy).forest is not None
    assert main(["evaluate", policy, place, *bounds]) == 1  # it was trained on this very log
    assert "cannot be told" in capsys.readouterr().out
    out = str(tmp_path / "second.poem")
    capsys.readouterr()
    assert main(["train", place, "-o", out, "--start", policy, "--no-certificate", "--loss-bounds", "0,1"]) == 0
    assert "first.poem has trees, so that learning begins anew" in capsys.readouterr().err
    assert poem.load_policy(out).action_names == poem.load_policy(policy).action_names
