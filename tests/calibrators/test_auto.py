"""The choice of `AutoCalibrator`: rare events, biases, certain probabilities, clusters, weights, and no calibrator."""

import itertools
import warnings

import numpy as np
import pytest
import sklearn
from scipy.special import expit, logit
from sklearn.model_selection import GroupKFold
from sklearn.naive_bayes import GaussianNB

import calibrant as cb
from calibrant.calibrators.auto import Candidate, Ranking
from calibrant.inference.paired import stepdown_pvalues


def shifted(seed, size=20_000, centre=-5.2, shift=-0.8):
    """Scores at about 1 % events whose log-odds are too low by 0.8."""
    rng = np.random.default_rng(seed)
    x = rng.normal(centre, 1, size)
    return expit(x + shift), (rng.random(size) < expit(x)).astype(int)


def fitted(p, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cb.CalibrantWarning)
        return cb.AutoCalibrator(progress=False, n_resamples=199, **options).fit(p, y)


@pytest.mark.parametrize("seed", range(3))
def test_a_shift_of_rare_events_is_corrected(seed):
    p, y = shifted(seed)
    auto = fitted(p, y)
    assert auto.chosen_ != "uncalibrated"
    assert auto(p).mean() == pytest.approx(y.mean(), rel=0.1)
    new, event = shifted(seed + 100)
    assert cb.log_loss(event, auto(new)) < cb.log_loss(event, new)


def candidate(name, value, *, gain=0.0, pvalue=1.0, bias_pvalue=1.0):
    return Candidate(name, value, value, value, gain, gain, gain, pvalue, 0.0, bias_pvalue)


def chosen(*found):
    options = {"level": 0.95, "alpha": 0.05, "failed": {}}
    return Ranking.choose([candidate("uncalibrated", 0.5), *found], cb.METRICS["log_loss"](), **options)


def test_the_rule_needs_a_significant_gain_and_passes_over_a_bias():
    best = candidate("best", 0.3, gain=0.2, pvalue=0.01, bias_pvalue=0.001)
    second = candidate("second", 0.4, gain=0.1, pvalue=0.01, bias_pvalue=0.3)
    lucky = candidate("lucky", 0.1, gain=0.4, pvalue=0.2)
    assert chosen(best, second, lucky).chosen == "second"
    assert chosen(best, lucky).chosen == "best"  # all with a significant gain have a bias
    assert chosen(lucky).chosen == "uncalibrated"
    ranking = chosen(best, second)
    assert "best: not used, because the mean differs from the event rate." in repr(ranking)
    assert f"Rule: {ranking.rule}" in repr(ranking)
    assert ranking.to_dict()["rule"] == ranking.rule


def test_a_bias_that_no_calibrator_is_shown_to_correct_is_named():
    options = {"level": 0.95, "alpha": 0.05, "failed": {}}
    biased = candidate("uncalibrated", 0.5, bias_pvalue=0.01)
    ranking = Ranking.choose(
        [biased, candidate("platt", 0.4, gain=0.1, pvalue=0.2)], cb.METRICS["log_loss"](), **options
    )
    assert ranking.chosen == "uncalibrated"
    assert "The mean of the scores differs from the event rate (p = 0.010), although no gain is" in repr(ranking)
    assert "differs from the event rate (p" not in repr(chosen(candidate("platt", 0.4)))


def test_the_docstring_states_the_rule():
    rule = chosen(candidate("a", 0.4)).rule.replace(" at 5 %", "")
    assert rule in " ".join(cb.AutoCalibrator.__doc__.split())


def test_a_calibrator_that_cannot_correct_the_mean_is_passed_over():
    rng = np.random.default_rng(0)
    truth = rng.beta(2, 2, 4000)
    y = rng.random(4000) < truth
    p = expit(logit(truth) / 0.5 + 0.35)  # overconfident and too high
    auto = fitted(p, y, calibrators={"temperature": cb.Temperature(), "rough": cb.BinningAverage(n_bins=3)})
    first = auto.ranking_.candidates[0]
    assert (first.name, auto.chosen_) == ("temperature", "rough")
    assert first.bias_pvalue < 0.01
    assert auto.ranking_.candidates[1].bias_pvalue > 0.05


def test_probabilities_of_0_and_1_have_an_infinite_log_loss_whatever_happened():
    rng = np.random.default_rng(0)
    p = np.repeat([0.01, 0.3, 0.6], 500)
    y = np.concatenate([np.zeros(500), rng.random(1000) < 0.5]).astype(int)
    auto = fitted(p, y, calibrators=["binning_average", "platt"])
    values = {c.name: c.value for c in auto.ranking_.candidates}
    assert values["binning_average"] == np.inf > values["platt"]
    assert "binning_average: infinite log loss" in repr(auto.ranking_)
    p = np.repeat([0.0, 0.3, 0.6], 500)  # of which the model is certain itself
    auto = fitted(p, y, calibrators=["binning_average", "platt"])
    assert all(np.isfinite(c.value) for c in auto.ranking_.candidates)


def test_ties_and_the_order_of_rows_do_not_change_the_ranking_of_tied_folds():
    p, y = shifted(0, size=4000, centre=-1.0)
    coarse = np.round(p, 1)
    auto = fitted(coarse, y)
    assert auto.chosen_ != "uncalibrated"
    assert np.unique(auto(coarse)).size <= np.unique(coarse).size


def test_calibrated_clusters_are_left_alone_and_their_gains_vary_more():
    """Events of a cluster are shared: 100 clusters of 20 equal rows."""
    rng = np.random.default_rng(4)
    x = rng.normal(-1, 1, 100)
    p, y = (np.repeat(each, 20) for each in (expit(x), (rng.random(100) < expit(x)).astype(int)))
    group = np.repeat(np.arange(100), 20)
    with sklearn.config_context(enable_metadata_routing=True), warnings.catch_warnings():
        warnings.simplefilter("ignore", cb.CalibrantWarning)
        splitter = GroupKFold(5).set_split_request(groups=True)
        auto = cb.AutoCalibrator(sklearn.frozen.FrozenEstimator(Scores().fit(p, y)), cv=splitter, n_resamples=199)
        ranking = auto.fit(p.reshape(-1, 1), y, groups=group).ranking_
    assert ranking.chosen == "uncalibrated"
    alone = fitted(p, y).ranking_
    widths = [{c.name: c.gain_high - c.gain_low for c in each.candidates}["platt"] for each in (ranking, alone)]
    assert widths[0] > 2 * widths[1]


class Scores(sklearn.base.ClassifierMixin, sklearn.base.BaseEstimator):
    """A model whose feature is its score."""

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        return self

    def predict_proba(self, X):
        p = np.asarray(X).ravel()
        return np.column_stack([1 - p, p])


def test_weights_decide_what_is_calibrated():
    """Events thinned to a quarter, with weight 4: calibrated with the weights, and not without them."""
    rng = np.random.default_rng(0)
    truth = expit(rng.normal(-1, 1, 12_000))
    y = rng.random(12_000) < truth
    kept = ~y | (rng.random(12_000) < 0.25)
    p, y = truth[kept], y[kept].astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cb.CalibrantWarning)
        weighted = cb.AutoCalibrator(None, ["platt", "temperature"], n_resamples=199, progress=False)
        weighted.fit(p, y, sample_weight=np.where(y, 4.0, 1.0))
    assert weighted.chosen_ == "uncalibrated"
    assert fitted(p, y, calibrators=["platt", "temperature"]).chosen_ == "platt"


def test_no_calibrator_is_an_identity_that_can_be_called_saved_and_exported(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    rng = np.random.default_rng(0)
    p = np.concatenate([[0.0, 1.0, 1 / 3], rng.random(997)])
    y = (rng.random(1000) < p).astype(int)
    auto = fitted(p, y)
    assert auto.chosen_ == "uncalibrated"
    assert np.array_equal(auto(p), p)
    assert np.array_equal(auto.calibrator_(p), p)
    cb.save(auto.calibrator_, tmp_path / "cal.json")
    same = cb.load(tmp_path / "cal.json")
    assert isinstance(same, cb.calibrators.Identity)
    assert np.array_equal(same(p), p)
    expression = cb.to_sql(auto.calibrator_, "p")
    found = duckdb.execute(f"SELECT {expression} FROM (SELECT unnest(?::DOUBLE[]) AS p)", [p.tolist()]).fetchall()
    assert np.array_equal(np.ravel(found), p)
    with pytest.raises(cb.InputError, match=r"lie in \[0, 1\]"):
        auto([2.0])


def test_no_calibrator_of_classes_can_be_saved_and_exported(tmp_path):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([1, 1, 1], 500)
    y = (proba.cumsum(axis=1) > rng.random((500, 1))).argmax(axis=1)
    auto = fitted(proba, y, calibrators=["softmax_temperature"])
    assert auto.chosen_ == "uncalibrated"
    assert np.array_equal(auto(proba), proba)
    cb.save(auto.calibrator_, tmp_path / "cal.json")
    assert np.allclose(cb.load(tmp_path / "cal.json")(proba), proba, rtol=1e-15, atol=0)
    assert set(cb.to_sql(auto.calibrator_, columns=["a", "b", "c"])) == {0, 1, 2}


def test_a_model_on_features_is_not_called_on_scores():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    auto = cb.AutoCalibrator(GaussianNB(), ["platt"], n_resamples=49).fit(X, X[:, 0] > rng.normal(size=300))
    with pytest.raises(cb.InputError, match="without a classifier"):
        auto([0.5])


def test_a_changed_identity_is_not_loaded(tmp_path):
    cal = cb.calibrators.Identity().fit([0.2, 0.7], [0, 1])
    cal.map_ = cb.Isotonic(strict=True).fit([0.2, 0.7, 0.9], [0, 1, 1]).map_
    with pytest.raises(cb.InputError, match="settings of Identity"):
        cb.save(cal, tmp_path / "cal.json")


def test_stepdown_pvalues_of_equal_values_are_those_of_one():
    rng = np.random.default_rng(0)
    draws = rng.normal(1.0, 0.5, (999, 1))
    one = stepdown_pvalues(np.array([1.0]), draws)
    assert stepdown_pvalues(np.ones(4), np.repeat(draws, 4, axis=1)) == pytest.approx(np.repeat(one, 4))
    assert 0.01 < one[0] < 0.04  # 2 standard deviations, one-sided


def test_stepdown_pvalues_lie_between_those_of_one_value_and_bonferroni():
    rng = np.random.default_rng(1)
    values = np.array([1.2, 0.9, 0.1, -0.5])
    draws = values + rng.normal(0, 0.5, (999, 4))
    found = stepdown_pvalues(values, draws)
    for value, each, own in zip(values, draws.T, found, strict=True):
        (alone,) = stepdown_pvalues(np.array([value]), each[:, None])
        assert alone <= own <= min(1.0, 4 * alone + 0.02)
    assert all(a <= b for a, b in itertools.pairwise(found))


def test_infinite_and_constant_values_have_pvalues():
    draws = np.column_stack([np.full(99, np.inf), np.full(99, -np.inf), np.zeros(99)])
    found = stepdown_pvalues(np.array([np.inf, -np.inf, 0.0]), draws)
    assert found == pytest.approx([3 / 100, 1, 1])


@pytest.mark.filterwarnings("ignore:The rarest class has 2 rows")
@pytest.mark.parametrize(("rows", "events"), [(2, 1), (5, 2), (6, 2)])
def test_fewer_rows_than_folds_are_refused(rows, events):
    with pytest.raises(cb.InputError, match=r"cv must be at most the number of training rows .* got 5 folds"):
        cb.AutoCalibrator().fit(np.linspace(0.1, 0.9, rows), np.arange(rows) < events)


def test_fewer_events_than_folds_are_noted_once_in_words_of_calibrant():
    p = np.linspace(0.02, 0.3, 60)
    with pytest.warns() as caught:
        cb.AutoCalibrator(calibrators=["platt"], n_resamples=99).fit(p, np.isin(np.arange(60), [30, 50, 58]))
    texts = [str(each.message) for each in caught]
    assert texts == ["The rarest class has 3 rows, fewer than the 5 folds: some folds have none of it."]
