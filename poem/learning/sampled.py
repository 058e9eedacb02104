"""A packed log as a fit sees it: a sample that candidates compete on, shards to learn from, and rows that certify."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from poem.backends import Threads
from poem.certificates import adapts, earliest_rows
from poem.data import BanditLog, with_seen_contexts
from poem.errors import InputError
from poem.learning.arguments import Validation, check_share
from poem.learning.options import Selection
from poem.learning.shards import Metered, Shards, Source
from poem.packed import Keys, PackedLog, Sample, all_units, in_order, part_within, sample_units, share_units

SHARE = 1 / 8  # of the memory, for the sample and for the rows that certify: a fit takes several times its log
MOST_UNITS = 1_000_000  # of a sample: candidates are told apart by fewer
HELD = 0.2  # share of the units that certify, if they fit


def in_parts(
    log: PackedLog, choice: Selection, n_jobs: int | None, warm: bool
) -> tuple[BanditLog, Selection, Source, Shards | None]:
    """Return what a fit competes on, how it is judged, where it comes from, and shards to follow the chosen recipe on.

    A log that fits into its memory is read as a whole. Else its units are split by their hashes: the answer is the same
    for any number of shards.
    """
    log.need_propensities()
    source = Source(log.fingerprint(), log.memory)
    if log.nbytes <= log.memory * SHARE:
        return log.to_log(), choice, source, None
    share = _held_share(log, choice.validation)
    train = part_within(log, 0.0, 1.0 - share)
    sample = sample_units(train, MOST_UNITS, SHARE * log.memory)
    held = None if share == 0.0 else all_units(part_within(log, 1.0 - share, 1.0))
    adaptive = adapts(_earliest([sample] if held is None else [sample, held])).changes
    backend = Metered(log.backend or Threads(1 if n_jobs is None else n_jobs))
    shards = Shards(train, backend, warm, len(log), adaptive)
    return sample.log, replace(choice, validation=None if held is None else held.log), source, shards


def _earliest(samples: Sequence[Sample]) -> BanditLog:
    """Return the rows of all samples that show whether a logger learns, as they were packed."""
    rows = [earliest_rows(one.log) for one in samples]
    logs = [with_seen_contexts(one.log.take(some)) for one, some in zip(samples, rows, strict=True)]
    keys = [one.keys.take(some) for one, some in zip(samples, rows, strict=True)]
    return in_order(BanditLog.concat(logs), Keys.concat(keys))[0]


def _held_share(log: PackedLog, validation: Validation) -> float:
    """Return the share of the units that is held out: as much as fits, or what was asked for."""
    most = SHARE * log.memory / log.nbytes
    if validation is None:
        return 0.0
    if isinstance(validation, BanditLog):
        raise InputError(
            "a fit of a packed log holds out units of its own. Pass a share of them (validation=0.1), or certify the "
            "policy on the other log afterwards (poem.certify)."
        )
    if isinstance(validation, float | np.floating):
        share = check_share(validation)
        if share > 2.0 * most:
            raise InputError(
                f"validation={share:g} of the units would take {share * log.nbytes / 1e9:.3g} GB, but the log may take "
                f"{log.memory / 1e9:.3g} GB in all. Hold out at most {2.0 * most:.2g}, or allow more memory."
            )
        return share
    return min(HELD, most)


def in_memory(log: PackedLog) -> tuple[BanditLog, tuple[str, ...]]:
    """Return the rows of a log that certify, and what is to be said of them if these are not all.

    Units are drawn by their hashes, which depend on neither outputs nor losses, and rows are in the order of time. So
    what holds of the rows of a log in memory holds of these.
    """
    log.need_propensities()
    share = SHARE * log.memory / log.nbytes
    if share >= 1.0:
        return log.to_log(), ()
    found = part_within(log, 0.0, share).to_log()
    text = f"units drawn at random stand for all of the packed log ({len(found):,} of its {len(log):,} rows were read)"
    return found, (text,)


def check_apart(log: PackedLog, earlier: PackedLog) -> None:
    """Refuse rows that certify if they are among those that were looked at before."""
    if share_units(log.fingerprint(), earlier.fingerprint()):
        raise InputError(
            "what certifies must be other rows than those that are learnt from; both logs have units in common. Pass "
            "a later log, or parts that do not overlap, such as log.part(0.5, 1) and earlier=log.part(0, 0.5)."
        )
