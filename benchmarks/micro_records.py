"""Nanoseconds per record of the record codec, compiled and pure, and compressed.

Run it as ``python benchmarks/micro_records.py [repeats]``. The workloads are ``v``, a
value of 100 bytes (110 on the wire), and ``kvh``, the same with a key of 16 bytes and
one header. The codec of aiokafka is measured as well, if it is installed. Rounds
alternate, so that other work on the machine affects all alike, and times are CPU times,
not wall times. Compare the figures of one run, never those of two.
"""

from __future__ import annotations

import importlib
import statistics
import sys
import time
from collections.abc import Callable
from types import ModuleType

from kafkaio._records._impl import accelerated, crc32c
from kafkaio._records._layout import Origin
from kafkaio._records.batch import (
    BatchBuilder,
    Compression,
    Compressor,
    Decompressor,
    encode_batch,
    read_batches,
)
from kafkaio.types import Header, TimestampType

RECORDS = 1_000
ROUNDS_PER_SAMPLE = 5
NOW = 1_700_000_000_000
#: The limit of each, in nanoseconds.
GOALS = {
    "pure decode v": 1_100,
    "pure append v": 800,
    "compiled cursor v": 70,
    "compiled cursor kvh": 100,
    "compiled append v": 80,
    "compiled append kvh": 110,
    "compiled values v": 25,
}

Action = Callable[[], object]
Workload = tuple[bytes | None, list[bytes], tuple[Header, ...]]


def values() -> list[bytes]:
    template = b'{"order": %8d, "customer": "c-%06d", "items": [%d, %d], "paid": true}'
    return [
        (template % (n, n * 7919 % 10**6, n % 13, n % 7)).ljust(100, b".")
        for n in range(RECORDS)
    ]


WORKLOADS: dict[str, Workload] = {
    "v": (None, values(), ()),
    "kvh": (b"customer-0000042", values(), (("trace", b"0123456789"),)),
}


def append(codec: ModuleType, workload: Workload) -> bytes:
    key, vals, headers = workload
    writer = codec.RecordWriter(2**31 - 1)
    try_append = writer.try_append
    for number, value in enumerate(vals):
        try_append(NOW + number, key, value, headers)
    section: bytes = writer.section()
    crc32c(section)
    return section


def append_values(codec: ModuleType, workload: Workload) -> None:
    writer = codec.RecordWriter(2**31 - 1)
    writer.append_values(NOW, workload[1])
    crc32c(writer.section())


def readers(codec: ModuleType, section: bytes) -> dict[str, Action]:
    """Return functions that check the CRC and read the value of each record."""
    origin = Origin(
        topic="orders",
        partition=0,
        start_offset=0,
        base_offset=0,
        last_offset_delta=RECORDS - 1,
        base_timestamp=NOW,
        log_append_time=None,
        timestamp_type=TimestampType.CREATE,
        leader_epoch=0,
    )

    def decode() -> None:
        crc32c(section)
        for record in codec.decode_records(section, 0, RECORDS, origin):
            _ = record.value

    def cursor() -> None:
        crc32c(section)
        for record in codec.RecordCursor(section, 0, RECORDS, origin, RECORDS):
            _ = record.value

    def values() -> None:
        crc32c(section)
        for _ in codec.decode_values(section, 0, RECORDS, origin):
            pass

    def columns() -> None:
        crc32c(section)
        builder = codec.ColumnsBuilder()
        builder.add(section, 0, RECORDS, origin)
        builder.finish()

    return {"decode": decode, "cursor": cursor, "values": values, "columns": columns}


def aiokafka(workload: Workload) -> dict[str, Action]:
    """Return functions that do the same with aiokafka's codec, if it is installed."""
    try:
        records = importlib.import_module("aiokafka.record.default_records")
    except ImportError:
        return {}
    key, vals, headers = workload
    pairs = list(headers)

    def build() -> bytes:
        builder = records.DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 2**30)
        for number, value in enumerate(vals):
            builder.append(number, NOW + number, key, value, pairs)
        return bytes(builder.build())

    data = build()

    def read() -> None:
        batch = records.DefaultRecordBatch(data)
        batch.validate_crc()
        for record in batch:
            _ = record.value

    return {"aiokafka append": build, "aiokafka decode": read}


class Pure:
    """The codec in pure Python, which is several modules."""

    def __init__(self) -> None:
        for part in ("_pure", "_cursor", "_columns"):
            module = importlib.import_module(f"kafkaio._records.{part}")
            vars(self).update(vars(module))


def twins() -> dict[str, ModuleType]:
    found = {"pure": Pure()}
    try:
        found["compiled"] = importlib.import_module("kafkaio._records._speedups")
    except ImportError:
        print("The compiled codec is not built: run `pip install -e .`.")
    return found


def sample(action: Action) -> float:
    start = time.process_time()
    for _ in range(ROUNDS_PER_SAMPLE):
        action()
    return (time.process_time() - start) / ROUNDS_PER_SAMPLE / RECORDS * 1e9


def calibrate() -> None:
    # The time of one iteration: it distinguishes a slow machine from slow code.
    for _ in range(RECORDS):
        pass


def measure(actions: dict[str, Action], repeats: int) -> dict[str, tuple[float, float]]:
    samples: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(repeats):
        for name, action in actions.items():
            samples[name].append(sample(action))
    return {
        name: (statistics.median(times), min(times)) for name, times in samples.items()
    }


def loops() -> dict[str, Action]:
    actions: dict[str, Action] = {}
    for load, workload in WORKLOADS.items():
        for name, codec in twins().items():
            section = append(codec, workload)
            actions[f"{name} append {load}"] = lambda c=codec, w=workload: append(c, w)
            if load == "v":
                actions[f"{name} append_values {load}"] = lambda c=codec, w=workload: (
                    append_values(c, w)
                )
            for way, action in readers(codec, section).items():
                actions[f"{name} {way} {load}"] = action
        for name, action in aiokafka(workload).items():
            actions[f"{name} {load}"] = action
    return actions


def whole_batches() -> dict[str, Action]:
    actions: dict[str, Action] = {}
    key, vals, headers = WORKLOADS["v"]
    records = [(NOW + n, key, value, headers) for n, value in enumerate(vals)]
    for codec in Compression:
        data = encode_batch(records, compression=codec)
        compressor, decompressor = Compressor(codec), Decompressor()

        def build(compressor: Compressor = compressor) -> None:
            builder = BatchBuilder(compressor=compressor, target_size=2**31 - 1)
            for record in records:
                builder.try_append(*record)
            builder.build()

        def read(data: bytes = data, decompressor: Decompressor = decompressor) -> None:
            for batch in read_batches(data, decompressor=decompressor):
                for record in batch.iterate("orders", 0):
                    _ = record.value

        actions[f"build {codec.name.lower()}"] = build
        actions[f"read {codec.name.lower()}"] = read
    return actions


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    print(f"{RECORDS} records per batch, ns per record: median and best of {repeats}")
    actions = {"an empty loop": calibrate, **loops()}
    for name, (median, best) in measure(actions, repeats).items():
        goal = GOALS.get(name)
        note = f"   goal {goal}" if goal else ""
        print(f"{name:26}{median:8.0f}{best:8.0f}{note}")
    twin = "compiled" if accelerated else "pure"
    print(f"whole batches of v, {twin} codec")
    for name, (median, best) in measure(whole_batches(), repeats).items():
        print(f"{name:26}{median:8.0f}{best:8.0f}")


if __name__ == "__main__":
    main()
