"""Text from logs and policy files does nothing on terminals, in messages, in JSON and in spreadsheets."""

import csv
import io
import json
import os
import pty
import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shop_logs import call

import poem
from poem.files import write_csv, write_table
from poem.policies import read_log_for
from poem.readers.csv import read_table
from poem.text import Grid, Sheet, as_json, visible, visible_line

LINK = "\x1b]8;;https://example.org\x07tea\x1b]8;;\x07"
ITEMS = (LINK, "=HYPERLINK(0)", "\u202eabc\x9b2J", "a\rb\x1b[2J", "+x", "-x", "@me", "-1", "line\nVerdict: fit")
COLUMN = "\x1b[31mage"
ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
COLUMNS = ("--output", "item", "--reward", "click", "--propensity", "pscore", "--group", "user")
FIT = ("--learner", "ips", "--jobs", "1", "--no-certificate")


def make_table(rows, seed):
    rng = np.random.default_rng(seed)
    chosen, best = rng.integers(0, len(ITEMS), rows), rng.integers(0, 2, rows)
    return pa.table(
        {
            COLUMN: best * 1.0,
            "=city": [("=Ulm", "'Bonn")[city] for city in best],
            "item": [ITEMS[item] for item in chosen],
            "click": (chosen == best) * 1.0,
            "pscore": np.full(rows, 1 / len(ITEMS)),
            "user": [f"\x1b]0;u{number}\x07" for number in range(rows)],
        }
    )


@pytest.fixture(scope="module")
def acting(tmp_path_factory):
    """Logs, contexts and a policy whose names would act on a terminal and in a spreadsheet."""
    folder = tmp_path_factory.mktemp("acting")
    files = {}
    for seed, name in enumerate(("log", "later", "contexts")):
        table = make_table(190, seed)
        files[name] = folder / f"{name}\x1b[2J\nVerdict: fit.parquet"
        pq.write_table(table.select([COLUMN, "=city"]).slice(0, 50) if name == "contexts" else table, files[name])
    files["policy"] = folder / "policy\x1b[31m.poem"
    assert call("train", files["log"], "-o", files["policy"], "--quiet", *FIT, *COLUMNS) == 0
    return SimpleNamespace(folder=folder, **files)


def line_of(name, files, new=None):
    return [part.format(**vars(files), new=new) for part in LINES[name]]


LINES = {
    "inspect": ["inspect", "{log}", *COLUMNS],
    "inspect what cannot be": ["inspect", "{log}", *COLUMNS, "--loss", "item"],
    "train": ["train", "{log}", "-o", "{new}.poem", *FIT, *COLUMNS],
    "evaluate": ["evaluate", "{policy}", "{later}", "--estimators", "SNIPS"],
    "watch": ["watch", "{later}", "--policy", "{policy}", "--loss-bounds", "0,1"],
    "predict": ["predict", "{policy}", "{contexts}", "-o", "{new}.csv"],
    "report": ["report", "{policy}", "{later}", "-o", "{new}.html"],
    "convert": ["convert", "{log}", "{new}.parquet", *COLUMNS],
    "a missing file": ["inspect", "{new}.csv"],
    "a missing column": ["inspect", "{log}", "--output", LINK],
    "a wrong option": ["inspect", "{log}", LINK],
    "a wrong command": [LINK],
}


@pytest.mark.parametrize("name", LINES)
def test_nothing_that_is_said_acts_on_a_terminal(acting, name, capsys):
    status = call(*line_of(name, acting, acting.folder / "new\x1b]8;\nVerdict: fit"))
    out, err = capsys.readouterr()
    assert status in (0, 1) if not name.startswith(("a ", "inspect what")) else status == 2
    assert ACTING.findall(out + err) == []
    assert not [found for found in (out + err).splitlines() if re.match("Verdict: fit(?! for learning)", found)]
    if status == 2:
        assert len([line for line in err.splitlines() if not line.startswith("usage:")]) == 1


@pytest.mark.parametrize("name", ["inspect", "train", "convert", "predict"])
def test_json_holds_the_names_as_they_are_in_escapes(acting, name, capsys):
    line = line_of(name, acting, acting.folder / "json")
    line = line[:-2] if name == "predict" else line
    assert call(*line, "--json", "--quiet") == 0
    out = capsys.readouterr().out
    assert ACTING.findall(out) == []
    if name == "predict":
        assert {json.loads(row)["item"] for row in out.splitlines()} <= set(ITEMS)
    else:
        path = {
            "inspect": acting.log.name,
            "train": f"{acting.folder}/json.poem",
            "convert": f"{acting.folder}/json.parquet",
        }
        assert json.loads(out)["policy" if name == "train" else "log"] == path[name]


def on_terminal(*arguments):
    """Run a command whose stdout is a terminal, and return what it shows."""
    ours, theirs = pty.openpty()
    line = [sys.executable, "-m", "poem", *map(str, arguments)]
    with subprocess.Popen(line, stdout=theirs, stderr=subprocess.DEVNULL, env={**os.environ, "TERM": "xterm"}):
        os.close(theirs)
        shown = b""
        while True:
            try:
                shown += os.read(ours, 1 << 16)
            except OSError:  # the command has ended
                break
    os.close(ours)
    return shown.decode()


@pytest.mark.parametrize("name", ["inspect", "predict"])
def test_on_a_real_terminal_only_poem_s_own_colours_act(acting, name):
    line = line_of(name, acting)
    shown = on_terminal(*(line[:-2] if name == "predict" else line))
    assert len(shown) > 200
    assert ACTING.findall(re.sub(r"\x1b\[[0-9;]*m|\r\n", "", shown)) == []
    assert "\x1b[31m" not in shown  # the column's name, not a colour of poem's
    assert "\\x1b" in shown


# ---- text and tables -------------------------------------------------------------------------------


def test_characters_that_act_are_shown_and_others_left_alone():
    assert visible("a\x1b[31mb\rc\x9b\u202e\u2066\u2028\ud800") == r"a\x1b[31mb\rc\x9b\u202e\u2066\u2028\ud800"
    kept = "Weißbier 日本 👩‍👩‍👧 می‌خواهم עברית é\n\tλ\u00a0\\x1b"
    assert visible(kept) == kept
    assert visible_line("a\nb\tc") == r"a\nb\tc"


@given(st.text())
@settings(max_examples=200, deadline=None)
def test_any_text_is_harmless_and_json_comes_back(text):
    shown = str(Sheet(text, Grid(("name",), [(text,)])))
    assert not ACTING.search(shown)
    assert not ACTING.search(visible_line(text) + as_json([text], indent=None))
    assert shown.count("\n") == text.count("\n") + 3
    assert json.loads(as_json({"x": text})) == {"x": text}


# ---- spreadsheets ----------------------------------------------------------------------------------


def cells(content):
    return list(csv.reader(io.StringIO(content, newline="")))


def runs(cell):
    """Tell whether a spreadsheet would take a cell for a formula."""
    begins = len(cell) > 1 and cell[0] in "=+-@\t\r\n＝＋－＠"
    return begins and not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", cell)


texts = st.lists(
    st.none() | st.text(st.sampled_from("=+-@\t\n＝'\"1.e,;a "), min_size=1, max_size=5), min_size=1, max_size=20
)


@given(texts, st.sampled_from(["x", "=x", "'=x", "-1", "@"]))
@settings(max_examples=150, deadline=None)
def test_no_cell_is_a_formula_and_every_text_comes_back(tmp_path_factory, values, name):
    table = pa.table({name: pa.array(values, pa.string()), "text": ["text"] * len(values)})
    content = io.BytesIO()
    write_csv(table, content)
    assert not [cell for row in cells(content.getvalue().decode()) for cell in row if runs(cell)]
    path = tmp_path_factory.getbasetemp() / "formulas.csv"
    path.write_bytes(content.getvalue())
    assert read_table(path, texts=[name]).to_pydict() == table.to_pydict()


def test_text_of_any_type_is_guarded_and_numbers_are_left_alone(tmp_path):
    texts = ["=1", "-2.5", None]
    kinds = (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.binary_view(), pa.large_binary())
    columns = {str(kind): pa.array(texts).cast(kind) for kind in kinds}
    columns |= {
        "categories": pa.array(texts).dictionary_encode(),
        "fixed": pa.array([b"=1", b"ok", None], pa.binary(2)),
    }
    columns |= {
        "float": [-1.5, 2.0, None],
        "int": [-1, 2, None],
        "decimal": pa.array([-1, 2, None], pa.decimal128(5, 2)),
    }
    path = write_table(pa.table(columns), tmp_path / "table.csv")
    first, second = cells(path.read_text())[1:3]
    assert first == ["'=1"] * 8 + ["-1.5", "-1", "-1.00"]
    assert second[:7] == ["-2.5"] * 7


def test_decisions_in_csv_are_the_next_log(acting, tmp_path):
    policy = poem.load_policy(acting.policy)
    for name in ("decisions.csv", "decisions.parquet"):
        asked = ("--sample", "--seed", "7", "--floor", "0.9", "--quiet", "-o", tmp_path / name)
        assert call("predict", acting.policy, acting.contexts, *asked) == 0
    found = cells((tmp_path / "decisions.csv").read_bytes().decode())
    assert not [cell for row in found for cell in row if runs(cell)]
    with (tmp_path / "next.csv").open("w", newline="") as file:
        csv.writer(file).writerows([[*found[0], "click"], *([*row, "1"] for row in found[1:])])
    items = pq.read_table(tmp_path / "decisions.parquet").column("item").to_pylist()
    assert {"+x", "-x", "@me", "-1", "=HYPERLINK(0)"} <= set(items)
    log = read_log_for(policy, tmp_path / "next.csv")
    assert [log.labels[code] for code in log.y] == items
    np.testing.assert_allclose(log.log_propensity, policy.with_floor(0.9).log_prob_of(log))
