"""Metrics for Prometheus: requests and queues of this process, and the state of each model in the store."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from calibrant.monitor.evidence import log_threshold
from calibrant.monitor.model_queries import alarms_by_model, latest_versions, predictions_by_model
from calibrant.monitor.model_settings import ModelSettings
from calibrant.monitor.schema import check_sums
from calibrant.monitor.service.access_tokens import Access

if TYPE_CHECKING:
    from calibrant.monitor.service.running_service import Service

METRICS_TYPE = CONTENT_TYPE_LATEST
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_MICROSECONDS = 1e6


class RequestMetrics:
    """Counters of requests and of refused tokens, by operation, never by model or token."""

    def __init__(self) -> None:
        self.registry: CollectorRegistry = CollectorRegistry()
        self.requests: Counter = Counter(
            "calibrant_http_requests", "Answered requests", ("operation", "status"), registry=self.registry
        )
        self.seconds: Histogram = Histogram(
            "calibrant_http_request_seconds",
            "Time to answer a request",
            ("operation",),
            registry=self.registry,
            buckets=_BUCKETS,
        )
        self.rows: Counter = Counter("calibrant_stored_rows", "Rows stored by this process", registry=self.registry)
        self.store_errors: Counter = Counter(
            "calibrant_store_errors", "Requests that failed because of the store", registry=self.registry
        )
        self.deliveries: Counter = Counter(
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


# Name, help and the function of a row of `latest_versions`.
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
        latest = [check_sums(row, "streams") for row in latest_versions(connection) if access.sees(row.model)]
        ids = [row.model_id for row in latest]
        alarms, predictions = alarms_by_model(connection, ids), predictions_by_model(connection, ids)
    families = []
    for name, text, value in _OF_MODELS:
        family = GaugeMetricFamily(name, text, labels=["model"])
        for row in latest:
            number = value(row)
            if number is not None:
                family.add_metric([row.model], number)
        families.append(family)
    states = GaugeMetricFamily("calibrant_alarms", "Alarms of all versions, by state", labels=["model", "state"])
    unlabelled = GaugeMetricFamily("calibrant_unlabelled", "Predictions without an outcome", labels=["model"])
    stored = GaugeMetricFamily("calibrant_predictions", "Predictions that are stored", labels=["model"])
    for row in latest:
        acknowledged = [alarm.acknowledged is not None for alarm in alarms.get(row.model_id, [])]
        states.add_metric([row.model, "open"], acknowledged.count(False))
        states.add_metric([row.model, "acknowledged"], acknowledged.count(True))
        if row.model_id in predictions:
            n_unlabelled, n_predictions = predictions[row.model_id]
            unlabelled.add_metric([row.model], n_unlabelled)
            stored.add_metric([row.model], n_predictions)
    return [*families, states, unlabelled, stored]


def _outbox(service: "Service") -> list[Any]:
    """Return the number of alarms that were not sent yet, and the age of the oldest, per channel."""
    waiting = GaugeMetricFamily("calibrant_outbox_waiting", "Alarms that were not sent yet", labels=["channel"])
    oldest = GaugeMetricFamily("calibrant_outbox_oldest_seconds", "Age of the oldest of them", labels=["channel"])
    for channel in service.settings.channels:
        count, age = service.outbox.waiting(channel)
        waiting.add_metric([channel.name], count)
        oldest.add_metric([channel.name], age)
    return [waiting, oldest]
