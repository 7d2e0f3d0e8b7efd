"""One broker's fetch loop: choose partitions, fetch, process the answer, repeat.

The loop keeps one fetch session with its broker (KIP-227), in which a request names
only the changes since the previous one. A session's epoch counts its requests, so a
request of which it is unknown whether it arrived ends the session: the next fetch opens
a new one.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from kafkaio._client.retry import Attempts
from kafkaio._config import ConsumerConfig
from kafkaio._consumer.fetch.answers import FetchAnswers, SentFetch
from kafkaio._consumer.fetch.side_fetch import SideFetch
from kafkaio._consumer.fetch.targets import FetchChoice, FetchTargets
from kafkaio._fetching.messages import (
    FetchLimits,
    answers,
    fetch_request,
    highest_version,
    is_small,
    takes_ids,
)
from kafkaio._machines.fetch_session import (
    FetchPlan,
    FetchSession,
    FetchTarget,
    FetchWait,
)
from kafkaio._machines.positions import FetchPoint
from kafkaio._machines.reactions import ReactionStep, reaction
from kafkaio._net.connection import Connection
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._runtime.clock import now
from kafkaio._runtime.wakeup import Wakeup
from kafkaio.errors import KafkaError, NetworkError
from kafkaio.protocol import _api_numbers as apis
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.protocol.messages.fetch import (
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from kafkaio._client.ports import ClusterPort


class BrokerFetcher:
    """Fetches from one broker until the broker is not part of the cluster any more.

    Args:
        node_id: the broker.
        cluster: has the connections and the metadata.
        config: the consumer's options.
        targets: chooses partitions and sizes.
        answers: processes the answers.
        connection_class: the connection to fetch on.
        on_free: called when the room that a fetch had reserved is free.
        on_end: called with the broker when the loop ends.

    Attributes:
        node_id: the broker.
        reserved: bytes that the fetch in flight may bring; 0 while there is none.
        count: the number of fetches sent.
        asked: the partitions of the last of them.
        asked_at: when it was sent.
        has_ended: whether the loop is over.
        side: fetches partitions that the fetch in flight does not have.
    """

    def __init__(  # noqa: PLR0913
        self,
        node_id: int,
        cluster: ClusterPort,
        config: ConsumerConfig,
        targets: FetchTargets,
        answers: FetchAnswers,
        *,
        connection_class: ConnectionClass,
        on_free: Callable[[], None],
        on_end: Callable[[int], None],
    ) -> None:
        self.node_id = node_id
        self.reserved: int = 0
        self.count: int = 0
        self.asked: Mapping[TopicPartition, FetchPoint] = {}
        self.asked_at: float = 0.0
        self.has_ended: bool = False
        self.side: SideFetch = SideFetch(self, cluster, config, targets, answers)
        self._cluster = cluster
        self._config = config
        self._targets = targets
        self._answers = answers
        self._connection_class = connection_class
        self._on_free = on_free
        self._on_end = on_end
        self._wakeup = Wakeup()
        self._session = FetchSession()
        self._connection: Connection | None = None
        self._attempts = Attempts(f"fetch from broker {node_id}", cluster.retry_policy)
        # While there is no room: when partitions of which nothing is here are fetched.
        self._relief_at: float | None = None
        # Which partition comes first in the next fetch without a session.
        self._turn = 0
        self._wait = FetchWait(config.fetch_max_wait_ms, config.fetch_min_bytes)

    def __repr__(self) -> str:
        state = f"fetching {self.reserved} bytes" if self.is_fetching else "idle"
        return f"<BrokerFetcher {self.node_id} {state} | {self._session}>"

    @property
    def is_fetching(self) -> bool:
        """Whether a fetch is in flight."""
        return self.reserved > 0

    def wake(self) -> None:
        """Check again whether there is something to fetch."""
        self._wakeup.notify()

    async def run(self) -> None:
        """Fetch until the broker is not part of the cluster any more."""
        targets = self._targets
        try:
            while True:
                # Checked first, because it is cheaper than choosing partitions.
                if not targets.room():
                    await self._wait_for_room()
                    continue
                self._relief_at = None
                # Before choosing: a retry that becomes due meanwhile is not missed.
                began_at = now()
                choice = targets.from_broker(self.node_id)
                if not choice.targets:
                    if self.node_id not in self._cluster.view.brokers:
                        return
                    await self._wakeup.wait(targets.next_retry(began_at))
                    continue
                try:
                    await self._fetch(choice)
                except KafkaError as error:
                    await self._on_failure(error, choice, now() - began_at)
        finally:
            self.has_ended = True
            self.side.wake()
            self._on_end(self.node_id)

    async def _wait_for_room(self) -> None:
        if self._relief_at is None:
            self._relief_at = now() + self.side.pause
        await self._wakeup.wait(self._relief_at)
        # Some call of a reader that is slow may have come as well.
        if now() >= self._relief_at:
            self._relief_at = now() + self.side.pause
            await self.side.fetch_empty_handed()

    async def _fetch(self, choice: FetchChoice) -> None:
        targets, config = self._targets, self._config
        if self._connection is None or not self._connection.is_ready:
            # The session outlives the connection, but an answer may be lost with it.
            self._session.reset()
            self._connection = None
            self._connection = await self._cluster.connection(
                self.node_id, self._connection_class
            )
            # Opening took time: positions and room may have changed.
            choice = targets.from_broker(self.node_id)
        room = targets.room()
        if not choice.targets or not room:
            return
        plan = self._plan(self._connection, choice)
        room = min(room, choice.max_bytes)
        limits = self._limits(room, choice)
        cap = highest_version(plan)
        timeout = (config.request_timeout_ms + limits.max_wait_ms) / 1000
        # From here to the answer the room belongs to this fetch; see `finally`.
        self.reserved = room
        self.count += 1
        self.asked = choice.points
        self.asked_at = now()
        arrival = _Arrival(self, plan, choice.points)
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
                # Cancelled or failed: the broker may have seen this epoch, or not.
                self._session.reset()
                raise
            if arrival.is_left:
                found = self.parts_of(plan, response)
                await self._answers.judge(arrival.points, found, response, arrival.sent)
        finally:
            self.reserved = 0
            self._on_free()  # other loops may wait for the room
        # An answer within a session names only what has changed.
        self._wait.answered(has_news=bool(response.error_code or response.responses))
        if response.error_code:
            self._session.failed(response.error_code)
            await self._on_top_level(response.error_code, plan)
        elif self._attempts.failures:
            self._attempts.succeeded()

    def take(self, arrival: _Arrival, response: FetchResponse) -> bool:
        """Process an answer where it arrives; False if that would take too long."""
        if response.error_code:
            return True  # the fetch loop handles it
        if not is_small(response):
            return False
        found = self.parts_of(arrival.plan, response)
        self._answers.judge_at_once(arrival.points, found, response, arrival.sent)
        return True

    def parts_of(
        self, plan: FetchPlan, response: FetchResponse
    ) -> dict[TopicPartition, PartitionData]:
        """Return an answer's data by partition; empty if it does not fit the plan."""
        found = answers(plan, response)
        return found if self._session.acked(plan, response.session_id, found) else {}

    def _plan(self, connection: Connection, choice: FetchChoice) -> FetchPlan:
        targets = choice.targets
        version = connection.versions.usable(FetchRequest)
        by_id = choice.has_ids and takes_ids(version)
        if self._session.epoch == 0:
            # Without a session the broker fills the answer in the order of the request,
            # so the order rotates. In a session the broker rotates them itself.
            targets = _rotated(targets, self._turn)
            self._turn += 1
        return self._session.build(targets, by_id=by_id)

    def _limits(self, room: int, choice: FetchChoice) -> FetchLimits:
        config, targets = self._config, self._targets
        if choice.is_short:
            wait_ms = self._wait.short(targets.progress())
        else:
            wait_ms = self._wait.of(choice)
        return FetchLimits(
            max_wait_ms=wait_ms,
            min_bytes=config.fetch_min_bytes,
            max_bytes=room,
            isolation_level=int(config.isolation_level == "read_committed"),
            rack=targets.brokers.rack,
        )

    async def _on_failure(
        self, error: KafkaError, choice: FetchChoice, seconds: float
    ) -> None:
        # Fetching again cannot cure any other error.
        if not (error.retriable or isinstance(error, NetworkError)):
            raise error
        self._connection = None
        self._answers.failed((tp.topic for tp in choice.points), error)
        self._answers.node_failed(self.node_id, seconds)
        await self._attempts.pause(error)

    async def _on_top_level(self, code: int, plan: FetchPlan) -> None:
        what = reaction(apis.FETCH, code)
        if what.refresh_metadata:
            self._answers.failed(tp.topic for tp in plan.wanted)
        # An incremental fetch that was refused is followed by a full one, at once.
        if not plan.is_full:
            return
        error: KafkaError | None = None
        # A session that was reset has lost nothing: that is not an error.
        if what.step is not ReactionStep.RESET_SESSION:
            error = broker_error(
                code,
                f"broker {self.node_id} refused to be fetched from",
                api=apis.FETCH,
            )
            self._answers.node_failed(self.node_id, now() - self.asked_at)
        await self._attempts.pause(error)

    def close_session(self) -> None:
        """Close the session at the broker, which would otherwise keep it a while."""
        plan = self._session.build_close()
        connection = self._connection
        if plan is None or connection is None or not connection.is_ready:
            return
        limits = FetchLimits(0, 0, 1, 0)
        cap = highest_version(plan)
        with contextlib.suppress(KafkaError):
            request = fetch_request(plan, limits)
            answer = connection.submit(request, timeout=1.0, max_version=cap)
            answer.add_done_callback(_ignore)


class _Arrival:
    """Takes the answer to one fetch; see `kafkaio._net.connection.Reply`.

    A small answer is processed in the callback. So a waiting reader wakes before the
    fetch loop does, and a record does not wait until the next fetch is sent.
    """

    __slots__ = ("_node", "ended", "is_left", "plan", "points", "sent")

    def __init__(
        self,
        node: BrokerFetcher,
        plan: FetchPlan,
        points: Mapping[TopicPartition, FetchPoint],
    ) -> None:
        self.plan: FetchPlan = plan
        self.points: Mapping[TopicPartition, FetchPoint] = points
        self.ended: asyncio.Future[FetchResponse] = _new_future()
        #: Whether the fetch loop is still to process the answer.
        self.is_left: bool = False
        self.sent: SentFetch = SentFetch(node.node_id, node.asked_at)
        self._node = node

    def done(self) -> bool:
        """Whether the fetch loop was cancelled."""
        return self.ended.done()

    def set_result(self, response: FetchResponse) -> None:
        """Take the answer."""
        try:
            self.is_left = not self._node.take(self, response)
        # Raised here, it would reach the connection, which is not at fault.
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
    targets: Mapping[TopicPartition, FetchTarget], turn: int
) -> Mapping[TopicPartition, FetchTarget]:
    if not targets:
        return targets
    items = list(targets.items())
    cut = turn % len(items)
    return dict(items[cut:] + items[:cut])
