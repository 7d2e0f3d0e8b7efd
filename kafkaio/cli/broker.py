"""``kafkaio broker``: the embedded broker from a shell, for any Kafka client."""

from __future__ import annotations

import argparse
import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from kafkaio.testing.embedded import Broker

if TYPE_CHECKING:
    from argparse import _SubParsersAction

__all__ = ["add_command"]


def add_command(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``broker``."""
    parser = commands.add_parser(
        "broker", help="run a Kafka cluster for development and tests"
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at")
    parser.add_argument(
        "--port", type=int, default=9092, help="of the first node; 0 takes free ports"
    )
    parser.add_argument("--nodes", type=int, default=1, help="how many brokers")
    parser.add_argument("--data-dir", type=Path, help="keep logs here, not in memory")
    parser.add_argument(
        "--as-version", default="4.3", help="the release of Kafka to pass for"
    )
    parser.set_defaults(run=_run)


def _run(chosen: argparse.Namespace, out: TextIO) -> int:
    asyncio.run(_serve(chosen, out))
    return 0


async def _serve(chosen: argparse.Namespace, out: TextIO) -> None:
    """Serve until SIGINT or SIGTERM."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    async with Broker(
        nodes=chosen.nodes,
        data_dir=chosen.data_dir,
        as_version=chosen.as_version,
        host=chosen.host,
        port=chosen.port,
    ) as broker:
        out.write(
            "kafkaio broker: for development and tests only, not for production\n"
        )
        out.write(f"listening at {broker.bootstrap_servers}\n")
        out.flush()
        await ended.wait()
