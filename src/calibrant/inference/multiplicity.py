"""Adjustment of p-values for multiple tests."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from calibrant._support.arrays import Floats
from calibrant._support.errors import InputError
from calibrant.results.verdict import OmnibusTest, TestResult

if TYPE_CHECKING:
    from calibrant.results.comparison import Difference


def holm(pvalues: object) -> Floats:
    """Return Holm's adjusted p-values, which control the family-wise error rate.

    If hypotheses with adjusted p-values of at most alpha are rejected, the probability of any false rejection is at
    most alpha, under any dependence between the tests.

    Parameters
    ----------
    pvalues : array_like
        One p-value per hypothesis.

    Returns
    -------
    ndarray
        Adjusted p-values, in the order of `pvalues`.

    See Also
    --------
    benjamini_hochberg

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = _check_pvalues(pvalues)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(p.size)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1)), 1.0)
    return adjusted


def benjamini_hochberg(pvalues: object) -> Floats:
    """Return Benjamini and Hochberg's adjusted p-values, which control the false discovery rate.

    If hypotheses with adjusted p-values of at most alpha are rejected, the expected share of false rejections is at
    most alpha, for independent tests (such as those of different rows) and for positively dependent ones.

    Parameters
    ----------
    pvalues : array_like
        One p-value per hypothesis.

    Returns
    -------
    ndarray
        Adjusted p-values, in the order of `pvalues`.

    See Also
    --------
    holm, e_bh

    Examples
    --------
    >>> benjamini_hochberg([0.01, 0.04, 0.03])
    array([0.03, 0.04, 0.04])
    """
    p = _check_pvalues(pvalues)
    order = np.argsort(p)[::-1]
    rank = np.arange(p.size, 0, -1)
    adjusted = np.empty(p.size)
    adjusted[order] = np.minimum(np.minimum.accumulate(p[order] * (p.size / rank)), 1.0)
    return adjusted


def _check_pvalues(pvalues: object) -> Floats:
    p = np.asarray(pvalues, dtype=np.float64)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise InputError(
            f"pvalues must be a sequence of numbers in [0, 1]; got {pvalues!r}.", argument="pvalues", value=pvalues
        )
    return p


def join_tests(
    components: Iterable[TestResult | None], shares: Mapping[str, float] = MappingProxyType({})
) -> OmnibusTest:
    """Return the omnibus test of components, whose p-values are adjusted by Holm; those that are None do not exist.

    A component that the data do not allow has the p-value NaN. It counts too: the others are the ones that may reject
    by chance. `shares` are the shares of the level of some components by name; the others have equal parts of the rest.
    """
    tests = [component for component in components if component is not None]
    raw = np.array([test.pvalue for test in tests], dtype=np.float64)
    weights = _level_weights([test.name for test in tests], shares)
    adjusted = np.where(np.isnan(raw), np.nan, _weighted_holm(np.where(np.isnan(raw), 1.0, raw), weights))
    return OmnibusTest({t.name: replace(t, adjusted_pvalue=float(p)) for t, p in zip(tests, adjusted, strict=True)})


def _level_weights(names: Sequence[str], shares: Mapping[str, float]) -> Floats:
    given = np.array([shares.get(name, np.nan) for name in names])
    others = np.isnan(given)
    if others.all():
        return np.ones(given.size)
    return np.where(others, (1 - np.nansum(given)) / max(others.sum(), 1), given)


def _weighted_holm(pvalues: Floats, weights: Floats) -> Floats:
    """Return p-values adjusted by Holm's (1979) procedure with weights: largest p-value times rest over own weight."""
    order = np.argsort(pvalues / weights, kind="stable")
    rest = np.cumsum(weights[order][::-1])[::-1]
    adjusted = np.empty(pvalues.size)
    adjusted[order] = np.minimum(np.maximum.accumulate(pvalues[order] * (rest / weights[order])), 1.0)
    return adjusted


def adjust_differences(differences: Iterable["Difference"]) -> tuple["Difference", ...]:
    """Return differences with p-values adjusted for the number of tested pairs by Holm, metric by metric.

    An infinite difference has no test, and does not count.
    """
    by_metric: dict[str, list[Difference]] = {}
    for d in differences:
        by_metric.setdefault(d.metric, []).append(d)
    found = []
    for same in by_metric.values():
        adjusted = iter(holm([d.pvalue for d in same if d.test]))
        found += [replace(d, adjusted_pvalue=float(next(adjusted)) if d.test else math.nan) for d in same]
    return tuple(found)
