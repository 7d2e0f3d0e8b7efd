"""Every exception that kafkaio raises, and whose fault each one is.

::

    KafkaError                          catch this to catch everything
    ├── UsageError                      your call was wrong; nothing was sent
    │   ├── ConfigurationError          an option is unknown or impossible (ValueError)
    │   ├── ClosedError                 the object is closed, or not started yet
    │   ├── BufferFull                  enqueue_nowait found no room in the buffer
    │   ├── RecordTooLarge              the record can never fit the limits in force
    │   └── UnsupportedVersion          the broker cannot do what was asked
    ├── BrokerError                     the broker said no: .code .name .retriable
    │   ├── AuthorizationError          the principal may not do that
    │   ├── UnknownTopicOrPartition     no such topic or partition, even after retries
    │   ├── InvalidTopic                no topic can have that name
    │   ├── OffsetOutOfRange            and no reset policy to follow
    │   │   └── LogTruncated            the log lost what was read
    │   ├── Fenced                      a newer producer or member took our place
    │   └── GroupError                  the group coordinator refused
    ├── NetworkError                    the way to the broker failed; all are retriable
    │   ├── ConnectionLost              an open connection broke (ConnectionError)
    │   ├── BrokerNotAvailable          no connection could be made: host, step, cause
    │   └── AuthenticationError         the broker refused who we are (not retriable)
    ├── KafkaTimeout                    time ran out (TimeoutError)
    │   ├── RequestTimeout              one request had no answer in time
    │   └── DeliveryTimeout             a record was not acknowledged in time
    ├── ProtocolError                   bytes from the peer make no sense
    │   └── CorruptRecord               a record batch fails its checks
    ├── MembershipError                 what a group did to this consumer
    │   ├── CommitFailed                the commit came too late: others own it now
    │   ├── RebalanceInProgress         poll, then commit again
    │   ├── PartitionLost               the partition is no longer ours
    │   └── RewindRefused               its owner cannot be asked to give it up
    ├── OffsetStoreError                where offsets are kept, outside Kafka, failed
    └── InternalError                   a bug in kafkaio; please report it
    DeliveriesFailed                    an ExceptionGroup, and no KafkaError: each error
                                        that befell a record of one `send_many`

``retriable`` tells whether the same call may succeed later. Timeouts are also
``TimeoutError``, lost connections also ``ConnectionError``, configuration errors
also ``ValueError``, so that code which knows only the standard library works.
"""

from __future__ import annotations

__all__ = [
    "AuthenticationError",
    "AuthorizationError",
    "BrokerError",
    "BrokerNotAvailable",
    "BufferFull",
    "ClosedError",
    "CommitFailed",
    "ConfigurationError",
    "ConnectionLost",
    "CorruptRecord",
    "DeliveryTimeout",
    "Fenced",
    "GroupError",
    "InternalError",
    "InvalidTopic",
    "KafkaError",
    "KafkaTimeout",
    "LogTruncated",
    "MembershipError",
    "NetworkError",
    "OffsetOutOfRange",
    "OffsetStoreError",
    "PartitionLost",
    "ProtocolError",
    "RebalanceInProgress",
    "RecordTooLarge",
    "RequestTimeout",
    "RewindRefused",
    "UnknownTopicOrPartition",
    "UnsupportedVersion",
    "UsageError",
]


class KafkaError(Exception):
    """The root of the tree drawn above."""

    #: Whether the same call may succeed when it is made again later.
    retriable: bool = False


class UsageError(KafkaError):
    """The call was wrong; nothing was sent and nothing has changed."""


class ConfigurationError(UsageError, ValueError):
    """An option is unknown or impossible; the message names the nearest option."""


class ClosedError(UsageError):
    """The object is closed, or was never started."""


class BufferFull(UsageError):
    """No room in the producer's buffer now; awaiting ``enqueue`` would wait."""

    retriable = True


class RecordTooLarge(UsageError):
    """The record can never fit the limits in force, which the message names."""


class UnsupportedVersion(UsageError):
    """The broker knows no version of the request that can carry what was asked."""


class BrokerError(KafkaError):
    """The broker answered with an error code.

    Attributes:
        code: the number on the wire, as in Kafka's table of error codes.
        name: the name of that code, such as ``NOT_LEADER_OR_FOLLOWER``.
        retriable: whether Kafka lists the code as worth retrying.
    """

    def __init__(
        self, message: str, *, code: int, name: str, retriable: bool = False
    ) -> None:
        super().__init__(f"{message} [{name}, code {code}]")
        self.code = code
        self.name = name
        self.retriable = retriable


class AuthorizationError(BrokerError):
    """The principal may not do that to this topic, group, cluster or transaction."""


class UnknownTopicOrPartition(BrokerError):
    """The cluster has no such topic or partition, and waiting did not change that."""


class InvalidTopic(BrokerError):
    """The name of a topic is illegal.

    Kafka takes letters, digits, ``.``, ``_`` and ``-``, 249 of them at most, and
    neither ``.`` nor ``..``.
    """


class OffsetOutOfRange(BrokerError):
    """The position is outside the log and ``auto_offset_reset`` is ``none``.

    Seek the partition to go on; the others are read meanwhile.

    Attributes:
        topic: the topic, empty where the broker did not say.
        partition: the number of its partition, -1 where the broker did not say.
        position: the offset that the log does not have, -1 if there was none at all.
    """

    def __init__(  # noqa: PLR0913 - what brokers tell, and what is known besides
        self,
        message: str,
        *,
        code: int = 1,
        name: str = "OFFSET_OUT_OF_RANGE",
        retriable: bool = False,
        topic: str = "",
        partition: int = -1,
        position: int = -1,
    ) -> None:
        super().__init__(message, code=code, name=name, retriable=retriable)
        self.topic = topic
        self.partition = partition
        self.position = position


class LogTruncated(OffsetOutOfRange):
    """The log lost records that were read, and ``auto_offset_reset`` is ``none``.

    That happens when a replica that lacks them becomes the leader (an unclean
    election; KIP-320). Seek to ``diverging_offset`` to read what the log has instead.

    Attributes:
        topic: the topic.
        partition: the number of its partition.
        position: offset of the next record that would have been read.
        diverging_offset: the first offset at which the log may differ from what was
            read, -1 if it is not known.
    """

    def __init__(
        self, topic: str, partition: int, position: int, diverging_offset: int
    ) -> None:
        super().__init__(
            f"{topic}-{partition} was read up to offset {position}, but its log "
            f"differs from offset {diverging_offset} on"
            if diverging_offset >= 0
            else f"{topic}-{partition} was read up to offset {position}, but its log "
            "has lost that part",
            topic=topic,
            partition=partition,
            position=position,
        )
        self.diverging_offset = diverging_offset


class Fenced(BrokerError):
    """A newer producer or group member with the same identity took our place."""


class GroupError(BrokerError):
    """The group coordinator refused the member or the request."""


class NetworkError(KafkaError):
    """The way to the broker failed; the message names host, step and cause."""

    retriable = True


class ConnectionLost(NetworkError, ConnectionError):
    """An established connection broke; a request in flight may have taken effect."""


class BrokerNotAvailable(NetworkError):
    """No connection to the broker could be made."""


class AuthenticationError(NetworkError):
    """The broker refused our credentials or the security handshake failed."""

    retriable = False


class KafkaTimeout(KafkaError, TimeoutError):
    """Time ran out."""

    retriable = True


class RequestTimeout(KafkaTimeout):
    """One request had no answer within its timeout; it may have taken effect."""


class DeliveryTimeout(KafkaTimeout):
    """A record was not acknowledged within ``delivery_timeout_ms``.

    Whether it was written is not known when it had been sent before.
    """


class ProtocolError(KafkaError):
    """Bytes from the peer, or a message to it, break the protocol."""


class CorruptRecord(ProtocolError):
    """A record batch fails its checksum, its lengths or its limits."""


class MembershipError(KafkaError):
    """What became of this consumer's place in its group."""


class CommitFailed(MembershipError):
    """The commit was refused: the partitions belong to other members by now."""


class RebalanceInProgress(MembershipError):
    """The group is rebalancing; take part in it (poll), then commit again."""

    retriable = True


class PartitionLost(MembershipError):
    """The partition was taken from this consumer, so it may no longer act on it."""


class RewindRefused(MembershipError):
    """The owners of the partitions cannot be asked to give them up for a rewind."""


class OffsetStoreError(KafkaError):
    """The consumer's ``offset_store`` failed; the cause is what it raised."""


class InternalError(KafkaError):
    """An invariant of kafkaio broke: a bug; please report it with this message."""
