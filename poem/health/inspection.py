"""A log, raw or checked → its health."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from poem.data import BanditLog
from poem.data.features import Encoding, Features
from poem.errors import InputError
from poem.health import (
    adaptive,
    availability,
    conditions,
    contents,
    dependence,
    distribution,
    drift,
    gaps,
    power,
    propensities,
    support,
)
from poem.health.availability import tried
from poem.health.facts import Facts
from poem.health.finding import MOST_ACTIONS, TOPICS, Finding, Health, Tried
from poem.health.sound import SoundLog, sound_log
from poem.packed import PackedLog, how_to_open, sample_units
from poem.readers import RawLog

SAMPLE = 1 / 8  # of the memory of a packed log, for the rows that are inspected
MOST_UNITS = 1_000_000  # of them


def inspect(
    source: RawLog | BanditLog | PackedLog,
    *,
    features: Features | None = None,
    labels: Sequence[Any] | None = None,
    missing: bool = False,
    encoding: Encoding | None = None,
) -> Health:
    """Check whether a log is fit for learning.

    Bad content is never an error here but a finding, with the number of rows and the place of the first one. All
    further checks use the other rows.

    Parameters
    ----------
    source : RawLog, BanditLog or PackedLog
        A raw log, not checked yet; or a checked one, for which some checks are done already. A packed log that does not
        fit into its memory is inspected by a random sample of its units.
    features, labels, missing, encoding
        As in :func:`poem.readers.log_of`; unused for a BanditLog.

    Returns
    -------
    Health

    Raises
    ------
    ReadError
        If the source has no rows, no column of outputs, or no column of losses.
    """
    if isinstance(source, PackedLog):
        return _of_packed(source)
    if isinstance(source, BanditLog):
        return _health("the log", SoundLog(source, np.arange(len(source)), []), len(source))
    if not isinstance(source, RawLog):
        raise InputError(
            f"inspect takes a BanditLog, a PackedLog or a RawLog; found {type(source).__name__}.{how_to_open(source)}"
        )
    known = None if labels is None else tuple(labels)
    found = sound_log(source, features, known, missing, encoding)
    return _health(source.origin.name, found, source.table.num_rows)


def _of_packed(log: PackedLog) -> Health:
    """Inspect a sample of a packed log; all of its rows were checked when it was packed."""
    sample = sample_units(log, MOST_UNITS, log.memory * SAMPLE)
    return _health(log.folder.name, SoundLog(sample.log, sample.keys.place, []), len(sample.log), log)


def _health(name: str, found: SoundLog, total: int, packed: PackedLog | None = None) -> Health:
    findings: list[Finding] = list(found.findings)
    actions: tuple[Tried, ...] = ()
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what overflows is said, not warned of
        if found.log is not None:
            facts = replace(_facts(found, found.log), packed=packed)
            findings, actions = findings + _checks(found, facts, total), tried(facts, MOST_ACTIONS)
    if sum(finding.verdict == "unfit" for finding in findings) > 1:
        # That learning would refuse the log is no further reason beside why it would.
        findings = [finding for finding in findings if finding.name != "refused"]
    return Health(name, tuple(sorted(findings, key=lambda finding: TOPICS.index(finding.topic))), actions)


def _facts(found: SoundLog, log: BanditLog) -> Facts:
    told = log.structure.lists_outputs and log.available is None
    listed = distribution.availability(found.raw, found.rows, log.labels) if told else None
    return Facts(log, _place(found), listed)


def _checks(found: SoundLog, facts: Facts, total: int) -> list[Finding]:
    return [
        *contents.rows(facts, total),
        *contents.contexts(facts),
        *contents.features(facts, found.raw),
        *gaps.gaps(facts, found.raw),
        *contents.outputs(facts),
        *availability.availability(facts),
        *contents.loss(facts),
        *propensities.propensities(facts),
        *distribution.calibration(found.raw, found.rows, facts.group),
        *support.support(facts),
        *dependence.duplicates(facts),
        *dependence.groups(facts),
        *drift.drift(facts),
        *adaptive.adaptation(facts),
        *conditions.conditions(facts),
        *power.learning(facts),
    ]


def _place(found: SoundLog) -> Any:
    if found.raw is None:
        return lambda row: f"row {int(found.rows[row])}"
    origin, rows = found.raw.origin, found.rows
    return lambda row: origin.place(int(rows[row]))
