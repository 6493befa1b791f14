"""Extensions of the paper's tables: null distributions, consistent bins, and the effect of the order of tied rows."""

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import calibrant as cb
from calibrant._support.progress import progress_bar
from calibrant.tables.score_table import ScoreTable
from research.reproduction import gda
from research.reproduction.sources import ALGORITHMS, NETWORKS, NoDataError, imagenet, uci
from research.reproduction.tables import Rows, Setting

_RESAMPLES = 199
_SHUFFLES = 200


def nulls() -> Iterator[dict[str, Any]]:
    """Yield TCE of the paper's models with its null range, for the paper's bins and for consistent ones."""
    models = list(_models())
    for name, y, p in progress_bar(models, len(models), "nulls"):
        table = ScoreTable.from_arrays(y, p)
        row: dict[str, Any] = {"model": name, "rows": int(table.size), "prevalence": f"{100 * table.prevalence:.3g} %"}
        kinds = {"TCE": cb.TCE(), "TCE (consistent)": cb.TCE(bins=cb.bins.PAVABC.consistent()), "ACE": cb.metrics.ACE()}
        for column, metric in kinds.items():
            null = cb.null(metric, table, n_resamples=_RESAMPLES, random_state=0, progress=False)
            digits = 1 if null.unit == "%" else 4
            row[column] = f"{null.value:.{digits}f}"
            row[f"{column}: expected if calibrated"] = f"{null.low:.{digits}f} to {null.high:.{digits}f}"
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
    """Yield the range of TCE of the authors' program over shuffles of the same rows.

    It splits equal predictions by the order of rows. The library merges them, so its value does not depend on the
    order.
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
    for name, algorithm in progress_bar(cases, len(cases), "shuffling ties"):
        y, p, order = uci(name, algorithm)
        setting = Setting.usual(y.size)
        shuffled = []
        for _ in range(_SHUFFLES):
            again = rng.permutation(y.size)
            values = setting.as_published(Rows.sorted(y[again], p[again]))
            shuffled.append((values["TCE(P)"], values["TCE(Q)"]))
        lows, highs = np.min(shuffled, axis=0), np.max(shuffled, axis=0)
        rows = Rows.sorted(y, p, order)
        printed, corrected = setting.as_published(rows), setting.corrected(rows)
        row: dict[str, Any] = {
            "set": name,
            "algorithm": algorithm,
            "rows": y.size,
            "distinct predictions": len(rows.table),
        }
        for i, column in enumerate(("TCE(P)", "TCE(Q)")):
            row[f"{column} published order"] = f"{printed[column]:.2f}"
            row[f"{column} over shuffles"] = f"{lows[i]:.2f} to {highs[i]:.2f}"
            row[f"{column} counted"] = f"{corrected[column]:.2f}"
        yield row


PARTS: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {"nulls": nulls, "ties": ties}


def write(out: Path, only: list[str] | None) -> None:
    """Write both tables as CSV."""
    for name, part in PARTS.items():
        if only and name not in only:
            continue
        try:
            rows = list(part())
        except NoDataError as error:
            print(f"{name}: skipped. {error}")
            continue
        with (out / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        print(f"{name}: {len(rows)} rows")
