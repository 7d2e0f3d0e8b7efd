"""The consumer's side of a transaction: held, committed, rewound; in every protocol."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kafkaio._consumer import Consumer, Rebalance, RevokeRequested
from kafkaio._transactional import TransactionalConsumer
from kafkaio.admin import Admin
from kafkaio.errors import (
    ClosedError,
    PartitionLost,
    RequestTimeout,
    TransactionAborted,
    UsageError,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.types import OffsetAndMetadata, Record, TopicPartition
from tests.fakes.broker import HANG, FakeCluster
from tests.unit.consumer.conftest import MakeConsumer
from tests.unit.consumer.fake_log import FakeLogs
from tests.unit.consumer.fake_transactions import (
    PROTOCOLS,
    FakeProducer,
    committing,
    world,
)
from tests.unit.consumer.group_fakes import FakeGroup, virtual
from tests.unit.consumer.in_parallel import MEMBER, ORDERS, eventually

ZERO, ONE, TWO = ORDERS
EVERY = pytest.mark.parametrize("protocol", PROTOCOLS)
COUNT = 9
VALUES = [b"%d" % number for number in range(COUNT)]


def ignore(*_: object) -> None:
    """Do nothing."""


async def take(consumer: Consumer, count: int, limit: int = 100) -> list[Record]:
    """Poll until there are so many records."""
    records: list[Record] = []
    async with asyncio.timeout(100):
        while len(records) < count:
            poll = await consumer.poll(timeout=1, max_records=limit)
            records += poll.records
    return records


def places(records: list[Record]) -> list[tuple[int, int]]:
    return sorted((record.partition, record.offset) for record in records)


async def joined(one: Consumer, two: Consumer) -> None:
    await eventually(lambda: one.assignment and two.assignment)
    await eventually(lambda: len(one.assignment) + len(two.assignment) == 3)


# ---- committed and aborted


@virtual
@EVERY
async def test_what_was_handed_out_is_committed(protocol: str) -> None:
    async with world(protocol) as there, await there.consumer() as one:
        await there.write(*VALUES)
        producer = FakeProducer(committing(one))
        async with producer.transaction(one) as tx:
            for record in await take(one, COUNT):
                await tx.send("out", record.value)
        assert sorted(producer.committed) == VALUES  # type: ignore[type-var]
        assert await there.committed() == dict.fromkeys(ORDERS, 3)
        assert one._offsets_in_transaction() is None
        async with producer.transaction(one) as tx:
            assert not (await one.poll(timeout=1)).records
            assert tx.joined is not None
            assert tx.joined.handed_out() is None


@virtual
@EVERY
@pytest.mark.parametrize("first", [0, 3])
async def test_an_abort_hands_out_again(protocol: str, first: int) -> None:
    async with world(protocol) as there, await there.consumer() as one:
        await there.write(*VALUES)
        producer = FakeProducer(committing(one))
        if first:
            async with producer.transaction(one):
                while len(await there.committed()) < 3:
                    taken = await take(one, 1, 1)
                    await one._core.committer.commit(  # type: ignore[union-attr]
                        {r.topic_partition: _after(r) for r in taken}, timeout=9
                    )
        before = await there.committed()
        left = COUNT - sum(before.values())
        with pytest.raises(ZeroDivisionError):  # noqa: PT012
            async with producer.transaction(one) as tx:
                seen = await take(one, left)
                await tx.send("out", b"never")
                raise ZeroDivisionError
        assert await there.committed() == before
        assert one._offsets_in_transaction() is None
        again = await take(one, left)
        assert places(again) == places(seen)
        assert producer.committed == []


@virtual
@pytest.mark.parametrize("where", ["behind", "ahead"])
async def test_after_a_seek_an_abort_hands_out_the_same_again(where: str) -> None:
    """What is committed says nothing of a position that was sought."""
    async with world("kip848") as there, await there.consumer() as one:
        await there.write(*VALUES)
        producer = FakeProducer(committing(one))
        async with producer.transaction(one):
            await take(one, COUNT if where == "behind" else 3)
        for tp in ORDERS:
            one.seek(tp, 1 if where == "behind" else 2)
        count = COUNT - 3 if where == "behind" else COUNT - 6
        seen: list[list[tuple[int, int]]] = []
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):  # noqa: PT012
                async with producer.transaction(one):
                    seen.append(sorted(places(await take(one, count))))
                    raise ZeroDivisionError
        async with producer.transaction(one):
            seen.append(sorted(places(await take(one, count))))
        assert seen[0] == seen[1] == seen[2]
        # From now on, what is committed counts.
        for number in range(3):
            await there.write(b"%d" % number)
            with pytest.raises(ZeroDivisionError):  # noqa: PT012
                async with producer.transaction(one):
                    assert len(await take(one, number + 1)) == number + 1
                    raise ZeroDivisionError


@virtual
async def test_after_a_reset_to_the_end_an_abort_hands_out_the_same_again() -> None:
    """The committed offset is outside the log; the end has moved on since."""
    async with world("kip848") as there, Admin(await there.client()) as admin:
        await there.write(*VALUES)
        async with await there.consumer(topics=None) as other:
            await other.commit(dict.fromkeys(ORDERS, OffsetAndMetadata(1)))
        await admin.delete_records(dict.fromkeys(ORDERS, 3))
        async with await there.consumer(auto_offset_reset="latest") as one:
            reader = one._core.reader
            await eventually(lambda: [*map(reader.position, ORDERS)] == [3] * 3)
            await there.write(*VALUES)
            producer = FakeProducer(committing(one))
            seen: list[list[tuple[int, int]]] = []
            for _ in range(2):
                with pytest.raises(ZeroDivisionError):  # noqa: PT012
                    async with producer.transaction(one):
                        seen.append(places(await take(one, COUNT)))
                        raise ZeroDivisionError
            async with producer.transaction(one):
                seen.append(places(await take(one, COUNT)))
            assert seen[0] == seen[1] == seen[2]
            assert await there.committed() == dict.fromkeys(ORDERS, 6)


@virtual
async def test_after_a_seek_an_unknown_end_is_looked_up() -> None:
    """The offsets of the transaction may have been committed; here they were."""
    async with world("kip848") as there, await there.consumer() as one:
        await there.write(*VALUES)
        await eventually(lambda: len(one.assignment) == 3)
        one.seek_to_beginning()
        joined = one._join_transaction(ignore, ignore)
        await take(one, COUNT)
        offsets = joined.handed_out()
        assert offsets is not None
        await committing(one)(offsets)
        await joined.rewind(is_unknown=True)
        await there.write(b"new")
        assert [record.value for record in await take(one, 1)] == [b"new"]


def _after(record: Record) -> OffsetAndMetadata:
    return OffsetAndMetadata(record.offset + 1)


@virtual
async def test_without_a_commit_it_begins_where_the_transaction_did() -> None:
    async with (
        world("kip848") as there,
        await there.consumer(auto_offset_reset="latest") as one,
    ):
        await there.write(*VALUES)
        producer = FakeProducer(committing(one))
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):  # noqa: PT012
                async with producer.transaction(one):
                    assert len(await take(one, COUNT, 2)) == COUNT
                    raise ZeroDivisionError
        async with producer.transaction(one):
            assert len(await take(one, COUNT)) == COUNT
        assert await there.committed() == dict.fromkeys(ORDERS, 3)


@virtual
@pytest.mark.parametrize("how", ["iterate", "batches", "poll"])
async def test_what_was_handed_out_before_belongs_to_it(how: str) -> None:
    async with world("kip848") as there, await there.consumer() as one:
        await there.write(*VALUES)
        producer = FakeProducer(committing(one))

        async def first() -> Record:
            if how == "iterate":
                return await anext(one)
            if how == "batches":
                return next(iter(await anext(one.batches(max_records=1))))
            return (await take(one, 1, 1))[0]

        await first()
        with pytest.raises(ZeroDivisionError):
            async with producer.transaction(one):
                raise ZeroDivisionError
        for _ in range(COUNT):
            record = await first()
            async with producer.transaction(one) as tx:
                await tx.send("out", record.value)
            committed = await there.committed()
            assert committed[record.topic_partition] == record.offset + 1
        assert sorted(producer.committed) == VALUES  # type: ignore[type-var]


@virtual
async def test_records_that_are_iterated_over_one_transaction_each() -> None:
    async with world("kip848") as there, await there.consumer() as one:
        await there.write(*VALUES)
        producer = FakeProducer(committing(one))
        fails = [4, 6]
        seen = 0
        async for record in one:
            seen += 1
            try:
                async with producer.transaction(one) as tx:
                    await tx.send("out", record.value)
                    if seen in fails:
                        raise ZeroDivisionError  # noqa: TRY301
            except ZeroDivisionError:
                continue
            if len(producer.committed) == COUNT:
                break
        assert sorted(producer.committed) == VALUES  # type: ignore[type-var]
        assert await there.committed() == dict.fromkeys(ORDERS, 3)


@virtual
async def test_fixed_partitions_have_no_holds_and_are_rewound() -> None:
    async with (
        world("kip848") as there,
        await there.consumer(topics=None, assign=[ZERO, ONE]) as one,
    ):
        await there.write(*VALUES)
        producer = FakeProducer(committing(one))
        with pytest.raises(ZeroDivisionError):  # noqa: PT012
            async with producer.transaction(one):
                await take(one, 6)
                raise ZeroDivisionError
        async with producer.transaction(one) as tx:
            assert len(await take(one, 6)) == 6
            assert tx.joined is not None
            offsets = tx.joined.handed_out()
            assert offsets is not None
            assert not offsets.is_fenced
            assert offsets.identity().member_id == ""
            assert not offsets.refused(ErrorCode.UNKNOWN_MEMBER_ID, offsets.identity())
        assert await there.committed() == {ZERO: 3, ONE: 3}
        with pytest.raises(TransactionAborted) as caught:  # noqa: PT012
            async with producer.transaction(one) as tx:
                await there.write(*VALUES)
                await take(one, 6)
                one.assign([ZERO])
        assert isinstance(caught.value.__cause__, PartitionLost)
        async with producer.transaction(one):
            assert {r.partition for r in await take(one, 3)} == {0}


# ---- what it refuses


@virtual
async def test_who_cannot_take_part() -> None:
    async with world("kip848") as there:
        automatic = await there.consumer(enable_auto_commit=True)
        alone = await there.consumer(group_id=None)
        for consumer in (automatic, alone):
            async with consumer:
                with pytest.raises(UsageError, match=r"enable_auto_commit|group_id"):
                    consumer._join_transaction(ignore, ignore)
                with pytest.raises(UsageError, match=r"enable_auto_commit|group_id"):
                    consumer._offsets_in_transaction()
        closed = await there.consumer()
        with pytest.raises(ClosedError):
            closed._join_transaction(ignore, ignore)


class Shelf:
    async def load(self, *_: object) -> dict[TopicPartition, Any]:
        return {}

    async def commit(self, *_: object) -> None:
        """Never called."""


@virtual
async def test_offsets_that_are_kept_elsewhere_cannot_take_part() -> None:
    async with (
        world("kip848") as there,
        await there.consumer(offset_store=Shelf()) as one,
    ):
        with pytest.raises(UsageError, match="offset_store"):
            one._join_transaction(ignore, ignore)


@virtual
async def test_one_transaction_at_a_time_and_no_other_commits() -> None:
    async with world("kip848") as there, await there.consumer() as one:
        assert isinstance(one, TransactionalConsumer)
        await there.write(*VALUES)
        producer = FakeProducer(committing(one))
        async with producer.transaction(one) as tx:
            await take(one, COUNT)
            with pytest.raises(UsageError, match="end it first"):
                one._join_transaction(ignore, ignore)
            with pytest.raises(UsageError, match="commit_offsets"):
                await one.commit()
            assert "orders" in repr(tx.joined)
        assert tx.joined is not None
        tx.joined.end()
        await tx.joined.rewind()  # neither does anything any more
        assert tx.joined.handed_out() is None
        await one.commit()


@virtual
async def test_offsets_by_name() -> None:
    async with world("kip848") as there, await there.consumer() as one:
        await there.write(*VALUES)
        records = await take(one, COUNT)
        last = [r for r in records if r.partition == 0][-1]
        for what, expected in (
            (last, {ZERO: 3}),
            ({ONE: 2}, {ONE: 2}),
            ([ONE, TWO], {ONE: 3, TWO: 3}),
            (ZERO, {ZERO: 3}),
        ):
            found = one._offsets_in_transaction(what)
            assert found is not None
            assert {tp: o.offset for tp, o in found.offsets.items()} == expected
            assert found.is_fenced
            assert found.identity() == one.group_metadata
            assert "orders" in repr(found)
        elsewhere = TopicPartition("orders", 7)
        with pytest.raises(PartitionLost):
            one._offsets_in_transaction({elsewhere: 1})


# ---- rebalances


@virtual
@EVERY
async def test_a_partition_is_kept_until_the_transaction_ends(protocol: str) -> None:
    order: list[str] = []

    def revoked(partitions: frozenset[TopicPartition]) -> None:
        order.append("revoked")

    async with (
        world(protocol) as there,
        await there.consumer(on_revoked=revoked) as one,
    ):
        await there.write(*VALUES)
        producer = FakeProducer(committing(one))
        two = await there.consumer()
        async with producer.transaction(one) as tx:
            await take(one, COUNT)
            starting = asyncio.create_task(two.start())
            await eventually(lambda: tx.is_ending)
            going = one._core.member.to_be_revoked  # type: ignore[union-attr]
            await asyncio.sleep(5)
            await there.write(*VALUES)
            polled = [r for _ in range(5) for r in (await one.poll(timeout=1)).records]
            assert going.isdisjoint(r.topic_partition for r in polled)
            assert one.assignment == set(ORDERS)  # two polls have not released them
            assert not order
            assert not two.assignment
            order.append("ends")
        assert tx.is_committed
        await starting
        await joined(one, two)
        assert order[:2] == ["ends", "revoked"]
        committed = await there.committed()
        assert all(committed[tp] == 3 for tp in two.assignment)
        seen = await take(two, 3 * len(two.assignment))
        assert min(r.offset for r in seen) == 3
        await two.close()


@virtual
@EVERY
async def test_an_abort_releases_what_was_requested(protocol: str) -> None:
    calls: list[frozenset[TopicPartition]] = []

    async def revoked(partitions: frozenset[TopicPartition]) -> None:
        calls.append(partitions)
        await one.commit()  # what was aborted is not done

    async with world(protocol) as there:
        one = await there.consumer(on_revoked=revoked)
        await one.start()
        await there.write(*VALUES)
        producer = FakeProducer(committing(one))
        two = await there.consumer()
        with pytest.raises(ZeroDivisionError):  # noqa: PT012
            async with producer.transaction(one) as tx:
                await take(one, COUNT)
                starting = asyncio.create_task(two.start())
                await eventually(lambda: tx.is_ending)
                raise ZeroDivisionError
        await starting
        await joined(one, two)
        assert calls
        assert not any((await there.committed()).values())
        mine = await take(one, 3 * len(one.assignment))
        theirs = await take(two, 3 * len(two.assignment))
        assert places(mine + theirs) == [(p, o) for p in range(3) for o in range(3)]
        await one.close()
        await two.close()


@virtual
@EVERY
async def test_the_users_own_hold_adds_to_it(protocol: str) -> None:
    events: list[Rebalance] = []
    gate = asyncio.Event()

    async def listen(consumer: Consumer) -> None:
        async for event in consumer.rebalances():
            events.append(event)
            if isinstance(event, RevokeRequested):
                async with event.hold():
                    await gate.wait()

    async with world(protocol) as there, await there.consumer() as one:
        listening = asyncio.create_task(listen(one))
        await there.write(*VALUES)
        producer = FakeProducer(committing(one))
        two = await there.consumer()
        async with producer.transaction(one) as tx:
            await take(one, COUNT)
            starting = asyncio.create_task(two.start())
            await eventually(lambda: tx.is_ending)
        await asyncio.sleep(5)
        assert one.assignment == set(ORDERS)
        gate.set()
        await starting
        await joined(one, two)
        await two.close()
        listening.cancel()


@virtual
@EVERY
async def test_past_the_deadline_it_is_lost(protocol: str) -> None:
    async with (
        world(protocol) as there,
        await there.consumer(max_poll_interval_ms=8000) as one,
    ):
        await there.write(*VALUES)
        producer = FakeProducer(committing(one))
        two = await there.consumer(max_poll_interval_ms=8000)
        with pytest.raises(TransactionAborted) as caught:  # noqa: PT012
            async with producer.transaction(one) as tx:
                await take(one, COUNT)
                starting = asyncio.create_task(two.start())
                reading = asyncio.create_task(_read(one))
                await eventually(lambda: tx.lost)
                reading.cancel()
                assert tx.joined is not None
                with pytest.raises(PartitionLost, match="while a transaction"):
                    tx.joined.handed_out()
        assert isinstance(caught.value.__cause__, PartitionLost)
        await starting
        await joined(one, two)
        assert not any((await there.committed()).values())
        mine = await take(one, 3 * len(one.assignment))
        theirs = await take(two, 3 * len(two.assignment))
        await two.close()
        assert places(mine + theirs) == [(p, o) for p in range(3) for o in range(3)]


@virtual
@EVERY
@pytest.mark.parametrize("at", [0, 3])
async def test_what_comes_back_while_it_is_doomed_is_handed_out_again(
    protocol: str, at: int
) -> None:
    """Lost, assigned again, and read in the same transaction: nothing is skipped."""
    async with world(protocol) as there, await there.consumer() as one:
        await there.write(*VALUES)
        producer = FakeProducer(committing(one))
        if at:
            async with producer.transaction(one):
                await take(one, COUNT)
            await there.write(*VALUES)
        with pytest.raises(TransactionAborted):  # noqa: PT012
            async with producer.transaction(one) as tx:
                first = await take(one, COUNT)
                there.broker.control.expel_member("g", one.group_metadata.member_id)
                async with asyncio.timeout(100):
                    again = await take(one, COUNT)
                assert places(again) == places(first)
                assert tx.lost
        assert one._offsets_in_transaction() is None
        assert places(await take(one, COUNT)) == places(first)
        async with producer.transaction(one):
            assert not (await one.poll(timeout=1)).records
        assert await there.committed() == dict.fromkeys(ORDERS, at + 3)


async def _read(consumer: Consumer) -> None:
    while True:
        await consumer.poll(timeout=1)


@virtual
@EVERY
async def test_only_what_is_worked_on_is_held(protocol: str) -> None:
    async with world(protocol) as there, await there.consumer() as one:
        await there.write(b"x", b"y", partitions=1)
        producer = FakeProducer(committing(one))
        async with producer.transaction(one) as tx:
            await take(one, 2)
            assert tx.joined is not None
            two = await there.consumer()
            starting = asyncio.create_task(two.start())
            polling = asyncio.create_task(_read(one))
            if protocol == "eager":
                await eventually(lambda: tx.is_ending)
            else:
                await asyncio.sleep(20)
                assert ZERO in one.assignment
            polling.cancel()
        polling = asyncio.create_task(_read(one))
        await starting
        await joined(one, two)
        polling.cancel()
        await two.close()
        assert (await there.committed())[ZERO] == 2


@virtual
@EVERY
async def test_the_consumer_closes_meanwhile(protocol: str) -> None:
    async with world(protocol) as there:
        await there.write(*VALUES)
        one = await there.consumer()
        await one.start()
        producer = FakeProducer(committing(one))
        async with producer.transaction(one) as tx:
            await take(one, COUNT)
            closing = asyncio.create_task(one.close())
            await eventually(lambda: tx.is_ending)
            await asyncio.sleep(1)
            assert not closing.done()
        await closing
        assert tx.is_committed
        assert await there.committed() == dict.fromkeys(ORDERS, 3)


@virtual
@EVERY
async def test_the_task_of_the_transaction_closes_the_consumer(protocol: str) -> None:
    async with world(protocol) as there:
        await there.write(*VALUES)
        one = await there.consumer()
        await one.start()
        producer = FakeProducer(committing(one))
        loop = asyncio.get_running_loop()
        began = loop.time()
        with pytest.raises(TransactionAborted):  # noqa: PT012
            async with producer.transaction(one):
                await take(one, COUNT)
                await one.close()
        assert loop.time() < began + 10
        assert await there.committed() == {}


# ---- the identity, and a rewind that takes long


@virtual
@EVERY
async def test_a_refusal_is_no_end_where_the_member_has_another_identity(
    protocol: str,
) -> None:
    async with world(protocol) as there, await there.consumer() as one:
        await there.write(*VALUES)
        await take(one, COUNT)
        offsets = one._offsets_in_transaction()
        assert offsets is not None
        now = offsets.identity()
        before = type(now)(
            group_id=now.group_id,
            generation=now.generation - 1,
            member_id=now.member_id,
        )
        for code in (
            ErrorCode.ILLEGAL_GENERATION,
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.FENCED_INSTANCE_ID,
        ):
            assert offsets.refused(code, before)
        assert not offsets.refused(ErrorCode.GROUP_AUTHORIZATION_FAILED, now)
        offsets.check()
        # An epoch may move without the member's doing; a generation may not.
        again = offsets.refused(ErrorCode.ILLEGAL_GENERATION, now)
        assert again == (protocol == "kip848")
        if not again:
            with pytest.raises(PartitionLost):
                offsets.check()


async def test_nothing_is_read_until_the_committed_offsets_are_known(
    cluster: FakeCluster, logs: FakeLogs, make: MakeConsumer
) -> None:
    group = FakeGroup(cluster)
    for tp in ORDERS:
        logs.append(*tp, b"x", b"y")
    options = MEMBER | {"enable_auto_commit": False, "default_api_timeout_ms": 3000}
    async with make(**options, group_protocol="classic") as one:
        producer = FakeProducer(committing(one))
        cluster.on(ApiKey.OFFSET_FETCH, lambda *_: HANG)
        with pytest.raises(RequestTimeout, match="committed offsets"):  # noqa: PT012
            async with producer.transaction(one):
                seen = await take(one, 6)
                raise ZeroDivisionError
        assert not (await one.poll(timeout=20)).records
        one.seek(ZERO, 1)
        assert places((await one.poll(timeout=20)).records) == [(0, 1)]
        cluster.on(ApiKey.OFFSET_FETCH, group._fetch)
        assert places(await take(one, 4)) == places(seen)[2:]
    group.close()


@virtual
async def test_a_rewind_ends_with_the_consumer() -> None:
    async with world("kip848") as there:
        await there.write(*VALUES)
        one = await there.consumer()
        await one.start()
        tx = one._join_transaction(ignore, ignore)
        await take(one, COUNT)
        rewinding = asyncio.create_task(tx.rewind())
        await asyncio.sleep(0)
        await one.close()
        await rewinding
        with pytest.raises(ClosedError):
            one._join_transaction(ignore, ignore)


@virtual
async def test_lanes_in_a_transaction() -> None:
    async with world("kip848") as there, await there.consumer() as one:
        await there.write(*VALUES)
        producer = FakeProducer(committing(one))
        lanes = one.partitions()
        entered = [await anext(lanes) for _ in ORDERS]

        async def read_all() -> list[Record]:
            records: list[Record] = []
            for lane in entered:
                records += [await anext(lane) for _ in range(3)]
                with pytest.raises(UsageError, match="commit_offsets"):
                    await lane.commit()
            return records

        with pytest.raises(ZeroDivisionError):  # noqa: PT012
            async with producer.transaction(one):
                seen = await read_all()
                raise ZeroDivisionError
        async with producer.transaction(one) as tx:
            again = await read_all()
            assert places(again) == places(seen)
            assert tx.joined is not None
        assert await there.committed() == dict.fromkeys(ORDERS, 3)
