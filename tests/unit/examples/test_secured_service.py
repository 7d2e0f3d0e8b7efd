"""The example of a service that logs in runs as it stands."""

from __future__ import annotations

import asyncio
import re
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

EXAMPLE = Path(__file__).parents[3] / "examples" / "secured_service.py"


async def test_it_goes_on_through_sessions_and_tells_of_a_wrong_password() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, EXAMPLE, stdout=PIPE, stderr=PIPE
    )
    output, errors = (each.decode() for each in await process.communicate())
    assert (process.returncode, errors.count("Traceback")) == (0, 0), errors
    found = re.search(r"sent (\d+), read (\d+)", output)
    assert found is not None
    assert found[1] == found[2] != "0"
    logins = re.search(r"most logins of a connection: (\d+)", output)
    assert logins is not None
    # Five seconds are two sessions and a half.
    assert int(logins[1]) >= 3
    assert "refused: Authentication failed" in output
    assert "a long secret" not in output + errors
