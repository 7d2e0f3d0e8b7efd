"""Caches of a registry against models that are obviously right."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from kafkaio.registry._cache import AgingCache, IdentityCache, LruCache

KEYS = st.integers(0, 6)


@given(
    size=st.integers(1, 4),
    steps=st.lists(st.tuples(st.sampled_from(["get", "put", "drop"]), KEYS)),
)
def test_a_full_cache_keeps_what_was_used_last(
    size: int, steps: list[tuple[str, int]]
) -> None:
    cache: LruCache[int, int] = LruCache(size)
    # The oldest first.
    model: list[int] = []
    for number, (step, key) in enumerate(steps):
        if step == "put":
            model = [each for each in model if each != key] + [key]
            model = model[-size:]
            cache.put(key, number)
        elif step == "drop":
            model = [each for each in model if each != key]
            cache.drop(key)
        else:
            assert (cache.get(key) is not None) is (key in model)
            if key in model and len(model) == size:
                model = [each for each in model if each != key] + [key]
        assert len(cache) == len(model) <= size
    assert {key for key in range(7) if cache.get(key) is not None} == {*model}


def test_uses_are_counted() -> None:
    cache: LruCache[str, int] = LruCache(2)
    cache.put("a", 1)
    assert [cache.get("a"), cache.get("b"), cache.get("a")] == [1, None, 1]
    assert (cache.hits, cache.misses) == (2, 1)


def test_keys_are_dropped_by_a_condition() -> None:
    cache: LruCache[int, int] = LruCache(9)
    for key in range(6):
        cache.put(key, key)
    cache.drop_where(lambda key: key % 2 == 0)
    assert [key for key in range(6) if cache.get(key) is not None] == [1, 3, 5]
    cache.clear()
    assert not len(cache)


@given(
    life=st.sampled_from([0.0, 1.5, 3.0, math.inf]),
    steps=st.lists(
        st.tuples(st.sampled_from(["get", "put"]), KEYS, st.floats(-1, 2)), max_size=30
    ),
)
def test_a_value_is_kept_for_its_life(
    life: float, steps: list[tuple[str, int, float]]
) -> None:
    cache: AgingCache[int, int] = AgingCache(100, life)
    born: dict[int, float] = {}
    now = 0.0
    for step, key, passed in steps:
        # A clock that goes back is one of another event loop.
        now += passed
        if step == "put":
            cache.put(key, key, now)
            born[key] = now
            continue
        is_young = key in born and 0 <= now - born[key] < life
        assert cache.get(key, now) == (key if is_young else None)
        if not is_young:
            born.pop(key, None)
    assert len(cache) <= len(born) or life == 0


def test_the_same_object_is_found_and_an_equal_one_is_not() -> None:
    cache: IdentityCache[list[int], str] = IdentityCache(2)
    one, equal = [1], [1]
    cache.put("a", one, "found")
    assert cache.get("a", one) == "found"
    assert cache.get("a", equal) is None
    assert cache.get("b", one) is None
    assert cache.hits == 1


def test_an_object_that_is_gone_has_no_heir() -> None:
    # CPython gives the id of an object that was collected to the next one.
    cache: IdentityCache[list[int], int] = IdentityCache(1_000)
    for number in range(500):
        cache.put("a", [number], number)
    assert all(cache.get("a", [number]) is None for number in range(500))


@pytest.mark.parametrize("size", [1, 3])
def test_an_identity_cache_is_bounded(size: int) -> None:
    cache: IdentityCache[list[int], int] = IdentityCache(size)
    kept = [[number] for number in range(10)]
    for number, key in enumerate(kept):
        cache.put("a", key, number)
    found = [cache.get("a", key) for key in kept]
    assert found[-1] == 9
    assert sum(each is not None for each in found) <= size
