# mypy: disable-error-code="unused-awaitable"
"""Consume, work and produce, each record once, through crashes and rebalances.

    python examples/exactly_once.py                              # a demonstration
    python examples/exactly_once.py --form run
    python examples/exactly_once.py --bootstrap localhost:9092

Members of a group read payments and write a receipt for each. A member fails now and
then, after it has sent some receipts; its transaction is aborted, and the payments are
worked on again. Meanwhile a second member joins, so partitions move. At the end a
reader with ``read_committed`` counts: one receipt for each payment.

There are three forms: ``kafkaio.exactly_once``, ``consumer.run`` with a producer, and a
loop of one's own.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from uuid import uuid4

import kafkaio
from kafkaio.protocol.messages.create_topics import CreatableTopic
from kafkaio.testing import Broker

PARTITIONS = 6


class Outage(Exception):
    """What a handler raises now and then."""


async def receipt_of(record: kafkaio.Record) -> bytes:
    await asyncio.sleep(0)
    if random.random() < 0.002:
        raise Outage
    return b"receipt of " + (record.value or b"")


# ---- the three forms -----------------------------------------------------------------


async def by_loop(
    consumer: kafkaio.Consumer, producer: kafkaio.Producer, out: str
) -> None:
    async def work(tx: kafkaio.Transaction, records: list[kafkaio.Record]) -> None:
        for record in records:
            await tx.enqueue(out, await receipt_of(record), key=record.key)

    retry = kafkaio.Retry(attempts=100, backoff_ms=10, on=(Outage,))
    await kafkaio.exactly_once(consumer, producer, work, max_records=100, retry=retry)


async def by_run(
    consumer: kafkaio.Consumer, producer: kafkaio.Producer, out: str
) -> None:
    async def handle(tx: kafkaio.Transaction, record: kafkaio.Record) -> None:
        receipt = await receipt_of(record)
        await tx.enqueue(out, receipt, key=record.key)  # last, so it may be tried again

    retry = kafkaio.Retry(attempts=10, backoff_ms=10, on=(Outage,))
    await consumer.run(handle, producer=producer, max_records=100, retry=retry)


async def by_hand(
    consumer: kafkaio.Consumer, producer: kafkaio.Producer, out: str
) -> None:
    while True:
        try:
            async with producer.transaction(consumer) as tx:
                poll = await consumer.poll(max_records=100)
                for record in poll.records:
                    await tx.enqueue(out, await receipt_of(record), key=record.key)
        except (Outage, kafkaio.TransactionAborted, kafkaio.PartitionLost) as error:
            print(f"aborted, and done again: {error!r}", flush=True)
        except kafkaio.ClosedError:
            return


Form = Callable[[kafkaio.Consumer, kafkaio.Producer, str], Awaitable[None]]
FORMS: dict[str, Form] = {"loop": by_loop, "run": by_run, "hand": by_hand}


# ---- a group that tries them ---------------------------------------------------------


async def member(
    bootstrap: str, topic: str, name: str, form: Form, stop: asyncio.Event
) -> None:
    consumer = kafkaio.Consumer(
        bootstrap,
        topics=topic,
        group_id=topic,
        client_id=name,
        auto_offset_reset="earliest",
        enable_auto_commit=False,  # the transactions commit
    )
    # The id is that of this member, over all of its lives.
    producer = kafkaio.Producer(bootstrap, transactional_id=f"{topic}-{name}")
    async with producer, consumer:
        if stop.is_set():  # the others were quicker
            return
        out = f"{topic}.out"
        working = asyncio.ensure_future(form(consumer, producer, out))
        print(f"{name} has joined", flush=True)
        await stop.wait()
        await consumer.close()  # finishes the transaction at work
        await working


async def try_out(bootstrap: str, form: Form, count: int) -> bool:
    """Pay and count receipts; return whether there is one for each payment."""
    topic = f"payments-{uuid4().hex[:8]}"
    async with kafkaio.Client(bootstrap) as client:
        await create_topics(client, topic, f"{topic}.out")
    async with kafkaio.Producer(bootstrap) as producer:
        await producer.send_many(
            topic, [kafkaio.NewRecord(b"%d" % n, key=b"%d" % n) for n in range(count)]
        )
    stop = asyncio.Event()
    receipts: Counter[bytes] = Counter()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(member(bootstrap, topic, "member-1", form, stop))
        counting = tasks.create_task(read_receipts(bootstrap, topic, receipts, count))
        await asyncio.sleep(1)
        tasks.create_task(member(bootstrap, topic, "member-2", form, stop))
        await counting
        stop.set()
    # What comes late would be a receipt too many.
    await read_receipts(bootstrap, topic, late := Counter[bytes](), count)
    twice = late.total() - len(late)
    print(f"{len(receipts)} of {count} payments have a receipt, {twice} more than one")
    return len(receipts) == count and not twice


async def read_receipts(
    bootstrap: str, topic: str, receipts: Counter[bytes], count: int
) -> None:
    consumer = kafkaio.Consumer(
        bootstrap,
        topics=f"{topic}.out",
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    async with consumer, asyncio.timeout(120):
        while len(receipts) < count:
            for record in (await consumer.poll(timeout=1)).records:
                receipts[record.value or b""] += 1
        for record in (await consumer.poll(timeout=1)).records:
            receipts[record.value or b""] += 1


async def create_topics(client: kafkaio.Client, *names: str) -> None:
    wanted = [
        CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=1)
        for name in names
    ]
    reply = await client.request(
        kafkaio.messages.CreateTopicsRequest(topics=wanted, timeout_ms=30_000),
        to=kafkaio.Controller,
    )
    for topic in reply.topics:
        if topic.error_code:
            raise SystemExit(f"cannot create {topic.name}: {topic.error_message}")


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--bootstrap", help="a running Kafka")
    parser.add_argument("--form", choices=FORMS, help="only this one")
    parser.add_argument("--payments", type=int, default=2000)
    args = parser.parse_args()
    fine = True
    async with AsyncExitStack() as stack:
        bootstrap = args.bootstrap
        if bootstrap is None:
            broker = await stack.enter_async_context(Broker())
            bootstrap = broker.bootstrap_servers
        for name in [args.form] if args.form else FORMS:
            print(f"form: {name}", flush=True)
            fine &= await try_out(bootstrap, FORMS[name], args.payments)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
