"""A member of a share group, request by request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

from kafkaio._runtime.clock import wall_ms
from kafkaio.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkaio.protocol.messages.share_acknowledge import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
)
from kafkaio.protocol.messages.share_fetch import (
    AcknowledgementBatch as FetchAcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ShareFetchRequest,
    ShareFetchResponse,
)
from kafkaio.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from kafkaio.testing import Broker
from tests.unit.testing.broker.calls import Caller, batch, connect, produce

TOPIC = "t"
GROUP = "g"
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
Acks = Mapping[int, Sequence[tuple[int, int, list[int]]]]


@dataclass
class Member:
    """One member, its connection and its session."""

    caller: Caller
    topic_id: UUID
    name: str = "m"
    group: str = GROUP
    session: int = 0
    epoch: int = 0

    async def heartbeat(
        self, epoch: int | None = None, names: list[str] | None = None
    ) -> ShareGroupHeartbeatResponse:
        answer = await self.caller.call(
            ShareGroupHeartbeatRequest(
                group_id=self.group,
                member_id=self.name,
                member_epoch=self.epoch if epoch is None else epoch,
                subscribed_topic_names=names,
            ),
            1,
        )
        if not answer.error_code:
            self.epoch = answer.member_epoch
        return answer

    async def join(self, *names: str) -> ShareGroupHeartbeatResponse:
        answer = await self.heartbeat(0, list(names or (TOPIC,)))
        assert answer.error_code == 0, answer
        return answer

    async def fetch(
        self,
        most: int = 100,
        *,
        partitions: Sequence[int] = (0,),
        acks: Acks | None = None,
        epoch: int | None = None,
        wait: int = 0,
        exact: bool = True,
        renews: bool = False,
        forgotten: Sequence[int] = (),
        max_bytes: int = 1 << 20,
        version: int = 2,
        topic_id: UUID | None = None,
    ) -> ShareFetchResponse:
        acks = acks or {}
        topic_id = topic_id or self.topic_id
        # An incremental request names only what is new, or has acknowledgements.
        asked = epoch if epoch is not None else self.session
        named = partitions if asked == 0 else [*acks]
        request = ShareFetchRequest(
            group_id=self.group,
            member_id=self.name,
            share_session_epoch=asked,
            max_wait_ms=wait,
            min_bytes=0 if renews else 1,
            max_bytes=0 if renews else max_bytes,
            max_records=0 if renews else most,
            batch_size=most,
            share_acquire_mode=int(exact) if version >= 2 else 0,
            is_renew_ack=renews,
            topics=[
                FetchTopic(
                    topic_id=topic_id,
                    partitions=[
                        FetchPartition(
                            partition_index=index,
                            acknowledgement_batches=[
                                FetchAcknowledgementBatch(
                                    first_offset=first,
                                    last_offset=last,
                                    acknowledge_types=types,
                                )
                                for first, last, types in acks.get(index, ())
                            ],
                        )
                        for index in named
                    ],
                )
            ],
            forgotten_topics_data=[
                ForgottenTopic(topic_id=topic_id, partitions=list(forgotten))
            ],
        )
        answer = await self.caller.call(request, version)
        if epoch is None and not answer.error_code:
            self.session += 1
        return answer

    async def add(self, *partitions: int) -> ShareFetchResponse:
        """Fetch with partitions that the session does not have yet."""
        return await self.fetch(acks=dict.fromkeys(partitions, ()))

    async def acknowledge(
        self,
        *acks: tuple[int, int, int],
        partition: int = 0,
        renews: bool = False,
        epoch: int | None = None,
    ) -> ShareAcknowledgeResponse:
        answer = await self.caller.call(
            ShareAcknowledgeRequest(
                group_id=self.group,
                member_id=self.name,
                share_session_epoch=self.session if epoch is None else epoch,
                is_renew_ack=renews,
                topics=[
                    AcknowledgeTopic(
                        topic_id=self.topic_id,
                        partitions=[
                            AcknowledgePartition(
                                partition_index=partition,
                                acknowledgement_batches=[
                                    AcknowledgementBatch(
                                        first_offset=first,
                                        last_offset=last,
                                        acknowledge_types=[kind],
                                    )
                                    for first, last, kind in acks
                                ],
                            )
                        ],
                    )
                ],
            ),
            2,
        )
        if epoch is None and not answer.error_code:
            self.session += 1
        return answer


def data_of(answer: ShareFetchResponse, partition: int = 0) -> PartitionData:
    """What an answer has for a partition."""
    assert not answer.error_code, answer
    found = {
        one.partition_index: one
        for topic in answer.responses
        for one in topic.partitions
    }
    return found.get(partition, PartitionData(partition_index=partition))


def acquired(
    answer: ShareFetchResponse, partition: int = 0
) -> list[tuple[int, int, int]]:
    """First offset, last offset and deliveries of what an answer acquired."""
    data = data_of(answer, partition)
    assert not data.error_code, data
    return [
        (one.first_offset, one.last_offset, one.delivery_count)
        for one in data.acquired_records
    ]


def code_of(answer: ShareAcknowledgeResponse) -> int:
    """The error of the only partition of an answer."""
    assert not answer.error_code, answer
    ((topic,),) = (answer.responses,)
    (data,) = topic.partitions
    return data.error_code


async def configure(caller: Caller, group: str = GROUP, **configs: object) -> None:
    """Set configs of a group; an underscore in a name stands for a dot."""
    answer = await caller.call(
        IncrementalAlterConfigsRequest(
            resources=[
                AlterConfigsResource(
                    resource_type=32,
                    resource_name=group,
                    configs=[
                        AlterableConfig(
                            name=name.replace("_", "."),
                            config_operation=0,
                            value=str(value),
                        )
                        for name, value in configs.items()
                    ],
                )
            ]
        ),
        1,
    )
    assert [one.error_code for one in answer.responses] == [0], answer


async def fill(
    caller: Caller, *sizes: int, topic: str = TOPIC, partition: int = 0
) -> None:
    """Append batches of so many records."""
    for size in sizes:
        # Not old: a jump of the clock would delete it.
        data = batch([b"value"] * size, timestamp=wall_ms())
        answer = await caller.call(produce(topic, partition, data), 9)
        assert not answer.responses[0].partition_responses[0].error_code


@asynccontextmanager
async def shared(
    *sizes: int,
    partitions: int = 1,
    configs: Mapping[str, object] | None = None,
    config: Mapping[str, object] | None = None,
    **options: object,
) -> AsyncIterator[tuple[Broker, Member]]:
    """A broker with a topic and batches in it, and a member that has joined."""
    given: dict[str, object] = {"group.share.min.record.lock.duration.ms": 1000}
    given.update(config or {})
    defaults = {
        "memory_transport": True,
        "metadata_delay": 0.0,
        "topics": {TOPIC: partitions},
    }
    broker = Broker(**(defaults | options), config=given)  # type: ignore[arg-type]
    async with broker:
        caller = await connect(broker)
        wanted = {"share.auto.offset.reset": "earliest", **(configs or {})}
        await configure(caller, GROUP, **wanted)
        await fill(caller, *sizes)
        member = Member(caller, broker.topics[TOPIC].topic_id)
        await member.join()
        yield broker, member


async def another(broker: Broker, name: str) -> Member:
    """One more member, on a connection of its own."""
    member = await reader(broker, name)
    await member.join()
    return member


async def reader(broker: Broker, name: str, node: int = 0) -> Member:
    """A client that fetches from a node without having joined: nobody asks."""
    return Member(await connect(broker, node), broker.topics[TOPIC].topic_id, name)
