"""Score maps: laws for every binary entry of CALIBRATORS, golden values, slow oracles, and what is degenerate."""

import json
import pickle
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar
from strategies import columns, some_rows

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.isotonic import IsotonicRegression

import calibrant as cb
from calibrant.calibrators import maps

HERE = Path(__file__).parents[1]
GOLDEN = json.loads((HERE / "golden" / "calibrators.json").read_text())
PREDICTIONS = HERE.parent / "research" / "reproduction" / "predictions"


def made(name):
    return cb.calibrators.PriorShift(prevalence=0.1) if name == "prior_shift" else cb.calibrators.CALIBRATORS[name]()


KINDS = {name: made(name) for name, kind in cb.calibrators.CALIBRATORS.items() if kind.kind == "binary"} | {
    "cats": cb.calibrators.CATS(cb.costs.LinearCost(1, 5), grid="paper"),  # the long searches are in test_cost_aware.py
    "caps": cb.calibrators.CAPS(cb.costs.LinearCost(1, 5), grid="paper"),
    "isotonic, plain": cb.Isotonic(extremes=True),
    "isotonic, strict": cb.Isotonic(strict=True),
    "isotonic, plain and strict": cb.Isotonic(strict=True, extremes=True),
    "platt on scores": cb.Platt(on="score"),
    "platt without smoothing": cb.Platt(smoothing=False),
    "logit spline, not monotone": cb.LogitSpline(monotone=False),
    "logit spline of log-odds": cb.LogitSpline(from_logits=True),
    "beta, am": cb.Beta(parameters="am"),
    "beta, ab": cb.Beta(parameters="ab"),
    "sampling rate": cb.calibrators.PriorShift(sampling_rate=0.3),
}
every_kind = pytest.mark.parametrize("name", KINDS)


def fitted(name, *rows, **more):
    """The calibrator fitted on the rows; None where it says, clearly, that these cannot be fitted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cb.CalibrantWarning)
        try:
            return clone(KINDS[name]).fit(*rows, **more)
        except cb.InputError as error:
            if "class" in str(error) or "slope" in str(error):
                return None
            raise


def real(case):
    with np.load(PREDICTIONS / f"{case}.npz") as rows:
        return rows["y"].astype(int), rows["p"].astype(float)


def sample(rng, size=3000):
    p = rng.random(size)
    return (rng.random(size) < p**1.5).astype(int), p


# Laws


@every_kind
@given(pairs=some_rows, new=st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_outputs_lie_in_0_to_1_and_rise_where_promised(name, pairs, new):
    y, p = columns(pairs)
    cal = fitted(name, p, y)
    assume(cal is not None)
    scores = np.sort(np.concatenate([p, new]))
    q = cal(scores)
    assert q.shape == scores.shape
    assert ((q >= 0) & (q <= 1)).all()
    if cal.is_increasing:
        assert (np.diff(q) >= 0).all()


@every_kind
@given(pairs=some_rows, data=st.data())
def test_the_order_of_rows_has_no_effect_and_is_kept(name, pairs, data):
    y, p = columns(pairs)
    order = np.array(data.draw(st.permutations(range(len(p)))))
    cal, other = fitted(name, p, y), fitted(name, p[order], y[order])
    assume(cal is not None)
    assert maps.to_dict(cal.map_) == maps.to_dict(other.map_)
    assert np.array_equal(cal(p)[order], cal(p[order]))


@every_kind
@given(pairs=some_rows, data=st.data())
def test_weights_of_2_equal_doubled_rows(name, pairs, data):
    y, p = columns(pairs)
    weight = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(p), max_size=len(p))))
    assume(weight.any())
    weighted = fitted(name, p, y, sample_weight=weight)
    doubled = fitted(name, np.repeat(p, weight), np.repeat(y, weight))
    assert (weighted is None) == (doubled is None)
    if weighted is not None:
        assert maps.to_dict(weighted.map_) == maps.to_dict(doubled.map_)


@every_kind
@given(pairs=some_rows)
def test_a_table_fits_as_its_rows_do(name, pairs):
    y, p = columns(pairs)
    of_rows, of_table = fitted(name, p, y), fitted(name, cb.ScoreTable.from_arrays(y, p))
    assert (of_rows is None) == (of_table is None)
    if of_rows is not None:
        assert maps.to_dict(of_rows.map_) == maps.to_dict(of_table.map_)


@given(some_rows)
def test_plain_pav_never_raises_the_brier_score_and_is_idempotent(pairs):
    y, p = columns(pairs)
    q = cb.Isotonic(extremes=True).fit(p, y)(p)
    assert np.mean((q - y) ** 2) <= np.mean((p - y) ** 2) + 1e-15
    again = cb.Isotonic(extremes=True).fit(q, y)(q)
    assert np.allclose(again, q, rtol=0, atol=1e-15)


@given(some_rows)
def test_plain_pav_is_the_min_max_formula(pairs):
    """Of all rows below and above, the greatest of the least means: isotonic regression by its definition."""
    y, p = columns(pairs)
    value = np.unique(p)
    expected = [
        max(min(y[(p >= low) & (p <= high)].mean() for high in value if high >= v) for low in value if low <= v)
        for v in value
    ]
    assert np.allclose(cb.Isotonic(extremes=True).fit(p, y)(value), expected, rtol=0, atol=1e-14)


@given(some_rows)
def test_isotonic_without_extremes_never_returns_0_or_1(pairs):
    y, p = columns(pairs)
    for strict in (False, True):
        q = cb.Isotonic(strict=strict).fit(p, y)(np.linspace(0, 1, 101))
        assert q.min() > 0
        assert q.max() < 1


@given(some_rows)
def test_strict_isotonic_keeps_the_ranking(pairs):
    y, p = columns(pairs)
    # Scores that doubles can hardly tell apart get probabilities that they cannot.
    value = np.unique(np.round(p, 6))
    q = cb.Isotonic(strict=True).fit(np.round(p, 6), y)(value)
    assert (np.diff(q) > 0).all()


# Against others


@pytest.mark.parametrize("case", GOLDEN["cases"])
def test_same_as_scikit_learn_statsmodels_betacal_and_netcal(case):
    y, p = real(case)
    frozen, eps = GOLDEN["cases"][case], GOLDEN["eps"]
    rows = np.array(frozen["rows"])
    rounded = np.round(p, 9)

    plain = cb.Isotonic(extremes=True)
    assert plain.fit(rounded, y)(rounded[rows]) == pytest.approx(frozen["sklearn_isotonic"], abs=1e-12)
    clipped = np.clip(rounded, eps, 1 - eps)
    assert plain.fit(clipped, y)(clipped[rows]) == pytest.approx(frozen["netcal_isotonic"], abs=1e-12)

    for on in ("score", "logit"):
        platt, of_sklearn = cb.Platt(on=on).fit(p, y), frozen[f"sklearn_sigmoid_{on}"]
        assert (-platt.slope_, -platt.intercept_) == pytest.approx((of_sklearn["a"], of_sklearn["b"]), abs=1e-6)
        platt, glm = cb.Platt(on=on, smoothing=False).fit(p, y), frozen[f"glm_{on}"]
        assert (platt.slope_, platt.intercept_) == pytest.approx((glm["slope"], glm["intercept"]), rel=1e-12)

    temperature = cb.calibrators.Temperature().fit(p, y)
    assert 1 / temperature.temperature_ == pytest.approx(frozen["sklearn_temperature"]["slope"], abs=1e-6)
    assert temperature(p[rows]) == pytest.approx(frozen["netcal_temperature"], abs=1e-6)


@pytest.mark.parametrize("case", GOLDEN["cases"])
def test_beta_is_the_maximum_that_betacal_and_netcal_come_near(case):
    y, p = real(case)
    frozen, table = GOLDEN["cases"][case], cb.ScoreTable.from_arrays(y, p)
    beta = cb.Beta().fit(table)
    exact = frozen["exact_beta"]
    if min(exact["a"], exact["b"]) >= 0:  # else the bounds decide, which the exact regression does not know
        assert (beta.a_, beta.b_, beta.c_) == pytest.approx((exact["a"], exact["b"], exact["c"]), rel=1e-10)
    for parameters in ("abm", "am", "ab"):
        ours, theirs = cb.Beta(parameters=parameters).fit(table), frozen[f"betacal_{parameters}"]
        # betacal stops early (scikit-learn's default tolerance): never better than ours, and near.
        rows = np.array(frozen["rows"])
        assert ours(p[rows]) == pytest.approx(frozen[f"betacal_{parameters}_predictions"], abs=0.02)
        assert (
            _log_loss(table, ours.map_) <= _log_loss(table, maps.BetaMap(theirs["a"], theirs["b"], theirs["c"])) + 1e-12
        )
    assert beta(p[rows]) == pytest.approx(frozen["netcal_beta"], abs=1e-3)
    assert cb.Platt(smoothing=False).fit(table)(p[rows]) == pytest.approx(frozen["netcal_logistic"], abs=1e-4)


def _log_loss(table, f):
    return cb.log_loss(table.map(f))


def test_scikit_learn_merges_scores_that_differ_by_1e_minus_15():
    """The one difference from plain PAV on real scores: a network's, of which some are 1e-20."""
    y, p = real("satimage-MLP")
    frozen = GOLDEN["cases"]["satimage-MLP"]
    ours = cb.Isotonic(extremes=True).fit(p, y)(p[np.array(frozen["rows"])])
    assert np.abs(ours - frozen["sklearn_isotonic_of_raw_scores"]).max() > 1e-3
    theirs = IsotonicRegression().fit(p, y).predict(p)
    assert cb.brier(y, cb.Isotonic(extremes=True).fit(p, y)(p)) <= cb.brier(y, theirs)


def test_between_blocks_scikit_learn_interpolates_and_isotonic_steps_halfway():
    y, p = [0, 1], [0.2, 0.6]
    plain = cb.Isotonic(extremes=True).fit(p, y)
    assert plain([0.39, 0.4, 0.41]).tolist() == [0, 1, 1]
    assert IsotonicRegression().fit(p, y).predict([0.4]) == pytest.approx([0.5])


@given(some_rows, st.lists(st.floats(0, 1), max_size=10))
def test_venn_abers_is_isotonic_regression_with_the_new_row(pairs, new):
    """By its definition: the new score joins the rows, once with each outcome; p1 / (1 - p0 + p1)."""
    y, p = columns(pairs)
    scores = np.concatenate([p, new])
    cal = cb.calibrators.VennAbers().fit(p, y)
    for score, found in zip(scores, cal(scores), strict=True):
        low, high = (
            cb.Isotonic(extremes=True).fit(np.append(p, score), np.append(y, outcome))([score])[0] for outcome in (0, 1)
        )
        assert low <= high
        assert found == pytest.approx(high / (1 - low + high), abs=1e-15)
        assert [each[0] for each in cal.pair([score])] == pytest.approx([low, high], abs=1e-15)


def test_the_pair_of_venn_abers_brackets_the_merged_probability(rng):
    y, p = sample(rng, 500)
    low, high = (cal := cb.calibrators.VennAbers().fit(p, y)).pair(p)
    assert (low <= cal(p)).all()
    assert (cal(p) <= high).all()
    assert (low < high).all()


def test_the_pair_of_venn_abers_is_wide_where_events_are_few(rng):
    p = rng.random(1000)
    widths = []
    for events in (8, 400):
        y = np.isin(np.arange(1000), rng.choice(1000, events, replace=False)).astype(int)
        low, high = cb.calibrators.VennAbers().fit(p, y).pair(p)
        widths.append(np.mean(high - low) / y.mean())
    assert widths[0] > 5 * widths[1]


def test_a_loaded_venn_abers_has_no_probability_pair(rng, tmp_path):
    y, p = sample(rng, 100)
    cb.save(cb.calibrators.VennAbers().fit(p, y), tmp_path / "cal.json")
    loaded = cb.load(tmp_path / "cal.json")
    with pytest.raises(cb.InputError, match="pair needs a calibrator that was fitted here"):
        loaded.pair(p)


def test_venn_abers_between_neighbouring_doubles():
    p = 0.3 + np.arange(8) * 2.0**-54
    y = np.array([0, 0, 1, 0, 1, 1, 0, 1])
    q = cb.calibrators.VennAbers().fit(p, y)(p)
    for i, score in enumerate(p):
        low, high = (
            cb.Isotonic(extremes=True).fit(np.append(p, score), np.append(y, outcome))([score])[0] for outcome in (0, 1)
        )
        assert q[i] == pytest.approx(high / (1 - low + high), abs=1e-15)


# Each kind by itself


def test_binning_average_is_the_share_of_events_in_bins_of_equal_mass(rng):
    y, p = sample(rng, 1003)
    cal = cb.calibrators.BinningAverage(n_bins=7).fit(p, y)
    order = np.argsort(p)
    cuts = [b * 1003 // 7 for b in range(8)]
    for start, stop in pairwise(cuts):
        own = order[start:stop]
        assert cal(p[own]) == pytest.approx(np.full(own.size, y[own].mean()), abs=1e-15)


def test_the_example_of_bella_et_al_with_labels():
    """Twenty scores in five bins; the chapter averages the scores of a bin, the method its labels."""
    p = [0.95, 0.94, 0.91, 0.90, 0.87, 0.85, 0.80, 0.76, 0.70, 0.66, 0.62, 0.62]
    p += [0.51, 0.49, 0.48, 0.48, 0.45, 0.44, 0.44, 0.42]
    y = [1, 1, 1, 1, 1, 1, 0, 1, 1, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]
    assert cb.calibrators.BinningAverage(n_bins=5).fit(p, y)([0.68]) == pytest.approx(
        [0.5]
    )  # 0.70, 0.66, 0.62, 0.62: 1, 0, 1, 0


def test_first_and_last_block_get_half_a_row_of_each_kind(rng):
    y = np.array([0] * 10 + [0, 1] * 10 + [1] * 5)
    p = np.linspace(0.1, 0.9, y.size)
    values = cb.Isotonic().fit(p, y).map_.values
    plain = cb.Isotonic(extremes=True).fit(p, y).map_.values
    assert (plain[0], plain[-1]) == (0, 1)
    assert values[0] == pytest.approx(0.5 / 12)  # ten rows, and the first of the pairs
    assert values[-1] == pytest.approx(6.5 / 7)  # five rows, and the last of the pairs
    assert values[1:-1] == pytest.approx(plain[1:-1])


def test_a_block_that_smoothing_lifts_over_its_neighbour_joins_it():
    # One row without, then one event in ten: (0 + 1/2) / 2 would exceed 1/10.
    table = cb.ScoreTable.from_counts([0.1, 0.2, 0.9], [1, 10, 10], [0, 1, 9])
    values = cb.Isotonic().fit(table).map_.values
    assert values == pytest.approx([1.5 / 12, 9.5 / 11])


def test_centred_isotonic_goes_through_the_centres_of_blocks():
    table = cb.ScoreTable.from_counts([0.1, 0.3, 0.6, 0.9], [40, 60, 50, 50], [10, 10, 20, 40])
    cal = cb.Isotonic(strict=True, extremes=True).fit(table)
    centre = (0.1 * 40 + 0.3 * 60) / 100
    assert cal([centre, 0.6, 0.9]) == pytest.approx([0.2, 0.4, 0.8])
    assert cal([(centre + 0.6) / 2]) == pytest.approx([0.3])
    assert cal([0.0]) == pytest.approx([0.2 - np.sqrt(0.2 * 0.8 / 100)])


def test_platt_smooths_targets(rng):
    y, p = sample(rng, 200)
    up, down = (y.sum() + 1) / (y.sum() + 2), 1 / ((1 - y).sum() + 2)
    target = np.where(y == 1, up, down)
    x = np.log(p / (1 - p))

    def loss(ab):
        eta = ab[0] * x + ab[1]
        return np.sum(np.logaddexp(0, eta) - target * eta)

    best = minimize(loss, [1, 0], method="BFGS", options={"gtol": 1e-9})
    cal = cb.Platt().fit(p, y)
    assert [cal.slope_, cal.intercept_] == pytest.approx(best.x, abs=1e-6)


def test_temperature_minimises_the_log_loss(rng):
    y, p = sample(rng)
    x = np.log(p / (1 - p))
    best = minimize_scalar(lambda s: np.sum(np.logaddexp(0, s * x) - y * s * x), (0.5, 1.5), options={"xtol": 1e-12})
    assert cb.calibrators.Temperature().fit(p, y).temperature_ == pytest.approx(1 / best.x, rel=1e-6)


@given(st.integers(0, 2**32 - 1))
def test_no_other_coefficients_within_the_bounds_beat_beta(seed):
    rng = np.random.default_rng(seed)
    p = rng.beta(*rng.uniform(0.3, 3, 2), 60)
    y = (rng.random(60) < rng.choice([p, 1 - p, p**2, np.full(60, 0.5)])).astype(int)
    assume(0 < y.sum() < 60)
    table = cb.ScoreTable.from_arrays(y, p)
    with warnings.catch_warnings():
        warnings.simplefilter("error", cb.CalibrantWarning)
        try:
            cal = cb.Beta().fit(table)
        except cb.CalibrantWarning:  # separated
            return
    best = _log_loss(table, cal.map_)
    for _ in range(20):
        a, b, c = np.array([cal.a_, cal.b_, cal.c_]) + rng.normal(0, rng.choice([1e-3, 0.1, 1]), 3)
        assert best <= _log_loss(table, maps.BetaMap(max(a, 0), max(b, 0), c)) + 1e-12


def test_prior_shift_undoes_down_sampling(rng):
    p = rng.beta(1, 6, 400_000)
    y = (rng.random(p.size) < p).astype(int)
    kept = (y == 1) | (rng.random(p.size) < 0.1)
    # What a perfect model of the sampled rows says:
    sampled = p / (p + (1 - p) * 0.1)
    assert cb.calibrators.PriorShift(sampling_rate=0.1).fit(sampled[kept], y[kept])(sampled) == pytest.approx(
        p, abs=1e-12
    )
    by_prevalence = cb.calibrators.PriorShift(prevalence=y.mean()).fit(sampled[kept], y[kept])(sampled)
    assert by_prevalence == pytest.approx(p, abs=0.01)
    assert cb.calibrators.PriorShift(prevalence=0.1).fit([0.2, 0.9], [0, 1])([0.0, 1.0]).tolist() == [0, 1]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"prevalence": 0.1, "sampling_rate": 0.1},
        {"prevalence": 0},
        {"prevalence": 1.5},
        {"sampling_rate": 0},
        {"sampling_rate": 2},
        {"sampling_rate": 0.1, "trained_prevalence": 0.5},
    ],
)
def test_prior_shift_needs_a_prevalence_or_sampling_rate(settings):
    with pytest.raises(cb.InputError, match="prevalence|sampling_rate"):
        cb.calibrators.PriorShift(**settings).fit([0.2, 0.9], [0, 1])


def test_odds_keep_the_order_of_neighbouring_doubles():
    scores = 0.38329387670762155 + np.arange(1000) * 2.0**-54
    assert (np.diff(maps.Odds(34.5514)(scores)) >= 0).all()


def test_beta_of_a_saturated_model_is_not_constant():
    """One mistake among scores below eps: what eps makes equal is one score, which has both outcomes."""
    rng = np.random.default_rng(3)
    y = (rng.normal(0, 1, 2000) > 0).astype(int)
    z = np.where(y == 1, rng.uniform(1, 10, 2000), -rng.uniform(17, 30, 2000))
    p = 1 / (1 + np.exp(-z))
    y[np.argmin(z)] = 1
    with pytest.warns(cb.CalibrantWarning, match="separates"):
        cal = cb.Beta().fit(p, y)
    assert cb.log_loss(y, cal(p)) < 0.02
    size = 20_000
    p, y = (np.arange(size) + 0.5) / size, (np.arange(size) >= size // 2).astype(int)
    y[[size // 2 - 1, size // 2]] = 1, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cb.CalibrantWarning)
        cal = cb.Beta().fit(p, y)
    assert cb.log_loss(y, cal(p)) < 0.01


def test_beta_with_m_at_one_half_is_separated_only_there():
    p, y = [0.1, 0.2, 0.35, 0.4, 0.9], [0, 0, 1, 1, 1]
    cal = cb.Beta(parameters="ab").fit(p, y)  # no warning: two events lie below 1/2
    assert cal([0.5]) == pytest.approx([0.5])
    assert 5 * cb.log_loss(y, cal(p)) == pytest.approx(2.398, abs=0.001)


@pytest.mark.parametrize("scale", [1e-200, 1e-12, 1e150, 1e290])
def test_margins_of_any_size_fit(rng, scale):
    margin = rng.normal(0, 1, 300)
    y = (rng.random(300) < 1 / (1 + np.exp(-2 * margin))).astype(int)
    expected = cb.Platt(on="score").fit(margin, y)(margin)
    assert cb.Platt(on="score").fit(margin * scale, y)(margin * scale) == pytest.approx(expected, abs=1e-9)


def test_extreme_weights_give_a_result_or_a_clear_error():
    scores = [2.25e-191, 3.8e-165, 5.8e-223, 1.6e-209, 6.3e-277]
    for cal in (cb.Platt(on="score"), cb.Beta()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cb.CalibrantWarning)
            try:
                assert np.isfinite(cal.fit(scores, [1, 1, 0, 1, 1], [1e15, 1e-99, 1e15, 1e-99, 1e-99])(scores)).all()
            except cb.InputError as error:
                assert "weights" in str(error)  # noqa: PT017


def test_a_failed_fit_keeps_the_fitted_state():
    cal = cb.Platt(smoothing=False).fit([0.1, 0.6, 0.4, 0.9], ["no", "no", "yes", "yes"])
    before = cal([0.3])
    with pytest.raises(cb.InputError):
        cal.fit([0.1, 0.2, 0.3, 0.4], [0, 0, 1, 1])
    assert cal.classes_.tolist() == ["no", "yes"]
    assert np.array_equal(cal([0.3]), before)


def test_errors_name_the_argument():
    for X, y, words in (
        (np.ma.masked_greater([0.1, 0.9], 0.5), [0, 1], "X has 1 missing value"),
        ([], [], "X and y must hold at least one row"),
        ([0.1, 0.2, 0.3], [0, 1], "X has 3 rows, y has 2"),
    ):
        with pytest.raises(cb.InputError, match=words):
            cb.Platt().fit(X, y)


def test_mixed_labels_keep_their_types():
    cal = cb.Platt().fit([0.1, 0.6, 0.4, 0.9], [1, "a", 1, "a"])
    assert cal.predict([0.05, 0.95]).tolist() == [1, "a"]


# What is degenerate


@every_kind
@pytest.mark.parametrize(
    ("p", "y"),
    [
        ([0.3] * 6, [0, 1, 0, 0, 1, 0]),
        ([0.2, 0.7], [0, 1]),
        ([0.2, 0.7], [1, 0]),
        ([0.0, 1.0, 0.0, 1.0], [0, 1, 0, 1]),
        ([0.0, 1.0, 0.0, 1.0], [1, 0, 0, 1]),
        ([0.5], [1]),
        ([0.1, 0.5, 0.8], [0, 0, 0]),
        ([0.1, 0.5, 0.8], [1, 1, 1]),
        ([5e-324, 1e-300, 1 - 2**-53], [0, 1, 1]),
    ],
)
def test_degenerate_rows_work_or_raise_with_a_reason(name, p, y):
    cal = fitted(name, p, y)
    one_class, alone = len(set(y)) == 1, {"temperature", "beta", "beta, am", "beta, ab", "platt without smoothing"}
    unfit = {"platt without smoothing"} if p != [0.3] * 6 else set()  # nothing here has a finite slope but that
    if cal is None:
        assert name in (alone | {"prior_shift"} if one_class else unfit)
        return
    q = cal([0.0, *p, 1.0])
    assert np.isfinite(q).all()
    assert ((q >= 0) & (q <= 1)).all()


def test_one_class_is_refused_where_two_are_needed():
    for cal in (cb.calibrators.Temperature(), cb.Beta(), cb.Platt(smoothing=False)):
        with pytest.raises(cb.InputError, match="only one class"):
            cal.fit([0.1, 0.4], [0, 0])
    with pytest.warns(cb.CalibrantWarning, match="outcomes are equal"):
        assert cb.Platt().fit([0.1, 0.4], [0, 0])([0.2, 0.9]) == pytest.approx([0.25, 0.25])  # 1 / (2 + 2)


def test_separated_classes_are_noted():
    p, y = [0.1, 0.3, 0.6, 0.9], [0, 0, 1, 1]
    for cal in (cb.calibrators.Temperature(), cb.Beta()):
        with pytest.warns(cb.CalibrantWarning, match="separates"):
            cal.fit(p, y)
        assert "separated" in [note.code for note in cal.notes_]
    with pytest.raises(cb.InputError, match="separates"):
        cb.Platt(smoothing=False).fit(p, y)


def test_scores_with_reversed_ranking_are_noted(rng):
    y, p = sample(rng)
    with pytest.warns(cb.CalibrantWarning, match="negative"):
        assert cb.Platt().fit(1 - p, y).slope_ < 0
    with pytest.warns(cb.CalibrantWarning, match="infinite"):
        assert cb.calibrators.Temperature().fit(1 - p, y).temperature_ == np.inf
    beta = cb.Beta().fit(1 - p, y)
    assert (beta.a_, beta.b_) == (0, 0)
    assert beta([0.1, 0.9]) == pytest.approx([y.mean()] * 2)


def test_equal_scores_are_noted():
    with pytest.warns(cb.CalibrantWarning, match="equal"):
        cal = cb.Platt().fit([0.4] * 10, [0] * 7 + [1] * 3)
    target = (3 * 4 / 5 + 7 / 9) / 10  # Platt's targets: 4/5 of three events, 1/9 of seven others
    assert cal([0.1, 0.9]) == pytest.approx([target, target])


@pytest.mark.parametrize(
    "cal",
    [
        cb.Isotonic(),
        cb.Isotonic(strict=True),
        cb.calibrators.BinningAverage(),
        cb.calibrators.VennAbers(),
        cb.Platt(on="score"),
        cb.LogitSpline(from_logits=True),
    ],
)
def test_margins_are_accepted(rng, cal):
    margin = rng.normal(0, 3, 2000)
    y = (rng.random(2000) < 1 / (1 + np.exp(-margin))).astype(int)
    q = clone(cal).fit(margin, y)(margin)
    assert np.abs(q - 1 / (1 + np.exp(-margin))).mean() < 0.06
    doubled = clone(cal).fit(np.repeat(margin, 2), np.repeat(y, 2))(margin)
    assert np.array_equal(clone(cal).fit(margin, y, np.full(2000, 2))(margin), doubled)
    for bad in (np.inf, np.nan, 1e301):
        with pytest.raises(cb.InputError, match=r"finite|missing"):
            clone(cal).fit(np.append(margin, bad), np.append(y, 1))


@pytest.mark.parametrize(
    "cal",
    [cb.Platt(), cb.calibrators.Temperature(), cb.Beta(), cb.LogitSpline(), cb.calibrators.PriorShift(prevalence=0.1)],
)
def test_maps_of_probabilities_refuse_margins(cal):
    with pytest.raises(cb.InputError, match="logits"):
        cal.fit([-1.0, 0.2, 3.0], [0, 1, 1])


def test_scores_are_checked_when_mapped():
    cal = cb.Platt().fit([0.1, 0.6, 0.4, 0.9], [0, 1, 0, 1])
    with pytest.raises(cb.InputError, match="lie in"):
        cal([0.2, 1.5])
    with pytest.raises(cb.InputError, match="missing"):
        cal([0.2, None])
    with pytest.warns(cb.CalibrantWarning, match="clipped"):
        cal([0.2, 1 + 1e-9])
    with pytest.raises(cb.InputError, match=r"\[:, 1\]"):
        cal(np.full((3, 2), 0.5))


def test_labels_follow_scikit_learn():
    p = [0.1, 0.6, 0.4, 0.9]
    cal = cb.Platt().fit(p, ["no", "yes", "no", "yes"])
    assert cal.classes_.tolist() == ["no", "yes"]
    assert cal.predict([0.05, 0.95]).tolist() == ["no", "yes"]
    assert np.array_equal(cal(p), cb.Platt().fit(p, [0, 1, 0, 1])(p))
    assert cal.predict_proba(p).sum(axis=1) == pytest.approx(np.ones(4))
    for y, words in (([0, 1, 2, 1], "binary"), ([0.5, 1, 0, 1], "Unknown label type"), (["a"] * 4, "class")):
        with pytest.raises(cb.InputError, match=words):
            cb.Platt().fit(p, y)


def test_arguments_are_not_modified(rng):
    y, p = sample(rng, 100)
    weight = np.ones(100)
    for array in (y, p, weight):
        array.flags.writeable = False
    given = [array.copy() for array in (y, p, weight)]
    for name in KINDS:
        fitted(name, p, y, sample_weight=weight)(p)
    assert all(np.array_equal(left, right) for left, right in zip(given, (y, p, weight), strict=True))


@every_kind
def test_fitted_estimators_survive_pickle_and_unfitted_ones_raise(rng, name):
    y, p = sample(rng, 100)
    with pytest.raises(NotFittedError):
        clone(KINDS[name])(p)
    cal = fitted(name, p, y)
    assert np.array_equal(pickle.loads(pickle.dumps(cal))(p), cal(p))


@every_kind
def test_the_sum_of_weights_plays_the_number_of_rows(name, rng):
    """Whole weights equal repeated rows, and weights beside them hardly move the map."""
    y, p = sample(rng, 400)
    weight = 1 + np.arange(400) % 3
    weight[-1] += -weight.sum() % 10  # quantiles of rows are cut at whole numbers, those of weights are not
    repeated = fitted(name, np.repeat(p, weight), np.repeat(y, weight))
    table = cb.ScoreTable.from_arrays(y, p, sample_weight=weight)
    for weighted in (fitted(name, p, y, sample_weight=weight), fitted(name, table)):
        assert maps.to_dict(weighted.map_) == maps.to_dict(repeated.map_)
    beside = fitted(name, p, y, sample_weight=weight * (1 + 1e-9))
    assert beside(p) == pytest.approx(repeated(p), abs=1e-5)


def test_half_weights_count_as_half_the_rows(rng):
    y, p = sample(rng, 400)
    doubled = np.repeat(y, 2), np.repeat(p, 2)
    for name in ("isotonic", "platt", "venn_abers", "beta", "logit_spline"):
        halved = fitted(name, doubled[1], doubled[0], sample_weight=np.full(800, 0.5))
        assert halved(p) == pytest.approx(fitted(name, p, y)(p), abs=1e-9)


def test_frames_are_accepted():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"p": [0.1, 0.6, 0.4, 0.9], "y": [0, 1, 0, 1]})
    expected = cb.Platt().fit(frame["p"].to_numpy(), frame["y"].to_numpy())([0.3])
    assert cb.Platt().fit(frame["p"], frame["y"])([0.3]) == expected
    assert cb.Platt().fit(frame[["p"]], frame["y"])(frame[["p"]]).shape == (4,)
    with pytest.raises(cb.InputError, match="indexes"):
        cb.Platt().fit(frame["p"], frame["y"].iloc[::-1])


def test_adjacent_doubles_stay_apart():
    low = 0.3
    high = np.nextafter(low, 1)
    cal = cb.Isotonic(extremes=True).fit([low] * 5 + [high] * 5, [0] * 5 + [1] * 5)
    assert cal([low, high]).tolist() == [0, 1]


# Many scores: the short cut ends where the long way does


@pytest.mark.parametrize("name", ["platt", "temperature", "beta", "platt on scores", "beta, ab"])
def test_many_scores_end_in_the_same_maximum(rng, name):
    y, p = sample(rng, 60_000)
    cal = fitted(name, p, y)
    x = np.log(p / (1 - p))
    low, high = np.log(p), -np.log1p(-p)
    targets = y.astype(float)
    if name.startswith("platt"):
        targets = np.where(y == 1, (y.sum() + 1) / (y.sum() + 2), 1 / ((1 - y).sum() + 2))
    residual = targets - cal(p)
    directions = {
        "platt": [x, np.ones_like(x)],
        "temperature": [x],
        "beta": [low, high, np.ones_like(x)],
        "platt on scores": [p, np.ones_like(x)],
        "beta, ab": [low + np.log(2), high - np.log(2)],
    }[name]
    for direction in directions:
        assert abs(np.sum(direction * residual)) < 1e-6
