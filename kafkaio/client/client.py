"""The client, as users see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self, Unpack

from kafkaio._arguments import type_name
from kafkaio._machines.metadata import ClusterView
from kafkaio._net.transport import Dial
from kafkaio._runtime.lifecycle import Closeable, State
from kafkaio.client.cluster import ClientStatistics, Cluster
from kafkaio.client.destinations import ANY, Destination, check_destination
from kafkaio.config import ClientConfig, ClientOptions
from kafkaio.config.signature import OptionsSignature
from kafkaio.errors import ArgumentTypeError
from kafkaio.protocol.message import Request, ResponseT

__all__ = ["Client", "cluster_of"]


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
        config = ClientConfig.of(bootstrap_servers, options)
        self._set_up(Cluster(config, observer))

    def _set_up(self, cluster: Cluster) -> None:
        self._life = cluster.life
        self._cluster = cluster

    @classmethod
    def from_config(
        cls,
        config: ClientConfig,
        *,
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
        client._set_up(Cluster(config, observer, dial))
        return client

    @classmethod
    def from_properties(
        cls, properties: Mapping[str, object], *, observer: object | None = None
    ) -> Self:
        """Make a client of Kafka's dotted names, such as ``bootstrap.servers``.

        Raises:
            ConfigurationError: a name is unknown, or a value is impossible.
        """
        config = ClientConfig.from_properties(properties)
        return cls.from_config(config, observer=observer)

    def __repr__(self) -> str:
        numbers = self.statistics()
        return (
            f"<Client {self.config.client_id!r} {numbers.state} | "
            f"{numbers.cluster_id or 'unknown cluster'}, "
            f"{numbers.brokers} brokers, {numbers.topics} topics | "
            f"{len(numbers.connections)} connections>"
        )

    @property
    def config(self) -> ClientConfig:
        """The options."""
        return self._cluster.config

    @property
    def cluster(self) -> ClusterView:
        """What is known of the cluster: an immutable snapshot."""
        return self._cluster.view

    def statistics(self) -> ClientStatistics:
        """The client as it is now."""
        return self._cluster.statistics()

    def _abandon(self) -> None:
        self._life.soon(self._cluster.abandon)

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
        await self._cluster.start(timeout)

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
        await self._cluster.close(timeout)

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
        self._life.check(State.STARTING)
        _check_request(request)
        check_destination(to)
        return await self._cluster.request(request, to, timeout=timeout)


def _check_request(request: object) -> None:
    if not isinstance(request, Request):
        raise ArgumentTypeError(
            f"request must be a request of kafkaio.messages, not {type_name(request)}"
        )


def cluster_of(client: Client) -> Cluster:
    """Return the cluster of a client, for a producer or a consumer that shares it.

    Whoever shares the cluster refers to the client as well: a client that nothing
    refers to ends its cluster.
    """
    return client._cluster  # the same module
