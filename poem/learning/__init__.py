"""From a log to a policy: candidates, held-out rows, selection, the certificate."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from poem.learning.certification import certify
    from poem.learning.fitting import MULTIPLIERS, fit, warm_up
    from poem.learning.names import LEARNERS
    from poem.learning.options import Selection
    from poem.learning.portfolio import Learner
    from poem.learning.result import Fit

__all__ = ["LEARNERS", "MULTIPLIERS", "Fit", "Learner", "Selection", "certify", "fit", "warm_up"]

# Imported when first asked for: the command line needs the names of the learners, and nothing else before it runs.
_HOMES = {
    "LEARNERS": "names",
    "MULTIPLIERS": "fitting",
    "Fit": "result",
    "Learner": "portfolio",
    "Selection": "options",
    "certify": "certification",
    "fit": "fitting",
    "warm_up": "fitting",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'poem.learning' has no attribute {name!r}")
    value = getattr(import_module(f"poem.learning.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
