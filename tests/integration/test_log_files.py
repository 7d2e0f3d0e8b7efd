"""Log files are Kafka's own: its log dump reads ours, and we read a real broker's."""

import io
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

import kafkaio
from kafkaio._cli import main
from kafkaio._records.batch import Compression, encode_batch, read_batches
from kafkaio.testing._log import DiskStorage, Log, LogConfig
from kafkaio.testing.kafka._releases import find_release
from tests.support.java import Toolbox
from tests.support.kafka import Kafka

# The version of a real Kafka means nothing here, so once is enough.
pytestmark = [
    pytest.mark.kafka_versions("newest"),
    pytest.mark.not_embedded("asks no broker that runs"),
]

DUMP = "org.apache.kafka.tools.DumpLogSegments"
TOOLS = Toolbox(find_release())
NOW = 1_700_000_000_000
SMALL = LogConfig(segment_bytes=20_000, index_interval_bytes=500)
BATCH = re.compile(
    r"^baseOffset: (\d+) lastOffset: (\d+) count: (\d+) .*partitionLeaderEpoch: (\d+)"
    r".* position: (\d+) .*isvalid: (\w+)"
)
COMPLAINT = re.compile(
    r"mismatch|not found|out of order|corrupt|invalid|non-consecutive|exception",
    re.IGNORECASE,
)


def rows(base: int, count: int) -> list[tuple[int, bytes, bytes, tuple[()]]]:
    numbers = range(base, base + count)
    return [
        (NOW + n + n * 7 % 5, b"key %d" % (n % 7), b"value %d" % n * 3, ())
        for n in numbers
    ]


def write_log(directory: Path, config: LogConfig = SMALL) -> Log:
    log = Log.open(DiskStorage(directory), config, NOW)
    for n in range(300):
        raw = encode_batch(rows(n * 5, 5), compression=Compression(n % 5))
        log.append(raw, leader_epoch=n // 100, now_ms=NOW)
    log.close()
    return log


def segment_files(directory: Path) -> list[str]:
    return [str(p) for p in sorted(directory.iterdir()) if p.name[:20].isdigit()]


async def java_dump(directory: Path) -> list[str]:
    files = segment_files(directory)
    output = await TOOLS.run(DUMP, "--deep-iteration", "--files", ",".join(files))
    assert output.returncode == 0, output.stderr
    complaints = [line for line in output.lines if COMPLAINT.search(line)]
    assert complaints == []
    return output.lines


def batches_of(lines: list[str]) -> list[tuple[str, ...]]:
    return [match.groups() for match in map(BATCH.match, lines) if match]


def our_batches(log: Log) -> list[tuple[str, ...]]:
    found = []
    for segment in log.segments:
        position, offset = 0, segment.base_offset
        while offset < segment.next_offset:
            (one,) = read_batches(log.read(offset, 0))
            numbers = (one.base_offset, one.last_offset, one.count, one.leader_epoch)
            found.append((*map(str, numbers), str(position), "true"))
            position += one.size_bytes
            offset = one.next_offset
    return found


async def test_kafkas_log_dump_reads_ours(tmp_path: Path) -> None:
    log = write_log(tmp_path / "orders-0")
    lines = await java_dump(tmp_path / "orders-0")
    assert len(log.segments) == 3
    assert batches_of(lines) == our_batches(log)
    assert len(batches_of(lines)) == 300
    # Every entry of the indexes, too, was read and compared.
    assert sum(line.startswith("offset: ") for line in lines) > 50
    assert sum(line.startswith("timestamp: ") for line in lines) > 50
    log.close()


async def test_kafkas_log_dump_reads_what_we_compacted(tmp_path: Path) -> None:
    log = write_log(tmp_path / "orders-0", LogConfig(cleanup_policy="compact"))
    raw = encode_batch([(NOW, b"key 1", None, ())], compression=Compression.LZ4)
    log.append(raw, leader_epoch=3, now_ms=NOW)
    log.roll(NOW)
    assert log.compact(NOW)
    log.close()
    lines = await java_dump(tmp_path / "orders-0")
    assert batches_of(lines) == our_batches(log)
    assert sum("| offset: " in line for line in lines) == 7
    log.close()


async def fill(kafka: Kafka, topic: str) -> None:
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        async with kafkaio.Producer(
            kafka.bootstrap_servers, compression_type=codec
        ) as producer:
            for base in range(0, 3000, 500):
                records = [
                    kafkaio.NewRecord(value * 20, key=key, timestamp=at)
                    for at, key, value, _ in rows(base, 500)
                ]
                await producer.send_many(topic, records)


def command(*words: str) -> tuple[int, list[str]]:
    out = io.StringIO()
    with redirect_stdout(out):
        code = main(words)
    return code, out.getvalue().splitlines()


async def test_we_read_a_real_brokers_files(tmp_path: Path) -> None:
    config = {"log.segment.bytes": 1_048_576, "log.index.interval.bytes": 1000}
    async with Kafka(config=config) as kafka:
        name = await kafka.create_topic("orders", config={"retention.ms": "-1"})
        await fill(kafka, name)
        data = tmp_path / "data"
        await kafka.stop(1)
        shutil.copytree(kafka.engine.nodes[1].data, data)

    code, lines = command("log", "verify", str(data))
    assert code == 0, lines
    partition = data / f"{name}-0"
    seen = [Path(name).suffix for name in segment_files(partition)]
    assert {".log", ".index", ".timeindex", ".snapshot"} <= set(seen)
    assert seen.count(".log") > 1

    java = batches_of(await java_dump(partition))
    code, lines = command("log", "dump", str(partition))
    assert code == 0
    assert sum("base_offset=" in line for line in lines) == len(java)
    assert any("last_sequence=" in line for line in lines)
    assert any(line.startswith("  epoch=0 start_offset=0") for line in lines)

    log = Log.open(DiskStorage(partition), LogConfig(), NOW)
    assert log.recovery.problem is None
    assert our_batches(log) == java
    assert (log.start_offset, log.end_offset) == (0, 15_000)
    log.close()


WRITER = """
import sys
from pathlib import Path
from kafkaio._records.batch import encode_batch
from kafkaio.testing._log import DiskStorage, Log, LogConfig

log = Log.open(DiskStorage(Path(sys.argv[1])), LogConfig(segment_bytes=5000), 0)
# What the last life wrote is kept, all before it goes: opening stays fast.
log.delete_records(max(log.end_offset - 500, 0))
print(log.end_offset, flush=True)
while True:
    value = b"value %d" % log.end_offset
    log.append(encode_batch([(1, b"k", value, ())]), leader_epoch=0, now_ms=0)
    if log.end_offset % 7 == 0:
        log.flush()
        print(log.end_offset, flush=True)
"""


def test_a_killed_writer_loses_nothing_flushed(tmp_path: Path) -> None:
    # `nox -s power_cut` asks for a thousand kills.
    kills = int(os.environ.get("KAFKAIO_KILLS", "8"))
    dice = random.Random(kills)
    flushed = 0
    for _ in range(kills):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE
        ) as writer:
            assert writer.stdout is not None
            for _ in range(dice.randint(2, 40)):
                last = int(writer.stdout.readline())
                assert last >= flushed
                flushed = last
            writer.send_signal(signal.SIGKILL)
            flushed = max([flushed, *map(int, writer.stdout.read().split())])
        flushed = check_lives(tmp_path, flushed)
    assert flushed > kills


def check_lives(directory: Path, flushed: int) -> int:
    """Hold what can be read against what must be there; returns the end."""
    log = Log.open(DiskStorage(directory), LogConfig(), 0)
    assert log.end_offset >= flushed
    assert log.start_offset <= max(flushed - 500, 0)
    offset = log.start_offset
    while data := log.read(offset, 100_000):
        for one in read_batches(data):
            (record,) = one.decode("", 0)
            assert (record.offset, record.value) == (offset, b"value %d" % offset)
            offset = one.next_offset
    assert offset == log.end_offset
    log.close()
    return offset
