"""The protocol of predictive distributions: what forecasts declare, rows that are selected, simulated outcomes."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("sklearn", reason="scikit-learn is not installed")
import calibrant as cb
from calibrant import regression as rg

RNG = np.random.default_rng(11)
SIZE = 4000
MEAN, SD = RNG.normal(20, 5, SIZE), RNG.uniform(1, 3, SIZE)
LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
FORECASTS = {
    "Gaussian": rg.Gaussian(MEAN, SD),
    "gamma": rg.Frozen(stats.gamma(2.5, loc=MEAN, scale=SD)),
    "Poisson": rg.Frozen(stats.poisson(np.abs(MEAN))),
    "Quantiles": rg.Quantiles(LEVELS, MEAN[:, None] + SD[:, None] * stats.norm.ppf(LEVELS)),
    "Samples": rg.Samples(MEAN[:, None] + SD[:, None] * RNG.standard_t(4, size=(SIZE, 9))),
    "Stretched": rg.Stretched(rg.Gaussian(MEAN, SD), 1.7, 0.4),
    "stretched samples": rg.Stretched(rg.Samples(MEAN[:, None] + RNG.normal(size=(SIZE, 9))), 1.7, 0.4),
    "Warped": rg.Warped(rg.Gaussian(MEAN, SD), rg.SinhArcsinh(0.3, 1.4, -0.2, 0.8)),
}
EVERY = pytest.mark.parametrize("name", FORECASTS)


@EVERY
def test_pits_of_simulated_outcomes_are_uniform(name):
    forecast, rng = FORECASTS[name], np.random.default_rng(3)
    outcomes, replicate = forecast.simulate(MEAN, rng)
    assert outcomes.shape == (SIZE,)
    u = rg.pit(outcomes, replicate)
    assert stats.kstest(u, "uniform").pvalue > 1e-3
    assert np.abs(np.mean(u)) == pytest.approx(0.5, abs=4 / np.sqrt(12 * SIZE))


def test_an_ensemble_and_its_outcome_are_exchanged():
    forecast = rg.Samples([[1.0, 2.0, 4.0]] * 300)
    outcomes, replicate = forecast.simulate(np.full(300, 9.0), np.random.default_rng(0))
    together = np.sort(np.column_stack([outcomes, replicate.members]), axis=1)
    assert (together == [1.0, 2.0, 4.0, 9.0]).all()
    assert np.unique(outcomes, return_counts=True)[1] == pytest.approx(np.full(4, 75), abs=30)


def test_outcomes_simulated_from_quantiles_have_the_probabilities_of_the_cells():
    forecast = rg.Quantiles([0.1, 0.9], [[1.0, 2.0]] * 5000)
    outcomes, same = forecast.simulate(np.zeros(5000), np.random.default_rng(0))
    assert same is forecast
    shares = [np.mean(outcomes < 1), np.mean((outcomes > 1) & (outcomes < 2)), np.mean(outcomes > 2)]
    assert shares == pytest.approx([0.1, 0.8, 0.1], abs=0.02)


@EVERY
@pytest.mark.parametrize("rows", [slice(2, 6), np.arange(SIZE) % 7 == 0, [5, 1, 1], np.array([-1, 0]), 3])
def test_rows_of_a_forecast_are_selected_as_those_of_an_array(name, rows):
    forecast = FORECASTS[name]
    expected = np.atleast_1d(forecast.point()[rows])
    assert forecast[rows].point() == pytest.approx(expected, rel=1e-12)
    assert len(forecast[rows]) == expected.size
    assert type(forecast[rows]) is type(forecast)


def test_rows_are_selected_by_a_mask_of_pandas_and_keep_their_index():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"mean": [1.0, 2.0, 3.0], "y": [1.5, 2.0, 2.5]}, index=["a", "b", "c"])
    forecast = cb.Gaussian(frame["mean"], 1.0)
    large = frame["mean"] > 1.5
    assert forecast[large].mean.tolist() == [2.0, 3.0]
    assert rg.crps(frame["y"][large], forecast[large]) == pytest.approx(rg.crps([2.0, 2.5], cb.Gaussian([2.0, 3.0], 1)))


def test_a_row_that_does_not_exist_is_an_error():
    with pytest.raises(IndexError):
        cb.Gaussian([1.0, 2.0], 1.0)[2]
    with pytest.raises(IndexError):
        cb.Gaussian([1.0, 2.0], 1.0)[[True, False, True]]


@pytest.mark.parametrize("name", FORECASTS)
def test_a_forecast_declares_what_is_known(name):
    forecast = FORECASTS[name]
    assert forecast.kind == "distribution"
    assert (forecast.known_levels is not None) == (name in ("Quantiles", "Samples"))
    assert (forecast.ensemble is not None) == (name == "Samples")
    assert forecast.point_is_mean == (name != "Quantiles")
    assert forecast.is_normal == (name == "Gaussian")
    assert forecast.is_discrete == (name == "Poisson")


@dataclass(frozen=True, eq=False)
class Uniform(rg.Forecast):
    """A user's own forecast: uniform between two numbers."""

    low: np.ndarray
    high: np.ndarray

    def __len__(self):
        return self.low.size

    def cells(self, y):
        u = np.clip((y - self.low) / (self.high - self.low), 0, 1)
        return u, u

    def quantile(self, level):
        levels = np.asarray(level)
        found = self.low[:, None] + (self.high - self.low)[:, None] * np.atleast_1d(levels)
        return found if levels.ndim else found[:, 0]

    def point(self):
        return (self.low + self.high) / 2

    def log_density(self, y):
        inside = (y >= self.low) & (y <= self.high)
        return np.where(inside, -np.log(self.high - self.low), -np.inf)

    def crps(self, y):
        u, width = self.cells(y)[0], self.high - self.low
        return np.abs(y - self.low - u * width) + width * (u**2 - u + 1 / 3)

    def part(self, rows):
        return Uniform(self.low[rows], self.high[rows])


def test_a_forecast_of_your_own_is_evaluated():
    y = MEAN + RNG.uniform(-1, 1, SIZE)
    found = cb.evaluate(y, Uniform(MEAN - 1, MEAN + 1), by=np.arange(SIZE) % 2, n_resamples=0)
    assert found.kind == "distribution"
    assert found.verdict in ("calibrated", "inconclusive")
    assert found["CRPS"].value == pytest.approx(rg.crps(y, stats.uniform(MEAN - 1, 2)), rel=1e-6)
    narrow = cb.evaluate(y, Uniform(MEAN - 0.8, MEAN + 0.8), n_resamples=0)
    assert (narrow.verdict, narrow.direction) == ("miscalibrated", "overconfident")


@pytest.mark.parametrize("wrap", [cb.Point, cb.Labels])
@pytest.mark.parametrize("rows", [slice(1, 3), [True, False, True, False], [3, 0], 2])
def test_rows_of_point_predictions_and_labels_are_selected(wrap, rows):
    values = np.array([1, 2, 3, 4])
    for column in (values, values.tolist()):
        part = wrap(column)[rows]
        assert np.asarray(part.y_pred).tolist() == np.atleast_1d(values[rows]).tolist()
        assert len(part) == np.atleast_1d(values[rows]).size
    assert cb.Labels(["a", "b"], classes=["a", "b", "c"])[:1].classes == ["a", "b", "c"]


def test_a_selected_series_keeps_its_index():
    pd = pytest.importorskip("pandas")
    y = pd.Series([1.0, 2.0, 4.0], index=[5, 6, 7])
    large = y > 1.5
    part = cb.Point(y + 1)[large]
    assert part.y_pred.index.tolist() == [6, 7]
    assert rg.mean_error(y[large], part) == 1.0


@EVERY
def test_a_forecast_is_refused_where_a_column_is_needed(name):
    with pytest.raises(cb.InputError, match="X must be one column; got"):
        rg.LinearRecalibrator().fit(FORECASTS[name], MEAN)


# Prediction intervals


def test_intervals_are_quantiles_at_their_ends():
    low, high = MEAN - 1.645 * SD, MEAN + 1.645 * SD
    half = (MEAN - 0.674 * SD, MEAN + 0.674 * SD)
    forecast = cb.Quantiles.from_intervals({0.9: (low, high), 0.5: half}, median=MEAN)
    assert forecast.levels.tolist() == [0.05, 0.25, 0.5, 0.75, 0.95]
    assert (forecast.values == np.column_stack([low, half[0], MEAN, half[1], high])).all()
    y = MEAN + SD * RNG.normal(size=SIZE)
    per_level = rg.coverage(y, forecast).per_level
    assert per_level["level"].tolist() == [0.5, 0.9]
    assert per_level["observed"].tolist() == [np.mean((y >= a) & (y <= b)) for a, b in (half, (low, high))]


def test_one_interval_is_evaluated_at_its_level():
    y = MEAN + SD * RNG.normal(size=SIZE)
    found = cb.evaluate(y, cb.Quantiles.from_intervals({0.9: (MEAN - 1.645 * SD, MEAN + 1.645 * SD)}))
    assert found.verdict in ("calibrated", "inconclusive")
    assert "coverage of 90 % intervals" in found.metrics
    assert not [name for name in found.metrics if name.startswith("coverage") and "90" not in name]
    texts = [note.text for note in found.notes]
    assert "Only quantiles at these levels are tested: 5, 95 %." in texts
    assert any(text.startswith("The forecasts have no median") for text in texts)
    narrow = cb.evaluate(y, cb.Quantiles.from_intervals({0.9: (MEAN - SD, MEAN + SD)}))
    assert (narrow.verdict, narrow.direction) == ("miscalibrated", "overconfident")
    low = cb.evaluate(y, cb.Quantiles.from_intervals({0.9: (MEAN - 3 * SD, MEAN + SD)}))
    assert low.verdict == "miscalibrated"


def test_a_median_is_part_of_the_notes():
    y = MEAN + SD * RNG.normal(size=SIZE)
    forecast = cb.Quantiles.from_intervals({0.8: (MEAN - 1.2816 * SD, MEAN + 1.2816 * SD)}, median=MEAN)
    texts = [note.text for note in cb.evaluate(y, forecast).notes]
    assert any(text.startswith("Predictions are medians") for text in texts)
    assert "Only quantiles at these levels are tested: 10, 50, 90 %." in texts


def test_intervals_keep_the_index_of_pandas():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"low": [1.0, 2.0], "high": [3.0, 4.0], "y": [2.0, 3.0]}, index=["b", "a"])
    forecast = cb.Quantiles.from_intervals({0.8: (frame["low"], frame["high"])})
    assert forecast.index.tolist() == ["b", "a"]
    with pytest.raises(cb.InputError, match="index"):
        rg.coverage(frame["y"].sort_index(), forecast)


@pytest.mark.parametrize(
    ("intervals", "median", "text"),
    [
        ({}, None, "intervals must be a mapping of levels to"),
        ([(0, 1)], None, "intervals must be a mapping of levels to"),
        ({1.5: ([0.0], [1.0])}, None, "intervals must"),
        ({0.9: [0.0, 1.0, 2.0]}, None, r"a pair \(low, high\) for each level; got list for 0.9"),
        (
            {0.9: ([0.0, 3.0], [1.0, 2.0])},
            None,
            r"low of level 0.9 exceeds high of level 0.9 in 1 rows, .* row 1 \(3 and 2",
        ),
        ({0.9: ([0.0], [1.0]), 0.5: ([-1.0], [0.5])}, None, "low of level 0.9 exceeds low of level 0.5"),
        ({0.9: ([0.0], [1.0])}, [2.0], "median exceeds high of level 0.9"),
        ({0.9: ([0.0, 1.0], [1.0])}, None, "high of level 0.9 has 1 rows, low of level 0.9 has 2"),
        ({0.9: ([0.0, np.nan], [1.0, 2.0])}, None, "low of level 0.9"),
    ],
)
def test_intervals_that_are_not_nested_are_refused(intervals, median, text):
    with pytest.raises(cb.InputError, match=text):
        cb.Quantiles.from_intervals(intervals, median=median)
