"""Producers that a worker keeps, and what a task costs with one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, TypeVar

import pytest

from kafkaio._client import Client
from kafkaio._client.client import cluster_of
from kafkaio._config import ClientConfig, ProducerConfig
from kafkaio._machines.coordinators import CoordinatorKind
from kafkaio._producer import Producer
from kafkaio.errors import Fenced, KafkaError
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.spark._kept import KeptProducers, sharing
from kafkaio.testing import Broker
from kafkaio.testing._broker.faults import drop, error
from tests.support.far import Far
from tests.unit.producer.transactional import until
from tests.virtual_loop import VirtualClockLoop

T = TypeVar("T")
LEVELS = pytest.mark.parametrize("level", [1, 2])
IDS = [f"kafkaio-app-{number}" for number in range(64)]


class World:
    """A broker that is 20 ms away, and a worker's client."""

    def __init__(self, broker: Broker, stack: AsyncExitStack) -> None:
        self.broker = broker
        self.far = Far(broker.dial)
        self.kept = KeptProducers(4)
        self._stack = stack
        self._began = 0.0

    async def client(self, **options: Any) -> Client:
        config = ClientConfig.of(self.broker.bootstrap_servers, options)
        client = Client.from_config(config, dial=self.far)
        return await self._stack.enter_async_context(client)

    def config(self, number: int = 0, **options: Any) -> ProducerConfig:
        options = {"transactional_id": IDS[number], "linger_ms": 0} | options
        return ProducerConfig.of(self.broker.bootstrap_servers, options)

    async def take(
        self,
        client: Client,
        config: ProducerConfig | None = None,
        *,
        kept: KeptProducers | None = None,
        **reusing: Any,
    ) -> Producer:
        """Return a producer that was kept, or a new one."""
        config = config or self.config()
        found = await (kept or self.kept).reuse(client, config, **reusing)
        if found is not None:
            return found
        made = sharing(client, config)
        await made.start()
        return made

    async def task(self, client: Client, number: int = 0, **reusing: Any) -> Producer:
        """Write some records in a transaction."""
        taken = await self.take(client, self.config(number), **reusing)
        await write(taken)
        await self.kept.give_back(client, taken)
        return taken

    def begin(self) -> None:
        """Begin to count."""
        self.far.asked.clear()
        self._began = asyncio.get_running_loop().time()

    @property
    def trips(self) -> int:
        """Round trips since then, one after the other."""
        return round(self.far.trips_since(self._began))

    @property
    def asked(self) -> list[str]:
        """What tasks wait for; metadata are refreshed behind."""
        names = [one.api.name for one in self.far.asked]
        return [name for name in names if name != "METADATA"]


def expect(client: Client) -> None:
    """Have the coordinators of all ids found with the first of them."""
    cluster_of(client).expect_coordinators(CoordinatorKind.TRANSACTION, IDS)


async def write(producer: Producer) -> None:
    async with producer.transaction() as tx:
        for number in range(8):
            _ = await tx.enqueue("out", b"row", partition=number % 4)


def in_world(
    body: Callable[[World], Awaitable[T]], *, level: int = 2, **options: Any
) -> T:
    async def main() -> T:
        broker = Broker(
            memory_transport=True,
            topics={"out": 4},
            features={"transaction.version": level},
            **options,
        )
        async with asyncio.timeout(3600), AsyncExitStack() as stack, broker:
            there = World(broker, stack)
            try:
                return await body(there)
            finally:
                await there.kept.close()

    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        return runner.run(main())


# ---- costs ---------------------------------------------------------------------------


@pytest.mark.parametrize(("level", "most"), [(2, 3), (1, 4)])
def test_a_task_with_a_kept_producer(level: int, most: int) -> None:
    async def body(there: World) -> None:
        client = await there.client()
        first = await there.task(client)
        for _ in range(3):
            await asyncio.sleep(1)
            there.begin()
            assert await there.task(client) is first
            assert there.trips == most
            adds = ["ADD_PARTITIONS_TO_TXN"] * (level == 1)
            assert there.asked == ["END_TXN", *adds, "PRODUCE", "END_TXN"]

    in_world(body, level=level)


@pytest.mark.parametrize(("level", "most"), [(2, 2), (1, 3)])
def test_a_task_that_does_not_ask(level: int, most: int) -> None:
    async def body(there: World) -> None:
        client = await there.client()
        first = await there.task(client)
        await asyncio.sleep(1)
        there.begin()
        assert await there.task(client, is_checked=False) is first
        assert there.trips == most

    in_world(body, level=level)


def test_back_to_back_nothing_is_asked_twice() -> None:
    """The question tells that the markers are written: no probe follows."""

    async def body(there: World) -> None:
        client = await there.client()
        await there.task(client)
        there.begin()
        await there.task(client)
        assert there.asked == ["END_TXN", "PRODUCE", "END_TXN"]

    in_world(body)


def test_a_task_with_an_id_of_its_own_over_warm_connections() -> None:
    """InitProducerId, rows, EndTxn: its coordinator was found with another one's."""

    async def body(there: World) -> None:
        client = await there.client()
        expect(client)
        await there.task(client)
        for number in range(1, 64):
            there.begin()
            await there.task(client, number)
            assert there.asked == ["INIT_PRODUCER_ID", "PRODUCE", "END_TXN"]
            assert there.trips == 3

    in_world(body)


def test_ids_that_may_not_be_described_are_found_when_they_are_used() -> None:
    async def body(there: World) -> None:
        client = await there.client()
        refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        rule = there.broker.faults.on("FindCoordinator", error(refused, times=1))
        expect(client)
        with pytest.raises(KafkaError):
            await there.task(client)
        assert rule.count == 1
        await there.task(client, 1)
        assert there.asked.count("FIND_COORDINATOR") == 2

    in_world(body)


def test_an_older_broker_finds_one_at_a_time() -> None:
    async def body() -> None:
        options: dict[str, Any] = {"memory_transport": True, "topics": {"out": 4}}
        async with AsyncExitStack() as stack, Broker(as_version="2.8", **options) as b:
            there = World(b, stack)
            client = await there.client()
            for number in range(3):
                expect(client)
                await there.task(client, number)
            assert there.asked.count("FIND_COORDINATOR") == 3
            await there.kept.close()

    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        runner.run(body())


# ---- which one is taken --------------------------------------------------------------


@LEVELS
def test_one_that_was_replaced_is_replaced(level: int) -> None:
    async def body(there: World) -> None:
        here, elsewhere = await there.client(), await there.client()
        first = await there.task(here)
        other = KeptProducers()
        taken = await there.take(elsewhere, kept=other)
        await write(taken)
        again = await there.take(here)
        assert again is not first
        assert first.statistics().state == "closed"
        with pytest.raises(Fenced):
            await write(taken)
        await write(again)
        await again.close()
        await other.give_back(elsewhere, taken)
        assert other.count == 0  # it was fenced

    in_world(body, level=level)


@LEVELS
def test_one_that_was_replaced_and_is_not_asked_fails_once(level: int) -> None:
    async def body(there: World) -> None:
        here, elsewhere = await there.client(), await there.client()
        await there.task(here)
        other = await there.take(elsewhere, kept=KeptProducers())
        first = await there.take(here, is_checked=False)
        with pytest.raises(KafkaError):
            await write(first)
        await first.close()
        await write(other)
        again = await there.take(here, is_checked=False)
        await write(again)
        for one in (again, other):
            await one.close()

    in_world(body, level=level)


def test_other_options_or_another_client_make_another_one() -> None:
    async def body(there: World) -> None:
        client = await there.client()
        first = await there.task(client)
        other = await there.take(client, there.config(linger_ms=5))
        assert other is not first
        await there.kept.give_back(client, other)
        elsewhere = await there.client()
        third = await there.take(elsewhere, there.config(linger_ms=5))
        assert third is not other
        assert {first.statistics().state, other.statistics().state} == {"closed"}
        await third.close()

    in_world(body)


def test_one_whose_client_has_ended_is_replaced() -> None:
    async def body(there: World) -> None:
        client = await there.client()
        first = await there.task(client)
        await client.close()
        assert await there.task(await there.client()) is not first

    in_world(body)


def test_few_are_kept() -> None:
    async def body(there: World) -> None:
        client = await there.client()
        made = [await there.task(client, number) for number in range(6)]
        assert there.kept.count == 4
        states = [one.statistics().state for one in made]
        assert states == ["closed"] * 2 + ["running"] * 4
        there.begin()
        await there.kept.close()
        assert (there.trips, there.asked) == (0, [])

    in_world(body)


@LEVELS
def test_one_with_a_transaction_is_not_kept(level: int) -> None:
    async def body(there: World) -> None:
        client = await there.client()
        taken = await there.take(client, there.config())
        tx = taken.transaction()
        await tx.begin()
        await tx.send("out", b"row")
        await there.kept.give_back(client, taken)
        assert there.kept.count == 0
        assert taken.statistics().state == "closed"

    in_world(body, level=level)


def test_one_that_nobody_waits_for_any_more_is_closed() -> None:
    async def body(there: World) -> None:
        client = await there.client()
        first = await there.task(client)
        rule = there.broker.faults.on("EndTxn", drop())
        call = asyncio.ensure_future(there.take(client, there.config()))
        await until(lambda: rule.count)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert first.statistics().state == "closed"
        assert there.kept.count == 0

    in_world(body)


def test_the_answer_has_a_limit_of_time() -> None:
    async def body(there: World) -> None:
        client = await there.client(request_timeout_ms=2000)
        await there.task(client)
        there.broker.faults.on("EndTxn", drop())
        began = asyncio.get_running_loop().time()
        assert await there.kept.reuse(client, there.config(), within=5) is None
        assert 5 <= asyncio.get_running_loop().time() - began < 6

    in_world(body)


def test_only_one_that_has_written_the_version_before() -> None:
    async def body(there: World) -> None:
        client = await there.client()
        first = await there.take(client)
        for version in range(3):
            await there.kept.give_back(client, first, version)
            assert await there.kept.reuse(client, there.config(), after=version)
        await there.kept.give_back(client, first, 3)
        there.begin()
        assert await there.kept.reuse(client, there.config(), after=4) is None
        assert first.statistics().state == "closed"
        assert (there.trips, there.asked) == (0, [])

    in_world(body)


def test_it_was_idle_for_longer_than_brokers_remember() -> None:
    async def body(there: World) -> None:
        client = await there.client()
        first = await there.task(client)
        forgotten = error(ErrorCode.INVALID_PRODUCER_ID_MAPPING, times=1)
        there.broker.faults.on("EndTxn", forgotten)
        assert await there.task(client) is not first

    in_world(body)


def test_its_connections_were_closed_meanwhile() -> None:
    async def body(there: World) -> None:
        client = await there.client(connections_max_idle_ms=10_000)
        first = await there.task(client)
        await asyncio.sleep(60)
        assert await there.task(client) is first
        assert ApiKey.INIT_PRODUCER_ID.name not in there.asked[-4:]

    in_world(body)
