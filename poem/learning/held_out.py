"""Held-out rows, and the estimator that judges candidates on them."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from poem.arrays import FloatArray, IntArray
from poem.certificates import (
    CAPS,
    PAIRED,
    Additive,
    Control,
    Deviations,
    Evidence,
    Forecast,
    Form,
    additive_differences,
    additive_terms,
    can_control,
    changes,
    deviations,
    excesses,
    forecast,
    paired_terms,
    ratios,
)
from poem.compute import Forest, Threads
from poem.data import BanditLog, Layout, grown_log, with_seen_contexts
from poem.estimators import IPS, Estimate, Estimator, Rows, Terms, UnitSums, standard_error
from poem.evaluation import Calibration, UnseenRows
from poem.learning.selection import Gain
from poem.learning.training import Training
from poem.models import ContextLosses, losses_on
from poem.policies import Policy

WORST_ERRORS = 0.95  # quantile of a loss model's errors that counts as a bad one


@dataclass(frozen=True)
class Seat:
    """Held-out rows as one kind of policy sees them: by their features, or by what its trees make of these."""

    layout: Layout
    unseen: UnseenRows
    control: Control | None
    additive: Additive | None


class HeldOut:
    """Held-out rows, laid out once for all candidates, and once more for each forest that some of them have.

    ``stream`` tells the random numbers of a certificate from those of forecasts.
    """

    def __init__(self, log: BanditLog, training: Training, units: IntArray, with_model: bool, stream: int = 0) -> None:
        calibration, log = training.calibration, with_seen_contexts(log)
        self._log, self._training = log, training
        self.layout = Layout(log, training.structure, training.intercept)
        self.units: IntArray = units[self.layout.order]
        self._unit: IntArray = np.unique(self.units, return_inverse=True)[1]
        self.loss = calibration.scale(self.layout.loss)
        losses: ContextLosses | None = None
        control: Control | None = None
        additive: Additive | None = None
        if with_model:  # one that has not seen these rows
            fold = np.zeros(log.n_contexts, dtype=np.int64)
            losses = losses_on(self.layout, (training.model,), fold, calibration.loss_range, training.threads)
            if can_control(log, training.structure, units):
                control = Control(training.logger.scores(self.layout), losses, (training.seed, stream))
            if training.additive:
                additive = replace(training.labels, logger=training.logger.scores(self.layout), losses=losses)
        self.forms: tuple[Form, ...] = PAIRED if control is not None else PAIRED[:1]
        self.forms += () if additive is None else additive.forms
        self._plain = Seat(self.layout, UnseenRows(self.layout, self.loss, losses), control, additive)
        self._seats: dict[Forest, Seat] = {}
        self._making = threading.Lock()

    def _seat(self, policy: Policy) -> Seat:
        if policy.forest is None:
            return self._plain
        with self._making:
            if policy.forest not in self._seats:
                self._seats[policy.forest] = self._extended(policy.forest)
            return self._seats[policy.forest]

    def _extended(self, forest: Forest) -> Seat:
        """Lay the rows out with the features that a forest adds; what models say of them stays the same."""
        plain, training = self._plain, self._training
        log = grown_log(self._log, forest, training.threads)
        layout = Layout(log, log.structure, training.intercept)
        losses = None if plain.unseen.losses is None else plain.unseen.losses.on(layout)
        control = plain.control
        if control is not None and losses is not None:
            control = replace(control, logger=control.logger.on(layout), losses=losses)
        additive = plain.additive
        if additive is not None and losses is not None:
            additive = replace(additive, logger=additive.logger.on(layout), losses=losses)
        return Seat(layout, UnseenRows(layout, self.loss, losses), control, additive)

    def rows(self, policy: Policy, threads: Threads) -> Rows:
        """Return what estimators may know of these rows under a policy."""
        return self._seat(policy).unseen.under_weights(policy.weights, threads)

    def paired(self, policy: Policy, threads: Threads) -> FloatArray:
        """Return the sums of the terms of each unit under a policy, in each form, in the order of the units."""
        seat = self._seat(policy)
        terms = self._terms(seat, policy, self.forms, threads)
        return np.stack([np.bincount(self._unit, weights=column) for column in terms.T], axis=1)

    def differences(self, policy: Policy, threads: Threads) -> FloatArray:
        """Return the sums of the additive differences of each unit under a policy, in the order of the units."""
        seat = self._seat(policy)
        assert seat.additive is not None
        rows = additive_differences(seat.additive, self.loss, policy.weights, threads)
        return np.asarray(np.bincount(self._unit, weights=rows), dtype=np.float64)

    def deviations(self, policy: Policy, threads: Threads) -> Deviations:
        """Return how far labels and losses are from what is expected of them; where losses are sums over labels."""
        known = self._seat(policy).additive
        assert known is not None
        return replace(deviations(known, self.loss, self.units), moved=changes(known, policy.weights, threads))

    def forecast(self, policy: Policy, threads: Threads) -> Forecast:
        """Return the certificate that a policy may expect, by these rows alone."""
        return forecast(self.paired(policy, threads), np.bincount(self._unit).astype(np.float64), self.forms)

    def evidence(self, policy: Policy, form: Form, threads: Threads) -> Evidence:
        """Return what these rows say of a policy that has not seen them, as terms of one form."""
        seat = self._seat(policy)
        ratio = ratios(seat.layout, policy.weights, threads)
        terms = self._terms(seat, policy, (form,), threads, ratio)[:, 0]
        found = Evidence(terms, form, ratio, -self.loss, self.units, float(self.layout.loss.mean()))
        if seat.additive is None or not form.additive:
            return found
        excess = excesses(seat.additive, policy.weights, threads)
        return replace(found, excess=excess, reach=float(policy.structure.n_names))

    def _terms(
        self, seat: Seat, policy: Policy, forms: Sequence[Form], threads: Threads, ratio: FloatArray | None = None
    ) -> FloatArray:
        """Return the term of every row in some forms, (n, forms)."""
        paired, additive = ([form for form in forms if form.additive is kind] for kind in (False, True))
        caps = tuple(CAPS[PAIRED.index(form)] for form in paired)
        found = []
        if caps:
            found.append(paired_terms(seat.layout, self.loss, policy.weights, seat.control, threads, caps, ratio))
        if additive and seat.additive is not None:
            found.append(additive_terms(seat.additive, self.loss, policy.weights, threads, tuple(additive)))
        return np.hstack(found)


class Jury:
    """The estimator that judges, and what it must know of the held-out rows of all folds.

    A jury that ``foresees`` also says what certificate a candidate may expect. ``largest`` is the size of the largest
    unit, where it hears a sample of them.
    """

    def __init__(
        self, judge: Estimator, calibration: Calibration, foresees: bool = False, largest: float | None = None
    ) -> None:
        self.judge, self.calibration, self.foresees, self._largest = judge, calibration, foresees, largest
        self._units: list[IntArray] = []
        self._losses: list[FloatArray] = []
        self._forms: tuple[Form, ...] = ()

    def hear(self, held: HeldOut) -> None:
        """Take note of the rows of one more fold."""
        self._units.append(held.units)
        self._losses.append(held.loss)
        self._forms = held.forms

    @cached_property
    def units(self) -> IntArray:
        """The independent unit of each row, fold by fold."""
        return np.unique(np.concatenate(self._units), return_inverse=True)[1]

    @cached_property
    def _loss(self) -> FloatArray:
        return np.concatenate(self._losses)

    @cached_property
    def _logged(self) -> UnitSums:
        return Terms(self._loss).by_unit(self.units)

    def verdict(self, parts: Sequence[Rows]) -> tuple[Estimate, Gain]:
        """Return the estimated loss of the policies of all folds, and its difference to what was logged."""
        rows = _joined(parts)
        judge = self.judge.tuned(rows)
        sums = judge.terms(rows).by_unit(self.units)
        found = judge.summary(sums, rows, self.units)
        span = self.calibration.loss_high - self.calibration.loss_low
        typical, worst = _errors(judge, rows, found)
        gain = Gain(
            value=span * (found.value - self._logged.value()),
            stderr=span * standard_error(sums.shares() - self._logged.shares()) if np.isfinite(found.value) else np.inf,
            freedom=min(found.effective_n, found.units) - 1.0,
            mean_weight=found.mean_weight,
            weight_stderr=found.weight_stderr,
            typical=span * typical,
            room=span * worst,
        )
        return found.rescaled(*self.calibration.loss_range), gain

    @property
    def additive(self) -> bool:
        """Whether losses are sums over labels, so that additive differences judge candidates."""
        return any(form.additive for form in self._forms)

    def forecast(self, parts: Sequence[FloatArray]) -> Forecast:
        """Return the certificate that a candidate may expect, from the terms of the units of all folds."""
        return forecast(self._sums(parts), self._sizes, self._forms, self._largest)

    def additive_gain(self, parts: Sequence[FloatArray]) -> Gain:
        """Return the same difference as :meth:`verdict`, from the additive differences of the units of all folds."""
        span, sizes, sums = self.calibration.loss_high - self.calibration.loss_low, self._sizes, self._sums(parts)
        mean = float(sums.sum() / sizes.sum())
        stderr = standard_error((sums - mean * sizes) / sizes.sum())
        return Gain(-span * mean, span * stderr, len(sizes) - 1.0)

    @cached_property
    def _sizes(self) -> FloatArray:
        return np.bincount(self.units).astype(np.float64)

    def _sums(self, parts: Sequence[FloatArray]) -> FloatArray:
        """Return the sums of terms of all units, in their order, from those of each fold."""
        place = np.argsort(np.concatenate([np.unique(units) for units in self._units]), kind="stable")
        return np.concatenate(parts)[place]

    def logged(self) -> Estimate:
        """Return the mean loss that was logged."""
        found = IPS(None).judge(Rows(np.zeros(len(self._loss)), self._loss), self.units)
        return found.rescaled(*self.calibration.loss_range)


def _errors(judge: Estimator, rows: Rows, found: Estimate) -> tuple[float, float]:
    """Return how much worse than estimated decisions are that the log lacks, typically and at worst, of [−1, 0].

    A loss model errs by its root mean squared error, and is rarely more wrong than in the worst twentieth of the
    rows; where few losses differ from the rest, that is less. Without a model it may be the worst loss, which
    pessimistic estimators have taken it to be.
    """
    if judge.pessimistic or not np.isfinite(found.value):
        return 0.0, 0.0
    if rows.predicted is None:
        return -found.value, -found.value
    errors = rows.loss - rows.predicted
    worst = max(0.0, float(np.quantile(errors, WORST_ERRORS)))
    return min(worst, float(np.sqrt(np.mean(errors**2)))), worst


def _joined(parts: Sequence[Rows]) -> Rows:
    """Return the rows of all folds as one."""
    if len(parts) == 1:
        return parts[0]
    columns = zip(*((p.log_ratio, p.loss, p.log_propensity, p.predicted, p.expected) for p in parts), strict=True)
    return Rows(*(None if column[0] is None else np.concatenate(column) for column in columns))  # type: ignore[arg-type]
