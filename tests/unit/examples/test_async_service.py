"""The example of a service, run as a user runs it."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from pathlib import Path

import kafkaio
from kafkaio.testing import Broker

EXAMPLE = Path(__file__).parents[3] / "examples" / "async_service.py"
ORDERS = 300


async def start(bootstrap: str) -> Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", str(EXAMPLE)),
        *("--bootstrap", bootstrap, "--seconds", "0.01"),
        stdout=PIPE,  # on stderr asyncio may report that the machine is slow
    )


async def serve(bootstrap: str, done: Counter[bytes], enough: int) -> None:
    """Run the service until so many orders are done in total, then stop it."""
    process = await start(bootstrap)
    assert process.stdout is not None
    output = []
    async for line in process.stdout:
        output.append(line)
        if line.startswith(b"done "):
            done[line] += 1
            if done.total() == enough:
                process.send_signal(signal.SIGTERM)
    assert await process.wait() == 0, output
    assert output[0] == b"ready\n"
    assert output[-1].startswith(b"stopped after"), output


async def test_it_stops_cleanly_and_goes_on_where_it_stopped() -> None:
    done = Counter[bytes]()
    async with Broker(topics={"orders": 4}) as broker:
        async with kafkaio.Producer(broker.bootstrap_servers) as producer:
            orders = [
                kafkaio.NewRecord(b"%d" % n, key=b"%d" % (n % 20))
                for n in range(ORDERS)
            ]
            await producer.send_many("orders", orders)
        async with asyncio.timeout(60):
            await serve(broker.bootstrap_servers, done, ORDERS // 3)
            assert ORDERS // 3 <= done.total() < ORDERS
            await serve(broker.bootstrap_servers, done, ORDERS)
    assert len(done) == done.total() == ORDERS
