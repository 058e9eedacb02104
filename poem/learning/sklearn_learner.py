"""The scikit-learn face of :func:`poem.fit`."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from poem.arrays import AnyArray, FloatArray
from poem.data import BanditLog
from poem.errors import InputError, LogError
from poem.estimators import SNIPS, Estimator, Objective
from poem.evaluation import LossBounds, estimate
from poem.learning.fitting import Lam, fit
from poem.learning.options import Selection
from poem.optimizers import Optimizer
from poem.policies import NO_POLICY, FlooredPolicy, Policy
from poem.structures import Wanted


class CRMLearner(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Counterfactual risk minimization as a scikit-learn estimator.

    The parameters are those of :func:`poem.fit`, and those of a log: ``labels``, all possible outputs, for logs
    (or folds of them) in which some do not occur, and ``structure``, what an output is. Unlike
    there, ``certify`` is off by default: scikit-learn expects a policy from every fit, and a certificate may leave
    none. ``loss`` (or ``reward``), ``propensity`` (or
    ``log_propensity``) and ``group`` are passed to ``fit`` and ``score`` row by row; with metadata routing enabled
    and ``set_fit_request(loss=True, propensity=True)``, pipelines and searches pass them on.

    Attributes
    ----------
    policy_ : Policy or None
        None if nothing was certified.
    result_ : Fit
    classes_ : (k,) array
        Classes, or label names.
    n_features_in_ : int
    """

    def __init__(
        self,
        *,
        learners: Any = "auto",
        estimator: Objective | None = None,
        lam: Lam | None = None,
        l2: float | None = None,
        optimizer: Optimizer | None = None,
        loss_bounds: LossBounds = "auto",
        fit_intercept: bool = True,
        validation: Any = "auto",
        select_by: str | Estimator | None = None,
        confidence: float = 0.95,
        certify: bool = False,
        guard: bool = True,
        force: bool = False,
        labels: Any = None,
        structure: Wanted = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.learners = learners
        self.estimator = estimator
        self.lam = lam
        self.l2 = l2
        self.optimizer = optimizer
        self.loss_bounds = loss_bounds
        self.fit_intercept = fit_intercept
        self.validation = validation
        self.select_by = select_by
        self.confidence = confidence
        self.certify = certify
        self.guard = guard
        self.force = force
        self.labels = labels
        self.structure = structure
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        loss: Any = None,
        propensity: Any = None,
        *,
        reward: Any = None,
        log_propensity: Any = None,
        group: Any = None,
    ) -> Self:
        """Learn from logged outputs ``y``, their losses and propensities."""
        if y is None:
            raise LogError(
                "y is missing: CRMLearner requires y to be passed, but the target y is None. Pass the logged outputs."
            )
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64)
        log = BanditLog(
            X,
            y,
            loss=loss,
            reward=reward,
            propensity=propensity,
            log_propensity=log_propensity,
            group=group,
            labels=self.labels,
            structure=self.structure,
            feature_names=getattr(self, "feature_names_in_", None),
        )
        selection = Selection(
            validation=self.validation,
            select_by=self.select_by,  # type: ignore[arg-type]  # checked by fit
            confidence=self.confidence,
            guard=self.guard,
            force=self.force,
        )
        self.result_ = fit(
            log,
            learners=self.learners,
            estimator=self.estimator,
            lam=self.lam,
            l2=self.l2,
            optimizer=self.optimizer,
            loss_bounds=self.loss_bounds,
            fit_intercept=self.fit_intercept,
            certify=self.certify,
            selection=selection,
            n_jobs=self.n_jobs,
            seed=self._seed(),
        )
        self.policy_ = self.result_.policy
        self.classes_ = np.asarray(log.labels)
        return self

    def predict(self, X: Any) -> AnyArray:
        """Return the most probable output of each context."""
        found = self._policy().predict(self._checked(X))
        return found.astype(np.int64) if found.dtype == np.uint8 else found

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class or label, (n, k)."""
        return self._policy().marginals(self._checked(X))

    def score(
        self,
        X: Any,
        y: Any,
        loss: Any = None,
        propensity: Any = None,
        *,
        reward: Any = None,
        log_propensity: Any = None,
        sample_weight: Any = None,
    ) -> float:
        """Return the self-normalised estimate of the reward on a log, or minus that of the loss: higher is better.

        ``sample_weight`` is here because pipelines insist on passing it; it must be None.
        """
        policy = self._policy()
        if sample_weight is not None:
            raise InputError("score weighs rows by their propensities; sample_weight is not supported. Leave it out.")
        log = BanditLog(
            self._checked(X),
            y,
            loss=loss,
            reward=reward,
            propensity=propensity,
            log_propensity=log_propensity,
            labels=policy.labels,
            structure=policy.structure,
        )
        found = estimate(policy, log, SNIPS(clip=None)).value
        return found if log.outcome == "reward" else -found

    def _policy(self) -> Policy | FlooredPolicy:
        check_is_fitted(self, "policy_")
        if self.policy_ is None:
            raise InputError(NO_POLICY.format(name="the policy"))
        return self.policy_

    def _seed(self) -> int:
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _checked(self, X: Any) -> Any:
        return validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags
