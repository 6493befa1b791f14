"""Calibrators as SQL expressions, so that a database computes the calibrated values itself."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, overload

from sklearn.utils.validation import check_is_fitted

from calibrant._support.arrays import Floats
from calibrant._support.columns import CLIP_TOLERANCE, LARGEST_SCORE
from calibrant._support.errors import Argument, InputError
from calibrant._support.sql_dialects import Dialect, get_dialect
from calibrant.calibrators import maps
from calibrant.calibrators.distribution import quantile_forms

if TYPE_CHECKING:
    from calibrant.calibrators.distribution import DistributionMap
    from calibrant.calibrators.multiclass import ProbabilityMap
    from calibrant.calibrators.point import PointMap
    from calibrant.calibrators.score_map import ScoreMap

_FARTHEST = 700.0  # beyond it exp overflows; 1 / (1 + exp(-700)) is 1
_LONGEST = 10**8  # characters of the expressions of all classes
_SUM, _PRODUCT, _ATOM = range(3)  # how strongly the last operator of an expression binds


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
    >>> from calibrant.calibrators import BinningAverage, SoftmaxTemperature
    >>> print(to_sql(BinningAverage(n_bins=2).fit([2.0, 6.0], [0, 1]), "p"))
    CASE WHEN CAST("p" AS DOUBLE) >= (-1e+300) AND CAST("p" AS DOUBLE) <= 1e+300
    THEN CASE WHEN CAST("p" AS DOUBLE) < 4.0e0 THEN 0.0e0 ELSE 1.0e0 END END
    >>> cal = SoftmaxTemperature().fit([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], ["cat", "dog", "dog"])
    >>> list(to_sql(cal, columns=["p_cat", "p_dog"]))
    ['cat', 'dog']
    """
    sql = get_dialect(dialect)
    form = _FORMS.get(getattr(calibrator, "takes", None))
    if form is None:
        raise not_exported(calibrator, "SQL")
    return form(calibrator, column, columns, level, sql)


def not_exported(calibrator: Any, language: str) -> InputError:
    """Return the error that an object is no calibrator with a closed form."""
    name = type(calibrator).__name__
    return InputError(
        Argument("calibrator")
        + f" must be a calibrator or a recalibrator to become {language}; got {name}, which has no closed form.",
        hint="For a model on features pass its calibrator_ or recalibrator_.",
    )


def no_closed_form(calibrator: Any, language: str) -> InputError:
    """Return the error that a map of class probabilities has no formula."""
    return InputError(
        f"calibrator must have a closed form for {language}; {type(calibrator).__name__} has none.",
        hint="Use OneVsRest or Dirichlet, or apply it in Python.",
    )


def _of_column(calibrator: Any, column: Any, columns: Any, level: float | None, sql: Dialect) -> str:
    """Return the expression of the calibrated value of one column."""
    if column is None:
        raise InputError(
            Argument("columns", python="column")
            + f" must be the name of one column for {type(calibrator).__name__}; got {columns!r}.",
            argument="column",
        )
    check_is_fitted(calibrator)
    map_, name = calibrator.map_, sql.name(column)
    conditions = _domain_conditions(name, map_.domain == "probability", sql)
    return _when(conditions, map_.formula(_Number(sql.as_double(name), sql)).text)


def _of_classes(calibrator: Any, column: Any, columns: Any, level: float | None, sql: Dialect) -> dict[Any, str]:
    """Return the expression of each class's calibrated probability, by class."""
    check_is_fitted(calibrator)
    classes = calibrator.classes_.tolist()
    names = [sql.name(name) for name in _columns_of_classes(columns, classes)]
    map_, x = calibrator.map_, [sql.as_double(name) for name in names]
    values = map_.formula(_Columns(x, sql))
    if values is None:
        raise no_closed_form(calibrator, "SQL")
    probabilities = map_.domain == "probability"
    conditions = [condition for name in names for condition in _domain_conditions(name, probabilities, sql)]
    if probabilities:
        total = " + ".join(sql.between(p, 0.0, 1.0) for p in x)
        conditions.append(f"abs({total} - 1) <= {sql.number(CLIP_TOLERANCE * len(x))}")
    expressions: dict[Any, str] = {}
    for label, value in zip(classes, values, strict=True):
        expressions[label] = _when(conditions, value)
        if len(expressions[label]) * len(classes) > _LONGEST:
            raise InputError(
                f"calibrator must have fewer classes for SQL; the expressions of {len(classes)} classes need more than "
                f"{_LONGEST:,} characters.",
                hint="Apply it in Python or by ONNX.",
            )
    return expressions


def _columns_of_classes(columns: Any, classes: list[Any]) -> list[Any]:
    """Return the column of each class."""
    if isinstance(columns, Mapping) and set(columns) == set(classes):
        return [columns[label] for label in classes]
    listed = isinstance(columns, Sequence) and not isinstance(columns, str)
    if listed and len(columns) == len(classes):
        return list(columns)
    raise InputError(
        Argument("columns") + f" must name one column for each of the classes {classes}; got {columns!r}.",
        hint="Name them in the order of the classes.",
        value=columns,
    )


def _of_quantile(calibrator: Any, column: Any, columns: Any, level: float | None, sql: Dialect) -> str:
    """Return the expression of the recalibrated quantile; NULL where the forecast is not valid."""
    check_is_fitted(calibrator)
    if not isinstance(columns, Mapping):
        raise InputError(
            Argument("columns") + f" must be a mapping for {type(calibrator).__name__}; got {columns!r}.",
            hint="For example {'mean': 'mu', 'sd': 'sigma'}, or {0.05: 'q05', 0.95: 'q95'}.",
        )
    forms = quantile_forms(calibrator, list(columns), level)
    names = [sql.name(columns[key]) for key in forms.inputs]
    doubles = [sql.as_double(name) for name in names]
    conditions = [condition for name in names for condition in _domain_conditions(name, False, sql)]
    if forms.of_normal:
        conditions.append(f"{doubles[1]} > {sql.number(0.0)}")
    else:
        conditions += [f"{low} <= {high}" for low, high in pairwise(doubles)]
    values = []
    for weights, shift in zip(forms.weights.T.tolist(), forms.shifts.tolist(), strict=True):
        terms = [x if w == 1 else f"{sql.number(w)} * {x}" for w, x in zip(weights, doubles, strict=True) if w != 0]
        values.append(" + ".join([*terms, sql.number(shift)] if shift else terms))
    return _when(conditions, values[0] if len(values) == 1 else sql.nth_smallest(values, forms.place))


# By what a calibrator takes.
_FORMS: dict[Any, Callable[..., str | dict[Any, str]]] = {
    "column": _of_column,
    "classes": _of_classes,
    "distributions": _of_quantile,
}


def _domain_conditions(name: str, probabilities: bool, sql: Dialect) -> list[str]:
    """Return the conditions under which Python takes the value of a (quoted) column."""
    low, high = (-CLIP_TOLERANCE, 1 + CLIP_TOLERANCE) if probabilities else (-LARGEST_SCORE, LARGEST_SCORE)
    x = sql.as_double(name)
    taken = [f"{x} >= {sql.number(low)}", f"{x} <= {sql.number(high)}"]
    return [sql.is_number.format(x=name), *taken] if sql.is_number else taken


def _when(conditions: list[str], value: str) -> str:
    return f"CASE WHEN {' AND '.join(conditions)} THEN {value} END"


@dataclass(frozen=True)
class _Number(maps.Expression):
    """A number in SQL. Operands that bind less than their operator get parentheses."""

    text: str
    sql: Dialect
    binds: int = _ATOM

    def join(self, sign: str, left: Any, right: Any) -> "_Number":
        binds = _SUM if sign in "+-" else _PRODUCT
        # The right operand of equal strength needs parentheses: a - (b - c).
        text = f"{self._operand(left, binds)} {sign} {self._operand(right, binds + 1)}"
        return _Number(text, self.sql, binds)

    def _operand(self, value: Any, binds: int = _SUM) -> str:
        """Return an expression, or a literal: of an integer as it is, of a float with all digits."""
        if isinstance(value, _Number):
            return value.text if value.binds >= binds else f"({value.text})"
        return str(value) if type(value) is int else self.sql.number(value)

    def log(self) -> "_Number":
        return _Number(f"{self.sql.ln}({self.text})", self.sql)

    def sigmoid(self) -> "_Number":
        inside = self.sql.between(self.text, -_FARTHEST, _FARTHEST)
        return _Number(f"1 / (1 + exp(-{inside}))", self.sql, _PRODUCT)

    def clip(self, low: float, high: float) -> "_Number":
        return _Number(self.sql.between(self.text, low, high), self.sql)

    def normal(self) -> "_Number":
        return _Number(self.sql.tiny.format(x=self.text), self.sql)

    def look_up(self, edges: Floats, values: Floats) -> "_Number":
        return _Number(self._search(edges.tolist(), [self.sql.number(value) for value in values]), self.sql)

    def pieces(self, edges: Floats, columns: Sequence[Floats], piece: Callable[..., Any], ends: Any) -> "_Number":
        first, last = map(self._operand, ends)
        inner = [piece(*row).text for row in zip(*(column.tolist() for column in columns), strict=True)]
        return _Number(self._search(edges.tolist(), [first, *inner, last]), self.sql)

    def _search(self, edges: list[float], values: list[str]) -> str:
        """Return the value between whose edges the number lies, by bisection: the depth is the log of their number."""
        if not edges:
            return values[0]
        branches = min(self.sql.fan_out, len(edges) + 1)
        cuts = [branch * len(edges) // branches for branch in range(1, branches)]
        starts, ends = [0, *(cut + 1 for cut in cuts)], [*cuts, len(edges)]
        parts = [self._search(edges[a:b], values[a : b + 1]) for a, b in zip(starts, ends, strict=True)]
        below = [f"{self.text} < {self.sql.number(edges[cut])}" for cut in cuts]
        whens = [f"WHEN {condition} THEN {part}" for condition, part in zip(below, parts[:-1], strict=True)]
        return f"CASE {' '.join(whens)} ELSE {parts[-1]} END"


@dataclass(frozen=True)
class _Columns:
    """The columns of class probabilities, whose methods `class_maps` calls; they yield the expression of each class."""

    x: list[str]
    sql: Dialect

    def softmax(self, weights: Floats, biases: Floats, eps: float) -> Iterator[str]:
        logs = [f"{self.sql.ln}({self.sql.between(p, eps, 1.0)})" for p in self.x]
        return self._softmax_of(logs, weights, biases)

    def _softmax_of(self, logs: list[str], weights: Floats, biases: Floats) -> Iterator[str]:
        """Yield 1 / (1 + sum over j of exp(logit of j - logit of c)): no exponential of a logit itself overflows."""
        for place in range(len(logs)):
            terms = []
            for other in range(len(logs)):
                if other != place:
                    parts = self._log_ratio(weights, logs, other, place)
                    parts.append(self.sql.number(biases[other] - biases[place]))
                    terms.append(f"exp({self.sql.between(' + '.join(parts), -_FARTHEST, _FARTHEST)})")
            yield f"1 / (1 + {' + '.join(terms)})"

    def _log_ratio(self, weights: Floats, logs: list[str], other: int, place: int) -> list[str]:
        """Return the terms of the difference of two logits without their biases."""
        if weights.ndim == 0:
            return [f"{self.sql.number(float(weights))} * ({logs[other]} - {logs[place]})"]
        if weights.ndim == 1:
            factors = {other: weights[other], place: -weights[place]}
        else:
            factors = dict(enumerate(weights[other] - weights[place]))
        return [f"{self.sql.number(factor)} * {logs[j]}" for j, factor in factors.items()]

    def structured(self, map_: Any) -> Iterator[str]:
        sql, kept, rest = self.sql, self.sql.number(1 - map_.share), self.sql.number(map_.share / len(self.x))
        if map_.domain == "probability":
            logs = [f"{sql.ln}({sql.between(p, map_.eps, 1.0)})" for p in self.x]
        else:
            top = f"{sql.greatest}({', '.join(self.x)})"
            logs = [f"({x} - {top})" for x in self.x]
        scaled = [f"exp({sql.between(f'{sql.number(map_.slope)} * {log}', -_FARTHEST, 0.0)})" for log in logs]
        total = " + ".join(scaled)
        mixed = [f"{sql.ln}({kept} * {each} / ({total}) + {rest})" for each in scaled]
        for value in self._softmax_of(mixed, map_.weights, map_.biases):
            yield f"{kept} * ({value}) + {rest}"

    def normalised(self, per_class: Sequence[Any]) -> Iterator[str]:
        values = [f"({self._map(map_, p)})" for map_, p in zip(per_class, self.x, strict=True)]
        for value in values:
            yield f"coalesce({value} / nullif({' + '.join(values)}, 0), {self.sql.number(1 / len(values))})"

    def top_label(self, confidence: Any) -> Iterator[str]:
        x, sql = self.x, self.sql
        top = f"{sql.greatest}({', '.join(x)})"
        calibrated = f"({self._map(confidence, top)})"
        # Of several highest probabilities, all but the first belong to the rest.
        below = " + ".join(f"CASE WHEN {p} < {top} THEN {p} ELSE 0 END" for p in x)
        equal = " + ".join(f"CASE WHEN {p} < {top} THEN 0 ELSE 1 END" for p in x)
        for place, p in enumerate(x):
            share = f"{sql.greatest}({p}, {sql.number(0.0)}) / nullif({below} + ({equal} - 1) * {top}, 0)"
            first = " AND ".join([f"{p} >= {top}", *(f"{before} < {top}" for before in x[:place])])
            others = f"(1 - {calibrated}) * coalesce({share}, {sql.number(1 / (len(x) - 1))})"
            yield f"CASE WHEN {first} THEN {calibrated} ELSE {others} END"

    def thresholds(self, per_threshold: Sequence[Any], eps: float) -> Iterator[str]:
        sql, shares = self.sql, [self.sql.between(p, 0.0, 1.0) for p in self.x]
        sums = [sql.between(" + ".join(shares[: k + 1]), 0.0, 1.0) for k in range(len(per_threshold))]
        values = [self._map(map_, below) for map_, below in zip(per_threshold, sums, strict=True)]

        def extreme(function: str, some: list[str]) -> str:
            return f"{function}({', '.join(some)})" if len(some) > 1 else f"({some[0]})"

        rising = [
            f"({extreme(sql.greatest, values[: k + 1])} + {extreme(sql.least, values[k:])}) / 2"
            for k in range(len(values))
        ]
        least, rest = sql.number(eps), sql.number(1 - len(self.x) * eps)
        for below, above in pairwise([sql.number(0.0), *rising, sql.number(1.0)]):
            yield f"{least} + {rest} * ({above} - {below})"

    def _map(self, map_: Any, x: str) -> str:
        text: str = map_.formula(_Number(x, self.sql)).text
        return text
