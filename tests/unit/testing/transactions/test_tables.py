"""The tables of error codes, row by row; seen on real brokers 4.3 and 2.8."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.init_producer_id import InitProducerIdRequest
from kafkaio.testing import Broker
from kafkaio.testing._broker.faults import (
    delay,
    disconnect_after_write,
    duplicate,
    error,
)
from tests.unit.testing.broker.calls import (
    Caller,
    batch,
    connect,
    produce,
    produced,
    started,
)
from tests.unit.testing.transactions.calls import (
    MARKERS,
    Identity,
    Speaker,
    committed,
    end_offset,
    producers,
    transactional,
    visible,
)

BOTH = pytest.mark.parametrize("bumps", [False, True], ids=["tv1", "tv2"])
LATE = 1.0


@asynccontextmanager
async def speaking(
    *, bumps: bool, **options: object
) -> AsyncIterator[tuple[Broker, Caller, Speaker]]:
    if not options.get("as_version"):
        options["features"] = {"transaction.version": 2 if bumps else 1}
    async with started(topics={"t": 3}, **options) as (broker, caller):
        tx = Speaker(caller, bumps=bumps)
        tx.init_version = 4 if options.get("as_version") == "2.8" else 5
        await tx.start()
        yield broker, caller, tx


async def reach(broker: Broker, tx: Speaker, state: str) -> Identity:
    """Bring the transaction to a state; return who asks with the current epoch."""
    if state != "Empty":
        assert await tx.send(0) == 0
    if state.startswith("Prepare"):
        broker.control.delay_markers(LATE)
    before = tx.who
    if state not in {"Empty", "Ongoing"}:
        assert await tx.end(commit=state.endswith("Commit")) == 0
        await asyncio.sleep(MARKERS)
    found = broker.control.transaction("tx")
    assert found is not None
    assert found.state == state
    return before


ENDS = [
    # state, then commit / abort: old protocol; new protocol with the current epoch;
    # with the one before
    ("Ongoing", (0, 0), (0, 0), (90, 90)),
    ("Empty", (48, 48), (48, 0), (90, 90)),
    ("PrepareCommit", (51, 51), (51, 51), (51, 51)),
    ("PrepareAbort", (51, 51), (51, 51), (51, 51)),
    ("CompleteCommit", (0, 48), (48, 0), (0, 48)),
    ("CompleteAbort", (48, 0), (48, 0), (48, 0)),
]


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize(("state", "old"), [(row[0], row[1]) for row in ENDS])
async def test_an_end_in_the_old_protocol(
    state: str, old: tuple[int, int], commit: bool
) -> None:
    async with speaking(bumps=False) as (broker, _, tx):
        who = await reach(broker, tx, state)
        assert await tx.end(commit=commit, who=who) == old[not commit]
        older = Identity(who.producer_id, who.epoch - 1)
        assert await tx.end(commit=commit, who=older) == 90
        assert await tx.end(commit=commit, who=older, version=1) == 47
        assert await tx.end(commit=commit, who=Identity(999, 0)) == 49


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize(
    ("state", "current", "before"), [(row[0], row[2], row[3]) for row in ENDS]
)
async def test_an_end_in_the_new_protocol(
    state: str, current: tuple[int, int], before: tuple[int, int], commit: bool
) -> None:
    for codes, back in [(before, 1), (current, 0)]:
        async with speaking(bumps=True) as (broker, _, tx):
            await tx.start()  # so that there is an epoch before
            await reach(broker, tx, state)
            found = broker.control.transaction("tx")
            assert found is not None
            who = Identity(found.producer_id, found.epoch - back)
            assert await tx.end(commit=commit, who=who) == codes[not commit]
            if codes[not commit] == 0:
                # A repeated end answers as the first; any other bumps the epoch.
                assert tx.who.epoch == found.epoch + (not back)


@BOTH
async def test_a_new_life_fences_and_aborts(bumps: bool) -> None:
    async with speaking(bumps=bumps) as (_, caller, tx):
        assert await tx.send(0) == 0
        zombie = tx.who
        other = Speaker(caller, bumps=bumps)
        assert await other.init() == 51
        await asyncio.sleep(MARKERS)
        assert await other.init() == 0
        assert other.who == Identity(zombie.producer_id, zombie.epoch + 2)
        assert await visible(caller) == []
        # The zombie at each step; its successor has only initialised.
        assert await tx.write(1) == 47
        assert await tx.write(0, index=1) == 47
        assert await tx.add(("t", 0)) == [90]
        assert await tx.add(("t", 0), version=1) == [47]
        assert await tx.add_offsets("g") == 90
        assert await tx.add_offsets("g", version=1) == 47
        assert await tx.commit_offset("g", 1) == 47
        assert await tx.end(commit=True) == 90
        assert await tx.end(commit=False) == 90
        assert await tx.init(zombie) == 90
        assert await tx.init(zombie, version=3) == 47
        assert await other.send(0) == 0
        assert await other.end(commit=True) == 0


@BOTH
async def test_a_bump_with_an_open_transaction(bumps: bool) -> None:
    async with speaking(bumps=bumps) as (_, _caller, tx):
        assert await tx.send(0) == 0
        who = tx.who
        assert await tx.init(who) == 51
        await asyncio.sleep(MARKERS)
        # In the old protocol the producer has fenced itself.
        assert await tx.init(who) == (0 if bumps else 90)
        if bumps:
            assert tx.who.epoch == who.epoch + 1


@BOTH
async def test_a_zombies_bump_aborts_its_successors_transaction(bumps: bool) -> None:
    async with speaking(bumps=bumps) as (_, caller, tx):
        other = Speaker(caller, bumps=bumps)
        await other.start()
        assert await other.send(0) == 0
        assert await tx.init(tx.who) == 51
        await asyncio.sleep(MARKERS)
        assert await tx.init(tx.who) == 90
        assert await other.end(commit=True) == (48 if bumps else 90)
        if bumps:  # the abort shows that nothing was committed
            assert await other.end(commit=False) == 0
            assert await other.send(0) == 0
            assert await other.end(commit=True) == 0


async def test_a_bump_is_repeatable() -> None:
    async with speaking(bumps=False) as (_, _caller, tx):
        first = tx.who
        assert await tx.init(first) == 0
        second = tx.who
        assert second.epoch == first.epoch + 1
        assert await tx.init(first) == 0
        assert tx.who == second
        assert await tx.init(second) == 0
        assert await tx.init(first) == 90
        assert await tx.init(Identity(999, 0)) == 90


@pytest.mark.parametrize(
    ("name", "timeout_ms", "who", "code"),
    [
        ("", 60_000, (-1, -1), 42),
        ("x", 60_000, (5, -1), 42),
        ("x", 900_001, (-1, -1), 50),
        ("x", 0, (-1, -1), 50),
        ("x", 900_000, (-1, -1), 0),
        ("x", 60_000, (555, 7), 0),  # an id that is not known
    ],
)
async def test_what_an_initialisation_may_ask(
    name: str, timeout_ms: int, who: tuple[int, int], code: int
) -> None:
    async with started() as (_, caller):
        request = InitProducerIdRequest(
            transactional_id=name,
            transaction_timeout_ms=timeout_ms,
            producer_id=who[0],
            producer_epoch=who[1],
        )
        found = await caller.call(request, 5)
        assert found.error_code == code
        assert (found.producer_epoch, found.producer_id < 0) == (
            (0, False) if code == 0 else (-1, True)
        )


async def test_partitions_are_added_all_or_none() -> None:
    async with speaking(bumps=False) as (_, caller, tx):
        assert await tx.add(("t", 0), ("none", 0), ("t", 7)) == [55, 3, 3]
        assert await tx.end(commit=False) == 48
        assert await tx.add(("t", 0), ("t", 1)) == [0, 0]
        assert await tx.add(("t", 0)) == [0]
        stranger = Speaker(caller, "unknown", bumps=False)
        stranger.who = tx.who
        assert await stranger.add(("t", 0)) == [49]
        assert await stranger.add_offsets("g") == 49
        assert await stranger.end(commit=True) == 49
        assert await stranger.write(0) == 49
        nobody = Speaker(caller, "", bumps=False)
        nobody.who = tx.who
        assert await nobody.add(("t", 0)) == [42]
        assert await nobody.add_offsets("g") == 42
        assert await nobody.end(commit=True) == 42
        assert await nobody.write(0, index=2) == 42


@pytest.mark.parametrize(("version", "code"), [(3, 48), (10, 48), (11, 120)])
async def test_a_partition_that_was_never_added(version: int, code: int) -> None:
    async with speaking(bumps=False) as (broker, caller, tx):
        assert await tx.write(0, version=version) == code
        assert await tx.add(("t", 1)) == [0]
        assert await tx.write(0, version=version) == code
        assert await tx.end(commit=True) == 0
        # Not yet known to be over: to be tried again.
        broker.control.delay_markers(LATE)
        assert await tx.add(("t", 1)) == [51]
        assert await tx.write(0, index=1, version=version) == 19
        await asyncio.sleep(MARKERS)
        assert await tx.write(0, index=1, version=version) == code
        assert await end_offset(caller, 0) == 0


async def test_a_late_write_after_the_end() -> None:
    for bumps, code in [(False, 120), (True, 47)]:
        async with speaking(bumps=bumps) as (_, _caller, tx):
            assert await tx.send(0) == 0
            before = tx.who
            assert await tx.end(commit=True) == 0
            await asyncio.sleep(MARKERS)
            assert await tx.write(1, who=before) == code


async def test_without_verification_a_late_write_hangs() -> None:
    for options in (
        {"as_version": "2.8"},
        {"config": {"transaction.partition.verification.enable": "false"}},
    ):
        async with speaking(bumps=False, **options) as (broker, caller, tx):
            version = 9 if "as_version" in options else 11

            async def write(
                sequence: int, tx: Speaker = tx, version: int = version
            ) -> int:
                return await tx.write(sequence, version=version)

            assert await tx.add(("t", 0)) == [0]
            assert await write(0) == 0
            assert await tx.end(commit=True, version=3) == 0
            await asyncio.sleep(MARKERS)
            assert await write(1) == 0
            assert await end_offset(caller, 1) == 2
            assert await end_offset(caller, 0) == 3
            assert broker.control.open_transactions() == []
            assert broker.control.unstable_since(("t", 0)) == {tx.who.producer_id: 2}


@BOTH
async def test_sequences(bumps: bool) -> None:
    async with speaking(bumps=bumps) as (_, _caller, tx):
        if not bumps:
            assert await tx.add(("t", 0), ("t", 1)) == [0, 0]
        # Without state the old protocol takes any first number, the new one 0.
        assert await tx.write(5) == (45 if bumps else 0)
        assert await tx.write(0, index=1) == 0
        assert await tx.write(2, index=1) == 45
        assert await tx.write(1, index=1) == 0
        assert await tx.write(1, index=1) == 0  # a duplicate
        assert await tx.end(commit=False) == 0
        await asyncio.sleep(MARKERS)
        if not bumps:
            assert await tx.add(("t", 1)) == [0]
        assert await tx.write(1 if bumps else 3, index=1) == 45
        assert await tx.write(0 if bumps else 2, index=1) == 0


async def test_the_lowest_sequence_seen_has_to_come_first() -> None:
    async with speaking(bumps=False) as (_, _caller, tx):
        assert await tx.send(0) == 0
        assert await tx.end(commit=True) == 0
        await asyncio.sleep(MARKERS)
        assert await tx.add(("t", 0)) == [0]
        # Too low, and no duplicate of the batch before, which has one record.
        assert await tx.write(0, values=(b"a", b"b")) == 45
        assert await tx.write(1) == 45
        assert await tx.end(commit=False) == 0
        await asyncio.sleep(MARKERS)
        assert await tx.add(("t", 0)) == [0]
        assert await tx.write(1) == 0


async def test_a_transactional_batch_without_an_id() -> None:
    async with speaking(bumps=True) as (_, caller, tx):
        answer = await caller.call(produce("t", 0, transactional(tx.who, 0)), 12)
        assert answer.responses[0].partition_responses[0].error_code == 53
        assert (await produced(caller, "t", 0, batch())).error_code == 0


async def test_a_refused_batch_is_in_the_transaction_nevertheless() -> None:
    async with speaking(bumps=True) as (broker, caller, tx):
        broker.create_topic("small", configs={"max.message.bytes": "100"})
        data = transactional(tx.who, 0, (bytes(200),))
        request = produce("small", 0, data)
        request.transactional_id = "tx"
        answer = await caller.call(request, 12)
        assert answer.responses[0].partition_responses[0].error_code == 10
        (found,) = broker.control.open_transactions()
        assert found.partitions == (("small", 0),)
        assert await tx.write(0, "none") == 3
        assert await tx.end(commit=True) == 0


@BOTH
async def test_a_transaction_that_timed_out(bumps: bool) -> None:
    async with speaking(bumps=bumps) as (broker, caller, tx):
        assert await tx.send(0) == 0
        before = tx.who
        broker.control.skip_time(59)
        assert len(broker.control.open_transactions()) == 1
        broker.control.skip_time(11)
        await asyncio.sleep(MARKERS)
        (state,) = await producers(caller)
        assert state.producer_epoch == before.epoch + 1
        assert await visible(caller) == []
        assert await end_offset(caller, 1) == 2
        assert await tx.write(1) == 47
        assert await tx.write(0, index=1) == 47
        assert await tx.add(("t", 0)) == [90]
        assert await tx.add_offsets("g") == 90
        assert await tx.commit_offset("g", 1) == 47
        assert await tx.end(commit=True) == (48 if bumps else 90)
        assert await tx.end(commit=False) == (0 if bumps else 90)
        if bumps:
            assert tx.who == Identity(before.producer_id, before.epoch + 1)
            assert await tx.init(before) == 0
            assert tx.who.epoch == before.epoch + 1
            assert await tx.write(0) == 0
            assert await tx.end(commit=True) == 0
        else:
            assert await tx.init(before) == 90


async def test_time_outs_are_checked_every_ten_seconds() -> None:
    async with speaking(bumps=True) as (broker, _caller, tx):
        await asyncio.sleep(3_601)  # ids are checked for expiry
        assert await tx.send(0) == 0
        await asyncio.sleep(59)
        assert len(broker.control.open_transactions()) == 1
        await asyncio.sleep(11)
        assert broker.control.open_transactions() == []
        assert await tx.end(commit=False) == 0
        assert await tx.send(0) == 0
        assert await tx.end(commit=True) == 0


async def test_an_old_client_that_timed_out_in_a_new_cluster() -> None:
    async with started(topics={"t": 1}) as (broker, caller):
        tx = Speaker(caller, bumps=False)
        await tx.start()
        assert await tx.send(0) == 0
        broker.control.time_out_transaction("tx")
        await asyncio.sleep(MARKERS)
        assert await tx.end(commit=True) == 90
        assert await tx.end(commit=False) == 90
        assert await tx.init(tx.who) == 0


async def test_epochs_end() -> None:
    async with speaking(bumps=True) as (broker, _caller, tx):
        broker.control.set_producer_epoch("tx", 32_764)
        await tx.start()
        assert tx.who.epoch == 32_765
        assert await tx.write(0) == 0
        assert await tx.end(commit=True) == 0
        last = tx.who
        assert last.epoch == 32_766
        await asyncio.sleep(MARKERS)
        assert await tx.write(0) == 0
        assert await tx.end(commit=True) == 0
        new = tx.who
        assert new.epoch == 0
        assert new.producer_id != last.producer_id
        assert await tx.end(commit=True, who=last) == 51
        await asyncio.sleep(MARKERS)
        assert await tx.end(commit=True, who=last) == 0
        assert tx.who == new
        assert await tx.write(1, who=last) == 47
        assert await tx.write(0) == 0
        assert await tx.end(commit=True) == 0


@BOTH
async def test_epochs_end_where_a_transaction_is_fenced(bumps: bool) -> None:
    async with speaking(bumps=bumps) as (broker, _caller, tx):
        broker.control.set_producer_epoch("tx", 32_765)
        broker.control.set_producer_epoch("tx", 32_765)
        await tx.start()
        assert tx.who.epoch == 32_766
        assert await tx.send(0) == 0
        before = tx.who
        broker.control.time_out_transaction("tx")
        await asyncio.sleep(MARKERS)
        await tx.start()
        assert tx.who.producer_id != before.producer_id
        assert await tx.send(0) == 0
        assert await tx.end(commit=True) == 0


async def test_in_the_old_protocol_an_initialisation_replaces_the_producer_id() -> None:
    async with speaking(bumps=False) as (broker, _caller, tx):
        first = tx.who
        broker.control.set_producer_epoch("tx", 32_766)
        last = Identity(first.producer_id, 32_766)
        assert await tx.init(last) == 0
        new = tx.who
        assert new.epoch == 0
        assert new.producer_id != first.producer_id


async def test_level_and_version_are_not_compared() -> None:
    async with started(topics={"t": 1}, features={"transaction.version": 1}) as (
        broker,
        caller,
    ):
        tx = Speaker(caller, bumps=True)
        assert (await tx.start()).epoch == 0
        assert await tx.write(0) == 0
        assert await tx.commit_offset("g", 1) == 0
        assert await tx.end(commit=True) == 0
        assert tx.who.epoch == 1
        # One explicit add for all, then as ever.
        await asyncio.sleep(MARKERS)
        assert await tx.add(("t", 0)) == [0]
        assert await tx.write(0) == 0
        assert await tx.end(commit=True) == 0
        assert tx.who.epoch == 2
        broker.control.set_feature("transaction.version", 2)
        await asyncio.sleep(MARKERS)
        assert await tx.write(0) == 0
        assert await tx.end(commit=False) == 0


@BOTH
async def test_an_end_that_is_delivered_again_in_the_next_transaction(
    bumps: bool,
) -> None:
    async with speaking(bumps=bumps) as (broker, caller, tx):
        broker.faults.on("EndTxn", duplicate(times=1, seconds=1.0))
        assert await tx.send(0) == 0
        assert await tx.end(commit=True) == 0
        await asyncio.sleep(MARKERS)
        assert await tx.send(0 if bumps else 1) == 0
        await asyncio.sleep(1.0 + MARKERS)
        # In the old protocol it has committed the half of the next transaction.
        assert await tx.write(1 if bumps else 2) == (0 if bumps else 120)
        assert await tx.end(commit=False) == (0 if bumps else 48)
        await asyncio.sleep(MARKERS)
        assert await visible(caller) == [b"v"] * (1 if bumps else 2)


@BOTH
async def test_offsets_are_pending_until_the_markers(bumps: bool) -> None:
    async with speaking(bumps=bumps) as (broker, caller, tx):
        for number, commit in enumerate([True, False, True]):
            broker.control.delay_markers(LATE)
            if not bumps:
                assert await tx.commit_offset("g", 99, version=4) == 120
                assert await tx.commit_offset("g", 99, version=2) == 48
                assert await tx.add_offsets("g") == 0
            before = await committed(caller, "g", stable=False)
            assert await tx.commit_offset("g", 10 + number) == 0
            assert await committed(caller, "g") == (88, -1)
            assert await committed(caller, "g", stable=False) == before
            assert await tx.end(commit=commit) == 0
            assert await committed(caller, "g") == (88, -1)
            if bumps:  # in the old protocol it slips in before the marker
                assert await tx.commit_offset("g", 99) == 51
            broker.control.write_markers()
            expected = 10 + number if commit else before[1]
            assert await committed(caller, "g") == (0, expected)


async def test_the_faults_act_on_these_apis() -> None:
    async with speaking(bumps=True) as (broker, _caller, tx):
        broker.faults.on("InitProducerId", error(ErrorCode.NOT_COORDINATOR, times=1))
        assert await tx.init() == 16
        broker.faults.on("EndTxn", duplicate(times=1))
        assert await tx.write(0) == 0
        assert await tx.end(commit=True) == 0
        assert tx.who.epoch == 1
        await asyncio.sleep(MARKERS)
        broker.faults.on(
            "AddPartitionsToTxn",
            error(ErrorCode.TOPIC_AUTHORIZATION_FAILED, times=1),
            partition=("t", 1),
        )
        assert await tx.add(("t", 0), ("t", 1)) == [55, 29]
        broker.faults.on("TxnOffsetCommit", error(ErrorCode.NOT_COORDINATOR, times=1))
        assert await tx.commit_offset("g", 1) == 16
        broker.faults.on("EndTxn", delay(0.5, times=1))
        before = asyncio.get_running_loop().time()
        assert await tx.write(0) == 0
        assert await tx.end(commit=True) == 0
        assert asyncio.get_running_loop().time() - before > 0.4
        await asyncio.sleep(MARKERS)
        assert await tx.write(0) == 0
        broker.faults.on("EndTxn", disconnect_after_write(times=1))
        with pytest.raises(ConnectionError):
            await tx.end(commit=True)
        tx.caller = await connect(broker)
        assert await tx.end(commit=True) == 51
        await asyncio.sleep(MARKERS)
        assert await tx.end(commit=True) == 0
        assert tx.who.epoch == 3
