"""The steps of an evaluation that all kinds of forecast share: settings, rows, samples, the whole, and its groups."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeAlias, TypeVar

from numpy.random import SeedSequence

from calibrant._support.random_streams import RandomState, seed_sequence
from calibrant._support.workers import Submit
from calibrant.evaluation.group_evaluation import CountedRows, evaluate_groups
from calibrant.evaluation.results import Evaluation
from calibrant.evaluation.settings import FEWER_RESAMPLES, Settings, check_settings
from calibrant.inference.resampling import check_clusters
from calibrant.metrics.bins import Quantile, choose_bins
from calibrant.tables.rows import Rows

__all__ = ["ROW_OPTIONS", "GroupedSample", "Kind", "Starter", "evaluate_kind"]

ROW_OPTIONS = ("sample_weight", "frequency", "missing")

S = TypeVar("S", bound=CountedRows)
# From (sample, settings, seed, function that begins work in threads) to the function that finishes the evaluation.
Starter: TypeAlias = Callable[[S, Settings, SeedSequence, Submit], Callable[[], Evaluation]]

_MOST_COMPLETE_GROUPS = 20


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
        groups = {key: None if own.is_empty else count(own) for key, own in rows.split().items()}
        return cls(whole, groups, rows.group_name, is_large)


@dataclass(frozen=True)
class Kind(Generic[S]):
    """How one kind of forecast is read and evaluated.

    Attributes
    ----------
    name : str
    read : callable
        From (y_true, forecast, by=, cluster=, and `options` about rows) to a `GroupedSample`.
    evaluate : callable
        From (sample, settings, seed, whether to draw a progress bar) to an `Evaluation` without groups.
    options : tuple of str
        Names of the options that not all kinds have.
    resamples_groups : bool
        Whether groups have replicates too; otherwise only of metrics that were given.
    complete : callable
        Computes results that the verdict does not need, so that text, diagrams and reports compute nothing. Many groups
        compute them on demand.
    starter : callable
        From the sample of all rows to a `Starter` for its groups; None where threads evaluate whole groups.
    """

    name: str
    read: Callable[..., GroupedSample[S]]
    evaluate: Callable[[S, Settings, SeedSequence, bool | None], Evaluation]
    options: tuple[str, ...] = ROW_OPTIONS
    resamples_groups: bool = True
    complete: Callable[[Evaluation], None] = lambda whole: None
    starter: Callable[[S], Starter[S] | None] = lambda whole: None


def evaluate_kind(
    kind: Kind[S],
    y_true: Any,
    forecast: Any,
    *,
    margin: Any,
    alpha: float,
    confidence_level: float,
    n_resamples: int | None,
    random_state: RandomState,
    progress: bool | None,
    metrics: Any = None,
    costs: Any = None,
    n_bins: int | None = None,
    bins: Any = None,
    **reading: Any,
) -> Evaluation:
    """Evaluate forecasts of one kind; see `calibrant.evaluate`. `reading` are arguments of ``kind.read``."""
    chosen = None if bins is None and n_bins is None else choose_bins(Quantile, n_bins, bins)
    settings = check_settings(
        margin, alpha, metrics, costs, confidence_level, n_resamples, random_state, kind=kind.name, bins=chosen
    )
    seed = seed_sequence(random_state)
    sample = kind.read(y_true, forecast, **reading)
    if n_resamples is None and sample.is_large:
        settings = replace(settings, n_resamples=FEWER_RESAMPLES)
    whole = kind.evaluate(sample.whole, settings, seed, progress)
    kind.complete(whole)
    alone = settings if kind.resamples_groups or settings.metrics else replace(settings, n_resamples=0)
    starter = kind.starter(sample.whole)
    found = evaluate_groups(
        whole,
        sample.groups,
        lambda own: kind.evaluate(own, alone, seed, False),
        None if starter is None else lambda own, submit: starter(own, alone, seed, submit),
        name=sample.group_name,
        progress=progress,
    )
    for group in found.groups.values() if len(found.groups) <= _MOST_COMPLETE_GROUPS else ():
        kind.complete(group)
    return found
