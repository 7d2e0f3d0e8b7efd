"""The producer: records of many keys at a steady rate, each with its number."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from kafkaio import Producer
from kafkaio._producer import Delivery
from tests.torture.verdict import Place, Sent

_KEYS_PER_PARTITION: Final = 3
_TICK_SECONDS: Final = 0.01
_DELIVERY_MS: Final = 300_000


class Traffic:
    """The records that were sent, and those that were acknowledged.

    Args:
        topic: where to.
        partitions: how many it has.
        rate: records a second.
    """

    def __init__(self, topic: str, partitions: int, rate: int) -> None:
        self.acknowledged: dict[Place, Sent] = {}
        self._topic = topic
        self._partitions = partitions
        self._keys = partitions * _KEYS_PER_PARTITION
        self._rate = rate
        self._sent = 0

    async def _send(self, producer: Producer) -> tuple[Sent, Delivery]:
        key, number = self._sent % self._keys, self._sent // self._keys
        self._sent += 1
        delivery = await producer.enqueue(
            self._topic,
            b"%d %d" % (key, number),
            key=b"%d" % key,
            partition=key % self._partitions,
        )
        return Sent(key, number), delivery

    async def _settle(
        self, deliveries: asyncio.Queue[tuple[Sent, Delivery] | None]
    ) -> None:
        while (waiting := await deliveries.get()) is not None:
            sent, delivery = waiting
            meta = await delivery
            self.acknowledged[Place(meta.partition, meta.offset)] = sent

    @asynccontextmanager
    async def flowing(self, bootstrap: str) -> AsyncIterator[None]:
        """Send while the block runs; at its end every record is acknowledged."""

        async def send() -> None:
            loop = asyncio.get_running_loop()
            began = loop.time()
            while not is_over.is_set():
                due = (loop.time() - began) * self._rate
                # After a delay the rate goes on; the backlog is not sent at once.
                for _ in range(min(int(due) - self._sent, self._rate // 10)):
                    deliveries.put_nowait(await self._send(producer))
                await asyncio.sleep(_TICK_SECONDS)
            deliveries.put_nowait(None)

        is_over = asyncio.Event()
        deliveries: asyncio.Queue[tuple[Sent, Delivery] | None] = asyncio.Queue()
        producer = Producer(bootstrap, delivery_timeout_ms=_DELIVERY_MS)
        async with producer, asyncio.TaskGroup() as tasks:
            tasks.create_task(send())
            tasks.create_task(self._settle(deliveries))
            try:
                yield
            finally:
                is_over.set()
