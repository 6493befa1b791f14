"""`DistributionMap`: the base of all recalibrators of predictive distributions."""

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from calibrant._support import columns as _columns
from calibrant._support.arrays import Column, Floats
from calibrant._support.errors import InputError, KnownKeywords, Note
from calibrant.calibrators import maps
from calibrant.forecasts.forecast_table import as_forecast, read_outcomes

__all__ = ["DistributionMap"]


class DistributionMap(KnownKeywords, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A recalibrator of predictive distributions; a subclass fits its map in `_fit_rows`.

    Attributes
    ----------
    map_ : a map of `calibrant.calibrators.maps`
        The fitted map: all that `calibrant.save`, `to_sql` and `to_onnx` need.
    notes_ : tuple of Note
        Notes about the rows of the fit.

    See Also
    --------
    PITRecalibrator, ScoreMap

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.regression import Gaussian, VarianceScaling
    >>> y = np.random.default_rng(0).normal(size=1000)
    >>> recalibrator = VarianceScaling().fit(Gaussian(np.zeros(1000), 3.0), y)
    >>> isinstance(recalibrator, DistributionMap), recalibrator(Gaussian([0.0], 3.0)).quantile(0.9).round(1)
    (True, array([1.2]))
    """

    kind: ClassVar[str] = "distribution"
    map_kinds: ClassVar[tuple[str, ...]] = ()  # that a fit can give; `calibrant.load` checks it

    map_: Any

    def fit(self, X: Any, y: Column, sample_weight: Column | None = None) -> Self:
        """Fit the map.

        Parameters
        ----------
        X : Gaussian, Quantiles, Samples, or a frozen distribution of scipy.stats
            Forecasts of rows that the model of the forecasts was not fitted on.
        y : column of n outcomes
        sample_weight : column of n weights, optional
            Their sum plays the number of rows: weight 2 equals two rows.

        Returns
        -------
        self
        """
        outcomes, forecast = read_outcomes(y, X, "y")
        weight = None
        if sample_weight is not None:
            weight = _columns.read_weights(sample_weight, _columns.read(outcomes, "y"))
            used = weight > 0
            if not used.any():
                raise InputError("sample_weight must be positive in at least one row; got 0 in all.", argument="X")
            outcomes, forecast, weight = outcomes[used], forecast.part(used), weight[used]
        kept = self.__dict__.copy()
        try:
            self.notes_: tuple[Note, ...] = ()
            self.map_ = self._fit_rows(outcomes, forecast, weight)
        except BaseException:  # a fit that fails keeps the result of an earlier one
            self.__dict__ = kept
            raise
        return self

    def _fit_rows(self, y: Floats, forecast: Any, weight: Floats | None) -> maps.Map:
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

    def extra_state(self) -> dict[str, Any]:
        """Return what a file holds beside settings, map and notes, as plain data.

        Returns
        -------
        dict
            Empty for most recalibrators.
        """
        return {}

    def restore_extra_state(self, state: dict[str, Any]) -> None:
        """Restore what `extra_state` returned, and take it out of `state`.

        Parameters
        ----------
        state : dict
            Content of the file; the keys of `extra_state` are removed.
        """

    def transform(self, X: Any) -> Any:
        """Return the recalibrated forecasts.

        Parameters
        ----------
        X : Gaussian, Quantiles, Samples, or a frozen distribution of scipy.stats
            Forecasts of new rows.

        Returns
        -------
        forecast
            One recalibrated distribution per row.
        """
        check_is_fitted(self)
        return self._recalibrate(as_forecast(X))

    def _recalibrate(self, forecast: Any) -> Any:
        raise NotImplementedError

    def __call__(self, forecast: Any) -> Any:
        """Return the same as `transform`.

        Parameters
        ----------
        forecast : Gaussian, Quantiles, Samples, or a frozen distribution of scipy.stats
            Forecasts of new rows.

        Returns
        -------
        forecast
            One recalibrated distribution per row.
        """
        return self.transform(forecast)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "map_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags


def total_weight(y: Floats, weight: Floats | None) -> float:
    """Return the number of rows, or the sum of the weights that plays it."""
    return y.size if weight is None else float(weight.sum())


def check_total(name: str, total: float, least: float) -> None:
    """Refuse a fit on fewer rows than `least`."""
    if total < least:
        raise InputError(f"y must hold at least {least:g} rows for {name}; got {total:g}.", argument="y")


def weighted_quantiles(values: Floats, levels: Floats, weight: Floats | None) -> Floats:
    """Return the quantiles in which the i-th smallest of n values is at level i/(n+1), with lines between.

    Weight 2 equals two rows: a value covers the ranks from the sum of the weights below it, plus 1 (or plus its weight,
    if that is less), to the sum including its own.
    """
    if weight is None:
        return np.array([np.quantile(values, level, method="weibull") for level in levels])
    order = np.argsort(values, kind="stable")
    held, own = np.cumsum(weight[order]), weight[order]
    ranks = np.column_stack([held - own + np.minimum(own, 1.0), held]).reshape(-1)
    found: Floats = np.interp(levels * (held[-1] + 1), ranks, np.repeat(values[order], 2))
    return found


def weighted_median(values: Floats, weight: Floats | None) -> float:
    """Return the median; of two middle values their mean."""
    if weight is None:
        return float(np.median(values))
    return float(weighted_quantiles(values, np.array([0.5]), weight)[0])
