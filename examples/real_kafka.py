"""Start a real Kafka installed by pip, run Kafka's own tools on it, kill a broker.

python -m pip install "kafkaio[kafka]"
python examples/real_kafka.py
"""

import asyncio

from kafkaio.testing.kafka import Kafka


async def main() -> None:
    async with Kafka(brokers=3) as kafka:
        print(f"Kafka {kafka.options.release.version} at {kafka.bootstrap_servers}")
        topic = await kafka.create_topic("greetings", partitions=3)

        where = ("--bootstrap-server", kafka.bootstrap_servers, "--topic", topic)
        await kafka.run_tool(
            "org.apache.kafka.tools.ConsoleProducer", *where, stdin="hello\n"
        )
        await kafka.kill(2)  # like a crash; the other brokers take over
        consumed = await kafka.run_tool(
            "org.apache.kafka.tools.consumer.ConsoleConsumer",
            *where,
            *("--from-beginning", "--max-messages", "1"),
        )
        print(f"read back with broker 2 dead: {consumed.lines}")
        await kafka.start(2)


asyncio.run(main())
