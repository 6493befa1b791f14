"""`GCE`, the general calibration error: bins, a loss and a norm; its `Breakdown` by bins, and specification."""

import html
import inspect
import math
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, dataclass, field, fields, is_dataclass
from importlib import import_module
from inspect import isfunction, signature
from types import NoneType
from typing import Any, ClassVar, Unpack, get_type_hints

import numpy as np
from numpy.typing import NDArray

from calibrant import _kernels
from calibrant._support.arrays import Bools, Column, Floats, read_only
from calibrant._support.errors import InputError, join_notes
from calibrant._support.formatting import html_table, text_table
from calibrant._support.lazy import cached_property
from calibrant.metrics.bins import Bins, EqualWidth
from calibrant.metrics.losses import Loss, tests_scores
from calibrant.metrics.metric import Direction, MetricValue
from calibrant.metrics.norms import Norm, weighted_mean
from calibrant.metrics.significance import clopper_pearson
from calibrant.tables.rows import RowOptions
from calibrant.tables.score_table import Partition, ScoreTable, read_score_table

# The modules in which a part is looked up, by the setting that it is for.
_HOMES = {
    "bins": ("bins", "optimal_bins"),
    "loss": ("losses",),
    "norm": ("norms",),
    "cost": ("costs",),
    "test": ("significance",),
    "error": ("optimal_bins",),
}
_OLD_NAMES = {"bins.Quantile": "bins.EqualSize"}  # of specifications that version 0.1 wrote


def part_to_spec(part: object) -> Any:
    """Return a function as its name, an object with settings as {name: settings}, and plain values unchanged."""
    if part is None or isinstance(part, (bool, int, float, str)):
        return part
    if isinstance(part, (tuple, list)):
        return [part_to_spec(item) for item in part]
    if isinstance(part, np.generic):
        return part.item()
    if is_dataclass(part) and not isinstance(part, type):
        return {_part_name(type(part)): {f.name: part_to_spec(getattr(part, f.name)) for f in fields(part)}}
    return _part_name(part)


def _part_name(part: object) -> str:
    module = getattr(part, "__module__", "?")
    name = getattr(part, "__qualname__", type(part).__qualname__)
    # "user:" distinguishes a function of the user's norms.py from one of this package.
    return f"{module.rpartition('.')[2]}.{name}" if module.startswith("calibrant.") else f"user:{module}.{name}"


def part_from_spec(spec: Any, role: str) -> Any:
    """Return the part that a specification describes; `role` is the setting that it is for, such as "bins"."""
    if not isinstance(spec, Mapping):
        return _part(spec, role, settings=False)
    name, settings = next(iter(spec.items()), (None, None))
    if len(spec) != 1 or not isinstance(settings, Mapping) or not all(isinstance(key, str) for key in settings):
        raise _error(f"spec must have one part with its settings; got {spec!r}.", spec)
    class_ = _part(name, role, settings=True)
    given = {key: _setting(key, value) for key, value in settings.items()}
    from calibrant._support.plain_data import has_type

    declared = get_type_hints(class_.__init__)
    for key, value in given.items():
        if not has_type(value, declared.get(key, NoneType)):
            raise _error(f"{key} of {name} must be a setting of the declared type; got {value!r}.", value)
    try:
        return class_(**given)
    except (TypeError, OverflowError) as error:  # a setting is missing, or too large
        raise _error(f"spec must hold the settings of {name}; got {settings!r}.", spec) from error


def _setting(key: str, value: Any) -> Any:
    return part_from_spec(value, key) if key in _HOMES else value


def _part(name: object, role: str, *, settings: bool) -> Any:
    """Return the class or the function of this name, if it can have the role."""
    module, _, attribute = _OLD_NAMES.get(name, name).partition(".") if isinstance(name, str) else ("", "", "")
    if module in _HOMES.get(role, ()):
        home = import_module(f"calibrant.metrics.{module}")
        found = getattr(home, attribute) if attribute in home.__all__ else None
        if settings and isinstance(found, type) and is_dataclass(found):
            return found
        if not settings and isfunction(found) and (role != "test" or [*signature(found).parameters] == ["k", "n", "p"]):
            return found
    raise InputError(
        f"spec must name parts of Calibrant for {role}; got {name!r}.",
        hint="Rebuild a metric that has parts of your own from these parts.",
        value=name,
    )


def _error(text: str, value: object) -> InputError:
    return InputError(text, hint="Pass metric.spec.", argument="spec", value=value)


_ROWS_SHOWN = 12


@dataclass(frozen=True, eq=False, repr=False)
class Breakdown(MetricValue):
    """The value of a metric over bins, with the bins and the specification of the metric.

    Attributes
    ----------
    value : float
    definition : GCE
        The metric object.
    table : ScoreTable
    notes : tuple of Note
        Notes about the input.
    partition : Partition

    See Also
    --------
    GCE, Partition, MetricValue

    Examples
    --------
    >>> import calibrant as cb
    >>> table = cb.ScoreTable.from_counts([0.1, 0.3, 0.8], [100, 100, 100], [16, 33, 75])
    >>> breakdown = cb.ECE(n_bins=2)(table)
    >>> breakdown.per_bin["rate"], round(float(breakdown), 4)
    (array([0.245, 0.75 ]), 0.0467)
    """

    definition: "GCE"
    table: ScoreTable
    partition: Partition
    _columns: Mapping[str, NDArray[Any]]
    _rate_intervals: dict[float, tuple[Floats, Floats]] = field(default_factory=dict)

    @cached_property
    def per_bin(self) -> dict[str, NDArray[Any]]:
        """Arrays with one entry per bin: edges, scores, counts, rate, loss (and rejected rows)."""
        names = ("lower", "upper", "min_score", "max_score", "n", "k", "rate", "mean_score")
        columns = {**{name: getattr(self.partition, name) for name in names}, **self._columns}
        return {name: read_only(column) for name, column in columns.items()}

    def rate_interval(self, confidence_level: float = 0.95) -> tuple[Floats, Floats]:
        """Return the exact confidence limits of the event rate of each bin; they are computed once per level.

        See `significance.clopper_pearson`.

        Parameters
        ----------
        confidence_level : float, default=0.95
            Of each bin; not adjusted for the number of bins.

        Returns
        -------
        tuple of two arrays
            Lower and upper limits, one per bin. They are read-only.
        """
        if confidence_level not in self._rate_intervals:
            p = self.partition
            low, high = clopper_pearson(p.effective_k, p.effective_n, confidence_level=confidence_level)
            self._rate_intervals[confidence_level] = read_only(low), read_only(high)
        return self._rate_intervals[confidence_level]

    @property
    def n_in(self) -> int:
        """Number of rows of the input."""
        return self.table.n_in

    @property
    def n_used(self) -> int:
        """Number of rows that were counted."""
        return self.table.n_used

    @property
    def n_dropped(self) -> int:
        """Number of rows that were dropped; the notes give the reasons."""
        return self.table.n_dropped

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        return {
            **super().to_dict(),
            **({} if self.signed_bias is None else {"signed_bias": self.signed_bias}),
            "n_empty_bins": self.partition.n_empty,
            "per_bin": {name: column.tolist() for name, column in self.per_bin.items()},
        }

    def _headline(self) -> str:
        value = f"{self.value:.2f} %" if self.unit == "%" else f"{self.value:.5f}"
        partition, table = self.partition, self.table
        empty = f", {partition.n_empty} empty" if partition.n_empty else ""
        rows = f"{table.size:,} rows" if not table.importance else f"total weight {table.size:,.6g}"
        bins = f"{len(partition)} bin{'s' if len(partition) != 1 else ''}{empty}"
        return f"{self.metric} = {value}   ({rows}, {100 * table.prevalence:.3g} % events, {bins})"

    def _cells(self) -> list[list[str]]:
        """Return the cells of the text table: a heading and one row per bin, without the middle if there are many."""
        b = self.per_bin
        last = len(self.partition) - 1
        heading = ["bin", "n", "events", "rate", "mean score", *(name.replace("_", " ") for name in self._columns)]
        rows = []
        for i in range(last + 1):
            if last + 1 > _ROWS_SHOWN and _ROWS_SHOWN // 2 <= i <= last - _ROWS_SHOWN // 2:
                if i == _ROWS_SHOWN // 2:
                    rows.append(["..."] * len(heading))
                continue
            row = [f"{b['lower'][i]:.4g} to {b['upper'][i]:.4g}", _amount(b["n"][i]), _amount(b["k"][i])]
            row += [_decimals(b["rate"][i]), _decimals(b["mean_score"][i])]
            rows.append(row + [self._cell(name, i) for name in self._columns])
        return [heading, *rows]

    def _cell(self, column: str, i: int) -> str:
        value = self.per_bin[column][i]
        if column == "rejected":
            return _amount(value)
        return f"{value:.1f}" if column == "loss" and self.unit == "%" else _decimals(value)

    def __repr__(self) -> str:
        return "\n".join([self._headline(), *text_table(self._cells()), *self._remarks()])

    @property
    def signed_bias(self) -> float | None:
        """Mean score minus event rate for costs, whose values need it for interpretation; else None."""
        if "signed_gap" not in self._columns:
            return None
        return weighted_mean(self._columns["signed_gap"], self.partition.n)

    def _remarks(self) -> list[str]:
        """Return the remarks below the table: the bias beside a cost, and the notes."""
        remarks = [f"  note: {note.text}" for note in self.notes]
        bias = self.signed_bias
        if bias is not None:
            which = "overestimate" if bias > 0 else "underestimate" if bias < 0 else "equal the event rate"
            remarks.insert(0, f"  signed bias {bias:+.5f}: predictions {which} on average")
        return remarks

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{html.escape(remark.strip())}</li>" for remark in self._remarks())
        return (
            f"<p><strong>{html.escape(self._headline())}</strong></p>"
            + html_table(self._cells())
            + (f"<ul>{notes}</ul>" if notes else "")
        )


def _amount(value: float) -> str:
    """Format a count in full, a sum of weights with six digits."""
    return f"{value:,.6g}" if isinstance(value, float) else f"{value:,}"


def _decimals(value: float) -> str:
    """Format with four decimals, or in scientific notation below 0.001."""
    return f"{value:.4f}" if value == 0 or abs(value) >= 0.001 else f"{value:.1e}"


_MOST_EDGES = 1001  # of bins in which rows are added up without a table


class _Immutable:
    """Refuses attributes of instances of subclasses too; a frozen dataclass refuses only its own fields there."""

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")


@dataclass(frozen=True, eq=False, repr=False)
class GCE(_Immutable):
    r"""General calibration error, Definition 1 of Matsubara et al. (2023).

    .. math::

       \mathrm{GCE} = \bigl\| \left( L(D_1), \ldots, L(D_B) \right) \bigr\|

    Parameters
    ----------
    bins : callable
        `ScoreTable` to `Partition`: one of `calibrant.bins` or your own.
    loss : callable
        `Partition` to one number per bin: one of `calibrant.losses` or your own, which may declare the properties that
        inference uses (see `calibrant.losses`).
    norm : callable
        The losses and the sizes of the bins to one number: one of `calibrant.norms` or your own.
    name : str, keyword-only
        Name of the metric in results.

    See Also
    --------
    Breakdown, EqualWidth, absolute_gap, weighted_l1

    Notes
    -----
    Metrics are equal if their bins, losses and norms are equal, independent of names and classes.

    Examples
    --------
    >>> from calibrant import ECE, ScoreTable, losses, norms
    >>> from calibrant.metrics.bins import EqualWidth
    >>> worst_bias = GCE(EqualWidth(2), losses.signed_gap, norms.sup)
    >>> table = ScoreTable.from_arrays([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.7])
    >>> round(float(worst_bias(table)), 3)
    0.35
    >>> GCE(EqualWidth(10), losses.absolute_gap, norms.weighted_l1) == ECE()
    True
    """

    bins: Bins
    loss: Loss
    norm: Norm
    name: str = field(default="GCE", kw_only=True)
    kind: ClassVar[str] = "binary"
    has_bins: ClassVar[bool] = True

    def __post_init__(self) -> None:
        examples = {"bins": "cb.bins.EqualSize(10)", "loss": "cb.losses.absolute_gap", "norm": "cb.norms.weighted_l1"}
        for part, example in examples.items():
            value = getattr(self, part)
            if not callable(value) or isinstance(value, type):
                raise InputError(
                    f"{part} must be an object such as {example}; got {value!r}.",
                    hint="For a number of bins use n_bins." if part == "bins" else "",
                    argument=part,
                    value=value,
                )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GCE):
            return NotImplemented
        return (self.bins, self.loss, self.norm) == (other.bins, other.loss, other.norm)

    def __hash__(self) -> int:
        return hash((self.bins, self.loss, self.norm))

    def __call__(
        self, y_true: ScoreTable | Column, y_prob: Column | None = None, **rows: Unpack[RowOptions]
    ) -> Breakdown:
        """Measure a table, or rows of (y_true, y_prob) with the options of `ScoreTable.from_arrays`.

        Parameters
        ----------
        y_true, y_prob : columns, or one ScoreTable instead of both
        **rows
            Options of `ScoreTable.from_arrays`.

        Returns
        -------
        Breakdown
        """
        return self.measured(read_score_table(y_true, y_prob, rows))

    def measured(self, table: ScoreTable) -> Breakdown:
        """Return the value of a table, with its bins and notes.

        Parameters
        ----------
        table : ScoreTable
            Scores with their counts.

        Returns
        -------
        Breakdown
        """
        partition = self.bins(table)
        # A loss with several numbers per bin offers `columns` and `notes`.
        columns = (
            dict(self.loss.columns(partition)) if hasattr(self.loss, "columns") else {"loss": self.loss(partition)}
        )
        columns["loss"] = np.asarray(columns["loss"], dtype=np.float64)
        notes = self.loss.notes(partition) if hasattr(self.loss, "notes") else ()
        value = float(self.norm(columns["loss"], partition.n))
        return Breakdown(value, self, table, join_notes(table.notes, notes), partition, columns)

    def value(self, table: ScoreTable) -> float:
        """Return the value without a `Breakdown`, as replicates need it.

        Parameters
        ----------
        table : ScoreTable
            Scores with their counts.

        Returns
        -------
        float
            In the unit of the loss.
        """
        return self.value_over(self.bins(table))

    def value_of_rows(self, score: NDArray[Any], label: NDArray[Any]) -> float | None:
        """Return the value of rows in any order, or None where a table is needed; see `Metric`.

        Parameters
        ----------
        score : array
            Scores of the rows.
        label : array
            Outcomes of the rows, 0 or 1.

        Returns
        -------
        float or None
            Bitwise the value of the table of these rows.
        """
        if not (hasattr(self.bins, "row_edges") and self.needs_sums_only) or hasattr(self.loss, "notes"):
            return None
        edges = self.bins.row_edges()
        sums = _kernels.row_sums(score, label, edges) if edges.size <= _MOST_EDGES else None
        if sums is None:
            return None
        n, k, total = sums
        if not 0 < k.sum() < label.size:  # one class is noted
            return None
        used = np.flatnonzero(n)
        return self.value_over(Partition.from_sums(ScoreTable.empty(), n[used], k[used], total[used]))

    def value_over(self, partition: Partition) -> float:
        """Return the value over given bins, which metrics with equal bins can share.

        Parameters
        ----------
        partition : Partition
            Bins of a table.

        Returns
        -------
        float
        """
        return float(self.norm(self.loss(partition), partition.n))

    @property
    def unit(self) -> str:
        """Unit of the value, "%" or "1": that of the loss."""
        return getattr(self.loss, "unit", "1")

    @property
    def direction(self) -> Direction:
        """Which values are better: "lower", or 0.0 where the value has the sign of the gaps."""
        signed = getattr(self.loss, "keeps_sign", False) and not self._takes_absolute
        return getattr(self.loss, "direction", 0.0 if signed else "lower")

    @property
    def measures_gaps(self) -> bool:
        """Whether the value only grows with gaps of either sign, so that a calibrated model has the lowest."""
        signed = getattr(self.loss, "keeps_sign", False) and self._takes_absolute
        return bool(signed or getattr(self.loss, "measures_gaps", False))

    @property
    def needs_sums_only(self) -> bool:
        """Whether sums of rows, events and scores per bin decide the value."""
        return bool(getattr(self.loss, "needs_sums_only", False))

    @property
    def needs_counts(self) -> bool:
        """Whether the loss tests counts of rows, so that no null exists with importance weights or clusters."""
        return bool(getattr(self.loss, "needs_counts", False))

    @property
    def degree(self) -> float:
        """Power of the gaps with which the value grows."""
        return float(getattr(self.loss, "degree", 1.0))

    @property
    def range(self) -> tuple[float, float]:
        """Range of the metric in the population."""
        low, high = getattr(self.loss, "range", (0.0 if self.measures_gaps else -math.inf, math.inf))
        return (0.0, max(abs(low), abs(high))) if self._takes_absolute else (low, high)

    def range_of(self, table: ScoreTable) -> tuple[float, float]:
        """Return the range of the metric in a population with the scores of the table.

        A mean of signed gaps (the bias) is the mean score less an event rate, so it lies between the mean score less 1
        and the mean score. Other values are bounded by the lowest and the highest score.

        Parameters
        ----------
        table : ScoreTable
            Scores with their counts.

        Returns
        -------
        tuple of two floats
            Lower and upper bound.

        Examples
        --------
        >>> from calibrant import ScoreTable, metrics
        >>> metrics.Bias().range_of(ScoreTable.from_counts([0.1, 0.3], [10, 10], [1, 4]))
        (-0.8, 0.2)
        """
        bounds = getattr(self.loss, "range_of_scores", None)
        if bounds is None or not len(table):
            return self.range
        extremes = table.extremes
        if self._is_mean_of_signed_gaps:
            extremes = (float(EqualWidth(1)(table).mean_score[0]),) * 2
        (low, high), (least, most) = self.range, bounds(*extremes)
        least, most = (0.0, max(abs(least), abs(most))) if self._takes_absolute else (least, most)
        return max(low, least), min(high, most)

    @property
    def interval_method(self) -> str:
        """How `calibrant.interval` finds limits: as the loss declares, or the norm, or for gaps in general.

        The mean of signed gaps is the bias, whatever the bins.
        """
        if self._is_mean_of_signed_gaps and getattr(self.loss, "equals_gap", None) == "signed":
            return "bias"
        if not self.measures_gaps:
            return str(getattr(self.loss, "interval_method", "symmetric"))
        return str(getattr(self.loss, "interval_method", getattr(self.norm, "interval_method", "anchored")))

    @property
    def has_null(self) -> bool:
        """Whether a null distribution exists."""
        return bool(getattr(self.loss, "has_null", True))

    @property
    def _is_mean_of_signed_gaps(self) -> bool:
        signed = getattr(self.loss, "keeps_sign", False) and getattr(self.loss, "degree", 1) == 1
        mean = getattr(self.norm, "is_mean", False) and getattr(self.norm, "keeps_sign", False)
        return bool(signed and mean and not self._takes_absolute)

    @property
    def _takes_absolute(self) -> bool:
        return bool(getattr(self.norm, "takes_absolute", False))

    @cached_property
    def spec(self) -> dict[str, Any]:
        """Name and parts, JSON-able; `from_spec` rebuilds the metric from them."""
        parts = {part: part_to_spec(getattr(self, part)) for part in ("bins", "loss", "norm")}
        return {"name": self.name, **parts}

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> "GCE":
        """Return the metric that a specification describes.

        Parameters
        ----------
        spec : mapping
            What `spec` of a GCE returned.

        Returns
        -------
        GCE

        Examples
        --------
        >>> from calibrant import TCE
        >>> GCE.from_spec(TCE(alpha=0.01).spec) == TCE(alpha=0.01)
        True
        """
        try:
            bins, loss, norm = (part_from_spec(spec[part], part) for part in ("bins", "loss", "norm"))
            if not isinstance(spec["name"], str):
                raise TypeError("name must be text")
            return GCE(bins, loss, norm, name=spec["name"])
        except (AttributeError, KeyError, TypeError) as error:
            raise InputError(
                f"spec must be the specification of a GCE; got {spec!r} ({type(error).__name__}: {error}).",
                hint="Pass metric.spec.",
                value=spec,
            ) from error

    def __repr__(self) -> str:
        shown = (f"{name}={getattr(part, '__name__', repr(part))}" for name, part in self._shown().items())
        return f"{type(self).__name__}({', '.join(shown)})"

    def _shown(self) -> dict[str, object]:
        """Settings that differ from the defaults of the class; the parts where the class has no defaults."""
        parameters = inspect.signature(type(self)).parameters
        if any(parameter.default is parameter.empty for parameter in parameters.values()):
            return {"bins": self.bins, "loss": self.loss, "norm": self.norm, "name": self.name}
        default = type(self)()  # type: ignore[call-arg]
        found = {name: self._setting(name) for name in parameters if self._setting(name) != default._setting(name)}
        # Show only the number of bins if their kind is the default.
        kind: Any = type(default.bins)
        usual = "n_bins" in found and self.bins == kind(found["n_bins"])
        found.pop("bins" if usual else "n_bins", None)
        return found

    def _setting(self, name: str) -> Any:
        return next((getattr(part, name) for part in (self, self.loss, self.bins) if hasattr(part, name)), None)


MAX_BINS = 1_000  # the test-based diagram shows at most as many
_MAX_CELLS = 800  # of all bins together, which keeps image files small


@dataclass(frozen=True, eq=False)
class RejectionProfile:
    """Decisions of the test of TCE at scores from the lowest to the highest of each bin.

    Attributes
    ----------
    score : ndarray
        Per bin its lowest score, the midpoints of cells of equal length, and its highest score; two scores if these are
        equal.
    rejected : ndarray of bool
        Whether the outcomes of the bin reject that score.

    See Also
    --------
    TCE, RejectionRate

    Examples
    --------
    >>> import calibrant as cb
    >>> from calibrant.results import RejectionProfile
    >>> table = cb.ScoreTable.from_counts([0.1, 0.3, 0.8], [100, 100, 100], [16, 33, 75])
    >>> profile = RejectionProfile.measure(cb.TCE(bins=cb.bins.EqualSize(1))(table))  # one bin, event rate 0.41
    >>> kept = profile.score[~profile.rejected]
    >>> round(float(kept.min()), 2), round(float(kept.max()), 2)
    (0.37, 0.46)
    """

    score: Floats
    rejected: Bools

    @classmethod
    def measure(cls, breakdown: Breakdown) -> "RejectionProfile | None":
        """Test the scores of a test-based breakdown; None with more than 1,000 bins.

        Parameters
        ----------
        breakdown : Breakdown
            Result of TCE, or of another metric whose loss is a `RejectionRate`.

        Returns
        -------
        RejectionProfile or None
            Decisions at scores of each bin.
        """
        partition, loss = breakdown.partition, breakdown.definition.loss
        assert tests_scores(loss)
        if len(partition) > MAX_BINS:
            return None
        cells = cells_per_bin(len(partition))
        ends = zip(partition.min_score, partition.max_score, strict=True)
        scores = [_cell_scores(low, high, cells) for low, high in ends]
        bins = np.repeat(np.arange(len(scores)), [each.size for each in scores])
        score = np.concatenate(scores)
        return cls(score, loss.rejects(partition, bins, score))


def cells_per_bin(n_bins: int) -> int:
    """Return the number of cells into which the diagram divides each bin."""
    return int(np.clip(_MAX_CELLS // n_bins, 3, 48))


def _cell_scores(low: float, high: float, cells: int) -> Floats:
    if low == high:
        return np.array([low, high])
    edges = np.linspace(low, high, cells + 1)
    return np.concatenate([[low], (edges[1:] + edges[:-1]) / 2, [high]])
