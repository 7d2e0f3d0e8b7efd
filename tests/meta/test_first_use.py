"""What a program loads until its first record is written, or read in a group.

An import that loads little is worth nothing if the first call loads the rest.
"""

from __future__ import annotations

import asyncio
import sys

import pytest

from kafkaio.testing import Broker

LOADED = """
print(*sorted(name for name in sys.modules if name.startswith("kafkaio")))
print(*sorted(sys.modules))
"""
WRITE = f"""
import asyncio, sys
from kafkaio import Producer

async def main():
    async with Producer(sys.argv[1]) as producer:
        await producer.send("first-use", b"v", key=b"k")

asyncio.run(main())
{LOADED}"""
READ = f"""
import asyncio, sys
from kafkaio import Consumer

async def main():
    async with Consumer(
        sys.argv[1], topics="first-use", group_id="g", auto_offset_reset="earliest"
    ) as consumer:
        await anext(aiter(consumer))

asyncio.run(main())
{LOADED}"""
#: How many of our modules may be there at the end.
MOST = {WRITE: 123, READ: 182}
#: Of no use to either program: what they would bring takes milliseconds each.
UNUSED = {
    *("kafkaio.admin", "kafkaio.arrow", "kafkaio.testing", "kafkaio._share"),
    *("kafkaio._config.options", "kafkaio.security._tls", "kafkaio._typed_json"),
    *("kafkaio._config.unknown", "kafkaio._config.shown", "json", "sqlite3"),
    *("kafkaio.serde", "kafkaio._net.tls", "kafkaio._records.legacy"),
    *("kafkaio.protocol._api_keys", "kafkaio.protocol.messages._homes"),
    *("kafkaio._machines.reaction_table", "kafkaio.protocol._error_tables"),
    *("kafkaio._client.ports", "kafkaio._client.telemetry.pusher"),
    *("kafkaio.protocol._encoder", "kafkaio.protocol._source", "datetime"),
    *("importlib.metadata", "cramjam", "lz4", "zstandard", "decimal"),
}
NOT_BOTH = {WRITE: "kafkaio._consumer", READ: "kafkaio._producer"}


@pytest.mark.parametrize(
    "program", [pytest.param(WRITE, id="write"), pytest.param(READ, id="read")]
)
async def test_the_first_record_loads_what_it_needs(program: str) -> None:
    async with Broker() as broker:
        await run(WRITE, broker.bootstrap_servers)  # a record to read
        ours, every = await run(program, broker.bootstrap_servers)
    assert not UNUSED & every
    assert not {name for name in ours if name.startswith(NOT_BOTH[program])}
    assert len(ours) <= MOST[program], sorted(ours)


async def run(program: str, servers: str) -> tuple[set[str], set[str]]:
    """Our modules, and all, that are there after a program ran by itself."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program, servers),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, errors = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, errors.decode()
    ours, every = out.decode().splitlines()
    return set(ours.split()), set(every.split())
