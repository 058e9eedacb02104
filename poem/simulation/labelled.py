"""Labelled data of any kind → contexts, true outputs, and the log of a weak policy on them."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from poem.arrays import AnyArray
from poem.compute import Matrix
from poem.data import BanditLog
from poem.data.features import Features
from poem.errors import InputError
from poem.policies import Policy, logging_policy
from poem.readers import Columns, coded_outputs, read_raw, suffix_format
from poem.simulation.datasets import CATALOG, load_dataset, read_libsvm
from poem.simulation.logs import simulate
from poem.structures import Wanted


@dataclass(frozen=True, eq=False)
class Labelled:
    """Contexts with their true outputs.

    Attributes
    ----------
    X : (n, d) matrix
    y : (n,) array of classes, or (n, q) array of 0/1
    features : Features, optional
        How contexts are made of raw columns, if they are.
    """

    X: Matrix
    y: AnyArray
    features: Features | None = None


def read_labelled(
    source: str | Path, label: str | None = None, *, folder: str | Path | None = None, progress: bool = False
) -> Labelled:
    """Read labelled data.

    Parameters
    ----------
    source : str or path
        A table if ``label`` is given; else one of the paper's data sets by name, or a LibSVM multi-label file.
    label : str, optional
        The column of true classes of a table.
    folder : path, optional
        Where named data sets are.
    progress : bool
        Show what is being read on stderr.
    """
    if label is not None:
        return _from_table(Path(source), label, progress)
    if str(source) in CATALOG:
        data = load_dataset(str(source), folder, progress=progress)
        return Labelled(data.X_train, data.y_train)
    path = Path(source)
    if not path.is_file():
        raise InputError(f"{str(source)!r} is neither a file nor one of {', '.join(CATALOG)}.")
    if suffix_format(path) not in (None, "svmlight"):
        raise InputError(f"{path.name} is a table: name its column of true classes with label=.")
    return Labelled(*read_libsvm(path))


def _from_table(path: Path, label: str, progress: bool) -> Labelled:
    raw = read_raw(path, Columns(output=label), progress=progress)
    if raw.table.num_rows == 0:
        raise InputError(f"{raw.origin.name} has no rows. Pass labelled rows.")
    context = raw.table.select(list(raw.roles.context))
    features = Features.learn(context, place=raw.origin.place)
    (codes, labels), structure = coded_outputs(raw)
    return Labelled(features.transform(context, raw.origin.place), structure.decode(codes, labels), features)


def simulate_weak(
    data: Labelled,
    *,
    structure: Wanted = None,
    fraction: float = 0.05,
    temperature: float = 1.0,
    replay: int = 4,
    loss: Literal["hamming", "zero-one", "f1"] = "hamming",
    seed: int = 0,
) -> tuple[BanditLog, Policy]:
    """Fit a weak policy on a share of labelled data, let it decide, and log what that cost.

    Parameters
    ----------
    data : Labelled
    structure : Structure, its class or its name, optional
        What the policy chooses, such as ``"subset(3)"``; one of the classes, or any set of labels, by default.
    fraction : float
        Share of the rows to fit the policy on.
    temperature : float
        Below 1 the policy explores more.
    replay : int
        Passes over the data.
    loss : "hamming", "zero-one" or "f1"
    seed : int

    Returns
    -------
    BanditLog, Policy
        The log, and the policy that made it; both know how features are made of raw columns.
    """
    rng = np.random.default_rng(seed)
    h0 = logging_policy(data.X, data.y, fraction=fraction, temperature=temperature, structure=structure, rng=rng)
    if data.features is not None:
        h0 = replace(h0, features=data.features, feature_names=data.features.names())
    log = simulate(data.X, data.y, h0, replay=replay, loss=loss, rng=rng)
    return log if data.features is None else log.with_features(data.features), h0
