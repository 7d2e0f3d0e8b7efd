from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.join_group import JoinGroupResponse
from kafkaio.protocol.messages.sync_group import SyncGroupResponse
from kafkaio.testing._broker.group_config import GroupConfig
from kafkaio.testing._groups.classic import ClassicGroup
from kafkaio.testing._groups.classic_member import (
    ClassicGroupState,
    JoinRequest,
    SyncRequest,
)


class Driver:
    """Numbers requests and keeps the answers of one group."""

    def __init__(self, **config: float) -> None:
        self.group = ClassicGroup("g", GroupConfig(**config))  # type: ignore[arg-type]
        self.now = 0.0
        self.count = 0

    def answers(self) -> dict[int, JoinGroupResponse | SyncGroupResponse]:
        found = dict(self.group.answers)
        self.group.answers.clear()
        return found  # type: ignore[return-value]

    def join(self, member_id: str = "", **fields: object) -> int:
        self.count += 1
        joining = JoinRequest(
            member_id=member_id,
            instance_id=None,
            client_id="c",
            client_host="/h",
            session_timeout=10.0,
            rebalance_timeout=60.0,
            protocol_type="consumer",
            protocols=(("range", b"r"),),
            new_id=str(self.count),
            knows_member_id_required=False,
        )
        self.group.join(replace(joining, **fields), self.count, self.now)  # type: ignore[arg-type]
        return self.count

    def joined(self, member_id: str = "", **fields: object) -> JoinGroupResponse:
        answer = self.answers_of(self.join(member_id, **fields))
        assert isinstance(answer, JoinGroupResponse)
        return answer

    def state(self) -> ClassicGroupState:
        return self.group.state

    def answers_of(self, reply: int) -> JoinGroupResponse | SyncGroupResponse:
        return self.answers()[reply]

    def sync(self, member_id: str, **fields: object) -> int:
        self.count += 1
        syncing = SyncRequest(
            member_id=member_id, instance_id=None, generation=self.group.generation
        )
        self.group.sync(replace(syncing, **fields), self.count, self.now)  # type: ignore[arg-type]
        return self.count

    def beat(self, member_id: str, instance_id: str | None = None) -> ErrorCode:
        return self.group.heartbeat(
            member_id, instance_id, self.group.generation, self.now
        )

    def commit(self, member_id: str, generation: int | None = None) -> ErrorCode:
        if generation is None:
            generation = self.group.generation
        return self.group.check_commit(member_id, None, generation, self.now)

    def two_joined(self) -> tuple[str, str]:
        """A leader and a follower that both have to sync."""
        leader = self.joined().member_id
        second = self.join()
        again = self.join(leader)
        answers = self.answers()
        follower = answers[second].member_id  # type: ignore[union-attr]
        assert answers[again].member_id == leader  # type: ignore[union-attr]
        return leader, follower

    def pair(self) -> tuple[str, str]:
        """A stable group of a leader and a follower."""
        leader, follower = self.two_joined()
        self.sync(follower)
        self.sync(leader, assignments={leader: b"L", follower: b"F"})
        assert self.group.state is ClassicGroupState.STABLE
        self.answers()
        return leader, follower


def test_the_first_member_leads_at_once() -> None:
    driver = Driver()
    answer = driver.joined()
    assert answer.error_code == 0
    assert answer.generation_id == 1
    assert answer.leader == answer.member_id == "c-1"
    assert [one.metadata for one in answer.members] == [b"r"]
    assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")
    assert driver.group.state is ClassicGroupState.COMPLETING


def test_from_version_4_on_a_member_is_told_its_id_first() -> None:
    driver = Driver()
    first = driver.joined(knows_member_id_required=True)
    assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert not driver.group.members
    second = driver.joined(first.member_id, knows_member_id_required=True)
    assert (second.error_code, second.member_id) == (0, first.member_id)


def test_a_static_member_is_never_told_its_id_first() -> None:
    driver = Driver()
    answer = driver.joined(instance_id="i", knows_member_id_required=True)
    assert answer.error_code == 0
    assert answer.member_id == "i-1"


def test_an_id_that_is_not_used_is_forgotten() -> None:
    driver = Driver()
    pending = driver.joined(knows_member_id_required=True).member_id
    assert driver.group.deadline == 10.0
    driver.group.tick(10.0)
    assert driver.group.deadline == inf
    assert driver.joined(pending).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_was_told_its_id_is_waited_for() -> None:
    driver = Driver()
    leader, follower = driver.pair()
    pending = driver.joined(knows_member_id_required=True).member_id
    third = driver.join()
    for member in (leader, follower):
        driver.join(member)
    assert not driver.answers()
    driver.join(pending)
    assert driver.answers()[third].error_code == 0
    assert len(driver.group.members) == 4


def test_a_member_that_was_told_its_id_may_leave() -> None:
    driver = Driver()
    leader, follower = driver.pair()
    pending = driver.joined(knows_member_id_required=True).member_id
    third = driver.join()
    driver.join(leader)
    driver.join(follower)
    assert driver.group.leave(pending, None, 0.0) == ErrorCode.NONE
    assert driver.answers()[third].error_code == 0
    other = driver.joined(knows_member_id_required=True).member_id
    assert driver.group.leave(other, None, 0.0) == ErrorCode.NONE
    assert (
        driver.group.state is ClassicGroupState.PREPARING
    )  # as Kafka, needless as it is


def test_a_member_told_its_id_leaves_a_group_without_members() -> None:
    driver = Driver()
    pending = driver.joined(knows_member_id_required=True).member_id
    assert driver.group.leave(pending, None, 0.0) == ErrorCode.NONE
    assert driver.group.state is ClassicGroupState.EMPTY


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"protocols": ()}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": ""}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"member_id": "x"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "x", "instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_joins_that_an_empty_group_refuses(
    fields: dict[str, object], code: int
) -> None:
    assert Driver().joined(**fields).error_code == code  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "fields", [{"protocol_type": "connect"}, {"protocols": (("other", b""),)}]
)
def test_protocols_have_to_agree(fields: dict[str, object]) -> None:
    driver = Driver()
    driver.joined()
    answer = driver.joined(**fields)  # type: ignore[arg-type]
    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_full_group_accepts_only_its_members() -> None:
    driver = Driver(max_size=1)
    leader = driver.joined().member_id
    assert driver.joined().error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert driver.joined(leader, protocols=(("range", b"new"),)).error_code == 0


def test_a_rebalancing_group_counts_who_has_joined() -> None:
    driver = Driver(max_size=2)
    leader, _ = driver.pair()
    driver.join(leader)
    assert driver.group.state is ClassicGroupState.PREPARING
    third = driver.join()
    assert driver.group.answers == []
    fourth = driver.answers_of(driver.join())
    assert fourth.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert third not in driver.answers()


def test_the_protocol_is_the_most_preferred_one_that_all_support() -> None:
    driver = Driver(initial_rebalance_delay=3.0)
    one = driver.join(protocols=(("odd", b""), ("a", b"1"), ("b", b"1")))
    driver.join(protocols=(("b", b"2"), ("a", b"2")))
    driver.join(protocols=(("b", b"3"), ("a", b"3")))
    driver.group.tick(3.0)
    assert driver.answers()[one].protocol_name == "b"


def test_an_empty_group_waits_for_more_members() -> None:
    driver = Driver(initial_rebalance_delay=3.0)
    driver.join()
    driver.now = 2.0
    driver.join()
    assert driver.group.deadline == 5.0
    driver.group.tick(4.0)
    assert not driver.answers()
    driver.group.tick(5.0)
    assert len(driver.answers()) == 2
    assert driver.group.generation == 1


def test_the_wait_for_more_members_ends_with_the_rebalance_timeout() -> None:
    driver = Driver(initial_rebalance_delay=3.0)
    driver.join(rebalance_timeout=4.0)
    driver.now = 2.0
    driver.join(rebalance_timeout=4.0)
    assert driver.group.deadline == 4.0


def test_followers_get_their_assignment_when_the_leader_syncs() -> None:
    driver = Driver()
    leader, follower = driver.two_joined()
    waiting = driver.sync(follower)
    assert not driver.answers()
    assert driver.beat(follower) == ErrorCode.NONE
    sync = driver.sync(leader, assignments={leader: b"L", follower: b"F"})
    answers = driver.answers()
    assert answers[waiting].assignment == b"F"  # type: ignore[union-attr]
    assert answers[sync].assignment == b"L"  # type: ignore[union-attr]
    later = driver.answers_of(driver.sync(follower))
    assert later.assignment == b"F"  # type: ignore[union-attr]


def test_only_the_leader_is_told_the_members() -> None:
    driver = Driver()
    leader = driver.joined().member_id
    second = driver.join()
    again = driver.join(leader)
    answers = driver.answers()
    assert answers[second].members == []  # type: ignore[union-attr]
    assert len(answers[again].members) == 2  # type: ignore[union-attr]


def test_a_session_does_not_end_while_its_sync_waits() -> None:
    driver = Driver()
    leader, follower = driver.two_joined()
    waiting = driver.sync(follower)
    driver.beat(follower)
    driver.now = 9.0
    driver.beat(leader)
    driver.now = 15.0
    driver.group.tick(15.0)
    driver.sync(leader, assignments={follower: b"F"})
    assert driver.answers()[waiting].assignment == b"F"  # type: ignore[union-attr]
    assert driver.group.members[follower].session_deadline == 25.0


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"generation": 1}, ErrorCode.ILLEGAL_GENERATION),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol": "other"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": "consumer", "protocol": "range"}, ErrorCode.NONE),
        ({"member_id": "x"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"instance_id": "x"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_sync_errors(fields: dict[str, object], code: int) -> None:
    driver = Driver()
    leader, _ = driver.pair()
    member_id = str(fields.pop("member_id", leader))
    assert driver.answers_of(driver.sync(member_id, **fields)).error_code == code


def test_a_sync_in_the_middle_of_a_rebalance_says_so() -> None:
    driver = Driver()
    leader, follower = driver.pair()
    driver.join(leader)
    answer = driver.answers_of(driver.sync(follower))
    assert answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_sync_that_waits_ends_with_the_next_rebalance() -> None:
    driver = Driver()
    _, follower = driver.two_joined()
    waiting = driver.sync(follower)
    driver.join()
    assert driver.answers()[waiting].error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_second_sync_or_join_of_a_member_ends_the_first() -> None:
    driver = Driver()
    leader, follower = driver.pair()
    first = driver.join(leader)
    second = driver.join(leader)
    assert driver.answers()[first].error_code == ErrorCode.REBALANCE_IN_PROGRESS
    driver.join(follower)
    assert driver.answers()[second].error_code == 0
    one = driver.sync(follower)
    two = driver.sync(follower)
    assert list(driver.answers()) == [one]
    driver.sync(leader)
    assert two in driver.answers()


def test_heartbeats() -> None:
    driver = Driver()
    leader, follower = driver.pair()
    assert driver.beat(follower) == ErrorCode.NONE
    assert driver.beat("x") == ErrorCode.UNKNOWN_MEMBER_ID
    old = driver.group.heartbeat(follower, None, 1, 0.0)
    assert old == ErrorCode.ILLEGAL_GENERATION
    driver.join(leader)
    assert driver.beat(follower) == ErrorCode.REBALANCE_IN_PROGRESS
    assert driver.beat(leader) == ErrorCode.REBALANCE_IN_PROGRESS
    assert driver.group.members[leader].session_deadline == inf


def test_a_member_whose_session_ends_is_removed_and_the_others_rebalance() -> None:
    driver = Driver()
    leader, follower = driver.pair()
    driver.now = 9.0
    driver.beat(follower)
    assert driver.group.deadline == 10.0
    driver.group.tick(10.0)
    assert list(driver.group.members) == [follower]
    assert driver.group.leader == follower
    driver.now = 10.0
    assert driver.beat(leader) == ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.beat(follower) == ErrorCode.REBALANCE_IN_PROGRESS
    assert driver.joined(follower).generation_id == 3


def test_a_member_that_does_not_join_in_time_is_removed() -> None:
    driver = Driver()
    leader, follower = driver.pair()
    waiting = driver.join(leader)
    for now in range(5, 60, 5):
        driver.now = now
        assert driver.beat(follower) == ErrorCode.REBALANCE_IN_PROGRESS
        assert driver.commit(follower) == ErrorCode.NONE
        driver.group.tick(now)
    assert not driver.answers()
    driver.group.tick(60.0)
    assert driver.answers()[waiting].generation_id == 3  # type: ignore[union-attr]
    assert driver.beat(follower) == ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.commit(follower) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_never_syncs_is_removed_after_the_rebalance_timeout() -> None:
    driver = Driver()
    leader, _ = driver.pair()
    third = driver.join()
    driver.join(leader)
    follower = next(one for one in driver.group.members if one != leader)
    driver.join(follower)
    lazy = driver.answers()[third].member_id  # type: ignore[union-attr]
    driver.sync(leader)
    driver.sync(follower)
    for now in range(5, 60, 5):
        driver.now = now
        for member in (leader, follower, lazy):
            assert driver.beat(member) == ErrorCode.NONE
        driver.group.tick(now)
    driver.group.tick(60.0)
    assert lazy not in driver.group.members
    assert driver.group.state is ClassicGroupState.PREPARING


def test_leaving_rebalances_at_once() -> None:
    driver = Driver()
    leader, follower = driver.pair()
    assert driver.group.leave("x", None, 0.0) == ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.group.leave(leader, None, 0.0) == ErrorCode.NONE
    assert driver.state() is ClassicGroupState.PREPARING
    follows = driver.group.leader == follower
    assert follows
    assert driver.group.leave(follower, None, 0.0) == ErrorCode.NONE
    assert driver.state() is ClassicGroupState.EMPTY
    assert (driver.group.generation, driver.group.protocol) == (3, None)
    assert driver.group.leader is None
    assert driver.joined(follower).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_leader_that_joins_again_rebalances_a_follower_does_not() -> None:
    driver = Driver()
    leader, follower = driver.pair()
    same = driver.joined(follower)
    assert (same.error_code, same.generation_id, same.members) == (0, 2, [])
    driver.join(leader)
    assert driver.group.state is ClassicGroupState.PREPARING


def test_a_follower_with_another_subscription_rebalances() -> None:
    driver = Driver()
    _, follower = driver.pair()
    driver.join(follower, protocols=(("range", b"other"),))
    assert driver.group.state is ClassicGroupState.PREPARING


def test_a_leader_that_lost_its_answer_is_told_the_members_again() -> None:
    driver = Driver()
    leader = driver.joined().member_id
    again = driver.joined(leader)
    assert (again.generation_id, len(again.members)) == (1, 1)


def test_a_forced_rebalance() -> None:
    driver = Driver()
    driver.group.rebalance(0.0)
    assert driver.state() is ClassicGroupState.EMPTY
    driver.pair()
    driver.group.rebalance(0.0)
    assert driver.state() is ClassicGroupState.PREPARING


# Static members


def test_a_static_member_that_returns_gets_its_assignment_without_a_rebalance() -> None:
    driver = Driver()
    old = driver.joined(instance_id="i").member_id
    driver.sync(old, instance_id="i", assignments={old: b"A"})
    driver.answers()
    answer = driver.joined(instance_id="i")
    assert answer.generation_id == 1
    assert answer.skip_assignment
    assert answer.leader == answer.member_id != old
    assert len(answer.members) == 1
    sync = driver.answers_of(driver.sync(answer.member_id, instance_id="i"))
    assert sync.assignment == b"A"  # type: ignore[union-attr]
    assert driver.beat(old, "i") == ErrorCode.FENCED_INSTANCE_ID
    assert driver.joined(old, instance_id="i").error_code == (
        ErrorCode.FENCED_INSTANCE_ID
    )


def test_an_older_client_is_not_told_that_it_leads() -> None:
    driver = Driver()
    old = driver.joined(instance_id="i").member_id
    driver.sync(old, instance_id="i")
    driver.answers()
    answer = driver.joined(instance_id="i", may_skip_assignment=False)
    assert not answer.skip_assignment
    assert answer.leader == old
    assert answer.members == []


def test_a_static_follower_returns() -> None:
    driver = Driver()
    leader, _ = driver.pair()
    third = driver.join(instance_id="i")
    for member in list(driver.group.members)[:2]:
        driver.join(member)
    static = driver.answers()[third].member_id  # type: ignore[union-attr]
    driver.sync(leader, assignments={static: b"S"})
    driver.answers()
    answer = driver.joined(instance_id="i")
    assert (answer.skip_assignment, answer.leader) == (False, leader)
    assert answer.member_id in driver.group._unsynced


def test_a_static_member_that_wants_another_protocol_rebalances() -> None:
    driver = Driver()
    old = driver.joined(instance_id="i", protocols=(("a", b""), ("b", b""))).member_id
    driver.sync(old, instance_id="i")
    driver.answers()
    answer = driver.joined(instance_id="i", protocols=(("b", b""), ("a", b"")))
    assert (answer.generation_id, answer.protocol_name) == (2, "b")


def test_a_static_members_waiting_predecessor_is_fenced() -> None:
    driver = Driver(initial_rebalance_delay=3.0)
    first = driver.join(instance_id="i")
    driver.join(instance_id="i")
    assert driver.answers()[first].error_code == ErrorCode.FENCED_INSTANCE_ID


def test_static_members_keep_their_places_while_all_are_away() -> None:
    driver = Driver()
    one = driver.joined(instance_id="i").member_id
    driver.sync(one, instance_id="i")
    driver.group.rebalance(0.0)
    driver.group.members[one].session_deadline = inf
    driver.group.tick(60.0)
    assert driver.group.state is ClassicGroupState.PREPARING
    assert list(driver.group.members) == [one]
    assert driver.group.deadline == 120.0


def test_a_static_leader_that_is_away_is_replaced_as_leader() -> None:
    driver = Driver()
    one = driver.joined(instance_id="i").member_id
    driver.sync(one, instance_id="i")
    second = driver.join()
    driver.group.members[one].session_deadline = inf
    driver.group.tick(60.0)
    answer = driver.answers()[second]
    assert answer.leader == answer.member_id  # type: ignore[union-attr]
    assert len(answer.members) == 2  # type: ignore[union-attr]


def test_an_administrator_removes_a_static_member_by_its_instance_id() -> None:
    driver = Driver()
    driver.joined(instance_id="i")
    assert driver.group.leave("", "j", 0.0) == ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.group.leave("x", "i", 0.0) == ErrorCode.FENCED_INSTANCE_ID
    assert driver.group.leave("", "i", 0.0) == ErrorCode.NONE
    assert not driver.group.static


# Commits


def test_commits() -> None:
    driver = Driver()
    assert driver.commit("", -1) == ErrorCode.NONE
    assert driver.commit("x", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    leader, follower = driver.pair()
    assert driver.commit("", -1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.commit(follower, 1) == ErrorCode.ILLEGAL_GENERATION
    driver.now = 5.0
    assert driver.commit(follower) == ErrorCode.NONE
    assert driver.group.members[follower].session_deadline == 15.0
    driver.join(leader)
    assert driver.commit(follower) == ErrorCode.NONE
    assert driver.commit(leader) == ErrorCode.NONE
    driver.join(follower)
    assert driver.commit(follower) == ErrorCode.REBALANCE_IN_PROGRESS


def test_waiting_requests_fail_when_the_group_is_replaced() -> None:
    driver = Driver()
    leader, follower = driver.pair()
    join = driver.join(leader)
    driver.group.fail_waiting(ErrorCode.NOT_COORDINATOR)
    assert driver.answers()[join].error_code == ErrorCode.NOT_COORDINATOR
    driver.join(leader)
    driver.join(follower)
    driver.answers()
    sync = driver.sync(follower)
    driver.group.fail_waiting(ErrorCode.NOT_COORDINATOR)
    assert driver.answers()[sync].error_code == ErrorCode.NOT_COORDINATOR
