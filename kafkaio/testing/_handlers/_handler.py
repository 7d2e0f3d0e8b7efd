"""The decorator of the handlers: what a request needs is declared, and checked here.

A handler is an async function of a `RequestContext` that returns a response. The checks
that it declares run before it, in their order, which decides the error of a request
that fails several. They, and the handler, refuse a request as a whole by raising
`Refusal`; the decorator makes the response.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import update_wrapper
from typing import Generic, Protocol, TypeAlias, TypeVar

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import Request, Response
from kafkaio.protocol.messages.request_header import RequestHeader
from kafkaio.testing._broker.cluster import EmbeddedCluster
from kafkaio.testing._broker.connection import ServerConnection, response_with
from kafkaio.testing._broker.node import BrokerNode
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._handlers._rights import Rights, rights_of
from kafkaio.testing._security.acls import Operation, ResourceType

_RequestT = TypeVar("_RequestT", bound=Request[Response])
_RequestT_co = TypeVar("_RequestT_co", bound=Request[Response], covariant=True)


class RequestContext(Generic[_RequestT_co]):
    """One request while it is served.

    Attributes:
        node: the node that serves it.
        cluster: the cluster of the node.
        header: its header.
        request: its body.
        connection: the client's connection.
        rights: what the client may do.
    """

    __slots__ = ("cluster", "connection", "header", "node", "request", "rights")

    def __init__(
        self,
        node: BrokerNode,
        header: RequestHeader,
        request: _RequestT_co,
        connection: ServerConnection,
    ) -> None:
        self.node = node
        self.cluster: EmbeddedCluster = node.cluster
        self.header = header
        self.request = request
        self.connection = connection
        # Once for each request: the ACLs may change between two.
        self.rights: Rights = rights_of(node, connection)

    @property
    def version(self) -> int:
        """The API's version that the request is in."""
        return self.header.request_api_version


#: Raises `Refusal` for a request that cannot be served.
Check: TypeAlias = Callable[[RequestContext[_RequestT]], None]
_AnyCheck: TypeAlias = Callable[[RequestContext[Request[Response]]], None]
_Serve: TypeAlias = Callable[[RequestContext[_RequestT]], Awaitable[Response | None]]
#: Makes the response to a request that was refused; None for no response.
_Refused: TypeAlias = Callable[[RequestContext[_RequestT], Refusal], Response | None]


class CoordinatorPort(Protocol):
    """The coordinator of groups or of transactions, for `coordinated`."""

    def refuse(self, node_id: int, name: str, /) -> ErrorCode:
        """Return why a node cannot serve a group or an id; NONE if it can."""


class ApiHandler(Generic[_RequestT]):
    """Serves the requests of one API: the function that `handler` decorated.

    Attributes:
        by_partition: whether a response has an error code for each partition, or for
            each other part.
    """

    def __init__(
        self,
        serve: _Serve[_RequestT],
        kind: type[_RequestT],
        checks: Sequence[Check[_RequestT]],
        refused: _Refused[_RequestT] | None,
        *,
        by_partition: bool,
    ) -> None:
        self.by_partition = by_partition
        self._serve = serve
        self._kind = kind
        self._checks = checks
        self._refused = refused
        update_wrapper(self, serve)

    async def __call__(
        self,
        node: BrokerNode,
        header: RequestHeader,
        request: Request[Response],
        connection: ServerConnection,
    ) -> Response | None:
        """Check and serve one request; None if it is not answered."""
        # The registry maps API keys to modules by name; this holds the two together. By
        # the key and not by the class: a test run that imports modules anew has two
        # classes of one message.
        assert request.API_KEY == self._kind.API_KEY
        asked: _RequestT = request  # type: ignore[assignment]  # of this API
        context = RequestContext(node, header, asked, connection)
        try:
            for check in self._checks:
                check(context)
            return await self._serve(context)
        except Refusal as refusal:
            # Without a place for the error this is a bug, which the node reports.
            if self._refused is None:
                raise
            return self._refused(context, refusal)


def handler(
    kind: type[_RequestT],
    *checks: Check[_RequestT],
    refused: _Refused[_RequestT] | None = None,
    by_partition: bool = False,
) -> Callable[[_Serve[_RequestT]], ApiHandler[_RequestT]]:
    """Decorate the handler of an API.

    Args:
        kind: the class of its requests.
        checks: what is checked before the handler runs, in this order.
        refused: makes the response to a refused request; the default has its error
            code alone.
        by_partition: whether a response has an error code for each partition, or for
            each other part: an error fault goes there (``connection.error_for``), not
            to the response as a whole.
    """
    # A response without such a field has errors only for its parts.
    has_code = any(field.name == "error_code" for field in kind.response_type().SCHEMA)
    if refused is None and has_code:
        refused = _with_code

    def decorate(serve: _Serve[_RequestT]) -> ApiHandler[_RequestT]:
        return ApiHandler(serve, kind, checks, refused, by_partition=by_partition)

    return decorate


def _with_code(
    context: RequestContext[Request[Response]], refusal: Refusal
) -> Response:
    return response_with(type(context.request), refusal.code)


def with_message(
    context: RequestContext[Request[Response]], refusal: Refusal
) -> Response:
    """Make a response with the code and the message of a refusal."""
    response = response_with(type(context.request), refusal.code)
    if hasattr(response, "error_message"):
        response.error_message = refusal.message
    return response


# ---- checks --------------------------------------------------------------------------


def right(
    operation: Operation,
    kind: ResourceType,
    field: str = "",
    *,
    explained: bool = False,
) -> _AnyCheck:
    """Check that the client has a right; refuse with the error of that resource.

    Args:
        operation: what the client has to be allowed to do.
        kind: the type of the resource.
        field: the request's field with the resource's name; empty for the cluster.
        explained: whether the refusal has a message, too.
    """

    def check(context: RequestContext[Request[Response]]) -> None:
        # Without a name the resource is the cluster.
        name = (getattr(context.request, field),) if field else ()
        if explained:
            context.rights.require(operation, kind, *name)
        elif code := context.rights.denied(operation, kind, *name):
            raise Refusal(code)

    return check


def coordinated(
    coordinator_of: Callable[[EmbeddedCluster], CoordinatorPort], field: str
) -> _AnyCheck:
    """Check that this node is the coordinator, and has loaded what is asked for.

    Args:
        coordinator_of: finds the coordinator of a cluster.
        field: the request's field with the name of the group, or the id.
    """

    def check(context: RequestContext[Request[Response]]) -> None:
        name = getattr(context.request, field)
        check_coordinator(context, coordinator_of(context.cluster), name)

    return check


def check_coordinator(
    context: RequestContext[Request[Response]],
    coordinator: CoordinatorPort,
    name: str,
) -> None:
    """Check that this node coordinates a group or an id.

    Raises:
        Refusal: with the error of the coordinator.
    """
    if code := coordinator.refuse(context.node.node_id, name):
        raise Refusal(code)
