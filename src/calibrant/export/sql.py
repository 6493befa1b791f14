"""Calibrators as SQL expressions, so that a database computes calibrated probabilities itself."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, overload

from sklearn.utils.validation import check_is_fitted

from calibrant._support.columns import CLIP_TOLERANCE, LARGEST_SCORE
from calibrant._support.errors import InputError
from calibrant._support.sql_dialects import Dialect, get_dialect
from calibrant.calibrators import maps
from calibrant.calibrators.multiclass import ProbabilityMap
from calibrant.calibrators.score_map import ScoreMap

__all__ = ["domain_conditions", "score_expression", "to_sql"]


_FARTHEST = 700.0  # beyond it exp overflows; 1 / (1 + exp(-700)) is 1


@overload
def to_sql(calibrator: ScoreMap, column: str | Sequence[str], dialect: str = "duckdb") -> str: ...


@overload
def to_sql(calibrator: ProbabilityMap, *, columns: Any, dialect: str = "duckdb") -> dict[Any, str]: ...


def to_sql(
    calibrator: ScoreMap | ProbabilityMap,
    column: str | Sequence[str] | None = None,
    dialect: str = "duckdb",
    *,
    columns: Any = None,
) -> str | dict[Any, str]:
    """Return an SQL expression of the calibrated probability; for several classes, one for each class.

    Parameters
    ----------
    calibrator : fitted binary or multiclass calibrator
    column : str or sequence of str
        For a binary calibrator: name of the column of scores; ``("t", "score")`` is the column score of t. Names are
        quoted.
    dialect : {"duckdb", "postgresql", "spark", "sqlite"}
    columns : sequence or mapping
        For a multiclass calibrator: the column of each class, in the order of `classes_`, or by class.

    Returns
    -------
    str, or dict of label to str
        An expression for the list after SELECT; for a multiclass calibrator one per class. Steps are searched by
        halving, but their text is long: thousands of them (`VennAbers`) make DuckDB take seconds, `Isotonic` takes
        milliseconds. An expression of a multiclass calibrator repeats the columns of all classes.

    Notes
    -----
    NULL for rows that the calibrator itself refuses: missing scores, NaN, scores outside [0, 1] by more than 1e-6
    if it needs probabilities, and then class probabilities whose sum differs from 1 by more than 1e-6 per class. SQLite
    needs its mathematical functions (3.35 or later, built with them) for all but maps of steps, segments and odds.
    `PairwiseCoupling` has no closed form and no SQL.

    Examples
    --------
    >>> from calibrant import BinningAverage, SoftmaxTemperature
    >>> print(to_sql(BinningAverage(n_bins=2).fit([0.2, 0.6], [0, 1]), "p"))
    CASE WHEN CAST("p" AS DOUBLE) >= (-1e+300) AND CAST("p" AS DOUBLE) <= 1e+300
    THEN CASE WHEN CAST("p" AS DOUBLE) < 0.4e0 THEN 0.0e0 ELSE 1.0e0 END END
    >>> cal = SoftmaxTemperature().fit([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], ["cat", "dog", "dog"])
    >>> list(to_sql(cal, columns=["p_cat", "p_dog"]))
    ['cat', 'dog']
    """
    sql = get_dialect(dialect)
    if isinstance(calibrator, ProbabilityMap):
        from calibrant.export.class_sql import class_expressions

        return class_expressions(calibrator, columns, sql)
    if not isinstance(calibrator, ScoreMap):
        raise InputError(
            f"calibrator must be a binary or multiclass calibrator; got {type(calibrator).__name__}.",
            hint="Of a CalibratedModel pass its calibrator_, or with an ensemble its calibrators_ one by one.",
            argument="calibrator",
        )
    check_is_fitted(calibrator)
    if column is None:
        raise InputError(
            "column must be the name of the column of scores; got None.", hint="Pass column.", argument="column"
        )
    map_, name = calibrator.map_, sql.name(column)
    x = sql.as_double(name)
    value = score_expression(map_, x, sql)
    return f"CASE WHEN {' AND '.join(domain_conditions(name, map_.probabilities, sql))} THEN {value} END"


def score_expression(map_: maps.Map, x: str, sql: Dialect) -> str:
    """Return the expression of a map of one score `x`."""
    expression: str = _EXPRESSIONS[map_.kind](map_, x, sql)
    return expression


def domain_conditions(name: str, probabilities: bool, sql: Dialect) -> list[str]:
    """Return the conditions under which the calibrator takes the score in a (quoted) column."""
    low, high = (-CLIP_TOLERANCE, 1 + CLIP_TOLERANCE) if probabilities else (-LARGEST_SCORE, LARGEST_SCORE)
    x = sql.as_double(name)
    taken = [f"{x} >= {sql.number(low)}", f"{x} <= {sql.number(high)}"]
    return [sql.is_number.format(x=name), *taken] if sql.is_number else taken


def _steps(map_: maps.Steps, x: str, sql: Dialect) -> str:
    return _searched(map_.edges.tolist(), [sql.number(value) for value in map_.values], x, sql)


def _segments(map_: maps.Segments, x: str, sql: Dialect) -> str:
    points = list(zip(map_.x.tolist(), map_.y.tolist(), strict=True))
    lines = [sql.number(points[0][1])]
    for (x0, y0), (x1, y1) in pairwise(points):
        along = f"({sql.tiny.format(x=x)} - {sql.number(x0)}) / {sql.number(x1 - x0)}"
        lines.append(f"{sql.number(y0)} + {along} * {sql.number(y1 - y0)}")
    lines.append(sql.number(points[-1][1]))
    return _searched(map_.x.tolist(), lines, x, sql)


def _searched(edges: list[float], values: list[str], x: str, sql: Dialect) -> str:
    """The value whose edges the score lies between, by halving: the depth is the logarithm of their number."""
    if not edges:
        return values[0]
    half = len(edges) // 2
    below = _searched(edges[:half], values[: half + 1], x, sql)
    above = _searched(edges[half + 1 :], values[half + 1 :], x, sql)
    return f"CASE WHEN {x} < {sql.number(edges[half])} THEN {below} ELSE {above} END"


def _logistic(map_: maps.Logistic, x: str, sql: Dialect) -> str:
    if map_.probabilities:
        inside = sql.between(x, map_.eps, 1 - map_.eps)
        x = f"(ln({inside}) - ln(1 - {inside}))"
    return _sigmoid(f"{sql.number(map_.slope)} * {x} + {sql.number(map_.intercept)}", sql)


def _beta(map_: maps.Beta, x: str, sql: Dialect) -> str:
    inside = sql.between(x, map_.eps, 1 - map_.eps)
    return _sigmoid(
        f"{sql.number(map_.a)} * ln({inside}) - {sql.number(map_.b)} * ln(1 - {inside}) + {sql.number(map_.c)}", sql
    )


def _sigmoid(logit: str, sql: Dialect) -> str:
    return f"1 / (1 + exp(-{sql.between(logit, -_FARTHEST, _FARTHEST)}))"


def _odds(map_: maps.Odds, x: str, sql: Dialect) -> str:
    inside = sql.between(sql.tiny.format(x=x), 0.0, 1.0)
    raised = f"{sql.number(map_.ratio)} * {inside}"
    return f"{raised} / ({raised} + (1 - {inside}))"


_EXPRESSIONS: dict[str, Any] = {
    "steps": _steps,
    "segments": _segments,
    "logistic": _logistic,
    "beta": _beta,
    "odds": _odds,
}
