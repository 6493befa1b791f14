"""The groups of an evaluation: the rows of each value of a column, and p-values adjusted for their number."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant._support import class_labels
from calibrant._support import columns as _columns
from calibrant._support.errors import Argument, InputError
from calibrant._support.typing import Column
from calibrant.evaluation.results import Evaluation
from calibrant.inference.multiplicity import holm
from calibrant.inference.resampling import MIN_CLUSTERS, PairedRows
from calibrant.tables.score_table import ScoreTable

__all__ = ["GroupRows", "adjust_groups", "check_tables", "split"]

_MOST_GROUPS = 1_000


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


def check_tables(
    tables: Mapping[Any, ScoreTable], y_prob: Any, by: Any, cluster: Any, rows: Mapping[str, Any]
) -> dict[Any, ScoreTable]:
    """The tables of a mapping, with nothing else given that only rows can have."""
    options = {"y_prob": y_prob, "by": by, "cluster": cluster}
    given = [name for name, value in options.items() if value is not None] + list(rows)
    if given:
        raise InputError(f"Tables were given, and {', '.join(given)} with them.", argument=given[0])
    for key, table in tables.items():
        if not isinstance(table, ScoreTable):
            raise InputError(f"Every group must be a ScoreTable; {key!r} is {type(table).__name__}.", argument="y_true")
    if not tables:
        raise InputError("There are no tables; at least one is needed.", argument="y_true")
    return dict(tables)


@dataclass(frozen=True, eq=False)
class GroupRows:
    """The rows of one group: their table and, where rows are in clusters, the rows."""

    table: ScoreTable
    rows: PairedRows | None = None
    few_clusters: bool = False


def split(
    y_true: Any, y_prob: Any, by: Column | None, rows: Mapping[str, Any], *, cluster: Column | None = None
) -> tuple[dict[Any, GroupRows], str | None]:
    """The rows of each value of `by`, in the order of the values."""
    if by is None:
        return {}, None
    if isinstance(y_true, ScoreTable):
        raise InputError(
            "by needs rows: a ScoreTable does not know the group of each row.",
            hint="Pass y_true, y_prob and by; or a mapping of tables.",
            argument="by",
        )
    column = _columns.read(by, "by")
    options = dict(rows)
    outside = {"y_true": y_true, "y_prob": y_prob, "cluster": cluster}
    outside |= {name: options.pop(name, None) for name in ("sample_weight", "frequency")}
    _columns.check_alignment({**outside, "by": by})
    read = {name: _columns.read(c, name) for name, c in outside.items() if c is not None}
    _columns.check_lengths([read["y_true"], column])
    _columns.refuse_missing([column], hint="Give such rows a group of their own.")
    names, code = class_labels.encode(column)
    if len(names) > _MOST_GROUPS:
        raise InputError(
            Argument("by") + f" must have at most {_MOST_GROUPS:,} distinct values; got {len(names):,}.",
            hint="Round times to days or weeks, and numbers to groups.",
            argument="by",
        )
    order = np.argsort(code, kind="stable")
    bounds = np.searchsorted(code[order], np.arange(len(names) + 1))
    cells: dict[str, Any] = {
        n: np.ma.array(c.values, mask=c.mask) if c.missing is not None else c.values for n, c in read.items()
    }
    groups = {}
    for i, name in enumerate(names):
        own = order[bounds[i] : bounds[i + 1]]
        groups[name] = _group({n: c[own] for n, c in cells.items()}, options)
    name = getattr(by, "name", None)
    return groups, None if name is None else str(name)


def _group(columns: dict[str, Any], options: dict[str, Any]) -> GroupRows:
    cluster = columns.pop("cluster", None)
    if not _counting_rows(columns, options):
        return GroupRows(ScoreTable.empty())
    if cluster is None:
        return GroupRows(ScoreTable.from_arrays(**columns | options))
    if len(np.unique(cluster)) < MIN_CLUSTERS:
        return GroupRows(ScoreTable.from_arrays(**columns | options), few_clusters=True)
    y_true, y_prob = columns.pop("y_true"), columns.pop("y_prob")
    rows, (table,) = PairedRows.read(y_true, [y_prob], cluster=cluster, **columns, **options)
    if rows.n_draws < MIN_CLUSTERS:  # without rows of weight 0
        return GroupRows(table, few_clusters=True)
    return GroupRows(table, rows)


def _counting_rows(columns: Mapping[str, Any], options: Mapping[str, Any]) -> bool:
    """Whether a group has a row that counts: of positive weight or frequency, and complete where others are dropped."""
    counts = np.ones(len(columns["y_true"]), dtype=bool)
    if options.get("missing") == "drop":
        for column in columns.values():
            counts &= ~np.ma.getmaskarray(column)
    for name in {"sample_weight", "frequency"} & columns.keys():
        counts &= np.ma.getdata(columns[name]) != 0
    return bool(counts.any())
