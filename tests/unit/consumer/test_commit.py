"""What is committed, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any

import pytest

from kafkaio.errors import AuthorizationError, PartitionLost, UsageError
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kafkaio.types import GroupMetadata, OffsetAndMetadata, TopicPartition
from tests.fakes.broker import FakeCluster
from tests.unit.consumer.conftest import MakeConsumer
from tests.unit.consumer.fake_log import FakeLogs
from tests.unit.consumer.test_cancel import Read, batch, iterate, poll, stream, table

ONE = TopicPartition("one", 0)
READS = [iterate, stream, poll, batch, table]
GROUP = {"assign": [ONE], "group_id": "g", "auto_offset_reset": "earliest"}


def five(logs: FakeLogs) -> None:
    logs.append("one", 0, *[b"%d" % n for n in range(5)])


async def test_auto_commit_takes_finished_records_alone(
    logs: FakeLogs, make: MakeConsumer
):
    five(logs)
    async with make(**GROUP, auto_commit_interval_ms=1000) as consumer:
        for _ in range(3):
            record = await anext(consumer)
        assert record.offset == 2
        await asyncio.sleep(1.5)
        assert logs.committed["one", 0] == 2
        commits = len(logs.commits)
        await asyncio.sleep(5)  # nothing new: nothing to commit
        assert len(logs.commits) == commits
    assert logs.committed["one", 0] == 2


async def test_the_next_poll_finishes_the_one_before(
    logs: FakeLogs, make: MakeConsumer
):
    five(logs)
    async with make(**GROUP, auto_commit_interval_ms=1000) as consumer:
        first = await consumer.poll(max_records=2)
        assert [r.offset for r in first.records] == [0, 1]
        await asyncio.sleep(2)
        assert logs.committed["one", 0] == 0  # where the reset policy led
        await consumer.poll(max_records=2)
        await asyncio.sleep(2)
        assert logs.committed["one", 0] == 2


async def test_without_auto_commit_only_the_user_commits(
    logs: FakeLogs, make: MakeConsumer
):
    five(logs)
    async with make(**GROUP, enable_auto_commit=False) as consumer:
        record = await anext(consumer)
        await anext(consumer)
        await asyncio.sleep(20)
        assert logs.commits == []
        await consumer.commit()
        assert logs.committed["one", 0] == 2
        await consumer.commit(record)
        assert logs.committed["one", 0] == 1
        await consumer.commit({ONE: 4})
        assert await consumer.committed() == {ONE: OffsetAndMetadata(4)}
        await consumer.commit({ONE: OffsetAndMetadata(3, "why")})
        assert logs.committed["one", 0] == 3
        commits = len(logs.commits)
        await consumer.commit({})
        assert await consumer.committed([]) == {}
    assert len(logs.commits) == commits


@pytest.mark.parametrize("read", READS)
async def test_commit_takes_everything_that_was_handed_out(
    read: Read, logs: FakeLogs, make: MakeConsumer
) -> None:
    five(logs)
    async with make(**GROUP, enable_auto_commit=False) as consumer:
        seen = 0
        while seen < 5:
            seen += len(await read(consumer))
            await consumer.commit()
            assert logs.committed["one", 0] == seen
            commits = len(logs.commits)
            await consumer.commit()  # nothing was handed out since
            assert len(logs.commits) == commits


class NeverWaits:
    """An offset store that answers without a turn of the event loop."""

    def __init__(self) -> None:
        self.stored: dict[TopicPartition, OffsetAndMetadata] = {}

    async def load(
        self, group: GroupMetadata, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        return self.stored

    async def commit(
        self, group: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        self.stored |= offsets


@pytest.mark.parametrize("store", [None, NeverWaits()])
async def test_the_wait_for_a_broker_is_a_turn_of_the_loop(
    store: NeverWaits | None, logs: FakeLogs, make: MakeConsumer
) -> None:
    five(logs)
    options = {**GROUP, "enable_auto_commit": False, "offset_store": store}
    async with make(**options) as consumer:
        await anext(consumer)
        consumer._core.time_slice.end = 0.0
        await consumer.commit()
        # A store may not have waited: the reader still owes the others a turn.
        assert consumer._core.time_slice.is_over == (store is not None)


async def test_partitions_are_committed_alone(
    logs: FakeLogs, make: MakeConsumer
) -> None:
    parts = [TopicPartition("orders", n) for n in range(3)]
    for tp in parts:
        logs.append(*tp, b"a", b"b")
    options = {**GROUP, "assign": parts, "enable_auto_commit": False}
    async with make(**options) as consumer:
        while sum([await consumer.position(tp) for tp in parts]) < 6:
            await consumer.poll()
        await consumer.commit([])
        assert logs.committed == {}
        await consumer.commit(parts[0])
        assert logs.committed == {parts[0]: 2}
        await consumer.commit(("orders", 1))  # type: ignore[arg-type]
        assert logs.committed == {parts[0]: 2, parts[1]: 2}
        consumer.seek(parts[0], 1)
        await consumer.commit(frozenset(parts))
        assert logs.committed == {parts[0]: 1, parts[1]: 2, parts[2]: 2}
        with pytest.raises(UsageError, match="one-0 is not assigned"):
            await consumer.commit([parts[0], ONE])


async def test_what_is_committed_is_done(logs: FakeLogs, make: MakeConsumer) -> None:
    five(logs)
    async with make(**GROUP, auto_commit_interval_ms=1000) as consumer:
        await consumer.poll(max_records=3)
        await consumer.commit()
        await consumer.poll(max_records=1)
        await asyncio.sleep(2)
        # What was handed out since is at work, and nothing goes back behind it.
        assert logs.committed["one", 0] == 3
        await consumer.commit({ONE: 1})
        await asyncio.sleep(2)
        assert logs.committed["one", 0] == 1  # the user's stands,
        await consumer.commit()
        assert logs.committed["one", 0] == 4  # unless the user says otherwise
    assert logs.committed["one", 0] == 4


async def test_a_batch_is_committed_after_its_last_record(
    logs: FakeLogs, make: MakeConsumer
):
    five(logs)
    async with make(**GROUP, enable_auto_commit=False) as consumer:
        batch = await anext(consumer.batches(max_records=3))
        assert (len(batch), batch.first_offset, batch.last_offset) == (3, 0, 2)
        assert [r.offset for r in batch] == [0, 1, 2]
        await consumer.commit(batch)
        assert logs.committed["one", 0] == 3
        consumer.assign([])
        with pytest.raises(PartitionLost, match="since the batch was read"):
            await consumer.commit(batch)


async def test_the_users_commit_is_not_overwritten(logs: FakeLogs, make: MakeConsumer):
    five(logs)
    async with make(**GROUP) as consumer:
        for _ in range(5):
            await anext(consumer)
        await consumer.commit({ONE: 5})
    assert logs.committed["one", 0] == 5


async def test_resumes_where_it_was_committed(logs: FakeLogs, make: MakeConsumer):
    five(logs)
    logs.committed["one", 0] = 3
    async with make(**GROUP) as consumer:
        assert await consumer.position(ONE) == 3
        assert (await anext(consumer)).offset == 3


async def test_a_refused_commit_reaches_the_user(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
):
    five(logs)
    refusal = OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name="one",
                topic_id=cluster.topics["one"].topic_id,
                partitions=[
                    OffsetCommitResponsePartition(
                        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED
                    )
                ],
            )
        ]
    )
    async with make(**GROUP, auto_commit_interval_ms=1000) as consumer:
        cluster.on(ApiKey.OFFSET_COMMIT, refusal)
        await anext(consumer)
        await anext(consumer)
        with pytest.raises(AuthorizationError):
            await consumer.commit()
        await asyncio.sleep(1.5)
        with pytest.raises(AuthorizationError):
            await anext(consumer)
        cluster.on(ApiKey.OFFSET_COMMIT, logs.commit)
        assert (await anext(consumer)).offset == 2


async def test_without_a_group_there_is_nothing_to_commit_to(
    logs: FakeLogs, make: MakeConsumer
):
    five(logs)
    async with make(assign=[ONE], auto_offset_reset="earliest") as consumer:
        await anext(consumer)
        for call in (consumer.commit(), consumer.committed()):
            with pytest.raises(UsageError, match="group_id"):
                await call
        with pytest.raises(UsageError, match="group_id"):
            assert consumer.group_metadata
        with pytest.raises(UsageError, match="member of a group"):
            consumer.enforce_rebalance()
    async with make(**GROUP) as consumer:
        assert consumer.group_metadata.group_id == "g"
        assert consumer.group_metadata.generation == -1


async def test_what_cannot_be_committed(logs: FakeLogs, make: MakeConsumer) -> None:
    five(logs)
    async with make(**GROUP) as consumer:
        record = await anext(consumer)
        with pytest.raises(UsageError, match="not list"):
            await consumer.commit([record])  # type: ignore[arg-type]
        # A broker takes it, and then there is no offset to begin at.
        with pytest.raises(UsageError, match="one-0 has no offset -1"):
            await consumer.commit({ONE: -1})
        assert logs.commits == []


async def test_partitions_may_be_plain_tuples(
    logs: FakeLogs, make: MakeConsumer
) -> None:
    five(logs)
    plain = ("one", 0)
    async with make(**GROUP) as consumer:
        await consumer.commit({plain: 3})  # type: ignore[dict-item]
        at = (await consumer.committed([plain]))[ONE]  # type: ignore[list-item]
        assert at is not None
        assert at.offset == 3
        found = await consumer.offsets_for_times({plain: 0})  # type: ignore[dict-item]
        assert list(found) == [ONE]
        assert await consumer.position(plain) == 0  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="one-1 is not assigned"):
            await consumer.position(("one", 1))  # type: ignore[arg-type]


async def test_the_users_commit_is_not_overwritten_while_it_is_on_its_way(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
) -> None:
    five(logs)

    async def slowly(*what: Any) -> OffsetCommitResponse:
        await asyncio.sleep(2)
        return logs.commit(*what)

    async with make(**GROUP, auto_commit_interval_ms=4000) as consumer:
        await consumer.poll()
        await consumer.poll(timeout=0)
        cluster.on(ApiKey.OFFSET_COMMIT, slowly)
        await asyncio.sleep(2.5)
        await consumer.commit({ONE: 2})
        await asyncio.sleep(10)
        assert logs.committed["one", 0] == 2
    assert logs.committed["one", 0] == 2


async def test_nor_by_an_automatic_one_that_began_before_and_ends_after_it(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
) -> None:
    other = TopicPartition("orders", 0)
    five(logs)
    loads = 5

    async def slowly(*what: Any) -> OffsetCommitResponse:
        nonlocal loads
        await asyncio.sleep(1)
        reply = logs.commit(*what)
        for topic in reply.topics:
            if topic.name == "orders" and loads:
                loads -= 1
                code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
                topic.partitions[0].error_code = code
        return reply

    options = {**GROUP, "assign": [ONE, other], "auto_commit_interval_ms": 10_000}
    async with make(**options) as consumer:
        cluster.on(ApiKey.OFFSET_COMMIT, slowly)
        await consumer.poll(max_records=2)
        await consumer.poll(max_records=2)
        await asyncio.sleep(10.5)  # in the middle of an automatic commit
        await consumer.poll(timeout=0)
        await consumer.commit({ONE: 1})
        assert loads
        await asyncio.sleep(30)
        assert not loads
        assert logs.committed == {("one", 0): 1, ("orders", 0): 0}
    assert logs.committed["one", 0] == 1
