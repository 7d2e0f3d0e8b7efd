"""Asking leaders for offsets: the log's start, its end, the first after a time.

Each partition's leader is asked, all leaders at once, and what fails for a reason
that passes is asked again until time is up. One leader that does not answer delays
the partitions of no other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Mapping
from typing import Final, Protocol, TypeVar

import anyio

from kafkaio._machines.backoff import Backoff
from kafkaio._machines.positions import Reset, ResetTo
from kafkaio._machines.reactions import Step, reaction
from kafkaio._runtime.clock import now, roll, wall_ms
from kafkaio.client.cluster import Cluster
from kafkaio.consumer.fetch.asking import Round, ask_leader
from kafkaio.errors import NetworkError, RequestTimeout
from kafkaio.protocol.api_keys import ApiKey
from kafkaio.protocol.broker_errors import broker_error
from kafkaio.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafkaio.types import OffsetAndTimestamp, TopicPartition

__all__ = ["EARLIEST", "LATEST", "OffsetLookup"]

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

#: Times with a meaning of their own in ListOffsets.
LATEST: Final = -1
EARLIEST: Final = -2

_CONSUMER: Final = -1
_NO_OFFSET: Final = -1
#: From this version on ListOffsets carries a timeout (KIP-1075).
_WITH_TIMEOUT: Final = 10


class _Ask(Protocol[T_contra]):
    """Asks every leader once."""

    def __call__(
        self, wanted: Mapping[TopicPartition, T_contra], /, *, within: float
    ) -> Awaitable[Round[OffsetAndTimestamp]]: ...


class OffsetLookup:
    """Looks offsets up.

    Args:
        cluster: the way to the cluster.
        isolation_level: 1 takes the end to be the last stable offset.
    """

    def __init__(self, cluster: Cluster, isolation_level: int) -> None:
        self._cluster = cluster
        self._isolation_level = isolation_level
        config = cluster.config
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)
        self._request_timeout = config.request_timeout_ms / 1000

    async def offsets(
        self, times: Mapping[TopicPartition, int], *, within: float
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Look up the offset of a time for each partition.

        Args:
            times: milliseconds since the epoch, `LATEST` or `EARLIEST`.
            within: seconds for all of it, retries included.

        Returns:
            The first offset whose record is not older; None where there is none.

        Raises:
            BrokerError: a broker refused for good.
            RequestTimeout: time is up; the cause says what happened last.
        """
        return await self._until_found(self.ask, times, within)

    async def places(
        self, resets: Mapping[TopicPartition, Reset], *, within: float
    ) -> dict[TopicPartition, int]:
        """Look up where each reset leads, as `resets` does, until all are found.

        Raises:
            BrokerError: a broker refused for good.
            RequestTimeout: time is up; the cause says what happened last.
        """
        found = await self._until_found(self.resets, resets, within)
        return {tp: place.offset for tp, place in found.items() if place is not None}

    async def _until_found(
        self, ask: _Ask[T], wanted: Mapping[TopicPartition, T], within: float
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        deadline = now() + within
        found: dict[TopicPartition, OffsetAndTimestamp | None] = {}
        left = dict(wanted)
        attempt = 0
        while left:
            result = await ask(left, within=deadline - now())
            for error in result.failed.values():
                raise error
            found |= result.found
            left = {tp: left[tp] for tp in result.again}
            if left:
                await self._pause(result, attempt, deadline)
                attempt += 1
        return found

    async def _pause(
        self, result: Round[OffsetAndTimestamp], attempt: int, deadline: float
    ) -> None:
        delay = self._backoff.delay(attempt, roll())
        if now() + delay >= deadline:
            tp, cause = next(iter(result.again.items()))
            raise RequestTimeout(
                f"the offsets of {len(result.again)} partitions, such as "
                f"{tp.topic}-{tp.partition}, could not be looked up in time: {cause}"
            ) from cause
        await anyio.sleep(delay)

    async def resets(
        self, resets: Mapping[TopicPartition, Reset], *, within: float
    ) -> Round[OffsetAndTimestamp]:
        """Look up where each reset leads, in one round of questions.

        A time before now is looked up in two steps, the end first: where no record is
        that new, reading begins at the end as it was *before* the question, so that
        what is appended in between is not passed over (KIP-1106).
        """
        times = {
            tp: EARLIEST if reset.to is ResetTo.EARLIEST else LATEST
            for tp, reset in resets.items()
        }
        deadline = now() + within
        result = await self.ask(times, within=within)
        moments = {
            tp: wall_ms() - reset.duration_ms
            for tp, reset in resets.items()
            if reset.to is ResetTo.DURATION and tp in result.found
        }
        if moments:
            later = await self.ask(moments, within=deadline - now())
            for tp in [*later.again, *later.failed]:
                del result.found[tp]
            result.again |= later.again
            result.failed |= later.failed
            result.found |= {tp: o for tp, o in later.found.items() if o is not None}
        return result

    async def ask(
        self, times: Mapping[TopicPartition, int], *, within: float
    ) -> Round[OffsetAndTimestamp]:
        """Ask every leader once."""
        result = Round[OffsetAndTimestamp]()
        by_leader: dict[int, dict[TopicPartition, int]] = defaultdict(dict)
        cluster = self._cluster.view
        for tp, time in times.items():
            leader = cluster.leader(tp)
            if leader is None:
                result.again[tp] = NetworkError(
                    f"{tp.topic}-{tp.partition} has no known leader"
                )
            else:
                by_leader[leader][tp] = time
        async with anyio.create_task_group() as group:
            for leader, part in by_leader.items():
                group.start_soon(self._ask_leader, leader, part, within, result)
        if result.again:
            self._cluster.request_refresh(*sorted({tp.topic for tp in result.again}))
        return result

    async def _ask_leader(
        self,
        leader: int,
        times: Mapping[TopicPartition, int],
        within: float,
        result: Round[OffsetAndTimestamp],
    ) -> None:
        limit = max(0.001, min(within, self._request_timeout))
        response = await ask_leader(
            self._cluster,
            leader,
            ListOffsetsRequest,
            lambda version: self._request(times, version, limit),
            limit,
            (result, times),
        )
        if response is None:
            return
        answered = {
            TopicPartition(topic.name, item.partition_index): item
            for topic in response.topics
            for item in topic.partitions
        }
        for tp in times:
            self._judge(tp, answered.get(tp), result)

    def _request(
        self, times: Mapping[TopicPartition, int], version: int, limit: float
    ) -> ListOffsetsRequest:
        topics: dict[str, ListOffsetsTopic] = {}
        cluster = self._cluster.view
        for tp, time in times.items():
            topic = topics.setdefault(tp.topic, ListOffsetsTopic(name=tp.topic))
            view = cluster.partition(tp)
            topic.partitions.append(
                ListOffsetsPartition(
                    partition_index=tp.partition,
                    current_leader_epoch=-1 if view is None else view.leader_epoch,
                    timestamp=time,
                )
            )
        return ListOffsetsRequest(
            replica_id=_CONSUMER,
            isolation_level=self._isolation_level,
            topics=list(topics.values()),
            timeout_ms=int(limit * 1000) if version >= _WITH_TIMEOUT else 0,
        )

    def _judge(
        self,
        tp: TopicPartition,
        item: ListOffsetsPartitionResponse | None,
        result: Round[OffsetAndTimestamp],
    ) -> None:
        name = f"{tp.topic}-{tp.partition}"
        if item is None:
            result.again[tp] = NetworkError(f"the answer leaves {name} out")
            return
        what = reaction(ApiKey.LIST_OFFSETS, item.error_code)
        if what.step is Step.SUCCESS:
            found = item.offset != _NO_OFFSET and not item.error_code
            result.found[tp] = (
                OffsetAndTimestamp(item.offset, item.timestamp, item.leader_epoch)
                if found
                else None
            )
            return
        error = broker_error(item.error_code, f"looking up an offset of {name}")
        (result.again if what.retry else result.failed)[tp] = error
