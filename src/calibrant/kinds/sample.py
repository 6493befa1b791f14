"""`GroupedSample`: the rows of an evaluation, whole and by group, as the module ``sample`` of a kind returns them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from numpy.random import SeedSequence

from calibrant._support.workers import Submit
from calibrant.inference.paired_rows import MIN_CLUSTERS, check_clusters
from calibrant.results.evaluation import Evaluation
from calibrant.results.settings import Settings
from calibrant.results.uncertainty import SerialDependence
from calibrant.tables.rows import Rows

S = TypeVar("S", bound="CountedRows")


class CountedRows(Protocol):
    """All rows, or those of a group, as a kind of forecast evaluates them."""

    @property
    def n_clusters(self) -> int | None:
        """Number of clusters; None where rows are independent."""

    def without_clusters(self: S) -> S:
        """Return the same rows without their clusters, for estimates."""


# From rows as they were read to rows whose clusters are blocks of times, where times are given.
TimeBlocks: TypeAlias = Callable[[Rows], tuple[Rows, SerialDependence | None]]
# From (sample, settings, seed, function that begins work in threads) to the function that finishes the evaluation.
Starter: TypeAlias = Callable[[S, Settings, SeedSequence, Submit], Callable[[], Evaluation]]


def has_few_clusters(sample: CountedRows) -> bool:
    """Return whether rows are in too few clusters for tests and intervals."""
    return sample.n_clusters is not None and sample.n_clusters < MIN_CLUSTERS


def with_enough_clusters(sample: S) -> S:
    """Return the sample; too few clusters are an error."""
    if sample.n_clusters is not None:
        check_clusters(sample.n_clusters)
    return sample


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
    serial_dependence : SerialDependence or None
        The blocks of times, where rows are in time order.
    """

    whole: S
    groups: Mapping[Any, S | None] = field(default_factory=dict)
    group_name: str | None = None
    is_large: bool = False
    serial_dependence: SerialDependence | None = None

    @classmethod
    def from_rows(
        cls, rows: Rows, count: Callable[[Rows], S], time_blocks: TimeBlocks, *, is_large: bool = False
    ) -> "GroupedSample[S]":
        """Count all rows, and those of each group.

        Groups have the blocks of all rows: a shock at one time may hit all groups, and is in the same block for each.
        Too few blocks or clusters are not tested.
        """
        rows, serial = time_blocks(rows)
        whole = count(rows)
        groups = {key: None if part.is_empty else count(part) for key, part in rows.split().items()}
        return cls(whole, groups, rows.group_name, is_large, serial)
