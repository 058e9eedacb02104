"""Is a log fit for learning? A verdict in words, with reasons and what to do."""

from poem.health.finding import Finding, Health
from poem.health.inspection import inspect
from poem.health.refusal import check_fit
from poem.health.suspects import notes_on_suspects

__all__ = ["Finding", "Health", "check_fit", "inspect", "notes_on_suspects"]
