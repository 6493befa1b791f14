"""Reading of rows for an audit: outcomes, forecasts that have residuals, and features."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import SeedSequence, default_rng

from calibrant._support import columns as _columns
from calibrant._support.arrays import Bools, Column
from calibrant._support.columns import ColumnData
from calibrant._support.errors import Argument, InputError
from calibrant.evaluation.audit.features import COARSE_CODES, FeatureCodes, count_feature
from calibrant.evaluation.audit.residual_blocks import AuditRows
from calibrant.kinds.audit import AuditedForecasts
from calibrant.kinds.base import KINDS, Kind, forecast_kind, kind_of
from calibrant.tables.rows import Rows, several_columns
from calibrant.tables.score_table import ScoreTable

_SPLIT = 2**16  # units that are divided into halves at once


def audited_kind(name: str) -> Kind:
    """Return a kind of forecast that has residuals; others are an error."""
    kind = kind_of(name)
    hint = kind.optional("audit.NOT_AUDITED")
    if hint is not None:
        kinds = " or ".join(repr(name) for name, each in KINDS.items() if each.optional("audit.AUDIT"))
        raise InputError(Argument("forecast") + f" must be of kind {kinds}; got the kind {name!r}.", hint=hint)
    return kind


def check_audit_options(kind: Kind, given: Mapping[str, Any]) -> None:
    """Raise an error if an option is given that the kind does not have."""
    for name, value in given.items():
        if value is not None and name not in kind.optional("audit.AUDIT").options:
            raise InputError(Argument(name) + f" must be omitted for forecasts of kind {kind.name!r}; got {value!r}.")


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
    kind = audited_kind(forecast_kind(y_true, forecast))
    check_audit_options(kind, {"classes": classes, "pos_label": options.get("pos_label")})
    columns = _feature_columns(features, y_true)
    audited: AuditedForecasts = kind.optional("audit.AUDIT")
    column, labels = audited.forecast_column(forecast, classes)
    options = {name: value for name, value in options.items() if name != "pos_label" or name in audited.options}
    feature = next(iter(columns.values()))
    read = {"forecast": column, "features": Positions(feature.name, np.arange(len(feature)))}
    rows, described = audited.check(Rows.read(y_true, read, cluster=cluster, **options, **audited.reading), labels)
    kept = rows.forecasts[-1].values
    rows = replace(rows, forecasts=rows.forecasts[:1])
    _columns.check_lengths([Positions("y_true", range(rows.n_in)), *columns.values()])
    named = dict(zip(name_forecast_features(kind.name, list(columns)), described, strict=True))
    return encode_rows(kind.name, rows, {name: c.part(kept) for name, c in columns.items()}, named, seed)


def name_forecast_features(kind: str, features: Sequence[str]) -> list[str]:
    """Return the names of the features that describe the forecast, different from those of the features."""
    own = kind_of(kind).optional("audit.AUDIT").features
    return [f"forecast's {name}" if name in features else name for name in own]


def _feature_columns(features: Any, y_true: Column) -> dict[str, ColumnData]:
    if getattr(features, "ndim", 1) == 2 and not hasattr(type(features), "columns"):
        features = list(np.asarray(features).T)  # a matrix of rows and columns
    named = several_columns(features, "features") or {str(getattr(features, "name", None) or "feature"): features}
    given = {f"features[{name!r}]": column for name, column in named.items()}
    _columns.check_alignment({"y_true": y_true, **given})
    return {name: _columns.read(column, full) for name, (full, column) in zip(named, given.items(), strict=True)}


@dataclass(frozen=True, eq=False)
class Positions:
    """Row numbers, which follow the rows that are used; errors about their length have the name of a column."""

    name: str
    values: Any

    def __len__(self) -> int:
        return len(self.values)

    def part(self, rows: Any) -> "Positions":
        """Return the numbers of some rows."""
        return Positions(self.name, self.values[rows])


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
