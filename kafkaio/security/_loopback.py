"""Tells whether data that is sent to a host stays on this machine."""

from __future__ import annotations

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine, by its address or as ``localhost``.

    No name is looked up.
    """
    try:
        return ip_address(host).is_loopback
    except ValueError:
        # Other names may resolve to 127.0.0.1 today and to another host tomorrow, so
        # only the name that RFC 6761 reserves counts.
        return host == "localhost"
