"""Policy = structure + weights: probabilities, decisions, and a file to keep them in."""

import json
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from poem.arrays import AnyArray, FloatArray, frozen
from poem.compute import Forest, Threads, as_matrix, count_threads, design_of
from poem.data import (
    BanditLog,
    Catalogue,
    Layout,
    Offers,
    grown_log,
    offered_design,
    pair_scores,
)
from poem.data.features import Features
from poem.errors import InputError, MismatchError
from poem.files import write_whole
from poem.policies.checksum import CHECKED_VERSION, EMPTY, KEY, with_checksum
from poem.policies.floor import FlooredPolicy
from poem.policies.record import Record
from poem.policies.scored import Scored
from poem.readers import Likeness
from poem.structures import (
    Available,
    Fixed,
    Labels,
    Space,
    Structure,
)
from poem.text import counted, harmless_json

# Earlier files have no checksum: 1 is a plain policy, 2 has a floor, 3 a structure that came later, 4 trees.
FILE_VERSION = CHECKED_VERSION


@dataclass(frozen=True, eq=False)
class Policy:
    """A stochastic policy h(y|x) ∝ exp(w·φ(x, y)), linear in the features or in what trees make of them.

    Attributes
    ----------
    structure : Structure
        What y is.
    weights : (d, k) or (d + 1, k) array
        One row for each feature; the last one is the intercept if there is one. With a forest, d counts the columns
        that it adds as well; or k does, where actions have features: the first is for what the trees say.
    intercept : bool
    labels : tuple
        The classes, or the names of the label columns; of candidates, those with a feature of their own.
    feature_names : tuple of str, optional
    record : Record
        How the policy was made; it is saved with it.
    features : Features, optional
        How raw columns become features; a data frame that is passed as X then holds raw columns.
    action_names : tuple of str, optional
        The names of the features of actions, if these have features.
    action_features : Features, optional
        How raw columns of actions become their features.
    forest : Forest, optional
        Trees whose scores and leaves are further features: of contexts, or of candidates where actions have features.
    """

    structure: Structure
    weights: FloatArray
    intercept: bool
    labels: Labels
    feature_names: tuple[str, ...] | None = None
    record: Record = field(default_factory=Record)
    features: Features | None = None
    action_names: tuple[str, ...] | None = None
    action_features: Features | None = None
    forest: Forest | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", frozen(self.weights, np.float64))
        if not np.isfinite(self.weights).all():
            raise InputError("the weights of a policy must be finite; found NaN or infinity.")
        if not isinstance(self.record, Record):
            raise InputError(f"record must be a poem.Record; found {type(self.record).__name__}.")
        if self.forest is not None:
            self._check_forest(self.forest)

    def _check_forest(self, forest: Forest) -> None:
        """Refuse trees that do not go with the weights."""
        if self.structure.described:
            seen = len(self.weights) - 1 + self.structure.n_scores - len(self.labels)
            fits = self.intercept and (forest.n_features, forest.n_columns, forest.leafy) == (seen, 1, 0)
        else:
            fits = forest.width == len(self.weights) - int(self.intercept)
        if not fits:
            raise InputError(
                f"the forest sees {forest.n_features} features and makes {forest.width}, which does not fit weights of "
                f"{self.weights.shape}."
            )

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Copies of read-only arrays can be written to.
        self.__dict__.update(state | {"weights": frozen(state["weights"])})

    @property
    def n_features(self) -> int:
        """The number of features that X must have."""
        if self.forest is None or self.structure.described:
            return len(self.weights) - int(self.intercept)
        return self.forest.n_features

    def __repr__(self) -> str:
        trees = "" if self.forest is None else f", {counted(len(self.forest), 'tree')}"
        return f"Policy({self.structure}, {counted(self.n_features, 'feature')}{trees}, intercept={self.intercept})"

    # ---- decisions ------------------------------------------------------------------------
    # ``available`` and ``actions`` are those of :class:`poem.BanditLog`: what can be chosen in each context.

    def predict(self, X: Any, available: Any = None, actions: Any = None) -> AnyArray:
        """Return the most probable output of each context (MAP): classes, actions, or a 0/1 matrix."""
        scored = self._scored(X, available, actions)
        return scored.decoded(scored.stack(lambda scores, space, _: space.argmax(scores)))

    def sample(self, X: Any, rng: Generator | int, available: Any = None, actions: Any = None) -> AnyArray:
        """Draw one output for each context; log its probability with :meth:`log_prob`."""
        scored, generator = self._scored(X, available, actions), np.random.default_rng(rng)
        return scored.decoded(scored.stack(lambda scores, space, _: space.sample(scores, generator)))

    def marginals(self, X: Any, available: Any = None, actions: Any = None) -> FloatArray:
        """Return the probability of each label or class in each context, (m, k); of candidates, flat."""
        scored = self._scored(X, available, actions)
        return scored.stack(lambda scores, space, _: space.marginals(scores))

    def marginals_of(self, log: BanditLog) -> FloatArray:
        """Return the same for the contexts of a log."""
        return self.marginals(log.X, log.available)

    def log_prob(self, X: Any, y: Any, available: Any = None, actions: Any = None) -> FloatArray:
        """Return log h(y|x) of one output for each row of X."""
        scored = self._scored(X, available, actions)
        codes = scored.codes(y)

        def one(scores: FloatArray, space: Space, rows: slice) -> FloatArray:
            return space.log_prob(scores, codes[rows], frozen(np.arange(rows.stop - rows.start + 1)))

        return scored.stack(one)

    def log_prob_of(self, log: BanditLog, n_jobs: int | None = -1) -> FloatArray:
        """Return log h(y|x) of every row of a log; each unique context is scored once."""
        if (log.structure.known_labels(log.labels), log.structure) != (self.labels, self.structure):
            theirs, mine = (f"{one.structure.describe()}, {list(one.labels)[:8]}" for one in (log, self))
            raise MismatchError(
                f"the log's outputs are {theirs}; the policy's are {mine}. "
                "Build the log with labels= and structure= the policy's."
            )
        self._check_width(log.n_features)
        if self.feature_names is not None and log.feature_names not in (None, self.feature_names):
            raise MismatchError(
                f"the log's features are {list(log.feature_names or ())[:8]}, the policy's are "
                f"{list(self.feature_names)[:8]}. Build the log with feature_names= the policy's feature_names."
            )
        if self.features is not None and log.features not in (None, self.features):
            raise MismatchError(
                "the log's features were made of its columns in another way than the policy's (other scales, "
                "categories or hashes). Read the log with features= the policy's features."
            )
        if self.structure.described:
            self._check_actions(log)
        threads = Threads(count_threads(n_jobs))
        if self.forest is not None:
            log = grown_log(log, self.forest, threads)
        layout = Layout(log, log.structure, self.intercept)
        log_prob = np.empty(len(log))
        log_prob[layout.order] = layout.log_prob(self.weights, threads)
        return log_prob

    def scores(self, X: Any, available: Any = None, actions: Any = None) -> FloatArray:
        """Return w·φ of each label or class in each context, (m, k); of candidates, flat."""
        return self._scored(X, available, actions).stack(lambda scores, *_: scores)

    def _check_actions(self, log: BanditLog) -> None:
        """Refuse a log whose actions are described by other features, even if there are as many."""
        if self.action_names is not None and log.action_names not in (None, self.action_names):
            raise MismatchError(
                f"the log's features of actions are {list(log.action_names or ())[:8]}, the policy's are "
                f"{list(self.action_names)[:8]}. Pass the same columns in the same order."
            )
        if self.action_features is not None and log.action_features not in (None, self.action_features):
            raise MismatchError(
                "the log's features of actions were made in another way than the policy's (other scales, categories or "
                "hashes). Read the log for the policy: poem.read_log_for(policy, source)."
            )

    def expected_loss(self, X: Any, truth: Any) -> float:
        """Return the mean expected loss against true outputs: Hamming for labels, 0/1 for classes."""
        fixed, scored = self._fixed(), self._scored(X)
        codes = scored.truth(truth)
        return float(scored.stack(lambda scores, _, rows: fixed.expected_loss(scores, codes[rows])).mean())

    def map_loss(self, X: Any, truth: Any, available: Any = None, actions: Any = None) -> float:
        """Return the mean loss of :meth:`predict` against true outputs."""
        scored = self._scored(X, available, actions)
        codes = scored.truth(truth)
        found = scored.chosen(scored.stack(lambda scores, space, _: space.argmax(scores)))
        return float(self.structure.loss(codes, found).mean())

    def _fixed(self) -> Fixed:
        """Return the structure, if its outputs are the same in every context."""
        if not isinstance(self.structure, Fixed):
            raise MismatchError(f"this is for outputs that are the same everywhere, not {self.structure.describe()}.")
        return self.structure

    def variation(self, X: Any, available: Any = None, actions: Any = None) -> float:
        """Return how far h(·|x) moves with x: 0 for a policy that ignores x."""
        return self._scored(X, available, actions).variation()

    def at_temperature(self, alpha: float) -> "Policy":
        """Return the policy of weights α·w: more peaked for α > 1, nearer to uniform for α < 1."""
        if not isinstance(alpha, int | float | np.number) or not np.isfinite(alpha) or alpha < 0.0:
            raise InputError(f"alpha must be finite and not negative; found {alpha!r}.")
        record = replace(self.record, certificate=None, temperature=float(alpha))  # it is another policy
        return replace(self, weights=self.weights * alpha, record=record)

    def with_floor(self, share: float = 0.01, other: "Policy | None" = None) -> FlooredPolicy:
        """Return the policy mixed with another one, uniform by default, so that every output stays possible.

        A ``share`` of its decisions is the other's: no ratio to its propensities can then exceed 1/share times
        that to the other's, and its own log stays usable. ``log_prob`` is exact.
        """
        zeros = np.zeros((self.n_features + int(self.intercept), self.structure.n_scores))
        uniform = replace(self, weights=zeros, forest=None, record=Record(made_by="with_floor"))
        return FlooredPolicy(self, share, uniform if other is None else other)

    def _scored(self, X: Any, available: Any = None, actions: Any = None) -> Scored:
        """Return contexts and what is available in them, ready to be scored."""
        matrix, threads = self._matrix(X), Threads(count_threads(-1))
        if self.forest is not None and not self.structure.described:
            matrix = self.forest.extended(matrix, threads)
        if available is None and actions is None:
            return Scored(self.structure, self.weights, self.labels, design_of(matrix, self.intercept))
        found, labels = self._offers(available, actions, matrix.shape[0])
        design, trees = offered_design(matrix, self.intercept, None, False, self.structure, found), self.forest
        if trees is None or not self.structure.described:
            return Scored(self.structure, self.weights, labels, design, found)
        strength, lines = self.weights[:, 0], frozen(self.weights[:, 1:])

        def more(part: slice) -> FloatArray:
            """Return what trees over pairs add to the scores of some contexts."""
            some = np.arange(part.start, part.stop)
            share = np.asarray(matrix[part] @ strength[:-1]) + strength[-1]
            counts = found.starts[some + 1] - found.starts[some]
            return np.asarray(pair_scores(trees, matrix, found, some, threads) * np.repeat(share, counts))

        return Scored(self.structure, lines, labels, design, found, more)

    def _described(self, actions: Any) -> Any:
        """Return features of actions; raw or named columns of a data frame become those of the policy."""
        if not hasattr(actions, "__arrow_c_stream__"):
            return actions
        if self.action_features is not None:
            return self.action_features.transform(actions)
        if self.action_names is None:
            return actions
        return as_matrix(actions, self.action_names[: self.structure.n_scores - len(self.labels)])[0]

    def _offers(self, available: Any, actions: Any, contexts: int) -> tuple[Available, Labels]:
        if isinstance(available, Available):
            return available, self.labels
        if isinstance(actions, Catalogue):
            actions = Catalogue(actions.ids, self._described(actions.features))
        else:
            actions = self._described(actions)
        labels = None if self.structure.described and not self.labels else self.labels
        found, known, structure = Offers(available, actions, known=self.structure).read(labels, contexts)
        if structure != self.structure:
            raise MismatchError(
                f"the policy chooses {self.structure.describe()}; what is available are {structure.describe()}. "
                "Pass actions= with the features that the policy was trained on."
            )
        return found, known

    def _matrix(self, X: Any) -> Any:
        if self.features is not None and hasattr(X, "__arrow_c_stream__"):
            matrix, _ = as_matrix(self.features.transform(X))
        else:
            matrix, _ = as_matrix(X, self.feature_names if hasattr(X, "__arrow_c_stream__") else None)
        self._check_width(matrix.shape[1])
        if matrix.shape[0] == 0:
            raise MismatchError("X has no rows. Pass at least one context.")
        return matrix

    def _check_width(self, width: int) -> None:
        if width != self.n_features:
            raise MismatchError(
                f"X has {counted(width, 'feature')}; the policy was made for {self.n_features}. "
                "Pass the same columns as in training."
            )

    def likeness(self) -> Likeness:
        """Return how a log is read to be like the policy's own, for :func:`poem.pack_log`."""
        from poem.policies.reading import OfPolicy

        return OfPolicy.of(self)

    # ---- the file -------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], *, floor: FlooredPolicy | None = None) -> Path:
        """Write the policy to a safetensors file with JSON metadata; an old file is replaced whole.

        ``floor`` is what it was given by :meth:`with_floor`; :meth:`FlooredPolicy.save` passes it.
        """
        from safetensors.numpy import save

        tensors, about_floor = {"weights": np.array(self.weights)}, None
        tensors |= {} if self.forest is None else self.forest.to_arrays("forest")
        if floor is not None:
            tensors["floor"] = np.array(floor.other.weights)
            tensors |= {} if floor.other.forest is None else floor.other.forest.to_arrays("floor.forest")
            about_floor = {"share": float(floor.share), "intercept": floor.other.intercept}
        about = {
            KEY: EMPTY,
            "format": "poem.policy",
            "version": FILE_VERSION,
            "floor": about_floor,
            "structure": self.structure.to_data(),
            "intercept": self.intercept,
            "labels": list(self.labels),
            "feature_names": None if self.feature_names is None else list(self.feature_names),
            "training": self.record.to_data(),
            "features": None if self.features is None else self.features.to_data(),
        }
        if self.structure.described:
            about["action_names"] = None if self.action_names is None else list(self.action_names)
            about["action_features"] = None if self.action_features is None else self.action_features.to_data()
        content = save(tensors, metadata={"poem": harmless_json(json.dumps(about, ensure_ascii=False))})
        return write_whole(Path(path), with_checksum(content))
