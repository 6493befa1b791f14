"""`Rows`: columns of outcomes, forecasts, weights, groups and clusters of the same rows, read and validated once."""

import inspect
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeAlias, TypedDict, TypeVar

import numpy as np
from numpy.typing import NDArray

from calibrant import _kernels
from calibrant._support import columns as _columns
from calibrant._support.arrays import Bools, Column, Ints, Weights
from calibrant._support.columns import ColumnData, encode, refuse_missing
from calibrant._support.errors import Argument, InputError, Note, check_option

# More groups than this with few rows each are a mistake: an id, or a number or a time that was not rounded.
MANY_GROUPS, FEWEST_ROWS = 1_000, 20

_WAY_OUT = (
    " To evaluate such groups nevertheless, pass a mapping of tables: {key: cb.ScoreTable.from_arrays(y_true, y_prob)}."
)
GROUP_HINT = "Pass one column, a list of columns, a mapping of names to columns, or a frame."


def group_columns(by: Any, argument: str = "by") -> dict[str, Any]:
    """Return the columns of `by`, with their names in error messages, which begin with that of the argument.

    `by` is one column, a list or tuple of columns, a mapping of names to columns, or a frame.

    >>> list(group_columns({"region": ["a", "b"], "year": [2024, 2025]}))
    ["by['region']", "by['year']"]
    """
    if by is None:
        return {}
    columns = several_columns(by, argument)
    if columns is None:
        return {argument: by}
    return {f"{argument}[{name!r}]": column for name, column in columns.items()}


def groups_name(by: Any) -> str | None:
    """Return the names of the columns of `by`, comma-joined; None if they have none.

    >>> groups_name({"region": ["a", "b"], "year": [2024, 2025]})
    'region, year'
    """
    columns = None if by is None else several_columns(by)
    if columns is None:
        return None if by is None else _name(by)
    if isinstance(by, (list, tuple)) and not any(map(_name, by)):
        return None
    return ", ".join(columns)


def several_columns(by: Any, argument: str = "by") -> dict[str, Any] | None:
    """Return the columns of a mapping, a frame, or a list of columns by name; None for one column."""
    if isinstance(by, Mapping):
        named = [(str(name), column) for name, column in by.items()]
    elif hasattr(type(by), "columns"):
        named = _frame_columns(by, argument)
    elif isinstance(by, (list, tuple)) and by and all(map(_is_column, by)):
        named = [(_name(column) or f"column {i}", column) for i, column in enumerate(by, 1)]
    else:
        return None
    names = [name for name, _ in named]
    if not names or len(set(names)) < len(names):
        raise InputError(
            Argument(argument) + f" must have at least one column, each with its own name; got {names}.",
            hint=GROUP_HINT,
            value=names,
        )
    return dict(named)


def _name(column: Any) -> str | None:
    name = getattr(column, "name", None)
    return None if name is None else str(name)


def _is_column(value: Any) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, (str, bytes)) and getattr(value, "ndim", 1) == 1


def _frame_columns(frame: Any, argument: str) -> list[tuple[str, Any]]:
    import narwhals as nw

    try:
        known = nw.from_native(frame, eager_only=True)
        # Not known[name]: with numbers as names that would be a row.
        return [(str(name), known.get_column(name).to_native()) for name in known.columns]
    except (TypeError, nw.exceptions.NarwhalsError) as error:
        raise InputError(
            f"{argument} must be a frame in memory; got {type(frame).__name__}, which cannot be read: {error}",
            hint="Collect it first.",
            argument=argument,
        ) from error


def encode_groups(columns: Sequence[ColumnData]) -> tuple[list[Any], Ints]:
    """Return the keys of the groups, sorted, and for each row the place of its key.

    The key is a label if there is one column, else a tuple of labels. A missing label is an error.
    """
    refuse_missing(columns, hint="Give such rows a group of their own.")
    encoded = [_encode(column) for column in columns]
    labels, code = encoded[0]
    if len(encoded) == 1:
        return labels, code
    first = np.empty(0, dtype=np.int64)
    for labels, own in encoded[1:]:
        # The codes so far become numbers below the number of rows, so the product does not overflow.
        first, code = _distinct(code * len(labels) + own)
    return [tuple(labels[own[row]] for labels, own in encoded) for row in first.tolist()], code


def observed_groups(columns: Sequence[ColumnData]) -> list[tuple[Any, Ints]]:
    """Return the key and the positions of the rows of each group, sorted by key; see `encode_groups`."""
    keys, code = encode_groups(columns)
    order = np.argsort(code, kind="stable")
    start = np.flatnonzero(np.diff(code[order], prepend=-1))
    rows = np.split(order, start[1:]) if start.size else []
    return [(keys[code[own[0]]], own) for own in rows]


def _encode(column: ColumnData) -> tuple[list[Any], Ints]:
    """Return the distinct labels, sorted, and for each row the position of its label; no label is missing."""
    values = column.values
    if values.dtype.kind in "biufMm":
        first, code = _distinct(values)
        labels = values[first]
        return list(labels) if labels.dtype.kind in "Mm" else labels.tolist(), code
    if values.dtype.kind == "O" and len(values):
        # Cells of a column with few labels are often the same objects, of which there are few.
        objects = np.frombuffer(np.ascontiguousarray(values), dtype=np.uintp).astype(np.uint64, copy=False)
        found = _kernels.encode(objects, len(values) // 8)
        if found is not None and all(getattr(cell, "__hash__", None) for cell in values[found[0]]):
            names, place = encode(column.part(found[0]))
            return names, place[found[1]]
    return encode(column)


def _distinct(values: NDArray[Any]) -> tuple[Ints, Ints]:
    """Return the first row of each distinct number, in increasing order, and for each row the place of its number."""
    if values.dtype.kind == "f":
        bits = (values.astype(np.float64) + 0.0).view(np.uint64)  # -0.0 is 0.0
    else:
        bits = np.ascontiguousarray(values.astype(np.int64, copy=False)).view(np.uint64)
    found = _kernels.encode(bits, len(values) // 8)
    if found is None:  # sorting is as fast as a large hash table
        _, row, inverse = np.unique(values, return_index=True, return_inverse=True)
        return row, inverse
    order = np.argsort(values[found[0]])
    place = np.empty(order.size, dtype=np.int64)
    place[order] = np.arange(order.size)
    return found[0][order], place[found[1]]


def check_group_count(count: int, rows: int, *, fewest: int = FEWEST_ROWS, way_out: str = _WAY_OUT) -> None:
    """Raise an error if there are many groups with few rows each, as of a column of ids."""
    if count > MANY_GROUPS and rows < fewest * count:
        raise InputError(
            Argument("by")
            + f" must have at most {MANY_GROUPS:,} groups, or at least {fewest} rows per group on average; got "
            f"{count:,} groups of {rows / count:.3g} rows.",
            hint=f"Leave out columns of ids; round times to days or weeks, and numbers to groups.{way_out}",
            value=count,
        )


Missing: TypeAlias = Literal["raise", "drop"]
# Codes of the notes about dropped rows.
DROPPED = ("missing", "zero_weight", "zero_frequency")

Check: TypeAlias = Callable[[ColumnData], ColumnData]

_MOST_SINGLE_ROWS = 2**27  # about 1 GB per column


@dataclass(frozen=True, eq=False)
class Rows:
    """Columns of the same rows.

    Attributes
    ----------
    y : ColumnData
        Outcomes.
    forecasts : tuple
        The forecast of each model.
    weight : ColumnData or None
        Importance weights, or numbers of equal rows.
    importance : bool
        Whether `weight` holds importance weights.
    cluster : ColumnData or None
    time : ColumnData or None
        Numbers or times that order the rows.
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
    time: ColumnData | None = None
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
        time: Column | None = None,
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
        forecasts : mapping of name to column or to values with `part(rows)`, such as predictive distributions
        sample_weight, frequency, pos_label, missing
            See `ScoreTable.from_arrays`.
        cluster : column, optional
        time : column, optional
            Numbers, times, or text in the format of ISO 8601; not together with `cluster`.
        by : column, list or mapping of columns, or frame, optional
        hint : str, optional
            What to do about outcomes and forecasts of two dimensions.
        outcome : str, default="y_true"
            Name of the outcomes in error messages.
        """
        check_option("missing", missing, ("raise", "drop"))
        _columns.check_one_weight(sample_weight, frequency)
        if cluster is not None and time is not None:
            raise InputError(
                Argument("time") + " must not be given with " + Argument("cluster") + "; got both.",
                hint="Rows in time order are resampled in blocks of neighbouring times; pass one of the two.",
            )
        groups = group_columns(by)
        given = {outcome: y_true, **forecasts}
        read = {name: _read(column, name, hint) for name, column in given.items()}
        others = {"sample_weight": sample_weight, "frequency": frequency, "cluster": cluster, "time": time}
        for name, column in (others | groups).items():
            if column is not None:
                given[name] = column
                read[name] = _columns.read(column, name, hint=GROUP_HINT if name in groups else None)
        _columns.check_lengths(list(read.values()))
        _columns.check_alignment(given)
        if time is not None:
            read["time"] = _columns.times(read["time"])
        return cls(
            read[outcome],
            tuple([read[name] for name in forecasts]),
            read.get("frequency" if sample_weight is None else "sample_weight"),
            sample_weight is not None,
            read.get("cluster"),
            read.get("time"),
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
        others = [column for column in (self.weight, self.cluster, self.time) if column is not None]
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
    def cluster_column(self) -> Any:
        """The cluster of each row as a column that can be read again; None without clusters."""
        return None if self.cluster is None else np.ma.MaskedArray(self.cluster.values, mask=self.cluster.mask)

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
            time=None if self.time is None else self.time.part(rows),
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


class WeightOptions(TypedDict, total=False):
    """Keyword arguments of functions that read rows of numbers; see `MeanTable.from_arrays`."""

    sample_weight: Column | None
    frequency: Column | None
    missing: Missing


class RowOptions(WeightOptions, total=False):
    """Keyword arguments of functions that read rows of events; see `ScoreTable.from_arrays`."""

    pos_label: object


T = TypeVar("T", bound=Sized)


class TableReader(Generic[T]):
    """Reads the arguments of a metric: one table, or two columns and the options of `from_arrays`.

    Parameters
    ----------
    table : class
        Forecasts that declare another kind than the table are refused.
    prediction : str, optional
        Name of the predictions in error messages, by default that of `from_arrays`.
    from_arrays : callable, optional
        Function that calls the predictions so, too.
    """

    def __init__(
        self, table: type[T], prediction: str | None = None, from_arrays: Callable[..., T] | None = None
    ) -> None:
        known: Any = table
        self.table, self.kind = table, str(known.kind)
        self.from_arrays: Callable[..., T] = from_arrays or known.from_arrays
        self.parameters: Mapping[str, inspect.Parameter] = inspect.signature(known.from_arrays).parameters
        self.attribute: str = list(self.parameters)[1]  # of a forecast, such as `Point.y_pred`
        self.prediction: str = prediction or self.attribute

    def __call__(self, y_true: Any, prediction: Any, options: Mapping[str, Any]) -> T:
        """Return the table; an empty one is an error."""
        if not isinstance(y_true, self.table):
            self.check_given(prediction)
            return self.from_arrays(y_true, self.column(prediction), **options)
        others = [self.prediction] * (prediction is not None)
        others += [
            name for name, value in options.items() if value is not getattr(self.parameters.get(name), "default", None)
        ]
        if others:
            raise InputError(
                f"{', '.join(others)} must be omitted with a {self.table.__name__}; got both.",
                hint=f"The rows of a table are counted: pass such options to {self.table.__name__}.from_arrays.",
                argument=others[0],
            )
        if not len(y_true):
            raise InputError("The table holds no rows; a metric needs at least one.", argument="table")
        return y_true

    def check_given(self, prediction: Any) -> None:
        """Check that the predictions of one model are given."""
        if prediction is None:
            raise InputError(
                f"{self.prediction} is missing.",
                hint=f"Pass y_true and {self.prediction}, or one {self.table.__name__}.",
                argument=self.prediction,
            )
        if isinstance(prediction, Mapping):
            raise InputError(
                f"{self.prediction} must be one column of predictions; got a mapping.",
                hint="Pass the column of one model.",
                argument=self.prediction,
            )

    def column(self, prediction: Any) -> Any:
        """Return the predictions of a forecast that declares its kind, such as `Point`."""
        kind = declared_kind(prediction)
        if kind is None:
            return prediction
        if kind != self.kind:
            raise InputError(
                f"{self.prediction} must be a forecast of kind {self.kind!r}; got "
                f"{type(prediction).__name__}, whose kind is {kind!r}.",
                hint="Use a metric of that kind; see calibrant.METRICS.",
                argument=self.prediction,
            )
        return getattr(prediction, self.attribute, prediction)


def declared_kind(forecast: Any) -> str | None:
    """Return the kind that the type of a forecast or of a table declares; None for columns, where it means another."""
    kind = getattr(type(forecast), "kind", None)
    return kind if isinstance(kind, str) and not hasattr(forecast, "__array__") else None
