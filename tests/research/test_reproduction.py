"""The published numbers of the TCE paper: the authors' variants and the corrected values."""

from collections import Counter

import numpy as np
import pytest

import calibrant as cb
from calibrant import significance
from research.reproduction.author_variants import (
    FloatQuantile,
    ReferenceTail,
    linspace_edges,
    rows_in_order,
    t_without_root,
)
from research.reproduction.sources import ALGORITHMS, SETS, NoDataError, uci
from research.reproduction.tables import TABLES, Cell, published

ALL_EQUAL = ("appendix_b", "table02", "table03", *(f"table{n:02d}" for n in range(6, 14)))


def cells_of(table):
    try:
        return list(TABLES[table]())
    except NoDataError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("table", ALL_EQUAL)
def test_every_cell_is_as_printed(table):
    cells = cells_of(table)
    assert [cell for cell in cells if not cell.equal] == []
    names = {"case", "key", "data", "algorithm", "model", "error"}
    assert len(cells) == sum(
        1 for row in published(table) for column, text in row.items() if column not in names and text
    )


DIFFER = [("table01", 1, 0), ("table04", 2, 0), ("table05", 1, 0), ("table14", 0, 6)]


@pytest.mark.parametrize(("table", "explained", "unsolved"), DIFFER)
def test_cells_that_differ_are_listed(table, explained, unsolved):
    verdicts = Counter(cell.verdict for cell in cells_of(table))
    assert (verdicts["explained"], verdicts["open"], verdicts["new"]) == (explained, unsolved, 0)


def test_logistic_regressions_and_forests_of_all_sets_are_as_printed():
    """But for the solver's spread on webpage, and a number that was rounded twice."""
    cells = [c for t in ("table03", "table04", "table14") for c in cells_of(t) if c.row.split(", ")[-1] in ("LR", "RF")]
    assert len(cells) == 8 * 2 * 6 + 2 * 2 * 5
    differ = [(cell.row, cell.column) for cell in cells if not cell.equal]
    assert differ == [("LR", "TCE"), ("RF", "TCE")]


def test_the_predictions_of_all_models_are_kept():
    for name in SETS:
        outcomes = {uci(name, algorithm)[0].tobytes() for algorithm in ALGORITHMS}
        assert len(outcomes) == 1
        for algorithm in ALGORITHMS:
            _, p, order = uci(name, algorithm)
            assert (np.diff(p[order]) >= 0).all()


def test_the_tail_of_the_program_changes_two_published_numbers():
    for algorithm, printed, corrected in (("RF", "19.4039", "8.3458"), ("SVM", "20.2683", "20.3875")):
        rows = rows_in_order(*uci("mammography", algorithm))
        limits = int(rows.size / 20), int(rows.size / 5)
        assert f"{cb.TCE(bins=ReferenceTail(*limits)).value(rows):.4f}" == printed
        assert f"{cb.TCE(bins=cb.PAVABC(*limits)).value(rows):.4f}" == corrected
        assert ReferenceTail(*limits)(rows).n[-1] > limits[1]


def test_the_t_test_with_its_root_is_as_good_as_the_binomial_test():
    cells = {(c.row, c.column): c for c in cells_of("table11")}
    cell = cells["calibrated, [5, 20]", "TCE(P)-T"]
    assert (cell.published, round(cell.corrected, 2)) == ("37.8000", 7.35)


def test_a_cell_is_judged_by_its_printed_digits():
    assert Cell("t", "r", "c", "7.28", 7.2833, 7.2833).verdict == "equal"
    assert Cell("t", "r", "c", "7.29", 7.2833, 7.2833).verdict == "new"
    assert Cell("t", "r", "c", "7.29", 7.2833, 7.2833, "Open: not found.").verdict == "open"
    assert Cell("t", "r", "c", "7.29", 7.2833, 7.2833, "a misprint").verdict == "explained"


def test_rows_in_order_keep_ties_apart(rng):
    p = rng.choice([0.2, 0.5, 0.7], 60)
    y = rng.random(60) < p
    apart, counted = rows_in_order(y, p), cb.ScoreTable.from_arrays(y, p)
    assert len(apart) == 60
    assert len(counted) == 3
    assert cb.brier(apart) == pytest.approx(cb.brier(counted))


def test_without_ties_both_definitions_of_bins_agree(rng):
    p = rng.random(997)
    y = rng.random(997) < p
    rows, counted = rows_in_order(y, p), cb.ScoreTable.from_arrays(y, p)
    assert FloatQuantile(10)(rows).n.tolist() == cb.Quantile(10)(counted).n.tolist()
    assert linspace_edges(10)(rows).n.tolist() == cb.EqualWidth(10)(counted).n.tolist()


def test_float_cuts_miss_a_row_where_a_product_is_rounded_down():
    """N = B = 50: 29 / 50 * 50 is 28.999999999999996, so one bin is empty and the next has two rows."""
    p = (np.arange(50) + 0.5) / 50
    y = np.zeros(50)
    assert FloatQuantile(50)(rows_in_order(y, p)).n.max() == 2
    assert cb.Quantile(50)(cb.ScoreTable.from_arrays(y, p)).n.tolist() == [1] * 50


@pytest.mark.parametrize(("n_min", "n_max"), [(3, 4), (5, 9), (10, 15)])
def test_both_tail_rules_agree_for_narrow_limits(n_min, n_max, rng):
    """Where 2 n_min > n_max the program never joins the tail, and Algorithm 2 could not either."""
    p = rng.random(80)
    rows = rows_in_order(rng.random(80) < p, p)
    theirs, ours = ReferenceTail(n_min, n_max)(rows), cb.PAVABC(n_min, n_max)(rows)
    if ours.n[-1] <= n_min:
        assert theirs.n.tolist() == ours.n.tolist()
    assert theirs.n.sum() == ours.n.sum() == 80


def test_the_test_without_its_root_rejects_far_more():
    k, n, p = np.array([50, 5]), np.array([100, 100]), np.array([0.55, 0.07])
    assert (t_without_root(k, n, p) < 0.5 * significance.t(k, n, p)).all()
    assert t_without_root(np.array([0]), np.array([9]), np.array([0.0])).tolist() == [0]
