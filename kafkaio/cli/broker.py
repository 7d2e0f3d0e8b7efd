"""``kafkaio broker``: runs the embedded broker, for development and tests."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final, TextIO

from kafkaio.cli.exits import CommandFailed
from kafkaio.cli.output import Output
from kafkaio.cli.parsing import add_formats
from kafkaio.testing.broker.configs import base_name, facts
from kafkaio.testing.broker.properties import read_properties
from kafkaio.testing.broker.refusal import Refusal
from kafkaio.testing.embedded import Broker

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from kafkaio.cli.parsing import Parser

__all__ = ["add_command"]

_COMMAND: Final = "kafkaio broker"
_HOST: Final = "127.0.0.1"
_PORT: Final = 9092
_PORTS: Final = 65536
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def add_command(commands: _SubParsersAction[Parser]) -> None:
    """Add ``broker``."""
    parser = commands.add_parser(
        "broker", help="run a Kafka cluster for development and tests"
    )
    parser.add_argument("--host", help=f"address to listen at (default: {_HOST})")
    parser.add_argument(
        "--port",
        type=_port,
        help=(
            f"port of the first node, the others take the next ports (default: {_PORT};"
            " 0 takes free ports)"
        ),
    )
    parser.add_argument(
        "--nodes", type=_count, default=1, help="number of nodes (default: 1)"
    )
    parser.add_argument(
        "--data-dir", type=Path, help="directory for logs (default: in memory)"
    )
    parser.add_argument(
        "--as-version",
        default="4.3",
        help="the release of Kafka whose API versions are served (default: 4.3)",
    )
    parser.add_argument(
        "--topic",
        action="append",
        default=[],
        type=_topic,
        metavar="NAME[:PARTITIONS]",
        help="create a topic at the start; can be repeated",
    )
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        type=_config,
        metavar="NAME=VALUE",
        help="a config of the brokers, by Kafka's name; can be repeated",
    )
    parser.add_argument(
        "--properties",
        type=Path,
        metavar="FILE",
        help="configs of the brokers, in the format of a server.properties",
    )
    add_formats(parser)
    parser.set_defaults(run=_run, command=_COMMAND)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) >= _PORTS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: 0 to {_PORTS - 1}")
    return int(text)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)


def _topic(text: str) -> tuple[str, int]:
    name, colon, partitions = text.partition(":")
    return name, _count(partitions) if colon else 1


def _config(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name.strip(), value


def _run(chosen: argparse.Namespace, out: TextIO) -> int:
    asyncio.run(_serve(chosen, out))
    return 0


async def _serve(chosen: argparse.Namespace, out: TextIO) -> None:
    """Serve until SIGINT or SIGTERM."""
    ended = asyncio.Event()
    with _set_by_signals(ended):
        broker = await _started(chosen)
        try:
            _announce(broker, out, chosen.format)
            await ended.wait()
        finally:
            await broker.__aexit__(None, None, None)


def _announce(broker: Broker, out: TextIO, output_format: str) -> None:
    """Print where the cluster listens, in one line: it may be read while it runs."""
    warning = "kafkaio broker: for development and tests only, not for production\n"
    if not output_format:
        out.write(warning)
        out.write(f"listening at {broker.bootstrap_servers}\n")
        out.flush()
        return
    sys.stderr.write(warning)
    document = {"bootstrap_servers": broker.bootstrap_servers, "errors": []}
    Output(out, output_format, is_terminal=False).emit(document, ())


async def _started(chosen: argparse.Namespace) -> Broker:
    """Start the cluster.

    Raises:
        CommandFailed: it cannot be started; the message is one line.
    """
    config = _chosen_config(chosen)
    if chosen.host is not None or chosen.port is not None:
        config.pop("listeners", None)
    if chosen.data_dir is not None and chosen.data_dir.is_file():
        raise CommandFailed(f"{chosen.data_dir}: not a directory")
    port = _PORT if chosen.port is None else chosen.port
    if port and port + chosen.nodes > _PORTS:
        raise CommandFailed(
            f"{chosen.nodes} nodes from port {port} need ports above {_PORTS - 1}"
        )
    try:
        broker = Broker(
            nodes=chosen.nodes,
            topics=dict(chosen.topic),
            data_dir=chosen.data_dir,
            as_version=chosen.as_version,
            host=_HOST if chosen.host is None else chosen.host,
            port=port,
            config=config,
        )
        return await broker.__aenter__()
    except Refusal as refusal:
        raise CommandFailed(refusal.message or refusal.code.name) from None
    except OSError as error:
        where = error.filename or chosen.host or _HOST
        raise CommandFailed(f"{where}: {error.strerror or error}") from None
    except ValueError as error:
        raise CommandFailed(" ".join(str(error).split())) from None


def _chosen_config(chosen: argparse.Namespace) -> dict[str, str]:
    """The configs of the file, overridden by those of the command line."""
    config: dict[str, str] = {}
    if chosen.properties is not None:
        try:
            config |= read_properties(chosen.properties)
        except OSError as error:
            reason = error.strerror or str(error)
            raise CommandFailed(f"{chosen.properties}: {reason}") from None
        except ValueError:
            text = f"{chosen.properties}: not a properties file"
            raise CommandFailed(text) from None
    config |= dict(chosen.config)
    for name in config:
        if base_name(name) not in facts().brokers:
            near = get_close_matches(name, facts().brokers, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            sys.stderr.write(f"{_COMMAND}: Kafka has no config {name}{hint}\n")
    return config


@contextmanager
def _set_by_signals(ended: asyncio.Event) -> Iterator[None]:
    """Set an event on SIGINT or SIGTERM, on every platform."""
    loop = asyncio.get_running_loop()

    def handle(number: int, frame: FrameType | None) -> None:
        del number, frame
        loop.call_soon_threadsafe(ended.set)

    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number in _SIGNALS:
        try:
            loop.add_signal_handler(number, ended.set)
        except NotImplementedError:
            # Windows. Python calls the handler between two bytecode instructions, in
            # the thread of the loop but not from it.
            signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            with suppress(NotImplementedError):
                loop.remove_signal_handler(number)
            signal.signal(number, handler)
