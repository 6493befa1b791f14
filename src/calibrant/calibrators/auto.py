"""`AutoCalibrator`: the calibrator with the best cross-validated score, if any is shown to improve the model."""

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np

from calibrant._support.arrays import Bools, Floats, Ints
from calibrant._support.errors import CalibrantWarning, InputError, check_share
from calibrant._support.formatting import NumberFormat, TableText, format_pvalue, p_text
from calibrant._support.plain_data import frame_from_rows, plain
from calibrant._support.progress import progress_bar
from calibrant._support.random_streams import RandomState, seed_sequence
from calibrant.calibrators import models
from calibrant.calibrators.calibrated_model import calibrator_for
from calibrant.calibrators.calibrator import Calibrator
from calibrant.calibrators.cost_aware import CAPS, CATS
from calibrant.calibrators.multiclass import OneVsRest, ProbabilityMap
from calibrant.calibrators.registry import CALIBRATORS
from calibrant.calibrators.score_map import Identity, ScoreMap
from calibrant.inference.binary_components import in_the_large_test
from calibrant.inference.design import Design
from calibrant.inference.intervals import bootstrap_metric, interval_from_replicates
from calibrant.inference.paired import bootstrap_difference, mean_difference, paired_replicates, stepdown_pvalues
from calibrant.inference.paired_rows import PairedRows, read_rows
from calibrant.inference.resampling import check_resamples
from calibrant.inference.table_sample import TableSample
from calibrant.metrics.calibration_errors import Bias
from calibrant.metrics.metric import Metric, declared
from calibrant.metrics.proper_scores import LogLoss
from calibrant.metrics.registry import MetricLike, as_metric
from calibrant.tables.class_table import ClassTable
from calibrant.tables.score_table import ScoreTable

UNCALIBRATED = "uncalibrated"


@dataclass(frozen=True)
class Candidate:
    """A calibrator in the ranking: its value on rows that it was not fitted on, and its gain over the baseline.

    The gain is tested one-sided. Its p-value is adjusted for the number of calibrators by the bootstrap distribution of
    their largest gain (step-down).

    Attributes
    ----------
    name : str
        Name of the calibrator.
    value, low, high : float
        Value of the metric and its confidence interval.
    gain, gain_low, gain_high : float
        Gain over the baseline and its confidence interval.
    pvalue : float
        Adjusted p-value of the gain; NaN for the baseline.
    bias : float
        Mean calibrated probability less event rate; with several classes that of the class with the lowest p-value.
    bias_pvalue : float
        P-value of "the mean calibrated probability equals the event rate", adjusted for the number of classes.

    See Also
    --------
    Ranking, AutoCalibrator

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(600)
    >>> auto = cb.AutoCalibrator(calibrators=["platt"], n_resamples=199).fit(p, rng.random(600) < p**2)
    >>> best = auto.ranking_.candidates[0]
    >>> best.name, best.gain > 0, best.pvalue
    ('platt', True, 0.005)
    """

    name: str
    value: float
    low: float
    high: float
    gain: float
    gain_low: float
    gain_high: float
    pvalue: float
    bias: float
    bias_pvalue: float


@dataclass(frozen=True, repr=False)
class Ranking:
    """All candidates, the best first.

    Attributes
    ----------
    candidates : tuple of Candidate
        The best first.
    chosen, baseline : str
        Names of the chosen candidate and of the baseline.
    metric, unit : str
        Name and unit of the metric.
    level : float
        Confidence level.
    alpha : float
        Significance level of gains and biases.
    failed : mapping of str to str
        Calibrators that could not be fitted, with the reason.

    See Also
    --------
    Candidate, AutoCalibrator

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(600)
    >>> auto = cb.AutoCalibrator(calibrators=["platt"], n_resamples=199).fit(p, rng.random(600) < p**2)
    >>> auto.ranking_.chosen, auto.ranking_.baseline, auto.ranking_.metric
    ('platt', 'uncalibrated', 'log loss')
    """

    candidates: tuple[Candidate, ...]
    chosen: str
    baseline: str
    metric: str
    unit: str
    level: float
    alpha: float
    failed: Mapping[str, str]

    @classmethod
    def choose(
        cls, candidates: Sequence[Candidate], metric: Metric, *, level: float, alpha: float, failed: Mapping[str, str]
    ) -> "Ranking":
        """Return the ranking of candidates, with the choice by its rule.

        Parameters
        ----------
        candidates : sequence of Candidate
            The first is the baseline.
        metric : Metric
            The metric that decides.
        level : float
            Confidence level of the intervals.
        alpha : float
            Significance level of gains and biases.
        failed : mapping of str to str
            Calibrators that could not be fitted, with the reason.

        Returns
        -------
        Ranking
            The best candidate first.
        """
        sign = 1.0 if getattr(metric, "direction", "lower") == "lower" else -1.0
        baseline = candidates[0]
        pool = [c for c in candidates if baseline.name != UNCALIBRATED or (c.gain > 0 and c.pvalue <= alpha)]
        unbiased = [c for c in pool if not c.bias_pvalue <= alpha]
        ordered = sorted(candidates, key=lambda candidate: sign * candidate.value)
        chosen = min(unbiased or pool or [baseline], key=lambda candidate: sign * candidate.value)
        return cls(tuple(ordered), chosen.name, baseline.name, metric.name, metric.unit, level, alpha, dict(failed))

    @property
    def rule(self) -> str:
        """The rule of the choice, in one sentence."""
        share = f"{100 * self.alpha:g} %"
        if self.baseline != UNCALIBRATED:
            return (
                "the calibrator with the best value is used, and one whose mean differs from the event rate at the "
                f"level of {share} only if all do."
            )
        return (
            f"of the calibrators whose gain is significant at {share}, the one with the best value is used, and one "
            "whose mean differs significantly from the event rate only if all of them do; without a significant gain "
            "the scores are left alone."
        )

    @property
    def verdict(self) -> str:
        """The recommendation: use a calibrator, or leave the model alone."""
        if self.chosen == UNCALIBRATED:
            return f"leave it alone: no calibrator is shown to improve the {self.metric}"
        return f"use {self.chosen}"

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return one row per candidate.

        Parameters
        ----------
        backend : str, default="pandas"
            Library of the frame, one that Narwhals supports: pandas, polars, pyarrow.

        Returns
        -------
        frame
            A frame of `backend`.
        """
        return frame_from_rows([vars(candidate) for candidate in self.candidates], backend)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        return {
            "schema_version": 1,
            "kind": "ranking",
            "verdict": self.verdict,
            **plain(self, skip=("candidates", "failed")),
            "rule": self.rule,
            "candidates": [plain(candidate) for candidate in self.candidates],
            "failed": dict(self.failed),
        }

    def __repr__(self) -> str:
        return self._text().to_text()

    def _repr_html_(self) -> str:
        return self._text().to_html()

    def _text(self) -> TableText:
        level = f"{100 * self.level:g} %"
        header = ["", self.metric, f"{level} interval", f"gain over {self.baseline}", f"{level} interval", "p-value"]
        cells = [[*header, "bias", "p-value of bias"]]
        for c in self.candidates:
            form = NumberFormat.for_spread(self.unit, c.high - c.low, signed=False)
            gain = NumberFormat.for_spread(self.unit, c.gain_high - c.gain_low, signed=True)
            row = [c.name, form.value(c.value), form.range(c.low, c.high)]
            gains = [gain.value(c.gain), gain.range(c.gain_low, c.gain_high), format_pvalue(c.pvalue)]
            row += gains if c.name != self.baseline else ["", "", ""]
            cells.append([*row, f"{c.bias:+.5f}", format_pvalue(c.bias_pvalue)])
        return TableText([f"Verdict: {self.verdict}"], cells, [*self._remarks(), f"Rule: {self.rule}"])

    def _remarks(self) -> Iterator[str]:
        """Yield why calibrators were not fitted, have an infinite loss, or are not used although theirs is lower."""
        for name, why in self.failed.items():
            yield f"{name} not fitted: {why}"
        if endless := [c.name for c in self.candidates if math.isinf(c.value)]:
            yield f"{', '.join(endless)}: infinite {self.metric}, because rows with an unsure outcome get 0 or 1."
        left = next((c for c in self.candidates if c.name == UNCALIBRATED == self.chosen), None)
        if left is not None and left.bias_pvalue <= self.alpha:
            yield (
                f"The mean of the scores differs from the event rate ({p_text(left.bias_pvalue)}), although no gain is "
                "significant: collect more rows, or correct it by Platt, which has two parameters."
            )
        place = [c.name for c in self.candidates].index(self.chosen)
        ahead = [c for c in self.candidates[:place] if self.chosen != self.baseline and c.pvalue <= self.alpha]
        if ahead:
            yield f"{', '.join(c.name for c in ahead)}: not used, because the mean differs from the event rate."


@dataclass(eq=False, repr=False)
class AutoCalibrator(models.ModelOnFeatures):
    """A classifier, or scores, with the calibrator that has the lowest cross-validated log loss, or with none.

    Nested cross-validation: each outer fold is scored by a classifier and by calibrators that were fitted without its
    rows; the calibrators are fitted on out-of-fold scores of the other folds. All candidates, the uncalibrated model
    among them, are compared on the same rows. The rule (``ranking_.rule``): of the calibrators whose gain is
    significant, the one with the best value is used, and one whose mean differs significantly from the event rate only
    if all of them do; without a significant gain the scores are left alone.

    Parameters
    ----------
    estimator : classifier or None, default=None
        As for `CalibratedModel`; a frozen one too. None: X holds the scores themselves, one column of scores of the
        second class or an array of class probabilities, and only calibrators are fitted.
    calibrators : mapping or sequence, optional
        A mapping of names to calibrators (or to names in `CALIBRATORS`), or a sequence of names. By default, for two
        classes, the binary calibrators that need nothing but rows: all but `PriorShift`, and `CATS` and `CAPS` only if
        the scoring is an `ECC`, with its cost. For more classes, the multiclass calibrators, and `Isotonic` and `Beta`
        one class against the rest.
    scoring : metric object, its function or class, or a name in `METRICS`, optional
        The metric that decides: a proper score such as ``"brier"``, or for example
        ``calibrant.metrics.ECC(cost=LinearCost(over=1, under=5))``. By default ``"log_loss"``: with rare events the
        Brier score hardly changes when scores are wrong by a factor of two.
    cv : int, splitter or iterable of splits, default=5
        Outer and inner folds. With an iterable of at least three splits, the other splits are the inner folds.
    alpha : float, default=0.05
        Significance level of gains, adjusted for the number of calibrators, and of biases.
    confidence_level, n_resamples, random_state
        Options of the intervals, by a paired bootstrap of rows.
    n_jobs : int, optional
    progress : bool, optional
        Draw a progress bar; by default on a terminal and in a notebook, after a second.

    Attributes
    ----------
    ranking_ : Ranking
        All candidates with their values, intervals and gains.
    chosen_ : str
        Name of the calibrator in use, or "uncalibrated".
    calibrator_
        The calibrator, fitted on out-of-fold scores of all rows. If none is chosen, `calibrators.Identity` for two
        classes, and one of each class (`OneVsRest`) for more: like any other it can be called, saved and exported.
    estimator_, classes_, table_
        As for `CalibratedModel` without an ensemble.

    Warns
    -----
    CalibrantWarning
        If the chosen calibrator raises the cross-fitted Brier score significantly, although it improves the metric that
        decides.

    See Also
    --------
    CalibratedModel, CALIBRATORS, Ranking

    Notes
    -----
    With m outer and m inner folds the classifier is fitted m (m + 1) + m + 1 times, whatever the number of calibrators.
    With more than two classes the log loss is that of the probability of each row's own class; other metrics are those
    of all classes' scores in one table, each class against the rest, with rows resampled whole.

    A candidate that gives the probability 0 or 1 to rows of which the uncalibrated model is not certain counts as
    having an infinite log loss, whatever happened to these rows: one contrary outcome is enough.

    Gains are tested one-sided by a bootstrap of rows (of groups, if the splitter has them), adjusted by the
    distribution of the largest gain. The bias of a candidate is tested as in `evaluate` ("calibration in the large"),
    on rows that it was not fitted on. With few events a gain is hard to show, so miscalibrated scores may be left
    alone; the documentation of recalibration has a study of it.

    If the classifier gives margins only, no uncalibrated probabilities exist: the gains are those over the first
    calibrator, and no gain is needed.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = make_classification(2000, n_informative=5, n_redundant=10, random_state=0)
    >>> model = AutoCalibrator(GaussianNB(), n_resamples=199).fit(X, y)
    >>> model.chosen_ != "uncalibrated"
    True

    Without a classifier, X holds class probabilities:

    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet([1, 1, 1], 600)
    >>> y = (proba.cumsum(axis=1) > rng.random((600, 1))).argmax(axis=1)
    >>> auto = AutoCalibrator(calibrators=["softmax_temperature", "dirichlet"], n_resamples=199).fit(proba, y)
    >>> auto.ranking_.verdict
    'leave it alone: no calibrator is shown to improve the log loss'
    """

    estimator: Any = None
    calibrators: Mapping[str, ScoreMap | ProbabilityMap | str] | Sequence[str] | None = None
    _: KW_ONLY
    scoring: MetricLike | None = None
    cv: Any = 5
    alpha: float = 0.05
    confidence_level: float = 0.95
    n_resamples: int = 499
    random_state: RandomState = 0
    n_jobs: int | None = None
    progress: bool | None = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Rank the calibrators, choose, and fit on all rows; `params` as for `CalibratedModel`.

        Parameters
        ----------
        X : array or frame of n rows
            Features, as the classifier takes them.
        y : column of n labels
        sample_weight : column of n weights, optional
            Importance of each row; weights go to the classifier too, if it takes them.
        **params
            Further arguments of the classifier's fit, or metadata to route.

        Returns
        -------
        self
        """
        rows = models.TrainingRows.read(self, X, y, sample_weight, params)
        model = models.model_of_scores(rows.classes) if self.estimator is None else self.estimator
        method = models.response_method(model)
        check_share("alpha", self.alpha)
        metric, sign = _metric("log_loss" if self.scoring is None else self.scoring)
        candidates = self._candidates(method, len(rows.classes), metric)
        check_resamples(self.n_resamples, self.alpha / max(1, len(candidates) - 1))  # Holm's level of the best one
        splits = rows.splits(self.cv)
        held_out = self._held_out(model, rows, method, candidates, splits)
        self.ranking_: Ranking = self._rank(held_out, metric, sign)
        self.chosen_: str = self.ranking_.chosen
        held_out.warn_of_brier(self.ranking_)
        inner = models.out_of_fold(model, rows, splits, method, self.n_jobs)
        identity = Identity() if len(rows.classes) == 2 else OneVsRest(Identity())
        self.calibrator_ = inner.fit(candidates[self.chosen_] or identity, rows.classes)
        self.table_: ScoreTable | None = inner.table if method == "predict_proba" else None
        self._keep(models.fit_on(model, rows), rows.classes, method)
        return self

    def __call__(self, score: Any) -> Floats:
        """Return calibrated probabilities of scores, as other calibrators do; only without a classifier.

        Parameters
        ----------
        score : column of n scores, or class probabilities of shape (n, K)
            As in the fit.

        Returns
        -------
        array of shape (n,) or (n, K)
            For two classes the probability of the second one.
        """
        if self.estimator is not None:
            raise InputError(
                "AutoCalibrator must have been made without a classifier to be called on scores; it has one.",
                hint="Use predict_proba(X) for features, or calibrator_(scores) for scores of the classifier.",
                argument="estimator",
            )
        proba = self.predict_proba(score)
        return proba[:, 1] if proba.shape[1] == 2 else proba

    def _calibrator_in_use(self) -> Calibrator | None:
        return None if self.chosen_ == UNCALIBRATED else super()._calibrator_in_use()

    def _candidates(self, method: str, n_classes: int, metric: Metric) -> dict[str, Calibrator | None]:
        given = self.calibrators
        if given is None:
            given = _default_candidates(method, n_classes, metric)
        elif isinstance(given, Sequence) and all(isinstance(name, str) for name in given):
            given = {name: name for name in ([given] if isinstance(given, str) else given)}
        if not isinstance(given, Mapping) or not given or UNCALIBRATED in given:
            raise InputError(
                "calibrators must map names to calibrators or be a sequence of names in CALIBRATORS, none of them "
                f"{UNCALIBRATED!r}; got {given!r}."
            )
        candidates: dict[str, Calibrator | None] = {UNCALIBRATED: None} if method == "predict_proba" else {}
        return candidates | {str(name): calibrator_for(value, method, n_classes) for name, value in given.items()}

    def _held_out(
        self,
        model: Any,
        rows: models.TrainingRows,
        method: str,
        candidates: Mapping[str, Calibrator | None],
        splits: list[tuple[Ints, Ints]],
    ) -> "_HeldOut":
        """Return probabilities by each candidate of rows that it was fitted without, and failed fits."""
        parts: dict[str, list[Floats]] = {name: [] for name in candidates}
        failed: dict[str, str] = {}
        tests = []
        for train, test in progress_bar(splits, len(splits), "outer folds", show=self.progress):
            part = rows.part(model, train)
            folds = [] if models.is_frozen(model) else self._inner(part, train, test, splits)
            inner = models.out_of_fold(model, part, folds, method, self.n_jobs)
            scores = models.response(models.fit_on(model, part), rows.part(model, test).X, method, rows.classes)
            tests.append(test)
            for name, calibrator in candidates.items():
                if name not in failed:
                    try:
                        parts[name].append(_cross_fitted(calibrator, inner, scores, rows))
                    except InputError as error:
                        failed[name] = str(error)
        proba = {name: models.join_by_row(scores, tests)[0] for name, scores in parts.items() if name not in failed}
        if not proba:
            raise InputError(f"calibrators must have one that can be fitted; got {failed}.")
        tested, groups = np.unique(np.concatenate(tests)), rows.split_params.get("groups")
        cluster = None if groups is None else np.asarray(groups)[tested]
        weight = None if rows.weight is None else rows.weight[tested]
        return _HeldOut(proba, failed, rows.code[tested], len(rows.classes), cluster, weight)

    def _inner(
        self, part: models.TrainingRows, train: Ints, test: Ints, outer: list[tuple[Ints, Ints]]
    ) -> list[tuple[Ints, Ints]]:
        """Return folds within the training rows of an outer fold, counted from the first of them."""
        if self.cv is None or isinstance(self.cv, Integral) or hasattr(self.cv, "split"):
            with warnings.catch_warnings():  # the outer folds have issued it
                warnings.simplefilter("ignore", CalibrantWarning)
                return part.splits(self.cv)
        others = [np.flatnonzero(np.isin(train, other)) for _, other in outer if other is not test]
        whole = np.arange(train.size)
        inner = [(np.setdiff1d(whole, rows), rows) for rows in others if 0 < rows.size < train.size]
        if len(inner) < 2:
            raise InputError(
                "Of splits that are given, the inner folds of each are all the others: at least three are needed.",
                argument="cv",
            )
        return inner

    def _rank(self, held_out: "_HeldOut", metric: Metric, sign: float) -> Ranking:
        y, columns, cluster, weight = held_out.rows_of_metric(metric)
        paired, tables = PairedRows.read(y, columns, cluster=cluster, sample_weight=weight)
        seed = seed_sequence(self.random_state)
        replicates = paired_replicates(paired, [metric], n_resamples=self.n_resamples, seed=seed, show=self.progress)
        draws = replicates[:, :, 0]
        values = np.array([metric.value(table) for table in tables])
        if metric == LogLoss():
            values[held_out.certain()] = math.inf
        with np.errstate(invalid="ignore"):  # the difference of two infinite log losses
            gains, drawn = sign * (values[0] - values), sign * (draws[:, :1] - draws)
        pvalues = [math.nan, *stepdown_pvalues(gains[1:], drawn[:, 1:]).tolist()]
        ranked = []
        for i, name in enumerate(held_out.proba):
            around = limits = (math.nan, math.nan)
            if math.isfinite(values[i]):
                around = _limits(float(values[i]), draws[:, i], self.confidence_level)
                if held_out.n_classes == 2 or metric != LogLoss():  # for several classes there is no table of its rows
                    sample = TableSample(*read_rows(y, columns[i], cluster, {"sample_weight": weight}))
                    around = self._interval(metric, sample)
            if i:
                limits = _limits(float(gains[i]), drawn[:, i], self.confidence_level)
            bias = held_out.bias(name)
            ranked.append(Candidate(name, float(values[i]), *around, float(gains[i]), *limits, pvalues[i], *bias))
        return Ranking.choose(ranked, metric, level=self.confidence_level, alpha=self.alpha, failed=held_out.failed)

    def _interval(self, metric: Metric, sample: TableSample) -> tuple[float, float]:
        options = {"seed": seed_sequence(self.random_state), "n_resamples": self.n_resamples, "show": self.progress}
        estimated = interval_from_replicates(bootstrap_metric(metric, sample, **options), self.confidence_level)
        return estimated.low, estimated.high


def _default_candidates(method: str, n_classes: int, metric: Metric) -> dict[str, Any]:
    """Return the calibrators that need nothing but rows, and cost-aware ones with the cost of the metric."""
    of_classes = n_classes > 2 and method != "decision_function"
    kind = ClassTable.kind if of_classes else ScoreTable.kind
    candidates: dict[str, Any] = {
        name: class_()
        for name, class_ in CALIBRATORS.items()
        if (class_.kind == kind and not class_.needs_settings) or (of_classes and class_.suits_each_class)
    }
    cost = getattr(getattr(metric, "loss", None), "cost", None)
    if cost is not None:
        candidates |= {"cats": CATS(cost), "caps": CAPS(cost)}
    if method == "decision_function":
        margins = {name: candidate for name, candidate in candidates.items() if candidate.accepts_any_score}
        candidates = {"platt": "platt"} | margins
    return candidates


def _cross_fitted(
    calibrator: Calibrator | None, inner: models.Responses, scores: Floats, rows: models.TrainingRows
) -> Floats:
    if calibrator is None:
        return models.apply_calibrator(None, scores)
    with warnings.catch_warnings():  # of candidates in one fold; the fit of the chosen one issues its own
        warnings.simplefilter("ignore", CalibrantWarning)
        return models.apply_calibrator(inner.fit(calibrator, rows.classes), scores)


def _metric(scoring: MetricLike) -> tuple[Metric, float]:
    """Return the metric, and 1 if lower values are better, -1 if higher values are."""
    metric = as_metric(scoring, "scoring")
    if declared(metric, "kind") != ScoreTable.kind:
        raise InputError(
            f"scoring must measure probabilities; got {metric.name}, whose kind is {declared(metric, 'kind')!r}.",
            hint="Use a proper score such as 'brier'.",
        )
    direction = getattr(metric, "direction", "lower")
    if direction not in ("lower", "higher"):
        raise InputError(
            f"scoring must be a metric whose lower or higher values are better; got {metric.name}, whose best value is "
            f"{direction:g}.",
            hint="Use a proper score such as 'brier', or ECC.",
        )
    return metric, 1.0 if direction == "lower" else -1.0


@dataclass(frozen=True)
class _HeldOut:
    """Probabilities of rows by candidates that were fitted without them, with the outcomes of the rows."""

    proba: dict[str, Floats]
    failed: dict[str, str]
    code: Ints
    n_classes: int
    cluster: Any
    weight: Floats | None

    def rows_of_metric(self, metric: Metric) -> tuple[Ints, list[Floats], Any, Floats | None]:
        """Return the rows that the metric is computed from.

        Two classes: the scores of the second. More: those of all classes, each against the rest, rows resampled whole;
        for the log loss, which depends on nothing else, the probabilities of the rows' own classes.
        """
        code, proba, count = self.code, self.proba.values(), self.n_classes
        if count == 2:
            return code, [p[:, 1] for p in proba], self.cluster, self.weight
        if metric == LogLoss():
            columns = [p[np.arange(code.size), code] for p in proba]
            return np.ones_like(code), columns, self.cluster, self.weight
        cluster = np.repeat(np.arange(code.size) if self.cluster is None else self.cluster, count)
        weight = None if self.weight is None else np.repeat(self.weight, count)
        return self._outcomes().astype(np.int64).ravel(), [p.ravel() for p in proba], cluster, weight

    def _outcomes(self) -> Bools:
        """Return whether each row has each class."""
        return np.asarray(self.code[:, None] == np.arange(self.n_classes))

    def certain(self) -> Bools:
        """Return which candidates make rows certain (0 or 1) that the baseline does not.

        Their log loss is infinite as soon as one such row has the other outcome, so a finite value is chance.
        """
        certain = [(proba <= 0) | (proba >= 1) for proba in self.proba.values()]
        before = certain[0] if UNCALIBRATED in self.proba else np.zeros_like(certain[0])
        return np.array([bool((after & ~before).any()) for after in certain])

    def bias(self, name: str) -> tuple[float, float]:
        """Return mean probability less event rate, and its p-value; of several classes those of the lowest p-value."""
        tests = []
        for j in range(self.n_classes) if self.n_classes > 2 else (1,):
            outcome, scores = (self.code == j).astype(np.int64), self.proba[name][:, j]
            paired, (table,) = PairedRows.read(outcome, [scores], cluster=self.cluster, sample_weight=self.weight)
            design = Design(table, None if paired.cluster is None else paired)
            tests.append((in_the_large_test(design).pvalue, float(Bias().value(table))))
        pvalue, bias = min(tests)
        return bias, min(1.0, pvalue * len(tests))

    def warn_of_brier(self, ranking: Ranking) -> None:
        """Warn if the chosen calibrator raises the cross-fitted Brier score significantly."""
        if ranking.chosen == UNCALIBRATED or UNCALIBRATED not in self.proba:
            return
        halves = 2 if self.n_classes == 2 else 1  # by convention, for two classes only the second counts
        before, after = (
            np.sum((self.proba[name] - self._outcomes()) ** 2, axis=1) / halves
            for name in (UNCALIBRATED, ranking.chosen)
        )
        code = None if self.cluster is None else np.unique(self.cluster, return_inverse=True)[1]
        change = mean_difference(after, before, self.weight, code)
        if change.value > 0 and change.pvalue <= ranking.alpha:
            first, last = (float(np.average(losses, weights=self.weight)) for losses in (before, after))
            warnings.warn(
                f"{ranking.chosen} improves the {ranking.metric}, but it raises the cross-fitted Brier score from "
                f"{first:.5f} to {last:.5f}. Pass scoring='brier' to choose by the Brier score.",
                CalibrantWarning,
                stacklevel=3,
            )


def _limits(value: float, draws: Floats, level: float) -> tuple[float, float]:
    """Return the limits of a value or a gain; NaN where it or a replicate is infinite."""
    if math.isfinite(value) and np.isfinite(draws).all():
        return bootstrap_difference(value, draws, level)[:2]
    return math.nan, math.nan
