"""Our batches read by Kafka's own code, and Kafka's by ours: one JVM run for all.

Needs a JDK and Kafka's jars; without them these tests fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from kafkaio._records.batch import (
    BatchBuilder,
    Compression,
    ControlType,
    EndTxnMarker,
    control_batch,
    encode_batch,
    read_batches,
    with_base_offset,
    with_log_append_time,
)
from kafkaio.testing.kafka._releases import find_release
from tests.support.java import JavaProgram, Toolbox

# It needs no broker, so once is enough.
pytestmark = [
    pytest.mark.kafka_versions("newest"),
    pytest.mark.not_embedded("asks no broker that runs"),
]

SOURCES = Path(__file__).parent.parent / "java" / "records"
NOW = 1_700_000_000_000
PRODUCER_ID = 2**62
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
JAVA_FILES = sorted(
    [f"v2-{codec}-{kind}" for codec in CODECS for kind in (0, 1)]
    + [f"v1-{codec}-{kind}" for codec in CODECS[:-1] for kind in (0, 1)]
    + [f"v0-{codec}--1" for codec in CODECS[:-1]]
    + ["marker-0", "marker-1", "marker-leader", "marker-gone"]
    + ["high-gzip", "high-lz4", "high-zstd"]
    + ["compacted-none", "compacted-zstd", "mixed"]
)


def our_records() -> Iterator[tuple[int, bytes | None, bytes | None, list[tuple]]]:
    values = [None, b"", b"value", b"x" * 63, b"y" * 64, b"z" * 9_000]
    keys = [None, b"", b"key", b"k" * 200]
    for number in range(200):
        headers = [
            ("hé世😀"[: i + 1], None if i == 1 else b"v" * (i * 50))
            for i in range(number % 5)
        ]
        timestamp = NOW + (-number * 100_000 if number % 3 == 0 else number)
        value = bytes(range(256)) * 600 if number == 60 else values[number % 6]
        yield timestamp, keys[number % 4], value, headers


def our_batches() -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for codec in Compression:
        builder = BatchBuilder(
            compression=codec, target_size=10**9, transactional=codec.value % 2 == 1
        )
        for record in our_records():
            assert builder.try_append(*record) >= 0
        first = builder.build(
            producer_id=PRODUCER_ID, producer_epoch=7, base_sequence=2**31 - 5
        )
        second = builder.build(producer_id=5, producer_epoch=8, base_sequence=0)
        files[f"codec-{codec.name.lower()}"] = with_base_offset(
            first, 5_000_000_000, 11
        ) + with_base_offset(second, 6_000_000_000, 12)
        stamped = with_log_append_time(
            encode_batch(our_records(), compression=codec), NOW + 5
        )
        files[f"stamped-{codec.name.lower()}"] = with_base_offset(stamped, 9, 1)
        for level in (1, 5, 9) if codec in {1, 3, 4} else ():
            leveled = BatchBuilder(compression=codec, level=level, target_size=10**9)
            for record in our_records():
                leveled.try_append(*record)
            files[f"level-{codec.name.lower()}-{level}"] = leveled.build()
    for kind in ControlType:
        files[f"marker-{kind.name.lower()}"] = control_batch(
            EndTxnMarker(kind, 77),
            producer_id=PRODUCER_ID,
            producer_epoch=2,
            timestamp=NOW,
            base_offset=40,
            leader_epoch=3,
        )
    return files


def describe(data: bytes) -> str:
    """What `Dump.java` says, said by us."""
    lines = []
    for batch in read_batches(data):
        horizon = batch.base_timestamp if batch.has_delete_horizon else "none"
        lines.append(
            f"batch base={batch.base_offset} last={batch.last_offset} "
            f"next={batch.next_offset} magic={batch.magic} "
            f"codec={batch.compression.value} type={batch.timestamp_type.value} "
            f"max={batch.max_timestamp} pid={batch.producer_id} "
            f"epoch={batch.producer_epoch} seq={batch.base_sequence} "
            f"txn={str(batch.is_transactional).lower()} "
            f"control={str(batch.is_control).lower()} leader={batch.leader_epoch} "
            f"horizon={horizon} size={batch.size_bytes}"
        )
        records = batch.decode("topic", 0)
        for record in records:
            fields = ["record", str(record.offset), str(record.timestamp)]
            for field in (record.key, record.value):
                fields.append("null" if field is None else f"0x{field.hex()}")
            for name, value in record.headers:
                shown = "null" if value is None else value.hex()
                fields.append(f"{name.encode().hex()}={shown}")
            lines.append(" ".join(fields))
            if batch.is_control:
                lines.append(f"control {batch.control_type()}")
        lines.append(f"records {batch.count}")
        assert len(records) == batch.count
    return "".join(line + "\n" for line in lines)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def exchange(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("records")
    ours = directory / "ours"
    ours.mkdir()
    for name, data in our_batches().items():
        (ours / f"{name}.bin").write_bytes(data)
    program = JavaProgram(SOURCES, Toolbox(find_release()), "RecordsProof")
    output = await program.run(str(directory))
    assert output.returncode == 0, output.stderr
    return directory


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", sorted(our_batches()))
def test_java_reads_what_we_write(exchange: Path, name: str) -> None:
    seen_by_java = (exchange / "ours" / f"{name}.txt").read_text()
    assert seen_by_java == describe((exchange / "ours" / f"{name}.bin").read_bytes())


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_java_finds_the_records_that_went_in(exchange: Path) -> None:
    for codec in Compression:
        text = (exchange / "ours" / f"codec-{codec.name.lower()}.txt").read_text()
        expected = [
            (str(timestamp), "null" if key is None else f"0x{key.hex()}", len(headers))
            for timestamp, key, _, headers in our_records()
        ]
        found = [
            (fields[2], fields[3], len(fields) - 5)
            for fields in map(str.split, text.splitlines())
            if fields[0] == "record"
        ]
        assert found == expected * 2


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", JAVA_FILES)
def test_we_read_what_java_writes(exchange: Path, name: str) -> None:
    data = (exchange / "java" / f"{name}.bin").read_bytes()
    assert describe(data) == (exchange / "java" / f"{name}.txt").read_text()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_java_wrote_the_cases_listed_here(exchange: Path) -> None:
    assert sorted(file.stem for file in (exchange / "java").glob("*.bin")) == JAVA_FILES
