"""The checksum of batches, CRC-32C, from the extension module of package ``crc32c``.

It serves the codec in pure Python; the compiled codec computes checksums by itself.

The package itself reads the metadata of installed distributions when it is imported,
which takes longer than importing asyncio. So only its extension module is loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import TypeAlias

Checksum: TypeAlias = Callable[..., int]


def _load() -> Checksum:
    package = find_spec("crc32c")
    if package is not None and package.submodule_search_locations:
        places = list(package.submodule_search_locations)
        spec = PathFinder.find_spec("crc32c._crc32c", places)
        if spec is not None and spec.loader is not None:
            module = module_from_spec(spec)
            spec.loader.exec_module(module)
            if hasattr(module, "crc32c"):
                found: Checksum = module.crc32c
                return found
    # The package has another layout, perhaps in a later version.
    from crc32c import crc32c as packaged

    return packaged


#: ``crc32c(data, value=0)``: the CRC-32C of data, continued from a previous value.
crc32c: Checksum = _load()


def crc32c_over(difference: int, size: int) -> int:
    """Return what a difference between two checksums becomes behind more data.

    If ``a`` and ``b`` have the same length, and ``c`` has ``size`` bytes, then
    ``crc32c(a + c) ^ crc32c(b + c)`` is ``crc32c_over(crc32c(a) ^ crc32c(b), size)``,
    whatever ``c`` is.

    Args:
        difference: the exclusive or of two checksums.
        size: the number of bytes that follow.
    """
    # Whatever the data are, so of zeros: the map is linear.
    zeros = bytes(size)
    return crc32c(zeros, difference) ^ crc32c(zeros)
