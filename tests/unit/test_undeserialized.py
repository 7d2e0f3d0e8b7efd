"""Deserializers that wait, fail, or fail for a while: the same in every way to read."""

from __future__ import annotations

import asyncio
import gc
import pickle
import random
import threading
import warnings
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest

import kafkaio
from kafkaio import Consumer, DeserializationError, Producer, Record, TopicPartition
from kafkaio.errors import (
    ArgumentValueError,
    ConfigurationError,
    RegistryError,
    UsageError,
)
from kafkaio.serde import DeserializationContext
from kafkaio.testing import Broker

#: Partition 0 has the record at hand; partition 1 must not suffer from it.
TP, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)
GOOD = [b"0", b"1", b"2", b"bad", b"4", b"5"]
#: The offset of the bad one.
BAD = 3
OTHERS = [b"a", b"b", b"c"]

#: Reads until it is cancelled, or something is raised.
Way = Callable[[Consumer, list[Record]], Coroutine[Any, Any, None]]


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(topics={"t": 2, "dead": 1, "out": 1, "many": 3}) as made:
        async with Producer(made.bootstrap_servers) as producer:
            for value in GOOD:
                await producer.send("t", value, key=b"k" + value, partition=0)
            for value in OTHERS:
                await producer.send("t", value, partition=1)
        yield made


async def by_poll(consumer: Consumer, seen: list[Record]) -> None:
    while True:
        seen += (await consumer.poll()).records


async def by_iteration(consumer: Consumer, seen: list[Record]) -> None:
    async for record in consumer:
        seen.append(record)


async def by_anext(consumer: Consumer, seen: list[Record]) -> None:
    while True:
        seen.append(await anext(consumer))


async def by_batches(consumer: Consumer, seen: list[Record]) -> None:
    async for batch in consumer.batches():
        seen += batch.records


async def by_lanes(consumer: Consumer, seen: list[Record]) -> None:
    async def body(lane: kafkaio.Lane) -> None:
        async for record in lane:
            seen.append(record)

    await in_lanes(consumer, body)


async def by_lane_batches(consumer: Consumer, seen: list[Record]) -> None:
    async def body(lane: kafkaio.Lane) -> None:
        async for batch in lane.batches():
            seen.extend(batch.records)

    await in_lanes(consumer, body)


#: The lanes of each consumer, which are given out once.
lanes: dict[Consumer, list[kafkaio.Lane]] = {}


async def in_lanes(
    consumer: Consumer, body: Callable[[kafkaio.Lane], Coroutine[Any, Any, None]]
) -> None:
    """Run a body for both partitions; the first error is raised."""
    mine = lanes.setdefault(consumer, [])
    while len(mine) < 2:
        mine.append(await anext(consumer.partitions()))
    bodies = [asyncio.ensure_future(body(lane)) for lane in mine]
    try:
        done, _ = await asyncio.wait(bodies, return_when=asyncio.FIRST_EXCEPTION)
        for each in done:
            each.result()
    finally:
        for each in bodies:
            each.cancel()
        await asyncio.wait(bodies)


@pytest.fixture(autouse=True)
def _forget_lanes() -> Any:
    yield
    lanes.clear()


async def by_run(consumer: Consumer, seen: list[Record]) -> None:
    async def handle(record: Record) -> None:
        seen.append(record)

    await consumer.run(handle, ordering="partition")


READERS: list[Way] = [
    by_poll,
    by_iteration,
    by_anext,
    by_batches,
    by_lanes,
    by_lane_batches,
]
WAYS: list[Way] = [*READERS, by_run]
both = pytest.mark.parametrize("io_thread", [False, True])


def values(seen: list[Record], partition: int = 0) -> list[Any]:
    found = [record for record in seen if record.partition == partition]
    assert [record.offset for record in found] == sorted(r.offset for r in found)
    return [record.value for record in found]


async def until(
    condition: Callable[[], object], work: Coroutine[Any, Any, None] | None = None
) -> None:
    """Let the work run until something is so; raise what it raises."""
    task = None if work is None else asyncio.ensure_future(work)
    try:
        async with asyncio.timeout(20):
            while not condition():
                if task is not None and task.done():
                    task.result()
                await asyncio.sleep(0.005)
    finally:
        if task is not None:
            task.cancel()
            await asyncio.wait([task])


def made(broker: Broker, deserializer: object, **options: Any) -> Consumer[Any, Any]:
    options = {
        "topics": "t",
        "group_id": "g",
        "auto_offset_reset": "earliest",
        "value_deserializer": deserializer,
        **options,
    }
    return Consumer(broker.bootstrap_servers, **options)


class Text:
    """Deserializes text, at once; `bad` has a mind of its own."""

    def __init__(self) -> None:
        self.threads = set[threading.Thread]()

    def deserialize(self, data: bytes, context: DeserializationContext) -> Any:
        assert context.topic == "t"
        self.threads.add(threading.current_thread())
        return self.bad(data) if data == b"bad" else data.decode()

    def serialize(self, value: str, context: object) -> bytes:
        return value.encode()

    def bad(self, data: bytes) -> Any:
        raise ValueError(data)


class Always(Text):
    """The same, and every result has to be awaited."""

    def deserialize(self, data: bytes, context: DeserializationContext) -> Any:
        return self.later(data)

    async def later(self, data: bytes) -> Any:
        self.threads.add(threading.current_thread())
        await asyncio.sleep(0)
        return self.bad(data) if data == b"bad" else data.decode()


# What cannot be deserialized


@both
@pytest.mark.parametrize("kind", [Text, Always])
@pytest.mark.parametrize("way", WAYS)
async def test_the_error_says_which_record_and_it_can_be_left_out(
    broker: Broker, way: Way, kind: type[Text], *, io_thread: bool
) -> None:
    seen: list[Record] = []
    async with made(broker, kind(), io_thread=io_thread) as consumer:
        for _ in range(2):
            with pytest.raises(DeserializationError) as caught:
                await until(lambda: False, way(consumer, seen))
            error = caught.value
            assert (error.topic_partition, error.offset) == (TP, BAD)
            assert (error.record.key, error.record.value) == (b"kbad", b"bad")
            assert not error.is_key
            assert isinstance(error.__cause__, ValueError)
        again = pickle.loads(pickle.dumps(error))
        assert (again.topic_partition, again.next_offset) == (TP, BAD + 1)
        assert again.record == error.record
        consumer.seek(error.topic_partition, error.next_offset)
        await until(lambda: "5" in values(seen), way(consumer, seen))
    # A run of the second attempt may repeat what the first one had not finished.
    expected = ["0", "1", "2", "4", "5"]
    assert [*dict.fromkeys(values(seen))] == expected
    if way is not by_run:
        assert values(seen) == expected


# Not with lanes: their bodies are cancelled here with the one that fails, and on a busy
# machine before it is their turn. Each lane has its own errors anyway.
@pytest.mark.parametrize("way", [by_poll, by_iteration, by_anext, by_batches])
async def test_other_partitions_are_read_between_two_errors(
    broker: Broker, way: Way
) -> None:
    seen: list[Record] = []
    errors: list[Exception] = []
    async with made(broker, Text()) as consumer:
        while len(values(seen, 1)) < 3 or len(errors) < 3:
            try:
                await until(
                    lambda: len(values(seen, 1)) == 3 and len(errors) >= 3,
                    way(consumer, seen),
                )
            except DeserializationError as error:
                errors.append(error)
        assert len(errors) < 1000
    assert values(seen) == ["0", "1", "2"]


async def test_a_key_that_cannot_be_deserialized(broker: Broker) -> None:
    def of_key(data: bytes, context: DeserializationContext) -> str:
        assert context.is_key
        if data == b"kbad":
            raise KeyError("mine")
        return data.decode()

    seen: list[Record] = []
    async with made(broker, None, key_deserializer=of_key) as consumer:
        with pytest.raises(
            DeserializationError, match="the key of t-0 at offset 3"
        ) as e:
            await until(lambda: False, by_iteration(consumer, seen))
        assert e.value.is_key
        assert e.value.record.value == b"bad"
    assert [r.key for r in seen if r.partition == 0] == ["k0", "k1", "k2"]
    assert [r.key for r in seen if r.partition == 1] == [None] * len(values(seen, 1))


@pytest.mark.parametrize("kind", [Text, Always])
@pytest.mark.parametrize("transactional", [False, True])
async def test_the_dead_letter_gets_the_bytes(
    broker: Broker, kind: type[Text], *, transactional: bool
) -> None:
    servers = broker.bootstrap_servers
    seen: list[Record] = []

    async def handle(*args: Any) -> None:
        seen.append(args[-1])

    options: dict[str, Any] = {"transactional_id": "x"} if transactional else {}
    async with (
        Producer(servers, **options) as producer,
        made(broker, kind(), enable_auto_commit=not transactional) as consumer,
    ):
        running = asyncio.ensure_future(
            consumer.run(
                handle,
                ordering="partition",
                dead_letter=kafkaio.DeadLetter(producer, "dead"),
                **({"producer": producer} if transactional else {}),
            )
        )
        await until(lambda: running.done() or len(seen) == 8)
        await consumer.close()
        await running
    assert values(seen) == ["0", "1", "2", "4", "5"]
    async with Consumer(
        servers,
        topics="dead",
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    ) as letters:
        [letter] = (await letters.poll(timeout=10)).records
    assert (letter.key, letter.value) == (b"kbad", b"bad")
    headers = dict(letter.headers)
    assert headers["dead-letter-offset"] == b"3"
    assert headers["dead-letter-error"] == b"kafkaio.DeserializationError"


async def test_exactly_once_raises_behind_what_it_copied(broker: Broker) -> None:
    seen: list[Record] = []

    async def copy(tx: Any, records: list[Record]) -> None:
        seen.extend(records)

    async with (
        Producer(broker.bootstrap_servers, transactional_id="x") as producer,
        made(broker, Always(), enable_auto_commit=False) as consumer,
    ):
        with pytest.raises(DeserializationError) as caught:
            await until(lambda: False, kafkaio.exactly_once(consumer, producer, copy))
        assert caught.value.offset == BAD
        assert (await consumer.committed([TP]))[TP].offset == BAD
    assert values(seen) == ["0", "1", "2"]


@both
@pytest.mark.parametrize("way", WAYS)
async def test_a_function_that_returns_a_coroutine_is_the_programs_error(
    broker: Broker, way: Way, *, io_thread: bool
) -> None:
    async def later(data: bytes) -> str:
        return data.decode()

    dead: list[Record] = []

    async def bury(record: Record, error: Exception) -> None:
        dead.append(record)

    async def handle(record: Record) -> None:
        raise AssertionError(record)

    retry = kafkaio.Retry(attempts=100, backoff_ms=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        async with made(
            broker, lambda data: later(data), io_thread=io_thread
        ) as reader:
            work = (
                reader.run(handle, retry=retry, dead_letter=bury)
                if way is by_run
                else way(reader, [])
            )
            with pytest.raises(ConfigurationError, match="value_deserializer returned"):
                await until(lambda: False, work)
        gc.collect()
    assert not dead


# What passes


class Down(Text):
    """As a registry that is down, and comes back."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.left = times
        self.tries = 0

    def bad(self, data: bytes) -> Any:
        self.tries += 1
        if self.left:
            self.left -= 1
            raise RegistryError("down", retriable=True)
        return data.decode()


class AlwaysDown(Down, Always):
    """The same, where every result has to be awaited."""


@both
@pytest.mark.parametrize("kind", [Down, AlwaysDown])
@pytest.mark.parametrize("way", READERS)
async def test_what_passes_is_raised_as_it_is_and_tried_again(
    broker: Broker, way: Way, kind: type[Down], *, io_thread: bool
) -> None:
    deserializer = kind(3)
    seen: list[Record] = []
    errors: list[Exception] = []
    async with made(
        broker, deserializer, io_thread=io_thread, retry_backoff_ms=20
    ) as consumer:
        while len(seen) < 9:
            try:
                await until(lambda: len(seen) == 9, way(consumer, seen))
            except RegistryError as error:
                assert "bad" not in values(seen)
                errors.append(error)
    assert values(seen) == [value.decode() for value in GOOD]
    assert values(seen, 1) == ["a", "b", "c"]
    # One for each attempt, and no attempt without one.
    assert len(errors) == 3
    assert deserializer.tries == 4


@both
@pytest.mark.parametrize("kind", [Down, AlwaysDown])
async def test_run_reports_what_passes_and_goes_on(
    broker: Broker, kind: type[Down], *, io_thread: bool
) -> None:
    reported: list[tuple[str, int, Exception]] = []

    class Observer:
        def retrying(
            self, what: str, attempt: int, delay: float, error: Exception
        ) -> None:
            reported.append((what, attempt, error))

    seen: list[Record] = []
    dead: list[Record] = []
    tries = 0

    async def handle(record: Record) -> None:
        nonlocal tries
        if record.offset == BAD:
            tries += 1
            if tries < 2:  # attempts to deserialize do not count
                raise OSError("handler")
        seen.append(record)

    async def bury(record: Record, error: Exception) -> None:
        dead.append(record)

    async with made(
        broker, kind(3), io_thread=io_thread, retry_backoff_ms=20, observer=Observer()
    ) as consumer:
        running = asyncio.ensure_future(
            consumer.run(
                handle,
                ordering="partition",
                retry=kafkaio.Retry(attempts=2, backoff_ms=1),
                dead_letter=bury,
            )
        )
        await until(lambda: running.done() or len(seen) == 9)
        await consumer.close()
        await running
    assert not dead
    assert values(seen) == [value.decode() for value in GOOD]
    passing = [each for each in reported if isinstance(each[2], RegistryError)]
    assert [attempt for _, attempt, _ in passing] == [1, 2, 3]
    assert {what for what, _, _ in passing} == {"the deserializer of t-0 at offset 3"}


async def test_exactly_once_goes_on_with_the_other_partitions(broker: Broker) -> None:
    deserializer = Down(10**6)
    seen: list[Record] = []

    async def copy(tx: Any, records: list[Record]) -> None:
        for record in records:
            await tx.send("out", record.value.encode())
        seen.extend(records)

    async with (
        Producer(broker.bootstrap_servers, transactional_id="x") as producer,
        made(
            broker, deserializer, enable_auto_commit=False, retry_backoff_ms=20
        ) as consumer,
    ):
        copying = asyncio.ensure_future(
            kafkaio.exactly_once(consumer, producer, copy, max_wait=0.05)
        )
        await until(lambda: copying.done() or deserializer.tries > 3)
        async with Producer(broker.bootstrap_servers) as other:
            await other.send("t", b"d", partition=1)
        await until(lambda: copying.done() or "d" in values(seen, 1))
        assert values(seen) == ["0", "1", "2"]
        deserializer.left = 0
        await until(lambda: copying.done() or "5" in values(seen))
        copying.cancel()
        await asyncio.wait([copying])
    assert values(seen) == [value.decode() for value in GOOD]
    assert values(seen, 1) == ["a", "b", "c", "d"]


async def test_run_in_transactions_goes_on_with_the_other_partitions(
    broker: Broker,
) -> None:
    deserializer = AlwaysDown(10**6)
    servers = broker.bootstrap_servers

    async def copy(tx: Any, record: Record) -> None:
        await tx.send("out", record.value.encode())

    async with (
        Producer(servers, transactional_id="x") as producer,
        made(
            broker, deserializer, enable_auto_commit=False, retry_backoff_ms=20
        ) as consumer,
    ):
        running = asyncio.ensure_future(
            consumer.run(copy, producer=producer, max_wait=0.02)
        )
        await until(lambda: running.done() or deserializer.tries > 2)
        async with Producer(servers) as other:
            await other.send("t", b"d", partition=1)
        async with asyncio.timeout(20):
            while True:
                at = (await consumer.committed([OTHER]))[OTHER]
                if running.done() or (at is not None and at.offset == 4):
                    break
        deserializer.left = 0
        async with asyncio.timeout(20):
            while True:
                at = (await consumer.committed([TP]))[TP]
                if running.done() or (at is not None and at.offset == 6):
                    break
        await consumer.close()
        await running
    async with Consumer(
        servers,
        topics="out",
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    ) as reader:
        copies = [(await anext(reader)).value for _ in range(10)]
        assert not (await reader.poll(timeout=0)).records
    assert sorted(copies) == sorted([*GOOD, *OTHERS, b"d"])


# What waits


class Gate(Text):
    """Holds up one record until it is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.open = asyncio.Event()
        self.waiting = self.cancelled = 0
        self.loop: asyncio.AbstractEventLoop | None = None

    def bad(self, data: bytes) -> Any:
        return self.wait(data)

    async def wait(self, data: bytes) -> str:
        self.loop = asyncio.get_running_loop()
        self.waiting += 1
        try:
            await self.open.wait()
        except BaseException:
            self.cancelled += 1
            raise
        return data.decode()


@both
@pytest.mark.parametrize("way", WAYS)
async def test_a_record_holds_up_its_partition_alone(
    broker: Broker, way: Way, *, io_thread: bool
) -> None:
    gate = Gate()
    seen: list[Record] = []
    async with made(broker, gate, io_thread=io_thread) as consumer:
        reading = asyncio.ensure_future(way(consumer, seen))
        await until(lambda: gate.waiting and len(values(seen, 1)) == 3)
        async with Producer(broker.bootstrap_servers) as producer:
            for n in range(5):
                await producer.send("t", b"%d" % n, partition=1)
                count = 4 + n
                await until(
                    lambda: reading.done() or len(values(seen, 1)) == count  # noqa: B023
                )
        assert values(seen) == ["0", "1", "2"]
        assert gate.loop is asyncio.get_running_loop()  # the user's, in any case
        gate.open.set()
        await until(lambda: reading.done() or len(values(seen)) == 6)
        assert gate.waiting == 1
        reading.cancel()
        await asyncio.wait([reading])
    assert values(seen) == [value.decode() for value in GOOD]
    assert [value for value in values(seen, 1) if value in "abc"] == ["a", "b", "c"]


async def test_nothing_behind_a_record_that_waits_is_committed(broker: Broker) -> None:
    gate = Gate()
    seen: list[Record] = []
    async with made(broker, gate, auto_commit_interval_ms=20) as consumer:
        reading = asyncio.ensure_future(by_poll(consumer, seen))
        await until(lambda: gate.waiting and len(values(seen, 1)) == 3)
        while True:
            at = await consumer.committed([TP, OTHER])
            if at[TP] and at[OTHER] and at[OTHER].offset == 3:
                break
        assert at[TP].offset == BAD
        assert await consumer.position(TP) == BAD
        await consumer.commit()
        assert (await consumer.committed([TP]))[TP].offset == BAD
        reading.cancel()
        await asyncio.wait([reading])


async def test_many_records_that_wait_leave_the_workers_to_others(
    broker: Broker,
) -> None:
    class Held(Gate):
        def deserialize(self, data: bytes, context: DeserializationContext) -> Any:
            return self.wait(data) if data[:1].isdigit() else data.decode()

    gate = Held()
    seen: list[Record] = []

    async def handle(record: Record) -> None:
        seen.append(record)

    async with made(broker, gate) as consumer:
        running = asyncio.ensure_future(
            consumer.run(handle, concurrency=2, ordering="none")
        )
        await until(lambda: running.done() or gate.waiting == 5)
        await until(lambda: running.done() or len(values(seen, 1)) == 3)
        gate.open.set()
        await until(lambda: running.done() or len(seen) == 9)
        running.cancel()
        await asyncio.wait([running])


class Moody(Text):
    """Does with each record something else, decided by chance."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.dice = random.Random(seed)
        self.moods: dict[bytes, list[str]] = {}
        self.poisonous = set[bytes]()

    def deserialize(self, data: bytes, context: DeserializationContext) -> Any:
        if data not in self.moods:
            kinds = ["plain"] * 4 + ["later"] * 3 + ["down", "late and down", "poison"]
            self.moods[data] = self.dice.choices(kinds, k=self.dice.randint(1, 3))
        mood = self.moods[data][0]
        if len(self.moods[data]) > 1 and mood != "poison":
            del self.moods[data][0]
        return self.later(data, mood) if "late" in mood else self.result(data, mood)

    async def later(self, data: bytes, mood: str) -> Any:
        await asyncio.sleep(self.dice.choice([0, 0.001, 0.01]))
        return self.result(data, mood)

    def result(self, data: bytes, mood: str) -> Any:
        if mood == "poison":
            self.poisonous.add(data)
            raise ValueError(data)
        if "down" in mood:
            self.moods[data] = ["plain"]
            raise RegistryError("down", retriable=True)
        return data.decode()


@both
@pytest.mark.parametrize("ordering", ["key", "partition", "none"])
async def test_run_keeps_its_order_whatever_the_deserializer_does(
    broker: Broker, ordering: Any, *, io_thread: bool
) -> None:
    async with Producer(broker.bootstrap_servers) as producer:
        for n in range(90):
            value, key = b"%d" % n, b"%d" % (n % 5)
            await producer.enqueue("many", value, key=key, partition=n % 3)
    seen: list[Record] = []
    dead: list[Record] = []

    async def handle(record: Record) -> None:
        seen.append(record)

    async def bury(record: Record, error: Exception) -> None:
        assert isinstance(error, DeserializationError)
        assert isinstance(record.value, bytes)
        dead.append(record)

    moody = Moody(7)
    async with made(
        broker, moody, topics="many", io_thread=io_thread, retry_backoff_ms=5
    ) as consumer:
        running = asyncio.ensure_future(
            consumer.run(handle, concurrency=8, ordering=ordering, dead_letter=bury)
        )
        await until(lambda: running.done() or len(seen) + len(dead) == 90)
        await consumer.commit()
        at = await consumer.committed([TopicPartition("many", n) for n in range(3)])
        assert [end.offset for end in at.values() if end is not None] == [30] * 3
        await consumer.close()
        await running
    assert sorted(int(r.value) for r in [*seen, *dead]) == [*range(90)]
    assert {r.value for r in dead} == moody.poisonous
    if ordering != "none":
        strands: dict[object, list[int]] = {}
        for record in seen:
            strand = record.key if ordering == "key" else None
            strands.setdefault((record.partition, strand), []).append(record.offset)
        assert all(offsets == sorted(offsets) for offsets in strands.values())


@both
@pytest.mark.parametrize("way", WAYS)
async def test_it_closes_at_once_while_a_record_waits(
    broker: Broker, way: Way, *, io_thread: bool
) -> None:
    gate = Gate()
    seen: list[Record] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        async with made(broker, gate, io_thread=io_thread) as consumer:
            reading = asyncio.ensure_future(way(consumer, seen))
            await until(lambda: gate.waiting)
            async with asyncio.timeout(10):
                # A handler's record is waited for.
                await consumer.close(timeout=0.5 if way is by_run else None)
        with suppress(UsageError, kafkaio.ClosedError, asyncio.CancelledError):
            reading.cancel()
            await reading
        await until(lambda: gate.cancelled == 1)
        gc.collect()
    assert not [str(w.message) for w in caught if "never awaited" in str(w.message)]


@pytest.mark.parametrize("what", ["seek", "pause", "unsubscribe"])
async def test_what_happens_while_a_record_waits(broker: Broker, what: str) -> None:
    gate = Gate()
    seen: list[Record] = []
    async with made(broker, gate) as consumer:
        await until(lambda: gate.waiting, by_iteration(consumer, seen))
        if what == "seek":
            consumer.seek(TP, BAD + 1)
            await until(lambda: gate.cancelled)
            await until(lambda: "5" in values(seen), by_iteration(consumer, seen))
            assert values(seen) == ["0", "1", "2", "4", "5"]
        elif what == "pause":
            consumer.pause(TP)
            gate.open.set()
            assert not (await consumer.poll(timeout=0.2)).records or values(seen, 1)
            assert "bad" not in values(seen)
            consumer.resume(TP)
            await until(lambda: "5" in values(seen), by_iteration(consumer, seen))
            assert values(seen) == [value.decode() for value in GOOD]
        else:
            consumer.unsubscribe()
            await until(lambda: gate.cancelled)
            gate.open.set()
            consumer.subscribe("t")
            seen.clear()
            await until(lambda: "5" in values(seen), by_iteration(consumer, seen))
            assert values(seen)[-3:] == ["bad", "4", "5"]


async def test_a_partition_that_is_given_up_waits_for_nothing(broker: Broker) -> None:
    gate = Gate()
    seen: list[Record] = []
    options: dict[str, Any] = {
        "heartbeat_interval_ms": 100,
        "group_protocol": "classic",
    }
    async with made(broker, gate, **options) as first:
        reading = asyncio.ensure_future(by_poll(first, seen))
        await until(lambda: gate.waiting == 1)
        async with made(broker, Text(), client_id="second", **options) as second:
            # Whichever has the partition then: it was given up in between, or not.
            await until(lambda: len(first.assignment) == len(second.assignment) == 1)
            await until(lambda: gate.cancelled == (TP in second.assignment))
            gate.open.set()
            if TP in first.assignment:
                await until(lambda: "5" in values(seen))
        reading.cancel()
        await asyncio.wait([reading])


# Topics


async def test_topics_with_serdes(broker: Broker) -> None:
    servers = broker.bootstrap_servers
    async with Producer(servers) as producer:
        await producer.send("out", b"raw", key=b"key")
    typed = kafkaio.Topic("t", value=Always())

    def of_option(data: bytes) -> str:
        return "option " + data.decode()

    async with Consumer(
        servers,
        topics=[typed, "out"],
        auto_offset_reset="earliest",
        key_deserializer=of_option,
        value_deserializer=of_option,
    ) as consumer:
        assert consumer.subscription == {"t", "out"}
        seen: list[Record[Any, Any]] = []
        with pytest.raises(DeserializationError):
            await until(lambda: False, by_iteration(consumer, seen))
        consumer.seek(TP, BAD + 1)
        await until(lambda: len(seen) == 9, by_iteration(consumer, seen))
    by_topic = {(r.topic, r.partition): (r.key, r.value) for r in seen}
    assert by_topic["out", 0] == ("option key", "option raw")
    # Without a serde keys are bytes, whatever the option says.
    assert by_topic["t", 0] == (b"k5", "5")


async def test_a_topic_that_comes_later(broker: Broker) -> None:
    async with Consumer(
        broker.bootstrap_servers, topics="t", auto_offset_reset="earliest"
    ) as consumer:
        stream = aiter(consumer)
        first = await anext(stream)
        assert isinstance(first.value, bytes)
        consumer.subscribe(kafkaio.Topic("t", value=Text()))
        seen: list[Record[Any, Any]] = [first]
        while len(seen) < 3:
            record = await anext(stream)
            assert isinstance(record.value, str)
            seen.append(record)
        consumer.subscribe("t")
        while len(seen) < 9:
            record = await anext(stream)
            assert isinstance(record.value, bytes)
            seen.append(record)
    assert [r.offset for r in seen if r.partition == 0] == [*range(6)]


def test_one_topic_has_one_serde() -> None:
    serde = Text()
    same = [kafkaio.Topic("t", value=serde), kafkaio.Topic("t", value=serde), "t"]
    consumer = Consumer("localhost:9092", topics=same)
    assert consumer.subscription == {"t"}
    with pytest.raises(ArgumentValueError, match="'t' is there twice"):
        Consumer("localhost:9092", topics=[*same, kafkaio.Topic("t", value=Text())])
    with pytest.raises(ArgumentValueError, match="'t' is there twice"):
        Consumer("localhost:9092", topics=[*same, kafkaio.Topic("t")])


@both
async def test_deserializers_are_called_where_the_docs_say(
    broker: Broker, *, io_thread: bool
) -> None:
    plain, always = Down(0), AlwaysDown(0)
    here = threading.current_thread()
    for deserializer in (plain, always):
        seen: list[Record] = []
        async with made(
            broker, deserializer, group_id=None, io_thread=io_thread
        ) as consumer:
            await until(lambda: len(seen) == 9, by_poll(consumer, seen))  # noqa: B023
    assert (here in plain.threads) is not io_thread
    assert always.threads == {here}
