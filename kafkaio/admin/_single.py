"""What operations with one answer for everything have in common, and arguments.

`ask_one` performs an operation that has a single item. `known_of` reads a member of an
enumeration, which callers may give as text.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TypeVar

from kafkaio._arguments import type_name
from kafkaio._client.destinations import Destination
from kafkaio._client.fanout import Answer, Operation, Terms
from kafkaio.admin._asking import AdminCluster, ask, member_of
from kafkaio.errors import ArgumentTypeError, ArgumentValueError
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import Request, Response

AnswerT = TypeVar("AnswerT", bound=Response)
ChoiceT = TypeVar("ChoiceT", bound=StrEnum)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Refusals whose texts tell people nothing: they show objects of the broker.
_DENIED = frozenset(
    {
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    }
)


async def ask_one(  # noqa: PLR0913 - what an operation is
    cluster: AdminCluster,
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


def known_of(name: str, kind: type[ChoiceT], value: object) -> ChoiceT:
    """Return a member of an enumeration that can be sent: any but UNKNOWN.

    Args:
        name: the name of the argument, for messages.
        kind: the enumeration.
        value: a member, or its text.

    Raises:
        ArgumentTypeError: it is no text.
        ArgumentValueError: the enumeration has no such member, or it is UNKNOWN.
    """
    found = member_of(name, kind, value)
    if found.name == "UNKNOWN":
        raise ArgumentValueError(f"{name}={str(found)!r} stands for what is not known")
    return found


def principal_of(name: str, principal: object) -> tuple[str, str]:
    """Return type and name of a principal, as in ``User:alice``.

    Raises:
        ArgumentTypeError: it is no text.
        ArgumentValueError: it has no type or no name.
    """
    if not isinstance(principal, str):
        raise ArgumentTypeError(f"{name} must be str, not {type_name(principal)}")
    kind, colon, who = principal.partition(":")
    if not colon or not kind or not who:
        raise ArgumentValueError(
            f"{name}={principal!r} has to have a type, as in 'User:alice'"
        )
    return kind, who


def time_of(milliseconds: int) -> datetime:
    """Return the time of milliseconds since the Unix epoch."""
    try:
        return _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def milliseconds(name: str, seconds: float) -> int:
    """Return a time in seconds as whole milliseconds, at least one.

    Raises:
        ArgumentTypeError: it is no number.
        ArgumentValueError: it is not above zero, or has no end.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise ArgumentTypeError(f"{name} must be a number of seconds, not {seconds!r}")
    if not 0 < seconds < 2**53:
        raise ArgumentValueError(f"{name}={seconds} must be above 0, and finite")
    return max(1, round(seconds * 1000))
