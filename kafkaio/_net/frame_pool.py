"""Memory for large frames, used again as soon as nobody refers to it.

Fresh memory is dear: the system clears every page of it, and again after each time
that it was given back. So memory comes from the system as it is, and nobody clears it
once more; in large pages where there are such, which come a good deal cheaper.

What is decoded from a frame refers to its memory, through views, and may do so for as
long as it likes; so memory is never given back to the pool. The pool sees by the count
of references that all views of it are gone. What it lent is counted where it is used
(the byte budget of a consumer); the pool bounds what it keeps beside that.
"""

from __future__ import annotations

import contextlib
import mmap
import sys
from threading import local
from typing import Final

__all__ = ["KEPT_BYTES", "FramePool", "frame_pool"]

#: Bytes that a thread's pool keeps at most for nobody.
KEPT_BYTES: Final = 24 * 2**20
#: What is lent beyond so many times as much is not used again.
_MOST_LENT: Final = 4
#: A buffer may be so many times as large as what is asked for.
_SLACK: Final = 2
#: Frames that are no smaller get memory in large pages, where the system has these.
_LARGE_PAGE: Final = 2 * 2**20
#: What the C library is made to keep half of; see `_keep_what_is_freed`.
_KEPT_BY_LIBRARY: Final = 32 * 2**20
#: New buffers are a little too large, so that they fit frames of about that size.
_STEP: Final = 65_536


class FramePool:
    """Lends memory, and lends it again when the last view of it is gone.

    It must be used by one thread only. Where references cannot be counted exactly
    (PyPy, or CPython without its global lock) memory is always fresh.

    Args:
        limit: bytes to keep that nobody uses.

    Attributes:
        kept: bytes that are lent, and may be used again, or kept for nobody.
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
        """The sizes of the memory kept that somebody still refers to."""
        free = self._free()
        return [len(b) for i, b in enumerate(self._buffers) if i not in free]

    def take(self, size: int) -> memoryview:
        """Memory of ``size`` bytes that nobody else refers to; it may hold anything."""
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
        """Give the system back what nobody uses, beyond the limit."""
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
    if sys.platform == "win32":
        return mmap.mmap(-1, size)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    if size < _LARGE_PAGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return mmap.mmap(-1, size, flags=flags)
    # Linux lets memory begin at a large page only if it is a multiple of one. What is
    # too much is cut off: an answer to a fetch is a multiple of 1 MiB and its header,
    # for whose few bytes a large page would be cleared.
    memory = mmap.mmap(-1, _rounded_up(size, _LARGE_PAGE), flags=flags)
    with contextlib.suppress(OSError):  # a kernel that was built without them
        memory.madvise(mmap.MADV_HUGEPAGE)
    memory.resize(size)
    return memory


def _rounded_up(size: int, step: int) -> int:
    return -(-size // step) * step


def _references(buffers: list[mmap.mmap], index: int) -> int:
    return sys.getrefcount(buffers[index])


def _counts_are_exact() -> bool:
    has_lock = getattr(sys, "_is_gil_enabled", None)
    return hasattr(sys, "getrefcount") and (has_lock is None or bool(has_lock()))


_COUNTS_ARE_EXACT: Final = _counts_are_exact()
#: What the count is for a buffer that only the pool refers to.
_ALONE: Final = _references([mmap.mmap(-1, 1)], 0) if _COUNTS_ARE_EXACT else 0


def _keep_what_is_freed() -> None:
    # What is made of large frames, values most of all, is freed about as fast as it
    # is made. glibc gives free memory at the end of its heap back to the system from
    # 128 KiB on, and has it cleared again page by page, which takes longer than all
    # that is done to the data; unless it has seen a larger block come and go, as it
    # would have without the pool: then it keeps twice as much. This block is never
    # touched, so it costs no memory.
    bytes(_KEPT_BY_LIBRARY // 2)


class _PerThread(local):
    def __init__(self) -> None:
        _keep_what_is_freed()
        self.pool = FramePool()


_PER_THREAD: Final = _PerThread()


def frame_pool() -> FramePool:
    """The pool of the thread that asks: all of its connections share it."""
    return _PER_THREAD.pool
