"""Recalibrated quantiles of predictive distributions as nodes of an ONNX graph."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from calibrant._support.columns import LARGEST_SCORE
from calibrant._support.errors import Argument, InputError
from calibrant.export.forecast_quantiles import NORMAL, quantile_forms
from calibrant.export.onnx_graph import Graph

__all__ = ["quantile_node"]


def quantile_node(
    calibrator: Any, level: float | None, levels: Sequence[float] | None, graph: Graph, type_: int
) -> dict[str, Any]:
    """Add the node ``quantile``, NaN where the forecast is not valid; return the inputs with their shapes."""
    forms = quantile_forms(calibrator, NORMAL if levels is None else levels, level)
    if levels is not None and list(forms.inputs) != list(levels):
        raise InputError(Argument("levels") + f" must rise; got {list(levels)!r}.", value=levels)
    if forms.of_normal:
        inputs: dict[str, Any] = dict.fromkeys(NORMAL, ("rows",))
        columns = [_column(graph.node("Cast", each, to=TensorProto.DOUBLE), graph) for each in NORMAL]
        table = graph.node("Concat", *columns, axis=1)
        valid = graph.within(columns[1], float(np.nextafter(0.0, 1.0)), LARGEST_SCORE)
    else:
        inputs = {"quantiles": ("rows", len(levels or ()))}
        table = graph.node("Cast", "quantiles", to=TensorProto.DOUBLE)
        valid = _rises(table, len(forms.inputs), graph)
    valid = graph.node("And", valid, _all_true(graph.taken(table, False), graph))
    sums = graph.node("MatMul", table, graph.constant(forms.weights))
    ordered = _sorted(graph.node("Add", sums, graph.constant(forms.shifts)), forms.shifts.size, graph)
    value = graph.node("Gather", ordered, graph.constant(np.array([forms.place])), axis=1)
    value = graph.node("Where", valid, value, graph.number(np.nan))
    graph.node("Cast", graph.node("Reshape", value, graph.constant(np.array([-1]))), to=type_, named="quantile")
    return inputs


def _column(x: str, graph: Graph) -> str:
    return graph.node("Reshape", x, graph.constant(np.array([-1, 1])))


def _rises(table: str, n_columns: int, graph: Graph) -> str:
    """Return for each row whether its cells do not fall, as one column."""
    right = graph.node("Gather", table, graph.constant(np.arange(1, n_columns)), axis=1)
    left = graph.node("Gather", table, graph.constant(np.arange(n_columns - 1)), axis=1)
    return _all_true(graph.node("GreaterOrEqual", right, left), graph)


def _all_true(table: str, graph: Graph) -> str:
    """Return for each row whether all its cells are true, as one column."""
    false = graph.node("Cast", graph.node("Not", table), to=TensorProto.DOUBLE)
    total = graph.node("ReduceSum", false, graph.constant(np.array([1])), keepdims=1)
    return graph.node("Equal", total, graph.number(0.0))


def _sorted(table: str, n_columns: int, graph: Graph) -> str:
    """Return the table with the cells of each row in rising order."""
    names = [f"v{len(graph.nodes)}", f"v{len(graph.nodes)}_index"]
    count = graph.constant(np.array([n_columns]))
    graph.nodes.append(helper.make_node("TopK", [table, count], names, axis=1, largest=0, sorted=1))
    return names[0]
