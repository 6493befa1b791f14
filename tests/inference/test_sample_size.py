"""Sample sizes: planned and simulated power, and the published example of sizes for external validation."""

import json

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, ndtri
from scipy.stats import norm

import calibrant as cb
from calibrant.inference import ValidationPrecision
from calibrant.inference.binary_components import binary_components
from calibrant.inference.binary_tests import BinaryTests
from calibrant.inference.design import Design
from calibrant.inference.sample_size import auc_rows, net_benefit_rows, oe_rows, slope_rows
from calibrant.kinds.binary.verdict import decide

SCORES = np.random.default_rng(0).beta(1, 9, 2_000)
Z = 1.959963984540054


@pytest.mark.parametrize("kind", ["shift", "slope"])
def test_larger_deviations_and_margins_need_fewer_rows_and_more_power_needs_more(kind):
    sizes = [cb.sample_size(SCORES, deviation=d, margin=d, kind=kind) for d in (0.05, 0.1, 0.2, 0.4, 0.8)]
    assert [s.detect for s in sizes] == sorted((s.detect for s in sizes), reverse=True)
    assert [s.equivalence for s in sizes] == sorted((s.equivalence for s in sizes), reverse=True)
    sizes = [cb.sample_size(SCORES, power=power, kind=kind) for power in (0.5, 0.8, 0.9, 0.99)]
    assert [s.detect for s in sizes] == sorted(s.detect for s in sizes)
    assert [s.equivalence for s in sizes] == sorted(s.equivalence for s in sizes)


def simulated(goal, rows, true=SCORES, times=200):
    """Share of data sets of so many rows that reach the goal."""
    rng = np.random.default_rng(3)
    found = []
    for _ in range(times):
        at = rng.integers(0, SCORES.size, rows)
        table = cb.ScoreTable.from_arrays(rng.random(rows) < true[at], SCORES[at])
        found.append(goal(Design(table)))
    return np.mean(found)


def is_detected(design):
    tests = binary_components(design)
    return len(tests) * min(test.pvalue for test in tests) <= 0.05


def moved(scores, slope, shift):
    odds = np.exp(slope * np.log(scores / (1 - scores)) + shift)
    return odds / (1 + odds)


def test_a_shift_is_detected_with_the_planned_power():
    rows = cb.sample_size(SCORES, deviation=0.3).detect
    assert 0.72 < simulated(is_detected, rows, moved(SCORES, 1, -0.3)) < 0.9
    assert simulated(is_detected, rows, moved(SCORES, 1, 0.3)) > 0.75


def test_a_slope_is_detected_with_the_planned_power():
    rows = cb.sample_size(SCORES, deviation=0.3, kind="slope").detect
    shifts = np.linspace(-2, 2, 4_001)
    powers = []
    for slope in (0.7, 1.3):
        gaps = [abs(moved(SCORES, slope, shift).mean() - SCORES.mean()) for shift in shifts]
        powers.append(simulated(is_detected, rows, moved(SCORES, slope, shifts[np.argmin(gaps)])))
    assert 0.72 < min(powers) < 0.9


def test_calibrated_models_are_shown_within_the_margin_with_the_planned_power():
    rows = cb.sample_size(SCORES, margin=0.3).equivalence

    def is_shown(design):
        tests = BinaryTests.from_design(design)
        return decide(tests, margin=0.3, alpha=0.05, confidence_level=0.95)[0].deviation.pvalue <= 0.05

    share = simulated(is_shown, rows)
    assert 0.74 < share < 0.88


def test_an_event_rate_alone_gives_a_lower_limit():
    table = cb.ScoreTable.from_arrays(np.zeros(SCORES.size), SCORES)
    known, alone = cb.sample_size(table), cb.sample_size(event_rate=SCORES.mean())
    assert alone.at_least
    assert not known.at_least
    assert alone.detect < known.detect
    assert alone.equivalence < known.equivalence
    assert alone.event_rate == pytest.approx(known.event_rate)
    assert known == cb.sample_size(SCORES)


def test_events_and_other_rows_need_the_same():
    rare, frequent = cb.sample_size(event_rate=0.03), cb.sample_size(event_rate=0.97)
    assert rare.detect == frequent.detect
    assert rare.equivalence == pytest.approx(frequent.equivalence, abs=1)


def test_a_constant_score_has_one_test():
    """Calibration in the large alone, at the full level: (1.96 + 0.84)^2 / (0.25 * 0.2^2) rows at 50 %."""
    found = cb.sample_size([0.5, 0.5])
    assert found.detect == pytest.approx(785, rel=0.02)
    assert found.detect < cb.sample_size(event_rate=0.5).detect


def test_sample_sizes_are_described_in_words():
    found = cb.sample_size(event_rate=0.05)
    assert repr(found).splitlines() == [
        "To detect odds that are off by 22 % with 80 % power: 6,800 rows (340 events).",
        "To show that the odds of a calibrated model are accurate to within 10 % with 80 % power: "
        "43,000 rows (2,200 events).",
        "These are lower limits: scores with spread need more rows.",
    ]
    assert "<br>To show that the odds" in found._repr_html_()
    assert "a slope of 0.8 or 1.2 with" in repr(cb.sample_size(SCORES, kind="slope"))
    assert found.to_dict()["detect_events"] == found.detect_events == np.ceil(0.05 * found.detect)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((), {}, "scores or event_rate must be given, and not both; got neither. Pass"),
        (([0.1],), {"event_rate": 0.1}, "got both"),
        ((), {"event_rate": 0}, "event_rate must lie between 0 and 1; got 0"),
        (([0.0, 1.0],), {}, "scores must have a score between 0 and 1; got none"),
        (([0.1, 1.5],), {}, "scores must lie in"),
        (([0.1, np.nan],), {}, "scores has 1 missing value"),
        ((), {"event_rate": 0.1, "deviation": -0.2}, "deviation must be above 0 and at most 2; got -0.2. Give"),
        ((), {"event_rate": 0.1, "margin": np.nan}, "margin must be above 0"),
        ((), {"event_rate": 0.1, "alpha": 5}, "alpha must lie between 0 and 1; got 5"),
        ((), {"event_rate": 0.1, "power": 1}, "power must lie between 0 and 1; got 1"),
        ((), {"event_rate": 0.1, "kind": "bend"}, "kind must be 'shift' or 'slope'; got 'bend'"),
        ((), {"event_rate": 0.1, "kind": "slope"}, "at least two distinct values"),
        (([0.3, 0.3],), {"kind": "slope"}, "at least two distinct values"),
        (([0.3, 0.4],), {"kind": "slope", "deviation": 1}, "deviation must be below 1 for kind='slope'; got 1"),
    ],
)
def test_bad_arguments_of_sample_size_are_named(arguments, options, message):
    with pytest.raises(cb.InputError, match=message):
        cb.sample_size(*arguments, **options)


def test_a_margin_or_deviation_that_needs_too_many_rows_is_an_error():
    for name in ("margin", "deviation"):
        with pytest.raises(cb.InputError, match=f"{name} must be one for which 2\\*\\*53 rows are enough; got 1e-09"):
            cb.sample_size(event_rate=0.1, **{name: 1e-9})


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
        "calibration slope": lambda y, p: cb.metrics.slope_intercept(y, p).slope,
        "AUC": cb.metrics.auc,
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
