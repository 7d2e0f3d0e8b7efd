"""The copy in transactions by confluent-kafka: proves the harness by a known client."""

from __future__ import annotations

import asyncio
import importlib
import threading
import time
from collections.abc import Callable
from typing import Any, Final, Protocol

from tests.torture.copying import Hiccup
from tests.torture.plan import (
    POLL_SECONDS,
    SESSION_SECONDS,
    TRANSACTION_SECONDS,
    Job,
    Settings,
)

_MAX_RECORDS: Final = 200
_MAX_WAIT: Final = 0.2
_CALL_SECONDS: Final = 10.0


class Worker(Protocol):
    """The member, as far as it is needed here."""

    name: str
    stopping: asyncio.Event
    settings: Settings
    job: Job

    def tell(self, word: str, *details: object) -> None: ...
    def value(self, value: bytes) -> bytes: ...
    def draw_pause(self) -> float: ...


class _Fatal(Exception):
    """The producer is over."""


async def copy(worker: Worker, protocol: str) -> None:
    """Copy until the worker stops; it makes a new producer whenever one is over."""
    stopping = threading.Event()
    copying = asyncio.create_task(
        asyncio.to_thread(_copy_until, stopping, worker, protocol)
    )
    waiting = asyncio.create_task(worker.stopping.wait())
    try:
        await asyncio.wait((copying, waiting), return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.set()
        waiting.cancel()
        await copying


def _copy_until(stopping: threading.Event, worker: Worker, protocol: str) -> None:
    while not stopping.is_set():
        try:
            _Life(stopping, worker, protocol).run()
        except Hiccup:
            worker.tell("again", "Hiccup")
        except _Fatal as error:
            worker.tell("fenced", error)
            return
        time.sleep(_MAX_WAIT)


class _Life:
    """One producer and one consumer, until the first abort.

    A new consumer begins at what is committed, which is the simplest way to rewind.
    """

    def __init__(
        self, stopping: threading.Event, worker: Worker, protocol: str
    ) -> None:
        # By name: it has no types, and is not installed where types are checked.
        self._library: Any = importlib.import_module("confluent_kafka")
        self._stopping = stopping
        self._worker = worker
        self._job = worker.job
        settings = worker.settings
        consumer: dict[str, object] = {
            "bootstrap.servers": settings.bootstrap,
            "client.id": worker.name,
            "group.id": settings.group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "max.poll.interval.ms": round(POLL_SECONDS * 1000),
            "log_level": 2,
        }
        if protocol == "consumer":
            consumer["group.protocol"] = "consumer"
        else:
            strategy = "range" if protocol == "eager" else "cooperative-sticky"
            consumer["partition.assignment.strategy"] = strategy
            consumer["session.timeout.ms"] = round(SESSION_SECONDS * 1000)
            consumer["heartbeat.interval.ms"] = 500
        self._consumer = self._library.Consumer(consumer)
        self._producer = self._library.Producer(
            {
                "bootstrap.servers": settings.bootstrap,
                "client.id": worker.name,
                "transactional.id": worker.job.transactional_id,
                "transaction.timeout.ms": round(TRANSACTION_SECONDS * 1000),
                "log_level": 2,
            }
        )

    def run(self) -> None:
        try:
            self._insist(lambda: self._producer.init_transactions(_CALL_SECONDS))
            self._consumer.subscribe(
                [self._worker.settings.topic], on_assign=self._assigned
            )
            self._worker.tell("joined")
            while not self._stopping.is_set():
                found = self._consumer.consume(_MAX_RECORDS, _MAX_WAIT)
                records = [each for each in found if each.error() is None]
                if records and not self._transact(records):
                    return
        finally:
            self._consumer.close()

    def _assigned(self, consumer: object, partitions: list[Any]) -> None:
        del consumer
        self._worker.tell("assigned", *(each.partition for each in partitions))

    def _transact(self, records: list[Any]) -> bool:
        """Copy records in a transaction; return whether it was committed."""
        producer, job = self._producer, self._job
        producer.begin_transaction()
        try:
            for record in records:
                producer.produce(
                    job.output,
                    self._worker.value(record.value()),
                    key=record.key(),
                    partition=int(record.key()) % job.partitions,
                )
            self._commit_offsets(records)
            time.sleep(self._worker.draw_pause())
            self._insist(lambda: producer.commit_transaction(_CALL_SECONDS))
        except Hiccup:
            self._insist(lambda: producer.abort_transaction(_CALL_SECONDS))
            raise
        except self._library.KafkaException as error:
            self._worker.tell("again", error.args[0].name())
            self._insist(lambda: producer.abort_transaction(_CALL_SECONDS))
            return False
        return True

    def _commit_offsets(self, records: list[Any]) -> None:
        make = self._library.TopicPartition
        ends = {(each.topic(), each.partition()): each.offset() + 1 for each in records}
        offsets = [make(*at, offset) for at, offset in ends.items()]
        if self._job.sabotage:
            self._consumer.commit(offsets=offsets, asynchronous=False)
            return
        self._insist(
            lambda: self._producer.send_offsets_to_transaction(
                offsets, self._consumer.consumer_group_metadata(), _CALL_SECONDS
            )
        )

    def _insist(self, call: Callable[[], object]) -> None:
        """Make a call again while that is what its error asks for.

        Raises:
            _Fatal: the producer is over.
            KafkaException: the transaction must be aborted.
        """
        while True:
            try:
                call()
            except self._library.KafkaException as error:
                reason = error.args[0]
                if reason.fatal():
                    raise _Fatal(reason.name()) from error
                if not reason.retriable():
                    raise
            else:
                return
