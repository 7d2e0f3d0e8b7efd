"""The states of a classic group member, as one table.

A rebalance leads from JOINING (JoinGroup is under way) through ASSIGNING (this member
leads, and computes the assignment) and SYNCING (SyncGroup is under way) to STABLE.
Deferred revocation (KIP-983) adds two states in which the member waits for the
application: PREPARING, before a JoinGroup that may not go out while partitions are
still in use, and RELEASING, after a cooperative assignment (KIP-429) that revokes some
of them.

The states and the events explain themselves below; `TRANSITIONS` has every pair that
can occur. A pair that it does not list is a bug in kafkaio: late answers are dropped by
their ticket before they become events.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import Final, TypeAlias

from kafkaio._machines.membership.table import following, go, stay


class ClassicState(Enum):
    """Where a member stands."""

    UNJOINED = auto()  #: no subscription
    STALLED = auto()  #: left, because the application stopped polling; a poll rejoins
    PREPARING = auto()  #: releases partitions, then sends JoinGroup
    JOINING = auto()  #: JoinGroup is under way, or its next attempt is due later
    ASSIGNING = auto()  #: leads, and waits for the partition counts of the topics
    SYNCING = auto()  #: SyncGroup is under way
    STABLE = auto()  #: owns its assignment
    RELEASING = auto()  #: owns its assignment, and partitions that it has to release
    UNSUBSCRIBING = auto()  #: unsubscribed: releases everything, then sends LeaveGroup
    LEAVING = auto()  #: closed: releases everything, then sends LeaveGroup
    LEFT = auto()  #: the end
    FATAL = auto()  #: the end, by an error that no retry can cure


class ClassicEvent(Enum):
    """An input that may change the state of a member."""

    SUBSCRIBED = auto()  #: the subscription changed
    UNSUBSCRIBED = auto()  #: the subscription was cancelled
    POLLED = auto()  #: the application polls again
    POLL_EXPIRED = auto()  #: no poll for max_poll_interval_ms
    REBALANCE_NEEDED = auto()  #: by the coordinator, the application, or new metadata
    RELEASED = auto()  #: everything that this state waits for is released
    RELEASE_DUE = auto()  #: some is released, and the wait for the rest is over
    MEMBER_ID_GIVEN = auto()  #: join again under this id (KIP-394)
    JOINED = auto()  #: JoinGroup was answered, and another member leads
    ELECTED = auto()  #: JoinGroup was answered, and this member leads
    ASSIGNMENT_MADE = auto()  #: the leader has computed the assignment
    SYNCED = auto()  #: an assignment that revokes nothing
    SYNCED_LESS = auto()  #: an assignment that revokes partitions
    SYNCED_STALE = auto()  #: an assignment of topics that are no longer subscribed
    RETRY = auto()  #: the request failed for a passing reason
    GENERATION_LOST = auto()  #: a newer generation began; the member id is still known
    MEMBER_LOST = auto()  #: the group no longer knows the member id
    REFUSED = auto()  #: the coordinator refused permanently
    CLOSED = auto()  #: the application closes the consumer
    LEAVE_ENDED = auto()  #: LeaveGroup was answered, failed, or was not needed


# Short names for the table.
_S: TypeAlias = ClassicState
_E: TypeAlias = ClassicEvent

#: States that are never left.
ENDED: Final = frozenset({_S.LEFT, _S.FATAL})

#: States in which the coordinator may keep a request waiting, however long.
BLOCKED: Final = frozenset({_S.JOINING, _S.SYNCING})

#: States in which heartbeats keep the session alive. In the states of ``BLOCKED`` the
#: waiting request does so, and no heartbeat could pass it on its connection.
HEARTBEATING: Final = frozenset(
    {
        _S.PREPARING,
        _S.ASSIGNING,
        _S.STABLE,
        _S.RELEASING,
        _S.UNSUBSCRIBING,
        _S.LEAVING,
    }
)

_JOINED_STATES: Final = (
    _S.PREPARING,
    _S.JOINING,
    _S.ASSIGNING,
    _S.SYNCING,
    _S.STABLE,
    _S.RELEASING,
)
#: States in which the member releases everything, to leave then.
DEPARTING: Final = (_S.UNSUBSCRIBING, _S.LEAVING)


TRANSITIONS: Final[Mapping[tuple[_S, _E], _S]] = MappingProxyType(
    {
        # The application.
        **go(_E.SUBSCRIBED, _S.JOINING, _S.UNJOINED),
        # A JoinGroup under way carries the old topics: SYNCED_STALE, or the check after
        # SYNCED, finds out.
        **stay(_E.SUBSCRIBED, _S.STALLED, _S.PREPARING, _S.JOINING),
        **stay(_E.SUBSCRIBED, _S.ASSIGNING, _S.SYNCING, *DEPARTING),
        **go(_E.SUBSCRIBED, _S.PREPARING, _S.STABLE, _S.RELEASING),
        **go(_E.UNSUBSCRIBED, _S.UNJOINED, _S.UNJOINED, _S.STALLED),
        **go(_E.UNSUBSCRIBED, _S.UNSUBSCRIBING, *_JOINED_STATES),
        **stay(_E.UNSUBSCRIBED, *DEPARTING),
        **go(_E.POLLED, _S.JOINING, _S.STALLED),
        **go(_E.POLL_EXPIRED, _S.STALLED, _S.PREPARING, _S.ASSIGNING),
        **go(_E.POLL_EXPIRED, _S.STALLED, _S.STABLE, _S.RELEASING),
        **go(_E.CLOSED, _S.LEFT, _S.UNJOINED, _S.STALLED),
        **go(_E.CLOSED, _S.LEAVING, *_JOINED_STATES, *DEPARTING),
        # Rebalances.
        **stay(_E.REBALANCE_NEEDED, _S.PREPARING, _S.JOINING, *DEPARTING),
        **go(_E.REBALANCE_NEEDED, _S.PREPARING, _S.ASSIGNING, _S.SYNCING),
        **go(_E.REBALANCE_NEEDED, _S.PREPARING, _S.STABLE, _S.RELEASING),
        **go(_E.RELEASED, _S.JOINING, _S.PREPARING),
        **go(_E.RELEASED, _S.PREPARING, _S.RELEASING),
        **go(_E.RELEASED, _S.UNJOINED, _S.UNSUBSCRIBING),
        **stay(_E.RELEASED, _S.LEAVING),
        **go(_E.RELEASE_DUE, _S.PREPARING, _S.RELEASING),
        # Answers.
        **stay(_E.MEMBER_ID_GIVEN, _S.JOINING),
        **go(_E.JOINED, _S.SYNCING, _S.JOINING),
        **go(_E.ELECTED, _S.ASSIGNING, _S.JOINING),
        **go(_E.ASSIGNMENT_MADE, _S.SYNCING, _S.ASSIGNING),
        **go(_E.SYNCED, _S.STABLE, _S.SYNCING),
        **go(_E.SYNCED_LESS, _S.RELEASING, _S.SYNCING),
        **go(_E.SYNCED_STALE, _S.PREPARING, _S.SYNCING),
        **go(_E.LEAVE_ENDED, _S.LEFT, _S.LEAVING),
        # Failures. A heartbeat that fails for a passing reason changes no state.
        **go(_E.RETRY, _S.JOINING, _S.JOINING, _S.SYNCING),
        **go(_E.GENERATION_LOST, _S.JOINING, *_JOINED_STATES),
        **stay(_E.GENERATION_LOST, *DEPARTING),
        **go(_E.MEMBER_LOST, _S.JOINING, *_JOINED_STATES),
        **stay(_E.MEMBER_LOST, *DEPARTING),
        **go(_E.REFUSED, _S.FATAL, *_JOINED_STATES),
        **stay(_E.REFUSED, *DEPARTING),
    }
)


def transition(state: ClassicState, event: ClassicEvent) -> ClassicState:
    """The state after ``event``.

    Raises:
        InternalError: the table does not list the pair.
    """
    return following(TRANSITIONS, state, event)
