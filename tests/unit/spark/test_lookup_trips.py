"""How many requests planning sends, which of them wait for others, and what may go."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from kafkaio import Admin, Producer
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.spark import _lookup as lookup, _runtime as runtime
from kafkaio.spark._errors import DataLost, DataSourceError
from kafkaio.spark._options import ReadOptions
from kafkaio.spark._schema import ReadColumn
from kafkaio.spark._stream import KafkaStreamReader
from kafkaio.testing import Broker, error

COLUMNS = [ReadColumn("value", "value", "string")]
#: What asks for the partitions and for both ends of their logs.
ONE_LOOK = ["LIST_OFFSETS", "LIST_OFFSETS", "METADATA"]
QUICK = {"fetchOffset.retryIntervalMs": "1"}


class Served:
    """A broker in a thread, with ten records in each of two partitions."""

    def __init__(self, broker: Broker, loop: asyncio.AbstractEventLoop) -> None:
        self.broker = broker
        self._loop = loop
        self._seen = 0

    def run(self, work: Coroutine[object, object, None]) -> None:
        """Run a coroutine beside the broker."""
        asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    def here(self, call: Callable[[], object]) -> None:
        """Call a function of the broker in its thread."""

        async def work() -> None:
            call()

        self.run(work())

    def reader(self, **options: str) -> KafkaStreamReader:
        given = {
            "kafka.bootstrap.servers": self.broker.bootstrap_servers,
            **({} if "subscribePattern" in options else {"subscribe": "t"}),
            "startingOffsets": "earliest",
            **QUICK,
            **options,
        }
        return KafkaStreamReader(ReadOptions.of(given, is_stream=True), COLUMNS)

    def requests(self) -> list[str]:
        """The requests since the last call, without those that open connections."""
        found = list(self.broker.requests)[self._seen :]
        self._seen += len(found)
        return [each.api.name for each in found if each.api.name != "API_VERSIONS"]


@pytest.fixture
def served() -> Iterator[Served]:
    loop, ended = asyncio.new_event_loop(), asyncio.Event()
    ready = threading.Event()
    found: list[Served] = []

    async def serve() -> None:
        async with Broker(topics={"t": 2}) as broker:
            async with Producer(broker.bootstrap_servers) as producer:
                for n in range(20):
                    await producer.send("t", b"%d" % n, partition=n % 2)
            found.append(Served(broker, loop))
            ready.set()
            await ended.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert ready.wait(30)
    yield found[0]
    runtime._home().end()
    loop.call_soon_threadsafe(ended.set)
    thread.join(30)
    loop.close()


def test_a_micro_batch_asks_once(served: Served) -> None:
    reader, limit = served.reader(), ReadMaxRows(4)
    start = reader.initialOffset()
    end = reader.latestOffset(start, limit)
    reader.partitions(start, end)
    served.requests()
    for _ in range(3):
        start, end = end, reader.latestOffset(end, limit)
        assert sorted(served.requests()) == ONE_LOOK
        # What was found a moment ago is not asked again.
        assert len(reader.partitions(start, end)) == 1
        assert served.requests() == []
    # A micro-batch that is repeated begins with the plan, in another process.
    assert len(served.reader().partitions(start, end)) == 1
    assert sorted(served.requests()) == ONE_LOOK


@pytest.mark.parametrize("is_repeated", [False, True])
def test_no_request_waits_for_another(
    served: Served, monkeypatch: pytest.MonkeyPatch, is_repeated: bool
) -> None:
    reader = served.reader()
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    asked: set[str] = set()
    whole = asyncio.Event()

    def together(name: str) -> None:
        """Make a function of the module wait until all of them have been called."""
        original = getattr(lookup._Asker, name)

        async def waits(*args: Any, **kwargs: Any) -> object:
            asked.add(f"{name} {args[2] if name == 'ends' else ''}".strip())
            if len(asked) == 3:
                whole.set()
            async with asyncio.timeout(30):
                await whole.wait()
            return await original(*args, **kwargs)

        monkeypatch.setattr(lookup._Asker, name, waits)

    together("topics")
    together("ends")
    if is_repeated:
        served.reader().partitions(start, end)
    else:
        reader.latestOffset(start, ReadAllAvailable())
    assert asked == {"topics", "ends earliest", "ends latest"}


def test_what_available_now_reads_later(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, limit = served.reader(), ReadMaxRows(4)
    reader.prepareForTriggerAvailableNow()
    start = reader.initialOffset()
    end = reader.latestOffset(start, limit)
    reader.partitions(start, end)
    later = time.monotonic() + 60
    clock = SimpleNamespace(monotonic=lambda: later)
    monkeypatch.setattr("kafkaio.spark._lookup.time", clock)
    served.requests()
    start, end = end, reader.latestOffset(end, limit)
    # The end was settled at first. Whether the records are still there was not.
    assert served.requests() == []
    reader.partitions(start, end)
    assert sorted(served.requests()) == ONE_LOOK


def test_what_was_found_a_while_ago_is_asked_again(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = served.reader()
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    later = time.monotonic() + 60
    clock = SimpleNamespace(monotonic=lambda: later)
    monkeypatch.setattr("kafkaio.spark._lookup.time", clock)
    served.requests()
    reader.partitions(start, end)
    assert sorted(served.requests()) == ONE_LOOK


def test_a_partition_that_is_new(served: Served) -> None:
    reader = served.reader()
    start = reader.initialOffset()
    reader.partitions(start, reader.latestOffset(start, ReadAllAvailable()))

    async def grow() -> None:
        servers = served.broker.bootstrap_servers
        async with Admin(servers) as admin, Producer(servers) as producer:
            await admin.create_partitions({"t": 3})
            await producer.send("t", b"new", partition=2)

    served.run(grow())
    end = reader.latestOffset(start, ReadMaxRows(100))
    assert end["t"] == {"0": 10, "1": 10, "2": 1}
    [task] = reader.partitions(start, end)
    assert [(r.partition.partition, r.start, r.end) for r in task.task] == [
        (0, 0, 10),
        (1, 0, 10),
        (2, 0, 1),
    ]


def test_a_topic_that_is_gone_does_not_hold_up_the_others(served: Served) -> None:
    served.here(lambda: served.broker.create_topic("u", 1))
    reader = served.reader(subscribePattern="^[tu]$")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    assert {"t", "u"} <= end.keys()

    async def delete() -> None:
        async with Admin(served.broker.bootstrap_servers) as admin:
            await admin.delete_topics(["u"])

    served.run(delete())
    began = time.monotonic()
    after = reader.latestOffset(end, ReadAllAvailable())
    # The ends of what is gone are not looked up until the time is over.
    assert time.monotonic() - began < 20
    assert "u" not in after
    with pytest.raises(DataLost, match="partition u-0 is gone"):
        reader.partitions(end, after)


def test_a_topic_that_is_named_and_gone(served: Served) -> None:
    reader = served.reader()
    start = reader.initialOffset()

    async def delete() -> None:
        async with Admin(served.broker.bootstrap_servers) as admin:
            await admin.delete_topics(["t"])

    served.run(delete())
    with pytest.raises(DataSourceError, match="UnknownTopicOrPartition"):
        reader.latestOffset(start, ReadAllAvailable())


def test_a_lookup_that_is_refused_once_is_repeated(served: Served) -> None:
    reader = served.reader()
    start = reader.initialOffset()
    # The early look-up fails for good; the one that follows does not.
    refused = error(ErrorCode.TOPIC_AUTHORIZATION_FAILED, times=2)
    served.here(lambda: served.broker.faults.on("ListOffsets", refused))
    end = reader.latestOffset(start, ReadAllAvailable())
    assert end["t"] == {"0": 10, "1": 10}


def test_a_lookup_that_is_refused(served: Served) -> None:
    reader = served.reader()
    start = reader.initialOffset()
    refused = error(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    served.here(lambda: served.broker.faults.on("ListOffsets", refused))
    with pytest.raises(DataSourceError, match="Authorization"):
        reader.latestOffset(start, ReadAllAvailable())
