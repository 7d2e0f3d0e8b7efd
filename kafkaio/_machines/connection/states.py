"""The states of a connection, as one table.

A connection opens (CONNECTING), asks the broker for its versions (NEGOTIATING, KIP-35),
authenticates if the cluster demands it (AUTHENTICATING), carries requests (READY) and
ends (CLOSED). Brokers answer ApiVersions before authentication, so the versions of the
authentication requests are known when they are sent. Only after it do they compare who
they are taken for, so they are asked once more (CHECKING, KIP-1242). Where sessions are
limited, a connection authenticates again (REAUTHENTICATING, KIP-368) while it carries
requests. It can be closed in every state. A pair that the table does not list is a bug
in kafkaio.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import Final


class ConnectionState(Enum):
    """How far a connection has come."""

    CONNECTING = auto()  #: the transport is not connected yet
    NEGOTIATING = auto()  #: ApiVersions is under way
    AUTHENTICATING = auto()  #: an authentication step follows the negotiation
    CHECKING = auto()  #: ApiVersions is under way again, after the authentication
    READY = auto()  #: requests can be sent
    REAUTHENTICATING = auto()  #: SASL requests are in flight; others can be sent
    CLOSED = auto()  #: the end


class ConnectionEvent(Enum):
    """An event of a connection."""

    OPENED = auto()  #: the transport is connected
    AUTHENTICATION_DUE = auto()  #: an authentication begins
    CHECK_DUE = auto()  #: the broker has to be told who it is taken for
    HANDSHAKE_DONE = auto()  #: nothing is left to do before requests
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
        (
            ConnectionState.AUTHENTICATING,
            ConnectionEvent.CHECK_DUE,
        ): ConnectionState.CHECKING,
        (
            ConnectionState.READY,
            ConnectionEvent.AUTHENTICATION_DUE,
        ): ConnectionState.REAUTHENTICATING,
        **{
            (state, ConnectionEvent.HANDSHAKE_DONE): ConnectionState.READY
            for state in (
                ConnectionState.NEGOTIATING,
                ConnectionState.AUTHENTICATING,
                ConnectionState.CHECKING,
                ConnectionState.REAUTHENTICATING,
            )
        },
        **{
            (state, ConnectionEvent.CLOSED): ConnectionState.CLOSED
            for state in ConnectionState
        },
    }
)
