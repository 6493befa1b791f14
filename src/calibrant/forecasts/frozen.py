"""`Frozen`: the frozen distributions of `scipy.stats` as forecasts."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._support.errors import InputError
from calibrant._support.typing import Floats
from calibrant.forecasts.distributions import as_levels
from calibrant.forecasts.protocol import Forecast

__all__ = ["Frozen", "is_frozen"]

_MOST_STEPS = 100_000


@dataclass(frozen=True, eq=False)
class Frozen(Forecast):
    """A frozen distribution of `scipy.stats` whose parameters are arrays with one value per row, or one for all rows.

    Continuous and discrete distributions. CRPS is computed by quadrature of quantiles (relative error about 1e-10 for
    smooth densities), for discrete distributions by summation.

    Parameters
    ----------
    distribution : frozen distribution of scipy.stats
        The distribution.
    rows : ndarray of int, optional
        Rows to use.

    See Also
    --------
    Gaussian, Quantiles, Samples, Forecast

    Examples
    --------
    >>> from scipy import stats
    >>> forecast = Frozen(stats.gamma([2.0, 3.0], scale=2.0))
    >>> len(forecast), forecast.point()
    (2, array([4., 6.]))
    """

    distribution: Any
    rows: int | None = None

    def __post_init__(self) -> None:
        if not is_frozen(self.distribution):
            raise InputError(
                f"distribution must be a frozen distribution of scipy.stats, such as stats.gamma(shape); got "
                f"{self.distribution!r}.",
                argument="distribution",
            )
        shape = np.shape(self.distribution.median())
        if len(shape) > 1 or (shape and shape != (1,) and self.rows not in (None, *shape)):
            raise InputError(
                f"distribution must have parameters with one value per row{f' of {self.rows}' if self.rows else ''}; "
                f"got shape {shape}.",
                argument="distribution",
            )
        bad = ~np.isfinite(np.atleast_1d(self.distribution.median()))
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(
                f"distribution must exist in each row; the median of row {row} is not finite.",
                hint="Check its parameters; scales must be positive.",
                argument="distribution",
                row=row,
            )
        if self.is_discrete and (np.asarray(self.distribution.median()) % 1 != 0).any():
            raise InputError("A discrete distribution must not be shifted by a fraction.", argument="distribution")
        object.__setattr__(self, "rows", shape[0] if shape and shape != (1,) else (self.rows or 1))

    def __len__(self) -> int:
        assert self.rows is not None
        return self.rows

    @property
    def is_discrete(self) -> bool:
        """Whether the distribution is discrete."""
        return hasattr(self.distribution, "pmf")

    def _full(self, values: Any) -> Floats:
        return np.broadcast_to(np.asarray(values, dtype=np.float64), (len(self),))

    def cells(self, y: Floats) -> tuple[Floats, Floats]:
        high = self._full(self.distribution.cdf(y))
        if not self.is_discrete:
            return high, high
        return self._full(self.distribution.cdf(np.ceil(y) - 1)), high

    def normal_score(self, y: Floats) -> Floats:
        """Return the standard normal value at the same level, precise in both tails.

        Parameters
        ----------
        y : array of n numbers
            Outcomes.

        Returns
        -------
        array of shape (n,)
        """
        from scipy.special import ndtri

        low, high = self.distribution.cdf(y), self.distribution.sf(y)
        return self._full(np.where(low <= 0.5, ndtri(low), -ndtri(high)))

    def at_score(self, z: Floats) -> Floats:
        """Return the quantiles at the levels of standard normal values, precise in both tails.

        Parameters
        ----------
        z : array of k numbers
            Standard normal values.

        Returns
        -------
        array of shape (n, k)
        """
        from scipy.special import ndtr

        d = self.distribution
        found: Floats = np.column_stack([self._full(d.ppf(ndtr(v)) if v <= 0 else d.isf(ndtr(-v))) for v in z])
        return found

    def at_row_score(self, z: Floats) -> Floats:
        from scipy.special import ndtr

        d = self.distribution
        return self._full(np.where(z <= 0, d.ppf(ndtr(z)), d.isf(ndtr(-z))))

    def quantile(self, level: Any) -> Floats:
        levels, single = as_levels(level)
        found: Floats = np.column_stack([self._full(self.distribution.ppf(each)) for each in levels])
        return found[:, 0] if single else found

    @property
    def point_is_mean(self) -> bool:
        """Whether all rows have a mean; otherwise `point` returns medians."""
        return bool(np.isfinite(self.distribution.mean()).all())

    def point(self) -> Floats:
        return np.array(self._full(self.distribution.mean() if self.point_is_mean else self.distribution.median()))

    def log_density(self, y: Floats) -> Floats:
        d = self.distribution
        return self._full(d.logpmf(y) if self.is_discrete else d.logpdf(y))

    def crps(self, y: Floats) -> Floats:
        return self._crps_by_sums(y) if self.is_discrete else self._crps_by_quadrature(y)

    def _crps_by_quadrature(self, y: Floats) -> Floats:
        """Integrate twice the pinball loss over levels, split at F(y), so that both parts are smooth."""
        d = self.distribution
        below, above = self._full(d.cdf(y)), self._full(d.sf(y))
        total, end = np.zeros(len(self)), np.zeros(len(self))
        for step, (place, rest, weight) in enumerate(zip(*tanh_sinh(), strict=True)):
            # Levels below F(y) are below * place, those above it above * place from the other end. Each quantile is
            # computed from the nearer end.
            low, low_rest = below * place, above + below * rest
            high, high_rest = above * place, below + above * rest
            under = y - np.where(low <= 0.5, d.ppf(low), d.isf(low_rest))
            over = np.where(high <= 0.5, d.isf(high), d.ppf(high_rest)) - y
            under = 2 * weight * below**2 * place * np.where((below > 0) & np.isfinite(under), under, 0.0)
            over = 2 * weight * above**2 * place * np.where((above > 0) & np.isfinite(over), over, 0.0)
            total += under + over
            end = under + over if step == 0 else end
        # If the outermost piece is not negligible, the integral diverges: tails as heavy as those of Levy.
        return np.where(end > 1e-3 * total, np.inf, total)

    def _crps_by_sums(self, y: Floats) -> Floats:
        """Integrate (F(x) - 1{x >= y})^2, which is constant between whole numbers."""
        d = self.distribution
        first, last = self._ends()
        inside = np.clip(y, first, last)
        steps = float((last - first).max())
        total = np.abs(y - inside)
        for step in range(int(steps)):
            x = first + step
            share = self._full(d.cdf(x))
            # The outcome may lie between x and x + 1: the integrand differs left and right of it.
            left = np.clip(inside - x, 0.0, 1.0)
            total += np.where(x < last, left * share**2 + (1 - left) * (1 - share) ** 2, 0.0)
        return total

    def _ends(self) -> tuple[Floats, Floats]:
        """Return whole numbers beyond which the probability is negligible, found by doubling steps."""
        middle, d = self._full(self.distribution.median()), self.distribution
        ends = []
        for side, left in ((-1, d.cdf), (1, d.sf)):
            reach = 1
            while (self._full(left(middle + side * reach)) > 1e-13).any():
                reach *= 2
                if reach > _MOST_STEPS:
                    raise InputError(
                        f"CRPS of discrete distributions must need at most {_MOST_STEPS:,} terms; got more.",
                        hint="Use Samples or Quantiles.",
                        argument="forecast",
                    )
            ends.append(middle + side * reach)
        return ends[0], ends[1]

    def part(self, rows: Any) -> "Frozen":
        d = self.distribution
        size = np.arange(len(self))[rows].size

        def some(value: Any) -> Any:
            return np.broadcast_to(value, (len(self),))[rows] if np.ndim(value) else value

        kept = d.dist(*map(some, d.args), **{name: some(value) for name, value in d.kwds.items()})
        return Frozen(kept, size)


def is_frozen(value: Any) -> bool:
    """Return whether a value is a frozen distribution of `scipy.stats`."""
    return all(hasattr(value, name) for name in ("dist", "args", "kwds", "cdf", "ppf", "median"))


def tanh_sinh() -> tuple[Floats, Floats, Floats]:
    """Return nodes, 1 - nodes, and weights of double-exponential quadrature over (0, 1), for singular ends."""
    t = np.arange(-32, 33) / 10
    inner = 0.5 * math.pi * np.sinh(t)
    places = 1 / (1 + np.exp(-2 * inner))
    weights = 0.1 * 0.25 * math.pi * np.cosh(t) / np.cosh(inner) ** 2
    return places, 1 / (1 + np.exp(2 * inner)), weights
