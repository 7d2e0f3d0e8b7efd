"""What all operations of `kafkaio.Admin` are made of: ask many items, and sort it out.

An operation is a `kafkaio._client.fanout.Operation`; `ask` performs it within a
deadline and names the Kafka that is needed where a broker is too old. `outcome` turns
its results into what the caller of `Admin` gets: a dict, in the order asked, or errors.
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
from enum import StrEnum
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
ResponseT = TypeVar("ResponseT", bound=Response)
EnumT = TypeVar("EnumT", bound=StrEnum)
_FINAL = Reaction()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Refusals whose texts tell people nothing: they show objects of the broker.
_DENIED = frozenset(
    {
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    }
)


def final_at(api: int, *codes: ErrorCode) -> Callable[[int], Reaction]:
    """Return what to do about error codes: what the table says, but never repeat some.

    Args:
        api: the API whose answers have the codes.
        codes: what no repetition changes, although the table has it as retriable: a
            broker that knows every topic says of one that it does not exist.
    """
    return lambda code: _FINAL if code in codes else reaction(api, code)


async def ask(
    cluster: Cluster,
    operation: Operation[ItemT, ValueT, AnswerT],
    items: Iterable[ItemT],
    deadline: float,
    since: str,
) -> Results[ItemT, ValueT]:
    """Ask for items until each has a result, or the deadline has passed.

    Args:
        cluster: performs the operation.
        operation: what to ask.
        items: what to ask for; nothing is sent if there are none.
        deadline: the time of the loop's clock at which to give up.
        since: the first Kafka that can do it, for the message where a broker is older.
    """
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
    """Perform an operation whose answer is for everything at once.

    Args:
        cluster: performs it.
        what: names the operation and its object, for messages.
        request: the class of its request.
        build: makes the request.
        read: returns the error code of an answer, and what the broker says of it.
        to: the destination.
        deadline: the time of the loop's clock at which to give up.
        since: the first Kafka that can do it.

    Raises:
        KafkaError: it failed.
    """

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
    """Return what a broker says of an error, if that is for people."""
    return None if code in _DENIED else message


def time_of(milliseconds: int) -> datetime:
    """Return the time of milliseconds since the Unix epoch."""
    try:
        return _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


async def all_brokers(cluster: Cluster, deadline: float) -> list[int]:
    """Return the node ids of all brokers, from metadata that is fetched now.

    Raises:
        RequestTimeout: no broker answered in time.
        UnsupportedVersion: the client asks controllers alone.
    """
    need_brokers(cluster, "ask all brokers")
    # One that is missing may have just what is looked for.
    attempts = Attempts("find all brokers", cluster.retry_policy, deadline - now())
    while not await cluster.refresh(attempts.within(deadline - now())):
        await attempts.pause(None)
    return sorted(cluster.view.brokers)


def need_brokers(cluster: Cluster, what: str) -> None:
    """Refuse what controllers do not do, or pretend to know and never answer.

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
        what: names the operation, as in ``create topics``.
        items: what was asked for.
        results: what came of it.

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
