"""Sends values through serdes."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from kafkaio.serde import DeserializationContext, SerializationContext
from kafkaio.types import Header

T = TypeVar("T")


async def settle(result: Any) -> Any:
    """Return a result, or that of a coroutine."""
    return await result if isinstance(result, Coroutine) else result


async def write(
    serde: Any,
    value: Any,
    headers: list[Header] | None = None,
    *,
    topic: str = "t",
    is_key: bool = False,
) -> bytes:
    """Return the bytes of a value."""
    context = SerializationContext(topic, [] if headers is None else headers, is_key)
    data = await settle(serde.serialize(value, context))
    assert type(data) is bytes
    return data


async def read(
    serde: Any, data: bytes, headers: tuple[Header, ...] = (), *, is_key: bool = False
) -> Any:
    """Return the value of bytes."""
    return await settle(
        serde.deserialize(data, DeserializationContext("t", headers, is_key))
    )


def through(serde: Any, value: Any, reader: Any = None) -> Any:
    """Return what a value is after it was written and read."""

    async def both() -> Any:
        headers: list[Header] = []
        data = await write(serde, value, headers)
        return await read(serde if reader is None else reader, data, tuple(headers))

    return drive(both())


def drive(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine of the registry in memory, which needs no event loop."""
    while True:
        try:
            coroutine.send(None)
        except StopIteration as end:
            result: T = end.value
            return result
