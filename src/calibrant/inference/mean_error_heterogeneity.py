"""Heterogeneity of mean errors between groups, for forecasts of numbers."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from calibrant._support.arrays import Ints, power_of_two
from calibrant._support.errors import Note
from calibrant.inference.heterogeneity import FEWEST_GROUPS, MeanShifts, estimate_heterogeneity, unknown_heterogeneity
from calibrant.results.group_differences import Heterogeneity
from calibrant.tables.mean_table import MeanTable

NAME, TEST = "mean error", "test of the variance between groups"


def mean_error_heterogeneity(groups: Mapping[Any, tuple[MeanTable, Ints | None]], level: float) -> Heterogeneity:
    """Return the heterogeneity of the mean errors of groups, prediction less outcome, from rows or sums of clusters.

    Where no group has two clusters, groups are the clusters, and rows within a group are taken as independent.
    """
    clustered = any(cluster is not None for _, cluster in groups.values())
    several = any(cluster is not None and cluster.max() > 0 for _, cluster in groups.values())
    notes: tuple[Note, ...] = ()
    if clustered:
        text = "Heterogeneity between groups: each group is one cluster, within which rows are taken as independent."
        if several:
            text = (
                "Heterogeneity between groups: the sums of clusters are compared; a cluster with rows in several "
                "groups is taken as independent in each."
            )
        notes = (Note("heterogeneity_clusters", 1, text),)
    unit = max((power_of_two(table.prediction - table.mean) for table, _ in groups.values()), default=1.0)
    total = sum(float(np.sum(table.n * (table.prediction - table.mean))) for table, _ in groups.values())
    mean = total / sum(float(table.n.sum()) for table, _ in groups.values())
    own = [_powers(table, cluster if several else None, mean, unit) for table, cluster in groups.values()]
    sums = np.array(own).T
    if len(own) < FEWEST_GROUPS or not sums[3].any():
        why = "two groups" if len(own) < FEWEST_GROUPS else "errors that vary"
        note = Note("few_groups", len(own), f"Heterogeneity between groups needs {why}.")
        return unknown_heterogeneity(NAME, TEST, level, len(own), (*notes, note), "y")
    scale, scale_squares, *powers = sums
    effects = MeanShifts(powers[0] + scale * mean / unit, scale, np.array(powers), scale_squares)
    found = estimate_heterogeneity(effects, list(groups), name=NAME, test=TEST, level=level, unit="y", notes=notes)
    return found.scaled(unit)


def _powers(table: MeanTable, cluster: Ints | None, mean: float, unit: float) -> tuple[float, ...]:
    """Return the sums of weights and their squares, and of four powers of the errors of rows or clusters around a mean.

    Outcomes that are counted together are as far from their mean as their variance says.
    """
    n, error = table.n.astype(np.float64), (table.prediction - table.mean - mean) / unit
    r, a = n * error, n
    if cluster is not None:
        r, a = (np.bincount(cluster, weights=each).astype(np.float64) for each in (r, a))
    elif not table.importance:
        r, a = error, np.ones(n.size)
    counted = cluster is None and not table.importance
    n = n if counted else np.ones(r.size)
    within = table.m2 / unit**2 if counted else np.zeros(r.size)
    squares = n * r**2 + within
    cubes = n * r**3 + 3 * r * within
    fourths = n * r**4 + 6 * r**2 * within + np.divide(within**2, n)
    return tuple(float(np.sum(each)) for each in (n * a, n * a**2, n * r, squares, cubes, fourths))
