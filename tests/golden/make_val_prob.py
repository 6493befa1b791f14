"""Values of R's rms::val.prob and glm, frozen in val_prob.json; ``make env NAME=oracles`` runs this where R has rms.

val.prob stops its fit early (lrm.fit's eps), so slope, intercept and the likelihood ratio come from R's own glm with a
tolerance of 1e-14, Spiegelhalter's test from val.prob.
"""

import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
CASES = ["noties_calib_N200", "noties_over_N1000", "noties_calib_N6000", "imb_0.1pct"]
SCRIPT = """
suppressMessages(library(rms))
rows <- read.csv(commandArgs(TRUE)[1], colClasses = "numeric")
v <- val.prob(rows$p, rows$y, pl = FALSE)
x <- qlogis(rows$p)
fit <- glm(rows$y ~ x, family = binomial, control = glm.control(epsilon = 1e-14, maxit = 200))
lr <- -2 * sum(dbinom(rows$y, 1, rows$p, log = TRUE)) - fit$deviance
out <- c(v["S:z"], v["S:p"], coef(fit)[1], coef(fit)[2], lr, pchisq(lr, 2, lower.tail = FALSE), v["U:Chi-sq"])
writeLines(sprintf("%.17g", out))
writeLines(c(R.version.string, as.character(packageVersion("rms"))))
"""
NAMES = ["spiegelhalter_z", "spiegelhalter_p", "intercept", "slope", "lr", "lr_p", "val_prob_u_chisq"]


def main():
    result = {"versions": {}, "cases": {}}
    for case in CASES:
        with np.load(HERE / f"{case}_public.npz") as rows, tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            file.write("p,y\n" + "".join(f"{p!r},{y:g}\n" for p, y in zip(rows["p"].tolist(), rows["y"], strict=True)))
            file.flush()
            done = subprocess.run(["Rscript", "-e", SCRIPT, file.name], capture_output=True, text=True, check=True)
        *numbers, r, rms = done.stdout.strip().split("\n")
        result["versions"] = {"R": r, "rms": rms}
        result["cases"][case] = dict(zip(NAMES, map(float, numbers), strict=True))
    (HERE / "val_prob.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
