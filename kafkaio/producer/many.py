"""Sending several records in one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Self

from kafkaio._machines.accumulator import PlainRecord, Receipt
from kafkaio.producer.arguments import check_destination
from kafkaio.producer.delivery import Delivery, settled
from kafkaio.producer.written import Run, Written
from kafkaio.types import Headers, NewRecord, RecordMetadata

__all__ = ["DeliveriesFailed", "Sent", "plan"]


class DeliveriesFailed(ExceptionGroup[Exception]):
    """Some of the records of one ``send_many`` failed.

    As an exception group it holds each error once, also where it befell several
    records; ``except*`` works on it.

    Attributes:
        failures: the error of each record that failed, by its index in ``values``.
        delivered: where the other records were written, by index.
    """

    failures: Mapping[int, Exception]
    delivered: Mapping[int, RecordMetadata]

    @classmethod
    def of(
        cls, failures: Mapping[int, Exception], delivered: Mapping[int, RecordMetadata]
    ) -> Self:
        """Make the group of what became of each record."""
        total = len(failures) + len(delivered)
        listed = ", ".join(str(index) for index in sorted(failures)[:10])
        more = ", ..." if len(failures) > 10 else ""
        group = cls(
            f"{len(failures)} of {total} records failed (index {listed}{more})",
            list({id(error): error for error in failures.values()}.values()),
        )
        group.failures = dict(sorted(failures.items()))
        group.delivered = dict(delivered)
        return group

    # The base class is typed for groups of any kind of exception; this one only ever
    # holds, and so is only ever divided into, groups of ``Exception``.
    def derive(  # type: ignore[override]
        self, excs: Sequence[Exception], /
    ) -> DeliveriesFailed:
        """Make the part of the group that ``split`` and ``except*`` ask for."""
        part = DeliveriesFailed(self.message, excs)
        kept = {id(error) for error in excs}
        part.failures = {
            index: error for index, error in self.failures.items() if id(error) in kept
        }
        part.delivered = self.delivered
        return part


class Sent:
    """What one ``send_many`` has taken in so far: runs of records of one receipt.

    Attributes:
        count: records taken in.
    """

    def __init__(self) -> None:
        self.count = 0
        # Receipt, index of the first record there, how many, their timestamp.
        self._runs: list[tuple[Receipt, int, int, int]] = []
        self._failures: dict[int, Exception] = {}

    def add(self, delivery: Delivery) -> None:
        """Note the next record."""
        receipt, index, timestamp = delivery.place()
        self.add_run((receipt, index, 1, timestamp))

    def add_run(self, run: tuple[Receipt, int, int, int]) -> None:
        """Note the next records, as ``Lanes.take_values`` tells of them."""
        self._runs.append(run)
        self.count += run[2]

    def fail_rest(self, total: int, error: Exception) -> None:
        """Note that of ``total`` records no more could be taken in."""
        self._failures = dict.fromkeys(range(self.count, total), error)

    async def outcome(self) -> Sequence[RecordMetadata]:
        """Wait for all; where each was written.

        Raises:
            DeliveriesFailed: some records failed.
        """
        await settled([run[0] for run in self._runs])
        if self._failures or any(
            receipt.error is not None or receipt.moved is not None
            for receipt, _, _, _ in self._runs
        ):
            return self._one_by_one()
        return Written(_written(run) for run in self._runs)

    def _one_by_one(self) -> Sequence[RecordMetadata]:
        done: dict[int, RecordMetadata] = {}
        number = 0
        for receipt, first, count, timestamp in self._runs:
            for index in range(first, first + count):
                delivery = Delivery(receipt, index, timestamp)
                error = delivery.exception()
                if error is None:
                    done[number] = delivery.result()
                else:
                    self._failures[number] = error
                number += 1
        if self._failures:
            raise DeliveriesFailed.of(self._failures, done)
        return Written(
            (made.topic, made.partition, made.offset, 1, made.timestamp)
            for made in done.values()
        )


def _written(run: tuple[Receipt, int, int, int]) -> Run:
    receipt, first, count, sent_with = run
    offset, timestamp = receipt.written(first, sent_with)
    return receipt.topic, receipt.partition, offset, count, timestamp


def plan(
    topic: str,
    values: Sequence[object],
    make: Callable[[object, object, Headers, int | None], PlainRecord],
) -> list[tuple[int | None, PlainRecord]]:
    """Check all values; return the partition asked for and the record of each.

    Raises:
        TypeError: an argument is of the wrong type; the message says which.
        ValueError: an argument is impossible.
    """
    if isinstance(values, str | bytes | bytearray | memoryview):
        raise TypeError(
            f"values must be a sequence of values, not one {type(values).__name__}"
        )
    planned: list[tuple[int | None, PlainRecord]] = []
    check_destination(topic, None)
    for value in values:
        if isinstance(value, NewRecord):
            check_destination(topic, value.partition)
            record = make(value.key, value.value, value.headers, value.timestamp)
            planned.append((value.partition, record))
        else:
            planned.append((None, make(None, value, (), None)))
    return planned
