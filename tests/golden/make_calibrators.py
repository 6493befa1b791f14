"""Calibrators of other libraries, frozen in calibrators.json; ``make env NAME=oracles`` runs this.

The scores are those of five models on real data sets, kept under research/reproduction/predictions.
"""

import json
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
import statsmodels.api as sm
from betacal import BetaCalibration
from netcal.binning import IsotonicRegression
from netcal.scaling import BetaCalibration as NetcalBeta
from netcal.scaling import LogisticCalibration, TemperatureScaling
from sklearn.calibration import _SigmoidCalibration, _TemperatureScaling
from sklearn.isotonic import IsotonicRegression as SklearnIsotonic
from sklearn.linear_model import LogisticRegression

HERE = Path(__file__).parent
PREDICTIONS = HERE.parent.parent / "research" / "reproduction" / "predictions"
CASES = ["spambase-GB", "satimage-MLP", "abalone-LR", "coil_2000-RF", "mammography-SVM"]
EPS = 2.0**-24
SHOWN = 100


def values(y, p):
    inside = np.clip(p, EPS, 1 - EPS)
    logit = np.log(inside) - np.log1p(-inside)
    rows = np.linspace(0, len(p) - 1, SHOWN).astype(int)
    found = {"rows": rows.tolist()}

    # scikit-learn takes scores within 1e-15 of each other for one, so scores are also rounded beyond that.
    for name, x in (("sklearn_isotonic", np.round(p, 9)), ("sklearn_isotonic_of_raw_scores", p)):
        isotonic = SklearnIsotonic(y_min=0, y_max=1, out_of_bounds="clip").fit(x, y)
        found[name] = isotonic.predict(x[rows]).tolist()
    for name, x in (("score", p), ("logit", logit)):
        sigmoid = _SigmoidCalibration().fit(x, y)  # 1 / (1 + exp(a x + b)), Platt's targets
        found[f"sklearn_sigmoid_{name}"] = {"a": float(sigmoid.a_), "b": float(sigmoid.b_)}
        fit = sm.Logit(y, sm.add_constant(x)).fit(disp=0, method="newton", tol=1e-14, maxiter=500)
        found[f"glm_{name}"] = {"intercept": float(fit.params[0]), "slope": float(fit.params[1])}
    # Two columns of logits: the softmax of (0, z) is the sigmoid of z.
    temperature = _TemperatureScaling().fit(np.column_stack([np.zeros_like(logit), logit]), y)
    found["sklearn_temperature"] = {"slope": float(temperature.beta_)}

    for parameters in ("abm", "am", "ab"):
        cal = BetaCalibration(parameters=parameters).fit(inside.reshape(-1, 1), y)
        a, b, m = (float(v) for v in cal.calibrator_.map_)
        c = b * np.log(1 - m) - a * np.log(m)
        found[f"betacal_{parameters}"] = {"a": a, "b": b, "c": float(c)}
        found[f"betacal_{parameters}_predictions"] = cal.predict(inside[rows]).tolist()
    # The same regression, iterated to the end, by another optimiser.
    columns = np.column_stack([np.log(inside), -np.log1p(-inside)])
    exact = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-14, max_iter=10_000).fit(columns, y)
    a, b = (float(v) for v in exact.coef_[0])
    found["exact_beta"] = {"a": a, "b": b, "c": float(exact.intercept_[0])}

    netcal = {
        "isotonic": IsotonicRegression(),
        "logistic": LogisticCalibration(method="mle", temperature_only=False),
        "temperature": TemperatureScaling(method="mle"),
        "beta": NetcalBeta(method="mle"),
    }
    for name, cal in netcal.items():
        inside = np.clip(np.round(p, 9), EPS, 1 - EPS) if name == "isotonic" else np.clip(p, EPS, 1 - EPS)
        cal.fit(inside, y)
        found[f"netcal_{name}"] = np.asarray(cal.transform(inside[rows]), dtype=float).ravel().tolist()
    return found


def main():
    libraries = ["scikit-learn", "statsmodels", "betacal", "netcal", "torch", "numpy", "scipy"]
    result = {"versions": {name: version(name) for name in libraries}, "eps": EPS, "cases": {}}
    for case in CASES:
        with np.load(PREDICTIONS / f"{case}.npz") as rows, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result["cases"][case] = values(rows["y"].astype(int), rows["p"].astype(float))
    (HERE / "calibrators.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
