"""Commits that may take effect after those that were sent later."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

__all__ = ["Stragglers"]


class Stragglers:
    """Which offsets may be committed by a request that its client has given up.

    A connection that ends takes back nothing that is under way: the broker may still
    read it. The client cannot know, commits again by another connection, and goes on.
    If then the first request comes through, in the same generation of the group, the
    group's offset goes back to what it says. No client can prevent that.
    """

    def __init__(self) -> None:
        self._offsets: defaultdict[int, set[int]] = defaultdict(set)
        # The last commit of each partition, and whether its connection lives.
        self._last: dict[int, tuple[int, Callable[[], bool]]] = {}

    def sent(
        self, partition: int, offset: int, committed: int, is_open: Callable[[], bool]
    ) -> None:
        """A commit leaves a client.

        Args:
            partition: its partition.
            offset: what it commits.
            committed: what is committed so far.
            is_open: whether the client still has the connection that it leaves by.
        """
        before, was_open = self._last.get(partition, (0, is_open))
        if committed < before and not was_open():
            self._offsets[partition].add(before)
        self._last[partition] = offset, is_open

    def may_be(self, partition: int, committed: int) -> bool:
        """Whether what is committed of a partition may be what one of them said."""
        return committed in self._offsets[partition]
