"""Rows with predictions of several models, or in clusters, as they are read and resampled."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant import _kernels
from calibrant._support.arrays import Column, Floats, Ints, Weights
from calibrant._support.errors import Argument, InputError
from calibrant._support.random_streams import Stream
from calibrant.tables.rows import Rows, TableReader, repeated_rows
from calibrant.tables.score_table import ScoreTable, check_scores, count_checked, read_score_table

# With fewer clusters, neither random signs nor Student's quantiles have the stated error rates.
MIN_CLUSTERS = 10
# With fewer clusters, their mean has no useful interval either.
FEWEST_CLUSTERS = 3


def check_clusters(count: int, least: int = MIN_CLUSTERS) -> int:
    """Return the number of clusters if it is large enough for inference."""
    if count >= least:
        return count
    raise InputError(
        Argument("cluster") + f" must have at least {least} distinct values for inference; got {count}.",
        hint="Use a finer unit as cluster, or report the metric without inference.",
        value=count,
    )


@dataclass(frozen=True)
class PairedRows:
    """Rows with several predictions each, or in clusters: for each row its place in each table.

    A replicate samples rows (or whole clusters) once, and counts the sampled rows in each table.
    """

    scores: tuple[Floats, ...]
    places: tuple[Ints, ...]
    event: Ints
    weight: Weights | None
    cluster: Ints | None
    n_draws: int

    @classmethod
    def read(
        cls, y_true: Column, y_probs: Mapping[str, Column] | Sequence[Column], *, name: str = "y_probs", **options: Any
    ) -> tuple["PairedRows", list[ScoreTable]]:
        """Read rows with the predictions of each model; see `Rows.read` for the options. Errors call them `name`."""
        return cls.from_rows(cls.columns(y_true, y_probs, name=name, **options))

    @staticmethod
    def columns(y_true: Column, y_probs: Mapping[str, Column] | Sequence[Column], *, name: str, **options: Any) -> Rows:
        """Read the columns of such rows, which are not validated."""
        if isinstance(y_true, ScoreTable):
            raise InputError(
                "y_true must be a column of outcomes; got a ScoreTable, which does not keep the predictions per row.",
                hint="Pass outcomes and predictions as columns.",
                argument="y_true",
            )
        if isinstance(y_probs, Mapping):
            forecasts = {f"{name}[{model!r}]": column for model, column in y_probs.items()}
        else:
            forecasts = {f"{name}[{i}]": column for i, column in enumerate(y_probs)}
        return Rows.read(y_true, forecasts, **options)

    @classmethod
    def from_rows(cls, rows: Rows) -> tuple["PairedRows", list[ScoreTable]]:
        """Return the complete rows of positive weight, and the table of each forecast.

        A row in which one forecast is missing is dropped for all of them, or is an error: see `Rows.missing`.
        """
        used = check_scores(rows)
        tables = [count_checked(replace(used, forecasts=(forecast,))) for forecast in used.forecasts]
        pairs = zip(used.forecasts, tables, strict=True)
        places = tuple(_places(forecast.values, len(table)) for forecast, table in pairs)
        event, cluster, weight = used.y.values.astype(np.int64), used.cluster_codes, used.size
        if weight is not None and not used.importance and cluster is None:
            again = repeated_rows(weight, "resampled")  # frequency 2 means two rows, each resampled by itself
            event, places, weight = event[again], tuple(place[again] for place in places), None
        draws = event.size if cluster is None else int(cluster.max()) + 1
        if draws == 1 and cluster is not None:
            check_clusters(draws)
        return cls(tuple(table.score for table in tables), places, event, weight, cluster, draws), tables

    def cluster_tables(self) -> list[ScoreTable]:
        """Return the table of each cluster, of the first prediction."""
        assert self.cluster is not None
        weight = np.ones(self.event.size, dtype=np.int64) if self.weight is None else self.weight
        inside = (np.where(self.cluster == c, weight, np.zeros_like(weight)) for c in range(self.n_draws))
        return [self._table(self.scores[0], self.places[0], own) for own in inside]

    def only(self, i: int) -> "PairedRows":
        """Return the same rows with one of their predictions."""
        return replace(self, scores=(self.scores[i],), places=(self.places[i],))

    def times(self, stream: Stream) -> Ints:
        """Return how often a replicate contains each row."""
        times = _kernels.draw(stream.key, stream.replicate, self.n_draws)
        return times if self.cluster is None else times[self.cluster]

    def __call__(self, stream: Stream) -> tuple[ScoreTable, ...]:
        """Return the tables of a bootstrap replicate, one per prediction."""
        times = self.times(stream)
        total = times if self.weight is None else times * self.weight
        return tuple(self._table(*each, total) for each in zip(self.scores, self.places, strict=True))

    def _table(self, score: Floats, place: Ints, weight: Weights) -> ScoreTable:
        """Return the table of the rows with these weights."""

        def total(column: Weights) -> Weights:
            return np.bincount(place, weights=column, minlength=score.size).astype(weight.dtype)

        importance = weight.dtype.kind == "f" and self.weight is not None
        squared = [] if self.weight is None or not importance else [weight * self.weight]
        squares = [total(column) for square in squared for column in (square, square * self.event)]
        return compact(score, total(weight), total(weight * self.event), *squares)


def compact(score: Floats, n: Any, k: Any, *squares: Floats) -> ScoreTable:
    """Return the table without the scores that a replicate does not contain."""
    used = n > 0
    return ScoreTable(score[used], n[used], k[used], *(column[used] for column in squares))


def _places(values: Floats, distinct: int) -> Ints:
    """Return the rank of each value among the distinct values, of which so many exist."""
    values = np.ascontiguousarray(values, dtype=np.float64)
    order = _kernels.row_order(values)
    places = np.empty(values.size, dtype=np.int64)
    if distinct == values.size:
        places[order] = np.arange(values.size)
        return places
    ordered = values[order]
    places[order] = np.cumsum(np.append(False, ordered[1:] != ordered[:-1])[: values.size])
    return places


def read_rows(
    y_true: ScoreTable | Column,
    y_prob: Column | None,
    cluster: Column | None,
    rows: Mapping[str, Any],
    reader: TableReader[ScoreTable] = read_score_table,
) -> tuple[ScoreTable, PairedRows | None]:
    """Return the table and, where rows are in clusters, the rows. Errors use the reader's name of the scores."""
    if cluster is None:
        return reader(y_true, y_prob, rows), None
    if isinstance(y_true, ScoreTable):
        raise InputError(
            f"cluster must be given with y_true and {reader.prediction}; got a ScoreTable, which does not contain the "
            "rows.",
            hint=f"Pass y_true, {reader.prediction} and cluster.",
            argument="cluster",
        )
    reader.check_given(y_prob)
    paired, tables = PairedRows.from_rows(Rows.read(y_true, {reader.prediction: y_prob}, cluster=cluster, **rows))
    check_clusters(paired.n_draws)
    return tables[0], paired
