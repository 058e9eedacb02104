"""The paper's experiments as a whole: Yeast, Ctrl-C and the command line."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from types import SimpleNamespace

import pytest
from made_up_results import RELEASE, Page, run_of, table_lines, timeless
from test_cli import RUN, exit_code
from test_datasets import SHARED

from poem.errors import InputError
from poem.experiments import ITEMS, PROTOCOLS, reproduce
from poem.experiments.record import COLUMNS, Record
from poem.experiments.run import SKYLINE_C, data_named, perform
from poem.experiments.schedule import run_all
from poem.experiments.spec import FROM_LABELS, FROM_LOG, TABLES
from poem.learning.fitting import MULTIPLIERS
from poem.simulation.datasets import CATALOG

needs_data = pytest.mark.skipif(not SHARED.is_dir(), reason="the paper's data are not on this machine")


# ---- Yeast, from the labels to the files -----------------------------------------------------------


def yeast(out, items=TABLES, **changes):
    options = {"dataset": "yeast", "runs": 1, "protocol": "release", "jobs": 1, "data": SHARED, "out": out}
    return reproduce(items, **(options | changes))


def state_of(path):
    return path.read_bytes(), path.stat().st_mtime_ns


@pytest.fixture(scope="module")
def run_of_yeast(tmp_path_factory):
    """All tables of one run on Yeast under the release protocol."""
    out = tmp_path_factory.mktemp("yeast") / "new" / "results"
    return SimpleNamespace(out=out, made=yeast(out), results=list(Record(out / "runs.csv")))


def value(run, method, measure="expected_loss"):
    (found,) = [getattr(result, measure) for result in run.results if result.method == method and result.chosen]
    return found


@needs_data
def test_losses_on_yeast_are_near_those_of_the_paper(run_of_yeast):
    assert 5.0 < value(run_of_yeast, "h0") < 5.9
    assert 2.7 < value(run_of_yeast, "CRF", "map_loss") < 2.95
    assert value(run_of_yeast, "no label") == pytest.approx(4.252, abs=0.001)
    assert value(run_of_yeast, "uniform") == 7.0
    for method in FROM_LOG[1:]:
        assert 2.822 < value(run_of_yeast, method) < value(run_of_yeast, "h0")


@needs_data
def test_choosing_no_label_costs_the_labels_of_a_row(run_of_yeast):
    assert value(run_of_yeast, "no label") == data_named("yeast", str(SHARED)).y_test.sum(axis=1).mean()


@needs_data
def test_every_fit_is_recorded_with_what_it_was_chosen_by(run_of_yeast):
    counts = Counter(result.method for result in run_of_yeast.results)
    assert counts == dict.fromkeys(FROM_LABELS + FROM_LOG, 1) | {"CRF": 5, "POEM(B)": 7, "POEM(S)": 7}
    for method, values in (("CRF", SKYLINE_C), ("POEM(B)", MULTIPLIERS), ("POEM(S)", MULTIPLIERS)):
        fits = [result for result in run_of_yeast.results if result.method == method]
        assert tuple(fit.c for fit in fits) == values
        assert [fit.chosen for fit in fits] == [fit.validation == min(f.validation for f in fits) for fit in fits]
        assert all(fit.cpu_seconds > 0.0 for fit in fits)


@needs_data
def test_the_files_are_there_and_say_the_same(run_of_yeast):
    stem = "release-table1-table2-table3-table4-yeast"
    names = ["runs.csv", f"{stem}.md", f"{stem}.html"]
    assert [file.name for file in run_of_yeast.made.files] == names
    assert sorted(file.name for file in run_of_yeast.out.iterdir()) == sorted(names)
    text = (run_of_yeast.out / f"{stem}.md").read_text(encoding="utf-8")
    assert text.startswith("# ")
    assert text.endswith(run_of_yeast.made.markdown)
    shown = Page((run_of_yeast.out / f"{stem}.html").read_text(encoding="utf-8")).shown
    tables = table_lines(text)
    assert len(tables) == 8
    for head, _rule, *rows in tables:
        for line in [head, *rows]:
            cells = line.strip("| ").split(" | ")
            assert line.count("|") == head.count("|")
            assert set(cells) - {""} <= set(shown)


@needs_data
@pytest.mark.parametrize("number", range(1, 5))
def test_every_table_names_the_data(run_of_yeast, number):
    section = run_of_yeast.made.markdown.split(f"## Table {number}")[1].split("## ")[0]
    assert "LibSVM" in section


@needs_data
def test_the_same_call_again_runs_nothing(run_of_yeast):
    before = state_of(run_of_yeast.out / "runs.csv")
    begin = time.perf_counter()
    again = yeast(run_of_yeast.out)
    assert time.perf_counter() - begin < 2.0
    assert state_of(run_of_yeast.out / "runs.csv") == before
    assert again == run_of_yeast.made


@needs_data
def test_an_interrupted_run_goes_on_where_it_stopped(run_of_yeast, tmp_path):
    """The fits of one method are missing or cut off: they alone are added."""
    lines = (run_of_yeast.out / "runs.csv").read_bytes().splitlines(keepends=True)
    last = [position for position, line in enumerate(lines) if b",POEM(S)," in line]
    kept = b"".join(lines[: last[3]])
    path = tmp_path / "runs.csv"
    path.write_bytes(kept + lines[last[3]][:40])
    made = yeast(tmp_path)
    assert path.read_bytes().startswith(kept)
    added = path.read_bytes()[len(kept) :].splitlines()
    assert len(added) == 7
    assert all(b",POEM(S)," in line for line in added)
    assert timeless(Record(path)) == timeless(run_of_yeast.results)
    assert made.markdown.split("## Table 3")[0] == run_of_yeast.made.markdown.split("## Table 3")[0]


@needs_data
def test_results_depend_neither_on_the_jobs_nor_on_what_else_is_run(run_of_yeast, tmp_path):
    runs = [run_of("h0", "IPS(S)", seed=seed) for seed in range(2)]
    record = Record(tmp_path / "runs.csv")
    run_all(runs, RELEASE, str(SHARED), record, jobs=2, progress=False)
    among_others = [result for result in run_of_yeast.results if result.method in ("h0", "IPS(S)")]
    alone = perform(runs[1], RELEASE, str(SHARED))
    assert timeless(record) == timeless(among_others + alone)
    assert list(Record(record.path)) == list(record)


@needs_data
def test_the_sizes_of_the_data_need_no_run(tmp_path):
    made = yeast(tmp_path, ["table1"], runs=3)
    assert "| Yeast | 103 | 14 | 1500 | 917 | 4.23 / 4.25 |" in made.markdown
    assert sorted(file.name for file in tmp_path.iterdir()) == ["release-table1-yeast.html", "release-table1-yeast.md"]


# ---- Ctrl-C ----------------------------------------------------------------------------------------


def living(group):
    """The processes of a group that have not ended (one that has ended may wait for init to notice)."""
    listed = subprocess.run(["ps", "-ewwo", "pgid=,stat=,args="], capture_output=True, text=True, check=True).stdout
    fields = [line.split(None, 2) for line in listed.splitlines()]
    return [line for line in fields if line[0] == str(group) and not line[1].startswith("Z")]


def wait_for(condition, process):
    deadline = time.monotonic() + 60.0
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def reproducing(tmp_path):
    """``poem reproduce`` on three runs with two workers, in a process group of its own, as a terminal has it."""
    out = tmp_path / "results"
    options = ["--dataset", "yeast", "--runs", "3", "--protocol", "release", "--jobs", "2"]
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, "reproduce", "table2", *options, "--data", str(SHARED), "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    )
    with process:
        yield SimpleNamespace(process=process, out=out)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def interrupt(process):
    """Press Ctrl-C: the signal goes to the workers as well, and they may be faster."""
    process.send_signal(signal.SIGSTOP)
    os.killpg(process.pid, signal.SIGINT)
    time.sleep(0.3)
    process.send_signal(signal.SIGCONT)
    out, err = process.communicate(timeout=30)
    deadline = time.monotonic() + 5.0
    while living(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return out, err


needs_ps = pytest.mark.skipif(shutil.which("ps") is None, reason="ps is not on this machine")


@needs_data
@needs_ps
def test_ctrl_c_keeps_what_is_done_and_leaves_no_process(reproducing):
    path = reproducing.out / "runs.csv"
    wait_for(lambda: path.exists() and path.read_bytes().count(b"\n") > 1, reproducing.process)
    out, err = interrupt(reproducing.process)
    assert reproducing.process.returncode == 130
    assert out == ""
    assert "poem: interrupted" in err
    assert "Traceback" not in err
    assert living(reproducing.process.pid) == []
    assert path.read_bytes().endswith(b"\n")
    assert [file.name for file in reproducing.out.iterdir()] == ["runs.csv"]
    methods = Counter(result.method for result in Record(path))
    assert methods in ({"no label": 1, "uniform": 1, "CRF": 5}, {"no label": 2, "uniform": 2, "CRF": 10})


@needs_data
@needs_ps
def test_ctrl_c_while_the_workers_start_is_no_less_calm(reproducing):
    group = reproducing.process.pid
    wait_for(lambda: sum("spawn_main" in line[2] for line in living(group)) >= 2, reproducing.process)
    time.sleep(0.3)  # now they import poem
    out, err = interrupt(reproducing.process)
    assert reproducing.process.returncode == 130
    assert out == ""
    assert living(reproducing.process.pid) == []
    assert [file.name for file in reproducing.out.iterdir()] == ["runs.csv"]
    assert list(Record(reproducing.out / "runs.csv")) == []  # its first line, to see that it can be written
    said = [line for line in err.splitlines() if line and not line.startswith("reproduce: 0/")]  # but progress
    assert said == ["poem: interrupted; nothing was left half-written"]


# ---- the command line ------------------------------------------------------------------------------


def test_help_names_every_item_set_and_protocol(capsys):
    assert exit_code("reproduce", "--help") == 0
    out, err = capsys.readouterr()
    assert out.startswith("usage: poem reproduce")
    assert "Example:" in out
    assert err == ""
    for word in (*ITEMS, "all", *CATALOG, *PROTOCOLS, "--runs", "--jobs", "--data", "--out", "--seed", "--quiet"):
        assert re.search(rf"(?<![\w-]){word}\b", out), word


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["table9"], f"poem: there is no 'table9'; choose from {', '.join(ITEMS)}, all."),
        (["table2", "figure4"], f"poem: there is no 'figure4'; choose from {', '.join(ITEMS)}, all."),
        (["--runs", "0"], "poem: runs must be at least 1 and seed at least 0; found runs=0, seed=0."),
        (["--seed", "-1"], "poem: runs must be at least 1 and seed at least 0; found runs=10, seed=-1."),
        (["--jobs", "0"], "poem: jobs must not be 0. Pass 1 for one process or -1 for one for each core."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_arguments_are_reported_in_one_line_and_leave_nothing(tmp_path, capsys, arguments, message):
    out = tmp_path / "results"
    assert exit_code("reproduce", *arguments, "--dataset", "yeast", "--out", str(out)) == 2
    assert capsys.readouterr() == ("", message + "\n")
    assert not out.exists()


@pytest.mark.parametrize("arguments", [["--dataset", "mnist"], ["--protocol", "mine"], ["--runs", "ten"]], ids=" ".join)
def test_wrong_usage_shows_the_choices(tmp_path, capsys, arguments):
    out = tmp_path / "results"
    assert exit_code("reproduce", "table1", *arguments, "--out", str(out)) == 2
    assert "usage: poem reproduce" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"items": []}, "there is no 'item'; choose from table1"),
        ({"dataset": "mnist"}, "dataset must be all or one of scene, yeast, tmc, lyrl; found 'mnist'"),
        ({"protocol": "mine"}, "protocol must be one of paper, release; found 'mine'"),
    ],
    ids=["items", "dataset", "protocol"],
)
def test_bad_arguments_of_the_function_are_refused(tmp_path, changes, message):
    with pytest.raises(InputError, match=message):
        reproduce(**({"items": ["table1"], "out": tmp_path / "results"} | changes))
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """A machine without data."""
    monkeypatch.delenv("POEM_DATA", raising=False)
    monkeypatch.setenv("POEM_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    (tmp_path / "data").mkdir()
    return tmp_path


@pytest.mark.parametrize("quiet", [["--quiet"], []], ids=["quiet", "talking"])
def test_data_that_are_nowhere_are_reported_and_leave_nothing(nowhere, capsys, quiet):
    arguments = ["--dataset", "lyrl", "--data", str(nowhere / "data"), "--out", str(nowhere / "results")]
    assert exit_code("reproduce", "table1", *arguments, *quiet) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"poem: lyrl was not found in {nowhere / 'data'}, {nowhere / 'cache'}")
    assert "lyrl_rcv1sub_train.svm.bz2" in err
    assert len(err.splitlines()) == 1
    assert not (nowhere / "results").exists()


@needs_data
def test_tables_go_to_stdout_and_the_names_of_files_to_stderr(tmp_path, capsys):
    arguments = ["--dataset", "yeast", "--data", str(SHARED), "--out", str(tmp_path)]
    assert exit_code("reproduce", "table1", *arguments) == 0
    out, err = capsys.readouterr()
    assert out.startswith("## ")
    assert "| Yeast | 103 |" in out
    assert err == f"files: {tmp_path / 'paper-table1-yeast.md'}, {tmp_path / 'paper-table1-yeast.html'}\n"
    assert exit_code("reproduce", "table1", *arguments, "--quiet") == 0
    assert capsys.readouterr() == (out, "")


@needs_data
@pytest.mark.parametrize("content", [b"name,loss\n", ",".join(COLUMNS).encode() + b"\nrelease,yeast\n"])
def test_a_record_that_cannot_be_read_is_reported_in_one_line(tmp_path, capsys, content):
    (tmp_path / "runs.csv").write_bytes(content)
    arguments = ["--dataset", "yeast", "--data", str(SHARED), "--out", str(tmp_path)]
    assert exit_code("reproduce", "table2", *arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("poem: ")
    assert str(tmp_path / "runs.csv") in err
    assert len(err.splitlines()) == 1
    assert (tmp_path / "runs.csv").read_bytes() == content


def test_a_folder_that_is_none_is_refused_at_once(tmp_path, capsys):
    out = tmp_path / "results"
    assert exit_code("reproduce", "table1", "--data", str(tmp_path / "nowhere"), "--out", str(out)) == 2
    assert "nowhere' is not a folder" in capsys.readouterr().err
    assert not out.exists()


@needs_data
def test_an_output_folder_that_is_a_file_is_refused(tmp_path, capsys):
    out = tmp_path / "results"
    out.write_text("mine")
    assert exit_code("reproduce", "table1", "--dataset", "scene", "--data", str(SHARED), "--out", str(out)) == 2
    assert "is a file" in capsys.readouterr().err
    assert out.read_text() == "mine"
