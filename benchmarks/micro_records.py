"""Nanoseconds per record of the record codec: both twins, then the compressions.

Run it as ``python benchmarks/micro_records.py [repeats]``. The workloads are ``v``, a
value of 100 bytes (110 on the wire), and ``kvh``, that with a key of 16 bytes and one
header. Rounds of the twins alternate, so that noise meets both alike.
"""

from __future__ import annotations

import importlib
import statistics
import sys
import time
from collections.abc import Callable
from types import ModuleType

from kafkaio._records._impl import ACCELERATED, crc32c
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
#: What the pure twin must keep to: nanoseconds for `v`.
GOALS = {"pure decode": 1_100, "pure append": 800}

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


def decoder(codec: ModuleType, section: bytes) -> Callable[[], object]:
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

    return decode


def twins() -> dict[str, ModuleType]:
    found = {"pure": importlib.import_module("kafkaio._records._pure")}
    try:
        found["compiled"] = importlib.import_module("kafkaio._records._speedups")
    except ImportError:
        print("The compiled codec is not built: run `pip install -e .`.")
    return found


def sample(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    for _ in range(ROUNDS_PER_SAMPLE):
        action()
    return (time.perf_counter() - start) / ROUNDS_PER_SAMPLE / RECORDS * 1e9


def calibrate() -> None:
    # One step is one turn of this loop: it tells a slow machine from slow code.
    for _ in range(RECORDS):
        pass


def measure(
    actions: dict[str, Callable[[], object]], repeats: int
) -> dict[str, tuple[float, float]]:
    samples: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(repeats):
        for name, action in actions.items():
            samples[name].append(sample(action))
    return {
        name: (statistics.median(times), min(times)) for name, times in samples.items()
    }


def loops() -> dict[str, Callable[[], object]]:
    actions: dict[str, Callable[[], object]] = {}
    for load, workload in WORKLOADS.items():
        for name, codec in twins().items():
            section = append(codec, workload)
            actions[f"{name} append {load}"] = lambda c=codec, w=workload: append(c, w)
            actions[f"{name} decode {load}"] = decoder(codec, section)
    return actions


def whole_batches() -> dict[str, Callable[[], object]]:
    actions: dict[str, Callable[[], object]] = {}
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
                batch.decode("orders", 0)

        actions[f"build {codec.name.lower()}"] = build
        actions[f"read {codec.name.lower()}"] = read
    return actions


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    print(f"{RECORDS} records per batch, ns per record: median and best of {repeats}")
    actions = {"an empty loop": calibrate, **loops()}
    for name, (median, best) in measure(actions, repeats).items():
        goal = GOALS.get(name.removesuffix(" v"))
        note = f"   goal {goal}" if goal else ""
        print(f"{name:22}{median:8.0f}{best:8.0f}{note}")
    twin = "compiled" if ACCELERATED else "pure"
    print(f"whole batches of v, {twin} codec")
    for name, (median, best) in measure(whole_batches(), repeats).items():
        print(f"{name:22}{median:8.0f}{best:8.0f}")


if __name__ == "__main__":
    main()
