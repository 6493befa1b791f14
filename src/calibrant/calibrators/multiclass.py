"""`ProbabilityMap`, the base of calibrators of class probabilities, and `OneVsRest`."""

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from calibrant._support import columns as _columns
from calibrant._support.arrays import Column, Floats, Ints
from calibrant._support.errors import CalibrantWarning, InputError, KnownKeywords, Note, join_notes
from calibrant.calibrators.binary import as_score_map
from calibrant.calibrators.class_maps import ClassMap, Normalised
from calibrant.calibrators.score_map import ScoreMap, label_array
from calibrant.tables.class_table import ClassProbabilities

__all__ = ["OneVsRest", "ProbabilityMap"]


class ProbabilityMap(KnownKeywords, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A calibrator of class probabilities; a subclass fits its map in `_fit_rows`.

    Attributes
    ----------
    map_ : a map of `calibrant.calibrators.class_maps`
        The fitted map: all that `calibrant.save`, `to_sql` and `to_onnx` need.
    classes_ : ndarray of labels
        The class of each column.
    notes_ : tuple of Note
        Notes about the rows of the fit.

    See Also
    --------
    ScoreMap, OneVsRest, Dirichlet

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet([2, 2, 2], 1000)
    >>> y = (proba.cumsum(axis=1) > rng.random((1000, 1)) ** 2).argmax(axis=1)
    >>> calibrator = cb.VectorScaling().fit(proba, y)
    >>> isinstance(calibrator, ProbabilityMap), calibrator.predict_proba(proba[:2]).shape
    (True, (2, 3))
    """

    kind: ClassVar[str] = "multiclass"
    # Kinds of map that a fit can give, numbers beside the map that go into files, and whether a fit needs rows of
    # each class.
    map_kinds: ClassVar[tuple[str, ...]] = ()
    saved_attributes: ClassVar[tuple[str, ...]] = ()
    needs_all_classes: ClassVar[bool] = False

    map_: Any

    @property
    def accepts_any_score(self) -> bool:
        """Whether scores may be any finite numbers; otherwise rows are probabilities."""
        return False

    def fit(
        self, X: Any, y: Column, sample_weight: Column | None = None, *, classes: Sequence[Any] | None = None
    ) -> Self:
        """Fit the map.

        Parameters
        ----------
        X : array or frame of shape (n, K)
            Class probabilities, one column per class; rows sum to 1.
        y : column of n labels
        sample_weight : column of n weights, optional
            Weight 2 equals two rows.
        classes : sequence of labels, optional
            The class of each column. By default the names of a frame's columns if these are labels of `y`; else the
            labels of `y`, sorted.

        Returns
        -------
        self
        """
        column = _columns.read(y, "y")
        _columns.refuse_missing([column])
        _columns.check_alignment({"X": X, "y": y, "sample_weight": sample_weight})
        names = _class_names(X, column, classes)
        code = _columns.codes(column, names)
        matrix, notes = self._read(X, len(names), any_score=self.accepts_any_score)
        if self.accepts_any_score and are_probabilities(matrix):
            matrix, notes = self._read(X, len(names), any_score=False)
        _columns.check_lengths([column, _columns.ColumnData("X", matrix)])
        weight = np.ones(code.size) if sample_weight is None else _columns.read_weights(sample_weight, column)
        if not weight.any():
            raise InputError("X must hold rows of positive weight; all weights are zero, or no rows.", argument="X")
        if self.needs_all_classes:
            _check_all_classes(self, code[weight > 0], names)
        used = weight > 0
        kept = self.__dict__.copy()
        try:
            self.notes_: tuple[Note, ...] = column.notes + notes
            self.map_ = self._fit_rows(matrix[used], code[used], weight[used])
        except BaseException:  # a fit that fails keeps the result of an earlier one
            self.__dict__ = kept
            raise
        self.classes_, self.n_features_in_ = label_array(names), len(names)
        return self

    def _read(self, X: Any, n_classes: int, *, any_score: bool) -> tuple[Floats, tuple[Note, ...]]:
        """Return the matrix, checked, and notes about it."""
        columns: Sequence[_columns.ColumnData]
        if np.ndim(X) == 2 and np.shape(X)[1] != n_classes:
            raise InputError(
                f"X must have one column for each of the {n_classes} classes; got {np.shape(X)[1]}.",
                hint="Pass classes=, the class of each column in order, if y lacks one.",
                argument="X",
            )
        if any_score:
            columns = [_columns.finite(_columns.read(column, "X")) for column in np.ma.asanyarray(X).T]
            matrix = np.column_stack([column.values for column in columns])
        else:
            read = ClassProbabilities.read(X, "X")
            columns, matrix = read.columns, read.matrix
        _columns.refuse_missing(columns)
        return matrix, join_notes(*(column.notes for column in columns))

    def _fit_rows(self, matrix: Floats, code: Ints, weight: Floats) -> ClassMap:
        raise NotImplementedError

    def accepts_map(self, map_: Any) -> bool:
        """Return whether a fit with these settings can give the map; `calibrant.load` and `save` check it.

        Parameters
        ----------
        map_ : map
            The map of a file or of another fit.

        Returns
        -------
        bool
            False where no fit with these settings gives such a map.
        """
        return map_.kind in self.map_kinds and map_.n_classes in (None, len(self.classes_))

    def __call__(self, X: Any) -> Floats:
        """Return calibrated probabilities: rows in the order given, columns in that of `classes_`.

        Parameters
        ----------
        X : array or frame of shape (n, K)
            Class probabilities before calibration, columns as in the fit.

        Returns
        -------
        array of shape (n, K)
            Each row sums to 1.
        """
        check_is_fitted(self)
        matrix, notes = self._read(X, len(self.classes_), any_score=self.map_.domain == "real")
        _check_order(X, self.classes_.tolist())
        for note in notes:
            if note.code == "clipped":
                warnings.warn(note.text, CalibrantWarning, stacklevel=2)
        calibrated: Floats = self.map_(matrix)
        return calibrated

    def predict_proba(self, X: Any) -> Floats:
        """Return the same as a call.

        Parameters
        ----------
        X : array or frame of shape (n, K)
            Class probabilities before calibration, columns as in the fit.

        Returns
        -------
        array of shape (n, K)
            Each row sums to 1.
        """
        return self(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row; the first of equally probable ones.

        Parameters
        ----------
        X : array or frame of shape (n, K)
            Class probabilities before calibration, columns as in the fit.

        Returns
        -------
        array
            One label per row.
        """
        likeliest = self(X).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[likeliest]
        return labels

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "map_")


def are_probabilities(matrix: Floats) -> bool:
    """Return whether all rows are probabilities of sum 1, up to the tolerance of reading."""
    inside = bool((matrix >= -_columns.CLIP_TOLERANCE).all() and (matrix <= 1 + _columns.CLIP_TOLERANCE).all())
    return inside and bool((np.abs(matrix.sum(axis=1) - 1) <= _columns.CLIP_TOLERANCE * matrix.shape[1]).all())


def score_domain(matrix: Floats) -> str:
    """Return the domain of a map that was fitted on the rows: all that it takes later."""
    return "probability" if are_probabilities(matrix) else "real"


def _class_names(X: Any, y: _columns.ColumnData, classes: Sequence[Any] | None) -> list[Any]:
    """Return the class of each column: `classes`, the names of a frame's columns if they are labels, or the labels."""
    if classes is not None:
        return _columns.check_classes(classes)
    found = _columns.classes(y)
    names = list(X.columns) if hasattr(X, "columns") else []
    named = len(set(names)) == len(names) > 1 and set(found) <= set(names)
    return names if named else found


def _check_order(X: Any, classes: list[Any]) -> None:
    """Refuse a frame whose columns are named by the classes, in another order."""
    names = list(X.columns) if hasattr(X, "columns") else classes
    if names != classes and set(names) == set(classes):
        raise InputError(
            f"X must have its columns in the order of the fit, {classes}; got {names}.",
            hint="Select the columns in that order.",
            argument="X",
        )


def _check_all_classes(calibrator: Any, code: Ints, names: list[Any]) -> None:
    present = np.bincount(code, minlength=len(names)) > 0
    if not present.all():
        absent = names[int(np.argmin(present))]
        raise InputError(
            f"y must hold rows of each class for {type(calibrator).__name__}; got none of {absent!r} "
            f"({np.count_nonzero(~present)} of {len(names)} classes have no rows).",
            hint="Remove its column, or use SoftmaxTemperature or OneVsRest, which need no rows of each class.",
            argument="y",
        )


class OneVsRest(ProbabilityMap):
    r"""One-vs-rest calibration: a binary calibrator per class, and the results divided by their sum.

    .. math::

       q_c = \frac{f_c(p_c)}{\sum_{j=1}^{K} f_j(p_j)}

    Parameters
    ----------
    calibrator : binary calibrator or its name in `CALIBRATORS`, default=Platt()
        Cloned for each class.

    Attributes
    ----------
    calibrators_ : list of fitted binary calibrators, one per class
    map_, classes_, notes_
        As for all multiclass calibrators.

    See Also
    --------
    PairwiseCoupling, SoftmaxTemperature, Dirichlet

    Notes
    -----
    With a calibrator that takes any scores, such as `Isotonic`, X may hold margins. If the rows of the fit are
    probabilities of sum 1, later rows must be too.

    If all classes get 0 (only maps that give 0 can do that), each gets 1 / K. Classes without rows are calibrated as
    the binary calibrator does it for rows without events.

    References
    ----------
    .. [1] Zadrozny & Elkan (2002), "Transforming classifier scores into accurate multiclass probability estimates".

    Examples
    --------
    >>> proba = np.array([[0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7], [0.6, 0.3, 0.1]])
    >>> OneVsRest("isotonic").fit(proba, ["a", "b", "c", "a"]).classes_.tolist()
    ['a', 'b', 'c']
    >>> OneVsRest().fit(proba, ["a", "b", "c", "a"])(proba).sum(axis=1)
    array([1., 1., 1., 1.])
    """

    map_kinds: ClassVar[tuple[str, ...]] = ("normalised",)

    def __init__(self, calibrator: ScoreMap | str | None = None) -> None:
        self.calibrator = calibrator

    @property
    def accepts_any_score(self) -> bool:
        return as_score_map(self.calibrator).accepts_any_score

    def _fit_rows(self, matrix: Floats, code: Ints, weight: Floats) -> ClassMap:
        calibrator = as_score_map(self.calibrator)
        self.calibrators_ = [
            clone(calibrator).fit(matrix[:, j], (code == j).astype(np.int8), weight) for j in range(matrix.shape[1])
        ]
        return Normalised([each.map_ for each in self.calibrators_], score_domain(matrix))
