"""The interface of a member's machine, which both group protocols implement."""

from __future__ import annotations

import re
from uuid import UUID

import pytest

from kafkaio._machines.membership import effects as fx
from kafkaio._machines.membership.assignors import ASSIGNORS
from kafkaio._machines.membership.classic.membership import (
    ClassicMemberConfig,
    ClassicMembership,
)
from kafkaio._machines.membership.kip848.membership import (
    Kip848MemberConfig,
    Kip848Membership,
)
from kafkaio._machines.membership.layout import Layout
from kafkaio._machines.membership.protocol import Membership

PATTERN = re.compile("orders-.*")


def classic() -> Membership:
    return ClassicMembership(
        ClassicMemberConfig(group_id="g", assignors=(ASSIGNORS["range"],))
    )


def kip848() -> Membership:
    return Kip848Membership(Kip848MemberConfig(group_id="g", member_id="me"))


@pytest.fixture(params=[classic, kip848])
def member(request: pytest.FixtureRequest) -> Membership:
    made: Membership = request.param()
    return made


def test_a_new_member_belongs_to_no_generation(member: Membership) -> None:
    assert member.generation == -1
    assert member.topics is None
    assert member.state.name == "UNJOINED"
    assert not member.has_ended
    assert not member.is_leader
    assert not member.is_joining
    assert member.group_topics == frozenset()
    assert member.free == {}
    assert member.ledger.owned == frozenset()
    assert not member.ignores_withholding
    assert member.next_deadline() is None


def test_each_protocol_has_its_name_and_its_fence() -> None:
    assert [(m.group_protocol, m.uses_member_epoch) for m in (classic(), kip848())] == [
        ("classic", False),
        ("consumer", True),
    ]


def test_subscribing_asks_the_coordinator_for_membership(member: Membership) -> None:
    (effect,) = member.subscribe(frozenset({"t"}), 1.0)
    assert isinstance(effect, fx.SendGroupRequest)
    assert not effect.is_leave
    assert member.awaits(effect.ticket)
    assert member.topics == frozenset({"t"})


def test_only_the_brokers_of_kip848_match_a_pattern() -> None:
    assert classic().subscribe_pattern(PATTERN, 1.0, exclude_internal=True) is None
    member = kip848()
    effects = member.subscribe_pattern(PATTERN, 1.0, exclude_internal=True)
    assert effects is not None
    (beat,) = effects
    assert isinstance(beat, fx.SendConsumerGroupHeartbeat)
    assert beat.regex == "orders-.*"
    unfit = re.compile(r"(?<=a)b")
    assert member.subscribe_pattern(unfit, 1.0, exclude_internal=True) is None


def test_an_answer_that_a_protocol_never_asks_for_changes_nothing() -> None:
    member = kip848()
    assert member.metadata_changed(Layout({"t": 1}), 1.0) == ()
    assert member.topics_refreshed(1, 1.0) == ()
    assert member.topics_resolved(1, Layout({"t": 1}), 1.0) == ()
    assert classic().topics_named({UUID(int=1): "t"}, 1.0, 0.5) == ()


@pytest.mark.parametrize(
    ("effect", "leaves"),
    [
        (fx.SendLeave(ticket=1, member_id="me", reason=""), True),
        (fx.SendHeartbeat(ticket=1, member_id="me", generation=1, timeout=1.0), False),
        *(
            (
                fx.SendConsumerGroupHeartbeat(
                    ticket=1, member_id="me", member_epoch=epoch, timeout=1.0
                ),
                epoch < 0,
            )
            for epoch in (-2, -1, 0, 1)
        ),
    ],
)
def test_a_request_tells_whether_it_leaves(
    effect: fx.SendGroupRequest, *, leaves: bool
) -> None:
    assert effect.is_leave is leaves
