"""Kinds of bins: each cuts a table into bins of the prediction.

A `ScoreTable` gives a `Partition`, a `MeanTable` a `MeanPartition`. No kind of bins splits equal predictions, so the
order of rows does not matter.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias, TypeVar

import numpy as np

from calibrant import _kernels
from calibrant._support.arrays import Floats, Ints, Weights, in_pieces
from calibrant._support.errors import InputError, check_option, is_number, wrong_value
from calibrant._support.lazy import LazyNames
from calibrant.tables.score_table import Partition, ScoreTable, bernoulli_variance

if TYPE_CHECKING:
    from calibrant.tables.mean_table import MeanPartition, MeanTable

__all__ = ["PAVA", "PAVABC", "Bins", "Edges", "EqualInformation", "EqualSize", "EqualWidth"]

if not TYPE_CHECKING:  # with it, type checkers would accept any name of this module
    __getattr__ = LazyNames("calibrant.bins", {}, has_old_names=True)

Bins: TypeAlias = Callable[[ScoreTable], Partition]
MeanBins: TypeAlias = Callable[["MeanTable"], "MeanPartition"]
AnyBins = TypeVar("AnyBins", bound=Callable[..., Any])
Cut_co = TypeVar("Cut_co", covariant=True)


class Binnable(Protocol[Cut_co]):
    """A table, of probabilities or of point predictions: the part that kinds of bins need."""

    @property
    def size(self) -> float: ...
    @property
    def importance(self) -> bool: ...
    @property
    def span(self) -> tuple[float, float]: ...
    @property
    def extremes(self) -> tuple[float, float]: ...
    def at_ranks(self, ranks: Weights) -> Floats: ...
    def outcome_sums(self) -> tuple[Floats, Weights, Weights]: ...
    def cut_after(self, last: Floats, *, edges: Floats | None = None) -> Cut_co: ...


# Sums of real weights are rounded. Limits and cuts give way by this share of the total, so that neither the order of
# rows nor the scale of weights decides on which side of a limit a sum falls.
_SLACK = 1e-9

_NO_INFORMATION = 1e-120  # the square of less underflows
_LEAST_SHARE = 0.1  # of the information per bin; a bin with less joins a neighbour

_MOST_GRADES = 20  # distinct predictions that have a bin each

_DEFAULT_BINS = 10
_MOST_BINS = 10**7  # their edges take 80 MB


@dataclass(frozen=True)
class EqualWidth:
    r"""Bins of equal width over [0, 1]; for point predictions, from the lowest to the highest prediction.

    Edge b is the double nearest to b / B. With ``closed="left"`` bin b is [b/B, (b+1)/B), the last one closed,
    so 0.3 lies in the bin that starts at 0.3; with ``closed="right"`` it is (b/B, (b+1)/B], and 0 lies in the first.

    Parameters
    ----------
    n_bins : int, default=10
        Number of bins.
    closed : {"left", "right"}, default="left"
        The end of a bin that belongs to it.

    See Also
    --------
    EqualSize, Edges, PAVA, PAVABC

    Examples
    --------
    >>> table = ScoreTable.from_arrays([0, 1, 1], [0.1, 0.3, 1.0])
    >>> EqualWidth(10)(table).lower
    array([0.1, 0.3, 0.9])
    >>> EqualWidth(10, closed="right")(table).lower
    array([0. , 0.2, 0.9])
    """

    n_bins: int = 10
    closed: Literal["left", "right"] = "left"
    fixed: ClassVar[bool] = True  # the bins depend on the scores only, not on the number of rows that have them

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_bins", _n_bins(self.n_bins))
        check_option("closed", self.closed, ("left", "right"))

    def __call__(self, table: Binnable[Cut_co]) -> Cut_co:
        """Return the bins of a table.

        Parameters
        ----------
        table : ScoreTable or MeanTable
            Table to divide; equal predictions share a bin.

        Returns
        -------
        Partition or MeanPartition
        """
        low, high = table.span
        # b / B, not linspace: linspace(0, 1, 11)[3] > 0.3, so 0.3 would miss its bin.
        edges = low + (high - low) * np.arange(self.n_bins + 1) / self.n_bins
        edges[-1] = high
        last = np.nextafter(edges[1:-1], -np.inf) if self.closed == "left" else edges[1:-1]
        return table.cut_after(last, edges=edges)

    def row_edges(self) -> Floats:
        """Return the edges of bins of probabilities that are closed on the left, from -inf to inf.

        Returns
        -------
        array
            One more than bins.
        """
        edges: Floats = np.arange(self.n_bins + 1) / self.n_bins
        if self.closed == "right":
            edges = np.nextafter(edges, 2)
        edges[0], edges[-1] = -np.inf, np.inf
        return edges


@dataclass(frozen=True)
class EqualSize:
    """Bins of equal size, as far as ties allow.

    With N rows, bin b begins at rank floor(b N / B), in integers; equal predictions go whole to the bin that
    holds the first of them, so a bin may be larger, and others empty. Importance weights cut at b N / B.

    Parameters
    ----------
    n_bins : int, default=10
        Number of bins.

    See Also
    --------
    EqualWidth, EqualInformation, PAVABC

    Examples
    --------
    >>> table = ScoreTable.from_arrays([0, 0, 1, 1, 1], [0.1, 0.2, 0.2, 0.2, 0.9])
    >>> EqualSize(2)(table).n
    array([4, 1])
    """

    n_bins: int = 10

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_bins", _n_bins(self.n_bins))

    def __call__(self, table: Binnable[Cut_co]) -> Cut_co:
        """Return the bins of a table.

        Parameters
        ----------
        table : ScoreTable or MeanTable
            Table to divide; equal predictions share a bin.

        Returns
        -------
        Partition or MeanPartition
        """
        size, count = table.size, self.n_bins
        if table.importance:
            ranks = np.array([(b / count - _SLACK) * size for b in range(1, count)])
        else:
            ranks = np.array([b * int(size) // count for b in range(1, count)], dtype=np.int64)
        # The bin before rank r ends with the prediction of the r-th row, and so with all rows that tie with it.
        return table.cut_after(table.at_ranks(ranks))


_NEAR_END, _CROWDED = 0.1, 0.8


@dataclass(frozen=True)
class EqualInformation:
    """Bins of equal information: each holds the same share of the sum of p (1 - p), as far as ties allow.

    With rare events, deciles of rows do not work, because nearly all events have the highest scores. Here the expected
    number of events (or, for scores near 1, of other rows) is about the same in each bin. The bin of a score is that of
    the midpoint of its own information, so equal scores are never split. A bin with less than a tenth of its share,
    such as one with scores 0 and 1 only, joins a neighbour.

    Parameters
    ----------
    n_bins : int, optional
        By default it follows from the information I of the table, the sum of p (1 - p): 10 up to I = 1,000 and
        10 (I / 1,000)^0.4 beyond, but at most I / 5. Importance weights count as I^2 / variance.

    See Also
    --------
    EqualSize, LogOddsError

    Examples
    --------
    >>> table = ScoreTable.from_counts([0.001, 0.01, 0.1, 0.5], [1000, 1000, 100, 40], [1, 10, 10, 20])
    >>> EqualInformation(3)(table).n
    array([2000,  100,   40])
    """

    n_bins: int | None = None

    def __post_init__(self) -> None:
        if self.n_bins is not None:
            object.__setattr__(self, "n_bins", _n_bins(self.n_bins))

    def __call__(self, table: ScoreTable) -> Partition:
        """Return the bins of a table.

        Parameters
        ----------
        table : ScoreTable
            Table to divide; equal scores share a bin.

        Returns
        -------
        Partition
        """
        if not isinstance(table, ScoreTable):
            raise InputError(
                f"EqualInformation needs a table of probabilities; got a {type(table).__name__}.",
                hint="Use EqualSize, EqualWidth, Edges, PAVA or PAVABC.",
                argument="bins",
                value=self,
            )
        share = bernoulli_variance(table.n, table.score)
        total = float(share.sum())
        if total < _NO_INFORMATION:
            return Partition.from_cuts(table, [])
        effective = total
        if table.w2 is not None:
            effective = total**2 / float(np.sum(table.w2 * table.score * (1 - table.score)))
        count = self.n_bins or information_bins(effective)

        def labels(up_to: Floats, share: Floats) -> Floats:
            middle = (up_to - share / 2) / total
            return np.minimum(np.floor(middle * count + _SLACK), count - 1)

        label = in_pieces(labels, np.cumsum(share), share)
        start = np.flatnonzero(np.concatenate([[True], label[1:] != label[:-1]]))
        return Partition.from_cuts(table, _merged(start, np.add.reduceat(share, start), _LEAST_SHARE * total / count))


def _merged(start: Ints, sums: Floats, least: float) -> Ints:
    """Return the starts of all bins but the first.

    A bin with a sum below `least` joins the bin below, the first one the bin above.
    """
    kept, inside = [], 0.0
    for begin, amount in zip(start[::-1].tolist(), sums[::-1].tolist(), strict=True):  # from the last bin down
        inside += amount
        if inside >= least:
            kept.append(begin)
            inside = 0.0
    if inside > 0 or (kept and kept[-1] > 0):  # the rest below joins the first bin
        kept = kept[:-1]
    return np.array([begin for begin in kept[::-1] if begin > 0], dtype=np.int64)


def information_bins(information: float) -> int:
    """Return the number of bins for this information."""
    usual = 10.0 if information <= 1_000 else 10 * (information / 1_000) ** 0.4
    return max(1, int(min(usual, information / 5)))


@dataclass(frozen=True)
class Edges:
    """Bins with given edges, strictly rising: [e_b, e_b+1), the last one closed.

    A prediction outside all of them is an error, not a bin of its own.

    Parameters
    ----------
    edges : sequence of float
        Strictly rising; each score must lie between the first and the last one.

    See Also
    --------
    EqualWidth, EqualSize

    Examples
    --------
    >>> table = ScoreTable.from_arrays([0, 1, 1], [0.05, 0.1, 0.7])
    >>> Edges([0, 0.1, 0.5, 1])(table).lower
    array([0. , 0.1, 0.5])
    """

    edges: Sequence[float]
    fixed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        edges = tuple(float(edge) for edge in self.edges)
        rising = all(a < b for a, b in pairwise(edges)) and all(map(math.isfinite, edges))
        if len(edges) < 2 or not rising:
            raise InputError(
                f"edges must be at least two finite numbers that rise strictly; got {list(edges)}.", value=edges
            )
        object.__setattr__(self, "edges", edges)

    def __call__(self, table: Binnable[Cut_co]) -> Cut_co:
        """Return the bins of a table.

        Parameters
        ----------
        table : ScoreTable or MeanTable
            Table to divide; equal predictions share a bin.

        Returns
        -------
        Partition or MeanPartition
        """
        edges = np.asarray(self.edges)
        low, high = table.extremes
        if low < edges[0] or high > edges[-1]:
            value, which = (low, "lowest") if low < edges[0] else (high, "highest")
            raise InputError(
                f"Every prediction must lie within the edges, {edges[0]:.6g} to {edges[-1]:.6g}; got {value:.6g} "
                f"(the {which}).",
                hint="Widen the edges.",
                argument="edges",
                value=value,
            )
        return table.cut_after(np.nextafter(edges[1:-1], -np.inf), edges=edges)


@dataclass(frozen=True)
class PAVA:
    """Bins of the pool-adjacent-violators algorithm: one bin per level of the isotonic fit of the outcomes.

    Among all bins with non-falling rates they have the least total variance (equation (8) and Proposition 1 of
    Matsubara et al. 2023; true with ties because equal scores are pooled first). Neighbours with equal rates are one.

    See Also
    --------
    PAVABC, Isotonic

    Examples
    --------
    >>> table = ScoreTable.from_arrays([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.9])
    >>> PAVA()(table).rate
    array([0. , 0.5, 1. ])
    """

    def __call__(self, table: Binnable[Cut_co]) -> Cut_co:
        """Return the bins of a table.

        Parameters
        ----------
        table : ScoreTable or MeanTable
            Table to divide; equal predictions share a bin.

        Returns
        -------
        Partition or MeanPartition
        """
        return _pava_bc(table, type(table.size)(0), table.size)


@dataclass(frozen=True)
class PAVABC:
    r"""PAVA with block constraints: bins of PAVA-BC, Algorithms 2 and 3 of [1]_, the default of TCE.

    Going up through the distinct scores, a block with fewer than `n_min` rows takes the next score whatever its
    outcome; otherwise two neighbours merge if together they hold at most `n_max` rows and the rate of the first is
    at least that of the second, compared in integers. The tail, the shortest run of last scores that holds at least
    `n_min` rows, joins the block before it if that block has fewer than `n_min` rows or both hold at most `n_max`.

    Parameters
    ----------
    n_min, n_max : int, optional
        Size limits, 0 <= n_min <= n_max (real numbers for importance weights). Limits that are not given follow from
        the number of rows N: n_min = N // 20 and n_max = max(n_min, 1, N // 5), the rule of the paper. (The n_min of
        the rule is lowered to a given n_max.)
    sizes : {"paper", "consistent", "grades"}
        The rule for limits that are not given. "consistent" is that of `consistent`. "grades" is the rule of the
        default metrics and diagrams: one bin per prediction where a table has at most 20 distinct predictions, such as
        rating grades, and "consistent" elsewhere.

    See Also
    --------
    PAVA, TCE, OptimalBins

    Notes
    -----
    Sizes lie within the limits only if n_max >= 2 n_min and no ties exist; see ``Partition.n``. In that case these are
    the blocks of Algorithm 2. Bins are the blocks themselves: Algorithm 3 as printed merges neighbours of equal rate
    and so violates n_max. The algorithm goes from left to right, so renaming the event (p to 1 - p) gives other bins.
    With importance weights the limits are N / 20, N / 5 and sqrt(N), unrounded.

    References
    ----------
    .. [1] Matsubara, Tax, Mudd, Guy (2023), "TCE: A Test-Based Approach to Measuring Calibration Error".

    Examples
    --------
    >>> table = ScoreTable.from_arrays([0, 1, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.5, 0.6, 0.9])
    >>> PAVABC(n_min=2, n_max=4)(table).n
    array([4, 2])
    """

    n_min: float | None = None
    n_max: float | None = None
    sizes: Literal["paper", "consistent", "grades"] = "paper"

    def __post_init__(self) -> None:
        low = 0 if self.n_min is None else self.n_min
        high = low if self.n_max is None else self.n_max
        if not (is_number(low) and is_number(high) and 0 <= low <= high < math.inf):
            raise InputError(
                f"n_min and n_max must satisfy 0 <= n_min <= n_max; got {self.n_min!r} and {self.n_max!r}.",
                argument="n_min" if self.n_max is None else "n_max",
                value=(self.n_min, self.n_max),
            )
        check_option("sizes", self.sizes, ("paper", "consistent", "grades"))

    @classmethod
    def consistent(cls) -> "PAVABC":
        """Bins that hold about sqrt(N) rows: n_min = ceil(sqrt(N)), n_max = max(n_min, N // 5).

        With N/20 and N/5 of the paper even a calibrated model is rejected more often as N grows, because each
        prediction is tested against the rate of its whole bin. With these sizes TCE of calibrated models is 3-8 % on
        average from 2,000 to 200,000 rows.

        Returns
        -------
        PAVABC
        """
        return cls(sizes="consistent")

    def for_scores_of(self, table: Any) -> "PAVABC":
        """Return bins whose limits depend on the number of rows alone; with sizes other than "grades", these bins.

        Parameters
        ----------
        table : ScoreTable or MeanTable
            Table whose distinct predictions are counted.

        Returns
        -------
        PAVABC
        """
        if self.sizes != "grades":
            return self
        if self.n_min is None and self.n_max is None and table.outcome_sums()[0].size <= _MOST_GRADES:
            return PAVABC(0, 0)  # no two blocks merge
        return replace(self, sizes="consistent")

    def limits(self, table: Any) -> tuple[float, float]:
        """Return the n_min and n_max for this table.

        Parameters
        ----------
        table : ScoreTable or MeanTable
            Table to divide.

        Returns
        -------
        tuple of two numbers
            Numbers of rows for counts, sums of weights for importance weights.
        """
        if self.sizes == "grades":
            return self.for_scores_of(table).limits(table)
        low, high = self._rule(table)
        if self.n_min is not None:
            low = self.n_min
        elif self.n_max is not None:
            low = min(low, self.n_max)
        high = self.n_max if self.n_max is not None else max(low, high)
        if table.importance:
            return low, high
        if low != int(low) or high != int(high):
            raise InputError(
                f"n_min and n_max must be whole numbers where rows are counted; got {low} and {high}.",
                argument="n_min",
                value=(low, high),
            )
        return int(low), int(high)

    def _rule(self, table: Any) -> tuple[float, float]:
        size = table.size
        if table.importance:
            return (math.sqrt(size) if self.sizes == "consistent" else size / 20), size / 5
        if self.sizes == "consistent":
            return math.isqrt(int(size) - 1) + 1 if size else 0, max(1, size // 5)
        return size // 20, max(1, size // 5)

    def __call__(self, table: Binnable[Cut_co]) -> Cut_co:
        """Return the bins of a table.

        Parameters
        ----------
        table : ScoreTable or MeanTable
            Table to divide; equal predictions share a bin.

        Returns
        -------
        Partition or MeanPartition
        """
        return _pava_bc(table, *self.limits(table))


# Bins of TCE among the default metrics and in diagrams: with those of the paper, calibrated models are rejected more
# and more often as the number of rows grows, and grades that sit on their rates are merged and rejected.
PANEL_BINS = PAVABC(sizes="grades")


def _pava_bc(table: Binnable[Cut_co], n_min: float, n_max: float) -> Cut_co:
    low, high = min(n_min, table.size), min(n_max, table.size)  # a limit beyond all rows is one at all rows
    if table.importance:
        low, high = low * (1 - _SLACK), high * (1 + _SLACK)
    prediction, n, outcome = table.outcome_sums()
    start = _kernels.pava_bc(n, outcome, low, high)
    if isinstance(table, ScoreTable):  # its entries are the rows of the algorithm: they need not be searched again
        cut: Any = Partition.from_cuts(table, start[1:])
        found: Cut_co = cut
        return found
    return table.cut_after(prediction[start[1:] - 1])


def _n_bins(n_bins: int) -> int:
    try:
        whole = int(n_bins)
        if whole == n_bins and 1 <= whole <= _MOST_BINS and not isinstance(n_bins, bool):
            return whole
    except (TypeError, ValueError, OverflowError):
        pass
    raise wrong_value("n_bins", f"must be a whole number of at least 1, and at most {_MOST_BINS:,}", n_bins)


def choose_bins(kind: Callable[[int], AnyBins], n_bins: int | None, bins: AnyBins | None) -> AnyBins:
    """Return the given bins, or `n_bins` (by default 10) bins of this kind."""
    if bins is None:
        return kind(_DEFAULT_BINS if n_bins is None else n_bins)
    if n_bins is not None:
        raise InputError(
            f"n_bins must not be given together with bins; got n_bins={n_bins!r} and bins={bins!r}.",
            hint="Leave out one of them.",
        )
    return check_bins(bins, hint="For a number of bins use n_bins.")


def check_bins(bins: AnyBins, *, hint: str = "") -> AnyBins:
    """Return the bins; raise if they are not an object that cuts a table."""
    if not callable(bins) or isinstance(bins, type):
        raise wrong_value("bins", "must be an object such as cb.bins.EqualSize(10)", bins, hint=hint)
    return bins
