"""Sample sizes for external validation: the authors' published example, and simulated standard errors."""

import json

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, ndtri
from scipy.stats import norm

import calibrant as cb
from calibrant.inference import ValidationPrecision
from calibrant.inference.validation_size import auc_rows, net_benefit_rows, oe_rows, slope_rows

Z = 1.959963984540054


def test_published_example_of_heart_valve_failure():
    """R's pmvalsampsize, test 4.1: 905 rows for O/E and 4,252 for the C statistic.

    Its 905 has a standard error that rises in steps of 0.0001 until the width is reached: 0.2456 instead of 0.245516.
    """
    assert oe_rows(0.018, 1.0, 1.96) == 906
    assert int(np.ceil((1 - 0.018) / (0.018 * 0.2456**2))) == 905
    assert auc_rows(0.8, 0.018, 0.1, 1.96) == 4252


def test_slope_of_the_published_example_equals_quadrature():
    """pmvalsampsize draws 1,000 log-odds from N(-5, 2.5) and gets 4,501 rows; the integral gives 4,554."""
    a, ab, b = (
        quad(lambda x, j=j: norm.pdf(x, -5, 2.5) * expit(x) * expit(-x) * x**j, -30, 20, limit=500)[0] for j in range(3)
    )
    want = a / ((0.2 / (2 * 1.96)) ** 2 * (a * b - ab**2))
    score = expit(-5 + 2.5 * ndtri((np.arange(100_000) + 0.5) / 100_000))
    assert slope_rows(score, np.full(score.size, 1 / score.size), 0.2, 1.96) == pytest.approx(want, abs=2)
    assert want == pytest.approx(4501, rel=0.02)


def simulated_validations(rows, repeats=400):
    rng = np.random.default_rng(0)
    for _ in range(repeats):
        p = rng.beta(1, 6, rows)
        yield (rng.random(rows) < p).astype(int), p


def test_planned_widths_are_reached():
    """Validations of the planned size: the standard deviation of the estimates gives the planned widths."""
    grid = (np.arange(4000) + 0.5) / 4000
    expected = 1 - (1 - grid) ** (1 / 6)  # quantiles of beta(1, 6)
    precision = ValidationPrecision(oe_ratio=0.4, slope=0.4, auc=0.1, net_benefit=0.3, threshold=0.15)
    plan = cb.sample_size(expected, precision=precision).validation
    found = {name: [] for name in plan}
    measures = {
        "O/E": lambda y, p: np.log(y.sum() / p.sum()),
        "calibration slope": lambda y, p: cb.slope_intercept(y, p).slope,
        "AUC": cb.auc,
        "net benefit": lambda y, p: np.mean((p >= 0.15) * (y - (1 - y) * 0.15 / 0.85)) / y.mean(),
    }
    for name, rows in plan.items():
        found[name] = [measures[name](y, p) for y, p in simulated_validations(rows)]
    width = {name: 2 * Z * np.std(values) for name, values in found.items()}
    width["O/E"] = 2 * np.sinh(Z * np.std(found["O/E"]))
    # The planned variance of ln O/E is that of scores without spread, so that it is conservative.
    assert width["O/E"] == pytest.approx(0.4, rel=0.15)
    assert width["calibration slope"] == pytest.approx(0.4, rel=0.15)
    assert width["AUC"] == pytest.approx(0.1, rel=0.15)
    assert width["net benefit"] == pytest.approx(0.3, rel=0.15)


def test_net_benefit_rows_follow_the_formula_by_hand():
    """Sensitivity 0.5, specificity 0.9, rate 0.1, threshold 0.2: w = 2.25, and the sum of the terms is 3.56875."""
    variance = 0.25 / 0.1 + 2.25**2 * 0.09 / 0.9 + 2.25**2 * 0.01 / 0.09
    assert variance == pytest.approx(3.56875)
    assert net_benefit_rows(0.5, 0.9, 0.1, 0.2, 0.2, 1.96) == int(np.ceil(variance / (0.1 / 1.96) ** 2))


def test_text_and_json_name_the_criteria():
    plan = cb.sample_size(np.linspace(0.01, 0.4, 40), precision=ValidationPrecision(threshold=0.1))
    assert "For a 95 % interval of calibration slope of width 0.2" in repr(plan)
    assert json.loads(json.dumps(plan.to_dict()))["validation"]["AUC"] == plan.validation["AUC"]
    assert plan.validation_rows == max(plan.validation.values())


def test_an_event_rate_alone_plans_what_it_determines():
    plan = cb.sample_size(event_rate=0.1, precision=ValidationPrecision(expected_auc=0.75))
    assert plan.validation["calibration slope"] is None
    assert plan.validation["AUC"] == auc_rows(0.75, 0.1, 0.1, Z)
    assert "needs expected scores" in repr(plan)
    assert cb.sample_size(event_rate=0.1).validation == {}
    assert cb.sample_size(event_rate=0.1).validation_rows is None


@pytest.mark.parametrize("options", [{"slope": 0}, {"auc": "x"}, {"threshold": 1.0}, {"confidence_level": 0}])
def test_bad_precision_is_named(options):
    with pytest.raises(cb.InputError, match=next(iter(options))):
        ValidationPrecision(**options)


def test_precision_must_be_its_class():
    with pytest.raises(cb.InputError, match="ValidationPrecision"):
        cb.sample_size(event_rate=0.1, precision=0.2)


def test_an_event_rate_alone_determines_the_rows_of_some_precisions_only():
    plan = cb.sample_size(event_rate=0.1, precision=ValidationPrecision())
    assert plan.validation["O/E"] is not None
    assert plan.validation["calibration slope"] is plan.validation_rows is None
    assert "The rows to detect and to show are lower limits" in repr(plan)
    alone = cb.sample_size(event_rate=0.1, precision=ValidationPrecision(slope=None, auc=None))
    assert alone.validation_rows == alone.validation["O/E"]
