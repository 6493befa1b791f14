"""Replicates of tables: rows drawn again (the bootstrap), or outcomes drawn from the scores (the null).

Replicate i of a purpose has a random stream of its own, seeded by (random_state, purpose, i), so that results are the
same bytes on both kernels, on any number of threads, and whatever else is computed from the same `random_state`.
"""

import math
import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.random import SFC64, Generator, SeedSequence

from calibrant import _kernels
from calibrant._support import columns as _columns
from calibrant._support.errors import Argument, InputError, Note
from calibrant._support.options import check_count
from calibrant._support.progress import progress_bar
from calibrant._support.typing import Column, Floats, Ints, Weights
from calibrant.metrics.gce import GCE
from calibrant.tables.partition import Partition
from calibrant.tables.rows import table_of
from calibrant.tables.score_table import ScoreTable

T = TypeVar("T")

# Where a table has at least one score to so many rows, rows are drawn one by one; where it has fewer, a draw from the
# distribution of a score's whole count is quicker.
_ROWS_A_SCORE = 16
_MOST_ROWS = 2**27  # beyond, the chances of single rows would differ by more than 3 % (see the kernel's draw)
THREADS_FROM = 100_000  # rows: below, Python itself is too much of the work, and it runs one thread at a time
_BLOCKS = 16  # that each thread works through

PURPOSES = ("bootstrap", "null")

# With fewer clusters neither sign flips nor Student's quantiles keep what they promise.
MIN_CLUSTERS = 10


@runtime_checkable
class Measure(Protocol):
    """A metric object: `GCE` or `UnbinnedMetric`."""

    @property
    def name(self) -> str: ...
    @property
    def unit(self) -> str: ...
    @property
    def spec(self) -> dict[str, Any]: ...
    @property
    def measures_gaps(self) -> bool: ...
    def value(self, table: ScoreTable) -> float: ...


def check_resamples(n_resamples: int, alpha: float) -> int:
    """As many replicates as a p-value of alpha needs: with fewer, nothing could be shown."""
    if check_count("n_resamples", n_resamples) + 1 < 1 / alpha - 1e-9:
        raise InputError(
            Argument("n_resamples")
            + f" must be at least {math.ceil(1 / alpha - 1e-9) - 1:,} for a p-value of {alpha:g}; it is {n_resamples}.",
            value=n_resamples,
        )
    return int(n_resamples)


def check_clusters(count: int) -> int:
    """The number of clusters, if inference can rest on so many."""
    if count >= MIN_CLUSTERS:
        return count
    raise InputError(
        Argument("cluster") + f" must have at least {MIN_CLUSTERS} distinct values for inference; got {count}.",
        hint="Use a finer unit as cluster, or report the metric without inference.",
        value=count,
    )


def replicates(
    one: Callable[[SFC64], Sequence[float] | Floats],
    *,
    purpose: str,
    n_resamples: int,
    seed: SeedSequence,
    threads: bool = False,
    show: bool | None = None,
) -> Floats:
    """The values of `n_resamples` replicates, each from a stream of its own; NaN where a metric does not exist."""
    check_count("n_resamples", n_resamples)
    key = (*seed.spawn_key, PURPOSES.index(purpose))

    def at(i: int) -> Sequence[float] | Floats:
        return one(SFC64(SeedSequence(seed.entropy, spawn_key=(*key, i))))

    found = _in_order(at, int(n_resamples), threads)
    try:
        return np.array(
            list(progress_bar(found, int(n_resamples), f"drawing ({purpose})", show=show)), dtype=np.float64
        )
    finally:
        _kernels.free_memory()


def _in_order(one: Callable[[int], T], count: int, threads: bool) -> Iterator[T]:
    workers = os.cpu_count() or 1
    if not threads or workers == 1:
        yield from map(one, range(count))
        return
    block = max(1, count // (_BLOCKS * workers))  # handing out single replicates would cost as much as measuring them

    def several(first: int) -> list[T]:
        return [one(i) for i in range(first, min(first + block, count))]

    pool = ThreadPoolExecutor(workers)
    try:
        for found in pool.map(several, range(0, count, block)):
            yield from found
    finally:
        pool.shutdown(cancel_futures=True)


def bootstrap_values(table: ScoreTable, metrics: Sequence[Measure]) -> Callable[[SFC64], list[float]]:
    """From a stream to the values of one bootstrap replicate.

    Where all metrics want are sums over bins that no replicate moves (ECE, for one), no replicate is written out.
    """
    fixed = [m for m in metrics if isinstance(m, GCE) and getattr(m.bins, "fixed", False) and m.needs_sums_only]
    # One kind of bins only: the reference kernel moves its stream on, and a second kind would see other draws.
    shared = len(fixed) == len(metrics) and len({metric.bins for metric in fixed}) == 1
    if not shared or table.importance or not _by_rows(table):
        sampler = bootstrap(table)
        return lambda bits: values(metrics, sampler(bits))
    partition = fixed[0].bins(table)

    def over_sums(bits: SFC64) -> list[float]:
        drawn = partition.with_sums(*_kernels.resample_bins(table.score, table.n, table.k, partition.start, bits))
        return [metric.value_over(drawn) for metric in fixed]

    return over_sums


def values(metrics: Sequence[Measure], table: ScoreTable) -> list[float]:
    """The values; NaN where a metric does not exist, such as AUC of a replicate with one class.

    Metrics with equal bins share them: cutting a table costs as much as measuring it.
    """
    partitions: dict[Hashable, Partition] = {}

    def value(metric: Measure) -> float:
        if not (isinstance(metric, GCE) and isinstance(metric.bins, Hashable)):
            return metric.value(table)
        if metric.bins not in partitions:
            partitions[metric.bins] = metric.bins(table)
        return metric.value_over(partitions[metric.bins])

    found = []
    for metric in metrics:
        try:
            found.append(value(metric))
        except InputError:
            found.append(float("nan"))
    return found


def mostly_exist(values: Floats) -> bool:
    """Whether at least half of the replicates have a value."""
    return bool(2 * np.count_nonzero(np.isnan(values)) <= values.size)


def existing(values: Floats, metric: str) -> tuple[Floats, tuple[Note, ...]]:
    """The replicates that have a value, and a note if some have none."""
    kept = values[~np.isnan(values)]
    lost = values.size - kept.size
    if not mostly_exist(values):
        raise InputError(
            f"{metric} does not exist in {lost:,} of {values.size:,} replicates: there are too few rows, or too few of "
            "one class."
        )
    if not lost:
        return kept, ()
    return kept, (Note("no_value", lost, f"Replicates left out because {metric} does not exist there: {{count}}."),)


# Tables


def bootstrap(table: ScoreTable) -> Callable[[SFC64], ScoreTable]:
    """The sampler of bootstrap replicates: as many rows as the table has, drawn from it with replacement.

    Importance weights are drawn as Poisson numbers of rows, events and other rows apart: weights of sum s and squares
    q count as s^2 / q rows of weight q / s, which keeps mean and variance of their sum.
    """
    if table.importance:
        return lambda bits: _poisson(table, Generator(bits))
    size = int(table.size)
    if _by_rows(table):
        return lambda bits: ScoreTable(*_kernels.resample(table.score, table.n, table.k, bits))
    chance = np.concatenate([table.k, table.n - table.k]) / size

    def by_scores(bits: SFC64) -> ScoreTable:
        events, others = np.split(Generator(bits).multinomial(size, chance), 2)
        return _compact(table.score, events, others)

    return by_scores


def null(table: ScoreTable, rows: "PairedRows | None" = None) -> Callable[[SFC64], ScoreTable]:
    """The sampler of tables that a calibrated model would give: the same scores, other outcomes.

    - Counts: outcomes are drawn from the scores, a uniform number of 53 bits per row, an event where it is below the
      score. Exact.
    - Importance weights: the residual sum of each score gets a random sign (where the score has several rows, a
      standard normal factor) and the size of its robust standard deviation.
    - Clusters (`rows`): the residuals of each cluster get one random sign, so that their dependence stays.

    The latter two leave sums of events outside [0, n]: measures of gaps take them, a test of counts does not exist.
    """
    score, n = table.score, table.n
    if rows is not None and rows.cluster is not None:
        return rows.null()
    if table.importance:
        return _wild(table)
    if not _by_rows(table):
        return lambda bits: ScoreTable(score, n, Generator(bits).binomial(n, score))
    return lambda bits: ScoreTable(score, n, _kernels.redraw(score, n, bits))


def _wild(table: ScoreTable) -> Callable[[SFC64], ScoreTable]:
    """The null of importance weights. The weights are not numbers of trials: they may depend on the outcome."""
    score, n, w2 = table.score, table.n, table.w2
    assert w2 is not None
    deviation, k2 = np.sqrt(residual_variance(table)), event_squares(table)
    single = n**2 <= w2 * (1 + 1e-9)

    def one(bits: SFC64) -> ScoreTable:
        normal = Generator(bits).standard_normal(score.size)
        moved = np.where(single, np.sign(normal), normal) * deviation
        return ScoreTable(score, n, n * score + moved, w2, k2)

    return one


def residual_variance(table: ScoreTable) -> Floats:
    """Variance of the sum of weight times (event - score) of each score, if the model is calibrated.

    Counts have Bernoulli's variance. Importance weights have the sum of squared residuals, which holds where weights
    depend on outcomes.
    """
    if table.w2 is None:
        return np.asarray(table.n * table.score * (1 - table.score))
    k2 = event_squares(table)
    return np.asarray(k2 * (1 - table.score) ** 2 + (table.w2 - k2) * table.score**2)


def event_squares(table: ScoreTable) -> Floats:
    """Sums of squared weights of events per score."""
    assert table.w2 is not None
    assert table.k2 is not None
    return table.k2


def _by_rows(table: ScoreTable) -> bool:
    return table.size <= min(_ROWS_A_SCORE * len(table), _MOST_ROWS)


def _compact(score: Floats, events: Any, others: Any, *squares: Floats) -> ScoreTable:
    n = events + others
    used = n > 0
    return ScoreTable(score[used], n[used], events[used], *(column[used] for column in squares))


def _poisson(table: ScoreTable, rng: Generator) -> ScoreTable:
    assert table.w2 is not None
    k2 = event_squares(table)
    drawn, squares = list[Floats](), list[Floats]()
    for total, square in ((table.k, k2), (table.n - table.k, table.w2 - k2)):
        some = (total > 0) & (square > 0)
        weight = np.divide(square, total, out=np.ones(total.size), where=some)
        drawn.append(weight * rng.poisson(np.where(some, total / weight, 0.0)))
        squares.append(weight * drawn[-1])
    replicate = _compact(table.score, drawn[0], drawn[1], squares[0] + squares[1], squares[0])
    return replicate if len(replicate) else table  # nothing drawn at all: one row of very few


# Rows that belong together


@dataclass(frozen=True)
class PairedRows:
    """Rows with several predictions each, or in clusters: for each row its place in each table.

    A replicate draws rows (or whole clusters) once; every table then counts the rows that were drawn.
    """

    scores: tuple[Floats, ...]
    places: tuple[Ints, ...]
    event: Ints
    weight: Weights | None
    cluster: Ints | None
    n_draws: int

    @classmethod
    def read(
        cls, y_true: Column, y_probs: Sequence[Column], *, cluster: Column | None = None, **rows: Any
    ) -> tuple["PairedRows", list[ScoreTable]]:
        """The rows and their tables, checked and read as `ScoreTable.from_arrays` reads them."""
        outside = {"y_true": y_true, "cluster": cluster}
        outside |= {name: rows.get(name) for name in ("sample_weight", "frequency")}
        _columns.check_alignment(outside | {f"y_prob of model {i}": p for i, p in enumerate(y_probs, 1)})
        tables = [table_of(y_true, y_prob, rows) for y_prob in y_probs]
        if rows.get("missing", "raise") != "raise":
            raise InputError("Rows that belong together cannot be dropped one by one.", hint="Leave out missing=.")
        event = _columns.labels(_columns.read(y_true, "y_true"), rows.get("pos_label")).values.astype(np.int64)
        scores = [_columns.scores(_columns.read(p, "y_prob")).values for p in y_probs]
        places = tuple(np.searchsorted(table.score, score) for table, score in zip(tables, scores, strict=True))
        codes = None
        if cluster is not None:
            column = _columns.read(cluster, "cluster")
            _columns.check_lengths([_columns.Column("y_true", event), column])
            _columns.refuse_missing([column])
            codes = _columns.encode(column)[1]
        weights = _row_weights(rows.get("sample_weight"), rows.get("frequency"))
        if weights is not None and (weights == 0).any():  # no rows at all, and not in the tables
            kept = weights > 0
            event, weights, places = event[kept], weights[kept], tuple(place[kept] for place in places)
            codes = None if codes is None else np.unique(codes[kept], return_inverse=True)[1]
        if weights is not None and not tables[0].importance and codes is None:
            if weights.sum() > _MOST_ROWS:
                raise InputError(
                    Argument("frequency")
                    + f" must add up to at most {_MOST_ROWS:,} rows, which are resampled one by one; "
                    f"got {weights.sum():,}.",
                    hint="Pass " + Argument("sample_weight") + " for importance weights, or fewer rows.",
                )
            again = np.repeat(np.arange(event.size), weights)  # frequency 2 means two rows, each drawn for itself
            event, places, weights = event[again], tuple(place[again] for place in places), None
        draws = event.size if codes is None else int(codes.max()) + 1
        if draws == 1 and codes is not None:
            check_clusters(draws)
        return cls(tuple(t.score for t in tables), places, event, weights, codes, draws), tables

    def only(self, i: int) -> "PairedRows":
        """The same rows with one of their predictions."""
        return replace(self, scores=(self.scores[i],), places=(self.places[i],))

    def times(self, bits: SFC64) -> Ints:
        """How often each row is drawn."""
        times = _kernels.draw(bits, self.n_draws)
        return times if self.cluster is None else times[self.cluster]

    def __call__(self, bits: SFC64) -> tuple[ScoreTable, ...]:
        times = self.times(bits)
        drawn = times if self.weight is None else times * self.weight
        return tuple(self._table(*each, drawn) for each in zip(self.scores, self.places, strict=True))

    def null(self) -> Callable[[SFC64], ScoreTable]:
        """The sampler of tables of the only prediction, if it is calibrated: one random sign for each cluster."""
        assert self.cluster is not None
        (score,), (place,), cluster = self.scores, self.places, self.cluster
        weight = np.ones(self.event.size) if self.weight is None else self.weight.astype(np.float64)
        counts = self.weight is None or self.weight.dtype.kind != "f"
        residual = weight * (self.event - score[place])
        squares = weight if counts else weight**2
        n, w2, k2 = (
            np.asarray(np.bincount(place, weights=column, minlength=score.size), dtype=np.float64)
            for column in (weight, squares, squares * self.event)
        )

        def one(bits: SFC64) -> ScoreTable:
            sign = 2.0 * Generator(bits).integers(0, 2, self.n_draws) - 1.0
            moved = np.bincount(place, weights=sign[cluster] * residual, minlength=score.size)
            return ScoreTable(score, n, n * score + moved, w2, k2)

        return one

    def _table(self, score: Floats, place: Ints, drawn: Weights) -> ScoreTable:
        def total(column: Weights) -> Weights:
            return np.bincount(place, weights=column, minlength=score.size).astype(drawn.dtype)

        importance = drawn.dtype.kind == "f" and self.weight is not None
        squared = [] if self.weight is None or not importance else [drawn * self.weight]
        squares = [total(column) for square in squared for column in (square, square * self.event)]
        return _compact(score, total(drawn * self.event), total(drawn * (1 - self.event)), *squares)


def _row_weights(sample_weight: Column | None, frequency: Column | None) -> Weights | None:
    """For each row its importance weight (float64) or its number of equal rows (int64); None if neither is given."""
    if sample_weight is not None:
        weights: Weights = _columns.weights(_columns.read(sample_weight, "sample_weight")).values
        return weights
    if frequency is None:
        return None
    return _columns.frequencies(_columns.read(frequency, "frequency")).values.astype(np.int64)
