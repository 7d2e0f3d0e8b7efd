"""The Python code in a page of the documentation, to be run as it stands there."""

from __future__ import annotations

import inspect
import re
import sys
from ast import PyCF_ALLOW_TOP_LEVEL_AWAIT
from pathlib import Path
from types import ModuleType
from typing import Any

_DOCS = Path(__file__).parents[1] / "docs"
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def python_blocks(page: str, replace: dict[str, str] | None = None) -> list[str]:
    """Read the blocks of a page, named as below ``docs``.

    Args:
        page: such as ``howto/tls.md``.
        replace: what stands in place of words of the page, such as an address.
    """
    blocks: list[str] = _BLOCK.findall((_DOCS / page).read_text(encoding="utf-8"))
    for old, new in (replace or {}).items():
        blocks = [block.replace(old, new) for block in blocks]
    return blocks


async def run_block(block: str, names: dict[str, Any] | None = None) -> dict[str, Any]:
    """Run a block, which may have ``await`` outside of functions, and its ``main``.

    Args:
        block: the code.
        names: what it finds; those that it defines are added.

    Returns:
        The names.
    """
    module = ModuleType("page")  # the classes of a page are looked up in it
    module.__dict__.update(names or {})
    sys.modules["page"] = module
    has_main = "async def main()" in block
    # Without the future of this module, or annotations would be other than printed.
    code = compile(
        block, "<page>", "exec", PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True
    )
    done = eval(code, module.__dict__)
    if inspect.isawaitable(done):
        await done
    if has_main:
        await module.__dict__["main"]()
    if names is None:
        return module.__dict__
    names.update(module.__dict__)
    return names
