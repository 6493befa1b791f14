"""`Multicalibrator`: it corrects subgroups, leaves calibrated scores alone, and is saved without pickle."""

import json

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sklearn")

from joblib import parallel_config
from scipy.special import expit, logit
from sklearn import config_context
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import calibrant as cb
from calibrant.calibrators import boosted_trees
from calibrant.calibrators.multicalibrator import _best_scale, slope_and_intercept

try:
    import lightgbm
except ModuleNotFoundError:
    lightgbm = None
needs_lightgbm = pytest.mark.skipif(lightgbm is None, reason="LightGBM is not installed")
BACKENDS = ["sklearn", pytest.param("lightgbm", marks=needs_lightgbm)]


def crossed(n, seed=0, size=0.1):
    """Rows that are calibrated overall, for each a and for each b, and off in each combination of both."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n, 2))
    p = rng.uniform(0.2, 0.8, n)
    y = rng.random(n) < p + np.where(X[:, 0] == X[:, 1], size, -size)
    return X, p, y.astype(int)


def calibrated(n, seed=0, n_features=6):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    p = expit(X[:, 0] + X[:, 1] * X[:, 2] / 2 - 1)
    return X, p, (rng.random(n) < p).astype(int)


def loss(y, p):
    return cb.log_loss(y, np.clip(p, 1e-12, 1 - 1e-12))


def quick(**options):
    return cb.Multicalibrator(**{"backend": "sklearn", "max_rounds": 3} | options)


@pytest.mark.parametrize("backend", BACKENDS)
def test_crossed_subgroups_are_corrected(backend):
    X, p, y = crossed(8000)
    new, score, outcome = crossed(8000, seed=1)
    fitted = cb.Multicalibrator(backend=backend).fit(X, y, scores=p)
    assert fitted.improved_
    assert fitted.backend_ == backend
    after = fitted(new, score)
    assert loss(outcome, after) < loss(outcome, score) - 0.01
    for a in (0, 1):
        for b in (0, 1):
            rows = (new == [a, b]).all(axis=1)
            assert abs(outcome[rows].mean() - score[rows].mean()) > 0.08
            assert abs(outcome[rows].mean() - after[rows].mean()) < 0.04
    found = cb.audit(outcome, score, {"a": new[:, 0], "b": new[:, 1]})
    left = cb.audit(outcome, after, {"a": new[:, 0], "b": new[:, 1]})
    assert len(found.segments) == 4
    assert not left.segments


def test_calibrators_of_one_score_cannot_correct_crossed_subgroups():
    _, p, y = crossed(8000)
    for calibrator in (cb.Isotonic(), cb.Beta()):
        assert abs(loss(y, calibrator.fit(p, y)(p)) - loss(y, p)) < 0.005


@pytest.mark.parametrize("backend", BACKENDS)
def test_calibrated_scores_stay_unchanged_in_most_samples(backend):
    changed, worse = 0, []
    for seed in range(8):
        X, p, y = calibrated(800, seed)
        new, score, outcome = calibrated(4000, 1000 + seed)
        fitted = cb.Multicalibrator(backend=backend).fit(X, y, scores=p)
        changed += fitted.improved_
        worse.append(loss(outcome, fitted(new, score)) - loss(outcome, score))
        if not fitted.improved_:
            assert (fitted(new, score) == score).all()
            assert fitted.models_ == ()
            assert "left unchanged" in fitted.notes_[-1].text
    assert changed <= 2
    assert np.mean(worse) < 0.002


def test_the_rule_is_one_standard_error_of_the_held_out_gain():
    for X, p, y in (crossed(2000), calibrated(500)):
        fitted = quick().fit(X, y, scores=p)
        assert fitted.improved_ == (fitted.gain_ > fitted.gain_error_)
        assert fitted.losses_[0] == pytest.approx(loss(y, p), abs=1e-9)
        assert fitted.gain_ == pytest.approx(fitted.losses_[0] - fitted.losses_[1:].min(), abs=1e-12)


def test_the_number_of_rounds_has_the_least_held_out_loss():
    X, p, y = crossed(3000)
    fitted = cb.Multicalibrator(backend="sklearn").fit(X, y, scores=p)
    assert fitted.n_rounds_ == fitted.losses_[1:].argmin()
    assert fitted.losses_.size - 2 - fitted.n_rounds_ <= 3
    assert all(len(model.rounds) == fitted.n_rounds_ for model in fitted.models_)


def test_the_scale_lowers_the_held_out_loss_and_is_at_least_one():
    start, end = np.zeros(4000), np.full(4000, 0.5)
    event = (np.random.default_rng(0).random(4000) < expit(0.8)).astype(int)
    assert _best_scale(start, end, event, np.ones(4000)) == pytest.approx(logit(event.mean()) / 0.5, abs=1e-3)
    assert _best_scale(start, end, 1 - event, np.ones(4000)) == 1.0
    X, p, y = crossed(3000)
    fitted = quick(max_rounds=1).fit(X, y, scores=p)
    assert 1 < fitted.scale_ <= 2
    assert {model.scale for model in fitted.models_} == {fitted.scale_}


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_same_seed_gives_identical_bytes_with_any_number_of_threads_and_jobs(backend):
    X, p, y = crossed(2000)
    found = []
    for threads, jobs in ((1, None), (2, None), (2, 2)):
        with threadpool_limits(threads), parallel_config(backend="threading"):
            found.append(quick(backend=backend, n_jobs=jobs).fit(X, y, scores=p)(X, p))
    assert found[0].tobytes() == found[1].tobytes() == found[2].tobytes()
    assert found[0].tobytes() != quick(backend=backend, random_state=1).fit(X, y, scores=p)(X, p).tobytes()


@pytest.mark.parametrize("backend", BACKENDS)
def test_trees_predict_as_their_library_does(backend, monkeypatch):
    """On numbers, categories and missing cells, with values that the fit did not see."""
    rng = np.random.default_rng(0)
    n = 3000
    X = np.column_stack([rng.normal(size=n), rng.integers(0, 12, n), rng.integers(0, 4, n)])
    X[rng.random((n, 3)) < 0.1] = np.nan
    coders = (
        boosted_trees.fit_codes(X[:, :1])[0],
        boosted_trees.CategoryCodes("1", tuple(range(12)), False),
        boosted_trees.CategoryCodes("2", tuple(range(4)), False),
    )
    codes = boosted_trees.apply_codes(coders, X)
    score = rng.normal(size=n)
    event = (rng.random(n) < expit(score + np.nan_to_num(X[:, 0]) * (X[:, 2] > 1))).astype(int)
    rows = boosted_trees.TreeRows(coders, codes, event, rng.uniform(0.5, 2, n))
    kept = {}
    if backend == "sklearn":
        usual = boosted_trees.HistGradientBoostingRegressor.fit

        def fit(self, design, *args, **options):
            kept.update(model=self, design=design)
            return usual(self, design, *args, **options)

        monkeypatch.setattr(boosted_trees.HistGradientBoostingRegressor, "fit", fit)
        expected = lambda: kept["model"].predict(kept["design"])  # noqa: E731
    else:
        usual = lightgbm.train

        def train(*args, **options):
            kept["model"] = usual(*args, **options)
            return kept["model"]

        monkeypatch.setattr(lightgbm, "train", train)
        expected = lambda: kept["model"].predict(rows.design(score, found.cuts), raw_score=True)  # noqa: E731
    found = boosted_trees.fit_round(rows, score, boosted_trees.TreeSettings(9, 20, 0), backend)
    assert {node.feature for tree in found.trees for node in tree if not node.is_leaf} == {0, 1, 2, 3}
    np.testing.assert_allclose(found(codes, score), expected(), rtol=0, atol=1e-12)


def frames():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    n = 3000
    region = rng.choice(["north", "south", "east"], n)
    income = rng.lognormal(size=n)
    p = rng.uniform(0.2, 0.8, n)
    y = (rng.random(n) < expit(logit(p) + 0.9 * np.where(region == "north", 1, -1) * (income > 1))).astype(int)
    gaps = rng.random(n) < 0.1
    known = [None if gap else value for gap, value in zip(gaps, income.tolist(), strict=True)]
    text = {"region": region.tolist(), "income": known}
    return pandas.DataFrame(text), polars.DataFrame(text), p, y


@pytest.mark.parametrize("backend", BACKENDS)
def test_frames_with_text_and_missing_cells_give_equal_predictions(backend):
    in_pandas, in_polars, p, y = frames()
    first, second = (quick(backend=backend).fit(frame, y, scores=p) for frame in (in_pandas, in_polars))
    assert first.improved_
    assert first(in_pandas, p).tobytes() == second(in_polars, p).tobytes()
    declared = quick(backend=backend).fit(in_pandas.astype({"region": "category"}), y, scores=p)
    assert declared(in_pandas, p).tobytes() == first(in_pandas, p).tobytes()
    assert list(first.feature_names_in_) == ["region", "income"]


def test_unseen_labels_are_treated_as_missing():
    frame, _, p, y = frames()
    fitted = quick().fit(frame, y, scores=p)
    unseen, missing = frame.assign(region="west"), frame.assign(region=None)
    assert fitted(unseen, p).tobytes() == fitted(missing, p).tobytes()
    assert np.isfinite(fitted(unseen, p)).all()


def test_rare_labels_share_a_code():
    pandas = pytest.importorskip("pandas")
    labels = [f"label {i % 300}" for i in range(3000)]
    X, p, y = calibrated(3000)
    frame = pandas.DataFrame({"many": labels, "x": X[:, 0]})
    fitted = quick().fit(frame, y, scores=p)
    coder = fitted._coders[0]
    assert (len(coder.labels), coder.n_codes) == (200, 202)
    assert fitted(frame.assign(many="new"), p).shape == (3000,)


def test_named_features_alone_define_the_subgroups():
    X, p, y = crossed(3000)
    frame = pytest.importorskip("pandas").DataFrame({"a": X[:, 0], "b": X[:, 1], "noise": p})
    fitted = quick(features=["a", "b"]).fit(frame, y, scores=p)
    assert fitted(frame.assign(noise=0.0), p).tobytes() == fitted(frame, p).tobytes()
    by_place = quick(features=[0, 1]).fit(frame.to_numpy(), y, scores=p)
    assert by_place(frame.to_numpy(), p).tobytes() == fitted(frame, p).tobytes()
    with pytest.raises(cb.InputError, match="features must name columns of X; got 'c'"):
        quick(features=["c"]).fit(frame, y, scores=p)


def test_rows_of_weight_zero_do_not_matter():
    X, p, y = crossed(3000)
    weight = np.repeat([1.0, 0.0], [2000, 1000])
    with_zeros = quick().fit(X, np.where(weight > 0, y, 1 - y), weight, scores=p)
    without = quick().fit(X[:2000], y[:2000], np.ones(2000), scores=p[:2000])
    assert with_zeros(X, p).tobytes() == without(X, p).tobytes()


def test_weights_move_predictions_towards_heavy_rows():
    X, p, y = crossed(4000, size=0.0)
    heavy = quick().fit(X, y, np.where(y == 1, 4.0, 1.0), scores=p)
    assert heavy.improved_
    assert (heavy(X, p) > p).mean() > 0.95


def test_rows_of_a_cluster_stay_together():
    """Each row occurs twenty times: without clusters the held-out rows are not new, and noise looks like a gain."""
    X, p, y = calibrated(100)
    X, p, y, cluster = (np.repeat(each, 20, axis=0) for each in (X, p, y, np.arange(100)))
    assert quick(min_samples_leaf=5).fit(X, y, scores=p).improved_
    assert not quick(min_samples_leaf=5).fit(X, y, scores=p, cluster=cluster).improved_
    with_splitter = quick(cv=GroupKFold(3)).fit(X, y, scores=p, cluster=cluster)
    assert not with_splitter.improved_


def test_splits_must_hold_out_each_row_at_most_once():
    X, p, y = crossed(1000)
    one_split = [(np.arange(500), np.arange(500, 1000))]
    assert len(quick(cv=one_split).fit(X, y, scores=p).losses_) > 2
    assert len(quick(cv=KFold(3)).fit(X, y, scores=p).losses_) > 2
    for cv in (ShuffleSplit(3, test_size=0.5, random_state=0), [], "five"):
        with pytest.raises(cb.InputError, match="cv must be a number of folds, or splits"):
            quick(cv=cv).fit(X, y, scores=p)


def test_given_splits_count_rows_of_weight_zero():
    X, p, y = crossed(3000)
    weight = np.tile([1.0, 0.0, 1.0], 1000)
    used = np.flatnonzero(weight)
    half = np.arange(3000) < 1500
    splits = [(np.flatnonzero(half), np.flatnonzero(~half)), (np.flatnonzero(~half), np.flatnonzero(half))]
    of_used = [(np.flatnonzero(half[used]), np.flatnonzero(~half[used]))]
    of_used += [test_train[::-1] for test_train in of_used]
    with_zeros = quick(cv=splits).fit(X, y, weight, scores=p)
    without = quick(cv=of_used).fit(X[used], y[used], np.ones(2000), scores=p[used])
    assert with_zeros.improved_
    assert with_zeros(X, p).tobytes() == without(X, p).tobytes()


def test_splits_of_a_fitted_classifier_may_be_an_iterator_and_cover_all_rows():
    X, _, y = crossed(1000)
    whole = np.arange(1000)
    folds = [(whole[500:], whole[:500]), (whole[:500], whole[500:])]
    model = quick(estimator=LogisticRegression(), cv=iter(folds)).fit(X, y)
    assert model(X).tobytes() == quick(estimator=LogisticRegression(), cv=folds).fit(X, y)(X).tobytes()
    with pytest.raises(cb.InputError, match=r"hold out each row once if a classifier is fitted; 500 of 1,000 rows"):
        quick(estimator=LogisticRegression(), cv=folds[:1]).fit(X, y)


@pytest.mark.parametrize(("n", "events"), [(1, 0), (1, 1), (20, 0), (20, 20), (40, 2)])
def test_too_few_events_leave_scores_unchanged_with_a_warning(n, events):
    X, p, _ = crossed(n)
    with pytest.warns(cb.CalibrantWarning, match=r"left unchanged: there are .* fewer than the 5 folds"):
        fitted = quick().fit(X, np.arange(n) < events, scores=p)
    assert not fitted.improved_
    assert (fitted(X, p) == p).all()


def test_ties_and_extreme_scores_are_finite():
    X, _, y = crossed(600)
    for p in (np.full(600, 0.5), np.where(y == 1, 1.0, 0.0), np.zeros(600), np.where(X[:, 0] == 1, 1.0, 0.0)):
        after = quick().fit(X, y, scores=p)(X, p)
        assert ((after >= 0) & (after <= 1)).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_constant_missing_and_infinite_columns_are_taken(backend, tmp_path):
    rng = np.random.default_rng(0)
    odd = np.arange(600) % 2 == 1
    p, y = np.full(600, 0.5), (rng.random(600) < np.where(odd, 0.8, 0.2)).astype(int)
    nothing = np.full(600, np.nan)
    for X in (np.zeros((600, 1)), nothing[:, None], np.column_stack([nothing, np.where(odd, np.inf, -np.inf)])):
        fitted = quick(backend=backend).fit(X, y, scores=p)
        after = fitted(X, p)
        assert np.isfinite(after).all()
        assert fitted(X[:0], p[:0]).size == 0
        cb.save(fitted, tmp_path / "cal.json")
        assert cb.load(tmp_path / "cal.json")(X, p).tobytes() == after.tobytes()
    assert after[odd].min() > 0.6
    assert after[~odd].max() < 0.4
    labels = np.array([None] * 600, dtype=object)
    labels[::7] = "rare"
    assert np.isfinite(quick(backend=backend).fit(labels[:, None], y, scores=p)(labels[:, None], p)).all()


def test_one_percent_of_events():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (12_000, 2))
    p = np.full(12_000, 0.012)
    y = (rng.random(12_000) < np.where(X[:, 0] == X[:, 1], 0.02, 0.004)).astype(int)
    fitted = quick(max_rounds=10).fit(X, y, scores=p)
    after = fitted([[0, 0], [0, 1]], [0.012, 0.012])
    assert fitted.improved_
    assert after[0] > 0.015
    assert after[1] < 0.008


def test_slope_and_intercept_exist_for_separated_classes():
    slope, intercept = slope_and_intercept(np.array([-2.0, -1.0, 1.0, 2.0]), np.array([0, 0, 1, 1]), np.ones(4))
    assert 1 < slope < 3
    assert intercept == pytest.approx(0, abs=1e-9)
    _, p, y = calibrated(20_000)
    slope, intercept = slope_and_intercept(logit(p), y, np.ones(y.size))
    expected = cb.metrics.slope_intercept(y, p)
    assert (slope, intercept) == pytest.approx((expected.slope, expected.intercept), abs=1e-3)


def test_a_frozen_classifier_equals_its_scores():
    X, _, y = crossed(3000)
    model = LogisticRegression().fit(X[:1000], y[:1000])
    rest, outcome = X[1000:], y[1000:]
    scores = model.predict_proba(rest)[:, 1]
    wrapped = quick(estimator=FrozenEstimator(model)).fit(rest, outcome)
    alone = quick().fit(rest, outcome, scores=scores)
    assert wrapped(rest).tobytes() == alone(rest, scores).tobytes()
    assert wrapped.improved_ == alone.improved_
    assert (wrapped.predict(rest) == (alone(rest, scores) > 0.5)).all()


def test_a_classifier_is_fitted_with_out_of_fold_scores_in_a_pipeline():
    X, _, y = crossed(3000)
    model = make_pipeline(StandardScaler(), quick(estimator=LogisticRegression())).fit(X, y)
    assert model.predict_proba([[0, 0], [0, 1]])[:, 1].round(1).tolist() == [0.6, 0.4]


def test_scores_and_clusters_can_be_routed():
    X, p, y = crossed(600)
    with config_context(enable_metadata_routing=True):
        inside = quick().set_fit_request(scores=True, cluster=True).set_predict_proba_request(scores=True)
        model = make_pipeline(StandardScaler(), inside).fit(X, y, scores=p, cluster=np.arange(600))
        assert model.predict_proba(X, scores=p).shape == (600, 2)


def test_labels_may_be_text():
    X, p, y = crossed(1000)
    fitted = quick().fit(X, np.where(y == 1, "yes", "no"), scores=p)
    assert set(fitted.predict(X, p)) == {"no", "yes"}
    assert fitted(X, p).tobytes() == quick().fit(X, y, scores=p)(X, p).tobytes()


def hazards():
    X, p, y = crossed(100)
    three = np.arange(100) % 3
    return [
        (lambda: quick().fit(X, y), "scores must be given if there is no classifier"),
        (lambda: quick().fit(X, y, scores=p + 1), r"scores must lie in \[0, 1\]"),
        (lambda: quick().fit(X, y, scores=p[:50]), "scores has 50 rows, y has 100"),
        (lambda: quick().fit(X[:50], y, scores=p), "X has 50 rows, y has 100"),
        (lambda: quick().fit(X[:, 0], y, scores=p), "X must have two dimensions"),
        (lambda: quick().fit(X, three, scores=p), "y must hold two classes; got 3"),
        (lambda: quick().fit(X, y, scores=np.where(p > 0.5, np.nan, p)), "scores has .* missing values"),
        (lambda: quick().fit(X, y, scores=p, cluster=[1]), "cluster has 1 rows"),
        (lambda: quick().fit(X.astype("M8[s]"), y, scores=p), "must hold numbers or categories"),
        (lambda: quick(backend="xgboost").fit(X, y, scores=p), "backend must be 'auto' or 'sklearn' or 'lightgbm'"),
        (lambda: quick(max_rounds=0).fit(X, y, scores=p), "max_rounds must be a whole number from 1 to 1,000"),
        (lambda: quick(max_leaf_nodes=1).fit(X, y, scores=p), "max_leaf_nodes must be a whole number from 2 to 256"),
        (lambda: quick(cv=1).fit(X, y, scores=p), "cv must be a whole number of at least 2"),
        (lambda: quick().fit(X, y, scores=p)(X), "scores must be given, as in the fit"),
        (lambda: quick().fit(X, y, scores=p)(X, p[:2]), "scores has 2 rows, X has 100"),
        (lambda: quick(estimator=LogisticRegression()).fit(X, y, scores=p), "scores must not be given if there is"),
        (lambda: quick(estimator=LogisticRegression()).fit(X, three), "y must have two classes; got 3"),
    ]


@pytest.mark.parametrize("case", range(len(hazards())))
def test_bad_input_is_named(case):
    call, message = hazards()[case]
    with pytest.raises(cb.InputError, match=message):
        call()


def test_unknown_arguments_of_fit_are_type_errors():
    with pytest.raises(TypeError, match="unexpected keyword argument 'score'"):
        quick().fit(np.zeros((4, 1)), [0, 1, 0, 1], score=[0.2, 0.7, 0.3, 0.6])


def test_the_other_backend_is_named_if_it_is_missing(monkeypatch):
    monkeypatch.setattr(boosted_trees.importlib.util, "find_spec", lambda name: None)
    assert boosted_trees.choose_backend("auto") == "sklearn"
    with pytest.raises(ModuleNotFoundError, match=r'needs LightGBM: pip install "calibrant\[lightgbm\]"'):
        boosted_trees.choose_backend("lightgbm")


# Files


def saved(tmp_path, fitted):
    cb.save(fitted, tmp_path / "cal.json")
    return json.loads((tmp_path / "cal.json").read_text())


# scikit-learn before 1.9 cannot read the names of columns of Polars 2, and warns.
@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_file_restores_bitwise_equal_predictions(tmp_path, backend):
    frame, in_polars, p, y = frames()
    for fitted in (
        quick(backend=backend).fit(frame, np.where(y == 1, "yes", "no"), scores=p),
        quick(backend=backend, features=["income"], cv=KFold(2), random_state=None).fit(frame, y, scores=p),
    ):
        cb.save(fitted, tmp_path / "cal.json")
        restored = cb.load(tmp_path / "cal.json")
        assert restored(frame, p).tobytes() == fitted(frame, p).tobytes()
        assert restored(in_polars, p).tobytes() == fitted(frame, p).tobytes()
        assert restored.classes_.tolist() == fitted.classes_.tolist()
        for name in ("improved_", "n_rounds_", "scale_", "gain_", "gain_error_", "backend_", "notes_"):
            assert getattr(restored, name) == getattr(fitted, name)
        cb.save(restored, tmp_path / "again.json")
        assert (tmp_path / "again.json").read_bytes() == (tmp_path / "cal.json").read_bytes()


def test_unchanged_scores_are_restored_as_such(tmp_path):
    X, p, y = calibrated(300)
    fitted = quick().fit(X, y, scores=p)
    assert not fitted.improved_
    cb.save(fitted, tmp_path / "cal.json")
    restored = cb.load(tmp_path / "cal.json")
    assert not restored.improved_
    assert (restored(X, p) == p).all()


def test_a_model_with_a_classifier_is_saved_by_its_calibrator(tmp_path):
    X, _, y = crossed(500)
    model = quick(estimator=LogisticRegression()).fit(X, y)
    with pytest.raises(cb.InputError, match="got Multicalibrator with a model.*save its calibrator_"):
        cb.save(model, tmp_path / "cal.json")
    cb.save(model.calibrator_, tmp_path / "cal.json")
    scores = model.estimator_.predict_proba(X)[:, 1]
    assert cb.load(tmp_path / "cal.json")(X, scores).tobytes() == model(X).tobytes()


def test_sql_and_onnx_say_that_they_do_not_exist():
    X, p, y = crossed(500)
    fitted = quick().fit(X, y, scores=p)
    for export in (lambda: cb.to_sql(fitted, "p"), lambda: cb.to_onnx(fitted)):
        with pytest.raises(cb.InputError, match="calibrator must"):
            export()


def node(body):
    """Return the first tree that splits."""
    return next(
        tree
        for model in body["models"]
        for each in model["rounds"]
        for tree in each["trees"]
        if isinstance(tree[0], dict)
    )


def set_root(**fields):
    return lambda body: node(body)[0].update(fields)


DAMAGES = {
    "a cycle": set_root(left=0),
    "a child of two parents": lambda body: node(body)[0].update(right=node(body)[0]["left"]),
    "a child beyond the tree": set_root(left=10_000),
    "a negative child": set_root(left=-1),
    "a child that is not whole": set_root(left=1.0),
    "an unknown feature": set_root(feature=3),
    "codes that do not exist": set_root(codes=[[0, 250]]),
    "codes in the wrong order": set_root(codes=[[1, 0]]),
    "codes that overlap": set_root(codes=[[0, 0], [0, 1]]),
    "codes of another form": set_root(codes=[0]),
    "a leaf of text": lambda body: node(body).__setitem__(-1, "0"),
    "an infinite leaf": lambda body: node(body).__setitem__(-1, 1e300),
    "a node without a parent": lambda body: node(body).append(0.0),
    "too many leaves": lambda body: node(body).extend([0.0] * 1000),
    "an empty tree": lambda body: node(body).clear(),
    "another field in a node": set_root(gain=1),
    "another field": lambda body: body.update(extra=1),
    "cuts that fall": lambda body: body["models"][0]["rounds"][0].update(cuts=[1.0, 0.0]),
    "too many cuts": lambda body: body["models"][0]["rounds"][0].update(cuts=[float(i) for i in range(300)]),
    "no trees": lambda body: body["models"][0]["rounds"][0].update(trees=None),
    "a scale of one model": lambda body: body["models"][0].update(scale=7.0),
    "a slope of text": lambda body: body["models"][0].update(slope="1"),
    "missing rounds": lambda body: body["models"][0]["rounds"].pop(),
    "models of another type": lambda body: body.update(models=[1]),
    "no models": lambda body: body.update(models=[]),
    "rounds that are not counted": lambda body: body.update(n_rounds="2"),
    "a negative standard error": lambda body: body.update(gain=[1.0, -1.0]),
    "no gain": lambda body: body.update(gain=None),
    "features of another form": lambda body: body.update(features=[{"name": "0"}]),
    "more features than columns": lambda body: body.update(n_features=1),
    "a feature twice": lambda body: body["features"][0].update(name="1"),
    "a feature that is no column": lambda body: body.update(names=["a", "b"]),
    "labels twice": lambda body: body.update(features=[{"name": "0", "labels": ["a", "a"], "other": False}]),
    "no features": lambda body: body.update(features=[]),
    "names of the wrong number": lambda body: body.update(names=["a"]),
    "another library": lambda body: body.update(backend="pickle"),
    "three classes": lambda body: body.update(classes=[0, 1, 2]),
    "a classifier": lambda body: body["settings"].update(estimator={"part": "os.system"}),
    "a classifier of text": lambda body: body["settings"].update(estimator="LogisticRegression"),
    "a setting of another type": lambda body: body["settings"].update(max_rounds="50"),
}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    X, p, y = crossed(1000)
    folder = tmp_path_factory.mktemp("files")
    fitted = quick(max_rounds=2, cv=2).fit(X, y, scores=p)
    assert fitted.n_rounds_
    return saved(folder, fitted)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_an_input_error(damage, written, tmp_path):
    from calibrant.export.calibrator_files import _checksum

    body = json.loads(json.dumps(written))
    del body["sha256"]
    DAMAGES[damage](body)
    (tmp_path / "cal.json").write_text(json.dumps(body | {"sha256": _checksum(body)}))
    with pytest.raises(cb.InputError, match="is not a calibrator that calibrant can load"):
        cb.load(tmp_path / "cal.json")


def test_the_undamaged_file_is_loaded(written, tmp_path):
    (tmp_path / "cal.json").write_text(json.dumps(written))
    assert cb.load(tmp_path / "cal.json").improved_


def test_categories_of_another_type_are_an_error():
    X, p, y = crossed(1_000)
    text = pd.DataFrame({"k": np.where(X[:, 0] == X[:, 1], "1", "2")})
    fitted = quick().fit(text, y, scores=p)
    with pytest.raises(cb.InputError, match=r"X\['k'\] must hold labels of the same type as in the fit, such as '1'"):
        fitted(text.astype(int), p)
    numbers = text.astype(int).astype("category")
    with pytest.raises(cb.InputError, match="Convert the column to numbers"):
        quick().fit(numbers, y, scores=p)(text, p)


def test_the_note_and_the_advice_fit_what_happened():
    X, p, y = calibrated(500)
    for seed in range(20):
        fitted = quick(random_state=seed).fit(X, y, scores=p)
        if fitted.gain_ < 0:
            assert f"increases by {-fitted.gain_:.3g} per row" in fitted.notes_[-1].text
            break
    else:
        pytest.fail("no fit increased the loss")
    with pytest.raises(cb.InputError, match="fit one per class"):
        quick().fit(X, np.arange(len(y)) % 3, scores=p)
