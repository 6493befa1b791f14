"""Stored results of splits, which are not computed again."""

import csv
from pathlib import Path

from research.reproduction.sources import ROOT

KEPT = ROOT / "research" / "reproduction" / "results" / "costs.csv"
Key = tuple[str, str, int]  # set, model, seed
_KEY = ("set", "model", "seed")


def read(path: Path | None = None) -> dict[Key, dict[str, float]]:
    """Return ECC by cost and method, split by split."""
    path = path or KEPT
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {
        (row["set"], row["model"], int(row["seed"])): {
            name: float(text) for name, text in row.items() if name not in _KEY and text
        }
        for row in rows
    }


def add(key: Key, found: dict[str, float], path: Path | None = None) -> None:
    """Store a part of a split."""
    kept = read(path)
    write(kept | {key: kept.get(key, {}) | found}, path)


def write(results: dict[Key, dict[str, float]], path: Path | None = None) -> None:
    """Write all results, sorted; the file is replaced atomically."""
    path = path or KEPT
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = list(dict.fromkeys(name for found in results.values() for name in found))
    beside = path.with_suffix(".part")
    with beside.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*_KEY, *columns])
        for split in sorted(results):
            found = results[split]
            writer.writerow([*split, *(f"{found[name]:.6g}" if name in found else "" for name in columns)])
    beside.replace(path)
