"""Contracts of every entry of METRICS, oracles, and the laws that tie the metrics together."""

import inspect
import json
import warnings

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import columns, count, some_rows, tables

import calibrant as cb
from calibrant import GCE, METRICS, ScoreTable, losses, norms, significance
from calibrant._support.formatting import metric_key

BINARY = cb.metrics.metric_names("binary")
EVERY = pytest.mark.parametrize("name", BINARY)


# contracts


def measure(name, table):
    """The value, or the InputError of a metric that one class leaves undefined."""
    try:
        return METRICS[name]()(table).value
    except cb.InputError as error:
        assert table.positives in (0, table.size)
        return str(error)


@EVERY
def test_an_entry_builds_a_metric_named_like_it_with_a_function(name):
    metric = METRICS[name]()
    assert metric_key(metric.name) == name
    assert callable(getattr(cb.metrics, name))
    assert isinstance(METRICS[name], type)
    assert getattr(cb.metrics, name).metric is METRICS[name]
    assert getattr(cb.metrics, name).__name__ == name
    assert metric.unit in ("%", "1")


@EVERY
@given(table=tables)
def test_function_and_builder_agree(name, table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cb.CalibrantWarning)
        try:
            value = getattr(cb.metrics, name)(table)
        except cb.InputError as error:
            value = str(error)
    assert value == measure(name, table)


@pytest.mark.parametrize("name", sorted(set(BINARY) - {"bias", "oe_ratio", "debiased_sce", "log_loss"}))
@given(table=tables)
def test_values_lie_in_their_range(name, table):
    value = measure(name, table)
    if not isinstance(value, str):
        largest = np.inf if name == "log_odds_error" else 100 if METRICS[name]().unit == "%" else 1
        assert -1e-15 <= value <= largest * (1 + 1e-15)


@EVERY
@given(pairs=some_rows, random=st.randoms(use_true_random=False))
def test_shuffled_rows_and_added_pieces_give_the_same_bits(name, pairs, random):
    value = measure(name, count(pairs))
    random.shuffle(pairs)
    cut = random.randrange(len(pairs) + 1)
    assert measure(name, count(pairs)) == value
    assert measure(name, count(pairs[:cut]) + count(pairs[cut:])) == value


@EVERY
@given(pairs=some_rows)
def test_frequency_two_gives_the_bits_of_doubled_rows(name, pairs):
    y, p = columns(pairs)
    doubled = ScoreTable.from_arrays(np.tile(y, 2), np.tile(p, 2))
    counted = ScoreTable.from_arrays(y, p, frequency=np.full(len(y), 2))
    assert measure(name, counted) == measure(name, doubled)


@EVERY
def test_specification_survives_json_and_rebuilds_the_metric(name):
    metric = METRICS[name]()
    again = cb.metrics.from_spec(json.loads(json.dumps(metric.spec)))
    assert again.spec == metric.spec
    assert again.name == metric.name
    table = ScoreTable.from_arrays([0, 1, 0, 1, 1], [0.1, 0.4, 0.4, 0.7, 0.9])
    assert again(table).value == metric(table).value


def test_a_specification_that_is_not_a_metric_is_refused():
    with pytest.raises(cb.InputError, match="spec must name one of the metrics .*got 'nonsense'"):
        cb.metrics.from_spec({"name": "nonsense"})
    assert cb.metrics.from_spec({"name": "calbin", "window": 3}).spec["window"] == 3


@EVERY
def test_a_result_holds_all_statistics(name):
    table = ScoreTable.from_arrays([0, 1, 1, 0, 1], [0.1, 0.7, np.nan, 0.4, 0.3], missing="drop")
    result = METRICS[name]()(table)
    document = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert document["value"] == result.value == float(result)
    assert document["schema_version"] == 1
    assert (document["n_in"], document["n_used"], document["n_dropped"]) == (5, 4, 1)
    assert document["notes"][0]["code"] == "missing"
    assert repr(result).startswith(f"{result.metric} = ")
    assert "note: Rows dropped" in repr(result)
    if isinstance(result, cb.metrics.Breakdown):
        expected = ["lower", "upper", "min_score", "max_score", "n", "k", "rate", "mean_score", "loss"]
        assert list(result.per_bin)[:9] == expected
        assert ("rejected" in result.per_bin) == (name == "tce")
        assert {len(column) for column in result.per_bin.values()} == {len(result.partition)}
        assert result._repr_html_().count("<tr>") >= 2


@EVERY
def test_docstrings_are_specifications(name):
    assert "Examples" in inspect.getdoc(getattr(cb.metrics, name))


# oracles


@given(some_rows)
def test_gap_metrics_equal_their_row_by_row_transcription(pairs):
    y, p = columns(pairs)
    members = oracles.members_by_width(p, y, 10)
    table = count(pairs)
    assert cb.ECE()(table).value == pytest.approx(oracles.ece(members), abs=1e-14)
    assert cb.metrics.MCE()(table).value == pytest.approx(oracles.mce(members), abs=1e-14)
    assert cb.metrics.RMSCE()(table).value == pytest.approx(oracles.rmsce(members), abs=1e-14)


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.integers(0, 2**32))
def test_tce_equals_algorithms_1_and_2_row_by_row(y, seed):
    p = np.sort(np.random.default_rng(seed).random(len(y)))
    n_min, n_max = len(y) // 20, max(1, len(y) // 5)
    sizes, _ = oracles.pava_bc_blocks(y, n_min, n_max)
    wanted = oracles.rejections(oracles.members_by_size(p, y, sizes))
    breakdown = cb.TCE()(ScoreTable.from_arrays(y, p))
    assert breakdown.per_bin["n"].tolist() == sizes
    assert breakdown.per_bin["rejected"].sum() == wanted
    assert breakdown.value == pytest.approx(100 * wanted / len(y), rel=1e-15)


# laws


@given(tables)
def test_ece_is_at_most_rmsce_is_at_most_mce(table):
    ece, rmsce, mce = (metric()(table).value for metric in (cb.ECE, cb.metrics.RMSCE, cb.metrics.MCE))
    assert ece <= rmsce + 1e-15
    assert rmsce <= mce + 1e-15


def test_a_table_whose_rates_equal_its_scores_has_error_zero():
    table = ScoreTable.from_counts([0.0, 0.125, 0.5, 0.75, 1.0], [8, 8, 8, 8, 8], [0, 1, 4, 6, 8])
    for name in ("ece", "ace", "mce", "rmsce", "tce", "ecc", "bias", "smooth_ece", "ecce_mad", "ecce_r", "ici", "mcb"):
        assert METRICS[name]()(table).value == 0
    assert cb.metrics.oe_ratio(table) == 1


@given(tables, st.floats(0.001, 0.5), st.floats(0.001, 0.499))
def test_tce_falls_with_alpha(table, alpha, less):
    bins = cb.bins.EqualWidth(5)
    strict = cb.TCE(alpha=alpha * less, bins=bins)(table).value
    assert strict <= cb.TCE(alpha=alpha, bins=bins)(table).value


@given(tables)
def test_pava_tce_does_not_change_when_the_event_is_renamed(table):
    """Plain PAVA has no direction. 1 - p must be exact, so scores are rounded to a coarse grid first."""
    table = table.round(2**-10)
    mirrored = ScoreTable.from_counts(1 - table.score, table.n, table.n - table.k)
    metric = cb.TCE(bins=cb.bins.PAVA())
    assert metric(table).value == pytest.approx(metric(mirrored).value, abs=1e-12)


@given(tables)
def test_signed_gap_averages_to_mean_score_minus_prevalence(table):
    bias = GCE(cb.bins.PAVABC(), losses.signed_gap, norms.weighted_mean)(table).value
    assert bias == pytest.approx(np.dot(table.score, table.n) / table.size - table.prevalence, abs=1e-14)


@given(tables)
def test_norms_are_points_of_one_family(table):
    partition = cb.bins.EqualWidth()(table)
    gap, n = losses.absolute_gap(partition), partition.n
    assert norms.Lp(1)(gap, n) == pytest.approx(norms.weighted_l1(gap, n), abs=1e-15)
    assert norms.Lp(2)(gap, n) == pytest.approx(norms.weighted_l2(gap, n), abs=1e-15)
    assert norms.Lp(3)(gap, n) <= norms.sup(gap, n) + 1e-15
    assert norms.weighted_l1(losses.squared_gap(partition), n) == pytest.approx(
        norms.weighted_l2(gap, n) ** 2, abs=1e-15
    )


# importance weights


def test_importance_weights_of_one_give_the_plain_values(rng):
    p = rng.random(500)
    y = rng.random(500) < p
    plain, weighted = ScoreTable.from_arrays(y, p), ScoreTable.from_arrays(y, p, sample_weight=np.ones(500))
    for name in ("ece", "ace", "mce", "rmsce"):
        assert METRICS[name]()(weighted).value == pytest.approx(METRICS[name]()(plain).value, abs=1e-12)
    for test in (significance.score, significance.bayes, significance.t):
        metric = cb.TCE(test=test)
        assert metric(weighted).value == metric(plain).value


def test_importance_weights_replace_the_exact_test_with_a_note(rng):
    p, w = rng.random(600), rng.integers(1, 6, 600)
    y = rng.random(600) < p**2
    table = ScoreTable.from_arrays(y, p, sample_weight=w)
    found = cb.TCE()(table)
    assert [note.code for note in found.notes] == ["weighted_test"]
    assert "instead of the exact binomial test" in found.notes[0].text
    partition, labels = found.partition, found.partition.labels
    sums = [np.bincount(labels, weights=each) for each in (table.n, table.k, table.w2, table.k2)]
    for ours, expected in zip((partition.n, partition.k, partition.w2, partition.k2), sums, strict=True):
        assert ours == pytest.approx(expected, rel=1e-12)
    n, k, w2, k2 = (each[labels] for each in sums)
    pvalue = significance.weighted(k, n, table.score, w2=w2, k2=k2)
    assert found.value == pytest.approx(100 * table.n[pvalue <= 0.05].sum() / table.size)
    with pytest.warns(cb.CalibrantWarning, match="instead of the exact binomial test"):
        assert cb.tce(y, p, sample_weight=w) == found.value
    assert cb.TCE()(y, p, frequency=w).notes == ()
    assert not [note for note in cb.TCE(test=significance.score)(table).notes if note.code == "weighted_test"]


def test_the_weighted_test_keeps_its_level_where_repeated_rows_do_not(rng):
    """Whole weights 1..5 of calibrated scores: as frequencies they claim rows that are not there."""
    rejected = {"sample_weight": [], "frequency": []}
    for _ in range(60):
        p, w = rng.random(1000), rng.integers(1, 6, 1000)
        y = rng.random(1000) < p
        for option, values in rejected.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", cb.CalibrantWarning)
                values.append(cb.tce(y, p, **{option: w}))
    assert np.mean(rejected["sample_weight"]) < 15
    assert np.mean(rejected["frequency"]) > 25


def test_shuffled_weighted_rows_give_bitwise_identical_results(rng):
    p, w = rng.integers(0, 10, 400) / 10, rng.choice([0.1, 0.2, 0.3], 400)
    y = rng.random(400) < p
    metrics = (cb.ECE(), cb.metrics.ACE(), cb.TCE(test=significance.score), cb.TCE())
    values = set()
    for _ in range(30):
        i = rng.permutation(400)
        table = ScoreTable.from_arrays(y[i], p[i], sample_weight=w[i])
        values.add(tuple(metric(table).value for metric in metrics))
    assert len(values) == 1


@pytest.mark.parametrize("test", [significance.binomial, significance.score, significance.bayes, significance.t])
def test_weighted_bins_of_one_class_are_judged_like_counted_ones(rng, test):
    """k / n is exactly 1 there, whatever the weights round to."""
    metric = cb.TCE(test=test, bins=cb.bins.EqualWidth(1))
    for _ in range(50):
        w = rng.random(4)
        sure = ScoreTable.from_arrays([1, 1, 1, 1], [1, 1, 1, 1], sample_weight=w)
        assert metric(sure).value == 0
        assert 0 <= metric(ScoreTable.from_arrays([1, 1, 1, 1], rng.random(4), sample_weight=w)).value <= 100 + 1e-12


def test_scaling_importance_weights_has_no_effect(rng):
    p, w = rng.random(400), rng.exponential(size=400)
    y = rng.random(400) < p**2
    for metric in (cb.ECE(), cb.metrics.ACE(), cb.TCE(test=significance.score), cb.TCE()):
        values = [metric(ScoreTable.from_arrays(y, p, sample_weight=c * w)).value for c in (1, 0.1, 1 / 3, 0.7)]
        assert values[1:] == pytest.approx([values[0]] * 3, rel=1e-12)


# options


def test_n_bins_and_bins_together_are_an_error():
    for name in ("ece", "ace", "mce", "rmsce"):
        with pytest.raises(cb.InputError, match="n_bins must not be given together with bins"):
            getattr(cb.metrics, name)([0, 1], [0.1, 0.9], n_bins=10, bins=cb.bins.EqualSize(10))


@pytest.mark.parametrize("bins", [10, "quantile", cb.bins.EqualSize, (0, 1)])
def test_objects_other_than_bins_are_refused(bins):
    with pytest.raises(cb.InputError, match=r"bins must be an object such as cb.bins.EqualSize\(10\).*use n_bins"):
        cb.ece([0, 1], [0.1, 0.9], bins=bins)


def test_bins_replace_the_default_bins():
    y, p = [0, 0, 1, 1], [0.1, 0.4, 0.5, 0.9]
    assert cb.ece(y, p, bins=cb.bins.EqualSize(2)) == cb.metrics.ace(y, p, n_bins=2)


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 2, np.nan])
def test_alpha_lies_strictly_between_0_and_1(alpha):
    with pytest.raises(cb.InputError, match="alpha"):
        cb.TCE(alpha=alpha)


@pytest.mark.parametrize("p", [0.5, np.inf, np.nan])
def test_lp_needs_a_finite_p_of_at_least_1(p):
    with pytest.raises(cb.InputError, match="at least 1"):
        norms.Lp(p)


def test_lp_of_high_order_nears_the_largest_value():
    values, sizes = np.array([100.0, 90.0, 0.0]), np.array([1, 1, 1])
    assert norms.Lp(3000)(values, sizes) == pytest.approx(100, rel=1e-3)
    assert norms.Lp(3000)(values / 1000, sizes) == pytest.approx(0.1, rel=1e-3)
    assert norms.Lp(7)(values * 0, sizes) == 0


@pytest.mark.parametrize("test", [significance.binomial, significance.t, significance.score, significance.bayes])
def test_tce_takes_every_test(test, rng):
    p = rng.random(2000)
    y = rng.random(2000) < p**2
    breakdown = cb.TCE(test=test)(ScoreTable.from_arrays(y, p))
    rejected = sum(
        int((test(k, n, q) <= 0.05).sum())
        for k, n, q in zip(
            breakdown.per_bin["k"],
            breakdown.per_bin["n"],
            np.split(breakdown.partition.table.score, breakdown.partition.start[1:]),
            strict=True,
        )
    )
    assert breakdown.per_bin["rejected"].sum() == rejected
    assert GCE.from_spec(breakdown.spec).loss.test is test


def test_the_two_classifiers_of_bella_et_al():
    """Both are right in 90 % of cases; one always says 0.91, the other 0.99."""
    c1, c2 = (ScoreTable.from_counts([p], [1000], [900]) for p in (0.91, 0.99))
    assert [cb.ECE()(c).value for c in (c1, c2)] == pytest.approx([0.01, 0.09])
    assert [cb.TCE()(c).value for c in (c1, c2)] == [0, 100]


# specifications of parts of one's own


def my_bins(table):
    return cb.metrics.Partition.from_cuts(table, [])


def test_user_defined_parts_work_and_their_specification_cannot_be_rebuilt():
    metric = GCE(my_bins, losses.absolute_gap, norms.sup)
    assert metric(ScoreTable.from_arrays([0, 1], [0.2, 0.8])).value == pytest.approx(0)
    assert metric.spec["bins"] == f"user:{__name__}.my_bins"
    with pytest.raises(cb.InputError, match="my_bins"):
        GCE.from_spec(metric.spec)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({}, "spec must be the specification of a GCE"),
        ({"bins": None}, "spec must name parts of Calibrant for bins; got None"),
        ({**cb.ECE().spec, "bins": {"bins.EqualSize": {"n": 3}}}, "n of bins.EqualSize must be a setting"),
    ],
)
def test_invalid_specifications_are_refused(spec, words):
    with pytest.raises(cb.InputError, match=words):
        GCE.from_spec(spec)


def test_user_defined_parts_may_return_any_sequence():
    metric = GCE(
        cb.bins.EqualWidth(2), lambda partition: [0.25] * len(partition), lambda values, sizes: np.float32(0.25)
    )
    breakdown = metric(ScoreTable.from_arrays([0, 1], [0.2, 0.8]))
    assert json.loads(json.dumps(breakdown.to_dict()))["value"] == 0.25


def test_a_breakdown_cannot_be_changed():
    breakdown = cb.TCE()(ScoreTable.from_arrays([0, 1], [0.2, 0.8]))
    for column in breakdown.per_bin.values():
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1


def test_a_specification_can_name_only_registered_parts():
    spec = {**cb.ECE().spec, "norm": "table.ScoreTable"}
    with pytest.raises(cb.InputError, match=r"table\.ScoreTable"):
        GCE.from_spec(spec)
    with pytest.raises(cb.InputError):
        GCE.from_spec({**spec, "norm": "norms.np"})


# what people read


def test_the_repr_of_a_breakdown():
    table = ScoreTable.from_counts([0.1, 0.2, 0.5], [50, 50, 50], [15, 12, 26])
    text = repr(cb.TCE()(table))
    assert text.splitlines()[0] == "TCE = 33.33 %   (150 rows, 35.3 % events, 3 bins)"
    assert "rejected" in text.splitlines()[1]
    many = repr(cb.ECE(n_bins=100)(ScoreTable.from_arrays(np.arange(500) % 2, np.arange(500) / 500)))
    assert "..." in many
    assert len(many.splitlines()) < 20


def test_notes_are_printed():
    breakdown = cb.ECE()(ScoreTable.from_arrays([0, 1, 1], [0.1, 0.7, np.nan], missing="drop"))
    assert "note: Rows dropped because a value is missing: 1." in repr(breakdown)
    assert "missing: 1" in breakdown._repr_html_()
    assert breakdown.to_dict()["notes"][0]["code"] == "missing"
    assert (breakdown.n_in, breakdown.n_used, breakdown.n_dropped) == (3, 2, 1)


def test_bins_of_more_than_1e9_rows_are_noted():
    table = ScoreTable.from_counts([0.2, 0.5], [2 * 10**9, 2 * 10**9], [4 * 10**8, 10**9])
    breakdown = cb.TCE()(table)
    assert [note.code for note in breakdown.notes] == ["large_bins"]
    assert breakdown.value == 0


def test_critical_values_decide_as_the_pvalues_of_the_weighted_test(rng):
    size, bins = 40, 60
    weight = rng.choice([0.1, 1.0, 2.0, 5.0], (bins, size)) * (rng.random((bins, size)) < rng.random((bins, 1)))
    weight[:, 0] = 1.0
    event = rng.random((bins, size)) < rng.choice([0.0, 0.03, 0.5, 1.0], (bins, 1))
    sums = tuple(np.sum(each, axis=1) for each in (weight * event, weight, weight**2, weight**2 * event))
    which = rng.integers(0, bins, 20_000)
    p = np.where(rng.random(which.size) < 0.1, rng.choice([0.0, 0.5, 1.0], which.size), rng.random(which.size) ** 3)
    k, n, w2, k2 = (each[which] for each in sums)
    for alpha in (1e-9, 0.05, 0.5):
        found = significance.weighted_decisions(sums, which, p, alpha)
        assert (found == (significance.weighted(k, n, p, w2=w2, k2=k2) <= alpha)).all()
        assert 0 < found.mean() < 1
