"""poem inspect: is this log fit for learning?"""

import argparse
from typing import TYPE_CHECKING, Any

from poem.commands.arguments import add_command, add_common, show, working
from poem.commands.reading import add_columns, add_packed, encoding_of, estimated, packed_log, place, read_raw_log

if TYPE_CHECKING:
    from poem.data import BanditLog
    from poem.health import Health
    from poem.readers import RawLog


def add(commands: Any) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "inspect",
        "LOG",
        "is this log fit for learning?",
        "Check a log before anything is learnt from it: its size, missing values, outputs, losses, propensities and "
        "their support, duplicates, drift, adaptive loggers, and how small an improvement it could show.",
        "poem inspect log.csv --output item --reward click --propensity pscore --time ts",
        {0: "fit for learning, perhaps with care", 1: "not fit for learning"},
    )
    parser.add_argument("log", type=place, metavar="LOG", help="file, folder of part files, or packed log")
    add_common(parser, jobs=False)
    add_columns(parser)
    add_packed(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the health of a log."""
    from poem.health import inspect
    from poem.readers import log_of

    packed = packed_log(options)
    if packed is not None:
        with working(options, "inspecting"):
            health = inspect(estimated(packed, options))
        return _shown(health, options)
    raw = read_raw_log(options)
    encoding = encoding_of(options, raw)
    source: RawLog | BanditLog = raw
    if options.propensity == "estimate":
        source, encoding = estimated(log_of(raw, missing=True, encoding=encoding), options), None
    with working(options, "inspecting"):
        health = inspect(source, encoding=encoding)
    return _shown(health, options)


def _shown(health: "Health", options: argparse.Namespace) -> int:
    show(options, str(health), health.to_dict())
    return 0 if health.fit else 1
