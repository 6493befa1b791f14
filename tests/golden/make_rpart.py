"""Trees of R's rpart with its defaults, frozen in rpart.json; ``make env NAME=oracles`` runs this where R is.

Features are whole numbers, so that thresholds between them are the same in every program.
"""

import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
SCRIPT = """
library(rpart)
rows <- read.csv(commandArgs(TRUE)[1])
class <- rpart(factor(y) ~ . - q, rows)
number <- rpart(q ~ . - y, rows)
writeLines(sprintf("%.17g", c(predict(class, rows)[, 2], predict(number, rows))))
writeLines(c(R.version.string, as.character(packageVersion("rpart"))))
"""


def main():
    result = {"versions": {}, "cases": []}
    for seed, size in enumerate((150, 400, 1000)):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 60, (size, 4))
        rate = 1 / (1 + np.exp(-(X[:, 0] - 35) / 6 + (X[:, 1] > 30) * (X[:, 2] - 30) / 15))
        y = (rng.random(size) < rate).astype(int)
        q = (rate + rng.normal(0, 0.1, size)).round(6)
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            np.savetxt(file, np.column_stack([X, y, q]), delimiter=",", header="a,b,c,d,y,q", comments="", fmt="%.10g")
            file.flush()
            done = subprocess.run(["Rscript", "-e", SCRIPT, file.name], capture_output=True, text=True, check=True)
        *numbers, r, rpart = done.stdout.strip().split("\n")
        result["versions"] = {"R": r, "rpart": rpart}
        values = list(map(float, numbers))
        case = {"X": X.tolist(), "y": y.tolist(), "q": q.tolist(), "p": values[:size], "mean": values[size:]}
        result["cases"].append(case)
    (HERE / "rpart.json").write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
