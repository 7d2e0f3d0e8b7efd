"""The states of a classic group member, as one table.

A rebalance leads from JOINING (JoinGroup is under way) through ASSIGNING (this member
leads, and computes the assignment) and SYNCING (SyncGroup is under way) to STABLE.
Deferred revocation (KIP-983) adds two states in which the member waits for the
application: PREPARING, before a JoinGroup that may not go out while partitions are
still in use, and RELEASING, after a cooperative assignment (KIP-429) that revokes some
of them.

`State` and `Event` explain themselves below; `TRANSITIONS` has every pair that can
occur. A pair that it does not list is a bug in kafkaio: late answers are dropped by
their ticket before they become events.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import Final

from kafkaio._machines.membership.table import following, go, stay


class State(Enum):
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


class Event(Enum):
    """What happened to a member."""

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


#: States that are never left.
ENDED: Final = frozenset({State.LEFT, State.FATAL})

#: States in which the coordinator may keep a request waiting, however long.
BLOCKED: Final = frozenset({State.JOINING, State.SYNCING})

#: States in which heartbeats keep the session alive. In the states of ``BLOCKED`` the
#: waiting request does so, and no heartbeat could pass it on its connection.
HEARTBEATING: Final = frozenset(
    {
        State.PREPARING,
        State.ASSIGNING,
        State.STABLE,
        State.RELEASING,
        State.UNSUBSCRIBING,
        State.LEAVING,
    }
)

_JOINED_STATES: Final = (
    State.PREPARING,
    State.JOINING,
    State.ASSIGNING,
    State.SYNCING,
    State.STABLE,
    State.RELEASING,
)
#: States in which the member releases everything, to leave then.
DEPARTING: Final = (State.UNSUBSCRIBING, State.LEAVING)


TRANSITIONS: Final[Mapping[tuple[State, Event], State]] = MappingProxyType(
    {
        # The application.
        **go(Event.SUBSCRIBED, State.JOINING, State.UNJOINED),
        # A JoinGroup under way carries the old topics: SYNCED_STALE, or the check after
        # SYNCED, finds out.
        **stay(Event.SUBSCRIBED, State.STALLED, State.PREPARING, State.JOINING),
        **stay(Event.SUBSCRIBED, State.ASSIGNING, State.SYNCING, *DEPARTING),
        **go(Event.SUBSCRIBED, State.PREPARING, State.STABLE, State.RELEASING),
        **go(Event.UNSUBSCRIBED, State.UNJOINED, State.UNJOINED, State.STALLED),
        **go(Event.UNSUBSCRIBED, State.UNSUBSCRIBING, *_JOINED_STATES),
        **stay(Event.UNSUBSCRIBED, *DEPARTING),
        **go(Event.POLLED, State.JOINING, State.STALLED),
        **go(Event.POLL_EXPIRED, State.STALLED, State.PREPARING, State.ASSIGNING),
        **go(Event.POLL_EXPIRED, State.STALLED, State.STABLE, State.RELEASING),
        **go(Event.CLOSED, State.LEFT, State.UNJOINED, State.STALLED),
        **go(Event.CLOSED, State.LEAVING, *_JOINED_STATES, *DEPARTING),
        # Rebalances.
        **stay(Event.REBALANCE_NEEDED, State.PREPARING, State.JOINING, *DEPARTING),
        **go(Event.REBALANCE_NEEDED, State.PREPARING, State.ASSIGNING, State.SYNCING),
        **go(Event.REBALANCE_NEEDED, State.PREPARING, State.STABLE, State.RELEASING),
        **go(Event.RELEASED, State.JOINING, State.PREPARING),
        **go(Event.RELEASED, State.PREPARING, State.RELEASING),
        **go(Event.RELEASED, State.UNJOINED, State.UNSUBSCRIBING),
        **stay(Event.RELEASED, State.LEAVING),
        **go(Event.RELEASE_DUE, State.PREPARING, State.RELEASING),
        # Answers.
        **stay(Event.MEMBER_ID_GIVEN, State.JOINING),
        **go(Event.JOINED, State.SYNCING, State.JOINING),
        **go(Event.ELECTED, State.ASSIGNING, State.JOINING),
        **go(Event.ASSIGNMENT_MADE, State.SYNCING, State.ASSIGNING),
        **go(Event.SYNCED, State.STABLE, State.SYNCING),
        **go(Event.SYNCED_LESS, State.RELEASING, State.SYNCING),
        **go(Event.SYNCED_STALE, State.PREPARING, State.SYNCING),
        **go(Event.LEAVE_ENDED, State.LEFT, State.LEAVING),
        # Failures. A heartbeat that fails for a passing reason changes no state.
        **go(Event.RETRY, State.JOINING, State.JOINING, State.SYNCING),
        **go(Event.GENERATION_LOST, State.JOINING, *_JOINED_STATES),
        **stay(Event.GENERATION_LOST, *DEPARTING),
        **go(Event.MEMBER_LOST, State.JOINING, *_JOINED_STATES),
        **stay(Event.MEMBER_LOST, *DEPARTING),
        **go(Event.REFUSED, State.FATAL, *_JOINED_STATES),
        **stay(Event.REFUSED, *DEPARTING),
    }
)


def transition(state: State, event: Event) -> State:
    """The state after ``event``.

    Raises:
        InternalError: the table does not list the pair.
    """
    return following(TRANSITIONS, state, event)
