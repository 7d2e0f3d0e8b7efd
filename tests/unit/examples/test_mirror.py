"""The example of a mirror runs as it stands."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

EXAMPLE = Path(__file__).parents[3] / "examples" / "mirror.py"


async def test_it_copies_once() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, EXAMPLE, stdout=PIPE, stderr=PIPE
    )
    output, errors = (each.decode() for each in await process.communicate())
    assert (process.returncode, errors.count("Traceback")) == (0, 0), errors
    assert output.splitlines() == [
        "copied: {0: 0, 100: 100, 200: 200}",
        "copied again: {}",
    ]
