"""Print orders as they come, until Ctrl-C."""

import asyncio
import os
from contextlib import suppress

import kafkaio

BOOTSTRAP = os.environ.get("BOOTSTRAP", "localhost:9092")


async def main() -> None:
    consumer = kafkaio.Consumer(
        BOOTSTRAP,
        topics="orders",
        group_id="printer",
        auto_offset_reset="earliest",
    )
    async with consumer:
        print("ready", flush=True)
        async for record in consumer:
            print(record.partition, record.offset, record.value, flush=True)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
