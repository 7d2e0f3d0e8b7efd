"""Send twelve orders, and print where each was written."""

import asyncio
import json
import os

import kafkaio

BOOTSTRAP = os.environ.get("BOOTSTRAP", "localhost:9092")


async def main() -> None:
    async with kafkaio.Producer(BOOTSTRAP) as producer:
        for number in range(12):
            order = {"number": number, "price": 10 + number, "quantity": 2}
            customer = b"customer-%d" % (number % 5)
            meta = await producer.send(
                "orders", json.dumps(order).encode(), key=customer
            )
            print(f"order {number}: partition {meta.partition}, offset {meta.offset}")


if __name__ == "__main__":
    asyncio.run(main())
