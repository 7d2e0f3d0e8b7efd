"""The Python code in a page of the documentation, to be run as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

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
