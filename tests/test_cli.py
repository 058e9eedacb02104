import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.image import imread

import poem
from poem.cli import main
from poem.learning.portfolio import NAMED

# A shell in the background tells its children to ignore SIGINT; here it must be heard.
RUN = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from poem.cli import main
sys.exit(main())
"""


def run(*arguments, **options):
    """Run the command line in a process of its own."""
    command = [sys.executable, "-c", RUN, *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", timeout=120, check=False, **options
    )


def exit_code(*arguments):
    """Run the command line in this process."""
    try:
        return main(arguments)
    except SystemExit as stop:
        return stop.code


# ---- help and usage -------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [["--help"], ["demo", "--help"]], ids=" ".join)
def test_help_goes_to_stdout_and_ends_well(arguments, capsys):
    assert exit_code(*arguments) == 0
    out, err = capsys.readouterr()
    assert out.startswith("usage: poem")
    assert "Example:" in out
    assert err == ""


def test_help_names_all_options_of_the_demo(capsys):
    exit_code("demo", "--help")
    out = capsys.readouterr().out
    assert all(option in out for option in ("--out", "--seed", "--jobs", "--quiet"))


def test_help_knows_all_learners(capsys):
    exit_code("train", "--help")
    out = " ".join(capsys.readouterr().out.split())
    assert f"one of {', '.join(NAMED)}; auto" in out


def test_help_loads_no_library_that_it_does_not_need():
    code = """
import sys
from poem.cli import main
try:
    main(["train", "--help"])
finally:
    print([name for name in ("numpy", "scipy", "numba", "sklearn", "pyarrow") if name in sys.modules], file=sys.stderr)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert found.stderr == "[]\n"


def test_the_version_is_printed(capsys):
    assert exit_code("--version") == 0
    assert capsys.readouterr().out == f"poem {poem.__version__}\n"


def test_the_installed_command_works():
    script = os.path.join(os.path.dirname(sys.executable), "poem")
    found = subprocess.run([script, "--version"], capture_output=True, text=True, timeout=60, check=False)
    assert (found.returncode, found.stdout) == (0, f"poem {poem.__version__}\n")


@pytest.mark.parametrize("arguments", [[], ["sonnet"], ["demo", "--seed", "x"], ["demo", "--colour"]], ids=" ".join)
def test_wrong_usage_ends_with_2_and_a_hint_on_stderr(arguments, capsys):
    assert exit_code(*arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("usage: poem")
    assert "error:" in err


def test_a_misspelt_option_is_met_with_the_right_one(capsys):
    assert exit_code("train", "log.csv", "-o", "new.poem", "--addditive", "--seeed=3") == 2
    assert capsys.readouterr().err.endswith("--addditive --seeed=3; did you mean --additive, --seed?\n")
    assert exit_code("train", "log.csv", "-o", "new.poem", "--xyzzy") == 2
    assert capsys.readouterr().err.endswith("unrecognized arguments: --xyzzy\n")


# ---- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize("below", [(), ("deeper",)], ids=["in place", "above"])
def test_a_file_in_place_of_the_folder_is_reported_at_once(tmp_path, capsys, below):
    file = tmp_path / "taken"
    file.write_text("mine")
    assert exit_code("demo", "--quiet", "--out", str(file.joinpath(*below))) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("poem: ")
    assert str(file) in err
    assert "Check the path and its permissions." in err
    assert len(err.splitlines()) == 1
    assert file.read_text() == "mine"


@pytest.mark.parametrize(("option", "value"), [("--jobs", "0"), ("--seed", "-1")])
def test_bad_numbers_are_reported_in_one_line(tmp_path, capsys, option, value):
    assert exit_code("demo", "--quiet", "--out", str(tmp_path), option, value) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("poem: ")
    assert option.strip("-") in err
    assert len(err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


# ---- the demo -------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """One quiet run of the demo, into a folder that is not there yet."""
    folder = tmp_path_factory.mktemp("demo") / "new" / "pictures"
    return SimpleNamespace(folder=folder, found=run("demo", "--quiet", "--out", str(folder)))


def test_the_demo_ends_well(demo):
    assert demo.found.returncode == 0
    assert demo.found.stderr == ""


def test_stdout_holds_the_table_only(demo):
    head, rule, *lines = demo.found.stdout.splitlines()
    assert head.startswith("policy ")
    for title in ("expected loss", "MAP loss", "off-policy estimate", "95% interval"):
        assert title in head
    assert set(rule) == {"─", " "}
    names = [line.split("  ")[0] for line in lines]
    assert names[0] == "logging policy"
    assert names[-1] == "full-information skyline"
    assert len(lines) == 12
    assert all(len(line) <= len(rule) and line == line.rstrip() for line in [head, *lines])


def test_the_demo_tells_a_true_story(demo):
    loss = {
        line.split("  ")[0]: float(line.split("  ", 1)[1].split()[0]) for line in demo.found.stdout.splitlines()[2:]
    }
    assert loss["full-information skyline"] < loss["POEM (batch)"] < loss["logging policy"] < loss["uniform"]
    assert loss["poem.fit(log)"] < loss["POEM (batch)"]  # it is as certain as the log allows
    assert loss["no label"] == 1.0


def test_the_picture_is_there_and_shows_something(demo):
    assert [path.name for path in demo.folder.iterdir()] == ["poem-demo.png"]
    picture = imread(demo.folder / "poem-demo.png")
    assert min(picture.shape[:2]) > 300
    colours = (255 * picture[..., :3]).astype(np.int64) @ [1, 256, 65536]
    assert len(np.unique(colours)) > 20


# ---- interruption ---------------------------------------------------------------------------------


def test_ctrl_c_ends_the_demo_with_130_and_leaves_no_file(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, "demo", "--out", str(tmp_path), "--jobs", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    with process:
        while "learning POEM (batch)" not in process.stderr.readline():  # several candidates at once
            assert process.poll() is None
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert "poem: interrupted; nothing was left half-written" in err
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_an_interruption_inside_the_process_is_130(monkeypatch, tmp_path, capsys):
    def interrupt(**_):
        raise KeyboardInterrupt

    monkeypatch.setattr("poem.experiments.run_demo", interrupt)
    assert exit_code("demo", "--out", str(tmp_path)) == 130
    assert "interrupted" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_poem_is_printed_without_a_traceback(monkeypatch, tmp_path, capsys):
    def refuse(**_):
        raise poem.PoemError("the digits are gone. Bring them back.")

    monkeypatch.setattr("poem.experiments.run_demo", refuse)
    assert exit_code("demo", "--out", str(tmp_path)) == 2
    assert capsys.readouterr() == ("", "poem: the digits are gone. Bring them back.\n")
