"""Runs a program of the README as a newcomer does, on the embedded broker.

``python first_program.py README.md``, by the Python of an environment in which nothing
but kafkaio is installed, and in a directory that is no checkout.
"""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

import kafkaio
from kafkaio.testing import Broker

SERVERS = '"localhost:9092"'
#: What the program prints when it has read what it has written.
LAST = b"b'customer-7' b'two apples'"
LIMIT = 60


def first_program(readme: str) -> str:
    """Return the first Python program of a page."""
    found = re.search(r"^```python\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    assert found is not None
    assert found[1].count(SERVERS) == 2
    return found[1]


async def main(program: str) -> None:
    """Run it until it has printed its record.

    Raises:
        RuntimeError: it ended before.
        TimeoutError: it takes a minute.
    """
    async with Broker() as broker, asyncio.timeout(LIMIT):
        await _run(program.replace(SERVERS, repr(broker.bootstrap_servers)))


async def _run(program: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-u", "-c", program), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        async for line in process.stdout:
            print(line.decode().rstrip())
            if line.strip() == LAST:
                return
        raise RuntimeError("the program ended before it had read its record")
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


if __name__ == "__main__":
    print(kafkaio.__version__, kafkaio.__file__, kafkaio.accelerated)
    asyncio.run(main(first_program(Path(sys.argv[1]).read_text("utf-8"))))
