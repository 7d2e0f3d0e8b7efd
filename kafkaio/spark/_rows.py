"""Rows of Spark as records: chooses the columns, and gives them to a producer.

Spark gives a task its rows as Arrow batches. They go into the producer as they are,
whole columns at a time. Nothing here depends on Spark's classes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from kafkaio._dataclass import dataclass
from kafkaio._producer import Producer
from kafkaio._producer.bulk import TableDelivery
from kafkaio._runtime.own_thread import in_thread
from kafkaio.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkaio._producer.transaction import Transaction

_HEADERS: Final = "array<struct<key:string,value:binary>>"
#: The columns that are written, with the types that they may have in Spark.
_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "value": ("binary", "string"),
    "key": ("binary", "string"),
    "headers": (_HEADERS,),
    "topic": ("string",),
    "partition": ("int",),
    "timestamp": ("timestamp",),
}


@dataclass(frozen=True, slots=True)
class RowColumns:
    """Which columns of the rows are written, and to where. Can be pickled.

    Attributes:
        topic: the topic of all rows; None if the column ``topic`` has it.
        names: the columns that are written.
    """

    topic: str | None
    names: tuple[str, ...]

    @classmethod
    def of(cls, types: Mapping[str, str], topic: str | None) -> RowColumns:
        """Choose from the columns of a query; others than ours are left out.

        Args:
            types: Spark's names of their types, such as ``binary``, by column.
            topic: the option ``topic``, which wins over the column.

        Raises:
            ArgumentTypeError: a column has a type that cannot be written.
            ArgumentValueError: the column ``value`` is missing; or neither the option
                nor the column says the topic.
        """
        names = [name for name in _TYPES if name in types]
        # As in Spark's connector: the option wins over the column.
        if topic is not None and "topic" in names:
            names.remove("topic")
        if "value" not in names:
            raise ArgumentValueError(
                f"the column 'value' is missing: the rows have {_listed(types)}; "
                "make it, as binary or string: to_json(struct(*)) as value has them all"
            )
        if topic is None and "topic" not in names:
            raise ArgumentValueError(
                "there is no topic to write to: set the option topic, or give the rows "
                f"a column 'topic'; they have {_listed(types)}"
            )
        for name in names:
            _check_type(name, types[name])
        return cls(topic, tuple(names))

    async def enqueue(
        self, target: Producer | Transaction, batch: pa.RecordBatch
    ) -> TableDelivery:
        """Take the rows of a batch into a producer or a transaction.

        Raises:
            KafkaError: what `Producer.enqueue_table` raises.
        """
        return await target.enqueue_table(
            self.topic,
            batch,
            key=self._named("key"),
            headers=self._named("headers"),
            timestamp=self._named("timestamp"),
            topic_column=self._named("topic"),
            partition_column=self._named("partition"),
        )

    def chosen(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns of a batch that are written."""
        return batch.select(list(self.names))

    def _named(self, name: str) -> str | None:
        return name if name in self.names else None


def _check_type(name: str, found: str) -> None:
    # A collation does not change how a string is stored.
    plain = "string" if found.startswith("string collate ") else found
    if plain not in _TYPES[name]:
        raise ArgumentTypeError(
            f"the column {name!r} is {found}; it must be {' or '.join(_TYPES[name])}: "
            f"{_remedy(name, found)}, or rename it if it is not meant for Kafka"
        )


def _remedy(name: str, found: str) -> str:
    """Return what to do about a column of a wrong type."""
    if name == "headers":
        if found.startswith("map<"):
            return (
                "use transform(map_entries(headers), h -> named_struct('key', h.key, "
                "'value', cast(h.value as binary)))"
            )
        return "build it of named_struct('key', ..., 'value', cast(... as binary))"
    if name in {"key", "value"}:
        if found.startswith(("struct<", "array<", "map<", "variant")):
            return f"use to_json({name}) as {name}"
        return f"use cast({name} as string) as {name}"
    if name == "timestamp" and found in {"bigint", "int"}:
        return (
            "use timestamp_millis(timestamp), timestamp_micros or timestamp_seconds, "
            "of nanoseconds timestamp_micros(timestamp div 1000)"
        )
    if name == "timestamp" and found == "string":
        return "use to_timestamp(timestamp) as timestamp"
    return f"use cast({name} as {_TYPES[name][0]}) as {name}"


def _listed(types: Mapping[str, str]) -> str:
    return ", ".join(types) or "no columns"


async def pulled(batches: Iterator[pa.RecordBatch]) -> AsyncIterator[pa.RecordBatch]:
    """Yield batches that come from a blocking iterator.

    It is read in another thread, so that acknowledgements are taken, and timers run,
    while Spark computes the next rows.
    """
    while True:
        # One thread at a time: Spark's iterator may be used by one caller only.
        batch = await in_thread(partial(next, batches, None), "kafkaio pulls rows")
        if batch is None:
            return
        yield batch


async def write_rows(
    producer: Producer, columns: RowColumns, batches: AsyncIterable[pa.RecordBatch]
) -> int:
    """Write all rows, and wait until they are acknowledged; return their number.

    Rows of one partition keep their order.

    Raises:
        KafkaError: the error of the first row that failed; others may have been
            written.
    """
    rows = 0
    pending: deque[TableDelivery] = deque()
    async for batch in batches:
        pending.append(await columns.enqueue(producer, columns.chosen(batch)))
        rows += batch.num_rows
        # Checked along the way: a failure ends the task early, and finished deliveries
        # do not pile up.
        while pending and pending[0].is_done:
            _check(pending.popleft())
    await producer.flush()
    for delivery in pending:
        _check(delivery)
    return rows


def _check(delivery: TableDelivery) -> None:
    failed = delivery.exception()
    if failed is not None:
        error = failed.failures[min(failed.failures)]
        error.add_note(failed.message)
        raise error from None
