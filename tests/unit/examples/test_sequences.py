"""What the sequence diagrams of the guide say happens in their order."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection
from pathlib import Path

import kafkaio
from kafkaio import TopicPartition
from kafkaio.testing import Broker
from tests.support.patience import HANGS

GUIDE = Path(__file__).parents[3] / "docs" / "guide"


class Requests(kafkaio.Observer):
    """Notes the requests of some kinds, beside what else is noted."""

    def __init__(self, kinds: Collection[str]) -> None:
        self.kinds = kinds
        self.noted: list[str] = []

    def request_sent(self, api: str, version: int, node_id: int, size: int) -> None:
        if api in self.kinds:
            self.noted.append(api)


def drawn(page: str, words: str) -> list[str]:
    """What matches in the arrows of a page's sequence diagram, in their order."""
    text = (GUIDE / page).read_text()
    (diagram,) = re.findall(r"```mermaid\nsequenceDiagram\n(.*?)```", text, re.DOTALL)
    assert ";" not in diagram  # Mermaid ends a statement there
    labels = re.findall(r"^ +(?:\w+-?->>\w+|Note [^:]*): (.*)$", diagram, re.MULTILINE)
    found = [re.search(words, label) for label in labels]
    return [match[0] for match in found if match is not None]


async def test_the_life_of_a_transaction() -> None:
    kinds = ["InitProducerId", "Produce", "TxnOffsetCommit", "EndTxn"]
    others = ["AddPartitionsToTxn", "AddOffsetsToTxn", "OffsetCommit"]
    requests = Requests([*kinds, *others])
    # The consumer has an observer of its own, which nobody asks.
    async with (
        Broker(topics={"orders": 1, "invoices": 1}) as broker,
        asyncio.timeout(HANGS),
    ):
        servers = broker.bootstrap_servers
        async with kafkaio.Producer(servers) as producer:
            await producer.send("orders", b"1")
        consumer = kafkaio.Consumer(
            servers,
            topics="orders",
            group_id="billing",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )
        transactional = kafkaio.Producer(
            servers, transactional_id="billing-1", observer=requests
        )

        async def work(tx: kafkaio.Transaction, records: list[kafkaio.Record]) -> None:
            assert requests.noted == ["InitProducerId"]  # begin sends nothing
            await tx.enqueue("invoices", records[0].value)
            requests.noted.append("the handler returns")

        async with consumer, transactional, asyncio.TaskGroup() as tasks:
            loop = kafkaio.exactly_once(consumer, transactional, work)
            task = tasks.create_task(loop)
            async with kafkaio.Consumer(
                servers,
                topics="invoices",
                auto_offset_reset="earliest",
                isolation_level="read_committed",
            ) as reader:
                assert (await anext(reader)).value == b"1"
            task.cancel()
    words = drawn("exactly-once.md", rf"^({'|'.join(kinds)}|the handler returns)\b")
    assert sorted(requests.noted) == sorted(words)
    # A record may be on its way before its handler returns, or behind that.
    assert [word for word in words if word in kinds] == [
        word for word in requests.noted if word in kinds
    ]


async def test_closing() -> None:
    requests = Requests(["OffsetCommit", "ConsumerGroupHeartbeat", "LeaveGroup"])
    begun = asyncio.Event()

    async def handle(record: kafkaio.Record) -> None:
        begun.set()
        while True:
            if consumer.statistics().state == "closing":
                break
            await asyncio.sleep(0)
        requests.noted.clear()  # heartbeats before that
        await asyncio.sleep(0)
        requests.noted.append("handlers")

    async def revoked(partitions: Collection[TopicPartition]) -> None:
        requests.noted.append("on_revoked")

    async with Broker(topics={"orders": 1}) as broker, asyncio.timeout(HANGS):
        async with kafkaio.Producer(broker.bootstrap_servers) as producer:
            await producer.send("orders", b"1")
        consumer = kafkaio.Consumer(
            broker.bootstrap_servers,
            topics="orders",
            group_id="billing",
            auto_offset_reset="earliest",
            group_protocol="classic",
            on_revoked=revoked,
            observer=requests,
        )
        await consumer.start()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(consumer.run(handle))
            await begun.wait()
            await consumer.close(timeout=30)
            requests.noted.append("close returns")
    words = drawn(
        "consume.md", r"^(handlers|OffsetCommit|on_revoked|leave|close returns)\b"
    )
    assert requests.noted == [
        "LeaveGroup" if word == "leave" else word for word in words
    ]
