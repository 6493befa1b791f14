"""Calibrators as ONNX models."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibrant._support.columns import CLIP_TOLERANCE, LARGEST_SCORE
from calibrant._support.errors import InputError
from calibrant._support.typing import Floats
from calibrant.calibrators import maps
from calibrant.calibrators.multiclass import ProbabilityMap
from calibrant.calibrators.score_map import ScoreMap
from calibrant.versions import __version__

try:
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ModuleNotFoundError as error:
    raise ModuleNotFoundError('to_onnx needs onnx: pip install "calibrant[onnx]".', name="onnx") from error

__all__ = ["Graph", "score_node", "to_onnx"]

_OPSET = 17
_IR_VERSION = 8


def to_onnx(
    calibrator: ScoreMap | ProbabilityMap,
    *,
    dtype: Literal["float32", "float64"] = "float32",
    shape: Sequence[int | str | None] | None = None,
) -> Any:
    """Return an ONNX model of a fitted calibrator: ``score`` in, ``probability`` out.

    Parameters
    ----------
    calibrator : fitted binary or multiclass calibrator
        A multiclass one takes and gives matrices with one column per class, in the order of `classes_`.
    dtype : {"float32", "float64"}
        Type of input and output. Inside, all is computed in float64, so a float32 score gets the probability that
        Python gives the same float32 score, rounded.
    shape : sequence, optional
        Shape to declare for both, for example ``("rows", 1)``. By default none is declared, and any shape works at run
        time, but ONNX's own checker and ``onnx.compose.merge_models`` want one.

    Returns
    -------
    onnx.ModelProto
        ``onnx.save(model, path)`` writes it; ``onnx.compose.merge_models`` puts it behind another model.

    Notes
    -----
    Operators of the standard set, version 17. NaN for rows that the calibrator itself refuses: NaN, scores outside
    [0, 1] by more than 1e-6 if it needs probabilities, and then class probabilities whose sum differs from 1 by more
    than 1e-6 per class. Steps are searched by halving. `PairwiseCoupling` has no closed form and no ONNX model.
    """
    if not isinstance(calibrator, (ScoreMap, ProbabilityMap)):
        raise InputError(
            f"calibrator must be a binary or multiclass calibrator; got {type(calibrator).__name__}.",
            hint="Of a CalibratedModel pass its calibrator_, or with an ensemble its calibrators_ one by one.",
            argument="calibrator",
        )
    if dtype not in ("float32", "float64"):
        raise InputError(f"dtype must be 'float32' or 'float64'; it is {dtype!r}.", argument="dtype", value=dtype)
    check_is_fitted(calibrator)
    graph = Graph()
    x = graph.node("Cast", "score", to=TensorProto.DOUBLE)
    default: tuple[int | str, ...] = ("rows",)
    if isinstance(calibrator, ProbabilityMap):
        from calibrant.export.class_onnx import class_node

        value, default = class_node(calibrator, x, graph), ("rows", len(calibrator.classes_))
    else:
        map_ = calibrator.map_
        value = graph.node(
            "Where", graph.taken(x, map_.probabilities), score_node(map_, x, graph), graph.number(np.nan)
        )
    outside = TensorProto.FLOAT if dtype == "float32" else TensorProto.DOUBLE
    graph.node("Cast", value, to=outside, named="probability")
    name = f"calibrant_{type(calibrator).__name__}"
    # Checked with a shape in any case: all else must be right.
    checked = _model(graph, name, outside, shape or default)
    onnx.checker.check_model(checked)
    return checked if shape else _model(graph, name, outside, None)


def score_node(map_: maps.Map, x: str, graph: "Graph") -> str:
    """Return the node of a map of the scores `x`."""
    node: str = _BUILDERS[map_.kind](map_, x, graph)
    return node


def _model(graph: "Graph", name: str, type_: int, shape: Sequence[int | str | None] | None) -> Any:
    proto = helper.make_graph(
        graph.nodes,
        name,
        [helper.make_tensor_value_info("score", type_, shape)],
        [helper.make_tensor_value_info("probability", type_, shape)],
        graph.constants,
    )
    return helper.make_model(
        proto,
        producer_name="calibrant",
        producer_version=__version__,
        opset_imports=[helper.make_opsetid("", _OPSET)],
        ir_version=_IR_VERSION,
    )


class Graph:
    """Nodes and constants, named as they come."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def node(self, kind: str, *inputs: str, named: str | None = None, **attributes: Any) -> str:
        name = named or f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def constant(self, values: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def number(self, value: float) -> str:
        return self.constant(np.float64(value))

    def taken(self, x: str, probabilities: bool) -> str:
        """Return which scores a calibrator takes: those of [0, 1], or all finite ones."""
        low, high = (-CLIP_TOLERANCE, 1 + CLIP_TOLERANCE) if probabilities else (-LARGEST_SCORE, LARGEST_SCORE)
        above = self.node("GreaterOrEqual", x, self.number(low))
        return self.node("And", above, self.node("LessOrEqual", x, self.number(high)))

    def between(self, x: str, low: float, high: float) -> str:
        return self.node("Clip", x, self.number(low), self.number(high))

    def sigmoid(self, *terms: str) -> str:
        total = terms[0]
        for term in terms[1:]:
            total = self.node("Add", total, term)
        raised = self.node("Exp", self.node("Neg", self.between(total, -700.0, 700.0)))
        return self.node("Div", self.number(1.0), self.node("Add", self.number(1.0), raised))

    def times(self, factor: float, x: str) -> str:
        return self.node("Mul", self.number(factor), x)

    def locate(self, edges: Floats, x: str) -> tuple[str, int]:
        """How many edges do not exceed the score, by halving; and the greatest number that can come of it."""
        most = 1
        while most <= edges.size:
            most *= 2
        padded = np.concatenate([edges, np.full(most - 1 - edges.size, np.inf)])
        all_edges = self.constant(padded)
        place = self.node("Cast", self.node("Greater", x, self.number(np.inf)), to=TensorProto.INT64)  # 0 of its shape
        step = most // 2
        while step:
            further = self.node("Add", place, self.constant(np.int64(step)))
            edge = self.node("Gather", all_edges, self.node("Sub", further, self.constant(np.int64(1))))
            place = self.node("Where", self.node("GreaterOrEqual", x, edge), further, place)
            step //= 2
        return place, most - 1

    def look_up(self, values: Floats, place: str, most: int) -> str:
        """The value at each place; places that only scores out of range reach repeat the last."""
        padded = np.concatenate([values, np.full(most + 1 - values.size, values[-1])])
        return self.node("Gather", self.constant(padded), place)


def _steps(map_: maps.Steps, x: str, graph: Graph) -> str:
    return graph.look_up(map_.values, *graph.locate(map_.edges, x))


def _segments(map_: maps.Segments, x: str, graph: Graph) -> str:
    place, most = graph.locate(map_.x, x)
    # Place j lies right of the point j - 1: before the first and after the last the line is level.
    points, values = map_.x, map_.y
    begin = graph.look_up(np.concatenate([points[:1], points]), place, most)
    width = graph.look_up(np.concatenate([[1.0], np.diff(points), [1.0]]), place, most)
    start = graph.look_up(np.concatenate([values[:1], values]), place, most)
    rise = graph.look_up(np.concatenate([[0.0], np.diff(values), [0.0]]), place, most)
    along = graph.node("Div", graph.node("Sub", x, begin), width)
    return graph.node("Add", start, graph.node("Mul", along, rise))


def _logistic(map_: maps.Logistic, x: str, graph: Graph) -> str:
    if map_.probabilities:
        high, low = _logs(x, map_.eps, graph)
        x = graph.node("Sub", high, low)
    return graph.sigmoid(graph.times(map_.slope, x), graph.number(map_.intercept))


def _beta(map_: maps.Beta, x: str, graph: Graph) -> str:
    high, low = _logs(x, map_.eps, graph)
    return graph.sigmoid(graph.times(map_.a, high), graph.times(-map_.b, low), graph.number(map_.c))


def _logs(x: str, eps: float, graph: Graph) -> tuple[str, str]:
    inside = graph.between(x, eps, 1 - eps)
    return graph.node("Log", inside), graph.node("Log", graph.node("Sub", graph.number(1.0), inside))


def _odds(map_: maps.Odds, x: str, graph: Graph) -> str:
    inside = graph.between(x, 0.0, 1.0)
    raised = graph.times(map_.ratio, inside)
    rest = graph.node("Sub", graph.number(1.0), inside)
    return graph.node("Div", raised, graph.node("Add", raised, rest))


_BUILDERS: dict[str, Any] = {
    "steps": _steps,
    "segments": _segments,
    "logistic": _logistic,
    "beta": _beta,
    "odds": _odds,
}
