"""The registry of kinds of forecast, and the modules that the folder of each kind has.

Code outside of `calibrant.kinds` names no kind: it asks ``kind_of(name)`` for one of the modules below. A module is
imported when it is first asked for, so that an evaluation loads neither figures nor the command line.

================  ==================================================================================================
module            holds
================  ==================================================================================================
``panel``         the default metrics, margin and number of replicates: `Defaults`, and ``panel(metrics, costs)``
``rows``          how rows are read and counted: ``read`` returns a `GroupedSample`
``evaluation``    ``evaluate`` returns the `Evaluation` of one sample
``verdict``       the tests behind the verdict
``details``       the results that only this kind has, and the sentences that an evaluation prints
``differences``   how models are compared: `ComparisonTerms`, and ``compare``
``words``         report: what to call the forecast, what a deviation means, what to do about it
``figures``       diagrams of an evaluation and of a comparison
``columns``       command line: the options that name the forecast, and how files are read
``sample``        rows for the inference of one metric, if metrics of this kind can be resampled
``audit``         how the rows of an audit are read and tested, if this kind has residuals
``windows``       monitor: how the rows of a time window are counted and judged, if this kind can be monitored
================  ==================================================================================================
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from numpy.random import SeedSequence

from calibrant._support.workers import Submit
from calibrant.inference.resampling import check_clusters
from calibrant.results.evaluation import Evaluation
from calibrant.results.settings import Settings
from calibrant.tables.rows import Rows

__all__ = ["FEWER_RESAMPLES", "KINDS", "ROW_OPTIONS", "Defaults", "GroupedSample", "Kind", "Starter", "kind_of"]

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


KINDS = {name: Kind(name) for name in ("binary", "multiclass", "labels", "point", "distribution")}


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


class CountedRows(Protocol):
    """All rows, or those of a group, as a kind of forecast evaluates them."""

    @property
    def n_clusters(self) -> int | None:
        """Number of clusters; None where rows are independent."""


S = TypeVar("S", bound=CountedRows)
# From (sample, settings, seed, function that begins work in threads) to the function that finishes the evaluation.
Starter: TypeAlias = Callable[[S, Settings, SeedSequence, Submit], Callable[[], Evaluation]]


@dataclass(frozen=True, eq=False)
class GroupedSample(Generic[S]):
    """The sample of all rows, and that of each group.

    Attributes
    ----------
    whole : sample
    groups : mapping of key to sample
        None for a group in which no row is used.
    group_name : str or None
        Name of the columns that define groups.
    is_large : bool
        Whether a replicate is so slow that their default number is smaller.
    """

    whole: S
    groups: Mapping[Any, S | None] = field(default_factory=dict)
    group_name: str | None = None
    is_large: bool = False

    @classmethod
    def from_rows(cls, rows: Rows, count: Callable[[Rows], S], *, is_large: bool = False) -> "GroupedSample[S]":
        """Count all rows, and those of each group; too few clusters of all rows are an error."""
        whole = count(rows)
        if whole.n_clusters is not None:
            check_clusters(whole.n_clusters)
        groups = {key: None if part.is_empty else count(part) for key, part in rows.split().items()}
        return cls(whole, groups, rows.group_name, is_large)
