"""The states of a connection, as one table.

A connection opens (CONNECTING), asks the broker for its versions (NEGOTIATING, KIP-35),
authenticates if the cluster demands it (AUTHENTICATING), carries requests (READY) and
ends (CLOSED). Brokers answer ApiVersions before authentication, so the versions of the
authentication requests are known when they are sent. A connection can be closed in
every state. A pair that the table does not list is a bug in kafkaio.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import Final

__all__ = ["TRANSITIONS", "ConnectionEvent", "ConnectionState"]


class ConnectionState(Enum):
    """How far a connection has come."""

    CONNECTING = auto()  #: the transport is not connected yet
    NEGOTIATING = auto()  #: ApiVersions is under way
    AUTHENTICATING = auto()  #: an authentication step follows the negotiation
    READY = auto()  #: requests can be sent
    CLOSED = auto()  #: the end


class ConnectionEvent(Enum):
    """What happened to a connection."""

    OPENED = auto()  #: the transport is connected
    AUTHENTICATION_DUE = auto()  #: the versions are known, and authentication begins
    HANDSHAKE_DONE = auto()  #: no step of the handshake is left
    CLOSED = auto()  #: closed by either side, or broken


#: Where each event leads from each state.
TRANSITIONS: Final[
    Mapping[tuple[ConnectionState, ConnectionEvent], ConnectionState]
] = MappingProxyType(
    {
        (
            ConnectionState.CONNECTING,
            ConnectionEvent.OPENED,
        ): ConnectionState.NEGOTIATING,
        (
            ConnectionState.NEGOTIATING,
            ConnectionEvent.AUTHENTICATION_DUE,
        ): ConnectionState.AUTHENTICATING,
        **{
            (state, ConnectionEvent.HANDSHAKE_DONE): ConnectionState.READY
            for state in (ConnectionState.NEGOTIATING, ConnectionState.AUTHENTICATING)
        },
        **{
            (state, ConnectionEvent.CLOSED): ConnectionState.CLOSED
            for state in ConnectionState
        },
    }
)
