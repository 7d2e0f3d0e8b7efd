"""The example of an administrator's work runs as it stands."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

EXAMPLE = Path(__file__).parents[3] / "examples" / "administration.py"


async def test_it_shows_what_it_does() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, EXAMPLE, stdout=PIPE, stderr=PIPE
    )
    output, errors = (each.decode() for each in await process.communicate())
    # In asyncio's debug mode it tells of slow steps.
    assert (process.returncode, errors.count("Traceback")) == (0, 0), errors
    lines = output.splitlines()
    assert lines[0].startswith("orders: 3 partitions led by [")
    assert lines[1] == "billing is 30 records behind"
    assert [each for each in lines if "would go to offset 0" in each]
    assert len([each for each in lines if " goes to offset 0" in each]) == len(
        [each for each in lines if "would go to offset 0" in each]
    )
    assert lines[-1] == "not there: no-such-topic; deleted: ['orders']"
