"""``kafkaio bench``: measures how fast records are produced and consumed."""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import click

from kafkaio._cli.records.places import PLACE_RANGE, PlaceRange
from kafkaio._cli.shell.command import Group, asynchronous
from kafkaio._cli.shell.progress import ProgressBar
from kafkaio._cli.text.document import (
    INTEGER,
    NUMBER,
    Document,
    mapping_of,
    one_of,
    rows,
)
from kafkaio._cli.text.output import Table, TableColumn
from kafkaio._runtime.clock import now, wall_ms
from kafkaio._runtime.group import TaskGroup
from kafkaio.errors import AuthorizationError, BrokerError, UnknownTopicOrPartition
from kafkaio.protocol._error_codes import ErrorCode

if TYPE_CHECKING:
    from kafkaio._cli.shell.session import CommandSession
    from kafkaio._consumer import Consumer
    from kafkaio._producer import Delivery, Producer

    #: When some records were sent, and their deliveries; None at the end.
    _Samples: TypeAlias = asyncio.Queue[tuple[float, Delivery] | None]

#: The approximate number of latencies that are measured. Each one wakes a task, so
#: measuring them all would slow down the producer.
_SAMPLES: Final = 10_000
#: Records between two checks of the clock, of deliveries and of the rate.
_CHECK_EVERY: Final = 100
_PERCENTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999, "max": 1.0}
_LATENCIES: Final = mapping_of(NUMBER).having(*_PERCENTILES)
_BENCH: Final = Document(
    results=rows(
        phase=one_of("produce", "consume"),
        records=INTEGER,
        bytes=INTEGER.hidden,
        seconds=NUMBER,
        records_per_second=NUMBER.column("RECORDS/S"),
        megabytes_per_second=NUMBER.column("MB/S"),
        latency_ms=_LATENCIES.or_null.hidden,
    ),
    cpu_seconds=NUMBER,
    cpu_percent=NUMBER,
    cpu_microseconds_per_record=NUMBER.or_null,
)
_PRINTS: Final = {"bench": _BENCH}
_COLUMNS: Final = [
    *_BENCH.row.columns(),
    *(TableColumn(name, f"{name.upper()} MS") for name in _PERCENTILES),
]

bench: Group = Group(
    "bench", help="Measure how fast records are produced and consumed."
)


@dataclass
class _Measure:
    """The measurements of one direction.

    Attributes:
        phase: ``produce`` or ``consume``.
        records: records acknowledged, or received.
        size: bytes of their values.
        seconds: from the first record to the last.
        latencies: seconds of a sample: from `enqueue` to the acknowledgement, or from
            the record's timestamp to its arrival.
    """

    phase: str
    records: int = 0
    size: int = 0
    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)

    def row(self) -> dict[str, object]:
        """Return the figures."""
        seconds = self.seconds or 1e-9  # nothing was measured: no division by zero
        return {
            "phase": self.phase,
            "records": self.records,
            "bytes": self.size,
            "seconds": round(self.seconds, 6),
            "records_per_second": round(self.records / seconds, 1),
            "megabytes_per_second": round(self.size / seconds / 1e6, 3),
            "latency_ms": _percentiles(self.latencies),
        }


def _percentiles(latencies: Sequence[float]) -> dict[str, float] | None:
    if not latencies:
        return None
    ordered = sorted(latencies)
    last = len(ordered) - 1
    return {
        name: round(ordered[round(last * share)] * 1000, 3)
        for name, share in _PERCENTILES.items()
    }


@dataclass(frozen=True)
class _Load:
    """The load of a benchmark.

    Attributes:
        topic: the topic.
        records: the number of records.
        size: bytes of each value.
        rate: records per second; 0 for as fast as possible.
        keys: the number of different keys; 0 for records without a key.
    """

    topic: str
    records: int
    size: int
    rate: float
    keys: int


def _load_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a load to a command."""
    positive = click.IntRange(min=1)
    options = (
        click.option(
            "-n", "--records", type=positive, default=100_000, help="How many."
        ),
        click.option("--size", type=positive, default=100, help="Bytes of each value."),
        click.option(
            "--rate",
            type=click.FloatRange(min=0),
            default=0.0,
            help="Records per second; 0 for as fast as it goes.",
        ),
        click.option(
            "--keys", type=click.IntRange(min=0), default=0, help="Of so many."
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


@bench.command("produce", prints=_PRINTS)
@click.argument("topic")
@_load_options
@asynchronous
async def bench_produce(
    session: CommandSession, topic: str, records: int, size: int, rate: float, keys: int
) -> None:
    """Measure how fast records are acknowledged, as kafka-producer-perf-test does."""
    load = _Load(topic, records, size, rate, keys)
    await _create(session, topic)
    async with session.producer() as producer:
        with ProgressBar("produce", records) as progress:
            # Of this process: it shows whether the client or the cluster is the limit.
            cpu = time.process_time()
            measure = await _produce(producer, load, progress)
            cpu = time.process_time() - cpu
    _show(session, [measure], cpu)


@bench.command("consume", prints=_PRINTS)
@click.argument("topic")
@click.option("-n", "--records", type=click.IntRange(min=1), help="Stop after so many.")
@click.option(
    "-o", "--offset", type=PLACE_RANGE, default=PlaceRange(), help="Where to begin."
)
@asynchronous
async def bench_consume(
    session: CommandSession, topic: str, records: int | None, offset: PlaceRange
) -> None:
    """Measure how fast records are read, as kafka-consumer-perf-test does.

    It stops at the end as it is now.
    """
    from kafkaio._cli.records.ranges import NO_GROUP, ReadPlan, begin

    settings = {**NO_GROUP, "auto_offset_reset": "earliest"}
    async with session.consumer(forced=settings) as consumer:
        reader = await begin(consumer, ReadPlan([topic], places=offset, stops=True))
        measure = _Measure("consume")
        with ProgressBar("consume", records or reader.total) as progress:
            cpu = time.process_time()
            began = now()
            async for batch, end in reader.batches():
                left = None if records is None else records - measure.records
                # The values of a batch are read without making records of them; only
                # the last batch of a partition may have records after the end.
                values = batch.values()
                if end is not None:
                    values = [r.value for r in batch if r.offset < end]
                _count(measure, values[:left])
                measure.seconds = now() - began
                progress.add(measure.records - progress.done)
                if measure.records == records:
                    break
            cpu = time.process_time() - cpu
    _show(session, [measure], cpu)


@bench.command("both", prints=_PRINTS)
@click.argument("topic")
@_load_options
@asynchronous
async def bench_both(
    session: CommandSession, topic: str, records: int, size: int, rate: float, keys: int
) -> None:
    """Produce and consume at once; latencies of consume are from end to end."""
    from kafkaio._cli.records.places import Place
    from kafkaio._cli.records.ranges import NO_GROUP, ReadPlan, begin

    load = _Load(topic, records, size, rate, keys)
    settings = {**NO_GROUP, "auto_offset_reset": "latest"}
    arrived = _Measure("consume")
    await _create(session, topic)
    async with (
        session.consumer(forced=settings) as consumer,
        session.producer() as producer,
    ):
        # The consumer is at the end before the first record is sent, else it would miss
        # records and wait for them forever.
        end = PlaceRange(Place("latest"))
        await begin(consumer, ReadPlan([topic], places=end))
        with ProgressBar("produce and consume", records) as progress:
            cpu = time.process_time()
            async with TaskGroup() as tasks:
                tasks.start_soon(_arrive, consumer, load, arrived)
                sent = await _produce(producer, load, progress)
            cpu = time.process_time() - cpu
    _show(session, [sent, arrived], cpu)


async def _create(session: CommandSession, topic: str) -> None:
    """Create the topic if it does not exist, with the brokers' number of partitions.

    Raises:
        KafkaError: the topic does not exist and cannot be created.
    """
    from kafkaio.admin import NewTopic

    async with session.admin() as admin:
        try:
            await admin.describe_topics([topic])
        except UnknownTopicOrPartition:
            try:
                await admin.create_topics([NewTopic(topic)])
            except BrokerError as error:
                if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                    raise  # else another client created it in between
        except AuthorizationError:
            # The right to describe the topic is not needed to write to it. If that
            # right is missing, too, the producer's error says so.
            return


async def _arrive(consumer: Consumer, load: _Load, measure: _Measure) -> None:
    """Receive the records of a load."""
    began = now()
    every = max(1, load.records // _SAMPLES)
    async for batch in consumer.batches():
        # Timestamps of records are of the wall clock, here and in the producer, which
        # is this process.
        arrived = wall_ms()
        _count(measure, batch.values())
        measure.seconds = now() - began
        measure.latencies += [
            max(0, arrived - record.timestamp) / 1000
            for record in batch.records[::every]
        ]
        if measure.records >= load.records:
            return


def _count(measure: _Measure, values: Sequence[object]) -> None:
    measure.records += len(values)
    measure.size += sum(len(value) for value in values if isinstance(value, bytes))


async def _produce(producer: Producer, load: _Load, progress: ProgressBar) -> _Measure:
    """Send a load; return when all of it is acknowledged."""
    measure = _Measure("produce")
    samples: _Samples = asyncio.Queue()
    async with TaskGroup() as tasks:
        tasks.start_soon(_sample, samples, measure)
        began = now()
        pending = await _send(producer, load, progress, samples)
        samples.put_nowait(None)
        await producer.flush()
        measure.seconds = now() - began
    _settle(pending)
    measure.records = load.records
    measure.size = load.records * load.size
    return measure


async def _send(
    producer: Producer,
    load: _Load,
    progress: ProgressBar,
    samples: _Samples,
) -> deque[Delivery]:
    """Send the records; return the deliveries that were not settled at the end."""
    # Random bytes do not compress: the result is that of the network.
    value = os.urandom(load.size)
    keys: list[bytes | None] = [b"%d" % n for n in range(load.keys)] or [None]
    every = max(1, load.records // _SAMPLES)
    began = now()
    pending: deque[Delivery] = deque()
    for number in range(load.records):
        delivery = await producer.enqueue(
            load.topic, value, key=keys[number % len(keys)]
        )
        if not number % every:
            samples.put_nowait((now(), delivery))
        pending.append(delivery)
        if not number % _CHECK_EVERY:
            _settle(pending)
            progress.add(number - progress.done)
            # The wait is until the time of this record since the start, so a delay is
            # made up for and the average keeps to the rate.
            if load.rate:
                await asyncio.sleep(max(0.0, began + number / load.rate - now()))
    return pending


def _settle(pending: deque[Delivery]) -> None:
    """Drop finished deliveries, the oldest first; raise the error of a failed one."""
    while pending and pending[0].is_done:
        pending.popleft().result()


async def _sample(samples: _Samples, measure: _Measure) -> None:
    """Measure the time until records are acknowledged."""
    while (sample := await samples.get()) is not None:
        began, delivery = sample
        await delivery
        measure.latencies.append(now() - began)


def _show(session: CommandSession, measures: Sequence[_Measure], cpu: float) -> None:
    results = [measure.row() for measure in measures]
    records = max((measure.records for measure in measures), default=0)
    seconds = max((measure.seconds for measure in measures), default=0.0)
    process: dict[str, object] = {
        "cpu_seconds": round(cpu, 6),
        "cpu_percent": round(100 * cpu / (seconds or 1e-9), 1),
        "cpu_microseconds_per_record": round(1e6 * cpu / records, 3)
        if records
        else None,
    }
    shown = []
    for row in results:
        latency = row["latency_ms"]
        shown.append({**row, **(latency if isinstance(latency, dict) else {})})
    tables = Table(shown, _COLUMNS), Table([process], [*process])
    session.show(_BENCH, *tables, results=results, **process)
