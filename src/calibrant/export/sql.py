"""Calibrators as SQL expressions, so that a database computes the calibrated values itself."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, overload

from sklearn.utils.validation import check_is_fitted

from calibrant._support.columns import CLIP_TOLERANCE, LARGEST_SCORE
from calibrant._support.errors import Argument, InputError, known_keywords
from calibrant._support.sql_dialects import Dialect, get_dialect
from calibrant.calibrators import maps

if TYPE_CHECKING:
    from calibrant.calibrators.distribution_map import DistributionMap
    from calibrant.calibrators.multiclass import ProbabilityMap
    from calibrant.calibrators.point_map import PointMap
    from calibrant.calibrators.score_map import ScoreMap

__all__ = ["NO_MODELS", "domain_conditions", "score_expression", "to_sql"]


NO_MODELS = "For a model on features pass its calibrator_ or recalibrator_."
_FARTHEST = 700.0  # beyond it exp overflows; 1 / (1 + exp(-700)) is 1


@overload
def to_sql(calibrator: "ProbabilityMap", *, columns: Any, dialect: str = "duckdb") -> dict[Any, str]: ...


@overload
def to_sql(
    calibrator: "ScoreMap | PointMap | DistributionMap",
    column: str | Sequence[str] | None = None,
    dialect: str = "duckdb",
    *,
    columns: Any = None,
    level: float | None = None,
) -> str: ...


@known_keywords
def to_sql(
    calibrator: Any,
    column: str | Sequence[str] | None = None,
    dialect: str = "duckdb",
    *,
    columns: Any = None,
    level: float | None = None,
) -> str | dict[Any, str]:
    """Return an SQL expression of the calibrated value; for several classes, one for each class.

    Parameters
    ----------
    calibrator : fitted binary or multiclass calibrator, or recalibrator of point predictions or distributions
    column : str or sequence of str
        Name of the column of scores or point predictions; ``("t", "score")`` is the column score of t. Names are
        quoted.
    dialect : str
        duckdb, postgresql, spark, sqlite, snowflake, bigquery, redshift, databricks, sqlserver (2022 or later, and
        Azure), mysql (8.0.17 or later, and MariaDB) or trino.
    columns : sequence or mapping
        For a multiclass calibrator: the column of each class, in the order of `classes_`, or by class. For a
        recalibrator of distributions: ``{"mean": "mu", "sd": "sigma"}`` for normal forecasts, or levels to columns,
        ``{0.05: "q05", 0.5: "q50", 0.95: "q95"}``, for quantile forecasts.
    level : float
        For a recalibrator of distributions: the level of the recalibrated quantile that the expression returns.

    Returns
    -------
    str, or dict of label to str
        An expression for the list after SELECT; for a multiclass calibrator one per class. Steps are found by
        bisection, but their text is long: with thousands of them (`VennAbers`) DuckDB takes seconds, with those of
        `Isotonic` milliseconds. An expression of a multiclass calibrator repeats the columns of all classes.

    Raises
    ------
    InputError
        If the calibrator has no closed form: `PairwiseCoupling`, models on features, and maps of normal scores
        (`PITRecalibrator`, `ParetoRecalibrator`) for quantile forecasts.

    See Also
    --------
    to_onnx, save

    Notes
    -----
    The expression is NULL where Python raises an error: for missing values and NaN, for scores outside [0, 1] by more
    than 1e-6 if the calibrator was fitted on probabilities, for class probabilities whose sum differs from 1 by more
    than 1e-6 per class, for standard deviations that are not positive, and for quantiles that cross. SQLite needs its
    mathematical functions (3.35 or later, built with them) for logistic, beta and softmax maps. MySQL reads a column
    of text as numbers. Names are quoted, so upper and lower case count where the engine distinguishes quoted names:
    a column that was created in Snowflake as ``score`` is named ``SCORE``.

    Examples
    --------
    >>> from calibrant import BinningAverage, SoftmaxTemperature
    >>> print(to_sql(BinningAverage(n_bins=2).fit([2.0, 6.0], [0, 1]), "p"))
    CASE WHEN CAST("p" AS DOUBLE) >= (-1e+300) AND CAST("p" AS DOUBLE) <= 1e+300
    THEN CASE WHEN CAST("p" AS DOUBLE) < 4.0e0 THEN 0.0e0 ELSE 1.0e0 END END
    >>> cal = SoftmaxTemperature().fit([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], ["cat", "dog", "dog"])
    >>> list(to_sql(cal, columns=["p_cat", "p_dog"]))
    ['cat', 'dog']
    """
    sql = get_dialect(dialect)
    kind = getattr(calibrator, "kind", None)
    if kind == "multiclass":
        from calibrant.export.class_sql import class_expressions

        return class_expressions(calibrator, columns, sql)
    if kind == "distribution":
        from calibrant.export.forecast_sql import quantile_expression

        check_is_fitted(calibrator)
        return quantile_expression(calibrator, columns, level, sql)
    if kind not in ("binary", "point"):
        raise InputError(
            Argument("calibrator")
            + f" must be a calibrator or a recalibrator to become SQL; got {type(calibrator).__name__}, which has no "
            "closed form.",
            hint=NO_MODELS,
        )
    if column is None:
        raise InputError(
            Argument("columns", python="column")
            + f" must be the name of one column for {type(calibrator).__name__}; got {columns!r}.",
            argument="column",
        )
    check_is_fitted(calibrator)
    map_, name = calibrator.map_, sql.name(column)
    conditions = domain_conditions(name, map_.domain == "probability", sql)
    return f"CASE WHEN {' AND '.join(conditions)} THEN {score_expression(map_, sql.as_double(name), sql)} END"


def score_expression(map_: maps.Map, x: str, sql: Dialect) -> str:
    """Return the expression of a map of one number `x`."""
    return _EXPRESSIONS[map_.kind](map_, x, sql)


def domain_conditions(name: str, probabilities: bool, sql: Dialect) -> list[str]:
    """Return the conditions under which Python takes the value of a (quoted) column."""
    low, high = (-CLIP_TOLERANCE, 1 + CLIP_TOLERANCE) if probabilities else (-LARGEST_SCORE, LARGEST_SCORE)
    x = sql.as_double(name)
    taken = [f"{x} >= {sql.number(low)}", f"{x} <= {sql.number(high)}"]
    return [sql.is_number.format(x=name), *taken] if sql.is_number else taken


def _steps(map_: maps.Steps, x: str, sql: Dialect) -> str:
    return _searched(map_.edges.tolist(), [sql.number(value) for value in map_.values], x, sql)


def _segments(map_: maps.Segments, x: str, sql: Dialect) -> str:
    points = list(zip(map_.x.tolist(), map_.y.tolist(), strict=True))
    lines = []
    for (x0, y0), (x1, y1) in pairwise(points):
        along = f"({sql.tiny.format(x=x)} - {sql.number(x0)}) / {sql.number(x1 - x0)}"
        lines.append(f"{sql.number(y0)} + {along} * {sql.number(y1 - y0)}")
    if map_.beyond == "line":
        return _searched(map_.x.tolist()[1:-1], lines, x, sql)
    ends = (sql.number(y) for _, y in (points[0], points[-1]))
    return _searched(map_.x.tolist(), [next(ends), *lines, next(ends)], x, sql)


def _searched(edges: list[float], values: list[str], x: str, sql: Dialect) -> str:
    """Return the value between whose edges x lies, by bisection: the depth is the logarithm of their number."""
    if not edges:
        return values[0]
    branches = min(sql.fan_out, len(edges) + 1)
    cuts = [branch * len(edges) // branches for branch in range(1, branches)]
    starts, ends = [0, *(cut + 1 for cut in cuts)], [*cuts, len(edges)]
    found = [_searched(edges[a:b], values[a : b + 1], x, sql) for a, b in zip(starts, ends, strict=True)]
    whens = [f"WHEN {x} < {sql.number(edges[cut])} THEN {each}" for cut, each in zip(cuts, found[:-1], strict=True)]
    return f"CASE {' '.join(whens)} ELSE {found[-1]} END"


def _logistic(map_: maps.Logistic, x: str, sql: Dialect) -> str:
    if map_.on == "logit":
        inside = sql.between(x, map_.eps, 1 - map_.eps)
        x = f"({sql.ln}({inside}) - {sql.ln}(1 - {inside}))"
    elif map_.domain == "probability":
        x = sql.between(sql.tiny.format(x=x), 0.0, 1.0)
    return _sigmoid(f"{sql.number(map_.slope)} * {x} + {sql.number(map_.intercept)}", sql)


def _beta(map_: maps.BetaMap, x: str, sql: Dialect) -> str:
    inside = sql.between(x, map_.eps, 1 - map_.eps)
    low, high = f"{sql.ln}({inside})", f"{sql.ln}(1 - {inside})"
    return _sigmoid(f"{sql.number(map_.a)} * {low} - {sql.number(map_.b)} * {high} + {sql.number(map_.c)}", sql)


def _sigmoid(logit: str, sql: Dialect) -> str:
    return f"1 / (1 + exp(-{sql.between(logit, -_FARTHEST, _FARTHEST)}))"


def _odds(map_: maps.Odds, x: str, sql: Dialect) -> str:
    inside = sql.between(sql.tiny.format(x=x), 0.0, 1.0)
    raised = f"{sql.number(map_.ratio)} * {inside}"
    return f"{raised} / ({raised} + (1 - {inside}))"


def _linear(map_: maps.Linear, x: str, sql: Dialect) -> str:
    return f"{sql.number(map_.intercept)} + {sql.number(map_.slope)} * {sql.tiny.format(x=x)}"


def _shifts(map_: maps.Shifts, x: str, sql: Dialect) -> str:
    return f"{x} + {_searched(map_.edges.tolist(), [sql.number(shift) for shift in map_.shifts], x, sql)}"


def _cubic(map_: maps.Cubic, x: str, sql: Dialect) -> str:
    points, width = map_.x.tolist(), (map_.x[1:] - map_.x[:-1]).tolist()

    def tangent(end: int) -> str:
        rise = f"({x} - {sql.number(points[end])}) * {sql.number(map_.slope[end])}"
        return f"{sql.number(map_.y[end])} + {rise}"

    pieces = [tangent(0)]
    for place, coefficients in enumerate(map_.coefficients.tolist()):
        c0, c1, c2, c3 = (sql.number(c) for c in coefficients)
        t = f"(({x} - {sql.number(points[place])}) / {sql.number(width[place])})"
        pieces.append(f"{c0} + {t} * ({c1} + {t} * ({c2} + {t} * {c3}))")
    return _searched(points, [*pieces, tangent(-1)], x, sql)


_EXPRESSIONS: dict[str, Callable[[Any, str, Dialect], str]] = {
    "steps": _steps,
    "segments": _segments,
    "logistic": _logistic,
    "beta": _beta,
    "odds": _odds,
    "linear": _linear,
    "shifts": _shifts,
    "cubic": _cubic,
}
