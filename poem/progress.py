"""A progress line on stderr: quiet unless asked for, and never in the way of results on stdout."""

import sys
import time
from types import TracebackType
from typing import Self


class Progress:
    """Counts the finished parts of some work."""

    def __init__(self, title: str, total: int, enabled: bool, unit: str = "") -> None:
        self.title, self.total, self.enabled, self.unit = title, total, enabled, unit and f" {unit}"
        self.done, self.begin, self._shown = 0, time.monotonic(), 0.0
        self.live = enabled and sys.stderr.isatty()  # in a file, one line at the end is enough

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.enabled and error is None:
            elapsed = time.monotonic() - self.begin
            clear = "\r\x1b[K" if self.live else ""
            sys.stderr.write(f"{clear}{self.title}: {self.done}/{self.total}{self.unit} in {elapsed:.1f} s\n")

    def part_done(self) -> None:
        """Note that one part is finished."""
        self.done += 1
        self._show("", force=True)

    def reached(self, done: int) -> None:
        """Note how far the work has come."""
        self.done = done
        self._show("", force=False)

    def note(self, text: str) -> None:
        """Show where the present part stands, a few times a second at the most."""
        self._show(text, force=False)

    def _show(self, text: str, force: bool) -> None:
        now = time.monotonic()
        if not self.enabled or not self.live or (not force and now - self._shown < 0.2):
            return
        self._shown = now
        elapsed = now - self.begin
        left = (
            f", about {elapsed / self.done * (self.total - self.done):.0f} s left" if 0 < self.done < self.total else ""
        )
        sys.stderr.write(f"\r\x1b[K{self.title}: {self.done}/{self.total}{self.unit} in {elapsed:.1f} s{left} {text}")
        sys.stderr.flush()
