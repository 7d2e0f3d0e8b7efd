"""Caches with a bound: of values that stay true, and of those that age.

State machines without a clock. Each call of a dict is atomic, and nothing here depends
on two of them, so caches may be used in several threads at once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """Keeps the values that were used last.

    Args:
        size: how many values it keeps; 1 at least.
    """

    __slots__ = ("_found", "_size", "hits", "misses")

    def __init__(self, size: int) -> None:
        self._size = size
        # The order is that of the last use.
        self._found: OrderedDict[K, V] = OrderedDict()
        self.hits = 0
        self.misses = 0

    def __len__(self) -> int:
        return len(self._found)

    def get(self, key: K) -> V | None:
        """Return the value of a key, or None."""
        try:
            value = self._found[key]
            # Raises if another thread dropped it in between: as if it had come before.
            self._found.move_to_end(key)
        except KeyError:
            self.misses += 1
            return None
        self.hits += 1
        return value

    def put(self, key: K, value: V) -> None:
        """Keep a value; the one that was not used for longest may be dropped."""
        self._found[key] = value
        with suppress(KeyError):
            self._found.move_to_end(key)
            while len(self._found) > self._size:
                self._found.popitem(last=False)

    def drop(self, key: K) -> None:
        """Forget the value of a key, if there is one."""
        self._found.pop(key, None)

    def drop_where(self, condition: Callable[[K], bool]) -> None:
        """Forget the values of all keys for which a function returns true."""
        for key in [*self._found]:
            if condition(key):
                self._found.pop(key, None)

    def clear(self) -> None:
        """Forget everything."""
        self._found.clear()


class AgingCache(Generic[K, V]):
    """Keeps values for a time.

    Args:
        size: how many values it keeps; 1 at least.
        life: seconds after which a value is dropped; 0 keeps none, infinity keeps each
            until there is no more space.
    """

    __slots__ = ("_life", "_values")

    def __init__(self, size: int, life: float) -> None:
        self._life = life
        self._values: LruCache[K, tuple[float, V]] = LruCache(size)

    def __len__(self) -> int:
        return len(self._values)

    @property
    def hits(self) -> int:
        """How often a value was there, young or old."""
        return self._values.hits

    @property
    def misses(self) -> int:
        """How often no value was there."""
        return self._values.misses

    def get(self, key: K, now: float) -> V | None:
        """Return the value of a key, or None if there is none, or an old one.

        Args:
            key: the key.
            now: the time in seconds, on the clock of all calls.
        """
        found = self._values.get(key)
        if found is None:
            return None
        born, value = found
        # Another clock may have gone before this one: then the age is not known.
        if 0 <= now - born < self._life:
            return value
        self._values.drop(key)
        return None

    def put(self, key: K, value: V, now: float) -> None:
        """Keep a value from now on."""
        if self._life > 0:
            self._values.put(key, (now, value))

    def drop(self, key: K) -> None:
        """Forget the value of a key, if there is one."""
        self._values.drop(key)

    def clear(self) -> None:
        """Forget everything."""
        self._values.clear()
