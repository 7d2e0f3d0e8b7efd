"""What may wait long gets a connection of its own."""

from __future__ import annotations

from enum import Enum

__all__ = ["Lane"]


class Lane(Enum):
    """The connections that one broker may get, each opened when first needed.

    A broker answers a connection's requests in order, one at a time: a parked
    JoinGroup or a long-polling Fetch holds up whatever was sent behind it.
    """

    SHARED = "shared"  #: everything that is answered at once
    FETCH = "fetch"  #: Fetch, which waits for data
    PRODUCE = "produce"  #: Produce, which waits for replicas
    COORDINATOR = "coordinator"  #: groups: JoinGroup and SyncGroup wait for members
