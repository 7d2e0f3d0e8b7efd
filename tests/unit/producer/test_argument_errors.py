"""A wrong argument of a producer is a UsageError that is also the builtin error."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pyarrow as pa
import pytest

from kafkaio._producer import Producer
from kafkaio.errors import ArgumentTypeError, ArgumentValueError, UsageError
from kafkaio.types import NewRecord
from tests.unit.producer.conftest import MakeProducer

T, V = ArgumentTypeError, ArgumentValueError
NAN = float("nan")

#: Arguments of one record, and the class of the error.
RECORDS: list[tuple[dict[str, Any], type[UsageError]]] = [
    ({"topic": b"one"}, T),
    ({"topic": ""}, V),
    ({"partition": "0"}, T),
    ({"partition": True}, T),
    ({"partition": -1}, V),
    ({"value": "x"}, T),
    ({"value": 5}, T),
    ({"key": "k"}, T),
    ({"headers": 5}, T),
    ({"headers": b"x"}, T),
    ({"headers": ["ab"]}, T),
    ({"headers": [(1, b"")]}, T),
    ({"headers": [("a", "b")]}, T),
    ({"headers": [("\ud800", b"")]}, V),
    ({"timestamp": 1.5}, T),
    ({"timestamp": True}, T),
    ({"timestamp": -1}, V),
    ({"timestamp": 2**63 - 1}, V),
]

Call = Callable[[Producer], Awaitable[object]]
TABLE = pa.table({"value": [b"a"], "n": [1], "at": [-1]})
#: Other calls, the class of the error and the word that its message begins with.
CALLS: list[tuple[Call, type[UsageError], str]] = [
    (lambda p: p.send_many("one", b"x"), T, "values"),
    (lambda p: p.send_many("one", 5), T, "values"),  # type: ignore[arg-type]
    (lambda p: p.send_many("one", ["x"]), T, "value"),
    (lambda p: p.send_many(b"one", [b"x"]), T, "topic"),  # type: ignore[arg-type]
    (lambda p: p.send_many("", [b"x"]), V, "topic"),
    (lambda p: p.send_many("one", [NewRecord(b"x", partition=-1)]), V, "partition"),
    (lambda p: p.send_many("one", [NewRecord(b"x", timestamp=-1)]), V, "timestamp"),
    (lambda p: p.send_table("one", 5), T, "table"),
    (lambda p: p.send_table("one", TABLE, value="missing"), V, "the table has no"),
    (lambda p: p.send_table("one", TABLE, value="n"), V, "column 'n'"),
    (
        lambda p: p.send_table("one", TABLE, timestamp="at"),
        V,
        "column 'at', row 0: a record",
    ),
    (lambda p: p.send_table("one", TABLE, partition=-1), V, "partition"),
    (lambda p: p.send_table("one", TABLE, partition="0"), T, "partition"),  # type: ignore[arg-type]
    (lambda p: p.send_table("", TABLE), V, "topic"),
    (lambda p: p.flush(timeout=-1), V, "timeout"),
    (lambda p: p.flush("1"), T, "timeout"),  # type: ignore[arg-type]
    (lambda p: p.flush(NAN), V, "timeout"),
    (lambda p: p.close(timeout=-1), V, "timeout"),
    (lambda p: p.close("1"), T, "timeout"),  # type: ignore[arg-type]
    (lambda p: p.partitions_for(b"one"), T, "topic"),  # type: ignore[arg-type]
    (lambda p: p.partitions_for(""), V, "topic"),
    (lambda p: p.partitions_for("one", "1"), T, "timeout"),  # type: ignore[arg-type]
    (lambda p: p.partitions_for("one", -1), V, "timeout"),
]


@pytest.mark.parametrize("method", ["send", "enqueue", "enqueue_nowait"])
async def test_what_a_record_is_refused_for(make: MakeProducer, method: str) -> None:
    async with make() as producer:

        async def call(**arguments: Any) -> None:
            made = getattr(producer, method)(**arguments)
            await made

        for wrong, error in RECORDS:
            (name,) = wrong
            arguments = {"topic": "one", "value": b"x", **wrong}
            with pytest.raises(UsageError, match=rf"\b{name}|header") as caught:
                await call(**arguments)
            assert type(caught.value) is error, wrong
        assert producer.statistics().buffer.used_bytes == 0


@pytest.mark.parametrize(("call", "error", "begins"), CALLS)
async def test_what_a_call_is_refused_for(
    make: MakeProducer, call: Call, error: type[UsageError], begins: str
) -> None:
    async with make() as producer:
        with pytest.raises(UsageError, match=rf"^{begins}") as caught:
            await call(producer)
        assert type(caught.value) is error
        assert producer.statistics().state == "running"
        assert producer.statistics().buffer.used_bytes == 0


@pytest.mark.parametrize(("seconds", "error"), [("1", T), (-1, V), (NAN, V)])
async def test_a_wrong_timeout_starts_nothing(
    make: MakeProducer, seconds: Any, error: type[UsageError]
) -> None:
    producer = make()
    with pytest.raises(error, match=r"^timeout"):
        await producer.start(seconds)
    assert producer.statistics().state == "new"
