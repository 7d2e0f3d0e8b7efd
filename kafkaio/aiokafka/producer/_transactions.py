"""The transactions of one `AIOKafkaProducer`, of which one at most is open."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import TypeAlias

import kafkaio
from kafkaio.aiokafka import errors
from kafkaio.aiokafka._translation import translating
from kafkaio.aiokafka.structs import OffsetAndMetadata

#: kafkaio checks what it gets: aiokafka's methods take anything.
NativeProducer: TypeAlias = kafkaio.Producer[object, object]
NativeTransaction: TypeAlias = kafkaio.Transaction[object, object]


class WrongState(errors.IllegalOperation, AssertionError):
    """The call is not possible now; for aiokafka that is an AssertionError."""


class _State(Enum):
    """Where a producer is with its transactions."""

    READY = auto()
    BEGINNING = auto()
    OPEN = auto()
    ENDING = auto()
    #: A commit has failed and the transaction is aborted. Programs of aiokafka abort it
    #: nevertheless, because there it is still open.
    FAILED = auto()
    #: A commit was asked for and not answered: it may still succeed.
    UNKNOWN = auto()


class Transactions:
    """Begins and ends the transactions of a producer, one after the other.

    Args:
        producer: a producer of kafkaio with a ``transactional_id``.
    """

    def __init__(self, producer: NativeProducer) -> None:
        self._producer = producer
        self._state = _State.READY
        self._transaction: NativeTransaction | None = None

    def open(self, refusal: str) -> NativeTransaction:
        """Return the open transaction.

        Raises:
            IllegalOperation: none is open; ``refusal`` says what is not possible.
        """
        if self._state is not _State.OPEN or self._transaction is None:
            raise errors.IllegalOperation(refusal)
        return self._transaction

    async def begin(self) -> None:
        """Begin a transaction; see `AIOKafkaProducer.begin_transaction`."""
        if self._state in (_State.BEGINNING, _State.OPEN, _State.ENDING):
            raise WrongState("the transaction before has not ended")
        transaction = self._producer.transaction()
        self._state = _State.BEGINNING
        try:
            with translating(closed=errors.ProducerClosed):
                await transaction.begin()
        except BaseException:
            self._state = _State.READY
            raise
        self._transaction = transaction
        self._state = _State.OPEN

    async def commit(self) -> None:
        """Commit the open one; see `AIOKafkaProducer.commit_transaction`."""
        transaction = self._take("commit")
        try:
            with translating(closed=errors.ProducerClosed):
                await transaction.commit()
        except kafkaio.KafkaError as error:
            is_unknown = isinstance(error, kafkaio.OutcomeUnknown)
            self._state = _State.UNKNOWN if is_unknown else _State.FAILED
            raise
        finally:
            if self._state is _State.ENDING:
                self._state = _State.READY

    async def abort(self) -> None:
        """Abort the open one; see `AIOKafkaProducer.abort_transaction`."""
        if self._state is _State.FAILED:
            self._state = _State.READY
            return
        if self._state is _State.UNKNOWN:
            self._state = _State.READY
            raise errors.KafkaTimeoutError(
                "the transaction cannot be aborted: its commit was asked for, and goes "
                "on; the next transaction waits for its end"
            )
        transaction = self._take("abort")
        try:
            with translating(closed=errors.ProducerClosed):
                await transaction.abort()
        finally:
            self._state = _State.READY

    async def abort_after(self, error: BaseException) -> None:
        """Abort the open one because its block has raised an exception.

        Raises:
            ProducerFenced: the abort shows that the producer is over, which the error
                of the block, one of Kafka's, does not say.
        """
        if self._state is not _State.OPEN:
            return  # the block has ended it by itself, or tried to
        transaction = self._take("abort")
        try:
            with translating(closed=errors.ProducerClosed):
                await transaction.__aexit__(type(error), error, error.__traceback__)
        finally:
            self._state = _State.READY

    async def send_offsets(
        self, offsets: Mapping[kafkaio.TopicPartition, OffsetAndMetadata], group: str
    ) -> None:
        """Commit offsets of a group with the open transaction."""
        transaction = self.open("Not in the middle of a transaction")
        wanted = {
            tp: kafkaio.OffsetAndMetadata(each.offset, each.metadata)
            for tp, each in offsets.items()
        }
        with translating(closed=errors.ProducerClosed):
            await transaction.commit_offsets(kafkaio.GroupMetadata(group), wanted)

    def _take(self, what: str) -> NativeTransaction:
        transaction = self._transaction
        if self._state is not _State.OPEN or transaction is None:
            raise WrongState(f"no transaction is open: there is nothing to {what}")
        # From here on no record is taken in, also while the end is on its way.
        self._state = _State.ENDING
        self._transaction = None
        return transaction
