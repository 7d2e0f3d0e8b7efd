"""`Delivery.add_done_callback` and what `asyncio.wait` needs, as of a future."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import kafkaio
from kafkaio._records._callbacks import add_done_callback
from kafkaio._records._impl import Delivery as CompiledDelivery, Receipt
from kafkaio._records._receipts import Delivery as PureDelivery, Receipt as PureReceipt
from kafkaio.errors import ClosedError, UsageError
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing import Broker, error
from kafkaio.types import RecordMetadata

Make = Callable[..., tuple[Any, Any]]


class Loop:
    """Calls functions at once, and keeps what was called."""

    def __init__(self) -> None:
        self.called: list[object] = []

    def check(self) -> None:
        """Be the loop that runs."""

    def call_soon(self, function: Any, delivery: object, context: Any) -> None:
        self.called.append(delivery)
        context.run(function, delivery)


def made(codec: str, loop: Loop, index: int = 0) -> tuple[Any, Any]:
    """Return a receipt and a delivery of one of its records."""

    def wait(delivery: object) -> Any:
        raise AssertionError(delivery)

    wait.loop = loop  # type: ignore[attr-defined]
    receipt_of, delivery_of = {
        "pure": (PureReceipt, PureDelivery),
        "used": (Receipt, CompiledDelivery),
    }[codec]
    receipt: Any = receipt_of("t", 0, count=2, wait=wait)
    return receipt, delivery_of(receipt, index, 5)


@pytest.fixture(params=["pure", "used"])
def codec(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_it_is_called_with_the_delivery_when_the_receipt_is_settled(codec: str) -> None:
    loop = Loop()
    receipt, delivery = made(codec, loop, 1)
    seen: list[RecordMetadata] = []
    delivery.add_done_callback(lambda it: seen.append(it.result()))
    delivery.add_done_callback(lambda it: seen.append(it.result()))
    assert not seen
    assert not delivery.done()
    receipt.acknowledge(7, -1)
    assert seen == [RecordMetadata("t", 0, 8, 5)] * 2
    assert delivery.done()
    assert not delivery.cancelled()


def test_each_call_of_add_is_one_call_and_remove_takes_all(codec: str) -> None:
    loop = Loop()
    receipt, delivery = made(codec, loop)
    other = type(delivery)(receipt, 1, 5)
    calls: list[object] = []
    for _ in range(3):
        delivery.add_done_callback(calls.append)
    other.add_done_callback(calls.append)
    assert delivery.remove_done_callback(calls.append) == 3
    assert delivery.remove_done_callback(calls.append) == 0
    delivery.add_done_callback(calls.append)
    receipt.acknowledge(7, -1)
    assert calls == [delivery, other]
    assert delivery.remove_done_callback(calls.append) == 0


def test_it_follows_a_record_whose_batch_was_divided(codec: str) -> None:
    loop = Loop()
    receipt, delivery = made(codec, loop)
    later, _ = made(codec, loop)
    calls: list[object] = []
    delivery.add_done_callback(calls.append)
    receipt.move([(later, 1), (later, 0)])
    assert not calls
    delivery.add_done_callback(calls.append)
    later.fail(ValueError("x"))
    assert calls == [delivery, delivery]
    assert isinstance(delivery.exception(), ValueError)


def test_context_is_the_one_at_the_call_or_the_one_given(codec: str) -> None:
    loop = Loop()
    receipt, delivery = made(codec, loop)
    name = contextvars.ContextVar("name", default="none")
    given = contextvars.copy_context()
    given.run(name.set, "given")
    seen: list[str] = []
    name.set("there")
    delivery.add_done_callback(lambda _: seen.append(name.get()))
    delivery.add_done_callback(lambda _: seen.append(name.get()), context=given)
    name.set("later")
    receipt.acknowledge(0, -1)
    assert seen == ["there", "given"]


def test_many_of_one_batch_are_removed_without_a_search(codec: str) -> None:
    """Which asyncio.wait does for each that is not done."""
    loop = Loop()
    receipt, _ = made(codec, loop)
    deliveries = [made(codec, loop)[1].__class__(receipt, n, 0) for n in range(20_000)]
    for delivery in deliveries:
        delivery.add_done_callback(loop.called.append)
    assert sum(it.remove_done_callback(loop.called.append) for it in deliveries) == (
        20_000
    )
    receipt.acknowledge(0, -1)
    assert not loop.called


def test_a_delivery_without_a_loop_says_so() -> None:
    with pytest.raises(UsageError, match="no event loop"):
        PureDelivery(PureReceipt("t", 0), 0, 0).add_done_callback(print)
    with pytest.raises(UsageError, match="no event loop"):
        CompiledDelivery(Receipt("t", 0), 0, 0).add_done_callback(print)
    delivery = PureDelivery(PureReceipt("t", 0), 0, 0)
    assert delivery.remove_done_callback(print) == 0
    with pytest.raises(UsageError):
        add_done_callback(delivery, None, print, None)


async def test_a_producer_calls_it_soon_and_never_at_once() -> None:
    async with (
        Broker(topics={"t": 1}) as broker,
        kafkaio.Producer(broker.bootstrap_servers) as producer,
    ):
        delivery = await producer.enqueue("t", b"v")
        called = asyncio.Event()
        delivery.add_done_callback(lambda _: called.set())
        await called.wait()
        assert delivery.result().offset == 0
        again = asyncio.Event()
        delivery.add_done_callback(lambda _: again.set())
        assert not again.is_set()
        await again.wait()


async def test_asyncio_wait_takes_deliveries() -> None:
    async with (
        Broker(topics={"t": 1}) as broker,
        kafkaio.Producer(broker.bootstrap_servers) as producer,
    ):
        wanted: set[Any] = {await producer.enqueue("t", b"v") for _ in range(20)}
        done, pending = await asyncio.wait(wanted)
        assert (done, pending) == (wanted, set())
        assert sorted(it.result().offset for it in done) == list(range(20))
        waiting: set[Any] = {await producer.enqueue("t", b"v")}
        first, _ = await asyncio.wait(
            waiting, return_when=asyncio.FIRST_EXCEPTION, timeout=30
        )
        assert first == waiting


async def test_what_a_callback_raises_goes_to_the_exception_handler() -> None:
    reported: list[dict[str, Any]] = []
    raised = asyncio.Event()
    loop = asyncio.get_running_loop()

    def handle(_: object, context: dict[str, Any]) -> None:
        reported.append(context)
        raised.set()

    def callback(_: object) -> None:
        raise ValueError("mine")

    async with (
        Broker(topics={"t": 1}) as broker,
        kafkaio.Producer(broker.bootstrap_servers) as producer,
    ):
        loop.set_exception_handler(handle)
        try:
            delivery = await producer.enqueue("t", b"v")
            delivery.add_done_callback(callback)
            await raised.wait()
        finally:
            loop.set_exception_handler(None)
        await producer.send("t", b"next")
    assert isinstance(reported[0]["exception"], ValueError)


class Lost:
    """Counts records that were lost."""

    def __init__(self) -> None:
        self.count = 0

    def delivery_lost(self, partition: Any, error: BaseException, count: int) -> None:
        self.count += count


@pytest.mark.parametrize("asks", [True, False])
async def test_a_failure_is_lost_unless_the_callback_asks(asks: bool) -> None:
    lost = Lost()
    called = asyncio.Event()

    def callback(delivery: kafkaio.Delivery) -> None:
        called.set()
        if asks:
            assert isinstance(delivery.exception(), kafkaio.BrokerError)

    async with (
        Broker(topics={"t": 1}) as broker,
        kafkaio.Producer(
            broker.bootstrap_servers, observer=lost, log=False
        ) as producer,
    ):
        broker.faults.on("Produce", error(ErrorCode.INVALID_RECORD))
        delivery = await producer.enqueue("t", b"v")
        delivery.add_done_callback(callback)
        del delivery
        await called.wait()
    assert lost.count == (0 if asks else 1)


async def test_another_loop_and_another_thread_are_refused() -> None:
    async with (
        Broker(topics={"t": 1}) as broker,
        kafkaio.Producer(broker.bootstrap_servers) as producer,
    ):
        delivery = await producer.enqueue("t", b"v")
        refused: list[BaseException] = []

        def add() -> None:
            try:
                delivery.add_done_callback(print)
            except ClosedError as error:
                refused.append(error)

        thread = threading.Thread(target=add)
        thread.start()
        thread.join()
        assert len(refused) == 1
        await delivery


async def test_a_table_calls_once_all_rows_are_done() -> None:
    async with (
        Broker(topics={"t": 4}) as broker,
        kafkaio.Producer(broker.bootstrap_servers) as producer,
    ):
        table = pa.table({"value": [b"%d" % n for n in range(200)]})
        delivery = await producer.enqueue_table("t", table)
        calls: list[kafkaio.TableDelivery] = []
        called = asyncio.Event()
        delivery.add_done_callback(calls.append)
        delivery.add_done_callback(print)
        assert delivery.remove_done_callback(print) == 1
        delivery.add_done_callback(lambda _: called.set())
        await called.wait()
        assert calls == [delivery]
        assert delivery.done()
        assert not delivery.cancelled()
        assert delivery.written == 200
        wanted: set[Any] = {delivery}
        done, _ = await asyncio.wait(wanted)
        assert done == wanted

        empty = await producer.enqueue_table("t", table.slice(0, 0))
        called.clear()
        empty.add_done_callback(lambda _: called.set())
        await called.wait()
        assert empty.remove_done_callback(print) == 0


@pytest.mark.parametrize("is_done", [False, True])
async def test_what_a_loop_in_debug_mode_refuses_harms_no_other_record(
    is_done: bool,
) -> None:
    async def coroutine(delivery: object) -> None:
        raise AssertionError(delivery)

    loop = asyncio.get_running_loop()
    reports: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, report: reports.append(report))
    was_debug = loop.get_debug()
    calls: list[object] = []
    async with Broker() as broker, kafkaio.Producer(broker.bootstrap_servers) as it:
        loop.set_debug(True)
        try:
            delivery = await it.enqueue("orders", b"1")
            if is_done:
                await delivery
            delivery.add_done_callback(coroutine)
            delivery.add_done_callback(calls.append)
            async with asyncio.timeout(10):
                await delivery
                await it.send("orders", b"2")
        finally:
            loop.set_debug(was_debug)
    assert calls == [delivery]
    assert [type(report["exception"]) for report in reports] == [TypeError]
    assert reports[0]["callback"] is coroutine
