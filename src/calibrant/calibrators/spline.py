"""Spline calibration of class probabilities."""

from typing import Any, ClassVar, Literal

import numpy as np

from calibrant._support.arrays import Floats, Ints
from calibrant._support.errors import check_count, check_option
from calibrant._support.logistic import EPS, check_eps
from calibrant.calibrators import maps
from calibrant.calibrators.class_maps import ClassMap, Normalised, TopLabel
from calibrant.calibrators.multiclass import ProbabilityMap
from calibrant.tables.score_table import ScoreTable

__all__ = ["Spline"]

_POINTS = 51  # maximum number of points of the fitted curve


class Spline(ProbabilityMap):
    r"""Spline calibration: a natural cubic spline of the cumulative difference between outcomes and scores.

    Rows are sorted by score s, and u is their share of all rows. With y = 1 if the class of the score occurred, the
    cumulative difference

    .. math::

       D(u) = \frac{1}{N} \sum_{i \le u N} (y_i - s_i)

    is fitted by least squares with a natural cubic spline over `n_knots` equally spaced knots in u, which starts at 0
    as D does. Its derivative estimates how much the event rate at a score exceeds the score, so that a score is mapped
    to :math:`s + D'(u(s))`.

    Parameters
    ----------
    on : {"top_label", "classwise"}, default="top_label"
        The scores that are recalibrated. ``"top_label"``: the highest probability of each row, whose class is right or
        wrong. ``"classwise"``: each class's probability, against the rest; the results are divided by their sum.
    n_knots : int, default=6
        Number of knots, the two ends included; at least 2. With fewer distinct scores, one more than these.
    eps : float, default=2**-24
        Calibrated scores are clipped to [eps, 1 - eps].

    Attributes
    ----------
    map_, classes_, notes_
        As for all multiclass calibrators.

    See Also
    --------
    Isotonic, Beta, SoftmaxTemperature

    Notes
    -----
    ``"top_label"`` returns the calibrated confidence q for the most probable class (the first of equals), and for each
    other class its probability times (1 - q) / (1 - confidence): the others keep their proportions and the row sums to
    1. If the others are all 0 they share 1 - q equally. If q is low enough, another class can become the most
    probable one. Classes without rows are allowed with ``"top_label"``.

    Equal scores count as one point with their weight, so row order has no effect. The curve is stored at up to 51
    scores of equally spaced ranks, with straight lines between them; beyond the scores of the fit the difference
    between calibrated and original score is constant. It need not rise.

    The authors fit the same difference; their spline is free at u = 0. With ``"classwise"`` and classes of low
    probability, estimates below 0 are clipped to `eps`, which costs log loss; prefer ``OneVsRest(Isotonic())`` then.

    References
    ----------
    .. [1] Gupta, Rahimi, Ajanthan, Mensink, Sminchisescu & Hartley (2021), "Calibration of neural networks using
       splines".

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.dirichlet([1, 1, 1], 5000)
    >>> y = (truth.cumsum(axis=1) > rng.random((5000, 1))).argmax(axis=1)
    >>> sharp = truth**2 / (truth**2).sum(axis=1, keepdims=True)
    >>> gap = np.abs(Spline().fit(sharp, y)(sharp).max(axis=1) - truth.max(axis=1)).mean()
    >>> bool(gap < 0.05 < np.abs(sharp.max(axis=1) - truth.max(axis=1)).mean())
    True
    """

    map_kinds: ClassVar[tuple[str, ...]] = ("top_label", "normalised")

    def __init__(
        self, *, on: Literal["top_label", "classwise"] = "top_label", n_knots: int = 6, eps: float = EPS
    ) -> None:
        self.on = on
        self.n_knots = n_knots
        self.eps = eps

    def accepts_map(self, map_: Any) -> bool:
        each = [map_.confidence] if map_.kind == "top_label" else map_.per_class
        inside = all(one.kind == "segments" and one.y.min() >= self.eps and one.y.max() <= 1 - self.eps for one in each)
        on = "top_label" if map_.kind == "top_label" else "classwise"
        return bool(super().accepts_map(map_) and inside and on == self.on)

    def _fit_rows(self, matrix: Floats, code: Ints, weight: Floats) -> ClassMap:
        check_option("on", self.on, ("top_label", "classwise"))
        check_count("n_knots", self.n_knots - 1)
        check_eps(self.eps)
        if self.on == "top_label":
            top = matrix.argmax(axis=1)
            return TopLabel(self._segments(matrix[np.arange(top.size), top], code == top, weight))
        columns = range(matrix.shape[1])
        return Normalised([self._segments(matrix[:, j], code == j, weight) for j in columns])

    def _segments(self, score: Floats, event: Any, weight: Floats) -> maps.Map:
        """Return the map of one column of scores."""
        table = ScoreTable.from_arrays(event, score, sample_weight=weight)
        n, k = np.asarray(table.n, dtype=np.float64), np.asarray(table.k, dtype=np.float64)
        share = np.cumsum(n) / n.sum()
        excess = slope_of_cumulative(share, np.cumsum(k - n * table.score) / n.sum(), n, self.n_knots)
        middle = share - n / n.sum() / 2
        places = np.unique(np.searchsorted(middle, np.linspace(0, 1, _POINTS)).clip(0, middle.size - 1))
        places = np.unique(np.append(places, [0, middle.size - 1]))
        x, shift = table.score[places], excess(middle[places])
        ends = [end for end in (0.0, 1.0) if end not in x]
        order = np.argsort(np.append(x, ends))
        x = np.append(x, ends)[order]
        shift = np.append(shift, [shift[0 if end == 0 else -1] for end in ends])[order]
        return maps.Segments(x, np.clip(x + shift, self.eps, 1 - self.eps))


def slope_of_cumulative(share: Floats, cumulative: Floats, weight: Floats, n_knots: int) -> Any:
    """Return the derivative of the natural cubic spline that fits the cumulative values best and is 0 at 0."""
    from scipy.interpolate import CubicSpline

    knots = np.linspace(0, 1, min(n_knots, share.size + 1))
    # One spline for each knot, with value 1 there and 0 at the others; that of the first knot is left out.
    basis = CubicSpline(knots, np.eye(knots.size)[:, 1:], bc_type="natural")
    root = np.sqrt(weight / weight.sum())
    heights, *_ = np.linalg.lstsq(basis(share) * root[:, None], cumulative * root, rcond=None)
    return CubicSpline(knots, np.append(0.0, heights), bc_type="natural").derivative()
