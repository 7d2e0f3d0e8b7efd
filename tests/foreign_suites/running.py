"""Runs the tests of a suite with one of the two clients, in a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Final

from tests.foreign_suites.brokers import Address
from tests.foreign_suites.suites import Suite
from tests.foreign_suites.verdicts import End, Outcome, Outcomes

__all__ = ["CLIENTS", "RunFailed", "run"]

#: The clients under the name aiokafka, that which judges first.
CLIENTS: Final = ("aiokafka", "kafkaio")
_PLUGINS: Final = Path(__file__).with_name("plugins")
#: Exit codes of pytest: all passed, and some failed.
_RAN: Final = (0, 1)
_TEST_SECONDS: Final = 150


class RunFailed(Exception):
    """The run did not come to its end, so that its counts mean nothing."""


async def run(
    suite: Suite,
    client: str,
    address: Address,
    folder: Path,
    arguments: tuple[str, ...] = (),
) -> Outcomes:
    """Run the suite and return how each test ended.

    Args:
        suite: the suite.
        client: one of `CLIENTS`.
        address: where the broker is.
        folder: where the tests are.
        arguments: of pytest, in place of the suite's own tests.

    Raises:
        RunFailed: pytest did not end, or ended otherwise than by its tests.
    """
    outcomes = folder / f"outcomes-{client}.json"
    outcomes.unlink(missing_ok=True)
    plugins = ("suite_run", *suite.plugins)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q"),
        *(f"--timeout={_TEST_SECONDS}", "--tb=short", "--durations=15"),
        "--continue-on-collection-errors",
        *(word for name in plugins for word in ("-p", name)),
        *suite.options,
        *(arguments or suite.tests),
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(
                filter(None, (str(_PLUGINS), os.environ.get("PYTHONPATH")))
            ),
            "KAFKAIO_SUITE_CLIENT": client,
            "KAFKAIO_SUITE_ADDRESS": json.dumps(address._asdict()),
            "KAFKAIO_SUITE_OUTCOMES": str(outcomes),
            "TEST_KAFKA_URL": address.plain,
        },
    )
    try:
        async with asyncio.timeout(suite.minutes * 60):
            code = await process.wait()
    except TimeoutError as error:
        raise RunFailed(f"{client}: longer than {suite.minutes} minutes") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if code not in _RAN or not outcomes.exists():
        raise RunFailed(f"{client}: pytest ended with {code}")
    found = json.loads(outcomes.read_text())
    return {name: End(Outcome(word), reason) for name, (word, reason) in found.items()}
