"""`AIOKafkaClient`: what a program asks of a cluster by itself."""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from enum import IntEnum

import kafkaio
from kafkaio import messages
from kafkaio._public import public
from kafkaio.aiokafka import errors
from kafkaio.aiokafka._hosts import collect_hosts
from kafkaio.aiokafka._options import check_loop, connection_options, loop_of
from kafkaio.aiokafka._translation import made, translated, translating
from kafkaio.aiokafka.abc import AbstractTokenProvider
from kafkaio.aiokafka.cluster import ClusterMetadata
from kafkaio.aiokafka.util import create_task

__all__ = ["AIOKafkaClient", "ConnectionGroup", "CoordinationType"]

_log = logging.getLogger(__name__)
_COORDINATOR_NOT_AVAILABLE = 15


class ConnectionGroup(IntEnum):
    """A set of connections; kafkaio chooses the connection of a request by itself."""

    DEFAULT = 0
    COORDINATION = 1


class CoordinationType(IntEnum):
    """What a coordinator coordinates."""

    GROUP = 0
    TRANSACTION = 1


@public("kafkaio.aiokafka")
class AIOKafkaClient:
    """Knows a cluster, and sends single requests to its brokers.

    `bootstrap` connects, and `close` has to be called in the end. Producers, consumers
    and admin clients each have one.

    Args:
        loop: the event loop; the running one by default.
        bootstrap_servers: ``"host:port"``, several of these with commas, or a list of
            them. The port is 9092 by default.
        client_id: name that brokers see.
        metadata_max_age_ms: metadata is fetched again after this time.
        request_timeout_ms: longest wait for an answer.
        retry_backoff_ms: first pause between retries.
        ssl_context: TLS settings, needed with ``SSL`` and ``SASL_SSL``.
        security_protocol: ``PLAINTEXT``, ``SSL``, ``SASL_PLAINTEXT`` or ``SASL_SSL``.
        api_version: has no effect, and is deprecated.
        connections_max_idle_ms: an unused connection is closed after this time; None
            for never.
        sasl_mechanism: ``PLAIN``, ``SCRAM-SHA-256``, ``SCRAM-SHA-512``, ``GSSAPI`` or
            ``OAUTHBEARER``.
        sasl_plain_username: user for PLAIN and SCRAM.
        sasl_plain_password: password for PLAIN and SCRAM.
        sasl_kerberos_service_name: name of the brokers' principal, for GSSAPI.
        sasl_kerberos_domain_name: not supported.
        sasl_oauth_token_provider: returns the tokens, for OAUTHBEARER.

    Raises:
        ValueError: an option is impossible, or not supported.
        RuntimeError: no event loop is running, and none was given.
    """

    def __init__(  # noqa: PLR0913 - the options of aiokafka
        self,
        *,
        loop: asyncio.AbstractEventLoop | None = None,
        bootstrap_servers: str | Sequence[str] = "localhost",
        client_id: str = "aiokafka-0.14.0",
        metadata_max_age_ms: int = 300_000,
        request_timeout_ms: int = 40_000,
        retry_backoff_ms: int = 100,
        ssl_context: ssl.SSLContext | None = None,
        security_protocol: str = "PLAINTEXT",
        api_version: str | None = None,
        connections_max_idle_ms: int | None = 540_000,
        sasl_mechanism: str = "PLAIN",
        sasl_plain_username: str | None = None,
        sasl_plain_password: str | None = None,
        sasl_kerberos_service_name: str = "kafka",
        sasl_kerberos_domain_name: str | None = None,
        sasl_oauth_token_provider: AbstractTokenProvider | None = None,
    ) -> None:
        self._loop = loop_of(loop)
        self._options = connection_options(
            bootstrap_servers=bootstrap_servers,
            client_id=client_id,
            metadata_max_age_ms=metadata_max_age_ms,
            request_timeout_ms=request_timeout_ms,
            retry_backoff_ms=retry_backoff_ms,
            ssl_context=ssl_context,
            security_protocol=security_protocol,
            api_version=api_version,
            connections_max_idle_ms=connections_max_idle_ms,
            sasl_mechanism=sasl_mechanism,
            sasl_plain_username=sasl_plain_username,
            sasl_plain_password=sasl_plain_password,
            sasl_kerberos_service_name=sasl_kerberos_service_name,
            sasl_kerberos_domain_name=sasl_kerberos_domain_name,
            sasl_oauth_token_provider=sasl_oauth_token_provider,
        )
        # Instrumentations read these two.
        self._bootstrap_servers = bootstrap_servers
        self._client_id = client_id
        self._timeout = request_timeout_ms / 1000
        self._retry_backoff = retry_backoff_ms / 1000
        self._max_age_ms = metadata_max_age_ms
        self._topics: set[str] = set()
        self._cluster = ClusterMetadata(metadata_max_age_ms=metadata_max_age_ms)
        #: The number of the view of `native` that `_cluster` has.
        self._merged = 0
        self._native: kafkaio.Client | None = None
        # The task that updates metadata exists from the first update that is asked for.
        self._synchronizer: asyncio.Task[None] | None = None
        self._wanted = asyncio.Event()
        self._waiters: list[asyncio.Future[bool]] = []

    def __repr__(self) -> str:
        return f"<AIOKafkaClient client_id={self._client_id}>"

    @property
    def native(self) -> kafkaio.Client | None:
        """The client of kafkaio that does the work; None unless it is connected."""
        return self._native

    @property
    def hosts(self) -> list[tuple[str, int, int]]:
        """Host, port and address family of the bootstrap servers, in any order."""
        return collect_hosts(self._bootstrap_servers)

    @property
    def cluster(self) -> ClusterMetadata:
        """What is known of the cluster by now."""
        if self._native is not None:
            view = self._native.cluster
            if view.number != self._merged:
                self._merged = view.number
                self._cluster.merge(view)
        return self._cluster

    async def bootstrap(self) -> None:
        """Connect to the cluster; returns when a broker has described it.

        The bootstrap servers are tried again and again for ``request_timeout_ms``.

        Raises:
            KafkaConnectionError: none of them answered in time as a broker does; if
                they refuse the login, it is an AuthenticationFailedError, too.
            ValueError: an option is impossible.
        """
        check_loop(self._loop)
        if self._native is not None:
            return
        native = kafkaio.Client(**self._options)
        try:
            await native.start(timeout=self._timeout)
        except kafkaio.UsageError:
            raise
        except kafkaio.KafkaError as error:
            # Whatever the reason: aiokafka has one class for it.
            kind = type(translated(error))
            if not issubclass(kind, errors.KafkaConnectionError):
                kind = errors.KafkaConnectionError
            raise made(kind, error) from error
        self._native = native
        self._merged = 0

    async def close(self) -> None:
        """Close all connections. May be called again, and before `bootstrap`."""
        if self._synchronizer is not None:
            self._synchronizer.cancel()
            await asyncio.wait([self._synchronizer])
            self._synchronizer = None
        _answer(self._waiters, is_new=False)
        self._waiters = []
        if self._native is not None:
            _ = self.cluster  # takes the last metadata over
            native, self._native = self._native, None
            await native.close()

    def get_random_node(self) -> int | None:
        """Return the id of any broker; None if none is known."""
        known = [each.nodeId for each in self.cluster.brokers()]
        numbers = [each for each in known if isinstance(each, int)]
        return random.choice(numbers) if numbers else None  # noqa: S311 - any will do

    # ---- metadata --------------------------------------------------------------------

    def force_metadata_update(self) -> asyncio.Future[bool]:
        """Ask a broker for the topics that are tracked, for all if there are none.

        From the first call on it is done again every ``metadata_max_age_ms``.

        Returns:
            A future of whether a broker answered.
        """
        waiter: asyncio.Future[bool] = self._loop.create_future()
        if self._native is None:
            waiter.set_result(False)
            return waiter
        self._waiters.append(waiter)
        self._wanted.set()
        if self._synchronizer is None or self._synchronizer.done():
            self._synchronizer = create_task(self._synchronize())
        return waiter

    async def fetch_all_metadata(self) -> ClusterMetadata:
        """Ask a broker for all topics.

        Returns:
            What it answered. `cluster` stays as it is.

        Raises:
            KafkaError: no broker answered within ``request_timeout_ms``.
        """
        found = ClusterMetadata(metadata_max_age_ms=self._max_age_ms)
        found.update_metadata(await self._metadata(None))
        return found

    def add_topic(self, topic: str) -> asyncio.Future[bool]:
        """Track a topic: updates of metadata describe it.

        Returns:
            As `force_metadata_update`, which it calls if the topic was not tracked.
        """
        if topic in self._topics:
            return self._done()
        self._topics.add(topic)
        return self.force_metadata_update()

    def set_topics(self, topics: Iterable[str]) -> asyncio.Future[bool]:
        """Track these topics alone; none stands for all.

        Returns:
            As `force_metadata_update`, which it calls unless they were all tracked.

        Raises:
            TypeError: it is one text.
        """
        if isinstance(topics, str):
            raise TypeError("topics must be several names, not one text")
        wanted = set(topics)
        is_known = bool(wanted) and wanted <= self._topics
        self._topics = wanted
        return self._done() if is_known else self.force_metadata_update()

    def _done(self) -> asyncio.Future[bool]:
        waiter: asyncio.Future[bool] = self._loop.create_future()
        waiter.set_result(True)
        return waiter

    async def _synchronize(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._max_age_ms / 1000):
                    await self._wanted.wait()
            # Who asks from here on gets the next update, which has the topics of then.
            self._wanted.clear()
            waiters, self._waiters = self._waiters, []
            _answer(waiters, is_new=await self._update())

    async def _update(self) -> bool:
        try:
            answer = await self._metadata(self._topics or None)
        except errors.KafkaError as error:
            _log.warning("metadata cannot be updated: %s", error)
            self._cluster.failed_update(error)
            return False
        self._cluster.update_metadata(answer)
        # What the client of kafkaio knows beside it comes back with the next look.
        self._merged = 0
        return True

    async def _metadata(
        self, topics: Collection[str] | None
    ) -> messages.MetadataResponse:
        named = [messages.MetadataRequestTopic(name=each) for each in topics or ()]
        request = messages.MetadataRequest(topics=named or None)
        with translating():
            return await self._connected().request(request, timeout=self._timeout)

    async def _wait_on_metadata(self, topic: str) -> set[int]:
        """Return the partitions of a topic, as soon as they are known.

        Instrumentations call it before they ask for the partition of a record.
        """
        self._connected()
        give_up = self._loop.time() + self._timeout
        while (found := self.cluster.partitions_for_topic(topic)) is None:
            self._topics.add(topic)
            await self.force_metadata_update()
            if topic in self.cluster.unauthorized_topics:
                raise errors.TopicAuthorizationFailedError(topic)
            if (found := self.cluster.partitions_for_topic(topic)) is not None:
                break
            if self._loop.time() > give_up:
                raise errors.UnknownTopicOrPartitionError(topic)
            await asyncio.sleep(self._retry_backoff)
        return found

    async def _maybe_wait_metadata(self) -> None:
        """Wait for an update of metadata that is under way, if one is."""
        if self._waiters or self._wanted.is_set():
            await self.force_metadata_update()

    # ---- requests --------------------------------------------------------------------

    def _connected(self) -> kafkaio.Client:
        if self._native is None:
            raise errors.NodeNotReadyError("the client is not connected: bootstrap()")
        return self._native

    async def ready(
        self, node_id: int, *, group: ConnectionGroup = ConnectionGroup.DEFAULT
    ) -> bool:
        """Return whether a broker answers; connects to it if necessary.

        Args:
            node_id: the broker.
            group: has no effect.
        """
        del group
        if self._native is None or self.cluster.broker_metadata(node_id) is None:
            return False
        try:
            await self._native.request(
                messages.ApiVersionsRequest(),
                kafkaio.Broker(node_id),
                timeout=self._timeout,
            )
        except kafkaio.KafkaError as error:
            _log.warning("broker %s is not ready: %s", node_id, error)
            return False
        return True

    async def send(
        self,
        node_id: int,
        request: object,
        *,
        group: ConnectionGroup = ConnectionGroup.DEFAULT,
    ) -> object:
        """Send a request to a broker and return its answer.

        Args:
            node_id: the broker.
            request: a request of ``kafkaio.messages``: ``aiokafka.protocol`` is not
                there.
            group: has no effect.

        Raises:
            NotImplementedError: the request is not one of ``kafkaio.messages``.
            NodeNotReadyError: the client is not connected, or knows no such broker.
            RequestTimedOutError: no answer came within ``request_timeout_ms``.
        """
        del group
        kind = type(request)
        if not kind.__module__.startswith("kafkaio.protocol.messages"):
            raise NotImplementedError(
                f"AIOKafkaClient.send takes a request of kafkaio.messages, not "
                f"{kind.__qualname__}: kafkaio.aiokafka has no aiokafka.protocol"
            )
        client = self._connected()
        if self.cluster.broker_metadata(node_id) is None:
            raise errors.NodeNotReadyError(f"broker {node_id} is not known")
        with translating():
            return await client.request(
                request,  # type: ignore[arg-type]  # checked above
                kafkaio.Broker(node_id),
                timeout=self._timeout,
            )

    async def coordinator_lookup(
        self, coordinator_type: int, coordinator_key: str
    ) -> int:
        """Return the id of the broker that coordinates a group or transactional id.

        Args:
            coordinator_type: 0 for a group, 1 for a transactional id.
            coordinator_key: the group, or the transactional id.

        Raises:
            KafkaError: the cluster refuses to tell.
            RequestTimedOutError: it was not found within ``request_timeout_ms``.
        """
        client = self._connected()
        kind = int(coordinator_type)
        with translating():
            try:
                request = messages.FindCoordinatorRequest(
                    coordinator_keys=[coordinator_key], key_type=kind
                )
                answer = await client.request(request, timeout=self._timeout)
                code, found = max(
                    ((each.error_code, each.node_id) for each in answer.coordinators),
                    default=(_COORDINATOR_NOT_AVAILABLE, -1),
                )
            except kafkaio.UnsupportedVersion:
                # Brokers before 3.0 take one key at a time (KIP-699).
                request = messages.FindCoordinatorRequest(
                    key=coordinator_key, key_type=kind
                )
                answer = await client.request(request, timeout=self._timeout)
                code, found = answer.error_code, answer.node_id
        if code:
            raise errors.for_code(code)(
                f"the coordinator of {coordinator_key!r} was not found"
            )
        return found


def _answer(waiters: Iterable[asyncio.Future[bool]], *, is_new: bool) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(is_new)
