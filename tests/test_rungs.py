"""Candidates compete on a sample of many units, and the best of them on more."""

import re

import numpy as np
import pytest
from easy_logs import BRIEF, FEW, bits_of, easy_log, noise_log, rows_of

import poem
from poem.certificates import PAIRED, forecast
from poem.data import sample_of, with_seen_contexts
from poem.learning import ending, rungs
from poem.learning.portfolio import AUTO
from poem.learning.rungs import finalists, latest, rungs_of

BOUNDS = (0.0, 1.1)


def lower(patch):
    """Make rungs for small logs: half of the 600 contexts are learnt from, and two rungs lead there."""
    for name, value in {"FEW_UNITS": 100, "SIZES": (120, 1000), "FINALISTS": 3, "ENOUGH_HELD": 100}.items():
        patch.setattr(rungs, name, value)
    patch.setattr(ending, "MANY_UNITS", 0)  # once is enough


@pytest.fixture
def low(monkeypatch):
    lower(monkeypatch)


@pytest.fixture(scope="module")
def found():
    with pytest.MonkeyPatch.context() as patch:
        lower(patch)
        return poem.fit(easy_log(contexts=600), learners=BRIEF, loss_bounds=BOUNDS)


def judged_on(found):
    return [row["validation_rows"] for row in found.table.to_dicts()]


# ---- rungs ----------------------------------------------------------------------------------------


def test_few_units_have_no_rungs(low):
    assert rungs_of(easy_log(contexts=100), 0) == []
    assert len(rungs_of(easy_log(contexts=101), 0)) == 2


@pytest.mark.parametrize("grouped", [False, True])
def test_rungs_are_samples_of_units_of_which_one_half_is_held_out(low, grouped):
    log = easy_log(contexts=300, replay=2)
    log = log.with_groups(np.arange(600) // 2) if grouped else log
    first, last = rungs_of(log, 0)
    assert int(first.log.units().max()) + 1 == 120
    assert last.log is log
    for rung in (first, last):
        (split,) = rung.splits
        name = "group" if grouped else "context"
        train, held = (np.unique(getattr(part, name)) for part in (split.train, split.held))
        assert not set(train) & set(held)
        assert len(train) == len(held)
        assert len(split.train) + len(split.held) == len(rung.log)
        assert len(np.unique(split.units)) == len(held)


def test_where_few_units_are_held_out_both_halves_are(low, monkeypatch):
    monkeypatch.setattr(rungs, "ENOUGH_HELD", 200)
    first, last = rungs_of(easy_log(contexts=300), 0)
    assert (len(first.splits), len(last.splits)) == (1, 2)
    np.testing.assert_array_equal(np.sort(np.concatenate([split.units for split in last.splits])), np.arange(300))


def test_a_sample_has_the_contexts_that_it_saw_and_no_others():
    log = easy_log(contexts=50, replay=3)
    assert sample_of(log, 50, 0) is log
    some = sample_of(log, 20, 0)
    assert (some.n_contexts, len(some)) == (20, 60)
    rows = [log.X[log.context], some.X[some.context]]
    columns = [np.column_stack([X, one.y, one.loss]) for X, one in zip(rows, (log, some), strict=True)]
    assert {tuple(row) for row in columns[1]} <= {tuple(row) for row in columns[0]}
    assert with_seen_contexts(some) is some


def test_few_candidates_of_one_learner_go_on(found):
    recipes = [recipe for learner in AUTO for recipe in learner.recipes()]
    ordered = [found.table[0].__class__(**{**vars(found.table[0]), "recipe": recipe}) for recipe in recipes]
    kept = finalists(ordered, 4)
    assert [one.recipe for one in kept] == [recipes[place] for place in (0, 1, 5, 6)]  # of direct, and of DR-CRM
    assert [one.recipe for one in finalists(ordered, 1)] == recipes[:1]


# ---- fits -----------------------------------------------------------------------------------------


def test_those_that_were_dropped_were_judged_on_fewer_rows(found):
    rows = judged_on(found)
    assert set(rows) == {60, 150}
    assert rows.count(150) == 3 + 1  # the finalists, and the imitation
    assert rows[-1] == found.n_validation == 150
    assert found.chosen in list(found.table)
    assert found.chosen.validation.n == 150
    assert found.certified
    assert "held-out rows" in repr(found)
    assert len(found.table) == len(BRIEF) + 1


def test_the_chosen_one_is_learnt_from_all_rows_that_do_not_certify(found):
    assert found.policy.record.n_train == 600 - found.certificate.rows > 300


def test_lambda_grows_with_the_rows(found):
    lams = {row["validation_rows"]: row["lam"] for row in found.table.to_dicts() if row["c"]}
    star = found.calibration.lam_star
    for rows, lam in lams.items():
        assert lam == pytest.approx(1e-2 * star * np.sqrt(2 * rows / 300))


def test_a_number_of_folds_asks_for_all_candidates_on_all_rows(low):
    every = poem.fit(easy_log(contexts=300), learners=FEW, selection=poem.Selection(validation=3))
    assert (every.folds, set(judged_on(every))) == (3, {150})
    assert "held-out rows" not in repr(every)


def test_a_choice_without_a_certificate(low):
    found = poem.fit(easy_log(contexts=300), learners=BRIEF, certify=False)
    assert set(judged_on(found)) == {60, 150}
    assert found.policy.record.n_train == 300
    assert found.chosen.validation.n == 150


def test_on_noise_nothing_is_certified(low):
    found = poem.fit(noise_log(contexts=600), learners=BRIEF)
    assert not found.certified
    assert len(found.table) == len(BRIEF) + 1


def test_the_number_of_jobs_changes_nothing(found, low):
    two = poem.fit(easy_log(contexts=600), learners=BRIEF, loss_bounds=BOUNDS, n_jobs=2)
    one = poem.fit(easy_log(contexts=600), learners=BRIEF, loss_bounds=BOUNDS, n_jobs=1)
    assert bits_of(found) == bits_of(one) == bits_of(two)
    assert rows_of(found) == rows_of(one) == rows_of(two)


@pytest.mark.parametrize("log", [easy_log(contexts=600), noise_log(contexts=600)], ids=["easy", "noise"])
@pytest.mark.parametrize("certify", [True, False])
def test_progress_ends_where_it_said_it_would(low, log, certify, capsys):
    poem.fit(log, learners=BRIEF, certify=certify, progress=True)
    done, total = re.findall(r"(\d+)/(\d+) in", capsys.readouterr().err)[-1]
    assert done == total


def test_a_fit_that_was_interrupted_resumes_on_any_rung(found, low, tmp_path):
    options = {"learners": BRIEF, "loss_bounds": BOUNDS, "checkpoint": tmp_path}
    poem.fit(easy_log(contexts=600), **options)
    paths = sorted(tmp_path.glob("candidate-*.poem"), key=lambda path: int(path.stem.split("-")[1]))
    assert len(paths) == len(BRIEF) + 1 + 4 + 1  # all, the finalists with the imitation, and the chosen one again
    for path in paths[3:9]:
        path.unlink()
    assert bits_of(poem.fit(easy_log(contexts=600), **options)) == bits_of(found)
    assert set(tmp_path.glob("candidate-*.poem")) == set(paths)


def test_the_table_has_the_last_that_is_known_of_each_recipe(found):
    first = list(found.table)
    assert latest([one.recipe for one in first], [first, first[2:4]]) == first


# ---- forecasts ------------------------------------------------------------------------------------


def test_a_forecast_from_a_sample_minds_the_largest_unit_of_all():
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 4, 500).astype(float)
    sums = (rng.normal(0.3, 0.5, (500, 1)).clip(-1.0) * sizes[:, None]).clip(-sizes[:, None])
    plain, same, larger = (forecast(sums, sizes, PAIRED[:1], largest) for largest in (None, 3.0, 30.0))
    assert plain == same
    assert larger.growth < plain.growth
    big = forecast(np.append(sums, [[9.0]], axis=0), np.append(sizes, 30.0), PAIRED[:1])  # and a large one
    assert larger.units_needed(0.05) == pytest.approx(big.units_needed(0.05), rel=0.1)
