"""Writes records whose handler has failed for good to another topic."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from kafkaio._arguments import check_topic
from kafkaio._consumer.parallel.ports import OpenTransactionPort
from kafkaio._public import public
from kafkaio._topic import Topic
from kafkaio.errors import ArgumentTypeError
from kafkaio.types import Header, Record


@public("kafkaio")
class RecordSender(Protocol):
    """Writes a record and returns when it is acknowledged: a `Producer` of bytes."""

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Sequence[Header] = (),
    ) -> object:
        """Write a record."""
        ...


@public("kafkaio")
class DeadLetter:
    """Writes records to a topic of their own, for ``Consumer.run(dead_letter=...)``.

    Key, value and headers stay as they came, bytes for bytes. These headers follow:
    ``dead-letter-topic``, ``-partition``, ``-offset`` and ``-timestamp`` (where the
    record came from, as decimal numbers), ``-error`` (the type of the exception) and
    ``-message`` (its text).

    Args:
        producer: a producer that is running; it needs ``acks="all"``, and must take
            bytes.
        topic: name of the topic.

    Raises:
        ArgumentTypeError: the topic is not a str (nor may it be a `kafkaio.Topic`).
        ArgumentValueError: it is empty.
    """

    def __init__(self, producer: RecordSender, topic: str) -> None:
        given: object = topic
        if isinstance(given, Topic):
            raise ArgumentTypeError(
                "topic must be str, not Topic: a record is written as it came, without "
                f"serdes; pass the name, {given.name!r}"
            )
        check_topic(topic)
        self._producer = producer
        self._topic = topic

    def __repr__(self) -> str:
        return f"<DeadLetter {self._topic!r}>"

    async def __call__(self, record: Record, error: Exception) -> None:
        """Write the record and wait until it is acknowledged.

        If the call is cancelled, the record may be written all the same.

        Raises:
            KafkaError: it could not be written.
        """
        await self._producer.send(
            self._topic,
            record.value,
            key=record.key,
            headers=_headers_of(record, error),
        )


def through(
    transaction: OpenTransactionPort, letter: DeadLetter
) -> Callable[[Record, Exception], Awaitable[object]]:
    """Return a dead letter that writes to the same topic within a transaction.

    The serializers of the transaction's producer are not called: the record has bytes.
    """
    topic = Topic(letter._topic)

    async def write(record: Record, error: Exception) -> None:
        headers = _headers_of(record, error)
        await transaction.send(topic, record.value, key=record.key, headers=headers)

    return write


def _headers_of(record: Record, error: Exception) -> list[Header]:
    kind = type(error)
    origin = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "error": f"{kind.__module__}.{kind.__qualname__}",
        "message": error,
    }
    return [
        *record.headers,
        *((f"dead-letter-{k}", str(v).encode()) for k, v in origin.items()),
    ]
