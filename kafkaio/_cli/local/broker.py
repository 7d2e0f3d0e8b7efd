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

from kafkaio._cli.local.parsing import add_formats
from kafkaio._cli.text.document import TEXT, Document, fields, mapping_of
from kafkaio._cli.text.exits import CommandFailed
from kafkaio._cli.text.output import Printer
from kafkaio.errors import ConfigurationError
from kafkaio.security._loopback import is_loopback
from kafkaio.security._references import resolve
from kafkaio.testing._broker.configs import base_name, facts
from kafkaio.testing._broker.properties import EVERYWHERE, read_properties
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._broker.versions import NEWEST
from kafkaio.testing._embedded import Broker
from kafkaio.testing._security.config import AUTHORIZER_CONFIGS

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from kafkaio._cli.local.parsing import Parser

_LISTENER: Final = fields(
    bound=TEXT.doc("Where the nodes listen; 0.0.0.0 for all interfaces."),
    servers=TEXT.doc("HOST:PORT of each node, for clients."),
)
_LISTENING: Final = Document(
    bootstrap_servers=TEXT.doc("HOST:PORT of each node, with commas between them."),
    listeners=mapping_of(_LISTENER).doc("The listeners by name."),
    certificates=fields(
        authority=TEXT.doc("The certificate to trust."),
        clients=mapping_of(TEXT).doc("Certificate and key of each user."),
    )
    .doc("The files for clients, in PEM, with --tls.")
    .optional,
)
#: The declarations of the output, by the names of their schemas.
PRINTS: Final = {"broker": _LISTENING}
_COMMAND: Final = "kafkaio broker"
#: By default no other machine reaches the broker.
_HOST: Final = "127.0.0.1"
_PORT: Final = 9092
_PORTS: Final = 65536
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def add_command(commands: _SubParsersAction[Parser]) -> None:
    """Add ``broker``."""
    parser = commands.add_parser(
        "broker", help="run a Kafka cluster for development and tests"
    )
    _add_addresses(parser)
    parser.add_argument(
        "--nodes", type=_count, default=1, help="number of nodes (default: 1)"
    )
    parser.add_argument(
        "--data-dir", type=Path, help="directory for logs (default: in memory)"
    )
    parser.add_argument(
        "--as-version",
        default=NEWEST,
        help=f"the release of Kafka whose API versions are served (default: {NEWEST})",
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
    _add_security(parser)
    add_formats(parser)
    parser.set_defaults(run=_run, command=_COMMAND)


def _add_addresses(parser: Parser) -> None:
    parser.add_argument(
        "--host",
        help=f"address to listen at (default: {_HOST}; 0.0.0.0 for all interfaces)",
    )
    parser.add_argument(
        "--port",
        type=_port,
        help=(
            f"port of the first node, the others take the next ports (default: {_PORT};"
            " 0 takes free ports)"
        ),
    )


def _add_security(parser: Parser) -> None:
    parser.add_argument(
        "--sasl",
        action="store_true",
        help="open the listener SASL, too: PLAIN, SCRAM and OAUTHBEARER",
    )
    parser.add_argument(
        "--tls",
        action="store_true",
        help="open the listeners SSL and MTLS, too, and with --sasl SASL_SSL",
    )
    parser.add_argument(
        "--user",
        action="append",
        default=[],
        type=_user,
        metavar="NAME:PASSWORD",
        help=(
            "a user of --sasl, and of a client certificate of --tls; can be repeated"
            " (default: alice:alice-secret). A password can be ${env:NAME} or"
            " ${file:PATH:KEY}"
        ),
    )
    parser.add_argument(
        "--acls",
        action="store_true",
        help=(
            "check rights by ACLs; clients of the listener PLAINTEXT may do everything,"
            " unless --config super.users=User:NAME names others"
        ),
    )


def _user(text: str) -> tuple[str, str]:
    name, colon, password = text.partition(":")
    if not name or not colon or not password:
        # The message does not repeat the text: it may be a password alone.
        raise argparse.ArgumentTypeError("it is not NAME:PASSWORD")
    return name, password


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
    # The handlers come first: a signal during the start ends the broker, too, and its
    # log files are closed.
    with _set_by_signals(ended):
        broker = await _started(chosen)
        try:
            _announce(broker, out, chosen.format)
            await ended.wait()
        finally:
            await broker.__aexit__(None, None, None)


def _announce(broker: Broker, out: TextIO, output_format: str) -> None:
    """Print the addresses; with a format in one line, which a program can wait for."""
    warning = f"{_COMMAND}: for development and tests only, not for production\n"
    if output_format:
        sys.stderr.write(warning)
        document = _document(broker)
        Printer(out, output_format, is_terminal=False).emit(document, ())
    else:
        out.write(warning)
        out.writelines(_listening(broker, name) for name in broker.listeners)
        if broker.has_tls:
            files = _certificates(broker)
            out.writelines(f"{user}: {file}\n" for user, file in files.items())
        out.flush()
    _warn_of_strangers(broker)


def _listening(broker: Broker, name: str) -> str:
    """The line of a listener; the first one, which is always there, has no name."""
    bound, told = broker.bound(name), broker.bootstrap(name)
    lead = "" if name == broker.listeners[0] else f"{name} "
    # Clients connect to the advertised address, which differs from the bound one for
    # 0.0.0.0 and if advertised.listeners is set.
    tail = f"; clients connect to {told}"
    if _host(bound) in EVERYWHERE:
        tail = f" (all interfaces); clients on this machine connect to {told}"
    elif bound == told:
        tail = ""
    return f"{lead}listening at {bound}{tail}\n"


def _host(addresses: str) -> str:
    """The host of the first address."""
    return addresses.split(",")[0].rpartition(":")[0].strip("[]")


def _certificates(broker: Broker) -> dict[str, str]:
    """The files for clients, by their purpose."""
    files = broker.certificates
    found = {"certificate to trust": str(files.authority)}
    users = {f"client {user}": str(file) for user, file in files.clients.items()}
    return found | users


def _document(broker: Broker) -> dict[str, object]:
    document: dict[str, object] = {
        "bootstrap_servers": broker.bootstrap_servers,
        "listeners": {
            name: {"bound": broker.bound(name), "servers": broker.bootstrap(name)}
            for name in broker.listeners
        },
    }
    if broker.has_tls:
        files = broker.certificates
        document["certificates"] = {
            "authority": str(files.authority),
            "clients": {user: str(file) for user, file in files.clients.items()},
        }
    return _LISTENING.made([], document)


def _warn_of_strangers(broker: Broker) -> None:
    """Warn if other machines reach the listener without a login."""
    bound = broker.bound()
    if not is_loopback(_host(bound)):
        sys.stderr.write(
            f"{_COMMAND}: everybody who reaches {bound} over the network can read,"
            f" write and delete: this listener has no login\n"
        )


async def _started(chosen: argparse.Namespace) -> Broker:
    """Start the cluster.

    Raises:
        CommandFailed: the cluster cannot be started; the message is one line.
    """
    config = _chosen_config(chosen)
    # An address of the command line replaces the listeners of a server.properties.
    if chosen.host is not None or chosen.port is not None:
        config.pop("listeners", None)
    if chosen.data_dir is not None and chosen.data_dir.is_file():
        raise CommandFailed(f"{chosen.data_dir}: not a directory")
    port = _PORT if chosen.port is None else chosen.port
    try:
        broker = Broker(
            nodes=chosen.nodes,
            topics=dict(chosen.topic),
            data_dir=chosen.data_dir,
            as_version=chosen.as_version,
            host=_HOST if chosen.host is None else chosen.host,
            port=port,
            config=config,
            sasl=chosen.sasl,
            tls=chosen.tls,
            users=_users(chosen),
            acls=chosen.acls,
        )
        return await broker.__aenter__()
    except Refusal as refusal:
        raise CommandFailed(refusal.message or refusal.code.name) from None
    except OSError as error:
        where = error.filename or chosen.host or _HOST
        raise CommandFailed(f"{where}: {error.strerror or error}") from None
    except ConfigurationError as error:
        # Only the passwords of users have references, which can fail to resolve.
        raise CommandFailed(f"--user: {error}") from None
    except ValueError as error:
        raise CommandFailed(" ".join(str(error).split())) from None
    except ImportError as error:
        # Only TLS needs a package that may be missing.
        raise CommandFailed(f"--tls: {error}; pip install trustme") from None


def _users(chosen: argparse.Namespace) -> dict[str, str] | None:
    """The users that were given; None for the default.

    Raises:
        CommandFailed: users have no effect without a listener that has a login.
        ConfigurationError: a reference to a password cannot be resolved.
    """
    if chosen.user and not (chosen.sasl or chosen.tls):
        raise CommandFailed("--user needs --sasl or --tls")
    users = {name: resolve("NAME:PASSWORD", secret) for name, secret in chosen.user}
    return users or None


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
    # A warning and not an error: a server.properties may have configs of plugins.
    for name in config:
        if base_name(name) not in facts().brokers and name not in AUTHORIZER_CONFIGS:
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
            # Windows. Python calls the handler between two bytecode instructions in the
            # main thread, outside of the loop's callbacks: call_soon_threadsafe wakes
            # the loop, which may sleep in select.
            signal.signal(number, handle)
    try:
        yield
    finally:
        # A program that calls main() gets its own handlers back.
        for number, handler in before.items():
            with suppress(NotImplementedError):
                loop.remove_signal_handler(number)
            signal.signal(number, handler)
