"""Checks whether an idle producer still has its transactional id."""

from __future__ import annotations

from kafkaio._producer.producer import Producer


async def is_current(producer: Producer, within: float) -> bool:
    """Ask the coordinator whether a producer still has its transactional id.

    True guarantees the same as a successful `Producer.start`: all commits of other
    producers with the id were decided before, and if another one starts from now on,
    this one cannot commit any more. The call costs one round trip; a start costs a
    second one to find the coordinator.

    If the result is False, or the call is cancelled, the producer is over: it was
    replaced or has failed, or the coordinator did not answer. It can only be closed.

    This is not a method of `Producer`, because users do not need it: a transaction
    finds out by itself.

    Args:
        producer: a started producer with a transactional id, and without a transaction.
        within: seconds for the answer.
    """
    manager = producer._transactions
    if manager is None or producer.statistics().state != "running":
        return False
    return await manager.is_current(within)
