"""A partition waits for its deserializer, and its order holds whatever happens."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from kafkaio._config import ConsumerConfig
from kafkaio._consumer.batch import Frame
from kafkaio._consumer.reading.buffers import Fetched
from kafkaio._consumer.reading.deserializers import Rule
from kafkaio._consumer.reading.reader import Reader
from kafkaio._consumer.wanted import ReadSelection
from kafkaio._machines.read_committed import ReadUncommitted
from kafkaio._records.batch import Decompressor, RecordBatch, encode_batch
from kafkaio._runtime.supervisor import Supervisor
from kafkaio.errors import (
    ConfigurationError,
    DeserializationError,
    RegistryError,
    RequestTimeout,
)
from kafkaio.serde import DeserializationContext, Topic
from kafkaio.types import Record, TopicPartition
from tests.sim.loop import VirtualClockLoop

PARTITIONS = [TopicPartition("t", number) for number in range(3)]
#: Records of a partition, and of a batch.
COUNT, BATCH = 12, 4
#: What the deserializer does with a record; a number is how often before it succeeds.
HOWS = ["plain"] * 3 + ["later", "slow", "poison", "down", "sometimes"]
STEPS = ["poll", "one", "short", "batch", "tables", "lane", "raw"]
OTHERS = ["sleep", "seek", "pause", "resume", "revoke", "again", "topic"]


class Scripted:
    """A deserializer that does with each record what was decided for it."""

    def __init__(self, plan: dict[tuple[int, int], tuple[str, int]]) -> None:
        self.plan = plan
        self.tries = Counter[tuple[int, int]]()
        self.awaited = Counter[int]()
        self.calls = self.most = 0

    def deserialize(
        self, data: bytes, context: DeserializationContext
    ) -> object | Coroutine[Any, Any, object]:
        assert (context.topic, context.is_key) == ("t", False)
        self.calls += 1
        place = tuple(map(int, data.split(b"/")))
        how, times = self.plan.get(place, ("plain", 0))
        self.tries[place] += 1
        if how in {"later", "slow"}:
            return self._later(place, how)
        if how == "sometimes" and self.tries[place] <= times:
            return self._later(place, "down")
        if how == "poison":
            raise ValueError("poison")
        if how == "down" and self.tries[place] <= times:
            raise RegistryError("{}/{}".format(*place), retriable=True)
        return place

    def serialize(self, value: object, context: object) -> bytes:
        raise NotImplementedError

    async def _later(self, place: tuple[int, int], how: str) -> object:
        # What was dropped is cancelled, and may end behind the next look-up.
        awaited = self.awaited
        awaited[place[0]] += 1
        self.most = max(self.most, awaited[place[0]])
        try:
            await asyncio.sleep(3.0 if how == "slow" else 0.01)
            if how == "down":
                raise RegistryError("{}/{}".format(*place), retriable=True)
            return place
        finally:
            awaited[place[0]] -= 1


class World:
    """A reader over logs in memory, and what it must hand out."""

    def __init__(self, deserializer: Scripted, **options: Any) -> None:
        options = {"value_deserializer": deserializer, **options}
        self.deserializer = deserializer
        self.reader = Reader(
            ConsumerConfig.of("localhost:9092", options),
            on_change=lambda: None,
            on_news=self._notify,
        )
        self.reader.allowance = lambda: 256
        self.news = asyncio.Event()
        self.crashes: list[BaseException] = []
        self.supervisor = Supervisor("test", self.crashes.append)
        self.supervisor.start()
        self.reader.prepare_with(self.supervisor.start_soon)
        self.expected = dict.fromkeys(PARTITIONS, 0)
        self.errors = Counter[type[Exception]]()
        for tp in PARTITIONS:
            self.assign(tp)

    def _notify(self) -> None:
        self.news.set()

    def assign(self, tp: TopicPartition) -> None:
        self.reader.assign(tp, has_commits=False)
        self.reader.seek(tp, self.expected[tp])

    def fetch(self) -> None:
        for tp in PARTITIONS:
            entry = self.reader.positions.get(tp)
            if entry is None or entry.is_revoking or self.reader.buffers.size_of(tp):
                continue
            batches = [
                batch
                for batch in batches_of(tp)
                if batch.next_offset > entry.fetch_offset
            ][:2]
            if batches:
                frame = Frame(sum(batch.size_bytes for batch in batches))
                self.reader.add(tp, Fetched([*batches], ReadUncommitted(), frame))

    def take(self, how: str, partition: int) -> int:
        """Take one step of reading; return how many records it gave."""
        taken: list[Record] = []
        try:
            taken = self._taken(how, partition)
        except (DeserializationError, RegistryError) as error:
            self.failed(error)
        for record in taken:
            tp = record.topic_partition
            assert record.offset == self.expected[tp]
            value = tp.partition, record.offset
            assert record.value == (b"%d/%d" % value if how == "raw" else value)
            self.expected[tp] += 1
        self.check()
        return len(taken)

    def _taken(self, how: str, partition: int) -> list[Record]:
        reader = self.reader
        if how == "short":
            record = reader.handout.take()
            return [] if record is None else [record]
        reader.interrupt()
        reader.finish()
        reader.check()
        if how == "one":
            record = reader.take_one()
            return [] if record is None else [record]
        if how == "poll":
            return reader.take(5)
        if how == "batch":
            return [*(reader.take_batch(5) or ())]
        if how == "tables":
            return [r for _, piece in reader.take_pieces(7) for r in piece]
        tp, raw = PARTITIONS[partition], how == "raw"
        return [*(reader.take_of(tp, 3, raw=raw) or ())]

    def failed(self, error: Exception) -> None:
        self.errors[type(error)] += 1
        if isinstance(error, RegistryError):
            partition, offset = map(int, str(error).split("/"))
            assert offset == self.expected[PARTITIONS[partition]]
        if isinstance(error, DeserializationError):
            tp = error.topic_partition
            assert error.offset == self.expected[tp]
            assert error.record.value == b"%d/%d" % (tp.partition, error.offset)
            assert not error.is_key
            if self.errors[DeserializationError] % 2:
                self.deserializer.awaited = Counter()
                self.reader.seek(tp, error.next_offset)
                self.expected[tp] = error.next_offset

    def check(self) -> None:
        assert not self.crashes
        self.reader.sync()
        for tp in PARTITIONS:
            if tp in self.reader.positions:
                assert self.reader.positions[tp].position == self.expected[tp]
        for tp, place in self.reader.ledger.finished(None).offsets.items():
            assert place.offset <= self.expected[tp]

    def do(self, what: str, partition: int) -> None:
        """Do something other than reading."""
        reader, tp = self.reader, PARTITIONS[partition]
        self.deserializer.awaited = Counter()
        if what == "topic":
            topic = Topic("t", value=self.deserializer)
            wanted = ReadSelection.of(topic if partition else "t", None)
            reader.deserialize_as(wanted)
        elif tp not in reader.positions:
            self.assign(tp)
        elif what == "seek":
            self.expected[tp] = max(0, self.expected[tp] - 2)
            reader.seek(tp, self.expected[tp])
        elif what == "pause":
            reader.pause(tp)
        elif what == "resume":
            reader.resume(tp)
        elif what == "revoke":
            reader.revoke_requested(tp)
            reader.unassign(tp)
        else:
            reader.take_back(tp)
            reader.sync()
            self.expected[tp] = reader.positions[tp].position

    async def run(self, steps: list[tuple[str, int]]) -> None:
        for what, partition in steps:
            self.fetch()
            if what in STEPS:
                self.take(what, partition)
            elif what == "sleep":
                await asyncio.sleep((0, 0.02, 5)[partition])
            else:
                self.do(what, partition)
            self.check()
        await self.drain()

    async def drain(self) -> None:
        """Read everything to the end, and find nothing lost and nothing left."""
        for tp in PARTITIONS:
            if tp not in self.reader.positions:
                self.assign(tp)
            self.reader.resume(tp)
        async with asyncio.timeout(10_000):
            while any(at < COUNT for at in self.expected.values()):
                self.fetch()
                self.news.clear()
                before = self.errors.total()
                if not self.take("poll", 0) and self.errors.total() == before:
                    await self.news.wait()
        await asyncio.sleep(10)  # what was made ahead and dropped has ended
        assert not self.deserializer.awaited.total()
        assert self.deserializer.most <= 1  # one look-up of a partition at a time
        assert not self.reader.deserialization._aheads
        buffers = self.reader.buffers
        assert buffers.unread == 0
        await self.supervisor.aclose()
        assert not self.crashes


def batches_of(tp: TopicPartition) -> list[RecordBatch]:
    made = []
    for base in range(0, COUNT, BATCH):
        rows = [
            (0, None, b"%d/%d" % (tp.partition, base + n), ()) for n in range(BATCH)
        ]
        data = memoryview(bytearray(encode_batch(rows, base_offset=base)))
        made.append(RecordBatch(data, Decompressor()))
    return made


def on_virtual_time(work: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        runner.run(work)


places = st.tuples(st.integers(0, 2), st.integers(0, COUNT - 1))


@settings(max_examples=150)
@given(
    plan=st.dictionaries(
        places, st.tuples(st.sampled_from(HOWS), st.integers(1, 3)), max_size=20
    ),
    steps=st.lists(
        st.tuples(st.sampled_from(STEPS * 2 + OTHERS), st.integers(0, 2)), max_size=40
    ),
)
def test_order_holds_whatever_happens(
    plan: dict[tuple[int, int], tuple[str, int]], steps: list[tuple[str, int]]
) -> None:
    async def work() -> None:
        await World(Scripted(plan)).run(steps)

    on_virtual_time(work())


@settings(max_examples=30)
@given(
    hows=st.lists(st.sampled_from(["later", "slow"]), min_size=COUNT, max_size=COUNT),
    steps=st.lists(
        st.tuples(st.sampled_from(STEPS + OTHERS), st.integers(0, 2)), max_size=25
    ),
)
def test_order_holds_where_every_record_waits(
    hows: list[str], steps: list[tuple[str, int]]
) -> None:
    plan = {(p, n): (how, 0) for p in range(3) for n, how in enumerate(hows)}

    async def work() -> None:
        await World(Scripted(plan)).run(steps)

    on_virtual_time(work())


def test_a_failure_on_the_short_path_is_raised_once() -> None:
    async def work() -> None:
        world = World(Scripted({(n, 1): ("down", 1) for n in range(3)}))
        world.fetch()
        assert world.take("one", 0) == 1
        # The second record would succeed now, and waits for its error to be raised.
        for _ in range(3):
            assert world.take("short", 0) == 0
        tries = world.deserializer.tries
        assert [tries[place] for place in tries if place[1] == 1] == [1]
        await world.drain()
        assert world.errors == {RegistryError: 3}

    on_virtual_time(work())


def test_a_task_makes_many_records_ahead() -> None:
    async def work() -> None:
        plan = {(p, n): ("later", 0) for p in range(3) for n in range(COUNT)}
        world = World(Scripted(plan))
        started = 0
        start = world.supervisor.start_soon

        def counted(*args: Any) -> None:
            nonlocal started
            started += 1
            start(*args)

        world.reader.prepare_with(counted)
        await world.drain()
        # One for each chunk.
        assert started == len(PARTITIONS) * COUNT // BATCH

    on_virtual_time(work())


def test_back_off_grows_until_the_record_is_read() -> None:
    async def work() -> None:
        world = World(
            Scripted({(0, 2): ("down", 6)}),
            retry_backoff_ms=100,
            retry_backoff_max_ms=1000,
        )
        loop = asyncio.get_running_loop()
        times: list[float] = []
        failed = world.failed

        def note(error: Exception) -> None:
            times.append(loop.time())
            assert world.reader.deserialization.passing(error) is not None
            failed(error)

        world.failed = note  # type: ignore[method-assign]
        await world.drain()
        waits = [later - sooner for sooner, later in pairwise(times)]
        assert len(times) == 6
        for wait, least in zip(waits, [0.08, 0.16, 0.32, 0.64, 0.8], strict=True):
            assert least <= wait <= 1.3

    on_virtual_time(work())


def test_a_record_may_wait_for_a_limited_time() -> None:
    class Hangs(Scripted):
        async def _later(self, place: tuple[int, int], how: str) -> object:
            if self.tries[place] == 1:
                await asyncio.sleep(10_000)
            return place

    async def work() -> None:
        world = World(
            Hangs({(1, 1): ("later", 0)}),
            request_timeout_ms=2000,
            default_api_timeout_ms=3000,
        )
        failed: list[Exception] = []
        reader = world.reader
        while any(at < COUNT for at in world.expected.values()):
            world.fetch()
            world.news.clear()
            try:
                if not world.take("poll", 0):
                    # Everything else was read.
                    assert [*world.expected.values()].count(COUNT) >= 2
                    await world.news.wait()
            except RequestTimeout as error:
                failed.append(error)
        assert len(failed) == 1
        found = reader.deserialization.passing(failed[0])
        assert found == (1, pytest.approx(0.1, 0.3))
        assert "default_api_timeout_ms=3000 for t-1 at offset 1" in str(failed[0])

    on_virtual_time(work())


def record(**fields: Any) -> Record:
    made = {
        "topic": "t",
        "partition": 0,
        "offset": 7,
        "timestamp": 0,
        "key": b"k",
        "value": b"v",
        "headers": (("h", b"1"),),
    }
    return Record(**(made | fields))


def test_key_and_value_have_contexts_of_their_own() -> None:
    seen: list[DeserializationContext] = []

    def deserialize(data: bytes, context: DeserializationContext) -> bytes:
        seen.append(context)
        return data + b"!"

    rule = Rule(deserialize, deserialize)
    assert rule.begin(record(), is_key=True) == b"k!"
    assert rule.begin(record(), is_key=False) == b"v!"
    assert [(c.topic, c.is_key, c.field) for c in seen] == [
        ("t", True, "key"),
        ("t", False, "value"),
    ]
    assert [*seen[0].headers] == [("h", b"1")]


@pytest.mark.parametrize("is_key", [False, True])
def test_nothing_is_never_deserialized(is_key: bool) -> None:
    def fail(data: bytes) -> None:
        raise AssertionError(data)

    assert Rule(fail, fail).begin(record(key=None, value=None), is_key=is_key) is None


def test_a_function_that_returns_a_coroutine_is_an_error_of_the_program() -> None:
    async def later() -> None: ...

    made: list[Coroutine[Any, Any, None]] = []

    def deserialize(data: bytes) -> Coroutine[Any, Any, None]:
        made.append(later())
        return made[-1]

    rule = Rule(None, deserialize, "_deserializer")
    with pytest.raises(
        ConfigurationError, match=r"^value_deserializer returned a corou"
    ):
        rule.begin(record(), is_key=False)
    assert made[0].cr_frame is None  # it was closed


async def test_any_awaitable_of_a_method_is_awaited() -> None:
    class Ahead:
        """Has asked already, as a cache of futures has."""

        def deserialize(self, data: bytes, context: object) -> object:
            if data == b"v":
                return data
            future = asyncio.get_running_loop().create_future()
            future.set_result(data + b"!")
            return future

    rule = Rule(Ahead(), Ahead())
    for _ in range(2):
        found = rule.begin(record(), is_key=True)
        assert isinstance(found, Coroutine)
        assert await found == b"k!"
        assert rule.begin(record(), is_key=False) == b"v"
