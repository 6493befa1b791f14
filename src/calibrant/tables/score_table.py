"""`ScoreTable`: for each distinct score the number of rows and the number of events; `Partition`: its bins."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from calibrant import _kernels
from calibrant._support import columns as _columns
from calibrant._support.arrays import Bools, Column, Floats, Ints, Weights, in_pieces, read_only
from calibrant._support.errors import Argument, InputError, Note, check_option, join_notes, wrong_value
from calibrant._support.lazy import cached_property
from calibrant.tables.rows import Missing, Rows, TableReader

# Sums of whole numbers in doubles are exact up to this.
_MOST_ROWS = 2**53
# The finest grid whose inverse is finite.
_FINEST = 1e-300


@dataclass(frozen=True, eq=False, repr=False)
class ScoreTable:
    """Distinct scores with their counts, from which all binary calibration metrics are computed.

    Build one with `from_arrays`, `from_counts` or `empty`; the constructor does not validate its arguments.
    Tables add up: rows, files, days and machines are counted separately, and ``a + b`` is the table of all
    rows, in any order.

    Attributes
    ----------
    score : ndarray of float64
        The distinct scores, in increasing order.
    n, k : ndarray of int64
        Number of rows with each score, and of those with the event. Sums of weights, as float64, if the table
        holds importance weights.
    w2, k2 : ndarray of float64 or None
        Sums of squared weights per score, of all rows and of those with the event; None for a table of counts.
    n_in, n_dropped : int
        Number of rows read, and of those that were dropped (a missing value, weight or frequency 0).

    See Also
    --------
    Tables, from_frame, scan

    Notes
    -----
    A table holds counts or importance weights, never both: see `importance`. With importance weights w, n is
    the sum of w, k the sum of w y, w2 the sum of w^2 and k2 the sum of w^2 y. These four suffice for a robust variance
    of any sum of residuals. Counts merge exactly, sums of weights to a relative 1e-12.

    Examples
    --------
    >>> table = ScoreTable.from_arrays([0, 1, 1, 0], [0.2, 0.2, 0.9, 0.4])
    >>> table
    ScoreTable(4 rows, 3 distinct scores, 2 positives)
    >>> table.score, table.n, table.k
    (array([0.2, 0.4, 0.9]), array([2, 1, 1]), array([1, 0, 1]))
    >>> (table + table).size
    8
    """

    score: Floats
    n: Weights
    k: Weights
    w2: Floats | None = None
    k2: Floats | None = None
    _: KW_ONLY
    n_in: int = 0
    n_dropped: int = 0
    _notes: tuple[Note, ...] = ()

    kind: ClassVar[str] = "binary"

    def __post_init__(self) -> None:
        for name in ("score", "n", "k", "w2", "k2"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    def __setstate__(self, state: dict[str, Any]) -> None:
        from calibrant.tables import storage

        storage.restore(self, state, storage.check_score_table)

    @classmethod
    def from_arrays(
        cls,
        y_true: Column,
        y_prob: Column,
        *,
        sample_weight: Column | None = None,
        frequency: Column | None = None,
        pos_label: object = None,
        missing: Missing = "raise",
    ) -> "ScoreTable":
        """Count rows of outcomes and predicted probabilities.

        Parameters
        ----------
        y_true : column of n outcomes
            0 and 1 of any numeric or boolean type; other labels need `pos_label`. Lists, NumPy arrays, columns
            of pandas, polars or Arrow and torch tensors are read, of shape (n,) or (n, 1). CUDA tensors are counted on
            their device.
        y_prob : column of n scores in [0, 1]
            Predicted probabilities of the event. float32 scores are compared as the values they hold.
            Values within 1e-6 of the range are clipped, and a note counts them.
        sample_weight : column of n weights, optional
            Importance weights, whatever their values: finite numbers, none negative. Their scale changes no metric.
            Rows of weight 0 are dropped, counted and noted.
        frequency : column of n whole numbers, optional
            Number of equal rows that each row stands for. The table is bitwise identical to that of the repeated rows.
            Rows of frequency 0 are dropped, counted and noted. Give `sample_weight` or `frequency`, not both.
        pos_label : object, optional
            The label of the event, if labels are not 0 and 1.
        missing : {"raise", "drop"}
            How rows with a missing value are treated: an error, or dropped, counted in `n_dropped` and noted.

        Returns
        -------
        ScoreTable

        Raises
        ------
        InputError
            If a value is invalid. The message has the value, its row, and what to do.

        Examples
        --------
        >>> ScoreTable.from_arrays([0, 1], [0.2, 0.7], frequency=[3, 2])
        ScoreTable(5 rows, 2 distinct scores, 2 positives)
        >>> ScoreTable.from_arrays([0, 1], [0.2, 0.7], sample_weight=[3, 2])
        ScoreTable(total weight 5, 2 distinct scores, 2 positives)
        """
        return count_columns(
            y_true, y_prob, sample_weight=sample_weight, frequency=frequency, pos_label=pos_label, missing=missing
        )

    @classmethod
    def from_counts(cls, score: Column, n: Column, k: Column) -> "ScoreTable":
        """Return the table of scores with their numbers of rows and of events; equal scores are added up.

        Parameters
        ----------
        score : column
            Scores in [0, 1].
        n : column
            Number of rows of each score, whole and not negative.
        k : column
            Number of events among them, at most n.

        Returns
        -------
        ScoreTable

        Examples
        --------
        >>> ScoreTable.from_counts(score=[0.1, 0.9], n=[10, 5], k=[2, 4])
        ScoreTable(15 rows, 2 distinct scores, 6 positives)
        """
        columns = [_columns.read(c, name) for c, name in ((score, "score"), (n, "n"), (k, "k"))]
        _columns.check_lengths(columns)
        _columns.check_alignment({"score": score, "n": n, "k": k})
        _columns.refuse_missing(columns)
        scores = _columns.scores(columns[0])
        counts, events = _whole(columns[1]), _whole(columns[2])
        bad = events > counts
        if bad.any():
            row = int(np.argmax(bad))
            raise columns[2].error(
                f"must not exceed n; {bad.sum():,} of {bad.size:,} rows do, the first is row {row} "
                f"with k = {events[row]} and n = {counts[row]}.",
                hint="k counts the events among the n rows.",
                row=row,
                value=int(events[row]),
            )
        _check_total(float(counts.sum(dtype=np.float64)), "n")
        used = counts > 0
        merged = _merge(scores.values[used], counts[used], events[used])
        return cls(*merged, n_in=int(counts.sum()), _notes=join_notes(scores.notes, *(c.notes for c in columns[1:])))

    @classmethod
    def empty(cls) -> "ScoreTable":
        """Return the table without rows, the zero of ``+``.

        Returns
        -------
        ScoreTable
            It has no entries; ``table + ScoreTable.empty()`` equals ``table``.
        """
        return cls(np.empty(0), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))

    @property
    def importance(self) -> bool:
        """Whether `n` and `k` are sums of importance weights."""
        return self.w2 is not None

    @property
    def span(self) -> tuple[float, float]:
        """The range that bins of equal width divide."""
        return 0.0, 1.0

    @cached_property
    def size(self) -> float:
        """Number of rows, or the sum of importance weights."""
        return _total(self.n)

    @cached_property
    def positives(self) -> float:
        """Number of rows with the event, or their sum of weights."""
        return _total(self.k)

    @property
    def prevalence(self) -> float:
        """Share of rows with the event; NaN for an empty table."""
        return float(self.positives / self.size) if len(self) else float("nan")

    @cached_property
    def has_both_classes(self) -> bool:
        """Whether some rows have the event and some do not."""
        if not self.importance:
            return 0 < self.positives < self.size
        return bool((self.k > 0).any() and (self.k < self.n).any())

    @property
    def crowds_end(self) -> bool:
        """Whether at least 80 % of the rows have scores within 0.1 of 0, or of 1: plots then choose logit axes."""
        low, high = (float(np.sum(self.n[near])) for near in (self.score < 0.1, self.score > 0.9))
        return max(low, high) >= 0.8 * float(self.size) > 0

    @property
    def n_used(self) -> int:
        """Number of rows that were counted."""
        return self.n_in - self.n_dropped

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes about the rows, which all results of the table have."""
        return (*self._notes, *self._state_notes())

    def _state_notes(self) -> list[Note]:
        notes: list[Note] = []
        if not len(self):
            return notes
        if self.size == 1 and not self.importance:
            notes.append(Note("one_row", 1, "There is only 1 row."))
        if not self.has_both_classes:
            which = "no row has the event" if self.positives == 0 else "every row has the event"
            notes.append(Note("one_class", 1, f"There is only one class: {which}."))
        if len(self) <= 2 and np.isin(self.score, (0.0, 1.0)).all():
            notes.append(Note("hard_labels", 1, "All scores are 0 or 1: these are hard labels, not probabilities."))
        return notes

    def __len__(self) -> int:
        """Number of distinct scores."""
        return self.score.size

    def __add__(self, other: object) -> "ScoreTable":
        if not isinstance(other, ScoreTable):
            return NotImplemented
        return add_tables([self, other])

    def __radd__(self, other: object) -> "ScoreTable":
        # sum() starts with 0.
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def _arrays(self) -> list[Weights]:
        return [array for array in (self.score, self.n, self.k, self.w2, self.k2) if array is not None]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ScoreTable):
            return NotImplemented
        mine, its = self._arrays(), other._arrays()
        return len(mine) == len(its) and all(map(np.array_equal, mine, its))

    def map(self, f: Callable[[Floats], Floats]) -> "ScoreTable":
        """Return the table of the scores ``f(score)``, for example of a calibrated model.

        Parameters
        ----------
        f : callable
            Function from an array of scores to as many scores in [0, 1], such as a fitted calibrator.

        Returns
        -------
        ScoreTable
            Scores that become equal are merged.

        Examples
        --------
        >>> ScoreTable.from_counts([0.2, 0.4], [5, 5], [1, 3]).map(np.sqrt).score.round(3)
        array([0.447, 0.632])
        """
        column = _columns.read(f(self.score), "f(score)")
        _columns.check_lengths([column, _columns.ColumnData("score", self.score)])
        scores = _columns.scores(column)
        _columns.refuse_missing([scores], hint="f must return a probability for each score.")
        mapped = ScoreTable(*_merge(scores.values, *self._arrays()[1:]))
        notes = join_notes(self._notes, scores.notes)
        return replace(mapped, n_in=self.n_in, n_dropped=self.n_dropped, _notes=notes)

    def rows_by_weight(self) -> "ScoreTable":
        """Return the table for a fit: the sum of weights is the number of rows, so weight 2 equals two rows.

        Whole sums become counts, so that a fit with whole weights is bitwise identical to one with repeated rows.
        Other sums stay real numbers: w2 = n and k2 = k make the effective number of rows equal to the sum of weights.

        Returns
        -------
        ScoreTable
            The same table if it holds counts.

        Examples
        --------
        >>> ScoreTable.from_arrays([0, 1], [0.2, 0.7], sample_weight=[3, 2]).rows_by_weight()
        ScoreTable(5 rows, 2 distinct scores, 2 positives)
        """
        if not self.importance:
            return self
        if all(bool((column == np.rint(column)).all()) for column in (self.n, self.k)):
            return replace(self, n=self.n.astype(np.int64), k=self.k.astype(np.int64), w2=None, k2=None)
        return replace(self, w2=self.n, k2=self.k)

    @property
    def extremes(self) -> tuple[float, float]:
        """The lowest and the highest score; an empty table has none, and no bound excludes them."""
        return (float(self.score[0]), float(self.score[-1])) if len(self) else (np.inf, -np.inf)

    def at_ranks(self, ranks: Weights) -> Floats:
        """Return the lowest score at which the cumulative size of rows reaches each rank; -inf for rank 0.

        Parameters
        ----------
        ranks : array
            Ranks from 0 to the size of the table; whole numbers for counts.

        Returns
        -------
        array
            One score per rank.
        """
        reached = np.searchsorted(np.cumsum(self.n), ranks.astype(self.n.dtype))
        scores = np.append(self.score, np.inf)  # beyond all rows by rounding
        return np.where(ranks > 0, scores[reached], -np.inf)

    def outcome_sums(self) -> tuple[Floats, Weights, Weights]:
        """Return the distinct scores, rising, with the rows and the events of each.

        Returns
        -------
        tuple of three arrays
            `score`, `n` and `k`.
        """
        return self.score, self.n, self.k

    def cut_after(self, last: Floats, *, edges: Floats | None = None) -> "Partition":
        """Return bins that end with these scores; the last bin ends with the table.

        Parameters
        ----------
        last : array
            The last score of each bin but the last one; they must not decrease.
        edges : array, optional
            Nominal edges, one more than bins.

        Returns
        -------
        Partition
        """
        return Partition.from_cuts(self, np.searchsorted(self.score, last, side="right"), edges=edges)

    def with_notes(self, notes: tuple[Note, ...]) -> "ScoreTable":
        """Return the same table with further notes.

        Parameters
        ----------
        notes : tuple of Note
            Notes to add.

        Returns
        -------
        ScoreTable
        """
        return replace(self, _notes=join_notes(self._notes, notes))

    def round(self, resolution: float) -> "ScoreTable":
        """Return the table with scores rounded to the nearest multiple of `resolution`, which has fewer entries.

        Rounding changes results; a note says so. 2**-20 changed TCE by at most 0.06 percentage points on seven data
        sets; 2**-10 makes TCE useless.

        Parameters
        ----------
        resolution : float
            Step of the grid, such as ``2**-20``.

        Returns
        -------
        ScoreTable
        """
        check_resolution(resolution)
        table = self.map(lambda score: np.minimum(np.rint(score / resolution) * resolution, 1.0))
        text = f"Scores were rounded to multiples of {resolution:.6g}: each changed by at most half of that."
        return table.with_notes((Note("rounded", 1, text),))

    def to_arrow(self) -> Any:
        """Return an Arrow table with version, number of rows, notes and a checksum in its metadata.

        Returns
        -------
        pyarrow.Table
            Columns score, n and k, and those of weights.
        """
        from calibrant.tables import storage

        return storage.to_arrow(self)

    @classmethod
    def from_arrow(cls, frame: Any) -> "ScoreTable":
        """Return the table that `to_arrow` wrote; other Arrow tables, and changed ones, are an error.

        Parameters
        ----------
        frame : pyarrow.Table
            What `to_arrow` returned.

        Returns
        -------
        ScoreTable
        """
        from calibrant.tables import storage

        return storage.from_arrow(frame)

    def to_parquet(self, path: Any) -> None:
        """Write the table to a Parquet file with version and checksum.

        Parameters
        ----------
        path : path
            File to write; an existing file is replaced, completely or not at all.
        """
        from calibrant.tables import storage

        storage.to_parquet(self, path)

    @classmethod
    def from_parquet(cls, path: Any) -> "ScoreTable":
        """Read the table that `to_parquet` wrote; a changed or truncated file is an error.

        Parameters
        ----------
        path : path
            File that `to_parquet` wrote.

        Returns
        -------
        ScoreTable
        """
        from calibrant.tables import storage

        return storage.from_parquet(path)

    def __repr__(self) -> str:
        size, positives = (f"{v:,}" if isinstance(v, int) else f"{v:,.6g}" for v in (self.size, self.positives))
        rows = f"total weight {size}" if self.importance else f"{size} rows"
        return f"ScoreTable({rows}, {len(self):,} distinct scores, {positives} positives)"


# Reads the table of a binary metric; the second one of functions whose argument is a forecast of any kind.
read_score_table: TableReader[ScoreTable] = TableReader(ScoreTable)
read_score_forecast: TableReader[ScoreTable] = TableReader(
    ScoreTable, "forecast", lambda y, forecast, **options: count_columns(y, forecast, name="forecast", **options)
)


def need_both_classes(table: ScoreTable, name: str) -> None:
    """Raise an error if the table has one class, for metrics that need two."""
    if not table.has_both_classes:
        which = "no row has the event" if table.positives == 0 else "every row has it"
        raise InputError(
            f"{name} needs rows with and without the event; there is only one class: {which}.", argument="y_true"
        )


def count_any_scores(y_true: Column, score: Column, sample_weight: Column | None = None) -> ScoreTable:
    """Count rows of any finite scores, such as margins, for the fit of a calibrator.

    The result must not be passed to a metric.
    """
    rows = Rows.read(y_true, {"X": score}, sample_weight=sample_weight)
    return count_checked(check_weights(rows.check(_columns.events, _columns.finite).select()))


def check_resolution(resolution: float) -> None:
    """Check the step of a grid of scores."""
    if not (isinstance(resolution, Real) and _FINEST <= resolution <= 1):
        raise wrong_value("resolution", "must lie between 1e-300 and 1", resolution, hint="2**-20 is a good choice.")


def count_columns(y_true: Column, y_prob: Column, *, name: str = "y_prob", **options: Any) -> ScoreTable:
    """Count rows with the options of `ScoreTable.from_arrays`; errors and notes call the scores `name`."""
    weighted = any(options.get(option) is not None for option in ("sample_weight", "frequency", "pos_label"))
    check_option("missing", options.get("missing", "raise"), ("raise", "drop"))
    if not weighted and "torch" in sys.modules:
        counted = count_scores(y_true, y_prob, name)
        if counted is not None:
            return counted
    return count_rows(Rows.read(y_true, {name: y_prob}, **options))


def count_rows(rows: Rows) -> ScoreTable:
    """Validate and count rows of outcomes and one column of scores; see `ScoreTable.from_arrays`."""
    table = _count_plain(rows) if rows.pos_label is None else None
    return count_checked(check_scores(rows)) if table is None else table


def check_scores(rows: Rows) -> Rows:
    """Validate outcomes and scores; return the rows that are used."""
    y, p = rows.y, rows.forecasts[0]
    if rows.pos_label is None and _look_swapped(y, p):
        raise y.error(
            f"must hold 0 and 1; got probabilities, and {p.name} holds 0 and 1.",
            hint=f"Are the two swapped? The order is ({y.name}, {p.name}).",
        )
    used = rows.check(partial(_columns.events, pos_label=rows.pos_label), _columns.scores).select()
    return check_weights(used)


def check_weights(rows: Rows) -> Rows:
    """Return the rows; an error if their weights add up to too much, before any is squared."""
    if rows.weight is not None:
        _check_total(float(rows.weight.values.sum()), "sample_weight" if rows.importance else "frequency")
    return rows


def count_checked(rows: Rows) -> ScoreTable:
    """Count rows that `check_scores` returned, of the first forecast."""
    table = _count_plain(rows)
    if table is not None:
        return table
    score, event = rows.forecasts[0].values, rows.y.values == 1
    size = np.ones(score.size) if rows.weight is None else rows.weight.values
    table = add_up(score, event, size, size**2 if rows.importance else None)
    return replace(table, n_in=rows.n_in, n_dropped=rows.n_dropped, _notes=rows.notes)


def _count_plain(rows: Rows) -> ScoreTable | None:
    """Count rows of plain numbers in the kernel; None if a value must be converted, noted, refused or weighted."""
    y, p = rows.y, rows.forecasts[0]
    values, scores = y.values, p.values
    plain = rows.weight is None and y.missing is None and p.missing is None and len(y) > 0
    columns = kernel_columns(values, scores) if plain else None
    counts = None if columns is None else _kernels.count(*columns)
    if counts is None:
        return None
    return ScoreTable(*counts, n_in=rows.n_in, n_dropped=rows.n_dropped, _notes=y.notes + p.notes + rows.dropped)


def kernel_columns(values: NDArray[Any], scores: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Return scores and labels of plain numbers as the kernel takes them; None if they have other types."""
    if values.dtype.kind not in "biuf" or scores.dtype not in (np.float32, np.float64):
        return None
    values, scores = _contiguous(values), _contiguous(scores)
    if values.dtype.kind in "bu":  # the bits of 0 and 1 are the same signed; large values become negative, so invalid
        values = values.view(f"i{values.dtype.itemsize}")
    elif values.dtype.kind == "f" and values.dtype.itemsize not in (4, 8):
        values = values.astype(np.float64)
    return scores, values


def plain_rows(y_true: object, y_prob: object) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Return scores and labels of arrays that need no conversion, for functions that add up rows without a table."""
    if type(y_true) is not np.ndarray or type(y_prob) is not np.ndarray:
        return None
    plain = y_true.ndim == y_prob.ndim == 1 and y_true.size == y_prob.size > 1
    return kernel_columns(y_true, y_prob) if plain else None


def _contiguous(values: NDArray[Any]) -> NDArray[Any]:
    """Return the values in native byte order, aligned and contiguous, as the kernel needs them."""
    return np.require(values, dtype=values.dtype.newbyteorder("="), requirements=["C", "A"])


def add_up(score: Floats, event: Bools, n: Weights, w2: Floats | None = None) -> ScoreTable:
    """Return the table of counted rows in any order: `n` rows, or their weight, with each score.

    `w2` are the sums of squared weights; without it all of `n` are whole numbers of rows.
    """
    _check_total(float(n.sum(dtype=np.float64)), "frequency" if w2 is None else "sample_weight")
    n = n.astype(np.int64, copy=False) if w2 is None else n
    squares = () if w2 is None else (w2, np.where(event, w2, 0.0))
    return ScoreTable(*_merge(score, n, np.where(event, n, n.dtype.type(0)), *squares))


def add_tables(tables: Sequence[ScoreTable]) -> ScoreTable:
    """Return the sum of tables, with their notes and numbers of rows; faster than one by one if there are many."""
    parts = [table for table in tables if len(table)] or [ScoreTable.empty()]
    check_one_kind(parts)
    total = parts[0]
    if len(parts) > 1:
        columns = [np.concatenate(arrays) for arrays in zip(*(table._arrays() for table in parts), strict=True)]
        _check_total(float(columns[1].sum(dtype=np.float64)), "n")
        total = ScoreTable(*_merge(*columns))
    return replace(
        total,
        n_in=sum(table.n_in for table in tables),
        n_dropped=sum(table.n_dropped for table in tables),
        _notes=join_notes(*(table._notes for table in tables)),
    )


def check_one_kind(tables: Sequence[Any]) -> None:
    """Check that all tables are of counts, or all of importance weights."""
    if len({table.importance for table in tables}) > 1:
        raise InputError(
            "Tables must be of one kind to be added; got one of counts and one of importance weights.",
            hint="Count both with sample_weight, or both with frequency.",
        )


def _look_swapped(y: _columns.ColumnData, p: _columns.ColumnData) -> bool:
    if y.values.dtype.kind != "f" or p.values.dtype.kind not in "biuf" or not len(y):
        return False
    given, other = y.values[~y.mask], p.values[~p.mask]
    scores = bool(((given >= 0) & (given <= 1)).all() and ((given > 0) & (given < 1)).any())
    return scores and bool(((other == 0) | (other == 1)).all()) and len(np.unique(given)) > 2


def _merge(score: Floats, *columns: Weights) -> tuple[Weights, ...]:
    """Return the columns of a table from rows in any order: sorted by score, equal scores added up."""
    score = score + 0.0  # -0.0 is 0.0
    # Sums of real weights depend on their order, so ties are sorted too. Counts do not, and sorting two sorted tables
    # that were joined is linear.
    counted = columns[0].dtype.kind == "i"
    order = np.argsort(score, kind="stable") if counted else np.lexsort((*columns, score))
    score = score[order]
    start = np.flatnonzero(np.concatenate([[True], score[1:] != score[:-1]]))[: score.size]
    if not start.size:
        return score, *columns
    return score[start], *(np.add.reduceat(column[order], start) for column in columns)


def _total(weights: Weights) -> float:
    total: float = weights.sum().item()  # an int where weights are counts
    return total


def _whole(column: _columns.ColumnData) -> Ints:
    column = _columns.numbers(column)
    values = column.values
    bad = ~((values >= 0) & (values == np.rint(values)) & (values <= _MOST_ROWS))
    hint = "For weights that are not whole use from_arrays with sample_weight."
    column.refuse(bad, "must hold whole numbers from 0 to 2**53", hint=hint)
    return values.astype(np.int64)


def _check_total(total: float, name: str) -> None:
    if not total < _MOST_ROWS:
        raise InputError(
            Argument(name) + f" must add up to less than 2**53; got the sum {total:.6g}.",
            hint="Divide the weights by a constant." if name == "sample_weight" else "A table cannot count more rows.",
            value=total,
        )


def row_squares(table: ScoreTable) -> Weights:
    """Return the sum of squared weights of each score; for counts the rows."""
    return table.n if table.w2 is None else table.w2


def event_squares(table: ScoreTable) -> Weights:
    """Return the sum of squared weights of events of each score; for counts the events."""
    return table.k if table.k2 is None else table.k2


def squared_residuals(table: ScoreTable, fitted: Floats) -> Floats:
    """Return the sum of w^2 (y - fitted)^2 of each score.

    Its sum over independent rows is the variance of the sum of w (y - fitted). It holds for miscalibrated models, and
    where weights depend on outcomes.

    >>> import numpy as np
    >>> squared_residuals(ScoreTable.from_counts([0.5], [4], [1]), np.array([0.5]))
    array([1.])
    """

    def of_piece(events: Weights, rows: Weights, fitted: Floats) -> Floats:
        return events * (1 - fitted) ** 2 + (rows - events) * fitted**2

    return in_pieces(of_piece, event_squares(table), row_squares(table), fitted)


def residual_variance(table: ScoreTable) -> Floats:
    """Return the variance of the sum of w (y - score) of each score if the model is calibrated.

    Counts have the Bernoulli variance. Importance weights have the sum of squared residuals, which holds where weights
    depend on outcomes.
    """
    if table.importance:
        return squared_residuals(table, table.score)
    return bernoulli_variance(table.n, table.score)


def bernoulli_variance(n: Weights, p: Floats) -> Floats:
    """Return n p (1 - p)."""
    return in_pieces(lambda n, p: n * p * (1 - p), n, p)


def count_scores(y_true: Any, y_prob: Any, name: str = "y_prob") -> ScoreTable | None:
    """Count tensors of outcomes and scores on their device; None if they are others, or must be read on the host."""
    from calibrant._kernels import tensors

    if not tensors.are_on_device(y_true, y_prob):
        return None
    columns, notes = [], list[Note]()
    for called, column in (("y_true", y_true), (name, y_prob)):
        if column.ndim == 2 and column.shape[1] == 1:
            notes.append(_columns.one_column_note(called))
            column = column.reshape(-1)  # noqa: PLW2901
        columns.append(column)
    y, p = columns
    return count_tensors(p, y, tuple(notes)) if p.ndim == y.ndim == 1 and p.shape == y.shape else None


def count_tensors(score: Any, label: Any, notes: tuple[Note, ...]) -> ScoreTable | None:
    """Return the table of valid tensors; None if a value must be converted, dropped or refused."""
    from calibrant._kernels import tensors

    counts = tensors.count(score, label)
    if counts is None:
        return None
    table = ScoreTable(*counts, n_in=score.numel(), _notes=notes)
    table.__dict__["size"] = score.numel()  # known, so that a large table is not added up on the host
    table.__dict__["positives"] = int(label.sum())
    return table


@dataclass(frozen=True, eq=False)
class BinTotals:
    """Sums of rows, events and n * score over bins, for losses that need no more; the last axis counts bins.

    A bin without rows has mean score and rate 0, and so no gap.
    """

    n: Weights
    k: Weights
    score: Floats

    @cached_property
    def rate(self) -> Floats:
        """Event rate of each bin."""
        return self.k / self._size

    @cached_property
    def mean_score(self) -> Floats:
        """Mean score of each bin."""
        return (self.score if self._is_full else np.where(self.n > 0, self.score, 0.0)) / self._size

    @cached_property
    def _size(self) -> Weights:
        return self.n if self._is_full else np.where(self.n > 0, self.n, 1.0)

    @cached_property
    def _is_full(self) -> bool:
        """Whether each bin has rows."""
        return bool((self.n > 0).all())


@dataclass(frozen=True, eq=False, repr=False)
class Partition:
    """Consecutive runs of the entries of a table: no bin is empty, and equal scores share one.

    Made by a kind of bins (``EqualWidth()(table)``), from cuts or from labels.

    Attributes
    ----------
    table : ScoreTable
    start : ndarray of int64
        First entry of the table in each bin.
    lower, upper : ndarray of float64
        Edges of each bin: the nominal ones if the kind of bins has them, otherwise 0, the midpoints between
        neighbouring scores of two bins, and 1.
    n_empty : int
        Number of nominal bins without rows; they are not part of the partition.

    See Also
    --------
    Breakdown, ScoreTable, EqualWidth

    Examples
    --------
    >>> table = ScoreTable.from_arrays([0, 1, 1, 1], [0.1, 0.2, 0.8, 0.9])
    >>> halves = Partition.from_cuts(table, [2])
    >>> halves.n, halves.k, halves.rate
    (array([2, 2]), array([1, 2]), array([0.5, 1. ]))
    """

    table: ScoreTable
    start: Ints
    n_empty: int = 0
    _nominal: tuple[Floats, Floats] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", read_only(self.start))

    def __setstate__(self, state: dict[str, Any]) -> None:
        from calibrant.tables import storage

        storage.restore(self, state, storage.check_partition, keep=("_sums",))

    @classmethod
    def from_cuts(cls, table: ScoreTable, cuts: object, *, edges: Floats | None = None) -> "Partition":
        """Return bins that begin at entry 0 and at each of `cuts`.

        A repeated cut makes an empty bin, which is dropped.

        Parameters
        ----------
        table : ScoreTable
            Table to divide.
        cuts : sequence of int
            Entries at which bins begin; they must not decrease.
        edges : array, optional
            Nominal edges, one more than bins.

        Returns
        -------
        Partition
        """
        inner = np.asarray(cuts)
        if inner.size and inner.dtype.kind not in "iu":
            raise InputError(f"cuts must be whole numbers; got type {inner.dtype}.", value=cuts)
        bounds = np.empty(inner.size + 2, dtype=np.int64)
        bounds[0], bounds[1:-1], bounds[-1] = 0, inner, len(table)
        sizes = bounds[1:] - bounds[:-1]
        if (sizes < 0).any():
            raise wrong_value("cuts", f"must not decrease and must lie between 0 and {len(table)}", cuts)
        occupied = np.flatnonzero(sizes)
        nominal = None if edges is None else (edges[occupied], edges[occupied + 1])
        return cls(table, bounds[occupied], bounds.size - 1 - occupied.size, nominal)

    @classmethod
    def from_labels(cls, table: ScoreTable, labels: object) -> "Partition":
        """Return bins of entries with equal labels, which must not decrease.

        Parameters
        ----------
        table : ScoreTable
            Table to divide.
        labels : sequence
            One label per entry; they must not decrease.

        Returns
        -------
        Partition
        """
        values = np.asarray(labels)
        if values.shape != (len(table),):
            raise InputError(
                f"labels must have one value for each of the {len(table):,} distinct scores; got shape {values.shape}."
            )
        if (values[1:] < values[:-1]).any():
            raise InputError("labels must not decrease from one score to the next.")
        return cls.from_cuts(table, np.flatnonzero(values[1:] != values[:-1]) + 1)

    def __len__(self) -> int:
        """Number of bins."""
        return self.start.size

    @cached_property
    def _edges(self) -> tuple[Floats, Floats]:
        lower, upper = _midpoints(self.table.score, self.start) if self._nominal is None else self._nominal
        return read_only(lower), read_only(upper)

    @property
    def lower(self) -> Floats:
        """Lower edge of each bin."""
        return self._edges[0]

    @property
    def upper(self) -> Floats:
        """Upper edge of each bin."""
        return self._edges[1]

    @cached_property
    def _sums(self) -> tuple[Weights, Weights, Floats]:
        table = self.table
        n, k, score = _kernels.bin_sums(table.score, table.n, table.k, self.start)
        return read_only(n), read_only(k), read_only(score)

    def with_sums(self, n: Weights, k: Weights, score: Floats) -> "Partition":
        """Return the same bins with other sums of n, k and n * score; empty bins are dropped.

        Only losses that need sums alone can be computed on the result.

        Parameters
        ----------
        n, k, score : array
            Sums of rows, of events and of n * score, one per bin.

        Returns
        -------
        Partition
        """
        occupied = np.flatnonzero(n)
        other = Partition(self.table, self.start[occupied])
        other.__dict__["_sums"] = n[occupied], k[occupied], score[occupied]
        return other

    @classmethod
    def from_sums(cls, table: ScoreTable, n: Weights, k: Weights, score: Floats) -> "Partition":
        """Return bins that are known by their sums of n, k and n * score alone, for losses that need only these.

        Parameters
        ----------
        table : ScoreTable
            Table that the partition carries; its entries are not used.
        n, k, score : array
            Sums of rows, of events and of n * score, one per bin.

        Returns
        -------
        Partition
        """
        other = cls(table, np.arange(n.size))
        other.__dict__["_sums"] = n, k, score
        return other

    @property
    def n(self) -> Weights:
        """Number of rows in each bin."""
        return self._sums[0]

    @property
    def k(self) -> Weights:
        """Number of rows with the event in each bin."""
        return self._sums[1]

    @property
    def rate(self) -> Floats:
        """Event rate of each bin, equation (3) of the TCE paper."""
        return self.k / self.n

    @property
    def total_score(self) -> Floats:
        """Sum of n * score of each bin."""
        return self._sums[2]

    @property
    def mean_score(self) -> Floats:
        """Mean score of each bin."""
        return self._sums[2] / self.n

    @property
    def min_score(self) -> Floats:
        """Smallest score of each bin."""
        return self.table.score[self.start]

    @property
    def max_score(self) -> Floats:
        """Largest score of each bin."""
        return self.table.score[self._stop - 1]

    @cached_property
    def w2(self) -> Floats | None:
        """Sum of squared importance weights in each bin; None for counts."""
        return None if self.table.w2 is None else read_only(np.add.reduceat(self.table.w2, self.start))

    @cached_property
    def k2(self) -> Floats | None:
        """Sum of squared importance weights of the rows with the event in each bin; None for counts."""
        return None if self.table.k2 is None else read_only(np.add.reduceat(self.table.k2, self.start))

    @property
    def effective_n(self) -> Floats:
        """Size of a simple sample with as much information: n, or n^2 / sum of squared weights."""
        return self.n.astype(np.float64) if self.w2 is None else self.n**2 / self.w2

    @property
    def effective_k(self) -> Floats:
        """Events in a simple sample of the effective size: rate times `effective_n`."""
        size = self.effective_n
        # Exactly the size if all rows have the event, in spite of rounding.
        return np.where(self.k == self.n, size, np.minimum(self.k * (size / self.n), size))

    @property
    def labels(self) -> Ints:
        """For each entry of the table the number of its bin, from 0."""
        return np.repeat(np.arange(len(self)), self._stop - self.start)

    @property
    def _stop(self) -> Ints:
        return np.append(self.start[1:], len(self.table)).astype(np.int64)

    def __repr__(self) -> str:
        empty = f", {self.n_empty} empty" if self.n_empty else ""
        return f"Partition({len(self)} bins{empty}, of {self.table!r})"


def _midpoints(score: Floats, start: Ints) -> tuple[Floats, Floats]:
    if start.size == 0:
        return np.empty(0), np.empty(0)
    inner = (score[start[1:] - 1] + score[start[1:]]) / 2
    return np.concatenate([[0.0], inner]), np.concatenate([inner, [1.0]])
