"""A packed log as a fit sees it: a sample that candidates compete on, shards to learn from, and rows that certify."""

from dataclasses import replace

import numpy as np

from poem.backends import Threads
from poem.certificates import adapts
from poem.data import BanditLog
from poem.errors import InputError
from poem.learning.arguments import Validation, check_share
from poem.learning.options import Selection
from poem.learning.shards import Metered, Shards
from poem.packed import PackedLog, part_within, sample_units, share_units

SHARE = 1 / 8  # of the memory, for the sample and for the rows that certify: a fit takes several times its log
MOST_UNITS = 1_000_000  # of a sample: candidates are told apart by fewer
HELD = 0.2  # share of the units that certify, if they fit


def in_parts(
    log: PackedLog, choice: Selection, n_jobs: int | None, warm: bool
) -> tuple[BanditLog, Selection, Shards | None]:
    """Return what a fit competes on, how it is judged, and the shards that the chosen recipe is followed on.

    A log that fits into its memory is read as a whole. Else its units are split by their hashes: the answer is the same
    for any number of shards.
    """
    log.need_propensities()
    if log.nbytes <= log.memory * SHARE:
        return log.to_log(), choice, None
    share = _held_share(log, choice.validation)
    train = part_within(log, 0.0, 1.0 - share)
    sample = sample_units(train.timed(), MOST_UNITS, SHARE * log.memory).log
    adaptive = adapts(sample).changes
    sample = sample if log.kind.time is not None else sample.replaced(time=None)
    held = None if share == 0.0 else part_within(log, 1.0 - share, 1.0).to_log()
    backend = Metered(log.backend or Threads(1 if n_jobs is None else n_jobs))
    return sample, replace(choice, validation=held), Shards(train, backend, warm, len(log), log.fingerprint(), adaptive)


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
