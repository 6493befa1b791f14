"""What seven other libraries call "ECE with 10 bins", on one input: conformance.json.

200 scores that are multiples of 0.05, as people round them, so that half of them lie on the edge of a bin. Run by make
oracles.
"""

import json
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np

warnings.simplefilter("ignore")
rng = np.random.default_rng(7)
P = np.round(rng.beta(0.9, 1.6, 200) * 20) / 20
Y = (rng.random(200) < P**1.2).astype(int)


def sklearn_curve():
    from sklearn.calibration import calibration_curve

    rate, mean = calibration_curve(Y, P, n_bins=10, strategy="uniform")
    return np.abs(rate - mean).mean()


def netcal():
    from netcal.metrics import ECE

    return ECE(10).measure(P, Y)


def torchmetrics():
    import torch
    from torchmetrics.classification import BinaryCalibrationError

    return BinaryCalibrationError(n_bins=10, norm="l1")(torch.tensor(P), torch.tensor(Y)).item()


def pycalib():
    from pycalib.metrics import binary_ECE

    return binary_ECE(Y, P, bins=10)


def relplot():
    from relplot.metrics import binnedECE

    return binnedECE(P, Y, nbins=10)


def uncertainty_calibration():
    from calibration import get_ece

    return get_ece(P, Y, num_bins=10)


def mcgrad():
    from mcgrad.metrics import expected_calibration_error

    return expected_calibration_error(Y, P, num_bins=10)


LIBRARIES = {
    "scikit-learn": sklearn_curve, "netcal": netcal, "torchmetrics": torchmetrics, "pycalib": pycalib,
    "relplot": relplot, "uncertainty-calibration": uncertainty_calibration, "mcgrad": mcgrad,
}  # fmt: skip


def main():
    found = {}
    for name, ece in LIBRARIES.items():
        found[name] = {"version": version(name), "ece": float(ece())}
    result = {"p": P.tolist(), "y": Y.tolist(), "libraries": found}
    Path(__file__).with_name("conformance.json").write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
