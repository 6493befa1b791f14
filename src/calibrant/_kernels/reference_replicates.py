"""Replicates of tables and of weighted rows in NumPy, with the random numbers of the compiled kernel."""

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from calibrant._kernels.interface import (
    Bytes,
    Order,
    Plan,
    ReplicateSums,
    TableSums,
    TestedBlocks,
    WeightedBlocks,
    WeightedSums,
    poisson_shares,
    unit_poisson_shares,
)
from calibrant._kernels.preconditions import (
    check_counts,
    check_order,
    check_plan,
    check_table,
    check_weighted_rows,
    require,
)
from calibrant._kernels.reference import pava_bc, rejected
from calibrant._support.arrays import Bools, Floats, Ints, Weights

Words = NDArray[np.uint64]

_ROWS, _TIES, _EXTRA, _SIGNS, _STREAMS = 0, 1, 2, 3, 4
_CHUNK = 32  # counters whose words are stored together
_LOW = np.uint64(2**32 - 1)
_SLACK = 1e-9  # of limits and cuts of weights, as in `calibrant.bins`
_CLOSE = 1e-8  # a decision so close to its limit needs a p-value


def philox(key: int, stream: int, replicate: int, counter: Words) -> tuple[Words, Words, Words, Words]:
    """Return the four words of 32 bits of each counter: Philox4x32-10 of Salmon et al. (2011)."""
    half = np.uint64(32)
    low, high = key & 0xFFFFFFFF, key >> 32
    x0, x1, x2, x3 = counter, *(np.full_like(counter, word) for word in (stream, replicate, 0))
    for _ in range(10):
        a, b = x0 * np.uint64(0xD2511F53), x2 * np.uint64(0xCD9E8D57)
        x0, x1, x2, x3 = (b >> half) ^ x1 ^ np.uint64(low), b & _LOW, (a >> half) ^ x3 ^ np.uint64(high), a & _LOW
        low, high = (low + 0x9E3779B9) & 0xFFFFFFFF, (high + 0xBB67AE85) & 0xFFFFFFFF
    return x0, x1, x2, x3


def _words(key: int, stream: int, replicate: int, chunks: int) -> Words:
    """Return whole chunks of words: the first two of each of 32 counters, then the other two."""
    x0, x1, x2, x3 = philox(key, stream, replicate, np.arange(chunks * _CHUNK, dtype=np.uint64))
    pairs = [(low | (high << np.uint64(32))).reshape(-1, _CHUNK) for low, high in ((x0, x1), (x2, x3))]
    return np.stack(pairs, axis=1).reshape(-1)


def _numbers(key: int, stream: int, replicate: int, count: int, bits: int) -> Words:
    """Return `count` numbers of 16 or 32 bits."""
    per_word = 64 // bits
    words = _words(key, stream, replicate, -(-count // (2 * _CHUNK * per_word)))
    shifts = np.arange(0, 64, bits, dtype=np.uint64)
    return ((words[:, None] >> shifts) & np.uint64(2**bits - 1)).reshape(-1)[:count]


def _uniform(key: int, stream: int, replicate: int, rows: Ints) -> Floats:
    """Return a number in [0, 1) with 53 random bits for each row."""
    x0, x1, _, _ = philox(key, stream, replicate, rows.astype(np.uint64))
    return ((x1 << np.uint64(32) | x0) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def draw(key: int, replicate: int, size: int) -> Ints:
    """Return how often each of `size` rows occurs in `size` draws with replacement and equal probabilities.

    Few rows are drawn one by one: a random number h of 32 bits selects row floor(h size / 2^32). Otherwise each row has
    a Poisson number of draws with a mean slightly below 1, and the missing draws are made one by one. Given their
    number, Poisson draws are draws with replacement, so the result is exact.
    """
    require(0 <= size < 2**32, "at most 2^32 - 1 rows can be drawn one by one")
    shares, attempt = poisson_shares(size), 0
    times = np.zeros(size, dtype=np.int64)
    while shares.size:
        times = _poisson(key, attempt, replicate, size, shares)
        if times.sum() <= size:
            break
        attempt += 1
    missing = size - int(times.sum())
    halves = _numbers(key, _EXTRA + _STREAMS * attempt, replicate, missing, 32)
    rows = (halves * np.uint64(size)) >> np.uint64(32)
    return times + np.bincount(rows.astype(np.int64), minlength=size)


def draws(key: int, first: int, count: int, size: int) -> Bytes:
    """Return how often each row occurs in replicates, one row each; see `draw`."""
    return np.array([draw(key, first + i, size) for i in range(count)], dtype=np.uint8).reshape(count, size)


def poisson_draws(key: int, first: int, count: int, size: int) -> Bytes:
    """Return independent Poisson numbers of draws with mean 1 of each row, one row per replicate."""
    require(0 <= size < 2**32, "at most 2^32 - 1 rows can be drawn one by one")
    shares = unit_poisson_shares()
    times = [_poisson(key, 0, first + i, size, shares) for i in range(count)]
    return np.array(times, dtype=np.uint8).reshape(count, size)


def class_draws(key: int, first: int, count: int, cumulative: Floats) -> Order:
    """Return a class of each row, drawn from its cumulative probabilities, one row per replicate.

    A random number of 53 bits times the total selects the first class whose cumulative probability is larger.
    """
    rows, classes = cumulative.shape
    require(rows < 2**32, "at most 2^32 - 1 rows can be drawn one by one")
    require(1 <= classes < 2**31, "classes must be at least 1")
    total = cumulative[:, -1]
    rising = np.all(cumulative[:, 0] >= 0) and np.all(cumulative[:, 1:] >= cumulative[:, :-1])
    valid = rising and np.isfinite(total).all() and np.all(total > 0)
    require(valid, "cumulative probabilities must rise from 0 or more to a finite number above 0")
    last = (cumulative < total[:, None]).sum(axis=1)  # the last class with a positive probability
    codes = np.empty((count, rows), dtype=np.int32)
    for i, row in enumerate(codes):
        words = _words(key, _ROWS, first + i, -(-rows // (2 * _CHUNK)))[:rows]
        target = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53 * total
        row[:] = np.minimum((cumulative <= target[:, None]).sum(axis=1), last)
    return codes


def signed_sums(key: int, first: int, count: int, values: Floats, start: Ints, unit: Ints | None) -> Floats:
    """Return sums of rows of `values` with random signs, of shape (replicates, bins, columns).

    Bin b begins with row ``start[b]``. Rows of one unit share their sign; without units each row has its own. The sign
    of unit i of replicate r is the i-th bit of a stream of its own, and + where the bit is set.
    """
    size, columns = values.shape
    rising = start.size == 0 or (start[0] >= 0 and start[-1] <= size and np.all(start[1:] >= start[:-1]))
    require(rising, "starts of bins must not fall and must lie in the rows")
    require(start.size > 0 and start[0] == 0, "the first bin must begin with the first row")
    valid = unit is None or unit.size == 0 or (unit.size == size and unit.min() >= 0 and unit.max() < 2**32)
    require(valid, "unit must have a number from 0 to units - 1 for each row")
    unit = np.arange(size) if unit is None or unit.size == 0 else unit
    end, units = np.append(start[1:], size), int(unit.max(initial=-1)) + 1
    sums = np.empty((count, start.size, columns))
    for i in range(count):
        signed = values * signs(key, first + i, units)[unit, None]
        before = np.concatenate([np.zeros((1, columns)), np.cumsum(signed, axis=0)])
        sums[i] = before[end] - before[start]
    return sums


def signs(key: int, replicate: int, units: int) -> Floats:
    """Return the random sign of each unit of a replicate, as `signed_sums` uses them."""
    require(0 <= units <= 2**32, "at most 2^32 - 1 rows can be drawn one by one")
    words = _words(key, _SIGNS, replicate, -(-units // (2 * _CHUNK * 64)))
    bits = np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little")[:units]
    return 2 * bits.astype(np.float64) - 1


def _poisson(key: int, attempt: int, replicate: int, size: int, shares: Floats) -> Ints:
    number = _numbers(key, _ROWS + _STREAMS * attempt, replicate, size, 16).astype(np.int64)
    cells = np.unique(np.minimum(np.floor(shares * 65536), 65535).astype(np.int64))
    times = np.searchsorted(cells, number)
    tied = np.flatnonzero(cells[np.minimum(times, cells.size - 1)] == number)
    more = _uniform(key, _TIES + _STREAMS * attempt, replicate, tied)
    times[tied] = np.searchsorted(shares, (number[tied] + more) / 65536, side="right")
    return times


def replicates(
    score: Floats, n: Ints, k: Ints, plan: Plan, *, by_rows: bool = True, in_clusters: bool = False
) -> TableSums:
    """Return the replicates of a table; without `by_rows` only those with given counts are measured.

    With `in_clusters` rows of one score may be drawn together.
    """
    return _TableSums(score, n, k, plan, by_rows, in_clusters)


class _TableSums:
    def __init__(self, score: Floats, n: Ints, k: Ints, plan: Plan, by_rows: bool, in_clusters: bool) -> None:
        check_plan(plan, score.size)
        check_table(score, n, k, by_rows=by_rows)
        self.score, self.n, self.k, self.plan, self.by_rows = score, n, k, plan, by_rows
        # The compiled kernel stores counts of replicates in one, two or eight bytes.
        most = int(n.max(initial=0))
        few, some = (1, 257) if in_clusters else (32, 60_000)
        self.most_draws = 2**8 - 1 if most <= few else 2**16 - 1 if most <= some else 2**63 - 1
        self.first_row = np.concatenate([[0], np.cumsum(n)])

    def _check_rows(self) -> None:
        require(self.by_rows, "rows are drawn only with by_rows")

    def simulated(self, key: int, replicate: int) -> Ints:
        self._check_rows()
        scaled = np.repeat(self.score, self.n) * 65536
        whole = np.minimum(np.floor(scaled), 65535)
        number = _numbers(key, _ROWS, replicate, scaled.size, 16)
        event = number < whole
        tied = np.flatnonzero(number == whole)
        event[tied] = _uniform(key, _TIES, replicate, tied) < scaled[tied] - whole[tied]
        return self._per_entry(event)[0]

    def resampled(self, key: int, replicate: int) -> tuple[Ints, Ints]:
        self._check_rows()
        return self._per_entry(draw(key, replicate, int(self.first_row[-1])))

    def _per_entry(self, rows: NDArray[np.generic]) -> tuple[Ints, Ints]:
        """Return the sums over the rows of each entry, and over its events, of one number per row."""
        total = np.concatenate([[0], np.cumsum(rows, dtype=np.int64)])
        start = self.first_row[:-1]
        n, k = total[start + self.n] - total[start], total[start + self.k] - total[start]
        require(n.max(initial=0) <= self.most_draws, "drawn must not repeat the rows of a score so often")
        return n, k

    def simulate(self, key: int, first: int, count: int) -> ReplicateSums:
        return self._sums((self.n, self.simulated(key, first + i)) for i in range(count))

    def resample(self, key: int, first: int, count: int) -> ReplicateSums:
        return self._sums(self.resampled(key, first + i) for i in range(count))

    def resample_drawn(self, drawn: Bytes, order: Order | None, limits: Ints | None = None) -> ReplicateSums:
        columns = self._columns(drawn, order)
        limits = None if limits is None or not limits.size else limits
        fits = limits is None or limits.shape == (len(drawn), 2 * len(self.plan.blocks))
        require(fits, "limits must have two columns per partition and one row per replicate")
        return self._sums((self._per_entry(times[columns]) for times in drawn), limits)

    def resample_together(
        self, others: "Sequence[_TableSums]", drawn: Bytes, order: Order | None
    ) -> list[ReplicateSums]:
        require(all(map(self._shares_counts, others)), "tables must share the arrays of their counts")
        return [table.resample_drawn(drawn, order) for table in (self, *others)]

    def _shares_counts(self, other: "_TableSums") -> bool:
        alike = (other.by_rows, other.most_draws) == (self.by_rows, self.most_draws)
        return alike and _is_same(other.n, self.n) and _is_same(other.k, self.k)

    def simulate_drawn(self, drawn: Bytes, order: Order | None) -> ReplicateSums:
        columns = self._columns(drawn, order)
        require(drawn.max(initial=0) <= 1, "drawn must be 0 or 1")
        return self._sums((self.n, self._per_entry(events[columns])[0]) for events in drawn)

    def _columns(self, drawn: Bytes, order: Order | None) -> Order | slice:
        self._check_rows()
        return check_order(drawn, order, int(self.first_row[-1]))

    def measure(self, n: Ints, k: Ints) -> ReplicateSums:
        valid = n.shape == k.shape and n.shape[1] == self.score.size
        require(valid, "n and k must have one column per entry of the table and equally many rows")
        for replicate in zip(n, k, strict=True):
            check_counts(*replicate)
        return self._sums(zip(n, k, strict=True))

    def _sums(self, counts: Iterable[tuple[Ints, Ints]], limits: Ints | None = None) -> ReplicateSums:
        sums = _stacked([self._measure(n, k, None if limits is None else limits[i]) for i, (n, k) in enumerate(counts)])
        sizes = [*(starts.size for starts in self.plan.fixed), *self.plan.quantiles]
        ends = np.cumsum(sizes)
        chosen = [(slice(ends[i] - sizes[i], ends[i]), absolute) for i, absolute in self.plan.gaps]
        gaps = [_mean_gap(sums.n[:, bins], sums.k[:, bins], sums.score[:, bins], absolute) for bins, absolute in chosen]
        sums = sums._replace(gaps=np.array(gaps).reshape(-1, len(sums.linear)).T)
        if self.plan.keeps_sums:
            return sums
        return sums._replace(n=sums.n[:, :0], k=sums.k[:, :0], score=sums.score[:, :0])

    def _measure(self, n: Ints, k: Ints, limits: Ints | None) -> list[Weights]:
        blocks: list[TestedBlocks] = list(self.plan.blocks)  # type: ignore[arg-type]  # those of counts
        if limits is not None:
            pairs = limits.reshape(-1, 2).tolist()
            blocks = [rule._replace(n_min=low, n_max=high) for rule, (low, high) in zip(blocks, pairs, strict=True)]
        refused = [self._rejected(n, k, rule) for rule in blocks]
        return [*_sums_of(self.plan, n, k, self.score, _at_ranks), np.array(refused, dtype=np.int64)]

    def _rejected(self, n: Ints, k: Ints, blocks: TestedBlocks) -> int:
        used = n > 0
        score, n, k = self.score[used], n[used], k[used]
        start = pava_bc(n, k, blocks.n_min, blocks.n_max)
        bin_n, bin_k = (np.add.reduceat(column, start) for column in (n, k))
        return int(rejected(score, n, start, bin_n, bin_k, blocks.alpha).sum())


def _stacked(rows: Sequence[Sequence[Weights]]) -> ReplicateSums:
    """Return the sums of replicates, given those of each replicate; without any, no column is known."""
    columns = zip(*rows, strict=True) if rows else [np.empty((0, 0))] * 5
    return ReplicateSums(*(np.array(column) for column in columns))


def _sums_of(
    plan: Plan, n: Weights, k: Weights, score: Floats, cut: Callable[[Weights, int], Ints]
) -> tuple[Weights, ...]:
    """Return the sums of n, k and n * score over bins, and the linear sums, of a replicate.

    `cut` returns the first entries of bins of equal size, from the rows before each entry and the number of bins.
    """
    before = [np.concatenate([[0], np.cumsum(column)]) for column in (n, k, n * score)]
    starts = [*plan.fixed, *(cut(before[0], bins) for bins in plan.quantiles)]
    begin = np.concatenate([*starts, np.empty(0)]).astype(np.int64)
    ends = [np.append(start[1:], n.size)[: start.size] for start in starts]
    end = np.concatenate([*ends, np.empty(0)]).astype(np.int64)
    linear = np.array([np.sum(n * a) + np.sum(k * b) for a, b in plan.linear], dtype=np.float64)
    return *(column[end] - column[begin] for column in before), linear


def _at_ranks(before: Ints, bins: int) -> Ints:
    """Return the first entry of each bin; it begins after the score that contains the row of rank b N / B."""
    ranks = np.array([b * int(before[-1]) // bins for b in range(bins)], dtype=np.int64)
    return np.where(ranks > 0, np.searchsorted(before, ranks), 0)


def _mean_gap(n: Ints, k: Ints, score: Floats, absolute: bool) -> Floats:
    """Return the mean gap between mean score and event rate over bins, weighted by rows; NaN without rows."""
    size = np.where(n > 0, n, 1.0)
    gap = np.where(n > 0, score, 0.0) / size - k / size
    total = np.sum(n, axis=-1)
    gaps: Floats = np.sum((np.abs(gap) if absolute else gap) * n, axis=-1)
    return np.where(total > 0, gaps, np.nan) / np.where(total > 0, total, 1)


def _is_same(a: Ints, b: Ints) -> bool:
    """Return whether two contiguous arrays are the same memory."""
    return a.ctypes.data == b.ctypes.data and a.size == b.size


def weighted_replicates(score: Floats, rows: Ints, weight: Floats, event: Bytes, plan: Plan) -> WeightedSums:
    """Return the replicates of weighted rows in order of score; entry i has the next ``rows[i]`` of them."""
    return _WeightedSums(score, rows, weight, event, plan)


class _WeightedSums:
    def __init__(self, score: Floats, rows: Ints, weight: Floats, event: Bytes, plan: Plan) -> None:
        check_weighted_rows(score, rows, weight, event)
        check_plan(plan, score.size)
        self.score, self.weight, self.plan = score, weight, plan
        self.place = np.repeat(np.arange(score.size), rows)
        self.of_event = np.where(event == 1, weight, 0.0)

    def __call__(self, drawn: Bytes | Order, order: Order | None) -> ReplicateSums:
        require(drawn.min(initial=0) >= 0, "drawn must not be negative")
        columns = check_order(drawn, order, self.weight.size)
        return _stacked([self._measure(times[columns].astype(np.float64)) for times in drawn])

    def _measure(self, times: Floats) -> list[Weights]:
        n, k = (self._per_entry(times * weight) for weight in (self.weight, self.of_event))
        blocks: list[WeightedBlocks] = list(self.plan.blocks)  # type: ignore[arg-type]  # those of weights
        refused = [self._rejected(n, k, times, rule) for rule in blocks]
        return [*_sums_of(self.plan, n, k, self.score, _at_shares), np.array(refused)]

    def _per_entry(self, column: Floats) -> Floats:
        return np.bincount(self.place, weights=column, minlength=self.score.size).astype(np.float64)

    def _rejected(self, n: Floats, k: Floats, times: Floats, blocks: WeightedBlocks) -> float:
        """Return the weight of rejected rows; -1 where a decision needs SciPy."""
        whole = float(n.sum())
        if not whole > 0:
            return -1.0
        used = np.flatnonzero(n > 0)
        starts = used[pava_bc(n[used], k[used], *_limits(blocks, whole))]
        w2, k2 = (self._per_entry(times * weight * self.weight) for weight in (self.weight, self.of_event))
        refused = np.zeros(n.size, dtype=bool)
        for begin, end in zip(starts, [*starts[1:], n.size], strict=True):
            inside = slice(begin, end)
            sums = [column[inside].sum() for column in (n, k, w2, k2)]
            decided = _decide(sums, self.score[inside], n[inside] > 0, blocks)
            if decided is None:
                return -1.0
            refused[inside] = decided
        return float(n[refused].sum())


def _at_shares(before: Floats, bins: int) -> Ints:
    """Return the first entry of each bin; it begins after the score at which the weight reaches its share."""
    ranks = (np.arange(1, bins) / bins - _SLACK) * before[-1]
    reached = np.minimum(np.searchsorted(before[1:], ranks) + 1, before.size - 1)
    return np.concatenate([[0], np.where(ranks > 0, reached, 0)])


def _limits(blocks: WeightedBlocks, whole: float) -> tuple[float, float]:
    low = blocks.n_min if blocks.n_min >= 0 else blocks.share_min * whole + blocks.root_min * math.sqrt(whole)
    if blocks.n_max >= 0:
        low = min(low, blocks.n_max)
    high = blocks.n_max if blocks.n_max >= 0 else max(low, blocks.share_max * whole)
    return min(low, whole) * (1 - _SLACK), min(high, whole) * (1 + _SLACK)


def _decide(sums: Sequence[float], p: Floats, used: Bools, blocks: WeightedBlocks) -> Bools | None:
    """Return whether each score is rejected; None where a decision needs a p-value."""
    n, k, w2, k2 = sums
    x = w2 / (n * n)
    if not x <= (blocks.critical.size - 2) * blocks.step:
        return None
    q = 1 - p
    gap = k * q - (n - k) * p
    square = gap * gap
    of_events, of_others = k2 / k if k > 0 else w2 / n, (w2 - k2) / (n - k) if k < n else w2 / n
    robust, implied = k2 * (q * q) + (w2 - k2) * (p * p), n * p * q * (q * of_events + p * of_others)
    limit = _critical_square(blocks, x) * np.maximum(robust, implied)
    border = (p == 0) | (p == 1)
    if (~(np.abs(square - limit) > _CLOSE * limit) & used & ~border).any():
        return None
    certain = np.where(p == 0, k != 0, k != n)
    return np.where(border, certain, square >= limit) & used


def _critical_square(blocks: WeightedBlocks, x: float) -> float:
    """Return the value at x of the cubic through the four nearest nodes."""
    y, scaled = blocks.critical, x / blocks.step
    node = min(max(int(scaled), 1), y.size - 3)
    t = scaled - node
    u, v, w = t + 1, t - 1, t - 2
    outer = (y[node + 2] * (u * t * v) - y[node - 1] * (t * v * w)) / 6
    return float(outer + (y[node] * (u * v * w) - y[node + 1] * (u * t * w)) / 2)
