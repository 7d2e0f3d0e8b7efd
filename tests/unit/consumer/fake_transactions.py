"""A producer's transactions as a consumer meets them, without a producer.

`FakeTransaction` calls a consumer as `kafkaio._producer.transaction` does: it joins, it
commits offsets that it checks before, and it ends or rewinds. What it "sends" is in
`FakeProducer.committed` after a commit. The offsets go to the coordinator by a plain
commit of the same member, so that the broker fences them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Any, NamedTuple, Self

from kafkaio._client.client import Client
from kafkaio._config import ClientConfig, ProducerConfig
from kafkaio._consumer import Consumer
from kafkaio._machines.transaction import TransactionOutcome
from kafkaio._producer import Producer
from kafkaio._transactional import (
    GroupOffsetsPort,
    JoinedConsumerPort,
    TransactionalConsumer,
)
from kafkaio.errors import ClosedError, KafkaError, TransactionAborted, UsageError
from kafkaio.testing import Broker
from kafkaio.types import TopicPartition

#: Commits for a consumer, as the coordinator would do at the end of a transaction.
Commit = Callable[[GroupOffsetsPort], Awaitable[None]]


def committing(consumer: Consumer) -> Commit:
    """Commit by the member of a consumer in this thread."""

    async def commit(offsets: GroupOffsetsPort) -> None:
        committer = consumer._core.committer  # type: ignore[union-attr]  # no thread
        await committer.commit(offsets.offsets, timeout=10)

    return commit


class FakeTransaction:
    """One transaction; see `FakeProducer`."""

    def __init__(
        self, producer: FakeProducer, consumer: TransactionalConsumer | None
    ) -> None:
        self._producer = producer
        self._consumer = consumer
        self.joined: JoinedConsumerPort | None = None
        self.sent: list[object] = []
        self.requested = 0
        self.lost: list[KafkaError] = []
        self.doom: KafkaError | None = None
        self.is_open = False
        self.is_committed = False

    @property
    def is_ending(self) -> bool:
        return bool(self.requested or self.lost or self.doom)

    @property
    def outcome(self) -> Awaitable[TransactionOutcome]:
        raise NotImplementedError  # every end of this one is known at once

    async def __aenter__(self) -> Self:
        producer = self._producer
        if producer.is_closed:
            raise ClosedError("the producer is closed")
        assert producer.current is None
        producer.current = self
        producer.all.append(self)
        try:
            if self._consumer is not None:
                self.joined = self._consumer._join_transaction(
                    self._revoke, self.lost.append
                )
        except BaseException:
            producer.current = None
            raise
        self.is_open = True
        return self

    def _revoke(self) -> None:
        self.requested += 1

    async def send(self, topic: str, value: object, **named: object) -> None:
        await asyncio.sleep(0)
        self.enqueue_nowait(topic, value, **named)

    async def enqueue(self, topic: str, value: object, **named: object) -> None:
        self.enqueue_nowait(topic, value, **named)

    def enqueue_nowait(self, topic: str, value: object, **named: object) -> None:
        del topic, named
        if not self.is_open:
            raise UsageError("the transaction has ended")
        if self.doom is not None:
            raise TransactionAborted("doomed", reason="doomed") from self.doom
        self.sent.append(value)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.is_open = False
        producer = self._producer
        try:
            cause = error or self.doom or next(iter(self.lost), None)
            if cause is None:
                try:
                    await self._commit()
                except KafkaError as refusal:
                    cause = refusal
            if cause is not None and self.joined is not None:
                await self.joined.rewind()
            if cause is not None and error is None:
                raise TransactionAborted("aborted", reason="refused") from cause
        finally:
            producer.current = None

    async def _commit(self) -> None:
        producer = self._producer
        if producer.fails:
            raise producer.fails.pop(0)
        offsets = None if self.joined is None else self.joined.handed_out()
        if offsets is not None:
            offsets.check()
            assert producer.commit is not None
            await producer.commit(offsets)
            offsets.committed()
        if producer.at_end is not None:
            await producer.at_end()
        producer.committed += self.sent
        self.is_committed = True
        if self.joined is not None:
            self.joined.end()


class FakeProducer:
    """Makes transactions, and keeps what they committed.

    Args:
        commit: commits offsets; None if none will be.

    Attributes:
        committed: what was sent in transactions that were committed.
        all: every transaction, in the order of their begins.
        current: the one that is open.
        fails: with what the next commits fail.
        at_end: waits before a transaction is committed, after its offsets.
        is_closed: whether no transaction can be begun.
    """

    def __init__(self, commit: Commit | None = None) -> None:
        self.commit = commit
        self.committed: list[object] = []
        self.all: list[FakeTransaction] = []
        self.current: FakeTransaction | None = None
        self.fails: list[KafkaError] = []
        self.at_end: Callable[[], Awaitable[None]] | None = None
        self.is_closed = False

    def transaction(
        self, consumer: TransactionalConsumer | None = None
    ) -> FakeTransaction:
        return FakeTransaction(self, consumer)

    def statistics(self) -> FakeStatistics:
        return FakeStatistics("closed" if self.is_closed else "running")


class FakeStatistics(NamedTuple):
    state: str


class World:
    """An embedded broker with records, and consumers of one group.

    Args:
        broker: the broker.
        stack: closes what is made.
        protocol: options that choose the group's protocol.
    """

    def __init__(
        self, broker: Broker, stack: AsyncExitStack, protocol: dict[str, Any]
    ) -> None:
        self.broker = broker
        self._stack = stack
        self._protocol = protocol

    async def client(self, observer: object = None) -> Client:
        config = ClientConfig.of(self.broker.bootstrap_servers, {})
        made = Client.from_config(config, observer=observer, dial=self.broker.dial)
        return await self._stack.enter_async_context(made)

    async def write(self, *values: bytes, partitions: int = 3) -> None:
        """Write values, one to each partition by turns."""
        async with Producer(await self.client()) as producer:
            for number, value in enumerate(values):
                await producer.send("orders", value, partition=number % partitions)

    def producer(self, **options: Any) -> Producer:
        """Make a producer with a transactional id; it is not started."""
        options = {"transactional_id": "copies", "linger_ms": 0} | options
        config = ProducerConfig.of(self.broker.bootstrap_servers, options)
        return Producer.from_config(config, dial=self.broker.dial)

    async def consumer(self, observer: object = None, **options: Any) -> Consumer:
        """Make a member of the group; it is not started."""
        named = {
            "topics": "orders",
            "group_id": "g",
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
        }
        return Consumer(await self.client(observer), **named | self._protocol | options)

    def offsets(self) -> dict[TopicPartition, int]:
        """Return what the group has committed, without asking for it."""
        control = self.broker.control
        tps = [TopicPartition("orders", n) for n in range(3)]
        return {tp: control.committed("g", tp) or 0 for tp in tps}

    async def committed(self) -> dict[TopicPartition, int]:
        """Return what the group has committed."""
        async with await self.consumer(topics=None) as other:
            tps = [TopicPartition("orders", n) for n in range(3)]
            found = await other.committed(tps)
        return {tp: at.offset for tp, at in found.items() if at is not None}


#: Options that choose a protocol, by its name.
PROTOCOLS: dict[str, dict[str, Any]] = {
    "kip848": {"group_protocol": "consumer"},
    "cooperative": {"group_protocol": "classic", "heartbeat_interval_ms": 300},
    "eager": {
        "group_protocol": "classic",
        "heartbeat_interval_ms": 300,
        "partition_assignment_strategy": ["range"],
    },
}


@asynccontextmanager
async def world(protocol: str, **broker: Any) -> AsyncIterator[World]:
    """Start a broker in memory, with a topic of three partitions."""
    async with AsyncExitStack() as stack:
        made = await stack.enter_async_context(
            Broker(topics={"orders": 3}, memory_transport=True, **broker)
        )
        yield World(made, stack, PROTOCOLS[protocol])
