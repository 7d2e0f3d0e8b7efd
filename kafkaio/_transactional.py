"""The part of a consumer that a transaction of a producer knows.

Producer and consumer do not import each other, not for types either (ADR 21, ADR 49).
They meet here, in a layer below both: `kafkaio.Consumer` is a `TransactionalConsumer`,
and a transaction uses nothing else of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from typing import Protocol
from uuid import UUID

from kafkaio._public import public
from kafkaio.errors import KafkaError
from kafkaio.types import GroupMetadata, OffsetAndMetadata, TopicPartition


class GroupOffsetsPort(Protocol):
    """Offsets that a transaction commits for a group.

    Without a consumer whose place in the group a broker could check, the bodies here
    hold.
    """

    @property
    def offsets(self) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """Offsets of the next records to read; never empty."""
        ...

    @property
    def topic_ids(self) -> Mapping[str, UUID]:
        """The ids of topics when the offsets were taken, as far as known.

        With them, a coordinator refuses offsets of a topic that was deleted and made
        again (KIP-1319).
        """
        return {}

    @property
    def is_fenced(self) -> bool:
        """Whether the consumer is subscribed, so that brokers must check its place.

        TxnOffsetCommit does that from version 3 on (KIP-447).
        """
        return False

    def identity(self) -> GroupMetadata:
        """Return the group and the member's place in it, as they are now."""
        ...

    def check(self) -> None:
        """Check that the offsets may still be committed; called before each request.

        Raises:
            PartitionLost: an assignment that they belong to has ended.
        """
        return

    def lacks(self, partitions: Collection[TopicPartition]) -> bool:
        """Whether the consumer's metadata, too, lacks one of these partitions.

        It lacks a partition as well if the topic has another id by now.

        Args:
            partitions: those that the group's coordinator does not know.
        """
        del partitions
        return False

    def refused(self, code: int, identity: GroupMetadata) -> bool:
        """Whether to commit again, because the member has another place by now.

        Args:
            code: the coordinator's error code for a request.
            identity: the identity in that request.
        """
        del code, identity
        return False

    def committed(self) -> None:
        """Note that the transaction has committed the offsets."""
        return


class JoinedConsumerPort(Protocol):
    """A consumer whose records one transaction works on, from its begin to its end.

    No partition is revoked while the transaction works on its records, that is, from
    the first record handed out until `end` or `rewind`.
    """

    def handed_out(self) -> GroupOffsetsPort | None:
        """Return the offsets of records handed out and not committed; None for none.

        Raises:
            PartitionLost: an assignment of it has ended.
        """
        ...

    async def rewind(self, *, is_unknown: bool = False) -> None:
        """Go back to the committed offsets, drop fetched records, and let go.

        For a transaction that was aborted. Partitions whose revocation was requested
        are released first. Reads return records only after it. A partition whose
        position was set by a seek, and of which nothing was committed since, is read
        again from where the transaction began.

        Args:
            is_unknown: whether the transaction may have been committed.

        Raises:
            KafkaError: the committed offsets could not be fetched in time. The look-up
                goes on, and nothing of the partitions is read until it has succeeded,
                or until they are moved by ``seek``.
        """
        ...

    def end(self) -> None:
        """Let go of the partitions: the transaction was committed, or had no records.

        May be called again.
        """
        ...


@public("kafkaio")
class TransactionalConsumer(ABC):
    """A consumer whose records a transaction can work on: a `kafkaio.Consumer`.

    `Producer.transaction` and `Transaction.commit_offsets` take one. It is the part of
    `kafkaio.Consumer` that a producer knows, and it has no public methods: a program
    that only produces does not load the consumer. Programs do not derive from it.
    """

    @abstractmethod
    def _offsets_in_transaction(self, what: object = None) -> GroupOffsetsPort | None:
        """Return what ``commit(what)`` would commit; None if there is nothing.

        Args:
            what: as for `Consumer.commit`; None for all that was handed out so far.

        Raises:
            UsageError: the consumer commits automatically, keeps its offsets outside
                Kafka, or has no group; or as in `Consumer.commit`.
            PartitionLost: a partition is not assigned (any more).
            ArgumentTypeError: ``what`` cannot be committed.
            ArgumentValueError: an offset is negative.
            ClosedError: the consumer is not running.
        """

    @abstractmethod
    def _join_transaction(
        self,
        on_revoke: Callable[[], None],
        on_lost: Callable[[KafkaError], None],
    ) -> JoinedConsumerPort:
        """Hold partitions for one transaction.

        A partition is held from the first record that is handed out, or was before and
        is not finished, until the transaction has ended or the group's deadline is
        over. Meanwhile `Consumer.commit` of the partition raises UsageError. A task
        that closes the consumer thereby leaves the transaction that it began.

        Args:
            on_revoke: called, perhaps within this call, when a partition that the
                transaction works on is to be revoked: the transaction should end soon.
                With ``io_thread`` it is called a little later, in the user's event
                loop, and so is the other one.
            on_lost: called, perhaps within this call, with a `PartitionLost` when such
                a partition was lost: its offsets cannot be committed any more.

        Raises:
            UsageError: as `_offsets_in_transaction`; or another transaction has the
                consumer.
            ClosedError: the consumer is not running.
        """
