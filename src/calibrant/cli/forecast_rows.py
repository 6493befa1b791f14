"""Outcomes and forecasts of files, for all kinds but binary."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant._support import columns as _columns
from calibrant._support.arrays import Bools
from calibrant._support.columns import ColumnData
from calibrant._support.errors import InputError
from calibrant.cli.forecast_columns import KINDS, Model, parse_label
from calibrant.ingest.files import column_names, find_files, read_columns

if TYPE_CHECKING:
    from calibrant.cli.inputs import Source

__all__ = ["ForecastRows", "read_forecasts"]


@dataclass(frozen=True)
class ForecastRows:
    """Columns of files, checked so that an error names the column, the file and the row.

    Rows with a missing value stay: their outcome is masked, so that `evaluate` and `compare` drop and count them.

    Attributes
    ----------
    option : str
        The argument of the option that names the forecast.
    y : ColumnData
    models : tuple of Model
        With the classes of class probabilities as labels of `y`.
    columns : mapping of name to ColumnData
        The columns of the forecasts.
    options : mapping
        Arguments of `evaluate` and `compare` that are columns, and `missing`.
    inputs : list of dict
        Checksums of the files.
    """

    option: str
    y: ColumnData
    models: tuple[Model, ...]
    columns: dict[str, ColumnData]
    options: dict[str, Any]
    inputs: list[dict[str, Any]]

    @property
    def classes(self) -> dict[str, Any]:
        """The argument `classes` of `evaluate` and `compare`, for class probabilities."""
        return {"classes": list(self.models[0].keys)} if self.option == "class_score" else {}

    def complete(self, *models: Model) -> Bools:
        """Return the mask of rows whose outcome and forecasts by these models are not missing."""
        columns = [self.y, *(self.columns[name] for model in models for name in model.columns)]
        kept: Bools = ~np.logical_or.reduce([column.mask for column in columns])
        if not kept.any():
            raise InputError(f"At least one row must have no missing value; got none of {len(kept):,}.")
        return kept

    def weights(self) -> dict[str, Any]:
        """Return the arrays `sample_weight` and `frequency`, None where they are not given."""
        return {name: self.options.get(name) for name in ("sample_weight", "frequency")}

    def outcomes(self, *models: Model) -> Any:
        """Return the outcomes, masked where a forecast of these models is missing."""
        return _masked(self.y.values, ~self.complete(*models))

    def values(self, model: Model) -> Any:
        """Return the columns of a model; incomplete rows have the values of the first complete one."""
        kept = self.complete(model)
        columns = [self.columns[name].values for name in model.columns]
        if not kept.all():
            first = int(np.argmax(kept))
            columns = [np.where(kept, values, values[first]) for values in columns]
        return columns[0] if KINDS[self.option] in ("labels", "point") else np.column_stack(columns)

    def forecast(self, model: Model) -> Any:
        """Return the forecast of a model."""
        from calibrant.forecasts.distributions import Gaussian, Quantiles, Samples
        from calibrant.forecasts.predictions import Labels, Point

        values = self.values(model)
        if self.option == "mean":
            return Gaussian(values[:, 0], values[:, 1])
        if self.option == "quantile":
            return Quantiles(model.keys, values)
        forms: dict[str, Any] = {"predicted_label": Labels, "point": Point, "sample": Samples}
        return forms.get(self.option, np.asarray)(values)


def read_forecasts(source: "Source", *, cluster: str | None = None) -> ForecastRows:
    """Read outcomes and forecasts, with the weights, groups and clusters that the options name."""
    weighting = source.weighting
    weight = [] if weighting is None else [weighting.name]
    with source.open_files() as (files, inputs):
        found = find_files(files, source.format)
        models = source.models(column_names(found[0]))
        forecasts = list(dict.fromkeys(name for model in models for name in model.columns))
        numbers = [*([] if source.kind == "labels" else forecasts), *weight]
        numbers += [source.y] if source.kind in ("point", "distribution") else []
        names = list(
            dict.fromkeys([source.y, *forecasts, *weight, *source.by, *([] if cluster is None else [cluster])])
        )
        options: dict[str, Any] = {"format": source.format, "memory_limit": source.reading_memory}
        columns = read_columns(files, names, numbers, labels=False, **options)
    if source.kind in ("multiclass", "labels") and all(file.format != "parquet" for file in found):
        labels = [source.y, *(forecasts if source.kind == "labels" else [])]
        columns |= dict(zip(labels, _read_labels([columns[name] for name in labels]), strict=True))
    models = _with_classes(source, columns, models)
    _check(source, columns, forecasts)
    required = [columns[name] for name in names if name not in source.by]
    if source.missing == "raise":
        _columns.refuse_missing(required, hint=_columns.DROP)
    _columns.refuse_missing([columns[name] for name in source.by], hint="Give such rows a group of their own.")
    rows = {name: columns[name] for name in forecasts}
    options = _row_options(source, columns, cluster)
    return ForecastRows(source.option, columns[source.y], models, rows, options, inputs)


def _row_options(source: "Source", columns: dict[str, ColumnData], cluster: str | None) -> dict[str, Any]:
    given = {"sample_weight": source.sample_weight, "frequency": source.frequency, "cluster": cluster}
    found: dict[str, Any] = {
        name: _masked(columns[column].values, columns[column].mask)
        for name, column in given.items()
        if column is not None
    }
    if source.by:
        found["by"] = {name: columns[name].values for name in source.by}
    return found | {"missing": source.missing}


def _masked(values: Any, missing: Bools) -> Any:
    return np.ma.masked_array(values, missing) if missing.any() else values


def _check(source: "Source", columns: dict[str, ColumnData], forecasts: Sequence[str]) -> None:
    """Check numbers, and replace columns of objects, such as decimals, by columns of floats."""
    weighting = source.weighting
    if weighting is not None:
        weighting.checked(columns[weighting.name])
    if source.kind in ("point", "distribution"):
        columns[source.y] = _columns.finite(columns[source.y])
    for name in forecasts if source.kind != "labels" else ():
        if source.kind == "multiclass":
            _columns.scores(columns[name], squash="a softmax")
            columns[name] = _columns.numbers(columns[name])
        else:
            columns[name] = _columns.finite(columns[name])


def _with_classes(source: "Source", columns: dict[str, ColumnData], models: tuple[Model, ...]) -> tuple[Model, ...]:
    """Return the models with labels of the outcomes as classes, all in the order of the first model."""
    if source.kind != "multiclass":
        return models
    y = columns[source.y]
    text = set(models[0].keys)
    for model in models:
        if set(model.keys) != text:
            raise InputError(
                f"All models must have the same classes; {models[0].name!r} has {', '.join(models[0].keys)}, "
                f"{model.name!r} has {', '.join(model.keys)}.",
                argument="class_score",
            )
    labels = {key: _label(key, y.values) for key in models[0].keys}
    if len(set(labels.values())) < len(labels):
        raise InputError(
            f"The classes must be different labels; got {', '.join(labels)}, some of which are the same number.",
            argument="class_score",
        )
    _columns.codes(y, list(labels.values()), "class_score")
    found = []
    for model in models:
        column = dict(zip(model.keys, model.columns, strict=True))
        found.append(replace(model, columns=tuple(column[key] for key in labels), keys=tuple(labels.values())))
    return tuple(found)


def _label(text: str, outcomes: Any) -> Any:
    """Return a class as a label of the outcomes: a number or truth value where they hold such, else its text."""
    label = parse_label(text)
    known = outcomes.dtype.kind in ("b" if isinstance(label, bool) else "iuf")
    return text if label is None or not known else label


def _read_labels(columns: list[ColumnData]) -> list[ColumnData]:
    """Return labels of text files as numbers or truth values if all of them are, in all columns; else as text."""
    read = {word: parse_label(word) for column in columns for word in map(str, _columns.classes(column))}
    if not read or None in read.values() or len({isinstance(label, bool) for label in read.values()}) > 1:
        return columns
    kind = np.array(list(read.values())).dtype
    return [replace(column, values=_translated(column, read, kind)) for column in columns]


def _translated(column: ColumnData, read: dict[str, Any], kind: Any) -> Any:
    labels, codes = _columns.encode(column)
    return np.array([*(read[str(label)] for label in labels), 0], dtype=kind)[codes]  # a missing label has code -1
