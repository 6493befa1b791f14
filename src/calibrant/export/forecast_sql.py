"""Recalibrated quantiles of predictive distributions as SQL."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from calibrant._support.errors import Argument, InputError
from calibrant._support.sql_dialects import Dialect
from calibrant.export.forecast_quantiles import QuantileForms, quantile_forms
from calibrant.export.sql import domain_conditions

__all__ = ["quantile_expression"]


def quantile_expression(calibrator: Any, columns: Any, level: float | None, sql: Dialect) -> str:
    """Return the expression of the recalibrated quantile; NULL where the forecast is not valid."""
    if not isinstance(columns, Mapping):
        raise InputError(
            Argument("columns") + f" must be a mapping for {type(calibrator).__name__}; got {columns!r}.",
            hint="For example {'mean': 'mu', 'sd': 'sigma'}, or {0.05: 'q05', 0.95: 'q95'}.",
        )
    forms = quantile_forms(calibrator, list(columns), level)
    names = [sql.name(columns[key]) for key in forms.inputs]
    doubles = [sql.as_double(name) for name in names]
    conditions = [each for name in names for each in domain_conditions(name, False, sql)]
    if forms.of_normal:
        conditions.append(f"{doubles[1]} > {sql.number(0.0)}")
    else:
        conditions += [f"{low} <= {high}" for low, high in pairwise(doubles)]
    return f"CASE WHEN {' AND '.join(conditions)} THEN {_value(forms, doubles, sql)} END"


def _value(forms: QuantileForms, columns: list[str], sql: Dialect) -> str:
    values = []
    for weights, shift in zip(forms.weights.T.tolist(), forms.shifts.tolist(), strict=True):
        terms = [x if w == 1 else f"{sql.number(w)} * {x}" for w, x in zip(weights, columns, strict=True) if w != 0]
        values.append(" + ".join([*terms, sql.number(shift)] if shift else terms))
    return values[0] if len(values) == 1 else sql.nth_smallest(values, forms.place)
