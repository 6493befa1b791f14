"""Results in a notebook: short texts and HTML at the end of a cell, and a progress bar that leaves nothing behind."""

import html
import pickle

import numpy as np
import pytest

import calibrant as cb

nbformat = pytest.importorskip("nbformat", reason="nbclient is not installed")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
pytest.importorskip("ipykernel", reason="ipykernel is not installed")

pytestmark = pytest.mark.xdist_group("notebook")  # one worker starts a kernel

SETUP = """
import numpy as np, calibrant as cb
rng = np.random.default_rng(0)
p = rng.random(300)
y = (rng.random(300) < p).astype(int)
e = cb.evaluate(y, p, n_resamples=19)
"""
CELLS = {
    "progress": """
from calibrant._support import progress
progress._DELAY = progress._REDRAW_EVERY = -1
for _ in progress.progress_bar(range(3), 3, "drawing"):
    pass
progress._DELAY = 1.0
""",
    "evaluation": "e",
    "metric": "e['ECE']",
    "metrics": "e.metrics",
    "test": "cb.inference.spiegelhalter(y, p)",
    "interval": "cb.interval('ece', y, p, n_resamples=19)",
    "display": "cb.plots.ReliabilityDisplay.from_predictions(y, p)",
    "calibrator": "cb.Beta().fit(p, y)",
    "forecast": "cb.Gaussian(p, p + 1)",
}


@pytest.fixture(scope="module")
def outputs():
    """Run the cells in a kernel; return the outputs of each."""
    cells = [nbformat.v4.new_code_cell(source) for source in (SETUP, *CELLS.values())]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=120).execute()
    return dict(zip(("setup", *CELLS), (cell.outputs for cell in notebook.cells), strict=True))


def shown(outputs):
    (result,) = [output for output in outputs if output.output_type == "execute_result"]
    return result.data


def test_nothing_is_printed_beside_results(outputs):
    assert outputs["setup"] == []
    for name, cell in outputs.items():
        assert not [output for output in cell if output.output_type == "stream"], name


def test_the_progress_bar_leaves_an_empty_output(outputs):
    (bar,) = outputs["progress"]
    assert bar.output_type == "display_data"
    assert dict(bar.data) == {"text/plain": "", "text/html": ""}


@pytest.mark.parametrize("name", ["evaluation", "metric", "metrics", "test", "interval", "calibrator"])
def test_results_have_html(outputs, name):
    data = shown(outputs[name])
    assert data["text/html"].startswith(("<p><strong>", "<table>", "<style>"))
    if name in ("metric", "test", "interval"):
        assert "\n" not in data["text/plain"]
        assert len(data["text/plain"]) < 150


def test_a_display_is_a_picture_and_one_line(outputs):
    assert shown(outputs["display"])["text/plain"] == "ReliabilityDisplay(model: 10 bins)"
    (picture,) = [output for output in outputs["display"] if output.output_type == "display_data"]
    assert "image/png" in picture.data


def test_a_forecast_is_printed_without_its_rows(outputs):
    assert shown(outputs["forecast"])["text/plain"] == "Gaussian(mean=<300 float64>, sd=<300 float64>)"


def test_mappings_of_results_are_tables_of_one_line_each():
    e = cb.evaluate([0, 1, 1, 0] * 50, [0.3, 0.6, 0.8, 0.2] * 50, by=["<b>", "b"] * 100, n_resamples=19)
    for found in (e.metrics, e.tests, e.groups, e.breakdowns):
        lines = repr(found).splitlines()
        assert len(lines) == len(found)
        assert all(line.split()[0] == str(name).split()[0] for line, name in zip(lines, found, strict=True))
        assert found._repr_html_().count("<tr>") == len(found) + 1
    assert "<b>" not in e.groups._repr_html_()
    assert isinstance(e.metrics, dict)
    again = pickle.loads(pickle.dumps(e))
    assert repr(again.metrics) == repr(e.metrics)


def test_many_groups_are_printed_briefly():
    table = cb.ScoreTable.from_counts([0.3, 0.7], [50, 50], [16, 34])
    e = cb.evaluate({f"g{i}": table for i in range(40)}, n_resamples=19)
    assert len(repr(e.groups).splitlines()) == 31
    assert repr(e.groups).splitlines()[-1].split() == ["...", "and", "10", "more"]


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (cb.metrics.corp_decomposition([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.9]), "CorpDecomposition(mcb="),
        (
            cb.metrics.slope_intercept([0, 1, 0, 1, 1, 0] * 5, [0.1, 0.4, 0.3, 0.9, 0.6, 0.7] * 5),
            "SlopeIntercept(slope=",
        ),
        (
            cb.Quantiles([0.1, 0.9], np.arange(40.0).reshape(20, 2)),
            "Quantiles(levels=array([0.1, 0.9]), values=<20 x 2",
        ),
    ],
)
def test_numbers_and_arrays_are_short(result, text):
    assert repr(result).startswith(text)
    assert len(repr(result)) < 120


def test_tables_of_decisions_rankings_and_audits_have_html():
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    rng = np.random.default_rng(0)
    p = rng.random(600)
    y = (rng.random(600) < p).astype(int)
    hostile = "<img src=x>\x1b[31m"
    decided = cb.decisions(y, {hostile: p, "half": np.full(600, 0.5)})
    ranked = cb.AutoCalibrator(calibrators={hostile: cb.Platt()}, cv=2, n_resamples=19).fit(p, y).ranking_
    audited = cb.audit(y, p, {hostile: np.ones(600)}, n_resamples=0)
    for result, rows in ((decided, 2), (ranked, 2), (audited, 0)):
        shown = result._repr_html_()
        assert shown.startswith("<p><strong>")
        assert shown.count("<tr>") == (rows + 1 if rows else 0)
        assert "<img" not in shown
        assert "\x1b" not in shown + repr(result)
        assert repr(result).splitlines()[0] in html.unescape(shown)
