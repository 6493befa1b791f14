"""The numbers that the documentation prints for two networks on CIFAR-10."""

import numpy as np
import pytest

import calibrant as cb

# class-wise TCE, ECE, Brier; top-label TCE, ECE, Brier
PRINTED = {
    "cifar10_lenet5": (64.99, 0.0235, 0.0614, 98.62, 0.1079, 0.2166),
    "cifar10_wideresnet_16_4": (38.03, 0.0123, 0.0144, 99.46, 0.0537, 0.0663),
}


@pytest.mark.parametrize("network", PRINTED)
def test_class_wise_and_top_label(data_folder, network):
    with np.load(data_folder / "forecasts" / f"{network}.npz") as scores:
        y, proba = scores["ground_truth"], scores["predictions"]
    metrics = (cb.TCE(), cb.ECE(), cb.METRICS["brier"]())
    top = cb.top_label(y, proba)
    values = [cb.classwise(metric, y, proba).value for metric in metrics] + [metric(top).value for metric in metrics]
    digits = (2, 4, 4, 2, 4, 4)
    assert tuple(map(round, values, digits)) == PRINTED[network]
