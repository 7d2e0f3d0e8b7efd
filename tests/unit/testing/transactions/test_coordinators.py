"""Coordinators that move, restart and expire ids; the files that stay behind."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.describe_transactions import DescribeTransactionsRequest
from kafkaio.protocol.messages.find_coordinator import FindCoordinatorRequest
from kafkaio.protocol.messages.list_transactions import ListTransactionsRequest
from kafkaio.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kafkaio.testing import Broker, GroupConfig
from kafkaio.testing._broker.batches import batches_of
from kafkaio.testing._log.formats import (
    AbortedTransaction,
    read_producer_snapshot,
    read_transaction_index,
)
from kafkaio.testing._log.segment import decode
from kafkaio.testing._transactions.records import (
    read_key,
    read_value,
    transaction_key,
    transaction_value,
)
from kafkaio.testing._transactions.transaction import (
    TransactionMetadata,
    TransactionStatus,
)
from tests.unit.testing.broker.calls import connect, started
from tests.unit.testing.transactions.calls import (
    MARKERS,
    Identity,
    Speaker,
    committed,
    end_offset,
    producers,
    visible,
)


def state_records(broker: Broker, name: str = "tx") -> list[TransactionMetadata | None]:
    """Everything that was written about a transactional id."""
    found: list[TransactionMetadata | None] = []
    for partition in broker.topics["__transaction_state"].partitions:
        log, offset = partition.log, 0
        while data := log.read(offset, 1 << 20):
            for header, raw in batches_of(data):
                offset = header.next_offset
                for record in decode(raw):
                    assert record.key is not None
                    if read_key(record.key) == name:
                        value = record.value
                        found.append(read_value(name, value) if value else None)
    return found


async def test_the_records_of_a_commit_and_an_abort() -> None:
    async with started(topics={"t": 1}) as (broker, caller):
        tx = Speaker(caller, bumps=True)
        await tx.start()
        for commit in (True, False):
            assert await tx.write(0) == 0
            assert await tx.end(commit=commit) == 0
            await asyncio.sleep(MARKERS)
        found = [one for one in state_records(broker) if one is not None]
        assert [(one.state.value, one.epoch) for one in found] == [
            (0, 0),
            (1, 0),
            (2, 1),
            (4, 1),
            (1, 1),
            (3, 2),
            (5, 2),
        ]
        assert [one.client_version for one in found] == [0, 2, 2, 2, 2, 2, 2]
        assert found[0].started_ms == -1 != found[3].started_ms
        assert len(broker.topics["__transaction_state"].partitions) == 50
        assert broker.topics["__transaction_state"].is_internal


def test_a_record_byte_for_byte() -> None:
    one = TransactionMetadata(
        "ab", 7, 3, 1000, TransactionStatus.ONGOING, {("t", 1)}, 5, 4, client_version=2
    )
    one.previous_producer_id = 6
    assert transaction_key("ab").hex() == "000000026162"
    assert transaction_value(one, 0).hex() == (
        "0000" "0000000000000007" "0003" "000003e8" "01"
        "00000001" "000174" "00000001" "00000001"
        "0000000000000005" "0000000000000004"
    )  # fmt: skip
    assert transaction_value(one, 2).hex() == (
        "0001" "0000000000000007" "0003" "000003e8" "01"
        "02" "0274" "02" "00000001" "00"
        "0000000000000005" "0000000000000004"
        "02" "00" "08" "0000000000000006" "02" "02" "0002"
    )  # fmt: skip
    assert read_value("ab", transaction_value(one, 2)) == one
    with pytest.raises(ValueError, match="unknown version 9"):
        read_value("ab", b"\x00\x09")
    assert read_key(b"\x00\x05") is None


async def test_a_coordinator_moves_between_the_end_and_the_markers() -> None:
    groups = GroupConfig(load_time=0.5)
    async with started(nodes=3, topics={"t": 1}, groups=groups) as (broker, _):
        first = broker.control.transaction_coordinator("tx")
        for node in broker.nodes:
            broker.control.move_leader(("t", 0), node)
        broker.control.move_leader(("t", 0), first)
        caller = await connect(broker, first)
        tx = Speaker(caller, bumps=True)
        assert await tx.init() == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        await asyncio.sleep(0.6)
        assert await tx.init() == 0
        assert await tx.write(0) == 0
        broker.control.delay_markers(5.0)
        before = tx.who
        assert await tx.end(commit=True) == 0
        second = (first + 1) % 3
        broker.control.move_transaction_coordinator("tx", second)
        assert await tx.end(commit=True, who=before) == 16
        tx.caller = await connect(broker, second)
        assert await tx.end(commit=True, who=before) == 14
        await asyncio.sleep(0.6)
        assert await tx.end(commit=True, who=before) == 51
        await asyncio.sleep(5.0)
        assert await tx.end(commit=True, who=before) == 0
        assert tx.who == Identity(before.producer_id, before.epoch + 1)
        (marker,) = await producers(caller)
        assert marker.coordinator_epoch == 1
        assert await visible(caller) == [b"v"]
        await broker.control.kill(second)
        found = FindCoordinatorRequest(key_type=1, coordinator_keys=["tx"])
        (answer,) = (await caller.call(found, 6)).coordinators
        assert (answer.error_code, answer.node_id) == (
            0,
            broker.control.transaction_coordinator("tx"),
        )
        assert answer.node_id != second


async def test_a_leader_without_its_coordinator() -> None:
    async with started(nodes=2, replication_factor=1) as (broker, caller):
        broker.create_topic("t", 1, 1)
        broker.control.move_leader(("t", 0), 0)
        broker.control.move_transaction_coordinator("tx", 1)
        tx = Speaker(await connect(broker, 1), bumps=True)
        await tx.start()
        broker.control.pause(1)
        tx.caller = caller
        assert await tx.write(0) == 19
        broker.control.resume(1)
        assert await tx.write(0) == 0


async def test_markers_wait_for_a_leader() -> None:
    async with started(nodes=2, replication_factor=1) as (broker, caller):
        broker.create_topic("t", 1, 1)
        broker.control.move_leader(("t", 0), 0)
        broker.control.move_transaction_coordinator("tx", 0)
        tx = Speaker(caller, bumps=True)
        await tx.start()
        assert await tx.write(0) == 0
        broker.control.move_leader(("t", 0), 1)
        broker.control.pause(1)
        assert await tx.end(commit=True) == 0
        await asyncio.sleep(1.0)
        broker.control.write_markers()
        assert broker.control.last_stable_offset(("t", 0)) == 0
        broker.control.resume(1)
        broker.control.pause(0)  # the coordinator's node
        await asyncio.sleep(1.0)
        assert broker.control.last_stable_offset(("t", 0)) == 0
        broker.control.resume(0)
        await asyncio.sleep(0.1)
        assert broker.control.last_stable_offset(("t", 0)) == 2
        # A topic that is gone needs no marker.
        broker.control.move_leader(("t", 0), 0)
        assert await tx.write(0) == 0
        broker._cluster.delete_topic(broker.topics["t"])
        assert await tx.end(commit=True) == 0
        await asyncio.sleep(MARKERS)
        found = broker.control.transaction("tx")
        assert found is not None
        assert found.state == "CompleteCommit"


def on_disk(directory: Path) -> dict[str, object]:
    return {"topics": {"t": 1}, "data_dir": directory}


async def test_a_restart(tmp_path: Path) -> None:
    async with started(**on_disk(tmp_path)) as (broker, caller):
        tx = Speaker(caller, bumps=True)
        await tx.start()
        for commit in (True, False):
            assert await tx.write(0) == 0
            assert await tx.commit_offset("g", 7 if commit else 8) == 0
            assert await tx.end(commit=commit) == 0
            await asyncio.sleep(MARKERS)
        broker.control.delay_markers(60)
        assert await tx.write(0) == 0
        assert await tx.commit_offset("g", 9) == 0
        assert await tx.end(commit=True) == 0
        other = Speaker(caller, "other", bumps=True)
        await other.start()
        assert await other.write(0) == 0
        assert await other.commit_offset("h", 1) == 0
        assert await end_offset(caller, 1) == 4
    index = (tmp_path / "t-0" / f"{0:020d}.txnindex").read_bytes()
    pid = tx.who.producer_id
    assert list(read_transaction_index(index)) == [AbortedTransaction(pid, 2, 3, 4)]
    snapshot = (tmp_path / "t-0" / f"{6:020d}.snapshot").read_bytes()
    entries = {one.producer_id: one for one in read_producer_snapshot(snapshot)}
    assert entries[pid].first_offset == 4
    assert entries[other.who.producer_id].first_offset == 5
    async with started(**on_disk(tmp_path)) as (broker, caller):
        tx.caller = other.caller = caller
        # The markers that had not been written are.
        assert await committed(caller, "g") == (88, -1)
        await asyncio.sleep(MARKERS)
        assert await committed(caller, "g") == (0, 9)
        assert await committed(caller, "h", stable=False) == (0, -1)
        assert await end_offset(caller, 1) == 5
        assert await other.write(1) == 0
        assert await tx.write(0) == 0
        assert await tx.end(commit=True) == 0
        assert await other.end(commit=False) == 0
        await asyncio.sleep(MARKERS)
        assert await visible(caller) == [b"v"] * 3
        assert await committed(caller, "h") == (0, -1)


async def test_files_that_are_lost_are_found_again(tmp_path: Path) -> None:
    async with started(**on_disk(tmp_path)) as (broker, caller):
        tx = Speaker(caller, bumps=True)
        await tx.start()
        for commit in (True, False):
            assert await tx.write(0) == 0
            assert await tx.end(commit=commit) == 0
            await asyncio.sleep(MARKERS)
    for name in (tmp_path / "t-0").glob("*.txnindex"):
        name.write_bytes(b"cut")
    for name in (tmp_path / "t-0").glob("*.snapshot"):
        name.write_bytes(b"cut")
    async with started(**on_disk(tmp_path)) as (broker, caller):
        assert await visible(caller) == [b"v"]
        found = broker.control.producers(("t", 0))
        assert found == {tx.who.producer_id: tx.who.epoch}
    (index,) = (tmp_path / "t-0").glob("*.txnindex")
    assert len(index.read_bytes()) == 34


async def test_snapshots_and_aborted_transactions_of_many_segments(
    tmp_path: Path,
) -> None:
    options = {"data_dir": tmp_path, "topics": {}}
    async with started(**options) as (broker, caller):
        broker.create_topic("t", configs={"segment.bytes": "1048576"})
        log = broker.topics["t"].partitions[0].log
        tx = Speaker(caller, bumps=True)
        await tx.start()
        for number in range(6):
            assert await tx.write(0) == 0
            assert await tx.write(1) == 0
            assert await tx.end(commit=number % 2 == 1) == 0
            await asyncio.sleep(MARKERS)
            log.roll(broker._cluster.clock.wall_ms())
        pid = tx.who.producer_id
        assert [one.first_offset for one in log.aborted_between(0, 99)] == [0, 6, 12]
        assert log.aborted_between(3, 6) == []
        assert [one.last_offset for one in log.aborted_between(8, 9)] == [8]
        log.truncate_to(9)
        assert [one.first_offset for one in log.aborted_between(0, 99)] == [0, 6]
        log.delete_records(3)
        assert [one.first_offset for one in log.aborted_between(0, 99)] == [6]
    names = {one.name for one in (tmp_path / "t-0").iterdir()}
    assert {one for one in names if one.endswith(".txnindex")} == {f"{6:020d}.txnindex"}
    async with started(**options) as (broker, caller):
        assert broker.control.producers(("t", 0)) == {pid: 3}
        # The epoch after the snapshot that the truncation left.
        assert await visible(caller, offset=3) == [b"v", b"v"]


async def test_compaction_does_not_keep_what_was_aborted() -> None:
    async with started() as (broker, caller):
        broker.create_topic("t", configs={"cleanup.policy": "compact"})
        tx = Speaker(caller, bumps=True)
        await tx.start()
        for value, commit in [(b"kept", True), (b"gone", False), (b"open", None)]:
            assert await tx.write(0, values=(value,), key=b"k") == 0
            if commit is not None:
                assert await tx.end(commit=commit) == 0
                await asyncio.sleep(MARKERS)
        log = broker.topics["t"].partitions[0].log
        log.roll(broker._cluster.clock.wall_ms())
        broker.control.tidy()
        assert await tx.end(commit=False) == 0
        await asyncio.sleep(MARKERS)
        assert await visible(caller) == [b"kept"]
        broker.control.tidy()
        assert await visible(caller) == [b"kept"]


async def test_ids_expire() -> None:
    async with started(topics={"t": 1}) as (broker, caller):
        tx = Speaker(caller, bumps=True)
        first = await tx.start()
        assert await tx.end(commit=False) == 0
        busy = Speaker(caller, "busy", bumps=True)
        await busy.start()
        broker.control.skip_time(6 * 86_400)
        assert await busy.end(commit=False) == 0
        broker.control.skip_time(86_400 + 3_600)
        assert broker.control.transaction("tx") is None
        assert broker.control.transaction("busy") is not None
        assert state_records(broker)[-1] is None
        assert await tx.write(0) == 49
        assert await tx.init(first) == 0
        assert tx.who.producer_id != first.producer_id
        assert tx.who.epoch == 0


@pytest.mark.parametrize("bumps", [True, False])
async def test_writing_the_log_may_take_time(bumps: bool) -> None:
    """What changes a transaction is answered when that is written; the rest waits."""
    async with started(topics={"t": 1}) as (broker, caller):
        tx = Speaker(caller, bumps=bumps)
        await tx.start()
        clock = asyncio.get_running_loop().time
        broker.control.delay_transaction_log(0.3)
        began = clock()
        if not bumps:
            assert await tx.add(("t", 0)) == [0]
            assert 0.29 < clock() - began < 0.5
        assert await tx.write(0) == 0
        assert 0.29 < clock() - began < 0.5
        began = clock()
        ending = asyncio.create_task(tx.end(commit=True))
        await asyncio.sleep(0.1)
        assert await Speaker(caller, bumps=bumps).init() == 51
        assert await visible(caller) == []
        assert await ending == 0
        assert 0.29 < clock() - began < 0.5
        await asyncio.sleep(0.1)  # the markers follow, and then the log again
        assert await visible(caller) == [b"v"]
        assert await Speaker(caller, bumps=bumps).init() == 51
        await asyncio.sleep(0.3)
        assert await Speaker(caller, bumps=bumps).init() == 0


async def test_leaders_forget_idle_producers() -> None:
    """After a day (producer.id.expiration.ms), looked for every ten minutes."""
    async with started(topics={"t": 1}) as (broker, caller):
        tx = Speaker(caller, bumps=True)
        first = await tx.start()
        assert await tx.write(0) == 0
        states = broker.topics["t"].partitions[0].producers
        broker.control.skip_time(30)
        assert first.producer_id in states.epochs
        assert await tx.end(commit=False) == 0
        await asyncio.sleep(MARKERS)
        broker.control.skip_time(86_000)
        assert first.producer_id in states.epochs
        broker.control.skip_time(1_000)
        assert first.producer_id not in states.epochs


async def test_describing_and_listing() -> None:
    async with started(topics={"t": 2}) as (broker, caller):
        one = Speaker(caller, "one", bumps=True)
        two = Speaker(caller, "two", bumps=True)
        await one.start()
        await two.start()
        assert await one.write(0, index=1) == 0
        request = DescribeTransactionsRequest(transactional_ids=["one", "two", "x", ""])
        found = (await caller.call(request, 0)).transaction_states
        assert [state.error_code for state in found] == [0, 0, 105, 42]
        assert [state.transaction_state for state in found[:2]] == ["Ongoing", "Empty"]
        (topic,) = found[0].topics
        assert (topic.topic, topic.partitions) == ("t", [1])
        assert found[0].transaction_timeout_ms == 60_000
        assert found[1].transaction_start_time_ms == -1

        async def listed(version: int = 2, **filters: object) -> list[str]:
            request = ListTransactionsRequest()
            for name, value in filters.items():
                setattr(request, name, value)
            answer = await caller.call(request, version)
            assert answer.error_code == 0
            return [state.transactional_id for state in answer.transaction_states]

        assert await listed(0) == ["one", "two"]
        assert await listed(0, state_filters=["Ongoing"]) == ["one"]
        assert await listed(0, producer_id_filters=[two.who.producer_id]) == ["two"]
        broker.control.skip_time(5)
        assert await listed(1, duration_filter=4_000, state_filters=["Ongoing"]) == [
            "one"
        ]
        assert await listed(1, duration_filter=6_000, state_filters=["Ongoing"]) == []
        assert await listed(2, transactional_id_pattern="t.*") == ["two"]
        bad = ListTransactionsRequest(
            transactional_id_pattern="(", state_filters=["Nope"]
        )
        assert (await caller.call(bad, 2)).error_code == 128
        strange = ListTransactionsRequest(state_filters=["Nope"])
        answer = await caller.call(strange, 2)
        assert answer.unknown_state_filters == ["Nope"]


async def test_markers_that_an_operator_writes() -> None:
    async with started(topics={"t": 1}) as (broker, caller):
        tx = Speaker(caller, bumps=False)
        await tx.start()
        assert await tx.send(0) == 0
        assert await tx.end(commit=True) == 0
        await asyncio.sleep(MARKERS)
        assert await tx.send(1) == 0

        async def write(
            epoch: int, coordinator_epoch: int, kind: int = 0, topic: str = "t"
        ) -> int:
            request = WriteTxnMarkersRequest(
                markers=[
                    WritableTxnMarker(
                        producer_id=tx.who.producer_id,
                        producer_epoch=epoch,
                        coordinator_epoch=coordinator_epoch,
                        transaction_version=kind,
                        topics=[
                            WritableTxnMarkerTopic(name=topic, partition_indexes=[0])
                        ],
                    )
                ]
            )
            answer = await caller.call(request, 2 if kind else 1)
            return answer.markers[0].topics[0].partitions[0].error_code

        assert await write(0, 0, topic="none") == 3
        assert await write(0, -1) == 52
        assert await write(-1, 0) == 47
        assert await write(0, 0, kind=2) == 47
        assert await write(0, 0) == 0
        assert await end_offset(caller, 1) == 4
        # The coordinator knows nothing of it: half aborted, half committed.
        assert await tx.end(commit=True) == 0
        await asyncio.sleep(MARKERS)
        assert await visible(caller) == [b"v"]
        assert broker.control.open_transactions() == []
