"""Progress on stderr: lines in a file, a bar in a terminal, and nothing where it is not wanted."""

import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from poem.progress import BAR, EVERY_LINE, Progress, Working

# ---- progress, part by part ------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch):
    """A clock for progress that goes only when it is told to."""
    now = SimpleNamespace(seconds=1000.0)
    monkeypatch.setattr("poem.progress.time", SimpleNamespace(monotonic=lambda: now.seconds))
    return now


def take_for_a_terminal(monkeypatch):
    """Let stderr say that it is a terminal; pytest has another one in fixtures than in tests."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("NO_COLOR", raising=False)


def work(line, clock, parts, seconds):
    for part in range(parts):
        clock.seconds += seconds
        line.part_done(f"(part {part})")


def test_a_file_gets_a_line_now_and_then_and_a_last_one(clock, capsys):
    with Progress("work", 100, True, "runs") as line:
        work(line, clock, 100, 1.0)
    err = capsys.readouterr().err
    assert "\r" not in err
    assert err.splitlines() == [
        "work: 30/100 runs in 30 s, about 70 s left (part 29)",
        "work: 60/100 runs in 60 s, about 40 s left (part 59)",
        "work: 90/100 runs in 90 s, about 10 s left (part 89)",
        "work: 100/100 runs in 2 min",
    ]


def test_a_part_that_takes_longer_than_the_others_has_no_time_left(clock, capsys):
    with Progress("work", 10, True) as line:
        work(line, clock, 9, 4.0)
        clock.seconds += 2.0
        line._beat()
        clock.seconds += 100.0
        line._beat()
    assert capsys.readouterr().err.splitlines() == [
        "work: 8/10 in 32 s, about 8.0 s left (part 7)",
        "work: 9/10 in 2 min (part 8)",
        "work: 9/10 in 2 min",
    ]


def test_what_comes_first_does_not_slow_the_parts_down(clock, capsys):
    with Progress("work", 20_000, True, "rows") as line:
        clock.seconds += 40.0
        line.note("(working on a sample first)")
        line.prepared()
        clock.seconds += 40.0
        line.reached(8_000)
    assert capsys.readouterr().err.splitlines() == [
        "work: 0/20,000 rows in 40 s (working on a sample first)",
        "work: 8,000/20,000 rows in 80 s, 200 rows per second, about 60 s left",
        "work: 8,000/20,000 rows in 80 s, 200 rows per second",
    ]


def test_short_work_gives_the_last_line_alone(clock, capsys):
    with Progress("work", 3, True) as line:
        work(line, clock, 3, EVERY_LINE / 4)
        line.note("nearly")
    assert capsys.readouterr().err == "work: 3/3 in 22 s\n"


def seen(err):
    """What stands in a terminal, drawing by drawing, without colours and moves of the cursor."""
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", err)
    return [line.strip() for line in re.split(r"[\r\n]+", plain) if line.strip()]


def test_a_terminal_gets_a_bar_and_the_time_left(clock, capsys, monkeypatch):
    take_for_a_terminal(monkeypatch)
    with Progress("work", 4, True, "runs") as line:
        work(line, clock, 1, 50.0)
        first = seen(capsys.readouterr().err)[-1]
        assert re.fullmatch(r"work [━╸╺ ]+ 1/4 runs in 50 s, about 2 min left \(part 0\)", first)
        work(line, clock, 3, 50.0)
        assert seen(capsys.readouterr().err)[-1] == f"work {'━' * BAR} 4/4 runs in 3 min (part 2)"
    assert seen(capsys.readouterr().err)[-1] == "work: 4/4 runs in 3 min"


def test_a_bar_is_as_wide_as_the_terminal_at_the_most(clock, capsys, monkeypatch):
    take_for_a_terminal(monkeypatch)
    monkeypatch.setenv("COLUMNS", "50")
    with Progress("work", 4, True, "runs") as line:
        work(line, clock, 2, 50.0)
        drawn = seen(capsys.readouterr().err)
    assert all(len(line) <= 50 for line in drawn)
    assert drawn[-1].endswith("…")


@pytest.mark.parametrize("plain", [False, True])
def test_a_bar_has_no_colour_if_none_is_wanted(clock, capsys, monkeypatch, plain):
    take_for_a_terminal(monkeypatch)
    monkeypatch.setenv("COLORTERM", "truecolor")
    if plain:
        monkeypatch.setenv("NO_COLOR", "1")
    with Progress("work", 4, True) as line:
        work(line, clock, 2, 50.0)
        assert bool(re.search(r"\x1b\[(?:38[;:]|9[0-7]m|3[0-7]m)", capsys.readouterr().err)) is not plain


def test_what_is_written_meanwhile_stands_above_the_bar(clock, capsys, monkeypatch):
    take_for_a_terminal(monkeypatch)
    with Progress("work", 4, True) as line:
        work(line, clock, 1, 50.0)
        with Progress("more work", 4, True) as inner:  # one bar is enough
            work(inner, clock, 1, 50.0)
        sys.stderr.write("a warning\n")
        work(line, clock, 1, 50.0)
    drawn = seen(capsys.readouterr().err)
    assert "a warning" in drawn
    assert drawn[-1].startswith("work: 2/4")
    assert not any(line.startswith("more work ━") for line in drawn)


def test_a_terminal_is_not_drawn_on_more_than_five_times_a_second(clock, capsys, monkeypatch):
    take_for_a_terminal(monkeypatch)
    with Progress("work", 1000, True) as line:
        for done in range(100):
            clock.seconds += 0.01
            line.reached(done)
        assert len(seen(capsys.readouterr().err)) in (4, 5, 6)


def test_work_that_fails_has_no_last_line(clock, capsys):
    def fail():
        with Progress("work", 3, True) as line:
            work(line, clock, 1, 1.0)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("total", [0, 5])
def test_progress_that_is_not_wanted_writes_nothing(clock, capsys, monkeypatch, total):
    take_for_a_terminal(monkeypatch)
    with Progress("work", total, False) as line:
        work(line, clock, total, 100.0)
    assert capsys.readouterr() == ("", "")


# ---- work of unknown length ------------------------------------------------------------------------


def test_work_says_that_it_goes_on(capsys):
    with Working("counting", True, after=0.01):
        time.sleep(0.2)
    assert re.match(r"counting … \d+\.\d s\n", capsys.readouterr().err)
    with Working("counting", True):
        pass
    with Working("counting", False, after=0.01):
        time.sleep(0.05)
    assert capsys.readouterr() == ("", "")


def test_a_terminal_is_clean_after_the_work(capsys, monkeypatch):
    take_for_a_terminal(monkeypatch)
    with Working("counting", True, after=0.01):
        time.sleep(1.0)
    err = capsys.readouterr().err
    assert re.match(r"counting … \d+\.\d s", seen(err)[-1])
    assert err.endswith("\x1b[2K")  # the line is erased
    assert err.count("\x1b[?25l") == err.count("\x1b[?25h") == 1  # the cursor is back


def test_parts_that_take_long_show_that_work_goes_on(capsys, monkeypatch):
    monkeypatch.setattr("poem.progress.PATIENCE", 0.01)
    with Progress("work", 3, True) as line:
        time.sleep(0.2)
        line.part_done()
    first, *_, last = capsys.readouterr().err.splitlines()
    assert re.match(r"work: 0/3 in \d+\.\d s", first)
    assert re.match(r"work: 1/3 in \d+\.\d s", last)


def test_parts_that_threads_finish_at_once_are_all_counted():
    """A switch between threads must not fall between reading the count and writing it."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        line = Progress("fit", 8000, False)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: [line.part_done() for _ in range(1000)], range(8)))
    finally:
        sys.setswitchinterval(before)
    assert line.done == 8000
