"""``kafkaio broker``: it says what it is, serves, and ends at a signal."""

import asyncio
import signal
import sys

import kafkaio


async def test_it_serves_until_it_is_told_to_end() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "kafkaio", "broker", "--port", "0", "--nodes", "2"),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(30):
            first = (await process.stdout.readline()).decode()
            second = (await process.stdout.readline()).decode()
        assert "for development and tests only" in first
        servers = second.removeprefix("listening at ").strip()
        assert len(servers.split(",")) == 2
        async with kafkaio.Producer(servers) as producer:
            meta = await producer.send("orders", b"v")
        assert meta.offset == 0
    finally:
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(30):
            code = await process.wait()
    assert code == 0
