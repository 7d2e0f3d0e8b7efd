"""The example of deferred revocation, run as a user runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import anyio
import pytest

EXAMPLE = Path(__file__).parents[3] / "examples" / "deferred_revoke.py"


@pytest.mark.parametrize("form", ["loop", "events"])
async def test_no_order_is_done_twice(form: str) -> None:
    options = ["--form", form, "--orders", "300", "--seconds", "0.4"]
    options += ["--protocol", "classic"]  # the brokers set slow heartbeats for KIP-848
    command = [sys.executable, "-W", "error", str(EXAMPLE), *options]
    with anyio.fail_after(60):
        done = await anyio.run_process(command, check=False, stderr=subprocess.STDOUT)
    output = done.stdout.decode()
    assert done.returncode == 0, output
    assert "300 of 300 orders done, 0 of them twice, 0 partitions lost" in output
    joined = output.partition("member-3 joins")[2].partition("member-3 was")[0]
    assert "is requested to release" in joined
    assert " released " in joined
