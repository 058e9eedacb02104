"""All that the candidates of a fit share on one set of rows, and the way from a recipe to a policy."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import cached_property

import numpy as np

from poem.arrays import FloatArray, IntArray
from poem.certificates import Additive, LoggerModel, can_have_steps, corrected_by_label, logger_model
from poem.compute import Threads
from poem.data import BanditLog, Layout, folds_by_context, folds_of, mean_square, sample_of, with_seen_contexts
from poem.estimators import IPS, Objective, Rows, Weighted
from poem.evaluation import Calibration
from poem.learning.ground import Ground, grown_ground, model_to_grow, spread_of
from poem.learning.portfolio import GROWN, Recipe
from poem.learning.probe import Probe
from poem.learning.shards import Shards, followed, follows_shards
from poem.models import (
    ContextLosses,
    LossModel,
    Strengths,
    cautious_losses,
    chosen_strengths,
    fit_for_estimates,
    fit_on_part,
    fit_without_trees,
    logistic_preference,
    losses_on,
    preference_on_shards,
)
from poem.objectives import Risk, imitation
from poem.optimizers import Keeper, Trace, unmoved
from poem.packed import context_folds
from poem.policies import Policy, Record, TraceRecord, policy_for
from poem.structures import Structure

FOLDS, LARGE = 2, 2**26  # bytes of a log of which one fold's model is fitted at a time
LEAFY_UNITS = 200_000  # that policies are learnt from on leaves
LOGGER_UNITS = 60_000  # for a model of the logging policy
SHOWN_UNITS = 20_000  # for the figures of a policy that is taken as it is

OnStep = Callable[[int, float], None]


class Training:
    """Rows to train on: their layout, scaled losses, loss models and starts.

    What is not asked for is not computed. ``strengths`` are those of the loss models, chosen on held-out rows if
    not given. With ``shards``, the rows are a sample of these, and objectives are those of all shards; ``keeper`` is
    for the loss model that is fitted to them. ``additive`` says that losses are sums over labels.
    """

    def __init__(
        self,
        log: BanditLog,
        structure: Structure,
        intercept: bool,
        calibration: Calibration,
        *,
        given: FloatArray | None = None,
        logging: FloatArray | None = None,
        known: LoggerModel | None = None,
        strengths: Strengths | None = None,
        seed: int = 0,
        threads: Threads | None = None,
        shards: Shards | None = None,
        keeper: Keeper | None = None,
        additive: bool = False,
    ) -> None:
        self.log, self.calibration, self.seed, self.shards, self._keeper = log, calibration, seed, shards, keeper
        self.structure, self.intercept, self.additive = structure, intercept, additive
        self._given, self._logging, self._known, self._strengths = given, logging, known, strengths
        self.threads = threads or Threads()

    def part(
        self, log: BanditLog, needs_model: bool, calibration: Calibration | None = None, shards: Shards | None = None
    ) -> "Training":
        """Return the same for other rows; it takes over the strength of the loss model, and the calibration if none."""
        if log is self.log and shards in (None, self.shards):
            return self
        return Training(
            log,
            self.structure,
            self.intercept,
            calibration or self.calibration,
            given=self._given,
            logging=self._logging,
            known=self._known,
            strengths=self.strengths if needs_model else None,
            seed=self.seed,
            threads=self.threads,
            shards=shards,
            keeper=self._keeper,
            additive=self.additive,
        )

    # ---- what candidates share --------------------------------------------------------------

    @cached_property
    def layout(self) -> Layout:
        """The rows in the order of their contexts."""
        return Layout(self.log, self.structure, self.intercept)

    @cached_property
    def loss(self) -> FloatArray:
        """The scaled losses, in the layout's order."""
        return self.calibration.scale(self.layout.loss)

    @cached_property
    def strengths(self) -> Strengths:
        """The strengths of the loss models."""
        if self._strengths is not None:
            return self._strengths
        return chosen_strengths(self.log, self.calibration.loss_range, self.seed, self.threads, ranking=True)

    @cached_property
    def model(self) -> LossModel:
        """The loss model of all rows that estimators rest on."""
        return fit_for_estimates(self.log, self.strengths, self.calibration.loss_range, self.threads)

    @cached_property
    def losses(self) -> ContextLosses:
        """What models say of the contexts that they have not seen."""
        models, fold = self.crossed
        return losses_on(self.layout, models, fold, self.calibration.loss_range, self.threads)

    @cached_property
    def labels(self) -> Additive:
        """What is known of single labels, if losses are sums over them."""
        noise = float(np.mean((self.loss - self.losses.predicted) ** 2))
        return Additive(self.logger.scores(self.layout), self.losses, noise)

    @cached_property
    def crossed(self) -> tuple[list[LossModel], IntArray]:
        """Models of the rows of all folds but one, and the fold of each context."""
        # Of a sample, by hash: so that each context takes the same model in its shard.
        fold = folds_by_context(self.log, FOLDS, self.seed) if self.shards is None else context_folds(self.log, FOLDS)
        if len(self.layout.contexts) < FOLDS:  # one context alone cannot be left out
            return [self.model], np.zeros_like(fold)
        parts = [self.log.take(fold[self.log.context] != part) for part in range(FOLDS)]
        at_once, each = (self.threads, Threads()) if self.log.nbytes < LARGE else (Threads(), self.threads)
        how = self.strengths, self.calibration.loss_range, each
        return at_once.map(lambda part: fit_on_part(part, *how), parts), fold

    @cached_property
    def shard_models(self) -> tuple[LossModel, ...]:
        """The same for shards, without trees: these would take most of the time of each pass."""
        models, fold = self.crossed
        if any(model.forest for model in models):
            parts = [self.log.take(fold[self.log.context] != part) for part in range(len(models))]
            how = self.strengths, self.calibration.loss_range, self.threads
            models = [fit_without_trees(with_seen_contexts(part), *how) for part in parts]
        return tuple(models)

    @cached_property
    def imitated(self) -> FloatArray:
        """The weights of the logging policy: its own, if they were given."""
        return imitation(self.layout, self.threads) if self._logging is None else self._logging

    @cached_property
    def logger(self) -> LoggerModel:
        """The policy that made the log, if it is known, or else what its propensities say."""
        if self._known is not None:
            known = self._known
            return known if known.weights.size else replace(known, weights=self.imitated)
        some = sample_of(self.log, LOGGER_UNITS, self.seed)
        layout = self.layout if some is self.log else Layout(some, self.structure, self.intercept)
        return logger_model(some, self.structure, layout, self.seed, self.threads)

    @cached_property
    def cautious(self) -> ContextLosses:
        """The same as :attr:`losses`, with the worst loss for outputs that the logging policy never chooses."""
        steps = self.logger.steps
        if steps is None or not steps.lacks:
            return self.losses
        return cautious_losses(self.losses, steps.supports(self.log.X))

    @cached_property
    def corrected(self) -> ContextLosses:
        """The same as :attr:`losses`, corrected label by label."""
        return corrected_by_label(self.labels, self.loss)

    @cached_property
    def lacks_support(self) -> bool:
        """Whether there are outputs that the logging policy never chooses in some region of the contexts."""
        if self._known is None and not can_have_steps(self.log, self.structure):
            return False
        return self.logger.steps is not None and self.logger.steps.lacks

    @cached_property
    def direct(self) -> FloatArray:
        """The preferences of the best loss model, scaled so that the scores have a standard deviation of 1."""
        logistic, shards, bounds = self.strengths.logistic, self.shards, self.calibration.loss_range
        if shards is not None:
            weights = preference_on_shards(self.log, self.strengths, bounds, shards.log, shards.backend, self._keeper)
        elif logistic is None:
            weights = self._plain_model.preference
        else:
            weights = logistic_preference(self.log, logistic, self.calibration.loss_range, self.threads)
        weights = weights if self.intercept else weights[:-1]
        return weights / (spread_of(self.layout, weights, self.log, self.structure) or 1.0)

    @property
    def _plain_model(self) -> LossModel:
        """The best loss model without trees."""
        if self.model.forest is None:
            return self.model
        return fit_without_trees(self.log, self.strengths, self.calibration.loss_range, self.threads)

    # ---- what policies with trees are learnt on ---------------------------------------------

    @cached_property
    def with_trees(self) -> Ground:
        """Rows, with what the trees of a model say of them: nothing is learnt from these, so a sample is enough."""
        model = self.model if self.model.forest is not None else self._boosted(self.log)
        return self._grown(sample_of(self.log, SHOWN_UNITS, self.seed), model, False)

    @cached_property
    def with_leaves(self) -> Ground:
        """One half of the rows, with the leaves of trees that were grown on the other one."""
        models, fold = self.crossed
        by_context = self.log.group is None
        rows = fold[self.log.context] == 0 if by_context else folds_of(self.log, FOLDS, self.seed) == 0
        known = by_context and models[0].forest is not None
        model = models[0] if known else self._boosted(self.log.take(~rows))
        return self._grown(sample_of(self.log.take(rows), LEAFY_UNITS, self.seed), model, True)

    def _grown(self, log: BanditLog, model: LossModel, leaves: bool) -> Ground:
        return grown_ground(log, self.structure, self.intercept, model, self.calibration, self.threads, leaves=leaves)

    def _boosted(self, log: BanditLog) -> LossModel:
        return model_to_grow(log, self.strengths, self.calibration.loss_range, self.threads)

    def lacks_trees(self, recipe: Recipe) -> bool:
        """Tell whether a recipe is about trees, and none helps here."""
        return recipe.learner.start in GROWN and self.strengths.boosting is None

    def ground(self, recipe: Recipe) -> Ground:
        """Return what the objective of a recipe is computed on."""
        start = recipe.learner.start
        if start in GROWN:
            return self.with_trees if start == "trees" else self.with_leaves
        return Ground(self.layout, self.loss, self.scale)

    @cached_property
    def scale(self) -> float:
        """The mean squared norm of a context."""
        return mean_square(self.log)

    @cached_property
    def probe(self) -> Probe:
        """Some of the contexts, to see whether a policy minds them."""
        return Probe(self.log)

    def prepare(self, recipes: Sequence[Recipe]) -> None:
        """Compute what some recipes need, before threads ask for it."""
        _ = self.loss, self.scale, self.probe
        for recipe in recipes:
            self.start_of(recipe)
            if recipe.learner.estimator is not None and recipe.learner.estimator.needs_model:
                _ = self._losses_for(recipe).predicted

    def start_of(self, recipe: Recipe) -> FloatArray | None:
        """Return the weights that a recipe begins with; None is 0."""
        kind = recipe.learner.start
        if kind in GROWN:
            weights = self.ground(recipe).start
            return None if weights is None else recipe.sharpness * weights
        if kind == "direct":
            return recipe.sharpness * self.direct
        if kind == "logging":
            return recipe.sharpness * self.imitated
        if kind == "tilted":
            return self.logger.weights + recipe.sharpness * self.direct
        return self._given if kind == "given" else None

    # ---- one candidate ----------------------------------------------------------------------

    def policy(
        self,
        recipe: Recipe,
        rng: np.random.Generator,
        on_step: OnStep,
        record: Record,
        threads: Threads,
        keeper: Keeper | None = None,
    ) -> Policy:
        """Follow a recipe; the policy's record is ``record``, and says how it went. On shards, steps are kept."""
        learner, start = recipe.learner, self.start_of(recipe)
        risk = self._risk(recipe, start, threads)
        shards = self.shards if self.shards is not None and follows_shards(recipe) else None
        if learner.estimator is not None and shards is not None:
            models = self.shard_models if risk.estimator.needs_model else ()
            objective = shards.objective(risk.estimator, self.calibration.loss_range, self.intercept, models)
            trace, weights = followed(recipe, risk, objective, shards, start, rng, on_step, keeper)
        else:
            if learner.estimator is None:
                begin = np.zeros(risk.shape) if start is None else start
                trace = unmoved(begin, risk.point(begin).value)
            else:
                trace = learner.optimizer.minimize(risk, start, rng=rng, on_step=on_step)
            ratio = risk.ratios(trace.weights)
            weights = float(ratio.mean()), float(risk.estimator.clipped(ratio).mean())
        rows = len(self.log if shards is None else shards.log)
        return self._made(recipe, risk.lam, trace, weights, rows, record)

    def _made(
        self, recipe: Recipe, lam: float, trace: Trace, weights: tuple[float, float], rows: int, record: Record
    ) -> Policy:
        """Return the policy at the end of a trace; ``weights`` are the mean weight and the share at the clip."""
        made = replace(
            record,
            learner=recipe.learner.name,
            start=recipe.learner.start,
            lam=lam,
            calibration=asdict(self.calibration),
            trace=TraceRecord.of(trace, *weights),
            n_train=rows,
            settings=record.settings | recipe.settings(),
        )
        return policy_for(self.log, trace.weights, self.intercept, made, self.ground(recipe).forest)

    def _risk(self, recipe: Recipe, start: FloatArray | None, threads: Threads) -> Risk:
        learner, ground = recipe.learner, self.ground(recipe)
        estimator = self._ready(learner.estimator or IPS(), ground)
        return Risk(
            ground.layout,
            ground.loss,
            estimator,
            lam=recipe.lam_for(self.calibration.lam_star),
            l2=learner.l2 + recipe.pull * ground.scale,
            losses=self._losses_for(recipe) if estimator.needs_model else None,
            centre=start,
            threads=threads,
        )

    def _losses_for(self, recipe: Recipe) -> ContextLosses:
        own = self.corrected if recipe.learner.additive else self.ground(recipe).losses
        if own is not None:
            return own
        return self.cautious if recipe.learner.cautious else self.losses

    def _ready(self, estimator: Objective, ground: Ground) -> Objective:
        """Return an estimator with the calibrated clip, or with what else it leaves to the data set from these rows."""
        if isinstance(estimator, Weighted):
            return self.calibration.clips.set_in(estimator)
        layout = ground.layout
        return estimator.tuned(Rows(np.zeros(len(layout)), ground.loss, layout.log_propensity))
