"""ShareFetch and ShareAcknowledge of the embedded broker."""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import uuid4

import pytest

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing import Broker, error
from tests.unit.testing.broker.calls import connect
from tests.unit.testing.share.members import (
    ACCEPT,
    GROUP,
    REJECT,
    RELEASE,
    RENEW,
    TOPIC,
    Member,
    acquired,
    another,
    code_of,
    configure,
    data_of,
    fill,
    reader,
    shared,
)


async def test_single_records_are_exact_and_batches_are_not_divided() -> None:
    async with shared(10) as (broker, member):
        assert acquired(await member.fetch(3)) == [(0, 2, 1)]
        other = await another(broker, "other")
        # Soft: what is left of the batch.
        assert acquired(await other.fetch(2, exact=False)) == [(3, 9, 1)]
        assert acquired(await other.fetch(2)) == []


async def test_whole_batches_are_sent_for_single_records() -> None:
    async with shared(5, 1, 1) as (_, member):
        whole = data_of(await member.fetch(5, exact=False)).records
        await member.acknowledge((0, 4, RELEASE))
        assert acquired(one := await member.fetch(1)) == [(0, 0, 2)]
        assert data_of(one).records == whole
        # Batches that nothing was acquired of are left out.
        assert acquired(many := await member.fetch(100)) == [(1, 4, 2), (5, 6, 1)]
        assert len(data_of(many).records) > len(whole)


async def test_acknowledged_records_are_done_with() -> None:
    async with shared(4) as (_, member):
        assert acquired(await member.fetch()) == [(0, 3, 1)]
        acks = [(0, 0, ACCEPT), (1, 1, REJECT), (2, 3, RELEASE)]
        assert code_of(await member.acknowledge(*acks)) == 0
        assert acquired(await member.fetch()) == [(2, 3, 2)]
        # Below the start nobody looks.
        assert code_of(await member.acknowledge((0, 1, ACCEPT))) == 0


async def test_acknowledgements_of_a_partition_stand_or_fall_together() -> None:
    async with shared(1, 1) as (broker, member):
        other = await another(broker, "other")
        assert acquired(await member.fetch(1)) == [(0, 0, 1)]
        assert acquired(await other.fetch(1)) == [(1, 1, 1)]
        answer = await member.acknowledge((0, 0, ACCEPT), (1, 1, ACCEPT))
        assert code_of(answer) == ErrorCode.INVALID_RECORD_STATE
        assert code_of(await member.acknowledge((0, 0, RELEASE))) == 0
        assert acquired(await member.fetch(1)) == [(0, 0, 2)]


@pytest.mark.parametrize(
    ("acks", "code"),
    [
        ([(1, 1, ACCEPT), (0, 0, ACCEPT)], ErrorCode.INVALID_REQUEST),
        ([(0, 2, ACCEPT), (2, 3, ACCEPT)], ErrorCode.INVALID_REQUEST),
        ([(3, 2, ACCEPT)], ErrorCode.INVALID_REQUEST),
        ([(0, 0, 9)], ErrorCode.INVALID_REQUEST),
        ([(0, 0, RENEW)], ErrorCode.INVALID_REQUEST),
        ([(3, 7, ACCEPT)], ErrorCode.INVALID_REQUEST),
        ([(9, 9, ACCEPT)], ErrorCode.INVALID_REQUEST),
    ],
)
async def test_what_is_wrong_is_refused_for_its_partition(
    acks: list[tuple[int, int, int]], code: ErrorCode
) -> None:
    async with shared(4) as (_, member):
        await member.fetch()
        assert code_of(await member.acknowledge(*acks)) == code
        # The session goes on, and so do the locks.
        assert code_of(await member.acknowledge((0, 3, ACCEPT))) == 0


async def test_types_are_one_for_all_or_one_for_each() -> None:
    async with shared(4) as (_, member):
        await member.fetch()
        wrong = await member.fetch(acks={0: [(0, 3, [ACCEPT, ACCEPT])]})
        code = data_of(wrong).acknowledge_error_code
        assert code == ErrorCode.INVALID_REQUEST
        types = [ACCEPT, 0, REJECT, RELEASE]
        answer = await member.fetch(acks={0: [(0, 3, types)]})
        assert data_of(answer).acknowledge_error_code == 0
        # What a request releases is not what it gets.
        assert acquired(answer) == []
        assert acquired(await member.fetch()) == [(3, 3, 2)]


async def test_the_last_delivery_comes_alone_and_then_no_more() -> None:
    async with shared(4, configs={"share.delivery.count.limit": 3}) as (_, member):
        found = []
        while ranges := acquired(await member.fetch(10, exact=False)):
            found += ranges
            for first, last, _ in ranges:
                await member.acknowledge((first, last, RELEASE))
        alone = [(offset, offset, 3) for offset in range(4)]
        assert found == [(0, 3, 1), (0, 3, 2), *alone]


async def test_locks_end_by_the_clock_of_the_broker() -> None:
    async with shared(2) as (broker, member):
        assert (first := await member.fetch()).acquisition_lock_timeout_ms == 30_000
        assert acquired(first) == [(0, 1, 1)]
        broker.control.skip_time(29)
        assert acquired(await member.fetch()) == []
        assert code_of(await member.acknowledge((0, 0, RENEW), renews=True)) == 0
        broker.control.skip_time(2)
        assert acquired(await member.fetch()) == [(1, 1, 2)]
        assert code_of(await member.acknowledge((0, 1, ACCEPT))) == 0
        broker.control.skip_time(40)
        assert acquired(await member.fetch()) == []


async def test_a_lock_that_ended_is_known_to_whoever_acknowledges() -> None:
    async with shared(2) as (broker, member):
        await member.fetch()
        broker.control.skip_time(31)
        late = await member.acknowledge((0, 0, ACCEPT))
        assert code_of(late) == ErrorCode.INVALID_RECORD_STATE


async def test_the_duration_is_that_of_the_group() -> None:
    async with shared(1, configs={"share.record.lock.duration.ms": 2000}) as (
        broker,
        member,
    ):
        assert (await member.fetch()).acquisition_lock_timeout_ms == 2000
        await configure(member.caller, share_record_lock_duration_ms=5000)
        answer = await member.acknowledge((0, 0, RENEW), renews=True)
        assert answer.acquisition_lock_timeout_ms == 5000
        broker.control.skip_time(3)
        assert code_of(await member.acknowledge((0, 0, ACCEPT))) == 0


async def test_a_renewal_brings_no_records() -> None:
    async with shared(2) as (_, member):
        await member.fetch(1)
        answer = await member.fetch(renews=True, acks={0: [(0, 0, [RENEW])]})
        assert data_of(answer).acknowledge_error_code == 0
        assert acquired(answer) == []


async def test_a_group_may_forbid_renewals() -> None:
    configs = {"share.renew.acknowledge.enable": "false"}
    async with shared(2, configs=configs) as (_, member):
        await member.fetch(1)
        refused = await member.acknowledge((0, 0, RENEW), renews=True)
        assert code_of(refused) == ErrorCode.INVALID_RECORD_STATE
        (topic,) = refused.responses
        assert topic.partitions[0].error_message == (
            "Renewing acquisition locks is not enabled for the group."
        )
        # Nothing else is refused in such a request, and the lock goes on.
        assert code_of(await member.acknowledge((0, 0, ACCEPT), renews=True)) == 0


async def test_a_full_partition_gives_only_what_is_freed() -> None:
    configs = {"share.partition.max.record.locks": 100}
    async with shared(60, 60, configs=configs) as (broker, member):
        assert acquired(await member.fetch(1000, exact=False)) == [(0, 119, 1)]
        await fill(member.caller, 5)
        other = await another(broker, "other")
        assert acquired(await other.fetch()) == []
        await member.acknowledge((7, 8, RELEASE))
        assert acquired(await other.fetch()) == [(7, 8, 2)]
        await member.acknowledge((0, 6, ACCEPT))
        await other.acknowledge((7, 8, ACCEPT))
        await member.acknowledge((9, 119, ACCEPT))
        assert acquired(await other.fetch()) == [(120, 124, 1)]


# ---- sessions ------------------------------------------------------------------------


async def test_epochs_are_one_sequence() -> None:
    async with shared(1) as (_, member):
        assert (await member.fetch(epoch=5)).error_code == (
            ErrorCode.SHARE_SESSION_NOT_FOUND
        )
        await member.fetch()
        await member.acknowledge((0, 0, ACCEPT))
        answer = await member.fetch(epoch=1)
        assert answer.error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
        assert (await member.fetch()).error_code == 0
        acked = await member.acknowledge((0, 0, ACCEPT), epoch=0)
        assert acked.error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH


async def test_the_first_request_has_no_acknowledgements() -> None:
    async with shared(1) as (_, member):
        answer = await member.fetch(acks={0: [(0, 0, [ACCEPT])]}, epoch=0)
        assert answer.error_code == ErrorCode.INVALID_REQUEST


async def test_a_session_that_is_opened_anew_keeps_the_locks() -> None:
    async with shared(2) as (_, member):
        await member.fetch(1)
        assert acquired(await member.fetch(epoch=0)) == [(1, 1, 1)]
        member.session = 1
        assert code_of(await member.acknowledge((0, 1, ACCEPT))) == 0


async def test_the_last_request_acknowledges_and_frees_the_rest() -> None:
    async with shared(3) as (broker, member):
        await member.fetch()
        other = await another(broker, "other")
        last = await member.fetch(acks={0: [(0, 0, [ACCEPT])]}, epoch=-1)
        assert data_of(last).acknowledge_error_code == 0
        assert acquired(await other.fetch()) == [(1, 2, 2)]
        gone = await member.acknowledge((1, 1, ACCEPT))
        assert gone.error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
        again = await member.acknowledge((1, 1, ACCEPT), epoch=-1)
        assert again.error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


async def test_a_session_ends_with_the_connection_that_opened_it() -> None:
    async with shared(2) as (broker, member):
        other = await another(broker, "other")
        assert acquired(await other.fetch(1)) == [(0, 0, 1)]
        # Any connection may use it.
        second = await connect(broker)
        first, other.caller = other.caller, second
        assert acquired(await other.fetch(1)) == [(1, 1, 1)]
        assert first.transport is not None
        first.transport.abort()
        waiting = await member.fetch(wait=10_000)
        assert acquired(waiting) == [(0, 1, 2)]
        gone = await other.fetch()
        assert gone.error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


async def test_an_old_connection_does_not_end_the_next_session() -> None:
    async with shared(1) as (broker, member):
        await member.fetch(epoch=0)
        first, member.caller = member.caller, await connect(broker)
        await member.fetch(epoch=0)
        assert first.transport is not None
        first.transport.abort()
        await asyncio.sleep(0)
        member.session = 1
        assert code_of(await member.acknowledge((0, 0, ACCEPT))) == 0


async def test_the_number_of_sessions_is_limited() -> None:
    config = {"group.share.max.share.sessions": 1}
    async with shared(1, config=config) as (broker, member):
        await member.fetch()
        other = await another(broker, "other")
        answer = await other.fetch(wait=1)
        assert answer.error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
        await member.fetch(epoch=-1)
        assert acquired(await other.fetch()) == [(0, 0, 2)]


async def test_partitions_are_added_and_forgotten() -> None:
    async with shared(1, partitions=2) as (_, member):
        await fill(member.caller, 1, partition=1)
        first = await member.fetch(partitions=(0,))
        assert acquired(first) == [(0, 0, 1)]
        assert acquired(await member.add(1), 1) == [(0, 0, 1)]
        await fill(member.caller, 1)
        await fill(member.caller, 1, partition=1)
        only = await member.fetch(forgotten=(0,))
        assert (acquired(only), acquired(only, 1)) == ([], [(1, 1, 1)])
        # What is held of it may be acknowledged all the same.
        assert code_of(await member.acknowledge((0, 0, ACCEPT))) == 0


async def test_later_answers_name_only_what_has_something_to_say() -> None:
    async with shared(partitions=2) as (_, member):
        first = await member.fetch(partitions=(0, 7))
        assert [
            (one.partition_index, one.error_code)
            for topic in first.responses
            for one in topic.partitions
        ] == [(0, 0), (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
        (topic,) = (await member.fetch()).responses
        assert [one.partition_index for one in topic.partitions] == [7]
        unknown = await member.fetch(epoch=0, topic_id=uuid4())
        (topic,) = unknown.responses
        assert topic.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


async def test_only_partitions_of_the_group_can_be_fetched() -> None:
    async with shared(1) as (broker, _):
        stranger = await reader(broker, "stranger")
        stranger.group = "none"
        data = data_of(await stranger.fetch())
        assert data.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        # In a group, nobody asks whether it is a member.
        stranger.group, stranger.session = GROUP, 0
        assert acquired(await stranger.fetch()) == [(0, 0, 1)]


@pytest.mark.parametrize(
    ("group", "name", "code"),
    [
        ("", "m", ErrorCode.UNKNOWN_SERVER_ERROR),
        (GROUP, "", ErrorCode.INVALID_REQUEST),
    ],
)
async def test_group_and_member_have_names(
    group: str, name: str, code: ErrorCode
) -> None:
    async with shared(1) as (_, member):
        member.group, member.name = group, name
        assert (await member.fetch()).error_code == code
        assert (await member.acknowledge((0, 0, ACCEPT), epoch=1)).error_code == code


# ---- waiting -------------------------------------------------------------------------


async def test_a_fetch_waits_for_new_records() -> None:
    async with shared() as (broker, member):
        waiting = asyncio.ensure_future(member.fetch(wait=60_000))
        producer = await connect(broker)
        await fill(producer, 2)
        assert acquired(await waiting) == [(0, 1, 1)]


async def test_a_fetch_waits_for_freed_records() -> None:
    async with shared(2) as (broker, member):
        await member.fetch()
        other = await another(broker, "other")
        waiting = asyncio.ensure_future(other.fetch(wait=60_000))
        await asyncio.sleep(0)
        await member.acknowledge((1, 1, RELEASE))
        assert acquired(await waiting) == [(1, 1, 2)]
        waiting = asyncio.ensure_future(other.fetch(wait=60_000))
        await asyncio.sleep(0)
        broker.control.skip_time(30)
        assert acquired(await waiting) == [(0, 0, 2), (1, 1, 3)]


async def test_a_fetch_waits_no_longer_than_it_says() -> None:
    async with shared() as (_, member):
        assert acquired(await member.fetch(wait=5)) == []


async def test_nothing_is_locked_for_a_client_that_has_gone() -> None:
    async with shared() as (broker, member):
        other = await another(broker, "other")
        waiting = asyncio.ensure_future(other.fetch(wait=60_000))
        await asyncio.sleep(0)
        assert other.caller.transport is not None
        other.caller.transport.abort()
        with pytest.raises(ConnectionError):
            await waiting
        await fill(member.caller, 1)
        assert acquired(await member.fetch()) == [(0, 0, 1)]


# ---- leaders -------------------------------------------------------------------------


async def test_another_node_names_the_leader() -> None:
    async with shared(1, nodes=2) as (broker, _):
        leader = broker.control.leader((TOPIC, 0))
        member = await reader(broker, "other", 1 - leader)
        answer = await member.fetch()
        data = data_of(answer)
        assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert data.current_leader.leader_id == leader
        (node,) = answer.node_endpoints
        assert (node.node_id, node.port) == (leader, broker.nodes[leader].port)


async def _moved(how: str) -> list[tuple[int, int, int]]:
    """What the next leader delivers, after two deliveries of the first record."""
    async with shared(3, 3, nodes=2, replication_factor=2) as (broker, _):
        leader = broker.control.leader((TOPIC, 0))
        member = await reader(broker, "holder", leader)
        assert acquired(await member.fetch(3)) == [(0, 2, 1)]
        await member.acknowledge((0, 0, RELEASE), (1, 1, ACCEPT))
        assert acquired(await member.fetch(1)) == [(0, 0, 2)]
        if how == "moved":
            broker.control.move_leader((TOPIC, 0), 1 - leader)
            late = await member.acknowledge((2, 2, ACCEPT))
            assert code_of(late) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif how == "stopped":
            await broker.control.stop(leader)
        else:
            await broker.control.kill(leader)
        other = await reader(broker, "other", 1 - leader)
        return acquired(await other.fetch())


async def test_a_leader_that_moves_or_dies_counts_no_delivery() -> None:
    # As Kafka 4.3.1 does, whose locks are in memory alone: what was delivered and not
    # acknowledged comes again at once, with the number of deliveries that it had.
    assert await _moved("moved") == [(0, 0, 2), (2, 5, 1)]
    assert await _moved("killed") == [(0, 0, 2), (2, 5, 1)]


async def test_a_leader_that_stops_frees_what_is_held() -> None:
    assert await _moved("stopped") == [(0, 0, 3), (2, 2, 2), (3, 5, 1)]


@pytest.mark.parametrize("how", ["closed", "cut"])
async def test_a_session_with_a_former_leader_frees_nothing(how: str) -> None:
    # Locks are in the memory of the leader: its predecessor cannot free them.
    async with shared(3, nodes=2, replication_factor=2) as (broker, _):
        leader = broker.control.leader((TOPIC, 0))
        before = await reader(broker, "holder", leader)
        assert acquired(await before.fetch()) == [(0, 2, 1)]
        broker.control.move_leader((TOPIC, 0), 1 - leader)
        member = await reader(broker, "holder", 1 - leader)
        assert acquired(await member.fetch()) == [(0, 2, 1)]
        if how == "closed":
            await before.acknowledge(epoch=-1)
        else:
            assert before.caller.transport is not None
            before.caller.transport.abort()
        other = await reader(broker, "other", 1 - leader)
        assert acquired(await other.fetch()) == []
        assert code_of(await member.acknowledge((0, 2, ACCEPT))) == 0


async def test_states_are_kept_over_a_restart(tmp_path: Path) -> None:
    async with shared(4, data_dir=tmp_path) as (broker, member):
        await member.fetch()
        await member.acknowledge((0, 0, ACCEPT), (2, 2, RELEASE), (3, 3, REJECT))
        epoch = member.epoch
    async with Broker(memory_transport=True, data_dir=tmp_path) as broker:
        member = Member(await connect(broker), broker.topics[TOPIC].topic_id)
        # Its session goes on where it was.
        answer = await member.heartbeat(epoch)
        assert (answer.error_code, answer.assignment) == (0, None)
        assert acquired(await member.fetch()) == [(1, 2, 2)]


# ---- faults --------------------------------------------------------------------------


async def test_locks_end_and_sessions_are_forgotten_on_demand() -> None:
    async with shared(2) as (broker, member):
        await member.fetch()
        assert broker.control.expire_locks(GROUP, (TOPIC, 0)) == 1
        assert broker.control.expire_locks(GROUP) == 0
        assert acquired(await member.fetch()) == [(0, 1, 2)]
        assert broker.control.end_share_sessions(GROUP, "nobody") == 0
        assert broker.control.end_share_sessions(GROUP) == 1
        gone = await member.fetch()
        assert gone.error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
        member.session = 0
        await member.fetch()
        # The locks are as before.
        assert code_of(await member.acknowledge((0, 1, ACCEPT))) == 0


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    ],
)
async def test_errors_of_sessions_are_those_of_the_answer(code: ErrorCode) -> None:
    async with shared(1) as (broker, member):
        broker.faults.on("ShareFetch", error(code, times=1))
        assert (await member.fetch()).error_code == code
        # The request has had no effect.
        assert acquired(await member.fetch()) == [(0, 0, 1)]
        broker.faults.on("ShareAcknowledge", error(code, times=1))
        assert (await member.acknowledge((0, 0, ACCEPT))).error_code == code
        assert code_of(await member.acknowledge((0, 0, ACCEPT))) == 0


async def test_other_errors_are_those_of_partitions() -> None:
    async with shared(1) as (broker, member):
        first = error(ErrorCode.UNKNOWN_SERVER_ERROR, times=1)
        second = error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, times=1)
        # The first fetches on a fresh cluster, while Kafka makes the state topic.
        broker.faults.on("ShareFetch", first)
        assert data_of(await member.fetch()).error_code == -1
        # An incremental request, which names no partition.
        broker.faults.on("ShareFetch", second, partition=(TOPIC, 0))
        assert data_of(await member.fetch()).error_code == 3
        assert acquired(await member.fetch()) == [(0, 0, 1)]
        broken = error(ErrorCode.INVALID_RECORD_STATE, times=1)
        broker.faults.on("ShareAcknowledge", broken, partition=(TOPIC, 0))
        assert code_of(await member.acknowledge((0, 0, ACCEPT))) == 121
        assert code_of(await member.acknowledge((0, 0, ACCEPT))) == 0
