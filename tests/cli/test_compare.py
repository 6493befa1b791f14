"""`calibrant compare`."""

import json
from pathlib import Path

import numpy as np
import pytest

import calibrant as cb

for library in ("click", "rich", "duckdb", "pyarrow"):
    pytest.importorskip(library, reason=f"{library} is not installed")

FEW = ("--resamples", "39")
ANIMALS = ["ant", "bee", "cat"]
LEVELS = (0.1, 0.5, 0.9)


def test_compare_is_paired(scores, call):
    given = ["scores.csv", "-y", "y", "-p", "p", "-p", "q", *FEW]
    text = call("compare", *given, "--json", "out.json")
    expected = cb.compare(scores["y"], {"p": scores["p"], "q": scores["q"]}, n_resamples=39)
    assert text.startswith("Verdict: q is better calibrated than p")
    assert {k: v for k, v in json.loads(Path("out.json").read_text()).items() if k in expected.to_dict()} == json.loads(
        json.dumps(expected.to_dict())
    )
    assert "compare needs at least two forecasts; got 1. Repeat --score." in call(
        "compare", "scores.csv", "-y", "y", "-p", "p", code=2
    )
    assert "at least 10 distinct values" in call("compare", *given, "--cluster", "g", code=2)
    lines = Path("scores.csv").read_text().splitlines()
    clustered = [f"{line},{'h' if i == 0 else i // 20}" for i, line in enumerate(lines)]
    Path("clustered.csv").write_text("\n".join(clustered))
    assert "Verdict" in call("compare", "clustered.csv", *given[1:], "--cluster", "h")


def test_compare_drops_rows_for_all_scores(here, call):
    Path("holes.csv").write_text("y,p,q\n" + "".join(f"{i % 2},{'NA' if i == 3 else i / 50},0.5\n" for i in range(50)))
    given = ["holes.csv", "-y", "y", "-p", "p", "-p", "q", *FEW]
    assert "--missing drop" in call("compare", *given, code=2)
    text = call("compare", *given, "--missing", "drop")
    assert "49 rows" in text
    assert "Rows dropped because a value is missing: 1." in text


KINDS = {
    "-y price --point right --point high": lambda c: ("price", {name: cb.Point(c[name]) for name in ("right", "high")}),
    "-y animal --predicted-label fair --predicted-label unfair": lambda c: (
        "animal",
        {name: cb.Labels(c[name]) for name in ("fair", "unfair")},
    ),
    "-y animal --class-score p_* --class-score sharp_*": lambda c: (
        "animal",
        {f"{name}_*": stack(c, [f"{name}_{label}" for label in ANIMALS]) for name in ("p", "sharp")},
    ),
    "-y price --mean right --sd sd --mean high --sd small": lambda c: (
        "price",
        {mean: cb.Gaussian(c[mean], c[sd]) for mean, sd in (("right", "sd"), ("high", "small"))},
    ),
    "-y price --quantile q* --quantile narrow*": lambda c: (
        "price",
        {f"{name}*": cb.Quantiles(LEVELS, stack(c, [f"{name}{q}" for q in LEVELS])) for name in ("q", "narrow")},
    ),
    "-y price --sample m_* --sample tight_*": lambda c: (
        "price",
        {f"{name}_*": cb.Samples(stack(c, [f"{name}_{i}" for i in range(1, 10)])) for name in ("m", "tight")},
    ),
}


def stack(columns, names):
    return np.column_stack([columns[name] for name in names])


@pytest.mark.parametrize("options", KINDS)
def test_comparisons_of_each_kind_equal_those_of_the_library(forecasts, call, options):
    outcome, models = KINDS[options](forecasts)
    classes = {"classes": ANIMALS} if "--class-score" in options else {}
    expected = cb.compare(forecasts[outcome], models, n_resamples=39, cluster=forecasts["shop"], **classes)
    given = ("compare", "forecasts.parquet", *options.split(), *FEW, "--cluster", "shop")
    found = json.loads(call(*given, "--json", "-"))
    assert {name: found[name] for name in expected.to_dict()} == json.loads(expected.to_json())
    assert (found["n_in"], found["n_used"], found["n_dropped"]) == (2000, 2000, 0)
    assert call(*given).startswith(f"Verdict: {expected.verdict}\n2,000 rows")
    assert f"{list(models)[1]} is worse calibrated than {next(iter(models))}" == expected.verdict


def test_rows_of_other_kinds_are_dropped_for_all_models(here, call):
    lines = [f"{i % 7 + i / 30},{'NA' if i == 3 else i / 30},{'NA' if i in (3, 5) else i / 20}" for i in range(300)]
    Path("holes.csv").write_text("\n".join(["y,a,b", *lines]))
    given = ("compare", "holes.csv", "-y", "y", "--point", "a", "--point", "b", *FEW)
    assert "a in holes.csv has 1 missing value (first at row 3). Pass --missing drop" in call(*given, code=2)
    found = json.loads(call(*given, "--missing", "drop", "--json", "-"))
    assert (found["n_in"], found["n_used"], found["n_dropped"]) == (300, 298, 2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("-y price --point right", "compare needs at least two forecasts; got 1. Repeat --point."),
        ("-y animal --class-score p_*", "compare needs at least two forecasts; got 1. Repeat --class-score."),
        ("-y price --point right --score p_ant", "--score and --point must not be given together; got both."),
        ("-y price --point right --point high --bins 3", "--bins must be given with --score only; got --point."),
    ],
)
def test_comparisons_need_two_forecasts_of_one_kind(forecasts, call, options, words):
    assert words in call("compare", "forecasts.csv", *options.split(), code=2)
