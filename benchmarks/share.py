"""Share consumers (KIP-932): kafkaio beside confluent-kafka and Java.

Run it from the root of the repository as ``python -m benchmarks.share``. It starts an
Apache Kafka of one node, or uses ``--bootstrap``, and writes a topic once. Every run is
a process of its own, with a group of its own, that reads the whole topic; clients take
turns, in an order that changes from round to round. Time and processor time count
from the first record to the last answered acknowledgement. Those of Java are its own,
without the start of the machine; its processor time is not known.

The last lines compare the medians with the bars. ``--memory`` shows whether memory
grows over a million records, and ``--idle`` what an idle member costs.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from uuid import uuid4

import kafkaio
from kafkaio.admin import ConfigChange, ConfigResource, ConfigResourceType
from kafkaio.testing.kafka import Kafka

#: Seconds after which a run is given up.
HANGS = 300.0
Found = dict[str, float]


@dataclass(frozen=True)
class Bar:
    """What kafkaio has to reach: a share of another client's median."""

    figure: str
    ours: str
    theirs: str
    factor: float
    is_least: bool = False


BARS = (
    Bar("cpu us", "batches", "confluent implicit", 0.3),
    Bar("cpu us", "async for", "confluent explicit", 0.5),
    Bar("k rec/s", "batches", "confluent implicit", 0.9, is_least=True),
    Bar("k rec/s", "batches", "java", 2.0, is_least=True),
    Bar("k rec/s", "async for", "confluent explicit", 0.9, is_least=True),
    Bar("cpu us", "run", "consumer run", 4.0),
)
#: The most processor time of an idle member, as a part of a core.
IDLE_BAR = 0.005
#: The most MiB that memory may grow.
MEMORY_BAR = 20.0


def cpu() -> float:
    """Return the processor time of this process, all threads, in seconds."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def resident() -> float:
    """Return the memory of this process in MiB."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


class Count:
    """Counts records, and the time from the first to the end."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.got = 0
        self.first = 0
        self._began = self._cpu = 0.0

    def add(self, count: int) -> bool:
        """Count records; return whether these are all."""
        if not self.got and count:
            self.first = count
            self._began, self._cpu = time.perf_counter(), cpu()
        self.got += count
        return self.got >= self.wanted

    def found(self) -> Found:
        seconds = time.perf_counter() - self._began
        counted = self.got - self.first
        return {
            "records": self.got,
            "k rec/s": counted / seconds / 1000,
            "cpu us": (cpu() - self._cpu) / counted * 1e6,
        }


# The clients. Each takes the arguments and the name of a group that is new.


def share_consumer(args: argparse.Namespace, group: str) -> kafkaio.ShareConsumer:
    return kafkaio.ShareConsumer(
        args.bootstrap,
        topics=[args.topic],
        group_id=group,
        max_in_flight=args.max_in_flight,
    )


async def batches(args: argparse.Namespace, group: str) -> Found:
    count = Count(args.records)
    async with share_consumer(args, group) as share:
        async for batch in share.batches(max_records=args.batch):
            done = count.add(len(batch))
            batch.ack()
            if done:
                break
        await share.flush()
        return count.found()


async def iterate(args: argparse.Namespace, group: str) -> Found:
    count = Count(args.records)
    left = args.records
    async with share_consumer(args, group) as share:
        async for record in share:
            if left == args.records:
                count.add(1)  # the first
            record.value  # noqa: B018 - reading it is part of what is measured
            record.ack()
            left -= 1
            if not left:
                break
        count.add(args.records - 1)
        await share.flush()
        return count.found()


class _Enough(Exception):
    """All records were read."""


async def run(args: argparse.Namespace, group: str) -> Found:
    count = Count(args.records)
    done = asyncio.Event()

    async def handler(record: kafkaio.ShareRecord) -> None:
        if count.add(1):
            done.set()

    async with share_consumer(args, group) as share:
        running = asyncio.ensure_future(share.run(handler, concurrency=100))
        await asyncio.wait(
            {running, asyncio.ensure_future(done.wait())}, return_when="FIRST_COMPLETED"
        )
        await share.flush()
        found = count.found()
        running.cancel()
        return found


async def consumer_run(args: argparse.Namespace, group: str) -> Found:
    count = Count(args.records)

    async def handler(record: kafkaio.Record) -> None:
        if count.add(1):
            raise _Enough

    async with kafkaio.Consumer(
        args.bootstrap,
        topics=[args.topic],
        group_id=group + "-plain",
        auto_offset_reset="earliest",
    ) as consumer:
        with contextlib.suppress(_Enough):
            await consumer.run(handler, concurrency=100, ordering="none")
        return count.found()


def of_confluent(args: argparse.Namespace, group: str, *, explicit: bool) -> Found:
    from confluent_kafka import ShareConsumer

    count = Count(args.records)
    share = ShareConsumer(
        {
            "bootstrap.servers": args.bootstrap,
            "group.id": group,
            "share.acknowledgement.mode": "explicit" if explicit else "implicit",
        }
    )
    share.subscribe([args.topic])
    done = False
    while not done:
        number = 0
        for message in share.poll(1.0):
            if message.error():
                raise RuntimeError(message.error())
            message.value()
            number += 1
            if explicit:
                share.acknowledge(message)
        done = count.add(number)
        if explicit and number:
            share.commit_async()
    share.commit_sync()
    found = count.found()
    share.close()
    return found


async def confluent_implicit(args: argparse.Namespace, group: str) -> Found:
    return of_confluent(args, group, explicit=False)


async def confluent_explicit(args: argparse.Namespace, group: str) -> Found:
    return of_confluent(args, group, explicit=True)


async def java(args: argparse.Namespace, group: str) -> Found:
    from kafkaio.testing.kafka._releases import find_release
    from tests.support.java import Toolbox

    output = await Toolbox(find_release()).run(
        "org.apache.kafka.tools.ShareConsumerPerformance",
        *("--bootstrap-server", args.bootstrap, "--topic", args.topic),
        *("--num-records", str(args.records), "--group", group, "--timeout", "60000"),
        timeout=HANGS,
    )
    for header, line in zip(output.lines, output.lines[1:], strict=False):
        names = [name.strip() for name in header.split(",")]
        if "nMsg.sec" in names:
            values = dict(zip(names, line.split(","), strict=True))
            return {
                "records": float(values["data.consumed.in.nMsg"]),
                "k rec/s": float(values["nMsg.sec"]) / 1000,
            }
    raise RuntimeError("\n".join(output.lines))


Client = Callable[[argparse.Namespace, str], Awaitable[Found]]
CLIENTS: dict[str, Client] = {
    "batches": batches,
    "async for": iterate,
    "run": run,
    "consumer run": consumer_run,
    "confluent implicit": confluent_implicit,
    "confluent explicit": confluent_explicit,
    "java": java,
}


# What else is measured.


async def memory(args: argparse.Namespace, group: str) -> Found:
    """Read the topic as often as a million records take; return how memory grows."""
    seen = 0
    after: list[float] = []
    for turn in range(max(2, -(-args.memory // args.records))):
        name = f"{group}-{turn}"
        await begin_at_start(args.bootstrap, name)
        seen += int((await iterate(args, name))["records"])
        after.append(resident())
    return {"records": seen, "MiB": after[-1], "growth MiB": after[-1] - after[0]}


async def idle(args: argparse.Namespace, group: str) -> Found:
    """Return the part of a core that a member with 50 empty partitions uses."""
    topic = f"share-idle-{uuid4().hex[:8]}"
    async with kafkaio.Admin(args.bootstrap) as admin:
        await admin.create_topics(
            [kafkaio.NewTopic(topic, partitions=50, replication_factor=1)]
        )
        async with kafkaio.ShareConsumer(
            args.bootstrap, topics=[topic], group_id=group
        ) as share:
            reading = asyncio.ensure_future(anext(aiter(share)))
            await asyncio.sleep(2)  # the first fetches of a new topic
            began, used = time.perf_counter(), cpu()
            await asyncio.sleep(args.idle)
            part = (cpu() - used) / (time.perf_counter() - began)
            reading.cancel()
        await admin.delete_topics([topic])
    return {"part of a core": part}


# Preparation, and the order of runs.


async def begin_at_start(servers: str, group: str) -> None:
    """Let a group that does not exist begin with the first record."""
    async with kafkaio.Admin(servers) as admin:
        resource = ConfigResource(ConfigResourceType.GROUP, group)
        change = ConfigChange("share.auto.offset.reset", "earliest")
        await admin.incremental_alter_configs({resource: [change]})


async def fill(args: argparse.Namespace) -> str:
    """Write the topic, unless it exists: its name says what it contains."""
    topic = f"share-whole-{args.records}-{args.partitions}-{args.batch}"
    async with kafkaio.Admin(args.bootstrap) as admin:
        try:
            await admin.create_topics(
                [
                    kafkaio.NewTopic(
                        topic, partitions=args.partitions, replication_factor=1
                    )
                ]
            )
        except kafkaio.BrokerError:
            return topic
    async with kafkaio.Producer(
        args.bootstrap, batch_size=args.batch * 200, linger_ms=100
    ) as producer:
        for partition in range(args.partitions):
            for _ in range(0, args.records // args.partitions, args.batch):
                # Without an await in between they are one batch.
                for _ in range(args.batch):
                    producer.enqueue_nowait(topic, b"v" * 100, partition=partition)
                await producer.flush()
    return topic


def measured(args: argparse.Namespace, client: str) -> Found:
    """Run a client in a process of its own."""
    group = f"share-{uuid4().hex[:12]}"
    asyncio.run(begin_at_start(args.bootstrap, group))
    command = [
        *(sys.executable, "-m", "benchmarks.share", "--client", client),
        *("--group", group, "--bootstrap", args.bootstrap, "--topic", args.topic),
        *("--records", str(args.records), "--max-in-flight", str(args.max_in_flight)),
        *("--memory", str(args.memory), "--idle", str(args.idle)),
    ]
    done = subprocess.run(  # noqa: S603  (this file itself)
        command, capture_output=True, text=True, check=False, timeout=HANGS
    )
    if done.returncode:
        raise RuntimeError(f"{client}: {done.stderr}")
    found: Found = json.loads(done.stdout.splitlines()[-1])
    return found


def medians(runs: dict[str, list[Found]]) -> dict[str, Found]:
    """Return the median of each figure of each client."""
    return {
        client: {
            name: statistics.median(found[name] for found in each) for name in each[0]
        }
        for client, each in runs.items()
        if each
    }


def bar_lines(found: dict[str, Found]) -> Iterator[str]:
    """Compare medians with the bars."""
    for bar in BARS:
        ours = found.get(bar.ours, {}).get(bar.figure)
        theirs = found.get(bar.theirs, {}).get(bar.figure)
        if ours is None or theirs is None:
            continue
        ratio = ours / theirs
        is_held = ratio >= bar.factor if bar.is_least else ratio <= bar.factor
        yield (
            f"{bar.figure} of {bar.ours}: {ours:.3f}, "
            f"{'at least' if bar.is_least else 'at most'} {bar.factor} of "
            f"{bar.theirs}'s {theirs:.3f}: ratio {ratio:.2f} "
            f"{'held' if is_held else 'MISSED'}"
        )


def compare(args: argparse.Namespace) -> None:
    """Let the clients take turns, and print their medians."""
    names = [name for name in args.clients.split(",") if name]
    runs: dict[str, list[Found]] = {name: [] for name in names}
    for turn in range(args.repeat):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            runs[name].append(measured(args, name))
            print(turn, name, runs[name][-1], flush=True)
    found = medians(runs)
    for name, figures in found.items():
        text = "  ".join(f"{key} {value:10.3f}" for key, value in figures.items())
        print(f"{name:20s} {text}")
    for line in bar_lines(found):
        print(line)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", default="")
    parser.add_argument("--records", type=int, default=400_000)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--batch", type=int, default=5_000)
    parser.add_argument("--max-in-flight", type=int, default=500)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--clients", default=",".join(CLIENTS))
    parser.add_argument("--memory", type=int, default=0, help="so many records")
    parser.add_argument("--idle", type=float, default=0.0, help="so many seconds")
    parser.add_argument("--client", default="", help=argparse.SUPPRESS)
    parser.add_argument("--group", default="", help=argparse.SUPPRESS)
    parser.add_argument("--topic", default="", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    args = arguments()
    if args.client:
        client = {**CLIENTS, "memory": memory, "idle": idle}[args.client]
        print(json.dumps(asyncio.run(client(args, args.group))))
        return
    with contextlib.ExitStack() as stack:
        if not args.bootstrap:
            args.bootstrap = stack.enter_context(Kafka()).bootstrap_servers
        args.topic = asyncio.run(fill(args))
        if args.memory:
            found = measured(args, "memory")
            is_held = found["growth MiB"] <= MEMORY_BAR
            print(found, "held" if is_held else "MISSED")
        elif args.idle:
            found = measured(args, "idle")
            is_held = found["part of a core"] <= IDLE_BAR
            print(found, "held" if is_held else "MISSED")
        else:
            compare(args)


if __name__ == "__main__":
    main()
