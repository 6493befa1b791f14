"""The parts of an evaluation: a table for every day, country or whatever a column says."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from calibrant import _columns
from calibrant._typing import Column
from calibrant.errors import InputError
from calibrant.table import ScoreTable

_MOST_PARTS = 1_000


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
            raise InputError(f"Every part must be a ScoreTable; {key!r} is {type(table).__name__}.", argument="y_true")
    if not tables:
        raise InputError("There are no tables; at least one is needed.", argument="y_true")
    return dict(tables)


def split(
    y_true: Any, y_prob: Any, by: Column | None, rows: Mapping[str, Any]
) -> tuple[dict[Any, ScoreTable], str | None]:
    """A table for every value of `by`, in their order."""
    if by is None:
        return {}, None
    if isinstance(y_true, ScoreTable):
        raise InputError(
            "Parts need rows: a ScoreTable no longer knows which belong where.",
            hint="Pass y_true, y_prob and by; or a mapping of tables.",
            argument="by",
        )
    column = _columns.read(by, "by")
    options = dict(rows)
    outside = {"y_true": y_true, "y_prob": y_prob}
    outside |= {name: options.pop(name, None) for name in ("sample_weight", "frequency")}
    _columns.check_alignment({**outside, "by": by})
    read = {name: _columns.read(c, name) for name, c in outside.items() if c is not None}
    _columns.check_lengths([read["y_true"], column])
    _columns.refuse_missing([column], hint="Give such rows a part of their own.")
    names, code = _columns.encode(column)
    if len(names) > _MOST_PARTS:
        raise InputError(
            f"by has {len(names):,} different values; at most {_MOST_PARTS:,} parts are evaluated.",
            hint="Round times to days or weeks, and numbers to groups.",
            argument="by",
        )
    order = np.argsort(code, kind="stable")
    bounds = np.searchsorted(code[order], np.arange(len(names) + 1))
    cells: dict[str, Any] = {
        n: np.ma.array(c.values, mask=c.mask) if c.missing is not None else c.values for n, c in read.items()
    }
    tables = {}
    for i, name in enumerate(names):
        own = order[bounds[i] : bounds[i + 1]]
        columns = {n: c[own] for n, c in cells.items()}
        counts = _counting_rows(columns, options)
        tables[name] = ScoreTable.from_arrays(**columns | options) if counts else ScoreTable.empty()
    name = getattr(by, "name", None)
    return tables, None if name is None else str(name)


def _counting_rows(columns: Mapping[str, Any], options: Mapping[str, Any]) -> bool:
    """Whether a part has a row that counts: of positive weight or frequency, and complete where others are dropped."""
    counts = np.ones(len(columns["y_true"]), dtype=bool)
    if options.get("missing") == "drop":
        for column in columns.values():
            counts &= ~np.ma.getmaskarray(column)
    for name in {"sample_weight", "frequency"} & columns.keys():
        counts &= np.ma.getdata(columns[name]) != 0
    return bool(counts.any())
