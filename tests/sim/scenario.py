"""What is simulated, and what goes wrong in it: all of it drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Final

from kafkaio.protocol.error_codes import ErrorCode
from tests.sim.network import Weather

__all__ = ["Fault", "Kind", "Scenario", "draw_faults", "rebalancing"]


class Kind(Enum):
    """What can go wrong."""

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


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong.

    Attributes:
        at: seconds after the beginning.
        kind: what.
        target: number of the node, the member or the partition, as its kind has it.
        seconds: how long, for what has an end.
        api: the API it befalls, for faults of requests.
        code: the error answered.
        times: how many requests it befalls.
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
#: The errors that each API may answer with and a client has to live with.
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

#: How often each kind is drawn, in relation to the others, unless a scenario says so.
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
#: What befalls the group alone: records could go on all the while.
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
#: The same beside all that befalls nodes, connections and requests.
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
}
#: The least and the most seconds of what has an end.
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
}
#: Every way to read; see `tests.sim.styles`.
_STYLES: Final = ("iterate", "poll", "batches", "delay", "hold", "wait", "lanes", "run")
_PROTOCOLS: Final = ("consumer", "classic", "eager")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One run: a cluster, a producer and a group, and a schedule of faults.

    Attributes:
        seed: for everything that is drawn.
        part: one seed is good for many runs; this is the number of one.
        seconds: simulated time, before all faults end and everything has to settle.
        members: consumers in the group from the start.
        nodes: nodes of the cluster.
        partitions: partitions of the topic.
        keys: distinct keys of the records.
        period: seconds between two records.
        fault_every: seconds from one fault to the next, on average; 0 for none.
        group_protocol: ``classic``, ``eager`` (the same without cooperation) or
            ``consumer`` (KIP-848).
        styles: the ways to read that members choose from with every life.
        static: the share of members that are static (KIP-345).
        weights: how often each kind of fault is drawn, in relation to the others.
        weather: how long bytes are under way.
        consumer_options: options of `kafkaio.Consumer` other than the simulation's.
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
    weather: Weather = field(default_factory=partial(Weather, stragglers=0.03))
    consumer_options: Mapping[str, object] = field(default_factory=dict)
    producer_options: Mapping[str, object] = field(default_factory=dict)

    def dice(self, purpose: str) -> random.Random:
        """Dice for one purpose: what one throws does not disturb the others."""
        # A text, whose seed is the same in every process.
        return random.Random(f"{self.seed}/{self.part}/{purpose}")


def rebalancing(seed: int, group_protocol: str | None = None) -> Scenario:
    """Three minutes of a group that hardly ever rests, read in every way there is.

    Members join, leave, crash, are cancelled, stall, change what they want and hold on
    to what is asked back. With every other seed nothing else goes wrong.

    Args:
        seed: for everything that is drawn.
        group_protocol: as `Scenario` has it; None draws one.
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


def draw_faults(scenario: Scenario) -> tuple[Fault, ...]:
    """Draw the schedule of a scenario, in the order of time.

    Every fault is whole by itself: a schedule that leaves some out is one, too.
    """
    if not scenario.fault_every:
        return ()
    dice = scenario.dice("faults")
    count = round(scenario.seconds / scenario.fault_every)
    moments = sorted(dice.uniform(5.0, scenario.seconds) for _ in range(count))
    weights = scenario.weights
    kinds = dice.choices(list(weights), list(weights.values()), k=count)
    return tuple(
        _draw(scenario, round(at, 3), kind, dice)
        for at, kind in zip(moments, kinds, strict=True)
    )


def _draw(scenario: Scenario, at: float, kind: Kind, dice: random.Random) -> Fault:
    least, most = _SECONDS.get(kind, (0.0, 0.0))
    # Short ones are as likely as long ones.
    seconds = round(least * (most / least) ** dice.random(), 3) if least else 0.0
    if kind not in _OF_REQUESTS:
        return Fault(at, kind, dice.randrange(_targets(scenario, kind)), seconds)
    errors = {**_ERRORS, **_OF_PROTOCOL[scenario.group_protocol]}
    code = ErrorCode.NONE
    if kind is Kind.ERROR:
        api = dice.choice(sorted(errors))
        code = dice.choice(errors[api])
    else:
        of_group = sorted(_OF_PROTOCOL[scenario.group_protocol])
        api = dice.choice([*_REQUESTS, *of_group])
    times = dice.randint(1, 5)
    return Fault(at, kind, 0, seconds, api=api, code=code, times=times)


def _targets(scenario: Scenario, kind: Kind) -> int:
    if kind in {Kind.KILL, Kind.STOP, Kind.PAUSE, Kind.MOVE_COORDINATOR}:
        return scenario.nodes
    if kind is Kind.GROW:
        return 2
    if kind in {Kind.MOVE_LEADER, Kind.SEEK}:
        return scenario.partitions * scenario.nodes
    if kind in {Kind.CUT, Kind.SLOW}:
        return (scenario.members + 1) * scenario.nodes
    return scenario.members
