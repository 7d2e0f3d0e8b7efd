"""One part of a cluster fails, and the rest goes on: each failure beside each act.

`CELLS` says for each pair what goes on, what is told, and by when. The page
docs/guide/partial-failures.md is this table for users; a test compares them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final

import pytest

import kafkaio
from kafkaio import TopicPartition
from tests.integration.partial_failures import (
    ACTS,
    CELLS,
    FAULTS,
    MIXED,
    PAGE,
    RECORDS,
    SPARED,
    STRUCK,
    By,
    Cell,
    Stage,
    page,
    stage,
)
from tests.support.patience import NEVER_MS

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.kafka_versions("newest"),  # the broker is an embedded one
]
#: The eager protocol runs at night, beside the newest Kafka.
AT_NIGHT = pytest.mark.not_embedded("the other protocols run with every change")

PROTOCOLS: Final[Mapping[str, Mapping[str, object]]] = {
    "consumer": {"group_protocol": "consumer"},
    "cooperative": {
        "group_protocol": "classic",
        "heartbeat_interval_ms": 200,
        "session_timeout_ms": 6_000,
    },
    "eager": {
        "group_protocol": "classic",
        "partition_assignment_strategy": "range",
        "heartbeat_interval_ms": 200,
        "session_timeout_ms": 6_000,
    },
}
#: Seconds that a consumer has to close.
CLOSING: Final = 3.0
ALL_SPARED: Final = RECORDS * len(SPARED)


class Outcome:
    """How an act ended."""

    def __init__(self, error: BaseException | None, seconds: float) -> None:
        self.error = error
        self.seconds = seconds


async def tried(act: Awaitable[object], limit: float) -> Outcome:
    """Await an act that must end within its limit, whether it succeeds or not."""
    clock = asyncio.get_running_loop().time
    begun = clock()
    error: BaseException | None = None
    try:
        async with asyncio.timeout(limit):
            await act
    except kafkaio.KafkaError as failure:
        error = failure
    except ExceptionGroup as failure:
        error = failure
    return Outcome(error, clock() - begun)


def judge(cell: Cell, on: Stage, outcome: Outcome, *errors: BaseException) -> None:
    """Check how an act ended, and what was told."""
    if cell.raises is None:
        assert outcome.error is None, outcome.error
    else:
        assert outcome.error is not None
        found = [outcome.error]
        if isinstance(outcome.error, ExceptionGroup):
            found = list(outcome.error.exceptions)
        assert any(isinstance(one, cell.raises) for one in found), outcome.error
        errors = (*errors, *found)
    on.told.lines += [f"{type(one).__name__}: {one}" for one in errors]
    assert on.told.matches(cell.says), (cell.says, on.told.lines)


async def until(condition: Callable[[], object], limit: float) -> None:
    async with asyncio.timeout(limit):
        while not condition():  # noqa: ASYNC110  (any of several objects may change)
            await asyncio.sleep(0.01)


async def spared_records(
    consumer: kafkaio.Consumer, count: int, limit: float
) -> list[kafkaio.KafkaError]:
    """Read records of the topic that goes on; returns what poll raised meanwhile."""
    errors: list[kafkaio.KafkaError] = []
    seen = 0
    async with asyncio.timeout(limit):
        while seen < count:
            try:
                poll = await consumer.poll(timeout=0.2)
            except kafkaio.ClosedError:
                raise
            except kafkaio.KafkaError as error:
                errors.append(error)
            else:
                seen += sum(record.topic == "spared" for record in poll.records)
    return errors


@asynccontextmanager
async def reader(on: Stage, **options: object) -> AsyncIterator[kafkaio.Consumer]:
    """A consumer that has read everything that was there before the failure."""
    consumer = on.consumer(**options)
    async with asyncio.timeout(20):
        await consumer.start()
        seen = 0
        while seen < ALL_SPARED + RECORDS:
            seen += len((await consumer.poll(timeout=0.5)).records)
    try:
        yield consumer
    finally:
        await consumer.close(0.5)


@asynccontextmanager
async def polling(
    *consumers: kafkaio.Consumer,
) -> AsyncIterator[list[kafkaio.KafkaError]]:
    """Poll the members of a group, as they have to, for as long as the block runs."""
    errors: list[kafkaio.KafkaError] = []

    async def poll(consumer: kafkaio.Consumer) -> None:
        while True:
            try:
                await consumer.poll(timeout=0.2)
            except kafkaio.ClosedError:
                return
            except kafkaio.KafkaError as error:
                errors.append(error)
                await asyncio.sleep(0.02)

    async with asyncio.TaskGroup() as tasks:
        readers = [tasks.create_task(poll(consumer)) for consumer in consumers]
        yield errors
        for each in readers:
            each.cancel()


def committed(on: Stage) -> list[int | None]:
    control = on.broker.control
    return [control.committed(on.group, tuple(tp)) for tp in SPARED]


def wanted(fault: str) -> set[TopicPartition]:
    """The partitions that a group has then."""
    return {*SPARED} if fault == "topic gone" else {*SPARED, STRUCK}


# The acts of consumers


async def start(on: Stage, fault: str, cell: Cell) -> None:
    await FAULTS[fault](on)
    # What is there at once needs no limit, and a busy machine would reach a short one.
    is_patient = cell.raises is None and cell.by is By.AT_ONCE
    options = {"default_api_timeout_ms": NEVER_MS} if is_patient else {}
    consumer = on.consumer(**options)
    outcome = await tried(consumer.start(), cell.by.seconds)
    errors: list[kafkaio.KafkaError] = []
    if cell.raises is None and outcome.error is None:
        errors = await spared_records(consumer, ALL_SPARED, cell.by.seconds)
    await consumer.close(0.5)
    judge(cell, on, outcome, *errors)


async def read(on: Stage, fault: str, cell: Cell) -> None:
    async with reader(on) as consumer, on.producer() as producer:
        await FAULTS[fault](on)
        for number in range(ALL_SPARED):
            tp = SPARED[number % len(SPARED)]
            await producer.send(tp.topic, b"more", partition=tp.partition)
        errors = await spared_records(consumer, ALL_SPARED, cell.by.seconds)
        if cell.says:
            # The rest of what has to be told may come a little later.
            async with polling(consumer) as more:
                texts = [f"{type(one).__name__}: {one}" for one in errors]
                await until(
                    lambda: (
                        on.told.matches(cell.says)
                        or texts
                        or any("struck" in str(one) for one in more)
                    ),
                    cell.by.seconds,
                )
            errors += more
        judge(cell, on, Outcome(None, 0.0), *errors)


async def commit(on: Stage, fault: str, cell: Cell) -> None:
    async with reader(on) as consumer:
        await FAULTS[fault](on)
        if fault == "throttled":
            await consumer.commit()  # it is answered; the quota is for what follows
        offsets = dict.fromkeys((STRUCK, *SPARED), RECORDS)
        outcome = await tried(consumer.commit(offsets), cell.by.seconds)
        judge(cell, on, outcome)
        if "nothing can" not in cell.goes_on:
            assert committed(on) == [RECORDS] * len(SPARED)


async def revocation(on: Stage, fault: str, cell: Cell) -> None:
    async with reader(on, enable_auto_commit=True) as first, polling(first) as errors:
        await FAULTS[fault](on)
        second = on.consumer(enable_auto_commit=True)
        # The first member has its session's time to commit and to release.
        outcome = await tried(second.start(), 2 * cell.by.seconds)
        if cell.raises is None and outcome.error is None:
            async with polling(second) as more:
                await until(
                    lambda: (
                        second.assignment
                        and first.assignment
                        and not second.assignment & first.assignment
                        and wanted(fault) <= second.assignment | first.assignment
                    ),
                    cell.by.seconds,
                )
            errors += more
        moved = second.assignment & {*SPARED}
        await second.close(0.5)
    # After the end of both: the first member commits what it has kept when it closes,
    # and the broker's assignor decides whether that is the struck partition.
    judge(cell, on, outcome, *errors)
    if "offsets are committed" in cell.goes_on:
        offsets = dict(zip(SPARED, committed(on), strict=True))
        assert all(offsets[tp] == RECORDS for tp in moved)


async def rebalance(on: Stage, fault: str, cell: Cell) -> None:
    async with reader(on) as first, polling(first) as errors:
        second = on.consumer()
        async with polling():
            await second.start()
            async with polling(second):
                await until(
                    lambda: (
                        second.assignment
                        and not second.assignment & first.assignment
                        and wanted("") == second.assignment | first.assignment
                    ),
                    20,
                )
            await FAULTS[fault](on)
            await second.close(1.0)
        if "take over" in cell.goes_on:
            await until(lambda: wanted(fault) <= first.assignment, 2 * cell.by.seconds)
        else:
            assert first.assignment
        judge(cell, on, Outcome(None, 0.0), *errors)


async def close(on: Stage, fault: str, cell: Cell) -> None:
    async with reader(
        on, enable_auto_commit=True, auto_commit_interval_ms=60_000
    ) as consumer:
        await consumer.poll(timeout=0)  # what was handed out is finished
        await FAULTS[fault](on)
        outcome = await tried(consumer.close(CLOSING), cell.by.seconds)
    judge(cell, on, outcome)
    if "leaves" in cell.goes_on:
        assert not on.broker.control.members(on.group)
    if "committed" in cell.goes_on:
        assert committed(on) == [RECORDS] * len(SPARED)


# The acts of producers and of Admin


async def send_with_key(on: Stage, fault: str, cell: Cell) -> None:
    async with on.producer() as producer:
        await producer.send("struck", b"before", key=b"k")
        await producer.send("spared", b"before", key=b"k")
        await FAULTS[fault](on)
        if fault == "throttled":
            await producer.send("struck", b"answered", key=b"k")
        async with asyncio.TaskGroup() as tasks:
            struck = tasks.create_task(
                tried(producer.send("struck", b"x", key=b"k"), cell.by.seconds)
            )
            async with asyncio.timeout(2.5):  # less than any limit of the one above
                for number in range(20):
                    await producer.send("spared", b"x", key=b"%d" % number)
        judge(cell, on, await struck)


async def send_without_key(on: Stage, fault: str, cell: Cell) -> None:
    topic = "spared" if fault in {"topic gone", "rights refused"} else "mixed"
    async with on.producer(delivery_timeout_ms=30_000) as producer:
        for number in range(len(MIXED)):
            await producer.send("mixed", b"before", partition=number)
        for _ in range(3):  # some partition is the one for now
            await producer.send(topic, b"before")
        await FAULTS[fault](on)
        if fault == "throttled":
            await producer.send("mixed", b"answered", partition=0)
        async with asyncio.TaskGroup() as tasks:
            sends = [
                tasks.create_task(tried(producer.send(topic, b"x" * 100), 20))
                for _ in range(1)
            ]
            async with asyncio.timeout(cell.by.seconds):
                written = 0
                while written < 12:
                    one = tasks.create_task(producer.send(topic, b"x" * 100))
                    done, _ = await asyncio.wait({one}, timeout=1.0)
                    written += len(done)
                    if not done:
                        one.cancel()
            for each in sends:
                each.cancel()
        await producer.close(timeout=0)
    judge(cell, on, Outcome(None, 0.0))


async def transaction(on: Stage, fault: str, cell: Cell) -> None:
    async def write(*partitions: TopicPartition) -> None:
        async with producer.transaction() as run:
            for topic, number in partitions:
                await run.send(topic, b"x", partition=number)

    producer = on.producer(transactional_id=on.transactional_id)
    await producer.start()
    try:
        await write(STRUCK, *SPARED)
        await until(lambda: not on.broker.control.open_transactions(), 5)
        await FAULTS[fault](on)
        # Where the leader throttles, the first record is answered, the second waits.
        outcome = await tried(write(*SPARED, STRUCK, STRUCK), 2 * cell.by.seconds)
        judge(cell, on, outcome)
        if fault != "coordinator gone":
            async with asyncio.timeout(cell.by.seconds):
                await write(*SPARED)
    finally:
        await producer.close(0.5)


async def admin(on: Stage, fault: str, cell: Cell) -> None:
    async with reader(on) as consumer:
        await consumer.commit()
    async with on.admin() as client:
        await FAULTS[fault](on)
        if fault == "throttled":
            await client.list_offsets({STRUCK: "latest"})
        async with asyncio.TaskGroup() as tasks:
            limit = cell.by.seconds
            offsets = tasks.create_task(
                tried(
                    client.list_offsets(dict.fromkeys((STRUCK, *SPARED), "latest")),
                    limit,
                )
            )
            groups = tasks.create_task(
                tried(client.list_consumer_group_offsets([on.group, "other"]), limit)
            )
            topics = tasks.create_task(
                tried(client.describe_topics(["spared", "mixed"]), limit)
            )
        assert (await topics).error is None
        if fault == "coordinator gone":
            assert (await offsets).error is None
            judge(cell, on, await groups)
        else:
            assert (await groups).error is None
            outcome = await offsets
            judge(cell, on, outcome)
            if outcome.error is not None:
                results = getattr(outcome.error, "results", {})
                assert set(results) >= {*SPARED}


Act = Callable[[Stage, str, Cell], Awaitable[None]]
OF_MEMBERS: Final[Mapping[str, Act]] = {
    "start": start,
    "read": read,
    "commit": commit,
    "revocation": revocation,
    "rebalance": rebalance,
    "close": close,
}
OF_OTHERS: Final[Mapping[str, Act]] = {
    "send with key": send_with_key,
    "send without key": send_without_key,
    "transaction": transaction,
    "Admin over many items": admin,
}


def test_every_cell_is_there() -> None:
    assert set(CELLS) == {(fault, act) for fault in FAULTS for act in ACTS}
    assert {*OF_MEMBERS, *OF_OTHERS} == {*ACTS}


def test_the_page_for_users_has_the_cells() -> None:
    # python -m tests.integration.partial_failures writes them.
    assert PAGE.read_text().endswith("\n" + page())


@pytest.mark.parametrize(
    "protocol",
    ["consumer", "cooperative", pytest.param("eager", marks=AT_NIGHT)],
)
@pytest.mark.parametrize("act", OF_MEMBERS)
@pytest.mark.parametrize("fault", FAULTS)
async def test_members(fault: str, act: str, protocol: str) -> None:
    async with stage(PROTOCOLS[protocol]) as on:
        await OF_MEMBERS[act](on, fault, CELLS[fault, act])


@pytest.mark.parametrize("act", OF_OTHERS)
@pytest.mark.parametrize("fault", FAULTS)
async def test_producers_and_admin(fault: str, act: str) -> None:
    async with stage({}) as on:
        await OF_OTHERS[act](on, fault, CELLS[fault, act])
