"""The two group protocols: each pairs a member's machine with what sends its requests.

A pair is chosen by ``group_protocol``. Whoever has a `MemberProtocol` knows the machine
by its interface alone, and hands it no request of the other protocol: a machine's
requests go to the sender that stands beside it.
"""

from __future__ import annotations

from typing import Final, Protocol

from kafkaio._config import ConsumerConfig
from kafkaio._consumer.group.classic import ClassicRequests
from kafkaio._consumer.group.kip848 import Kip848Requests
from kafkaio._consumer.group.rpc import GroupRpc
from kafkaio._dataclass import dataclass
from kafkaio._machines.backoff import Backoff
from kafkaio._machines.membership import effects as fx
from kafkaio._machines.membership.assignors import resolve
from kafkaio._machines.membership.classic.membership import (
    ClassicMemberConfig,
    ClassicMembership,
)
from kafkaio._machines.membership.kip848.membership import (
    Kip848MemberConfig,
    Kip848Membership,
)
from kafkaio._machines.membership.protocol import Effects, Membership
from kafkaio._runtime.clock import random_uuid

#: The strategy of the classic protocol if the option names none.
_DEFAULT_STRATEGY: Final = ("cooperative-sticky",)


class MemberRequestPort(Protocol):
    """Sends the requests of a machine of the same protocol."""

    async def perform(self, effect: fx.SendRequest) -> Effects:
        """Send one request, and pass its answer, or its failure, to the machine.

        If the call is cancelled, the request may still take effect.

        Returns:
            What the machine decides.
        """
        ...

    def send_at_once(self, leave: fx.SendRequest) -> None:
        """Send a request to leave if a connection is open; its answer is dropped."""
        ...


@dataclass(frozen=True, slots=True)
class MemberProtocol:
    """A member's machine of one protocol, and what sends its requests.

    Attributes:
        member: the machine.
        requests: sends what the machine asks for.
    """

    member: Membership
    requests: MemberRequestPort

    @classmethod
    def first_choice(cls, rpc: GroupRpc, config: ConsumerConfig) -> MemberProtocol:
        """The protocol that ``group_protocol`` asks for; with ``auto``, KIP-848.

        A ``partition_assignment_strategy`` asks for the classic protocol, because
        KIP-848 has no assignors in the client.
        """
        strategy = config.partition_assignment_strategy
        if config.group_protocol == "classic" or strategy is not None:
            return cls.classic(rpc, config)
        return cls.kip848(rpc, config)

    @classmethod
    def classic(cls, rpc: GroupRpc, config: ConsumerConfig) -> MemberProtocol:
        """A member of the classic protocol."""
        member = ClassicMembership(
            ClassicMemberConfig(
                group_id=rpc.group_id,
                assignors=resolve(
                    config.partition_assignment_strategy or _DEFAULT_STRATEGY
                ),
                session=config.session_timeout_ms / 1000,
                interval=config.heartbeat_interval_ms / 1000,
                rebalance=config.max_poll_interval_ms / 1000,
                backoff=Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms),
                group_instance_id=config.group_instance_id,
                rack=config.client_rack or None,
            )
        )
        return cls(member, ClassicRequests(rpc, config, member))

    @classmethod
    def kip848(cls, rpc: GroupRpc, config: ConsumerConfig) -> MemberProtocol:
        """A member of the KIP-848 protocol; with ``auto`` it may fall back."""
        member = Kip848Membership(
            Kip848MemberConfig(
                group_id=rpc.group_id,
                member_id=str(random_uuid()),
                rebalance=config.max_poll_interval_ms / 1000,
                backoff=Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms),
                group_instance_id=config.group_instance_id,
                rack=config.client_rack or None,
                assignor=config.group_remote_assignor,
                falls_back=config.group_protocol == "auto",
            )
        )
        return cls(member, Kip848Requests(rpc, config, member))
