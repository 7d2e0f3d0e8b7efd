"""The figures of streaming queries: by hand, and through ready observers."""

from __future__ import annotations

import json
import logging
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import CollectorRegistry

from kafkaio.metrics.opentelemetry import OpenTelemetryObserver
from kafkaio.metrics.prometheus import PrometheusObserver
from kafkaio.spark import LagListener, source_metrics
from kafkaio.spark._observe import ObservedQuery, offsets_behind
from kafkaio.types import TopicPartition

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def progress(
    *behind: int, name: str | None = "q", run: str = "run-1", topic: str = "a"
) -> Any:
    """Progress as Spark's listeners have it, so many offsets behind by partition."""
    end = {str(n): 100 for n in range(len(behind))}
    latest = {str(n): 100 + each for n, each in enumerate(behind)}
    source = SimpleNamespace(
        endOffset=json.dumps({topic: end}), latestOffset=json.dumps({topic: latest})
    )
    other = SimpleNamespace(endOffset='{"logOffset":3}', latestOffset=None)
    return SimpleNamespace(
        name=name, id="id-1", runId=run, sources=[other, source] if behind else [other]
    )


def progressed(listener: LagListener, *behind: int, **named: Any) -> None:
    event = SimpleNamespace(progress=progress(*behind, **named))
    listener.onQueryProgress(event)


def terminated(listener: LagListener, run: str = "run-1") -> None:
    listener.onQueryTerminated(SimpleNamespace(runId=run))


class Recorder:
    def __init__(self) -> None:
        self.seen: list[tuple[Any, ...]] = []

    def started(self, kind: str, name: str, source: ObservedQuery) -> None:
        self.seen.append(("started", kind, name, dict(source.statistics().lag)))

    def closed(self, kind: str, name: str, source: ObservedQuery) -> None:
        self.seen.append(("closed", kind, name, dict(source.statistics().metrics)))

    def query_lag(self, query: str, lag: Any) -> None:
        self.seen.append(("lag", query, lag))


def test_the_metrics_have_the_names_of_the_connectors() -> None:
    assert source_metrics(progress(4, 0, 2)) == {
        "minOffsetsBehindLatest": 0,
        "maxOffsetsBehindLatest": 4,
        "avgOffsetsBehindLatest": 2,
    }
    source = {"endOffset": {"a": {"0": 5}}, "latestOffset": {"a": {"0": 8}}}
    found = source_metrics({"sources": [source, {"endOffset": None}]})
    assert set(found.values()) == {3}
    assert (
        source_metrics(None) == source_metrics(progress()) == offsets_behind({}) == {}
    )


def test_a_query_is_reported_from_its_first_micro_batch_to_its_end() -> None:
    recorder = Recorder()
    listener = LagListener(recorder)  # type: ignore[arg-type]
    progressed(listener)  # sources of other kinds alone
    terminated(listener)
    assert recorder.seen == []
    progressed(listener, 6, 2)
    progressed(listener, 1, 0)
    progressed(listener, 9, name=None, run="run-2")
    terminated(listener)
    terminated(listener)
    assert recorder.seen == [
        ("started", "query", "q", {A0: 6, A1: 2}),
        ("lag", "q", {A0: 6, A1: 2}),
        ("lag", "q", {A0: 1, A1: 0}),
        ("started", "query", "id-1", {A0: 9}),
        ("lag", "id-1", {A0: 9}),
        ("closed", "query", "q", offsets_behind({A0: 1, A1: 0})),
    ]


def test_a_function_is_an_observer() -> None:
    seen = []
    listener = LagListener(lambda query, lag: seen.append((query, dict(lag))))
    progressed(listener, 6)
    terminated(listener)
    assert seen == [("q", {A0: 6})]


def test_an_observer_that_raises_does_no_harm(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Recorder):
        def started(self, *_: object) -> None:
            raise RuntimeError("boom")

    recorder = Broken()
    with caplog.at_level(logging.ERROR, "kafkaio.spark"):
        progressed(LagListener(recorder), 6)  # type: ignore[arg-type]
    assert "observer failed in started" in caplog.text
    assert recorder.seen == [("lag", "q", {A0: 6})]


def test_prometheus_has_the_queries_that_run() -> None:
    registry = CollectorRegistry()
    listener = LagListener(PrometheusObserver(registry, client_id="c"))

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(
            f"kafkaio_query_{name}", {"client_id": "c", "query": "q", **labels}
        )

    assert value("lag", topic="a") is None
    progressed(listener, 6, 2)
    assert value("lag", topic="a") == 8
    names = ("offsets_behind_min", "offsets_behind_max", "offsets_behind_avg")
    assert [value(name) for name in names] == [2, 6, 4]
    progressed(listener, 0, 1)
    assert [value(name) for name in names] == [0, 1, 0.5]
    terminated(listener)
    assert value("lag", topic="a") is None


def test_opentelemetry_has_them_too() -> None:
    reader = InMemoryMetricReader()
    observer = OpenTelemetryObserver(meter_provider=MeterProvider([reader]))
    listener = LagListener(observer)
    progressed(listener, 6, 2)
    data: Any = reader.get_metrics_data()
    found = {
        metric.name: [(p.value, dict(p.attributes)) for p in metric.data.data_points]
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
    }
    assert found["kafkaio.query.lag"] == [
        (8, {"kafkaio.query": "q", "messaging.destination.name": "a"})
    ]
    assert found["kafkaio.query.behind.max"] == [(6, {"kafkaio.query": "q"})]
