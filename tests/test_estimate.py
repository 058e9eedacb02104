"""What an estimate must not claim: intervals where nothing is known, and rows that are not independent."""

import numpy as np
import pytest

import poem
from poem.errors import InputError, MismatchError
from poem.estimators import IPS, SNIPS
from poem.evaluation.comparison import ALL


def test_a_policy_that_no_row_supports_is_worth_nobody_knows_what():
    log = poem.BanditLog(
        np.ones((40, 1)), ["b", "c"] * 20, loss=np.arange(40.0), propensity=[0.5] * 40, labels=["a", "b", "c"]
    )
    found = poem.estimate(poem.constant_policy(log, "a"), log)
    assert np.isnan(found.value)
    assert found.interval() == (-np.inf, np.inf)
    assert found.mean_weight == 0.0


def test_one_supporting_row_gives_no_interval():
    found = SNIPS(None).estimate(np.array([0.0] + [-1000.0] * 30), np.arange(31.0))
    assert found.value == pytest.approx(0.0)
    assert found.interval() == (-np.inf, np.inf)


def test_few_effective_rows_widen_the_interval():
    loss = np.random.default_rng(0).random(1000)
    light, heavy = np.zeros(1000), np.concatenate([np.full(5, 8.0), np.full(995, -8.0)])
    assert np.ptp(SNIPS(None).estimate(heavy, loss).interval()) > 5 * np.ptp(
        SNIPS(None).estimate(light, loss).interval()
    )


@pytest.mark.parametrize("estimator", [IPS(None), SNIPS(None)], ids=str)
def test_intervals_cover_when_the_rows_of_a_user_are_alike(estimator):
    """200 users with 16 rows each, whose losses move together: only clustered intervals cover."""
    rng = np.random.default_rng(1)
    logging, new = np.array([0.5, 0.5]), np.array([0.3, 0.7])
    covered = {"clustered": 0, "naive": 0}
    for _ in range(400):
        user = np.repeat(np.arange(200), 16)
        mood = rng.normal(size=200)[user]
        y = rng.choice(2, size=3200, p=logging)
        loss = y + mood + 0.1 * rng.normal(size=3200)
        log_ratio = np.log(new[y] / logging[y])
        for name, unit in (("clustered", user), ("naive", None)):
            low, high = estimator.estimate(log_ratio, loss, unit).interval()
            covered[name] += low <= new[1] <= high
    assert 0.92 <= covered["clustered"] / 400 <= 0.98
    assert covered["naive"] / 400 < 0.7


def test_units_are_groups_or_else_contexts():
    rows = {"loss": np.arange(6.0), "propensity": [0.5] * 6}
    alone = poem.BanditLog(np.eye(6), [0, 1] * 3, **rows)
    replayed = poem.BanditLog(np.eye(3), [0, 1] * 3, context=[0, 1, 2, 0, 1, 2], **rows)
    grouped = poem.BanditLog(np.eye(6), [0, 1] * 3, group=list("aabbcc"), **rows)
    assert alone.units().tolist() == list(range(6))
    assert replayed.units().tolist() == [0, 1, 2, 0, 1, 2]
    assert grouped.units().tolist() == [0, 0, 1, 1, 2, 2]
    assert poem.estimate(poem.uniform_policy(replayed), replayed).units == 3


def test_large_losses_do_not_spoil_the_standard_error():
    log_ratio, loss = np.zeros(500), np.random.default_rng(0).random(500)
    expected = loss.std(ddof=1) / np.sqrt(500)
    for shift in (0.0, 1e7, 1e9):
        assert IPS(None).estimate(log_ratio, loss + shift).stderr == pytest.approx(expected, rel=1e-5)


def test_arguments_in_the_wrong_order_or_of_a_wrong_kind_are_named(class_log):
    policy = poem.uniform_policy(class_log)
    with pytest.raises(InputError, match=r"takes \(policy, log\); found BanditLog and Policy"):
        poem.estimate(class_log, policy)
    with pytest.raises(InputError, match=r"no estimator 'best'; choose from IPS, .*DR.* or pass one such as poem.IPS"):
        poem.estimate(policy, class_log, "best")


@pytest.mark.parametrize("name", ALL)
def test_estimators_have_the_names_and_the_values_of_evaluate(class_log, name):
    policy = poem.constant_policy(class_log, class_log.labels[0]).with_floor(0.5)
    found = poem.estimate(policy, class_log, name.lower())
    line = poem.evaluate(policy, class_log, name.lower())["policy", name]
    assert (found.value, found.stderr) == pytest.approx((line.value, line.stderr), rel=1e-9)
    assert found.estimator == name


def test_a_printed_estimate_names_its_estimator_and_the_level_of_its_interval(class_log):
    policy = poem.uniform_policy(class_log)
    assert str(poem.estimate(policy, class_log)).endswith("] (SNIPS, 95% interval)")
    assert str(poem.estimate(policy, class_log, poem.IPS(clip=5.0))).endswith("] (clipped IPS, 95% interval)")


@pytest.mark.parametrize(
    ("option", "value"),
    [("log", "log.csv"), ("estimator", "ips"), ("estimator", poem.IPS), ("optimizer", "lbfgs"), ("n_jobs", "2")],
)
def test_fit_names_an_argument_of_a_wrong_kind(class_log, option, value):
    arguments = {"log": class_log, option: value}
    with pytest.raises(InputError, match=f"^{option} must be such as"):
        poem.fit(arguments.pop("log"), **arguments)


def test_a_start_with_other_labels_is_refused(class_log):
    other = poem.Policy(
        poem.MultiClass(len(class_log.labels)),
        np.zeros((class_log.n_features + 1, len(class_log.labels))),
        True,
        class_log.labels[::-1],
    )
    with pytest.raises(MismatchError, match="start does not fit the log: its labels are"):
        poem.fit(class_log, start=other)


def test_an_overflowing_fit_ends_with_finite_weights():
    rng = np.random.default_rng(0)
    log_propensity = np.where(rng.random(2000) < 0.3, -100.0, -1.1)
    log = poem.BanditLog(
        rng.normal(size=(2000, 4)), rng.choice(3, 2000), loss=rng.random(2000), log_propensity=log_propensity
    )
    for optimizer in (poem.AdaGrad(max_batches=100), poem.LBFGS(max_iterations=20)):
        found = poem.fit(log, lam=0.0, optimizer=optimizer, selection=poem.Selection(guard=False))
        assert np.isfinite(found.policy.weights).all()


def test_a_fit_says_whether_the_log_was_beaten(class_log):
    found = poem.fit(class_log, lam=0.1)
    assert found.logged.value == pytest.approx(class_log.split(0.25, np.random.default_rng([0, 0]))[1].loss.mean())
    assert "logged loss on the held-out rows" in repr(found)


def test_blas_gets_its_threads_back_after_overlapping_fits(class_log):
    import threading

    from threadpoolctl import threadpool_info

    def blas():
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    before = blas()
    fits = [threading.Thread(target=poem.fit, args=(class_log,), kwargs={"lam": 0.1}) for _ in range(3)]
    for thread in fits:
        thread.start()
    for thread in fits:
        thread.join()
    assert blas() == before


def test_settings_of_a_wrong_kind_are_named():
    with pytest.raises(InputError, match=r"batch_size must be at least 1, and a whole number; found 2\.5"):
        poem.AdaGrad(batch_size=2.5)
    with pytest.raises(InputError, match=r"clip must be above 0; found \[1\]"):
        poem.IPS(clip=[1])


def test_a_log_without_columns_needs_an_intercept(class_log):
    bare = poem.BanditLog(
        np.empty((len(class_log), 0)), class_log.y, loss=class_log.loss, log_propensity=class_log.log_propensity
    )
    with pytest.raises(InputError, match="X has no columns, and fit_intercept is False"):
        poem.fit(bare, fit_intercept=False)


def test_a_checkpoint_must_be_a_folder_and_a_damaged_candidate_is_fitted_again(class_log, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(poem.PoemError, match="is a file; a folder is needed"):
        poem.fit(class_log, lam=0.1, checkpoint=tmp_path / "file")
    first = poem.fit(class_log, lam=0.1, checkpoint=tmp_path / "folder")
    kept = next((tmp_path / "folder").glob("*.poem"))
    kept.write_bytes(kept.read_bytes()[:-10])
    again = poem.fit(class_log, lam=0.1, checkpoint=tmp_path / "folder")
    np.testing.assert_array_equal(again.policy.weights, first.policy.weights)
