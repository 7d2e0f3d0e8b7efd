"""The blocks of code in docstrings, to be run as they stand there."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path(__file__).parent.parent
#: The package, and what of the tests others are told to use.
_FOLDERS = ("kafkaio", "tests/sim", "tests/support")
#: A paragraph that ends in ``::``, or is nothing else, and the indented lines after it.
_BLOCK = re.compile(r"::\n\n((?:(?:    .*)?\n)+)")


def blocks() -> Iterator[tuple[str, str]]:
    """Every block of every docstring outside of the messages' own modules.

    Yields:
        Where it is, as ``module`` or ``module:Class.function``, and the code.
    """
    files = (file for name in _FOLDERS for file in (_ROOT / name).rglob("*.py"))
    for file in sorted(files):
        parts = file.relative_to(_ROOT).with_suffix("").parts
        module = ".".join(parts).removesuffix(".__init__")
        if not module.startswith("kafkaio.protocol.messages."):
            text = file.read_text(encoding="utf-8")
            if "::\n\n" in text or ">>>" in text:  # as few: parsing takes long
                yield from _of(ast.parse(text), module, ":")


def _of(node: ast.AST, name: str, separator: str) -> Iterator[tuple[str, str]]:
    if isinstance(
        node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    ):
        text = ast.get_docstring(node) or ""
        for code in _BLOCK.findall(text + "\n"):
            yield name, textwrap.dedent(code)
        assert ">>>" not in text, f"{name}: write a block of code, which is run"
    for child in ast.iter_child_nodes(node):
        inner = getattr(child, "name", None)
        if isinstance(inner, str):
            yield from _of(child, f"{name}{separator}{inner}", ".")


async def run(code: str, names: dict[str, object]) -> None:
    """Run a block, in which ``await`` may stand outside of functions."""
    compiled = compile(code, "<docstring>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    done = eval(compiled, names)
    if inspect.isawaitable(done):
        await done
