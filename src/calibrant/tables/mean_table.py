"""`MeanTable`: point predictions with the count, mean and spread of the outcomes."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from calibrant import _kernels
from calibrant._support import columns as _columns
from calibrant._support.arrays import Column, Floats, Ints, Weights, read_only
from calibrant._support.errors import InputError, Note, join_notes
from calibrant._support.lazy import cached_property
from calibrant.tables.rows import DROPPED, Missing, Rows, TableReader
from calibrant.tables.score_table import check_one_kind

_MOST = 2**53  # rows are counted exactly up to this
_LARGEST = 1e90  # cubes of such numbers and of their inverses are finite, and so are sums of these
ROUNDING = 1e-14  # smaller differences, relative to the largest number, are rounding
ONE_COLUMN = "Pass one column of numbers."


@dataclass(frozen=True, eq=False, repr=False)
class MeanTable:
    """Point predictions, and count, mean and spread of the outcomes of each.

    Each row is one entry; `merged` pools rows with equal predictions, which is what a query can return. Metrics of bias
    need nothing else, except the tests of bins, which use skewness. Tables of parts of the data add up.

    Attributes
    ----------
    prediction : ndarray
    n : ndarray
        Number of rows with each prediction (int64), or sums of importance weights (float64).
    mean : ndarray
        Mean outcome of these rows.
    m2 : ndarray
        Sum of (weighted) squared deviations of their outcomes from that mean; 0 for single rows.
    w2 : ndarray or None
        Sums of squared importance weights; None for counts.
    notes : tuple of Note
    n_in, n_dropped : int
        Number of rows read, and of those that were dropped (a missing value, weight or frequency 0).
    single : bool
        Whether each entry is one row of weight 1.

    See Also
    --------
    ScoreTable, bias_by_bin, ForecastTable

    Examples
    --------
    >>> table = MeanTable.from_arrays([3.0, 5.0, 4.0], [2.0, 4.0, 4.0])
    >>> table.size, table.merged().prediction, table.merged().mean
    (3, array([2., 4.]), array([3. , 4.5]))
    """

    prediction: Floats
    n: Weights
    mean: Floats
    m2: Floats
    w2: Floats | None = None
    notes: tuple[Note, ...] = ()
    n_in: int = 0
    n_dropped: int = 0
    single: bool = False

    kind: ClassVar[str] = "point"

    def __post_init__(self) -> None:
        for name in ("prediction", "n", "mean", "m2", "w2"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    def __setstate__(self, state: dict[str, Any]) -> None:
        from calibrant.tables import storage

        storage.restore(self, state, storage.check_mean_table)

    @classmethod
    def from_arrays(
        cls,
        y_true: Column,
        y_pred: Column,
        *,
        sample_weight: Column | None = None,
        frequency: Column | None = None,
        missing: Missing = "raise",
    ) -> "MeanTable":
        """Read rows.

        Parameters
        ----------
        y_true, y_pred : columns of finite numbers
            Outcomes and predictions, matched by position.
        sample_weight : column, optional
            Importance weights, whatever their values.
        frequency : column of whole numbers, optional
            Number of equal rows that each row stands for. Give `sample_weight` or `frequency`, not both.
        missing : {"raise", "drop"}
            How rows with a missing value are treated: an error, or dropped and counted.

        Returns
        -------
        MeanTable
        """
        options: dict[str, Any] = {"sample_weight": sample_weight, "frequency": frequency, "missing": missing}
        rows = Rows.read(y_true, {"y_pred": y_pred}, **options, hint=ONE_COLUMN)
        return cls.from_rows(rows)

    @classmethod
    def from_rows(cls, rows: Rows) -> "MeanTable":
        """Validate rows of outcomes and predictions (the first forecast), and return their table.

        Parameters
        ----------
        rows : Rows
            Columns of outcomes and predictions.

        Returns
        -------
        MeanTable
            One entry per row.
        """
        used = check_means(rows)
        y, p = used.y.values, used.forecasts[0].values
        about = (used.notes, used.n_in, used.n_dropped)
        nothing = np.broadcast_to(0.0, y.shape)
        if used.weight is None:
            return cls(p, np.broadcast_to(np.int64(1), y.shape), y, nothing, None, *about, single=True)
        weight = used.weight.values
        if used.importance:
            if not np.isfinite(weight.sum() ** 2):
                raise InputError(
                    f"sample_weight must have a finite squared sum; got the sum {weight.sum():.6g}.",
                    hint="Divide the weights by a constant.",
                )
            return cls(p, weight, y, nothing, weight**2, *about)
        if weight.sum() > _MOST:
            total = float(weight.sum())
            raise InputError(f"frequency must add up to at most 2**53; got the sum {total:.6g}.", value=total)
        return cls(p, weight.astype(np.int64), y, nothing, None, *about)

    @classmethod
    def from_moments(cls, prediction: Column, n: Column, mean: Column, m2: Column) -> "MeanTable":
        """Return the table of sums that were computed elsewhere, such as by a query that groups rows by prediction.

        Parameters
        ----------
        prediction, n, mean, m2 : columns
            See the attributes; n whole and positive, m2 not negative.

        Returns
        -------
        MeanTable
        """
        names = ("prediction", "n", "mean", "m2")
        columns = [
            (_moderate if name in ("prediction", "mean") else _columns.finite)(
                _columns.read(column, name, hint=ONE_COLUMN)
            )
            for column, name in zip((prediction, n, mean, m2), names, strict=True)
        ]
        _columns.check_lengths(columns)
        _columns.refuse_missing(columns)
        p, count, average, spread = (column.values for column in columns)
        whole = (count == np.rint(count)) & (count >= 1) & (count <= _MOST)
        columns[1].refuse(~whole, "must be whole numbers from 1")
        columns[3].refuse(spread < 0, "must not be negative")
        columns[3].refuse((count == 1) & (spread != 0), "must be 0 where there is one row")
        if not p.size:
            raise InputError("There are no rows; at least one is needed.", argument="prediction")
        return cls(p, count.astype(np.int64), average, spread, n_in=int(count.sum()))

    def __len__(self) -> int:
        return self.prediction.size

    @property
    def size(self) -> float:
        """Number of rows, or total weight."""
        return self.n.sum().item() if not self.single else len(self)

    @property
    def importance(self) -> bool:
        """Whether rows have importance weights."""
        return self.w2 is not None

    @property
    def effective_size(self) -> float:
        """Size of a simple sample with as much information: size, or size^2 / sum of squared weights."""
        return self.size if self.w2 is None else self.size**2 / float(self.w2.sum())

    @property
    def has_rows(self) -> bool:
        """Whether the table has the outcome of each row, not only means."""
        return self.single or not self.m2.any()

    @cached_property
    def rounding(self) -> float:
        """Differences of predictions and outcomes up to this size are rounding."""
        ends = (self.prediction.max(), -self.prediction.min(), self.mean.max(), -self.mean.min())
        return ROUNDING * float(max(ends))

    def average(self, values: Floats) -> float:
        """Return the mean of a value of each entry over rows, or by weight.

        Parameters
        ----------
        values : array
            One value per entry.

        Returns
        -------
        float
            The mean, in which an entry counts as often as it has rows, or by its weight.
        """
        return float(values.mean()) if self.single else float(np.sum(self.n * values) / self.size)

    @property
    def mean_outcome(self) -> float:
        """Mean outcome of all rows."""
        return self.average(self.mean)

    @property
    def mean_prediction(self) -> float:
        """Mean prediction of all rows."""
        return self.average(self.prediction)

    def merged(self) -> "MeanTable":
        """Return the table with one entry for each distinct prediction, in increasing order.

        Returns
        -------
        MeanTable
            Outcomes of equal predictions are pooled: their count, mean and spread are kept.
        """
        order = self.rising()
        p = self.prediction[order]
        start = np.flatnonzero(np.concatenate([[True], p[1:] != p[:-1]]))
        if start.size == p.size and self.has_rows:
            return self._with(p, self.n[order], self.mean[order], self.m2[order], order)
        n = np.add.reduceat(self.n[order], start)
        mean = np.add.reduceat((self.n * self.mean)[order], start) / n
        offset = self.mean[order] - np.repeat(mean, np.diff(np.append(start, p.size)))
        m2 = np.add.reduceat((self.n[order] * offset**2) + self.m2[order], start)
        outcomes = self.mean[order]
        same = np.maximum.reduceat(outcomes, start) == np.minimum.reduceat(outcomes, start)
        if self.has_rows:  # equal outcomes have spread 0, in spite of rounding
            m2[same] = 0.0
        return self._with(p[start], n, mean, m2, order, start)

    def rising(self) -> Ints:
        """Return the entries in rising order of prediction and outcome, so that sums do not depend on that of rows.

        Predictions are sorted alone; outcomes are compared only where predictions are equal.

        Returns
        -------
        array of int
            Positions of the entries.
        """
        return np.asarray(read_only(self._rising))

    @cached_property
    def _rising(self) -> Ints:
        if not self.single:  # equal entries may differ in weight
            return np.lexsort((self.mean, self.prediction))
        order: Ints = np.argsort(self.prediction)
        ordered = self.prediction[order]
        equal = ordered[1:] == ordered[:-1]
        tied = np.append(equal, False) | np.append(False, equal)
        rows = order[tied]
        order[tied] = rows[np.lexsort((self.mean[rows], self.prediction[rows]))]
        return order

    def in_order(self) -> "MeanTable":
        """Return the entries in rising order; the table knows it, and does not sort again.

        Returns
        -------
        MeanTable
        """
        found = self.part(self.rising())
        found.__dict__["_rising"] = np.arange(len(found))
        return found

    @cached_property
    def extremes(self) -> tuple[float, float]:
        """The lowest and the highest prediction."""
        return float(self.prediction.min()), float(self.prediction.max())

    @property
    def span(self) -> tuple[float, float]:
        """What bins of equal width divide: from the lowest to the highest prediction."""
        return self.extremes

    def at_ranks(self, ranks: Weights) -> Floats:
        """Return the lowest prediction at which the cumulative size of rows reaches each rank; -inf for rank 0.

        Parameters
        ----------
        ranks : array
            Ranks from 0 to the size of the table; whole numbers for counts.

        Returns
        -------
        array
            One prediction per rank.
        """
        found, positive = np.full(ranks.size, -np.inf), ranks > 0
        places = ranks[positive]
        if self.single and places.size and "_rising" in self.__dict__:  # the order is known
            found[positive] = self.prediction[self.rising()[places.astype(np.int64) - 1]]
        elif self.single and places.size:  # selection instead of a full sort
            places = places.astype(np.int64) - 1
            found[positive] = np.partition(self.prediction, np.unique(places))[places]
        elif places.size:
            merged = self.merged()
            reached = np.searchsorted(np.cumsum(merged.n), places)
            found[positive] = merged.prediction[np.minimum(reached, len(merged) - 1)]
        return found

    def outcome_sums(self) -> tuple[Floats, Weights, Weights]:
        """Return the distinct predictions, rising, with the size and the sum of outcomes of each, not negative.

        All outcomes are shifted by the same number, which changes no comparison of their means.

        Returns
        -------
        tuple of three arrays
            Predictions, sizes and sums.
        """
        merged = self.merged()
        n = merged.n.astype(np.float64)
        return merged.prediction, n, n * (merged.mean - merged.mean.min())

    def cut_after(self, last: Floats, *, edges: Floats | None = None) -> "MeanPartition":
        """Return bins that end with these predictions; see `MeanPartition.from_last`.

        Parameters
        ----------
        last : array
            The last prediction of each bin but the last one; they must not decrease.
        edges : array, optional
            Nominal edges, one more than bins.

        Returns
        -------
        MeanPartition
        """
        return MeanPartition.from_last(self, last, edges=edges)

    def _with(
        self, prediction: Floats, n: Weights, mean: Floats, m2: Floats, order: Ints, start: Ints | None = None
    ) -> "MeanTable":
        w2 = None if self.w2 is None else self.w2[order]
        if w2 is not None and start is not None:
            w2 = np.add.reduceat(w2, start)
        single = self.single and start is None
        return MeanTable(prediction, n, mean, m2, w2, self.notes, self.n_in, self.n_dropped, single)

    def part(self, rows: Any) -> "MeanTable":
        """Return some of the entries: a mask, or their positions.

        Parameters
        ----------
        rows : array
            Mask or positions of entries.

        Returns
        -------
        MeanTable
        """
        w2 = None if self.w2 is None else self.w2[rows]
        columns = (self.prediction[rows], self.n[rows], self.mean[rows], self.m2[rows])
        notes = tuple(note for note in self.notes if note.code not in DROPPED)
        n_in = len(columns[0]) if self.importance else int(columns[1].sum())
        return MeanTable(*columns, w2, notes, n_in, 0, self.single)

    def map(self, f: Callable[[Floats], Floats]) -> "MeanTable":
        """Return the table of the predictions ``f(prediction)``.

        Parameters
        ----------
        f : callable
            Function from an array of predictions to as many finite numbers, such as a fitted recalibrator.

        Returns
        -------
        MeanTable
            The entries keep their order; equal predictions are not merged.
        """
        moved = np.array(f(self.prediction), dtype=np.float64)
        if moved.shape != self.prediction.shape or not np.isfinite(moved).all():
            raise InputError(
                f"f must return a finite number for each of {len(self):,} predictions; got an array of shape "
                f"{moved.shape}{'' if np.isfinite(moved).all() else ' with other values'}."
            )
        return MeanTable(moved, self.n, self.mean, self.m2, self.w2, self.notes, self.n_in, self.n_dropped, self.single)

    def rows_by_weight(self) -> "MeanTable":
        """Return the table for a fit: the sum of weights is the number of rows, so weight 2 equals two rows.

        Whole sums become counts. Other sums stay real numbers, and the effective number of rows equals their sum.

        Returns
        -------
        MeanTable
            The same table if it holds counts.
        """
        if not self.importance:
            return self
        if bool((self.n == np.rint(self.n)).all()):
            return replace(self, n=self.n.astype(np.int64), w2=None)
        return replace(self, w2=self.n)

    def __radd__(self, other: object) -> "MeanTable":
        # sum() starts with 0.
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __add__(self, other: "MeanTable") -> "MeanTable":
        if not isinstance(other, MeanTable):
            return NotImplemented
        check_one_kind([self, other])
        both = {
            name: np.concatenate([getattr(self, name), getattr(other, name)])
            for name in ("prediction", "n", "mean", "m2")
        }
        w2 = None if self.w2 is None or other.w2 is None else np.concatenate([self.w2, other.w2])
        notes = join_notes(self.notes, other.notes)
        n_in, lost = self.n_in + other.n_in, self.n_dropped + other.n_dropped
        return MeanTable(**both, w2=w2, notes=notes, n_in=n_in, n_dropped=lost, single=self.single and other.single)

    def __eq__(self, other: object) -> bool:
        """Return whether both hold the same rows in any order; means and spreads are equal within rounding."""
        if not isinstance(other, MeanTable):
            return NotImplemented
        a, b = self.merged(), other.merged()
        if len(a) != len(b) or a.importance != b.importance or not np.array_equal(a.prediction, b.prediction):
            return False
        size = float(max(np.abs(a.mean).max(), np.abs(b.mean).max()))
        return (
            np.allclose(a.n, b.n, rtol=1e-12, atol=0)
            and np.allclose(a.mean, b.mean, rtol=1e-12, atol=1e-13 * size)
            and np.allclose(a.m2, b.m2, rtol=1e-9, atol=1e-13 * size**2 * float(a.n.max()))
            and (a.w2 is None or b.w2 is None or np.allclose(a.w2, b.w2, rtol=1e-12, atol=0))
        )

    def __repr__(self) -> str:
        rows = f"total weight {self.size:,.6g}" if self.importance else f"{self.size:,} rows"
        return f"MeanTable({rows}, mean prediction {self.mean_prediction:.6g}, mean outcome {self.mean_outcome:.6g})"


def check_means(rows: Rows) -> Rows:
    """Validate numeric outcomes and predictions; return the rows that are used."""
    return rows.check(_moderate, _moderate).select()


def _moderate(column: _columns.ColumnData) -> _columns.ColumnData:
    """Return the column as finite numbers whose squares are finite and do not vanish."""
    column = _columns.finite(column)
    known = np.abs(column.values if column.missing is None else column.values[~column.mask])
    largest = float(known.max()) if known.size else 0.0
    if largest == 0 or 1 / _LARGEST < largest < _LARGEST:
        return column
    raise column.error(
        f"must hold numbers whose largest lies between {1 / _LARGEST:g} and {_LARGEST:g} in size, so that powers "
        f"exist; got {largest:.6g}.",
        hint="Use another unit.",
    )


# Reads the table of a metric of point predictions.
read_mean_table: TableReader[MeanTable] = TableReader(MeanTable)


def need_rows(table: MeanTable, name: str) -> None:
    """Refuse a merged table where the outcomes of single rows are needed."""
    if not table.has_rows:
        raise InputError(
            f"{name} needs outcomes row by row; got a table that holds only means of several rows.",
            hint="Pass y_true and y_pred.",
            argument="table",
        )


_RUN = 1 << 15  # entries at a time: temporary arrays of this size stay in the processor's cache


@dataclass(frozen=True, eq=False)
class MeanPartition:
    """Entries of a table in bins of their prediction: no bin is empty, and equal predictions share one.

    Made by a kind of bins (``EqualSize(10)(table)``). The entries stay in their order; `labels` has the bin of each.

    Attributes
    ----------
    table : MeanTable
    labels : ndarray of int64
        For each entry of the table the number of its bin, from 0.
    lower, upper : ndarray of float64
        Edges of each bin: the nominal ones where the kind of bins has such. Otherwise a bin holds predictions above
        `lower`, up to and including `upper`; the first bin includes its `lower`.

    Examples
    --------
    >>> from calibrant.metrics.bins import EqualSize
    >>> table = MeanTable.from_arrays([1.0, 2.0, 5.0, 9.0], [1.0, 3.0, 4.0, 8.0])
    >>> halves = EqualSize(2)(table)
    >>> halves.n, halves.mean(lambda run: table.mean[run]), halves.upper
    (array([2., 2.]), array([1.5, 7. ]), array([3., 8.]))
    """

    table: MeanTable
    labels: Ints
    lower: Floats
    upper: Floats

    def __setstate__(self, state: dict[str, Any]) -> None:
        from calibrant.tables import storage

        storage.restore(self, state, storage.check_mean_partition)

    @classmethod
    def from_last(cls, table: MeanTable, last: Floats, *, edges: Floats | None = None) -> "MeanPartition":
        """Return bins that end with the predictions `last`, which must not fall; the last bin ends with the table.

        `edges`, one more than bins, are nominal edges.
        """
        low, high = table.extremes
        if edges is None:
            last = np.unique(last[(last >= low) & (last < high)])
            labels = _above(last, table.prediction)
            return cls(table, labels, np.concatenate([[low], last]), np.concatenate([last, [high]]))
        labels = _above(last, table.prediction)
        occupied = np.bincount(labels, minlength=last.size + 1) > 0
        return cls(table, (np.cumsum(occupied) - 1)[labels], edges[:-1][occupied], edges[1:][occupied])

    def __len__(self) -> int:
        """Return the number of bins."""
        return self.lower.size

    def sums(self, of: Callable[[slice], Floats | Weights] | None = None) -> Floats:
        """Return the sums per bin of the values that `of` gives for a run of entries; without it, counts of entries."""
        total = np.zeros(len(self))
        for first in range(0, len(self.table), _RUN):
            run = slice(first, first + _RUN)
            values = None if of is None else of(run)
            total += np.bincount(self.labels[run], weights=values, minlength=total.size)
        return total

    def weighted(self, of: Callable[[slice], Floats]) -> Floats:
        """Return the sums per bin of values that count once per row, or by weight."""
        return self.sums(of if self.table.single else lambda run: self.table.n[run] * of(run))

    def mean(self, of: Callable[[slice], Floats]) -> Floats:
        """Return the means per bin of the values that `of` gives for a run of entries."""
        return self.weighted(of) / self.n

    @cached_property
    def n(self) -> Floats:
        """Rows in each bin, or their weight."""
        return self.sums(None if self.table.single else lambda run: self.table.n[run])

    @cached_property
    def effective_n(self) -> Floats:
        """Size of a simple sample with as much information: n, or n^2 / sum of squared weights."""
        w2 = self.table.w2
        return self.n if w2 is None else self.n**2 / self.sums(lambda run: w2[run])

    @property
    def rounding(self) -> Floats:
        """Differences of predictions and outcomes up to this size are rounding."""
        return ROUNDING * np.maximum(np.abs(self.lower), np.abs(self.upper))


def _above(last: Floats, prediction: Floats) -> Ints:
    """For each prediction the number of values that it exceeds."""
    # `locate` counts edges that do not exceed a value, so the edges are the next doubles after the last predictions.
    return _kernels.locate(np.nextafter(last, np.inf), prediction)
