"""Addresses of bootstrap servers, as aiokafka shows them."""

from __future__ import annotations

import random
import socket
from collections.abc import Sequence

_DEFAULT_PORT = 9092


def collect_hosts(
    hosts: str | Sequence[str], *, randomize: bool = True
) -> list[tuple[str, int, int]]:
    """Return host, port and address family of servers.

    Args:
        hosts: one text with commas, or several texts.
        randomize: whether to return them in any order.

    Raises:
        ValueError: a port is not a number.
    """
    texts = hosts.strip().split(",") if isinstance(hosts, str) else hosts
    found = [_parsed(text.strip()) for text in texts]
    if randomize:
        # So that the clients of a service do not all begin at the same server.
        random.shuffle(found)
    return found


def _parsed(text: str) -> tuple[str, int, int]:
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        return host, int(rest[1:]) if rest else _DEFAULT_PORT, socket.AF_INET6
    if text.count(":") != 1:
        return text, _DEFAULT_PORT, _family(text)
    host, _, port = text.partition(":")
    return host, int(port), _family(host)


def _family(host: str) -> int:
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except (OSError, ValueError):
            continue
        return family
    return socket.AF_UNSPEC
