"""An embedded broker for transactional producers, and what it shows of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import pytest

from kafkaio._config import ConsumerConfig, ProducerConfig
from kafkaio._consumer import Consumer
from kafkaio._net.transport import Dial, DialOptions, FrameSinkPort, TransportPort
from kafkaio._producer import Producer
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._message import Buffer
from kafkaio.testing import Broker
from kafkaio.testing._broker.batches import batches_of
from kafkaio.testing._broker.versions import NEWEST
from kafkaio.testing._log.segment import decode
from tests.sim.network import Wire
from tests.sim.requests import Requests

#: By both levels of transaction.version: the older protocol (TV1) and the newer (TV2).
BOTH: Final = pytest.mark.parametrize("level", [1, 2])
ID: Final = "billing"
#: The requests that a transaction leads to.
TRANSACTIONAL: Final = (
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.PRODUCE,
    ApiKey.END_TXN,
)

_FEW_PARTITIONS: Final = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
}


_LENGTH_SIZE: Final = 4


class _Shown:
    """A producer's end of a connection that shows each request before it leaves."""

    def __init__(self, end: Any, told: Callable[[bytes], object]) -> None:
        self._end = end
        self._told = told

    def write(self, parts: Sequence[Buffer]) -> None:
        if self._end.is_open:
            self._told(b"".join(parts)[_LENGTH_SIZE:])
        self._end.write(parts)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._end, name)


class _Answers:
    """Receives a producer's frames, and shows them first."""

    def __init__(self, sink: FrameSinkPort, told: Callable[[bytes], object]) -> None:
        self._sink = sink
        self._told = told
        self.connection_lost = sink.connection_lost

    def frame_received(self, frame: Buffer) -> None:
        self._told(bytes(frame))
        self._sink.frame_received(frame)


class World:
    """A cluster, the clients in front of it, and what its logs hold.

    Attributes:
        broken: what producers have sent against the laws of requests.
    """

    def __init__(self, broker: Broker, level: int) -> None:
        self.broker = broker
        self.level = level
        self.made: list[Producer | Consumer] = []
        self.broken: list[str] = []
        clock = asyncio.get_running_loop().time
        self._requests = Requests(
            clock,
            lambda law, details: self.broken.append(f"{law}: {details}"),
            lambda client: None,
            has_members=False,
        )

    def _dial_of(self, client: str) -> Dial:
        async def dial(
            host: str, port: int, sink: FrameSinkPort, options: DialOptions
        ) -> TransportPort:
            wire = Wire(client, port)
            answers = _Answers(sink, partial(self._requests.received, wire))
            end: Any = await self.broker.dial(host, port, answers, options)
            wire.end = end
            shown: Any = _Shown(end, partial(self._requests.wrote, wire))
            transport: TransportPort = shown
            return transport

        return dial

    def producer(self, **options: Any) -> Producer:
        """A producer; the test starts it, the world closes it."""
        options = {"transactional_id": ID, "linger_ms": 0} | options
        config = ProducerConfig.of(self.broker.bootstrap_servers, options)
        dial = self._dial_of(f"producer {len(self.made)}")
        made = Producer.from_config(config, dial=dial)
        self.made.append(made)
        return made

    def consumer(self, *topics: str, **options: Any) -> Consumer:
        options = {
            "group_id": "g",
            "enable_auto_commit": False,
            "auto_offset_reset": "earliest",
            "isolation_level": "read_committed",
            "fetch_max_wait_ms": 20,
        } | options
        config = ConsumerConfig.of(self.broker.bootstrap_servers, options)
        made = Consumer.from_config(config, topics=topics, dial=self.broker.dial)
        self.made.append(made)
        return made

    def asked(self, *apis: ApiKey) -> list[str]:
        """The names of the requests so far: of a transaction, or of these APIs."""
        wanted = apis or TRANSACTIONAL
        return [one.api.name for one in self.broker.requests if one.api in wanted]

    def count(self, api: ApiKey) -> int:
        return len(self.asked(api))

    def versions(self, api: ApiKey) -> list[int]:
        return [one.version for one in self.broker.requests if one.api == api]

    async def settle(self) -> None:
        """Wait until no transaction is open, and all markers are written."""
        await until(lambda: not self.broker.control.open_transactions())

    def log(self, topic: str = "t") -> list[tuple[str, list[bytes | None]]]:
        """The transactions in a topic's log: "commit" or "abort", and the values.

        The last ones are "open" where a transaction has no marker yet.
        """
        found: list[tuple[str, list[bytes | None]]] = []
        for partition in self.broker.topics[topic].partitions:
            open_ones: dict[int, list[bytes | None]] = {}
            data = partition.log.read(0, 2**30)
            for header, raw in batches_of(data):
                producer = header.producer_id
                if header.is_control:
                    (record,) = decode(raw)
                    assert record.key is not None
                    verdict = "commit" if record.key[3] else "abort"
                    found.append((verdict, open_ones.pop(producer, [])))
                else:
                    values = [record.value for record in decode(raw)]
                    open_ones.setdefault(producer, []).extend(values)
            found += [("open", values) for values in open_ones.values()]
        return found

    def committed(self, topic: str = "t") -> list[bytes | None]:
        """The values of committed transactions, by a replay of the log."""
        return [
            value
            for verdict, values in self.log(topic)
            for value in values
            if verdict == "commit"
        ]


@asynccontextmanager
async def world(level: int = 2, **options: Any) -> AsyncIterator[World]:
    """A broker of one node and one partition, unless ``options`` say otherwise.

    Its internal topics have few partitions: some tests make a broker per step.
    """
    if options.get("as_version", NEWEST) >= "4.0":
        options.setdefault("features", {"transaction.version": level})
    settings: dict[str, Any] = {"topics": {"t": 1}, "memory_transport": True, **options}
    settings["config"] = _FEW_PARTITIONS | settings.get("config", {})
    async with Broker(**settings) as broker:
        there = World(broker, level)
        try:
            yield there
        finally:
            for made in there.made:
                await made.close(timeout=0)


async def until(condition: Callable[[], object], limit: float = 100.0) -> None:
    """Wait on virtual time until a condition holds."""
    async with asyncio.timeout(limit):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.001)
