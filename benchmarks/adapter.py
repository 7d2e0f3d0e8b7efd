"""Adapters for the runner that compares clients: kafkaio, used in several ways.

Name this file in ``BENCH_ADAPTERS`` (``run.py`` does). The code is what a good user of
kafkaio would write: it checks every delivery, and sets no options except those of the
runner's spec.
"""

from __future__ import annotations

import asyncio
import time
from itertools import islice

from adapters.base import Client
from core import settle

WINDOW = 8192  # records outstanding before the oldest are awaited, as with aiokafka
BATCH = 1000  # records per call, as with confluent's consume()


async def acknowledged(deliveries):
    """Wait for every delivery, raise its error, and return the number of deliveries."""
    for delivery in deliveries:
        if not delivery.is_done:
            await delivery
        elif (error := delivery.exception()) is not None:
            raise error
    return len(deliveries)


class Kafkaio(Client):
    """enqueue_nowait(), whose Deliveries are kept and checked; async for."""

    name = "kafkaio"
    distribution = "kafkaio"
    requires = ("kafkaio", "cramjam", "crc32c", "lz4", "zstandard")
    protocols = frozenset({"cooperative", "eager"})
    check = staticmethod(acknowledged)

    def load(self):
        import kafkaio

        self.lib = kafkaio

    # ---- producing
    async def open_producer(self):
        s = self.spec
        tuned = (
            {}
            if s.defaults
            else {
                "linger_ms": s.linger_ms,
                "batch_size": s.batch_bytes,
            }
        )
        self.producer = self.lib.Producer(
            s.bootstrap,
            acks="all",
            enable_idempotence=s.idempotent,
            compression_type=s.compression,
            **tuned,
        )
        await self.producer.start()
        self.posted = []

    async def produce_all(self, topic, values):
        producer, check = self.producer, self.check
        enqueue_nowait, enqueue = producer.enqueue_nowait, producer.enqueue
        older, newer, acked = [], [], 0
        for value in values:
            try:
                newer.append(enqueue_nowait(topic, value))
            except self.lib.BufferFull:
                newer.append(await enqueue(topic, value))
            if len(newer) == WINDOW:
                acked += await check(older)
                older, newer = newer, []
        return acked + await check(older) + await check(newer)

    async def send_and_wait(self, topic, value):
        await self.producer.send(topic, value)

    async def post(self, topic, value):
        self.posted.append(self.producer.enqueue_nowait(topic, value))

    async def settle_posts(self):
        return await settle(self.posted)

    async def close_producer(self):
        await self.producer.close()

    # ---- consuming
    async def open_consumer(self):
        s = self.spec
        own = {}
        if s.group:
            strategy = "range" if s.protocol == "eager" else "cooperative-sticky"
            own = {"group_id": s.group, "partition_assignment_strategy": (strategy,)}
        self.consumer = self.lib.Consumer(
            s.bootstrap, auto_offset_reset="earliest", **own
        )
        if not s.group:
            await self.consumer.start()

    async def join(self, topic, start):
        consumer = self.consumer
        if self.spec.group:
            if start == "latest":
                raise ValueError("join a group at the earliest offset")
            consumer.subscribe([topic])
            await consumer.start()
            return
        partitions = range(self.spec.partitions)
        consumer.assign([self.lib.TopicPartition(topic, p) for p in partitions])
        if start == "latest":
            consumer.seek_to_end()

    async def consume_all(self, topic, tally):
        await self.join(topic, "earliest")
        if tally.verify:
            await self.verify_all(tally)
            return
        left = tally.target
        buf, full = [], min(BATCH, left)
        async for record in self.consumer:
            record.key  # noqa: B018 - every record's key and value are read
            buf.append(record.value)
            if len(buf) == full:
                if not tally.take(buf):
                    break
                left -= full
                buf, full = [], min(BATCH, left)
                if tally.slow:
                    await asyncio.sleep(tally.nap())

    async def verify_all(self, tally):
        async for record in self.consumer:
            if not tally.check([as_row(record)]):
                break
            if tally.slow and (nap := tally.nap()):
                await asyncio.sleep(nap)

    async def read(self, on_record):
        async for record in self.consumer:
            on_record(record.partition, record.offset, record.value)

    async def stream(self, on_record, stop):
        reader = asyncio.ensure_future(self.read(on_record))
        # The runner's stop is a threading.Event, which the loop cannot wait for.
        while not stop.is_set() and not reader.done():  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        if reader.done():
            reader.result()
        reader.cancel()
        await asyncio.wait([reader])

    async def close_consumer(self):
        await self.consumer.close()


class KafkaioAwait(Kafkaio):
    """enqueue_nowait(), and every Delivery is awaited for its RecordMetadata."""

    name = "kafkaio-await"
    can = frozenset({"produce"})
    check = staticmethod(settle)


class KafkaioMany(Kafkaio):
    """send_many() of a window of records, two calls at a time."""

    name = "kafkaio-many"
    can = frozenset({"produce"})

    async def produce_all(self, topic, values):
        async def work():
            acked = 0
            while chunk := list(islice(values, WINDOW)):
                acked += len(await self.producer.send_many(topic, chunk))
            return acked

        async with asyncio.TaskGroup() as group:
            workers = [group.create_task(work()) for _ in range(2)]
        return sum(worker.result() for worker in workers)


class KafkaioTable(Kafkaio):
    """send_table() of a window of records, which it first makes a table of."""

    name = "kafkaio-table"
    requires = (*Kafkaio.requires, "pyarrow")
    can = frozenset({"produce"})

    def load(self):
        super().load()
        import pyarrow

        from kafkaio import arrow  # noqa: F401 - or the first table would load it

        self.arrow = pyarrow

    async def produce_all(self, topic, values):
        async def work():
            acked = 0
            while chunk := list(islice(values, WINDOW)):
                table = self.arrow.table({"value": chunk})
                acked += (await self.producer.send_table(topic, table)).num_rows
            return acked

        async with asyncio.TaskGroup() as group:
            workers = [group.create_task(work()) for _ in range(2)]
        return sum(worker.result() for worker in workers)


class KafkaioBatches(Kafkaio):
    """async for batch in consumer.batches(), and its values()."""

    name = "kafkaio-batches"
    can = frozenset({"consume", "e2e"})

    async def consume_all(self, topic, tally):
        await self.join(topic, "earliest")
        async for batch in self.consumer.batches(max_records=BATCH):
            if tally.verify:
                more = tally.check([as_row(record) for record in batch.records])
            else:
                more = tally.take(batch.values())
            if not more:
                break
            if tally.slow:
                await asyncio.sleep(tally.nap())

    async def read(self, on_record):
        async for batch in self.consumer.batches():
            for record in batch.records:
                on_record(batch.partition, record.offset, record.value)


class KafkaioArrow(Kafkaio):
    """async for table in consumer.arrow_batches(): no Python object per record."""

    name = "kafkaio-arrow"
    requires = (*Kafkaio.requires, "pyarrow")
    can = frozenset({"consume"})

    def load(self):
        super().load()
        from pyarrow import compute

        from kafkaio import arrow  # noqa: F401 - or the first table would load it

        self.compute = compute

    async def consume_all(self, topic, tally):
        pc = self.compute
        await self.join(topic, "earliest")
        async for table in self.consumer.arrow_batches():
            if tally.verify:
                columns = (table[name] for name in ("partition", "offset", "value"))
                rows = zip(*(each.to_pylist() for each in columns), strict=True)
                more = tally.check(list(rows))
            else:
                tally.t_first = tally.t_first or time.perf_counter()
                tally.count += table.num_rows
                tally.nbytes += pc.sum(pc.binary_length(table["value"])).as_py()
                more = tally.count < tally.target
            if not more:
                break


def as_row(record):
    return record.partition, record.offset, record.value


CLIENTS = [
    Kafkaio,
    KafkaioAwait,
    KafkaioMany,
    KafkaioTable,
    KafkaioBatches,
    KafkaioArrow,
]
