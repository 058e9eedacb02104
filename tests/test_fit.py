import sys
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import poem
from poem.errors import CheckpointError, DegenerateError, DegenerateWarning, InputError
from poem.estimators import Estimate
from poem.learning.portfolio import Recipe
from poem.learning.selection import AVOIDS, IGNORES, OVERFITS, Candidate, choose, find_problems, overfits
from poem.optimizers import Trace

OPTIMIZERS = {"LBFGS": poem.LBFGS(max_iterations=30), "AdaGrad": poem.AdaGrad(max_batches=20, check_every=5)}
ESTIMATORS = {"IPS": poem.IPS(), "SNIPS": poem.SNIPS()}
QUICK = {"optimizer": OPTIMIZERS["LBFGS"]}


def weights_of(found):
    return [candidate.policy.weights.tobytes() for candidate in found.table]


def without_seconds(row):
    return {name: value for name, value in row.items() if name != "seconds"}


# ---- the table ------------------------------------------------------------------------------------


def test_the_table_has_one_row_for_each_lambda_in_ascending_order(label_log):
    found = poem.fit(label_log, **QUICK)
    lams = [candidate.lam for candidate in found.table]
    assert [candidate.c for candidate in found.table] == pytest.approx([1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0])
    assert lams == pytest.approx([c.c * found.calibration.lam_star for c in found.table])
    assert lams == sorted(lams)
    assert len(found.table) == 7


def test_several_lambdas_are_tried_in_ascending_order(label_log):
    found = poem.fit(label_log, lam=[1.0, 0.0, 0.1], **QUICK)
    assert [(candidate.lam, candidate.c) for candidate in found.table] == [(0.0, None), (0.1, None), (1.0, None)]


@pytest.mark.parametrize("lam", [0, 0.5, np.float32(0.5), [0.5]])
def test_one_lambda_gives_one_candidate(label_log, lam):
    found = poem.fit(label_log, lam=lam, selection=poem.Selection(guard=False), **QUICK)
    assert [candidate.lam for candidate in found.table] == [float(np.ravel(lam)[0])]
    assert found.chosen is found.table[0]
    assert np.array_equal(found.policy.weights, found.chosen.policy.weights)


def test_lambda_star_is_where_the_logging_policy_has_objective_zero(label_log):
    found = poem.fit(label_log, selection=poem.Selection(validation=None), lam=0.1, loss_bounds=(0, 4), **QUICK)
    scaled = (label_log.loss - 4) / 4
    stderr = scaled.std(ddof=1) / np.sqrt(len(scaled))
    assert scaled.mean() + found.calibration.lam_star * stderr == pytest.approx(0.0, abs=1e-12)


def test_the_table_prints_and_turns_into_plain_data(label_log):
    found = poem.fit(label_log, lam=[0.01, 1.0], **QUICK)
    head, _, *lines = repr(found.table).splitlines()
    for title in ("λ", "objective", "mean weight", "clipped", "held-out loss", "problems"):
        assert title in head
    assert [line.startswith("→") for line in lines] == [candidate is found.chosen for candidate in found.table]
    rows = found.table.to_dicts()
    assert [row["lam"] for row in rows] == [0.01, 1.0]
    assert sum(row["chosen"] for row in rows) == 1
    assert all(row["validation_low"] < row["validation"] < row["validation_high"] for row in rows)
    assert found.table[-1].lam == 1.0


def test_the_result_says_what_was_done(label_log):
    found = poem.fit(label_log, lam=0.1, selection=poem.Selection(guard=False), **QUICK)
    assert (found.n_train, found.n_validation) == (360, 120)
    shown = repr(found)
    for part in (
        "MultiLabel(n_labels=4)",
        "candidates were trained on 360 rows and judged on 120",
        "loss from 0 to 4 (data)",
        "clip M",
        "λ*",
    ):
        assert part in shown


def test_bounds_found_in_the_data_are_called_so(label_log):
    found = poem.fit(label_log, lam=0.1, selection=poem.Selection(guard=False), **QUICK)
    assert found.calibration.bounds_from == "data"
    assert (found.calibration.loss_low, found.calibration.loss_high) == (label_log.loss.min(), label_log.loss.max())
    assert found.policy.record.calibration["bounds_from"] == "data"


def test_bounds_that_were_given_are_called_so(label_log):
    found = poem.fit(label_log, lam=0.1, selection=poem.Selection(guard=False), loss_bounds=(-1, 10), **QUICK)
    assert found.calibration.bounds_from == "given"
    assert (found.calibration.loss_low, found.calibration.loss_high) == (-1, 10)


def test_the_held_out_estimate_is_in_the_logs_own_loss(label_log):
    held = label_log.split(0.25, np.random.default_rng([0, 0]))[1]
    found = poem.fit(
        label_log, lam=0.1, loss_bounds=(0, 4), selection=poem.Selection(select_by="snips", guard=False), **QUICK
    )
    assert found.chosen.validation.value == pytest.approx(poem.estimate(found.policy, held).value)
    assert found.chosen.score == found.chosen.validation.value


def test_learning_beats_logging(class_data, class_logger, class_log):
    found = poem.fit(class_log)
    assert found.policy.expected_loss(*class_data) < 0.8 * class_logger.expected_loss(*class_data)


def test_the_clip_can_be_given_or_left_out(label_log):
    for clip, rule in ((7.0, "given"), (None, "none"), ("max", "max/min")):
        found = poem.fit(label_log, estimator=poem.IPS(clip), lam=0.1, selection=poem.Selection(guard=False), **QUICK)
        assert found.calibration.clip_rule == rule
        assert clip == "max" or found.calibration.clip == clip


def test_l2_shrinks_the_weights(label_log):
    free, bound = (
        poem.fit(label_log, lam=0.1, l2=l2, selection=poem.Selection(guard=False), **QUICK) for l2 in (0.0, 1.0)
    )
    assert np.linalg.norm(bound.policy.weights) < np.linalg.norm(free.policy.weights)


def test_without_an_intercept_there_is_no_row_for_it(label_log):
    policy = poem.fit(label_log, lam=0.1, fit_intercept=False, selection=poem.Selection(guard=False), **QUICK).policy
    assert policy.weights.shape == (12, 4)
    assert not policy.intercept


# ---- the answer does not depend on threads, only on the seed --------------------------------------


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("kind", ["labels", "classes, CSR"])
def test_the_number_of_jobs_changes_nothing(label_log, class_log, kind, optimizer, estimator):
    log = label_log if kind == "labels" else class_log.replaced(X=sparse_contexts(class_log))
    options = {
        "optimizer": OPTIMIZERS[optimizer],
        "estimator": ESTIMATORS[estimator],
        "seed": 5,
        "selection": poem.Selection(guard=False),
    }
    one, two, three = (poem.fit(log, n_jobs=jobs, **options) for jobs in (1, 2, 3))
    assert weights_of(one) == weights_of(two) == weights_of(three)
    assert [without_seconds(row) for row in one.table.to_dicts()] == [
        without_seconds(r) for r in three.table.to_dicts()
    ]


def sparse_contexts(log):
    X = np.where(log.X > 0.5, log.X, 0.0)
    return poem.BanditLog(sp.csr_array(X), np.zeros(len(X)), loss=np.zeros(len(X)), propensity=np.ones(len(X))).X


@pytest.mark.parametrize("kind", ["dense", "CSR"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_one_candidate_on_many_threads_is_the_same(class_log, monkeypatch, optimizer, kind):
    monkeypatch.setattr("poem.compute.cutting.PIECE_WORK", 100)  # so that a small log is cut into pieces
    log = class_log if kind == "dense" else class_log.replaced(X=sparse_contexts(class_log))
    options = {"optimizer": OPTIMIZERS[optimizer], "lam": 0.1, "selection": poem.Selection(guard=False)}
    one, two, three = (poem.fit(log, n_jobs=jobs, **options) for jobs in (1, 2, 3))
    assert weights_of(one) == weights_of(two) == weights_of(three)


def test_another_seed_gives_another_split(label_log):
    one, two = (
        poem.fit(label_log, lam=0.1, seed=seed, selection=poem.Selection(guard=False), **QUICK) for seed in (0, 1)
    )
    assert weights_of(one) != weights_of(two)
    assert one.chosen.validation.value != two.chosen.validation.value


def test_the_seed_of_a_stochastic_optimizer_matters(label_log):
    options = {
        "lam": 0.1,
        "optimizer": OPTIMIZERS["AdaGrad"],
        "selection": poem.Selection(validation=None, guard=False),
    }
    one, two, again = (poem.fit(label_log, seed=seed, **options) for seed in (0, 1, 0))
    assert weights_of(one) != weights_of(two)
    assert weights_of(one) == weights_of(again)


# ---- held-out rows --------------------------------------------------------------------------------


def test_without_validation_there_is_one_candidate(label_log):
    with pytest.raises(InputError, match=r"several candidates can be told apart on held-out rows only.*one candidate"):
        poem.fit(label_log, lam=[0.1, 10.0], selection=poem.Selection(validation=None), **QUICK)
    found = poem.fit(label_log, lam=0.1, selection=poem.Selection(validation=None, guard=False), **QUICK)
    assert (found.n_train, found.n_validation, found.logged) == (480, 0, None)
    assert all(candidate.validation is None for candidate in found.table)
    assert "held-out loss" in repr(found.table)
    assert found.table.to_dicts()[0]["validation"] is None


def test_a_validation_log_of_its_own_is_used_whole(label_log):
    rest, held = label_log.split(0.25, np.random.default_rng([0, 0]))
    own = poem.fit(
        rest, lam=[0.1, 1.0], selection=poem.Selection(validation=held, guard=False), loss_bounds=(0, 4), **QUICK
    )
    split = poem.fit(
        label_log, lam=[0.1, 1.0], selection=poem.Selection(validation=0.25, guard=False), loss_bounds=(0, 4), **QUICK
    )
    assert (own.n_train, own.n_validation) == (360, 120)
    assert weights_of(own) == weights_of(split)
    assert own.chosen.validation == split.chosen.validation


def test_groups_are_held_out_whole(label_log):
    grouped = label_log.replaced(group=label_log.context // 12)
    found = poem.fit(grouped, lam=0.1, selection=poem.Selection(guard=False), **QUICK)
    assert (found.n_train, found.n_validation) == (384, 96)


@pytest.mark.parametrize("select_by", ["snips", poem.SNIPS(clip=None)], ids=["name", "estimator"])
def test_selection_by_snips_uses_snips(label_log, select_by):
    found = poem.fit(label_log, lam=[0.01, 1.0], selection=poem.Selection(select_by=select_by, guard=False), **QUICK)
    held = label_log.split(0.25, np.random.default_rng([0, 0]))[1]
    for candidate in found.table:
        assert candidate.validation.value == pytest.approx(poem.estimate(candidate.policy, held).value)


def test_selection_by_ips_is_the_default(label_log):
    default, ips, snips = (
        poem.fit(label_log, lam=0.1, selection=poem.Selection(guard=False, select_by=by), **QUICK)
        for by in (None, "ips", "snips")
    )
    assert default.chosen.validation == ips.chosen.validation
    assert default.chosen.validation.value != snips.chosen.validation.value


# ---- start ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_array", [False, True])
def test_learning_starts_where_it_is_told_to(label_log, label_logger, as_array):
    start = np.array(label_logger.weights) if as_array else label_logger
    found = poem.fit(label_log, lam=0.1, start=start, selection=poem.Selection(validation=None, guard=False), **QUICK)
    from_zero = poem.fit(label_log, lam=0.1, selection=poem.Selection(validation=None, guard=False), **QUICK)
    first = found.chosen.trace.curve[0][1]
    assert first == pytest.approx(found.calibration.scale(label_log.loss).mean(), abs=0.01)  # the logging policy's own
    assert first != from_zero.chosen.trace.curve[0][1]
    assert found.policy.record.start == "given"
    assert from_zero.policy.record.start == "zero"


# ---- degenerate answers ---------------------------------------------------------------------------


@pytest.fixture
def log_with_an_unused_class():
    """Class 2 was never logged: a policy can flee to it."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), rng.integers(0, 2, 200)
    loss = np.abs(y - (X[:, 0] > 0)) + 0.1 * rng.random(200)
    return poem.BanditLog(X, y, loss=loss, propensity=np.full(200, 0.5), labels=range(3))


@pytest.fixture
def log_of_one_context():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    loss = (y != 1) + 0.1 * rng.random(200)
    return poem.BanditLog(np.ones((200, 1)), y, loss=loss, propensity=np.full(200, 1 / 3))


def test_a_policy_that_avoids_the_log_is_marked_and_never_chosen(log_with_an_unused_class):
    found = poem.fit(log_with_an_unused_class, lam=[0.01, 1e4])
    good, bad = found.table
    assert AVOIDS in bad.problems
    assert bad.mean_weight < 0.01
    assert good.problems == ()
    assert found.chosen is good
    assert "avoids the log" in repr(found.table)


def test_if_all_candidates_avoid_the_log_there_is_no_answer(log_with_an_unused_class):
    with pytest.raises(
        DegenerateError, match=r"each of the 2 candidates avoids.*mean weight at most.*Use a smaller lam"
    ):
        poem.fit(log_with_an_unused_class, lam=[1e4, 1e5])


def test_without_the_guard_such_a_policy_is_returned(log_with_an_unused_class):
    found = poem.fit(log_with_an_unused_class, lam=1e4, selection=poem.Selection(guard=False))
    assert AVOIDS in found.chosen.problems


def test_a_policy_that_ignores_contexts_is_returned_with_a_warning(log_of_one_context):
    with pytest.warns(DegenerateWarning, match=r"“ignores x” \(it chooses the same way.*A/B test") as caught:
        found = poem.fit(log_of_one_context, lam=[0.01, 0.1])
    assert caught[0].filename == __file__
    assert all(IGNORES in candidate.problems for candidate in found.table)
    assert found.policy.predict(np.ones((1, 1))).tolist() == [1]


def test_without_the_guard_there_is_no_warning(log_of_one_context):
    assert IGNORES in poem.fit(log_of_one_context, lam=0.01, selection=poem.Selection(guard=False)).chosen.problems


def candidate_of(value, *problems, objective=0.0, lam=1.0, validated=True):
    policy = poem.Policy(poem.MultiClass(2), np.zeros((1, 2)), True, (0, 1))
    validation = Estimate(value, 0.1, 100, 100, 1.0, 0.0, 100.0) if validated else None
    trace = Trace(policy.weights, objective, 1, 0.0, True, "")
    recipe = Recipe(poem.Learner("POEM", lam=lam), 1.0, lam, None, 0.0)
    return Candidate(policy, recipe, lam, objective, 1.0, 0.0, validation, None, problems, 0.0, trace)


def test_the_lowest_held_out_loss_is_chosen():
    candidates = [candidate_of(0.3), candidate_of(0.1), candidate_of(0.2)]
    assert choose(candidates) is candidates[1]


def test_without_held_out_rows_the_lowest_objective_is_chosen():
    candidates = [candidate_of(0.0, objective=objective, validated=False) for objective in (-0.1, -0.3, -0.2)]
    assert choose(candidates) is candidates[1]


def test_of_equals_the_first_is_chosen():
    candidates = [candidate_of(0.1, lam=0.01), candidate_of(0.1, lam=1.0)]
    assert choose(candidates) is candidates[0]


@pytest.mark.parametrize("problem", [AVOIDS, IGNORES, OVERFITS])
def test_a_healthy_candidate_is_preferred_to_a_better_one_with_problems(problem):
    candidates = [candidate_of(0.1, problem), candidate_of(0.9)]
    assert choose(candidates) is candidates[1]
    assert choose(candidates, guard=False) is candidates[0]


@pytest.mark.parametrize("problem", [IGNORES, OVERFITS])
def test_if_nothing_is_healthy_the_best_is_chosen_with_a_warning(problem):
    candidates = [candidate_of(0.0, AVOIDS), candidate_of(0.5, problem), candidate_of(0.4, problem)]
    with pytest.warns(DegenerateWarning, match=problem):
        assert choose(candidates) is candidates[2]


def test_candidates_that_avoid_the_log_are_never_chosen():
    candidates = [candidate_of(0.0, AVOIDS), candidate_of(0.1, AVOIDS, IGNORES)]
    with pytest.raises(DegenerateError, match="each of the 2 candidates"):
        choose(candidates)
    assert choose(candidates, guard=False) is candidates[0]


def test_a_candidate_without_a_number_comes_last():
    candidates = [candidate_of(float("nan")), candidate_of(5.0)]
    assert choose(candidates) is candidates[1]


def test_problems_are_found(rows):
    peaked = np.array([[5.0, -5.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    minds_x = poem.Policy(poem.MultiClass(2), peaked, True, (0, 1))
    ignores_x = replace(minds_x, weights=np.zeros((4, 2)))
    trusted = Estimate(0.5, 0.1, 100, 100, 1.1, 0.0, 50.0)
    assert find_problems(minds_x, rows.X, None, 1.0) == ()
    assert find_problems(minds_x, rows.X, None, 0.001) == (AVOIDS,)
    assert find_problems(ignores_x, rows.X, None, 1.0) == (IGNORES,)
    assert not overfits(trusted)
    assert overfits(replace(trusted, mean_weight=2.5))
    # Far from 1, but within what chance does to a mean of so few rows.
    assert not overfits(replace(trusted, mean_weight=2.5, effective_n=2.0))


# ---- checkpoints ----------------------------------------------------------------------------------


class Interrupted(poem.LBFGS):
    """Counts its minimisations and stops after some of them as Ctrl-C does."""

    calls = 0
    stop_after = 10**9

    def minimize(self, *arguments, **options):
        if Interrupted.calls >= Interrupted.stop_after:
            raise KeyboardInterrupt
        Interrupted.calls += 1
        return super().minimize(*arguments, **options)


@pytest.fixture
def counted(monkeypatch):
    monkeypatch.setattr(Interrupted, "calls", 0)
    return Interrupted(max_iterations=30)


LAMS = [0.01, 0.1, 1.0, 10.0]


def test_an_interrupted_grid_resumes(label_log, counted, monkeypatch, tmp_path):
    whole = poem.fit(label_log, lam=LAMS, optimizer=counted, n_jobs=1)
    Interrupted.calls = 0
    monkeypatch.setattr(Interrupted, "stop_after", 2)
    with pytest.raises(KeyboardInterrupt):
        poem.fit(label_log, lam=LAMS, optimizer=counted, n_jobs=1, checkpoint=tmp_path / "grid")
    monkeypatch.setattr(Interrupted, "stop_after", 10**9)
    Interrupted.calls = 0
    resumed = poem.fit(label_log, lam=LAMS, optimizer=counted, n_jobs=1, checkpoint=tmp_path / "grid")
    assert Interrupted.calls == 2
    assert weights_of(resumed) == weights_of(whole)
    pairs = zip(resumed.table.to_dicts(), whole.table.to_dicts(), strict=True)
    assert all(without_seconds(one) == without_seconds(two) for one, two in pairs)


def test_an_interrupted_grid_of_several_jobs_resumes(label_log, counted, monkeypatch, tmp_path):
    monkeypatch.setattr(Interrupted, "stop_after", 2)
    with pytest.raises(KeyboardInterrupt):
        poem.fit(label_log, lam=LAMS, optimizer=counted, n_jobs=2, checkpoint=tmp_path)
    monkeypatch.setattr(Interrupted, "stop_after", 10**9)
    resumed = poem.fit(label_log, lam=LAMS, optimizer=counted, n_jobs=2, checkpoint=tmp_path)
    assert weights_of(resumed) == weights_of(poem.fit(label_log, lam=LAMS, optimizer=counted))


def test_a_finished_fit_is_not_done_again(label_log, counted, tmp_path):
    first = poem.fit(label_log, lam=LAMS, optimizer=counted, checkpoint=tmp_path)
    assert Interrupted.calls == 4
    second = poem.fit(label_log, lam=LAMS, optimizer=counted, checkpoint=str(tmp_path))
    assert Interrupted.calls == 4
    assert second.policy.record == first.policy.record


def test_a_candidate_whose_record_lacks_its_trace_is_made_again(label_log, counted, tmp_path):
    first = poem.fit(label_log, lam=LAMS, optimizer=counted, checkpoint=tmp_path)
    kept = poem.load_policy(tmp_path / "candidate-2.poem")
    replace(kept, record=poem.Record()).save(tmp_path / "candidate-2.poem")
    again = poem.fit(label_log, lam=LAMS, optimizer=counted, checkpoint=tmp_path)
    assert Interrupted.calls == 5
    assert weights_of(again) == weights_of(first)


def test_no_temporary_files_stay_in_the_folder(label_log, counted, tmp_path):
    poem.fit(label_log, lam=LAMS, optimizer=counted, checkpoint=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [*(f"candidate-{i}.poem" for i in range(4)), "fit.json"]


OTHERS = {
    "loss": lambda log: (log.replaced(loss=log.loss[::-1].copy()), {}),
    "group": lambda log: (log.replaced(group=log.context), {}),
    "lam": lambda log: (log, {"lam": [0.1, 0.3]}),
    "seed": lambda log: (log, {"seed": 1}),
    "validation": lambda log: (log, {"selection": poem.Selection(guard=False, validation=0.5)}),
    "estimator": lambda log: (log, {"estimator": poem.SNIPS()}),
    "clip": lambda log: (log, {"estimator": poem.IPS(3.0)}),
    "optimizer": lambda log: (log, {"optimizer": poem.LBFGS(max_iterations=3)}),
    "l2": lambda log: (log, {"l2": 0.1}),
    "intercept": lambda log: (log, {"fit_intercept": False}),
    "bounds": lambda log: (log, {"loss_bounds": (0, 5)}),
    "start": lambda log: (log, {"start": np.ones((13, 4))}),
    "label names": lambda log: (log.replaced(labels=("a", "b", "c", "d")), {}),
    "feature names": lambda log: (log.replaced(feature_names=tuple("abcdefghijkl")), {}),
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_folder_of_another_fit_is_refused(label_log, tmp_path, what):
    options = {"lam": [0.1, 0.2], "checkpoint": tmp_path, **QUICK, "selection": poem.Selection(guard=False)}
    poem.fit(label_log, **options)
    other, changes = OTHERS[what](label_log)
    with pytest.raises(CheckpointError, match=r"belongs to another log or to other settings.*empty folder"):
        poem.fit(other, **options | changes)


def test_a_folder_of_another_start_is_refused(label_log, tmp_path):
    options = {"lam": 0.1, "checkpoint": tmp_path, **QUICK, "selection": poem.Selection(guard=False)}
    poem.fit(label_log, start=np.ones((13, 4)), **options)
    with pytest.raises(CheckpointError):
        poem.fit(label_log, start=np.full((13, 4), -1.0), **options)


def test_a_broken_folder_is_refused(label_log, tmp_path):
    (tmp_path / "fit.json").write_text("{")
    with pytest.raises(CheckpointError):
        poem.fit(label_log, lam=0.1, checkpoint=tmp_path, **QUICK)


def test_the_number_of_jobs_may_change_between_runs(label_log, tmp_path):
    options = {"lam": [0.1, 0.2], "checkpoint": tmp_path, **QUICK, "selection": poem.Selection(guard=False)}
    assert weights_of(poem.fit(label_log, n_jobs=1, **options)) == weights_of(poem.fit(label_log, n_jobs=2, **options))


# ---- progress, interruption, errors ---------------------------------------------------------------


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_goes_to_stderr_only(label_log, capsys, monkeypatch, terminal):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    poem.fit(label_log, lam=[0.1, 0.2], progress=True, selection=poem.Selection(guard=False), **QUICK)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith("\n")
    assert "fit: 2/2 in" in err
    assert ("\r" in err) == terminal


def test_without_progress_nothing_is_written(label_log, capsys):
    poem.fit(label_log, lam=[0.1, 0.2], selection=poem.Selection(guard=False), **QUICK)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interruption_without_a_checkpoint_ends_the_fit(label_log, counted, monkeypatch, jobs):
    monkeypatch.setattr(Interrupted, "stop_after", 1)
    with pytest.raises(KeyboardInterrupt):
        poem.fit(label_log, lam=LAMS, optimizer=counted, n_jobs=jobs)
