"""`Monitor`: calibration over time, with alarms that stay valid however often one looks."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from calibrant._support.errors import Argument, InputError, MissingExtraError

try:
    import sqlalchemy as sa
except ModuleNotFoundError as error:
    raise MissingExtraError("The monitor needs SQLAlchemy", "monitor", name="sqlalchemy") from error

from calibrant.evaluation.evaluate import evaluate
from calibrant.monitor import schema
from calibrant.monitor.alarm_log import acknowledge_alarm, read_alarms
from calibrant.monitor.cells import check_folder, forget_tables, round_tables, write_files
from calibrant.monitor.model_queries import Reader
from calibrant.monitor.model_settings import ModelSettings, StoredModel
from calibrant.monitor.observations import (
    NO_EVENT,
    NO_GROUP,
    Chunk,
    CountedChunk,
    Outcomes,
    Predictions,
    RowChunk,
    check_name,
    group_key,
    group_label,
)
from calibrant.monitor.recording import Recorder, check_cells
from calibrant.monitor.status import Alarm, History, Receipt, Status
from calibrant.monitor.store import Store, not_found
from calibrant.monitor.time_windows import DAY, FIRST_TIME, read_time, to_datetime
from calibrant.results.evaluation import Evaluation
from calibrant.tables.score_table import ScoreTable, check_resolution

if TYPE_CHECKING:
    from calibrant._support.file_writing import FilePath

_NO_GROUP = "(no group)"


class Monitor:
    """Calibration of a model over time, with alarms that stay valid however often one looks.

    Rows are counted into one table per window and group, in a database. When a window closes, it is added to an
    e-process: a measure of evidence against calibration within the margin. The probability that a calibrated model
    ever raises an alarm is at most `alpha`, over any number of windows and looks.

    Parameters
    ----------
    store : path, URL or Engine
        A SQLite file, which is created; or a URL or an engine of SQLAlchemy for SQLite or PostgreSQL.
    model : str, default="default"
        A store holds any number of models.
    window : {"hour", "day", "week"} or int, default="day"
        Windows in UTC, weeks from Monday; or a number of rows.
    alpha : float, default=0.05
        Probability that a calibrated model ever raises an alarm: one half for all rows, one half for the groups.
    margin : float, default=0.1
        Largest log-odds error that does not matter.
    dependence : str, default="window"
        How rows of one window may depend on each other; see `calibrant.inference.EProcess`.
    window_effect : float, default=0.2
        Standard deviation of the random effect of a window that a calibrated model may have, relative to the event
        rate.
    maturity : timedelta, default=0
        How long a window stays open after its end, for outcomes that arrive later.
    resolution : float, optional
        Round scores to multiples of this, which limits the size of the store; see `ScoreTable.round`. It must be much
        smaller than the scores and their distances from 1: rounded scores are tested, and a status has a note if the
        rounding is too coarse.
    kind : {"binary", "multiclass", "ordinal", "distribution"}, default="binary"
        Kind of the forecasts. Class probabilities are tested by one event per class, those of ordered classes by one
        event per class but the highest: an outcome at or below it; predictive distributions by one event per level: an
        outcome below that quantile, or above it for levels over 0.5. The e-value is the mean of those of the events.
    classes : sequence, optional
        The class of each column of class probabilities, for the kind "ordinal" from the lowest to the highest; implies
        the kind "multiclass" if none is given.
    levels : sequence of float, default=(0.1, 0.25, 0.5, 0.75, 0.9)
        Levels of the quantiles of predictive distributions; implies the kind "distribution".
    allow_future : bool, default=False
        Accept times that lie more than a window (at least a day) ahead of the clock, as in simulations. A wrong time in
        the future would close all windows before it. Not stored.

    See Also
    --------
    MonitorClient, EProcess, evaluate, MonitorDisplay

    Notes
    -----
    The settings of a model are stored when it is created. Another `Monitor` of the same model uses them; a given
    value that differs is an `InputError`. The page "Monitor" of the user guide states the guarantee and its limits.

    A window closes when the newest time reaches its end plus `maturity`. Closed windows never change: a row whose
    window is closed is counted in the oldest open window, as a late row.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> folder = tempfile.TemporaryDirectory()
    >>> monitor = Monitor(f"{folder.name}/store.db", window="day")
    >>> for day in range(1, 4):
    ...     p = rng.random(200)
    ...     stored = monitor.observe(rng.random(200) < p, p, time=f"2026-01-{day:02}")
    >>> monitor.status().alarm, monitor.status().n_windows
    (False, 2)
    >>> folder.cleanup()
    """

    def __init__(
        self,
        store: str | PathLike[str] | sa.URL | sa.Engine | Store,
        *,
        model: str = "default",
        window: str | int | None = None,
        alpha: float | None = None,
        margin: float | None = None,
        dependence: str | None = None,
        window_effect: float | None = None,
        maturity: timedelta | None = None,
        resolution: float | None = None,
        kind: str | None = None,
        classes: Sequence[Any] | None = None,
        levels: Sequence[float] | None = None,
        allow_future: bool = False,
    ) -> None:
        self.model: str = check_name("model", model)
        self.allow_future: bool = bool(allow_future)
        self.most_cells: int | None = None  # of one call; a service sets it
        given = ModelSettings.given(
            window=window,
            alpha=alpha,
            margin=margin,
            dependence=dependence,
            window_effect=window_effect,
            maturity=maturity,
            resolution=resolution,
            kind=kind,
            classes=classes,
            levels=levels,
        )
        wanted = ModelSettings(**given)  # checked before the store is created
        self.store: Store = store if isinstance(store, Store) else Store(store)
        self._stored = StoredModel.open(self.store, self.model, wanted)
        self.settings: ModelSettings = self._stored.settings
        self.settings.check_given(given, self.model)

    @contextmanager
    def _write(self) -> Iterator[Recorder]:
        with self._stored.write() as connection:
            yield Recorder(connection, self._stored)

    @contextmanager
    def _read(self) -> Iterator[Reader]:
        with self._stored.read() as connection:
            yield Reader(connection, self._stored)

    def exists(self) -> bool:
        """Return whether the model is in the store, and was not deleted since this monitor was opened.

        Returns
        -------
        bool
        """
        return self._stored.exists()

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
        """Store outcomes and forecasts; close windows that are complete.

        Parameters
        ----------
        y, p : columns, or one row
            Outcomes 0 and 1, and predicted probabilities; see `ScoreTable.from_arrays`. For the kind "multiclass"
            labels and (n, K) class probabilities, for "ordinal" labels and `calibrant.Ordinal`, for "distribution"
            numbers and predictive distributions; see `calibrant.evaluate`.
        time : time or column of times
            When the predictions were made: datetime, date, datetime64, or text in ISO 8601. Naive times are UTC.
        group : label, column, several columns or frame, optional
            Group of the rows. Groups are monitored too.
        batch : object, optional
            Id of the batch. A batch that was stored before is not stored again, so a call can be repeated after a
            failure; the same id with other rows is an error. Each named version has its own batches. Without a
            version, a batch that any version has is not stored again.
        version : object, optional
            Version of the model, by default the latest. Each version has its own e-process.
        pos_label : object, optional
            Label of the event, for outcomes other than 0 and 1.

        Returns
        -------
        Receipt
            When it is returned, the rows are durable.
        """
        rows = self.settings.read_rows(y, p, pos_label)
        return self._observe(RowChunk.read(rows, time, group), batch, version)

    def add_table(
        self, table: ScoreTable, *, time: Any, group: Any = None, batch: object = None, version: object = None
    ) -> Receipt:
        """Store a table of counts that was made elsewhere, by Spark or SQL; all its rows have one time and group.

        Arguments as for `observe`. Forecasts must be binary.

        Parameters
        ----------
        table : ScoreTable
            Counts; importance weights are an error.
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
        self._check_one_event("add_table", "Pass rows to observe.")
        return self._observe(CountedChunk.read(table, time, group), batch, version)

    def _observe(self, chunk: Chunk, batch: object, version: object) -> Receipt:
        self._check_times(int(chunk.times.min()), int(chunk.times.max()))
        if self.most_cells is not None:
            check_cells(chunk, self.settings, self.most_cells)
        with self._write() as recorder:
            return recorder.observe(chunk, batch, version)

    def _check_times(self, oldest: int, newest: int) -> None:
        """Raise an error for a time that no clock showed, or that would close windows before their rows can come."""
        if oldest < FIRST_TIME:
            raise InputError(
                Argument("time") + f" must not lie before {to_datetime(FIRST_TIME):%Y}; got "
                f"{to_datetime(oldest).isoformat(' ', 'minutes')[:16]} UTC.",
                hint="Some programs write such a time where the time is missing.",
                value=to_datetime(oldest),
            )
        rule = self.settings.rule
        if self.allow_future or rule.counts_rows or newest <= schema.now() + max(rule.length, DAY):
            return
        raise InputError(
            Argument("time")
            + f" must not lie more than a {'week' if rule.window == 'week' else 'day'} in the future; got "
            f"{to_datetime(newest):%Y-%m-%d %H:%M} UTC.",
            hint="It would close all windows before it. For simulated streams pass allow_future=True to Monitor.",
            value=to_datetime(newest),
        )

    def _check_one_event(self, method: str, hint: str) -> None:
        if not self.settings.has_one_event:
            raise InputError(
                f"{method} must be used with binary forecasts; model {self.model!r} has the kind "
                f"{self.settings.kind!r}.",
                hint=hint,
            )

    def predict(
        self, id: Any, p: Any, *, time: Any, group: Any = None, batch: object = None, version: object = None
    ) -> Receipt:
        """Store predictions whose outcomes are not known yet.

        Windows must be of time: windows of a number of rows would hold the outcomes that arrive first. Forecasts must
        be binary.

        Parameters
        ----------
        id : label or column of labels
            One per prediction. The first prediction of an id by a version counts; later ones are left out as
            duplicates.
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
            What was stored.
        """
        self._check_one_event("predict", "Keep the forecasts, and pass them to observe when the outcomes are known.")
        if self.settings.rule.counts_rows:
            raise InputError(
                Argument("window") + f" must be a time for predictions without outcomes; got {self.settings.window}.",
                hint="Use observe when outcomes are known, or windows of a day.",
            )
        predictions = Predictions.read(id, p, time, group)
        self._check_times(int(predictions.times.min()), int(predictions.times.max()))
        with self._write() as recorder:
            return recorder.predict(predictions, batch, version)

    def outcome(self, id: Any, y: Any, *, time: Any = None, pos_label: object = None, batch: object = None) -> Receipt:
        """Store the outcomes of earlier predictions; they are counted in the windows of the predictions.

        Parameters
        ----------
        id : label or column of labels
            Ids of the predictions. An id without a prediction, and an id that has an outcome already, are left out and
            counted.
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
            What was stored.
        """
        self._check_one_event("outcome", "Pass outcomes and forecasts together to observe.")
        outcomes = Outcomes.read(id, y, pos_label)
        moment = None if time is None else read_time(time)
        if moment is not None:
            self._check_times(moment, moment)
        with self._write() as recorder:
            return recorder.outcome(outcomes, moment, batch)

    def close(self, until: Any = None) -> Receipt:
        """Close the windows that end at `until` or earlier, whatever the maturity delay; by default all windows.

        Parameters
        ----------
        until : time, optional
            End of the last window to close; it must not lie in the future. Omit it for windows of a number of rows.

        Returns
        -------
        Receipt
            The number of windows that were closed, and the alarms that they raised.
        """
        end = None if until is None else read_time(until, "until")
        if self.settings.rule.counts_rows and end is not None:
            raise InputError(
                Argument("until") + " must be omitted for windows of a number of rows; got a time.",
                hint="Without it, the open window is closed.",
            )
        with self._write() as recorder:
            return recorder.close(end)

    def status(self, *, version: object = None) -> Status:
        """Return alarms, evidence and groups after the last closed window, of the latest version by default.

        Parameters
        ----------
        version : object, optional
            Version of the model, by default the latest.

        Returns
        -------
        Status
            ``status.alarm`` is True while an alarm is not acknowledged.
        """
        with self._read() as reader:
            return reader.status(version)

    def history(self, group: Any = None, *, version: object = None, event: Any = None) -> History:
        """Return one row per window, of all rows or of one group; of one class or level with `event`.

        Parameters
        ----------
        group : label, optional
            One of `groups`; by default all rows.
        version : object, optional
            Version of the model, by default the latest.
        event : label or float, optional
            Class or level, for forecasts that are not binary.

        Returns
        -------
        History
        """
        key = self._event_key(event)
        with self._read() as reader:
            return reader.history(group, version, key)

    def groups(self) -> list[Any]:
        """Return the labels of all groups with rows, also in open windows.

        Returns
        -------
        list
        """
        with self._read() as reader:
            return [group_label(key) for key in reader.group_keys()]

    def _event_key(self, event: Any) -> str:
        """Return the key of an event; the shown rates have none."""
        if event is None:
            return NO_EVENT
        events = {} if self.settings.has_one_event else self.settings.events
        key = group_key(event)
        if key not in events:
            raise not_found("event", "a class or a level of the model, which has", map(repr, events.values()), event)
        return key

    def evaluate(
        self, since: Any = None, until: Any = None, *, version: object = None, event: Any = None, **options: Any
    ) -> Evaluation:
        """Evaluate the rows of windows that start at `since` or later and before `until`, open windows included.

        Groups are evaluated too. The verdict is that of one look at these rows: it is not valid for repeated looks, as
        the alarms are.

        The store keeps counts, not rows. For forecasts that are not binary these give the binary evaluation of one
        `event`, a class or a level, but none of all events together, which needs the rows.

        Parameters
        ----------
        since : time, optional
            Start of the first window; by default the earliest.
        until : time, optional
            Windows that start at this time or later are left out; by default none.
        version : object, optional
            Version of the model, by default the latest.
        event : label or float, optional
            Class or level, for forecasts that are not binary.
        **options
            Those of `calibrant.evaluate`.

        Returns
        -------
        Evaluation
        """
        tables = self._tables(since, until, version, event)
        if list(tables) == [NO_GROUP]:
            return evaluate(tables[NO_GROUP], **options)
        groups: dict[Any, ScoreTable] = {group_label(key): table for key, table in tables.items() if key != NO_GROUP}
        if NO_GROUP in tables:
            name = _NO_GROUP
            while name in groups:
                name += "_"
            groups[name] = tables[NO_GROUP]
        return evaluate(groups, **options)

    def table(
        self, since: Any = None, until: Any = None, *, group: Any = None, version: object = None, event: Any = None
    ) -> ScoreTable:
        """Return the table of the rows that `evaluate` evaluates, or of one group, for example to fit a calibrator.

        Parameters
        ----------
        since : time, optional
            Start of the first window; by default the earliest.
        until : time, optional
            Windows that start at this time or later are left out; by default none.
        group : label, optional
            One group; by default all rows.
        version : object, optional
            Version of the model, by default the latest.
        event : label or float, optional
            Class or level, for forecasts that are not binary.

        Returns
        -------
        ScoreTable
        """
        tables = self._tables(since, until, version, event)
        if group is None:
            return sum(tables.values(), ScoreTable.empty())
        if group_key(group) not in tables:
            known = (repr(group_label(key)) for key in tables if key != NO_GROUP)
            raise not_found("group", "a group with rows in these windows, which have", known, group)
        return tables[group_key(group)]

    def recalibrate(self, calibrator: Any = None, *, since: Any = None, version: object = None) -> Any:
        """Fit a calibrator to recent windows, by default to those since the estimated change after an alarm.

        Observe its scores as a new version beside the old one: both are then evaluated on the same later rows, and each
        has its own evidence and its own share of alpha, so the guarantee holds across the change.

        Parameters
        ----------
        calibrator : calibrator or its name, optional
            By default `Beta`.
        since : time, optional
            Start of the first window.
        version : optional
            The version whose scores are recalibrated, by default the latest.

        Returns
        -------
        calibrator
            Fitted; ``calibrator(scores)`` are the scores of the new version.
        """
        self._check_one_event("recalibrate", "Fit a calibrator for this kind to rows: see the page on recalibration.")
        from calibrant.calibrators.registry import as_calibrator
        from calibrant.calibrators.score_map import ScoreMap

        chosen = as_calibrator("beta" if calibrator is None else calibrator)
        if not isinstance(chosen, ScoreMap):
            raise InputError(Argument("calibrator") + f" must be a calibrator of binary scores; got {calibrator!r}.")
        if since is None:
            change = self.status(version=version).change_point
            if change is None:
                raise InputError(Argument("since") + " must be given while no change is estimated.")
            since = change.window
        return chosen.fit(self.table(since, version=version))

    def _tables(self, since: Any, until: Any, version: object, event: Any) -> dict[str, ScoreTable]:
        """Return the table of each group in a range of windows; an error if there are no rows."""
        if event is None and not self.settings.has_one_event:
            raise InputError(
                Argument("event") + f" must be given for forecasts of the kind {self.settings.kind!r}: the store keeps "
                "counts of each event, and an evaluation of all events needs the rows.",
                hint="Pass a class or a level, or evaluate the rows with calibrant.evaluate(y, forecast).",
            )
        key = self._event_key(event)
        first = None if since is None else read_time(since, "since")
        last = None if until is None else read_time(until, "until")
        with self._read() as reader:
            tables = reader.tables(first, last, version, key)
        if not tables:
            raise InputError(
                "There must be at least one row in the windows to evaluate; got none.", hint="Widen since and until."
            )
        return tables

    def plot(self, group: Any = None, *, version: object = None, event: Any = None, fig: Any = None) -> Any:
        """Draw predicted and observed rates and the evidence over time; return a `calibrant.plots.MonitorDisplay`.

        Parameters
        ----------
        group : label, optional
            One of `groups`; by default all rows.
        version : object, optional
            Version of the model, by default the latest.
        event : label or float, optional
            Class or level, for forecasts that are not binary.
        fig : Figure or SubFigure, optional
            Figure to draw in; by default a new one.

        Returns
        -------
        MonitorDisplay
            The display, drawn.
        """
        return self.history(group, version=version, event=event).plot(fig=fig)

    @overload
    def to_html(self, path: None = None, *, title: str | None = ...) -> str: ...
    @overload
    def to_html(self, path: "FilePath", *, title: str | None = ...) -> "FilePath": ...
    def to_html(self, path: str | PathLike[str] | None = None, *, title: str | None = None) -> str | PathLike[str]:
        """Return status, figure and history as one self-contained HTML page, or write it to `path`.

        Parameters
        ----------
        path : path, optional
            File to write; an existing file is replaced, completely or not at all.
        title : str, optional
            Title of the page, by default "Monitor of" and the name of the model.

        Returns
        -------
        str or path
            The page; where `path` is given, the path.
        """
        from calibrant.monitor.status import status_page
        from calibrant.report import write_page

        page = status_page(self.status(), self.history(), title=title or f"Monitor of {self.model}")
        return write_page(page, path)

    def report_section(self) -> dict[str, Any]:
        """Return what the report of an evaluation shows about this monitor; for ``Evaluation.to_html(monitor=...)``.

        Returns
        -------
        dict
            Content of the section.
        """
        from calibrant.monitor.status import monitor_section

        return monitor_section(self.status(), self.history())

    def acknowledge(self, alarm: int | Alarm, reason: str) -> None:
        """Acknowledge an alarm, by itself or by its id, with a reason. It stays in the list of alarms.

        Parameters
        ----------
        alarm : int or Alarm
            Alarm of this model, or its id.
        reason : str
            Text that is kept with the alarm.
        """
        key, text = (alarm.id if isinstance(alarm, Alarm) else alarm), check_name("reason", reason)
        with self._write() as recorder:
            acknowledge_alarm(recorder.connection, self._stored.id, key, text)

    def alarms(self) -> tuple[Alarm, ...]:
        """Return all alarms of all versions, also acknowledged ones, in the order in which they were raised.

        Returns
        -------
        tuple of Alarm
        """
        with self._stored.read() as connection:
            return read_alarms(connection, self._stored.id)

    def models(self) -> list[str]:
        """Return the names of all models in the store.

        Returns
        -------
        list of str
        """
        return self.store.models()

    def versions(self) -> list[str]:
        """Return the names of the versions of the model, the latest last.

        Returns
        -------
        list of str
        """
        with self._stored.read() as connection:
            return [version.name for version in self._stored.versions(connection)]

    def delete(self, model: str) -> None:
        """Delete a model of the store with all its data.

        Parameters
        ----------
        model : str
            Name of a model of the store.
        """
        self.store.delete(model)

    def forget(self, before: Any) -> int:
        """Merge the tables of closed windows that end at `before` or earlier into one per group; return their number.

        Predictions of that time and their ids are deleted, and the ids of batches that arrived before: such a batch
        would be stored again. Sums per window, evidence and alarms do not change, but `evaluate` cannot separate these
        windows.

        Parameters
        ----------
        before : time
            End of the last window to merge.

        Returns
        -------
        int
            Number of tables that were merged.
        """
        end = read_time(before, "before")
        with self._write() as recorder:
            return forget_tables(recorder, end)

    def compact(self, resolution: float) -> tuple[int, int]:
        """Round the scores of closed windows to multiples of `resolution`; evidence and alarms do not change.

        Returns the number of distinct scores in all tables, before and after.

        Parameters
        ----------
        resolution : float
            Step of the grid, such as ``2**-20``.

        Returns
        -------
        tuple of two ints
            Number of distinct scores in all tables, before and after.
        """
        check_resolution(resolution)
        with self._write() as recorder:
            return round_tables(recorder, resolution)

    def export(self, folder: str | PathLike[str]) -> list[Path]:
        """Write settings (JSON), tables, history and alarms (Parquet) to a new or empty folder; return the paths.

        Parameters
        ----------
        folder : path
            A new or empty folder.

        Returns
        -------
        list of Path
            The files that were written.
        """
        target = check_folder(folder)
        with self._stored.read() as connection:
            return write_files(connection, self._stored, target)

    def __repr__(self) -> str:
        return f"Monitor(model={self.model!r}, window={self.settings.window!r}, alpha={self.settings.alpha:g})"
