"""Evaluation of groups, for all kinds of forecast; p-values are adjusted for the number of groups."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from calibrant._support.errors import Note
from calibrant._support.progress import progress_bar
from calibrant.evaluation.results import Evaluation
from calibrant.inference.multiplicity import holm

__all__ = ["adjust_groups", "evaluate_groups"]

S = TypeVar("S")


def evaluate_groups(
    whole: Evaluation,
    samples: Mapping[Any, S | None],
    evaluate: Callable[[S], Evaluation],
    *,
    name: str | None,
    progress: bool | None,
) -> Evaluation:
    """Evaluate the sample of each group and return the whole with its groups.

    `samples` has None for a group in which no row is used; a note names these groups.
    """
    found = {}
    for key, sample in progress_bar(samples.items(), len(samples), "evaluating groups", show=progress):
        if sample is not None:
            found[key] = evaluate(sample)
    empty = [str(key) for key, sample in samples.items() if sample is None]
    notes = [Note("empty_groups", len(empty), f"Groups in which no row is used: {', '.join(empty)}.")] if empty else []
    return replace(whole, groups=adjust_groups(found), by=name, own_notes=(*whole.own_notes, *notes))


def adjust_groups(groups: Mapping[Any, Evaluation]) -> dict[Any, Evaluation]:
    """Adjust the p-values of groups for their number by Holm; groups without a test stay as they are."""
    known = [name for name, group in groups.items() if not math.isnan(group.details.pvalue)]
    adjusted = dict(zip(known, holm([groups[name].details.pvalue for name in known]).tolist(), strict=True))
    return {
        name: _adjust(group, adjusted[name], len(known)) if name in adjusted else group
        for name, group in groups.items()
    }


def _adjust(group: Evaluation, adjusted: float, count: int) -> Evaluation:
    details, factor = group.details, group.details.group_factor(adjusted, count)
    metrics = {
        name: replace(metric, pvalue=details.metric_pvalue(metric.pvalue, adjusted, factor))
        for name, metric in group.metrics.items()
    }
    return replace(group, metrics=metrics, adjusted_pvalue=adjusted, group_factor=factor)
