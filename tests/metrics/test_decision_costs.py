"""The prediction that costs least, and decisions at a threshold."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

import calibrant as cb
from calibrant.metrics.decision_costs import linear_rank

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "expected.json").read_text())["cost_bella"]
COSTS = {
    "linear": cb.costs.LinearCost(1, 5),
    "sqrt": cb.costs.PowerCost(0.5, 1, 5),
    "log": cb.costs.LogCost(1, 5),
    "exp": cb.costs.ExponentialCost(1, 5),
    "square": cb.costs.PowerCost(2, 1, 5),
    "1.5": cb.costs.PowerCost(1.5, 2, 1),
    "step": cb.costs.StepCost([(0.05, 1), (0.2, 4)], 1, 5),
    "own": lambda p, a: np.abs(np.asarray(p) - a) ** 1.2 + 0.3 * np.sin(9 * np.asarray(p)) ** 2,
}
probability = st.one_of(st.sampled_from([0.0, 0.1, 0.3, 0.5, 1.0]), st.floats(0, 1))
draws = st.lists(st.lists(probability, min_size=4, max_size=4), min_size=1, max_size=5)


def mean_cost(cost, q, samples):
    return np.mean(cost(np.asarray(q)[:, None], samples), axis=1)


# The optimum


@pytest.mark.parametrize("case", GOLDEN["metacal_linear"], ids=lambda c: f"{c['Co']}-{c['Cu']}-{c['R']}")
def test_linear_optima_are_the_golden_ones(case):
    cost, samples = cb.costs.LinearCost(case["Co"], case["Cu"]), np.array(case["M"])
    found = cb.metrics.optimal_prediction(samples, cost)
    assert linear_rank(cost.over, cost.under, case["R"]) == case["k_used"]
    assert found.tolist() == case["relabel"]
    for q, (low, high) in zip(found, case["flat_interval"], strict=True):
        assert low <= q <= high


@pytest.mark.parametrize("case", GOLDEN["metacal_nonlinear"], ids=lambda c: f"{c['distance']}-{c['R']}")
def test_nonlinear_optima_cost_at_most_the_golden_ones(case):
    kind = {"sqrt": lambda **u: cb.costs.PowerCost(0.5, **u), "square": lambda **u: cb.costs.PowerCost(2, **u)}
    kind |= {"exp": cb.costs.ExponentialCost, "log": cb.costs.LogCost}
    cost, samples = kind[case["distance"]](over=case["Co"], under=case["Cu"]), np.array([case["a"]])
    q = cb.metrics.optimal_prediction(samples, cost)
    assert mean_cost(cost, q, samples)[0] <= case["min_cost"] + 1e-9
    if case["argmin_is_a_sample"]:
        assert q[0] in samples


@pytest.mark.parametrize("name", COSTS)
@given(samples=draws)
def test_no_prediction_on_a_fine_grid_costs_less(name, samples):
    samples, cost = np.array(samples), COSTS[name]
    q = cb.metrics.optimal_prediction(samples, cost)
    assert ((q >= 0) & (q <= 1)).all()
    best = mean_cost(cost, q, samples)
    grid = np.unique(np.concatenate([np.linspace(0, 1, 501), samples.ravel()]))
    others = np.array([mean_cost(cost, np.full(len(samples), g), samples) for g in grid])
    slack = 1e-3 if name == "own" else 1e-9
    assert (best <= others.min(axis=0) + slack).all()


@pytest.mark.parametrize("name", ["sqrt", "log", "exp", "square", "linear"])
def test_never_costlier_than_a_local_search(rng, name):
    samples, cost = rng.beta(0.5, 0.8, (40, 30)), COSTS[name]
    ours = mean_cost(cost, cb.metrics.optimal_prediction(samples, cost), samples)
    for row, own in zip(samples, ours, strict=True):
        for start in (0.5, row.mean()):
            found = minimize(lambda q, row=row: np.mean(cost(q, row)), start, method="L-BFGS-B", bounds=[(0, 1)])
            assert own <= found.fun + 1e-9


@pytest.mark.parametrize("name", [name for name in COSTS if name != "own"])
def test_only_the_ratio_of_costs_matters(rng, name):
    from dataclasses import replace

    samples, cost = rng.random((50, 20)), COSTS[name]
    scaled = replace(cost, over=3 * cost.over, under=3 * cost.under)
    assert np.array_equal(cb.metrics.optimal_prediction(samples, cost), cb.metrics.optimal_prediction(samples, scaled))


def test_ranks_are_rational_whatever_the_scale():
    draws = np.arange(1, 101)[None] / 101
    for over, under in ((1, 3), (2, 3), (1, 9), (3, 7), (1, 5), (1, 1)):
        exact = -(-under * 100 // (under + over))
        for scale in (1, 0.1, 0.3, 7, 1e-9):
            cost = cb.costs.LinearCost(round(over * scale, 12), round(under * scale, 12))
            assert cb.metrics.optimal_prediction(draws, cost)[0] == exact / 101
            assert cb.metrics.optimal_prediction(draws, cb.costs.PowerCost(1, cost.over, cost.under))[0] == exact / 101
    assert linear_rank(0.6, 0.3, 15) == 5  # in doubles the ceiling is 6
    assert linear_rank(1, 0, 10) == 1
    assert linear_rank(0, 1, 10) == 10


def test_user_defined_costs_are_checked():
    draws = np.random.default_rng(0).random((3, 20))
    with_zero = np.c_[draws, np.zeros(3)]
    with np.errstate(divide="ignore", invalid="ignore"):
        found = cb.metrics.optimal_prediction(with_zero, lambda p, a: -(a * np.log(p) + (1 - a) * np.log1p(-p)))
    assert found == pytest.approx(with_zero.mean(axis=1), abs=1e-3)
    for cost, words in (
        (lambda p, a: (p - a) ** 2 if p > a else a - p, "cost must accept arrays"),
        ("linear", "cost must be a function or an object"),
        (cb.costs.LinearCost, "cost must be a function or an object"),
        (lambda p, a: 0.0, "one number for each pair"),
        (lambda p, a: np.full(np.shape(p), np.nan), "cost must be finite for some prediction"),
    ):
        with pytest.raises(cb.InputError, match=words):
            cb.metrics.optimal_prediction(draws, cost)

    class Squared(cb.costs.LinearCost):
        def __call__(self, p, a):
            return (np.asarray(p) - a) ** 2

    assert cb.metrics.optimal_prediction(draws, Squared()) == pytest.approx(draws.mean(axis=1), abs=1e-6)


def test_steep_and_small_costs_keep_their_minimum():
    assert cb.metrics.optimal_prediction([[0.5, 0.5001, 0.5002, 0.501]], cb.costs.PowerCost(150))[0] == pytest.approx(
        0.5005, abs=1e-5
    )
    draws = np.random.default_rng(1).random((4, 11))
    for price in (1, 1e-10):
        cost = cb.costs.StepCost([(0.1, price), (0.3, 5 * price)])
        grid = np.array([mean_cost(cost, np.full(4, g), draws) for g in np.linspace(0, 1, 4001)])
        assert (
            mean_cost(cost, cb.metrics.optimal_prediction(draws, cost), draws) <= grid.min(axis=0) * (1 + 1e-9)
        ).all()
    assert cb.metrics.optimal_prediction([[0.3] * 5], cb.costs.StepCost([(1e-10, 1)]))[0] == pytest.approx(
        0.3, abs=1e-10
    )


def test_one_sided_costs_take_an_end(rng):
    samples = rng.random((20, 9))
    for kind in (cb.costs.LinearCost, cb.costs.LogCost, cb.costs.ExponentialCost):
        assert np.array_equal(cb.metrics.optimal_prediction(samples, kind(over=1, under=0)), samples.min(axis=1))
        assert np.array_equal(cb.metrics.optimal_prediction(samples, kind(over=0, under=1)), samples.max(axis=1))


def test_blocks_and_threads_change_nothing(rng):
    samples = rng.random((3000, 40))
    for cost in COSTS.values():
        whole = cb.metrics.optimal_prediction(samples, cost)
        assert np.array_equal(whole[:7], cb.metrics.optimal_prediction(samples[:7], cost))


def test_bad_samples_are_refused():
    for samples, words in (([0.1, 0.2], "shape"), ([[0.1, 1.2]], "got 1.2 \\(row 0\\)"), (np.empty((0, 3)), "shape")):
        with pytest.raises(cb.InputError, match=words):
            cb.metrics.optimal_prediction(samples, cb.costs.LinearCost())
    with pytest.raises(cb.InputError, match="lie in"):
        cb.metrics.optimal_prediction([[0.2, np.nan]], cb.costs.LinearCost())


# Decisions


def test_bayes_thresholds():
    assert cb.metrics.bayes_threshold(1, 4) == 0.2
    assert cb.metrics.bayes_threshold(1, 0) == 1
    assert {cb.metrics.bayes_threshold(s, round(2 * s, 12)) for s in (1, 0.3, 0.01, 1e-7)} == {1 / 3}
    for bad in ((0, 0), (-1, 2), (np.inf, 1), (np.nan, 1), ("1", "2")):
        with pytest.raises(cb.InputError, match="false_positive and false_negative must be"):
            cb.metrics.bayes_threshold(*bad)


def test_decisions_count_errors(rng):
    p = rng.random(500)
    y = (rng.random(500) < p).astype(int)
    found = cb.decisions(y, {"all": p, "none": np.zeros(500)}, false_positive=2, false_negative=3, n_resamples=99)
    line, none = found.lines
    acted = p >= 0.4
    assert line.threshold == 0.4
    assert (line.false_positives, line.false_negatives) == (np.sum(acted & (y == 0)), np.sum(~acted & (y == 1)))
    assert line.accuracy == pytest.approx(np.mean(acted == y))
    assert line.cost == pytest.approx((2 * line.false_positives + 3 * line.false_negatives) / 500)
    assert none.cost == pytest.approx(3 * y.mean())
    assert none.saving == pytest.approx(line.cost - none.cost)
    assert none.saving_low < none.saving < none.saving_high < 0
    assert line.low < line.cost < line.high
    assert "at least 0.4" in repr(found)
    assert found.to_dict()["metric"]["false_negative"] == 3
    json.dumps(found.to_dict(), allow_nan=False)


def test_for_calibrated_scores_the_bayes_threshold_has_the_least_cost(rng):
    p = rng.random(200_000)
    table = cb.ScoreTable.from_arrays(rng.random(200_000) < p, p)
    costs = [cb.metrics.DecisionCost(1, 4, threshold=t).value(table) for t in (0.1, 0.2, 0.3)]
    assert costs[1] == min(costs)
    assert cb.metrics.DecisionCost(1, 4).value(table) == costs[1]
    assert cb.interval(cb.metrics.DecisionCost(1, 4), table, n_resamples=99, random_state=0).low < costs[1]


def test_arguments_of_decisions_are_checked():
    with pytest.raises(cb.InputError, match="at least one model"):
        cb.decisions([0, 1], {})
    with pytest.raises(cb.InputError, match="threshold must"):
        cb.metrics.DecisionCost(threshold=2)
