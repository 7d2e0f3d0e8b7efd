"""Serializers that are told what for, and those that have to be awaited."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, cast

import anyio
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from kafkaio._config import ProducerConfig
from kafkaio._producer import Producer
from kafkaio._producer.bulk import DeliveriesFailed
from kafkaio.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BufferFull,
    ClosedError,
    ConfigurationError,
    InternalError,
    KafkaTimeout,
    RecordTooLarge,
    SerializationError,
    TransactionAborted,
    UsageError,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.serde import SerializationContext, Topic
from kafkaio.types import NewRecord
from tests.fakes.broker import FakeCluster
from tests.unit.producer.broker_log import Logs
from tests.unit.producer.conftest import MakeProducer
from tests.unit.producer.transactional import until, world
from tests.virtual_loop import VirtualClockLoop


def clock() -> float:
    return asyncio.get_running_loop().time()


class Serde:
    """Serializes text at once, and remembers what for."""

    def __init__(self, header: bytes | None = None) -> None:
        self.seen: list[tuple[object, SerializationContext]] = []
        self.header = header

    def serialize(self, value: Any, context: SerializationContext) -> Any:
        self.seen.append((value, context))
        if self.header is not None:
            context.headers.append((context.field, self.header))
        return value.encode()

    def deserialize(self, data: bytes, context: object) -> str:
        return data.decode()


class Slow(Serde):
    """Serializes text that begins with "slow" when it is told to, the rest at once."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: dict[str, asyncio.Future[bytes]] = {}
        self.cancelled: list[str] = []

    def serialize(self, value: str, context: SerializationContext) -> Any:
        if not value.startswith("slow"):
            return super().serialize(value, context)
        return self._serialize(value)

    async def _serialize(self, value: str) -> bytes:
        future = self.waiting[value] = asyncio.get_running_loop().create_future()
        try:
            return await future
        except asyncio.CancelledError:
            self.cancelled.append(value)
            raise
        finally:
            del self.waiting[value]

    def finish(self, value: str) -> None:
        self.waiting[value].set_result(value.encode())


async def steps() -> None:
    """Let everything run that can run."""
    for _ in range(10):
        await asyncio.sleep(0)


def start(call: Awaitable[Any]) -> asyncio.Task[Any]:
    async def run() -> Any:
        return await call

    return asyncio.create_task(run())


# ---- what a serializer is told -------------------------------------------------------


async def test_objects_are_told_topic_headers_and_which_of_both(
    make: MakeProducer, logs: Logs
) -> None:
    key, value = Serde(), Serde()
    async with make(key_serializer=key, value_serializer=value) as producer:
        await producer.send("one", "v", key="k", headers={"trace": b"1"})
    [(_, of_key)], [(_, of_value)] = key.seen, value.seen
    assert (of_key.topic, of_key.is_key, of_key.field) == ("one", True, "key")
    assert (of_value.topic, of_value.is_key, of_value.field) == ("one", False, "value")
    assert of_key.headers is of_value.headers
    assert of_key.headers == [("trace", b"1")]
    [record] = logs.log("one").records
    assert (record.key, record.value) == (b"k", b"v")
    assert record.headers == (("trace", b"1"),)


@pytest.mark.parametrize("call", ["send", "enqueue", "enqueue_nowait", "send_many"])
async def test_headers_that_serializers_add_are_written(
    make: MakeProducer, logs: Logs, call: str
) -> None:
    """The key's first: it is serialized before the value."""
    options = {"key_serializer": Serde(b"a"), "value_serializer": Serde(b"b")}
    async with make(**options) as producer:
        arguments: dict[str, Any] = {"key": "k", "headers": (("own", None),)}
        if call == "send_many":
            await producer.send_many("one", [NewRecord("v", **arguments)])  # type: ignore[arg-type]
        elif call == "enqueue_nowait":
            await producer.enqueue_nowait("one", "v", **arguments)
        elif call == "enqueue":
            await (await producer.enqueue("one", "v", **arguments))
        else:
            await producer.send("one", "v", **arguments)
    [record] = logs.log("one").records
    assert record.headers == (("own", None), ("key", b"a"), ("value", b"b"))


@pytest.mark.parametrize("is_awaited", [False, True])
async def test_a_list_that_takes_the_place_of_the_headers_is_written(
    make: MakeProducer, logs: Logs, is_awaited: bool
) -> None:
    def dump(value: bytes, context: SerializationContext) -> bytes:
        context.headers = [("only", b"1")]
        return value

    class Slowly:
        async def serialize(self, value: bytes, context: SerializationContext) -> bytes:
            await asyncio.sleep(1)
            return dump(value, context)

    async with make(value_serializer=Slowly() if is_awaited else dump) as producer:
        await producer.send("one", b"v", headers=[("gone", b"")])
    assert logs.log("one").records[0].headers == (("only", b"1"),)


async def test_the_headers_of_the_caller_are_not_changed(make: MakeProducer) -> None:
    headers = [("own", b"1")]
    async with make(value_serializer=Serde(b"x")) as producer:
        await producer.send("one", "v", headers=headers)
    assert headers == [("own", b"1")]


@pytest.mark.parametrize(
    ("added", "error"),
    [
        ("text", ArgumentTypeError),
        (("name", "text"), ArgumentTypeError),
        ((b"name", b""), ArgumentTypeError),
        (("\ud800", b""), ArgumentValueError),
    ],
)
async def test_what_serializers_add_is_checked_as_headers_are(
    make: MakeProducer, logs: Logs, added: Any, error: type[Exception]
) -> None:
    def dump(value: bytes, context: SerializationContext) -> bytes:
        context.headers.append(added)
        return value

    async with make(value_serializer=dump) as producer:
        with pytest.raises(error, match="header"):
            await producer.send("one", b"v")
    assert logs.values("one") == []


async def test_functions_are_called_as_they_ask(make: MakeProducer, logs: Logs) -> None:
    def alone(value: str, encoding: str = "utf-8") -> bytes:
        return value.encode(encoding)

    def with_context(value: str, ctx: SerializationContext | None = None) -> bytes:
        assert ctx is not None
        return f"{ctx.topic}.{ctx.field}:{value}".encode()

    async with make(key_serializer=alone, value_serializer=with_context) as producer:
        await producer.send("one", "v", key="k")
    [record] = logs.log("one").records
    assert (record.key, record.value) == (b"k", b"one.value:v")


async def test_none_is_passed_to_no_serializer(make: MakeProducer, logs: Logs) -> None:
    serde = Serde()
    async with make(key_serializer=serde, value_serializer=serde) as producer:
        await producer.send("one", None)
    [record] = logs.log("one").records
    assert (record.key, record.value) == (None, None)
    assert serde.seen == []


async def test_a_serializer_may_make_a_tombstone(
    make: MakeProducer, logs: Logs
) -> None:
    async with make(value_serializer=lambda value, context: None) as producer:
        await producer.send("one", "gone", key=b"k")
    assert logs.log("one").records[0].value is None


async def test_serializers_see_what_an_observer_has_injected(
    make: MakeProducer, logs: Logs
) -> None:
    class Traces:
        def inject(self, topic: str, headers: Any) -> Any:
            return [*headers, ("traceparent", topic.encode())]

    serde = Serde(b"x")
    async with make(observer=Traces(), value_serializer=serde) as producer:
        await producer.send("one", "v")
    headers = (("traceparent", b"one"), ("value", b"x"))
    assert logs.log("one").records[0].headers == headers


async def test_wrong_results(make: MakeProducer, logs: Logs) -> None:
    class Wrong:
        def serialize(self, value: object, context: object) -> object:
            if value == "bad":
                raise SerializationError("not an order", field="id")
            return value

    async with make(value_serializer=Wrong()) as producer:
        with pytest.raises(
            ArgumentTypeError, match=r"must be bytes.*not int; returned by"
        ):
            await producer.send("one", 5)
        with pytest.raises(SerializationError, match="not an order"):
            await producer.send("one", "bad")
        with pytest.raises(SerializationError, match="not an order"):
            producer.enqueue_nowait("one", "bad")
        await producer.send("one", bytearray(b"fine"))
    assert logs.values("one") == [b"fine"]


async def test_a_function_must_not_return_a_coroutine(make: MakeProducer) -> None:
    """The constructor cannot see it. The coroutine is closed: no warning."""

    async def slow(value: object) -> bytes:
        raise AssertionError

    for dump in (lambda v: slow(v), lambda v, context: slow(v)):
        async with make(value_serializer=dump) as producer:
            with pytest.raises(ConfigurationError, match="returned a coroutine"):
                await producer.send("one", "v")
            with pytest.raises(ConfigurationError, match="returned a coroutine"):
                producer.enqueue_nowait("one", "v")


# ---- topics --------------------------------------------------------------------------


async def test_the_serdes_of_a_topic_win(make: MakeProducer, logs: Logs) -> None:
    key, value = Serde(), Serde()
    options = {"key_serializer": lambda _: b"option", "value_serializer": bytes}
    both = Topic("one", key=key, value=value)
    async with make(**options) as producer:
        meta = await producer.send(both, "v", key="k")  # type: ignore[arg-type]
        assert (meta.topic, type(meta.topic)) == ("one", str)
        # Without `key=` keys are bytes, whatever the option is.
        await producer.send(Topic("one", value=value), "w", key=b"raw")  # type: ignore[arg-type]
        await producer.send("one", b"x", key=b"k")
    assert [(each.key, each.value) for each in logs.log("one").records] == [
        (b"k", b"v"),
        (b"raw", b"w"),
        (b"option", b"x"),
    ]
    assert [context.topic for _, context in value.seen] == ["one", "one"]


async def test_a_topic_is_taken_wherever_records_are(
    make: MakeProducer, logs: Logs
) -> None:
    topic: Any = Topic("one", value=Serde())
    async with make() as producer:
        await producer.send(topic, "a")
        await (await producer.enqueue(topic, "b"))
        await producer.enqueue_nowait(topic, "c")
        await producer.send_many(topic, ["d", NewRecord("e", key=b"k")])  # type: ignore[arg-type]
        await producer.send_many(Topic("one"), [b"f"])  # type: ignore[arg-type]
        assert await producer.partitions_for(topic) == (0,)
    assert logs.values("one") == [b"a", b"b", b"c", b"d", b"e", b"f"]


async def test_wrong_types_name_the_topic(make: MakeProducer) -> None:
    async with make(value_serializer=Serde()) as producer:
        with pytest.raises(ArgumentTypeError) as caught:
            await producer.send(Topic("one"), "text")  # type: ignore[arg-type]
        assert str(caught.value) == (
            "value must be bytes, bytearray, memoryview or None, not str; set value= "
            "of the topic 'one' for other types"
        )

        class Numbers(Serde):
            def serialize(self, value: Any, context: Any) -> Any:
                return 5

        topic: Any = Topic("one", key=Numbers())
        with pytest.raises(ArgumentTypeError, match="returned by key= of the topic"):
            await producer.send(topic, b"v", key="k")


async def test_a_result_of_the_wrong_type_names_the_serializer(
    make: MakeProducer,
) -> None:
    # json.dumps without encode(): what was passed is not to blame.
    async with make(value_serializer=json.dumps) as producer:
        with pytest.raises(ArgumentTypeError) as caught:
            await producer.send("one", [1])
        assert str(caught.value) == (
            "value must be bytes, bytearray, memoryview or None, not str; returned by "
            "value_serializer"
        )


def test_serdes_are_objects() -> None:
    with pytest.raises(ArgumentTypeError, match=r"key must be an object.*Serde\(\)$"):
        Topic("one", key=Serde)  # type: ignore[arg-type]


def test_a_class_may_have_methods_of_its_own() -> None:
    class Texts:
        @staticmethod
        def serialize(value: str, context: object) -> bytes:
            return value.encode()

        @classmethod
        def deserialize(cls, data: bytes, context: object) -> str:
            return data.decode()

    assert Topic("one", key=Texts).key is Texts
    assert ProducerConfig.of("a", {"key_serializer": Texts}).key_serializer is Texts


@pytest.mark.parametrize("topic", [5, b"one", None, ["one"]])
async def test_what_is_no_topic(make: MakeProducer, topic: Any) -> None:
    async with make() as producer:
        calls = [
            producer.send(topic, b""),
            producer.send_many(topic, [b""]),
            producer.partitions_for(topic),
        ]
        for call in calls:
            with pytest.raises(ArgumentTypeError, match=r"a name .* kafkaio\.Topic"):
                await call


async def test_tables_take_names_alone(make: MakeProducer) -> None:
    table = pa.table({"value": [b"a"]})
    async with make() as producer:
        with pytest.raises(ArgumentTypeError, match="pass the name, 'one'"):
            await producer.send_table(Topic("one"), table)  # type: ignore[arg-type]


async def test_a_partitioner_gets_the_name(make: MakeProducer) -> None:
    seen: list[object] = []

    def partitioner(topic: str, *rest: Any) -> int:
        seen.append(topic)
        return 0

    async with make(partitioner=partitioner) as producer:
        await producer.send(Topic("one", value=Serde()), "v")  # type: ignore[arg-type]
    assert seen == ["one"]


async def test_the_serdes_of_a_topic_may_change(make: MakeProducer, logs: Logs) -> None:
    topic: Any = Topic("one", value=Serde())
    async with make() as producer:
        await producer.send(topic, "a")
        topic.value = None
        await producer.send(topic, b"b")
        # Nor are topics remembered that are made for one record each.
        for _ in range(300):
            await producer.send(Topic("one"), b"c")  # type: ignore[arg-type]
        assert len(producer._intake._records._topics) <= 100
    assert logs.values("one")[:2] == [b"a", b"b"]


# ---- serializers that are awaited ----------------------------------------------------


async def test_a_coroutine_is_awaited(make: MakeProducer, logs: Logs) -> None:
    class Cold:
        async def serialize(self, value: str, context: SerializationContext) -> Any:
            await asyncio.sleep(1)
            context.headers.append((context.field, b"cold"))
            return value.encode()

    async with make(key_serializer=Cold(), value_serializer=Cold()) as producer:
        await producer.send("one", "v", key="k")
        await producer.send_many("one", ["w", NewRecord("x", key="y")])  # type: ignore[list-item]
    first, second, third = logs.log("one").records
    assert (first.key, first.value) == (b"k", b"v")
    assert first.headers == (("key", b"cold"), ("value", b"cold"))
    assert second.headers == (("value", b"cold"),)
    assert (third.key, third.value) == (b"y", b"x")


async def test_a_future_is_awaited(make: MakeProducer, logs: Logs) -> None:
    class Hands:
        def serialize(self, value: bytes, context: object) -> asyncio.Future[bytes]:
            future = asyncio.get_running_loop().create_future()
            asyncio.get_running_loop().call_later(1, future.set_result, value)
            return future

    async with make(value_serializer=Hands()) as producer:
        await producer.send("one", b"v")
    assert logs.values("one") == [b"v"]


async def test_later_calls_for_the_topic_queue_and_others_pass(
    make: MakeProducer, logs: Logs
) -> None:
    serde = Slow()
    async with make(value_serializer=serde) as producer:
        slow = start(producer.enqueue("one", "slow"))
        await steps()
        ready = start(producer.enqueue("one", "ready"))
        many = start(producer.send_many("one", ["a", "b"]))
        await steps()
        await producer.send("orders", "other", partition=0)
        assert not ready.done()
        assert not many.done()
        assert logs.values("one") == []
        serde.finish("slow")
        await asyncio.gather(slow, ready, many)
        # The direct way is open again.
        await producer.send("one", "last")
    assert logs.values("one") == [b"slow", b"ready", b"a", b"b", b"last"]
    assert logs.values("orders") == [b"other"]


async def test_plain_bytes_queue_behind_a_typed_topic(
    make: MakeProducer, logs: Logs
) -> None:
    """Records that go into an open batch without the intake do not overtake."""
    serde = Slow()
    topic: Any = Topic("one", value=serde)
    async with make() as producer:
        await producer.enqueue("one", b"first")  # opens a batch
        await producer.enqueue("orders", b"first", partition=0)
        slow = start(producer.send(topic, "slow"))
        await steps()
        plain = start(producer.enqueue("one", b"plain"))
        many = start(producer.send_many("one", [b"a", b"b"]))
        table = start(producer.send_table("one", pa.table({"value": [b"row"]})))
        await steps()
        with pytest.raises(BufferFull, match="'one' wait for a serializer"):
            producer.enqueue_nowait("one", b"now")
        producer.enqueue_nowait("orders", b"now", partition=0)
        assert not plain.done()
        assert not many.done()
        assert not table.done()
        serde.finish("slow")
        await asyncio.gather(slow, plain, many, table)
        await producer.enqueue_nowait("one", b"last")
        assert not producer._accumulator.gate._barriers
    assert logs.values("one") == [
        b"first", b"slow", b"plain", b"a", b"b", b"row", b"last"
    ]  # fmt: skip
    assert logs.values("orders") == [b"first", b"now"]


async def test_enqueue_nowait_awaits_nothing(make: MakeProducer, logs: Logs) -> None:
    """The coroutine is closed: Python does not warn about it."""
    serde = Slow()
    async with make(key_serializer=serde, value_serializer=serde) as producer:
        for key, value in ((None, "slow"), ("slow", "slow"), ("slow", "v")):
            with pytest.raises(ConfigurationError, match="use `await enqueue`"):
                producer.enqueue_nowait("one", value, key=key)
        await producer.enqueue_nowait("one", "quick", key="quick")
    assert logs.values("one") == [b"quick"]


async def test_a_failure_is_the_call_s_own(make: MakeProducer, logs: Logs) -> None:
    serde = Slow()
    async with make(value_serializer=serde) as producer:
        calls = [start(producer.send("one", f"slow{n}")) for n in range(3)]
        await steps()
        serde.waiting["slow1"].set_exception(SerializationError("no", field="id"))
        serde.finish("slow2")
        await steps()
        with pytest.raises(SerializationError):
            await calls[1]
        assert not calls[2].done()
        serde.finish("slow0")
        await asyncio.gather(calls[0], calls[2])
    assert logs.values("one") == [b"slow0", b"slow2"]


async def test_a_call_that_is_cancelled_took_nothing_in(
    make: MakeProducer, logs: Logs
) -> None:
    serde = Slow()
    async with make(value_serializer=serde) as producer:
        first, second = (start(producer.enqueue("one", f"slow{n}")) for n in range(2))
        third, fourth = (start(producer.enqueue("one", f"{n}")) for n in range(2))
        await steps()
        third.cancel()  # it waits behind the others
        first.cancel()  # it waits for its serializer
        await steps()
        assert first.cancelled()
        assert third.cancelled()
        assert serde.cancelled == ["slow0"]
        assert not fourth.done()
        serde.finish("slow1")
        await asyncio.gather(second, fourth)
        assert not producer._waits.waiting
    assert logs.values("one") == [b"slow1", b"1"]


async def test_a_call_whose_turn_has_come_is_cancelled(
    make: MakeProducer, logs: Logs
) -> None:
    """Race: its turn has come, and its task has not run yet."""
    serde = Slow()
    async with make(value_serializer=serde) as producer:
        first = start(producer.enqueue("one", "slow"))
        await steps()
        second, third = (start(producer.enqueue("one", f"{n}")) for n in range(2))
        await steps()
        first.cancel()
        await asyncio.sleep(0)  # the first call has left
        second.cancel()
        await steps()
        assert second.cancelled()
        assert third.done()
    assert logs.values("one") == [b"1"]


async def test_waiting_for_a_serializer_has_a_limit(
    make: MakeProducer, logs: Logs
) -> None:
    """Calls behind the one that takes too long do not fail with it."""
    serde = Slow()
    async with make(value_serializer=serde, max_block_ms=5000) as producer:
        began = clock()
        hangs = start(producer.send("one", "slow"))
        others = [start(producer.send("one", f"{n}")) for n in range(3)]
        many = start(producer.send_many("one", ["a", "b"]))
        with pytest.raises(
            KafkaTimeout, match="'one' was not done within max_block_ms=5000"
        ):
            await hangs
        assert clock() - began == pytest.approx(5)
        assert serde.cancelled == ["slow"]
        await asyncio.gather(*others, many)
    assert logs.values("one") == [b"0", b"1", b"2", b"a", b"b"]


async def test_a_serializer_that_ignores_its_end_holds_nobody_up(
    make: MakeProducer, logs: Logs
) -> None:
    class Stubborn(Serde):
        def serialize(self, value: str, context: Any) -> Any:
            return self.slow() if value == "slow" else super().serialize(value, context)

        async def slow(self) -> bytes:
            with anyio.CancelScope(shield=True):
                await asyncio.sleep(10)
            return b"slow"

    async with make(value_serializer=Stubborn(), max_block_ms=1000) as producer:
        began = clock()
        slow = start(producer.send("one", "slow"))
        await steps()
        await producer.send("one", "other")
        assert clock() - began == pytest.approx(1, abs=0.1)
        with pytest.raises(KafkaTimeout):
            await slow
        assert clock() - began == pytest.approx(10, abs=0.1)
    assert logs.values("one") == [b"other"]


async def test_a_result_that_comes_too_late_is_not_written(
    make: MakeProducer, logs: Logs
) -> None:
    class Late:
        async def serialize(self, value: str, context: object) -> bytes:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(10)
            return value.encode()

    async with make(value_serializer=Late(), max_block_ms=1000) as producer:
        began = clock()
        for call in (producer.send("one", "v"), producer.send_many("one", ["a", "b"])):
            with pytest.raises(KafkaTimeout):
                await call
        assert clock() - began == pytest.approx(2, abs=0.1)
        assert not producer._waits.waiting
    assert logs.values("one") == []


async def test_close_fails_the_calls_that_wait(make: MakeProducer, logs: Logs) -> None:
    serde = Slow()
    producer = make(value_serializer=serde)
    await producer.start()
    calls = [
        start(producer.send("one", "slow")),
        start(producer.enqueue("one", "behind")),
        start(producer.send_many("one", ["slow2"])),
        start(producer.send_many("orders", ["a", "slow3"])),
    ]
    await steps()
    began = clock()
    await producer.flush()  # does not wait for what is not taken in
    await producer.close()
    assert clock() - began < 1
    for call in calls:
        with pytest.raises(ClosedError):
            await call
    assert sorted(serde.cancelled) == ["slow", "slow2", "slow3"]
    assert logs.values("one") == logs.values("orders") == []
    with pytest.raises(ClosedError):
        await producer.send("one", "slow")
    assert serde.waiting == {}


async def test_a_crash_fails_the_calls_that_wait(make: MakeProducer) -> None:
    serde = Slow()
    async with make(value_serializer=serde) as producer:
        call = start(producer.send("one", "slow"))
        await steps()
        producer._life.crashed(RuntimeError("broken"))
        with pytest.raises(InternalError, match="broken"):
            await call
        assert serde.cancelled == ["slow"]


async def test_a_call_that_waits_for_memory_lets_the_next_one_follow(
    make: MakeProducer, cluster: FakeCluster, logs: Logs
) -> None:
    """Its turn is over when it has its place among those that wait for memory."""
    serde = Slow()
    async with make(value_serializer=serde, buffer_memory=40_000) as producer:
        gate = cluster.hold(ApiKey.PRODUCE)
        first = start(producer.enqueue("one", "slow"))
        await steps()
        big = "x" * 30_000
        calls = [start(producer.enqueue("one", f"{n}{big}")) for n in range(3)]
        await steps()
        assert producer.statistics().waiting_for_room == 0
        serde.finish("slow")
        await until(lambda: producer.statistics().waiting_for_room == 2)
        assert not producer._waits.waiting
        cluster.reset(ApiKey.PRODUCE)
        cluster.on(ApiKey.PRODUCE, logs.produce)
        gate.release()
        await asyncio.gather(first, *calls)
    order = [value[:1] for value in logs.values("one")]
    assert order == [b"s", b"0", b"1", b"2"]


# ---- many ----------------------------------------------------------------------------


async def test_many_are_serialized_one_after_the_other(
    make: MakeProducer, logs: Logs
) -> None:
    """The first one fills the cache; nobody makes a task for each."""
    asked = []

    class Cached:
        is_warm = False

        def serialize(self, value: str, context: object) -> Any:
            return value.encode() if self.is_warm else self._cold(value)

        async def _cold(self, value: str) -> bytes:
            asked.append(len(asyncio.all_tasks()))
            await asyncio.sleep(1)
            self.is_warm = True
            return value.encode()

    async with make(value_serializer=Cached()) as producer:
        tasks = len(asyncio.all_tasks())
        values = [f"{n}" for n in range(1000)]
        await producer.send_many("one", values)
        assert asked == [tasks]
    assert logs.values("one") == [value.encode() for value in values]


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        ("slow!", SerializationError),
        (5, AttributeError),
        ("slow" + "x" * 2_000_000, RecordTooLarge),
        (NewRecord("v", partition=-1), ArgumentValueError),  # type: ignore[arg-type]
    ],
)
async def test_nothing_is_enqueued_if_one_of_many_fails(
    make: MakeProducer, logs: Logs, bad: Any, error: type[Exception]
) -> None:
    class Cold(Serde):
        def serialize(self, value: Any, context: Any) -> Any:
            return self.cold(value) if str(value).startswith("slow") else value.encode()

        async def cold(self, value: str) -> bytes:
            await asyncio.sleep(1)
            if value == "slow!":
                raise SerializationError("no")
            return value.encode()

    async with make(value_serializer=Cold()) as producer:
        values = ["a", "slow", "b", bad, "c"]
        many = start(producer.send_many("one", values))
        await steps()
        after = start(producer.send("one", "after"))
        with pytest.raises(error):
            await many
        await after
    assert logs.values("one") == [b"after"]


async def test_records_of_many_still_fail_one_by_one(
    make: MakeProducer, logs: Logs
) -> None:
    serde = Slow()
    async with make(value_serializer=serde) as producer:
        many = start(producer.send_many("one", ["a", "slow", "POISON"]))
        await steps()
        serde.finish("slow")
        with pytest.raises(DeliveriesFailed) as caught:
            await many
        assert list(caught.value.failures) == [2]
    assert logs.values("one") == [b"a", b"slow"]


async def test_the_list_of_many_may_change_meanwhile(
    make: MakeProducer, logs: Logs
) -> None:
    serde = Slow()
    async with make(value_serializer=serde) as producer:
        values = ["slow", "a"]
        many = start(producer.send_many("one", values))
        await steps()
        values.append("b")
        serde.finish("slow")
        assert len(await many) == 2
    assert logs.values("one") == [b"slow", b"a"]


# ---- transactions --------------------------------------------------------------------


@pytest.mark.parametrize("how", ["commit", "abort", "close"])
async def test_a_record_that_waits_is_not_part_of_a_transaction_that_ends(
    how: str,
) -> None:
    serde = Slow()
    async with world() as there:
        producer = there.producer(value_serializer=serde)
        await producer.start()
        tx = producer.transaction()
        await tx.begin()
        await tx.send("t", "one")
        waiting = start(tx.enqueue("t", "slow"))
        behind = start(tx.send("t", "behind"))
        await steps()
        began = clock()
        await {"commit": tx.commit, "abort": tx.abort, "close": producer.close}[how]()
        assert clock() - began < 2
        error = ClosedError if how == "close" else UsageError
        for call in (waiting, behind):
            with pytest.raises(error):
                await call
        assert serde.cancelled == ["slow"]
        if how != "close":
            async with producer.transaction() as tx:
                await tx.send("t", "two")
        committed = {"commit": [b"one", b"two"], "abort": [b"two"], "close": []}[how]
        await there.settle()
        assert there.committed() == committed


async def test_a_transaction_that_times_out_refuses_the_records_that_wait() -> None:
    """As it does those that wait for memory: its block need not wait for them."""
    serde = Slow()
    async with world() as there:
        options = {"value_serializer": serde, "transaction_timeout_ms": 2000}
        producer = there.producer(**options)
        await producer.start()
        tx = producer.transaction()
        await tx.begin()
        await tx.send("t", "one")
        began = clock()
        with pytest.raises(TransactionAborted, match="timed out"):
            await tx.send("t", "slow")
        assert clock() - began < 4
        assert serde.cancelled == ["slow"]
        with pytest.raises(TransactionAborted):
            await tx.commit()
        async with producer.transaction() as tx:
            await tx.send("t", "two")
        await there.settle()
        assert there.committed() == [b"two"]


async def test_a_transaction_keeps_the_order_of_its_calls() -> None:
    serde = Slow()
    topic: Any = Topic("t", value=serde)
    async with world() as there, there.producer() as producer:
        async with producer.transaction() as tx, asyncio.TaskGroup() as group:
            await tx.send("t", b"first")
            group.create_task(tx.send(topic, "slow"))
            await steps()
            group.create_task(tx.send("t", b"plain"))
            group.create_task(tx.send_many(topic, ["a", "b"]))  # type: ignore[arg-type]
            await steps()
            with pytest.raises(BufferFull):
                tx.enqueue_nowait("t", b"now")
            serde.finish("slow")
        await there.settle()
        assert there.committed() == [b"first", b"slow", b"plain", b"a", b"b"]


async def test_records_are_not_serialized_for_a_transaction_that_has_ended() -> None:
    serde = Serde()
    async with world() as there, there.producer(value_serializer=serde) as producer:
        async with producer.transaction() as tx:
            await tx.send("t", "one")
        with pytest.raises(UsageError, match="has ended"):
            await tx.send("t", "two")
        assert len(serde.seen) == 1


# ---- any order -----------------------------------------------------------------------

#: What happens to a call: it is ready at once; or sooner or later it is serialized, or
#: fails, or is cancelled, wherever it waits; or it has many records.
KINDS = ("ready", "slow", "fails", "cancelled", "many")


class Calls:
    """Calls for two topics, of which the test decides when they go on.

    A value is "KIND NUMBER". As a serializer it waits for all but those that are ready.
    """

    def __init__(self, calls: Sequence[tuple[str, str, bool]]) -> None:
        self.calls = calls
        self.tasks: list[asyncio.Task[Any]] = []
        self.futures: dict[str, asyncio.Future[None]] = {}

    def serialize(self, value: str, context: object) -> Any:
        del context
        return value.encode() if value.startswith("ready") else self._wait(value)

    async def _wait(self, value: str) -> bytes:
        self.futures[value] = asyncio.get_running_loop().create_future()
        await self.futures[value]
        if value.startswith("fails"):
            raise SerializationError(value)
        return value.encode()

    def deserialize(self, data: bytes, context: object) -> str:
        del context
        return data.decode()

    def values(self, number: int) -> list[str]:
        kind = self.calls[number][1]
        if kind == "many":
            return [f"slow {number}.{n}" for n in range(2)] + [f"ready {number}.2"]
        return [f"{kind} {number}"]

    async def start(self, producer: Producer) -> None:
        for number, (topic, kind, is_apart) in enumerate(self.calls):
            values, typed = self.values(number), cast("Any", Topic(topic, value=self))
            if kind == "many":
                call: Any = producer.send_many(typed, values)
            elif kind == "ready" and number % 2:  # the shortest way that there is
                call = producer.send(topic, values[0].encode())
            else:
                call = producer.send(typed, values[0])
            self.tasks.append(start(call))
            if is_apart:
                await steps()
        await steps()

    def waits(self, number: int) -> list[asyncio.Future[None]]:
        found = [self.futures.get(each) for each in self.values(number)]
        return [future for future in found if future and not future.done()]

    def able(self) -> list[int]:
        """Those that can go on."""
        return [
            number
            for number, (_, kind, _) in enumerate(self.calls)
            if not self.tasks[number].done()
            and (kind == "cancelled" or self.waits(number))
        ]

    async def go_on(self, number: int) -> None:
        if self.calls[number][1] == "cancelled":
            self.tasks[number].cancel()
        for future in self.waits(number):
            future.set_result(None)
        await steps()

    def check(self, logs: Logs) -> None:
        expected: dict[str, list[bytes]] = {"a": [], "b": []}
        for number, (topic, kind, _) in enumerate(self.calls):
            task = self.tasks[number]
            if kind == "cancelled":
                assert task.cancelled()
            elif kind == "fails":
                assert isinstance(task.exception(), SerializationError)
            else:
                assert task.exception() is None
                expected[topic] += [value.encode() for value in self.values(number)]
        assert {topic: logs.values(topic) for topic in expected} == expected


async def run_calls(
    of: Sequence[tuple[str, str, bool]], choose: Callable[[int], int]
) -> None:
    async with FakeCluster(topics={"a": 1, "b": 1}) as cluster:
        logs, calls = Logs(cluster), Calls(of)
        config = ProducerConfig.of(cluster.bootstrap, {"linger_ms": 0})
        async with Producer.from_config(config, dial=cluster.dial) as producer:
            await calls.start(producer)
            while able := calls.able():
                await calls.go_on(able[choose(len(able))])
            await asyncio.wait(calls.tasks)
            assert not producer._waits.waiting
        calls.check(logs)


@settings(max_examples=60)
@given(
    calls=st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from(KINDS), st.booleans()),
        min_size=1,
        max_size=12,
    ),
    choices=st.lists(st.integers(0, 11), min_size=30, max_size=30),
)
def test_the_written_order_is_that_of_the_calls(
    calls: list[tuple[str, str, bool]], choices: list[int]
) -> None:
    """Whatever order serializers end in; nothing is lost, nothing written twice."""
    rest = iter(choices)
    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        runner.run(run_calls(calls, lambda count: next(rest) % count))
