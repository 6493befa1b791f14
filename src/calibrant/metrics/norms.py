"""Norms: from the losses of the bins to one number, ``norm(values, sizes)``, with sizes the rows of each bin.

A norm declares, as attributes:

``takes_absolute`` : bool, default False
    It takes absolute values first.
``interval_method`` : str, optional
    Method for losses that declare none (see `calibrant.losses`).
``takes_rows`` : bool, default False
    It also takes arrays with one row per replicate, in which bins may have size 0, and returns one number for each.
``is_mean`` : bool, default False
    Of values that are not negative it is the mean, weighted by size.
``keeps_sign`` : bool, default False
    If it is a mean, it is one also of negative values.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from calibrant._support.arrays import Floats, Weights
from calibrant._support.errors import wrong_value
from calibrant.metrics.metric import declare

__all__ = ["Lp", "Norm", "sup", "weighted_l1", "weighted_l2", "weighted_mean"]

Norm: TypeAlias = Callable[[Floats, Weights], float]


@declare(takes_rows=True, is_mean=True, keeps_sign=True)
def weighted_mean(values: Floats, sizes: Weights) -> float:
    """Mean, weighted by bin size. It keeps the sign, so it is not a norm in the strict sense.

    Parameters
    ----------
    values : ndarray
        Losses of the bins.
    sizes : ndarray
        Number of rows, or sum of weights, of each bin.

    Returns
    -------
    float

    See Also
    --------
    weighted_l1

    Examples
    --------
    >>> import numpy as np
    >>> round(weighted_mean(np.array([0.3, -0.4]), np.array([1, 3])), 4)
    -0.225
    """
    return _plain(np.sum(values * sizes, axis=-1) / np.sum(sizes, axis=-1))


@declare(takes_absolute=True, takes_rows=True, is_mean=True)
def weighted_l1(values: Floats, sizes: Weights) -> float:
    """Mean of absolute values, weighted by bin size: the norm of ECE and TCE.

    Parameters
    ----------
    values : ndarray
        Losses of the bins.
    sizes : ndarray
        Number of rows, or sum of weights, of each bin.

    Returns
    -------
    float

    See Also
    --------
    weighted_l2, weighted_mean, sup, Lp

    Examples
    --------
    >>> import numpy as np
    >>> round(weighted_l1(np.array([0.3, -0.4]), np.array([1, 3])), 4)
    0.375
    """
    return weighted_mean(np.abs(values), sizes)


@declare(takes_absolute=True, interval_method="triangle", takes_rows=True)
def weighted_l2(values: Floats, sizes: Weights) -> float:
    """Root mean square, weighted by bin size.

    Parameters
    ----------
    values : ndarray
        Losses of the bins.
    sizes : ndarray
        Number of rows, or sum of weights, of each bin.

    Returns
    -------
    float

    See Also
    --------
    weighted_l1, Lp

    Examples
    --------
    >>> import numpy as np
    >>> round(weighted_l2(np.array([0.3, -0.4]), np.array([1, 3])), 4)
    0.3775
    """
    return _plain(np.sqrt(weighted_mean(np.square(values), sizes)))


@declare(takes_absolute=True, interval_method="triangle", takes_rows=True)
def sup(values: Floats, sizes: Weights) -> float:
    """Largest absolute value of the bins with rows.

    Parameters
    ----------
    values : ndarray
        Losses of the bins.
    sizes : ndarray
        Number of rows, or sum of weights, of each bin.

    Returns
    -------
    float

    See Also
    --------
    weighted_l1, MCE

    Examples
    --------
    >>> import numpy as np
    >>> round(sup(np.array([0.3, -0.4]), np.array([1, 3])), 4)
    0.4
    """
    return _plain(np.max(np.abs(np.where(sizes > 0, values, 0.0)), axis=-1))


def _plain(found: Any) -> float:
    """Return one number as a Python float; numbers of several replicates stay an array."""
    return float(found) if np.ndim(found) == 0 else found


@dataclass(frozen=True)
class Lp:
    r"""Weighted p-norm, :math:`(\sum_b (N_b / N) |v_b|^p)^{1/p}`.

    Parameters
    ----------
    p : float
        Order of the norm, at least 1.

    See Also
    --------
    weighted_l1, weighted_l2, sup

    Examples
    --------
    >>> round(Lp(2)(np.array([0.3, -0.4]), np.array([1, 1])), 4)
    0.3536
    """

    p: float
    takes_absolute: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 1 <= self.p < math.inf:
            raise wrong_value("p", "must be a finite number of at least 1", self.p, hint="Use sup for infinity.")

    def __call__(self, values: Floats, sizes: Weights) -> float:
        """Return the norm of the losses of bins.

        Parameters
        ----------
        values : array
            One loss per bin.
        sizes : array
            Number of rows, or sum of weights, of each bin.

        Returns
        -------
        float
        """
        largest = sup(values, sizes)
        if largest == 0:
            return 0.0
        # scaled by the largest, so that high powers neither overflow nor underflow
        return float(largest * weighted_mean((np.abs(values) / largest) ** self.p, sizes) ** (1 / self.p))
