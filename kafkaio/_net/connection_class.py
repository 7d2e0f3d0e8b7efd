"""The classes of connections: requests that may wait long get one of their own."""

from __future__ import annotations

from typing import ClassVar

from kafkaio._named_tuple import NamedTuple
from kafkaio._public import public


class _Fields(NamedTuple):
    # A tuple, because every request looks its connection up by this key.
    kind: str
    owner: object = None


@public("kafkaio")
class ConnectionClass(_Fields):
    """Which of a broker's connections a request uses; each is opened when first needed.

    A broker answers a connection's requests in order, one at a time. A JoinGroup that
    waits for other members, or a Fetch that waits for data, delays every request behind
    it. So each user of a shared client has its own connections for them (`of`).

    Attributes:
        kind: what the connection is for, as observers get it.
        owner: the object that has the connection to itself; None if all users of the
            client share it.
    """

    __slots__ = ()

    SHARED: ClassVar[ConnectionClass]  #: everything that is answered at once
    FETCH: ClassVar[ConnectionClass]  #: Fetch, which waits for data
    PRODUCE: ClassVar[ConnectionClass]  #: Produce, which waits for replicas
    COORDINATOR: ClassVar[
        ConnectionClass
    ]  #: groups: JoinGroup and SyncGroup wait for members

    def of(self, owner: object) -> ConnectionClass:
        """The class of the same kind that belongs to ``owner`` alone."""
        return ConnectionClass(self.kind, owner)


ConnectionClass.SHARED = ConnectionClass("shared")
ConnectionClass.FETCH = ConnectionClass("fetch")
ConnectionClass.PRODUCE = ConnectionClass("produce")
ConnectionClass.COORDINATOR = ConnectionClass("coordinator")
