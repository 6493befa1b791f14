"""`Rows`: the columns of the same rows, read and validated together.

All entry points that take rows read them here: outcomes, one forecast or several, weights or frequencies, clusters and
groups. `calibrant._support.columns` validates each column by itself.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np

from calibrant._support import columns as _columns
from calibrant._support.class_labels import encode
from calibrant._support.columns import ColumnData
from calibrant._support.errors import Argument, InputError, Note
from calibrant._support.option_checks import check_option
from calibrant._support.typing import Bools, Column, Ints, Weights
from calibrant.tables.groups import GROUP_HINT, check_group_count, group_columns, groups_name, observed_groups

__all__ = [
    "DROPPED",
    "Check",
    "Missing",
    "RowValues",
    "Rows",
    "missing_note",
    "repeated_rows",
    "zero_weight_error",
    "zero_weight_note",
]

Missing: TypeAlias = Literal["raise", "drop"]
# Codes of the notes about dropped rows.
DROPPED = ("missing", "zero_weight", "zero_frequency")

Check: TypeAlias = Callable[[ColumnData], ColumnData]

_MOST_SINGLE_ROWS = 2**27  # about 1 GB per column


class RowValues(Protocol):
    """Values of rows that can be sliced: a `ColumnData`, predictive distributions, probabilities of classes.

    If values can be missing, the attribute `columns` has the `ColumnData` in which they are marked.
    """

    def __len__(self) -> int: ...
    def part(self, rows: Any, /) -> Any: ...


@dataclass(frozen=True, eq=False)
class Rows:
    """Columns of the same rows.

    Attributes
    ----------
    y : ColumnData
        Outcomes.
    forecasts : tuple of RowValues
        The forecast of each model.
    weight : ColumnData or None
        Importance weights, or numbers of equal rows.
    importance : bool
        Whether `weight` holds importance weights.
    cluster : ColumnData or None
    by : tuple of ColumnData
        The columns that define groups.
    group_name : str or None
        The names of these columns, comma-joined, if they have any.
    pos_label : object
        Label of the event, for outcomes other than 0 and 1.
    missing : {"raise", "drop"}
        How rows with a missing value are treated.
    n_in : int
        Number of rows before any was dropped.
    dropped : tuple of Note
        How many rows were dropped, and why.
    """

    y: ColumnData
    forecasts: tuple[Any, ...]
    weight: ColumnData | None = None
    importance: bool = False
    cluster: ColumnData | None = None
    by: tuple[ColumnData, ...] = ()
    group_name: str | None = None
    pos_label: object = None
    missing: Missing = "raise"
    n_in: int = 0
    dropped: tuple[Note, ...] = ()

    @classmethod
    def read(
        cls,
        y_true: Column,
        forecasts: Mapping[str, Any],
        *,
        sample_weight: Column | None = None,
        frequency: Column | None = None,
        cluster: Column | None = None,
        by: Any = None,
        pos_label: object = None,
        missing: Missing = "raise",
        hint: str | None = None,
        outcome: str = "y_true",
    ) -> "Rows":
        """Read the columns of the same rows; their lengths and pandas indexes must agree.

        Parameters
        ----------
        y_true : column of outcomes
        forecasts : mapping of name to column or RowValues
        sample_weight, frequency, pos_label, missing
            See `ScoreTable.from_arrays`.
        cluster : column, optional
        by : column, list or mapping of columns, or frame, optional
        hint : str, optional
            What to do about outcomes and forecasts of two dimensions.
        outcome : str, default="y_true"
            Name of the outcomes in error messages.
        """
        check_option("missing", missing, ("raise", "drop"))
        _columns.check_one_weight(sample_weight, frequency)
        groups = group_columns(by)
        given = {outcome: y_true, **forecasts}
        read = {name: _read(column, name, hint) for name, column in given.items()}
        others = {"sample_weight": sample_weight, "frequency": frequency, "cluster": cluster, **groups}
        for name, column in others.items():
            if column is not None:
                given[name] = column
                read[name] = _columns.read(column, name, hint=GROUP_HINT if name in groups else None)
        _columns.check_lengths(list(read.values()))
        _columns.check_alignment(given)
        return cls(
            read[outcome],
            tuple([read[name] for name in forecasts]),
            read.get("frequency" if sample_weight is None else "sample_weight"),
            sample_weight is not None,
            read.get("cluster"),
            tuple([read[name] for name in groups]),
            groups_name(by),
            pos_label,
            missing,
            len(read[outcome]),
        )

    def __len__(self) -> int:
        return len(self.y)

    @property
    def columns(self) -> list[ColumnData]:
        """The columns that a row needs to be complete."""
        forecasts = [
            c for f in self.forecasts for c in ((f,) if isinstance(f, ColumnData) else getattr(f, "columns", ()))
        ]
        others = [column for column in (self.weight, self.cluster) if column is not None]
        return [self.y, *forecasts, *others]

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes about the columns and about dropped rows."""
        return (*(note for column in self.columns for note in column.notes), *self.dropped)

    @property
    def n_dropped(self) -> int:
        """Number of rows that were dropped."""
        return self.n_in - len(self)

    @property
    def size(self) -> Weights | None:
        """Validated importance weights (float64) or numbers of equal rows (int64); None if each row counts once."""
        if self.weight is None:
            return None
        values: Weights = self.weight.values
        return values if self.importance else values.astype(np.int64)

    @property
    def cluster_codes(self) -> Ints | None:
        """For each row the number of its cluster, from 0; None without clusters."""
        return None if self.cluster is None else encode(self.cluster)[1]

    @property
    def n_clusters(self) -> int:
        """Number of distinct clusters; 0 without clusters."""
        return 0 if self.cluster is None else len(encode(self.cluster)[0])

    def part(self, rows: Any) -> "Rows":
        """Return some of the rows, without groups: a mask, or their positions."""
        y = self.y.part(rows)
        return replace(
            self,
            y=y,
            forecasts=tuple(forecast.part(rows) for forecast in self.forecasts),
            weight=None if self.weight is None else self.weight.part(rows),
            cluster=None if self.cluster is None else self.cluster.part(rows),
            by=(),
            n_in=len(y),
            dropped=(),
        )

    def split(self) -> "dict[Any, Rows]":
        """Return the rows of each group, sorted by key: a label, or a tuple of labels if there are several columns."""
        groups = observed_groups(self.by) if self.by else []
        check_group_count(len(groups), len(self))
        # Notes about how a column was read belong to the whole.
        y, *forecasts = (_without_notes(each) for each in (self.y, *self.forecasts))
        plain = replace(self, y=y, forecasts=tuple(forecasts))
        return {key: plain.part(rows) for key, rows in groups}

    def check(self, outcome: Check, forecast: Check) -> "Rows":
        """Return the rows with validated columns: outcomes, forecasts that are columns, and weights."""
        forecasts = tuple(forecast(each) if isinstance(each, ColumnData) else each for each in self.forecasts)
        weight = None if self.weight is None else _columns.sizes(self.weight, self.importance)
        return replace(self, y=outcome(self.y), forecasts=forecasts, weight=weight)

    def complete(self) -> Bools | None:
        """Return the mask of rows without a missing value, None if all are; an error if `missing` is "raise"."""
        columns = self.columns
        if self.missing == "raise":
            _columns.refuse_missing(columns, hint=_columns.DROP)
        masks = [column.missing for column in columns if column.missing is not None]
        return ~np.logical_or.reduce(masks) if masks else None

    @property
    def is_empty(self) -> bool:
        """Whether no row is complete and of positive weight."""
        used = np.ones(len(self), dtype=bool)
        for column in self.columns:
            used &= ~column.mask
        if self.weight is not None:
            used &= _columns.numbers(self.weight).values != 0
        return not used.any()

    def select(self) -> "Rows":
        """Return the complete rows of positive weight; the others are counted in `n_in` and `dropped`.

        The columns are those that `check` returned. An error if no row is left.
        """
        complete, notes = self.complete(), list(self.dropped)
        used = np.ones(len(self), dtype=bool) if complete is None else complete
        if not used.all():
            notes.append(missing_note(len(self) - int(used.sum())))
        if self.weight is not None:
            zero = used & (self.weight.values == 0)
            if zero.any():
                notes.append(zero_weight_note(int(zero.sum()), self.importance))
                used = used & ~zero
        if not used.any():
            raise self._no_rows()
        if used.all():
            return self
        return replace(self.part(used), n_in=self.n_in, dropped=tuple(notes))

    def _no_rows(self) -> InputError:
        if not len(self):
            forecast = getattr(self.forecasts[0], "name", "forecast")
            text = f"{self.y.name} and {forecast} hold no rows; at least one is needed."
            return InputError(text, argument=self.y.name)
        if self.weight is not None and not self.weight.values.any():
            return zero_weight_error(self.weight.name)
        return InputError("No row is left: each one has a missing value or weight 0.", argument=self.y.name)


def _read(column: Any, name: str, hint: str | None) -> Any:
    """Read a column; other values that can be sliced stay as they are."""
    return column if hasattr(column, "part") else _columns.read(column, name, hint=hint)


def _without_notes(values: Any) -> Any:
    return replace(values, notes=()) if isinstance(values, ColumnData) else values


def repeated_rows(frequency: Ints, work: str) -> Ints:
    """Return the position of each row as often as its frequency says; `work` is what is done with these rows.

    >>> repeated_rows(np.array([1, 3]), "compared").tolist()
    [0, 1, 1, 1]
    """
    total = int(frequency.sum())
    if total > _MOST_SINGLE_ROWS:
        raise InputError(
            Argument("frequency")
            + f" must add up to at most {_MOST_SINGLE_ROWS:,} rows, which are {work} one by one; got {total:,}.",
            hint="Pass " + Argument("sample_weight") + " for importance weights, or fewer rows.",
            value=total,
        )
    return np.repeat(np.arange(frequency.size), frequency)


def missing_note(count: int) -> Note:
    """Return the note about rows that were dropped because a value is missing."""
    return Note("missing", count, "Rows dropped because a value is missing: {count}.")


def zero_weight_note(count: int, importance: bool) -> Note:
    """Return the note about rows that were dropped because their weight or frequency is 0."""
    name = "weight" if importance else "frequency"
    return Note(f"zero_{name}", count, f"Rows dropped because their {name} is 0: {{count}}.")


def zero_weight_error(name: str) -> InputError:
    """Return the error for weights or frequencies that are all 0."""
    return InputError(
        f"{name} must be positive in at least one row; got zero in every row.",
        hint="Leave it out to count each row once.",
        argument=name,
    )
