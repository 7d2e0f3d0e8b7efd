"""Requests to a coordinator, whichever broker that is now.

`CoordinatorRpc` knows the coordinator of one group or one transactional id.
`CoordinatorRpc.call` sends a request once: a group member's machine decides what to
retry. `CoordinatorRpc.repeat` sends a request until it is answered for good: the
transaction coordinator has to get the same request again, unchanged.

Invariant: a coordinator that hangs up, does not answer, or says that it is none, is
forgotten before the next attempt, which looks it up again. The cluster forgets it as
well when any connection to it breaks, and when the metadata no longer lists it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from math import inf
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kafkaio._client.retry import Attempts
from kafkaio._machines.api_versions import ApiVersions
from kafkaio._machines.connection.pipeline import LastAnswer
from kafkaio._machines.coordinators import CoordinatorKind
from kafkaio._machines.reactions import reaction
from kafkaio._net.connection import Connection
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._runtime.clock import now
from kafkaio._runtime.lifecycle import weakly
from kafkaio._runtime.prompt import PromptFuture
from kafkaio._runtime.scopes import CancelScope
from kafkaio._runtime.timer import Timer
from kafkaio.errors import (
    ConnectionLost,
    KafkaError,
    NetworkError,
    RequestTimeout,
    UnsupportedVersion,
)
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.protocol._message import Request, Response

if TYPE_CHECKING:
    from kafkaio._client.ports import ConnectionPort

ResponseT = TypeVar("ResponseT", bound=Response)

_KINDS = {
    CoordinatorKind.GROUP: "group",
    CoordinatorKind.TRANSACTION: "transactional id",
    CoordinatorKind.SHARE: "share group",
}


#: Most answers that are kept until those that have ended are dropped.
_MOST_ENDED: Final = 16


class Answer(PromptFuture[ResponseT | None]):
    """The answer to a request; None if there is none, see `CoordinatorRpc.failure_of`.

    Args:
        connection: where the request is sent.
        api: the name of the request, for messages.
        deadline: the time of the loop's clock until which the answer is awaited.

    Attributes:
        connection: see above.
        api: see above.
        deadline: see above.
        failure: why there is none; None if the deadline has passed.
    """

    __slots__ = ("api", "connection", "deadline", "failure")

    def __init__(self, connection: Connection, api: str, deadline: float) -> None:
        PromptFuture.__init__(self, loop=asyncio.get_running_loop())
        self.failure: Exception | None = None
        self.connection: Connection = connection
        self.api: str = api
        self.deadline: float = deadline

    def set_exception(self, exception: type | BaseException, /) -> None:
        """Note why there is no answer."""
        assert isinstance(exception, Exception)
        self.failure = exception
        # Later: the connection is about to end, and may not have said so to everyone.
        self.set_result_later(None)


class _PlainAnswer(Answer[ResponseT]):
    """An answer that wakes more than one task: they run in the order of the loop."""

    __slots__ = ()

    def set_result(self, result: ResponseT | None, /) -> None:
        """Take the answer; the task goes on in the next iteration."""
        self.set_result_later(result)


class CoordinatorRpc:
    """Sends the requests about one group or transactional id to its coordinator.

    Args:
        cluster: finds the coordinator, and connects to it.
        kind: groups, share groups, or transactional ids.
        key: the group, or the transactional id.

    Attributes:
        kind: groups, share groups, or transactional ids.
        key: the group, or the transactional id.
        name: kind and key for messages, such as ``transactional id 'billing'``.
        failure: why the coordinator was not found or reached by the last attempt; None
            if it was.
    """

    __slots__ = (
        "__weakref__",
        "_awaited",
        "_cluster",
        "_last_node_id",
        "_node_id",
        "_timer",
        "failure",
        "key",
        "kind",
        "name",
    )

    def __init__(
        self, cluster: ConnectionPort, kind: CoordinatorKind, key: str
    ) -> None:
        self._cluster = cluster
        self.kind: CoordinatorKind = kind
        self.key: str = key
        self.name: str = f"{_KINDS[kind]} {key!r}"
        self.failure: KafkaError | None = None
        # The node that the last request went to. None before the first request, and
        # once the node is known not to be the coordinator.
        self._node_id: int | None = None
        # The same for messages: it is never forgotten.
        self._last_node_id: int | None = None
        # The answers that are awaited until a deadline, which are few, and some that
        # have ended, and are dropped now and then. One timer serves all of them:
        # it is not set again for each request, but when it has fired. It may fire after
        # the owner has ended, so it refers to this object weakly.
        self._awaited: list[Answer[Any]] = []
        self._timer = Timer(weakly(self._give_up))

    @property
    def node_id(self) -> int | None:
        """The coordinator as it was known last."""
        return self._node_id

    def forget(self) -> None:
        """Forget the coordinator, which has moved: the next request looks it up."""
        if self._node_id is not None:
            self._cluster.forget_coordinator(self.kind, self.key, self._node_id)
            self._node_id = None

    def silent(self, cause: KafkaError) -> None:
        """Forget a coordinator that does not answer, and fail all in flight to it.

        Args:
            cause: why the connections to it are closed.
        """
        node_id = self._node_id
        if node_id is not None:
            self.forget()
            self._cluster.close_connections(node_id, cause)

    async def connection(
        self, connection_class: ConnectionClass, deadline: float
    ) -> Connection:
        """A connection to the coordinator.

        Args:
            connection_class: which of its connections.
            deadline: the time of the loop's clock by which there must be one.

        Raises:
            RequestTimeout: there was none in time; the coordinator is forgotten.
            NetworkError: the coordinator cannot be reached, and is forgotten.
            BrokerError: the look-up was refused for good.
        """
        ready = self.at_hand(connection_class)
        if ready is not None:
            return ready
        step = "no coordinator was found"
        with CancelScope(deadline=deadline):
            self._node_id = self._last_node_id = await self._cluster.coordinator(
                self.kind,
                self.key,
                # A little less than all: its error has the reason, this one has none.
                timeout=max(0.001, 0.95 * (deadline - now())),
                on_failure=self._not_found,
            )
            step = f"no connection to its coordinator {self._node_id} could be made"
            # Offsets are fetched and committed on this one; others wait for members.
            self._cluster.prepare(self._node_id, ConnectionClass.SHARED)
            try:
                found = await self._cluster.connection(self._node_id, connection_class)
            except NetworkError as error:
                self._not_found(error)
                self.forget()
                raise
            self.failure = None
            return found
        # The time is over: perhaps the coordinator hangs, and has a successor.
        self.forget()
        why = f"; the last failure: {self.failure}" if self.failure else ""
        raise RequestTimeout(f"{self.name}: {step} in time{why}") from self.failure

    def at_hand(self, connection_class: ConnectionClass) -> Connection | None:
        """The connection that `connection` returns without waiting; None for none."""
        # The cluster decides, not `_node_id`: another user of the coordinator may have
        # learnt that it has moved.
        found = self._cluster.ready_coordinator(self.kind, self.key, connection_class)
        if found is not None:
            self._node_id = self._last_node_id = found.node_id
            self.failure = None
        return found

    def _not_found(self, error: KafkaError) -> None:
        self.failure = error

    def ready(self, *connection_classes: ConnectionClass) -> Connection | None:
        """The first open connection of these to the coordinator; opens nothing."""
        node_id = self._node_id
        if node_id is None:
            return None
        for each in connection_classes:
            found = self._cluster.ready_connection(node_id, each)
            if found is not None:
                return found
        return None

    async def call(
        self,
        request: Request[ResponseT],
        connection_class: ConnectionClass,
        *,
        timeout: float,
        is_vital: bool = False,
    ) -> ResponseT:
        """Send a request once.

        If the call is cancelled, the request may still take effect.

        Args:
            request: the request.
            connection_class: which connection to the coordinator to use.
            timeout: seconds for the connection, and again for the answer.
            is_vital: as in `call_on`.

        Raises:
            KafkaError: as `connection` and `call_on`.
        """
        connection = await self.connection(connection_class, now() + timeout)
        return await self.call_on(
            connection, request, timeout=timeout, is_vital=is_vital
        )

    def call_on(  # noqa: PLR0913 - the request and its limits
        self,
        connection: Connection,
        request: Request[ResponseT],
        *,
        timeout: float,
        max_version: int | None = None,
        is_vital: bool = False,
        on_sent: Callable[[], None] | None = None,
        deadline: float = inf,
    ) -> Coroutine[Any, Any, ResponseT]:
        """Send a request once on a connection that `connection` returned.

        It is sent before the call returns; the coroutine waits for the answer.

        Args:
            connection: where to send it.
            request: the request.
            timeout: seconds for the answer.
            max_version: the highest version of the request to use.
            is_vital: whether a coordinator that does not answer it counts as dead: all
                that is in flight to it fails then.
            on_sent: called when the request was handed to the connection, from then on
                it may take effect; not called if that was refused.
            deadline: as for `send`.

        Raises:
            RequestTimeout: no answer came by the deadline.
            KafkaError: raised by the connection. A coordinator that hangs up or does
                not answer is forgotten.
        """
        answer: Answer[ResponseT] = _PlainAnswer(connection, request.NAME, deadline)
        self._submit(answer, request, timeout, max_version)
        if on_sent is not None and not answer.done():
            on_sent()
        return self._response(answer, is_vital=is_vital)

    async def _response(
        self, answer: Answer[ResponseT], *, is_vital: bool
    ) -> ResponseT:
        response = await answer
        if response is None:
            raise self.failure_of(answer, is_vital=is_vital)
        return response

    def send(
        self,
        connection: Connection,
        request: Request[ResponseT],
        *,
        timeout: float,
        max_version: int | None = None,
        deadline: float = inf,
        last: LastAnswer | None = None,
    ) -> Answer[ResponseT]:
        """Send a request as `call_on` does, and return its answer, to be awaited.

        Args:
            connection: where to send it.
            request: the request.
            timeout: seconds for the answer.
            max_version: the highest version of the request to use.
            deadline: the time of the loop's clock until which the answer is awaited. A
                request that a throttle still holds back then is withdrawn, and cannot
                take effect any more. Another one stays in flight: what is sent later
                on the connection takes effect after it.
            last: as for `Connection.submit`.
        """
        answer: Answer[ResponseT] = Answer(connection, request.NAME, deadline)
        self._submit(answer, request, timeout, max_version, last)
        return answer

    def _submit(
        self,
        answer: Answer[ResponseT],
        request: Request[ResponseT],
        timeout: float,
        max_version: int | None,
        last: LastAnswer | None = None,
    ) -> None:
        answer.connection.submit_to(
            answer, request, timeout=timeout, max_version=max_version, last=last
        )
        deadline = answer.deadline
        if deadline != inf:
            # A commit comes here for each record of some programs: this costs less than
            # a scope. The connection keeps the request, whose answer is then dropped,
            # or withdraws it if a throttle has held it back.
            self._awaited.append(answer)
            if len(self._awaited) > _MOST_ENDED:
                self._awaited = [each for each in self._awaited if not each.done()]
            if deadline < self._timer.when:
                self._timer.set(deadline)

    def failure_of(
        self, answer: Answer[ResponseT], *, is_vital: bool = False
    ) -> Exception:
        """Return why a request was not answered.

        A coordinator that hung up, or does not answer, is forgotten.

        Args:
            answer: ended with None.
            is_vital: as for `call_on`.
        """
        connection, error = answer.connection, answer.failure
        if isinstance(error, RequestTimeout) and is_vital:
            self.silent(error)
        elif isinstance(error, ConnectionLost | RequestTimeout):
            self.forget()
        if error is not None:
            return error
        if not connection.throttled:
            self.forget()  # another broker may be the coordinator by now
        return RequestTimeout(connection.why_late(answer.api.removesuffix("Request")))

    def _give_up(self) -> None:
        # Of all that wait, the timer was set for the first.
        at, following = now(), inf
        for answer in self._awaited:
            if answer.done():
                continue
            if answer.deadline > at:
                following = min(following, answer.deadline)
            else:
                answer.set_result_later(None)
        if following != inf:
            self._timer.set(following)

    def expired(self, attempts: Attempts) -> KafkaError:
        """Make the error for attempts whose time is over.

        It says what the last attempt waited for, if that is not the last failure: the
        end of a throttle, or an answer.
        """
        self._note_throttle(attempts)
        if attempts.last is None and self._node_id is None:
            attempts.stage = "no coordinator was found"
        elif attempts.last is None:
            attempts.stage = f"its coordinator, broker {self._node_id}, did not answer"
        return attempts.expired()

    def _note_throttle(self, attempts: Attempts) -> None:
        connection = self.ready(ConnectionClass.SHARED)
        if connection is not None and (held := connection.why_held()):
            attempts.note(RequestTimeout(held))

    # ---- the loop ------------------------------------------------------------------

    async def repeat(  # noqa: PLR0913 - the request, its limits, and the waits
        self,
        request: Request[ResponseT] | Callable[[ApiVersions], Request[ResponseT]],
        attempts: Attempts,
        *,
        timeout: float,
        code: Callable[[ResponseT], int],
        max_version: int | None = None,
        min_version: int = 0,
        connection_class: ConnectionClass = ConnectionClass.SHARED,
        pace: Callable[[int], float | None] | None = None,
        on_sent: Callable[[], None] | None = None,
        check: Callable[[], None] | None = None,
    ) -> ResponseT:
        """Send the same request until its answer is one that no repetition changes.

        `kafkaio._machines.reactions` decides by the answer's code whether the request
        is sent again, and whether the coordinator is looked up again.
        Failures of the network, and attempts without an answer in time, are repeated.

        If the call is cancelled, the request may still take effect if it was sent.

        Args:
            request: the request; it is sent unchanged each time. Or makes the request
                for a broker that supports these versions.
            attempts: the time for all of it, and the waits in between.
            timeout: seconds for one connection, and again for one answer.
            code: reads the error code of an answer.
            max_version: the highest version of the request to use.
            min_version: the lowest version that can express the request.
            connection_class: which connection to the coordinator to use.
            pace: returns the seconds to wait after an error code; None for the
                back-off.
            on_sent: called each time that the request was handed to a connection:
                from then on it may take effect, whatever the call raises.
            check: called each time before the request is sent; what it raises ends
                the call.

        Returns:
            The answer: of success, or with a code that is not to be retried.

        Raises:
            RequestTimeout: the deadline of the attempts has passed; the message names
                the coordinator, and the cause is the last failure.
            UnsupportedVersion: the coordinator knows no version in the limits; that
                request was not sent.
            KafkaError: a failure that is not retriable.
        """
        with CancelScope(deadline=attempts.deadline):
            while True:
                delay = None
                try:
                    attempts.stage = "it waits for a connection"
                    connection = await self.connection(
                        connection_class, now() + timeout
                    )
                    asked = _made(request, connection.versions)
                    self._check_version(connection, asked, min_version, max_version)
                    # There is no await between this and the request.
                    if check is not None:
                        check()
                    attempts.stage = "it waits for the answer"
                    # Not only the time that is left: a connection is closed whose
                    # request gets no answer in its time, and others use it, too.
                    answer = await self.call_on(
                        connection,
                        asked,
                        timeout=timeout,
                        max_version=max_version,
                        on_sent=on_sent,
                    )
                except KafkaError as failure:
                    if not failure.retriable:
                        raise
                    error = failure
                else:
                    number = code(answer)
                    what = reaction(asked.API_KEY, number)
                    if what.refind_coordinator:
                        self.forget()
                    if not what.retry:
                        return answer
                    error = broker_error(number, attempts.what)
                    delay = None if pace is None else pace(number)
                attempts.failed(error, delay)
                if attempts.due >= attempts.deadline:
                    break
                await attempts.wait()
        self._note_throttle(attempts)
        raise self._expired(attempts)

    def _check_version(
        self,
        connection: Connection,
        request: Request[Response],
        min_version: int,
        max_version: int | None,
    ) -> None:
        found = connection.versions.usable(type(request), max_version)
        if found < min_version:
            connection.versions.miss(request.API_KEY)
            raise UnsupportedVersion(
                f"{self.name}: {request.NAME} is needed in version {min_version}; "
                f"its coordinator, broker {self._node_id}, supports {found}"
            )

    def _expired(self, attempts: Attempts) -> KafkaError:
        if attempts.last is None and self.failure is not None:
            attempts.note(self.failure)
        error = attempts.expired()
        if error is attempts.last:  # a ``surfaced`` error is raised as it is
            return error
        where = "unknown"
        if self._last_node_id is not None:
            where = f"broker {self._last_node_id}"
        located = RequestTimeout(f"{self.name} (coordinator: {where}): {error}")
        located.__cause__ = error.__cause__
        return located


def _made(
    request: Request[ResponseT] | Callable[[ApiVersions], Request[ResponseT]],
    versions: ApiVersions,
) -> Request[ResponseT]:
    return request if isinstance(request, Request) else request(versions)
