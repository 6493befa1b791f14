"""Resampling: bootstrap replicates of rows, and null replicates with outcomes simulated from the scores.

Replicate i of a purpose has a random stream of its own, seeded by (random_state, purpose, i). Results are therefore
bitwise identical for any number of threads, equal on both kernels, and independent of other results with the same seed.
"""

import math
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.random import SeedSequence

from calibrant import _kernels
from calibrant._support.arrays import Column, Floats, Ints, Weights
from calibrant._support.errors import Argument, InputError, check_resample_count
from calibrant._support.progress import progress_bar
from calibrant._support.random_streams import Stream, Streams, stream_key
from calibrant._support.workers import Submit, available_cores, map_in_threads
from calibrant.inference.signed_residuals import SignedResiduals
from calibrant.tables.rows import Rows, repeated_rows
from calibrant.tables.score_table import ScoreTable, check_scores, count_checked, event_squares
from calibrant.tables.table_functions import TableReader, read_score_table

# Rows are resampled one by one if scores have at most this number of rows on average; otherwise sampling the counts of
# whole scores is faster.
_MAX_ROWS_PER_SCORE = 16
_MOST_ROWS = 2**27  # beyond, the probabilities of single rows would differ by more than 3 % (see the kernel's draw)
THREADS_FROM = 100_000  # rows: below, most of the time is spent in Python, which runs one thread at a time
THREADS_FROM_IN_KERNEL = 10_000  # rows, where the kernel does all the work
_BLOCKS_PER_THREAD = 2  # few: after each, Python reads the metrics from the sums, in one thread at a time
_CORES_PER_OTHER_THREAD = 4  # about the ratio of the work on replicates to that of another thread
_ROWS_PER_BLOCK = 1.2e7  # of all replicates of a block
_MOST_ROWS_AT_ONCE = 5e8  # of the replicates in memory, about 6 bytes each
_MOST_BYTES_AHEAD = 2e6  # of sums of replicates that wait for their turn, for each of several tables

_ROUNDING = 1e-9  # of the mean number of rows of a unit

PURPOSES = ("bootstrap", "null")

# With fewer clusters, neither random signs nor Student's quantiles have the stated error rates.
MIN_CLUSTERS = 10


def check_resamples(n_resamples: int, alpha: float) -> int:
    """Return the number of replicates; raise if it is too small for a p-value of alpha."""
    if check_resample_count(n_resamples) + 1 < 1 / alpha - 1e-9:
        raise InputError(
            Argument("n_resamples")
            + f" must be at least {math.ceil(1 / alpha - 1e-9) - 1:,} for a p-value of {alpha:g}; got {n_resamples}.",
            value=n_resamples,
        )
    return int(n_resamples)


def check_clusters(count: int) -> int:
    """Return the number of clusters if it is large enough for inference."""
    if count >= MIN_CLUSTERS:
        return count
    raise InputError(
        Argument("cluster") + f" must have at least {MIN_CLUSTERS} distinct values for inference; got {count}.",
        hint="Use a finer unit as cluster, or report the metric without inference.",
        value=count,
    )


def map_blocks(
    function: Callable[[Streams], Floats],
    *,
    purpose: str,
    n_resamples: int,
    seed: SeedSequence,
    rows: float,
    threads: bool = False,
    other_threads: int = 0,
    show: bool | None = None,
) -> Floats:
    """Return the values of a function of blocks of replicates of so many rows, one row per replicate, in their order.

    A block is so small that an interruption takes effect within a fraction of a second. `other_threads` work meanwhile:
    where cores are many, each of them keeps one.
    """
    workers = _worker_count(rows, other_threads) if threads else 1
    blocks = replicate_blocks(purpose, n_resamples=n_resamples, seed=seed, rows=rows, workers=workers)
    try:
        found = map_in_threads(function, blocks, workers)
        return np.concatenate(list(progress_bar(found, len(blocks), f"resampling ({purpose})", show=show)))
    finally:
        if rows >= THREADS_FROM_IN_KERNEL:  # little memory is used again by the next table
            _kernels.free_memory()


def replicate_blocks(
    purpose: str, *, n_resamples: int, seed: SeedSequence, rows: float, workers: int = 1
) -> list[Streams]:
    """Return the streams of the replicates of a table of so many rows, in blocks for so many threads."""
    key, count = stream_key(seed, PURPOSES.index(purpose)), check_resample_count(n_resamples)
    least = _BLOCKS_PER_THREAD * workers if workers > 1 else 1
    block = max(1, min(int(_ROWS_PER_BLOCK / max(rows, 1)), -(-count // least)))
    return [Streams(key, first, min(block, count - first)) for first in range(0, count, block)]


def _worker_count(rows: float, other_threads: int) -> int:
    """Return the number of threads for replicates of so many rows, beside other threads."""
    cores = available_cores()
    cores -= min(other_threads, cores // _CORES_PER_OTHER_THREAD)
    return max(1, min(cores, int(_MOST_ROWS_AT_ONCE / max(rows, 1))))


def uses_threads(table: Sized) -> bool:
    """Return whether independent parts of the work on a table run in threads.

    On one core they would only take the cache from each other.
    """
    return len(table) >= THREADS_FROM and available_cores() > 1


def map_replicates(
    function: Callable[[Stream], Sequence[float] | Floats],
    *,
    purpose: str,
    n_resamples: int,
    seed: SeedSequence,
    threads: bool = False,
    show: bool | None = None,
) -> Floats:
    """Return the values of a function of the random stream of each replicate, one row per replicate."""
    options: dict[str, Any] = {"purpose": purpose, "n_resamples": n_resamples, "seed": seed, "show": show}
    return map_blocks(one_by_one(function), rows=THREADS_FROM, threads=threads, **options)


def one_by_one(function: Callable[[Stream], Sequence[float] | Floats]) -> Callable[[Streams], Floats]:
    """Return the function of a block of replicates that calls a function of one replicate."""
    return lambda streams: np.array([function(stream) for stream in streams], dtype=np.float64)


def bootstrap_sampler(table: ScoreTable) -> Callable[[Stream], ScoreTable]:
    """Return the sampler of bootstrap replicates: as many rows as the table has, drawn from it with replacement.

    Importance weights are sampled as Poisson numbers of rows, for events and for other rows: weights with sum s and sum
    of squares q count as s^2 / q rows of weight q / s, which preserves mean and variance of their sum.
    """
    if table.importance:
        return PoissonSampler(table)
    counts = CountSampler(table)
    return lambda stream: compact(table.score, *counts.bootstrap(stream))


def null_sampler(table: ScoreTable, rows: "PairedRows | None" = None) -> Callable[[Stream], ScoreTable]:
    """Return the sampler of null replicates: tables with the same scores and the outcomes of a calibrated model.

    - Counts: outcomes are simulated from the scores, with the score as probability of each row. Exact.
    - Importance weights: the residual sum of each score is its robust standard deviation times a random sign (where
      the score has several rows, times a standard normal variate).
    - Clusters (`rows`): the residuals of each cluster are multiplied by one random sign, which preserves their
      dependence.

    In the latter two, sums of events can lie outside [0, n]: metrics of gaps accept them, tests of counts do not.
    """
    if rows is not None and rows.cluster is not None:
        return rows.null_sampler()
    if table.importance:
        return SignedResiduals.of_weights(table).sampler(table)
    counts = CountSampler(table)
    return lambda stream: ScoreTable(table.score, table.n, counts.null(stream))


class CountSampler:
    """Replicates of a table of counts: of its rows one by one or, where scores have many rows, of their counts.

    `kernel` measures the sums of a plan; see `calibrant._kernels`. With `takes_draws` it also measures given rows.
    Sums of replicates may be started in other threads before they are needed.
    """

    def __init__(
        self,
        table: ScoreTable,
        plan: _kernels.Plan | None = None,
        *,
        takes_draws: bool = False,
        in_clusters: bool = False,
    ) -> None:
        self.table, self.by_rows = table, samples_rows(table)
        known, options = plan or _kernels.Plan(), {"by_rows": takes_draws or self.by_rows, "in_clusters": in_clusters}
        self.kernel = _kernels.replicates(table.score, table.n, table.k, known, **options)
        self._bytes = known.bytes_per_replicate
        self._started: dict[Streams, Callable[[], _kernels.ReplicateSums]] = {}

    def start(self, submit: Submit, *, n_resamples: int, seed: SeedSequence) -> None:
        """Begin to compute the sums of all replicates, if the kernel draws them and they need little memory."""
        if not self.by_rows or n_resamples * self._bytes > _MOST_BYTES_AHEAD:
            return
        for purpose, measure in (("bootstrap", self.kernel.resample), ("null", self.kernel.simulate)):
            for block in replicate_blocks(purpose, n_resamples=n_resamples, seed=seed, rows=self.table.size):
                self._started[block] = submit(partial(measure, block.key, block.first, block.count))

    def bootstrap(self, stream: Stream) -> tuple[Ints, Ints]:
        """Return the rows and the events of each score in a bootstrap replicate."""
        if self.by_rows:
            return self.kernel.resampled(stream.key, stream.replicate)
        table, size = self.table, int(self.table.size)
        share = np.concatenate([table.k, table.n - table.k]) / size
        events, others = np.split(stream.generator().multinomial(size, share), 2)
        return events + others, events

    def null(self, stream: Stream) -> Ints:
        """Return the events of each score in a null replicate."""
        if self.by_rows:
            return self.kernel.simulated(stream.key, stream.replicate)
        return stream.generator().binomial(self.table.n, self.table.score)

    def bootstrap_sums(self, streams: Streams) -> _kernels.ReplicateSums:
        """Return the sums of bootstrap replicates."""
        if streams in self._started:
            return self._started.pop(streams)()
        if self.by_rows:
            return self.kernel.resample(streams.key, streams.first, streams.count)
        n, k = zip(*map(self.bootstrap, streams), strict=True)
        return self.kernel.measure(np.array(n), np.array(k))

    def null_sums(self, streams: Streams) -> _kernels.ReplicateSums:
        """Return the sums of null replicates."""
        if streams in self._started:
            return self._started.pop(streams)()
        if self.by_rows:
            return self.kernel.simulate(streams.key, streams.first, streams.count)
        k = np.array([self.null(stream) for stream in streams])
        return self.kernel.measure(np.ascontiguousarray(np.broadcast_to(self.table.n, k.shape)), k)


def samples_rows(table: ScoreTable) -> bool:
    """Return whether rows are resampled one by one."""
    return table.size <= min(_MAX_ROWS_PER_SCORE * len(table), _MOST_ROWS)


def compact(score: Floats, n: Any, k: Any, *squares: Floats) -> ScoreTable:
    """Return the table without the scores that a replicate does not contain."""
    used = n > 0
    return ScoreTable(score[used], n[used], k[used], *(column[used] for column in squares))


class PoissonSampler:
    """Bootstrap replicates of importance weights: a Poisson number of rows for events, and one for others.

    Attributes
    ----------
    rows : ndarray of int64
        How many units each score has: events, others, or both.
    weight, mean : ndarray of float64
        Weight of the rows of each unit, and the mean of their number.
    event : ndarray of uint8
        Whether the rows of each unit are events; they precede the others of their score.
    """

    def __init__(self, table: ScoreTable) -> None:
        assert table.w2 is not None
        self.table = table
        k2 = event_squares(table)
        parts = [_poisson_rows(table.k, k2), _poisson_rows(table.n - table.k, table.w2 - k2)]
        weight, mean = (np.column_stack(each) for each in zip(*parts, strict=True))
        used = mean > 0
        self.rows = used.sum(axis=1)
        self.weight, self.mean = weight[used], mean[used]
        self.event = np.broadcast_to(np.array([1, 0], dtype=np.uint8), used.shape)[used]
        self._several = np.flatnonzero(np.abs(self.mean - 1) > _ROUNDING)
        self._place = np.repeat(np.arange(len(table)), self.rows)

    @property
    def is_drawn_by_kernel(self) -> bool:
        """Whether each score has a unit, and numbers of rows fit in 32 bits."""
        return bool(np.all(self.rows > 0)) and bool(self.mean.max(initial=0) < 2**30)

    def draws(self, streams: Streams) -> _kernels.Bytes | _kernels.Order:
        """Return the number of rows of each unit, one row per replicate."""
        drawn = _kernels.poisson_draws(streams.key, streams.first, streams.count, self.mean.size)
        if not self._several.size:
            return drawn
        found = drawn.astype(np.int32)
        for row, stream in zip(found, streams, strict=True):
            row[self._several] = stream.generator().poisson(self.mean[self._several])
        return found

    def __call__(self, stream: Stream) -> ScoreTable:
        """Return the table of a replicate."""
        times = self.draws(Streams(stream.key, stream.replicate, 1))[0]
        whole = times * self.weight
        columns = (whole, whole * self.event, whole * self.weight, whole * self.weight * self.event)
        sums: Any = (np.bincount(self._place, weights=each, minlength=len(self.table)) for each in columns)
        replicate = compact(self.table.score, *sums)
        return replicate if len(replicate) else self.table  # an empty replicate, possible with very few rows


def _poisson_rows(total: Floats, square: Floats) -> tuple[Floats, Floats]:
    """Return the weight and the number of rows that have these sums of weights and of their squares."""
    some = (total > 0) & (square > 0)
    weight = np.divide(square, total, out=np.ones(total.size), where=some)
    return weight, np.where(some, total / weight, 0.0)


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
        return cls.from_rows(Rows.read(y_true, forecasts, **options))

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

    def null_sampler(self) -> Callable[[Stream], ScoreTable]:
        """Return the sampler of null replicates of the only prediction: one random sign for each cluster."""
        return self.signed_residuals().sampler(self.fitted_table())

    def fitted_table(self) -> ScoreTable:
        """Return the table of the only prediction with as many events as it predicts; its sums are real weights."""
        (score,), (place,) = self.scores, self.places
        weight = np.ones(self.event.size) if self.weight is None else self.weight.astype(np.float64)
        counts = self.weight is None or self.weight.dtype.kind != "f"
        squares = weight if counts else weight**2
        n, w2, k2 = (
            np.asarray(np.bincount(place, weights=column, minlength=score.size), dtype=np.float64)
            for column in (weight, squares, squares * self.event)
        )
        return ScoreTable(score, n, n * score, w2, k2)

    def signed_residuals(self) -> SignedResiduals:
        """Return the residuals of the only prediction, with one random sign for each cluster."""
        assert self.cluster is not None
        (score,), (place,) = self.scores, self.places
        weight = 1.0 if self.weight is None else self.weight.astype(np.float64)
        order = np.argsort(place, kind="stable")
        residual = (weight * (self.event - score[place]))[order]
        return SignedResiduals(place[order], residual, self.cluster[order], self.n_draws)

    def _table(self, score: Floats, place: Ints, weight: Weights) -> ScoreTable:
        """Return the table of the rows with these weights in the replicate."""

        def total(column: Weights) -> Weights:
            return np.bincount(place, weights=column, minlength=score.size).astype(weight.dtype)

        importance = weight.dtype.kind == "f" and self.weight is not None
        squared = [] if self.weight is None or not importance else [weight * self.weight]
        squares = [total(column) for square in squared for column in (square, square * self.event)]
        return compact(score, total(weight), total(weight * self.event), *squares)


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
    rows: dict[str, Any],
    reader: TableReader[ScoreTable] = read_score_table,
) -> tuple[ScoreTable, PairedRows | None]:
    """Return the table and, where rows are in clusters, the rows; errors call the scores as the reader does."""
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
