"""Produce requests and their answers; those with one batch are made once.

A producer whose records are awaited one by one sends a request for each of them. Such
requests to one partition differ in the batch alone, and the answers in the offset and
in the time of the append. So the partition keeps the request, which takes one batch
after the other, and an answer that has the bytes of the one before, save these two
numbers, is not decoded: they are read from their place.
"""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import Final
from uuid import UUID

from kafkaio._machines.bounds import REFUSED
from kafkaio._machines.connection.pipeline import LastAnswer
from kafkaio.errors import ProtocolError
from kafkaio.protocol._headers import decode_response
from kafkaio.protocol._message import ZERO_UUID, Buffer, Buffers, Response
from kafkaio.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kafkaio.types import TopicPartition

#: From this version of Produce on, topics are sent by their ids alone (KIP-516).
_BY_TOPIC_ID: Final = 13
#: The base offset and the time of the append, which follow each other in all versions.
_WRITTEN = struct.Struct(">qq")
_ID_SIZE: Final = 4
_LEAST, _MOST, _ = REFUSED["base_offset"]


class Acknowledgement(LastAnswer):
    """The last answer to requests with one batch of a partition, if it has no error.

    Args:
        partition: the partition.
        topic_id: the id by which the topic may be sent; None if it has none.

    Attributes:
        response: the answer; None if there is none that can come again. It is the same
            object with each frame, and holds what the last one said: who reads it does
            so before the next frame is received.
        written: its part about the partition.
    """

    __slots__ = (
        "_after",
        "_before",
        "_id",
        "_partition",
        "_place",
        "response",
        "written",
    )

    def __init__(self, partition: TopicPartition, topic_id: UUID | None) -> None:
        super().__init__()
        self._partition = partition
        self._id = topic_id
        self._before: Buffer = b""
        self._after: Buffer = b""
        self._place = 0
        self.response: Response | None = None
        self.written: PartitionProduceResponse = PartitionProduceResponse()

    def repeated(self, version: int, frame: Buffer) -> Response | None:
        """The answer, if a frame differs from the last in these two numbers alone."""
        place = self._place
        if (
            version != self._version
            or frame[_ID_SIZE:place] != self._before
            or frame[place + _WRITTEN.size :] != self._after
        ):
            return None
        offset, time = _WRITTEN.unpack_from(frame, place)
        if not _LEAST <= offset <= _MOST:
            return None  # it is refused where every answer is checked
        self.written.base_offset, self.written.log_append_time_ms = offset, time
        return self.response

    def keep(self, version: int, frame: Buffer, response: Response) -> None:
        """Keep an answer, if it says that a batch of the partition was written."""
        self.response, self._version = None, -1
        assert isinstance(response, ProduceResponse)
        written = self._part_of(response)
        if written is None or written.error_code:
            return
        place = _place_of(version, bytes(frame), response, written)
        if place is None:
            return
        self.response, self.written = response, written
        self._version, self._place = version, place
        self._before = frame[_ID_SIZE:place]
        self._after = frame[place + _WRITTEN.size :]

    def _part_of(self, response: ProduceResponse) -> PartitionProduceResponse | None:
        """The answer about the partition, if there is no other in the response."""
        name, index = self._partition
        if len(response.responses) != 1:
            return None
        (topic,) = response.responses
        if (topic.name or self._id != topic.topic_id) and topic.name != name:
            return None
        parts = topic.partition_responses
        return parts[0] if len(parts) == 1 and parts[0].index == index else None


def _place_of(
    version: int,
    frame: bytes,
    response: ProduceResponse,
    written: PartitionProduceResponse,
) -> int | None:
    """Find where a frame says what was written; None if that is not certain.

    The codec shows it: with other numbers at this place, it finds these in their fields
    and everything else as before.
    """
    said = written.base_offset, written.log_append_time_ms
    other = ~said[0], ~said[1]
    wanted = _WRITTEN.pack(*said)
    # The bytes may stand elsewhere, too: in the id of a topic, or one byte beside.
    place = frame.find(wanted, _ID_SIZE)
    while place >= 0:
        changed = bytearray(frame)
        _WRITTEN.pack_into(changed, place, *other)
        with suppress(ProtocolError):
            probe = decode_response(ProduceResponse, version, bytes(changed))
            written.base_offset, written.log_append_time_ms = other
            is_there = probe == response
            written.base_offset, written.log_append_time_ms = said
            if is_there:
                return place
        place = frame.find(wanted, place + 1)
    return None


class Exchange:
    """A produce request, and what is known of its answer.

    The request has batches until `clear`, while it is encoded.

    Args:
        acks: how many replicas acknowledge a batch.
        timeout_ms: for how long the broker waits for them.

    Attributes:
        request: the request.
        names: the names of its topics, by the numbers of their ids.
        max_version: the highest version that names every topic; None for any.
        answer: the last answer; None if it has several batches, and is sent once.
        last: where the batch is that was added last.
    """

    __slots__ = (
        "_data",
        "_partitions",
        "answer",
        "last",
        "max_version",
        "names",
        "request",
    )

    def __init__(self, acks: int, timeout_ms: int) -> None:
        self.request: ProduceRequest = ProduceRequest(acks=acks, timeout_ms=timeout_ms)
        self.names: dict[int, str] = {}
        self.max_version: int | None = None
        self.answer: Acknowledgement | None = None
        self.last: PartitionProduceData = PartitionProduceData()
        self._data: list[PartitionProduceData] = []
        # By the names of topics.
        self._partitions: dict[str, list[PartitionProduceData]] = {}

    @classmethod
    def of_one(
        cls,
        partition: TopicPartition,
        topic_id: UUID | None,
        acks: int,
        timeout_ms: int,
    ) -> Exchange:
        """Return one that is kept for the requests with one batch of a partition."""
        exchange = cls(acks, timeout_ms)
        exchange.add(partition, topic_id, None)
        exchange.answer = Acknowledgement(partition, topic_id)
        return exchange

    def add(
        self, partition: TopicPartition, topic_id: UUID | None, records: Buffers | None
    ) -> None:
        """Add the bytes of a batch; None if they follow."""
        name, index = partition
        partitions = self._partitions.get(name)
        if partitions is None:
            partitions = self._partitions[name] = []
            if topic_id is None:
                self.max_version = _BY_TOPIC_ID - 1
            else:
                # By number: the hash of a UUID is computed in Python.
                self.names[topic_id.int] = name
            self.request.topic_data.append(
                TopicProduceData(
                    name=name,
                    topic_id=topic_id or ZERO_UUID,
                    partition_data=partitions,
                )
            )
        self.last = PartitionProduceData(index=index, records=records)
        partitions.append(self.last)
        self._data.append(self.last)

    def clear(self) -> None:
        """Let go of the batches."""
        for data in self._data:
            data.records = None
