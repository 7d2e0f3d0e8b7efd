"""Records of ``__transaction_state`` in Kafka's format.

A key is version 0 and the transactional id. A value is the transaction: version 0, or 1
since ``transaction.version`` 1, with tagged fields for the newer protocol (KIP-890). A
record without a value deletes the id.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import ClassVar, Final

from kafkaio.protocol._codec import decode_from, encode
from kafkaio.protocol._message import Data, Field, Range, Struct
from kafkaio.testing._transactions.transaction import (
    TransactionMetadata,
    TransactionStatus,
)

_VERSION: Final = struct.Struct(">h")
_KEY_VERSION: Final = 0
_ALL: Range = (0, 1)
_FLEXIBLE: Range = (1, 1)


@dataclass(slots=True, kw_only=True)
class _Key(Data):
    NAME: ClassVar[str] = "TransactionLogKey"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    LAST_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = None
    SCHEMA: ClassVar[tuple[Field, ...]] = (Field("transactional_id", "string", (0, 0)),)

    transactional_id: str = ""


@dataclass(slots=True, kw_only=True)
class _Partitions(Struct):
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", _ALL),
        Field("partition_ids", "int32", _ALL, array=True),
    )

    topic: str = ""
    partition_ids: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class _Value(Data):
    NAME: ClassVar[str] = "TransactionLogValue"
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    LAST_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 1
    SCHEMA: ClassVar[tuple[Field, ...]] = (
        Field("producer_id", "int64", _ALL),
        Field(
            "previous_producer_id",
            "int64",
            _FLEXIBLE,
            tag=0,
            tagged=_FLEXIBLE,
            default=-1,
            ignorable=True,
        ),
        Field(
            "next_producer_id",
            "int64",
            _FLEXIBLE,
            tag=1,
            tagged=_FLEXIBLE,
            default=-1,
            ignorable=True,
        ),
        Field("producer_epoch", "int16", _ALL),
        Field("transaction_timeout_ms", "int32", _ALL),
        Field("transaction_status", "int8", _ALL),
        Field("transaction_partitions", _Partitions, _ALL, array=True, nullable=_ALL),
        Field("transaction_last_update_timestamp_ms", "int64", _ALL),
        Field("transaction_start_timestamp_ms", "int64", _ALL),
        Field(
            "client_transaction_version",
            "int16",
            _FLEXIBLE,
            tag=2,
            tagged=_FLEXIBLE,
            ignorable=True,
        ),
        Field(
            "next_producer_epoch",
            "int16",
            _FLEXIBLE,
            tag=3,
            tagged=_FLEXIBLE,
            default=-1,
            ignorable=True,
        ),
    )

    producer_id: int = 0
    previous_producer_id: int = -1
    next_producer_id: int = -1
    producer_epoch: int = 0
    transaction_timeout_ms: int = 0
    transaction_status: int = 0
    transaction_partitions: list[_Partitions] | None = None
    transaction_last_update_timestamp_ms: int = 0
    transaction_start_timestamp_ms: int = 0
    client_transaction_version: int = 0
    next_producer_epoch: int = -1


def transaction_key(transactional_id: str) -> bytes:
    """Return the key of an id's record."""
    key = _Key(transactional_id=transactional_id)
    return _VERSION.pack(_KEY_VERSION) + encode(key, _KEY_VERSION)


def transaction_value(transaction: TransactionMetadata, server_version: int) -> bytes:
    """Return the value of a transaction's record.

    Args:
        transaction: the transaction.
        server_version: the transaction version of the cluster, which decides on the
            version of the value.
    """
    partitions: list[_Partitions] | None = None
    # In this state Kafka writes null and not an empty list.
    if transaction.state is not TransactionStatus.EMPTY:
        topics: dict[str, list[int]] = {}
        # Sorted, so that the bytes do not depend on the order of a set.
        for topic, index in sorted(transaction.partitions):
            topics.setdefault(topic, []).append(index)
        partitions = [
            _Partitions(topic=topic, partition_ids=indexes)
            for topic, indexes in topics.items()
        ]
    value = _Value(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state.value,
        transaction_partitions=partitions,
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
        client_transaction_version=transaction.client_version,
    )
    # A cluster at level 0 writes what brokers before KIP-890 can read.
    version = min(server_version, 1)
    return _VERSION.pack(version) + encode(value, version)


def read_key(data: bytes) -> str | None:
    """Return the transactional id of a record; None if it is of another kind."""
    # A newer Kafka may write records of other kinds.
    if _VERSION.unpack_from(data)[0] != _KEY_VERSION:
        return None
    # The version stands before the key, not in it.
    return decode_from(_Key, _KEY_VERSION, data, _VERSION.size)[0].transactional_id


def read_value(transactional_id: str, data: bytes) -> TransactionMetadata:
    """Return the transaction in a record.

    Raises:
        ValueError: the version of the record is unknown.
    """
    (version,) = _VERSION.unpack_from(data)
    if not 0 <= version <= _Value.LAST_VERSION:
        raise ValueError(f"unknown version {version} of a transaction's record")
    value, _ = decode_from(_Value, version, data, _VERSION.size)
    return TransactionMetadata(
        transactional_id,
        value.producer_id,
        value.producer_epoch,
        value.transaction_timeout_ms,
        TransactionStatus(value.transaction_status),
        {
            (one.topic, index)
            for one in value.transaction_partitions or ()
            for index in one.partition_ids
        },
        value.transaction_last_update_timestamp_ms,
        value.transaction_start_timestamp_ms,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        client_version=value.client_transaction_version,
    )
