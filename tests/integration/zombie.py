"""A producer that is frozen at a step; run by ``test_zombie.py`` in a process.

It tells each step on standard output, and goes on when it is told to on standard input.
"""

from __future__ import annotations

import asyncio
import sys

from kafkaio import GroupMetadata, KafkaError, Producer, TopicPartition


def tell(*words: str) -> None:
    sys.stdout.write(" ".join(words) + "\n")
    sys.stdout.flush()


async def step(name: str) -> None:
    tell(name)
    await asyncio.to_thread(sys.stdin.readline)


async def main(servers: str, name: str, topic: str, group: str) -> None:
    options = {"transactional_id": name, "linger_ms": 0}
    async with Producer(servers, **options) as producer:  # type: ignore[arg-type]
        await step("initialised")
        try:
            async with producer.transaction() as tx:
                await step("begun")
                tx.enqueue_nowait(topic, b"zombie", partition=0)
                await tx.send(topic, b"zombie", partition=1)
                await step("written")
                at = {TopicPartition(topic, 0): 99}
                await tx.commit_offsets(GroupMetadata(group), at)
                await step("offsets")
        except KafkaError as error:
            tell("error", type(error).__name__)
        else:
            tell("error", "none")
        try:
            async with producer.transaction() as tx:
                await tx.send(topic, b"zombie again", partition=0)
        except KafkaError as error:
            tell("after", type(error).__name__)
        else:
            tell("after", "none")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
