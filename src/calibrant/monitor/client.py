"""`MonitorClient`: a monitored model of a service, over HTTP."""

import http.client
import json
import random
import time as clock
import uuid
import weakref
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Self
from urllib.parse import SplitResult, quote, urlencode, urlsplit

import numpy as np

from calibrant._support.addresses import is_loopback, open_connection
from calibrant._support.errors import Argument, InputError
from calibrant.kinds.base import forecast_kind, kind_of
from calibrant.monitor.observations import NO_GROUP, Outcomes, Predictions, check_name, group_label, read_groups
from calibrant.monitor.status import Alarm, Receipt
from calibrant.monitor.time_windows import read_time, read_times, to_datetime
from calibrant.tables.score_table import ScoreTable

_BUSY = (408, 429, 502, 503, 504)
_LONGEST_PAUSE = 10.0


class ServiceError(OSError):
    """The service cannot be reached, or does not do what was asked.

    Parameters
    ----------
    text : str
        What the service answered, or why it did not.
    status : int
        Status code of HTTP; 0 if there was no answer.

    See Also
    --------
    MonitorClient

    Examples
    --------
    >>> ServiceError("The service is busy.", 503).status
    503
    """

    __module__ = "calibrant.exceptions"

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


class MonitorClient:
    """A monitored model of a service (``calibrant serve``), over HTTP.

    Methods that store rows have the arguments of `Monitor` and return its `Receipt`. Each call has an id, the batch, so
    that it is stored once, however often it is sent: the client repeats a call after a lost connection and while the
    service is busy. A receipt means that the rows are durable.

    Parameters
    ----------
    url : str
        Address of the service. A token is only sent to https, or on loopback.
    token : str, optional
        Access token; see ``calibrant serve token create``.
    model : str, default="default"
    timeout : float, default=30
        Seconds to wait for an answer.
    retries : int, default=8
        How often a call is repeated; the pauses grow from 0.2 to 10 seconds.

    See Also
    --------
    Monitor

    Notes
    -----
    The client needs no extra of Calibrant. Several threads can use it at once. Use it in a ``with`` statement to close
    its connections.

    Examples
    --------
    >>> client = MonitorClient("http://127.0.0.1:8765", model="churn")
    >>> client
    MonitorClient('http://127.0.0.1:8765', model='churn')

    With a running service::

        client.create(window="day")
        client.observe([0, 1], [0.2, 0.7], time="2026-01-31", batch="2026-01-31")
        client.status()["alarm"]
    """

    def __init__(
        self, url: str, *, token: str | None = None, model: str = "default", timeout: float = 30, retries: int = 8
    ) -> None:
        self._address = _read_address(url, token)
        self.url: str = url.rstrip("/")
        self.model: str = check_name("model", model)
        self._token = token
        self.timeout: float = float(timeout)
        self.retries: int = int(retries)
        self._idle: list[http.client.HTTPConnection] = []
        weakref.finalize(self, _close_all, self._idle)

    def create(self, **settings: Any) -> dict[str, Any]:
        """Create the model; nothing happens if it exists with the same settings.

        Parameters
        ----------
        **settings
            Those of `Monitor`, such as ``window`` and ``margin``.

        Returns
        -------
        dict
            The model as the service describes it.
        """
        if isinstance(settings.get("maturity"), timedelta):
            settings["maturity"] = settings["maturity"].total_seconds()
        return self._call("PUT", self._path, body=settings)

    def observe(
        self,
        y: Any,
        p: Any,
        *,
        time: Any,
        group: Any = None,
        batch: object = None,
        version: object = None,
        pos_label: object = None,
    ) -> Receipt:
        """Store outcomes and scores, or class probabilities; see `Monitor.observe`.

        The columns of class probabilities are in the order of the classes of the model. Predictive distributions cannot
        be sent.

        Parameters
        ----------
        y : column, or one outcome
            Outcomes.
        p : column, or one score; or class probabilities
            Scores of the event; or (n, K) class probabilities.
        time : time or column of times
            When the predictions were made; see `Monitor.observe`.
        group : label, column, several columns or frame, optional
            Group of the rows.
        batch : object, optional
            Id of the batch; a batch that was stored before is not stored again. See `Monitor.observe`.
        version : object, optional
            Version of the model, by default the latest.
        pos_label : object, optional
            Label of the event, for outcomes other than 0 and 1.

        Returns
        -------
        Receipt
            What the service stored.
        """
        body = _request_columns(y, p, pos_label)
        n_rows = len(body["p"])
        times, (codes, keys) = read_times(time, n_rows), read_groups(group, n_rows)
        return self._store(
            "observations", {**body, "time": _times(times), "group": _groups(codes, keys)}, batch, version
        )

    def predict(
        self, id: Any, p: Any, *, time: Any, group: Any = None, batch: object = None, version: object = None
    ) -> Receipt:
        """Store predictions whose outcomes are not known yet; see `Monitor.predict`.

        Parameters
        ----------
        id : label or column of labels
            One per prediction.
        p : column of n scores, or one score
            Predicted probabilities.
        time : time or column of times
            When the predictions were made; see `Monitor.observe`.
        group : label, column, several columns or frame, optional
            Group of the rows.
        batch : object, optional
            Id of the batch; a batch that was stored before is not stored again. See `Monitor.observe`.
        version : object, optional
            Version of the model, by default the latest.

        Returns
        -------
        Receipt
            What the service stored.
        """
        rows = Predictions.read(id, p, time, group)
        body = {"id": rows.ids, "p": rows.scores, "time": _times(rows.times), "group": _groups(rows.codes, rows.keys)}
        return self._store("predictions", body, batch, version)

    def outcome(self, id: Any, y: Any, *, time: Any = None, pos_label: object = None, batch: object = None) -> Receipt:
        """Store the outcomes of earlier predictions; see `Monitor.outcome`.

        Parameters
        ----------
        id : label or column of labels
            Ids of the predictions.
        y : column of n outcomes, or one outcome
            0 and 1, or two labels with `pos_label`.
        time : time, optional
            When the outcomes became known; it moves the clock that closes windows.
        pos_label : object, optional
            Label of the event, for outcomes other than 0 and 1.
        batch : object, optional
            Id of the batch; a batch that was stored before is not stored again. See `Monitor.observe`.

        Returns
        -------
        Receipt
            What the service stored.
        """
        rows = Outcomes.read(id, y, pos_label)
        body = {"id": rows.ids, "y": rows.events, "time": None if time is None else _time(time)}
        return self._store("outcomes", body, batch, None)

    def add_table(
        self, table: ScoreTable, *, time: Any, group: Any = None, batch: object = None, version: object = None
    ) -> Receipt:
        """Store a table of counts of one time and group; see `Monitor.add_table`.

        Parameters
        ----------
        table : ScoreTable
            Counts of rows.
        time : time
            Time of all rows.
        group : label, optional
            Group of all rows.
        batch : object, optional
            Id of the batch; a batch that was stored before is not stored again. See `Monitor.observe`.
        version : object, optional
            Version of the model, by default the latest.

        Returns
        -------
        Receipt
            What was stored.
        """
        columns = {name: getattr(table, name).tolist() for name in ("score", "n", "k")}
        return self._store("tables", {**columns, "time": _time(time), "group": group}, batch, version)

    def close(self, until: Any = None) -> Receipt:
        """Close windows whatever the maturity delay; see `Monitor.close`.

        Parameters
        ----------
        until : time, optional
            End of the last window to close; it must not lie in the future. Omit it for windows of a number of rows.

        Returns
        -------
        Receipt
            The number of windows that were closed, and the alarms that they raised.
        """
        return _receipt(
            self._call("POST", f"{self._path}/close", body={} if until is None else {"until": _time(until)})
        )

    def status(self, *, version: object = None) -> dict[str, Any]:
        """Return the status as plain data: ``Monitor.status().to_dict()``.

        Parameters
        ----------
        version : object, optional
            Version of the model, by default the latest.

        Returns
        -------
        dict
            See `Monitor.status`.
        """
        return self._call("GET", f"{self._path}/status", query={"version": version})

    def history(self, group: Any = None, *, version: object = None) -> dict[str, Any]:
        """Return all windows as plain data: ``Monitor.history().to_dict()``.

        Parameters
        ----------
        group : label, optional
            One group; by default all rows.
        version : object, optional
            Version of the model, by default the latest.

        Returns
        -------
        dict
            See `Monitor.history`.
        """
        pages = list(self._pages(f"{self._path}/history", group=group, version=version))
        windows = [window for page in pages for window in page["windows"]]
        return {**{key: value for key, value in pages[0].items() if key != "next_cursor"}, "windows": windows}

    def evaluate(self, since: Any = None, until: Any = None, *, version: object = None) -> dict[str, Any]:
        """Return the evaluation of some windows as plain data: ``Monitor.evaluate(...).to_dict()``.

        Parameters
        ----------
        since : time, optional
            Start of the first window; by default the earliest.
        until : time, optional
            Windows that start at this time or later are left out; by default none.
        version : object, optional
            Version of the model, by default the latest.

        Returns
        -------
        dict
            See `Monitor.evaluate`.
        """
        times = {name: _time(value) for name, value in (("since", since), ("until", until)) if value is not None}
        return self._call("GET", f"{self._path}/evaluation", query={"version": version, **times})

    def alarms(self) -> list[Alarm]:
        """Return all alarms in the order in which they were raised.

        Returns
        -------
        list of Alarm
        """
        return [_alarm(item) for page in self._pages(f"{self._path}/alarms") for item in page["items"]]

    def acknowledge(self, alarm: int | Alarm, reason: str) -> Alarm:
        """Acknowledge an alarm, by itself or by its id, with a reason.

        Parameters
        ----------
        alarm : int or Alarm
            Alarm of this model, or its id.
        reason : str
            Text that is kept with the alarm.

        Returns
        -------
        Alarm
            The alarm with its acknowledgement.
        """
        key = alarm.id if isinstance(alarm, Alarm) else int(alarm)
        return _alarm(self._call("POST", f"{self._path}/alarms/{key}/acknowledgement", body={"reason": reason}))

    def silence(self, until: Any, reason: str) -> int:
        """Send no notifications of the model's alarms until a time; return the id of the silence.

        Parameters
        ----------
        until : time
            End of the silence.
        reason : str
            Text that is kept with the silence.

        Returns
        -------
        int
            For `end_silence`.
        """
        body = {"until": _time(until), "reason": reason}
        return int(self._call("POST", f"{self._path}/silences", body=body, repeatable=False)["id"])

    def end_silence(self, silence: int) -> None:
        """End a silence now.

        Parameters
        ----------
        silence : int
            What `silence` returned.
        """
        self._call("DELETE", f"{self._path}/silences/{int(silence)}", repeatable=False)

    def models(self) -> list[str]:
        """Return the names of the models that the token may read.

        Returns
        -------
        list of str
        """
        return [item["name"] for page in self._pages("/v1/models") for item in page["items"]]

    def delete(self) -> None:
        """Delete the model with all its data."""
        self._call("DELETE", self._path, repeatable=False)

    @property
    def _path(self) -> str:
        return f"/v1/models/{quote(self.model, safe='')}"

    def _store(self, path: str, body: dict[str, Any], batch: object, version: object) -> Receipt:
        """Send rows with an id, so that they are stored once."""
        key = str(uuid.uuid4()) if batch is None else check_name("batch", batch)
        given = {**body, "version": None if version is None else check_name("version", version)}
        values = {name: value for name, value in given.items() if value is not None}
        return _receipt(self._call("POST", f"{self._path}/{path}", body=values, key=key))

    def _pages(self, path: str, **query: object) -> Iterator[dict[str, Any]]:
        cursor = None
        while True:
            page = self._call("GET", path, query={**query, "cursor": cursor, "limit": 1000})
            yield page
            cursor = page["next_cursor"]
            if cursor is None:
                return

    def _call(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        key: str | None = None,
        repeatable: bool = True,
        query: Mapping[str, object] | None = None,
    ) -> dict[str, Any]:
        """Send a request until it is answered; return the data of its answer, {} if it has none.

        It is repeated while the service is busy, or away if that is safe.
        """
        given = {name: str(value) for name, value in (query or {}).items() if value is not None}
        target = self._address.path.rstrip("/") + path + (f"?{urlencode(given)}" if given else "")
        data = None if body is None else json.dumps(body, allow_nan=False).encode()
        headers = {"Accept": "application/json", "User-Agent": "calibrant"}
        if data is not None:
            headers["Content-Type"] = "application/json"
        if key is not None:
            headers["Idempotency-Key"] = key.encode("utf-8").decode("latin-1")
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        for attempt in range(self.retries + 1):
            wait = 0.0
            try:
                status, content, after = self._exchange(method, target, data, headers)
            except (OSError, http.client.HTTPException) as error:
                if not repeatable or attempt == self.retries:
                    reason = error or type(error).__name__
                    raise ServiceError(f"The service at {self.url} does not answer: {reason}.") from error
            else:
                if status not in _BUSY or attempt == self.retries:
                    return _result(status, content)
                wait = after
            pause = min(0.2 * 2**attempt, _LONGEST_PAUSE)
            clock.sleep(max(wait, pause * random.uniform(0.5, 1)))
        raise AssertionError  # the last attempt returns or raises

    def _exchange(
        self, method: str, target: str, data: bytes | None, headers: dict[str, str]
    ) -> tuple[int, bytes, float]:
        """Send one request; return status, body and the seconds of Retry-After."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = open_connection(self._address, self.timeout)
        try:
            connection.request(method, target, data, headers)
            answer = connection.getresponse()
            content = answer.read()
        except BaseException:
            connection.close()
            raise
        if connection.sock is None:  # the service has closed it
            connection.close()
        else:
            self._idle.append(connection)
        after = answer.headers.get("Retry-After", "")
        return answer.status, content, min(float(after), 60.0) if after.isdecimal() else 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        _close_all(self._idle)

    def __repr__(self) -> str:
        return f"MonitorClient({self.url!r}, model={self.model!r})"


def _close_all(connections: list[http.client.HTTPConnection]) -> None:
    while connections:
        connections.pop().close()


def _read_address(url: str, token: str | None) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port  # which raises an error for a port that is not a number
    except (ValueError, AttributeError):
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.username:
        raise InputError(Argument("url") + f" must be an address such as https://monitor.example; got {url!r}.")
    if token is not None and parts.scheme == "http" and not is_loopback(parts.hostname):
        raise InputError(
            Argument("url") + " must begin with https:// where a token is sent; got http.",
            hint="Without encryption others could read the token.",
        )
    return parts


def _result(status: int, content: bytes) -> dict[str, Any]:
    """Return the data of an answer, or raise its problem: an `InputError` with the wording of the library."""
    try:
        data = json.loads(content) if content else {}
    except ValueError:
        data = {}
    if 200 <= status < 300:
        return dict(data)
    text = data.get("detail") if isinstance(data, dict) else None
    if status in (400, 409, 413, 422) and text:
        error = InputError(text, argument=data.get("argument"), row=data.get("row"))
        error.hint = data.get("hint", "")
        raise error
    raise ServiceError(text or f"The service answered with status {status}.", status)


def _receipt(data: dict[str, Any]) -> Receipt:
    labels = tuple(tuple(each) if isinstance(each, list) else each for each in data["alarms"])
    return Receipt(**{**{name: data[name] for name in Receipt.__dataclass_fields__}, "alarms": labels})


def _alarm(data: dict[str, Any]) -> Alarm:
    window, raised = (datetime.fromisoformat(data[name]) for name in ("window", "raised"))
    done = None if data["acknowledged"] is None else datetime.fromisoformat(data["acknowledged"])
    value = float("nan") if data["log_e_value"] is None else float(data["log_e_value"])
    return Alarm(data["id"], data["version"], data["group"], window, value, raised, done, data["reason"])


def _time(value: Any) -> str:
    return to_datetime(read_time(value)).isoformat()


def _times(times: Any) -> Any:
    """Return times for JSON; one if all are equal."""
    if (times == times[0]).all():
        return to_datetime(int(times[0])).isoformat()
    return np.datetime_as_string(times.astype("datetime64[us]"), timezone="UTC").tolist()


def _request_columns(y: Any, p: Any, pos_label: object) -> dict[str, list[Any]]:
    """Return outcomes and forecasts for JSON; an error for forecasts that cannot be sent."""
    kind = kind_of(forecast_kind(y, p))
    if hasattr(type(p), "columns") or not (kind.optional("windows") and hasattr(kind.windows, "request_columns")):
        raise InputError(
            Argument("p") + f" must be scores, or an array of class probabilities; got {type(p).__name__}.",
            hint="A service takes no predictive distributions and no frames: pass an array whose columns are in the "
            "order of the classes of the model, or use Monitor with the store.",
        )
    columns: dict[str, list[Any]] = kind.windows.request_columns(y, p, pos_label)
    return columns


def _groups(codes: Any, keys: Sequence[str]) -> Any:
    """Return the groups of rows for JSON: one label, a list, or an object of lists for groups of several columns."""
    distinct = [None if key == NO_GROUP else group_label(key) for key in keys]
    labels = [distinct[code] for code in codes]
    if labels[0] is None:
        return None
    if isinstance(labels[0], tuple):
        return {str(i): [label[i] for label in labels] for i in range(len(labels[0]))}
    return labels[0] if all(label == labels[0] for label in labels) else labels
