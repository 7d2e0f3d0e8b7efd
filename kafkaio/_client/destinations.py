"""Destinations: which broker a request is for, by name or by role."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final, Literal, TypeAlias

from kafkaio._arguments import type_name
from kafkaio._dataclass import dataclass
from kafkaio._public import public
from kafkaio.errors import ArgumentTypeError
from kafkaio.types import Broker as Broker, TopicPartition


class AnyBroker(Enum):
    """The type of ``ANY``."""

    ANY = auto()


class ControllerType(Enum):
    """The type of ``Controller``."""

    CONTROLLER = auto()


#: The broker that can answer soonest: the least loaded one.
ANY: Final = AnyBroker.ANY
#: The controller, or a broker that forwards requests to it.
Controller: Final = ControllerType.CONTROLLER


@public("kafkaio")
@dataclass(frozen=True, slots=True)
class Leader:
    """The broker that leads a partition.

    Attributes:
        partition: the partition.
    """

    partition: TopicPartition


@public("kafkaio")
@dataclass(frozen=True, slots=True)
class GroupCoordinator:
    """The broker that coordinates a group.

    Attributes:
        group_id: the name of the group.
    """

    group_id: str


@public("kafkaio")
@dataclass(frozen=True, slots=True)
class TransactionCoordinator:
    """The broker that coordinates the transactions of a producer.

    Attributes:
        transactional_id: the transactional id of the producer.
    """

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
    """Check a destination.

    Raises:
        ArgumentTypeError: it is not a destination.
    """
    if not isinstance(to, _KINDS):
        raise ArgumentTypeError(
            "to must be ANY, Controller, Broker(...), Leader(...), "
            "GroupCoordinator(...) or TransactionCoordinator(...), not "
            f"{type_name(to)}"
        )
