"""Caches with a bound: of values that stay true, and of values that age.

State machines without a clock. Each call of a dict is atomic, and nothing here depends
on two of them, so caches may be used in several threads at once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import TypeVar

from kafkaio._generic import Generic

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """Keeps the values that were used last.

    How often and when they are used counts from when it is full: before, a use costs
    one look-up alone.

    Args:
        size: how many values it keeps; 1 at least.
    """

    __slots__ = ("_found", "_size", "hits", "misses")

    def __init__(self, size: int) -> None:
        self._size = size
        # The last value is the one that was used or added last.
        self._found: OrderedDict[K, V] = OrderedDict()
        self.hits = 0
        self.misses = 0

    def __len__(self) -> int:
        return len(self._found)

    def get(self, key: K) -> V | None:
        """Return the value of a key, or None."""
        try:
            value = self._found[key]
            if len(self._found) >= self._size:
                # Raises if another thread dropped it: as if it had come before.
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


class IdentityCache(Generic[K, V]):
    """Finds values by a text and an object, without its ``__hash__`` and ``__eq__``.

    It stands before a cache that compares, and is for callers that use the same object
    again and again.

    Args:
        size: how many values it keeps; it forgets all when there are more.
    """

    __slots__ = ("_found", "_size", "hits")

    def __init__(self, size: int) -> None:
        self._size = size
        # Invariant: an object is kept with its value, so that no other one can get its
        # id.
        self._found: dict[tuple[str, int], tuple[K, V]] = {}
        self.hits = 0

    def get(self, name: str, key: K) -> V | None:
        """Return the value of this text and this object, or None."""
        found = self._found.get((name, id(key)))
        if found is None:
            return None
        self.hits += 1
        return found[1]

    def put(self, name: str, key: K, value: V) -> None:
        """Keep a value."""
        if len(self._found) >= self._size:
            self._found.clear()
        self._found[name, id(key)] = key, value

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

    __slots__ = ("_life", "_values", "hits", "misses")

    def __init__(self, size: int, life: float) -> None:
        self._life = life
        self._values: LruCache[K, tuple[float, V]] = LruCache(size)
        self.hits = 0
        self.misses = 0

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K, now: float) -> V | None:
        """Return the value of a key, or None if there is none, or an old one.

        Args:
            key: the key.
            now: the time in seconds, on the clock of all calls.
        """
        found = self._values.get(key)
        if found is not None:
            born, value = found
            # Another clock may have gone before this one: then the age is not known.
            if 0 <= now - born < self._life:
                self.hits += 1
                return value
            self._values.drop(key)
        self.misses += 1
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
