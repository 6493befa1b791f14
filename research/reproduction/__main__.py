"""Rebuild the tables and figures of the TCE paper: ``python -m research.reproduction [--quick] [--only table05 ...]``.

``--quick`` skips the parts that take minutes: figures, null distributions and ties. Results go to docs/reproduction.
"""

import argparse
import csv
import sys
import time
from collections import Counter
from pathlib import Path

from research.reproduction import extensions, figures, pages
from research.reproduction.sources import ROOT, NoDataError
from research.reproduction.tables import TABLES, Cell

OUT = ROOT / "docs" / "reproduction"


def main() -> int:
    options = _options()
    chosen = options.only or list(TABLES)
    counts: Counter[str] = Counter()
    missing = []
    for name in chosen:
        if name not in TABLES:
            continue
        began = time.perf_counter()
        try:
            cells = list(TABLES[name]())
        except NoDataError as error:
            print(f"{name}: skipped. {error}")
            missing.append(name)
            continue
        own = Counter(cell.verdict for cell in cells)
        counts += own
        _report(name, cells, own, time.perf_counter() - began)
        if not options.check:
            _write(OUT / f"{name}.csv", cells)
    print(f"\n{counts.total()} cells: {', '.join(f'{n} {verdict}' for verdict, n in counts.most_common())}")
    if missing:
        print(f"skipped because data are missing: {', '.join(missing)}")
    if not options.quick and not options.check:
        extensions.write(OUT, options.only)
        figures.write(OUT, options.only)
        pages.write(OUT)
    return int(counts["new"] > 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m research.reproduction", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tables only")
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    names = [*TABLES, *extensions.PARTS, *figures.FIGURES]
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=", ".join(names))
    return parser.parse_args()


def _report(name: str, cells: list[Cell], counts: Counter[str], seconds: float) -> None:
    verdicts = ", ".join(f"{n} {verdict}" for verdict, n in counts.most_common())
    print(f"{name}: {len(cells)} cells, {verdicts} ({seconds:.1f} s)", flush=True)
    for cell in cells:
        if not cell.equal:
            print(
                f"    {cell.row}, {cell.column}: printed {cell.published}, ours {cell.ours:.6g}. "
                f"{cell.reason or 'NEW: not investigated.'}"
            )


def _write(path: Path, cells: list[Cell]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["row", "column", "published", "ours", "corrected", "verdict", "reason"])
        for c in cells:
            digits = c.decimals + 2
            writer.writerow(
                [c.row, c.column, c.published, f"{c.ours:.{digits}f}", f"{c.corrected:.{digits}f}", c.verdict, c.reason]
            )


if __name__ == "__main__":
    sys.exit(main())
