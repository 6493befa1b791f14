"""Beyond the paper: its tables with nulls and with consistent bins, and what the order of tied rows did to them."""

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import calibrant as cb
from calibrant._support.progress import progress
from calibrant.tables.score_table import ScoreTable
from research.reproduction import gda
from research.reproduction.readings import rows_in_order
from research.reproduction.sources import ALGORITHMS, NETWORKS, NoDataError, imagenet, uci
from research.reproduction.tables import Setting

_DRAWS = 199
_SHUFFLES = 200


def nulls() -> Iterator[dict[str, Any]]:
    """TCE of the paper's models with what a right model would read, for the paper's bins and for consistent ones."""
    models = list(_models())
    for name, y, p in progress(models, len(models), "nulls"):
        table = ScoreTable.from_arrays(y, p)
        row: dict[str, Any] = {"model": name, "rows": int(table.size), "prevalence": f"{100 * table.prevalence:.3g} %"}
        kinds = {"TCE": cb.TCE(), "TCE (consistent)": cb.TCE(bins=cb.PAVABC.consistent()), "ACE": cb.ACE()}
        for column, metric in kinds.items():
            null = cb.null(metric, table, n_resamples=_DRAWS, random_state=0, progress=False)
            digits = 1 if null.unit == "%" else 4
            row[column] = f"{null.value:.{digits}f}"
            row[f"{column}: a right model reads"] = f"{null.low:.{digits}f} to {null.high:.{digits}f}"
            row[f"{column}: p"] = f"{null.pvalue:.3f}"
        yield row


def _models() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    for train, test in ((0.5, 0.5), (0.5, 0.4), (0.5, 0.6), (0.01, 0.01), (0.01, 0.0), (0.01, 0.02)):
        yield f"Table 2, {train:.0%} vs {test:.0%}", *gda.predictions(train, test)
    for size in (600, 6000, 60000):
        yield f"Table 12, calibrated, {size:,}", *gda.predictions(0.5, 0.5, size)
    for table, name in ((3, "abalone"), (4, "webpage")):
        for algorithm in ALGORITHMS:
            y, p, _ = uci(name, algorithm)
            yield f"Table {table}, {name}, {algorithm}", y, p
    for network in NETWORKS:
        yield f"Table 5, {network}", *imagenet(network)


def ties() -> Iterator[dict[str, Any]]:
    """TCE as the authors' program reads it, over shuffles of the same rows: from the lowest to the highest.

    Equal predictions are split by the order that rows happen to be in. Counted together, as the library does, there is
    one value.
    """
    rng = np.random.default_rng(0)
    cases = (
        ("abalone", "RF"),
        ("abalone", "GB"),
        ("coil_2000", "GB"),
        ("mammography", "RF"),
        ("pen_digits", "RF"),
        ("webpage", "GB"),
        ("webpage", "RF"),
    )
    for name, algorithm in progress(cases, len(cases), "shuffling ties"):
        y, p, order = uci(name, algorithm)
        setting = Setting.usual(y.size)
        counted = ScoreTable.from_arrays(y, p)
        read = []
        for _ in range(_SHUFFLES):
            again = rng.permutation(y.size)
            values = setting.read_as_printed(rows_in_order(y[again], p[again]))
            read.append((values["TCE(P)"], values["TCE(Q)"]))
        lows, highs = np.min(read, axis=0), np.max(read, axis=0)
        printed, right = setting.read_as_printed(rows_in_order(y, p, order)), setting.right(counted)
        row: dict[str, Any] = {
            "set": name,
            "algorithm": algorithm,
            "rows": y.size,
            "distinct predictions": len(counted),
        }
        for i, column in enumerate(("TCE(P)", "TCE(Q)")):
            row[f"{column} published order"] = f"{printed[column]:.2f}"
            row[f"{column} over shuffles"] = f"{lows[i]:.2f} to {highs[i]:.2f}"
            row[f"{column} counted"] = f"{right[column]:.2f}"
        yield row


PARTS: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {"nulls": nulls, "ties": ties}


def write(out: Path, only: list[str] | None) -> None:
    """Both tables as CSV."""
    for name, part in PARTS.items():
        if only and name not in only:
            continue
        try:
            rows = list(part())
        except NoDataError as error:
            print(f"{name}: left out. {error}")
            continue
        with (out / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        print(f"{name}: {len(rows)} rows")
