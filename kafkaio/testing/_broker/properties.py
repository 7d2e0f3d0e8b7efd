"""Configs from a ``server.properties`` file: parsed, checked, listeners found."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kafkaio._named_tuple import NamedTuple
from kafkaio.testing._broker.configs import base_name, facts
from kafkaio.testing._broker.settings import mismatch

#: Hosts that mean all interfaces: one can listen there, and nobody can connect there.
EVERYWHERE: Final = frozenset({"", "0.0.0.0", "::"})  # noqa: S104
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPED: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_PAIR: Final = re.compile(
    r"(?P<name>(?:\\.|[^\s:=\\])*)\s*[:=]?\s*(?P<value>.*)", re.DOTALL
)
_LISTENER: Final = re.compile(
    r"(?P<name>\w+)://\[?(?P<host>[^\]/]*?)\]?:(?P<port>\d+)$"
)
_ADVERTISED: Final = "advertised.listeners"
_CONTROLLER: Final = "CONTROLLER"
_SECURED: Final = frozenset({"SSL", "SASL_PLAINTEXT", "SASL_SSL"})
LARGEST_PORT: Final = 65535


class Address(NamedTuple):
    """A host (empty for all interfaces) and a port (0 for any free one)."""

    host: str
    port: int


def checked_config(given: Mapping[str, str | float]) -> dict[str, str]:
    """Return configs as strings, in Kafka's notation.

    Raises:
        ValueError: Kafka does not accept this value for a config that it knows.
    """
    found: dict[str, str] = {}
    for name, value in given.items():
        # Java writes booleans in lower case.
        text = str(value).lower() if isinstance(value, bool) else str(value).strip()
        setting = facts().brokers.get(base_name(name))
        reason = None if setting is None else mismatch(setting, text)
        if reason is not None:
            raise ValueError(f"{name}={text}: {reason}")
        found[name] = text
    return found


def changed_config(config: Mapping[str, str]) -> dict[str, str]:
    """Return the configs that differ from Kafka's defaults."""
    brokers = facts().brokers
    return {
        name: value for name, value in config.items() if brokers[name].default != value
    }


def listener(config: Mapping[str, str], name: str) -> Address | None:
    """Return the address of the first listener for clients; None if none is set.

    Args:
        config: the configs.
        name: ``listeners`` or ``advertised.listeners``.

    Raises:
        ValueError: it cannot be parsed, it advertises all interfaces, or it asks for
            TLS or SASL, which arguments of the embedded broker open.
    """
    for entry in config.get(name, "").split(","):
        # No node has a listener for controllers: every node is its own.
        if not entry.strip() or entry.strip().startswith(f"{_CONTROLLER}:"):
            continue
        found = _LISTENER.match(entry.strip())
        if found is None or int(found["port"]) > LARGEST_PORT:
            raise ValueError(f"{name}={entry}: not of the form PLAINTEXT://host:9092")
        # The broker makes users and certificates itself, so such a listener needs more
        # than an address.
        if found["name"] in _SECURED:
            raise ValueError(
                f"{name}={entry}: only PLAINTEXT can be set here; Broker(sasl=True) and"
                " Broker(tls=True), or --sasl and --tls, open the others"
            )
        if name == _ADVERTISED and found["host"] in EVERYWHERE - {""}:
            raise ValueError(
                f"{name}={entry}: no client can connect to {found['host']}; give an"
                " address of this machine"
            )
        return Address(found["host"], int(found["port"]))
    return None


def read_properties(path: Path) -> dict[str, str]:
    """Read a file of Java properties.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not UTF-8 text.
    """
    found: dict[str, str] = {}
    pending = ""
    for line in path.read_text("utf-8").splitlines():
        text = pending + line.lstrip()
        if not pending and (not text or text[0] in "#!"):
            continue
        # An even number of them is a value that ends with backslashes, an odd one
        # continues on the next line.
        backslashes = len(text) - len(text.rstrip("\\"))
        if backslashes % 2:
            pending = text[:-1]
            continue
        pending = ""
        _add(found, text)
    # The file ends within a line that goes on.
    if pending:
        _add(found, pending)
    return found


def _add(found: dict[str, str], line: str) -> None:
    pair = _PAIR.match(line)
    if pair is not None and pair["name"]:
        found[_plain(pair["name"])] = _plain(pair["value"]).strip()


def _plain(text: str) -> str:
    def plain(found: re.Match[str]) -> str:
        escape = found[1]
        if len(escape) > 1:
            return chr(int(escape[1:], 16))
        return _ESCAPES.get(escape, escape)

    return _ESCAPED.sub(plain, text)
