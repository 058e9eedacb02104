"""Trees that a library has grown, as arrays."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from poem.arrays import AnyArray, FloatArray, IntArray
from poem.compute import Forest

LISTS = {"split_feature": np.int64, "threshold": np.float64, "left_child": np.int64, "right_child": np.int64}


def forest_of(booster: Any, n_features: int, n_columns: int) -> Forest:
    """Return the trees of a LightGBM booster, if there is one.

    The tree of round r and column c is number r·columns + c. Trees that are one leaf of value 0 are left out.
    """
    trees = [] if booster is None else _trees(booster.model_to_string(importance_type="split"))
    kept = [number for number, tree in enumerate(trees) if tree["leaf_value"].split() != ["0"]]
    return Forest(
        *_nodes([trees[number] for number in kept]), np.array(kept, dtype=np.int64) % n_columns, n_features, n_columns
    )


def _trees(text: str) -> list[dict[str, str]]:
    """Return the lines of each tree in the text of a model, by their names."""
    blocks = text.split("\nTree=")[1:]
    return [dict(line.split("=", 1) for line in block.split("\n\n", 1)[0].split("\n")[1:]) for block in blocks]


def _nodes(trees: Sequence[dict[str, str]]) -> tuple[AnyArray, FloatArray, AnyArray, FloatArray, IntArray]:
    """Return features, thresholds, left children and values of all nodes, and the root of each tree.

    Nodes are in the order of trees, and level by level in each, so that the two children of a node are neighbours.
    """
    value = _numbers([tree["leaf_value"] for tree in trees], np.float64)
    feature, threshold, left, right = (
        _numbers([tree.get(name, "") for tree in trees], of) for name, of in LISTS.items()
    )
    leaves = np.array([int(tree["num_leaves"]) for tree in trees], dtype=np.int64)
    inner = len(feature)
    first_inner, first_leaf = (np.cumsum(sizes) - sizes for sizes in (leaves - 1, leaves))
    # Inner nodes of all trees are numbered first, then all leaves; of a tree, leaf number j is written as -1 - j.
    own = np.repeat(np.arange(len(trees)), leaves - 1)
    children = np.stack([_global(side, own, first_inner, inner + first_leaf) for side in (left, right)], axis=1)
    level = np.where(leaves > 1, first_inner, inner + first_leaf)
    tree = np.arange(len(trees))
    levels, owners = [level], [tree]
    while np.any(splits := level < inner):
        level, tree = children[level[splits]].ravel(), np.repeat(tree[splits], 2)
        levels.append(level)
        owners.append(tree)
    order = np.concatenate(levels)[np.argsort(np.concatenate(owners), kind="stable")]
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    nothing = np.zeros(len(value), dtype=np.int64)
    return (
        np.concatenate([feature, nothing])[order],
        np.concatenate([threshold, np.full(len(value), np.inf)])[order],
        np.concatenate([place[children[:, 0]], place[inner:]])[order],
        np.concatenate([np.zeros(inner), value])[order],
        np.cumsum(2 * leaves - 1) - (2 * leaves - 1),
    )


def _numbers(lines: Sequence[str], kind: type) -> AnyArray:
    return np.array(" ".join(lines).split(), dtype=kind)


def _global(side: IntArray, own: IntArray, first_inner: IntArray, first_leaf: IntArray) -> IntArray:
    """Return the numbers of children among the nodes of all trees."""
    return np.where(side >= 0, first_inner[own] + side, first_leaf[own] - 1 - side)
