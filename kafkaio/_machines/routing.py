"""Which broker gets a request, and whether its answer names it the wrong one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

from kafkaio._machines.reactions import reaction
from kafkaio._named_tuple import NamedTuple
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol._message import Response, Struct


class NodeLoad(NamedTuple):
    """How busy a broker is.

    Attributes:
        node_id: the broker.
        in_flight: requests without an answer yet; None without a connection.
        wait: seconds before it can answer: the back-off before connecting again, an
            attempt to connect that has not ended, a quota.
        is_new: whether its connection is new, and has few requests in flight.
    """

    node_id: int
    in_flight: int | None
    wait: float = 0.0
    is_new: bool = False


#: While all connections are slow, the client opens new ones up to this number. So a
#: broker that hangs does not delay requests that others could answer.
SPREAD: Final = 3


def least_loaded_first(nodes: Iterable[NodeLoad], roll: float) -> list[int]:
    """Order brokers by how soon they can answer.

    Idle connections come first, then new ones: to connect to another broker takes
    longer than their answer. If there are only a few connections, brokers that can be
    connected to now come next. Then come other busy connections, those with the fewest
    requests in flight first, and then the rest. The order of equals rotates with
    ``roll``, a random number in [0, 1), so that clients spread over the brokers.
    """
    by_id = sorted(nodes)
    has_few = len([node for node in by_id if node.in_flight is not None]) < SPREAD

    def rank(node: NodeLoad) -> tuple[int, float, int]:
        if node.in_flight is None:
            return 2 if has_few and not node.wait else 4, node.wait, 0
        if not node.in_flight and not node.wait:
            return 0, 0.0, 0
        return 1 if node.is_new and not node.wait else 3, node.wait, node.in_flight

    first = int(roll * len(by_id))
    turned = sorted(by_id[first:] + by_id[:first], key=rank)
    return [node.node_id for node in turned]


def misrouted(response: Response) -> ErrorCode | None:
    """The error by which a broker says that another one is responsible.

    It is the error of the whole answer or, if each item has an error of its own, the
    error of all items: a request that had an effect, if only for one item, must not be
    repeated.

    Returns:
        The code; None if the answer is for the caller to read.
    """
    found: ErrorCode | None = None
    for code in _outcomes(response):
        error = ErrorCode(code)
        if not reaction(response.API_KEY, error).reroute:
            return None
        found = found or error
    return found


_Reader: TypeAlias = Callable[[Struct], Iterator[int]]

_CODE_NAMES = frozenset({"error_code", "partition_error_code"})


def _outcomes(response: Response) -> Iterator[int]:
    return _reader(type(response))(response)


#: Made once for each class of message.
_READERS: dict[type[Struct], _Reader] = {}


def _reader(cls: type[Struct]) -> _Reader:
    """A function that yields the outcomes of a struct: one code for each item."""
    reader = _READERS.get(cls)
    if reader is None:
        reader = _READERS[cls] = _make_reader(cls)
    return reader


def _make_reader(cls: type[Struct]) -> _Reader:
    code = next((f.name for f in cls.SCHEMA if f.name in _CODE_NAMES), None)
    lists = tuple(
        (f.name, _reader(f.type))
        for f in cls.SCHEMA
        if f.array and isinstance(f.type, type) and _has_code(f.type)
    )

    def read(struct: Struct) -> Iterator[int]:
        own: int = getattr(struct, code) if code is not None else 0
        if own:
            # An error of the whole applies to its parts.
            yield own
            return
        items = 0
        for name, reader in lists:
            for item in getattr(struct, name):
                items += 1
                yield from reader(item)
        if not items:
            yield own

    return read


def _has_code(cls: type[Struct]) -> bool:
    return any(
        f.name in _CODE_NAMES or (isinstance(f.type, type) and _has_code(f.type))
        for f in cls.SCHEMA
    )
