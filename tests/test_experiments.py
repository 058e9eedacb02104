"""The parts of the paper's experiments, on made-up results."""

import csv
import os
import re
from collections import Counter
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
from made_up_results import LOGGING, PAPER, RELEASE, Page, candidates, made_up, run_of, table_lines
from matplotlib.image import imread
from scipy import stats

from poem.errors import DatasetError
from poem.experiments import PROTOCOLS, paper
from poem.experiments.document import Grid, Picture, Section, Text, to_html, to_markdown
from poem.experiments.figures import curves_of, section_of
from poem.experiments.record import COLUMNS, Record
from poem.experiments.reproduction import sections_of
from poem.experiments.run import SKYLINE_C
from poem.experiments.spec import FROM_LABELS, FROM_LOG, SWEEPS, Logging, runs_for, table_logging
from poem.experiments.summary import Results, paired_test
from poem.experiments.tables import spread
from poem.learning.fitting import MULTIPLIERS
from poem.simulation.datasets import Dataset

every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)


@pytest.fixture
def tiny():
    """Two training rows and a test row under the name of Yeast."""
    labels = np.array([[1, 0], [0, 1]])
    return Dataset("yeast", "made up", np.eye(2), labels, np.eye(2)[:1], labels[:1])


# ---- tests and summaries ---------------------------------------------------------------------------


@pytest.mark.parametrize("runs", [2, 3, 10])
@pytest.mark.parametrize("shift", [-1.0, 0.0, 0.3, 2.0])
def test_the_paired_test_is_that_of_scipy(runs, shift):
    rng = np.random.default_rng(runs)
    first, second = rng.normal(shift, size=runs), rng.normal(size=runs)
    expected = stats.ttest_rel(first, second, alternative="greater")
    found = paired_test(first, second)
    assert found.t == pytest.approx(expected.statistic, rel=1e-10)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-10)
    assert found.difference == pytest.approx(np.mean(first - second), rel=1e-12)
    assert found.significant == (expected.pvalue < 0.05)


@pytest.mark.parametrize(
    ("difference", "t", "p", "significant"),
    [(0.5, np.inf, 0.0, True), (-0.5, -np.inf, 1.0, False), (0.0, 0.0, 1.0, False)],
)
def test_a_difference_without_any_spread_is_as_sure_as_can_be(difference, t, p, significant):
    second = np.array([1.0, 2.0, 4.0])
    found = paired_test(second + difference, second)
    assert (found.difference, found.t, found.p, found.significant) == (difference, t, p, significant)


@pytest.mark.parametrize("runs", [0, 1])
def test_one_run_is_not_tested(runs):
    assert paired_test(np.ones(runs), np.zeros(runs)) is None


def test_results_are_given_in_the_order_of_the_seeds_that_were_asked_for():
    results = Results([made_up(loss=float(seed), seed=seed) for seed in (4, 2, 3, 9)], range(2, 5))
    assert results.values("yeast", LOGGING, "h0").tolist() == [2.0, 3.0, 4.0]
    assert results.values("yeast", LOGGING, "h0", "map_loss").tolist() == [1.0, 1.5, 2.0]
    assert len(results.values("yeast", replace(LOGGING, replay=8), "h0")) == 0
    assert len(results.values("scene", LOGGING, "h0")) == 0


def test_of_several_fits_the_chosen_one_counts():
    fits = candidates("POEM(B)", MULTIPLIERS)
    results = Results([replace(fit, expected_loss=float(i)) for i, fit in enumerate(fits)], [0])
    assert results.values("yeast", LOGGING, "POEM(B)").tolist() == [1.0]
    assert [len(fits) for fits in results.fits("yeast", LOGGING, "POEM(B)")] == [7]


@pytest.mark.parametrize(("values", "text"), [([], ""), ([1.0], "1.000"), ([1.0, 3.0], "2.000 ± 1.414")])
def test_a_cell_is_the_mean_and_the_deviation(values, text):
    assert spread(np.array(values)) == text


# ---- the record ------------------------------------------------------------------------------------

AWKWARD = [
    made_up(loss=0.1 + 0.2, validation=1e-300, cpu_seconds=1.0 + 2.0**-52, lam=1 / 3, steps=7),
    made_up(
        "CRF", logging=None, c=0.01, chosen=False, validation=np.inf, problems="ignores x; avoids “the log”, often"
    ),
    made_up("IPS(S)", data="a subset, of topics", seed=3, lam=0.0),
]


def recorded(path, results):
    """A record of some results, read again from its file."""
    Record(path).add(results)
    return Record(path)


def test_results_come_back_as_they_were(tmp_path):
    path = tmp_path / "runs.csv"
    assert list(recorded(path, AWKWARD)) == AWKWARD
    assert path.read_text(encoding="utf-8").splitlines()[0] == ",".join(COLUMNS)
    assert [result.logging for result in Record(path)] == [LOGGING, None, LOGGING]


def test_numbers_of_numpy_come_back_as_well(tmp_path):
    """They are floats too, and one that slips in must not make the file unreadable."""
    result = made_up(loss=np.float64(0.1), validation=np.float64(1 / 3))
    assert list(recorded(tmp_path / "runs.csv", [result])) == [result]


def test_results_are_appended_below_one_heading(tmp_path):
    path = tmp_path / "runs.csv"
    record = recorded(path, AWKWARD[:1])
    before = path.read_bytes()
    record.add(AWKWARD[1:])
    assert path.read_bytes().startswith(before)
    assert len(path.read_bytes().splitlines()) == 1 + len(AWKWARD)
    assert list(record) == list(Record(path)) == AWKWARD


@pytest.mark.parametrize("cut", [1, 2, 25])  # just its newline, a digit as well, half of the line
def test_a_line_that_was_cut_off_is_dropped_and_run_again(tmp_path, tiny, cut):
    path = tmp_path / "runs.csv"
    Record(path).add([made_up("h0"), made_up("IPS(B)")])
    whole = path.read_bytes()
    os.truncate(path, len(whole) - cut)
    record = Record(path)
    assert list(record) == [made_up("h0")]
    assert record.missing(run_of("h0", "IPS(B)"), RELEASE, tiny) == run_of("IPS(B)")
    record.add([made_up("IPS(B)")])
    assert path.read_bytes() == whole
    assert Record(path).missing(run_of("h0", "IPS(B)"), RELEASE, tiny) is None


@pytest.mark.parametrize("content", [b"", b"protocol,data"], ids=["empty", "half a heading"])
def test_a_file_without_a_whole_line_is_begun_again(tmp_path, content):
    path = tmp_path / "runs.csv"
    path.write_bytes(content)
    assert list(Record(path)) == []
    assert list(recorded(path, AWKWARD)) == AWKWARD


@pytest.mark.parametrize("end", [b"", b"\n"], ids=["no newline", "newline"])
def test_a_file_of_other_columns_is_refused_and_left_as_it_is(tmp_path, end):
    path = tmp_path / "runs.csv"
    path.write_bytes(b"name,loss\nmine,1" + end)
    with pytest.raises(DatasetError, match=r"runs.csv' has other columns than this poem writes.*--out"):
        Record(path)
    assert path.read_bytes() == b"name,loss\nmine,1" + end


def test_a_file_of_one_line_that_is_not_ours_is_not_deleted(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_bytes(b"my notes")
    with pytest.raises(DatasetError):
        Record(path)
    assert path.read_bytes() == b"my notes"


def changed_cell(line, column, value):
    cells = next(csv.reader([line]))
    cells[COLUMNS.index(column)] = value
    return ",".join(cells)


@pytest.mark.parametrize(
    "broken",
    [
        lambda line: "",
        lambda line: line + ",more",
        lambda line: line.rsplit(",", 1)[0],
        lambda line: changed_cell(line, "chosen", "yes"),
        lambda line: changed_cell(line, "seed", ""),
        lambda line: changed_cell(line, "seed", "1.5"),
        lambda line: changed_cell(line, "expected_loss", "five"),
        lambda line: changed_cell(line, "expected_loss", ""),
        lambda line: changed_cell(line, "lam", "many"),
    ],
    ids=["blank", "a cell more", "a cell less", "flag", "no seed", "half a seed", "word", "no loss", "word for λ"],
)
def test_a_broken_line_is_named(tmp_path, broken):
    path = tmp_path / "runs.csv"
    Record(path).add([made_up("h0"), made_up("IPS(B)"), made_up("IPS(S)")])
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[2] = broken(lines[2])
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(DatasetError, match=r"line 3 of '.*runs.csv' is broken: .+\. Delete the line"):
        Record(path)


def test_a_file_that_is_not_text_is_refused(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_bytes(",".join(COLUMNS).encode() + b"\n\xff\xfe\n")
    with pytest.raises(DatasetError):
        Record(path)


@pytest.mark.parametrize(
    "change",
    [{"poem": "0.0.1"}, {"protocol": "paper"}, {"data": "another form"}, {"seed": 1}, {"replay": 8}, {"fraction": 0.1}],
    ids=lambda change: next(iter(change)),
)
def test_a_result_of_anything_else_does_not_count_as_done(tmp_path, tiny, change):
    record = recorded(tmp_path / "runs.csv", [replace(made_up("h0"), **change)])
    assert record.missing(run_of("h0"), RELEASE, tiny) == run_of("h0")
    record.add([made_up("h0")])
    assert record.missing(run_of("h0"), RELEASE, tiny) is None


@pytest.mark.parametrize(
    ("method", "values", "logging"), [("POEM(S)", MULTIPLIERS, LOGGING), ("CRF", SKYLINE_C, None)], ids=["POEM", "CRF"]
)
def test_a_method_that_chooses_is_done_when_all_its_fits_are_there(tmp_path, tiny, method, values, logging):
    fits, run = candidates(method, values, logging=logging), run_of(method, logging=logging)
    record = recorded(tmp_path / "runs.csv", fits[:-1])
    assert record.missing(run, RELEASE, tiny) == run
    record.add(fits)  # run again as a whole: those that were there must not count twice
    assert record.missing(run, RELEASE, tiny) is None
    assert list(Record(record.path)) == fits


# ---- what is to be run -----------------------------------------------------------------------------


@every_protocol
def test_tables_and_a_figure_share_what_they_have_in_common(protocol):
    runs = runs_for(["table2", "table4", "figure2"], "yeast", protocol, range(2))
    assert max(Counter((run.dataset, run.logging, run.seed) for run in runs).values()) == 1
    methods = {(run.logging, run.seed): run.methods for run in runs}
    assert methods[table_logging(protocol), 1] == FROM_LOG
    assert methods[None, 1] == FROM_LABELS
    others = {logging.fraction: names for (logging, seed), names in methods.items() if logging and seed == 0}
    assert others.pop(0.05) == FROM_LOG
    assert others == dict.fromkeys((0.01, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0), ("h0", "POEM(S)"))
    assert len(runs) == 2 * 9


def test_repetitions_come_one_after_the_other():
    runs = runs_for(["table2", "figure1"], "yeast", PAPER, range(5, 8))
    assert [run.seed for run in runs] == sorted(run.seed for run in runs)
    assert {run.seed for run in runs} == {5, 6, 7}


def test_the_skyline_of_figure_1_is_that_of_table_2():
    assert [run for run in runs_for(["figure1"], "yeast", PAPER, [0]) if run.logging is None] == [
        run_of("CRF", logging=None)
    ]
    together = runs_for(["figure1", "table2"], "yeast", PAPER, [0])
    assert [run.methods for run in together if run.logging is None] == [FROM_LABELS]


@pytest.mark.parametrize(
    ("item", "sets"),
    [
        ("table1", set()),
        ("table2", {"scene", "yeast", "tmc", "lyrl"}),
        ("table3", {"scene", "yeast", "tmc", "lyrl"}),
        ("table4", {"scene", "yeast", "tmc", "lyrl"}),
        ("figure1", {"yeast"}),
        ("figure2", {"yeast"}),
        ("figure3", {"lyrl"}),
    ],
)
def test_all_sets_are_those_of_the_paper(item, sets):
    assert {run.dataset for run in runs_for([item], "all", PAPER, [0])} == sets
    assert {run.dataset for run in runs_for([item], "scene", PAPER, [0])} == (sets and {"scene"})


@pytest.mark.parametrize(("protocol", "C", "replay"), [(PAPER, 1.0, 4), (RELEASE, 10.0, 8)], ids=PROTOCOLS)
def test_the_figures_have_their_own_logging(protocol, C, replay):
    first, third = (SWEEPS[name].loggings(protocol) for name in ("figure1", "figure3"))
    assert first == [Logging(C, 0.05, 1.0, 2**power) for power in range(9)]
    assert third == [Logging(protocol.logger_C, 0.05, 2.0**power, replay) for power in range(-1, 6)]


@pytest.mark.parametrize("name", SWEEPS)
def test_the_paper_has_a_point_for_each_of_ours(name):
    for points in paper.CURVES[name].values():
        assert set(points) == set(SWEEPS[name].values)


# ---- tables and figures of made-up results ---------------------------------------------------------


def test_a_table_mixes_nothing_else_in(tmp_path, tiny):
    mine = [made_up(loss=loss, seed=seed) for seed, loss in enumerate((1.0, 3.0))]
    changes = [{"protocol": "paper"}, {"poem": "0.0.1"}, {"data": "another form"}, {"seed": 2}, {"replay": 8}]
    others = [replace(made_up(loss=100.0), **change) for change in changes]
    record = recorded(tmp_path / "runs.csv", others + mine)
    sections, pictures = sections_of(["table2"], "yeast", RELEASE, record, {"yeast": tiny}, range(2))
    text = to_markdown(sections)
    assert "| h0 | 5.547 | 2.000 ± 1.414 |" in text
    assert "100" not in text
    assert pictures == {}


def test_a_table_tests_the_chosen_fits_and_names_the_degenerate(tmp_path, tiny):
    results = []
    for seed, loss in enumerate((4.0, 4.1, 4.3)):
        results.append(made_up("IPS(B)", loss + 0.5, seed))
        fits = candidates("POEM(B)", MULTIPLIERS, loss=loss, seed=seed)
        results += [replace(fit, expected_loss=loss + 1.0, problems="ignores x") for fit in fits[:1]] + fits[1:]
        results[-6] = replace(results[-6], problems="avoids the log; ignores x" if seed else "")
    record = recorded(tmp_path / "runs.csv", results)
    text = to_markdown(sections_of(["table2"], "yeast", RELEASE, record, {"yeast": tiny}, range(3))[0])
    (tested,) = re.findall(r"\| Yeast: IPS\(B\) − POEM\(B\) \| (\S+) \|.*\| (\w+) \|\n", text)
    assert tested == ("+0.500", "yes")
    assert "| Yeast: POEM(B) | 5.133 | 4.133 | 4.133 | 4.133 | 4.133 | 4.133 | 4.133 | 4.133 | 4.133 |" in text
    assert "| POEM(B) | 2 × avoids the log, 2 × ignores x |" in text
    assert "| IPS(B) | none |" in text


def figure_2(dataset, worse_at=(0.35,)):
    """Figure 2 of two made-up runs, in which POEM is worse than h0 at some fractions."""
    results = []
    for logging in SWEEPS["figure2"].loggings(RELEASE):
        poem_loss = 6.0 if logging.fraction in worse_at else 4.0
        for seed in range(2):
            results.append(made_up("h0", 5.0 + seed, seed, logging, dataset=dataset))
            results.append(made_up("POEM(S)", poem_loss + seed, seed, logging, dataset=dataset))
    curves = curves_of(SWEEPS["figure2"], dataset, RELEASE, Results(results, range(2)))
    return section_of(SWEEPS["figure2"], dataset, curves, "made up", "stem")


def test_a_figure_shows_our_points_beside_those_of_the_paper():
    section, files = figure_2("yeast")
    text = to_markdown([section])
    assert "at or below h0's at 7 of 8 values of f" in text
    assert "| 0.05 | 5.520 | 5.500 ± 0.707 | 4.639 | 4.500 ± 0.707 |" in text
    assert "| 0.35 | 4.605 | 5.500 ± 0.707 | 4.016 | 6.500 ± 0.707 |" in text
    assert set(files) == {"stem.svg", "stem.png"}
    assert files["stem.svg"].startswith(b"<?xml")
    assert min(imread(BytesIO(files["stem.png"])).shape[:2]) > 300


def test_points_of_the_paper_are_not_shown_for_other_data():
    text = to_markdown([figure_2("scene", worse_at=())[0]])
    assert "| 0.05 | 5.500 ± 0.707 | 4.500 ± 0.707 |" in text
    assert "poem" in text
    assert ", paper" not in text
    assert "at or below h0's at 8 of 8 values of f" in text


def test_the_same_results_are_the_same_picture():
    assert figure_2("yeast")[1] == figure_2("yeast")[1]
    assert figure_2("yeast")[1] != figure_2("yeast", worse_at=())[1]


# ---- the document ----------------------------------------------------------------------------------

NASTY = '<b>&amp; "x" $title ${body}'
CELLS = Grid(("", "loss <b>", "p & q"), [("h0", "1.0 ± 0.1", NASTY), ("POEM(S)", "0.5", "")])
DOCUMENT = [Section(NASTY, [Text(NASTY), CELLS]), Section("Second", [Picture("a.png", b"<svg/>", NASTY)])]


def test_the_page_is_whole_and_shows_every_text_as_it_is():
    page = Page(to_html(NASTY, DOCUMENT))
    shown = Counter(page.shown)
    assert shown[NASTY] == 5  # title, h1, h2, paragraph, cell
    for cell in ("loss <b>", "p & q", "h0", "1.0 ± 0.1", "POEM(S)", "0.5", "Second"):
        assert shown[cell] == 1
    assert page.alts == [NASTY]
    assert "b" not in page.seen
    assert page.seen.count("tr") == 3
    assert page.seen.count("td") == 4


def test_the_page_needs_nothing_else():
    text = to_html("title", DOCUMENT)
    page = Page(text)
    assert page.links == ["data:image/svg+xml;base64,PHN2Zy8+"]
    assert "script" not in page.seen
    assert "link" not in page.seen
    assert "http" not in text
    assert "url(" not in text
    assert "@import" not in text


def test_a_markdown_table_has_the_same_columns_in_every_line():
    ((head, rule, *rows),) = table_lines(to_markdown(DOCUMENT))
    assert head == "|  | loss <b> | p & q |"
    assert rule == "| --- | ---: | ---: |"
    assert rows == [f"| h0 | 1.0 ± 0.1 | {NASTY} |", "| POEM(S) | 0.5 |  |"]


def test_markdown_blocks_are_apart():
    text = to_markdown(DOCUMENT)
    assert text.startswith(f"## {NASTY}\n\n{NASTY}\n\n|")
    assert f"|\n\n## Second\n\n![{NASTY}](a.png)\n" in text
