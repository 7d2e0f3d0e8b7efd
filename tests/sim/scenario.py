"""Scenarios and their schedules of faults, both drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Final

from kafkaio.protocol._error_codes import ErrorCode
from tests.sim.network import Latency

__all__ = [
    "COPIES",
    "ZOMBIE_STEPS",
    "Fault",
    "Kind",
    "Scenario",
    "draw_faults",
    "exactly_once",
    "rebalancing",
    "sharing",
]

#: The topic that members copy to.
COPIES: Final = "copies"


class Kind(Enum):
    """The kinds of faults."""

    KILL = "kill node"
    STOP = "stop node"
    PAUSE = "pause node"
    MOVE_LEADER = "move leader of partition"
    MOVE_COORDINATOR = "move coordinator to node"
    CUT = "cut member off node"
    SLOW = "slow down member and node"
    RESET = "reset connections of member"
    ERROR = "error"
    DELAY = "delay"
    DISCONNECT_BEFORE = "disconnect before"
    DISCONNECT_AFTER = "disconnect after"
    HALF_FRAME = "half a frame"
    CRASH = "crash member"
    CANCEL = "cancel member"
    LEAVE = "let member leave"
    JOIN = "let another member join"
    STALL = "stall member"
    SEEK = "seek back in partition, at times,"
    REBALANCE = "force a rebalance"
    EXPEL = "expel member"
    FREEZE = "cut off every node member"
    SUBSCRIBE = "change the subscription of member"
    GROW = "add a partition, and more:"
    DUPLICATE = "serve twice"
    DROP = "never answer"
    MOVE_TRANSACTIONS = "move the coordinator of transactions of member, and more:"
    MARKERS = "delay markers"
    ZOMBIE = "freeze, and replace, member at its next"
    LEVEL = "set transaction.version to"
    AGE = "bring near the last epoch the next life of member"
    TIME_OUT = "abort by time-out the transaction of member"


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    Attributes:
        at: seconds after the start.
        kind: its kind.
        target: the number of the node, the member or the partition, by the kind.
        seconds: its duration, for kinds that have one.
        api: the API it affects, for faults of requests.
        code: the error in the answer.
        times: how many requests it affects.
    """

    at: float
    kind: Kind
    target: int = 0
    seconds: float = 0.0
    api: str = ""
    code: ErrorCode = ErrorCode.NONE
    times: int = 0

    def __str__(self) -> str:
        words = [f"{self.at:8.1f} s  {self.kind.value}"]
        if self.api:
            error = f" {self.code.name}" if self.code else ""
            words.append(f"of {self.times} {self.api}{error}")
        else:
            words.append(f"{self.target}")
        if self.seconds:
            words.append(f"for {self.seconds:.1f}")
        return " ".join(words)


_RELOADING: Final = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
)
_MEMBER: Final = (
    *_RELOADING,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.REBALANCE_IN_PROGRESS,
)
#: The errors that each API may answer with, and that a client has to handle.
_ERRORS: Final[Mapping[str, tuple[ErrorCode, ...]]] = {
    "Produce": (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
    ),
    "Fetch": (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    ),
    "OffsetCommit": (*_RELOADING, ErrorCode.REBALANCE_IN_PROGRESS),
    "OffsetFetch": _RELOADING,
    "FindCoordinator": (ErrorCode.COORDINATOR_NOT_AVAILABLE,),
    "ListOffsets": (ErrorCode.NOT_LEADER_OR_FOLLOWER,),
    "InitProducerId": (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,),
}
_CLASSIC: Final[Mapping[str, tuple[ErrorCode, ...]]] = {
    "JoinGroup": (*_RELOADING, ErrorCode.UNKNOWN_MEMBER_ID),
    "SyncGroup": (*_RELOADING, ErrorCode.REBALANCE_IN_PROGRESS),
    "Heartbeat": _MEMBER,
}
_OF_PROTOCOL: Final[Mapping[str, Mapping[str, tuple[ErrorCode, ...]]]] = {
    "classic": _CLASSIC,
    "eager": _CLASSIC,
    "consumer": {
        "ConsumerGroupHeartbeat": (
            *_RELOADING,
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.FENCED_MEMBER_EPOCH,
        ),
    },
}
_REQUESTS: Final = (
    "Produce",
    "Fetch",
    "Metadata",
    "ApiVersions",
    "OffsetCommit",
    "OffsetFetch",
    "FindCoordinator",
    "ListOffsets",
    "InitProducerId",
)

#: The default weights by which kinds are drawn.
_WEIGHTS: Final[Mapping[Kind, int]] = {
    Kind.KILL: 3,
    Kind.STOP: 2,
    Kind.PAUSE: 2,
    Kind.MOVE_LEADER: 6,
    Kind.MOVE_COORDINATOR: 4,
    Kind.CUT: 4,
    Kind.SLOW: 5,
    Kind.RESET: 3,
    Kind.ERROR: 10,
    Kind.DELAY: 8,
    Kind.DISCONNECT_BEFORE: 4,
    Kind.DISCONNECT_AFTER: 5,
    Kind.HALF_FRAME: 3,
    Kind.CRASH: 4,
    Kind.CANCEL: 3,
    Kind.LEAVE: 3,
    Kind.JOIN: 3,
    Kind.STALL: 5,
    Kind.SEEK: 8,
    Kind.REBALANCE: 3,
    Kind.EXPEL: 2,
}
#: Kinds that affect the group alone: records can be read all the time.
_OF_GROUP: Final[Mapping[Kind, int]] = {
    Kind.MOVE_COORDINATOR: 4,
    Kind.CRASH: 4,
    Kind.CANCEL: 3,
    Kind.LEAVE: 6,
    Kind.JOIN: 8,
    Kind.REBALANCE: 5,
    Kind.EXPEL: 2,
    Kind.SUBSCRIBE: 3,
    Kind.GROW: 2,
}
#: The same, and all that affects nodes, connections and requests.
_OF_ALL: Final[Mapping[Kind, int]] = {
    **_WEIGHTS,
    **{kind: 2 * weight for kind, weight in _OF_GROUP.items()},
    Kind.FREEZE: 5,
}
_OF_REQUESTS: Final = {
    Kind.ERROR,
    Kind.DELAY,
    Kind.DISCONNECT_BEFORE,
    Kind.DISCONNECT_AFTER,
    Kind.HALF_FRAME,
    Kind.DUPLICATE,
    Kind.DROP,
}
#: The shortest and the longest duration of each kind, in seconds.
_SECONDS: Final[Mapping[Kind, tuple[float, float]]] = {
    Kind.KILL: (1.0, 40.0),
    Kind.STOP: (1.0, 40.0),
    Kind.PAUSE: (1.0, 50.0),
    Kind.CUT: (1.0, 60.0),
    Kind.SLOW: (10.0, 120.0),
    Kind.DELAY: (0.05, 20.0),
    Kind.CRASH: (0.1, 40.0),
    Kind.CANCEL: (0.1, 20.0),
    Kind.LEAVE: (0.1, 60.0),
    Kind.JOIN: (20.0, 200.0),
    Kind.STALL: (1.0, 90.0),
    Kind.SEEK: (1.0, 60.0),
    Kind.FREEZE: (1.0, 60.0),
    Kind.SUBSCRIBE: (1.0, 60.0),
    Kind.MARKERS: (2.0, 40.0),
    Kind.ZOMBIE: (0.5, 60.0),
}
#: The same for what transactions need besides.
_OF_TRANSACTIONS: Final[Mapping[str, tuple[ErrorCode, ...]]] = {
    "InitProducerId": (*_RELOADING, ErrorCode.CONCURRENT_TRANSACTIONS),
    "AddPartitionsToTxn": (
        *_RELOADING,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.TRANSACTION_ABORTABLE,
    ),
    "AddOffsetsToTxn": (
        *_RELOADING,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.TRANSACTION_ABORTABLE,
    ),
    "TxnOffsetCommit": (
        *_RELOADING,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ),
    "EndTxn": (*_RELOADING, ErrorCode.CONCURRENT_TRANSACTIONS),
}
#: At which request a process is frozen: before it leaves, or while it is answered.
ZOMBIE_STEPS: Final = (
    "InitProducerId",
    "AddPartitionsToTxn",
    "AddOffsetsToTxn",
    "Produce",
    "TxnOffsetCommit",
    "EndTxn",
)
#: What goes wrong for members that copy.
_OF_COPIES: Final[Mapping[Kind, int]] = {
    **{kind: weight for kind, weight in _WEIGHTS.items() if kind is not Kind.SEEK},
    Kind.JOIN: 6,
    Kind.LEAVE: 6,
    Kind.FREEZE: 3,
    Kind.DUPLICATE: 3,
    Kind.DROP: 4,
    Kind.MOVE_TRANSACTIONS: 6,
    Kind.MARKERS: 6,
    Kind.ZOMBIE: 14,
    Kind.LEVEL: 2,
    Kind.AGE: 3,
    Kind.TIME_OUT: 3,
    Kind.ERROR: 16,
    Kind.DISCONNECT_AFTER: 8,
}
#: The same for members of a share group.
_OF_SHARES: Final[Mapping[str, tuple[ErrorCode, ...]]] = {
    "ShareFetch": (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ),
    "ShareAcknowledge": (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.INVALID_RECORD_STATE,
    ),
    "ShareGroupHeartbeat": (
        *_RELOADING,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
    ),
    "FindCoordinator": (ErrorCode.COORDINATOR_NOT_AVAILABLE,),
}
#: What goes wrong for them.
_SHARE_FAULTS: Final[Mapping[Kind, int]] = {
    Kind.KILL: 3,
    Kind.STOP: 2,
    Kind.PAUSE: 3,
    Kind.MOVE_LEADER: 6,
    Kind.MOVE_COORDINATOR: 3,
    Kind.CUT: 4,
    Kind.SLOW: 4,
    Kind.RESET: 6,
    Kind.ERROR: 12,
    Kind.DELAY: 8,
    Kind.DISCONNECT_BEFORE: 5,
    Kind.DISCONNECT_AFTER: 8,
    Kind.HALF_FRAME: 3,
    Kind.DROP: 4,
    Kind.CRASH: 5,
    Kind.CANCEL: 6,
    Kind.LEAVE: 5,
    Kind.JOIN: 5,
    Kind.STALL: 10,
    Kind.FREEZE: 3,
    Kind.EXPEL: 4,
}
#: Every way to read; see `tests.sim.styles`.
_STYLES: Final = ("iterate", "poll", "batches", "delay", "hold", "wait", "lanes", "run")
_PROTOCOLS: Final = ("consumer", "classic", "eager")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One run: a cluster, a producer and a group, and a schedule of faults.

    Attributes:
        seed: everything random is drawn from it.
        part: the number of this run, of many with one seed.
        seconds: simulated time until all faults end and everything has to settle.
        members: consumers in the group from the start.
        nodes: nodes of the cluster.
        partitions: partitions of the topic.
        keys: distinct keys of the records.
        period: seconds between two records.
        fault_every: seconds from one fault to the next, on average; 0 for none.
        group_protocol: ``classic``, ``eager`` (the same without cooperation) or
            ``consumer`` (KIP-848).
        styles: the ways to read; each consumer draws one.
        static: the share of members that are static (KIP-345).
        weights: the weights by which kinds of faults are drawn.
        latency: how long bytes are in flight.
        consumer_options: options of `kafkaio.Consumer` that override the simulation's.
        producer_options: the same for `kafkaio.Producer`.
    """

    seed: int = 0
    part: int = 0
    seconds: float = 3600.0
    members: int = 3
    nodes: int = 3
    partitions: int = 6
    keys: int = 16
    period: float = 1.0
    fault_every: float = 60.0
    group_protocol: str = "classic"
    styles: tuple[str, ...] = _STYLES[:3]
    static: float = 0.0
    weights: Mapping[Kind, int] = field(default_factory=lambda: _WEIGHTS)
    latency: Latency = field(default_factory=partial(Latency, stragglers=0.03))
    consumer_options: Mapping[str, object] = field(default_factory=dict)
    producer_options: Mapping[str, object] = field(default_factory=dict)
    copies: bool = False
    shares: bool = False
    topics: Mapping[str, int] = field(default_factory=dict)
    features: Mapping[str, int] | None = None

    def rng(self, purpose: str) -> random.Random:
        """Return random numbers for one purpose, independent of all others."""
        # A string: its seed is the same in every process.
        return random.Random(f"{self.seed}/{self.part}/{purpose}")


def rebalancing(seed: int, group_protocol: str | None = None) -> Scenario:
    """Return three minutes of constant rebalances, with every way to read.

    Members join, leave, crash, are cancelled, stall, change their subscription and hold
    partitions whose revocation is requested. With even seeds nothing else goes wrong.

    Args:
        seed: everything random is drawn from it.
        group_protocol: that of `Scenario`; None draws one.
    """
    return Scenario(
        seed=seed,
        seconds=180.0,
        period=0.5,
        fault_every=9.0,
        group_protocol=group_protocol or _PROTOCOLS[seed // 2 % len(_PROTOCOLS)],
        styles=_STYLES,
        static=0.2,
        weights=dict(_OF_ALL if seed % 2 else _OF_GROUP),
        consumer_options={
            "fetch_max_wait_ms": 5_000,
            "max_poll_interval_ms": 40_000,
            "auto_commit_interval_ms": 5_000,
            "metadata_max_age_ms": 30_000,
        },
        producer_options={"metadata_max_age_ms": 30_000},
    )


def exactly_once(seed: int, group_protocol: str | None = None) -> Scenario:
    """Return five minutes of members that copy a topic in transactions.

    Seeds take turns with the group protocols, the transaction versions, and who adds
    partitions to a transaction.

    Args:
        seed: everything random is drawn from it.
        group_protocol: that of `Scenario`; None draws one.
    """
    return Scenario(
        seed=seed,
        seconds=300.0,
        partitions=4,
        keys=12,
        period=0.5,
        fault_every=6.0,
        group_protocol=group_protocol or _PROTOCOLS[seed % len(_PROTOCOLS)],
        styles=("exactly once", "run", "by hand"),
        weights=dict(_OF_COPIES),
        consumer_options={
            "fetch_max_wait_ms": 5_000,
            "max_poll_interval_ms": 40_000,
            "metadata_max_age_ms": 30_000,
        },
        producer_options={
            "metadata_max_age_ms": 30_000,
            "transaction_adds_explicitly": seed // 6 % 2 == 1,
        },
        copies=True,
        topics={COPIES: 4},
        features={"transaction.version": (2, 1)[seed // 3 % 2]},
    )


def sharing(seed: int) -> Scenario:
    """Return five minutes of a share group, with every way to read.

    With even seeds nothing happens to the cluster and the network: then no record may
    be in two hands.

    Args:
        seed: everything random is drawn from it.
    """
    calm = {Kind.CRASH, Kind.CANCEL, Kind.LEAVE, Kind.JOIN, Kind.STALL, Kind.EXPEL}
    weights = {
        kind: weight
        for kind, weight in _SHARE_FAULTS.items()
        if seed % 2 or kind in calm
    }
    return Scenario(
        seed=seed,
        seconds=300.0,
        partitions=4,
        keys=12,
        period=0.2,
        fault_every=6.0,
        styles=("iterate", "implicit", "batches", "poll", "run"),
        weights=weights,
        producer_options={"metadata_max_age_ms": 30_000},
        shares=True,
    )


def draw_faults(scenario: Scenario) -> tuple[Fault, ...]:
    """Draw the schedule of a scenario, in order of time.

    Every fault ends by itself, so any part of a schedule is a schedule.
    """
    if not scenario.fault_every:
        return ()
    rng = scenario.rng("faults")
    count = round(scenario.seconds / scenario.fault_every)
    moments = sorted(rng.uniform(5.0, scenario.seconds) for _ in range(count))
    weights = scenario.weights
    kinds = rng.choices(list(weights), list(weights.values()), k=count)
    return tuple(
        _draw(scenario, round(at, 3), kind, rng)
        for at, kind in zip(moments, kinds, strict=True)
    )


def _draw(scenario: Scenario, at: float, kind: Kind, rng: random.Random) -> Fault:
    least, most = _SECONDS.get(kind, (0.0, 0.0))
    # Log-uniform: short faults are as likely as long ones.
    seconds = round(least * (most / least) ** rng.random(), 3) if least else 0.0
    if kind is Kind.ZOMBIE:
        member = rng.randrange(scenario.members)
        step = rng.choice(ZOMBIE_STEPS)
        return Fault(at, kind, member, seconds, api=step, times=rng.randint(1, 4))
    if kind not in _OF_REQUESTS:
        return Fault(at, kind, rng.randrange(_targets(scenario, kind)), seconds)
    errors = {**_ERRORS, **_OF_PROTOCOL[scenario.group_protocol]}
    if scenario.copies:
        del errors["OffsetCommit"]
        errors |= _OF_TRANSACTIONS
    if scenario.shares:
        errors = {**_OF_SHARES, "Produce": _ERRORS["Produce"]}
    code = ErrorCode.NONE
    if kind is Kind.ERROR:
        apis = sorted(errors)
        if scenario.copies:
            apis = rng.choice([apis, sorted(_OF_TRANSACTIONS)])
        api = rng.choice(apis)
        code = rng.choice(errors[api])
    elif kind is Kind.DUPLICATE:
        api = "EndTxn"
    elif scenario.copies:
        # Half of the time it is one of the requests of transactions.
        of_copies = sorted(_OF_TRANSACTIONS)
        api = rng.choice(rng.choice([[*_REQUESTS, *sorted(errors)], of_copies]))
    elif scenario.shares:
        api = rng.choice(["Metadata", "ApiVersions", *sorted(errors)])
    else:
        of_group = sorted(_OF_PROTOCOL[scenario.group_protocol])
        api = rng.choice([*_REQUESTS, *of_group])
    times = rng.randint(1, 5)
    return Fault(at, kind, 0, seconds, api=api, code=code, times=times)


def _targets(scenario: Scenario, kind: Kind) -> int:
    if kind in {Kind.KILL, Kind.STOP, Kind.PAUSE, Kind.MOVE_COORDINATOR}:
        return scenario.nodes
    if kind is Kind.GROW:
        return 2
    if kind is Kind.LEVEL:
        return 3
    if kind is Kind.MOVE_TRANSACTIONS:
        return scenario.members * scenario.nodes
    if kind in {Kind.MOVE_LEADER, Kind.SEEK}:
        return scenario.partitions * scenario.nodes
    if kind in {Kind.CUT, Kind.SLOW}:
        return (scenario.members + 1) * scenario.nodes
    return scenario.members
