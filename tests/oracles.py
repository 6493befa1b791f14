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


def draw(words, size):
    """How often each row is drawn: halves of words, low half first, scaled to the rows in whole numbers."""
    halves = [half for word in words.tolist() for half in (word % 2**32, word // 2**32)][:size]
    times = np.zeros(size, dtype=np.int64)
    for half in halves:
        times[half * size // 2**32] += 1
    return times
