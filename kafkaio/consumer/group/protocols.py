"""A member's machine and what sends its requests: one pair for each group protocol."""

from __future__ import annotations

from typing import Final, TypeAlias

from kafkaio._machines.backoff import Backoff
from kafkaio._machines.membership import effects as fx
from kafkaio._machines.membership.assignors import resolve
from kafkaio._machines.membership.classic.membership import (
    ClassicMembership,
    MemberConfig,
)
from kafkaio._machines.membership.kip848.membership import (
    ConsumerMemberConfig,
    ConsumerMembership,
)
from kafkaio._machines.membership.protocol import Effects
from kafkaio._runtime.clock import random_uuid
from kafkaio.config import ConsumerConfig
from kafkaio.consumer.group.classic import GroupRequests
from kafkaio.consumer.group.kip848 import ConsumerRequests
from kafkaio.consumer.group.rpc import GroupRpc

__all__ = ["Goodbye", "Membership", "Seat", "Sending"]

#: A member's machine, of whichever protocol.
Membership: TypeAlias = ClassicMembership | ConsumerMembership
#: What a machine has sent.
Sending: TypeAlias = (
    fx.SendJoin
    | fx.SendSync
    | fx.SendHeartbeat
    | fx.SendLeave
    | fx.SendProbe
    | fx.SendConsumerHeartbeat
)
#: A request to leave the group.
Goodbye: TypeAlias = fx.SendLeave | fx.SendConsumerHeartbeat

#: What is used where the classic protocol is not asked for by its assignors.
_DEFAULT_STRATEGY: Final = ("cooperative-sticky",)


class Seat:
    """A member's machine of one protocol, and what sends its requests."""

    __slots__ = ("_requests", "member")

    def __init__(
        self, member: Membership, requests: GroupRequests | ConsumerRequests
    ) -> None:
        self.member = member
        self._requests = requests

    @classmethod
    def first_choice(cls, rpc: GroupRpc, config: ConsumerConfig) -> Seat:
        """The seat to take by ``group_protocol``; an ``auto`` one may fall back."""
        strategy = config.partition_assignment_strategy
        if config.group_protocol == "classic" or strategy is not None:
            return cls.classic(rpc, config)
        return cls.consumer(rpc, config)

    @classmethod
    def classic(cls, rpc: GroupRpc, config: ConsumerConfig) -> Seat:
        """A member of the classic protocol."""
        member = ClassicMembership(
            MemberConfig(
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
        return cls(member, GroupRequests(rpc, config, member))

    @classmethod
    def consumer(cls, rpc: GroupRpc, config: ConsumerConfig) -> Seat:
        """A member of the consumer protocol (KIP-848)."""
        member = ConsumerMembership(
            ConsumerMemberConfig(
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
        return cls(member, ConsumerRequests(rpc, config, member))

    async def perform(self, effect: Sending) -> Effects:
        """Send one request; what is to be done about its answer.

        If the call is cancelled, the request may still take effect.
        """
        # Each machine sends what its own protocol has.
        if isinstance(effect, fx.SendConsumerHeartbeat):
            assert isinstance(self._requests, ConsumerRequests)
            return await self._requests.perform(effect)
        assert isinstance(self._requests, GroupRequests)
        return await self._requests.perform(effect)

    def send_at_once(self, goodbye: Goodbye) -> None:
        """Send a request to leave if a connection is open; nobody hears its answer."""
        if isinstance(goodbye, fx.SendConsumerHeartbeat):
            assert isinstance(self._requests, ConsumerRequests)
            self._requests.send_at_once(goodbye)
        else:
            assert isinstance(self._requests, GroupRequests)
            self._requests.send_at_once(goodbye)
