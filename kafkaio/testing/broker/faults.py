"""What goes wrong on demand: rules that say which requests fail, and how.

::

    broker.faults.on("Produce", disconnect_after_write(times=1))
    broker.faults.on("Fetch", error(ErrorCode.NOT_LEADER_OR_FOLLOWER, rate=0.1), node=2)
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from kafkaio.protocol.api_keys import ApiKey
from kafkaio.protocol.error_codes import ErrorCode

__all__ = [
    "Action",
    "Fault",
    "Faults",
    "Rule",
    "corrupt_bytes",
    "delay",
    "disconnect_after_write",
    "disconnect_before_write",
    "drop",
    "duplicate",
    "error",
    "half_frame",
    "metadata_lag",
    "reorder",
    "throttle",
]

#: Whether a request is about a partition.
Touches = Callable[[str, int], bool]


class Action(Enum):
    """What a fault does."""

    ERROR = "error"
    DELAY = "delay"
    THROTTLE = "throttle"
    DISCONNECT_BEFORE = "disconnect before"
    DISCONNECT_AFTER = "disconnect after"
    DROP = "drop"
    HALF_FRAME = "half a frame"
    CORRUPT = "corrupt bytes"
    DUPLICATE = "duplicate"
    REORDER = "reorder"
    METADATA_LAG = "metadata lag"


@dataclass(frozen=True, slots=True)
class Fault:
    """One way to fail.

    Attributes:
        action: what happens.
        times: how often; None for ever.
        rate: the share of requests that it happens to, 0 to 1.
        seed: for the dice, so that a run can be repeated.
        seconds: how long, for what takes or has time.
        code: what is answered, for an error.
    """

    action: Action
    times: int | None = None
    rate: float = 1.0
    seed: int = 0
    seconds: float = 0.0
    code: ErrorCode = ErrorCode.NONE


def error(
    code: ErrorCode, times: int | None = None, rate: float = 1.0, seed: int = 0
) -> Fault:
    """Answer with an error; the request has no effect.

    Where an answer has a code for each partition, every partition that the rule
    covers gets it, and the others are served.

    Raises:
        ValueError: there is no such code.
    """
    return Fault(Action.ERROR, times, rate, seed, code=ErrorCode(code))


def delay(
    seconds: float, times: int | None = None, rate: float = 1.0, seed: int = 0
) -> Fault:
    """Serve the request that much later; those behind it wait."""
    return Fault(Action.DELAY, times, rate, seed, seconds=seconds)


def throttle(
    seconds: float, times: int | None = None, rate: float = 1.0, seed: int = 0
) -> Fault:
    """Answer at once with a throttle time, then read nothing for as long (KIP-219)."""
    return Fault(Action.THROTTLE, times, rate, seed, seconds=seconds)


def disconnect_before_write(
    times: int | None = None, rate: float = 1.0, seed: int = 0
) -> Fault:
    """Close the connection; the request has no effect."""
    return Fault(Action.DISCONNECT_BEFORE, times, rate, seed)


def disconnect_after_write(
    times: int | None = None, rate: float = 1.0, seed: int = 0
) -> Fault:
    """Close the connection where the answer would be: the effect is there."""
    return Fault(Action.DISCONNECT_AFTER, times, rate, seed)


def drop(times: int | None = None, rate: float = 1.0, seed: int = 0) -> Fault:
    """Serve the request, and never answer it nor any behind it."""
    return Fault(Action.DROP, times, rate, seed)


def half_frame(times: int | None = None, rate: float = 1.0, seed: int = 0) -> Fault:
    """Serve the request, send half of the answer, then close the connection."""
    return Fault(Action.HALF_FRAME, times, rate, seed)


def corrupt_bytes(times: int | None = None, rate: float = 1.0, seed: int = 0) -> Fault:
    """Serve the request, and flip the bits of a byte in the middle of the answer."""
    return Fault(Action.CORRUPT, times, rate, seed)


def duplicate(times: int | None = None, rate: float = 1.0, seed: int = 0) -> Fault:
    """Serve the request twice, as if a network had doubled it; send one answer."""
    return Fault(Action.DUPLICATE, times, rate, seed)


def reorder(
    times: int | None = None, rate: float = 1.0, seed: int = 0, *, seconds: float = 0.1
) -> Fault:
    """Serve the request behind first, if the connection has one within ``seconds``.

    The answers still come in the order of the requests, as every client demands.
    """
    return Fault(Action.REORDER, times, rate, seed, seconds=seconds)


def metadata_lag(
    seconds: float, times: int | None = None, rate: float = 1.0, seed: int = 0
) -> Fault:
    """Let the nodes learn of a created topic only that long after the answer.

    Only for CreateTopics. Until then clients that ask for the topic are answered as if
    it did not exist, as by a broker that is behind with the cluster's metadata.
    """
    return Fault(Action.METADATA_LAG, times, rate, seed, seconds=seconds)


@dataclass(slots=True)
class Rule:
    """A fault, and which requests it befalls. None matches everything.

    Attributes:
        api: the API.
        fault: what happens.
        node: id of the node asked.
        client_id: the client's id.
        topic: a topic, with ``partition``.
        partition: number of a partition of it.
        count: how often it has happened.
    """

    api: ApiKey
    fault: Fault
    node: int | None = None
    client_id: str | None = None
    topic: str | None = None
    partition: int | None = None
    count: int = 0
    _dice: random.Random = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._dice = random.Random(self.fault.seed)

    @property
    def is_spent(self) -> bool:
        """Whether it has happened as often as it should."""
        return self.fault.times is not None and self.count >= self.fault.times

    def is_for(self, api: int, node: int, client_id: str | None) -> bool:
        """Whether a request is of the kind that the rule is about."""
        return (
            api == self.api
            and self.node in {None, node}
            and self.client_id in {None, client_id}
            and not self.is_spent
        )

    def covers(self, topic: str, partition: int) -> bool:
        """Whether a partition is."""
        return self.topic in {None, topic} and self.partition in {None, partition}

    def strikes(self) -> bool:
        """Throw the dice."""
        return self.fault.rate >= 1 or self._dice.random() < self.fault.rate


_NAMES: Final = {key.name.replace("_", "").lower(): key for key in ApiKey}


class Faults:
    """The rules of one broker.

    Args:
        can_refuse: whether an API has answers that a fault can put an error in.
        nodes: the ids of the nodes there are; None for any.
    """

    def __init__(
        self,
        can_refuse: Callable[[ApiKey], bool] = lambda _: True,
        nodes: Collection[int] | None = None,
    ) -> None:
        self._rules: list[Rule] = []
        self._can_refuse = can_refuse
        self._nodes = nodes

    def on(
        self,
        api: str | ApiKey,
        fault: Fault,
        *,
        node: int | None = None,
        client_id: str | None = None,
        partition: tuple[str, int] | None = None,
    ) -> Rule:
        """Let requests fail from now on.

        Args:
            api: Kafka's name of the API, such as ``"Produce"``.
            fault: what happens.
            node: only on this node.
            client_id: only to this client.
            partition: only to this topic and partition. An error is told of it alone,
                where the API tells errors of partitions; all else befalls the whole
                request that is about it.

        Returns:
            The rule, whose ``count`` tells how often it has struck.

        Raises:
            ValueError: if there is no such API or node, or the API cannot fail in this
                way.
        """
        if isinstance(api, str):
            key = _NAMES.get(api.lower())
            if key is None:
                raise ValueError(f"there is no API {api!r}")
        else:
            key = api
        if node is not None and self._nodes is not None and node not in self._nodes:
            there = ", ".join(str(known) for known in sorted(self._nodes))
            raise ValueError(f"there is no node {node!r}: the nodes are {there}")
        topic, index = partition or (None, None)
        if fault.action is Action.ERROR and not self._can_refuse(key):
            raise ValueError(f"{key.name} has no room for an error of its own")
        if fault.action is Action.METADATA_LAG and key is not ApiKey.CREATE_TOPICS:
            raise ValueError(f"metadata_lag is for CreateTopics, not {key.name}")
        rule = Rule(key, fault, node, client_id, topic, index)
        self._rules.append(rule)
        return rule

    def remove(self, rule: Rule) -> None:
        """Let a rule strike no more. Nothing happens if it is gone already."""
        if rule in self._rules:
            self._rules.remove(rule)

    def clear(self) -> None:
        """Remove every rule."""
        self._rules.clear()

    def striking(
        self, api: int, node: int, client_id: str | None, touches: Touches
    ) -> list[Rule]:
        """The rules that befall a request.

        They count as struck, but for errors: whether those strike is known when the
        answer is made.
        """
        if not self._rules:
            return []
        found = [
            rule
            for rule in self._rules
            if rule.is_for(api, node, client_id)
            and (rule.partition is None or touches(rule.topic or "", rule.partition))
            and rule.strikes()
        ]
        for rule in found:
            if rule.fault.action is not Action.ERROR:
                rule.count += 1
        return found
