"""Results of tests, and omnibus tests."""

import json
import math
import pickle

from calibrant.inference.multiplicity import holm, join_tests
from calibrant.results.verdict import OmnibusTest, TestResult

COMPONENTS = [
    TestResult(3.0, 0.003, "mean", direction="overestimates"),
    TestResult(1.0, 0.3, "slope", direction="overconfident"),
    None,
    TestResult(math.nan, math.nan, "bins", method="10 bins"),
    TestResult(9.0, 0.01, "coverage"),
]


def test_a_result_unpacks_to_statistic_and_p_value():
    statistic, pvalue = TestResult(2.5, 0.0124, "z")
    assert (statistic, pvalue) == (2.5, 0.0124)
    assert pickle.loads(pickle.dumps(TestResult(2.5, 0.0124, "z"))) == TestResult(2.5, 0.0124, "z")


def test_components_are_adjusted_by_holm_and_untested_ones_count():
    omnibus = join_tests(COMPONENTS)
    assert list(omnibus.components) == ["mean", "slope", "bins", "coverage"]
    adjusted = [component.adjusted_pvalue for component in omnibus.components.values()]
    expected = holm([0.003, 0.3, 1.0, 0.01]).tolist()
    assert [adjusted[0], adjusted[1], adjusted[3]] == [expected[0], expected[1], expected[3]]
    assert math.isnan(adjusted[2])
    assert omnibus.pvalue == min(expected)
    json.dumps([component.to_dict() for component in omnibus.components.values()], allow_nan=False)


def test_components_are_significant_by_their_adjusted_pvalues():
    omnibus = join_tests(COMPONENTS)
    assert omnibus.is_significant("mean", 0.05)
    assert not omnibus.is_significant("slope", 0.05)
    assert not omnibus.is_significant("unknown", 1.0)


def test_scaled_p_values_are_at_most_1_and_untested_ones_stay_undefined():
    omnibus = join_tests(COMPONENTS).scale(4.0)
    assert omnibus.components["mean"].adjusted_pvalue == 4 * 0.012
    assert omnibus.components["slope"].adjusted_pvalue == 1.0
    assert math.isnan(omnibus.components["bins"].adjusted_pvalue)
    assert omnibus.components["mean"].pvalue == 0.003


def test_a_joint_test_without_tests_has_no_p_value():
    for omnibus in (OmnibusTest(), join_tests([]), join_tests([COMPONENTS[3]])):
        assert math.isnan(omnibus.pvalue)
