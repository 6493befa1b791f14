"""Replicates of a table in NumPy, with the random numbers and the sums of the compiled kernel."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from calibrant._kernels.preconditions import check_counts, check_order, check_plan, check_table, require
from calibrant._kernels.reference import pava_bc, rejected
from calibrant._kernels.replicate_sums import (
    Bytes,
    Order,
    Plan,
    ReplicateSums,
    TableReplicates,
    TestedBlocks,
    poisson_shares,
    unit_poisson_shares,
)
from calibrant._support.typing import Floats, Ints, Weights

__all__ = ["class_draws", "draw", "draws", "poisson_draws", "replicates", "signed_sums", "signs", "total"]

Words = NDArray[np.uint64]

_ROWS, _TIES, _EXTRA, _SIGNS, _STREAMS = 0, 1, 2, 3, 4
_CHUNK = 32  # counters whose words are stored together
_BLOCK = 64  # entries of which sums are kept
_BLOCK_LANES, _LANES = 16, 32  # of sums before blocks, and over all entries
_LOW = np.uint64(2**32 - 1)


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
    found = [_poisson(key, 0, first + i, size, shares) for i in range(count)]
    return np.array(found, dtype=np.uint8).reshape(count, size)


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
    found = np.empty((count, rows), dtype=np.int32)
    for i, row in enumerate(found):
        words = _words(key, _ROWS, first + i, -(-rows // (2 * _CHUNK)))[:rows]
        target = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53 * total
        row[:] = np.minimum((cumulative <= target[:, None]).sum(axis=1), last)
    return found


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
    unit = None if unit is None or unit.size == 0 else unit
    place, block, inside = _parts(start, size)
    padded = np.concatenate([values, np.zeros((-size % _BLOCK, columns))]).reshape(-1, _BLOCK, columns)
    parts = np.where(inside[:, :, None], padded[block], 0.0)
    found = np.zeros((count, start.size, columns))
    for i, sums in enumerate(found):
        sign = _signs(key, first + i, size if unit is None else int(unit.max()) + 1)
        sign = sign[:size] if unit is None else sign[unit]
        sign = np.concatenate([sign, np.ones(-size % _BLOCK)]).reshape(-1, _BLOCK)[block]
        a, b, c, d = np.moveaxis((sign[:, :, None] * parts).reshape(-1, _BLOCK // 4, 4, columns), 2, 0)
        groups = (a + b) + (c + d)
        total = np.zeros((block.size, columns))
        for j in range(_BLOCK // 4):
            total = total + groups[:, j]
        np.add.at(sums, place, total)
    return found


def _parts(start: Ints, size: int) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """Return bin and block of each part of a bin that lies in one block of 64 rows, and which of them it has."""
    begin = np.union1d(start[start < size], np.arange(0, size, _BLOCK))
    end = np.append(begin[1:], size)
    place, block = np.searchsorted(start, begin, side="right") - 1, begin // _BLOCK
    row = block[:, None] * _BLOCK + np.arange(_BLOCK)
    return place, block, (row >= begin[:, None]) & (row < end[:, None])


def signs(key: int, replicate: int, units: int) -> Floats:
    """Return the random sign of each unit of a replicate, as `signed_sums` uses them."""
    require(0 <= units <= 2**32, "at most 2^32 - 1 rows can be drawn one by one")
    return _signs(key, replicate, units)[:units]


def _signs(key: int, replicate: int, units: int) -> Floats:
    """Return a random sign for each unit, and for some more."""
    words = _words(key, _SIGNS, replicate, -(-units // (2 * _CHUNK * 64)))
    bits = np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little")
    return 2 * bits.astype(np.float64) - 1


def _poisson(key: int, attempt: int, replicate: int, size: int, shares: Floats) -> Ints:
    number = _numbers(key, _ROWS + _STREAMS * attempt, replicate, size, 16).astype(np.int64)
    cells = np.unique(np.minimum(np.floor(shares * 65536), 65535).astype(np.int64))
    times = np.searchsorted(cells, number)
    tied = np.flatnonzero(cells[np.minimum(times, cells.size - 1)] == number)
    more = _uniform(key, _TIES + _STREAMS * attempt, replicate, tied)
    times[tied] = np.searchsorted(shares, (number[tied] + more) / 65536, side="right")
    return times


def _mean_gap(n: Ints, k: Ints, score: Floats, absolute: bool) -> Floats:
    """Return the mean gap between mean score and event rate over bins, weighted by rows; NaN without rows."""
    size = np.where(n > 0, n, 1.0)
    gap = np.where(n > 0, score, 0.0) / size - k / size
    total = np.sum(n, axis=-1)
    found: Floats = np.sum((np.abs(gap) if absolute else gap) * n, axis=-1)
    return np.where(total > 0, found, np.nan) / np.where(total > 0, total, 1)


def replicates(
    score: Floats, n: Ints, k: Ints, plan: Plan, *, by_rows: bool = True, in_clusters: bool = False
) -> TableReplicates:
    """Return the replicates of a table; without `by_rows` only those with given counts are measured.

    With `in_clusters` rows of one score may be drawn together.
    """
    return _Replicates(score, n, k, plan, by_rows, in_clusters)


class _Replicates:
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
        total = np.concatenate([[0], np.cumsum(rows, dtype=np.int64)])
        start = self.first_row[:-1]
        n, k = total[start + self.n] - total[start], total[start + self.k] - total[start]
        require(n.max(initial=0) <= self.most_draws, "drawn must not repeat the rows of a score so often")
        return n, k

    def simulate(self, key: int, first: int, count: int) -> ReplicateSums:
        return self._sums((self.n, self.simulated(key, first + i)) for i in range(count))

    def resample(self, key: int, first: int, count: int) -> ReplicateSums:
        self._check_rows()
        return self._of_rows([draw(key, first + i, int(self.first_row[-1])) for i in range(count)])

    def _of_rows(self, times: list[Ints], limits: Ints | None = None) -> ReplicateSums:
        """Return the sums of replicates, given how often each row occurs."""
        sums = self._sums((self._per_entry(each) for each in times), limits)
        # Linear sums add up rows, not scores, as in the compiled kernel.
        event = np.arange(self.first_row[-1]) - np.repeat(self.first_row[:-1], self.n) < np.repeat(self.k, self.n)
        terms = [np.where(event, np.repeat(a + b, self.n), np.repeat(a, self.n)) for a, b in self.plan.linear]
        linear = np.array([[total(each, term) for term in terms] for each in times])
        return sums._replace(linear=linear.reshape(len(times), -1))

    def resample_drawn(self, drawn: Bytes, order: Order | None, limits: Ints | None = None) -> ReplicateSums:
        columns = self._columns(drawn, order)
        limits = None if limits is None or not limits.size else limits
        fits = limits is None or limits.shape == (len(drawn), 2 * len(self.plan.blocks))
        require(fits, "limits must have two columns per partition and one row per replicate")
        return self._of_rows(list(drawn[:, columns].astype(np.int64)), limits)

    def resample_together(
        self, others: "Sequence[_Replicates]", drawn: Bytes, order: Order | None
    ) -> list[ReplicateSums]:
        require(all(map(self._shares_counts, others)), "tables must share the arrays of their counts")
        return [each.resample_drawn(drawn, order) for each in (self, *others)]

    def _shares_counts(self, other: "_Replicates") -> bool:
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

    def _sums(self, replicates: Iterator[tuple[Ints, Ints]], limits: Ints | None = None) -> ReplicateSums:
        found = [self._measure(n, k, None if limits is None else limits[i]) for i, (n, k) in enumerate(replicates)]
        columns = ([row[i] for row in found] for i in range(5))
        n, k, score, linear, refused = (np.array(column).reshape(len(found), -1) for column in columns)
        sizes = [*(starts.size for starts in self.plan.fixed), *self.plan.quantiles]
        ends = np.cumsum(sizes)
        chosen = [(slice(ends[each] - sizes[each], ends[each]), absolute) for each, absolute in self.plan.gaps]
        gaps = [_mean_gap(n[:, bins], k[:, bins], score[:, bins], absolute) for bins, absolute in chosen]
        if not self.plan.keeps_sums:
            n, k, score = (column[:, :0] for column in (n, k, score))
        return ReplicateSums(n, k, score, linear, refused, np.array(gaps).reshape(-1, len(found)).T)

    def _measure(
        self, n: Ints, k: Ints, limits: Ints | None
    ) -> tuple[list[int], list[int], list[float], list[float], list[int]]:
        sum_n, sum_k = (np.concatenate([[0], np.cumsum(column)]) for column in (n, k))
        starts = [*self.plan.fixed, *(self._ranks(sum_n, bins) for bins in self.plan.quantiles)]
        begin = np.concatenate([*starts, np.empty(0, dtype=np.int64)]).astype(np.int64)
        ends = (np.append(each[1:], n.size)[: each.size] for each in starts)
        end = np.concatenate([*ends, np.empty(0)]).astype(np.int64)
        before = _sums_before(n, self.score)
        score = [self._score(before, n, b) - self._score(before, n, a) for a, b in zip(begin, end, strict=True)]
        linear = [total(n, a) + total(k, b) for a, b in self.plan.linear]
        blocks = self.plan.blocks
        if limits is not None:
            pairs = limits.reshape(-1, 2).tolist()
            blocks = [each._replace(n_min=low, n_max=high) for each, (low, high) in zip(blocks, pairs, strict=True)]
        refused = [self._rejected(n, k, each) for each in blocks]
        return (sum_n[end] - sum_n[begin]).tolist(), (sum_k[end] - sum_k[begin]).tolist(), score, linear, refused

    def _ranks(self, sum_n: Ints, bins: int) -> Ints:
        """Return the first entry of each bin; it begins after the score that contains the row of rank b N / B."""
        ranks = np.array([b * int(sum_n[-1]) // bins for b in range(bins)], dtype=np.int64)
        return np.where(ranks > 0, np.searchsorted(sum_n, ranks), 0)

    def _score(self, before: Floats, n: Ints, entry: int) -> float:
        """Return the sum of n * score of the entries before this one: whole blocks first."""
        block = entry // _BLOCK
        inside = slice(block * _BLOCK, entry)
        return float(np.cumsum([*before[block], *(n[inside] * self.score[inside])])[-1])

    def _rejected(self, n: Ints, k: Ints, blocks: TestedBlocks) -> int:
        used = n > 0
        score, n, k = self.score[used], n[used], k[used]
        start = pava_bc(n, k, blocks.n_min, blocks.n_max)
        bin_n, bin_k = (np.add.reduceat(column, start) for column in (n, k))
        return int(rejected(score, n, start, bin_n, bin_k, blocks.alpha).sum())


def _sums_before(count: Ints, x: Floats) -> Floats:
    """Return the sums of count * x before each block of 64 entries and before the end, in 16 lanes."""
    product = np.zeros(-(-count.size // _BLOCK) * _BLOCK)
    product[: count.size] = count * x
    lanes = np.cumsum(product.reshape(-1, _BLOCK_LANES), axis=0)
    each = _BLOCK // _BLOCK_LANES
    return np.concatenate([np.zeros((1, _BLOCK_LANES)), lanes[each - 1 :: each]])


def total(count: Weights, x: Floats) -> float:
    """Return the sum of count * x, added in 32 lanes."""
    if not count.size:
        return 0.0
    product = np.zeros(-(-count.size // _LANES) * _LANES)
    product[: count.size] = count * x
    lanes = np.cumsum(product.reshape(-1, _LANES), axis=0)[-1]
    return float(np.cumsum(lanes)[-1])


def _is_same(a: Ints, b: Ints) -> bool:
    """Return whether two contiguous arrays are the same memory."""
    return a.ctypes.data == b.ctypes.data and a.size == b.size
