"""Heartbeats of members of groups of the consumer protocol (KIP-848)."""

from __future__ import annotations

from kafkaio.protocol.messages import ConsumerGroupHeartbeatRequest

__all__ = ["beat", "joining"]


def beat(
    group: str, member_id: str, epoch: int, instance: str | None = None
) -> ConsumerGroupHeartbeatRequest:
    """Make a heartbeat that says nothing but that the member is there."""
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member_id,
        member_epoch=epoch,
        instance_id=instance,
        rebalance_timeout_ms=-1,
        topic_partitions=None,
    )


def joining(
    group: str, member_id: str, instance: str | None = None
) -> ConsumerGroupHeartbeatRequest:
    """Make the first heartbeat of a member, all but what it subscribes to."""
    request = beat(group, member_id, 0, instance)
    request.rebalance_timeout_ms = 60_000
    request.topic_partitions = []
    return request
