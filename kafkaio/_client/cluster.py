"""The connection to a Kafka cluster that clients, producers and consumers work on.

A `Cluster` composes the connections (`kafkaio._net.pool`), the metadata, the
coordinators, single requests (`kafkaio._client.requester`), operations on many items
(`kafkaio._client.fanout`) and the background tasks. A `kafkaio.Client` has one. A
producer or a consumer has one of its own, or uses that of a client that it shares.

Background tasks and callbacks refer to the cluster and never to the client. So a
client that nothing refers to is collected, warns, and ends its cluster.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Hashable, Iterable
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar
from uuid import UUID
from weakref import finalize, ref

from kafkaio._arguments import seconds_of
from kafkaio._client.destinations import ANY, Destination
from kafkaio._client.finder import CoordinatorFinder
from kafkaio._client.metadata import MetadataUpdater
from kafkaio._client.nodes import Nodes
from kafkaio._client.requester import Requester
from kafkaio._client.retry import Attempts, RetryPolicy
from kafkaio._client.router import Router
from kafkaio._client.telemetry.telemetry import Telemetry
from kafkaio._config import ClientConfig
from kafkaio._dataclass import dataclass
from kafkaio._machines.api_versions import Announced, Features
from kafkaio._machines.coordinators import CoordinatorKind
from kafkaio._machines.metadata import ClusterView, EndpointPort
from kafkaio._machines.refresh import Topics
from kafkaio._net.connection import Connection, ConnectionStatistics
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._net.pool import Pool
from kafkaio._net.settings import NetSettings
from kafkaio._net.transport import Dial
from kafkaio._public import public
from kafkaio._runtime.broadcast import Broadcast
from kafkaio._runtime.clock import now
from kafkaio._runtime.lifecycle import CrashListener, Lifecycle, LifecycleState
from kafkaio._runtime.log import attach_log
from kafkaio._runtime.observer import BLOCKED_FROM, Observer, guarded
from kafkaio._runtime.scopes import CancelScope, move_on_after
from kafkaio._runtime.supervisor import Child, Supervisor
from kafkaio.errors import (
    BrokerError,
    BrokerNotAvailable,
    KafkaError,
    ProtocolError,
    RequestTimeout,
)
from kafkaio.protocol._broker_errors import broker_error, sentence
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import Request, Response, ResponseT
from kafkaio.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafkaio.types import FoundTopic, TopicPartition

if TYPE_CHECKING:
    from kafkaio._client.fanout import Fanout, Operation, Results

ConfigT = TypeVar("ConfigT", bound=ClientConfig)
ItemT = TypeVar("ItemT", bound=Hashable)
ValueT = TypeVar("ValueT")
AnswerT = TypeVar("AnswerT", bound=Response)

#: Seconds that closing may take where the caller sets no other limit.
CLOSE_TIMEOUT = 10.0
#: The attempt to fetch the first metadata after which a broken protocol is an answer.
_LAST_ATTEMPT = 4

ReadyConnection: TypeAlias = Callable[[int, ConnectionClass], Connection | None]


@public("kafkaio")
@dataclass(frozen=True, slots=True, kw_only=True)
class ClientStatistics:
    """A client at one moment.

    Attributes:
        state: ``new``, ``starting``, ``running``, ``failed``, ``closing`` or
            ``closed``.
        cluster_id: the id of the cluster, None while it is unknown.
        brokers: the number of brokers of the cluster.
        topics: the number of topics that the view describes.
        view_number: counts the changes of the view.
        coordinators: the number of coordinators that are known.
        metadata_age: seconds since the metadata was refreshed; ``inf`` before that.
        connections: the open connections.
    """

    state: str
    cluster_id: str | None
    brokers: int
    topics: int
    view_number: int
    coordinators: int
    metadata_age: float
    connections: tuple[ConnectionStatistics, ...]


#: The numbers of client ids that are in use, by what stands before them.
_numbers: dict[str, set[int]] = {}
#: The ids that were made for clients which are not made yet.
_unclaimed: dict[str, tuple[str, int]] = {}
#: Most characters of a group in a client id.
_MOST_OF_GROUP: Final = 64
#: Looked at for each commit.
_RUNNING: Final = LifecycleState.RUNNING


def with_client_id(config: ConfigT, kind: str, group: str | None = None) -> ConfigT:
    """Return a configuration with a client id: its own, or a new one.

    An id that was given stays as it is: quotas, metrics and rights go by it. A new one
    has the client's kind and a number, as those of Java's clients. A number is free
    again once its client was collected, so the ids of a process that makes a client for
    each piece of work stay few: brokers keep metrics and quotas for each id.

    Args:
        config: the configuration of one client.
        kind: what the client is, such as ``producer``.
        group: its group, if it has one.
    """
    if config.client_id:
        return config
    prefix = f"kafkaio-{kind}-" + (f"{group[:_MOST_OF_GROUP]}-" if group else "")
    numbers = _numbers.setdefault(prefix, set())
    number = 1
    while number in numbers:
        number += 1
    numbers.add(number)
    client_id = f"{prefix}{number}"
    _unclaimed[client_id] = prefix, number
    # All of it was checked before: `replace` would check it again.
    made = copy(config)
    object.__setattr__(made, "client_id", client_id)
    return made


def _keep_client_id(cluster: Cluster, client_id: str) -> None:
    # Until the cluster was collected. An id that was given has no number.
    found = _unclaimed.pop(client_id, None)
    if found is not None:
        prefix, number = found
        finalize(cluster, _numbers[prefix].discard, number).atexit = False


class Cluster:
    """The connections to the brokers of a cluster, and its metadata.

    It belongs to the event loop and to the process in which it was started.

    Args:
        config: the options.
        observer: an object with any of the methods of `kafkaio.Observer`, or a list of
            such objects.
        dial: makes transports; None for TCP and TLS.

    Attributes:
        config: the options.
        observer: is notified of events.
        features: the finalized features, the newest that any broker has announced.
            Brokers announce them when a connection opens, so a new level is seen with
            the next connection.
        announced: the versions of the APIs that each broker has announced.
        life: whether it can be used, and why not.
        retry_policy: the back-off of all retries, for `kafkaio._client.retry.Attempts`.
        telemetry: pushes metrics to the brokers, if they ask for them (KIP-714).
    """

    # None before it is first used. Not a `cached_property`: Python 3.11 has no inline
    # cache for the other attributes of an object that has one.
    _fanout: Fanout | None = None

    def __init__(
        self,
        config: ClientConfig,
        observer: object | None = None,
        dial: Dial | None = None,
    ) -> None:
        self.config = config
        _keep_client_id(self, config.client_id)
        self.observer: Observer = guarded(observer)
        self.features: Features = Features()
        self.announced: Announced = Announced()
        # The loop is watched only if an observer takes the reports: watching wakes the
        # process ten times a second.
        self._is_watched = "loop_blocked" in vars(self.observer)
        self.life: Lifecycle = Lifecycle("client", config.client_id)
        # First, so that tasks that wait for an answer fail before any listener runs.
        self.life.add_crash_listener(self._crashed)
        self._supervisor = Supervisor(config.client_id, self.life.crashed)
        self._pool = Pool(
            NetSettings.from_config(config),
            config.first_nodes,
            self._supervisor.start_soon,
            dial=dial,
            observer=self.observer,
            on_lost=self._connection_lost,
            on_opened=self._connection_opened,
        )
        #: Returns the open connection of a class to a broker, or None.
        self.ready_connection: ReadyConnection = self._pool.ready
        # Invariant: exactly the classes on loan, with weak references to borrowers, so
        # that a reader that was dropped without `close` does not keep its class.
        self._borrowed: dict[ConnectionClass, ref[object]] = {}
        recovers = config.metadata_recovery_strategy == "rebootstrap"
        self._nodes = Nodes(self._pool, recovers=recovers)
        self._metadata = MetadataUpdater(config, self._nodes, self.observer)
        self._limit = config.request_timeout_ms / 1000
        self._finder = CoordinatorFinder(self._nodes, self._metadata, self._limit)
        # Never succeeds: it fails once the cluster is closed or has crashed, which ends
        # every back-off at once (`_sleep`).
        self._ended = Broadcast()
        self.retry_policy: RetryPolicy = RetryPolicy.from_config(
            config, self.observer, self._sleep
        )
        self._router = Router(
            self._pool,
            self._nodes,
            self._metadata,
            self._finder,
            uses_controllers=self.uses_controllers,
        )
        policy = self.retry_policy
        self._requester = Requester(config, self._metadata, self._router, policy)
        self._metadata.listen(self._view_changed)
        self.telemetry: Telemetry = Telemetry(
            config, self._nodes, self.observer, self.statistics
        )

    def _make_fanout(self) -> Fanout:
        # A producer without transactions has no operations on many items.
        from kafkaio._client.fanout import Fanout

        self._fanout = Fanout(self._router, self.retry_policy, self._limit)
        return self._fanout

    @property
    def view(self) -> ClusterView:
        """The metadata as it is now: an immutable snapshot."""
        return self._metadata.view

    @property
    def uses_controllers(self) -> bool:
        """Whether it consists of the controllers alone (KIP-919)."""
        return bool(self.config.bootstrap_controllers)

    def statistics(self) -> ClientStatistics:
        """Return the state of the connections and of the metadata."""
        view = self._metadata.view
        return ClientStatistics(
            state=self.life.state.value,
            cluster_id=view.cluster_id,
            brokers=len(view.brokers),
            topics=len(view.topics),
            view_number=view.number,
            coordinators=len(self._finder.cache),
            metadata_age=self._metadata.age,
            connections=self._pool.statistics(),
        )

    # ---- start and close -----------------------------------------------------------

    async def start(self, timeout: float | None = None) -> None:
        """Connect to the cluster, as `kafkaio.Client.start` does."""
        deadline = self._deadline(timeout)
        # From here on a second `start` raises, also while this one waits.
        self.life.begin()
        servers = ", ".join(self.config.addresses)
        if self.config.log:
            is_debugging = attach_log(self.observer, self.config.client_id, servers)
            self._is_watched = self._is_watched or is_debugging
        try:
            self._supervisor.start(self._metadata.run, self._finder.run)
            if self._is_watched:
                from kafkaio._runtime.watchdog import watch_loop

                self._supervisor.start_soon(partial(watch_loop, self.observer), "watch")
            await self._first_answer(deadline, servers)
            self.life.started()
        except BaseException:
            # A cancelled start, too: otherwise its tasks would run without an owner.
            await self.close()
            raise
        self.observer.started("client", self.config.client_id, self)

    async def _first_answer(self, deadline: float, servers: str) -> None:
        resolved_by = now() + self.config.bootstrap_resolve_timeout_ms / 1000
        with CancelScope(deadline=deadline):
            # One attempt may fail for a reason that passes, such as a broker that is
            # starting. The updater goes on trying; only a final failure ends the wait.
            while not self._metadata.view.number:
                limit = resolved_by if self._nodes.is_unresolved else math.inf
                with CancelScope(deadline=limit):
                    await self._metadata.attempted.wait()
                failure = self._metadata.failure
                if failure is not None and self._is_final(failure):
                    raise failure
                if self._nodes.is_unresolved and now() >= resolved_by:
                    raise self._unresolved()
            return
        failure = self._metadata.failure
        if failure is None and self._pool.awaits_credentials:
            raise BrokerNotAvailable(
                "no broker was asked: the client waits for credentials "
                f"(sasl_mechanism={self.config.sasl_mechanism})"
            )
        why = self._metadata.why_late() or f"no answer yet from {servers}"
        raise BrokerNotAvailable(f"the cluster did not answer: {why}") from failure

    def _unresolved(self) -> BrokerNotAvailable:
        limit = self.config.bootstrap_resolve_timeout_ms
        when = f" within {limit / 1000:g} s" if limit else ""
        failure = self._metadata.failure
        error = BrokerNotAvailable(
            f"no name of a bootstrap server could be resolved{when} "
            f"(bootstrap_resolve_timeout_ms={limit}): {failure}"
        )
        error.__cause__ = failure
        return error

    def why_undescribed(self) -> str:
        """Why the metadata is late, for error messages; empty if it is not."""
        return self._metadata.why_late()

    def _is_final(self, failure: KafkaError) -> bool:
        """Whether another attempt to fetch the first metadata would fail as well."""
        if isinstance(failure, ProtocolError):
            # A single malformed answer may be an accident, such as that of a proxy
            # which is restarting.
            return self._metadata.failures >= _LAST_ATTEMPT
        return not failure.retriable

    async def close(self, timeout: float | None = None) -> None:
        """Close all connections and end all tasks, as `kafkaio.Client.close` does."""
        limit = CLOSE_TIMEOUT if timeout is None else seconds_of("timeout", timeout)
        if self.life.begin_close() is None:
            # Another call closes, or closing goes on after a call that was cancelled.
            await self.life.closed()
            return
        # Before the first await: calls that wait on the cluster fail at once, however
        # long closing takes.
        self._fail_waiters()
        await self.life.close(None, partial(self._end, now() + limit))

    async def _end(self, deadline: float) -> None:
        with CancelScope(shield=True, deadline=deadline):
            try:
                # The last push (KIP-714) needs a connection, so it precedes the pool.
                await self.telemetry.finish(deadline)
                await self._pool.aclose()
            finally:
                if self.life.ended():
                    self.observer.closed("client", self.config.client_id, self)
                # Also when the time is over: otherwise the tasks would never end.
                await self._supervisor.aclose()

    def _fail_waiters(self) -> None:
        why = self.life.why_unusable
        self._metadata.updated.fail(why)
        self._metadata.attempted.fail(why)
        self._finder.fail(why)
        self._ended.fail(why)
        self.telemetry.fail(why)

    def _crashed(self, cause: BaseException) -> None:
        del cause
        self._fail_waiters()
        for node_id in (*self._nodes.known, *self._pool.bootstrap):
            # Tasks that wait for an answer fail now, not after the request timeout.
            self._pool.close_node(node_id)

    def abandon(self) -> None:
        """Begin to close without waiting, because the owner was garbage collected."""
        self.life.abandon()
        self._pool.close()
        self._supervisor.cancel()
        self._fail_waiters()

    def _check(self) -> None:
        self.life.check(LifecycleState.STARTING)

    def report_late_timer(self, seconds: float) -> None:
        """Report to the observer that the event loop ran a timer late.

        Nothing is reported while a thread watches the loop, since that reports it.

        Args:
            seconds: how late the timer was.
        """
        if not self._is_watched and seconds > BLOCKED_FROM:
            self.observer.loop_blocked(seconds, "")

    async def _sleep(self, seconds: float) -> None:
        with move_on_after(seconds):
            await self._ended.wait()

    def _seconds(self, timeout: float | None) -> float:
        if timeout is None:
            return self.config.default_api_timeout_ms / 1000
        # Negative values are allowed: callers pass the rest of their own time limit,
        # which may be over.
        return seconds_of("timeout", timeout, -math.inf)

    def _deadline(self, timeout: float | None) -> float:
        return now() + self._seconds(timeout)

    # ---- requests ------------------------------------------------------------------

    async def request(
        self,
        request: Request[ResponseT],
        to: Destination = ANY,
        *,
        timeout: float | None = None,
    ) -> ResponseT:
        """Send a request and return the answer, as `kafkaio.Client.request` does."""
        self._check()
        return await self._requester.request(request, to, self._seconds(timeout))

    async def ask(
        self,
        operation: Operation[ItemT, ValueT, AnswerT],
        items: Iterable[ItemT],
        timeout: float,
        *,
        stops_at_failure: bool = False,
    ) -> Results[ItemT, ValueT]:
        """Perform an operation on many items; see `Fanout.ask`.

        Raises:
            ClosedError: the client is closed, or not started.
        """
        self._check()
        fanout = self._fanout or self._make_fanout()
        return await fanout.ask(
            operation, items, timeout, stops_at_failure=stops_at_failure
        )

    async def ask_once(
        self,
        operation: Operation[ItemT, ValueT, AnswerT],
        items: Iterable[ItemT],
        within: float,
    ) -> Results[ItemT, ValueT]:
        """Ask each broker once; see `Fanout.ask_once`.

        Raises:
            ClosedError: the client is closed, or not started.
        """
        self._check()
        fanout = self._fanout or self._make_fanout()
        return await fanout.ask_once(operation, items, within)

    # ---- metadata ------------------------------------------------------------------

    def watch_topics(self, owner: object, topics: Topics | None) -> None:
        """Keep the description of some topics up to date for ``owner``.

        Topics that nobody watched before are fetched at once.

        Args:
            owner: identifies the caller; its next call replaces the topics.
            topics: names, ``ALL_TOPICS``, or None to stop watching.
        """
        self._metadata.watch(owner, topics)

    def request_refresh(self, *topics: str) -> None:
        """Request metadata; a background task fetches it, with a back-off.

        Args:
            topics: topics that the view is to describe even if nobody watches them;
                they are forgotten after ``metadata_max_idle_ms``.
        """
        self._metadata.request(topics)

    async def refresh(self, timeout: float) -> bool:
        """Fetch metadata at once, without the back-off after the last update.

        Metadata that is younger than ``retry_backoff_ms`` is not fetched again.

        Args:
            timeout: seconds.

        Returns:
            Whether it succeeded: False if the attempt failed, or took longer.

        Raises:
            ClosedError: the client is closed.
        """
        self._check()
        with move_on_after(timeout):
            return await self._metadata.refresh()
        return False

    async def wait_for_update(self, timeout: float | None = None) -> ClusterView:
        """Wait for the next metadata, without requesting it.

        Raises:
            RequestTimeout: none came in time; the cause is the last failure.
            ClosedError: the client is closed.
        """
        self._check()
        with CancelScope(deadline=self._deadline(timeout)):
            await self._metadata.updated.wait()
            return self.view
        late = self._metadata.why_late()
        why = f": {late}" if late else ""
        raise RequestTimeout(f"no metadata in time{why}") from self._metadata.failure

    async def wait_for_topics(
        self,
        topics: Collection[str],
        timeout: float | None = None,
    ) -> ClusterView:
        """Wait until the view describes every topic; request the missing ones.

        Args:
            topics: names.
            timeout: seconds; ``default_api_timeout_ms`` by default.

        Raises:
            UnknownTopicOrPartition: the cluster still has no such topic.
            AuthorizationError: the client may not see a topic; raised at once.
            BrokerError: no topic can have one of the names; raised at once.
            AuthenticationError: all brokers refuse the client; raised at once.
            KafkaError: no broker answered in time; the last failure.
            ClosedError: the client is closed.
        """
        self._check()
        with CancelScope(deadline=self._deadline(timeout)):
            return await self._metadata.wait_for_topics(topics)
        raise self._metadata.why_missing(topics)

    async def wait_for_partitions(
        self,
        partitions: Collection[TopicPartition],
        timeout: float | None = None,
    ) -> None:
        """Wait until the view has some partitions.

        The view may be older than a partition, so a partition is missing only if it
        is missing in metadata that was fetched during the call.

        Args:
            partitions: the partitions.
            timeout: seconds; ``default_api_timeout_ms`` by default.

        Raises:
            UnknownTopicOrPartition: the cluster has no such topic or partition.
            KafkaError: as in `wait_for_topics` and `wait_for_update`.
        """
        deadline = self._deadline(timeout)
        names = {tp.topic for tp in partitions}
        view = await self.wait_for_topics(names, deadline - now())
        if _missing(view, partitions) is not None:
            # The view may be from before the partitions were added. Only metadata that
            # is fetched from here on proves that one is missing.
            self.request_refresh(*names)
            await self.wait_for_update(deadline - now())
            view = await self.wait_for_topics(names, deadline - now())
        tp = _missing(view, partitions)
        if tp is not None:
            raise broker_error(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"topic {tp.topic!r} has no partition {tp.partition}",
            )

    async def partitions_for(
        self,
        topics: Collection[str] | re.Pattern[str],
        timeout: float | None = None,
    ) -> dict[str, list[int]]:
        """Return the partitions of topics, as a broker knows them now.

        Args:
            topics: names; or a pattern of whole names, which matches no internal topic.
            timeout: seconds; ``default_api_timeout_ms`` by default.

        Returns:
            The numbers of the partitions, ascending, by the topics' names, sorted.

        Raises:
            UnknownTopicOrPartition: a topic named does not exist; raised at once.
            AuthorizationError: the client may not see a topic named.
            BrokerError: no topic can have one of the names.
            RequestTimeout: no broker answered in time.
            ClosedError: the client is closed.
        """
        found = await self.topics_for(topics, timeout)
        return {name: topic.partitions for name, topic in found.items()}

    async def topics_for(
        self,
        topics: Collection[str] | re.Pattern[str],
        timeout: float | None = None,
        *,
        skips_unknown: bool = False,
    ) -> dict[str, FoundTopic]:
        """Return the ids and partitions of topics, as a broker knows them now.

        Args:
            topics: names; or a pattern of whole names, which matches no internal topic.
            timeout: seconds; ``default_api_timeout_ms`` by default.
            skips_unknown: leave out topics named that do not exist.

        Returns:
            The topics found, by name, in the order of their names.

        Raises:
            KafkaError: as in `partitions_for`.
        """
        names = None if isinstance(topics, re.Pattern) else frozenset(topics)
        if names is not None and not names:
            # Before version 1 of Metadata an empty list stands for all topics.
            return {}
        wanted = None
        if names is not None:
            wanted = [MetadataRequestTopic(name=name) for name in sorted(names)]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        answer = await self.request(request, timeout=timeout)
        found: dict[str, FoundTopic] = {}
        for topic in answer.topics:
            name = topic.name or ""
            if isinstance(topics, re.Pattern):
                if topic.is_internal or topics.fullmatch(name) is None:
                    continue
            # A topic whose leaders are being elected exists, and lists its partitions.
            elif topic.error_code not in {0, ErrorCode.LEADER_NOT_AVAILABLE}:
                is_unknown = topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                if is_unknown and skips_unknown:
                    continue
                raise broker_error(
                    topic.error_code,
                    sentence(topic.error_code, f"look up topic {name!r}"),
                    api=request.API_KEY,
                    topic=name,
                )
            topic_id = topic.topic_id if topic.topic_id.int else None
            numbers = sorted(part.partition_index for part in topic.partitions)
            found[name] = FoundTopic(topic_id, numbers)
        return {name: found[name] for name in sorted(found)}

    async def check_topics(self, topics: Iterable[str], timeout: float) -> None:
        """Check that topics exist, without waiting for them and without creating them.

        Raises:
            KafkaError: as in `partitions_for`.
        """
        view = self.view
        unknown = {name for name in topics if view.partition_count(name) is None}
        await self.partitions_for(unknown, timeout)

    async def missing_partitions(
        self,
        partitions: Iterable[TopicPartition],
        timeout: float,
    ) -> dict[TopicPartition, KafkaError]:
        """Return the partitions that do not exist, without waiting for them.

        A broker is asked about topics whose partitions are missing in the view.

        Returns:
            The reasons: UnknownTopicOrPartition, or why a topic cannot be described.

        Raises:
            RequestTimeout: no broker answered in time.
            ClosedError: the client is closed.
        """
        unseen = self.view.unseen(partitions)
        # Controllers lead no partitions, and refuse requests for metadata of topics.
        if not unseen or self.uses_controllers:
            return {}
        names = sorted({tp.topic for tp in unseen})
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in names],
            allow_auto_topic_creation=False,
        )
        answer = await self.request(request, timeout=timeout)
        topics = {topic.name: topic for topic in answer.topics}
        missing: dict[TopicPartition, KafkaError] = {}
        for tp in unseen:
            topic = topics.get(tp.topic)
            code = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            if topic is not None:
                # With LEADER_NOT_AVAILABLE the topic exists: the request that follows
                # waits for the leader.
                code = topic.error_code
                numbers = {it.partition_index for it in topic.partitions}
                if code in {0, ErrorCode.LEADER_NOT_AVAILABLE}:
                    if tp.partition in numbers:
                        continue
                    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            missing[tp] = broker_error(
                code,
                sentence(code, f"look up partition {tp.topic}-{tp.partition}"),
                api=request.API_KEY,
                topic=tp.topic,
            )
        return missing

    async def topic_names(
        self,
        topic_ids: Collection[UUID],
        timeout: float | None = None,
    ) -> dict[UUID, str]:
        """Return the names of topics, from the view or else from one broker.

        Args:
            topic_ids: ids (KIP-516).
            timeout: seconds; ``default_api_timeout_ms`` by default.

        Returns:
            Names by ids; a topic that the broker does not know is left out.

        Raises:
            RequestTimeout: no broker answered in time.
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
        """Call ``listener`` with every new view.

        It is called on the event loop. It must not raise: that crashes the client.

        Returns:
            A function that removes the listener.
        """
        return self._metadata.listen(listener)

    def apply_leader_hint(
        self,
        tp: TopicPartition,
        leader_id: int,
        leader_epoch: int,
        endpoints: Iterable[EndpointPort] = (),
    ) -> bool:
        """Apply the leader that a Produce or Fetch answer named (KIP-951).

        Metadata is requested in any case.

        Returns:
            Whether it is newer than the one known: then the request can be sent to
            the new leader at once.
        """
        return self._metadata.apply_leader(tp, leader_id, leader_epoch, endpoints)

    def learned_epoch(self, tp: TopicPartition, epoch: int) -> bool:
        """Note the leader epoch of an answer; a newer one requests metadata.

        Returns:
            Whether it is newer than the one known.
        """
        return self._metadata.learned_epoch(tp, epoch)

    # ---- connections, coordinators, tasks ------------------------------------------

    async def connection(
        self, node_id: int, connection_class: ConnectionClass
    ) -> Connection:
        """Return a connection of that class to a broker; opens it if there is none.

        Raises:
            BrokerNotAvailable: it cannot be made; names host, step and cause.
            AuthenticationError: the broker refuses the client's identity.
            ClosedError: the client is closed.
        """
        self._check()
        return await self._pool.connection(node_id, connection_class)

    def prepare(self, node_id: int, connection_class: ConnectionClass) -> None:
        """Begin to open a connection that will be needed soon; does not wait.

        If that fails, the call that needs the connection gets the error.
        """
        self._pool.prepare(node_id, connection_class)

    def close_connections(self, node_id: int, cause: KafkaError) -> None:
        """Close the shared and the coordinator connections to a silent broker.

        Requests in flight on them fail with ConnectionLost, and requests that any
        broker can answer go to others. The connections that fetch and produce stay:
        their requests have time limits of their own.

        Args:
            node_id: the broker.
            cause: why the connections are closed.
        """
        self._pool.close_classes(
            node_id, (ConnectionClass.SHARED, ConnectionClass.COORDINATOR), cause
        )

    def end_class(self, connection_class: ConnectionClass) -> None:
        """Close all connections of a class, because its owner is gone."""
        self._pool.end_class(connection_class)

    def borrow_class(self, kind: ConnectionClass, borrower: object) -> ConnectionClass:
        """Lend a class of connections that nobody else uses meanwhile.

        Its connections stay open for the next borrower. A class is free again when it
        is returned, or when its borrower is collected.

        Args:
            kind: the kind of the class.
            borrower: who uses it; weakly referred to.
        """
        # The lowest class that is free: its connections may still be open, so a reader
        # that follows another does not open new ones.
        number = 0
        while True:
            lent = kind.of(number)
            holder = self._borrowed.get(lent)
            if holder is None or holder() is None:
                self._borrowed[lent] = ref(borrower)
                return lent
            number += 1

    def return_class(self, lent: ConnectionClass) -> None:
        """Take back what `borrow_class` has lent."""
        self._borrowed.pop(lent, None)

    def expect_coordinators(self, kind: CoordinatorKind, keys: Iterable[str]) -> None:
        """Announce groups or ids that will be used soon: the next lookup has them, too.

        Args:
            kind: whether they are groups or transactional ids.
            keys: names, of which the first hundred count; they replace those before.
        """
        self._finder.expect(kind, keys)

    def ready_coordinator(
        self, kind: CoordinatorKind, key: str, connection_class: ConnectionClass
    ) -> Connection | None:
        """Return an open connection to the coordinator, as far as both are known.

        None while the client does not run: `coordinator` and `connection` say why.
        """
        node_id = self._finder.cache.get(kind, key)
        if node_id is None or self.life.state is not _RUNNING:
            return None
        return self._pool.ready(node_id, connection_class)

    async def coordinator(
        self,
        kind: CoordinatorKind,
        key: str,
        *,
        timeout: float | None = None,
        on_failure: Callable[[KafkaError], None] | None = None,
    ) -> int:
        """Return the node id of a coordinator; finds it if it is not known.

        Args:
            kind: whether it coordinates a group or a transactional id.
            key: the group, or the transactional id.
            timeout: seconds.
            on_failure: called with the reason of each attempt that found none.

        Raises:
            RequestTimeout: it was not found in time; the cause is the last failure.
            AuthorizationError: the client may not know it.
            ClosedError: the client is closed.
        """
        self._check()
        known = self._finder.cache.get(kind, key)
        if known is not None:
            return known
        what = f"finding the coordinator of {kind.name.lower()} {key!r}"
        attempts = Attempts(what, self.retry_policy, self._seconds(timeout))
        attempts.held = self._finder.why_late

        async def find() -> int:
            try:
                return await self._finder.find(kind, key)
            except KafkaError as error:
                if on_failure is not None:
                    on_failure(error)
                raise

        return await attempts.run(find, lambda: attempts.last or self._metadata.failure)

    def forget_coordinator(self, kind: CoordinatorKind, key: str, node_id: int) -> None:
        """Forget the coordinator of ``key``, if it is ``node_id``."""
        self._finder.cache.forget(kind, key, node_id)

    def start_soon(self, child: Child, name: str) -> None:
        """Start a background task, which is cancelled when the cluster is closed.

        Raises:
            ClosedError: the client is not running.
        """
        self._supervisor.start_soon(child, name)

    def add_crash_listener(self, listener: CrashListener) -> Callable[[], None]:
        """Call ``listener`` once if a background task crashes.

        Returns:
            A function that removes the listener.
        """
        return self.life.add_crash_listener(listener)

    # ---- reports of the parts ------------------------------------------------------

    def _connection_opened(self, connection: Connection) -> None:
        self.features.learn(connection.versions)
        # Bootstrap servers have negative ids. They are brokers, too, so counting them
        # would count one broker twice.
        if connection.node_id >= 0:
            self.announced.learn(connection.node_id, connection.versions)
        # A connection may finish opening while the cluster closes: no task then.
        if self.telemetry.may_start(connection) and self._supervisor.is_running:
            self._supervisor.start_soon(self.telemetry.run, "telemetry")

    def _connection_lost(
        self,
        node_id: int,
        connection_class: ConnectionClass,
        cause: BaseException | None,
    ) -> None:
        del connection_class
        if cause is None:  # this side closed it
            return
        # A broker that fails takes its coordinators along, and its partitions get other
        # leaders: look both up again before the next request fails there.
        self._finder.cache.forget_node(node_id)
        if _is_another_broker(cause):
            self._metadata.misled()
        else:
            self._metadata.request()

    def _view_changed(self, view: ClusterView) -> None:
        # A coordinator that left the cluster cannot answer; the next use looks it up.
        self._finder.cache.retain(view.brokers.keys())


def _is_another_broker(cause: BaseException) -> bool:
    """Whether a connection was refused by a broker other than the one expected."""
    refusal = cause.__cause__
    return (
        isinstance(refusal, BrokerError)
        and refusal.code == ErrorCode.REBOOTSTRAP_REQUIRED
    )


def _missing(
    view: ClusterView, partitions: Iterable[TopicPartition]
) -> TopicPartition | None:
    for tp in partitions:
        if tp.partition >= (view.partition_count(tp.topic) or 0):
            return tp
    return None
