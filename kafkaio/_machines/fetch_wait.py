"""How long a broker may keep a fetch that finds nothing.

A fetch that leaves a full partition out waits briefly: the user may have read some of
it in a moment. While the user does not read, short waits would only be extra requests,
so they double.

A fetch of all partitions waits for ``fetch_max_wait_ms``. If every partition was quiet
for that long, the next fetch waits longer: as the broker answers with the first byte,
no record is later for it, and an idle consumer sends fewer requests.
"""

from __future__ import annotations

from typing import Final

#: The first wait of a fetch that leaves a full partition out: short, so that the
#: partition is fetched again before the user has read all of it.
_SHORT_MS: Final = 20
#: The most milliseconds that a quiet broker keeps a fetch, and that number as a
#: multiple of ``fetch_max_wait_ms``, which stays the measure: what only a new fetch can
#: notice is noticed in that order of time.
_QUIET_MS: Final = 2_000
_QUIET_WAITS: Final = 4


class FetchWait:
    """Chooses the wait of each fetch from one broker.

    Args:
        max_wait_ms: the option ``fetch_max_wait_ms``.
        min_bytes: the option ``fetch_min_bytes``.
    """

    __slots__ = ("_asked", "_longest_ms", "_max_wait_ms", "_ms", "_progress", "_short")

    def __init__(self, max_wait_ms: int, min_bytes: int) -> None:
        self._max_wait_ms = max_wait_ms
        longest = min(_QUIET_WAITS * max_wait_ms, _QUIET_MS)
        if min_bytes > 1:
            # Fewer bytes than these are answered when the wait is over.
            longest = 0
        self._longest_ms = max(max_wait_ms, longest)
        self._ms = max_wait_ms
        self._asked: object = None
        self._short = _SHORT_MS
        self._progress = -1

    def __repr__(self) -> str:
        return f"<FetchWait {self._ms} ms>"

    def of(self, asked: object) -> int:
        """Return the milliseconds to wait with a fetch that leaves nothing out.

        Args:
            asked: what is asked for: the same object while that does not change.
        """
        if asked is not self._asked:
            self._asked, self._ms = asked, self._max_wait_ms
        return self._ms

    def short(self, progress: int) -> int:
        """Return the milliseconds to wait with a fetch that leaves a partition out.

        Args:
            progress: a number that grows whenever the user takes something.
        """
        self._asked = None
        if progress != self._progress:
            self._progress, self._short = progress, _SHORT_MS
        else:
            self._short *= 2
        return min(self._short, self._max_wait_ms)

    def answered(self, *, has_news: bool) -> None:
        """Note an answer.

        Args:
            has_news: whether there is something about any partition in it.
        """
        if has_news:
            self._ms = self._max_wait_ms
        else:
            self._ms = min(2 * self._ms, self._longest_ms)
