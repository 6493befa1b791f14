"""Measures of predicted numbers and distributions by other libraries, frozen in numbers.json.

scoringrules and uncertainty-toolbox for scores, statsmodels for HC3, scikit-learn for isotonic regression and squared
error, R's goftest for the distribution of A^2.
"""

import json
import subprocess
from importlib.metadata import version
from pathlib import Path

import numpy as np
import scoringrules as sr
import statsmodels.api as sm
import uncertainty_toolbox as uct
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import mean_pinball_loss, mean_squared_error, r2_score
from uncertainty_toolbox import metrics_calibration, metrics_scoring_rule

HERE = Path(__file__).parent
N = 80
SIZES = [5, 8, 10, 20, 50, 100, 1000]
STATISTICS = [0.2, 0.4, 0.7, 1.0, 1.5, 1.933, 2.492, 3.07, 3.5]


def inputs():
    rng = np.random.default_rng(9)
    mean, sd = rng.normal(10, 4, N), np.exp(rng.normal(0, 0.5, N))
    y = mean + 1.3 * sd * rng.standard_t(4, N) + 0.3
    levels = np.arange(1, 10) / 10
    return {
        "y": y,
        "mean": mean,
        "sd": sd,
        "levels": levels,
        "quantiles": np.sort(mean[:, None] + sd[:, None] * rng.normal(size=(N, 9)), axis=1),
        "draws": mean[:, None] + sd[:, None] * rng.normal(size=(N, 17)),
        "positive": np.abs(y) + 0.01,
        "counts": rng.poisson(4.5, N),
        "rounded": np.round(mean),  # predictions with ties
    }


def values(d):
    y, mean, sd = d["y"], d["mean"], d["sd"]
    gaussian = (mean, sd, y)
    fit = sm.OLS(y, sm.add_constant(mean)).fit(cov_type="HC3", use_t=True)
    test = fit.f_test((np.eye(2), np.array([0.0, 1.0])))
    isotonic = IsotonicRegression(out_of_bounds="clip").fit(d["rounded"], y)
    return {
        "scoringrules": {
            "normal": sr.crps_normal(y, mean, sd).tolist(),
            "t3": sr.crps_t(y, 3.0, mean, sd).tolist(),
            "logistic": sr.crps_logistic(y, mean, sd).tolist(),
            "gamma": sr.crps_gamma(d["positive"], 2.5, 0.5).tolist(),
            "gamma of all": sr.crps_gamma(y - 12, 2.5, 0.5).tolist(),
            "lognormal": sr.crps_lognormal(d["positive"], 1.0, 0.7).tolist(),
            "poisson": sr.crps_poisson(d["counts"], 4.5).tolist(),
            "ensemble": sr.crps_ensemble(y, d["draws"], estimator="nrg").tolist(),
            "quantiles": sr.crps_quantile(y, d["quantiles"], d["levels"]).tolist(),
            "nll": sr.logs_normal(y, mean, sd).tolist(),
        },
        "uncertainty_toolbox": {
            "nll": float(metrics_scoring_rule.nll_gaussian(*gaussian)),
            "crps": float(metrics_scoring_rule.crps_gaussian(*gaussian)),
            "check_score": float(metrics_scoring_rule.check_score(*gaussian)),
            "interval_score": float(metrics_scoring_rule.interval_score(*gaussian)),
            "mean_absolute_calibration_error": float(metrics_calibration.mean_absolute_calibration_error(*gaussian)),
            "accuracy": {k: float(v) for k, v in uct.metrics_accuracy.prediction_error_metrics(mean, y).items()},
        },
        "sklearn": {
            "mse": float(mean_squared_error(y, mean)),
            "relative_mse": float(1 - r2_score(y, mean)),
            "pinball": float(mean_pinball_loss(y, mean, alpha=0.8)),
            "isotonic": isotonic.predict(np.linspace(0, 25, 101)).tolist(),
        },
        "statsmodels": {
            "coefficients": fit.params.tolist(),
            "errors": fit.bse.tolist(),
            "intervals": np.asarray(fit.conf_int()).tolist(),
            "f": float(test.fvalue),
            "f_pvalue": float(test.pvalue),
        },
    }


def goftest():
    script = "library(goftest); a <- as.numeric(strsplit(commandArgs(TRUE)[1], ',')[[1]])\n"
    script += "for (n in c(%s)) writeLines(sprintf('%%.17g', pAD(a, n = n, lower.tail = FALSE)))\n"
    script += "writeLines(c(R.version.string, as.character(packageVersion('goftest'))))"
    script %= ",".join(map(str, SIZES))
    wanted = ",".join(map(str, STATISTICS))
    done = subprocess.run(["Rscript", "-e", script, wanted], capture_output=True, text=True, check=True)
    *numbers, r, package = done.stdout.strip().split("\n")
    table = np.array(numbers, dtype=float).reshape(len(SIZES), len(STATISTICS))
    return {"sizes": SIZES, "statistics": STATISTICS, "pvalues": table.tolist(), "R": r, "goftest": package}


def main():
    d = inputs()
    libraries = ["scoringrules", "uncertainty-toolbox", "scikit-learn", "statsmodels", "numpy", "scipy"]
    found = {
        "versions": {name: version(name) for name in libraries},
        "inputs": {name: array.tolist() for name, array in d.items()},
        **values(d),
        "goftest": goftest(),
    }
    (HERE / "numbers.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
