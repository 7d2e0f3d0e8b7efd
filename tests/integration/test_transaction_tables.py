"""What brokers answer in transactions: the tables of codes, row by row.

A row names what is done by single requests, and the codes that are answered. The same
rows run on real Kafkas of both protocols and on the embedded broker; where an older
version or another level of ``transaction.version`` answers otherwise, the row says so.
Old and new are the protocols: those before and since the second part of KIP-890. A
client may speak the old one to any broker.
"""

from __future__ import annotations

import asyncio
import itertools
import struct
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import pytest
import pytest_asyncio

from kafkaio._client import Client, CoordinatorKind
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from kafkaio.protocol.messages.describe_acls import DescribeAclsRequest
from kafkaio.testing import Broker
from kafkaio.testing.kafka._releases import DEFAULT_VERSION
from kafkaio.testing.kafka._source import is_embedded
from kafkaio.types import TopicPartition
from tests.support.kafka import Kafka
from tests.support.raw_transactions import (
    NEW,
    OLD,
    Cluster,
    ConsumerMember,
    Identity,
    Member,
    RawProducer,
    Versions,
    batches,
    commit_plain,
    describe,
    ends,
    fetch,
    fetch_offset,
    in_sync,
    join_classic,
    leave_classic,
    led,
    loaded,
    producers,
    stable,
    until,
    visible,
    write_marker,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.asyncio(loop_scope="module"),
]


# ---- servers -------------------------------------------------------------------------


@dataclass(frozen=True)
class Server:
    """A version of Kafka, and its level of ``transaction.version`` if it has levels."""

    name: str
    version: str
    level: int | None = None

    @property
    def features(self) -> dict[str, int] | None:
        return None if self.level is None else {"transaction.version": self.level}

    @property
    def natural(self) -> Versions:
        """The protocol that a client has to choose for it."""
        return NEW if self.level == 2 else OLD


TV2: Final = Server("newest-tv2", DEFAULT_VERSION, 2)
TV1: Final = Server("newest-tv1", DEFAULT_VERSION, 1)
TV0: Final = Server("newest-tv0", DEFAULT_VERSION, 0)
V4_0: Final = Server("4.0", "4.0", 2)
V3_9: Final = Server("3.9", "3.9")
V2_8: Final = Server("2.8", "2.8")

ALL: Final = (TV2, TV1, TV0, V4_0, V3_9, V2_8)
SINCE_4_0: Final = (TV2, TV1, TV0, V4_0)
SINCE_3_9: Final = (*SINCE_4_0, V3_9)
NEWER: Final = (TV2, V4_0)
OLDER: Final = (TV1, TV0, V3_9, V2_8)
#: Those the embedded broker stands for, where it takes the place of a real Kafka.
EMBEDDED: Final = ALL

#: Rows that it answers otherwise than the Kafka it stands for, and the reason.
DIFFERS: Final[Mapping[str, str]] = {
    "newest-tv0-the-new-protocol-at-any-level": "it takes it at level 0, too",
    "4.0-txnoffsetcommit-consumer-epoch-before": "it takes that epoch, as 4.3 does",
    "4.0-epochs-end-new": "it compares the epoch first, as 4.3 does",
}

#: The embedded broker is told here what is set for real ones (``properties.FAST``).
_QUICK: Final = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": 200}

#: So many that each partition of ``__consumer_offsets`` coordinates some of them.
_GROUPS: Final = 30


@dataclass
class Stage:
    """A server, and what a row has of its own on it."""

    server: Server
    kafka: Kafka | Broker
    cluster: Cluster
    name: str = field(default_factory=lambda: f"tx-{uuid.uuid4().hex[:12]}")

    async def topic(
        self, partitions: int, config: Mapping[str, str] | None = None
    ) -> str:
        """Create a topic and wait for its leaders."""
        # Only a real Kafka has the blocking form.
        create = getattr(self.kafka, "create_topic_blocking", self.kafka.create_topic)
        name = f"t-{uuid.uuid4().hex[:12]}"
        create(name, partitions, 1, config)
        for index in range(partitions):
            await led(self.cluster, TopicPartition(name, index))
        return name

    async def places(self, count: int) -> list[TopicPartition]:
        """The partitions of a new topic."""
        name = await self.topic(count)
        return [TopicPartition(name, index) for index in range(count)]

    def producer(self, versions: Versions, **options: Any) -> RawProducer:
        """A producer with the row's transactional id, which has not begun."""
        return RawProducer(self.cluster, self.name, versions, **options)

    async def started(self, versions: Versions, **options: Any) -> RawProducer:
        """The same with its identity."""
        producer = self.producer(versions, **options)
        await producer.start()
        return producer


class Servers:
    """Runs one server at a time: the one that the rows have come to.

    A module's fixture with a parameter would be set up for each row anew: pytest takes
    the place of a value in the table for the value.

    Args:
        shared: returns the session's Kafka.
    """

    def __init__(self, shared: Callable[[], Kafka]) -> None:
        self._shared = shared
        self._stack = AsyncExitStack()
        self._stage: Stage | None = None

    async def on(self, server: Server) -> Stage:
        """A stage on a server, which is started unless it runs."""
        if self._stage is None or self._stage.server != server:
            await self.close()
            kafka = await self._start(server)
            client = Client(kafka.bootstrap_servers)
            cluster = Cluster(await self._stack.enter_async_context(client))
            await loaded(cluster, [f"g-{number}" for number in range(_GROUPS)])
            self._stage = Stage(server, kafka, cluster)
        return Stage(server, self._stage.kafka, self._stage.cluster)

    async def _start(self, server: Server) -> Kafka | Broker:
        if is_embedded():
            broker = Broker(
                as_version=server.version,
                features=server.features,
                first_node_id=1,
                config=_QUICK,
            )
            return await self._stack.enter_async_context(broker)
        if server in {TV2, V4_0, V3_9, V2_8}:
            return self._shared()
        kafka = Kafka(version=server.version, features=server.features)
        return await self._stack.enter_async_context(kafka)

    async def close(self) -> None:
        """End the server, unless the session goes on with it."""
        self._stage = None
        await self._stack.aclose()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def servers(request: pytest.FixtureRequest) -> AsyncIterator[Servers]:
    found = Servers(lambda: request.getfixturevalue("real_kafka"))
    yield found
    await found.close()


@pytest_asyncio.fixture(loop_scope="module")
async def stage(servers: Servers, server: Server) -> Stage:
    return await servers.on(server)


# ---- rows ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """What is done, and what is answered then.

    Attributes:
        name: its id.
        do: does it, and returns what was answered.
        answer: what is to be answered.
        on: the servers it is true of.
        but: the answers of those of them that answer otherwise.
    """

    name: str
    do: Callable[[Stage], Awaitable[Any]]
    answer: Any
    on: tuple[Server, ...] = ALL
    but: Mapping[Server, Any] = field(default_factory=dict)

    def answer_of(self, server: Server) -> Any:
        return self.but.get(server, self.answer)


def marks_of(server: Server, row: Row) -> Iterator[pytest.MarkDecorator]:
    if not is_embedded():
        yield pytest.mark.kafka_versions(server.version)
    elif reason := DIFFERS.get(f"{server.name}-{row.name}"):
        yield pytest.mark.xfail(reason=reason)


#: Of the rows of the newest Kafka, some that take a few seconds together.
_SHORT: Final = ("endtxn", "init", "produce", "trap", "txnoffsetcommit-consumer")


def with_every_change(server: Server, row: Row) -> bool:
    return server is TV2 and row.name.startswith(_SHORT)


def rows(
    table: list[Row], wanted: Callable[[Server, Row], bool] = lambda _server, _row: True
) -> pytest.MarkDecorator:
    """Run a test for each row that is wanted, on each server that it is true of."""
    return pytest.mark.parametrize(
        ("server", "row"),
        [
            pytest.param(
                server,
                row,
                id=f"{server.name}-{row.name}",
                marks=tuple(marks_of(server, row)),
            )
            for server in (EMBEDDED if is_embedded() else ALL)
            for row in table
            if server in row.on and wanted(server, row)
        ],
    )


def both(
    name: str,
    do: Callable[..., Awaitable[Any]],
    old: Any,
    new: Any = None,
    but: Mapping[Server, Any] | None = None,
    new_but: Mapping[Server, Any] | None = None,
) -> list[Row]:
    """The rows of the old protocol, on all servers, and of the new one.

    Without an answer of its own, the new protocol's is that of the old one.
    """
    return [
        Row(f"{name}-old", partial(do, versions=OLD), old, ALL, but or {}),
        Row(
            f"{name}-new",
            partial(do, versions=NEW),
            old if new is None else new,
            NEWER,
            new_but or {},
        ),
    ]


# ---- who am I: InitProducerId --------------------------------------------------------


async def two_lives(stage: Stage, versions: Versions) -> Any:
    raw = stage.producer(versions)
    first, second = await raw.start(), await raw.start()
    return second.producer_id == first.producer_id, first.epoch, second.epoch


async def a_life_that_fences(stage: Stage, versions: Versions) -> Any:
    """Begin a new life while the old one has a transaction open."""
    (tp,) = await stage.places(1)
    zombie = await stage.started(versions)
    await zombie.send(tp, 0)
    successor = stage.producer(versions)
    first = await successor.init()
    await successor.start()
    await stable(stage.cluster, tp)
    return first, successor.who == zombie.who.moved(2), await visible(stage.cluster, tp)


async def a_bump(stage: Stage, versions: Versions) -> Any:
    """Raise the epoch, then ask the same again twice, as if the answer was lost."""
    raw = await stage.started(versions)
    first = raw.who
    found = []
    for _ in range(3):
        found.append((await raw.init(first), raw.who == first.moved(1)))
    return found


async def a_bump_of(stage: Stage, moved: int, version: int = 5) -> E:
    """Raise the epoch from one that is not the current one."""
    raw = await stage.started(OLD)
    await raw.start()
    await raw.start()
    return await raw.init(raw.who.moved(moved), version)


async def a_bump_of_a_stranger(stage: Stage) -> E:
    raw = await stage.started(OLD)
    return await raw.init(Identity(raw.who.producer_id + 1_000_000, 0))


async def a_bump_of_an_unknown_id(stage: Stage) -> Any:
    raw = stage.producer(OLD)
    await stage.started(OLD)  # the coordinator is there, and has loaded
    raw.name += "-unknown"
    await stage.cluster.coordinator_of(raw.name)
    given = Identity(987_654_321, 7)
    code = E.CONCURRENT_TRANSACTIONS

    async def is_answered() -> bool:
        nonlocal code
        code = await raw.init(given)
        if code == E.NOT_COORDINATOR or code == E.COORDINATOR_NOT_AVAILABLE:
            stage.cluster.forget(CoordinatorKind.TRANSACTION, raw.name)
            return False
        return code not in {E.CONCURRENT_TRANSACTIONS, E.COORDINATOR_LOAD_IN_PROGRESS}

    await until(is_answered)
    return code, raw.who.epoch, raw.who.producer_id != given.producer_id


async def a_first_call(
    stage: Stage, timeout_ms: int, who: Identity | None = None, name: str | None = None
) -> E:
    """InitProducerId with the arguments."""
    await stage.started(OLD)
    raw = stage.producer(OLD, timeout_ms=timeout_ms)
    if name is not None:
        raw.name = name
    return await raw.init(who)


async def a_bump_with_the_own_transaction_open(stage: Stage, versions: Versions) -> Any:
    """The first trap: the codes, one after the other, until it is not concurrent."""
    (tp,) = await stage.places(1)
    raw = await stage.started(versions)
    await raw.send(tp, 0)
    before = raw.who
    first, last = await answers_to_init(raw, before)
    return first, last, raw.who.epoch - before.epoch


async def answers_to_init(raw: RawProducer, who: Identity) -> tuple[E, E]:
    """The first code, and the first one that is not concurrent."""
    found: list[E] = []

    async def is_answered() -> bool:
        found.append(await raw.init(who))
        return found[-1] != E.CONCURRENT_TRANSACTIONS

    await until(is_answered)
    return found[0], found[-1]


async def a_zombie_that_bumps(stage: Stage, versions: Versions) -> Any:
    """The second trap: its successor's transaction is aborted."""
    (tp,) = await stage.places(1)
    zombie = await stage.started(versions)
    successor = await stage.started(versions)
    await successor.send(tp, 0)
    codes = await answers_to_init(zombie, zombie.who)
    await stable(stage.cluster, tp)
    committed = await after_markers(lambda: successor.end(commit=True))
    aborted = await successor.end(commit=False)
    goes_on = [aborted]
    if aborted == E.NONE:
        await successor.send(tp, 0)
        goes_on.append(await successor.end(commit=True))
    return codes, committed, goes_on


async def after_markers(ask: Callable[[], Awaitable[E]]) -> E:
    """Ask until the answer is not that a transaction is being ended."""
    code = E.NONE

    async def is_answered() -> bool:
        nonlocal code
        code = await ask()
        return code != E.CONCURRENT_TRANSACTIONS

    await until(is_answered)
    return code


FENCED, OLD_EPOCH = E.PRODUCER_FENCED, E.INVALID_PRODUCER_EPOCH
BUSY, STATE = E.CONCURRENT_TRANSACTIONS, E.INVALID_TXN_STATE
ABORTABLE = E.TRANSACTION_ABORTABLE

INITS = [
    *both("init-twice", two_lives, (True, 0, 1)),
    *both("init-fences-an-open-transaction", a_life_that_fences, (BUSY, True, [])),
    *both("bump-is-repeatable", a_bump, [(E.NONE, True)] * 3),
    Row("bump-of-the-epoch-two-before", partial(a_bump_of, moved=-2), FENCED),
    Row("bump-of-the-next-epoch", partial(a_bump_of, moved=1), FENCED),
    Row("bump-v3-says-47", partial(a_bump_of, moved=-2, version=3), OLD_EPOCH),
    Row("bump-of-another-producer-id", a_bump_of_a_stranger, FENCED),
    Row("bump-of-an-unknown-id", a_bump_of_an_unknown_id, (E.NONE, 0, True)),
    Row(
        "init-empty-id",
        partial(a_first_call, timeout_ms=1000, name=""),
        E.INVALID_REQUEST,
    ),
    Row("init-longest-timeout", partial(a_first_call, timeout_ms=900_000), E.NONE),
    Row(
        "init-timeout-too-long",
        partial(a_first_call, timeout_ms=900_001),
        E.INVALID_TRANSACTION_TIMEOUT,
    ),
    Row(
        "init-timeout-zero",
        partial(a_first_call, timeout_ms=0),
        E.INVALID_TRANSACTION_TIMEOUT,
    ),
    Row(
        "init-producer-id-without-epoch",
        partial(a_first_call, timeout_ms=1000, who=Identity(5, -1)),
        E.INVALID_REQUEST,
    ),
    *both(
        "trap-1-bump-with-own-transaction-open",
        a_bump_with_the_own_transaction_open,
        (BUSY, FENCED, 0),
        (BUSY, E.NONE, 1),
        but=dict.fromkeys(NEWER, (BUSY, E.NONE, 1)),
    ),
    *both(
        "trap-2-zombie-bumps",
        a_zombie_that_bumps,
        ((BUSY, FENCED), FENCED, [FENCED]),
        ((BUSY, FENCED), STATE, [E.NONE, E.NONE]),
    ),
]


# ---- the members of a transaction: AddPartitionsToTxn and Produce --------------------


async def adding(stage: Stage, *, absent: bool) -> list[E]:
    """Add a partition that is there, and one that is not."""
    here, _ = await stage.places(2)
    raw = await stage.started(OLD)
    other = TopicPartition("absent-topic" if absent else here.topic, 7)
    return await raw.add(here, other)


async def adding_twice(stage: Stage) -> list[E]:
    (tp,) = await stage.places(1)
    raw = await stage.started(OLD)
    return [*await raw.add(tp), *await raw.add(tp)]


async def writing_without_an_id(stage: Stage, versions: Versions) -> E:
    (tp,) = await stage.places(1)
    raw = await stage.started(versions)
    await raw.enter(tp)
    return await raw.write(tp, 0, name=None)


async def writing_with_an_id_of_another(stage: Stage, versions: Versions) -> E:
    """The transactional id is one's own, the producer id somebody else's."""
    (tp,) = await stage.places(1)
    raw = await stage.started(versions)
    await raw.enter(tp)
    other = stage.producer(versions)
    other.name += "-other"
    return await raw.write(tp, 0, who=await other.start())


async def writing_what_was_never_added(stage: Stage, version: int) -> Any:
    """Write first, with nothing added; then commit; how far readers get."""
    (tp,) = await stage.places(1)
    raw = await stage.started(OLD)
    code = await raw.write(tp, 0, version=version)
    return code, await raw.end(commit=True), await ends(stage.cluster, tp)


async def writing_after_the_end(stage: Stage, versions: Versions) -> Any:
    """A late write of a transaction that is over."""
    (tp,) = await stage.places(1)
    raw = await stage.started(versions)
    await raw.send(tp, 0)
    before = await raw.finish(commit=True)
    code = await raw.write(tp, 1, who=before)
    return code, await ends(stage.cluster, tp)


async def writing_too_much(stage: Stage) -> Any:
    """A batch that the topic refuses is in the transaction nevertheless."""
    tp = TopicPartition(await stage.topic(1, {"max.message.bytes": "200"}), 0)
    raw = await stage.started(NEW)
    code = await raw.write(tp, 0, [bytes(400)])
    found = await describe(stage.cluster, stage.name)
    listed = [(one.topic, one.partitions) for one in found.topics] == [(tp.topic, [0])]
    readers = await ends(stage.cluster, tp)
    return code, found.transaction_state, listed, readers, await raw.end(commit=True)


async def writing_to_nowhere(stage: Stage) -> Any:
    """An unknown topic adds nothing: neither a state, nor what a commit could end."""
    raw = await stage.started(NEW)
    code = await raw.write(TopicPartition("absent-topic", 0), 0)
    found = (await describe(stage.cluster, stage.name)).transaction_state
    return code, found, await raw.end(commit=True), await raw.end(commit=False)


async def sequences_of(
    stage: Stage, versions: Versions, sequences: tuple[int, ...]
) -> list[E]:
    """Write batches of a record to a partition that knows nothing."""
    (tp,) = await stage.places(1)
    raw = await stage.started(versions)
    await raw.enter(tp)
    return [await raw.write(tp, number) for number in sequences]


async def sequences_of_the_next(
    stage: Stage, versions: Versions, sequences: tuple[int, ...]
) -> list[E]:
    """The same in the transaction after one that wrote a batch there."""
    (tp,) = await stage.places(1)
    raw = await stage.started(versions)
    await raw.send(tp, 0)
    await raw.finish(commit=True)
    await raw.enter(tp)
    return [await raw.write(tp, number) for number in sequences]


async def sequences_after_a_bump(stage: Stage, sequences: tuple[int, ...]) -> list[E]:
    (tp,) = await stage.places(1)
    raw = await stage.started(OLD)
    await raw.send(tp, 0)
    await raw.finish(commit=False)
    assert await raw.init(raw.who) == E.NONE
    await raw.enter(tp)
    return [await raw.write(tp, number) for number in sequences]


async def a_sequence_that_pins(stage: Stage) -> Any:
    """One too low is refused; then the right one, until the transaction has ended."""
    (tp,) = await stage.places(1)
    raw = await stage.started(OLD)
    await raw.send(tp, 0)
    await raw.finish(commit=True)
    await raw.enter(tp)
    # No duplicate of the batch before, which has one record.
    low = await raw.write(tp, 0, [b"a", b"b"])
    right = await raw.write(tp, 1)
    await raw.finish(commit=False)
    await raw.enter(tp)
    return low, right, await raw.write(tp, 1 if right else 2)


GAP = E.OUT_OF_ORDER_SEQUENCE_NUMBER

MEMBERS = [
    Row(
        "add-with-an-unknown-partition",
        partial(adding, absent=False),
        [E.OPERATION_NOT_ATTEMPTED, E.UNKNOWN_TOPIC_OR_PARTITION],
    ),
    Row(
        "add-with-an-unknown-topic",
        partial(adding, absent=True),
        [E.OPERATION_NOT_ATTEMPTED, E.UNKNOWN_TOPIC_OR_PARTITION],
    ),
    Row("add-twice", adding_twice, [E.NONE, E.NONE]),
    *both(
        "produce-without-a-transactional-id",
        writing_without_an_id,
        E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ),
    *both(
        "produce-with-another-producer-id",
        writing_with_an_id_of_another,
        E.INVALID_PRODUCER_ID_MAPPING,
        but={V2_8: E.NONE},
    ),
    Row(
        "produce-v11-never-added",
        partial(writing_what_was_never_added, version=11),
        (ABORTABLE, STATE, (0, 0)),
        but={V2_8: (E.NONE, STATE, (1, 0))},
    ),
    Row(
        "produce-v10-never-added",
        partial(writing_what_was_never_added, version=10),
        (STATE, STATE, (0, 0)),
        on=SINCE_3_9,
    ),
    *both(
        "produce-after-the-end",
        writing_after_the_end,
        (ABORTABLE, (2, 2)),
        (OLD_EPOCH, (2, 2)),
        but={V2_8: (E.NONE, (3, 2))},
    ),
    Row(
        "produce-too-large-is-in-the-transaction",
        writing_too_much,
        (E.MESSAGE_TOO_LARGE, "Ongoing", True, (0, 0), E.NONE),
        on=NEWER,
    ),
    Row(
        "produce-to-an-unknown-topic-adds-nothing",
        writing_to_nowhere,
        (E.UNKNOWN_TOPIC_OR_PARTITION, "Empty", STATE, E.NONE),
        on=NEWER,
    ),
    *both(
        "sequences-with-a-gap",
        partial(sequences_of, sequences=(0, 2, 1)),
        [E.NONE, GAP, E.NONE],
    ),
    *both(
        "sequences-begin-above-0",
        partial(sequences_of, sequences=(5,)),
        [E.NONE],
        [GAP],
        new_but={V4_0: [E.NONE]},
    ),
    *both(
        "sequences-that-go-on",
        partial(sequences_of_the_next, sequences=(1,)),
        [E.NONE],
        [GAP],
    ),
    Row(
        "sequences-that-restart-new",
        partial(sequences_of_the_next, versions=NEW, sequences=(0, 1)),
        [E.NONE, E.NONE],
        on=NEWER,
    ),
    Row(
        "sequences-after-a-bump-restart",
        partial(sequences_after_a_bump, sequences=(1,)),
        [GAP],
    ),
    Row(
        "sequences-after-a-bump-begin-at-0",
        partial(sequences_after_a_bump, sequences=(0, 1)),
        [E.NONE, E.NONE],
    ),
    Row(
        "sequence-too-low-pins",
        a_sequence_that_pins,
        (GAP, GAP, E.NONE),
        but={V2_8: (GAP, E.NONE, E.NONE)},
    ),
]


# ---- the end: EndTxn -----------------------------------------------------------------


async def in_state(stage: Stage, versions: Versions, state: str) -> RawProducer:
    """A producer whose transaction is in a state; there is an epoch before its own."""
    (tp,) = await stage.places(1)
    raw = stage.producer(versions)
    await raw.start()
    await raw.start()
    if state != "Empty":
        await raw.send(tp, 0)
    if state.startswith("Complete"):
        await raw.finish(commit=state == "CompleteCommit")
    return raw


async def ending(
    stage: Stage,
    versions: Versions,
    state: str,
    commit: bool,
    back: int = 0,
    version: int | None = None,
) -> Any:
    """EndTxn in a state: the code, and what it makes of the epoch of that state."""
    raw = await in_state(stage, versions, state)
    now = raw.who
    code = await raw.end(commit=commit, who=now.moved(-back), version=version)
    assert raw.who.producer_id == now.producer_id
    return code, raw.who.epoch - now.epoch


def table_of_ends(
    versions: Versions, back: int, table: Mapping[str, tuple[Any, Any]]
) -> Iterator[Row]:
    """Rows of a table of states: answers to a commit and to an abort."""
    protocol = "new" if versions is NEW else "old"
    whose = f"epoch-before-{protocol}" if back else protocol
    for state, answers in table.items():
        for commit, answer in zip((True, False), answers, strict=True):
            verdict = "commit" if commit else "abort"
            yield Row(
                f"endtxn-{verdict}-in-{state}-{whose}",
                partial(
                    ending, versions=versions, state=state, commit=commit, back=back
                ),
                answer,
                on=NEWER if versions is NEW else ALL,
            )


OK, BUMPED = (E.NONE, 0), (E.NONE, 1)
NOT_NOW, NEVER = (STATE, 0), (FENCED, 0)


async def ending_a_stranger(stage: Stage, versions: Versions) -> E:
    raw = await in_state(stage, versions, "Ongoing")
    stranger = Identity(raw.who.producer_id + 1_000_000, 0)
    return await raw.end(commit=True, who=stranger)


async def ending_twice(stage: Stage) -> Any:
    """A late duplicate of an end meets the next transaction, in the old protocol."""
    (tp,) = await stage.places(1)
    raw = await in_state(stage, OLD, "Empty")
    await raw.send(tp, 0)
    await raw.finish(commit=True)
    await raw.send(tp, 1)
    duplicate = await raw.end(commit=True)
    await stable(stage.cluster, tp)
    # The marker is in the log before the coordinator knows; once more changes nothing.
    await raw.settled(raw.who, commit=True)
    late = await raw.write(tp, 2)
    return (
        duplicate,
        late,
        await raw.end(commit=False),
        await visible(stage.cluster, tp),
    )


async def ending_twice_in_the_new_protocol(stage: Stage) -> Any:
    """There, a late duplicate has an old epoch."""
    (tp,) = await stage.places(1)
    raw = await in_state(stage, NEW, "Empty")
    await raw.send(tp, 0)
    before = await raw.finish(commit=True)
    await raw.send(tp, 0)
    duplicate = await raw.end(commit=True, who=before)
    return duplicate, await raw.write(tp, 1), await raw.end(commit=True)


async def three_transactions(stage: Stage, versions: Versions) -> Any:
    """Two batches in each; what the partition keeps of the producer, and its epochs."""
    (tp,) = await stage.places(1)
    raw = await stage.started(versions)
    epochs = [raw.who.epoch]
    for number in range(3):
        first = 0 if versions is NEW else 2 * number
        await raw.send(tp, first)
        await raw.send(tp, first + 1)
        await raw.finish(commit=True)
        epochs.append(raw.who.epoch)
    (found,) = await producers(stage.cluster, tp)
    return epochs, found.producer_epoch, found.last_sequence


async def the_new_protocol(stage: Stage) -> Any:
    """Requests of the newer protocol, whatever the level."""
    (tp,) = await stage.places(1)
    raw = await stage.started(NEW)
    codes = [await raw.write(tp, 0)]
    codes += await raw.commit_offsets(stage.name, {tp: 1})
    codes.append(await raw.end(commit=True))
    return codes, raw.who.epoch


ENDS = [
    *table_of_ends(
        OLD,
        0,
        {
            "Ongoing": (OK, OK),
            "Empty": (NOT_NOW, NOT_NOW),
            "CompleteCommit": (OK, NOT_NOW),
            "CompleteAbort": (NOT_NOW, OK),
        },
    ),
    *table_of_ends(OLD, 1, {"Ongoing": (NEVER, NEVER), "Empty": (NEVER, NEVER)}),
    *table_of_ends(
        NEW,
        0,
        {
            "Ongoing": (BUMPED, BUMPED),
            "Empty": (NOT_NOW, BUMPED),
            "CompleteCommit": (NOT_NOW, BUMPED),
            "CompleteAbort": (NOT_NOW, BUMPED),
        },
    ),
    *table_of_ends(
        NEW,
        1,
        {
            "Ongoing": (NEVER, NEVER),
            "Empty": (NEVER, NEVER),
            "CompleteCommit": (OK, NOT_NOW),
            "CompleteAbort": (NOT_NOW, OK),
        },
    ),
    Row(
        "endtxn-v1-says-47",
        partial(ending, versions=OLD, state="Ongoing", commit=True, back=1, version=1),
        (OLD_EPOCH, 0),
    ),
    *both("endtxn-of-a-stranger", ending_a_stranger, E.INVALID_PRODUCER_ID_MAPPING),
    Row(
        "endtxn-duplicate-commits-the-next-half-way-old",
        ending_twice,
        (E.NONE, ABORTABLE, STATE, [b"v", b"v"]),
        but={
            V2_8: (E.NONE, E.NONE, STATE, [b"v", b"v"]),
        },
    ),
    Row(
        "endtxn-duplicate-is-harmless-new",
        ending_twice_in_the_new_protocol,
        (FENCED, E.NONE, E.NONE),
        on=NEWER,
    ),
    *both(
        "three-transactions",
        three_transactions,
        ([0, 0, 0, 0], 0, 5),
        ([0, 1, 2, 3], 3, -1),
    ),
    Row(
        "the-new-protocol-at-any-level",
        the_new_protocol,
        ([E.NONE, E.NONE, E.NONE], 1),
        on=SINCE_4_0,
        # The log of level 0 has no place for it; from then on only 51 is answered.
        but={TV0: ([E.UNSUPPORTED_VERSION, BUSY, BUSY], 0)},
    ),
]


# ---- zombies -------------------------------------------------------------------------


@dataclass(frozen=True)
class Fenced:
    """A producer that is over, and where it may ask."""

    stage: Stage
    raw: RawProducer
    wrote: TopicPartition
    new: TopicPartition


#: The steps of a producer, and what one that is fenced is answered.
STEPS: Final[dict[str, tuple[Callable[[Fenced], Awaitable[E]], E]]] = {
    "produce-same-partition": (lambda one: one.raw.write(one.wrote, 1), OLD_EPOCH),
    "produce-new-partition": (lambda one: one.raw.write(one.new, 0), OLD_EPOCH),
    "add": (lambda one: added(one, 3), FENCED),
    "add-v1": (lambda one: added(one, 1), OLD_EPOCH),
    "addoffsets": (lambda one: one.raw.add_offsets(one.stage.name), FENCED),
    "addoffsets-v1": (
        lambda one: one.raw.add_offsets(one.stage.name, None, 1),
        OLD_EPOCH,
    ),
    "txnoffsetcommit": (lambda one: offset_committed(one), OLD_EPOCH),
    "endtxn-commit": (lambda one: one.raw.end(commit=True), FENCED),
    "endtxn-abort": (lambda one: one.raw.end(commit=False), FENCED),
    "endtxn-v1": (lambda one: one.raw.end(commit=True, version=1), OLD_EPOCH),
    "init": (lambda one: one.raw.init(one.raw.who), FENCED),
    "init-v3": (lambda one: one.raw.init(one.raw.who, 3), OLD_EPOCH),
}


async def added(one: Fenced, version: int) -> E:
    (code,) = await one.raw.add(one.new, version=version)
    return code


async def offset_committed(one: Fenced) -> E:
    (code,) = await one.raw.commit_offsets(one.stage.name, {one.wrote: 1})
    return code


async def a_zombie(
    stage: Stage, versions: Versions, step: str, had: str, successor: str
) -> E:
    """A producer goes on after a successor has come.

    Args:
        stage: where.
        versions: the protocol of both.
        step: the zombie's step.
        had: what the zombie had done with its only transaction: "open" or "committed".
        successor: what the successor has done: "initialised" or "written".
    """
    wrote, new, other = await stage.places(3)
    zombie = await stage.started(versions)
    await zombie.send(wrote, 0)
    if had == "committed":
        await zombie.finish(commit=True)
    who = zombie.who
    after = await stage.started(versions)
    if successor == "written":
        await after.send(other, 0)
    zombie.who = who
    # A new numbering begins after a transaction that has ended.
    return await STEPS[step][0](Fenced(stage, zombie, wrote, new))


def zombies(
    had: str, successor: str, but: Mapping[str, Mapping[Server, E]]
) -> list[Row]:
    found: list[Row] = []
    for step, (_, answer) in STEPS.items():
        # The second trap: with a transaction of the successor open, this aborts it.
        if step.startswith("init") and successor == "written":
            continue
        do = partial(a_zombie, step=step, had=had, successor=successor)
        name = f"zombie-{step}-had-{had}-successor-{successor}"
        found += both(name, do, answer, but=but.get(step))
    return found


TAKEN_BY_2_8 = {V2_8: E.NONE}
ZOMBIES = [
    *zombies(
        "open",
        "initialised",
        {"produce-new-partition": TAKEN_BY_2_8, "txnoffsetcommit": TAKEN_BY_2_8},
    ),
    *zombies(
        "open",
        "written",
        {"produce-new-partition": TAKEN_BY_2_8, "txnoffsetcommit": TAKEN_BY_2_8},
    ),
    *zombies(
        "committed",
        "initialised",
        {
            "produce-same-partition": TAKEN_BY_2_8,
            "produce-new-partition": TAKEN_BY_2_8,
            "txnoffsetcommit": TAKEN_BY_2_8,
        },
    ),
]


# ---- offsets: TxnOffsetCommit --------------------------------------------------------

Sender = Callable[[Member], Member]
WHO: Final[dict[str, Sender]] = {
    "member": lambda member: member,
    "member-generation-below": lambda m: m._replace(generation=m.generation - 1),
    "member-generation-above": lambda m: m._replace(generation=m.generation + 1),
    "unknown-member": lambda m: m._replace(member_id="unknown"),
    "nobody": lambda _: Member(),
    "nobody-with-the-generation": lambda m: m._replace(member_id=""),
    "member-without-generation": lambda m: m._replace(generation=-1),
    "member-of-another-instance": lambda m: m._replace(instance_id="another"),
}


async def one_member(stage: Stage, protocol: str, topic: str) -> Member:
    """The only member of the row's group."""
    if protocol == "classic":
        return await join_classic(stage.cluster, stage.name, topic)
    one = ConsumerMember(stage.cluster, stage.name, topic, f"{stage.name}-a")
    # Its epoch is at least 3 then, so that the one before is none of its own.
    await one.owning(3)
    return one.member


async def committing(stage: Stage, protocol: str, who: str) -> E:
    """Commit an offset in a transaction as somebody of a group with a member."""
    tp, *_ = await stage.places(3)
    member = await one_member(stage, protocol, tp.topic)
    raw = await stage.started(stage.server.natural)
    if not raw.is_new:
        assert await raw.add_offsets(stage.name) == E.NONE
    (code,) = await raw.commit_offsets(stage.name, {tp: 1}, WHO[who](member))
    return code


async def committing_v2(stage: Stage, protocol: str) -> E:
    """Without the member at all, as before KIP-447."""
    tp, *_ = await stage.places(3)
    await one_member(stage, protocol, tp.topic)
    raw = await stage.started(stage.server.natural)
    assert await raw.add_offsets(stage.name) == E.NONE
    (code,) = await raw.commit_offsets(stage.name, {tp: 1}, version=2)
    return code


async def committing_what_is_not_owned(stage: Stage, protocol: str) -> E:
    """A partition that the member does not have."""
    tp, *_ = await stage.places(3)
    foreign = TopicPartition(await stage.topic(1), 0)
    member = await one_member(stage, protocol, tp.topic)
    raw = await stage.started(stage.server.natural)
    if not raw.is_new:
        assert await raw.add_offsets(stage.name) == E.NONE
    (code,) = await raw.commit_offsets(stage.name, {foreign: 1}, member)
    return code


async def committing_after_all_left(stage: Stage, protocol: str) -> Any:
    """The old member, then nobody."""
    tp, *_ = await stage.places(3)
    cluster, group = stage.cluster, stage.name
    if protocol == "classic":
        member = await join_classic(cluster, group, tp.topic)
        await leave_classic(cluster, group, member)
    else:
        one = ConsumerMember(cluster, group, tp.topic, f"{group}-a")
        await one.owning(3)
        member = one.member
        await one.leave()
    raw = await stage.started(stage.server.natural)
    if not raw.is_new:
        assert await raw.add_offsets(group) == E.NONE
    return [
        *await raw.commit_offsets(group, {tp: 1}, member),
        *await raw.commit_offsets(group, {tp: 1}),
    ]


async def committing_under_the_epoch_before(stage: Stage) -> Any:
    """Partitions kept since, moved away, and both in one request; then under the new.

    The member learns of the new epoch by its next heartbeat.
    """
    topic = await stage.topic(2)
    first = ConsumerMember(stage.cluster, stage.name, topic, f"{stage.name}-a")
    await first.owning(2)
    before = first.member
    second = ConsumerMember(stage.cluster, stage.name, topic, f"{stage.name}-b")
    await second.beat()
    await first.owning(1)

    async def has_moved() -> bool:
        await first.beat()
        await second.beat()
        return len(second.owned) == 1 and first.epoch > before.generation

    await until(has_moved)
    (kept,), (moved,) = first.owned, second.owned
    stays, goes = TopicPartition(topic, kept), TopicPartition(topic, moved)
    raw = await stage.started(stage.server.natural)
    if not raw.is_new:
        assert await raw.add_offsets(stage.name) == E.NONE
    commit = partial(raw.commit_offsets, stage.name)
    return (
        await commit({stays: 1}, before),
        await commit({goes: 1}, before),
        await commit({stays: 1, goes: 1}, before),
        await commit({goes: 1}, first.member),
    )


ILLEGAL, UNKNOWN = E.ILLEGAL_GENERATION, E.UNKNOWN_MEMBER_ID
#: By whoever sends it: the classic protocol, that of 2.8, and the consumer protocol.
COMMITTERS: Final = {
    "member": (E.NONE, E.NONE, E.NONE),
    "member-generation-below": (ILLEGAL, ILLEGAL, ILLEGAL),
    "member-generation-above": (ILLEGAL, ILLEGAL, ILLEGAL),
    "unknown-member": (UNKNOWN, UNKNOWN, UNKNOWN),
    "nobody": (E.NONE, E.NONE, E.NONE),
    "nobody-with-the-generation": (UNKNOWN, E.NONE, UNKNOWN),
    "member-without-generation": (ILLEGAL, E.NONE, ILLEGAL),
    "member-of-another-instance": (UNKNOWN, E.NONE, E.NONE),
}


def table_of_commits() -> Iterator[Row]:
    for who, (classic, old, consumer) in COMMITTERS.items():
        yield Row(
            f"txnoffsetcommit-classic-{who}",
            partial(committing, protocol="classic", who=who),
            classic,
            but={V2_8: old},
        )
        yield Row(
            f"txnoffsetcommit-consumer-{who}",
            partial(committing, protocol="consumer", who=who),
            consumer,
            on=SINCE_4_0,
        )
    for protocol, servers in (("classic", ALL), ("consumer", SINCE_4_0)):
        name = f"txnoffsetcommit-{protocol}"
        for what, do, answer in (
            ("v2", committing_v2, E.NONE),
            ("not-owned", committing_what_is_not_owned, E.NONE),
            ("all-left", committing_after_all_left, [UNKNOWN, E.NONE]),
        ):
            yield Row(f"{name}-{what}", partial(do, protocol=protocol), answer, servers)


async def committing_what_was_never_added(stage: Stage, version: int) -> Any:
    """The code, EndTxn's, and what the group's reader is told then."""
    (tp,) = await stage.places(1)
    raw = await stage.started(OLD)
    (code,) = await raw.commit_offsets(stage.name, {tp: 5}, version=version)
    ended = await raw.end(commit=True)
    return code, ended, await fetch_offset(stage.cluster, stage.name, tp)


async def offsets_that_wait(stage: Stage, commit: bool) -> Any:
    """Pending offsets, before and after the end; first one committed in a plain way."""
    (tp,) = await stage.places(1)
    cluster, group = stage.cluster, stage.name
    assert await commit_plain(cluster, group, tp, 3, Member()) == E.NONE
    raw = await stage.started(stage.server.natural)
    if not raw.is_new:
        assert await raw.add_offsets(group) == E.NONE
    codes = await raw.commit_offsets(group, {tp: 7})
    pending = await fetch_offset(cluster, group, tp)
    unstable = await fetch_offset(cluster, group, tp, stable=False)
    await raw.finish(commit=commit)
    return codes, pending, unstable, await fetch_offset(cluster, group, tp)


async def a_plain_commit_in_between(stage: Stage) -> Any:
    """Transactional 20, plain 15, end: the record that was written later wins."""
    (tp,) = await stage.places(1)
    cluster, group = stage.cluster, stage.name
    raw = await stage.started(stage.server.natural)
    if not raw.is_new:
        assert await raw.add_offsets(group) == E.NONE
    assert await raw.commit_offsets(group, {tp: 20}) == [E.NONE]
    plain = await commit_plain(cluster, group, tp, 15, Member())
    await raw.finish(commit=True)
    return plain, await fetch_offset(cluster, group, tp)


async def a_generation_that_ends(stage: Stage, protocol: str) -> Any:
    """The group goes on to another generation before EndTxn."""
    tp, *_ = await stage.places(3)
    cluster, group = stage.cluster, stage.name
    member = await one_member(stage, protocol, tp.topic)
    raw = await stage.started(stage.server.natural)
    if not raw.is_new:
        assert await raw.add_offsets(group) == E.NONE
    codes = await raw.commit_offsets(group, {tp: 9}, member)
    if protocol == "classic":
        await leave_classic(cluster, group, member)
    else:
        left = ConsumerMember(cluster, group, tp.topic, member.member_id)
        left.epoch = member.generation
        await left.leave()
    pending = await fetch_offset(cluster, group, tp)
    await raw.finish(commit=True)
    return codes, pending, await fetch_offset(cluster, group, tp)


UNSTABLE = (E.UNSTABLE_OFFSET_COMMIT, -1)
OFFSETS = [
    *table_of_commits(),
    Row(
        "txnoffsetcommit-consumer-epoch-before",
        committing_under_the_epoch_before,
        ([E.NONE], [ILLEGAL], [ILLEGAL, ILLEGAL], [E.NONE]),
        on=SINCE_4_0,
        but={V4_0: ([ILLEGAL], [ILLEGAL], [ILLEGAL, ILLEGAL], [E.NONE])},
    ),
    Row(
        "txnoffsetcommit-v4-never-added",
        partial(committing_what_was_never_added, version=4),
        (ABORTABLE, STATE, (E.NONE, -1)),
        but={V2_8: (E.NONE, STATE, UNSTABLE)},
    ),
    Row(
        "txnoffsetcommit-v2-never-added",
        partial(committing_what_was_never_added, version=2),
        (STATE, STATE, (E.NONE, -1)),
        on=SINCE_3_9,
    ),
    Row(
        "offsets-pending-then-committed",
        partial(offsets_that_wait, commit=True),
        ([E.NONE], UNSTABLE, (E.NONE, 3), (E.NONE, 7)),
    ),
    Row(
        "offsets-pending-then-aborted",
        partial(offsets_that_wait, commit=False),
        ([E.NONE], UNSTABLE, (E.NONE, 3), (E.NONE, 3)),
    ),
    Row(
        "offsets-the-later-record-wins",
        a_plain_commit_in_between,
        (E.NONE, (E.NONE, 15)),
    ),
    Row(
        "offsets-generation-ends-before-endtxn-classic",
        partial(a_generation_that_ends, protocol="classic"),
        ([E.NONE], UNSTABLE, (E.NONE, 9)),
    ),
    Row(
        "offsets-generation-ends-before-endtxn-consumer",
        partial(a_generation_that_ends, protocol="consumer"),
        ([E.NONE], UNSTABLE, (E.NONE, 9)),
        on=SINCE_4_0,
    ),
]


# ---- operators: WriteTxnMarkers, DescribeTransactions --------------------------------


async def a_marker_in_a_live_transaction(
    stage: Stage, moved: int, transaction_version: int | None = None
) -> Any:
    """An abort marker from outside; the producer's next write, and its commit."""
    (tp,) = await stage.places(1)
    raw = await stage.started(NEW)
    await raw.send(tp, 0)
    marked = await write_marker(
        *(stage.cluster, tp, raw.who.moved(moved)),
        coordinator_epoch=0,
        transaction_version=transaction_version,
    )
    return marked, await raw.write(tp, 1), await raw.end(commit=True)


async def a_hanging_one_is_ended(stage: Stage) -> Any:
    """A marker without a coordinator epoch, then with that of the partition."""
    (tp,) = await stage.places(1)
    raw = await stage.started(OLD)
    await raw.send(tp, 0)
    await raw.finish(commit=True)
    assert await raw.write(tp, 1) == E.NONE
    (found,) = await producers(stage.cluster, tp)
    refused = await write_marker(stage.cluster, tp, raw.who, coordinator_epoch=-1)
    hanging = await ends(stage.cluster, tp)
    code = await write_marker(
        stage.cluster, tp, raw.who, coordinator_epoch=found.coordinator_epoch
    )
    await stable(stage.cluster, tp)
    start = found.current_txn_start_offset
    return start, refused, hanging, code, await ends(stage.cluster, tp)


async def a_timeout_that_is_stored(stage: Stage) -> Any:
    """That of a fence, until the next initialisation."""
    await stage.started(OLD, timeout_ms=60_000)
    await stage.started(OLD, timeout_ms=12_345)
    fenced = (await describe(stage.cluster, stage.name)).transaction_timeout_ms
    await stage.started(OLD, timeout_ms=60_000)
    after = (await describe(stage.cluster, stage.name)).transaction_timeout_ms
    return fenced, after


async def an_id_that_nobody_has(stage: Stage) -> E:
    await stage.started(OLD)  # the coordinator is there, and has loaded
    return E((await describe(stage.cluster, stage.name + "-no")).error_code)


async def a_state(stage: Stage, state: str) -> Any:
    """What DescribeTransactions says of a state."""
    await in_state(stage, stage.server.natural, state)
    found = await describe(stage.cluster, stage.name)
    return found.transaction_state, len(found.topics)


OPERATORS = [
    Row(
        "marker-in-a-live-transaction",
        partial(a_marker_in_a_live_transaction, moved=0),
        (E.NONE, E.NONE, E.NONE),
        on=NEWER,
    ),
    Row(
        "marker-in-a-live-transaction-epoch-above",
        partial(a_marker_in_a_live_transaction, moved=1),
        (E.NONE, OLD_EPOCH, E.NONE),
        on=NEWER,
    ),
    Row(
        "marker-v2-legacy-rule",
        partial(a_marker_in_a_live_transaction, moved=0, transaction_version=0),
        (E.NONE, E.NONE, E.NONE),
        on=(TV2,),
    ),
    Row(
        "marker-v2-epoch-has-to-be-greater",
        partial(a_marker_in_a_live_transaction, moved=0, transaction_version=2),
        (OLD_EPOCH, E.NONE, E.NONE),
        on=(TV2,),
    ),
    Row(
        "marker-v2-epoch-above",
        partial(a_marker_in_a_live_transaction, moved=1, transaction_version=2),
        (E.NONE, OLD_EPOCH, E.NONE),
        on=(TV2,),
    ),
    Row(
        "marker-ends-a-hanging-transaction",
        a_hanging_one_is_ended,
        (2, E.TRANSACTION_COORDINATOR_FENCED, (3, 2), E.NONE, (4, 4)),
        on=(V2_8,),
    ),
    Row(
        "a-fence-stores-its-timeout",
        a_timeout_that_is_stored,
        (12_345, 60_000),
        SINCE_3_9,
    ),
    Row(
        "describe-unknown-id",
        an_id_that_nobody_has,
        E.TRANSACTIONAL_ID_NOT_FOUND,
        on=SINCE_3_9,
    ),
    *(
        Row(
            f"describe-{state}",
            partial(a_state, state=state),
            (state, count),
            SINCE_3_9,
        )
        for state, count in (
            *(("Empty", 0), ("Ongoing", 1)),
            *(("CompleteCommit", 0), ("CompleteAbort", 0)),
        )
    ),
]


# ---- readers -------------------------------------------------------------------------


async def an_open_end(stage: Stage) -> Any:
    """Three records committed, three open: both ends, and what a fetch returns."""
    (tp,) = await stage.places(1)
    raw = await stage.started(stage.server.natural)
    await raw.send(tp, 0, [b"a", b"b", b"c"])
    await raw.finish(commit=True)
    await raw.send(tp, 0 if raw.is_new else 3, [b"d", b"e", b"f"])
    counts = []
    for isolation in (0, 1):
        data = await fetch(stage.cluster, tp, isolation=isolation)
        counts.append(
            (sum(one.count for one in batches(data)), data.last_stable_offset)
        )
    beyond = await fetch(stage.cluster, tp, offset=4, isolation=1)
    return await ends(stage.cluster, tp), counts, batches(beyond)


async def an_abort_that_is_read(stage: Stage) -> Any:
    """What is listed as aborted, what is left, and the end that readers go on to."""
    (tp,) = await stage.places(1)
    raw = await stage.started(stage.server.natural)
    await raw.send(tp, 0)
    await raw.finish(commit=True)
    await raw.send(tp, 0 if raw.is_new else 1, [b"w"])
    await raw.finish(commit=False)
    data = await fetch(stage.cluster, tp, isolation=1)
    listed = [
        (one.producer_id == raw.who.producer_id, one.first_offset)
        for one in data.aborted_transactions or ()
    ]
    unlisted = (await fetch(stage.cluster, tp)).aborted_transactions
    left = await visible(stage.cluster, tp)
    return listed, unlisted, left, await ends(stage.cluster, tp)


async def a_marker(stage: Stage, versions: Versions, commit: bool) -> Any:
    """The control batch that ends a transaction, field by field."""
    (tp,) = await stage.places(1)
    raw = await stage.started(versions)
    await raw.send(tp, 0)
    before = await raw.finish(commit=commit)
    data = bytes((await fetch(stage.cluster, tp, offset=1)).records or b"")
    (batch,) = batches(await fetch(stage.cluster, tp, offset=1))
    (attributes,) = struct.unpack_from(">h", data, 21)
    (record,) = batch.decode(tp.topic, tp.partition)
    assert record.value is not None
    version, _epoch = struct.unpack(">hi", record.value)
    return (
        *(attributes, batch.size_bytes, batch.producer_id == before.producer_id),
        *(batch.producer_epoch - before.epoch, batch.base_sequence),
        *(record.key, version),
    )


async def the_transaction_log(stage: Stage, versions: Versions) -> Any:
    """A commit and an abort in ``__transaction_state``: versions, states and epochs."""
    (tp,) = await stage.places(1)
    raw = await stage.started(versions)
    await raw.send(tp, 0)
    await raw.finish(commit=True)
    await raw.send(tp, 0 if raw.is_new else 1)
    await raw.finish(commit=False)
    key = struct.pack(">hh", 0, len(stage.name)) + stage.name.encode()
    found = []
    for place in await stage.cluster.partitions("__transaction_state"):
        for batch in batches(await fetch(stage.cluster, place)):
            for record in batch.decode(place.topic, place.partition):
                if record.key == key and record.value is not None:
                    # Version, producer id; in the flexible version 1, too.
                    version, _, epoch, _, state = struct.unpack_from(
                        ">hqhib", record.value
                    )
                    found.append((version, state, epoch))
    return {version for version, _, _ in found}, [one[1:] for one in found]


EMPTY, ONGOING, COMMITTING, ABORTING, COMMITTED, ABORTED = range(6)
LOGGED_OLD = [
    *((EMPTY, 0), (ONGOING, 0), (COMMITTING, 0), (COMMITTED, 0)),
    *((ONGOING, 0), (ABORTING, 0), (ABORTED, 0)),
]
LOGGED_NEW = [
    *((EMPTY, 0), (ONGOING, 0), (COMMITTING, 1), (COMMITTED, 1)),
    *((ONGOING, 1), (ABORTING, 2), (ABORTED, 2)),
]
COMMIT_KEY, ABORT_KEY = b"\0\0\0\1", b"\0\0\0\0"

READERS = [
    Row("lso-ends-readers", an_open_end, ((7, 4), [(7, 4), (4, 4)], [])),
    Row(
        "aborted-records-are-listed",
        an_abort_that_is_read,
        ([(True, 2)], None, [b"v"], (4, 4)),
    ),
    *both(
        "marker-of-a-commit",
        partial(a_marker, commit=True),
        (0x30, 78, True, 0, -1, COMMIT_KEY, 0),
        (0x30, 78, True, 1, -1, COMMIT_KEY, 0),
    ),
    *both(
        "marker-of-an-abort",
        partial(a_marker, commit=False),
        (0x30, 78, True, 0, -1, ABORT_KEY, 0),
        (0x30, 78, True, 1, -1, ABORT_KEY, 0),
    ),
    *both(
        "transaction-log",
        the_transaction_log,
        ({1}, LOGGED_OLD),
        ({1}, LOGGED_NEW),
        but={server: ({0}, LOGGED_OLD) for server in (TV0, V3_9, V2_8)},
    ),
]


AT_ONCE = [*INITS, *MEMBERS, *ENDS, *ZOMBIES, *OFFSETS, *OPERATORS, *READERS]


@rows(AT_ONCE, with_every_change)
async def test_a_row_with_every_change(stage: Stage, row: Row) -> None:
    assert await row.do(stage) == row.answer_of(stage.server)


@rows(AT_ONCE, lambda server, row: not with_every_change(server, row))
async def test_a_row(stage: Stage, row: Row) -> None:
    assert await row.do(stage) == row.answer_of(stage.server)


# ---- timeouts ------------------------------------------------------------------------

_SHORT_MS: Final = 400


async def a_timed_out_producer(stage: Stage, versions: Versions) -> Fenced:
    """One whose transaction the coordinator has aborted, down to its markers."""
    wrote, new = await stage.places(2)
    raw = await stage.started(versions, timeout_ms=_SHORT_MS)
    await raw.send(wrote, 0)
    await stable(stage.cluster, wrote)
    return Fenced(stage, raw, wrote, new)


async def timing_out(stage: Stage, versions: Versions, step: str) -> E:
    """The owner goes on."""
    late = await a_timed_out_producer(stage, versions)
    return await after_markers(partial(STEPS[step][0], late))


async def timing_out_in_the_log(stage: Stage, versions: Versions) -> Any:
    """How much higher the epoch of the marker is; what readers are left with."""
    late = await a_timed_out_producer(stage, versions)
    (found,) = await producers(stage.cluster, late.wrote)
    epochs = found.producer_epoch - late.raw.who.epoch
    return epochs, await visible(stage.cluster, late.wrote)


async def timing_out_and_going_on(stage: Stage) -> Any:
    """In the new protocol, an abort gives the next epoch, and the next commits."""
    late = await a_timed_out_producer(stage, NEW)
    raw, before = late.raw, late.raw.who
    codes = [await after_markers(lambda: raw.end(commit=True))]
    codes.append(await raw.end(commit=False))
    epochs = raw.who.epoch - before.epoch
    await raw.send(late.wrote, 0, [b"next"])
    codes.append(await raw.end(commit=True))
    await stable(stage.cluster, late.wrote)
    return codes, epochs, await visible(stage.cluster, late.wrote)


TIMEOUTS = [
    *both("timeout-in-the-log", timing_out_in_the_log, (1, [])),
    *both(
        "timeout-produce-same-partition",
        partial(timing_out, step="produce-same-partition"),
        OLD_EPOCH,
    ),
    *both(
        "timeout-produce-new-partition",
        partial(timing_out, step="produce-new-partition"),
        OLD_EPOCH,
        but=TAKEN_BY_2_8,
    ),
    *both("timeout-add", partial(timing_out, step="add"), FENCED),
    *both("timeout-addoffsets", partial(timing_out, step="addoffsets"), FENCED),
    *both(
        "timeout-txnoffsetcommit",
        partial(timing_out, step="txnoffsetcommit"),
        OLD_EPOCH,
        but=TAKEN_BY_2_8,
    ),
    *both(
        "timeout-endtxn-commit",
        partial(timing_out, step="endtxn-commit"),
        FENCED,
        STATE,
    ),
    *both(
        "timeout-endtxn-abort", partial(timing_out, step="endtxn-abort"), FENCED, E.NONE
    ),
    *both(
        "timeout-init",
        partial(timing_out, step="init"),
        FENCED,
        E.NONE,
        but=dict.fromkeys(NEWER, E.NONE),
    ),
    Row(
        "timeout-abort-and-go-on-new",
        timing_out_and_going_on,
        ([STATE, E.NONE, E.NONE], 1, [b"next"]),
        on=NEWER,
    ),
]


@rows(TIMEOUTS)
async def test_a_row_of_timeouts(stage: Stage, row: Row) -> None:
    assert await row.do(stage) == row.answer_of(stage.server)


# ---- while markers wait --------------------------------------------------------------


@dataclass
class Waiting:
    """A transaction that is ended, one of whose markers cannot be written yet.

    Attributes:
        raw: its producer.
        before: who ended it.
        free: a partition that is not in it.
    """

    raw: RawProducer
    before: Identity
    free: TopicPartition


@asynccontextmanager
async def delayed(versions: Versions, commit: bool) -> AsyncIterator[Waiting]:
    """An embedded broker writes its markers when it is told to."""
    async with (
        Broker(topics={"a": 1, "b": 1}) as broker,
        Client(broker.bootstrap_servers) as client,
    ):
        raw = RawProducer(Cluster(client), "tx", versions)
        await raw.start()
        await raw.send(TopicPartition("a", 0), 0)
        broker.control.delay_markers(60)
        before = raw.who
        assert await raw.end(commit=commit) == E.NONE
        yield Waiting(raw, before, TopicPartition("b", 0))
        broker.control.write_markers()
        await raw.settled(before, commit=commit)


@asynccontextmanager
async def refused(
    kafka: Kafka, versions: Versions, commit: bool
) -> AsyncIterator[Waiting]:
    """A partition has one replica in sync, and takes no marker until it has two."""
    name = f"tx-{uuid.uuid4().hex[:12]}"
    topics = [f"t-{uuid.uuid4().hex[:12]}" for _ in range(2)]
    async with Client(kafka.bootstrap_servers) as client:
        cluster = Cluster(client)
        raw = RawProducer(cluster, name, versions)
        await raw.start()
        await loaded(cluster, [name])
        # Without one of three brokers, the coordinators have to go on.
        await in_sync(cluster, "__transaction_state", "__consumer_offsets")
        kafka.create_topic_blocking(topics[0], 6, 2, {"min.insync.replicas": "2"})
        kafka.create_topic_blocking(topics[1], 6, 3)
        await in_sync(cluster, *topics)
        needed = {
            await cluster.coordinator_of(name),
            await cluster.group_coordinator_of(name),
        }
        paused = next(one for one in (1, 2, 3) if one not in needed)
        written = await a_place(cluster, topics[0], followed_by=paused)
        free = await a_place(cluster, topics[1], followed_by=paused)
        await led(cluster, free)
        await raw.send(written, 0)
        await kafka.pause(paused)
        sequence = itertools.count(1)

        async def is_refused() -> bool:
            # Until the replica has fallen out, it is waited for.
            return await raw.write(written, next(sequence)) == E.NOT_ENOUGH_REPLICAS

        await until(is_refused)
        before = raw.who
        assert await raw.end(commit=commit) == E.NONE
        yield Waiting(raw, before, free)
        await kafka.resume(paused)
        await raw.settled(before, commit=commit)


async def a_place(cluster: Cluster, topic: str, followed_by: int) -> TopicPartition:
    """A partition of which a broker is a follower."""
    for tp in await cluster.partitions(topic):
        replicas = await cluster.replicas_of(tp)
        if followed_by in replicas and await cluster.leader_of(tp) != followed_by:
            return tp
    raise AssertionError(topic)


@pytest_asyncio.fixture(loop_scope="module")
async def waiting(
    request: pytest.FixtureRequest, versions: Versions, commit: bool
) -> AsyncIterator[Waiting]:
    if is_embedded():
        context = delayed(versions, commit)
    else:
        kafka = request.getfixturevalue("real_kafka_cluster")
        context = refused(kafka, versions, commit)
    async with context as found:
        yield found


@pytest.mark.kafka_versions("2.8+")
@pytest.mark.parametrize("versions", [OLD], ids=["old"])
@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
async def test_markers_that_wait_in_the_old_protocol(
    waiting: Waiting, commit: bool, kafka_version: str
) -> None:
    raw = waiting.raw
    answers = {
        "the same end": await raw.end(commit=commit),
        "the other end": await raw.end(commit=not commit),
        "add": await raw.add(waiting.free),
        "add offsets": await raw.add_offsets(raw.name),
        "bump": await raw.init(raw.who),
        "a new life": await RawProducer(raw.cluster, raw.name, OLD).init(),
    }
    assert answers == dict.fromkeys(answers, BUSY) | {"add": [BUSY]}
    if kafka_version != "2.8":  # which verifies nothing
        assert await raw.write(waiting.free, 1) == E.NOT_ENOUGH_REPLICAS


@pytest.mark.kafka_versions("4.0+")
@pytest.mark.parametrize("versions", [NEW], ids=["new"])
@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
async def test_markers_that_wait_in_the_new_protocol(
    waiting: Waiting, commit: bool
) -> None:
    raw, before = waiting.raw, waiting.before
    now = raw.who
    answers = {
        "the same end": await raw.end(commit=commit, who=before),
        "the other end": await raw.end(commit=not commit, who=before),
        "the next end": await raw.end(commit=commit, who=now),
        "the other next end": await raw.end(commit=not commit, who=now),
        "describe": (await describe(raw.cluster, raw.name)).transaction_state,
        "produce": await raw.write(waiting.free, 0),
        "commit offsets": await raw.commit_offsets(raw.name, {waiting.free: 1}),
        "bump": await raw.init(now),
        "a new life": await RawProducer(raw.cluster, raw.name, NEW).init(),
    }
    assert answers == dict.fromkeys(answers, BUSY) | {
        "describe": f"Prepare{'Commit' if commit else 'Abort'}",
        "commit offsets": [BUSY],
    }


# ---- the end of the epochs -----------------------------------------------------------

_LAST_EPOCH: Final = 32_766


async def at_the_last_epoch(stage: Stage, versions: Versions) -> RawProducer:
    """A producer with the highest epoch that a producer can have."""
    raw = await stage.started(versions)
    if isinstance(stage.kafka, Broker):
        stage.kafka.control.set_producer_epoch(raw.name, _LAST_EPOCH - 1)
        await raw.start()
    while (left := _LAST_EPOCH - raw.who.epoch) > 0:
        # The coordinator answers one after the other.
        lives = [stage.producer(versions) for _ in range(min(left, 250))]
        await asyncio.gather(*(one.init() for one in lives))
        raw.who = max(one.who for one in lives)
    assert raw.who.epoch == _LAST_EPOCH
    return raw


async def an_end_of_epochs(stage: Stage) -> Any:
    """An end gives a new producer id; the same end again gives the same one."""
    (tp,) = await stage.places(1)
    raw = await at_the_last_epoch(stage, NEW)
    await raw.send(tp, 0)
    last = raw.who
    codes = [await raw.end(commit=True)]
    given = raw.who
    codes.append(await after_markers(lambda: raw.end(commit=True, who=last)))
    is_same, is_new = raw.who == given, given.producer_id != last.producer_id
    codes += [await raw.write(tp, 1, who=last), await raw.write(tp, 0)]
    codes.append(await raw.end(commit=True))
    return codes, given.epoch, is_new, is_same


async def a_life_after_the_last_epoch(stage: Stage) -> Any:
    """In the old protocol, the next initialisation gives a new producer id."""
    (tp,) = await stage.places(1)
    raw = await at_the_last_epoch(stage, OLD)
    last = raw.who
    await raw.send(tp, 0)
    codes = [await raw.end(commit=True)]
    await raw.settled(last, commit=True)
    is_kept = raw.who == last
    codes.append(await raw.init(last))
    given = raw.who
    await raw.send(tp, 0)
    codes.append(await raw.end(commit=True))
    return codes, is_kept, given.epoch, given.producer_id != last.producer_id


EPOCHS = [
    Row(
        "epochs-end-new",
        an_end_of_epochs,
        ([E.NONE, E.NONE, OLD_EPOCH, E.NONE, E.NONE], 0, True, True),
        on=NEWER,
        but={
            V4_0: (
                [E.NONE, E.NONE, E.INVALID_PRODUCER_ID_MAPPING, E.NONE, E.NONE],
                *(0, True, True),
            )
        },
    ),
    Row(
        "epochs-end-old",
        a_life_after_the_last_epoch,
        ([E.NONE, E.NONE, E.NONE], True, 0, True),
    ),
]


@rows(EPOCHS)
@pytest.mark.timeout(900)
async def test_a_row_of_epochs(stage: Stage, row: Row) -> None:
    assert await row.do(stage) == row.answer_of(stage.server)


# ---- what is not allowed -------------------------------------------------------------

#: Numbers of the protocol, as Java's names say what they are.
_TOPIC, _GROUP, _TRANSACTIONAL_ID = 2, 3, 5
_ALL, _READ, _WRITE = 2, 3, 4
_DENY, _ALLOW = 2, 3
_LITERAL = 3


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def guarded(kafka_version: str) -> AsyncIterator[Stage]:
    """A Kafka that allows everything that is not denied."""
    settings = {
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"
        if kafka_version == "2.8"
        else "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    with Kafka(version=kafka_version, config=settings) as kafka:
        async with Client(kafka.bootstrap_servers) as client:
            server = next(one for one in ALL if one.version == kafka_version)
            cluster = Cluster(client)
            await loaded(cluster, [f"g-{number}" for number in range(_GROUPS)])
            yield Stage(server, kafka, cluster)


async def deny(cluster: Cluster, kind: int, name: str, operation: int) -> None:
    """Deny one operation on something, and nothing else."""
    request = CreateAclsRequest(
        creations=[
            AclCreation(
                resource_type=kind,
                resource_name=name,
                resource_pattern_type=_LITERAL,
                principal="User:ANONYMOUS",
                host="*",
                operation=what,
                permission_type=permission,
            )
            for what, permission in ((_ALL, _ALLOW), (operation, _DENY))
        ]
    )
    answer = await cluster.any(request, 2)
    assert [one.error_code for one in answer.results] == [E.NONE, E.NONE]

    async def is_known() -> bool:
        listed = await cluster.any(
            DescribeAclsRequest(
                resource_type_filter=kind,
                resource_name_filter=name,
                pattern_type_filter=_LITERAL,
                principal_filter=None,
                host_filter=None,
                operation=1,
                permission_type=1,
            ),
            2,
        )
        return [len(one.acls) for one in listed.resources] == [2]

    await until(is_known)


async def without_a_topic(stage: Stage, versions: Versions) -> Any:
    """Add, write, and commit offsets of a topic that may not be written or read."""
    (tp,), (secret,), (unread,) = [await stage.places(1) for _ in range(3)]
    raw = await stage.started(versions)
    await deny(stage.cluster, _TOPIC, secret.topic, _WRITE)
    await deny(stage.cluster, _TOPIC, unread.topic, _READ)
    codes = [] if raw.is_new else await raw.add(tp, secret)
    codes.append(await raw.write(secret, 0))
    if not raw.is_new:
        assert await raw.add_offsets(stage.name) == E.NONE
    codes += await raw.commit_offsets(stage.name, {tp: 1, unread: 1})
    return codes, await raw.end(commit=True)


async def without_a_group(stage: Stage, versions: Versions) -> Any:
    (tp,) = await stage.places(1)
    raw = await stage.started(versions)
    await deny(stage.cluster, _GROUP, stage.name, _READ)
    codes = [] if raw.is_new else [await raw.add_offsets(stage.name)]
    return [*codes, *await raw.commit_offsets(stage.name, {tp: 1})]


async def without_a_transactional_id(stage: Stage, versions: Versions) -> Any:
    """The right is lost in a transaction; then each step."""
    (tp,) = await stage.places(1)
    raw = await stage.started(versions)
    await raw.send(tp, 0)
    await deny(stage.cluster, _TRANSACTIONAL_ID, stage.name, _WRITE)
    return [
        await raw.write(tp, 1),
        *await raw.add(tp),
        await raw.add_offsets(stage.name),
        *await raw.commit_offsets(stage.name, {tp: 1}),
        await raw.end(commit=True),
        await raw.init(),
    ]


NO_TOPIC, NO_GROUP = E.TOPIC_AUTHORIZATION_FAILED, E.GROUP_AUTHORIZATION_FAILED
NO_ID = E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
DENIALS = [
    *both(
        "denied-topic",
        without_a_topic,
        ([E.OPERATION_NOT_ATTEMPTED, NO_TOPIC, NO_TOPIC, E.NONE, NO_TOPIC], E.NONE),
        ([NO_TOPIC, E.NONE, NO_TOPIC], E.NONE),
    ),
    *both("denied-group", without_a_group, [NO_GROUP, NO_GROUP], [NO_GROUP]),
    *both("denied-transactional-id", without_a_transactional_id, [NO_ID] * 6),
]


@pytest.mark.not_embedded("the embedded broker has no authorizer")
@pytest.mark.parametrize(
    "row",
    [
        pytest.param(
            row,
            id=row.name,
            marks=pytest.mark.kafka_versions(
                *(server.version for server in row.on if server not in {TV1, TV0})
            ),
        )
        for row in DENIALS
    ],
)
async def test_a_row_of_denials(guarded: Stage, row: Row) -> None:
    stage = Stage(guarded.server, guarded.kafka, guarded.cluster)
    assert await row.do(stage) == row.answer_of(stage.server)
