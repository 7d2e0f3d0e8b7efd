"""Runs declarative pipelines by Spark's own command."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pyspark

ROOT = Path(__file__).parents[2]


async def spark_pipelines(
    spec: Path, environment: Mapping[str, str]
) -> tuple[int | None, str]:
    """Run a pipeline; return the exit code and the output.

    If the call is cancelled, the processes of Spark are killed.
    """
    home = Path(pyspark.__file__).parent
    process = await asyncio.create_subprocess_exec(
        *(home / "bin/spark-pipelines", "run", "--spec", spec),
        cwd=spec.parent,
        env=os.environ
        | {
            "PYTHONPATH": str(ROOT),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            **environment,
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = await process.communicate()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, output.decode()
