"""`ScoreMap`, the base of all calibrators of one column of scores, and `Identity`."""

import warnings
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from calibrant._support import columns as _columns
from calibrant._support.arrays import Column, Floats
from calibrant._support.errors import CalibrantWarning, InputError, Note, join_notes
from calibrant.calibrators import maps
from calibrant.calibrators.calibrator import (
    Calibrator,
    PredictsClasses,
    label_array,
    need_target,
    plain_labels,
    refuse_beside_table,
    restore_labels,
)
from calibrant.metrics.log_odds import count_clipped
from calibrant.tables.score_table import ScoreTable, count_any_scores

_SEVERAL_CLASSES = "For several classes wrap the calibrator in calibrant.calibrators.OneVsRest."


class ScoreMap(PredictsClasses, Calibrator):
    """A calibrator of one column of scores; a subclass fits its map in `_fit_table`.

    Scores that all lie in [0, 1] in the fit are probabilities: a score outside [0, 1] is then an `InputError`. A
    calibrator that was fitted on other scores, such as the margins of an SVM, takes any finite scores. Beyond the
    scores of the fit the map goes on as its class documents.

    Attributes
    ----------
    map_ : a map of `calibrant.calibrators.maps`
        The fitted map: all that `calibrant.save`, `to_sql` and `to_onnx` need.
    classes_ : ndarray of two labels
        The second is the event whose probability the scores are.
    notes_ : tuple of Note
        Notes about the rows of the fit.

    See Also
    --------
    ProbabilityMap, PointMap, DistributionMap

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> calibrator = cb.Platt(on="logit").fit(p, rng.random(2000) < p**2)
    >>> isinstance(calibrator, ScoreMap), calibrator([0.2, 0.8]).round(2)
    (True, array([0.05, 0.64]))
    """

    kind: ClassVar[str] = "binary"
    is_increasing: ClassVar[bool] = True
    gives_probabilities: ClassVar[bool] = True
    any_score: ClassVar[bool] = False  # the value of `accepts_any_score`, unless it depends on settings

    n_clipped_: float

    @property
    def accepts_any_score(self) -> bool:
        """Whether scores may be any finite numbers, such as the margins of an SVM; otherwise they lie in [0, 1]."""
        return self.any_score

    def fit(self, X: Column | ScoreTable, y: Column | None = None, sample_weight: Column | None = None) -> Self:
        """Fit the map.

        Parameters
        ----------
        X : column of n scores, of shape (n,) or (n, 1), or a ScoreTable
            Scores of the event. A table holds outcomes and weights: give neither with it.
        y : column of n outcomes
            Two labels; where they are not 0 and 1 the greater one, in sorted order, is the event, as in scikit-learn.
        sample_weight : column of n weights, optional
            Their sum is used as the number of rows: weight 2 equals two rows, and weights of sum 10 count as ten rows.

        Returns
        -------
        self
        """
        table, classes = read_table(X, y, sample_weight, any_score=self.accepts_any_score)
        table = table.rows_by_weight()
        with self._keeping_earlier_fit():
            self.notes_ = table.notes
            low, high = table.extremes
            domain: maps.Domain = "probability" if low >= 0 and high <= 1 else "real"
            self.map_ = maps.restrict(self._fit_table(table), domain)
        self.classes_ = classes
        self.n_features_in_: int = 1
        return self

    def _fit_table(self, table: ScoreTable) -> maps.Map:
        raise NotImplementedError

    def _count_clipped(self, table: ScoreTable, eps: float) -> None:
        """Count the rows whose score is clipped to [eps, 1 - eps] before its logit is taken."""
        self.n_clipped_, notes = count_clipped(table, eps)
        self.notes_ += notes

    def _note(self, code: str, text: str, count: int = 1, *, warn: bool = False) -> None:
        """Add a note; with `warn`, issue it as a warning, because the result is easily misread."""
        self.notes_ = join_notes(self.notes_, [Note(code, count, text)])
        if warn:
            warnings.warn(f"{type(self).__name__}: {text}", CalibrantWarning, stacklevel=4)

    def __call__(self, score: Column) -> Floats:
        """Return the calibrated probability of each score, in the order given.

        Parameters
        ----------
        score : column of n scores
            In [0, 1], or any finite numbers if the fit was on margins; none missing.

        Returns
        -------
        array of shape (n,)
        """
        scores = self._read_scores(score)  # first: it raises where nothing is fitted
        return np.asarray(self.map_(scores))

    def _read_scores(self, score: Column) -> Floats:
        """Read scores of the fitted map's domain, none missing."""
        check_is_fitted(self)
        column = _columns.read(score, "X")
        _columns.refuse_missing([column])
        column = _columns.scores(column) if self.map_.domain == "probability" else _columns.finite(column)
        for note in column.notes:
            if note.code == "clipped":
                warnings.warn(note.text, CalibrantWarning, stacklevel=3)
        return np.asarray(column.values)

    def predict_proba(self, X: Column) -> Floats:
        """Return the probabilities of both classes, in the order of `classes_`.

        Parameters
        ----------
        X : column of n scores
            As for a call.

        Returns
        -------
        array of shape (n, 2)
            Each row sums to 1.
        """
        event = self(X)
        return np.column_stack([1 - event, event])

    def to_state(self) -> dict[str, Any]:
        return plain_labels(self.classes_) | super().to_state() | self._plain_numbers()

    def restore_state(self, state: dict[str, Any]) -> None:
        self.classes_ = restore_labels(state, count=2, owner=type(self).__name__)
        super().restore_state(state)
        self.n_features_in_ = 1
        self._restore_numbers(state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def read_table(
    X: Column | ScoreTable, y: Column | None, sample_weight: Column | None, *, any_score: bool
) -> tuple[ScoreTable, NDArray[Any]]:
    """Return the table of the rows to fit, and the two labels."""
    if isinstance(X, ScoreTable):
        refuse_beside_table(X, y, sample_weight)
        if not len(X):
            raise InputError("X must hold at least one row; got an empty table.", argument="X")
        return X, np.array([0, 1])
    need_target(y, "This calibrator", "Pass scores and outcomes, or one ScoreTable.")
    column, scores = _columns.read(y, "y"), _columns.read(X, "X")
    _columns.check_lengths([column, scores])
    _columns.check_alignment({"X": X, "y": y, "sample_weight": sample_weight})
    _columns.refuse_missing([column, scores])
    if not len(column):
        raise InputError("X and y must hold at least one row; got no rows.", argument="X")
    event, classes = two_classes(column)
    values = scores.values
    is_probability = values.dtype.kind == "f" and bool(values.min() >= 0 and values.max() <= 1)
    if any_score and not is_probability:
        return count_any_scores(event, scores.values, sample_weight), classes
    return ScoreTable.from_arrays(event, _columns.scores(scores).values, sample_weight=sample_weight), classes


def two_classes(y: _columns.ColumnData, hint: str = _SEVERAL_CLASSES) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the outcomes as 0 and 1, and the labels that these stand for; `hint` helps if there are more."""
    values = y.values
    if values.dtype.kind in "biuf" and bool(((values == 0) | (values == 1)).all()):
        return values, np.array([False, True]) if values.dtype.kind == "b" else np.array([0, 1])
    if values.dtype.kind == "f" and bool((values != np.floor(values)).any()):
        row = int(np.argmax(values != np.floor(values)))
        raise InputError(
            f"Unknown label type: y must hold two labels; got {values[row]:.6g} (row {row}), which is not a class.",
            hint="Soft labels are not outcomes: pass observed labels.",
            argument="y",
            row=row,
            value=values[row].item(),
        )
    labels, code = _columns.encode(y)
    if len(labels) == 2:
        return code, label_array(labels)
    raise InputError(
        "Only binary classification is supported by a map of one score: y must hold two classes; got "
        + (f"{len(labels)} classes." if len(labels) != 1 else f"1 class, {labels[0]!r}."),
        hint=f"{hint} For one class pass 0 and 1.",
        argument="y",
    )


class Identity(ScoreMap):
    """No change: each score is its own calibrated probability, bitwise.

    `AutoCalibrator` uses it if no calibrator is shown to improve the scores, so that its ``calibrator_`` can always be
    called, saved and exported.

    See Also
    --------
    AutoCalibrator, Platt

    Examples
    --------
    >>> Identity().fit([0.2, 0.7], [0, 1])([0.1, 0.3])
    array([0.1, 0.3])
    """

    map_kinds: ClassVar[tuple[str, ...]] = ("segments",)

    def accepts_map(self, map_: Any) -> bool:
        return bool(map_.x.tolist() == map_.y.tolist() == [0.0, 1.0] and map_.domain == "probability")

    def _fit_table(self, table: ScoreTable) -> maps.Map:
        ends = np.array([0.0, 1.0])
        return maps.Segments(ends, ends, domain="probability")
