"""A transactional producer of single requests, in either protocol."""

from __future__ import annotations

import asyncio
from typing import NamedTuple
from uuid import UUID

from kafkaio._records.builder import BatchBuilder
from kafkaio._runtime.clock import wall_ms
from kafkaio.protocol._message import ZERO_UUID
from kafkaio.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafkaio.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from kafkaio.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    ProducerState,
    TopicRequest,
)
from kafkaio.protocol.messages.end_txn import EndTxnRequest
from kafkaio.protocol.messages.init_producer_id import InitProducerIdRequest
from kafkaio.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafkaio.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kafkaio.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kafkaio.testing._broker.batches import batches_of
from kafkaio.testing._log.segment import decode
from tests.unit.testing.broker.calls import Caller, fetch, produce


class Identity(NamedTuple):
    """A producer id and epoch."""

    producer_id: int
    epoch: int


#: How long tests wait for markers: longer than the delay that is the default.
MARKERS = 0.01


def transactional(
    who: Identity,
    sequence: int,
    values: tuple[bytes, ...] = (b"v",),
    key: bytes | None = None,
) -> bytes:
    """A batch of a transaction."""
    builder = BatchBuilder(transactional=True)
    for value in values:
        builder.try_append(wall_ms(), key, value, ())
    return builder.build(
        producer_id=who.producer_id, producer_epoch=who.epoch, base_sequence=sequence
    )


class Speaker:
    """A producer that speaks one of the protocols; each call returns an error code.

    Args:
        caller: a connection to the coordinator, which leads all partitions, too.
        name: the transactional id.
        bumps: whether it speaks the newer protocol.
    """

    def __init__(self, caller: Caller, name: str = "tx", *, bumps: bool) -> None:
        self.caller = caller
        self.name = name
        self.bumps = bumps
        self.who = Identity(-1, -1)
        self.init_version = 5

    async def init(
        self, who: Identity | None = None, version: int | None = None
    ) -> int:
        """InitProducerId once; adopt what it answers."""
        request = InitProducerIdRequest(
            transactional_id=self.name, transaction_timeout_ms=60_000
        )
        if who is not None:
            request.producer_id, request.producer_epoch = who
        found = await self.caller.call(request, version or self.init_version)
        if not found.error_code:
            self.who = Identity(found.producer_id, found.producer_epoch)
        return found.error_code

    async def start(self) -> Identity:
        """InitProducerId until it succeeds."""
        while code := await self.init():
            assert code == 51
            await asyncio.sleep(MARKERS)
        return self.who

    async def add(self, *places: tuple[str, int], version: int = 3) -> list[int]:
        """AddPartitionsToTxn; a code for each partition."""
        answer = await self.caller.call(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.name,
                v3_and_below_producer_id=self.who.producer_id,
                v3_and_below_producer_epoch=self.who.epoch,
                v3_and_below_topics=[
                    AddPartitionsToTxnTopic(name=topic, partitions=[index])
                    for topic, index in places
                ],
            ),
            version,
        )
        return [
            one.partition_error_code
            for topic in answer.results_by_topic_v3_and_below
            for one in topic.results_by_partition
        ]

    async def add_offsets(self, group: str, version: int = 4) -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.name,
            producer_id=self.who.producer_id,
            producer_epoch=self.who.epoch,
            group_id=group,
        )
        return (await self.caller.call(request, version)).error_code

    async def write(
        self,
        sequence: int,
        topic: str = "t",
        index: int = 0,
        version: int | None = None,
        who: Identity | None = None,
        values: tuple[bytes, ...] = (b"v",),
        key: bytes | None = None,
    ) -> int:
        """Produce one batch."""
        data = transactional(who or self.who, sequence, values, key)
        request = produce(topic, index, data)
        request.transactional_id = self.name
        answer = await self.caller.call(request, version or (12 if self.bumps else 11))
        (found,) = answer.responses[0].partition_responses
        return found.error_code

    async def send(self, sequence: int, topic: str = "t", index: int = 0) -> int:
        """Produce one batch, in the older protocol after the partition is added."""
        if not self.bumps:
            (code,) = await self.add((topic, index))
            if code:
                return code
        return await self.write(sequence, topic, index)

    async def end(
        self,
        *,
        commit: bool,
        who: Identity | None = None,
        version: int | None = None,
    ) -> int:
        """EndTxn; adopt the identity of a success."""
        who = who or self.who
        found = await self.caller.call(
            EndTxnRequest(
                transactional_id=self.name,
                producer_id=who.producer_id,
                producer_epoch=who.epoch,
                committed=commit,
            ),
            version if version is not None else 5 if self.bumps else 4,
        )
        if not found.error_code and found.producer_id >= 0:
            self.who = Identity(found.producer_id, found.producer_epoch)
        return found.error_code

    async def commit_offset(
        self,
        group: str,
        offset: int,
        member: tuple[str, int] = ("", -1),
        instance: str | None = None,
        version: int | None = None,
        topic: str = "t",
        index: int = 0,
        topic_id: UUID = ZERO_UUID,
    ) -> int:
        """TxnOffsetCommit of one offset; with an id in version 6, else by name."""
        found = await self.caller.call(
            TxnOffsetCommitRequest(
                transactional_id=self.name,
                group_id=group,
                producer_id=self.who.producer_id,
                producer_epoch=self.who.epoch,
                member_id=member[0],
                generation_id_or_member_epoch=member[1],
                group_instance_id=instance,
                topics=[
                    TxnOffsetCommitRequestTopic(
                        name=topic,
                        topic_id=topic_id,
                        partitions=[
                            TxnOffsetCommitRequestPartition(
                                partition_index=index, committed_offset=offset
                            )
                        ],
                    )
                ],
            ),
            version if version is not None else 5 if self.bumps else 4,
        )
        return found.topics[0].partitions[0].error_code


async def end_offset(
    caller: Caller, isolation_level: int, topic: str = "t", index: int = 0
) -> int:
    """The end of a partition by ListOffsets."""
    request = ListOffsetsRequest(
        isolation_level=isolation_level,
        topics=[
            ListOffsetsTopic(
                name=topic,
                partitions=[ListOffsetsPartition(partition_index=index, timestamp=-1)],
            )
        ],
    )
    return (await caller.call(request, 6)).topics[0].partitions[0].offset


async def visible(
    caller: Caller, topic: str = "t", index: int = 0, offset: int = 0
) -> list[bytes]:
    """What a read_committed consumer sees, by the list of aborted transactions."""
    found: list[bytes] = []
    while True:
        request = fetch(topic, {index: offset}, isolation_level=1)
        (data,) = (await caller.call(request, 12)).responses[0].partitions
        assert data.error_code == 0
        records = bytes(data.records or b"")
        if not records:
            return found
        aborted = {
            (one.producer_id, one.first_offset)
            for one in data.aborted_transactions or ()
        }
        open_ones: set[int] = set()
        for header, raw in batches_of(records):
            offset = header.next_offset
            for producer_id, first in list(aborted):
                if first <= header.last_offset:
                    open_ones.add(producer_id)
                    aborted.discard((producer_id, first))
            if header.is_control:
                open_ones.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in open_ones):
                found += [record.value or b"" for record in decode(raw)]


async def producers(
    caller: Caller, topic: str = "t", index: int = 0
) -> list[ProducerState]:
    request = DescribeProducersRequest(
        topics=[TopicRequest(name=topic, partition_indexes=[index])]
    )
    return (await caller.call(request, 0)).topics[0].partitions[0].active_producers


async def committed(
    caller: Caller, group: str, topic: str = "t", *, stable: bool = True
) -> tuple[int, int]:
    """Error code and offset by OffsetFetch."""
    request = OffsetFetchRequest(
        require_stable=stable,
        groups=[
            OffsetFetchRequestGroup(
                group_id=group,
                topics=[OffsetFetchRequestTopics(name=topic, partition_indexes=[0])],
            )
        ],
    )
    (found,) = (await caller.call(request, 9)).groups[0].topics[0].partitions
    return found.error_code, found.committed_offset
