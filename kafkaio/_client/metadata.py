"""Keeps the view of the cluster up to date.

`MetadataUpdater.run` is the only task that fetches metadata, and the only writer of
the view, besides leaders that other answers name (KIP-951). When to fetch, and what,
is decided by `kafkaio._machines.refresh.RefreshSchedule`: at once for new topics, after
``metadata_max_age_ms``, on request, and after a failure with a back-off. Other tasks
read the view, request a refresh, and wait for its end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from functools import partial
from math import inf

from kafkaio._client.nodes import ASKED, SILENCE, Nodes
from kafkaio._client.retry import hedged
from kafkaio._config import ClientConfig
from kafkaio._machines.backoff import Backoff
from kafkaio._machines.metadata import (
    RELIABLE_EPOCHS_SINCE,
    ClusterView,
    EndpointPort,
    Epochs,
    UnavailableTopics,
    controllers_as_brokers,
    merge,
    with_leader,
)
from kafkaio._machines.reactions import ReactionStep, reaction
from kafkaio._machines.refresh import RefreshRequest, RefreshSchedule, Topics
from kafkaio._net.connection import Connection
from kafkaio._runtime.broadcast import Broadcast
from kafkaio._runtime.clock import now, roll
from kafkaio._runtime.observer import Observer
from kafkaio._runtime.scopes import CancelScope
from kafkaio._runtime.wakeup import Wakeup
from kafkaio.errors import (
    AuthenticationError,
    BrokerError,
    BrokerNotAvailable,
    ConnectionLost,
    KafkaError,
    RequestTimeout,
    UnsupportedVersion,
)
from kafkaio.protocol import _api_numbers as apis
from kafkaio.protocol._broker_errors import broker_error, sentence
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import Request, ResponseT
from kafkaio.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from kafkaio.types import TopicPartition

Listener = Callable[[ClusterView], None]

#: Seconds after which an attempt to fetch metadata is late, for error messages.
_LATE = 0.5
#: Seconds between two times that all connections are closed because a broker is another
#: one than the metadata says.
_MISLED_PAUSE = 10.0
#: The version of DescribeCluster that lists controllers, and their type in it.
CONTROLLERS_SINCE = 1
_CONTROLLERS = 2
#: Before this version, a request for a topic always creates the topic.
AUTO_CREATION_SINCE = 4


class MetadataUpdater:
    """Owns the view of the cluster, and refreshes it.

    Args:
        config: the client's options.
        nodes: the brokers to ask.
        observer: is notified of updates and failures.

    Attributes:
        view: the metadata as it is now: an immutable snapshot.
        failure: why the last attempt failed; None if it succeeded.
        updated: happens after every attempt that succeeded.
        attempted: happens after every attempt.
    """

    def __init__(self, config: ClientConfig, nodes: Nodes, observer: Observer) -> None:
        self.view: ClusterView = ClusterView()
        self.failure: KafkaError | None = None
        self.updated: Broadcast = Broadcast()
        self.attempted: Broadcast = Broadcast()
        # When the view was refreshed, and the clock of that loop: `age` is also read in
        # other threads, which have no running loop to take the time from.
        self._updated_at = -inf
        self._clock: Callable[[], float] = float
        # Whether the next attempt begins with the bootstrap servers, and until when it
        # does not for that reason.
        self._is_misled = False
        self._misled_until = -inf
        # When the attempt under way began; None between two.
        self._began_at: float | None = None
        # Returns what the attempt under way waits for.
        self._late: Callable[[], str] = nodes.why_late
        self._config = config
        self._nodes = nodes
        self._observer = observer
        self._epochs = Epochs()
        self._unavailable = UnavailableTopics(
            may_create=config.allow_auto_create_topics
        )
        self._wakeup = Wakeup()
        self._listeners: list[Listener] = []
        self._recovers = config.metadata_recovery_strategy == "rebootstrap"
        trigger = config.metadata_recovery_rebootstrap_trigger_ms / 1000
        self._schedule = RefreshSchedule(
            Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms),
            max_age=config.metadata_max_age_ms / 1000,
            idle=config.metadata_max_idle_ms / 1000,
            rebootstrap_after=trigger if self._recovers else inf,
        )

    @property
    def failures(self) -> int:
        """How many attempts in a row have failed."""
        return self._schedule.failures

    @property
    def age(self) -> float:
        """Seconds since the view was refreshed, in any thread; ``inf`` before that."""
        return self._clock() - self._updated_at

    # ---- for other tasks -----------------------------------------------------------

    def watch(self, owner: object, topics: Topics | None) -> None:
        """Replace the topics that the view describes for ``owner``."""
        self._schedule.watch(owner, topics)
        self._wakeup.notify()

    def use(self, topics: Iterable[str]) -> None:
        """Describe ``topics`` in the view, for ``metadata_max_idle_ms`` from now on."""
        self._schedule.use(topics, now())
        self._wakeup.notify()

    def request(self, topics: Collection[str] = ()) -> None:
        """Request a refresh; it begins when the back-off in force is over."""
        if topics:
            self._schedule.use(topics, now())
        self._schedule.request()
        self._wakeup.notify()

    async def refresh(self) -> bool:
        """Fetch the metadata once, without waiting for the back-off.

        Metadata that is younger than ``retry_backoff_ms`` is not fetched again.

        Returns:
            False if the attempt failed.
        """
        recent = self._config.retry_backoff_ms / 1000
        if (ticket := self._schedule.demand(now(), recent)) is None:
            return True
        self._wakeup.notify()
        while True:
            await self.attempted.wait()
            # An attempt that was under way before the ticket may have read an older
            # state: its success does not count, only its failure.
            if self._schedule.is_satisfied(ticket):
                return True
            if self.failure is not None:
                return False

    async def attempt_ended(self) -> None:
        """Wait for the end of the next attempt, whatever comes of it.

        Raises:
            AuthenticationError: all brokers refuse the client. The background task
                tries again, but callers that wait get the reason now.
        """
        await self.attempted.wait()
        if isinstance(self.failure, AuthenticationError):
            raise self.failure

    def misled(self) -> None:
        """Start over: a broker is another one, or of another cluster (KIP-1242).

        If the metadata was fetched anew for that reason a moment ago, the cluster
        contradicts itself. Then it is only fetched again, and the connections to the
        other brokers stay.
        """
        self._is_misled = now() >= self._misled_until
        self.request()

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call ``listener`` with every new view; the result removes it."""
        self._listeners.append(listener)

        def remove() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return remove

    def learned_epoch(self, tp: TopicPartition, epoch: int) -> bool:
        """Note a leader epoch of another answer; whether the view is out of date."""
        if self.view.partition(tp) is None or not self._epochs.raise_to(tp, epoch):
            return False
        self.request()
        return True

    def apply_leader(
        self,
        tp: TopicPartition,
        leader_id: int,
        leader_epoch: int,
        endpoints: Iterable[EndpointPort],
    ) -> bool:
        """Apply a leader that an answer named (KIP-951); whether it is a newer one."""
        # In any case: the hint has the leader alone, not its replicas (KIP-951).
        self.request()
        hinted = with_leader(
            self.view, self._epochs, tp, (leader_id, leader_epoch), endpoints
        )
        if hinted is None:
            return False
        self._publish(hinted)
        return True

    # ---- the loop ------------------------------------------------------------------

    async def run(self) -> None:
        """Refresh whenever it is due, until cancelled."""
        while True:
            due = self._schedule.next_at()
            if now() < due:
                await self._wakeup.wait(None if due == inf else due)
            else:
                await self._refresh()

    async def _refresh(self) -> None:
        if self._is_misled:
            # Here, and not where it was noticed: that is in the attempt to connect, and
            # would end it with another error than its own.
            self._is_misled = False
            self._misled_until = now() + _MISLED_PAUSE
            if not self._nodes.is_bootstrapping:
                self._rebootstrap()
        self._began_at = now()
        ask = self._schedule.begin(self._began_at)
        try:
            self._apply(ask, *await self._fetch(ask))
        except KafkaError as error:
            self._failed(error)
        except BaseException:
            # Cancelled: `is_wanted` of the schedule must not count this attempt.
            self._schedule.abandoned()
            raise
        self._began_at = None
        self.attempted.notify_all()

    async def _fetch(self, ask: RefreshRequest) -> tuple[MetadataResponse, int]:
        """Ask one broker; if none can be reached, one of the bootstrap servers."""
        # The deadline (KIP-1102) also ends an attempt that a broker does not answer.
        with CancelScope(deadline=self._schedule.rebootstrap_at()):
            try:
                return await self._ask_any(ask)
            except BrokerNotAvailable:
                if not self._recovers or self._nodes.is_bootstrapping:
                    raise
        self._rebootstrap()
        return await self._ask_any(ask)

    async def _ask_any(self, ask: RefreshRequest) -> tuple[MetadataResponse, int]:
        """Ask the broker that can answer soonest; if it is silent, another one, too."""
        first = await self._nodes.any_connection()
        if len(self._nodes.known) < ASKED:
            return await self._ask(ask, first)

        async def ask_another() -> tuple[MetadataResponse, int]:
            another = await self._nodes.any_connection({first.node_id})
            return await self._ask(ask, another)

        return await hedged(partial(self._ask, ask, first), ask_another, SILENCE)

    async def _ask(
        self, ask: RefreshRequest, connection: Connection
    ) -> tuple[MetadataResponse, int]:
        if self._config.bootstrap_controllers:
            return await self._ask_controller(connection), RELIABLE_EPOCHS_SINCE
        request = MetadataRequest(
            topics=None
            if ask.topics is None
            else [MetadataRequestTopic(name=name) for name in sorted(ask.topics)],
            allow_auto_topic_creation=True,
        )
        try:
            version = connection.versions.usable(MetadataRequest)
        except UnsupportedVersion as error:
            if connection.versions.max_version(apis.DESCRIBE_QUORUM) is None:
                raise
            raise UnsupportedVersion(
                f"{_address(connection)} is a controller, not a broker: give it as "
                f"bootstrap_controllers, or the address of a broker ({error})"
            ) from error
        # The field must have its default before that version, where it cannot be sent.
        if version >= AUTO_CREATION_SINCE:
            request.allow_auto_topic_creation = self._config.allow_auto_create_topics
        return await self._call(connection, request, version), version

    async def _ask_controller(self, connection: Connection) -> MetadataResponse:
        """Ask a controller for the others (KIP-919)."""
        # Few clients need it.
        from kafkaio.protocol.messages.describe_cluster import DescribeClusterRequest

        version = connection.versions.usable(DescribeClusterRequest)
        if version < CONTROLLERS_SINCE:
            raise UnsupportedVersion(
                f"{_address(connection)}: bootstrap_controllers needs Kafka 3.7"
            )
        request = DescribeClusterRequest(endpoint_type=_CONTROLLERS)
        answer = await self._call(connection, request, version)
        if answer.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE:
            raise broker_error(
                answer.error_code,
                f"{_address(connection)} is a broker, not a controller: give it as "
                "bootstrap_servers",
            )
        return controllers_as_brokers(answer)

    async def _call(
        self, connection: Connection, request: Request[ResponseT], version: int
    ) -> ResponseT:
        timeout = self._config.request_timeout_ms / 1000
        if self._late == self._nodes.why_late:  # else it tells of the first one asked
            self._late = partial(connection.why_late, "Metadata")
        try:
            return await connection.call(request, timeout=timeout, max_version=version)
        except (ConnectionLost, RequestTimeout) as error:
            raise ConnectionLost(
                f"{_address(connection)}: fetch metadata: {error}"
            ) from error
        finally:
            self._late = self._nodes.why_late

    def _apply(
        self, ask: RefreshRequest, response: MetadataResponse, version: int
    ) -> None:
        # A broker may send the client back to the bootstrap servers (KIP-1102).
        error = ErrorCode(response.error_code)
        if reaction(apis.METADATA, error).step is ReactionStep.REBOOTSTRAP:
            self._rebootstrap()
        if error:
            raise broker_error(response.error_code, "the broker refused Metadata")
        merged = merge(
            self.view,
            self._epochs,
            response,
            version,
            partial=ask.partial,
            max_brokers=self._config.max_brokers,
        )
        # A broker that is starting may know no brokers yet. The old view stays.
        if merged is None:
            raise BrokerNotAvailable("a Metadata answer names no broker")
        self.failure = None
        self._clock = asyncio.get_running_loop().time
        self._updated_at = self._clock()
        self._schedule.succeeded(ask, merged, now(), roll())
        self._publish(merged.view)
        self._report_unavailable()
        self._observer.metadata_updated(len(self.view.brokers), len(self.view.topics))
        self.updated.notify_all()

    def _report_unavailable(self) -> None:
        wanted = self._schedule.interest.names()
        for topic, code in self._unavailable.update(self.view, wanted, now()):
            why = undescribed(topic, code)
            self._observer.topic_unavailable(topic, why)

    def _failed(self, error: KafkaError) -> None:
        self.failure = error
        attempt = self._schedule.failures + 1
        delay = self._schedule.failed(now(), roll())
        self._observer.retrying("metadata", attempt, delay, error)

    def _rebootstrap(self) -> None:
        self._nodes.rebootstrap()
        self._schedule.rebootstrapped(now())

    def _publish(self, view: ClusterView) -> None:
        self.view = view
        self._nodes.update(view.brokers, view.cluster_id)
        # A copy: a listener may remove itself.
        for listener in tuple(self._listeners):
            listener(view)

    # ---- waiting -------------------------------------------------------------------

    async def wait_for_topics(self, topics: Collection[str]) -> ClusterView:
        """Wait until each topic is described; the caller sets a time limit.

        Raises:
            AuthenticationError: all brokers refuse the client; raised by the first
                attempt to fetch metadata that ends so during the call.
            AuthorizationError: the client may not see a topic.
            BrokerError: no topic can have one of the names.
            UnsupportedVersion: the client asks controllers.
        """
        if self._config.bootstrap_controllers:
            raise UnsupportedVersion(
                "controllers describe no topics: a client with bootstrap_controllers "
                "cannot ask for them"
            )
        self.use(topics)
        began_at = self.view.number
        while True:
            view = self.view
            missing = [t for t in topics if view.partition_count(t) is None]
            if not missing:
                return view
            for topic in missing:
                self._raise_if_final(view, topic, began_at)
            # Another task's attempt may answer this one, too: request no second one.
            if not self._schedule.is_wanted:
                self.request()
            await self.attempt_ended()

    def _raise_if_final(self, view: ClusterView, topic: str, began_at: int) -> None:
        error = view.topic_error(topic)
        # An error in an older view may have been corrected since.
        is_final = error and not reaction(apis.METADATA, error).retry
        if is_final and view.number > began_at:
            raise undescribed(topic, error)

    def why_missing(self, topics: Collection[str]) -> KafkaError:
        """Return the reason why the first missing one of ``topics`` is missing."""
        for topic in topics:
            error = self.view.topic_error(topic)
            if self.view.partition_count(topic) is None and error:
                return undescribed(topic, error)
        if self.failure is not None:
            return self.failure
        named = ", ".join(map(repr, topics))
        if late := self._why_late():
            return RequestTimeout(f"the cluster did not describe {named}: {late}")
        return broker_error(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"the cluster did not describe {named}",
        )

    def why_late(self) -> str:
        """Why the metadata is not fetched yet, for error messages."""
        return str(self.failure) if self.failure else self._why_late()

    def _why_late(self) -> str:
        began_at = self._began_at
        is_late = began_at is not None and now() >= began_at + _LATE
        return self._late() if is_late else ""


def _address(connection: Connection) -> str:
    return f"{connection.broker.host}:{connection.broker.port}"


def undescribed(topic: str, code: int) -> BrokerError:
    """Make the error for a topic that the brokers do not describe."""
    what = sentence(code, f"topic {topic!r} cannot be described")
    return broker_error(code, what, api=apis.METADATA, topic=topic)
