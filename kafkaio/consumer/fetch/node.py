"""One broker's fetch loop: wait, decide, fetch, hand over; and again."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from kafkaio._machines.backoff import Backoff
from kafkaio._machines.fetch_session import FetchPlan, FetchSession, FetchTarget
from kafkaio._machines.positions import FetchPoint
from kafkaio._machines.reactions import reaction
from kafkaio._net.connection import Connection
from kafkaio._runtime.clock import now, roll
from kafkaio._runtime.wakeup import Wakeup
from kafkaio.consumer.fetch.messages import (
    FIRST_VERSION_BY_ID,
    LAST_VERSION_BY_NAME,
    FetchLimits,
    answers,
    fetch_request,
    is_small,
)
from kafkaio.consumer.fetch.side_fetch import CatchUp
from kafkaio.errors import KafkaError, KafkaTimeout, NetworkError
from kafkaio.protocol.api_keys import ApiKey
from kafkaio.protocol.messages.fetch import (
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from kafkaio.consumer.fetch.fetcher import Fetcher

__all__ = ["NodeFetcher"]

#: The wait of a fetch that leaves a full partition out: short at first, so that the
#: partition is fetched again before the user has read it empty.
_SHORT_WAIT_MS: Final = 20


class NodeFetcher:
    """Fetches from one broker until the broker is gone.

    Args:
        fetcher: decides what to fetch and judges what comes back.
        node_id: the broker.

    Attributes:
        node_id: the broker.
        reserved: bytes that the fetch in flight may bring.
        count: how many fetches were sent.
        asked: what the last of them asked for.
        asked_at: when it was sent.
        has_ended: whether the loop is over.
        beside: fetches what the fetch in flight misses.
    """

    def __init__(self, fetcher: Fetcher, node_id: int) -> None:
        self.node_id = node_id
        self.reserved = 0
        self.count = 0
        self.asked: Collection[FetchPoint] = ()
        self.asked_at = 0.0
        self.has_ended = False
        self.beside = CatchUp(fetcher, self)
        self._fetcher = fetcher
        self._wakeup = Wakeup()
        self._session = FetchSession()
        self._connection: Connection | None = None
        config = fetcher.config
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)
        self._failures = 0
        self._turn = 0
        self._short_wait_ms = _SHORT_WAIT_MS
        self._progress = -1

    def __repr__(self) -> str:
        state = f"fetching {self.reserved} bytes" if self.is_fetching else "idle"
        return f"<NodeFetcher {self.node_id} {state} | {self._session}>"

    @property
    def is_fetching(self) -> bool:
        """Whether a fetch is in flight."""
        return self.reserved > 0

    def wake(self) -> None:
        """Look again whether there is something to fetch."""
        self._wakeup.notify()

    async def run(self) -> None:
        """Fetch until the broker is not part of the cluster any more."""
        fetcher = self._fetcher
        try:
            while True:
                if not fetcher.room():  # cheaper to ask than what is wanted
                    await self._wakeup.wait(None)
                    continue
                wanted, is_short = fetcher.wanted(self.node_id)
                if not wanted:
                    if self._is_gone():
                        return
                    await self._wakeup.wait(fetcher.next_retry())
                    continue
                try:
                    await self._fetch(wanted, is_short=is_short)
                except (NetworkError, KafkaTimeout) as error:
                    await self._on_failure(error, wanted)
        finally:
            self.has_ended = True
            self.beside.wake()
            fetcher.ended(self.node_id)

    def _is_gone(self) -> bool:
        return self.node_id not in self._fetcher.cluster.view.brokers

    async def _fetch(
        self, wanted: dict[FetchPoint, FetchTarget], *, is_short: bool
    ) -> None:
        fetcher = self._fetcher
        if self._connection is None or not self._connection.is_ready:
            self._session.reset()  # a session is not bound to it, but its answer was
            self._connection = None
            cluster = fetcher.cluster
            self._connection = await cluster.connection(
                self.node_id, fetcher.connection_class
            )
            # Opening took its time: what is wanted may have changed.
            wanted, is_short = fetcher.wanted(self.node_id)
        room = fetcher.room()
        if not wanted or not room:
            return
        plan = self._plan(self._connection, wanted)
        room = min(room, sum(target.max_bytes for target in plan.wanted.values()))
        limits = self._limits(room, is_short=is_short)
        cap = None if plan.by_id else LAST_VERSION_BY_NAME
        timeout = (fetcher.config.request_timeout_ms + limits.max_wait_ms) / 1000
        self.reserved = room
        self.count += 1
        self.asked = wanted.keys()
        self.asked_at = now()
        arrival = _Arrival(self, plan, wanted)
        try:
            try:
                self._connection.submit_to(
                    arrival,
                    fetch_request(plan, limits),
                    timeout=timeout,
                    max_version=cap,
                )
                response = await arrival.ended
            except BaseException:
                self._session.reset()
                raise
            if arrival.is_left:
                found = self.believed(plan, response)
                await fetcher.answered(arrival.points, found, response)
        finally:
            self.reserved = 0
            fetcher.wake()  # others may have waited for the room that it kept
        self._failures = 0
        if response.error_code:
            self._session.failed(response.error_code)
            await self._on_top_level(response.error_code, plan)

    def take(self, arrival: _Arrival, response: FetchResponse) -> bool:
        """Judge an answer where it arrives; False where that would take too long."""
        if response.error_code:
            return True  # the loop reads it
        if not is_small(response):
            return False
        found = self.believed(arrival.plan, response)
        self._fetcher.answered_at_once(arrival.points, found, response)
        return True

    def believed(
        self, plan: FetchPlan, response: FetchResponse
    ) -> dict[TopicPartition, PartitionData]:
        """What an answer tells of the partitions; nothing where it fits no request."""
        found = answers(plan, response)
        return found if self._session.acked(plan, response.session_id, found) else {}

    def _plan(
        self, connection: Connection, wanted: dict[FetchPoint, FetchTarget]
    ) -> FetchPlan:
        targets = {point.tp: target for point, target in wanted.items()}
        version = connection.versions.usable(FetchRequest)
        by_id = version >= FIRST_VERSION_BY_ID and all(
            target.topic_id.int for target in targets.values()
        )
        if self._session.epoch == 0:
            # Without a session the broker serves in our order: take turns. With one
            # it does that by itself.
            targets = _rotated(targets, self._turn)
            self._turn += 1
        return self._session.build(targets, by_id=by_id)

    def _limits(self, room: int, *, is_short: bool) -> FetchLimits:
        config = self._fetcher.config
        wait_ms = config.fetch_max_wait_ms
        if is_short:
            progress = self._fetcher.progress()
            if progress != self._progress:
                self._short_wait_ms = _SHORT_WAIT_MS
            else:
                self._short_wait_ms *= 2
            self._progress = progress
            wait_ms = min(wait_ms, self._short_wait_ms)
        return FetchLimits(
            max_wait_ms=wait_ms,
            min_bytes=config.fetch_min_bytes,
            max_bytes=room,
            isolation_level=int(config.isolation_level == "read_committed"),
            rack=config.client_rack,
        )

    async def _on_failure(
        self, error: KafkaError, wanted: dict[FetchPoint, FetchTarget]
    ) -> None:
        fetcher = self._fetcher
        self._connection = None
        fetcher.failed(point.tp.topic for point in wanted)
        await self._pause(error)

    async def _on_top_level(self, code: int, plan: FetchPlan) -> None:
        if reaction(ApiKey.FETCH, code).refresh_metadata:
            self._fetcher.failed(tp.topic for tp in plan.wanted)
        if plan.is_full:  # otherwise a full one goes out at once
            await self._pause(None)

    async def _pause(self, error: KafkaError | None) -> None:
        delay = self._backoff.delay(self._failures, roll())
        self._failures += 1
        if error is not None:
            self._fetcher.cluster.observer.retrying(
                f"fetch from broker {self.node_id}", self._failures, delay, error
            )
        until = now() + delay
        while now() < until:
            await self._wakeup.wait(until)

    def close_session(self) -> None:
        """Let the broker forget the session, if it hears of it; it would expire too."""
        plan = self._session.build_close()
        connection = self._connection
        if plan is None or connection is None or not connection.is_ready:
            return
        limits = FetchLimits(0, 0, 1, 0)
        cap = None if plan.by_id else LAST_VERSION_BY_NAME
        with contextlib.suppress(KafkaError):
            request = fetch_request(plan, limits)
            answer = connection.submit(request, timeout=1.0, max_version=cap)
            answer.add_done_callback(_ignore)


class _Arrival:
    """Hears of the answer to one fetch; see `kafkaio._net.connection.Reply`.

    Whoever reads is woken before the loop is, which then sends the next fetch: a
    record does not wait for that.
    """

    __slots__ = ("_node", "ended", "is_left", "plan", "points")

    def __init__(
        self, node: NodeFetcher, plan: FetchPlan, wanted: Collection[FetchPoint]
    ) -> None:
        self.plan = plan
        self.points = {point.tp: point for point in wanted}
        self.ended: asyncio.Future[FetchResponse] = _new_future()
        #: Whether the answer came, and is still to be judged.
        self.is_left = False
        self._node = node

    def done(self) -> bool:
        """Whether the loop was cancelled."""
        return self.ended.done()

    def set_result(self, response: FetchResponse) -> None:
        """Take the answer."""
        try:
            self.is_left = not self._node.take(self, response)
        except Exception as failure:  # noqa: BLE001 - the loop raises it
            self.ended.set_exception(failure)
        else:
            self.ended.set_result(response)

    def set_exception(self, error: Exception) -> None:
        """Take the reason why there is none."""
        self.ended.set_exception(error)


def _new_future() -> asyncio.Future[FetchResponse]:
    return asyncio.get_running_loop().create_future()


def _ignore(answer: asyncio.Future[FetchResponse]) -> None:
    if not answer.cancelled():
        answer.exception()


def _rotated(
    targets: dict[TopicPartition, FetchTarget], turn: int
) -> dict[TopicPartition, FetchTarget]:
    if not targets:
        return targets
    items = list(targets.items())
    cut = turn % len(items)
    return dict(items[cut:] + items[:cut])
