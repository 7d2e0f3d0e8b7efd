"""The results of an operation on many items, errors included, without raising them."""

from __future__ import annotations

from collections.abc import Awaitable, Hashable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from kafkaio._dataclass import dataclass
from kafkaio._public import public
from kafkaio.errors import AdminErrors, KafkaError

ItemT = TypeVar("ItemT", bound=Hashable)
ValueT = TypeVar("ValueT")


@public("kafkaio.admin")
@dataclass(frozen=True, slots=True)
class Settled(Generic[ItemT, ValueT]):
    """The results and the errors of an operation on many items; see `settled`.

    Attributes:
        found: the results of the items that succeeded, in the order asked.
        failed: the errors of the items that failed, in the order asked.
    """

    found: dict[ItemT, ValueT]
    failed: dict[ItemT, KafkaError]


@public("kafkaio.admin")
async def settled(
    operation: Awaitable[Mapping[ItemT, ValueT]],
) -> Settled[ItemT, ValueT]:
    """Await an operation on many items; return the errors of items, not raise them.

    An error of the call as a whole is raised: an argument is wrong, the client is
    closed, or a step for all items failed. If the call is cancelled, so is the
    operation.

    Args:
        operation: a call of an operation of `kafkaio.Admin` that returns a dict with
            a value for each item that it was given.

    Raises:
        KafkaError: the call as a whole failed.
    """
    try:
        return Settled(dict(await operation), {})
    except AdminErrors as errors:
        return _sorted(errors.results, errors.exceptions)
    except KafkaError as error:
        # An operation on many items names the item in the error that it raises. Other
        # errors are those of the whole call.
        if error.item is None:
            raise
        return _sorted(error.results, [error])


def _sorted(found: Mapping[Any, Any], failures: Iterable[Any]) -> Settled[Any, Any]:
    return Settled(dict(found), {each.item: each for each in failures})
