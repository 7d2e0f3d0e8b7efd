"""How the operations of `kafkaio.Admin` ask the cluster, and return or raise.

An operation is a `kafkaio._client.fanout.Operation`. `ask` performs it for many items
within a deadline, and `ask_one` for a single one; both name the Kafka release that is
needed if a broker is too old. `outcome` returns the results in the order asked, or
raises the errors of the items.
"""

from __future__ import annotations

from collections.abc import (
    Callable,
    Hashable,
    Iterable,
    Mapping,
)
from copy import copy
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from kafkaio._client.cluster import Cluster
from kafkaio._client.destinations import Destination
from kafkaio._client.fanout import Answer, Operation, Results, Terms
from kafkaio._client.retry import Attempts
from kafkaio._machines.reactions import Reaction, reaction
from kafkaio._runtime.clock import now
from kafkaio.errors import (
    AdminErrors,
    KafkaError,
    UnsupportedVersion,
)
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import Request, Response

ItemT = TypeVar("ItemT", bound=Hashable)
ValueT = TypeVar("ValueT")
AnswerT = TypeVar("AnswerT", bound=Response)
#: Neither repeats the request nor refreshes anything.
_FINAL = Reaction()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Refusals whose text is the ``toString`` of an object of the broker, of no use to a
#: person.
_DENIED = frozenset(
    {
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    }
)


def final_at(api: int, *codes: ErrorCode) -> Callable[[int], Reaction]:
    """Return the reactions to the error codes of an API, with some codes final.

    Args:
        api: the API whose answers have the codes.
        codes: the codes that fail the item at once, although the table of reactions has
            them as retriable.
    """
    # In the table UNKNOWN_TOPIC_OR_PARTITION is retriable, because a broker may be
    # behind when a producer writes to a new topic. Here it is the answer.
    return lambda code: _FINAL if code in codes else reaction(api, code)


async def ask(
    cluster: Cluster,
    operation: Operation[ItemT, ValueT, AnswerT],
    items: Iterable[ItemT],
    deadline: float,
    since: str,
) -> Results[ItemT, ValueT]:
    """Perform an operation on items until each has a result or the deadline passes.

    Args:
        cluster: performs the operation.
        operation: the operation.
        items: the items; without any, nothing is sent.
        deadline: the time of the loop's clock at which to give up.
        since: the first Kafka release that supports it; the error names it if a broker
            is older.
    """
    # An earlier step may have used up the time. The items then fail with a
    # RequestTimeout each, as they do if the time ends during this step.
    results = await cluster.ask(operation, items, max(0.0, deadline - now()))
    for item, error in results.failed.items():
        if isinstance(error, UnsupportedVersion):
            api = operation.request.NAME.removesuffix("Request")
            needs = f"{api} needs Kafka {since} or later"
            if cluster.uses_controllers:
                needs += ", or brokers: this client has bootstrap_controllers"
            named = UnsupportedVersion(f"{operation.named([item])}: {needs}: {error}")
            named.__cause__ = error
            results.failed[item] = named
    return results


async def ask_one(  # noqa: PLR0913 - what an operation is
    cluster: Cluster,
    what: tuple[str, str],
    request: type[Request[AnswerT]],
    build: Callable[[Terms], Request[AnswerT]],
    read: Callable[[AnswerT], tuple[int, str | None]],
    *,
    to: Destination,
    deadline: float,
    since: str,
) -> AnswerT:
    """Perform an operation that has one answer, and return that answer.

    Args:
        cluster: performs the operation.
        what: the verb and the object of the operation, for messages.
        request: the class of the request.
        build: makes the request.
        read: returns the error code of an answer, and the broker's message.
        to: the destination.
        deadline: the time of the loop's clock at which to give up.
        since: the first Kafka release that supports it.

    Raises:
        KafkaError: the operation failed.
    """
    # The fan-out needs an item: the object of the operation is one, and the only one.

    def read_all(response: AnswerT, items: object) -> tuple[Answer[str, AnswerT]]:
        del items
        code, message = read(response)
        return (Answer(what[1], response, code, reason(code, message)),)

    operation: Operation[str, AnswerT, AnswerT] = Operation(
        what=what[0],
        request=request,
        destination=lambda _: to,
        build=lambda _, terms: build(terms),
        read=read_all,
    )
    results = await ask(cluster, operation, [what[1]], deadline, since)
    return results.or_raise()[what[1]]


def reason(code: int, message: str | None) -> str | None:
    """Return the broker's message for an error; None if people cannot read it."""
    return None if code in _DENIED else message


def time_of(milliseconds: int) -> datetime:
    """Convert milliseconds since the Unix epoch to a datetime in UTC."""
    try:
        return _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        # The protocol has room for times after the year 9999, a datetime has not.
        return datetime.max.replace(tzinfo=UTC)


async def all_brokers(cluster: Cluster, deadline: float) -> list[int]:
    """Return the node ids of all brokers, from metadata that is fetched now.

    Raises:
        RequestTimeout: no broker answered in time.
        UnsupportedVersion: the client asks controllers alone.
    """
    need_brokers(cluster, "ask all brokers")
    # The cached metadata may lack a broker that has joined since. A list that leaves
    # out what that broker knows would look complete.
    attempts = Attempts("find all brokers", cluster.retry_policy, deadline - now())
    attempts.held = cluster.why_undescribed
    while not await cluster.refresh(attempts.within(deadline - now())):
        await attempts.pause(None)
    return sorted(cluster.view.brokers)


def need_brokers(cluster: Cluster, what: str) -> None:
    """Refuse an operation that controllers do not perform.

    Controllers even claim to support some of these requests, and never answer them.

    Raises:
        UnsupportedVersion: the client asks controllers alone (KIP-919).
    """
    if cluster.uses_controllers:
        raise UnsupportedVersion(
            f"{what}: that needs brokers, and this client has bootstrap_controllers"
        )


def outcome(
    what: str, items: Iterable[ItemT], results: Results[ItemT, ValueT]
) -> dict[ItemT, ValueT]:
    """Return the results by item, in the order asked.

    Args:
        what: the name of the operation, as in ``create topics``.
        items: the items, in the order asked.
        results: their results.

    Raises:
        KafkaError: the error of the only item that failed, which has the item and the
            results of the others.
        AdminErrors: several items failed.
    """
    found = {item: results.found[item] for item in items if item in results.found}
    if not results.failed:
        return found
    failed = _each_its_own(results.failed)
    errors = [failed[item] for item in items if item in failed]
    if len(errors) == 1:
        (error,) = errors
        error.results = dict[object, object](found.items())
        raise error
    raise AdminErrors.of(what, errors, dict[object, object](found.items()))


def _each_its_own(failed: Mapping[ItemT, KafkaError]) -> dict[ItemT, KafkaError]:
    """Return a copy of each error that names its item.

    Items that failed together share one error. The client may keep it, too, and raise
    it again for a call as a whole, which has no item.
    """
    named: dict[ItemT, KafkaError] = {}
    for item, error in failed.items():
        own = named[item] = copy(error)
        own.__cause__ = error.__cause__
        own.item = item
    return named
