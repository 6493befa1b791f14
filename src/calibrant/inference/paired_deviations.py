"""Squared deviations of each kind of forecast, whose difference decides a comparison of two models."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant._support.errors import InputError
from calibrant._support.logits import expit
from calibrant._support.typing import Bools, Floats, Ints
from calibrant.inference.multiclass.design import ClassRows
from calibrant.inference.paired import PairedDifference, half_events
from calibrant.inference.regression.distribution_components import merged_levels
from calibrant.inference.regression.point_components import CLUSTERS_PER_BIN, MAX_BINS, ROWS_PER_BIN, bin_sums
from calibrant.inference.squared_deviations import (
    CellErrors,
    SampledRows,
    SquaredDeviation,
    cell_deviation,
    deviation_difference,
    share_deviation,
)
from calibrant.metrics.bins import Quantile
from calibrant.metrics.log_odds import LogOddsBins, logits
from calibrant.tables.mean_table import MeanTable

__all__ = [
    "Deviations",
    "are_too_skewed",
    "bias_deviations",
    "class_deviations",
    "common_levels",
    "coverage_deviations",
    "coverage_hits",
    "deviations_difference",
    "proportion_deviations",
]

_LEVELS = np.arange(1, 20) / 20
_SAME_LEVEL = 1e-6  # levels may be float32


@dataclass(frozen=True, eq=False)
class Deviations:
    """The squared deviations of one model.

    Attributes
    ----------
    first : SquaredDeviation
        The one that decides.
    others : tuple of SquaredDeviation
        Their differences must be significant in the same direction.
    objections : tuple of SquaredDeviation
        Their differences must not be significant in the other direction.
    information : float
        Effective information of probabilities; infinite where it is not required.
    """

    first: SquaredDeviation
    others: tuple[SquaredDeviation, ...] = ()
    objections: tuple[SquaredDeviation, ...] = ()
    information: float = math.inf


def deviations_difference(model: Deviations, baseline: Deviations, rows: SampledRows) -> PairedDifference:
    """Return the difference that decides a comparison; effective rows or clusters count as information."""

    def differences(name: str) -> tuple[PairedDifference, ...]:
        pairs = zip(getattr(model, name), getattr(baseline, name), strict=True)
        return tuple(deviation_difference(a, b, rows) for a, b in pairs)

    found = deviation_difference(model.first, baseline.first, rows)
    information = min(found.information, model.information, baseline.information, rows.effective)
    return replace(found, others=differences("others"), objections=differences("objections"), information=information)


def bias_deviations(tables: Sequence[MeanTable], rows: SampledRows, spread: float) -> list[Deviations]:
    """Return for each model the squared bias by bin of its predictions, in units of `spread`.

    All models have the same number of quantile bins: ten, or fewer so that each has fifty effective rows and five
    clusters.
    """
    most = tables[0].effective_size / ROWS_PER_BIN + 1e-9  # equal weights give the same bins as no weights
    if rows.cluster is not None:
        most = min(most, rows.n_units / CLUSTERS_PER_BIN)
    bins = Quantile(int(np.clip(most, 1, MAX_BINS)))
    return [
        Deviations(cell_deviation([CellErrors((table.prediction - table.mean) / spread, bins(table).labels)], rows))
        for table in tables
    ]


def are_too_skewed(tables: Sequence[MeanTable], rows: SampledRows) -> bool:
    """Return whether the errors of a model are so skewed that even their mean over all rows is hardly known."""
    return any(bin_sums(table, rows.cluster, Quantile(1)).limited for table in tables)


def common_levels(forecasts: Sequence[Any]) -> Floats:
    """Return the levels at which coverage is compared.

    Those that all `Quantiles` have; the ranks of `Samples` of equal size; else 0.05, 0.1, ..., 0.95.
    """
    given: list[Floats] = [
        each.known_levels for each in forecasts if each.known_levels is not None and each.ensemble is None
    ]
    if given:
        found = given[0]
        for other in given[1:]:
            found = found[(np.abs(found[:, None] - other) <= _SAME_LEVEL).any(axis=1)]
        if not found.size:
            raise InputError(
                "forecasts must have at least one common level; got Quantiles with the levels "
                + " and ".join(", ".join(f"{v:g}" for v in levels) for levels in given)
                + ".",
                argument="forecasts",
            )
        return found
    members = {0 if each.ensemble is None else each.ensemble.shape[1] for each in forecasts}
    if 0 in members or len(members) > 1:
        return _LEVELS
    return merged_levels(forecasts[0].known_levels, 10**9)


def coverage_hits(y: Floats, forecast: Any, levels: Floats) -> Floats:
    """Return for each row and level the probability that a randomised PIT value is at most the level.

    It is 0 or 1 where F(y) is known, or where the level is one of the forecast's. Its mean is the level if calibrated.
    """
    low, high = (bound[:, None] for bound in forecast.cells(y))
    width = high - low
    inside = np.clip(np.divide(levels - low, width, out=np.zeros((y.size, levels.size)), where=width > 0), 0.0, 1.0)
    found: Floats = np.where(width > 0, inside, (high <= levels + 1e-12).astype(np.float64))
    return found


def coverage_deviations(y: Floats, forecast: Any, levels: Floats, rows: SampledRows) -> Deviations:
    """Return the mean squared coverage error over levels."""
    return Deviations(share_deviation(coverage_hits(y, forecast, levels), levels, rows))


def proportion_deviations(actual: Ints, predicted: Ints, n_classes: int, rows: SampledRows) -> Deviations:
    """Return the mean over classes of the squared difference between predicted and actual proportion."""
    from scipy.sparse import csr_array

    place, one = np.arange(rows.size), np.ones(rows.size)
    both = (np.concatenate([one, -one]), (np.tile(place, 2), np.concatenate([predicted, actual])))
    found = csr_array(both, shape=(rows.size, n_classes))
    return Deviations(share_deviation(found, np.zeros(n_classes), rows))


def class_deviations(classes: ClassRows, rows: SampledRows) -> Deviations:
    """Return the squared deviations of class probabilities: two class-wise ones, and that of the top label.

    Each class has its own bins of equal information of its probabilities. The first deviation has the log-odds errors
    of all bins, weighted by information; bins with little information count less. The second has gaps of
    probabilities, weighted by rows. The objection has gaps of the highest probability: it hardly changes if a few
    classes are miscalibrated, so it cannot be required to differ.
    """
    best = np.argmax(classes.proba, axis=1)
    right, top = classes.code == best, classes.proba[np.arange(best.size), best].astype(np.float64)
    events = {c: (classes.code == c, p) for c, p in classes.columns()}
    bins = {c: _bins(classes, *each) for c, each in events.items()}
    least = float(np.average(rows.counts, weights=rows.counts))  # the weight of one row
    log_odds = cell_deviation((_log_odds_errors(*events[c], *bins[c]) for c in events), rows, least=least)
    gaps = cell_deviation((_gaps(*events[c], *bins[c]) for c in events), rows)
    top_label = cell_deviation([_gaps(right, top, *_bins(classes, right, top))], rows)
    return Deviations(log_odds, (gaps,), (top_label,), _information(classes))


def _information(classes: ClassRows) -> float:
    """Return half the sum of p (1 - p) over rows and classes, for rows of equal weight with the same variance."""
    own = 1 - classes.sums_of_squares
    weight = classes.counts
    return float(weight @ own) ** 2 / float(2 * weight**2 @ own) if own.any() else 0.0


def _bins(classes: ClassRows, event: Bools, p: Floats) -> tuple[LogOddsBins, Ints]:
    """Return bins of equal information of an event, and the bin of each row."""
    design, place = classes.design(event, p)
    bins = design.coarse_bins
    return bins, bins.labels[place]


def _gaps(event: Bools, p: Floats, bins: LogOddsBins, label: Ints) -> CellErrors:
    return CellErrors(event - p, label)


def _log_odds_errors(event: Bools, p: Floats, bins: LogOddsBins, label: Ints) -> CellErrors:
    """Return the log-odds errors of bins with the effect of each row on them."""
    d, size = bins.error, p * (1 - p)
    curvature = np.maximum(bins.fitted_curvature, 1e-300)
    residual = (event - expit(logits(p) + d[label])) * (bins.information / curvature)[label]
    return CellErrors(residual, label, size, d, half_events(bins) / curvature**2)
