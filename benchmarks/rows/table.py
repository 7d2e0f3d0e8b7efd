"""Every row of the table, in the order of the page."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.rows.model import (
    COUNT,
    CPU,
    IDLE,
    MEDIAN,
    MEMORY,
    PROCESS,
    RATE,
    TIME,
    Bar,
    Row,
    Topic,
    Way,
)

KAFKAIO, FRANZ = "kafkaio", "franz-go"
CONFLUENT, AIOKAFKA = "confluent-kafka", "aiokafka"
SMALL, KIB = 100, 1_024


def cpu(
    ratio: float = 1.0, *, client: str = "", way: str = "", row: str = ""
) -> Mapping[str, Bar]:
    return {"cpu": Bar(ratio, client, way, row)}


def producing(part: float = 0.2) -> tuple[Way, ...]:
    """The peers of rows of many records."""
    return (
        Way(FRANZ, "produce"),
        Way(CONFLUENT, "produce.confluent_each", part=max(part, 0.5)),
        Way(AIOKAFKA, "produce.aiokafka_each", part=part),
    )


def consuming(part: float = 0.2) -> tuple[Way, ...]:
    return (
        Way(FRANZ, "consume"),
        Way(CONFLUENT, "consume.confluent_many"),
        Way(AIOKAFKA, "consume.aiokafka_many", "`getmany`", part=part),
    )


def each(bars: Mapping[str, Bar] | None = None) -> Way:
    return Way(KAFKAIO, "produce.kafkaio_each", "`enqueue_nowait`", bars or cpu())


def many(bars: Mapping[str, Bar] | None = None) -> Way:
    return Way(KAFKAIO, "produce.kafkaio_many", "`send_many`", bars or cpu(0.9))


def iterating(bars: Mapping[str, Bar] | None = None) -> Way:
    return Way(KAFKAIO, "consume.kafkaio_for", "`async for`", bars or cpu())


def batches(bars: Mapping[str, Bar] | None = None) -> Way:
    return Way(KAFKAIO, "consume.kafkaio_batches", "`batches()`", bars or cpu())


def written(size: int = SMALL, **more: object) -> Topic:
    return Topic(size=size, **more)  # type: ignore[arg-type]


PRODUCE = "Producing"
CONSUME = "Consuming"
START = "Starting"
FAR = "Far from the broker"
MANY = "Many partitions"
GROUPS = "Groups, transactions, copies"

PRODUCING = (
    Row(
        name="produce-100",
        title="100 B, one by one and many",
        section=PRODUCE,
        ways=(each(), many(), *producing()),
        topic=written(),
        records=200_000,
    ),
    Row(
        name="produce-100-keyed",
        title="100 B with key and two headers",
        section=PRODUCE,
        ways=(
            each(),
            many(cpu(1.1, way="`enqueue_nowait`")),
            *producing(0.1),
        ),
        topic=written(keyed=True),
        records=150_000,
    ),
    Row(
        name="produce-100-metadata",
        title="100 B, each `RecordMetadata` taken",
        section=PRODUCE,
        ways=(
            Way(KAFKAIO, "produce.kafkaio_metadata", "`await delivery`", cpu()),
            *producing(),
        ),
        topic=written(),
        records=200_000,
    ),
    Row(
        name="produce-1k",
        title="1 KiB",
        section=PRODUCE,
        ways=(each(), many(), *producing()),
        topic=written(KIB),
        records=80_000,
    ),
    Row(
        name="produce-1k-tls",
        title="1 KiB over TLS",
        section=PRODUCE,
        ways=(each(), many(cpu()), *producing()),
        topic=written(KIB),
        place="tls",
        records=60_000,
    ),
    *(
        Row(
            name=f"produce-1k-{codec}",
            title=f"1 KiB, {codec}",
            section=PRODUCE,
            ways=(each(), *producing()),
            topic=written(KIB),
            records=60_000,
            spec={"compression": codec},
        )
        for codec in ("lz4", "zstd")
    ),
    Row(
        name="produce-10k",
        title="10 KiB",
        section=PRODUCE,
        ways=(each(), many(cpu()), *producing()),
        topic=written(10 * KIB),
        records=10_000,
    ),
    Row(
        name="produce-5m",
        title="5 MB",
        section=PRODUCE,
        ways=(
            each(
                {
                    "rate": Bar(0.9, client=CONFLUENT),
                    "cpu": Bar(1.0, client=CONFLUENT),
                }
            ),
            Way(FRANZ, "produce"),
            Way(CONFLUENT, "produce.confluent_each"),
            Way(AIOKAFKA, "produce.aiokafka_each"),
        ),
        topic=written(5_000_000, large=True),
        measures=(RATE, CPU),
        records=40,
        spec={"large": True},
    ),
    *(
        Row(
            name=name,
            title=title,
            section=PRODUCE,
            ways=(
                Way(KAFKAIO, "produce.kafkaio_await", "`await send`", cpu(bar)),
                Way(FRANZ, "await"),
                Way(AIOKAFKA, "produce.aiokafka_await"),
                *(
                    (Way(CONFLUENT, "produce.confluent_await", part=part),)
                    if part
                    else ()
                ),
            ),
            topic=written(),
            measures=(CPU, MEDIAN),
            records=records,
            spec={"callers": callers, **spec},
        )
        for name, title, bar, records, callers, part, spec in (
            ("await", "100 B, awaited one at a time", 1.0, 3_000, 1, 0.1, {}),
            (
                "await-linger-0",
                "100 B, awaited one at a time, linger 0",
                *(0.9, 3_000, 1, 0.5, {"linger_ms": 0}),
            ),
            ("await-64", "100 B, awaited by 64 coroutines", 1.0, 19_200, 64, 0, {}),
        )
    ),
)

CONSUMING = (
    Row(
        name="consume-100",
        title="100 B, key and value",
        section=CONSUME,
        ways=(
            iterating(),
            batches(),
            Way(
                KAFKAIO,
                "consume.kafkaio_lanes",
                "`partitions()`",
                cpu(2.0, way="`async for`"),
            ),
            *consuming(),
            Way(AIOKAFKA, "consume.aiokafka_for", "`async for`", part=0.1),
        ),
        topic=Topic(records=300_000),
        records=300_000,
    ),
    Row(
        name="consume-100-keyed",
        title="100 B, key, value and two headers",
        section=CONSUME,
        ways=(iterating(cpu(0.9)), *consuming()),
        topic=Topic(records=200_000, keyed=True),
        records=200_000,
    ),
    Row(
        name="consume-1k",
        title="1 KiB",
        section=CONSUME,
        ways=(iterating(cpu(0.9)), batches(), *consuming()),
        topic=Topic(records=150_000, size=KIB),
        records=150_000,
    ),
    *(
        Row(
            name=f"consume-1k-{codec}",
            title=f"1 KiB, {codec}",
            section=CONSUME,
            ways=(iterating(), batches(), *consuming()),
            topic=Topic(records=100_000, size=KIB, compression=codec),
            records=100_000,
        )
        for codec in ("lz4", "zstd")
    ),
    Row(
        name="consume-10k",
        title="10 KiB",
        section=CONSUME,
        ways=(iterating(), batches(), *consuming()),
        topic=Topic(records=20_000, size=10 * KIB),
        records=20_000,
    ),
    Row(
        name="slow-reader",
        title="memory of a reader that takes 1,000 records a second",
        section=CONSUME,
        ways=(
            Way(KAFKAIO, "consume.kafkaio_slow", "", {"memory": Bar(absolute=40)}),
            Way(FRANZ, "slow"),
            Way(CONFLUENT, "consume.confluent_slow"),
            Way(AIOKAFKA, "consume.aiokafka_slow"),
        ),
        topic=Topic(records=192_000, size=KIB, partitions=64),
        measures=(MEMORY,),
        spec={"seconds": 4},
    ),
)

STARTING = (
    Row(
        name="first-ack",
        is_start=True,
        title="import, constructor, first acknowledgement",
        section=START,
        ways=(
            Way(
                KAFKAIO,
                "first.kafkaio_ack",
                "",
                {"process": Bar(1.0, client=AIOKAFKA)},
            ),
            Way(FRANZ, "first_ack"),
            Way(CONFLUENT, "first.confluent_ack"),
            Way(AIOKAFKA, "first.aiokafka_ack"),
        ),
        topic=written(),
        measures=(PROCESS, TIME),
    ),
    Row(
        name="first-record-group",
        is_start=True,
        title="import, constructor, first record in a group",
        section=START,
        ways=(
            Way(
                KAFKAIO,
                "first.kafkaio_record",
                "",
                {"process": Bar(1.0, client=AIOKAFKA)},
            ),
            Way(FRANZ, "first_record"),
            Way(CONFLUENT, "first.confluent_record"),
            Way(AIOKAFKA, "first.aiokafka_record"),
        ),
        topic=Topic(records=4_000),
        measures=(PROCESS, TIME),
        in_group=True,
    ),
    Row(
        name="first-record",
        is_start=True,
        title="import, constructor, first record without a group",
        section=START,
        ways=(
            Way(KAFKAIO, "first.kafkaio_record", "", {"time": Bar(absolute=15)}),
            Way(FRANZ, "first_record"),
            Way(CONFLUENT, "first.confluent_record"),
            Way(AIOKAFKA, "first.aiokafka_record"),
        ),
        topic=Topic(records=4_000),
        measures=(TIME,),
    ),
)

DISTANT = (
    *(
        Row(
            name=f"far-{delay}",
            title=f"1 KiB at defaults, {delay} ms away",
            section=FAR,
            ways=(
                each({"rate": Bar(1.0, client=FRANZ)}),
                Way(FRANZ, "produce"),
                Way(CONFLUENT, "produce.confluent_each", part=0.5),
                Way(AIOKAFKA, "produce.aiokafka_each", part=0.1),
            ),
            topic=written(KIB, partitions=6),
            place=f"far{delay}",
            measures=(RATE,),
            records=120_000,
            # As much as the buffer holds, so that the program is not the limit.
            spec={"window": 32_768},
        )
        for delay in (20, 50)
    ),
    Row(
        name="far-first-ack",
        is_start=True,
        title="constructor to first acknowledgement, 50 ms away",
        section=FAR,
        ways=(
            Way(KAFKAIO, "first.kafkaio_ack", "", {"time": Bar(1.0, client=AIOKAFKA)}),
            Way(FRANZ, "first_ack"),
            Way(CONFLUENT, "first.confluent_ack"),
            Way(AIOKAFKA, "first.aiokafka_ack"),
        ),
        topic=written(),
        place="far50",
        measures=(TIME,),
    ),
    Row(
        name="far-first-record",
        is_start=True,
        title="constructor to first record, 50 ms away",
        section=FAR,
        ways=(
            Way(
                KAFKAIO,
                "first.kafkaio_record",
                "",
                {"time": Bar(1.0, client=AIOKAFKA)},
            ),
            Way(FRANZ, "first_record"),
            Way(CONFLUENT, "first.confluent_record"),
            Way(AIOKAFKA, "first.aiokafka_record"),
        ),
        topic=Topic(records=4_000),
        place="far50",
        measures=(TIME,),
    ),
)


def keyless(count: int) -> Row:
    base = cpu(1.5, way="`enqueue_nowait`", row="keyless-10")
    return Row(
        name=f"keyless-{count}",
        title=f"100 B without keys, {count:,} partitions used once",
        section=MANY,
        # aiokafka walks all partitions for each batch: a millisecond a record.
        ways=(
            each(base if count > 10 else cpu()),
            *producing(0.01 if count > 1_000 else 0.2),
        ),
        topic=written(partitions=count),
        records=200_000,
        spec={"spread": True},
    )


PARTITIONS = (
    keyless(10),
    keyless(1_000),
    Row(
        name="consume-512",
        title="100 B, 512 partitions with few records each",
        section=MANY,
        ways=(iterating(), batches(), *consuming()),
        topic=Topic(records=102_400, partitions=512),
        records=102_400,
    ),
    Row(
        name="idle-200",
        title="a reader that waits on 200 partitions",
        section=MANY,
        ways=(
            Way(KAFKAIO, "consume.kafkaio_idle", "", {"idle": Bar(absolute=0.10)}),
            Way(FRANZ, "idle"),
            Way(CONFLUENT, "consume.confluent_idle"),
            Way(AIOKAFKA, "consume.aiokafka_idle"),
        ),
        topic=Topic(records=200, partitions=200),
        records=200,
        measures=(IDLE,),
        spec={"seconds": 6},
    ),
)

TOGETHER = (
    Row(
        name="commit-each",
        title="a commit after each record",
        section=GROUPS,
        ways=(
            Way(
                KAFKAIO,
                "consume.kafkaio_commit_each",
                "",
                cpu(1.0, client=CONFLUENT),
            ),
            Way(FRANZ, "commit_each"),
            Way(CONFLUENT, "consume.confluent_commit_each"),
            Way(AIOKAFKA, "consume.aiokafka_commit_each"),
        ),
        topic=Topic(records=4_000),
        records=1_000,
        in_group=True,
    ),
    Row(
        name="handover",
        title="KIP-848 hand-over of partitions from a slow reader",
        section=GROUPS,
        ways=(
            Way(KAFKAIO, "consume.kafkaio_handover", "", {"time": Bar(absolute=500)}),
            Way(FRANZ, "handover"),
            Way(CONFLUENT, "consume.confluent_handover"),
        ),
        topic=Topic(records=4_000, partitions=8),
        measures=(TIME,),
        in_group=True,
    ),
    *(
        Row(
            name=f"transactions-{count}",
            title=f"transactions of {count} record{'s' if count > 1 else ''}",
            section=GROUPS,
            ways=(
                Way(KAFKAIO, "produce.kafkaio_transact", "", cpu()),
                Way(FRANZ, "transact"),
                Way(CONFLUENT, "produce.confluent_transact"),
                Way(AIOKAFKA, "produce.aiokafka_transact"),
            ),
            topic=written(),
            measures=(CPU, COUNT),
            records=100,
            spec={"each": count},
        )
        for count in (1, 100)
    ),
)

COPYING = tuple(
    Row(
        name=f"copy-{kib}k",
        title=f"the command `kafkaio`, 1 KiB, zstd, batches of {kib} KiB",
        section=GROUPS,
        ways=(
            Way(KAFKAIO, "copy.kafkaio_copy", "`copy`"),
            Way(KAFKAIO, "copy.kafkaio_raw", "`copy --raw`", cpu(0.2, way="`copy`")),
        ),
        # So many that the start of the command, which is subtracted, weighs little.
        topic=Topic(records=400_000, size=KIB, compression="zstd", batch=kib * KIB),
        records=400_000,
    )
    for kib in (16, 256)
)

#: The broker is busy with so many partitions for minutes, so they come last.
LAST = (keyless(10_000),)

ROWS = (
    *(*PRODUCING, *CONSUMING, *STARTING, *DISTANT),
    *(*PARTITIONS, *TOGETHER, *COPYING, *LAST),
)
