"""What is shown: tables as text, in a terminal and in a notebook; nothing from a log is taken as HTML or markup."""

import io
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from rich.console import Console

import poem
from poem.commands.arguments import print_sheet
from poem.text import Grid, Sheet, as_json, counted

HOSTILE = "<script>alert('x')</script>\"&[bold red]"


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.names, self.open, self.text = set(), [], ""

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def parsed(html):
    tags = Tags()
    tags.feed(html)
    tags.close()
    assert not tags.open
    return tags


def hostile_log(n=300, **options):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    return poem.BanditLog(
        np.ones((n, 1)),
        np.array([HOSTILE, "b"])[y],
        loss=(y + rng.random(n) > 0.7).astype(float),
        propensity=np.full(n, 0.5),
        feature_names=[HOSTILE],
        **options,
    )


@pytest.fixture(scope="module")
def shown():
    log = hostile_log(logger=np.array([HOSTILE, "c"])[np.arange(300) % 2])
    fit = poem.fit(hostile_log(), learners="ips", loss_bounds=(0, 1), progress=False)
    policy = poem.constant_policy(log, "b").with_floor(0.3)
    return {
        "log": log,
        "fit": fit,
        "table": fit.table,
        "certificate": fit.certificate,
        "evaluation": poem.evaluate({HOSTILE: policy}, log, ["IPS", "SNIPS"]),
        "health": poem.inspect(log),
        "watch": poem.watch(policy, hostile_log(), loss_bounds=(0, 1)),
    }


@pytest.mark.parametrize("name", ["log", "fit", "table", "certificate", "evaluation", "health", "watch"])
def test_notebooks_show_tables_in_which_everything_is_escaped(shown, name):
    tags = parsed(shown[name]._repr_html_())
    assert tags.names <= {"div", "p", "table", "thead", "tbody", "tr", "th", "td"}
    assert name == "certificate" or "table" in tags.names
    assert HOSTILE in tags.text or name not in ("log", "evaluation")


def test_text_html_and_terminal_say_the_same(shown):
    evaluation = shown["evaluation"]
    cells = repr(evaluation).split()
    console = Console(file=io.StringIO(), width=200, force_terminal=True, color_system="truecolor")
    console.print(evaluation.sheet())
    terminal = console.file.getvalue()
    assert "\x1b[1m" in terminal
    html = parsed(evaluation._repr_html_()).text
    for cell in cells:
        if cell.strip("─"):
            assert cell in html
            assert cell in terminal


def test_columns_of_wide_characters_are_aligned():
    text = str(Grid(("name", "n"), [("東京", "1"), ("Ulm", "22")])).splitlines()
    assert text == ["name   n", "────  ──", "東京   1", "Ulm   22"]


@pytest.mark.parametrize("width", [30, 60, 100])
def test_a_table_is_no_wider_than_the_terminal(shown, width):
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    console.print(shown["evaluation"].sheet())
    assert max(map(len, console.file.getvalue().splitlines())) <= width


@pytest.mark.parametrize(
    ("tty", "no_color", "coloured"), [(True, False, True), (True, True, False), (False, False, False)]
)
def test_colours_are_for_terminals_that_want_them(capsys, monkeypatch, tty, no_color, coloured):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: tty, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    (monkeypatch.setenv if no_color else monkeypatch.delenv)("NO_COLOR", *(["1"] if no_color else [False]))
    print_sheet(Sheet(f"Certified: {HOSTILE}", Grid(("a",), [("1",)])))
    out = capsys.readouterr().out
    assert HOSTILE in out
    assert ("\x1b[1;32mCertified:" in out) is coloured
    assert ("\x1b[" in out) is tty  # bold is no colour
    assert tty or out == f"Certified: {HOSTILE}\na\n─\n1\n"


def test_json_knows_no_infinity():
    assert as_json({"a": [float("inf"), (float("nan"), 1.5)]}, indent=None) == '{"a": [null, [null, 1.5]]}'


@pytest.mark.parametrize(
    ("number", "what", "words"),
    [(0, "row", "0 rows"), (1, "such row", "1 such row"), (1200, "class", "1,200 classes"), (2, "entry", "2 entries")],
)
def test_things_are_counted_in_words(number, what, words):
    assert counted(number, what) == words
