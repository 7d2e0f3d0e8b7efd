"""Send one good record and two bad ones: each fails alone, with its reason."""

import asyncio
import os

import kafkaio

BOOTSTRAP = os.environ.get("BOOTSTRAP", "localhost:9092")


async def send(producer: kafkaio.Producer, topic: str, value: bytes) -> None:
    try:
        meta = await producer.send(topic, value)
    except kafkaio.RecordTooLarge as error:
        print(f"too large: {error}")
    except kafkaio.BrokerError as error:
        print(f"refused with {error.name}: {error}")
    except kafkaio.DeliveryTimeout as error:
        print(f"not acknowledged in time, perhaps written: {error}")
    else:
        print(f"written at offset {meta.offset} of partition {meta.partition}")


async def main() -> None:
    async with kafkaio.Producer(BOOTSTRAP) as producer:
        await send(producer, "notes", b"a good record")
        await send(producer, "notes", bytes(2_000_000))
        await send(producer, "no such name!", b"no topic can have this name")


if __name__ == "__main__":
    asyncio.run(main())
