"""Asking leaders where leader epochs end in their logs (KIP-320)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from kafkaio._machines.reactions import Step, reaction
from kafkaio.client.cluster import Cluster
from kafkaio.consumer.fetch.asking import Round, ask_leader
from kafkaio.errors import NetworkError, UnsupportedVersion
from kafkaio.protocol.api_keys import ApiKey
from kafkaio.protocol.broker_errors import broker_error
from kafkaio.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kafkaio.types import TopicPartition

__all__ = ["EpochEnd", "EpochLookup"]

_CONSUMER: Final = -1


class EpochEnd(NamedTuple):
    """Where a leader's log leaves an epoch.

    Attributes:
        epoch: the epoch asked for, or the last one before it that the log has.
        offset: its end, -1 where the log knows none.
        leader_epoch: the epoch of the leader that was asked.
    """

    epoch: int
    offset: int
    leader_epoch: int


class EpochLookup:
    """Looks the ends of leader epochs up.

    Args:
        cluster: the way to the cluster.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._request_timeout = cluster.config.request_timeout_ms / 1000

    async def ask(
        self, leader: int, epochs: Mapping[TopicPartition, int]
    ) -> Round[EpochEnd]:
        """Ask a leader where these epochs end in its partitions.

        Returns:
            Per partition the end of the epoch; None where the broker cannot tell: it
            is older than 2.3, where consumers were not allowed to ask.
        """
        result = Round[EpochEnd]()
        views = {tp: self._cluster.view.partition(tp) for tp in epochs}
        leaders = {tp: -1 if v is None else v.leader_epoch for tp, v in views.items()}
        response = await ask_leader(
            self._cluster,
            leader,
            OffsetForLeaderEpochRequest,
            lambda _: _request(epochs, leaders),
            self._request_timeout,
            (result, epochs),
        )
        if response is None:
            untold = [
                tp
                for tp, e in result.failed.items()
                if isinstance(e, UnsupportedVersion)
            ]
            for tp in untold:
                del result.failed[tp]
                result.found[tp] = None
            return result
        answered = {
            TopicPartition(topic.topic, item.partition): item
            for topic in response.topics
            for item in topic.partitions
        }
        for tp in epochs:
            _judge(tp, answered.get(tp), leaders[tp], result)
        return result


def _request(
    epochs: Mapping[TopicPartition, int], leaders: Mapping[TopicPartition, int]
) -> OffsetForLeaderEpochRequest:
    topics: dict[str, OffsetForLeaderTopic] = {}
    for tp, epoch in epochs.items():
        topic = topics.setdefault(tp.topic, OffsetForLeaderTopic(topic=tp.topic))
        topic.partitions.append(
            OffsetForLeaderPartition(
                partition=tp.partition,
                current_leader_epoch=leaders[tp],
                leader_epoch=epoch,
            )
        )
    return OffsetForLeaderEpochRequest(
        replica_id=_CONSUMER, topics=list(topics.values())
    )


def _judge(
    tp: TopicPartition,
    item: EpochEndOffset | None,
    leader_epoch: int,
    result: Round[EpochEnd],
) -> None:
    name = f"{tp.topic}-{tp.partition}"
    if item is None:
        result.again[tp] = NetworkError(f"the answer leaves {name} out")
        return
    what = reaction(ApiKey.OFFSET_FOR_LEADER_EPOCH, item.error_code)
    if what.step is Step.SUCCESS:
        is_known = item.leader_epoch >= 0 and item.end_offset >= 0
        end = item.end_offset if is_known else -1
        result.found[tp] = EpochEnd(item.leader_epoch, end, leader_epoch)
        return
    error = broker_error(item.error_code, f"validating the position in {name}")
    (result.again if what.retry else result.failed)[tp] = error
