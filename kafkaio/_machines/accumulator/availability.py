"""Availability: which partitions cannot be written at the moment.

Earlier attempts show it. A partition is *stalled* if it has no leader, if a batch of it
failed and is to be sent again, if requests to its leader get lost, or if its leader has
accepted nothing for a while. This ends with the first answer, or when nothing is left
that could be answered. So a partition that records avoid always has a batch that will
show when it can be written again.

Two rules depend on it. Records without a key leave a stalled partition (KIP-794), and
stalled partitions together take at most a share of the buffer
(`kafkaio._machines.accumulator.share`).
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import TypeAlias

from kafkaio._machines.accumulator.limits import Limits
from kafkaio._machines.accumulator.queue import Backlog, PartitionQueue, TopicQueues
from kafkaio._records._impl import OpenBatches
from kafkaio.types import TopicPartition

_FOREVER = float("inf")
_NONE: frozenset[int] = frozenset()
#: Seconds without an answer after which a broker counts as stalled for the share of the
#: buffer, unless ``availability_timeout`` is less. Slow answers seldom take so long; a
#: broker that is slower only gets no more memory than the share.
_SILENCE = 1.0
#: Seconds until larger requests are tried again; size may not have been the cause.
_LIMITED_FOR = 600.0
#: Bytes in flight, in relation to those that a round trip carries. Twice as many keep a
#: connection busy. A broker takes the requests of a connection one at a time, and each
#: costs it some time whatever its size: so more in flight carry more.
_GAIN = 4.0
#: Bytes that a connection is taken to carry in a second until that is measured: a
#: gigabit. Where it carries less, the first requests wait for each other, once.
_ASSUMED = 125e6
#: The weight of a later measurement that is less than the ones before.
_FADING = 1 / 16

#: A request in flight: when it was sent, its bytes, and the bytes in flight then, its
#: own included.
Flight: TypeAlias = tuple[float, int, int]


class NodeState:
    """One broker: its requests in flight, how large they are, and what goes first.

    Requests grow beyond ``max_request_size`` where more bytes must be in flight to keep
    the connection busy, which is so with a distant broker. Answers come in order, so
    the bytes in flight when a request is sent, its own included, are answered within
    the time until its answer. Of that time only a part is the round trip; the rest is
    spent in queues: the bytes that one round trip carries are so many less. They are
    what has to be in flight, and more would only make the queues longer.

    While no request waits for others, that is a lower bound. So the first requests are
    as large as the round trip demands at a usual rate, until one does.

    Args:
        limits: the sizes.

    Attributes:
        in_flight: requests sent and not answered.
        is_met: whether `met` was called.
        first: counts up; modulo their number, the partition that is first next.
        largest: bytes of the largest request that is worth a try; infinity unless
            connections broke under larger ones.
        request_size: bytes of the largest request that is useful.
        latest: the request that was sent last.
        next_at: when a request that is not full should follow it, while it is in
            flight.
        ready_since: since when a batch has been ready and not sent; infinity for none.
    """

    __slots__ = (
        "_assumed",
        "_bytes_in_flight",
        "_carried",
        "_limited_for",
        "_limited_until",
        "_limits",
        "_proven",
        "_quiet_since",
        "_round_trip",
        "first",
        "in_flight",
        "is_met",
        "largest",
        "latest",
        "next_at",
        "ready_since",
        "request_size",
    )

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.request_size: int = limits.max_request_size
        self.latest: Flight = (0.0, 0, 0)
        self.next_at: float = 0.0
        self._bytes_in_flight = 0
        # Seconds of a round trip, without time in queues.
        self._round_trip: float = _FOREVER
        # Bytes that one round trip carries.
        self._carried: float = 0.0
        # The same by assumption; 0 once it is measured.
        self._assumed: float = 0.0
        self.is_met: bool = False
        # Bytes of the largest request that was answered.
        self._proven = limits.max_request_size
        self.largest: float = _FOREVER
        self._limited_until: float = 0.0
        self._limited_for = _LIMITED_FOR
        self.in_flight: int = 0
        self.first: int = 0
        self.ready_since: float = _FOREVER
        # Since when requests in flight have had no answer; None if none is in flight.
        self._quiet_since: float | None = None

    def met(self, round_trip: float) -> None:
        """Note the seconds of the first exchange on a connection to the broker.

        An answer to records takes longer by what the broker does with them, and the
        first one longest: files are opened. It would make a broker look distant.
        """
        self.is_met = True
        self._assumed = round_trip * _ASSUMED
        self._resize()

    def sent(self, now: float, partitions: int, size: int) -> None:
        """Note that a request of ``size`` bytes was sent, with so many batches."""
        if not self.in_flight:
            self._quiet_since = now
        self.in_flight += 1
        self.first += partitions
        self.ready_since = _FOREVER
        self._bytes_in_flight += size
        self.latest = (now, size, self._bytes_in_flight)
        # To a distant broker, requests are few in a round trip. Sent with each batch
        # that is full, all of them would be on their way at its begin, and small; what
        # comes later would wait for the first answer. So they are spread over it.
        if self.request_size > self._limits.max_request_size:
            self.next_at = now + self._round_trip / self._limits.max_in_flight

    def ended(self, now: float, flight: Flight) -> None:
        """Note that a request was lost, or has no answer."""
        self.in_flight -= 1
        self._quiet_since = now if self.in_flight else None
        self._bytes_in_flight -= flight[1]

    def answered(self, now: float, flight: Flight) -> None:
        """Note that a request was answered."""
        self.in_flight -= 1
        self._quiet_since = now if self.in_flight else None
        sent_at, size, window = flight
        self._bytes_in_flight -= size
        spent = now - sent_at
        if spent < self._round_trip:
            self._round_trip = spent
        elif window == size:
            # It met no other request: the way may have become longer.
            self._round_trip += (spent - self._round_trip) * _FADING
        if window > self._limits.max_request_size:
            self._measure(spent, size, window)

    def _measure(self, spent: float, size: int, window: int) -> None:
        """Set the size of requests by one that was sent while others were in flight."""
        self._proven = max(self._proven, size)
        now_carried = window * self._round_trip / spent if spent > 0 else 0.0
        self._carried = max(now_carried, self._carried * (1 - _FADING))
        if spent > 2 * self._round_trip:
            self._assumed = 0.0
        self._resize()

    def _resize(self) -> None:
        limits, carried = self._limits, max(self._carried, self._assumed)
        useful = int(_GAIN * carried / limits.max_in_flight)
        self.request_size = max(
            limits.max_request_size, min(useful, limits.grown_request_size)
        )

    def broke(self, size: int, now: float) -> None:
        """Note that the connection broke under a request of ``size`` bytes.

        A broker closes the connection on a request that is larger than its
        ``socket.request.max.bytes``. If the request was larger than all that were
        answered, later ones are not, for twice as long each time.
        """
        if size > self._proven:
            self.limit_to(self._proven, now, self._limited_for)
            self._limited_for *= 2

    def limit_to(self, size: int, now: float, seconds: float = _LIMITED_FOR) -> None:
        """Send no larger requests for a while: connections broke under one."""
        self.largest = min(self.largest, size)
        self._limited_until = max(self._limited_until, now + seconds)

    def lift_limit(self, now: float) -> None:
        """Send larger requests again once that while is over."""
        if now >= self._limited_until:
            self.largest = _FOREVER

    def stalls_at(self, patience: float) -> float:
        """Return when the broker has accepted nothing for ``patience`` seconds."""
        since = self.ready_since
        if self._quiet_since is not None:
            since = min(since, self._quiet_since)
        return since + patience


class Availability:
    """Notes which partitions are stalled, and lets records without a key leave them.

    Args:
        limits: the times.
        backlog: all records held.
        open_batches: the batches that take records past the accumulator.

    Attributes:
        changes: counts up when a partition or a broker failed, or is well again.
        nodes: the states of the brokers so far.
        failing: the brokers that failed, and have answered nothing since.
        has_trouble: whether a broker is failing, or slow.
        is_watching: whether brokers become slow with time.
    """

    __slots__ = (
        "_backlog",
        "_limits",
        "_open_batches",
        "_refused",
        "_slow",
        "changes",
        "failing",
        "has_trouble",
        "is_watching",
        "nodes",
    )

    def __init__(
        self, limits: Limits, backlog: Backlog, open_batches: OpenBatches
    ) -> None:
        self._limits = limits
        self._backlog = backlog
        self._open_batches = open_batches
        self.nodes: dict[int, NodeState] = {}
        # The partitions that are refused, and the brokers that are slow.
        self._refused: set[TopicPartition] = set()
        self._slow: set[int] = set()
        self.failing: set[int] = set()
        self.has_trouble: bool = False
        self.is_watching: bool = limits.availability_timeout > 0
        self.changes: int = 0

    def node(self, node_id: int) -> NodeState:
        """Return the state of a broker."""
        state = self.nodes.get(node_id)
        if state is None:
            state = self.nodes[node_id] = NodeState(self._limits)
        return state

    # The results of attempts.

    def attempt_failed(self, queue: PartitionQueue) -> None:
        """Note that a batch was not written, and waits to be sent again."""
        if not queue.is_refused:
            queue.is_refused = True
            self._refused.add(queue.partition)
            self._reconsider(queue.partition.topic)

    def attempt_ended(self, queue: PartitionQueue) -> None:
        """Note that a batch was written, or nothing of the partition is left."""
        if queue.is_refused:
            queue.is_refused = False
            self._refused.discard(queue.partition)
            self._reconsider(queue.partition.topic)

    def node_failed(self, node_id: int) -> None:
        """Note that a broker cannot be connected to, or that a request got lost."""
        if node_id not in self.failing:
            self.failing.add(node_id)
            self._reconsider_all()

    def node_answered(self, node_id: int) -> None:
        """Note that a broker has answered a request."""
        if node_id in self.failing:
            self.failing.discard(node_id)
            self._reconsider_all()

    def check(self, now: float) -> float:
        """Find the brokers that are slow now; return when another one may become so.

        Only with ``availability_timeout``.
        """
        if not self.is_watching:
            return _FOREVER
        patience = self._limits.availability_timeout
        stalls_at = {n: state.stalls_at(patience) for n, state in self.nodes.items()}
        slow = {n for n, at in stalls_at.items() if at <= now}
        if slow != self._slow:
            self._slow = slow
            self._reconsider_all()
        return min((at for at in stalls_at.values() if at > now), default=_FOREVER)

    def learned(self) -> None:
        """Note new metadata: leaders may have changed."""
        self.changes += 1

    def _reconsider(self, topic: str) -> None:
        self.changes += 1
        # So the next record without a key comes to the placement, which chooses anew.
        topics = self._backlog.topics.get(topic)
        if topics is not None:
            topics.sticky.left -= self._open_batches.unstick(topic)

    def _reconsider_all(self) -> None:
        self.changes += 1
        self.has_trouble = bool(self.failing or self._slow)
        for topic in self._backlog.topics:
            self._reconsider(topic)

    # Consequences.

    def is_avoided(self, queue: PartitionQueue) -> bool:
        """Whether records without a key should go to another partition, if they can."""
        leader = queue.leader
        return (
            leader < 0
            or queue.is_refused
            or leader in self._slow
            or (leader in self.failing and leader in self._failing_nodes())
        )

    def usable(self, topic: TopicQueues) -> Sequence[int]:
        """Return the partitions that records without a key may go to; never empty.

        Those that are not avoided; if there are none, those with a leader; if there are
        none, all. Of these, those with a leader in the client's rack, if there are
        any and records are to stay there.
        """
        partitions = topic.available or range(topic.partition_count)
        near = topic.near
        if not self.has_trouble and not self._refused:
            return near or partitions
        nodes = self._slow | self._failing_nodes()
        # Found again only after a change: there may be many partitions.
        reason = self.changes, nodes
        if topic.usable[0] != reason:
            topic.usable = reason, self._usable(topic, partitions, nodes)
        return topic.usable[1]

    def _usable(
        self, topic: TopicQueues, partitions: Sequence[int], nodes: Set[int]
    ) -> Sequence[int]:
        queues, leaders, near = topic.queues, topic.leaders, topic.near
        usable = [
            number
            for number in partitions
            if leaders.get(number) not in nodes
            and not (number in queues and queues[number].is_refused)
        ]
        if near:
            there = frozenset(near)
            if nearer := tuple(number for number in usable if number in there):
                return nearer
        return tuple(usable) or near or partitions

    def is_without_choice(self, topic: TopicQueues) -> bool:
        """Whether the sticky partition is stalled, and no other one is better."""
        number = topic.sticky.partition
        queue = topic.queues.get(number)
        if queue is None or not self.is_avoided(queue):
            return False
        return number in self.usable(topic)

    def _failing_nodes(self) -> Set[int]:
        # Only brokers that have batches to send: with another one, no request would
        # ever show that it answers again.
        if not self.failing:
            return _NONE
        leaders = {queue.leader for queue in self._backlog.active.values()}
        return self.failing & leaders

    def is_stalled(self, queue: PartitionQueue, now: float) -> bool:
        """Whether a partition makes no progress."""
        if self.is_avoided(queue):
            return True
        state = self.nodes.get(queue.leader)
        patience = min(self._limits.availability_timeout or _SILENCE, _SILENCE)
        return state is not None and state.stalls_at(patience) <= now
