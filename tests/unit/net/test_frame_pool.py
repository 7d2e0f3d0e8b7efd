"""Memory is lent to one at a time, whatever is done with the views of it."""

from __future__ import annotations

import mmap
import threading

import pytest
from hypothesis import given, strategies as st

from kafkaio._net import frame_pool as module
from kafkaio._net.frame_pool import KEPT_BYTES, FramePool, frame_pool

STEP = 65_536
LIMIT = 6 * STEP


def address(view: memoryview) -> int:
    return id(view.obj)


def test_memory_is_used_again_once_nobody_refers_to_it():
    pool = FramePool(LIMIT)
    view = pool.take(100_000)
    assert len(view) == 100_000
    first = address(view)
    part = view[50:60].toreadonly()
    del view
    other = pool.take(100_000)
    assert address(other) != first
    del part
    again = pool.take(90_000)
    assert address(again) == first
    assert len(again) == 90_000
    assert repr(pool) == f"<FramePool {2 * 2 * STEP} bytes lent | {2 * 2 * STEP} kept>"
    del other, again
    assert not pool.lent
    assert pool.kept == 2 * 2 * STEP


def test_small_frames_do_not_take_large_memory():
    pool = FramePool(LIMIT)
    pool.take(5 * STEP)
    small = pool.take(STEP)
    assert len(small.obj) == STEP  # type: ignore[arg-type]
    assert pool.kept == 6 * STEP
    assert len(pool.take(4 * STEP).obj) == 5 * STEP  # type: ignore[arg-type]


def test_what_fits_best_is_taken():
    pool = FramePool(LIMIT)
    views = [pool.take(2 * STEP), pool.take(STEP), pool.take(3 * STEP)]
    addresses = [address(view) for view in views]
    views.clear()
    assert address(pool.take(STEP - 1)) == addresses[1]
    assert address(pool.take(2 * STEP)) == addresses[0]


def test_what_nobody_uses_is_given_back_beyond_the_limit():
    pool = FramePool(LIMIT)
    views = [pool.take(4 * STEP) for _ in range(3)]
    first = address(views[0])
    pool.tidy()
    assert pool.kept == 12 * STEP
    views.clear()
    pool.tidy()
    assert pool.kept == 4 * STEP
    assert address(pool.take(4 * STEP)) == first
    small = pool.take(STEP)
    large = [pool.take(5 * STEP), pool.take(5 * STEP)]
    large.clear()
    assert pool.kept == 15 * STEP
    other = pool.take(6 * STEP)  # too much for what is there, which makes way
    assert pool.kept == 11 * STEP
    assert pool.lent == [STEP, 6 * STEP]
    assert address(small) != address(other)


def test_what_is_lent_beyond_all_measure_is_not_used_again():
    pool = FramePool(LIMIT)
    views = [pool.take(5 * STEP) for _ in range(4)]
    assert pool.kept == 20 * STEP
    views.append(pool.take(5 * STEP))
    assert len(views[-1]) == 5 * STEP
    assert len({*map(address, views)}) == 5
    assert pool.kept == 20 * STEP
    pool.take(4 * STEP)
    assert pool.kept == 24 * STEP


@pytest.mark.skipif(not hasattr(mmap, "MADV_HUGEPAGE"), reason="no large pages")
def test_large_memory_comes_in_large_pages(monkeypatch):
    asked = []

    class Memory(mmap.mmap):
        def __new__(cls, fileno: int, length: int, **options: int):
            asked.append(length)
            return super().__new__(cls, fileno, length, **options)

    monkeypatch.setattr(mmap, "mmap", Memory)
    view = FramePool().take(4 * 2**20 + 191)
    # A multiple of large pages, which so begins at one; what is too much is cut off.
    assert asked == [6 * 2**20]
    assert len(view.obj) == 4 * 2**20 + STEP  # type: ignore[arg-type]


def test_memory_is_always_fresh_where_references_cannot_be_counted(monkeypatch):
    monkeypatch.setattr(module, "_COUNTS_ARE_EXACT", False)
    pool = FramePool(LIMIT)
    assert len(pool.take(STEP)) == STEP
    assert pool.kept == 0
    monkeypatch.setattr(module.sys, "_is_gil_enabled", lambda: False, raising=False)
    assert not module._counts_are_exact()
    monkeypatch.setattr(module.sys, "_is_gil_enabled", lambda: True)
    assert module._counts_are_exact()


def test_each_thread_has_a_pool():
    found: list[FramePool] = []
    thread = threading.Thread(target=lambda: found.append(frame_pool()))
    thread.start()
    thread.join()
    assert frame_pool() is frame_pool()
    assert found[0] is not frame_pool()
    assert KEPT_BYTES >= 4 * 2**20


@given(
    st.lists(
        st.tuples(
            st.integers(1, 7 * STEP), st.integers(0, 5), st.booleans(), st.booleans()
        ),
        max_size=30,
    )
)
def test_no_two_lent_pieces_overlap(steps: list[tuple[int, int, bool, bool]]) -> None:
    """Take some, keep a part of it only or all, drop any: what is kept stays."""
    pool = FramePool(LIMIT)
    kept: list[tuple[memoryview, int]] = []
    for number, (size, which, cuts, drops) in enumerate(steps):
        view = pool.take(size)
        assert len(view) == size
        mark = number % 251
        for place in (0, size // 2, size - 1):
            view[place] = mark
        if cuts:
            view = view[size // 2 :][:1].toreadonly()
        kept.append((view, mark))
        if drops:
            kept.pop(which % len(kept))
        del view
        assert pool.kept <= 4 * LIMIT
        pool.tidy()
        assert pool.kept - sum(pool.lent) <= LIMIT
        assert all(view[0] == mark == view[-1] for view, mark in kept)
