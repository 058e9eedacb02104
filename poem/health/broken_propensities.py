"""Which propensities of a raw log are broken, or in another unit than declared."""

from dataclasses import replace

import numpy as np

from poem.arrays import FloatArray
from poem.errors import ReadError
from poem.health.broken import FIX, Sound
from poem.health.finding import Verdict
from poem.readers import SUM_OFF, distributions, looks_like
from poem.structures import Labels

AGREES = 1e-3  # how far apart, relatively, a propensity and its distribution may be: rounding
ROUNDING = 1e-9  # a propensity of 1 + 1e-12 is rounding, not a mistake


def check_propensities(sound: Sound, missing: bool, labels: Labels | None) -> bool:
    """Check the propensities and the whole distributions; return whether there are none."""
    roles = sound.raw.roles
    if missing or (roles.propensity is None and roles.distribution is None):
        sound.say(
            "propensities",
            "missing propensities",
            "unfit",
            "the log has no propensities, the probabilities with which its outputs were chosen",
            "Name their column (--propensity). If they were not logged, estimate them in a step of their own "
            "(--propensity estimate) and read what that says about them.",
        )
        return True
    chosen = _check_distributions(sound, labels) if roles.distribution is not None else None
    if roles.propensity is not None:
        p = _check_column(sound, roles.propensity)
        if chosen is not None:
            _compare(sound, p, chosen)
    return sound.raw.roles.propensity is None and sound.raw.roles.distribution is None


def _check_column(sound: Sound, name: str) -> FloatArray:
    """Check the column of propensities; return probabilities, NaN where invalid."""
    values = sound.wanted_numbers("propensities", name)
    there = values[np.isfinite(values)]
    if sound.raw.roles.unit == "probability" and len(there):
        _recognise_unit(sound, name, there)
    unit = sound.raw.roles.unit
    sound.note("propensities", "empty propensities", np.isnan(values), "have no propensity: empty, NaN or no number")
    with np.errstate(over="ignore", invalid="ignore"):
        p = np.exp(values) if unit == "log" else values / 100.0 if unit == "percent" else values
        too_low, too_high = (values == -np.inf) | (p < 0.0), p > 1.0 + ROUNDING
        if unit != "log":
            too_low |= values == 0.0
    why = "An output that was chosen had a probability above 0. " + FIX
    zero = np.asarray(too_low & ~(p < 0.0))
    sound.note("propensities", "propensities of 0", zero, "have the propensity 0", why)
    sound.note("propensities", "negative propensities", np.asarray(p < 0.0), "have a propensity below 0", why)
    sound.note("propensities", "propensities above 1", np.asarray(too_high), "have a propensity above 1")
    return np.where(too_low | too_high, np.nan, p)


def _recognise_unit(sound: Sound, name: str, values: FloatArray) -> None:
    """Recognise percentages and logarithms, so that the rest of the report is useful, and report them."""
    positive = values[values > 0.0]
    looks = looks_like(values) or (looks_like(positive) if len(positive) else None)
    if looks is None:
        return
    what, unit = looks
    sound.say(
        "propensities",
        "unit of propensities",
        "unfit",
        f"column {name!r} goes from {values.min():.4g} to {values.max():.4g}: these look like {what}, not like "
        "probabilities (and are taken for that in what follows)",
        f"Say so with --propensity-unit {unit}.",
    )
    sound.assign(unit=unit)


def _check_distributions(sound: Sound, labels: Labels | None) -> FloatArray | None:
    """Check the probabilities of all candidates; return those of the logged outputs, NaN where invalid."""
    alone = sound.raw.roles.propensity is None
    try:
        sums, chosen = distributions(replace(sound.raw, labels=labels))
    except ReadError as error:
        verdict: Verdict = "unfit" if alone else "with care"
        sound.say("propensities", "distributions", verdict, str(error).rstrip("."), "Fix the logging.")
        sound.assign(distribution=None)
        return None
    with np.errstate(invalid="ignore"):
        off, zero = ~(np.abs(sums - 1.0) <= SUM_OFF), chosen <= 0.0
    worst = int(np.argmax(np.where(np.isfinite(sums), np.abs(sums - 1.0), np.inf)))
    sound.note(
        "propensities", "sums", off, f"have probabilities that do not add up to 1 (the worst: {sums[worst]:.4g})"
    )
    sound.note("propensities", "chosen at 0", zero, "give the output that was chosen the probability 0")
    return np.where(off | zero, np.nan, chosen)


def _compare(sound: Sound, p: FloatArray, chosen: FloatArray) -> None:
    """Compare propensities with the distributions: both should agree on the logged outputs."""
    with np.errstate(invalid="ignore"):
        apart = np.abs(p - chosen) > AGREES * np.maximum(p, chosen)
    if apart.any():
        row = int(np.flatnonzero(apart)[0])
        what = f"have a propensity that their distribution contradicts ({p[row]:.4g} and {chosen[row]:.4g})"
        sound.note(
            "propensities", "two propensities", apart, what, "Find out which of both columns is right.", usable=True
        )
