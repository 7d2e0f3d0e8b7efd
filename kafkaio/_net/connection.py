"""One connection to a broker: drives `ConnectionMachine` over a transport.

Almost everything here is synchronous. The events of the loop (a frame, the end of the
stream, a timer) go to the machine. Its decisions are written to the transport, or set
as results of the futures that wait for answers. Two things wait: opening, in the task
of the caller, and getting the credentials of a repeated authentication, in a task of
its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from kafkaio._dataclass import dataclass, replace
from kafkaio._machines.api_versions import ApiVersions
from kafkaio._machines.connection.handshake import ClientIdentity, another_broker
from kafkaio._machines.connection.machine import (
    Closing,
    ConnectionMachine,
    ReceivedAnswer,
    Renewal,
)
from kafkaio._machines.connection.pipeline import LastAnswer, Ticket
from kafkaio._machines.connection.states import ConnectionState
from kafkaio._net.budget import ReceiveBudget
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._net.receive import LargeFrames
from kafkaio._net.transport import Dial, DialOptions, TransportPort
from kafkaio._public import public
from kafkaio._runtime.clock import now, roll
from kafkaio._runtime.observer import Observer
from kafkaio._runtime.own_thread import start_thread
from kafkaio._runtime.scopes import CancelScope
from kafkaio._runtime.supervisor import Child
from kafkaio._runtime.timer import Timer
from kafkaio.errors import (
    AuthenticationError,
    BrokerNotAvailable,
    ClosedError,
    InternalError,
    KafkaError,
    ProtocolError,
)
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._framing import LENGTH_SIZE
from kafkaio.protocol._message import Buffer, Request, Response, ResponseT
from kafkaio.protocol.messages.api_versions import ApiVersionsResponse
from kafkaio.types import Broker

if TYPE_CHECKING:
    from kafkaio._machines.sasl.mechanism import MechanismPort
    from kafkaio._machines.sasl.session import AuthenticatedSession
    from kafkaio.security._login import LoginPort

#: Seconds that a closed connection may take to send what was written to it.
LINGER: Final = 2.0
#: The largest frame accepted before a connection is ready, in bytes: no answer of the
#: handshake is large, and the peer may be anything.
EARLY_FRAME_SIZE: Final = 524_288
#: Seconds for which large answers are decoded before the event loop gets a turn.
_TURN: Final = 0.002
#: The step before a connection is dialled, for error messages.
_CREDENTIALS: Final = "get credentials"
#: The mechanism whose credentials expire.
_BY_TOKEN: Final = "OAUTHBEARER"  # noqa: S105  (a name)
#: The part of the set-up that dialling may take, so that an error names the addresses.
_DIALLING: Final = 0.95
#: Seconds between two checks whether a retired connection has sent everything.
_LEAVING: Final = 0.05
#: Seconds between two attempts to get the credentials of a renewal.
_RENEWAL_PAUSE: Final = 1.0
#: Called once with the cause when a connection that was ready has ended.
OnLost: TypeAlias = Callable[["Connection", BaseException | None], None]


@public("kafkaio")
@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionStatistics:
    """The state of one connection.

    Attributes:
        node_id: the broker; negative for a bootstrap server.
        connection_class: what the connection is for.
        host: where the broker was reached.
        port: its port.
        state: name of the state it is in.
        in_flight: requests without an answer yet.
        requests: requests sent so far.
        bytes_sent: bytes written so far, those of the handshake included.
        bytes_received: bytes received so far.
        bytes_unsent: bytes written that the broker has not taken yet.
        throttled: seconds for which the broker's quota still forbids sending.
        session_left: seconds until the connection has to be authenticated again;
            ``inf`` for never.
    """

    node_id: int
    connection_class: ConnectionClass
    host: str
    port: int
    state: str
    in_flight: int
    requests: int
    bytes_sent: int
    bytes_received: int
    bytes_unsent: int
    throttled: float
    session_left: float = inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Sasl:
    """How a connection authenticates.

    Attributes:
        login: makes the mechanisms.
        start_soon: starts the task that waits for the credentials of a renewal.
        timeout: seconds to wait for them.
        replace: called with a connection whose sessions are too short to renew: it
            has to get no more requests, and to be retired.
    """

    login: LoginPort
    start_soon: Callable[[Child, str], None]
    timeout: float
    replace: Callable[[Connection], None]


class ReplyPort(Protocol):
    """Receives an answer: a future, or an object that acts on it at once."""

    def done(self) -> bool:
        """Whether the answer is no longer needed."""

    def set_result(self, result: Any, /) -> None:
        """Take the answer; must not raise."""

    def set_exception(self, exception: Exception, /) -> None:
        """Take the error that stands for the answer; must not raise."""


class Connection:
    """A connection that a ``Pool`` opened; it carries many requests at a time.

    Requests are written in the order of the calls, and answered in that order.

    Args:
        broker: the broker to connect to.
        connection_class: what the connection is for.
        identity: how the client presents itself.
        observer: observes requests, answers and throttling; must not raise.
        on_lost: called once when the connection, if it was ready, has ended.
        sasl: how it authenticates; None if it does not.
        budget: large answers wait for it; None for a budget of its own.

    Attributes:
        clock: the clock of the loop: a hot path need not ask which loop runs.
    """

    # Of more than thirty attributes Python 3.11 finds each by a look-up in a dict.
    __slots__ = (
        "__weakref__", "_budget", "_closing", "_end_listeners", "_gone",
        "_loop", "_machine", "_max_frame_size", "_observer", "_on_lost",
        "_peer", "_pipeline", "_ready", "_renewal", "_requests", "_sasl",
        "_session", "_step", "_timer", "_transport", "_turn", "_unanswered",
        "_undecoded", "_waiters", "_was_ready", "_work", "broker", "clock",
        "connection_class", "node_id", "ready_at", "versions", "was_cut_short",
        "was_turned_away",
    )  # fmt: skip

    def __init__(  # noqa: PLR0913 - what all connections of a client share
        self,
        broker: Broker,
        connection_class: ConnectionClass,
        identity: ClientIdentity,
        observer: Observer,
        on_lost: OnLost,
        sasl: Sasl | None = None,
        budget: ReceiveBudget | None = None,
    ) -> None:
        self.broker: Broker = broker
        #: The broker's id; negative for a bootstrap server.
        self.node_id: int = broker.node_id
        self.connection_class: ConnectionClass = connection_class
        self._observer = observer
        self._on_lost = on_lost
        self._machine = ConnectionMachine(identity, now())
        #: The broker's announcement; empty until the connection is ready.
        self.versions: ApiVersions = self._machine.versions
        self._pipeline = self._machine.pipeline
        self._transport: TransportPort | None = None
        self._peer = identity.peer
        self._loop = asyncio.get_running_loop()
        self.clock: Callable[[], float] = self._loop.time
        # Invariant: exactly the tickets that the machine has not ended, without those
        # of the handshake. A future whose caller was cancelled stays until its answer
        # comes, because the broker answers in order.
        self._waiters: dict[Ticket[Response], ReplyPort] = {}
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._was_ready = False
        #: When it got ready; infinity before.
        self.ready_at: float = inf
        # The transport while it closes, and a future that is done when it has closed.
        self._closing: TransportPort | None = None
        self._gone: asyncio.Future[None] = self._loop.create_future()
        self._timer = Timer(self._expire)
        self._requests = 0
        # Requests without an answer when the connection ended; None before that.
        self._unanswered: int | None = None
        #: Whether the broker hung up in the way in which brokers reject clients: during
        #: the authentication, or at the first request. Known once the connection has
        #: ended.
        self.was_turned_away: bool = False
        #: Whether the peer hung up in place of an answer to ApiVersions.
        self.was_cut_short: bool = False
        self._sasl = sasl
        # The session that was reported last.
        self._session: AuthenticatedSession | None = None
        # The step of `open` before the machine takes over.
        self._step = ""
        self._max_frame_size = EARLY_FRAME_SIZE
        self._budget = ReceiveBudget() if budget is None else budget
        # The next slice of decoding large answers, and their bytes in the budget.
        self._turn: asyncio.Handle | None = None
        self._undecoded = 0
        # A `Work` of the mechanism, which runs in a thread.
        self._work: asyncio.Future[bytes | None] | None = None
        # The wait for the credentials of a renewal.
        self._renewal = CancelScope()
        self._end_listeners: list[Callable[[], None]] = []

    def __repr__(self) -> str:
        return (
            f"<Connection {self._peer} {self.connection_class.kind} "
            f"{self._machine.state.name} | {self.in_flight} in flight>"
        )

    @property
    def is_ready(self) -> bool:
        """Whether requests can be submitted."""
        return self._machine.is_usable

    @property
    def was_ready(self) -> bool:
        """Whether it is or was ready."""
        return self._was_ready

    @property
    def has_answered(self) -> bool:
        """Whether the broker has answered a request on it, or one had no answer."""
        left = self._unanswered
        return self._requests > (len(self._waiters) if left is None else left)

    @property
    def round_trip(self) -> float:
        """Seconds that the first exchange took, which asks for the versions."""
        return self._machine.round_trip

    @property
    def in_flight(self) -> int:
        """How many requests have no answer yet."""
        return len(self._pipeline) + len(self._machine.large_answers)

    @property
    def throttled(self) -> float:
        """Seconds that submitted requests will be held back by a quota; 0 for none."""
        return max(0.0, self._pipeline.throttled_until - self._loop.time())

    def holds_back(self, at: float) -> bool:
        """Whether a quota holds back what is submitted at a time of the clock."""
        return self._pipeline.throttled_until > at

    def why_late(self, api: str) -> str:
        """Why a request has no answer yet, for error messages.

        Args:
            api: the name of the request.
        """
        return self.why_held() or f"{self._peer} has not answered {api}"

    def why_held(self) -> str:
        """Why requests are held back now, for error messages; empty if they are not."""
        seconds = self.throttled
        if not seconds:
            return ""
        return (
            f"{self._peer} throttles this client: nothing is sent to it for another "
            f"{seconds:.1f} s"
        )

    @property
    def submitted(self) -> int:
        """Bytes of all requests so far, those held back included."""
        return self._pipeline.written + self._pipeline.held_bytes

    @property
    def unsent(self) -> int:
        """Bytes that the operating system has not taken, those held back included."""
        unsent = 0 if self._transport is None else self._transport.unsent
        return unsent + self._pipeline.held_bytes

    def why_unsent(self) -> str:
        """Why a request has not left, for error messages."""
        return f"{self._peer} has not taken {self.unsent} bytes that were sent to it"

    def statistics(self) -> ConnectionStatistics:
        """The connection as it is now."""
        transport = self._transport
        return ConnectionStatistics(
            node_id=self.node_id,
            connection_class=self.connection_class,
            host=self.broker.host,
            port=self.broker.port,
            state=self._machine.state.name,
            in_flight=self.in_flight,
            requests=self._requests,
            bytes_sent=self._pipeline.written,
            bytes_received=0 if transport is None else transport.received,
            bytes_unsent=0 if transport is None else transport.unsent,
            throttled=self.throttled,
            session_left=self._session_left(),
        )

    def _session_left(self) -> float:
        session = self._machine.session
        return inf if session is None else max(0.0, session.ends_at - self._loop.time())

    # ---- requests ----------------------------------------------------------------

    def submit(
        self,
        request: Request[ResponseT],
        *,
        timeout: float,
        max_version: int | None = None,
        last: LastAnswer | None = None,
    ) -> asyncio.Future[ResponseT]:
        """Send a request now; the answer comes later.

        While a quota is in force the request waits here, in its order. That time does
        not count against its timeout.

        Args:
            request: the request; encoded before the call returns.
            timeout: seconds until it has failed. A timeout closes the connection,
                because all later answers would come after the missing one.
            max_version: the highest version of the request to use.
            last: the last answer to requests like this one, which will mostly be the
                same; None for none.

        Returns:
            A future that ends exactly once: with the answer, or with ConnectionLost,
            RequestTimeout, UnsupportedVersion, or ProtocolError if the request cannot
            be encoded or the answer cannot be decoded. It can be cancelled: the answer
            is then dropped when it comes.
        """
        future: asyncio.Future[ResponseT] = self._loop.create_future()
        self.submit_to(
            future, request, timeout=timeout, max_version=max_version, last=last
        )
        return future

    def submit_to(
        self,
        reply: ReplyPort,
        request: Request[Response],
        *,
        timeout: float,
        max_version: int | None = None,
        last: LastAnswer | None = None,
        in_turn: bool = False,
    ) -> None:
        """Send a request now, as ``submit`` does, and pass the answer to ``reply``.

        The answer is passed on as soon as it is decoded, not an iteration of the event
        loop later, as to a task that awaits a future. If the request cannot be sent,
        the error is passed on before the call returns.

        Args:
            reply: called exactly once, unless it is done before that.
            request: as for ``submit``.
            timeout: as for ``submit``.
            max_version: as for ``submit``.
            last: as for ``submit``.
            in_turn: whether its time begins anew when those before it are answered.
        """
        kind = self._machine.kinds.get((type(request), max_version))
        try:
            if kind is None:
                kind = self._machine.kind_of(type(request), max_version)
            clock, pipeline = self.clock, self._pipeline
            ticket = pipeline.send(
                request, kind, now=clock(), timeout=timeout, last=last
            )
        except KafkaError as error:
            reply.set_exception(error)
            return
        if in_turn:
            ticket.patience = timeout
        self._waiters[ticket] = reply
        self._requests += 1
        self._flush()
        self._observer.request_sent(
            kind.api, kind.version, self.node_id, pipeline.last_size
        )

    def withdraw(self, reply: ReplyPort) -> bool:
        """Forget a request that a throttle or a new login still holds back.

        Args:
            reply: the argument of `submit_to`; it is no longer called.

        Returns:
            Whether the request was held back. If not, it may take effect, and its
            answer is passed on as usual.
        """
        for ticket, waiter in self._waiters.items():
            if waiter is reply:
                if not self._pipeline.withdraw(ticket):
                    return False
                del self._waiters[ticket]
                return True
        return False

    async def call(
        self,
        request: Request[ResponseT],
        *,
        timeout: float,
        max_version: int | None = None,
    ) -> ResponseT:
        """Send a request and wait for its answer; see ``submit`` for what it raises.

        If the call is cancelled, the request may still take effect.
        """
        future: asyncio.Future[ResponseT] = self._loop.create_future()
        self.submit_to(future, request, timeout=timeout, max_version=max_version)
        return await future

    def submit_oneway(
        self, request: Request[Response], *, max_version: int | None = None
    ) -> None:
        """Send a request that has no answer: Produce with ``acks=0``.

        The broker reports a failure only by closing the connection.

        Raises:
            ConnectionLost: the connection is closed.
            UnsupportedVersion: the broker knows no version that can carry it.
        """
        kind = self._machine.kind_of(type(request), max_version)
        self._pipeline.send_oneway(request, kind, now=self.clock())
        self._requests += 1
        self._flush()
        self._observer.request_sent(
            kind.api, kind.version, self.node_id, self._pipeline.last_size
        )

    # ---- life --------------------------------------------------------------------

    def becomes(self, broker: Broker, identity: ClientIdentity) -> None:
        """Take the connection to a bootstrap server for that to a broker.

        The broker is asked whether it is the expected one, if it compares that
        (KIP-1242). The question is not waited for: the connection has reached a broker
        of this cluster already, and ends if it is another one than expected.

        Args:
            broker: the broker that is at the address of the bootstrap server.
            identity: how the client presents itself there.
        """
        self.broker = broker
        self.node_id = broker.node_id
        self._peer = identity.peer
        check = self._machine.becomes(identity)
        if check is not None:
            self.submit_to(
                _NodeCheck(self, identity), check, timeout=identity.request_timeout
            )

    async def open(self, dial: Dial, options: DialOptions) -> None:
        """Connect, authenticate and complete the handshake.

        If it fails, or is cancelled, nothing is left open.

        Args:
            dial: makes the transport.
            options: ``timeout`` limits all of it, with the wait for credentials.

        Raises:
            BrokerNotAvailable: names host, step and cause.
            AuthenticationError: the TLS handshake failed, the broker refuses the
                credentials, or none could be had.
        """
        limit = asyncio.timeout(options.timeout)
        try:
            async with limit:
                await self._open(dial, options, now() + _DIALLING * options.timeout)
        except TimeoutError as error:
            self.close()
            if not limit.expired():
                raise
            if self._step == _CREDENTIALS:
                raise self._no_credentials(options.timeout) from error
            late = TimeoutError(f"not done within {options.timeout:.3g} s")
            raise self._handshake_failed(late) from error
        except BaseException:
            self.close()
            raise

    @property
    def awaits_credentials(self) -> bool:
        """Whether `open` waits for credentials, and has not asked the broker yet."""
        return self._step == _CREDENTIALS

    async def _open(self, dial: Dial, options: DialOptions, until: float) -> None:
        broker, mechanism = self.broker, None
        if self._sasl is not None:
            self._step = _CREDENTIALS
            mechanism = await self._sasl.login.begin(broker.host)
        self._step = "connect"
        early = replace(
            options,
            timeout=max(0.0, until - now()),
            max_frame_size=min(options.max_frame_size, EARLY_FRAME_SIZE),
            large=LargeFrames(self._announced, self._budget),
        )
        try:
            self._transport = await dial(broker.host, broker.port, self, early)
        except KafkaError:
            raise
        except (OSError, OverflowError, ValueError) as error:
            # Sockets, name servers and TLS raise these for addresses that a broker may
            # advertise: ports of more than 16 bits, names that cannot be encoded.
            raise self._handshake_failed(error) from error
        self._step = ""
        self._max_frame_size = options.max_frame_size
        self._machine.opened(now(), mechanism, roll())
        self._flush()
        await self._ready

    def close(self, cause: BaseException | None = None) -> None:
        """Close now; requests in flight fail with ConnectionLost.

        Without a cause, data that was written is still sent.
        """
        if self._machine.state is not ConnectionState.CLOSED:
            self._perform(self._machine.closed(cause))

    async def wait_gone(self, until: float) -> None:
        """Wait until a closed connection's socket is closed; abort it at ``until``."""
        try:
            with CancelScope(deadline=until):
                await self._gone
        finally:
            if self._closing is not None:
                self._closing.abort()

    def add_end_listener(self, listener: Callable[[], None]) -> None:
        """Call a function once when this connection ends, whoever ended it.

        For an owner with state that lasts as long as the connection. It must not raise.
        """
        self._end_listeners.append(listener)

    def retire(self) -> None:
        """Close as soon as no request is in flight, and all have left."""
        self._machine.is_retired = True
        if self.is_ready:
            self._close_if_done()

    def _close_if_done(self) -> None:
        if self._machine.is_busy:
            return
        if self.unsent:  # of requests without an answer
            self._loop.call_later(_LEAVING, self.retire)
        else:
            self.close()

    # ---- what the transport and the timer report -----------------------------------

    def frame_received(self, frame: Buffer) -> None:
        """See `FrameSinkPort`."""
        clock = self.clock
        at = clock()
        outcome = self._machine.receive(frame, at)
        if isinstance(outcome, ReceivedAnswer):
            self._answer(outcome, at)
        elif isinstance(outcome, Closing):
            self._perform(outcome)
        elif not self._machine.large_answers:
            self._go_on()
        elif self._turn is None:
            self._decode()
        else:
            self._count_undecoded()

    def _announced(self, size: int) -> None:
        """A large frame is about to be received; raise ProtocolError to refuse it."""
        closing = self._machine.announced(size)
        if closing is not None:
            self._perform(closing)
            raise ProtocolError(str(closing.cause))

    def _decode(self) -> None:
        """Decode large answers for a slice, and go on in the loop's next iteration."""
        self._turn = None
        end = self._loop.time() + _TURN
        while self._machine.large_answers:
            at = self._loop.time()
            outcome = self._machine.decode(at)
            if isinstance(outcome, ReceivedAnswer):
                self._answer(outcome, at)
            elif isinstance(outcome, Closing):
                self._perform(outcome)
            elif at >= end:
                self._turn = self._loop.call_soon(self._decode)
                break
        self._count_undecoded()

    def _count_undecoded(self) -> None:
        """Count the bytes of answers that wait to be decoded in the budget."""
        before, self._undecoded = self._undecoded, self._machine.large_answers.size
        if self._undecoded > before:
            self._budget.add(self._undecoded - before)
        elif self._undecoded < before:
            self._budget.release(before - self._undecoded)

    def _go_on(self) -> None:
        """The machine goes on with the handshake, or with an authentication."""
        if self._machine.session is not self._session:
            self._authenticated()
        if self.is_ready and not self._was_ready:
            self._was_ready = True
            self.ready_at = self._loop.time()
            self.versions = self._machine.versions
            if self._transport is not None:
                self._transport.limit_frames(self._max_frame_size)
            if not self._ready.done():
                self._ready.set_result(None)
        work = self._machine.work
        if work is not None and self._work is None:
            self._work = start_thread(work, f"kafkaio logs in to {self._peer}")
            self._work.add_done_callback(self._worked)
        self._flush()
        if self._machine.is_retired:
            self._close_if_done()

    # ---- authentication ------------------------------------------------------------

    def _authenticated(self) -> None:
        self._session = session = self._machine.session
        assert session is not None
        assert self._sasl is not None
        self._observer.authenticated(
            self.node_id,
            self.connection_class.kind,
            self._sasl.login.mechanism,
            session.lifetime,
            self._machine.sasl_seconds,
            is_renewal=self._was_ready,
        )

    def _worked(self, work: asyncio.Future[bytes | None]) -> None:
        """A ``Work`` of the mechanism has ended in its thread."""
        if work.cancelled():
            return  # the connection is closed
        error = work.exception()
        if self._work is not work:
            # Race: the connection was closed after the work was done, and before this
            # callback ran.
            return
        self._work = None
        if error is None:
            closing = self._machine.worked(work.result(), self._loop.time())
        else:
            if not isinstance(error, KafkaError):
                what = f"{self._peer}: SASL: {type(error).__name__}"
                bug, error = error, InternalError(what)
                error.__cause__ = bug
            closing = self._machine.work_failed(error)
        if closing is not None:
            self._perform(closing)
        else:
            self._go_on()

    def _renew(self, renewal: Renewal) -> None:
        """Renew the session, or have the connection replaced."""
        assert self._sasl is not None
        if renewal is Renewal.REPLACE:
            self._sasl.replace(self)
            return
        try:
            self._sasl.start_soon(self._reauthenticate, f"log in to {self._peer}")
        except ClosedError as error:  # the client ends, and its connections with it
            self.close(error)

    async def _reauthenticate(self) -> None:
        """Get credentials and authenticate again; a task of its own."""
        assert self._sasl is not None
        with self._renewal:
            try:
                mechanism = await self._credentials(self._sasl)
            except KafkaError as error:
                self.close(error)
                return
            closing = self._machine.reauthenticate(mechanism, now(), roll())
            if closing is not None:
                self._perform(closing)
            else:
                self._go_on()

    async def _credentials(self, sasl: Sasl) -> MechanismPort:
        """The mechanism of a renewal; asked for again while the session lasts."""
        session = self._machine.session
        assert session is not None
        while True:
            limit = asyncio.timeout(sasl.timeout)
            try:
                async with limit:
                    return await sasl.login.begin(self.broker.host)
            except TimeoutError as error:
                if not limit.expired():
                    raise
                failure: KafkaError = self._no_credentials(sasl.timeout)
                failure.__cause__ = error
            except KafkaError as error:
                failure = error
            if now() >= session.ends_at:
                raise failure
            await asyncio.sleep(_RENEWAL_PAUSE)

    def connection_lost(self, cause: BaseException | None) -> None:
        """See `FrameSinkPort`."""
        self._transport = self._closing = None
        if not self._gone.done():
            self._gone.set_result(None)
        if cause is None:
            cause = ConnectionResetError("the broker closed the connection")
        self.close(cause)

    def _expire(self) -> None:
        # A request that was cancelled while a throttle holds it back is not sent.
        gone = [ticket for ticket, future in self._waiters.items() if future.done()]
        for ticket in gone:
            if self._pipeline.withdraw(ticket):
                del self._waiters[ticket]
        outcome = self._machine.expire(self._loop.time())
        if isinstance(outcome, Closing):
            self._perform(outcome)
        elif outcome is not None:
            self._renew(outcome)
        self._flush()

    # ---- performing ----------------------------------------------------------------

    def _flush(self) -> None:
        """Write the machine's output, and set the timer for its next deadline."""
        pipeline = self._pipeline
        if output := pipeline.output:
            pipeline.output = []
            if (transport := self._transport) is not None:
                write = transport.write
                write(output)
        deadline = pipeline.next_deadline
        if deadline is not None and deadline < self._timer.when:
            self._timer.set(deadline)

    def _answer(self, answer: ReceivedAnswer, at: float) -> None:
        ticket = answer.ticket
        future, kind = self._waiters.pop(ticket), ticket.kind
        self._observer.request_answered(
            kind.api,
            kind.version,
            self.node_id,
            at - ticket.sent_at,
            answer.size + LENGTH_SIZE,
        )
        if answer.throttled:
            self._observer.throttled(self.node_id, answer.throttled, kind.api)
        if not future.done():  # its caller was not cancelled
            future.set_result(answer.response)
        if self._machine.is_retired:
            self._close_if_done()

    def _perform(self, closing: Closing) -> None:
        """Close the transport, and fail everything that waits for an answer."""
        self._timer.cancel()
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None
        self._count_undecoded()
        self._renewal.cancel()
        if self._work is not None:
            self._work.cancel()
            self._work = None
        self._unanswered = len(self._waiters)
        self.was_turned_away = self._is_turned_away(closing.cause)
        self.was_cut_short = self._is_cut_short(closing.cause)
        self._hang_up(closing.cause)
        for ticket, error in closing.failed:
            future = self._waiters.pop(ticket, None)
            if future is not None and not future.done():
                future.set_exception(error)
        if self._was_ready:
            self._on_lost(self, closing.cause)
        elif not self._ready.done():
            self._ready.set_exception(self._handshake_failed(closing.cause))
            # Retrieved here: open() may have been cancelled.
            self._ready.exception()
        listeners, self._end_listeners = self._end_listeners, []
        for listener in listeners:
            listener()

    def _hang_up(self, cause: BaseException | None) -> None:
        transport, self._transport = self._transport, None
        if transport is None:
            if not self._gone.done():
                self._gone.set_result(None)
        elif cause is None:
            self._closing = transport
            transport.close()
            if transport.unsent:
                self._loop.call_later(LINGER, transport.abort)
        else:
            transport.abort()

    def _no_credentials(self, seconds: float) -> AuthenticationError:
        assert self._sasl is not None
        mechanism = self._sasl.login.mechanism
        return AuthenticationError(
            f"{self._peer}: no credentials for {mechanism} within {seconds:.3g} s",
            mechanism=mechanism,
            broker=f"{self.broker.host}:{self.broker.port}",
            step=_CREDENTIALS,
        )

    def _is_cut_short(self, cause: BaseException | None) -> bool:
        if self._was_ready or self._step or isinstance(cause, KafkaError):
            return False
        is_asking = not self._machine.versions.ranges
        return isinstance(cause, OSError) and is_asking

    def _is_turned_away(self, cause: BaseException | None) -> bool:
        if isinstance(cause, KafkaError) or not isinstance(cause, OSError):
            return False  # it was this side that closed
        if not self._was_ready:
            return self._machine.exchange is not None
        is_mute = self._requests > 0 and not self.has_answered
        return is_mute and (self._sasl is None or self._has_ended_token())

    def _has_ended_token(self) -> bool:
        """Whether the broker may have accepted a token that has just expired.

        Brokers allow for clock skew, by 30 s as a rule: the login succeeds, its session
        is over at once, and the next request is not answered.
        """
        session = self._machine.session
        by_token = self._sasl is not None and self._sasl.login.mechanism == _BY_TOKEN
        return by_token and session is not None and not session.lifetime

    def _handshake_failed(self, cause: BaseException | None) -> KafkaError:
        if isinstance(cause, AuthenticationError):
            return cause
        reason = "closed" if cause is None else str(cause) or type(cause).__name__
        step = self._step or self._machine.handshake_step
        exchange = self._machine.exchange
        if exchange is not None and self._is_turned_away(cause):
            reason += (
                f" without an answer to {exchange.mechanism}. Mostly, the credentials "
                "are wrong (some brokers say nothing then), the listener wants another "
                "mechanism, or the message is too large "
                f"(sasl.server.max.receive.size; it had {exchange.sent_bytes} bytes)"
            )
        error = BrokerNotAvailable(
            f"{self.broker.host}:{self.broker.port}: {step}: {reason}"
        )
        error.__cause__ = cause
        return error


class _NodeCheck:
    """Takes the answer of a broker that was asked whether it is the expected one."""

    __slots__ = ("_connection", "_identity")

    def __init__(self, connection: Connection, identity: ClientIdentity) -> None:
        self._connection = connection
        self._identity = identity

    def done(self) -> bool:
        """Always False: the answer is always needed."""
        return False

    def set_result(self, response: ApiVersionsResponse) -> None:
        """Close the connection if the broker is another one."""
        if response.error_code == ErrorCode.REBOOTSTRAP_REQUIRED:
            refusal = another_broker(self._identity)
            error = BrokerNotAvailable(f"{self._identity.address}: {refusal}")
            error.__cause__ = refusal
            self._connection.close(error)

    def set_exception(self, error: Exception) -> None:
        """Do nothing: the connection has ended, or the broker does not compare."""
