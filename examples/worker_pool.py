"""Workers on a queue: jobs of any order, tried three times, then put aside.

    python examples/worker_pool.py                              # a demonstration
    python examples/worker_pool.py --bootstrap localhost:9092   # a worker

Start as many workers as you like, on as many machines: the share group gives each job
to one of them. A worker does up to fifty jobs at a time. A job that fails is given back
and tried again, by whichever worker is free; after its third attempt it is written to
the topic jobs.dead. On SIGTERM (or SIGINT) a worker begins no further job, and has
twenty seconds to finish what it has begun. What is left goes to the others at once.

A new group begins at the end of its topic. If it shall do the jobs that are there:

    kafkaio configs set group worker-pool share.auto.offset.reset=earliest

Without --bootstrap, three workers do a thousand jobs on an embedded broker. One of them
is stopped halfway.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import kafkaio
from kafkaio.admin import ConfigChange, ConfigResource, ConfigResourceType
from kafkaio.testing import Broker

TOPIC, DEAD, GROUP = "jobs", "jobs.dead", "worker-pool"
ATTEMPTS = 3


@dataclass
class Worker:
    """Does jobs until it is stopped."""

    bootstrap: str
    seconds: float
    done: Counter[bytes] = field(default_factory=Counter)
    on_done: Callable[[], None] = lambda: None
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    async def work(self, record: kafkaio.ShareRecord) -> None:
        job = record.value or b""
        await asyncio.sleep(self.seconds)  # ask a database, call another service ...
        if job.endswith(b" poison"):
            raise ValueError("nobody can do this")
        if job.endswith(b" flaky") and record.delivery_count == 1:
            raise ConnectionError("what the job needs is not there")
        # The return accepts the job. Its effect comes before: were the worker killed
        # here, another would do the job again. So let the effect be idempotent.
        self.done[job] += 1
        print(f"done {job.decode()}", flush=True)
        self.on_done()

    async def run(self) -> None:
        async with (
            kafkaio.Producer(self.bootstrap) as producer,
            kafkaio.ShareConsumer(
                self.bootstrap, topics=TOPIC, group_id=GROUP, max_in_flight=100
            ) as share,
            asyncio.TaskGroup() as tasks,
        ):
            put_aside = kafkaio.DeadLetter(producer, DEAD)

            async def failed(
                record: kafkaio.ShareRecord, error: Exception
            ) -> kafkaio.Release | None:
                if record.delivery_count < ATTEMPTS:
                    return kafkaio.Release()
                await put_aside(record, error)
                return None

            tasks.create_task(self.stop(share))
            print("ready", flush=True)
            await share.run(self.work, concurrency=50, on_error=failed)
        print(f"stopped after {self.done.total()} jobs", flush=True)

    async def stop(self, share: kafkaio.ShareConsumer) -> None:
        await self.stopping.wait()
        # Finishes what was begun, gives back the rest and leaves; then run() returns.
        await share.close(timeout=20)


async def serve(bootstrap: str, seconds: float) -> None:
    worker = Worker(bootstrap, seconds)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, worker.stopping.set)
    await worker.run()


async def demonstrate(count: int) -> bool:
    """Do all jobs with three workers, one of which is stopped halfway."""
    kinds = {7: b" flaky", 77: b" poison"}
    jobs = [b"job-%d" % n + kinds.get(n % 100, b"") for n in range(count)]
    poison = {job for job in jobs if job.endswith(b" poison")}
    async with Broker(topics={TOPIC: 2, DEAD: 1}) as broker:
        servers = broker.bootstrap_servers
        group = ConfigResource(ConfigResourceType.GROUP, GROUP)
        earliest = ConfigChange("share.auto.offset.reset", "earliest")
        async with kafkaio.Admin(servers) as admin:
            await admin.incremental_alter_configs({group: [earliest]})
        async with kafkaio.Producer(servers) as producer:
            await producer.send_many(TOPIC, jobs)
        workers = [Worker(servers, 0.01) for _ in range(3)]
        finished = asyncio.Event()

        def check() -> None:
            done = {job for worker in workers for job in worker.done}
            if len(done) >= count // 2:
                workers[0].stopping.set()
            if len(done) == count - len(poison):
                finished.set()

        async with asyncio.TaskGroup() as tasks:
            for worker in workers:
                worker.on_done = check
                tasks.create_task(worker.run())
            dead: set[bytes | None] = set()
            async with kafkaio.Consumer(
                servers, topics=DEAD, auto_offset_reset="earliest"
            ) as consumer:
                while dead != poison:
                    poll = await consumer.poll(timeout=1.0)
                    dead |= {record.value for record in poll.records}
            await finished.wait()
            for worker in workers:
                worker.stopping.set()
    done: Counter[bytes] = Counter()
    for worker in workers:
        done += worker.done
    print(
        f"{len(done)} of {count} jobs done, {len(dead)} put aside, "
        f"{done.total() - len(done)} done twice"
    )
    return done.total() == len(done) == count - len(poison)


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--bootstrap", help="a running Kafka, 4.2 or newer")
    parser.add_argument(
        "--records", type=int, default=1000, help="jobs of the demonstration"
    )
    parser.add_argument(
        "--seconds", type=float, default=0.01, help="time that a job takes"
    )
    args = parser.parse_args()
    if args.bootstrap is None:
        return 0 if await demonstrate(args.records) else 1
    await serve(args.bootstrap, args.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
