"""Measure kafkaio beside franz-go, confluent-kafka and aiokafka, row by row.

    python -m benchmarks.rows [--only NAME,...] [--rounds N] [--json FILE]

starts an Apache Kafka of one node with its own timers, threads and buffers, and a proxy
in front of it for the rows that are far away. With ``--bootstrap HOST:PORT`` it uses a
broker that runs, and leaves out the rows that need TLS or distance. franz-go needs Go.

Each run is a fresh process, clients take turns, and what was read or written is
counted. The figures are medians of the rounds, the CPU is that of the client alone.
``--json`` keeps them, with every run, for ``python -m benchmarks.plot`` and
``python -m benchmarks.rows.series``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.delay import add_listeners, proxying
from benchmarks.rows.harness import Bench, medians
from benchmarks.rows.machine import machine, versions
from benchmarks.rows.model import Row
from benchmarks.rows.table import ROWS
from kafkaio.testing.kafka import Kafka

DELAYS = {"far20": 0.020, "far50": 0.050}
#: Members are to wait for the client, and not for these.
CONFIG = {
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.heartbeat.interval.ms": 500,
    # By default a group is assigned at most once a second: that would be measured.
    "group.consumer.assignment.interval.ms": 0,
    "log.retention.check.interval.ms": 5_000,
    "log.segment.delete.delay.ms": 1_000,
}


@contextlib.asynccontextmanager
async def brokers(
    rows: Sequence[Row], bootstrap: str | None
) -> AsyncIterator[tuple[Kafka | None, Mapping[str, str]]]:
    """Run what the rows need; yield the addresses by place."""
    if bootstrap:
        yield None, {"near": bootstrap}
        return
    wanted = {row.place for row in rows}
    tls = "tls" in wanted
    async with Kafka(fast=False, heap="1g", config=CONFIG, tls=tls) as kafka:
        places = {"near": kafka.bootstrap_servers}
        if tls:
            places["tls"] = kafka.bootstrap("SSL")
        if delays := {name: DELAYS[name] for name in DELAYS if name in wanted}:
            routes = await add_listeners(kafka, list(delays.values()))
            for name, (_, port, _) in zip(delays, routes, strict=True):
                places[name] = f"127.0.0.1:{port}"
            with proxying(routes):
                yield kafka, places
        else:
            yield kafka, places


async def measure(
    rows: Sequence[Row], rounds: int, bootstrap: str | None
) -> dict[str, object]:
    """Run all rows, print each, and return what ``--json`` writes."""
    with tempfile.TemporaryDirectory() as folder:
        async with brokers(rows, bootstrap) as (kafka, places):
            authority = None
            if kafka is not None and "tls" in places:
                authority = Path(kafka.certificates.authority)
            async with Bench(places, Path(folder), authority) as bench:
                found, failed = await measure_each(bench, rows, rounds)
                return {
                    "date": datetime.now(UTC).isoformat(timespec="seconds"),
                    "versions": versions(kafka),
                    "machine": machine(),
                    "rounds": rounds,
                    "other": round(statistics.median(bench.other or [0.0]), 1),
                    "rows": found,
                    "failed": failed,
                }


async def measure_each(
    bench: Bench, rows: Sequence[Row], rounds: int
) -> tuple[dict[str, object], dict[str, str]]:
    """Return the figures of the rows, and why others have none."""
    found: dict[str, object] = {}
    failed: dict[str, str] = {}
    for row in rows:
        if row.place not in bench.places:
            print(f"{row.name}: needs a broker of its own", flush=True)
            continue
        at, begun = len(bench.other), time.perf_counter()
        try:
            figures = await bench.measure(row, rounds)
        except Exception as error:  # noqa: BLE001 - the other rows are measured
            why = f"{type(error).__name__}: {error}"
            failed[row.name] = why
            print(f"{row.name}: FAILED: {why}", flush=True)
            continue
        seconds = time.perf_counter() - begun
        other = statistics.median(bench.other[at:])
        ways = {label: medians(each, row.measures) for label, each in figures.items()}
        found[row.name] = {"other": round(other, 1), "ways": ways}
        print(f"\n{row.name}: {row.title} (other {other:.0f} %, {seconds:.0f} s)")
        show(row, ways)
    return found, failed


def show(row: Row, ways: Mapping[str, dict[str, object]]) -> None:
    for label, figures in ways.items():
        print(f"  {label:32}", end="")
        for each in row.measures:
            figure = figures[each.name]
            assert isinstance(figure, dict)
            print(f"{figure['median']:12.3f} {each.unit}", end="")
        print(flush=True)


def chosen(names: str | None) -> list[Row]:
    """Return the rows whose names begin with one of those that are given."""
    if names is None:
        return list(ROWS)
    wanted = tuple(names.split(","))
    return [row for row in ROWS if row.name.startswith(wanted)]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", help="beginnings of names, separated by commas")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="a file to write")
    parser.add_argument("--bootstrap", help="a broker that runs: HOST:PORT")
    parser.add_argument("--list", action="store_true", help="print the names")
    args = parser.parse_args()
    rows = chosen(args.only)
    if not rows:
        parser.error(f"no row begins with {args.only}; --list prints their names")
    if args.list:
        print("\n".join(f"{row.name:24}{row.section}: {row.title}" for row in rows))
        return 0
    run = asyncio.run(measure(rows, args.rounds, args.bootstrap))
    if args.json:
        args.json.write_text(json.dumps(run, indent=1) + "\n")
    return 1 if run["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
