"""Every wait of the data source ends in time, whatever the servers do.

Each of them is tried against a port where nobody listens, and against a host that takes
connections and says nothing; and, where a broker is needed to get that far, against one
that answers some requests late or never. `docs/guide/spark.md` lists the limits.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import TypeAlias

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StructField, StructType

from kafkaio import KafkaError, TopicPartition
from kafkaio.spark import _runtime as runtime, cleanup
from kafkaio.spark._errors import DataSourceError
from kafkaio.spark._lookup import PlanLookup
from kafkaio.spark._options import ReadOptions, WriteOptions
from kafkaio.spark._reader import TaskPartition, read_task
from kafkaio.spark._schema import ReadColumn
from kafkaio.spark._writer import KafkaStreamWriter, KafkaWriter
from kafkaio.testing._broker import faults
from kafkaio.types import OffsetRange
from tests.unit.spark.conftest import Serving

T0 = TopicPartition("t", 0)
LIMIT_MS = 150
#: Much less than the default of any limit, much more than a busy machine needs.
AT_MOST = 8.0
ROWS = [pa.RecordBatch.from_pydict({"value": [b"a"]})]
SCHEMA = StructType([StructField("value", BinaryType())])
ONCE = {"exactlyOnce": "true", "txnAppId": "app", "txnVersion": "1"}
Servers: TypeAlias = dict[str, str]


@pytest.fixture(params=["nobody listens", "nobody answers"])
def servers(request: pytest.FixtureRequest) -> Iterator[Servers]:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        if request.param == "nobody answers":
            one.listen()
        yield {"kafka.bootstrap.servers": f"127.0.0.1:{one.getsockname()[1]}"}
        runtime._home().end()


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a task of Spark, in its process."""
    context = SimpleNamespace(
        partitionId=lambda: 0,
        attemptNumber=lambda: 0,
        getLocalProperty={"sql.streaming.queryId": "q"}.get,
    )
    monkeypatch.setattr("pyspark.TaskContext.get", lambda: context)
    monkeypatch.setattr(runtime, "freeze", lambda: None)


def fails_in_time(
    act: Callable[[], object], kind: type[KafkaError] = DataSourceError
) -> str:
    began = time.monotonic()
    with pytest.raises(kind) as caught:
        act()
    assert time.monotonic() - began < AT_MOST
    return str(caught.value)


def limited(*names: str) -> dict[str, str]:
    return {name: str(LIMIT_MS) for name in names}


# ---- planning, and what the driver does ----------------------------------------------

REQUEST = limited("kafka.request.timeout.ms")
CALL = limited("kafka.default.api.timeout.ms")
PLANNING: dict[str, Callable[[PlanLookup], object]] = {
    "batch": lambda lookup: lookup.start_and_end(),
    "start": lambda lookup: lookup.start(),
    "latest": lambda lookup: lookup.latest({}, {}),
    "ends": lambda lookup: lookup.ends([T0], {}),
    "commitGroupId": lambda lookup: lookup.commit("g", {T0: 1}),
}


def reading(servers: Servers, limits: dict[str, str]) -> ReadOptions:
    return ReadOptions.of({**servers, "subscribe": "t", **limits}, is_stream=False)


@pytest.mark.parametrize("limits", [REQUEST, CALL], ids=["request", "call"])
@pytest.mark.parametrize("what", PLANNING)
def test_planning(servers: Servers, what: str, limits: dict[str, str]) -> None:
    lookup = PlanLookup(reading(servers, limits))
    text = fails_in_time(lambda: PLANNING[what](lookup))
    assert "BrokerNotAvailable" in text
    assert servers["kafka.bootstrap.servers"] in text


def test_planning_that_is_repeated(servers: Servers) -> None:
    more = {"fetchOffset.numRetries": "2", "fetchOffset.retryIntervalMs": "10"}
    began = time.monotonic()
    fails_in_time(PlanLookup(reading(servers, REQUEST | more)).start)
    assert time.monotonic() - began > 3 * LIMIT_MS / 1000


def test_the_limits_of_planning() -> None:
    both = limited("kafka.default.api.timeout.ms") | {"kafka.request.timeout.ms": "9"}
    servers = {"kafka.bootstrap.servers": "a:1"}
    for limits, limit in ((REQUEST, LIMIT_MS), (CALL, LIMIT_MS), (both, LIMIT_MS)):
        config = reading(servers, limits).client_config(in_task=False)
        assert config.default_api_timeout_ms == limit


@pytest.mark.parametrize("is_once", [False, True])
def test_a_failed_query_is_not_held_up(
    servers: Servers,
    is_once: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The driver cannot end what tasks left open; the query tells of its failure."""
    options = {**servers, "topic": "t", **(ONCE if is_once else {})}
    writer = writer_of(options | limited("kafka.max.block.ms"))
    began = time.monotonic()
    with caplog.at_level(logging.WARNING, "kafkaio.spark"):
        writer.abort([None])
    assert time.monotonic() - began < AT_MOST
    assert is_once == ("kafkaio-app-0 were not ended" in caplog.text)


def test_a_failed_query_waits_for_ten_seconds_at_most() -> None:
    options = WriteOptions.of(
        {"kafka.bootstrap.servers": "a:1", "topic": "t"}, is_stream=False
    )
    assert options.client_config(most_ms=10_000).default_api_timeout_ms == 10_000
    assert options.client_config().default_api_timeout_ms == 60_000


def test_cleaning_up(servers: Servers) -> None:
    options = {**servers, **limited("kafka.max.block.ms")}
    fails_in_time(lambda: cleanup("app", options), KafkaError)


# ---- tasks ---------------------------------------------------------------------------

POLL = limited("kafkaConsumer.pollTimeoutMs")


@pytest.mark.parametrize("lenient", [False, True], ids=["strict", "lenient"])
@pytest.mark.parametrize(
    "limits", [REQUEST, CALL, POLL], ids=["request", "call", "poll"]
)
def test_a_task_that_reads(
    servers: Servers,
    task: None,
    limits: dict[str, str],
    lenient: bool,
) -> None:
    del task
    more = {"failOnDataLoss": "false"} if lenient else {}
    options = reading(servers, limits | more)
    columns = [ReadColumn("value", "value", "binary")]
    ranges = (OffsetRange(T0, 0, 5),)
    text = fails_in_time(
        lambda: list(read_task(options, columns, TaskPartition(ranges, {})))
    )
    assert "task 0" in text
    assert "BrokerNotAvailable" in text


def writer_of(options: dict[str, str]) -> KafkaWriter:
    return KafkaWriter.of(options, SCHEMA, overwrite=False)


BLOCK = limited("kafka.max.block.ms")
ACKNOWLEDGED = {
    **limited("kafka.delivery.timeout.ms", "kafka.request.timeout.ms"),
    "kafka.linger.ms": "0",
}


@pytest.mark.parametrize("limits", [BLOCK, CALL], ids=["block", "call"])
@pytest.mark.parametrize("is_once", [False, True], ids=["least", "exactly"])
def test_a_task_that_writes(
    servers: Servers,
    task: None,
    limits: dict[str, str],
    is_once: bool,
) -> None:
    del task
    options = {**servers, "topic": "t", **limits, **(ONCE if is_once else {})}
    text = fails_in_time(lambda: writer_of(options).write(iter(ROWS)))
    assert "task 0" in text
    assert "BrokerNotAvailable" in text


def test_a_task_that_writes_a_micro_batch(servers: Servers, task: None) -> None:
    del task
    options = {**servers, "topic": "t", **BLOCK}
    writer = KafkaStreamWriter.of(options, SCHEMA, overwrite=False)
    fails_in_time(lambda: writer.write(iter(ROWS)))


def test_which_limit_a_write_has() -> None:
    """Java's producer knows no default.api.timeout.ms: its own option wins."""
    given: dict[str, str] = {"kafka.bootstrap.servers": "a:1", "topic": "t"}
    for limits, limit in (
        ({}, 60_000),
        (limited("kafka.max.block.ms"), LIMIT_MS),
        ({"kafka.max.block.ms": "120000"}, 120_000),
        (limited("kafka.default.api.timeout.ms"), LIMIT_MS),
        (
            {"kafka.max.block.ms": "700"} | limited("kafka.default.api.timeout.ms"),
            700,
        ),
        (limited("kafka.request.timeout.ms"), 60_000),
        ({"kafka.max.block.ms": "0"}, 1),
    ):
        options = WriteOptions.of(given | limits, is_stream=True)
        assert options.producer_config().default_api_timeout_ms == limit
        assert options.producer_config("id").default_api_timeout_ms == limit
        assert options.client_config().default_api_timeout_ms == limit


# ---- brokers that answer some requests -----------------------------------------------


def test_all_that_planning_asks_has_one_limit(
    serving: Serving,
) -> None:
    """Each answer comes in time, and all of them together do not."""
    late = serving(ListOffsets=faults.delay(0.7))
    options = reading(late, {"kafka.default.api.timeout.ms": "1000"})
    text = fails_in_time(PlanLookup(options).start_and_end)
    assert "RequestTimeout" in text


@pytest.mark.parametrize(
    "api", ["ListOffsets", "Metadata", "OffsetCommit", "FindCoordinator"]
)
def test_a_broker_that_never_answers_planning(serving: Serving, api: str) -> None:
    silent = serving(**{api: faults.drop()})
    lookup = PlanLookup(reading(silent, CALL))
    act = "batch" if api in {"ListOffsets", "Metadata"} else "commitGroupId"
    fails_in_time(lambda: PLANNING[act](lookup))


def test_a_leader_that_never_answers_a_task(serving: Serving, task: None) -> None:
    del task
    options = reading(serving(Fetch=faults.drop()), POLL)
    columns = [ReadColumn("value", "value", "binary")]
    fails_in_time(
        lambda: list(
            read_task(options, columns, TaskPartition((OffsetRange(T0, 0, 5),), {}))
        )
    )


@pytest.mark.parametrize(
    ("store", "api"),
    [
        *(("topic", api) for api in ("CreateTopics", "InitProducerId", "Produce")),
        *(("topic", api) for api in ("FindCoordinator", "Fetch")),
        *(("groups", api) for api in ("InitProducerId", "OffsetFetch")),
        *(("groups", api) for api in ("TxnOffsetCommit", "EndTxn", "FindCoordinator")),
    ],
)
def test_a_broker_that_never_answers_a_task_that_writes_once(
    serving: Serving, task: None, store: str, api: str
) -> None:
    del task
    more = {"markerStore": store, **BLOCK, **ACKNOWLEDGED}
    options = {**serving(**{api: faults.drop()}), "topic": "t", **ONCE, **more}

    def write() -> None:
        writer = writer_of(options)
        writer.commit([writer.write(iter(ROWS))])

    fails_in_time(write)


@pytest.mark.parametrize("store", ["topic", "groups"])
@pytest.mark.parametrize(
    "api", ["EndTxn", "Produce", "InitProducerId", "FindCoordinator"]
)
def test_a_broker_that_no_longer_answers_the_driver(
    serving: Serving, task: None, store: str, api: str
) -> None:
    """The end of a batch, when its tasks have written: it ends, well or badly."""
    del task
    options = {**serving(), "topic": "t", **ONCE, "markerStore": store}
    done = writer_of(options).write(iter(ROWS))
    runtime._home().end()
    serving.fail(**{api: faults.drop()})
    began = time.monotonic()
    with contextlib.suppress(DataSourceError):
        writer_of(options | BLOCK | ACKNOWLEDGED).commit([done])
    assert time.monotonic() - began < AT_MOST


def test_a_leader_that_never_acknowledges(serving: Serving, task: None) -> None:
    del task
    options = {
        **serving(Produce=faults.drop()),
        "topic": "t",
        **ACKNOWLEDGED,
    }
    fails_in_time(lambda: writer_of(options).write(iter(ROWS)))


def test_metadata_that_never_comes(serving: Serving, task: None) -> None:
    """A topic that cannot be made is waited for, for ``kafka.max.block.ms``."""
    del task
    options = {**serving(), "topic": "not-there", **BLOCK}
    options["kafka.allow.auto.create.topics"] = "false"
    fails_in_time(lambda: writer_of(options).write(iter(ROWS)))
