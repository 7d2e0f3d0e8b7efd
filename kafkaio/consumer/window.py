"""Records between the thread that reads them and the user's, who takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkaio.types import Record, TopicPartition

if TYPE_CHECKING:
    from kafkaio.consumer.engine import Engine

__all__ = ["Window"]


class Window:
    """What was read in one thread and is taken in another, one chunk after the other.

    `take` is for the user's thread. All else runs in the engine's: `fill` and `settle`
    while the user's waits for that, the others at any time; they read how far the user
    has come, and change nothing of it.

    Args:
        engine: the consumer's inner works.
    """

    __slots__ = ("_at", "_before", "_engine", "_records", "_told")

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._records: list[Record] = []
        # How many of them were taken, and how many of these the ledger knows of.
        self._at = self._told = 0
        # Records taken of earlier chunks.
        self._before = 0

    @property
    def progress(self) -> int:
        """A number that grows whenever the user takes something, and only then."""
        return self._before + self._at

    def take(self) -> Record | None:
        """The next record; None where the engine must be asked first."""
        at = self._at
        if at == len(self._records) or self._engine.has_word:
            return None
        self._at = at + 1
        return self._records[at]

    def next_offset(self, tp: TopicPartition) -> int | None:
        """Offset of the first record of a partition that was not taken, if any."""
        left = self._records[self._at :]
        return next((r.offset for r in left if r.topic_partition == tp), None)

    def fill(self, records: list[Record]) -> None:
        """Hand out these, once those before are done with."""
        self._before += self._at
        self._at = self._told = 0
        self._records = records

    def sync(self) -> None:
        """Tell the ledger what is finished: the user may work on the last one taken."""
        self._finish(max(0, self._at - 1))

    def settle(self) -> None:
        """The user asks for more, or for something else: what was not taken goes back.

        It is handed out again where it is still ours.
        """
        reader = self._engine.reader
        reader.sync()  # the ledger must know what was handed out
        self._finish(self._at)
        left = {record.topic_partition for record in self._records[self._at :]}
        self.fill([])
        for tp in left:
            if tp in reader.positions:
                reader.take_back(tp)

    def _finish(self, count: int) -> None:
        ledger = self._engine.reader.ledger
        last = {r.topic_partition: r for r in self._records[self._told : count]}
        for tp, record in last.items():
            if tp in ledger:
                ledger.finished_to(tp, record.offset + 1, record.leader_epoch)
        self._told = max(self._told, count)
