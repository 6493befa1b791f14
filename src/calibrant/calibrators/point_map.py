"""`PointMap`: the base of all recalibrators of point predictions."""

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from calibrant._support import columns as _columns
from calibrant._support.arrays import Column, Floats
from calibrant._support.errors import Argument, InputError, KnownKeywords, Note, join_notes
from calibrant._support.random_streams import seed_sequence
from calibrant.calibrators import maps
from calibrant.calibrators.trade_off import TradeOff, cross_validated_trade_off
from calibrant.tables.mean_table import ONE_COLUMN, MeanTable, need_rows

__all__ = ["PointMap"]


class PointMap(KnownKeywords, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A recalibrator of one column of point predictions; a subclass fits its map in `_fit_table`.

    Any finite prediction is taken. Beyond the predictions of the fit the map goes on as its class documents.

    Attributes
    ----------
    map_ : a map of `calibrant.calibrators.maps`
        The fitted map: all that `calibrant.save`, `to_sql` and `to_onnx` need.
    trade_off_ : TradeOff or None
        Squared error against bias, by cross-validation. None without `cv`, for merged tables, for fewer rows than two
        per fold, where a fold cannot be fitted, and after `calibrant.load`.
    notes_ : tuple of Note
        Notes about the rows of the fit.

    See Also
    --------
    ScoreMap, LinearRecalibrator

    Examples
    --------
    >>> from calibrant.regression import LinearRecalibrator
    >>> recalibrator = LinearRecalibrator(cv=None).fit([1.0, 2.0, 3.0], [3.0, 5.0, 7.0])
    >>> isinstance(recalibrator, PointMap), recalibrator([10.0])
    (True, array([21.]))
    """

    kind: ClassVar[str] = "point"
    map_kinds: ClassVar[tuple[str, ...]] = ()  # that a fit can give; `calibrant.load` checks it
    is_increasing: ClassVar[bool] = False  # whether higher predictions never get lower values
    needs_rows: ClassVar[bool] = False  # whether a merged table is refused
    cross_validated: ClassVar[tuple[str, ...]] = ("trade_off_",)  # results that files do not hold

    cv: int | None
    random_state: int
    map_: Any

    def fit(self, X: Column | MeanTable, y: Column | None = None, sample_weight: Column | None = None) -> Self:
        """Fit the map.

        Parameters
        ----------
        X : column of n predictions, of shape (n,) or (n, 1), or a MeanTable
            A table holds outcomes and weights: give neither with it.
        y : column of n outcomes
        sample_weight : column of n weights, optional
            Their sum plays the number of rows: weight 2 equals two rows.

        Returns
        -------
        self
        """
        table = self._read(X, y, sample_weight)
        map_ = self._fit_table(table.rows_by_weight())
        self.notes_: tuple[Note, ...] = table.notes
        self.trade_off_: TradeOff | None = self._cross_validate(table)
        self.map_, self.n_features_in_ = map_, 1
        return self

    def _fit_table(self, table: MeanTable) -> maps.Map:
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
        return True

    def _read(self, X: Any, y: Any, sample_weight: Any) -> MeanTable:
        if isinstance(X, MeanTable):
            if y is not None or sample_weight is not None:
                raise InputError(
                    "y and sample_weight must not be given together with a MeanTable, which holds both; got them.",
                    argument="y",
                )
            table = X
        elif y is None:
            raise InputError(
                "This recalibrator requires y to be passed, but the target y is None.",
                hint="Pass predictions and outcomes, or one MeanTable.",
                argument="y",
            )
        else:
            read = [_columns.read(c, name, hint=ONE_COLUMN) for c, name in ((X, "X"), (y, "y"))]
            _columns.check_lengths(read)
            _columns.refuse_missing(read)
            table = MeanTable.from_arrays(y, X, sample_weight=sample_weight)
        if self.needs_rows:
            need_rows(table, type(self).__name__)
        return table

    def _cross_validate(self, table: MeanTable) -> TradeOff | None:
        """Return the trade-off on rows that are recalibrated by maps of other rows; None where it does not exist."""
        if self.cv is None or not table.has_rows:
            return None
        whole = isinstance(self.cv, (int, np.integer)) and not isinstance(self.cv, bool)
        if not (whole and self.cv >= 2):
            raise InputError(
                Argument("cv") + f" must be None or a whole number of at least 2; got {self.cv!r}.", value=self.cv
            )
        folds = int(self.cv)
        if len(table) < 2 * folds:
            return None
        try:
            recalibrated = self._cross_fit(table, folds)
        except InputError as error:
            text = f"There is no trade-off, because a fold cannot be fitted: {error}"
            note = Note("no_trade_off", 1, text.replace("{", "(").replace("}", ")"))
            self.notes_ = join_notes(table.notes, [note])
            return None
        return self._report(table, recalibrated, folds)

    def _cross_fit(self, table: MeanTable, folds: int) -> Floats:
        """Return the prediction of each row by a map that is fitted on the other folds."""
        given = self.random_state
        rng = given if isinstance(given, np.random.Generator) else np.random.default_rng(seed_sequence(given))
        fold = rng.permutation(len(table)) % folds
        recalibrated = np.empty(len(table))
        for i in range(folds):
            held = fold == i
            recalibrated[held] = self._fit_table(table.part(~held))(table.prediction[held])
        return recalibrated

    def _report(self, table: MeanTable, recalibrated: Floats, folds: int) -> TradeOff:
        return cross_validated_trade_off(table, recalibrated, folds)

    def predict(self, X: Column) -> Floats:
        """Return the recalibrated predictions, in the order given.

        Parameters
        ----------
        X : column of n predictions
            Predictions before recalibration, finite and none missing.

        Returns
        -------
        array of shape (n,)
        """
        check_is_fitted(self)
        column = _columns.finite(_columns.read(X, "X", hint=ONE_COLUMN))
        _columns.refuse_missing([column])
        recalibrated: Floats = self.map_(column.values)
        return recalibrated

    def __call__(self, prediction: Column) -> Floats:
        """Return the same as `predict`.

        Parameters
        ----------
        prediction : column of n predictions
            Predictions before recalibration, finite and none missing.

        Returns
        -------
        array of shape (n,)
        """
        return self.predict(prediction)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "map_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags
