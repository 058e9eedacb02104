"""Laws that every output structure obeys; a new structure joins by one line in STRUCTURES."""

import itertools
import json
import math

import numpy as np
import pyarrow as pa
import pytest
from finite_differences import numeric_gradient
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

import poem
from poem.arrays import frozen
from poem.structures import MultiClass, MultiLabel, Subset, encoded, structure_from_data

STRUCTURES = [MultiLabel(1), MultiLabel(4), MultiClass(2), MultiClass(5), Subset(3, 1), Subset(4, 2), Subset(6, 5)]
LARGE = [MultiLabel(1000), MultiClass(10_000), Subset(1000, 3), Subset(200, 100)]

every_structure = pytest.mark.parametrize("structure", STRUCTURES, ids=str)
seeds = st.integers(0, 2**32 - 1)
scales = st.sampled_from([0.0, 0.1, 1.0, 5.0, 100.0])


def all_outputs(structure):
    if isinstance(structure, MultiClass):
        return np.arange(structure.n_classes, dtype=np.int32)
    sets = np.array(list(itertools.product([0, 1], repeat=structure.n_scores)), dtype=np.uint8)
    return sets if isinstance(structure, MultiLabel) else sets[sets.sum(axis=1) == structure.size]


def scores_of(structure, rows, scale, seed):
    return scale * np.random.default_rng(seed).normal(size=(rows, structure.n_scores))


def log_probs_of_all(structure, scores):
    """Return log h of every output in every context, (contexts, outputs)."""
    outputs = all_outputs(structure)
    y = frozen(np.concatenate([outputs] * len(scores)))
    starts = frozen(len(outputs) * np.arange(len(scores) + 1))
    return structure.log_prob(scores, y, starts).reshape(len(scores), len(outputs))


def random_rows(structure, m, n, seed):
    rng = np.random.default_rng(seed)
    outputs = all_outputs(structure)
    counts = np.bincount(rng.integers(0, m, n), minlength=m)
    return frozen(outputs[rng.integers(0, len(outputs), n)]), frozen(np.append(0, np.cumsum(counts)))


@every_structure
@given(scale=scales, seed=seeds)
@settings(max_examples=25, deadline=None)
def test_probabilities_sum_to_one(structure, scale, seed):
    log_probs = log_probs_of_all(structure, scores_of(structure, 3, scale, seed))
    np.testing.assert_allclose(np.exp(log_probs).sum(axis=1), 1.0, rtol=1e-12)
    assert np.all(log_probs <= 0.0)


@pytest.mark.parametrize("huge", [1e12, 3e15, 1e17, 1e300])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_huge_score_of_one_label_leaves_the_others_as_they_are(huge, sign):
    scores = np.array([[sign * huge, 0.4, -1.0]])
    log_probs = log_probs_of_all(MultiLabel(3), scores)[0]
    rest = log_probs_of_all(MultiLabel(2), scores[:, 1:])[0]
    np.testing.assert_allclose(np.sort(np.exp(log_probs))[4:], np.sort(np.exp(rest)), rtol=1e-12)
    np.testing.assert_allclose(np.exp(log_probs).sum(), 1.0, rtol=1e-12)


@every_structure
@given(scale=scales, seed=seeds)
@settings(max_examples=25, deadline=None)
def test_log_prob_is_the_softmax_of_the_score_of_each_output(structure, scale, seed):
    scores = scores_of(structure, 3, scale, seed)
    outputs = all_outputs(structure)
    one_hot = outputs if outputs.ndim == 2 else np.eye(structure.n_scores)
    linear = scores @ one_hot.T
    top = linear.max(axis=1, keepdims=True)
    expected = linear - top - np.log(np.exp(linear - top).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(log_probs_of_all(structure, scores), expected, rtol=1e-10, atol=1e-10)


@every_structure
@given(scale=scales, seed=seeds)
@settings(max_examples=25, deadline=None)
def test_argmax_beats_all(structure, scale, seed):
    scores = scores_of(structure, 3, scale, seed)
    log_probs = log_probs_of_all(structure, scores)
    best = structure.log_prob(scores, frozen(structure.argmax(scores)), frozen(np.arange(4)))
    np.testing.assert_allclose(best, log_probs.max(axis=1), rtol=1e-12, atol=1e-13)


@every_structure
def test_samples_match_log_prob(structure):
    scores = scores_of(structure, 1, 1.0, 3)
    draws = structure.sample(np.repeat(scores, 40_000, axis=0), np.random.default_rng(4))
    outputs = all_outputs(structure)
    counts = [np.sum(np.all(draws == output, axis=-1) if draws.ndim == 2 else draws == output) for output in outputs]
    expected = 40_000 * np.exp(log_probs_of_all(structure, scores)[0])
    assert sum(counts) == 40_000
    assert stats.chisquare(counts, expected / expected.sum() * 40_000).pvalue > 1e-3


@every_structure
@given(scale=st.sampled_from([0.1, 1.0, 5.0]), seed=seeds)
@settings(max_examples=25, deadline=None)
def test_pull_back_equals_finite_differences(structure, scale, seed):
    scores = scores_of(structure, 4, scale, seed)
    y, starts = random_rows(structure, 4, 9, seed)
    coef = frozen(np.random.default_rng(seed).normal(size=9))
    pulled = structure.pull_back(scores, y, starts, coef)
    numeric = numeric_gradient(lambda v: coef @ structure.log_prob(v, y, starts), scores, 1e-5)
    assert np.linalg.norm(pulled - numeric) <= 1e-6 * np.linalg.norm(numeric)


@every_structure
@given(scale=scales, seed=seeds)
@settings(max_examples=25, deadline=None)
def test_marginals_and_expected_loss_agree_with_enumeration(structure, scale, seed):
    scores = scores_of(structure, 3, scale, seed)
    probabilities = np.exp(log_probs_of_all(structure, scores))
    outputs = all_outputs(structure)
    one_hot = outputs if outputs.ndim == 2 else np.eye(structure.n_scores)
    np.testing.assert_allclose(structure.marginals(scores), probabilities @ one_hot, rtol=1e-9, atol=1e-12)

    truth = outputs[np.random.default_rng(seed).integers(0, len(outputs), 3)]
    by_hand = [probabilities[c] @ structure.loss(np.array([truth[c]] * len(outputs)), outputs) for c in range(3)]
    np.testing.assert_allclose(structure.expected_loss(scores, truth), by_hand, rtol=1e-9, atol=1e-12)


@every_structure
def test_variation_is_zero_for_a_policy_that_ignores_x_and_not_for_another(structure):
    scores = scores_of(structure, 1, 1.0, 0)
    assert structure.variation(np.repeat(scores, 50, axis=0)) < 1e-12
    assert structure.variation(scores_of(structure, 50, 3.0, 1)) > 0.1


@every_structure
def test_constant_scores_lead_to_the_one_output(structure):
    for output in all_outputs(structure):
        scores = 1000.0 * structure.constant_scores(output)[None, :]
        np.testing.assert_array_equal(structure.argmax(scores)[0], output)
        log_prob = structure.log_prob(
            scores, frozen(np.array([output], dtype=structure.argmax(scores).dtype)), frozen(np.arange(2))
        )
        assert log_prob[0] == 0.0


@pytest.mark.parametrize("structure", LARGE, ids=str)
@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_large_output_spaces_stay_finite(structure, scale):
    scores = scores_of(structure, 3, scale, 0)
    y, starts = frozen(structure.sample(scores, np.random.default_rng(1))), frozen(np.arange(4))
    log_prob = structure.log_prob(scores, y, starts)
    assert np.all(np.isfinite(log_prob))
    assert np.all(log_prob <= 0.0)
    assert np.all(np.isfinite(structure.pull_back(scores, y, starts, frozen(np.ones(3)))))
    assert np.all(np.isfinite(structure.expected(scores, -scores)))
    assert np.all(np.isfinite(structure.pull_back_expected(scores, -scores, np.ones(3))))
    uniform = structure.log_prob(np.zeros_like(scores), y, starts)
    np.testing.assert_allclose(uniform, -math.log(structure.n_outputs), rtol=1e-12)


def test_contexts_without_rows_get_no_gradient():
    for structure in STRUCTURES:
        scores = scores_of(structure, 3, 1.0, 0)
        y = frozen(structure.argmax(scores)[:1])
        pulled = structure.pull_back(scores, y, frozen(np.array([0, 0, 1, 1])), frozen(np.ones(1)))
        assert not np.any(pulled[[0, 2]])
        assert np.any(pulled[1])


# ---- chosen and spread ----------------------------------------------------------------------------


@every_structure
@given(scale=scales, seed=seeds)
@settings(max_examples=25, deadline=None)
def test_an_output_collects_the_scores_that_it_chooses(structure, scale, seed):
    # Four rows in six contexts: at least two contexts have none.
    scores = scores_of(structure, 6, scale, seed)
    y, starts = random_rows(structure, 6, 4, seed)
    one_hot = y if y.ndim == 2 else np.eye(structure.n_scores)[y]
    context = np.repeat(np.arange(6), np.diff(starts))
    expected = [sum(scores[c, j] for j in np.flatnonzero(row)) for c, row in zip(context, one_hot, strict=True)]
    np.testing.assert_allclose(structure.chosen(scores, y, starts), expected, rtol=1e-12, atol=1e-12 * scale)


@every_structure
@given(scale=scales, seed=seeds)
@settings(max_examples=25, deadline=None)
def test_log_prob_is_what_an_output_collects_less_log_z(structure, scale, seed):
    scores = scores_of(structure, 6, scale, seed)
    outputs = all_outputs(structure)
    collected = scores @ (outputs if outputs.ndim == 2 else np.eye(structure.n_scores)).T
    log_z = special.logsumexp(collected, axis=1)
    y, starts = random_rows(structure, 6, 9, seed)
    whole = structure.log_prob(scores, y, starts) + np.repeat(log_z, np.diff(starts))
    np.testing.assert_allclose(structure.chosen(scores, y, starts), whole, rtol=1e-10, atol=1e-10)


@every_structure
@given(scale=scales, seed=seeds)
@settings(max_examples=25, deadline=None)
def test_spread_is_the_transpose_of_chosen(structure, scale, seed):
    scores = scores_of(structure, 6, scale, seed)
    y, starts = random_rows(structure, 6, 4, seed)
    coef = frozen(np.random.default_rng(seed).normal(size=4))
    spread = structure.spread(coef, y, starts)
    assert spread.shape == scores.shape
    assert not np.any(spread[np.diff(starts) == 0])
    forward, back = structure.chosen(scores, y, starts) @ coef, np.vdot(scores, spread)
    np.testing.assert_allclose(forward, back, rtol=1e-10, atol=1e-12 * scale)


# ---- every output ---------------------------------------------------------------------------------


@every_structure
def test_every_output_is_there_once_or_there_are_too_many(structure):
    outputs = all_outputs(structure)
    found = structure.every(len(outputs))
    assert found.dtype == outputs.dtype
    assert sorted(map(tuple, np.atleast_2d(found.T).T)) == sorted(map(tuple, np.atleast_2d(outputs.T).T))
    np.testing.assert_array_equal(structure.every(1 << 20), found)
    assert structure.every(len(outputs) - 1) is None


@pytest.mark.parametrize("structure", LARGE, ids=str)
def test_large_output_spaces_are_not_written_out(structure):
    assert structure.every(1000) is None


@every_structure
@given(scale=scales, seed=seeds)
@settings(max_examples=25, deadline=None)
def test_outputs_to_sum_over_have_weights_of_one_in_all(structure, scale, seed):
    scores = scores_of(structure, 3, scale, seed)
    for count in (1, 64):
        y, weight, starts, _ = structure.outputs(scores, np.random.default_rng(seed), count)
        assert len(y) == len(weight) == starts[-1]
        assert len(starts) == 4
        assert (weight >= 0.0).all()
        np.testing.assert_allclose(np.add.reduceat(weight, starts[:-1]), 1.0, rtol=1e-12)


def any_function(structure, y, c):
    """A number for each output of each context that no sum of scores can mimic."""
    code = y @ 2.0 ** np.arange(y.shape[1]) if y.ndim == 2 else y
    return np.sin(1.0 + 3.0 * code + c) + (code == 1)


def means_by_hand(structure, scores):
    outputs, probabilities = all_outputs(structure), np.exp(log_probs_of_all(structure, scores))
    return np.array([p @ any_function(structure, outputs, c) for c, p in enumerate(probabilities)])


def means_by_outputs(structure, scores, rng, count):
    y, weight, starts, exact = structure.outputs(scores, rng, count)
    context = np.repeat(np.arange(len(scores)), np.diff(starts))
    return np.add.reduceat(weight * any_function(structure, y, context), starts[:-1]), exact


@every_structure
@given(scale=scales, seed=seeds)
@settings(max_examples=25, deadline=None)
def test_exact_sums_are_means_over_every_output(structure, scale, seed):
    scores = scores_of(structure, 3, scale, seed)
    found, exact = means_by_outputs(structure, scores, np.random.default_rng(seed), 64)
    assert exact
    np.testing.assert_allclose(found, means_by_hand(structure, scores), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("structure", [*STRUCTURES, MultiLabel(7), MultiClass(100)], ids=str)
def test_sampled_sums_are_unbiased(structure):
    scores = scores_of(structure, 3, 1.0, 0)
    rng = np.random.default_rng(1)
    drawn = [means_by_outputs(structure, scores, rng, 3) for _ in range(2000)]
    values, by_hand = np.array([mean for mean, _ in drawn]), means_by_hand(structure, scores)
    if drawn[0][1]:
        np.testing.assert_allclose(values, np.tile(by_hand, (2000, 1)), rtol=1e-9, atol=1e-11)
    else:
        assert values.std() > 0.0
        assert (np.abs(values.mean(axis=0) - by_hand) < 4.5 * values.std(axis=0) / np.sqrt(2000)).all()


# ---- the mean of what outputs collect -------------------------------------------------------------


def collected_by_all(structure, values):
    """Return what every output collects of every context's values, (contexts, outputs)."""
    outputs = all_outputs(structure)
    y = frozen(np.concatenate([outputs] * len(values)))
    starts = frozen(len(outputs) * np.arange(len(values) + 1))
    return structure.chosen(values, y, starts).reshape(len(values), len(outputs))


@every_structure
@given(scale=scales, seed=seeds)
@settings(max_examples=25, deadline=None)
def test_expected_is_the_mean_of_what_all_outputs_collect(structure, scale, seed):
    scores, values = scores_of(structure, 3, scale, seed), scores_of(structure, 3, 2.0, seed + 1)
    by_hand = np.sum(np.exp(log_probs_of_all(structure, scores)) * collected_by_all(structure, values), axis=1)
    np.testing.assert_allclose(structure.expected(scores, values), by_hand, rtol=1e-9, atol=1e-11)


@every_structure
@given(scale=st.sampled_from([0.1, 1.0, 5.0]), seed=seeds)
@settings(max_examples=25, deadline=None)
def test_pull_back_of_expected_equals_finite_differences(structure, scale, seed):
    scores, values = scores_of(structure, 4, scale, seed), scores_of(structure, 4, 2.0, seed + 1)
    coef = np.random.default_rng(seed).normal(size=4)
    pulled = structure.pull_back_expected(scores, values, coef)
    numeric = numeric_gradient(lambda v: coef @ structure.expected(v, values), scores, 1e-5)
    np.testing.assert_allclose(pulled, numeric, rtol=1e-6, atol=1e-9)


@every_structure
def test_a_policy_that_is_certain_expects_what_its_output_collects(structure):
    scores, values = scores_of(structure, 3, 1e4, 0), scores_of(structure, 3, 2.0, 1)
    best = structure.chosen(values, frozen(structure.argmax(scores)), frozen(np.arange(4)))
    np.testing.assert_allclose(structure.expected(scores, values), best, rtol=1e-12)
    np.testing.assert_allclose(structure.pull_back_expected(scores, values, np.ones(3)), 0.0, atol=1e-12)


# ---- what users call y ----------------------------------------------------------------------------


def names_of(structure):
    return tuple("abcdefgh"[: structure.n_scores])


@every_structure
def test_outputs_are_decoded_to_what_was_encoded(structure):
    outputs, labels = all_outputs(structure), names_of(structure)
    codes, known, found = encoded(structure.decode(outputs, labels), labels, structure)
    np.testing.assert_array_equal(codes, outputs)
    assert (known, found) == (labels, structure)
    assert len(outputs) == structure.n_outputs == len(structure.every(1 << 12))


@every_structure
def test_a_structure_is_rebuilt_from_its_name_and_data(structure):
    labels = names_of(structure)
    y = structure.decode(all_outputs(structure), labels)
    assert structure_from_data(json.loads(json.dumps(structure.to_data())), structure.n_scores) == structure
    assert encoded(y, labels, structure.name)[2] == structure
    assert encoded(y, labels, type(structure))[2] == structure


@every_structure
def test_outputs_come_back_from_arrow(structure):
    codes, labels = all_outputs(structure), names_of(structure)
    column = structure.to_arrow(codes, pa.array(labels))
    table = pa.table(
        {
            "output": column,
            "loss": np.zeros(len(codes)),
            "propensity": np.ones(len(codes)),
            "x": codes[:, None][:, 0] if codes.ndim == 1 else codes[:, 0],
        }
    )
    log = poem.read_log(table, labels=labels, structure=structure)
    np.testing.assert_array_equal(log.y, codes)
    assert (log.structure, log.labels) == (structure, labels)


@every_structure
def test_indicators_keys_and_words_tell_outputs_apart(structure):
    outputs, labels = all_outputs(structure), names_of(structure)
    indicators = np.asarray(structure.indicators(outputs) @ np.eye(structure.n_scores))
    starts = frozen(np.arange(len(outputs) + 1))
    by_hand = structure.spread(np.ones(len(outputs)), frozen(outputs), starts)
    np.testing.assert_array_equal(indicators, by_hand)
    assert len(np.unique(structure.keys(outputs), axis=0)) == len(outputs)
    assert len({structure.phrase(code, labels) for code in outputs}) == len(outputs)


@every_structure
def test_columns_that_were_not_logged_are_known(structure):
    outputs = all_outputs(structure)
    assert not any(part.any() for part in structure.unlogged(outputs))
    indicators = np.asarray(structure.indicators(outputs) @ np.eye(structure.n_scores))
    without = outputs[indicators[:, 0] == 0.0]
    on, off = structure.unlogged(without)
    assert on[0]
    scores = scores_of(structure, 4, 1.0, 0)
    probabilities = np.exp(log_probs_of_all(structure, scores))
    exact = probabilities[:, indicators[:, 0] == 1.0].sum(axis=1)
    only = np.zeros_like(on)
    only[0] = True
    np.testing.assert_allclose(structure.chance_of_any(structure.marginals(scores), only, np.zeros_like(off)), exact)
    assert np.all(structure.chance_of_any(structure.marginals(scores), on, off) >= exact - 1e-12)


@every_structure
def test_labelled_data_are_fitted(structure):
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(600, 2)), 2.0 * rng.normal(size=(3, structure.n_scores))
    y = structure.sample(X @ weights[:-1] + weights[-1], rng)
    policy = poem.supervised(
        X, structure.decode(y, names_of(structure)), labels=names_of(structure), structure=structure, C=100.0
    )
    true = poem.Policy(structure, weights, True, names_of(structure))
    assert policy.structure == structure
    sure = [float(one.log_prob(X, structure.decode(y, names_of(structure))).mean()) for one in (policy, true)]
    assert sure[1] < sure[0] < sure[1] + 0.1  # as likely as the truth, and no less


@every_structure
def test_the_law_of_scores_that_all_outputs_share(structure):
    scores = scores_of(structure, 3, 1.0, 0)
    shifted = log_probs_of_all(structure, scores + 0.7)
    assert np.allclose(shifted, log_probs_of_all(structure, scores)) == structure.shared_scores
