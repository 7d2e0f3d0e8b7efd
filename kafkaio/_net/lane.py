"""What may wait long gets a connection of its own."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

__all__ = ["Lane"]


class _Fields(NamedTuple):
    # A tuple, because each request finds its connection by the lane's hash.
    kind: str
    owner: object = None


class Lane(_Fields):
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

    SHARED: ClassVar[Lane]  #: everything that is answered at once
    FETCH: ClassVar[Lane]  #: Fetch, which waits for data
    PRODUCE: ClassVar[Lane]  #: Produce, which waits for replicas
    COORDINATOR: ClassVar[Lane]  #: groups: JoinGroup and SyncGroup wait for members

    def of(self, owner: object) -> Lane:
        """The lane of this kind that is ``owner``'s alone."""
        return Lane(self.kind, owner)


Lane.SHARED = Lane("shared")
Lane.FETCH = Lane("fetch")
Lane.PRODUCE = Lane("produce")
Lane.COORDINATOR = Lane("coordinator")
