"""Logs with candidates keep them when they are packed, however few rows there are."""

import json

import numpy as np
import pytest
from offered_logs import CATALOGUE, offered_rows, only_ids
from packing import packed
from test_laws_risk import FORMS as LAYOUTS
from test_laws_risk import KINDS, make_log
from test_packed import rows_of
from test_streaming_candidates import FORMS

import poem
from poem.packed import open_log, pack_log, sample_units


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rows", [1, 2, 60])
def test_candidates_of_few_rows(tmp_path, form, rows):
    """A few candidates with features of their own look like a catalogue, and are none."""
    change, options = FORMS[form]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in change(offered_rows(rows))), encoding="utf-8")
    found = pack_log(path, tmp_path / "packed", **options)
    assert_holds(found, poem.read_log(path, **options))
    assert_holds(open_log(tmp_path / "packed"), poem.read_log(path, **options))


def assert_holds(found, log):
    whole = found.to_log()
    assert [len(one) for one in rows_of(whole)] == [len(one) for one in rows_of(log)]
    for one, two in zip(rows_of(whole), rows_of(log), strict=True):
        assert one[2:5] == two[2:5]
        np.testing.assert_allclose(one[0], two[0], rtol=1e-12)
        for mine, other in zip(one[1], two[1], strict=True):
            assert mine[0] == other[0]
            np.testing.assert_allclose(mine[1], other[1], rtol=1e-12)


def test_logs_that_were_joined(tmp_path):
    """Catalogues that differ from one log to the next are one table of features together."""
    parts = []
    for number in range(3):
        path, catalogue = tmp_path / f"{number}.jsonl", CATALOGUE.to_pandas()
        catalogue["weight"] += number
        rows = only_ids(offered_rows(20, seed=number))
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        recipe = parts[0].features if parts else None
        parts.append(poem.read_log(path, actions=catalogue, features=recipe, labels=CATALOGUE["id"].to_pylist()))
    whole = poem.BanditLog.concat(parts)
    assert rows_of(pack_log(whole, tmp_path / "packed").to_log()) == rows_of(whole)


@pytest.mark.parametrize("form", LAYOUTS)
@pytest.mark.parametrize("kind", [*KINDS, "many candidates"])
def test_what_a_log_takes_is_known_before_it_is_read(tmp_path, kind, form):
    """Candidates may take more than all else; a log that does not fit into its memory is not read as a whole."""
    if kind == "many candidates":
        rng = np.random.default_rng(0)
        log = poem.BanditLog(
            rng.normal(size=(300, 2)),
            rng.integers(0, 40, 300),
            reward=rng.random(300),
            propensity=np.full(300, 1 / 40),
            available=np.full(300, 40),
            actions=rng.normal(size=(300 * 40, 30)),
        )
    else:
        log = make_log(kind, form)
    found = packed(log, tmp_path / "p", 3)
    assert 0.8 < found.nbytes / found.to_log().nbytes < 1.4
    half = found.part(0.0, 0.5)
    assert 0.7 < half.nbytes / half.to_log().nbytes < 1.5
    some = sample_units(found, 1_000_000, found.nbytes / 10).log
    assert some.nbytes < found.nbytes / 4
