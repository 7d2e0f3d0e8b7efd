"""The hash that decides the partition of a key: the pure twin."""

from __future__ import annotations

from functools import lru_cache
from struct import unpack

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF
_LONGEST_CACHED_KEY = 64


def murmur2(data: bytes) -> int:
    """Hash bytes as Java's ``Utils.murmur2`` does; the result is a signed 32-bit int.

    The arithmetic is that of the reference: everything modulo 2**32, and bytes of the
    tail are unsigned (Java masks each with 0xff).
    """
    length = len(data)
    h = _SEED ^ (length & _MASK)
    words, tail = divmod(length, 4)
    for k in unpack(f"<{words}I", data[: words * 4]) if words else ():
        k = (k * _M) & _MASK
        h = ((h * _M) & _MASK) ^ (((k ^ (k >> 24)) * _M) & _MASK)
    if tail:
        h = ((h ^ int.from_bytes(data[words * 4 :], "little")) * _M) & _MASK
    h = ((h ^ (h >> 13)) * _M) & _MASK
    h ^= h >> 15
    return h - 0x100000000 if h & 0x80000000 else h


# Keys repeat, and a hit takes a tenth of the time of a hash. The cache has an entry for
# each key, so long keys are left out.
_cached_murmur2 = lru_cache(maxsize=4096)(murmur2)


def key_partition(key: bytes, count: int) -> int:
    """Return the partition of a key among ``count`` partitions, as Java computes it.

    An empty key is hashed, too. As in Java, the sign bit of the hash is cleared (it is
    not the absolute value).
    """
    if len(key) <= _LONGEST_CACHED_KEY:
        return (_cached_murmur2(key) & 0x7FFFFFFF) % count
    return (murmur2(key) & 0x7FFFFFFF) % count
