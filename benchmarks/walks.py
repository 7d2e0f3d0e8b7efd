"""How much code one act runs: the functions, files and calls that a reader meets.

    python benchmarks/walks.py [HOST:PORT] [--act send ...] [--list]

Each act runs warm, and every call of a Python function of the package is noted. A
function counts once, however often it is called; compiled code is not seen. Where no
address is given the embedded broker serves, in a thread that is not traced. On Python
3.11 a comprehension is a function of its own. The methods of a dataclass are compiled
after some calls (`kafkaio._dataclass`): what runs in their place before is left out,
because in a process that has run for a while nothing does. ``--list`` prints the
functions of each act in order, indented by their depth: that is the walk of a newcomer
who follows it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Future
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread
from types import FrameType
from typing import NamedTuple, Self

import kafkaio
from kafkaio.admin import ConfigChange, ConfigResource, ConfigResourceType
from kafkaio.testing import Broker

ROOT = f"{Path(kafkaio.__file__).parent}/"
#: What stands for methods that are not compiled yet.
UNCOMPILED = "_dataclass.py"
TOPIC = "walks"
#: Seconds in which the tasks of the act before, and of the start, come to rest.
QUIET = 0.3
#: Another process sends the record that a consumer waits for.
SENDS = """
import asyncio, sys, kafkaio
async def send():
    async with kafkaio.Producer(sys.argv[1]) as producer:
        await producer.send(sys.argv[2], b"x", partition=0)
asyncio.run(send())
"""


class Step(NamedTuple):
    """One call of a function."""

    file: str
    function: str
    line: int
    depth: int


class Walk:
    """Notes the calls that are made while it is entered."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def __enter__(self) -> Self:
        sys.setprofile(self._note)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        file = code.co_filename.removeprefix(ROOT)
        if event != "call" or file in (code.co_filename, UNCOMPILED):
            return
        depth = -1
        caller: FrameType | None = frame
        while caller is not None:
            depth += caller.f_code.co_filename.startswith(ROOT)
            caller = caller.f_back
        self.steps.append(Step(file, code.co_qualname, code.co_firstlineno, depth))

    def until(self, prefix: str, function: str) -> Walk:
        """Return the part up to the first call of a function."""
        at = next(
            number
            for number, step in enumerate(self.steps)
            if step.file.startswith(prefix) and step.function.endswith(function)
        )
        part = Walk()
        part.steps = self.steps[: at + 1]
        return part

    def since_last(self, function: str) -> Walk:
        """Return the part from the last call of a function on."""
        names = [step.function for step in self.steps]
        part = Walk()
        part.steps = self.steps[len(names) - 1 - names[::-1].index(function) :]
        return part

    def report(self, act: str, *, is_listed: bool) -> None:
        files = [step.file for step in self.steps]
        moves = sum(a != b for a, b in pairwise(files))
        functions = {(step.file, step.function) for step in self.steps}
        print(
            f"{act:16} {len(functions):4} functions in {len(set(files)):3} files, "
            f"{len(files):4} calls, {moves:4} moves between files"
        )
        seen: set[tuple[str, str, int]] = set()
        for file, function, line, depth in self.steps if is_listed else ():
            mark = " " if (file, function, line) in seen else "+"
            seen.add((file, function, line))
            print(f"  {mark} {'  ' * depth}{function}  {file}:{line}")


Acts = AsyncIterator[tuple[str, Walk]]


async def traced(act: Callable[[], Awaitable[object]]) -> Walk:
    await act()
    await asyncio.sleep(QUIET)
    with Walk() as walk:
        await act()
    return walk


async def admin_acts(bootstrap: str) -> Acts:
    async with kafkaio.Admin(bootstrap) as admin:
        yield (
            "describe_topics",
            await traced(lambda: admin.describe_topics([TOPIC])),
        )
        yield (
            "list_groups",
            await traced(lambda: admin.list_groups(types=["streams"])),
        )


async def send_acts(bootstrap: str) -> Acts:
    async with kafkaio.Producer(bootstrap) as producer:
        walk = await traced(lambda: producer.send(TOPIC, b"x", key=b"k"))
        yield "send", walk
        yield "send to socket", walk.until("_net/", ".writelines")


async def transaction_acts(bootstrap: str) -> Acts:
    name = f"walks-{uuid.uuid4().hex[:8]}"
    async with kafkaio.Producer(bootstrap, transactional_id=name) as producer:

        async def transaction() -> None:
            async with producer.transaction() as tx:
                await tx.send(TOPIC, b"x", partition=0)

        await transaction()
        yield "transaction", await traced(transaction)


async def read_acts(bootstrap: str) -> Acts:
    """A record that arrives while a consumer waits for it."""
    async with kafkaio.Consumer(bootstrap, topics=TOPIC) as consumer:
        records = aiter(consumer)
        for is_warm in (False, True):
            sender = await asyncio.create_subprocess_exec(
                sys.executable, "-c", SENDS, bootstrap, TOPIC
            )
            with Walk() as walk:
                await anext(records)
            await sender.wait()
            if is_warm:
                # Before it came answers without records, and metadata.
                yield "read", walk.since_last("TcpTransport.get_buffer")


async def commit_acts(bootstrap: str) -> Acts:
    """What a member of a group has read is committed, while its group is at rest."""
    async with kafkaio.Consumer(
        bootstrap,
        topics=TOPIC,
        group_id=f"walks-{uuid.uuid4().hex[:8]}",
        auto_offset_reset="earliest",
    ) as consumer:
        walks = list[Walk]()
        for _ in range(3):
            async for _ in consumer:
                break
            with Walk() as walk:
                await consumer.commit()
            walks.append(walk)
        # The first is not warm, and a heartbeat may come between the steps of another.
        yield "commit", min(walks[1:], key=lambda walk: len(walk.steps))


async def share_acts(bootstrap: str) -> Acts:
    """A record of a queue is accepted, and the leader's answer awaited."""
    name = f"walks-{uuid.uuid4().hex[:8]}"
    group = ConfigResource(ConfigResourceType.GROUP, name)
    earliest = ConfigChange("share.auto.offset.reset", "earliest")
    async with kafkaio.Admin(bootstrap) as admin:
        await admin.incremental_alter_configs({group: [earliest]})
    async with kafkaio.ShareConsumer(
        bootstrap, topics=TOPIC, group_id=name, ack_linger_ms=0
    ) as share:
        records = await share.poll(max_records=4)
        # Nobody reads any more, so nothing is fetched beside it.
        await asyncio.sleep(2)
        walks = list[Walk]()
        for record in records:
            with Walk() as walk:
                record.ack()
                await record.acked
            walks.append(walk)
        yield "acknowledge", min(walks[1:], key=lambda walk: len(walk.steps))


@contextlib.contextmanager
def embedded() -> Iterator[str]:
    """Run the embedded broker in a thread of its own; yield its address."""
    address: Future[str] = Future()
    done = Event()

    async def serve() -> None:
        async with Broker() as broker:
            address.set_result(broker.bootstrap_servers)
            await asyncio.to_thread(done.wait)

    thread = Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        yield address.result()
    finally:
        done.set()
        thread.join()


ACTS = (*(send_acts, read_acts, commit_acts, transaction_acts, share_acts, admin_acts),)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("bootstrap", nargs="?", help="HOST:PORT of a broker")
    parser.add_argument("--act", nargs="*", help="only these acts")
    parser.add_argument("--list", action="store_true", help="print the functions")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        bootstrap = options.bootstrap or stack.enter_context(embedded())
        async with kafkaio.Admin(bootstrap) as admin:
            with contextlib.suppress(kafkaio.BrokerError):  # it exists
                await admin.create_topics([kafkaio.NewTopic(TOPIC, 2, 1)])
        for acts in ACTS:
            async for act, walk in acts(bootstrap):
                if not options.act or act in options.act:
                    walk.report(act, is_listed=options.list)


if __name__ == "__main__":
    asyncio.run(main())
