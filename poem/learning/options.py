"""How a fit judges its candidates and chooses among them: the rare arguments of :func:`poem.fit`."""

from dataclasses import dataclass
from typing import Literal

from poem.errors import InputError
from poem.estimators import Estimator
from poem.learning.arguments import Validation
from poem.packed import IN_MEMORY, PackedLog


@dataclass(frozen=True)
class Selection:
    """How :func:`poem.fit` judges candidates, and what it returns if none is good enough.

    Attributes
    ----------
    validation : "auto", int, float, BanditLog or None
        The rows that are held out. With a certificate, they certify: ``"auto"`` is up to half of the units, the latest;
        else a share of the units, or a log of its own. Candidates then compete in folds of the rest: five (in
        large logs, on samples of the rest), or the number given. Without a certificate, candidates are judged on them:
        ``"auto"`` is five folds for ``learners`` (or samples), and, as in the paper, a quarter of the rows for a
        learner of your own.
    select_by : "dr", "ips", "snips" or Estimator
        How candidates are judged. ``"dr"``, the default for ``learners``, chooses one for a certificate. Any other
        takes the lowest estimate: ``"ips"`` is the paper's rule, and the default for a learner of your own.
    confidence : float
        The confidence of the certificate.
    additive : bool
        For label sets: losses are sums over labels, such as the number of wrong labels. This is your promise.
        Candidates are then judged and certified label by label, which takes far fewer rows. It needs the policy that
        made the log as ``logging_policy``, without a floor.
    refit : bool
        Learn the certified candidate again from all rows. The certificate is then for the policy before refitting.
    imitate : bool
        If nothing is certified and there is no ``logging_policy``, return an imitation of the logging policy. It may be
        worse than that policy; the result says how it is estimated.
    guard : bool
        Never choose a policy that avoids the log, and one with other problems only if there is nothing else. False
        takes the lowest estimate, whatever it is, and certifies nothing.
    force : bool
        Go on although the logging policy was deterministic.
    """

    validation: Validation = "auto"
    select_by: Literal["dr", "ips", "snips"] | Estimator | None = None
    confidence: float = 0.95
    additive: bool = False
    refit: bool = False
    imitate: bool = False
    guard: bool = True
    force: bool = False


def checked_selection(selection: Selection | None) -> Selection:
    """Return what was given, or the default; raise for anything else."""
    if selection is None:
        return Selection()
    if not isinstance(selection, Selection):
        raise InputError(f"selection must be such as poem.Selection(validation=0.25); found {selection!r}.")
    if isinstance(selection.validation, PackedLog):
        raise InputError(f"validation must be a log in memory; found a packed log, but {IN_MEMORY}.")
    for name in ("additive", "refit", "imitate", "guard", "force"):
        if not isinstance(getattr(selection, name), bool):
            raise InputError(f"{name} must be True or False; found {getattr(selection, name)!r}.")
    return selection
