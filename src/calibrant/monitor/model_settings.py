"""`ModelSettings`: the settings of a monitored model, which are stored when it is created and never change."""

import dataclasses
import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, get_type_hints

from calibrant._support.errors import Argument, InputError, check_share
from calibrant._support.plain_data import has_type
from calibrant.inference.sequential.e_processes import EProcess
from calibrant.monitor import events
from calibrant.monitor.schema import damaged, read_json
from calibrant.monitor.time_windows import WindowRule, read_duration
from calibrant.tables.score_table import check_resolution

__all__ = ["LEAST_ALPHA", "ModelSettings", "SettingsConflictError"]

LEAST_ALPHA = 1e-12


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
    kind: str = "binary"
    classes: tuple[Any, ...] | None = None
    levels: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if check_share("alpha", self.alpha) < LEAST_ALPHA:
            raise InputError(
                Argument("alpha") + f" must be at least {LEAST_ALPHA:g}; got {self.alpha!r}.", value=self.alpha
            )
        if self.resolution is not None:
            check_resolution(self.resolution)
        for name in ("events", "rule", "process"):  # each checks its settings
            getattr(self, name)

    @classmethod
    def given(cls, **options: Any) -> dict[str, Any]:
        """Return the options that are given, not None, in the form in which they are stored."""
        found = {name: value for name, value in options.items() if value is not None}
        if "maturity" in found:
            found["maturity"] = read_duration(found["maturity"], "maturity")
        kind = events.given_kind(found)
        return kind | {name: value for name, value in found.items() if name not in kind}  # the kind is compared first

    @classmethod
    def from_json(cls, text: str) -> "ModelSettings":
        """Return the settings of a model of the store."""
        try:
            return cls._from_stored(read_json(text, "models.settings", dict))
        except (ValueError, TypeError) as error:
            raise damaged(f"the settings of a model are not valid; got {text[:80]!r}") from error

    @classmethod
    def _from_stored(cls, found: dict[str, Any]) -> "ModelSettings":
        given = {name: value for name, value in found.items() if value is not None}
        kind, hints = events.given_kind(given), get_type_hints(cls)
        for name, value in given.items():
            if name not in kind and not (name in hints and has_type(value, hints[name])):
                raise TypeError(name)
        return cls(**(given | kind))

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
    def events(self) -> "dict[str, Any]":
        """The labels of the events that are tested, by their keys in the store."""
        return events.event_labels(self.kind, self.classes, self.levels)

    @property
    def rule(self) -> WindowRule:
        """The windows."""
        return WindowRule(self.window, self.maturity)

    @property
    def process(self) -> EProcess:
        """The e-process of each stream."""
        return EProcess(margin=self.margin, dependence=self.dependence, window_effect=self.window_effect)
