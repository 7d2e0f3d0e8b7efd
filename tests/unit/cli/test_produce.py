"""``kafkaio produce``: nothing that was read is lost when a send is cancelled."""

from __future__ import annotations

import anyio
import pytest

from kafkaio import Producer
from kafkaio._cli.records.input import FormatReader, InputError
from kafkaio._cli.records.produce import _InputSender
from kafkaio._cli.records.sending import RecordSender
from kafkaio.testing import Broker


def taking(sending: RecordSender) -> _InputSender:
    return _InputSender(
        sending,
        "orders",
        {
            "partition": None,
            "key": None,
            "headers": (),
            "reader": None,
            "file": None,
            "compression": None,
            "tombstone": False,
        },
    )


async def test_records_left_by_a_cancellation_are_sent_by_the_next_call() -> None:
    async with Broker(topics={"orders": 1}) as broker:
        # The buffer holds one record, so that the second waits for room.
        async with Producer(
            broker.bootstrap_servers, buffer_memory=1000, batch_size=600
        ) as producer:
            sending = RecordSender(producer)
            taker = taking(sending)
            lines = b"".join(b"%d" % n * 500 + b"\n" for n in range(5))
            with anyio.CancelScope() as scope:
                scope.cancel()
                await taker.take(FormatReader(r"%v\n").feed(lines))
            assert sending.number < 5
            await taker.take(())
            await sending.flush()

        assert sending.number == 5
        assert sending.sent.records == 5


async def test_records_before_wrong_input_are_sent() -> None:
    async with (
        Broker(topics={"orders": 1}) as broker,
        Producer(broker.bootstrap_servers) as producer,
    ):
        sending = RecordSender(producer)
        taker = taking(sending)
        with pytest.raises(InputError):
            await taker.take(FormatReader(r"%p %v\n").feed(b"0 a\n0 b\nx\n"))
        await taker.take(())
        await sending.flush()

    assert sending.sent.records == 2


async def test_a_record_that_is_too_large_fails_alone() -> None:
    async with (
        Broker(topics={"orders": 1}) as broker,
        Producer(broker.bootstrap_servers, max_request_size=1000) as producer,
    ):
        sending = RecordSender(producer)
        for size in (10, 5000, 10):
            await sending.send("orders", b"x" * size, None, [], None, None)
        await sending.flush()

    assert (sending.sent.records, sending.sent.failed) == (2, 1)
    assert sending.sent.errors[0][0] == 2
