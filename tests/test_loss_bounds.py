"""Bounds are in the units of the log: rewards, and the same rows as losses, have the same answers."""

import json

import numpy as np
import pandas as pd
import pytest
from easy_logs import FEW, a_policy, best_of, logged_by
from refusals import refuses
from shop_logs import call, refused

import poem
from poem.errors import InputError

BOUNDS = {"reward": (-0.5, 2.0), "loss": (-2.0, 0.5)}  # no mirror images of themselves, and no row attains them
WRONG = {"reward": (-2.0, 0.5), "loss": (-0.5, 2.0)}
KINDS = ("reward", "loss")
POLICY = a_policy(poem.MultiClass(3), seed=5)
every_kind = pytest.mark.parametrize("kind", KINDS)


def costs(x, y, rng):
    return -0.9 * (best_of(x) == y) - 0.1 * rng.random(len(y))


@pytest.fixture(scope="module")
def logs():
    """The same rows twice: as rewards from 0 to 1, and as losses from −1 to 0."""
    log = logged_by(a_policy(poem.MultiClass(3)), costs, contexts=190)
    known = {"log_propensity": log.log_propensity, "labels": log.labels}
    y = np.asarray(log.labels)[log.y]
    signs = {"reward": -1, "loss": 1}
    return {kind: poem.BanditLog(log.X, y, **{kind: sign * log.loss}, **known) for kind, sign in signs.items()}


def of_both(logs, made):
    return [made(logs[kind], BOUNDS[kind]) for kind in KINDS]


# ---- the same answers -------------------------------------------------------------------------------


def figures(certificate):
    return certificate.gain_at_least, certificate.gain, certificate.interval, certificate.units_needed


def test_certificates_agree(logs):
    one, two = of_both(logs, lambda log, bounds: poem.certify(POLICY, log, loss_bounds=bounds))
    assert figures(one) == figures(two)
    assert "rewards lie in [-0.5, 2], as you said" in one.conditions
    assert "losses lie in [-2, 0.5], as you said" in two.conditions


def test_wider_bounds_certify_less(logs):
    """The bounds are used, and each end where it belongs."""
    near, low, high = (
        poem.certify(POLICY, logs["reward"], loss_bounds=bounds).gain_at_least
        for bounds in ((0.0, 1.0), (-2.0, 1.0), (0.0, 3.0))
    )
    assert max(low, high) < near
    assert low != high


def test_fits_agree(logs):
    one, two = of_both(logs, lambda log, bounds: poem.fit(log, learners=FEW, loss_bounds=bounds))
    assert figures(one.certificate) == figures(two.certificate)
    assert (one.calibration.loss_low, one.calibration.loss_high) == (-2.0, 0.5)
    assert (one.calibration.bounds, two.calibration.bounds) == (BOUNDS["reward"], BOUNDS["loss"])
    np.testing.assert_array_equal(one.policy.weights, two.policy.weights)


@pytest.mark.parametrize("interval", ["t", "bernstein", "truncated", "ls", "betting"])
def test_intervals_agree(logs, interval):
    one, two = of_both(logs, lambda log, bounds: poem.evaluate(POLICY, log, interval=interval, loss_bounds=bounds))
    for line, other in zip(one.lines, two.lines, strict=True):
        assert str(line) == str(other.as_outcome("reward"))
    assert any(np.isfinite(line.low) for line in one.lines)


def test_gates_and_watches_agree(logs):
    def looks(log, bounds):
        gate = poem.Gate(POLICY, loss_bounds=bounds)
        gate.update(log)
        return gate.look(), poem.watch(POLICY, log, loss_bounds=bounds).looks

    (one, ones), (two, twos) = of_both(logs, looks)
    assert ones[-1] == one
    for look, other in zip((one, *ones), (two, *twos), strict=True):
        assert (look.rows, look.answer) == (other.rows, other.answer)
        assert (look.gain, look.lower, look.upper) == pytest.approx((other.gain, other.lower, other.upper), abs=1e-12)


# ---- bounds of the other kind -----------------------------------------------------------------------


@every_kind
@pytest.mark.parametrize(
    "use",
    [
        lambda log, bounds: poem.fit(log, loss_bounds=bounds),
        lambda log, bounds: poem.fit(log, lam=0.0, loss_bounds=bounds),
        lambda log, bounds: poem.certify(POLICY, log, loss_bounds=bounds),
        lambda log, bounds: poem.evaluate(POLICY, log, loss_bounds=bounds),
        lambda log, bounds: poem.Gate(POLICY, loss_bounds=bounds).update(log),
        lambda log, bounds: poem.watch(POLICY, log, loss_bounds=bounds),
    ],
    ids=["fit", "POEM", "certify", "evaluate", "Gate", "watch"],
)
def test_bounds_of_the_other_kind_are_refused(logs, kind, use):
    with refuses(InputError, "every possible " + kind):
        use(logs[kind], WRONG[kind])


# ---- commands ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def files(logs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bounds")
    for kind, log in logs.items():
        table = pd.DataFrame(log.X[log.context], columns=["x1", "x2"])
        outcome = -log.loss if kind == "reward" else log.loss
        table = table.assign(output=np.asarray(log.labels)[log.y], propensity=np.exp(log.log_propensity))
        table.assign(**{kind: outcome}).to_csv(folder / f"{kind}.csv", index=False)
    poem.Policy(POLICY.structure, POLICY.weights, True, POLICY.labels, ("x1", "x2")).save(folder / "policy.poem")
    return folder


def command_lines(files, kind, bounds, out):
    log, asked = files / f"{kind}.csv", (f"--loss-bounds={bounds[0]},{bounds[1]}", "--quiet")
    return {
        "train": ("train", log, "-o", out, "--learner", "direct", *asked),
        "evaluate": ("evaluate", files / "policy.poem", log, "--interval", "betting", *asked),
        "watch": ("watch", log, "--policy", files / "policy.poem", *asked),
    }


def answer(line, capsys):
    status = call(*line, "--json")
    return status, json.loads(capsys.readouterr().out)


def test_commands_agree(files, tmp_path, capsys):
    lines = [command_lines(files, kind, BOUNDS[kind], tmp_path / f"{kind}.poem") for kind in KINDS]
    (trained, one), (also_trained, two) = (answer(each["train"], capsys) for each in lines)
    assert trained == also_trained == 0
    for name in ("gain_at_least", "gain", "interval", "units_needed"):
        assert one["certificate"][name] == pytest.approx(two["certificate"][name], abs=1e-9)
    (judged, one), (also_judged, two) = (answer(each["evaluate"], capsys) for each in lines)
    assert judged == also_judged == 1
    ips, other = (next(line for line in each["lines"] if line["estimator"] == "IPS") for each in (one, two))
    assert (ips["low"], ips["high"]) == pytest.approx((-other["high"], -other["low"]), abs=1e-9)
    (watched, one), (also_watched, two) = (answer(each["watch"], capsys) for each in lines)
    assert watched == also_watched == 1
    assert one["answer"] == two["answer"]
    assert (one["lower"], one["upper"]) == pytest.approx((two["lower"], two["upper"]), abs=1e-9)


@every_kind
@pytest.mark.parametrize("name", ["train", "evaluate", "watch"])
def test_commands_refuse_bounds_of_the_other_kind(files, tmp_path, capsys, kind, name):
    line = command_lines(files, kind, WRONG[kind], tmp_path / "new.poem")[name]
    assert "every possible " + kind in refused(capsys, *line)
    assert not (tmp_path / "new.poem").exists()


@pytest.mark.parametrize("command", ["train", "evaluate", "watch"])
def test_help_says_that_bounds_are_those_of_rewards_in_a_log_of_rewards(capsys, command):
    assert call(command, "--help") == 0
    assert "lowest and highest possible loss, or reward in a log of rewards" in " ".join(
        capsys.readouterr().out.split()
    )
