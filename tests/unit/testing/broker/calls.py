"""A minimal client that sends single requests, and batches to send with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from kafkaio._net.transport import DialOptions, TransportPort
from kafkaio._records.builder import encode_batch
from kafkaio.protocol._headers import (
    decode_api_versions,
    decode_response,
    encode_request,
    peek_correlation_id,
)
from kafkaio.protocol._message import Buffer, Request, Response, ResponseT
from kafkaio.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionData,
)
from kafkaio.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from kafkaio.testing import Broker

OPTIONS = DialOptions(timeout=1, max_frame_size=1 << 28)


class Caller:
    """One connection."""

    def __init__(self) -> None:
        self.frames: asyncio.Queue[Buffer | None] = asyncio.Queue()
        self.transport: TransportPort | None = None
        self.lost = False

    def frame_received(self, frame: Buffer) -> None:
        self.frames.put_nowait(frame)

    def connection_lost(self, cause: BaseException | None) -> None:
        del cause
        self.lost = True
        self.frames.put_nowait(None)

    def send(self, request: Request[Response], version: int, number: int = 0) -> None:
        assert self.transport is not None
        self.transport.write([encode_request(request, version, number, "caller")])

    async def frame(self) -> Buffer:
        frame = await self.frames.get()
        if frame is None:
            raise ConnectionError
        return frame

    async def call(self, request: Request[ResponseT], version: int) -> ResponseT:
        self.send(request, version, 7)
        frame = await self.frame()
        assert peek_correlation_id(frame) == 7
        return decode_response(request.response_type(), version, frame)

    async def api_versions(self, request: Request[Response], version: int) -> Response:
        self.send(request, version)
        return decode_api_versions(version, await self.frame())


async def connect(broker: Broker, node_id: int = 0) -> Caller:
    caller = Caller()
    node = broker.nodes[node_id]
    caller.transport = await broker.dial(node.host, node.port, caller, OPTIONS)
    return caller


@asynccontextmanager
async def started(**options: object) -> AsyncIterator[tuple[Broker, Caller]]:
    """A broker in memory without metadata delay, and a connection to its first node."""
    options = {"memory_transport": True, "metadata_delay": 0.0} | options
    broker = Broker(**options)  # type: ignore[arg-type]
    async with broker:
        yield broker, await connect(broker)


def batch(
    values: Sequence[bytes] = (b"value",),
    *,
    key: bytes | None = None,
    timestamp: int = 1_000,
) -> bytes:
    return encode_batch((timestamp, key, value, ()) for value in values)


def with_producer(data: bytes, producer_id: int, epoch: int, sequence: int) -> bytes:
    """The batch with the header fields of an idempotent producer."""
    import struct

    from kafkaio._records._impl import crc32c

    changed = bytearray(data)
    struct.pack_into(">qhi", changed, 43, producer_id, epoch, sequence)
    struct.pack_into(">I", changed, 17, crc32c(memoryview(changed)[21:]))
    return bytes(changed)


def produce(topic: str, index: int, data: bytes, acks: int = -1) -> ProduceRequest:
    return ProduceRequest(
        acks=acks,
        timeout_ms=1_000,
        topic_data=[
            TopicProduceData(
                name=topic,
                partition_data=[PartitionProduceData(index=index, records=data)],
            )
        ],
    )


async def produced(
    caller: Caller, topic: str, index: int, data: bytes, version: int = 12
) -> PartitionProduceResponse:
    response = await caller.call(produce(topic, index, data), version)
    (answer,) = response.responses[0].partition_responses
    return answer


def fetch(
    topic: str, offsets: dict[int, int], max_wait_ms: int = 0, **fields: int
) -> FetchRequest:
    """Ask for partitions from offsets on."""
    request = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        topics=[
            FetchTopic(
                topic=topic,
                partitions=[
                    FetchPartition(
                        partition=index,
                        fetch_offset=offset,
                        partition_max_bytes=1 << 20,
                    )
                    for index, offset in offsets.items()
                ],
            )
        ],
    )
    for name, value in fields.items():
        setattr(request, name, value)
    return request


async def fetched(caller: Caller, request: FetchRequest) -> list[PartitionData]:
    response = await caller.call(request, 12)
    return [data for topic in response.responses for data in topic.partitions]
