"""The way to a cluster: connections, metadata, coordinators, requests, tasks.

`Cluster` is what a `kafkaio.Client` has inside, and what producers, consumers and
admins work on: their own, or that of a client that they share. Background tasks and
callbacks hold the cluster and never the client, so that a client that nobody refers
to any more is collected, warns and ends its cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable
from functools import partial
from typing import TypeVar
from uuid import UUID

import anyio

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
from kafkaio._runtime.unclosed import Home
from kafkaio._runtime.watchdog import TOLERANCE, watch_loop
from kafkaio.client.broadcast import Broadcast
from kafkaio.client.destinations import ANY, Destination
from kafkaio.client.fanout import Fanout, Operation, Results
from kafkaio.client.finder import CoordinatorFinder
from kafkaio.client.life import CrashListener, Life, State
from kafkaio.client.metadata import MetadataKeeper
from kafkaio.client.nodes import Nodes
from kafkaio.client.requester import Requester
from kafkaio.client.retry import Attempts, RetryPolicy
from kafkaio.client.router import Router
from kafkaio.client.statistics import ClientStatistics
from kafkaio.config import ClientConfig
from kafkaio.errors import BrokerNotAvailable, KafkaError, RequestTimeout
from kafkaio.protocol.message import Request, Response, ResponseT
from kafkaio.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafkaio.types import TopicPartition

__all__ = ["Cluster"]

ItemT = TypeVar("ItemT", bound=Hashable)
ValueT = TypeVar("ValueT")
AnswerT = TypeVar("AnswerT", bound=Response)

#: Seconds that closing may take where the caller sets no other limit.
CLOSE_TIMEOUT = 10.0


class Cluster:
    """Connections to the brokers of a cluster, and what is known of it.

    Args:
        config: the options.
        observer: an object with any of the methods of `kafkaio.Observer`, or a list of
            such objects.
        dial: makes transports; None for TCP and TLS.

    Attributes:
        config: the options.
        observer: hears what happens.
        retry_policy: the back-off of all retries, for `kafkaio.client.retry.Attempts`.
    """

    def __init__(
        self,
        config: ClientConfig,
        observer: object | None = None,
        dial: Dial | None = None,
    ) -> None:
        self.config = config
        self.observer: Observer = guarded(observer)
        # A thread looks at the loop only for those who want to hear what it finds.
        self._is_watched = "loop_blocked" in vars(self.observer)
        self._life = Life(config.client_id)
        self._supervisor = Supervisor(config.client_id, self._crashed)
        self._pool = Pool(
            NetSettings.from_config(config),
            config.bootstrap_servers,
            self._supervisor.start_soon,
            dial=dial,
            observer=self.observer,
            on_lost=self._connection_lost,
        )
        self._nodes = Nodes(self._pool)
        self._metadata = MetadataKeeper(config, self._nodes, self.observer)
        self._finder = CoordinatorFinder(
            self._nodes, self._metadata, config.request_timeout_ms / 1000
        )
        #: Fails once the cluster is closed or has crashed; nothing else happens to it.
        self._ended = Broadcast()
        self.retry_policy = RetryPolicy.from_config(config, self.observer, self._sleep)
        router = Router(self._pool, self._nodes, self._metadata, self._finder)
        self._requester = Requester(config, self._metadata, router, self.retry_policy)
        self._fanout = Fanout(
            router, self.retry_policy, config.request_timeout_ms / 1000
        )
        self._metadata.listen(self._view_changed)

    @property
    def view(self) -> ClusterView:
        """What is known of the cluster: an immutable snapshot."""
        return self._metadata.view

    def statistics(self) -> ClientStatistics:
        """The connections, and what is known of the cluster, as they are now."""
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

    @property
    def home(self) -> Home | None:
        """The event loop and process that it was started in; None before."""
        return self._life.home

    @property
    def left_open(self) -> str | None:
        """What is open, in words; None where it is not, or not in this process."""
        return self._life.left_open

    async def start(self, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Connect to the cluster; returns when it has answered.

        If it fails or is cancelled, the cluster is closed.

        Args:
            timeout: seconds; ``default_api_timeout_ms`` by default.

        Raises:
            BrokerNotAvailable: no bootstrap server answered in time; names each of
                them, the step that failed and the cause.
            AuthenticationError: the servers refuse who we are.
            ClosedError: the client was started before.
        """
        self._life.begin()
        if self.config.log:
            is_debugging = attach_log(
                self.observer, self.config.client_id, self._servers
            )
            self._is_watched = self._is_watched or is_debugging
        try:
            self._supervisor.start(self._metadata.run, self._finder.run)
            if self._is_watched:
                self._supervisor.start_soon(partial(watch_loop, self.observer), "watch")
            await self._first_answer(self._deadline(timeout))
            self._life.check()
            self._life.state = State.RUNNING
        except BaseException:
            await self.close()
            raise
        self.observer.started("client", self.config.client_id)

    @property
    def _servers(self) -> str:
        return ", ".join(f"{h}:{p}" for h, p in self.config.bootstrap_servers)

    async def _first_answer(self, deadline: float) -> None:
        with anyio.CancelScope(deadline=deadline):
            while not self._metadata.view.number:
                await self._metadata.attempted.wait()
                failure = self._metadata.failure
                if failure is not None and not failure.retriable:
                    raise failure
            return
        failure = self._metadata.failure
        why = str(failure) if failure else f"no answer yet from {self._servers}"
        raise BrokerNotAvailable(f"the cluster did not answer: {why}") from failure

    async def close(self, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Close all connections and end all background work. May be called again.

        Whoever waits on the client gets ClosedError. Nothing is sent any more, so
        that it is done as soon as the background tasks have noticed. If the call is
        cancelled, all of that ends by itself; another call waits for it.

        Args:
            timeout: seconds after which to leave those tasks to end by themselves.
        """
        was_open = self._life.is_open
        self._life.close()
        self._fail_waiters()
        limit = CLOSE_TIMEOUT if timeout is None else timeout
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
        self._ended.fail(why)

    def _crashed(self, cause: BaseException) -> None:
        self._life.crashed(cause)
        self._fail_waiters()
        for node_id in (*self._nodes.known, *self._pool.bootstrap):
            # Whoever waits for an answer learns it now, not when it is too late.
            self._pool.close_node(node_id)
        self._life.tell_crash(cause)

    def abandon(self) -> None:
        """Begin to end everything, and wait for nothing: its owner was collected."""
        self._life.abandon()
        self._pool.close()
        self._supervisor.cancel()
        self._fail_waiters()

    def _check(self) -> None:
        self._life.check()

    def loop_was_late(self, seconds: float) -> None:
        """Note that the loop was late for somebody's timer, where no thread watches."""
        if not self._is_watched and seconds > TOLERANCE:
            self.observer.loop_blocked(seconds, "")

    async def _sleep(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            await self._ended.wait()

    def _seconds(self, timeout: float | None) -> float:
        return self.config.default_api_timeout_ms / 1000 if timeout is None else timeout

    def _deadline(self, timeout: float | None) -> float:
        return now() + self._seconds(timeout)

    # ---- requests ------------------------------------------------------------------

    async def request(
        self,
        request: Request[ResponseT],
        to: Destination = ANY,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> ResponseT:
        """Send a request and return the answer, as `kafkaio.Client.request` does."""
        self._check()
        return await self._requester.request(request, to, self._seconds(timeout))

    async def ask(
        self,
        operation: Operation[ItemT, ValueT, AnswerT],
        items: Iterable[ItemT],
        timeout: float | None = None,  # noqa: ASYNC109
        *,
        stops_at_failure: bool = False,
    ) -> Results[ItemT, ValueT]:
        """Perform an operation on many items; see `kafkaio.client.fanout.Fanout.ask`.

        Raises:
            ClosedError: the client is closed, or not started.
        """
        self._check()
        return await self._fanout.ask(
            operation,
            items,
            self._seconds(timeout),
            stops_at_failure=stops_at_failure,
        )

    async def ask_once(
        self,
        operation: Operation[ItemT, ValueT, AnswerT],
        items: Iterable[ItemT],
        within: float,
    ) -> Results[ItemT, ValueT]:
        """Ask each broker once; see `kafkaio.client.fanout.Fanout.ask_once`.

        Raises:
            ClosedError: the client is closed, or not started.
        """
        self._check()
        return await self._fanout.ask_once(operation, items, within)

    # ---- for upper layers: the cluster -------------------------------------------

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
        self._check()
        with anyio.move_on_after(timeout):
            return await self._metadata.refresh()
        return False

    async def wait_for_update(self, timeout: float | None = None) -> ClusterView:  # noqa: ASYNC109
        """Wait for the next successful metadata update, without asking for one.

        Raises:
            RequestTimeout: none came in time; the cause is the last failure.
            ClosedError: the client is closed.
        """
        self._check()
        with anyio.CancelScope(deadline=self._deadline(timeout)):
            await self._metadata.updated.wait()
            return self.view
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
            AuthorizationError: a topic may not be described to us; raised at once.
            BrokerError: a name is none that a topic can have; raised at once.
            RequestTimeout: nobody could be asked in time.
            ClosedError: the client is closed.
        """
        self._check()
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
        found = {i: name for i in topic_ids if (name := self.view.topic_name(i))}
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

    async def connection(
        self, node_id: int, connection_class: ConnectionClass
    ) -> Connection:
        """A connection of that class to a broker, opened if there is none.

        Raises:
            BrokerNotAvailable: it cannot be made; names host, step and cause.
            AuthenticationError: the broker refuses who we are.
            ClosedError: the client is closed.
        """
        self._check()
        return await self._pool.connection(node_id, connection_class)

    def hang_up(self, node_id: int, cause: KafkaError) -> None:
        """A broker is silent: close what it answers at once, or parks, on.

        What is in flight there fails with ConnectionLost, and other brokers are asked
        what any of them knows. Reading and writing have time limits of their own.
        """
        self._pool.close_classes(
            node_id, (ConnectionClass.SHARED, ConnectionClass.COORDINATOR), cause
        )

    def end_class(self, connection_class: ConnectionClass) -> None:
        """Close all connections of a class, because its owner is gone."""
        self._pool.end_class(connection_class)

    def ready_connection(
        self, node_id: int, connection_class: ConnectionClass
    ) -> Connection | None:
        """The open connection of that class to a broker, or None; opens nothing."""
        return self._pool.ready(node_id, connection_class)

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
        self._check()
        known = self._finder.cache.get(kind, key)
        if known is not None:
            return known
        what = f"finding the coordinator of {kind.name.lower()} {key!r}"
        attempts = Attempts(what, self.retry_policy, self._seconds(timeout))
        return await attempts.run(
            lambda: self._finder.find(kind, key),
            lambda: attempts.last or self._metadata.failure,
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
        self,
        node_id: int,
        connection_class: ConnectionClass,
        cause: BaseException | None,
    ) -> None:
        del connection_class
        if cause is None:
            return  # we closed it
        self._finder.cache.forget_node(node_id)
        self._metadata.request()

    def _view_changed(self, view: ClusterView) -> None:
        self._finder.cache.retain(view.brokers.keys())
