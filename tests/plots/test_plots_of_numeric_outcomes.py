"""Diagrams of predicted numbers and distributions, by the numbers that their artists hold."""

import hashlib
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
pytest.importorskip("pandas", reason="pandas is not installed")

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

import calibrant as cb
from calibrant import plots
from calibrant import regression as rg
from calibrant._support.errors import InputError
from calibrant.kinds.distribution.figures import coverage
from tests.visual.layout import unreadable

RNG = np.random.default_rng(3)
PREDICTED = RNG.gamma(4, 3, 800)
REAL = 0.8 * PREDICTED + 2 + (1 + PREDICTED / 10) * RNG.normal(size=800)
FORECAST = rg.Gaussian(PREDICTED, 1.5)
PARETO = rg.ParetoRecalibrator().fit(FORECAST.part(slice(0, 400)), REAL[:400])
COUNTS = RNG.poisson(PREDICTED / 10)
DRAW = {
    "rootogram": lambda **place: plots.RootogramDisplay.from_predictions(COUNTS, cb.Poisson(PREDICTED / 5), **place),
    "PIT of counts": lambda **place: plots.PITDisplay.from_predictions(COUNTS, cb.Poisson(PREDICTED / 5), **place),
    "coverage of counts": lambda **place: plots.CoverageDisplay.from_predictions(
        COUNTS, cb.NegativeBinomial(PREDICTED / 10, 2.0), **place
    ),
    "bias": lambda **place: plots.BiasDisplay.from_predictions(REAL, PREDICTED, **place),
    "PIT": lambda **place: plots.PITDisplay.from_predictions(REAL, FORECAST, **place),
    "coverage": lambda **place: plots.CoverageDisplay.from_predictions(
        REAL, {"before": FORECAST, "Pareto $": PARETO(FORECAST)}, **place
    ),
    "REC": lambda **place: plots.RECDisplay.from_predictions(
        REAL, {"model": PREDICTED, "biased $": PREDICTED + 2}, **place
    ),
    "Pareto": lambda **place: plots.ParetoDisplay.from_recalibrator(
        PARETO, FORECAST.part(slice(400, None)), REAL[400:], **place
    ),
}
each = pytest.mark.parametrize("draw", DRAW.values(), ids=DRAW)


def page(width=9.0, height=6.0):
    return Figure(figsize=(width, height), layout="constrained")


@each
def test_reprs_are_short(draw):
    drawn = draw(fig=page())
    assert repr(drawn).startswith(f"{type(drawn).__name__}(")
    assert len(repr(drawn)) <= 130


@each
def test_every_display_keeps_the_conventions(draw, tmp_path):
    before, figures = dict(mpl.rcParams), plt.get_fignums()
    drawn = draw(fig=page())
    text = plots.svg(drawn)
    assert dict(mpl.rcParams) == before
    assert plt.get_fignums() == figures
    ids = [element.get("id") for element in ET.fromstring(text).iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    assert len(text) < 200_000
    assert plots.svg(draw(fig=page())) == text
    digests = set()
    for name in ("a", "b"):
        plots.save(draw(fig=page()), tmp_path / f"{name}.png")
        digests.add(hashlib.sha256((tmp_path / f"{name}.png").read_bytes()).hexdigest())
    assert len(digests) == 1
    assert re.fullmatch(r"[A-Z][^\n]*[^.]\.", drawn.alt_text())
    assert not re.search(r"\bnan\b|None|inf\b", drawn.alt_text())
    for backend in ("pandas", "polars"):
        module = pytest.importorskip(backend, reason=f"{backend} is not installed")
        assert isinstance(drawn.data(backend), module.DataFrame)
    first = drawn.data()
    left, right = page(14).subfigures(1, 2)
    assert draw(ax=left.subplots()).data().equals(first)
    assert drawn.plot(fig=right).figure_ is right
    with pytest.raises(InputError, match="must not be given together"):
        drawn.plot(ax=left.axes[0], fig=right)


@each
def test_figures_are_legible_at_several_sizes_and_in_dark_styles(draw):
    looks = (((9, 6), "default", 10), ((8, 6.4), "dark_background", 10), ((12, 7), "ggplot", 12))
    for size, style, letters in looks:
        with mpl.rc_context(), plt.style.context([style, {"font.size": letters}]):
            assert unreadable(draw(fig=page(*size)).figure_) == []


def test_means_and_bands_are_those_of_the_bins():
    drawn = DRAW["bias"](fig=page())
    bins = rg.bias_by_bin(REAL, PREDICTED)
    x, y = drawn.means_.get_data()
    assert np.array_equal(x, bins.per_bin["mean_prediction"])
    assert np.array_equal(y, bins.per_bin["mean_outcome"])
    corners = drawn.band_.get_paths()[0].vertices
    assert corners[:, 1].min() == pytest.approx(bins.per_bin["outcome_low"].min())
    assert corners[:, 1].max() == pytest.approx(bins.per_bin["outcome_high"].max())
    assert len(drawn.points_[0].get_xdata()) == np.count_nonzero(bins.significant)
    fit = rg.slope_intercept(REAL, PREDICTED)
    ends, height = drawn.line_.get_data()
    assert np.diff(height)[0] / np.diff(ends)[0] == pytest.approx(fit.slope.value)
    assert len(drawn.rows_.get_xdata()) == 800


def test_an_estimator_is_asked_for_its_predictions():
    class Fitted:
        def predict(self, X):
            return X[:, 0]

    drawn = plots.BiasDisplay.from_estimator(Fitted(), PREDICTED[:, None], REAL, fig=page())
    assert drawn.data().equals(DRAW["bias"](fig=page()).data())
    with pytest.raises(InputError, match="has no predict"):
        plots.BiasDisplay.from_estimator(object(), PREDICTED[:, None], REAL)


def test_many_rows_are_shades_and_extremes_are_counted(rng):
    p = rng.normal(size=30_000)
    y = p + rng.normal(size=30_000)
    y[0] = 1e6
    drawn = plots.BiasDisplay.from_predictions(y, p, n_bins=5, fig=page())
    assert drawn.rows_.get_array().shape == (80, 80)
    assert drawn.ax_.get_ylim()[1] < 20
    shown = " ".join(text.get_text() for text in drawn.ax_.texts)
    beyond = np.count_nonzero((y < drawn.ax_.get_ylim()[0]) | (y > drawn.ax_.get_ylim()[1]))
    assert f"{beyond:,} outcomes outside the axes" in shown
    assert beyond >= 1


@pytest.mark.parametrize(
    ("y", "p"),
    [
        ([1.0], [2.0]),
        ([1.0, 2.0, 3.0], [1.0, 1.0, 1.0]),
        ([1.0] * 9, np.arange(9.0)),
        (1e8 + np.arange(50.0), 1e8 + np.arange(50.0) ** 1.1),
        (np.arange(50.0) * 1e-7, np.arange(50.0) * 1.1e-7),
        (np.arange(50.0) * 1e80, np.arange(50.0) * 1.1e80),
    ],
)
def test_extreme_values_are_plotted_legibly(y, p):
    drawn = plots.BiasDisplay.from_predictions(y, p, fig=page(6, 6))
    assert unreadable(drawn.figure_) == []
    assert "nan" not in drawn.ax_.get_title(loc="left") + drawn.alt_text()


def test_bars_hold_every_row_and_the_band_is_binomial():
    drawn = DRAW["PIT"](fig=page())
    data = drawn.data()
    u = rg.pit(REAL, FORECAST)
    assert data["rows"].tolist() == np.histogram(u, bins=10, range=(0, 1))[0].tolist()
    assert data["band_low"][0] == stats.binom.ppf(0.0025, 800, 0.1)
    assert data["band_high"][0] == stats.binom.ppf(0.9975, 800, 0.1)
    assert len(drawn.bars_) == 10
    assert "overconfident" in drawn.alt_text()
    again = plots.PITDisplay.from_pit(u, fig=page())
    assert again.data().equals(data)


@pytest.mark.parametrize(
    ("u", "words"),
    [
        (lambda rng: rng.random(500), "no significant deviation"),
        (lambda rng: rng.beta(2, 2, 500), "underconfident"),
        (lambda rng: rng.beta(0.5, 0.5, 500), "overconfident"),
        (lambda rng: rng.beta(2, 1, 500), "underestimate"),
        (lambda rng: rng.beta(1, 2, 500), "overestimate"),
    ],
)
def test_the_alt_text_names_the_deviation_of_a_histogram(u, words):
    drawn = plots.PITDisplay.from_pit(u(np.random.default_rng(5)), fig=page())
    assert words in drawn.alt_text()
    assert unreadable(drawn.figure_) == []


def test_bars_of_counts_hold_the_mean_of_randomised_pit_values():
    forecast = cb.Poisson(PREDICTED / 5)
    drawn = DRAW["PIT of counts"](fig=page())
    values = [rg.pit(COUNTS, forecast, random_state=seed) for seed in range(400)]
    expected = np.mean([np.histogram(u, bins=10, range=(0, 1))[0] for u in values], axis=0)
    assert drawn.data()["rows"].tolist() == pytest.approx(expected, abs=2.0)
    assert "overestimate" in drawn.alt_text()
    covered = DRAW["coverage of counts"](fig=page()).data()
    assert (covered["observed"] >= covered["level"] - 0.02).all()  # twice the true spread


def test_the_rootogram_hangs_frequencies_from_their_expectation():
    forecast = cb.Poisson(PREDICTED / 5)
    drawn = DRAW["rootogram"](fig=page())
    data = drawn.data()
    assert data["observed"].tolist() == np.bincount(COUNTS).tolist()
    share = stats.poisson.pmf(np.arange(COUNTS.max())[:, None], PREDICTED / 5)
    assert data["expected"].tolist()[:-1] == pytest.approx(share.sum(axis=1))
    assert data["error"].tolist()[:-1] == pytest.approx(np.sqrt(np.sum(share * (1 - share), axis=1)))
    assert data["expected"].sum() == pytest.approx(800)
    assert data["root_difference"].to_numpy() == pytest.approx(np.sqrt(data["observed"]) - np.sqrt(data["expected"]))
    assert "Count 0 is more frequent than predicted" in drawn.alt_text()
    two = cb.metrics.count_frequencies(COUNTS, forecast, max_count=2)
    assert two.observed[-1] == np.count_nonzero(COUNTS >= 2)
    with pytest.raises(InputError, match="distribution of counts"):
        cb.metrics.count_frequencies(COUNTS, rg.Gaussian(PREDICTED, 1.0))


def test_coverage_curves_count_outcomes_in_central_intervals():
    drawn = DRAW["coverage"](fig=page())
    levels, observed = drawn.curves_["before"].get_data()
    expected = rg.coverage(REAL, FORECAST, levels=levels).per_level["observed"]
    assert observed == pytest.approx(expected, abs=1.5 / 800)
    low, high = stats.binom.ppf([0.025, 0.975], 800, 0.5) / 800
    row = drawn.data().query("level == 0.5").iloc[0]
    assert (row["band_low"], row["band_high"]) == (low, high)
    with pytest.raises(InputError, match="forecast must have at least one forecast"):
        plots.CoverageDisplay.from_predictions(REAL, {}, fig=page())


def test_stated_intervals_are_points_of_the_coverage_curve():
    forecast = rg.Quantiles(
        [0.05, 0.25, 0.5, 0.75, 0.95], PREDICTED[:, None] + 1.5 * stats.norm.ppf([0.05, 0.25, 0.5, 0.75, 0.95])
    )
    result = cb.evaluate(REAL, forecast, by=np.arange(800) % 2, n_resamples=19)
    drawn = coverage(result).plot(fig=page())
    (points,) = [line for line in drawn.ax_.lines if line.get_gid() == "coverage-forecast-levels"]
    stored = result.breakdowns["coverage"].per_level
    assert points.get_xdata() == pytest.approx([0.5, 0.9])
    assert points.get_ydata() == pytest.approx(stored["observed"], abs=1.5 / 800)
    assert coverage(cb.evaluate(REAL, FORECAST, n_resamples=19)).levels == ()
    groups = plots.GroupDisplay(result, "coverage of 90 % intervals").plot(fig=page())
    low, high = groups.ax_.get_ylim() if groups.ax_.get_ylabel() else groups.ax_.get_xlim()
    assert low < 90 < high  # the target is in view, although no group reaches it
    assert any(90 in np.ravel(line.get_data()) for line in groups.ax_.lines)


def test_the_front_is_plotted_with_its_choice():
    drawn = DRAW["Pareto"](fig=page())
    front = PARETO.front_
    assert np.array_equal(drawn.curves_[0].get_xdata(), front.nll)
    assert np.array_equal(drawn.curves_[0].get_ydata(), front.a_squared)
    assert drawn.chosen_[0].get_xdata()[0] == front.nll[front.knee]
    assert list(drawn.axes_) == ["fitted rows", "held-out rows"]
    alone = plots.ParetoDisplay.from_recalibrator(PARETO.choose("sharp"), fig=page())
    assert alone.chosen == 0
    assert len(alone.data()) == len(front) + 1
    for wrong, words in ((5, "must be a ParetoRecalibrator"), (rg.ParetoRecalibrator(), "must be fitted")):
        with pytest.raises(InputError, match=words):
            plots.ParetoDisplay.from_recalibrator(wrong)
    with pytest.raises(InputError, match="must be passed together"):
        plots.ParetoDisplay.from_recalibrator(PARETO, FORECAST)


def test_rec_curves_are_those_of_the_metric_with_its_area():
    drawn = DRAW["REC"](fig=page())
    for name, predicted in (("model", PREDICTED), ("biased $", PREDICTED + 2)):
        curve = rg.rec_curve(REAL, predicted)
        x, y = drawn.lines_[name].get_data()
        assert set(x[1:-1]) <= set(curve.tolerance)
        assert all(share == curve.at(tolerance) for tolerance, share in zip(x[1:-1], y[1:-1], strict=True))
        assert drawn.curves[name].area_over == pytest.approx(rg.mae(REAL, predicted))
        assert drawn.data().query("model == @name")["tolerance"].tolist() == curve.tolerance.tolist()
    labels = [text.get_text() for text in drawn.ax_.get_legend().get_texts()]
    constant = rg.mae(REAL, np.full(800, np.sort(REAL)[399]))
    assert labels == [
        f"model: {rg.mae(REAL, PREDICTED):.4g}",
        f"biased $: {rg.mae(REAL, PREDICTED + 2):.4g}",
        f"median outcome: {constant:.4g}",
    ]
    assert drawn.ax_.get_title(loc="left").replace("\n", " ").startswith("90\N{NO-BREAK SPACE}% of rows have an error")


def test_rec_curves_of_squared_errors_weights_estimators_and_results():
    squared = plots.RECDisplay.from_predictions(REAL, PREDICTED, loss="squared", fig=page())
    assert squared.curves["model"].area_over == pytest.approx(rg.mse(REAL, PREDICTED))
    assert squared.reference.area_over == pytest.approx(np.var(REAL))
    again = plots.RECDisplay.from_curve({"model": rg.rec_curve(REAL, PREDICTED, loss="squared")}, fig=page())
    assert again.data().equals(squared.data())
    assert again.reference is None
    weight = RNG.uniform(0.5, 2, 800)
    weighted = plots.RECDisplay.from_predictions(REAL, PREDICTED, sample_weight=weight, fig=page())
    assert weighted.curves["model"].area_over == pytest.approx(np.average(np.abs(REAL - PREDICTED), weights=weight))

    class Fitted:
        def predict(self, X):
            return X[:, 0]

    fitted = plots.RECDisplay.from_estimator({"a": Fitted()}, PREDICTED[:, None], REAL, fig=page())
    assert fitted.data()["tolerance"].tolist() == rg.rec_curve(REAL, PREDICTED).tolerance.tolist()


def test_rec_curves_end_where_few_rows_have_much_larger_errors():
    y = REAL.copy()
    y[0] = 1e6
    drawn = plots.RECDisplay.from_predictions(y, PREDICTED, fig=page())
    assert drawn.ax_.get_xlim()[1] < 100
    assert drawn.lines_["model"].get_ydata()[-1] == pytest.approx(799 / 800)
    many = plots.RECDisplay.from_predictions(RNG.normal(size=50_000), np.zeros(50_000), fig=page())
    assert many.lines_["model"].get_xdata().size < 2000


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: plots.RECDisplay.from_predictions(REAL, {}), "y_pred must have predictions of at least one model"),
        (lambda: plots.RECDisplay.from_predictions(REAL, PREDICTED, loss="cubic"), "loss must"),
        (lambda: plots.RECDisplay.from_estimator(object(), PREDICTED[:, None], REAL), "has no predict"),
        (lambda: plots.RECDisplay.from_curve(3), "curve must be a RECCurve"),
        (
            lambda: plots.RECDisplay.from_curve(
                {loss: rg.rec_curve(REAL, PREDICTED, loss=loss) for loss in ("absolute", "squared")}
            ),
            "curves of one kind of error",
        ),
    ],
)
def test_bad_input_of_rec_curves_is_refused(call, text):
    with pytest.raises(InputError, match=text):
        call()


@pytest.mark.parametrize(("y", "p"), [([1.0], [2.0]), ([1.0, 2.0], [1.0, 2.0]), ([1.0] * 9, np.arange(9.0))])
def test_rec_curves_of_few_rows_are_legible(y, p):
    drawn = plots.RECDisplay.from_predictions(y, p, fig=page(4, 3.4))
    assert unreadable(drawn.figure_) == []
    assert "nan" not in drawn.ax_.get_title(loc="left") + drawn.alt_text()
