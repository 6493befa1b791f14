"""Tests of calibration against other implementations, definitions by rows, and their behaviour with few rows."""

import inspect
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from scipy.special import logit
from scipy.stats import chi2, norm
from strategies import columns, some_rows

import calibrant as cb
from calibrant.inference.tails import brownian_maximum_tail, brownian_range_tail

GOLDEN = Path(__file__).parents[1] / "golden"
VAL_PROB = json.loads((GOLDEN / "val_prob.json").read_text())["cases"]
TESTS = [
    cb.inference.spiegelhalter,
    cb.inference.hosmer_lemeshow,
    cb.inference.ecce_test,
    cb.inference.slope_intercept_test,
]


def draw(size=1000, power=1.0, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(size)
    return (rng.random(size) < p**power).astype(int), p


@pytest.mark.parametrize("case", VAL_PROB)
def test_agreement_with_rs_val_prob_and_glm(case):
    with np.load(GOLDEN / f"{case}_public.npz") as rows:
        table = cb.ScoreTable.from_arrays(rows["y"], rows["p"])
    wanted, close = VAL_PROB[case], {"rel": 1e-8, "abs": 1e-8}
    z, p = cb.inference.spiegelhalter(table)
    assert (z, p) == pytest.approx((wanted["spiegelhalter_z"], wanted["spiegelhalter_p"]), **close)
    lr, p = cb.inference.slope_intercept_test(table, eps=2.0**-53)
    assert (lr, p) == pytest.approx((wanted["lr"], wanted["lr_p"]), **close)
    assert lr == pytest.approx(wanted["val_prob_u_chisq"], **close)
    fit = cb.metrics.slope_intercept(table, eps=2.0**-53)
    assert (fit.slope, fit.intercept) == pytest.approx((wanted["slope"], wanted["intercept"]), **close)


@given(some_rows)
def test_spiegelhalter_by_rows(pairs):
    y, p = columns(pairs)
    spread = np.sqrt(sum((1 - 2 * q) ** 2 * q * (1 - q) for q in p))
    if spread == 0:
        with pytest.raises(cb.InputError, match=r"a score other than 0, 0\.5 and 1"):
            cb.inference.spiegelhalter(y, p)
        return
    wanted = sum((o - q) * (1 - 2 * q) for o, q in zip(y, p, strict=True)) / spread
    found = cb.inference.spiegelhalter(y, p, n_resamples=5)
    # k - n p is rounded where scores are within rounding of 1
    assert found.statistic == pytest.approx(wanted, rel=1e-9, abs=1e-7)
    assert found.pvalue == pytest.approx(2 * norm.sf(abs(wanted)), rel=1e-6)


def test_hosmer_lemeshow_by_hand():
    y, p = draw()
    order = np.argsort(p)
    wanted = sum((y[g].sum() - p[g].sum()) ** 2 / (p[g].sum() * (1 - p[g].mean())) for g in np.array_split(order, 10))
    found = cb.inference.hosmer_lemeshow(y, p)
    assert found.statistic == pytest.approx(wanted)
    assert (found.df, found.pvalue) == (10, pytest.approx(chi2.sf(wanted, 10)))
    assert cb.inference.hosmer_lemeshow(y, p, ddof=2).pvalue == pytest.approx(chi2.sf(wanted, 8))
    assert found.resampling_pvalue is None


def test_hosmer_lemeshow_with_scores_of_0_and_1():
    sure = cb.ScoreTable.from_counts([0.0, 0.3, 0.7, 1.0], [50, 50, 50, 50], [0, 15, 35, 50])
    found = cb.inference.hosmer_lemeshow(sure, bins=cb.bins.Edges([0, 0.1, 0.5, 0.9, 1]))
    assert (found.statistic, found.df) == (pytest.approx(0), 2)
    wrong = cb.ScoreTable.from_counts([0.0, 0.3, 0.7, 1.0], [50, 50, 50, 50], [1, 15, 35, 50])
    found = cb.inference.hosmer_lemeshow(wrong, bins=cb.bins.Edges([0, 0.1, 0.5, 0.9, 1]))
    assert (found.statistic, found.pvalue) == (np.inf, 0)
    assert found.to_dict()["statistic"] is None
    with pytest.raises(cb.InputError, match="bins must leave at least 1 degree of freedom; got 2 groups"):
        cb.inference.hosmer_lemeshow(*draw(), bins=cb.bins.EqualSize(2), ddof=2)


def test_distributions_of_brownian_motion():
    """Against the other series for the same chances (Poisson's summation), which converges where this one does not."""
    for x in (0.4, 0.6, 1.0, 1.5, 2.0):
        odd = 2 * np.arange(200) + 1.0
        inside = np.sum((8 / x**2 + 8 / (odd * np.pi) ** 2) * np.exp(-((odd * np.pi / x) ** 2) / 2))
        assert brownian_range_tail(x) == pytest.approx(1 - inside, abs=1e-12)
        m = np.arange(200)
        inside = 4 / np.pi * np.sum((-1.0) ** m / (2 * m + 1) * np.exp(-(((2 * m + 1) * np.pi / x) ** 2) / 8))
        assert brownian_maximum_tail(x) == pytest.approx(1 - inside, abs=1e-12)
    assert brownian_range_tail(0.0) == brownian_maximum_tail(0.0) == 1


@pytest.mark.parametrize("kind", ["r", "mad"])
def test_ecce_test_by_hand(kind):
    y, p = draw()
    found = cb.inference.ecce_test(y, p, kind=kind)
    assert found.statistic == pytest.approx(getattr(cb.metrics.ecce(y, p), kind) * 1000 / np.sqrt(np.sum(p * (1 - p))))
    if kind == "r":
        assert found.pvalue == pytest.approx(cb.inference.ecce_test(1 - y, 1 - p).pvalue)
    with pytest.raises(cb.InputError, match="kind must be"):
        cb.inference.ecce_test(y, p, kind="kuiper")


@pytest.mark.parametrize("test", TESTS)
def test_calibrated_models_pass_and_miscalibrated_ones_do_not(test):
    y, p = draw(4000, seed=2)
    assert test(y, p).pvalue > 0.01
    extreme = np.clip(p + 0.25 * np.sin(np.pi * (p - 0.5)), 0.001, 0.999)
    assert test(y, np.clip(extreme + 0.05, 0, 1)).pvalue < 1e-4


@pytest.mark.parametrize("test", TESTS)
def test_few_events_bring_a_p_value_by_resampling(test):
    rng = np.random.default_rng(1)
    p = rng.beta(1, 200, 300)
    found = test((rng.random(300) < p).astype(int), p)
    assert 0 < found.resampling_pvalue <= 1
    (note,) = [note for note in found.notes if note.code == "few_events"]
    assert f"{found.resampling_pvalue:.3g}" in note.text
    assert test(*draw(2000)).resampling_pvalue is None


def test_ecce_test_needs_counts():
    y, p = draw(20)
    table = cb.ScoreTable.from_arrays(y, p, sample_weight=np.linspace(0.5, 1, 20))
    with pytest.raises(cb.InputError, match=r"y_true must be a table of counts for ecce_test;.*consistency"):
        cb.inference.ecce_test(table)
    assert "sample_weight" not in inspect.signature(cb.inference.ecce_test).parameters
    assert cb.consistency(cb.ECE(), y, p, sample_weight=np.linspace(0.5, 1, 20), n_resamples=20).pvalue > 0


@pytest.mark.parametrize(
    "test", [cb.inference.spiegelhalter, cb.inference.hosmer_lemeshow, cb.inference.slope_intercept_test]
)
def test_importance_weights_keep_the_level(test):
    rejected = 0
    for seed in range(100):
        y, p = draw(400, seed=seed)
        weights = np.random.default_rng(seed).exponential(size=400)
        found = test(y, p, sample_weight=weights)
        assert test(y, p, sample_weight=1000 * weights).pvalue == pytest.approx(found.pvalue, rel=1e-6, abs=1e-12)
        rejected += found.pvalue <= 0.05
    assert rejected <= 11
    y, p = draw(2000)
    overconfident = 0.5 + np.sign(p - 0.5) * np.sqrt(np.abs(p - 0.5) / 2)
    assert test(y, overconfident, sample_weight=np.linspace(1, 2, 2000)).pvalue < 1e-6


def test_slope_and_intercept_where_they_do_not_exist():
    """The likelihood has a least upper bound there: 0, or that of the one score with both outcomes."""
    p = np.array([0.2, 0.4, 0.6, 0.8])
    none = cb.inference.slope_intercept_test([0, 0, 0, 0], p, n_resamples=9)
    assert none.statistic == pytest.approx(-2 * np.log(1 - p).sum())
    separated = cb.inference.slope_intercept_test([0, 0, 1, 1], p, n_resamples=9)
    assert separated.statistic == pytest.approx(-2 * np.log([0.8, 0.6, 0.6, 0.8]).sum())
    touching = cb.inference.slope_intercept_test([0, 0, 1, 1], [0.2, 0.5, 0.5, 0.8], n_resamples=9)
    assert touching.statistic == pytest.approx(-2 * np.log([0.8, 0.8]).sum())
    constant = cb.inference.slope_intercept_test([0, 0, 1, 0] * 10, [0.5] * 40)
    assert constant.df == 1
    assert constant.statistic == pytest.approx(2 * (10 * np.log(0.5) + 30 * np.log(1.5)))


def test_consistency_is_the_p_value_of_the_null():
    y, p = draw(300)
    test = cb.consistency(cb.TCE(), y, p, n_resamples=60, random_state=4)
    null = cb.null(cb.TCE(), y, p, n_resamples=60, random_state=4)
    assert tuple(test) == (null.value, null.pvalue)
    json.dumps(test.to_dict())


def test_a_slope_is_estimated_for_distant_scores():
    """Two scores: slope and intercept have a closed form. Newton's steps from slope 0 went astray here."""
    table = cb.ScoreTable.from_counts([1e-6, 0.999], [10**7, 1000], [9, 999])
    fit = cb.metrics.slope_intercept(table)
    x, y = logit([1e-6, 0.999]), logit([9e-7, 0.999])
    slope = (y[1] - y[0]) / (x[1] - x[0])
    assert (fit.slope, fit.intercept) == pytest.approx((slope, y[0] - slope * x[0]))


def test_bins_and_ddof_of_the_wrong_type_are_refused():
    y, p = [0, 1] * 10, np.linspace(0.1, 0.9, 20)
    for function in (cb.inference.hosmer_lemeshow, cb.metrics.murphy_decomposition):
        with pytest.raises(cb.InputError, match=r"bins must be an object such as cb.bins.EqualSize\(10\); got 10\."):
            function(y, p, bins=10)
    for ddof in ("2", float("nan"), -1):
        with pytest.raises(cb.InputError, match=r"ddof must be a whole number of at least 0; got"):
            cb.inference.hosmer_lemeshow(y, p, ddof=ddof)
