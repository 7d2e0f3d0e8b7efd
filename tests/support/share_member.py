"""A member of a share group in a process of its own: of confluent-kafka, or of kafkaio.

Run as ``python -m tests.support.share_member CLIENT SERVERS GROUP TOPIC NAME JOURNAL
MOST``. It journals the records that it gets, accepts each, and journals what the leader
answered; see `tests.support.share_peers`. It leaves when its input ends.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import kafkaio

_PATIENCE: Final = 30.0


@dataclass(frozen=True)
class Orders:
    """What a member is to do.

    Attributes:
        servers: bootstrap servers.
        group: the share group.
        topic: its topic; values are numbers.
        name: of the member.
        journal: the file to which it adds lines.
        most: the most records at a time.
    """

    servers: str
    group: str
    topic: str
    name: str
    journal: str
    most: int


class Journal:
    """The journal of one member.

    A line is in the kernel's hands when `tell` returns: the process may be killed then.
    """

    def __init__(self, orders: Orders) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self._file = os.open(orders.journal, flags, 0o600)
        self._name = orders.name

    def tell(self, event: str, what: object = ()) -> None:
        line = {
            "at": round(time.monotonic(), 6),
            "member": self._name,
            "event": event,
            "what": what,
        }
        os.write(self._file, json.dumps(line).encode() + b"\n")


# ---- confluent-kafka -----------------------------------------------------------------


def confluent(orders: Orders, ends: threading.Event) -> None:
    """Accept records by confluent-kafka until told to leave."""
    from confluent_kafka import KafkaException, ShareConsumer

    journal = Journal(orders)
    consumer = ShareConsumer(
        {
            "bootstrap.servers": orders.servers,
            "group.id": orders.group,
            "client.id": orders.name,
            "share.acknowledgement.mode": "explicit",
            "max.poll.records": orders.most,
        }
    )
    consumer.subscribe([orders.topic])
    journal.tell("started")
    while not ends.is_set():
        got = [each for each in consumer.poll(0.2) if each.error() is None]
        if not got:
            continue
        journal.tell(
            "got", [[*place(each), int(each.value()), delivery(each)] for each in got]
        )
        for each in got:
            consumer.acknowledge(each)
        try:
            answers = consumer.commit_sync(_PATIENCE)
        except KafkaException as error:
            journal.tell("refused", [[*place(each), str(error)] for each in got])
            continue
        by_number = {tp.partition: error for tp, error in answers.items()}
        settle(journal, got, by_number)
    consumer.close()
    journal.tell("left")


def place(message: Any) -> tuple[int, int]:
    return message.partition(), message.offset()


def delivery(message: Any) -> int:
    return message.delivery_count() or 0


def settle(journal: Journal, got: Sequence[Any], answers: dict[int, Any]) -> None:
    """Journal the answers to the acceptance of some messages, by partition."""
    accepted, refused = [], []
    for each in got:
        answer = answers.get(each.partition(), "no answer")
        if answer is None:
            accepted.append([*place(each), int(each.value())])
        else:
            refused.append([*place(each), str(answer)])
    journal.tell("accepted", accepted)
    if refused:
        journal.tell("refused", refused)


# ---- kafkaio -------------------------------------------------------------------------


class Watch:
    """Observes a share consumer, and journals the locks that it lost."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def lock_lost(
        self,
        group: str,
        partition: kafkaio.TopicPartition,
        first_offset: int,
        last_offset: int,
        error: kafkaio.LockLost,
    ) -> None:
        del group
        what = [partition.partition, first_offset, last_offset, str(error)]
        self._journal.tell("lost", [what])


async def ours(orders: Orders, ends: threading.Event) -> None:
    """Accept records by kafkaio until told to leave."""
    journal = Journal(orders)
    share = kafkaio.ShareConsumer(
        orders.servers,
        topics=orders.topic,
        group_id=orders.group,
        client_id=orders.name,
        max_in_flight=orders.most,
        observer=Watch(journal),
    )
    async with share:
        journal.tell("started")
        while not ends.is_set():
            got = await share.poll(timeout=0.2)
            if got:
                await accept(share, journal, got)
    journal.tell("left")


async def accept(share: Any, journal: Journal, got: Iterable[Any]) -> None:
    """Accept records that are still this member's, and journal what came of it."""
    journal.tell(
        "got",
        [
            [r.partition, r.offset, int(r.value), r.delivery_count, r.is_lost]
            for r in got
        ],
    )
    sent, refused = [], []
    for record in got:
        try:
            record.ack()
        except kafkaio.UsageError as error:  # the lock is gone by our clock
            refused.append([record.partition, record.offset, str(error)])
        else:
            sent.append(record)
    accepted = []
    for record, outcome in zip(
        sent,
        await asyncio.gather(*(r.acked for r in sent), return_exceptions=True),
        strict=True,
    ):
        if isinstance(outcome, BaseException):
            refused.append([record.partition, record.offset, str(outcome)])
        else:
            accepted.append([record.partition, record.offset, int(record.value)])
    journal.tell("accepted", accepted)
    if refused:
        journal.tell("refused", refused)


# ---- the process ---------------------------------------------------------------------


def end_of_input() -> threading.Event:
    """What is set when the standard input ends."""
    ends = threading.Event()

    def watch() -> None:
        with suppress(OSError):
            while os.read(0, 1_024):
                pass
        ends.set()

    threading.Thread(target=watch, daemon=True).start()
    return ends


def main(client: str, *words: str) -> None:
    """Run a member until its input ends."""
    servers, group, topic, name, path, most = words
    orders = Orders(servers, group, topic, name, path, int(most))
    ends = end_of_input()
    try:
        if client == "confluent":
            confluent(orders, ends)
        else:
            asyncio.run(ours(orders, ends))
    except BaseException as error:
        Journal(orders).tell("failed", f"{type(error).__name__}: {error}")
        raise


if __name__ == "__main__":
    main(*sys.argv[1:])
