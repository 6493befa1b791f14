"""Render every display on real data and on edge cases, as PNG and SVG, with an index page.

``make pictures NAME=gallery`` writes build/gallery/index.html; ``make pictures NAME=documentation`` writes the images
of README and documentation, which need no data folder.
"""

import html
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import calibrant as cb
from calibrant import plots, regression
from tests.visual import sets
from tests.visual.cases import hard_cases
from tests.visual.layout import unreadable

ROOT = Path(__file__).parents[2]
OUT = ROOT / "build" / "gallery"
IMAGES = ROOT / "docs" / "images"

Draw = Callable[[Figure], Any]


def new_figure(*size: float) -> Figure:
    return Figure(figsize=size, layout="constrained")


def paper_figures() -> Iterator[tuple[str, tuple[float, float], Draw]]:
    """Figures 1 to 7 of the TCE paper: the test-based diagram beside those of ECE and ACE, and the bins."""
    models = sets.networks() | dict(sets.figure_models())
    for name, (y, p) in models.items():
        table = cb.ScoreTable.from_arrays(y, p)
        yield f"{name}, test-based", (8, 5.6), partial(_tested, table)
        yield f"{name}, test-based, logit", (8, 5.6), partial(_tested, table, scale="logit")
        yield f"{name}, ECE", (6.4, 6.4), partial(_reliability, table, cb.bins.EqualWidth(10))
        yield f"{name}, ACE", (6.4, 6.4), partial(_reliability, table, cb.bins.EqualSize(10), scale="logit")
        if name.endswith("RF"):
            yield f"{name}, bins", (8, 6.9), partial(plots.BinningDisplay.from_predictions, table)
            yield f"{name}, bins below 0.1", (8, 6.9), partial(plots.BinningDisplay.from_predictions, table, xmax=0.1)


def _tested(table: cb.ScoreTable, *, fig: Figure, **options: Any) -> Any:
    return plots.TestBasedReliabilityDisplay.from_predictions(table, fig=fig, **options)


def _reliability(table: cb.ScoreTable, bins: Any, *, fig: Figure, **options: Any) -> Any:
    return plots.ReliabilityDisplay.from_predictions(table, bins=bins, band="both", n_resamples=199, fig=fig, **options)


def forecasts() -> Iterator[tuple[str, tuple[float, float], Draw]]:
    """Yield every display of forecasts of games, and several models side by side."""
    for name in sets.FORECASTS:
        y, p, season = sets.forecast(name)
        yield from every_display(name, cb.ScoreTable.from_arrays(y, p))
        yield f"{name}, by season", (7.2, 4), partial(plots.GroupDisplay.from_predictions, y, p, by=season)
        evaluation = cb.evaluate(y, p, by=season)
        yield f"{name}, evaluation", (11.5, 9.6), partial(evaluation.plot)
    networks = sets.networks()
    y, scores = networks["AlexNet"][0], {name: p for name, (_, p) in networks.items()}
    displays = {
        "reliability": partial(plots.ReliabilityDisplay.from_predictions, scale="logit", bins=cb.bins.EqualSize(10)),
        "costs": partial(plots.CostDisplay.from_predictions, bins=cb.bins.EqualSize(10)),
        "decomposition": plots.DecompositionDisplay.from_predictions,
    }
    for name, make in displays.items():
        yield f"networks, {name}", (6.4, 6.4 if name == "reliability" else 4.6), partial(make, y, scores)
    yield "networks, comparison", (11.5, 6.6), partial(cb.compare(y, scores, n_resamples=99).plot)


def every_display(name: str, table: cb.ScoreTable) -> Iterator[tuple[str, tuple[float, float], Draw]]:
    """Yield all displays of one model."""
    yield f"{name}, test-based", (8, 5.6), partial(_tested, table)
    yield f"{name}, test-based, log", (8, 5.6), partial(_tested, table, scale="log")
    yield f"{name}, test-based, cut", (8, 5.6), partial(_tested, table, ymax=0.2)
    yield f"{name}, reliability", (6.4, 6.4), partial(_reliability, table, cb.bins.EqualWidth(10))
    yield f"{name}, reliability, PAVA", (6.4, 6.4), partial(_reliability, table, cb.bins.PAVA())
    yield (
        f"{name}, reliability, PAVA-BC, logit",
        (6.4, 6.4),
        partial(_reliability, table, cb.bins.PAVABC(), scale="logit"),
    )
    yield f"{name}, bins", (8, 6.9), partial(plots.BinningDisplay.from_predictions, table)
    yield f"{name}, cumulative", (6.4, 4.4), partial(plots.CumulativeDisplay.from_predictions, table)
    yield f"{name}, decomposition", (6.4, 4.8), partial(plots.DecompositionDisplay.from_predictions, table)
    yield f"{name}, null", (6.4, 3.6), partial(plots.NullDisplay.from_predictions, table, n_resamples=199)
    yield f"{name}, costs", (6.4, 4.4), partial(plots.CostDisplay.from_predictions, table)
    if table.has_both_classes:
        yield f"{name}, ROC hull", (5.6, 5.6), partial(plots.RocHullDisplay.from_predictions, table)


def hard() -> Iterator[tuple[str, tuple[float, float], Draw]]:
    """Yield every display of every edge case, and displays with very many bins."""
    for name, (y, p) in hard_cases().items():
        table = cb.ScoreTable.from_arrays(y, p)
        yield from every_display(name, table)
        groups = {"all": table, "again $": table}
        yield f"{name}, groups", (7.2, 3), partial(plots.GroupDisplay.from_predictions, groups, n_resamples=49)
    y, p = hard_cases()["a million rows"]
    table = cb.ScoreTable.from_arrays(y, p)
    for count in (60, 200, 1000):
        tested = cb.TCE(bins=cb.bins.EqualSize(count))
        yield (
            f"{count} bins, test-based",
            (8, 5.6),
            partial(_tested, table, metric=tested, n_resamples=0, scale="logit"),
        )
        yield (
            f"{count} bins, reliability",
            (6.4, 6.4),
            partial(plots.ReliabilityDisplay.from_predictions, table, bins=cb.bins.EqualSize(count)),
        )
    days = np.repeat(np.arange("2026-01-01", "2026-04-01", dtype="datetime64[D]"), 300)
    rng = np.random.default_rng(1)
    risk = rng.beta(2, 8, days.size)
    event = rng.random(days.size) < np.where(np.arange(days.size) > 20_000, risk**1.4, risk)
    yield "90 days", (8, 4), partial(plots.GroupDisplay.from_predictions, event, risk, by=days, n_resamples=49)


def documentation() -> dict[str, tuple[tuple[float, float], Draw]]:
    """Yield the images of README and documentation, of the digits of scikit-learn."""
    from examples import demo

    y, scores = demo.predictions()
    forest = cb.ScoreTable.from_arrays(y, scores["forest"])
    return {
        "test_based": ((7.6, 4.9), partial(_tested, forest)),
        "test_based_logit": ((7.6, 4.9), partial(_tested, forest, scale="logit")),
        "reliability": (
            (5.4, 5.4),
            partial(plots.ReliabilityDisplay.from_predictions, y, scores, bins=cb.bins.EqualSize(10)),
        ),
        "consistency": ((5.4, 5.4), partial(_reliability, forest, cb.bins.PAVA())),
        "binning": ((7.6, 6.2), partial(plots.BinningDisplay.from_predictions, forest)),
        "cumulative": ((5.6, 3.8), partial(plots.CumulativeDisplay.from_predictions, forest)),
        "decomposition": ((5.6, 4.2), partial(plots.DecompositionDisplay.from_predictions, y, scores)),
        "groups": (
            (6.8, 4.2),
            partial(plots.GroupDisplay.from_predictions, y, scores["forest"], by=demo.ink()),
        ),
        "curves": ((5.2, 5.2), partial(plots.CalibrationCurveDisplay.from_predictions, forest)),
        "decision_curve": ((6.2, 4.4), partial(plots.DecisionCurveDisplay.from_predictions, y, scores)),
        "null": ((5.6, 3.2), partial(plots.NullDisplay.from_predictions, forest)),
        "costs": ((5.6, 3.8), partial(plots.CostDisplay.from_predictions, y, scores)),
        "roc_hull": ((5.0, 5.0), partial(plots.RocHullDisplay.from_predictions, forest)),
        "recalibration": (
            (5.4, 5.4),
            partial(
                plots.ReliabilityDisplay.from_predictions,
                y,
                {"forest": scores["forest"], "recalibrated": demo.recalibrated()},
                bins=cb.bins.EqualSize(10),
            ),
        ),
        **number_pictures(),
        "evaluation": ((11, 6), cb.evaluate(forest).plot),
        "comparison": ((11, 6), cb.compare(y, scores).plot),
    }


def number_pictures() -> dict[str, tuple[tuple[float, float], Draw]]:
    """Yield the displays of point predictions and distributions."""
    y, forecast, learn, test = sets.forest_forecasts()
    real, new = y[test], forecast.part(test)
    pareto = regression.ParetoRecalibrator().fit(forecast.part(learn), y[learn])
    narrow = regression.Gaussian(new.mean, new.sd / 2)
    scaled = regression.VarianceScaling().fit(regression.Gaussian(forecast.mean, forecast.sd / 2).part(learn), y[learn])
    several = {"half as wide": narrow, "scaled": scaled(narrow), "original": new, "Pareto": pareto(new)}
    return {
        "bias": ((5.6, 5.6), partial(plots.BiasDisplay.from_predictions, real, new.mean)),
        "pit": ((6.2, 3.6), partial(plots.PITDisplay.from_predictions, real, new)),
        "coverage": ((5.2, 5.2), partial(plots.CoverageDisplay.from_predictions, real, several)),
        "pareto": ((8.4, 3.6), partial(plots.ParetoDisplay.from_recalibrator, pareto, new, real)),
        "rec": (
            (5.6, 4.2),
            partial(plots.RECDisplay.from_predictions, real, _recalibrated(forecast.mean, y, learn, test)),
        ),
    }


def _recalibrated(predicted: Any, y: Any, learn: slice, test: slice) -> dict[str, Any]:
    """Return predictions, those of a linear recalibration, and predictions with a bias."""
    linear = regression.LinearRecalibrator().fit(predicted[learn], y[learn])
    return {"forest": predicted[test], "linear": linear(predicted[test]), "forest + 2": predicted[test] + 2}


def numbers() -> Iterator[tuple[str, tuple[float, float], Draw]]:
    """Yield the displays of point predictions on edge cases."""
    for name, (size, draw) in number_pictures().items():
        yield name, size, draw
    rng = np.random.default_rng(0)
    p = rng.normal(size=100_000)
    cases = {
        "many rows": (p + rng.normal(size=p.size), p),
        "prices": (np.exp(12 + p[:3000]) * rng.gamma(20, 0.05, 3000), np.exp(12 + p[:3000])),
        "one row": ([1.0], [2.0]),
        "constant predictions": (p[:50], np.ones(50)),
        "counts": (rng.poisson(np.exp(p[:800])).astype(float), np.exp(p[:800]).round(1)),
        "tiny": (1e-9 * p[:300], 1.2e-9 * p[:300]),
    }
    for name, (outcome, predicted) in cases.items():
        yield f"bias, {name}", (5.6, 5.6), partial(plots.BiasDisplay.from_predictions, outcome, predicted)
        yield f"REC, {name}", (5.6, 4.2), partial(plots.RECDisplay.from_predictions, outcome, predicted)
    for name, u in {"one": [0.4], "ends": [0.0, 1.0] * 50, "many": rng.beta(0.8, 0.8, 50_000)}.items():
        yield f"PIT, {name}", (6.2, 3.6), partial(plots.PITDisplay.from_pit, u)
    few = {f"model {i}": regression.Gaussian(np.zeros(30), 0.3 + 0.2 * i) for i in range(9)}
    nine = {f"model {i}": p[:300] + 0.2 * i for i in range(9)}
    yield "REC, nine models", (5.6, 4.2), partial(plots.RECDisplay.from_predictions, p[:300], nine)
    yield "coverage, few rows, nine models", (5.4, 5.4), partial(plots.CoverageDisplay.from_predictions, p[:30], few)


def render_documentation() -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    for name, (size, draw) in documentation().items():
        path = IMAGES / f"{name}.svg"
        plots.save(draw(fig=new_figure(*size)), path)
        print(f"{path.relative_to(ROOT)}  {path.stat().st_size / 1000:.0f} kB")


def render_gallery(only: str = "") -> int:
    """Draw all figures, or those with `only` in their name; return the number of figures with unreadable text."""
    OUT.mkdir(parents=True, exist_ok=True)
    page, bad = [], 0
    for part, make in {"paper": paper_figures, "forecasts": forecasts, "numbers": numbers, "hard": hard}.items():
        for name, size, draw in make():
            file = f"{part}-{''.join(c if c.isalnum() else '-' for c in name)}"
            if only not in f"{part} {name}":
                continue
            began = time.perf_counter()
            display = draw(fig=new_figure(*size))
            plots.save(display, OUT / f"{file}.png", dpi=80)
            plots.save(display, OUT / f"{file}.svg")
            took, kilobytes = time.perf_counter() - began, (OUT / f"{file}.svg").stat().st_size / 1000
            print(f"{took:6.2f} s {kilobytes:6.0f} kB  {part}: {name}", flush=True)
            for problem in unreadable(display.figure_):
                bad += 1
                print(f"    {problem}", flush=True)
            text = html.escape(display.alt_text(), quote=True)
            caption = f"<figcaption>{html.escape(name)}<br>{text}</figcaption>"
            page.append(f'<figure><img src="{file}.svg" alt="{text}">{caption}</figure>')
    style = "body{font-family:sans-serif}figure{display:inline-block;max-width:46%}img{max-width:100%}"
    (OUT / "index.html").write_text(f"<!doctype html><meta charset=utf-8><style>{style}</style>{''.join(page)}")
    print(f"{len(page)} pictures, {bad} problems of layout: {OUT / 'index.html'}")
    return bad


if __name__ == "__main__":
    warnings.simplefilter("error")
    if "--docs" in sys.argv:
        render_documentation()
    else:
        sys.exit(render_gallery(*sys.argv[1:2]) > 0)
