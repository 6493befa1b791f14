"""Slow, literal, row-by-row transcriptions of the papers. They share no code with the package.

Written for predictions without ties, where the papers say one thing; rows are sorted by prediction first.
"""

from fractions import Fraction

import numpy as np
from scipy.stats import binomtest


def pava_bc_blocks(y, n_min, n_max):
    """Sizes and sums of the blocks of Algorithm 2, over labels sorted by prediction."""
    total = len(y)
    Y, W = [], []
    for i in range(total - n_min):
        Y.append(Fraction(int(y[i])))
        W.append(1)
        while len(W) > 1:
            if W[-2] + W[-1] > n_min:
                if W[-2] + W[-1] > n_max:
                    break
                if Y[-2] / W[-2] < Y[-1] / W[-1]:
                    break
            Y[-2] += Y[-1]
            W[-2] += W[-1]
            Y.pop()
            W.pop()
    if n_min > 0:
        tail = sum(int(v) for v in y[total - n_min :])
        if W and W[-1] + n_min <= n_max:
            Y[-1] += tail
            W[-1] += n_min
        else:
            Y.append(Fraction(tail))
            W.append(n_min)
    return W, [int(v) for v in Y]


def pooled_pava_bc_blocks(p, y, n_min, n_max):
    """DESIGN's reading of Algorithm 2 with ties: distinct values enter with their counts."""
    values = sorted(set(p))
    groups = [(sum(1 for q in p if q == v), sum(int(t) for q, t in zip(p, y, strict=True) if q == v)) for v in values]
    tail, held = [], 0
    while groups and held < n_min:
        tail.insert(0, groups.pop())
        held = sum(n for n, _ in tail)
    blocks = []
    for group in groups:
        blocks.append(group)
        while len(blocks) > 1:
            (n0, k0), (n1, k1) = blocks[-2:]
            if not (n0 < n_min or (n0 + n1 <= n_max and Fraction(k0, n0) >= Fraction(k1, n1))):
                break
            blocks[-2:] = [(n0 + n1, k0 + k1)]
    if tail:
        last = (held, sum(k for _, k in tail))
        if blocks and (blocks[-1][0] < n_min or blocks[-1][0] + held <= n_max):
            last = (blocks[-1][0] + last[0], blocks.pop()[1] + last[1])
        blocks.append(last)
    return [n for n, _ in blocks], [k for _, k in blocks]


def members_by_size(p, y, sizes):
    order = np.argsort(p, kind="stable")
    p, y = np.asarray(p, dtype=float)[order], np.asarray(y)[order]
    stops = np.cumsum(sizes)
    return [(p[b - n : b], y[b - n : b]) for n, b in zip(sizes, stops, strict=True)]


def members_by_width(p, y, n_bins, closed="left"):
    bins = []
    for b in range(n_bins):
        low, high = b / n_bins, (b + 1) / n_bins
        if closed == "left":
            inside = [low <= q < high or (b == n_bins - 1 and q == 1) for q in p]
        else:
            inside = [low < q <= high or (b == 0 and q == 0) for q in p]
        if any(inside):
            bins.append((np.asarray(p)[inside], np.asarray(y)[inside]))
    return bins


def rejections(members, alpha=0.05):
    """Algorithm 1: one exact test for every prediction."""
    count = 0
    for p, y in members:
        for q in p:
            count += binomtest(int(sum(y)), len(y), float(q)).pvalue <= alpha
    return count


def gaps(members):
    return [(len(p), abs(sum(y) / len(y) - sum(p) / len(p))) for p, y in members]


def ece(members):
    total = sum(n for n, _ in gaps(members))
    return sum(n * gap for n, gap in gaps(members)) / total


def mce(members):
    return max(gap for _, gap in gaps(members))


def rmsce(members):
    total = sum(n for n, _ in gaps(members))
    return (sum(n * gap**2 for n, gap in gaps(members)) / total) ** 0.5


# resampling


def philox(key, stream, replicate, counter):
    """The four words of Philox4x32-10 (Salmon et al. 2011), in Python's integers."""
    x, k = [counter, stream, replicate, 0], [key % 2**32, key // 2**32]
    for _ in range(10):
        a, b = x[0] * 0xD2511F53, x[2] * 0xCD9E8D57
        x = [(b >> 32) ^ x[1] ^ k[0], b % 2**32, (a >> 32) ^ x[3] ^ k[1], a % 2**32]
        k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
    return x


def random_numbers(key, stream, replicate, count, bits):
    """Numbers of 16 or 32 bits: of 32 counters the first two words each, then the other two; low bits first."""
    found, chunk = [], 0
    while len(found) < count:
        words = [philox(key, stream, replicate, 32 * chunk + i) for i in range(32)]
        for half in (0, 2):
            for x in words:
                found += [x[half + i] >> shift & (2**bits - 1) for i in (0, 1) for shift in range(0, 32, bits)]
        chunk += 1
    return found[:count]


def uniform(key, stream, replicate, row):
    x = philox(key, stream, replicate, row)
    return ((x[1] << 32 | x[0]) >> 11) * 2.0**-53


def draw(key, replicate, size):
    """How often each of few rows is drawn: numbers of 32 bits scaled to the rows."""
    times = np.zeros(size, dtype=np.int64)
    for number in random_numbers(key, 2, replicate, size, 32):
        times[number * size // 2**32] += 1
    return times


def simulated_events(key, replicate, scores):
    """Whether each row is an event: a number of 16 bits, and 53 more bits, below its score."""
    numbers = random_numbers(key, 0, replicate, len(scores), 16)
    return [
        (u + uniform(key, 1, replicate, i)) / 65536 < p for i, (u, p) in enumerate(zip(numbers, scores, strict=True))
    ]


def equal_size_bins(p, n_bins):
    """The bin of each row: bin b begins at rank floor(b N / B), ties stay with their first."""
    order = np.argsort(p, kind="stable")
    starts = {b * len(p) // n_bins for b in range(n_bins)}
    labels, current = np.empty(len(p), dtype=int), -1
    pending = False
    for rank, row in enumerate(order):
        pending |= rank in starts
        if pending and (rank == 0 or p[row] != p[order[rank - 1]]):
            current, pending = current + 1, False
        labels[row] = current
    return labels
