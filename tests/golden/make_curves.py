"""Values of R for calibration curves, frozen in curves.json; ``make env NAME=oracles`` runs this.

Splines: knots of Hmisc::rcspline.eval, fit of glm with a tolerance of 1e-14 on rms::rcs, with model-based standard
errors and those of sandwich::vcovCL (clusters are rows modulo 50). Loess: stats::loess with surface = "direct", and
ICI, E50, E90, Emax as in the appendix of Austin and Steyerberg (2019). Belt: glm for each degree, and the
distribution of the statistic by R's integrate.
"""

import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
CASES = {"noties_calib_N200": "p", "noties_over_N1000": "p", "noties_calib_N6000": "plogis(0.6 * x + 0.12 * x^2)"}
CASES["ties_101levels"] = "pmin(pmax(p, 0.005), 0.995)"
SCRIPT = """
suppressMessages({library(rms); library(sandwich); library(jsonlite)})
arguments <- commandArgs(TRUE)
rows <- read.csv(arguments[1], colClasses = "numeric")
p <- rows$p; x <- qlogis(p); p <- eval(parse(text = arguments[2])); y <- rows$y; x <- qlogis(p)
tight <- glm.control(epsilon = 1e-14, maxit = 200)
at <- quantile(p, c(.01, .1, .3, .5, .7, .9, .99), names = FALSE)
out <- list(p = p, at = at)
for (nk in c(3, 5)) {
  knots <- rcspline.eval(x, nk = nk, knots.only = TRUE)
  B <- function(v) cbind(1, v, rcspline.eval(v, knots = knots))
  fit <- glm(y ~ B(x) - 1, family = binomial, control = tight)
  G <- B(qlogis(at))
  names <- paste0(c("knots", "logit", "error", "cluster_error"), nk)
  V <- vcovCL(fit, cluster = seq_along(y) %% 50, type = "HC0", cadjust = TRUE)
  out[names] <- list(knots, drop(G %*% coef(fit)), sqrt(diag(G %*% vcov(fit) %*% t(G))), sqrt(diag(G %*% V %*% t(G))))
}
for (d in 1:2) {
  fit <- loess(y ~ p, degree = d, control = loess.control(surface = "direct"))
  out[[paste0("loess", d)]] <- predict(fit, data.frame(p = at))
}
e <- abs(p - predict(fit, data.frame(p = p)))
out$errors <- c(mean(e), median(e), quantile(e, .9, names = FALSE), max(e))
# The belt: forward selection of the degree, and P(statistic > t | degree) by integration.
powers <- function(m) sapply(1:m, function(j) x^j)
fits <- lapply(1:4, function(m) glm(y ~ powers(m), family = binomial, control = tight))
m <- 1; k <- qchisq(.95, 1)
while (m < 4 && fits[[m]]$deviance - fits[[m + 1]]$deviance > k) m <- m + 1
stat <- -2 * sum(dbinom(y, 1, p, log = TRUE)) - fits[[m]]$deviance
tail <- function(t, r) {
  if (r == 0) return(pchisq(t, 2, lower.tail = FALSE))
  if (t <= r * k) return(.05^r)
  top <- sqrt(t - (r - 1) * k)
  f <- function(u) sapply(u, function(v) 2 * dnorm(v) * tail(t - v^2, r - 1))
  integrate(f, sqrt(k), top, rel.tol = 1e-8)$value + 2 * pnorm(-top) * .05^(r - 1)
}
out$belt <- c(m, stat, tail(stat, m - 1) / .05^(m - 1))
out$tails <- sapply(1:4, function(m) tail(4 * m + 5, m - 1) / .05^(m - 1))
out$versions <- c(R.version.string, as.character(packageVersion("rms")), as.character(packageVersion("sandwich")))
cat(toJSON(out, digits = 17))
"""


def main():
    result = {"versions": {}, "cases": {}}
    for case, transform in CASES.items():
        with np.load(HERE / f"{case}_public.npz") as rows, tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            file.write("p,y\n" + "".join(f"{p!r},{y:g}\n" for p, y in zip(rows["p"].tolist(), rows["y"], strict=True)))
            file.flush()
            command = ["Rscript", "-e", SCRIPT, file.name, transform]
            found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        r, rms, sandwich = found.pop("versions")
        result["versions"] = {"R": r, "rms": rms, "sandwich": sandwich}
        if transform == "p":
            del found["p"]  # the scores of the case
        result["cases"][case] = found
    (HERE / "curves.json").write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
