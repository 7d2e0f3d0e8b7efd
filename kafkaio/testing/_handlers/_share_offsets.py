"""The parts that the APIs of the offsets of share groups have in common."""

from __future__ import annotations

from typing import Final

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing._broker.cluster import EmbeddedCluster
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._groups.coordinator import coordinator_of
from kafkaio.testing._groups.share import ShareGroup

NO_PARTITION: Final = "This server does not host this topic-partition."


def empty_group(
    cluster: EmbeddedCluster, group_id: str, *, creates: bool
) -> ShareGroup:
    """Return a share group without members.

    Args:
        cluster: the cluster.
        group_id: the group.
        creates: whether to create a group that does not exist.

    Raises:
        Refusal: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP.
    """
    coordinator = coordinator_of(cluster)
    group = coordinator.find(group_id)
    if group is None and creates:
        return coordinator.share_group(group_id)
    if not isinstance(group, ShareGroup):
        reason = "not found" if group is None else "is not a share group"
        text = f"Group {group_id} {reason}."
        raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, text)
    if group.members:
        raise Refusal(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")
    return group
