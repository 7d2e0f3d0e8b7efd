"""Where leader epochs end in the logs of their leaders (KIP-320)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kafkaio._client.destinations import Leader
from kafkaio._client.fanout import Answer, Operation, Results, Terms
from kafkaio._named_tuple import NamedTuple
from kafkaio.errors import UnsupportedVersion
from kafkaio.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from kafkaio._client.ports import ClusterPort

_CONSUMER: Final = -1


class EpochEnd(NamedTuple):
    """The end of an epoch in a leader's log.

    Attributes:
        epoch: the requested epoch, or the last one before it that the log has.
        offset: its end, -1 if the log does not know it.
        leader_epoch: the epoch of the leader that was asked.
    """

    epoch: int
    offset: int
    leader_epoch: int


class EpochLookup:
    """Looks up where leader epochs end.

    Args:
        cluster: the way to the cluster.
        timeout: seconds that a lookup may take.
    """

    def __init__(self, cluster: ClusterPort, timeout: float) -> None:
        self._cluster = cluster
        self._timeout = timeout

    async def ask(
        self, epochs: Mapping[TopicPartition, int]
    ) -> Results[TopicPartition, EpochEnd | None]:
        """Ask each partition's leader once where these epochs end.

        Returns:
            The end of the epoch by partition; None if the broker is older than 2.3,
            which did not allow consumers to ask.
        """
        # The leader epochs that the requests name. An answer holds for the leader of
        # this epoch: the view may have another leader by the time it arrives.
        leaders: dict[TopicPartition, int] = {}

        def build(
            items: Sequence[TopicPartition], _: Terms
        ) -> OffsetForLeaderEpochRequest:
            for tp in items:
                view = self._cluster.view.partition(tp)
                leaders[tp] = -1 if view is None else view.leader_epoch
            return _request({tp: epochs[tp] for tp in items}, leaders)

        def read(
            response: OffsetForLeaderEpochResponse, _: Sequence[TopicPartition]
        ) -> Iterator[Answer[TopicPartition, EpochEnd | None]]:
            for topic in response.topics:
                for item in topic.partitions:
                    tp = TopicPartition(topic.topic, item.partition)
                    # -1 in either field: no record of this epoch or an older one.
                    is_known = item.leader_epoch >= 0 and item.end_offset >= 0
                    end = item.end_offset if is_known else -1
                    found = EpochEnd(item.leader_epoch, end, leaders.get(tp, -1))
                    yield Answer(tp, found, item.error_code)

        operation: Operation[
            TopicPartition, EpochEnd | None, OffsetForLeaderEpochResponse
        ] = Operation(
            what="validate the position in",
            request=OffsetForLeaderEpochRequest,
            destination=Leader,
            build=build,
            read=read,
        )
        results = await self._cluster.ask_once(operation, epochs, self._timeout)
        for tp, error in list(results.failed.items()):
            if isinstance(error, UnsupportedVersion):
                # Nobody can validate against such a broker; the position is accepted.
                del results.failed[tp]
                results.found[tp] = None
        return results


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
