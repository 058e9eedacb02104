"""A raw log → the log of its sound rows, and what is wrong with the others."""

from dataclasses import dataclass, replace

import numpy as np

from poem.arrays import AnyArray
from poem.data import BanditLog
from poem.data.features import Encoding, Features
from poem.errors import LogError, ReadError
from poem.files import Table
from poem.health.broken import Sound, check_categories, check_contexts, check_losses, check_outputs, check_who_and_when
from poem.health.broken_candidates import check_available
from poem.health.broken_propensities import check_propensities
from poem.health.finding import Finding
from poem.readers import RawLog, check_roles, log_of
from poem.structures import Labels


@dataclass(frozen=True)
class SoundLog:
    """The sound rows of a raw log, and what is wrong with the others.

    Attributes
    ----------
    log : BanditLog or None
        The sound rows; None if there are none.
    rows : (n,) array
        Their positions in the table.
    findings : list of Finding
        What is wrong with the others.
    raw : RawLog or None
        The table they come from, with the detected units of its propensities.
    """

    log: BanditLog | None
    rows: AnyArray
    findings: list[Finding]
    raw: RawLog | None = None


def sound_log(
    raw: RawLog, features: Features | None, labels: Labels | None, missing: bool, encoding: Encoding | None
) -> SoundLog:
    """Return the log of all usable rows, and what is wrong with the others."""
    if raw.table.num_rows == 0:
        raise ReadError(f"{raw.origin.name} has no rows, only column names. Pass a log with at least one decision.")
    check_roles(raw, missing=True)
    known = raw.labels if labels is None else labels
    sound = Sound.start(raw)
    check_outputs(sound, known)
    check_losses(sound)
    check_available(sound)
    missing = check_propensities(sound, missing, known)
    check_who_and_when(sound)
    recipe = raw.features if features is None or raw.about.encoded else features
    check_contexts(sound, recipe)
    if recipe is None:
        check_categories(sound, encoding)
    return _built(sound, features, known, missing, encoding)


def _built(
    sound: Sound, features: Features | None, labels: Labels | None, missing: bool, encoding: Encoding | None
) -> SoundLog:
    kept = np.flatnonzero(~sound.bad)
    if not len(kept):
        sound.say(
            "rows", "sound rows", "unfit", "no row of the log can be used", "Fix the rows as the other findings say."
        )
        return SoundLog(None, kept, sound.findings)
    patched = replace(sound.raw, table=_patched(sound, int(kept[0])))
    try:
        log = log_of(patched, features=features, labels=labels, missing=missing, encoding=encoding)
    except LogError as error:
        sound.say("rows", "readable", "unfit", f"it cannot be read as a log: {str(error).rstrip('.')}", "")
        return SoundLog(None, kept, sound.findings)
    return SoundLog(log.take(kept) if len(kept) < len(log) else log, kept, sound.findings, patched)


def _patched(sound: Sound, good: int) -> Table:
    """Return the table with broken values replaced by those of a sound row; such rows are dropped afterwards.

    Rows are not filtered here: in a log that stores each context once, a broken row may hold the features of others.
    """
    import pyarrow as pa

    table, roles = sound.raw.table, sound.raw.roles
    for name, values in sound.changed.items():
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    for names, bad in ((roles.taken() - {roles.context_id}, sound.bad), (set(sound.context), sound.bad_context)):
        if bad.any():
            source = pa.array(np.where(bad, good, np.arange(len(bad))))
            for name in sorted(names):
                table = table.set_column(table.column_names.index(name), name, table.column(name).take(source))
    return table
