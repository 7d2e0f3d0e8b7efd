"""Every acquired offset ends in somebody's hands, or with a decision."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from kafkaio._share.reading import reads as reads_module
from kafkaio._share.reading.iterators import ShareBatchIterator, ShareRecordIterator
from kafkaio.errors import (
    ArgumentTypeError,
    ClosedError,
    CorruptRecord,
    DeserializationError,
    RecordTooLarge,
    RegistryError,
    UsageError,
)
from tests.unit.share.fake_engine import P0, P1, World, batch_of, corrupt


@pytest_asyncio.fixture
async def w() -> AsyncIterator[World]:
    world = World()
    yield world
    await world.close()


def records(w: World) -> ShareRecordIterator[Any, Any]:
    return ShareRecordIterator(w.reads)


async def begin(w: World) -> ShareRecordIterator[Any, Any]:
    """Return an iterator that waits for its first record, as only then is fetched."""
    iterator = records(w)
    step = asyncio.ensure_future(anext(iterator))
    await w.turns()
    assert w.reader.wants
    step.cancel()
    await w.turns()
    return iterator


async def read_all(
    iterator: ShareRecordIterator[Any, Any], count: int
) -> tuple[list[int], list[Exception]]:
    """Read so many records, and one error; return offsets and errors."""
    got: list[int] = []
    errors: list[Exception] = []
    while len(got) < count or not errors:
        try:
            got.append((await anext(iterator)).offset)
        except (CorruptRecord, DeserializationError, RecordTooLarge) as error:
            errors.append(error)
    return got, errors


#: How loops are left whose iterator is kept in a variable.
KEPT = {"aclose", "collect"}


async def test_nothing_is_kept_while_nobody_reads(w: World) -> None:
    assert not w.reader.wants
    w.fetch(batch_of(0, range(10), 9), (0, 9))
    assert w.ledger.told() == "r" * 10
    assert (w.reader.buffered, w.reader.buffered_bytes) == (0, 0)


async def test_a_loop(w: World) -> None:
    iterator = await begin(w)
    w.fetch(batch_of(0, range(10), 9), (0, 9))
    assert w.reader.buffered == 10
    async for record in iterator:
        record.ack()
        if record.offset == 3:
            assert w.reader.buffered == 6
            break
    assert w.ledger.told() == "aaaahhhhhh"
    del iterator
    await w.turns()
    assert not w.reader.wants
    assert w.ledger.told() == "aaaarrrrrr"


@pytest.mark.parametrize("how", ["break", "exception", "cancel", "aclose", "collect"])
async def test_leaving_releases_the_last_record_and_the_rest(
    w: World, how: str
) -> None:
    first = await begin(w)

    async def work() -> None:
        iterators = [records(w)]
        async for record in iterators[0] if how in KEPT else iterators.pop():
            if record.offset == 1:
                continue  # in the hands of somebody else
            if record.offset < 4:
                record.ack()
                continue
            if how == "break":
                break
            if how == "exception":
                raise ValueError
            if how == "aclose":
                await iterators[0].aclose()
                return
            if how == "collect":
                iterators.append(iterators)  # type: ignore[arg-type]  # a cycle
                break
            await asyncio.sleep(10)

    w.fetch(batch_of(0, range(10), 9), (0, 9))
    task = asyncio.ensure_future(work())
    await w.turns()
    del first
    task.cancel()
    await asyncio.wait([task])
    if how == "collect":
        gc.collect()
    w.reads.settle()
    assert w.ledger.told() == "ahaarrrrrr"
    await w.turns()
    assert not w.reader.wants


async def test_the_first_reader_keeps_what_is_there_for_the_second(w: World) -> None:
    first = await begin(w)
    w.fetch(batch_of(0, range(6), 5), (0, 5))
    assert (await anext(first)).offset == 0
    second = records(w)
    assert (await anext(second)).offset == 1
    # The second took over: the first's record is released, and nothing else.
    assert w.ledger.told() == "rhhhhh"
    del first
    await w.turns()
    assert w.reader.wants
    assert w.ledger.told() == "rhhhhh"


async def test_implicit_acceptance() -> None:
    w = World(acknowledgement="implicit")
    iterator = await begin(w)
    w.fetch(batch_of(0, range(10), 9), (0, 9))
    async for record in iterator:
        if record.offset == 2:
            record.reject()
        if record.offset == 5:
            break
    del iterator
    w.reads.settle()
    assert w.ledger.told() == "aaxaarrrrr"
    await w.close()


async def test_implicit_acceptance_by_commit_and_polls() -> None:
    w = World(acknowledgement="implicit")
    assert await w.reads.poll(10, 0) == []
    w.fetch(batch_of(0, range(10), 9), (0, 9))
    assert len(await w.reads.poll(3, 0)) == 3
    assert w.ledger.told() == "h" * 10
    assert len(await w.reads.poll(3, 0)) == 3
    assert w.ledger.told() == "aaahhhhhhh"
    w.reader.accept()
    assert w.ledger.told() == "aaaaaahhhh"
    await w.close()


async def test_slow_bodies_accept_in_time() -> None:
    w = World(acknowledgement="implicit")
    iterator = await begin(w)
    w.fetch(batch_of(0, range(10), 9), (0, 9))
    async for record in iterator:
        await asyncio.sleep(0.02)  # longer than a slice of the loop's time
        assert w.ledger.told().count("a") == record.offset
        if record.offset == 4:
            break
    await w.close()


async def test_polls_leave_records_to_the_user(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reads_module, "GRACE", 0.05)
    assert await w.reads.poll(10, 0) == []
    w.fetch(batch_of(0, range(10), 9), (0, 9))
    taken = await w.reads.poll(4, 0)
    assert [record.offset for record in taken] == [0, 1, 2, 3]
    assert w.reader.wants
    woken = w.engine.woken
    await asyncio.sleep(0.1)
    assert (w.reader.wants, w.engine.woken > woken) == (False, True)
    # Given back what was fetched ahead, and nothing that was handed out.
    assert w.ledger.told() == "hhhhrrrrrr"
    taken[0].ack()


async def test_a_poll_that_follows_goes_on(w: World) -> None:
    await w.reads.poll(10, 0)
    w.fetch(batch_of(0, range(10), 9), (0, 9))
    w.fetch(batch_of(0, range(3), 2), (0, 2), tp=P1)
    first, second = await w.reads.poll(11, 0), await w.reads.poll(11, None)
    assert [(r.partition, r.offset) for r in first] == [
        *[(0, n) for n in range(10)],
        (1, 0),
    ]
    assert [(r.partition, r.offset) for r in second] == [(1, 1), (1, 2)]


async def test_gaps(w: World) -> None:
    iterator = await begin(w)
    data = batch_of(10, [11, 14], 15) + batch_of(20, [20], 20, control=True)
    data += batch_of(21, [21, 22, 29], 30)
    w.fetch(data, (10, 12), (14, 22), (28, 32))
    got = [(await anext(iterator)).offset for _ in range(5)]
    assert got == [11, 14, 21, 22, 29]
    # 31 and 32 are behind the data: nothing shows that there is no record.
    assert w.ledger.told() == "ghg" + "h" + "gggggg" + "hh" + "ghg" + "rr"


async def test_an_acquisition_that_begins_in_a_compacted_batch(w: World) -> None:
    iterator = await begin(w)
    w.fetch(batch_of(1, [1, 3], 3) + batch_of(4, [4], 4), (2, 4))
    assert [(await anext(iterator)).offset for _ in range(2)] == [3, 4]
    assert w.ledger.told() == "ghh"


async def test_only_acquired_records_are_handed_out(w: World) -> None:
    iterator = await begin(w)
    w.fetch(batch_of(0, range(100), 99), (5, 5), (50, 51))
    assert w.reader.buffered == 3
    assert [(await anext(iterator)).offset for _ in range(3)] == [5, 50, 51]
    assert w.reader.buffered == 0


async def test_what_is_lost_meanwhile_is_not_handed_out(w: World) -> None:
    iterator = await begin(w)
    w.fetch(batch_of(0, range(10), 9), (0, 4), (5, 9))
    w.fetch(batch_of(10, range(10, 20), 19), (10, 19))
    assert (await anext(iterator)).offset == 0
    w.ledger.ranges[0].lose(0, 4)
    w.ledger.ranges[2].lose(10, 19)
    got = [(await anext(iterator)).offset for _ in range(5)]
    assert got == [5, 6, 7, 8, 9]
    step = asyncio.ensure_future(anext(iterator))
    await w.turns()
    assert not step.done()
    assert w.reader.buffered == 0
    step.cancel()


async def test_a_corrupt_batch_is_rejected_whole_and_others_go_on(w: World) -> None:
    iterator = await begin(w)
    bad = corrupt(batch_of(5, range(5, 10), 9))
    w.fetch(batch_of(0, range(5), 4) + bad + batch_of(10, range(10, 15), 14), (0, 14))
    got, errors = await read_all(iterator, 10)
    assert got == [*range(5), *range(10, 15)]
    (found,) = errors
    assert isinstance(found, CorruptRecord)
    assert (found.topic_partition, found.offset, found.raw) == (P0, 5, bad)
    assert w.ledger.told() == "hhhhhxxxxxhhhhh"


@pytest.mark.parametrize("place", [7, 16, 21, 23, 26])
async def test_a_header_that_lies_about_its_end_costs_no_other_batch(
    w: World, place: int
) -> None:
    # The last byte of the base offset, the magic byte, the attributes, the last offset
    # delta: it may be that of a control batch, or end anywhere.
    iterator = await begin(w)
    bad = corrupt(batch_of(0, range(5), 4), place)
    w.fetch(bad + batch_of(5, range(5, 10), 9), (0, 9))
    if place == 16:
        with pytest.raises(CorruptRecord):
            await anext(iterator)
        assert w.ledger.told() == "x" * 10  # nobody knows what follows
        return
    got, errors = await read_all(iterator, 5)
    assert (got, len(errors)) == ([*range(5, 10)], 1)
    assert w.ledger.told() == "xxxxxhhhhh"


async def test_data_that_cannot_be_cut_is_rejected_from_there(w: World) -> None:
    iterator = await begin(w)
    w.fetch(batch_of(0, range(5), 4) + b"\xff" * 80, (0, 9))
    with pytest.raises(CorruptRecord) as caught:
        await anext(iterator)
    assert (caught.value.topic_partition, caught.value.offset) == (P0, 5)
    assert (await anext(iterator)).offset == 0
    assert w.ledger.told() == "hhhhhxxxxx"


async def test_an_incomplete_batch_is_released(w: World) -> None:
    iterator = await begin(w)
    w.fetch(batch_of(0, range(5), 4) + batch_of(5, range(5, 9), 8)[:-3], (0, 8))
    assert (await anext(iterator)).offset == 0
    assert w.ledger.told() == "hhhhhrrrr"


async def test_a_batch_too_large_for_this_consumer_is_released() -> None:
    from kafkaio._records.batch import Compression, encode_batch

    w = World(max_decompressed_batch_size=2_000)
    iterator = await begin(w)
    large = encode_batch(
        [(0, None, b"v" * 3_000, ())] * 2, compression=Compression.GZIP
    )
    w.fetch(large + batch_of(2, [2], 2), (0, 2))
    got, errors = await read_all(iterator, 1)
    assert (got, w.ledger.told()) == ([2], "rrh")
    assert [type(each) for each in errors] == [RecordTooLarge]
    await w.close()


async def test_large_batches_are_decompressed_beside_others() -> None:
    from kafkaio._records.batch import Compression, encode_batch

    w = World()
    iterator = await begin(w)
    large = encode_batch(
        [(0, None, b"v" * 3_000_000, ())] * 3, compression=Compression.GZIP
    )
    w.fetch(large, (0, 2))
    w.fetch(batch_of(0, range(3), 2), (0, 2), tp=P1)
    got = [await anext(iterator) for _ in range(6)]
    assert [r.partition for r in got] == [1, 1, 1, 0, 0, 0]
    await w.close()


async def test_batches(w: World) -> None:
    iterator = ShareBatchIterator[Any, Any](w.reads, w.reader, 6, 0.0)
    step = asyncio.ensure_future(anext(iterator))
    await w.turns()
    w.fetch(batch_of(0, range(4), 3) + batch_of(4, range(4, 10), 9), (0, 9))
    batch = await step
    assert (len(batch), batch.first_offset, batch.last_offset) == (6, 0, 5)
    assert batch.release(batch.records[4:]) == 2
    assert batch.ack() == 4
    assert batch.ack() == 0
    # The records stay, whatever was decided.
    assert batch.values() == [b"%d" % n for n in range(6)]
    assert [r.offset for r in batch] == [*range(6)]
    assert batch[2].offset == 2
    assert [r.offset for r in batch[1:3]] == [1, 2]
    assert w.ledger.told() == "aaaarrhhhh"
    last = await anext(iterator)
    assert [r.offset for r in last] == [*range(6, 10)]
    last[0].ack()
    await iterator.aclose()
    assert w.ledger.told() == "aaaarrarrr"


async def test_what_a_batch_refuses(w: World) -> None:
    iterator = ShareBatchIterator[Any, Any](w.reads, w.reader, 5, 0.0)
    step = asyncio.ensure_future(anext(iterator))
    await w.turns()
    w.fetch(batch_of(0, range(10), 9), (0, 9))
    batch, other = await step, await anext(iterator)
    with pytest.raises(UsageError, match="jobs-0 at offset 5 is not a record of this"):
        batch.reject([batch[0], other[0]])
    with pytest.raises(ArgumentTypeError, match="give one in a list"):
        batch.release(batch[0])  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="offset 0 is there twice"):
        batch.reject([batch[0], batch[0]])
    batch[1].ack()
    with pytest.raises(UsageError, match="offset 1 cannot be acknowledged: it was acc"):
        batch.release(batch.records)
    with pytest.raises(TypeError, match="records must be ShareRecord objects, not int"):
        batch.release([3])  # type: ignore[list-item]
    # All or nothing: each of these calls has left everything as it was.
    assert w.ledger.told() == "hahhhhhhhh"


async def test_records_lost_before_their_batch_are_not_of_it(w: World) -> None:
    iterator = ShareBatchIterator[Any, Any](w.reads, w.reader, 10, 0.0)
    step = asyncio.ensure_future(anext(iterator))
    await w.turns()
    step.cancel()
    await w.turns()
    w.fetch(batch_of(0, range(10), 9), (0, 4), (5, 9))
    w.ledger.ranges[0].lose(0, 3)
    batch = await anext(iterator)
    assert (len(batch), [r.offset for r in batch]) == (6, [*range(4, 10)])
    assert batch.ack() == 6
    assert w.ledger.told() == "llllaaaaaa"


async def test_turns_are_fair(w: World) -> None:
    iterator = await begin(w)
    for tp in (P0, P1):
        w.fetch(
            b"".join(batch_of(n, [n, n + 1], n + 1) for n in range(0, 6, 2)),
            (0, 5),
            tp=tp,
        )
    got = [(await anext(iterator)).partition for _ in range(12)]
    assert got == [0, 0, 1, 1] * 3


async def test_one_task_reads_at_a_time(w: World) -> None:
    one = asyncio.ensure_future(anext(records(w)))
    await w.turns()
    with pytest.raises(UsageError, match="another task is reading"):
        await anext(records(w))
    with pytest.raises(UsageError, match="another task is reading"):
        await w.reads.poll(1, 0)
    one.cancel()


async def test_without_topics(w: World) -> None:
    step = asyncio.ensure_future(anext(records(w)))
    await w.turns()
    w.reads.subscribed(has_topics=False)
    with pytest.raises(UsageError, match="not subscribed to any topics"):
        await step


async def test_loops_end_when_the_consumer_closes() -> None:
    w = World()
    seen = list[int]()

    async def read() -> None:
        async for record in records(w):
            seen.append(record.offset)

    task = asyncio.ensure_future(read())
    await w.turns()
    w.fetch(batch_of(0, range(3), 2), (0, 2))
    await w.turns()
    await w.close()
    await task
    assert seen == [0, 1, 2]
    with pytest.raises(ClosedError):
        await w.reads.poll(1, 0)


# Deserializing


@pytest.mark.parametrize(("option", "letter"), [("release", "r"), ("reject", "x")])
async def test_a_record_that_cannot_be_deserialized(option: str, letter: str) -> None:
    def parse(data: bytes) -> int:
        if data == b"2":
            raise ValueError("no")
        return int(data)

    w = World(value_deserializer=parse, undeserializable=option)
    iterator = await begin(w)
    w.fetch(batch_of(0, range(5), 4), (0, 4))
    got, errors = await read_all(iterator, 4)
    assert got == [0, 1, 3, 4]
    (found,) = errors
    assert isinstance(found, DeserializationError)
    assert found.offset == 2
    assert w.ledger.told() == "hh" + letter + "hh"
    await w.close()


class Later:
    """A deserializer that is awaited, and fails as often as it is told."""

    def __init__(self, error: Exception | None = None, times: int = 0) -> None:
        self.error, self.times, self.awaited = error, times, 0

    def serialize(self, value: object, context: object) -> bytes:
        raise NotImplementedError

    async def deserialize(self, data: bytes, context: object) -> int:
        self.awaited += 1
        await asyncio.sleep(0.001)
        if self.times and data == b"1":
            self.times -= 1
            assert self.error is not None
            raise self.error
        return int(data)


async def test_others_go_on_while_a_deserializer_is_awaited() -> None:
    from kafkaio import Topic
    from kafkaio._consumer.wanted import ReadSelection

    w = World()
    slow = Topic[Any, Any]("slow", value=Later())
    w.reader.deserialize_as(ReadSelection.of([slow, "jobs"], None))
    iterator = await begin(w)
    w.fetch(batch_of(0, range(3), 2), (0, 2), tp=P0._replace(topic="slow"))
    w.fetch(batch_of(0, range(3), 2), (0, 2))
    got = [await anext(iterator) for _ in range(6)]
    assert [r.value for r in got] == [b"0", b"1", b"2", 0, 1, 2]
    for record in got:
        record.ack()
    assert w.ledger.told() == "aaa"
    await w.close()


async def test_a_registry_that_is_down_costs_no_delivery() -> None:
    w = World(
        value_deserializer=Later(RegistryError("down", retriable=True), 3),
        retry_backoff_ms=1,
    )
    iterator = await begin(w)
    w.fetch(batch_of(0, range(3), 2), (0, 2))
    assert [(await anext(iterator)).value for _ in range(3)] == [0, 1, 2]
    assert w.ledger.told() == "hhh"
    await w.close()


async def test_a_registry_that_stays_down_is_told() -> None:
    w = World(
        value_deserializer=Later(RegistryError("down", retriable=True), 10**6),
        retry_backoff_ms=1,
        default_api_timeout_ms=100,
        undeserializable="reject",
    )
    iterator = await begin(w)
    w.fetch(batch_of(0, range(3), 2), (0, 2))
    assert (await anext(iterator)).value == 0
    with pytest.raises(RegistryError, match="down"):
        await anext(iterator)
    # It says nothing about the record, so this is not rejected.
    assert w.ledger.told() == "hrh"
    assert (await anext(iterator)).value == 2
    await w.close()


async def test_leaving_gives_back_what_waits_for_its_deserializer() -> None:
    w = World(value_deserializer=Later())
    iterator = await begin(w)
    w.fetch(batch_of(0, range(10), 9), (0, 9))
    assert (await anext(iterator)).value == 0
    await iterator.aclose()
    assert w.ledger.told() == "r" * 10
    await w.close()
    assert not w.engine.crashes
