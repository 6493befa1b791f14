"""Fit R's randomForest on the data sets of Yang & Bi: 20 splits of the small sets and 5 of the large ones."""

import subprocess
from pathlib import Path

from research.reproduction.sources import DATA, ROOT

SCRIPT = Path(__file__).with_suffix(".R")
RESULTS = ROOT / "research" / "reproduction" / "results" / "forests.csv"
SPLITS = {20: ("Cancer", "CTG", "Churn"), 5: ("Default", "Bank")}


def main() -> None:
    lines: list[str] = []
    for splits, sets in SPLITS.items():
        command = ["Rscript", str(SCRIPT), str(DATA), str(splits), *sets]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        header, *rows = done.stdout.splitlines()
        lines = [*(lines or [header]), *rows]
    RESULTS.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
