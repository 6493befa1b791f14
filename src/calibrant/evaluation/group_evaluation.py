"""Evaluation of groups, for all kinds of forecast; p-values are adjusted for the number of groups."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from calibrant._support.errors import Note
from calibrant._support.progress import progress_bar
from calibrant._support.workers import Submit, map_groups
from calibrant.inference.multiplicity import benjamini_hochberg, holm
from calibrant.inference.paired_rows import MIN_CLUSTERS
from calibrant.kinds.grouped_sample import S
from calibrant.results.evaluation import Evaluation

__all__ = ["adjust_groups", "evaluate_groups"]


def evaluate_groups(
    whole: Evaluation,
    samples: Mapping[Any, S | None],
    evaluate: Callable[[S], Evaluation],
    start: Callable[[S, Submit], Callable[[], Evaluation]] | None = None,
    *,
    name: str | None,
    progress: bool | None,
) -> Evaluation:
    """Evaluate the sample of each group and return the whole with its groups.

    `samples` has None for a group in which no row is used. Notes name these groups, and those with too few clusters.
    `start` begins the evaluation of a group and returns the function that finishes it, if the kind has it.
    """
    used = {key: sample for key, sample in samples.items() if sample is not None}
    evaluated = map_groups(evaluate, list(used.values()), start, rows=whole.n_rows / max(len(used), 1))
    results = progress_bar(evaluated, len(used), "evaluating groups", show=progress)
    found = dict(zip(used, results, strict=True))
    groups, adjusted = adjust_groups(found)
    notes = (*whole.own_notes, *_empty_groups(samples), *_few_clusters(samples))
    return replace(whole, groups=groups, adjusted=adjusted, by=name, own_notes=notes)


def _empty_groups(samples: Mapping[Any, S | None]) -> list[Note]:
    empty = [str(key) for key, sample in samples.items() if sample is None]
    return [Note("empty_groups", len(empty), f"Groups in which no row is used: {', '.join(empty)}.")] if empty else []


def _few_clusters(samples: Mapping[Any, S | None]) -> list[Note]:
    counts = {str(key): sample.n_clusters for key, sample in samples.items() if sample is not None}
    few = [key for key, count in counts.items() if count is not None and count < MIN_CLUSTERS]
    text = f"Groups with fewer than {MIN_CLUSTERS} clusters, which are not tested: {', '.join(few)}."
    return [Note("few_clusters", len(few), text)] if few else []


def adjust_groups(
    groups: Mapping[Any, Evaluation],
) -> tuple[dict[Any, Evaluation], dict[Any, dict[str, float]]]:
    """Adjust the p-values of groups for their number by Holm; groups without a test stay as they are.

    Also return for each group its p-value as it was, adjusted by Holm, and by Benjamini and Hochberg.
    """
    tested = {name: p for name, e in groups.items() if not math.isnan(p := e.decision.own_pvalue)}
    raw = list(tested.values())
    columns = zip(tested, raw, holm(raw).tolist(), benjamini_hochberg(raw).tolist(), strict=True)
    pvalues = {name: {"pvalue": p, "holm": h, "benjamini_hochberg": b} for name, p, h, b in columns}
    untested = dict.fromkeys(("pvalue", "holm", "benjamini_hochberg"), math.nan)
    adjusted = {
        name: _adjust(group, pvalues[name]["holm"], len(tested)) if name in tested else group
        for name, group in groups.items()
    }
    return adjusted, {name: pvalues.get(name, untested) for name in groups}


def _adjust(group: Evaluation, adjusted: float, n_groups: int) -> Evaluation:
    decision = group.decision.in_group(adjusted, n_groups)
    metrics = {
        name: replace(metric, pvalue=group.details.metric_pvalue(metric.pvalue, adjusted, decision.group_factor))
        for name, metric in group.metrics.items()
    }
    return replace(group, metrics=metrics, decision=decision)
