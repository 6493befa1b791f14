"""`Multicalibrator`: scores that are calibrated in subgroups too, by boosting of residual log-odds."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.sparse import issparse
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, validate_data

from calibrant._support import columns as _columns
from calibrant._support.arrays import Column, Floats, Ints
from calibrant._support.errors import CalibrantWarning, InputError, Note, check_count, check_option, wrong_value
from calibrant._support.logistic import EPS, expit, logit
from calibrant._support.progress import progress_bar
from calibrant._support.random_streams import RandomState, generator
from calibrant.calibrators import boosted_trees
from calibrant.calibrators.calibrator import need_target, plain_labels, plain_notes, restore_labels, restore_notes
from calibrant.calibrators.models import (
    ModelOnFeatures,
    TrainingRows,
    fit_on,
    is_frozen,
    out_of_fold,
    response,
    response_method,
)
from calibrant.calibrators.score_map import two_classes

MOST_SCALE = 2.0
PATIENCE = 3  # rounds without a lower held-out loss
_PRIOR = 1.0  # precision of slope and intercept around 1 and 0: the fit exists for separated classes too
_NEWTON_STEPS = 50


def split_rows(
    cv: Any, event: Ints, cluster: Ints | None, seed: int, used: Ints | None = None
) -> list[tuple[Ints, Ints]]:
    """Return fitted rows and held-out rows of each fold; rows of a cluster stay together.

    `used` are the rows that `event` and `cluster` describe, if they are not all: splits that are given count all rows.
    """
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        check_count("cv", int(cv), least=2)
        splitter = StratifiedKFold if cluster is None else StratifiedGroupKFold
        cv = splitter(int(cv), shuffle=True, random_state=seed)
    if hasattr(cv, "get_n_splits"):
        folds = _as_folds(cv.split(np.zeros((event.size, 1)), event, cluster))
    else:
        listed = isinstance(cv, Iterable) and not isinstance(cv, str)
        folds = _as_folds(cv) if listed else []
        folds = folds if used is None else [(_places(a, used), _places(b, used)) for a, b in folds]
    tested = np.concatenate([test for _, test in folds]) if folds else np.empty(0, dtype=np.int64)
    if not tested.size or np.unique(tested).size < tested.size:
        raise wrong_value("cv", "must be a number of folds, or splits that hold out each row at most once", cv)
    return folds


def _as_folds(splits: Iterable[Any]) -> list[tuple[Ints, Ints]]:
    return [(np.asarray(train), np.asarray(test)) for train, test in splits]


def _places(rows: Ints, used: Ints) -> Ints:
    """Return the places of rows among those in use; others are left out."""
    return np.searchsorted(used, rows[np.isin(rows, used)])


def slope_and_intercept(log_odds: Floats, event: Ints, weight: Floats) -> tuple[float, float]:
    """Return slope and intercept of a logistic regression with a weak prior around 1 and 0, by Newton's method."""
    design = np.column_stack([log_odds, np.ones(log_odds.size)])
    beta = centre = np.array([1.0, 0.0])
    loss = _penalised(design, beta, centre, event, weight)
    for _ in range(_NEWTON_STEPS):
        p = expit(design @ beta)
        gradient = (design * (weight * (p - event))[:, None]).sum(axis=0) + _PRIOR * (beta - centre)
        spread = design * (weight * p * (1 - p))[:, None]
        hessian = np.array([[(spread[:, i] * design[:, j]).sum() for j in (0, 1)] for i in (0, 1)])
        step = np.linalg.solve(hessian + _PRIOR * np.eye(2), gradient)
        while (lower := _penalised(design, beta - step, centre, event, weight)) > loss and np.abs(step).max() > 1e-9:
            step /= 2
        if np.abs(step).max() <= 1e-9:
            break
        beta, loss = beta - step, lower
    return float(beta[0]), float(beta[1])


def _penalised(design: Floats, beta: Floats, centre: Floats, event: Ints, weight: Floats) -> float:
    penalty = _PRIOR / 2 * float(np.square(beta - centre).sum())
    return float((weight * row_losses(design[:, 0] * beta[0] + beta[1], event)).sum()) + penalty


def row_losses(log_odds: Floats, event: Ints) -> Floats:
    """Return the log loss of each row."""
    return np.asarray(np.logaddexp(0, np.where(event == 1, -log_odds, log_odds)))


@dataclass
class _Fold:
    """The rows of a fold with their current log-odds, fitted and held out, and the rounds so far."""

    fitted: boosted_trees.TreeRows
    current: Floats
    held_out: boosted_trees.TreeRows
    predicted: Floats
    slope: float
    intercept: float
    rounds: list[boosted_trees.TreeRound] = field(default_factory=list)

    @classmethod
    def begin(cls, rows: boosted_trees.TreeRows, log_odds: Floats, train: Ints, test: Ints) -> "_Fold":
        fitted = rows.part(train)
        slope, intercept = slope_and_intercept(log_odds[train], fitted.event, fitted.weight)
        current, predicted = (slope * log_odds[part] + intercept for part in (train, test))
        return cls(fitted, current, rows.part(test), predicted, slope, intercept)

    def advance(self, settings: boosted_trees.TreeSettings, backend: boosted_trees.Backend) -> "_Fold":
        """Return the fold after one more round."""
        settings = replace(settings, seed=settings.seed + len(self.rounds))  # other draws of features in each round
        trees = boosted_trees.fit_round(self.fitted, self.current, settings, backend)
        current = self.current + trees(self.fitted.codes, self.current)
        predicted = self.predicted + trees(self.held_out.codes, self.predicted)
        return _Fold(self.fitted, current, self.held_out, predicted, self.slope, self.intercept, [*self.rounds, trees])

    def model(self, n_rounds: int, scale: float) -> boosted_trees.BoostedLogOdds:
        return boosted_trees.BoostedLogOdds(self.slope, self.intercept, scale, tuple(self.rounds[:n_rounds]))


# The models of the folds, the mean loss before and after each round, the number of rounds, the scale, and the gain of
# the held-out rows with its standard error.
HeldOut: TypeAlias = tuple[tuple[boosted_trees.BoostedLogOdds, ...], Floats, int, float, float, float]


def _mean_loss(log_odds: Floats, event: Ints, weight: Floats) -> float:
    return float(np.average(row_losses(log_odds, event), weights=weight))


def _best_scale(start: Floats, end: Floats, event: Ints, weight: Floats) -> float:
    """Return the scale of least held-out loss of what trees add.

    Trees are shrunk, and stop before all of a deviation is corrected, so it is at least 1. Below 1 it would shrink each
    fold's model because of noise of which their mean has less.
    """

    def loss(scale: float) -> float:
        return _mean_loss(boosted_trees.rescaled(start, end, scale), event, weight)

    best = float(minimize_scalar(loss, bounds=(1.0, MOST_SCALE), method="bounded").x)
    return best if loss(best) < _mean_loss(end, event, weight) else 1.0


def _mean_and_error(values: Floats, weight: Floats, cluster: Ints | None) -> tuple[float, float]:
    """Return the weighted mean and its standard error; rows of a cluster are one unit."""
    mean = float(np.average(values, weights=weight))
    parts = weight * (values - mean)
    if cluster is not None:
        code = np.unique(cluster, return_inverse=True)[1]
        parts = np.asarray(np.bincount(code, weights=parts), dtype=np.float64)
    if parts.size < 2:
        return mean, np.inf
    return mean, float(np.sqrt(np.square(parts).sum() * parts.size / (parts.size - 1)) / weight.sum())


_MOST_ROUNDS = 1000
_MOST_NODES = 2**21  # of all trees in a file


@dataclass(eq=False, repr=False)
class Multicalibrator(ModelOnFeatures):
    r"""Calibrate the scores of a model in the subgroups that its features define, by boosted trees.

    A calibrator of one score maps equal scores to equal probabilities, so it cannot correct a model that is
    calibrated overall but not in subgroups. This one changes the log-odds of the score by an amount that depends on
    the features and on the score itself:

    .. math::

       \operatorname{logit} q = a + b \operatorname{logit} p + c \sum_r f_r(x, \operatorname{logit} q_{r-1})

    Slope and intercept come first. Each round :math:`f_r` is ten small trees, fitted to the residuals of the current
    log-odds :math:`\operatorname{logit} q_{r-1}`, which are a feature of the trees too. The scale c makes up for
    their shrinkage.

    Parameters
    ----------
    estimator : classifier or None, default=None
        A classifier of two classes with `predict_proba`, whose scores are calibrated: out of fold in the fit, or as
        they are if it is wrapped in ``sklearn.frozen.FrozenEstimator``. None: scores are passed to `fit` and to
        `predict_proba` in addition to the features.
    features : sequence of column names, optional
        Columns of X that define the subgroups; positions if X is an array. By default all.
    backend : {"auto", "sklearn", "lightgbm"}
        Library that grows the trees: scikit-learn's ``HistGradientBoostingRegressor`` on Newton residuals
        (y - p) / h with weights h = p (1 - p), or LightGBM with the log-odds as initial score. ``"auto"`` is
        LightGBM if it is installed.
    max_rounds : int, default=50
        Most rounds; the number in use minimises the held-out log loss.
    max_leaf_nodes : int, default=9
        Most leaves of a tree, which is the number of subgroups that it distinguishes.
    min_samples_leaf : int, default=20
        Fewest rows of a leaf.
    cv : int, splitter or iterable of splits, default=5
        Folds that hold out each row at most once; an int means that many, stratified and shuffled.
    random_state : int, Generator or None, default=0
        Determines the folds.
    n_jobs : int, optional
        Folds fitted at once, as in scikit-learn. The result does not depend on it.
    progress : bool, optional
        Draw a progress bar; by default on a terminal and in a notebook, after a second.

    Attributes
    ----------
    improved_ : bool
        Whether the held-out log loss improved, by the rule in the notes. If False, scores are returned unchanged.
    n_rounds_ : int
        Number of rounds in use; 0 for slope and intercept only, or for unchanged scores.
    gain_, gain_error_ : float
        Mean decrease of the held-out log loss per row by the best number of rounds, and its standard error. The number
        of rounds is chosen on the same rows, so the decrease on new rows is smaller.
    scale_ : float
        Factor of the sum of all rounds, at least 1, which minimises the held-out log loss.
    losses_ : ndarray
        Mean held-out log loss of the scores, with slope and intercept, and after each round. Empty after
        `calibrant.load`.
    models_ : tuple
        The fitted model of each fold; predictions are means of their log-odds. Empty if `improved_` is False.
    backend_ : str
        Library that grew the trees.
    classes_ : ndarray of two labels
        The second is the event whose probability the scores are.
    notes_ : tuple of Note
    estimator_, calibrator_
        With a classifier: the classifier fitted on all rows, and the `Multicalibrator` of its scores, without a
        classifier, which can be saved.

    See Also
    --------
    audit, MulticalibrationError, CalibratedModel

    Notes
    -----
    **When scores are left unchanged.** Each fold's model is evaluated on the rows that it was not fitted on. The
    number of rounds has the least mean log loss of all held-out rows; after three rounds without a decrease no more
    are fitted. The models are used only if this loss is below that of the given scores by more than one standard
    error of the difference (rows, or clusters, are the units). On calibrated scores the trees overfit, so their
    held-out loss is higher, and a change is rare. Otherwise `improved_` is False, `notes_` says why, and
    predictions equal the given scores, bitwise.

    **Models of the folds are kept.** Log loss is convex in the log-odds, so the loss of their mean is at most the
    mean of their losses. There is no other model whose loss was not measured.

    **Guarantees.** Held-out log loss is what is minimised; it bounds no error of any one subgroup. Use
    `calibrant.audit` on new rows to find subgroups that are still miscalibrated. Fit it on rows that the model was not
    fitted on.

    **Columns.** Text and declared categories are categories; of more than 200 the rarer ones are one. Labels that were
    not seen in the fit are treated as rare ones, or else as missing; labels of another type (1 instead of "1") are an
    error. Numbers are cut at 64 quantiles. Missing cells
    may occur. Rows of weight 0 are not used. Scores are clipped to [2**-24, 1 - 2**-24].

    References
    ----------
    .. [1] Tax et al. (2026), "MCGrad: multicalibration at web scale".
    .. [2] Hebert-Johnson, Kim, Reingold & Rothblum (2018), "Multicalibration: calibration for the
       (computationally-identifiable) masses".

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (4000, 2))
    >>> p = rng.uniform(0.2, 0.8, 4000)
    >>> y = rng.random(4000) < p + np.where(X[:, 0] == X[:, 1], 0.1, -0.1)  # off in all crossings of two features
    >>> cal = Multicalibrator(backend="sklearn").fit(X, y, scores=p)
    >>> cal.improved_
    True
    >>> cal.predict_proba(np.array([[0, 0], [0, 1]]), scores=[0.5, 0.5])[:, 1].round(1)
    array([0.6, 0.4])

    With a fitted classifier:

    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn.linear_model import LogisticRegression
    >>> model = LogisticRegression().fit(X[:2000], y[:2000])
    >>> model = Multicalibrator(FrozenEstimator(model), backend="sklearn").fit(X[2000:], y[2000:])
    >>> model.predict_proba(np.array([[0, 0], [0, 1]]))[:, 1].round(1)
    array([0.6, 0.4])
    """

    kind: ClassVar[str] = "subgroups"
    # Only the fit uses these; they do not go into files.
    settings_of_fit: ClassVar[tuple[str, ...]] = ("estimator", "cv", "random_state", "n_jobs", "progress")

    losses_: Floats = field(init=False)
    models_: tuple[boosted_trees.BoostedLogOdds, ...] = field(init=False)
    notes_: tuple[Note, ...] = field(init=False)

    estimator: Any = None
    _: KW_ONLY
    features: Sequence[str | int] | None = None
    backend: Literal["auto", "sklearn", "lightgbm"] = "auto"
    max_rounds: int = 50
    max_leaf_nodes: int = 9
    min_samples_leaf: int = 20
    cv: Any = 5
    random_state: RandomState = 0
    n_jobs: int | None = None
    progress: bool | None = None

    def fit(
        self,
        X: Any,
        y: Column,
        sample_weight: Column | None = None,
        *,
        scores: Column | None = None,
        cluster: Column | None = None,
        **params: Any,
    ) -> Self:
        """Fit the change of the log-odds.

        Parameters
        ----------
        X : frame or array of n rows
            Features; with a classifier also its input.
        y : column of n outcomes
            Two labels; where they are not 0 and 1 the greater one, in sorted order, is the event.
        sample_weight : column, optional
            Importance of each row; weights go to the classifier too, if it takes them.
        scores : column of n scores in [0, 1]
            Scores of the event, without a classifier.
        cluster : column, optional
            Rows of a cluster are in the same fold.
        **params
            Go to the classifier's fit, or where routing sends them.

        Returns
        -------
        self
        """
        check_option("backend", self.backend, ("auto", "sklearn", "lightgbm"))
        check_count("max_rounds", self.max_rounds, _MOST_ROUNDS)
        check_count("max_leaf_nodes", self.max_leaf_nodes, boosted_trees.MOST_LEAVES, least=2)
        check_count("min_samples_leaf", self.min_samples_leaf)
        if issparse(X):
            raise InputError(
                "Sparse input is not supported by Multicalibrator: X must be dense.",
                hint="Pass X.toarray().",
                argument="X",
            )
        if self.estimator is None:
            if params:
                raise TypeError(f"fit() got an unexpected keyword argument {next(iter(params))!r}")
            self._fit_scores(X, y, sample_weight, scores, cluster)
        else:
            self._fit_classifier(X, y, sample_weight, scores, cluster, params)
        return self

    def _fit_scores(self, X: Any, y: Any, sample_weight: Any, scores: Any, cluster: Any) -> None:
        need_target(y, "Multicalibrator")
        if scores is None:
            raise InputError(
                "scores must be given if there is no classifier; they are missing.",
                hint="Pass scores=model.predict_proba(X)[:, 1], or Multicalibrator(FrozenEstimator(model)).",
            )
        validate_data(self, X, skip_check_array=True)
        outcome, score = _columns.read(y, "y"), _columns.scores(_columns.read(scores, "scores"))
        _columns.check_alignment({"X": X, "y": y, "scores": scores, "sample_weight": sample_weight, "cluster": cluster})
        _columns.check_lengths([outcome, score])
        _columns.refuse_missing([outcome, score])
        event, self.classes_ = two_classes(outcome, hint="For several classes fit one per class, with y == class.")
        weight = np.ones(len(outcome)) if sample_weight is None else _columns.read_weights(sample_weight, outcome)
        coders = boosted_trees.fit_codes(X, self.features)
        rows = boosted_trees.TreeRows(coders, boosted_trees.apply_codes(coders, X), event.astype(np.int64), weight)
        if len(rows.codes) != len(outcome):
            raise InputError(
                f"X has {len(rows.codes):,} rows, y has {len(outcome):,}; they must be equally long.", argument="X"
            )
        units = _cluster_codes(cluster, outcome)
        used = np.flatnonzero(weight > 0)
        units = None if units is None else units[used]
        part = rows.part(used)
        too_few = self._too_few_rows(part.event, units)
        held_out = None if too_few else self._boost(part, logit(score.values[used], EPS), units, used)
        self._keep_models(held_out, too_few, score.notes)
        self._coders, self.backend_ = coders, boosted_trees.choose_backend(self.backend)

    def _keep_models(self, held_out: HeldOut | None, too_few: str, notes: tuple[Note, ...]) -> None:
        models, losses, n_rounds, scale, gain, error = held_out or ((), np.empty(0), 0, 1.0, 0.0, np.inf)
        self.losses_, self.gain_, self.gain_error_, self.notes_ = losses, gain, error, notes
        self.improved_: bool = bool(gain > error)
        self.n_rounds_, self.scale_, self.models_ = (n_rounds, scale, models) if self.improved_ else (0, 1.0, ())
        if self.improved_:
            return
        reason = too_few or (
            f"the held-out log loss decreases by {self.gain_:.3g} per row, which is not more than its standard "
            f"error {self.gain_error_:.3g}"
            if self.gain_ >= 0
            else f"the held-out log loss increases by {-self.gain_:.3g} per row"
        )
        self.notes_ += (Note("not_improved", 1, f"Scores are left unchanged: {reason}."),)
        if too_few:
            warnings.warn(f"Multicalibrator: {self.notes_[-1].text}", CalibrantWarning, stacklevel=5)

    def _boost(self, rows: boosted_trees.TreeRows, log_odds: Floats, cluster: Ints | None, used: Ints) -> HeldOut:
        """Boost in each fold until the mean loss of all held-out rows stops to decrease."""
        seed = int(generator(self.random_state).integers(2**31))
        folds = split_rows(self.cv, rows.event, cluster, seed, used)
        settings = boosted_trees.TreeSettings(self.max_leaf_nodes, self.min_samples_leaf, seed)
        backend = boosted_trees.choose_backend(self.backend)
        tested = np.concatenate([test for _, test in folds])
        event, weight = rows.event[tested], rows.weight[tested]
        before = row_losses(log_odds[tested], event)
        states = [_Fold.begin(rows, log_odds, train, test) for train, test in folds]
        path = [np.concatenate([fold.predicted for fold in states])]
        means = [float(np.average(before, weights=weight)), _mean_loss(path[0], event, weight)]
        with Parallel(n_jobs=self.n_jobs) as parallel:
            for _ in progress_bar(range(self.max_rounds), self.max_rounds, "rounds", show=self.progress):
                states = parallel(delayed(fold.advance)(settings, backend) for fold in states)
                path.append(np.concatenate([fold.predicted for fold in states]))
                means.append(_mean_loss(path[-1], event, weight))
                if len(path) - 1 - int(np.argmin(means[1:])) >= PATIENCE:
                    break
        best = int(np.argmin(means[1:]))
        gains = before - row_losses(path[best], event)
        gain, error = _mean_and_error(gains, weight, None if cluster is None else cluster[tested])
        scale = _best_scale(path[0], path[best], event, weight)
        return tuple(fold.model(best, scale) for fold in states), np.array(means), best, scale, gain, error

    def _too_few_rows(self, event: Ints, cluster: Ints | None) -> str:
        """Return why folds cannot be made, or an empty string."""
        folds = self.cv if isinstance(self.cv, (int, np.integer)) else 1
        counts = {}
        for name, outcome in (("events", 1), ("non-events", 0)):
            rows = np.flatnonzero(event == outcome)
            counts[name] = rows.size if cluster is None else np.unique(cluster[rows]).size
        unit = "" if cluster is None else " in different clusters"
        short = [f"{count:,} {name}{unit}" for name, count in counts.items() if count < folds]
        return f"there are {short[0]}, fewer than the {folds} folds" if short else ""

    def _fit_classifier(
        self, X: Any, y: Any, sample_weight: Any, scores: Any, cluster: Any, params: dict[str, Any]
    ) -> None:
        if scores is not None:
            raise InputError("scores must not be given if there is a classifier; got both.")
        rows = TrainingRows.read(self, X, y, sample_weight, params)
        self._check_classifier(rows)
        units = _cluster_codes(cluster, _columns.read(rows.y, "y"))
        seed = int(generator(self.random_state).integers(2**31))
        splits = [] if is_frozen(self.estimator) else split_rows(self.cv, rows.code, units, seed)
        held_out = out_of_fold(self.estimator, rows, splits, "predict_proba", self.n_jobs)
        if held_out.code.size < rows.code.size:
            raise InputError(
                f"cv must hold out each row once if a classifier is fitted; {held_out.code.size:,} of "
                f"{rows.code.size:,} rows are held out.",
                hint="Wrap a fitted classifier in FrozenEstimator.",
            )
        options = {**self.get_params(deep=False), "estimator": None, "cv": splits or self.cv}
        self.calibrator_ = Multicalibrator(**options).fit(
            X, rows.code, rows.weight, scores=held_out.scores, cluster=cluster
        )
        self._keep(fit_on(self.estimator, rows), rows.classes, "predict_proba")
        copied = "improved_ n_rounds_ scale_ gain_ gain_error_ losses_ models_ backend_ notes_"
        for name in copied.split():
            setattr(self, name, getattr(self.calibrator_, name))

    def _check_classifier(self, rows: TrainingRows) -> None:
        if len(rows.classes) != 2:
            raise InputError(
                "Only binary classification is supported by Multicalibrator: y must have two classes; got "
                f"{len(rows.classes)} classes.",
                hint="Fit one per class, with y == class.",
                argument="y",
            )
        if response_method(self.estimator) != "predict_proba":
            raise InputError(
                "estimator must have predict_proba; it has decision_function only.", hint="Wrap it in CalibratedModel."
            )

    def __call__(self, X: Any, scores: Column | None = None) -> Floats:
        """Return the calibrated probability of the event of each row.

        Parameters
        ----------
        X : frame or array of n rows
            Features, as in the fit.
        scores : column of n scores in [0, 1], optional
            Scores of the event; needed without a classifier, an error with one.

        Returns
        -------
        array
            One row per row of `X`.
        """
        check_is_fitted(self)
        if self.estimator is not None:
            if scores is not None:
                raise InputError("scores must not be given if there is a classifier; got both.")
            return np.asarray(self.calibrator_(X, response(self.estimator_, X, self._method, self.classes_)))
        if scores is None:
            raise InputError("scores must be given, as in the fit; they are missing.")
        column = _columns.scores(_columns.read(scores, "scores"))
        _columns.refuse_missing([column])
        validate_data(self, X, skip_check_array=True, reset=False)
        codes = boosted_trees.apply_codes(self._coders, X)
        if len(codes) != len(column):
            raise InputError(
                f"scores has {len(column):,} rows, X has {len(codes):,}; they must be equally long.", argument="scores"
            )
        if not self.improved_:
            return np.array(column.values)
        return expit(boosted_trees.mean_log_odds(self.models_, codes, logit(column.values, EPS)))

    def predict_proba(self, X: Any, scores: Column | None = None) -> Floats:
        """Return the probabilities of both classes, in the order of `classes_`.

        Parameters
        ----------
        X : frame or array of n rows
            Features, as in the fit.
        scores : column of n scores in [0, 1], optional
            Scores of the event; needed without a classifier, an error with one.

        Returns
        -------
        array
            One row per row of `X`.
        """
        event = self(X, scores)
        return np.column_stack([1 - event, event])

    def predict(self, X: Any, scores: Column | None = None) -> NDArray[Any]:
        """Return the more probable class of each row; at 1/2 the first.

        Parameters
        ----------
        X : frame or array of n rows
            Features, as in the fit.
        scores : column of n scores in [0, 1], optional
            Scores of the event; needed without a classifier, an error with one.

        Returns
        -------
        array
            One row per row of `X`.
        """
        likely = (self(X, scores) > 0.5).astype(int)
        return np.asarray(self.classes_[likely])

    def to_state(self) -> dict[str, Any]:
        """Return the fitted models as plain data for JSON.

        Returns
        -------
        dict
            The part of the file of `calibrant.save` that holds the fit.
        """
        models = [model.to_dict() for model in self.models_]
        _check_size(models)
        return plain_labels(self.classes_) | {
            "notes": plain_notes(self.notes_),
            "features": [coder.to_dict() for coder in self._coders],
            "names": getattr(self, "feature_names_in_", np.empty(0)).tolist(),
            "n_features": int(self.n_features_in_),
            "backend": self.backend_,
            "n_rounds": self.n_rounds_,
            "gain": [self.gain_, None if np.isinf(self.gain_error_) else self.gain_error_],
            "models": models,
        }

    def restore_state(self, state: dict[str, Any]) -> None:
        """Restore what `to_state` returns; anything else is an error.

        Parameters
        ----------
        state : dict
            What `to_state` returned; its keys are removed.
        """
        self.classes_ = restore_labels(state, count=2, owner=type(self).__name__)
        self.notes_ = restore_notes(state.pop("notes", None))
        features, models = state.pop("features", None), state.pop("models", None)
        if not isinstance(features, list) or not features or not isinstance(models, list):
            raise InputError("Multicalibrator must have a list of features and a list of models.")
        self._restore_columns(state)
        self._coders = tuple(map(boosted_trees.codes_from_dict, features))
        names = {coder.name for coder in self._coders}
        fitted = set(map(str, getattr(self, "feature_names_in_", names)))
        if len(names) < len(self._coders) or len(names) > self.n_features_in_ or names - fitted:
            raise InputError("features must be different columns of the fit.")
        self.n_rounds_ = _count("n_rounds", state.pop("n_rounds", None))
        sizes = [coder.n_codes for coder in self._coders]
        _check_size(models)
        self.models_ = tuple(boosted_trees.BoostedLogOdds.from_dict(model, sizes, self.n_rounds_) for model in models)
        self.gain_, self.gain_error_ = _gain(state.pop("gain", None))
        self.improved_ = bool(self.models_)
        scales = {model.scale for model in self.models_} or {1.0}
        if len(scales) > 1:
            raise InputError("all models must have the same scale.")
        (self.scale_,) = scales
        if self.improved_ != (self.gain_ > self.gain_error_) or (self.n_rounds_ and not self.improved_):
            raise InputError("models must be present if and only if the gain exceeds its standard error.")
        self.losses_ = np.empty(0)

    def _restore_columns(self, state: dict[str, Any]) -> None:
        self.n_features_in_: int = _count("n_features", state.pop("n_features", None))
        names, backend = state.pop("names", None), state.pop("backend", None)
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise InputError("names must be a list of text.")
        if names and len(names) != self.n_features_in_:
            raise InputError(f"names must be {self.n_features_in_} names of columns; got {len(names)}.")
        if names:
            self.feature_names_in_: NDArray[Any] = np.array(names, dtype=object)
        check_option("backend", backend, ("sklearn", "lightgbm"))
        self.backend_ = backend

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "models_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = False
        if self.estimator is None:
            tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags


def _cluster_codes(cluster: Any, outcome: _columns.ColumnData) -> Ints | None:
    if cluster is None:
        return None
    column = _columns.read(cluster, "cluster")
    _columns.check_lengths([outcome, column])
    _columns.refuse_missing([column])
    return _columns.encode(column)[1]


def _check_size(models: Sequence[Any]) -> None:
    """Check that plain models have no more nodes than a file may have; malformed ones are refused later."""
    count = 0
    for model in models:
        rounds = model.get("rounds") if isinstance(model, dict) else None
        for part in rounds if isinstance(rounds, list) else []:
            trees = part.get("trees") if isinstance(part, dict) else None
            count += sum(len(tree) for tree in trees if isinstance(tree, list)) if isinstance(trees, list) else 0
    if count > _MOST_NODES:
        raise InputError(
            f"A Multicalibrator must have at most {_MOST_NODES:,} nodes of trees in a file; got {count:,}.",
            hint="Fit it with a lower max_rounds or max_leaf_nodes.",
        )


def _count(name: str, value: Any) -> int:
    if type(value) is not int or not 0 <= value <= 10**6:
        raise InputError(f"{name} must be a whole number of at least 0; got {value!r}.")
    return value


def _gain(value: Any) -> tuple[float, float]:
    pair = value if isinstance(value, list) and len(value) == 2 else [None, None]
    gain, error = pair[0], np.inf if pair[1] is None else pair[1]
    if type(gain) is not float or type(error) is not float or not np.isfinite(gain) or not error >= 0:
        raise InputError(f"gain must be a number and its standard error; got {value!r}.")
    return gain, error
