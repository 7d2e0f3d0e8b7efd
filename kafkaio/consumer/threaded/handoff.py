"""Records between the thread that reads them and the user's, who takes them."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

from kafkaio.types import Record, TopicPartition

if TYPE_CHECKING:
    from kafkaio.consumer.core import Core

__all__ = ["Crossing", "Moment", "Window"]


class Moment(NamedTuple):
    """How much the user had been handed when it called something.

    Attributes:
        taken: records that it had taken, one by one.
        number: what it had received as a whole is marked with smaller numbers.
    """

    taken: int
    number: int


class Crossing:
    """A poll, batch or table on its way from the I/O thread to the user.

    Attributes:
        partitions: whose records it has.
        received: the number of the last `Moment` before the user got it; None until
            then.
    """

    __slots__ = ("partitions", "received")

    def __init__(self, partitions: Collection[TopicPartition]) -> None:
        self.partitions = partitions
        self.received: int | None = None


class Window:
    """What was read in one thread and is taken in another, one chunk after the other.

    `take`, `moment` and `receive` are for the user's thread. All else runs in the
    I/O thread: `fill` and `settle` while the user's waits for that, the others at any
    time; they read how far the user has come, and change nothing of it.

    Args:
        core: the consumer's inner works.
    """

    __slots__ = (
        "_at",
        "_before",
        "_core",
        "_crossings",
        "_number",
        "_records",
        "_told",
    )

    def __init__(self, core: Core) -> None:
        self._core = core
        self._records: list[Record] = []
        # How many of them were taken, and how many of these the ledger knows of.
        self._at = self._told = 0
        # Records taken of earlier chunks.
        self._before = 0
        # What is on its way to the user, or was the last to arrive, by partition.
        self._crossings: dict[TopicPartition, Crossing] = {}
        # How many moments were noted.
        self._number = 0

    @property
    def progress(self) -> int:
        """A number that grows whenever the user takes something, and only then."""
        return self._before + self._at

    def take(self) -> Record | None:
        """The next record; None where the core must be asked first."""
        at = self._at
        if at == len(self._records) or self._core.has_word:
            return None
        self._at = at + 1
        return self._records[at]

    def moment(self) -> Moment:
        """Note what the user has been handed by now."""
        self._number += 1
        return Moment(self.progress, self._number)

    def receive(self, crossing: Crossing) -> None:
        """The user has it."""
        crossing.received = self._number

    def crosses(self, partitions: Collection[TopicPartition]) -> Crossing:
        """Records of these partitions were read, and set out for the user."""
        crossing = Crossing(partitions)
        self._crossings.update(dict.fromkeys(partitions, crossing))
        return crossing

    def turn_back(self, crossing: Crossing) -> None:
        """The user does not get it: its records are read again."""
        for tp in crossing.partitions:
            if self._crossings.get(tp) is crossing:
                del self._crossings[tp]

    def next_offset(self, tp: TopicPartition) -> int | None:
        """Offset of the first record of a partition that was not taken, if any."""
        left = self._records[self._at :]
        return next((r.offset for r in left if r.topic_partition == tp), None)

    def fill(self, records: list[Record]) -> None:
        """Hand out these, once those before are done with."""
        # In this order, so that the other thread never counts a record twice.
        at, self._at = self._at, 0
        self._before += at
        self._told = 0
        self._records = records

    def sync(self) -> None:
        """Tell the ledger what is finished: the user may work on the last one taken."""
        self._finish(max(0, self._at - 1))

    def settle(self) -> None:
        """The user asks for more, or for something else: what was not taken goes back.

        It is handed out again where it is still ours.
        """
        reader = self._core.reader
        reader.sync()  # the ledger must know what was handed out
        self._finish(self._at)
        left = {record.topic_partition for record in self._records[self._at :]}
        self.fill([])
        for tp in left:
            if tp in reader.positions:
                reader.take_back(tp)

    def acknowledge(
        self, moment: Moment, partitions: Collection[TopicPartition]
    ) -> None:
        """The user is done with what it had been handed of these partitions.

        Records that came here, and that it had not taken by then, are not finished.
        """
        ledger = self._core.reader.ledger
        count = min(self._at, max(0, moment.taken - self._before))
        taken = {r.topic_partition: r for r in self._records[:count]}
        left = {r.topic_partition for r in self._records[count:]}
        for tp in partitions:
            crossing = self._crossings.get(tp)
            if tp in left:
                if (last := taken.get(tp)) is not None:
                    ledger.finished_to(tp, last.offset + 1, last.leader_epoch)
            elif crossing is None or (
                crossing.received is not None and crossing.received < moment.number
            ):
                ledger.finish_of(tp)

    def _finish(self, count: int) -> None:
        ledger = self._core.reader.ledger
        last = {r.topic_partition: r for r in self._records[self._told : count]}
        for tp, record in last.items():
            if tp in ledger:
                ledger.finished_to(tp, record.offset + 1, record.leader_epoch)
        self._told = max(self._told, count)
