"""Which batches of a share consumer copy their bytes out of a fetch response."""

from __future__ import annotations

import sys

import pytest

from kafkaio._records._impl import accelerated
from kafkaio._share.reading.iterators import Holder, ShareBatchIterator
from tests.unit.share.fake_engine import World, batch_of

pytestmark = pytest.mark.skipif(
    not accelerated, reason="the pure codec makes all records of a batch at once"
)


async def taken(data: bytes, first: int, last: int) -> tuple[list[int], int]:
    """Take all that was acquired as one batch.

    Returns:
        Its offsets, and the references to the response that are there while it is kept.
    """
    world = World()
    world.reader.step(Holder("test"))
    before = sys.getrefcount(data)
    world.fetch(data, (first, last))
    iterator = ShareBatchIterator(world.reads, world.reader, last - first + 1, 0.0)
    batch = await anext(iterator)
    await world.close()
    del iterator, world
    references = sys.getrefcount(data) - before
    return [record.offset for record in batch], references


async def test_a_batch_that_is_most_of_a_response_is_not_copied() -> None:
    data = batch_of(0, range(10), 9)
    assert await taken(data, 0, 9) == ([*range(10)], 1)


async def test_a_batch_that_is_little_of_a_response_owns_its_bytes() -> None:
    data = batch_of(0, range(100), 99) + batch_of(100, range(100, 200), 199)
    # The last ones, so that nothing else of the response is in use.
    assert await taken(data, 195, 199) == ([*range(195, 200)], 0)
