"""Each JSON that Calibrant writes has a schema, follows it, and has no field that the schema does not describe."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

import calibrant as cb
from calibrant import json_schemas
from tests.kinds.cases import AUDITED, KINDS, draw

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")

FEW = {"n_resamples": 39, "random_state": 0}


def close(schema):
    """Return a schema that refuses fields without a description."""
    if isinstance(schema, list):
        return [close(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: close(value) for key, value in schema.items()}
    if schema.get("type") == "object" and "properties" in schema:
        closed.setdefault("additionalProperties", False)
    return closed


def problems(document, name):
    """What is wrong with a document; the JSON text is read again, as another program does."""
    read = json.loads(json.dumps(document, allow_nan=False))
    validator = jsonschema.Draft202012Validator(close(json_schemas.load(name)))
    found = (jsonschema.exceptions.best_match([error]) for error in validator.iter_errors(read))
    return [f"{'/'.join(map(str, each.absolute_path))}: {each.message[:200]}" for each in found]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(5)
    n = 240
    p = rng.uniform(0.02, 0.98, n)
    probabilities = rng.dirichlet([2, 2, 2], n)
    return {
        "p": p,
        "y": (rng.random(n) < p**1.4).astype(int),
        "group": np.where(np.arange(n) % 3 > 0, "a", "b"),
        "weight": rng.uniform(1, 3, n),
        "cluster": np.arange(n) // 6,
        "probabilities": probabilities,
        "label": np.array([rng.choice(3, p=each**2 / sum(each**2)) for each in probabilities]),
        "mean": (mean := rng.normal(size=n)),
        "number": mean + rng.normal(size=n),
        "members": mean[:, None] + rng.normal(size=(n, 20)),
    }


BINARY = {
    "plain": {},
    "groups and costs": {"by": "group", "costs": cb.costs.LinearCost(over=1, under=5)},
    "weights": {"sample_weight": "weight"},
    "clusters": {"cluster": "cluster"},
    "times": {"time": "cluster"},
    "absolute margin": {"margin": cb.AbsoluteMargin(0.02), "n_resamples": 99},
}


def columns(rows, options):
    return {name: rows[value] if isinstance(value, str) else value for name, value in options.items()}


@pytest.mark.parametrize("name", BINARY)
def test_evaluations_of_scores(rows, name):
    result = cb.evaluate(rows["y"], rows["p"], **FEW | columns(rows, BINARY[name]))
    assert problems(result.to_dict(), "evaluation") == []


def test_scores_without_an_interval_and_without_levels():
    """One outcome only: undefined numbers are null, with the reason."""
    result = cb.evaluate([0] * 30, np.linspace(0.01, 0.2, 30), **FEW).to_dict()
    assert problems(result, "evaluation") == []


def forecasts(rows):
    quantiles = cb.Quantiles([0.1, 0.5, 0.9], rows["mean"][:, None] + [-1.28, 0, 1.28])
    samples = {kind: draw(kind, rows["y"].size) for kind in KINDS}
    return {kind: (sample.y, sample.make(sample.wrong)) for kind, sample in samples.items()} | {
        "quantiles": (rows["number"], quantiles),
        "samples": (rows["number"], cb.Samples(rows["members"])),
        "counts": (np.floor(np.abs(rows["number"])), cb.Poisson(np.exp(rows["mean"] / 2))),
    }


@pytest.mark.parametrize("name", [*KINDS, "quantiles", "samples", "counts"])
def test_evaluations_and_comparisons_of_each_kind(rows, name):
    y, forecast = forecasts(rows)[name]
    options = {} if name == "labels" else FEW
    assert problems(cb.evaluate(y, forecast, by=rows["group"], **options).to_dict(), "evaluation") == []
    assert problems(cb.compare(y, {"a": forecast, "b": forecast}, **options).to_dict(), "comparison") == []


def test_comparisons_of_scores_and_decisions(rows):
    models = {"old": rows["p"], "new": rows["p"] ** 1.3}
    assert problems(cb.compare(rows["y"], models, **FEW).to_dict(), "comparison") == []
    assert problems(cb.decisions(rows["y"], models, false_negative=4, n_resamples=39).to_dict(), "decisions") == []
    assert problems(cb.decision_curve(rows["y"], models).to_dict(), "decision_curve") == []


@pytest.mark.parametrize("kind", AUDITED)
def test_audits(kind):
    rng = np.random.default_rng(1)
    y, right, _, make = draw(kind, 2000)
    region = rng.choice(["north", "south"], 2000)
    shifted = np.where((region == "north") & (rng.random(2000) < 0.5), y.max(), y)
    found = cb.audit(shifted, make(right), {"region": region, "x": rng.random(2000)}, **FEW)
    assert found.segments
    assert problems(found.to_dict(), "audit") == []


def test_results_of_the_monitor(tmp_path):
    pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    rng = np.random.default_rng(2)
    monitor, classes = (
        cb.Monitor(tmp_path / "m.db", model="a"),
        cb.Monitor(tmp_path / "m.db", model="b", classes=list("xyz")),
    )
    assert problems(monitor.status().to_dict(), "status") == []
    for day in range(6):
        time = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=day)
        p = rng.uniform(0.1, 0.6, 400)
        monitor.observe((rng.random(400) < p + 0.35).astype(int), p, time=time, group=np.arange(400) % 2)
        classes.observe(rng.choice(list("xyz"), 50), rng.dirichlet([2, 2, 2], 50), time=time)
    assert monitor.status().alarm
    for each in (monitor, classes):
        assert problems(each.status().to_dict(), "status") == []
    histories = monitor.history(), monitor.history(group=1), classes.history(event="y")
    assert [problems(each.to_dict(), "history") for each in histories] == [[], [], []]


def test_notifications(tmp_path):
    pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
    pytest.importorskip("starlette", reason="Starlette is not installed")
    from calibrant.monitor.service.notifications import Notification
    from calibrant.monitor.status import Alarm

    now = datetime(2026, 1, 1, tzinfo=UTC)
    for group in (None, "north"):
        sent = Notification("n1", now, "churn", Alarm(1, "1", group, now, 4.2, now), 0.2, 0.3, link=None)
        assert problems(json.loads(sent.to_json()), "notification") == []


def test_files_of_calibrators(rows, tmp_path):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    from calibrant.calibrators.proportion_rules import ProportionRule
    from calibrant.calibrators.registry import CALIBRATORS, RECALIBRATORS

    data = {
        "binary": (rows["p"], rows["y"]),
        "multiclass": (rows["probabilities"], rows["label"]),
        "ordinal": (rows["probabilities"], rows["label"]),
        "point": (rows["mean"], rows["number"]),
        "distribution": (cb.Gaussian(rows["mean"], np.ones(rows["mean"].size)), rows["number"]),
    }
    made = {
        name: (class_() if name != "prior_shift" else class_(prevalence=0.2), data[class_.kind])
        for name, class_ in {**CALIBRATORS, **RECALIBRATORS}.items()
    }
    made["rule"] = ProportionRule(), data["binary"]
    for name, (calibrator, (X, y)) in made.items():
        cb.save(calibrator.fit(X, y), tmp_path / f"{name}.json")
        assert problems(json.loads((tmp_path / f"{name}.json").read_text()), "calibrator") == [], name


def test_files_of_multicalibrators(tmp_path):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    rng = np.random.default_rng(3)
    p, region = rng.uniform(0.2, 0.8, 1500), rng.choice(["north", "south"], 1500)
    y = (rng.random(1500) < np.where(region == "north", p + 0.2, p - 0.2)).astype(int)
    frame = pd.DataFrame({"region": region, "x": rng.random(1500)})
    cb.save(cb.Multicalibrator(random_state=0).fit(frame, y, scores=p), tmp_path / "cal.json")
    document = json.loads((tmp_path / "cal.json").read_text())
    assert document["models"]
    assert problems(document, "calibrator") == []


@pytest.fixture
def files(tmp_path, monkeypatch):
    pytest.importorskip("duckdb", reason="DuckDB is not installed")
    pytest.importorskip("click", reason="click is not installed")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(4)
    p = rng.uniform(0.1, 0.9, 600)
    g = rng.choice(["a", "b"], 600)
    y = (rng.random(600) < np.where(g == "a", np.clip(p + 0.25, 0, 1), p)).astype(int)
    lines = [f"{a},{b},{b**1.2},{c}" for a, b, c in zip(y, p, g, strict=True)]
    Path("rows.csv").write_text("\n".join(["y,p,q,g", *lines]))


COMMANDS = {
    "evaluations": ["evaluate", "rows.csv", "-y", "y", "-p", "p", "-p", "q", "--by", "g", "--sha256"],
    "comparison": ["compare", "rows.csv", "-y", "y", "-p", "p", "-p", "q"],
    "check": ["check", "rows.csv", "-y", "y", "-p", "p", "--by", "g", "--audit", "g"],
    "audits": ["audit", "rows.csv", "-y", "y", "-p", "p", "--features", "g", "--sha256"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_outputs_of_commands(files, name):
    from calibrant.cli.main import run

    assert run([*COMMANDS[name], "--resamples", "39", "--json", "out.json"]) in (0, 1)
    assert problems(json.loads(Path("out.json").read_text()), name) == []


def test_output_of_monitor_status(files, capsys):
    pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
    from calibrant.cli.main import run

    cb.Monitor("m.db", model="a").observe([0, 1], [0.2, 0.7], time="2026-01-01")
    assert run(["monitor", "status", "--store", "m.db", "--format", "json"]) == 0
    assert problems(json.loads(capsys.readouterr().out), "monitor") == []


# The schemas themselves


def test_every_schema_is_valid_and_named_by_its_file():
    for path in Path(json_schemas.__file__).parent.glob("*.json"):
        schema = json.loads(path.read_text(encoding="utf-8"))
        jsonschema.Draft202012Validator.check_schema(schema)
        name, version = path.stem.rsplit("-", 1)
        assert schema["$id"] == f"urn:calibrant:schema:{name}:{version}"
        if "schema_version" in schema.get("properties", {}):
            assert schema["properties"]["schema_version"] == {"const": int(version)}
            assert schema["properties"]["result"] == {"const": name}


def test_a_damaged_document_is_refused(rows):
    result = cb.evaluate(rows["y"], rows["p"], **FEW).to_dict()
    for path, value in (("verdict", "good"), ("pvalue", 2), ("n_rows", "10"), ("details", {}), ("metrics", {})):
        assert problems(result | {path: value}, "evaluation"), path
    assert problems({key: value for key, value in result.items() if key != "verdict"}, "evaluation")
    assert problems(result | {"unknown": 1}, "evaluation")
    open_world = jsonschema.Draft202012Validator(json_schemas.load("evaluation"))
    assert not list(open_world.iter_errors(json.loads(json.dumps(result | {"unknown": 1}))))


def test_unknown_names_and_versions_are_refused():
    with pytest.raises(cb.InputError, match="name must be one of audit, audits, .*; got 'report'"):
        json_schemas.load("report")
    with pytest.raises(cb.InputError, match="version of check must be 3; got 1"):
        json_schemas.load("check", version=1)
    assert json_schemas.load("check", version=3) == json_schemas.load("check")


def test_the_documentation_lists_every_schema():
    page = Path(__file__).parents[2] / "docs" / "json_schemas.rst"
    if not page.exists():
        pytest.skip("the tests run outside the checkout")
    lines = page.read_text(encoding="utf-8").splitlines()
    listed = {
        lines[i][7:].strip("`"): int(lines[i + 1][7:])
        for i, line in enumerate(lines)
        if line.startswith("   * - ``") and not line.endswith("result``")
    }
    assert listed == json_schemas.names()
