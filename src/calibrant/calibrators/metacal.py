"""MetaCal: a regressor fitted to cost-minimising probabilities."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from calibrant._support.arrays import Floats, Ints
from calibrant._support.errors import CalibrantWarning, InputError, Note, check_count
from calibrant._support.progress import progress_bar
from calibrant._support.random_streams import seed_sequence
from calibrant.calibrators.responses import TrainingRows, fit_on, response
from calibrant.metrics.costs import Cost, LinearCost
from calibrant.metrics.decision_costs import optimal_prediction

__all__ = ["MetaCal"]

_MAX_TRIES = 100  # bootstrap samples that lack a class in a row


class MetaCal(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
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

    def __init__(
        self,
        estimator: Any,
        regressor: Any = None,
        cost: Cost | None = None,
        *,
        n_bootstrap: int = 100,
        out_of_bag: bool = False,
        sampler: Callable[[Any], Any] | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
        progress: bool | None = None,
    ) -> None:
        self.estimator = estimator
        self.regressor = regressor
        self.cost = cost
        self.n_bootstrap = n_bootstrap
        self.out_of_bag = out_of_bag
        self.sampler = sampler
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

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
            self.labels_ = optimal_prediction(self.sampler(X), cost)
        else:
            self.labels_ = self._relabel(rows, cost)
        if self.labels_.size != rows.code.size:
            raise InputError(
                f"sampler must return {rows.code.size:,} rows; got {self.labels_.size:,}.", argument="sampler"
            )
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
        self.regressor_ = regressor.fit(X, self.labels_, **weights)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.regressor_, name):
                setattr(self, name, getattr(self.regressor_, name))
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
                argument="estimator",
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
        held = left_out.sum(axis=1)
        always = int(np.count_nonzero(held == 0))
        if always:
            text = "Rows in every bootstrap sample, relabelled with all classifiers: {count}."
            self.notes_ += (Note("never_out_of_bag", always, text),)
            left_out, held = np.where(held[:, None] == 0, True, left_out), np.where(held == 0, draws.shape[1], held)
        labels = np.empty(len(draws))
        for size in np.unique(held):  # rows with equal numbers of classifiers
            own = held == size
            labels[own] = optimal_prediction(draws[own][left_out[own]].reshape(-1, size), cost)
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

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the more probable class of each row; at 1/2 the first.

        Parameters
        ----------
        X : array or frame of n rows
            Features, as in the fit.

        Returns
        -------
        array
            One label per row.
        """
        likelier = self.predict_proba(X).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[likelier]
        return labels

    def get_metadata_routing(self) -> Any:
        """Return the routing of metadata to the classifiers.

        Returns
        -------
        MetadataRouter
            As scikit-learn's metadata routing asks for it.
        """
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        parts = [get_tags(each) for each in (self.estimator, self.regressor) if each is not None]
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
