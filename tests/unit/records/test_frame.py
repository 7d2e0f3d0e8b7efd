"""The header before a batch's records: the twins write the same bytes."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest
from hypothesis import given, strategies as st

from kafkaio._records.batch import read_batches
from tests.unit.records.strategies import record_lists
from tests.unit.records.test_codecs import NOW, law


def framing(codec: ModuleType):
    if codec.__name__.endswith("_pure"):
        return importlib.import_module("kafkaio._records._frame").batch_header
    return codec.batch_header


def ints(bits: int) -> st.SearchStrategy[int]:
    least = -(2 ** (bits - 1))
    return st.integers(-1, 9) | st.integers(least, -least - 1)


@law
@given(
    records=record_lists,
    body=st.none() | st.binary(max_size=50),
    attributes=ints(16),
    leader_epoch=ints(32),
    producer=st.tuples(ints(64), ints(16), ints(32)),
)
def test_twins_frame_alike(twins: tuple, records: list, **header: object) -> None:
    batches = []
    for codec in twins:
        writer = codec.RecordWriter(2**31 - 1)
        for plain in records:
            writer.try_append(*plain)
        batches.append(framing(codec)(writer, *header.values()))
        writer.close()
        assert writer.view() == writer.section()
    assert batches[0] == batches[1]


def test_frame_is_read(codec: ModuleType) -> None:
    writer = codec.RecordWriter(1_000)
    writer.try_append(NOW + 5, None, b"a")
    writer.try_append(NOW + 3, b"k", b"b")
    header = framing(codec)(writer, None, 0x10, 7, (2**40, 3, 9))
    (batch,) = read_batches(header + writer.section())
    assert batch.values() == [b"a", b"b"]
    assert batch.is_transactional
    assert (batch.leader_epoch, batch.count) == (7, 2)
    assert (batch.base_timestamp, batch.max_timestamp) == (NOW + 5, NOW + 5)
    assert (batch.producer_id, batch.producer_epoch) == (2**40, 3)
    assert (batch.base_sequence, batch.last_offset) == (9, 1)


@pytest.mark.parametrize("producer", [(2**63, 0, 0), (0, 2**15, 0), (0, 0, 2**31)])
def test_numbers_that_do_not_fit(codec: ModuleType, producer: tuple) -> None:
    writer = codec.RecordWriter(1_000)
    writer.try_append(NOW, None, b"a")
    with pytest.raises(Exception, match=r"(?i)too large|range|too big|format"):
        framing(codec)(writer, None, 0, -1, producer)


def test_only_a_closed_batch_is_viewed(codec: ModuleType) -> None:
    writer = codec.RecordWriter(100_000)
    with pytest.raises(BufferError):
        writer.view()
    writer.try_append(NOW, None, b"a" * 1_000)
    with pytest.raises(BufferError):
        writer.view()
    writer.close()
    view = writer.view()
    assert view.readonly
    assert (view.format, view.itemsize) == ("B", 1)
    before = bytes(view)
    writer.promise(0)  # would free memory that is not needed
    assert writer.try_append(NOW, None, b"b") == -1
    assert view == before
    del writer
    assert view == before
    with pytest.raises(TypeError):
        view[0] = 1
