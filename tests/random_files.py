"""Random logs in files of every format that poem reads: compressed or in parts now and then."""

import bz2
import gzip
import json
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from hypothesis import strategies as st
from random_logs import RandomLog, logs
from random_values import seldom

PACK = {".gz": gzip.compress, ".bz2": bz2.compress, ".zst": lambda content: pa.compress(content, "zstd", asbytes=True)}
NOT_FOR_FILES = (pa.ArrowException, ValueError, TypeError, OverflowError)  # what libraries say of what a format lacks


@dataclass(frozen=True)
class Files:
    """Where a log, a later one and its catalogue are, and the options that commands need to read them."""

    log: Path
    later: Path
    options: tuple[str, ...]
    described: str
    label: str = "output"
    features: tuple[str, ...] = ()


# ---- tables -----------------------------------------------------------------------------------------


def as_parquet(table):
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=7)
    return sink.getvalue().to_pybytes()


def as_csv(table):
    sink = pa.BufferOutputStream()
    pa.csv.write_csv(table, sink)
    return sink.getvalue().to_pybytes()


def as_lines(table):
    return "".join(json.dumps(row, default=str) + "\n" for row in table.to_pylist()).encode("utf-8", "replace")


WRITERS = {".parquet": as_parquet, ".csv": as_csv, ".jsonl": as_lines}


@cache
def holds(suffix, kind):
    """Tell whether a format can hold a type, so that columns which it cannot hold are left out."""
    try:
        WRITERS[suffix](pa.table({"x": pa.nulls(1, kind)}))
    except NOT_FOR_FILES:
        return False
    return True


def held(table, suffix):
    """The columns of a table that a format can hold."""
    kept = [at for at, column in enumerate(table.schema) if holds(suffix, column.type)]
    return table.select(kept)


def write(table, path, pack="", parts=1):
    """Write a table, or a folder of its parts."""
    suffix = path.suffix
    table = held(table, suffix)
    if parts > 1:
        path = path.with_suffix("")
        path.mkdir()
        cuts = np.linspace(0, table.num_rows, parts + 1).astype(int)
        for number, (first, last) in enumerate(pairwise(cuts)):
            if last > first:
                write(table.slice(first, last - first), path / f"part-{number}{suffix}", pack)
        return path
    content = WRITERS[suffix](table)
    path = path.with_name(path.name + pack)
    path.write_bytes(PACK[pack](content) if pack else content)
    return path


@st.composite
def table_files(draw, folder):
    """A log of raw columns as Parquet, CSV or JSON lines."""
    log: RandomLog = draw(logs())
    suffix = draw(st.sampled_from([".parquet", ".parquet", ".csv", ".jsonl"]))
    pack = draw(st.sampled_from(["", "", "", *PACK])) if suffix != ".parquet" else ""
    parts = draw(st.sampled_from([1, 1, 1, 1, 3]))
    try:
        path = write(log.table, folder / f"log{suffix}", pack, parts)
        later = write(log.later, folder / f"later{suffix}", pack)
        options = log.options
        if log.catalogue is not None:
            actions = write(log.catalogue, folder / f"actions{draw(st.sampled_from(['.parquet', '.csv', '.jsonl']))}")
            options = (*options, f"--actions={actions}")
    except NOT_FOR_FILES:  # values that a format cannot hold, such as dates before its first one
        return None
    said = f"{log.kind} of {log.table.num_rows} rows in {path.name}: {str(log.table.schema)[:1500]}"
    return Files(path, later, options, said, log.label, log.features)


# ---- text of Vowpal Wabbit, DSJSON and LibSVM ---------------------------------------------------------

WORDS = st.sampled_from(["a", "b:0.5", "c:-3", "é🎲", "=1+1", "<b>", "age:1e-3", "x:1e30", "long" * 300, "%s", "f:0"])
CHANCES = [0.5, 0.25, 1.0, 0.01, 1e-30]
COSTS = ["0", "1", "-1", "0.5", "1e15", "-1e-30"]


def chosen_words(rng, pool):
    return " ".join(pool[at] for at in rng.permutation(len(pool))[: rng.integers(0, len(pool) + 1)])


def vw_line(rng, pool, size):
    label = f"{rng.integers(1, size + 1)}:{rng.choice(COSTS)}:{rng.choice(CHANCES)}"
    return f"{label} |user {chosen_words(rng, pool)} |item:2 {chosen_words(rng, pool)}"


def vw_block(rng, pool, size):
    lines = [f"| {chosen_words(rng, pool)} n{at}" for at in range(rng.integers(1, size + 1))]
    chosen = rng.integers(len(lines))
    lines[chosen] = f"0:{rng.choice(COSTS)}:{1.0 / len(lines)} {lines[chosen]}"
    return "\n".join([f"shared |user {chosen_words(rng, pool)}", *lines, ""])


def vw_slots(rng, pool, size):
    actions = [f"ccb action |item {chosen_words(rng, pool)} n{at}" for at in range(size)]
    slots = [
        f"ccb slot {action}:{rng.choice(COSTS)}:{1.0 / (size - number)} | s{number}"
        for number, action in enumerate(rng.permutation(size)[: rng.integers(1, 3)].tolist())
    ]
    return "\n".join([f"ccb shared |user {chosen_words(rng, pool)}", *actions, *slots, ""])


def ds_line(rng, pool, size):
    count = int(rng.integers(1, size + 1))
    order = (rng.permutation(count) + 1).tolist()
    row = {
        "_label_cost": float(rng.choice(COSTS)),
        "_label_probability": 1.0 / count,
        "_label_Action": order[0],
        "_labelIndex": order[0] - 1,
        "a": order,
        "p": [1.0 / count] * count,
        "Timestamp": f"2026-11-16T08:{rng.integers(10, 60)}:00Z",
        "c": {
            "user": dict.fromkeys(chosen_words(rng, pool).split(), 1),
            "_multi": [{"i": {"x": at, "text": chosen_words(rng, pool)}} for at in range(count)],
        },
    }
    return json.dumps(row)


def svm_line(rng, pool, size):
    places = np.flatnonzero(rng.random(4 * size) < 0.4)
    return f"{rng.integers(size)} " + " ".join(f"{place}:{rng.normal():.3g}" for place in places)


LINES = {"vw": vw_line, "blocks.vw": vw_block, "slots.vw": vw_slots, "dsjson": ds_line, "svm": svm_line}


@st.composite
def text_files(draw, folder):
    """A log in a format of lines."""
    name = draw(st.sampled_from(list(LINES)))
    pool = draw(st.lists(WORDS, min_size=1, max_size=6, unique=True))
    size, rows = draw(st.sampled_from([3, 1, 2, 5])), draw(st.sampled_from([40, 1, 2, 20, 60, 60, 200]))
    pack = draw(st.sampled_from(["", "", "", *PACK]))
    rng = np.random.default_rng(draw(st.integers(0, 9999)))
    found = []
    for stem in ("log", "later"):
        content = "".join(LINES[name](rng, pool, size) + "\n" for _ in range(rows)).encode()
        path = folder / f"{stem}.{name.rpartition('.')[2]}{pack}"
        path.write_bytes(PACK[pack](content) if pack else content)
        if name == "svm":
            sides = [f"{rng.integers(size)},{rng.choice(COSTS)},{rng.choice(CHANCES)}" for _ in range(rows)]
            (folder / f"{stem}.csv").write_text("output,loss,propensity\n" + "\n".join(sides) + "\n")
        found.append(path)
    vary = ("--actions-vary",) if name == "dsjson" and draw(st.booleans()) else ()
    identity = ("--identity",) if draw(seldom(4)) else ()
    return Files(*found, (*vary, *identity), f"{name}, {rows} rows of {pool}", "output" if name == "svm" else "action")


def files(folder):
    """A log in a folder, in any format; None where the format drawn cannot hold what was drawn."""
    return st.one_of(table_files(folder), table_files(folder), table_files(folder), text_files(folder))
