"""evaluate and compare: the rule of the verdict, groups, weights, frames, JSON and text."""

import copy
import importlib.util
import json
import pickle

import numpy as np
import pytest

import calibrant as cb
from calibrant._support import workers
from calibrant.inference.binary_tests import BinaryTests
from calibrant.inference.design import Design
from calibrant.kinds.binary.verdict import decide
from calibrant.results.evaluation import Evaluation

FRAMES = [name for name in ("pandas", "polars", "pyarrow") if importlib.util.find_spec(name)]


def draw(size=3000, power=1.0, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(size)
    return (rng.random(size) < p**power).astype(int), p


def flat(size=6000):
    """Underconfident scores: too close to one half."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.3, 0.7, size)
    return (rng.random(size) < 0.5 + 2 * (p - 0.5)).astype(int), p


def quick(*args, **options):
    return cb.evaluate(*args, **{"n_resamples": 60, **options})


@pytest.mark.parametrize(
    ("rows", "margin", "verdict", "direction"),
    [
        (draw(30_000), 0.1, "calibrated", ""),
        (draw(3000, 1.4), 0.1, "miscalibrated", "overestimates"),
        (draw(3000, 0.7), 0.1, "miscalibrated", "underestimates"),
        (flat(), 0.1, "miscalibrated", "underconfident"),
        (draw(30_000, 1.08), 0.3, "negligible", "overestimates"),
        (draw(200), 0.1, "inconclusive", ""),
        (draw(30_000), cb.AbsoluteMargin(0.03), "calibrated", ""),
        (draw(3000, 1.4), cb.AbsoluteMargin(0.01), "miscalibrated", "overestimates"),
        (draw(30_000, 1.08), cb.AbsoluteMargin(0.06), "negligible", "overestimates"),
        (draw(200), cb.AbsoluteMargin(0.01), "inconclusive", ""),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_verdict(rows, margin, verdict, direction):
    found = quick(*rows, margin=margin)
    assert (found.verdict, found.direction.split(", ")[0]) == (verdict, direction)
    assert repr(found).startswith(f"Verdict: {verdict}")
    assert found.is_significant == (found.pvalue <= 0.05)
    assert found.is_within_margin == (found.equivalence.pvalue <= 0.05)
    assert (found.kind, found.n_rows) == ("binary", len(rows[0]))


def test_evaluation_agrees_with_the_functions_behind_it():
    y, p = draw(500, 1.1)
    table = cb.ScoreTable.from_arrays(y, p)
    found = cb.evaluate(y, p, n_resamples=60, random_state=3)
    assert found.table == table
    for name, metric in {
        "ECE": cb.ECE(),
        "TCE": cb.TCE(bins=cb.bins.PAVABC(sizes="grades")),
        "Brier": cb.METRICS["brier"](),
    }.items():
        assert found[name].interval == cb.interval(metric, table, n_resamples=60, random_state=3)
        assert found[name].null == cb.null(metric, table, n_resamples=60, random_state=3)
    verdict, estimate = decide(BinaryTests.from_design(Design(table)), margin=0.1, alpha=0.05, confidence_level=0.95)
    assert (found.decision, found.details.estimate) == (verdict, estimate)
    assert found["log-odds error"].value == cb.log_odds_error(table)
    absolute = cb.evaluate(y, p, margin=cb.AbsoluteMargin(0.01), n_resamples=60, random_state=3)
    test, size = (
        cb.equivalence(cb.metrics.ACE(), table, margin=0.01, n_resamples=60, random_state=3),
        absolute.equivalence,
    )
    assert (size.name, size.value, size.margin) == (test.metric, test.value, test.margin)
    assert (size.pvalue, size.bound, size.within) == (test.pvalue, test.bound, test.within)
    slope = cb.metrics.slope_intercept(table)
    by_name = {c.name: c.value for c in found.coefficients}
    assert by_name["calibration slope"] == pytest.approx(slope.slope)
    assert by_name["Cox intercept"] == pytest.approx(slope.intercept)
    assert cb.evaluate(table, n_resamples=60, random_state=3).to_dict()["metrics"] == found.to_dict()["metrics"]


def test_the_same_data_get_the_same_verdict_by_default():
    assert quick(*draw(300)).to_dict() == quick(*draw(300)).to_dict()


def test_groups_are_evaluated_alone_and_adjusted():
    y, p = draw(3000)
    group = np.repeat(["c", "a", "b"], 1000)
    wrong = group == "b"
    y[wrong] = np.random.default_rng(5).random(1000) < p[wrong] ** 2
    found = quick(y, p, by=group)
    assert list(found.groups) == ["a", "b", "c"]
    assert next(iter(found.worst_first)) == "b"
    for name, own in found.groups.items():
        alone = quick(y[group == name], p[group == name])
        assert own.decision.omnibus == alone.decision.omnibus
        assert own.decision.deviation == alone.decision.deviation
        assert [m.null for m in own.metrics.values()] == [m.null for m in alone.metrics.values()]
    raw = [own.decision.own_pvalue for own in found.groups.values()]
    assert [found.adjusted[name]["pvalue"] for name in "abc"] == raw
    assert [own.pvalue for own in found.groups.values()] == [found.adjusted[name]["holm"] for name in "abc"]
    assert all(
        found.adjusted[n]["holm"] >= found.adjusted[n]["benjamini_hochberg"] >= raw[i] for i, n in enumerate("abc")
    )
    assert (found.groups["b"].verdict, found.groups["b"].direction) == (
        "miscalibrated",
        "overestimates, underconfident",
    )
    assert "By group" in repr(found)
    assert "By group" in found._repr_html_()


@pytest.mark.parametrize("options", [{}, {"cluster": np.arange(60) // 3}], ids=["independent", "clusters"])
def test_outcomes_that_contradict_all_scores_have_an_infinite_error(options):
    """As many events have score 0 as other rows have score 1, so their residuals cancel."""
    y = np.arange(60) % 2
    for scores, error, verdict in ((1.0 - y, np.inf, "miscalibrated"), (1.0 * y, 0.0, "inconclusive")):
        found = quick(y, scores, **options)
        assert (found.verdict, found.metrics["log-odds error"].value) == (verdict, error)


def test_many_rows_have_the_same_result_on_one_core_and_on_three(monkeypatch):
    """Where scores are many, parts of the decision and of the details run in threads."""
    rng = np.random.default_rng(3)
    p = rng.random(100_000)
    y = (rng.random(p.size) < p**1.05).astype(int)
    found = []
    for cores in (1, 3):
        monkeypatch.setattr(workers, "available_cores", lambda cores=cores: cores)
        one, two = cb.evaluate(y, p, n_resamples=19), cb.compare(y, {"a": p, "b": p**2}, n_resamples=19)
        found.append((one.to_json(), two.to_json()))
    assert found[0] == found[1]


@pytest.mark.parametrize("n_groups", [3, 40])
def test_groups_that_are_started_ahead_have_the_results_of_each_alone(monkeypatch, n_groups):
    """Groups of any size, with ties, without events, and larger than groups that are started ahead."""
    rng = np.random.default_rng(3)
    p = np.concatenate([rng.random(3000), np.round(rng.beta(0.5, 20, 3000), 2), rng.random(12_000)])
    y = (rng.random(p.size) < p**1.2).astype(int)
    by = np.concatenate([rng.integers(0, n_groups - 1, 6000), np.full(12_000, n_groups - 1)])
    y[by == 0] = 0
    options = {"metrics": ["ece", "tce", "brier", "auc", "mcb"], "margin": cb.AbsoluteMargin(0.02), "n_resamples": 49}

    def evaluate(cores, lock=True):
        monkeypatch.setattr(workers, "available_cores", lambda: cores)
        monkeypatch.setattr(workers, "_has_interpreter_lock", lambda: lock)
        found = cb.evaluate(y, p, by=by, **options)
        return found.to_json(), [metric.null.replicates.tobytes() for metric in found.groups[1].metrics.values()]

    alone = evaluate(1)
    assert evaluate(2) == evaluate(5) == evaluate(3, lock=False) == alone
    own = cb.evaluate(y[by == 1], p[by == 1], **options)
    group = cb.evaluate(y, p, by=by, **options).groups[1]
    assert [metric.interval for metric in group.metrics.values()] == [m.interval for m in own.metrics.values()]


def test_groups_by_time_are_ordered():
    y, p = draw(300)
    days = np.array(["2024-03-01", "2024-01-01", "2024-02-01"], dtype="datetime64[D]")[np.arange(300) % 3]
    found = quick(y, p, by=days)
    assert [str(day) for day in found.groups] == ["2024-01-01", "2024-02-01", "2024-03-01"]
    assert [group["group"] for group in found.to_dict()["groups"]] == ["2024-01-01", "2024-02-01", "2024-03-01"]


def test_a_mapping_of_tables_is_evaluated_by_its_keys():
    y, p = draw(400)
    tables = {"a": cb.ScoreTable.from_arrays(y[:200], p[:200]), "b": cb.ScoreTable.from_arrays(y[200:], p[200:])}
    found = quick(tables)
    assert found.table == cb.ScoreTable.from_arrays(y, p)
    assert found.to_dict()["groups"][1]["verdict"] == found.groups["b"].verdict
    for bad, message in (
        ({}, "at least one table; got none"),
        ({"a": [1, 0]}, "must have a ScoreTable for each group; got list"),
    ):
        with pytest.raises(cb.InputError, match=message):
            quick(bad)
    with pytest.raises(cb.InputError, match="by must be omitted with tables; got both"):
        quick(tables, by=[1])


def test_several_columns_make_groups_of_the_observed_combinations():
    pd = pytest.importorskip("pandas")
    y, p = draw(600)
    frame = pd.DataFrame({"region": np.resize(["n", "s", "s"], 600), "year": 2024 + (np.arange(600) >= 300)})
    frame.loc[frame["region"] == "n", "year"] = 2024
    found = quick(y, p, by=frame)
    assert found.by == "region, year"
    assert list(found.groups) == [("n", 2024), ("s", 2024), ("s", 2025)]
    for key, own in found.groups.items():
        rows = (frame["region"] == key[0]) & (frame["year"] == key[1])
        assert own.table == cb.ScoreTable.from_arrays(y[rows], p[rows])
    joined = quick(y, p, by=frame["region"] + frame["year"].astype(str))
    assert [own.to_dict() for own in joined.groups.values()] == [own.to_dict() for own in found.groups.values()]
    assert found.to_dict()["by"] == "region, year"
    assert "By region, year" in repr(found)
    assert len(found.to_frame()) == 4 * len(found.metrics)
    assert quick(y, p, by=[frame["region"], frame["year"]]).to_dict() == found.to_dict()


def test_clusters_groups_and_missing_values_work_together():
    y, p = draw(600)
    cluster, group = (np.arange(600) // 5).astype(float), np.arange(600) % 2
    p, cluster = p.copy(), cluster.copy()
    p[:10], cluster[590:] = np.nan, np.nan
    kept = slice(10, 590)
    found = quick(y, p, cluster=cluster, by=group, missing="drop")
    alone = quick(y[kept], p[kept], cluster=cluster[kept], by=group[kept])
    assert (found.table.n_in, found.table.n_dropped) == (600, 20)
    assert found.decision == alone.decision
    assert all(found.groups[i].decision == alone.groups[i].decision for i in (0, 1))
    assert sum(own.table.n_dropped for own in found.groups.values()) == 20


def test_bad_groups_are_named():
    y, p = draw(30)
    with pytest.raises(cb.InputError, match="by has 29 rows, y_true has 30|y_true has 30"):
        quick(y, p, by=np.zeros(29))
    with pytest.raises(cb.InputError, match="does not have the group of each row"):
        quick(cb.ScoreTable.from_arrays(y, p), by=np.zeros(30))
    with pytest.raises(cb.InputError, match="by has 1 missing value"):
        quick(y, p, by=[None, *["a"] * 29])
    big = np.zeros(2000, dtype=int)
    with pytest.raises(cb.InputError, match=r"at least 20 rows per group.*got 2,000 groups.*round times"):
        quick(big, np.full(2000, 0.1), by=np.arange(2000))


def test_missing_rows_are_dropped_from_groups():
    y, p = draw(200)
    p = p.copy()
    p[:10] = np.nan
    found = quick(y, p, by=np.arange(200) % 2, missing="drop")
    assert found.to_dict()["n_dropped"] == 10
    assert sum(group.table.n_dropped for group in found.groups.values()) == 10
    assert "missing" in [note.code for note in found.notes]


def test_costs_add_lines():
    y, p = draw(300)
    found = quick(y, p, costs=cb.costs.LinearCost(over=1, under=5))
    assert found["ECC (over=1, under=5)"].value == cb.metrics.ecc(y, p, cost=cb.costs.LinearCost(over=1, under=5))
    named = quick(y, p, costs={"fraud": cb.costs.LinearCost(over=1, under=20)})
    assert named["ECC (fraud)"].value == cb.metrics.ecc(y, p, cost=cb.costs.LinearCost(over=1, under=20))
    several = quick(y, p, costs=[cb.costs.LinearCost(), cb.costs.PowerCost(2)])
    assert list(several.metrics)[-2:] == [
        "ECC (over=1.0, under=1.0)",
        "ECC (PowerCost k=2, over=1.0, under=1.0)",
    ]


def test_user_defined_metrics():
    y, p = draw(300)
    found = quick(y, p, metrics={"worst": cb.metrics.MCE()})
    assert list(found.metrics) == ["log-odds error", "worst"]
    with pytest.raises(KeyError, match="is not a metric of this evaluation; it has log-odds error, worst"):
        found["ECE"]
    with pytest.raises(cb.InputError, match="metrics must be a metric object"):
        quick(y, p, metrics={"ece": abs})


def test_an_undefined_metric_is_omitted_and_noted():
    found = quick([0, 0, 0], [0.1, 0.2, 0.3], metrics={"ECE": cb.ECE(), "AUC": cb.METRICS["auc"]()})
    assert list(found.metrics) == ["log-odds error", "ECE"]
    assert "undefined_metrics" in [note.code for note in found.notes]


def test_one_class_and_few_rows_are_evaluated_and_noted():
    found = quick([0, 0, 0], [0.1, 0.2, 0.3])
    assert found.verdict == "inconclusive"
    assert "one_class" in [note.code for note in found.notes]
    json.dumps(found.to_dict(), allow_nan=False)
    assert quick([1], [0.4]).verdict == "inconclusive"


def test_tce_of_importance_weights_has_no_null():
    y, p = draw(300)
    found = quick(y, p, sample_weight=np.linspace(0.5, 2, 300))
    assert np.isnan(found["TCE"].pvalue)
    assert found["TCE"].cells()[2:] == ["", ""]
    assert "total weight" in repr(found)
    assert "undefined_metrics" not in [note.code for note in found.notes]
    assert "no_null" in [note.code for note in found.notes]


def test_frequencies_give_the_evaluation_of_repeated_rows():
    y, p = draw(200)
    times, group = np.arange(200) % 3 + 1, np.arange(200) % 2
    counted = quick(y, p, by=group, frequency=times)
    repeated = quick(*(np.repeat(column, times) for column in (y, p)), by=np.repeat(group, times))
    assert counted.metrics == repeated.metrics
    assert counted.decision == repeated.decision
    for name, own in counted.groups.items():
        assert own.metrics == repeated.groups[name].metrics
        assert own.decision == repeated.groups[name].decision
    assert counted.tests == repeated.tests


def test_clusters_widen_intervals():
    y, p = draw(100)
    y, p, cluster = np.tile(y, 5), np.tile(p, 5), np.tile(np.arange(100), 5)
    plain, clustered = quick(y, p), quick(y, p, cluster=cluster)
    width = [e["bias"].interval.high - e["bias"].interval.low for e in (plain, clustered)]
    assert width[1] > 1.5 * width[0]


@pytest.mark.parametrize("backend", FRAMES)
def test_frames(backend):
    found = quick(*draw(300), by=np.arange(300) % 2)
    frame = found.to_frame(backend)
    assert type(frame).__module__.split(".")[0] == backend
    assert len(frame) == 3 * len(found.metrics)
    wanted = [
        "group",
        "metric",
        "unit",
        "value",
        "low",
        "high",
        "expected",
        "null_low",
        "null_high",
        "excess",
        "pvalue",
    ]
    names = list(frame.columns) if backend != "pyarrow" else frame.column_names
    assert names[:11] == wanted


def test_a_frame_of_a_missing_library_is_an_error():
    message = r"backend must be an installed library; got 'modin'\. Run pip install modin"
    with pytest.raises(ModuleNotFoundError, match=message):
        quick(*draw(50)).to_frame("modin")


def test_json_carries_the_whole_specification():
    found = json.loads(json.dumps(quick(*draw(200)).to_dict()))
    assert (found["schema_version"], found["result"], found["kind"]) == (4, "evaluation", "binary")
    settings = found["settings"]
    assert (settings["margin"], settings["alpha"], settings["n_resamples"], settings["random_state"]) == (
        0.1,
        0.05,
        60,
        0,
    )
    for name, spec in settings["metrics"].items():
        rebuilt = cb.metrics.from_spec(spec)
        (line,) = [line for line in found["metrics"] if line["name"] == name]
        assert rebuilt.value(cb.ScoreTable.from_arrays(*draw(200))) == line["interval"]["value"]


def test_tables_fit_a_screen():
    text = repr(quick(*draw(3000, 1.3), by=np.arange(3000) % 3))
    assert max(len(line) for line in text.splitlines() if "   " in line.strip()) <= 120
    for question in ("Verdict", "Omnibus test", "Equivalence", "Coefficients", "Other tests", "errors are averaged"):
        assert question in text
    assert not any(line != line.rstrip() for line in text.splitlines())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"margin": 0}, r"margin must be a positive number in log-odds, at most 2; got 0\..* use cb\.AbsoluteMargin\."),
        ({"margin": "x"}, "margin must be a positive number"),
        ({"margin": True}, "margin must be a positive number"),
        ({"margin": np.inf}, "margin must be a positive number"),
        ({"alpha": 0.6}, r"alpha must lie below 0.5"),
        ({"confidence_level": 2}, "confidence_level must lie between"),
        ({"n_resamples": -1}, "n_resamples must be"),
        ({"n_resamples": 18, "margin": cb.AbsoluteMargin(0.01)}, "n_resamples must be at least 19 for a p-value"),
        ({"metrics": {}}, "metrics must be a list of metrics or a mapping"),
        ({"metrics": cb.ECE()}, "metrics must be a list of metrics or a mapping"),
        ({"metrics": "ece"}, "metrics must be a list of metrics or a mapping"),
        ({"metrics": [cb.ECE(), "ece"]}, "metrics must have distinct names; got ECE, ECE"),
        ({"costs": [abs, abs]}, "costs must have distinct names; got abs, abs"),
        ({"random_state": "x"}, "random_state must be"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(cb.InputError, match=message):
        quick(*draw(50), **options)
    with pytest.raises(cb.InputError, match=message):
        cb.compare([0, 1], {"a": [0.1, 0.8], "b": [0.2, 0.7]}, **{"n_resamples": 20, **options})


@pytest.mark.parametrize("value", [0, 1, -0.1, True, "x", float("nan")])
def test_an_absolute_margin_lies_between_0_and_1(value):
    with pytest.raises(cb.InputError, match="AbsoluteMargin must lie between 0 and 1"):
        cb.AbsoluteMargin(value)


def test_gaps_that_alternate_are_found():
    """ECCE-R does not see them; deviations over bins do."""
    score, n = np.linspace(0.1, 0.9, 11), np.full(11, 2000)
    k = np.rint(n * (score + 0.04 * (-1) ** np.arange(11))).astype(int)
    found = quick(cb.ScoreTable.from_counts(score, n, k))
    assert cb.consistency(cb.METRICS["ecce_r"](), found.table, n_resamples=99, random_state=0).pvalue > 0.2
    assert (found.verdict, found.direction) == ("miscalibrated", "local")


def test_one_miscalibrated_day_of_many_is_found():
    y, p = draw(26 * 300)
    day = np.repeat(np.arange(26), 300)
    wrong = day == 3
    y[wrong] = np.random.default_rng(1).random(300) < p[wrong] ** 6
    found = quick(y, p, by=day)
    assert [name for name, group in found.groups.items() if group.is_significant] == [3]
    assert found.groups[3].verdict == "miscalibrated"
    assert found.adjusted[3]["holm"] < 0.01


def test_clusters_reach_the_verdict():
    """100 rows repeated ten times are 100 rows: calibrated models are rejected at most as often as alpha says."""
    wrong = 0
    for seed in range(40):
        y, p = draw(100, seed=seed)
        found = quick(np.tile(y, 10), np.tile(p, 10), cluster=np.tile(np.arange(100), 10), metrics={"ECE": cb.ECE()})
        wrong += found.is_significant
    assert wrong <= 6
    y, p = draw(1000, power=2.0)
    assert quick(y, p, cluster=np.arange(1000)).is_significant
    for clusters in (1, 2):
        with pytest.raises(cb.InputError, match=f"cluster must have at least (2|3) distinct values.*got {clusters}"):
            quick(y, p, cluster=np.arange(1000) % clusters)


def test_groups_have_the_weights_of_their_rows():
    y, p = draw(200)
    weights = np.where(np.arange(200) % 2 == 0, 100.0, 0.5)
    found = quick(y, p, by=np.arange(200) % 2, sample_weight=weights)
    assert all(group.table.importance for group in found.groups.values())


def test_groups_without_rows_are_dropped_and_noted():
    y, p = draw(90)
    p = np.where(np.arange(90) % 3 == 0, np.nan, p)
    for options in ({"missing": "drop"},):
        found = quick(y, p, by=np.arange(90) % 3, **options)
        assert list(found.groups) == [1, 2]
        assert "Groups in which no row is used: 0." in repr(found)
    found = quick(y, np.nan_to_num(p), by=np.arange(90) % 3, sample_weight=(np.arange(90) % 3).astype(float))
    assert list(found.groups) == [1, 2]
    assert list(quick({"a": cb.ScoreTable.empty(), "b": found.table}).groups) == ["b"]


def test_a_metric_undefined_in_most_replicates_is_omitted():
    y = np.zeros(500, dtype=int)
    y[7] = 1
    found = quick(y, np.linspace(1e-5, 1e-4, 500), metrics={"ACE": cb.metrics.ACE(), "AUC": cb.METRICS["auc"]()})
    assert list(found.metrics) == ["log-odds error", "ACE"]
    assert "undefined_metrics" in [note.code for note in found.notes]


def test_the_log_odds_error_is_always_there():
    y, p = draw(60)
    found = quick(y, p, metrics={"calbin": cb.METRICS["calbin"]()}, sample_weight=np.linspace(0.5, 1, 60))
    assert list(found.metrics) == ["log-odds error"]
    assert "Metrics that are undefined for these rows or for most replicates: calbin." in repr(found)


def test_results_can_be_pickled_and_copied():
    y, p = draw(60)
    for result in (quick(y, p, by=np.arange(60) % 2), cb.compare(y, {"a": p, "b": p**2}, n_resamples=20)):
        assert pickle.loads(pickle.dumps(result)).to_dict() == copy.deepcopy(result).to_dict() == result.to_dict()


def test_names_that_are_not_text():
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    y, p = draw(60)
    found = quick(y, p, by=pandas.Series(np.arange(60) % 2, name=2023), metrics={1: cb.ECE()})
    assert "By 2023" in repr(found)
    assert "By 2023" in found._repr_html_()
    assert found["1"].value == cb.ece(y, p)


def test_numpy_scalars_are_json_numbers():
    y, p = draw(60)
    found = quick(y, p, margin=np.float64(0.02), n_resamples=np.int64(30), alpha=np.float32(0.1)).to_dict()
    assert (found["settings"]["margin"], found["settings"]["n_resamples"]) == (0.02, 30)
    assert found["equivalence"]["margin"] == 0.02
    assert cb.interval(cb.ECE(), y, p, confidence_level=np.float64(0.9), n_resamples=20).to_dict()["level"] == 0.9


# compare


def test_the_better_calibrated_model_is_found():
    y, p = draw(3000)
    found = cb.compare(y, {"squared": p**2, "right": p, "other": p**2.2}, n_resamples=99)
    assert found.verdict == "right is better calibrated than squared and other; squared is better calibrated than other"
    assert found.baseline == "squared"
    assert isinstance(found.models["other"], Evaluation)
    (ace,) = [d for d in found.differences if d.model == "right" and d.metric == "ACE"]
    assert ace.value == pytest.approx(cb.metrics.ace(y, p) - cb.metrics.ace(y, p**2))
    (deciding,) = [d for d in found.differences if d.model == "right" and d.metric == "log-odds error"]
    assert deciding.low < deciding.value < deciding.high < 0
    for text in (repr(found), found._repr_html_()):
        assert "minus squared" in text
    json.dumps(found.to_dict(), allow_nan=False)


def test_equal_models_do_not_differ():
    y, p = draw(500)
    found = cb.compare(y, {"one": p, "other": p}, n_resamples=49)
    assert found.verdict == "no difference shown"
    assert all(d.value == pytest.approx(0, abs=1e-12) for d in found.differences)
    assert all(d.pvalue == pytest.approx(1) for d in found.differences if d.test)


def test_pairing_makes_the_interval_narrow():
    """Two models whose scores differ by a constant: their biases differ by it, in every replicate."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.8, 500)
    y = rng.random(500) < p
    found = cb.compare(y, {"a": p, "b": p + 0.1}, n_resamples=49)
    (bias,) = [d for d in found.differences if d.metric == "bias"]
    assert (bias.low, bias.value, bias.high) == pytest.approx((0.1, 0.1, 0.1))


def test_comparison_by_clusters_and_weights():
    y, p = draw(200)
    w = np.arange(200) % 3 + 1
    counted = cb.compare(y, {"a": p, "b": p**2}, n_resamples=30, frequency=w)
    repeated = cb.compare(np.repeat(y, w), {"a": np.repeat(p, w), "b": np.repeat(p**2, w)}, n_resamples=30)
    assert repr(counted.differences) == repr(repeated.differences)
    weighted = cb.compare(y, {"a": p, "b": p**2}, n_resamples=30, sample_weight=w)
    values = [
        [d.value for d in each.differences if d.metric in ("bias", "ECE", "Brier")] for each in (weighted, counted)
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-9, abs=1e-12)
    assert weighted.differences != counted.differences
    clustered = cb.compare(y, {"a": p, "b": p**2}, n_resamples=30, cluster=np.arange(200) // 4)
    assert clustered.differences != counted.differences


@pytest.mark.parametrize("backend", FRAMES)
def test_a_comparison_as_a_frame(backend):
    y, p = draw(200)
    found = cb.compare(y, {"a": p, "b": p**2}, n_resamples=30)
    assert len(found.to_frame(backend)) == 2 * (1 + len(found.models["a"].metrics))  # and log loss


def test_the_deciding_test_is_printed():
    y, p = draw(300)
    text = repr(cb.compare(y, {"a": p, "b": p**2, "c": p}, n_resamples=30, metrics={"worst": cb.metrics.MCE()}))
    assert "Squared log-odds error of b minus that of a" in text
    assert "adjusted" in text
    with pytest.raises(cb.InputError, match=r"forecasts must have distinct names; got \['1', '1'\]"):
        cb.compare(y, {1: p, "1": p}, n_resamples=30)


def test_rows_that_do_not_match_are_refused():
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    y, p = draw(60)
    column = pandas.Series(p)
    with pytest.raises(cb.InputError, match=r"indexes of forecasts\['a'\] and forecasts\['b'\] differ"):
        cb.compare(y, {"a": column, "b": column.sample(frac=1, random_state=0)}, n_resamples=30)
    with pytest.raises(cb.InputError, match="indexes of forecast and cluster differ"):
        cb.interval(cb.ECE(), y, column, cluster=pandas.Series(np.arange(60)).sample(frac=1, random_state=0))


def test_too_many_rows_by_frequency_are_refused():
    y, p = draw(300)
    with pytest.raises(cb.InputError, match=r"frequency must add up to at most .*got 300,000,000\. Pass sample_weight"):
        cb.compare(y, {"a": p, "b": p}, frequency=np.full(300, 10**6), n_resamples=30)


@pytest.mark.parametrize(("bad", "got"), [({"a": [0.1, 0.2]}, "1 model"), ([0.1, 0.2], "list")])
def test_one_model_cannot_be_compared(bad, got):
    with pytest.raises(cb.InputError, match=f"forecasts must be a mapping of .* at least two models; got {got}"):
        cb.compare([0, 1], bad)
