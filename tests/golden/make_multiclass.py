"""Multiclass calibrators of other libraries, frozen in multiclass.json; ``make env NAME=oracles`` runs this.

The scores are those of two networks on CIFAR-10, in the folder that CALIBRANT_DATA names; odd rows fit, even rows are
calibrated. Dirichlet calibration is in none of the libraries: torch minimises its objective, with derivatives of its
own, in double precision.
"""

import json
import os
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from netcal.scaling import LogisticCalibration, TemperatureScaling
from sklearn.calibration import _TemperatureScaling
from sklearn.linear_model import LogisticRegression

HERE = Path(__file__).parent
DATA = Path(os.environ.get("CALIBRANT_DATA") or HERE.parents[2] / "shared" / "data") / "forecasts"
NETWORKS = ["cifar10_lenet5", "cifar10_wideresnet_16_4"]
EPS = 2.0**-24
SHOWN = 20
PENALTIES = {
    "odir_0.01": (0.01, 0.01, True),
    "odir_1": (1.0, 1.0, True),
    "odir_10_0.1": (10.0, 0.1, True),
    "l2_0.1": (0.1, 0.1, False),
}


def log_loss(proba, y):
    return float(-np.log(proba[np.arange(len(y)), y]).mean())


def dirichlet(z, y, reg_lambda, reg_mu, odir):
    """Minimise the penalised log loss of softmax(W z + b) by torch's L-BFGS."""
    k = z.shape[1]
    z, y = torch.tensor(z), torch.tensor(y)
    weights = torch.eye(k, dtype=torch.float64).requires_grad_()
    biases = torch.zeros(k, dtype=torch.float64, requires_grad=True)
    off = torch.ones(k, k, dtype=torch.float64) - (torch.eye(k, dtype=torch.float64) if odir else 0)
    best = torch.optim.LBFGS(
        [weights, biases],
        max_iter=20_000,
        max_eval=50_000,
        history_size=100,
        tolerance_grad=1e-10,
        tolerance_change=1e-16,
        line_search_fn="strong_wolfe",
    )

    def objective():
        loss = torch.nn.functional.cross_entropy(z @ weights.T + biases, y)
        penalty = reg_lambda * (off * weights**2).sum() / off.sum() + reg_mu * (biases**2).mean()
        return loss + penalty

    def closure():
        best.zero_grad()
        value = objective()
        value.backward()
        return value

    for _ in range(5):
        best.step(closure)
    return weights.detach().numpy(), biases.detach().numpy(), float(objective())


def values(proba, y):
    train, test = np.arange(1, len(y), 2), np.arange(0, len(y), 2)
    z = np.log(np.maximum(proba, EPS))
    inside = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    rows = test[np.linspace(0, len(test) - 1, SHOWN).astype(int)]
    found = {"rows": rows.tolist()}
    sklearn = _TemperatureScaling().fit(z[train], y[train])
    found["sklearn_temperature"] = {"slope": float(sklearn.beta_)}
    for name, cal in (
        ("netcal_temperature", TemperatureScaling(method="mle")),
        ("netcal_vector", LogisticCalibration(method="mle")),
    ):
        cal.fit(inside[train], y[train])
        found[name] = {
            "predictions": np.asarray(cal.transform(inside[rows]), dtype=float).tolist(),
            "log_loss": log_loss(np.asarray(cal.transform(inside[train]), dtype=float), y[train]),
        }
    matrix = LogisticRegression(C=np.inf, solver="newton-cg", tol=1e-12, max_iter=100_000).fit(z[train], y[train])
    found["sklearn_matrix"] = {
        "predictions": matrix.predict_proba(z[rows]).tolist(),
        "log_loss": log_loss(matrix.predict_proba(z[train]), y[train]),
    }
    for name, penalty in PENALTIES.items():
        weights, biases, objective = dirichlet(z[train], y[train], *penalty)
        logits = z[rows] @ weights.T + biases
        raised = np.exp(logits - logits.max(axis=1, keepdims=True))
        found[f"torch_{name}"] = {
            "objective": objective,
            "predictions": (raised / raised.sum(axis=1, keepdims=True)).tolist(),
        }
    return found


def main():
    libraries = ["scikit-learn", "netcal", "torch", "numpy", "scipy"]
    result = {"versions": {name: version(name) for name in libraries}, "eps": EPS, "penalties": PENALTIES, "cases": {}}
    for network in NETWORKS:
        with np.load(DATA / f"{network}.npz") as scores, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            proba, y = scores["predictions"].astype(float), scores["ground_truth"].astype(int)
            result["cases"][network] = values(proba, y)
    (HERE / "multiclass.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
