"""Memory for large frames, reused as soon as nothing refers to it.

New memory is expensive: the operating system clears every page of it, and does so again
after each time that it was returned. So the pool keeps memory. It takes it from the
system without clearing it once more, and in large pages where the system has them,
which cost much less.

Decoded objects refer to the memory of their frame, through views, for any time. So
memory is not returned to the pool explicitly: the pool finds by the reference count
that no view is left. Memory in use is bounded where it is used (the byte budget of a
consumer); the pool bounds the unused memory that it keeps.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from threading import local
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import mmap

#: Most bytes that a thread's pool keeps unused.
KEPT_BYTES: Final = 24 * 2**20
#: Memory lent beyond so many times as much is not kept afterwards.
_MOST_LENT: Final = 4
#: A buffer may be so many times as large as requested.
_SLACK: Final = 2
#: Frames of at least this size get memory in large pages, if the system has them.
_LARGE_PAGE: Final = 2 * 2**20
#: The C library is made to keep half of this; see `_keep_what_is_freed`.
_KEPT_BY_LIBRARY: Final = 32 * 2**20
#: New buffers are a little too large, so that they fit frames of about that size.
_STEP: Final = 65_536


class FramePool:
    """Lends memory, and lends it again when the last view of it is gone.

    It must be used by one thread only. Where references cannot be counted exactly
    (PyPy, or CPython without its global lock) memory is always new.

    Args:
        limit: most bytes to keep unused.

    Attributes:
        kept: bytes that are lent and will be used again, or are kept unused.
    """

    __slots__ = ("_buffers", "_limit", "kept")

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self._limit = limit if _COUNTS_ARE_EXACT else 0
        self._buffers: list[mmap.mmap] = []
        self.kept = 0

    def __repr__(self) -> str:
        return f"<FramePool {sum(self.lent)} bytes lent | {self.kept} kept>"

    @property
    def lent(self) -> list[int]:
        """The sizes of the kept buffers that are in use."""
        free = self._free()
        return [len(b) for i, b in enumerate(self._buffers) if i not in free]

    def take(self, size: int) -> memoryview:
        """``size`` bytes that nothing else refers to; their content is undefined."""
        buffer = self._find(size)
        if buffer is None:
            buffer = self._make(size)
        return memoryview(buffer)[:size]

    def _find(self, size: int) -> mmap.mmap | None:
        best: mmap.mmap | None = None
        for index in self._free():
            buffer = self._buffers[index]
            is_fit = size <= len(buffer) <= _SLACK * size + _STEP
            if is_fit and (best is None or len(buffer) < len(best)):
                best = buffer
        return best

    def _make(self, size: int) -> mmap.mmap:
        buffer = _memory(_rounded_up(size, _STEP))
        if self.kept + len(buffer) <= _MOST_LENT * self._limit:
            self.kept += len(buffer)
            self.tidy()
            self._buffers.append(buffer)
        return buffer

    def tidy(self) -> None:
        """Return unused memory beyond the limit to the system."""
        if self.kept <= self._limit:
            return
        free = self._free()
        spare = sum(len(self._buffers[index]) for index in free)
        while spare > self._limit:
            size = len(self._buffers.pop(free.pop()))
            spare -= size
            self.kept -= size

    def _free(self) -> list[int]:
        buffers = self._buffers
        return [i for i in range(len(buffers)) if _references(buffers, i) == _ALONE]


def _memory(size: int) -> mmap.mmap:
    import mmap  # for large frames alone

    if sys.platform == "win32":
        return mmap.mmap(-1, size)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    if size < _LARGE_PAGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return mmap.mmap(-1, size, flags=flags)
    # Linux aligns memory to a large page only if its size is a multiple of one. The
    # surplus is cut off: an answer to a fetch is a multiple of 1 MiB plus its header,
    # and a large page would be cleared for the few bytes of that.
    memory = mmap.mmap(-1, _rounded_up(size, _LARGE_PAGE), flags=flags)
    with contextlib.suppress(OSError):  # a kernel without large pages
        memory.madvise(mmap.MADV_HUGEPAGE)
    memory.resize(size)
    return memory


def _rounded_up(size: int, step: int) -> int:
    return -(-size // step) * step


def _references(buffers: Sequence[object], index: int) -> int:
    return sys.getrefcount(buffers[index])


def _counts_are_exact() -> bool:
    has_lock = getattr(sys, "_is_gil_enabled", None)
    return hasattr(sys, "getrefcount") and (has_lock is None or bool(has_lock()))


_COUNTS_ARE_EXACT: Final = _counts_are_exact()
#: The reference count of a buffer that only the pool refers to.
_ALONE: Final = _references([bytearray()], 0) if _COUNTS_ARE_EXACT else 0


def _keep_what_is_freed() -> None:
    # Objects made from large frames, mostly values, are freed about as fast as they are
    # made. glibc returns more than 128 KiB of free memory at the end of its heap to the
    # system, and has it cleared again page by page, which takes longer than all work on
    # the data. Once it has seen a larger block allocated and freed, it keeps twice the
    # size of that. Without the pool it would have seen one; so allocate one here. The
    # block is never written to, so it costs no memory.
    bytes(_KEPT_BY_LIBRARY // 2)


class _PerThread(local):
    def __init__(self) -> None:
        _keep_what_is_freed()
        self.pool = FramePool()


_PER_THREAD: Final = _PerThread()


def frame_pool() -> FramePool:
    """The pool of the calling thread, which all of its connections share."""
    return _PER_THREAD.pool
