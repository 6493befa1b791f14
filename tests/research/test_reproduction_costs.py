"""The tables of Yang & Bi and the examples of Bella et al.: stored results, verdicts and algorithms."""

import json
import math
import time
import warnings
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cb

pytest.importorskip("sklearn", reason="scikit-learn is not installed")
pytest.importorskip("pandas", reason="pandas is not installed")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from sklearn.tree import DecisionTreeClassifier

from research.reproduction import bella
from research.reproduction.costs import __main__ as command
from research.reproduction.costs import claims, experiment, figure, pages, results, tables
from research.reproduction.costs.data import TABULAR, columns
from research.reproduction.costs.experiment import (
    BINS,
    COSTS,
    EQUAL,
    PARTS,
    _best,
    _by_local_search,
    _pairs,
    _scaled,
    _temperatures,
)
from research.reproduction.costs.models import PrunedRegressionTree, PrunedTree, SoftmaxLayer, softmax_layer
from research.reproduction.sources import NoDataError

GOLDEN = Path(__file__).parents[1] / "golden"
KEPT = results.read()
CELLS = tables.cells(KEPT)
shares = st.floats(0, 1, allow_subnormal=False)


def test_every_cell_of_the_seven_tables_has_a_mean_an_error_and_a_verdict():
    assert Counter(cell.table for cell in CELLS) == {1: 35, 2: 35, 3: 7, 4: 15, 5: 42, 6: 42, 7: 42}
    for cell in CELLS:
        assert cell.ours.size >= 2, cell
        assert math.isfinite(cell.mean)
        assert cell.error > 0
        assert cell.verdict in ("agrees", "differs", "cannot be right", "too few splits", "other data")
        assert (cell.reason == "") == (cell.verdict == "agrees")
    open_ = [(cell.table, cell.set, cell.method) for cell in CELLS if cell.reason == "Open."]
    assert open_ == []


def test_the_page_in_the_documentation_is_the_one_that_results_give(tmp_path):
    pages.write(KEPT, tmp_path)
    for made in [tmp_path / "costs.rst", *(tmp_path / "costs").iterdir()]:
        kept = pages.OUT / made.relative_to(tmp_path)
        assert kept.read_text(encoding="utf-8") == made.read_text(encoding="utf-8"), "run make reproduce"


def test_the_picture_shows_every_mean_of_the_papers_own_sets():
    (axes,) = figure.agreement(KEPT).axes
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert sum(int(label.rpartition("(")[2].rstrip(")")) for label in labels) == 218 - 28
    assert not any(
        label.startswith("cannot be right") for label in labels
    )  # these are reviews, and isotonic regression


@pytest.mark.parametrize("part", PARTS)
def test_a_split_is_reproduced(part, data_folder):
    try:
        again, kept = PARTS[part]("Cancer", "tree", 1), KEPT["Cancer", "tree", 1]
    except NoDataError as error:
        pytest.skip(str(error))
    assert len(again) > 10
    for name, value in again.items():
        assert value == pytest.approx(kept[name], rel=1e-5, abs=1e-7), name


@pytest.fixture
def kept_elsewhere(tmp_path, monkeypatch):
    """Results that go to a folder of the test."""
    monkeypatch.setattr(results, "KEPT", tmp_path / "costs.csv")


KEY = ("Cancer", "tree", 0)


def test_stored_parts_are_not_computed_again(kept_elsewhere, monkeypatch, capsys):
    results.write({KEY: {"linear: NoCal": 0.25, "seconds, scores": 1.0}})
    monkeypatch.setattr(command, "timed", _half)
    command.run([("scores", *KEY), ("MetaCal", *KEY), ("MetaCal", *KEY)], jobs=1)
    kept = {"linear: NoCal": 0.25, "seconds, scores": 1.0, "linear: MetaCal": 0.5, "seconds, MetaCal": 2.0}
    assert results.read() == {KEY: kept}
    assert "2 parts of splits, 1 to do" in capsys.readouterr().out


def test_a_missing_data_set_is_skipped(kept_elsewhere, monkeypatch, capsys):
    monkeypatch.setattr(command, "timed", _no_reviews)
    command.run([("scores", "Sentiment", "softmax", 0), ("scores", *KEY)], jobs=1)
    assert results.read().keys() == {KEY}
    assert "Sentiment, softmax, 0, scores, skipped. no reviews here" in capsys.readouterr().out


def test_work_that_fails_ends_at_once(kept_elsewhere, monkeypatch, tmp_path):
    monkeypatch.setattr(command, "timed", partial(_fails_once, str(tmp_path)))
    with pytest.raises(ZeroDivisionError):
        command.run([("scores", "Cancer", "tree", seed) for seed in range(40)], jobs=1)
    assert len(list(tmp_path.glob("*.ran"))) < 20


def _half(part, *_):
    return {f"linear: {part}": 0.5, f"seconds, {part}": 2.0}


def _no_reviews(part, name, *_):
    if name == "Sentiment":
        raise NoDataError("no reviews here")
    return _half(part)


def _fails_once(folder, part, name, model, seed):
    (Path(folder) / f"{seed}.ran").touch()
    if seed == 0:
        raise ZeroDivisionError
    time.sleep(0.05)
    return _half(part)


@pytest.mark.parametrize(
    "text", ["Cancer:tree", "Cancer:softmax:scores:3", "Cancer:tree:scores:x", "Cancr:tree:scores:3"]
)
def test_invalid_experiments_are_refused(text):
    with pytest.raises(SystemExit, match=r"SET:MODEL:PART:SEEDS, of Cancer:tree, .* the parts scores, isotonic"):
        list(command._tasks(text))


def test_the_number_of_features_matches_the_published_results(data_folder):
    """The paper counts 9, 21, 17, 23 and 16; its numbers say 15 of the last."""
    counts = {name: columns(name).shape[1] for name in TABULAR}
    assert counts == {"Cancer": 9, "CTG": 21, "Churn": 17, "Default": 23, "Bank": 15}


# Verdicts


def cell(printed="0.1000*** (0.0100)", ours=(0.09, 0.11), method="TS", gap=(), change=(-0.1,), impossible=""):
    arrays = map(np.array, (ours, gap, change))
    return tables.Cell(1, "Cancer", method, tables.Printed.read(printed), *arrays, -0.2, impossible)


def test_means_that_lie_within_three_standard_errors_agree_where_there_are_many_splits():
    ours = 0.1 + 0.01 * np.tile([-1, 1], 500)
    theirs = tables.Printed.read("0.1000 (0.0100)").error
    assert theirs == pytest.approx(0.001)
    error = math.hypot(ours.std(ddof=1) / math.sqrt(1000), theirs)
    assert cell(ours=ours + 2.95 * error).verdict == "agrees"
    assert cell(ours=ours + 3.15 * error).verdict == "differs"
    assert cell(ours=ours[:4] + 3.15 * error).verdict == "agrees"  # few splits know little
    assert cell(ours=(0.05, 0.16)).verdict == "too few splits"  # two know nothing
    assert cell(ours=ours, impossible="why").verdict == "cannot be right"


def test_the_test_of_means_is_welchs():
    from scipy.stats import ttest_ind_from_stats

    ours = np.array([0.09, 0.11, 0.14, 0.12, 0.1])
    printed = tables.Printed.read("0.1000 (0.0100)")
    welch = ttest_ind_from_stats(ours.mean(), ours.std(ddof=1), 5, 0.1, 0.01, 100, equal_var=False)
    made = tables.Cell(1, "Cancer", "TS", printed, ours, np.array([]), np.array([]), math.nan)
    assert made.same_mean == pytest.approx(welch.pvalue)


def test_signs_are_those_of_the_change_from_no_calibration():
    assert cell().same_sign is True
    assert cell(change=(-0.1, 0.3)).same_sign is False
    assert cell(method="NoCal").same_sign is None


def test_paired_t_tests_have_one_side_and_two():
    from scipy.stats import ttest_1samp

    gap = np.array([-0.04, -0.02, 0.0, -0.05])
    one, two = cell(gap=gap).pvalues
    assert one == pytest.approx(ttest_1samp(gap, 0, alternative="less").pvalue)
    assert two == pytest.approx(ttest_1samp(gap, 0).pvalue)
    assert cell(gap=np.zeros(5)).pvalues is None  # MetaCal itself


def test_stars_are_defined_by_their_levels():
    few = cell(gap=np.array([-0.2, -0.18, -0.2]))
    one, two = few.pvalues
    assert one < 0.001 < two < 0.01
    assert few.our_stars == ("***", "**")


@given(st.lists(st.tuples(shares, st.booleans()), min_size=1, max_size=40))
def test_costs_of_the_same_predictions_lie_within_their_bounds(rows):
    """PAPERS, row 47: the reviews of Tables 6 and 7 break these laws, our ECC must not."""
    p, y = zip(*rows, strict=True)
    table = cb.ScoreTable.from_arrays(np.array(y), np.array(p))
    ecc = {name: cb.metrics.ECC(cost=cost, bins=BINS).value(table) for name, cost in COSTS.items()}
    for number, name in ((5, "sqrt"), (6, "exp"), (7, "log")):
        low, high = tables.bounds(ecc["linear"])[number]
        assert low - 1e-12 <= ecc[name] <= high + 1e-12


def test_impossible_cells_are_marked():
    found = tables.impossible()
    assert {key[:2] for key in found if key[1] != "Bank"} == {(6, "Sentiment"), (7, "Sentiment")}
    assert {key for key in found if key[1] == "Bank"} == {(table, "Bank", "IR") for table in (1, 5, 6, 7)}


def test_two_points_are_found_from_their_mean_and_deviation(monkeypatch):
    """100 splits, 30 of which say all rows too low by 0.04, under all four costs."""
    for table, name in ((1, "linear"), (5, "sqrt"), (6, "exp"), (7, "log")):
        paid = np.repeat([float(COSTS[name](0.06, 0.1)), 0.0], [30, 70])
        text = f"{paid.mean():.12f} ({paid.std(ddof=1):.12f})"
        monkeypatch.setattr(tables, "printed", lambda _, text=text: {"Bank": {"IR": tables.Printed.read(text)}})
        assert tables.two_points(table, "Bank") == pytest.approx((30, 0.04))


def test_four_tables_agree_on_34_splits_of_bank_and_on_the_rate_of_its_large_leaf():
    for table in (1, 5, 6, 7):
        assert tables.two_points(table, "Bank") == pytest.approx((34, 0.09845), abs=0.005)


def test_stars_of_the_paper_have_one_side():
    cheaper, starred, would = tables.sides()
    assert (cheaper, starred, would) == (30, 0, 18)


# The parts of the experiment


def prunings(tree, node=0):
    """Every pruning of a tree: (errors, leaves, the nodes that are split)."""
    n, share = tree.n_node_samples[node], tree.value[node, 0, 1]
    yield min(n * share, n - n * share), 1, frozenset()
    left, right = tree.children_left[node], tree.children_right[node]
    if left >= 0:
        for a, b in product(list(prunings(tree, left)), list(prunings(tree, right))):
            yield a[0] + b[0], a[1] + b[1], a[2] | b[2] | {node}


@pytest.mark.parametrize("seed", range(12))
def test_the_pruned_tree_has_the_least_errors_and_penalties_of_all_prunings(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (120, 3)).astype(float)
    y = (rng.random(120) < 0.2 + 0.1 * X[:, 0]).astype(int)
    fitted = PrunedTree().fit(X, y)
    penalty = 0.01 * min(y.sum(), y.size - y.sum())
    all_of_them = list(prunings(fitted.grown_.tree_))
    least = min(errors + penalty * leaves for errors, leaves, _ in all_of_them)
    p = fitted.predict_proba(X)[:, 1]
    errors = sum(min(y[p == v].sum(), (1 - y[p == v]).sum()) for v in np.unique(p))
    assert errors + penalty * fitted.n_leaves_ == pytest.approx(least)
    smallest = min(leaves for e, leaves, _ in all_of_them if e + penalty * leaves <= least + 1e-9)
    assert fitted.n_leaves_ == smallest


@pytest.mark.parametrize("case", json.loads((GOLDEN / "rpart.json").read_text())["cases"], ids=lambda c: len(c["y"]))
def test_trees_are_those_of_rpart(case):
    X, y, q = (np.array(case[name], dtype=float) for name in ("X", "y", "q"))
    assert PrunedTree().fit(X, y).predict_proba(X)[:, 1] == pytest.approx(case["p"], abs=1e-12)
    assert PrunedRegressionTree().fit(X, q).predict(X) == pytest.approx(case["mean"], abs=1e-12)


def test_a_branch_that_pruning_removes_is_not_grown(monkeypatch):
    """The pruned tree of a tree grown to 20 rows is that of the tree grown to twice the penalty."""
    rng = np.random.default_rng(0)
    X = rng.random((6000, 4))
    y = (rng.random(6000) < X[:, 0] * 0.8).astype(int)
    quick = PrunedTree().fit(X, y).predict_proba(X)[:, 1]
    monkeypatch.setattr(
        "research.reproduction.costs.models.DecisionTreeClassifier",
        lambda **rules: DecisionTreeClassifier(**rules | {"min_samples_split": 20}),
    )
    assert PrunedTree().fit(X, y).predict_proba(X)[:, 1].tolist() == quick.tolist()


@pytest.mark.parametrize("seed", range(4))
def test_compiled_trees_are_those_of_scikit_learn(seed):
    """Features with many values, few values, two values, and neighbours that float32 hardly separates."""
    pytest.importorskip("numba", reason="numba is not installed (dependency group reproduction)")
    from research.reproduction.costs import trees

    rng = np.random.default_rng(seed)
    a, b, c = rng.random((3, 2500))
    close = np.float32(0.5) + rng.integers(0, 400, 2500) * np.spacing(np.float32(0.5))
    X = np.column_stack([a, np.round(5 * b), c < 0.3, close])
    y = (rng.random(2500) < 0.1 + 0.4 * a + 0.06 * X[:, 1] + 0.1 * X[:, 2]).astype(int)
    features = trees.Features.of(X)
    assert (features.counted.tolist(), features.sorted.tolist()) == ([1, 2], [0, 3])
    for _ in range(5):
        drawn = rng.choice(2500, 2500)
        sklearns = PrunedTree().fit(X[drawn], y[drawn])
        ours = trees.predictions(features, y, np.bincount(drawn, minlength=2500))
        assert sklearns.n_leaves_ > 2
        assert ours.tolist() == sklearns.predict_proba(X)[:, 1].tolist()


def test_bootstrap_models_do_not_depend_on_numba(data_folder, monkeypatch):
    pytest.importorskip("numba", reason="numba is not installed (dependency group reproduction)")
    try:
        split = experiment.Split("Default", "tree", 3)
    except NoDataError as error:
        pytest.skip(str(error))
    compiled = experiment._bootstrapped(split, 2)
    monkeypatch.setattr(experiment, "_COMPILED", math.inf)
    assert experiment._bootstrapped(split, 2).tolist() == compiled.tolist()


def test_scaling_is_the_librarys_but_for_scores_of_0_and_1(rng):
    p = rng.uniform(0.01, 0.99, 400)
    y = rng.random(400) < p**2
    for cost in (EQUAL, *COSTS.values()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a Brier score that the paper's grid raises
            cats = cb.calibrators.CATS(cost, bins=BINS, grid="paper").fit(p, y)
            caps = cb.calibrators.CAPS(cost, bins=BINS, grid="paper", random_state=3).fit(p, y)
        assert (cats.slope_, 0.0) == _best(_temperatures(), p, y, cost)
        assert (caps.slope_, caps.intercept_) == _best(_pairs(3), p, y, cost)
        assert _scaled(p, (caps.slope_, caps.intercept_)) == pytest.approx(caps(p), abs=1e-12)
    assert _scaled(np.array([0.0, 1.0]), (0.01, 2.0)).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("cost", ["sqrt", "exp", "log"])
def test_a_local_search_is_never_below_the_exact_minimum(cost, rng):
    draws = rng.beta(2, 5, (30, 40))
    draws[3] = 0.25  # all models say the same
    labels, above = _by_local_search(draws, np.ones(len(draws)), COSTS[cost])
    exact = cb.metrics.optimal_prediction(draws, COSTS[cost])
    paid, least = (
        np.array([np.mean(COSTS[cost](q, a)) for q, a in zip(each, draws, strict=True)]) for each in (labels, exact)
    )
    assert (paid >= least - 1e-9).all()
    assert above == pytest.approx(paid.mean() / least.mean() - 1, abs=1e-9)
    assert above > 1e-3 if cost == "sqrt" else above < 1e-3  # which has far more local minima than the others


def test_the_softmax_layer_fits_probabilities(rng):
    X = rng.normal(size=(300, 3))
    hard = (rng.random(300) < 0.5 + 0.3 * np.sign(X[:, 0])).astype(float)
    whole = SoftmaxLayer().fit(X, hard).predict(X)
    assert whole == pytest.approx(softmax_layer().fit(X, hard).predict_proba(X)[:, 1], abs=1e-4)
    soft = SoftmaxLayer().fit(X, np.full(300, 0.3)).predict(X)
    assert soft == pytest.approx(np.full(300, 0.3), abs=1e-3)


# Bella et al.


def test_the_examples_of_the_chapter():
    verdicts = Counter(cell.verdict for own in bella.cells().values() for cell in own)
    assert verdicts == {"equal": 31, "explained": 4}


def test_results_of_the_library_on_the_examples():
    """Values computed by hand and with other programs from the chapter's text."""
    formulas = {row[0]: row[1:3] for row in bella.formulas()}
    assert formulas["CalBin"] == ["0.5156", "0.2455"]
    assert formulas["CalLoss"] == ["2.29", "0.1591"]
    assert formulas["LogLoss"] == ["-0.5527", "0.5527"]
    assert formulas["MSE"] == ["0.1841", "0.1841"]
    assert formulas["MSE, decomposed"] == ["0.1906", "0.1841"]
    three, two = bella.proportions()
    assert three[1:] == ["0.90", "0.92", "Stuart-Maxwell", "0.076"]
    assert two[1:] == ["0.66", "0.76", "McNemar, exact", "4.1e-10"]
    assert [row[1:3] for row in bella.confidences()] == [["0.91", "0.01"], ["0.99", "0.09"]]
    assert [row[1:] for row in bella.regressions()] == [
        ["1", "1", "1", "5 of 5", "0"],
        ["1", "1", "50", "0 of 5", "49"],
    ]


def test_the_page_of_the_chapter_is_up_to_date():
    assert (bella.OUT / "bella.rst").read_text(encoding="utf-8") == bella.page(), "run make reproduce"


def test_pairs_of_the_text_never_end():
    """Averaging pairs until none rises, as the text has it, only comes nearer to the mean of the block."""
    values = list(bella.PAV[4:7])
    for _ in range(20):
        for i in (0, 1):
            if values[i] < values[i + 1]:
                values[i] = values[i + 1] = (values[i] + values[i + 1]) / 2
    assert values[0] < values[1]
    assert values == pytest.approx([np.mean(bella.PAV[4:7])] * 3, abs=1e-6)


# Claims


def test_claims_have_the_tests_of_scipy():
    from scipy.stats import pearsonr, ttest_rel

    rng = np.random.default_rng(0)
    one, other = rng.gamma(2, 1, (2, 30))
    columns = {("Cancer", "tree", i): {"linear: A": a, "linear: B": b} for i, (a, b) in enumerate(np.c_[one, other])}
    claim = claims.Claim("A costs less.", "tree", (("linear: A", "linear: B"),), ("Cancer",))
    (found,) = claim.comparisons(columns)
    paired = ttest_rel(one, other)
    assert found.pvalue == pytest.approx(paired.pvalue)
    low, high = paired.confidence_interval()
    assert (found.low, found.high) == pytest.approx((low / other.mean(), high / other.mean()))
    (spread,) = replace(claim, measure="spread").comparisons(columns)
    assert spread.effect == pytest.approx(one.std() / other.std() - 1)
    assert spread.pvalue == pytest.approx(pearsonr(one + other, one - other).pvalue)  # Pitman and Morgan
    # At a limit of the interval the test of one / (1 + limit) against the other has a p-value of 5 %.
    for limit in (spread.low, spread.high):
        moved = one / (1 + limit)
        assert pearsonr(moved + other, moved - other).pvalue == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("gap", "outcome", "verdict"),
    [(-0.5, "shown", "reproduced"), (0.5, "opposite", "not reproduced"), (0.0, "open", "in part")],
)
def test_outcomes_of_claims(gap, outcome, verdict):
    rng = np.random.default_rng(1)
    splits = {
        ("Cancer", "tree", i): {"linear: A": 2 + gap + 0.1 * e, "linear: B": 2.0}
        for i, e in enumerate(rng.normal(size=40))
    }
    claim = claims.Claim("A costs less.", "tree", (("linear: A", "linear: B"),), ("Cancer",))
    ((_, _, found),) = claim.outcomes(splits)
    assert (found, claim.verdict(splits)) == (outcome, verdict)
    equal = replace(claim, measure="equal")
    assert equal.outcomes(splits)[0][2] == ("shown" if gap == 0 else "opposite")
    assert claim.verdict({}) == "not tested"


def test_the_summary_says_what_the_claims_show():
    spread = next(claim for claim in claims.CLAIMS if claim.text.startswith("The costs of MetaCal vary less"))
    assert spread.verdict(KEPT) == "reproduced"  # as docs/costs says
    z = np.abs(claims.z_values([cell for cell in CELLS if cell.method != "IR"]))
    summary = (pages.OUT / "costs" / "summary.txt").read_text(encoding="utf-8")
    assert f"{np.count_nonzero(z > 1.96)} beyond 1.96" in summary
    assert "reproduction/costs/summary.txt" in (pages.OUT.parent / "costs.rst").read_text(encoding="utf-8")


def test_pages_state_the_numbers_of_the_results():
    docs = {name: (pages.OUT.parent / f"{name}.rst").read_text(encoding="utf-8") for name in ("errata", "corrections")}
    isotonic = [("linear: IR", "linear: NoCal")]
    trees = claims.changes(KEPT, isotonic, [(name, "tree") for name in TABULAR])
    forests = claims.changes(KEPT, isotonic, [(name, "forest") for name in TABULAR])
    assert f"up to {1 + max(each.effect for each, _ in trees):.1f} times no calibration with trees" in docs["errata"]
    assert {change for _, change in forests} == {"lower"}
    assert f"on average over rows up to {100 * pages.label_excess(KEPT)[1]:.1f} %" in docs["errata"]
    z = np.abs(claims.z_values([cell for cell in CELLS if cell.method != "IR"]))
    beyond = (
        f"Of {z.size} means {np.count_nonzero(z > 1.96)} are beyond 1.96 standard errors, where {0.05 * z.size:.0f}"
    )
    assert beyond in docs["corrections"]
    saves = {each.set: outcome for each, _, outcome in claims.METACAL_SAVES.outcomes(KEPT)}
    assert saves == {name: "open" if name == "Churn" else "shown" for name in TABULAR}  # as the corrections say


def test_trees_have_as_many_splits_as_in_the_paper():
    trees = [row for row in claims.split_counts(KEPT) if row[1] == "tree"]
    assert sorted(trees) == sorted([name, "tree", "100", "100"] for name in TABULAR)


def test_changes_are_adjusted_for_all_comparisons():
    rng = np.random.default_rng(2)
    splits = {
        (name, "tree", i): {"linear: A": 2 + gap + 0.1 * e, "linear: B": 2.0}
        for name, gap in (("Cancer", -0.5), ("CTG", 0.5), ("Churn", 0.04))
        for i, e in enumerate(rng.normal(size=40))
    }
    groups = [("Cancer", "tree"), ("CTG", "tree"), ("Churn", "tree"), ("Bank", "tree")]
    columns = [("linear: A", "linear: B")]
    found = {each.set: change for each, change in claims.changes(splits, columns, groups)}
    assert found == {"Cancer": "lower", "CTG": "higher", "Churn": "higher"}
    (alone,) = claims.changes(splits, columns, [("Churn", "tree")])
    crowd = [(f"linear: {i}", "linear: B") for i in range(60)]
    noise = {key: row | {f"linear: {i}": 2 + 0.1 * rng.normal() for i in range(60)} for key, row in splits.items()}
    among = claims.changes(noise, [*columns, *crowd], [("Churn", "tree")])
    assert (alone[1], among[0][1]) == ("higher", "open")
