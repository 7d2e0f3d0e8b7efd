import asyncio

import pytest

from kafkaio._records._impl import crc32c
from kafkaio._records.batch import read_batches
from kafkaio._runtime.clock import wall_ms
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._headers import decode_response
from kafkaio.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from kafkaio.protocol.messages.fetch import FetchResponse
from kafkaio.protocol.messages.init_producer_id import InitProducerIdRequest
from kafkaio.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafkaio.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafkaio.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kafkaio.testing._broker.refusal import Refusal
from tests.unit.testing.broker.calls import (
    batch,
    connect,
    fetch,
    fetched,
    produce,
    produced,
    started,
    with_producer,
)


def values(data: object) -> list[bytes | None]:
    assert isinstance(data, bytes | memoryview)
    return [r.value for b in read_batches(data) for r in b.decode("t", 0)]


@pytest.mark.parametrize("version", range(3, 13))
async def test_produce_and_fetch_at_every_version(version: int) -> None:
    async with started(topics={"t": 1}) as (_, caller):
        first = await produced(caller, "t", 0, batch([b"a", b"b"]), version)
        second = await produced(caller, "t", 0, batch([b"c"]), version)
        assert (first.error_code, first.base_offset, second.base_offset) == (0, 0, 2)
        response = await caller.call(fetch("t", {0: 1}), max(version, 4))
        (data,) = response.responses[0].partitions
        assert data.high_watermark == 3
        assert values(data.records) == [b"a", b"b", b"c"]


async def test_topics_by_id() -> None:
    async with started(topics={"t": 1}) as (broker, caller):
        request = produce("t", 0, batch([b"a"]))
        request.topic_data[0].name = ""
        request.topic_data[0].topic_id = broker.topics["t"].topic_id
        response = await caller.call(request, 13)
        assert response.responses[0].partition_responses[0].error_code == 0
        asked = fetch("t", {0: 0})
        asked.topics[0].topic = ""
        unknown = (await caller.call(asked, 18)).responses[0].partitions[0]
        assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_ID
        asked.topics[0].topic_id = broker.topics["t"].topic_id
        known = (await caller.call(asked, 18)).responses[0].partitions[0]
        assert values(known.records) == [b"a"]


def changed(data: bytes, position: int, value: int) -> bytes:
    """The batch with one byte changed, and a checksum that is right."""
    copy = bytearray(data)
    copy[position] = value
    copy[17:21] = crc32c(memoryview(copy)[21:]).to_bytes(4, "big")
    return bytes(copy)


async def test_produce_errors() -> None:
    async with started(topics={"t": 1}, nodes=1) as (broker, caller):
        broker.create_topic("small", configs={"max.message.bytes": "100"})
        broker.create_topic("keys", configs={"cleanup.policy": "compact"})
        good = batch()
        corrupt = good[:-1] + bytes([good[-1] ^ 1])
        for topic, index, data, code in [
            ("none", 0, good, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ("t", 1, good, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ("t", 0, b"", ErrorCode.INVALID_RECORD),
            ("t", 0, corrupt, ErrorCode.CORRUPT_MESSAGE),
            ("t", 0, good[:-1], ErrorCode.INVALID_RECORD),
            ("t", 0, good + good, ErrorCode.INVALID_RECORD),
            ("t", 0, changed(good, 16, 1), ErrorCode.INVALID_RECORD),
            ("t", 0, changed(good, 16, 3), ErrorCode.CORRUPT_MESSAGE),
            ("t", 0, changed(good, 7, 1), ErrorCode.INVALID_RECORD),
            ("t", 0, changed(good, 22, 0x20), ErrorCode.INVALID_RECORD),
            (
                "t",
                0,
                changed(good, 22, 0x10),
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            ),
            ("t", 0, changed(good, 26, 1), ErrorCode.INVALID_RECORD),
            ("keys", 0, changed(good, 61, 0x7F), ErrorCode.CORRUPT_MESSAGE),
            ("small", 0, batch([bytes(100)]), ErrorCode.MESSAGE_TOO_LARGE),
        ]:
            answer = await produced(caller, topic, index, data)
            assert (answer.error_code, answer.base_offset) == (code, -1), (topic, code)
        answer = await produced(caller, "keys", 0, batch([b"1", b"2"]))
        assert answer.error_code == ErrorCode.INVALID_RECORD
        assert [bad.batch_index for bad in answer.record_errors] == [0, 1]
        response = await caller.call(produce("t", 0, good, acks=2), 12)
        told = response.responses[0].partition_responses[0].error_code
        assert told == ErrorCode.INVALID_REQUIRED_ACKS


async def test_idempotence() -> None:
    async with started(topics={"t": 1}) as (_, caller):
        new = await caller.call(InitProducerIdRequest(transactional_id=None), 5)
        other = await caller.call(InitProducerIdRequest(transactional_id=None), 5)
        assert new.error_code == 0
        assert new.producer_id != other.producer_id
        first = with_producer(batch([b"a", b"b"]), new.producer_id, 0, 0)
        second = with_producer(batch([b"c"]), new.producer_id, 0, 2)
        for data, code, offset in [
            (first, 0, 0),
            (first, 0, 0),
            (second, 0, 2),
            (first, 0, 0),
            (
                with_producer(batch(), new.producer_id, 0, 9),
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                -1,
            ),
        ]:
            answer = await produced(caller, "t", 0, data)
            assert (answer.error_code, answer.base_offset) == (code, offset)
        (data_back,) = await fetched(caller, fetch("t", {0: 0}))
        assert values(data_back.records) == [b"a", b"b", b"c"]


async def test_acks_zero_has_no_answer_and_an_error_closes_the_connection() -> None:
    async with started(topics={"t": 1}) as (broker, caller):
        caller.send(produce("t", 0, batch(), acks=0), 12)
        assert (await produced(caller, "t", 0, batch())).base_offset == 1
        caller.send(produce("none", 0, batch(), acks=0), 12)
        with pytest.raises(ConnectionError):
            await caller.frame()
        assert [r.api.name for r in broker.requests] == ["PRODUCE"] * 3


async def test_a_fetch_waits_for_records() -> None:
    async with started(topics={"t": 1}) as (broker, caller):
        loop = asyncio.get_running_loop()
        caller.send(fetch("t", {0: 0}, max_wait_ms=5_000), 12)
        began = loop.time()
        other = await connect(broker)
        await asyncio.sleep(2)
        await produced(other, "t", 0, batch())
        await caller.frame()
        assert loop.time() - began == pytest.approx(2)


async def test_a_fetch_waits_no_longer_than_max_wait() -> None:
    async with started(topics={"t": 1}) as (_, caller):
        loop = asyncio.get_running_loop()
        began = loop.time()
        (data,) = await fetched(caller, fetch("t", {0: 0}, max_wait_ms=700))
        assert loop.time() - began == pytest.approx(0.7)
        assert (data.error_code, data.high_watermark, data.records) == (0, 0, b"")


async def test_a_fetch_ends_when_the_leader_changes() -> None:
    async with started(topics={"t": 1}, nodes=2) as (broker, caller):
        request = fetch("t", {0: 0}, max_wait_ms=60_000)
        request.topics[0].partitions[0].current_leader_epoch = 0
        caller.send(request, 12)
        await asyncio.sleep(1)
        broker.control.move_leader(("t", 0), 1)
        response = decode_response(FetchResponse, 12, await caller.frame())
        (data,) = response.responses[0].partitions
        assert data.error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert data.current_leader.leader_id == -1  # told from version 16 on
        assert asyncio.get_running_loop().time() < 10


async def test_min_bytes() -> None:
    async with started(topics={"t": 2}) as (_, caller):
        await produced(caller, "t", 0, batch())
        loop = asyncio.get_running_loop()
        began = loop.time()
        request = fetch("t", {0: 0}, max_wait_ms=300, min_bytes=100_000)
        (data,) = await fetched(caller, request)
        assert loop.time() - began == pytest.approx(0.3)
        assert values(data.records) == [b"value"]


async def test_the_first_batch_is_returned_whatever_its_size() -> None:
    async with started(topics={"t": 2}) as (broker, _):
        for index in range(2):
            broker.control.move_leader(("t", index), 0)
        caller = await connect(broker)
        for _ in range(2):
            await produced(caller, "t", 0, batch([bytes(1000)]))
            await produced(caller, "t", 1, batch([bytes(1000)]))
        found = await fetched(caller, fetch("t", {0: 0, 1: 0}, max_bytes=10))
        assert [len(values(data.records)) for data in found] == [1, 0]


async def test_incremental_answers_have_only_changes() -> None:
    async with started(topics={"t": 2}) as (_, caller):
        first = await caller.call(fetch("t", {0: 0, 1: 0}, session_epoch=0), 12)
        assert len(first.responses[0].partitions) == 2
        nothing = fetch("t", {}, session_id=first.session_id, session_epoch=1)
        nothing.topics = []
        assert (await caller.call(nothing, 12)).responses == []
        await produced(caller, "t", 1, batch())
        nothing.session_epoch = 2
        response = await caller.call(nothing, 12)
        assert [p.partition_index for p in response.responses[0].partitions] == [1]
        assert response.session_id == first.session_id
        wrong = await caller.call(nothing, 12)
        assert wrong.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        nothing.session_id = 999
        lost = await caller.call(nothing, 12)
        assert lost.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


async def test_offsets_and_epochs_that_a_fetch_refuses() -> None:
    async with started(topics={"t": 1}, nodes=2) as (broker, caller):
        await produced(caller, "t", 0, batch())
        for _ in range(2):
            broker.control.move_leader(("t", 0), 1)
            broker.control.move_leader(("t", 0), 0)
        for offset, epoch, code in [
            (0, 4, 0),
            (1, -1, 0),
            (2, -1, ErrorCode.OFFSET_OUT_OF_RANGE),
            (-1, -1, ErrorCode.OFFSET_OUT_OF_RANGE),
            (0, 3, ErrorCode.FENCED_LEADER_EPOCH),
            (0, 5, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ]:
            request = fetch("t", {0: offset})
            request.topics[0].partitions[0].current_leader_epoch = epoch
            (data,) = await fetched(caller, request)
            assert data.error_code == code, (offset, epoch)


async def test_the_nearest_replica() -> None:
    async with started(topics={"t": 1}, nodes=2, racks=["a", "b"]) as (broker, caller):
        await produced(caller, "t", 0, batch())
        request = fetch("t", {0: 0})
        request.rack_id = "b"
        (data,) = await fetched(caller, request)
        assert (data.preferred_read_replica, data.records) == (1, b"")
        near = await connect(broker, 1)
        (data,) = await fetched(near, request)
        assert values(data.records) == [b"value"]
        # A follower does not redirect its reader to a nearer replica.
        request.rack_id = ""
        (data,) = await fetched(near, request)
        assert values(data.records) == [b"value"]
        (topic,) = (await near.call(request, 10)).responses
        assert topic.partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_node_without_a_replica_refuses_epochs() -> None:
    async with started(nodes=3) as (broker, _):
        broker.create_topic("t", 1, 2)
        for node, code in [
            (1, ErrorCode.UNKNOWN_LEADER_EPOCH),
            (2, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ]:
            request = fetch("t", {0: 0})
            request.topics[0].partitions[0].current_leader_epoch = 7
            (data,) = await fetched(await connect(broker, node), request)
            assert data.error_code == code


async def list_offset(caller: object, timestamp: int, version: int) -> tuple[int, int]:
    request = ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsTopic(
                name="t",
                partitions=[
                    ListOffsetsPartition(partition_index=0, timestamp=timestamp)
                ],
            )
        ],
    )
    response = await caller.call(request, version)  # type: ignore[attr-defined]
    (found,) = response.topics[0].partitions
    assert found.error_code == 0
    return found.offset, found.timestamp


@pytest.mark.parametrize("version", range(1, 12))
async def test_list_offsets(version: int) -> None:
    async with started(topics={"t": 1}) as (_, caller):
        assert await list_offset(caller, 0, version) == (-1, -1)
        for timestamp in (100, 300, 200):
            await produced(caller, "t", 0, batch(timestamp=timestamp))
        for asked, found in {
            -1: (3, -1),
            -2: (0, -1),
            -3: (1, 300),
            -4: (0, -1),
            -5: (-1, -1),
            101: (1, 300),
            301: (-1, -1),
        }.items():
            assert await list_offset(caller, asked, version) == found, asked


async def test_times_below_zero_that_mean_nothing() -> None:
    # A real 4.3.1 answers the same.
    async with started(topics={"t": 1}) as (_, caller):
        listed = ListOffsetsPartition(partition_index=0, timestamp=-7)
        lists = ListOffsetsRequest(
            topics=[ListOffsetsTopic(name="t", partitions=[listed])]
        )
        (answer,) = (await caller.call(lists, 9)).topics[0].partitions
        assert (answer.error_code, answer.offset) == (ErrorCode.UNSUPPORTED_VERSION, -1)


async def test_list_offsets_errors() -> None:
    async with started(topics={"t": 1}, nodes=2) as (broker, caller):
        broker.control.move_leader(("t", 0), 1)
        for index, code in [
            (0, ErrorCode.NOT_LEADER_OR_FOLLOWER),
            (1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ]:
            listed = ListOffsetsPartition(partition_index=index, timestamp=-1)
            lists = ListOffsetsRequest(
                topics=[ListOffsetsTopic(name="t", partitions=[listed])]
            )
            (answer,) = (await caller.call(lists, 9)).topics[0].partitions
            assert (answer.error_code, answer.offset) == (code, -1)
            ended = OffsetForLeaderPartition(partition=index, leader_epoch=0)
            ends = OffsetForLeaderEpochRequest(
                topics=[OffsetForLeaderTopic(topic="t", partitions=[ended])]
            )
            (end,) = (await caller.call(ends, 4)).topics[0].partitions
            assert (end.error_code, end.end_offset) == (code, -1)
            (topic,) = (await caller.call(fetch("t", {index: 0}), 10)).responses
            assert topic.partitions[0].error_code == code


async def test_a_fetch_returns_the_diverging_epoch() -> None:
    async with started(topics={"t": 1}, nodes=2) as (broker, caller):
        await produced(caller, "t", 0, batch())
        broker.control.move_leader(("t", 0), 1)
        broker.control.move_leader(("t", 0), 0)
        await produced(caller, "t", 0, batch())
        for epoch, offset, diverging in [(0, 1, (-1, -1)), (0, 2, (0, 1))]:
            request = fetch("t", {0: offset})
            request.topics[0].partitions[0].last_fetched_epoch = epoch
            (data,) = await fetched(caller, request)
            found = data.diverging_epoch
            assert (found.epoch, found.end_offset) == diverging
            assert bool(data.records) == (diverging == (-1, -1))


async def test_a_fetch_of_version_16_returns_the_leader() -> None:
    async with started(topics={"t": 1}, nodes=2) as (broker, caller):
        broker.control.move_leader(("t", 0), 1)
        request = fetch("t", {0: 0})
        request.topics[0].topic = ""
        request.topics[0].topic_id = broker.topics["t"].topic_id
        request.topics[0].partitions[0].current_leader_epoch = 0
        response = await caller.call(request, 16)
        told = [(node.node_id, node.port) for node in response.node_endpoints]
        assert told == [(1, broker.nodes[1].port)]
        leader = response.responses[0].partitions[0].current_leader
        assert (leader.leader_id, leader.leader_epoch) == (1, 1)


async def test_offset_for_leader_epoch() -> None:
    async with started(topics={"t": 1}, nodes=2) as (broker, caller):

        async def ends(*epochs: int) -> list[tuple[int, int]]:
            parts = [OffsetForLeaderPartition(leader_epoch=epoch) for epoch in epochs]
            topics = [OffsetForLeaderTopic(topic="t", partitions=parts)]
            request = OffsetForLeaderEpochRequest(topics=topics)
            found = (await caller.call(request, 4)).topics[0].partitions
            return [(one.leader_epoch, one.end_offset) for one in found]

        def turn() -> None:
            for node in (1, 0):
                broker.control.move_leader(("t", 0), node)

        turn()
        assert await ends(0, 1, 2, 3) == [(0, 0), (1, 0), (2, 0), (-1, -1)]
        await produced(caller, "t", 0, batch())
        turn()
        assert await ends(0, 1, 2, 3, 4) == [(0, 0), (1, 0), (2, 1), (2, 1), (4, 1)]
        await produced(caller, "t", 0, batch())
        assert await ends(2, 3, 4, 5, -1) == [
            (2, 1),
            (2, 1),
            (4, 2),
            (-1, -1),
            (-1, -1),
        ]


@pytest.mark.parametrize("version", [9, 12])
async def test_produce_returns_the_new_leader(version: int) -> None:
    async with started(topics={"t": 1}, nodes=2) as (broker, caller):
        broker.control.move_leader(("t", 0), 1)
        response = await caller.call(produce("t", 0, batch()), version)
        (answer,) = response.responses[0].partition_responses
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        leader = answer.current_leader
        told = [(node.node_id, node.port) for node in response.node_endpoints]
        if version < 10:
            assert (leader.leader_id, told) == (-1, [])
        else:
            assert (leader.leader_id, leader.leader_epoch) == (1, 1)
            assert told == [(1, broker.nodes[1].port)]


async def test_nodes_know_a_new_leader_after_the_metadata_delay() -> None:
    async with started(topics={"t": 1}, nodes=2, metadata_delay=3.0) as (broker, first):
        second = await connect(broker, 1)
        both = (first, second)
        asked = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
        listed = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name="t")], response_partition_limit=1
        )

        async def told() -> list[tuple[int, int]]:
            one = (await first.call(asked, 12)).topics[0].partitions[0]
            two = (await second.call(listed, 0)).topics[0].partitions[0]
            return [(part.leader_id, part.leader_epoch) for part in (one, two)]

        async def written() -> list[int]:
            answers = [await produced(caller, "t", 0, batch()) for caller in both]
            assert all(answer.current_leader.leader_id == -1 for answer in answers)
            return [answer.error_code for answer in answers]

        none = ErrorCode.NOT_LEADER_OR_FOLLOWER
        broker.control.move_leader(("t", 0), 1)
        assert await written() == [none, none]
        assert await told() == [(0, 0), (0, 0)]
        await asyncio.sleep(2)
        broker.control.move_leader(("t", 0), 0)
        await asyncio.sleep(2)
        assert await written() == [none, none]
        assert await told() == [(0, 0), (0, 0)]
        (data,) = await fetched(second, fetch("t", {0: 0}))
        assert (data.error_code, data.current_leader.leader_id) == (none, -1)
        await asyncio.sleep(1)
        assert await told() == [(0, 2), (0, 2)]
        assert (await produced(first, "t", 0, batch())).error_code == 0
        broker.control.move_leader(("t", 0), 1)
        broker.control.skip_time(3)
        assert (await produced(second, "t", 0, batch())).error_code == 0


async def test_too_few_in_sync_replicas() -> None:
    async with started(nodes=2) as (broker, caller):
        broker.create_topic("t", 1, 2, {"min.insync.replicas": "2"})
        await broker.control.stop(1)
        answer = await produced(caller, "t", 0, batch())
        assert answer.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        await broker.control.restart(1)
        assert (await produced(caller, "t", 0, batch())).error_code == 0


async def test_in_sync_replicas_shrink_and_expand() -> None:
    async with started(nodes=2) as (broker, caller):
        broker.create_topic("t", 1, 2, {"min.insync.replicas": "2"})
        broker.control.shrink_isr(("t", 0), 1)
        answer = await produced(caller, "t", 0, batch())
        assert answer.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        for node in (0, 1):
            with pytest.raises(ValueError, match="not an in-sync follower"):
                broker.control.shrink_isr(("t", 0), node)
        broker.control.expand_isr(("t", 0), 1)
        assert (await produced(caller, "t", 0, batch())).error_code == 0
        await broker.control.stop(1)
        with pytest.raises(ValueError, match="is down, or has no replica"):
            broker.control.expand_isr(("t", 0), 1)


async def test_a_fenced_producer_cannot_write_to_any_partition() -> None:
    async with started(topics={"t": 2}) as (broker, caller):
        data = with_producer(batch(), 7, 3, 0)
        await produced(caller, "t", 0, data)
        assert broker.control.producers(("t", 0)) == {7: 3}
        assert broker.control.fence_producer(7) == 4
        assert broker.control.fence_producer(7) == 5
        for index in (0, 1):
            answer = await produced(caller, "t", index, data)
            assert answer.error_code == ErrorCode.INVALID_PRODUCER_EPOCH
        newer = with_producer(batch(), 7, 5, 0)
        assert (await produced(caller, "t", 0, newer)).base_offset == 1


async def test_a_paused_node_answers_when_it_is_resumed() -> None:
    async with started(topics={"t": 1}) as (broker, caller):
        caller.send(fetch("t", {0: 0}, max_wait_ms=1000), 12, 1)
        await asyncio.sleep(0.5)
        broker.control.pause(0)
        await asyncio.sleep(5)
        assert caller.frames.empty()
        second = await connect(broker)
        caller.send(produce("t", 0, batch()), 12, 2)
        second.send(produce("t", 0, batch()), 12, 2)
        await asyncio.sleep(5)
        assert caller.frames.empty()
        assert second.frames.empty()
        assert broker.topics["t"].partitions[0].high_watermark == 0
        broker.control.resume(0)
        for _ in range(2):
            await caller.frame()
        await second.frame()
        assert broker.topics["t"].partitions[0].high_watermark == 2
        await broker.control.kill(0)
        with pytest.raises(ValueError, match="is not up"):
            broker.control.pause(0)


async def test_a_paused_node_can_be_killed() -> None:
    async with started(topics={"t": 1}) as (broker, caller):
        broker.control.pause(0)
        caller.send(produce("t", 0, batch()), 12, 2)
        await asyncio.sleep(1)
        await broker.control.kill(0)
        with pytest.raises(ConnectionError):
            await caller.frame()
        await broker.control.restart(0)
        again = await connect(broker)
        assert (await produced(again, "t", 0, batch())).base_offset == 0


async def test_time_is_skipped() -> None:
    async with started(metadata_delay=50.0) as (broker, caller):
        broker.create_topic(
            "t", configs={"retention.ms": "60000", "segment.ms": "60000"}
        )
        now_ms = wall_ms()
        await produced(caller, "t", 0, batch(timestamp=now_ms))
        caller.send(fetch("t", {0: 1}, max_wait_ms=1000), 12, 1)
        other = await connect(broker)
        asked = MetadataRequest(topics=[MetadataRequestTopic(name="new")])
        await other.call(asked, 9)
        with pytest.raises(ValueError, match="cannot go back"):
            broker.control.skip_time(-1)
        broker.control.skip_time(100)
        partition = broker.topics["t"].partitions[0]
        assert partition.start_offset == partition.high_watermark == 1
        await caller.frame()
        assert (await produced(other, "new", 0, batch())).error_code == 0


def test_a_refusal_shows_its_code() -> None:
    assert str(Refusal(ErrorCode.NOT_CONTROLLER, "why")) == "NOT_CONTROLLER: why"
