"""Log records have fields, which formatters for JSON and structlog show."""

from __future__ import annotations

import asyncio
import inspect
import io
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog
from pythonjsonlogger.json import JsonFormatter

import kafkaio
from kafkaio._runtime.log import LogObserver
from kafkaio._runtime.observer import AcknowledgedPart, AcquiredPart
from kafkaio.errors import (
    AcknowledgeFailed,
    BrokerNotAvailable,
    LockLost,
    RequestTimeout,
)
from kafkaio.testing import Broker
from kafkaio.types import OffsetAndMetadata, TopicPartition
from tests.support.patience import HANGS

ONE = TopicPartition("orders", 3)
SECRET = "hunter2"
#: A value for each parameter of an event, by its name.
VALUES: dict[str, Any] = {
    "acquired": None,
    "api": "Fetch",
    "assigned": [ONE],
    "attempt": 1,
    "brokers": 3,
    "cause": RequestTimeout("late"),
    "connection_class": "fetch",
    "count": 2,
    "delay": 0.1,
    "delivery_count": 1,
    "error": RequestTimeout("late"),
    "first_offset": 5,
    "group": "billing",
    "host": "kafka",
    "is_renewal": False,
    "kind": "producer",
    "lag": {ONE: 5},
    "last_offset": 6,
    "lifetime": 0.0,
    "lost": [],
    "mechanism": "PLAIN",
    "name": "me",
    "node_id": 2,
    "offset": 5,
    "offsets": {ONE: OffsetAndMetadata(5)},
    "outcome": "released",
    "partition": ONE,
    "partitions": [ONE],
    "port": 9092,
    "protocol": "consumer",
    "query": "q",
    "reasons": {ONE: "no leader"},
    "records": 7,
    "revoked": [ONE],
    "seconds": 9.0,
    "size": 100,
    "source": None,
    "stack": "",
    "state": "STABLE",
    "topic": "orders",
    "topics": 2,
    "version": 12,
    "what": "look-up",
}
EVENTS = [
    name
    for name, method in inspect.getmembers(LogObserver, inspect.isfunction)
    if not name.startswith("_")
]


@pytest.fixture
def records() -> Iterator[list[logging.LogRecord]]:
    found: list[logging.LogRecord] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record)

    handler, logger = Keep(), logging.getLogger("kafkaio")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield found
    logger.removeHandler(handler)
    logger.setLevel(before)


def report(observer: LogObserver, event: str) -> None:
    """Call a method of the observer with a value for each parameter."""
    method: Callable[..., None] = getattr(observer, event)
    values = dict(VALUES)
    if event == "acknowledgement_failed":
        values["error"] = AcknowledgeFailed(
            "no", topic_partition=ONE, first_offset=5, last_offset=6
        )
    if event == "lock_lost":
        values["error"] = LockLost(
            "no", topic_partition=ONE, first_offset=5, last_offset=6
        )
    if event in {"records_acquired", "records_acknowledged"}:
        part: Any = AcquiredPart if event == "records_acquired" else AcknowledgedPart
        values["parts"] = {ONE: part(*range(len(part._fields)))}
    names = inspect.signature(method).parameters
    method(**{name: values[name] for name in names})


@pytest.mark.parametrize("event", EVENTS)
def test_each_record_has_event_and_client_id(
    event: str, records: list[logging.LogRecord]
) -> None:
    report(LogObserver("shop-1"), event)
    assert records
    for record in records:
        fields = {k: v for k, v in vars(record).items() if k.startswith("kafka_")}
        assert fields["kafka_client_id"] == "shop-1"
        expected = {event, "assignment_changed"} if event == "rebalance" else {event}
        assert fields["kafka_event"] in expected
        assert record.getMessage().startswith("[shop-1] ")
        assert record.funcName not in {"_log", "_log_limited"}
        json.dumps(fields)  # text, numbers and lists alone
        names = inspect.signature(getattr(LogObserver, event)).parameters
        if "partition" in names:
            assert fields["kafka_topic"] == "orders"
            assert fields["kafka_partition"] == 3
        if "group" in names:
            assert fields["kafka_group"] == "billing"
        if "node_id" in names:
            assert fields["kafka_node"] == 2
        if names.keys() & {"error", "cause"} and event != "group_protocol":
            assert "kafka_error" in fields


def test_an_error_of_other_code_is_a_class_and_nothing_of_its_text(
    records: list[logging.LogRecord],
) -> None:
    LogObserver("me").delivery_lost(ONE, ValueError(SECRET), 1)
    (record,) = records
    assert vars(record)["kafka_error"] == "ValueError"
    assert SECRET not in str(vars(record))


def test_lists_of_partitions_are_bounded(records: list[logging.LogRecord]) -> None:
    many = [TopicPartition("t", n) for n in range(1000)]
    LogObserver("me").assignment_changed(many, [])
    fields = vars(records[0])
    assert fields["kafka_partition_count"] == 1000
    assert fields["kafka_partitions"] == [f"t-{n}" for n in range(10)]


def test_what_was_left_out_is_counted(records: list[logging.LogRecord]) -> None:
    at = 0.0
    observer = LogObserver("me", clock=lambda: at)
    for _ in range(4):
        observer.connection_lost(1, "fetch", BrokerNotAvailable("x"))
    at = 31.0
    observer.connection_lost(1, "fetch", BrokerNotAvailable("x"))
    assert [vars(r).get("kafka_left_out") for r in records] == [None, 3]


def written(handler: logging.Handler, work: Callable[[], None]) -> list[dict[str, Any]]:
    stream = io.StringIO()
    assert isinstance(handler, logging.StreamHandler)
    handler.setStream(stream)
    logger = logging.getLogger("kafkaio")
    logger.addHandler(handler)
    try:
        work()
    finally:
        logger.removeHandler(handler)
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def one_warning() -> None:
    LogObserver("shop-1").commit_failed("billing", RequestTimeout("late"))


def test_python_json_logger_shows_them() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter("{levelname} {name} {message}", style="{"))
    assert written(handler, one_warning) == [
        {
            "levelname": "WARNING",
            "name": "kafkaio.consumer",
            "message": "[shop-1] a commit of group 'billing' failed: late",
            "kafka_event": "commit_failed",
            "kafka_client_id": "shop-1",
            "kafka_group": "billing",
            "kafka_error": "RequestTimeout",
        }
    ]


def test_structlog_shows_them_beside_its_own_event() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[
                structlog.stdlib.add_log_level,
                structlog.stdlib.ExtraAdder(),
            ],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    assert written(handler, one_warning) == [
        {
            "level": "warning",
            "event": "[shop-1] a commit of group 'billing' failed: late",
            "kafka_event": "commit_failed",
            "kafka_client_id": "shop-1",
            "kafka_group": "billing",
            "kafka_error": "RequestTimeout",
        }
    ]


async def test_a_consumer_writes_them(records: list[logging.LogRecord]) -> None:
    async with (
        asyncio.timeout(HANGS),
        Broker(topics={"orders": 2}) as broker,
        kafkaio.Consumer(
            broker.bootstrap_servers,
            topics="orders",
            group_id="billing",
            client_id="shop-1",
        ),
    ):
        pass
    events = {vars(record).get("kafka_event") for record in records}
    assert {"started", "closed", "assignment_changed", "request_sent"} <= events
    (change,) = [
        record
        for record in records
        if vars(record).get("kafka_event") == "assignment_changed"
        and vars(record)["kafka_change"] == "assigned"
    ]
    assert vars(change)["kafka_partitions"] == ["orders-0", "orders-1"]
