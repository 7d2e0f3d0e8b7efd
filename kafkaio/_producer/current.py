"""Whether a producer that was kept idle still has its transactional id."""

from __future__ import annotations

from kafkaio._producer.producer import Producer


async def is_current(producer: Producer, within: float) -> bool:
    """Ask the coordinator whether a producer still has its transactional id.

    True means what a successful `Producer.start` means: all that other producers with
    the id have committed was decided before, and if another one starts from now on, no
    transaction of this one can be committed any more. It costs one round trip, where a
    start costs one, and one more to find the coordinator.

    Otherwise the producer is over: it was replaced, or has forgotten or failed
    something, or the coordinator did not answer. It can only be closed, and another one
    started in its place. That is so, too, if the call is cancelled.

    It is a function, and not a method of `Producer`, because users have no use for it:
    a transaction finds out by itself.

    Args:
        producer: a started producer with a transactional id, and without a transaction.
        within: seconds for the answer.
    """
    manager = producer._transactions
    if manager is None or producer.statistics().state != "running":
        return False
    return await manager.is_current(within)
