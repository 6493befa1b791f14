"""Scores and decompositions: golden values, other people's implementations, slow oracles, laws."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm
from strategies import columns, count, some_rows, tables

import calibrant as cb
from calibrant import ScoreTable
from calibrant.metrics import Partition, smooth_errors
from calibrant.metrics.bins import PAVA, EqualWidth

GOLDEN = Path(__file__).parents[1] / "golden"
BELLA = json.loads((GOLDEN / "expected.json").read_text())["cost_bella"]["bella"]
PEERS = json.loads((GOLDEN / "scores.json").read_text())["cases"]

both_classes = tables.filter(lambda table: 0 < table.positives < table.size)


def each_score(table):
    return Partition.from_labels(table, np.arange(len(table)))


# golden values of Bella et al.


@pytest.mark.parametrize("case", BELLA, ids=range(len(BELLA)))
def test_measures_of_bella_et_al(case):
    table = ScoreTable.from_arrays(case["y"], case["p"])
    close = {"rel": 0, "abs": 1e-12}
    assert cb.brier(table) == pytest.approx(case["brier_two_class_n_times_C"], **close)
    assert cb.metrics.calbin(table, window=case["s"]) == pytest.approx(case["calbin"], **close)
    assert cb.metrics.calloss(table) == pytest.approx(case["calloss"], **close)
    corp = cb.metrics.corp_decomposition(table)
    assert (corp.mcb, corp.unc) == pytest.approx((case["corp_mcb_brier"], case["corp_unc"]), **close)
    clipped = table.map(lambda p: np.clip(p, 1e-3, 1 - 1e-3))
    assert cb.log_loss(clipped) == pytest.approx(case["logloss_clipped_1e-3"], **close)
    blocks = PAVA()(table)
    fitted = blocks.rate[blocks.labels][np.searchsorted(table.score, case["p"])]
    assert fitted == pytest.approx(case["pav"], **close)
    for bins, wanted in ((EqualWidth(10), case["murphy_10bins"]), (each_score, case["murphy_by_value"])):
        parts = cb.metrics.murphy_decomposition(table, bins=bins)
        for term in ("reliability", "resolution", "uncertainty", "within_variance", "within_covariance", "brier"):
            assert getattr(parts, term) == pytest.approx(wanted[term], **close), term


# other people's implementations


@pytest.mark.parametrize("case", PEERS)
def test_agreement_with_other_implementations(case):
    with np.load(GOLDEN / f"{case}_public.npz") as rows:
        table = ScoreTable.from_arrays(rows["y"], rows["p"])
    wanted = PEERS[case]
    corp = cb.metrics.corp_decomposition(table)
    ours = {"brier": cb.brier(table), "auc": cb.metrics.auc(table), "mcb": corp.mcb, "dsc": corp.dsc, "unc": corp.unc}
    if "slope" in wanted:
        fit = cb.metrics.slope_intercept(table, eps=2.0**-53)  # statsmodels got the logits unclipped
        ours |= {"log_loss": cb.log_loss(table), "slope": fit.slope, "intercept": fit.intercept}
    for name, value in ours.items():
        assert value == pytest.approx(wanted[name], rel=1e-9, abs=1e-9), name


@pytest.mark.parametrize("case", PEERS)
def test_smooth_ece_is_near_relplots(case):
    """relplot rounds scores to a mesh of some thousand points and halves its bandwidth ten times: within 0.0015."""
    with np.load(GOLDEN / f"{case}_public.npz") as rows:
        table = ScoreTable.from_arrays(rows["y"], rows["p"])
    assert cb.metrics.smooth_ece(table) == pytest.approx(PEERS[case]["smooth_ece"], abs=1.5e-3)
    coefficients = smooth_errors._cosine_coefficients(table)
    for sigma in (0.01, 0.05, 0.2):
        at = smooth_errors.smooth_ece_at(coefficients, sigma)
        assert at == pytest.approx(PEERS[case][f"smooth_ece_{sigma}"], abs=1.5e-3)


# slow oracles


def smooth_ece_by_quadrature(y, p, sigma):
    """The definition, with the reflected kernel as a sum of images."""

    def integrand(t):
        kernel = sum(norm.pdf(t, 2 * m + sign * p, sigma) for m in range(-3, 4) for sign in (1, -1))
        return abs(np.mean((y - p) * kernel))

    return quad(integrand, 0, 1, limit=500, points=np.linspace(0.02, 0.98, 49))[0]


@pytest.mark.parametrize("sigma", [0.03, 0.2, 0.7])
def test_smooth_ece_at_a_bandwidth_is_its_integral(rng, sigma):
    p = np.r_[rng.random(40), 0.0, 1.0, 0.5, 0.5]
    y = (rng.random(p.size) < p**2).astype(float)
    ours = smooth_errors.smooth_ece_at(smooth_errors._cosine_coefficients(ScoreTable.from_arrays(y, p)), sigma)
    assert ours == pytest.approx(smooth_ece_by_quadrature(y, p, sigma), abs=1e-6)


def test_smooth_ece_is_the_fixed_point_of_its_bandwidth(rng):
    p = rng.random(500)
    table = ScoreTable.from_arrays(rng.random(500) < p**2, p)
    value = cb.metrics.smooth_ece(table)
    assert smooth_errors.smooth_ece_at(smooth_errors._cosine_coefficients(table), value) == pytest.approx(
        value, abs=1e-9
    )


@given(some_rows, st.data())
def test_calbin_equals_its_windows_one_by_one(pairs, data):
    y, p = columns(pairs)
    window = data.draw(st.integers(1, len(p)))
    order = np.argsort(p, kind="stable")
    p, y = p[order], y[order]
    rate = np.array([y[p == q].mean() for q in p])
    wanted = []
    for b in range(len(p) - window + 1):
        f = rate[b : b + window].mean()
        wanted.append(np.mean(np.abs(p[b : b + window] - f)))
    assert cb.metrics.CalBin(window=window).value(count(pairs)) == pytest.approx(np.mean(wanted), abs=1e-12)


@given(st.lists(st.booleans(), min_size=1, max_size=40), st.integers(0, 2**32))
def test_ecce_equals_its_published_definition(y, seed):
    """Arrieta-Ibarra et al., equations for C_k, MAD and R, row by row on scores without ties."""
    p = np.sort(np.random.default_rng(seed).random(len(y)))
    path, total = [0.0], 0.0
    for outcome, score in zip(y, p, strict=True):
        total += (outcome - score) / len(y)
        path.append(total)
    result = cb.metrics.ecce(ScoreTable.from_arrays(y, p))
    assert result.mad == pytest.approx(max(abs(c) for c in path), abs=1e-14)
    assert result.r == pytest.approx(max(path) - min(path), abs=1e-14)


@given(both_classes)
def test_auc_counts_pairs(table):
    events = np.repeat(table.score, table.k)
    others = np.repeat(table.score, table.n - table.k)
    wins = (events[:, None] > others).sum() + (events[:, None] == others).sum() / 2
    assert cb.metrics.METRICS["auc"]()(table).value == pytest.approx(wins / events.size / others.size, abs=1e-14)


@given(tables)
def test_isotonic_errors_are_percentiles_over_rows(table):
    blocks = PAVA()(table)
    distance = np.repeat(np.abs(table.score - blocks.rate[blocks.labels]), table.n)
    errors = cb.metrics.isotonic_errors(table)
    assert errors.ici == pytest.approx(distance.mean(), abs=1e-14)
    assert errors.e50 == pytest.approx(np.quantile(distance, 0.5, method="inverted_cdf"), abs=1e-14)
    assert errors.e90 == pytest.approx(np.quantile(distance, 0.9, method="inverted_cdf"), abs=1e-14)
    assert errors.emax == pytest.approx(distance.max(), abs=1e-14)
    assert errors.ici == pytest.approx(cb.metrics.ICI()(table).value, abs=1e-14)
    assert errors.emax == pytest.approx(cb.metrics.Emax()(table).value, abs=1e-14)


# laws


@given(tables, st.sampled_from([EqualWidth(10), EqualWidth(3), cb.bins.EqualSize(4), PAVA(), cb.bins.PAVABC()]))
def test_murphys_five_terms_add_up_to_brier(table, bins):
    parts = cb.metrics.murphy_decomposition(table, bins=bins)
    assert parts.brier == pytest.approx(cb.metrics.Brier().value(table), abs=1e-14)
    assert min(parts.reliability, parts.resolution, parts.uncertainty, parts.within_variance) >= 0


@given(tables)
def test_corp_adds_up_to_brier_and_its_components_are_nonnegative(table):
    parts = cb.metrics.corp_decomposition(table)
    assert parts.mcb - parts.dsc + parts.unc == pytest.approx(cb.metrics.Brier().value(table), abs=1e-14)
    assert min(parts.mcb, parts.dsc, parts.unc) >= -1e-15


@given(tables)
def test_calloss_is_reliability_with_a_bin_for_every_score(table):
    parts = cb.metrics.murphy_decomposition(table, bins=each_score)
    assert cb.metrics.CalLoss().value(table) == pytest.approx(parts.reliability, abs=1e-14)


@given(both_classes)
def test_renaming_the_event_changes_no_score_but_the_sign_of_the_bias(table):
    table = table.round(2**-10)  # so that 1 - p is exact
    mirrored = ScoreTable.from_counts(1 - table.score, table.n, table.n - table.k)
    for name in (
        "brier",
        "stratified_brier",
        "auc",
        "calloss",
        "mcb",
        "smooth_ece",
        "ecce_r",
        "calbin",
        "ici",
        "emax",
    ):
        metric = cb.METRICS[name]()
        assert metric(table).value == pytest.approx(metric(mirrored).value, abs=1e-9), name
    assert cb.metrics.Bias()(table).value == pytest.approx(-cb.metrics.Bias()(mirrored).value, abs=1e-14)


@given(tables)
def test_auc_and_the_ranking_measures_ignore_calibration(table):
    if not 0 < table.positives < table.size:
        return
    squeezed = table.map(lambda p: 0.25 + p / 2)
    if len(squeezed) == len(table):
        assert cb.metrics.AUC().value(squeezed) == cb.metrics.AUC().value(table)


def test_log_loss_is_infinite_for_an_event_with_score_0():
    assert cb.log_loss([1, 0], [0.0, 0.5]) == np.inf
    assert cb.log_loss([0, 1, 0], [0.0, 1.0, 0.5]) == pytest.approx(np.log(2) / 3)
    reading = cb.METRICS["log_loss"]()(ScoreTable.from_arrays([1, 0], [0.0, 0.5]))
    document = json.loads(json.dumps(reading.to_dict(), allow_nan=False))
    assert (document["value"], document["value_reason"]) == (None, "the value is inf")


def test_observed_over_expected_at_its_borders():
    ratio = cb.metrics.OERatio().value
    assert ratio(ScoreTable.from_counts([0.0], [3], [2])) == np.inf
    with pytest.raises(cb.InputError, match="0 / 0"):
        ratio(ScoreTable.from_counts([0.0], [3], [0]))


def test_debiasing_removes_the_expectation_of_noise(rng):
    """A perfect model: the plain squared error is positive in the mean, the debiased one is near 0."""
    plain, debiased = [], []
    for _ in range(300):
        p = rng.random(200)
        table = ScoreTable.from_arrays(rng.random(200) < p, p)
        plain.append(cb.metrics.RMSCE(bins=cb.bins.EqualSize(10))(table).value ** 2)
        debiased.append(cb.metrics.DebiasedSCE()(table).value)
    assert np.mean(plain) > 0.006
    assert abs(np.mean(debiased)) < 0.001


# slopes


def test_slope_and_intercept_undo_a_known_distortion(rng):
    truth = rng.random(200_000)
    y = rng.random(truth.size) < truth
    distorted = 1 / (1 + np.exp(-(np.log(truth / (1 - truth)) - 0.3) / 0.5))
    fit = cb.metrics.slope_intercept(y, distorted)
    assert (fit.slope, fit.intercept) == pytest.approx((0.5, 0.3), abs=0.02)


def test_weighted_slopes_equal_those_of_repeated_rows(rng):
    p, w = rng.random(300), rng.integers(1, 4, 300)
    y = rng.random(300) < p
    counted = cb.metrics.slope_intercept(y, p, frequency=w)
    repeated = cb.metrics.slope_intercept(np.repeat(y, w), np.repeat(p, w))
    assert (counted.slope, counted.intercept) == (repeated.slope, repeated.intercept)
    for weight in (w, w / 7):
        weighted = cb.metrics.slope_intercept(y, p, sample_weight=weight)
        assert (weighted.slope, weighted.intercept) == pytest.approx((repeated.slope, repeated.intercept), rel=1e-9)


@pytest.mark.parametrize(
    ("y", "p", "why"),
    [
        ([0, 1, 0, 1], [0.5] * 4, "all scores are equal"),
        ([0, 0, 1, 1], [0.1, 0.2, 0.3, 0.4], "separates"),
        ([0, 0, 1, 1], [0.1, 0.3, 0.3, 0.4], "separates"),
        ([1, 1, 0, 0], [0.1, 0.2, 0.3, 0.4], "separates"),
        ([1, 0, 1], [1e-10, 1e-9, 0.5], "separates"),  # once both are kept off the border
    ],
)
def test_a_slope_that_does_not_exist_is_an_error(y, p, why):
    with pytest.raises(cb.InputError, match=why):
        cb.metrics.slope_intercept(y, p)


@pytest.mark.parametrize("weight", [0.01, 10.0])
def test_sums_of_weights_are_not_reported_as_rows(weight):
    y, p = [0, 0, 1, 0, 1, 1], [0, 0, 0, 0.4, 0.6, 1]
    (note,) = cb.metrics.slope_intercept(y, p, sample_weight=np.full(6, weight)).notes
    assert note.text.startswith("Distinct scores that were clipped to ")
    assert note.count == 2


def test_scores_of_0_and_1_are_clipped_and_counted():
    fit = cb.metrics.slope_intercept([0, 1, 0, 1, 1, 0], [0, 1, 1, 0.4, 0.6, 0.7])
    assert fit.n_clipped == 3
    assert [(note.code, note.count) for note in fit.notes] == [("logit_clipped", 3)]
    assert np.isfinite([fit.slope, fit.intercept]).all()


def test_scores_with_equal_logits_are_one_point():
    p = np.array([0.001, np.nextafter(0.001, 1), 0.5, 0.7])
    table = ScoreTable.from_counts(p, [2, 2, 2, 2], [1, 0, 2, 1])
    fit = cb.metrics.slope_intercept(table)
    joined = cb.metrics.slope_intercept(ScoreTable.from_counts([0.001, 0.5, 0.7], [4, 2, 2], [1, 2, 1]))
    assert (fit.slope, fit.intercept) == pytest.approx((joined.slope, joined.intercept), rel=1e-9)


@pytest.mark.parametrize("tiny", [1.0, 1e-3, 1e-8, 1e-12])
def test_a_fit_solves_the_score_equations(tiny):
    y, p, w = np.array([1, 0, 1, 0]), np.array([0.1, 0.5, 0.7, 0.9]), np.array([tiny, 1.5, tiny, 1.5])
    fit = cb.metrics.slope_intercept(y, p, sample_weight=w)
    x = np.log(p / (1 - p))
    residual = w * (y - 1 / (1 + np.exp(-(fit.intercept + fit.slope * x))))
    assert abs(residual.sum()) < 1e-9 * tiny
    assert abs((residual * x).sum()) < 1e-9 * tiny


@pytest.mark.parametrize("eps", [0, -1, 0.5, 1e-300, np.nan])
def test_eps_keeps_scores_off_the_border(eps):
    with pytest.raises(cb.InputError, match="eps must be a float in"):
        cb.metrics.slope_intercept([1, 0, 1, 0], [0.1, 0.5, 0.7, 0.9], eps=eps)


# weights


@pytest.mark.parametrize(
    "name", sorted(set(cb.metrics.metric_names("binary")) - {"calbin", "tce", "debiased_sce", "log_odds_error"})
)
def test_importance_weights_agree_with_counts_where_both_apply(rng, name):
    p, w = rng.integers(0, 20, 400) / 20, rng.integers(1, 5, 400)
    y = rng.random(400) < p
    counted = cb.METRICS[name]()(ScoreTable.from_arrays(y, p, frequency=w)).value
    weighted = cb.METRICS[name]()(ScoreTable.from_arrays(y, p, sample_weight=w)).value
    assert weighted == pytest.approx(counted, abs=1e-10)


def test_debiasing_is_exact_in_the_mean_for_weighted_rows():
    """Over all outcomes of two rows with weights .9 and .1 and a true rate of 1/2, the debiased error of 1/2 is 0."""
    values = [
        cb.metrics.DebiasedSCE(bins=EqualWidth(1))(
            ScoreTable.from_arrays(y, [0.5, 0.5], sample_weight=[0.9, 0.1])
        ).value
        for y in ([0, 0], [0, 1], [1, 0], [1, 1])
    ]
    assert np.mean(values) == pytest.approx(0, abs=1e-15)


def test_weights_of_very_different_size_do_not_cancel():
    assert cb.metrics.stratified_brier([1, 0], [0.9, 0.2], sample_weight=[1e10 + 0.5, 1e-6]) == pytest.approx(0.025)
    assert cb.metrics.auc([1, 0, 0], [0.9, 0.2, 0.95], sample_weight=[1e10 + 0.5, 1.1e-6, 1.1e-6]) == pytest.approx(0.5)


def test_smooth_ece_of_reversed_forecasts_is_one():
    table = ScoreTable.from_counts(
        [7.6e-234, 5.3e-222, 1.1e-176, 8.2e-76, 1.2e-28], *[[565, 1270, 139, 1158, 1385]] * 2
    )
    assert cb.METRICS["smooth_ece"]()(table).value == pytest.approx(1)


def test_scores_can_be_pickled_hashed_and_compared():
    for name in cb.METRICS:
        metric = cb.METRICS[name]()
        assert pickle.loads(pickle.dumps(metric)) == metric
        assert hash(metric) == hash(cb.METRICS[name]())
    assert cb.metrics.CalBin(window=3) == cb.metrics.from_spec(cb.metrics.CalBin(window=3).spec) != cb.metrics.CalBin()
    with pytest.raises(cb.InputError, match="spec must hold settings of brier; got {'unit': '%'}"):
        cb.metrics.from_spec({"name": "brier", "unit": "%"})


def test_calbin_refuses_windows_larger_than_memory():
    with pytest.raises(cb.InputError, match="at most 1,000,000,000"):
        cb.metrics.calbin(ScoreTable.from_counts([0.1, 0.9], [10**13] * 2, [10**12] * 2))
    for window in (-3, True, 1.5):
        with pytest.raises(cb.InputError, match="window"):
            cb.metrics.CalBin(window=window)


def test_calbin_names_the_rows_it_needs():
    with pytest.raises(cb.InputError, match="sample_weight must be omitted for calbin"):
        cb.metrics.calbin([0, 1], [0.1, 0.9], sample_weight=[0.5, 0.5])
    for window, most in ((0, "of at least 1"), (3, "from 1 to 2"), (1.5, "of at least 1")):
        with pytest.raises(cb.InputError, match=f"window must be a whole number {most}"):
            cb.metrics.calbin([0, 1], [0.1, 0.9], window=window)


@pytest.mark.parametrize("size", [3, 40, 1000, 16_000])
@pytest.mark.parametrize("power", [1.0, 2.0])
def test_both_grids_of_smooth_ece_give_the_same_value(rng, monkeypatch, size, power):
    p = rng.beta(0.7, 2, size)
    table = ScoreTable.from_arrays(rng.random(size) < p**power, p)
    value = smooth_errors.SmoothECE().value(table)
    monkeypatch.setattr(smooth_errors, "_FEW_SCORES", 0)
    assert smooth_errors.SmoothECE().value(table) == pytest.approx(value, rel=1e-6)


def test_scores_at_both_ends_are_part_of_smooth_ece():
    table = ScoreTable.from_counts([0.0, 1.0], [10, 10], [4, 3])
    exact = smooth_ece_by_quadrature(
        np.r_[np.ones(4), np.zeros(6), np.ones(3), np.zeros(7)], np.repeat([0.0, 1.0], 10), 0.3
    )
    at = smooth_errors.smooth_ece_at(smooth_errors._cosine_coefficients(table), 0.3)
    assert at == pytest.approx(exact, abs=1e-6)
