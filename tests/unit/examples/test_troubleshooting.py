"""The troubleshooting page quotes messages as kafkaio writes them."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import re
import socket
import ssl
import sys
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import pytest

import kafkaio
from kafkaio import ErrorCode, TopicPartition
from kafkaio._records import compression
from kafkaio.registry import Avro, Registry, Schema
from kafkaio.testing import Broker, SchemaRegistry, error
from tests.support.patience import HANGS

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "guide" / "troubleshooting.md").read_text()
BLOCKS = re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
ENTRIES = re.findall(r"^### (.*)$", PAGE, re.MULTILINE)
ORDERS = TopicPartition("orders", 0)

#: How many times as long as on a quiet machine all calls may take.
PATIENCE = ContextVar("PATIENCE", default=1)

Scenario = Callable[[], Awaitable[object]]
SCENARIOS: list[Scenario] = []


def scenario(function: Scenario) -> Scenario:
    """Register a function that fails as the page describes."""
    SCENARIOS.append(function)
    return function


def printed(failure: BaseException) -> str:
    kind = type(failure)
    where = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return plain(f"{where}{kind.__name__}: {failure}")


def plain(text: str) -> str:
    """Replace ports by the one on the page, and leave out how many seconds it took."""
    text = re.sub(r"\b[\d.]+ s\b", "N s", text)
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:9092", text)
    return re.sub(r"\('127\.0\.0\.1', \d+\)", "('127.0.0.1', 9092)", text)


QUOTED = [plain(line) for block in BLOCKS for line in block.splitlines()]


def is_quoted(text: str) -> bool:
    """Whether a line of the page is the text or the beginning of it."""
    return any(text.startswith(line) for line in QUOTED)


Test = TypeVar("Test", bound=Callable[..., Awaitable[None]])


def patiently(test: Test) -> Test:
    """Give calls more time if they ended before they met what they should tell.

    Each of them waits for its limit, which is short for that reason.
    """

    @wraps(test)
    async def run(*args: Any, **named: Any) -> None:
        for patience in (1, 10):
            PATIENCE.set(patience)
            with suppress(AssertionError):
                return await test(*args, **named)
        PATIENCE.set(100)
        return await test(*args, **named)

    return run  # type: ignore[return-value]  # it is called in the same way


def timed(options: dict[str, Any]) -> dict[str, Any]:
    """Return options with the time that calls are given now."""
    return {
        name: value * PATIENCE.get()
        if name.endswith(("timeout_ms", "block_ms"))
        else value
        for name, value in options.items()
    }


@pytest.fixture
def nameless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the name ``kafka.invalid`` unknown, whatever the resolver answers."""
    resolve = socket.getaddrinfo

    def without(host: Any, *args: Any, **options: Any) -> Any:
        if host == "kafka.invalid":
            raise socket.gaierror(-2, "Name or service not known")
        return resolve(host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", without)


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def consumer(broker: Broker, **options: Any) -> kafkaio.Consumer:
    options = {
        "client_id": "billing",
        "group_id": "billing",
        "auto_offset_reset": "earliest",
        **options,
    }
    return kafkaio.Consumer(broker.bootstrap_servers, **timed(options))


def producer(broker: Broker, **options: Any) -> kafkaio.Producer:
    options = {"client_id": "billing", **options}
    return kafkaio.Producer(broker.bootstrap_servers, **timed(options))


@asynccontextmanager
async def orders(partitions: int = 2, records: int = 0) -> AsyncIterator[Broker]:
    config = {"auto.create.topics.enable": False}
    async with Broker(topics={"orders": partitions}, config=config) as broker:
        if records:
            async with producer(broker) as source:
                await source.send_many("orders", [b"v"] * records)
        yield broker


async def connect(address: str, **options: Any) -> None:
    options = {"client_id": "billing", "default_api_timeout_ms": 100, **options}
    async with kafkaio.Client(address, **timed(options)):
        pass


@scenario
async def nobody_listens() -> None:
    await connect(f"127.0.0.1:{free_port()}")


@scenario
async def tls_to_plaintext() -> None:
    async with orders() as broker:
        context = ssl.create_default_context()
        await connect(
            broker.bootstrap_servers, security_protocol="SSL", ssl_context=context
        )


@scenario
async def plaintext_to_tls() -> None:
    async def alert(reader: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
        await reader.read(10)
        to.write(b"\x15\x03\x03\x00\x02\x02\x0a")
        to.close()

    async with await asyncio.start_server(alert, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        await connect(f"127.0.0.1:{port}")


@scenario
async def sasl() -> None:
    options: dict[str, Any] = {"security_protocol": "SASL_SSL"}
    kafkaio.Client("localhost:9092", **options)


@scenario
async def user_before_the_server() -> None:
    kafkaio.Client("alice:secret@kafka-1:9092")


@scenario
async def no_token() -> None:
    async def hang() -> kafkaio.types.Token:
        await asyncio.Event().wait()
        raise AssertionError

    async with Broker(sasl=True) as broker:
        await connect(
            broker.bootstrap("SASL"),
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauth_token_provider=hang,
        )


@scenario
async def pattern_as_text() -> None:
    kafkaio.Consumer("localhost:9092", topics="^orders-.*")


@scenario
async def answer_too_large() -> None:
    async with orders() as broker:
        async with producer(broker, linger_ms=0) as source:
            await source.send("orders", b"v" * 100_000, partition=0)
        async with consumer(broker, topics="orders", max_response_size=50_000) as one:
            while True:
                await one.poll(timeout=1)


@scenario
async def unknown_option() -> None:
    options: dict[str, Any] = {"group": "billing"}
    kafkaio.Consumer("localhost:9092", **options)


@scenario
async def old_broker() -> None:
    async with Broker(topics={"orders": 1}, as_version="2.1") as broker:
        await consumer(broker, topics="orders", group_protocol="consumer").start(5)


@scenario
async def missing_topic() -> None:
    async with orders() as broker, producer(broker, max_block_ms=300) as source:
        await source.send("order", b"v")


@scenario
async def illegal_name() -> None:
    async with orders() as broker, producer(broker, max_block_ms=300) as source:
        await source.send("my orders", b"v")


@scenario
async def missing_partition() -> None:
    async with orders() as broker, producer(broker, max_block_ms=300) as source:
        await source.send("orders", b"v", partition=7)


@scenario
async def full_buffer() -> None:
    async with orders() as broker, producer(broker, buffer_memory=100_000) as source:
        while True:
            _ = source.enqueue_nowait("orders", b"v" * 10_000)


@scenario
async def no_acknowledgement() -> None:
    async with (
        orders(partitions=1) as broker,
        producer(
            broker, delivery_timeout_ms=600, request_timeout_ms=200, linger_ms=0
        ) as source,
    ):
        broker.faults.on("Produce", error(ErrorCode.NOT_ENOUGH_REPLICAS))
        try:
            await source.send("orders", b"v")
        except kafkaio.DeliveryTimeout as failure:
            # The number of attempts varies.
            text = re.sub(r"sent \d+ times", "sent 3 times", str(failure))
            raise kafkaio.DeliveryTimeout(text) from failure


@scenario
async def large_record() -> None:
    async with orders() as broker, producer(broker) as source:
        await source.send("orders", b"v" * 2_000_000)


@scenario
async def text_as_value() -> None:
    async with orders() as broker, producer(broker) as source:
        await source.send("orders", "v")


@scenario
async def nothing_to_read() -> None:
    async with orders() as broker, consumer(broker) as reader:
        await reader.poll(timeout=0)


@scenario
async def topics_and_partitions() -> None:
    async with orders() as broker, consumer(broker, topics="orders") as reader:
        reader.assign([ORDERS])


@scenario
async def two_readers() -> None:
    async with orders() as broker, consumer(broker, topics="orders") as reader:
        first = asyncio.create_task(reader.poll())
        try:
            await asyncio.sleep(0)
            await reader.poll(timeout=0)
        finally:
            first.cancel()


@scenario
async def outside_the_log() -> None:
    async with (
        orders() as broker,
        consumer(broker, assign=[ORDERS], auto_offset_reset="none") as reader,
    ):
        reader.seek(ORDERS, 1000)
        await reader.poll(timeout=5)


@scenario
async def nothing_committed() -> None:
    async with (
        orders(partitions=1) as broker,
        consumer(broker, topics="orders", auto_offset_reset="none") as reader,
    ):
        await reader.poll(timeout=5)


@scenario
async def truncated() -> None:
    raise kafkaio.LogTruncated("orders", 0, 120, 100)


@scenario
async def missing_library() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "lz4.frame", None)
        compression._library.cache_clear()
        compression._library("lz4.frame")


async def read_and_be_expelled(reader: kafkaio.Consumer, broker: Broker) -> Any:
    poll = await reader.poll(timeout=5)
    (member,) = broker.control.members("billing")
    broker.control.expel_member("billing", member)
    return poll.records[0]


@scenario
async def left_behind() -> None:
    async with (
        orders(records=1) as broker,
        consumer(broker, topics="orders", enable_auto_commit=False) as reader,
    ):
        await reader.commit(await read_and_be_expelled(reader, broker))


@scenario
async def lost() -> None:
    async with (
        orders(partitions=1, records=1) as broker,
        consumer(broker, topics="orders", enable_auto_commit=False) as reader,
    ):
        record = await read_and_be_expelled(reader, broker)
        with pytest.raises(kafkaio.CommitFailed):
            await reader.commit(record)
        await reader.commit(record)


@scenario
async def rebalancing() -> None:
    async with (
        orders(records=1) as broker,
        consumer(
            broker,
            topics="orders",
            group_protocol="classic",
            enable_auto_commit=False,
        ) as reader,
    ):
        await reader.poll(timeout=5)
        rule = error(ErrorCode.REBALANCE_IN_PROGRESS)
        broker.faults.on("OffsetCommit", rule)
        await reader.commit(timeout=0.2)


@scenario
async def assigned_by_hand() -> None:
    async with (
        orders() as broker,
        consumer(broker, topics="orders"),
        consumer(broker, assign=[ORDERS]) as reader,
    ):
        await reader.commit({ORDERS: 0})


@scenario
async def no_assignor_in_common() -> None:
    async with (
        orders() as broker,
        consumer(broker, topics="orders", partition_assignment_strategy="range"),
    ):
        await consumer(broker, topics="orders", group_protocol="classic").start(10)


@scenario
async def not_started() -> None:
    async with orders() as broker:
        await consumer(broker, topics="orders").poll()


@scenario
async def closed() -> None:
    async with orders() as broker, consumer(broker, topics="orders") as reader:
        pass
    await reader.poll()


@scenario
async def started_again() -> None:
    async with orders() as broker, consumer(broker, topics="orders") as reader:
        pass
    await reader.start()


@scenario
async def another_loop() -> None:
    async with orders() as broker, producer(broker) as source:

        async def send() -> None:
            await source.send("orders", b"v")

        await asyncio.to_thread(lambda: asyncio.run(send()))


@scenario
async def another_process() -> None:
    async with orders() as broker, producer(broker) as source:
        mine, theirs = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # other tests may have left threads
            child = os.fork()
        if not child:
            try:
                _ = source.enqueue_nowait("orders", b"v")
            except kafkaio.ClosedError as failure:
                os.write(theirs, str(failure).encode())
            finally:
                os._exit(0)
        text = os.read(mine, 1000).decode()
        await asyncio.to_thread(os.waitpid, child, 0)
        os.close(mine)
        os.close(theirs)
        raise kafkaio.ClosedError(text)


@dataclass
class Order:
    id: int
    cents: int


async def send_order(
    broker: Broker, registry: Registry, cents: Any = 100, **options: Any
) -> None:
    topic = kafkaio.Topic("orders", value=Avro(Order, registry, **options))
    async with producer(broker) as source:
        await source.send(topic, Order(1, cents))


@scenario
async def no_registry() -> None:
    async with orders() as broker:
        registry = Registry(f"http://127.0.0.1:{free_port()}", retries=0)
        await send_order(broker, registry)


@scenario
async def registry_wants_a_login() -> None:
    async with orders() as broker, SchemaRegistry(users={"alice": "secret"}) as schemas:
        await send_order(broker, Registry(schemas.url))


@scenario
async def refused_schema() -> None:
    async with orders() as broker, SchemaRegistry() as schemas:
        registry = Registry(schemas.url)
        text = Avro(Order, registry).schema.text.replace("long", "string")
        await registry.register("orders-value", Schema(text))
        await send_order(broker, registry)


@scenario
async def missing_subject() -> None:
    async with orders() as broker, SchemaRegistry() as schemas:
        await send_order(broker, Registry(schemas.url), register=False)


@scenario
async def misfit() -> None:
    async with orders() as broker, SchemaRegistry() as schemas:
        await send_order(broker, Registry(schemas.url), cents="much")


async def read_order(data: bytes) -> None:
    async with orders() as broker, SchemaRegistry() as schemas:
        topic = kafkaio.Topic("orders", value=Avro(Order, Registry(schemas.url)))
        async with producer(broker) as source:
            await source.send("orders", data, partition=0)
        async with consumer(broker, topics=topic) as reader:
            while True:
                await reader.poll(timeout=1)


@scenario
async def no_prefix() -> None:
    await read_order(b"two apples")


@scenario
async def unknown_schema() -> None:
    await read_order(b"\0\0\0\x30\x39\x02")


@scenario
async def coroutine_function() -> None:
    async def dump(value: Order) -> bytes:
        return b"%d" % value.id

    wrong: Any = dump
    kafkaio.Producer("localhost:9092", value_serializer=wrong)


@pytest.mark.parametrize("fails", SCENARIOS, ids=lambda f: f.__name__)
@patiently
async def test_what_is_raised_is_quoted(fails: Scenario) -> None:
    with pytest.raises((kafkaio.KafkaError, TypeError)) as raised:
        async with asyncio.timeout(HANGS):
            await fails()
    assert is_quoted(printed(raised.value)), printed(raised.value)


@pytest.mark.parametrize(
    "name", sorted(set(re.findall(r"^kafkaio\.(\w+):", PAGE, re.MULTILINE)))
)
def test_a_quoted_exception_exists(name: str) -> None:
    assert issubclass(getattr(kafkaio, name), kafkaio.KafkaError)


def worker(broker: Broker, **options: Any) -> kafkaio.ShareConsumer:
    options = {"client_id": "billing", "group_id": "billing", **options}
    return kafkaio.ShareConsumer(broker.bootstrap_servers, topics="orders", **options)


@scenario
async def no_share_groups() -> None:
    async with Broker(as_version="4.0", topics={"orders": 1}) as broker:
        await worker(broker).start()


@scenario
async def no_share_group() -> None:
    async with orders() as broker, consumer(broker, topics="orders"):
        await worker(broker).start()


@scenario
async def two_decisions() -> None:
    async with orders(partitions=1) as broker, worker(broker) as share:
        records = aiter(share)
        reading = asyncio.ensure_future(anext(records))
        await until_locked(share, broker)
        record = await reading
        record.ack()
        record.ack()


async def until_locked(share: kafkaio.ShareConsumer, broker: Broker) -> None:
    """Send one record after another, until the group has begun and one is locked."""
    async with producer(broker) as source, asyncio.timeout(HANGS):
        while not share.statistics().acquired:
            await source.send("orders", b"v")


async def test_the_warning_of_a_lost_lock(caplog: pytest.LogCaptureFixture) -> None:
    lock = "record.lock.duration.ms"
    config = {f"group.share.min.{lock}": 1000, f"group.share.{lock}": 1000}
    async with (
        Broker(topics={"orders": 1}, config=config) as broker,
        worker(broker, renew_locks=False) as share,
    ):
        records = aiter(share)
        reading = asyncio.ensure_future(anext(records))
        await until_locked(share, broker)
        record = await reading
        async with asyncio.timeout(HANGS):
            with pytest.raises(kafkaio.LockLost):
                await record.acked
        with pytest.raises(kafkaio.UsageError) as raised:
            record.ack()
    assert is_quoted(printed(raised.value)), raised.value
    assert any(map(is_quoted, logged(caplog))), logged(caplog)


def logged(caplog: pytest.LogCaptureFixture) -> Collection[str]:
    return [
        plain(f"{r.levelname}:{r.name}:{r.getMessage()}")
        for r in caplog.records
        if r.levelno >= logging.WARNING
    ]


@patiently
async def test_the_warning_of_a_missing_topic(caplog: pytest.LogCaptureFixture) -> None:
    async with (
        orders() as broker,
        producer(broker, max_block_ms=300, allow_auto_create_topics=False) as source,
    ):
        with pytest.raises(kafkaio.UnknownTopicOrPartition):
            await source.send("order", b"v")
    assert any(map(is_quoted, logged(caplog))), logged(caplog)


async def test_the_warning_of_lost_partitions(caplog: pytest.LogCaptureFixture) -> None:
    async with orders(records=2) as broker, consumer(broker, topics="orders") as reader:
        record = await read_and_be_expelled(reader, broker)
        with pytest.raises(kafkaio.CommitFailed):
            await reader.commit(record)
    assert any(map(is_quoted, logged(caplog))), logged(caplog)


@patiently
async def test_the_warning_of_a_lost_delivery(caplog: pytest.LogCaptureFixture) -> None:
    async with (
        orders(partitions=1) as broker,
        producer(
            broker, delivery_timeout_ms=300, request_timeout_ms=100, linger_ms=0
        ) as source,
    ):
        broker.faults.on("Produce", error(ErrorCode.NOT_ENOUGH_REPLICAS))
        deliveries = [source.enqueue_nowait("orders", b"v")]
        deliveries.clear()
    assert any(map(is_quoted, logged(caplog))), logged(caplog)


@pytest.mark.usefixtures("nameless")
@patiently
async def test_the_warning_of_advertised_listeners(
    caplog: pytest.LogCaptureFixture,
) -> None:
    port = free_port()
    config = {
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "advertised.listeners": "PLAINTEXT://kafka.invalid:9092",
    }
    async with Broker(topics={"orders": 1}, config=config):
        options = timed({"default_api_timeout_ms": 300})
        reader = kafkaio.Consumer(
            f"127.0.0.1:{port}", client_id="billing", topics="orders", **options
        )
        with pytest.raises(kafkaio.RequestTimeout):
            await reader.start()
    assert any(map(is_quoted, logged(caplog))), logged(caplog)


@pytest.mark.usefixtures("nameless")
@patiently
async def test_the_name_of_a_server_that_is_not_known() -> None:
    with pytest.raises(kafkaio.BrokerNotAvailable) as raised:
        await connect("kafka.invalid:9092")
    assert is_quoted(printed(raised.value)), raised.value


async def test_the_warning_of_what_is_not_closed() -> None:
    async with orders() as broker:
        readers = [consumer(broker, topics="orders")]
        await readers[0].start()
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            readers.clear()
            gc.collect()
        assert any(is_quoted(f"ResourceWarning: {w.message}") for w in found)


def test_the_warning_of_a_blocked_loop(caplog: pytest.LogCaptureFixture) -> None:
    from kafkaio._runtime.log import LogObserver

    LogObserver("billing").loop_blocked(3.5, "")
    assert any(map(is_quoted, logged(caplog))), logged(caplog)


def test_there_are_entries_enough() -> None:
    assert len(ENTRIES) == len(set(ENTRIES)) >= 20
