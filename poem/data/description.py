"""A log in a few words: its size, outputs, outcomes and propensities."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from poem.compute import is_sparse
from poem.text import counted

if TYPE_CHECKING:
    from poem.data.log import BanditLog


def described(log: "BanditLog") -> tuple[str, list[tuple[str, str]]]:
    """Return a head line, and what each column holds."""
    per_row = f"{log.X.nnz / max(1, log.n_contexts):.1f}" if is_sparse(log.X) else ""
    kind = f"CSR, {per_row} non-zeros per row" if per_row else "dense"
    size = f"{counted(log.n_contexts, 'context')} × {counted(log.n_features, 'feature')}"
    head = f"BanditLog of {counted(len(log), 'row')}, {size} ({kind})"
    facts = [
        ("output", f"{log.structure.describe()}: {few_of(log.labels)}"),
        (log.outcome, _outcome(log)),
        ("propensity", _propensities(log)),
    ]
    if log.available is not None:
        counts = log.available.counts()
        few, many = int(counts.min()), int(counts.max())
        facts.insert(1, ("available", f"{counts.mean():.1f} actions per context on average, from {few:,} to {many:,}"))
    if log.group is not None:
        facts.append(("group", counted(len(np.unique(log.group)), "group")))
    if log.logger is not None:
        facts.append(("logger", few_of(np.unique(log.logger).tolist())))
    return head, facts


def _outcome(log: "BanditLog") -> str:
    values = log.loss if log.outcome == "loss" else 0.0 - log.loss
    return f"mean {values.mean():.4g}, from {values.min():.4g} to {values.max():.4g}"


def _propensities(log: "BanditLog") -> str:
    if log.propensities == "missing":
        return "missing"
    p = np.exp(np.quantile(log.log_propensity, [0.0, 0.5, 1.0]))
    return f"{log.propensities}: median {p[1]:.3g}, from {p[0]:.3g} to {p[2]:.3g}"


def few_of(labels: Sequence[Any]) -> str:
    """Return the first few labels."""
    shown = ", ".join(str(label) for label in labels[:5])
    return shown if len(labels) <= 5 else f"{shown}, …"
