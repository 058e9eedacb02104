"""A certificate: a lower bound on the gain of one policy over the log, from rows that it never saw."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp, isfinite
from typing import Any

import numpy as np
from scipy import special

from poem.arrays import FloatArray, IntArray
from poem.certificates.forms import Form
from poem.estimators import Bets, Terms, downside, goal_bound, growth, log_capital, lower_bound, standard_error
from poem.policies import Policy
from poem.text import Sheet, counted, rounded

SURE = 3.6  # standard errors of a gain that give a certificate with probability 95%, as simulated
MODEST = 0.1  # part of a foreseen gain that is enough to go on to a bolder policy
LIKELY = "with a probability of 95%"
FEW = 30.0  # units that an interval by Student's t must rest on, by their squared deviations
RARELY = 0.025  # how often the logged reward may be farther from its mean than an interval is cut to
LAYER = 0.25  # ε of the correction for luck, in standard errors
WRONG = 0.001  # how unlikely mean weights above 1 must be before propensities are called wrong


@dataclass(frozen=True)
class Forecast:
    """A forecast of a candidate's certificate, from rows that the candidate has not seen.

    ``growth`` is the growth of the log-capital per unit, and ``sums`` are the units' sums of terms, both for the
    ``form`` that suits the candidate best. ``largest`` is the size of the largest unit.
    """

    form: Form
    growth: float
    largest: float
    sums: FloatArray = field(repr=False, compare=False)
    sizes: FloatArray = field(repr=False, compare=False)

    def units_needed(self, alpha: float, chance: float = 0.95) -> float:
        """Return how many units give a certificate with some probability."""
        return _units_needed(self.growth, alpha, chance)

    def modest(self, units: int) -> float:
        """Return a part of the foreseen gain that some number of units should certify."""
        errors = np.sqrt(2.0 * max(self.growth, 0.0) * units)  # as in ``units_needed``
        part = max(MODEST, 1.0 - (SURE + 1.0) / errors) if errors > 0.0 else MODEST
        return part * float(self.sums.sum() / self.sizes.sum())

    def resting_on(self, units: int) -> float:
        """Return how many of some number of units an estimate would rest on."""
        return _resting_on(self.sums, self.sizes) * min(1.0, units / len(self.sums))

    @property
    def spread(self) -> float:
        """How far terms fall below their mean, for the stakes."""
        return downside(self.sums, self.form.floor, self.sizes, self.largest)


def _units_needed(growth: float, alpha: float, chance: float = 0.95) -> float:
    """Return how many units give a certificate with some probability, if the log-capital grows so much per unit."""
    # Near the optimum, the logarithm of the capital is z²/2 for a gain of z standard errors.
    wanted = 0.5 * (SURE - 2.0 * special.ndtri(0.95) + special.ndtri(chance) - special.ndtri(alpha)) ** 2
    return float(wanted / growth) if growth > 0.0 else np.inf


def forecast(
    sums_of_forms: FloatArray, sizes: FloatArray, forms: Sequence[Form], largest: float | None = None
) -> Forecast:
    """Forecast a certificate from the sums of the terms of independent units, (units, forms), and their sizes.

    If these units are a sample, ``largest`` is the size of the largest one of all: bets are cut to it.
    """
    largest = float(sizes.max()) if largest is None else largest
    columns = [np.ascontiguousarray(column) for column in sums_of_forms.T]
    speeds = [growth(sums, form.floor, sizes, largest) for form, sums in zip(forms, columns, strict=True)]
    best = int(np.argmax(speeds))
    return Forecast(forms[best], speeds[best], largest, columns[best], sizes)


@dataclass(frozen=True)
class Certificate:
    """The gain of one policy over the log, from fresh rows: loss saved or reward won, positive if the policy is better.

    Attributes
    ----------
    policy : Policy
        The exact policy that the certificate is about.
    certified : bool
        Whether ``gain_at_least`` is above 0 and there are no ``objections``.
    confidence : float
    gain_at_least : float
        A lower bound on the gain. Given the ``conditions``, it is too high in at most one case in 20 (for a
        confidence of 95%), for any number of rows and any distribution of losses and weights. It is also never above
        the lower end of Student's interval.
    gain : float
        The estimated gain, corrected for selection if certified: estimates that pass are too high on average. It is
        within what the loss bounds allow beside ``logged``, unless the whole interval is not.
    interval : (float, float)
        An approximate 95% interval of the gain by Student's t, never starting below ``gain_at_least``. If it depends
        on a few units, or would have on earlier rows, it is as wide as the betting interval.
    logged : float
        The mean logged loss, or reward, of the rows that certify.
    rows, units : int
        Number of rows that certify, and of their independent units.
    units_needed : float
        About how many units would certify this gain with probability 95%; fewer do with luck. Infinite if there is no
        gain.
    conditions : tuple of str
        The assumptions of the bound.
    objections : tuple of str
        Reasons to refuse a certificate, whatever the bound.
    """

    policy: Policy = field(repr=False)
    confidence: float
    gain_at_least: float
    gain: float
    interval: tuple[float, float]
    logged: float
    rows: int
    units: int
    units_needed: float
    conditions: tuple[str, ...] = ()
    objections: tuple[str, ...] = ()

    def __str__(self) -> str:
        low, high = self.interval
        sure = f"{self.confidence:.0%} confidence, {counted(self.rows, 'fresh row')} in {counted(self.units, 'unit')}"
        lines = [
            f"{'certified' if self.certified else 'not certified'}: gain at least {self.gain_at_least:.4g} ({sure})",
            f"estimated gain {self.gain:.4g}, approximate 95% interval [{low:.4g}, {high:.4g}]",
            *(f"provided that {text}" for text in self.conditions),
            *(f"but {text}" for text in self.objections),
            *([f"about {rounded(self.units_needed):,} units would certify it {LIKELY}"] if self.needs_more else []),
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return Sheet(str(self)).html()

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, with None for unbounded numbers, and for the units needed of what is certified."""
        return {
            "certified": self.certified,
            "confidence": self.confidence,
            "gain_at_least": finite(self.gain_at_least),
            "gain": finite(self.gain),
            "interval": [finite(end) for end in self.interval],
            "logged": self.logged,
            "rows": self.rows,
            "units": self.units,
            "units_needed": None if self.certified else finite(self.units_needed),
            "conditions": list(self.conditions),
            "objections": list(self.objections),
        }

    @property
    def certified(self) -> bool:
        """Whether the policy is better than the log, with the given confidence."""
        return self.gain_at_least > 0.0 and not self.objections

    @property
    def needs_more(self) -> bool:
        """Whether more units are likely to certify the policy: not if it is certified, was unlucky, or has no gain."""
        return not self.certified and not self.objections and self.units < self.units_needed < np.inf


@dataclass(frozen=True)
class Evidence:
    """The evidence of fresh rows about one policy.

    Attributes
    ----------
    terms : (n,) array
        In the form that was fixed before.
    form : Form
    ratio, reward : (n,) array
        The rows' weights, and their rewards in [0, 1].
    units : (n,) int
        In the order in which they came.
    logged : float
        The mean loss.
    excess : (n,) array, optional
        What times the reward has the gain as its mean, at least −``reach``: ``ratio`` − 1 by default.
    """

    terms: FloatArray
    form: Form
    ratio: FloatArray
    reward: FloatArray
    units: IntArray
    logged: float
    excess: FloatArray | None = None
    reach: float = 1.0

    def certificate(
        self, policy: Policy, foreseen: Forecast, confidence: float, span: float, conditions: tuple[str, ...]
    ) -> Certificate:
        """Bet on the terms, unit after unit.

        If units differ, a bettor who looks back may win by some of them alone. So the bound is never above the lower
        end of Student's interval, which is one of their average.
        """
        alpha, floor = 1.0 - confidence, self.form.floor
        sizes = np.bincount(self.units).astype(np.float64)
        sums = _sums(self.units, self.terms)
        value, stderr = float(self.terms.mean()), standard_error(Terms(self.terms).by_unit(self.units).shares())
        bound = goal_bound(sums, floor, alpha, foreseen.spread * foreseen.largest / float(sizes.max()), sizes)
        student = value - _quantile(len(sizes), confidence) * stderr
        bound = min(bound, student)
        gain = corrected(value, stderr, student, bound) if bound > 0.0 else value
        low, high = self._interval(sums, sizes, foreseen, value, stderr)
        gain, low, high = self._possible(gain, max(low, bound), high, sizes)
        needed = _units_needed(growth(sums, floor, sizes), alpha)
        return Certificate(
            policy=policy,
            confidence=confidence,
            gain_at_least=span * bound,
            gain=span * gain,
            interval=(span * low, span * high),
            logged=self.logged,
            rows=len(self.terms),
            units=len(sizes),
            units_needed=needed,
            conditions=conditions,
            objections=self._objections(sizes),
        )

    def _interval(
        self, sums: FloatArray, sizes: FloatArray, foreseen: Forecast, value: float, stderr: float
    ) -> tuple[float, float]:
        """Return Student's t interval; if it depends on few units, widened to the betting interval.

        Where a rare large loss decides, fresh rows may lack it. So the earlier units of the forecast count as well.
        """
        reach = _quantile(len(sizes), 0.95) * stderr
        low, high = value - reach, value + reach
        if min(_resting_on(sums, sizes), foreseen.resting_on(len(sizes))) >= FEW:
            return low, high
        excess = self.ratio - 1.0 if self.excess is None else self.excess
        plain = (_sums(self.units, excess * each) for each in (self.reward, 1.0 - self.reward))
        ends = [lower_bound(one, -self.reach, 0.025, Bets.everywhere(), sizes) for one in plain]
        return min(low, ends[0]), max(high, -ends[1])

    def _possible(self, gain: float, low: float, high: float, sizes: FloatArray) -> tuple[float, float, float]:
        """Cut a gain and its interval to what rewards in [0, 1] allow, the gain to the interval last.

        A gain is the policy's mean reward, within [0, 1], minus the logged one. For the interval, Hoeffding's bound
        says how far the latter may be from that of the rows: they may lack what is rare.
        """
        logged = float(self.reward.mean())
        reach = float(np.sqrt(0.5 * np.log(1.0 / RARELY) * (sizes @ sizes)) / sizes.sum())
        low = max(low, -min(logged + reach, 1.0))
        high = max(min(high, 1.0 - max(logged - reach, 0.0)), low)
        return float(np.clip(np.clip(gain, -logged, 1.0 - logged), low, high)), low, high

    def _objections(self, sizes: FloatArray) -> tuple[str, ...]:
        """Object if the mean weight is above 1: right propensities exclude that, whatever the policy."""
        weights, bets = _sums(self.units, self.ratio), Bets.everywhere()
        if log_capital(weights, 0.0, 1.0, bets, sizes) < np.log(1.0 / WRONG):
            return ()
        least = lower_bound(weights, 0.0, WRONG, bets, sizes)
        return (
            f"the propensities cannot be right: the mean weight is above {least:.3g} with a confidence of "
            f"{1.0 - WRONG:.1%}, and no policy has one above 1",
        )


def _quantile(units: int, confidence: float) -> float:
    """Return how many standard errors Student's interval reaches to either side."""
    return float(special.stdtrit(max(units - 1.0, 1.0), 0.5 * (1.0 + confidence)))


def _resting_on(sums: FloatArray, sizes: FloatArray) -> float:
    """Return how many units the spread of their mean rests on: (Σv)²/Σv² of the squared deviations v."""
    values = (sums - float(sums.sum() / sizes.sum()) * sizes) ** 2
    largest = float(values.max())
    if largest == 0.0:
        return np.inf
    shares = values / largest  # whose squares do not overflow
    return float(shares.sum() ** 2 / (shares @ shares))


def finite(value: Any) -> Any:
    """Return a number for JSON: None if it is unbounded."""
    return None if isinstance(value, float) and not isfinite(value) else value


def _sums(units: IntArray, values: FloatArray) -> FloatArray:
    return np.bincount(units, weights=values).astype(np.float64)


def corrected(value: float, stderr: float, student: float, bound: float) -> float:
    """Return what a certified estimate says of the truth: certified ones are right on average, as far as possible.

    An estimate z, in standard errors, is certified if it exceeds about c, at which Student's interval begins at 0: if
    ``student``, its lower end, is above 0. Its mean is then θ + φ(c − θ)/Φ(θ − c) for a true θ, if errors are normal.
    An estimate that takes 1 off in all, in a thin layer above c, would have a mean of θ whatever θ is; this one takes
    exp(−(z − c)/ε)/ε off, but never goes below the bound.
    """
    if stderr <= 0.0:
        return value
    return max(value - stderr * exp(-student / (LAYER * stderr)) / LAYER, bound)
