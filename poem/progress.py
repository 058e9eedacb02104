"""A progress bar on stderr: quiet unless asked for, and never in the way of results on stdout."""

import sys
import time
from types import TracebackType
from typing import Self

BAR = 20  # characters
EVERY = 0.2  # seconds between two states of the bar on a terminal
EVERY_LINE = 30.0  # and between two lines in a file


class Progress:
    """Counts the finished parts of some work; nothing is shown of what takes less than ``after`` seconds."""

    def __init__(self, title: str, total: int, enabled: bool, unit: str = "", after: float = 0.0) -> None:
        self.title, self.total, self.enabled, self.unit = title, total, enabled, unit and f" {unit}"
        self.done, self.begin, self.after = 0, time.monotonic(), after
        self.live = enabled and sys.stderr.isatty()
        self._shown = 0.0 if self.live else self.begin

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.enabled and error is None and self._elapsed() >= self.after:
            clear = "\r\x1b[K" if self.live else ""
            sys.stderr.write(f"{clear}{self.title}: {self.done}/{self.total}{self.unit} in {_span(self._elapsed())}\n")

    def part_done(self, text: str = "") -> None:
        """Note that one part is finished."""
        self.done += 1
        self._show(text, force=self.live)

    def reached(self, done: int) -> None:
        """Note how far the work has come."""
        self.done = done
        self._show("", force=False)

    def note(self, text: str) -> None:
        """Show where the present part stands, a few times a second at the most."""
        self._show(text, force=False)

    def _elapsed(self) -> float:
        return time.monotonic() - self.begin

    def _show(self, text: str, force: bool) -> None:
        now = time.monotonic()
        if (
            not self.enabled
            or self._elapsed() < self.after
            or (not force and now - self._shown < (EVERY if self.live else EVERY_LINE))
        ):
            return
        self._shown = now
        state = f"{self.done}/{self.total}{self.unit} in {_span(self._elapsed())}{self._left()} {text}"
        if self.live:
            filled = BAR * self.done // max(self.total, 1)
            sys.stderr.write(f"\r\x1b[K{self.title} [{'█' * filled}{'·' * (BAR - filled)}] {state}")
        else:
            sys.stderr.write(f"{self.title}: {state}\n")
        sys.stderr.flush()

    def _left(self) -> str:
        if not 0 < self.done < self.total:
            return ""
        return f", about {_span(self._elapsed() / self.done * (self.total - self.done))} left"


def _span(seconds: float) -> str:
    if seconds < 100.0:
        return f"{seconds:.1f} s" if seconds < 10.0 else f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 6000.0 else f"{seconds / 3600.0:.1f} h"
