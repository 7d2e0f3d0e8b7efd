"""Writing in threads, where whoever gave up waiting cannot have the last word."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count

import anyio.to_thread

from kafkaio.types import OffsetAndMetadata, TopicPartition

__all__ = ["LastWord"]

_Offsets = dict[TopicPartition, OffsetAndMetadata]


class LastWord:
    """Writes one commit after the other, and none over a later one of its partition.

    A thread cannot be cancelled: the write of a caller who was goes on, or even begins,
    when others may have written already.

    Args:
        write: writes the offsets of a group; called in a thread, once at a time.
    """

    def __init__(self, write: Callable[[str, _Offsets], None]) -> None:
        self._write = write
        self._lock = threading.Lock()
        self._tickets = count(1)
        self._written: dict[tuple[str, TopicPartition], int] = {}

    async def commit(
        self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        """Write, after those called for before whose callers still wait.

        If the call is cancelled, it may still take effect, but never after a later
        one.

        Raises:
            Exception: what writing raises.
        """
        ticket = next(self._tickets)
        await anyio.to_thread.run_sync(
            partial(self._in_turn, ticket, group_id, dict(offsets))
        )

    def _in_turn(self, ticket: int, group_id: str, offsets: _Offsets) -> None:
        with self._lock:
            news = {
                tp: at
                for tp, at in offsets.items()
                if self._written.get((group_id, tp), 0) < ticket
            }
            self._written |= {(group_id, tp): ticket for tp in news}
            self._write(group_id, news)
