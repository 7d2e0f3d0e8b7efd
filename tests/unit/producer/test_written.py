"""The answer of ``send_many``: a sequence that makes its items when they are taken."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, strategies as st

import kafkaio
from kafkaio._producer.bulk import Places, Runs, Written
from kafkaio._records._impl import Receipt, RowReceipts
from kafkaio.testing import Broker
from kafkaio.types import RecordMetadata

runs = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]),
        st.integers(0, 3),
        st.integers(-1, 100),
        st.integers(1, 5),
        st.integers(0, 9),
    ),
    max_size=5,
)


def spelled_out(runs: list[tuple[str, int, int, int, int]]) -> list[RecordMetadata]:
    return [
        RecordMetadata(topic, partition, offset + at if offset >= 0 else -1, timestamp)
        for topic, partition, offset, count, timestamp in runs
        for at in range(count)
    ]


@given(runs=runs, at=st.slices(12), place=st.integers(-30, 30))
def test_is_like_the_list_of_its_items(runs: list[Any], at: slice, place: int) -> None:
    written, listed = Written(Runs(runs)), spelled_out(runs)
    assert len(written) == len(listed)
    assert list(written) == listed
    assert written[at] == listed[at]
    assert written == listed
    assert listed == written
    assert written == Written(Runs(runs))
    assert written != [*listed, RecordMetadata("c", 0, 0, 0)]
    if -len(listed) <= place < len(listed):
        assert written[place] == listed[place]
    else:
        with pytest.raises(IndexError):
            written[place]


#: The offset that a batch got, the broker's timestamp, and the records of each batch in
#: the order of the call: which batch, which timestamp.
batches = st.lists(
    st.tuples(st.integers(-1, 100), st.integers(-1, 5)), min_size=1, max_size=4
)


@given(
    batches=batches,
    records=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=20),
)
def test_places_are_like_the_list_of_their_items(
    batches: list[tuple[int, int]], records: list[tuple[int, int]]
) -> None:
    places = RowReceipts(len(records), has_times=True)
    receipts = [Receipt("t", number) for number in range(len(batches))]
    listed = []
    for batch, timestamp in records:
        number = batch % len(batches)
        receipt, (base, appended) = receipts[number], batches[number]
        places.add(receipt, receipt.count, timestamp)
        listed.append(
            RecordMetadata(
                "t",
                number,
                base + receipt.count if base >= 0 else -1,
                timestamp if appended < 0 else appended,
            )
        )
        receipt.count += 1
    for receipt, batch in zip(receipts, batches, strict=True):
        receipt.acknowledge(*batch)
    written = Written(Places(places))
    assert list(written) == listed
    assert written[:] == listed
    assert written == listed
    assert len(written) == len(listed)
    if listed:
        assert written[-1] == listed[-1]
    with pytest.raises(IndexError):
        written[len(listed)]


def test_differs_from_what_is_no_sequence_of_the_kind() -> None:
    written = Written(Runs([("t", 0, 5, 2, 9)]))
    assert written != [RecordMetadata("t", 0, 5, 9), RecordMetadata("t", 0, 7, 9)]
    assert written != "ab"
    assert written != 2
    with pytest.raises(TypeError, match="unhashable"):
        hash(written)


def test_repr_is_short() -> None:
    assert repr(Written(Runs([("t", 0, 5, 1, 9)]))) == repr(
        [RecordMetadata("t", 0, 5, 9)]
    )
    assert repr(Written(Runs([]))) == "[]"
    assert repr(Written(Runs([("t", 0, 5, 1_000, 9)]))).startswith(
        "<1000 RecordMetadata, "
    )


@pytest.mark.parametrize("is_new", [False, True])
async def test_the_first_call_for_a_topic_gives_the_loop_turns(is_new: bool) -> None:
    # Before the metadata is there, one megabyte at a time took a fifth of a second.
    made: list[Any] = [b"x" * 100] * 5_000
    values = [kafkaio.NewRecord(value) for value in made] if is_new else made
    async with (
        Broker(topics={"t": 1}) as broker,
        kafkaio.Producer(broker.bootstrap_servers) as producer,
    ):
        call = asyncio.create_task(producer.send_many("t", values))
        await asyncio.sleep(0)
        assert 0 < producer.statistics().buffer.undesignated_records < 2_000
        assert len(await call) == 5_000
