"""The ROC curve with its convex hull, by the numbers that its artists hold."""

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
pytest.importorskip("pandas", reason="pandas is not installed")

from matplotlib.figure import Figure

import calibrant as cb
from calibrant import plots
from tests.plots.displays import number, page


def test_the_hull_has_the_bins_of_pava_as_its_segments(rows, figure):
    y, p = rows
    drawn = plots.RocHullDisplay.from_predictions(y, p, fig=figure)
    bins = cb.bins.PAVA()(cb.ScoreTable.from_arrays(y, p))
    assert [number(s) for s in drawn.segments_] == list(range(len(bins)))
    events, others = y.sum(), (~y).sum()
    for i, segment in enumerate(drawn.segments_):
        (x0, y0), (x1, y1) = segment.get_path().vertices
        assert x1 - x0 == pytest.approx((bins.n[i] - bins.k[i]) / others)
        assert y1 - y0 == pytest.approx(bins.k[i] / events)
    rates = drawn.data()["rate"].to_numpy()
    assert (np.diff(rates) > 0).all()


def test_the_roc_curve_is_scikit_learns(rows, figure):
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
    drawn = plots.RocHullDisplay.from_predictions(*rows, fig=figure)
    x, y, _ = metrics.roc_curve(*rows, drop_intermediate=False)
    assert drawn.curve_.get_xdata() == pytest.approx(x)
    assert drawn.curve_.get_ydata() == pytest.approx(y)
    assert drawn.auc == pytest.approx(metrics.auc(x, y))
    assert drawn.hull_auc == pytest.approx(metrics.roc_auc_score(rows[0], _recalibrated(*rows)))


def _recalibrated(y, p):
    from sklearn.isotonic import IsotonicRegression

    return IsotonicRegression().fit_transform(p, y)


def test_concavities_are_where_the_curve_sags(figure):
    """Perfectly ranked rows have none; one swapped pair makes one."""
    drawn = plots.RocHullDisplay.from_predictions([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9], fig=figure)
    assert drawn.concavities_ == []
    assert drawn.data()["depth"].max() == 0
    swapped = plots.RocHullDisplay.from_predictions([0, 1, 0, 1], [0.1, 0.2, 0.8, 0.9], fig=Figure())
    assert [c.get_gid() for c in swapped.concavities_] == ["roc-hull-bin-1-concavity"]
    assert swapped.data()["depth"].tolist() == pytest.approx([0, np.sqrt(0.125), 0])


def test_a_thinned_roc_curve_stays_close_and_touches_the_hull(rng, figure):
    p = rng.random(30_000)
    y = rng.random(30_000) < p
    drawn = plots.RocHullDisplay.from_predictions(y, p, fig=figure)
    x, tpr = drawn.curve_.get_data()
    assert x.size < 2_000
    full_x, full_y = drawn._rates(drawn.table.n, drawn.table.k)
    assert np.abs(np.interp(full_x + full_y, x + tpr, tpr) - full_y).max() < 0.002
    corners = {tuple(c) for c in drawn.corners_.get_xydata().round(12)}
    assert corners <= {tuple(c) for c in drawn.curve_.get_xydata().round(12)}


def test_one_class_has_no_roc_curve():
    with pytest.raises(cb.InputError, match="A ROC curve needs rows with and without the event"):
        plots.RocHullDisplay.from_predictions([0, 0], [0.1, 0.2], fig=Figure())


@pytest.mark.parametrize("size", [600, 30_000])
@pytest.mark.parametrize("weighted", [False, True])
def test_concavities_are_the_gain_of_the_hull(size, weighted, rng):
    p = rng.random(size)
    y = rng.random(size) < p
    rows = {"sample_weight": rng.exponential(size=size)} if weighted else {}
    drawn = plots.RocHullDisplay.from_predictions(y, p, fig=page(), **rows)
    area = 0.0
    for patch in drawn.concavities_:
        x, height = patch.get_path().vertices.T
        area += abs(np.sum(x[:-1] * height[1:] - x[1:] * height[:-1])) / 2
    slack = 1e-9 if size < 1000 else 2e-5  # a curve of many points is thinned
    assert area == pytest.approx(drawn.hull_auc - drawn.auc, abs=slack)
