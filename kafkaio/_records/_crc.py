"""The checksum of batches, without the package that has it.

The package ``crc32c`` reads the metadata of what is installed when it is imported,
which takes longer than importing asyncio. Its extension module alone is enough.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import TypeAlias

__all__ = ["crc32c"]

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
    from crc32c import crc32c as packaged  # another layout than those known

    return packaged


#: The CRC-32C of data, continuing that of what came before.
crc32c: Checksum = _load()
