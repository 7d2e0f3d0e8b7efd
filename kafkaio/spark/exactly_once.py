"""Exactly once: what one attempt of a task does, without Spark.

Spark runs a task several times: after a failure, beside a slow attempt (speculation),
and all tasks of a batch again when a driver starts from a checkpoint. It also loses
messages of success. So each attempt commits a transaction of its own, and in it a
*marker*, from which later attempts of the task learn that its rows are in.

The marker is an offset that is committed for partition 0 of the marker topic: version
+ 1, with the number of rows and their digest as metadata. Its group has no members, and
the same name as the transactional id: ``<prefix>-<app>-<task>``. The number of the
attempt is not part of the name, because attempts have to fence one another.

The order of the steps is what makes it right:

1. InitProducerId. It fences all other attempts: of those that are under way, none can
   commit any more, and one that was just committing has committed when it returns.
2. The marker, once it is stable. From here on only this attempt can change it.
3. If the marker is at ``version + 1`` or above, the rows are in: the input is read,
   compared with the marker, and dropped.
4. Else all rows are written, the marker is committed in the same transaction, and the
   transaction is committed.

Invariant: in each version, of all attempts of a task at most one commits. If the first
two steps changed places, two attempts could both find no marker and commit one after
the other (`docs/adr/0024-the-task-commits-and-not-the-driver.md`).
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterable, Awaitable, Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from kafkaio._dataclass import dataclass
from kafkaio.client import Client
from kafkaio.client.client import cluster_of
from kafkaio.config import ClientConfig, ProducerConfig
from kafkaio.errors import (
    BrokerError,
    Fenced,
    KafkaError,
    OutcomeUnknown,
    TransactionAborted,
)
from kafkaio.producer import Producer, Transaction
from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.spark.digest import RowDigest
from kafkaio.types import GroupMetadata, OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "AttemptFailed",
    "Put",
    "ReplayMismatch",
    "TaskAttempt",
    "TaskName",
    "TaskResult",
    "transactional_id",
]

#: Takes the rows of a batch into a transaction.
Put: TypeAlias = Callable[["Transaction", "pa.RecordBatch"], Awaitable[object]]

_log = logging.getLogger("kafkaio.spark")

#: The feature, and the level from which on a late request of a fenced attempt cannot
#: get into the transaction of the next one (KIP-890).
_FEATURE: Final = "transaction.version"
_SAFE_LEVEL: Final = 2
#: Codes by which brokers refuse the requests of a producer that was fenced, or whose
#: transaction has timed out: which of both is not said.
_FENCING: Final = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_TXN_STATE,
    }
)


class AttemptFailed(KafkaError):
    """An attempt of a task ended without a commit that it knows of.

    Another attempt can succeed: the marker tells it what became of this one.
    """

    retriable = True


class ReplayMismatch(KafkaError):
    """A task was run again with other rows than those that it has committed.

    To write them would double rows, and to drop them loses rows. It comes of a query
    whose rows, or their distribution to tasks, cannot be repeated.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskName:
    """Which rows: those of one task in one version of an application's output.

    Attributes:
        app: who writes: ``txnAppId``, or the id of the streaming query.
        version: which of its batches: ``txnVersion``, or the number of the micro-batch.
        task: number of the task in the batch.
        prefix: the first part of all names, for the rights of the principal.
    """

    app: str
    version: int
    task: int
    prefix: str = "kafkaio"

    def __str__(self) -> str:
        return f"task {self.task} of batch {self.version} of {self.app!r}"

    @property
    def transactional_id(self) -> str:
        """The transactional id, and the group of the marker."""
        return transactional_id(self.prefix, self.app, self.task)


def transactional_id(prefix: str, app: str, task: int | str) -> str:
    """Return the transactional id of a task, which is also its marker's group."""
    return f"{prefix}-{app}-{task}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """What an attempt did that succeeded.

    Attributes:
        rows: number of rows of its input.
        digest: their digest (`RowDigest`).
        is_skipped: whether an earlier attempt had committed them.
    """

    rows: int
    digest: str
    is_skipped: bool


class TaskAttempt:
    """One attempt of a task.

    Args:
        client: a started client; its connections are used.
        name: which rows it writes.
        marker_topic: the topic on whose partition 0 the marker is committed.
        config: the options of the producer. Its ``transactional_id`` and the options
            of the client are not taken from it.
        on_mismatch: what a replay with other rows does: ``fail`` or ``warn``.
    """

    def __init__(
        self,
        client: Client,
        name: TaskName,
        *,
        marker_topic: str,
        config: ProducerConfig,
        on_mismatch: Literal["fail", "warn"] = "fail",
    ) -> None:
        self.client = client
        self.name = name
        self._marker_at = TopicPartition(marker_topic, 0)
        self._config = config
        self._on_mismatch = on_mismatch

    async def run(self, batches: AsyncIterable[pa.RecordBatch], put: Put) -> TaskResult:
        """Write the rows, unless an earlier attempt has committed them.

        Args:
            batches: the input; it is read to its end in any case.
            put: takes the rows of a batch into the transaction.

        Raises:
            AttemptFailed: another attempt has fenced this one; or it is not known
                whether its commit succeeded. Another attempt can be made.
            ReplayMismatch: the input is not what was committed.
            KafkaError: the cluster refused something, or did not answer; nothing was
                committed.
        """
        producer = self.producer()
        try:
            await self.start(producer)
            marker = await self.marker()
            if marker is not None and marker.offset > self.name.version:
                result = await self.skip(marker, batches)
            else:
                result = await self.write(producer, batches, put)
        except BaseException:
            # What is open was aborted, or the next attempt aborts it.
            await producer.close(timeout=0)
            raise
        await producer.close()
        return result

    def producer(self) -> Producer:
        """Make the producer of this attempt; it is never kept for another one."""
        shared = {f.name for f in fields(ClientConfig)}
        options = {
            f.name: getattr(self._config, f.name)
            for f in fields(ProducerConfig)
            if f.name not in shared
        }
        options["transactional_id"] = self.name.transactional_id
        return Producer(self.client, **options)

    async def start(self, producer: Producer) -> None:
        """Fence all other attempts, and end what they have open.

        Raises:
            UnknownTopicOrPartition: there is no such marker topic.
            KafkaError: what `Producer.start` raises.
        """
        await producer.start()
        # A missing topic is an error here, or is created by this, as by a first record.
        await producer.partitions_for(self._marker_at.topic)
        level = cluster_of(self.client).feature_level(_FEATURE)
        if level < _SAFE_LEVEL:
            _warn_of_level(level)

    async def marker(self) -> OffsetAndMetadata | None:
        """Return the marker, once no transaction that may change it is open."""
        found = await self.client.committed(
            self.name.transactional_id, [self._marker_at], require_stable=True
        )
        return found[self._marker_at]

    async def skip(
        self, marker: OffsetAndMetadata, batches: AsyncIterable[pa.RecordBatch]
    ) -> TaskResult:
        """Read the input, and compare it with the marker of this version.

        A marker of a later version says that the rows are in, and not which.

        Raises:
            ReplayMismatch: it has other rows, and ``on_mismatch`` is ``fail``.
        """
        digest = RowDigest()
        async for batch in batches:
            digest.add(batch)
        if marker.offset == self.name.version + 1:
            self._compare(marker.metadata, digest)
            _log.info("%s was committed by an earlier attempt: skipped", self.name)
        else:
            _log.warning(
                "%s was skipped: batch %d was committed already. A query with a new "
                "checkpoint counts from 0 again and needs another txnAppId",
                self.name,
                marker.offset - 1,
            )
        return TaskResult(rows=digest.rows, digest=str(digest), is_skipped=True)

    def _compare(self, metadata: str, digest: RowDigest) -> None:
        if digest.is_that_of(metadata):
            return
        error = ReplayMismatch(
            f"{self.name} was run again with other rows ({digest.metadata()}) than it "
            f"has committed ({metadata or 'nothing noted'}): rows are lost or doubled. "
            "The query, its options and its number of tasks must give the same rows to "
            "the same task each time; onReplayMismatch=warn goes on regardless"
        )
        if self._on_mismatch == "fail":
            raise error
        _log.warning("%s", error)

    async def write(
        self, producer: Producer, batches: AsyncIterable[pa.RecordBatch], put: Put
    ) -> TaskResult:
        """Write all rows and the marker in one transaction.

        Raises:
            AttemptFailed: as `run` does.
            KafkaError: as `run` does.
        """
        digest = RowDigest()
        try:
            async with producer.transaction() as tx:
                async for batch in batches:
                    digest.add(batch)
                    await put(tx, batch)
                await self.mark(tx, digest)
        except (Fenced, TransactionAborted, OutcomeUnknown) as error:
            raise self._failed(error) from error
        return TaskResult(rows=digest.rows, digest=str(digest), is_skipped=False)

    async def mark(self, tx: Transaction, digest: RowDigest) -> None:
        """Commit the marker in the transaction."""
        marker = OffsetAndMetadata(self.name.version + 1, digest.metadata())
        await tx.commit_offsets(
            GroupMetadata(self.name.transactional_id), {self._marker_at: marker}
        )

    def _failed(self, error: KafkaError) -> KafkaError:
        if isinstance(error, OutcomeUnknown):
            return AttemptFailed(
                f"{self.name}: whether its commit succeeded is not known ({error}); "
                "another attempt finds out"
            )
        limit = f"kafka.transaction.timeout.ms={self._config.transaction_timeout_ms}"
        if _is_fenced(error):
            return AttemptFailed(
                f"{self.name} has committed nothing: another attempt has taken over "
                f"the transactional id {self.name.transactional_id!r}, or the "
                f"transaction timed out ({limit})"
            )
        if isinstance(error, TransactionAborted) and error.reason == "timed out":
            return AttemptFailed(
                f"{self.name} has committed nothing: it took longer than its "
                f"transaction may ({limit}); make tasks smaller, or raise that option"
            )
        cause = error.__cause__ if isinstance(error.__cause__, KafkaError) else error
        return AttemptFailed(f"{self.name} has committed nothing: {cause}")


def _is_fenced(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, BrokerError) and error.code in _FENCING:
            return True
        error = error.__cause__
    return False


_warned: set[int] = set()


def _warn_of_level(level: int) -> None:
    if level in _warned:
        return
    _warned.add(level)
    _log.warning(
        "the cluster has transaction.version %d: before level 2 (Kafka 4.0) a late "
        "request of a fenced attempt can get into the transaction of the next one "
        "(KIP-890), so that exactlyOnce may repeat rows",
        level,
    )
