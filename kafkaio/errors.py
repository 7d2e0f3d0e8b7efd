"""Every exception that kafkaio raises.

::

    KafkaError                          catch this to catch everything
    ├── UsageError                      the call was wrong; nothing was sent
    │   ├── ArgumentTypeError           an argument has the wrong type (TypeError)
    │   ├── ArgumentValueError          an argument has an invalid value (ValueError)
    │   ├── ConfigurationError          an option is unknown or invalid (ValueError)
    │   ├── ClosedError                 the object is closed, or was not started
    │   ├── BufferFull                  no space for enqueue_nowait in the buffer
    │   ├── RecordTooLarge              the record exceeds the limits in force
    │   └── UnsupportedVersion          the broker does not support the request
    ├── BrokerError                     the broker returned an error: .code .name
    │   ├── AuthorizationError          the principal may not do that
    │   ├── UnknownTopicOrPartition     no such topic or partition, also after retries
    │   ├── InvalidTopic                the name of a topic is illegal
    │   ├── OffsetOutOfRange            and auto_offset_reset is "none"
    │   │   └── LogTruncated            the log lost records that were read
    │   ├── Fenced                      a newer producer or member has the identity
    │   └── GroupError                  the group coordinator refused the request
    ├── NetworkError                    the connection failed; retriable
    │   ├── ConnectionLost              an open connection broke (ConnectionError)
    │   ├── BrokerNotAvailable          no connection could be made: host, step, cause
    │   └── AuthenticationError         the broker refused the login; not retriable
    ├── KafkaTimeout                    a time limit was reached (TimeoutError)
    │   ├── RequestTimeout              a request had no answer in time
    │   ├── DeliveryTimeout             a record was not acknowledged in time
    │   └── OutcomeUnknown              committed or aborted: no answer came in time
    ├── ProtocolError                   bytes from the peer break the protocol
    │   └── CorruptRecord               a record batch fails its checks: where it is
    ├── SerializationError              a value does not fit its schema: .field
    ├── DeserializationError            a deserializer raised: the record, and its place
    ├── RegistryError                   the schema registry failed or refused: .status
    │   └── SchemaError                 it has no such schema, or refuses it: .subject
    ├── MembershipError                 the consumer lost its place in the group
    │   ├── CommitFailed                the partitions belong to other members by now
    │   ├── RebalanceInProgress         poll, then commit again
    │   ├── PartitionLost               the partition is no longer assigned
    │   └── RewindRefused               the partitions' owners cannot take part
    ├── TransactionAborted              run the transaction again; retriable: .reason
    ├── OffsetStoreError                the offset store outside Kafka failed
    ├── AcknowledgeFailed               a share group's acknowledgement did not count
    │   └── LockLost                    the record's lock is gone: it comes again
    ├── Release                         raised by a handler: deliver the record again
    ├── Reject                          raised by a handler: never deliver it again
    └── InternalError                   a bug in kafkaio; please report it
    DeliveriesFailed                    an ExceptionGroup, and no KafkaError: the error
                                        of every record that one `send_many` lost
    AdminErrors                         likewise: the error of every item that failed,
                                        of one operation of `Admin` on several

``retriable`` says whether the same call may succeed later. Some classes are also the
built-in exception that fits, so that code which knows only the standard library works:
timeouts are a ``TimeoutError``, lost connections a ``ConnectionError``, wrong arguments
a ``TypeError`` or a ``ValueError``. Errors can be pickled and copied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

from kafkaio._public import public

if TYPE_CHECKING:
    from kafkaio.types import Record, TopicPartition

__all__ = [
    "AcknowledgeFailed",
    "AdminErrors",
    "ArgumentTypeError",
    "ArgumentValueError",
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
    "DeserializationError",
    "Fenced",
    "GroupError",
    "InternalError",
    "InvalidTopic",
    "KafkaError",
    "KafkaTimeout",
    "LockLost",
    "LogTruncated",
    "MembershipError",
    "NetworkError",
    "OffsetOutOfRange",
    "OffsetStoreError",
    "OutcomeUnknown",
    "PartitionLost",
    "ProtocolError",
    "RebalanceInProgress",
    "RecordTooLarge",
    "RegistryError",
    "Reject",
    "Release",
    "RequestTimeout",
    "RewindRefused",
    "SchemaError",
    "SerializationError",
    "TransactionAborted",
    "UnknownTopicOrPartition",
    "UnsupportedVersion",
    "UsageError",
]


class KafkaError(Exception):
    """The root of the tree drawn above."""

    #: Whether the same call may succeed when it is made again later.
    retriable: bool = False
    #: What failed, where an operation of `kafkaio.Admin`, or a rewind, is on several
    #: items, such as the name of a topic; otherwise None.
    item: object = None
    #: What the same operation brought for the items that did not fail.
    results: Mapping[object, object] = MappingProxyType({})

    def __reduce__(self) -> tuple[object, ...]:
        # The default calls the class with the message alone, and some need more.
        return _restored, (type(self), self.args, vars(self))


def _restored(
    kind: type[KafkaError], args: tuple[object, ...], attributes: dict[str, object]
) -> KafkaError:
    """Return a pickled or copied error."""
    error = kind.__new__(kind, *args)
    vars(error).update(attributes)
    return error


class UsageError(KafkaError):
    """The call was wrong; nothing was sent and nothing has changed."""


class ArgumentTypeError(UsageError, TypeError):
    """An argument has the wrong type; the message names the argument."""


class ArgumentValueError(UsageError, ValueError):
    """An argument has an invalid value; the message names the argument."""


class ConfigurationError(UsageError, ValueError):
    """An option is unknown or invalid; the message suggests a similar option."""


class ClosedError(UsageError):
    """The object is closed, or was never started."""


class BufferFull(UsageError):
    """The producer's buffer has no space now; ``enqueue`` would wait for it."""

    retriable = True


class RecordTooLarge(UsageError):
    """A record or a batch exceeds the limits in force; the message names the option.

    A reader raises it for a batch that does not fit ``max_response_size``, or that
    decompresses to more than ``max_decompressed_batch_size``. The attributes are those
    of `CorruptRecord`, and only a reader sets them.
    """

    topic_partition: TopicPartition | None = None
    offset: int = -1
    next_offset: int = -1
    raw: bytes = b""


class UnsupportedVersion(UsageError):
    """The broker supports no version of the request that can express the call."""


class BrokerError(KafkaError):
    """The broker returned an error code.

    Attributes:
        code: the number on the wire, as in Kafka's table of error codes.
        name: the name of that code, such as ``NOT_LEADER_OR_FOLLOWER``.
        retriable: whether Kafka lists the code as retriable.
    """

    def __init__(
        self, message: str, *, code: int, name: str, retriable: bool = False
    ) -> None:
        super().__init__(f"{message} [{name}, code {code}]")
        self.code = code
        self.name = name
        self.retriable = retriable


class AuthorizationError(BrokerError):
    """The principal may not do that to this topic, group, cluster or transaction.

    Attributes:
        resource_type: ``topic``, ``group``, ``cluster``, ``transactional id`` or
            ``delegation token``; empty if it is not known.
        resource: the name of what may not be used; empty if it is not known.
        operation: the right that is missing, as Kafka names it, such as ``WRITE``.
    """

    def __init__(  # noqa: PLR0913 - the broker's facts, and what they are about
        self,
        message: str,
        *,
        code: int,
        name: str,
        retriable: bool = False,
        resource_type: str = "",
        resource: str = "",
        operation: str = "",
    ) -> None:
        super().__init__(message, code=code, name=name, retriable=retriable)
        self.resource_type = resource_type
        self.resource = resource
        self.operation = operation


class UnknownTopicOrPartition(BrokerError):
    """The cluster has no such topic or partition, also after retries."""


class InvalidTopic(BrokerError):
    """The name of a topic is illegal.

    A legal name has at most 249 letters, digits, ``.``, ``_`` and ``-``, and is neither
    ``.`` nor ``..``.
    """


class OffsetOutOfRange(BrokerError):
    """An offset to read from is outside the log.

    A consumer raises it if ``auto_offset_reset`` is ``none``: seek the partition to
    continue; the other partitions are read meanwhile. A reader of ranges raises it for
    the first range that the log does not have.

    Attributes:
        topic: the topic; empty if the broker did not name it.
        partition: the number of its partition; -1 if the broker did not name it.
        position: the offset that the log does not have; -1 if there was no position.
        earliest: the first offset that the log has; -1 if it was not looked up.
        latest: the offset after the last one that can be read; -1 likewise.
    """

    def __init__(  # noqa: PLR0913 - the broker's facts, and the partition's
        self,
        message: str,
        *,
        code: int = 1,
        name: str = "OFFSET_OUT_OF_RANGE",
        retriable: bool = False,
        topic: str = "",
        partition: int = -1,
        position: int = -1,
        earliest: int = -1,
        latest: int = -1,
    ) -> None:
        super().__init__(message, code=code, name=name, retriable=retriable)
        self.topic = topic
        self.partition = partition
        self.position = position
        self.earliest = earliest
        self.latest = latest


class LogTruncated(OffsetOutOfRange):
    """The log lost records that were read.

    A replica without these records became the leader (an unclean leader election;
    KIP-320). A consumer raises it if ``auto_offset_reset`` is ``none``: seek to
    ``diverging_offset`` to read what the log has instead.

    Attributes:
        topic: the topic.
        partition: the number of its partition.
        position: offset of the next record that would have been read.
        diverging_offset: the first offset at which the log may differ from what was
            read; -1 if it is not known.
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
    """A newer producer or group member with the same identity replaced this one."""


class GroupError(BrokerError):
    """The group coordinator refused the member or the request."""


class NetworkError(KafkaError):
    """The connection to a broker failed; the message names host, step and cause."""

    retriable = True


class ConnectionLost(NetworkError, ConnectionError):
    """An established connection broke; a request in flight may have taken effect."""


class BrokerNotAvailable(NetworkError):
    """No connection to the broker could be made."""


class AuthenticationError(NetworkError):
    """The broker refused the credentials, or the security handshake failed.

    Or the proxy refused its user and password.

    Attributes:
        mechanism: the SASL mechanism, or ``TLS``; empty where it had not come to that.
        broker: ``host:port`` of the broker.
        step: what was being done, such as ``SaslAuthenticate``.
        reason: the broker's own words; empty if it gave none.
    """

    retriable = False

    def __init__(
        self,
        message: str,
        *,
        mechanism: str = "",
        broker: str = "",
        step: str = "",
        reason: str = "",
    ) -> None:
        super().__init__(message)
        self.mechanism = mechanism
        self.broker = broker
        self.step = step
        self.reason = reason


class KafkaTimeout(KafkaError, TimeoutError):
    """A time limit was reached."""

    retriable = True


class RequestTimeout(KafkaTimeout):
    """One request had no answer within its timeout; it may have taken effect."""


class DeliveryTimeout(KafkaTimeout):
    """A record was not acknowledged within ``delivery_timeout_ms``.

    If it was sent, it is unknown whether it was written.
    """


class OutcomeUnknown(KafkaTimeout):
    """The end of a transaction was not acknowledged in time: committed, or aborted.

    The request is repeated in the background until it is answered; the transaction's
    ``outcome`` tells the answer, and the next transaction waits for it.
    """


class ProtocolError(KafkaError):
    """Bytes from the peer, or a message to it, violate the protocol."""


class CorruptRecord(ProtocolError):
    """A record batch fails its checksum, or its contents cannot be decoded.

    Every way to read raises it after the records before it, again at each further step,
    until the partition is moved. ``consumer.seek(error.topic_partition,
    error.next_offset)`` skips the batch.

    Attributes:
        topic_partition: the partition; None if the batch was not read from one.
        offset: where reading stands: the first offset that cannot be read; -1 likewise.
        next_offset: where reading can go on: the offset after the batch. With a wrong
            checksum the batch's own header says so; where that contradicts itself, it
            is ``offset + 1``, and the next step may raise for the same batch.
        raw: the bytes of the whole batch; empty if its end is not known.
    """

    topic_partition: TopicPartition | None = None
    offset: int = -1
    next_offset: int = -1
    raw: bytes = b""


class SerializationError(KafkaError):
    """A key or a value cannot be serialized, or bytes are not what a serde expects.

    Attributes:
        field: where in the value, such as ``lines[2].amount``; empty for the whole.
    """

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class DeserializationError(KafkaError):
    """A deserializer raised an exception, which is the cause (KIP-334, KIP-1036).

    Every way to read raises it after the records before it, again at each further step,
    until the partition is moved. ``consumer.seek(error.topic_partition,
    error.next_offset)`` skips the record.

    Attributes:
        topic_partition: the partition of the record.
        offset: the offset of the record.
        is_key: whether the key failed, and not the value.
        record: the record with its bytes, not deserialized.
    """

    def __init__(self, message: str, *, is_key: bool, record: Record) -> None:
        super().__init__(message)
        self.topic_partition: TopicPartition = record.topic_partition
        self.offset: int = record.offset
        self.is_key = is_key
        self.record = record

    @property
    def next_offset(self) -> int:
        """Where reading can go on: the offset after the record."""
        return self.offset + 1


class RegistryError(KafkaError):
    """A schema registry could not be reached, or refused a request.

    It says nothing about the record at hand, unless it is a `SchemaError`: the record
    is neither passed over nor passed to a dead letter, and its partition is tried again
    after a back-off. That holds if ``retriable`` is false, too, as with a login that is
    refused: once it is mended the records are read.

    Attributes:
        status: the status of HTTP; None if there was no answer.
        code: the registry's own code, such as 40403; None without one.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: int | None = None,
        retriable: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.retriable = retriable


class SchemaError(RegistryError):
    """A schema does not exist, is invalid, or is not compatible with those before.

    Attributes:
        subject: the subject; empty for a schema that was asked for by its id.
        reason: the reason, as the registry gave it.
    """

    def __init__(
        self,
        subject: str,
        reason: str,
        *,
        status: int | None = None,
        code: int | None = None,
    ) -> None:
        about = f"subject {subject!r}: " if subject else ""
        super().__init__(f"{about}{reason}", status=status, code=code)
        self.subject = subject
        self.reason = reason


class MembershipError(KafkaError):
    """The consumer's membership in its group does not allow the call."""


class CommitFailed(MembershipError):
    """The commit was refused: the partitions belong to other members by now."""


class RebalanceInProgress(MembershipError):
    """The group is rebalancing: poll to take part in that, then commit again."""

    retriable = True


class PartitionLost(MembershipError):
    """The partition is no longer assigned to this consumer."""


class RewindRefused(MembershipError):
    """Owners of the partitions cannot release them for a rewind."""


class TransactionAborted(KafkaError):
    """The transaction was aborted: nothing of it is visible to read_committed readers.

    The producer can be used: run the body of the transaction again. The cause is what
    the transaction was aborted for.

    Attributes:
        reason: why, in a few words, such as ``"timed out"``.
    """

    retriable = True

    def __init__(self, message: str, *, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class OffsetStoreError(KafkaError):
    """The consumer's ``offset_store`` failed; the cause is what it raised."""


class AcknowledgeFailed(KafkaError):
    """Acknowledgements of a share group did not count, or may not have counted.

    The records may be delivered again, to any member of the group (KIP-932).

    Attributes:
        topic_partition: the partition of the records.
        first_offset: the first of them.
        last_offset: the last of them.
    """

    def __init__(
        self,
        message: str,
        *,
        topic_partition: TopicPartition,
        first_offset: int,
        last_offset: int,
    ) -> None:
        super().__init__(message)
        self.topic_partition = topic_partition
        self.first_offset = first_offset
        self.last_offset = last_offset


class LockLost(AcknowledgeFailed):
    """Records of a share group are not locked for this member any more.

    The lock ran out, the connection to the leader was lost, or the leader has moved.
    The broker delivers the records again.
    """


class Release(KafkaError):
    """Raised by a handler of `ShareConsumer.run`: deliver the record again, soon.

    As ``on_error`` of `ShareConsumer.run`, it says so for every other exception.
    """


class Reject(KafkaError):
    """Raised by a handler of `ShareConsumer.run`: never deliver the record again.

    As ``on_error`` of `ShareConsumer.run`, it says so for every other exception.
    """


class InternalError(KafkaError):
    """An invariant of kafkaio broke: a bug; please report it with this message."""


class AdminErrors(ExceptionGroup[KafkaError]):
    """Several items of one operation of `kafkaio.Admin` failed, or of a rewind.

    Each error names its item (``KafkaError.item``). ``except*`` works on the group.

    Attributes:
        results: what came of the other items, in the order in which they were given.
    """

    results: Mapping[object, object]

    @classmethod
    def of(
        cls, what: str, errors: Sequence[KafkaError], results: Mapping[object, object]
    ) -> Self:
        """Make the group.

        Args:
            what: names the operation, as in ``create topics``.
            errors: the errors, in the order of the items.
            results: what came of the other items.
        """
        total = len(errors) + len(results)
        group = cls(f"{what}: {len(errors)} of {total} failed", errors)
        group.results = results
        return group

    def derive(self, excs: Sequence[KafkaError], /) -> AdminErrors:  # type: ignore[override]
        """Return a part of the group, for ``split`` and ``except*``."""
        part = AdminErrors(self.message, excs)
        part.results = self.results
        return part

    def __reduce__(self) -> tuple[object, ...]:
        return _restored_group, (self.message, list(self.exceptions), self.results)


def _restored_group(
    message: str, errors: Sequence[KafkaError], results: Mapping[object, object]
) -> AdminErrors:
    group = AdminErrors(message, errors)
    group.results = results
    return group


for _name in __all__:
    public("kafkaio")(globals()[_name])
