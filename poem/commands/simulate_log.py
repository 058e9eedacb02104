"""poem simulate: labelled data → the log of a weak policy."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from poem.commands.arguments import (
    add_command,
    add_common,
    add_seed,
    remark,
    share,
    show,
    whole_number,
    working,
    writable,
)
from poem.errors import InputError

if TYPE_CHECKING:
    from poem.arrays import AnyArray
    from poem.compute import Matrix
    from poem.data.features import Features


def add(commands: Any) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "simulate",
        "DATA -o FILE",
        "labelled data → the log of a weak policy",
        "Fit a weak policy on a share of labelled data, let it decide, and log what it did and what that cost: a log "
        "whose truth is known. The data are one of the paper's sets by name (scene, yeast, tmc, lyrl), a LibSVM "
        "multi-label file, or a table with a column of true classes.",
        "poem simulate table.csv --label species -o log.parquet --policy h0.poem",
        {0: "written"},
    )
    parser.add_argument("data", metavar="DATA", help="name, LibSVM file, or table")
    parser.add_argument(
        "-o", "--out", type=Path, required=True, metavar="FILE", help="where to write the log (.parquet)"
    )
    parser.add_argument("--label", metavar="NAME", help="the column of true classes of a table")
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help="folder of named data (default: POEM_DATA, cache)")
    parser.add_argument(
        "--replay", type=whole_number(1), default=4, metavar="N", help="passes over the data (default: 4)"
    )
    parser.add_argument(
        "--fraction", type=share, default=0.05, metavar="F", help="of the rows, to fit the policy on (default: 0.05)"
    )
    parser.add_argument(
        "--temperature", type=float, default=1.0, metavar="A", help="below 1 the policy explores more (default: 1)"
    )
    parser.add_argument(
        "--loss",
        default="hamming",
        choices=("hamming", "zero-one", "f1"),
        metavar="NAME",
        help="hamming (default), zero-one or f1; for classes all are 0 if right and 1 if wrong",
    )
    parser.add_argument("--policy", type=Path, metavar="FILE", help="also write the logging policy here")
    add_seed(parser, "the rows to fit on, and of the decisions")
    add_common(parser, jobs=False)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the log, and print what it is."""
    from dataclasses import replace

    import numpy as np

    from poem.policies import logging_policy
    from poem.readers import write_log
    from poem.simulation import simulate

    writable(options.out, ".parquet", ".pq", unlike=Path(options.data))
    if options.policy is not None:
        writable(options.policy, unlike=Path(options.data))
        if options.policy.resolve() == options.out.resolve():
            raise InputError("--policy and -o name the same file. Name two.")
    rng = np.random.default_rng(options.seed)
    X, y, features = _labelled(options)
    with working(options, "simulating"):
        h0 = logging_policy(X, y, fraction=options.fraction, temperature=options.temperature, rng=rng)
        if features is not None:
            h0 = replace(h0, features=features, feature_names=features.names())
        log = simulate(X, y, h0, replay=options.replay, loss=options.loss, rng=rng)
        log = log.with_features(features) if features is not None else log
        write_log(log, options.out)
    if options.policy is not None:
        h0.save(options.policy)
        remark(options, f"logging policy: {options.policy}")
    show(options, repr(log), {"log": str(options.out), "rows": len(log), "loss": float(log.loss.mean())})
    return 0


def _labelled(options: argparse.Namespace) -> "tuple[Matrix, AnyArray, Features | None]":
    """Return contexts, true outputs, and how contexts are made of raw columns if they are."""
    from poem.readers import suffix_format
    from poem.simulation import CATALOG, load_dataset, read_libsvm

    if options.label is not None:
        return _from_table(options)
    if options.data in CATALOG:
        with working(options, f"reading {options.data}"):
            data = load_dataset(options.data, options.data_dir, progress=not options.quiet)
        return data.X_train, data.y_train, None
    path = Path(options.data)
    if not path.is_file():
        raise InputError(f"{options.data!r} is neither a file nor one of {', '.join(CATALOG)}.")
    if suffix_format(path) not in (None, "svmlight"):
        raise InputError(f"{path.name} is a table: name its column of true classes with --label.")
    with working(options, f"reading {path.name}"):
        X, y = read_libsvm(path)
    return X, y, None


def _from_table(options: argparse.Namespace) -> "tuple[Matrix, AnyArray, Features]":

    from poem.data.features import Features
    from poem.readers import Columns, coded_outputs, read_raw

    raw = read_raw(Path(options.data), Columns(output=options.label), progress=not options.quiet)
    if raw.table.num_rows == 0:
        raise InputError(f"{raw.origin.name} has no rows. Pass labelled rows.")
    with working(options, "checking"):
        context = raw.table.select(list(raw.roles.context))
        features = Features.learn(context, place=raw.origin.place)
        (codes, labels), structure = coded_outputs(raw)
        return features.transform(context, raw.origin.place), structure.decode(codes, labels), features
