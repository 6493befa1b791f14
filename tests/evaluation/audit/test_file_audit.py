"""Audits of files: equal to those of the same rows in memory, with bounded memory."""

import numpy as np
import pandas as pd
import pytest

import calibrant as cb
from calibrant import audit
from calibrant.evaluation.audit import file_audit, residual_blocks

pytest.importorskip("duckdb", reason="duckdb is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    n = 6_000
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n).astype(float),
            "region": rng.choice(["north", "south", "it's"], n),
            "shop": rng.integers(0, 300, n),
            "score": rng.uniform(0.1, 0.9, n).round(4),
            "weight": rng.lognormal(0, 0.5, n).round(3) + 0.01,
            "times": rng.integers(0, 4, n),
        }
    )
    frame.loc[rng.random(n) < 0.1, "age"] = np.nan
    off = 0.15 * ((frame["region"] == "south") & (frame["age"] > 50))
    frame["event"] = (rng.random(n) < np.clip(frame["score"] + off, 0, 1)).astype(int)
    frame["amount"] = 10 * frame["score"] + 2 * off + rng.normal(size=n)
    for label in "abc":
        frame[f"p_{label}"] = rng.gamma(1, 1, n)
    proba = frame[["p_a", "p_b", "p_c"]].to_numpy()
    frame[["p_a", "p_b", "p_c"]] = proba / proba.sum(axis=1, keepdims=True)
    frame["class"] = np.array(list("abc"))[(rng.random((n, 1)) > frame[["p_a", "p_b"]].cumsum(axis=1)).sum(axis=1)]
    return frame


FEATURES = ["age", "region"]
CASES = {
    "scores": ({"y": "event", "forecast": "score"}, {}),
    "clusters": ({"y": "event", "forecast": "score", "cluster": "shop"}, {}),
    "weights": ({"y": "event", "forecast": "score", "sample_weight": "weight"}, {}),
    "frequency": ({"y": "event", "forecast": "score", "frequency": "times"}, {}),
    "points": ({"y": "amount", "forecast": cb.Point("score")}, {}),
    "classes": ({"y": "class", "forecast": {"a": "p_a", "b": "p_b", "c": "p_c"}}, {"classes": list("abc")}),
}


def in_memory(frame, named, options):
    given = {key: frame[column] for key, column in named.items() if key in ("cluster", "sample_weight", "frequency")}
    p = named["forecast"]
    forecast = frame[list(p.values())].to_numpy() if isinstance(p, dict) else None
    if forecast is None:
        forecast = cb.Point(frame[p.y_pred]) if isinstance(p, cb.Point) else frame[p]
    return cb.audit(frame[named["y"]], forecast, frame[FEATURES], n_resamples=19, **given, **options)


def numbers(found):
    """Return the results without notes, which name columns and files."""
    return {key: value for key, value in found.to_dict().items() if key != "notes"}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_an_audit_of_a_file_equals_that_of_its_rows(case, format, rows, tmp_path):
    named, options = CASES[case]
    path = tmp_path / f"rows.{format}"
    rows.to_parquet(path) if format == "parquet" else rows.to_csv(path, index=False)
    frame = rows.assign(shop=rows["shop"].astype(str)) if format == "csv" else rows
    found = audit(path, features=FEATURES, n_resamples=19, **named)
    assert numbers(found) == numbers(in_memory(frame, named, options))
    if case != "classes":
        assert found.segments


def test_files_and_blocks_do_not_change_the_result(rows, tmp_path, monkeypatch):
    named, options = CASES["scores"]
    for i in range(3):
        rows[2_000 * i : 2_000 * (i + 1)].to_parquet(tmp_path / f"part{i}.parquet")
    expected = in_memory(rows, named, options)
    monkeypatch.setattr(residual_blocks, "BLOCK", 512)
    monkeypatch.setattr(residual_blocks, "MOST_KEPT", 0)
    found = audit(tmp_path, features=FEATURES, n_resamples=19, **named)
    assert [s.rule for s in found.segments] == [s.rule for s in expected.segments]
    assert [s.pvalue for s in found.segments] == pytest.approx([s.pvalue for s in expected.segments])


def test_rows_with_missing_scores_are_dropped_and_counted(rows, tmp_path):
    named, options = CASES["scores"]
    rows.loc[rows.index[::7], "score"] = np.nan
    rows.to_parquet(tmp_path / "rows.parquet")
    found = audit(tmp_path / "rows.parquet", features=FEATURES, missing="drop", n_resamples=19, **named)
    assert numbers(found) == numbers(in_memory(rows, named, {**options, "missing": "drop"}))
    assert [note.count for note in found.notes if note.code == "missing"] == [int(rows["score"].isna().sum())]
    with pytest.raises(cb.InputError, match="score in rows.parquet has 858 missing values"):
        audit(tmp_path / "rows.parquet", features=FEATURES, **named)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"forecast": "nothing"}, "nothing"),
        ({"forecast": ["score", "weight"]}, "one column"),
        ({"features": ["age", "nowhere"]}, "nowhere"),
        ({"depth": 4}, "depth"),
        ({"forecast": cb.Point("score"), "pos_label": 1}, "pos_label"),
        ({"sample_weight": "weight", "frequency": "times"}, "sample_weight"),
    ],
)
def test_bad_names_are_refused(options, words, rows, tmp_path):
    rows.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(cb.InputError, match=words):
        audit(tmp_path / "rows.parquet", **{"y": "event", "forecast": "score", "features": FEATURES, **options})


def test_no_file_is_left_behind(rows, tmp_path, monkeypatch):
    rows.to_parquet(tmp_path / "rows.parquet")
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    audit(tmp_path / "rows.parquet", y="event", forecast="score", features=FEATURES, n_resamples=0)
    assert not list(folder.iterdir())


def test_labels_of_several_files_are_read_alike(rows, tmp_path):
    frame = rows.sort_values("event")
    frame["label"] = np.where(frame["event"] == 1, "fraud", "0")
    (tmp_path / "all").mkdir()
    frame.iloc[:200].to_csv(tmp_path / "all" / "1.csv", index=False)
    frame.iloc[200:].to_csv(tmp_path / "all" / "2.csv", index=False)
    assert set(frame["label"][:200]) == {"0"}
    found = audit(
        tmp_path / "all",
        y="label",
        forecast="score",
        n_resamples=19,
        features="region",
        pos_label="fraud",
        random_state=1,
    )
    frame.to_csv(tmp_path / "one.csv", index=False)
    expected = audit(
        tmp_path / "one.csv",
        y="label",
        forecast="score",
        n_resamples=19,
        features="region",
        pos_label="fraud",
        random_state=1,
    )
    assert numbers(found) == numbers(expected)
    assert "event_absent" not in [note.code for note in found.notes]
    with pytest.raises(cb.InputError, match="one type in all rows; got text after numbers"):
        audit(tmp_path / "all", y="label", forecast="score", n_resamples=19, features="region", pos_label=0)


def test_a_third_label_of_another_batch_is_an_error(rows, tmp_path):
    frame = rows.assign(label=np.where(rows["event"] == 1, "fraud", "legal"))
    frame.iloc[:200].to_csv(tmp_path / "1.csv", index=False)
    frame.iloc[200:].assign(label="unknown").to_csv(tmp_path / "2.csv", index=False)
    with pytest.raises(cb.InputError, match="label in 2.csv must have two labels; got 'fraud', 'legal', 'unknown'"):
        audit(tmp_path, y="label", forecast="score", features="region", pos_label="fraud")
    with pytest.raises(cb.InputError, match="pos_label must be one of the labels of label"):
        audit(tmp_path / "1.csv", y="label", forecast="score", features="region", pos_label="Fraud")
    with pytest.raises(cb.InputError, match="must have two labels|one type"):
        audit(tmp_path, y="label", forecast="score", features="region", pos_label="Fraud")


def test_text_that_only_python_reads_as_numbers_is_a_category(rows, tmp_path):
    frame = rows.assign(code=rows["region"].map({"north": "2_000", "south": "1_000", "it's": "3_000"}))
    frame.to_csv(tmp_path / "rows.csv", index=False)
    found = audit(tmp_path / "rows.csv", y="event", forecast="score", features="code", n_resamples=19)
    assert found.segments[0].rule == "code = '1_000'"


CHANGES = {
    "fewer rows": lambda frame: frame[:100],
    "no rows": lambda frame: frame[:0],
    "another category": lambda frame: frame.replace({"region": {"south": "west"}}),
    "another number": lambda frame: frame.assign(times=frame["times"] + 1),
    "another cluster": lambda frame: frame.assign(shop=frame["shop"] + 1_000),
    "a missing category": lambda frame: frame.assign(region=frame["region"].where(frame["region"] != "south")),
    "missing scores": lambda frame: frame.assign(score=np.nan),
}


@pytest.mark.parametrize("change", ["added lines", *CHANGES])
def test_a_file_that_changes_between_the_two_readings_is_refused_unless_lines_are_added(
    change, rows, tmp_path, monkeypatch
):
    named = {"y": "event", "forecast": "score", "cluster": "shop", "features": ["region", "times"], "missing": "drop"}
    before, path = rows[:400], tmp_path / "rows.csv"
    before.to_csv(path, index=False)
    expected = audit(path, n_resamples=9, **named)
    encode = file_audit._Source.encode

    def encode_later(*given):
        if change == "added lines":
            rows[400:].assign(region="west").to_csv(path, index=False, mode="a", header=False)
        else:
            path.write_bytes(b"")
            CHANGES[change](before).to_csv(path, index=False)
        return encode(*given)

    monkeypatch.setattr(file_audit._Source, "encode", encode_later)
    if change == "added lines":
        assert numbers(audit(path, n_resamples=9, **named)) == numbers(expected)
        return
    with pytest.raises(cb.InputError, match=r"changed meanwhile\. Read"):
        audit(path, n_resamples=9, **named)


def test_text_of_digits_in_json_is_a_category(rows, tmp_path):
    frame = rows.assign(zip=rows["region"].map({"north": "00002", "south": "00001", "it's": "00003"}))
    frame.to_json(tmp_path / "rows.jsonl", orient="records", lines=True)
    found = audit(tmp_path / "rows.jsonl", y="event", forecast="score", features=["zip", "age"], n_resamples=19)
    assert found.segments[0].rule.startswith("zip = '00001' and age >")


@pytest.mark.parametrize("formats", [("parquet", "csv"), ("json", "parquet"), ("csv", "json")])
def test_the_order_of_files_of_two_formats_does_not_decide_what_holds_numbers(formats, rows, tmp_path):
    frame = rows.assign(code=rows["shop"].astype(str))
    write = {
        "csv": lambda rows, path: rows.to_csv(path, index=False),
        "parquet": lambda rows, path: rows.to_parquet(path),
        "json": lambda rows, path: rows.to_json(path, orient="records", lines=True),
    }
    files = []
    for format, part in zip(formats, (frame[:3_000], frame[3_000:]), strict=True):
        files.append(tmp_path / f"rows.{format}")
        write[format](part, files[-1])
    named = {"y": "event", "forecast": "score", "features": ["age", "region", "code"], "n_resamples": 19}
    one, other = audit(files, **named), audit(files[::-1], **named)
    assert one.segments
    assert any("age > " in segment.rule or "age >= " in segment.rule for segment in one.segments)
    assert {c.feature for c in one.segments[0].conditions} == {c.feature for c in other.segments[0].conditions}


def test_the_deprecated_function_of_files_warns(rows, tmp_path):
    path = tmp_path / "rows.parquet"
    rows.to_parquet(path)
    options = {"y": "event", "features": ["region"], "n_resamples": 0}
    with pytest.warns(
        DeprecationWarning, match=r"^calibrant\.inference\.audit_scan is deprecated: use calibrant\.audit;"
    ) as caught:
        found = cb.inference.audit_scan(path, p="score", **options)
    assert caught[0].filename == __file__
    assert numbers(found) == numbers(audit(path, forecast="score", **options))
    with pytest.warns(
        DeprecationWarning, match=r"^(calibrant\.inference\.audit_scan is deprecated|memory_limit= of audit_scan)"
    ):
        assert numbers(cb.inference.audit_scan(path, p="score", memory_limit="1GB", **options)) == numbers(found)


def test_options_of_files_and_of_columns_are_told_apart(rows, tmp_path):
    rows.to_parquet(tmp_path / "rows.parquet")
    columns = rows["event"], rows["score"], rows[["region"]]
    for wrong, words in (
        ({"format": "csv"}, "format is for files, with y"),
        ({"max_memory": "1GB"}, "max_memory is for files, with y"),
    ):
        with pytest.raises(cb.InputError, match=words):
            audit(*columns, **wrong)
    with pytest.raises(cb.InputError, match="classes must be omitted with files"):
        audit(tmp_path / "rows.parquet", y="event", forecast="score", features="region", classes=["a", "b"])
