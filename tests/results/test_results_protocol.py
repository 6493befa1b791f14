"""Results of all kinds have one protocol, and their text, frame, JSON, figure and report recompute nothing."""

import copy
import json
import math
import pickle
import re
import sys
from collections import Counter
from collections.abc import Mapping

import numpy as np
import pytest

import calibrant as cb
from tests.kinds.cases import KINDS, draw, each_kind

ATTRIBUTES = (
    *("kind", "verdict", "direction", "metrics", "tests", "groups", "breakdowns", "notes", "settings", "n_rows"),
    *("to_frame", "to_dict", "to_json", "plot", "to_html", "_repr_html_"),
)
OUTPUTS = {
    "repr": repr,
    "_repr_html_": lambda result: result._repr_html_(),
    "to_frame": lambda result: result.to_frame(),
    "to_json": lambda result: result.to_json(),
    "plot": lambda result: result.plot(fig=new_figure()),
    "to_html": lambda result: result.to_html(),
}
NEEDS = {"to_frame": ("pandas",), "plot": ("matplotlib",), "to_html": ("matplotlib", "jinja2")}
# Results are made in these modules. Outputs may read the attributes of results; they may call nothing else there.
COMPUTING = re.compile(
    r"calibrant\.(_kernels|forecasts|inference|metrics|kinds\.\w+\.(verdict|components|sample|differences))\b"
)
READING = {
    *("Breakdown.metric", "Breakdown.unit", "Breakdown.spec", "Breakdown.signed_bias", "Breakdown.rate_interval"),
    *("Breakdown.n_in", "Breakdown.n_used", "Breakdown.n_dropped", "Breakdown.per_bin", "GCE.unit", "GCE.spec"),
    *("UnbinnedMetric.spec", "UnbinnedMetric.unit", "part_to_spec", "_part_name", "plain_columns"),
    *("FromBinaryMetric.name", "FromBinaryMetric.spec", "ProperScore.spec"),
    *("MulticlassBrier.name", "MulticlassLogLoss.name"),
    "RejectionProfile.cells_per_bin",
    *("MetricValue.metric", "MetricValue.unit", "MetricValue.spec", "tests_scores"),
    *("Equivalence.within", "Null.excess"),
    *("OmnibusTest.pvalue", "OmnibusTest._adjusted", "OmnibusTest.scale"),
    *("OmnibusTest.significant", "TestResult.is_significant"),
    *("BiasByBin.significant", "BiasByBin.tce", "BiasByBin.biased_share", "BiasByBin.mean_absolute"),
    *("BiasByBin.reliability", "Coverage.mean_absolute", "MSEDecomposition.mse"),
    *("CorpDecomposition.brier", "BiasByBin.cells", "Coverage.cells"),
    *("cells_per_bin", "ClassDeviation.direction", "ClassProportion.is_shown", "ClassProportion.side"),
    *("holm", "benjamini_hochberg", "_check_pvalues", "rows_to_decide"),  # arithmetic with stored p-values and bounds
}


def new_figure():
    from matplotlib.figure import Figure

    return Figure(figsize=(12, 9), layout="constrained")


def make_results():
    rng = np.random.default_rng(7)
    n = 1200
    p = rng.random(n)
    y = (rng.random(n) < p**1.3).astype(int)
    group = rng.choice(["a", "b", "c"], n)
    fast = {"n_resamples": 29, "progress": False}
    samples = {kind: draw(kind, n) for kind in KINDS}
    return {kind: cb.evaluate(s.y, s.make(s.wrong), by=group, **fast) for kind, s in samples.items()} | {
        "binary, absolute margin": cb.evaluate(y, p, margin=cb.AbsoluteMargin(0.05), metrics=["brier"], **fast),
        "binary, weights": cb.evaluate(y, p, sample_weight=rng.random(n), **fast),
        "binary, few rows": cb.evaluate(y[:80], p[:80], confidence_level=0.8, **fast),
        "comparison": cb.compare(y, {"power": p**1.3, "plain": p, "square": p**2}, **fast),
    }


RESULTS = make_results()
results = pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS.keys())


@results
def test_a_result_has_the_attributes_of_the_protocol(result):
    assert not [name for name in ATTRIBUTES if not hasattr(result, name)]
    assert isinstance(result.kind, str)
    assert isinstance(result.verdict, str)
    assert isinstance(result.direction, str)
    assert result.n_rows in (80, 1200)
    for mapping in (result.metrics, result.tests, result.groups, result.breakdowns):
        assert isinstance(mapping, Mapping)
    for metric in result.metrics.values():
        assert metric.unit
        assert metric.value == metric.interval.value
        assert metric.null.pvalue <= 1 or math.isnan(metric.null.pvalue)
        assert metric.pvalue <= 1 or math.isnan(metric.pvalue)


@pytest.mark.parametrize("name", ["Evaluation", "Comparison"])
def test_classes_of_results_are_exported(name):
    assert name in cb.__all__
    assert any(isinstance(result, getattr(cb, name)) for result in RESULTS.values())


@results
def test_groups_are_results_of_the_same_class(result):
    assert all(type(group) is type(result) for group in result.groups.values())


@results
def test_a_result_can_be_pickled_and_copied(result):
    for other in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
        assert repr(other) == repr(result)
        assert other.to_json() == result.to_json()


@results
def test_json_is_strict_and_equals_the_dictionary(result):
    found = json.loads(result.to_json(), parse_constant=pytest.fail)
    assert found == json.loads(json.dumps(result.to_dict()))
    assert {"kind", "verdict", "direction", "settings", "notes", "n_rows"} <= set(found)


def calls_that_compute(function, *arguments):
    """Count the calls of functions that compute results, while `function` runs."""
    found = Counter()

    def record(frame, event, _):
        module = frame.f_globals.get("__name__", "")
        if event == "call" and COMPUTING.match(module):
            name = frame.f_code.co_qualname.partition(".<locals>")[0]
            if name not in READING and not name.endswith((".to_dict", ".__len__", "__create_fn__")):
                found[f"{module}.{name}"] += 1

    sys.setprofile(record)
    try:
        function(*arguments)
    finally:
        sys.setprofile(None)
    return dict(found)


@results
@pytest.mark.parametrize("output", OUTPUTS)
def test_outputs_call_no_metric_bins_interval_or_test(result, output):
    for library in NEEDS.get(output, ()):
        pytest.importorskip(library)
        pytest.importorskip("calibrant.evaluation.overview")  # importing a module may create default bins
    fresh = pickle.loads(pickle.dumps(result))  # without properties that an earlier output cached
    assert calls_that_compute(OUTPUTS[output], fresh) == {}


def test_the_recorder_of_calls_sees_metrics_intervals_and_tests():
    y, p = np.tile([0, 1], 50), np.linspace(0.01, 0.99, 100)
    seen = calls_that_compute(lambda: cb.evaluate(y, p, n_resamples=19, progress=False))
    for name in (
        "metrics.gce.GCE.__call__",
        "metrics.bins.EqualWidth.__call__",
        "metrics.significance.clopper_pearson",
    ):
        assert f"calibrant.{name}" in seen


@each_kind
def test_the_recorder_of_calls_sees_the_verdict_of_each_kind(kind):
    y, right, _, make = draw(kind, 200)
    seen = calls_that_compute(lambda: cb.evaluate(y, make(right), n_resamples=19, progress=False))
    assert any(name.startswith(f"calibrant.kinds.{kind}.verdict.") for name in seen)


@pytest.mark.parametrize("name", ["binary", "binary, weights", "binary, few rows"])
def test_stored_values_equal_those_of_the_library(name):
    result = RESULTS[name]
    level = result.settings.confidence_level
    sensitivity, profile = result.details.sensitivity, result.details.rejection_profile
    tested = result.breakdowns["TCE"]
    for i in (0, 20, 59):
        breakdown = cb.TCE(alpha=sensitivity.alphas[i], bins=tested.definition.bins)(result.table)
        assert sensitivity.tce[i] == pytest.approx(breakdown.value)
        assert sensitivity.rejected[i] == pytest.approx(breakdown.per_bin["rejected"])
    from calibrant.kinds.binary.details import RATIOS

    for i in (0, 20, 40):
        cost = cb.costs.LinearCost(over=1, under=RATIOS[i])
        assert sensitivity.ecc[i] == pytest.approx(cb.metrics.ecc(result.table, cost=cost))
    low, high = cb.significance.clopper_pearson(
        tested.partition.effective_k, tested.partition.effective_n, confidence_level=level
    )
    assert np.array_equal(tested.rate_interval(level), (low, high))
    # Both ends of a bin are scores of rows, so their decisions follow from the losses of bins of one score.
    ends = np.searchsorted(profile.score, tested.partition.min_score)
    bins = np.arange(len(tested.partition))
    expected = tested.definition.loss.rejects(tested.partition, bins, tested.partition.min_score)
    assert np.array_equal(profile.rejected[ends], expected)


def test_the_diagram_uses_the_stored_decisions():
    pytest.importorskip("matplotlib")
    from calibrant.kinds.binary.figures import tested

    for result in (RESULTS["binary"], RESULTS["binary, few rows"]):
        stored = tested(result).plot(fig=new_figure())
        direct = cb.plots.TestBasedReliabilityDisplay.from_breakdown(
            result.breakdowns["TCE"],
            null=result["TCE"].null,
            confidence_level=result.settings.confidence_level,
            fig=new_figure(),
        )
        assert cb.plots.svg(stored) == cb.plots.svg(direct)
