"""What the operations of `kafkaio.Admin` return: immutable values."""

from __future__ import annotations

from enum import StrEnum

from kafkaio._dataclass import dataclass
from kafkaio.types import TopicPartition

__all__ = [
    "HangingTransaction",
    "ProducerIdAndEpoch",
    "ProducerState",
    "TransactionDescription",
    "TransactionListing",
    "TransactionState",
]


# ---- topics, partitions, replicas -----------------------------------------------


# ---- configs --------------------------------------------------------------------


# ---- groups ---------------------------------------------------------------------


# ---- access control lists, quotas, users, tokens --------------------------------


# ---- the cluster ----------------------------------------------------------------


# ---- transactions ----------------------------------------------------------------


class TransactionState(StrEnum):
    """How far a transaction has come; the values are Kafka's names."""

    EMPTY = "Empty"  #: the producer has begun no transaction yet
    ONGOING = "Ongoing"  #: partitions were added, and it has not ended
    PREPARE_COMMIT = "PrepareCommit"  #: committed; markers are being written
    PREPARE_ABORT = "PrepareAbort"  #: aborted; markers are being written
    COMPLETE_COMMIT = "CompleteCommit"  #: the last one was committed, everywhere
    COMPLETE_ABORT = "CompleteAbort"  #: the last one was aborted, everywhere
    DEAD = "Dead"  #: the transactional id has expired
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"  #: the producer is being fenced
    UNKNOWN = "Unknown"  #: a state that this version of kafkaio does not know

    @classmethod
    def _missing_(cls, value: object) -> TransactionState:
        del value
        return cls.UNKNOWN

    @property
    def is_open(self) -> bool:
        """Whether the coordinator will still write markers for it, or may have to."""
        return self not in {
            TransactionState.EMPTY,
            TransactionState.COMPLETE_COMMIT,
            TransactionState.COMPLETE_ABORT,
            TransactionState.DEAD,
        }


@dataclass(frozen=True, slots=True)
class TransactionListing:
    """A transactional id, as `kafkaio.Admin.list_transactions` finds it.

    Attributes:
        transactional_id: the id.
        producer_id: the producer id that belongs to it.
        state: how far its last transaction has come.
        coordinator: node id of the broker that coordinates it.
    """

    transactional_id: str
    producer_id: int
    state: TransactionState
    coordinator: int


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """What the coordinator knows of a transactional id.

    Attributes:
        transactional_id: the id.
        coordinator: node id of the broker that coordinates it.
        state: how far its last transaction has come.
        producer_id: the producer id that belongs to it.
        producer_epoch: the epoch of that id.
        timeout_ms: milliseconds after which the coordinator aborts a transaction.
        start_time_ms: when the open transaction began, in milliseconds since the Unix
            epoch; None if none is open.
        partitions: the partitions of the open transaction.
    """

    transactional_id: str
    coordinator: int
    state: TransactionState
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_time_ms: int | None
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class ProducerState:
    """What the leader of a partition remembers of one producer.

    Attributes:
        producer_id: the producer id.
        producer_epoch: its epoch, as of the last batch or marker.
        last_sequence: the sequence number of the last record; -1 if there is none
            under this epoch.
        last_timestamp: the time of its last batch, in milliseconds since the Unix
            epoch; -1 if it is not known. Producers set it, unless the topic uses log
            append time.
        coordinator_epoch: the epoch of the transaction coordinator that wrote the last
            marker here; None if there was no marker.
        transaction_start_offset: the first offset of the transaction that is open in
            the partition; None if none is.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int | None
    transaction_start_offset: int | None


@dataclass(frozen=True, slots=True)
class HangingTransaction:
    """A transaction that is open in a partition, and that no coordinator will end.

    Attributes:
        partition: where it is open.
        start_offset: its first offset; readers with ``read_committed`` wait there.
        producer_id: the producer id that wrote it.
        producer_epoch: its epoch.
        last_timestamp: the time of its last batch, in milliseconds since the Unix
            epoch.
        transactional_id: the id that has the producer id now; None if none has.
    """

    partition: TopicPartition
    start_offset: int
    producer_id: int
    producer_epoch: int
    last_timestamp: int
    transactional_id: str | None


@dataclass(frozen=True, slots=True)
class ProducerIdAndEpoch:
    """The identity that fences a producer off.

    Attributes:
        producer_id: the producer id.
        epoch: its epoch: producers with an older one are refused.
    """

    producer_id: int
    epoch: int
