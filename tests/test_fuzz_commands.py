"""Random but valid logs through whole commands: each ends with an answer or a clear error, and leaves no half files.

Without POEM_FUZZ_SECONDS the same few logs are tried each time; with it, others, for about as long.
"""

import io
import os
import re
import shutil
import sys
import time
import warnings
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from random_files import files
from random_values import names, seldom

from poem.cli import main

SECONDS = float(os.environ.get("POEM_FUZZ_SECONDS", 0))
EXAMPLES = 100 if SECONDS else 20  # of one round; without POEM_FUZZ_SECONDS there is one
# Names of exceptions are for programmers, not for users.
CLASSES = re.compile(r"\b(Arrow\w+|[A-Z]\w+(Error|Exception)|Traceback)\b")
ANSWER = re.compile(r"poem( \w+: error)?: (?!warning: )")
LEARNERS = ("ips", "poem", "norm-poem", "direct", "dr", "ix", "ls")
INTERVALS = ("t", "normal", "bootstrap", "bernstein", "truncated", "ls", "betting", "clopper-pearson")
ESTIMATORS = ("IPS", "SNIPS", "DM", "DR", "SWITCH-DR,LS", "clipped IPS,IX", "SNDR,DRos", "none")
HOW = (*[("--no-certificate", "--force")] * 6, (), ("--imitate", "--force"), ("--refit",), ("--out-of-time", "--force"))
NAMED = ("one-hot", "hash", "text", "ignore", "context")
BOUNDS = (*["-1e20,1e20"] * 6, "0,1", "-1,1", "-5,100", "0,1e300", "-1e308,1e308", "0,1e-320")


# ---- options ----------------------------------------------------------------------------------------


@st.composite
def some(draw, *options):
    """Any of these options, each of them seldom."""
    return tuple(draw(option) for option in options if draw(seldom(5)))


def one_of(option, *values):
    return st.sampled_from(values).map(lambda value: f"{option}={value}")


def flag(*options):
    return st.sampled_from(options)


def encoding(columns):
    """How columns become features; seldom those of columns that the log has not."""
    name = st.sampled_from(columns) if columns else names
    named = [name.map(lambda found, option=option: f"--{option}={found}") for option in NAMED]
    return some(flag("--scale"), one_of("--hash-size", 1, 8), *named) if columns else some(*named)


OUTPUT = some(flag("--json"), flag("--quiet"))
TRAIN = some(
    one_of("--valid", 0.1, 0.5, 0.9),
    one_of("--confidence", 0.5, 0.99),
    one_of("--loss-bounds", *BOUNDS),
    one_of("--seed", 0, 7),
    one_of("--jobs", 1, 2),
)
JUDGE = some(
    one_of("--level", 0.5, 0.95, 0.999999),
    one_of("--seed", 0, 7),
)
EVALUATE = some(
    one_of("--estimators", *ESTIMATORS),
    one_of("--interval", *INTERVALS),
    one_of("--loss-bounds", *BOUNDS),
)
SIMULATE = some(
    one_of("--replay", 1, 3),
    one_of("--fraction", 0.01, 0.5, 0.9),
    one_of("--temperature", 0, 0.1, 2, 1e300, -1),
    one_of("--loss", "hamming", "zero-one", "f1"),
    one_of("--structure", "subset", "multiclass", "multilabel"),
)
PREDICT = st.sampled_from(
    [
        (),
        (),
        (),
        ("--sample",),
        ("--sample",),
        ("--sample", "--seed=1"),
        ("--sample", "--floor=0.1"),
        ("--floor=0.1",),
        ("--json",),
    ]
)


@st.composite
def command_lines(draw, found, folder):
    """All commands, one after the other; each as its arguments and the file that it writes."""
    log, later, policy = str(found.log), str(found.later), str(folder / "policy.poem")
    encoded = encoding(() if draw(seldom(20)) else found.features) if found.features else st.just(())
    learner = draw(st.sampled_from([*LEARNERS, *["ips"] * 12, "auto"]))
    how = draw(st.sampled_from(HOW))
    train = ("--learner=" + learner, *how, *draw(TRAIN), *draw(encoded), *draw(OUTPUT))
    table = draw(st.sampled_from([None, "decisions.csv", "decisions.jsonl", "decisions.parquet"]))
    written = () if table is None else ("-o", str(folder / table))
    read = tuple(option for option in found.options if option.startswith("--actions="))
    title = draw(st.just(()) | names.map(lambda name: (f"--title={name}",)))
    label = draw(st.sampled_from([*[found.label] * 4, *found.features]))
    judge = (*draw(JUDGE), *draw(OUTPUT))
    packed, small = str(folder / "packed"), f"--memory={draw(st.sampled_from(['1kB', '100kB', '1GB']))}"
    learnt, fresh = str(folder / "packed.poem"), str(folder / "fresh")
    return [
        (("inspect", log, *found.options, *draw(encoded), *draw(OUTPUT)), None),
        (("train", log, "-o", policy, *found.options, *train), "policy.poem"),
        (("evaluate", policy, later, *found.options, *draw(EVALUATE), *judge), None),
        (("predict", policy, later, *read, *written, *draw(PREDICT)), table),
        (("report", policy, later, "-o", str(folder / "page.html"), *found.options, *title, *judge), "page.html"),
        (("watch", later, "--policy", policy, f"--loss-bounds={draw(st.sampled_from(BOUNDS))}", *found.options), None),
        (("convert", log, str(folder / "converted.parquet"), *found.options, *draw(OUTPUT)), "converted.parquet"),
        (("inspect", str(folder / "converted.parquet")), None),
        (
            ("simulate", log, f"--label={label}", "-o", str(folder / "made.parquet"), *draw(SIMULATE), *draw(OUTPUT)),
            "made.parquet",
        ),
        (("pack", log, "-o", packed, *found.options, *draw(encoded), *draw(OUTPUT)), "packed"),
        (("inspect", packed, small), None),
        (("train", packed, "-o", learnt, small, "--learner=" + learner, *how, *draw(TRAIN)), "packed.poem"),
        (("evaluate", learnt, packed, small, *draw(EVALUATE), *judge), None),
        (("report", learnt, packed, small, "-o", str(folder / "packed.html"), *judge), "packed.html"),
        (("pack", later, "-o", fresh, "--policy", learnt, *found.options, *draw(OUTPUT)), "fresh"),
        (("evaluate", learnt, fresh, small, *draw(EVALUATE), *judge), None),
    ]


# ---- what must be true ------------------------------------------------------------------------------


def run(arguments):
    """Run a command in this process; return its status and what it wrote to stderr."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # poem's own warnings are for users; scikit-learn's are not shown
        try:
            status = main(list(arguments))
        except SystemExit as stop:
            status = stop.code
    return status, err.getvalue()


def fault_of(status, said, before, after, output):
    """Say what is wrong with how a command ended; None if nothing is."""
    if status not in (0, 1, 2):
        return f"status {status}"
    if any(name.startswith(".") for name in after):
        return "a temporary file was left"
    if status == 2 and after - before:
        return f"{after - before} was left after an error"
    if status == 0 and output is not None and output not in after:
        return f"{output} was not written"
    if status != 2:
        return None
    lines = [line for line in said.splitlines() if ANSWER.match(line)]
    if len(lines) != 1 or len(lines[0]) < 30 or CLASSES.search(said):
        return "the message is not one clear line"
    return None


def check_commands(found, folder, lines, statuses):
    """Run all commands on a log; those that need a policy are left out if there is none."""
    for arguments, output in lines:
        needed = [arguments[1], *(value for name, value in pairwise(arguments) if name == "--policy")]
        if not all(map(os.path.exists, needed)):
            continue
        before = set(os.listdir(folder))
        status, said = run(arguments)
        statuses[arguments[0], status] += 1
        fault = fault_of(status, said, before, set(os.listdir(folder)), output)
        if fault is not None:
            kept = mkdtemp(prefix="poem-fuzz-")
            shutil.copytree(folder, kept, dirs_exist_ok=True)
            line = [argument.replace(str(folder), kept) for argument in arguments]
            raise AssertionError(f"{fault}\nlog: {found.described}\nrepeat: poem.cli.main({line!r})\n{said}")


def one_round(number, counts, statuses):
    """Try so many logs; the number is the seed. What fails is kept as it is: a smaller log would take long to find."""

    @seed(number)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def check(data):
        with TemporaryDirectory() as name:
            folder = Path(name)
            found = data.draw(files(folder))
            if found is None:
                return
            check_commands(found, folder, data.draw(command_lines(found, folder)), statuses)
            counts["logs"] += 1

    check()


def test_random_logs_through_all_commands(capsys):
    end, counts, statuses = time.monotonic() + SECONDS, Counter(), Counter()
    number = int.from_bytes(os.urandom(4)) if SECONDS else 0
    while True:
        one_round(number, counts, statuses)
        number += 1
        if time.monotonic() >= end:
            break
    if SECONDS:
        with capsys.disabled():
            sys.stderr.write(f"\n{counts['logs']} logs went through all commands; {dict(sorted(statuses.items()))}\n")
    assert counts["logs"] >= EXAMPLES / 2
