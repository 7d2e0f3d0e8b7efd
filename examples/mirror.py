"""Copy a topic to another cluster without decompressing it, and note the offsets.

Runs as it stands, on two embedded brokers. Batches are taken in one after the other,
and the place of the group is committed when all of them are acknowledged.
"""

from __future__ import annotations

import asyncio

import kafkaio
from kafkaio.testing import Broker


async def mirror(here: str, there: str, topic: str) -> dict[int, int]:
    """Copy what a topic has now; return what the first offset of each batch became."""
    offsets: dict[int, int] = {}
    async with (
        kafkaio.Consumer(
            here,
            topics=[topic],
            group_id="mirror",
            enable_auto_commit=False,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
        ) as consumer,
        kafkaio.Producer(there) as producer,
    ):
        deliveries = [
            await producer.enqueue_raw(batch, topic, batch.partition)
            async for batch in consumer.raw_batches(until="latest")
        ]
        for delivery in deliveries:
            written = await delivery
            offsets[delivery.offsets[0]] = written[0].offset
        await consumer.commit()
    return offsets


async def main() -> None:
    """Write records here, and copy them there, twice."""
    async with (
        Broker(topics={"orders": 1}) as here,
        Broker(topics={"orders": 1}) as there,
    ):
        servers = here.bootstrap_servers, there.bootstrap_servers
        async with kafkaio.Producer(servers[0], compression_type="zstd") as producer:
            for number in range(3):
                await producer.send_many("orders", [b"order %d" % number] * 100)
        print("copied:", await mirror(*servers, "orders"))
        print("copied again:", await mirror(*servers, "orders"))


if __name__ == "__main__":
    asyncio.run(main())
