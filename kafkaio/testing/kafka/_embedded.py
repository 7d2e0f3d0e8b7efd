"""The embedded broker in place of a real Kafka, in a thread of its own."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import suppress
from threading import Thread
from typing import Final

from kafkaio.testing._broker.group_config import GroupConfig
from kafkaio.testing._broker.versions import release_of
from kafkaio.testing._embedded import Broker
from kafkaio.testing._security.config import SecurityConfig
from kafkaio.testing._security.files import Certificates
from kafkaio.testing.kafka._options import ClusterOptions
from kafkaio.testing.kafka._properties import PRINCIPAL_RULES
from kafkaio.testing.kafka._releases import KafkaNotStarted
from kafkaio.testing.kafka._wire import Address

_CALL_SECONDS: Final = 30.0
#: As quick as the settings of a real Kafka for tests (``properties.FAST``).
_FAST: Final = GroupConfig(
    min_session_timeout=0.5,
    consumer_session_timeout=6.0,
    consumer_heartbeat_interval=0.5,
    share_session_timeout=6.0,
    share_heartbeat_interval=0.5,
)
_FAST_CONFIG: Final = {
    "group.share.min.record.lock.duration.ms": 1000,
    "group.share.record.lock.duration.ms": 5000,
}

#: Seconds until a silent node counts as dead, as with those settings.
_SESSION_SECONDS: Final = 1.5


class EmbeddedEngine:
    """A ``Broker`` in a thread with an event loop of its own; an ``Engine``.

    Raises:
        KafkaNotStarted: The options include one that a ``Broker`` does not have.
    """

    def __init__(self, options: ClusterOptions):
        if options.plugins or options.config or options.dynamic_voters:
            raise KafkaNotStarted("the embedded broker has no such options")
        try:
            self._broker = Broker(
                nodes=options.brokers,
                as_version=release_of(options.release.short),
                first_node_id=1,
                racks=[f"r{number + 1}" for number in range(options.brokers)],
                groups=_FAST if options.fast else None,
                config=_FAST_CONFIG if options.fast else None,
                features=options.features,
                sasl=options.sasl,
                tls=options.tls,
                users=options.accounts,
                reauth_ms=options.reauth_ms or 0,
                acls=options.acls,
                security=SecurityConfig(
                    principal_rules=PRINCIPAL_RULES,
                    delegation_tokens=options.delegation_tokens,
                ),
            )
        except ValueError as error:
            raise KafkaNotStarted(f"the embedded broker: {error}") from None
        self.node_ids: list[int] = list(self._broker.nodes)
        self._has_tls = options.tls
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended = asyncio.Event()
        self._thread: Thread | None = None

    @property
    def certificates(self) -> Certificates | None:
        """The TLS files for clients, if it has TLS listeners."""
        return self._broker.certificates if self._has_tls else None

    def open(self) -> None:
        """Start all nodes and wait until they are ready."""
        started: Future[None] = Future()
        self._thread = Thread(
            target=lambda: asyncio.run(self._serve(started)),
            name="embedded Kafka",
            # A test run that ends without closing it must not wait for it.
            daemon=True,
        )
        self._thread.start()
        started.result(_CALL_SECONDS)

    async def _serve(self, started: "Future[None]") -> None:
        self._loop = asyncio.get_running_loop()
        try:
            async with self._broker:
                started.set_result(None)
                await self._ended.wait()
        except BaseException as error:
            # After the start nobody waits for the future, and the thread shows the
            # error.
            if started.done():
                raise
            started.set_exception(error)

    def close(self) -> None:
        """End all nodes."""
        if self._thread is not None and self._loop is not None:
            with suppress(RuntimeError):  # the loop of a start that failed is closed
                self._loop.call_soon_threadsafe(self._ended.set)
            self._thread.join(_CALL_SECONDS)
        self._thread = None

    def _call(self, action: Coroutine[None, None, None]) -> None:
        """Run a coroutine in the broker's thread, and wait for it."""
        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(action, self._loop).result(_CALL_SECONDS)

    def addresses(self, listener: str) -> list[Address]:
        """Return the nodes' addresses.

        Raises:
            KeyError: The listener does not exist.
        """
        found = [node.endpoints[listener] for node in self._broker.nodes.values()]
        return [(one.host, one.port) for one in found]

    def kill(self, node_id: int) -> None:
        """Kill a node; its data in memory stays, as if it were on disk."""
        self._call(self._broker.control.kill(node_id))

    def stop(self, node_id: int) -> None:
        """Shut a node down."""
        self._call(self._broker.control.stop(node_id))

    def start(self, node_id: int, *, wait: bool = True) -> None:
        """Start a node that has stopped; it is ready at once."""
        if not self._broker.nodes[node_id].is_up:
            self._call(self._broker.control.restart(node_id))

    def pause(self, node_id: int) -> None:
        """Pause a node; its sockets stay open, and other nodes soon lead."""

        async def pause() -> None:
            self._broker.control.pause(node_id, _SESSION_SECONDS)

        self._call(pause())

    def resume(self, node_id: int) -> None:
        """Resume a paused node."""

        async def resume() -> None:
            self._broker.control.resume(node_id)

        self._call(resume())

    def log(self, node_id: int) -> str:
        """Return the last requests that a node received."""
        found = [one for one in self._broker.requests if one.node == node_id]
        return "\n".join(map(str, found))
