"""`focus=`: the verdict on the rows at which decisions are taken."""

import numpy as np
import pytest

import calibrant as cb
from calibrant.results import Focus


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    p = np.round(rng.beta(0.8, 6, 5000), 3)
    return (rng.random(5000) < np.where(p > 0.3, 0.6 * p, p)).astype(int), p


def judged(*data, **options):
    return cb.evaluate(*data, n_resamples=19, metrics=["bias", "brier"], **options)


@pytest.mark.parametrize("options", [{}, {"sample_weight": 2.5}, {"frequency": 3}, {"cluster": 50}])
def test_a_focus_gives_the_results_of_its_rows(rows, options):
    y, p = rows
    given = {
        name: np.arange(y.size) % value if name == "cluster" else np.full(y.size, value)
        for name, value in options.items()
    }
    inside = p >= 0.2
    focused = judged(y, p, focus=0.2, **given)
    alone = judged(y[inside], p[inside], **{name: column[inside] for name, column in given.items()})
    assert focused.decision == alone.decision
    assert [each.cells() for each in focused.metrics.values()] == [each.cells() for each in alone.metrics.values()]
    assert focused.n_rows == alone.n_rows
    assert "for scores of at least 0.2" in focused.headline()


def test_the_highest_share_of_all_rows_is_also_that_of_groups(rows):
    y, p = rows
    group = np.arange(y.size) % 3
    lowest = np.sort(p)[-250]
    found = judged(y, p, focus="top 5%", by=group)
    assert found.n_rows == np.sum(p >= lowest) >= 250
    assert {key: each.n_rows for key, each in found.groups.items()} == {
        key: np.sum((p >= lowest) & (group == key)) for key in range(3)
    }
    assert all("top 5 %" not in each.headline() for each in found.groups.values())
    tables = {key: cb.ScoreTable.from_arrays(y[group == key], p[group == key]) for key in range(3)}
    counted = judged(tables, focus="top 5%")
    assert counted.decision == found.decision
    assert counted.n_rows == found.n_rows
    assert [note.text for note in counted.notes] == [note.text for note in found.notes]


def test_the_rows_are_counted_in_a_note_and_the_focus_is_a_setting(rows):
    y, p = rows
    found = judged(y, p, focus=0.3)
    inside = int(np.sum(p >= 0.3))
    wanted = f"All results are those of scores of at least 0.3: {inside} of 5,000 rows ({100 * inside / 5000:.3g} %)."
    assert wanted in [note.text for note in found.notes]
    assert found.settings.focus == Focus(lowest=0.3)
    assert found.to_dict()["settings"]["focus"] == "scores of at least 0.3"
    assert judged(y, p).settings.focus is None


def test_a_model_that_is_wrong_only_where_decisions_are_taken(rows):
    y, p = rows
    assert "overestimates" in judged(y, p, focus=0.3).direction
    assert judged(y, p, focus=0.3).log_odds_error.value > 2 * judged(y, p).log_odds_error.value


def test_rows_with_missing_values_are_dropped_and_counted(rows):
    y, p = rows
    y = y.astype(float)
    y[np.argsort(p)[-7:]] = np.nan
    found = judged(y, p, focus=0.3, missing="drop")
    assert found.n_rows == np.sum(p >= 0.3) - 7
    assert found.table.n_dropped == 7
    with pytest.raises(cb.InputError, match="missing"):
        judged(y, p, focus=0.3)


def test_a_group_without_rows_in_the_focus_is_named(rows):
    y, p = rows
    found = judged(y, p, focus=0.3, by=np.where(p < 0.1, "low", "any"))
    assert list(found.groups) == ["any"]


@pytest.mark.parametrize("focus", [0, -0.1, 1.5, "top", "top 0%", "top 100%", "bottom 5%", True, [0.5], float("nan")])
def test_a_wrong_focus_is_refused(rows, focus):
    with pytest.raises(cb.InputError, match=r'focus must be a score in \(0, 1\] or a text such as "top 5%"'):
        judged(*rows, focus=focus)


def test_a_focus_without_rows_is_refused(rows):
    with pytest.raises(cb.InputError, match="focus must contain a row; got 0.999, and the highest score is"):
        judged(*rows, focus=0.999)


def test_a_table_of_weights_is_refused(rows):
    table = cb.ScoreTable.from_arrays(*rows, sample_weight=np.ones(5000))
    with pytest.raises(cb.InputError, match="focus must be given with rows or counts"):
        judged(table, focus=0.3)


def test_other_kinds_have_no_focus(rows):
    with pytest.raises(cb.InputError, match="focus must be omitted for forecasts of kind 'point'"):
        cb.evaluate(rows[1], cb.Point(rows[1]), focus=0.3)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_command_line_has_the_same_results(rows, tmp_path, capsys, weighted):
    import json

    from calibrant.cli.main import run

    y, p = rows
    path, weight = tmp_path / "rows.csv", np.arange(y.size) % 4 + 1
    np.savetxt(
        path, np.column_stack([y, p, weight]), delimiter=",", header="y,p,w", comments="", fmt=["%d", "%.3f", "%d"]
    )
    command = ["evaluate", str(path), "-y", "y", "-p", "p", "--resamples", "19", "--focus", "top 5%", "--json", "-"]
    assert run([*command, *(["--sample-weight", "w"] if weighted else [])]) == 0
    printed = json.loads(capsys.readouterr().out)["models"]["p"]
    options = {"sample_weight": weight} if weighted else {}
    found = cb.evaluate(y, p, n_resamples=19, focus="top 5%", **options).to_dict()
    assert (printed["headline"], printed["tests"]) == (found["headline"], found["tests"])
    assert printed["settings"]["focus"] == "the top 5 % of rows"
