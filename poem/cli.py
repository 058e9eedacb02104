"""The command line: a thin skin, one command a stage."""

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    import argparse

INTERRUPTED = 130  # what shells say of a command that Ctrl-C ended
BROKEN_PIPE = 141  # and of one whose reader has gone: it must not look like an answer
BUG = 70  # nor must an error that nobody thought of


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return 0 if all is well, 1 if the answer is no, 2 for bad input, 130 after Ctrl-C."""
    try:
        # All else is imported in here, so that Ctrl-C is understood from the beginning.
        from poem.commands.interrupts import Interrupts

        with Interrupts() as interrupts:
            try:
                return _answered(arguments)
            except Exception:
                if interrupts.heard:  # what is interrupted in the midst of an import may call it an error
                    raise KeyboardInterrupt from None
                return _bug()
    except KeyboardInterrupt:
        print("\npoem: interrupted; nothing was left half-written", file=sys.stderr)
        if arguments is None and "poem.experiments.schedule" not in sys.modules:  # which has processes to end first
            _leave()
        return INTERRUPTED


def _bug() -> int:
    """Say that an error is none that poem foresaw."""
    import traceback

    from poem.progress import tell

    tell(traceback.format_exc())
    tell("poem: this is a bug in poem, not an answer; please report it with the lines above\n")
    return BUG


def _leave() -> None:
    """End the process at once: libraries that were interrupted while they were loaded may crash when Python ends."""
    import contextlib
    import os

    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(INTERRUPTED)


def _answered(arguments: Sequence[str] | None) -> int:
    import warnings

    from poem.commands.typed import as_typed
    from poem.errors import PoemError
    from poem.progress import tell_line

    _mend_streams()
    options, unknown = _parser().parse_known_args(arguments)
    if unknown:
        options.parser.error(_unrecognized(unknown, options.parser))  # with the usage of the command
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _teller(options)
            return _run(options)
    except PoemError as error:
        tell_line(f"poem: {as_typed(error, options.parser)}")
        return 2
    except BrokenPipeError:  # the reader of our output has gone: nothing more to say
        _let_stdout_go()
        return BROKEN_PIPE
    except OSError as error:
        tell_line(f"poem: {error}. Check the path and its permissions.")
        return 2
    except MemoryError as error:
        tell_line(f"poem: there is not enough memory ({error}). Take fewer rows or features.")
        return 2


def _unrecognized(unknown: list[str], parser: "argparse.ArgumentParser") -> str:
    """Say which arguments no command has, and what may have been meant."""
    from difflib import get_close_matches

    known = [name for action in parser._actions for name in action.option_strings]
    meant = [name for each in unknown for name in get_close_matches(each.partition("=")[0], known, 1)]
    hint = f"; did you mean {', '.join(dict.fromkeys(meant))}?" if meant else ""
    return f"unrecognized arguments: {' '.join(unknown)}{hint}"


def _run(options: "argparse.Namespace") -> int:
    """Run a command; what it reads may take as much memory as its options say."""
    if getattr(options, "max_size", None) is None:
        return int(options.run(options))
    from poem.files import room_for

    with room_for(options.max_size):
        return int(options.run(options))


def _parser() -> "argparse.ArgumentParser":
    import argparse

    from poem.commands import COMMANDS
    from poem.text import visible_line
    from poem.version import VERSION

    class Parser(argparse.ArgumentParser):
        """Says what is wrong with escapes in place of what could act on a terminal."""

        def error(self, message: str) -> NoReturn:
            super().error(visible_line(message))

    parser = Parser(
        prog="poem",
        usage="poem COMMAND … [options]",
        description="Learn better decisions from logs of past ones.",
        epilog=(
            "Example: poem train log.csv -o policy.poem\n\n"
            "poem COMMAND --help says more, with an example. Only the answer goes to stdout.\n"
            "Exit status: 0 fine, 1 the answer is no, 2 bad usage or bad input, 130 interrupted."
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("-V", "--version", action="version", version=f"poem {VERSION}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, prog="poem")
    for command in COMMANDS:
        command.add(commands)
    return parser


# ---- streams --------------------------------------------------------------------------------------


def _mend_streams() -> None:
    """Make sure that whatever is said can be: a λ must not end a command on an ASCII terminal, nor a closed stderr."""
    import io
    import os

    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _let_stdout_go() -> None:
    """Send what is still to be written nowhere, or Python complains when it ends."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _teller(options: "argparse.Namespace") -> Callable[..., None]:
    """Return what says poem's own warnings in one line; those of its libraries are not for users."""

    def show_warning(message: Warning | str, category: type[Warning], *_: Any) -> None:
        from poem.commands.typed import as_typed
        from poem.errors import PoemWarning
        from poem.progress import tell_line

        if issubclass(category, PoemWarning) and not options.quiet:
            tell_line(f"poem: warning: {as_typed(message, options.parser)}")

    return show_warning
