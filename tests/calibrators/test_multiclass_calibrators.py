"""Multiclass calibrators: laws for every entry of CALIBRATORS of classes, independent optimisers, degenerate rows."""

import json
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")

from scipy.interpolate import CubicSpline
from scipy.optimize import minimize, minimize_scalar
from scipy.special import logsumexp, softmax
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import calibrant as cb
from calibrant.calibrators import class_maps, maps
from calibrant.calibrators.class_maps import couple

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "multiclass.json").read_text())
EPS = 2.0**-24
X3, Y3 = make_classification(1500, n_informative=6, n_classes=3, flip_y=0.1, random_state=0)
KINDS = {name: kind() for name, kind in cb.calibrators.CALIBRATORS.items() if kind.takes == "classes"} | {
    "one_vs_rest of isotonic": cb.calibrators.OneVsRest("isotonic"),
    "pairwise of beta": cb.calibrators.PairwiseCoupling(cb.Beta()),
    "matrix, l2": cb.calibrators.MatrixScaling(l2=0.1),
    "dirichlet without penalty": cb.calibrators.Dirichlet(reg_lambda=0.0),
    "dirichlet, l2": cb.calibrators.Dirichlet(reg_lambda=0.01, penalty="l2"),
    "spline, classwise": cb.calibrators.Spline(on="classwise"),
    "structured, diagonal": cb.StructuredScaling(off_diagonal=False),
}
every_kind = pytest.mark.parametrize("name", KINDS)


def drawn(rng, proba):
    """Labels with these probabilities."""
    return (proba.cumsum(axis=1) > rng.random((len(proba), 1))).argmax(axis=1)


def rows(seed=0, size=2000, n_classes=3, heat=2.0):
    """Predicted probabilities, labels, and true probabilities: logits are `heat` times too large, and shifted."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 1.2, (size, n_classes))
    truth = softmax(logits, axis=1)
    shift = np.linspace(-0.3, 0.3, n_classes)
    return softmax(heat * logits + shift, axis=1), drawn(rng, truth), truth


def log_loss(proba, y):
    return -np.log(proba[np.arange(len(y)), y]).mean()


# Laws


@every_kind
def test_calibrated_rows_are_probabilities_and_have_a_lower_log_loss(name):
    proba, y, _ = rows()
    new, y_new, _ = rows(seed=1)
    cal = clone(KINDS[name]).fit(proba, y)
    found = cal(new)
    assert found.sum(axis=1) == pytest.approx(np.ones(len(new)), abs=1e-12)
    assert ((found >= 0) & (found <= 1)).all()
    gain = 0.02 if name == "spline" else 0.1  # the spline changes the confidence alone
    assert log_loss(found, y_new) < log_loss(new, y_new) - gain
    assert np.array_equal(cal.predict_proba(new), found)
    assert cal.predict(new).tolist() == found.argmax(axis=1).tolist()


@every_kind
@pytest.mark.parametrize("n_classes", [2, 3, 12])
def test_each_row_is_mapped_by_itself(name, n_classes):
    proba, y, _ = rows(n_classes=n_classes)
    cal = clone(KINDS[name]).fit(proba, y)
    found = cal(proba)
    assert np.array_equal(cal(proba[::-1]), found[::-1])
    assert np.array_equal(cal(proba[7:8]), found[7:8])


@every_kind
def test_the_order_of_rows_has_no_effect(name):
    proba, y, _ = rows()
    order = np.random.default_rng(1).permutation(len(y))
    one, two = clone(KINDS[name]).fit(proba, y), clone(KINDS[name]).fit(proba[order], y[order])
    assert one(proba) == pytest.approx(two(proba), abs=1e-9)


@pytest.mark.parametrize("name", [name for name, cal in KINDS.items() if cal.kind == "multiclass"])
@pytest.mark.parametrize("order", [[2, 0, 1], [1, 0, 2]])
def test_permuted_classes_give_permuted_probabilities(name, order):
    proba, y, _ = rows()
    place = np.argsort(order)
    one = clone(KINDS[name]).fit(proba, y)
    two = clone(KINDS[name]).fit(proba[:, order], place[y])
    assert two(proba[:, order]) == pytest.approx(one(proba)[:, order], abs=1e-9)


@every_kind
def test_weights_of_2_equal_doubled_rows(name):
    proba, y, _ = rows(size=600)
    weight = 1 + (np.arange(600) % 3 == 0)
    again = np.repeat(np.arange(600), weight)
    weighted = clone(KINDS[name]).fit(proba, y, weight)
    repeated = clone(KINDS[name]).fit(proba[again], y[again])
    assert weighted(proba) == pytest.approx(repeated(proba), abs=1e-8)
    zeros = np.concatenate([np.ones(600), np.zeros(50)])
    more = clone(KINDS[name]).fit(np.concatenate([proba, proba[:50]]), np.append(y, (y[:50] + 1) % 3), zeros)
    assert more(proba) == pytest.approx(clone(KINDS[name]).fit(proba, y)(proba), abs=1e-9)


@every_kind
def test_calibrated_probabilities_are_almost_unchanged(name):
    rng = np.random.default_rng(3)
    proba = rng.dirichlet([2, 2, 2, 2], 50_000)
    cal = clone(KINDS[name])
    if name in ("matrix, l2", "dirichlet, l2"):  # which shrink weights to 0
        cal.set_params(**{"l2" if "matrix" in name else "reg_lambda": 1e-4})
    found = cal.fit(proba, drawn(rng, proba))(proba)
    assert np.abs(found - proba).mean() < 0.01


@every_kind
def test_probabilities_of_0_and_1_are_clipped_and_counted(name):
    proba, y, _ = rows(size=500, heat=3.0)
    hard = np.where(proba > 0.99, 1.0, 0.0)
    rounded = np.where(hard.any(axis=1, keepdims=True), hard, proba)
    clipped = int((rounded < EPS).any(axis=1).sum())
    assert clipped > 5
    cal = clone(KINDS[name]).fit(rounded, y)
    assert np.isfinite(cal(rounded)).all()
    assert np.isfinite(np.log(cal(rounded))).all() or "isotonic" in name
    if hasattr(cal, "n_clipped_"):
        assert cal.n_clipped_ == clipped
        assert clone(KINDS[name]).fit(rounded, y, np.full(500, 2.0)).n_clipped_ == 2 * clipped


def test_scaling_calibrators_count_clipped_rows():
    counting = {name for name, cal in KINDS.items() if "n_clipped_" in cal.saved_attributes}
    assert {"softmax_temperature", "vector", "matrix", "dirichlet", "pairwise"} <= counting
    proba, y, _ = rows(size=300)
    proba[0] = [1, 0, 0]
    assert "logit_clipped" in {note.code for note in cb.calibrators.Dirichlet().fit(proba, y).notes_}


@every_kind
def test_fitted_calibrators_survive_pickle_and_unfitted_ones_raise(name):
    proba, y, _ = rows(size=300)
    with pytest.raises(ValueError, match="not fitted"):
        clone(KINDS[name])(proba)
    cal = clone(KINDS[name]).fit(proba, np.array(["a", "b", "c"])[y])
    assert cal.classes_.tolist() == ["a", "b", "c"]
    again = pickle.loads(pickle.dumps(cal))
    assert np.array_equal(again(proba), cal(proba))
    before = cal(proba)
    with pytest.raises(cb.InputError):
        cal.fit(proba[:, :2], y)
    assert np.array_equal(cal(proba), before)


@every_kind
def test_fits_do_not_modify_their_arguments(name):
    proba, y, _ = rows(size=300)
    given, weight = proba.copy(), np.ones(300)
    clone(KINDS[name]).fit(given, y, weight)(given)
    assert np.array_equal(given, proba)
    assert (weight == 1).all()


@every_kind
def test_a_class_without_rows_is_an_error_where_its_probability_has_no_estimate(name):
    proba, y, _ = rows(size=300)
    present = y < 2
    cal = clone(KINDS[name])
    if cal.needs_all_classes:
        with pytest.raises(cb.InputError, match="got none of 2"):
            cal.fit(proba[present], y[present], classes=[0, 1, 2])
        with pytest.raises(cb.InputError, match="got none of 2"):
            cal.fit(proba, y, present.astype(float))
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cb.CalibrantWarning)
        cal.fit(proba[present], y[present], classes=[0, 1, 2])
    assert cal(proba).shape == (300, 3)


# Names


def test_names_stand_for_objects():
    proba, y, _ = rows(size=500)
    for name, kind in cb.calibrators.CALIBRATORS.items():
        assert kind.kind in ("binary", "multiclass", "ordinal")
        if kind.takes == "classes":
            by_name = cb.CalibratedModel(GaussianNB(), name, ensemble=False, cv=3).fit(X3, Y3)
            assert type(by_name.calibrator_) is kind
    for wrapper in (cb.calibrators.OneVsRest, cb.calibrators.PairwiseCoupling, cb.calibrators.Cumulative):
        for name, cal in (("beta", cb.Beta()), ("isotonic", cb.Isotonic()), ("platt", None)):
            assert np.array_equal(wrapper(name).fit(proba, y)(proba), wrapper(cal).fit(proba, y)(proba))
        for bad in ("isotone", "dirichlet", cb.calibrators.Dirichlet(), 3):
            with pytest.raises(cb.InputError, match="must be a binary calibrator"):
                wrapper(bad).fit(proba, y)


# Temperature, vector, matrix, Dirichlet: optima


def objective(theta, z, y, weight, penalty):
    """Mean log loss of softmax(W z + b) plus the penalty, and its gradient; written apart from the library."""
    theta = theta.reshape(z.shape[1], -1)
    logits = z @ theta[:, :-1].T + theta[:, -1]
    own = np.eye(z.shape[1])[y]
    share = weight / weight.sum()
    value = share @ (logsumexp(logits, axis=1) - (logits * own).sum(axis=1)) + (penalty * theta**2).sum()
    excess = (softmax(logits, axis=1) - own) * share[:, None]
    return value, (np.column_stack([excess.T @ z, excess.sum(axis=0)]) + 2 * penalty * theta).ravel()


def penalty_of(cal, k):
    if isinstance(cal, cb.calibrators.MatrixScaling):
        return np.column_stack([np.full((k, k), cal.l2 / k**2), np.zeros(k)])
    mu = cal.reg_lambda if cal.reg_mu is None else cal.reg_mu
    off = 1 - np.eye(k)
    slopes = cal.reg_lambda * (off / (k * (k - 1)) if cal.penalty == "odir" else np.full((k, k), 1 / k**2))
    return np.column_stack([slopes, np.full(k, mu / k)])


@pytest.mark.parametrize(
    "cal",
    [
        cb.calibrators.MatrixScaling(),
        cb.calibrators.MatrixScaling(l2=0.5),
        cb.calibrators.Dirichlet(),
        cb.calibrators.Dirichlet(reg_lambda=0.0),
        cb.calibrators.Dirichlet(reg_lambda=0.01),
        cb.calibrators.Dirichlet(reg_lambda=10.0, reg_mu=0.0),
        cb.calibrators.Dirichlet(reg_lambda=0.0, reg_mu=1.0),
        cb.calibrators.Dirichlet(reg_lambda=0.3, penalty="l2"),
    ],
)
@pytest.mark.parametrize("n_classes", [2, 4, 7])
def test_matrix_and_dirichlet_reach_the_optimum_of_another_optimiser(cal, n_classes):
    proba, y, _ = rows(n_classes=n_classes, size=1500)
    weight = np.random.default_rng(2).uniform(0.2, 3, 1500)
    cal = clone(cal).fit(proba, y, weight)
    penalty, z = penalty_of(cal, n_classes), np.log(proba)
    found = np.column_stack([cal.weights_, cal.biases_]).ravel()
    value, gradient = objective(found, z, y, weight, penalty)
    assert np.abs(gradient).max() < 1e-9
    other = minimize(
        objective,
        np.zeros(found.size),
        (z, y, weight, penalty),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 50_000, "maxfun": 100_000, "ftol": 1e-16, "gtol": 1e-9, "maxcor": 50},
    )
    assert value == pytest.approx(other.fun, abs=1e-8)
    assert value <= other.fun + 1e-12


def test_matrix_scaling_equals_logistic_regression_on_log_probabilities():
    proba, y, _ = rows(n_classes=5, size=3000)
    cal = cb.calibrators.MatrixScaling().fit(proba, y)
    other = LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000, solver="newton-cg").fit(np.log(proba), y)
    assert cal(proba) == pytest.approx(other.predict_proba(np.log(proba)), abs=1e-8)
    assert log_loss(cal(proba), y) == pytest.approx(log_loss(other.predict_proba(np.log(proba)), y), abs=1e-12)
    assert cal.weights_.sum(axis=0) == pytest.approx(np.ones(5))
    assert cal.biases_.sum() == pytest.approx(0, abs=1e-9)
    same = cb.calibrators.Dirichlet(reg_lambda=0.0).fit(proba, y)
    assert same(proba) == pytest.approx(cal(proba), abs=1e-12)


def test_l2_equals_penalised_logistic_regression():
    proba, y, _ = rows(n_classes=4, size=1000)
    other = LogisticRegression(C=0.02, tol=1e-12, max_iter=10_000, solver="newton-cg").fit(np.log(proba), y)
    penalty = 4**2 / (2 * 0.02 * 1000)  # scikit-learn: C times the sum of losses plus half the sum of squares
    for cal in (
        cb.calibrators.MatrixScaling(l2=penalty),
        cb.calibrators.Dirichlet(reg_lambda=penalty, reg_mu=0.0, penalty="l2"),
    ):
        assert cal.fit(proba, y)(proba) == pytest.approx(other.predict_proba(np.log(proba)), abs=1e-7)


def test_dirichlet_of_two_classes_is_beta_calibration():
    proba, y, _ = rows(n_classes=2, heat=1.5)
    dirichlet = cb.calibrators.Dirichlet(reg_lambda=0.0).fit(proba, y)
    beta = cb.Beta().fit(proba[:, 1], y)
    assert min(beta.map_.a, beta.map_.b) > 0  # within the bounds of beta calibration
    assert dirichlet(proba)[:, 1] == pytest.approx(beta(proba[:, 1]), abs=1e-8)


def test_a_strong_odir_penalty_leaves_the_diagonal():
    proba, y, _ = rows(n_classes=4)
    cal = cb.calibrators.Dirichlet(reg_lambda=1e7).fit(proba, y)
    assert np.abs(cal.weights_ - np.diag(np.diagonal(cal.weights_))).max() < 1e-5
    assert np.abs(cal.biases_).max() < 1e-5
    own = np.diagonal(cal.weights_)
    z = np.log(proba)
    excess = (softmax(z * own, axis=1) - np.eye(4)[y]) * z
    assert np.abs(excess.mean(axis=0)).max() < 1e-5


def test_vector_scaling_reaches_the_optimum_of_another_optimiser():
    proba, y, truth = rows(n_classes=6)
    cal, z = cb.calibrators.VectorScaling().fit(proba, y), np.log(proba)

    def value(theta):
        return -np.log(softmax(z * theta[:6] + theta[6:], axis=1)[np.arange(len(y)), y]).mean()

    other = minimize(value, np.zeros(12), method="BFGS", options={"gtol": 1e-7})
    assert value(np.append(cal.weights_, cal.biases_)) == pytest.approx(other.fun, abs=1e-8)
    excess = cal(proba) - np.eye(6)[y]
    assert np.abs(excess.mean(axis=0)).max() < 1e-10
    assert np.abs((excess * z).mean(axis=0)).max() < 1e-10
    assert cal.biases_.sum() == pytest.approx(0, abs=1e-12)
    assert np.abs(cal(proba) - truth).mean() < 0.03


def test_softmax_temperature_reaches_the_optimum_of_another_optimiser():
    proba, y, _ = rows(n_classes=5)
    cal = cb.calibrators.SoftmaxTemperature().fit(proba, y)
    other = minimize_scalar(
        lambda s: -np.log(softmax(s * np.log(proba), axis=1)[np.arange(len(y)), y]).mean(), (0.1, 1.0)
    )
    assert cal.slope_ == pytest.approx(other.x, abs=1e-6)
    q = cal(proba)
    derivative = (q * np.log(proba)).sum(axis=1).mean() - np.log(proba)[np.arange(len(y)), y].mean()
    assert abs(derivative) < 1e-13
    assert cal.temperature_ == pytest.approx(2.0, rel=0.08)


def test_a_temperature_is_infinite_where_scores_rank_the_wrong_way():
    proba, *_ = rows()
    cal = cb.calibrators.SoftmaxTemperature().fit(proba, proba.argmin(axis=1))
    assert cal.temperature_ == np.inf
    assert cal(proba) == pytest.approx(np.full(proba.shape, 1 / 3))


@pytest.mark.parametrize(
    "cal",
    [
        cb.calibrators.VectorScaling(),
        cb.calibrators.MatrixScaling(),
        cb.calibrators.Dirichlet(reg_lambda=0.0),
        cb.calibrators.Dirichlet(),
    ],
)
def test_separated_classes_are_an_error_or_penalised(cal):
    proba, y, _ = rows(size=300)
    separated = proba.argmax(axis=1)
    with pytest.raises(cb.InputError, match="separated"):
        clone(cal).fit(proba, separated)
    # One class alone is separated from the others, by a threshold that needs an intercept.
    first = np.where(proba[:, 0] > 0.5, 0, np.where(y == 0, 1, y))
    if getattr(cal, "reg_lambda", 0.0) == 0.0:
        with pytest.raises(cb.InputError, match="separated"):
            clone(cal).fit(proba, first)
    else:
        assert np.isfinite(clone(cal).fit(proba, first).weights_).all()
    found = cb.calibrators.Dirichlet(penalty="l2").fit(proba, separated)
    assert np.isfinite(found.weights_).all()


def test_a_constant_column_does_no_harm():
    rng = np.random.default_rng(0)
    proba = np.column_stack([rng.dirichlet([1, 1], 2000), np.zeros(2000)])
    y = drawn(rng, proba)
    y[:20] = 2
    for cal in (cb.calibrators.VectorScaling(), cb.calibrators.MatrixScaling(), cb.calibrators.Dirichlet()):
        found = clone(cal).fit(proba, y)(proba)
        assert found[:, 2].mean() == pytest.approx(0.01, abs=0.002)


def test_settings_are_checked():
    proba, y, _ = rows(size=100)
    for cal, words in (
        (cb.calibrators.Dirichlet(reg_lambda=-1.0), "reg_lambda"),
        (cb.calibrators.Dirichlet(reg_mu=np.inf), "reg_mu"),
        (cb.calibrators.Dirichlet(penalty="l1"), "penalty"),
        (cb.calibrators.MatrixScaling(l2="much"), "l2"),
        (cb.calibrators.Dirichlet(eps=0.0), "eps"),
        (cb.calibrators.PairwiseCoupling(eps=1.0), "eps"),
        (cb.calibrators.Cumulative(eps=0.0), "eps"),
        (cb.calibrators.Spline(n_knots=1), "n_knots"),
        (cb.calibrators.Spline(on="all"), "on must be"),
    ):
        with pytest.raises(cb.InputError, match=words):
            cal.fit(proba, y)


@pytest.mark.slow
def test_a_hundred_classes_reach_the_optimum():
    proba, y, _ = rows(n_classes=100, size=4000, heat=1.3)
    for cal in (cb.calibrators.Dirichlet(reg_lambda=10.0), cb.calibrators.VectorScaling()):
        cal.fit(proba, y)
        excess = (cal(proba) - np.eye(100)[y]) / len(y)
        if isinstance(cal, cb.calibrators.Dirichlet):
            gradient = excess.T @ np.log(proba) + 2 * 10 / (100 * 99) * cal.weights_ * (1 - np.eye(100))
        else:
            gradient = (excess * np.log(proba)).sum(axis=0)
        assert np.abs(gradient).max() < 1e-9


# Pairwise coupling


def coupled_slowly(pairs, sizes, k):
    """Hastie & Tibshirani's iteration for one row, as printed."""
    r, n = np.zeros((k, k)), np.zeros((k, k))
    for value, size, i, j in zip(pairs, sizes, *np.triu_indices(k, 1), strict=True):
        r[i, j], r[j, i], n[i, j], n[j, i] = value, 1 - value, size, size
    p = np.full(k, 1 / k)
    for _ in range(200_000):
        before = p.copy()
        for i in range(k):
            others = np.arange(k) != i
            p[i] *= (n[i] * r[i])[others].sum() / (n[i, others] * p[i] / (p[i] + p[others])).sum()
            p /= p.sum()
        if np.abs(p - before).max() < 1e-15:
            break
    return p


@pytest.mark.parametrize("k", [2, 3, 6])
def test_coupling_equals_the_iteration_of_hastie_and_tibshirani(rng, k):
    n_pairs = k * (k - 1) // 2
    pairs, sizes = rng.beta(0.7, 0.7, (20, n_pairs)).clip(0.01, 0.99), rng.uniform(1, 5, n_pairs)
    found = couple(pairs, sizes / sizes.sum(), k)
    for row, own in zip(pairs, found, strict=True):
        assert own == pytest.approx(coupled_slowly(row, sizes, k), abs=1e-9)


def test_coupling_returns_probabilities_that_all_pairs_agree_on(rng):
    for k in (2, 3, 10):
        proba = rng.dirichlet(np.full(k, 0.3), 200).clip(1e-6)
        proba /= proba.sum(axis=1, keepdims=True)
        i, j = np.triu_indices(k, 1)
        found = couple(proba[:, i] / (proba[:, i] + proba[:, j]), np.full(i.size, 1 / i.size), k)
        assert found == pytest.approx(proba, abs=1e-9)


def test_pairs_of_two_classes_are_the_binary_calibrator():
    proba, y, _ = rows(n_classes=2)
    pair = cb.calibrators.PairwiseCoupling("isotonic").fit(proba, y)
    binary = cb.Isotonic().fit(proba[:, 0], y == 0)
    assert pair(proba)[:, 0] == pytest.approx(binary(proba[:, 0]), abs=1e-9)


def test_each_pair_has_a_calibrator_of_its_rows():
    proba, y, _ = rows(n_classes=4)
    cal = cb.calibrators.PairwiseCoupling(cb.Platt()).fit(proba, y)
    assert len(cal.calibrators_) == 6
    some = (y == 1) | (y == 3)
    score = proba[some, 1] / (proba[some, 1] + proba[some, 3])
    expected = cb.Platt().fit(score, y[some] == 1)
    assert cal.calibrators_[4].slope_ == pytest.approx(expected.slope_, abs=1e-12)
    assert cal.map_.sizes[4] == some.sum()


# Splines


def natural_basis(u, knots):
    """The natural cubic spline basis by truncated powers (Hastie, Tibshirani & Friedman, 5.4), without the constant."""

    def d(k):
        above = np.maximum(u - knots[k], 0) ** 3 - np.maximum(u - knots[-1], 0) ** 3
        return above / (knots[-1] - knots[k])

    return np.column_stack([u, *(d(k) - d(len(knots) - 2) for k in range(len(knots) - 2))])


@pytest.mark.parametrize("n_knots", [2, 4, 6])
def test_the_spline_is_the_least_squares_fit_of_the_cumulative_difference(n_knots):
    proba, y, _ = rows(size=3000)
    cal = cb.calibrators.Spline(n_knots=n_knots).fit(proba, y)
    top = proba.argmax(axis=1)
    order = np.argsort(proba.max(axis=1))
    score, right = proba.max(axis=1)[order], (y == top)[order]
    u, knots = np.arange(1, 3001) / 3000, np.linspace(0, 1, n_knots)
    basis = natural_basis(u, knots)
    heights = np.linalg.lstsq(basis, np.cumsum(right - score) / 3000, rcond=None)[0]
    curve = CubicSpline(knots, natural_basis(knots, knots) @ heights, bc_type="natural")
    excess = curve.derivative()((np.arange(3000) + 0.5) / 3000)
    inside = (score > cal.map_.confidence.x[1]) & (score < cal.map_.confidence.x[-2])
    found = cal.map_.confidence(score) - score
    exact = (score + excess > 0.01) & (score + excess < 0.99)
    # Straight lines between 51 points of the curve.
    assert np.abs(found - excess)[inside & exact].max() < 0.003


def test_the_other_classes_keep_their_proportions():
    proba, y, _ = rows(n_classes=4)
    cal = cb.calibrators.Spline().fit(proba, y)
    found, top = cal(proba), proba.argmax(axis=1)
    row = np.arange(len(y))
    confidence = cal.map_.confidence(proba[row, top])
    assert np.array_equal(found[row, top], confidence)
    others = np.ones_like(proba, dtype=bool)
    others[row, top] = False
    ratio = (found / proba)[others].reshape(-1, 3)
    assert ratio == pytest.approx(np.repeat(((1 - confidence) / (1 - proba[row, top]))[:, None], 3, axis=1), rel=1e-6)
    certain = cal(np.eye(4))
    assert certain[0, 1:] == pytest.approx(np.full(3, (1 - certain[0, 0]) / 3))


def test_the_spline_calibrates_the_confidence():
    proba, y, _ = rows(size=20_000, n_classes=5)
    new, y_new, _ = rows(seed=9, size=20_000, n_classes=5)
    top, row = new.argmax(axis=1), np.arange(len(new))
    found = cb.calibrators.Spline().fit(proba, y)(new)
    before, after = (cb.ece(y_new == top, q[row, top]) for q in (new, found))
    assert after < 0.02
    assert before > 0.15
    each = cb.calibrators.Spline(on="classwise").fit(proba, y)(new)
    assert cb.metrics.classwise("ece", y_new, each).value < cb.metrics.classwise("ece", y_new, new).value / 2


def test_splines_of_few_distinct_scores():
    one = np.tile([0.6, 0.3, 0.1], (50, 1))
    y = np.repeat([0, 1, 2], [20, 20, 10])
    assert cb.calibrators.Spline().fit(one, y)(one[:1]) == pytest.approx(np.array([[0.4, 0.45, 0.15]]))
    two = np.where(np.arange(50)[:, None] % 2, [0.6, 0.3, 0.1], [0.8, 0.1, 0.1])
    assert cb.calibrators.Spline().fit(two, y)(two).sum(axis=1) == pytest.approx(np.ones(50))


# Ordered classes


def test_thresholds_of_ordered_classes_by_hand():
    proba = np.repeat([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]], 4, axis=0)
    y = np.array(["low", "mid", "high", "high", "low", "low", "low", "mid"])
    cal = cb.calibrators.Cumulative(cb.Isotonic(extremes=True), eps=1e-15).fit(proba, y, classes=["low", "mid", "high"])
    # At most low: 1 of 4 rows of score 0.2, 3 of 4 of 0.6. At most mid: 2 of 4 of score 0.7, 4 of 4 of 0.9.
    assert cal(proba[::4]) == pytest.approx(np.array([[1 / 4, 1 / 4, 1 / 2], [3 / 4, 1 / 4, 0]]), abs=1e-14)
    # Scores 0.6 and 0.7: the values 3/4 and 1/2 cross, and both become 5/8.
    assert cal([[0.6, 0.1, 0.3]]) == pytest.approx(np.array([[5 / 8, 0, 3 / 8]]), abs=1e-14)
    assert cal.predict([[0.1, 0.2, 0.7]]).tolist() == ["high"]


@pytest.mark.parametrize("name", ["platt", "beta", "isotonic", "temperature"])
def test_the_reversed_order_of_classes_gives_the_reversed_probabilities(name):
    proba, y, _ = rows(n_classes=5)
    one = cb.calibrators.Cumulative(name).fit(proba, y)
    two = cb.calibrators.Cumulative(name).fit(proba[:, ::-1], 4 - y)
    assert two(proba[:, ::-1]) == pytest.approx(one(proba)[:, ::-1], abs=1e-9)


def test_values_that_do_not_cross_are_those_of_the_binary_calibrators():
    proba, y, _ = rows(n_classes=4)
    cal = cb.calibrators.Cumulative().fit(proba, y)
    below = proba.cumsum(axis=1)[:, :3]
    values = np.column_stack([cb.Platt().fit(below[:, k], y <= k)(below[:, k]) for k in range(3)])
    rising = (np.diff(values, axis=1) >= 0).all(axis=1)
    found = (cal(proba).cumsum(axis=1)[:, :3] - EPS * np.arange(1, 4)) / (1 - 4 * EPS)
    assert rising.mean() > 0.9
    assert found[rising] == pytest.approx(values[rising], abs=1e-12)
    crossed = [np.array([values[:, : k + 1].max(axis=1), values[:, k:].min(axis=1)]).mean(axis=0) for k in range(3)]
    assert found == pytest.approx(np.column_stack(crossed), abs=1e-12)


def test_two_ordered_classes_are_one_event():
    proba, y, _ = rows(n_classes=2)
    found = cb.calibrators.Cumulative("beta").fit(proba, y)(proba)
    assert found[:, 0] == pytest.approx(cb.Beta().fit(proba[:, 0], y == 0)(proba[:, 0]), abs=2 * EPS)


def test_a_shift_of_ordered_classes_is_removed():
    rng = np.random.default_rng(5)
    cuts, place = np.array([-1.5, -0.5, 0.7, 1.6]), 1.3 * rng.normal(size=(20_000, 1))
    edges = [np.hstack([0 * place, 1 / (1 + np.exp(-(cuts + shift - place))), 0 * place + 1]) for shift in (0.0, 0.5)]
    truth, shifted = (np.diff(each, axis=1) for each in edges)
    y = drawn(rng, truth)
    found = cb.calibrators.Cumulative().fit(shifted[:10_000], y[:10_000])(shifted[10_000:])
    assert np.abs(found - truth[10_000:]).mean() < 0.01 < np.abs(shifted - truth).mean() / 3
    before, after = (
        cb.evaluate(y[10_000:], cb.Ordinal(each), n_resamples=19).decision.deviation
        for each in (shifted[10_000:], found)
    )
    assert after.value < 0.1 < before.margin * 3 < before.low


# Reading


def test_matrices_are_checked(rng):
    proba, y, _ = rows(size=50)
    cal = cb.calibrators.SoftmaxTemperature()
    for given, labels, words in (
        (proba[:, :2], y, "one column for each"),
        (proba * 3, y, "lie in"),
        (proba * 0.3, y, "sum to 1"),
        (proba[:40], y, "equally long"),
        (np.ma.masked_greater(proba, 0.9), y, "missing"),
        (proba, proba.argmax(axis=1), "most probable"),
    ):
        with pytest.raises(cb.InputError, match=words):
            cal.fit(given, labels)
    with pytest.raises(cb.InputError, match="zero"):
        cal.fit(proba, y, np.zeros(50))


def test_frames_name_the_classes():
    pd = pytest.importorskip("pandas")
    proba, y, _ = rows(size=300)
    labels = np.array(["x", "y", "z"])
    frame = pd.DataFrame(proba[:, [2, 0, 1]], columns=["z", "x", "y"])
    by_name = cb.calibrators.Dirichlet().fit(frame, labels[y])
    assert by_name.classes_.tolist() == ["z", "x", "y"]
    by_position = cb.calibrators.Dirichlet().fit(proba, labels[y])
    assert by_name(frame) == pytest.approx(by_position(proba)[:, [2, 0, 1]], abs=1e-9)
    with pytest.raises(cb.InputError, match="in the order of the fit"):
        by_name(frame[["x", "y", "z"]])
    unnamed = cb.calibrators.Dirichlet().fit(pd.DataFrame(proba, columns=["p0", "p1", "p2"]), labels[y])
    assert unnamed.classes_.tolist() == ["x", "y", "z"]
    given = cb.calibrators.Dirichlet().fit(proba, labels[y], classes=["x", "y", "z"])
    assert given.classes_.tolist() == ["x", "y", "z"]


def test_where_every_class_gets_0_all_get_the_same():
    cal = cb.calibrators.OneVsRest(cb.Isotonic(extremes=True)).fit(
        np.eye(3).repeat(3, axis=0), [0, 0, 0, 1, 1, 1, 2, 2, 2]
    )
    assert cal([[0.1, 0.1, 0.8]]).sum() == 1
    assert cal([[0.4, 0.3, 0.3]]) == pytest.approx(np.full((1, 3), 1 / 3))


def test_binary_calibrators_in_models_of_several_classes():
    model = cb.CalibratedModel(GaussianNB(), cb.calibrators.Temperature(), ensemble=False, cv=3).fit(X3, Y3)
    assert isinstance(model.calibrator_, cb.calibrators.SoftmaxTemperature)
    model = cb.CalibratedModel(GaussianNB(), cb.Beta(), ensemble=False, cv=3).fit(X3, Y3)
    assert isinstance(model.calibrator_, cb.calibrators.OneVsRest)


def test_maps_of_classes_are_checked():
    for bad in (
        lambda: class_maps.Softmax([1.0, 2.0], [0.0, 0.0, 0.0]),
        lambda: class_maps.Softmax(np.nan, [0.0, 0.0]),
        lambda: class_maps.Softmax("1", [0.0, 0.0]),
        lambda: class_maps.Softmax(1.0, [0.0]),
        lambda: class_maps.Normalised([maps.Odds(1.0)]),
        lambda: class_maps.Coupling([maps.Odds(1.0)] * 2, [1.0, 1.0]),
        lambda: class_maps.Thresholds([]),
        lambda: class_maps.Thresholds([maps.Odds(1.0)] * 3, eps=0.3),
        lambda: class_maps.Coupling([maps.Odds(1.0)] * 3, [1.0, 0.0, 1.0]),
        lambda: maps.from_dict({"kind": "pickle"}, class_maps.CLASS_MAPS),
        lambda: maps.from_dict({"kind": "softmax", "weights": 1.0, "biases": [0.0, 0.0]}, class_maps.CLASS_MAPS),
        lambda: maps.from_dict({"kind": "normalised", "per_class": 3}, class_maps.CLASS_MAPS),
    ):
        with pytest.raises(cb.InputError):
            bad()


# Other libraries


@pytest.mark.parametrize("network", ["cifar10_lenet5", "cifar10_wideresnet_16_4"])
def test_same_as_scikit_learn_netcal_and_torch_on_cifar(data_folder, network):
    case = GOLDEN["cases"][network]
    with np.load(data_folder / "forecasts" / f"{network}.npz") as scores:
        proba, y = scores["predictions"].astype(float), scores["ground_truth"].astype(int)
    fit, shown = slice(1, None, 2), proba[case["rows"]]

    temperature = cb.calibrators.SoftmaxTemperature().fit(proba[fit], y[fit])
    assert temperature.slope_ == pytest.approx(case["sklearn_temperature"]["slope"], abs=1e-7)
    vector, matrix = (
        kind().fit(proba[fit], y[fit]) for kind in (cb.calibrators.VectorScaling, cb.calibrators.MatrixScaling)
    )
    for cal, name, near in (
        (temperature, "netcal_temperature", 1e-5),
        (vector, "netcal_vector", 1e-4),
        (matrix, "sklearn_matrix", 1e-8),
    ):
        loss = log_loss(cal(proba[fit]), y[fit])
        assert loss == pytest.approx(case[name]["log_loss"], abs=1e-8)
        assert loss <= case[name]["log_loss"] + 1e-12
        assert cal(shown) == pytest.approx(np.array(case[name]["predictions"]), abs=near)
    for name, (reg_lambda, reg_mu, odir) in GOLDEN["penalties"].items():
        cal = cb.calibrators.Dirichlet(reg_lambda=reg_lambda, reg_mu=reg_mu, penalty="odir" if odir else "l2").fit(
            proba[fit], y[fit]
        )
        theta = np.column_stack([cal.weights_, cal.biases_])
        objective = log_loss(cal(proba[fit]), y[fit]) + (penalty_of(cal, 10) * theta**2).sum()
        assert objective == pytest.approx(case[f"torch_{name}"]["objective"], abs=1e-8)
        assert cal(shown) == pytest.approx(np.array(case[f"torch_{name}"]["predictions"]), abs=1e-6)


@pytest.mark.parametrize(
    ("network", "printed"),
    [
        ("cifar10_lenet5", (1.378, 1.318, 1.314, 1.304)),
        ("cifar10_wideresnet_16_4", (0.384, 0.278, 0.240, 0.239)),
    ],
)
def test_the_log_losses_on_cifar_that_the_documentation_prints(data_folder, network, printed):
    with np.load(data_folder / "forecasts" / f"{network}.npz") as scores:
        proba, y = scores["predictions"].astype(float), scores["ground_truth"].astype(int)
    calibrators = (cb.calibrators.SoftmaxTemperature(), cb.calibrators.VectorScaling(), cb.calibrators.Dirichlet())
    found = [log_loss(proba[::2], y[::2])]
    found += [log_loss(cal.fit(proba[1::2], y[1::2])(proba[::2]), y[::2]) for cal in calibrators]
    assert tuple(round(each, 3) for each in found) == printed
    if "wideresnet" in network:
        few = [log_loss(cal.fit(proba[1:600:2], y[1:600:2])(proba[::2]), y[::2]) for cal in calibrators[::2]]
        assert tuple(round(each, 3) for each in few) == (0.288, 0.495)
