"""The client: connections, metadata, coordinators, and any request of the protocol."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Self, Unpack
from uuid import UUID

import anyio

from kafkaio._arguments import seconds_of, topics_of, type_name
from kafkaio._machines.coordinators import CoordinatorKind
from kafkaio._machines.metadata import ClusterView, Endpoint
from kafkaio._machines.refresh import Topics
from kafkaio._net.connection import Connection
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._net.pool import Pool
from kafkaio._net.settings import NetSettings
from kafkaio._net.transport import Dial
from kafkaio._runtime.clock import now
from kafkaio._runtime.log import attach_log
from kafkaio._runtime.observer import Observer, guarded
from kafkaio._runtime.supervisor import Child, Supervisor
from kafkaio._runtime.unclosed import Closeable, weakly
from kafkaio._runtime.watchdog import TOLERANCE, watch_loop
from kafkaio.client.destinations import ANY, Destination, check_destination
from kafkaio.client.finder import CoordinatorFinder
from kafkaio.client.life import CrashListener, Life, State
from kafkaio.client.metadata import MetadataKeeper
from kafkaio.client.nodes import Nodes
from kafkaio.client.requester import Errand, Requester
from kafkaio.client.statistics import ClientStatistics
from kafkaio.config import ClientConfig, ClientOptions
from kafkaio.config.signature import OptionsSignature
from kafkaio.errors import (
    ArgumentTypeError,
    BrokerNotAvailable,
    KafkaError,
    RequestTimeout,
)
from kafkaio.protocol.message import Request, ResponseT
from kafkaio.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafkaio.types import TopicPartition

__all__ = ["Client"]

#: Seconds that closing may take where the caller sets no other limit.
CLOSE_TIMEOUT = 10.0


class Client(Closeable):
    """Sends any request of the Kafka protocol to where it belongs.

    ``async with`` opens and closes it; `start` and `close` are the same by hand.
    Producers, consumers and admins work on a client, and may share one. It belongs to
    the event loop that started it, and to the process. One that is forgotten without
    having been closed gives a ResourceWarning.

    Args:
        bootstrap_servers: ``"host:port,host2:port"`` or a sequence of such.
        observer: an object with any of the methods of `kafkaio.Observer`, or a list of
            such objects.
        options: see `kafkaio.ClientConfig`.

    Raises:
        ConfigurationError: an option is unknown or impossible.
    """

    __signature__ = OptionsSignature(ClientOptions, ClientConfig)

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] = "localhost:9092",
        *,
        observer: object | None = None,
        **options: Unpack[ClientOptions],
    ) -> None:
        self._set_up(ClientConfig.of(bootstrap_servers, options), observer, None)

    @classmethod
    def from_config(
        cls,
        config: ClientConfig,
        observer: object | None = None,
        dial: Dial | None = None,
    ) -> Self:
        """Make a client of options that were checked before.

        Args:
            config: the options.
            observer: as for the constructor.
            dial: makes transports; None for TCP and TLS.
        """
        client = cls.__new__(cls)
        client._set_up(config, observer, dial)
        return client

    @classmethod
    def from_properties(
        cls, properties: Mapping[str, object], observer: object | None = None
    ) -> Self:
        """Make a client of Kafka's dotted names, such as ``bootstrap.servers``."""
        return cls.from_config(ClientConfig.from_properties(properties), observer)

    def _set_up(
        self, config: ClientConfig, observer: object | None, dial: Dial | None
    ) -> None:
        self.config = config
        self.observer: Observer = guarded(observer)
        # A thread looks at the loop only for those who want to hear what it finds.
        self._is_watched = "loop_blocked" in vars(self.observer)
        self._life = Life(config.client_id)
        self._supervisor = Supervisor(config.client_id, weakly(self._crashed))
        self._pool = Pool(
            NetSettings.from_config(config),
            config.bootstrap_servers,
            self._supervisor.start_soon,
            dial=dial,
            observer=self.observer,
            on_lost=weakly(self._connection_lost),
        )
        self._nodes = Nodes(self._pool)
        self._metadata = MetadataKeeper(config, self._nodes, self.observer)
        self._finder = CoordinatorFinder(
            self._nodes, self._metadata, config.request_timeout_ms / 1000
        )
        self._requester = Requester(
            config, self._pool, self._nodes, self._metadata, self._finder, self.observer
        )
        self._metadata.listen(weakly(self._view_changed))

    def __repr__(self) -> str:
        view = self._metadata.view
        cluster = view.cluster_id or "unknown cluster"
        return (
            f"<Client {self.config.client_id!r} {self._life.state.name} | {cluster}, "
            f"{len(view.brokers)} brokers, {len(view.topics)} topics | "
            f"{len(self._pool.statistics())} connections>"
        )

    def statistics(self) -> ClientStatistics:
        """The client as it is now."""
        view = self._metadata.view
        return ClientStatistics(
            state=self._life.state.name,
            cluster_id=view.cluster_id,
            brokers=len(view.brokers),
            topics=len(view.topics),
            view_number=view.number,
            coordinators=len(self._finder.cache),
            connections=self._pool.statistics(),
        )

    # ---- life ----------------------------------------------------------------------

    def _left_open(self) -> str | None:
        life: Life | None = getattr(self, "_life", None)
        return None if life is None else life.left_open

    def _forgotten(self) -> None:
        if self._life.home is not None:
            end = partial(_end, self._life, self._pool, self._supervisor)
            self._life.home.soon(end)

    def belong(self) -> None:
        """Somebody else owns this, and closes it."""
        self._life.has_owner = True

    def abandon(self) -> None:
        """Begin to end all, and wait for nothing; for an owner that was forgotten."""
        _end(self._life, self._pool, self._supervisor)
        self._fail_waiters()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def start(self, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Connect to the cluster; returns when it has answered.

        If it fails or is cancelled, the client is closed.

        Args:
            timeout: seconds; ``default_api_timeout_ms`` by default.

        Raises:
            BrokerNotAvailable: no bootstrap server answered in time; names each of
                them, the step that failed and the cause.
            AuthenticationError: the servers refuse who we are.
            ClosedError: the client was started before.
        """
        self._life.begin()
        servers = ", ".join(self.config.addresses)
        if self.config.log:
            is_debugging = attach_log(self.observer, self.config.client_id, servers)
            self._is_watched = self._is_watched or is_debugging
        try:
            self._supervisor.start(self._metadata.run, self._finder.run)
            if self._is_watched:
                self._supervisor.start_soon(partial(watch_loop, self.observer), "watch")
            await self._first_answer(self._deadline(timeout), servers)
            self._life.check()
            self._life.state = State.RUNNING
        except BaseException:
            await self.close()
            raise
        self.observer.started("client", self.config.client_id)

    async def _first_answer(self, deadline: float, servers: str) -> None:
        with anyio.CancelScope(deadline=deadline):
            while not self._metadata.view.number:
                await self._metadata.attempted.wait()
                failure = self._metadata.failure
                if failure is not None and not failure.retriable:
                    raise failure
            return
        failure = self._metadata.failure
        why = str(failure) if failure else f"no answer yet from {servers}"
        raise BrokerNotAvailable(f"the cluster did not answer: {why}") from failure

    async def close(self, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Close all connections and end all background work. May be called again.

        Whoever waits on the client gets ClosedError. Nothing is sent any more, so
        that it is done as soon as the background tasks have noticed. If the call is
        cancelled, all of that ends by itself; another call waits for it.

        Args:
            timeout: seconds after which to leave those tasks to end by themselves.

        Raises:
            ArgumentTypeError: the timeout is no number.
            ArgumentValueError: it is negative or not a number; nothing was closed.
            ClosedError: the client belongs to another event loop or process.
        """
        limit = CLOSE_TIMEOUT if timeout is None else seconds_of("timeout", timeout)
        was_open = self._life.is_open
        self._life.close()
        self._fail_waiters()
        with anyio.CancelScope(shield=True, deadline=now() + limit):
            try:
                await self._pool.aclose()
            finally:
                if was_open:
                    self.observer.closed("client", self.config.client_id)
                # Also when time is up: nobody else would ever end the tasks.
                await self._supervisor.aclose()

    def _fail_waiters(self) -> None:
        why = self._life.why_ended
        self._metadata.updated.fail(why)
        self._metadata.attempted.fail(why)
        self._finder.fail(why)
        self._requester.ended.fail(why)

    def _crashed(self, cause: BaseException) -> None:
        self._life.crashed(cause)
        self._fail_waiters()
        for node_id in (*self._nodes.known, *self._pool.bootstrap):
            # Whoever waits for an answer learns it now, not when it is too late.
            self._pool.close_node(node_id)
        self._life.tell_crash(cause)

    def loop_was_late(self, seconds: float) -> None:
        """Note that the loop was late for somebody's timer, where no thread watches."""
        if not self._is_watched and seconds > TOLERANCE:
            self.observer.loop_blocked(seconds, "")

    def _deadline(self, timeout: float | None) -> float:
        if timeout is None:
            timeout = self.config.default_api_timeout_ms / 1000
        # A negative one is no mistake: the caller's own time limit is over.
        return now() + seconds_of("timeout", timeout, -math.inf)

    # ---- requests ------------------------------------------------------------------

    async def request(
        self,
        request: Request[ResponseT],
        to: Destination = ANY,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> ResponseT:
        """Send a request to where it belongs and return the answer.

        Lost connections, requests that timed out and answers by which a broker says
        that it is the wrong one (not the leader, coordinator or controller, or still
        loading) are followed by another attempt, after a back-off and with what was
        learned. As with Kafka's own client, that holds for requests that change
        something, too: when the answer to a first attempt was lost, the second may
        find its work done (TOPIC_ALREADY_EXISTS, say). All other errors are in the
        answer, which is returned as it came. Where each item of an answer has an
        error of its own, it is only repeated if no item took effect.

        If the call is cancelled, the request may still take effect.

        Args:
            request: a message of `kafkaio.protocol.messages`.
            to: ``ANY``, ``Broker(3)``, ``Controller``, ``Leader(tp)``,
                ``GroupCoordinator("g")`` or ``TransactionCoordinator("t")``.
            timeout: seconds for all attempts together; ``default_api_timeout_ms``
                by default. One attempt may take ``request_timeout_ms``.

        Raises:
            RequestTimeout: no answer in time; the message and the cause say what the
                last attempt failed with.
            ArgumentTypeError: an argument has the wrong type.
            UnsupportedVersion: the broker cannot take the request as it is.
            AuthorizationError: the coordinator or leader may not be told to us.
            AuthenticationError: the brokers refuse who we are.
            ClosedError: the client is closed, or not started.
        """
        self._life.check()
        _check_request(request)
        check_destination(to)
        return await self._requester.request(request, to, self._deadline(timeout))

    # ---- for upper layers: the cluster -------------------------------------------

    @property
    def cluster(self) -> ClusterView:
        """What is known of the cluster: an immutable snapshot."""
        return self._metadata.view

    def watch_topics(self, owner: object, topics: Topics | None) -> None:
        """Keep the view of some topics fresh for ``owner``.

        Topics that nobody watched before are fetched at once.

        Args:
            owner: whoever watches; a second call replaces the topics of the first.
            topics: names, ``ALL_TOPICS``, or None to watch no more.
        """
        self._metadata.watch(owner, topics)

    def request_refresh(self, *topics: str) -> None:
        """Ask for fresh metadata; it is fetched beside the traffic, with back-off.

        Args:
            topics: topics that the view should describe even if nobody watches them;
                they are forgotten after ``metadata_max_idle_ms``.
        """
        self._metadata.request(topics)

    async def refresh(self, timeout: float) -> bool:  # noqa: ASYNC109
        """Fetch metadata at once, without the back-off after the last update.

        Metadata that is younger than ``retry_backoff_ms`` is not fetched again.

        Args:
            timeout: seconds.

        Returns:
            Whether it came: False if the attempt failed, or took longer than that.

        Raises:
            ClosedError: the client is closed.
        """
        self._life.check()
        with anyio.move_on_after(timeout):
            return await self._metadata.refresh()
        return False

    async def wait_for_update(self, timeout: float | None = None) -> ClusterView:  # noqa: ASYNC109
        """Wait for the next successful metadata update, without asking for one.

        Raises:
            RequestTimeout: none came in time; the cause is the last failure.
            ClosedError: the client is closed.
        """
        self._life.check()
        with anyio.CancelScope(deadline=self._deadline(timeout)):
            await self._metadata.updated.wait()
            return self.cluster
        failure = self._metadata.failure
        why = f": {failure}" if failure is not None else ""
        raise RequestTimeout(f"no metadata in time{why}") from failure

    async def wait_for_topics(
        self,
        topics: Collection[str],
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> ClusterView:
        """Wait until every topic is described in the view, fetching what is missing.

        Args:
            topics: names.
            timeout: seconds; ``default_api_timeout_ms`` by default.

        Raises:
            UnknownTopicOrPartition: the cluster still has no such topic.
            ArgumentTypeError: an argument has the wrong type.
            ArgumentValueError: a name is empty.
            AuthorizationError: a topic may not be described to us; raised at once.
            BrokerError: a name is none that a topic can have; raised at once.
            RequestTimeout: nobody could be asked in time.
            ClosedError: the client is closed.
        """
        self._life.check()
        topics = topics_of(topics)
        with anyio.CancelScope(deadline=self._deadline(timeout)):
            return await self._metadata.wait_for_topics(topics)
        raise self._metadata.why_missing(topics)

    async def topic_names(
        self,
        topic_ids: Collection[UUID],
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> dict[UUID, str]:
        """The names of topics, from the view or else from a broker, asked once.

        Args:
            topic_ids: ids (KIP-516).
            timeout: seconds; ``default_api_timeout_ms`` by default.

        Returns:
            Names by ids; a topic that the broker does not know is left out.

        Raises:
            RequestTimeout: nobody could be asked in time.
            ClosedError: the client is closed.
        """
        found = {i: name for i in topic_ids if (name := self.cluster.topic_name(i))}
        if unknown := sorted(set(topic_ids) - found.keys()):
            wanted = [MetadataRequestTopic(topic_id=i, name=None) for i in unknown]
            request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
            answer = await self.request(request, timeout=timeout)
            for topic in answer.topics:
                if topic.name is not None and not topic.error_code:
                    found[topic.topic_id] = topic.name
        return found

    def add_metadata_listener(
        self, listener: Callable[[ClusterView], None]
    ) -> Callable[[], None]:
        """Call ``listener`` with every new view; what is returned takes it back.

        It is called on the event loop and must not raise: that would be a crash.
        """
        return self._metadata.listen(listener)

    def apply_leader_hint(
        self,
        tp: TopicPartition,
        leader_id: int,
        leader_epoch: int,
        endpoints: Iterable[Endpoint] = (),
    ) -> bool:
        """Take over a leader that a Produce or Fetch answer named (KIP-951).

        Metadata is asked for in any case.

        Returns:
            Whether it was newer than what was known: then the request can be sent to
            the new leader at once.
        """
        return self._metadata.apply_leader(tp, leader_id, leader_epoch, endpoints)

    def learned_epoch(self, tp: TopicPartition, epoch: int) -> bool:
        """Note a leader epoch seen in an answer; a newer one asks for metadata."""
        return self._metadata.learned_epoch(tp, epoch)

    # ---- for upper layers: connections, coordinators, tasks ----------------------

    async def connection(self, node_id: int, lane: ConnectionClass) -> Connection:
        """The connection to a broker on a lane, opened if there is none.

        Raises:
            BrokerNotAvailable: it cannot be made; names host, step and cause.
            AuthenticationError: the broker refuses who we are.
            ClosedError: the client is closed.
        """
        self._life.check()
        return await self._pool.connection(node_id, lane)

    def hang_up(self, node_id: int, cause: KafkaError) -> None:
        """A broker is silent: close what it answers at once, or parks, on.

        What is in flight there fails with ConnectionLost, and other brokers are asked
        what any of them knows. Reading and writing have time limits of their own.
        """
        self._pool.close_lanes(
            node_id, (ConnectionClass.SHARED, ConnectionClass.COORDINATOR), cause
        )

    def end_lane(self, lane: ConnectionClass) -> None:
        """Close the connections on a lane, for its owner is gone."""
        self._pool.end_lane(lane)

    def ready_connection(
        self, node_id: int, lane: ConnectionClass
    ) -> Connection | None:
        """The open connection to a broker on a lane, or None; opens nothing."""
        return self._pool.ready(node_id, lane)

    async def coordinator(
        self,
        kind: CoordinatorKind,
        key: str,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> int:
        """Node id of a coordinator, found if it is not known, with retries.

        Raises:
            RequestTimeout: not found in time; the cause is the last failure.
            AuthorizationError: it may not be told to us.
            ClosedError: the client is closed.
        """
        self._life.check()
        known = self._finder.cache.get(kind, key)
        if known is not None:
            return known
        return await self._requester.persist(
            lambda: self._finder.find(kind, key),
            Errand(f"finding the coordinator of {kind.name.lower()} {key!r}"),
            self._deadline(timeout),
        )

    def forget_coordinator(self, kind: CoordinatorKind, key: str, node_id: int) -> None:
        """Forget that ``node_id`` coordinates ``key``, if that is what is known."""
        self._finder.cache.forget(kind, key, node_id)

    def start_soon(self, child: Child, name: str) -> None:
        """Start a background task that the client owns and cancels when it closes.

        Raises:
            ClosedError: the client is not running.
        """
        self._supervisor.start_soon(child, name)

    def add_crash_listener(self, listener: CrashListener) -> Callable[[], None]:
        """Call ``listener`` once if a background task crashes.

        Returns:
            What takes the listener back.
        """
        return self._life.listen(listener)

    # ---- what the parts report ---------------------------------------------------

    def _connection_lost(
        self, node_id: int, lane: ConnectionClass, cause: BaseException | None
    ) -> None:
        del lane
        if cause is None:
            return  # we closed it
        self._finder.cache.forget_node(node_id)
        self._metadata.request()

    def _view_changed(self, view: ClusterView) -> None:
        self._finder.cache.retain(view.brokers.keys())


def _check_request(request: object) -> None:
    if not isinstance(request, Request):
        raise ArgumentTypeError(
            f"request must be a request of kafkaio.messages, not {type_name(request)}"
        )


def _end(life: Life, pool: Pool, supervisor: Supervisor) -> None:
    life.abandon()
    pool.close()
    supervisor.cancel()
