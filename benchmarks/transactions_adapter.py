"""Adapters for ``transactions.py``: one transaction, and a copy, with each client.

The code is what a good user of each client would write: a transaction's records are
sent without waiting for each, the commit waits for all, and a loop that copies holds no
more in a transaction than it was told to.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from adapters.aiokafka_client import AioKafka
from adapters.base import Client
from adapters.confluent_client import Confluent
from adapters.external import Java

MAX_WAIT = 0.2  # seconds until a transaction that is not full is committed
CALL_SECONDS = 60


class Kafkaio(Client):
    """producer.transaction(); enqueue_nowait(); exactly_once()."""

    name = "kafkaio"
    distribution = "kafkaio"
    requires = ("kafkaio", "cramjam", "crc32c", "lz4", "zstandard")
    can = frozenset({"transact", "copy", "produce"})

    def load(self):
        import kafkaio

        self.lib = kafkaio

    def options(self):
        return {}

    def new_producer(self, **more):
        return self.lib.Producer(self.spec.bootstrap, **self.options(), **more)

    async def open_transactions(self):
        transactional_id = self.spec.transactional_id
        self.producer = self.new_producer(transactional_id=transactional_id)
        await self.producer.start()

    async def transact(self, topic, values):
        async with self.producer.transaction() as tx:
            if self.spec.each:
                sent = [
                    tx.enqueue_nowait(topic, value, partition=n)
                    for n, value in enumerate(values)
                ]
                await self.producer.flush()
                for delivery in sent:
                    delivery.result()
                return time.perf_counter()
            for value in values:
                try:
                    tx.enqueue_nowait(topic, value)
                except self.lib.BufferFull:
                    await tx.enqueue(topic, value)
        return None

    async def close_transactions(self):
        await self.producer.close()

    # ---- the runner's own scenario, records without transactions
    async def open_producer(self):
        s = self.spec
        self.producer = self.new_producer(
            linger_ms=s.linger_ms, batch_size=s.batch_bytes
        )
        await self.producer.start()

    async def send_and_wait(self, topic, value):
        await self.producer.send(topic, value)

    async def produce_all(self, topic, values):
        window, older, newer, acked = 8192, [], [], 0
        for value in values:
            try:
                newer.append(self.producer.enqueue_nowait(topic, value))
            except self.lib.BufferFull:
                newer.append(await self.producer.enqueue(topic, value))
            if len(newer) == window:
                acked += await self.settle(older)
                older, newer = newer, []
        return acked + await self.settle(older) + await self.settle(newer)

    async def settle(self, deliveries):
        for delivery in deliveries:
            if not delivery.is_done:
                await delivery
            elif (error := delivery.exception()) is not None:
                raise error
        return len(deliveries)

    async def close_producer(self):
        await self.producer.close()

    # ---- copies
    async def copy(self, started):
        s, lib = self.spec, self.lib
        self.consumer = lib.Consumer(
            s.bootstrap,
            topics=s.topic,
            group_id=s.group,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            enable_auto_commit=False,
        )
        more = {"transactional_id": s.transactional_id} if s.per else {}
        self.producer = self.new_producer(**more)
        await self.producer.start()
        await self.consumer.start()
        return await (self.copy_once(started) if s.per else self.copy_plain(started))

    async def copy_once(self, started):
        s, output = self.spec, self.spec.output
        copied = transactions = 0
        is_copied = asyncio.Event()

        async def handler(tx, records):
            nonlocal copied, transactions
            if not copied:
                started()
            transactions += 1
            for record in records:
                try:
                    tx.enqueue_nowait(output, record.value)
                except self.lib.BufferFull:
                    await tx.enqueue(output, record.value)
            copied += len(records)
            if copied >= s.expect:
                is_copied.set()

        async def close_when_copied():
            await is_copied.wait()
            await self.consumer.close()

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(close_when_copied())
            await self.lib.exactly_once(
                self.consumer,
                self.producer,
                handler,
                max_records=s.per,
                max_wait=MAX_WAIT,
            )
        return copied, transactions

    async def copy_plain(self, started):
        s, output = self.spec, self.spec.output
        copied, before = 0, []
        async for batch in self.consumer.batches(max_records=10_000):
            if not copied:
                started()
            sent = []
            for value in batch.values():
                try:
                    sent.append(self.producer.enqueue_nowait(output, value))
                except self.lib.BufferFull:
                    sent.append(await self.producer.enqueue(output, value))
            await self.settle(before)
            before, copied = sent, copied + len(sent)
            if copied >= s.expect:
                break
        await self.settle(before)
        await self.consumer.commit()
        return copied, 0

    async def close_copy(self):
        await self.consumer.close()
        await self.producer.close()


class KafkaioOptions(Kafkaio):
    """The same, with the options of --option."""

    name = "kafkaio-options"

    def options(self):
        return dict(self.spec.options)


class ConfluentTransactions(Confluent):
    """begin_transaction(), produce(), commit_transaction()."""

    can = frozenset({"transact", "copy", "produce"})

    async def open_transactions(self):
        conf = {
            "bootstrap.servers": self.spec.bootstrap,
            "transactional.id": self.spec.transactional_id,
        }
        self.producer = self.lib.Producer(conf)
        self.producer.init_transactions(CALL_SECONDS)
        self.failed = None
        self.n_acked = 0

    def put(self, topic, value, **more):
        while True:
            try:
                self.producer.produce(
                    topic, value, on_delivery=self.on_delivery, **more
                )
            except BufferError:
                self.producer.poll(0.05)
            else:
                return

    async def transact(self, topic, values):
        producer, put, acked = self.producer, self.put, None
        producer.begin_transaction()
        if self.spec.each:
            for n, value in enumerate(values):
                put(topic, value, partition=n)
            producer.flush()
            acked = time.perf_counter()
        else:
            for value in values:
                put(topic, value)
        producer.commit_transaction(CALL_SECONDS)
        if self.failed:
            raise self.failed
        return acked

    async def close_transactions(self):
        self.producer.flush()

    async def copy(self, started):
        s = self.spec
        self.consumer = self.lib.Consumer(
            {
                "bootstrap.servers": s.bootstrap,
                "group.id": s.group,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
            }
        )
        self.consumer.subscribe([s.topic])
        if s.per:
            await self.open_transactions()
        else:
            self.producer = self.lib.Producer({"bootstrap.servers": s.bootstrap})
            self.failed, self.n_acked = None, 0
        copied = transactions = 0
        while copied < s.expect:
            # consume() waits until it has that many, or the time is over.
            messages = [
                message
                for message in self.consumer.consume(s.per or 10_000, MAX_WAIT)
                if message.error() is None
            ]
            if not messages:
                continue
            if not copied:
                started()
            self.copy_messages(messages)
            copied += len(messages)
            transactions += bool(s.per)
        return copied, transactions

    def copy_messages(self, messages):
        s, producer = self.spec, self.producer
        if s.per:
            producer.begin_transaction()
        ends = {}
        for message in messages:
            self.put(s.output, message.value())
            ends[message.topic(), message.partition()] = message.offset() + 1
        offsets = [self.lib.TopicPartition(*at, end) for at, end in ends.items()]
        if s.per:
            member = self.consumer.consumer_group_metadata()
            producer.send_offsets_to_transaction(offsets, member, CALL_SECONDS)
            producer.commit_transaction(CALL_SECONDS)
        else:
            producer.flush()
            self.consumer.commit(offsets=offsets, asynchronous=True)
        if self.failed:
            raise self.failed

    async def close_copy(self):
        self.consumer.close()


class AioKafkaTransactions(AioKafka):
    """async with producer.transaction(); producer.send(). It does not linger."""

    can = frozenset({"transact", "copy", "produce"})

    async def open_transactions(self):
        self.producer = self.lib.AIOKafkaProducer(
            bootstrap_servers=self.spec.bootstrap,
            transactional_id=self.spec.transactional_id,
        )
        await self.producer.start()

    async def transact(self, topic, values):
        send, sent, acked = self.producer.send, [], None
        async with self.producer.transaction():
            if self.spec.each:
                for n, value in enumerate(values):
                    sent.append(await send(topic, value, partition=n))
                for delivery in sent:
                    await delivery
                acked = time.perf_counter()
            else:
                sent = [await send(topic, value) for value in values]
        for delivery in sent:
            await delivery
        return acked

    async def close_transactions(self):
        await self.producer.stop()

    async def copy(self, started):
        s, lib = self.spec, self.lib
        self.consumer = lib.AIOKafkaConsumer(
            s.topic,
            bootstrap_servers=s.bootstrap,
            group_id=s.group,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            enable_auto_commit=False,
        )
        if s.per:
            await self.open_transactions()
        else:
            self.producer = lib.AIOKafkaProducer(bootstrap_servers=s.bootstrap)
            await self.producer.start()
        await self.consumer.start()
        copied = transactions = 0
        while copied < s.expect:
            found = await self.consumer.getmany(
                timeout_ms=round(MAX_WAIT * 1000), max_records=s.per or 10_000
            )
            count = sum(map(len, found.values()))
            if not count:
                continue
            if not copied:
                started()
            if s.per:
                async with self.producer.transaction():
                    await self.send_all(found)
                    ends = {tp: got[-1].offset + 1 for tp, got in found.items()}
                    await self.producer.send_offsets_to_transaction(ends, s.group)
                transactions += 1
            else:
                for delivery in await self.send_all(found):
                    await delivery
                await self.consumer.commit()
            copied += count
        return copied, transactions

    async def send_all(self, found):
        send, output = self.producer.send, self.spec.output
        return [
            await send(output, record.value) for got in found.values() for record in got
        ]

    async def close_copy(self):
        await self.consumer.stop()
        await self.producer.stop()


class JavaTransactions(Java):
    """java/TransactionBench.java, compiled with the runner's Bench.java."""

    can = frozenset({"transact", "copy", "produce"})

    def load(self):
        from kafkaio.testing.kafka._jars import fetch_jars, pinned
        from kafkaio.testing.kafka._java import find_java
        from kafkaio.testing.kafka._releases import find_release

        release = find_release()
        java = find_java(release.minimum_java).path.resolve()
        version = release.version
        wanted = pinned(version, "broker") + pinned(version, "tools")
        jars = os.pathsep.join(map(str, fetch_jars(wanted)))
        here = Path(__file__).resolve().with_name("java") / "TransactionBench.java"
        runner = Path(os.environ["KAFKAIO_BENCH_RUNNER"], "java").resolve()
        sources = [runner / "Bench.java", here]
        newest = max(source.stat().st_mtime_ns for source in sources)
        out = Path(tempfile.gettempdir()) / f"kafkaio-transaction-bench-{newest}"
        if not (out / "TransactionBench.class").exists():
            beside = java.with_name("javac")
            compiler = beside if beside.exists() else shutil.which("javac")
            command = [compiler, "-nowarn", "-cp", jars, "-d", out, *sources]
            subprocess.run(command, check=True)  # noqa: S603
        log = f"-Dlog4j2.configurationFile={runner}/log4j2.xml"
        path = os.pathsep.join((str(out), jars))
        self.words = [java, "-Xms512m", "-Xmx512m", log, "-cp", path]

    def command(self):
        spec = vars(self.spec)
        main = "Bench" if self.spec.kind == "produce" else "TransactionBench"
        return [*map(str, self.words), main, json.dumps(spec)]


CLIENTS = [
    Kafkaio,
    KafkaioOptions,
    ConfluentTransactions,
    AioKafkaTransactions,
    JavaTransactions,
]
