"""The protocol of kinds of forecast, and their registry.

The folder of each kind has one module per protocol below, with its name: ``kind_of("binary").figures`` is the module
``calibrant.kinds.binary.figures``, a `FiguresModule`. Code outside of `calibrant.kinds` names no kind; it asks for
these modules. Beside them a folder has ``verdict``, the tests behind the verdict, and ``details``, the results that
only this kind has with the sentences that an evaluation prints.

A module is imported when it is first asked for: an evaluation loads no figures, and ``calibrant --help`` loads no
library of numbers. So this module imports none either.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from numpy.random import SeedSequence

    from calibrant.kinds.columns import ForecastColumns
    from calibrant.kinds.figures import Figures
    from calibrant.kinds.sample import GroupedSample
    from calibrant.kinds.windows import Windows
    from calibrant.kinds.words import Words
    from calibrant.metrics.metric import Metric
    from calibrant.results.comparison import ComparisonTerms
    from calibrant.results.evaluation import Evaluation
    from calibrant.results.settings import Settings

ROW_OPTIONS = ("sample_weight", "frequency", "missing")
# The default number of replicates where each is slow.
FEWER_RESAMPLES = 99


class DefaultsModule(Protocol):
    """``defaults``: the default metrics, margin and number of replicates."""

    @property
    def DEFAULTS(self) -> "Defaults":
        """The default settings."""

    def panel(self, metrics: Any, *, alpha: float, n_bins: int | None, costs: Any) -> "dict[str, Metric]":
        """Return the metrics of an evaluation by name: those that are given, or the default ones."""


class SampleModule(Protocol):
    """``sample``: how rows are read, counted and resampled."""

    @property
    def read_groups(self) -> "Callable[..., GroupedSample[Any]]":
        """The function from outcomes, forecast and options of rows to the samples of all rows and of each group."""


class EvaluationModule(Protocol):
    """``evaluation``: the evaluation of one sample."""

    def evaluate(
        self, sample: Any, settings: "Settings", seed: "SeedSequence", progress: bool | None, /
    ) -> "Evaluation":
        """Return the evaluation of a sample without groups."""


class DifferencesModule(Protocol):
    """``differences``: how models are compared, by ``MODELS`` (`kinds.differences.ModelForecasts`) or ``compare``."""

    @property
    def TERMS(self) -> "ComparisonTerms":
        """What differences are called."""


class WordsModule(Protocol):
    """``words``: what reports call the forecast, what a deviation means, and what to do about it."""

    @property
    def WORDS(self) -> "Words":
        """The words."""


class FiguresModule(Protocol):
    """``figures``: diagrams of an evaluation and of a comparison."""

    @property
    def FIGURES(self) -> "Figures":
        """The diagrams."""


class ColumnsModule(Protocol):
    """``columns``: how forecasts are columns of files, for the command line and MLflow."""

    @property
    def COLUMNS(self) -> "ForecastColumns":
        """The columns."""


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

    def _module(self, name: str) -> Any:
        return import_module(f"calibrant.kinds.{self.name}.{name}")

    @property
    def defaults(self) -> DefaultsModule:
        """The default settings."""
        return cast(DefaultsModule, self._module("defaults"))

    @property
    def sample(self) -> SampleModule:
        """How rows are read."""
        return cast(SampleModule, self._module("sample"))

    @property
    def evaluation(self) -> EvaluationModule:
        """The evaluation of one sample."""
        return cast(EvaluationModule, self._module("evaluation"))

    @property
    def differences(self) -> DifferencesModule:
        """How models are compared."""
        return cast(DifferencesModule, self._module("differences"))

    @property
    def words(self) -> WordsModule:
        """The words of reports."""
        return cast(WordsModule, self._module("words"))

    @property
    def figures(self) -> FiguresModule:
        """The diagrams."""
        return cast(FiguresModule, self._module("figures"))

    @property
    def columns(self) -> ColumnsModule:
        """The columns of files."""
        return cast(ColumnsModule, self._module("columns"))

    @property
    def windows(self) -> "Windows":
        """How the rows of a time window are counted and judged, if this kind can be monitored."""
        return cast("Windows", self._module("windows"))

    def optional(self, name: str) -> Any:
        """Return a part that kinds may leave out, by its name in `OPTIONAL`; None if this kind leaves it out."""
        module, _, member = name.partition(".")
        assert name in OPTIONAL, name
        if find_spec(f"calibrant.kinds.{self.name}.{module}") is None:
            return None
        found = self._module(module)
        return getattr(found, member, None) if member else found


# The modules that each folder has, with their protocols; ``windows`` is that of kinds that can be monitored.
MODULES: Mapping[str, type] = {
    "defaults": DefaultsModule,
    "sample": SampleModule,
    "evaluation": EvaluationModule,
    "differences": DifferencesModule,
    "words": WordsModule,
    "figures": FiguresModule,
    "columns": ColumnsModule,
}

# Modules, or members of modules, that a kind may leave out.
OPTIONAL: Mapping[str, str] = {
    "sample.read": "reads the rows for one metric, where metrics of the kind can be resampled",
    "evaluation.starter": "from all rows to the function that begins the evaluation of a group in threads, or None",
    "evaluation.complete": "computes the details of an evaluation ahead, where they are computed on demand",
    "evaluation.heterogeneity": "from samples of groups, that of all rows and a level to the heterogeneity of groups",
    "evaluation.mean_over_clusters": "calibration in the large of rows in 3 to 9 clusters, from the sample and a level",
    "differences.MODELS": "how two models are compared (`kinds.differences.ModelForecasts`)",
    "differences.compare": "compares models in place of `MODELS`",
    "audit.AUDIT": "how forecasts are audited (`kinds.audit.AuditedForecasts`)",
    "audit.NOT_AUDITED": "why forecasts cannot be audited",
    "windows": "how the rows of a time window are counted and judged, where the kind can be monitored",
}


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
    """The default settings of an evaluation of one kind, as its module ``defaults`` declares them.

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
    takes_relative_margin : bool
        Whether a `RelativeMargin` of means can be given.
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
    takes_relative_margin: bool = False
    options: tuple[str, ...] = ROW_OPTIONS
    resamples_groups: bool = True


def array_kind(dimensions: int) -> Kind:
    """Return the kind of arrays with this number of dimensions, whose type declares no kind."""
    return next(kind for kind in KINDS.values() if kind.dimensions == dimensions)


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
    for kind in KINDS.values():
        if kind.foreign and all(hasattr(forecast, attribute) for attribute in kind.foreign):
            return kind.name
    return array_kind(2 if _has_several_columns(forecast) else 1).name


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

    return declared_kind(forecast) or array_kind(2 if isinstance(forecast, Mapping) else 1).name
