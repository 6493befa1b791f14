"""`Source`: the files of a command, the columns to read, and how to read them."""

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant._support.errors import Argument, InputError, Note, Text
from calibrant.cli.command_files import plain_files
from calibrant.kinds.columns import ForecastColumns, Model, NamesOfColumns, columns_by_kind, try_pos_label

if TYPE_CHECKING:
    from calibrant.ingest.counting import Weighting
    from calibrant.kinds.file_rows import FileRows
    from calibrant.tables.collection import Tables
    from calibrant.tables.rows import Missing


def given_forecast(given: Mapping[str, Any]) -> tuple[str, str]:
    """Return the kind of forecast, and the argument of the option that names it; exactly one form must be given."""
    options = {option.name: (kind, option) for kind, form in columns_by_kind().items() for option in form.options}
    forms = [name for name, (_, option) in options.items() if name in given and not option.completes]
    chosen = [name for name in forms if given[name]]
    for name, (_, option) in options.items():
        if given.get(name) and option.completes and not set(option.completes) & set(chosen):
            raise InputError(
                Argument(name) + " must be given with " + _alternatives(option.completes) + "; got it alone."
            )
    if len(chosen) > 1:
        raise InputError(
            Argument(chosen[0]) + " and " + Argument(chosen[1]) + " must not be given together; got both.",
            hint="Name forecasts of one kind.",
        )
    if not chosen:
        raise InputError(
            _alternatives(forms) + " must be given; got none of them.", hint="It names the columns of the forecast."
        )
    return options[chosen[0]][0], chosen[0]


def _alternatives(arguments: Sequence[str]) -> Text:
    text = Text(Argument(arguments[0]))
    for name in arguments[1:]:
        text = text + (" or " if name == arguments[-1] else ", ") + Argument(name)
    return text


def _check_special_options(kind: str, option: str, given: Mapping[str, Any]) -> None:
    """Raise an error if an option is given that other kinds of forecast have, but not this one."""
    forms = columns_by_kind()
    for form in forms.values():
        for name in form.special_arguments:
            if given.get(name) in (None, ()) or name in forms[kind].special_arguments:
                continue
            takers = [other.options[0].name for other in forms.values() if name in other.special_arguments]
            hint = "For other kinds the verdict decides; " + Argument("margin") + " sets its margin."
            raise InputError(
                Argument(name)
                + " must be given with "
                + _alternatives(takers)
                + " only; got "
                + Argument(option)
                + ".",
                hint="" if name in form.special_options else hint,
            )


def take_dependence(given: dict[str, Any]) -> dict[str, Any]:
    """Remove the columns of clusters and times, and return the one that is given by its argument."""
    columns = {name: given.pop(name) for name in ("cluster", "time")}
    found = {name: column for name, column in columns.items() if column is not None}
    if len(found) > 1:
        raise InputError(Argument("time") + " must not be given with " + Argument("cluster") + "; got both.")
    return found


def take_settings(given: dict[str, Any]) -> dict[str, Any]:
    """Remove the options of the evaluation, and return those that are given as arguments of `evaluate`."""
    from calibrant import AbsoluteMargin, RelativeMargin

    absolute, relative = given.pop("absolute_margin"), given.pop("relative_margin")
    for name, value in (("absolute_margin", absolute), ("relative_margin", relative)):
        if value is not None and given["margin"] is not None:
            raise InputError(Argument("margin") + " and " + Argument(name) + " must not be given together; got both.")
    names = ("margin", "alpha", "n_bins", "confidence_level", "n_resamples", "random_state")
    settings = {name: given.pop(name) for name in names}
    settings["costs"] = {f"{cost.over:g}:{cost.under:g}": cost for cost in given.pop("costs")} or None
    if absolute is not None:
        settings["margin"] = AbsoluteMargin(absolute)
    if relative is not None:
        settings["margin"] = RelativeMargin(relative)
    return {name: value for name, value in settings.items() if value is not None}


@dataclass(frozen=True)
class Source:
    """Files, the columns to read and how to read them: the options of `calibrant.cli.options.input_options`."""

    kind: str
    option: str
    forecasts: Mapping[str, tuple[str, ...]]
    paths: tuple[str, ...]
    y: str
    sample_weight: str | None
    frequency: str | None
    pos_label: str | None
    missing: "Missing"
    format: Any
    encoding: str | None
    max_bytes: int | None
    sha256: bool
    max_memory: int | None = None
    by: tuple[str, ...] = ()
    resolution: float | None = None
    spark: str | None = None

    @classmethod
    def take(cls, given: dict[str, Any]) -> "Source":
        """Remove the options of the input from all options; those of different kinds of forecast are an error."""
        kind, option = given_forecast(given)
        _check_special_options(kind, option, given)
        names = {option.name for form in columns_by_kind().values() for option in form.options}
        forecasts = {name: given.pop(name) for name in list(given) if name in names}
        others = {name: given.pop(name) for name in list(given) if name in cls.__dataclass_fields__}
        return cls(kind, option, forecasts, **others)

    @property
    def form(self) -> ForecastColumns:
        """How forecasts of the kind are columns of files."""
        return columns_by_kind()[self.kind]

    def find_models(self, names: NamesOfColumns) -> tuple[Model, ...]:
        """Return the models that the options name; `names` returns the columns of the file."""
        return self.form.find_models(self.option, self.forecasts, names)

    @property
    def title(self) -> str:
        """The title of a report: the names of the files without their folders."""
        names = ", ".join("standard input" if path == "-" else Path(path).name or path for path in self.paths[:3])
        return f"Calibration of {names}{', ...' if len(self.paths) > 3 else ''}"

    @property
    def commands(self) -> dict[str, str]:
        """For each model of one column the arguments of a command that name files, without folders, and columns."""
        files = ["rows.csv" if path == "-" else Path(path).name or path for path in self.paths[:3]]
        more = " ..." if len(self.paths) > 3 else ""
        options = {"--label": self.y, "--pos-label": self.pos_label, "--sample-weight": self.sample_weight}
        options |= {"--frequency": self.frequency}
        given = [part for name, value in options.items() if value is not None for part in (name, value)]
        flag = next(option.flag for option in self.form.options if option.name == self.option)
        columns = self.forecasts[self.option] if self.form.is_one_column else ()
        return {column: f"{shlex.join(files)}{more} {shlex.join([*given, flag, column])}" for column in columns}

    @property
    def weighting(self) -> "Weighting | None":
        """The column of importance weights or of frequencies."""
        from calibrant.ingest.counting import Weighting

        return Weighting.named(self.sample_weight, self.frequency)

    def open_files(self) -> AbstractContextManager[tuple[list[str], list[dict[str, Any]]]]:
        """Open the files; also return their checksums."""
        return plain_files(
            self.paths, format=self.format, encoding=self.encoding, max_bytes=self.max_bytes, sha256=self.sha256
        )

    def read_rows(
        self,
        *others: str,
        cluster: str | None = None,
        time: str | None = None,
        any_score: bool = False,
        check_models: Callable[[Sequence[Model]], None] = lambda models: None,
    ) -> "FileRows":
        """Read outcomes, forecasts, weights, groups, clusters, times and the columns `others`.

        Columns are checked here, so that an error names the column, the file and the row. `any_score`: scores need not
        be probabilities. `check_models` raises an error for models that a command does not take.
        """
        from calibrant._support.columns import DROP, refuse_missing
        from calibrant.ingest.files import column_names, find_files, read_columns
        from calibrant.kinds.file_rows import FileRows

        form, weighting = self.form, self.weighting
        given = {"sample_weight": self.sample_weight, "frequency": self.frequency}
        given |= {"cluster": cluster, "time": time}
        roles = {name: column for name, column in given.items() if column is not None}
        with self.open_files() as (paths, inputs):
            files = find_files(paths, self.format)
            models = self.find_models(lambda: column_names(files[0]))
            check_models(models)
            forecasts = list(dict.fromkeys(name for model in models for name in model.columns))
            numbers = [*([] if form.holds_labels else forecasts), *([] if weighting is None else [weighting.name])]
            numbers += [self.y] if form.outcome == "number" else []
            names = list(dict.fromkeys([self.y, *forecasts, *roles.values(), *self.by, *others]))
            labels = form.outcome == "event"
            columns = read_columns(paths, names, numbers, labels=labels, format=self.format, max_memory=self.max_memory)
        rows = FileRows(
            form,
            self.option,
            columns[self.y],
            models,
            columns,
            roles,
            self.by,
            self.missing,
            self.pos_label,
            any_score,
            is_text=all(file.format != "parquet" for file in files),
            inputs=inputs,
        )
        rows = form.check(rows)
        if weighting is not None:
            weighting.checked(columns[weighting.name])
        if self.missing == "raise":
            refuse_missing([columns[name] for name in names if name not in self.by], hint=DROP)
        refuse_missing([columns[name] for name in self.by], hint="Give such rows a group of their own.")
        return rows

    def read_tables(self) -> "tuple[Tables, list[dict[str, Any]]]":
        """Count the rows of the files; also return the checksums of the files."""
        with self.open_files() as (paths, inputs):
            tables = try_pos_label(self.pos_label, lambda label: self._count(paths, label), _notes_of_tables)
        return tables, inputs

    def _count(self, paths: list[str], pos_label: object) -> "Tables":
        from calibrant.ingest.files import scan

        options: dict[str, Any] = {
            "y": self.y,
            "p": list(dict.fromkeys(self.forecasts[self.option])),
            "by": list(self.by) or None,
            "sample_weight": self.sample_weight,
            "frequency": self.frequency,
            "pos_label": pos_label,
            "missing": self.missing,
            "resolution": self.resolution,
        }
        if self.spark is None:
            options |= {"format": self.format, "max_memory": self.max_memory}
            tables: Tables = scan(paths, **options)
        else:
            from calibrant.ingest.frames import from_frame
            from calibrant.ingest.spark import parquet_frame

            if self.max_memory is not None or "-" in self.paths:
                raise InputError(
                    Argument("spark") + " must not be given with " + Argument("max_memory") + " or standard input (-)."
                )
            tables = from_frame(parquet_frame(self.spark, list(self.paths), paths), **options)
        return tables


def _notes_of_tables(tables: "Tables") -> Iterable[Note]:
    return (note for table in tables.values() for note in table.notes)
