"""Calibrators as ONNX models."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibrant._support.arrays import Floats
from calibrant._support.columns import CLIP_TOLERANCE, LARGEST_SCORE
from calibrant._support.errors import Argument, InputError, MissingExtraError, check_option
from calibrant.calibrators import maps
from calibrant.calibrators.distribution import NORMAL, quantile_forms
from calibrant.export.sql import no_closed_form, not_exported
from calibrant.versions import __version__

try:
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ModuleNotFoundError as error:
    raise MissingExtraError("to_onnx needs onnx", "onnx", name="onnx") from error

_OPSET = 17
_IR_VERSION = 8


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
    takes = getattr(calibrator, "takes", None)
    type_ = TensorProto.FLOAT if dtype == "float32" else TensorProto.DOUBLE
    if takes == "distributions":
        check_is_fitted(calibrator)
        graph = _Graph()
        inputs = _quantile(calibrator, level, levels, graph, type_)
        model = _model(graph, calibrator, inputs, {"quantile": ("rows",)}, type_)
        onnx.checker.check_model(model)
        return model
    if takes not in _VALUES:
        raise not_exported(calibrator, "ONNX")
    if level is not None or levels is not None:
        raise InputError(
            Argument("level" if level is not None else "levels")
            + f" must not be given for {type(calibrator).__name__}; it is for predictive distributions."
        )
    check_is_fitted(calibrator)
    graph, (name, result) = _Graph(), calibrator.column_names
    x = graph.node("Cast", name, to=TensorProto.DOUBLE)
    value, default = _VALUES[takes](calibrator, x, graph)
    graph.node("Cast", value, to=type_, named=result)
    # Checked with a shape in any case: all else must be right.
    checked = _model(graph, calibrator, {name: shape or default}, {result: shape or default}, type_)
    onnx.checker.check_model(checked)
    return checked if shape else _model(graph, calibrator, {name: None}, {result: None}, type_)


def _of_column(calibrator: Any, x: str, graph: "_Graph") -> tuple[str, tuple[int | str, ...]]:
    """Return the node of the calibrated values of one column, and their shape."""
    taken = graph.taken(x, calibrator.map_.domain == "probability")
    value = calibrator.map_.formula(_Number(x, graph)).node
    return graph.node("Where", taken, value, graph.number(np.nan)), ("rows",)


def _of_classes(calibrator: Any, x: str, graph: "_Graph") -> tuple[str, tuple[int | str, ...]]:
    """Return the node of calibrated class probabilities, NaN in rows that the calibrator refuses, and their shape."""
    map_, n_classes = calibrator.map_, len(calibrator.classes_)
    probabilities = map_.domain == "probability"
    inside = graph.node("Cast", graph.taken(x, probabilities), to=TensorProto.DOUBLE)
    taken = graph.node("Greater", graph.node("ReduceMin", inside, axes=[-1], keepdims=1), graph.number(0.5))
    if probabilities:
        x = graph.clip(x, 0.0, 1.0)
        off = graph.node("Abs", graph.node("Sub", graph.row_sum(x), graph.number(1.0)))
        near = graph.node("LessOrEqual", off, graph.number(CLIP_TOLERANCE * n_classes))
        taken = graph.node("And", taken, near)
    value = map_.formula(_Columns(x, n_classes, graph))
    if value is None:
        raise no_closed_form(calibrator, "ONNX")
    return graph.node("Where", taken, value, graph.number(np.nan)), ("rows", n_classes)


# By what a calibrator takes.
_VALUES: dict[Any, Callable[[Any, str, "_Graph"], tuple[str, tuple[int | str, ...]]]] = {
    "column": _of_column,
    "classes": _of_classes,
}


def _quantile(
    calibrator: Any, level: float | None, levels: Sequence[float] | None, graph: "_Graph", type_: int
) -> dict[str, Any]:
    """Add the node ``quantile``, NaN where the forecast is not valid; return the inputs with their shapes."""
    forms = quantile_forms(calibrator, NORMAL if levels is None else levels, level)
    if levels is not None and list(forms.inputs) != list(levels):
        raise InputError(Argument("levels") + f" must rise; got {list(levels)!r}.", value=levels)
    if forms.of_normal:
        inputs: dict[str, Any] = dict.fromkeys(NORMAL, ("rows",))
        as_column = graph.constant(np.array([-1, 1]))
        doubles = [graph.node("Cast", name, to=TensorProto.DOUBLE) for name in NORMAL]
        columns = [graph.node("Reshape", double, as_column) for double in doubles]
        table = graph.node("Concat", *columns, axis=1)
        valid = graph.within(columns[1], float(np.nextafter(0.0, 1.0)), LARGEST_SCORE)
    else:
        n_columns = len(forms.inputs)
        inputs = {"quantiles": ("rows", n_columns)}
        table = graph.node("Cast", "quantiles", to=TensorProto.DOUBLE)
        right = graph.node("Gather", table, graph.constant(np.arange(1, n_columns)), axis=1)
        left = graph.node("Gather", table, graph.constant(np.arange(n_columns - 1)), axis=1)
        valid = graph.all_true(graph.node("GreaterOrEqual", right, left))
    valid = graph.node("And", valid, graph.all_true(graph.taken(table, False)))
    sums = graph.node("MatMul", table, graph.constant(forms.weights))
    ordered = graph.sorted(graph.node("Add", sums, graph.constant(forms.shifts)), forms.shifts.size)
    value = graph.node("Gather", ordered, graph.constant(np.array([forms.place])), axis=1)
    value = graph.node("Where", valid, value, graph.number(np.nan))
    graph.node("Cast", graph.node("Reshape", value, graph.constant(np.array([-1]))), to=type_, named="quantile")
    return inputs


def _model(graph: "_Graph", calibrator: Any, inputs: dict[str, Any], outputs: dict[str, Any], type_: int) -> Any:
    first, last = (
        [helper.make_tensor_value_info(name, type_, shape) for name, shape in shapes.items()]
        for shapes in (inputs, outputs)
    )
    title = f"calibrant_{type(calibrator).__name__}"
    return helper.make_model(
        helper.make_graph(graph.nodes, title, first, last, graph.constants),
        producer_name="calibrant",
        producer_version=__version__,
        opset_imports=[helper.make_opsetid("", _OPSET)],
        ir_version=_IR_VERSION,
    )


class _Graph:
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

    def clip(self, x: str, low: float, high: float) -> str:
        return self.node("Clip", x, self.number(low), self.number(high))

    def within(self, x: str, low: float, high: float) -> str:
        """Return whether low <= x <= high; false for NaN."""
        above = self.node("GreaterOrEqual", x, self.number(low))
        return self.node("And", above, self.node("LessOrEqual", x, self.number(high)))

    def taken(self, x: str, probabilities: bool) -> str:
        """Return which numbers Python takes: those of [0, 1], or all finite ones."""
        low, high = (-CLIP_TOLERANCE, 1 + CLIP_TOLERANCE) if probabilities else (-LARGEST_SCORE, LARGEST_SCORE)
        return self.within(x, low, high)

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

    def row_sum(self, x: str) -> str:
        return self.node("ReduceSum", x, self.constant(np.array([-1])), keepdims=1)

    def all_true(self, table: str) -> str:
        """Return for each row whether all its cells are true, as one column."""
        false = self.node("Cast", self.node("Not", table), to=TensorProto.DOUBLE)
        return self.node("Equal", self.row_sum(false), self.number(0.0))

    def sorted(self, table: str, n_columns: int) -> str:
        """Return the table with the cells of each row in rising order."""
        names = [f"v{len(self.nodes)}", f"v{len(self.nodes)}_index"]
        count = self.constant(np.array([n_columns]))
        self.nodes.append(helper.make_node("TopK", [table, count], names, axis=1, largest=0, sorted=1))
        return names[0]


@dataclass(frozen=True)
class _Number(maps.Expression):
    """The node of a number."""

    node: str
    graph: _Graph

    def join(self, sign: str, left: Any, right: Any) -> "_Number":
        operator = {"+": "Add", "-": "Sub", "*": "Mul", "/": "Div"}[sign]
        return _Number(self.graph.node(operator, self._operand(left), self._operand(right)), self.graph)

    def _operand(self, value: Any) -> str:
        return value.node if isinstance(value, _Number) else self.graph.number(value)

    def log(self) -> "_Number":
        return _Number(self.graph.node("Log", self.node), self.graph)

    def sigmoid(self) -> "_Number":
        raised = self.graph.node("Exp", self.graph.node("Neg", self.clip(-700.0, 700.0).node))
        return self.join("/", 1.0, 1.0 + _Number(raised, self.graph))

    def clip(self, low: float, high: float) -> "_Number":
        return _Number(self.graph.clip(self.node, low, high), self.graph)

    def look_up(self, edges: Floats, values: Floats) -> "_Number":
        return _Number(self.graph.look_up(values, *self.graph.locate(edges, self.node)), self.graph)

    def pieces(self, edges: Floats, columns: Sequence[Floats], piece: Callable[..., Any], ends: Any) -> "_Number":
        graph, (value, last) = self.graph, map(self._operand, ends)
        if edges.size > 1:
            place, most = graph.locate(edges[1:-1], self.node)
            row = (_Number(graph.look_up(column, place, most), graph) for column in columns)
            above = graph.node("GreaterOrEqual", self.node, graph.number(edges[0]))
            value = graph.node("Where", above, piece(*row).node, value)
        above = graph.node("GreaterOrEqual", self.node, graph.number(edges[-1]))
        return _Number(graph.node("Where", above, last, value), graph)


@dataclass(frozen=True)
class _Columns:
    """The node of class probabilities, one column per class, whose methods `class_maps` calls."""

    x: str
    n_classes: int
    graph: _Graph

    def softmax(self, weights: Floats, biases: Floats, eps: float) -> str:
        return self._softmax_of(self.graph.node("Log", self.graph.clip(self.x, eps, 1.0)), weights, biases)

    def _softmax_of(self, z: str, weights: Floats, biases: Floats) -> str:
        graph, full = self.graph, weights.ndim == 2
        moved = graph.node("MatMul" if full else "Mul", z, graph.constant(weights.T if full else weights))
        return graph.node("Softmax", graph.node("Add", moved, graph.constant(biases)), axis=-1)

    def structured(self, map_: Any) -> str:
        graph = self.graph

        def mix(node: str) -> str:
            kept = graph.node("Mul", node, graph.number(1 - map_.share))
            return graph.node("Add", kept, graph.number(map_.share / self.n_classes))

        is_proba = map_.domain == "probability"
        logs = graph.node("Log", graph.clip(self.x, map_.eps, 1.0)) if is_proba else self.x
        scaled = graph.node("Softmax", graph.node("Mul", logs, graph.number(map_.slope)), axis=-1)
        return mix(self._softmax_of(graph.node("Log", mix(scaled)), map_.weights, map_.biases))

    def normalised(self, per_class: Sequence[Any]) -> str:
        graph = self.graph
        columns = [graph.node("Gather", self.x, graph.constant(np.array([j])), axis=-1) for j in range(self.n_classes)]
        values = [map_.formula(_Number(column, graph)).node for map_, column in zip(per_class, columns, strict=True)]
        raw = graph.node("Concat", *values, axis=-1)
        total = graph.row_sum(raw)
        some = graph.node("Greater", total, graph.number(0.0))
        return graph.node("Where", some, graph.node("Div", raw, total), graph.number(1 / self.n_classes))

    def thresholds(self, per_threshold: Sequence[Any], eps: float) -> str:
        graph, last, below, raw = self.graph, len(per_threshold) - 1, "", []
        for k, map_ in enumerate(per_threshold):
            column = graph.node("Gather", self.x, graph.constant(np.array([k])), axis=-1)
            below = graph.node("Add", below, column) if k else column
            raw.append(map_.formula(_Number(graph.clip(below, 0.0, 1.0), graph)).node)
        highest, lowest = list(raw), list(raw)
        for k in range(last):
            highest[k + 1] = graph.node("Max", highest[k], raw[k + 1])
            lowest[last - k - 1] = graph.node("Min", raw[last - k - 1], lowest[last - k])
        both = [graph.node("Add", *ends) for ends in zip(highest, lowest, strict=True)]
        rising = [graph.node("Mul", total, graph.number(0.5)) for total in both]
        steps = [graph.node("Sub", above, under) for under, above in pairwise(rising)]
        raw = [rising[0], *steps, graph.node("Sub", graph.number(1.0), rising[-1])]
        scaled = graph.node("Mul", graph.node("Concat", *raw, axis=-1), graph.number(1 - self.n_classes * eps))
        return graph.node("Add", scaled, graph.number(eps))

    def top_label(self, confidence: Any) -> str:
        x, graph = self.x, self.graph
        place = graph.node("ArgMax", x, axis=-1, keepdims=1)
        is_top = graph.node("Equal", graph.constant(np.arange(self.n_classes)), place)
        highest = _Number(graph.node("ReduceMax", x, axes=[-1], keepdims=1), graph)
        calibrated = confidence.formula(highest).node
        left = graph.node("Sub", graph.number(1.0), calibrated)
        others = graph.node("Where", is_top, graph.number(0.0), x)
        rest = graph.row_sum(others)
        scaled = graph.node("Mul", others, graph.node("Div", left, rest))
        equal = graph.node("Div", left, graph.number(self.n_classes - 1.0))
        shared = graph.node("Where", graph.node("Greater", rest, graph.number(0.0)), scaled, equal)
        return graph.node("Where", is_top, calibrated, shared)
