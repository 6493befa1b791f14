"""`decision_curve`: net benefit of decisions at many thresholds, of one or several models and after recalibration."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._support.errors import Argument, InputError, Note
from calibrant._support.frame_output import frame_from_columns
from calibrant._support.json_values import columns
from calibrant._support.option_checks import check_sequence, check_share, is_number
from calibrant._support.typing import Column, Floats
from calibrant.evaluation.decisions import as_models, cost_threshold
from calibrant.inference.resampling import PairedRows, check_clusters
from calibrant.tables.table_functions import row_options

__all__ = ["DecisionCurve", "NetBenefit", "decision_curve"]

TREAT_ALL, TREAT_NONE = "treat all", "treat none"


@dataclass(frozen=True, eq=False)
class NetBenefit:
    """Net benefit of one strategy at each threshold, with its confidence interval, and its gain over another one.

    Attributes
    ----------
    name : str
    value, low, high : ndarray
        Net benefit per row.
    gain, gain_low, gain_high : ndarray
        Net benefit less that of `reference`, on the same rows.
    reference : str
        The first model; for a recalibrated model the model itself; for the first model the better of treating all and
        none at each threshold.

    See Also
    --------
    DecisionCurve, decision_curve
    """

    name: str
    value: Floats
    low: Floats
    high: Floats
    gain: Floats
    gain_low: Floats
    gain_high: Floats
    reference: str


@dataclass(frozen=True, eq=False, repr=False)
class DecisionCurve:
    """Net benefit of each strategy at each threshold; see `decision_curve`.

    Attributes
    ----------
    thresholds : ndarray
    models : tuple of NetBenefit
        The models in their order, each followed by its recalibrated version if a calibrator is given.
    treat_all : NetBenefit
        Acting on every row; treating none has net benefit 0.
    prevalence : float
    level : float
    n_rows : float
    notes : tuple of Note

    See Also
    --------
    decision_curve, NetBenefit
    """

    thresholds: Floats
    models: tuple[NetBenefit, ...]
    treat_all: NetBenefit
    prevalence: float
    level: float
    n_rows: float
    notes: tuple[Note, ...] = ()

    def __getitem__(self, name: str) -> NetBenefit:
        """Return the strategy of this name."""
        found = {each.name: each for each in (*self.models, self.treat_all)}
        if name not in found:
            raise InputError(f"name must be one of {', '.join(found)}; got {name!r}.", argument="name", value=name)
        return found[name]

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return one row per strategy and threshold."""
        return frame_from_columns(
            {name: [cell for part in self._parts() for cell in part[name]] for name in self._parts()[0]}, backend
        )

    def _parts(self) -> list[dict[str, list[Any]]]:
        names = ("value", "low", "high", "gain", "gain_low", "gain_high")
        found = []
        for each in (*self.models, self.treat_all):
            part: dict[str, list[Any]] = {"strategy": [each.name] * self.thresholds.size}
            part |= {"threshold": self.thresholds.tolist()}
            part |= {name: getattr(each, name).tolist() for name in names}
            found.append(part | {"reference": [each.reference] * self.thresholds.size})
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return all values as plain data for JSON."""
        names = ("value", "low", "high", "gain", "gain_low", "gain_high")
        strategies = [
            {"name": each.name, "reference": each.reference} | columns({name: getattr(each, name) for name in names})
            for each in (*self.models, self.treat_all)
        ]
        return {
            "schema_version": 1,
            "result": "decision_curve",
            "thresholds": self.thresholds.tolist(),
            "strategies": strategies,
            "prevalence": self.prevalence,
            "level": self.level,
            "n_rows": self.n_rows,
            "notes": [note.to_dict() for note in self.notes],
        }

    def plot(self, **options: Any) -> Any:
        """Draw the curves; options as for `calibrant.plots.DecisionCurveDisplay.plot`."""
        from calibrant.plots import DecisionCurveDisplay

        return DecisionCurveDisplay(self).plot(**options)

    def __repr__(self) -> str:
        parts = []
        for each in self.models:
            better = self.thresholds[each.gain_low > 0]
            where = f"{better.min():g} to {better.max():g}" if better.size else "no threshold"
            parts.append(f"  {each.name}: better than {each.reference} at {where} ({100 * self.level:g} % confidence)")
        head = (
            f"Net benefit at {self.thresholds.size} thresholds from {self.thresholds[0]:g} to {self.thresholds[-1]:g}"
        )
        return "\n".join([f"{head}; event rate {100 * self.prevalence:.4g} %", *parts])


@row_options
def decision_curve(
    y_true: Column,
    y_probs: Mapping[str, Column] | Column,
    *,
    thresholds: Sequence[float] | Floats | None = None,
    costs: Iterable[Any] | None = None,
    calibrator: Any = None,
    cluster: Column | None = None,
    confidence_level: float = 0.95,
    random_state: int = 0,
    **rows: Any,
) -> DecisionCurve:
    r"""Net benefit of acting where the score reaches a threshold, at many thresholds (Vickers and Elkin 2006).

    .. math::

       \mathrm{NB}(t) = \frac{\mathrm{TP}(t)}{N} - \frac{\mathrm{FP}(t)}{N} \cdot \frac{t}{1 - t}

    TP and FP are the rows with and without the event whose score is at least t. The odds t / (1 - t) are the cost of a
    false positive in units of the benefit of a true positive, so t is the Bayes threshold of these costs.

    Parameters
    ----------
    y_true : column
    y_probs : column, or mapping of name to column
        Predictions for the same rows.
    thresholds : sequence of float, optional
        Between 0 and 1; by default 0.01 to 0.99.
    costs : iterable of cost objects, optional
        Instead of thresholds: ``LinearCost(over=1, under=4)`` has the threshold over / (over + under) = 0.2. A cost of
        overestimation is that of a false positive, one of underestimation that of a false negative.
    calibrator : calibrator, optional
        Adds to each model its recalibrated version, cross-fitted in five folds, and the gain by recalibration at each
        threshold. Needs scikit-learn.
    cluster : column, optional
        Rows of one cluster may depend on each other.
    confidence_level : float, default=0.95
        Of pointwise intervals.
    random_state : int, default=0
        Of the folds of the calibrator.
    sample_weight, frequency, pos_label, missing
        Options for reading rows; see `ScoreTable.from_arrays`.

    Returns
    -------
    DecisionCurve

    See Also
    --------
    DecisionCurve, DecisionCurveDisplay, decisions

    Notes
    -----
    Net benefit is a mean over rows, and so is the difference of two strategies on the same rows. Its interval is
    normal, with the variance of the mean plus that of one more row of each decision error and success, so that an
    interval has a width where no row reaches the threshold; by clusters Student's, with the variance of the sums of
    clusters. The folds of a calibrator add variance that the interval of the gain does not contain.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(1, 3, 4000)
    >>> y = rng.random(4000) < p
    >>> curve = decision_curve(y, {"model": p, "squared": p**2}, thresholds=[0.1, 0.2, 0.5])
    >>> curve["model"].value.round(3)
    array([0.167, 0.113, 0.035])
    >>> curve["squared"].gain.round(3)
    array([-0.04 , -0.037, -0.018])
    """
    level = check_share("confidence_level", confidence_level)
    at = _read_thresholds(thresholds, costs)
    models = as_models(y_probs)
    paired, tables = PairedRows.read(y_true, models, cluster=cluster, **rows)
    if cluster is not None:
        check_clusters(paired.n_draws)
    scores = {name: paired.scores[i][paired.places[i]] for i, name in enumerate(map(str, models))}
    benefit = _Benefit.from_rows(paired, at, level)
    everything = np.ones(paired.event.size)
    first, found = next(iter(scores)), list[NetBenefit]()
    for name, score in scores.items():
        found.append(benefit.compare(name, score, None if name == first else scores[first], first))
        if calibrator is not None:
            again = _recalibrate(calibrator, score, paired, random_state)
            found.append(benefit.compare(f"{name}, recalibrated", again, score, name))
    notes = tuple(dict.fromkeys(note for table in tables for note in table.notes))
    treat_all = benefit.compare(TREAT_ALL, everything, np.zeros(paired.event.size), TREAT_NONE)
    size = float(tables[0].size)
    return DecisionCurve(at, tuple(found), treat_all, float(tables[0].prevalence), level, size, notes)


@dataclass(frozen=True, eq=False)
class _Benefit:
    """Rows, and the thresholds at which net benefit is computed."""

    event: Floats
    weight: Floats
    counts: bool
    cluster: Any
    thresholds: Floats
    quantile: float

    @classmethod
    def from_rows(cls, rows: PairedRows, thresholds: Floats, level: float) -> "_Benefit":
        from scipy.special import ndtri, stdtrit

        weight = np.ones(rows.event.size) if rows.weight is None else rows.weight.astype(np.float64)
        share = (1 + level) / 2
        quantile = float(ndtri(share) if rows.cluster is None else stdtrit(rows.n_draws - 1, share))
        return cls(rows.event.astype(np.float64), weight, rows.weight is None, rows.cluster, thresholds, quantile)

    def compare(self, name: str, score: Floats, other: Floats | None, reference: str) -> NetBenefit:
        """Return the net benefit of a score, and its gain over another score, or over the better default strategy."""
        value, gain = np.empty((3, self.thresholds.size)), np.empty((3, self.thresholds.size))
        for i, t in enumerate(self.thresholds):
            act = score >= t
            value[:, i] = self._mean(act.astype(np.float64), t)
            if other is None:
                prevalence = np.sum(self.weight * self.event) / self.weight.sum()
                default = np.full(act.size, float(prevalence >= t))
            else:
                default = (other >= t).astype(np.float64)
            gain[:, i] = self._mean(act - default, t)
        shown = "the better of treating all and none" if other is None else reference
        return NetBenefit(name, value[0], value[1], value[2], gain[0], gain[1], gain[2], shown)

    def _mean(self, acts: Floats, t: float) -> tuple[float, float, float]:
        """Return mean and limits of the benefit of acting more often by `acts`: 1, 0 or -1 in each row."""
        total = float(self.weight.sum())
        benefit = acts * (self.event - (1 - self.event) * t / (1 - t))
        mean = float(np.sum(self.weight * benefit)) / total
        away = self.weight * (benefit - mean)
        if self.cluster is not None:
            sums = np.bincount(self.cluster, weights=away)
            variance = float(np.sum(sums**2)) * sums.size / (sums.size - 1)
        else:
            variance = float(np.sum(away**2))
        # One more true and one more false positive, of the mean squared weight.
        variance += float(np.mean(self.weight**2)) * (1 + (t / (1 - t)) ** 2)
        reach = self.quantile * variance**0.5 / total
        return mean, mean - reach, mean + reach


def _read_thresholds(thresholds: Any, costs: Iterable[Any] | None) -> Floats:
    if thresholds is not None and costs is not None:
        raise InputError(
            "thresholds and costs must not be given together; got both.", hint="Pass one of them.", argument="costs"
        )
    if costs is not None:
        found = np.array([cost_threshold(cost) for cost in check_sequence("costs", costs)])
    else:
        given = np.arange(1, 100) / 100 if thresholds is None else thresholds
        values = [given] if is_number(given) else check_sequence("thresholds", given)
        bad = next((value for value in values if not (is_number(value) and 0 < value < 1)), None)
        if bad is not None or not values:
            raise InputError(f"thresholds must lie between 0 and 1; got {bad!r}.", argument="thresholds", value=bad)
        found = np.array(values, dtype=np.float64)
    return np.unique(found)


def _recalibrate(calibrator: Any, score: Floats, rows: PairedRows, random_state: int) -> Floats:
    from calibrant.calibrators.cross_fitting import cross_fit

    if not (hasattr(calibrator, "fit") and hasattr(calibrator, "get_params")):
        raise InputError(Argument("calibrator") + f" must be a calibrator, such as cb.Beta(); got {calibrator!r}.")
    weight = None if rows.weight is None else rows.weight.astype(np.float64)
    return cross_fit(calibrator, score, rows.event, sample_weight=weight, random_state=random_state)
