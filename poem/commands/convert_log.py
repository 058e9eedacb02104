"""poem convert: any log → Parquet."""

import argparse
from pathlib import Path
from typing import Any

from poem.commands.arguments import add_command, add_common, show, working, writable
from poem.commands.reading import add_columns, read_raw_log


def add(commands: Any) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "convert",
        "LOG OUT",
        "any log → Parquet, checked",
        "Read a log of any known format, check it, and write it as Parquet: its own columns, with a note of which one "
        "is what, so that no other command needs to be told again. Columns that are left out (--ignore, --context) "
        "are not written.",
        "poem convert log.vw.gz log.parquet",
        {0: "written"},
    )
    parser.add_argument("log", type=Path, metavar="LOG", help="file or folder of part files")
    parser.add_argument("out", type=Path, metavar="OUT", help="where to write it (.parquet)")
    add_common(parser, jobs=False)
    add_columns(parser, encoding=False)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the log, and print what it is."""
    from poem.readers import convert_log, written_suffixes

    writable(options.out, *written_suffixes(), unlike=options.log)
    raw = read_raw_log(options)
    with working(options, "converting"):
        # Nothing is estimated here: the file says that propensities are missing.
        log = convert_log(raw, options.out, missing=options.propensity == "estimate")
    content = {"log": str(options.out), "rows": len(log), "outputs": len(log.labels), "features": log.n_features}
    show(options, repr(log), content)
    return 0
