"""Checks of arguments that several subjects of `kafkaio.Admin` have in common."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from enum import StrEnum
from typing import Any, TypeVar

from kafkaio._arguments import partitions_of, type_name
from kafkaio.errors import ArgumentTypeError, ArgumentValueError
from kafkaio.types import TopicPartition

ItemT = TypeVar("ItemT", bound=Hashable)
EnumT = TypeVar("EnumT", bound=StrEnum)


def items_of(name: str, items: object) -> list[Any]:
    """Return the items of an argument, which must be a collection other than a str.

    Raises:
        ArgumentTypeError: it is a str or bytes, or not iterable.
    """
    # A str is a collection, too: of characters, which nobody means.
    if isinstance(items, str | bytes) or not isinstance(items, Iterable):
        raise ArgumentTypeError(
            f"{name} must be a collection of several, not {type_name(items)}"
        )
    return list(items)


def distinct(name: str, items: Iterable[ItemT]) -> list[ItemT]:
    """Return the items; raise if one occurs twice.

    Args:
        name: the name of the argument.
        items: the items.

    Raises:
        ArgumentValueError: an item occurs twice.
    """
    # Brokers fail both of two equal items, or perform one of them, and the answer does
    # not say which. Results by item could not show it either.
    found: dict[ItemT, None] = {}
    for item in items:
        if item in found:
            raise ArgumentValueError(f"{name}: {item!r} occurs twice")
        found[item] = None
    return list(found)


def names_of(name: str, names: Iterable[str]) -> list[str]:
    """Return the names; raise if one is empty or occurs twice.

    Raises:
        ArgumentTypeError: it is not a collection of str.
        ArgumentValueError: a name is empty, or occurs twice.
    """
    found: list[object] = items_of(name, names)
    for each in found:
        if not isinstance(each, str):
            raise ArgumentTypeError(f"{name} must be str, not {type_name(each)}")
        if not each:
            raise ArgumentValueError(f"{name}: a name must not be empty")
    return distinct(name, items_of(name, found))


def partitions_by_group(
    groups: Iterable[str] | Mapping[str, Iterable[TopicPartition] | None],
) -> dict[str, list[TopicPartition] | None]:
    """Return the partitions by group; None stands for all partitions of the group.

    Raises:
        ArgumentTypeError: a name or a partition has the wrong type.
        ArgumentValueError: a name is empty, or occurs twice.
    """
    names = names_of("groups", groups)
    if not isinstance(groups, Mapping):
        return dict.fromkeys(names)
    return {
        name: None if tps is None else partitions_of(tps)
        for name, tps in groups.items()
    }


def member_of(name: str, kind: type[EnumT], value: object) -> EnumT:
    """Return a member of an enumeration, given itself or its text.

    Args:
        name: the name of the argument.
        kind: the enumeration.
        value: a member, its value or its name, in any case.

    Raises:
        ArgumentTypeError: it is not a str.
        ArgumentValueError: no member has that text; the message suggests one.
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
        from difflib import get_close_matches  # loads slowly, and only errors need it

        near = get_close_matches(value.casefold(), known, n=1)
        hint = f"; did you mean {known[near[0]].value!r}?" if near else ""
        raise ArgumentValueError(
            f"{name}={value!r} is not a member of {kind.__name__}{hint}"
        )
    return found


def known_of(name: str, kind: type[EnumT], value: object) -> EnumT:
    """Return a member of an enumeration that can be sent, which UNKNOWN cannot.

    Args:
        name: the name of the argument, for messages.
        kind: the enumeration.
        value: a member, or its text.

    Raises:
        ArgumentTypeError: it is not a str.
        ArgumentValueError: the enumeration has no such member, or it is UNKNOWN.
    """
    found = member_of(name, kind, value)
    if found.name == "UNKNOWN":
        raise ArgumentValueError(f"{name}={str(found)!r} stands for an unknown value")
    return found


def principal_of(name: str, principal: object) -> tuple[str, str]:
    """Return the type and the name of a principal such as ``User:alice``.

    Raises:
        ArgumentTypeError: it is not a str.
        ArgumentValueError: it has no type or no name.
    """
    if not isinstance(principal, str):
        raise ArgumentTypeError(f"{name} must be str, not {type_name(principal)}")
    kind, colon, who = principal.partition(":")
    if not colon or not kind or not who:
        raise ArgumentValueError(
            f"{name}={principal!r} must have a type, as in 'User:alice'"
        )
    return kind, who


def milliseconds(name: str, seconds: float) -> int:
    """Convert seconds to whole milliseconds, at least one.

    Raises:
        ArgumentTypeError: it is not a number.
        ArgumentValueError: it is not above zero, or not finite.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise ArgumentTypeError(f"{name} must be a number of seconds, not {seconds!r}")
    if not 0 < seconds < 2**53:
        raise ArgumentValueError(f"{name}={seconds} must be above 0, and finite")
    return max(1, round(seconds * 1000))
