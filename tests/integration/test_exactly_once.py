"""Exactly once on real brokers: `exactly_once`, `run` with a producer, and by hand.

Members of a group copy a topic in transactions. What they wrote is read by librdkafka
and by Java's console consumer, each with read_committed, and judged as in the torture
(`tests.torture.copied`): every record once, those of a key in order, and the committed
offsets are the ends of the input.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import TypeAlias

import pytest

from kafkaio import (
    ClosedError,
    CommitFailed,
    Consumer,
    DeadLetter,
    PartitionLost,
    Producer,
    Record,
    Retry,
    RevokeRequested,
    TransactionAborted,
    exactly_once,
)
from kafkaio._producer.transaction import Transaction, TransactionOutcome
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from tests.integration.committed import (
    group_offsets,
    librdkafkas_offsets,
    librdkafkas_order,
    ours,
    settled,
)
from tests.integration.groups import TOOLS, member, until
from tests.integration.keepers import BROKERS, COOPERATIVE, EAGER
from tests.support.interceptor import Interceptor
from tests.support.patience import HANGS
from tests.torture.copied import Coordinated, Evidence, Replay, judge
from tests.torture.inspection import CONSOLE_CONSUMER

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.kafka_versions("2.8+"),
    pytest.mark.not_embedded("of the real brokers; units show the embedded one"),
]

PARTITIONS = 4
#: Two of them in each partition.
KEYS = 8
#: The time that each transaction of a loop waits for more records, in seconds.
WAIT = 0.05
MOST = 40


class Mistake(Exception):
    """What a handler raises."""


class Copying:
    """An input, its output, and the members of the group that copies it."""

    def __init__(self, kafka: Kafka, topic: TopicFactory, protocol: str) -> None:
        self.kafka = kafka
        self.servers = kafka.bootstrap_servers
        self.source = topic(PARTITIONS)
        self.output = topic(PARTITIONS)
        self.group = f"group-{uuid.uuid4()}"
        self.protocol = protocol
        #: How many records of each key were sent.
        self.sent: Counter[int] = Counter()

    async def send(self, each: int) -> None:
        """Send so many records of each key."""
        async with Producer(self.servers) as producer:
            await self._send(producer, each)

    async def _send(self, producer: Producer, each: int) -> None:
        for _ in range(each):
            for key in range(KEYS):
                value = b"%d %d" % (key, self.sent[key])
                producer.enqueue_nowait(
                    self.source, value, key=b"%d" % key, partition=key % PARTITIONS
                )
                self.sent[key] += 1
        await producer.flush()

    @asynccontextmanager
    async def traffic(self) -> AsyncIterator[None]:
        """Send records all the while."""
        is_over = asyncio.Event()

        async def send() -> None:
            async with Producer(self.servers) as producer:
                while not is_over.is_set():
                    await self._send(producer, 1)
                    await asyncio.sleep(0.05)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(send())
            try:
                yield
            finally:
                is_over.set()

    def consumer(self, **options: object) -> Consumer:
        if self.protocol == BROKERS:
            options["group_protocol"] = "consumer"
        else:
            options["partition_assignment_strategy"] = (self.protocol,)
        return member(
            self.kafka,
            self.source,
            self.group,
            enable_auto_commit=False,
            isolation_level="read_committed",
            **options,
        )

    def producer(self, **options: object) -> Producer:
        options = {"bootstrap_servers": self.servers, "linger_ms": 0} | options
        name = f"txn-{uuid.uuid4()}"
        return Producer(transactional_id=name, **options)  # type: ignore[arg-type]

    async def all_copied(self) -> None:
        """Wait until the group has committed the end of the input."""
        ends = [
            sum(self.sent[key] for key in range(KEYS) if key % PARTITIONS == partition)
            for partition in range(PARTITIONS)
        ]
        async with asyncio.timeout(HANGS):
            while await self.offsets() != ends:
                pass

    async def offsets(self) -> list[int | None]:
        return await group_offsets(self.servers, self.group, self.source, PARTITIONS)

    async def seen(self) -> list[bytes]:
        """What a reader of ours sees of the output, with no transaction open."""
        await settled(self.servers, self.output, PARTITIONS)
        return await ours(self.servers, self.output, PARTITIONS)

    async def judge(self, *, java: bool = False) -> None:
        """Let others read the output, and compare it with the input.

        Args:
            java: whether Java's console consumer is the reader, and not librdkafka.
        """
        found = await self.seen()
        values = await (self._javas() if java else self._librdkafkas())
        ends: Counter[int] = Counter()
        for key, count in self.sent.items():
            ends[key % PARTITIONS] += count
        offsets = await librdkafkas_offsets(
            self.servers, self.group, self.source, PARTITIONS
        )
        verdict = judge(
            Evidence(
                sent=self.sent,
                read=values,
                replay=Replay({"ours": [value.decode() for value in found]}),
                ends=ends,
                committed=offsets,
                coordinated=Coordinated(committed=1),
            )
        )
        assert not verdict.wrong, str(verdict)

    async def _librdkafkas(self) -> list[str]:
        found = await librdkafkas_order(self.servers, self.output, PARTITIONS)
        return [value.decode() for values in found for value in values]

    async def _javas(self) -> list[str]:
        # Without --max-messages it ends when nothing comes for so long.
        output = await TOOLS.run(
            CONSOLE_CONSUMER,
            *("--bootstrap-server", self.servers, "--topic", self.output),
            *("--from-beginning", "--isolation-level", "read_committed"),
            *("--timeout-ms", "8000"),
        )
        return output.lines


class Member:
    """A consumer and a producer that copy, with what their handler does besides."""

    def __init__(self, there: Copying, name: str, **options: object) -> None:
        self.there = there
        self.name = name
        self.consumer = there.consumer(**options)
        self.producer = there.producer()
        self.is_leaving = False
        self.handled = 0
        #: The offset behind the last record that was handled, by partition.
        self.places: dict[int, int] = {}
        #: Called before and after each copy; may raise.
        self.before: Callable[[Record], None] = lambda record: None
        self.after: Callable[[Record], None] = lambda record: None
        self.pause = 0.0

    async def copy(self, tx: Transaction, record: Record) -> None:
        assert record.value is not None
        self.before(record)
        value = b"%s %s" % (record.value, self.name.encode())
        await tx.enqueue(
            self.there.output, value, key=record.key, partition=record.partition
        )
        self.handled += 1
        place = max(record.offset + 1, self.places.get(record.partition, 0))
        self.places[record.partition] = place
        self.after(record)

    async def copy_all(self, tx: Transaction, records: Iterable[Record]) -> None:
        for record in records:
            await self.copy(tx, record)
        await asyncio.sleep(self.pause)

    async def copy_one(self, tx: Transaction, record: Record) -> None:
        await self.copy(tx, record)
        await asyncio.sleep(self.pause / MOST)

    async def leave(self) -> None:
        self.is_leaving = True
        await self.consumer.close()


#: Copies until the member leaves.
Way: TypeAlias = Callable[..., Awaitable[None]]


async def loop(one: Member, retry: Retry | None = None) -> None:
    await exactly_once(
        one.consumer,
        one.producer,
        one.copy_all,
        max_records=MOST,
        max_wait=WAIT,
        retry=retry,
    )


async def run(one: Member, retry: Retry | None = None) -> None:
    await one.consumer.run(
        one.copy_one,
        producer=one.producer,
        concurrency=8,
        max_records=MOST,
        max_wait=WAIT,
        retry=retry,
    )


async def by_hand(one: Member, retry: Retry | None = None) -> None:
    again = (TransactionAborted, PartitionLost, CommitFailed)
    while not one.is_leaving:
        with suppress(*again, *(retry.on if retry else ())):
            async with one.producer.transaction(one.consumer) as tx:
                poll = await one.consumer.poll(timeout=0.2, max_records=MOST)
                await one.copy_all(tx, poll.records)


WAYS = pytest.mark.parametrize("way", [loop, run, by_hand])
LOOPS = pytest.mark.parametrize("way", [loop, run])
PROTOCOLS = pytest.mark.parametrize(
    "protocol",
    [
        pytest.param(BROKERS, marks=pytest.mark.kafka_versions("4.0+")),
        COOPERATIVE,
        EAGER,
    ],
)


@asynccontextmanager
async def copying(
    one: Member, way: Way, retry: Retry | None = None
) -> AsyncIterator[asyncio.Task[None]]:
    """Copy within the block; then leave, in good order."""
    async with one.producer, one.consumer:
        task = asyncio.ensure_future(way(one, retry))
        assert isinstance(task, asyncio.Task)
        try:
            yield task
            if not task.done():
                await one.leave()
                with suppress(ClosedError):
                    await task
        finally:
            task.cancel()
            await asyncio.wait([task])


@pytest.mark.kafka_versions("4.0+")
@pytest.mark.parametrize(
    ("way", "protocol"), [(loop, BROKERS), (run, COOPERATIVE), (by_hand, EAGER)]
)
async def test_each_way_once(
    real_kafka: Kafka, topic: TopicFactory, protocol: str, way: Way
) -> None:
    """The short form of the next one, with every change."""
    await check_a_member_that_comes_and_goes(real_kafka, topic, protocol, way)


@PROTOCOLS
@WAYS
async def test_a_member_joins_and_leaves(
    real_kafka: Kafka, topic: TopicFactory, protocol: str, way: Way
) -> None:
    await check_a_member_that_comes_and_goes(
        real_kafka, topic, protocol, way, java=way is loop
    )


async def check_a_member_that_comes_and_goes(
    real_kafka: Kafka,
    topic: TopicFactory,
    protocol: str,
    way: Way,
    *,
    java: bool = False,
) -> None:
    there = Copying(real_kafka, topic, protocol)
    one, two = Member(there, "one"), Member(there, "two")
    one.pause = two.pause = 0.05
    async with copying(one, way):
        async with there.traffic():
            await until(lambda: one.handled >= 3 * KEYS)
            async with copying(two, way):
                await until(lambda: len(two.consumer.assignment) == PARTITIONS // 2)
                await until(lambda: two.handled >= 3 * KEYS)
            before = one.handled
            await until(lambda: len(one.consumer.assignment) == PARTITIONS)
            await until(lambda: one.handled >= before + 3 * KEYS)
        await there.all_copied()
    # The members waited for each other: nothing was done twice, or aborted.
    assert one.handled + two.handled == there.sent.total()
    await there.judge(java=java)


@WAYS
async def test_a_handler_that_fails_twice(
    real_kafka: Kafka, topic: TopicFactory, way: Way
) -> None:
    """What it did before is aborted, and done again."""
    there = Copying(real_kafka, topic, COOPERATIVE)
    await there.send(10)
    one, failed = Member(there, "one"), 0

    def fail(record: Record) -> None:
        nonlocal failed
        if record.value == b"5 7" and failed < 2:
            failed += 1
            raise Mistake

    # run() calls the handler again in the same transaction: it must not have sent.
    if way is run:
        one.before = fail
    else:
        one.after = fail
    async with copying(one, way, Retry(attempts=3, backoff_ms=1, on=(Mistake,))):
        await there.all_copied()
    assert failed == 2
    await there.judge()


@WAYS
async def test_a_handler_that_fails_for_good(
    real_kafka: Kafka, topic: TopicFactory, way: Way
) -> None:
    """All of its transaction is aborted, and the same consumer reads it again."""
    there = Copying(real_kafka, topic, COOPERATIVE)
    one = Member(there, "one")
    await there.send(2)
    async with one.producer, one.consumer:
        task = asyncio.ensure_future(way(one))
        await there.all_copied()
        before, seen = await there.offsets(), await there.seen()

        def fail(record: Record) -> None:
            if record.value in {b"5 3", b"6 3"}:
                raise Mistake

        one.after = fail
        await there.send(5)
        with pytest.raises(Mistake):
            async with asyncio.timeout(HANGS):
                await task
        # Whatever was committed since, nothing of the last transaction was.
        assert b"5 3 one" not in await there.seen()
        for first, now in zip(before, await there.offsets(), strict=True):
            assert first is not None
            assert now is not None
            assert first <= now < 2 * 7
        assert set(seen) <= set(await there.seen())
        one.after = lambda record: None
        task = asyncio.ensure_future(way(one))
        await there.all_copied()
        await one.leave()
        with suppress(ClosedError):
            await task
    await there.judge()


async def test_dead_letters_go_through_the_transaction(
    real_kafka: Kafka, topic: TopicFactory
) -> None:
    """A dead letter is aborted with its transaction, and written again."""
    there, dead = Copying(real_kafka, topic, COOPERATIVE), topic()
    await there.send(5)
    one, failures = Member(there, "one"), Counter[bytes]()

    def fail(record: Record) -> None:
        value = record.value or b""
        if value == b"1 2":
            failures[value] += 1
            raise Mistake
        if value == b"1 4" and failures[value] < 1:  # behind the other, by its key
            failures[value] += 1
            raise PartitionLost("as if it were")

    one.before = fail
    async with one.producer, one.consumer:
        task = asyncio.ensure_future(
            one.consumer.run(
                one.copy_one,
                producer=one.producer,
                dead_letter=DeadLetter(one.producer, dead),
                max_records=MOST * KEYS,
                max_wait=1.0,
            )
        )
        await there.all_copied()
        await one.leave()
        await task
    assert failures[b"1 4"] == 1
    await settled(there.servers, dead, 1)
    letters = await librdkafkas_order(there.servers, dead)
    assert letters == [[b"1 2"]]
    found = await librdkafkas_order(there.servers, there.output, PARTITIONS)
    copied = Counter(value.rsplit(b" ", 1)[0] for part in found for value in part)
    wanted = {b"%d %d" % (key, n) for key in range(KEYS) for n in range(5)} - {b"1 2"}
    assert copied == Counter(wanted)


@PROTOCOLS
@WAYS
async def test_the_users_own_hold_adds_to_it(
    real_kafka: Kafka, topic: TopicFactory, protocol: str, way: Way
) -> None:
    """The transaction ends early; the partitions go when the hold ends, too."""
    there = Copying(real_kafka, topic, protocol)
    one, two = Member(there, "one"), Member(there, "two")
    held, release = asyncio.Event(), asyncio.Event()

    async def listen() -> None:
        with suppress(ClosedError):
            async for event in one.consumer.rebalances():
                if isinstance(event, RevokeRequested):
                    async with event.hold():
                        held.set()
                        await release.wait()

    async with asyncio.TaskGroup() as tasks:
        listening = tasks.create_task(listen())
        async with copying(one, way), there.traffic():
            await until(lambda: one.handled >= KEYS)
            # Where all is revoked before a member joins, it starts after the hold.
            joining = tasks.create_task(_copy_some(two, way))
            async with asyncio.timeout(HANGS):
                await held.wait()
            going = one.consumer.to_be_revoked
            assert going
            # What was handed out of them is committed while they are held.
            await _all_committed(there, one)
            assert not two.handled
            assert going <= one.consumer.assignment
            release.set()
            await joining
        listening.cancel()
    await _drained(there, way)
    await there.judge()


@pytest.mark.parametrize(
    "protocol",
    [pytest.param(BROKERS, marks=pytest.mark.kafka_versions("4.0+")), COOPERATIVE],
)
async def test_run_copies_the_others_while_some_are_released(
    real_kafka: Kafka, topic: TopicFactory, protocol: str
) -> None:
    """Their callback takes long, and some of their records have not begun."""
    there = Copying(real_kafka, topic, protocol)
    is_called, release = asyncio.Event(), asyncio.Event()

    async def revoked(partitions: object) -> None:
        del partitions
        is_called.set()
        await release.wait()

    one, two = Member(there, "one", on_revoked=revoked), Member(there, "two")
    one.pause = MOST / 50  # 20 ms for each record, so that many wait
    await there.send(500)
    async with asyncio.TaskGroup() as tasks, copying(one, run):
        await until(lambda: one.handled >= KEYS)
        joining = tasks.create_task(_copy_some(two, run))
        async with asyncio.timeout(HANGS):
            await is_called.wait()
        before = one.handled
        await until(lambda: one.handled >= before + 3 * MOST)
        release.set()
        await joining
    await _drained(there, run)
    await there.judge()


async def _copy_some(one: Member, way: Way) -> None:
    async with copying(one, way):
        await until(lambda: one.handled >= 2 * KEYS)


async def _all_committed(there: Copying, one: Member) -> None:
    """Wait until what was handed out of partitions that are to go is committed."""
    going = {tp.partition for tp in one.consumer.to_be_revoked}
    places = {index: at for index, at in one.places.items() if index in going}
    async with asyncio.timeout(HANGS):
        while True:
            at = await there.offsets()
            if all((at[index] or 0) >= place for index, place in places.items()):
                return


async def _drained(there: Copying, way: Way) -> None:
    """Let a last member copy the rest."""
    async with copying(Member(there, "last"), way):
        await there.all_copied()


@PROTOCOLS
async def test_delay_revoke_in_a_loop_by_hand(
    real_kafka: Kafka, topic: TopicFactory, protocol: str
) -> None:
    """What is delayed stays for further transactions, and then it goes."""
    there = Copying(real_kafka, topic, protocol)
    one, two = Member(there, "one"), Member(there, "two")
    delayed: Counter[int] = Counter()
    is_joining = False

    async def work() -> None:
        while not one.is_leaving:
            async with one.producer.transaction(one.consumer) as tx:
                poll = await one.consumer.poll(timeout=0.2, max_records=MOST)
                await one.copy_all(tx, poll.records)
                if is_joining and not delayed:
                    # What is requested later goes with the end of the transaction.
                    await until(lambda: one.consumer.to_be_revoked)
                going = one.consumer.to_be_revoked
                if going and delayed.total() < 5:
                    assert not two.handled
                    assert one.consumer.delay_revoke(going)
                    delayed.update(tp.partition for tp in going)

    async with one.producer, one.consumer, there.traffic():
        task = asyncio.ensure_future(work())
        await until(lambda: one.handled >= KEYS)
        is_joining = True
        async with copying(two, by_hand):
            await until(lambda: two.handled >= 2 * KEYS)
        one.is_leaving = True
        await task
    assert delayed.total() >= 5
    await _drained(there, by_hand)
    await there.judge()


@WAYS
async def test_cancelled_in_the_body(
    real_kafka: Kafka, topic: TopicFactory, way: Way
) -> None:
    """The transaction is aborted, and the same consumer reads its records again."""
    there = Copying(real_kafka, topic, COOPERATIVE)
    await there.send(10)
    one = Member(there, "one")
    async with one.producer, one.consumer:
        for _ in range(4):
            one.pause = 60.0
            before = one.handled
            task = asyncio.ensure_future(way(one))
            await until(lambda before=before: one.handled > before)
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
            assert not await there.seen()
        one.pause = 0.0
        task = asyncio.ensure_future(way(one))
        await there.all_copied()
        await one.leave()
        with suppress(ClosedError):
            await task
    await there.judge()


@WAYS
@pytest.mark.parametrize("api", [ApiKey.TXN_OFFSET_COMMIT, ApiKey.END_TXN])
async def test_cancelled_in_the_commit(
    real_kafka: Kafka, topic: TopicFactory, way: Way, api: ApiKey
) -> None:
    """Before EndTxn it is an abort; after that, the commit goes on to its answer."""
    there = Copying(real_kafka, topic, COOPERATIVE)
    await there.send(3)
    one = Member(there, "one")
    made: list[Transaction] = []
    async with Interceptor(there.servers) as wire:
        one.producer = there.producer(bootstrap_servers=wire.servers)
        transaction = one.producer.transaction

        def noted(consumer: Consumer | None = None) -> Transaction:
            made.append(transaction(consumer))
            return made[-1]

        one.producer.transaction = noted  # type: ignore[method-assign]
        async with one.producer, one.consumer:
            held = wire.hold(api)
            task = asyncio.ensure_future(way(one))
            async with asyncio.timeout(HANGS):
                await held.met.wait()
            task.cancel()
            await asyncio.sleep(0)
            held.release.set()
            await asyncio.wait([task])
            assert task.cancelled()
            is_committed = api is ApiKey.END_TXN
            assert await made[-1].outcome is (
                TransactionOutcome.COMMITTED
                if is_committed
                else TransactionOutcome.ABORTED
            )
            assert bool(await there.seen()) == is_committed
            task = asyncio.ensure_future(way(one))
            await there.all_copied()
            await one.leave()
            with suppress(ClosedError):
                await task
    await there.judge()


@WAYS
@pytest.mark.parametrize("which", ["consumer", "producer"])
async def test_closed_with_a_transaction_open(
    real_kafka: Kafka, topic: TopicFactory, way: Way, which: str
) -> None:
    """A producer aborts it; a consumer lets it be finished, within its timeout."""
    there = Copying(real_kafka, topic, COOPERATIVE)
    await there.send(10)
    one = Member(there, "one")
    one.pause = 2.0 if which == "consumer" else 60.0
    async with one.producer, one.consumer:
        task = asyncio.ensure_future(way(one))
        await until(lambda: one.handled)
        one.is_leaving = True
        await (one.consumer if which == "consumer" else one.producer).close(timeout=20)
        if which == "producer":
            # Nothing is open, whatever the handler still does.
            assert not await there.seen()
            task.cancel()
        with suppress(ClosedError, asyncio.CancelledError):
            async with asyncio.timeout(HANGS):
                await task
        if which == "consumer":
            committed = sum(at or 0 for at in await there.offsets())
            assert committed == len(await there.seen()) == one.handled > 0
    await _drained(there, way)
    await there.judge()
