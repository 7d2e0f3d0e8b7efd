"""Hosts that do not answer, on loopback."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["black_hole", "refusing", "silent"]


@contextmanager
def black_hole() -> Iterator[int]:
    """A port that answers no SYN: a listener whose backlog is full."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        fillers = [socket.socket() for _ in range(4)]
        for each in fillers:
            each.setblocking(False)
            each.connect_ex(listener.getsockname())
        try:
            yield listener.getsockname()[1]
        finally:
            for each in fillers:
                each.close()


@contextmanager
def silent(address: str = "127.0.0.1", port: int = 0) -> Iterator[int]:
    """A port that takes connections and says nothing, as of a process that hangs."""
    with socket.socket() as listener:
        listener.bind((address, port))
        listener.listen(64)
        yield listener.getsockname()[1]


def refusing() -> int:
    """A port that refuses connections."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])
