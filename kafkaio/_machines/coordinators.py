"""Which broker coordinates which group, transaction or share group.

FindCoordinator finds a coordinator. It is remembered until there is a sign that it has
moved: an error code, the end of the connection to it, or metadata without the broker.
A report that a coordinator has moved names the node that it was, so a late report about
an old coordinator never drops a new one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import IntEnum
from typing import TYPE_CHECKING

from kafkaio._dataclass import dataclass
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.types import Broker

if TYPE_CHECKING:
    from kafkaio.protocol.messages.find_coordinator import (
        FindCoordinatorRequest,
        FindCoordinatorResponse,
    )

#: The first version of FindCoordinator that takes several keys (KIP-699).
BATCHED_SINCE = 4


class CoordinatorKind(IntEnum):
    """The kinds of coordinators; the values are those on the wire."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2

    @property
    def least_version(self) -> int:
        """The first version of FindCoordinator that knows this kind."""
        return {self.GROUP: 0, self.TRANSACTION: 1, self.SHARE: 6}[self]


@dataclass(frozen=True, slots=True)
class Found:
    """A coordinator and its address."""

    key: str
    broker: Broker


@dataclass(frozen=True, slots=True)
class NotFound:
    """A coordinator that was not found, and why."""

    key: str
    error: ErrorCode
    message: str


class CoordinatorCache:
    """The coordinators found so far."""

    __slots__ = ("_nodes",)

    def __init__(self) -> None:
        self._nodes: dict[tuple[CoordinatorKind, str], int] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def get(self, kind: CoordinatorKind, key: str) -> int | None:
        """Node id of the coordinator, None if it has to be found."""
        return self._nodes.get((kind, key))

    def coordinators(
        self, kind: CoordinatorKind, keys: Iterable[str]
    ) -> list[int | None]:
        """The result of `get` for each of some keys."""
        return [self._nodes.get((kind, key)) for key in keys]

    def learn(self, kind: CoordinatorKind, key: str, node_id: int) -> None:
        """Remember a coordinator."""
        self._nodes[kind, key] = node_id

    def forget(self, kind: CoordinatorKind, key: str, node_id: int) -> bool:
        """Forget that ``node_id`` coordinates ``key``; True if that was known."""
        if self._nodes.get((kind, key)) != node_id:
            return False
        del self._nodes[kind, key]
        return True

    def forget_node(self, node_id: int) -> None:
        """Forget all coordinators on ``node_id``: the connection to it broke."""
        self._nodes = {k: node for k, node in self._nodes.items() if node != node_id}

    def retain(self, node_ids: Collection[int]) -> None:
        """Forget coordinators that are not among the brokers ``node_ids``."""
        self._nodes = {k: node for k, node in self._nodes.items() if node in node_ids}

    def clear(self) -> None:
        """Forget all coordinators."""
        self._nodes.clear()


def find_request(
    kind: CoordinatorKind, keys: Iterable[str], version: int
) -> tuple[FindCoordinatorRequest, tuple[str, ...]]:
    """Make the request that finds coordinators.

    Args:
        kind: the kind of coordinators.
        keys: names of groups or transactional ids, one at least.
        version: the version that the request will be sent in.

    Returns:
        The request, and the keys that it asks for: before version 4 only the first.
    """
    # Imported late: a producer without transactions has no coordinator.
    from kafkaio.protocol.messages.find_coordinator import FindCoordinatorRequest

    wanted = tuple(keys)
    if version >= BATCHED_SINCE:
        request = FindCoordinatorRequest(
            key_type=int(kind), coordinator_keys=list(wanted)
        )
        return request, wanted
    return FindCoordinatorRequest(key=wanted[0], key_type=int(kind)), wanted[:1]


def read_answer(
    response: FindCoordinatorResponse, asked: Collection[str], version: int
) -> list[Found | NotFound]:
    """Read the result for each key, in the order of ``asked``.

    A key that the answer omits counts as not available for now.
    """
    if version < BATCHED_SINCE:
        return [
            _outcome(
                key,
                Broker(response.node_id, response.host, response.port),
                response.error_code,
                response.error_message,
            )
            for key in asked
        ]
    answers = {c.key: c for c in response.coordinators}
    outcomes: list[Found | NotFound] = []
    for key in asked:
        c = answers.get(key)
        if c is None:
            missing = ErrorCode.COORDINATOR_NOT_AVAILABLE
            outcomes.append(NotFound(key, missing, "the answer omits it"))
        else:
            broker = Broker(c.node_id, c.host, c.port)
            outcomes.append(_outcome(key, broker, c.error_code, c.error_message))
    return outcomes


def _outcome(
    key: str, broker: Broker, code: int, message: str | None
) -> Found | NotFound:
    error = ErrorCode(code)
    if error:
        return NotFound(key, error, message or "")
    if broker.node_id < 0:
        return NotFound(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, "no such broker yet")
    return Found(key, broker)
