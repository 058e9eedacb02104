"""A later log is packed as a policy reads logs: with its columns, features and outputs."""

import contextlib
import io
import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from offered_logs import offered_rows, write_lines

import poem
from poem.cli import main
from poem.errors import InputError, MismatchError, ReadError
from poem.packed import pack_log
from poem.policies import policy_for, was_trained_on, with_packed


def write_rows(path, cities, outputs, seed=0, n=400, first="age,city", scale=1.0):
    """A CSV log of clicks; the order of its columns may differ."""
    rng = np.random.default_rng(seed)
    age, city, item = rng.normal(40, 10 * scale, n), rng.choice(cities, n), rng.choice(outputs, n)
    click = (rng.random(n) < np.where(item == outputs[0], 0.8, 0.2)).astype(int)
    columns = {"age": [f"{one:.3f}" for one in age], "city": city, "item": item, "click": click}
    columns["p"] = np.full(n, 1 / len(outputs))
    names = [*first.split(","), "item", "click", "p"]
    rows = zip(*(columns[name] for name in names), strict=True)
    path.write_text(",".join(names) + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    return path


COLUMNS = poem.Columns(output="item", reward="click", propensity="p")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("packed policies")
    write_rows(folder / "log.csv", ["Oslo", "Rome", "Lima"], ["a", "b", "c"])
    write_rows(folder / "later.csv", ["Oslo", "Rome"], ["a", "b"], seed=1, first="city,age", scale=3.0)
    return folder


def run(*words, cwd, status=0):
    """Run a command in a folder; return what it printed."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(cwd), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        found = main([str(word) for word in words])
    assert found == status, err.getvalue() + out.getvalue()
    return SimpleNamespace(stdout=out.getvalue(), stderr=err.getvalue())


@pytest.fixture(scope="module")
def trained(folder):
    """The folder with a policy that was trained on a packed log."""
    named = ("--output", "item", "--reward", "click", "--propensity", "p")
    run("pack", "log.csv", "-o", "packed", "--scale", *named, cwd=folder)
    run("train", "packed", "-o", "policy.poem", "--no-certificate", "--learner", "direct", "--quiet", cwd=folder)
    return folder


@pytest.fixture(scope="module")
def policy(trained):
    return poem.load_policy(trained / "policy.poem")


def some_policy(log):
    """A policy with the features and columns of a packed log."""
    weights = np.random.default_rng(0).normal(size=(log.n_features + 1, log.structure.n_scores))
    return with_packed(policy_for(log.kind, weights, True, poem.Record()), log)


def assert_same_lines(one, two):
    for a, b in zip(one.lines, two.lines, strict=True):
        np.testing.assert_allclose([a.value, a.stderr], [b.value, b.stderr], rtol=1e-12)


def test_the_command_packs_a_later_log_for_the_policy(trained, policy):
    run("pack", "later.csv", "-o", "later", "--policy", "policy.poem", cwd=trained)
    found = json.loads(run("evaluate", "policy.poem", "later", "--json", cwd=trained).stdout)
    assert not found["trained_on_this_log"]
    log = poem.open_log(trained / "later")
    assert (log.features, log.labels) == (policy.features, policy.labels) == (policy.features, ("a", "b", "c"))
    # The same as the raw file, which evaluate has always read in the policy's way.
    raw = poem.read_log_for(policy, trained / "later.csv")
    np.testing.assert_array_equal(log.to_log().X.toarray(), raw.X.toarray())
    estimators = ["IPS", "SNIPS", "IX"]
    assert_same_lines(*(poem.evaluate(policy, source, estimators, model=None) for source in (log, raw)))


def test_the_page_of_a_later_log(trained):
    run("pack", "later.csv", "-o", "for the page", "--policy", "policy.poem", cwd=trained)
    run("report", "policy.poem", "for the page", "-o", "page.html", cwd=trained)
    assert (trained / "page.html").exists()


@pytest.mark.parametrize("command", ["evaluate", "report"])
def test_a_log_that_was_packed_on_its_own_is_refused_in_words(trained, command, tmp_path):
    named = ("--output", "item", "--reward", "click", "--propensity", "p")
    run("pack", trained / "later.csv", "-o", "own", *named, cwd=tmp_path)
    more = ("-o", "page.html") if command == "report" else ()
    found = run(command, trained / "policy.poem", "own", *more, cwd=tmp_path, status=2)
    path = trained / "policy.poem"
    assert f"own was packed in another way than {path} reads logs: it lacks the outputs 'c'." in found.stderr
    assert f"Pack it again with poem pack --policy {path}." in found.stderr


@pytest.fixture
def own(folder, tmp_path):
    """Return a function that packs a log in its own way."""

    def pack(name="other", **options):
        return pack_log(folder / "log.csv", tmp_path / name, **{"columns": COLUMNS, **options})

    return pack


def refusal(policy, log, ask=poem.evaluate):
    with pytest.raises(MismatchError, match=r"Pack it again with pack_log\(policy=…\)") as found:
        ask(policy, log)
    return str(found.value)


def test_what_differs_is_said(folder, policy, own):
    other = write_rows(folder / "other.csv", ["Oslo", "Bern"], ["a", "b", "c"], first="age,city")
    log = pack_log(other, folder / "other", columns=COLUMNS, features=poem.Encoding(scale=True))
    for ask in (poem.evaluate, poem.estimate):
        assert "lacks the features 'city=Lima', 'city=Rome'" in (said := refusal(policy, log, ask)), said
        assert "and it has the features 'city=Bern', which the policy lacks" in said
    assert "other scales" in refusal(policy, own())
    assert "one of 3 classes" not in refusal(
        policy, own("short", columns=poem.Columns(output="item", reward="click", propensity="p", ignore=("city",)))
    )


def test_outputs_in_another_order_and_of_another_kind(policy, own, tmp_path):
    log = own(labels=["c", "b", "a"], features=policy.features)
    assert "its outputs are in another order" in refusal(policy, log)
    rows = log.to_log()
    sets = poem.BanditLog(rows.X, np.eye(3, dtype=int)[rows.y], loss=rows.loss, propensity=np.full(400, 0.5))
    assert "are 3 yes/no labels, those of the policy are one of 3 classes" in refusal(
        policy, pack_log(sets, tmp_path / "q")
    )


def test_a_start_of_other_features(policy, own):
    refusal(policy, own(), lambda policy, log: poem.fit(log, start=policy))


def test_two_policies_of_different_features(policy, own, trained):
    log = own()
    found = some_policy(log)
    with pytest.raises(MismatchError, match=r"old reads logs: .*different features on the original files"):
        poem.evaluate({"new": found, "old": policy}, log)


def test_what_the_policy_says_is_not_said_again(trained, policy, tmp_path):
    for given in ({"features": policy.features}, {"labels": policy.labels}, {"identity": True}):
        with pytest.raises(InputError, match=f"{next(iter(given))}= has no effect: .* those of policy="):
            pack_log(trained / "later.csv", tmp_path / "p", policy=policy, **given)
    with pytest.raises(InputError, match=r"policy must be a poem\.Policy; found str"):
        pack_log(trained / "later.csv", tmp_path / "p", policy="policy.poem")
    found = run("pack", "later.csv", "-o", "p", "--policy", "policy.poem", "--scale", cwd=trained, status=2)
    assert "--scale has no effect: the features are those of policy.poem" in found.stderr
    found = run(
        "pack", "later.csv", "-o", "p", "--policy", "policy.poem", "--structure", "subset", cwd=trained, status=2
    )
    assert "--structure has no effect: features and outputs are those of --policy" in found.stderr


def test_a_log_that_the_policy_cannot_read_is_refused(folder, policy, tmp_path):
    path = write_rows(tmp_path / "new.csv", ["Oslo"], ["a", "z"])
    with pytest.raises(ReadError, match=r"new\.csv, row \d+, column 'item' has the output 'z'"):
        pack_log(path, tmp_path / "p", policy=policy)
    path.write_text((folder / "later.csv").read_text().replace("city", "town"))
    with pytest.raises(ReadError, match="the column 'city' is missing"):
        pack_log(path, tmp_path / "p", policy=policy)
    assert not (tmp_path / "p").exists()


def test_a_log_in_memory_must_fit(policy, folder, tmp_path):
    log = poem.read_log_for(policy, folder / "later.csv")
    assert pack_log(log, tmp_path / "p", policy=policy).features == policy.features
    with pytest.raises(MismatchError, match="outputs"):
        pack_log(poem.read_log(folder / "later.csv", columns=COLUMNS), tmp_path / "q", policy=policy)


def test_features_that_are_never_seen(tmp_path):
    lines = "{}:{}:0.5 |{} {}=1\n"
    for name, space in (("log", "user"), ("later", "person")):
        rows = (lines.format(1 + i % 2, i % 2, space, "ab"[i // 2 % 2]) for i in range(60))
        (tmp_path / f"{name}.vw").write_text("".join(rows))
    policy = some_policy(pack_log(tmp_path / "log.vw", tmp_path / "packed"))
    with pytest.raises(MismatchError, match=r"none of the .* features of contexts that the policy knows occurs"):
        pack_log(tmp_path / "later.vw", tmp_path / "later", policy=policy)
    assert not (tmp_path / "later").exists()


def test_actions_with_features(tmp_path):
    """The later log has fewer actions and other values of their features."""
    rows = offered_rows(200)
    path, later = write_lines(tmp_path / "log.jsonl", rows), write_lines(tmp_path / "later.jsonl", offered_rows(60, 5))
    policy = some_policy(pack_log(path, tmp_path / "packed"))
    found = pack_log(later, tmp_path / "later", policy=policy)
    raw = poem.read_log_for(policy, later)
    assert found.kind.action_features == policy.action_features
    assert_same_lines(*(poem.evaluate(policy, source, ["IPS", "SNIPS"], model=None) for source in (found, raw)))


def test_files_that_are_read_as_a_whole(tmp_path):
    block = "shared |user age:{}\n{}|item {}\n{}|item {}\n\n"

    def write(name, items, n):
        lines = (
            block.format(i, "0:1:0.5 " * (i % 2), items[0], "0:0.5:0.5 " * (1 - i % 2), items[1]) for i in range(n)
        )
        (tmp_path / name).write_text("".join(lines))
        return tmp_path / name

    policy = some_policy(pack_log(write("log.vw", "ab", 40), tmp_path / "p"))
    later = write("later.vw", "bc", 30)
    found = pack_log(later, tmp_path / "later", policy=policy)
    raw = poem.read_log_for(policy, later)
    assert_same_lines(*(poem.evaluate(policy, source, ["IPS", "SNIPS"], model=None) for source in (found, raw)))


def test_lists_of_0_and_1_are_read_as_in_memory(tmp_path):
    """Where labels are known, too."""
    rows = [{"x": i, "output": [i % 2, i // 2 % 2, 1], "loss": i % 3, "propensity": 0.5} for i in range(60)]
    path = write_lines(tmp_path / "log.jsonl", rows)
    labels = ["left", "middle", "right"]
    found, log = pack_log(path, tmp_path / "p", labels=labels).to_log(), poem.read_log(path, labels=labels)
    np.testing.assert_array_equal(found.y, log.y)
    assert found.labels == log.labels == tuple(labels)


# ---- a policy and the folder that it was trained on ------------------------------------------------


def remarks(policy, log):
    found = poem.evaluate({"new": policy}, log, ["SNIPS"], model=None)
    said = "new was trained on this very log; its estimates are too good" in str(found)
    assert said == (found.trained_on_log == ("new",)) == (json.loads(found.to_json())["trained_on_log"] == ["new"])
    return said


def test_a_policy_is_recognised_on_parts_of_its_folder(folder, tmp_path):
    packed = pack_log(folder / "log.csv", tmp_path / "p", columns=COLUMNS)
    log = poem.open_log(tmp_path / "p", memory=4 * packed.nbytes)  # does not fit, so that a part is held out
    how = {"lam": 0.0, "selection": poem.Selection(guard=False)}
    whole, some = (poem.fit(source, **how).policy for source in (log, log.part(0.0, 0.5)))
    assert remarks(whole, log)
    assert remarks(whole, log.part(0.9, 1.0))
    assert remarks(some, log)
    assert remarks(some, log.part(0.4, 0.6))
    assert not remarks(some, log.part(0.5, 1.0))
    with pytest.raises(InputError, match="start was learnt from this very log"):
        poem.fit(log, start=whole)
    later = pack_log(folder / "later.csv", tmp_path / "q", policy=whole)  # its columns are known
    assert not remarks(whole, later)
    small = poem.fit(poem.open_log(tmp_path / "p"), **how).policy
    assert remarks(small, log)


@pytest.mark.parametrize("known", ["", "x", "ab/0-1", f"{'0' * 64}/0-{'f' * 17}", f"{'0' * 64}/0-{'f' * 40}"])
def test_a_record_may_hold_any_text(policy, own, known):
    strange = replace(policy, record=replace(policy.record, log=known))
    assert not was_trained_on(strange, own())


def test_the_command_says_so_before_the_work_starts(trained):
    found = run("evaluate", "policy.poem", "packed", cwd=trained, status=1)
    warning = "warning: policy.poem was trained on this very log; its estimates are too good."
    assert found.stderr.splitlines()[0].endswith(warning)
    assert "Answer: cannot be told: the policy was trained on this very log" in found.stdout
    found = run("report", "policy.poem", "packed", "-o", "own.html", cwd=trained)
    assert warning in found.stderr


# ---- logs without propensities ---------------------------------------------------------------------


def test_a_log_without_propensities_says_what_to_pass(folder, tmp_path):
    rows = [line.rpartition(",")[0] for line in (folder / "log.csv").read_text().splitlines()]
    (tmp_path / "log.csv").write_text("\n".join(rows) + "\n")
    named = ("--output", "item", "--reward", "click", "--propensity", "estimate")
    told = run("pack", "log.csv", "-o", "packed", *named, cwd=tmp_path).stdout
    assert "4 features; no propensities. Pass --propensity estimate to inspect, train, evaluate" in told
    told = run("inspect", "packed", cwd=tmp_path, status=1).stdout
    assert "Learning would refuse this log: this log has no propensities" in " ".join(told.split())
    assert "Pass --propensity estimate to inspect, train, evaluate and report" in " ".join(told.split())
    told = run("inspect", "packed", "--propensity", "estimate", cwd=tmp_path)
    assert "propensities are estimated, not logged" in told.stderr
