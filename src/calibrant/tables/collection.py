"""`Tables`: the tables of several models and groups, counted in one pass."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from calibrant._support.errors import InputError, wrong_value
from calibrant._support.formatting import text_table
from calibrant.tables.score_table import ScoreTable, add_tables


def in_order(keys: Iterable[tuple[str, Any]], models: list[str]) -> list[tuple[str, Any]]:
    """Sort keys (model, group): models in the order given, groups by value (those of several types as text)."""
    known = list(keys)
    place = {model: i for i, model in enumerate(models)}
    try:
        return sorted(known, key=lambda key: (place[key[0]], () if key[1] is None else (key[1],)))
    except TypeError:
        return sorted(known, key=lambda key: (place[key[0]], str(key[1])))


class Tables(Mapping[tuple[str, Any], ScoreTable]):
    """Tables by model and group: ``tables["model", "group"]``.

    The model is the name of a column of scores. The group is None without `by`, a label for one column, and a tuple of
    labels for several columns. Tables of parts of the data add up, key by key.

    Parameters
    ----------
    tables : mapping
        From (model, group) to `ScoreTable`.
    by : tuple of str, optional
        Names of the columns of the groups.

    See Also
    --------
    ScoreTable, from_frame, scan

    Examples
    --------
    >>> a = Tables({("new", "north"): ScoreTable.from_counts([0.2], [10], [3])})
    >>> b = Tables({("new", "north"): ScoreTable.from_counts([0.2], [5], [1])})
    >>> (a + b)["new", "north"].size
    15
    """

    def __init__(self, tables: Mapping[tuple[str, Any], ScoreTable], by: tuple[str, ...] = ()) -> None:
        for key, table in tables.items():
            if not (isinstance(key, tuple) and len(key) == 2 and isinstance(table, ScoreTable)):
                raise InputError(f"tables must map (model, group) to ScoreTable; got {key!r}: {type(table).__name__}.")
        self._tables: dict[tuple[str, Any], ScoreTable] = dict(tables)
        self.by = by

    def __setstate__(self, state: dict[str, Any]) -> None:
        tables, by = state.get("_tables"), state.get("by", ())
        if not isinstance(tables, Mapping) or not isinstance(by, tuple):
            raise InputError("The state of Tables must hold a mapping of tables and a tuple of columns.")
        Tables.__init__(self, tables, by)

    def __getitem__(self, key: tuple[str, Any]) -> ScoreTable:
        return self._tables[key]

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    @property
    def models(self) -> list[str]:
        """The names of the columns of scores, in order."""
        return list(dict.fromkeys(model for model, _ in self._tables))

    @property
    def groups(self) -> list[Any]:
        """The groups, in order."""
        return list(dict.fromkeys(group for _, group in self._tables))

    def of(self, model: str | None = None) -> dict[Any, ScoreTable]:
        """Return the tables of one model by group; the model may be omitted if there is one.

        Parameters
        ----------
        model : str, optional
            Name of the model; needed if there are several.

        Returns
        -------
        dict[Any, ScoreTable]
        """
        wanted = self._known(model)
        return {group: table for (name, group), table in self._tables.items() if name == wanted}

    def only(self, model: str | None = None) -> "Tables":
        """Return the tables of one model by model and group.

        Parameters
        ----------
        model : str, optional
            Name of the model; needed if there are several.

        Returns
        -------
        Tables
        """
        name = self._known(model)
        return Tables({(name, group): table for group, table in self.of(name).items()}, self.by)

    def total(self, model: str | None = None) -> ScoreTable:
        """Return the sum of the tables of all groups of one model; they are joined and merged in one sort.

        Parameters
        ----------
        model : str, optional
            Name of the model; needed if there are several.

        Returns
        -------
        ScoreTable
        """
        return add_tables(list(self.of(model).values()))

    def _known(self, model: str | None) -> str:
        if model is None and len(self.models) == 1:
            return self.models[0]
        if model not in self.models:
            raise wrong_value("model", f"must be one of {', '.join(map(repr, self.models))}", model)
        assert model is not None
        return model

    def __add__(self, other: object) -> "Tables":
        if not isinstance(other, Tables):
            return NotImplemented
        if len(self) and len(other) and self.by != other.by:
            raise InputError(
                f"Tables that are added must have the same groups; got {self.by} and {other.by}.", argument="by"
            )
        joined = dict(self._tables)
        for key, table in other.items():
            joined[key] = joined[key] + table if key in joined else table
        models = list(dict.fromkeys([*self.models, *other.models]))
        return Tables({key: joined[key] for key in in_order(joined, models)}, self.by or other.by)

    def __radd__(self, other: object) -> "Tables":
        return self if other == 0 else NotImplemented  # so that sum() works

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tables):
            return NotImplemented
        return self.by == other.by and self._tables == other._tables

    def __repr__(self) -> str:
        cells = [["model", "group", "rows", "events", "distinct scores"]]
        for (model, group), table in self._tables.items():
            cells.append([model, str(group), f"{table.size:,.6g}", f"{table.positives:,.6g}", f"{len(table):,}"])
        return "\n".join([f"Tables ({len(self)})", *text_table(cells, left=(0, 1))])
