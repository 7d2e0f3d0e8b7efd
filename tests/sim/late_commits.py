"""Commits that may take effect after later ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

__all__ = ["LateCommits"]


class LateCommits:
    """The offsets that may be committed by a request whose connection was closed.

    Closing a connection does not take back a request in flight: the broker may still
    read it. The client cannot know that, commits again on another connection, and goes
    on. If the first request is then read in the same generation of the group, the
    committed offset goes back. No client can prevent that.
    """

    def __init__(self) -> None:
        self._offsets: defaultdict[int, set[int]] = defaultdict(set)
        # The last commit of each partition, and whether its connection is open.
        self._last: dict[int, tuple[int, Callable[[], bool]]] = {}

    def sent(
        self, partition: int, offset: int, committed: int, is_open: Callable[[], bool]
    ) -> None:
        """A commit request leaves a client.

        Args:
            partition: its partition.
            offset: the offset it commits.
            committed: the offset that is committed so far.
            is_open: whether the connection it is sent on is still open.
        """
        before, was_open = self._last.get(partition, (0, is_open))
        if committed < before and not was_open():
            self._offsets[partition].add(before)
        self._last[partition] = offset, is_open

    def may_be(self, partition: int, committed: int) -> bool:
        """Whether a committed offset may be that of a late commit."""
        return committed in self._offsets[partition]
