"""Metrics: the protocol, the base of metrics without bins, their results, and the lower-case functions."""

import inspect
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, TypeGuard, TypeVar, Unpack, runtime_checkable

from calibrant._support.arrays import Column
from calibrant._support.errors import Note, warn_notes
from calibrant._support.formatting import metric_key
from calibrant.tables.rows import RowOptions, TableReader
from calibrant.tables.score_table import Partition, ScoreTable, plain_rows, read_score_table

Direction: TypeAlias = Literal["lower", "higher"] | float
T = TypeVar("T", bound=Callable[..., Any])


@runtime_checkable
class Metric(Protocol):
    """A metric object: any object with these attributes can be given wherever a metric is taken.

    A metric may also declare, as attributes, the properties that inference and scorers use:

    ``kind`` : str, default "binary"
        Kind of forecast that the metric measures. It decides how inference reads and resamples rows.
    ``direction`` : "lower", "higher" or a number, default "lower"
        Which values are better; a number is the value of a calibrated model, such as 0.0 for the bias.
    ``range`` : pair of floats, default (-inf, inf)
        Range of the metric in the population; limits of intervals are clipped to them.
    ``range_of`` : callable, optional
        From a table to narrower bounds, such as those of its scores.
    ``interval_method`` : str, default "anchored" if the metric measures gaps, else "symmetric"
        Method of the confidence interval; see `calibrant.inference.intervals`.
    ``interval_refusal`` : callable, optional
        From a table to the reason why no interval exists for it; empty where one does.
    ``has_null`` : bool, default True
        Whether a null distribution exists; ``null_hint`` may say what to do where none does.
    ``has_bins`` : bool, default False
        Whether the metric is computed over bins and has the attributes of `BinnedMetric`.
    ``needs_sums_only`` : bool, default False
        Whether sums of rows, events and scores per bin decide the value.
    ``needs_counts`` : bool, default False
        Whether the metric tests counts of rows, so that it has no null with importance weights or clusters.
    ``linear_terms`` : callable, optional
        From scores to (a, b): the value is the mean of a over rows plus that of b over rows with the event, each of
        weight 1 / N. Replicates of such a metric need no table.
    ``influence`` : callable, optional
        From a table to two arrays, one value per score: the influence on the value of a row without the event, and of
        one with it. They add up to 0 over rows; the variance of their mean is that of the metric. Needed by the
        interval method "influence".
    ``degree`` : float, default 1
        Power of the gaps with which the value grows: 2 for squares.
    ``min_class_size`` : int, default 0
        Fewest rows of each class for which an interval exists.
    ``value_of_rows`` : callable, optional
        From the scores and labels of rows in any order to the value, bitwise that of their table, or None where a table
        is needed (values to refuse, or notes about the rows). The lower-case function asks it first.

    See Also
    --------
    UnbinnedMetric, GCE, PointMetric, DistributionMetric

    Examples
    --------
    >>> import calibrant as cb
    >>> class ShareOfHighScores:
    ...     name, unit, measures_gaps = "share_of_high_scores", "1", False
    ...     spec = {"name": "share_of_high_scores"}
    ...     def value(self, table):
    ...         return float(table.n[table.score >= 0.5].sum() / table.size)
    >>> cb.interval(ShareOfHighScores(), [0, 1, 0, 1] * 50, [0.1, 0.6, 0.3, 0.9] * 50).value
    0.5
    """

    @property
    def name(self) -> str:
        """Name of the metric, as a registry and a specification have it."""

    @property
    def unit(self) -> str:
        """Unit of the value: "%" or "1"."""

    @property
    def spec(self) -> dict[str, Any]:
        """Name and settings, JSON-able."""

    @property
    def measures_gaps(self) -> bool:
        """Whether the value is a distance between predictions and outcomes."""

    def value(self, table: Any) -> float:
        """Return the value of a table.

        Parameters
        ----------
        table : ScoreTable, MeanTable, ClassTable or ForecastTable
            Table of the kind of the metric.

        Returns
        -------
        float
        """


class BinnedMetric(Metric, Protocol):
    """A metric over bins: `value(table)` equals ``value_over(bins(table))``."""

    @property
    def bins(self) -> Callable[[ScoreTable], Partition]: ...
    @property
    def loss(self) -> Callable[[Partition], Any]: ...
    @property
    def norm(self) -> Callable[[Any, Any], float]: ...
    def value_over(self, partition: Partition) -> float: ...


_DEFAULTS = MappingProxyType(
    {
        "kind": ScoreTable.kind,
        "direction": "lower",
        "range": (-math.inf, math.inf),
        "has_null": True,
        "has_bins": False,
        "needs_sums_only": False,
        "needs_counts": False,
        "degree": 1.0,
        "min_class_size": 0,
    }
)


def declared(metric: Any, name: str) -> Any:
    """Return a property that a metric declares, or its default; see `Metric`.

    >>> from calibrant.metrics.proper_scores import Brier
    >>> declared(Brier(), "kind"), declared(Brier(), "degree")
    ('binary', 1.0)
    """
    return getattr(metric, name, _DEFAULTS[name])


def has_bins(metric: Metric) -> TypeGuard[BinnedMetric]:
    """Return whether a metric declares that it is computed over bins."""
    return bool(declared(metric, "has_bins"))


@dataclass(frozen=True)
class UnbinnedMetric(ABC):
    """A metric without bins. A subclass computes `value` and declares its properties; see `Metric`.

    The subclass is a frozen dataclass whose fields are the settings. `reader` reads the table that it measures.

    See Also
    --------
    Metric, GCE, metric_function

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class MeanScore(UnbinnedMetric):
    ...     name = "mean_score"
    ...     def value(self, table):
    ...         return float(table.n @ table.score / table.size)
    >>> round(MeanScore()([0, 1, 1], [0.2, 0.6, 0.7]).value, 3)
    0.5
    """

    name: ClassVar[str]
    kind: ClassVar[str] = "binary"
    reader: ClassVar[TableReader[Any]] = read_score_table
    unit: ClassVar[str] = "1"
    direction: ClassVar[Direction] = "lower"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    measures_gaps: ClassVar[bool] = False
    needs_sums_only: ClassVar[bool] = False
    degree: ClassVar[float] = 1.0
    interval_method: ClassVar[str] = "symmetric"
    min_class_size: ClassVar[int] = 0
    has_null: ClassVar[bool] = True
    has_bins: ClassVar[bool] = False

    def __call__(
        self, y_true: ScoreTable | Column, y_prob: Column | None = None, **rows: Unpack[RowOptions]
    ) -> "MetricValue":
        """Measure a table, or rows of outcomes and probabilities with the options of `ScoreTable.from_arrays`.

        Parameters
        ----------
        y_true, y_prob : columns, or one ScoreTable instead of both
        **rows
            Options of `ScoreTable.from_arrays`: ``sample_weight``, ``frequency``, ``pos_label``, ``missing``.

        Returns
        -------
        MetricValue
            ``float(result)`` is the value.
        """
        return self.measured(read_score_table(y_true, y_prob, rows))

    def measured(self, table: Any) -> "MetricValue":
        """Return the value of a table, with its notes.

        Parameters
        ----------
        table : ScoreTable, MeanTable or ForecastTable
            Table of the kind of the metric.

        Returns
        -------
        MetricValue
        """
        return MetricValue(self.value(table), self, table, table.notes)

    @abstractmethod
    def value(self, table: Any) -> float:
        """Return the value of a table, without a result object; replicates use it.

        Parameters
        ----------
        table : ScoreTable, MeanTable or ForecastTable
            Table of the kind of the metric.

        Returns
        -------
        float
        """

    def interval_refusal(self, table: Any) -> str:
        """Return why no interval exists for this table; empty where one does.

        Parameters
        ----------
        table : ScoreTable, MeanTable or ForecastTable
            Table of the kind of the metric.

        Returns
        -------
        str
            One or two sentences, or ''.
        """
        return ""

    @property
    def spec(self) -> dict[str, Any]:
        """Name and settings, JSON-able; `metrics.from_spec` rebuilds the metric from them."""
        return {"name": metric_key(self.name), **{field.name: getattr(self, field.name) for field in fields(self)}}


@dataclass(frozen=True, eq=False, repr=False)
class MetricValue:
    """The value of a metric, with its specification and its notes; a `Breakdown` if the metric is over bins.

    Attributes
    ----------
    value : float
    definition : UnbinnedMetric or GCE
        The metric object.
    table : ScoreTable, MeanTable or ForecastTable
    notes : tuple of Note
        Notes about the input.

    See Also
    --------
    Metric, Breakdown

    Examples
    --------
    >>> import calibrant as cb
    >>> result = cb.metrics.Brier()([0, 1, 1], [0.2, 0.6, 0.9])
    >>> round(float(result), 3), result.metric, result.spec
    (0.07, 'Brier', {'name': 'brier'})
    """

    value: float
    definition: Metric
    table: Any
    notes: tuple[Note, ...]

    @property
    def metric(self) -> str:
        """Name of the metric."""
        return self.definition.name

    @property
    def unit(self) -> str:
        """Unit of the value: "%" or "1"."""
        return self.definition.unit

    @property
    def spec(self) -> dict[str, Any]:
        """Specification of the metric, JSON-able; `metrics.from_spec` rebuilds the metric from it."""
        return self.definition.spec

    def __float__(self) -> float:
        return self.value

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; an infinite value is null, with the reason.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        from calibrant._support.plain_data import number

        return {
            "schema_version": 1,
            "metric": self.metric,
            **number("value", self.value),
            "unit": self.unit,
            "spec": self.spec,
            "n_in": self.table.n_in,
            "n_used": self.table.n_in - self.table.n_dropped,
            "n_dropped": self.table.n_dropped,
            "notes": [note.to_dict() for note in self.notes],
        }

    def __repr__(self) -> str:
        lines = [f"{self.metric} = {self.value:.5f}   ({self.table!r})"]
        return "\n".join(lines + [f"  note: {note.text}" for note in self.notes])


class MetricFunction(Protocol):
    """The lower-case function of a metric; `metric` is the class. Stubs of the packages list the other arguments."""

    metric: Callable[..., Any]

    def __call__(self, y_true: Any, prediction: Any = None, /, **options: Any) -> float: ...


def metric_function(cls: Callable[..., Any]) -> MetricFunction:
    """Return the lower-case function of a metric's class.

    The function takes rows or a table, and the settings of the class by name. It returns a float and issues notes as
    warnings.

    Parameters
    ----------
    cls : class
        Class of a metric.

    Returns
    -------
    callable
        The function; its attribute `metric` is the class.

    See Also
    --------
    UnbinnedMetric, Metric

    Examples
    --------
    >>> from calibrant.metrics.proper_scores import Brier
    >>> brier = metric_function(Brier)
    >>> brier([0, 1], [0.2, 0.9]), brier.__name__, brier.metric is Brier
    (0.025, 'brier', True)
    """
    reader: TableReader[Any] = getattr(cls, "reader", read_score_table)
    y_true, prediction, *rows = reader.parameters.values()
    settings = [p.replace(kind=p.KEYWORD_ONLY) for p in inspect.signature(cls).parameters.values()]
    parameters = [y_true, prediction.replace(default=None), *settings, *rows]
    # Without types, which `help` would print over half a screen.
    signature = inspect.Signature([p.replace(annotation=p.empty) for p in parameters])

    def measure(*columns: Any, **options: Any) -> float:
        given = signature.bind(*columns, **options).arguments
        metric = cls(**{p.name: given.pop(p.name) for p in settings if p.name in given})
        return _as_number(metric, given.pop(y_true.name), given.pop(prediction.name, None), given)

    name = metric_key(cls().name)
    attributes = {
        "__name__": name,
        "__qualname__": name,
        "__module__": cls.__module__,
        "__doc__": _function_docstring(cls, name, reader),
        "__signature__": signature,
        "metric": cls,
    }
    for attribute, value in attributes.items():
        setattr(measure, attribute, value)
    function: Any = measure
    return function  # type: ignore[no-any-return]


def _as_number(metric: Any, y_true: Any, prediction: Any, rows: Mapping[str, Any]) -> float:
    """Return the value of rows or of a table; a number cannot carry notes, so they become warnings."""
    plain = None if rows or not hasattr(metric, "value_of_rows") else plain_rows(y_true, prediction)
    value: float | None = None if plain is None else metric.value_of_rows(*plain)
    if value is None:
        result = metric(y_true, prediction, **rows)
        warn_notes(result.notes, stacklevel=3)
        value = float(result.value)
    return value


_HEADING = re.compile(r"^(\w+|See Also)\n-+\n", re.MULTILINE)
_PREDICTIONS = {"y_prob": "predicted probabilities", "y_pred": "predictions", "forecast": "predictive distributions"}


def _function_docstring(cls: Any, name: str, reader: TableReader[Any]) -> str:
    """Return the docstring of the class with the parameters and the result of its function."""
    table = reader.table.__name__
    columns = (
        f"y_true, {reader.prediction} : columns\n"
        f"    Outcomes and {_PREDICTIONS[reader.prediction]}; or one `{table}` instead of both."
    )
    options = f"{', '.join(list(reader.parameters)[2:])}\n    Options for reading rows; see `{table}.from_arrays`."
    summary, *rest = _HEADING.split(inspect.getdoc(cls) or "")
    sections = dict(zip(rest[::2], (body.strip("\n") for body in rest[1::2]), strict=True))
    settings = sections.pop("Parameters", "")
    sections = {
        "Parameters": "\n".join(part for part in (columns, settings, options) if part),
        "Returns": "float",
        **sections,
    }
    if "See Also" in sections:  # the class names its function; the function names its class
        sections["See Also"] = re.sub(rf"\b{name}\b", cls.__name__, sections["See Also"])
    bodies = (f"{name}\n{'-' * len(name)}\n{body}" for name, body in sections.items())
    return "\n\n".join([summary.strip(), *bodies])


def declare(**properties: Any) -> Callable[[T], T]:
    """Attach properties to a function as attributes; a class declares them as class attributes.

    >>> @declare(measures_gaps=True)
    ... def loss(partition): ...
    >>> loss.measures_gaps
    True
    """

    def attach(function: T) -> T:
        for name, value in properties.items():
            setattr(function, name, value)
        return function

    return attach
