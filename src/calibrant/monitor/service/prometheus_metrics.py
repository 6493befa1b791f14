"""Metrics for Prometheus: requests and queues of this process, and the state of each model in the store."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from calibrant.monitor import schema
from calibrant.monitor.evidence import WHOLE, log_threshold
from calibrant.monitor.model_settings import ModelSettings
from calibrant.monitor.schema import check_sums
from calibrant.monitor.service.access_tokens import Access

if TYPE_CHECKING:
    from calibrant.monitor.service.running_service import Service

__all__ = ["METRICS_TYPE", "RequestMetrics", "scrape"]

METRICS_TYPE = CONTENT_TYPE_LATEST
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_MICROSECONDS = 1e6


class RequestMetrics:
    """Counters of requests and of refused tokens, by operation, never by model or token."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "calibrant_http_requests", "Answered requests", ("operation", "status"), registry=self.registry
        )
        self.seconds = Histogram(
            "calibrant_http_request_seconds",
            "Time to answer a request",
            ("operation",),
            registry=self.registry,
            buckets=_BUCKETS,
        )
        self.rows = Counter("calibrant_stored_rows", "Rows stored by this process", registry=self.registry)
        self.store_errors = Counter(
            "calibrant_store_errors", "Requests that failed because of the store", registry=self.registry
        )
        self.deliveries = Counter(
            "calibrant_deliveries", "Attempts to send an alarm", ("channel", "result"), registry=self.registry
        )

    def count(self, operation: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        self.requests.labels(operation, str(status)).inc()
        self.seconds.labels(operation).observe(seconds)


def scrape(service: "Service", access: Access) -> bytes:
    """Return all metrics as text, with the models that a request may know of."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collected([*_process(service), *_models(service, access), *_outbox(service)]))
    return bytes(generate_latest(service.metrics.registry) + generate_latest(registry))


class _Collected:
    """Families of metrics that were read before."""

    def __init__(self, families: list[Any]) -> None:
        self.families = families

    def collect(self) -> Iterable[Any]:
        return self.families


def _process(service: "Service") -> list[Any]:
    waiting = GaugeMetricFamily("calibrant_queue_length", "Requests that wait or run, by kind", labels=["queue"])
    refused = GaugeMetricFamily("calibrant_queue_refused", "Requests refused since the start", labels=["queue"])
    for queue in service.queues:
        waiting.add_metric([queue.name], queue.n_inside)
        refused.add_metric([queue.name], queue.n_refused)
    streams = GaugeMetricFamily("calibrant_event_streams", "Open streams of events", value=service.events.n_streams)
    return [waiting, refused, streams]


def _threshold_of(row: Any) -> float:
    return log_threshold(ModelSettings.from_json(row.settings).alpha, row.ordinal or 1)


# Name, help and the function of a row of `_latest`.
_OF_MODELS: tuple[tuple[str, str, Any], ...] = (
    ("calibrant_rows", "Rows in closed windows of the latest version", lambda row: row.n or 0),
    ("calibrant_events", "Events in closed windows of the latest version", lambda row: row.k or 0),
    ("calibrant_predicted_rate", "Mean score in closed windows", lambda row: row.score_sum / row.n if row.n else None),
    ("calibrant_observed_rate", "Event rate in closed windows", lambda row: row.k / row.n if row.n else None),
    ("calibrant_log_e_value", "Log e-value of all rows", lambda row: row.log_e or 0.0),
    ("calibrant_log_e_threshold", "Log e-value that raises an alarm", _threshold_of),
    (
        "calibrant_newest_time_seconds",
        "Newest time of a row, seconds since 1970",
        lambda row: None if row.newest is None else row.newest / _MICROSECONDS,
    ),
    ("calibrant_duplicate_rows", "Rows left out because their id was known", lambda row: row.n_duplicates),
    ("calibrant_unknown_rows", "Outcomes left out because no prediction has their id", lambda row: row.n_unknown),
)


def _models(service: "Service", access: Access) -> list[Any]:
    with service.store.read() as connection:
        latest = [check_sums(row, "streams") for row in connection.execute(_latest()) if access.sees(row.name)]
        alarms = connection.execute(_alarm_counts()).all()
        pending = connection.execute(_pending_counts()).all()
    families = []
    for name, text, value in _OF_MODELS:
        family = GaugeMetricFamily(name, text, labels=["model"])
        for row in latest:
            found = value(row)
            if found is not None:
                family.add_metric([row.name], found)
        families.append(family)
    states = GaugeMetricFamily("calibrant_alarms", "Alarms of all versions, by state", labels=["model", "state"])
    counts = {(row.name, row.acknowledged): row.total for row in alarms}
    for row in latest:
        states.add_metric([row.name, "open"], counts.get((row.name, 0), 0))
        states.add_metric([row.name, "acknowledged"], counts.get((row.name, 1), 0))
    unlabelled = GaugeMetricFamily("calibrant_unlabelled", "Predictions without an outcome", labels=["model"])
    predictions = GaugeMetricFamily("calibrant_predictions", "Predictions that are stored", labels=["model"])
    for row in pending:
        if access.sees(row.name):
            unlabelled.add_metric([row.name], row.unlabelled)
            predictions.add_metric([row.name], row.total)
    return [*families, states, unlabelled, predictions]


def _latest() -> Any:
    """Return the query for each model with the sums and the evidence of its latest version."""
    models, versions, streams = schema.models, schema.versions, schema.streams
    newest = (
        sa.select(versions.c.model_id, sa.func.max(versions.c.ordinal).label("ordinal"))
        .group_by(versions.c.model_id)
        .subquery()
    )
    own = (versions.c.model_id == newest.c.model_id) & (versions.c.ordinal == newest.c.ordinal)
    whole = (streams.c.version_id == versions.c.id) & (streams.c.stream == WHOLE)
    columns = (streams.c[name] for name in ("n", "k", "score_sum", "log_e"))
    return (
        sa.select(models, versions.c.ordinal, versions.c.newest, *columns)
        .outerjoin(newest, newest.c.model_id == models.c.id)
        .outerjoin(versions, own)
        .outerjoin(streams, whole)
        .order_by(models.c.name)
    )


def _alarm_counts() -> Any:
    alarms, versions, models = schema.alarms, schema.versions, schema.models
    done = sa.case((alarms.c.acknowledged.is_(None), 0), else_=1).label("acknowledged")
    return (
        sa.select(models.c.name, done, sa.func.count().label("total"))
        .select_from(alarms)
        .join(versions, versions.c.id == alarms.c.version_id)
        .join(models, models.c.id == versions.c.model_id)
        .group_by(models.c.name, done)
    )


def _pending_counts() -> Any:
    pending, models = schema.pending, schema.models
    unlabelled = sa.func.sum(sa.case((pending.c.labelled, 0), else_=1)).label("unlabelled")
    return (
        sa.select(models.c.name, unlabelled, sa.func.count().label("total"))
        .select_from(pending)
        .join(models, models.c.id == pending.c.model_id)
        .group_by(models.c.name)
    )


def _outbox(service: "Service") -> list[Any]:
    """Return the number of alarms that were not sent yet, and the age of the oldest, per channel."""
    waiting = GaugeMetricFamily("calibrant_outbox_waiting", "Alarms that were not sent yet", labels=["channel"])
    oldest = GaugeMetricFamily("calibrant_outbox_oldest_seconds", "Age of the oldest of them", labels=["channel"])
    for channel in service.settings.channels:
        count, age = service.outbox.waiting(channel)
        waiting.add_metric([channel.name], count)
        oldest.add_metric([channel.name], age)
    return [waiting, oldest]
