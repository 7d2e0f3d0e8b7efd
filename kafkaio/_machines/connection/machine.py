"""One connection to a broker, without its socket and its clock.

The driver passes in what happened (the transport opened, a frame came, the time), with
the time, writes what `Pipeline.take_output` returns, and calls `expire` at
`Pipeline.next_deadline`. To send a request it asks the machine for the version, and
hands the request to the pipeline.

Invariant: each request gets a ``Ticket``, and each ticket ends exactly once: it is
answered, or it is among the failures of the one ``Closing``. A request that times out
closes the whole connection, because every later answer would have to wait behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from kafkaio._dataclass import dataclass
from kafkaio._machines.api_versions import ApiVersions
from kafkaio._machines.connection.handshake import Handshake, HandshakeStep, Identity
from kafkaio._machines.connection.pipeline import AnyTicket, Pipeline
from kafkaio._machines.connection.states import (
    TRANSITIONS,
    ConnectionEvent,
    ConnectionState,
)
from kafkaio._machines.connection.throttle import pause_after
from kafkaio.errors import (
    ConnectionLost,
    InternalError,
    KafkaError,
    ProtocolError,
    RequestTimeout,
)
from kafkaio.protocol.headers import decode_response
from kafkaio.protocol.message import Buffer, Request, Response

__all__ = ["Answer", "Closing", "ConnectionMachine"]

# Every request needs these two; a module's global is read in a fifth of the time.
_READY: Final = ConnectionState.READY
_CLOSED: Final = ConnectionState.CLOSED


class Answer(NamedTuple):
    """A ticket that ended well.

    Attributes:
        ticket: the request.
        response: its answer, of ``ticket.response_type``.
        throttled: seconds that the broker tells the client to pause; 0 for none.
    """

    ticket: AnyTicket
    response: Response
    throttled: float


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
        identity: what to tell the broker, and how long to wait.
        now: the time; seconds of any monotonic clock, as in every method.
        last_id: the correlation id before the first one.
        authentication: the step of the handshake that follows the negotiation of
            versions; None for none.
    """

    def __init__(
        self,
        identity: Identity,
        now: float,
        *,
        last_id: int = -1,
        authentication: HandshakeStep | None = None,
    ) -> None:
        self._identity = identity
        self._handshake = Handshake(identity, authentication)
        self._is_retired = False
        #: How far the connection has come.
        self.state = ConnectionState.CONNECTING
        #: What the broker announced; empty until the negotiation has ended.
        self.versions = ApiVersions()
        #: The requests under way, and what is to be written.
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
        """What the handshake does, or did last, for error messages."""
        return self._handshake.step.name

    # ---- requests --------------------------------------------------------------------

    def version_for(
        self, request: type[Request[Response]], max_version: int | None = None
    ) -> int:
        """Choose the version of a request, to be passed to `Pipeline.send`.

        Args:
            request: class of the request.
            max_version: the highest version to use.

        Raises:
            ConnectionLost: the connection is closed, or not ready yet.
            UnsupportedVersion: no version fits.
        """
        if self.state is not _READY:
            raise self._not_ready()
        return self.versions.usable(request, max_version)

    def retire(self) -> None:
        """Ask for the end as soon as nothing is in flight; see `is_finished`."""
        self._is_retired = True

    @property
    def is_finished(self) -> bool:
        """Whether the connection was retired and has nothing left to do."""
        return self._is_retired and not self.pipeline

    def _not_ready(self) -> ConnectionLost:
        state = self.state.name.lower()
        return ConnectionLost(f"{self._identity.peer}: the connection is {state}")

    # ---- what happens ----------------------------------------------------------------

    def opened(self, now: float) -> None:
        """The transport is connected: begin the handshake."""
        self._fire(ConnectionEvent.OPENED)
        self._continue_handshake(now)

    def receive(self, frame: Buffer, now: float) -> Answer | Closing | None:
        """Take one frame without its length.

        Returns:
            The answer to the oldest request; a Closing if the frame makes no sense;
            None during the handshake and after the connection has closed.
        """
        if self.state is _CLOSED:
            return None
        try:
            ticket = self.pipeline.claim(frame, now)
        except ProtocolError as error:
            return self.closed(error)
        if self.state is not _READY:
            return self._handshake_answered(ticket, frame, now)
        try:
            response = decode_response(ticket.response_type, ticket.version, frame)
        except ProtocolError as error:
            return self._undecodable(ticket, error)
        seconds = pause_after(response, ticket.version)
        if seconds:
            self.pipeline.pause(seconds, now)
        return Answer(ticket, response, seconds)

    def expire(self, now: float) -> Closing | None:
        """Look at the clock: send what a throttle held back, end what is overdue.

        Returns:
            A Closing if a request had no answer in time, or nothing was sent or
            received for the idle timeout.
        """
        if self.state in {ConnectionState.CONNECTING, ConnectionState.CLOSED}:
            return None
        self.pipeline.release(now)
        overdue = self.pipeline.overdue(now)
        if overdue:
            return self._timed_out(overdue)
        if not self.pipeline and now >= self.pipeline.idle_at:
            return self.closed(None)
        self.pipeline.update_deadline()
        return None

    def closed(self, cause: BaseException | None) -> Closing:
        """The connection is gone, or has to go: end every ticket. Call it once.

        Args:
            cause: what broke it; None if this side closes it.
        """
        return self._close(cause, {})

    # ---- the handshake ---------------------------------------------------------------

    def _fire(self, event: ConnectionEvent) -> None:
        try:
            self.state = TRANSITIONS[self.state, event]
        except KeyError:
            what = f"{event.name} while {self.state.name}"
            raise InternalError(f"{self._identity.peer}: {what}") from None

    def _continue_handshake(self, now: float) -> None:
        exchange = self._handshake.next_request()
        if exchange is None:
            self._fire(ConnectionEvent.HANDSHAKE_DONE)
            self.pipeline.expire_by(self.pipeline.idle_at)
            return
        is_negotiating = self.state is ConnectionState.NEGOTIATING
        if is_negotiating and self._handshake.is_authenticating:
            self._fire(ConnectionEvent.AUTHENTICATION_DUE)
        request, version = exchange
        timeout = self._identity.request_timeout
        self.pipeline.send(request, version, now=now, timeout=timeout)

    def _handshake_answered(
        self, ticket: AnyTicket, frame: Buffer, now: float
    ) -> Closing | None:
        try:
            response = self._handshake.step.receive(frame)
            self.versions = self._handshake.versions
            if seconds := pause_after(response, ticket.version):
                self.pipeline.pause(seconds, now)
            self._continue_handshake(now)
        except KafkaError as error:
            return self.closed(error)
        return None

    # ---- the end ---------------------------------------------------------------------

    def _timed_out(self, overdue: list[AnyTicket]) -> Closing:
        errors = {
            ticket.correlation_id: RequestTimeout(
                f"{self._identity.peer}: no answer to {_api(ticket)} in time"
            )
            for ticket in overdue
        }
        return self._close(errors[overdue[0].correlation_id], errors)

    def _undecodable(self, ticket: AnyTicket, cause: ProtocolError) -> Closing:
        """End the ticket with the cause itself: sending it again would not help."""
        self.pipeline.put_back(ticket)
        error = ProtocolError(f"{self._identity.peer}: {_api(ticket)}: {cause}")
        error.__cause__ = cause
        return self._close(error, {ticket.correlation_id: error})

    def _close(
        self, cause: BaseException | None, errors: Mapping[int, KafkaError]
    ) -> Closing:
        pending = self.pipeline.clear()
        self._fire(ConnectionEvent.CLOSED)
        failed = [
            (t, errors.get(t.correlation_id) or self._lost(cause)) for t in pending
        ]
        return Closing(cause, tuple(failed))

    def _lost(self, cause: BaseException | None) -> ConnectionLost:
        why = "closed" if cause is None else str(cause) or type(cause).__name__
        error = ConnectionLost(f"{self._identity.peer}: connection lost: {why}")
        error.__cause__ = cause
        return error


def _api(ticket: AnyTicket) -> str:
    return f"{ticket.response_type.NAME.removesuffix('Response')} v{ticket.version}"
