"""One self-contained HTML page on a policy and a log: for the manager who decides, and the engineer who checks."""

import os
from pathlib import Path

from poem.data import BanditLog
from poem.files import write_whole
from poem.packed import PackedLog
from poem.report.content import Content, describe
from poem.report.page import page_of
from poem.report.sums import AnyPolicy

__all__ = ["Content", "describe", "report_html", "write_report"]


def report_html(
    policy: AnyPolicy,
    log: BanditLog | PackedLog,
    *,
    other: AnyPolicy | None = None,
    level: float = 0.95,
    title: str | None = None,
    n_jobs: int | None = -1,
    seed: int = 0,
) -> str:
    """Return the page that :func:`write_report` writes."""
    return page_of(describe(policy, log, other=other, level=level, title=title, n_jobs=n_jobs, seed=seed))


def write_report(
    policy: AnyPolicy,
    log: BanditLog | PackedLog,
    path: str | os.PathLike[str],
    *,
    other: AnyPolicy | None = None,
    level: float = 0.95,
    title: str | None = None,
    n_jobs: int | None = -1,
    seed: int = 0,
) -> Path:
    """Write one HTML page that says whether a policy would have been better than what was logged.

    Verdict first; then every estimate with its interval, what changes and where, and all that tells whether to
    believe it. The page is one file without scripts, and asks for nothing from the network.

    Parameters
    ----------
    policy : Policy, with or without a floor
    log : BanditLog or PackedLog
        One that the policy was not trained on; if it was, the page says so. Of a packed log that does not fit into its
        memory, the page shows a random sample of units.
    path : path
        The file, which is written whole or not at all.
    other : Policy, optional
        A second policy, to compare with on the same rows.
    level : float
        Of all intervals.
    title : str, optional
    n_jobs, seed
        Threads, and the seed of the loss model's folds.
    """
    html = report_html(policy, log, other=other, level=level, title=title, n_jobs=n_jobs, seed=seed)
    # Names may hold half of a surrogate pair, which UTF-8 cannot say; most are shown as escapes before.
    return write_whole(Path(path), html.encode("utf-8", "xmlcharrefreplace"))
