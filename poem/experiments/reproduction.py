"""From the names of tables and figures to files: what is missing is run, and all is drawn from the record."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from poem.compute import count_threads
from poem.errors import InputError
from poem.experiments.document import Section, Text, to_html, to_markdown
from poem.experiments.figures import curves_of, section_of
from poem.experiments.protocol import PROTOCOLS, Protocol, protocol_named
from poem.experiments.record import Record
from poem.experiments.run import data_named
from poem.experiments.schedule import run_all
from poem.experiments.spec import ITEMS, SWEEPS, datasets_of, runs_for, table_logging
from poem.experiments.summary import Results
from poem.experiments.tables import Tables
from poem.files import held_folder, write_whole
from poem.simulation import CATALOG, Dataset
from poem.version import VERSION

OWN = re.compile(rf"({'|'.join(PROTOCOLS)})-[a-z0-9-]+\.(md|html|png|svg)")  # names of tables and figures


@dataclass(frozen=True)
class Reproduction:
    """What was made: the text of all tables, and the files."""

    markdown: str
    files: tuple[Path, ...]


def reproduce(
    items: Sequence[str] = ("all",),
    *,
    dataset: str = "all",
    runs: int = 10,
    protocol: str = "paper",
    jobs: int = 1,
    data: str | Path | None = None,
    out: str | Path = "results",
    seed: int = 0,
    progress: bool = False,
) -> Reproduction:
    """Reproduce tables and figures of the paper.

    Parameters
    ----------
    items : sequence of str
        Of table1 … table4, figure1 … figure3, or all.
    dataset : str
        scene, yeast, tmc or lyrl; "all" is what the paper used for each table or figure.
    runs : int
        Repetitions; their seeds are ``seed``, ``seed + 1``, …
    protocol : "paper" or "release"
        As the text says, or as the authors' code did where it differs.
    jobs : int
        Processes; -1 is one for each core. The numbers do not depend on it.
    data : path, optional
        The folder with the data; see :func:`poem.load_dataset`.
    out : path
        The folder for results. Every run is appended to its ``runs.csv``, and what is there is not run again.
    progress : bool
        Show progress on stderr.
    """
    wanted = _checked_items(items)
    rules = protocol_named(protocol)
    if dataset != "all" and dataset not in CATALOG:
        raise InputError(f"dataset must be all or one of {', '.join(CATALOG)}; found {dataset!r}.")
    if runs < 1 or seed < 0:
        raise InputError(f"runs must be at least 1 and seed at least 0; found runs={runs}, seed={seed}.")
    if jobs == 0:
        raise InputError("jobs must not be 0. Pass 1 for one process or -1 for one for each core.")
    processes = count_threads(jobs)
    folder = None if data is None else str(data)
    names = sorted({name for item in wanted for name in datasets_of(item, dataset)}, key=list(CATALOG).index)
    loaded = {name: data_named(name, folder, progress) for name in names}
    if Path(out).exists() and not Path(out).is_dir():
        raise InputError(f"the output folder {str(out)!r} is a file. Choose another one.")
    Path(out).mkdir(parents=True, exist_ok=True)
    with held_folder(Path(out), OWN, "Wait until that command has ended, or choose another folder with --out."):
        record = Record(Path(out) / "runs.csv")
        seeds = range(seed, seed + runs)
        planned = (record.missing(run, rules, loaded[run.dataset]) for run in runs_for(wanted, dataset, rules, seeds))
        todo = [run for run in planned if run is not None]
        if todo:
            record.begin()
            run_all(todo, rules, folder, record, processes, progress)
        return _written(wanted, dataset, rules, record, loaded, seeds, Path(out))


def _checked_items(items: Sequence[str]) -> tuple[str, ...]:
    unknown = [item for item in items if item not in (*ITEMS, "all")]
    if unknown or not items:
        raise InputError(f"there is no {unknown[0] if unknown else 'item'!r}; choose from {', '.join(ITEMS)}, all.")
    return ITEMS if "all" in items else tuple(item for item in ITEMS if item in items)


def _written(
    items: Sequence[str],
    dataset: str,
    protocol: Protocol,
    record: Record,
    data: dict[str, Dataset],
    seeds: range,
    out: Path,
) -> Reproduction:
    """Write the tables and figures that the record gives."""
    suffix = "" if dataset == "all" else f"-{dataset}"
    sections, pictures = sections_of(items, dataset, protocol, record, data, seeds, suffix)
    files = [write_whole(out / name, content) for name, content in pictures.items()]
    stem = f"{protocol.name}-{'all' if tuple(items) == ITEMS else '-'.join(items)}{suffix}"
    title = f"Counterfactual risk minimization, reproduced ({protocol.name} protocol)"
    markdown = to_markdown(sections)
    files.append(write_whole(out / f"{stem}.md", f"# {title}\n\n{markdown}".encode()))
    files.append(write_whole(out / f"{stem}.html", to_html(title, sections).encode()))
    return Reproduction(markdown, (*([record.path] if record.path.exists() else []), *files))


def sections_of(
    items: Sequence[str],
    dataset: str,
    protocol: Protocol,
    record: Record,
    data: dict[str, Dataset],
    seeds: range,
    suffix: str = "",
) -> tuple[list[Section], dict[str, bytes]]:
    """Return the tables and figures that a record gives, and the figures' files by name."""
    versions = {name: loaded.version for name, loaded in data.items()}
    results = Results(
        (
            result
            for result in record
            if result.protocol == protocol.name
            and result.poem == VERSION
            and result.data == versions.get(result.dataset)
        ),
        seeds,
    )
    runs = f"{len(seeds)} runs (seeds {seeds[0]} to {seeds[-1]})" if len(seeds) > 1 else f"one run (seed {seeds[0]})"
    about = f"poem {VERSION}, {runs}. Protocol “{protocol.name}”: {protocol.about}."
    if tuple(items) == ("table1",):
        about = f"poem {VERSION}; nothing was run."
    sections, pictures = [Section("How this was made", [Text(about)])], {}
    tables = Tables(results, data, table_logging(protocol))
    for item in items:
        if item in SWEEPS:
            name = datasets_of(item, dataset)[0]
            stem = f"{protocol.name}-{item}{suffix}"
            section, drawn = section_of(
                SWEEPS[item], name, curves_of(SWEEPS[item], name, protocol, results), versions[name], stem
            )
            pictures.update(drawn)
        else:
            section = tables.section(item, datasets_of(item, dataset))
        sections.append(section)
    return sections, pictures
