"""Fetching at once what became fetchable while a broker's fetch is waiting.

A broker answers the requests of a connection one after the other, and a fetch that
finds nothing waits there for ``fetch_max_wait_ms``. A partition that is assigned,
resumed, moved by a seek or given its position meanwhile is not part of that fetch,
and would have to wait for its answer although its records are there. So it is fetched
once beside it: without a session, without a wait, on the connection for short
requests. As soon as it brings nothing more, the next fetch of the loop has it.

What such a fetch may bring is not part of the byte budget, but small: as much as one
partition's limit, and only while the buffers have that much room.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from kafkaio._machines.fetch_session import FetchPlan, FetchTarget
from kafkaio._machines.positions import FetchPoint
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._runtime.clock import now
from kafkaio._runtime.wakeup import Wakeup
from kafkaio.consumer.fetch.messages import (
    FIRST_VERSION_BY_ID,
    LAST_VERSION_BY_NAME,
    FetchLimits,
    answers,
    fetch_request,
)
from kafkaio.errors import KafkaTimeout, NetworkError
from kafkaio.protocol.message import ZERO_UUID
from kafkaio.protocol.messages.fetch import FetchRequest

if TYPE_CHECKING:
    from kafkaio.consumer.fetch.fetcher import Fetcher
    from kafkaio.consumer.fetch.node import NodeFetcher

__all__ = ["CatchUp"]

#: Together with the session id 0: a fetch outside of any session (KIP-227).
_NO_SESSION: Final = 0
_NO_EPOCH: Final = -1

#: Seconds after which a fetch without an answer is one that waits: a broker with data
#: at hand is quicker, and what was missed is part of the next fetch anyway.
_GRACE: Final = 0.005


class CatchUp:
    """Fetches what the loop of one broker missed.

    Args:
        fetcher: decides what to fetch and judges what comes back.
        node: the broker's loop.
    """

    def __init__(self, fetcher: Fetcher, node: NodeFetcher) -> None:
        self._fetcher = fetcher
        self._node = node
        self._wakeup = Wakeup()
        # The loop's fetch that was waiting last, and what was fetched beside it.
        self._beside = -1
        self._done: set[FetchPoint] = set()

    def wake(self) -> None:
        """Other partitions may be fetched than before, or the broker is gone."""
        self._wakeup.notify()

    async def run(self) -> None:
        """Fetch beside the loop until that ends."""
        while not self._node.has_ended:
            missed = self._missed()
            if not missed:
                await self._wakeup.wait(None)
                continue
            waits_from = self._node.asked_at + _GRACE
            if now() < waits_from:
                await self._wakeup.wait(waits_from)
                continue
            # Should it fail, the loop's next fetch has them.
            self._done |= missed.keys()
            with contextlib.suppress(NetworkError, KafkaTimeout):
                await self._fetch(missed)

    def _missed(self) -> dict[FetchPoint, FetchTarget]:
        node = self._node
        if not node.is_fetching or not self._fetcher.has_room_beside():
            return {}
        if node.count != self._beside:
            self._beside = node.count
            self._done.clear()
        wanted, _ = self._fetcher.wanted(node.node_id)
        return {
            point: target
            for point, target in wanted.items()
            if point not in node.asked and point not in self._done
        }

    async def _fetch(self, missed: dict[FetchPoint, FetchTarget]) -> None:
        fetcher = self._fetcher
        config = fetcher.config
        connection = await fetcher.client.connection(
            self._node.node_id, ConnectionClass.SHARED
        )
        targets = {point.tp: target for point, target in missed.items()}
        version = connection.versions.usable(FetchRequest)
        by_id = version >= FIRST_VERSION_BY_ID and all(
            target.topic_id != ZERO_UUID for target in targets.values()
        )
        plan = FetchPlan(_NO_SESSION, _NO_EPOCH, targets, targets, (), by_id)
        limits = FetchLimits(
            max_wait_ms=0,
            min_bytes=config.fetch_min_bytes,
            max_bytes=min(config.max_partition_fetch_bytes, config.fetch_max_bytes),
            isolation_level=int(config.isolation_level == "read_committed"),
            rack=config.client_rack,
        )
        response = await connection.call(
            fetch_request(plan, limits),
            timeout=config.request_timeout_ms / 1000,
            max_version=None if by_id else LAST_VERSION_BY_NAME,
        )
        points = {point.tp: point for point in missed}
        found = answers(plan, response)
        if not response.error_code and found.keys() <= points.keys():
            await fetcher.answered(points, found, response)
