"""Calibrators as ONNX models."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibrant._support.arrays import Floats
from calibrant._support.columns import CLIP_TOLERANCE, LARGEST_SCORE
from calibrant._support.errors import Argument, InputError, MissingExtraError, check_option, known_keywords
from calibrant.calibrators import maps
from calibrant.export.sql import NO_MODELS
from calibrant.versions import __version__

try:
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ModuleNotFoundError as error:
    raise MissingExtraError("to_onnx needs onnx", "onnx", name="onnx") from error

__all__ = ["Graph", "score_node", "to_onnx"]

_OPSET = 17
_IR_VERSION = 8


@known_keywords
def to_onnx(
    calibrator: Any,
    *,
    dtype: Literal["float32", "float64"] = "float32",
    shape: Sequence[int | str | None] | None = None,
    level: float | None = None,
    levels: Sequence[float] | None = None,
) -> Any:
    """Return an ONNX model of a fitted calibrator.

    Parameters
    ----------
    calibrator : fitted binary or multiclass calibrator, or recalibrator of point predictions or distributions
        A calibrator maps ``score`` to ``probability``, for several classes as matrices with one column per class, in
        the order of `classes_`. A recalibrator of point predictions maps ``prediction`` to ``recalibrated``, one of
        distributions ``mean`` and ``sd`` (or ``quantiles``) to ``quantile``.
    dtype : {"float32", "float64"}
        Type of input and output. Inside, all is computed in float64, so a float32 score gets the value that Python
        gives the same float32 score, rounded.
    shape : sequence, optional
        Shape to declare for input and output, for example ``("rows", 1)``. By default none is declared and any is
        accepted at run time; ONNX's checker and ``onnx.compose.merge_models`` need one. Not for distributions.
    level : float, optional
        For predictive distributions: the level of the recalibrated quantile that the model returns.
    levels : sequence of float, optional
        For predictive distributions: the levels of the columns of ``quantiles``. By default forecasts are normal.

    Returns
    -------
    onnx.ModelProto
        ``onnx.save(model, path)`` writes it; ``onnx.compose.merge_models`` appends it to another model.

    Raises
    ------
    InputError
        If the calibrator has no closed form: `PairwiseCoupling`, models on features, and maps of normal scores
        (`PITRecalibrator`, `ParetoRecalibrator`) for quantile forecasts.

    See Also
    --------
    to_sql, save

    Notes
    -----
    Operators of the standard set, version 17. The output is NaN where Python raises an error: for NaN, for scores
    outside [0, 1] by more than 1e-6 if the calibrator was fitted on probabilities, for class probabilities whose sum
    differs from 1 by more than 1e-6 per class, for standard deviations that are not positive, and for quantiles that
    cross.

    Examples
    --------
    >>> from calibrant import Platt
    >>> model = to_onnx(Platt().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]))
    >>> [each.name for each in model.graph.input], [each.name for each in model.graph.output]
    (['score'], ['probability'])
    """
    check_option("dtype", dtype, ("float32", "float64"))
    if shape is not None and (isinstance(shape, (str, bytes)) or not isinstance(shape, Sequence)):
        raise InputError(Argument("shape") + f" must be a sequence of sizes and names; got {shape!r}.", value=shape)
    kind = getattr(calibrator, "kind", None)
    type_ = TensorProto.FLOAT if dtype == "float32" else TensorProto.DOUBLE
    if kind == "distribution":
        from calibrant.export.forecast_onnx import quantile_node

        check_is_fitted(calibrator)
        graph = Graph()
        inputs = quantile_node(calibrator, level, levels, graph, type_)
        model = _model(graph, _title(calibrator), inputs, {"quantile": ("rows",)}, type_)
        onnx.checker.check_model(model)
        return model
    if kind not in _NAMES:
        raise InputError(
            Argument("calibrator")
            + f" must be a calibrator or a recalibrator to become ONNX; got {type(calibrator).__name__}, which has no "
            "closed form.",
            hint=NO_MODELS,
        )
    if level is not None or levels is not None:
        raise InputError(
            Argument("level" if level is not None else "levels")
            + f" must not be given for {type(calibrator).__name__}; it is for predictive distributions."
        )
    check_is_fitted(calibrator)
    return _column_model(calibrator, *_NAMES[kind], type_, shape)


_NAMES = {
    "binary": ("score", "probability"),
    "multiclass": ("score", "probability"),
    "point": ("prediction", "recalibrated"),
}


def _column_model(calibrator: Any, name: str, result: str, type_: int, shape: Any) -> Any:
    graph, map_ = Graph(), calibrator.map_
    x = graph.node("Cast", name, to=TensorProto.DOUBLE)
    default: tuple[int | str, ...] = ("rows",)
    if calibrator.kind == "multiclass":
        from calibrant.export.class_onnx import class_node

        value, default = class_node(calibrator, x, graph), ("rows", len(calibrator.classes_))
    else:
        taken = graph.taken(x, map_.domain == "probability")
        value = graph.node("Where", taken, score_node(map_, x, graph), graph.number(np.nan))
    graph.node("Cast", value, to=type_, named=result)
    title = _title(calibrator)
    # Checked with a shape in any case: all else must be right.
    checked = _model(graph, title, {name: shape or default}, {result: shape or default}, type_)
    onnx.checker.check_model(checked)
    return checked if shape else _model(graph, title, {name: None}, {result: None}, type_)


def score_node(map_: maps.Map, x: str, graph: "Graph") -> str:
    """Return the node of a map of the numbers `x`."""
    return _BUILDERS[map_.kind](map_, x, graph)


def _title(calibrator: Any) -> str:
    return f"calibrant_{type(calibrator).__name__}"


def _model(graph: "Graph", title: str, inputs: dict[str, Any], outputs: dict[str, Any], type_: int) -> Any:
    first, last = (
        [helper.make_tensor_value_info(name, type_, shape) for name, shape in each.items()]
        for each in (inputs, outputs)
    )
    return helper.make_model(
        helper.make_graph(graph.nodes, title, first, last, graph.constants),
        producer_name="calibrant",
        producer_version=__version__,
        opset_imports=[helper.make_opsetid("", _OPSET)],
        ir_version=_IR_VERSION,
    )


class Graph:
    """Nodes and constants, named by their numbers."""

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

    def between(self, x: str, low: float, high: float) -> str:
        return self.node("Clip", x, self.number(low), self.number(high))

    def within(self, x: str, low: float, high: float) -> str:
        """Return whether low <= x <= high; false for NaN."""
        above = self.node("GreaterOrEqual", x, self.number(low))
        return self.node("And", above, self.node("LessOrEqual", x, self.number(high)))

    def taken(self, x: str, probabilities: bool) -> str:
        """Return which numbers Python takes: those of [0, 1], or all finite ones."""
        low, high = (-CLIP_TOLERANCE, 1 + CLIP_TOLERANCE) if probabilities else (-LARGEST_SCORE, LARGEST_SCORE)
        return self.within(x, low, high)

    def sigmoid(self, *terms: str) -> str:
        total = terms[0]
        for term in terms[1:]:
            total = self.node("Add", total, term)
        raised = self.node("Exp", self.node("Neg", self.between(total, -700.0, 700.0)))
        return self.node("Div", self.number(1.0), self.node("Add", self.number(1.0), raised))

    def times(self, factor: float, x: str) -> str:
        return self.node("Mul", self.number(factor), x)

    def locate(self, edges: Floats, x: str) -> tuple[str, int]:
        """Return the number of edges that do not exceed the score, by bisection; and the greatest possible number."""
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
        """Return the value at each place; places beyond the last value repeat it."""
        padded = np.concatenate([values, np.full(most + 1 - values.size, values[-1])])
        return self.node("Gather", self.constant(padded), place)


def _steps(map_: maps.Steps, x: str, graph: Graph) -> str:
    return graph.look_up(map_.values, *graph.locate(map_.edges, x))


def _segments(map_: maps.Segments, x: str, graph: Graph) -> str:
    # Place j lies right of the point j - 1. Segments of distributions, which go on as lines, are exported as quantiles.
    place, most = graph.locate(map_.x, x)
    points, values = map_.x, map_.y
    along = _along(points, place, most, x, graph)
    start = graph.look_up(np.concatenate([values[:1], values]), place, most)
    rise = graph.look_up(np.concatenate([[0.0], np.diff(values), [0.0]]), place, most)
    return graph.node("Add", start, graph.node("Mul", along, rise))


def _along(points: Floats, place: str, most: int, x: str, graph: Graph) -> str:
    """Return the place of x in its piece, 0 at its beginning and 1 at its end, or the distance to the nearest point."""
    begin = graph.look_up(np.concatenate([points[:1], points]), place, most)
    width = graph.look_up(np.concatenate([[1.0], np.diff(points), [1.0]]), place, most)
    return graph.node("Div", graph.node("Sub", x, begin), width)


def _logistic(map_: maps.Logistic, x: str, graph: Graph) -> str:
    if map_.on == "logit":
        high, low = _logs(x, map_.eps, graph)
        x = graph.node("Sub", high, low)
    elif map_.domain == "probability":
        x = graph.between(x, 0.0, 1.0)
    return graph.sigmoid(graph.times(map_.slope, x), graph.number(map_.intercept))


def _beta(map_: maps.BetaMap, x: str, graph: Graph) -> str:
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


def _linear(map_: maps.Linear, x: str, graph: Graph) -> str:
    return graph.node("Add", graph.number(map_.intercept), graph.times(map_.slope, x))


def _shifts(map_: maps.Shifts, x: str, graph: Graph) -> str:
    return graph.node("Add", x, graph.look_up(map_.shifts, *graph.locate(map_.edges, x)))


def _cubic(map_: maps.Cubic, x: str, graph: Graph) -> str:
    place, most = graph.locate(map_.x, x)
    t = _along(map_.x, place, most, x, graph)
    # Beyond the ends t is the distance, and the slope that of the tangent.
    ends = np.array([[map_.y[0], map_.slope[0], 0.0, 0.0], [map_.y[-1], map_.slope[-1], 0.0, 0.0]])
    table = np.vstack([ends[:1], map_.coefficients, ends[1:]])
    c0, c1, c2, c3 = (graph.look_up(column, place, most) for column in table.T)
    value = graph.node("Add", c2, graph.node("Mul", t, c3))
    value = graph.node("Add", c1, graph.node("Mul", t, value))
    return graph.node("Add", c0, graph.node("Mul", t, value))


_BUILDERS: dict[str, Callable[[Any, str, Graph], str]] = {
    "steps": _steps,
    "segments": _segments,
    "logistic": _logistic,
    "beta": _beta,
    "odds": _odds,
    "linear": _linear,
    "shifts": _shifts,
    "cubic": _cubic,
}
