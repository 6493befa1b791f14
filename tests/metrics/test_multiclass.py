"""Several classes: class-wise and top-label reductions, class proportions."""

import json

import numpy as np
import pytest
from scipy.stats import binomtest, chi2

import calibrant as cb


@pytest.fixture
def forecast(rng):
    logits = rng.normal(size=(400, 3)) * 1.5
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    y = np.array([rng.choice(3, p=row) for row in proba])
    return y, proba


def test_classwise_is_the_mean_of_one_against_the_rest(forecast):
    y, proba = forecast
    for metric in (cb.TCE(), cb.ECE(n_bins=15), cb.METRICS["brier"](), cb.metrics.CalBin(), cb.METRICS["calloss"]()):
        each = [metric(cb.ScoreTable.from_arrays(y == j, proba[:, j])).value for j in range(3)]
        result = cb.metrics.classwise(metric, y, proba)
        assert result.value == float(result) == pytest.approx(np.mean(each), rel=1e-14)
        assert result.total == pytest.approx(np.sum(each), rel=1e-14)
        assert [result.per_class[j].value for j in range(3)] == each


def test_both_normalisations_of_brier(forecast):
    y, proba = forecast
    onehot = np.eye(3)[y]
    result = cb.metrics.classwise(cb.METRICS["brier"](), y, proba)
    assert result.total == pytest.approx(((proba - onehot) ** 2).sum(axis=1).mean())  # Brier 1950
    assert result.value == pytest.approx(((proba - onehot) ** 2).mean())  # Bella et al.


def test_classes_in_another_order_change_nothing_but_the_order(forecast):
    y, proba = forecast
    names = np.array(["b", "c", "a"])[y]
    result = cb.metrics.classwise(cb.ECE(), names, proba, classes=["b", "c", "a"])
    shuffled = cb.metrics.classwise(cb.ECE(), names, proba[:, [2, 0, 1]])  # sorted labels: a, b, c
    assert result.value == pytest.approx(shuffled.value, rel=1e-14)
    assert {k: v.value for k, v in result.per_class.items()} == {k: v.value for k, v in shuffled.per_class.items()}


def test_top_label_is_the_confidence_of_the_argmax(forecast):
    y, proba = forecast
    table = cb.metrics.top_label(y, proba)
    assert table == cb.ScoreTable.from_arrays(proba.argmax(axis=1) == y, proba.max(axis=1))


def test_of_equal_probabilities_the_first_column_counts():
    table = cb.metrics.top_label([0, 1], [[0.5, 0.5], [0.5, 0.5]])
    assert (table.n.tolist(), table.k.tolist()) == ([2], [1])


def test_rows_must_sum_to_one(forecast):
    y, proba = forecast
    with pytest.raises(cb.InputError, match="sum to 1; 400 of 400 do not, the first is row 0"):
        cb.metrics.classwise(cb.ECE(), y, proba * 0.9)
    inexact = proba.copy()
    inexact[7, 0] += 1e-7
    result = cb.metrics.classwise(cb.ECE(), y, inexact)
    assert [(note.code, note.count) for note in result.notes] == [("row_sums", 1)]
    assert [note.code for note in cb.metrics.top_label(y, inexact).notes] == ["row_sums"]


@pytest.mark.parametrize(
    ("y", "proba", "match"),
    [
        ([0, 1], [[0.5, 0.5]], "proba has 1 rows, y_true has 2"),
        ([0, 1], [0.5, 0.5], "one column per class"),
        ([0, 0], [[0.5, 0.5], [0.4, 0.6]], "one column per class of y_true; got 2 columns and 1 classes"),
        ([0, np.nan], [[0.5, 0.5], [0.4, 0.6]], "missing"),
        ([0, 1], [[0.5, np.nan], [0.4, 0.6]], "proba has 1 missing value"),
        ([0, 1], [[1.5, -0.5], [0.4, 0.6]], r"proba must lie in \[0, 1\]"),
        ([], np.empty((0, 2)), "no rows"),
    ],
)
def test_bad_input_is_refused(y, proba, match):
    with pytest.raises(cb.InputError, match=match):
        cb.metrics.classwise(cb.ECE(), y, proba)


def test_a_label_outside_the_classes_is_refused():
    with pytest.raises(cb.InputError, match="row 1 is 2"):
        cb.metrics.top_label([0, 2], [[0.5, 0.5], [0.4, 0.6]], classes=[0, 1])
    assert cb.metrics.classwise(cb.ECE(), [0, 0], [[0.5, 0.5], [0.4, 0.6]], classes=[0, 1]).per_class.keys() == {0, 1}


def test_rows_with_missing_values_are_dropped_on_request(forecast):
    y, proba = forecast
    gaps = y.astype(float)
    gaps[[3, 7]] = np.nan
    proba = proba.copy()
    proba[9, 1] = np.nan
    used = np.setdiff1d(np.arange(y.size), [3, 7, 9])
    with pytest.raises(cb.InputError, match="Pass missing='drop'"):
        cb.metrics.classwise(cb.ECE(), gaps, proba)
    found = cb.metrics.classwise(cb.ECE(), gaps, proba, missing="drop")
    assert found.value == cb.metrics.classwise(cb.ECE(), y[used], proba[used]).value
    assert [(note.code, note.count) for note in found.notes] == [("missing", 3)]
    assert cb.metrics.top_label(gaps, proba, missing="drop") == cb.metrics.top_label(y[used], proba[used])


def test_proportions_drop_rows_with_missing_labels_on_request():
    y, z, by = ["a", None, "b", "b", "a"], ["a", "b", "a", None, "b"], [0, 0, 0, 1, 2]
    with pytest.raises(cb.InputError, match="y_true has 1 missing value .* Pass missing='drop'"):
        cb.metrics.proportions(y, z)
    found = cb.metrics.proportions(y, z, by={"half": by}, missing="drop")
    assert found.confusion.tolist() == [[1, 1], [1, 0]]
    assert {key: group.size for key, group in found.groups.items()} == {0: 2, 2: 1}
    assert [(note.code, note.count) for note in found.notes] == [("missing", 2)]


def test_reprs_of_results(forecast):
    y, proba = forecast
    result = cb.metrics.classwise(cb.TCE(), y, proba)
    assert repr(result).startswith("class-wise TCE = ")
    assert json.loads(json.dumps(result.to_dict()))["per_class"][2]["label"] == 2


def test_object_labels_keep_the_order_of_numbers():
    y, proba = np.arange(12), np.eye(12) * 0.9 + 0.1 / 12
    for labels in (y, y.astype(object), y.tolist()):
        assert cb.metrics.classwise(cb.METRICS["brier"](), labels, proba).value < 0.001
        assert cb.metrics.top_label(labels, proba).positives == 12
        assert cb.metrics.proportions(labels, labels).labels == list(range(12))


def test_a_frames_columns_name_the_classes():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame([[0.1, 0.9], [0.9, 0.1], [0.8, 0.2], [0.2, 0.8]], columns=["b", "a"])
    y = list("abba")
    assert cb.metrics.classwise(cb.METRICS["brier"](), y, frame).value == pytest.approx(0.025)
    assert cb.metrics.top_label(y, frame).positives == 4
    with pytest.raises(cb.InputError, match="the frame has"):
        cb.metrics.classwise(cb.ECE(), y, frame, classes=["a", "b"])
    with pytest.raises(cb.InputError, match="Pass classes, the class of each column"):
        cb.metrics.classwise(cb.ECE(), y, frame.rename(columns={"a": "p_a"}))
    renamed = frame.rename(columns={"a": "p_a", "b": "p_b"})
    assert cb.metrics.classwise(cb.METRICS["brier"](), y, renamed, classes=["b", "a"]).value == pytest.approx(0.025)


def test_rows_of_frames_must_be_aligned():
    pd = pytest.importorskip("pandas")
    y, proba = pd.Series([0, 1, 1]), pd.DataFrame([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]])
    for call in (lambda: cb.metrics.classwise(cb.ECE(), y[::-1], proba), lambda: cb.metrics.top_label(y[::-1], proba)):
        with pytest.raises(cb.InputError, match="indexes of y_true and proba differ"):
            call()
    with pytest.raises(cb.InputError, match="indexes of y_true and y_pred differ"):
        cb.metrics.proportions(y, y[::-1])


def test_masks_objects_and_coarse_floats_are_read_like_scores(forecast):
    y, proba = forecast
    wanted = cb.metrics.classwise(cb.ECE(), y, proba).value
    assert cb.metrics.classwise(cb.ECE(), y, proba.astype(object)).value == pytest.approx(wanted)
    assert cb.metrics.classwise(cb.ECE(), y, proba.tolist()).value == pytest.approx(wanted)
    coarse = cb.metrics.classwise(cb.ECE(), y, proba.astype(np.float16))
    assert {note.code for note in coarse.notes} == {"float16", "row_sums"}
    masked = np.ma.masked_array(proba, mask=np.zeros_like(proba, dtype=bool))
    masked[5, 1] = np.ma.masked
    with pytest.raises(cb.InputError, match=r"proba has 1 missing value \(first at row 5\)"):
        cb.metrics.classwise(cb.ECE(), y, masked)
    wrong = proba.copy()
    wrong[2, 1] = -3
    with pytest.raises(cb.InputError, match="first at row 2, column 1 is -3.*softmax"):
        cb.metrics.classwise(cb.ECE(), y, wrong)


def test_classwise_results_carry_notes_and_bias(forecast):
    y, proba = forecast
    weights = np.full(400, 2)
    weights[3] = 0
    counted = cb.metrics.classwise(cb.ECE(), y, proba, frequency=weights)
    assert {note.code for note in counted.notes} == {"zero_frequency"}
    assert (
        counted.value == cb.metrics.classwise(cb.ECE(), np.repeat(y, weights), np.repeat(proba, weights, axis=0)).value
    )
    assert cb.metrics.top_label(y, proba, frequency=weights).size == weights.sum()
    assert cb.metrics.top_label(y, proba, sample_weight=weights).importance
    with pytest.raises(cb.InputError, match="must not be given together"):
        cb.metrics.classwise(cb.ECE(), y, proba, frequency=weights, sample_weight=weights)
    result = cb.metrics.classwise(cb.metrics.ECC(cb.costs.LinearCost(1, 5)), y, proba, sample_weight=weights)
    assert {note.code for note in result.notes} == {"zero_weight"}
    assert repr(result).count("signed bias") == 3
    assert "signed_bias" in result.to_dict()["per_class"][0]


def test_infinite_results_are_json_too():
    result = cb.metrics.classwise(cb.METRICS["log_loss"](), [0, 1], [[0.0, 1.0], [0.5, 0.5]])
    document = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert (document["value"], document["value_reason"]) == (None, "the value is inf")


@pytest.mark.parametrize("metric", ["TCEX", cb.GCE, None, abs])
def test_a_metric_must_be_known(forecast, metric):
    with pytest.raises(cb.InputError, match="metric must be a metric object"):
        cb.metrics.classwise(metric, *forecast)


def test_a_metric_object_accepts_rows(forecast):
    y, proba = forecast
    table = cb.ScoreTable.from_arrays(y == 1, proba[:, 1])
    for metric in (cb.TCE(), cb.METRICS["brier"]()):
        assert metric(y == 1, proba[:, 1]).value == metric(table).value
        names = np.where(y == 1, "yes", "no")
        assert metric(names, proba[:, 1], pos_label="yes").value == metric(table).value


# class proportions


def rows_of(confusion, labels):
    """Rows whose confusion matrix (actual, predicted) is the given one."""
    actual, predicted = [], []
    for i, row in enumerate(confusion):
        for j, n in enumerate(row):
            actual += [labels[i]] * n
            predicted += [labels[j]] * n
    return actual, predicted


def test_the_two_matrices_of_bella_et_al():
    """They print predictions as rows; ours are columns."""
    good = cb.metrics.proportions(*rows_of(np.array([[20, 2, 3], [0, 30, 3], [0, 2, 40]]).T, "abc"))
    assert good.actual * 100 == pytest.approx([20, 34, 46])
    assert good.predicted * 100 == pytest.approx([25, 33, 42])
    assert good.test == "Stuart-Maxwell"
    bad = cb.metrics.proportions(*rows_of(np.array([[60, 2], [40, 23]]).T, "ab"))
    assert bad.actual * 125 == pytest.approx([100, 25])
    assert bad.predicted * 125 == pytest.approx([62, 63])
    assert bad.pvalue == binomtest(40, 42, 0.5).pvalue < 1e-9
    assert bad.test == "McNemar, exact"


def test_proportions_agree_with_scikit_learn(rng):
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
    y, z = rng.choice(list("abcd"), 300), rng.choice(list("abcd"), 300)
    result = cb.metrics.proportions(y, z)
    assert np.array_equal(result.confusion, metrics.confusion_matrix(y, z))
    assert result.accuracy == pytest.approx(metrics.accuracy_score(y, z))
    assert result.macro_accuracy == pytest.approx(metrics.balanced_accuracy_score(y, z))
    assert result.f_measure == pytest.approx(metrics.f1_score(y, z, average="macro"))


def test_stuart_maxwell_equals_its_published_formula(rng):
    """The statistic with the last class left out, d' S^-1 d, whichever class that is."""
    from scipy.stats import chi2

    confusion = rng.integers(1, 30, (4, 4))
    d = (confusion.sum(axis=1) - confusion.sum(axis=0))[:3]
    s = -(confusion + confusion.T).astype(float)
    s[np.diag_indices(4)] = confusion.sum(axis=0) + confusion.sum(axis=1) - 2 * np.diag(confusion)
    wanted = chi2.sf(d @ np.linalg.solve(s[:3, :3], d), 3)
    assert cb.metrics.proportions(*rows_of(confusion, "abcd")).pvalue == pytest.approx(wanted, rel=1e-9)


def test_equal_margins_give_a_pvalue_of_one():
    assert cb.metrics.proportions(list("aabb"), list("aabb")).pvalue == 1
    assert cb.metrics.proportions(list("aabbcc"), list("aabbcc")).pvalue == 1
    assert cb.metrics.proportions(list("abc"), list("bca")).pvalue == pytest.approx(1)


def test_groups_are_measured_by_themselves():
    y, z, by = list("aabbaabb"), list("aabbbbbb"), [1, 1, 1, 1, 2, 2, 2, 2]
    result = cb.metrics.proportions(y, z, by=by)
    assert result.groups[1].difference.tolist() == [0, 0]
    assert result.groups[2].difference.tolist() == [-0.5, 0.5]
    assert "group 2: 4 rows" in repr(result)
    assert json.loads(json.dumps(result.to_dict()))["groups"][1]["confusion"]["rows"] == "actual"


def test_a_class_without_errors_does_not_change_the_test():
    y, z = [0] * 10 + [1] * 10, [1] * 5 + [0] * 5 + [1] * 10
    two, three = cb.metrics.proportions(y, z), cb.metrics.proportions(y, z, classes=[0, 1, 2])
    assert two.pvalue == three.pvalue == binomtest(5, 5, 0.5).pvalue
    assert two.test == three.test == "McNemar, exact"


def test_groups_of_dates_and_mixed_labels():
    days = np.array(["2020-01-01", "2020-01-02"], dtype="M8[ns]")[[0, 0, 1, 1]]
    result = cb.metrics.proportions(list("abab"), list("abba"), by=days)
    assert [group.size for group in result.groups.values()] == [2, 2]
    assert len(json.loads(json.dumps(result.to_dict()))["groups"]) == 2
    mixed = cb.metrics.proportions(list("abab"), list("abba"), by=np.array([1, "1", 1, "1"], dtype=object))
    assert [group.size for group in mixed.groups.values()] == [2, 2]
    with pytest.raises(cb.InputError, match="by has 1 missing"):
        cb.metrics.proportions(list("ab"), list("ab"), by=np.array(["2020-01-01", "NaT"], dtype="M8[D]"))


def test_proportions_cannot_be_changed():
    result = cb.metrics.proportions(list("ab"), list("ab"))
    with pytest.raises(ValueError, match="read-only"):
        result.confusion[0, 0] = 99
    assert [note.code for note in cb.metrics.proportions([[0], [1]], [0, 1]).notes] == ["one_column"]


@pytest.mark.parametrize("y_pred", [[0.1, 0.9], [[0.1, 0.9], [0.8, 0.2]], np.array([0.5, 1.0])])
def test_probabilities_are_not_classes(y_pred):
    with pytest.raises(
        cb.InputError, match=r"(looks like a probability|must have one dimension).* Pass labels, such as model.predict"
    ):
        cb.metrics.proportions([0, 1], y_pred)


def test_a_class_that_never_occurs_is_excluded_from_means():
    result = cb.metrics.proportions([0, 1, 1], [0, 1, 1], classes=[0, 1, 2])
    assert result.macro_accuracy == 1
    assert np.isnan(result.recall[2])


@pytest.mark.parametrize(
    ("y", "z", "options", "match"),
    [
        ([0, 1], [0], {}, "y_pred has 1 rows, y_true has 2"),
        ([], [], {}, "no rows"),
        ([0, np.nan], [0, 1], {}, "y_true has 1 missing"),
        ([0, 0], [0, 0], {}, "at least two classes"),
        ([0, 3], [0, 1], {"classes": [0, 1]}, "row 1 is 3"),
        ([0, 1], [0, 1], {"by": [1]}, "by has 1 rows"),
        ([0, 1], [0, 1], {"classes": []}, "at least two classes, each once"),
        ([0, 1], [0, 1], {"classes": [0, 0, 1]}, "at least two classes, each once"),
        ([0, 1], [0, 1], {"classes": 5}, "at least two classes, each once"),
    ],
)
def test_bad_labels_are_refused(y, z, options, match):
    with pytest.raises(cb.InputError, match=match):
        cb.metrics.proportions(y, z, **options)


@pytest.mark.parametrize("seed", range(5))
def test_the_stuart_maxwell_test_inverts_the_covariance_of_the_differences(seed):
    """Against the pseudoinverse, also where classes fall into parts that are never mistaken for each other."""
    rng = np.random.default_rng(seed)
    labels = np.arange(9)
    y = rng.integers(0, 9, 600)
    shift = rng.integers(0, 3, 600) * (rng.random(600) < 0.4)
    predicted = (y + shift) % 9 if seed < 3 else y // 3 * 3 + (y + shift) % 3
    found = cb.metrics.proportions(y, predicted, classes=labels)
    off = found.confusion - np.diag(np.diag(found.confusion)).astype(float)
    difference, covariance = off.sum(1) - off.sum(0), np.diag(off.sum(0) + off.sum(1)) - off - off.T
    statistic = difference @ np.linalg.pinv(covariance) @ difference
    rank = 8 if seed < 3 else 6
    assert found.test == "Stuart-Maxwell"
    assert found.pvalue == pytest.approx(chi2.sf(statistic, rank), rel=1e-9)
