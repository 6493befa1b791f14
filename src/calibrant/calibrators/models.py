"""Models on features: their base, their training rows, and the scores of a classifier in and out of fold."""

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, get_routing_for_object, process_routing
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples, check_is_fitted, column_or_1d, has_fit_parameter, indexable

from calibrant._support import columns as _columns
from calibrant._support.arrays import Floats, Ints
from calibrant._support.errors import CalibrantWarning, InputError
from calibrant.calibrators.calibrator import Calibrator, PredictsClasses, check_column_count, label_array, need_target
from calibrant.tables.class_table import ClassProbabilities
from calibrant.tables.score_table import ScoreTable


class ModelOnFeatures(PredictsClasses, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """The base of models on features: a fitted classifier and the calibrator of its scores, or None for none."""

    estimator: Any
    cv: Any
    estimator_: Any
    calibrator_: Any

    def predict_proba(self, X: Any) -> Floats:
        """Return calibrated probabilities, one column per class in the order of `classes_`.

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
        classifiers = self._classifiers()
        total: Floats | float = 0.0
        for classifier in classifiers:
            scores = response(classifier, X, self._method, self.classes_)
            total = total + apply_calibrator(self._calibrator_in_use(), scores)
        return np.asarray(total / len(classifiers))

    def _calibrator_in_use(self) -> Calibrator | None:
        """Return the calibrator that predictions use; None for no calibration."""
        calibrator: Calibrator | None = self.calibrator_
        return calibrator

    def _classifiers(self) -> list[Any]:
        """Return the classifiers whose calibrated probabilities are averaged."""
        return [self.estimator_]

    def _keep(self, estimator: Any, classes: NDArray[Any], method: str) -> None:
        self.estimator_ = estimator
        self.classes_ = classes
        self._method = method
        copy_features(estimator, self)

    def get_metadata_routing(self) -> Any:
        """Return how metadata reach the classifier and the splitter.

        Returns
        -------
        MetadataRouter
            As scikit-learn's metadata routing asks for it.
        """
        splitter = self.cv if hasattr(self.cv, "split") else get_routing_for_object(None)
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(estimator=self.estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
            .add(splitter=splitter, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.estimator is not None:
            inside = get_tags(self.estimator).input_tags
            for name in ("sparse", "allow_nan", "pairwise"):
                setattr(tags.input_tags, name, getattr(inside, name))
        return tags


def copy_features(source: Any, model: Any) -> None:
    """Give a model the number and the names of the features of an estimator inside it."""
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(source, name):
            setattr(model, name, getattr(source, name))


def refuse_nan(X: Any) -> None:
    """Raise an error if a feature is missing in some row."""
    values = np.asarray(X, dtype=object) if hasattr(X, "columns") else np.asarray(getattr(X, "data", X))
    is_missing = values != values  # noqa: PLR0124  (NaN differs from itself, in columns of any type)
    if np.any(is_missing):
        count = int(np.count_nonzero(is_missing))
        raise InputError(
            f"Input X contains NaN ({count:,} value{'s' * (count != 1)}), which the estimator does not take.",
            hint="Impute or drop these rows.",
            argument="X",
        )


def apply_calibrator(calibrator: Calibrator | None, scores: Floats) -> Floats:
    """Return probabilities of all classes, calibrated unless `calibrator` is None."""
    if calibrator is None:
        return class_columns(scores)
    return np.asarray(calibrator.predict_proba(_as_taken(calibrator, scores)))


def class_columns(scores: Floats) -> Floats:
    """Return one column per class, also for two classes."""
    return scores if scores.ndim == 2 else np.column_stack([1 - scores, scores])


def _as_taken(calibrator: Calibrator, scores: Floats) -> Floats:
    return class_columns(scores) if calibrator.takes == "classes" else scores


@dataclass(frozen=True)
class TrainingRows:
    """Training rows: features, labels, weights and parameters, and the classes of all rows."""

    X: Any
    y: Any
    code: Ints
    classes: NDArray[Any]
    weight: Floats | None
    fit_params: Mapping[str, Any]  # of the classifier
    split_params: Mapping[str, Any]  # of the splitter

    @classmethod
    def read(cls, model: Any, X: Any, y: Any, sample_weight: Any, params: Mapping[str, Any]) -> "TrainingRows":
        """Read the arguments of `fit(X, y, sample_weight, **params)` of a model with `estimator` and `cv`."""
        need_target(y, type(model).__name__)
        _columns.check_alignment({"X": X, "y": y, "sample_weight": sample_weight})
        check_classification_targets(y)
        X, y = indexable(X, column_or_1d(y, warn=True))
        column = _columns.read(y, "y")
        _columns.refuse_missing([column])
        names, code = _columns.encode(column)
        if is_frozen(model.estimator):  # its classes are those it was fitted on
            fit_on(model.estimator, None)
            names = np.asarray(model.estimator.classes_).tolist()
            code = _columns.codes(column, names)
        if len(names) < 2:
            raise InputError(f"{type(model).__name__} needs two classes; y has one class only.", argument="y")
        weight = None if sample_weight is None else _columns.read_weights(sample_weight, column)
        if weight is not None and not weight.any():
            raise InputError("sample_weight must be positive in some row; got zero in every row.")
        fit_params, split_params = _routed(model, weight, params)
        return cls(X, y, code, label_array(names), weight, fit_params, split_params)

    def part(self, estimator: Any, rows: Ints) -> "TrainingRows":
        """Return some of the rows; the classes stay those of all rows."""
        X, y = _safe_split(estimator, self.X, self.y, rows)
        fit_params = {name: _part(value, rows, len(self.code)) for name, value in self.fit_params.items()}
        split_params = {name: _part(value, rows, len(self.code)) for name, value in self.split_params.items()}
        weight = None if self.weight is None else self.weight[rows]
        return TrainingRows(X, y, self.code[rows], self.classes, weight, fit_params, split_params)

    def splits(self, cv: Any) -> list[tuple[Ints, Ints]]:
        """Return training rows and test rows of each fold."""
        splitter = check_cv(cv, self.y, classifier=True)
        if cv is None or isinstance(cv, Integral):
            self._check_folds(splitter.get_n_splits())
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The least populated class", UserWarning)  # ours says it
            folds = [(np.asarray(a), np.asarray(b)) for a, b in splitter.split(self.X, self.y, **self.split_params)]
        if not folds:
            raise InputError("cv must give at least one fold; got none.", value=cv)
        return folds

    def _check_folds(self, folds: int) -> None:
        """Raise if no class has a row for each fold; warn if the rarest has not."""
        counts = np.bincount(self.code)
        if counts.max() < folds:
            raise InputError(
                f"cv must be at most the number of training rows of the most frequent class, {counts.max()}; got "
                f"{folds} folds.",
                hint="Use more rows or fewer folds.",
                value=folds,
            )
        if counts.min() < folds:
            warnings.warn(
                f"The rarest class has {counts.min()} rows, fewer than the {folds} folds: some folds have none of it.",
                CalibrantWarning,
                stacklevel=2,
            )


def _part(value: Any, rows: Ints, size: int) -> Any:
    per_row = hasattr(value, "__len__") and not isinstance(value, str) and _num_samples(value) == size
    return _safe_indexing(value, rows) if per_row else value


@dataclass(frozen=True)
class Responses:
    """Scores of rows: of the second of two classes, or one column per class; with classes and weights of the rows."""

    scores: Floats
    code: Ints
    weight: Floats | None

    def fit(self, calibrator: Calibrator, classes: NDArray[Any]) -> Calibrator:
        """Return the calibrator, fitted on these rows."""
        options = {"classes": range(len(classes))} if calibrator.takes == "classes" else {}
        calibrator.fit(_as_taken(calibrator, self.scores), self.code, self.weight, **options)
        calibrator.classes_ = classes
        return calibrator

    @property
    def table(self) -> ScoreTable | None:
        """The table of the scores of two classes; None for more."""
        if self.scores.ndim == 2:
            return None
        return ScoreTable.from_arrays(self.code, self.scores, sample_weight=self.weight)


def join_by_row(parts: list[Floats], tested: list[Ints]) -> tuple[Floats, Ints]:
    """Join the scores of folds; return them with their rows. A row in several folds has the mean of its scores."""
    scores, rows = np.concatenate(parts), np.concatenate(tested)
    distinct, place, times = np.unique(rows, return_inverse=True, return_counts=True)
    total = np.zeros((distinct.size, *scores.shape[1:]))
    np.add.at(total, place, scores)
    return total / times.reshape(-1, *[1] * (scores.ndim - 1)), distinct


def is_frozen(estimator: Any) -> bool:
    """Return whether the classifier is already fitted and must not be fitted again."""
    return isinstance(estimator, FrozenEstimator)


class ScoresAsModel(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose rows are its scores: one column of scores of the second of two classes, or probabilities."""

    def __init__(self, classes: NDArray[Any]) -> None:
        self.classes = classes

    @property
    def classes_(self) -> NDArray[Any]:
        return self.classes

    def fit(self, X: Any, y: Any) -> "ScoresAsModel":
        """Return itself; nothing is fitted."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict_proba(self, X: Any) -> Floats:
        """Return the scores, checked, one column per class."""
        if len(self.classes) == 2 and (np.ndim(X) < 2 or np.shape(X)[1] == 1):
            column = _columns.read(X, "X")
            _columns.refuse_missing([column])
            event = _columns.scores(column).values
            return np.column_stack([1 - event, event])
        read = ClassProbabilities.read(X, "X")
        _columns.refuse_missing(read.columns)
        check_column_count(read.matrix.shape[1], len(self.classes))
        return read.matrix


def model_of_scores(classes: NDArray[Any]) -> Any:
    """Return the frozen classifier that returns its rows as scores."""
    return FrozenEstimator(ScoresAsModel(classes))


def response_method(estimator: Any) -> str:
    """Return the method that gives scores: predict_proba, or else decision_function."""
    for method in ("predict_proba", "decision_function"):
        if hasattr(estimator, method):
            return method
    raise InputError(f"estimator must have predict_proba or decision_function; got {type(estimator).__name__}.")


def response(estimator: Any, X: Any, method: str, classes: NDArray[Any]) -> Floats:
    """Return scores of the second of two classes, or of all classes; a class unknown to the classifier has 0."""
    scores: Floats = np.asarray(getattr(estimator, method)(X), dtype=np.float64)
    fitted, labels = np.asarray(estimator.classes_).tolist(), classes.tolist()
    if method == "decision_function":
        if fitted != labels:
            raise InputError(
                f"Each fold must have all classes for decision_function; got {fitted} of {labels} in one fold.",
                hint="Use fewer folds, or a classifier with predict_proba.",
                argument="cv",
            )
        return scores
    if fitted != labels:
        placed = np.zeros((len(scores), len(labels)))
        placed[:, [labels.index(label) for label in fitted]] = scores
        scores = placed
    return scores[:, 1] if len(labels) == 2 else scores


def fit_on(estimator: Any, rows: TrainingRows | None) -> Any:
    """Return a fitted clone; a frozen classifier must be fitted already."""
    if is_frozen(estimator):
        try:
            check_is_fitted(estimator)
        except NotFittedError as error:
            raise InputError("estimator must be fitted if it is frozen; got an unfitted one.") from error
        return estimator
    assert rows is not None
    return clone(estimator).fit(rows.X, rows.y, **rows.fit_params)


def out_of_fold(
    estimator: Any, rows: TrainingRows, splits: list[tuple[Ints, Ints]], method: str, n_jobs: int | None = None
) -> Responses:
    """Return the score of each row by a classifier that was not fitted on it; a frozen one scores all rows at once."""
    if is_frozen(estimator):
        return Responses(response(fit_on(estimator, rows), rows.X, method, rows.classes), rows.code, rows.weight)
    scores: Iterable[Floats] = Parallel(n_jobs=n_jobs)(
        delayed(_scores_of_fold)(estimator, rows, train, test, method) for train, test in splits
    )
    return join_folds(list(scores), rows, splits)


def models_of_folds(
    estimator: Any, rows: TrainingRows, splits: list[tuple[Ints, Ints]], method: str, n_jobs: int | None = None
) -> tuple[list[Any], list[Floats]]:
    """Return the classifier of each fold, fitted without the fold's test rows, and its scores of these rows."""
    folds: list[tuple[Any, Floats]] = Parallel(n_jobs=n_jobs)(
        delayed(_model_of_fold)(estimator, rows, train, test, method) for train, test in splits
    )
    return [fitted for fitted, _ in folds], [scores for _, scores in folds]


def join_folds(parts: list[Floats], rows: TrainingRows, splits: list[tuple[Ints, Ints]]) -> Responses:
    """Return the scores of all folds' test rows as one, with their classes and weights."""
    scores, tested = join_by_row(parts, [test for _, test in splits])
    return Responses(scores, rows.code[tested], None if rows.weight is None else rows.weight[tested])


def _model_of_fold(estimator: Any, rows: TrainingRows, train: Ints, test: Ints, method: str) -> tuple[Any, Floats]:
    fitted = fit_on(estimator, rows.part(estimator, train))
    X, _ = _safe_split(estimator, rows.X, rows.y, test, train)
    return fitted, response(fitted, X, method, rows.classes)


def _scores_of_fold(estimator: Any, rows: TrainingRows, train: Ints, test: Ints, method: str) -> Floats:
    return _model_of_fold(estimator, rows, train, test, method)[1]


def _routed(model: Any, sample_weight: Any, params: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters of the classifier's fit and of the splitter, as requested or by default."""
    from sklearn import get_config

    if model.estimator is None:  # MetaCal with a sampler has no classifier
        return {}, {}
    if get_config()["enable_metadata_routing"]:
        routed = process_routing(model, "fit", sample_weight=sample_weight, **params)
        return dict(routed.estimator.fit), dict(routed.splitter.split)
    fit_params = dict(params)
    if sample_weight is not None:
        if has_fit_parameter(model.estimator, "sample_weight"):
            fit_params["sample_weight"] = sample_weight
        elif not is_frozen(model.estimator):
            warnings.warn(
                f"{type(model.estimator).__name__} takes no sample_weight: weights are used for calibration only.",
                CalibrantWarning,
                stacklevel=4,
            )
    return fit_params, {}
