"""Raw batches in a producer: old formats, old brokers, and the end of the numbers."""

from __future__ import annotations

import asyncio

import pytest

import kafkaio
from kafkaio._records.batch import Compression, encode_batch, read_batches
from kafkaio._records.raw import RawBatch
from kafkaio.errors import UnsupportedVersion
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.types import TopicPartition
from tests.fakes.broker import FakeCluster
from tests.unit.producer.broker_log import Logs
from tests.unit.producer.conftest import MakeProducer
from tests.unit.records.test_legacy import NOW, message, wrapper

HERE = TopicPartition("source", 0)


def raw(data: bytes, first: int = 0, end: int = 2**62) -> RawBatch:
    [batch] = read_batches(data)
    return RawBatch(HERE, batch, (first, end))


def numbered(count: int, codec: Compression = Compression.NONE) -> RawBatch:
    records = [(NOW, None, b"%d" % n, ()) for n in range(count)]
    return raw(encode_batch(records, base_offset=7, compression=codec))


def wrapped(magic: int, codec: Compression = Compression.GZIP) -> bytes:
    """Return three messages in a wrapper, at offsets 5 to 7."""
    # Format 0 has the offsets themselves in a wrapper, format 1 those relative to it.
    first = 0 if magic else 5
    inner = b"".join(
        message(magic, first + n, b"%d" % n, key=b"k", timestamp=NOW + n)
        for n in range(3)
    )
    return wrapper(magic, 7, inner, codec, timestamp=NOW + 2)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.LZ4])
async def test_wrapped_messages_of_old_formats(
    make: MakeProducer, logs: Logs, magic: int, codec: Compression
) -> None:
    batch = raw(wrapped(magic, codec))
    assert (batch.message_format, batch.base_offset, batch.count) == (magic, 5, 3)
    assert not batch.is_whole

    async with make(compression_type="zstd") as producer:
        delivery = await producer.enqueue_raw(batch, "one", 0)
        places = await delivery

    assert [*delivery.offsets] == [5, 6, 7]
    assert [place.offset for place in places] == [0, 1, 2]
    found = [(it.key, it.value, it.timestamp) for it in logs.log("one").records]
    times = [NOW, NOW + 1, NOW + 2] if magic else [-1] * 3
    assert found == [(b"k", b"%d" % n, times[n]) for n in range(3)]
    assert {it.compression for it in logs.log("one").batches} == {Compression.ZSTD}


@pytest.mark.parametrize("magic", [0, 1])
async def test_a_message_of_an_old_format(
    make: MakeProducer, logs: Logs, magic: int
) -> None:
    async with make() as producer:
        [place] = await producer.send_raw(raw(message(magic, 9, None)), "one", 0)
    assert place.offset == 0
    assert logs.values("one") == [None]


@pytest.mark.parametrize("magic", [0, 1])
async def test_a_part_of_an_old_wrapper(
    make: MakeProducer, logs: Logs, magic: int
) -> None:
    async with make() as producer:
        batch = raw(wrapped(magic), first=6, end=7)
        delivery = await producer.enqueue_raw(batch, "one", 0)
        await delivery
    assert [*delivery.offsets] == [6]
    assert logs.values("one") == [b"1"]


async def test_zstd_wants_a_broker_that_knows_it(
    make: MakeProducer, cluster: FakeCluster, logs: Logs
) -> None:
    cluster.limit_version(ApiKey.PRODUCE, 6)
    async with make() as producer:
        with pytest.raises(kafkaio.DeliveriesFailed) as failed:
            await producer.send_raw(numbered(3, Compression.ZSTD), "one", 0)
        errors = failed.value.failures
        assert [*errors] == [0, 1, 2]
        assert all(isinstance(error, UnsupportedVersion) for error in errors.values())
        # Another codec is written, without a gap in the numbers.
        await producer.send_raw(numbered(2, Compression.LZ4), "one", 0)
    assert logs.values("one") == [b"0", b"1"]
    assert [batch.base_sequence for batch in logs.log("one").batches] == [0]


async def test_what_a_broker_does_not_know_keeps_no_other_batch_from_it(
    make: MakeProducer, cluster: FakeCluster, logs: Logs
) -> None:
    cluster.limit_version(ApiKey.PRODUCE, 6)
    async with make() as producer:
        # Both topics are led by one broker, and what follows goes into one request.
        await asyncio.gather(
            producer.send("one", b"first"),
            producer.send("orders", b"first", partition=0),
        )
        other = producer.enqueue_nowait("orders", b"other", partition=0)
        batches = [numbered(3, Compression.ZSTD), numbered(1, Compression.LZ4)]
        mixed = await producer.enqueue_raw(batches, "one", 0)
        assert (await other).offset == 1
        with pytest.raises(kafkaio.DeliveriesFailed) as failed:
            await mixed
    assert [*failed.value.failures] == [0, 1, 2]
    assert logs.values("one") == [b"first", b"0"]
    assert logs.values("orders", 0) == [b"first", b"other"]


async def test_numbers_wrap_around(
    make: MakeProducer, cluster: FakeCluster, logs: Logs
) -> None:
    async with make(linger_ms=0) as producer:
        await producer.send("one", b"first", partition=0)
        # As if two thousand million records had been written before.
        place = TopicPartition("one", 0)
        topic = producer._accumulator.backlog.topics[place.topic]
        sequence = topic.queues[place.partition].sequence
        assert sequence is not None
        sequence.next_sequence = sequence.expected = 2**31 - 3
        [known] = logs.log("one").producers.values()
        known.batches = [(2**31 - 4, 2**31 - 4, 0)]

        batch = numbered(5, Compression.LZ4)
        taken = [await producer.enqueue_raw(batch, "one", 0) for _ in range(3)]
        await asyncio.gather(*taken)

    sequences = [it.base_sequence for it in logs.log("one").batches]
    assert sequences == [0, 2**31 - 3, 2, 7]
    assert len(logs.values("one")) == 16
