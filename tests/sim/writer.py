"""A producer that numbers its records."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

import anyio

from kafkaio._config import ProducerConfig
from kafkaio._net.transport import Dial
from kafkaio._producer import Producer
from kafkaio._producer.delivery import Delivery
from kafkaio._runtime.wakeup import Wakeup
from kafkaio.errors import KafkaError
from tests.sim.scenario import Scenario
from tests.sim.user import TOPIC

__all__ = ["WRITER", "Writer"]

WRITER: Final = "writer"
#: The share of bursts, the most records of one, and the most seconds between two of
#: its records.
_BURSTS: Final = 0.3
_LARGEST_BURST: Final = 12
_BREATH: Final = 0.02


class Checks(Protocol):
    """What the writer tells the checker."""

    def sent(self) -> int:
        """A record is about to be enqueued; return its number."""

    def acked(self, number: int, place: tuple[int, int]) -> None:
        """A record was acknowledged, at a partition and offset."""

    def failed_to_send(self, number: int) -> None:
        """A delivery failed: the record may have been written or not."""

    @property
    def break_law(self) -> Callable[[str, str], None]:
        """Report that a law was broken."""


class Environment(Protocol):
    """What the writer needs of the run it is part of."""

    @property
    def scenario(self) -> Scenario:
        """The scenario."""

    @property
    def checker(self) -> Checks:
        """Told of every record."""

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of the cluster."""

    def dial_of(self, client: str) -> Dial:
        """Return how a client connects to the cluster."""

    def say(self, what: str) -> None:
        """Write a line to the trace."""


class Writer:
    """Writes a record every period on average, and reports the result of each.

    Args:
        environment: the run that it is part of.
    """

    def __init__(self, environment: Environment) -> None:
        scenario = environment.scenario
        options = {"client_id": WRITER, **scenario.producer_options}
        config = ProducerConfig.of(environment.bootstrap_servers, options)
        self._producer = Producer.from_config(config, dial=environment.dial_of(WRITER))
        self._environment = environment
        self._checker = environment.checker
        self._rng = scenario.rng(WRITER)
        self._keys = [f"k{number}" for number in range(scenario.keys)]
        self._sent: deque[tuple[int, Delivery]] = deque()
        self._stopping = anyio.Event()
        self._is_done = False
        self._news = Wakeup()

    def stop(self) -> None:
        """Stop writing."""
        self._stopping.set()

    async def run(self) -> None:
        """Write until stopped; return when every delivery has completed."""
        period = self._environment.scenario.period
        async with self._producer:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._collect)
                due = 0.0
                while not self._stopping.is_set():
                    due += period * await self._write_some()
                    with anyio.CancelScope(deadline=due):
                        await self._stopping.wait()
                self._is_done = True
                self._news.notify()
            await self._producer.flush()
        left = self._producer.statistics().buffer
        if left.used_bytes or left.batches_on_wire or left.waiting_batches:
            self._checker.break_law("left behind", f"{WRITER}: {left}")

    async def _write_some(self) -> int:
        """Write one record, or a burst; return the number."""
        count = 1
        if self._rng.random() < _BURSTS:
            count = self._rng.randint(2, _LARGEST_BURST)
        keys = self._rng.choices(self._keys, k=2)
        for _ in range(count):
            await self._write(self._rng.choice(keys))
            if count > 1:
                await anyio.sleep(_BREATH * self._rng.random())
        return count

    async def _write(self, key: str) -> None:
        number = self._checker.sent()
        value = f"{key}:{number}".encode()
        try:
            delivery = await self._producer.enqueue(TOPIC, value, key=key.encode())
        except KafkaError as error:
            self._failed(number, error)
        else:
            self._sent.append((number, delivery))
            self._news.notify()

    async def _collect(self) -> None:
        while self._sent or not self._is_done:
            if not self._sent:
                await self._news.wait()
                continue
            number, delivery = self._sent.popleft()
            try:
                place = await delivery
            except KafkaError as error:
                self._failed(number, error)
            else:
                self._checker.acked(number, (place.partition, place.offset))

    def _failed(self, number: int, error: KafkaError) -> None:
        self._environment.say(f"{WRITER}: record {number} failed: {error!r}"[:200])
        self._checker.failed_to_send(number)
