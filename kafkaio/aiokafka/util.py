"""Small functions that programs import from ``aiokafka.util``."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Mapping
from typing import TypeVar

from kafkaio import TopicPartition
from kafkaio.aiokafka._options import loop_of
from kafkaio.aiokafka.structs import OffsetAndMetadata

__all__ = [
    "INTEGER_MAX_VALUE",
    "INTEGER_MIN_VALUE",
    "NO_EXTENSIONS",
    "create_future",
    "create_task",
]

T = TypeVar("T")

#: Whether aiokafka is asked to do without compiled code. kafkaio has an option of its
#: own for that: the environment variable KAFKAIO_CODEC.
NO_EXTENSIONS = False
#: The bounds of a signed number of 32 bits.
INTEGER_MAX_VALUE = 2**31 - 1
INTEGER_MIN_VALUE = -(2**31)


def create_task(coro: Coroutine[object, object, T]) -> asyncio.Task[T]:
    """Start a coroutine as a task of the running event loop; the caller owns it."""
    return get_running_loop().create_task(coro)


def create_future(
    loop: asyncio.AbstractEventLoop | None = None,
) -> asyncio.Future[T]:
    """Return a new future, of the running event loop unless one is given."""
    return (loop or get_running_loop()).create_future()


async def wait_for(fut: Awaitable[T], timeout: int | float | None = None) -> T:
    """Await something, for a time at most.

    Raises:
        TimeoutError: the seconds are over; what was awaited is cancelled.
    """
    async with asyncio.timeout(timeout):
        return await fut


def parse_kafka_version(api_version: str) -> tuple[int, int, int]:
    """Read a version of Kafka from 0.9 on, and before 3.0, such as ``2.8.1``.

    Raises:
        ValueError: it is none.
    """
    parts = api_version.strip().split(".")
    if not 2 <= len(parts) <= 3 or not all(
        part.isascii() and part.isdecimal() and len(part) < 6 for part in parts
    ):
        raise ValueError(api_version)
    major, minor, patch = (int(part) for part in (*parts, "0")[:3])
    if not (0, 9) <= (major, minor, patch) < (3, 0):
        raise ValueError(api_version)
    return major, minor, patch


def commit_structure_validate(
    offsets: Mapping[TopicPartition, int | tuple[int, str] | OffsetAndMetadata],
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return the offsets to commit, each with its metadata; empty for none.

    Raises:
        ValueError: there is none, or an offset has another form.
        TypeError: a key is not a `TopicPartition`, or metadata is not text.
    """
    if not offsets or not isinstance(offsets, dict):
        raise ValueError(offsets)
    return {_partition(tp): _offset(each, offsets) for tp, each in offsets.items()}


def _partition(tp: object) -> TopicPartition:
    if not isinstance(tp, TopicPartition):
        raise TypeError("Key should be TopicPartition instance")
    return tp


def _offset(given: object, offsets: object) -> OffsetAndMetadata:
    if isinstance(given, int):
        return OffsetAndMetadata(given, "")
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise ValueError(offsets)
    offset, metadata = given
    if not isinstance(metadata, str):
        raise TypeError("Metadata should be a string")
    return OffsetAndMetadata(offset, metadata)


def get_running_loop() -> asyncio.AbstractEventLoop:
    """Return the running event loop.

    Raises:
        RuntimeError: none is running.
    """
    return loop_of(None)
