"""Comparison of class probabilities."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant._support import columns as _columns
from calibrant._support.arrays import Bools, Floats, Ints
from calibrant._support.errors import InputError
from calibrant._support.lazy import cached_property
from calibrant._support.logistic import expit
from calibrant.inference.paired import half_events
from calibrant.inference.squared_deviations import CellErrors, SampledRows, SquaredDeviation, cell_deviation
from calibrant.inference.time_blocks import Errors
from calibrant.kinds.differences import Deviations, ModelForecasts, RowLosses, column_name, scores_by_name
from calibrant.kinds.multiclass.design import ClassRows
from calibrant.kinds.multiclass.sample import errors
from calibrant.kinds.multiclass.verdict import NAME
from calibrant.metrics.log_odds import LogOddsBins, logits
from calibrant.metrics.multiclass import MulticlassBrier, MulticlassLogLoss
from calibrant.results.comparison import ComparisonTerms
from calibrant.tables.class_table import ClassProbabilities, ClassTable, used_rows
from calibrant.tables.rows import Rows

TERMS = ComparisonTerms(
    decides=NAME,
    quantity="class-wise log-odds error",
    tests=("class-wise log-odds errors", "class-wise squared gaps"),
    objection="squared gaps of the top label",
    unit="log-odds",
    scores=("Brier",),
    best="lower",
    ability="discriminates better",
)


@dataclass(frozen=True, eq=False)
class ProbabilityModels(ModelForecasts[Any]):
    """Class probabilities of several models; the columns of all are in the order of the first."""

    scores = scores_by_name(MulticlassBrier(), MulticlassLogLoss())

    @cached_property
    def _read(self) -> dict[str, ClassProbabilities]:
        return {name: ClassProbabilities.read(each, column_name(name)) for name, each in self.models.items()}

    @cached_property
    def labels(self) -> tuple[Any, ...]:
        """The classes, in the order of the columns of the first model."""
        return tuple(next(iter(self._read.values())).class_names(self.classes))

    def columns(self, y_true: Any) -> dict[str, Any]:
        """Return the probabilities of each model."""
        return {column_name(name): self._ordered(name, each) for name, each in self._read.items()}

    def _ordered(self, name: str, read: ClassProbabilities) -> ClassProbabilities:
        own = read.class_names(self.classes)
        if tuple(own) == self.labels:
            return read
        if set(own) != set(self.labels):
            raise InputError(
                f"forecasts must have the same classes; got {list(self.labels)} for {next(iter(self.models))!r} and "
                f"{own} for {name!r}.",
                argument="forecasts",
            )
        return replace(read, matrix=read.matrix[:, [own.index(label) for label in self.labels]])

    def check(self, rows: Rows) -> Rows:
        """Validate rows; return those that are used."""
        used = used_rows(rows)
        _columns.codes(used.y, list(self.labels))
        return used

    def errors(self, rows: Rows) -> list[Errors]:
        """Return the errors of each model."""
        return errors(rows, self.labels)

    def measure(self, rows: Rows, sampled: SampledRows) -> RowLosses:
        """Return class-wise and top-label deviations, and Brier score and log loss."""
        code = _columns.codes(rows.y, list(self.labels))
        tables = [ClassTable(self.labels, each.matrix, code) for each in rows.forecasts]
        given = (sampled.weight, sampled.weight is not None, sampled.cluster)
        deviations = [class_deviations(ClassRows(table.proba, code, *given), sampled) for table in tables]
        return self.with_scores(deviations, tables)


MODELS = ProbabilityModels


def class_deviations(classes: ClassRows, rows: SampledRows) -> Deviations:
    """Return the squared deviations of class probabilities: two class-wise ones, and that of the top label.

    Each class has its own bins of equal information of its probabilities. The first deviation has the log-odds errors
    of all bins, weighted by information; bins with little information count less. The second has gaps of
    probabilities, weighted by rows. The objection has gaps of the highest probability: it hardly changes if a few
    classes are miscalibrated, so it cannot be required to differ.
    """
    log_odds, gaps = event_deviations(classes, rows, ((classes.code == c, p) for c, p in classes.columns()))
    best = np.argmax(classes.proba, axis=1)
    right, top = classes.code == best, classes.proba[np.arange(best.size), best].astype(np.float64)
    top_label = cell_deviation([_gaps(right, top, *_bins(classes, right, top))], rows)
    return Deviations(log_odds, (gaps,), (top_label,), _information(classes))


def event_deviations(
    classes: ClassRows, rows: SampledRows, events: Iterable[tuple[Bools, Floats]]
) -> tuple[SquaredDeviation, SquaredDeviation]:
    """Return the squared log-odds errors and the squared gaps of events with their probabilities, over all bins."""
    binned = [(event, p, *_bins(classes, event, p)) for event, p in events]
    least = float(np.average(rows.counts, weights=rows.counts))  # the weight of one row
    log_odds = cell_deviation((_log_odds_errors(*each) for each in binned), rows, least=least)
    return log_odds, cell_deviation((_gaps(*each) for each in binned), rows)


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
