"""What the commands decide, called from Python: reading for a policy, deciding, concluding, watching, refusing."""

import argparse
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import poem
from poem.commands.typed import as_typed, data_as_typed
from poem.errors import InputError, MismatchError
from poem.evaluation import conclude, deciding_line, in_time_order
from poem.files import write_table
from poem.health import check_fit
from poem.policies import columns_of, made_log, was_trained_on, with_columns
from poem.readers import convert_log, read_contexts, read_raw
from poem.simulation import read_labelled, simulate_weak

ROLES = poem.Columns(output="item", reward="click", propensity="pscore")


def shop(rows=190, seed=0):
    """Two items in three cities; tea is clicked on in Bonn, cocoa elsewhere."""
    rng = np.random.default_rng(seed)
    city, tea = rng.choice(["Bonn", "Köln", "Ulm"], rows), rng.random(rows) < 0.5
    return pd.DataFrame(
        {
            "city": city,
            "item": np.where(tea, "tea", "cocoa"),
            "click": (tea == (city == "Bonn")).astype(int),
            "pscore": 0.5,
        }
    )


@pytest.fixture(scope="module")
def learnt():
    """A fit, the raw log and the log that it was learnt from, and the policy that remembers them."""
    raw = read_raw(shop(), ROLES)
    log = poem.read_log(shop(), columns=ROLES)
    result = poem.fit(log, learners="ips", loss_bounds=(0, 1), progress=False)
    return result, raw, log, with_columns(result.learnt, raw, log)


# ---- fits -----------------------------------------------------------------------------------


def test_a_certified_fit_is_a_success_and_has_a_new_policy(learnt):
    result, *_ = learnt
    assert result.certified
    assert result.success
    assert result.learnt is result.policy


def test_a_fit_without_a_certificate_is_a_success_only_if_none_was_asked_for(learnt):
    noise = shop(400).assign(click=np.arange(400) % 2)
    log = poem.read_log(noise, columns=ROLES)
    options = {"learners": "ips", "loss_bounds": (0, 1), "progress": False}
    nothing, imitation = (
        poem.fit(log, selection=poem.Selection(imitate=imitate), **options) for imitate in (False, True)
    )
    assert (nothing.success, nothing.learnt) == (False, None)
    assert not imitation.success
    assert imitation.learnt is imitation.policy is not None
    assert poem.fit(log, certify=False, **options).success
    running = poem.uniform_policy(log)
    kept = poem.fit(log, logging_policy=running, **options)
    assert kept.policy is running
    assert (kept.success, kept.learnt) == (False, None)


def test_a_fit_as_data_speaks_of_rewards(learnt):
    result, *_ = learnt
    data = result.to_dict()
    assert data["certificate"]["logged"] == result.certificate.logged > 0.0
    assert data["candidates"] == result.rows()
    for row in data["candidates"]:
        assert 0.0 < row["validation_low"] <= row["validation"] <= row["validation_high"]


def test_progress_ends_whole_if_nothing_is_worth_a_certificate(capsys):
    table = shop().assign(click=lambda table: (table["item"] == "tea").astype(int), pscore=0.999)
    table.loc[table["item"] == "cocoa", "pscore"] = 0.001
    log = poem.read_log(table, columns=ROLES)
    result = poem.fit(log, learners="ips", loss_bounds=(0, 1), progress=True)
    assert result.certificate is None
    done, total = capsys.readouterr().err.splitlines()[-1].split(":")[1].split(" in ")[0].split("/")
    assert int(done) == int(total)


# ---- reading and deciding -------------------------------------------------------------------


def test_a_log_is_read_with_the_columns_features_and_labels_of_a_policy(learnt):
    *_, policy = learnt
    later = poem.read_log_for(policy, shop(100, 1))
    assert later.labels == policy.labels
    assert later.features == policy.features
    assert later.outcome == "reward"
    assert len(policy.log_prob_of(later)) == 100
    renamed = shop(100, 1).rename(columns={"click": "paid"})
    again = poem.read_log_for(policy, renamed, poem.Columns(reward="paid"))
    np.testing.assert_array_equal(again.loss, later.loss)
    assert columns_of(policy).output == ("item",)
    assert columns_of(replace(policy, record=poem.Record())) is None


def test_a_log_of_other_features_is_refused(learnt, tmp_path):
    *_, policy = learnt
    other = poem.read_log(shop(100, 1).assign(city="Bonn"), columns=ROLES, labels=policy.labels)
    poem.write_log(other, tmp_path / "other.parquet")
    with pytest.raises(MismatchError, match="made in another way than those of the policy"):
        poem.read_log_for(policy, tmp_path / "other.parquet")


def test_a_policy_knows_its_own_log(learnt):
    _, _, log, policy = learnt
    assert was_trained_on(policy, log) is True
    assert was_trained_on(policy.with_floor(0.1), log.fingerprint()) is True
    assert was_trained_on(policy, log.take(np.arange(100))) is False
    assert was_trained_on(replace(policy, record=poem.Record()), log) is None


def test_a_policy_is_known_by_the_log_that_it_made(learnt):
    _, _, log, policy = learnt
    uniform = poem.uniform_policy(log)
    assert made_log(uniform, log) is True
    assert made_log(policy, log) is False
    assert made_log(uniform, poem.estimate_propensities(log).log) is None
    two = poem.BanditLog(
        log.X,
        np.array(log.labels)[log.y],
        loss=log.loss,
        propensity=np.exp(log.log_propensity),
        context=log.context,
        logger=np.arange(len(log)) % 2,
    )
    assert made_log(uniform, two) is True
    assert made_log(poem.constant_policy(two, two.labels[0]).with_floor(0.2), two) is None


def test_decisions_stand_beside_the_contexts(learnt):
    *_, policy = learnt
    contexts = shop(50, 2)
    table = poem.decide(policy, contexts).to_pandas()
    assert list(table.columns) == ["city", "item", "probability"]
    assert ((table["item"] == "tea") == (table["city"] == "Bonn")).all()
    drawn = poem.decide(policy, read_contexts(contexts, recipe=policy.features), sample=True, seed=3, floor=0.5)
    assert drawn.column_names == ["city", "item", "pscore"]
    assert drawn.equals(poem.decide(policy, contexts, sample=True, seed=3, floor=0.5))
    assert drawn.column("pscore").to_numpy().min() < 0.5


@pytest.mark.parametrize("wrong", [{"seed": 1}, {"floor": 0.1}])
def test_only_drawn_decisions_have_a_seed_and_a_floor(learnt, wrong):
    with pytest.raises(InputError, match="sample=True"):
        poem.decide(learnt[-1], shop(5, 2), **wrong)


def test_a_floor_that_is_there_is_kept(learnt):
    with pytest.raises(InputError, match="has a floor already"):
        poem.decide(learnt[-1].with_floor(0.1), shop(5, 2), sample=True, floor=0.2)


def test_tables_are_written_by_their_suffix(tmp_path):
    table = pa.table({"a": [1.5, float("nan")], "b": ["x", "y"]})
    assert write_table(table, tmp_path / "t.csv").read_text().splitlines()[0] == '"a","b"'
    assert write_table(table, tmp_path / "t.jsonl").read_text().splitlines()[1] == '{"a": null, "b": "y"}'
    assert parquet.read_table(write_table(table, tmp_path / "t.parquet")).num_rows == 2
    with pytest.raises(InputError, match="ends in"):
        write_table(table, tmp_path / "t.txt")
    with pytest.raises(InputError, match="cannot hold lists"):
        write_table(pa.table({"a": [[1], []]}), tmp_path / "lists.csv")


# ---- conclusions ----------------------------------------------------------------------------


def test_the_conclusion_is_that_of_dr_else_snips_else_the_first(learnt):
    *_, policy = learnt
    later = poem.read_log_for(policy, shop(800, 1))
    found = poem.evaluate({"new": policy}, later)
    answer = conclude(found)
    assert (answer.better, answer.estimator) == (True, "DR")
    assert str(answer) == "Answer: estimated to be better than what was logged, by DR with 95% confidence."
    assert conclude(poem.evaluate({"new": policy}, later, ["IPS", "SNIPS"])).estimator == "SNIPS"
    assert conclude(poem.evaluate({"new": policy}, later, ["IPS"])).estimator == "IPS"
    assert deciding_line(found, "new") == found["new", "DR"]
    with pytest.raises(InputError, match="no policy 'old'"):
        conclude(found, "old")


def test_nothing_is_concluded_from_rows_that_a_policy_has_seen(learnt):
    _, _, log, policy = learnt
    found = poem.evaluate({"new": policy}, log)
    assert found.trained_on_log == ("new",)
    assert "new was trained on this very log" in str(found)
    unknown = replace(found, trained_on_log=())
    assert conclude(unknown).better
    for answer in (conclude(found), conclude(unknown, seen=True)):
        assert (answer.better, answer.estimator) == (False, None)
        assert "trained on this very log" in answer.text


def test_a_log_is_watched_in_time_order(learnt):
    *_, policy = learnt
    table = shop(600, 1).assign(time=np.random.default_rng(0).permutation(600))
    later = poem.read_log_for(policy, table)
    found = poem.watch(policy, later, loss_bounds=(0, 1))
    assert found.answer == found.gate.answer == "ship"
    assert len(found.looks) == 10
    assert found.looks[-1].rows == 600
    assert [look.rows for look in poem.watch(policy, later, loss_bounds=(0, 1), every=250).looks] == [250, 500, 600]
    ordered = poem.Gate(policy, loss_bounds=(0, 1))
    ordered.update(in_time_order(later))
    assert ordered.lower == found.gate.lower
    assert found.to_dict()["text"] == found.explain() == str(found).splitlines()[-1]
    assert found.explain().startswith("Answer: ship. The gain is above 0 with 95% confidence over all looks")


def test_an_unfit_log_is_refused_unless_forced():
    table = shop(400).assign(pscore=lambda table: np.where(table["item"] == "tea", 0.9, 0.1))
    log = poem.read_log(table, columns=ROLES)
    with pytest.raises(InputError, match="the log is not fit for learning"):
        check_fit(log)
    health = check_fit(log, force=True)
    assert not health.fit
    fine = poem.read_log(shop(), columns=ROLES)
    assert check_fit(fine).fit


# ---- conversions and simulations ------------------------------------------------------------


def test_a_log_is_converted_with_a_note_of_its_columns(tmp_path):
    log = convert_log(read_raw(shop(), ROLES), tmp_path / "log.parquet")
    again = poem.read_log(tmp_path / "log.parquet")
    np.testing.assert_array_equal(again.loss, log.loss)
    raw = read_raw(shop().drop(columns="pscore"), replace(ROLES, propensity=None))
    unknown = convert_log(raw, tmp_path / "m.parquet", missing=True)
    assert unknown.propensities == poem.read_log(tmp_path / "m.parquet").propensities == "missing"


def test_labelled_tables_become_the_log_of_a_weak_policy(tmp_path):
    path = tmp_path / "table.csv"
    shop()[["city", "item"]].to_csv(path, index=False)
    data = read_labelled(path, "item")
    log, h0 = simulate_weak(data, fraction=0.5, replay=2, seed=1)
    assert len(log) == 380
    assert log.features == h0.features == data.features
    assert made_log(h0, log) is True
    with pytest.raises(InputError, match="name its column of true classes with label="):
        read_labelled(path)
    with pytest.raises(InputError, match="neither a file nor one of scene"):
        read_labelled(tmp_path / "nothing.csv")


# ---- messages -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "typed"),
    [
        ("pass loss_bounds=", "pass --loss-bounds"),
        ("pass force=True if so", "pass --force if so"),
        ("(--time, time=)", "(--time)"),
        ("(time=, --time).", "(--time)."),
        ("(group=, --group): a name that only another command has", "(--group): a name that only another command has"),
        ("Leave validation= out, or certify=False.", "Leave --valid out, or --no-certificate."),
        ("a feature time=noon and time='noon'", "a feature time=noon and time='noon'"),
        ("Build it with labels=.", "Build it with labels=."),
        ("poem.inspect(log) says more", "poem inspect says more"),
        (
            "see --propensity estimate (propensity='missing', then poem.estimate_propensities).",
            "see --propensity estimate.",
        ),
        ("Certify on a later log (poem.certify).", "Certify on a later log (poem.certify in Python)."),
    ],
)
def test_messages_name_what_is_typed(message, typed):
    assert as_typed(message, _parser()) == typed


def _parser():
    parser = argparse.ArgumentParser()
    for option in ("--loss-bounds", "--time", "--valid"):
        parser.add_argument(option)
    parser.add_argument("--force", action="store_true")
    parser.add_argument("--no-certificate", action="store_true")
    return parser


def test_json_names_what_is_typed_and_leaves_data_as_they_are():
    found = {"certificate": {"objections": ["newest first. Pass time=, or sort"]}, "labels": ["time="], "rows": 3}
    typed = {"certificate": {"objections": ["newest first. Pass --time, or sort"]}, "labels": ["time="], "rows": 3}
    assert data_as_typed(found, _parser()) == typed
