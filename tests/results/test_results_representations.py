"""Results have short representations with rounded numbers; fields keep full precision."""

import numpy as np
import pytest

import calibrant as cb
from calibrant.inference.estimates import from_error
from calibrant.inference.multiplicity import join_tests
from calibrant.results.verdict import Deviation, OmnibusTest, TestResult

TABLE = cb.ScoreTable.from_counts([0.2, 0.5, 0.8], [300, 300, 300], [100, 160, 210])
NAN = float("nan")


def make(cls, **fields):
    """A result with these fields and those of the metric."""
    return cls(**{"metric": "ECE", "unit": "1", "n_resamples": 99, "spec": {}} | fields)


INTERVAL = {"value": 0.031234, "low": 0.020111, "high": 0.040899, "level": 0.95, "method": "anchored"}
NULL = {"value": 0.031234, "low": 0.0051, "high": 0.0299, "expected": 0.015, "pvalue": 0.0123, "level": 0.9}
EQUIVALENCE = {"value": 0.031234, "margin": 0.05, "pvalue": 0.0004, "alpha": 0.05, "bound": 0.040899}


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (make(cb.results.Interval, **INTERVAL), "Interval(ECE = 0.0312, 95% CI 0.0201 to 0.0409)"),
        (
            make(cb.results.Interval, **INTERVAL | {"low": -0.01}),
            "Interval(ECE = +0.0312, 95% CI -0.0100 to +0.0409)",
        ),
        (
            make(cb.results.Interval, **INTERVAL | {"low": NAN, "high": NAN}),
            "Interval(ECE = 0.0312, no interval)",
        ),
        (
            make(cb.results.Interval, **INTERVAL | {"value": 12.34, "low": 8.1, "high": 15.22, "unit": "%"}),
            "Interval(ECE = 12.3 %, 95% CI 8.1 to 15.2 %)",
        ),
        (
            make(cb.results.Interval, **INTERVAL | {"value": 12345.6, "low": 12000.0, "high": 12999.9, "unit": "y"}),
            "Interval(ECE = 1.235e+04, 95% CI 1.2e+04 to 1.3e+04)",
        ),
        (
            make(cb.results.Null, alternative="greater", **NULL),
            "Null(ECE = 0.0312, 90% null range 0.0051 to 0.0299, p = 0.012)",
        ),
        (
            make(cb.results.Null, alternative="greater", **NULL | {"low": NAN, "high": NAN, "pvalue": NAN}),
            "Null(ECE = 0.0312, no null range)",
        ),
        (
            make(cb.results.Equivalence, **EQUIVALENCE),
            "Equivalence(ECE = 0.0312, upper bound 0.0409, within the margin of 0.05, p = 4e-04)",
        ),
        (
            make(cb.results.Equivalence, **EQUIVALENCE | {"pvalue": 0.2, "margin": 20, "unit": "%"}),
            "Equivalence(ECE = 0.0 %, upper bound 0.0 %, not shown within the margin of 20 %, p = 0.200)",
        ),
        (TestResult(2.33333, 0.0196, "Spiegelhalter"), "TestResult(Spiegelhalter: statistic 2.333, p = 0.020)"),
        (
            TestResult(5.99, 0.1123, "Hosmer-Lemeshow", df=3.0, resampling_pvalue=0.2),
            "TestResult(Hosmer-Lemeshow: statistic 5.99, df 3, p = 0.112, p = 0.200 by resampling)",
        ),
        (
            join_tests([TestResult(1.0, 0.01, "slope"), TestResult(NAN, NAN, "bins")]),
            "OmnibusTest(p = 0.020; slope: p = 0.010, adjusted p = 0.020; bins: not tested)",
        ),
        (OmnibusTest(), "OmnibusTest(no test)"),
        (
            from_error("slope", 1.0234, 0.02, 50.0, null=1.0),
            "Estimate(slope = 1.023, 95% CI 0.9832 to 1.064, p = 0.248)",
        ),
        (from_error("slope", 1.0234, NAN, 0.0), "Estimate(slope = 1.023, no interval)"),
        (
            Deviation.from_bounds("bias by bin", "", 0.0212, 0.01, 0.034, 0.05, 0.05),
            "Deviation(bias by bin 0.021 (90 % CI 0.01 to 0.034), margin 0.05)",
        ),
        (
            cb.inference.detectable(100, 0.2),
            "Detectable(100 rows with a predicted rate of 0.2: at least 0.1246 above, at least 0.09981 below)",
        ),
    ],
)
def test_a_representation_is_short_and_rounded(result, text):
    assert repr(result) == text


@pytest.mark.parametrize("name", cb.metrics.metric_names("binary"))
def test_results_of_every_metric_fit_into_one_line(name):
    options = {"n_resamples": 19, "random_state": 0}
    results = [cb.interval(name, TABLE, **options), cb.null(name, TABLE, **options)]
    results += [cb.equivalence(name, TABLE, margin=0.5, **options), cb.consistency(name, TABLE, **options)]
    for result in results:
        assert len(repr(result)) <= 120
        assert "\n" not in repr(result)


def test_fields_and_dictionaries_keep_full_precision():
    found = cb.interval("ece", TABLE, n_resamples=19, random_state=0)
    assert found.value == found.to_dict()["value"] == cb.ece(TABLE)
    assert found.value != round(found.value, 4)
    assert np.isclose(float(repr(found).partition("= ")[2].partition(",")[0]), found.value, atol=5e-5)
