"""Every Python block in README and docs, and every example, is executed."""

import re
import runpy
import tarfile
from pathlib import Path

import pytest
from test_real_logs import ARCHIVE

from poem.cli import main

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#:]+)\)")


def blocks(page):
    return BLOCK.findall(page.read_text())


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name)
def test_blocks_of_a_page_run_one_after_another(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for number, block in enumerate(blocks(page)):
        exec(compile(block, f"{page.name}[{number}]", "exec"), names)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_examples_run(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(example), run_name="__main__")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), target


def test_readme_has_its_pages():
    assert len(PAGES) >= 4
    assert len(blocks(ROOT / "README.md")) >= 1


# ---- the walk through the commands, on the real log ---------------------------------------------

CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


def steps(page="walkthrough.md"):
    """The commands of a page, each with what it prints."""
    (walk,) = CONSOLE.findall((ROOT / "docs" / page).read_text())
    parts = [part.partition("\n") for part in walk.split("$ ")[1:]]
    return [(command, printed.strip()) for command, _, printed in parts]


def words(text):
    """Return a text without its figures, which another machine may round otherwise."""
    return re.sub(r"\s+", " ", re.sub(r"[-+]?\d[\d.,]*(e-?\d+)?", "#", text))


def test_the_walk_through_prints_what_its_page_says(tmp_path, monkeypatch, capsys):
    if not ARCHIVE.is_file():
        pytest.skip("the Open Bandit data are not on this machine")
    with tarfile.open(ARCHIVE) as tar:
        tar.extractall(tmp_path, filter="data")
    run(steps(), tmp_path, monkeypatch, capsys)
    assert (tmp_path / "report.html").exists()


def run(commands, folder, monkeypatch, capsys):
    """Run commands in a folder, and compare what they print."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "110")
    status = 0
    for command, printed in commands:
        if command == "echo $?":
            assert printed == str(status)
            continue
        status = main(command.split()[1:])
        assert words(capsys.readouterr().out.strip()) == words(printed), command


def test_the_commands_for_those_who_move_print_what_their_page_says(tmp_path, monkeypatch, capsys):
    files = ARCHIVE.parent / "vw"
    if not files.is_dir():
        pytest.skip("Vowpal Wabbit's files are not on this machine")
    for name in ("cb_load.dat", "rcv1_raw_cb_small.vw", "ccb_data.json"):
        (tmp_path / name).write_bytes((files / name).read_bytes())
    run(steps("moving.md"), tmp_path, monkeypatch, capsys)
