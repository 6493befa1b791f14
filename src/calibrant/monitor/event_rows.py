"""Rows of class probabilities and of predictive distributions, as binary events that a monitor counts.

The events of a row are the classes, or the outcome beyond each quantile. Each has a probability that the forecast
states, so each is a binary forecast. Beside them, the event with the key "" has the rates that a status shows: the most
probable class, or the central interval between the outermost quantiles.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._support import columns as _columns
from calibrant._support.arrays import Bools, Floats, Ints
from calibrant._support.errors import Argument, InputError
from calibrant.forecasts.forecast_table import read_outcomes
from calibrant.metrics.distribution import transforms
from calibrant.monitor.cells import CellKey
from calibrant.monitor.events import DISTRIBUTION, MULTICLASS
from calibrant.monitor.model_settings import ModelSettings
from calibrant.monitor.observations import NO_EVENT, Chunk, RowChunk, read_groups, split_rows
from calibrant.monitor.time_windows import read_times
from calibrant.tables.class_table import ClassProbabilities, ClassTable
from calibrant.tables.rows import Rows
from calibrant.tables.score_table import ScoreTable

__all__ = ["EventChunk", "read_chunk"]

_LEVEL_TOLERANCE = 1e-6  # levels may be float32


@dataclass(frozen=True, eq=False)
class EventChunk:
    """Rows of one call: for each event whether it happened and its probability, times, and the group of each row.

    `content` are the columns that make a batch: two batches are the same if these are.
    """

    events: Mapping[str, tuple[Bools, Floats]]
    times: Ints
    codes: Ints
    groups: Sequence[str]
    content: tuple[Floats, ...]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.times.size

    @property
    def group_keys(self) -> Sequence[str]:
        """Keys of the groups."""
        return self.groups

    @property
    def sizes(self) -> Ints:
        """Number of rows at each time."""
        return np.ones(self.times.size, dtype=np.int64)

    def tables(self, windows: Ints) -> list[tuple[int, CellKey, ScoreTable]]:
        """Return the window, the keys of group and event, and the table of each cell."""
        return [
            (window, (group, event), ScoreTable.from_arrays(happened[rows], score[rows]))
            for window, group, rows in split_rows(windows, self.codes, self.groups)
            for event, (happened, score) in self.events.items()
        ]

    def sha256(self) -> str:
        """Return the checksum of the rows in any order."""
        return _digest(self.times, self.codes, self.groups, self.content).hex()


def _digest(times: Ints, codes: Ints, groups: Sequence[str], content: tuple[Floats, ...]) -> bytes:
    order = np.lexsort((*content, codes, times))
    digest = hashlib.sha256(json.dumps(list(groups)).encode())
    for array in (times, codes, *content):
        digest.update(np.ascontiguousarray(array[order]).data)
    return digest.digest()


def read_chunk(settings: ModelSettings, y: Any, forecast: Any, time: Any, group: Any, pos_label: object) -> Chunk:
    """Read outcomes and forecasts of the kind that the model was created for."""
    _check_kind(settings, forecast)
    if settings.kind == MULTICLASS:
        _refuse_pos_label(pos_label, settings.kind)
        return _read_classes(settings, y, forecast, time, group)
    if settings.kind == DISTRIBUTION:
        _refuse_pos_label(pos_label, settings.kind)
        return _read_distributions(settings, y, forecast, time, group)
    return RowChunk.read(y, forecast, time, group, pos_label=pos_label)


def _check_kind(settings: ModelSettings, forecast: Any) -> None:
    """Raise an error if a forecast is plainly of another kind than that of the model."""
    own = getattr(forecast, "kind", None)
    found = own if isinstance(own, str) else None
    if found is None and hasattr(forecast, "dist"):  # a frozen distribution of scipy.stats
        found = DISTRIBUTION
    if (
        found is None
        and settings.kind != MULTICLASS
        and getattr(forecast, "ndim", 0) == 2
        and np.shape(forecast)[1] > 1
    ):
        found = MULTICLASS
    if found is None or found == settings.kind:
        return
    hint = {
        MULTICLASS: "Create a model for it: Monitor(store, model=..., classes=[...]).",
        DISTRIBUTION: "Create a model for it: Monitor(store, model=..., kind='distribution').",
    }.get(found, "A monitor takes scores, class probabilities and predictive distributions.")
    raise InputError(
        Argument("p") + f" must be of the kind of this model, {settings.kind!r}; got a forecast of the kind {found!r}.",
        hint=hint,
    )


def _refuse_pos_label(pos_label: object, kind: str) -> None:
    if pos_label is not None:
        raise InputError(Argument("pos_label") + f" must be left out for forecasts of the kind {kind!r}.")


def _read_classes(settings: ModelSettings, y: Any, forecast: Any, time: Any, group: Any) -> EventChunk:
    if np.ndim(y) == 0 and np.ndim(forecast) == 1:
        y, forecast = [y], [forecast]
    read = ClassProbabilities.read(forecast, "p")
    rows = Rows.read(y, {"p": read}, outcome="y")
    _columns.refuse_missing(rows.columns, hint="Leave such rows out first.")
    table = ClassTable.from_rows(rows, tuple(read.class_names(settings.classes)))
    events = {key: (table.code == i, table.proba[:, i]) for i, key in enumerate(settings.events)}
    shown = {NO_EVENT: (table.code == table.best, table.confidence)}
    content = (table.code.astype(np.float64), *table.proba.T)
    times = read_times(time, len(table))
    return EventChunk(shown | events, times, *read_groups(group, len(table)), content)


def _read_distributions(settings: ModelSettings, y: Any, forecast: Any, time: Any, group: Any) -> EventChunk:
    outcome, known = read_outcomes([y] if np.ndim(y) == 0 else y, forecast, "y")
    levels = _used_levels(settings, known)
    times, (codes, groups) = read_times(time, outcome.size), read_groups(group, outcome.size)
    content = (outcome, *known.cells(outcome))
    # Where F(y) is known up to an interval, the value in it is random. The rows and their times are the seed, so that
    # the same stream always gives the same evidence, and no two batches share random numbers.
    seed = int.from_bytes(_digest(times, codes, groups, content)[:16], "big")
    u = transforms(outcome, known, random_state=np.random.default_rng(seed))
    events = {}
    for key, level in zip(settings.events, levels, strict=True):
        happened, score = (u <= level, level) if level <= 0.5 else (u > level, round(1 - level, 9))
        events[key] = happened, np.full(outcome.size, score)
    low, high = levels[0], levels[-1]
    covered = (u > low) & (u <= high) if low < high else u <= low
    shown = {NO_EVENT: (covered, np.full(outcome.size, round(high - low, 9) if low < high else low))}
    return EventChunk(shown | events, times, codes, groups, content)


def _used_levels(settings: ModelSettings, forecast: Any) -> tuple[float, ...]:
    """Return the levels as the forecast knows them: quantile forecasts must have those of the model."""
    assert settings.levels is not None
    if forecast.known_levels is None or forecast.ensemble is not None:
        return settings.levels
    nearest = [float(forecast.known_levels[np.argmin(np.abs(forecast.known_levels - q))]) for q in settings.levels]
    unknown = [q for q, found in zip(settings.levels, nearest, strict=True) if abs(q - found) > _LEVEL_TOLERANCE]
    if unknown:
        shown = ", ".join(f"{q:g}" for q in forecast.known_levels)
        raise InputError(
            Argument("p") + f" must have the quantiles of the levels of this model; {unknown[0]:g} is missing, the "
            f"forecast has {shown}.",
            hint="Create the model with levels= of the quantiles that are predicted.",
        )
    return tuple(nearest)
