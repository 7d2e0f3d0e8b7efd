"""Start a real Kafka installed by pip, kill a broker, and read on.

python -m pip install "kafkaio[kafka]"
python examples/real_kafka.py
"""

import asyncio

import kafkaio
from kafkaio.testing.kafka import Kafka


async def main() -> None:
    async with Kafka(brokers=3) as kafka:
        print(f"Kafka {kafka.options.release.version} at {kafka.bootstrap_servers}")
        topic = await kafka.create_topic("greetings", partitions=3)
        async with kafkaio.Producer(kafka.bootstrap_servers) as producer:
            await producer.send(topic, b"hello")

        await kafka.kill(2)  # like a crash; the other brokers take over
        async with kafkaio.Consumer(
            kafka.bootstrap_servers, topics=topic, auto_offset_reset="earliest"
        ) as consumer:
            record = await anext(consumer)
        print(f"read back with broker 2 dead: {record.value!r}")
        await kafka.start(2)


asyncio.run(main())
