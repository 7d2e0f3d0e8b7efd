"""A random script of the data plane: one topic, written, read and cut off."""

from __future__ import annotations

import asyncio
import struct
from random import Random
from typing import Final
from uuid import UUID

from kafkaio._records._impl import crc32c
from kafkaio._records.builder import encode_batch
from kafkaio.protocol._message import Request, Response
from kafkaio.protocol.messages import (
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DescribeLogDirsRequest,
    FetchRequest,
    InitProducerIdRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetForLeaderEpochRequest,
    ProduceRequest,
)
from kafkaio.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
)
from kafkaio.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsTopic,
)
from kafkaio.protocol.messages.describe_log_dirs import DescribableLogDirTopic
from kafkaio.protocol.messages.fetch import FetchPartition, FetchTopic, ForgottenTopic
from kafkaio.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsTopic,
)
from kafkaio.protocol.messages.metadata import MetadataRequestTopic
from kafkaio.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kafkaio.protocol.messages.produce import PartitionProduceData, TopicProduceData
from tests.integration.differential.pair import Ask, Pair, Question
from tests.integration.differential.plain import Names, without_disk

_NOW: Final = 1_790_000_000_000
_NOBODY: Final = UUID(int=0)
_UNHEARD_OF: Final = UUID(int=78)
_NO_SESSION: Final = 2_000_000_007
_LARGEST: Final = 2_000


def spoil(data: bytes, layout: str, at: int, *values: int) -> bytes:
    """Overwrite fields of a batch and make its CRC right again."""
    changed = bytearray(data)
    struct.pack_into(layout, changed, at, *values)
    struct.pack_into(">I", changed, 17, crc32c(memoryview(changed)[21:]))
    return bytes(changed)


class LogScript:
    """Steps chosen by dice, on a topic of two partitions."""

    def __init__(self, pair: Pair, dice: Random, prefix: str) -> None:
        self.pair = pair
        self.dice = dice
        self.topic = f"{prefix}-log"
        self.topic_id = _NOBODY
        self.is_compacted = dice.random() < 0.2
        self.ends = [0, 0]
        self.starts = [0, 0]
        self.times = 0
        #: Producer ids by their stand-ins, with epoch and next sequence per partition.
        self.producers: list[tuple[int, list[int]]] = []
        self.session = (0, 0)

    async def run(self, steps: int) -> None:
        """Create the topic, and take that many steps."""
        configs = {"max.message.bytes": str(_LARGEST), "retention.ms": "-1"}
        if self.is_compacted:
            configs["cleanup.policy"] = "compact"
        topic = CreatableTopic(
            name=self.topic,
            num_partitions=2,
            replication_factor=1,
            configs=[CreatableTopicConfig(name=k, value=v) for k, v in configs.items()],
        )
        await self.pair.ask(CreateTopicsRequest(topics=[topic], timeout_ms=9000), 4)
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=self.topic)])
        found = {"error_code": -1}
        while found["error_code"]:
            (found,) = (await self.pair.agree(asked, 12))["topics"]
        self.topic_id = found["topic_id"]
        await self._wait_for_leaders()
        for side in self.pair.sides:
            # Ids come from the controller, which the broker asks for when it needs one.
            ask = InitProducerIdRequest(transactional_id=None)
            while (await side.ask(ask, 5)).error_code:  # noqa: ASYNC110  (polls a broker)
                await asyncio.sleep(0.02)
        kinds = (
            [self.produce] * 8
            + [self.fetch] * 5
            + [self.fetch_in_session] * 3
            + [self.list_offsets, self.list_offsets, self.epochs, self.begin]
            + [self.delete_records]
            + ([] if self.is_compacted else [self.sizes])
        )
        for _ in range(steps):
            await self.dice.choice(kinds)()

    async def _wait_for_leaders(self) -> None:
        """Wait for the real broker, which leads a moment after it says that it does."""
        parts = [ListOffsetsPartition(partition_index=n, timestamp=-1) for n in (0, 1)]
        topic = ListOffsetsTopic(name=self.topic, partitions=parts)
        request = ListOffsetsRequest(replica_id=-1, topics=[topic])
        errors = {-1}
        while errors != {0}:
            (found,) = (await self.pair.agree(request, 11))["topics"]
            errors = {one["error_code"] for one in found["partitions"]}

    def wrong(self, chance: float = 0.1) -> bool:
        """Whether the next thing is to be wrong."""
        return self.dice.random() < chance

    # Writing

    async def begin(self) -> None:
        """Get a producer id, or ask for one in a way that is refused."""
        version = self.dice.randint(0, 5)
        request = InitProducerIdRequest(
            transactional_id="" if self.wrong() else None,
            transaction_timeout_ms=60_000,
        )
        if version >= 3 and self.wrong(0.3):
            request.producer_id = self.dice.choice([-1, 5])
            request.producer_epoch = self.dice.choice([-1, 3])
        found = await self.pair.ask(request, version)
        if not found["error_code"]:
            self.producers.append((found["producer_id"], [0, 0]))

    def _index(self) -> int:
        return self.dice.choice([2, -1]) if self.wrong(0.05) else self.dice.randrange(2)

    def _batch(self) -> bytes:
        count = self.dice.randint(1, 5)
        key = b"k" if self.is_compacted and not self.wrong() else None
        value = b"v" * self.dice.choice([1, 10, 100, 3000 if self.wrong() else 50])
        self.times += 1
        return encode_batch(
            (_NOW + self.times * 10 + n, key, value, ()) for n in range(count)
        )

    def _spoilt(self, batch: bytes) -> bytes:
        kind = self.dice.randrange(10)
        if kind == 0:
            return batch[:-1] + bytes([batch[-1] ^ 1])  # CRC
        if kind == 1:
            return batch[: self.dice.choice([5, 30, len(batch) - 3])]
        if kind == 2:
            return batch + batch
        if kind == 3:
            return b""
        if kind == 4:
            return spoil(batch, ">b", 16, self.dice.choice([0, 1]))
        if kind == 5:
            # A marker. Not 8, "log append time", which Kafka silently takes out again;
            # not 16, of a transaction, for there are none yet.
            return spoil(batch, ">h", 21, 0x20)
        if kind == 6:
            return spoil(batch, ">i", 57, self.dice.choice([0, -1, 9]))
        if kind == 7:
            return spoil(batch, ">i", 23, self.dice.choice([0, 7, -1]))
        if kind == 8:
            return spoil(batch, ">q", 0, 17)  # a base offset, which is ignored
        return spoil(batch, ">i", 12, 44)  # a leader epoch, too

    async def produce(self) -> None:
        """Write a batch, by an idempotent producer or none, right or wrong."""
        version, index, acks = self.dice.randint(3, 13), self._index(), self._acks()
        batch = self._batch()
        producer, epoch, sequence, sequences = self._writer(index)
        spoilt = self._spoilt(batch) if self.wrong(0.15) else None
        is_unknown = self.wrong(0.04)
        by_id = version >= 13

        def request(names: Names) -> Request[Response]:
            data = spoilt
            if data is None:
                real = names.real(producer)
                data = spoil(batch, ">qhi", 43, real, epoch, sequence)
            part = PartitionProduceData(index=index, records=data)
            topic = TopicProduceData(
                name="" if by_id else self.topic,
                topic_id=self.topic_id if by_id else _NOBODY,
                partition_data=[part],
            )
            if is_unknown:
                topic.name = "" if by_id else "no-such-topic"
                topic.topic_id = _UNHEARD_OF if by_id else _NOBODY
            return ProduceRequest(acks=acks, timeout_ms=9000, topic_data=[topic])

        count = struct.unpack_from(">i", batch, 57)[0]
        write = self._write_unasked if acks == 0 else self._write
        if await write(request, version, index, count):
            sequences[index] = max(sequences[index], sequence + count)

    def _acks(self) -> int:
        if self.wrong(0.03):
            return self.dice.choice([2, -2])
        return 0 if self.wrong() else self.dice.choice([-1, 1])

    def _writer(self, index: int) -> tuple[int, int, int, list[int]]:
        """Producer id, epoch and sequence of the next batch, and where it counts."""
        if not self.producers or not self.wrong(0.6):
            return -1, -1, -1, [0, 0]
        producer, sequences = self.dice.choice(self.producers)
        epoch = 1 if self.wrong(0.05) else 0
        sequence = sequences[index % 2]
        if self.wrong(0.2):
            sequence = max(0, sequence + self.dice.choice([-5, -2, -1, 1]))
        return producer, epoch, sequence, sequences

    async def _write(self, ask: Ask, version: int, index: int, count: int) -> bool:
        """Write, and say whether it was appended."""
        answer = await self.pair.ask(ask, version)
        if answer == "hung up":
            return False
        (told,) = answer["responses"][0]["partition_responses"]
        if told["error_code"]:
            return False
        self.ends[index] = max(self.ends[index], told["base_offset"] + count)
        return True

    async def _write_unasked(
        self, ask: Ask, version: int, index: int, count: int
    ) -> bool:
        """Write what is not answered, unless by hanging up: see how the end moves."""
        part = ListOffsetsPartition(partition_index=index, timestamp=-1)
        topic = ListOffsetsTopic(name=self.topic, partitions=[part])
        request = ListOffsetsRequest(replica_id=-1, topics=[topic])
        question = Question(request, 5, before=(ask, version))
        answer = await self.pair.answer(question)
        if answer == "hung up":
            return False
        (told,) = answer["topics"][0]["partitions"]
        if told["error_code"] or told["offset"] < self.ends[index] + count:
            return False
        self.ends[index] = told["offset"]
        return True

    async def sizes(self) -> None:
        """Ask how large the log is: in memory or in files, it is the same."""
        parts = DescribableLogDirTopic(topic=self.topic, partitions=[0, 1])
        request = DescribeLogDirsRequest(topics=[parts])
        await self.pair.ask(request, 5, pick=without_disk)

    async def delete_records(self) -> None:
        """Cut a log off at its front."""
        index = self._index()
        end = self.ends[index] if index in {0, 1} else 0
        offset = self.dice.choice([-1, 0, end // 2, end, end + 1, -2])
        topic = "no-such-topic" if self.wrong(0.05) else self.topic
        part = DeleteRecordsPartition(partition_index=index, offset=offset)
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=topic, partitions=[part])], timeout_ms=9000
        )
        await self.pair.ask(request, self.dice.randint(0, 2))

    # Reading

    def _topic(self, version: int) -> FetchTopic:
        if self.wrong(0.04):
            if version >= 13:
                return FetchTopic(topic_id=_UNHEARD_OF)
            return FetchTopic(topic="no-such-topic")
        if version >= 13:
            return FetchTopic(topic_id=self.topic_id)
        return FetchTopic(topic=self.topic)

    def _partition(self, version: int) -> FetchPartition:
        index = self._index()
        end = self.ends[index] if index in {0, 1} else 0
        epoch = self.dice.choice([-1, 0]) if version >= 9 else -1
        found = FetchPartition(
            partition=index,
            fetch_offset=self.dice.choice([0, end // 2, end, end]),
            partition_max_bytes=self.dice.choice([1, 150, 1000, 1 << 20]),
            current_leader_epoch=epoch,
        )
        if self.wrong():
            found.fetch_offset = self.dice.choice([end + 1, end + 100, -1])
        if version >= 9 and self.wrong(0.05):
            found.current_leader_epoch = 5
        if version >= 12 and self.wrong(0.2):
            found.last_fetched_epoch = self.dice.choice([0, 0, 1])
        return found

    def _fetch(self, version: int) -> FetchRequest:
        topic = self._topic(version)
        parts = {one.partition: one for one in (self._partition(version) for _ in "ab")}
        topic.partitions = list(parts.values())
        # Kafka cuts what it sends in the middle of a batch, the embedded broker at an
        # end of one: what is left for a second partition is not the same.
        limits = [1, 300, 1 << 20] if len(parts) == 1 else [1 << 20]
        return FetchRequest(
            max_wait_ms=0,
            min_bytes=self.dice.choice([0, 1, 100]),
            max_bytes=self.dice.choice(limits),
            isolation_level=self.dice.randrange(2),
            topics=[topic],
            session_epoch=-1,
        )

    async def fetch(self) -> None:
        """Read without a session."""
        version = self.dice.randint(4, 18)
        await self.pair.ask(self._fetch(version), version)

    async def fetch_in_session(self) -> None:
        """Read in a session: a new one, the one that is open, or a wrong one."""
        version = self.dice.choice([12, 17])
        request = self._fetch(version)
        session, epoch = self.session
        if not session or self.wrong(0.1):
            session, epoch = self.dice.choice([0, session]), 0
        elif self.wrong(0.1):
            session, epoch = self.dice.choice(
                [(session, epoch + 1), (_NO_SESSION, epoch)]
            )
        elif self.wrong(0.5):
            request.topics = []
        if epoch > 0 and self.wrong(0.2):
            gone = ForgottenTopic(partitions=[self.dice.randrange(2)])
            if version >= 13:
                gone.topic_id = self.topic_id
            else:
                gone.topic = self.topic
            request.forgotten_topics_data = [gone]
        # With limits the order would count, in which a session goes on.
        request.max_bytes = 1 << 20
        for topic in request.topics:
            for part in topic.partitions:
                part.partition_max_bytes = 1 << 20
        request.session_id, request.session_epoch = session, epoch
        answer = await self.pair.ask(request, version)
        if not answer["error_code"]:
            self.session = answer["session_id"], epoch + 1

    async def list_offsets(self) -> None:
        """Look offsets up by time."""
        version = self.dice.randint(1, 11)
        special = [-1, -2]
        special += [-3] if version >= 7 else []
        special += [-4] if version >= 8 else []
        times = [_NOW + 10 * self.dice.randint(0, self.times + 1), _NOW * 2, 0]
        index = self._index()
        part = ListOffsetsPartition(
            partition_index=index,
            timestamp=self.dice.choice([*special, *times]),
            current_leader_epoch=self.dice.choice([-1, 0]) if version >= 4 else -1,
        )
        if version >= 4 and self.wrong(0.05):
            part.current_leader_epoch = 5
        topic = "no-such-topic" if self.wrong(0.05) else self.topic
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=self.dice.randrange(2) if version >= 2 else 0,
            topics=[ListOffsetsTopic(name=topic, partitions=[part])],
        )
        await self.pair.ask(request, version)

    async def epochs(self) -> None:
        """Ask where leader epochs end."""
        version = self.dice.randint(2, 4)
        part = OffsetForLeaderPartition(
            partition=self._index(),
            current_leader_epoch=self.dice.choice([-1, 0, 5 if self.wrong() else 0]),
            leader_epoch=self.dice.choice([-1, 0, 0, 1]),
        )
        topic = "no-such-topic" if self.wrong(0.05) else self.topic
        request = OffsetForLeaderEpochRequest(
            replica_id=-1 if version >= 3 else -2,
            topics=[OffsetForLeaderTopic(topic=topic, partitions=[part])],
        )
        await self.pair.ask(request, version)


async def logs(pair: Pair, dice: Random, prefix: str) -> None:
    """Produce, Fetch, ListOffsets, DeleteRecords, InitProducerId, epochs."""
    await LogScript(pair, dice, prefix).run(60)
