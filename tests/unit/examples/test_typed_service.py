"""The example of a service with typed topics runs as it stands."""

from __future__ import annotations

import asyncio
import re
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

from tests.support.patience import HANGS

EXAMPLE = Path(__file__).parents[3] / "examples" / "typed_service.py"


async def test_it_bills_orders_of_two_schemas_and_keeps_what_is_none() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", EXAMPLE, "--records", "40"),
        stdout=PIPE,
        stderr=PIPE,
    )
    async with asyncio.timeout(HANGS):
        output, errors = (each.decode() for each in await process.communicate())
    assert (process.returncode, errors.count("Traceback")) == (0, 0), output + errors
    assert output.startswith("ready\n")
    assert "40 of 40 orders billed, 20 in euros" in output
    assert "dead letter: [b'no order at all']" in output
    refused = re.search(r"^refused: (.+)$", output, re.MULTILINE)
    assert refused is not None
    assert "cents" in refused[1] or "ncompatible" in refused[1]
    requests = re.search(r"requests to the registry: (\d+)", output)
    assert requests is not None
    # Three schemas are registered, and one refused; none is asked for each record.
    assert int(requests[1]) <= 10
