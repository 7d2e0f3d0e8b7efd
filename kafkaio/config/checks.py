"""How option values are read and checked; every error names the option."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING

from kafkaio.errors import ConfigurationError

DEFAULT_PORT = 9092
FOREVER = 2**31 - 1

#: How many batches per producer and partition a broker remembers (KIP-98).
MAX_IDEMPOTENT_IN_FLIGHT = 5

#: librdkafka's names for options that Kafka calls otherwise, of the same unit.
ALIASES: Mapping[str, str] = {
    "metadata.broker.list": "bootstrap.servers",
    "compression.codec": "compression.type",
    "message.timeout.ms": "delivery.timeout.ms",
    "message.send.max.retries": "retries",
    "request.required.acks": "acks",
    "queue.buffering.max.ms": "linger.ms",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "socket.timeout.ms": "request.timeout.ms",
    "receive.message.max.bytes": "max.response.size",
    "broker.rack": "client.rack",
}

_DURATION = re.compile(
    r"P(?:(?P<d>\d+)D)?(?:T(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+(?:\.\d+)?)S)?)?"
)


def parse_servers(servers: str | Sequence[str]) -> tuple[tuple[str, int], ...]:
    """Read ``host``, ``host:port`` or ``[ipv6]:port`` addresses.

    Raises:
        ConfigurationError: there is none, or one makes no sense.
    """
    texts = servers.split(",") if isinstance(servers, str) else list(servers)
    if not all(isinstance(text, str) for text in texts):
        raise ConfigurationError(f"bootstrap_servers={servers!r}: use host:port texts")
    parsed = tuple(_parse_server(t.strip()) for t in texts if t.strip())
    if not parsed:
        raise ConfigurationError("bootstrap_servers names no server")
    return parsed


def _parse_server(text: str) -> tuple[str, int]:
    found = re.fullmatch(
        r"(?:\w+://)?(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:\s/\[\]]+))(?::(?P<port>\d{1,5}))?",
        text,
    )
    port = int(found["port"] or DEFAULT_PORT) if found else 0
    if found is None or not 0 < port < 65536:
        raise ConfigurationError(
            f"bootstrap server {text!r}: use host:port, or [address]:port for IPv6"
        )
    return found["v6"] or found["host"], port


def check_field(
    name: str,
    value: object,
    default: object,
    *,
    bounds: tuple[float, float] | None,
    choices: Sequence[str] | None,
) -> None:
    """Check one option's type, bounds and choices.

    Raises:
        ConfigurationError: one of them is violated.
    """
    _check_type(name, value, default)
    if bounds is not None and isinstance(value, int | float):
        low, high = bounds
        if not low <= value <= high:
            raise ConfigurationError(
                f"{name}={value} is not within {low:g} to {high:g}"
            )
    if choices is not None and value not in choices:
        near = difflib.get_close_matches(str(value), choices, 1)
        raise ConfigurationError(
            f"{name}={value!r} is none of {', '.join(choices)}"
            + (f"; did you mean {near[0]!r}?" if near else "")
        )


def parse_strategy(strategy: object) -> tuple[object, ...]:
    """Read assignors: names separated by commas, or a sequence.

    Raises:
        ConfigurationError: there is none.
    """
    if isinstance(strategy, str):
        strategy = [name.strip() for name in strategy.split(",") if name.strip()]
    if not isinstance(strategy, list | tuple) or not strategy:
        raise ConfigurationError("partition_assignment_strategy names no assignor")
    return tuple(strategy)


def _check_type(name: str, value: object, default: object) -> None:
    if name == "acks" or default is None or default is MISSING:
        wanted: type | tuple[type, ...] = object
        if name == "enable_idempotence":
            wanted = (bool, type(None))
        if name.endswith("_level"):
            wanted = (int, type(None))
        elif name in {"group_id", "group_instance_id", "group_remote_assignor"}:
            wanted = (str, type(None))
    elif isinstance(default, bool):
        wanted = bool
    elif isinstance(default, int | float):
        wanted = (int, float) if name == "linger_ms" else int
    elif isinstance(default, tuple):
        wanted = (tuple, list, str)
    else:
        wanted = str
    is_flag = isinstance(value, bool) and wanted in {int, str, (int, float)}
    if is_flag or not isinstance(value, wanted):
        raise ConfigurationError(f"{name}={value!r} has the wrong type")


def unknown_option(name: str, known: set[str]) -> ConfigurationError:
    """Return the error for an option that does not exist."""
    near = difflib.get_close_matches(name, known, 1, 0.5)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return ConfigurationError(f"unknown option {name!r}{hint}")


def parse_property(name: str, value: object, default: object) -> object:
    """Read a property's text as the type of its option; leave it where that fails."""
    if not isinstance(value, str) or isinstance(default, str):
        return value
    text = value.strip()
    if isinstance(default, bool) or name == "enable_idempotence":
        flags = {"true": True, "false": False}
        return flags.get(text.lower(), value)
    if isinstance(default, int | float) or name.endswith("_level"):
        try:
            return float(text) if "." in text else int(text)
        except ValueError:
            return value
    return value


def parse_acks(acks: object) -> int:
    """Read ``acks`` as the protocol has it: -1 for ``all``, 0 or 1."""
    known = {"all": -1, "-1": -1, "0": 0, "1": 1}
    found = None if isinstance(acks, bool) else known.get(str(acks))
    if found is None:
        raise ConfigurationError(f"acks={acks!r} is none of 'all', 1, 0")
    return found


def iso_duration_ms(text: str) -> int | None:
    """Read an ISO 8601 duration of days to seconds; None where it is none."""
    found = _DURATION.fullmatch(text)
    if found is None or not any(found.groups()):
        return None
    days, hours, minutes = (int(found[part] or 0) for part in "dhm")
    seconds = float(found["s"] or 0)
    return round((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)
