"""Write the page of the reproduction from its results."""

import csv
from collections import Counter
from pathlib import Path

from research.reproduction import rst
from research.reproduction.figures import FIGURES
from research.reproduction.tables import TABLES

_TITLES = {
    "table01": "Table 1: errors of bins, a random forest on satimage",
    "appendix_b": "Appendix B: errors of bins, a random forest on coil_2000",
    "table02": "Table 2: simulated data",
    "table03": "Table 3: abalone",
    "table04": "Table 4: webpage",
    "table05": "Table 5: ImageNet",
    "table06": "Table 6: the least size of a bin",
    "table07": "Table 7: the largest size of a bin",
    "table08": "Table 8: both sizes",
    "table09": "Table 9: noise",
    "table10": "Table 10: the significance level",
    "table11": "Table 11: binomial test and t-test",
    "table12": "Table 12: the number of rows",
    "table13": "Table 13: prevalence",
    "table14": "Table 14: eight other sets",
}
_FIGURES = {
    "figure1": "Figure 1: gradient boosting on abalone",
    "figure2": "Figures 2 and 3: bins of a random forest on satimage",
    "figure4": "Figure 4: bins of a random forest on coil_2000, from 0 to 0.1",
    "figure5": "Figure 5: logistic regression",
    "figure6": "Figure 6: gradient boosting",
    "figure7": "Figure 7: networks on ImageNet",
}
_LOOK = {
    "figure1": "Violins show which predictions of a bin the test rejects; the standard diagram does not show this.",
    "figure2": "PAVA's bins follow the outcomes and may be small; quantiles have equal sizes; PAVA-BC is a compromise.",
    "figure4": "Rates of PAVA-BC and of quantiles can fall below the previous bin (triangles); those of PAVA cannot.",
    "figure5": "On isolet and webpage nearly all rows are in the first bin of equal width.",
    "figure6": "The same with gradient boosting; the paper's caption names another algorithm.",
    "figure7": "The rates of the low bins can be distinguished only on a logit axis (see the gallery).",
}


def write(out: Path) -> None:
    """Write the page of tables and figures."""
    tables = {name: _rows(out / f"{name}.csv") for name in TABLES if (out / f"{name}.csv").exists()}
    counts = Counter(cell["verdict"] for cells in tables.values() for cell in cells)
    text = [rst.heading("Reproduction of the TCE paper", "="), _introduction(counts)]
    for name, cells in tables.items():
        own = Counter(cell["verdict"] for cell in cells)
        count = ", ".join(f"{own[v]} {v}" for v in ("equal", "explained", "open", "new") if own[v])
        text += [rst.heading(_TITLES[name], "-"), f"{len(cells)} cells: {count}.\n", _table(cells), _reasons(cells)]
    for name in ("nulls", "ties"):
        if (out / f"{name}.csv").exists():
            text += [
                rst.heading(*_EXTENSIONS[name][:1], "-"),
                _EXTENSIONS[name][1],
                f".. csv-table::\n   :file: {name}.csv\n   :header-rows: 1\n",
            ]
    for name in FIGURES:
        if (out / f"{name}.png").exists():
            text += [
                rst.heading(_FIGURES[name], "-"),
                f"{_LOOK[name]}\n",
                f".. image:: {name}.png\n   :alt: {_FIGURES[name]}\n",
            ]
    (out / "index.rst").write_text("\n".join(text).rstrip() + "\n", encoding="utf-8")


_EXTENSIONS = {
    "nulls": (
        "Null distributions of the reproduced values",
        "The paper's models, with the null range of each value, and with bins of about the square root of N rows "
        "(``PAVABC.consistent()``). With the paper's bins TCE of a calibrated model grows with the number of rows.\n",
    ),
    "ties": (
        "Dependence on the order of rows",
        "Forests and boosted trees give many rows the same prediction. The authors' program splits them by the order "
        "of a sort, so its TCE depends on the order of rows and on the machine. The table gives its range over 200 "
        "shuffles of the same rows. If equal predictions are merged, there is one value.\n",
    ),
}


def _introduction(counts: Counter[str]) -> str:
    open_ = f", and {counts['open']} are open" if counts["open"] else "; none is open"
    return (
        f"Of {counts.total():,} published values **{counts['equal']:,} are reproduced**, {counts['explained']} "
        f"differ for a reason given below the table{open_}. ``make reproduce`` writes this page; "
        "``python -m research --check`` compares the tables in seconds.\n\n"
        "Green values are reproduced. Red values differ, with the reproduced value in parentheses. Some published "
        "values depend on errors of the authors' program (ties split by the order of a sort, edges and cuts in "
        "floating point, a t-test without its square root, the tail of PAVA-BC). "
        "``as_published`` of ``research/reproduction/published_program.py`` repeats that program with the metrics of "
        "the library. It is not recommended for anything else: a shuffle of the rows changes its values. An arrow "
        "leads to the value of the library's default. :doc:`tce_errata` lists the errors.\n"
    )


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _table(cells: list[dict[str, str]]) -> str:
    columns = list(dict.fromkeys(cell["column"] for cell in cells))
    rows = {row: {c["column"]: c for c in cells if c["row"] == row} for row in dict.fromkeys(c["row"] for c in cells)}
    return rst.table_of_cells(columns, ((row, [_cell(own.get(c)) for c in columns]) for row, own in rows.items()))


def _cell(cell: dict[str, str] | None) -> str:
    if cell is None:
        return "<td></td>"
    digits = len(cell["published"].partition(".")[2])
    ours, corrected = (f"{float(cell[name]):.{digits}f}" for name in ("ours", "corrected"))
    equal = cell["verdict"] == "equal"
    text = cell["published"] if equal else f"{cell['published']} ({float(cell['ours']):.{digits + 1}f})"
    text += f" → {corrected}" if corrected != ours else ""
    return rst.coloured(text, rst.GREEN if equal else rst.RED)


def _reasons(cells: list[dict[str, str]]) -> str:
    found = [f"- {c['row']}, {c['column']}: {c['reason'] or 'open.'}" for c in cells if c["verdict"] != "equal"]
    return "\n".join(found) + "\n" if found else ""
