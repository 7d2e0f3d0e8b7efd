"""Whether what is sent to a host stays on this machine."""

from __future__ import annotations

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, by its address or as ``localhost``.

    No name is looked up.
    """
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
