"""The table of events and metrics: whole, and true to the events and the exporters."""

from __future__ import annotations

from inspect import signature
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from kafkaio._runtime.observer import AcknowledgedBatch, FetchedPart, Observer, observes
from kafkaio.metrics._semconv import METRICS
from kafkaio.metrics._table import EVENTS as ROWS, PARTS, WITHOUT_METRIC, topic_of
from kafkaio.metrics.opentelemetry import OpenTelemetryObserver
from kafkaio.metrics.prometheus import COUNTERS, HISTOGRAMS, PrometheusObserver
from kafkaio.types import TopicPartition
from tests.unit.metrics.test_prometheus import BATCH, EVENTS, KIND, ONE, values


def test_every_event_has_a_row_or_is_named_as_one_without() -> None:
    events = {name for name in vars(Observer) if not name.startswith("_")}
    assert not ROWS.keys() & WITHOUT_METRIC
    rows = (ROWS.keys() | WITHOUT_METRIC) - PARTS
    assert rows == events - {"started", "closed"}


@pytest.mark.parametrize("event", sorted(ROWS.keys() - PARTS))
def test_a_row_reads_the_arguments_of_its_event(event: str) -> None:
    row = ROWS[event]
    expected = list(signature(getattr(Observer, event)).parameters.values())[1:]
    found = signature(row.read).parameters.values()
    assert [(it.name, it.kind) for it in found] == [
        (it.name, it.kind) for it in expected
    ]
    more = {"is_renewal": True} if event in KIND else {}
    labels, amounts = row.read(*EVENTS[event], **more)
    assert (len(labels), len(amounts)) == (len(row.labels), len(row.prometheus))
    assert len(row.opentelemetry) in {0, len(amounts)}
    hash(labels)


def test_every_metric_is_in_the_table() -> None:
    prometheus = {name for row in ROWS.values() for name in row.prometheus}
    assert prometheus == {*COUNTERS, *HISTOGRAMS}
    opentelemetry = {name for row in ROWS.values() for name in row.opentelemetry}
    assert opentelemetry - {""} == METRICS.keys() - {"process"}  # of a block


def test_an_exporter_observes_what_it_has_a_metric_for() -> None:
    for kind, exporter in (
        ("prometheus", PrometheusObserver),
        ("opentelemetry", OpenTelemetryObserver),
    ):
        observed = {name for name in EVENTS if name in vars(exporter)}
        assert observed == {
            name
            for name, row in ROWS.items()
            if getattr(row, kind) and name not in PARTS
        }
    assert not observes(OpenTelemetryObserver(), "request_sent")


def test_a_subclass_can_extend_an_event() -> None:
    seen: list[Any] = []

    class Mine(PrometheusObserver):
        def batch_acknowledged(self, batch: AcknowledgedBatch) -> None:
            seen.append(batch)
            super().batch_acknowledged(batch=batch)

    registry = CollectorRegistry()
    Mine(registry, client_id="c").batch_acknowledged(BATCH)
    name = "kafkaio_produced_records_total{client_id=c,topic=one}"
    assert (seen, values(registry)[name]) == ([BATCH], 10)


def test_the_topic_of_a_fetch_is_that_of_all_its_partitions() -> None:
    part, two = FetchedPart(1, 10), TopicPartition("two", 0)
    assert topic_of({}) is None
    assert topic_of({ONE: part, TopicPartition("one", 4): part}) == "one"
    assert topic_of({ONE: part, two: part}) is None
