"""What a reader of share groups needs in the place of leaders: logs, and no network."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any

from kafkaio._config import ShareConsumerConfig
from kafkaio._records._acquired import DONE, STATE, TAKEN
from kafkaio._records._crc import crc32c
from kafkaio._records._layout import BATCH_HEADER
from kafkaio._records.batch import Acquired
from kafkaio._runtime.lifecycle import Lifecycle, LifecycleState
from kafkaio._runtime.observer import Observer
from kafkaio._runtime.supervisor import Supervisor
from kafkaio._runtime.wakeup import Wakeup
from kafkaio._share.ports import FetchedPart, HandlersPort
from kafkaio._share.reading.reader import ShareReader
from kafkaio._share.reading.reads import ShareReads
from kafkaio.errors import KafkaError
from kafkaio.types import TopicPartition
from tests.unit.records.strategies import record

#: A topic of every test.
TOPIC = "jobs"
P0, P1 = TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)
#: Letters for what became of an offset.
LETTERS = {0: "h", 1: "a", 2: "r", 3: "x", 5: "g", 6: "l"}


def batch_of(
    first: int, offsets: Sequence[int], last: int, *, control: bool = False
) -> bytes:
    """Return a batch as compaction leaves it: with these offsets, from first to last.

    The value of a record is its offset.
    """
    body = b"".join(
        record(offset_delta=offset - first, value=b"%d" % offset) for offset in offsets
    )
    attributes = 0x20 if control else 0
    fields = [0, attributes, last - first, 0, 0, -1, -1, -1, len(offsets)]
    header = struct.pack(BATCH_HEADER, first, 49 + len(body), 0, 2, *fields)
    batch = bytearray(header + body)
    struct.pack_into(">I", batch, 17, crc32c(bytes(batch[21:])))
    return bytes(batch)


def corrupt(batch: bytes, place: int = -1) -> bytes:
    """Return a batch with one byte changed, that of its last record by default."""
    changed = bytearray(batch)
    changed[place] ^= 0x55
    return bytes(changed)


class FakeLedger:
    """Counts what ranges notify it of."""

    def __init__(self) -> None:
        self.ranges: list[Acquired] = []
        self.notified = 0

    def decided(self, acquired: Acquired) -> None:
        self.notified += 1

    def acked(self, acquired: Acquired, offset: int) -> Awaitable[None]:
        raise NotImplementedError

    def has_ended(self, acquired: Acquired, offset: int) -> bool:
        return False

    def acquire(self, tp: TopicPartition, first: int, last: int) -> Acquired:
        acquired = Acquired(*tp, first, last, 1, 1, self)
        self.ranges.append(acquired)
        return acquired

    def states(self, tp: TopicPartition = P0) -> dict[int, str]:
        """Return what became of each acquired offset of a partition."""
        return {
            part.first + place: LETTERS[state & STATE & ~(TAKEN | DONE)]
            for part in self.ranges
            if (part.topic, part.partition) == tp
            for place, state in enumerate(part.states)
        }

    def told(self, tp: TopicPartition = P0) -> str:
        """Return the same as letters, in the order of offsets."""
        return "".join(state for _, state in sorted(self.states(tp).items()))


class FakeEngine:
    """An engine that fetches what a test gives it (`EnginePort`)."""

    def __init__(self) -> None:
        self.observer = Observer()
        self.life = Lifecycle("share consumer", "workers")
        self.woken = 0
        self.crashes: list[BaseException] = []
        self.supervisor = Supervisor("test", self.crashes.append)
        self._news = Wakeup()

    def start(self) -> None:
        self.life.begin()
        self.life.started()
        self.supervisor.start()

    def wake(self) -> None:
        self.woken += 1

    def check(self) -> None:
        self.life.check()

    async def wait_for_news(self, until: float | None) -> None:
        await self._news.wait(until)

    def notify(self) -> None:
        self._news.notify()

    def acked(self, acquired: Acquired, offset: int) -> Awaitable[None]:
        raise NotImplementedError

    async def flush(self, timeout: float) -> None:
        raise NotImplementedError

    async def commit(
        self, timeout: float
    ) -> Mapping[TopicPartition, KafkaError | None]:
        raise NotImplementedError

    def begin_work(self, handlers: HandlersPort) -> None:
        raise NotImplementedError

    def end_work(self, handlers: HandlersPort) -> None:
        raise NotImplementedError


class World:
    """A reader, its reads, and what was acquired."""

    def __init__(self, **options: Any) -> None:
        config = ShareConsumerConfig.of(
            "localhost:9092", {"group_id": "workers", **options}
        )
        self.ledger = FakeLedger()
        self.engine = FakeEngine()
        self.reader = ShareReader(
            config, on_change=self.engine.wake, on_news=self.engine.notify
        )
        self.reads = ShareReads(self.engine, self.engine.life, self.reader)
        self.reads.subscribed(has_topics=True)
        self.engine.start()
        self.reader.prepare_with(self.engine.supervisor.start_soon)

    def fetch(
        self, data: bytes, *ranges: tuple[int, int], tp: TopicPartition = P0
    ) -> None:
        """Bring data of a partition, of which these offsets were acquired."""
        acquired = tuple(self.ledger.acquire(tp, *each) for each in ranges)
        self.reader.received(FetchedPart(tp, 1, acquired, data))

    async def close(self) -> None:
        self.engine.life.state = LifecycleState.CLOSING
        self.reader.interrupt()
        self.engine.notify()
        await self.engine.supervisor.aclose()
        self.engine.life.state = LifecycleState.CLOSED

    async def turns(self, count: int = 12) -> None:
        for _ in range(count):
            await asyncio.sleep(0)
