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
``differences``   how models are compared: `ComparisonTerms`, and ``compare``
``words``         report: what to call the forecast, what a deviation means, what to do about it
``figures``       diagrams of an evaluation and of a comparison
``columns``       command line and MLflow: ``COLUMNS``, how forecasts are columns of files (`ForecastColumns`)
``audit``         how the rows of an audit are read and tested, if this kind has residuals
``windows``       monitor: how the rows of a time window are counted and judged, if this kind can be monitored
================  ==================================================================================================
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

__all__ = ["FEWER_RESAMPLES", "KINDS", "ROW_OPTIONS", "Defaults", "Kind", "kind_of", "named_columns_kind"]

ROW_OPTIONS = ("sample_weight", "frequency", "missing")
# The default number of replicates where each is slow.
FEWER_RESAMPLES = 99


@dataclass(frozen=True)
class Kind:
    """One kind of forecast: its name, and the modules of its folder."""

    name: str

    def __getattr__(self, module: str) -> Any:
        """Return a module of the folder, such as ``kind.figures``."""
        if module.startswith("_"):
            raise AttributeError(module)
        return import_module(f"calibrant.kinds.{self.name}.{module}")

    def has(self, module: str) -> bool:
        """Return whether the folder has a module that not all kinds have."""
        return find_spec(f"calibrant.kinds.{self.name}.{module}") is not None


KINDS = {name: Kind(name) for name in ("binary", "multiclass", "ordinal", "labels", "point", "distribution")}


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


def named_columns_kind(forecast: Any) -> str:
    """Return the kind of a forecast that names columns of a file: classes have a mapping of their columns."""
    from calibrant.tables.rows import declared_kind

    return declared_kind(forecast) or ("multiclass" if isinstance(forecast, Mapping) else "binary")
