"""`ProbabilityMap`, the base of calibrators of class probabilities, and those that calibrate scores one by one."""

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from calibrant._support import columns as _columns
from calibrant._support.arrays import Column, Floats, Ints
from calibrant._support.errors import CalibrantWarning, InputError, Note, check_count, check_option, join_notes
from calibrant._support.logistic import EPS, check_eps
from calibrant.calibrators import maps
from calibrant.calibrators.calibrator import (
    Calibrator,
    PredictsClasses,
    check_column_count,
    label_array,
    plain_labels,
    plain_notes,
    restore_labels,
    restore_notes,
)
from calibrant.calibrators.class_maps import CLASS_MAPS, ClassMap, Coupling, Normalised, Thresholds, TopLabel
from calibrant.calibrators.score_map import ScoreMap
from calibrant.tables.class_table import ClassProbabilities
from calibrant.tables.score_table import ScoreTable


class ProbabilityMap(PredictsClasses, Calibrator):
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
    >>> calibrator = cb.calibrators.VectorScaling().fit(proba, y)
    >>> isinstance(calibrator, ProbabilityMap), calibrator.predict_proba(proba[:2]).shape
    (True, (2, 3))
    """

    kind: ClassVar[str] = "multiclass"
    takes: ClassVar[Literal["column", "classes", "distributions"]] = "classes"
    needs_all_classes: ClassVar[bool] = False  # whether a fit needs rows of each class

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
        with self._keeping_earlier_fit():
            self.notes_ = column.notes + notes
            self.map_ = self._fit_rows(matrix[used], code[used], weight[used])
        self.classes_ = label_array(names)
        self.n_features_in_: int = len(names)
        return self

    def _read(self, X: Any, n_classes: int, *, any_score: bool) -> tuple[Floats, tuple[Note, ...]]:
        """Return the matrix, checked, and notes about it."""
        columns: Sequence[_columns.ColumnData]
        if np.ndim(X) == 2:
            hint = "Pass classes=, the class of each column in order, if y lacks one."
            check_column_count(np.shape(X)[1], n_classes, hint)
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
        return map_.kind in self.map_kinds and map_.n_classes in (None, len(self.classes_))

    def to_state(self) -> dict[str, Any]:
        map_ = self._plain_map()
        return plain_labels(self.classes_) | {"notes": plain_notes(self.notes_)} | self._plain_numbers() | map_

    def restore_state(self, state: dict[str, Any]) -> None:
        self.classes_ = restore_labels(state)
        self.n_features_in_ = len(self.classes_)
        self._restore_map(self._read_map(state), "its settings and classes")
        self.notes_ = restore_notes(state.pop("notes", None))
        self._restore_numbers(state)

    def _read_map(self, state: dict[str, Any]) -> ClassMap:
        map_: ClassMap = maps.from_dict(state.pop("map", {}), CLASS_MAPS)
        return map_

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
        return np.asarray(self.map_(matrix))

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


def are_probabilities(matrix: Floats) -> bool:
    """Return whether all rows are probabilities of sum 1, up to the tolerance of reading."""
    inside = bool((matrix >= -_columns.CLIP_TOLERANCE).all() and (matrix <= 1 + _columns.CLIP_TOLERANCE).all())
    return inside and bool((np.abs(matrix.sum(axis=1) - 1) <= _columns.CLIP_TOLERANCE * matrix.shape[1]).all())


def _class_names(X: Any, y: _columns.ColumnData, classes: Sequence[Any] | None) -> list[Any]:
    """Return the class of each column: `classes`, the names of a frame's columns if they are labels, or the labels."""
    if classes is not None:
        return _columns.check_classes(classes)
    labels = _columns.classes(y)
    names = list(X.columns) if hasattr(X, "columns") else []
    named = len(set(names)) == len(names) > 1 and set(labels) <= set(names)
    return names if named else labels


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
        )


class _OfScoreMaps(ProbabilityMap):
    """A calibrator of class probabilities that holds fitted calibrators of one score each."""

    calibrator: ScoreMap | str | None
    calibrators_: list[ScoreMap]
    map_field: ClassVar[str] = ""  # of the file: what determines the map besides the calibrators, if anything does

    @property
    def _score_map(self) -> ScoreMap:
        from calibrant.calibrators.registry import as_score_map  # which holds this class too

        return as_score_map(self.calibrator)

    def _compose(self, fitted: list[maps.Map], value: Any) -> ClassMap:
        """Return the map of the maps of one score and of the value of `map_field`."""
        raise NotImplementedError

    def _plain_map(self) -> dict[str, Any]:
        name = self.map_field
        own = {name: super()._plain_map()["map"][name]} if name else {}
        return own | {"calibrators": self.calibrators_}

    def _read_map(self, state: dict[str, Any]) -> ClassMap:
        name, fitted = type(self).__name__, state.pop("calibrators", None)
        if not isinstance(fitted, list) or not fitted:
            raise InputError(f"{name} must have a list of calibrators.")
        first = fitted[0]
        alike = all(type(other) is type(first) and other.get_params() == first.get_params() for other in fitted)
        if not isinstance(first, ScoreMap) or not alike:
            raise InputError(f"{name} must have binary calibrators of one kind and the same settings.")
        self.calibrators_, self.calibrator = fitted, clone(first)
        return self._compose([calibrator.map_ for calibrator in fitted], state.pop(self.map_field, None))


@dataclass(eq=False, repr=False)
class OneVsRest(_OfScoreMaps):
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
    map_field: ClassVar[str] = "domain"

    calibrator: ScoreMap | str | None = None

    @property
    def accepts_any_score(self) -> bool:
        return self._score_map.accepts_any_score

    def _fit_rows(self, matrix: Floats, code: Ints, weight: Floats) -> ClassMap:
        calibrator = self._score_map
        self.calibrators_ = [
            clone(calibrator).fit(matrix[:, j], (code == j).astype(np.int8), weight) for j in range(matrix.shape[1])
        ]
        domain = "probability" if are_probabilities(matrix) else "real"
        return self._compose([fitted.map_ for fitted in self.calibrators_], domain)

    def _compose(self, fitted: list[maps.Map], value: Any) -> Normalised:
        return Normalised(fitted, value)


@dataclass(eq=False, repr=False)
class PairwiseCoupling(_OfScoreMaps):
    r"""Pairwise calibration: a binary calibrator per pair of classes, coupled to class probabilities.

    For classes i < j, the rows of either class and their scores :math:`p_i / (p_i + p_j)` fit a binary calibrator,
    which predicts :math:`r_{ij} = P(y = i \mid y \in \{i, j\})`. The probabilities of all pairs are coupled: q
    minimises the weighted Kullback-Leibler divergence between :math:`r_{ij}` and :math:`q_i / (q_i + q_j)`,

    .. math::

       \sum_{i < j} n_{ij} \left[ r_{ij} \ln \frac{r_{ij}}{\mu_{ij}} + (1 - r_{ij}) \ln \frac{1 - r_{ij}}{1 - \mu_{ij}}
       \right], \qquad \mu_{ij} = \frac{q_i}{q_i + q_j}

    with :math:`n_{ij}` the number of rows of the pair.

    Parameters
    ----------
    calibrator : binary calibrator or its name in `CALIBRATORS`, default=Platt()
        Cloned for each pair.
    eps : float, default=2**-24
        Probabilities below `eps` are clipped to it; calibrated probabilities of pairs are clipped to
        [eps, 1 - eps].

    Attributes
    ----------
    calibrators_ : list of fitted binary calibrators, in the order of the pairs (0, 1), (0, 2), ..., (1, 2), ...
    n_clipped_ : float
        Rows, by weight, with a clipped probability.
    map_, classes_, notes_
        As for all multiclass calibrators.

    See Also
    --------
    OneVsRest, Dirichlet

    Notes
    -----
    Fits K (K - 1) / 2 binary calibrators. Each class must have rows. Scores must be probabilities. If each pair keeps
    its score, the result is the original probabilities. The coupling is an optimisation per row, so it has no SQL and
    no ONNX form; `calibrant.save` works.

    References
    ----------
    .. [1] Hastie & Tibshirani (1998), "Classification by pairwise coupling".
    .. [2] Zadrozny & Elkan (2002), "Transforming classifier scores into accurate multiclass probability estimates".

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet([1, 1, 1], 3000)
    >>> y = (proba.cumsum(axis=1) > rng.random((3000, 1))).argmax(axis=1)
    >>> cal = PairwiseCoupling("beta").fit(proba, y)
    >>> len(cal.calibrators_), bool(np.abs(cal(proba) - proba).mean() < 0.02)
    (3, True)
    """

    map_kinds: ClassVar[tuple[str, ...]] = ("coupling",)
    map_field: ClassVar[str] = "sizes"
    saved_attributes: ClassVar[tuple[str, ...]] = ("n_clipped_",)
    needs_all_classes: ClassVar[bool] = True

    calibrator: ScoreMap | str | None = None
    _: KW_ONLY
    eps: float = EPS

    def accepts_map(self, map_: Any) -> bool:
        return bool(super().accepts_map(map_) and map_.eps == self.eps)

    def _fit_rows(self, matrix: Floats, code: Ints, weight: Floats) -> ClassMap:
        check_eps(self.eps)
        calibrator = self._score_map
        self.n_clipped_: float = float(weight[(matrix < self.eps).any(axis=1)].sum())
        p = np.maximum(matrix, self.eps)
        self.calibrators_, sizes = [], []
        for i, j in zip(*np.triu_indices(matrix.shape[1], 1), strict=True):
            rows = (code == i) | (code == j)
            score = p[rows, i] / (p[rows, i] + p[rows, j])
            self.calibrators_.append(clone(calibrator).fit(score, (code[rows] == i).astype(np.int8), weight[rows]))
            sizes.append(weight[rows].sum())
        return self._compose([fitted.map_ for fitted in self.calibrators_], np.array(sizes))

    def _compose(self, fitted: list[maps.Map], value: Any) -> Coupling:
        return Coupling(fitted, value, self.eps)


class Cumulative(_OfScoreMaps):
    r"""Calibration of ordered classes: a binary calibrator of each cumulative probability.

    For each class k but the highest, :math:`P(y \le k) = p_1 + \dots + p_k` is the score of the event that the outcome
    is at most k, and fits a binary calibrator :math:`f_k`. Where the calibrated values of a row fall from one threshold
    to the next, which no probabilities can, each becomes the mean of the largest value up to its threshold and the
    smallest from it on,

    .. math::

       F_k = \tfrac{1}{2} \left( \max_{j \le k} f_j + \min_{j \ge k} f_j \right)

    and class k gets :math:`F_k - F_{k-1}`, which is at least 0.

    Parameters
    ----------
    calibrator : binary calibrator or its name in `CALIBRATORS`, default=Platt()
        Cloned for each threshold.
    eps : float, default=2**-24
        Calibrated probabilities are at least `eps`, so that no log loss is infinite: a probability q becomes
        :math:`\epsilon + (1 - K \epsilon) q`.

    Attributes
    ----------
    calibrators_ : list of fitted binary calibrators, one per class but the highest
    map_, classes_, notes_
        As for all multiclass calibrators.

    See Also
    --------
    OneVsRest, Dirichlet, VectorScaling

    Notes
    -----
    Columns run from the lowest class to the highest. `fit` sorts labels, so pass it ``classes=["low", "mid", "high"]``
    where the order of the classes is another. The reversed order gives the same probabilities if the binary calibrator
    treats an event and its absence alike, as `Platt`, `Beta` and `Isotonic` do.

    A threshold without rows on one of its sides is calibrated as the binary calibrator does it for rows without events
    or with nothing else.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet([2, 2, 2], 3000)
    >>> y = (proba.cumsum(axis=1) > rng.random((3000, 1)) ** 1.5).argmax(axis=1)
    >>> cal = Cumulative("beta").fit(proba, y)
    >>> len(cal.calibrators_), cal(proba).sum(axis=1)[:2], bool((cal(proba) >= 0).all())
    (2, array([1., 1.]), True)
    >>> share = np.bincount(y) / 3000
    >>> [round(float(abs(each.mean(axis=0) - share).max()), 2) for each in (proba, cal(proba))]
    [0.12, 0.0]
    """

    kind: ClassVar[str] = "ordinal"
    map_kinds: ClassVar[tuple[str, ...]] = ("thresholds",)

    def __init__(self, calibrator: ScoreMap | str | None = None, *, eps: float = EPS) -> None:
        self.calibrator = calibrator
        self.eps = eps

    def _fit_rows(self, matrix: Floats, code: Ints, weight: Floats) -> ClassMap:
        check_eps(self.eps)
        calibrator = self._score_map
        below = np.minimum(np.cumsum(matrix, axis=1), 1.0)[:, :-1]
        self.calibrators_ = [
            clone(calibrator).fit(score, (code <= k).astype(np.int8), weight) for k, score in enumerate(below.T)
        ]
        return self._compose([fitted.map_ for fitted in self.calibrators_], None)

    def _compose(self, fitted: list[maps.Map], value: Any) -> Thresholds:
        return Thresholds(fitted, self.eps)


_POINTS = 51  # maximum number of points of the fitted curve


@dataclass(eq=False, repr=False, kw_only=True)
class Spline(ProbabilityMap):
    r"""Spline calibration: a natural cubic spline of the cumulative difference between outcomes and scores.

    Rows are sorted by score s, and u is their share of all rows. With y = 1 if the class of the score occurred, the
    cumulative difference

    .. math::

       D(u) = \frac{1}{N} \sum_{i \le u N} (y_i - s_i)

    is fitted by least squares with a natural cubic spline over `n_knots` equally spaced knots in u, which starts at 0
    as D does. Its derivative estimates how much the event rate at a score exceeds the score, so that a score is mapped
    to :math:`s + D'(u(s))`.

    Parameters
    ----------
    on : {"top_label", "classwise"}, default="top_label"
        The scores that are recalibrated. ``"top_label"``: the highest probability of each row, whose class is right or
        wrong. ``"classwise"``: each class's probability, against the rest; the results are divided by their sum.
    n_knots : int, default=6
        Number of knots, the two ends included; at least 2. With fewer distinct scores, one more than these.
    eps : float, default=2**-24
        Calibrated scores are clipped to [eps, 1 - eps].

    Attributes
    ----------
    map_, classes_, notes_
        As for all multiclass calibrators.

    See Also
    --------
    Isotonic, Beta, SoftmaxTemperature

    Notes
    -----
    ``"top_label"`` returns the calibrated confidence q for the most probable class (the first of equals), and for each
    other class its probability times (1 - q) / (1 - confidence): the others keep their proportions and the row sums to
    1. If the others are all 0 they share 1 - q equally. If q is low enough, another class can become the most
    probable one. Classes without rows are allowed with ``"top_label"``.

    Equal scores count as one point with their weight, so row order has no effect. The curve is stored at up to 51
    scores of equally spaced ranks, with straight lines between them; beyond the scores of the fit the difference
    between calibrated and original score is constant. It need not rise.

    The authors fit the same difference; their spline is free at u = 0. With ``"classwise"`` and classes of low
    probability, estimates below 0 are clipped to `eps`, which costs log loss; prefer ``OneVsRest(Isotonic())`` then.

    References
    ----------
    .. [1] Gupta, Rahimi, Ajanthan, Mensink, Sminchisescu & Hartley (2021), "Calibration of neural networks using
       splines".

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.dirichlet([1, 1, 1], 5000)
    >>> y = (truth.cumsum(axis=1) > rng.random((5000, 1))).argmax(axis=1)
    >>> sharp = truth**2 / (truth**2).sum(axis=1, keepdims=True)
    >>> gap = np.abs(Spline().fit(sharp, y)(sharp).max(axis=1) - truth.max(axis=1)).mean()
    >>> bool(gap < 0.05 < np.abs(sharp.max(axis=1) - truth.max(axis=1)).mean())
    True
    """

    map_kinds: ClassVar[tuple[str, ...]] = ("top_label", "normalised")

    on: Literal["top_label", "classwise"] = "top_label"
    n_knots: int = 6
    eps: float = EPS

    def accepts_map(self, map_: Any) -> bool:
        on, curves = ("top_label", [map_.confidence]) if map_.kind == "top_label" else ("classwise", map_.per_class)
        inside = all(m.kind == "segments" and m.y.min() >= self.eps and m.y.max() <= 1 - self.eps for m in curves)
        return bool(super().accepts_map(map_) and inside and on == self.on)

    def _fit_rows(self, matrix: Floats, code: Ints, weight: Floats) -> ClassMap:
        check_option("on", self.on, ("top_label", "classwise"))
        check_count("n_knots", self.n_knots - 1)
        check_eps(self.eps)
        if self.on == "top_label":
            top = matrix.argmax(axis=1)
            return TopLabel(self._segments(matrix[np.arange(top.size), top], code == top, weight))
        columns = range(matrix.shape[1])
        return Normalised([self._segments(matrix[:, j], code == j, weight) for j in columns])

    def _segments(self, score: Floats, event: Any, weight: Floats) -> maps.Map:
        """Return the map of one column of scores."""
        table = ScoreTable.from_arrays(event, score, sample_weight=weight)
        n, k = np.asarray(table.n, dtype=np.float64), np.asarray(table.k, dtype=np.float64)
        share = np.cumsum(n) / n.sum()
        excess = slope_of_cumulative(share, np.cumsum(k - n * table.score) / n.sum(), n, self.n_knots)
        middle = share - n / n.sum() / 2
        places = np.unique(np.searchsorted(middle, np.linspace(0, 1, _POINTS)).clip(0, middle.size - 1))
        places = np.unique(np.append(places, [0, middle.size - 1]))
        x, shift = table.score[places], excess(middle[places])
        ends = [end for end in (0.0, 1.0) if end not in x]
        order = np.argsort(np.append(x, ends))
        x = np.append(x, ends)[order]
        shift = np.append(shift, [shift[0 if end == 0 else -1] for end in ends])[order]
        return maps.Segments(x, np.clip(x + shift, self.eps, 1 - self.eps))


def slope_of_cumulative(share: Floats, cumulative: Floats, weight: Floats, n_knots: int) -> Any:
    """Return the derivative of the natural cubic spline that fits the cumulative values best and is 0 at 0."""
    from scipy.interpolate import CubicSpline

    knots = np.linspace(0, 1, min(n_knots, share.size + 1))
    # One spline for each knot, with value 1 there and 0 at the others; that of the first knot is left out.
    basis = CubicSpline(knots, np.eye(knots.size)[:, 1:], bc_type="natural")
    root = np.sqrt(weight / weight.sum())
    heights, *_ = np.linalg.lstsq(basis(share) * root[:, None], cumulative * root, rcond=None)
    return CubicSpline(knots, np.append(0.0, heights), bc_type="natural").derivative()
