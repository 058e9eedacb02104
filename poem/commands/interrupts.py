"""Ctrl-C, wherever a command is."""

import os
import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any, Self

AGAIN = 0.05  # seconds after which an interruption that Python reports as lost is made again
TIMED = hasattr(signal, "setitimer")
LATER = 0.5  # seconds after which one that nothing is dealing with is made again


class Interrupts:
    """Knows whether Ctrl-C was pressed, and sees to it that it is not lost.

    An import that is interrupted may end with another error. What is interrupted while an object is deleted or in a
    callback of C code is written to stderr and forgotten. A library may swallow any error. So a timer (Windows has
    none) interrupts again and again until something deals with it.
    """

    def __init__(self) -> None:
        self.heard = False
        self._hook = sys.unraisablehook
        self._ours = threading.current_thread() is threading.main_thread() and (
            signal.getsignal(signal.SIGINT) is signal.default_int_handler
        )

    def __enter__(self) -> Self:
        if self._ours:
            signal.signal(signal.SIGINT, self._hear)
            sys.unraisablehook = self._again
            if TIMED:
                self._alarm = signal.signal(signal.SIGALRM, self._look) or signal.SIG_DFL
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._ours:
            if TIMED:
                signal.setitimer(signal.ITIMER_REAL, 0.0)
                signal.signal(signal.SIGALRM, self._alarm)
            sys.unraisablehook = self._hook
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self.heard = True
        if TIMED:
            signal.setitimer(signal.ITIMER_REAL, LATER)
        raise KeyboardInterrupt

    def _look(self, number: int, frame: FrameType | None) -> None:
        """Interrupt again, unless what is running now deals with the interruption."""
        signal.setitimer(signal.ITIMER_REAL, LATER)
        error = sys.exc_info()[1]
        while error is not None and not isinstance(error, KeyboardInterrupt):
            error = error.__context__
        if error is None:
            raise KeyboardInterrupt

    def _again(self, lost: Any) -> None:
        if isinstance(lost.exc_value, KeyboardInterrupt):
            # Not at once: it would be lost in here as well.
            timer = threading.Timer(AGAIN, os.kill, (os.getpid(), signal.SIGINT))
            timer.daemon = True
            timer.start()
        else:
            self._hook(lost)
