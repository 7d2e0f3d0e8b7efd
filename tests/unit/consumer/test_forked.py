"""In a process that was forked, each public call of a consumer is refused."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
from collections.abc import Callable
from typing import Any

import pytest

import kafkaio
from kafkaio import TopicPartition
from kafkaio.testing import Broker
from tests.unit.consumer.test_io_thread import real

TP = TopicPartition("t", 0)
#: Calls that wait for nothing; those that are awaited look at the loop, too.
CALLS: dict[str, Callable[[kafkaio.Consumer], object]] = {
    "pause": lambda it: it.pause(TP),
    "resume": lambda it: it.resume(TP),
    "seek": lambda it: it.seek(TP, 0),
    "seek_to_beginning": lambda it: it.seek_to_beginning(TP),
    "seek_to_end": lambda it: it.seek_to_end(),
    "subscribe": lambda it: it.subscribe("t"),
    "unsubscribe": lambda it: it.unsubscribe(),
    "assign": lambda it: it.assign([TP]),
    "high_watermark": lambda it: it.high_watermark(TP),
    "last_stable_offset": lambda it: it.last_stable_offset(TP),
    "current_lag": lambda it: it.current_lag(TP),
    "delay_revoke": lambda it: it.delay_revoke([TP]),
    "enforce_rebalance": lambda it: it.enforce_rebalance(),
    "rebalances": lambda it: it.rebalances(),
    "group_metadata": lambda it: it.group_metadata,
    "position": lambda it: asyncio.run(it.position(TP)),
    "commit": lambda it: asyncio.run(it.commit()),
    "close": lambda it: asyncio.run(it.close()),
}


def in_child(work: Callable[[], object]) -> Any:
    """What a function returns in a forked process."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(20)  # ends it if a call waits for ever
        os.write(write, pickle.dumps(work()))
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    return pickle.loads(told)


def outcomes(consumer: kafkaio.Consumer) -> dict[str, str]:
    found = {}
    for name, call in CALLS.items():
        try:
            call(consumer)
            found[name] = "returned"
        except Exception as error:  # noqa: BLE001 - told to the parent
            found[name] = f"{type(error).__name__}: {error}"
    return found


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("io_thread", [False, True])
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
@real
async def test_each_call_is_refused(*, io_thread: bool) -> None:
    async with (
        Broker(topics={"t": 1}) as broker,
        kafkaio.Consumer(
            broker.bootstrap_servers, topics="t", group_id="g", io_thread=io_thread
        ) as consumer,
    ):
        while not consumer.assignment:
            await consumer.poll(timeout=0.1)
        told = in_child(lambda: outcomes(consumer))
        assert set(told) == set(CALLS)
        for name, text in told.items():
            assert text.startswith("ClosedError: "), (name, text)
            assert "another process" in text, (name, text)
        # The parent is not touched.
        consumer.pause(TP)
        assert consumer.paused == {TP}


# ---- other texts ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["^orders.*", "orders-*", "orders|bills", "a[0-9]", "$"]
)
def test_a_text_that_is_a_pattern(name: str) -> None:
    for topics in (name, ["bills", name]):
        with pytest.raises(kafkaio.ArgumentValueError, match=r"give re\.compile\("):
            kafkaio.Consumer("b:1", topics=topics)


async def test_a_partition_that_never_was_assigned() -> None:
    async with (
        Broker(topics={"t": 1, "other": 1}) as broker,
        kafkaio.Consumer(
            broker.bootstrap_servers, topics="t", group_id="g"
        ) as consumer,
    ):
        while not consumer.assignment:
            await consumer.poll(timeout=0.1)
        with pytest.raises(kafkaio.PartitionLost) as told:
            await consumer.commit({TopicPartition("other", 0): 1})
    assert str(told.value) == "other-0 is not assigned to this consumer"
