"""Class proportions (calibration of type CD): does a classifier predict each class as often as it occurs?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from calibrant._support.arrays import Column, Floats, Ints, read_only
from calibrant._support.errors import Argument, Note, renamed_options
from calibrant._support.formatting import printable
from calibrant._support.plain_data import label
from calibrant.tables.class_table import ConfusionTable, read_labels
from calibrant.tables.rows import Missing, Rows


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
    size : int
        Number of rows.
    actual, predicted, difference : ndarray
        Share of each class among the outcomes and among the predictions, and predicted minus actual share: positive for
        a class that is predicted too often.
    accuracy : float
        Share of rows whose class was predicted.
    recall, precision : ndarray
        Share of each class that was predicted as such, and share of its predictions that were right; NaN for a class
        that does not occur, or is never predicted.
    macro_accuracy : float
        Mean of the classes' own accuracies (recalls), over classes that occur.
    f_measure : float
        Mean over classes of the harmonic mean of precision and recall, 2 right / (actual + predicted).
    test : str
        Name of the test behind `pvalue`: exact where mistakes concern two classes only, else asymptotic.
    pvalue : float
        P-value of "both proportions are the same"; paired, because predictions and outcomes share their rows.
    notes : tuple of Note
        Notes about the input.

    See Also
    --------
    proportions, ConfusionTable

    Examples
    --------
    >>> import calibrant as cb
    >>> result = cb.metrics.proportions(["a", "a", "b", "b"], ["a", "b", "b", "b"])
    >>> result.confusion.tolist(), result.difference.tolist(), result.accuracy
    ([[1, 1], [0, 2]], [-0.25, 0.25], 0.75)
    """

    labels: list[Any]
    confusion: Ints
    groups: Mapping[Any, "Proportions"]
    notes: tuple[Note, ...] = ()
    size: int = field(init=False)
    actual: Floats = field(init=False)
    predicted: Floats = field(init=False)
    difference: Floats = field(init=False)
    recall: Floats = field(init=False)
    precision: Floats = field(init=False)
    accuracy: float = field(init=False)
    macro_accuracy: float = field(init=False)
    f_measure: float = field(init=False)
    test: str = field(init=False)
    pvalue: float = field(init=False)

    def __post_init__(self) -> None:
        n, size = self.confusion, int(self.confusion.sum())
        right, actual, predicted = np.diag(n), n.sum(axis=1), n.sum(axis=0)
        recall = _ratio(right, actual)
        test, pvalue = _equal_margins(n)
        self.__dict__.update(
            size=size,
            actual=np.asarray(actual / size),
            predicted=np.asarray(predicted / size),
            difference=np.asarray(predicted / size - actual / size),
            recall=recall,
            precision=_ratio(right, predicted),
            accuracy=float(np.trace(n) / size),
            macro_accuracy=float(np.nanmean(recall)),
            f_measure=float(np.nanmean(_ratio(2 * right, predicted + actual))),
            test=test,
            pvalue=pvalue,
        )
        self._close()

    def _close(self) -> None:
        for name in ("confusion", "actual", "predicted", "difference", "recall", "precision"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"groups": dict(self.groups)}  # a read-only view of a mapping cannot be copied

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state | {"groups": MappingProxyType(state["groups"])})
        self._close()

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        return {
            "schema_version": 1,
            "labels": [label(name) for name in self.labels],
            "confusion": {"rows": "actual", "columns": "predicted", "counts": self.confusion.tolist()},
            "actual": self.actual.tolist(),
            "predicted": self.predicted.tolist(),
            **{name: getattr(self, name) for name in ("test", "pvalue", "accuracy", "macro_accuracy", "f_measure")},
            "groups": [{"group": label(name), **group.to_dict()} for name, group in self.groups.items()],
            "notes": [note.to_dict() for note in self.notes],
        }

    def __repr__(self) -> str:
        names = [printable(str(label)) for label in self.labels]
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


@renamed_options(labels="classes")
def proportions(
    y_true: Column, y_pred: Column, *, classes: Sequence[Any] | None = None, by: Any = None, missing: Missing = "raise"
) -> Proportions:
    """Compare how often each class is predicted with how often it occurs.

    Parameters
    ----------
    y_true, y_pred : columns of n labels
        Actual and predicted classes.
    classes : sequence, optional
        The classes, in the order to show them; by default all that occur, sorted.
    by : column, several columns or frame, optional
        A group for each row, such as a region or a range of scores: the "local" kind of calibration of the chapter.
    missing : {"raise", "drop"}
        How rows with a missing label are treated: an error, or dropped and counted.

    Returns
    -------
    Proportions
        The confusion matrix (rows actual, columns predicted), the proportions, a paired test of their equality
        (McNemar's, exact, where mistakes concern two classes; else Stuart and Maxwell's, asymptotic), macro-averaged
        accuracy and F-measure.

    See Also
    --------
    Proportions, Labels, ProportionThreshold

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
    rows, names = read_labels(y_true, {"y_pred": y_pred}, classes, Argument("classes"), by=by, missing=missing)
    groups = {key: _count(own, names) for key, own in rows.split().items() if not own.is_empty}
    return _count(rows, names, groups)


def _count(rows: Rows, names: list[Any], groups: Mapping[Any, Proportions] | None = None) -> Proportions:
    table = ConfusionTable.from_rows(rows, names)
    return Proportions(names, np.asarray(table.n), MappingProxyType(dict(groups or {})), table.notes)


def _ratio(above: Any, below: Any) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below > 0, above / below, np.nan)


def _equal_margins(confusion: Ints) -> tuple[str, float]:
    """Return name and p-value of the test that both proportions are the same, over the classes that are mistaken."""
    off = confusion - np.diag(np.diag(confusion))
    used = np.flatnonzero(off.sum(axis=0) + off.sum(axis=1))
    name = "McNemar, exact" if used.size <= 2 else "Stuart-Maxwell"
    if used.size == 0:
        return name, 1.0
    own = confusion[np.ix_(used, used)]
    return name, _mcnemar(own) if used.size == 2 else _stuart_maxwell(own)


def _mcnemar(confusion: Ints) -> float:
    """Exact: among rows where the two differ, each direction is as likely as the other."""
    from scipy.special import betainc

    one_way, other_way = int(confusion[0, 1]), int(confusion[1, 0])
    fewer, more = sorted((one_way, other_way))
    return min(1.0, 2 * float(betainc(more, fewer + 1, 0.5)))  # P(X <= fewer) of a binomial variable


def _stuart_maxwell(confusion: Ints) -> float:
    """Asymptotic chi-square test of equal margins, of classes that are all mistaken at times."""
    from scipy.linalg import solve
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components
    from scipy.special import chdtrc

    off = (confusion - np.diag(np.diag(confusion))).astype(np.float64)
    difference = off.sum(axis=1) - off.sum(axis=0)
    mistaken = off + off.T
    # The covariance is the Laplacian of the graph of mistakes. Its rank is the number of classes less that of connected
    # parts, and the differences of each part have the sum 0: one class of each part can be left out.
    parts, part = connected_components(csr_array(mistaken), directed=False)
    kept = np.ones(part.size, dtype=bool)
    kept[np.unique(part, return_index=True)[1]] = False
    covariance = (np.diag(mistaken.sum(axis=1)) - mistaken)[np.ix_(kept, kept)]
    statistic = float(difference[kept] @ solve(covariance, difference[kept], assume_a="pos"))
    return float(chdtrc(part.size - parts, statistic))
