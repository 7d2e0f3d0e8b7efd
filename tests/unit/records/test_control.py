"""Control batches: written as brokers write them, read as clients must."""

from __future__ import annotations

import pytest

from kafkaio._records.batch import (
    BatchBuilder,
    ControlType,
    EndTxnMarker,
    control_batch,
    parse_end_txn_marker,
    read_batches,
)
from kafkaio._records.control import parse_control_type
from kafkaio.errors import CorruptRecord

NOW = 1_700_000_000_000


@pytest.mark.parametrize("kind", ControlType)
def test_marker_round_trip(kind: ControlType) -> None:
    marker = EndTxnMarker(kind, coordinator_epoch=9)
    data = control_batch(
        marker,
        producer_id=5,
        producer_epoch=2,
        timestamp=NOW,
        base_offset=40,
        leader_epoch=3,
    )
    (batch,) = read_batches(data)
    assert batch.is_control
    assert batch.is_transactional
    assert (batch.producer_id, batch.producer_epoch) == (5, 2)
    assert batch.base_sequence == -1
    assert (batch.base_offset, batch.next_offset, batch.leader_epoch) == (40, 41, 3)
    assert batch.control_type() == kind
    (record,) = batch.decode("t", 0)
    assert record.timestamp == NOW
    assert parse_end_txn_marker(record.key, record.value) == marker


def test_bytes_of_a_commit_marker() -> None:
    data = control_batch(
        EndTxnMarker(ControlType.COMMIT, 1),
        producer_id=5,
        producer_epoch=2,
        timestamp=NOW,
    )
    assert data[61:] == bytes.fromhex("20 00 00 00 08 00000001 0c 0000 00000001 00")


def control(key: bytes | None, value: bytes | None = b"") -> bytes:
    builder = BatchBuilder(transactional=True, control=True)
    builder.try_append(NOW, key, value)
    return builder.build()


def test_types_that_mean_nothing_to_a_client() -> None:
    for kind in (2, 6, 77, -1):
        key = b"\0\0" + kind.to_bytes(2, "big", signed=True)
        (batch,) = read_batches(control(key))
        assert batch.control_type() == kind
        with pytest.raises(CorruptRecord, match="ends no transaction"):
            parse_end_txn_marker(key, b"\0" * 6)


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0"])
def test_key_without_a_type(key: bytes | None) -> None:
    (batch,) = read_batches(control(key))
    with pytest.raises(CorruptRecord, match="names no type"):
        batch.control_type()


def test_later_versions_may_be_longer() -> None:
    key, value = b"\0\1\0\1\xff", b"\0\1\0\0\0\7\xff"
    assert parse_control_type(key) == 1
    assert parse_end_txn_marker(key, value) == EndTxnMarker(ControlType.COMMIT, 7)


@pytest.mark.parametrize("value", [None, b"", b"\0\0\0\0\0"])
def test_marker_without_an_epoch(value: bytes | None) -> None:
    with pytest.raises(CorruptRecord, match="coordinator epoch"):
        parse_end_txn_marker(b"\0\0\0\1", value)


def test_a_marker_that_compaction_removed() -> None:
    data = bytearray(control(b"\0\0\0\1")[:61])
    data[8:12] = (49).to_bytes(4, "big")
    data[57:61] = bytes(4)
    (batch,) = read_batches(data, check_crcs=False)
    assert batch.control_type() is None
