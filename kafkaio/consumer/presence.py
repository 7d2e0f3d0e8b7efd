"""Whether the partitions that the user names exist."""

from __future__ import annotations

from collections.abc import Collection

from kafkaio._runtime.clock import now
from kafkaio.client.cluster import Cluster
from kafkaio.protocol.broker_errors import broker_error
from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.types import TopicPartition

__all__ = ["wait_for_partitions"]


async def wait_for_partitions(
    cluster: Cluster, partitions: Collection[TopicPartition], within: float
) -> None:
    """Wait until the view of the cluster has the partitions.

    The present view may be older than a partition, so this waits for a newer view
    before it raises.

    Args:
        cluster: the cluster.
        partitions: the partitions.
        within: seconds.

    Raises:
        UnknownTopicOrPartition: the cluster has no such topic or partition.
    """
    deadline = now() + within
    names = {tp.topic for tp in partitions}
    asked = False
    while True:
        view = await cluster.wait_for_topics(names, deadline - now())
        missing = [
            tp
            for tp in partitions
            if tp.partition >= (view.partition_count(tp.topic) or 0)
        ]
        if not missing:
            return
        if asked:
            raise broker_error(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"there is no partition {missing[0].partition} of topic "
                f"{missing[0].topic!r}",
            )
        asked = True
        cluster.request_refresh(*names)
        await cluster.wait_for_update(deadline - now())
