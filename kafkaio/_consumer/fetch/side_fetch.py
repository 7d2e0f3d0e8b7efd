"""Fetches partitions that become fetchable while a broker's fetch is waiting.

A broker answers the requests of a connection in order, and a fetch that finds nothing
waits there for ``fetch_max_wait_ms``, or longer in a quiet consumer. A partition that
is assigned, resumed, moved by a seek or given its position meanwhile is not part of
that fetch, and would have to wait for its answer although its records exist. So it is
fetched beside it: without a session, without a wait, on the connection for short
requests. If it was empty, it is asked again every ``fetch_max_wait_ms``, until the
loop's next fetch asks for it.

The bytes of a side fetch are not reserved in the byte budget. They are few: the limit
of one partition, and only while the buffers have that much room.

A loop without room for a fetch has partitions of which nothing is here fetched in the
same way, so that they do not wait for readers of others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Protocol

from kafkaio._config import ConsumerConfig
from kafkaio._consumer.fetch.answers import FetchAnswers, SentFetch
from kafkaio._consumer.fetch.targets import FetchTargets
from kafkaio._fetching.messages import (
    FetchLimits,
    answers,
    fetch_request,
    highest_version,
    sessionless,
)
from kafkaio._machines.fetch_session import FetchTarget
from kafkaio._machines.positions import FetchPoint
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._runtime.clock import now
from kafkaio._runtime.wakeup import Wakeup
from kafkaio.errors import KafkaError, NetworkError
from kafkaio.protocol.messages.fetch import FetchRequest
from kafkaio.types import TopicPartition

if TYPE_CHECKING:
    from kafkaio._client.ports import ConnectionPort

#: Seconds after which a fetch without an answer is taken to wait at the broker. A fetch
#: that finds data is answered sooner, and the next one asks for the new partitions.
_GRACE: Final = 0.005
#: Fewest seconds until a partition is asked for again beside the loop.
_PAUSE: Final = 0.1


class FetchLoopPort(Protocol):
    """The state of the loop that a side fetch accompanies.

    Attributes:
        node_id: the broker.
        count: the number of fetches sent.
        asked: the partitions of the last of them.
        asked_at: when it was sent.
        has_ended: whether the loop is over.
    """

    node_id: int
    count: int
    asked: Mapping[TopicPartition, FetchPoint]
    asked_at: float
    has_ended: bool

    @property
    def is_fetching(self) -> bool:
        """Whether a fetch is in flight."""
        ...


class SideFetch:
    """Fetches partitions that the fetch in flight to one broker does not have.

    Args:
        loop: the broker's loop.
        cluster: opens the connection.
        config: the consumer's options.
        targets: chooses partitions and sizes.
        answers: processes the answers.

    Attributes:
        pause: seconds until a partition is asked for again.
    """

    def __init__(
        self,
        loop: FetchLoopPort,
        cluster: ConnectionPort,
        config: ConsumerConfig,
        targets: FetchTargets,
        answers: FetchAnswers,
    ) -> None:
        self._loop = loop
        self._cluster = cluster
        self._config = config
        self._targets = targets
        self._answers = answers
        self.pause: float = max(config.fetch_max_wait_ms / 1000, _PAUSE)
        self._wakeup = Wakeup()
        # The number of the loop's last fetch, and the points fetched beside it: each
        # only once until ``_again_at``, so that an empty partition is not asked for
        # again and again.
        self._beside = -1
        self._done: set[FetchPoint] = set()
        self._again_at: float | None = None

    def wake(self) -> None:
        """Check again: other partitions can be fetched, or the loop has ended."""
        self._wakeup.notify()

    async def run(self) -> None:
        """Fetch beside the loop until the loop ends."""
        while not self._loop.has_ended:
            missed = self._missed()
            if not missed:
                await self._wakeup.wait(self._again_at)
                continue
            waits_from = self._loop.asked_at + _GRACE
            if now() < waits_from:
                await self._wakeup.wait(waits_from)
                continue
            # If it fails, the loop's next fetch asks for them, or this again.
            self._done |= missed.keys()
            if self._again_at is None:
                self._again_at = now() + self.pause
            most = self._config.max_partition_fetch_bytes
            await self._try(missed, most)

    async def fetch_empty_handed(self) -> None:
        """Fetch partitions of which nothing is here: there is no room for others."""
        partitions, most = self._targets.empty_handed(self._loop.node_id)
        if partitions:
            await self._try(partitions, most)

    async def _try(
        self, partitions: Mapping[FetchPoint, FetchTarget], most: int
    ) -> None:
        try:
            await self._fetch(partitions, most)
        except KafkaError as error:
            if not (error.retriable or isinstance(error, NetworkError)):
                raise

    def _missed(self) -> dict[FetchPoint, FetchTarget]:
        loop = self._loop
        is_due = self._again_at is not None and now() >= self._again_at
        if is_due or loop.count != self._beside:
            self._beside, self._again_at = loop.count, None
            self._done.clear()
        if not loop.is_fetching or not self._targets.has_room_beside():
            return {}
        choice, asked = self._targets.from_broker(loop.node_id), loop.asked
        if choice.points is asked:
            return {}
        return {
            point: choice.targets[tp]
            for tp, point in choice.points.items()
            if asked.get(tp) != point and point not in self._done
        }

    async def _fetch(
        self, partitions: Mapping[FetchPoint, FetchTarget], most: int
    ) -> None:
        config = self._config
        connection = await self._cluster.connection(
            self._loop.node_id, ConnectionClass.SHARED
        )
        targets = {point.tp: target for point, target in partitions.items()}
        plan = sessionless(connection.versions.usable(FetchRequest), targets)
        limits = FetchLimits(
            max_wait_ms=0,
            min_bytes=config.fetch_min_bytes,
            max_bytes=min(most, config.fetch_max_bytes),
            isolation_level=int(config.isolation_level == "read_committed"),
            rack=self._targets.brokers.rack,
        )
        sent = SentFetch(self._loop.node_id, now())
        response = await connection.call(
            fetch_request(plan, limits),
            timeout=config.request_timeout_ms / 1000,
            max_version=highest_version(plan),
        )
        points = {point.tp: point for point in partitions}
        # Errors of the whole answer are left to the loop, whose next fetch meets them.
        found = answers(plan, response)
        if not response.error_code and found.keys() <= points.keys():
            await self._answers.judge(points, found, response, sent)
