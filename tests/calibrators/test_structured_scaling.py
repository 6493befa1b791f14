"""StructuredScaling: its mode against a general optimiser, separated and absent classes, weights, and no harm."""

import numpy as np
import pytest

pytest.importorskip("sklearn")

from scipy.optimize import minimize, minimize_scalar
from scipy.special import softmax

import calibrant as cb
from calibrant.calibrators import structured_scaling
from calibrant.calibrators.class_maps import StructuredSoftmax, log_shares


def sample(seed=0, size=800, n_classes=3, heat=2.0):
    """Probabilities whose logits are `heat` times too large and shifted, labels, and true probabilities."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 1.5, (size, n_classes))
    truth = softmax(logits, axis=1)
    y = (truth.cumsum(axis=1) > rng.random((size, 1))).argmax(axis=1)
    return softmax(heat * logits + np.linspace(-0.5, 0.5, n_classes), axis=1), y, truth


def log_loss(proba, y):
    return -np.log(proba[np.arange(len(y)), y]).mean()


def test_the_slope_has_the_least_log_loss_of_the_mixture():
    p, y, _ = sample()
    share = cb.StructuredScaling().fit(p, y).map_.share

    def loss(log_slope):
        q = softmax(np.exp(log_slope) * np.log(p), axis=1)[np.arange(len(y)), y]
        return -np.log((1 - share) * q + share / 3).sum()

    best = minimize_scalar(loss, bounds=(-3, 3), method="bounded", options={"xatol": 1e-6}).x
    found = structured_scaling._fit_slope(log_shares(p, 1e-30, "probability"), y, np.ones(len(y)), share)
    assert np.log(found) == pytest.approx(best, abs=2e-3)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("off_diagonal", [True, False])
def test_the_weights_are_the_mode_of_their_posterior(n_classes, off_diagonal, monkeypatch):
    p, y, _ = sample(n_classes=n_classes)
    known = []
    update = structured_scaling._Precisions.update

    def remember(self, weights, variances):
        known.append((self.group, self.values))
        return update(self, weights, variances)

    monkeypatch.setattr(structured_scaling._Precisions, "update", remember)
    cal = cb.StructuredScaling(off_diagonal=off_diagonal).fit(p, y)
    group, precision = known[-1]
    share, slope = cal.map_.share, cal.map_.slope
    z = np.log((1 - share) * softmax(slope * np.log(p), axis=1) + share / n_classes)
    if off_diagonal:
        z -= z.mean(axis=1, keepdims=True)
    scale = np.sqrt((z**2).mean())

    def logits(theta):
        theta = theta.reshape(group.shape)
        moved = z @ theta[:, :-1].T if off_diagonal else z * theta[:, 0]
        return z + moved / scale + theta[:, -1]

    def negative_log_posterior(theta):
        q = softmax(logits(theta), axis=1)[np.arange(len(y)), y]
        return -np.log(q).sum() + np.sum(precision[group].ravel() * theta**2) / 2

    best = minimize(negative_log_posterior, np.zeros(group.size), options={"gtol": 1e-6})
    wanted = (1 - share) * softmax(logits(best.x), axis=1) + share / n_classes
    assert cal(p) == pytest.approx(wanted, abs=2e-3)


def test_separated_classes_and_classes_without_rows_have_finite_weights():
    y = np.repeat([0, 1, 2], 30)
    sure = np.eye(4)[y]
    for cal in (cb.StructuredScaling(), cb.StructuredScaling(off_diagonal=False)):
        found = cal.fit(sure, y, classes=range(4))(sure)
        right = found[np.arange(90), y]
        assert (right < 1 - 1e-4).all()  # 90 rows do not show more
        assert (right > 0.9).all()
        assert (found > 0).all()


def test_one_row_and_one_class_can_be_fitted():
    assert cb.StructuredScaling().fit([[0.7, 0.2, 0.1]], [1], classes=range(3))([[0.7, 0.2, 0.1]]).sum() == 1
    assert (
        cb.StructuredScaling().fit(np.full((50, 3), 1 / 3), [1] * 50, classes=range(3))([[0.2, 0.2, 0.6]]) > 0
    ).all()


def test_weight_two_is_two_rows():
    p, y, _ = sample()
    twice = np.random.default_rng(0).integers(1, 3, len(y))
    again = np.repeat(np.arange(len(y)), twice)
    for off_diagonal in (True, False):
        weighted = cb.StructuredScaling(off_diagonal=off_diagonal).fit(p, y, sample_weight=twice)
        repeated = cb.StructuredScaling(off_diagonal=off_diagonal).fit(p[again], y[again])
        assert weighted(p) == pytest.approx(repeated(p), abs=1e-6)


def test_calibrated_probabilities_are_left_alone():
    """The mean increase of the log loss on 500 rows is below 0.6 %; that of matrix scaling is above 1 %."""
    harm, of_matrix = [], []
    for seed in range(20):
        _, y, truth = sample(seed, 500, 4, 1.0)
        _, new, p = sample(100 + seed, 20_000, 4, 1.0)
        base = log_loss(p, new)
        harm.append(log_loss(cb.StructuredScaling().fit(truth, y)(p), new) / base - 1)
        of_matrix.append(log_loss(cb.calibrators.MatrixScaling().fit(truth, y)(p), new) / base - 1)
    assert np.mean(harm) < 0.006
    assert np.mean(of_matrix) > 0.01


def test_many_classes_have_a_diagonal():
    p, y, truth = sample(size=6000, n_classes=30)
    cal = cb.StructuredScaling().fit(p, y, classes=range(30))
    assert cal.weights_.shape == (30,)
    before, after = (np.abs(each - truth).mean() for each in (p, cal(p)))
    assert after < before / 3


def test_logits_give_the_map_of_their_probabilities():
    p, y, _ = sample()
    of_logits = cb.StructuredScaling(from_logits=True).fit(np.log(p) + 5.0, y)
    assert of_logits(np.log(p) - 2.0) == pytest.approx(cb.StructuredScaling().fit(p, y)(p), abs=1e-9)


def test_settings_and_maps_are_checked():
    p, y, _ = sample(size=50)
    with pytest.raises(cb.InputError, match="eps must be a float"):
        cb.StructuredScaling(eps=0.7).fit(p, y)
    good = {"slope": 1.0, "weights": [1.0, 1.0], "biases": [0.0, 0.0], "share": 0.1}
    assert StructuredSoftmax(**good).n_classes == 2
    for bad, words in (
        ({"weights": [1.0]}, "weights of shape"),
        ({"share": 0.0}, "a share in"),
        ({"slope": -1.0}, "a slope in"),
        ({"slope": 1e3}, "a slope in"),
        ({"domain": "margin"}, "a domain of"),
        ({"biases": [np.nan, 0.0]}, "finite"),
    ):
        with pytest.raises(cb.InputError, match=words):
            StructuredSoftmax(**good | bad)
