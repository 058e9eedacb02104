"""Random but valid logs as Arrow tables, for hypothesis: every structure, strange types and names, extreme numbers."""

from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from random_values import FEATURES, LABELS, SCALARS, TIMES, features, filled, names, pools, seldom

ROWS = st.sampled_from([40, 1, 2, 5, 20, 30, 40, 40, 40, 60, 60, 60, 80, 80, 80])
MANY_ROWS = st.sampled_from([100, 300, 2000])
EDGES = [5e-324, 1e-308, 1e-200, 1e-12, 1.0 - 2**-53, 1.0, 0.5]
LOSSES = {
    "clicks": [0.0, 1.0],
    "wide": [-1.5, 0.0, 0.25, 3.0],
    "one": [0.5],
    "whole": [0, 1, 7],
    "small": [0.0, 5e-324, 1e-300],
    "large": [0.0, 1e18, -1e15],
    "largest": [1e20, -1e20, 0.0, 1.0],
    "too large": [1e308, -1e308, 0.0],
    "negative zero": [-0.0, 0.0],
}
ROLES = ("output", "loss", "propensity", "group", "time", "logger", "candidates", "distribution")


@dataclass(frozen=True)
class RandomLog:
    """A log of decisions, a later one like it, and the options that commands need to read them."""

    table: pa.Table
    later: pa.Table
    options: tuple[str, ...] = ()
    catalogue: pa.Table | None = None
    label: str = "output"
    kind: str = "classes"
    features: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class Decisions:
    """The columns of decisions by their roles, how many outputs each row had, and whether it was the first of them."""

    columns: dict[str, pa.Array]
    choices: np.ndarray
    good: np.ndarray


# ---- what was decided -------------------------------------------------------------------------------


def distinct(pool):
    """The values of a pool that are there, each once."""
    return list({str(value): value for value in pool if value is not None and value == value}.values())


@st.composite
def classes(draw):
    """One of a few labels per row."""
    kind, pool = draw(pools(LABELS, gaps=False))
    labels = distinct(pool) or [None]

    def make(rng, rows):
        chosen = rng.integers(0, len(labels), rows)
        output = pa.array([labels[place] for place in chosen.tolist()], kind)
        return Decisions({"output": output}, np.full(rows, len(labels)), chosen == 0)

    return "classes", make, ()


@st.composite
def sets(draw):
    """A set of labels per row: a list, 0/1 for each label, one column per label, or sets of one size."""
    form = draw(st.sampled_from(["list", "vector", "columns", "subset"]))
    kind, pool = draw(pools(LABELS, gaps=False))
    labels = distinct(pool) or [None]
    size = draw(st.integers(1, len(labels)))

    def make(rng, rows):
        if form == "subset":
            members = np.zeros((rows, len(labels)), dtype=int)
            for row in members:
                row[rng.permutation(len(labels))[:size]] = 1
        else:
            members = rng.integers(0, 2, (rows, len(labels)))
        choices, good = np.full(rows, 2 ** len(labels)), members[:, 0] == 1
        if form == "columns":
            return Decisions({f"y{at}": pa.array(members[:, at]) for at in range(len(labels))}, choices, good)
        if form == "vector":
            return Decisions({"output": pa.array(members.tolist())}, choices, good)
        lists = [[label for label, member in zip(labels, row, strict=True) if member] for row in members]
        return Decisions({"output": pa.array(lists, pa.list_(kind))}, choices, good)

    if form == "columns":
        return "columns", make, ("--output=" + ",".join(f"y{at}" for at in range(len(labels))),)
    return form, make, ("--structure=subset",) if form == "subset" and not draw(seldom(4)) else ()


@st.composite
def candidates(draw):
    """One of those that are available in each row: labels, structs with features, or positions in lists of these."""
    form = draw(st.sampled_from(["labels", "structs", "positions", "catalogue"]))
    kind, pool = draw(pools(LABELS, most=8, gaps=False))
    ids = distinct(pool) or ["a"]
    kind = pa.string() if ids == ["a"] else kind
    described = {
        name: draw(pools(SCALARS if draw(seldom(12)) else FEATURES))
        for name in draw(st.lists(names, max_size=2, unique=True))
        if name not in ("id", "")
    }
    with_chances = draw(st.booleans())

    def make(rng, rows):
        here = [rng.permutation(len(ids))[: rng.integers(1, len(ids) + 1)].tolist() for _ in range(rows)]
        place = [int(rng.integers(len(some))) for some in here]
        if form in ("labels", "catalogue"):
            lists = pa.array([[ids[at] for at in some] for some in here], pa.list_(kind))
        else:
            fields = {} if form == "positions" else {"id": (kind, None)}
            fields |= described or {"price": (pa.float64(), [0.5, 1.0])}
            lists = structs(fields, here, ids, rng)
        output = (
            [at + 1 for at in place]
            if form == "positions"
            else [ids[some[at]] for some, at in zip(here, place, strict=True)]
        )
        columns = {"output": pa.array(output, pa.int64() if form == "positions" else kind), "candidates": lists}
        counts = np.array([len(some) for some in here])
        if with_chances:
            columns["distribution"] = pa.array([[1.0 / count] * count for count in counts.tolist()])
        return Decisions(columns, counts, np.array([some[at] == 0 for some, at in zip(here, place, strict=True)]))

    identity = ("--identity",) if form != "labels" and draw(seldom(4)) else ()
    if form == "catalogue":
        rng = np.random.default_rng(draw(st.integers(0, 99)))
        columns = {name: pa.array(filled(pool, len(ids), rng), kind_of) for name, (kind_of, pool) in described.items()}
        return (form, make, identity, pa.table({"id": pa.array(ids, kind), **columns}))
    return form, make, identity


def structs(fields, here, ids, rng):
    """Lists of structs: the id of each candidate, and values of its own."""
    flat = [at for some in here for at in some]
    arrays = [
        pa.array([ids[at] for at in flat] if pool is None else filled(pool, len(flat), rng), kind)
        for kind, pool in fields.values()
    ]
    starts = np.cumsum([0, *map(len, here)]).astype(np.int32)
    return pa.ListArray.from_arrays(starts, pa.StructArray.from_arrays(arrays, names=list(fields)))


# ---- whole logs -------------------------------------------------------------------------------------


@st.composite
def outcomes(draw):
    """Losses and propensities, some at the edges of float64: ``rng, Decisions → columns``, and their options."""
    style = draw(st.sampled_from(["signal", *LOSSES, "signal", "clicks", "wide", "whole"]))
    role = draw(st.sampled_from(["loss", "loss", "reward"]))
    chance = draw(st.sampled_from(["even", "even", "even", "any", "edges"]))
    unit = draw(st.sampled_from(["probability"] * 6 + ["percent", "log", "estimate"]))
    edges = draw(st.lists(st.sampled_from(EDGES), min_size=1, max_size=3))
    narrow = draw(st.sampled_from([None, None, None, None, None, None, pa.float32(), pa.float32(), pa.string()]))

    def make(rng, decisions):
        rows = len(decisions.good)
        pool = LOSSES.get(style, [0.0])
        loss = np.where(decisions.good, 0.0, 1.0) if style == "signal" else np.array(filled(pool, rows, rng))
        p = 1.0 / decisions.choices if chance == "even" else rng.uniform(0.01, 1.0, rows)
        if chance == "edges" and "distribution" not in decisions.columns:
            p = np.array(filled(edges, rows, rng))
        if "distribution" in decisions.columns:
            p = 1.0 / decisions.choices
        values = np.log(p) if unit == "log" else 100.0 * p if unit == "percent" else p
        found = {role: pa.array(loss), "propensity": pa.array(values)}
        if narrow is not None and unit == "probability" and chance == "even":
            found["propensity"] = found["propensity"].cast(narrow)
        return found

    told = {"estimate": ("--propensity=estimate",), "percent": ("--propensity-unit=percent",)}
    return make, told.get(unit, ("--propensity-unit=log",) if unit == "log" else ())


@st.composite
def logs(draw):
    """A whole log, and a later one made in the same way."""
    kind, decide, options, *catalogue = draw(st.one_of(classes(), classes(), sets(), candidates()))
    cost, told = draw(outcomes())
    kinds = SCALARS if draw(seldom(8)) else FEATURES
    columns = {name: draw(features(kinds)) for name in draw(st.lists(names, max_size=4, unique=True))}
    roles = {
        role: draw(pools(SCALARS if draw(seldom(8)) else usual, gaps=False))
        for role, usual in (("group", LABELS), ("time", TIMES), ("logger", LABELS))
        if draw(seldom(4))
    }
    doubled = draw(seldom(50))

    def make(seed, rows):
        rng = np.random.default_rng(seed)
        decisions = decide(rng, rows)
        found = {name: column(rng, rows) for name, column in columns.items()}
        found |= decisions.columns | cost(rng, decisions)
        found |= {role: pa.array(filled(pool, rows, rng), type_of) for role, (type_of, pool) in roles.items()}
        table = pa.Table.from_arrays(list(found.values()), names=list(found))
        return table.append_column(table.column_names[0], table.column(0)) if doubled else table

    many = draw(seldom(10))
    seed, rows = draw(st.integers(0, 9999)), draw(MANY_ROWS if many else ROWS)
    log = RandomLog(
        make(seed, rows),
        make(seed + 1, draw(ROWS)),
        (*options, *told),
        *catalogue,
        kind=kind,
        features=tuple(columns),
        label="y0" if kind == "columns" else "output",
    )
    return draw(renamed(log)) if draw(seldom(4)) else log


@st.composite
def renamed(draw, log):
    """The same log with columns of other names, which options tell."""
    told = {option.split("=")[0] for option in log.options}
    new, options = {}, []
    for role in (*ROLES, "reward"):
        free = role in log.table.column_names and f"--{role}" not in told
        name = draw(names) if free and draw(st.booleans()) else role
        if name != role and name not in log.table.column_names and name not in new.values():
            new[role] = name
            options.append(f"--{role}={name}")

    def other(table):
        return table.rename_columns([new.get(name, name) for name in table.column_names])

    label = new.get(log.label, log.label)
    return replace(log, table=other(log.table), later=other(log.later), options=(*log.options, *options), label=label)
