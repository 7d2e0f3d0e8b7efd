"""A cluster of three brokers of which one part fails, and what a client is told.

One broker coordinates the group and the transactional id, one leads the topic that is
struck, and one leads the topic that must go on. So a failure of one part leaves the
others whole, which no test shows that kills whole brokers of a replicated cluster.
"""

from __future__ import annotations

import logging
import re
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final

import kafkaio
from kafkaio import (
    ErrorCode,
    NewTopic,
    TopicPartition,
)
from kafkaio.testing import Broker, error, throttle
from kafkaio.testing._broker.faults import Fault

#: The brokers, by their task.
COORDINATOR, STRUCK_LEADER, LEADER = 0, 1, 2
#: Partitions of the topic that goes on, and records in each partition before a failure.
PARTITIONS: Final = 2
RECORDS: Final = 10
#: How long a throttle of these tests lasts: longer than anything may take.
THROTTLE: Final = 60.0

#: The partition that fails, the topic that goes on, and a topic of both kinds.
STRUCK: Final = TopicPartition("struck", 0)
SPARED: Final = [TopicPartition("spared", number) for number in range(PARTITIONS)]
MIXED: Final = [TopicPartition("mixed", number) for number in range(3)]

#: What only a group's coordinator answers, and what the coordinator of a transaction.
OF_GROUPS: Final = (
    *("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "ConsumerGroupHeartbeat"),
    *("OffsetCommit", "OffsetFetch", "TxnOffsetCommit"),
)
OF_TRANSACTIONS: Final = ("AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn")


class Told:
    """What a person could know: warnings of the log."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def matches(self, pattern: str) -> bool:
        """Whether a line has the pattern; the empty pattern is in every log."""
        return not pattern or any(re.search(pattern, line) for line in self.lines)


class _Keep(logging.Handler):
    def __init__(self, told: Told) -> None:
        super().__init__(logging.WARNING)
        self._told = told

    def emit(self, record: logging.LogRecord) -> None:
        self._told.lines.append(record.getMessage())


@contextmanager
def listening() -> Iterator[Told]:
    """Keep the warnings of the client for as long as the block runs."""
    told = Told()
    handler = _Keep(told)
    logging.getLogger("kafkaio").addHandler(handler)
    try:
        yield told
    finally:
        logging.getLogger("kafkaio").removeHandler(handler)


async def _write(
    producer: kafkaio.Producer, partitions: Iterable[TopicPartition]
) -> None:
    for topic, number in partitions:
        deliveries = [
            await producer.enqueue(topic, b"%d" % value, partition=number)
            for value in range(RECORDS)
        ]
        for delivery in deliveries:
            await delivery


@dataclass
class Stage:
    """The cluster, and clients of it with short limits."""

    broker: Broker
    told: Told
    group: str = "group"
    transactional_id: str = "copier"
    protocol: Mapping[str, object] = field(default_factory=dict)

    @property
    def client_options(self) -> dict[str, object]:
        return {
            "bootstrap_servers": self.broker.bootstrap_servers,
            "request_timeout_ms": 1_000,
            "default_api_timeout_ms": 3_000,
            "metadata_max_age_ms": 1_000,
            "allow_auto_create_topics": False,
        }

    def consumer(self, **options: object) -> kafkaio.Consumer:
        return kafkaio.Consumer(
            **(  # type: ignore[arg-type]  # options by name
                self.client_options
                | {
                    "topics": ["struck", "spared"],
                    "group_id": self.group,
                    "auto_offset_reset": "earliest",
                    "enable_auto_commit": False,
                }
                | self.protocol
                | options
            )
        )

    def producer(self, **options: object) -> kafkaio.Producer:
        given = self.client_options | {
            "delivery_timeout_ms": 3_000,
            "max_block_ms": 3_000,
            "partitioner_availability_timeout_ms": 300,
        }
        return kafkaio.Producer(**(given | options))  # type: ignore[arg-type]

    def admin(self) -> kafkaio.Admin:
        return kafkaio.Admin(**self.client_options)  # type: ignore[arg-type]

    async def fill(self) -> None:
        """Write the records that are there before a failure."""
        async with self.producer() as producer:
            await _write(producer, (STRUCK, *SPARED))

    async def more(self) -> None:
        """Write as many records again to the topic that goes on."""
        async with self.producer() as producer:
            await _write(producer, SPARED)

    async def place(self) -> None:
        """Give each broker its task."""
        nodes = dict.fromkeys((*SPARED, *MIXED[1:]), LEADER)
        nodes |= dict.fromkeys((STRUCK, MIXED[0]), STRUCK_LEADER)
        replicas: dict[str, dict[int, list[int]]] = {}
        for (topic, number), node in nodes.items():
            replicas.setdefault(topic, {})[number] = [node]
        async with kafkaio.Admin(self.broker.bootstrap_servers) as admin:
            await admin.create_topics(
                [NewTopic(name, assignments=where) for name, where in replicas.items()]
            )
        control = self.broker.control
        control.move_coordinator(self.group, COORDINATOR)
        control.move_transaction_coordinator(self.transactional_id, COORDINATOR)


@asynccontextmanager
async def stage(protocol: Mapping[str, object]) -> AsyncIterator[Stage]:
    """Start three brokers, each with its task, and the records of both topics."""
    broker = Broker(
        nodes=3,
        auto_create_topics=False,
        config={
            "offsets.topic.replication.factor": 3,
            "transaction.state.log.replication.factor": 3,
            "group.consumer.heartbeat.interval.ms": 200,
        },
    )
    with listening() as told:
        async with broker:
            made = Stage(broker, told, protocol=protocol)
            await made.place()
            await made.fill()
            yield made


# What fails


async def topic_gone(on: Stage) -> None:
    async with kafkaio.Admin(on.broker.bootstrap_servers) as admin:
        await admin.delete_topics(["struck"])


async def leader_gone(on: Stage) -> None:
    await on.broker.control.kill(STRUCK_LEADER)


async def leader_hangs(on: Stage) -> None:
    on.broker.control.pause(STRUCK_LEADER)


async def writes_refused(on: Stage) -> None:
    refusal = error(ErrorCode.NOT_ENOUGH_REPLICAS)
    for tp in (STRUCK, MIXED[0]):
        on.broker.faults.on("Produce", refusal, partition=tuple(tp))
    # So Kafka answers where its own log of offsets cannot be written.
    on.broker.faults.on("OffsetCommit", error(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    on.broker.faults.on("TxnOffsetCommit", error(ErrorCode.COORDINATOR_NOT_AVAILABLE))


async def rights_refused(on: Stage) -> None:
    refusal = error(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    for api in ("Produce", "Fetch", "ListOffsets", "OffsetCommit", "TxnOffsetCommit"):
        on.broker.faults.on(api, refusal, partition=tuple(STRUCK))


async def coordinator_gone(on: Stage) -> None:
    """No broker coordinates, as where too few replicas of its log are left."""
    on.broker.faults.on("FindCoordinator", error(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    for api in (*OF_GROUPS, *OF_TRANSACTIONS):
        on.broker.faults.on(api, error(ErrorCode.NOT_COORDINATOR))


async def coordinator_moved(on: Stage) -> None:
    control = on.broker.control
    control.move_coordinator(on.group, LEADER)
    control.move_transaction_coordinator(on.transactional_id, LEADER)


async def throttled(on: Stage) -> None:
    slow: Fault = throttle(THROTTLE, times=1)
    for api in ("Produce", "Fetch", "ListOffsets"):
        on.broker.faults.on(api, slow, node=STRUCK_LEADER)
    for api in ("OffsetCommit", "TxnOffsetCommit"):
        on.broker.faults.on(api, slow, node=COORDINATOR)


FAULTS: Final[Mapping[str, Callable[[Stage], Awaitable[None]]]] = {
    "topic gone": topic_gone,
    "leader gone": leader_gone,
    "leader hangs": leader_hangs,
    "writes refused": writes_refused,
    "rights refused": rights_refused,
    "coordinator gone": coordinator_gone,
    "coordinator moved": coordinator_moved,
    "throttled": throttled,
}


# What is expected


class By(Enum):
    """By when something has happened: the words for users, and seconds in the tests.

    The seconds leave room for a busy machine: what is late is late by far.
    """

    AT_ONCE = ("at once", 15.0)
    PATIENCE = ("after five seconds at most", 8.0)
    API_TIMEOUT = ("after `default_api_timeout_ms`, or the call's own timeout", 8.0)
    DELIVERY = ("after `delivery_timeout_ms`", 8.0)
    BLOCK = ("after `max_block_ms`", 8.0)
    CLOSING = ("within the timeout of `close()`", 8.0)

    def __init__(self, words: str, seconds: float) -> None:
        self.words = words
        self.seconds = seconds


@dataclass(frozen=True)
class Cell:
    """One failure beside one act.

    Attributes:
        goes_on: what goes on, for users.
        told: what is told, for users.
        says: a pattern of what the log or the error has to say; empty for nothing.
        raises: the error of the act itself; None if it succeeds.
        by: by when the act has ended, whether it succeeds or not.
    """

    goes_on: str
    told: str = "nothing"
    says: str = ""
    raises: type[kafkaio.KafkaError] | None = None
    by: By = By.AT_ONCE


ACTS: Final = (
    *("start", "read", "commit", "revocation", "rebalance", "close"),
    *("send with key", "send without key", "transaction", "Admin over many items"),
)

_OTHERS = "all other partitions"

CELLS: Final[Mapping[tuple[str, str], Cell]] = {
    # start
    ("topic gone", "start"): Cell(
        "the topics that exist are read",
        "a warning that names the topic",
        says="topic 'struck' is not available",
    ),
    ("leader gone", "start"): Cell(
        "partitions with a leader are read; this one, once it has a leader",
        "a warning that names partition and reason",
        says="struck-0.*leader",
        by=By.PATIENCE,
    ),
    ("leader hangs", "start"): Cell(
        "all other partitions are read; this one, once its leader answers",
        "a warning that names partition and reason",
        says="struck-0|broker 1",
        by=By.PATIENCE,
    ),
    ("writes refused", "start"): Cell("everything is read"),
    ("rights refused", "start"): Cell(
        "all other partitions are read; the consumer lives on",
        "`poll` raises AuthorizationError, which names the topic",
        says="AuthorizationError.*struck-0",
    ),
    ("coordinator gone", "start"): Cell(
        "nothing: a member has no assignment without a coordinator",
        "the error names the group and the last refusal",
        says="coordinator",
        raises=kafkaio.KafkaTimeout,
        by=By.API_TIMEOUT,
    ),
    ("coordinator moved", "start"): Cell("everything is read"),
    ("throttled", "start"): Cell(
        "everything is read as far as the quota lets it, other brokers' partitions at "
        "full speed",
        "the observer's `throttled`",
    ),
    # read
    ("topic gone", "read"): Cell(
        "all other topics",
        "a warning that names the topic",
        says="topic 'struck' is not available",
    ),
    ("leader gone", "read"): Cell(_OTHERS),
    ("leader hangs", "read"): Cell(
        _OTHERS, "a warning that names the broker", by=By.AT_ONCE
    ),
    ("writes refused", "read"): Cell("everything"),
    ("rights refused", "read"): Cell(
        _OTHERS,
        "`poll` raises AuthorizationError, which names the topic, and can be called "
        "again",
        says="AuthorizationError.*struck-0",
    ),
    ("coordinator gone", "read"): Cell(
        "everything, until the session ends", "commits fail"
    ),
    ("coordinator moved", "read"): Cell("everything"),
    ("throttled", "read"): Cell("other brokers' partitions"),
    # commit
    ("topic gone", "commit"): Cell(
        "the offsets of all other partitions are committed",
        "the error names the partition",
        says="struck-0.*UNKNOWN_TOPIC",
        raises=kafkaio.KafkaError,
    ),
    ("leader gone", "commit"): Cell("everything is committed"),
    ("leader hangs", "commit"): Cell("everything is committed"),
    ("writes refused", "commit"): Cell(
        "nothing can be committed; reading goes on",
        "the error names the refusal",
        says="COORDINATOR_NOT_AVAILABLE",
        raises=kafkaio.KafkaTimeout,
        by=By.API_TIMEOUT,
    ),
    ("rights refused", "commit"): Cell(
        "the offsets of all other partitions are committed",
        "the error names partition and right",
        says="struck-0.*READ",
        raises=kafkaio.AuthorizationError,
    ),
    ("coordinator gone", "commit"): Cell(
        "nothing can be committed; reading goes on",
        "the error names the group and the last refusal",
        says="coordinator",
        raises=kafkaio.KafkaTimeout,
        by=By.API_TIMEOUT,
    ),
    ("coordinator moved", "commit"): Cell("everything is committed"),
    ("throttled", "commit"): Cell(
        "the commit that was answered counts; the next one waits for the quota, at "
        "most for its timeout",
        "the error says that the broker throttles",
        says="throttl",
        raises=kafkaio.KafkaTimeout,
        by=By.API_TIMEOUT,
    ),
    # revocation
    ("topic gone", "revocation"): Cell(
        "the partitions change hands; the others' offsets are committed before",
        "a warning that names the partition whose offset was not committed",
        says="struck-0.*UNKNOWN_TOPIC",
    ),
    ("leader gone", "revocation"): Cell("the partitions change hands"),
    ("leader hangs", "revocation"): Cell("the partitions change hands"),
    ("writes refused", "revocation"): Cell(
        "the partitions change hands, without the offsets",
        "a warning that names the refusal: records are read again",
        says="COORDINATOR_NOT_AVAILABLE",
        by=By.API_TIMEOUT,
    ),
    ("rights refused", "revocation"): Cell(
        "the partitions change hands; the others' offsets are committed before",
        "a warning that names partition and right",
        says="struck-0.*READ",
    ),
    ("coordinator gone", "revocation"): Cell(
        "the members read what they have, until their sessions end",
        "the new member's error names the last refusal",
        says="coordinator",
        raises=kafkaio.KafkaTimeout,
        by=By.API_TIMEOUT,
    ),
    ("coordinator moved", "revocation"): Cell("the partitions change hands"),
    ("throttled", "revocation"): Cell(
        "the partitions change hands; a commit that waits for the quota does not hold "
        "them",
        "a warning, if offsets were not committed",
        by=By.API_TIMEOUT,
    ),
    # rebalance
    ("topic gone", "rebalance"): Cell("the others take over"),
    ("leader gone", "rebalance"): Cell("the others take over"),
    ("leader hangs", "rebalance"): Cell("the others take over"),
    ("writes refused", "rebalance"): Cell("the others take over"),
    ("rights refused", "rebalance"): Cell(
        "the others take over", "`poll` raises AuthorizationError"
    ),
    ("coordinator gone", "rebalance"): Cell(
        "the members read what they have, until their sessions end"
    ),
    ("coordinator moved", "rebalance"): Cell("the others take over"),
    ("throttled", "rebalance"): Cell("the others take over"),
    # close
    ("topic gone", "close"): Cell(
        "the others' offsets are committed, the member leaves",
        "a warning that names the partition whose offset was not committed",
        says="struck-0.*UNKNOWN_TOPIC",
    ),
    ("leader gone", "close"): Cell("everything is committed, the member leaves"),
    ("leader hangs", "close"): Cell("everything is committed, the member leaves"),
    ("writes refused", "close"): Cell(
        "the member leaves, without the offsets",
        "a warning that names the refusal: records are read again",
        says="COORDINATOR_NOT_AVAILABLE",
        by=By.CLOSING,
    ),
    ("rights refused", "close"): Cell(
        "the others' offsets are committed, the member leaves",
        "a warning that names partition and right",
        says="struck-0.*READ",
    ),
    ("coordinator gone", "close"): Cell(
        "the consumer closes; its session ends by time",
        "a warning that the offsets were not committed",
        says="coordinator",
        by=By.CLOSING,
    ),
    ("coordinator moved", "close"): Cell("everything is committed, the member leaves"),
    ("throttled", "close"): Cell(
        "the consumer closes within its timeout",
        "a warning, if offsets were not committed",
        by=By.CLOSING,
    ),
    # send with key
    ("topic gone", "send with key"): Cell(
        "sends to all other topics",
        "a warning that names the topic; the send's error",
        says="struck",
        raises=kafkaio.KafkaError,
        by=By.DELIVERY,
    ),
    ("leader gone", "send with key"): Cell(
        "keys of other partitions",
        "the send's error names the partition and the reason",
        says="struck-0",
        raises=kafkaio.DeliveryTimeout,
        by=By.DELIVERY,
    ),
    ("leader hangs", "send with key"): Cell(
        "keys of other partitions",
        "the send's error names partition and broker",
        says="struck-0.*broker 1",
        raises=kafkaio.DeliveryTimeout,
        by=By.DELIVERY,
    ),
    ("writes refused", "send with key"): Cell(
        "keys of other partitions",
        "the send's error names the refusal",
        says="struck-0.*NOT_ENOUGH_REPLICAS",
        raises=kafkaio.DeliveryTimeout,
        by=By.DELIVERY,
    ),
    ("rights refused", "send with key"): Cell(
        "sends to all other topics",
        "the send's error names topic and right",
        says="struck-0.*WRITE",
        raises=kafkaio.AuthorizationError,
    ),
    ("coordinator gone", "send with key"): Cell("everything"),
    ("coordinator moved", "send with key"): Cell("everything"),
    ("throttled", "send with key"): Cell(
        "keys of partitions on other brokers; these wait for the quota, at most for "
        "their timeout",
        "the send's error says that the broker throttles",
        says="struck-0.*throttl",
        raises=kafkaio.DeliveryTimeout,
        by=By.DELIVERY,
    ),
    # send without key
    ("topic gone", "send without key"): Cell("sends to all other topics"),
    ("leader gone", "send without key"): Cell("everything, to other partitions"),
    ("leader hangs", "send without key"): Cell(
        "everything, to other partitions, once the leader has accepted nothing for "
        "`partitioner_availability_timeout_ms`; what was in its batch waits for it",
    ),
    ("writes refused", "send without key"): Cell(
        "everything, to other partitions; what was in the refused batch waits for it"
    ),
    ("rights refused", "send without key"): Cell("sends to all other topics"),
    ("coordinator gone", "send without key"): Cell("everything"),
    ("coordinator moved", "send without key"): Cell("everything"),
    ("throttled", "send without key"): Cell(
        "everything, to other partitions, as for a leader that hangs"
    ),
    # transaction
    ("topic gone", "transaction"): Cell(
        "transactions on other topics",
        "the transaction that writes to it is aborted; its error names the partition",
        says="struck",
        raises=kafkaio.KafkaError,
        by=By.DELIVERY,
    ),
    ("leader gone", "transaction"): Cell(
        "transactions on other partitions",
        "the transaction that writes to it is aborted; its error names the partition",
        says="struck-0",
        raises=kafkaio.KafkaError,
        by=By.DELIVERY,
    ),
    ("leader hangs", "transaction"): Cell(
        "transactions on other partitions",
        "the transaction that writes to it is aborted; its error names the partition",
        says="struck-0",
        raises=kafkaio.KafkaError,
        by=By.DELIVERY,
    ),
    ("writes refused", "transaction"): Cell(
        "transactions on other partitions",
        "the transaction that writes to it is aborted; its error names the refusal",
        says="struck-0.*NOT_ENOUGH_REPLICAS",
        raises=kafkaio.KafkaError,
        by=By.DELIVERY,
    ),
    ("rights refused", "transaction"): Cell(
        "transactions on other topics",
        "the transaction that writes to it is aborted; its error names the right",
        says="struck-0.*WRITE",
        raises=kafkaio.AuthorizationError,
    ),
    ("coordinator gone", "transaction"): Cell(
        "producers without a transactional id",
        "the transaction's error names the id",
        says="copier",
        raises=kafkaio.KafkaTimeout,
        by=By.BLOCK,
    ),
    ("coordinator moved", "transaction"): Cell("everything"),
    ("throttled", "transaction"): Cell(
        "transactions on other partitions",
        "the transaction that writes to it is aborted; its error names the partition",
        says="struck-0",
        raises=kafkaio.KafkaError,
        by=By.DELIVERY,
    ),
    # Admin over many items
    ("topic gone", "Admin over many items"): Cell(
        "all other items",
        "the error names the item, and has the results of the others",
        says="struck.*UNKNOWN_TOPIC",
        raises=kafkaio.UnknownTopicOrPartition,
    ),
    ("leader gone", "Admin over many items"): Cell(
        "all other items",
        "the error names the item, and has the results of the others",
        says="struck-0",
        raises=kafkaio.KafkaError,
        by=By.API_TIMEOUT,
    ),
    ("leader hangs", "Admin over many items"): Cell(
        "all other items",
        "the error names item and broker, and has the results of the others",
        says="struck-0.*broker 1",
        raises=kafkaio.KafkaTimeout,
        by=By.API_TIMEOUT,
    ),
    ("writes refused", "Admin over many items"): Cell("everything"),
    ("rights refused", "Admin over many items"): Cell(
        "all other items",
        "the error names item and right, and has the results of the others",
        says="struck-0.*DESCRIBE",
        raises=kafkaio.AuthorizationError,
    ),
    ("coordinator gone", "Admin over many items"): Cell(
        "what concerns no group",
        "the error of each group names the last refusal",
        says="COORDINATOR_NOT_AVAILABLE",
        raises=kafkaio.KafkaError,
        by=By.API_TIMEOUT,
    ),
    ("coordinator moved", "Admin over many items"): Cell("everything"),
    ("throttled", "Admin over many items"): Cell(
        "all other items",
        "the error names item and broker, and has the results of the others",
        says="struck-0.*throttl",
        raises=kafkaio.KafkaTimeout,
        by=By.API_TIMEOUT,
    ),
}


#: The page for users.
PAGE: Final = Path(__file__).parents[2] / "docs/guide/partial-failures.md"


def page() -> str:
    """Return the tables of the page."""
    parts = []
    for act in ACTS:
        parts += [
            f"## {act[0].upper()}{act[1:]}",
            "",
            "| fails | goes on | is told | by when |",
            "|---|---|---|---|",
        ]
        for fault in FAULTS:
            cell = CELLS[fault, act]
            parts.append(
                f"| {fault} | {cell.goes_on} | {cell.told} | {cell.by.words} |"
            )
        parts.append("")
    return "\n".join(parts)


if __name__ == "__main__":
    before = PAGE.read_text().partition("\n## ")[0].rstrip()
    PAGE.write_text(before + "\n\n" + page())
