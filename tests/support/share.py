"""Share consumers without their public half: the engine, and a reader by hand."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import NamedTuple

from kafkaio._client.client import Client, cluster_of
from kafkaio._client.cluster import Cluster
from kafkaio._config import ShareConsumerConfig
from kafkaio._records.batch import (
    ACCEPT,
    GAP,
    HELD,
    RELEASE,
    STATE,
    Acquired,
    Record,
    read_batches,
)
from kafkaio._share.core import ShareCore
from kafkaio._share.ports import FetchedPart
from kafkaio.types import TopicPartition
from tests.support.patience import HANGS


class Held(NamedTuple):
    """A record that was handed out."""

    acquired: Acquired
    record: Record

    @property
    def place(self) -> tuple[int, int]:
        return self.record.partition, self.record.offset

    @property
    def state(self) -> int:
        return self.acquired.states[self.record.offset - self.acquired.first] & STATE

    def decide(self, decision: int = ACCEPT) -> None:
        self.acquired.decide(self.record.offset, decision)


class HandReader:
    """Buffers what is fetched, and hands it out when `take` is called.

    Attributes:
        wants: whether somebody reads.
        errors: what the engine reported.
        most: the most offsets that were buffered and held at a time, as seen here.
    """

    def __init__(self) -> None:
        self.wants: bool = True
        self.errors: list[Exception] = []
        self.is_interrupted: bool = False
        self.on_change: Callable[[], None] = lambda: None
        self.on_news: Callable[[], None] = lambda: None
        self.on_handed: Callable[[TopicPartition, int], None] | None = None
        self._parts: list[FetchedPart] = []

    @property
    def buffered(self) -> int:
        return sum(acquired.held for part in self._parts for acquired in part.acquired)

    @property
    def buffered_bytes(self) -> int:
        return sum(len(part.data) for part in self._parts)

    def received(self, part: FetchedPart) -> None:
        self._parts.append(part)
        if not self.wants:
            self._drop()
        self.on_news()

    def failed(self, error: Exception) -> None:
        self.errors.append(error)
        self.on_news()

    def interrupt(self) -> None:
        self.is_interrupted = True
        self.stop()

    def stop(self) -> None:
        self.wants = False
        self._drop()
        self.on_change()

    def resume(self) -> None:
        self.wants = True
        self.on_change()

    def _drop(self) -> None:
        parts, self._parts = self._parts, []
        for part in parts:
            for acquired in part.acquired:
                acquired.decide_range(acquired.first, acquired.last, RELEASE)

    def take(self) -> list[Held]:
        """Hand out everything that is buffered."""
        parts, self._parts = self._parts, []
        found = [held for part in parts for held in _opened(part)]
        self.on_change()
        return found


def _opened(part: FetchedPart) -> Iterable[Held]:
    records = {
        record.offset: record
        for batch in read_batches(part.data)
        for record in batch.iterate(part.tp.topic, part.tp.partition)
    }
    for acquired in part.acquired:
        for offset in range(acquired.first, acquired.last + 1):
            if acquired.states[offset - acquired.first] != HELD:
                continue
            if offset in records:
                yield Held(acquired, records[offset])
            else:
                acquired.decide(offset, GAP)
        acquired.handed_to = acquired.last + 1


class Engine:
    """A share consumer of which the test is the reader."""

    def __init__(
        self,
        servers: str | Client,
        group: str,
        topics: Iterable[str] | re.Pattern[str],
        *,
        observer: object | None = None,
        **options: object,
    ) -> None:
        given = {"group_id": group, "fetch_max_wait_ms": 200, **options}
        if isinstance(servers, Client):
            config = ShareConsumerConfig.sharing(servers.config, given, observer)
            cluster = cluster_of(servers)
        else:
            config = ShareConsumerConfig.of(servers, given)
            cluster = Cluster(config, observer)
        self.core: ShareCore = ShareCore(
            cluster, config, owns_cluster=not isinstance(servers, Client)
        )
        self.reader: HandReader = HandReader()
        self.reader.on_change = self.core.wake
        self.reader.on_news = self.core.notify
        self.core.attach(self.reader)
        chosen = topics if isinstance(topics, re.Pattern) else frozenset(topics)
        self.core.subscribe(chosen)

    async def take(self, count: int, within: float = HANGS) -> list[Held]:
        """Take records until there are at least so many."""
        taken: list[Held] = []
        async with asyncio.timeout(within):
            while True:
                taken += self.reader.take()
                self.core.check()
                if len(taken) >= count or self.reader.errors:
                    return taken
                await self.core.wait_for_news(None)

    async def accept(self, count: int, within: float = HANGS) -> list[Held]:
        """Take records and accept each at once, until there were at least so many."""
        accepted: list[Held] = []
        async with asyncio.timeout(within):
            while len(accepted) < count:
                for held in await self.take(1, within):
                    held.decide()
                    accepted.append(held)
                if self.reader.errors:
                    raise self.reader.errors.pop(0)
        return accepted

    @property
    def assigned(self) -> frozenset[TopicPartition]:
        return self.core.assignment


@asynccontextmanager
async def engine(
    servers: str | Client,
    group: str,
    topics: Iterable[str] | re.Pattern[str],
    **options: object,
) -> AsyncIterator[Engine]:
    """Start and close an engine."""
    made = Engine(servers, group, topics, **options)
    await made.core.start(HANGS)
    try:
        yield made
    finally:
        await made.core.close(10)
