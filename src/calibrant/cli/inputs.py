"""Input of the commands: files to tables or to columns of rows, and calibrators."""

import shlex
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from calibrant._support.errors import Argument, InputError, Note
from calibrant.cli.forecast_columns import (
    KINDS,
    Model,
    check_forecast_options,
    find_models,
    forecast_option,
    parse_label,
)
from calibrant.cli.input_files import plain_files

if TYPE_CHECKING:
    from calibrant.ingest.counting import Weighting
    from calibrant.tables.collection import Tables

__all__ = ["FileRows", "Source", "load_calibrator"]

T = TypeVar("T")

_LEAST_READING_MEMORY = 64 * 2**20


@dataclass(frozen=True)
class FileRows:
    """Rows of the files, without those that have a missing value or with a masked outcome in these.

    Attributes
    ----------
    events : array of bool
    columns : mapping of name to array
        The scores and the other columns that were asked for.
    weights : mapping
        The arrays `sample_weight` and `frequency`, None where they are not given.
    notes : tuple of Note
    inputs : list of dict
        Checksums of the files.
    """

    events: Any
    columns: dict[str, Any]
    weights: dict[str, Any]
    notes: tuple[Note, ...]
    inputs: list[dict[str, Any]]


@dataclass(frozen=True)
class Source:
    """Files, the columns to read and how to read them: the options of `calibrant.cli.options.input_options`."""

    paths: tuple[str, ...]
    y: str
    p: tuple[str, ...]
    sample_weight: str | None
    frequency: str | None
    pos_label: str | None
    missing: str
    format: Any
    encoding: str | None
    max_bytes: int | None
    sha256: bool
    class_score: tuple[str, ...] = ()
    predicted_label: tuple[str, ...] = ()
    point: tuple[str, ...] = ()
    mean: tuple[str, ...] = ()
    sd: tuple[str, ...] = ()
    quantile: tuple[str, ...] = ()
    sample: tuple[str, ...] = ()
    max_memory: int | None = None
    by: tuple[str, ...] = ()
    resolution: float | None = None
    spark: str | None = None

    @classmethod
    def take(cls, given: dict[str, Any]) -> "Source":
        """Remove the options of the input from all options; those of different kinds of forecast are an error."""
        check_forecast_options(forecast_option(given), given)
        return cls(**{name: given.pop(name) for name in list(given) if name in cls.__dataclass_fields__})

    @property
    def option(self) -> str:
        """The argument of the option that names the forecast."""
        return forecast_option(vars(self))

    @property
    def kind(self) -> str:
        """The kind of forecast."""
        return KINDS[self.option]

    def models(self, there: Sequence[str]) -> tuple[Model, ...]:
        """Return the models that the options name; `there` are the columns of the file."""
        return find_models(self.option, vars(self), there)

    @property
    def scores(self) -> list[str]:
        """The columns of scores, each once."""
        return list(dict.fromkeys(self.p))

    @property
    def title(self) -> str:
        """The title of a report: the names of the files without their folders."""
        names = ", ".join("standard input" if path == "-" else Path(path).name or path for path in self.paths[:3])
        return f"Calibration of {names}{', ...' if len(self.paths) > 3 else ''}"

    @property
    def commands(self) -> dict[str, str]:
        """For each score the arguments of a command that name files (without their folders), outcome and score."""
        files = ["rows.csv" if path == "-" else Path(path).name or path for path in self.paths[:3]]
        more = " ..." if len(self.paths) > 3 else ""
        options = {"--label": self.y, "--pos-label": self.pos_label, "--sample-weight": self.sample_weight}
        options |= {"--frequency": self.frequency}
        given = [part for name, value in options.items() if value is not None for part in (name, value)]
        return {score: f"{shlex.join(files)}{more} {shlex.join([*given, '--score', score])}" for score in self.scores}

    def read_tables(self) -> "tuple[Tables, list[dict[str, Any]]]":
        """Count the rows of the files; also return the checksums of the files."""
        with self.open_files() as (files, inputs):
            tables = self.try_pos_label(lambda pos_label: self._count(files, pos_label), _table_notes)
        return tables, inputs

    def read_rows(self, *others: str, any_score: bool = False, whole: bool = False) -> FileRows:
        """Read the rows of the files that have no missing value: outcomes, scores, weights and `others`.

        Columns are checked here, so that an error names the column, the file and the row. `any_score`: scores need not
        be probabilities. `whole`: rows with a missing value stay, with a masked outcome, so that results count them.
        """
        import numpy as np

        from calibrant._support import columns as _columns
        from calibrant.ingest.files import read_columns
        from calibrant.tables.rows import missing_note

        weighting = self.weighting
        numbers = [*self.scores, *([] if weighting is None else [weighting.name])]
        names = list(dict.fromkeys([self.y, *numbers, *others]))
        with self.open_files() as (files, inputs):
            columns = read_columns(files, names, numbers, format=self.format, memory_limit=self.reading_memory)
        events = self.try_pos_label(
            lambda pos_label: _columns.events(columns[self.y], pos_label), lambda column: column.notes
        )
        for name in self.scores:
            (_columns.finite if any_score else _columns.scores)(columns[name])
        if weighting is not None:
            weighting.checked(columns[weighting.name])
        if self.missing == "raise":
            _columns.refuse_missing(list(columns.values()), hint=_columns.DROP)
        elif whole:
            _columns.refuse_missing([columns[name] for name in self.by], hint="Give such rows a group of their own.")
        kept = ~np.logical_or.reduce([column.mask for column in columns.values()])
        if not kept.any():
            raise InputError(f"At least one row must have no missing value; got none of {len(kept):,}.")
        notes = tuple(note for note in events.notes if note.code == "event_absent")
        event: Any = events.values == 1
        if whole and not kept.all():
            event = np.ma.masked_array(event, ~kept)
            values = {name: np.ma.masked_array(column.values, column.mask) for name, column in columns.items()}
        else:
            event, values = event[kept], {name: column.values[kept] for name, column in columns.items()}
            notes += () if kept.all() else (missing_note(int((~kept).sum())),)
        weights = {name: values.get(getattr(self, name)) for name in ("sample_weight", "frequency")}
        return FileRows(event, values, weights, notes, inputs)

    @property
    def weighting(self) -> "Weighting | None":
        """The column of importance weights or of frequencies."""
        from calibrant.ingest.counting import Weighting

        return Weighting.named(self.sample_weight, self.frequency)

    @property
    def reading_memory(self) -> str:
        """Memory of DuckDB, which reads the files and keeps no rows."""
        return "1GB" if self.max_memory is None else f"{max(self.max_memory // 4, _LEAST_READING_MEMORY)}B"

    def open_files(self) -> AbstractContextManager[tuple[list[str], list[dict[str, Any]]]]:
        """Open the files; also return their checksums."""
        return plain_files(
            self.paths, format=self.format, encoding=self.encoding, max_bytes=self.max_bytes, sha256=self.sha256
        )

    def _count(self, files: list[str], pos_label: object) -> "Tables":
        from calibrant.ingest.files import tables_scan

        options: dict[str, Any] = {
            "y": self.y,
            "p": self.scores,
            "by": list(self.by) or None,
            "sample_weight": self.sample_weight,
            "frequency": self.frequency,
            "pos_label": pos_label,
            "missing": self.missing,
            "resolution": self.resolution,
        }
        if self.spark is not None:
            return self._count_by_spark(self.spark, files, options)
        options |= {"format": self.format, "memory_limit": self.reading_memory, "max_memory": self.max_memory}
        return tables_scan(files, **options)

    def _count_by_spark(self, url: str, files: list[str], options: dict[str, Any]) -> "Tables":
        from calibrant.ingest.frames import tables_from_frame
        from calibrant.ingest.spark import parquet_frame

        if self.max_memory is not None or "-" in self.paths:
            raise InputError(
                Argument("spark") + " must not be given with " + Argument("max_memory") + " or standard input (-)."
            )
        return tables_from_frame(parquet_frame(url, list(self.paths), files), **options)

    def try_pos_label(self, read: Callable[[object], T], get_notes: Callable[[T], Iterable[Note]]) -> T:
        """Call `read` with the label of the event as text or, if no row has this label, as the number it denotes."""
        number = None if self.pos_label is None else parse_label(self.pos_label)
        if number is None:
            return read(self.pos_label)
        try:
            found = read(self.pos_label)
            if not any(note.code == "event_absent" for note in get_notes(found)):
                return found
        except InputError as error:
            if error.argument != "pos_label":
                raise
        return read(number)


def _table_notes(tables: "Tables") -> Iterable[Note]:
    return (note for table in tables.values() for note in table.notes)


def load_calibrator(path: str) -> Any:
    """Load a calibrator that `calibrant fit` saved."""
    from calibrant.export.calibrator_files import load

    if not Path(path).is_file():
        raise InputError(f"There is no file {Path(path).name!r}.", hint="`calibrant fit` writes one.")
    return load(path)
