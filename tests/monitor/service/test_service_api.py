"""The API: rows in each format, results, pages of lists, problems."""

import io
import json

import numpy as np
import pyarrow as pa
import pytest

import calibrant as cb

OWN = "/v1/models/churn"
ROWS = {"y": [0, 1, 1], "p": [0.2, 0.7, 0.9], "time": ["2026-01-01", "2026-01-01T12:00:00+01:00", "2026-01-02"]}
ARROW = "application/vnd.apache.arrow.stream"


@pytest.fixture
def churn(service):
    assert service.request("PUT", OWN, {"window": "day"}).status == 201
    return service


def arrow(**columns):
    table, sink = pa.table(columns), io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def rows(service):
    return service.request("GET", f"{OWN}/status").json()["n_rows"]


def test_json_csv_and_arrow_store_the_same_rows(churn):
    group = ["a", "b", "a"]
    csv = "y,p,time,group\n" + "".join(f"{y},{p},{t},{g}\n" for y, p, t, g in zip(*ROWS.values(), group, strict=True))
    times = pa.array(np.array(["2026-01-01", "2026-01-01T11:00", "2026-01-02"], dtype="datetime64[us]"))
    columns = {"y": pa.array([0, 1, 1]), "p": pa.array(ROWS["p"]), "time": times}
    bodies = {
        "application/json": json.dumps({**ROWS, "group": group}).encode(),
        "text/csv; charset=utf-8": csv.encode(),
        ARROW: arrow(**columns, group=pa.array(group).dictionary_encode()),
    }
    for kind, body in bodies.items():
        reply = churn.request("POST", f"{OWN}/observations", body, kind=kind, headers={"Idempotency-Key": "same"})
        assert reply.json()["repeated_batch"] == (kind != "application/json"), reply.body
        assert reply.status == (201 if kind == "application/json" else 200)
    assert rows(churn) == 3
    assert cb.Monitor(churn.settings.store, model="churn").groups() == ["a", "b"]


def test_the_query_names_groups_time_and_version_of_a_table(churn):
    body = b"y,p,land,device\n1,0.5,01,x\n0,0.5,02,y\n"
    path = f"{OWN}/observations?group=land&group=device&time=2026-01-03&version=b"
    assert churn.request("POST", path, body, kind="text/csv").json()["n_rows"] == 2
    monitor = cb.Monitor(churn.settings.store, model="churn")
    assert monitor.groups() == [("01", "x"), ("02", "y")]
    assert monitor.status().version == "b"


def test_predictions_and_outcomes_meet(churn):
    predictions = {"id": ["r1", 2], "p": [0.1, 0.8], "time": "2026-01-01"}
    assert churn.request("POST", f"{OWN}/predictions", predictions).json()["n_rows"] == 2
    reply = churn.request("POST", f"{OWN}/outcomes", {"id": [2, "other"], "y": [True, 0]})
    assert (reply.status, reply.json()["n_rows"], reply.json()["n_unknown"]) == (201, 1, 1)
    assert churn.request("GET", f"{OWN}/status").json()["n_unlabelled"] == 1


@pytest.mark.parametrize(
    ("path", "body", "note"),
    [
        ("predictions", {"id": ["r1"], "p": [0.1], "time": "2026-01-01"}, "duplicates"),
        ("outcomes", {"id": ["r1"], "y": [1]}, "unknown"),
    ],
)
def test_a_repeated_batch_of_predictions_or_outcomes_is_not_counted_as_duplicates(churn, path, body, note):
    headers = {"Idempotency-Key": "batch 1"}
    first, second = (churn.request("POST", f"{OWN}/{path}", body, headers=headers) for _ in range(2))
    assert (first.status, second.status, second.json()["repeated_batch"]) == (201, 200, True)
    notes = {each["code"]: each["count"] for each in churn.request("GET", f"{OWN}/status").json()["notes"]}
    assert notes.get(note, 0) == (1 if note == "unknown" else 0)
    other = churn.request("POST", f"{OWN}/{path}", {**body, "id": ["r2"]}, headers=headers)
    assert (other.status, other.json()["argument"]) == (422, "Idempotency-Key")


def test_probabilities_of_ordered_classes_are_lists_per_row(service):
    settings = {"kind": "ordinal", "classes": ["low", "mid", "high"]}
    assert service.request("PUT", "/v1/models/k", settings).json()["settings"]["kind"] == "ordinal"
    body = {"y": ["low", "high"], "p": [[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]], "time": "2026-01-01"}
    assert service.request("POST", "/v1/models/k/observations", body).json()["n_rows"] == 2


def test_class_probabilities_are_lists_per_row(service):
    assert (
        service.request("PUT", "/v1/models/k", {"classes": ["a", "b", "c"]}).json()["settings"]["kind"] == "multiclass"
    )
    body = {"y": ["a", "c"], "p": [[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]], "time": "2026-01-01"}
    assert service.request("POST", "/v1/models/k/observations", body).json()["n_rows"] == 2
    for p in ([[0.5, 0.5], [0.1, 0.9]], [[0.5, 0.25, 0.25], [0.1, 0.2]], [[0.5, "x", 0.25]] * 2, [[10**400] * 3] * 2):
        assert service.request("POST", "/v1/models/k/observations", {**body, "p": p}).status == 400


def test_tables_of_counts_are_stored(churn):
    body = {"score": [0.1, 0.5], "n": [1000, 200], "k": [90, 110], "time": "2026-01-01", "group": "a"}
    assert churn.request("POST", f"{OWN}/tables", body).json()["n_rows"] == 1200
    table = arrow(score=pa.array([0.1]), n=pa.array([10]), k=pa.array([1]))
    reply = churn.request("POST", f"{OWN}/tables?time=2026-01-01&group=a", table, kind=ARROW)
    assert (reply.status, rows(churn)) == (201, 1210)


def test_status_history_and_evaluation_are_those_of_the_library(churn):
    churn.request("POST", f"{OWN}/observations", {**ROWS, "group": [1, 2, 2]})
    churn.request("POST", f"{OWN}/close", {})
    monitor = cb.Monitor(churn.settings.store, model="churn")
    assert churn.request("GET", f"{OWN}/status").json() == json.loads(monitor.status().to_json())
    history = churn.request("GET", f"{OWN}/history?group=2").json()
    assert history.pop("next_cursor") is None
    assert history == json.loads(monitor.history(2).to_json())
    query = "since=2026-01-01&until=2026-01-02"
    found = churn.request("GET", f"{OWN}/evaluation?{query}").json()
    assert found["n_rows"] == 2
    assert found["verdict"] == monitor.evaluate("2026-01-01", "2026-01-02").verdict


def test_lists_come_in_pages(churn):
    for day in range(1, 8):
        churn.request("POST", f"{OWN}/observations", {"y": 1, "p": 0.5, "time": f"2026-01-0{day}"})
    starts, cursor = [], ""
    while cursor is not None:
        page = churn.request("GET", f"{OWN}/history?limit=3{cursor and f'&cursor={cursor}'}").json()
        starts += [window["start"][:10] for window in page["windows"]]
        cursor = page["next_cursor"]
    assert starts == [f"2026-01-0{day}" for day in range(1, 8)]
    for name in ("b", "a", "c"):
        churn.request("PUT", f"/v1/models/{name}", {})
    first = churn.request("GET", "/v1/models?limit=2").json()
    assert [each["name"] for each in first["items"]] == ["a", "b"]
    second = churn.request("GET", f"/v1/models?limit=2&cursor={first['next_cursor']}").json()
    assert ([each["name"] for each in second["items"]], second["next_cursor"]) == (["c", "churn"], None)
    assert churn.request("GET", "/v1/audit?limit=1&cursor=1").json()["items"][0]["model"] == "b"


def test_settings_of_a_model_never_change(churn):
    assert churn.request("PUT", OWN, {}).status == 200
    reply = churn.request("PUT", OWN, {"window": "week"})
    assert reply.status == 409
    assert reply.json()["detail"].startswith("window must be 'day', the value stored for model 'churn'; got 'week'.")


def test_names_may_hold_any_printable_character(service):
    for name in ("a/b", "%2F", "Ä ß", "a?b#c", "..", "x\\y", "<b>"):
        client = cb.MonitorClient(service.url, model=name)
        client.create()
        assert client.observe(1, 0.5, time="2026-01-01", batch=f"{name} 日").n_rows == 1
        assert client.status()["model"] == name
    assert service.request("GET", "/v1/models/a%00b/status").status == 404


def test_a_deleted_model_is_gone_and_can_be_created_again(churn):
    churn.request("POST", f"{OWN}/observations", ROWS)
    assert churn.request("DELETE", OWN).status == 204
    assert churn.request("GET", f"{OWN}/status").status == 404
    assert churn.request("POST", f"{OWN}/observations", ROWS).status == 404
    assert churn.request("PUT", OWN, {"window": "week"}).status == 201
    assert churn.request("POST", f"{OWN}/observations", ROWS).status == 201
    assert rows(churn) == 3


def test_a_model_that_another_process_replaced_is_found(churn):
    churn.request("POST", f"{OWN}/observations", ROWS)
    monitor = cb.Monitor(churn.settings.store, model="churn")
    monitor.delete("churn")
    cb.Monitor(churn.settings.store, model="churn", window="hour")
    assert churn.request("POST", f"{OWN}/observations", ROWS).status == 201
    assert churn.request("GET", OWN).json()["settings"]["window"] == "hour"


@pytest.mark.parametrize(
    ("body", "kind", "status", "words"),
    [
        (b'{"y": [1], "p": [NaN], "time": "2026-01-01"}', "application/json", 400, "JSON, which has no NaN"),
        (b'{"y": [1], "y": [0]}', "application/json", 400, "name each member once"),
        (b'{"y": [1], "p": [0.5]}', "application/json", 400, "time must be given"),
        (b'{"y": [1], "p": [0.5], "times": "2026-01-01"}', "application/json", 400, "Did you mean 'time'"),
        (b'{"y": [1], "p": [1.5], "time": "2026-01-01"}', "application/json", 400, "p must lie in [0, 1]"),
        (b'{"y": [1, 2], "p": [0.5, 0.5], "time": "2026-01-01"}', "application/json", 400, "y must"),
        (b"[" * 100_000, "application/json", 400, "nested too deeply"),
        (b"\xff\xfe", "application/json", 400, "JSON in UTF-8"),
        (b"1" * 5000, "application/json", 400, "at most 4,300 digits"),
        (b"[]", "application/json", 400, "must be a JSON object"),
        (b'{"y": [[1]], "p": [0.5], "time": "2026-01-01"}', "application/json", 400, "row 0 is not one"),
        (b"y,p,time\n1,0.5\n", "text/csv", 400, "must be CSV"),
        (b"y,p,time,extra\n1,0.5,2026-01-01,3\n", "text/csv", 400, "unknown column 'extra'"),
        (b"", "text/csv", 400, "must be CSV"),
        (b"garbage", ARROW, 400, "must be an Arrow stream"),
        (b"", ARROW, 400, "must be an Arrow stream"),
        (b"{}", "text/plain", 415, "The Content-Type must be application/json or text/csv or"),
    ],
)
def test_bad_bodies_are_problems_with_the_words_of_the_library(churn, body, kind, status, words):
    reply = churn.request("POST", f"{OWN}/observations", body, kind=kind)
    assert (reply.status, reply.headers["Content-Type"]) == (status, "application/problem+json")
    assert words in reply.json()["detail"]
    assert rows(churn) == 0


def test_a_problem_names_argument_row_and_hint(churn):
    reply = churn.request("POST", f"{OWN}/observations", {"y": [0, 1], "p": [0.5, 95], "time": "2026-01-01"})
    found = reply.json()
    hint = "The largest value is 95; if the values are percentages, divide them by 100."
    assert (found["argument"], found["row"], found["hint"]) == ("p", 1, hint)


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_compressed_arrow_is_refused_before_it_is_read(churn, compression):
    table, sink = pa.table({"y": np.zeros(1000), "p": np.zeros(1000)}), io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table)
    reply = churn.request("POST", f"{OWN}/observations?time=2026-01-01", sink.getvalue(), kind=ARROW)
    assert (reply.status, "must not be compressed" in reply.json()["detail"]) == (400, True)


def test_texts_that_rows_repeat_are_refused_before_they_are_decoded(churn):
    """Bodies of less than 1 MB stand for 18 GB of text."""
    for length, status, words in ((200_000, 400, "at most 500 characters"), (1_000, 413, "at most 67,108,864 bytes")):
        text = pa.DictionaryArray.from_arrays(
            pa.array(np.zeros(90_000, np.int8)), pa.array(["x" * length], pa.large_string())
        )
        body = arrow(y=np.zeros(90_000, np.int8), p=np.full(90_000, 0.5, np.float32), group=text)
        reply = churn.request("POST", f"{OWN}/observations?time=2026-01-01", body, kind=ARROW)
        assert (reply.status, words in reply.json()["detail"]) == (status, True)


def test_nested_and_run_end_encoded_arrow_is_refused(churn):
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2**31 - 1], pa.int32()), pa.array([0.5]))
    for column in (pa.array([[1.0]]), runs, pa.nulls(10), pa.array([b"x"])):
        reply = churn.request("POST", f"{OWN}/observations", arrow(p=column), kind=ARROW)
        assert (reply.status, reply.headers["Content-Type"]) in {
            (400, "application/problem+json"),
            (413, "application/problem+json"),
        }


def test_damaged_arrow_is_a_problem(churn):
    good = arrow(y=pa.array([0, 1]), p=pa.array([0.5, 0.6]), time=pa.array(["2026-01-01"] * 2))
    rng = np.random.default_rng(0)
    for _ in range(150):
        bad = bytearray(good)
        for at in rng.integers(0, len(bad), 3):
            bad[at] = rng.integers(0, 256)
        reply = churn.request("POST", f"{OWN}/observations", bytes(bad[: rng.integers(1, len(bad) + 1)]), kind=ARROW)
        assert reply.status in (201, 400, 413), reply.body


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/history?limit=0", "limit must be a whole number from 1 to 1,000; got '0'."),
        ("/history?limit=2&limit=3", "limit must be given once; got 2 values."),
        ("/history?cursor=x", "cursor must be the next_cursor of an earlier answer"),
        ("/history?groups=x", "This endpoint has no parameter 'groups'. Did you mean 'group'?"),
        ("/history?group=x", "group must be a group of the model, which has none; got 'x'."),
        ("/status?version=9", "version must be a version of the model"),
        ("/evaluation?since=yesterday", "since must hold times"),
        ("/evaluation", "There must be at least one row in the windows to evaluate"),
    ],
)
def test_bad_queries_are_problems(churn, path, words):
    reply = churn.request("GET", OWN + path)
    assert (reply.status, reply.headers["Content-Type"]) == (400, "application/problem+json")
    assert words in reply.json()["detail"]


def test_unknown_paths_and_methods_are_problems(churn):
    assert churn.request("GET", "/v1/other").status == 404
    reply = churn.request("DELETE", "/v1/models")
    assert (reply.status, reply.headers["Content-Type"]) == (405, "application/problem+json")


def test_health_and_description_need_no_store_of_models(service):
    assert service.request("GET", "/v1/health").json()["status"] == "ok"
    assert service.request("GET", "/v1/openapi.json").json()["openapi"] == "3.1.0"
    assert service.request("HEAD", "/v1/health").body == b""


def test_answers_have_security_headers(service):
    for path in ("/v1/models", "/v1/other", "/", "/metrics"):
        headers = service.request("GET", path).headers
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["X-Frame-Options"] == "DENY"
        assert "Set-Cookie" not in headers
        assert "Server" not in headers


def test_groups_that_are_written_alike_have_their_own_history(run_service, path):
    with run_service(path) as service:
        service.request("PUT", "/v1/models/m", {})
        for group, n in ((1, 2), ("1", 3)):
            body = {"y": [0] * n, "p": [0.5] * n, "time": "2026-01-01", "group": group}
            assert service.request("POST", "/v1/models/m/observations", body).status == 201
        for text, n in (("1", 2), ("%221%22", 3)):
            found = service.request("GET", f"/v1/models/m/history?group={text}").json()
            assert [window["n_rows"] for window in found["windows"]] == [n]
        service.service.events.stopping.set()
        reply = service.request("GET", "/readyz")
        assert (reply.status, reply.json()["detail"]) == (503, "The service is stopping.")
