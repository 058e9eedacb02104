"""Which candidates can expect a certificate, and which one is best to try."""

from collections.abc import Sequence

import numpy as np

from poem.learning.selection import AVOIDS, NO_TREES, OVERFITS, Candidate, rank


def choose_for_certificate(candidates: Sequence[Candidate], alpha: float, units: int) -> Candidate | None:
    """Return the one candidate to certify on ``units`` fresh units, None if there is none worth trying.

    Of those that can expect a certificate, the lowest likely bound wins. If none can, it is the one that comes nearest.
    All of this may be wrong: the certificate does not rest on it.
    """
    best = next(iter(ordered_for_certificate(candidates, alpha, units)), None)
    return best if best is not None and _growth(best) > 0.0 else None


def ordered_for_certificate(candidates: Sequence[Candidate], alpha: float, units: int) -> list[Candidate]:
    """Return the candidates that may be certified, the one to choose first."""
    ready = expect_certificates(candidates, alpha, units)
    healthy = [one for one in ready if not one.problems]
    marked = [one for one in ready if one.problems]
    others = [one for one in _certifiable(candidates) if units and all(one is not other for other in ready)]
    return sorted(healthy, key=rank) + sorted(marked, key=rank) + sorted(others, key=_growth, reverse=True)


def expect_certificates(
    candidates: Sequence[Candidate], alpha: float, units: float, chance: float = 0.95
) -> list[Candidate]:
    """Return the candidates that ``units`` fresh units are expected to certify with some probability."""
    return [
        one
        for one in _certifiable(candidates)
        if one.forecast is not None and one.forecast.units_needed(alpha, chance) <= units
    ]


def surest(candidates: Sequence[Candidate]) -> Candidate | None:
    """Return the candidate that takes the fewest units to certify."""
    return max(_certifiable(candidates), key=_growth, default=None)


def _certifiable(candidates: Sequence[Candidate]) -> list[Candidate]:
    distrusted = {AVOIDS, OVERFITS, NO_TREES}
    return [one for one in candidates if one.forecast is not None and not distrusted & set(one.problems)]


def _growth(candidate: Candidate) -> float:
    return -np.inf if candidate.forecast is None else candidate.forecast.growth
