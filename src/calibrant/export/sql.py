"""A calibrator as an SQL expression, so that a database computes the calibrated probability itself."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from sklearn.utils.validation import check_is_fitted

from calibrant._support.columns import CLIP_TOLERANCE, LARGEST_SCORE
from calibrant._support.errors import InputError
from calibrant._support.sql_dialects import Dialect, get_dialect
from calibrant.calibrators import maps
from calibrant.calibrators.score_map import ScoreMap

__all__ = ["to_sql"]


_FARTHEST = 700.0  # beyond it exp overflows; 1 / (1 + exp(-700)) is 1


def to_sql(calibrator: ScoreMap, column: str | Sequence[str], dialect: str = "duckdb") -> str:
    """An SQL expression of the calibrated probability.

    Parameters
    ----------
    calibrator : fitted score map
    column : str or sequence of str
        Name of the column of scores; ``("t", "score")`` is the column score of t. Names are quoted.
    dialect : {"duckdb", "postgresql", "spark", "sqlite"}

    Returns
    -------
    str
        An expression for the list after SELECT. Steps are searched by halving, but their text is long: thousands of
        them (`VennAbers`) make DuckDB take seconds for what `Isotonic` does in a moment.

    Notes
    -----
    NULL for scores that the calibrator itself refuses: missing ones, NaN, and those outside [0, 1] by more than 1e-6
    where it needs probabilities. SQLite needs its mathematical functions (3.35 or later, built with them) for all but
    maps of steps, segments and odds.

    Examples
    --------
    >>> from calibrant import BinningAverage
    >>> print(to_sql(BinningAverage(n_bins=2).fit([0.2, 0.6], [0, 1]), "p"))
    CASE WHEN CAST("p" AS DOUBLE) >= (-1e+300) AND CAST("p" AS DOUBLE) <= 1e+300
    THEN CASE WHEN CAST("p" AS DOUBLE) < 0.4e0 THEN 0.0e0 ELSE 1.0e0 END END
    """
    sql = get_dialect(dialect)
    if not isinstance(calibrator, ScoreMap):
        raise InputError(
            f"Only maps of one score become SQL; it is {type(calibrator).__name__}.",
            hint="Of a CalibratedModel pass its calibrator_.",
            argument="calibrator",
        )
    check_is_fitted(calibrator)
    map_, name = calibrator.map_, sql.name(column)
    x = sql.as_double(name)
    low, high = (-CLIP_TOLERANCE, 1 + CLIP_TOLERANCE) if map_.probabilities else (-LARGEST_SCORE, LARGEST_SCORE)
    value = _EXPRESSIONS[map_.kind](map_, x, sql)
    taken = [f"{x} >= {sql.number(low)}", f"{x} <= {sql.number(high)}"]
    if sql.is_number:
        taken.insert(0, sql.is_number.format(x=name))
    return f"CASE WHEN {' AND '.join(taken)} THEN {value} END"


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
