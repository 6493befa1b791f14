"""Calls that violate a precondition raise the same ValueError on both kernels; none crashes or runs forever."""

import contextlib

import numpy as np
import pytest

import calibrant as cb
from calibrant import _kernels
from calibrant._kernels import reference, reference_replicates

compiled_only = pytest.mark.skipif(_kernels.KERNEL != "compiled", reason="needs the compiled kernel")

SCORE = np.array([0.1, 0.5, 0.9])
N, K, START = (np.array(column, dtype=np.int64) for column in ([3, 2, 4], [0, 2, 1], [0, 2]))
EDGES = np.array([-np.inf, 0.5, np.inf])
LABEL = np.array([0, 1, 1])
Plan, Blocks = _kernels.Plan, _kernels.TestedBlocks


def ints(*values):
    return np.array(values, dtype=np.int64)


WRONG = {
    "events": ints(0, 30, 1),
    "negative events": ints(0, -9, 1),
    "many events": ints(0, 2**62, 1),
    "least": ints(-(2**63), 2, 1),
}
CALLS = {
    **{f"squared_errors, {case}": ("squared_errors", (SCORE, N, k)) for case, k in WRONG.items()},
    **{f"bin_sums, {case}": ("bin_sums", (SCORE, N, k, START)) for case, k in WRONG.items()},
    **{f"pava_bc, {case}": ("pava_bc", (N, k, 1, 9)) for case, k in WRONG.items()},
    **{f"venn_abers, {case}": ("venn_abers", (N, k)) for case, k in WRONG.items()},
    **{
        f"rejected, bin with {case}": ("rejected", (SCORE, N, ints(0), ints(9), k[1:2], 0.05))
        for case, k in list(WRONG.items())[1:3]
    },
    "rejected, empty bin": ("rejected", (SCORE, N, ints(0), ints(0), ints(0), 0.05)),
    "rejected, level": ("rejected", (SCORE, N, ints(0), ints(9), ints(3), 1.5)),
    "rejected, no level": ("rejected", (SCORE, N, ints(0), ints(9), ints(3), np.nan)),
    "rejected, score above 1": ("rejected", (SCORE + 1, N, ints(0), ints(9), ints(3), 0.05)),
    "rejected, NaN": ("rejected", (SCORE * np.nan, N, ints(0), ints(9), ints(3), 0.05)),
    "rejected, starts": ("rejected", (SCORE, N, ints(0, 5), ints(9, 9), ints(3, 3), 0.05)),
    "rejected, lengths": ("rejected", (SCORE, N[:2], ints(0), ints(9), ints(3), 0.05)),
    "total of bins": ("bin_sums", (SCORE, ints(2**62, 2**62, 1), K, ints(0))),
    "total of blocks": ("pava_bc", (ints(2**62, 2**62, 1), K, 0, 9)),
    "total of errors": ("squared_errors", (SCORE, ints(2**62, 2**62, 1), K)),
    "starts": ("bin_sums", (SCORE, N, K, ints(0, 0))),
    "starts beyond": ("bin_sums", (SCORE, N, K, ints(0, 3))),
    "negative start": ("bin_sums", (SCORE, N, K, ints(-1, 2))),
    "lengths": ("bin_sums", (SCORE, N[:2], K, START)),
    "rows": ("row_sums", (SCORE, LABEL[:2], EDGES)),
    "one edge": ("row_sums", (SCORE, LABEL, EDGES[:1])),
    "edges above all scores": ("row_sums", (SCORE, LABEL, np.array([2.0, 3.0, 4.0]))),
    "edges of other bins": ("row_sums", (SCORE, LABEL, np.array([-np.inf, 0.4, np.inf]))),
    "NaN among edges": ("row_sums", (SCORE, LABEL, np.array([-np.inf, np.nan, np.inf]))),
    "row errors": ("row_squared_errors", (SCORE, LABEL[:2])),
    "falling edges": ("locate", (np.array([0.5, 0.2]), SCORE)),
    "NaN edges": ("locate", (np.array([0.5, np.nan]), SCORE)),
    "no window": ("window_distances", (SCORE, SCORE, 0)),
    "long window": ("window_distances", (SCORE, SCORE, 4)),
    "labels": ("count", (SCORE, LABEL[:2])),
}
VALUES = np.ones((3, 2))
TABLE = (SCORE, N, K)


def make(replicates, plan=Plan(), table=TABLE, *, by_rows=True):  # noqa: B008  (frozen)
    return replicates(*table, plan, by_rows=by_rows)


REPLICATES = {
    "events": lambda r: make(r, table=(SCORE, N, WRONG["events"])),
    "no rows": lambda r: make(r, table=(SCORE, ints(3, 0, 4), ints(0, 0, 1))),
    "total": lambda r: make(r, table=(SCORE, ints(2**62, 2**62, 1), K)),
    "too many rows": lambda r: make(r, table=(SCORE, ints(2**32, 2, 1), K)),
    "NaN": lambda r: make(r, table=(SCORE * np.nan, N, K)),
    "score": lambda r: make(r, table=(SCORE * 3, N, K)),
    "starts": lambda r: make(r, Plan(fixed=[ints(0, 7)])),
    "bins": lambda r: make(r, Plan(quantiles=[0])),
    "many bins": lambda r: make(r, Plan(quantiles=[2**40])),
    "level": lambda r: make(r, Plan(blocks=[Blocks(1, 5, -0.1)])),
    "coefficients": lambda r: make(r, Plan(linear=[(SCORE[:2], SCORE)])),
    "gaps": lambda r: make(r, Plan(fixed=[ints(0, 2)], gaps=[(1, True)])),
    "negative gaps": lambda r: make(r, Plan(quantiles=[2], gaps=[(-1, True)])),
    "rows not drawn": lambda r: make(r, by_rows=False).simulate(1, 0, 2),
    "measured events": lambda r: make(r, Plan(blocks=[Blocks(1, 5, 0.05)])).measure(N[None], ints(0, 9, 1)[None]),
    "measured total": lambda r: make(r).measure(ints(2**62, 2**62, 1)[None], K[None]),
    "measured columns": lambda r: make(r).measure(N[None, :2], K[None, :2]),
    "drawn columns": lambda r: make(r).resample_drawn(np.ones((1, 2), dtype=np.uint8), None),
    "drawn too often": lambda r: make(r).resample_drawn(np.full((1, 9), 255, dtype=np.uint8), None),
    "order": lambda r: make(r).resample_drawn(np.ones((1, 9), dtype=np.uint8), np.arange(1, 10, dtype=np.int32)),
    "limits": lambda r: make(r, Plan(blocks=[Blocks(1, 5, 0.05)])).resample_drawn(
        np.ones((1, 9), dtype=np.uint8), None, np.ones((1, 3), dtype=np.int64)
    ),
    "counts that are not shared": lambda r: make(r).resample_together(
        [make(r, table=(SCORE, N, K.copy()))], np.ones((1, 9), dtype=np.uint8), None
    ),
    "shared counts, rows not drawn": lambda r: make(r).resample_together(
        [make(r, by_rows=False)], np.ones((1, 9), dtype=np.uint8), None
    ),
    "counts that are not shared, and columns": lambda r: make(r).resample_together(
        [make(r, table=(SCORE, N, K.copy()))], np.ones((1, 2), dtype=np.uint8), None
    ),
    "order of shared counts": lambda r: make(r).resample_together(
        [make(r)], np.ones((1, 9), dtype=np.uint8), np.arange(1, 10, dtype=np.int32)
    ),
    "outcomes": lambda r: make(r).simulate_drawn(np.full((1, 9), 2, dtype=np.uint8), None),
    "outcomes of other rows": lambda r: make(r).simulate_drawn(np.ones((1, 8), dtype=np.uint8), None),
    "outcomes of rows not drawn": lambda r: make(r, by_rows=False).simulate_drawn(
        np.ones((1, 9), dtype=np.uint8), None
    ),
}
ROWS, WEIGHT, EVENT = ints(1, 2, 1), np.array([1.0, 0.5, 2.0, 3.0]), np.array([0, 1, 0, 1], dtype=np.uint8)
CRITICAL = np.linspace(3.8, 5, 9)
TIMES = np.ones((1, 4), dtype=np.uint8)


def weigh(make, plan=_kernels.Plan(), rows=(SCORE, ROWS, WEIGHT, EVENT)):  # noqa: B008  (frozen)
    return make(*rows, plan)


def blocks(critical, step):
    return _kernels.Plan(blocks=[_kernels.WeightedBlocks(-1, 0.05, 0, -1, 0.2, critical, step)])


WEIGHTED = {
    "score": lambda w: weigh(w, rows=(SCORE * 3, ROWS, WEIGHT, EVENT)),
    "NaN": lambda w: weigh(w, rows=(SCORE * np.nan, ROWS, WEIGHT, EVENT)),
    "lengths": lambda w: weigh(w, rows=(SCORE[:2], ROWS, WEIGHT, EVENT)),
    "rows": lambda w: weigh(w, rows=(SCORE, ints(1, 1, 1), WEIGHT, EVENT)),
    "no rows": lambda w: weigh(w, rows=(SCORE, ints(0, 3, 1), WEIGHT, EVENT)),
    "many rows": lambda w: weigh(w, rows=(SCORE, ints(2**62, 2**62, 1), WEIGHT, EVENT)),
    "events": lambda w: weigh(w, rows=(SCORE, ROWS, WEIGHT, EVENT[:3])),
    "event": lambda w: weigh(w, rows=(SCORE, ROWS, WEIGHT, EVENT + np.uint8(1))),
    "weight 0": lambda w: weigh(w, rows=(SCORE, ROWS, WEIGHT - 1, EVENT)),
    "infinite weight": lambda w: weigh(w, rows=(SCORE, ROWS, WEIGHT * np.inf, EVENT)),
    "starts": lambda w: weigh(w, _kernels.Plan(fixed=[ints(0, 7)])),
    "bins": lambda w: weigh(w, _kernels.Plan(quantiles=[0])),
    "coefficients": lambda w: weigh(w, _kernels.Plan(linear=[(SCORE[:2], SCORE)])),
    "critical values": lambda w: weigh(w, blocks(CRITICAL[:3], 0.1)),
    "step": lambda w: weigh(w, blocks(CRITICAL, 0.0)),
    "drawn columns": lambda w: weigh(w)(TIMES[:, :2], None),
    "order": lambda w: weigh(w)(TIMES, np.array([0, 1, 2, 4], dtype=np.int32)),
    "negative order": lambda w: weigh(w)(TIMES, np.array([0, 1, 2, -1], dtype=np.int32)),
    "negative draws": lambda w: weigh(w)(-TIMES.astype(np.int32), None),
}
SHARES = np.array([[0.2, 0.5, 1.0], [0.0, 0.0, 0.3]])
CLASSES = {
    "falling": SHARES[:, ::-1].copy(),
    "negative": SHARES - 0.1,
    "nothing": SHARES * 0,
    "NaN": SHARES * np.nan,
    "infinite": np.where(SHARES == 1, np.inf, SHARES),
    "no classes": SHARES[:, :0].copy(),
}
SIGNED = {
    "start": (VALUES, ints(0, 7), None),
    "first start": (VALUES, ints(1), None),
    "no start": (VALUES, ints(), None),
    "unit": (VALUES, ints(0), ints(0, -1, 1)),
    "units": (VALUES, ints(0), ints(0, 1)),
    "large unit": (VALUES, ints(0), ints(0, 1, 2**40)),
}


def message(function, *arguments):
    with pytest.raises(ValueError, match="must|at most|only") as caught:
        function(*arguments)
    return str(caught.value)


@compiled_only
@pytest.mark.parametrize("case", CALLS)
def test_wrong_arguments_raise_the_same_error_on_both_kernels(case):
    name, arguments = CALLS[case]
    assert message(getattr(_kernels, name), *arguments) == message(getattr(reference, name), *arguments)


@compiled_only
@pytest.mark.parametrize("case", REPLICATES)
def test_wrong_replicates_raise_the_same_error_on_both_kernels(case):
    texts = [message(REPLICATES[case], each) for each in (_kernels.replicates, reference_replicates.replicates)]
    assert texts[0] == texts[1]


@compiled_only
@pytest.mark.parametrize("case", SIGNED)
def test_wrong_signed_sums_raise_the_same_error_on_both_kernels(case):
    texts = [message(each, 1, 0, 2, *SIGNED[case]) for each in (_kernels.signed_sums, reference_replicates.signed_sums)]
    assert texts[0] == texts[1]


@compiled_only
@pytest.mark.parametrize("case", WEIGHTED)
def test_wrong_weighted_rows_raise_the_same_error_on_both_kernels(case):
    makers = (_kernels.weighted_replicates, reference_replicates.weighted_replicates)
    texts = [message(WEIGHTED[case], make) for make in makers]
    assert texts[0] == texts[1]


@compiled_only
@pytest.mark.parametrize("case", CLASSES)
def test_wrong_probabilities_of_classes_raise_the_same_error_on_both_kernels(case):
    texts = [message(kernel.class_draws, 1, 0, 2, CLASSES[case]) for kernel in (_kernels, reference_replicates)]
    assert texts[0] == texts[1]


@compiled_only
def test_draws_that_never_end_and_results_that_fit_no_memory_are_refused():
    from calibrant._kernels import _core

    for shares in ([0.0], [0.1, 0.2, 0.3], [0.5, 0.4], [np.nan], [1.0], np.linspace(0.4, 0.99, 300)):
        with pytest.raises(ValueError, match="poisson must"):
            _core.draw(1, 0, 5000, np.array(shares, dtype=float))
    for shares in ([], [0.0], [0.5, 0.4], [np.nan], [1.0], np.linspace(0.4, 0.99, 300)):
        with pytest.raises(ValueError, match="poisson must"):
            _core.draw_poisson(1, 0, 2, 50, np.array(shares, dtype=float))
    for call in (
        lambda: _core.draw_many(1, 0, 2**40, 2**31, np.empty(0)),
        lambda: _core.sum_signed(1, 0, 2**62, VALUES, ints(0), ints(), 0),
        lambda: _core.draw_poisson(1, 0, 2**40, 2**31, np.array([0.4, 0.7])),
        lambda: _core.draw_classes(1, 0, 2**62, SHARES),
        lambda: make(_kernels.replicates, Plan(quantiles=[10]))._core.measure(
            np.empty((0, 3), np.int64), np.empty((1, 3), np.int64)
        ),
        lambda: make(_kernels.replicates, Plan(quantiles=[2**30])).simulate(1, 0, 2**40),
    ):
        with pytest.raises(ValueError, match="must"):
            call()


@pytest.mark.parametrize("k", WRONG.values(), ids=WRONG)
def test_metrics_of_a_table_that_no_check_has_seen_raise_an_error(k):
    """TCE of such a table crashed the interpreter."""
    table = cb.ScoreTable(SCORE, N, k)
    for metric in (cb.TCE(), cb.TCE(bins=cb.bins.PAVABC(n_min=0, n_max=1)), cb.ECE(), cb.metrics.Brier()):
        with pytest.raises(ValueError, match="k must lie between 0 and n"):
            metric(table)


@pytest.mark.parametrize("seed", range(20))
def test_no_table_crashes_a_metric(seed):
    """Wrong counts of single rows, whose sums are those of counts, are not noticed by the kernel."""
    rng = np.random.default_rng(seed)
    score, size = rng.normal(0.5, 0.4, 50), 50
    n, k = rng.integers(-3, 9, size), rng.integers(-3, 9, size)
    for table in (cb.ScoreTable(score, n, k), cb.ScoreTable(np.sort(score), np.abs(n), np.abs(k))):
        for metric in (
            cb.TCE(),
            cb.TCE(bins=cb.bins.PAVABC(n_min=0, n_max=2)),
            cb.ECE(),
            cb.metrics.ACE(),
            cb.metrics.Brier(),
        ):
            with np.errstate(all="ignore"), contextlib.suppress(ValueError, IndexError):
                metric(table)


def test_values_that_are_missing_lie_above_all_edges():
    found = _kernels.locate(np.array([0.2, 0.5]), np.array([np.nan, 0.1, 0.5, np.inf]))
    assert found.tolist() == [2, 0, 2, 2]
