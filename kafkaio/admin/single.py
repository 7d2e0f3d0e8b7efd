"""What operations with one answer for everything have in common, and choices.

`ask_one` performs an operation that has a single item. `choice_of` reads a member of an
enumeration, which callers may give as text.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TypeVar

from kafkaio._arguments import type_name
from kafkaio.admin.asking import AdminCluster, ask
from kafkaio.client.destinations import Destination
from kafkaio.client.fanout import Answer, Operation, Terms
from kafkaio.errors import ArgumentTypeError, ArgumentValueError
from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.protocol.message import Request, Response

__all__ = [
    "ask_one",
    "choice_of",
    "milliseconds",
    "principal_of",
    "reason",
    "time_of",
]

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


def choice_of(name: str, kind: type[ChoiceT], value: object) -> ChoiceT:
    """Return a member of an enumeration, which may be given as its text.

    Args:
        name: the name of the argument, for messages.
        kind: the enumeration.
        value: what was given.

    Raises:
        ArgumentTypeError: it is no text.
        ArgumentValueError: the enumeration has no such member, or it is UNKNOWN.
    """
    if not isinstance(value, str):
        raise ArgumentTypeError(
            f"{name} must be {kind.__name__} or str, not {type_name(value)}"
        )
    known = {str(each): each for each in kind if each.name != "UNKNOWN"}
    if value in known:
        return known[value]
    # Loaded for mistakes alone.
    from difflib import get_close_matches

    folded = {text.casefold(): text for text in known}
    near = get_close_matches(value.casefold(), folded, 1)
    meant = f"; did you mean {folded[near[0]]!r}?" if near else ""
    raise ArgumentValueError(
        f"{name}={str(value)!r} is none of {', '.join(known)}{meant}"
    )


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
