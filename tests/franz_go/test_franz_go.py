"""The tests of franz-go, a client in Go, against the embedded broker.

`nox -s "nightly(franz-go)"` runs them. Go fetches a released version of the module and
compiles its tests; none of its code is kept here. Variables of the environment set the
number of records, and where the brokers are (``pkg/kgo/helpers_test.go`` of franz-go).
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from kafkaio.testing import Broker
from tests.support import share_workers

pytestmark = pytest.mark.timeout(900)

MODULE: Final = "github.com/twmb/franz-go"
PACKAGE: Final = f"{MODULE}/pkg/kgo"
VERSION: Final = "v1.22.3"
RECORDS: Final = 20_000
#: Chains of consumers that copy a topic twice, while members come and leave: by group,
#: and in transactions.
CHAINS: Final = ("TestGroupETL", "TestTxnEtl")
#: The group protocols of the chains, as franz-go's subtests name them.
CLASSIC: Final = ("range", "cooperative-sticky", "cooperative-sticky/static")
KIP_848: Final = ("range/848", "sticky/848", "sticky/848/static")
_ENDED: Final = re.compile(r"^\s*--- (PASS|FAIL|SKIP): (\S+)", re.MULTILINE)


class Compiled(NamedTuple):
    """The compiled tests, the folder of their source, and a worker of share groups."""

    program: Path
    folder: Path
    worker: Path


def go(*arguments: str, folder: Path) -> str:
    """Run a command of Go and return what it writes."""
    done = subprocess.run(
        ["go", *arguments], cwd=folder, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.strip()


@pytest.fixture(scope="module")
def kgo(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    folder = tmp_path_factory.mktemp("franz-go")
    go("mod", "init", "example.com/tests", folder=folder)
    go("get", f"{PACKAGE}@{VERSION}", folder=folder)
    program = folder / "kgo.test"
    go("test", "-c", "-o", str(program), PACKAGE, folder=folder)
    module = go("list", "-m", "-f", "{{.Dir}}", MODULE, folder=folder)
    worker = folder / "worker"
    shutil.copy(Path(__file__).with_name("share_worker.go"), folder / "main.go")
    go("build", "-o", str(worker), ".", folder=folder)
    return Compiled(program, Path(module) / "pkg/kgo", worker)


async def run(kgo: Compiled, broker: Broker, pattern: str) -> Mapping[str, str]:
    """Run the tests whose name the pattern finds; return how each of them ended."""
    process = await asyncio.create_subprocess_exec(
        kgo.program,
        f"-test.run={pattern}",
        "-test.v",
        "-test.timeout=800s",
        cwd=kgo.folder,
        env={
            **os.environ,
            "KGO_SEEDS": broker.bootstrap_servers,
            "KGO_TEST_RECORDS": str(RECORDS),
            "KGO_LOG_LEVEL": "none",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        written, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    text = written.decode(errors="replace")
    assert process.returncode == 0, text[-20_000:]
    return {name: ended for ended, name in _ENDED.findall(text)}


@pytest.mark.parametrize("release", ["2.8", "3.9", "4.0", "4.3", "4.4"])
async def test_chains_of_consumers(kgo: Compiled, release: str) -> None:
    async with Broker(nodes=3, as_version=release) as broker:
        ended = await run(kgo, broker, f"^({'|'.join(CHAINS)})$")
    has_848 = release >= "4.0"
    passed = {*CHAINS, *(f"{c}/{p}" for c in CHAINS for p in CLASSIC)}
    if has_848:
        passed |= {f"{c}/{p}" for c in CHAINS for p in KIP_848}
    assert passed <= {name for name, how in ended.items() if how == "PASS"}


#: Chains of share consumers that accept, release and reject, while members come and
#: are closed; acknowledgements at the end; offsets that are altered.
SHARED: Final = (
    "TestShareGroup",
    "TestShareGroupETL",
    "TestShareGroupAckOnClose",
    "TestShareGroupOffsetsAdmin",
)


@pytest.mark.parametrize("release", ["4.2", "4.4"])
async def test_share_groups(kgo: Compiled, release: str) -> None:
    async with Broker(nodes=3, as_version=release) as broker:
        ended = await run(kgo, broker, f"^({'|'.join(SHARED)})$")
    assert {ended.get(name) for name in SHARED} == {"PASS"}


async def test_a_share_consumer(kgo: Compiled) -> None:
    config = {
        "group.share.min.heartbeat.interval.ms": 100,
        "group.share.heartbeat.interval.ms": 200,
    }
    topics = {share_workers.TOPIC: share_workers.PARTITIONS}
    async with Broker(nodes=3, topics=topics, config=config) as broker:
        await share_workers.check_work([kgo.worker], broker)


async def test_everything(kgo: Compiled) -> None:
    # Logins need brokers of their own: it skips them.
    async with Broker(nodes=3) as broker:
        ended = await run(kgo, broker, ".")
    skipped = {name for name, how in ended.items() if how == "SKIP"}
    others = {name for name in skipped if not re.search("SCRAM|OAuth", name)}
    assert others <= {"TestIssueProduceBrokerTooOldFailsRecords"}
    assert "FAIL" not in ended.values()
    assert {name for name, how in ended.items() if how == "PASS"} >= set(CHAINS)
