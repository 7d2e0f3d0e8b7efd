"""The program of the guide runs as it is printed."""

from __future__ import annotations

from tests.pages import python_blocks, run_block


async def test_the_program_of_the_guide() -> None:
    blocks = python_blocks("guide/testing.md")
    (program,) = [block for block in blocks if "SchemaRegistry()" in block]
    names = await run_block(program)
    assert names["registry"].count("POST *") == 3
