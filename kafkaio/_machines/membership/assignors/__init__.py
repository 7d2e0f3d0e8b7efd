"""The assignors: how the leader of a classic group assigns the partitions.

They are pure and deterministic: the same members and the same partitions always give
the same assignment, whatever their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from kafkaio._machines.membership.assignors.broker_range import (
    BrokerRangeAssignor as BrokerRangeAssignor,
)
from kafkaio._machines.membership.assignors.cooperative_sticky import (
    CooperativeStickyAssignor as CooperativeStickyAssignor,
)
from kafkaio._machines.membership.assignors.range import RangeAssignor as RangeAssignor
from kafkaio._machines.membership.assignors.round_robin import (
    RoundRobinAssignor as RoundRobinAssignor,
)
from kafkaio._machines.membership.assignors.sticky import (
    StickyAssignor as StickyAssignor,
)
from kafkaio._machines.membership.subscription import Assignor
from kafkaio.errors import ConfigurationError

#: The assignors that can be named in ``partition_assignment_strategy``.
ASSIGNORS: Final[Mapping[str, Assignor]] = MappingProxyType(
    {
        assignor.name: assignor
        for assignor in (
            RangeAssignor(),
            RoundRobinAssignor(),
            StickyAssignor(),
            CooperativeStickyAssignor(),
            BrokerRangeAssignor(),
        )
    }
)


def resolve(strategy: Iterable[object]) -> tuple[Assignor, ...]:
    """The assignors of ``partition_assignment_strategy``, in order of preference.

    Raises:
        ConfigurationError: one is unknown, no assignor, or listed twice.
    """
    found: dict[str, Assignor] = {}
    for item in strategy:
        assignor = ASSIGNORS.get(item) if isinstance(item, str) else item
        if not isinstance(assignor, Assignor):
            raise ConfigurationError(
                f"partition_assignment_strategy: {item!r} is not an assignor; "
                f"known ones are {', '.join(ASSIGNORS)}"
            )
        if assignor.name in found:
            raise ConfigurationError(
                f"partition_assignment_strategy lists {assignor.name!r} twice"
            )
        found[assignor.name] = assignor
    if not found:
        raise ConfigurationError("partition_assignment_strategy names no assignor")
    return tuple(found.values())
