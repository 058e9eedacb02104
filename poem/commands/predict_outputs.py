"""poem predict: decide for new contexts."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from poem.commands.arguments import (
    add_command,
    add_format,
    as_json,
    check_recipe,
    plain,
    recipe_of,
    remark,
    roles_of,
    share,
    to_stdout,
    whole_number,
    working,
    writable,
)
from poem.errors import InputError

if TYPE_CHECKING:
    from poem.arrays import AnyArray
    from poem.compute import Matrix
    from poem.policies import FlooredPolicy, Policy
    from poem.readers import RawLog

KINDS = (".csv", ".jsonl", ".parquet")
NEARLY_SURE = -0.01  # the logarithm of a propensity of 0.99
BLOCK = 10_000  # rows that are turned into JSON at a time


def add(commands: Any) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "predict",
        "POLICY CONTEXTS",
        "decide for new contexts",
        "Decide for each row of a table of contexts: the most probable output, or with --sample one that is drawn, "
        "with its propensity. The table comes back with the decisions, in columns called as in the policy's own log, "
        "as CSV (where it has lists, such as label sets, as JSON lines). Sampled decisions are the start of the next "
        "log: add a column of losses or rewards.",
        "poem predict policy.poem contexts.csv --sample --seed 7 --floor 0.01 -o decisions.csv",
        {0: "decided"},
    )
    parser.add_argument("policy", type=Path, metavar="POLICY", help="a file that poem train wrote")
    parser.add_argument(
        "contexts", type=Path, metavar="CONTEXTS", help="file or folder with the raw columns of contexts"
    )
    parser.add_argument("-o", "--out", type=Path, metavar="FILE", help=f"ends in {', '.join(KINDS)} (default: stdout)")
    parser.add_argument("--sample", action="store_true", help="draw outputs instead of taking the most probable ones")
    parser.add_argument(
        "--seed", type=whole_number(0), metavar="N", help="of --sample (default: a new one, which is said on stderr)"
    )
    parser.add_argument(
        "--floor", type=share, metavar="SHARE", help="with --sample: decide uniformly in this share of the cases"
    )
    add_format(parser, "CONTEXTS")
    parser.add_argument("--delimiter", metavar="C", help="of a CSV file (default: found in its first line)")
    parser.add_argument("--json", action="store_true", help="print JSON lines instead of CSV")
    parser.add_argument("--quiet", action="store_true", help="no progress and no remarks on stderr")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write one decision for each context."""
    from poem.policies import load_policy
    from poem.readers import read_contexts

    if not options.sample and (options.seed is not None or options.floor is not None):
        raise InputError("--seed and --floor are for decisions that are drawn; add --sample.")
    if options.out is not None:
        writable(options.out, *KINDS, unlike=options.contexts)
    policy = load_policy(options.policy)
    if options.floor is not None:
        if plain(policy) is not policy:
            raise InputError(f"{options.policy} has a floor already, which is kept. Leave --floor out.")
        policy = plain(policy).with_floor(options.floor)
    raw = read_contexts(
        options.contexts,
        format=options.format,
        delimiter=options.delimiter,
        recipe=policy.features,
        progress=not options.quiet,
    )
    with working(options, "deciding"):
        X = contexts_of(raw, policy, options.policy)
        outputs = policy.sample(X, _seed(options)) if options.sample else policy.predict(X)
        log_prob = policy.log_prob(X, outputs)
        table = _decided(raw, policy, outputs, log_prob, options.sample)
    if options.sample and (log_prob > NEARLY_SURE).mean() > 0.5:
        remark(
            options, "most decisions were nearly certain: little can be learnt from their log. --floor 0.05 explores."
        )
    _write(table, options)
    return 0


def _seed(options: argparse.Namespace) -> int:
    """Return the seed that was given, or a new one, which is said."""
    if options.seed is not None:
        return int(options.seed)
    import numpy as np

    seed = int(np.random.SeedSequence().generate_state(1)[0])
    remark(options, f"seed: {seed}")
    return seed


# ---- contexts and decisions -----------------------------------------------------------------------


def contexts_of(raw: "RawLog", policy: "Policy | FlooredPolicy", path: Path) -> "Matrix":
    """Return the features of each row, by the policy's recipe or by what the file says of itself."""
    if raw.table.num_rows == 0:
        raise InputError(f"{raw.origin.name} has no rows. Pass at least one context.")
    if raw.about.encoded and raw.features is not None:
        from poem.readers import contexts_by_row

        check_recipe(policy, path, raw.about.recipe, raw.origin.name)
        return contexts_by_row(raw, raw.features)
    recipe = recipe_of(policy)
    if recipe is not None:
        return recipe.transform(raw.table, raw.origin.place)
    from poem.compute import as_matrix

    return as_matrix(raw.table.select(list(raw.roles.context)))[0]


def _decided(
    raw: "RawLog", policy: "Policy | FlooredPolicy", outputs: "AnyArray", log_prob: "AnyArray", sampled: bool
) -> Any:
    """Return the contexts' own columns with the decisions beside them."""
    import numpy as np
    import pyarrow as pa

    from poem.readers import labels_column

    decision, probability = _names(policy, sampled)
    table = _contexts_alone(raw, policy, {decision, probability})
    codes, labels = policy.structure.encode(outputs, policy.labels)
    column = policy.structure.to_arrow(codes, labels_column(labels))
    return table.append_column(decision, column).append_column(probability, pa.array(np.exp(log_prob)))


def _names(policy: "Policy | FlooredPolicy", sampled: bool) -> tuple[str, str]:
    """Return what decisions and probabilities are called: as in the policy's own log, so that the next one is alike."""
    roles = roles_of(policy)
    decision = roles.output[0] if roles is not None and len(roles.output) == 1 else "output"
    logged = roles.propensity if roles is not None and roles.unit == "probability" else None
    if sampled:
        return decision, logged or "propensity"
    return decision, "probability" if logged != "probability" else "map_probability"  # what is not drawn is no log


def _contexts_alone(raw: "RawLog", policy: "Policy | FlooredPolicy", new: set[str]) -> Any:
    """Return the table without what was decided before and what came of it: it would be taken for features."""
    from poem.readers import INDEXES

    needed = set(() if policy.features is None else policy.features.columns)
    clash = sorted(needed & new)
    if clash:
        raise InputError(f"the policy has a feature called {clash[0]!r}, as a column of the decisions. Rename it.")
    old = set(INDEXES) | new
    for roles in (raw.roles, roles_of(policy)):
        if roles is not None:
            old |= {
                *roles.output,
                roles.loss or "",
                roles.reward or "",
                roles.propensity or "",
                roles.distribution or "",
            }
    table = _with_own_features(raw)
    kept = [name for name in table.column_names if name in needed or name not in old]
    return table.select(kept).replace_schema_metadata(None)


def _with_own_features(raw: "RawLog") -> Any:
    """Return the table with the features of its context in each row; poem writes them into the first such row only."""
    name = raw.roles.context_id
    if name is None:
        return raw.table
    import numpy as np

    _, first, number = np.unique(raw.table.column(name).to_numpy(), return_index=True, return_inverse=True)
    shared = raw.table.select(list(raw.roles.context)).take(first[number])
    table = raw.table.drop_columns([name])
    for column in shared.column_names:
        table = table.set_column(table.column_names.index(column), column, shared.column(column))
    return table


# ---- files ----------------------------------------------------------------------------------------


def _write(table: Any, options: argparse.Namespace) -> None:
    from poem.files import whole_file

    if options.out is None:
        with to_stdout():
            write = _write_lines if options.json or _has_lists(table) else _write_csv
            write(table, sys.stdout.buffer)
        return
    kind = options.out.suffix.lower()
    if kind == ".csv" and _has_lists(table):
        raise InputError(f"{options.out} cannot hold lists (label sets or features); use .jsonl or .parquet.")
    with working(options, "writing"), whole_file(options.out) as temporary:
        if kind == ".parquet":
            from pyarrow import parquet

            parquet.write_table(table, temporary)
            return
        with temporary.open("wb") as file:
            (_write_lines if kind == ".jsonl" else _write_csv)(table, file)


def _has_lists(table: Any) -> bool:
    from poem.files import is_list

    return any(is_list(field.type) for field in table.schema)


def _write_csv(table: Any, file: Any) -> None:
    from pyarrow import ArrowException, csv

    try:
        csv.write_csv(table, file)
    except ArrowException as error:
        raise InputError(f"the contexts cannot be written as CSV: {error}. Use --json, or -o with .parquet.") from error


def _write_lines(table: Any, file: Any) -> None:
    for batch in table.to_batches(max_chunksize=BLOCK):
        lines = (as_json(row, indent=None) + "\n" for row in batch.to_pylist())
        file.write("".join(lines).encode("utf-8", "replace"))
