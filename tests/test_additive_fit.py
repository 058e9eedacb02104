"""Fits and certificates of label sets whose losses are sums over labels."""

import json
from functools import cache

import numpy as np
import pytest
from easy_logs import SHORT, a_policy, bits_of, easy_log, logged_by, noise_log

import poem
from poem.cli import main
from poem.errors import CheckpointError, InputError
from poem.learning import portfolio

LABELS = poem.MultiLabel(6)
FEW = (
    "direct",
    poem.Learner(
        "additive", poem.DirectMethod(), "direct", multipliers=(0.0,), pull=(6e-4,), optimizer=SHORT, additive=True
    ),
)
SUMS = poem.Selection(additive=True)
FAST = {"learners": FEW, "loss_bounds": (0, 1), "n_jobs": 1}


def wrong(x, y, rng):
    """The share of wrong labels; half of them follow the first feature, and half the second."""
    return (y != np.repeat(x > 0.0, 3, axis=1)).mean(axis=1)


def wrong_together(x, y, rng):
    """Half of the loss says whether the first and the fourth label differ: no single label says that."""
    return 0.5 * wrong(x, y, rng) + 0.5 * (y[:, 0] != y[:, 3])


def sums_log(loss=wrong, seed=0, contexts=150, **more):
    return logged_by(a_policy(LABELS), loss, seed, contexts, **more)


@cache
def found():
    return poem.fit(sums_log(), logging_policy=a_policy(LABELS), selection=SUMS, **FAST)


def test_sums_are_certified_where_products_are_not():
    log, logger = sums_log(), a_policy(LABELS)
    plain = poem.fit(log, logging_policy=logger, **{**FAST, "learners": "direct"})
    assert found().certified
    assert found().certificate.gain_at_least > max(0.0, plain.certificate.gain_at_least)
    x = np.random.default_rng(3).normal(size=(2000, 2))
    y = np.repeat(x > 0.0, 3, axis=1)
    gain = (logger.expected_loss(x, y) - found().policy.expected_loss(x, y)) / 6.0
    assert gain > found().certificate.gain_at_least
    assert found().certificate.interval[0] < gain < found().certificate.interval[1]


def test_the_result_says_what_was_taken_for_granted():
    conditions = found().certificate.conditions
    assert "losses are sums over labels, as you said" in conditions
    assert "losses are sums over labels, as you said" in found().explain()
    assert found().policy.record.settings["additive"] is True


def test_what_is_certified_is_what_is_returned():
    assert found().certificate.policy.weights.tobytes() == found().policy.weights.tobytes()


def test_the_number_of_jobs_changes_nothing():
    two = poem.fit(sums_log(), logging_policy=a_policy(LABELS), selection=SUMS, **{**FAST, "n_jobs": 2})
    assert bits_of(found()) == bits_of(two)
    assert found().certificate.gain_at_least == two.certificate.gain_at_least


def test_a_fit_resumes(tmp_path):
    options = {"logging_policy": a_policy(LABELS), "selection": SUMS, "checkpoint": tmp_path, **FAST}
    assert bits_of(poem.fit(sums_log(), **options)) == bits_of(found())
    assert bits_of(poem.fit(sums_log(), **options)) == bits_of(found())
    with pytest.raises(CheckpointError, match="other settings"):
        poem.fit(sums_log(), **{**options, "selection": None, "learners": "direct"})


def test_the_portfolio_has_a_learner_for_sums():
    log = sums_log(contexts=60)
    options = {"logging_policy": a_policy(LABELS), "loss_bounds": (0, 1), "n_jobs": 1}
    names = {candidate.learner for candidate in poem.fit(log, selection=SUMS, **options).table}
    assert any(name.startswith(portfolio.ADDITIVE.name) for name in names)


@pytest.mark.parametrize("seed", range(4))
def test_on_noise_nothing_is_certified(seed):
    log = noise_log(seed, LABELS)
    assert not poem.fit(log, logging_policy=a_policy(LABELS, seed), selection=SUMS, **FAST).certified


def test_losses_that_are_no_sums_are_refused():
    log = sums_log(wrong_together, contexts=400)
    result = poem.fit(log, logging_policy=a_policy(LABELS), selection=SUMS, **FAST)
    assert not result.certified
    assert "losses are not sums over labels" in result.explain()
    assert "Leave additive= out" in result.explain()


def test_a_single_label_is_a_sum():
    one = poem.MultiLabel(1)
    log = logged_by(a_policy(one), lambda x, y, rng: (y[:, 0] != (x[:, 0] > 0.0)).astype(float), contexts=300)
    options = {"logging_policy": a_policy(one), "additive": True, "loss_bounds": (0, 1), "n_jobs": 1}
    assert poem.certify(poem.Policy(one, [[2.0], [0.0], [0.0]], True, (0,)), log, **options).certified


def test_a_policy_of_ones_own_is_certified_label_by_label():
    good = poem.supervised(
        x := np.random.default_rng(5).normal(size=(300, 2)), np.repeat(x > 0.0, 3, axis=1).astype(int)
    )
    options = {"loss_bounds": (0, 1), "n_jobs": 1, "logging_policy": a_policy(LABELS)}
    by_label, by_set = (poem.certify(good, sums_log(), additive=additive, **options) for additive in (True, False))
    assert by_label.certified
    assert by_label.gain_at_least > by_set.gain_at_least
    assert "losses are sums over labels, as you said" in by_label.conditions
    assert "losses are sums over labels, as you said" not in by_set.conditions


def test_a_packed_log_is_certified_label_by_label(tmp_path):
    poem.write_log(sums_log(), tmp_path / "log.parquet")
    poem.pack_log(tmp_path / "log.parquet", tmp_path / "packed")
    log = poem.open_log(tmp_path / "packed")
    assert poem.fit(log, logging_policy=a_policy(LABELS), selection=SUMS, **FAST).certified


@pytest.mark.parametrize(
    ("log", "options", "message"),
    [
        (sums_log(), {}, "none was passed"),
        (sums_log(), {"logging_policy": a_policy(LABELS).with_floor(0.01)}, "has a floor, which ties labels together"),
        (sums_log(), {"logging_policy": a_policy(LABELS, 1)}, "are not that policy's"),
        (
            sums_log(),
            {"logging_policy": a_policy(LABELS), "selection": poem.Selection(additive=1)},
            "additive must be True or False",
        ),
        (sums_log(), {"logging_policy": a_policy(LABELS).weights}, "found ndarray"),
        (easy_log(), {"logging_policy": a_policy(poem.MultiClass(3))}, "is for label sets"),
        (
            sums_log(),
            {"logging_policy": a_policy(LABELS), "lam": 0},
            "Leave out either it or what asks for another",
        ),
        (sums_log(), {"learners": FEW, "selection": None}, "say so by additive=True"),
    ],
)
def test_what_additive_does_not_go_with_is_refused(log, options, message):
    with pytest.raises(InputError, match=message):
        poem.fit(log, **{"selection": SUMS, **options})


def test_trees_cannot_be_corrected_label_by_label():
    with pytest.raises(InputError, match="must begin elsewhere than at 'trees'"):
        poem.Learner("mine", poem.DirectMethod(), "trees", additive=True)


def test_the_command_takes_the_promise_and_the_policy_that_made_the_log(tmp_path, capsys):
    poem.write_log(sums_log(seed=1, contexts=300), tmp_path / "log.parquet")
    a_policy(LABELS).save(tmp_path / "running.poem")
    common = ["train", str(tmp_path / "log.parquet"), "-o", str(tmp_path / "new.poem"), "--loss-bounds", "0,1"]
    assert main([*common, "--additive"]) == 2
    assert "Pass the policy that made the log, without a floor, as --start." in capsys.readouterr().err
    assert main([*common, "--additive", "--start", str(tmp_path / "running.poem"), "--json", "--quiet"]) == 0
    assert (
        "losses are sums over labels, as you said" in json.loads(capsys.readouterr().out)["certificate"]["conditions"]
    )


def test_the_command_says_what_is_wrong_with_the_policy(tmp_path, capsys):
    poem.write_log(sums_log(contexts=60), tmp_path / "log.parquet")
    a_policy(LABELS, 1).save(tmp_path / "other.poem")
    a_policy(LABELS).with_floor(0.01).save(tmp_path / "floored.poem")
    common = ["train", str(tmp_path / "log.parquet"), "-o", str(tmp_path / "new.poem"), "--additive", "--quiet"]
    for more, message in (
        (["other.poem"], "from --start, but the propensities of this log are not that policy's."),
        (["floored.poem"], "as --start; this one has a floor"),
        (["other.poem", "--propensity", "estimate"], "Leave one of --additive and --propensity estimate out."),
    ):
        assert main([*common, "--start", str(tmp_path / more[0]), *more[1:]]) == 2
        assert message in capsys.readouterr().err
    assert not (tmp_path / "new.poem").exists()


def test_commands_that_judge_say_that_they_do_not_use_the_promise(tmp_path, capsys):
    poem.write_log(sums_log(seed=2), tmp_path / "later.parquet")
    found().policy.save(tmp_path / "new.poem")
    main(["evaluate", str(tmp_path / "new.poem"), str(tmp_path / "later.parquet"), "--loss-bounds", "0,1"])
    assert "new.poem was learnt by the promise that losses are sums over labels" in capsys.readouterr().err


def test_rewards_are_called_rewards():
    log = sums_log()
    rewards = poem.BanditLog(log.X, log.y, reward=-log.loss, log_propensity=log.log_propensity, context=log.context)
    options = {"loss_bounds": (-1, 0), "logging_policy": a_policy(LABELS), "additive": True, "n_jobs": 1}
    conditions = poem.certify(found().policy, rewards, **{**options, "earlier": None}).conditions
    assert any("rewards are sums over labels" in each for each in conditions)


def test_uncertified_results_name_the_promise():
    result = poem.fit(sums_log(), logging_policy=a_policy(LABELS), selection=SUMS, certify=False, **FAST)
    assert "losses are taken to be sums over labels, as you said" in result.explain()


def test_a_learner_that_logged_losses_play_no_part_in_does_not_avoid_the_log():
    plain = poem.Learner("model only", poem.DirectMethod(), "direct", multipliers=(0.0,), optimizer=SHORT)
    for learners, options in (((plain,), {}), (FEW[1:], {"selection": SUMS, "logging_policy": a_policy(LABELS)})):
        table = poem.fit(sums_log(), **{**FAST, **options, "learners": learners}).table
        assert all("avoids the log" not in candidate.problems for candidate in table)
        assert table.to_dicts()[0]["mean_weight"] is None
        assert "0.000" not in str(table.grid().rows[0][5])


def test_what_is_not_certified_says_that_sums_take_fewer_rows():
    options = {**FAST, "learners": "direct", "logging_policy": a_policy(LABELS)}
    hint = "If losses are sums over labels, say so by additive=True: it takes far fewer rows."
    told = {
        additive: poem.fit(sums_log(contexts=60), selection=poem.Selection(additive=additive), **options)
        for additive in (False, True)
    }
    assert not told[False].certified
    assert hint in told[False].explain()
    assert hint not in told[True].explain()
    assert hint not in poem.fit(noise_log(), loss_bounds=(0, 1), n_jobs=1, learners="direct").explain()
