"""``python -m tests.meaning``: a fuzzer of meaning.

A proxy decodes the answers of a real Kafka, or of the embedded broker, changes one to
three fields, and encodes them again, for some seconds; then it is honest. A client must
raise errors of Kafka alone, keep the limits of its calls, leave no task behind, burn
neither CPU nor memory, and work again afterwards.

Each seed is a run of its own, with one workload. What it changed is printed with what
was found. ``--seed N --seeds 1 --workload NAME`` runs one again::

    python -m tests.meaning --seconds 3300
    python -m tests.meaning --servers localhost:9092 --seed 42 --seeds 1
    python -m tests.meaning --servers embedded --workload consumer --seeds 20

The exit code is 1 if something was found.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress

import kafkaio
from kafkaio.errors import KafkaError
from kafkaio.testing import Broker
from tests.meaning.proxy import Liar, Told
from tests.meaning.watch import Watch
from tests.meaning.workloads import APIS, WORKLOADS, Scene

#: Seconds of lying, and the most until the client has to work again.
LYING, AGAIN = 2.0, 20.0


@asynccontextmanager
async def brokers(servers: str) -> AsyncIterator[str]:
    """Where to run: the given servers, an embedded broker, or a Kafka of one's own."""
    if servers == "embedded":
        async with Broker() as broker:
            yield broker.bootstrap_servers
    elif servers == "kafka":
        from kafkaio.testing.kafka import Kafka

        with Kafka() as kafka:
            yield kafka.bootstrap_servers
    else:
        yield servers


async def write(servers: str, topic: str) -> None:
    """Give readers something to read, all the time."""
    async with kafkaio.Producer(servers, log=False) as producer:
        number = 0
        while True:
            with suppress(KafkaError):
                await producer.send(topic, b"%d" % number)
            number += 1
            await asyncio.sleep(0.05)


async def one(
    servers: str, seed: int, workload: str, without: Collection[str]
) -> tuple[Watch, Liar]:
    """Run one seed."""
    dice = random.Random(f"{seed} {workload}")
    apis = None if dice.random() < 0.15 else {dice.choice(APIS[workload])}
    topic = f"meaning.{seed}.{random.randrange(16**6):06x}"
    watch, liar = Watch(), Liar(servers, seed, apis, without)
    async with kafkaio.Admin(servers, log=False) as admin, liar:
        await admin.create_topics([kafkaio.NewTopic(topic, 2, 1)])
        writer = asyncio.create_task(write(servers, topic), name="proxy")
        watch.begin()
        scene = Scene(liar.servers, servers, topic, watch)
        work = asyncio.create_task(WORKLOADS[workload](scene), name="workload")
        liar.is_lying = dice.random() < 0.4  # from the start, or while it works
        await asyncio.sleep(0.5)
        liar.is_lying = True
        await asyncio.sleep(LYING)
        watch.rest("while answers lie")
        liar.is_lying = False
        scene.is_over = True
        await until(scene, work)
        watch.rest("afterwards")
        work.cancel()
        await asyncio.wait([work])
        writer.cancel()
        await asyncio.wait([writer])
        with suppress(KafkaError):
            await admin.delete_topics([topic])
        await watch.end()
    return watch, liar


async def until(scene: Scene, work: asyncio.Task[None]) -> None:
    """Wait until the client works again; else that is found."""
    working = asyncio.create_task(scene.works.wait(), name="works")
    await asyncio.wait([work, working], timeout=AGAIN, return_when="FIRST_COMPLETED")
    working.cancel()
    if work.done() and not work.cancelled() and (error := work.exception()):
        scene.watch._judge("workload", error)
    elif not scene.works.is_set():
        scene.watch.found(
            "does not work again",
            f"{AGAIN} s after the last lie; errors: {scene.watch.errors}\n    "
            f"last: {scene.watch.last}\n    {scene.made}: {scene.made.statistics()}",
        )


def distinct(told: Collection[Told]) -> list[tuple[str, int]]:
    """What was told, each lie once."""
    return Counter(map(str, told)).most_common(25)


def say(*words: object) -> None:
    """Print at once."""
    print(*words, flush=True)  # noqa: T201 - a command line


async def run(arguments: argparse.Namespace) -> int:
    """Run seed after seed."""
    end = time.monotonic() + arguments.seconds
    kinds: Counter[str] = Counter()
    without = arguments.without.split(",")
    names = [arguments.workload] if arguments.workload else [*WORKLOADS]
    async with brokers(arguments.servers) as servers:
        for seed in range(arguments.seed, arguments.seed + arguments.seeds):
            if time.monotonic() > end:
                break
            workload = names[seed % len(names)]
            watch, liar = await one(servers, seed, workload, without)
            apis = Counter(told.api for told in liar.told)
            say(f"seed {seed} {workload}: {dict(apis)} {watch.errors}")
            for finding in watch.findings:
                kinds[finding.kind] += 1
                say(f"  FOUND {finding.kind}: {finding.text}")
            for told, times in distinct(liar.told) if watch.findings else ():
                say(f"    {times} times {told}")
    say(f"found: {dict(kinds)}")
    return bool(kinds)


def main() -> int:
    """Read the arguments, and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.meaning")
    parser.add_argument("--servers", default="kafka", help="host:port, embedded, kafka")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 10**6)
    parser.add_argument("--seeds", type=int, default=10**6)
    parser.add_argument("--seconds", type=float, default=3e6)
    parser.add_argument("--without", default="", help="names of fields, with commas")
    parser.add_argument("--workload", choices=[*WORKLOADS])
    return asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
