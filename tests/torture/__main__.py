"""A group on a real Kafka, whose members and brokers start, stop, hang and die.

    python -m tests.torture --members 20 --partitions 48 --minutes 5 --seed 1
    python -m tests.torture --scenario exactly-once --members 4 --minutes 5 --seed 1

Members run in several processes, so that one can be killed with SIGKILL. Every record
that is processed is written to a journal before its offset is committed; at the end
the journals are compared with the acknowledged records.

In the scenario ``exactly-once`` members copy the topic to another one in transactions,
through proxies that fail, too. At the end Kafka's own tools count the copies.

In the scenario ``share`` members of Java, confluent-kafka and kafkaio accept the
records of a share group, through the same proxies.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from kafkaio.testing.kafka import ClusterOptions
from kafkaio.testing.kafka._properties import Value
from kafkaio.testing.kafka._releases import DEFAULT_VERSION, find_release
from tests.support.kafka import Kafka
from tests.torture.chaos import Chaos, ProxiedCluster
from tests.torture.director import Director
from tests.torture.exactly_once import CopyDirector
from tests.torture.plan import (
    CLIENTS,
    PROTOCOLS,
    SABOTAGES,
    SESSION_SECONDS,
    Plan,
)
from tests.torture.sharing import SharePlan, Sharing

#: Session timeouts between brokers that are long enough for a busy machine.
BROKERS: Final[dict[str, Value]] = {
    "controller.quorum.election.timeout.ms": 1000,
    "controller.quorum.fetch.timeout.ms": 2000,
    "broker.session.timeout.ms": 4000,
    "zookeeper.session.timeout.ms": 6000,
    "group.consumer.session.timeout.ms": round(SESSION_SECONDS * 1000),
}
START_SECONDS: Final = 180.0
SCENARIOS: Final = ("group", "exactly-once", "share")
_say: Final = partial(print, flush=True)


async def torture_group(plan: Plan, version: str, directory: Path) -> bool:
    """Have the members of a group process records."""
    kafka = Kafka(
        brokers=3,
        version=version,
        config=BROKERS,
        heap="512m",
        start_timeout=START_SECONDS,
    )
    async with kafka, _logs_kept(kafka, directory):
        verdict = await Director(plan, kafka, directory, _say).run()
    _say(f"Kafka {version}, {plan}")
    _say(str(verdict))
    return not verdict.wrong


async def torture_copies(
    plan: Plan, version: str, level: int | None, directory: Path
) -> bool:
    """Have the members of a group copy records in transactions."""
    options = ClusterOptions(
        brokers=3,
        version=version,
        config=BROKERS,
        features=None if level is None else {"transaction.version": level},
        heap="512m",
        start_timeout=START_SECONDS,
    )
    cluster = ProxiedCluster(options)
    kafka = Kafka.on(cluster, options)
    async with kafka, _logs_kept(kafka, directory):
        verdict = await CopyDirector(plan, kafka, cluster, directory, _say).run()
    released = "as released" if level is None else level
    _say(f"Kafka {version}, transaction.version {released}, {plan}")
    _say(str(verdict))
    return not verdict.wrong


async def torture_sharers(plan: SharePlan, version: str, directory: Path) -> bool:
    """Have members of three clients accept the records of a share group."""
    options = ClusterOptions(
        brokers=3,
        version=version,
        config=BROKERS,
        heap="512m",
        start_timeout=START_SECONDS,
    )
    cluster = ProxiedCluster(options)
    kafka = Kafka.on(cluster, options)
    async with kafka, _logs_kept(kafka, directory):
        chaos = Chaos(cluster, lambda what, node: _say(f"{what} {node}"))
        await chaos.start()
        try:
            calm, servers = kafka.bootstrap_servers, cluster.chaotic_servers
            run = Sharing(plan, servers, directory, _say, calm, chaos)
            verdict = await run.run()
        finally:
            await chaos.close()
    _say(f"Kafka {version}, {plan}")
    _say(str(verdict))
    return not verdict.wrong


@asynccontextmanager
async def _logs_kept(kafka: Kafka, directory: Path) -> AsyncIterator[None]:
    """Write what the nodes logged beside the journals, whatever happens."""
    try:
        yield
    finally:
        for node in kafka.node_ids:
            (directory / f"node-{node}.log").write_text(kafka.log(node))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.torture", description=__doc__.split("\n", 1)[0]
    )
    parser.add_argument("--scenario", choices=SCENARIOS, default="group")
    parser.add_argument(
        "--members", type=int, help="20, 4 that copy, or 2 of each client"
    )
    parser.add_argument("--partitions", type=int, help="48, 12 to copy, or 8 to share")
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=int, default=500, help="records a second")
    parser.add_argument(
        "--protocol", choices=PROTOCOLS, help="consumer; classic before Kafka 4.0"
    )
    parser.add_argument("--java", type=int, default=0, help="members of Java")
    parser.add_argument("--gentle", action="store_true", help="members only leave")
    parser.add_argument("--kill-brokers", action="store_true")
    parser.add_argument("--kafka", default=DEFAULT_VERSION, help="its version")
    parser.add_argument("--journals", type=Path, help="keep the journals here")
    copying = parser.add_argument_group("exactly-once")
    copying.add_argument("--transaction-version", type=int, choices=(0, 1, 2))
    copying.add_argument("--client", choices=CLIENTS, default="kafkaio")
    copying.add_argument("--sabotage", choices=SABOTAGES, default="")
    return parser.parse_args()


def main() -> int:
    args = arguments()
    directory = args.journals or Path(tempfile.mkdtemp(prefix="kafkaio-torture-"))
    directory.mkdir(parents=True, exist_ok=True)
    fine = asyncio.run(running(args, directory))
    if args.journals is None and fine:
        shutil.rmtree(directory)
    else:
        _say(f"journals: {directory}")
    return 0 if fine else 1


def running(args: argparse.Namespace, directory: Path) -> Coroutine[Any, Any, bool]:
    """The scenario that is asked for."""
    if args.scenario == "share":
        seconds = args.minutes * 60
        sharing = SharePlan(
            records=round(args.rate * seconds),
            seconds=seconds,
            seed=args.seed,
            members=args.members or 2,
            partitions=args.partitions or 8,
        )
        return torture_sharers(sharing, args.kafka, directory)
    copies = args.scenario == "exactly-once"
    has_kip848 = find_release(args.kafka).version >= "4"
    plan = Plan(
        members=args.members or (4 if copies else 20),
        partitions=args.partitions or (12 if copies else 48),
        seconds=args.minutes * 60,
        seed=args.seed,
        protocol=args.protocol or ("consumer" if has_kip848 else "classic"),
        java=args.java,
        rate=args.rate,
        deaths=not args.gentle,
        kill_brokers=args.kill_brokers,
        client=args.client,
        sabotage=args.sabotage,
    )
    if copies:
        level = args.transaction_version
        return torture_copies(plan, args.kafka, level, directory)
    return torture_group(plan, args.kafka, directory)


if __name__ == "__main__":
    sys.exit(main())
