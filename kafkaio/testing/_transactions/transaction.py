"""The transactions of one transactional id, as a pure state machine (KIP-98, KIP-890).

A producer that speaks the newer protocol (transaction version 2) gets a new epoch with
each end of a transaction: the epoch is raised in the step to PrepareCommit or
PrepareAbort, and the producer id is replaced where epochs are exhausted. With the older
protocol only InitProducerId raises it.

A step returns the error code to answer with, and the caller writes the changed
transaction to the log. Writing takes no time here, so no step has to wait for the write
of another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeAlias

from kafkaio.protocol._error_codes import ErrorCode

#: The transaction version from which each end of a transaction bumps the epoch.
BUMPING: Final = 2
#: A topic's name and a partition's number.
TopicPartition: TypeAlias = tuple[str, int]

_LARGEST_EPOCH: Final = 2**15 - 1
_NONE: Final = -1


class TransactionStatus(Enum):
    """The states, by the numbers in the log."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        """Kafka's name of the state."""
        return self.name.title().replace("_", "")

    @property
    def is_prepared(self) -> bool:
        """Whether markers are being written."""
        return self in {
            TransactionStatus.PREPARE_COMMIT,
            TransactionStatus.PREPARE_ABORT,
        }


_PREPARED_AND_COMPLETE: Final = {
    True: (TransactionStatus.PREPARE_COMMIT, TransactionStatus.COMPLETE_COMMIT),
    False: (TransactionStatus.PREPARE_ABORT, TransactionStatus.COMPLETE_ABORT),
}


def _is_exhausted(epoch: int) -> bool:
    # The largest epoch is kept back, so that a producer can always be fenced.
    return epoch >= _LARGEST_EPOCH - 1


@dataclass(slots=True)
class TransactionMetadata:
    """The current or last transaction of a transactional id.

    Attributes:
        transactional_id: the id.
        producer_id: the producer id in use; in PrepareCommit and PrepareAbort still
            that of the transaction.
        epoch: its epoch; -1 before the first InitProducerId.
        timeout_ms: how long a transaction may be open.
        state: the state.
        partitions: those of the open transaction.
        updated_ms: when anything changed last, in milliseconds of the wall clock.
        started_ms: when the transaction began; -1 before.
        last_epoch: the epoch before, if the same producer may continue from it; -1.
        previous_producer_id: the producer id before the last step.
        next_producer_id: the producer id from the end of this transaction on; -1 if it
            stays.
        client_version: the transaction version that the producer spoke last.
    """

    transactional_id: str
    producer_id: int
    epoch: int = _NONE
    timeout_ms: int = 0
    state: TransactionStatus = TransactionStatus.EMPTY
    partitions: set[TopicPartition] = field(default_factory=set)
    updated_ms: int = _NONE
    started_ms: int = _NONE
    last_epoch: int = _NONE
    previous_producer_id: int = _NONE
    next_producer_id: int = _NONE
    client_version: int = 0

    @property
    def identity(self) -> tuple[int, int]:
        """The producer id and epoch that a producer continues with."""
        if self.next_producer_id != _NONE:
            return self.next_producer_id, 0
        return self.producer_id, self.epoch

    # ---- InitProducerId ----------------------------------------------------------

    def initialise(
        self,
        expected: tuple[int, int] | None,
        timeout_ms: int,
        new_id: Callable[[], int],
        now_ms: int,
    ) -> ErrorCode:
        """Give the id to a new producer, or a new epoch to the one that asks.

        Args:
            expected: producer id and epoch of a producer that asks for another epoch
                (KIP-360); None for a new producer, which fences the one before.
            timeout_ms: how long its transactions may be open.
            new_id: returns a new producer id.
            now_ms: the wall clock.

        Returns:
            NONE; CONCURRENT_TRANSACTIONS while a transaction is being ended;
            PRODUCER_FENCED. The caller aborts an open transaction first (`fence`).
        """
        if expected is not None and not self._is_expected(*expected):
            return ErrorCode.PRODUCER_FENCED
        if self.state.is_prepared or self.state is TransactionStatus.ONGOING:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        epoch = None if expected is None else expected[1]
        # A new producer id, with epochs from 0, takes the place of an epoch that does
        # not exist.
        if _is_exhausted(self.epoch) and epoch in {None, self.epoch}:
            before = _NONE if epoch is None else self.epoch
            self._rename(new_id(), before)
        elif epoch is None:
            self._raise_epoch(_NONE)
        elif self.epoch in {_NONE, epoch}:
            self._raise_epoch(self.epoch)
        elif epoch != self.last_epoch:
            return ErrorCode.PRODUCER_FENCED
        else:
            # The answer of the call before was lost: the same epoch again.
            self.previous_producer_id = self.producer_id
        self.state = TransactionStatus.EMPTY
        self.timeout_ms = timeout_ms
        self.partitions = set()
        self.started_ms = _NONE
        self.updated_ms = now_ms
        return ErrorCode.NONE

    def _is_expected(self, producer_id: int, epoch: int) -> bool:
        if self.epoch == _NONE or producer_id == self.producer_id:
            return True
        # The producer got a new id, because its epochs were exhausted, and has not
        # received the response.
        return producer_id == self.previous_producer_id and _is_exhausted(epoch)

    def _raise_epoch(self, last_epoch: int) -> None:
        self.last_epoch = last_epoch
        self.previous_producer_id = self.producer_id
        self.epoch += 1

    def _rename(self, producer_id: int, last_epoch: int) -> None:
        self.previous_producer_id = self.producer_id
        self.producer_id = producer_id
        self.epoch = 0
        self.last_epoch = last_epoch

    def _is_early(self, producer_id: int) -> bool:
        """Whether the producer uses its next id while the markers are written."""
        return self.state.is_prepared and producer_id == self.next_producer_id

    # ---- what a transaction takes in ---------------------------------------------

    def check(self, producer_id: int, epoch: int) -> ErrorCode:
        """Check who asks, and that no transaction is being ended."""
        if self._is_early(producer_id):
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if producer_id != self.producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if epoch != self.epoch:
            return ErrorCode.PRODUCER_FENCED
        if self.state.is_prepared:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        return ErrorCode.NONE

    def has(self, partitions: Iterable[TopicPartition]) -> bool:
        """Whether all these partitions are in the open transaction."""
        return self.partitions.issuperset(partitions)

    def add(
        self, partitions: Iterable[TopicPartition], client_version: int, now_ms: int
    ) -> None:
        """Take partitions into the transaction; begin it if it is not open."""
        if self.state is not TransactionStatus.ONGOING:
            self.started_ms = now_ms
            self.state = TransactionStatus.ONGOING
        self.partitions = self.partitions | set(partitions)
        self.client_version = client_version
        self.previous_producer_id = self.producer_id
        self.updated_ms = now_ms

    # ---- the end -----------------------------------------------------------------

    def end(
        self,
        producer: tuple[int, int],
        client_version: int,
        new_id: Callable[[], int],
        now_ms: int,
        *,
        commit: bool,
    ) -> ErrorCode | None:
        """Handle a producer's EndTxn.

        Args:
            producer: producer id and epoch of the producer that asks.
            client_version: the transaction version that it speaks.
            new_id: returns a new producer id.
            now_ms: the wall clock.
            commit: whether it commits.

        Returns:
            None if the transaction is prepared now: then it has to be written, and its
            markers. NONE if it had ended in the same way before. Else the error.
        """
        error: ErrorCode | None
        if self._is_early(producer[0]):
            error = ErrorCode.CONCURRENT_TRANSACTIONS
        elif client_version >= BUMPING:
            error = self._check_end(producer, commit=commit)
        else:
            error = self._check_old_end(producer, commit=commit)
        if error is not None:
            return error
        self._prepare(client_version, new_id, now_ms, commit=commit)
        return None

    def _check_old_end(
        self, producer: tuple[int, int], *, commit: bool
    ) -> ErrorCode | None:
        if producer[0] != self.producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if producer[1] != self.epoch:
            return ErrorCode.PRODUCER_FENCED
        if self.state is TransactionStatus.ONGOING:
            return None
        if self.state.is_prepared:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if self.state is _PREPARED_AND_COMPLETE[commit][1]:
            return ErrorCode.NONE
        return ErrorCode.INVALID_TXN_STATE

    def _check_end(
        self, producer: tuple[int, int], *, commit: bool
    ) -> ErrorCode | None:
        producer_id, epoch = producer
        # The producer has not received the response with its next epoch and repeats the
        # request.
        is_repeated = epoch + 1 == self.epoch
        # The same, with a new producer id in the response.
        is_renamed = (
            producer_id == self.previous_producer_id
            and epoch == _LARGEST_EPOCH - 1
            and self.epoch == 0
        )
        if producer_id != self.producer_id and not is_renamed:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        is_current = epoch == self.epoch
        if self.state.is_prepared:
            # Whatever is asked for: the markers come first.
            if is_repeated or is_current or is_renamed:
                return ErrorCode.CONCURRENT_TRANSACTIONS
            return ErrorCode.PRODUCER_FENCED
        if self.state in {TransactionStatus.ONGOING, TransactionStatus.EMPTY}:
            if not is_current:
                return ErrorCode.PRODUCER_FENCED
            # An abort in EMPTY is how a producer that failed before its first record
            # gets its next epoch.
            if self.state is TransactionStatus.ONGOING or not commit:
                return None
            return ErrorCode.INVALID_TXN_STATE
        if is_repeated or is_renamed:
            same = self.state is _PREPARED_AND_COMPLETE[commit][1]
            return ErrorCode.NONE if same else ErrorCode.INVALID_TXN_STATE
        if not is_current:
            return ErrorCode.PRODUCER_FENCED
        # An abort with nothing to abort is how a producer gets its next epoch.
        return ErrorCode.INVALID_TXN_STATE if commit else None

    def _prepare(
        self,
        client_version: int,
        new_id: Callable[[], int],
        now_ms: int,
        *,
        commit: bool,
    ) -> None:
        if client_version >= BUMPING:
            if _is_exhausted(self.epoch):
                self.next_producer_id = new_id()
            # The end of a transaction fences all requests of its producer that are
            # still on their way (KIP-890).
            self.last_epoch = self.epoch
            self.epoch = min(self.epoch + 1, _LARGEST_EPOCH)
        if self.state is not TransactionStatus.ONGOING:
            self.started_ms = now_ms
        self.client_version = client_version
        self.previous_producer_id = self.producer_id
        self.state = _PREPARED_AND_COMPLETE[commit][0]
        self.updated_ms = now_ms

    def fence(
        self, server_version: int, new_id: Callable[[], int], now_ms: int
    ) -> None:
        """Abort the open transaction without its producer, whose epoch ends here.

        Args:
            server_version: the transaction version of the cluster.
            new_id: returns a new producer id.
            now_ms: the wall clock.
        """
        assert self.state is TransactionStatus.ONGOING
        if server_version < BUMPING:
            self.epoch = min(self.epoch + 1, _LARGEST_EPOCH)
            self.last_epoch = _NONE
            # As Kafka, which notes no version of a client here.
            server_version = 0
        self._prepare(server_version, new_id, now_ms, commit=False)

    def complete(self, now_ms: int) -> None:
        """Note that all markers are written."""
        commit = self.state is TransactionStatus.PREPARE_COMMIT
        self.state = _PREPARED_AND_COMPLETE[commit][1]
        self.previous_producer_id = self.producer_id
        # Not before: the markers have the old producer id.
        self.producer_id, self.epoch = self.identity
        self.next_producer_id = _NONE
        self.partitions = set()
        self.updated_ms = now_ms
