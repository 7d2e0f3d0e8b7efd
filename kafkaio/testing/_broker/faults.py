"""Faults on demand: rules that say which requests fail, and how.

A fault says what happens, how often and at which rate. `Faults.on` makes a rule of it:
a fault, and the requests that it applies to. Rules are tried in the order in which
they were added, and several can apply to one request::

    broker.faults.on("Produce", disconnect_after_write(times=1))
    broker.faults.on("Fetch", error(ErrorCode.NOT_LEADER_OR_FOLLOWER, rate=0.1), node=2)

`Faults.on_connection` makes a rule for all that a node sends on a connection, from its
first byte on, those of a TLS handshake included.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from kafkaio._public import public
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode

#: Whether a request concerns a partition.
Concerns = Callable[[str, int], bool]


@public("kafkaio.testing")
class Action(Enum):
    """The effects of faults."""

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
    CLOSE_AT = "close at a byte"
    STALL_AT = "stall at a byte"
    INVERT_AT = "invert a byte"
    CORRELATION_ID = "wrong correlation id"
    GARBAGE = "garbage"
    SIGNATURE = "wrong signature"
    NONCE = "foreign nonce"
    ITERATIONS = "iteration count"
    ENDLESS = "endless challenges"


#: Effects at one byte, of an answer or of all that is sent on a connection.
CUTS: Final = frozenset({Action.CLOSE_AT, Action.STALL_AT, Action.INVERT_AT})
#: Effects that only SaslAuthenticate has. They count when they apply: a message has
#: to have the part that they falsify.
LIES: Final = frozenset(
    {Action.SIGNATURE, Action.NONCE, Action.ITERATIONS, Action.ENDLESS}
)


@public("kafkaio.testing")
@dataclass(frozen=True, slots=True)
class Fault:
    """One way to fail.

    Attributes:
        action: what happens.
        times: how often at most; None for no limit.
        rate: the probability that it happens to a request, 0 to 1.
        seed: seed of the random numbers for ``rate``, so that a run can be repeated.
        seconds: the duration, for actions that have one.
        code: the error code, for errors.
        position: the place of a byte, or a count, for actions that have one.
        data: the bytes to send, for actions that have some.
    """

    action: Action
    times: int | None = None
    rate: float = 1.0
    seed: int = 0
    seconds: float = 0.0
    code: ErrorCode = ErrorCode.NONE
    position: int = 0
    data: bytes = b""


@public("kafkaio.testing")
def error(
    code: ErrorCode, times: int | None = None, rate: float = 1.0, seed: int = 0
) -> Fault:
    """Answer with an error code; the request has no effect.

    If the answer has a code for each partition, every partition that the rule covers
    gets the error, and the others are served.

    Args:
        code: the error code.
        times: how often at most; None for no limit.
        rate: the probability that it happens to a request, 0 to 1.
        seed: seed of the random numbers for ``rate``.

    Raises:
        ValueError: Kafka has no such code.
    """
    return Fault(Action.ERROR, times, rate, seed, code=ErrorCode(code))


@public("kafkaio.testing")
def delay(
    seconds: float, times: int | None = None, rate: float = 1.0, seed: int = 0
) -> Fault:
    """Serve the request ``seconds`` later; the next ones on its connection wait.

    ``times``, ``rate`` and ``seed`` are as for `error`.
    """
    return Fault(Action.DELAY, times, rate, seed, seconds=seconds)


@public("kafkaio.testing")
def throttle(
    seconds: float, times: int | None = None, rate: float = 1.0, seed: int = 0
) -> Fault:
    """Answer with a throttle time of ``seconds``, then serve nothing for as long.

    Only this connection is throttled, as in Kafka since KIP-219. ``times``, ``rate``
    and ``seed`` are as for `error`.
    """
    return Fault(Action.THROTTLE, times, rate, seed, seconds=seconds)


@public("kafkaio.testing")
def disconnect_before_write(
    times: int | None = None, rate: float = 1.0, seed: int = 0
) -> Fault:
    """Close the connection; the request has no effect.

    ``times``, ``rate`` and ``seed`` are as for `error`.
    """
    return Fault(Action.DISCONNECT_BEFORE, times, rate, seed)


@public("kafkaio.testing")
def disconnect_after_write(
    times: int | None = None, rate: float = 1.0, seed: int = 0
) -> Fault:
    """Serve the request, then close the connection instead of answering.

    ``times``, ``rate`` and ``seed`` are as for `error`.
    """
    return Fault(Action.DISCONNECT_AFTER, times, rate, seed)


@public("kafkaio.testing")
def drop(times: int | None = None, rate: float = 1.0, seed: int = 0) -> Fault:
    """Serve the request, but answer neither it nor any later one on the connection.

    ``times``, ``rate`` and ``seed`` are as for `error`.
    """
    return Fault(Action.DROP, times, rate, seed)


@public("kafkaio.testing")
def half_frame(times: int | None = None, rate: float = 1.0, seed: int = 0) -> Fault:
    """Serve the request, send half of the answer, then close the connection.

    ``times``, ``rate`` and ``seed`` are as for `error`.
    """
    return Fault(Action.HALF_FRAME, times, rate, seed)


@public("kafkaio.testing")
def corrupt_bytes(times: int | None = None, rate: float = 1.0, seed: int = 0) -> Fault:
    """Serve the request, and invert a byte in the middle of the answer.

    ``times``, ``rate`` and ``seed`` are as for `error`.
    """
    return Fault(Action.CORRUPT, times, rate, seed)


@public("kafkaio.testing")
def duplicate(
    times: int | None = None,
    rate: float = 1.0,
    seed: int = 0,
    *,
    seconds: float = 0.0,
) -> Fault:
    """Serve the request twice, as if it had arrived twice; answer once.

    The second time is ``seconds`` after the first; the connection's other requests are
    served meanwhile, as if the second had come by another connection. ``times``,
    ``rate`` and ``seed`` are as for `error`.
    """
    return Fault(Action.DUPLICATE, times, rate, seed, seconds=seconds)


@public("kafkaio.testing")
def reorder(
    times: int | None = None, rate: float = 1.0, seed: int = 0, *, seconds: float = 0.1
) -> Fault:
    """Serve the connection's next request first, if it arrives within ``seconds``.

    The answers still come in the order of the requests, as Kafka's protocol demands.
    ``times``, ``rate`` and ``seed`` are as for `error`.
    """
    return Fault(Action.REORDER, times, rate, seed, seconds=seconds)


@public("kafkaio.testing")
def metadata_lag(
    seconds: float, times: int | None = None, rate: float = 1.0, seed: int = 0
) -> Fault:
    """Hide a created topic from clients for ``seconds`` after the answer.

    For CreateTopics only. Until then, a request about the topic is answered as if it
    did not exist, as by a broker that is behind with the cluster's metadata. ``times``,
    ``rate`` and ``seed`` are as for `error`.
    """
    return Fault(Action.METADATA_LAG, times, rate, seed, seconds=seconds)


@public("kafkaio.testing")
def close_at(
    position: int, times: int | None = None, rate: float = 1.0, seed: int = 0
) -> Fault:
    """Send the first ``position`` bytes, then close the connection.

    Of the answer, its length included, if the rule is about an API; of all that is sent
    on a connection if it is about those. ``times``, ``rate`` and ``seed`` are as for
    `error`.
    """
    return Fault(Action.CLOSE_AT, times, rate, seed, position=position)


@public("kafkaio.testing")
def stall_at(
    position: int, times: int | None = None, rate: float = 1.0, seed: int = 0
) -> Fault:
    """Send the first ``position`` bytes, as for `close_at`, and then nothing ever.

    The connection stays open. ``times``, ``rate`` and ``seed`` are as for `error`.
    """
    return Fault(Action.STALL_AT, times, rate, seed, position=position)


@public("kafkaio.testing")
def invert_at(
    position: int, times: int | None = None, rate: float = 1.0, seed: int = 0
) -> Fault:
    """Invert the byte at a position, counted as for `close_at`; 0 is the first.

    ``times``, ``rate`` and ``seed`` are as for `error`.
    """
    return Fault(Action.INVERT_AT, times, rate, seed, position=position)


@public("kafkaio.testing")
def wrong_correlation_id(
    times: int | None = None, rate: float = 1.0, seed: int = 0
) -> Fault:
    """Answer with a correlation id that the client did not send.

    ``times``, ``rate`` and ``seed`` are as for `error`.
    """
    return Fault(Action.CORRELATION_ID, times, rate, seed)


@public("kafkaio.testing")
def garbage(
    data: bytes, times: int | None = None, rate: float = 1.0, seed: int = 0
) -> Fault:
    """Serve the request, and send these bytes in place of the answer.

    ``times``, ``rate`` and ``seed`` are as for `error`.
    """
    return Fault(Action.GARBAGE, times, rate, seed, data=data)


@public("kafkaio.testing")
def wrong_signature(
    times: int | None = None, rate: float = 1.0, seed: int = 0
) -> Fault:
    """Accept a client by SCRAM with a signature that proves nothing.

    For SaslAuthenticate only, as a broker does that does not know the password.
    ``times``, ``rate`` and ``seed`` are as for `error`.
    """
    return Fault(Action.SIGNATURE, times, rate, seed)


@public("kafkaio.testing")
def foreign_nonce(times: int | None = None, rate: float = 1.0, seed: int = 0) -> Fault:
    """Answer SCRAM's first message with a nonce that does not begin with the client's.

    For SaslAuthenticate only. ``times``, ``rate`` and ``seed`` are as for `error`.
    """
    return Fault(Action.NONCE, times, rate, seed)


@public("kafkaio.testing")
def iteration_count(
    count: int, times: int | None = None, rate: float = 1.0, seed: int = 0
) -> Fault:
    """Demand that SCRAM's client hashes its password ``count`` times.

    For SaslAuthenticate only. ``times``, ``rate`` and ``seed`` are as for `error`.
    """
    return Fault(Action.ITERATIONS, times, rate, seed, position=count)


@public("kafkaio.testing")
def endless_challenges(
    data: bytes = b'{"status":"invalid_token"}',
    times: int | None = None,
    rate: float = 1.0,
    seed: int = 0,
) -> Fault:
    """Answer with a challenge instead of an end; the mechanism gets no message.

    For SaslAuthenticate only. ``times``, ``rate`` and ``seed`` are as for `error`.
    """
    return Fault(Action.ENDLESS, times, rate, seed, data=data)


@public("kafkaio.testing")
@dataclass(slots=True)
class Rule:
    """A fault, and the requests that it applies to. None matches everything.

    Attributes:
        api: the API; None for all that is sent on a connection.
        fault: what happens.
        node: id of the node that is asked.
        client_id: the client's id.
        topic: the topic of ``partition``.
        partition: number of a partition.
        listener: name of the listener, for connections.
        count: how often it has happened.
    """

    api: ApiKey | None
    fault: Fault
    node: int | None = None
    client_id: str | None = None
    topic: str | None = None
    partition: int | None = None
    listener: str | None = None
    count: int = 0
    _random: random.Random = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.fault.seed)

    @property
    def is_spent(self) -> bool:
        """Whether it has happened as often as its fault allows."""
        return self.fault.times is not None and self.count >= self.fault.times

    def is_for(self, api: int, node: int, client_id: str | None) -> bool:
        """Whether it is about requests of this API, node and client."""
        return (
            api == self.api
            and self.node in {None, node}
            and self.client_id in {None, client_id}
            and not self.is_spent
        )

    def covers(self, topic: str, partition: int) -> bool:
        """Whether it is about this partition."""
        return self.topic in {None, topic} and self.partition in {None, partition}

    def draw(self) -> bool:
        """Decide at random, by the fault's rate, whether it happens this time."""
        # Each rule has a generator of its own: others do not change its sequence.
        return self.fault.rate >= 1 or self._random.random() < self.fault.rate


# Kafka writes PRODUCE as Produce, and ADD_OFFSETS_TO_TXN as AddOffsetsToTxn.
_NAMES: Final = {key.name.replace("_", "").lower(): key for key in ApiKey}


@public("kafkaio.testing")
class Faults:
    """The rules of one broker.

    Args:
        can_refuse: whether the answers of an API have an error code.
        nodes: the ids of the broker's nodes; None if any id is accepted.
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
        """Make requests fail from now on.

        Args:
            api: Kafka's name of the API, such as ``"Produce"``, in any case.
            fault: what happens.
            node: only to requests to this node.
            client_id: only to requests of this client.
            partition: only to requests that concern this topic and partition. If the
                API has an error code for each partition, an error goes to this one
                alone; any other fault applies to the whole request.

        Returns:
            The rule; its ``count`` says how often the fault has happened.

        Raises:
            ValueError: the API or node does not exist, or the API cannot fail in this
                way.
        """
        if isinstance(api, str):
            key = _NAMES.get(api.lower())
            if key is None:
                raise ValueError(f"unknown API {api!r}")
        else:
            key = api
        self._check_node(node)
        # A topic without a partition stands for all its partitions.
        topic, index = partition or (None, None)
        # A rule that can never happen is a mistake in a test, which would pass without
        # it.
        if fault.action is Action.ERROR and not self._can_refuse(key):
            raise ValueError(f"an answer of {key.name} has no error code")
        # Only this handler asks for the delay.
        if fault.action is Action.METADATA_LAG and key is not ApiKey.CREATE_TOPICS:
            raise ValueError(f"metadata_lag is for CreateTopics, not {key.name}")
        if fault.action in LIES and key is not ApiKey.SASL_AUTHENTICATE:
            raise ValueError(
                f"{fault.action.value!r} is for SaslAuthenticate, not {key.name}"
            )
        rule = Rule(key, fault, node, client_id, topic, index)
        self._rules.append(rule)
        return rule

    def on_connection(
        self, fault: Fault, *, node: int | None = None, listener: str | None = None
    ) -> Rule:
        """Cut short, stall or falsify what is sent on connections made from now on.

        Bytes are counted from the first that the node sends, on a TLS listener those of
        the handshake included, as they are on the wire.

        Args:
            fault: `close_at`, `stall_at` or `invert_at`.
            node: only on connections to this node.
            listener: only on those to this listener, such as ``"SASL_SSL"``.

        Raises:
            ValueError: it is another fault, or the node does not exist.
        """
        # A connection has no requests yet when its fault is chosen.
        if fault.action not in CUTS:
            raise ValueError(f"{fault.action.value!r} is for requests")
        self._check_node(node)
        rule = Rule(None, fault, node, listener=listener)
        self._rules.append(rule)
        return rule

    def of_stream(self, node: int, listener: str) -> Fault | None:
        """The fault that applies to all that is sent on a new connection, if any."""
        for rule in self._rules:
            if (
                rule.api is None
                and rule.node in {None, node}
                and rule.listener in {None, listener}
                and not rule.is_spent
                and rule.draw()
            ):
                rule.count += 1
                return rule.fault
        return None

    def _check_node(self, node: int | None) -> None:
        if node is not None and self._nodes is not None and node not in self._nodes:
            there = ", ".join(str(known) for known in sorted(self._nodes))
            raise ValueError(f"node {node!r} does not exist: the nodes are {there}")

    def remove(self, rule: Rule) -> None:
        """Remove a rule. Nothing happens if it is not there."""
        # A test may remove a rule in its clean-up, whatever happened before.
        if rule in self._rules:
            self._rules.remove(rule)

    def clear(self) -> None:
        """Remove every rule."""
        self._rules.clear()

    def matching(
        self, api: int, node: int, client_id: str | None, concerns: Concerns
    ) -> list[Rule]:
        """The rules that apply to a request.

        Their ``count`` grows, except that of errors and of what only a handler can get
        wrong: those are counted when they are put into the answer.
        """
        # The usual case: no fault, and no cost for each request.
        if not self._rules:
            return []
        found = [
            rule
            for rule in self._rules
            if rule.is_for(api, node, client_id)
            and (rule.partition is None or concerns(rule.topic or "", rule.partition))
            and rule.draw()
        ]
        for rule in found:
            # Errors count for the partitions that get them, once for each request.
            if rule.fault.action is not Action.ERROR and rule.fault.action not in LIES:
                rule.count += 1
        return found
