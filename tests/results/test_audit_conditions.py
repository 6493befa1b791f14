"""Rules of segments as masks of frames and as SQL; hostile names and values stay text."""

import sqlite3

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit

import calibrant as cb
from calibrant._support.sql_dialects import DIALECTS

HOSTILE = [
    "<script>alert(1)</script>",
    "'; DROP TABLE rows; --",
    'a" OR 1 = 1 --',
    "it's",
    "back\\slash\\'",
    "\x1b[2J\x1b[31mred",
    "\u202eevil\u202c",
    "line\nbreak\r\t",
    "`tick`",
    "{{ 7 * 7 }} %s ${x}",
    "\u2066left\u2069",
    "$x^2$",
]


def rows(n=3_000, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "number": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            "level": rng.integers(0, 4, n),
            "text": rng.choice(HOSTILE, n),
            "flag": rng.random(n) < 0.5,
        }
    )
    return frame, rng.uniform(0.2, 0.8, n), rng


def segment(conditions, kind="binary"):
    from calibrant.results import Segment

    text = " and ".join(condition.text for condition in conditions)
    return Segment(text, 1, 0.1, 0.2, 0.8, 0.5, 1.1, 0.01, 0.02, 1.0, 1, None, tuple(conditions), kind)


def every_condition(frame, p):
    from calibrant._support.columns import read
    from calibrant.evaluation.audit.features import count_feature

    columns = {**{name: frame[name] for name in frame}, "score": p}
    return [c for name, column in columns.items() for c in count_feature(name, read(column, name)).conditions]


def test_masks_select_the_rows_of_the_audit():
    frame, p, rng = rows()
    off = (frame["text"] == HOSTILE[1]) | (frame["number"].isna())
    y = rng.random(len(p)) < np.where(off, np.minimum(p + 0.3, 1), p)
    found = cb.audit(y, p, frame)
    assert found.segments
    for each in found.segments:
        assert each.mask(frame, forecast={"score": p}).sum() == each.n_rows
        assert each.mask({name: frame[name] for name in frame}, forecast={"score": p}).sum() == each.n_rows
    with pytest.raises(cb.InputError, match="must have the column"):
        segment(every_condition(frame, p)[:1]).mask({"other": p})


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_sql_selects_the_rows_of_the_mask(dialect):
    frame, p, _ = rows()
    table = frame.assign(score=p)
    if dialect == "duckdb":
        connection = pytest.importorskip("duckdb", reason="duckdb is not installed").connect()
        connection.register("given", table.astype({"text": object}))  # DuckDB 1.2 cannot read the texts of pandas 3
        connection.execute("CREATE TABLE rows AS SELECT * FROM given")
    else:
        connection = sqlite3.connect(":memory:")
        table.to_sql("rows", connection, index=False)
    for condition in every_condition(frame, p):
        each = segment([condition])
        sql = f"SELECT count(*) FROM rows WHERE {each.to_sql(dialect)}"
        assert connection.execute(sql).fetchone()[0] == each.mask(table).sum(), sql
    assert connection.execute("SELECT count(*) FROM rows").fetchone()[0] == len(frame)
    connection.close()


def test_several_conditions_and_other_names_of_columns():
    frame, p, _ = rows(400)
    conditions = every_condition(frame, p)
    both = segment([conditions[0], next(c for c in conditions if c.feature == "score")])
    sql = both.to_sql(columns={"score": "p_default", "number": 'my "number"'})
    assert '"p_default"' in sql
    assert '"my ""number"""' in sql
    assert " AND " in sql
    assert segment([]).to_sql() == "1 = 1"
    assert segment([]).mask({"x": [1, 2, 3]}).all()
    with pytest.raises(cb.InputError, match="dialect"):
        both.to_sql("oracle")


@pytest.mark.parametrize("value", HOSTILE)
def test_text_literals_are_quoted_in_each_dialect(value):
    for dialect in DIALECTS.values():
        literal = dialect.text(value).removeprefix(dialect.text_prefix)
        assert literal[0] == literal[-1] == "'"
        inner = literal[1:-1]
        if any(mark == "\\" for mark, _ in dialect.escapes):
            inner = inner.replace("\\\\", "").replace("\\'", "")
        assert inner.replace("''", "").count("'") == 0


def test_categories_without_a_literal_are_refused():
    from calibrant.results.audit_conditions import category_condition

    with pytest.raises(cb.InputError, match="SQL"):
        segment([category_condition("day", np.datetime64("2024-01-01"), 0)]).to_sql()


@pytest.mark.parametrize("value", HOSTILE)
def test_hostile_values_are_inert_in_terminals_and_notebooks(value):
    rng = np.random.default_rng(1)
    x = np.where(rng.random(3_000) < 0.5, value, "other").astype(object)
    p = rng.uniform(0.3, 0.7, 3_000)
    y = rng.random(3_000) < p + 0.25 * (x == value)
    found = cb.audit(y, p, {value: x})
    assert found.segments
    shown = repr(found)
    assert all(each.isprintable() or each == "\n" for each in shown)
    assert "<script>" not in found._repr_html_()
    assert not any(control in found._repr_html_() for control in "\x1b\u202e\u2066")


def test_a_rule_names_each_number_in_as_many_digits_as_it_needs():
    rng = np.random.default_rng(6)
    store = rng.choice(np.arange(1_000_001, 1_000_006), 4_000)
    p = rng.uniform(0.3, 0.7, 4_000)
    y = rng.random(4_000) < expit(logit(p) + 1.5 * (store == 1_000_002) - 1.5 * (store == 1_000_004))
    found = cb.audit(y, p, {"store": store}, n_resamples=19)
    names = [segment.rule for segment in found.segments if segment.rule.startswith("store = ")]
    assert {"store = 1000002", "store = 1000004"} <= set(names)
    assert "e+06" not in str(found)


def test_a_forecast_must_not_have_the_name_of_a_feature():
    rng = np.random.default_rng(7)
    x, p = rng.random(2_000), rng.uniform(0.3, 0.7, 2_000)
    y = rng.random(2_000) < expit(logit(p) + (x > 0.5))
    segment = cb.audit(y, p, {"score": x}, n_resamples=0).segments[0]
    assert segment.mask({"score": x}).sum() == segment.n_rows
    with pytest.raises(cb.InputError, match="forecast must not have the name of a feature; got 'score' in both"):
        segment.mask({"score": x}, forecast={"score": p})


def test_sql_of_categories_holds_for_columns_of_enums():
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    rng = np.random.default_rng(8)
    size = pd.Categorical(rng.choice(["lo", "hi"], 2_000))
    p = rng.uniform(0.3, 0.7, 2_000)
    y = rng.random(2_000) < expit(logit(p) + 1.2 * (size == "lo"))
    segment = cb.audit(y, p, {"z": size}, n_resamples=0).segments[0]
    frame = pd.DataFrame({"z": size, "score": p})  # noqa: F841  (read by DuckDB)
    ((count,),) = duckdb.sql(f"SELECT count(*) FROM frame WHERE {segment.to_sql()}").fetchall()
    assert count == segment.n_rows
