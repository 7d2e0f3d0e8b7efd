"""Topics of every shape that a log can have, to be read by both sources."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

import pyarrow as pa

from kafkaio import Producer
from kafkaio.types import NewRecord
from tests.spark.reading import FIRST_TIMESTAMP

Codec: TypeAlias = Literal["none", "gzip", "snappy", "lz4", "zstd"]
CODECS: Final[tuple[Codec, ...]] = ("none", "gzip", "snappy", "lz4", "zstd")
#: Larger than what a fetch asks for of a partition.
LARGE: Final = 1_500_000
#: The year 9999, and the beginning of time.
LAST_TIMESTAMP: Final = 253_402_300_799_999
#: Seconds for which a transaction stays open.
_OPEN_MS: Final = 900_000

#: Writes a topic, whose name is the second argument, at some servers.
Write = Callable[[str, str], Coroutine[object, object, None]]


@dataclass(frozen=True)
class Log:
    """A topic.

    Attributes:
        partitions: their number.
        write: fills it.
        config: its properties.
    """

    partitions: int
    write: Write
    config: Mapping[str, str] = field(default_factory=dict)


def records(numbers: Iterable[int], partitions: int) -> list[NewRecord]:
    """Records with all that a record can have, lack, or have without content."""
    headers = (
        (),
        [("a", b"1"), ("b", None)],
        [("same", b"1"), ("same", b"2"), ("", b"")],
    )
    return [
        NewRecord(
            (None, b"", b"value %d" % n, b"\x00\xff" * (n % 300))[n % 4],
            key=(b"key %d" % n, None, b"")[n % 3],
            headers=headers[n % 5 % 3],
            timestamp=FIRST_TIMESTAMP + n * 1000,
            partition=n % partitions,
        )
        for n in numbers
    ]


def with_codec(codec: Codec) -> Write:
    """Batches of one record and of many, in and out of transactions, some aborted."""

    async def write(servers: str, topic: str) -> None:
        async with Producer(servers, compression_type=codec) as producer:
            await producer.send_many(topic, records(range(300), 3))
            await producer.send(topic, b"alone", partition=0)
        async with Producer(
            servers, transactional_id=topic, compression_type=codec
        ) as producer:
            for n in range(4):
                first = 1000 * (n + 1)
                transaction = producer.transaction()
                await transaction.begin()
                await transaction.send_many(
                    topic, records(range(first, first + 50 * (n + 1)), 3)
                )
                await (transaction.abort() if n % 2 else transaction.commit())

    return write


async def skewed(servers: str, topic: str) -> None:
    """Write nine of ten records to one of five partitions."""
    numbers = range(5_000)
    table = pa.table(
        {
            "key": pa.array([b"%d" % n for n in numbers], pa.binary()),
            "value": pa.array([b"value %d" % n for n in numbers], pa.binary()),
            "partition": pa.array(
                [n // 10 % 4 if n % 10 == 0 else 4 for n in numbers], pa.int32()
            ),
        }
    )
    async with Producer(servers, batch_size=16_384) as producer:
        await producer.send_table(topic, table, key="key", partition_column="partition")


async def wide(servers: str, topic: str) -> None:
    """Write a few records to each of 200 partitions, and none to some."""
    chosen = [each for each in records(range(1_000), 200) if (each.partition or 0) % 7]
    async with Producer(servers) as producer:
        await producer.send_many(topic, chosen)


async def large(servers: str, topic: str) -> None:
    """Write records that are larger than a fetch, between small ones."""
    async with Producer(servers, max_request_size=4 * LARGE) as producer:
        for n in range(6):
            size = LARGE + n if n % 3 == 1 else n
            await producer.send(topic, b"%d" % n * size, partition=0)


async def at_odd_times(servers: str, topic: str) -> None:
    """Write records of the first and the last day, in no order."""
    times = (LAST_TIMESTAMP, 0, 1, LAST_TIMESTAMP - 1, FIRST_TIMESTAMP)
    async with Producer(servers) as producer:
        for n, timestamp in enumerate(times):
            await producer.send(topic, b"%d" % n, timestamp=timestamp, partition=0)


async def plain(servers: str, topic: str) -> None:
    """Write records to one of two partitions."""
    async with Producer(servers) as producer:
        await producer.send_many(topic, records(range(20), 1))


async def only_aborted(servers: str, topic: str) -> None:
    """Write nothing that is ever committed."""
    async with Producer(servers, transactional_id=topic) as producer:
        for n in range(3):
            transaction = producer.transaction()
            await transaction.begin()
            await transaction.send_many(topic, records(range(n, n + 10), 2))
            await transaction.abort()


async def hold_open(servers: str, topic: str) -> Producer:
    """Write committed records, and leave a transaction open between others.

    Returns:
        The producer of the transaction, which is aborted when it closes.
    """
    async with Producer(servers) as producer:
        await producer.send_many(topic, records(range(30), 2))
    holding = Producer(servers, transactional_id=topic, transaction_timeout_ms=_OPEN_MS)
    await holding.start()
    transaction = holding.transaction()
    await transaction.begin()
    await transaction.send_many(topic, records(range(30, 40), 1))
    async with Producer(servers) as producer:
        await producer.send_many(topic, records(range(40, 60), 2))
    return holding


#: By the names of their topics.
LOGS: Final[Mapping[str, Log]] = {
    **{f"equal-{codec}": Log(3, with_codec(codec)) for codec in CODECS},
    "equal-skewed": Log(5, skewed),
    "equal-wide": Log(200, wide),
    "equal-large": Log(1, large, {"max.message.bytes": str(8 * LARGE)}),
    "equal-times": Log(
        1,
        at_odd_times,
        {
            "retention.ms": "-1",
            "message.timestamp.before.max.ms": str((1 << 63) - 1),
            "message.timestamp.after.max.ms": str((1 << 63) - 1),
        },
    ),
    "equal-append-time": Log(2, plain, {"message.timestamp.type": "LogAppendTime"}),
    "equal-only-aborted": Log(2, only_aborted),
}
