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
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, Literal, TypeAlias, TypeVar, overload

from kafkaio._arguments import type_name
from kafkaio._client.fanout import Operation, Results
from kafkaio._client.ports import ClusterPort
from kafkaio._client.retry import Attempts
from kafkaio._machines.reactions import Reaction, reaction
from kafkaio._runtime.clock import now
from kafkaio.errors import (
    AdminErrors,
    ArgumentTypeError,
    ArgumentValueError,
    KafkaError,
    UnsupportedVersion,
)
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import Response

ItemT = TypeVar("ItemT", bound=Hashable)
ValueT = TypeVar("ValueT")
AnswerT = TypeVar("AnswerT", bound=Response)
ResponseT = TypeVar("ResponseT", bound=Response)
EnumT = TypeVar("EnumT", bound=StrEnum)
#: What the operations need of the cluster.
AdminCluster: TypeAlias = ClusterPort
_FINAL = Reaction()


def final_at(api: int, *codes: ErrorCode) -> Callable[[int], Reaction]:
    """Return what to do about error codes: what the table says, but never repeat some.

    Args:
        api: the API whose answers have the codes.
        codes: what no repetition changes, although the table has it as retriable: a
            broker that knows every topic says of one that it does not exist.
    """
    return lambda code: _FINAL if code in codes else reaction(api, code)


async def ask(
    cluster: AdminCluster,
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


async def brokers(cluster: AdminCluster, deadline: float) -> list[int]:
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


def need_brokers(cluster: AdminCluster, what: str) -> None:
    """Refuse what controllers do not do, or pretend to know and never answer.

    Raises:
        UnsupportedVersion: the client asks controllers alone (KIP-919).
    """
    if cluster.uses_controllers:
        raise UnsupportedVersion(
            f"{what}: that needs brokers, and this client has bootstrap_controllers"
        )


def items_of(name: str, items: object) -> list[Any]:
    """Return the items of an argument that has to be a collection, and no string.

    Raises:
        ArgumentTypeError: it is none.
    """
    if isinstance(items, str | bytes) or not isinstance(items, Iterable):
        raise ArgumentTypeError(
            f"{name} must be a collection of several, not {type_name(items)}"
        )
    return list(items)


def member_of(name: str, kind: type[EnumT], value: object) -> EnumT:
    """Return a member of an enumeration, from itself or its text.

    Args:
        name: the name of the argument.
        kind: the enumeration.
        value: a member, its value or its name, in any case.

    Raises:
        ArgumentTypeError: it is no text.
        ArgumentValueError: there is no such member; the message suggests one.
    """
    if isinstance(value, kind):
        return value
    if not isinstance(value, str):
        raise ArgumentTypeError(
            f"{name} must be {kind.__name__} or str, not {type_name(value)}"
        )
    known = {text.casefold(): each for each in kind for text in (each.name, each.value)}
    found = known.get(value.casefold())
    if found is None:
        near = get_close_matches(value.casefold(), known, n=1)
        hint = f"; did you mean {known[near[0]].value!r}?" if near else ""
        raise ArgumentValueError(f"{name}: there is no {kind.__name__} {value!r}{hint}")
    return found


def distinct(name: str, items: Iterable[ItemT]) -> list[ItemT]:
    """Return items, each of which may be there only once.

    Brokers fail both of two equal items, or do one of them: which one is not said.

    Args:
        name: the name of the argument.
        items: the items.

    Raises:
        ArgumentValueError: an item is there twice.
    """
    found: dict[ItemT, None] = {}
    for item in items:
        if item in found:
            raise ArgumentValueError(f"{name}: {item!r} is there twice")
        found[item] = None
    return list(found)


@overload
def outcome(
    what: str,
    items: Iterable[ItemT],
    results: Results[ItemT, ValueT],
    *,
    return_errors: Literal[False] = False,
) -> dict[ItemT, ValueT]: ...


@overload
def outcome(
    what: str,
    items: Iterable[ItemT],
    results: Results[ItemT, ValueT],
    *,
    return_errors: bool,
) -> dict[ItemT, ValueT] | dict[ItemT, ValueT | KafkaError]: ...


def outcome(
    what: str,
    items: Iterable[ItemT],
    results: Results[ItemT, ValueT],
    *,
    return_errors: bool = False,
) -> dict[ItemT, ValueT] | dict[ItemT, ValueT | KafkaError]:
    """Return the results by item, in the order asked.

    Args:
        what: names the operation, as in ``create topics``.
        items: what was asked for.
        results: what came of it.
        return_errors: whether to return errors in place of raising them.

    Raises:
        KafkaError: the error of the only item that failed, which has the item and the
            results of the others.
        AdminErrors: several items failed.
    """
    failed: Mapping[ItemT, KafkaError] = _each_its_own(results.failed)
    if return_errors:
        everything: dict[ItemT, ValueT | KafkaError] = {**results.found, **failed}
        return {item: everything[item] for item in items}
    found = {item: results.found[item] for item in items if item in results.found}
    errors = [failed[item] for item in items if item in failed]
    if len(errors) == 1:
        (error,) = errors
        error.results = dict[object, object](found.items())
        raise error
    if errors:
        raise AdminErrors.of(what, errors, dict[object, object](found.items()))
    return found


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
