"""Arguments that a consumer refuses before it does anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafkaio._consumer import Consumer
from kafkaio.errors import ArgumentTypeError, ArgumentValueError, UsageError
from kafkaio.types import OffsetAndMetadata, TopicPartition
from tests.unit.consumer.conftest import MakeConsumer

NAN = float("nan")
TP = TopicPartition("orders", 0)

WRONG = [
    ({"max_records": 0}, ArgumentValueError),
    ({"max_records": True}, ArgumentTypeError),
    ({"max_records": 1.5}, ArgumentTypeError),
    ({"max_wait": -1}, ArgumentValueError),
    ({"max_wait": NAN}, ArgumentValueError),
    ({"max_wait": True}, ArgumentTypeError),
    ({"max_wait": "1"}, ArgumentTypeError),
]


@pytest.mark.parametrize(("arguments", "error"), WRONG)
async def test_batches(
    make: MakeConsumer, arguments: dict[str, Any], error: type[Exception]
) -> None:
    async with make(assign=[TP]) as consumer:
        for batches in (consumer.batches, consumer.arrow_batches):
            with pytest.raises(error, match=next(iter(arguments))):
                batches(**arguments)
        lane = await anext(aiter(consumer.partitions()))
        with pytest.raises(error, match=next(iter(arguments))):
            lane.batches(**arguments)


MADE: list[tuple[dict[str, Any], type[UsageError]]] = [
    ({"topics": 5}, ArgumentTypeError),
    ({"topics": [1]}, ArgumentTypeError),
    ({"topics": ""}, ArgumentValueError),
    ({"topics": [""]}, ArgumentValueError),
    ({"assign": 5}, ArgumentTypeError),
    ({"assign": [("t",)]}, ArgumentTypeError),
    ({"assign": [("t", -1)]}, ArgumentValueError),
    ({"on_assigned": 5}, ArgumentTypeError),
    ({"on_revoked": "f"}, ArgumentTypeError),
    ({"on_lost": []}, ArgumentTypeError),
]


@pytest.mark.parametrize(("arguments", "error"), MADE)
def test_the_constructor(arguments: dict[str, Any], error: type[UsageError]) -> None:
    with pytest.raises(error):
        Consumer("h:1", **arguments)


def test_topics_and_partitions_are_no_mistake_of_one_argument() -> None:
    with pytest.raises(UsageError) as raised:
        Consumer("h:1", topics="t", assign=[TP])
    assert not isinstance(raised.value, TypeError | ValueError)


async def handle(record: object) -> None:
    """Work on nothing."""


Call = Callable[[Any], Any]
#: What is called, and the class of the error.
CALLS: dict[str, tuple[Call, type[UsageError]]] = {
    "poll for less than no time": (lambda c: c.poll(timeout=-1), ArgumentValueError),
    "poll for no number": (lambda c: c.poll(timeout=NAN), ArgumentValueError),
    "poll for a text": (lambda c: c.poll(timeout="1"), ArgumentTypeError),
    "poll for a flag": (lambda c: c.poll(timeout=True), ArgumentTypeError),
    "poll less than none": (lambda c: c.poll(max_records=-1), ArgumentValueError),
    "poll half a record": (lambda c: c.poll(max_records=1.5), ArgumentTypeError),
    "run no handler": (lambda c: c.run(5), ArgumentTypeError),
    "run nobody": (lambda c: c.run(handle, concurrency=0), ArgumentValueError),
    "run a text": (lambda c: c.run(handle, concurrency="2"), ArgumentTypeError),
    "run in no order": (lambda c: c.run(handle, ordering="x"), ArgumentValueError),
    "run nothing": (lambda c: c.run(None), ArgumentTypeError),
    "retry a number": (lambda c: c.run(handle, retry=5), ArgumentTypeError),
    "bury in a number": (lambda c: c.run(handle, dead_letter=5), ArgumentTypeError),
    "seek half a partition": (lambda c: c.seek(("t",), 0), ArgumentTypeError),
    "seek a text": (lambda c: c.seek(TP, "5"), ArgumentTypeError),
    "seek before the log": (lambda c: c.seek(TP, -1), ArgumentValueError),
    "position of a text": (lambda c: c.position("t"), ArgumentTypeError),
    "position in a text": (lambda c: c.position(TP, "1"), ArgumentTypeError),
    "pause a text": (lambda c: c.pause("t"), ArgumentTypeError),
    "resume a text": (lambda c: c.resume("t"), ArgumentTypeError),
    "the beginning of a text": (
        lambda c: c.seek_to_beginning("t"),
        ArgumentTypeError,
    ),
    "the end of a pair": (lambda c: c.seek_to_end(("t", -1)), ArgumentValueError),
    "commit a text": (lambda c: c.commit({TP: "5"}), ArgumentTypeError),
    "commit before the log": (lambda c: c.commit({TP: -1}), ArgumentValueError),
    "commit such an offset": (
        lambda c: c.commit({TP: OffsetAndMetadata(-5)}),
        ArgumentValueError,
    ),
    "commit a number": (lambda c: c.commit(5), ArgumentTypeError),
    "committed of half": (lambda c: c.committed([("t",)]), ArgumentTypeError),
    "committed of a number": (lambda c: c.committed(5), ArgumentTypeError),
    "committed in a text": (lambda c: c.committed([TP], "1"), ArgumentTypeError),
    "beginnings of half": (
        lambda c: c.beginning_offsets([("t",)]),
        ArgumentTypeError,
    ),
    "ends in no time": (lambda c: c.end_offsets([TP], -1), ArgumentValueError),
    "lag of a text": (lambda c: c.lag("t"), ArgumentTypeError),
    "lag in a text": (lambda c: c.lag(timeout="1"), ArgumentTypeError),
    "lag of it now": (lambda c: c.current_lag("t"), ArgumentTypeError),
    "a watermark of it": (lambda c: c.high_watermark("t"), ArgumentTypeError),
    "a time of text": (lambda c: c.offsets_for_times({TP: "1"}), ArgumentTypeError),
    "a time before": (lambda c: c.offsets_for_times({TP: -1}), ArgumentValueError),
    "rewind somewhere": (lambda c: c.rewind({TP: "somewhere"}), ArgumentValueError),
    "rewind by some time": (
        lambda c: c.rewind({TP: "by_duration:x"}),
        ArgumentValueError,
    ),
    "rewind by half": (lambda c: c.rewind({TP: 1.5}), ArgumentTypeError),
    "rewind before": (lambda c: c.rewind({TP: -1}), ArgumentValueError),
    "delay a text": (lambda c: c.delay_revoke(["t"]), ArgumentTypeError),
    "topics in a text": (lambda c: c.topics("1"), ArgumentTypeError),
    "partitions of bytes": (
        lambda c: c.partitions_for_topic(b"t"),
        ArgumentTypeError,
    ),
    "partitions of nothing": (
        lambda c: c.partitions_for_topic(""),
        ArgumentValueError,
    ),
    "assign a number": (lambda c: c.assign(5), ArgumentTypeError),
    "close in less than no time": (lambda c: c.close(-1), ArgumentValueError),
    "close in a text": (lambda c: c.close("1"), ArgumentTypeError),
    "start in a text": (lambda c: c.start("1"), ArgumentTypeError),
}


async def outcome_of(call: Call, consumer: Consumer) -> None:
    outcome = call(consumer)
    if outcome is not None:
        await outcome


@pytest.mark.parametrize("what", CALLS)
async def test_a_call(make: MakeConsumer, what: str) -> None:
    call, error = CALLS[what]
    async with make(assign=[TP], group_id="g") as consumer:
        with pytest.raises(error):
            await outcome_of(call, consumer)


async def test_subscribing(make: MakeConsumer) -> None:
    consumer = make()
    with pytest.raises(ArgumentTypeError):
        consumer.subscribe(5)  # type: ignore[arg-type]
    with pytest.raises(ArgumentValueError):
        consumer.subscribe([""])
