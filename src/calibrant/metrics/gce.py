"""`GCE`, general calibration error: a kind of bins, a loss and a norm; and `Breakdown`, what it returns."""

import html
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._support.arrays import read_only
from calibrant._support.errors import InputError, Note, join_notes
from calibrant._support.json_values import number
from calibrant._support.text_tables import html_table, text_table
from calibrant._support.typing import Column, Floats
from calibrant.metrics.bins import Bins
from calibrant.metrics.losses import Loss
from calibrant.metrics.norms import Norm, weighted_mean
from calibrant.metrics.significance import clopper_pearson
from calibrant.tables.partition import Partition
from calibrant.tables.rows import table_of
from calibrant.tables.score_table import ScoreTable

__all__ = ["GCE", "Breakdown"]

# Where the parts of a specification are looked up, and nowhere else.
_PART_MODULES = ("bins", "costs", "losses", "norms", "optimal_bins", "significance")
_ROWS_SHOWN = 12


@dataclass(frozen=True)
class GCE:
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
        What results are called.

    Examples
    --------
    >>> from calibrant import EqualWidth, ScoreTable, losses, norms
    >>> worst_bias = GCE(EqualWidth(2), losses.signed_gap, norms.sup)
    >>> table = ScoreTable.from_arrays([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.7])
    >>> round(float(worst_bias(table)), 3)
    0.35
    """

    bins: Bins
    loss: Loss
    norm: Norm
    name: str = field(default="GCE", kw_only=True, compare=False)

    @property
    def unit(self) -> str:
        """The unit of the value, "%" or "1": that of the loss."""
        return getattr(self.loss, "unit", "1")

    def __post_init__(self) -> None:
        examples = {"bins": "cb.Quantile(10)", "loss": "cb.losses.absolute_gap", "norm": "cb.norms.weighted_l1"}
        for part, example in examples.items():
            value = getattr(self, part)
            if not callable(value) or isinstance(value, type):
                raise InputError(
                    f"{part} must be an object such as {example}; it is {value!r}.",
                    hint="For a number of bins use n_bins." if part == "bins" else "",
                    argument=part,
                    value=value,
                )

    def __call__(self, y_true: ScoreTable | Column, y_prob: Column | None = None, **rows: Any) -> "Breakdown":
        """Measure a table, or rows of (y_true, y_prob) with the options of `ScoreTable.from_arrays`."""
        table = table_of(y_true, y_prob, rows)
        partition = self.bins(table)
        # A loss with more to tell than one number a bin offers `columns`, and `notes`.
        columns = (
            dict(self.loss.columns(partition)) if hasattr(self.loss, "columns") else {"loss": self.loss(partition)}
        )
        columns["loss"] = np.asarray(columns["loss"], dtype=np.float64)
        notes = self.loss.notes(partition) if hasattr(self.loss, "notes") else ()
        value = float(self.norm(columns["loss"], partition.n))
        return Breakdown(value, self, partition, columns, join_notes(table.notes, notes))

    def value(self, table: ScoreTable) -> float:
        """The value alone: what the thousands of replicates behind an interval need."""
        return self.value_over(self.bins(table))

    def value_over(self, partition: Partition) -> float:
        """The value over given bins, which metrics with the same kind of bins can share."""
        return float(self.norm(self.loss(partition), partition.n))

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
    def degree(self) -> float:
        """Power of the gaps with which the value grows."""
        return float(getattr(self.loss, "degree", 1.0))

    @property
    def range(self) -> tuple[float, float]:
        """Between which the value of the population lies."""
        low, high = getattr(self.loss, "range", (0.0 if self.measures_gaps else -math.inf, math.inf))
        return (0.0, max(abs(low), abs(high))) if self._takes_absolute else (low, high)

    @property
    def interval_method(self) -> str:
        """How `calibrant.interval` finds limits: as the loss declares, or the norm, or for gaps in general."""
        if not self.measures_gaps:
            return str(getattr(self.loss, "interval_method", "symmetric"))
        return str(getattr(self.loss, "interval_method", getattr(self.norm, "interval_method", "anchored")))

    @property
    def _takes_absolute(self) -> bool:
        return bool(getattr(self.norm, "takes_absolute", False))

    @property
    def spec(self) -> dict[str, Any]:
        """All that decides the value, as plain JSON-able data; `from_spec` rebuilds the metric from it."""
        parts = {part: part_to_spec(getattr(self, part)) for part in ("bins", "loss", "norm")}
        return {"name": self.name, **parts}

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> "GCE":
        """The metric that a specification describes.

        >>> from calibrant import TCE
        >>> GCE.from_spec(TCE(alpha=0.01).spec) == TCE(alpha=0.01)
        True
        """
        try:
            bins, loss, norm = (part_from_spec(spec[part]) for part in ("bins", "loss", "norm"))
            return cls(bins, loss, norm, name=spec["name"])
        except (AttributeError, KeyError, TypeError) as error:
            raise InputError(
                f"This is not the specification of a metric ({type(error).__name__}: {error}).",
                hint="Pass what GCE.spec gave.",
                argument="spec",
                value=spec,
            ) from error


@dataclass(frozen=True, eq=False, repr=False)
class Breakdown:
    """A value with the bins it came from and the specification that produced it.

    Attributes
    ----------
    value : float
    gce : GCE
        What was measured.
    partition : Partition
    notes : tuple of Note
        What a reader must know about the input.
    """

    value: float
    gce: GCE
    partition: Partition
    _columns: Mapping[str, NDArray[Any]]
    notes: tuple[Note, ...] = ()

    @property
    def metric(self) -> str:
        """Name of the metric."""
        return self.gce.name

    @property
    def unit(self) -> str:
        """Unit of the value: "%" or "1"."""
        return self.gce.unit

    @property
    def spec(self) -> dict[str, Any]:
        """All that decided the value, JSON-able; see `GCE.from_spec`."""
        return self.gce.spec

    @cached_property
    def per_bin(self) -> dict[str, NDArray[Any]]:
        """One array a column, one entry a bin: edges, scores, counts, rate, loss (and rejected rows)."""
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
        """Exact limits of the rate of the event in every bin; see `significance.clopper_pearson`."""
        p = self.partition
        return clopper_pearson(p.effective_k, p.effective_n, confidence_level=confidence_level)

    @property
    def n_in(self) -> int:
        """Rows that came in."""
        return self.partition.table.n_in

    @property
    def n_used(self) -> int:
        """Rows that were counted."""
        return self.partition.table.n_used

    @property
    def n_dropped(self) -> int:
        """Rows that were left out; the notes say why."""
        return self.partition.table.n_dropped

    def __float__(self) -> float:
        return self.value

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON."""
        return {
            "schema_version": 1,
            "metric": self.metric,
            **number("value", self.value),
            **({} if self.signed_bias is None else {"signed_bias": self.signed_bias}),
            "unit": self.unit,
            "spec": self.spec,
            "n_in": self.n_in,
            "n_used": self.n_used,
            "n_dropped": self.n_dropped,
            "n_empty_bins": self.partition.n_empty,
            "per_bin": {name: column.tolist() for name, column in self.per_bin.items()},
            "notes": [note.to_dict() for note in self.notes],
        }

    def _headline(self) -> str:
        value = f"{self.value:.2f} %" if self.unit == "%" else f"{self.value:.5f}"
        partition, table = self.partition, self.partition.table
        empty = f", {partition.n_empty} empty" if partition.n_empty else ""
        rows = f"{table.size:,} rows" if not table.importance else f"total weight {table.size:,.6g}"
        bins = f"{len(partition)} bin{'s' if len(partition) != 1 else ''}{empty}"
        return f"{self.metric} = {value}   ({rows}, {100 * table.prevalence:.3g} % events, {bins})"

    def _cells(self) -> list[list[str]]:
        """The rows of the table that people read: a heading and one row a bin, the middle left out if long."""
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
        """Mean prediction minus rate, where the loss must not be read without it (costs); else None."""
        if "signed_gap" not in self._columns:
            return None
        return weighted_mean(self._columns["signed_gap"], self.partition.n)

    def _remarks(self) -> list[str]:
        """What must not be read without the value: the bias beside a cost, and the notes."""
        remarks = [f"  note: {note.text}" for note in self.notes]
        bias = self.signed_bias
        if bias is not None:
            which = "too high" if bias > 0 else "too low" if bias < 0 else "neither too high nor too low"
            remarks.insert(0, f"  signed bias {bias:+.5f}: predictions are {which} on average")
        return remarks

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{html.escape(remark.strip())}</li>" for remark in self._remarks())
        return (
            f"<p><strong>{html.escape(self._headline())}</strong></p>"
            + html_table(self._cells())
            + (f"<ul>{notes}</ul>" if notes else "")
        )


def _amount(value: float) -> str:
    """A count in full, a sum of weights to six digits."""
    return f"{value:,.6g}" if isinstance(value, float) else f"{value:,}"


def _decimals(value: float) -> str:
    """Four decimals, or the leading digits of what these would hide."""
    return f"{value:.4f}" if value == 0 or abs(value) >= 0.001 else f"{value:.1e}"


def part_to_spec(part: object) -> Any:
    """A function as its name, an object with settings as {name: settings}, plain values as they are."""
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
    # "user:" keeps a function of your own norms.py apart from one of ours.
    return f"{module.rpartition('.')[2]}.{name}" if module.startswith("calibrant.") else f"user:{module}.{name}"


def part_from_spec(spec: Any) -> Any:
    if isinstance(spec, Mapping):
        ((name, settings),) = spec.items()
        return _part(name)(**{key: _setting(value) for key, value in settings.items()})
    return _part(spec)


def _setting(value: Any) -> Any:
    is_part = isinstance(value, Mapping) or (isinstance(value, str) and value.partition(".")[0] in _PART_MODULES)
    return part_from_spec(value) if is_part else value


def _part(name: str) -> Any:
    module, _, attribute = name.partition(".")
    if module in _PART_MODULES:
        home = import_module(f"calibrant.metrics.{module}")
        if attribute in home.__all__:
            return getattr(home, attribute)
    raise InputError(
        f"{name!r} is not a part of Calibrant, so its specification cannot be rebuilt.",
        hint="Rebuild a metric with parts of your own from the parts.",
        argument="spec",
        value=name,
    )
