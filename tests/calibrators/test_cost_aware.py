"""Cost-aware calibration: CATS, CAPS and MetaCal."""

import warnings

import numpy as np
import pytest

import calibrant as cb

pytest.importorskip("sklearn")

from sklearn.datasets import make_classification
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from tests.metrics.test_decision_costs import COSTS, mean_cost

X, Y = make_classification(600, n_informative=4, flip_y=0.2, random_state=0)
FIVE = cb.costs.LinearCost(over=1, under=5)


def skewed(rng, size=1500):
    p = rng.random(size)
    return p, (rng.random(size) < p**2).astype(int)


@pytest.mark.filterwarnings("ignore:.*not a proper score")
@pytest.mark.parametrize("kind", [cb.calibrators.CATS, cb.calibrators.CAPS])
@pytest.mark.parametrize("name", [name for name in COSTS if name != "own"])
def test_scaling_is_never_worse_than_no_calibration_on_its_tuning_rows(rng, kind, name):
    p, y = skewed(rng, 300)
    cost = COSTS[name]
    cal = kind(cost).fit(p, y)
    before, after = (cb.metrics.ecc(y, q, cost=cost) for q in (p, cal(p)))
    assert after <= before
    assert (cal.ecc_before_, cal.ecc_) == pytest.approx((before, after))
    assert cal.slope_ > 0


def test_without_a_brier_bound_the_search_worsens_brier_and_warns(rng):
    p = rng.random(2000)
    y = (rng.random(2000) < 0.3 + 0.1 * np.sin(20 * p)).astype(int)  # p says nothing
    mixed = np.where(rng.random(2000) < 0.5, y * 0.6 + 0.2, p)  # and here something that no line can mend
    with pytest.warns(cb.CalibrantWarning, match="not a proper score"):
        free = cb.calibrators.CAPS(FIVE, keep_brier=False).fit(mixed, y)
    assert "worse_brier" in [note.code for note in free.notes_]
    kept = cb.calibrators.CAPS(FIVE).fit(mixed, y)  # no warning
    assert free.ecc_ < kept.ecc_ <= kept.ecc_before_
    assert cb.brier(y, kept(mixed)) <= 1.01 * cb.brier(y, mixed) < cb.brier(y, free(mixed))


def test_clipping_by_eps_bounds_the_loss():
    p = np.repeat([0.0, 1.0], 200)
    assert cb.calibrators.CATS(eps=0.001).fit(p, p.astype(int)).ecc_ < 1e-9


@pytest.mark.filterwarnings("ignore:.*not a proper score")
def test_scaling_equals_a_fine_grid_search(rng):
    p, y = skewed(rng)
    x = np.log(p / (1 - p))

    def ecc(a, b):
        return cb.metrics.ecc(y, 1 / (1 + np.exp(-(a * x + b))), cost=FIVE)

    cats = cb.calibrators.CATS(FIVE, keep_brier=False).fit(p, y)
    assert cats.ecc_ <= min(ecc(a, 0) for a in np.geomspace(0.05, 20, 400)) + 1e-4
    caps = cb.calibrators.CAPS(FIVE, keep_brier=False).fit(p, y)
    assert caps.ecc_ <= min(ecc(a, b) for a in np.linspace(0.5, 3, 26) for b in np.linspace(-2, 1, 31)) + 1e-4
    assert caps.ecc_ <= cats.ecc_ + 1e-12


@pytest.mark.filterwarnings("ignore:.*not a proper score")
@pytest.mark.parametrize("kind", [cb.calibrators.CATS, cb.calibrators.CAPS])
def test_only_the_ratio_moves_scaling(rng, kind):
    p, y = skewed(rng, 400)
    one, ten = (kind(cb.costs.LinearCost(scale, 5 * scale)).fit(p, y) for scale in (1, 10))
    assert (one.slope_, one.intercept_) == (ten.slope_, ten.intercept_)
    assert ten.ecc_ == pytest.approx(10 * one.ecc_)
    other = kind(cb.costs.LinearCost(5, 1)).fit(p, y)
    assert (other.slope_, other.intercept_) != (one.slope_, one.intercept_)


@pytest.mark.filterwarnings("ignore:.*not a proper score")
def test_the_papers_grids(rng):
    p, y = skewed(rng)
    bins = cb.bins.EqualWidth(10, closed="right")
    x = np.log(p / (1 - p))
    cats = cb.calibrators.CATS(FIVE, bins=bins, grid="paper").fit(p, y)
    values = {
        lam: cb.metrics.ecc(y, 1 / (1 + np.exp(-lam * x)), cost=FIVE, bins=bins) for lam in np.arange(1, 201) / 100
    }
    assert cats.slope_ == min(values, key=values.get)
    assert cats.intercept_ == 0
    caps = cb.calibrators.CAPS(FIVE, bins=bins, grid="paper", random_state=3).fit(p, y)
    again = cb.calibrators.CAPS(FIVE, bins=bins, grid="paper", random_state=3).fit(p, y)
    assert (caps.slope_, caps.intercept_) == (again.slope_, again.intercept_)
    for value in (caps.slope_, caps.intercept_):
        assert round(100 * value) in range(1, 201)
        assert value == round(100 * value) / 100
    with pytest.raises(cb.InputError, match="grid"):
        cb.calibrators.CATS(grid="fine").fit(p, y)


@pytest.mark.filterwarnings("ignore:.*not a proper score")
def test_many_scores_are_thinned_only_for_the_first_look(rng):
    p, y = skewed(rng, 30_000)
    cal = cb.calibrators.CAPS(FIVE).fit(p, y)
    assert cal.ecc_ == pytest.approx(cb.metrics.ecc(y, cal(p), cost=FIVE))
    assert cal.ecc_ < 0.2 * cal.ecc_before_


# MetaCal


def test_metacal_is_algorithm_1():
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    model = cb.calibrators.MetaCal(
        tree, DecisionTreeRegressor(random_state=0), FIVE, n_bootstrap=12, random_state=5
    ).fit(X, Y)
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
def test_relabelled_rows_cost_at_most_as_much_as_any_single_model(name):
    tree, cost = DecisionTreeClassifier(max_depth=4, random_state=0), COSTS[name]
    kept = []

    def sampler(rows):
        rng = np.random.default_rng(0)
        for _ in range(10):
            chosen = rng.integers(0, len(Y), len(Y))
            kept.append(tree.fit(X[chosen], Y[chosen]).predict_proba(rows)[:, 1])
        return np.array(kept).T

    model = cb.calibrators.MetaCal(None, cost=cost, sampler=sampler).fit(X, Y, sample_weight=np.ones(len(Y)))
    samples = np.array(kept).T
    least = mean_cost(cost, model.labels_, samples)
    for q in (*kept, tree.fit(X, Y).predict_proba(X)[:, 1]):
        assert (least <= mean_cost(cost, q, samples) + 1e-12).all()


@pytest.mark.xdist_group("jobs")  # one pool of processes serves them
def test_only_the_ratio_moves_metacal_and_jobs_change_nothing():
    tree = DecisionTreeClassifier(max_depth=4)  # its own randomness follows from the seed too
    fits = [
        cb.calibrators.MetaCal(tree, cost=cb.costs.LinearCost(s, 5 * s), n_bootstrap=8, random_state=1, n_jobs=jobs)
        .fit(X, Y)
        .labels_
        for s, jobs in ((1, 1), (10, 1), (1, 2))
    ]
    assert np.array_equal(fits[0], fits[1])
    assert np.array_equal(fits[0], fits[2])
    other = (
        cb.calibrators.MetaCal(tree, cost=cb.costs.LinearCost(5, 1), n_bootstrap=8, random_state=1).fit(X, Y).labels_
    )
    assert other.mean() < fits[0].mean()


def test_out_of_bag_labels_come_from_models_that_did_not_see_the_row():
    tree = DecisionTreeClassifier(random_state=0)  # fully grown: of rows it saw it says their label
    seen = cb.calibrators.MetaCal(tree, cost=cb.costs.LinearCost(), n_bootstrap=30, random_state=0).fit(X, Y)
    unseen = cb.calibrators.MetaCal(
        tree, cost=cb.costs.LinearCost(), n_bootstrap=30, random_state=0, out_of_bag=True
    ).fit(X, Y)
    wrong = [np.mean(np.abs(model.labels_ - Y)) for model in (seen, unseen)]
    assert wrong[0] < 0.05
    assert wrong[1] > 0.1
    few = cb.calibrators.MetaCal(tree, cost=cb.costs.LinearCost(), n_bootstrap=2, random_state=0, out_of_bag=True).fit(
        X, Y
    )
    assert "never_out_of_bag" in [note.code for note in few.notes_]


def test_predictions_outside_0_to_1_are_clipped_with_a_note():
    model = cb.calibrators.MetaCal(
        LogisticRegression(C=100), LinearRegression(), FIVE, n_bootstrap=5, random_state=0
    ).fit(X, Y)
    assert "clipped" in [note.code for note in model.notes_]
    with pytest.warns(cb.CalibrantWarning, match="outside"):
        proba = model.predict_proba(X)
    assert proba.min() >= 0
    assert proba.max() <= 1


def test_the_number_of_bootstraps_can_be_searched_for():
    model = cb.calibrators.MetaCal(DecisionTreeClassifier(max_depth=3, random_state=0), cost=FIVE, random_state=0)
    search = GridSearchCV(model, {"n_bootstrap": [3, 9]}, scoring=cb.scorers.of(cb.metrics.ECC(cost=FIVE)), cv=3).fit(
        X, Y
    )
    assert search.best_params_["n_bootstrap"] in (3, 9)


def test_weights_reach_metacal():
    weight = np.where(Y == 1, 5.0, 1.0)
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    plain, heavy = (
        cb.calibrators.MetaCal(tree, n_bootstrap=5, random_state=0).fit(X, Y, sample_weight=w).labels_.mean()
        for w in (None, weight)
    )
    assert heavy > plain + 0.1


def test_a_random_regressor_follows_the_seed_and_dropped_weights_are_noted():
    from sklearn.neighbors import KNeighborsRegressor

    tree, loose = DecisionTreeClassifier(max_depth=3), DecisionTreeRegressor(max_features=3, min_samples_leaf=20)
    one, two = (
        cb.calibrators.MetaCal(tree, loose, n_bootstrap=4, random_state=0).fit(X, Y).predict_proba(X) for _ in range(2)
    )
    assert np.array_equal(one, two)
    with pytest.warns(cb.CalibrantWarning, match="takes no sample_weight"):
        model = cb.calibrators.MetaCal(tree, KNeighborsRegressor(), n_bootstrap=4).fit(
            X, Y, sample_weight=np.ones(len(Y))
        )
    assert "regressor_unweighted" in [note.code for note in model.notes_]


def test_arguments_of_metacal_are_checked():
    tree = DecisionTreeClassifier()
    with pytest.raises(cb.InputError, match="must be a function or an object that is called"):
        cb.calibrators.MetaCal(None, cost="linear", sampler=lambda rows: 1 / 0).fit(X, Y)
    with pytest.raises(cb.InputError, match="binary"):
        cb.calibrators.MetaCal(tree).fit(X, np.arange(len(Y)) % 3)
    with pytest.raises(cb.InputError, match="n_bootstrap"):
        cb.calibrators.MetaCal(tree, n_bootstrap=0).fit(X, Y)
    with pytest.raises(cb.InputError, match="predict_proba"):
        cb.calibrators.MetaCal(LinearRegression()).fit(X, Y)
    with pytest.raises(cb.InputError, match="sampler must return 600 rows; got 3"):
        cb.calibrators.MetaCal(None, sampler=lambda rows: np.full((3, 4), 0.5)).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lonely = np.zeros(len(Y), dtype=int)
        lonely[0] = 1
        assert cb.calibrators.MetaCal(tree, n_bootstrap=3, random_state=0).fit(X, lonely).labels_.size == len(Y)


def test_missing_features_are_refused_where_the_classifier_refuses_them():
    holes = X.copy()
    holes[3, 1] = np.nan
    strict = cb.calibrators.MetaCal(LogisticRegression(), n_bootstrap=2).fit(X, Y)
    with pytest.raises(cb.InputError, match=r"Input X contains NaN \(1 value\)"):
        strict.predict_proba(holes)
    tolerant = cb.calibrators.MetaCal(DecisionTreeClassifier(max_depth=3), n_bootstrap=2).fit(X, Y)
    assert tolerant.predict_proba(holes).shape == (600, 2)
