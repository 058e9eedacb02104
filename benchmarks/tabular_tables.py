"""Tables of tabular runs: mean test losses, the default against its best rival, and certificates that were wrong."""

from collections.abc import Iterable

import numpy as np

from benchmarks.multiclass import with_error

MEASURES = {"expected": "Expected loss", "map": "Loss of the most probable class"}
BEST_VW = "vw, best by test"
ORDER = (
    *("logger", "default", "refit", "uncertified", "before", "boosted-dm", "vw", BEST_VW),
    *("skyline-linear", "skyline-boosted"),
)
RIVALS = ("before", "boosted-dm", "vw")
Rows = list[dict[str, str]]


def losses(rows: Rows, method: str, measure: str) -> dict[str, float]:
    """Return the losses of a method by seed."""
    return {row["seed"]: float(row[measure]) for row in rows if row["method"] == method}


def best_setting(rows: Rows) -> str:
    """Return Vowpal Wabbit's setting with the lowest mean test loss; those of one set have the same seeds."""
    settings = sorted({row["method"] for row in rows if row["method"].startswith("vw ")})
    return min(settings, key=lambda name: np.mean([*losses(rows, name, "map").values()]), default="")


def compared(rows: Rows, rivals: Iterable[str], measure: str) -> tuple[str, str, str] | None:
    """Return the best of some rivals by its mean, and the default minus it: with its error, and in standard errors."""
    mine = losses(rows, "default", measure)
    found = {}
    for rival in rivals:
        other = losses(rows, rival, measure)
        if seeds := mine.keys() & other.keys():
            found[rival] = np.array([mine[seed] - other[seed] for seed in sorted(seeds)])
    if not found:
        return None
    best = max(found, key=lambda rival: found[rival].mean())
    return best, with_error(found[best], "+"), in_errors(found[best])


def in_errors(values: np.ndarray) -> str:
    """Write a mean in its own standard errors, if there are any."""
    if len(values) < 2:
        return ""
    error = values.std(ddof=1) / np.sqrt(len(values))
    return (
        f"{values.mean() / error:+.1f}" if error > 0.0 else f"{np.sign(values.mean()):+.0f}∞" if values.any() else "0"
    )


def means(groups: dict[str, Rows], measure: str) -> list[list[str]]:
    """Return the header and a line per set with the mean loss of each method."""
    there = {row["method"] for rows in groups.values() for row in rows}
    methods = [method for method in ORDER if method in there or (method == BEST_VW and "vw" in there)]

    def cell(rows: Rows, method: str) -> str:
        found = losses(rows, best_setting(rows) if method == BEST_VW else method, measure)
        return with_error(np.array([*found.values()])) if found else ""

    return [
        ["set", "seeds", *methods],
        *([name, seeds(rows), *(cell(rows, method) for method in methods)] for name, rows in groups.items()),
    ]


def seeds(rows: Rows) -> str:
    """Return the number of seeds."""
    return str(len({row["seed"] for row in rows}))


def against(groups: dict[str, Rows], measure: str) -> list[list[str]]:
    """Return the header and a line per set that compares the default with the best rival, and with each of them."""
    lines = [["set", "best rival", "default − it", "in errors", *(f"default − {one}, in errors" for one in RIVALS)]]
    for name, rows in groups.items():
        best = compared(rows, RIVALS, measure)
        if best:
            each = [compared(rows, [rival], measure) for rival in RIVALS]
            lines.append([name, *best, *(one[2] if one else "" for one in each)])
    return lines


def claims(rows: Rows) -> str:
    """Count certified policies, and those whose true loss is above the logging policy's."""
    lines = []
    for method in ("default", "refit"):
        mine = [row for row in rows if row["method"] == method]
        sure = [row for row in mine if row["certified"] == "True"]
        above = [row for row in sure if row["above_logger"] == "True"]
        which = [f"{row['set']}, replay {row['replay']}, seed {row['seed']} ({row['z']} errors)" for row in above]
        if mine:
            lines.append(
                f"{method}: {len(sure)} of {len(mine)} runs certified, {len(above)} of them above the logging policy"
                + (f": {'; '.join(which)}." if which else ".")
            )
    return "\n".join(f"* {line}" for line in lines)


def times(rows: Rows) -> str:
    """Write the median processor seconds of each method."""
    medians = []
    for method in ORDER:
        taken = [float(row["seconds"]) for row in rows if row["method"] == method and row["seconds"]]
        if taken and method != "before":
            medians.append(f"{method} {np.median(taken):.1f}, at most {max(taken):.1f}")
    return f"Median processor seconds: {'; '.join(medians)}."


def markdown(lines: list[list[str]]) -> str:
    """Return a table, the first line of which is its header."""
    rule = ["---", *("---:" for _ in lines[0][1:])]
    return "\n".join(f"| {' | '.join(line)} |" for line in [lines[0], rule, *lines[1:]])


def tables(rows: Rows, sets: list[str], replays: list[int]) -> str:
    """Return everything as Markdown."""
    parts = []
    for measure, replay in ((measure, replay) for measure in MEASURES for replay in replays):
        here = [row for row in rows if int(row["replay"]) == replay]
        groups = {name: [row for row in here if row["set"] == name] for name in sets}
        groups = {name: mine for name, mine in groups.items() if mine}
        parts += [f"{MEASURES[measure]}, replay {replay}:", markdown(means(groups, measure))]
        differences = against(groups, measure)
        parts += [markdown(differences)] if len(differences) > 1 else []
    parts += [claims(rows), times(rows)]
    return "\n\n".join(part for part in parts if part) + "\n"
