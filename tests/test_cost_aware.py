"""Cost-aware calibration: exact optima, CATS, CAPS, MetaCal, and decisions."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import calibrant as cb
from calibrant.optimal import linear_rank

GOLDEN = json.loads((Path(__file__).parent / "golden" / "expected.json").read_text())["cost_bella"]
COSTS = {
    "linear": cb.LinearCost(1, 5),
    "sqrt": cb.PowerCost(0.5, 1, 5),
    "log": cb.LogCost(1, 5),
    "exp": cb.ExponentialCost(1, 5),
    "square": cb.PowerCost(2, 1, 5),
    "1.5": cb.PowerCost(1.5, 2, 1),
    "step": cb.StepCost([(0.05, 1), (0.2, 4)], 1, 5),
    "own": lambda p, a: np.abs(np.asarray(p) - a) ** 1.2 + 0.3 * np.sin(9 * np.asarray(p)) ** 2,
}
probability = st.one_of(st.sampled_from([0.0, 0.1, 0.3, 0.5, 1.0]), st.floats(0, 1))
draws = st.lists(st.lists(probability, min_size=4, max_size=4), min_size=1, max_size=5)


def mean_cost(cost, q, samples):
    return np.mean(cost(np.asarray(q)[:, None], samples), axis=1)


# The optimum


@pytest.mark.parametrize("case", GOLDEN["metacal_linear"], ids=lambda c: f"{c['Co']}-{c['Cu']}-{c['R']}")
def test_linear_optima_are_the_golden_ones(case):
    cost, samples = cb.LinearCost(case["Co"], case["Cu"]), np.array(case["M"])
    found = cb.optimal_prediction(samples, cost)
    assert linear_rank(cost.over, cost.under, case["R"]) == case["k_used"]
    assert found.tolist() == case["relabel"]
    for q, (low, high) in zip(found, case["flat_interval"], strict=True):
        assert low <= q <= high


@pytest.mark.parametrize("case", GOLDEN["metacal_nonlinear"], ids=lambda c: f"{c['distance']}-{c['R']}")
def test_nonlinear_optima_cost_no_more_than_the_golden_ones(case):
    kind = {"sqrt": lambda **u: cb.PowerCost(0.5, **u), "square": lambda **u: cb.PowerCost(2, **u)}
    kind |= {"exp": cb.ExponentialCost, "log": cb.LogCost}
    cost, samples = kind[case["distance"]](over=case["Co"], under=case["Cu"]), np.array([case["a"]])
    q = cb.optimal_prediction(samples, cost)
    assert mean_cost(cost, q, samples)[0] <= case["min_cost"] + 1e-9
    if case["argmin_is_a_sample"]:
        assert q[0] in samples


@pytest.mark.parametrize("name", COSTS)
@settings(max_examples=40)
@given(samples=draws)
def test_nothing_on_a_fine_grid_costs_less(name, samples):
    samples, cost = np.array(samples), COSTS[name]
    q = cb.optimal_prediction(samples, cost)
    assert ((q >= 0) & (q <= 1)).all()
    best = mean_cost(cost, q, samples)
    grid = np.unique(np.concatenate([np.linspace(0, 1, 501), samples.ravel()]))
    others = np.array([mean_cost(cost, np.full(len(samples), g), samples) for g in grid])
    slack = 1e-3 if name == "own" else 1e-9
    assert (best <= others.min(axis=0) + slack).all()


@pytest.mark.parametrize("name", ["sqrt", "log", "exp", "square", "linear"])
def test_never_costlier_than_a_local_search(rng, name):
    samples, cost = rng.beta(0.5, 0.8, (40, 30)), COSTS[name]
    ours = mean_cost(cost, cb.optimal_prediction(samples, cost), samples)
    for row, own in zip(samples, ours, strict=True):
        for start in (0.5, row.mean()):
            found = minimize(lambda q, row=row: np.mean(cost(q, row)), start, method="L-BFGS-B", bounds=[(0, 1)])
            assert own <= found.fun + 1e-9


@pytest.mark.parametrize("name", [name for name in COSTS if name != "own"])
def test_only_the_ratio_of_costs_matters(rng, name):
    from dataclasses import replace

    samples, cost = rng.random((50, 20)), COSTS[name]
    scaled = replace(cost, over=3 * cost.over, under=3 * cost.under)
    assert np.array_equal(cb.optimal_prediction(samples, cost), cb.optimal_prediction(samples, scaled))


def test_ranks_are_rational_whatever_the_scale():
    draws = np.arange(1, 101)[None] / 101
    for over, under in ((1, 3), (2, 3), (1, 9), (3, 7), (1, 5), (1, 1)):
        exact = -(-under * 100 // (under + over))
        for scale in (1, 0.1, 0.3, 7, 1e-9):
            cost = cb.LinearCost(round(over * scale, 12), round(under * scale, 12))
            assert cb.optimal_prediction(draws, cost)[0] == exact / 101
            assert cb.optimal_prediction(draws, cb.PowerCost(1, cost.over, cost.under))[0] == exact / 101
    assert linear_rank(0.6, 0.3, 15) == 5  # in doubles the ceiling is 6
    assert linear_rank(1, 0, 10) == 1
    assert linear_rank(0, 1, 10) == 10


def test_costs_of_ones_own_are_checked():
    draws = np.random.default_rng(0).random((3, 20))
    with_zero = np.c_[draws, np.zeros(3)]
    with np.errstate(divide="ignore", invalid="ignore"):
        found = cb.optimal_prediction(with_zero, lambda p, a: -(a * np.log(p) + (1 - a) * np.log1p(-p)))
    assert found == pytest.approx(with_zero.mean(axis=1), abs=1e-3)
    for cost, words in (
        (lambda p, a: (p - a) ** 2 if p > a else a - p, "failed on arrays"),
        ("linear", "must be called"),
        (cb.LinearCost, "must be called"),
        (lambda p, a: 0.0, "one number for every pair"),
        (lambda p, a: np.full(np.shape(p), np.nan), "no number wherever"),
    ):
        with pytest.raises(cb.InputError, match=words):
            cb.optimal_prediction(draws, cost)

    class Squared(cb.LinearCost):
        def __call__(self, p, a):
            return (np.asarray(p) - a) ** 2

    assert cb.optimal_prediction(draws, Squared()) == pytest.approx(draws.mean(axis=1), abs=1e-6)


def test_steep_and_small_costs_keep_their_minimum():
    assert cb.optimal_prediction([[0.5, 0.5001, 0.5002, 0.501]], cb.PowerCost(150))[0] == pytest.approx(
        0.5005, abs=1e-5
    )
    draws = np.random.default_rng(1).random((4, 11))
    for price in (1, 1e-10):
        cost = cb.StepCost([(0.1, price), (0.3, 5 * price)])
        grid = np.array([mean_cost(cost, np.full(4, g), draws) for g in np.linspace(0, 1, 4001)])
        assert (mean_cost(cost, cb.optimal_prediction(draws, cost), draws) <= grid.min(axis=0) * (1 + 1e-9)).all()
    assert cb.optimal_prediction([[0.3] * 5], cb.StepCost([(1e-10, 1)]))[0] == pytest.approx(0.3, abs=1e-10)


def test_one_sided_costs_take_an_end(rng):
    samples = rng.random((20, 9))
    for kind in (cb.LinearCost, cb.LogCost, cb.ExponentialCost):
        assert np.array_equal(cb.optimal_prediction(samples, kind(over=1, under=0)), samples.min(axis=1))
        assert np.array_equal(cb.optimal_prediction(samples, kind(over=0, under=1)), samples.max(axis=1))


def test_blocks_and_threads_change_nothing(rng):
    samples = rng.random((3000, 40))
    for cost in COSTS.values():
        whole = cb.optimal_prediction(samples, cost)
        assert np.array_equal(whole[:7], cb.optimal_prediction(samples[:7], cost))


def test_bad_draws_are_refused():
    for samples, words in (([0.1, 0.2], "shape"), ([[0.1, 1.2]], "row 0 holds 1.2"), (np.empty((0, 3)), "shape")):
        with pytest.raises(cb.InputError, match=words):
            cb.optimal_prediction(samples, cb.LinearCost())
    with pytest.raises(cb.InputError, match="lie in"):
        cb.optimal_prediction([[0.2, np.nan]], cb.LinearCost())


# Decisions


def test_bayes_thresholds():
    assert cb.bayes_threshold(1, 4) == 0.2
    assert cb.bayes_threshold(1, 0) == 1
    assert {cb.bayes_threshold(s, round(2 * s, 12)) for s in (1, 0.3, 0.01, 1e-7)} == {1 / 3}
    for bad in ((0, 0), (-1, 2), (np.inf, 1), (np.nan, 1), ("1", "2")):
        with pytest.raises(cb.InputError, match="Costs must be"):
            cb.bayes_threshold(*bad)


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


def test_for_right_probabilities_the_bayes_threshold_costs_least(rng):
    p = rng.random(200_000)
    table = cb.ScoreTable.from_arrays(rng.random(200_000) < p, p)
    costs = [cb.DecisionCost(1, 4, threshold=t).value(table) for t in (0.1, 0.2, 0.3)]
    assert costs[1] == min(costs)
    assert cb.DecisionCost(1, 4).value(table) == costs[1]
    assert cb.interval(cb.DecisionCost(1, 4), table, n_resamples=99, random_state=0).low < costs[1]


def test_decisions_must_be_well_put():
    with pytest.raises(cb.InputError, match="at least one model"):
        cb.decisions([0, 1], {})
    with pytest.raises(cb.InputError, match="threshold must"):
        cb.DecisionCost(threshold=2)


# CATS and CAPS

sklearn = pytest.importorskip("sklearn")

from sklearn.datasets import make_classification  # noqa: E402
from sklearn.linear_model import LinearRegression, LogisticRegression  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor  # noqa: E402

X, Y = make_classification(600, n_informative=4, flip_y=0.2, random_state=0)
FIVE = cb.LinearCost(over=1, under=5)


def skewed(rng, size=1500):
    p = rng.random(size)
    return p, (rng.random(size) < p**2).astype(int)


@pytest.mark.filterwarnings("ignore:.*no proper score")
@pytest.mark.parametrize("kind", [cb.CATS, cb.CAPS])
@pytest.mark.parametrize("name", [name for name in COSTS if name != "own"])
def test_scaling_is_never_worse_than_nothing_on_the_rows_it_was_tuned_on(rng, kind, name):
    p, y = skewed(rng, 300)
    cost = COSTS[name]
    cal = kind(cost).fit(p, y)
    before, after = (cb.ecc(y, q, cost=cost) for q in (p, cal(p)))
    assert after <= before
    assert (cal.ecc_before_, cal.ecc_) == pytest.approx((before, after))
    assert cal.slope_ > 0


def test_a_free_search_ends_in_saying_little_and_is_told(rng):
    p = rng.random(2000)
    y = (rng.random(2000) < 0.3 + 0.1 * np.sin(20 * p)).astype(int)  # p says nothing
    mixed = np.where(rng.random(2000) < 0.5, y * 0.6 + 0.2, p)  # and here something that no line can mend
    with pytest.warns(cb.CalibrantWarning, match="no proper score"):
        free = cb.CAPS(FIVE, keep_brier=False).fit(mixed, y)
    assert "worse_brier" in [note.code for note in free.notes_]
    kept = cb.CAPS(FIVE).fit(mixed, y)  # no warning
    assert free.ecc_ < kept.ecc_ <= kept.ecc_before_
    assert cb.brier(y, kept(mixed)) <= 1.01 * cb.brier(y, mixed) < cb.brier(y, free(mixed))


def test_what_eps_moves_is_all_that_can_be_lost():
    p = np.repeat([0.0, 1.0], 200)
    assert cb.CATS(eps=0.001).fit(p, p.astype(int)).ecc_ < 1e-9


@pytest.mark.filterwarnings("ignore:.*no proper score")
def test_scaling_finds_what_a_fine_search_finds(rng):
    p, y = skewed(rng)
    x = np.log(p / (1 - p))

    def ecc(a, b):
        return cb.ecc(y, 1 / (1 + np.exp(-(a * x + b))), cost=FIVE)

    cats = cb.CATS(FIVE, keep_brier=False).fit(p, y)
    assert cats.ecc_ <= min(ecc(a, 0) for a in np.geomspace(0.05, 20, 400)) + 1e-4
    caps = cb.CAPS(FIVE, keep_brier=False).fit(p, y)
    assert caps.ecc_ <= min(ecc(a, b) for a in np.linspace(0.5, 3, 26) for b in np.linspace(-2, 1, 31)) + 1e-4
    assert caps.ecc_ <= cats.ecc_ + 1e-12


@pytest.mark.filterwarnings("ignore:.*no proper score")
@pytest.mark.parametrize("kind", [cb.CATS, cb.CAPS])
def test_only_the_ratio_moves_scaling(rng, kind):
    p, y = skewed(rng, 400)
    one, ten = (kind(cb.LinearCost(scale, 5 * scale)).fit(p, y) for scale in (1, 10))
    assert (one.slope_, one.intercept_) == (ten.slope_, ten.intercept_)
    assert ten.ecc_ == pytest.approx(10 * one.ecc_)
    other = kind(cb.LinearCost(5, 1)).fit(p, y)
    assert (other.slope_, other.intercept_) != (one.slope_, one.intercept_)


@pytest.mark.filterwarnings("ignore:.*no proper score")
def test_the_papers_grids(rng):
    p, y = skewed(rng)
    bins = cb.EqualWidth(10, closed="right")
    x = np.log(p / (1 - p))
    cats = cb.CATS(FIVE, bins=bins, grid="paper").fit(p, y)
    values = {lam: cb.ecc(y, 1 / (1 + np.exp(-lam * x)), cost=FIVE, bins=bins) for lam in np.arange(1, 201) / 100}
    assert cats.slope_ == min(values, key=values.get)
    assert cats.intercept_ == 0
    caps = cb.CAPS(FIVE, bins=bins, grid="paper", random_state=3).fit(p, y)
    again = cb.CAPS(FIVE, bins=bins, grid="paper", random_state=3).fit(p, y)
    assert (caps.slope_, caps.intercept_) == (again.slope_, again.intercept_)
    for value in (caps.slope_, caps.intercept_):
        assert round(100 * value) in range(1, 201)
        assert value == round(100 * value) / 100
    with pytest.raises(cb.InputError, match="grid"):
        cb.CATS(grid="fine").fit(p, y)


@pytest.mark.filterwarnings("ignore:.*no proper score")
def test_many_scores_are_thinned_only_for_the_first_look(rng):
    p, y = skewed(rng, 30_000)
    cal = cb.CAPS(FIVE).fit(p, y)
    assert cal.ecc_ == pytest.approx(cb.ecc(y, cal(p), cost=FIVE))
    assert cal.ecc_ < 0.2 * cal.ecc_before_


# MetaCal


def test_metacal_is_algorithm_1():
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    model = cb.MetaCal(tree, DecisionTreeRegressor(random_state=0), FIVE, n_bootstrap=12, random_state=5).fit(X, Y)
    samples = []
    for seed in np.random.SeedSequence(5).spawn(12):
        rows = np.random.default_rng(seed).integers(0, len(Y), len(Y))
        fitted = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X[rows], Y[rows])
        samples.append(fitted.predict_proba(X)[:, 1])
    ranked = np.sort(np.array(samples), axis=0)
    assert np.array_equal(model.labels_, ranked[10 - 1])  # ceil(5 * 12 / 6) = 10
    expected = DecisionTreeRegressor(random_state=0).fit(X, ranked[10 - 1]).predict(X)
    assert np.array_equal(model.predict_proba(X)[:, 1], expected)


@pytest.mark.parametrize("name", ["linear", "sqrt", "exp", "step"])
def test_relabelled_rows_never_cost_more_than_any_one_model_says(name):
    tree, cost = DecisionTreeClassifier(max_depth=4, random_state=0), COSTS[name]
    kept = []

    def sampler(rows):
        rng = np.random.default_rng(0)
        for _ in range(10):
            chosen = rng.integers(0, len(Y), len(Y))
            kept.append(tree.fit(X[chosen], Y[chosen]).predict_proba(rows)[:, 1])
        return np.array(kept).T

    model = cb.MetaCal(None, cost=cost, sampler=sampler).fit(X, Y, sample_weight=np.ones(len(Y)))
    samples = np.array(kept).T
    least = mean_cost(cost, model.labels_, samples)
    for q in (*kept, tree.fit(X, Y).predict_proba(X)[:, 1]):
        assert (least <= mean_cost(cost, q, samples) + 1e-12).all()


def test_only_the_ratio_moves_metacal_and_jobs_change_nothing():
    tree = DecisionTreeClassifier(max_depth=4)  # its own randomness follows from the seed too
    fits = [
        cb.MetaCal(tree, cost=cb.LinearCost(s, 5 * s), n_bootstrap=8, random_state=1, n_jobs=jobs).fit(X, Y).labels_
        for s, jobs in ((1, 1), (10, 1), (1, 2))
    ]
    assert np.array_equal(fits[0], fits[1])
    assert np.array_equal(fits[0], fits[2])
    other = cb.MetaCal(tree, cost=cb.LinearCost(5, 1), n_bootstrap=8, random_state=1).fit(X, Y).labels_
    assert other.mean() < fits[0].mean()


def test_out_of_bag_labels_come_from_models_that_did_not_see_the_row():
    tree = DecisionTreeClassifier(random_state=0)  # fully grown: of rows it saw it says their label
    seen = cb.MetaCal(tree, cost=cb.LinearCost(), n_bootstrap=30, random_state=0).fit(X, Y)
    unseen = cb.MetaCal(tree, cost=cb.LinearCost(), n_bootstrap=30, random_state=0, out_of_bag=True).fit(X, Y)
    wrong = [np.mean(np.abs(model.labels_ - Y)) for model in (seen, unseen)]
    assert wrong[0] < 0.05
    assert wrong[1] > 0.1
    few = cb.MetaCal(tree, cost=cb.LinearCost(), n_bootstrap=2, random_state=0, out_of_bag=True).fit(X, Y)
    assert "never_out_of_bag" in [note.code for note in few.notes_]


def test_predictions_outside_0_to_1_are_clipped_and_told():
    model = cb.MetaCal(LogisticRegression(C=100), LinearRegression(), FIVE, n_bootstrap=5, random_state=0).fit(X, Y)
    assert "clipped" in [note.code for note in model.notes_]
    with pytest.warns(cb.CalibrantWarning, match="outside"):
        proba = model.predict_proba(X)
    assert proba.min() >= 0
    assert proba.max() <= 1


def test_the_number_of_bootstraps_can_be_searched_for():
    model = cb.MetaCal(DecisionTreeClassifier(max_depth=3, random_state=0), cost=FIVE, random_state=0)
    search = GridSearchCV(model, {"n_bootstrap": [3, 9]}, scoring=cb.scorers.of(cb.ECC(cost=FIVE)), cv=3).fit(X, Y)
    assert search.best_params_["n_bootstrap"] in (3, 9)


def test_weights_reach_metacal():
    weight = np.where(Y == 1, 5.0, 1.0)
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    plain, heavy = (
        cb.MetaCal(tree, n_bootstrap=5, random_state=0).fit(X, Y, sample_weight=w).labels_.mean()
        for w in (None, weight)
    )
    assert heavy > plain + 0.1


def test_a_random_regressor_follows_from_the_seed_and_weights_are_not_dropped_in_silence():
    from sklearn.neighbors import KNeighborsRegressor

    tree, loose = DecisionTreeClassifier(max_depth=3), DecisionTreeRegressor(max_features=3, min_samples_leaf=20)
    one, two = (cb.MetaCal(tree, loose, n_bootstrap=4, random_state=0).fit(X, Y).predict_proba(X) for _ in range(2))
    assert np.array_equal(one, two)
    with pytest.warns(cb.CalibrantWarning, match="takes no sample_weight"):
        model = cb.MetaCal(tree, KNeighborsRegressor(), n_bootstrap=4).fit(X, Y, sample_weight=np.ones(len(Y)))
    assert "regressor_unweighted" in [note.code for note in model.notes_]


def test_metacal_must_be_well_put():
    tree = DecisionTreeClassifier()
    with pytest.raises(cb.InputError, match="must be called"):
        cb.MetaCal(None, cost="linear", sampler=lambda rows: 1 / 0).fit(X, Y)
    with pytest.raises(cb.InputError, match="binary"):
        cb.MetaCal(tree).fit(X, np.arange(len(Y)) % 3)
    with pytest.raises(cb.InputError, match="n_bootstrap"):
        cb.MetaCal(tree, n_bootstrap=0).fit(X, Y)
    with pytest.raises(cb.InputError, match="predict_proba"):
        cb.MetaCal(LinearRegression()).fit(X, Y)
    with pytest.raises(cb.InputError, match="sampler gave"):
        cb.MetaCal(None, sampler=lambda rows: np.full((3, 4), 0.5)).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lonely = np.zeros(len(Y), dtype=int)
        lonely[0] = 1
        assert cb.MetaCal(tree, n_bootstrap=3, random_state=0).fit(X, lonely).labels_.size == len(Y)
