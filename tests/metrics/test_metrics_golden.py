"""Golden values: those written from the papers by slow scripts (tests/golden/README.md), and those of real networks."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

import calibrant as cb

GOLDEN = Path(__file__).parents[1] / "golden"
CASES = json.loads((GOLDEN / "expected.json").read_text())["metrics"]
SETTINGS = ("default", "min5_max20", "min0_max_third")


def table_of(case):
    with np.load(GOLDEN / f"{case}.npz") as rows:
        return cb.ScoreTable.from_arrays(rows["y"], rows["p"])


@pytest.fixture(scope="module", params=CASES)
def golden(request):
    return table_of(request.param), CASES[request.param]


def tolerance(expected):
    return 1e-9 if expected["N"] >= 100_000 else 1e-12


def test_golden_files_are_as_they_were():
    for line in (GOLDEN / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split()
        assert hashlib.sha256((GOLDEN / name).read_bytes()).hexdigest() == digest, name


def test_counts_are_exact(golden):
    table, expected = golden
    assert (table.size, table.positives, len(table)) == (expected["N"], expected["positives"], expected["distinct_p"])


@pytest.mark.parametrize("n_bins", [10, 15])
@pytest.mark.parametrize("closed", ["left", "right"])
@pytest.mark.parametrize(("name", "metric"), [("ece", cb.ECE), ("mce", cb.metrics.MCE), ("rmsce", cb.metrics.RMSCE)])
def test_equal_width_metrics(golden, name, metric, closed, n_bins):
    table, expected = golden
    value = metric(bins=cb.bins.EqualWidth(n_bins, closed=closed))(table).value
    assert value == pytest.approx(expected[f"{name}_{closed}_B{n_bins}"], rel=0, abs=tolerance(expected))


@pytest.mark.parametrize("n_bins", [10, 15])
def test_quantile_metrics(golden, n_bins):
    table, expected = golden
    bins = cb.bins.EqualSize(n_bins)
    close = tolerance(expected)
    assert cb.metrics.ACE(bins=bins)(table).value == pytest.approx(expected[f"ace_value_B{n_bins}"], rel=0, abs=close)
    assert cb.metrics.MCE(bins=bins)(table).value == pytest.approx(expected[f"mce_Q_value_B{n_bins}"], rel=0, abs=close)
    assert cb.TCE(bins=bins)(table).value == pytest.approx(expected[f"tce_Q_value_B{n_bins}"], rel=1e-15, abs=0)


def test_tce_over_pava_bins(golden):
    table, expected = golden
    breakdown = cb.TCE(bins=cb.bins.PAVA())(table)
    assert breakdown.value == pytest.approx(expected["tce_V_ties_pooled"], rel=1e-15, abs=0)
    if not expected["has_ties"]:
        assert breakdown.per_bin["rejected"].sum() == expected["tce_V_rejections"]


@pytest.mark.parametrize("setting", SETTINGS)
def test_tce_over_pava_bc_bins(golden, setting):
    table, expected = golden
    wanted = expected[setting]
    if wanted is None:
        return  # the paper's limits are not defined for so few rows
    breakdown = cb.TCE(bins=cb.bins.PAVABC(n_min=wanted["n_min"], n_max=wanted["n_max"]))(table)
    assert breakdown.per_bin["rejected"].sum() == wanted["tce_ties_pooled_rejections"]
    assert breakdown.value == pytest.approx(wanted["tce_ties_pooled"], rel=1e-15, abs=0)
    if not expected["has_ties"]:
        assert breakdown.per_bin["n"].tolist() == wanted["sizes_alg2"]
        assert breakdown.per_bin["k"].tolist() == wanted["pos_alg2"]


def test_default_limits_are_the_papers(golden):
    table, expected = golden
    if expected["default"] is not None:
        assert cb.bins.PAVABC().limits(table) == (expected["default"]["n_min"], expected["default"]["n_max"])


def test_ten_bins_have_five_definitions_of_ece():
    """What other libraries call ECE, on one input, and how it comes about; see docs/peers."""
    known = json.loads((GOLDEN / "conformance.json").read_text())
    y, p, other = known["y"], known["p"], {name: each["ece"] for name, each in known["libraries"].items()}
    assert cb.ece(y, p) == pytest.approx(0.06175)
    right_closed = cb.ece(y, p, bins=cb.bins.EqualWidth(10, closed="right"))
    assert right_closed == pytest.approx(other["pycalib"], abs=1e-12)
    assert right_closed == pytest.approx(other["uncertainty-calibration"], abs=1e-12)
    by_linspace = cb.ece(y, p, bins=cb.bins.Edges(np.linspace(0, 1, 11)))
    for name in ("netcal", "mcgrad", "relplot"):
        assert by_linspace == pytest.approx(other[name], abs=1e-12)
    assert len({round(value, 6) for value in [*other.values(), cb.ece(y, p)]}) == 5


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
    top = cb.metrics.top_label(y, proba)
    values = [cb.metrics.classwise(metric, y, proba).value for metric in metrics] + [
        metric(top).value for metric in metrics
    ]
    digits = (2, 4, 4, 2, 4, 4)
    assert tuple(map(round, values, digits)) == PRINTED[network]


# TCE to four decimals; ECE, ACE, MCE, MCE(Q) as printed, but for ResNet152's MCE(Q), printed 0.0102 by mistake
TABLE_5 = {
    "alexnet": (42.7360, 0.0070, 0.0070, 0.1496, 0.0528),
    "vgg19": (23.5660, 0.0028, 0.0028, 0.2148, 0.0247),
    "resnet18": (29.9340, 0.0042, 0.0042, 0.2368, 0.0350),
    "resnet50": (24.5960, 0.0020, 0.0018, 0.1911, 0.0152),
    "resnet152": (16.0860, 0.0012, 0.0013, 0.1882, 0.0101),
}


@pytest.mark.parametrize("model", TABLE_5)
def test_table_5(data_folder, model):
    with np.load(data_folder / "imagenet_dogs.npz") as scores:
        table = cb.ScoreTable.from_arrays(scores["labels"], scores[model])
    metrics = (cb.TCE(), cb.ECE(), cb.metrics.ACE(), cb.metrics.MCE(), cb.metrics.MCE(bins=cb.bins.EqualSize(10)))
    assert tuple(round(metric(table).value, 4) for metric in metrics) == TABLE_5[model]
