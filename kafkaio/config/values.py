"""How the text of some options is read: servers, acks, assignors, durations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from kafkaio.errors import ConfigurationError

__all__ = [
    "DEFAULT_PORT",
    "iso_duration_ms",
    "parse_acks",
    "parse_servers",
    "parse_strategy",
]

DEFAULT_PORT = 9092

_DURATION = re.compile(
    r"P(?:(?P<d>\d+)D)?(?:T(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+(?:\.\d+)?)S)?)?"
)


def parse_servers(servers: object, kind: str = "Client") -> tuple[tuple[str, int], ...]:
    """Read ``host``, ``host:port`` or ``[ipv6]:port`` addresses.

    Args:
        servers: one text with commas, or a collection of texts.
        kind: the class that takes the servers, for messages.

    Raises:
        ConfigurationError: there is none, or one cannot be read.
    """
    if isinstance(servers, Mapping):
        raise ConfigurationError(
            "bootstrap_servers is a mapping of options: pass it to "
            f"{kind}.from_properties(...)"
        )
    found = servers.split(",") if isinstance(servers, str) else servers
    given = list(found) if isinstance(found, Iterable) else [found]
    texts = [text for text in given if isinstance(text, str)]
    if len(texts) < len(given):
        raise ConfigurationError(
            f"bootstrap_servers={servers!r}: use 'host:port', 'host:port,host2:port' "
            "or a list of such texts"
        )
    parsed = tuple(_parse_server(t.strip()) for t in texts if t.strip())
    if not parsed:
        raise ConfigurationError("bootstrap_servers names no server")
    return parsed


def _parse_server(text: str) -> tuple[str, int]:
    # The name of a listener may stand before the address, as brokers are configured.
    found = re.fullmatch(
        r"(?:[A-Z][A-Z0-9_.-]*://)?"
        r"(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:\s/\[\]]+))(?::(?P<port>\d{1,5}))?",
        text,
    )
    port = int(found["port"] or DEFAULT_PORT) if found else 0
    if found is None or not 0 < port < 65536:
        url = "; it is no URL" if "://" in text else ""
        raise ConfigurationError(
            f"bootstrap server {text!r}: use host:port, or [address]:port for IPv6{url}"
        )
    return found["v6"] or found["host"], port


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


def parse_acks(acks: object) -> int:
    """Read ``acks`` as the protocol has it: -1 for ``all``, 0 or 1."""
    known = {"all": -1, "-1": -1, "0": 0, "1": 1}
    found = None if isinstance(acks, bool) else known.get(str(acks))
    if found is None:
        raise ConfigurationError(f"acks={acks!r} is none of 'all', 1, 0")
    return found


def iso_duration_ms(text: str) -> int | None:
    """Read an ISO 8601 duration in days, hours, minutes and seconds.

    Returns:
        Milliseconds, or None if the text is no such duration.
    """
    found = _DURATION.fullmatch(text)
    if found is None or not any(found.groups()):
        return None
    days, hours, minutes = (int(found[part] or 0) for part in "dhm")
    seconds = float(found["s"] or 0)
    return round((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)
