"""Logs that say what was available: read, written, converted, and through every command."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from offered_logs import ARTICLES, CATALOGUE, by_position, offered_rows, only_ids, write_lines, write_parquet
from refusals import refuses

import poem
from poem.cli import main
from poem.errors import InputError, MismatchError, PoemError, ReadError
from poem.policies import decide, read_contexts_for, read_log_for, uniform_policy
from poem.readers import convert_log, read_raw

ROWS = offered_rows(60)
IDS = only_ids(ROWS)
REQUEST = ("warmth", "device", "candidates")


def table(rows, **columns):
    found = pa.Table.from_pylist(rows)
    for name, values in columns.items():
        found = found.drop_columns([name]) if values is None else found.set_column(
            found.column_names.index(name), name, pa.array(values)
        )  # fmt: skip
    return found


def candidates_of(log):
    """The ids of each context's candidates, and the features of all of them."""
    available = log.available
    ids = [[log.labels[code] for code in codes] for codes in np.split(available.action, available.starts[1:-1])]
    row = np.arange(len(available)) if available.row is None else available.row
    return ids, None if available.features is None else available.features.toarray()[row]


def assert_equal(one, two):
    assert one.fingerprint() == two.fingerprint()
    assert (one.structure, one.labels) == (two.structure, two.labels)
    assert (one.action_features, one.action_names) == (two.action_features, two.action_names)


# ---- what is read ------------------------------------------------------------------------------------


@pytest.mark.parametrize("write", [write_lines, write_parquet])
def test_candidates_with_features(tmp_path, write):
    log = poem.read_log(write(tmp_path / f"log.{'jsonl' if write is write_lines else 'parquet'}", ROWS))
    assert (log.structure.n_features, log.structure.n_ids) == (3, 0)
    assert log.labels == tuple(ARTICLES)
    assert log.action_names == ("price", "kind=new", "kind=old")
    assert log.feature_names == ("warmth", "device=desk", "device=phone")
    ids, features = candidates_of(log)
    assert ids == [row["candidates"] for row in IDS]
    wanted = [one for row in ROWS for one in row["candidates"]]
    np.testing.assert_array_equal(
        features, [[one["price"], one["kind"] == "new", one["kind"] == "old"] for one in wanted]
    )
    assert [log.labels[code] for code in log.y] == [row["output"] for row in ROWS]


def test_a_log_of_arrays_is_the_same():
    log = poem.read_log(table(ROWS))
    ids, features = candidates_of(log)
    again = poem.BanditLog(
        log.X,
        [row["output"] for row in ROWS],
        reward=[row["reward"] for row in ROWS],
        propensity=[row["propensity"] for row in ROWS],
        available=ids,
        actions=features,
        feature_names=log.feature_names,
    )
    assert again.fingerprint() == log.fingerprint()


def test_identity_gives_each_action_a_feature_of_its_own():
    log = poem.read_log(table(ROWS), identity=True)
    assert log.structure.n_ids == 8
    assert log.action_names == ("price", "kind=new", "kind=old", *(f"id={one}" for one in ARTICLES))
    assert candidates_of(log)[1].shape[1] == 11


def test_candidates_without_ids_are_known_by_their_positions_from_one():
    log = poem.read_log(table(by_position(ROWS)))
    assert log.labels == (1, 2, 3, 4, 5)
    assert candidates_of(log)[0] == [list(range(1, len(row["candidates"]) + 1)) for row in ROWS]
    np.testing.assert_array_equal(candidates_of(log)[1], candidates_of(poem.read_log(table(ROWS)))[1])


def test_lists_of_ids_make_classes_that_are_not_always_available():
    log = poem.read_log(table(IDS))
    assert log.structure == poem.MultiClass(8)
    assert candidates_of(log) == ([row["candidates"] for row in IDS], None)
    policy = uniform_policy(log)
    np.testing.assert_allclose(np.exp(policy.log_prob_of(log)), [row["propensity"] for row in IDS])


def test_classes_that_are_always_available_are_a_plain_log():
    rows = [row | {"candidates": ARTICLES[::-1], "distribution": [1 / 8] * 8} for row in IDS]
    log, plain = poem.read_log(table(rows)), poem.read_log(table(rows, candidates=None, distribution=None))
    assert log.available is None
    assert log.labels == tuple(ARTICLES)
    assert log.fingerprint() == plain.fingerprint() or set(plain.labels) < set(ARTICLES)


def test_structs_may_be_read_as_classes():
    log = poem.read_log(table(ROWS), structure="multiclass")
    assert log.fingerprint() == poem.read_log(table(IDS)).fingerprint()


def test_ids_and_outputs_are_the_same_by_what_they_say():
    rows = [
        row | {"output": int(row["output"][1:]), "candidates": [one[1:] for one in row["candidates"]]} for row in IDS
    ]
    log = poem.read_log(table(rows))
    assert log.labels == tuple(range(8))
    np.testing.assert_array_equal(log.available.action, poem.read_log(table(IDS)).available.action)


def test_the_field_of_ids_can_be_named():
    rows = [
        row | {"candidates": [{"sku": one["id"], "price": one["price"]} for one in row["candidates"]]} for row in ROWS
    ]
    log = poem.read_log(table(rows), columns=poem.Columns(action_id="sku"))
    assert (log.labels, log.action_names) == (tuple(ARTICLES), ("price",))
    with refuses(
        ReadError, "the table, column 'candidates': candidates have no field 'sku'", "'id', 'price'", "action_id="
    ):
        poem.read_log(table(ROWS), columns=poem.Columns(action_id="sku"))


def test_columns_of_candidates_can_be_left_out():
    log = poem.read_log(table(ROWS), columns=poem.Columns(ignore=["device", "candidates.pr*"]))
    assert (log.feature_names, log.action_names) == (("warmth",), ("kind=new", "kind=old"))
    with refuses(ReadError, "no column 'candidates.cost' to ignore", "'price'"):
        poem.read_log(table(ROWS), columns=poem.Columns(ignore="candidates.cost"))
    with refuses(ReadError, "nothing is left"):
        poem.read_log(table(by_position(ROWS)), columns=poem.Columns(ignore="candidates.*"))


def test_an_encoding_is_for_contexts_and_actions():
    log = poem.read_log(table(ROWS), features=poem.Encoding(scale=True, hashed=["kind"], hash_size=16))
    assert log.structure.n_features == 17
    assert abs(candidates_of(log)[1][:, 0].mean()) < 1e-12
    with refuses(ReadError, "no column 'colour'"):
        poem.read_log(table(ROWS), features=poem.Encoding(hashed=["colour"]))


def test_there_need_not_be_features_of_contexts():
    log = poem.read_log(table(ROWS, warmth=None, device=None))
    assert log.n_features == 0
    assert len(poem.fit(log, learners="ips", certify=False).learnt.weights) == 1


def test_distributions_are_aligned_with_candidates_and_stand_for_propensities():
    for rows in (ROWS, IDS, by_position(ROWS)):
        log = poem.read_log(table(rows, propensity=None))
        np.testing.assert_allclose(np.exp(log.log_propensity), [row["propensity"] for row in ROWS])


# ---- catalogues --------------------------------------------------------------------------------------


@pytest.mark.parametrize("identity", [False, True])
def test_a_catalogue_describes_the_ids_of_candidates(identity):
    log = poem.read_log(table(IDS), actions=CATALOGUE, identity=identity)
    assert log.structure.n_features == 3 + 9 * identity
    assert log.labels == (*ARTICLES, "never")
    assert log.available.features.shape[0] == 9
    ids, features = candidates_of(log)
    assert ids == [row["candidates"] for row in IDS]
    weight = dict(zip(CATALOGUE.column("id").to_pylist(), CATALOGUE.column("weight").to_pylist(), strict=True))
    np.testing.assert_array_equal(features[:, 0], [weight[one] for row in ids for one in row])


def test_without_candidates_all_of_a_catalogue_is_available(tmp_path):
    plain = table(IDS, candidates=None, distribution=None)
    pa.csv.write_csv(plain, tmp_path / "log.csv")
    pa.csv.write_csv(CATALOGUE, tmp_path / "catalogue.csv")
    log = poem.read_log(tmp_path / "log.csv", actions=tmp_path / "catalogue.csv")
    assert candidates_of(log)[0] == [[*ARTICLES, "never"]] * 60
    assert log.fingerprint() == poem.read_log(plain, actions=CATALOGUE).fingerprint()


def test_candidates_may_have_features_beside_a_catalogue():
    log = poem.read_log(
        table(ROWS), actions=CATALOGUE.drop_columns(["kind"]), columns=poem.Columns(ignore="candidates.kind")
    )
    assert log.action_names == ("price", "weight")
    ids, features = candidates_of(log)
    assert features[0].tolist() == [ROWS[0]["candidates"][0]["price"], 0.5 * int(ids[0][0][1:])]
    with refuses(ReadError, "both have 'kind'"):
        poem.read_log(table(ROWS), actions=CATALOGUE)


@pytest.mark.parametrize(
    ("catalogue", "parts"),
    [
        (pa.table({"id": ["a0", "a1", "a0"], "w": [1.0, 2.0, 3.0]}), ["the catalogue, row 2", "'a0' a second time"]),
        (pa.table({"id": ["a0", None], "w": [1.0, 2.0]}), ["the catalogue, row 1, column 'id'", "the id is missing"]),
        (CATALOGUE.slice(3), ["the table, row 0, candidate ", "is not in the catalogue. Add it"]),
        (pa.table({"sku": ["a0"], "w": [1.0]}), ["the catalogue has no column 'id'", "--action-id", "'sku', 'w'"]),
        (CATALOGUE.slice(0, 0), ["the catalogue has no rows"]),
        (pa.table({"id": [["a0"]], "w": [1.0]}), ["the catalogue, column 'id' holds list<", "string or a number"]),
        (CATALOGUE.set_column(1, "weight", pa.array([np.inf, *range(8)])), ["row 0, column 'weight' is infinite"]),
        (CATALOGUE.select(["id"]), ["the actions have no features", "identity="]),
    ],
)  # fmt: skip
def test_bad_catalogues(catalogue, parts):
    with refuses(PoemError, *parts):
        poem.read_log(table(IDS), actions=catalogue)


def test_a_catalogue_is_a_path_or_a_data_frame():
    with refuses(InputError, "actions must be a path or a data frame", "found int"):
        poem.read_log(table(IDS), actions=3)


# ---- what is refused ---------------------------------------------------------------------------------


def changed(rows, number, **columns):
    return [row | (columns if at == number else {}) for at, row in enumerate(rows)]


def bad(**columns):
    return changed(IDS, 7, **columns)


TWICE = [{"id": "a1", "price": 1.0, "kind": "new"}, {"id": "a1", "price": 2.0, "kind": "new"}]


@pytest.mark.parametrize(
    ("rows", "parts"),
    [
        (bad(candidates=[], distribution=[]), ["line 8, column 'candidates': there are no candidates (1 such row)"]),
        (bad(candidates=None), ["line 8, column 'candidates': there are no candidates", "--ignore"]),
        (bad(output="a1", candidates=["a2", "a3"], distribution=[0.5, 0.5]), ["line 8", "the output 'a1' is not"]),
        (bad(output="zz"), ["line 8, column 'output': the output 'zz' is not among the row's candidates"]),
        (bad(output=None), ["line 8, column 'output': the output is empty"]),
        (bad(output="a1", candidates=["a1", "a1"], distribution=[0.5, 0.5]), ["line 8 has the candidate 'a1' twice"]),
        (bad(output="a1", candidates=["a1", None]), ["line 8, candidate 2, column 'candidates' is missing"]),
        (changed(ROWS, 7, candidates=TWICE, output="a1"), ["line 8 has the candidate 'a1' twice"]),
        (changed(ROWS, 7, candidates=[{"price": 1.0}]), ["line 8, candidate 1", "has no id"]),
        (changed(ROWS, 7, candidates=[{"price": [1.0]}]), ["cannot be read as JSON lines", "one type in all of them"]),
        (changed(by_position(ROWS), 7, output=6), ["line 8, column 'output': the output 6 is not among"]),
        (changed(by_position(ROWS), 7, output=0), ["line 8, column 'output': the output 0 is not among"]),
        (bad(propensity=None), ["line 8, column 'propensity' is empty"]),
        (bad(propensity=1.5), ["line 8, column 'propensity' has the propensity 1.5"]),
        (bad(distribution=[0.5]), ["line 8, column 'candidates' should hold as many candidates"]),
        (bad(distribution=[0.9] * len(IDS[7]["candidates"])), ["line 8, column 'distribution'", "add up to"]),
        ([row | {"output": ["a1", "a2"]} for row in IDS], ["candidates are for single outputs", "label sets"]),
        ([row | {"candidates": "a1"} for row in IDS], ["should hold lists of candidates and holds string"]),
        ([row | {"candidates": [[1.0]]} for row in IDS], ["candidates are strings or numbers"]),
    ],
)  # fmt: skip
def test_bad_rows_are_named(tmp_path, capsys, rows, parts):
    path = write_lines(tmp_path / "log.jsonl", rows)
    with refuses(ReadError, "log.jsonl", *parts):
        poem.read_log(path)
    assert main(["convert", str(path), str(tmp_path / "out.parquet")]) == 2
    assert "poem: log.jsonl" in capsys.readouterr().err
    assert [one.name for one in tmp_path.iterdir()] == ["log.jsonl"]


def test_ten_thousand_candidates_are_the_most():
    ids = list(range(10_001))
    row = {"x": 1.0, "output": 0, "loss": 0.0, "propensity": 0.5}
    log = poem.read_log(table([row | {"candidates": ids[:-1]}, row | {"candidates": ids[:3]}]))
    assert len(log.available) == 10_003
    with refuses(ReadError, "the table, row 1 has 10,001 candidates; 10,000 is the most"):
        poem.read_log(table([row | {"candidates": ids[:3]}, row | {"candidates": ids}]))


def test_vectors_of_another_width():
    rows = [row | {"candidates": [{"id": one, "v": [1.0, 2.0]} for one in row["candidates"]]} for row in IDS]
    assert poem.read_log(table(rows)).structure.n_features == 2
    rows[4]["candidates"][1]["v"] = [1.0]
    with refuses(ReadError, "row 4, candidate 2, column 'v' has a list of 1 numbers where 2 are expected"):
        poem.read_log(table(rows))


# ---- what is written ---------------------------------------------------------------------------------


def logs():
    catalogue = {"actions": CATALOGUE}
    yield "classes", table(IDS), {}
    yield "features", table(ROWS), {}
    yield "positions", table(by_position(ROWS)), {}
    yield "identity", table(ROWS), {"identity": True}
    yield "catalogue", table(IDS), catalogue
    yield "catalogue and identity", table(IDS), catalogue | {"identity": True}
    yield "whole catalogue", table(IDS, candidates=None, distribution=None), catalogue


@pytest.mark.parametrize(("source", "options"), [one[1:] for one in logs()], ids=[one[0] for one in logs()])
def test_round_trips(tmp_path, source, options):
    log = poem.read_log(source, **options)
    assert_equal(poem.read_log(poem.write_log(log, tmp_path / "native.parquet")), log)
    assert_equal(convert_log(read_raw(source, **options), tmp_path / "converted.parquet"), log)
    assert_equal(poem.read_log(tmp_path / "converted.parquet"), log)
    again = read_raw(tmp_path / "converted.parquet")
    assert_equal(convert_log(again, tmp_path / "again.parquet"), log)
    early, late = log.split(0.5, 0)
    for part in (early, seen_twice(late)):
        back = poem.read_log(poem.write_log(part, tmp_path / "part.parquet"))
        np.testing.assert_array_equal(back.log_propensity, part.log_propensity)
        policy = uniform_policy(log)
        np.testing.assert_array_equal(policy.log_prob_of(back), policy.log_prob_of(part))


def seen_twice(log):
    """The same rows twice: contexts repeat."""
    return log.take(np.tile(np.arange(len(log)), 2))


def test_logs_made_of_arrays_come_back(tmp_path):
    rng = np.random.default_rng(1)
    made = {"reward": rng.random(4), "propensity": np.full(4, 0.5), "labels": list("abc")}
    frame = pa.table({"weight": [1.0, 0.0, 2.0], "size": [0.0, 3.0, 1.0]})
    mask = np.array([[1, 1, 0], [0, 1, 1]], dtype=bool)
    seen = {"context": [0, 1, 1, 0], "available": mask}
    catalogue = poem.Catalogue("abc", frame)
    for options in ({}, {"actions": catalogue}, {"actions": catalogue, "identity": True}):
        log = poem.BanditLog(rng.random((2, 3)), list("abcb"), **made, **seen, **options)
        back = poem.read_log(poem.write_log(log, tmp_path / "log.parquet"))
        assert back.fingerprint() == log.fingerprint()
        assert back.action_names == log.action_names
    full = poem.BanditLog(rng.random((2, 3)), list("abcb"), **made, context=[0, 1, 1, 0], available=np.ones((2, 3)))
    assert poem.read_log(poem.write_log(full, tmp_path / "full.parquet")).fingerprint() == full.fingerprint()


def test_part_files_with_one_catalogue_are_read_together(tmp_path):
    folder = tmp_path / "log"
    folder.mkdir()
    for number, rows in enumerate((IDS[:30], IDS[30:])):
        convert_log(read_raw(table(rows), actions=CATALOGUE), folder / f"part-{number}.parquet")
    assert poem.read_log(folder).fingerprint() == poem.read_log(table(IDS), actions=CATALOGUE).fingerprint()
    convert_log(read_raw(table(IDS[:9]), actions=CATALOGUE.drop_columns(["kind"])), folder / "part-2.parquet")
    with refuses(ReadError, "were written by poem with other labels, features or columns"):
        poem.read_log(folder)


def test_broken_files_are_refused(tmp_path):
    path = poem.write_log(poem.read_log(table(IDS), actions=CATALOGUE), tmp_path / "log.parquet")
    found = pq.read_table(path)
    notes = json.loads(found.schema.metadata[b"poem"])
    assert notes["version"] == 3
    for change in ({b"poem.actions": b"AAAA"}, {b"poem": json.dumps(notes | {"actions": {"id": 3}}).encode()}):
        pq.write_table(found.replace_schema_metadata(found.schema.metadata | change), path)
        with refuses(ReadError, "log.parquet has broken metadata of poem"):
            poem.read_log(path)


def test_an_encoded_log_needs_no_catalogue(tmp_path):
    path = poem.write_log(poem.read_log(table(IDS), actions=CATALOGUE), tmp_path / "log.parquet")
    with refuses(InputError, "log.parquet holds features of actions already"):
        poem.read_log(path, actions=CATALOGUE)


# ---- policies ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A folder with a log, a later one with new articles, requests, and a policy that was trained on the log."""
    folder = tmp_path_factory.mktemp("shop")
    write_lines(folder / "log.jsonl", offered_rows(600))
    later = offered_rows(400, seed=1, first=4)
    write_lines(folder / "later.jsonl", later)
    write_lines(folder / "requests.jsonl", [{name: row[name] for name in REQUEST} for row in later[:50]])
    arguments = ["train", folder / "log.jsonl", "-o", folder / "policy.poem", "--learner", "ips", "--no-certificate"]
    assert main([*map(str, arguments), "--quiet"]) == 0
    return folder


def run(capsys, *arguments, status=0):
    capsys.readouterr()
    assert main([*map(str, arguments), "--quiet"]) == status
    return capsys.readouterr().out


def test_policy_files_remember_the_columns_of_actions(shop):
    policy = poem.load_policy(shop / "policy.poem")
    assert policy.action_features.columns == ("price", "kind")
    assert policy.record.columns["candidates"] == "candidates"
    log = read_log_for(policy, shop / "later.jsonl")
    assert "a11" in log.labels
    assert policy.log_prob_of(log).max() <= 0.0


def test_commands_on_a_log_with_new_actions(shop, tmp_path, capsys):
    assert "available actions" in run(capsys, "inspect", shop / "log.jsonl")
    run(capsys, "evaluate", shop / "policy.poem", shop / "later.jsonl", "--estimators", "IPS,SNIPS,DR")
    run(capsys, "watch", shop / "later.jsonl", "--policy", shop / "policy.poem", "--loss-bounds", "0,1")
    run(capsys, "convert", shop / "later.jsonl", tmp_path / "later.parquet")
    for log in (shop / "later.jsonl", tmp_path / "later.parquet"):
        found = json.loads(run(capsys, "evaluate", shop / "policy.poem", log, "--estimators", "DR", "--json"))
        assert found["better"] is True


def test_another_policy_reads_the_same_log_in_its_own_way(shop, tmp_path, capsys):
    other = tmp_path / "other.poem"
    train = ("train", shop / "log.jsonl", "--learner", "ips", "--no-certificate")
    run(capsys, *train, "-o", other, "--identity", "--ignore", "candidates.price")
    assert poem.load_policy(other).labels == tuple(ARTICLES)
    run(
        capsys,
        "evaluate",
        other,
        shop / "later.jsonl",
        "--against",
        shop / "policy.poem",
        "--estimators",
        "IPS,DR",
        status=1,
    )
    run(
        capsys,
        "train",
        shop / "later.jsonl",
        "--start",
        other,
        "--learner",
        "ips",
        "--no-certificate",
        "-o",
        tmp_path / "next",
    )
    assert poem.load_policy(tmp_path / "next").labels == tuple(ARTICLES)


def test_rankings_of_requests(shop, capsys):
    rows = [
        json.loads(line) for line in run(capsys, "predict", shop / "policy.poem", shop / "requests.jsonl").splitlines()
    ]
    policy = poem.load_policy(shop / "policy.poem")
    log = read_log_for(policy, shop / "later.jsonl")
    chance = np.split(policy.marginals_of(log), log.available.starts[1:-1])
    for row, expected in zip(rows, chance, strict=False):
        ids = [one["id"] for one in row["candidates"]]
        assert sorted(row["ranking"]) == sorted(ids)
        assert row["output"] == row["ranking"][0]
        assert row["probability"] == row["probabilities"][0]
        np.testing.assert_allclose(row["probabilities"], sorted(expected, reverse=True))
        np.testing.assert_allclose(row["probabilities"], [expected[ids.index(one)] for one in row["ranking"]])
    assert len(rows) == 50


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_sampled_decisions_become_the_next_log(shop, tmp_path, capsys, suffix):
    out = tmp_path / f"next.{suffix}"
    arguments = ("predict", shop / "policy.poem", shop / "requests.jsonl", "--sample", "--seed", 3, "--floor", 0.2)
    run(capsys, *arguments, "-o", out)
    decided = pq.read_table(out) if suffix == "parquet" else pa.Table.from_pylist(
        [json.loads(line) for line in out.read_text().splitlines()]
    )  # fmt: skip
    assert decided.column_names[-3:] == ["output", "distribution", "propensity"]
    log = poem.read_log(decided.append_column("reward", pa.array(np.ones(50))))
    floored = poem.load_policy(shop / "policy.poem").with_floor(0.2)
    own = read_log_for(floored, decided.append_column("reward", pa.array(np.ones(50))))
    np.testing.assert_allclose(floored.log_prob_of(own), log.log_propensity, atol=1e-12)
    assert len({row["output"] for row in decided.to_pylist()}) > 3


def test_decisions_by_position_and_of_classes(tmp_path):
    for rows in (by_position(offered_rows(200)), only_ids(offered_rows(200))):
        log = poem.read_log(table(rows))
        policy = poem.fit(log, learners="ips", certify=False).learnt
        found = decide(policy, table(rows).select(REQUEST)).to_pylist()
        for row, decision in zip(rows, found, strict=True):
            known = row["candidates"] if isinstance(row["output"], str) else range(1, len(row["candidates"]) + 1)
            assert sorted(decision["ranking"]) == sorted(known)
            assert decision["output"] == decision["ranking"][0]
        drawn = decide(policy, table(rows).select(REQUEST), sample=True, seed=1)
        assert len(poem.read_log(drawn.append_column("loss", pa.array(np.zeros(200))))) == 200


def test_decisions_over_a_catalogue(tmp_path, capsys):
    plain = table(only_ids(offered_rows(200)), candidates=None, distribution=None, propensity=[1 / 9] * 200)
    pa.csv.write_csv(plain, tmp_path / "log.csv")
    pa.csv.write_csv(CATALOGUE, tmp_path / "catalogue.csv")
    sold_out = CATALOGUE.slice(2).append_column("sku", CATALOGUE.slice(2).column("id")).drop_columns(["id"])
    pq.write_table(sold_out, tmp_path / "today.parquet")
    train = ("train", tmp_path / "log.csv", "--actions", tmp_path / "catalogue.csv", "--learner", "ips")
    run(capsys, *train, "--no-certificate", "-o", tmp_path / "policy.poem")
    predict = ("predict", tmp_path / "policy.poem", tmp_path / "log.csv")
    text = run(capsys, *predict, "--actions", tmp_path / "today.parquet", "--action-id", "sku")
    assert sorted(json.loads(text.splitlines()[0])["ranking"]) == sorted(sold_out.column("sku").to_pylist())
    assert main([*map(str, predict)]) == 2
    assert "Name the column of candidates (--candidates), or pass a catalogue (--actions)" in capsys.readouterr().err


def test_what_does_not_fit_a_policy_is_refused(shop, tmp_path):
    policy = poem.load_policy(shop / "policy.poem")
    with refuses(ReadError, "the table, column 'candidates' says what could be chosen", "actions="):
        read_log_for(policy, table(IDS))
    with refuses(ReadError, "the table: the column 'price' is missing"):
        read_log_for(policy, table(ROWS), poem.Columns(ignore="candidates.price"))
    encoded = poem.write_log(poem.read_log(table(ROWS), identity=True), tmp_path / "encoded.parquet")
    with refuses(PoemError, "features"):
        decide(policy, read_contexts_for(policy, encoded))
    scaled = poem.read_log(table(ROWS), features=poem.Encoding(scale=True))
    path = poem.write_log(scaled.with_features(policy.features), tmp_path / "scaled.parquet")
    with refuses(MismatchError, "scaled.parquet holds features of actions that were made in another way"):
        read_log_for(policy, path)
    classes = uniform_policy(poem.read_log(table(IDS)))
    with refuses(ReadError, "candidate ", "the action 'a", "is not one of the 8 that are known", "classes may not"):
        read_log_for(classes, table(only_ids(offered_rows(9, first=6))))


# ---- Vowpal Wabbit and DSJSON ------------------------------------------------------------------------

VW = """shared | warm:{warm}
{one}| kind=old price:{price}
{two}| kind=new price:{price}

"""
DSJSON = '{{{label}"c":{{"warm":{warm},"_multi":[{{"kind":"old","price":{price}}},{{"kind":"new"}}]}}}}\n'


def decisions(n, labelled, seed=0):
    """Lines of Vowpal Wabbit's text and of DSJSON: the new one of two actions sells to warm contexts."""
    rng = np.random.default_rng(seed)
    text, lines = "", ""
    for _ in range(n):
        warm, price, chosen = round(rng.normal(), 3), round(rng.random() + 0.1, 3), int(rng.integers(2))
        cost = float((chosen == 1) != (warm > 0))
        labels = ["", ""]
        labels[chosen] = f"0:{cost}:0.5 " if labelled else ""
        text += VW.format(warm=warm, price=price, one=labels[0], two=labels[1])
        label = f'"_label_cost":{cost},"_label_probability":0.5,"_labelIndex":{chosen},"_label_Action":{chosen + 1},'
        lines += DSJSON.format(label=label if labelled else "", warm=warm, price=price)
    return {"vw": text, "dsjson": lines}


@pytest.mark.parametrize("suffix", ["vw", "dsjson"])
def test_formats_with_candidates_through_the_commands(tmp_path, capsys, suffix):
    log, later, requests = (tmp_path / f"{name}.{suffix}" for name in ("log", "later", "requests"))
    log.write_text(decisions(400, True)[suffix])
    later.write_text(decisions(200, True, seed=1)[suffix])
    requests.write_text(decisions(1, False)[suffix])
    policy = tmp_path / "policy.poem"
    run(capsys, "train", log, "-o", policy, "--learner", "ips", "--no-certificate")
    assert poem.read_log(log).labels == (1, 2)
    assert json.loads(run(capsys, "evaluate", policy, later, "--estimators", "SNIPS", "--json"))["better"] is True
    run(capsys, "convert", later, tmp_path / "later.parquet")
    assert poem.read_log(tmp_path / "later.parquet").fingerprint() == poem.read_log(later).fingerprint()
    found = json.loads(run(capsys, "predict", policy, requests))
    assert sorted(found["ranking"]) == [1, 2]
    assert found["action"] == found["ranking"][0]


def test_actions_that_lines_of_vowpal_wabbit_name_are_available(tmp_path):
    path = tmp_path / "log.vw"
    path.write_text("1 3:0.5:0.5 tag| a\n\n2:1:0.25 | b\n4 2:0:1 | a b\n")
    log = poem.read_log(path)
    assert (log.structure, log.labels) == (poem.MultiClass(4), (1, 2, 3, 4))
    assert candidates_of(log)[0] == [[1, 3], [1, 2, 3, 4], [4, 2]]
    path.write_text("3:0.5:0.5 | a\n2:1:0.25 | b\n")
    assert poem.read_log(path).available is None
    path.write_text("2 2:0.5:0.5 | a\n")
    with refuses(ReadError, "log.vw, line 1 has the candidate 2 twice"):
        poem.read_log(path)


def test_classes_of_dsjson_are_all_available_unless_a_line_says_otherwise(tmp_path):
    line = (
        '{{"_label_cost":0,"_label_probability":{p},"_labelIndex":0,{more}"c":{{"x":1,"_multi":[{{}},{{"b":2}}]}}}}\n'
    )
    path = tmp_path / "log.dsjson"
    more = ["", '"a":[1],"p":[0.4],', '"a":[2,1],"p":[0.5,0.5],']
    path.write_text("".join(line.format(p=p, more=one) for p, one in zip((0.5, 0.4, 0.5), more, strict=True)))
    raw = read_raw(path)
    assert raw.table.column("candidates").to_pylist() == [[1, 2], [1, 2], [2, 1]]
    assert raw.table.column("distribution").to_pylist() == [None, None, [0.5, 0.5]]
    assert poem.read_log(path).available is None
