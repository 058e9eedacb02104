"""What in a log contradicts the conditions of a certificate is found, and right logs are left alone."""

import numpy as np
import pytest

import poem
from benchmarks.worlds import WORLDS
from poem.certificates import Adaptation, doubts
from poem.learning.reserve import Reserve

LOGS = 12


def drawn(seed, n=600, users=None, group=False, factor=1.0, **more):
    """A uniform log of three classes; decisions are kept for users, if there are any."""
    rng = np.random.default_rng([seed, 5])
    user = np.arange(n) if users is None else rng.integers(users, size=n)
    X, y = rng.normal(size=(n, 3))[user], rng.integers(3, size=n)[user]
    p = np.where((y == 2) & (X[:, 0] > 0.0), 1.0 / (3.0 * factor), 1.0 / 3.0)
    given = {"loss": rng.random(n), "propensity": p, "labels": range(3)} | more
    return poem.BanditLog(X, y, group=user if group else None, **given)


def found_in(make, in_order=True):
    return [doubts(make(seed), in_order) for seed in range(LOGS)]


def as_exported(name, n, seed, step):
    """A log of a world without its times, in the order of time or newest first."""
    world = WORLDS[name]
    log = world.sample(n, world.rng(n, seed)).log
    return with_own_contexts(log, np.arange(n)[::step])


def with_own_contexts(log, rows):
    """Some rows of a log, as if they came from a table: without times, and none shares its context."""
    given = {"loss": log.loss[rows], "log_propensity": log.log_propensity[rows], "labels": log.labels}
    return poem.BanditLog(log.X[log.context[rows]], log.y[rows], **given)


@pytest.mark.parametrize(
    "name", ["null-uniform", "null-softmax", "null-greedy", "rule", "linear-costs", "lopsided", "thompson", "ucb-null"]
)
def test_right_logs_are_hardly_ever_doubted(name):
    assert sum(map(bool, found_in(lambda seed: as_exported(name, 500, seed, 1)))) <= 2


@pytest.mark.parametrize("users", [60, 200])
def test_decisions_that_were_kept_are_noticed_unless_groups_say_so(users):
    for (text,) in found_in(lambda seed: drawn(seed, users=users)):
        assert text.startswith("decisions come back: ")
        assert "pass it as group=" in text
    assert not any(found_in(lambda seed: drawn(seed, users=users, group=True)))


def test_decisions_that_were_kept_are_noticed_in_contexts_that_differ():
    def kept(seed, group=False):
        rng = np.random.default_rng([seed, 6])
        user = np.repeat(np.arange(80), rng.integers(2, 12, 80))
        n = len(user)
        y, who = rng.integers(3, size=80)[user], {"group": user} if group else {}
        return poem.BanditLog(rng.normal(size=(n, 3)), y, loss=rng.random(n), propensity=np.full(n, 1.0 / 3.0), **who)

    for (text,) in found_in(kept):
        assert "rows have the output of the row before" in text
        assert "pass it as group=" in text
    assert sum(map(bool, found_in(lambda seed: kept(seed, group=True)))) <= 1


def test_decisions_that_are_drawn_anew_in_few_contexts_are_no_reason_to_doubt():
    def few(seed):
        rng = np.random.default_rng(seed)
        y = rng.choice(3, 500, p=(chance := np.array([0.6, 0.3, 0.1])))
        return poem.BanditLog(rng.integers(4, size=(500, 1)) * 1.0, y, loss=rng.random(500), propensity=chance[y])

    assert sum(map(bool, found_in(few))) <= 1
    by_output = found_in(lambda seed: with_own_contexts(few(seed), np.argsort(few(seed).y, kind="stable")))
    assert sum(map(bool, by_output)) <= 1


def test_copies_are_noticed():
    for seed in range(LOGS):
        log = drawn(seed, 300)
        twice = log.take(np.repeat(np.arange(300), 2))
        assert doubts(twice, True) == ()  # copies of numbered contexts are one unit
        rows = np.repeat(np.arange(300), 2)
        assert "drop these" in doubts(with_own_contexts(log, rows), True)[0]


def test_label_sets_that_come_back_are_noticed():
    rng = np.random.default_rng(0)
    user = rng.integers(50, size=400)
    y = rng.integers(2, size=(50, 4))[user]
    log = poem.BanditLog(rng.normal(size=(50, 2))[user], y, loss=rng.random(400), propensity=np.full(400, 1.0 / 16.0))
    (text,) = doubts(log, True)
    assert "400" not in text
    assert text.startswith("decisions come back")


@pytest.mark.parametrize(("factor", "least"), [(2.0, LOGS), (1.5, 0.5 * LOGS)])
def test_propensities_that_are_too_small_in_a_part_of_the_contexts_are_noticed(factor, least):
    found = [text for texts in found_in(lambda seed: drawn(seed, factor=factor)) for text in texts]
    assert len(found) >= least
    assert all(
        text.startswith("the propensities cannot be right: 1/p, summed over the rows with output 2") for text in found
    )
    assert sum("where feature 0 is high" in text for text in found) >= 0.8 * len(found)


def test_a_log_of_a_logger_that_learns_is_doubted_if_it_is_newest_first():
    turned = found_in(lambda seed: as_exported("thompson", 500, seed, -1))
    assert sum(bool(texts) for texts in turned) >= 0.5 * LOGS
    assert all("newest first" in text for texts in turned for text in texts)
    assert not any(found_in(lambda seed: as_exported("thompson", 500, seed, -1), in_order=False))


def test_tiny_logs_and_logs_without_features_are_left_alone():
    assert doubts(drawn(0, 3), True) == ()
    rng = np.random.default_rng(0)
    y, loss = rng.integers(2, size=200), rng.random(200)
    assert doubts(poem.BanditLog(np.empty((200, 0)), y, loss=loss, propensity=np.full(200, 0.5)), True) == ()


@pytest.mark.parametrize("log_p", [-300.0, -700.0, -1e-300])
def test_tiny_and_certain_propensities_do_not_overflow(log_p):
    log = drawn(0, 200)
    doubts(log.replaced(log_propensity=np.full(200, log_p)), True)  # warnings are errors
    Reserve.of(log.replaced(log_propensity=np.full(200, log_p)), 0)


def test_a_fit_certifies_nothing_that_is_doubted_and_says_why():
    rng = np.random.default_rng(0)
    user = rng.integers(100, size=600)
    X, y, gain = rng.normal(size=(100, 3))[user], rng.integers(3, size=100)[user], rng.random((100, 3))
    loss = gain[user, y] * 0.5 + 0.5 * rng.random(600)
    asked = {"learners": "direct", "loss_bounds": (0, 1)}
    found = poem.fit(poem.BanditLog(X, y, loss=loss, propensity=np.full(600, 1.0 / 3.0)), **asked)
    assert not found.certified
    assert "decisions come back" in found.explain()


def test_inspect_says_that_nothing_would_be_certified():
    finding = poem.inspect(drawn(0, users=100)).of("certificates")
    assert finding.verdict == "with care"
    assert finding.text.startswith("nothing would be certified: decisions come back")
    assert finding.advice.startswith("If they were kept for a user or session, pass it as group=")
    assert all(one.name != "certificates" for one in poem.inspect(drawn(0)).findings)


# ---- the order of rows ----------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["output", "loss"])
@pytest.mark.parametrize("turn", [1, -1])
def test_rows_that_are_sorted_by_outputs_or_losses_are_drawn_at_random(by, turn):
    log = drawn(0, 400)
    order = np.argsort(log.y if by == "output" else log.loss, kind="stable")[::turn]
    assert Reserve.of(log, 0).order == "rows"
    assert Reserve.of(with_own_contexts(log, order), 0).order == "random"


def exported(order, **more):
    """Rows in another order than they were drawn in, each with a context of its own."""
    log = drawn(0, 400)
    at = log.context[order]
    given = {"loss": log.loss[order], "propensity": np.exp(log.log_propensity[order])}
    return poem.BanditLog(log.X[at], log.y[order], **given, **more)


def test_inspect_says_which_rows_certify_where_their_order_does_not_help():
    by_output, rows = np.argsort(drawn(0, 400).y, kind="stable"), np.arange(400)
    finding = poem.inspect(exported(by_output)).of("order of rows")
    assert finding.text.startswith("rows are sorted by contexts, outputs or outcomes")
    assert "drawn at random" in finding.text
    assert "--time" in finding.advice
    alternating = poem.inspect(exported(rows, group=rows % 100)).of("order of rows")
    assert alternating.text.startswith("rows of different groups alternate")
    for log in (exported(rows), exported(by_output, time=rows), exported(rows, group=rows // 4)):
        assert poem.inspect(log).of("order of rows") is None


def test_inspect_says_that_nothing_is_certified_of_sorted_rows_whose_propensities_change(monkeypatch):
    by_output = exported(np.argsort(drawn(0, 400).y, kind="stable"))
    monkeypatch.setattr("poem.health.conditions.adapts", lambda log: Adaptation(True, False, 0.5, False))
    health = poem.inspect(by_output)
    assert health.of("order of rows") is None
    assert health.of("certificates").text.startswith("nothing would be certified: rows are sorted by")
    assert health.of("certificates").advice.startswith("Pass time=, or shuffle")


def test_outputs_that_change_with_their_propensities_are_not_sorted():
    orders = [Reserve.of(as_exported("thompson", 1000, seed, 1), 0).order for seed in range(LOGS)]
    assert orders.count("rows") >= LOGS - 1
