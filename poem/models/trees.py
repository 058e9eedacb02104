"""Trees that a library has grown, as arrays."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from poem.compute import Forest

Node = dict[str, Any]


def forest_of(booster: Any, n_features: int, n_columns: int) -> Forest:
    """Return the trees of a LightGBM booster, if there is one.

    The tree of round r and column c is number r·columns + c. Trees that are one leaf of value 0 are left out.
    """
    trees = [] if booster is None else [info["tree_structure"] for info in booster.dump_model()["tree_info"]]
    parts = [(number % n_columns, list(_nodes(tree))) for number, tree in enumerate(trees)]
    kept = [(column, nodes) for column, nodes in parts if len(nodes) > 1 or nodes[0][3] != 0.0]
    root = np.cumsum([0, *(len(nodes) for _, nodes in kept)])[:-1]
    flat = [
        (feature, threshold, first + left, value)
        for first, (_, nodes) in zip(root.tolist(), kept, strict=True)
        for feature, threshold, left, value in nodes
    ]
    feature, threshold, left, value = map(np.array, zip(*flat, strict=True)) if flat else np.empty((4, 0))
    columns = np.array([column for column, _ in kept], dtype=np.int32)
    return Forest(feature, threshold, left, value, root, columns, n_features, n_columns)


def _nodes(tree: Node) -> Iterator[tuple[int, float, int, float]]:
    """Yield (feature, threshold, left child, value) of each node, level by level; children are neighbours."""
    level, known = [tree], 1
    place = 0
    while level:
        below: list[Node] = []
        for node in level:
            if "leaf_value" in node:
                yield 0, np.inf, place, float(node["leaf_value"])
            else:
                yield int(node["split_feature"]), float(node["threshold"]), known, 0.0
                below += [node["left_child"], node["right_child"]]
                known += 2
            place += 1
        level = below
