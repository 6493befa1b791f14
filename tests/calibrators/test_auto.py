"""The choice of `AutoCalibrator`: rare events, biases, certain probabilities, clusters, weights, and no calibrator."""

import itertools
import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn")

import sklearn
from scipy.special import expit, logit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import calibrant as cb
from calibrant.calibrators.auto import Candidate, Ranking, _HeldOut
from calibrant.inference.paired import stepdown_pvalues

X, Y = make_classification(1500, n_informative=5, n_redundant=10, flip_y=0.1, weights=[0.7], random_state=0)
X3, Y3 = make_classification(1500, n_informative=6, n_classes=3, flip_y=0.1, random_state=0)


def shifted(seed, size=20_000, centre=-5.2, shift=-0.8):
    """Scores at about 1 % events whose log-odds are too low by 0.8."""
    rng = np.random.default_rng(seed)
    x = rng.normal(centre, 1, size)
    return expit(x + shift), (rng.random(size) < expit(x)).astype(int)


def fitted(p, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cb.CalibrantWarning)
        return cb.AutoCalibrator(progress=False, n_resamples=239, **options).fit(p, y)


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
    auto = fitted(
        p,
        y,
        calibrators={"temperature": cb.calibrators.Temperature(), "rough": cb.calibrators.BinningAverage(n_bins=3)},
    )
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
        auto = cb.AutoCalibrator(sklearn.frozen.FrozenEstimator(Scores().fit(p, y)), cv=splitter, n_resamples=239)
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
        weighted = cb.AutoCalibrator(None, ["platt", "temperature"], n_resamples=239, progress=False)
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


def test_auto_recalibrates_a_miscalibrated_model():
    model = cb.AutoCalibrator(GaussianNB(), n_resamples=239).fit(X, Y)
    ranking = model.ranking_
    assert model.chosen_ != "uncalibrated"
    assert ranking.candidates[0].name == model.chosen_
    assert [c.value for c in ranking.candidates] == sorted(c.value for c in ranking.candidates)
    binary = {name for name, kind in cb.calibrators.CALIBRATORS.items() if kind.kind == "binary"}
    assert {c.name for c in ranking.candidates} == {"uncalibrated", *binary} - {"prior_shift", "cats", "caps"}
    for c in ranking.candidates:
        assert c.low <= c.value <= c.high
        if c.name != "uncalibrated":
            assert c.gain_low <= c.gain <= c.gain_high
    assert f"use {model.chosen_}" in repr(ranking)
    assert ranking.to_dict()["chosen"] == model.chosen_
    p = GaussianNB().fit(X, Y).predict_proba(X)[:, 1]
    assert np.array_equal(model.predict_proba(X)[:, 1], model.calibrator_(p))


def test_auto_keeps_a_calibrated_model():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(3000, 2))
    y = rng.random(3000) < 1 / (1 + np.exp(-rows[:, 0] - 0.5 * rows[:, 1]))
    model = cb.AutoCalibrator(LogisticRegression(), n_resamples=239).fit(rows, y)
    assert model.chosen_ == "uncalibrated"
    assert isinstance(model.calibrator_, cb.calibrators.Identity)
    assert "leave it alone" in repr(model.ranking_)
    assert np.array_equal(model.predict_proba(rows), LogisticRegression().fit(rows, y).predict_proba(rows))


def test_no_row_is_scored_by_a_model_fitted_on_it():
    """A classifier that remembers its rows would look perfect if any fold leaked."""

    class Parrot(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            self.known_ = {row.tobytes(): label for row, label in zip(np.asarray(X), y, strict=True)}
            return self

        def predict_proba(self, X):
            event = np.array([{1: 0.99, 0: 0.01}.get(self.known_.get(row.tobytes()), 0.5) for row in np.asarray(X)])
            return np.column_stack([1 - event, event])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cb.CalibrantWarning)
        model = cb.AutoCalibrator(Parrot(), {"platt": cb.Platt()}, n_resamples=239).fit(X, Y)
    uncalibrated = next(c for c in model.ranking_.candidates if c.name == "uncalibrated")
    assert uncalibrated.value == pytest.approx(np.log(2))


def test_costs_can_decide():
    metric = cb.metrics.ECC(cost=cb.costs.LinearCost(over=1, under=5))
    model = cb.AutoCalibrator(GaussianNB(), scoring=metric, n_resamples=239, cv=3).fit(X, Y)
    assert model.ranking_.metric == "ECC"
    assert {"cats", "caps"} <= {c.name for c in model.ranking_.candidates}
    assert model.chosen_ != "uncalibrated"


def test_a_finite_log_loss_is_preferred_to_an_infinite_one():
    model = cb.AutoCalibrator(
        DecisionTreeClassifier(random_state=0), {"isotonic": cb.Isotonic()}, scoring="log_loss", n_resamples=239, cv=3
    ).fit(X, Y)
    assert model.chosen_ == "isotonic"
    assert model.ranking_.candidates[-1].value == np.inf
    assert model.ranking_.to_dict()["candidates"][-1]["value"] is None


def test_several_classes_margins_frozen_models_and_splits():
    multi = cb.AutoCalibrator(GaussianNB(), cv=3, n_resamples=239).fit(X3, Y3)
    assert multi.predict_proba(X3).shape == (len(X3), 3)
    margins = cb.AutoCalibrator(LinearSVC(), cv=3, n_resamples=239).fit(X, Y)
    assert margins.ranking_.baseline == "platt"
    assert margins.chosen_ == margins.ranking_.candidates[0].name
    frozen = FrozenEstimator(GaussianNB().fit(X[:500], Y[:500]))
    assert cb.AutoCalibrator(frozen, cv=3, n_resamples=239).fit(X[500:], Y[500:]).chosen_ != "uncalibrated"
    splits = list(StratifiedKFold(3).split(X, Y))
    by_splits = cb.AutoCalibrator(GaussianNB(), cv=splits, n_resamples=239).fit(X, Y)
    assert by_splits.chosen_ != "uncalibrated"


def test_the_best_significant_gain_is_chosen():
    rng = np.random.default_rng(1)
    truth = rng.random(4000)
    y = (rng.random(4000) < truth).astype(int)
    shown = np.clip(truth + np.where(truth > 0.5, 0.05, -0.05), 0, 1)
    model = cb.AutoCalibrator(GaussianNB(), {"wild": cb.Platt(), "sure": cb.Beta()}, n_resamples=239)
    noisy = np.clip(truth + rng.normal(0, 0.02, 4000) * (rng.random(4000) < 0.02), 0, 1)
    scored = {"uncalibrated": shown, "wild": noisy, "sure": truth}
    scored = {name: np.column_stack([1 - q, q]) for name, q in scored.items()}
    held_out = _HeldOut(scored, {}, y, 2, None, None)
    ranking = model._rank(held_out, cb.METRICS["brier"](), 1.0)
    sure = [c for c in ranking.candidates if c.gain > 0 and c.pvalue <= 0.05]
    assert ranking.chosen == min(sure, key=lambda c: c.value).name


@pytest.mark.parametrize(
    "cv",
    [
        None,
        np.int64(3),
        [(train.tolist(), test.tolist()) for train, test in StratifiedKFold(3).split(X, Y)],
        StratifiedKFold(3).split(X, Y),
    ],
)
def test_folds_of_every_legal_kind(cv):
    model = cb.AutoCalibrator(GaussianNB(), {"beta": cb.Beta()}, cv=cv, n_resamples=49)
    assert model.fit(X, Y).chosen_ in ("beta", "uncalibrated")


def test_too_few_given_splits_are_refused():
    for cv, words in (([], "at least one fold"), (list(StratifiedKFold(2).split(X, Y)), "at least three")):
        with pytest.raises(cb.InputError, match=words):
            cb.AutoCalibrator(GaussianNB(), {"beta": cb.Beta()}, cv=cv, n_resamples=49).fit(X, Y)


def test_groups_are_plotted_in_one_figure():
    again = np.repeat(np.arange(300), 5)
    rows, y = X[again], Y[again]
    options = {"calibrators": {"beta": cb.Beta()}, "scoring": "brier", "n_resamples": 399}
    with sklearn.config_context(enable_metadata_routing=True):
        splitter = GroupKFold(3).set_split_request(groups=True)
        grouped = cb.AutoCalibrator(GaussianNB(), cv=splitter, **options).fit(rows, y, groups=again).ranking_
    # The same folds: how groups of equal size are divided depends on the versions of NumPy and scikit-learn.
    folds = list(GroupKFold(3).split(X[:300], Y[:300], np.arange(300)))
    once = cb.AutoCalibrator(GaussianNB(), cv=folds, **options).fit(X[:300], Y[:300]).ranking_
    widths = [r.candidates[0].high - r.candidates[0].low for r in (grouped, once)]
    assert widths[0] == pytest.approx(widths[1], rel=0.3)  # not a fifth of the variance


def three_classes(heat, size=2000):
    """Class probabilities with logits `heat` times too large, and labels."""
    rng = np.random.default_rng(5)
    logits = rng.normal(0, 1.2, (size, 3))
    y = (softmax(logits, axis=1).cumsum(axis=1) > rng.random((size, 1))).argmax(axis=1)
    return softmax(heat * logits, axis=1), y


def test_auto_chooses_among_multiclass_calibrators_by_log_loss():
    proba, y = three_classes(heat=2.0)
    auto = cb.AutoCalibrator(cv=3, n_resamples=239).fit(proba, y)
    ranking = auto.ranking_
    assert ranking.metric == "log loss"
    multiclass = {name for name, kind in cb.calibrators.CALIBRATORS.items() if kind.kind == "multiclass"}
    assert {c.name for c in ranking.candidates} == {"uncalibrated", "isotonic", "beta", "logit_spline", *multiclass}
    assert not ranking.failed
    assert auto.chosen_ == ranking.candidates[0].name != "uncalibrated"
    for c in ranking.candidates:
        assert c.low <= c.value <= c.high
    # The cross-fitted log loss of a candidate, by hand.
    losses = []
    for train, test in StratifiedKFold(3).split(proba, y):
        q = cb.calibrators.SoftmaxTemperature().fit(proba[train], y[train])(proba[test])
        losses.append(-np.log(q[np.arange(len(test)), y[test]]))
    (found,) = (c.value for c in ranking.candidates if c.name == "softmax_temperature")
    assert found == pytest.approx(np.concatenate(losses).mean(), abs=1e-12)
    assert auto.predict_proba(proba) == pytest.approx(clone(auto.calibrator_).fit(proba, y)(proba), abs=1e-12)


def test_auto_keeps_calibrated_class_probabilities():
    proba, y = three_classes(heat=1.0)
    names = ["softmax_temperature", "vector", "dirichlet", "isotonic"]
    auto = cb.AutoCalibrator(calibrators=names, cv=3, n_resamples=239).fit(proba, y)
    assert auto.chosen_ == "uncalibrated"
    assert np.allclose(auto.calibrator_(proba), proba, rtol=1e-15, atol=0)
    assert np.array_equal(auto.predict_proba(proba), proba)


def test_auto_takes_scores_without_a_model():
    p = GaussianNB().fit(X[:700], Y[:700]).predict_proba(X[700:])[:, 1]
    auto = cb.AutoCalibrator(cv=3, n_resamples=239).fit(p, Y[700:])
    assert auto.chosen_ != "uncalibrated"
    assert np.array_equal(auto.predict_proba(p)[:, 1], auto.calibrator_(p))
    column = cb.AutoCalibrator(cv=3, n_resamples=239).fit(p.reshape(-1, 1), Y[700:])
    assert column.chosen_ == auto.chosen_
    with pytest.raises(cb.InputError, match="lie in"):
        cb.AutoCalibrator(cv=3, n_resamples=239).fit(10 * p, Y[700:])
    with pytest.raises(cb.InputError, match="one column for each"):
        cb.AutoCalibrator(cv=3, n_resamples=239).fit(three_classes(1.0)[0], np.arange(2000) % 4)


def test_names_and_mappings_of_names_are_candidates():
    for given in (["platt", "beta"], {"platt": "platt", "beta": cb.Beta()}, "beta"):
        auto = cb.AutoCalibrator(GaussianNB(), given, cv=3, n_resamples=239).fit(X, Y)
        assert {c.name for c in auto.ranking_.candidates} <= {"uncalibrated", "platt", "beta"}
    with pytest.raises(cb.InputError, match="Did you mean 'platt'"):
        cb.AutoCalibrator(GaussianNB(), ["plat"], cv=3, n_resamples=239).fit(X, Y)


def test_a_higher_brier_score_is_a_warning():
    rng = np.random.default_rng(0)
    truth = rng.random(2000)
    y = (rng.random(2000) < truth).astype(int)

    class Coarse(cb.calibrators.BinningAverage):
        """One bin for all: a finite log loss, and a high Brier score."""

    p = truth.copy()
    p[:9], y[:9] = 0.0, 1  # an infinite log loss
    with pytest.warns(cb.CalibrantWarning, match="raises the cross-fitted Brier score from 0.1.* to 0.2"):
        auto = cb.AutoCalibrator(calibrators={"coarse": Coarse(n_bins=1)}, scoring="log_loss", cv=3).fit(p, y)
    assert auto.chosen_ == "coarse"


def test_a_candidate_that_fails_is_named():
    y = np.zeros(60, dtype=int)
    y[::10] = 1
    rows = np.column_stack([y * 10.0, np.arange(60)])
    candidates = {"platt": cb.Platt(), "raw": cb.Platt(smoothing=False)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = cb.AutoCalibrator(GaussianNB(), candidates, cv=3, n_resamples=239).fit(rows, y)
    assert "separates" in model.ranking_.failed["raw"]
    assert "raw not fitted" in repr(model.ranking_)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scoring": "bias"}, "got bias, whose best value is 0"),
        ({"scoring": "accuracy"}, "scoring must be"),
        ({"calibrators": {}}, "calibrators"),
        ({"calibrators": {"uncalibrated": cb.Platt()}}, "uncalibrated"),
        ({"alpha": 2}, "alpha"),
        ({"n_resamples": 50}, "at least 139"),
    ],
)
def test_arguments_of_auto_are_checked(options, words):
    with pytest.raises(cb.InputError, match=words):
        cb.AutoCalibrator(GaussianNB(), **options).fit(X, Y)


def test_rankings_become_frames():
    pd = pytest.importorskip("pandas")
    ranking = cb.AutoCalibrator(GaussianNB(), cv=2, n_resamples=239).fit(X, Y).ranking_
    frame = ranking.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame["name"]) == [c.name for c in ranking.candidates]
