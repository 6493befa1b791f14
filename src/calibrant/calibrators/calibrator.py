"""`Calibrator`: what all calibrators and recalibrators share: a fitted map, its form in files, cross-fitting."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from string import Formatter
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from calibrant._support.arrays import Floats, Ints
from calibrant._support.errors import InputError, Note
from calibrant.calibrators import maps


class Calibrator(BaseEstimator):  # type: ignore[misc]
    """The base of calibrators and recalibrators: estimators whose fit results in one map, ``map_``.

    Subclasses declare, by the attributes below, what the map can be and what it takes. Loading checks the first;
    models on features, files of scores, SQL and ONNX read the second.
    """

    kind: ClassVar[str]  # of the forecasts that it calibrates
    # One column of numbers, one column for each class, or predictive distributions.
    takes: ClassVar[Literal["column", "classes", "distributions"]] = "column"
    column_names: ClassVar[tuple[str, str]] = ("score", "probability")  # of input and output, as in ONNX
    map_kinds: ClassVar[tuple[str, ...]] = ()  # that a fit can give
    is_increasing: ClassVar[bool] = False  # whether higher numbers never get lower values
    gives_probabilities: ClassVar[bool] = False
    saved_attributes: ClassVar[tuple[str, ...]] = ()  # numbers besides the map that go into files
    # `AutoCalibrator` leaves out calibrators whose fit needs more than rows, such as a cost. For several classes it
    # tries those of one score that suit one class against the rest.
    needs_settings: ClassVar[bool] = False
    suits_each_class: ClassVar[bool] = False

    map_: Any
    notes_: tuple[Note, ...]

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
        return True

    def to_state(self) -> dict[str, Any]:
        """Return the result of the fit as plain data for JSON.

        Returns
        -------
        dict
            The part of the file of `calibrant.save` that holds the fit.
        """
        return self._plain_map() | {"notes": plain_notes(self.notes_)}

    def restore_state(self, state: dict[str, Any]) -> None:
        """Restore what `to_state` returned; anything else is an error.

        Parameters
        ----------
        state : dict
            What `to_state` returned; its keys are removed.
        """
        self._restore_map(maps.from_dict(state.pop("map", {})))
        self.notes_ = restore_notes(state.pop("notes", None))

    def _plain_map(self) -> dict[str, Any]:
        """Return the fields of a file from which the map is restored."""
        if not self.accepts_map(self.map_):
            name = type(self).__name__
            raise InputError(f"The settings of {name} must not change after its fit; they did.", hint="Fit it again.")
        return {"map": maps.to_dict(self.map_)}

    def _restore_map(self, map_: Any, fits: str = "its settings") -> None:
        """Use a map of a file, if a fit could have given it."""
        name = type(self).__name__
        if map_.kind not in self.map_kinds:
            raise InputError(f"the map of {name} must be of kind {' or '.join(self.map_kinds)}; got {map_.kind}.")
        if self.gives_probabilities and (map_.range[0] < 0 or map_.range[1] > 1):
            low, high = map_.range
            raise InputError(f"the values of the map of {name} must lie in [0, 1]; got {low:g} to {high:g}.")
        if self.is_increasing and not map_.is_increasing:
            raise InputError(f"the map of {name} must not fall; it does.")
        if not self.accepts_map(map_):
            raise InputError(f"the map of {name} must fit {fits}; it does not.")
        self.map_ = map_

    def _plain_numbers(self) -> dict[str, Any]:
        return {"numbers": {name: float(getattr(self, name)) for name in self.saved_attributes}}

    def _restore_numbers(self, state: dict[str, Any]) -> None:
        numbers = state.pop("numbers", None)
        if not isinstance(numbers, dict) or set(numbers) != set(self.saved_attributes):
            raise InputError(f"numbers of {type(self).__name__} must be {list(self.saved_attributes)}.")
        for name, value in numbers.items():
            if not isinstance(value, float) or not 0 <= value < np.inf:
                raise InputError(f"{name} must be a number of at least 0; got {value!r}.")
            setattr(self, name, value)

    @contextmanager
    def _keeping_earlier_fit(self) -> Iterator[None]:
        """Keep the result of an earlier fit if this one fails."""
        earlier = self.__dict__.copy()
        try:
            yield
        except BaseException:
            self.__dict__ = earlier
            raise

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "map_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = self.takes == "column", self.takes == "classes"
        tags.target_tags.required = True
        return tags


class PredictsClasses(ClassifierMixin):  # type: ignore[misc]
    """A classifier that predicts the most probable class."""

    classes_: NDArray[Any]
    predict_proba: Any

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row; the first of equally probable ones.

        Parameters
        ----------
        X : column, array or frame of n rows
            As for `predict_proba`.

        Returns
        -------
        array of shape (n,)
            One label per row.
        """
        most_probable = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[most_probable])


def cross_fit(
    calibrator: Calibrator,
    scores: Floats,
    outcomes: NDArray[Any],
    *,
    sample_weight: Floats | None = None,
    cluster: Ints | None = None,
    n_folds: int = 5,
    random_state: int = 0,
    **options: Any,
) -> Floats:
    """Return the calibrated scores of random folds, each by a clone that is fitted to the other folds.

    Rows of one cluster, whose codes count from 0, are in one fold. `options` are passed to `fit`. Warnings of the fits
    are not shown: the fit to all rows issues them.
    """
    units = np.arange(len(scores)) if cluster is None else cluster
    order = np.random.default_rng(random_state).permutation(int(units.max()) + 1)
    calibrated: Floats = np.zeros(np.shape(scores))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for held_out in np.array_split(order, n_folds):
            inside = np.isin(units, held_out)
            fold, rest = np.flatnonzero(inside), np.flatnonzero(~inside)
            weight = None if sample_weight is None else sample_weight[rest]
            fitted = clone(calibrator).fit(scores[rest], outcomes[rest], sample_weight=weight, **options)
            calibrated[fold] = fitted.map_(scores[fold])  # all scores were read: a fold has no domain of its own
    return calibrated


def need_target(y: Any, owner: str, hint: str = "") -> None:
    """Refuse a fit without outcomes, in the words of scikit-learn."""
    if y is None:
        raise InputError(f"{owner} requires y to be passed, but the target y is None.", hint=hint, argument="y")


def refuse_beside_table(table: Any, *columns: Any) -> None:
    """Refuse outcomes and weights in addition to a table, which holds both."""
    if any(column is not None for column in columns):
        text = (
            f"y and sample_weight must not be given together with a {type(table).__name__}, which holds both; got them."
        )
        raise InputError(text, argument="y")


def check_column_count(count: int, n_classes: int, hint: str = "") -> None:
    """Check that there is one column for each class."""
    if count != n_classes:
        text = f"X must have one column for each of the {n_classes} classes; got {count}."
        raise InputError(text, hint=hint, argument="X")


def label_array(labels: list[Any]) -> NDArray[Any]:
    """Return labels as an array; labels of different types keep their types."""
    if len({type(label) for label in labels}) == 1:
        return np.array(labels)
    return np.fromiter(labels, dtype=object, count=len(labels))


# Labels and notes in files


def are_labels(labels: Any) -> bool:
    """Return whether JSON can hold a list of labels."""
    return isinstance(labels, list) and all(isinstance(label, (str, int, float)) for label in labels)


def plain_labels(classes: NDArray[Any]) -> dict[str, Any]:
    """Return the labels of classes as a field of a file."""
    labels = classes.tolist()
    if not are_labels(labels):
        raise InputError(f"Labels must be text or numbers to be saved; got {labels!r}.", hint="Encode them first.")
    return {"classes": labels}


def restore_labels(state: dict[str, Any], *, count: int | None = None, owner: str = "") -> NDArray[Any]:
    """Return the labels of a file, if there are `count` different ones."""
    labels = state.pop("classes", None)
    if not are_labels(labels) or len(set(labels)) < max(2, len(labels)):
        raise InputError(f"classes must be a list of different labels; got {labels!r}.")
    if count not in (None, len(labels)):
        raise InputError(f"{owner} must have two classes; got {len(labels)}.")
    return label_array(labels)


def plain_notes(notes: tuple[Note, ...]) -> list[dict[str, Any]]:
    """Return notes as a field of a file."""
    return [{"code": note.code, "count": note.count, "template": note.template} for note in notes]


def restore_notes(plain: Any) -> tuple[Note, ...]:
    """Return the notes of a file."""
    try:
        notes = tuple(Note(**fields) for fields in plain)
        for note in notes:
            valid = isinstance(note.code, str) and type(note.count) is int and isinstance(note.template, str)
            # Only the count may be filled in.
            fields = [field for _, field, *how in Formatter().parse(note.template) if field is not None or any(how)]
            if not valid or set(fields) - {"count"} or "{count:" in note.template or "{count!" in note.template:
                raise TypeError
    except (TypeError, ValueError, AttributeError) as error:
        raise InputError("notes are missing or malformed.") from error
    return notes
