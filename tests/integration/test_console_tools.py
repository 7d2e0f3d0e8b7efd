"""Kafka's own console tools read what kafkaio wrote, and the reverse."""

import pytest

import kafkaio
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.kafka._releases import find_release
from kafkaio.testing.pytest_plugin import TopicFactory
from tests.support.java import Toolbox

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
TOOLS = Toolbox(find_release())  # they speak to every broker from 2.1 on


def properties(*names: str) -> list[str]:
    return [word for n in names for word in ("--formatter-property", f"print.{n}=true")]


async def test_the_console_consumer_reads_our_records(
    real_kafka: Kafka, topic: TopicFactory
) -> None:
    # The timestamps are old: without retention the broker keeps the records.
    name = topic(partitions=1, config={"retention.ms": "-1"})
    count = 200 * len(CODECS)
    lines = [f"value {n} " + "repetitive " * 20 for n in range(count)]
    for number, codec in enumerate(CODECS):
        async with kafkaio.Producer(
            real_kafka.bootstrap_servers, compression_type=codec
        ) as producer:
            records = [
                kafkaio.NewRecord(
                    lines[n].encode(),
                    key=b"key-%d" % n,
                    headers=[("source", b"kafkaio"), ("empty", None)],
                    timestamp=1_700_000_000_000 + n,
                )
                for n in range(200 * number, 200 * (number + 1))
            ]
            await producer.send_many(name, records)

    output = await TOOLS.run(
        CONSUMER,
        *("--bootstrap-server", real_kafka.bootstrap_servers, "--topic", name),
        *("--from-beginning", "--max-messages", str(count), "--timeout-ms", "200000"),
        *properties("key", "headers", "timestamp", "offset"),
    )
    assert output.lines == [
        f"CreateTime:{1_700_000_000_000 + n}\tOffset:{n}\t"
        f"source:kafkaio,empty:null\tkey-{n}\t{line}"
        for n, line in enumerate(lines)
    ]


@pytest.mark.parametrize("codec", CODECS)
async def test_we_read_the_records_of_the_console_producer(
    codec: str, real_kafka: Kafka, topic: TopicFactory
) -> None:
    name = topic(partitions=1)
    lines = [f"key-{n}\tvalue {n} " + "repetitive " * 20 for n in range(200)]
    output = await TOOLS.run(
        PRODUCER,
        *("--bootstrap-server", real_kafka.bootstrap_servers, "--topic", name),
        *("--compression-codec", codec, "--reader-property", "parse.key=true"),
        stdin="\n".join(lines) + "\n",
    )
    assert output.returncode == 0, output.stderr

    tp = kafkaio.TopicPartition(name, 0)
    seen: list[kafkaio.Record] = []
    async with kafkaio.Consumer(
        real_kafka.bootstrap_servers, assign=[tp], auto_offset_reset="earliest"
    ) as consumer:
        async for record in consumer:
            seen.append(record)
            if len(seen) == len(lines):
                break
    assert [r.offset for r in seen] == list(range(200))
    assert [f"{r.key.decode()}\t{r.value.decode()}" for r in seen] == lines
