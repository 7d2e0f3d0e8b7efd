"""The connections of one client: one per broker and class, opened when needed.

Callers that need the same connection share one attempt to open it, which runs in a task
of its own. So cancelling a caller ends no attempt, and all callers get its result.
Failed attempts and lost connections delay the next attempt (``ReconnectSchedule``).

A connection is in one of three places: opening, open, or retired. A retired connection
takes no new requests, and closes when the last one is answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias

from kafkaio._machines.api_versions import VersionRechecks
from kafkaio._machines.backoff import ReconnectSchedule
from kafkaio._machines.bounds import why_unreachable
from kafkaio._machines.connection.handshake import FirstVersions
from kafkaio._net.budget import ReceiveBudget
from kafkaio._net.connection import LINGER, Connection, ConnectionStatistics, Sasl
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._net.dialling import TcpDial
from kafkaio._net.settings import NetSettings
from kafkaio._net.transport import Dial
from kafkaio._runtime.clock import now, roll
from kafkaio._runtime.observer import Observer
from kafkaio._runtime.scopes import CancelScope
from kafkaio._runtime.supervisor import Child
from kafkaio._runtime.wakeup import Wakeup
from kafkaio.errors import (
    AuthenticationError,
    BrokerNotAvailable,
    ClosedError,
    ConfigurationError,
    KafkaError,
    ProtocolError,
)
from kafkaio.protocol import _api_numbers as apis
from kafkaio.protocol.messages.metadata import MetadataRequest
from kafkaio.types import Broker

#: Rejections in a row by one address before calls fail with AuthenticationError.
_PATIENCE: Final = 3
#: Refused addresses that are remembered, so that each is reported only once.
_MOST_REFUSED: Final = 10_000
#: Characters of an impossible host that an error shows.
_SHOWN: Final = 255
#: Mechanisms whose messages have the secret itself.
_REVEALING: Final = frozenset({"PLAIN", "OAUTHBEARER"})

_Key: TypeAlias = tuple[int, ConnectionClass]
_Address: TypeAlias = tuple[str, int]
#: Starts a background task: ``Supervisor.start_soon``.
StartSoon: TypeAlias = Callable[[Child, str], None]
#: Called for a connection that is ready for requests.
Opened: TypeAlias = Callable[[Connection], None]
#: Called for a connection that ended, or could not be opened: node, class, cause.
Lost: TypeAlias = Callable[[int, ConnectionClass, BaseException | None], None]


class Pool:
    """Opens, shares and closes connections.

    Brokers of the cluster have the ids of its metadata, from 0 up. The bootstrap
    servers have negative ids, ``bootstrap``, because it is unknown which brokers they
    are.

    Args:
        settings: how to connect.
        bootstrap_servers: (host, port) pairs.
        start_soon: starts the task in which a connection is opened.
        dial: makes transports.
        observer: observes connections and requests; must not raise.
        on_lost: called for every connection that ended or could not be opened.
        on_opened: called for every connection before it is handed out.
    """

    def __init__(  # noqa: PLR0913 - the network, and its observers
        self,
        settings: NetSettings,
        bootstrap_servers: Sequence[tuple[str, int]],
        start_soon: StartSoon,
        *,
        dial: Dial | None = None,
        observer: Observer | None = None,
        on_lost: Lost | None = None,
        on_opened: Opened | None = None,
    ) -> None:
        self._settings = settings
        self._bootstrap = {
            -1 - index: Broker(-1 - index, host, port)
            for index, (host, port) in enumerate(bootstrap_servers)
        }
        self._start_soon = start_soon
        self._dial: Dial = TcpDial() if dial is None else dial
        self._observer = Observer() if observer is None else observer
        self._on_lost = on_lost
        self._on_opened = on_opened
        self._brokers: Mapping[int, Broker] = {}
        # The cluster that they belong to; None while that is unknown.
        self._cluster_id: str | None = None
        # Invariant: a key is in at most one of the two.
        self._open: dict[_Key, Connection] = {}
        self._opening: dict[_Key, _Opening] = {}
        # Those that are being opened.
        self._trying: dict[Connection, None] = {}
        # Retired: they take no new requests, but answers are still due.
        self._retired: dict[Connection, None] = {}
        self._schedules: dict[_Key, ReconnectSchedule] = {}
        # Attempts whose task is running, cancelled ones included.
        self._attempts: dict[_Opening, None] = {}
        self._attempt_ended = Wakeup()
        # `aclose` may run several times at once, and a Wakeup has one waiter.
        self._ending = asyncio.Lock()
        self._closing: list[Connection] = []
        self._is_closed = False
        #: Whether bootstrap servers serve until a broker is connected.
        self.is_leaving_bootstrap: bool = False
        self._has_warned = False
        # Rejections in a row by each address; and addresses whose connections answered
        # requests before they ended.
        self._turned_away: dict[_Address, int] = {}
        self._answered: set[_Address] = set()
        self._version_rechecks = VersionRechecks()
        self._first_versions = FirstVersions(settings.highest_api_versions)
        self._budget = ReceiveBudget(settings.receive_memory)
        self._faults = _Faults(settings.reconnect.max_ms / 1000)
        # Advertised addresses that were refused, each to be reported once.
        self._refused: set[tuple[str, int]] = set()
        self._sasl = None
        if settings.login is not None:
            self._sasl = Sasl(
                login=settings.login,
                start_soon=start_soon,
                timeout=settings.set_up.base_ms / 1000,
                replace=self._replace,
            )

    def __repr__(self) -> str:
        return f"<Pool {len(self._open)} open, {len(self._opening)} opening>"

    @property
    def bootstrap(self) -> tuple[int, ...]:
        """The ids of the bootstrap servers, in their order: -1, -2, ..."""
        return tuple(self._bootstrap)

    def statistics(self) -> tuple[ConnectionStatistics, ...]:
        """The state of every open connection."""
        return tuple(connection.statistics() for connection in self._open.values())

    def set_brokers(
        self, brokers: Mapping[int, Broker], cluster_id: str | None = None
    ) -> None:
        """Set the addresses of the cluster's brokers, and the id of the cluster.

        New connections check both with the broker, where it can (KIP-1242).

        A connection to an address that its broker has left finishes what is in flight,
        and new requests get a new connection. A broker that is missing keeps its
        connections, because it may only be restarting.
        """
        self._brokers = dict(brokers)
        self.is_leaving_bootstrap = self.is_leaving_bootstrap and bool(brokers)
        self._cluster_id = cluster_id if self._settings.checks_cluster else None
        for key, connection in list(self._open.items()):
            if self._has_moved(connection.broker):
                del self._open[key]
                self._retired[connection] = None
                self._schedules.pop(key, None)
                connection.retire()
        for key, opening in list(self._opening.items()):
            if self._has_moved(opening.broker):
                self._schedules.pop(key, None)
                self._cancel_opening(
                    key, BrokerNotAvailable(f"broker {key[0]} has moved")
                )

    def leave_bootstrap(self) -> None:
        """Go over from the bootstrap servers to the brokers, which are known now.

        A bootstrap server with the address of a broker is that broker, and its
        connection stays. The others are used until there is a connection to a broker.
        """
        for node_id in self._bootstrap:
            connection = self._open.get((node_id, ConnectionClass.SHARED))
            broker = None if connection is None else self._broker_at(connection.broker)
            if connection is not None and broker is not None:
                self._take_over(connection, broker)
        self.is_leaving_bootstrap = True
        if any(node_id >= 0 for node_id in self.connected(ConnectionClass.SHARED)):
            self._retire_bootstrap()

    def _broker_at(self, server: Broker) -> Broker | None:
        """The broker that has the address of a bootstrap server; None if unclear."""
        found = [
            broker
            for broker in self._brokers.values()
            if (broker.host, broker.port) == (server.host, server.port)
        ]
        # Several have one address if it is that of a proxy.
        return found[0] if len(found) == 1 else None

    def _take_over(self, connection: Connection, broker: Broker) -> None:
        key = broker.node_id, ConnectionClass.SHARED
        if key in self._open or key in self._opening:
            return
        del self._open[connection.node_id, ConnectionClass.SHARED]
        self._open[key] = connection
        expected = self._cluster_id
        version = self._first_versions.version(
            (broker.host, broker.port), now(), is_expected=expected is not None
        )
        name = f"broker {broker.node_id}"
        connection.becomes(
            broker, self._settings.identity(name, broker, version, expected)
        )
        if self._on_opened is not None:
            self._on_opened(connection)

    def serving(self) -> list[int]:
        """The bootstrap servers that are connected."""
        shared = ConnectionClass.SHARED
        return [
            node_id for node_id in self._bootstrap if (node_id, shared) in self._open
        ]

    def _retire_bootstrap(self) -> None:
        self.is_leaving_bootstrap = False
        for node_id in self._bootstrap:
            self.retire(node_id)

    def prepare(self, node_id: int, connection_class: ConnectionClass) -> None:
        """Begin to open a connection that will be needed, if it can begin now."""
        key = (node_id, connection_class)
        if self._is_closed or key in self._open or key in self._opening:
            return
        if self.wait_before(node_id, connection_class):
            return
        # Who needs the connection gets the error by then.
        with suppress(KafkaError):
            self._start_opening(key)

    def ready(
        self, node_id: int, connection_class: ConnectionClass
    ) -> Connection | None:
        """The open connection to a broker, or None; opens nothing."""
        connection = self._open.get((node_id, connection_class))
        if connection is not None and connection.versions.missed:
            return self._unless_outdated(connection)
        return connection

    def _unless_outdated(self, connection: Connection) -> Connection | None:
        """The connection; None if it is replaced to ask for versions again.

        A request could not be sent because of the versions that the broker announced.
        """
        versions, asked_at = connection.versions, connection.ready_at
        if self._version_rechecks.is_due(connection.node_id, versions, asked_at, now()):
            self._replace(connection)
            return None
        return connection

    def connected(self, connection_class: ConnectionClass) -> set[int]:
        """The ids of the nodes with an open connection of a class."""
        return {node_id for node_id, kind in self._open if kind == connection_class}

    def opening(self, connection_class: ConnectionClass) -> list[str]:
        """The addresses to which connections of a class are being opened."""
        return [
            f"{opening.broker.host}:{opening.broker.port}"
            for (_, kind), opening in self._opening.items()
            if kind == connection_class
        ]

    def wait_before(
        self, node_id: int, connection_class: ConnectionClass = ConnectionClass.SHARED
    ) -> float:
        """Seconds that ``connection`` would wait before it dials; 0 for none.

        A caller that can choose among brokers chooses one without a wait.
        """
        schedule = self._schedules.get((node_id, connection_class))
        return 0.0 if schedule is None else schedule.remaining(now())

    def is_opening(
        self, node_id: int, connection_class: ConnectionClass = ConnectionClass.SHARED
    ) -> bool:
        """Whether a connection is being opened."""
        return (node_id, connection_class) in self._opening

    async def connection(
        self, node_id: int, connection_class: ConnectionClass
    ) -> Connection:
        """The connection to a broker, opened if there is none.

        Callers share one attempt. After a failure the next attempt waits for the
        reconnect back-off first, which is longer after a refusal. If the call is
        cancelled, the attempt goes on, and its connection serves the next caller.

        Raises:
            BrokerNotAvailable: the attempt failed, or the broker is unknown; the
                message names host, step and cause.
            AuthenticationError: the broker refuses the client, or the TLS handshake
                failed.
            ProtocolError: the peer at that address has violated the protocol several
                times in a row.
            ClosedError: the pool is closed.
        """
        if self._is_closed:
            raise ClosedError("the client is closed")
        connection = self.ready(node_id, connection_class)
        if connection is not None:
            return connection
        key = (node_id, connection_class)
        opening = self._opening.get(key) or self._start_opening(key)
        return await opening.wait()

    def close_node(self, node_id: int) -> None:
        """Close all connections to a broker; requests in flight fail."""
        for key in self._keys():
            if key[0] == node_id:
                self._end(key)

    def close_classes(
        self, node_id: int, classes: Collection[ConnectionClass], cause: KafkaError
    ) -> None:
        """Close some connections to a broker; requests in flight fail.

        Args:
            node_id: the broker.
            classes: the kinds of connections to close, those of all owners.
            cause: the fault of the broker; the next attempt waits for the back-off.
        """
        kinds = {each.kind for each in classes}
        for key in self._keys():
            if key[0] == node_id and key[1].kind in kinds:
                self._end(key, cause)

    def end_class(self, connection_class: ConnectionClass) -> None:
        """Close all connections of a class, because its owner is gone."""
        for key in self._keys():
            if key[1] == connection_class:
                self._end(key)
        for key in [key for key in self._schedules if key[1] == connection_class]:
            del self._schedules[key]

    def _keys(self) -> list[_Key]:
        return [*self._opening, *self._open]

    def _end(self, key: _Key, cause: KafkaError | None = None) -> None:
        if key in self._opening:
            error = BrokerNotAvailable(f"broker {key[0]}: closed")
            error.__cause__ = cause
            self._cancel_opening(key, error)
        else:
            self._open[key].close(cause)

    def retire(self, node_id: int) -> None:
        """Close all connections to a broker when their requests are answered."""
        for key, connection in list(self._open.items()):
            if key[0] == node_id:
                connection.retire()

    def close(self) -> None:
        """Close all connections, end all attempts, begin no more; does not wait."""
        self._is_closed = True
        for key in list(self._opening):
            self._cancel_opening(key, ClosedError("the client is closing"))
        for connection in [*self._open.values(), *self._retired]:
            connection.close()
            self._closing.append(connection)

    async def aclose(self) -> None:
        """Close as ``close`` does, and wait a short time for the sockets to close.

        It may be called again. If the call is cancelled, nothing stays open.
        """
        self.close()
        async with self._ending:
            while self._attempts:
                await self._attempt_ended.wait()
        if self._settings.login is not None:
            await self._settings.login.aclose()
        until = now() + LINGER
        while self._closing:
            await self._closing.pop().wait_gone(until)

    # ---- opening -------------------------------------------------------------------

    def _address(self, node_id: int) -> Broker:
        known = self._bootstrap if node_id < 0 else self._brokers
        broker = known.get(node_id)
        if broker is None:
            raise BrokerNotAvailable(f"broker {node_id} is not in the metadata")
        return broker

    def _has_moved(self, broker: Broker) -> bool:
        known = self._brokers.get(broker.node_id)
        return known is not None and (known.host, known.port) != (
            broker.host,
            broker.port,
        )

    def _check_advertised(self, key: _Key, broker: Broker) -> None:
        """Refuse an advertised address that is impossible or not allowed by the user.

        That counts as a failed attempt, and is reported once: the next metadata may
        correct it.
        """
        host, port = broker.host, broker.port
        if key[0] < 0 or any(
            (host, port) == (known.host, known.port)
            for known in self._bootstrap.values()
        ):
            return
        why = why_unreachable(host, port) or self._why_forbidden(host, port)
        if why is None:
            return
        shown = host if host.isprintable() else ascii(host)
        error = BrokerNotAvailable(
            f"broker {key[0]} is said to be at {shown[:_SHOWN]}:{port}: {why}"
        )
        schedule = self._schedules.setdefault(key, self._settings.schedule())
        schedule.failed(now(), roll())
        if (host, port) not in self._refused:
            if len(self._refused) >= _MOST_REFUSED:
                self._refused.clear()
            self._refused.add((host, port))
            self._report(key, error)
        raise error

    def _why_forbidden(self, host: str, port: int) -> str | None:
        try:
            if self._settings.is_allowed(host, port):
                return None
        except Exception as failure:
            what = f"allowed_hosts raised {failure!r} for {host}:{port}"
            raise ConfigurationError(what) from failure
        return "it is not among the allowed_hosts"

    @property
    def awaits_credentials(self) -> bool:
        """Whether every connection that is being opened waits for credentials."""
        return bool(self._trying) and all(it.awaits_credentials for it in self._trying)

    def _start_opening(self, key: _Key) -> _Opening:
        broker = self._address(key[0])
        self._faults.check(broker, now())
        self._check_advertised(key, broker)
        opening = _Opening(broker)

        async def run() -> None:
            await self._run(opening, key)

        self._start_soon(run, f"open {key[0]} {key[1].kind}")
        self._opening[key] = opening
        return opening

    def _cancel_opening(self, key: _Key, error: KafkaError) -> None:
        opening = self._opening.pop(key)
        opening.is_cancelled = True
        opening.fail(error)
        opening.scope.cancel()

    async def _run(self, opening: _Opening, key: _Key) -> None:
        """One attempt and the wait before it, in a task of its own."""
        self._attempts[opening] = None
        error: KafkaError = ClosedError("the client is closing")
        connection: Connection | None = None
        try:
            with opening.scope:
                connection = await self._attempt(key, opening.broker)
        except KafkaError as failure:
            error = failure
        finally:
            # Else it was cancelled, and another attempt may have begun since.
            if self._opening.get(key) is opening:
                del self._opening[key]
            self._finish_opening(opening, key, connection, error)
            self._attempts.pop(opening, None)
            self._attempt_ended.notify()

    def _finish_opening(
        self,
        opening: _Opening,
        key: _Key,
        connection: Connection | None,
        error: KafkaError,
    ) -> None:
        if connection is None:
            opening.fail(error)
        elif opening.is_cancelled:
            # Race: it was cancelled in the iteration in which the connection got ready.
            connection.close()
        elif connection.is_ready:
            self._opened(key, connection)
            opening.succeed(connection)
        else:  # lost in the same iteration of the event loop in which it got ready
            opening.fail(BrokerNotAvailable(f"{connection!r}: lost at once"))

    async def _attempt(self, key: _Key, broker: Broker) -> Connection:
        schedule = self._schedules.setdefault(key, self._settings.schedule())
        await asyncio.sleep(schedule.remaining(now()))
        name = f"bootstrap server {-key[0]}" if key[0] < 0 else f"broker {key[0]}"
        self._warn(broker.host)
        address = broker.host, broker.port
        expected = self._cluster_id if key[0] >= 0 else None
        first = self._first_versions.version(
            address, now(), is_expected=expected is not None
        )
        connection = Connection(
            broker,
            key[1],
            self._settings.identity(name, broker, first, expected),
            self._observer,
            self._lost,
            self._sasl,
            self._budget,
        )
        options = self._settings.dial_options(schedule.set_up_timeout(roll()))
        self._trying[connection] = None
        try:
            await connection.open(self._dial, options)
            await self._confirm(connection)
        except KafkaError as failure:
            if connection.was_cut_short:
                self._first_versions.hung_up(address, now())
            if not connection.was_ready:
                self._note_end(connection)
            error = self._refusal(broker) or failure
            if isinstance(error, AuthenticationError):
                schedule.refused(now(), roll())
            else:
                schedule.failed(now(), roll())
            self._faults.ended(broker, error, now())
            self._report(key, error)
            raise error from failure.__cause__
        finally:
            del self._trying[connection]
        schedule.ready()
        announced = connection.versions.max_version(apis.API_VERSIONS)
        self._first_versions.answered(address, first, announced or 0)
        return connection

    def _warn(self, host: str) -> None:
        """Report once that credentials are sent without encryption."""
        login = self._settings.login
        if self._has_warned or login is None or self._settings.tls is not None:
            return
        from kafkaio.security._loopback import is_loopback  # with SASL alone

        is_own = is_loopback(host.rstrip(".").lower())
        if login.mechanism in _REVEALING and not is_own:
            self._has_warned = True
            self._observer.credentials_exposed(login.mechanism, host)

    async def _confirm(self, connection: Connection) -> None:
        """Check that a broker answers that rejected this client before."""
        broker = connection.broker
        if self._refusal(broker) is None:
            return
        try:
            request = MetadataRequest(topics=[])
            await connection.call(request, timeout=self._settings.request_timeout)
        except BaseException:
            connection.close()
            raise
        # Another connection, confirmed or ended otherwise, may have done it already.
        self._turned_away.pop((broker.host, broker.port), None)

    def _opened(self, key: _Key, connection: Connection) -> None:
        self._open[key] = connection
        broker = connection.broker
        self._observer.connection_opened(key[0], key[1].kind, broker.host, broker.port)
        if self._on_opened is not None:
            self._on_opened(connection)
        is_shared = key[0] >= 0 and key[1] == ConnectionClass.SHARED
        if is_shared and self.is_leaving_bootstrap:
            self._retire_bootstrap()

    def _replace(self, connection: Connection) -> None:
        """Retire a connection that cannot be used much longer."""
        key = (connection.node_id, connection.connection_class)
        if self._open.get(key) is connection:
            del self._open[key]
            self._retired[connection] = None
        connection.retire()

    def _note_end(self, connection: Connection) -> None:
        """Count the rejections in a row by an address."""
        broker = connection.broker
        address = broker.host, broker.port
        if not connection.was_turned_away:
            self._turned_away.pop(address, None)
            if connection.has_answered:
                self._answered.add(address)
        elif not self._has_answered(address):
            self._turned_away[address] = self._turned_away.get(address, 0) + 1

    def _has_answered(self, address: _Address) -> bool:
        return address in self._answered or any(
            (each.broker.host, each.broker.port) == address and each.has_answered
            for each in self._open.values()
        )

    def _refusal(self, broker: Broker) -> AuthenticationError | None:
        """The error of a broker that has rejected this client several times."""
        if self._turned_away.get((broker.host, broker.port), 0) < _PATIENCE:
            return None
        where = f"{broker.host}:{broker.port}"
        if self._settings.login is None:
            mechanism, step = "", "first request"
            why = (
                "at its first request; the listener may want SASL "
                "(security_protocol, sasl_mechanism)"
            )
        else:
            mechanism, step = self._settings.login.mechanism, "SaslAuthenticate"
            why = (
                f"instead of an answer to {mechanism}; the credentials may be wrong "
                "(some brokers say nothing then), the listener may want another "
                "sasl_mechanism, or the message is larger than its "
                "sasl.server.max.receive.size"
            )
            if mechanism == "OAUTHBEARER":
                why += ", or the token has ended by the broker's clock"
        return AuthenticationError(
            f"{where}: the broker closes each connection {why}",
            mechanism=mechanism,
            broker=where,
            step=step,
        )

    def _lost(self, connection: Connection, cause: BaseException | None) -> None:
        key = (connection.node_id, connection.connection_class)
        self._retired.pop(connection, None)
        # A retired connection may have a successor with the same key.
        if self._open.get(key) is connection:
            del self._open[key]
        self._note_end(connection)
        if cause is not None:
            schedule = self._schedules.setdefault(key, self._settings.schedule())
            schedule.lost(now(), roll())
        self._faults.ended(connection.broker, cause, now())
        self._report(key, cause, was_ready=True)

    def _report(
        self, key: _Key, cause: BaseException | None, *, was_ready: bool = False
    ) -> None:
        if isinstance(cause, AuthenticationError):
            self._observer.authentication_failed(
                *(key[0], key[1].kind, cause.mechanism, cause), is_renewal=was_ready
            )
        self._observer.connection_lost(key[0], key[1].kind, cause)
        if self._on_lost is not None:
            self._on_lost(key[0], key[1], cause)


#: Violations of the protocol in a row after which they are not taken for accidents.
_MOST_FAULTS: Final = 3
#: Seconds without a violation after which earlier ones are forgotten.
_FAULTS_LAST: Final = 60.0


class _Faults:
    """Addresses whose peers violate the protocol.

    A malformed frame ends the connection, and the requests in flight are repeated: the
    fault may be an accident of the network. If every connection to an address ends like
    that, calls fail with the ProtocolError instead of at their own time limits. Every
    ``pause`` seconds one connection is tried nevertheless.

    Args:
        pause: seconds after a fault for which no connection is tried.
    """

    def __init__(self, pause: float) -> None:
        self._pause = pause
        self._last: dict[tuple[str, int], tuple[int, float, ProtocolError]] = {}

    def ended(self, broker: Broker, cause: BaseException | None, at: float) -> None:
        """Note why a connection ended, or could not be opened."""
        address = (broker.host, broker.port)
        error = cause
        while error is not None and not isinstance(error, ProtocolError):
            error = error.__cause__
        if error is None:
            self._last.pop(address, None)
            return
        count, before, _ = self._last.get(address, (0, at, error))
        count = 0 if at > before + _FAULTS_LAST else count
        self._last[address] = (count + 1, at, error)

    def check(self, broker: Broker, at: float) -> None:
        """Raise the ProtocolError of the last connection, if it was one of many."""
        known = self._last.get((broker.host, broker.port))
        if known is None:
            return
        count, last, error = known
        if count >= _MOST_FAULTS and at < last + self._pause:
            raise ProtocolError(
                f"{broker.host}:{broker.port}: the last {count} connections ended "
                f"with: {error}"
            ) from error


class _Opening:
    """One attempt to connect, and the callers that wait for it."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.is_cancelled = False
        self.scope = CancelScope()
        # In the order of the calls, in which they are woken.
        self._waiters: dict[asyncio.Future[Any], None] = {}

    async def wait(self) -> Connection:
        """The connection, or the error of the attempt."""
        waiter: asyncio.Future[Connection] = asyncio.get_running_loop().create_future()
        self._waiters[waiter] = None
        try:
            return await waiter
        finally:
            del self._waiters[waiter]

    def succeed(self, connection: Connection) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(connection)

    def fail(self, error: KafkaError) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(error)
