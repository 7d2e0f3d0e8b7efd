"""One connection to a broker, without its socket and its clock.

The driver passes in each event (the transport opened, a frame came, time passed) with
the time, writes `Pipeline.output`, and calls `expire` at `Pipeline.next_deadline`. To
send a request it asks the machine for its kind, and hands both to the pipeline.

Where the broker limits sessions, `expire` returns a `Renewal` when the connection has
to authenticate again or to be replaced (KIP-368). The driver gets a mechanism, which
can take time, and passes it to `reauthenticate`. A connection that was not used in its
session authenticates when the next request comes, which is held back until then.

Invariant: each request gets a ``Ticket``, and each ticket ends exactly once: it is
answered, or it is among the failures of the one ``Closing``. A request that times out
closes the whole connection, because every later answer would have to wait behind it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from math import inf
from typing import TYPE_CHECKING, Final

from kafkaio._dataclass import dataclass
from kafkaio._machines.api_versions import ApiVersions
from kafkaio._machines.bounds import check
from kafkaio._machines.connection.handshake import ClientIdentity, VersionNegotiation
from kafkaio._machines.connection.large_answers import LARGE_ANSWER, LargeAnswers
from kafkaio._machines.connection.pipeline import RESERVED_IDS, AnyTicket, Pipeline
from kafkaio._machines.connection.states import (
    TRANSITIONS,
    ConnectionEvent,
    ConnectionState,
)
from kafkaio._machines.connection.throttle import pause_after
from kafkaio.errors import (
    AuthenticationError,
    ConnectionLost,
    InternalError,
    KafkaError,
    ProtocolError,
    RequestTimeout,
)
from kafkaio.protocol._headers import RequestKind
from kafkaio.protocol._message import Buffer, Request, Response

if TYPE_CHECKING:
    from kafkaio._machines.sasl.exchange import SaslExchange, SaslRequest
    from kafkaio._machines.sasl.mechanism import MechanismPort, Work
    from kafkaio._machines.sasl.session import AuthenticatedSession
    from kafkaio.protocol.messages.api_versions import ApiVersionsRequest

# Every request needs these two; a module's global is read in a fifth of the time.
_READY: Final = ConnectionState.READY
_REAUTHENTICATING: Final = ConnectionState.REAUTHENTICATING
_CLOSED: Final = ConnectionState.CLOSED


@dataclass(slots=True, eq=False)
class ReceivedAnswer:
    """A ticket that ended well.

    Attributes:
        ticket: the request.
        response: its answer, of ``ticket.kind.response_type``.
        throttled: seconds for which the client pauses, because the broker throttles it;
            0 for none.
        size: bytes of the answer, without the length before it.
    """

    ticket: AnyTicket
    response: Response
    throttled: float
    size: int


class Renewal(Enum):
    """The action that the end of a session demands."""

    AUTHENTICATE = auto()  #: get a mechanism, and pass it to `reauthenticate`
    REPLACE = auto()  #: retire the connection: its sessions are too short to renew


@dataclass(frozen=True, slots=True)
class Closing:
    """The connection has to be closed, or was.

    Attributes:
        cause: why; None if it was closed on purpose.
        failed: every ticket that had not ended, with the error that ends it.
    """

    cause: BaseException | None
    failed: tuple[tuple[AnyTicket, KafkaError], ...]


class ConnectionMachine:
    """Decides what one connection writes, which request a frame answers, when to end.

    Args:
        identity: how the client presents itself, and how long it waits.
        now: the time; seconds of any monotonic clock, as in every method.
        last_id: the correlation id before the first one.

    Attributes:
        kinds: what `kind_of` has returned, by its arguments; empty unless requests can
            be sent. So a hot path need not ask whether they can.
    """

    def __init__(
        self, identity: ClientIdentity, now: float, *, last_id: int = -1
    ) -> None:
        self._identity = identity
        self._negotiation = VersionNegotiation(identity)
        # The mechanism of the first authentication, until it begins.
        self._mechanism: MechanismPort | None = None
        # The authentication under way, its random number, and when it was last sent.
        self._exchange: SaslExchange | None = None
        self._roll = 0.0
        self._sasl_sent_at = 0.0
        self._sasl_began_at = now
        self._asked_at = now
        #: Seconds from the request for the versions to its answer; 0 before that.
        self.round_trip = 0.0
        # When a renewal is due; inf if none is, or if one was asked for.
        self._renew_at = inf
        self._is_renewing = False
        #: How far the connection has come.
        self.state = ConnectionState.CONNECTING
        #: The broker's announcement; empty until the negotiation has ended.
        self.versions = ApiVersions()
        #: The last authentication that succeeded; None if there was none.
        self.session: AuthenticatedSession | None = None
        #: Seconds that this authentication took, from its first request to its end.
        self.sasl_seconds = 0.0
        #: Whether the connection has to end once it is not busy any more; set by the
        #: driver.
        self.is_retired = False
        self.kinds: dict[
            tuple[type[Request[Response]], int | None], RequestKind[Response]
        ] = {}
        #: Large answers, for `decode`.
        self.large_answers = LargeAnswers(identity.max_control_response_size)
        #: The requests under way, and the bytes to be written.
        self.pipeline = Pipeline(
            identity.client_id, identity.idle_timeout, now, last_id=last_id
        )

    def __repr__(self) -> str:
        waiting, held = len(self.pipeline), self.pipeline.held
        return (
            f"<ConnectionMachine {self._identity.peer} {self.state.name} | "
            f"{waiting - held} in flight, {held} held>"
        )

    @property
    def handshake_step(self) -> str:
        """The current step of the handshake, for error messages."""
        return "negotiate versions" if self._exchange is None else self._exchange.step

    @property
    def exchange(self) -> SaslExchange | None:
        """The authentication under way, or the one that the connection ended in."""
        return self._exchange

    @property
    def is_usable(self) -> bool:
        """Whether requests can be sent."""
        return self.state is _READY or self.state is _REAUTHENTICATING

    # ---- requests --------------------------------------------------------------------

    def kind_of(
        self, request: type[Request[Response]], max_version: int | None = None
    ) -> RequestKind[Response]:
        """Choose the version of a request: its kind is passed to `Pipeline.send`.

        Args:
            request: class of the request.
            max_version: the highest version to use.

        Raises:
            ConnectionLost: the connection is closed, or not ready yet.
            UnsupportedVersion: no version fits.
        """
        if not self.is_usable:
            raise self._not_ready()
        version = self.versions.usable(request, max_version)
        kind = self.kinds[request, max_version] = self.pipeline.kind(request, version)
        return kind

    def becomes(self, identity: ClientIdentity) -> ApiVersionsRequest | None:
        """Take the other end, a bootstrap server so far, for a broker.

        Returns:
            A request to send, if the broker compares who it is taken for (KIP-1242).
        """
        self._identity = identity
        return self._negotiation.becomes(identity)

    @property
    def is_busy(self) -> bool:
        """Whether a request has no answer yet, or one that is not decoded."""
        return bool(self.pipeline or self.large_answers)

    def _not_ready(self) -> ConnectionLost:
        state = self.state.name.lower()
        return ConnectionLost(f"{self._identity.peer}: the connection is {state}")

    # ---- what happens ----------------------------------------------------------------

    def opened(
        self, now: float, mechanism: MechanismPort | None = None, roll: float = 0.0
    ) -> None:
        """The transport is connected: begin the handshake.

        Args:
            now: the time.
            mechanism: authenticates the client; None if the cluster demands nothing.
            roll: a random number in [0, 1), for the time of the next authentication.
        """
        self._fire(ConnectionEvent.OPENED)
        self._mechanism, self._roll = mechanism, roll
        self._negotiate(now)

    def receive(self, frame: Buffer, now: float) -> ReceivedAnswer | Closing | None:
        """Take one frame without its length.

        Returns:
            The answer to the oldest request; a Closing if the frame is malformed, or
            refuses the client; None if the frame was part of the handshake or of an
            authentication, after the connection has closed, and if the answer is in
            `large_answers` now.
        """
        if self.state is _CLOSED:
            return None
        try:
            ticket = self.pipeline.claim(frame, now)
        except ProtocolError as error:
            return self.closed(error)
        if self.state is not _READY and (
            self.state is not _REAUTHENTICATING or ticket.correlation_id >= RESERVED_IDS
        ):
            return self._handshake_answered(ticket, frame, now)
        if len(frame) > LARGE_ANSWER or self.large_answers.size:
            self.large_answers.add(ticket, frame)
            return None
        last, kind = ticket.last, ticket.kind
        response = None if last is None else last.repeated(kind.version, frame)
        if response is None:
            try:
                response = kind.decode(frame)
                check(response)
            except ProtocolError as error:
                self.pipeline.put_back(ticket)
                return self._undecodable(ticket, error)
            if getattr(response, "throttle_time_ms", 0):
                return self._answered(ticket, response, len(frame), now)
            if last is not None:  # so the answer that is kept never throttles
                last.keep(kind.version, frame, response)
        return ReceivedAnswer(ticket, response, 0.0, len(frame))

    def decode(self, now: float) -> ReceivedAnswer | Closing | None:
        """Decode one slice of the oldest large answer; there must be one.

        Returns:
            The answer if that was its last slice; a Closing if it is malformed.
        """
        try:
            done = self.large_answers.decode()
        except ProtocolError as error:
            return self._undecodable(self.large_answers.oldest, error)
        return None if done is None else self._answered(*done, now)

    def announced(self, size: int) -> Closing | None:
        """Check the size of a large frame before it is received.

        Returns:
            A Closing if it is too large for its request, or answers none.
        """
        if self.state is _CLOSED:
            return None
        ticket = self.pipeline.next_large
        if ticket is None:
            error = ProtocolError(f"an answer of {size} bytes to no request")
            return self.closed(error)
        try:
            self.large_answers.check(ticket, size)
        except ProtocolError as error:
            # A retry gets the same size: the user has to change the option.
            return self._undecodable(ticket, error, may_pass=False)
        return None

    def _answered(
        self, ticket: AnyTicket, response: Response, size: int, now: float
    ) -> ReceivedAnswer:
        version, longest = ticket.kind.version, self._identity.max_throttle
        seconds = pause_after(response, version, longest)
        if seconds:
            self.pipeline.pause(seconds, now)
        return ReceivedAnswer(ticket, response, seconds, size)

    def expire(self, now: float) -> Closing | Renewal | None:
        """Act on the time: release requests that were held back, end overdue ones.

        Returns:
            A Closing if a request had no answer in time, or nothing was sent or
            received for the idle timeout. A Renewal, once, if the session has to be
            renewed.
        """
        if self.state in {ConnectionState.CONNECTING, ConnectionState.CLOSED}:
            return None
        self.pipeline.release(now)
        overdue = self.pipeline.overdue(now)
        if overdue:
            return self._timed_out(overdue)
        if not self.is_busy and now >= self.pipeline.idle_at:
            return self.closed(None)
        renewal = self._renewal(now)
        self.pipeline.update_deadline(now)
        if self._renew_at != inf:
            self.pipeline.expire_by(self._renew_at)
        return renewal

    def closed(self, cause: BaseException | None) -> Closing:
        """End every ticket: the connection is lost, or has to be closed. Called once.

        Args:
            cause: the error that broke it; None if this side closes it.
        """
        return self._close(cause, {})

    # ---- the handshake ---------------------------------------------------------------

    def _fire(self, event: ConnectionEvent) -> None:
        try:
            self.state = TRANSITIONS[self.state, event]
        except KeyError:
            what = f"{event.name} while {self.state.name}"
            raise InternalError(f"{self._identity.peer}: {what}") from None

    def _negotiate(self, now: float) -> None:
        version = self._negotiation.version
        if version is not None:
            request = self._negotiation.request()
            timeout = self._identity.request_timeout
            self._asked_at = now
            kind = self.pipeline.kind(type(request), version)
            self.pipeline.send(request, kind, now=now, timeout=timeout)
            return
        self.versions = self._negotiation.versions
        mechanism, self._mechanism = self._mechanism, None
        if mechanism is None:
            self._ready(now)
        else:
            self._authenticate(mechanism, now, is_pipelined=False)

    def _ready(self, now: float) -> None:
        self._fire(ConnectionEvent.HANDSHAKE_DONE)
        # Now, if requests were held back during the authentication.
        self.pipeline.expire_by(now if self.pipeline.held else self.pipeline.idle_at)
        self.pipeline.expire_by(self._renew_at)

    def _handshake_answered(
        self, ticket: AnyTicket, frame: Buffer, now: float
    ) -> Closing | None:
        try:
            if self._exchange is not None:
                self._send(self._exchange, self._exchange.receive(frame), now)
            else:
                response = self._negotiation.receive(frame)
                self.round_trip = now - self._asked_at
                longest = self._identity.max_throttle
                if seconds := pause_after(response, ticket.kind.version, longest):
                    self.pipeline.pause(seconds, now)
                self._negotiate(now)
        except KafkaError as error:
            return self.closed(error)
        return None

    # ---- authentication --------------------------------------------------------------

    @property
    def work(self) -> Work | None:
        """The work to run in a thread before the authentication can go on.

        Its end is reported to `worked`, or its error to `work_failed`.
        """
        return None if self._exchange is None else self._exchange.work

    def worked(self, message: bytes | None, now: float) -> Closing | None:
        """The ``work`` is done.

        Args:
            message: its result.
            now: the time.

        Returns:
            A Closing if the authentication cannot go on.
        """
        exchange = self._exchange
        if exchange is None or self.state is _CLOSED:
            return None  # closed meanwhile
        try:
            self._send(exchange, exchange.worked(message), now)
        except KafkaError as error:
            return self.closed(error)
        return None

    def work_failed(self, error: KafkaError) -> Closing | None:
        """The ``work`` raised an error, which ends the connection."""
        exchange = self._exchange
        if exchange is None or self.state is _CLOSED:
            return None
        if isinstance(error, AuthenticationError):
            error = exchange.failed(error)
        return self.closed(error)

    def reauthenticate(
        self, mechanism: MechanismPort, now: float, roll: float
    ) -> Closing | None:
        """Authenticate again, as a `Renewal` demanded.

        Args:
            mechanism: a new one.
            now: the time.
            roll: a random number in [0, 1), for the time of the next authentication.

        Returns:
            A Closing if the credentials cannot be used.
        """
        if self.state is _CLOSED:
            return None
        self._roll = roll
        try:
            self._authenticate(mechanism, now, is_pipelined=True)
        except KafkaError as error:
            return self.closed(error)
        return None

    def _authenticate(
        self, mechanism: MechanismPort, now: float, *, is_pipelined: bool
    ) -> None:
        # Loaded here, as below, because most clients do not authenticate.
        from kafkaio._machines.sasl.exchange import SaslExchange

        self._fire(ConnectionEvent.AUTHENTICATION_DUE)
        self._sasl_began_at = now
        self._exchange = exchange = SaslExchange(
            mechanism,
            self.versions,
            peer=self._identity.peer,
            address=self._identity.address,
            is_pipelined=is_pipelined,
        )
        self._send(exchange, exchange.begin(), now)

    def _send(
        self, exchange: SaslExchange, requests: Sequence[SaslRequest], now: float
    ) -> None:
        """Write the requests of the exchange, or go on after the last one."""
        timeout = self._identity.request_timeout
        for request, version in requests:
            self.pipeline.send_authentication(
                request, version, now=now, timeout=timeout
            )
            self._sasl_sent_at = now
        if exchange.is_complete:
            self._authenticated(exchange, now)
        elif requests and exchange.is_pipelined:
            # Later requests belong to the new session.
            assert self.session is not None
            self.pipeline.hold_from = now + self.session.lasts
            self.pipeline.expire_by(now)
        elif requests:
            # Nothing may come between the requests of the exchange.
            self.pipeline.hold_from = -inf

    def _authenticated(self, exchange: SaslExchange, now: float) -> None:
        from kafkaio._machines.sasl.session import AuthenticatedSession

        self._exchange = None
        self._is_renewing = False
        self.sasl_seconds = now - self._sasl_began_at
        self.session = session = AuthenticatedSession.begun(
            now, self._sasl_sent_at, exchange.lifetime, self._roll
        )
        # Once the renewal is due, no request goes out before it: if a blocked loop is
        # late, the broker might read the request after the end of the session.
        renew_at = inf if session.is_short else session.renew_at
        self.pipeline.hold_from = min(renew_at, session.ends_at)
        self._renew_at = session.renew_at
        is_first = self.state is ConnectionState.AUTHENTICATING
        if is_first and self._negotiation.ask_again():
            # Before a login brokers do not compare who they are taken for.
            self._fire(ConnectionEvent.CHECK_DUE)
            self._negotiate(now)
        else:
            self._ready(now)

    def _renewal(self, now: float) -> Renewal | None:
        """Decide whether the session has to be renewed now."""
        session, is_blocked = self.session, self.pipeline.is_blocked(now)
        if session is None or self._is_renewing:
            return None
        if not is_blocked and now < self._renew_at:
            return None
        is_unused = not self.pipeline and self.pipeline.last_used <= session.began_at
        if not self.pipeline.held and (is_unused or self.is_retired):
            # The next request is held back, and renews the session.
            self.pipeline.hold_from, self._renew_at = -inf, inf
            return None
        if session.is_short and not self.is_retired and not is_blocked:
            self._renew_at = inf
            return Renewal.REPLACE
        if now < session.renewable_at:
            self._renew_at = session.renewable_at
            return None
        self._renew_at, self._is_renewing = inf, True
        # Getting credentials may take long; requests need not wait for them before the
        # end of the session.
        self.pipeline.hold_from = session.ends_at
        return Renewal.AUTHENTICATE

    # ---- the end ---------------------------------------------------------------------

    def _timed_out(self, overdue: list[AnyTicket]) -> Closing:
        errors = {
            ticket.correlation_id: RequestTimeout(
                f"{self._identity.peer}: no answer to {_api(ticket)} in time"
            )
            for ticket in overdue
        }
        return self._close(errors[overdue[0].correlation_id], errors)

    def _undecodable(
        self, ticket: AnyTicket, cause: ProtocolError, *, may_pass: bool = True
    ) -> Closing:
        """End the ticket with the cause itself.

        The request may be repeated: one malformed answer can be an accident. Otherwise
        the next connections end in the same way, and then calls fail with a
        ProtocolError that is final (see `kafkaio._net.pool`).
        """
        error = ProtocolError(f"{self._identity.peer}: {_api(ticket)}: {cause}")
        error.__cause__ = cause
        error.retriable = may_pass
        return self._close(error, {ticket.correlation_id: error})

    def _close(
        self, cause: BaseException | None, errors: Mapping[int, KafkaError]
    ) -> Closing:
        unwritten = {id(ticket) for ticket in self.pipeline.unwritten}
        pending = [*self.large_answers.clear(), *self.pipeline.clear()]
        self._fire(ConnectionEvent.CLOSED)
        self.kinds.clear()
        failed = []
        for ticket in pending:
            is_unwritten = id(ticket) in unwritten
            what = "not sent, connection lost" if is_unwritten else "connection lost"
            error = errors.get(ticket.correlation_id) or self._lost(what, cause)
            failed.append((ticket, error))
        return Closing(cause, tuple(failed))

    def _lost(self, what: str, cause: BaseException | None) -> ConnectionLost:
        why = "closed" if cause is None else str(cause) or type(cause).__name__
        error = ConnectionLost(f"{self._identity.peer}: {what}: {why}")
        error.__cause__ = cause
        return error


def _api(ticket: AnyTicket) -> str:
    return f"{ticket.kind.api} v{ticket.kind.version}"
