"""Class probabilities and predictive distributions in a monitor: events, evidence, status, history, refusals."""

import json
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from scipy import stats

import calibrant as cb
from calibrant import InputError

DAY = timedelta(days=1)
START = datetime(2026, 1, 1, tzinfo=UTC)
CLASSES = ["cat", "dog", "fox"]


def classes(n, seed, odds=1.0):
    """Return labels and probabilities; the odds of the first class are multiplied."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet([2.0, 2.0, 1.0], n).round(3)
    p[:, 2] = 1 - p[:, 0] - p[:, 1]
    p = np.clip(p, 0, 1)
    truth = p * [odds, 1.0, 1.0]
    truth /= truth.sum(axis=1, keepdims=True)
    code = (rng.random((n, 1)) > truth.cumsum(axis=1)).sum(axis=1).clip(max=2)
    return np.array(CLASSES)[code], p


def numbers(n, seed, shift=0.0, scale=1.0):
    rng = np.random.default_rng(seed)
    mean = rng.normal(0, 3, n)
    return mean + shift + scale * rng.normal(size=n), mean


def watch(monitor, days, forecast, n=200, **options):
    for day in range(days):
        y, p = forecast(n, day, **options)
        receipt = monitor.observe(y, p, time=START + day * DAY, batch=day)
        assert receipt.n_rows == n
    return monitor


def gaussian(n, seed, **options):
    y, mean = numbers(n, seed, **options)
    return y, cb.Gaussian(mean, 1.0)


def test_classes_are_watched_from_rows_to_the_alarm(store):
    calm = watch(cb.Monitor(store, model="calm", classes=CLASSES), 30, classes)
    status = calm.status()
    assert (status.kind, status.alarm, status.n_rows, status.n_open_rows) == ("multiclass", False, 6_000, 200)
    assert set(status.events) == set(CLASSES)
    wrong = watch(cb.Monitor(store, model="wrong", classes=CLASSES), 30, classes, n=500, odds=2.5)
    status = wrong.status()
    assert status.alarm
    assert next(iter(status.events)) == "cat"
    assert status.events["cat"].observed > status.events["cat"].predicted
    assert status.events["cat"].confidence_sequence.low > 0.3
    assert "Most evidence: class cat" in repr(status)
    assert "most probable class: mean confidence" in repr(status)
    assert {row["event"] for row in json.loads(status.to_json())["events"]} == set(CLASSES)
    assert status.to_frame()["event"].tolist()[1:] == list(status.events)


def test_ordered_classes_are_watched_from_rows_to_the_alarm(store):
    calm = watch(cb.Monitor(store, model="calm", kind="ordinal", classes=CLASSES), 30, classes)
    status = calm.status()
    assert (status.kind, status.alarm, status.n_rows) == ("ordinal", False, 6_000)
    assert set(status.events) == {"cat", "dog"}
    wrong = watch(cb.Monitor(store, model="wrong", kind="ordinal", classes=CLASSES), 30, classes, n=500, odds=2.5)
    status = wrong.status()
    assert status.alarm
    assert "Most evidence: at most cat" in repr(status)
    y, p = map(np.concatenate, zip(*(classes(500, day, 2.5) for day in range(29)), strict=True))  # those closed
    below = p.cumsum(axis=1)
    for k, label in enumerate(CLASSES[:2]):
        assert status.events[label].predicted == pytest.approx(below[:, k].mean(), abs=1e-9)
        assert status.events[label].observed == pytest.approx(np.isin(y, CLASSES[: k + 1]).mean(), abs=1e-12)


def test_rows_of_ordered_classes_are_arrays_or_ordinal_forecasts_in_the_order_of_the_model(store):
    monitor = cb.Monitor(store, kind="ordinal", classes=CLASSES)
    y, p = classes(50, 0)
    monitor.observe(y, p, time=START, batch=1)
    assert monitor.observe(y, cb.Ordinal(p, classes=CLASSES), time=START, batch=1).repeated_batch
    assert monitor.observe(y, cb.Ordinal(p), time=START, batch=1).repeated_batch
    assert monitor.observe("dog", [0.2, 0.3, 0.5], time=START).n_rows == 1
    with pytest.raises(cb.exceptions.BatchConflictError):
        monitor.observe(y, p[:, ::-1], time=START, batch=1)
    with pytest.raises(InputError, match="p must have the classes of this model"):
        monitor.observe(y, cb.Ordinal(p, classes=CLASSES[::-1]), time=START)
    with pytest.raises(InputError, match="got a forecast of the kind 'distribution'"):
        monitor.observe(*gaussian(4, 0), time=START)
    with pytest.raises(InputError, match="got a forecast of the kind 'ordinal'. Create a model for it"):
        cb.Monitor(store, model="nominal", classes=CLASSES).observe(y, cb.Ordinal(p), time=START)


def test_the_evidence_is_the_mean_of_that_of_the_classes(store):
    from calibrant.inference import EProcess, log_mean_e

    monitor = watch(cb.Monitor(store, classes=CLASSES), 8, classes, odds=1.5)
    process, expected = EProcess(), []
    states = [process.start() for _ in CLASSES]
    for day in range(7):
        y, p = classes(200, day, 1.5)
        tables = [cb.ScoreTable.from_arrays(y == label, p[:, i]) for i, label in enumerate(CLASSES)]
        states = [process.update(state, table) for state, table in zip(states, tables, strict=True)]
        expected.append(float(log_mean_e(np.array([float(state.log_e) for state in states]))))
    assert [w.log_e_value for w in monitor.history().windows if w.closed] == pytest.approx(expected, rel=1e-12)
    own = [w.log_e_value for w in monitor.history(event="dog").windows if w.closed]
    assert own[-1] == pytest.approx(float(states[1].log_e), rel=1e-12)
    y, p = map(np.concatenate, zip(*(classes(200, day, 1.5) for day in range(8)), strict=True))
    assert monitor.table(event="fox") == cb.ScoreTable.from_arrays(y == "fox", p[:, 2])
    assert monitor.evaluate(event="fox", n_resamples=19).table == monitor.table(event="fox")
    top = [w.observed for w in monitor.history().windows]
    assert top[0] == pytest.approx(np.mean(np.array(CLASSES)[p[:200].argmax(axis=1)] == y[:200]))


@pytest.mark.parametrize("options", [{"shift": 0.4}, {"scale": 1.4}, {"scale": 0.7}])
def test_distributions_are_watched_from_rows_to_the_alarm(path, options):
    calm = watch(cb.Monitor(path, model="calm", kind="distribution"), 30, gaussian, n=400)
    assert not calm.status().alarm
    assert calm.status().predicted == pytest.approx(0.8)
    wrong = watch(cb.Monitor(path, model="wrong", kind="distribution"), 30, gaussian, n=400, **options)
    status = wrong.status()
    assert status.alarm
    assert "coverage of the central interval: nominal 80.00 %" in repr(status)
    assert wrong.history(event=0.9).windows[0].predicted == pytest.approx(0.1)


def test_all_kinds_of_distributions_give_the_same_events(path):
    rng = np.random.default_rng(0)
    y, mean = numbers(500, 1)
    levels = [0.1, 0.25, 0.5, 0.75, 0.9]
    own = cb.Gaussian(mean, 1.0)
    forecasts = {
        "gaussian": own,
        "scipy": stats.norm(mean, 1.0),
        "quantiles": cb.Quantiles(levels, own.quantile(levels)),
        "samples": cb.Samples(mean[:, None] + rng.normal(size=(500, 2_000))),
    }
    found = {}
    for name, forecast in forecasts.items():
        monitor = cb.Monitor(path, model=name, kind="distribution")
        monitor.observe(y, forecast, time=START)
        found[name] = [monitor.table(event=level).positives for level in levels]
    assert found["gaussian"] == found["scipy"] == found["quantiles"]
    assert found["samples"] == pytest.approx(found["gaussian"], abs=10)


def test_discrete_distributions_are_randomised_reproducibly(path):
    rng = np.random.default_rng(5)
    rate = rng.uniform(0.2, 2.0, 4_000)
    y = rng.poisson(rate)
    tables = []
    for name in ("a", "b"):
        monitor = cb.Monitor(path, model=name, kind="distribution")
        monitor.observe(y, stats.poisson(rate), time=START)
        tables.append([monitor.table(event=level) for level in (0.1, 0.5, 0.9)])
    assert tables[0] == tables[1]
    assert [t.positives / 4_000 for t in tables[0]] == pytest.approx([0.1, 0.5, 0.1], abs=0.025)


def test_groups_restarts_batches_and_retention_work_for_events(store):
    def feed(monitor, day):
        y, p = classes(120, day, 1.5)
        return monitor.observe(y, p, time=START + day * DAY, group=["n", "s"] * 60, batch=day)

    whole = cb.Monitor(store, model="whole", classes=CLASSES)
    for day in range(6):
        feed(whole, day)
        feed(cb.Monitor(store, model="again", classes=CLASSES), day)
    again = cb.Monitor(store, model="again")
    assert feed(again, 5).repeated_batch
    for group in (None, "n"):
        ours, theirs = (m.history(group).to_dict()["windows"] for m in (whole, again))
        assert ours == theirs
    assert again.status().groups["n"].n_rows == 300
    assert again.history("s", event="dog").windows[0].n_rows == 60
    before = again.status().to_dict()["events"]
    assert again.forget(START + 3 * DAY) == 6
    again.compact(2**-6)
    assert again.status().to_dict()["events"] == before
    feed(again, 6)
    assert again.table(event="cat").size == 840


def test_windows_of_rows_count_rows_not_events(store):
    monitor = cb.Monitor(store, classes=CLASSES, window=100)
    y, p = classes(250, 0)
    assert monitor.observe(y, p, time=START).n_closed == 2
    assert [w.n_rows for w in monitor.history().windows] == [100, 100, 50]


def test_one_row_of_classes_and_frames(path):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    monitor = cb.Monitor(path, classes=CLASSES)
    monitor.observe("dog", [0.2, 0.5, 0.3], time=START)
    y, p = classes(5, 0)
    monitor.observe(y, pandas.DataFrame(p, columns=CLASSES), time=START)
    assert monitor.status().n_rows == 6
    with pytest.raises(InputError, match="in the order of the columns"):
        monitor.observe(y, pandas.DataFrame(p, columns=CLASSES[::-1]), time=START)


def test_an_export_names_groups_and_events_apart(store, tmp_path):
    import pyarrow.parquet as pq

    monitor = cb.Monitor(store, classes=[1, 2])
    for day in range(3):
        for group in (1, "1"):
            monitor.observe([1, 2, 1], [[0.4, 0.6]] * 3, time=START + day * DAY, group=group)
    monitor.export(tmp_path / "out")
    for name, sizes in (("tables", 3), ("history", 2)):
        rows = pq.read_table(tmp_path / "out" / f"{name}.parquet").to_pandas()
        assert set(rows["event"]) == {"", "1", "2"}
        own = rows[(rows["group_key"] == '"1"') & (rows["event"] == "2")]
        assert (len(own), set(own["group"])) == (sizes, {"1"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "multiclass"}, "classes must be given for the kind 'multiclass'"),
        ({"kind": "ordinal"}, "classes must be given for the kind 'ordinal'"),
        ({"kind": "ordinal", "classes": ["a", "b"]}, "classes must be at least three ordered classes; got 2"),
        ({"kind": "binary", "classes": ["a", "b"]}, "classes must be left out for forecasts of the kind 'binary'"),
        ({"classes": ["a", "b"], "levels": [0.5]}, "levels must be left out for forecasts of the kind 'multiclass'"),
        ({"classes": ["a", "a"]}, "classes must name at least two classes, each once"),
        ({"classes": [True, False]}, "classes must be at most 1,000 labels, text or whole numbers; got True"),
        ({"classes": ["a", "b" * 501]}, "classes must be text of at most 500 characters"),
        ({"levels": [0.5, 0.1]}, "levels must be numbers between 0 and 1, strictly increasing"),
        ({"kind": "point"}, "kind must be 'binary' or 'multiclass' or 'ordinal' or 'distribution'; got 'point'"),
    ],
)
def test_bad_kinds_are_refused(path, options, message):
    with pytest.raises(InputError, match=message):
        cb.Monitor(path, **options)


def test_each_kind_refuses_what_it_cannot_do(path):
    binary = cb.Monitor(path, model="binary")
    several = cb.Monitor(path, model="classes", classes=CLASSES)
    spread = cb.Monitor(path, model="distribution", kind="distribution")
    y, p = classes(4, 0)
    numbers_, forecast = gaussian(4, 0)
    with pytest.raises(InputError, match=r"p must be of the kind of this model, 'binary'; got .* 'multiclass'"):
        binary.observe([0, 1, 0, 1], p, time=START)
    for monitor in (binary, several):
        with pytest.raises(InputError, match="got a forecast of the kind 'distribution'"):
            monitor.observe(numbers_, forecast, time=START)
    with pytest.raises(InputError, match="got a forecast of the kind 'distribution'"):
        binary.observe(numbers_, stats.norm(0, 1), time=START)
    with pytest.raises(InputError, match="must have the quantiles of the levels of this model; 0.1 is missing"):
        spread.observe(numbers_, cb.Quantiles([0.5], [[0.0]] * 4), time=START)
    with pytest.raises(InputError, match="y must hold labels of the classes"):
        several.observe(["cow"] * 4, p, time=START)
    several.observe(y, p, time=START)
    for refused in (
        lambda: several.predict("a", 0.5, time=START),
        lambda: several.outcome("a", 1),
        lambda: several.add_table(cb.ScoreTable.from_counts([0.5], [2], [1]), time=START),
        lambda: several.recalibrate(since=START),
    ):
        with pytest.raises(InputError, match="must be used with binary forecasts"):
            refused()
    with pytest.raises(InputError, match="event must be given for forecasts of the kind 'multiclass'"):
        several.evaluate()
    with pytest.raises(
        InputError, match="event must be a class or a level of the model, which has 'cat', 'dog', 'fox'"
    ):
        several.history(event="cow")
    with pytest.raises(InputError, match="event must be a class or a level of the model, which has none"):
        binary.history(event="cow")


def test_settings_of_kinds_are_stored(path):
    cb.Monitor(path, classes=CLASSES)
    assert cb.Monitor(path).settings.classes == tuple(CLASSES)
    cb.Monitor(path, classes=CLASSES)
    with pytest.raises(InputError, match="classes must be"):
        cb.Monitor(path, classes=["a", "b"])
    with pytest.raises(InputError, match="kind must be 'multiclass', the value stored"):
        cb.Monitor(path, levels=[0.5])


def test_figures_and_pages_show_the_events(path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    pytest.importorskip("jinja2", reason="Jinja2 is not installed")
    monitor = watch(cb.Monitor(path, model="animals", classes=CLASSES), 6, classes)
    drawn = monitor.plot()
    assert drawn.rates_.get_ylabel() == "most probable class (%)"
    assert "class dog" in monitor.plot(event="dog").alt_text()
    assert "class fox" in monitor.to_html()
