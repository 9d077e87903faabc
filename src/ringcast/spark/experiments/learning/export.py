"""Models of pyspark.ml as plain lists and numbers, in the form that `ringcast.adapt.model` reads."""

from __future__ import annotations

from typing import Any


def tree(model: Any) -> dict[str, Any]:
    return {"trees": [_nodes(model)]}


def forest(model: Any) -> dict[str, Any]:
    return {"trees": [_nodes(one) for one in model.trees]}


def linear(model: Any) -> dict[str, Any]:
    """A row of weights and a constant for each label; the highest sum wins."""
    weights = model.coefficientMatrix.toArray().tolist()
    constants = model.interceptVector.toArray().tolist()
    if len(weights) == 1:  # two labels: Spark keeps the second one's row only
        weights, constants = [[0.0] * len(weights[0]), weights[0]], [0.0, constants[0]]
    return {"weights": weights, "constants": constants}


def _nodes(model: Any) -> list[list[Any]]:
    """Inner nodes as [feature, threshold, left, right], leaves as [shares of the labels]; the root is the first."""
    nodes: list[list[Any]] = []

    def add(node: Any) -> int:
        at = len(nodes)
        nodes.append([])
        if node.getClass().getSimpleName() == "LeafNode":
            counts = [float(x) for x in node.impurityStats().stats()]
            total = sum(counts) or 1.0
            nodes[at] = [[round(count / total, 4) for count in counts]]
        else:
            split = node.split()
            left, right = add(node.leftChild()), add(node.rightChild())
            nodes[at] = [int(split.featureIndex()), float(split.threshold()), left, right]
        return at

    add(model._call_java("rootNode"))
    return nodes
