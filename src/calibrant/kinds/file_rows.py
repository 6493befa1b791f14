"""`FileRows`: outcomes, forecasts, weights and groups that were read from columns of files."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calibrant._support import columns as _columns
from calibrant._support.arrays import Bools
from calibrant._support.columns import ColumnData
from calibrant._support.errors import InputError, Note
from calibrant.kinds.columns import ForecastColumns, Model, parse_label
from calibrant.tables.rows import missing_note


@dataclass(frozen=True)
class FileRows:
    """Columns of files, checked so that an error names the column, the file and the row.

    Rows with a missing value stay: their outcome is masked, so that `evaluate` and `compare` drop and count them.

    Attributes
    ----------
    form : ForecastColumns
        How forecasts of the kind are columns.
    option : str
        The argument of the option that names the forecasts.
    y : ColumnData
    models : tuple of Model
    columns : mapping of name to ColumnData
        All columns but that of the outcomes.
    roles : mapping of argument to name
        The columns of ``sample_weight``, ``frequency``, ``cluster`` and ``time`` that are given.
    by : tuple of str
        The columns of groups.
    missing : {"raise", "drop"}
    pos_label : str or None
        The label of the event.
    any_score : bool
        Whether scores need not be probabilities.
    is_text : bool
        Whether the files hold text only, which has no types.
    notes : tuple of Note
    inputs : list of dict
        Checksums of the files.
    """

    form: ForecastColumns
    option: str
    y: ColumnData
    models: tuple[Model, ...]
    columns: Mapping[str, ColumnData]
    roles: Mapping[str, str] = field(default_factory=dict)
    by: tuple[str, ...] = ()
    missing: str = "raise"
    pos_label: str | None = None
    any_score: bool = False
    is_text: bool = False
    notes: tuple[Note, ...] = ()
    inputs: list[dict[str, Any]] = field(default_factory=list)

    @property
    def forecast_names(self) -> list[str]:
        """The columns of all forecasts, each once."""
        return list(dict.fromkeys(name for model in self.models for name in model.columns))

    def map_forecasts(self, check: Callable[[ColumnData], ColumnData]) -> "FileRows":
        """Return rows with a function applied to the columns of forecasts."""
        return replace(
            self, columns={**self.columns, **{name: check(self.columns[name]) for name in self.forecast_names}}
        )

    def complete(self, *models: Model) -> Bools:
        """Return the mask of rows without a missing value, apart from groups and forecasts of other models."""
        unused = {*self.by, *self.forecast_names}.difference(*(model.columns for model in models))
        columns = [self.y, *(column for name, column in self.columns.items() if name not in unused)]
        kept: Bools = ~np.logical_or.reduce([column.mask for column in columns])
        if not kept.any():
            raise InputError(f"At least one row must have no missing value; got none of {len(kept):,}.")
        return kept

    def without_missing(self, model: Model) -> "FileRows":
        """Return the complete rows of a model, with a note that counts the others."""
        kept = self.complete(model)
        if kept.all():
            return self
        columns = {name: column.part(kept) for name, column in self.columns.items()}
        notes = (*self.notes, missing_note(int((~kept).sum())))
        return replace(self, y=self.y.part(kept), columns=columns, notes=notes)

    def outcomes(self, *models: Model) -> Any:
        """Return the outcomes, masked where a value of these models' rows is missing."""
        return _masked(self.y.values, ~self.complete(*models))

    def values(self, model: Model) -> Any:
        """Return the values of a model's forecasts; incomplete rows have those of the first complete one."""
        kept = self.complete(model)
        columns = [self.columns[name].values for name in model.columns]
        if not kept.all():
            first = int(np.argmax(kept))
            columns = [np.where(kept, values, values[first]) for values in columns]
        return columns[0] if self.form.is_one_column else np.column_stack(columns)

    def forecast(self, model: Model) -> Any:
        """Return the forecast of a model."""
        return self.form.forecast(self.option, model, self.values(model))

    @property
    def weights(self) -> dict[str, Any]:
        """The arrays `sample_weight` and `frequency`, None where they are not given."""
        return {name: self._role(name) for name in ("sample_weight", "frequency")}

    def arguments(self, model: Model) -> dict[str, Any]:
        """Return the arguments of `evaluate` and `compare` other than outcomes and forecasts."""
        given = {name: self._role(name) for name in self.roles}
        groups = {"by": {name: self.columns[name].values for name in self.by}} if self.by else {}
        return {**given, **groups, "missing": self.missing, **self.form.arguments(model)}

    def _role(self, name: str) -> Any:
        if name not in self.roles:
            return None
        column = self.columns[self.roles[name]]
        return _masked(column.values, column.mask)


def _masked(values: Any, missing: Bools) -> Any:
    return np.ma.masked_array(values, missing) if missing.any() else values


def text_as_labels(columns: Sequence[ColumnData]) -> list[ColumnData]:
    """Return labels that are text as numbers or truth values if all of them are, in all columns; else as text."""
    read = {text: parse_label(text) for column in columns for text in map(str, _columns.classes(column))}
    if not read or None in read.values() or len({isinstance(label, bool) for label in read.values()}) > 1:
        return list(columns)
    kind = np.array(list(read.values())).dtype
    return [replace(column, values=_translated(column, read, kind)) for column in columns]


def _translated(column: ColumnData, read: Mapping[str, Any], kind: Any) -> Any:
    labels, codes = _columns.encode(column)
    return np.array([*(read[str(label)] for label in labels), 0], dtype=kind)[codes]  # a missing label has code -1
