"""Look after a cluster: topics, configs, groups, lag, and a reset of offsets.

python examples/administration.py                  # an embedded broker
python examples/administration.py localhost:9092
"""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta

import kafkaio
from kafkaio.testing import Broker

TOPIC, GROUP = "orders", "billing"


async def administer(servers: str) -> None:
    async with kafkaio.Client(servers) as client, kafkaio.Admin(client) as admin:
        retention = {"retention.ms": "604800000"}
        new = kafkaio.NewTopic(TOPIC, partitions=3, configs=retention)
        # When this returns, every broker knows the leaders of the topic.
        await admin.create_topics([new])
        async with kafkaio.Producer(client) as producer:
            await producer.send_many(TOPIC, [b"%d" % number for number in range(90)])
        described = (await admin.describe_topics([TOPIC]))[TOPIC]
        leaders = sorted({it.leader or 0 for it in described.partitions})
        print(f"{TOPIC}: {len(described.partitions)} partitions led by {leaders}")

        # One config is changed, and the others stay as they are.
        resource = kafkaio.ConfigResource(kafkaio.ConfigResourceType.TOPIC, TOPIC)
        change = kafkaio.ConfigChange("cleanup.policy", "compact,delete")
        await admin.incremental_alter_configs({resource: [change]})

        await read_some(client)
        lag = (await admin.lag([GROUP]))[GROUP]
        print(f"{GROUP} is {lag.total} records behind")
        # A reset tells what it would do before it does it.
        for dry_run in (True, False):
            resets = await admin.reset_offsets(
                GROUP, timedelta(hours=1), dry_run=dry_run
            )
            word = "would go" if dry_run else "goes"
            for tp, reset in resets.items():
                print(f"{tp.topic}-{tp.partition} {word} to offset {reset.after}")

        try:
            await admin.delete_topics([TOPIC, "no-such-topic"])
        except kafkaio.UnknownTopicOrPartition as error:
            print(f"not there: {error.item}; deleted: {list(error.results)}")


async def read_some(client: kafkaio.Client) -> None:
    async with kafkaio.Consumer(
        client, topics=[TOPIC], group_id=GROUP, auto_offset_reset="earliest"
    ) as consumer:
        count = 0
        while count < 60:
            count += len((await consumer.poll(max_records=60 - count)).records)
        await consumer.commit()


async def main() -> None:
    if servers := sys.argv[1:]:
        await administer(servers[0])
    else:
        async with Broker(nodes=3) as broker:
            await administer(broker.bootstrap_servers)


if __name__ == "__main__":
    asyncio.run(main())
