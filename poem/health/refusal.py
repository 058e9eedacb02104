"""Refuse a log that is not fit for learning, before anything is learnt from it."""

from poem.data import BanditLog
from poem.errors import InputError
from poem.evaluation import check_learnable
from poem.health.finding import Health
from poem.health.inspection import inspect


def check_fit(log: BanditLog, force: bool = False, name: str = "the log") -> Health:
    """Inspect a log and refuse it if it is unfit: learning from wrong propensities finds gains that are not there.

    Parameters
    ----------
    log : BanditLog
    force : bool
        Do not refuse it.
    name : str
        What the log is called in messages.

    Returns
    -------
    Health
    """
    check_learnable(log, force)
    health = inspect(log)
    if not health.fit and not force:
        raise InputError(
            f"{name} is not fit for learning: {health.reasons[0]} poem.inspect(log) says more; force=True continues "
            "anyway."
        )
    return health
