"""The embedded broker in a thread of its own, for tests that block their own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterable, Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import Self, TypeVar

import kafkaio
from kafkaio import NewRecord, TopicPartition
from kafkaio.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafkaio.testing import Broker

__all__ = ["ServedBroker"]

T = TypeVar("T")
_SECONDS = 30.0


class ServedBroker:
    """A broker of several nodes, and what tests do with its topics.

    Args:
        nodes: their number.

    Attributes:
        broker: the broker, whose objects belong to its thread.
        servers: where it listens.
    """

    def __init__(self, nodes: int = 1) -> None:
        self._nodes = nodes
        self.broker: Broker
        self.servers: str = ""
        self._loop: asyncio.AbstractEventLoop
        self._ended: asyncio.Event = asyncio.Event()
        self._thread: threading.Thread

    def __enter__(self) -> Self:
        started: Future[None] = Future()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(started)), daemon=True
        )
        self._thread.start()
        started.result(_SECONDS)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(_SECONDS)

    async def _serve(self, started: Future[None]) -> None:
        self._loop = asyncio.get_running_loop()
        # Records of any time stay: a slow module outlives the first check of retention.
        config = {"log.retention.ms": -1}
        async with Broker(nodes=self._nodes, config=config) as self.broker:
            self.servers = self.broker.bootstrap_servers
            started.set_result(None)
            await self._ended.wait()

    def run(self, work: Coroutine[None, None, T]) -> T:
        """Run a coroutine in the broker's thread, and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_SECONDS)

    def create(self, topic: str, partitions: int = 1) -> None:
        """Create a topic."""

        async def create() -> None:
            self.broker.create_topic(topic, partitions)

        self.run(create())

    def drop(self, topic: str) -> None:
        """Delete a topic."""

        async def drop() -> None:
            async with kafkaio.Admin(self.servers) as admin:
                await admin.delete_topics([topic])

        self.run(drop())

    def send(self, topic: str, records: Iterable[NewRecord | bytes]) -> None:
        """Write records."""

        async def send() -> None:
            async with kafkaio.Producer(self.servers) as producer:
                await producer.send_many(topic, [*records])

        self.run(send())

    def delete(self, before: Mapping[TopicPartition, int]) -> None:
        """Delete the records before offsets."""

        async def delete() -> None:
            async with kafkaio.Client(self.servers) as client:
                for tp, offset in before.items():
                    part = DeleteRecordsPartition(
                        partition_index=tp.partition, offset=offset
                    )
                    topic = DeleteRecordsTopic(name=tp.topic, partitions=[part])
                    request = DeleteRecordsRequest(topics=[topic], timeout_ms=1_000)
                    reply = await client.request(request, to=kafkaio.Leader(tp))
                    assert reply.topics[0].partitions[0].error_code == 0

        self.run(delete())
