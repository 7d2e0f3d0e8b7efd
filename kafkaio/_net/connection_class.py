"""What may wait long gets a connection of its own."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

__all__ = ["ConnectionClass"]


class _Fields(NamedTuple):
    # A tuple, because each request finds its connection by the lane's hash.
    kind: str
    owner: object = None


class ConnectionClass(_Fields):
    """The connections that one broker may get, each opened when first needed.

    A broker answers a connection's requests in order, one at a time: a parked
    JoinGroup or a long-polling Fetch holds up whatever was sent behind it. So those
    who share a client have such connections each for itself (`of`).

    Attributes:
        kind: what it is for, as observers hear it.
        owner: whose it is, compared by identity or as the object has it; None for
            everybody's.
    """

    __slots__ = ()

    SHARED: ClassVar[ConnectionClass]  #: everything that is answered at once
    FETCH: ClassVar[ConnectionClass]  #: Fetch, which waits for data
    PRODUCE: ClassVar[ConnectionClass]  #: Produce, which waits for replicas
    COORDINATOR: ClassVar[
        ConnectionClass
    ]  #: groups: JoinGroup and SyncGroup wait for members

    def of(self, owner: object) -> ConnectionClass:
        """The lane of this kind that is ``owner``'s alone."""
        return ConnectionClass(self.kind, owner)


ConnectionClass.SHARED = ConnectionClass("shared")
ConnectionClass.FETCH = ConnectionClass("fetch")
ConnectionClass.PRODUCE = ConnectionClass("produce")
ConnectionClass.COORDINATOR = ConnectionClass("coordinator")
