"""Class proportions (calibration of type CD): does a classifier predict each class as often as it occurs?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from calibrant._support import class_labels
from calibrant._support import columns as _columns
from calibrant._support.arrays import read_only
from calibrant._support.errors import InputError, Note, join_notes
from calibrant._support.json_values import label
from calibrant._support.option_checks import known_keywords
from calibrant._support.typing import Column, Floats, Ints

__all__ = ["Proportions", "proportions", "refuse_probabilities"]


@dataclass(frozen=True, eq=False, repr=False)
class Proportions:
    """Predicted against actual class proportions; see `proportions`.

    Attributes
    ----------
    labels : list
    confusion : ndarray of int64
        ``confusion[i, j]``: rows whose actual class is ``labels[i]`` and whose predicted class is ``labels[j]``.
    groups : dict
        The same for every group, when `by` was given.
    """

    labels: list[Any]
    confusion: Ints
    groups: Mapping[Any, "Proportions"]
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "confusion", read_only(self.confusion))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"groups": dict(self.groups)}  # a read-only view of a mapping cannot be copied

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state | {"groups": MappingProxyType(state["groups"])})
        self.__post_init__()

    @property
    def size(self) -> int:
        """Number of rows."""
        return int(self.confusion.sum())

    @property
    def actual(self) -> Floats:
        """Share of every class among the outcomes."""
        return np.asarray(self.confusion.sum(axis=1) / self.size)

    @property
    def predicted(self) -> Floats:
        """Share of every class among the predictions."""
        return np.asarray(self.confusion.sum(axis=0) / self.size)

    @property
    def difference(self) -> Floats:
        """Predicted minus actual share: positive for a class that is predicted too often."""
        return self.predicted - self.actual

    @property
    def accuracy(self) -> float:
        """Share of rows whose class was predicted."""
        return float(np.trace(self.confusion) / self.size)

    @property
    def recall(self) -> Floats:
        """Share of every class that was predicted as such; NaN for a class that does not occur."""
        return _ratio(np.diag(self.confusion), self.confusion.sum(axis=1))

    @property
    def precision(self) -> Floats:
        """Share of every class's predictions that were right; NaN for a class that is never predicted."""
        return _ratio(np.diag(self.confusion), self.confusion.sum(axis=0))

    @property
    def macro_accuracy(self) -> float:
        """Mean of the classes' own accuracies (recalls), over classes that occur."""
        return float(np.nanmean(self.recall))

    @property
    def f_measure(self) -> float:
        """Mean over classes of the harmonic mean of precision and recall, 2 right / (actual + predicted)."""
        total = self.confusion.sum(axis=0) + self.confusion.sum(axis=1)
        return float(np.nanmean(_ratio(2 * np.diag(self.confusion), total)))

    @property
    def _mistaken(self) -> Ints:
        """Return the classes with a confusion, as actual or as predicted class."""
        off = self.confusion - np.diag(np.diag(self.confusion))
        return np.flatnonzero(off.sum(axis=0) + off.sum(axis=1))

    @property
    def test(self) -> str:
        """Name of the test behind `pvalue`: exact where mistakes concern two classes only, else asymptotic."""
        return "McNemar, exact" if self._mistaken.size <= 2 else "Stuart-Maxwell"

    @property
    def pvalue(self) -> float:
        """P-value of "both proportions are the same"; paired, because predictions and outcomes share their rows."""
        used = self._mistaken
        confusion = self.confusion[np.ix_(used, used)]
        if used.size == 0:
            return 1.0
        return _mcnemar(confusion) if used.size == 2 else _stuart_maxwell(confusion)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON."""
        return {
            "schema_version": 1,
            "labels": [label(name) for name in self.labels],
            "confusion": {"rows": "actual", "columns": "predicted", "counts": self.confusion.tolist()},
            "actual": self.actual.tolist(),
            "predicted": self.predicted.tolist(),
            "test": self.test,
            "pvalue": self.pvalue,
            "accuracy": self.accuracy,
            "macro_accuracy": self.macro_accuracy,
            "f_measure": self.f_measure,
            "groups": [{"group": label(name), **group.to_dict()} for name, group in self.groups.items()],
            "notes": [note.to_dict() for note in self.notes],
        }

    def __repr__(self) -> str:
        names = [str(label) for label in self.labels]
        width = max(8, *(len(name) + 2 for name in names))
        head = "actual \\ predicted"
        lines = [f"class proportions of {self.size:,} rows: {self.test} p = {self.pvalue:.4g}"]
        lines.append(f"  {head:>20}" + "".join(f"{name:>{width}}" for name in names) + f"{'share':>{width}}")
        for name, row, share in zip(names, self.confusion, self.actual, strict=True):
            lines.append(f"  {name:>20}" + "".join(f"{n:>{width},}" for n in row) + f"{share:>{width}.1%}")
        lines.append(f"  {'share':>20}" + "".join(f"{share:>{width}.1%}" for share in self.predicted))
        lines.append(
            f"  accuracy {self.accuracy:.4f}, macro-averaged {self.macro_accuracy:.4f}, F-measure {self.f_measure:.4f}"
        )
        for group, result in self.groups.items():
            largest = result.labels[int(np.argmax(np.abs(result.difference)))]
            lines.append(
                f"  group {group}: {result.size:,} rows, p = {result.pvalue:.4g}, largest difference "
                f"{result.difference[np.argmax(np.abs(result.difference))]:+.1%} ({largest})"
            )
        return "\n".join(lines)


@known_keywords
def proportions(
    y_true: Column, y_pred: Column, *, labels: Sequence[Any] | None = None, by: Column | None = None
) -> Proportions:
    """Compare how often each class is predicted with how often it occurs.

    Parameters
    ----------
    y_true, y_pred : columns of n labels
        Actual and predicted classes.
    labels : sequence, optional
        The classes, in the order to show them; by default all that occur, sorted.
    by : column of n groups, optional
        A group for every row, such as a region or a range of scores: the "local" kind of calibration of the chapter.

    Returns
    -------
    Proportions
        The confusion matrix (rows actual, columns predicted), the proportions, a paired test of their equality
        (McNemar's, exact, where mistakes concern two classes; else Stuart and Maxwell's, asymptotic), macro-averaged
        accuracy and F-measure.

    Notes
    -----
    Bella, Ferri, Hernandez-Orallo and Ramirez-Quintana, "Calibration of machine learning models", type CD. Their
    tables have predictions as rows, against their text; here rows are actual classes.

    Examples
    --------
    >>> result = proportions(["a", "a", "b", "b"], ["a", "b", "b", "b"])
    >>> result.predicted, result.actual
    (array([0.25, 0.75]), array([0.5, 0.5]))
    """
    for name, labels_given in (("y_true", y_true), ("y_pred", y_pred)):
        refuse_probabilities(name, labels_given)
    actual, predicted = _columns.read(y_true, "y_true"), _columns.read(y_pred, "y_pred")
    columns = [actual, predicted] + ([] if by is None else [_columns.read(by, "by")])
    _columns.check_lengths(columns)
    _columns.check_alignment({"y_true": y_true, "y_pred": y_pred, "by": by})
    _columns.refuse_missing(columns)
    if not len(actual):
        raise InputError("y_true and y_pred hold no rows; at least one is needed.", argument="y_true")
    names = _all_labels(actual, predicted) if labels is None else class_labels.check_classes(labels)
    if len(names) < 2:
        raise InputError(
            f"Proportions need at least two classes; there is one, {names[0]!r}.",
            hint="Name all classes with labels=.",
            argument="labels",
        )
    cells = class_labels.codes(actual, names) * len(names) + class_labels.codes(predicted, names)
    groups = {}
    if by is not None:
        found, code = class_labels.encode(columns[2])
        groups = {group: Proportions(names, _matrix(cells[code == i], len(names)), {}) for i, group in enumerate(found)}
    notes = join_notes(*(column.notes for column in columns))
    return Proportions(names, _matrix(cells, len(names)), MappingProxyType(groups), notes)


def refuse_probabilities(name: str, column: Column) -> None:
    """Raise an error if a column of labels holds numbers that are not whole."""
    values = np.asarray(column) if hasattr(column, "__array__") or isinstance(column, (list, tuple)) else np.empty(0)
    several = values.ndim == 2 and values.shape[1] > 1
    if several or (values.dtype.kind == "f" and bool((values[np.isfinite(values)] % 1 != 0).any())):
        raise InputError(
            f"{name} must hold predicted or actual classes; it looks like probabilities.",
            hint="Pass labels, such as model.predict(X).",
            argument=name,
        )


def _all_labels(actual: _columns.ColumnData, predicted: _columns.ColumnData) -> list[Any]:
    both = [*class_labels.classes(actual), *class_labels.classes(predicted)]
    return class_labels.classes(_columns.ColumnData("labels", np.fromiter(both, dtype=object, count=len(both))))


def _matrix(cells: Ints, classes: int) -> Ints:
    return np.bincount(cells, minlength=classes**2).reshape(classes, classes).astype(np.int64)


def _ratio(above: Any, below: Any) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below > 0, above / below, np.nan)


def _mcnemar(confusion: Ints) -> float:
    """Exact: among rows where the two differ, each direction is as likely as the other."""
    from scipy.stats import binomtest

    one_way, other_way = int(confusion[0, 1]), int(confusion[1, 0])
    return float(binomtest(one_way, one_way + other_way, 0.5).pvalue)


def _stuart_maxwell(confusion: Ints) -> float:
    """Asymptotic chi-square test of equal margins, of classes that are all mistaken at times."""
    from scipy.stats import chi2

    off = (confusion - np.diag(np.diag(confusion))).astype(np.float64)
    difference = off.sum(axis=1) - off.sum(axis=0)
    covariance = np.diag(off.sum(axis=0) + off.sum(axis=1)) - off - off.T
    rank = int(np.linalg.matrix_rank(covariance))
    statistic = float(difference @ np.linalg.pinv(covariance) @ difference)
    return float(chi2.sf(statistic, rank))
