"""Where a request can be sent to."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final, Literal, TypeAlias

from kafkaio._arguments import type_name
from kafkaio._dataclass import dataclass
from kafkaio.errors import ArgumentTypeError
from kafkaio.types import Broker, TopicPartition

__all__ = [
    "ANY",
    "AnyBroker",
    "Broker",
    "Controller",
    "ControllerType",
    "Destination",
    "GroupCoordinator",
    "Leader",
    "TransactionCoordinator",
    "check_destination",
]


class AnyBroker(Enum):
    """The type of ``ANY``."""

    ANY = auto()


class ControllerType(Enum):
    """The type of ``Controller``."""

    CONTROLLER = auto()


#: Whichever broker can answer soonest.
ANY: Final = AnyBroker.ANY
#: A broker that takes the controller's requests.
Controller: Final = ControllerType.CONTROLLER


@dataclass(frozen=True, slots=True)
class Leader:
    """The leader of a partition."""

    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class GroupCoordinator:
    """The coordinator of a consumer group."""

    group_id: str


@dataclass(frozen=True, slots=True)
class TransactionCoordinator:
    """The coordinator of a transactional producer."""

    transactional_id: str


#: ``Broker(3)`` names a broker by its node id.
Destination: TypeAlias = (
    Literal[AnyBroker.ANY, ControllerType.CONTROLLER]
    | Broker
    | Leader
    | GroupCoordinator
    | TransactionCoordinator
)

_KINDS: Final = (
    AnyBroker,
    ControllerType,
    Broker,
    Leader,
    GroupCoordinator,
    TransactionCoordinator,
)


def check_destination(to: object) -> None:
    """Check where a request is to be sent to.

    Raises:
        ArgumentTypeError: it is no destination.
    """
    if not isinstance(to, _KINDS):
        raise ArgumentTypeError(
            "to must be ANY, Controller, Broker(...), Leader(...), "
            "GroupCoordinator(...) or TransactionCoordinator(...), not "
            f"{type_name(to)}"
        )
