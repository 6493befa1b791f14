"""Cost-aware calibration (Yang & Bi): temperature and Platt scaling with the least cost, and MetaCal."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import get_tags
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from calibrant._support import logistic
from calibrant._support.arrays import Floats, Ints
from calibrant._support.errors import CalibrantWarning, InputError, Note, check_count
from calibrant._support.logistic import EPS, check_eps, expit, logit
from calibrant._support.progress import progress_bar
from calibrant._support.random_streams import seed_sequence
from calibrant.calibrators import maps
from calibrant.calibrators.logit_scaling import LogisticMap
from calibrant.calibrators.models import ModelOnFeatures, TrainingRows, copy_features, fit_on, refuse_nan, response
from calibrant.metrics.bins import Bins
from calibrant.metrics.calibration_errors import ECC
from calibrant.metrics.costs import Cost, LinearCost, normalise_units
from calibrant.metrics.decision_costs import optimal_prediction
from calibrant.metrics.proper_scores import Brier
from calibrant.metrics.smooth_errors import group_scores
from calibrant.tables.score_table import ScoreTable

_STARTS = 4  # number of candidates from which the search continues with all scores
_SMALLEST_STEP = 1e-4
_MAX_STEPS = 100
_WORSE = 0.01  # relative increase of the Brier score that is allowed
_STEEPEST, _FARTHEST = 100.0, 50.0  # bounds of slope and intercept: with separated classes ECC has no minimum
_PAPER_GRID = np.arange(1, 201) / 100  # 0.01, 0.02, ..., 2.00

LogitLine = tuple[float, float]  # slope and intercept on the logit scale


@dataclass(eq=False, repr=False)
class _CostAware(LogisticMap):
    """Base of CATS and CAPS: a line on the logit scale with the least ECC."""

    saved_attributes: ClassVar[tuple[str, ...]] = ("n_clipped_", "ecc_before_", "ecc_")
    needs_settings: ClassVar[bool] = True

    cost: Cost | None = None
    _: KW_ONLY
    n_bins: int | None = None
    bins: Bins | None = None
    grid: Literal["paper"] | None = None
    keep_brier: bool = True
    eps: float = EPS
    random_state: Any = 0

    def _fit_table(self, table: ScoreTable) -> maps.Map:
        check_eps(self.eps)
        if self.grid not in (None, "paper"):
            raise InputError(f"grid must be None or 'paper'; got {self.grid!r}.", value=self.grid)
        self._count_clipped(table, self.eps)
        cost = LinearCost() if self.cost is None else normalise_units(self.cost)
        metric = ECC(cost=cost, n_bins=self.n_bins, bins=self.bins)

        def make_objective(rows: ScoreTable) -> Callable[[LogitLine], float]:
            x = logit(rows.score, self.eps)
            most = np.inf
            if self.keep_brier and self.grid is None:
                most = Brier().value(_with_scores(rows, expit(x))) * (1 + _WORSE)

            def value(line: LogitLine) -> float:
                mapped = _with_scores(rows, expit(line[0] * x + line[1]))
                return metric.value(mapped) if most == np.inf or Brier().value(mapped) <= most else np.inf

            return value

        full = make_objective(table)
        if self.grid == "paper":
            slope, intercept = min(self._paper_grid(), key=full)
        else:
            # ECC is discontinuous where a score crosses the edge of a bin, so derivatives are not useful. Lines on a
            # grid are compared; from the best few and from the identity the search continues with decreasing steps.
            starts = sorted(self._candidates(table), key=make_objective(group_scores(table)))[:_STARTS]
            ends = [self._descend(full, line) for line in [(1.0, 0.0), *starts]]
            slope, intercept = min(ends, key=lambda end: end[0])[1]
        map_ = maps.Logistic(float(slope), float(intercept), "logit", self.eps)
        # ECC of the map as it will be applied and with the cost as given; `full` uses a normalised cost.
        asked = ECC(cost=LinearCost() if self.cost is None else self.cost, n_bins=self.n_bins, bins=self.bins)
        self.ecc_before_: float = asked.value(table)
        self.ecc_ = asked.value(table.map(map_))
        identity = maps.Logistic(1.0, 0.0, "logit", self.eps)
        if self.grid is None and asked.value(table.map(identity)) < self.ecc_:  # rounding error at the edge of a bin
            map_, self.ecc_ = identity, asked.value(table.map(identity))
        before, after = Brier().value(table), Brier().value(table.map(map_))
        if after > before * (1 + 2 * _WORSE):  # twice, because clipping by eps changes scores too
            self._note(
                "worse_brier",
                f"ECC changed from {self.ecc_before_:.4g} to {self.ecc_:.4g}, but the Brier score increased from "
                f"{before:.4g} to {after:.4g}. ECC is not a proper score: check the result with `calibrant.decisions`.",
                warn=True,
            )
        return map_

    def accepts_map(self, map_: Any) -> bool:
        return bool(map_.on == "logit" and map_.slope > 0 and map_.eps == self.eps)

    def _paper_grid(self) -> Iterable[LogitLine]:
        raise NotImplementedError

    def _candidates(self, table: ScoreTable) -> Iterable[LogitLine]:
        raise NotImplementedError

    def _steps(self, size: float) -> list[LogitLine]:
        """Return the steps of the search: factors of the slope and changes of the intercept."""
        raise NotImplementedError

    def _descend(self, full: Callable[[LogitLine], float], line: LogitLine) -> tuple[float, LogitLine]:
        best, size = full(line), 0.25
        for _ in range(_MAX_STEPS):
            lines = [(line[0] * factor, line[1] + change) for factor, change in self._steps(size)]
            value, step = min((full(moved), moved) for moved in lines if _within(moved))
            if value < best:
                best, line = value, step
            else:
                size /= 2
            if size < _SMALLEST_STEP:
                break
        return best, line


class CATS(_CostAware):
    r"""Cost-aware temperature scaling: the map :math:`\sigma(\lambda \operatorname{logit} p)` with the least ECC.

    Parameters
    ----------
    cost : cost, default=LinearCost(over=1, under=1)
        Cost of predicting p if the event rate is a. Only the ratio of `over` and `under` matters.
    n_bins : int, default=10
        Number of bins of equal width of the ECC.
    bins : callable, optional
        Other bins; the paper uses ``EqualWidth(10, closed="right")``.
    grid : {"paper"}, optional
        The search of the paper: the best of 0.01, 0.02, ..., 2.00. The default is a continuous search that includes the
        identity.
    keep_brier : bool, default=True
        Allow only maps that increase the Brier score of the fitted rows by at most 1 %. ECC is not a proper score: a
        constant prediction has an ECC of about 0, and without the restriction (False) the result is often nearly
        constant.
    eps : float, default=2**-24
        Scores are clipped to [eps, 1 - eps], as for `Platt`.
    random_state : int, Generator or None
        For CAPS with the grid of the paper.

    Attributes
    ----------
    slope_, intercept_ : float
        :math:`\lambda` (or A), and 0 (or B).
    ecc_before_, ecc_ : float
        ECC of the fitted rows before and after. It does not increase, except by clipping with `eps`, and with the grid
        of the paper for CAPS, which does not include the identity.
    n_clipped_ : float
        Number (or weight) of rows whose score was clipped.

    See Also
    --------
    CAPS, MetaCal, ecc

    Notes
    -----
    Fit it on rows that the model was not fitted on (the paper uses a fifth of the data), for example inside
    `CalibratedModel`. ECC is discontinuous where a score crosses the edge of a bin, so the search uses no derivatives:
    it compares values on a grid, then with decreasing steps around the best ones. With equal costs and the grid of the
    paper this is the method TS of the paper.

    References
    ----------
    .. [1] Yang & Bi (2025), "Cost-aware calibration of classifiers", section 3.1.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p**2 / (p**2 + (1 - p) ** 2)
    >>> cal = CATS(LinearCost(over=1, under=5)).fit(p, y)
    >>> cal.ecc_ < cal.ecc_before_
    True
    """

    def _paper_grid(self) -> Iterable[LogitLine]:
        return [(float(slope), 0.0) for slope in _PAPER_GRID]

    def _candidates(self, table: ScoreTable) -> Iterable[LogitLine]:
        return [(float(slope), 0.0) for slope in np.geomspace(0.02, 50, 101)]

    def _steps(self, size: float) -> list[LogitLine]:
        return [(1 / (1 + size), 0.0), (1 + size, 0.0)]


class CAPS(_CostAware):
    r"""Cost-aware Platt scaling: the map :math:`\sigma(A \operatorname{logit} p + B)`, A > 0, with the least ECC.

    `CATS` documents parameters, attributes and search. ``grid="paper"`` compares the 200 pairs of the paper, A and B
    drawn from 0.01, 0.02, ..., 2.00. B is then positive and the identity is not included, so the result can be worse
    than the uncalibrated scores and tends to overestimate.

    Parameters
    ----------
    cost, n_bins, bins, grid, keep_brier, eps, random_state
        See `CATS`.

    See Also
    --------
    CATS, MetaCal, ecc

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p**2
    >>> cal = CAPS(LinearCost(over=1, under=5)).fit(p, y)
    >>> cal.ecc_ < 0.25 * cal.ecc_before_
    True
    """

    def _paper_grid(self) -> Iterable[LogitLine]:
        rng = np.random.default_rng(self.random_state)
        return [(float(a), float(b)) for a, b in rng.choice(_PAPER_GRID, (200, 2))]

    def _candidates(self, table: ScoreTable) -> Iterable[LogitLine]:
        plane = [(float(a), float(b)) for a in np.geomspace(0.05, 20, 15) for b in np.linspace(-4, 4, 17)]
        return plane + _platt_line(table, self.eps)

    def _steps(self, size: float) -> list[LogitLine]:
        factors, changes = (1 / (1 + size), 1.0, 1 + size), (-size, 0.0, size)
        return [(f, c) for f in factors for c in changes if (f, c) != (1.0, 0.0)]


def _within(line: LogitLine) -> bool:
    return 1 / _STEEPEST <= line[0] <= _STEEPEST and abs(line[1]) <= _FARTHEST


def _platt_line(table: ScoreTable, eps: float) -> list[LogitLine]:
    """Return the line of Platt scaling without smoothing if it exists and is increasing."""
    if not table.has_both_classes or any(logistic.find_separation(table.n, table.k)):
        return []
    slope, intercept = logistic.fit([logit(table.score, eps)], table.n, table.k, (1.0, 0.0)).tolist()
    return [(slope, intercept)] if _within((slope, intercept)) else []


def _with_scores(table: ScoreTable, score: Floats) -> ScoreTable:
    """Return the table with new scores in the same order; equal scores are merged."""
    if (np.diff(score) > 0).all():
        return ScoreTable(score, table.n, table.k, table.w2, table.k2)
    return table.map(lambda _: score)


_MAX_TRIES = 100  # bootstrap samples that lack a class in a row


@dataclass(eq=False, repr=False)
class MetaCal(ModelOnFeatures):
    r"""MetaCal (Yang & Bi, Algorithm 1): a regressor of the cost-minimising probability of each row.

    1. *Bootstrap*: R classifiers, each fitted on a bootstrap sample, predict the probability of each training row.
    2. *Relabel*: the label of each row is the probability with the least mean cost over these (`optimal_prediction`).
    3. *Fit*: a regressor is fitted to these labels.

    Parameters
    ----------
    estimator : classifier with `predict_proba`
    regressor : regressor, optional
        Regressor of the labels on X. By default ``DecisionTreeRegressor(min_samples_leaf=20)``; the paper also uses a
        tree.
    cost : cost, default=LinearCost(over=1, under=1)
        For costs of the library only the ratio of `over` and `under` matters.
    n_bootstrap : int, default=100
        R. ``GridSearchCV(MetaCal(...), {"n_bootstrap": [50, 100]}, scoring=scorers.of(ECC(cost=...)))`` chooses it.
    out_of_bag : bool, default=False
        Relabel each row with the classifiers that were not fitted on it. The paper uses all classifiers, which are
        overconfident on their own training rows.
    sampler : callable, optional
        Instead of the bootstrap: ``sampler(X)`` gives draws of the true probability, of shape (rows, draws), for
        example from a posterior. `estimator` is then not used and may be None.
    random_state : int, Generator or None, default=0
    n_jobs : int, optional
        Classifiers fitted at once, as in scikit-learn. The result does not depend on it.
    progress : bool, optional
        Draw a progress bar; by default on a terminal and in a notebook, after a second.

    Attributes
    ----------
    regressor_ : the fitted regressor
    labels_ : ndarray
        Cost-minimising probabilities of the training rows, to which the regressor is fitted.
    notes_ : tuple of Note
        For example the number of predictions of training rows that were clipped to [0, 1].

    See Also
    --------
    CATS, CAPS, CalibratedModel

    Notes
    -----
    Predictions outside [0, 1] are clipped, with a warning. Only binary classification is supported.

    References
    ----------
    .. [1] Yang & Bi (2025), "Cost-aware calibration of classifiers", section 3.2.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = make_classification(1000, flip_y=0.3, random_state=0)
    >>> tree = DecisionTreeClassifier(max_depth=4, random_state=0)
    >>> careful = MetaCal(tree, cost=LinearCost(over=1, under=5), n_bootstrap=20, random_state=0).fit(X, y)
    >>> bool(careful.predict_proba(X)[:, 1].mean() > tree.fit(X, y).predict_proba(X)[:, 1].mean())
    True
    """

    estimator: Any
    regressor: Any = None
    cost: Cost | None = None
    _: KW_ONLY
    n_bootstrap: int = 100
    out_of_bag: bool = False
    sampler: Callable[[Any], Any] | None = None
    random_state: Any = 0
    n_jobs: int | None = None
    progress: bool | None = None

    cv = None  # bootstrap samples instead of folds

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Bootstrap, relabel and fit the regressor; `params` are passed to the fit of the classifiers, or routed.

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
        rows = TrainingRows.read(self, X, y, sample_weight, params)
        if len(rows.classes) > 2:
            raise InputError(
                f"Only binary classification is supported by MetaCal; y has {len(rows.classes)} classes.",
                hint="Take one class against the rest.",
                argument="y",
            )
        cost = LinearCost() if self.cost is None else self.cost
        optimal_prediction([[0.2, 0.4, 0.6]], cost)  # raises for an invalid cost before anything is fitted
        self.classes_ = rows.classes
        self.notes_: tuple[Note, ...] = ()
        if self.sampler is not None:
            self.labels_: Floats = optimal_prediction(self.sampler(X), cost)
        else:
            self.labels_ = self._relabel(rows, cost)
        if self.labels_.size != rows.code.size:
            raise InputError(f"sampler must return {rows.code.size:,} rows; got {self.labels_.size:,}.")
        regressor = self.regressor
        if regressor is None:
            regressor = DecisionTreeRegressor(min_samples_leaf=20, random_state=0)
        regressor = _seeded(regressor, np.random.default_rng(seed_sequence(self.random_state)))
        weights = {}
        if rows.weight is not None:
            if has_fit_parameter(regressor, "sample_weight"):
                weights["sample_weight"] = rows.weight
            else:
                text = f"{type(regressor).__name__} takes no sample_weight: it is fitted without weights."
                warnings.warn(text, CalibrantWarning, stacklevel=2)
                self.notes_ += (Note("regressor_unweighted", 1, text),)
        self.regressor_: Any = regressor.fit(X, self.labels_, **weights)
        copy_features(self.regressor_, self)
        outside = _outside(np.asarray(self.regressor_.predict(X)))
        if outside:
            text = "Predictions of training rows that lay outside [0, 1] and are clipped: {count}."
            self.notes_ += (Note("clipped", outside, text),)
        return self

    def _relabel(self, rows: TrainingRows, cost: Cost) -> Floats:
        count = check_count("n_bootstrap", self.n_bootstrap)
        if not hasattr(self.estimator, "predict_proba"):
            raise InputError(
                f"estimator must have predict_proba; got {type(self.estimator).__name__}.",
                hint="Wrap it in CalibratedModel.",
            )
        seeds = seed_sequence(self.random_state).spawn(count)
        work = (delayed(_one_model)(self.estimator, rows, seed) for seed in seeds)
        models: Iterator[tuple[Floats, Ints]] = Parallel(n_jobs=self.n_jobs, return_as="generator")(work)
        draws, drawn = np.empty((rows.code.size, count)), np.zeros((rows.code.size, count), dtype=bool)
        for r, (proba, times) in enumerate(progress_bar(models, count, "bootstrap models", show=self.progress)):
            draws[:, r], drawn[:, r] = proba, times > 0
        if not self.out_of_bag:
            return optimal_prediction(draws, cost)
        return self._out_of_bag(draws, ~drawn, cost)

    def _out_of_bag(self, draws: Floats, left_out: NDArray[np.bool_], cost: Cost) -> Floats:
        always = np.asarray(~left_out.any(axis=1))
        if always.any():
            text = "Rows in every bootstrap sample, relabelled with all classifiers: {count}."
            self.notes_ += (Note("never_out_of_bag", int(np.count_nonzero(always)), text),)
        left_out = np.asarray(left_out | always[:, None])
        labels, n_models = np.empty(len(draws)), left_out.sum(axis=1)
        for count in np.unique(n_models):
            alike = n_models == count
            labels[alike] = optimal_prediction(draws[alike][left_out[alike]].reshape(-1, count), cost)
        return labels

    def predict_proba(self, X: Any) -> Floats:
        """Return the cost-minimising probabilities of both classes.

        Parameters
        ----------
        X : array or frame of n rows
            Features, as in the fit.

        Returns
        -------
        array of shape (n, K)
            Columns in the order of `classes_`; each row sums to 1.
        """
        check_is_fitted(self)
        if not get_tags(self).input_tags.allow_nan:  # a tree takes NaN even if the classifier does not
            refuse_nan(X)
        raw = np.asarray(self.regressor_.predict(X), dtype=np.float64)
        outside = _outside(raw)
        if outside:
            warnings.warn(
                f"{outside:,} of {raw.size:,} predictions lay outside [0, 1] and were clipped.",
                CalibrantWarning,
                stacklevel=2,
            )
        event = np.clip(raw, 0.0, 1.0)
        return np.column_stack([1 - event, event])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        parts = [get_tags(part) for part in (self.estimator, self.regressor) if part is not None]
        tags.input_tags.sparse = all(part.input_tags.sparse for part in parts)
        tags.input_tags.allow_nan = all(part.input_tags.allow_nan for part in parts)
        return tags


def _one_model(estimator: Any, rows: TrainingRows, seed: SeedSequence) -> tuple[Floats, Ints]:
    """Return the predictions of a classifier fitted on a bootstrap sample, and how often it contains each row."""
    rng = np.random.default_rng(seed)
    size = rows.code.size
    counts = np.ones(size, dtype=bool) if rows.weight is None else rows.weight > 0
    for _ in range(_MAX_TRIES):
        chosen = rng.integers(0, size, size)
        if np.unique(rows.code[chosen[counts[chosen]]]).size == rows.classes.size:
            break
    else:
        raise InputError(f"{_MAX_TRIES} bootstrap samples in a row lack a class.", argument="y")
    model = fit_on(_seeded(estimator, rng), rows.part(estimator, chosen))
    return response(model, rows.X, "predict_proba", rows.classes), np.bincount(chosen, minlength=size)


def _seeded(estimator: Any, rng: np.random.Generator) -> Any:
    """Return a clone whose unset random states are drawn from `rng`."""
    fresh = clone(estimator)
    open_ = [name for name, value in fresh.get_params().items() if name.endswith("random_state") and value is None]
    return fresh.set_params(**{name: int(rng.integers(2**31)) for name in open_})


def _outside(values: Floats) -> int:
    return int(np.count_nonzero((values < 0) | (values > 1)))
