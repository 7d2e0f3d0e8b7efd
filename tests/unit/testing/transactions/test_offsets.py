"""Offsets in a transaction: what a group fences, and which commit counts."""

from __future__ import annotations

import asyncio
from functools import partial
from uuid import uuid4

import pytest

from kafkaio.protocol._codec import encode
from kafkaio.protocol._message import ZERO_UUID
from kafkaio.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
)
from kafkaio.protocol.messages.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
)
from kafkaio.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from kafkaio.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kafkaio.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaio.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from tests.unit.testing.broker.calls import Caller, started
from tests.unit.testing.transactions.calls import MARKERS, Speaker, committed

SUBSCRIPTION = b"\x00\x01" + encode(ConsumerProtocolSubscription(topics=["t"]), 1)


async def classic_member(caller: Caller) -> tuple[str, int]:
    """Join a classic group alone; return the member's id and generation."""
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)],
    )
    request.member_id = (await caller.call(request, 7)).member_id
    joined = await caller.call(request, 7)
    assert joined.error_code == 0
    own = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"all")
    synced = await caller.call(
        SyncGroupRequest(
            group_id="g",
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[own],
        ),
        5,
    )
    assert synced.error_code == 0
    return joined.member_id, joined.generation_id


async def kip848_member(caller: Caller, member_id: str = "m") -> tuple[str, int]:
    """Join a KIP-848 group alone; return the member's id and epoch."""
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id=member_id,
        rebalance_timeout_ms=10_000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    answer = await caller.call(request, 1)
    assert answer.error_code == 0
    assert answer.member_id is not None
    return answer.member_id, answer.member_epoch


#: Who commits: name of the case; member ("own", "other" or ""), and what is added to
#: the generation (None for generation -1); then the codes of a classic group of 4.3, of
#: a KIP-848 group and of 2.8, and of a KIP-848 group by the topic's id (KIP-1319).
ROWS = [
    ("right", "own", 0, (0, 0, 0, 0)),
    ("an older generation", "own", -1, (22, 22, 22, 113)),
    ("a newer generation", "own", 1, (22, 22, 22, 113)),
    ("an unknown member", "other", 0, (25, 25, 25, 25)),
    ("nobody", "", None, (0, 0, 0, 0)),
    ("a generation alone", "", 0, (25, 25, 0, 25)),
    ("a member alone", "own", None, (22, 22, 0, 113)),
]


@pytest.mark.parametrize(("_name", "whom", "more", "codes"), ROWS)
@pytest.mark.parametrize(
    "group", [0, 1, 2, 3], ids=["classic", "kip848", "2.8", "kip848 by id"]
)
async def test_who_is_fenced(
    group: int, _name: str, whom: str, more: int | None, codes: tuple[int, ...]
) -> None:
    options = {"as_version": "2.8"} if group == 2 else {}
    async with started(topics={"t": 2}, **options) as (broker, caller):
        join = kip848_member if group in {1, 3} else classic_member
        own, generation = await join(caller)
        tx = Speaker(caller, bumps=group != 2)
        tx.init_version = 4 if group == 2 else 5
        await tx.start()
        if group == 2:
            assert await tx.add_offsets("g", version=3) == 0
        member = {"own": own, "other": "other", "": ""}[whom]
        named = -1 if more is None else generation + more
        version = (5, 5, 3, 6)[group]
        commit = partial(tx.commit_offset, "g", 7, version=version)
        topic_id = broker.topics["t"].topic_id
        assert await commit((member, named), topic_id=topic_id) == codes[group]
        # An instance id that is not its own.
        code = await commit((own, generation), instance="i", topic_id=topic_id)
        assert code == (25, 0, 0, 0)[group]


async def test_topics_by_their_ids() -> None:
    """As Kafka 4.4.0; a group that is unknown has an error of its own (KIP-1319)."""
    async with started(topics={"t": 1}) as (broker, caller):
        tx = Speaker(caller, bumps=True)
        await tx.start()
        commit = partial(tx.commit_offset, version=6)
        topic_id = broker.topics["t"].topic_id
        assert await commit("g", 7, topic_id=ZERO_UUID) == 100
        assert await commit("g", 7, topic_id=uuid4(), index=5) == 100
        assert await commit("g", 7, topic_id=topic_id, index=5) == 3
        assert await commit("g", 7, ("", 3), topic_id=topic_id) == 69
        assert await commit("g", 7, topic_id=topic_id) == 0
        assert await tx.end(commit=True) == 0
        await asyncio.sleep(MARKERS)
        assert broker.control.committed("g", ("t", 0)) == 7


async def test_before_metadata_could_be_sent() -> None:
    async with started(topics={"t": 1}) as (_, caller):
        await classic_member(caller)
        tx = Speaker(caller, bumps=False)
        await tx.start()
        assert await tx.add_offsets("g") == 0
        assert await tx.commit_offset("g", 7, version=2) == 0


@pytest.mark.parametrize("protocol", ["classic", "kip848"])
async def test_after_all_members_have_left(protocol: str) -> None:
    async with started(topics={"t": 1}) as (broker, caller):
        is_classic = protocol == "classic"
        join = classic_member if is_classic else kip848_member
        member_id, generation = await join(caller)
        tx = Speaker(caller, bumps=True)
        await tx.start()
        if is_classic:
            leaver = MemberIdentity(member_id=member_id)
            left = LeaveGroupRequest(group_id="g", members=[leaver])
            assert (await caller.call(left, 5)).error_code == 0
        else:
            gone = ConsumerGroupHeartbeatRequest(
                group_id="g", member_id=member_id, member_epoch=-1
            )
            assert (await caller.call(gone, 1)).error_code == 0
        assert await tx.commit_offset("g", 7, (member_id, generation)) == 25
        assert await tx.commit_offset("g", 7) == 0
        assert await tx.commit_offset("new", 7, ("", 3)) == 22
        assert await tx.commit_offset("new", 7) == 0
        assert await tx.end(commit=True) == 0
        await asyncio.sleep(MARKERS)
        assert broker.control.committed("new", ("t", 0)) == 7


async def test_partitions_that_nobody_has_and_metadata_that_is_too_large() -> None:
    async with started(topics={"t": 1}) as (_, caller):
        tx = Speaker(caller, bumps=True)
        await tx.start()
        assert await tx.commit_offset("g", 7, topic="none") == 3
        assert await tx.commit_offset("g", 7, index=5) == 3
        stranger = Speaker(caller, "unknown", bumps=True)
        stranger.who = tx.who
        assert await stranger.commit_offset("g", 7) == 49


async def test_the_record_that_was_written_later_counts() -> None:
    async with started(topics={"t": 1}) as (_, caller):
        tx = Speaker(caller, bumps=True)
        await tx.start()
        assert await tx.commit_offset("g", 20) == 0
        plain = OffsetCommitRequest(
            group_id="g",
            topics=[
                OffsetCommitRequestTopic(
                    name="t",
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=0, committed_offset=15
                        )
                    ],
                )
            ],
        )
        answer = await caller.call(plain, 8)
        assert answer.topics[0].partitions[0].error_code == 0
        assert await tx.end(commit=True) == 0
        await asyncio.sleep(MARKERS)
        assert await committed(caller, "g") == (0, 15)
        assert await tx.commit_offset("g", 21) == 0
        assert await tx.end(commit=True) == 0
        await asyncio.sleep(MARKERS)
        assert await committed(caller, "g") == (0, 21)
