"""Policy = structure + weights: probabilities, decisions, and a file to keep them in."""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from poem.arrays import AnyArray, FloatArray, frozen
from poem.compute import Threads, as_matrix, count_threads, design_of
from poem.data import SHARD_SCORES, BanditLog, Layout
from poem.data.features import Features
from poem.errors import InputError, MismatchError, PolicyFileError
from poem.files import write_whole
from poem.policies.floor import FlooredPolicy
from poem.policies.record import Record
from poem.structures import CERTAIN, Labels, Structure, structure_from_data

# A floor, and a structure that came later, must not be overlooked by a poem that does not know of it.
FILE_VERSION, FLOORED_VERSION, NEWER_VERSION = 1, 2, 3


@dataclass(frozen=True, eq=False)
class Policy:
    """A stochastic linear policy h(y|x) ∝ exp(w·φ(x, y)).

    Attributes
    ----------
    structure : Structure
        What y is.
    weights : (d, k) or (d + 1, k) array
        One row for each feature; the last one is the intercept if there is one.
    intercept : bool
    labels : tuple
        The classes, or the names of the label columns.
    feature_names : tuple of str, optional
    record : Record
        How the policy was made; it is saved with it.
    features : Features, optional
        How raw columns become features; a data frame that is passed as X then holds raw columns.
    """

    structure: Structure
    weights: FloatArray
    intercept: bool
    labels: Labels
    feature_names: tuple[str, ...] | None = None
    record: Record = field(default_factory=Record)
    features: Features | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", frozen(self.weights, np.float64))
        if not np.isfinite(self.weights).all():
            raise InputError("the weights of a policy must be finite; found NaN or infinity.")
        if not isinstance(self.record, Record):
            raise InputError(f"record must be a poem.Record; found {type(self.record).__name__}.")

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Copies of read-only arrays can be written to.
        self.__dict__.update(state | {"weights": frozen(state["weights"])})

    @property
    def n_features(self) -> int:
        """The number of features that X must have."""
        return len(self.weights) - int(self.intercept)

    def __repr__(self) -> str:
        return f"Policy({self.structure}, {self.n_features} features, intercept={self.intercept})"

    # ---- decisions ------------------------------------------------------------------------

    def predict(self, X: Any) -> AnyArray:
        """Return the most probable output of each context (MAP): classes, or a 0/1 matrix."""
        codes = self._stack(X, lambda scores, _: self.structure.argmax(scores))
        return self.structure.decode(codes, self.labels)

    def sample(self, X: Any, rng: Generator | int) -> AnyArray:
        """Draw one output for each context; log its probability with :meth:`log_prob`."""
        generator = np.random.default_rng(rng)
        codes = self._stack(X, lambda scores, _: self.structure.sample(scores, generator))
        return self.structure.decode(codes, self.labels)

    def marginals(self, X: Any) -> FloatArray:
        """Return the probability of each label or class in each context, (m, k)."""
        return self._stack(X, lambda scores, _: self.structure.marginals(scores))

    def log_prob(self, X: Any, y: Any) -> FloatArray:
        """Return log h(y|x) of one output for each row of X."""
        codes = self._codes(y)
        self.structure.check(codes)

        def one(scores: FloatArray, rows: slice) -> FloatArray:
            starts = frozen(np.arange(len(scores) + 1))
            return self.structure.log_prob(scores, codes[rows], starts)

        return self._stack(X, one, len(codes))

    def log_prob_of(self, log: BanditLog, n_jobs: int | None = -1) -> FloatArray:
        """Return log h(y|x) of every row of a log; each unique context is scored once."""
        if (log.labels, log.structure) != (self.labels, self.structure):
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
        layout = Layout(log, self.structure, self.intercept)
        log_prob = np.empty(len(log))
        log_prob[layout.order] = layout.log_prob(self.weights, Threads(count_threads(n_jobs)))
        return log_prob

    def expected_loss(self, X: Any, truth: Any) -> float:
        """Return the mean expected loss against true outputs: Hamming for labels, 0/1 for classes."""
        codes = self._codes(truth)
        losses = self._stack(X, lambda scores, rows: self.structure.expected_loss(scores, codes[rows]), len(codes))
        return float(losses.mean())

    def map_loss(self, X: Any, truth: Any) -> float:
        """Return the mean loss of :meth:`predict` against true outputs."""
        codes = self._codes(truth)

        def one(scores: FloatArray, rows: slice) -> FloatArray:
            return self.structure.loss(codes[rows], self.structure.argmax(scores))

        return float(self._stack(X, one, len(codes)).mean())

    def variation(self, X: Any) -> float:
        """Return how far h(·|x) moves with x: 0 for a policy that ignores x."""
        matrix = self._matrix(X)[: max(2, SHARD_SCORES // self.structure.n_scores)]
        design = design_of(matrix, self.intercept)
        return self.structure.variation(design.scores(design.widen(self.weights), self.structure.n_scores))

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
        uniform = replace(self, weights=np.zeros_like(self.weights), record=Record(made_by="with_floor"))
        return FlooredPolicy(self, share, uniform if other is None else other)

    def _stack(self, X: Any, use: Callable[[FloatArray, slice], AnyArray], rows: int | None = None) -> AnyArray:
        """Apply ``use`` to the scores of one block of contexts at a time and join the results."""
        matrix = self._matrix(X)
        if rows is not None and rows != matrix.shape[0]:
            raise MismatchError(f"X has {matrix.shape[0]} rows and y has {rows}. Pass one output for each row of X.")
        design = design_of(matrix, self.intercept)
        k, wide = self.structure.n_scores, design.widen(self.weights)
        blocks = _blocks(design.n_contexts, k)
        return np.concatenate([use(design.block(b.start, b.stop).scores(wide, k), b) for b in blocks])

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
                f"X has {width} features; the policy was made for {self.n_features}. "
                "Pass the same columns as in training."
            )

    def _codes(self, y: Any) -> AnyArray:
        return frozen(self.structure.encode(y, self.labels)[0])

    # ---- the file -------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], *, floor: FlooredPolicy | None = None) -> Path:
        """Write the policy to a safetensors file with JSON metadata; an old file is replaced whole.

        ``floor`` is what it was given by :meth:`with_floor`; :meth:`FlooredPolicy.save` passes it.
        """
        from safetensors.numpy import save

        tensors, about_floor = {"weights": np.array(self.weights)}, None
        if floor is not None:
            tensors["floor"] = np.array(floor.other.weights)
            about_floor = {"share": float(floor.share), "intercept": floor.other.intercept}
        about = {
            "format": "poem.policy",
            "version": self._file_version(floor is not None),
            "floor": about_floor,
            "structure": self.structure.to_data(),
            "intercept": self.intercept,
            "labels": list(self.labels),
            "feature_names": None if self.feature_names is None else list(self.feature_names),
            "training": self.record.to_data(),
            "features": None if self.features is None else self.features.to_data(),
        }
        content = save(tensors, metadata={"poem": json.dumps(about, ensure_ascii=False)})
        return write_whole(Path(path), content)

    def _file_version(self, floored: bool) -> int:
        if not self.structure.inferred:
            return NEWER_VERSION
        return FLOORED_VERSION if floored else FILE_VERSION


def uniform_policy(log: BanditLog) -> Policy:
    """Return the policy that gives every output of a log's kind the same probability."""
    structure = log.structure
    weights = np.zeros((log.n_features + 1, structure.n_scores))
    record = Record(made_by="uniform_policy")
    return Policy(structure, weights, True, log.labels, log.feature_names, record, log.features)


def constant_policy(log: BanditLog, y: Any) -> Policy:
    """Return the policy that always chooses the one output ``y``."""
    structure = log.structure
    codes, _ = structure.encode(np.asarray([y]), log.labels)
    structure.check(codes)
    weights = np.zeros((log.n_features + 1, structure.n_scores))
    weights[-1] = CERTAIN * structure.constant_scores(codes[0])
    record = Record(made_by="constant_policy")
    return Policy(structure, weights, True, log.labels, log.feature_names, record, log.features)


def load_policy(path: str | os.PathLike[str]) -> Policy | FlooredPolicy:
    """Read a policy that :meth:`Policy.save` wrote, with its floor if it has one. Nothing in the file is executed."""
    from safetensors import SafetensorError, safe_open

    if not Path(path).is_file():
        raise PolicyFileError(f"there is no policy file at {os.fspath(path)!r}. Check the path.")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, TypeError, AttributeError) as error:
        raise PolicyFileError(
            f"{os.fspath(path)!r} is not a whole policy file: it is of another format, or cut off ({error}). Pass a "
            "file that was saved as a policy, or save it again."
        ) from error
    return _rebuild(os.fspath(path), metadata, tensors)


def _rebuild(path: str, metadata: dict[str, str], tensors: dict[str, AnyArray]) -> Policy | FlooredPolicy:
    try:
        about = json.loads(metadata["poem"])
        if about["format"] != "poem.policy":
            raise KeyError("format")
        version = int(about["version"])
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise PolicyFileError(
            f"{path!r} is a safetensors file, but not a policy: poem's metadata is missing or broken ({error})."
        ) from error
    if version > NEWER_VERSION:
        raise PolicyFileError(
            f"{path!r} has format version {version}; this poem reads up to {NEWER_VERSION}. Upgrade poem."
        )
    try:
        weights, labels = tensors["weights"], tuple(about["labels"])
        if weights.dtype.kind != "f":
            raise ValueError(f"weights of {weights.dtype}")
        structure = structure_from_data(about["structure"], len(labels))
        if weights.ndim != 2 or structure.n_scores != weights.shape[1]:
            raise ValueError(f"{len(labels)} labels for weights of shape {weights.shape}")
        names = None if about["feature_names"] is None else tuple(about["feature_names"])
        features = None if about.get("features") is None else Features.from_data(about["features"])
        record = Record.from_data(about["training"])
        policy = Policy(structure, weights, about["intercept"], labels, names, record, features)
        _check_rebuilt(policy)
        return policy if about.get("floor") is None else _with_floor(policy, tensors["floor"], about["floor"])
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, InputError, MismatchError) as error:
        raise PolicyFileError(f"{path!r} is a policy file with broken content: {error!r}. Save it again.") from error


def _with_floor(policy: Policy, weights: AnyArray, about: dict[str, Any]) -> FlooredPolicy:
    other = replace(policy, weights=weights, intercept=about["intercept"], record=Record())
    _check_rebuilt(other)
    return policy.with_floor(about["share"], other)


def _check_rebuilt(policy: Policy) -> None:
    """Raise ValueError or TypeError for content that save() never writes."""
    if len(set(policy.labels)) != len(policy.labels):
        raise ValueError("labels that are not distinct")
    if not isinstance(policy.intercept, bool):
        raise ValueError("an intercept of a wrong type")
    if policy.n_features < 0 or (policy.feature_names is not None and len(policy.feature_names) != policy.n_features):
        raise ValueError(f"{policy.feature_names} for {policy.n_features} features")
    if policy.features is not None and policy.features.width != policy.n_features:
        raise ValueError(f"a recipe of {policy.features.width} features for {policy.n_features}")


def _blocks(length: int, k: int) -> Iterator[slice]:
    height = max(1, SHARD_SCORES // k)
    for first in range(0, length, height):
        yield slice(first, min(first + height, length))
