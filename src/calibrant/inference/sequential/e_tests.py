"""Decisions from several e-values."""

import numpy as np

from calibrant._support.errors import InputError
from calibrant._support.option_checks import check_share
from calibrant._support.typing import Floats

__all__ = ["e_bh", "log_mean_e"]


def e_bh(log_e: Floats, weights: Floats, alpha: float) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which hypotheses the weighted e-BH procedure rejects; the false discovery rate is at most alpha.

    Rejects the largest set of k hypotheses of which each has e * weight >= 1 / (alpha * k). The weights sum to at most
    1 and must be fixed before the e-values are seen. Dependence between e-values does not matter (Wang and Ramdas,
    2022). At a time that depends on the data, each must be the current value of an e-process, not its maximum, given
    the past of all streams. If any is rejected, the weighted mean of the e-values is at least 1 / alpha: so the
    probability of ever rejecting anything while all hypotheses are true is at most alpha, too.

    Parameters
    ----------
    log_e : ndarray
        Natural logarithms of the e-values.
    weights : ndarray
        Weight of each hypothesis; their sum is at most 1.
    alpha : float
        Bound of the false discovery rate.

    Returns
    -------
    ndarray of bool
        Whether each hypothesis is rejected.

    See Also
    --------
    log_mean_e, benjamini_hochberg

    Examples
    --------
    >>> e_bh(np.log([100.0, 50.0, 1.0]), np.full(3, 1 / 3), 0.05)
    array([ True,  True, False])
    """
    check_share("alpha", alpha)
    log_e, weights = np.asarray(log_e, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    if log_e.ndim != 1 or np.isnan(log_e).any():
        raise InputError("log_e must be a one-dimensional array without NaN.", argument="log_e", value=log_e)
    if weights.shape != log_e.shape or not (weights > 0).all() or weights.sum() > 1 + 1e-9:
        raise InputError(
            f"weights must be positive, as many as e-values, and sum to at most 1; got a sum of {weights.sum():.6g}.",
            argument="weights",
            value=weights,
        )
    evidence = log_e + np.log(weights)
    ranked = np.sort(evidence)[::-1]
    enough = np.flatnonzero(ranked >= -np.log(alpha * np.arange(1, ranked.size + 1)))
    if enough.size == 0:
        return np.zeros(evidence.size, dtype=np.bool_)
    return np.asarray(evidence >= ranked[enough[-1]])


def log_mean_e(log_e: Floats) -> Floats:
    """Return the logarithm of the mean of e-values along the last axis: an e-value again, for any dependence.

    Parameters
    ----------
    log_e : ndarray
        Natural logarithms of e-values.

    Returns
    -------
    ndarray
        Without the last axis.

    See Also
    --------
    e_bh, EProcess

    Examples
    --------
    >>> import numpy as np
    >>> float(np.exp(log_mean_e(np.log([1.0, 3.0]))).round(6))
    2.0
    """
    log_e = np.asarray(log_e, dtype=np.float64)
    return np.asarray(np.logaddexp.reduce(log_e, axis=-1) - np.log(log_e.shape[-1]))
