"""Reading of rows for an audit: outcomes, forecasts that have residuals, and features."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import SeedSequence, default_rng

from calibrant._support import columns as _columns
from calibrant._support.arrays import Bools, Column, Ints
from calibrant._support.columns import ColumnData
from calibrant._support.errors import Argument, InputError
from calibrant.evaluation.audit.features import COARSE_CODES, FeatureCodes, count_feature
from calibrant.evaluation.audit.residual_blocks import AuditRows
from calibrant.forecasts.kinds import forecast_kind
from calibrant.forecasts.predictions import Point
from calibrant.tables.class_table import ClassProbabilities, used_rows
from calibrant.tables.mean_table import ONE_COLUMN, check_means
from calibrant.tables.rows import Rows, several_columns
from calibrant.tables.score_table import ScoreTable, check_scores

__all__ = ["AUDITED_KINDS", "FORECAST_FEATURES", "check_kind", "name_forecast_features", "read_rows", "split_units"]

# For each kind with residuals, the features that describe the forecast.
FORECAST_FEATURES = {
    "binary": ("score",),
    "multiclass": ("predicted label", "top-label probability"),
    "point": ("prediction",),
}
AUDITED_KINDS = tuple(FORECAST_FEATURES)
_SPLIT = 2**16  # units that are divided into halves at once


def check_kind(kind: str) -> str:
    """Return a kind of forecast that has residuals; others are an error."""
    if kind in AUDITED_KINDS:
        return kind
    hint = {
        "labels": "Labels have no residuals: pass class probabilities.",
        "distribution": "Pass its means as cb.Point(mean).",
    }[kind]
    raise InputError(
        Argument("forecast")
        + f" must be scores of an event, class probabilities (n, K) or cb.Point; got the kind {kind!r}.",
        hint=hint,
    )


def name_forecast_features(kind: str, features: Sequence[str]) -> list[str]:
    """Return the names of the features that describe the forecast, different from those of the features."""
    return [f"forecast's {name}" if name in features else name for name in FORECAST_FEATURES[kind]]


def read_rows(
    y_true: Column,
    forecast: Any,
    features: Any,
    *,
    cluster: Column | None,
    classes: Sequence[Any] | None,
    seed: SeedSequence,
    options: Mapping[str, Any],
) -> AuditRows:
    """Read the columns of the same rows, and divide them into two halves."""
    if isinstance(y_true, ScoreTable) or forecast is None or isinstance(forecast, Mapping):
        raise InputError(
            Argument("y_true") + " and " + Argument("forecast") + " must be columns of one model's rows; got a table, "
            "a mapping or nothing.",
            hint="An audit needs the features of each row.",
        )
    kind = check_kind(forecast_kind(y_true, forecast))
    if classes is not None and kind != "multiclass":
        raise InputError(Argument("classes") + f" must be given with class probabilities only; got the kind {kind!r}.")
    if options.get("pos_label") is not None and kind != "binary":
        raise InputError(Argument("pos_label") + f" must be given with scores only; got the kind {kind!r}.")
    columns = _feature_columns(features, y_true)
    rows, described, kept = _READERS[kind](y_true, forecast, next(iter(columns.values())), cluster, classes, options)
    _columns.check_lengths([_length(rows), *columns.values()])
    own = dict(zip(name_forecast_features(kind, list(columns)), described, strict=True))
    return encode_rows(kind, rows, {name: column.part(kept) for name, column in columns.items()}, own, seed)


def _feature_columns(features: Any, y_true: Column) -> dict[str, ColumnData]:
    if getattr(features, "ndim", 1) == 2 and not hasattr(type(features), "columns"):
        features = list(np.asarray(features).T)  # a matrix of rows and columns
    named = several_columns(features, "features") or {str(getattr(features, "name", None) or "feature"): features}
    given = {f"features[{name!r}]": column for name, column in named.items()}
    _columns.check_alignment({"y_true": y_true, **given})
    return {name: _columns.read(column, full) for name, (full, column) in zip(named, given.items(), strict=True)}


class _Length:
    """The number of rows that were read, under the name of the outcomes."""

    def __init__(self, name: str, rows: int) -> None:
        self.name, self.rows = name, rows

    def __len__(self) -> int:
        return self.rows


def _length(rows: Rows) -> _Length:
    return _Length("y_true", rows.n_in)


class _Positions:
    """Row numbers, which follow the rows that are used."""

    def __init__(self, name: str, values: Ints) -> None:
        self.name, self.values = name, values

    def __len__(self) -> int:
        return len(self.values)

    def part(self, rows: Any) -> "_Positions":
        return _Positions(self.name, self.values[rows])


def _with_positions(
    y_true: Column, forecast: Any, feature: ColumnData, cluster: Column | None, options: Mapping[str, Any]
) -> Rows:
    positions = _Positions(feature.name, np.arange(len(feature)))
    return Rows.read(y_true, {"forecast": forecast, "features": positions}, cluster=cluster, **options)


_Read = tuple[Rows, list[ColumnData], Ints]


def _read_scores(
    y_true: Column, forecast: Any, feature: ColumnData, cluster: Column | None, classes: Any, options: Mapping[str, Any]
) -> _Read:
    used = check_scores(_with_positions(y_true, forecast, feature, cluster, options))
    score, places = used.forecasts
    return replace(used, forecasts=(score,)), [score], places.values


def _read_points(
    y_true: Column, forecast: Any, feature: ColumnData, cluster: Column | None, classes: Any, options: Mapping[str, Any]
) -> _Read:
    values = forecast.y_pred if isinstance(forecast, Point) else forecast
    options = {name: value for name, value in options.items() if name != "pos_label"}
    used = check_means(_with_positions(y_true, values, feature, cluster, {**options, "hint": ONE_COLUMN}))
    prediction, places = used.forecasts
    return replace(used, forecasts=(prediction,)), [prediction], places.values


def _read_classes(
    y_true: Column, forecast: Any, feature: ColumnData, cluster: Column | None, classes: Any, options: Mapping[str, Any]
) -> _Read:
    proba = ClassProbabilities.read(forecast)
    options = {name: value for name, value in options.items() if name != "pos_label"}
    used = used_rows(_with_positions(y_true, proba, feature, cluster, options))
    rows, described = top_label_rows(used, proba.class_names(classes))
    return rows, described, used.forecasts[1].values


def top_label_rows(used: Rows, labels: Sequence[Any]) -> tuple[Rows, list[ColumnData]]:
    """Return rows of the top label, whose outcome is whether it occurred, and the features that describe it."""
    matrix = used.forecasts[0].matrix
    best = np.argmax(matrix, axis=1)
    code = _columns.codes(used.y, list(labels), "classes")
    names = np.empty(len(labels), dtype=object)
    names[:] = list(labels)
    score = ColumnData("top-label probability", matrix[np.arange(best.size), best], None, used.forecasts[0].marks.notes)
    y = replace(used.y, values=(code == best).astype(np.int8))
    return replace(used, y=y, forecasts=(score,)), [ColumnData("predicted label", names[best], None), score]


_READERS: dict[str, Callable[..., _Read]] = {
    "binary": _read_scores,
    "multiclass": _read_classes,
    "point": _read_points,
}


def encode_rows(
    kind: str, rows: Rows, given: Mapping[str, ColumnData], described: Mapping[str, ColumnData], seed: SeedSequence
) -> AuditRows:
    """Encode the features of rows, and divide the rows into halves."""
    every = {**given, **described}
    features: tuple[FeatureCodes, ...] = tuple(count_feature(name, column) for name, column in every.items())
    encoded = [feature.encode(column) for feature, column in zip(features, every.values(), strict=True)]
    codes, coarse = (np.stack(each) for each in zip(*encoded, strict=True))
    assert int(coarse.max()) < COARSE_CODES
    cluster = rows.cluster_codes
    units = split_units(len(rows) if cluster is None else int(cluster.max()) + 1, seed)
    return AuditRows(kind, rows, features, len(given), codes, coarse, units if cluster is None else units[cluster])


def split_units(count: int, seed: SeedSequence) -> Bools:
    """Return which units (rows or clusters) belong to the first half, at random.

    Units are divided in runs of 65,536, so that memory is bounded.
    """
    rng, first = default_rng(seed), np.zeros(count, dtype=bool)
    for start in range(0, count, _SPLIT):
        size = min(_SPLIT, count - start)
        first[start + rng.permutation(size)[: size // 2]] = True
    return first
