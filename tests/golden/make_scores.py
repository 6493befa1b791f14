"""Values of other implementations, frozen in scores.json; ``make env NAME=oracles`` runs this."""

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
import relplot
import statsmodels.api as sm
from model_diagnostics.scoring import SquaredError, decompose
from scipy.special import logit
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

HERE = Path(__file__).parent
CASES = [
    "noties_calib_N200",
    "noties_over_N1000",
    "noties_calib_N6000",
    "ties_11levels",
    "ties_101levels",
    "imb_0.1pct",
]
SIGMAS = [0.01, 0.05, 0.2]


def values(y, p):
    found = {"brier": brier_score_loss(y, p), "auc": roc_auc_score(y, p)}
    if ((p > 0) & (p < 1)).all():
        # scikit-learn clips scores, ours are never clipped: compared where nothing needs clipping
        found["log_loss"] = log_loss(y, p)
        fit = sm.Logit(y, sm.add_constant(logit(p))).fit(disp=0, method="newton", tol=1e-14, maxiter=200)
        found["intercept"], found["slope"] = (float(v) for v in fit.params)
    corp = decompose(y, p, scoring_function=SquaredError())
    found |= {"mcb": corp["miscalibration"][0], "dsc": corp["discrimination"][0], "unc": corp["uncertainty"][0]}
    found["smooth_ece"] = float(relplot.smECE(p, y))
    found |= {f"smooth_ece_{s}": float(relplot.metrics.smECE_sigma(p, y, s)) for s in SIGMAS}
    return {name: float(value) for name, value in found.items()}


def main():
    libraries = ["scikit-learn", "statsmodels", "relplot", "model-diagnostics", "numpy", "scipy"]
    result = {"versions": {name: version(name) for name in libraries}, "cases": {}}
    for case in CASES:
        with np.load(HERE / f"{case}_public.npz") as rows:
            result["cases"][case] = values(rows["y"].astype(float), rows["p"].astype(float))
    (HERE / "scores.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
