"""A group on a real Kafka, whose members and brokers start, stop, hang and die.

    python -m tests.torture --members 20 --partitions 48 --minutes 5 --seed 1

Members run in several processes, so that one can be killed with SIGKILL. Every record
that is processed is written to a journal before its offset is committed; at the end
the journals are compared with the acknowledged records.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Final

from kafkaio.testing.kafka import Kafka
from kafkaio.testing.kafka.properties import Value
from tests.torture.director import Director
from tests.torture.plan import PROTOCOLS, SESSION_SECONDS, Plan

#: Session timeouts between brokers that are long enough for a busy machine.
BROKERS: Final[dict[str, Value]] = {
    "controller.quorum.election.timeout.ms": 1000,
    "controller.quorum.fetch.timeout.ms": 2000,
    "broker.session.timeout.ms": 4000,
    "zookeeper.session.timeout.ms": 6000,
    "group.consumer.session.timeout.ms": round(SESSION_SECONDS * 1000),
}
START_SECONDS: Final = 180.0
_say: Final = partial(print, flush=True)


async def torture(plan: Plan, version: str, directory: Path) -> bool:
    async with Kafka(
        brokers=3,
        version=version,
        config=BROKERS,
        heap="512m",
        start_timeout=START_SECONDS,
    ) as kafka:
        try:
            verdict = await Director(plan, kafka, directory, _say).run()
        finally:
            for node in kafka.node_ids:
                (directory / f"node-{node}.log").write_text(kafka.log(node))
    _say(f"Kafka {version}, {plan}")
    _say(str(verdict))
    return not verdict.wrong


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.torture", description=__doc__.split("\n", 1)[0]
    )
    parser.add_argument("--members", type=int, default=20)
    parser.add_argument("--partitions", type=int, default=48)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=int, default=500, help="records a second")
    parser.add_argument("--protocol", choices=PROTOCOLS, default="consumer")
    parser.add_argument("--java", type=int, default=0, help="members of Java")
    parser.add_argument("--gentle", action="store_true", help="members only leave")
    parser.add_argument("--kill-brokers", action="store_true")
    parser.add_argument("--kafka", default="4.3", help="its version")
    parser.add_argument("--journals", type=Path, help="keep the journals here")
    args = parser.parse_args()
    plan = Plan(
        members=args.members,
        partitions=args.partitions,
        seconds=args.minutes * 60,
        seed=args.seed,
        protocol=args.protocol,
        java=args.java,
        rate=args.rate,
        deaths=not args.gentle,
        kill_brokers=args.kill_brokers,
    )
    directory = args.journals or Path(tempfile.mkdtemp(prefix="kafkaio-torture-"))
    directory.mkdir(parents=True, exist_ok=True)
    fine = asyncio.run(torture(plan, args.kafka, directory))
    if args.journals is None and fine:
        shutil.rmtree(directory)
    else:
        _say(f"journals: {directory}")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
