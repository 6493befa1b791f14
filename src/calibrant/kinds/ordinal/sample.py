"""Probabilities of ordered classes and the classes that occurred: how they are read, grouped and resampled."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from calibrant._support import columns as _columns
from calibrant._support.arrays import Column
from calibrant._support.errors import Argument, InputError
from calibrant.forecasts.predictions import Ordinal
from calibrant.inference.time_blocks import Errors, in_time_blocks, need_blocks
from calibrant.kinds.multiclass.sample import MANY_PROBABILITIES, MulticlassSample
from calibrant.kinds.sample import GroupedSample, TimeBlocks, with_enough_clusters
from calibrant.tables.class_table import ClassProbabilities, ClassTable, used_rows
from calibrant.tables.rows import Rows


def read_proba(forecast: Any, name: str | None = None) -> tuple[ClassProbabilities, tuple[Any, ...]]:
    """Return the probabilities of a forecast, and its classes in their order."""
    if not isinstance(forecast, Ordinal):
        raise InputError(
            Argument("forecast") + f" must be cb.Ordinal(proba, classes=[...]); got {type(forecast).__name__}.",
            hint="The order of the classes is that of the columns.",
        )
    proba = ClassProbabilities.read(forecast.proba, *([] if name is None else [name]))
    return proba, check_order(proba.class_names(forecast.classes))


def check_order(classes: Any) -> tuple[Any, ...]:
    """Return at least three classes: two are an event and its absence."""
    labels = tuple(classes)
    if len(labels) < 3:
        raise InputError(
            Argument("forecast") + f" must have at least three ordered classes; got {len(labels)}.",
            hint="Pass the probability of the higher class as scores of one event.",
        )
    return labels


def errors(used: Rows, labels: Sequence[Any]) -> list[Errors]:
    """Return the errors of the cumulative probabilities of each model; the mean class orders the rows."""
    places = np.arange(len(labels))
    below = _columns.codes(used.y, list(labels), "classes")[:, None] <= places[:-1]
    matrices = [each.matrix for each in used.forecasts]
    return [Errors(below - np.cumsum(p, axis=1)[:, :-1], p @ places) for p in matrices]


def time_blocks(labels: Sequence[Any]) -> TimeBlocks:
    """Return the function that puts rows with probabilities of these classes into blocks of their times."""
    return partial(in_time_blocks, check=used_rows, errors=partial(errors, labels=labels))


def read(y_true: Any, forecast: Any, cluster: Column | None, options: Any) -> MulticlassSample:
    """Read the rows for one metric, or take a `ClassTable` whose classes are in order."""
    if isinstance(y_true, ClassTable):
        return MulticlassSample(y_true)
    proba, labels = read_proba(forecast)
    rows, serial = time_blocks(labels)(Rows.read(y_true, {proba.name: proba}, cluster=cluster, **options))
    need_blocks(serial)
    return with_enough_clusters(MulticlassSample.from_rows(rows, labels))


def read_groups(y_true: Column, forecast: Any, **options: Any) -> GroupedSample[MulticlassSample]:
    """Read rows, and those of each group."""
    proba, labels = read_proba(forecast)
    rows = Rows.read(y_true, {proba.name: proba}, **options)
    count = partial(MulticlassSample.from_rows, labels=labels)
    is_large = proba.matrix.size > MANY_PROBABILITIES
    return GroupedSample.from_rows(rows, count, time_blocks(labels), is_large=is_large)
