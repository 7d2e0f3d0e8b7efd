"""Torture: a streaming job on a cluster, and random SIGKILLs of all that it is made of.

``python -m tests.spark.torture --kills 20 --seed 1`` starts a Kafka and a cluster of
two workers, runs the query of `tests.spark.torture_job` with speculation on and success
messages lost on purpose, and kills drivers, executors and Python workers at random
moments. A driver that died, or whose query has failed, is started again from the
checkpoint. Then it reads what the topic has:

- with ``exactlyOnce`` (the default), every row once for ``read_committed``, also with
  ``--tasks 2 4 5``, of which each driver draws one;
- ``--at-least-once``: none is missing.

The run proves nothing, and fails, if the log does not hold more than was committed, or
if no task had a second attempt. It tells how often the driver fenced, and Spark
speculated. ``--protocol 100`` runs the simulated
scheduler of `tests.spark.torture_protocol` instead, 100 seeds on the embedded broker.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

import psutil

from kafkaio.testing import Broker
from tests.sim.loop import VirtualClockLoop
from tests.spark.standalone import Standalone
from tests.spark.torture_job import Job
from tests.spark.torture_protocol import Cluster, Plan, Verdict, read, run
from tests.spark.torture_sink import numbered
from tests.support.kafka import Kafka

PARTITIONS = 4
#: Seconds between two kills, and after the begin of an attempt within which it is hit.
PAUSE = (0.5, 3.0)
IN_TASK = 1.0
#: Seconds between two looks, and without an end after which a run is given up.
LOOK = 0.05
STUCK = 1800.0


class _Torture:
    """One run on a cluster."""

    def __init__(self, directory: Path, options: argparse.Namespace) -> None:
        self._directory = directory
        self._options = options
        self._rng = Random(options.seed)
        self.kills: Counter[str] = Counter()
        self.starts = 0
        self._seen = 0

    def run(self, cluster: Standalone, options: dict[str, str]) -> None:
        """Kill while the query runs, and start it again until its input is done."""
        wanted = self._options.kills
        while True:
            self.starts += 1
            tasks = self._rng.choice(self._options.tasks)
            with Job(
                cluster.url, self._directory, speculates=True, tasks=tasks, **options
            ) as job:
                end = time.monotonic() + STUCK
                while (code := job.process.poll()) is None:
                    if time.monotonic() > end:
                        raise TimeoutError("the query does not end")
                    if self.kills.total() < wanted and self._has_begun():
                        time.sleep(self._rng.uniform(0, IN_TASK))
                        self._kill(job, cluster)
                        time.sleep(self._rng.uniform(*PAUSE))
                    time.sleep(LOOK)
            if code == 0:
                return

    def _kill(self, job: Job, cluster: Standalone) -> None:
        kind = self._rng.choice(["driver", "executor", "executor", "worker", "worker"])
        if kind == "driver":
            job.kill()
        else:
            try:
                victims = (
                    cluster.executors()
                    if kind == "executor"
                    else cluster.python_workers()
                )
                self._rng.choice(victims).kill()
            except (IndexError, psutil.NoSuchProcess):
                return  # there is none just now
        self.kills[kind] += 1

    def _has_begun(self) -> bool:
        """Whether an attempt of a task has begun since the last look."""
        place = self._directory / "events"
        before, self._seen = self._seen, place.stat().st_size if place.exists() else 0
        return self._seen > before

    def events(self) -> Counter[str]:
        """What happened, by its kind."""
        lines = (self._directory / "events").read_text().splitlines()
        log = (self._directory / "driver.log").read_text(errors="replace")
        attempts = [line.split()[-1] for line in lines if line.startswith("attempt")]
        tasks = {attempt.rpartition("-")[0] for attempt in attempts}
        return Counter(
            {
                "attempts": len(attempts),
                "tasks": len(tasks),
                "aborts": sum(line.startswith("abort") for line in lines),
                "fenced": sum("taken over" in line for line in lines),
                "messages lost": len(list(self._directory.glob("lost-*"))),
                "marked for speculation": log.count("for speculati"),
            }
        )


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _cluster(options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory() as place, Kafka(brokers=1) as kafka:
        directory = Path(place)
        wanted = numbered(directory / "in", options.batches, options.rows)
        kafka.create_topic_blocking("out", PARTITIONS)
        torture = _Torture(directory, options)
        own = {
            "kafka.bootstrap.servers": kafka.bootstrap_servers,
            "topic": "out",
            "exactlyOnce": str(not options.at_least_once).lower(),
            "test.slow": "0.5",
            "test.loses": "10",
        }
        with Standalone() as standalone:
            torture.run(standalone, own)
        cluster = Cluster(kafka.bootstrap_servers)
        committed = asyncio.run(read(cluster, "out", PARTITIONS, "read_committed"))
        logged = asyncio.run(read(cluster, "out", PARTITIONS, "read_uncommitted"))
        events = torture.events()
    seen = Counter(committed)
    duplicates, missing = len(committed) - len(seen), len(wanted - set(seen))
    _say(
        f"seed {options.seed}: {len(wanted)} rows, {duplicates} duplicates, "
        f"{missing} missing; {len(logged)} in the log"
    )
    _say(f"kills {dict(torture.kills)}, drivers {torture.starts}, {dict(events)}")
    if options.at_least_once:
        return int(bool(missing))
    has_shown = len(logged) > len(wanted) and events["attempts"] > events["tasks"]
    if not has_shown:
        _say("nothing was tried: no attempt was repeated, or none was aborted")
    return int(bool(duplicates or missing) or not has_shown)


def _protocol(seeds: int, tasks: tuple[int, ...]) -> int:
    logging.getLogger("kafkaio").setLevel(logging.CRITICAL)

    async def once(seed: int) -> Verdict:
        async with Broker(memory_transport=True, topics={"out": 4}) as broker:
            cluster = Cluster(broker.bootstrap_servers, broker.dial)
            plan = Plan(tasks=tasks, restarts=0.2 if len(tasks) == 1 else 0.5)
            return await run(cluster, "out", seed, plan=plan)

    wrong, events = 0, Counter[str]()
    for seed in range(seeds):
        with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
            verdict = runner.run(once(seed))
        events += verdict.events
        if verdict.duplicates or verdict.missing:
            wrong += 1
            _say(f"seed {seed}: {verdict}")
    _say(f"{seeds} seeds, {wrong} wrong; {dict(events)}")
    return int(wrong > 0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a torture; 0 if all was as it must be."""
    parser = argparse.ArgumentParser(prog="python -m tests.spark.torture")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batches", type=int, default=30)
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--tasks", type=int, nargs="+", default=[4])
    parser.add_argument("--at-least-once", action="store_true")
    parser.add_argument("--protocol", type=int, default=0, metavar="SEEDS")
    options = parser.parse_args(arguments)
    if options.protocol:
        return _protocol(options.protocol, tuple(options.tasks))
    return _cluster(options)


if __name__ == "__main__":
    sys.exit(main())
