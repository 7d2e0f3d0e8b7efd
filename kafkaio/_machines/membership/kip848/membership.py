"""A member of a KIP-848 group, with deferred revoke (KIP-983).

The coordinator divides the partitions and tells each member its share; a heartbeat
every few seconds is all the conversation there is. What is told goes by levels, not
by steps: whatever is held and not in the share is asked back from the user, whatever
is in the share, has a name, and is not held is taken on. When nothing is on its way
out, the coordinator is told what is held. It takes nothing less for an answer, so
delaying a revoke is not telling, and one that lasts holds its siblings up as well.

After any failure the next heartbeat says everything (a full one); the others say what
changed. Topics come as ids: one whose name is not known yet waits, and the rest goes
on without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from kafkaio._machines.membership import effects as fx
from kafkaio._machines.membership.kip848.member import (
    ConsumerMember,
    ConsumerMemberConfig,
    Slot,
    Wanted,
)
from kafkaio._machines.membership.kip848.states import JOINED, Event, State
from kafkaio._machines.membership.ledger import Claim
from kafkaio._machines.membership.protocol import NEVER, Effects
from kafkaio._machines.reactions import Step, reaction
from kafkaio.errors import KafkaError, UnsupportedVersion
from kafkaio.protocol.api_keys import ApiKey
from kafkaio.protocol.broker_errors import broker_error
from kafkaio.protocol.error_codes import ErrorCode
from kafkaio.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatResponse,
)
from kafkaio.types import TopicPartition

__all__ = ["ConsumerMemberConfig", "ConsumerMembership"]

_API: Final = ApiKey.CONSUMER_GROUP_HEARTBEAT
#: What a coordinator says to who joins by this protocol, and would not by the other.
_NOT_THIS_PROTOCOL: Final = frozenset(
    {
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    }
)
_RESETS: Final = frozenset({Step.RESET_MEMBER, Step.RESET_GENERATION})


class ConsumerMembership(ConsumerMember):
    """One consumer's membership, without clock, dice or sockets.

    Every method that takes ``now`` returns what is to be done, in order.
    """

    PROTOCOL = "consumer"

    __slots__ = ()

    # ---- the user --------------------------------------------------------------

    def subscribe(self, topics: frozenset[str], now: float) -> Effects:
        """Read these topics from now on, of which there may be none yet."""
        return self._want(Wanted(names=topics), now)

    def subscribe_regex(self, regex: str, now: float) -> Effects:
        """Read what the coordinator matches by an RE2 expression, now and later."""
        return self._want(Wanted(regex=regex), now)

    def unsubscribe(self, now: float) -> Effects:
        """Read nothing: give everything up, then leave."""
        if self.has_ended or self._wanted is None:
            return ()
        self._wanted = None
        self._fire(Event.UNSUBSCRIBED, now)
        return self._advance(now)

    def close(self, now: float) -> Effects:
        """Give everything up, leave, and end."""
        if self.has_ended:
            return ()
        self._wanted = None
        self._fire(Event.CLOSED, now)
        return self._advance(now)

    def polled(self, now: float) -> Effects:
        """The user is alive."""
        self._poll.polled(now)
        if self.state is not State.STALLED:
            return ()  # called for every record, so this is all
        self._fire(Event.POLLED, now)
        return self._advance(now)

    def enforce_rebalance(self, reason: str, now: float) -> Effects:
        """Tell the coordinator everything at once; dividing anew is its own affair.

        There is no asking for a rebalance in this protocol, so nobody is told why.
        """
        del reason
        self._is_full = self._is_full or self.epoch > 0
        return self._advance(now)

    def withhold(self, partitions: frozenset[TopicPartition], now: float) -> Effects:
        """Take these from the user, but not from the group, until they are left out.

        The coordinator believes that we have them, so it gives them to nobody. It is
        told nothing, and cannot be asked for what other members have.
        """
        if self.has_ended or partitions == self._withheld:
            return ()
        # What it meant for us all the time is taken on as if it were told anew.
        back = self._parked_slots() & self._target
        self._withheld = partitions
        self._acked -= back - self._parked_slots()
        return self._advance(now)

    @property
    def free(self) -> Mapping[TopicPartition, int]:
        """Those that are withheld: ours, but not in the user's hands."""
        return dict.fromkeys(map(self._named, self._parked_slots()), -1 - self.epoch)

    @property
    def is_deaf(self) -> bool:
        """Whether some of what is to be withheld is not ours."""
        return not self._withheld <= self.ledger.owned | self.free.keys()

    # ---- time and the cluster ----------------------------------------------------

    def tick(self, now: float) -> Effects:
        """Do what is due."""
        if lost := self.ledger.expire(now):
            self._emit(fx.Lose(lost))
        if self._poll.is_expired(now):
            self._poll_expired(now)
        self._settle(now)
        return self._advance(now)

    def next_deadline(self) -> float | None:
        """When ``tick`` is due; None if only an input can change anything."""
        deadlines = [self._settle_at, self._next_beat()]
        if not self.has_ended:
            deadlines.append(self.ledger.next_deadline() or NEVER)
        if self.state in JOINED:
            deadlines.append(self._name_at)
        if self._may_expire():
            deadlines.append(self._poll.expires_at)
        soonest = min(deadlines)
        return None if soonest == NEVER else soonest

    def topics_named(
        self, names: Mapping[UUID, str], now: float, roll: float
    ) -> Effects:
        """The answer to NameTopics; what is not known is left out."""
        self._names.update(names)
        if self._nameless():
            self._name_at = now + self.config.backoff.delay(self._lookups, roll)
            self._lookups += 1
        else:
            self._lookups = 0
        return self._advance(now)

    def revoke_ended(
        self, claims: tuple[Claim, ...], now: float, *, in_time: bool
    ) -> Effects:
        """A Revoke is done: by the user, or because its time was up."""
        gone = self.ledger.complete(claims)
        if gone and not in_time:
            self._emit(fx.Lose(gone))
        return self._advance(now)

    # ---- answers -------------------------------------------------------------------

    def heartbeat_answered(
        self,
        ticket: int,
        reply: ConsumerGroupHeartbeatResponse,
        now: float,
        roll: float,
    ) -> Effects:
        """ConsumerGroupHeartbeat came back, that of a leave too."""
        if ticket == self._closing_ticket != 0:
            return self.leave_ended(ticket, now)
        if ticket != self._ticket or ticket == 0:
            return ()
        self._ticket = 0
        if reply.error_code == ErrorCode.NONE:
            self._accepted(reply, now)
        else:
            self._react(reply, now, roll)
        return self._advance(now)

    def regex_refused(self, ticket: int) -> Effects:
        """The coordinator knows no regular expressions: names are wanted instead."""
        if ticket != self._ticket or ticket == 0:
            return ()
        self._ticket = 0
        self._said = None
        self._is_full = self.epoch > 0
        self._wanted = Wanted(is_open=True)
        # The names come by ``subscribe``, in answer to this.
        return (fx.MatchTopics(),)

    def commit_refused(
        self, code: int, identity: tuple[str, int], now: float, roll: float
    ) -> Effects:
        """An OffsetCommit under that member id and epoch was refused."""
        if identity != (self.member_id, self.epoch) or self.epoch <= 0:
            return ()
        step = reaction(ApiKey.OFFSET_COMMIT, code).step
        if step in _RESETS:
            self._fence(now, roll)
        elif step is Step.REFRESH_MEMBER:
            self._is_urgent = True
        elif code == ErrorCode.FENCED_INSTANCE_ID:
            text = f"OffsetCommit of group {self.config.group_id!r} was refused"
            self._end(broker_error(code, text), now)
        return self._advance(now)

    # ---- what an answer means --------------------------------------------------------

    def _want(self, wanted: Wanted, now: float) -> Effects:
        if self.has_ended or wanted == self._wanted:
            return ()
        self._wanted = wanted
        self._poll.polled(now)
        self._fire(Event.SUBSCRIBED, now)
        if self.state is State.JOINING and wanted.is_nothing:
            # There is nothing to wait for.
            self._emit(fx.Assign(frozenset(), self.ledger.owned))
        return self._advance(now)

    def _accepted(self, reply: ConsumerGroupHeartbeatResponse, now: float) -> None:
        said = self._said
        assert said is not None
        self._is_new = False
        self._failures = 0
        self._not_before = now
        self.epoch = reply.member_epoch
        self.member_id = reply.member_id or self.member_id
        self._interval = reply.heartbeat_interval_ms / 1000
        self._known = said.wanted
        if said.acks and said.owned is not None:
            self._acked = said.owned
        if self.state is State.JOINING:
            self._begin_settling(now)
            self._fire(Event.JOINED, now)
        self._next_at = said.at + self._pace()
        if reply.assignment is not None:
            self._aim(_slots_of(reply), now)

    def _aim(self, target: frozenset[Slot], now: float) -> None:
        if target == self._target:
            return
        # Also where it takes and gives nothing in the end: it is the coordinator's
        # last word, and waits for ours.
        self._target = target
        self._must_ack = True
        self._name_at = now

    def _react(
        self, reply: ConsumerGroupHeartbeatResponse, now: float, roll: float
    ) -> None:
        code = reply.error_code
        asked = reaction(_API, code)
        if asked.refind_coordinator:
            self._emit(fx.ForgetCoordinator())
        if asked.step in _RESETS or self._has_lost_group(code):
            self._fence(now, roll)
        elif asked.retry:
            self._beat_failed(now, roll)
        elif code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            self._emit(fx.Report(self._error(reply)))
            self._beat_failed(now, roll)
        elif code == ErrorCode.INVALID_REGULAR_EXPRESSION and self.regex is not None:
            self._wanted = Wanted(is_open=True)
            self._is_full = self.epoch > 0
            self._emit(fx.MatchTopics())
        else:
            self._end(self._error(reply), now, cures=code in _NOT_THIS_PROTOCOL)

    def _has_lost_group(self, code: int) -> bool:
        # The group vanished under us; as a new member we make it anew.
        return code == ErrorCode.GROUP_ID_NOT_FOUND and self.epoch > 0

    def _fence(self, now: float, roll: float) -> None:
        # The first rejoin is due at once. A coordinator that only ever fences us must
        # not be hammered, though.
        delay = self.config.backoff.delay(self._failures - 1, roll)
        self._not_before = now + (delay if self._failures else 0.0)
        self._failures += 1
        self._fire(Event.FENCED, now)

    def _refused(self, error: KafkaError, now: float) -> None:
        self._end(error, now, cures=isinstance(error, UnsupportedVersion))

    def _end(self, error: KafkaError, now: float, *, cures: bool = False) -> None:
        # ``cures``: whether the classic protocol could do better.
        falls_back = cures and self.config.falls_back and self._is_new
        self._fire(Event.REFUSED, now)
        if self.state is State.FATAL:
            self._emit(fx.FallBack(error) if falls_back else fx.Fail(error))

    def _error(self, reply: ConsumerGroupHeartbeatResponse) -> KafkaError:
        why = f": {reply.error_message}" if reply.error_message else ""
        text = f"group {self.config.group_id!r} refused the heartbeat{why}"
        if reply.error_code in _NOT_THIS_PROTOCOL:
            text += '; group_protocol="classic" may do'
        return broker_error(reply.error_code, text)


def _slots_of(reply: ConsumerGroupHeartbeatResponse) -> frozenset[Slot]:
    assert reply.assignment is not None
    return frozenset(
        (topic.topic_id, number)
        for topic in reply.assignment.topic_partitions
        for number in topic.partitions
    )
