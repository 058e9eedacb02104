"""poem as a wheel installs it: all of its files and nothing else, and commands that work from any folder."""

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

import poem

ROOT = Path(__file__).parents[1]
HOME = Path(poem.__file__).parent
pytestmark = pytest.mark.skipif(
    HOME == ROOT / "poem", reason="poem is not installed from a wheel here; make test-oldest installs one"
)


def test_the_wheel_holds_the_package_and_nothing_else():
    installed = {str(path) for path in importlib.metadata.files("poem") if ".dist-info" not in str(path)}
    installed = {name for name in installed if "__pycache__" not in name and not name.startswith("..")}
    source = {path.relative_to(ROOT).as_posix() for path in (ROOT / "poem").rglob("*") if path.is_file()}
    source = {name for name in source if "__pycache__" not in name}
    assert {"poem/py.typed", "poem/report/templates/page.html"} <= source
    assert installed == source


def test_commands_do_a_whole_round_in_another_folder(tmp_path, class_log, class_logger):
    def call(*arguments, answers=(0,)):
        command = [Path(sys.executable).with_name("poem"), *arguments]
        clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        said = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True, check=False)
        assert said.returncode in answers, said.stderr
        return said.stdout

    poem.write_log(class_log, tmp_path / "log.parquet")
    class_logger.save(tmp_path / "running.poem")
    assert call("--version") == f"poem {poem.__version__}\n"
    call("train", "log.parquet", "-o", "new.poem", "--learner", "ips", "--no-certificate", "--quiet")
    assert "Answer:" in call("evaluate", "running.poem", "log.parquet", "--quiet", answers=(0, 1))
    call("report", "running.poem", "log.parquet", "-o", "report.html", "--quiet", answers=(0, 1))
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert len(call("predict", "new.poem", "log.parquet", "--json", "--quiet").splitlines()) == len(class_log)
