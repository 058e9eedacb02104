"""The logs of a shop, and calls of the commands on them."""

import json
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from poem.cli import main

ITEMS = ("cocoa, hot", "tea", "Weißbier")
COLUMNS = ("--output", "item", "--reward", "click", "--propensity", "pscore", "--group", "user", "--time", "when")
FIT = ("--learner", "ips", "--jobs", "1")
NEW = ("inspect", "train", "evaluate", "watch", "predict", "report", "convert", "pack", "simulate")


def best_item(city, age):
    return np.where(city == "Bonn", ITEMS[0], np.where(age > 0.5, ITEMS[1], ITEMS[2]))


def shop_table(rows, seed, noise=False):
    """What a shop logged: raw columns, and names that are not poem's."""
    rng = np.random.default_rng(seed)
    city, age = rng.choice(["Bonn", "Köln", "Ulm"], rows), rng.integers(18, 80, rows) / 100.0
    chance = np.array([0.5, 0.3, 0.2])
    chosen = rng.choice(3, rows, p=chance)
    item = np.array(ITEMS)[chosen]
    click = rng.integers(0, 2, rows) if noise else (item == best_item(city, age)).astype(int)
    return pd.DataFrame(
        {
            "city": city,
            "age": age,
            "item": item,
            "click": click,
            "pscore": chance[chosen],
            "user": [f"u{number}" for number in rng.integers(0, rows // 2, rows)],
            "when": pd.date_range("2026-01-01", periods=rows, freq="min").strftime("%Y-%m-%dT%H:%M:%S"),
        }
    )


def write_table(table, path):
    if path.suffix == ".parquet":
        table.to_parquet(path, index=False)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_dict("records")))
    else:
        table.to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def shop(tmp_path_factory):
    """A folder with logs of a shop, a policy, and labelled data; logs have too few rows for trees, which take long."""
    folder = tmp_path_factory.mktemp("shop")
    log = write_table(shop_table(190, 0), folder / "log.csv")
    later = write_table(shop_table(190, 1), folder / "later.csv")
    noise = write_table(shop_table(190, 2, noise=True), folder / "noise.csv")
    certain = write_table(shop_table(100, 3).assign(pscore=1.0), folder / "certain.csv")
    contexts = write_table(shop_table(50, 4)[["city", "age"]], folder / "contexts.csv")
    table = shop_table(190, 5)
    labelled = write_table(
        table[["city", "age"]].assign(kind=best_item(table["city"], table["age"])), folder / "labelled.csv"
    )
    policy = folder / "policy.poem"
    assert main(["train", str(log), "-o", str(policy), "--quiet", *FIT, *COLUMNS]) == 0
    return SimpleNamespace(
        folder=folder,
        log=str(log),
        later=str(later),
        noise=str(noise),
        certain=str(certain),
        contexts=str(contexts),
        labelled=str(labelled),
        policy=str(policy),
    )


def command_line(name, shop, out):
    """A quick call of each command that ends with 0, and the file that it writes, if it does."""
    lines = {
        "inspect": (["inspect", shop.log, *COLUMNS], None),
        "train": (["train", shop.log, "-o", str(out / "new.poem"), *FIT, *COLUMNS], out / "new.poem"),
        "evaluate": (["evaluate", shop.policy, shop.later, "--estimators", "SNIPS,DR"], None),
        "watch": (["watch", shop.later, "--policy", shop.policy, "--loss-bounds", "0,1"], None),
        "predict": (
            ["predict", shop.policy, shop.contexts, "--sample", "--seed", "7", "-o", str(out / "new.csv")],
            out / "new.csv",
        ),
        "report": (["report", shop.policy, shop.later, "-o", str(out / "new.html")], out / "new.html"),
        "convert": (["convert", shop.log, str(out / "new.parquet"), *COLUMNS], out / "new.parquet"),
        "pack": (["pack", shop.log, "-o", str(out / "packed"), *COLUMNS], out / "packed"),
        "simulate": (
            ["simulate", shop.labelled, "--label", "kind", "-o", str(out / "new.parquet"), "--fraction", "0.5"],
            out / "new.parquet",
        ),
    }
    return lines[name]


WRITERS = [name for name in NEW if name not in ("inspect", "evaluate", "watch", "pack")]


def call(*arguments):
    """Run the command line in this process."""
    try:
        return main([str(argument) for argument in arguments])
    except SystemExit as stop:
        return stop.code


def refused(capsys, *arguments):
    """Run a command that must be refused, and return what it said."""
    assert call(*arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    assert len([line for line in err.splitlines() if not line.startswith("usage:")]) == 1
    return err


@pytest.fixture(scope="session")
def tags(tmp_path_factory):
    """Logs of label sets, as JSON lines, and a policy."""
    folder = tmp_path_factory.mktemp("tags")
    rng = np.random.default_rng(0)
    wanted = rng.random((300, 3)) < 0.5
    chosen = rng.random((300, 3)) < 0.5
    names = np.array(["new", "süß", "cheap"])
    table = pd.DataFrame(
        {
            "a": wanted[:, 0] * 1.0,
            "b": wanted[:, 1] * 1.0,
            "c": wanted[:, 2] * 1.0,
            "output": [names[row].tolist() for row in chosen],
            "loss": (wanted != chosen).sum(axis=1),
            "propensity": 0.125,
        }
    )
    log = write_table(table, folder / "tags.jsonl")
    assert call("train", log, "-o", folder / "tags.poem", "--quiet", *FIT) == 0
    return SimpleNamespace(log=log, policy=folder / "tags.poem")


RUN = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background lets its children ignore it

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ.get("INTERRUPT_AT"):
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
from poem.cli import main
sys.exit(main())
"""


def command(*arguments):
    """A command line for a process of its own."""
    return [sys.executable, "-c", RUN, *map(str, arguments)]
