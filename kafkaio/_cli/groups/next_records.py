"""The age of the record that a group reads next: how many seconds it is behind."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from kafkaio._cli.shell.session import CommandSession
from kafkaio.types import TopicPartition

#: Seconds to wait for the records. A partition whose record does not arrive has no age.
_SECONDS = 3.0
#: One record of each partition is enough. A larger batch arrives whole (KIP-74).
_FETCH_BYTES = 1024


async def ages(
    session: CommandSession, wanted: Mapping[tuple[str, TopicPartition], int]
) -> dict[tuple[str, TopicPartition], float]:
    """Return the age of the first record at or after each offset, in seconds.

    Args:
        session: the command.
        wanted: the offset by group and partition.
    """
    found: dict[tuple[str, TopicPartition], float] = {}
    left = dict(wanted)
    # A consumer has one position in a partition, so groups that read the same partition
    # take turns. With k groups per partition that makes k turns, not one per group.
    while left:
        turn: dict[TopicPartition, tuple[str, int]] = {}
        for group, partition in list(left):
            if partition not in turn:
                turn[partition] = group, left.pop((group, partition))
        times = await _times(session, {tp: at for tp, (_, at) in turn.items()})
        now = datetime.now(UTC).timestamp()
        for partition, milliseconds in times.items():
            # The clock of the producer may be ahead.
            age = max(0.0, now - milliseconds / 1000)
            found[turn[partition][0], partition] = round(age, 3)
    return found


async def _times(
    session: CommandSession, offsets: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Return the timestamp of the first record at or after each offset."""
    # This consumer must neither join a group nor commit, whatever a profile says. With
    # read_committed the records of open transactions would have no age.
    forced = {
        "group.id": None,
        "isolation.level": None,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "max.partition.fetch.bytes": _FETCH_BYTES,
    }
    found: dict[TopicPartition, int] = {}
    async with session.consumer(assign=offsets, forced=forced) as consumer:
        for partition, offset in offsets.items():
            consumer.seek(partition, offset)
        end = datetime.now(UTC).timestamp() + _SECONDS
        while len(found) < len(offsets):
            rest = end - datetime.now(UTC).timestamp()
            if rest <= 0:
                break
            for record in (await consumer.poll(timeout=rest)).records:
                partition = TopicPartition(record.topic, record.partition)
                # Paused after its first record, so that it does not fill the buffer
                # while other partitions wait.
                if found.setdefault(partition, record.timestamp) == record.timestamp:
                    consumer.pause(partition)
    return found
