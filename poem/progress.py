"""A progress bar on stderr: quiet unless asked for, and never in the way of results on stdout.

A terminal gets one line that is drawn anew, by rich; a file gets a plain line now and then.
"""

import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Self

from poem.text import visible, visible_line

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

BAR = 20  # characters
EVERY = 0.2  # seconds between two states of the bar on a terminal
EVERY_LINE = 30.0  # and between two lines in a file
MANY = 10_000  # things that are counted by the second
PATIENCE = 2.0  # seconds after which one wants to see that work goes on


def tell(text: str) -> None:
    """Write to stderr, if there is one: that nobody listens must not end the work."""
    with suppress(OSError, ValueError, AttributeError):  # its reader has gone, it was closed, or there is none
        sys.stderr.write(visible(text))
        sys.stderr.flush()


def tell_line(text: str) -> None:
    """Write one line to stderr, whatever a name in it holds."""
    tell(visible_line(text) + "\n")


def is_terminal() -> bool:
    """Tell whether stderr is there and is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


class Pulse:
    """Calls something now and then, in a thread of its own, from ``after`` seconds on until it is stopped."""

    def __init__(self, beat: Callable[[], None], after: float, every: float) -> None:
        self.beat, self.after, self.every = beat, after, every
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; nothing is called after this."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        wait = self.after
        while not self._over.wait(wait):
            self.beat()
            wait = self.every


_DRAWN = threading.Lock()  # held by the screen that is drawn: there is one line for all


class Screen:
    """One line of a terminal that is drawn anew, and cleared at the end; what else is written stands above it."""

    def __init__(self) -> None:
        self._live: Live | None = None

    def draw(self, title: str, state: str, done: int = 0, total: int | None = None) -> None:
        """Show a title, a bar if there is a total, and as much of the state as the terminal is wide."""
        if self._live is None and not _DRAWN.acquire(blocking=False):
            return
        with suppress(OSError, ValueError, AttributeError):  # nobody looks any more: that must not end the work
            if self._live is None:
                from rich.console import Console
                from rich.live import Live

                self._live = Live(
                    console=Console(stderr=True), auto_refresh=False, transient=True, redirect_stdout=False
                )
                self._live.start()
            self._live.update(_line(title, state, done, total), refresh=True)

    def close(self) -> None:
        """Clear the line."""
        if self._live is not None:
            with suppress(OSError, ValueError, AttributeError):
                self._live.stop()
            self._live = None
            _DRAWN.release()


def _line(title: str, state: str, done: int, total: int | None) -> "RenderableType":
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    line = Table.grid(padding=(0, 1))
    cells: list[RenderableType] = [Text(visible_line(title))]
    line.add_column(no_wrap=True, overflow="ellipsis")
    if total is not None:
        line.add_column(width=BAR)
        cells.append(ProgressBar(total=max(total, 1), completed=done, width=BAR))
    line.add_column(no_wrap=True, overflow="ellipsis", style="dim")
    line.add_row(*cells, Text(visible_line(state)))
    return line


class Working:
    """Says on stderr that work goes on, once it has taken more than ``after`` seconds."""

    def __init__(self, title: str, enabled: bool, after: float = PATIENCE) -> None:
        self.title, self.enabled = title, enabled
        self.begin, self.live, self._screen = time.monotonic(), enabled and is_terminal(), Screen()
        self._pulse = Pulse(self._tell, after, EVERY if self.live else EVERY_LINE)

    def __enter__(self) -> Self:
        if self.enabled:
            self._pulse.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pulse.stop()
        self._screen.close()

    def _tell(self) -> None:
        span = _span(time.monotonic() - self.begin)
        if self.live:
            self._screen.draw(f"{self.title} …", span)
        else:
            tell_line(f"{self.title} … {span}")


class Progress:
    """Counts the finished parts of some work; nothing is shown of what takes less than ``after`` seconds."""

    def __init__(self, title: str, total: int, enabled: bool, unit: str = "", after: float = 0.0) -> None:
        self.title, self.total, self.enabled, self.unit = title, total, enabled, unit and f" {unit}"
        self._counting = threading.Lock()
        self.done, self.begin, self.after = 0, time.monotonic(), after
        self.live, self._screen = enabled and is_terminal(), Screen()
        self._has_time, self._counted = False, self.begin  # whence time is taken per part …
        self._last = self.begin  # … and until when: the last one was done then
        self._shown, self._text, self._silent = 0.0 if self.live else self.begin, "", True
        # A part may take long, and so may what comes before the first one.
        self._pulse = Pulse(self._beat, max(after, PATIENCE), EVERY if self.live else PATIENCE)

    def __enter__(self) -> Self:
        if self.enabled:
            self._pulse.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pulse.stop()
        self._screen.close()
        if self.enabled and error is None and self._elapsed() >= self.after:
            tell_line(f"{self.title}: {self._count()} in {_span(self._elapsed())}{self._rate()}")

    def part_done(self, text: str = "") -> None:
        """Note that one part is finished."""
        with self._counting:  # threads finish parts at the same time
            self._count_to(self.done + 1)
        self._has_time = False
        self._show(text, force=self.live)

    def reached(self, done: int) -> None:
        """Note how far the work has come."""
        self._count_to(done)
        self._show("", force=False)

    def prepared(self) -> None:
        """Note that what comes before the first part is done: its time says nothing about the parts."""
        if not self.done:
            self._counted = self._last = time.monotonic()

    def note(self, text: str, *, has_time: bool = False) -> None:
        """Show where the present part stands, a few times a second at the most.

        A text that ``has_time`` says itself how long it takes: this part is not like the others.
        """
        self._has_time = has_time
        self._show(text, force=False)

    def _count_to(self, done: int) -> None:
        self.done, self._last = done, time.monotonic()

    def _beat(self) -> None:
        self._show(self._text, force=self._silent)

    def _elapsed(self) -> float:
        return time.monotonic() - self.begin

    def _show(self, text: str, force: bool) -> None:
        self._text = text
        now = time.monotonic()
        if (
            not self.enabled
            or self._elapsed() < self.after
            or (not force and now - self._shown < (EVERY if self.live else EVERY_LINE))
        ):
            return
        self._shown, self._silent = now, False
        left = "" if self._has_time else self._left()
        state = f"{self._count()} in {_span(self._elapsed())}{left} {text}".rstrip()
        if self.live:
            self._screen.draw(self.title, state, self.done, self.total)
        else:
            tell_line(f"{self.title}: {state}")

    def _left(self) -> str:
        """Say how long the rest takes, unless the present part takes longer than all that is left should."""
        if not 0 < self.done < self.total:
            return ""
        each = (self._last - self._counted) / self.done
        left = each * (self.total - self.done) - (time.monotonic() - self._last)
        return f"{self._rate()}, about {_span(left)} left" if left > 0.0 else self._rate()

    def _count(self) -> str:
        return (
            f"{self.done}/{self.total}{self.unit}" if self.total < MANY else f"{self.done:,}/{self.total:,}{self.unit}"
        )

    def _rate(self) -> str:
        """Say how fast the work goes, of things that are many."""
        seconds = time.monotonic() - self._counted
        if self.total < MANY or seconds <= 0.0:
            return ""
        return f", {self.done / seconds:,.0f}{self.unit} per second"


def _span(seconds: float) -> str:
    if seconds < 100.0:
        return f"{seconds:.1f} s" if seconds < 10.0 else f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 6000.0 else f"{seconds / 3600.0:.1f} h"
