"""The registry of kinds of forecast, and the modules that the folder of each kind has.

Code outside of `calibrant.kinds` names no kind: it asks ``kind_of(name)`` for one of the modules below. A module is
imported when it is first asked for: an evaluation loads no figures, and ``calibrant --help`` loads no library of
numbers. So this module imports none either.

================  ==================================================================================================
module            holds
================  ==================================================================================================
``panel``         the default metrics, margin and number of replicates: `Defaults`, and ``panel(metrics, costs)``
``sample``        how rows are read, counted and resampled: ``read_groups`` returns a `GroupedSample`; ``read``, where
                  metrics of this kind can be resampled, the `inference.resampling.Sample` of one metric
``evaluation``    ``evaluate`` returns the `Evaluation` of one sample
``verdict``       the tests behind the verdict
``details``       the results that only this kind has, and the sentences that an evaluation prints
``differences``   how models are compared: ``TERMS`` and ``MODELS`` (`ModelForecasts`), or ``compare``
``words``         report: what to call the forecast, what a deviation means, what to do about it
``figures``       diagrams of an evaluation and of a comparison
``columns``       command line and MLflow: ``COLUMNS``, how forecasts are columns of files (`ForecastColumns`)
``audit``         ``AUDIT``, how forecasts are audited (`AuditedForecasts`), or why they are not: ``NOT_AUDITED``
``windows``       monitor: how the rows of a time window are counted and judged, if this kind can be monitored
================  ==================================================================================================
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

ROW_OPTIONS = ("sample_weight", "frequency", "missing")
# The default number of replicates where each is slow.
FEWER_RESAMPLES = 99


@dataclass(frozen=True)
class Kind:
    """One kind of forecast: its name, and the modules of its folder.

    Attributes
    ----------
    name : str
    dimensions : int, optional
        Number of dimensions of an array that is such a forecast; forecasts of other kinds have a type that declares it.
    foreign : tuple of str
        Attributes by which such a forecast of another library is recognised.
    """

    name: str
    dimensions: int | None = None
    foreign: tuple[str, ...] = ()

    def __getattr__(self, module: str) -> Any:
        """Return a module of the folder, such as ``kind.figures``."""
        if module.startswith("_"):
            raise AttributeError(module)
        return import_module(f"calibrant.kinds.{self.name}.{module}")

    def has(self, module: str) -> bool:
        """Return whether the folder has a module that not all kinds have."""
        return find_spec(f"calibrant.kinds.{self.name}.{module}") is not None


KINDS = {
    kind.name: kind
    for kind in (
        Kind("binary", dimensions=1),
        Kind("multiclass", dimensions=2),
        Kind("ordinal"),
        Kind("labels"),
        Kind("point"),
        Kind("distribution", foreign=("dist", "args", "kwds", "ppf")),  # frozen distributions of scipy.stats
    )
}


def kind_of(name: str) -> Kind:
    """Return a kind of forecast by its name."""
    return KINDS[name]


@dataclass(frozen=True)
class Defaults:
    """The default settings of an evaluation of one kind, as its module ``panel`` declares them.

    Attributes
    ----------
    margin, largest_margin : float
        Default margin, and the largest one that can be given.
    unit : str
        Unit of the margin, as error messages state it.
    n_resamples, least_resamples : int
        Default and smallest number of replicates; a default of 0 means that nothing is resampled.
    takes_absolute_margin : bool
        Whether an `AbsoluteMargin` can be given.
    options : tuple of str
        Names of the options that not all kinds have.
    resamples_groups : bool
        Whether the default metrics of groups have replicates too; given metrics always have.
    """

    margin: float
    unit: str
    largest_margin: float
    n_resamples: int
    least_resamples: int = 1
    takes_absolute_margin: bool = False
    options: tuple[str, ...] = ROW_OPTIONS
    resamples_groups: bool = True


def forecast_kind(y_true: Any, forecast: Any) -> str:
    """Return the kind of a forecast: declared by its type, or given by its dimensions; values are not looked at.

    One table in the place of outcomes and forecast declares its kind too.

    >>> forecast_kind([0, 1], [0.2, 0.7]), forecast_kind([0, 1], [[0.8, 0.2], [0.3, 0.7]])
    ('binary', 'multiclass')
    """
    from calibrant.tables.rows import declared_kind

    for given in (forecast, y_true):
        declared = declared_kind(given)
        if declared in KINDS:
            return declared
    dimensions = 2 if _has_several_columns(forecast) else 1
    foreign = (kind for kind in KINDS.values() if kind.foreign and all(hasattr(forecast, a) for a in kind.foreign))
    arrays = (kind for kind in KINDS.values() if kind.dimensions == dimensions)
    return next(foreign, next(arrays)).name


def _has_several_columns(forecast: Any) -> bool:
    import numpy as np

    if hasattr(type(forecast), "columns"):
        return len(forecast.columns) > 1
    try:
        shape = np.shape(forecast)
    except ValueError:  # rows of unequal length: the reader states the error
        return False
    return len(shape) == 2 and shape[1] > 1


def named_columns_kind(forecast: Any) -> str:
    """Return the kind of a forecast that names columns of a file: classes have a mapping of their columns."""
    from calibrant.tables.rows import declared_kind

    return declared_kind(forecast) or ("multiclass" if isinstance(forecast, Mapping) else "binary")
