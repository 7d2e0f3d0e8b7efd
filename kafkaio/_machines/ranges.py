"""Decides which ranges are fetched from which broker, and which one is read next.

`RangeSchedule` follows many ranges at once. `choose` decides the requests: one for each
broker, for many ranges in their order, with about as many bytes as a request may bring.
`turn` decides whose records are handed out next. The shell sends the requests, reports
their results (`received`, `failed`, `node_failed`), and reports what the caller has
accepted (`accept`).

Invariants, each of them a law in the tests:

* The records of a range are handed out in the order of their offsets. `accepted` is the
  offset up to which the caller has read; records behind it can be taken back.
* A range is in at most one request at a time, and a partition once in a request.
* Ranges have their turn in the order given, while their brokers answer. `pass_over`
  lets the others go first, until something of the late ranges has arrived.
* A broker has at most one request in flight or one answer that is being read. The
  broker of the range whose turn it is may have two answers and a request, if an answer
  had no room for that range. All answers together take at most `_ANSWERS` times the
  bytes of a request, beside those of the broker of that range.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Final, Protocol

from kafkaio._machines.backoff import Backoff
from kafkaio.errors import KafkaError
from kafkaio.types import OffsetRange, TopicPartition

#: Bytes of a record, before one of the topic was seen; a little more than most have.
_RECORD: Final = 1024
#: Bytes to ask for beyond the expected size of the rest of a range: its last batch may
#: go on after the end.
_MARGIN: Final = 65_536
#: How much denser the rest of a range may be than the records read so far.
_SLACK: Final = 1.25
#: The most ranges of one request. Its answer is decoded in one go: about 10 ms.
_MOST_RANGES: Final = 1_000
#: Unread answers of the broker of the range whose turn it is.
_UNREAD: Final = 2
#: Bytes in flight or unread over all brokers, as a multiple of those of a request.
_ANSWERS: Final = 8


class RangePartPort(Protocol):
    """Records of one range that one answer has brought."""

    @property
    def position(self) -> int:
        """The offset up to which the part was read."""
        ...

    @property
    def is_read(self) -> bool:
        """Whether the part was read to its end."""
        ...


class FetchedAnswer:
    """An answer to a fetch, whose records may not all be read yet.

    Args:
        node: the broker.
        size: bytes of records.

    Attributes:
        left: the number of its parts that were not read to their end.
    """

    __slots__ = ("left", "node", "size")

    def __init__(self, node: int, size: int) -> None:
        self.node: int = node
        self.size: int = size
        self.left: int = 0


class RangeState:
    """The progress of one range.

    Attributes:
        index: its place in the order.
        within: the range.
        accepted: the offset up to which the caller has read.
        next_offset: where the next fetch begins.
        parts: fetched parts that are not read to their end, with their answers.
        request: the request in flight that names it, or None.
        failure: the transient reason why the last fetch brought nothing.
        final: the error that is raised when it has its turn: it cannot be fetched.
        needed: bytes that its next batch takes, if it did not fit into an answer.
        is_tight: whether other ranges used up the last answer.
        is_late: whether other ranges go first.
        last_epoch: the epoch of the last batch that was fetched, -1 for none.
        leader_epoch: the epoch of the leader whose log is known to have that batch.
    """

    __slots__ = (
        "_due",
        "_failures",
        "accepted",
        "failure",
        "final",
        "index",
        "is_late",
        "is_tight",
        "last_epoch",
        "leader_epoch",
        "needed",
        "next_offset",
        "parts",
        "request",
        "within",
    )

    def __init__(self, index: int, within: OffsetRange) -> None:
        self.index: int = index
        self.within: OffsetRange = within
        self.accepted: int = within.start
        self.next_offset: int = within.start
        self.parts: deque[tuple[RangePartPort, FetchedAnswer]] = deque()
        self.request: object | None = None
        self.failure: KafkaError | None = None
        self.final: KafkaError | None = None
        self.needed: int = 0
        self.is_tight: bool = False
        self.is_late: bool = False
        self.last_epoch: int = -1
        self.leader_epoch: int = -1
        self._due = 0.0
        self._failures = 0

    def __repr__(self) -> str:
        (topic, partition), start, end = self.within
        return f"<RangeState {topic}-{partition} {start} {self.accepted} {end}>"

    @property
    def is_done(self) -> bool:
        """Whether the caller has read it to its end."""
        return self.accepted >= self.within.end

    @property
    def is_wanted(self) -> bool:
        """Whether more of it is to be fetched, and no request names it."""
        is_idle = self.request is None and self.final is None
        return is_idle and self.next_offset < self.within.end

    def succeeded(self) -> None:
        """Note that records have come."""
        self.failure, self._failures, self._due = None, 0, 0.0
        self.needed, self.is_tight = 0, False

    def failed(self, error: KafkaError, now: float, delay: float) -> int:
        """Note a transient failure; return the number of failures in a row."""
        self.failure = error
        self._failures += 1
        self._due = now + delay
        return self._failures

    @property
    def due(self) -> float:
        """When it may be fetched again."""
        return self._due

    @property
    def failures(self) -> int:
        """How many attempts in a row have failed."""
        return self._failures


class _NodeState:
    """The state of one broker.

    Attributes:
        is_busy: whether a request is in flight, or a connection is being opened.
        unread: the number of its answers with parts to read.
        due: when it may be asked again after a failure.
        failures: failures in a row.
    """

    __slots__ = ("due", "failures", "is_busy", "unread")

    def __init__(self) -> None:
        self.is_busy = False
        self.unread = 0
        self.due = 0.0
        self.failures = 0


class Choice:
    """The fetches to send now.

    Attributes:
        groups: the ranges of each broker's request, in their order.
        leaderless: ranges whose partitions have no leader.
    """

    __slots__ = ("groups", "leaderless")

    def __init__(self) -> None:
        self.groups: dict[int, list[RangeState]] = {}
        self.leaderless: list[RangeState] = []


class RangeSchedule:
    """The order in which many ranges are fetched and read.

    Args:
        ranges: in the order in which they are read; none is empty.
        fetch_bytes: the most bytes of one request, unless a batch is larger.
        backoff: the waits after failures.
    """

    def __init__(
        self, ranges: Sequence[OffsetRange], *, fetch_bytes: int, backoff: Backoff
    ) -> None:
        self._states = [RangeState(n, each) for n, each in enumerate(ranges)]
        self._fetch_bytes = fetch_bytes
        self._backoff = backoff
        # Invariant: the states before this index are read to their ends, or late.
        self._first = 0
        # A superset of the ranges that are not read to their ends, in their order. Each
        # pass reduces it, so that finished ranges cost nothing.
        self._open = list(self._states)
        self._nodes: dict[int, _NodeState] = {}
        # Bytes that requests in flight may bring, and bytes of unread answers.
        self._bytes = 0
        # Bytes per offset in the last answer of each topic, to size the next requests.
        self._density: dict[str, float] = {}

    def __repr__(self) -> str:
        count = len(self._states)
        return f"<RangeSchedule {self._first} of {count} | {self._bytes} bytes>"

    # ---- whose turn it is ------------------------------------------------------------

    def turn(self) -> RangeState | None:
        """Return the range to read next; None if nothing of it has arrived.

        It has a part, or a final error.
        """
        while (first := self._head()) is not None:
            if first.parts or first.final is not None:
                return first
            if not first.is_late:
                return None
            self._first += 1
        return None

    def _head(self) -> RangeState | None:
        states = self._states
        while self._first < len(states):
            found = states[self._first]
            if not found.is_done:
                return found
            self._first += 1
        return None

    def is_done(self) -> bool:
        """Whether all ranges are read to their ends."""
        return self._head() is None and not self._unread()

    def unread(self) -> list[RangeState]:
        """Return the ranges that are not read to their ends, in their order."""
        return list(self._unread())

    def _unread(self) -> list[RangeState]:
        self._open = [each for each in self._open if not each.is_done]
        return self._open

    def has_parts(self) -> bool:
        """Whether there is something to read of any range."""
        return any(each.unread for each in self._nodes.values())

    def pass_over(self) -> None:
        """Let ranges with something to read go first.

        The others are late: no range waits for them until something of them arrives.
        """
        for each in self._unread():
            each.is_late = not each.parts and each.final is None
        self._first = 0

    def _arrived(self, each: RangeState) -> None:
        """Give a range its turn again, if it was late."""
        each.is_late = False
        self._first = min(self._first, each.index)

    # ---- the next fetches ------------------------------------------------------------

    def choose(
        self,
        node_of: Callable[[TopicPartition], int | None],
        brokers: int,
        now: float,
    ) -> Choice:
        """Decide which fetches to send now.

        Args:
            node_of: returns the broker to fetch a partition from, or None.
            brokers: the number of brokers.
            now: the time.
        """
        choice, full = Choice(), set[int]()
        rooms: dict[int, float] = {}
        taken: dict[int, set[TopicPartition]] = {}
        head = self._head()
        first = None if head is None else node_of(head.within.partition)
        for each in self._unread():
            if not each.is_wanted or each.due > now:
                continue
            tp = each.within.partition
            node = node_of(tp)
            if node is None:
                choice.leaderless.append(each)
                continue
            if node in full:
                continue
            room = rooms.get(node)
            if room is None:
                room = self._room(node, now, head if node == first else None)
            if room <= 0:
                full.add(node)
                # With thousands of ranges most calls end here, and not with the list.
                if len(full) >= brokers:
                    break
                continue
            partitions = taken.setdefault(node, set())
            # A request cannot name a partition twice: its next range must wait.
            if tp in partitions:
                continue
            partitions.add(tp)
            choice.groups.setdefault(node, []).append(each)
            rooms[node] = room - self._expected(each)
            if rooms[node] <= 0 or len(partitions) >= _MOST_RANGES:
                full.add(node)
        return choice

    def _room(self, node: int, now: float, head: RangeState | None) -> float:
        """Return the bytes that a broker may be asked for; 0 for no request.

        Args:
            node: the broker.
            now: the time.
            head: the range whose turn it is, if this is its broker.
        """
        known = self._nodes.get(node)
        if known is None:
            known = self._nodes[node] = _NodeState()
        if known.is_busy or known.due > now:
            return 0
        if head is None:
            is_free = not known.unread and self._bytes < _ANSWERS * self._fetch_bytes
            return self._fetch_bytes if is_free else 0
        if head.parts:
            return self._fetch_bytes if known.unread < _UNREAD else 0
        # Nothing of the range whose turn it is has arrived, and nothing can be read
        # before it. So it is asked for in any case; with too many unread answers it is
        # asked for alone, which the room of one byte brings about.
        return self._fetch_bytes if known.unread <= _UNREAD else 1

    def _expected(self, each: RangeState) -> float:
        density = self._density.get(each.within.partition.topic)
        rest = each.within.end - each.next_offset
        return rest * (_RECORD if density is None else density * _SLACK)

    def max_bytes(self, each: RangeState) -> int:
        """Return the most bytes of a range to ask for.

        This is the likely size of its rest, so that the broker does not send records
        behind its end.
        """
        if each.needed:
            return each.needed
        # Other ranges left it no room. It takes the whole request the next time.
        if each.is_tight:
            return self._fetch_bytes
        return min(self._fetch_bytes, int(self._expected(each)) + _MARGIN)

    def total_bytes(self, ranges: Collection[RangeState]) -> int:
        """Return the most bytes of a request for some ranges."""
        total = min(self._fetch_bytes, sum(map(self.max_bytes, ranges)))
        return max(total, *(each.needed for each in ranges))

    # ---- results of fetches ----------------------------------------------------------

    def asking(self, node: int, size: int = 0) -> None:
        """Note that a request for at most ``size`` bytes is sent to a broker."""
        self._nodes[node].is_busy = True
        self._bytes += size

    def answered(self, node: int, size: int = 0) -> None:
        """Note that a request to a broker has ended, with or without an answer."""
        self._nodes[node].is_busy = False
        self._bytes -= size

    def node_failed(self, node: int, now: float, roll: float) -> tuple[int, float]:
        """Note that a broker did not answer.

        Returns:
            The number of failures in a row, and the seconds until it is asked again.
        """
        known = self._nodes[node]
        delay = self._backoff.delay(known.failures, roll)
        known.failures += 1
        known.due = now + delay
        return known.failures, delay

    def node_answered(self, node: int) -> None:
        """Note that a broker gave an answer."""
        known = self._nodes[node]
        known.failures, known.due = 0, 0.0

    def failed(
        self, each: RangeState, error: KafkaError, now: float, roll: float
    ) -> tuple[int, float]:
        """Note the transient reason why a range was not fetched.

        Returns:
            The number of failures in a row, and the seconds until it is fetched again.
        """
        delay = self._backoff.delay(each.failures, roll)
        return each.failed(error, now, delay), delay

    def refuse(self, each: RangeState, error: KafkaError) -> None:
        """Note the final reason why a range cannot be fetched."""
        each.final = error
        self._arrived(each)

    def received(
        self,
        each: RangeState,
        part: RangePartPort,
        answer: FetchedAnswer,
        next_offset: int,
        size: int,
    ) -> None:
        """Take the records of a range from an answer.

        Args:
            each: the range.
            part: the records.
            answer: the answer.
            next_offset: where the records end, after the last fetch.
            size: their bytes.
        """
        each.succeeded()
        self._density[each.within.partition.topic] = size / (
            next_offset - each.next_offset
        )
        each.next_offset = next_offset
        each.parts.append((part, answer))
        self._bytes += size
        answer.size += size
        # An answer counts for its broker once, from its first part to its last.
        if not answer.left:
            self._nodes[answer.node].unread += 1
        answer.left += 1
        self._arrived(each)

    def next_due(self, since: float) -> float | None:
        """When something that failed may be tried again; None if nothing waits.

        Args:
            since: the time of the last `choose`, or before: what became due after it is
                due at once.
        """
        times = [each.due for each in self._open if each.is_wanted and each.due > since]
        times += [each.due for each in self._nodes.values() if each.due > since]
        return min(times, default=None)

    # ---- calls of the reader ---------------------------------------------------------

    def accept(self, each: RangeState) -> None:
        """Note that the caller has read the first part of a range, to its position."""
        part, _ = each.parts[0]
        each.accepted = part.position
        # Parts that are read, and those behind the end of the range, are dropped: a
        # batch may go on after the end.
        while each.parts and (each.parts[0][0].is_read or each.is_done):
            self._release(each.parts.popleft()[1])

    def take_back(self, each: RangeState, accepted: int) -> None:
        """Let a range be fetched again from an offset.

        Fetched parts are dropped now, and an answer in flight when it arrives.
        """
        while each.parts:
            self._release(each.parts.popleft()[1])
        # `_unread` may have dropped it from the list, which is therefore restored.
        if each.is_done:
            self._open = self._states
        each.accepted = each.next_offset = accepted
        each.request = each.final = None
        # Nothing was read, so there is no epoch to validate with a leader (KIP-320).
        if accepted == each.within.start:
            each.last_epoch = -1
        self._first = min(self._first, each.index)

    def _release(self, answer: FetchedAnswer) -> None:
        answer.left -= 1
        if not answer.left:
            self._nodes[answer.node].unread -= 1
            self._bytes -= answer.size
            answer.size = 0
