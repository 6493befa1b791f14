"""Multiclass calibrators as nodes of an ONNX graph: a matrix with one column per class in and out."""

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto

from calibrant._support.columns import CLIP_TOLERANCE
from calibrant._support.errors import InputError
from calibrant.calibrators import class_maps
from calibrant.calibrators.multiclass import ProbabilityMap
from calibrant.export.onnx_graph import Graph, score_node

__all__ = ["class_node"]


def class_node(calibrator: ProbabilityMap, x: str, graph: Graph) -> str:
    """Return the node of the calibrated probabilities; NaN in rows that the calibrator refuses."""
    map_, n_classes = calibrator.map_, len(calibrator.classes_)
    if map_.kind not in _NODES:
        raise InputError(
            f"calibrator must have a closed form for ONNX; {type(calibrator).__name__} has none.",
            hint="Use OneVsRest or Dirichlet, or apply it in Python.",
            argument="calibrator",
        )
    probabilities = map_.domain == "probability"
    inside = graph.node("Cast", graph.taken(x, probabilities), to=TensorProto.DOUBLE)
    taken = graph.node("Greater", graph.node("ReduceMin", inside, axes=[-1], keepdims=1), graph.number(0.5))
    if probabilities:
        x = graph.between(x, 0.0, 1.0)
        off = graph.node("Abs", graph.node("Sub", _sum(x, graph), graph.number(1.0)))
        near = graph.node("LessOrEqual", off, graph.number(CLIP_TOLERANCE * n_classes))
        taken = graph.node("And", taken, near)
    value = _NODES[map_.kind](map_, x, n_classes, graph)
    return graph.node("Where", taken, value, graph.number(np.nan))


def _sum(x: str, graph: Graph) -> str:
    return graph.node("ReduceSum", x, graph.constant(np.array([-1])), keepdims=1)


def _softmax(map_: class_maps.Softmax, x: str, n_classes: int, graph: Graph) -> str:
    z = graph.node("Log", graph.between(x, map_.eps, 1.0))
    weights = graph.constant(map_.weights.T if map_.weights.ndim == 2 else map_.weights)
    moved = graph.node("MatMul" if map_.weights.ndim == 2 else "Mul", z, weights)
    return graph.node("Softmax", graph.node("Add", moved, graph.constant(map_.biases)), axis=-1)


def _normalised(map_: class_maps.Normalised, x: str, n_classes: int, graph: Graph) -> str:
    columns = [graph.node("Gather", x, graph.constant(np.array([j])), axis=-1) for j in range(n_classes)]
    each = [score_node(one, column, graph) for one, column in zip(map_.per_class, columns, strict=True)]
    raw = graph.node("Concat", *each, axis=-1)
    total = _sum(raw, graph)
    some = graph.node("Greater", total, graph.number(0.0))
    return graph.node("Where", some, graph.node("Div", raw, total), graph.number(1 / n_classes))


def _top_label(map_: class_maps.TopLabel, x: str, n_classes: int, graph: Graph) -> str:
    place = graph.node("ArgMax", x, axis=-1, keepdims=1)
    is_top = graph.node("Equal", graph.constant(np.arange(n_classes)), place)
    calibrated = score_node(map_.confidence, graph.node("ReduceMax", x, axes=[-1], keepdims=1), graph)
    left = graph.node("Sub", graph.number(1.0), calibrated)
    others = graph.node("Where", is_top, graph.number(0.0), x)
    rest = _sum(others, graph)
    scaled = graph.node("Mul", others, graph.node("Div", left, rest))
    equal = graph.node("Div", left, graph.number(n_classes - 1.0))
    shared = graph.node("Where", graph.node("Greater", rest, graph.number(0.0)), scaled, equal)
    return graph.node("Where", is_top, calibrated, shared)


_NODES: dict[str, Callable[[Any, str, int, Graph], str]] = {
    "softmax": _softmax,
    "normalised": _normalised,
    "top_label": _top_label,
}
