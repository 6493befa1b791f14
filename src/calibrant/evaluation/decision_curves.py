"""`decision_curve`: net benefit of decisions at many thresholds, of one or several models and after recalibration."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from calibrant._support.arrays import Column, Floats, runs_text
from calibrant._support.errors import Argument, InputError, Note, check_sequence, check_share, is_number
from calibrant._support.lazy import warn_moved
from calibrant._support.logistic import EPS, expit, logit
from calibrant._support.plain_data import columns, frame_from_columns
from calibrant.evaluation.decisions import as_models, cost_threshold
from calibrant.evaluation.net_benefit import BenefitRows, NetBenefit
from calibrant.inference.paired_rows import PairedRows, check_clusters
from calibrant.tables.rows import RowOptions
from calibrant.tables.score_table import ScoreTable, read_score_table

TREAT_ALL, TREAT_NONE = "treat all", "treat none"
_COLUMNS = ("value", "low", "high", "gain", "gain_low", "gain_high")


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
    event_rate : float
    level : float
    n_rows : float
    notes : tuple of Note

    See Also
    --------
    decision_curve, NetBenefit

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import decision_curve
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(1, 3, 4000)
    >>> curve = decision_curve(rng.random(4000) < p, p, thresholds=[0.1, 0.2])
    >>> curve.thresholds, [model.name for model in curve.models], curve.treat_all.value.round(3)
    (array([0.1, 0.2]), ['model'], array([0.153, 0.048]))
    """

    thresholds: Floats
    models: tuple[NetBenefit, ...]
    treat_all: NetBenefit
    event_rate: float
    level: float
    n_rows: float
    notes: tuple[Note, ...] = ()

    @property
    def prevalence(self) -> float:
        """The event rate, under its old name."""
        warn_moved("DecisionCurve.prevalence", "DecisionCurve.event_rate")
        return self.event_rate

    def __getitem__(self, name: str) -> NetBenefit:
        """Return the strategy of this name."""
        found = {each.name: each for each in (*self.models, self.treat_all)} | {each.name: each for each in self.models}
        if name not in found:
            raise InputError(f"name must be one of {', '.join(found)}; got {name!r}.", argument="name", value=name)
        return found[name]

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return one row per strategy and threshold.

        Parameters
        ----------
        backend : str, default="pandas"
            Library of the frame, one that Narwhals supports: pandas, polars, pyarrow.

        Returns
        -------
        frame
            A frame of `backend`.
        """
        strategies, count = (*self.models, self.treat_all), self.thresholds.size
        columns = {"strategy": [each.name for each in strategies for _ in range(count)]}
        columns |= {"threshold": self.thresholds.tolist() * len(strategies)}
        columns |= {name: [v for each in strategies for v in getattr(each, name).tolist()] for name in _COLUMNS}
        columns |= {"reference": [each.reference for each in strategies for _ in range(count)]}
        return frame_from_columns(columns, backend)

    def to_dict(self) -> dict[str, Any]:
        """Return all values as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        strategies = [
            {"name": each.name, "reference": each.reference} | columns({name: getattr(each, name) for name in _COLUMNS})
            for each in (*self.models, self.treat_all)
        ]
        return {
            "schema_version": 2,
            "result": "decision_curve",
            "thresholds": self.thresholds.tolist(),
            "strategies": strategies,
            "event_rate": self.event_rate,
            "level": self.level,
            "n_rows": self.n_rows,
            "notes": [note.to_dict() for note in self.notes],
        }

    def better_at(self, model: NetBenefit) -> str:
        """Return where the pointwise interval of a model's gain lies above 0, in words.

        Each interval holds by itself: of two equally good models, one is better at some of many thresholds by chance.

        Parameters
        ----------
        model : NetBenefit

        Returns
        -------
        str
        """
        better, count = model.gain_low > 0, self.thresholds.size
        if not better.any():
            return "no threshold"
        where = f"{int(better.sum())} of {count} thresholds" if count > 1 else "the threshold"
        level = f"{100 * self.level:g} % confidence at each by itself"
        return f"{where} ({runs_text(self.thresholds, better)}; {level})"

    def plot(self, **options: Any) -> Any:
        """Draw the curves.

        Parameters
        ----------
        **options
            Those of `calibrant.plots.DecisionCurveDisplay.plot`.

        Returns
        -------
        DecisionCurveDisplay
            The display, drawn.
        """
        from calibrant.plots import DecisionCurveDisplay

        return DecisionCurveDisplay(self).plot(**options)

    def __repr__(self) -> str:
        parts = [f"  {each.name}: better than {each.reference} at {self.better_at(each)}" for each in self.models]
        count, ends = self.thresholds.size, dict.fromkeys(f"{end:g}" for end in self.thresholds[[0, -1]])
        where = f"1 threshold, {next(iter(ends))}" if count == 1 else f"{count} thresholds from {' to '.join(ends)}"
        head = f"Net benefit at {where}"
        return "\n".join([f"{head}; event rate {100 * self.event_rate:.4g} %", *parts])


def decision_curve(
    y_true: Column | ScoreTable | Mapping[Any, ScoreTable],
    y_probs: Mapping[str, Column] | Column | None = None,
    *,
    thresholds: Sequence[float] | Floats | None = None,
    costs: Iterable[Any] | None = None,
    calibrator: Any = None,
    cluster: Column | None = None,
    confidence_level: float = 0.95,
    random_state: int = 0,
    **rows: Unpack[RowOptions],
) -> DecisionCurve:
    r"""Net benefit of acting where the score reaches a threshold, at many thresholds (Vickers and Elkin 2006).

    .. math::

       \mathrm{NB}(t) = \frac{\mathrm{TP}(t)}{N} - \frac{\mathrm{FP}(t)}{N} \cdot \frac{t}{1 - t}

    TP and FP are the rows with and without the event whose score is at least t. The odds t / (1 - t) are the cost of a
    false positive in units of the benefit of a true positive, so t is the Bayes threshold of these costs.

    Parameters
    ----------
    y_true : column, or tables
        Outcomes; or instead of both arguments one `ScoreTable`, or a mapping of name to `ScoreTable` of the same rows,
        such as `Tables` without groups.
    y_probs : column, or mapping of name to column
        Predictions for the same rows.
    thresholds : sequence of float, optional
        Between 0 and 1. By default 0.01 to 0.99; where at least 80 % of the predictions of each model lie within 0.1 of
        an end, 99 thresholds at equal distances in log-odds, which reach from a tenth of the odds of the event (at most
        0.01) to ten times these odds (at least 0.99).
    costs : iterable of cost objects, optional
        Instead of thresholds: ``LinearCost(over=1, under=4)`` has the threshold over / (over + under) = 0.2. A cost of
        overestimation is that of a false positive, one of underestimation that of a false negative.
    calibrator : calibrator, optional
        Adds to each model its recalibrated version, cross-fitted in five folds of rows or clusters, and the gain by
        recalibration at each threshold. Needs rows, and scikit-learn.
    cluster : column, optional
        Rows of one cluster may depend on each other. Needs rows.
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

    Tables do not tell which rows two models share, so the gain of each model of tables is that over the better of
    treating all and none. Pass rows to compare models.

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
    given = _read_thresholds(thresholds, costs)
    if isinstance(y_true, ScoreTable | Mapping):
        return _from_tables(_named_tables(y_true, y_probs, cluster, calibrator, rows), given, level)
    models = as_models(y_probs)
    paired, tables = PairedRows.read(y_true, models, cluster=cluster, **rows)
    if cluster is not None:
        check_clusters(paired.n_draws)
    at = _usual_thresholds(tables) if given is None else given
    scores = {name: paired.scores[i][paired.places[i]] for i, name in enumerate(map(str, models))}
    benefit = BenefitRows.from_rows(paired, at, level)
    first, found = next(iter(scores)), list[NetBenefit]()
    for name, score in scores.items():
        found.append(benefit.compare(name, score, None if name == first else scores[first], first))
        if calibrator is not None:
            again = _recalibrate(calibrator, score, paired, random_state)
            found.append(benefit.compare(f"{name}, recalibrated", again, score, name))
    return _collect(benefit, found, tables, level)


def _from_tables(tables: dict[str, ScoreTable], given: Floats | None, level: float) -> DecisionCurve:
    at = _usual_thresholds(list(tables.values())) if given is None else given
    found = []
    for name, table in tables.items():
        benefit = BenefitRows.from_table(table, at, level)
        found.append(benefit.compare(name, np.tile(table.score, 2), None, ""))
    return _collect(benefit, found, list(tables.values()), level)


def _collect(benefit: BenefitRows, found: list[NetBenefit], tables: list[ScoreTable], level: float) -> DecisionCurve:
    size = benefit.event.size
    treat_all = benefit.compare(TREAT_ALL, np.ones(size), np.zeros(size), TREAT_NONE)
    notes = tuple(dict.fromkeys(note for table in tables for note in table.notes))
    first = tables[0]
    return DecisionCurve(
        benefit.thresholds, tuple(found), treat_all, float(first.prevalence), level, float(first.size), notes
    )


def _named_tables(tables: Any, y_probs: Any, cluster: Any, calibrator: Any, rows: Any) -> dict[str, ScoreTable]:
    """Return the tables by name; an error unless they can be of the same rows and nothing needs rows."""
    needs = {"y_probs": y_probs, "cluster": cluster, "calibrator": calibrator}
    wrong = next((name for name, value in needs.items() if value is not None), None)
    if wrong is not None:
        raise InputError(
            f"{wrong} must be omitted with tables, which do not contain the rows; got both.",
            hint="Pass outcomes and predictions as columns.",
            argument=wrong,
        )
    named = {"model": tables} if isinstance(tables, ScoreTable) else _names(tables)
    found = {name: read_score_table(table, None, rows) for name, table in as_models(named).items()}
    totals = {name: (float(table.size), float(table.positives)) for name, table in found.items()}
    first, (size, events) = next(iter(totals.items()))
    for name, total in totals.items():
        if not np.allclose(total, (size, events), rtol=1e-9):
            raise InputError(
                f"y_true must have tables of the same rows; {first} has {size:,.10g} rows and {events:,.10g} events, "
                f"{name} has {total[0]:,.10g} and {total[1]:,.10g}.",
                hint="Compute one decision curve for each group.",
                argument="y_true",
            )
    return found


def _names(tables: Mapping[Any, Any]) -> dict[str, Any]:
    """Return tables by the name of their model, and of their group where there is one."""
    pairs = [key if isinstance(key, tuple) else (key, None) for key in tables]
    words = [", ".join(map(str, pair)) if pair[1:] != (None,) else str(pair[0]) for pair in pairs]
    return dict(zip(words, tables.values(), strict=True))


def _usual_thresholds(tables: list[ScoreTable]) -> Floats:
    """Return 0.01 to 0.99 or, where scores crowd an end, thresholds at equal distances in log-odds."""
    if not all(table.crowds_end and table.has_both_classes for table in tables):
        return np.arange(1, 100) / 100
    odds, usual = float(logit(np.array([tables[0].prevalence]), EPS)[0]), float(np.log(99))
    ends = min(odds - np.log(10), -usual), max(odds + np.log(10), usual)
    found: Floats = expit(np.linspace(*ends, 99))
    return found


def _read_thresholds(thresholds: Any, costs: Iterable[Any] | None) -> Floats | None:
    if thresholds is not None and costs is not None:
        raise InputError(
            "thresholds and costs must not be given together; got both.", hint="Pass one of them.", argument="costs"
        )
    if thresholds is None and costs is None:
        return None
    if costs is not None:
        argument, values = "costs", [cost_threshold(cost) for cost in check_sequence("costs", costs)]
    else:
        argument = "thresholds"
        values = [thresholds] if is_number(thresholds) else list(check_sequence("thresholds", thresholds))
    bad = [value for value in values if not (is_number(value) and 0 < value < 1)]
    if bad or not values:
        what = "thresholds" if argument == "thresholds" else "The thresholds of costs"
        got = repr(bad[0]) if bad else "none"
        raise InputError(f"{what} must lie strictly between 0 and 1; got {got}.", argument=argument)
    return np.unique(np.array(values, dtype=np.float64))


def _recalibrate(calibrator: Any, score: Floats, rows: PairedRows, random_state: int) -> Floats:
    from calibrant.calibrators.calibrator import cross_fit

    if isinstance(calibrator, type) or not (hasattr(calibrator, "fit") and hasattr(calibrator, "get_params")):
        raise InputError(Argument("calibrator") + f" must be a calibrator, such as cb.Beta(); got {calibrator!r}.")
    weight = None if rows.weight is None else rows.weight.astype(np.float64)
    options: dict[str, Any] = {"sample_weight": weight, "cluster": rows.cluster, "random_state": random_state}
    return cross_fit(calibrator, score, rows.event, **options)
