"""Answers that no broker gives, and what they cost the client that decodes them."""

from __future__ import annotations

import asyncio
import gc
import struct
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kafkaio.protocol._primitives import uvarint
from tests.fakes.broker import Handler, Raw

__all__ = ["Cost", "answering", "measured"]


def answering(body: bytes, *, is_flexible: bool = True) -> Handler:
    """A handler of the fake cluster that writes ``body`` after a header."""

    def handle(node: Any, header: Any, request: Any) -> Raw:
        del node, request
        head = struct.pack(">i", header.correlation_id) + b"\0" * is_flexible
        return Raw(struct.pack(">i", len(head) + len(body)) + head + body)

    return handle


def groups(count: int) -> bytes:
    """ListGroups v5: ``count`` groups of five bytes."""
    return struct.pack(">ih", 0, 0) + uvarint(count + 1) + b"\1\1\1\1\0" * count + b"\0"


def quotas(count: int) -> bytes:
    """DescribeClientQuotas v1: entries of three bytes, each with two lists."""
    head = struct.pack(">ih", 0, 0) + b"\0"
    return head + uvarint(count + 1) + b"\1\1\0" * count + b"\0"


def replicas(count: int) -> bytes:
    """Metadata v12: one partition with so many replicas."""
    topic = struct.pack(">h", 0) + b"\2t" + bytes(16) + b"\0"
    numbers = struct.pack(f">{count}i", *range(1_000, 1_000 + count))
    partition = struct.pack(">hiii", 0, 0, 0, 0) + uvarint(count + 1) + numbers
    ends = b"\1\1\0" + struct.pack(">i", 0) + b"\0"
    return (
        bytes(4) + b"\1\0" + bytes(4) + b"\2" + topic + b"\2" + partition + ends + b"\0"
    )


def tags(count: int) -> bytes:
    """ListGroups v5 with so many tagged fields."""
    return struct.pack(">ih", 0, 0) + b"\1" + uvarint(count) + b"\5\0" * count


def fetched_topics(count: int) -> bytes:
    """Fetch v12: topics of three bytes, each with a list."""
    return struct.pack(">ihi", 0, 0, 0) + uvarint(count + 1) + b"\1\1\0" * count + b"\0"


@dataclass
class Cost:
    """What happened while the event loop ran.

    Attributes:
        peak: most bytes of memory allocated meanwhile.
        longest: the longest CPU time without a turn for others, in seconds.
    """

    peak: int = 0
    longest: float = 0.0


@contextmanager
def measured(*, memory: bool) -> Iterator[Cost]:
    """Measure either the memory, or the time: tracing memory takes time.

    Time is that of the processor, so that other programs do not count. What the test
    run has made before is left out of garbage collection meanwhile: to go through it
    takes longer than any answer, and more with every test.
    """
    cost = Cost()
    loop = asyncio.get_running_loop()
    last = 0.0
    is_over = False

    def turn() -> None:
        nonlocal last
        now = time.thread_time()
        cost.longest = max(cost.longest, now - last)
        last = now
        if not is_over:
            loop.call_soon(turn)

    gc.collect()
    gc.freeze()
    last = time.thread_time()
    loop.call_soon(turn)
    if memory:
        tracemalloc.start()
    try:
        yield cost
    finally:
        is_over = True
        if memory:
            cost.peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
