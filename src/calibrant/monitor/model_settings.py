"""`ModelSettings`, which are stored when a model is created and never change, and `StoredModel`, its row in a store."""

import dataclasses
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, get_type_hints

import sqlalchemy as sa

from calibrant._support.errors import Argument, InputError, check_option, check_share, wrong_value
from calibrant._support.plain_data import has_type
from calibrant.inference.sequential.e_processes import EProcess
from calibrant.kinds.base import KINDS, forecast_kind, kind_of
from calibrant.kinds.windows import EventRows, Windows
from calibrant.monitor import schema
from calibrant.monitor.observations import NO_EVENT, check_text, group_key
from calibrant.monitor.schema import damaged, read_json
from calibrant.monitor.status import DEFAULT_KIND
from calibrant.monitor.store import Store
from calibrant.monitor.time_windows import WindowRule, read_duration
from calibrant.tables.score_table import check_resolution

_LEAST_ALPHA = 1e-12
MONITORED_KINDS = tuple(name for name, kind in KINDS.items() if kind.optional("windows"))


class SettingsConflictError(InputError):
    """A given setting differs from the stored one.

    See Also
    --------
    Monitor, BatchConflictError

    Examples
    --------
    >>> issubclass(SettingsConflictError, InputError)
    True
    """

    __module__ = "calibrant.exceptions"


class DeletedModelError(InputError):
    """The model was deleted after its monitor was opened.

    See Also
    --------
    Monitor

    Examples
    --------
    >>> issubclass(DeletedModelError, InputError)
    True
    """

    __module__ = "calibrant.exceptions"


@dataclass(frozen=True)
class ModelSettings:
    """Windows, error rate, margin and dependence of a model; see `Monitor`. `maturity` is in microseconds."""

    window: str | int = "day"
    alpha: float = 0.05
    margin: float = 0.1
    dependence: str = "window"
    window_effect: float = 0.2
    maturity: int = 0
    resolution: float | None = None
    kind: str = DEFAULT_KIND
    classes: tuple[Any, ...] | None = None
    levels: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if check_share("alpha", self.alpha) < _LEAST_ALPHA:
            raise wrong_value("alpha", f"must be at least {_LEAST_ALPHA:g}", self.alpha)
        if self.resolution is not None:
            check_resolution(self.resolution)
        for name in ("events", "rule", "process"):  # each checks its settings
            getattr(self, name)

    @classmethod
    def given(cls, **options: Any) -> dict[str, Any]:
        """Return the options that are given, not None, in the form in which they are stored."""
        given = {name: value for name, value in options.items() if value is not None}
        if "maturity" in given:
            given["maturity"] = read_duration(given["maturity"], "maturity")
        kind = _kind_settings(given)
        return kind | {name: value for name, value in given.items() if name not in kind}  # the kind is compared first

    @classmethod
    def from_json(cls, text: str) -> "ModelSettings":
        """Return the settings of a model of the store."""
        try:
            stored = read_json(text, "models.settings", dict)
            given = {name: value for name, value in stored.items() if value is not None}
            kind, hints = _kind_settings(given), get_type_hints(cls)
            for name, value in given.items():
                if name not in kind and not (name in hints and has_type(value, hints[name])):
                    raise TypeError(name)
            return cls(**(given | kind))
        except (ValueError, TypeError) as error:
            raise damaged(f"the settings of a model are not valid; got {text[:80]!r}") from error

    def to_json(self) -> str:
        """Return the settings as text for the store."""
        return json.dumps(dataclasses.asdict(self))

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain data; `maturity` is in seconds."""
        return {**dataclasses.asdict(self), "maturity": self.maturity / 1e6}

    def check_given(self, given: dict[str, Any], model: str) -> None:
        """Raise an error if an option differs from the stored setting."""
        for name, value in given.items():
            stored = getattr(self, name)
            if value != stored:
                shown = [timedelta(microseconds=v) if name == "maturity" else v for v in (stored, value)]
                raise SettingsConflictError(
                    Argument(name)
                    + f" must be {shown[0]!r}, the value stored for model {model!r}; got {shown[1]!r}."
                    + " Settings of a model never change.",
                    hint="Leave it out to use the stored value, or monitor under another model name.",
                    value=value,
                )

    @property
    def windows(self) -> Windows:
        """How the rows of this kind of forecast are read and described."""
        windows: Windows = kind_of(self.kind).windows
        return windows

    @property
    def of_kind(self) -> dict[str, Any]:
        """The settings that only some kinds have."""
        return {name: getattr(self, name) for name in self.windows.SETTINGS}

    @property
    def has_one_event(self) -> bool:
        """Whether rows are scores of one event; other kinds have several events with labels."""
        return not self.windows.labels(self.of_kind)

    @property
    def events(self) -> dict[str, Any]:
        """The labels of the events that are tested, by their keys in the store."""
        labels = self.windows.labels(self.of_kind)
        return {group_key(label): label for label in labels} if labels else {NO_EVENT: None}

    @property
    def rule(self) -> WindowRule:
        """The windows."""
        return WindowRule(self.window, self.maturity)

    @property
    def process(self) -> EProcess:
        """The e-process of each event."""
        return EProcess(margin=self.margin, dependence=self.dependence, window_effect=self.window_effect)

    def read_rows(self, y: Any, forecast: Any, pos_label: object) -> EventRows:
        """Read outcomes and forecasts of the kind that the model was created for."""
        self._check_kind(y, forecast)
        if pos_label is not None and not self.has_one_event:
            raise InputError(Argument("pos_label") + f" must be left out for forecasts of the kind {self.kind!r}.")
        return self.windows.read_rows(y, forecast, self.of_kind, pos_label)

    def _check_kind(self, y: Any, forecast: Any) -> None:
        """Raise an error if a forecast is plainly of another kind; one column of numbers is not."""
        kind = forecast_kind(y, forecast)
        if kind in (self.kind, DEFAULT_KIND, *self.windows.TAKES):
            return
        *others, last = [kind_of(name).windows.FORECASTS for name in MONITORED_KINDS]
        hint = f"A monitor takes {', '.join(others)} and {last}."
        if kind in MONITORED_KINDS:
            hint = f"Create a model for it: Monitor(store, model=..., {kind_of(kind).windows.EXAMPLE})."
        raise InputError(
            Argument("p") + f" must be of the kind of this model, {self.kind!r}; got a forecast of the kind {kind!r}.",
            hint=hint,
        )


@dataclass
class Version:
    """A version of a model: its clock `newest`, and `horizon`, below which all windows are closed."""

    id: int
    name: str
    ordinal: int
    newest: int | None = None
    horizon: int | None = None


@dataclass(frozen=True)
class StoredModel:
    """A model of a store.

    SQLite may give the id of a deleted model to a new one, which has another name or time of creation.
    """

    store: Store
    id: int
    name: str
    created: int
    settings: ModelSettings

    @classmethod
    def open(cls, store: Store, name: str, settings: ModelSettings) -> "StoredModel":
        """Return the model of a name; create it with these settings if it is new."""
        query = sa.select(schema.models).where(schema.models.c.name == name)
        with store.read() as connection:
            row = connection.execute(query).first()
        if row is None:
            values = {"name": name, "settings": settings.to_json(), "created": schema.now()}
            with store.write() as connection:
                # Two processes may create the model at once; the second one waits here.
                store.insert_new(connection, schema.models, values)
                row = connection.execute(query).one()
        return cls(store, row.id, name, row.created, ModelSettings.from_json(row.settings))

    @property
    def _row(self) -> Any:
        table = schema.models
        return (table.c.id == self.id) & (table.c.name == self.name) & (table.c.created == self.created)

    def exists(self) -> bool:
        """Return whether the model is in the store and was not deleted since it was opened."""
        with self.store.read() as connection:
            return connection.execute(sa.select(schema.models.c.id).where(self._row)).first() is not None

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """Begin a write transaction on the model; its revision tells readers that something has changed."""
        counted = schema.models.update().where(self._row).values(revision=schema.models.c.revision + 1)
        with self.store.write() as connection:
            self._check(connection.execute(counted).rowcount)  # which locks the row of the model
            yield connection

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """Begin a read transaction on the model."""
        with self.store.read() as connection:
            self._check(len(connection.execute(sa.select(schema.models.c.id).where(self._row)).all()))
            yield connection

    def versions(self, connection: sa.Connection) -> list[Version]:
        """Return all versions of the model, the latest last."""
        table = schema.versions
        query = sa.select(table).where(table.c.model_id == self.id).order_by(table.c.ordinal)
        rows = connection.execute(query).all()
        return [Version(row.id, row.name, row.ordinal, row.newest, row.horizon) for row in rows]

    def _check(self, n_rows: int) -> None:
        if not n_rows:
            raise DeletedModelError(f"Model {self.name!r} was deleted from the store.", hint="Open a new Monitor.")


def _kind_settings(given: dict[str, Any]) -> dict[str, Any]:
    """Return the kind and its settings as they are stored; a setting that only some kinds have implies the first."""
    owners: dict[str, list[str]] = {}
    for owner in MONITORED_KINDS:
        for name in kind_of(owner).windows.SETTINGS:
            owners.setdefault(name, []).append(owner)
    implied = [name for name in owners if name in given]
    if not implied and "kind" not in given:
        return {}
    kind: str = given.get("kind") or owners[implied[0]][0]
    check_option("kind", kind, MONITORED_KINDS)
    foreign = [name for name in implied if kind not in owners[name]]
    if foreign:
        raise InputError(Argument(foreign[-1]) + f" must be left out for forecasts of the kind {kind!r}.")
    settings: dict[str, Any] = kind_of(kind).windows.read_settings(given)
    for name, values in settings.items():
        for value in values:
            if isinstance(value, str):
                check_text(name, value)
    return {"kind": kind, **settings}
