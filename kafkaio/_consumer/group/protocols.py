"""The two group protocols: each pairs a member's machine with its requests.

A pair is chosen by ``group_protocol``, and loaded then: most members need one of the
two. The user of a `MemberProtocol` knows the machine by its interface alone. A
machine's requests go to the sender beside it, so that neither gets a request of the
other protocol.
"""

from __future__ import annotations

from typing import Final, Protocol

from kafkaio._config import ConsumerConfig
from kafkaio._consumer.group.rpc import GroupRpc
from kafkaio._dataclass import dataclass
from kafkaio._machines.backoff import Backoff
from kafkaio._machines.membership import effects as fx
from kafkaio._machines.membership.protocol import Effects, Membership
from kafkaio._runtime.clock import random_uuid

#: The strategy of the classic protocol if the option names none.
_DEFAULT_STRATEGY: Final = ("cooperative-sticky",)


class MemberRequestPort(Protocol):
    """Sends the requests of a machine of the same protocol."""

    async def perform(self, effect: fx.SendGroupRequest) -> Effects:
        """Send one request, and pass its answer, or its failure, to the machine.

        If the call is cancelled, the request may still take effect.

        Returns:
            The effects that the machine decides.
        """
        ...

    def send_at_once(self, leave: fx.SendGroupRequest) -> None:
        """Send a request to leave if a connection is open; its answer is dropped."""
        ...


@dataclass(frozen=True, slots=True)
class MemberProtocol:
    """A member's machine of one protocol, and the sender of its requests.

    Attributes:
        member: the machine.
        requests: sends the requests of the machine.
    """

    member: Membership
    requests: MemberRequestPort

    @classmethod
    def first_choice(cls, rpc: GroupRpc, config: ConsumerConfig) -> MemberProtocol:
        """Return the protocol of ``group_protocol``; with ``auto``, KIP-848.

        A ``partition_assignment_strategy`` asks for the classic protocol, because
        KIP-848 has no assignors in the client.
        """
        strategy = config.partition_assignment_strategy
        if config.group_protocol == "classic" or strategy is not None:
            return cls.classic(rpc, config)
        return cls.kip848(rpc, config)

    @classmethod
    def classic(cls, rpc: GroupRpc, config: ConsumerConfig) -> MemberProtocol:
        """Return a member of the classic protocol."""
        from kafkaio._consumer.group.classic import ClassicRequests
        from kafkaio._machines.membership.assignors import resolve
        from kafkaio._machines.membership.classic.membership import (
            ClassicMemberConfig,
            ClassicMembership,
        )

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
        """Return a member of the KIP-848 protocol; with ``auto`` it may fall back."""
        from kafkaio._consumer.group.kip848 import Kip848Requests
        from kafkaio._machines.membership.kip848.membership import (
            Kip848MemberConfig,
            Kip848Membership,
        )

        member = Kip848Membership(
            Kip848MemberConfig(
                group_id=rpc.group_id,
                # The member chooses its id (KIP-1082), so that a join that is repeated
                # does not leave a second member in the group.
                member_id=str(random_uuid()),
                rebalance=config.max_poll_interval_ms / 1000,
                backoff=Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms),
                group_instance_id=config.group_instance_id,
                rack=config.client_rack or None,
                assignor=config.group_remote_assignor,
                # Only before the first answer: afterwards there is state to lose.
                falls_back=config.group_protocol == "auto",
            )
        )
        return cls(member, Kip848Requests(rpc, config, member))
