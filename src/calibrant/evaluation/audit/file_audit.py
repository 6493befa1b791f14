"""The audit of files that are larger than memory."""

import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from calibrant._support import columns as _columns
from calibrant._support.columns import ColumnData, encode, sort_labels
from calibrant._support.errors import Argument, InputError, Note, join_notes, renamed_options
from calibrant._support.file_writing import reserve, temporary_writes
from calibrant._support.lazy import warn_moved
from calibrant.evaluation.audit.audit_rows import (
    Positions,
    audited_kind,
    check_audit_options,
    name_forecast_features,
    split_units,
)
from calibrant.evaluation.audit.features import FeatureCodes, FeatureCounter, changed_error
from calibrant.evaluation.audit.residual_blocks import AuditRows
from calibrant.evaluation.audit.segment_audit import audit, audit_sample
from calibrant.ingest.counting import BatchLabels, Weighting
from calibrant.ingest.files import Batch, FileReader, Paths, find_files
from calibrant.ingest.formats import File, Format
from calibrant.ingest.memory import read_size, reading_memory
from calibrant.ingest.table_counter import check_name, check_names
from calibrant.ingest.text_files import number_keys, parse_number
from calibrant.kinds.audit import AuditedForecasts
from calibrant.kinds.base import kind_of, named_columns_kind
from calibrant.results.audit import Audit
from calibrant.tables.rows import Missing, Rows, missing_note


def audit_files(
    paths: Paths,
    y: str,
    forecast: Any,
    features: Any,
    settings: dict[str, Any],
    seeds: list[np.random.SeedSequence],
    *,
    sample_weight: str | None = None,
    frequency: str | None = None,
    cluster: str | None = None,
    pos_label: object = None,
    missing: Missing = "raise",
    format: Format | None = None,
    max_memory: int | str | None = None,
    progress: bool | None = None,
) -> Audit:
    """Audit the rows of files; see `audit`. The seeds are those of the split and of the null replicates."""
    split, null = seeds
    source = _Source.named(y, forecast, features, sample_weight, frequency, cluster, pos_label, missing)
    reader = source.open(paths, format, read_size(max_memory))
    counted = source.count(reader, progress)
    with tempfile.TemporaryDirectory(prefix="calibrant-") as folder:
        sample = source.encode(reader, counted, Path(folder), split, progress)
        return audit_sample(sample, settings, null, progress)


@renamed_options(memory_limit="max_memory")
def audit_scan(paths: Paths, *, y: str, p: Any, features: str | Sequence[str], **options: Any) -> Audit:
    """Audit the rows of files; deprecated: use `audit`."""
    warn_moved("calibrant.inference.audit_scan", "calibrant.audit", stacklevel=3)
    return audit(paths, y=y, forecast=p, features=features, **options)


@dataclass
class _Counted:
    """What the first pass finds: features, rows, clusters, and notes."""

    features: tuple[FeatureCodes, ...]
    n_in: int
    n_used: int
    notes: tuple[Note, ...]
    clusters: dict[Any, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Source:
    """The names of columns, and how rows are read."""

    kind: str
    y: str
    forecasts: tuple[str, ...]
    labels: tuple[Any, ...]
    features: tuple[str, ...]
    weighting: Weighting | None
    cluster: str | None
    pos_label: object
    missing: Missing

    @classmethod
    def named(
        cls,
        y: str,
        forecast: Any,
        features: str | Sequence[str],
        sample_weight: str | None,
        frequency: str | None,
        cluster: str | None,
        pos_label: object,
        missing: Missing,
    ) -> "_Source":
        """Check the names."""
        kind = audited_kind(named_columns_kind(forecast))
        columns, labels = (
            kind.optional("audit.AUDIT").forecast_column(forecast, None)
            if not isinstance(forecast, Mapping)
            else (list(forecast.values()), tuple(forecast))
        )
        names = check_names(columns, "forecast")
        check_name(y, "y")
        if not labels and len(names) > 1:
            raise InputError(
                Argument("forecast") + f" must be one column, cb.Point(column), or a mapping of classes; got {names}.",
                hint="Audit each model by itself.",
            )
        check_audit_options(kind, {"pos_label": pos_label})
        _columns.check_one_weight(sample_weight, frequency)
        weighting = Weighting.named(sample_weight, frequency)
        own = tuple(check_names(features, "features"))
        return cls(kind.name, y, tuple(names), labels, own, weighting, cluster, pos_label, missing)

    @property
    def _audit(self) -> AuditedForecasts:
        """How rows of this kind of forecast are audited."""
        audited: AuditedForecasts = kind_of(self.kind).optional("audit.AUDIT")
        return audited

    @property
    def names(self) -> list[str]:
        """All columns, that of the outcomes first."""
        weight = [] if self.weighting is None else [self.weighting.name]
        others = [] if self.cluster is None else [self.cluster]
        return list(dict.fromkeys([self.y, *self.forecasts, *weight, *others, *self.features]))

    def open(self, paths: Paths, format: Format | None, max_memory: int | None) -> FileReader:
        """Return the reader of the files."""
        files = find_files(paths, format)
        numbers = [*self.forecasts, *([] if self.weighting is None else [self.weighting.name])]
        numbers += [] if self._audit.terms.is_share else [self.y]
        first = FileReader(files, self.names, numbers, max_memory)
        if all(file.format == "parquet" for file in files):
            return first
        found = [name for name in self.features if name not in numbers]
        for file in {file.format: file for file in reversed(files)}.values():  # the first of each format
            found = _number_columns(file, found, max_memory)
        return FileReader(files, self.names, [*numbers, *found], max_memory)

    def batches(
        self, reader: FileReader, labels: BatchLabels, progress: bool | None
    ) -> Iterator[tuple[Rows, dict[str, ColumnData], Rows]]:
        """Yield the used rows of each batch, their features, and the rows that were read."""
        described = name_forecast_features(self.kind, self.features)
        as_numbers = "pos_label" in self._audit.options and not isinstance(self.pos_label, str)
        for batch in reader.batches(progress, labels=as_numbers):
            reader.check_labels()
            y = batch[self.y]
            given = self._rows(batch, labels.events(y) if labels.pos_label is not None else y)
            if self.missing == "drop" and given.is_empty:
                lost = len(given)
                yield replace(given.part(slice(0, 0)), n_in=lost, dropped=(missing_note(lost),)), {}, given
                continue
            labels_of_rows = _as_labels(self.labels, given.y) if self.labels else ()
            rows, own = self._audit.check(given, labels_of_rows)
            kept = rows.forecasts[-1].values
            columns = {name: batch[name].part(kept) for name in self.features}
            columns |= dict(zip(described, own, strict=True))
            yield replace(rows, forecasts=rows.forecasts[:1]), columns, given

    def _rows(self, batch: Batch, y: ColumnData) -> Rows:
        weight = None if self.weighting is None else batch[self.weighting.name]
        forecast = self._audit.batch_forecast([batch[name] for name in self.forecasts])
        return Rows(
            y,
            (forecast, Positions("rows", np.arange(len(y)))),
            weight,
            self.weighting is not None and self.weighting.importance,
            None if self.cluster is None else batch[self.cluster],
            missing=self.missing,
            n_in=len(y),
        )

    def count(self, reader: FileReader, progress: bool | None) -> _Counted:
        """Read the files for the first time."""
        every = [*self.features, *name_forecast_features(self.kind, self.features)]
        counters = [FeatureCounter(name) for name in every]
        found = _Counted((), 0, 0, ())
        labels = BatchLabels(self.pos_label)
        for rows, columns, given in self.batches(reader, labels, progress):
            found.n_in += len(given)
            found.n_used += len(rows)
            found.notes = join_notes(found.notes, rows.notes)
            for counter in counters if columns else ():
                counter.add(replace(columns[counter.name], first_row=0))
            if rows.cluster is not None and len(rows):
                found.clusters |= dict.fromkeys(encode(rows.cluster)[0], 0)
        if not found.n_used:
            raise InputError(f"At least one row must have no missing value; got none of {found.n_in:,}.")
        found.notes = join_notes(found.notes, labels.finish(self.y))
        found.features = tuple(counter.finish() for counter in counters)
        found.clusters = {label: i for i, label in enumerate(sort_labels(set(found.clusters)))}
        return found

    def encode(
        self, reader: FileReader, counted: _Counted, folder: Path, seed: np.random.SeedSequence, progress: bool | None
    ) -> AuditRows:
        """Read the files for the second time, and write encoded rows to a folder."""
        n, shape = counted.n_used, (len(counted.features), counted.n_used)
        kinds: dict[str, type[np.generic]] = {"y": np.float64, "p": np.float64}
        kinds |= {} if self.weighting is None else {"w": np.float64}
        kinds |= {} if self.cluster is None else {"c": np.int64}
        with temporary_writes(folder):
            codes, coarse = (_mapped(folder / name, np.uint8, shape) for name in ("codes", "coarse"))
            columns = {name: _mapped(folder / name, kind, (n,)) for name, kind in kinds.items()}
        start = 0
        for rows, features, _ in self.batches(reader, BatchLabels(self.pos_label), progress):
            if not len(rows):
                continue
            end = start + len(rows)
            if end > n:
                raise changed_error(rows.y)
            columns["y"][start:end], columns["p"][start:end] = rows.y.values, rows.forecasts[0].values
            if rows.weight is not None:
                columns["w"][start:end] = rows.weight.values
            if rows.cluster is not None:
                labels, place = encode(rows.cluster)
                if not counted.clusters.keys() >= set(labels):
                    raise changed_error(rows.cluster)
                columns["c"][start:end] = np.array([counted.clusters[label] for label in labels])[place]
            for i, feature in enumerate(counted.features):
                codes[i, start:end], coarse[i, start:end] = feature.encode(features[feature.name])
            start = end
        if start < n:
            raise changed_error(ColumnData(self.y, np.empty(0)))
        return self._sample(counted, columns, codes, coarse, seed)

    def _sample(
        self, counted: _Counted, columns: dict[str, Any], codes: Any, coarse: Any, seed: np.random.SeedSequence
    ) -> AuditRows:
        cluster = columns.get("c")
        rows = Rows(
            ColumnData("y", columns["y"], None, counted.notes),
            (ColumnData("p", columns["p"], None),),
            None if self.weighting is None else ColumnData(self.weighting.name, columns["w"], None),
            self.weighting is not None and self.weighting.importance,
            None if cluster is None else ColumnData("cluster", cluster, None),
            n_in=counted.n_in,
        )
        units = split_units(counted.n_used if cluster is None else len(counted.clusters), seed)
        first = units if cluster is None else units[cluster]
        return AuditRows(self.kind, rows, counted.features, len(self.features), codes, coarse, first)


def _mapped(path: Path, kind: Any, shape: tuple[int, ...]) -> Any:
    """Return an array of zeros on disk."""
    reserve(path, math.prod(shape) * np.dtype(kind).itemsize)
    return np.memmap(path, dtype=kind, mode="r+", shape=shape)


def _number_columns(file: File, names: list[str], max_memory: int | None) -> list[str]:
    """Return the named columns that hold numbers in the first rows of a file; text of digits is a number in CSV."""
    if file.format == "json" or not names:
        return number_keys(file, names, reading_memory(max_memory))
    batch: Batch = next(iter(FileReader([file], names, [], max_memory).batches(False, labels=False)), {})
    return [name for name in names if name in batch and _are_numbers(batch[name], file.format == "csv")]


def _are_numbers(column: ColumnData, parse: bool) -> bool:
    present = column.values[~column.mask]
    if present.dtype.kind != "O" or not present.size:
        return present.dtype.kind in "iuf" and bool(present.size)
    return parse and all(isinstance(value, str) and parse_number(value.strip()) is not None for value in present)


def _as_labels(labels: Sequence[Any], y: ColumnData) -> list[Any]:
    """Return the classes as labels of the outcomes: text as numbers where the outcomes are, numbers as text else."""
    if y.values.dtype.kind in "iuf":
        with suppress(ValueError):
            return [float(label) if isinstance(label, str) else label for label in labels]
    if y.values.dtype.kind == "O":
        return [label if isinstance(label, str) else str(label) for label in labels]
    return list(labels)
