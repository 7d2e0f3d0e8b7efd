"""Busy producers on real event loops: nothing comes to the loop's exception handler.

All other tests here are on virtual time, where timers are exact.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from kafkaio import Consumer, KafkaError, Producer
from kafkaio._net.connection_class import ConnectionClass
from kafkaio.errors import DeliveryTimeout
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing import Broker, delay, disconnect_after_write, error
from tests.support.loops import REAL_LOOPS
from tests.support.served import ServedBroker

LoopFactory = Callable[[], asyncio.AbstractEventLoop]


@pytest.fixture(params=REAL_LOOPS.values(), ids=REAL_LOOPS)
def loop_factory(request: pytest.FixtureRequest) -> LoopFactory:
    made: LoopFactory = request.param
    return made


def run(loop_factory: LoopFactory, work: Callable[[], Any]) -> None:
    told: list[Any] = []

    def tell(_: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
        told.append(context)

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(tell)  # type: ignore[arg-type]
        await work()

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main())
    assert told == []


@pytest.mark.parametrize("compression", ["none", "lz4"])
def test_deadlines_that_are_close(loop_factory: LoopFactory, compression: str) -> None:
    # Looks at the batches fall into the last half millisecond before a batch expires:
    # the timer is set to a time close by, and is then looked at again.
    async def work() -> None:
        async with Broker(nodes=2, topics={"t": 6}) as broker:
            broker.faults.on("Produce", delay(0.004))
            async with Producer(
                broker.bootstrap_servers,
                compression_type=compression,
                linger_ms=0,
                request_timeout_ms=8,
                delivery_timeout_ms=9,
            ) as producer:
                for _ in range(60):
                    sends = [
                        producer.send("t", b"x" * 200, key=b"%d" % n) for n in range(40)
                    ]
                    results = await asyncio.gather(*sends, return_exceptions=True)
                    for each in results:
                        assert not isinstance(each, Exception) or isinstance(
                            each, KafkaError
                        )

    run(loop_factory, work)


def test_transactions_through_faults(loop_factory: LoopFactory) -> None:
    async def work() -> None:
        async with Broker(nodes=3, topics={"t": 1}) as broker:
            faults = broker.faults
            faults.on("Produce", disconnect_after_write(rate=0.1, seed=1))
            faults.on(
                "EndTxn", error(ErrorCode.CONCURRENT_TRANSACTIONS, rate=0.2, seed=2)
            )
            faults.on("AddPartitionsToTxn", delay(0.0004))
            async with Producer(
                broker.bootstrap_servers,
                transactional_id="loops",
                compression_type="lz4",
                retry_backoff_ms=1,
            ) as producer:
                for number in range(30):
                    async with producer.transaction() as transaction:
                        for key in range(6):
                            await transaction.send("t", b"%d" % number, key=b"%d" % key)
            sent = await read(broker)
        assert sent == [b"%d" % n for n in range(30) for _ in range(6)]

    run(loop_factory, work)


async def read(broker: Broker) -> list[bytes | None]:
    """The values of what was committed."""
    values: list[bytes | None] = []
    async with Consumer(
        broker.bootstrap_servers,
        topics="t",
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    ) as consumer:
        async for record in consumer:
            values.append(record.value)
            if len(values) == 180:
                break
    return values


def test_an_answer_counts_that_came_while_the_loop_was_blocked() -> None:
    """On asyncio. uvloop may write at the end of an iteration, after the block."""

    async def work() -> None:
        limits = {"request_timeout_ms": 300, "delivery_timeout_ms": 400, "linger_ms": 0}
        async with Producer(served.servers, **limits) as producer:
            for _ in range(2):  # then a record is sent at once
                await producer.send("t", b"before")
            connection = producer._cluster.ready_connection(0, ConnectionClass.PRODUCE)
            assert connection is not None
            transport: Any = connection._transport
            socket = transport._transport.get_extra_info("socket")

            sent = producer.enqueue_nowait("t", b"at once")
            assert producer.statistics().buffer.batches_on_wire == 1
            end = asyncio.get_running_loop().time() + 0.5
            late = producer.enqueue_nowait("t", b"in the next iteration")
            assert select.select([socket], [], [], 30)[0]  # its answer has come
            while asyncio.get_running_loop().time() < end:
                pass
            assert (await sent).offset == 2
            with pytest.raises(DeliveryTimeout, match="never sent"):
                await late
            await producer.send("t", b"last")

    with ServedBroker() as served:
        served.create("t")
        run(asyncio.new_event_loop, work)
