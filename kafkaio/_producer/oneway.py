"""Requests without an answer (``acks=0``): in flight until their bytes have left.

A broker that hangs reads nothing, and one that enforces a quota does not say so. So a
request counts as in flight, and its records keep their memory, until the operating
system has taken its bytes. It takes those of most requests at once; the others are
checked again and again.
"""

from __future__ import annotations

from collections import deque
from dataclasses import field
from functools import partial
from math import inf
from typing import Final, Protocol

from kafkaio._dataclass import dataclass
from kafkaio._named_tuple import NamedTuple
from kafkaio._net.connection import Connection
from kafkaio.errors import ConnectionLost, RequestTimeout

#: Seconds between two checks.
_INTERVAL: Final = 0.002


class SentPort(Protocol):
    """Learns what has become of a request."""

    def set_late(self, why: str, /) -> None:
        """Note why its bytes have not left, for error messages."""

    def set_sent(self) -> None:
        """Note that its bytes have left."""

    def set_exception(self, error: Exception, /) -> None:
        """Note that the connection has ended before that."""


class _Waiting(NamedTuple):
    """A request, and the bytes that were submitted on its connection with it."""

    reply: SentPort
    end: int


@dataclass(slots=True, eq=False)
class _Line:
    """The requests of one connection, oldest first, and when it took one last."""

    since: float
    waiting: deque[_Waiting] = field(default_factory=deque)


class OnewayRequests:
    """The requests without an answer that have not left.

    Args:
        timeout: seconds after which a connection is closed that takes no request.
    """

    __slots__ = ("_lines", "_timeout")

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        # Of each connection that had one, until it ends.
        self._lines: dict[Connection, _Line] = {}

    def add(self, connection: Connection, reply: SentPort, at: float) -> None:
        """Wait until the request that was submitted last has left."""
        line = self._lines.get(connection)
        if line is None:
            line = self._lines[connection] = _Line(at)
            connection.add_end_listener(partial(self._ended, connection))
        if not line.waiting:
            line.since = at
        line.waiting.append(_Waiting(reply, connection.submitted))

    def check(self, at: float) -> None:
        """Note which requests have left, and close connections that take none."""
        for connection, line in list(self._lines.items()):
            waiting = line.waiting
            # With TLS more bytes are unsent than were submitted: none is early.
            while waiting and (
                connection.unsent <= connection.submitted - waiting[0].end
            ):
                line.since = at
                waiting.popleft().reply.set_sent()
            if not waiting:
                continue
            why = connection.why_unsent()
            for each in waiting:
                each.reply.set_late(why)
            if at >= line.since + self._timeout:
                connection.close(RequestTimeout(why))

    def check_at(self, at: float) -> float:
        """Return when to check again; infinity if all have left."""
        is_left = any(line.waiting for line in self._lines.values())
        return at + _INTERVAL if is_left else inf

    def _ended(self, connection: Connection) -> None:
        line = self._lines.pop(connection)
        for waiting in line.waiting:
            waiting.reply.set_exception(
                ConnectionLost(
                    f"the connection to broker {connection.node_id} ended before it "
                    "had taken the records"
                )
            )
