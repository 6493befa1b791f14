"""`Breakdown`: the value of a metric with the bins that it comes from."""

import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from calibrant._support.arrays import read_only
from calibrant._support.cached_properties import cached_property
from calibrant._support.text_tables import html_table, text_table
from calibrant._support.typing import Floats
from calibrant.metrics.metric import MetricValue
from calibrant.metrics.norms import weighted_mean
from calibrant.metrics.significance import clopper_pearson
from calibrant.tables.partition import Partition
from calibrant.tables.score_table import ScoreTable

if TYPE_CHECKING:
    from calibrant.metrics.gce import GCE

__all__ = ["Breakdown"]

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
        p = self.partition
        columns = {
            "lower": p.lower,
            "upper": p.upper,
            "min_score": p.min_score,
            "max_score": p.max_score,
            "n": p.n,
            "k": p.k,
            "rate": p.rate,
            "mean_score": p.mean_score,
            **self._columns,
        }
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
