"""BanditLog: the arrays of one log of decisions, validated once and never changed."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from poem.arrays import AnyArray, FloatArray, IntArray, frozen
from poem.compute import Matrix, as_matrix, is_sparse
from poem.data.columns import checked_context, checked_group, checked_log_propensity, checked_loss, checked_time
from poem.data.description import described, few_of
from poem.data.features import Features
from poem.data.fingerprint import digest_of
from poem.data.joining import check_same_kind, distinct_contexts, frozen_matrix, joined_contexts
from poem.data.offers import Offers, Outputs
from poem.data.splitting import checked_rows, latest_mask, numbered, places_of, random_mask
from poem.errors import InputError, LogError
from poem.structures import Available, Labels, Structure, Wanted
from poem.text import Grid, Sheet, visible_line

Propensities = Literal["logged", "estimated", "balanced", "missing"]
Outcome = Literal["loss", "reward"]


class BanditLog:
    """A log of decisions: context x, logged output y, its loss, and its propensity.

    Parameters
    ----------
    X : (n, d) or (n_contexts, d) array, sparse matrix or Arrow-speaking data frame
        One row for each logged decision, or, with ``context``, one row for each unique context.
        A float64 matrix is shared, not copied: do not change it afterwards.
    y : (n,) or (n, q) array
        One class for each row (numbers or strings), or q columns of 0/1.
    loss, reward : (n,) array
        Exactly one of them. Lower losses are better; a reward is negated here and nowhere else.
    propensity, log_propensity : (n,) array
        Exactly one of them: the probability with which the logging policy chose ``y``. Where it was not
        logged, ``propensity="missing"`` says so; :func:`poem.estimate_propensities` is then the next step.
    context : (n,) array of int, optional
        Which row of ``X`` each decision saw.
    group : (n,) array, optional
        Rows of one group (a user, a session) are not independent; splits keep them together.
    logger : (n,) array, optional
        Which of several logging policies chose each row; see :func:`poem.balanced`.
    time : (n,) array of numbers, optional
        When each decision was made, in seconds or as any growing number: what is held out can then be the latest.
    labels : sequence, optional
        All possible classes, or the names of the label columns. Found in ``y`` if not given.
    feature_names : sequence of str, optional
        Taken from a data frame if not given.
    features : Features, optional
        How ``X`` was made of raw columns; a policy that is learnt from this log then takes raw columns as well.
    available : mask, lists or counts, optional
        What could be chosen in each context: a mask of contexts × labels, one list of actions per context, or the
        number of candidates of each context, which are then known by their positions. All outputs if not given.
    actions : matrix or data frame, optional
        Features of actions: a :class:`poem.Catalogue`, or one row per candidate in the order of the lists.
    identity : bool
        Give each action a feature of its own as well.
    action_features : Features, optional
        How ``actions`` were made of raw columns.

    Attributes
    ----------
    X, y, loss, log_propensity, context, group, logger, time, labels, feature_names, features
        The same, checked; ``y`` as codes (0/1 columns, or positions in ``labels``).
    outcome : "loss" or "reward"
        What was passed; ``loss`` is the negated reward.
    propensities : "logged", "estimated", "balanced" or "missing"
        Where ``log_propensity`` comes from; balanced ones are those of the mixture of several loggers.
    """

    X: Matrix
    y: AnyArray
    loss: FloatArray
    log_propensity: FloatArray
    context: IntArray
    group: AnyArray | None
    logger: AnyArray | None
    time: FloatArray | None
    labels: Labels
    structure: Structure
    available: Available | None
    action_names: tuple[str, ...] | None
    action_features: Features | None
    feature_names: tuple[str, ...] | None
    features: Features | None
    propensities: Propensities
    outcome: Outcome

    __slots__ = (
        "X",
        "action_features",
        "action_names",
        "available",
        "context",
        "feature_names",
        "features",
        "group",
        "labels",
        "log_propensity",
        "logger",
        "loss",
        "outcome",
        "propensities",
        "structure",
        "time",
        "y",
    )

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        loss: Any = None,
        reward: Any = None,
        propensity: Any = None,
        log_propensity: Any = None,
        context: Any = None,
        group: Any = None,
        logger: Any = None,
        time: Any = None,
        labels: Sequence[Any] | None = None,
        structure: Wanted = None,
        feature_names: Sequence[str] | None = None,
        features: Features | None = None,
        available: Any = None,
        actions: Any = None,
        identity: bool = False,
        action_features: Features | None = None,
    ) -> None:
        names = None if feature_names is None else tuple(feature_names)
        matrix, names = as_matrix(X, names)
        outputs = Outputs.of(y, labels, structure, Offers(available, actions, identity), matrix.shape[0])
        codes, n = outputs.codes, len(outputs.codes)
        if n == 0:
            raise LogError("the log is empty: y has no rows. Pass at least one logged decision.")
        seen = checked_context(context, matrix.shape[0], n)
        outputs.check(seen)
        missing = isinstance(propensity, str) and propensity == "missing" and log_propensity is None
        self._set(
            X=frozen_matrix(matrix),
            # Copies: a later change of the caller's columns must not reach the log. X is shared.
            y=frozen(codes.copy()),
            loss=frozen(checked_loss(loss, reward, n).copy()),
            log_propensity=frozen(
                np.full(n, np.nan) if missing else checked_log_propensity(propensity, log_propensity, n)
            ),
            propensities="missing" if missing else "logged",
            context=frozen(seen),
            group=checked_group(group, n, "group"),
            logger=checked_group(logger, n, "logger"),
            time=None if time is None else frozen(checked_time(time, n).copy()),
            labels=outputs.labels,
            structure=outputs.structure,
            available=outputs.available,
            action_names=outputs.named_by(action_features),
            action_features=action_features,
            feature_names=names,
            features=features,
            outcome="loss" if reward is None else "reward",
        )

    def _set(self, **fields: Any) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a BanditLog never changes; make a new one instead of setting {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a BanditLog never changes; {name} cannot be deleted")

    def __reduce__(self) -> Any:
        return _restored, ({name: getattr(self, name) for name in self.__slots__},)

    def replaced(self, **changes: Any) -> "BanditLog":
        """Return a copy with other fields; they come from a checked log and are not checked again."""
        return _rebuild({name: getattr(self, name) for name in self.__slots__} | changes)

    # ---- size and looks -------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.loss)

    @property
    def n_contexts(self) -> int:
        """The number of rows of ``X``."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """The number of columns of ``X``."""
        return int(self.X.shape[1])

    @property
    def nbytes(self) -> int:
        """The memory that the log's own arrays take."""
        X, rows = self.X, (self.y, self.loss, self.log_propensity, self.context)
        matrix = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if is_sparse(X) else X.nbytes
        return int(matrix + sum(one.nbytes for one in (*rows, self.available) if one is not None))

    def __repr__(self) -> str:
        head, facts = described(self)
        return "\n".join([head, *(visible_line(f"  {name:<10}  {text}") for name, text in facts)])

    def _repr_html_(self) -> str:
        head, facts = described(self)
        return Sheet(head, Grid(("", ""), facts, left=2)).html()

    def with_propensities(self, log_propensity: FloatArray, source: Propensities) -> "BanditLog":
        """Return the same log with other propensities, and where they come from."""
        checked = frozen(checked_log_propensity(None, log_propensity, len(self)))
        return self.replaced(log_propensity=checked, propensities=source)

    def with_labels(self, labels: Sequence[Any]) -> "BanditLog":
        """Return the same log with other names for its outputs."""
        if not len(labels) == len(set(labels)) == len(self.labels):
            raise InputError(f"{len(self.labels)} different labels are needed; found {few_of(labels)} ({len(labels)}).")
        return self.replaced(labels=tuple(labels))

    def with_features(self, features: Features) -> "BanditLog":
        """Return the same log with the recipe that its features were made by."""
        if features.width != self.n_features:
            raise InputError(f"the recipe makes {features.width} features; the log has {self.n_features}.")
        return self.replaced(features=features, feature_names=features.names())

    def with_contexts(self, X: Matrix) -> "BanditLog":
        """Return the same log with other features of its contexts, which have no names."""
        return self.replaced(X=frozen_matrix(X), feature_names=None, features=None)

    def with_groups(self, group: Any) -> "BanditLog":
        """Return the same log with other groups: rows of one group are not taken to be independent."""
        return self.replaced(group=checked_group(group, len(self), "group"))

    def with_loggers(self, logger: Any) -> "BanditLog":
        """Return the same log with a name for the logger of each row."""
        return self.replaced(logger=checked_group(logger, len(self), "logger"))

    def with_all_available(self) -> "BanditLog":
        """Return the same log as if every output could be chosen in every context."""
        return self if self.available is None else self.replaced(available=None)

    def need_propensities(self) -> None:
        """Raise if the log has none."""
        if self.propensities == "missing":
            raise LogError(
                "this log has no propensities, and they are never guessed silently. Estimate them in a step of its "
                "own, poem.estimate_propensities(log), and read what that says about them."
            )

    # ---- parts ----------------------------------------------------------------------------

    def take(self, rows: Any) -> "BanditLog":
        """Return the log of some rows (positions or a mask); contexts are shared, not copied."""
        chosen = checked_rows(rows, len(self))
        per_row = {name: frozen(getattr(self, name)[chosen]) for name in ("y", "loss", "log_propensity", "context")}
        named = {name: getattr(self, name) for name in ("group", "logger", "time")}
        return self.replaced(**per_row, **{n: None if v is None else frozen(v[chosen]) for n, v in named.items()})

    def split(
        self,
        fraction: float,
        rng: np.random.Generator | int,
        *,
        by: Literal["row", "group", "unit"] | None = None,
    ) -> tuple["BanditLog", "BanditLog"]:
        """Split at random into (rest, ``fraction`` of the rows, groups or units).

        ``by`` is ``"group"`` if the log has groups and ``"row"`` otherwise, unless given. ``"unit"`` is by group, or
        by context if there are none.
        """
        mask = random_mask(self, fraction, np.random.default_rng(rng), by)
        return self.take(~mask), self.take(mask)

    def split_by_time(self, fraction: float = 0.25) -> tuple["BanditLog", "BanditLog"]:
        """Split into (earlier rows, the latest ``fraction`` of them): a test of whether what was learnt still holds."""
        late = latest_mask(self, fraction)
        return self.take(~late), self.take(late)

    def shards(self, count: int) -> Iterator["BanditLog"]:
        """Yield up to ``count`` logs of neighbouring contexts; together they hold every row once."""
        if count < 1:
            raise InputError(f"count must be at least 1; found {count}.")
        order, starts = self.rows_by_context()
        wanted = np.linspace(0, len(self), min(count, self.n_contexts) + 1)
        cuts = np.unique(np.searchsorted(starts, wanted))
        for first, last in itertools.pairwise(cuts.tolist()):
            rows = order[starts[first] : starts[last]]
            yield self.take(rows).on_contexts(np.arange(first, last), self.context[rows] - first)

    def on_contexts(self, kept: IntArray, context: IntArray) -> "BanditLog":
        """Return the log with some of its contexts, and which of these each row saw."""
        offers = None if self.available is None else self.available.of(kept)
        return self.replaced(X=frozen_matrix(self.X[places_of(kept)]), context=frozen(context), available=offers)

    @staticmethod
    def concat(logs: Sequence["BanditLog"]) -> "BanditLog":
        """Join logs of the same outputs and features."""
        if not logs:
            raise InputError("concat needs at least one log; found none.")
        first = logs[0]
        for log in logs[1:]:
            check_same_kind(first, log)
        per_row: dict[str, AnyArray | None] = {
            name: frozen(np.concatenate([getattr(log, name) for log in logs]))
            for name in ("y", "loss", "log_propensity")
        }
        for name in ("group", "logger", "time"):
            columns = [getattr(log, name) for log in logs]
            per_row[name] = None if columns[0] is None else frozen(np.concatenate(columns))
        X, context, offers = joined_contexts(logs)
        return first.replaced(X=X, context=context, available=offers, **per_row)

    def deduplicated(self) -> "BanditLog":
        """Return the same log with equal contexts stored once."""
        first, number = distinct_contexts(self)
        return self if len(first) == self.n_contexts else self.on_contexts(np.array(first), number[self.context])

    def fingerprint(self) -> str:
        """Return a digest of all that the log holds: the same for the same log in the same order."""
        return digest_of(self)

    def units(self) -> IntArray:
        """Return which independent unit each row belongs to: its group, or its context if there are no groups."""
        if self.group is not None:
            return numbered(self.group)
        seen = np.bincount(self.context, minlength=self.n_contexts) > 0
        return np.asarray((np.cumsum(seen) - 1)[self.context])

    def rows_by_context(self) -> tuple[IntArray, IntArray]:
        """Return ``(order, starts)``: ``order[starts[c]:starts[c + 1]]`` are the rows of context c."""
        starts = np.zeros(self.n_contexts + 1, dtype=np.int64)
        np.cumsum(np.bincount(self.context, minlength=self.n_contexts), out=starts[1:])
        return np.argsort(self.context, kind="stable"), starts


def _rebuild(fields: dict[str, Any]) -> BanditLog:
    log = object.__new__(BanditLog)
    log._set(**fields)
    return log


def _restored(fields: dict[str, Any]) -> BanditLog:
    """Rebuild a copied log: copies of read-only arrays can be written to, and are a type of their own to kernels."""
    arrays = {name: frozen(value) for name, value in fields.items() if isinstance(value, np.ndarray)}
    return _rebuild(fields | arrays | {"X": frozen_matrix(fields["X"])})
