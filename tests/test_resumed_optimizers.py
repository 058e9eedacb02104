"""A minimisation that is interrupted and resumed ends as if nothing had happened, to the bit."""

import time
from dataclasses import replace

import numpy as np
import pytest
from test_laws_risk import make_log, make_risk
from test_lbfgs import Rosenbrock

from poem.errors import CheckpointError, InputError
from poem.estimators import IPS, DoublyRobust
from poem.optimizers import LBFGS, AdaGrad, FileKeeper


class Interrupted(Exception):  # noqa: N818
    pass


class Counted:
    """A problem that counts its evaluations, and ends the run at one of them as a killed driver does."""

    def __init__(self, problem, most=10**9):
        self.problem, self.calls, self.most = problem, 0, most

    def __getattr__(self, name):
        return getattr(self.problem, name)

    def _count(self):
        if self.calls == self.most:
            raise Interrupted
        self.calls += 1

    def __call__(self, w):
        self._count()
        return self.problem(w)

    def frozen_point(self, wide):
        self._count()
        return self.problem.frozen_point(wide)


class InMemory:
    """Keeps copies, and counts them."""

    def __init__(self, kept=None):
        self.kept, self.saved = kept, 0

    def load(self):
        return self.kept

    def save(self, arrays):
        self.kept, self.saved = {name: np.array(array) for name, array in arrays.items()}, self.saved + 1


def assert_same(found, expected):
    np.testing.assert_array_equal(found.weights, expected.weights)
    assert (found.value, found.steps, found.reason) == (expected.value, expected.steps, expected.reason)
    assert found.converged == expected.converged
    assert [value for _, value in found.curve] == [value for _, value in expected.curve]
    seconds = [passed for passed, _ in found.curve]
    assert seconds == sorted(seconds)


def risk(kind="classes", estimator=None, **options):
    return make_risk(make_log(kind, "csr-replayed"), estimator or IPS(3.0), **options)


CASES = {
    "l-bfgs": (LBFGS(), risk),
    "l-bfgs, many steps": (LBFGS(ftol=0.0, gtol=0.0, max_iterations=40, corrections=4), risk),
    "l-bfgs, labels": (LBFGS(ftol=1e-9), lambda: risk("labels", DoublyRobust(3.0), l2=0.01)),
    "l-bfgs, a curved valley": (LBFGS(ftol=0.0, corrections=3), Rosenbrock),
    "adagrad": (AdaGrad(batch_size=20, max_batches=150), risk),
    "adagrad, no l2": (AdaGrad(batch_size=20, max_batches=150), lambda: risk(l2=0.0)),
    "adagrad, patience": (AdaGrad(batch_size=10, max_batches=2000, check_every=5, patience=8), risk),
}


def run_with_interruptions(rules, problem, path, most, seed=3):
    """Begin again after some evaluations, more each time, with a generator in its first state."""
    for number in range(500):
        counted, rng = Counted(problem, most + number // 3), np.random.default_rng(seed)
        try:
            return rules.minimize(counted, rng=rng, keeper=FileKeeper(path, "one run")), counted, rng, number
        except Interrupted:
            pass
    raise AssertionError("it never ends")


@pytest.mark.parametrize("most", [2, 3])
@pytest.mark.parametrize("case", CASES)
def test_interruptions_change_nothing(case, most, tmp_path):
    rules, make = CASES[case]
    problem, rng = make(), np.random.default_rng(3)
    expected = rules.minimize(problem, rng=rng)
    found, last, same_rng, interruptions = run_with_interruptions(rules, problem, tmp_path / "state", most)
    assert interruptions
    assert_same(found, expected)
    assert same_rng.bit_generator.state == rng.bit_generator.state
    # A run that has ended is not run again.
    calls, again = last.calls, rules.minimize(last, keeper=FileKeeper(tmp_path / "state", "one run"))
    assert last.calls == calls
    assert_same(again, expected)


@pytest.mark.parametrize("case", CASES)
def test_a_run_that_is_kept_is_the_run_itself(case):
    rules, make = CASES[case]
    keeper = InMemory()
    expected = rules.minimize(make(), rng=np.random.default_rng(3))
    assert_same(rules.minimize(make(), rng=np.random.default_rng(3), keeper=keeper), expected)
    assert keeper.saved >= len(expected.curve) - 2


@pytest.mark.parametrize("stopped_at", [1, 2, 9])
def test_a_step_that_was_told_is_kept(stopped_at, tmp_path):
    problem, keeper = Rosenbrock(), FileKeeper(tmp_path / "state", "one run")
    expected = LBFGS().minimize(problem)

    def stop(step, value):
        if step == stopped_at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        LBFGS().minimize(problem, on_step=stop, keeper=keeper)
    steps = []
    assert_same(LBFGS().minimize(problem, on_step=lambda step, value: steps.append(step), keeper=keeper), expected)
    assert steps[0] == stopped_at + 1
    keeper.remove()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64])
def test_any_random_generator_goes_on(kind, tmp_path):
    rules, problem = CASES["adagrad"][0], risk()
    expected = rules.minimize(problem, rng=np.random.Generator(kind(3)))
    with pytest.raises(Interrupted):
        rules.minimize(Counted(problem, 3), rng=np.random.Generator(kind(3)), keeper=FileKeeper(tmp_path / "s", "1"))
    again = np.random.Generator(kind(99))
    assert_same(rules.minimize(problem, rng=again, keeper=FileKeeper(tmp_path / "s", "1")), expected)


# ---- files that are not what they should be -------------------------------------------------------


@pytest.fixture
def state(tmp_path):
    """The file of a run that was interrupted."""
    path = tmp_path / "state"
    with pytest.raises(Interrupted):
        LBFGS().minimize(Counted(Rosenbrock(), 20), keeper=FileKeeper(path, "one run"))
    return path


def test_the_state_of_another_run_is_refused(state):
    before = state.read_bytes()
    with pytest.raises(CheckpointError, match=r"'.*state' is the state of a run on another log .*delete the file"):
        LBFGS().minimize(Rosenbrock(), keeper=FileKeeper(state, "another run"))
    assert state.read_bytes() == before


@pytest.mark.parametrize("kept", [0, 5, 8, 200, 0.5, 0.999])
def test_a_file_that_is_cut_off_is_refused(state, kept):
    content = state.read_bytes()
    state.write_bytes(content[: kept if isinstance(kept, int) else int(kept * len(content))])
    with pytest.raises(CheckpointError, match=r"'.*state' is cut off, damaged .* Delete it to start anew"):
        LBFGS().minimize(Rosenbrock(), keeper=FileKeeper(state, "one run"))


def test_a_file_with_a_wrong_bit_is_refused(state):
    content = state.read_bytes()
    rng = np.random.default_rng(0)
    for position in rng.integers(8, len(content), 60).tolist():
        wrong = bytearray(content)
        wrong[position] ^= 1 << int(rng.integers(8))
        state.write_bytes(bytes(wrong))
        try:
            found = FileKeeper(state, "one run").load()
        except CheckpointError:
            continue
        state.write_bytes(content)  # a blank of the header: nothing that counts
        expected = FileKeeper(state, "one run").load()
        assert {name: array.tobytes() for name, array in found.items()} == {
            name: array.tobytes() for name, array in expected.items()
        }


def test_the_state_of_another_optimizer_or_shape_is_refused(state):
    keeper = FileKeeper(state, "one run")
    with pytest.raises(CheckpointError, match="not one of this problem and optimizer: 'accumulator' differs"):
        AdaGrad().minimize(risk(), keeper=keeper)
    with pytest.raises(CheckpointError, match=r"not one of this problem and optimizer: '[xg]"):
        LBFGS().minimize(risk(), keeper=keeper)
    with pytest.raises(CheckpointError, match="corrections instead of 2"):
        LBFGS(corrections=2).minimize(Rosenbrock(), keeper=keeper)
    kept = InMemory(None)
    rules = replace(CASES["adagrad"][0], max_batches=50)
    with pytest.raises(Interrupted):
        rules.minimize(Counted(risk(), 2), rng=np.random.default_rng(0), keeper=kept)
    with pytest.raises(CheckpointError, match="another kind of random generator"):
        rules.minimize(risk(), rng=np.random.Generator(np.random.MT19937(0)), keeper=kept)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="there is no folder"):
        LBFGS().minimize(Rosenbrock(), keeper=FileKeeper(tmp_path / "none" / "state", "one run"))


def test_keeping_costs_little(tmp_path):
    """State of 200,000 weights is written in far less time than a pass over a log that needs it."""
    keeper, rng = FileKeeper(tmp_path / "state", "one run"), np.random.default_rng(0)
    arrays = {"x": rng.normal(size=(10_000, 20)), "steps": rng.normal(size=(20, 200_000)).astype(np.float32)}
    begin = time.perf_counter()
    keeper.save(arrays)
    assert time.perf_counter() - begin < 5.0
    assert all(np.array_equal(array, arrays[name]) for name, array in keeper.load().items())
