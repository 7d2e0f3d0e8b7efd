"""Control batches, which end transactions.

A control batch has one record. Its key is a version and a type; types other than
`ControlType.ABORT` and `ControlType.COMMIT` belong to the Raft quorum (KIP-595) and
mean nothing to a client. Compaction can remove the record; the batch then means nothing
either.
"""

from __future__ import annotations

import struct
from enum import IntEnum

from kafkaio._dataclass import dataclass
from kafkaio._records.builder import BatchBuilder, with_base_offset
from kafkaio.errors import CorruptRecord

_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")
_VERSION = 0


class ControlType(IntEnum):
    """The control records that clients act on."""

    ABORT = 0
    COMMIT = 1


@dataclass(frozen=True, slots=True)
class EndTxnMarker:
    """The end of a producer's transaction in one partition.

    Attributes:
        control_type: whether the transaction was aborted or committed.
        coordinator_epoch: epoch of the transaction coordinator that ended it.
    """

    control_type: ControlType
    coordinator_epoch: int = 0


def parse_control_type(key: bytes | None) -> int:
    """Return the type in the key of a control record, known here or not.

    Raises:
        CorruptRecord: the key is too short.
    """
    if key is None or len(key) < _KEY.size:
        raise CorruptRecord("the key of a control record names no type")
    # The version is not checked: later ones may only add fields behind these.
    kind: int = _KEY.unpack_from(key)[1]
    return kind


def parse_end_txn_marker(key: bytes | None, value: bytes | None) -> EndTxnMarker:
    """Read the end of a transaction from a control record's key and value.

    Fields that later versions add after the known ones are ignored.

    Raises:
        CorruptRecord: the record is too short, or is of another type.
    """
    kind = parse_control_type(key)
    if kind not in {ControlType.ABORT, ControlType.COMMIT}:
        raise CorruptRecord(f"a control record of type {kind} ends no transaction")
    if value is None or len(value) < _VALUE.size:
        raise CorruptRecord("the value of a control record names no coordinator epoch")
    return EndTxnMarker(ControlType(kind), _VALUE.unpack_from(value)[1])


def control_batch(
    marker: EndTxnMarker,
    *,
    producer_id: int,
    producer_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytes:
    """Return the batch that a broker appends to end a transaction."""
    builder = BatchBuilder(transactional=True, control=True)
    builder.try_append(
        timestamp,
        _KEY.pack(_VERSION, marker.control_type),
        _VALUE.pack(_VERSION, marker.coordinator_epoch),
    )
    batch = builder.build(producer_id=producer_id, producer_epoch=producer_epoch)
    return with_base_offset(batch, base_offset, leader_epoch)
