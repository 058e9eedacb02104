"""Ctrl-C at any moment: exit code 130, one line, and no file left half-written."""

import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from importlib import import_module

import pytest
from shop_logs import COLUMNS, NEW, WRITERS, call, command, command_line, shop_table, write_table


def assert_interrupted(code, out, err, folder):
    assert code == 130
    assert out == ""
    assert err.endswith("\npoem: interrupted; nothing was left half-written\n")
    assert "Traceback" not in err
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("inspect", "pyarrow"),
        ("train", "numba.core"),
        ("train", "scipy.special._ufuncs"),
        ("evaluate", "numpy._core"),
        ("predict", "safetensors"),
        ("report", "scipy.sparse"),
        ("convert", "pyarrow.parquet"),
        ("simulate", "sklearn"),
    ],
)
def test_ctrl_c_during_imports(shop, tmp_path, name, module):
    arguments, _ = command_line(name, shop, tmp_path)
    found = subprocess.run(
        command(*arguments, "--quiet"),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "INTERRUPT_AT": module},
    )
    assert_interrupted(found.returncode, found.stdout, found.stderr, tmp_path)


@pytest.mark.parametrize("moment", ["features: ", "fit: "])  # when it begins to learn; after two seconds of it
def test_ctrl_c_in_the_midst_of_long_work(tmp_path, moment):
    log = write_table(shop_table(40_000, 0), tmp_path / "log.csv")
    (tmp_path / "out").mkdir()
    process = subprocess.Popen(
        command("train", log, "-o", tmp_path / "out" / "new.poem", *COLUMNS),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    with process:
        while not process.stderr.readline().startswith(moment):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert_interrupted(process.returncode, out, "\n" + err, tmp_path / "out")


@pytest.fixture
def ctrl_c(monkeypatch):
    """Press Ctrl-C when a function is called."""
    earlier = signal.signal(signal.SIGINT, signal.default_int_handler)

    def press(*_, **__):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1.0)

    yield lambda module, function: monkeypatch.setattr(import_module(module), function, press)
    signal.signal(signal.SIGINT, earlier)


LIBRARY = {
    "inspect": ("poem.health", "inspect"),
    "train": ("poem.learning", "fit"),
    "evaluate": ("poem.evaluation", "evaluate"),
    "watch": ("poem.evaluation", "watch"),
    "predict": ("poem.policies", "decide"),
    "report": ("poem.report", "write_report"),
    "convert": ("poem.readers", "convert_log"),
    "pack": ("poem.packed", "pack_log"),
    "simulate": ("poem.simulation", "simulate_weak"),
}


@pytest.mark.parametrize("name", NEW)
def test_ctrl_c_while_reading_and_while_working(shop, tmp_path, capsys, ctrl_c, name):
    reading = "streaming" if name == "pack" else "part_files"
    for place in (LIBRARY[name], (f"poem.readers.{reading}", "files_of")):
        arguments, _ = command_line(name, shop, tmp_path)
        ctrl_c(*place)
        capsys.readouterr()
        assert_interrupted(call(*arguments), *capsys.readouterr(), tmp_path)


@pytest.mark.parametrize("name", WRITERS)
def test_ctrl_c_while_a_file_is_written_leaves_the_old_one(shop, tmp_path, capsys, ctrl_c, name):
    arguments, out = command_line(name, shop, tmp_path)
    out.write_text("old")
    ctrl_c("os", "fsync")  # when all is written, but not yet in its place
    assert call(*arguments, "--quiet") == 130
    assert out.read_text() == "old"
    assert list(tmp_path.iterdir()) == [out]


def test_an_interruption_that_a_library_calls_an_error_is_130(shop, tmp_path, capsys, ctrl_c, monkeypatch):
    ctrl_c("poem.learning", "fit")  # hear it at all
    press = import_module("poem.learning").fit

    def turn_into_another_error(*_, **__):
        try:
            press()
        except KeyboardInterrupt:
            raise ImportError("a library failed to import") from None

    monkeypatch.setattr(import_module("poem.learning"), "fit", turn_into_another_error)
    arguments, _ = command_line("train", shop, tmp_path)
    assert_interrupted(call(*arguments, "--quiet"), *capsys.readouterr(), tmp_path)


def test_an_interruption_that_python_would_ignore_is_made_again(shop, tmp_path, capsys, ctrl_c, monkeypatch):
    ctrl_c("poem.learning", "fit")
    press = import_module("poem.learning").fit

    class Deleted:
        def __del__(self):
            press()

    went_on = []

    def delete_and_go_on(*_, **__):
        Deleted()
        gc.collect()
        time.sleep(10.0)
        went_on.append(True)

    monkeypatch.setattr(import_module("poem.learning"), "fit", delete_and_go_on)
    arguments, _ = command_line("train", shop, tmp_path)
    assert_interrupted(call(*arguments, "--quiet"), *capsys.readouterr(), tmp_path)
    assert not went_on


def test_an_interruption_that_a_library_swallows_is_made_again(shop, tmp_path, capsys, ctrl_c, monkeypatch):
    ctrl_c("poem.learning", "fit")
    press, dealt_with = import_module("poem.learning").fit, []

    def swallow_and_wait(*_, **__):
        with contextlib.suppress(KeyboardInterrupt):
            press()
        try:
            threading.Event().wait(30.0)
        finally:
            time.sleep(1.5)  # what tidies up is left in peace
            dealt_with.append(True)

    monkeypatch.setattr(import_module("poem.learning"), "fit", swallow_and_wait)
    arguments, _ = command_line("train", shop, tmp_path)
    begin = time.monotonic()
    assert_interrupted(call(*arguments, "--quiet"), *capsys.readouterr(), tmp_path)
    assert dealt_with == [True]
    assert time.monotonic() - begin < 25.0


def handlers():
    return signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGALRM), sys.unraisablehook


def test_handlers_are_as_before(shop, ctrl_c):
    before = handlers()
    assert call("inspect", shop.log, "--quiet", *COLUMNS) == 0
    assert handlers() == before
