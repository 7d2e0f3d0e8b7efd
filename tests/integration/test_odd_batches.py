"""Batches that other producers write: large ones, and with bytes behind their data."""

from __future__ import annotations

import struct
import time

import crc32c
import pytest

import kafkaio
from kafkaio import messages
from kafkaio._records.batch import (
    Compression,
    Compressor,
    encode_batch,
    read_batches,
)
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory

pytestmark = pytest.mark.kafka_versions("newest")

RECORDS = 3
#: What stands behind the compressed data. 18 bytes cannot be another gzip member.
BEHIND = {
    "nothing": b"",
    "one byte": b"?",
    "three bytes": b"???",
    "four bytes": b"????",
    "18 bytes": b"?" * 18,
    "zeros": bytes(40),
    "no header": b"?" * 40,
    "a header that does not end": b"\x1f\x8b\x08" + b"?" * 30,
    "a member that does not end": b"\x1f\x8b\x08\0" + b"?" * 15,
}


async def write(client: kafkaio.Client, topic: str, batch: bytes) -> int:
    """Write a batch as it is; returns the broker's error code."""
    topics = [messages.MetadataRequestTopic(name=topic)]
    found = await client.request(messages.MetadataRequest(topics=topics))
    part = messages.PartitionProduceData(index=0, records=batch)
    data = messages.TopicProduceData(
        name=topic, topic_id=found.topics[0].topic_id, partition_data=[part]
    )
    reply = await client.request(
        messages.ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data]),
        to=kafkaio.Leader(kafkaio.TopicPartition(topic, 0)),
    )
    return reply.responses[0].partition_responses[0].error_code


def with_bytes_behind(codec: Compression, parts: int, behind: bytes) -> bytes:
    """Return a batch whose data is in so many members or frames."""
    now = int(time.time() * 1000)
    plain = encode_batch([(now, None, b"value", ())] * RECORDS)
    records = plain[61:]
    size = -(-len(records) // parts)
    compress = Compressor(codec).compress
    pieces = [records[at : at + size] for at in range(0, len(records), size)]
    data = b"".join(map(compress, pieces)) + behind
    rest = struct.pack(">h", codec) + plain[23:61] + data
    length = struct.pack(">i", len(rest) + 9)
    checksum = struct.pack(">I", crc32c.crc32c(rest))
    return plain[:8] + length + plain[12:17] + checksum + rest


def is_read(batch: bytes) -> bool:
    try:
        [found] = read_batches(batch)
        return len(found.decode("t", 0)) == RECORDS
    except kafkaio.CorruptRecord:
        return False


@pytest.mark.not_embedded("its judgement is ours")
@pytest.mark.parametrize("codec", [*Compression][1:])
async def test_kafka_and_we_agree_on_bytes_behind_the_data(
    topic: TopicFactory, real_kafka: Kafka, codec: Compression
) -> None:
    servers, name = real_kafka.bootstrap_servers, topic()
    async with kafkaio.Client(servers) as client:
        for parts in (1, 2):
            for what, behind in BEHIND.items():
                batch = with_bytes_behind(codec, parts, behind)
                is_taken = await write(client, name, batch) == 0
                assert is_read(batch) == is_taken, (what, parts)


async def test_a_batch_of_80_megabytes_is_read(
    topic: TopicFactory, real_kafka: Kafka
) -> None:
    servers, name = real_kafka.bootstrap_servers, topic()
    now = int(time.time() * 1000)
    batch = encode_batch(
        [(now, None, b"x" * 500_000, ())] * 160, compression=Compression.ZSTD
    )
    async with kafkaio.Client(servers) as client:
        assert await write(client, name, batch) == 0
    options = {"topics": name, "auto_offset_reset": "earliest"}
    async with kafkaio.Consumer(servers, **options) as consumer:
        poll = await consumer.poll(timeout=30)
        assert [len(record.value or b"") for record in poll.records] == [500_000] * 160
    async with kafkaio.Consumer(
        servers, max_decompressed_batch_size=2**26, **options
    ) as consumer:
        with pytest.raises(kafkaio.RecordTooLarge, match="max_decompressed") as caught:
            await consumer.poll(timeout=30)
        assert caught.value.topic_partition == kafkaio.TopicPartition(name, 0)
        assert (caught.value.offset, caught.value.next_offset) == (0, 160)
