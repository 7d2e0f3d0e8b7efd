"""Run a suite of another project on kafkaio, and on aiokafka beside.

`nox -s "nightly(aiokafka-suite)"` and its like install what a suite needs and call
this. By hand: ``python -m tests.foreign_suites faststream --broker embedded``.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.foreign_suites.brokers import BROKERS, forwarded, started
from tests.foreign_suites.running import CLIENTS, RunFailed, run
from tests.foreign_suites.sources import SourceMissing, unpack
from tests.foreign_suites.suites import SUITES
from tests.foreign_suites.verdicts import Outcomes, Verdict, counts, judge

DEVIATIONS = Path(__file__).with_name("deviations.toml")


def deviations(name: str) -> dict[str, dict[str, str]]:
    """Return the expected deviations of a suite: by kind, reasons by test."""
    tables = tomllib.loads(DEVIATIONS.read_text(encoding="utf-8"))
    found: dict[str, dict[str, str]] = tables.get(name, {})
    return found


def listed(name: str) -> dict[str, str]:
    """Return all of them in one."""
    kinds = deviations(name).values()
    return {test: reason for kind in kinds for test, reason in kind.items()}


def arguments(words: Sequence[str]) -> argparse.Namespace:
    """Read the command line; what stands behind ``--`` is for pytest."""
    cut = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(prog="tests.foreign_suites")
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--broker", choices=BROKERS, action="append")
    parser.add_argument("--client", choices=CLIENTS, action="append")
    parser.add_argument(
        "--packages", action="store_true", help="print what to install, and end"
    )
    parser.add_argument("--source", type=Path, help="a folder that has the tests")
    rest = argparse.Namespace(pytest=tuple(words[cut + 1 :]))
    return parser.parse_args(words[:cut], rest)


def report(where: str, ended: Mapping[str, Outcomes], verdict: Verdict) -> None:
    """Print the counts of a broker, and what has to be done."""
    for client, outcomes in ended.items():
        print(f"{where}, {client}: {counts(outcomes)}")
    last = [*ended.values()][-1]
    reasons = {name: end.reason for name, end in last.items()}
    print(f"  {len(verdict.listed)} fail as listed in {DEVIATIONS.name}")
    for title, names in (
        ("fails with aiokafka, too", verdict.shared),
        ("FAILS with kafkaio", verdict.unexpected),
        ("is listed, and PASSES", verdict.stale),
        ("is listed, and DID NOT RUN", verdict.unknown),
    ):
        for name in names:
            print(f"  {title}: {name}: {reasons.get(name, '')}")


async def main(words: Sequence[str]) -> int:
    """Run it; return 0 if nothing differs from what is expected."""
    given = arguments(words)
    suite = SUITES[given.suite]
    if given.packages:
        print(*suite.packages, sep="\n")
        return 0
    variable = os.environ.get("KAFKAIO_SUITE_SOURCE")
    source = given.source or (Path(variable) if variable else None)
    expected = {} if given.pytest else listed(given.suite)
    either = deviations(given.suite).get("either", {})
    is_good = True
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / given.suite
        unpack(suite, source, folder)
        for kind in given.broker or BROKERS:
            ended: dict[str, Outcomes] = {}
            for client in given.client or CLIENTS:
                # A fresh broker for each: no topics and groups of the other.
                async with (
                    started(kind, suite.broker_config) as address,
                    forwarded(suite.port, address),
                ):
                    ended[client] = await run(
                        suite, client, address, folder, given.pytest
                    )
            ours, theirs = (ended.get(name, {}) for name in ("kafkaio", "aiokafka"))
            verdict = judge(ours, theirs, expected if ours else {}, either)
            report(f"{given.suite} on {kind}", ended, verdict)
            is_good = is_good and verdict.is_good
    return 0 if is_good else 1


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(main(sys.argv[1:])))
    except (RunFailed, SourceMissing) as error:
        sys.exit(f"tests.foreign_suites: {error}")
