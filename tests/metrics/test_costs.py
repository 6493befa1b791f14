"""Costs and ECC: the paper's example, golden values, laws."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import tables

import calibrant as cb
from calibrant import ECE, ScoreTable
from calibrant.metrics import ECC
from calibrant.metrics.bins import EqualWidth
from calibrant.metrics.costs import ExponentialCost, LinearCost, LogCost, PowerCost, StepCost

GOLDEN = Path(__file__).parents[1] / "golden"
EXPECTED = json.loads((GOLDEN / "expected.json").read_text())
units = st.floats(0, 100)
positive = st.floats(0.01, 100)
COSTS = [
    LinearCost(1, 5),
    PowerCost(0.5, 2, 1),
    PowerCost(2),
    ExponentialCost(1, 3),
    LogCost(3, 1),
    StepCost([(0.1, 1)]),
]


def test_worked_example_of_yang_and_bi():
    """Example 1 prints rates over 100 patients; 400 makes every count whole."""
    example = EXPECTED["cost_bella"]["ecc_example1"]
    n = 4 * np.array(example["n"])
    table = ScoreTable.from_counts(example["P"], n, np.rint(n * example["A"]))
    assert ECE(n_bins=5)(table).value == pytest.approx(example["ece"], abs=1e-15)
    assert ECC(LinearCost(example["Co"], example["Cu"]), n_bins=5)(table).value == pytest.approx(
        example["ecc"], abs=1e-15
    )


@pytest.mark.parametrize("n_bins", [10, 15])
@pytest.mark.parametrize("case", EXPECTED["metrics"])
def test_golden_ecc(case, n_bins):
    with np.load(GOLDEN / f"{case}.npz") as rows:
        table = ScoreTable.from_arrays(rows["y"], rows["p"])
    value = ECC(LinearCost(over=1, under=5), bins=EqualWidth(n_bins, closed="right"))(table).value
    wanted = EXPECTED["metrics"][case]
    close = 1e-9 if wanted["N"] >= 100_000 else 1e-12
    assert value == pytest.approx(wanted[f"ecc_1_5_right_B{n_bins}"], rel=0, abs=close)


@given(tables)
def test_ecc_with_equal_unit_costs_is_ece(table):
    assert ECC()(table).value == ECE()(table).value


@given(tables, units, positive, st.floats(0.1, 10))
def test_scaling_both_costs_scales_ecc(table, over, under, factor):
    plain = ECC(LinearCost(over, under))(table).value
    assert ECC(LinearCost(over * factor, under * factor))(table).value == pytest.approx(factor * plain, rel=1e-12)


@given(tables, units, positive)
def test_log_costs_are_below_linear_below_exponential(table, over, under):
    log, linear, exponential = (ECC(c(over, under))(table).value for c in (LogCost, LinearCost, ExponentialCost))
    assert log <= linear * (1 + 1e-12)
    assert linear <= exponential * (1 + 1e-12)


@given(tables, units, positive)
def test_renaming_the_event_swaps_the_unit_costs(table, over, under):
    table = table.round(2**-10)
    mirrored = ScoreTable.from_counts(1 - table.score, table.n, table.n - table.k)
    bins = EqualWidth(1)
    ours = ECC(LinearCost(over, under), bins=bins)(table).value
    assert ours == pytest.approx(ECC(LinearCost(under, over), bins=bins)(mirrored).value, abs=1e-9)


@pytest.mark.parametrize("cost", COSTS, ids=repr)
def test_costs_are_distances_with_declared_shape(cost, rng):
    p, a = rng.random(200), rng.random(200)
    assert (cost(p, a) >= 0).all()
    assert (cost(a, a) == 0).all()
    distance = np.linspace(0, 1, 101)
    d = cost(distance, np.zeros(101))
    curvature = np.diff(d, 2)
    assert cost.convex == (curvature >= -1e-12).all()
    assert cost.concave == (curvature <= 1e-12).all()
    assert cb.GCE.from_spec(json.loads(json.dumps(ECC(cost).spec))) == ECC(cost)


def test_each_side_has_its_unit_cost():
    assert LinearCost(over=1, under=5)(0.7, [0.6, 0.8, 0.7]) == pytest.approx([0.1, 0.5, 0])
    assert PowerCost(2, over=3)(0.5, 0.4) == pytest.approx(0.03)
    assert ExponentialCost(over=2)(0.5, 0.4) == pytest.approx(2 * np.expm1(0.1))
    assert LogCost(under=2)(0.4, 0.5) == pytest.approx(2 * np.log1p(0.1))
    assert StepCost([(0.1, 1), (0.5, 7)], under=2)(0.2, [0.15, 0.1, 0.3, 0.9]).tolist() == [0, 1, 2, 14]


@pytest.mark.parametrize(("over", "under"), [(-1, 1), (1, -1), (0, 0), (np.inf, 1), (1, np.nan), (None, 1), ("1", 1)])
@pytest.mark.parametrize("make", [LinearCost, ExponentialCost, LogCost])
def test_impossible_unit_costs_are_refused(make, over, under):
    with pytest.raises(cb.InputError, match="not both 0"):
        make(over=over, under=under)


@pytest.mark.parametrize("k", [0, -1, np.inf, np.nan])
def test_powers_are_positive(k):
    with pytest.raises(cb.InputError, match="k must be a positive number"):
        PowerCost(k)


@pytest.mark.parametrize(
    "levels",
    [[], [(0.0, 1)], [(0.5, 1), (0.2, 2)], [(0.1, 2), (0.2, 1)], [(1.5, 1)], [(0.1, 0)], [(0.1,)], [("a", 1)], 5],
)
def test_levels_of_a_step_cost_rise(levels):
    with pytest.raises(cb.InputError, match="levels must be pairs"):
        StepCost(levels)


def test_any_valid_callable_is_a_cost():
    table = ScoreTable.from_arrays([0, 1, 1], [0.2, 0.4, 0.9])
    assert ECC(lambda p, a: 3 * np.abs(p - a))(table).value == pytest.approx(3 * ECE()(table).value)
    with pytest.raises(cb.InputError, match="not negative"):
        ECC(lambda p, a: p - a)(table)
    with pytest.raises(cb.InputError, match="cost must be 0 where p equals a"):
        ECC(lambda p, a: np.ones_like(p))(table)
    with pytest.raises(cb.InputError, match="one finite number"):
        ECC(lambda p, a: 1.0)(table)
    with pytest.raises(cb.InputError, match="np.vectorize"):
        ECC(lambda p, a: p - a if p > a else 5 * (a - p))(table)
    for nothing in (5, LinearCost, (1, 5)):
        with pytest.raises(cb.InputError, match="cost must be a function or an object"):
            ECC(nothing)


def test_each_cost_has_a_name_in_results():
    def squared(p, a):
        return (p - a) ** 2

    class Named:
        name = "fraud"

        def __call__(self, p, a):
            return abs(p - a)

    costs = [LinearCost(1, 5), PowerCost(2), ExponentialCost(under=3), LogCost(), StepCost([(0.05, 1), (0.2, 10)])]
    found = cb.evaluate([0, 1, 1, 0], [0.1, 0.6, 0.8, 0.3], costs=[*costs, squared, Named()], n_resamples=1)
    assert list(found.metrics)[-7:] == [
        "ECC (over=1, under=5)",
        "ECC (PowerCost k=2, over=1.0, under=1.0)",
        "ECC (ExponentialCost over=1.0, under=3)",
        "ECC (LogCost over=1.0, under=1.0)",
        "ECC (StepCost 0.05: 1, 0.2: 10, over=1.0, under=1.0)",
        "ECC (squared)",
        "ECC (fraud)",
    ]
    with pytest.raises(cb.InputError, match=r"costs must have distinct names; got fraud, fraud\. Pass a mapping"):
        cb.evaluate([0, 1], [0.1, 0.6], costs=[Named(), Named()])


def test_a_cost_cannot_change_its_arguments():
    def cheat(p, a):
        a[:] = p
        return np.zeros_like(p)

    with pytest.raises(cb.InputError, match="read-only"):
        ECC(cheat)(ScoreTable.from_arrays([0, 1], [0.2, 0.4]))


def test_a_threshold_of_any_size_is_a_threshold():
    assert StepCost([(1e-13, 1)])([0.5, 0.5 + 1e-10], 0.5).tolist() == [0, 1]


def test_ecc_is_never_shown_without_the_bias():
    breakdown = ECC(LinearCost(1, 5))(ScoreTable.from_arrays([0, 0, 1, 1], [0.5, 0.6, 0.8, 0.9]))
    assert "signed bias +0.20000: predictions overestimate on average" in repr(breakdown)
    assert "signed bias" in breakdown._repr_html_()
    assert "signed_gap" in breakdown.to_dict()["per_bin"]


def test_decisions_count_frequencies_as_rows(rng):
    p, times = rng.random(300), rng.integers(1, 4, 300)
    y = rng.random(300) < p
    counted = cb.decisions(y, {"a": p, "b": p**2}, frequency=times, n_resamples=19)
    again = {name: np.repeat(column, times) for name, column in {"a": p, "b": p**2}.items()}
    assert counted.to_dict() == cb.decisions(np.repeat(y, times), again, n_resamples=19).to_dict()
    weighted = cb.decisions(y, {"a": p, "b": p**2}, sample_weight=times, n_resamples=19)
    assert [line.cost for line in weighted.lines] == pytest.approx([line.cost for line in counted.lines])
