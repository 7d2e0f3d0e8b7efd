"""Which partition a record goes to if its sender names none.

The hash of a record's key decides, so that all records of a key stay in order. The hash
is murmur2 as in Kafka's Java client, over *all* partitions of the topic, whether they
have a leader now or not.

Records without a key follow the uniform sticky partitioner of KIP-794: one partition
takes a number of bytes, then the next is drawn. Partitions with short queues are drawn
more often than those with long queues, so that a slow broker gets less. The number of
bytes is the size of a batch, but `STICKY_BYTES` at most while records are few: batches
may be large, and records at a low rate would all go to one partition for minutes. While
records fill one partition after the other within milliseconds, each takes more at a
time, up to a batch: a draw costs as much as taking in some twenty records.

Rows of a table without a key are known all at once. Drawing would leave partitions
empty, as few draws are uneven. So a table is divided into runs of about the same number
of rows (`runs_of`), and the partitions take turns (`PartitionTurns`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence

from kafkaio._records._impl import key_partition as key_partition, murmur2 as murmur2

#: The most bytes of keyless records that go to one partition at a time.
STICKY_BYTES = 65_536
#: Seconds: after a partition that took its bytes within `_QUICK`, the next one takes
#: twice as many. After `_SLOW` none takes more than the share.
_QUICK = 0.005
_SLOW = 0.02
#: Bytes of a run of rows, where there are many partitions: a batch costs as much as
#: taking in a hundred and fifty rows (some 20 microseconds).
_RUN_BYTES = 32_768
#: For evenness over few partitions a table may have this many shorter runs, so that one
#: table costs less than a millisecond more.
_SHORT_RUNS = 16
_SHORT_RUN_BYTES = 4_096
#: Bytes of tables of one run that go to one partition: as many as a batch of Java has.
_TURN_BYTES = 16_384
#: More bytes than any run has.
_WHOLE_RUN = 2**62


def draw(partitions: Sequence[int], loads: Mapping[int, int], roll: float) -> int:
    """Draw one of ``partitions``, those with a smaller load more often.

    It takes time by the number of loads, and not by that of partitions: nothing waits
    for most of many partitions.

    Args:
        partitions: the numbers to choose from, ascending, not empty.
        loads: how much waits for partitions; nothing waits for the others. The weight
            of a partition is ``max(loads) + 1 - load`` (KIP-794).
        roll: a number in [0, 1).
    """
    places = [
        (at, load)
        for number, load in sorted(loads.items())
        if (at := bisect_left(partitions, number)) < len(partitions)
        and partitions[at] == number
    ]
    most = max((load for _, load in places), default=0) + 1
    total = len(partitions) * most - sum(load for _, load in places)
    left, start = int(roll * total), 0
    for at, load in places:
        # Partitions up to this one have the whole weight each.
        if left < (at - start) * most:
            break
        left -= (at - start) * most
        if left < most - load:
            return partitions[at]
        left -= most - load
        start = at + 1
    return partitions[start + left // most]


class StickyPartition:
    """The partition that keyless records of one topic go to now (KIP-794).

    The caller draws: it calls ``is_due`` before each record that begins a batch, calls
    ``switch`` with the partition drawn, and subtracts the bytes appended from ``left``.

    Args:
        sticky_bytes: bytes after which to switch while records are few.
        most: bytes that a partition can take at a time, however many records there are;
            twice ``sticky_bytes`` unless it is more.

    Attributes:
        partition: its number, -1 before the first is drawn.
        left: bytes that it can still take, whether batches are full or not.
        share: ``sticky_bytes``.
    """

    __slots__ = ("_most", "_own", "_reach", "_since", "left", "partition", "share")

    def __init__(self, sticky_bytes: int, most: int = 0) -> None:
        self.share: int = max(1, sticky_bytes)
        self._most = max(self.share, most // 2)
        # The partition and bytes that `lend` replaced; None if nothing is lent.
        self._own: tuple[int, int] | None = None
        # Bytes after which to switch; it takes twice as many at most.
        self._reach = self.share
        # When the partition was drawn.
        self._since = -_SLOW
        self.partition: int = -1
        self.left: int = 0

    def is_due(self, size: int, now: float) -> bool:
        """Whether a record that begins a batch should go to a newly drawn partition.

        A switch waits until the batch is full, so that no small batch is left behind,
        but not for more than twice as long: then nothing is ``left``. A batch into
        which the next record does not fit counts as full.

        Args:
            size: bytes of that record.
            now: the time.
        """
        # Where records have become few, they do not fill what was meant for many.
        reach = self._reach if now - self._since < _SLOW else self.share
        return self.partition < 0 or self.left - size <= 2 * self._reach - reach

    def switch(self, partition: int, now: float) -> None:
        """Use this partition from now on."""
        spent = now - self._since
        if spent >= _SLOW:
            self._reach = self.share
        elif spent < _QUICK:
            self._reach = min(2 * self._reach, self._most)
        self._since = now
        self.partition = partition
        self.left = 2 * self._reach

    def lend(self, partition: int) -> None:
        """Use this partition for a run of rows, until `take_back`."""
        if self._own is None:
            self._own = (self.partition, self.left)
        self.partition = partition
        self.left = _WHOLE_RUN

    def take_back(self) -> None:
        """Go on with the partition, and what is left of it, from before `lend`."""
        if self._own is not None:
            self.partition, self.left = self._own
            self._own = None


def runs_of(size: int, partitions: int, longest: int) -> int:
    """Return into how many runs of equal length rows without a key are divided.

    If that is possible at a low price, each partition gets the same number of runs. A
    table that is too small for that is not shattered.

    Args:
        size: bytes of the rows, about.
        partitions: number of partitions that take turns, at least one.
        longest: the most bytes of a run, if more runs are possible.
    """
    runs = max(size // _RUN_BYTES, min(_SHORT_RUNS, size // _SHORT_RUN_BYTES), 1)
    if runs < partitions:
        return runs
    return partitions * max(1, -(-size // (partitions * longest)))


class PartitionTurns:
    """The partitions of one topic take turns with runs of rows without a key.

    The first is drawn, so that many producers do not begin with the same partition. A
    table goes on where the one before it has stopped.

    Attributes:
        partition: whose turn it is; -1 before the first.
    """

    __slots__ = ("_taken", "partition")

    def __init__(self) -> None:
        self.partition: int = -1
        # Bytes of the runs that it got since its turn began.
        self._taken = 0

    def is_due(self, size: int, usable: Sequence[int]) -> bool:
        """Whether a table that is not divided goes to the next partition.

        Such tables go to the same one until they fill a batch.

        Args:
            size: bytes of the table, about.
            usable: the partitions to choose from, ascending.
        """
        if self._taken + size > _TURN_BYTES or self.partition < 0:
            return True
        at = bisect_left(usable, self.partition)
        return at == len(usable) or usable[at] != self.partition

    def order(self, usable: Sequence[int], roll: float) -> Iterator[int]:
        """Return partitions in the order in which the next one is looked for.

        Args:
            usable: those to choose from, ascending, not empty.
            roll: a number in [0, 1), for the first turn.
        """
        if self.partition < 0:
            first = int(roll * len(usable))
        else:
            first = bisect_right(usable, self.partition)
        return (usable[(first + n) % len(usable)] for n in range(len(usable)))

    def begin(self, partition: int) -> None:
        """Let this partition have its turn."""
        self.partition = partition
        self._taken = 0

    def take(self, size: int) -> None:
        """Note that the partition gets a run of so many bytes."""
        self._taken += size
