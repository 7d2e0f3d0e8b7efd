"""Members of both protocols in one group, and groups that change their protocol."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pytest

from kafkaio.protocol._codec import encode
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.consumer_protocol_assignment import (
    ConsumerProtocolAssignment,
    TopicPartition,
)
from kafkaio.protocol.messages.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
    TopicPartition as OwnedTopic,
)
from kafkaio.protocol.messages.join_group import JoinGroupResponse
from kafkaio.testing._broker.group_config import GroupConfig
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._groups import mixed
from kafkaio.testing._groups.classic import ClassicGroup
from kafkaio.testing._groups.classic_member import (
    ClassicGroupState,
    JoinRequest,
    SyncRequest,
)
from kafkaio.testing._groups.describe import describe_kip848_member
from kafkaio.testing._groups.embedded_protocol import read_assignment
from kafkaio.testing._groups.kip848 import Downgrade
from kafkaio.testing._groups.migration import downgraded, upgraded
from tests.unit.testing.groups.fake_cluster_port import FakeClusterPort
from tests.unit.testing.groups.test_kip848 import Driver, numbers

UUIDS = [f"00000000-0000-0000-0000-00000000000{number}" for number in range(10)]


def subscription(
    *topics: str, owned: Collection[int] = (), version: int = 1, **fields: object
) -> bytes:
    said = ConsumerProtocolSubscription(topics=list(topics or ["t"]))
    if owned:
        said.owned_partitions = [OwnedTopic(topic="t", partitions=sorted(owned))]
    for name, value in fields.items():
        setattr(said, name, value)
    return version.to_bytes(2) + encode(said, version)


def assignment(
    partitions: dict[str, list[int]], user_data: bytes | None = None
) -> bytes:
    told = ConsumerProtocolAssignment(
        assigned_partitions=[
            TopicPartition(topic=topic, partitions=numbers)
            for topic, numbers in partitions.items()
        ],
        user_data=user_data,
    )
    return b"\x00\x01" + encode(told, 1)


def joining(
    member_id: str = "c", said: bytes | None = None, **fields: object
) -> JoinRequest:
    told = JoinRequest(
        member_id=member_id,
        instance_id=None,
        client_id="client",
        client_host="/h",
        session_timeout=10.0,
        rebalance_timeout=60.0,
        protocol_type="consumer",
        protocols=(("range", subscription() if said is None else said),),
        new_id=UUIDS[0],
    )
    return replace(told, **fields)  # type: ignore[arg-type]


class MixedDriver(Driver):
    """A group with members of both protocols."""

    def classic(
        self, member_id: str = "c", said: bytes | None = None, **fields: object
    ) -> JoinGroupResponse:
        request = joining(member_id, said, **fields)
        answer = mixed.join(self.group, request, self.now)
        if not answer.error_code:
            self.epochs[answer.member_id] = answer.generation_id
        return answer

    def sync(self, member_id: str = "c", **fields: object) -> set[int]:
        request = SyncRequest(
            member_id=member_id,
            instance_id=None,
            generation=self.epochs[member_id],
            protocol_type="consumer",
            protocol="range",
        )
        answer = mixed.sync(self.group, replace(request, **fields), self.now)  # type: ignore[arg-type]
        assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")
        told = read_assignment(bytes(answer.assignment))
        return {number for one in told.assigned_partitions for number in one.partitions}

    def hear(self, member_id: str = "c", instance_id: str | None = None) -> ErrorCode:
        generation = self.epochs[member_id]
        return mixed.heartbeat(self.group, member_id, instance_id, generation, self.now)


@pytest.fixture
def driver() -> MixedDriver:
    return MixedDriver()


def settled(driver: MixedDriver) -> set[int]:
    """Divide the partitions between "a", of KIP-848, and "c"; return those of "c"."""
    driver.join("a")
    driver.classic()
    assert driver.sync() == set()
    driver.owned["a"] = numbers(driver.beat("a"))
    driver.ack("a")
    assert driver.hear() == ErrorCode.REBALANCE_IN_PROGRESS
    driver.classic()
    return driver.sync()


def refused(driver: MixedDriver, **fields: object) -> ErrorCode:
    with pytest.raises(Refusal) as refusal:
        driver.classic(**fields)  # type: ignore[arg-type]
    return refusal.value.code


# A classic member in a KIP-848 group


def test_a_classic_member_gets_its_partitions_once_they_are_free(
    driver: MixedDriver,
) -> None:
    driver.join("a")
    joined = driver.classic()
    assert (joined.generation_id, joined.protocol_type) == (3, "consumer")
    assert (joined.protocol_name, joined.leader) == ("range", "")
    assert driver.sync() == set()
    # It waits for what "a" has not released: it need not join again yet.
    assert driver.hear() == ErrorCode.NONE
    driver.owned["a"] = numbers(driver.beat("a"))
    driver.ack("a")
    assert driver.hear() == ErrorCode.REBALANCE_IN_PROGRESS
    driver.classic()
    assert driver.sync() | driver.owned["a"] == {0, 1, 2, 3}
    assert driver.hear() == ErrorCode.NONE
    assert driver.group.state == "Stable"


def test_a_classic_member_revokes_by_joining_again(driver: MixedDriver) -> None:
    has = settled(driver)
    assert len(has) == 2
    driver.join("b")
    # There is a newer target: it learns what to revoke by joining again.
    assert driver.hear() == ErrorCode.REBALANCE_IN_PROGRESS
    with pytest.raises(Refusal, match="REBALANCE_IN_PROGRESS"):
        driver.sync()
    old = driver.epochs["c"]
    assert driver.classic(said=subscription(owned=has)).generation_id == old
    keeps = driver.sync()
    assert len(keeps) == 1
    # It has to join once more to report that it has revoked it.
    assert driver.hear() == ErrorCode.REBALANCE_IN_PROGRESS
    assert driver.classic(said=subscription(owned=keeps)).generation_id == 4
    assert driver.sync() == keeps
    assert driver.hear() == ErrorCode.NONE


def test_an_eager_member_owns_nothing_when_it_joins(driver: MixedDriver) -> None:
    settled(driver)
    driver.join("b")
    assert driver.classic(said=subscription(version=0)).generation_id == 4
    assert len(driver.sync()) == 1


def test_a_subscription_of_a_classic_member_starts_a_new_epoch(
    driver: MixedDriver,
) -> None:
    driver.cluster.topics["u"] = 2
    settled(driver)
    epoch = driver.group.epoch
    said = subscription("t", "u", version=3, rack_id="r1", owned=driver.sync())
    driver.classic(said=said)
    assert driver.group.epoch == epoch + 1
    member = driver.group.members["c"]
    assert (member.rack, member.names) == ("r1", frozenset({"t", "u"}))
    driver.classic(said=subscription("t", "u", version=3))
    assert member.rack == "r1"


def test_a_new_member_is_told_its_id_first(driver: MixedDriver) -> None:
    driver.join("a")
    told = driver.classic("")
    assert told.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert told.member_id == "AAAAAAAAAAAAAAAAAAAAAA"
    assert told.member_id not in driver.group.members
    old = driver.classic("", knows_member_id_required=False)
    assert (old.error_code, old.member_id) == (0, told.member_id)
    assert driver.classic("of its own").member_id == "of its own"


def test_members_that_may_not_join(driver: MixedDriver) -> None:
    settled(driver)
    inconsistent = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert refused(driver, member_id="d", protocol_type="connect") == inconsistent
    strange = (("strange", subscription()),)
    assert refused(driver, member_id="d", protocols=strange) == inconsistent
    assert refused(driver, member_id="d", protocols=()) == inconsistent
    unknown = ErrorCode.UNKNOWN_SERVER_ERROR
    for said in (b"", b"\x00", b"\xff\xff", b"\x00\x01\x00"):
        assert refused(driver, member_id="d", said=said) == unknown
    assert driver.group.members.keys() == {"a", "c"}


def test_a_full_group_and_one_that_takes_no_classic_members() -> None:
    driver = MixedDriver(max_size=1)
    driver.join("a")
    assert refused(driver) == ErrorCode.GROUP_MAX_SIZE_REACHED
    driver = MixedDriver(migration_policy="disabled")
    driver.join("a")
    assert refused(driver) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_requests_that_are_not_from_a_classic_member(driver: MixedDriver) -> None:
    driver.join("a", instance_id="i")
    driver.classic()

    def hear(member_id: str, instance: str | None, generation: int) -> ErrorCode:
        with pytest.raises(Refusal) as refusal:
            mixed.heartbeat(driver.group, member_id, instance, generation, 0.0)
        return refusal.value.code

    assert hear("x", None, 3) == ErrorCode.UNKNOWN_MEMBER_ID
    assert hear("a", None, 2) == ErrorCode.UNKNOWN_MEMBER_ID
    assert hear("c", "none", 3) == ErrorCode.UNKNOWN_MEMBER_ID
    assert hear("c", "i", 3) == ErrorCode.FENCED_INSTANCE_ID
    assert hear("c", None, 2) == ErrorCode.ILLEGAL_GENERATION
    with pytest.raises(Refusal, match="INCONSISTENT_GROUP_PROTOCOL"):
        driver.sync(protocol="roundrobin")


def test_commits_of_a_classic_member(driver: MixedDriver) -> None:
    has = settled(driver)
    other = {0, 1, 2, 3} - has
    check, fetch = driver.group.check_commit, driver.group.check_fetch
    epoch = driver.epochs["c"]
    assert check("c", epoch, driver.slots(other)) == ErrorCode.NONE
    assert check("c", epoch + 1, frozenset()) == ErrorCode.ILLEGAL_GENERATION
    stale = check("c", epoch - 1, driver.slots(has))
    assert stale == ErrorCode.ILLEGAL_GENERATION
    assert fetch("c", epoch) == ErrorCode.NONE
    assert fetch("c", epoch - 1) == ErrorCode.ILLEGAL_GENERATION


def test_a_description_tells_the_kind_of_each_member(driver: MixedDriver) -> None:
    settled(driver)
    members = driver.group.members.values()
    told = [
        describe_kip848_member(driver.group, one, driver.cluster) for one in members
    ]
    assert [(one.member_id, one.member_type) for one in told] == [("a", 1), ("c", 0)]


# Time


def test_a_classic_member_has_its_own_session(driver: MixedDriver) -> None:
    settled(driver)
    driver.now = 5.0
    driver.hear()
    driver.group.tick(14.9)
    assert "c" in driver.group.members
    assert driver.group.deadline == 15.0
    driver.group.tick(15.0)
    assert "c" not in driver.group.members


def test_a_member_that_joined_has_to_sync_in_time(driver: MixedDriver) -> None:
    driver.join("a")
    driver.classic(session_timeout=40.0, rebalance_timeout=20.0)
    driver.group.tick(20.0)
    assert driver.group.members.keys() == {"a"}


def test_a_member_that_is_told_to_join_has_to_join_in_time(driver: MixedDriver) -> None:
    settled(driver)
    driver.join("b")
    driver.now = 8.0
    assert driver.hear() == ErrorCode.REBALANCE_IN_PROGRESS
    member = driver.group.members["c"]
    assert member.join_deadline == 68.0
    driver.now = 16.0
    driver.hear()
    # Being told again does not extend the deadline.
    assert (member.join_deadline, member.session_deadline) == (68.0, 26.0)
    driver.classic()
    assert member.join_deadline == float("inf")
    driver.sync()
    assert member.sync_deadline == float("inf")
    assert member.revoke_deadline == float("inf")


# Static members


def test_a_static_member_changes_its_protocol(driver: MixedDriver) -> None:
    driver.join("x")
    driver.join("a", instance_id="i")
    driver.settle()
    has = driver.owned["a"]
    joined = driver.classic("", instance_id="i", said=subscription(owned=has))
    assert (joined.error_code, joined.generation_id) == (0, 3)
    assert driver.group.members.keys() == {"x", joined.member_id}
    assert driver.sync(joined.member_id, instance_id="i") == has
    assert driver.hear(joined.member_id, "i") == ErrorCode.NONE
    known = driver.classic(joined.member_id, instance_id="i", said=subscription())
    assert known.member_id == joined.member_id
    assert refused(driver, member_id="a", instance_id="i") == (
        ErrorCode.FENCED_INSTANCE_ID
    )
    assert refused(driver, member_id="a", instance_id="j") == (
        ErrorCode.UNKNOWN_MEMBER_ID
    )
    # And back: nothing has to be revoked first.
    back = driver.join("b", instance_id="i")
    assert (back.error, numbers(back)) == (0, has)
    assert driver.group.members["b"].classic is None


def test_a_new_static_member_of_the_classic_protocol(driver: MixedDriver) -> None:
    driver.join("a")
    joined = driver.classic("", instance_id="i")
    assert driver.group.static == {"i": joined.member_id}


@pytest.mark.parametrize("topic", ["t", "u"])
def test_the_last_member_of_the_protocol_is_replaced(
    topic: str, driver: MixedDriver
) -> None:
    driver.cluster.topics["u"] = 1
    driver.join("a", instance_id="i")
    driver.classic()
    driver.settle()
    epoch = driver.group.epoch
    joined = driver.classic("", instance_id="i", said=subscription(topic))
    is_stale = topic == "u"
    assert driver.group.epoch == epoch
    assert driver.group.downgrade is (
        Downgrade.REBALANCE if is_stale else Downgrade.KEEP
    )
    classic = downgraded(driver.group, 0.0, 7)
    assert classic.members.keys() == {"c", joined.member_id}
    assert classic.generation == epoch
    assert joined.generation_id == (0 if is_stale else epoch)
    assert classic.static == {"i": joined.member_id}


# From one protocol to the other


def stable(*members: str, partitions: int = 4, **config: object) -> ClassicGroup:
    """Return a classic group whose members have a partition each."""
    group = ClassicGroup("g", GroupConfig(**config))  # type: ignore[arg-type]
    for number, name in enumerate(members):
        group.join(
            joining("", new_id=name, knows_member_id_required=False), number, 0.0
        )
    for name in [f"client-{one}" for one in members]:
        if group.members[name].join_reply is None:
            group.join(joining(name), 90, 0.0)
    assert group.leader is not None
    shares = {
        name: assignment({"t": [place], "gone": [0]})
        for place, name in enumerate(group.members)
    }
    group.sync(
        SyncRequest(
            member_id=group.leader, instance_id=None, generation=1, assignments=shares
        ),
        99,
        0.0,
    )
    group.answers.clear()
    assert group.state is ClassicGroupState.STABLE
    return group


def test_a_classic_group_is_taken_over_as_it_is() -> None:
    group, cluster = stable("1"), FakeClusterPort(t=4)
    found = upgraded(group, GroupConfig(), cluster, 5.0)
    assert (found.epoch, found.target_epoch, found.state) == (1, 1, "Stable")
    member = found.members["client-1"]
    slot = cluster.topic_id("t"), 0
    assert member.assigned == {slot: 1}
    assert found.target == {"client-1": {slot}}
    assert (member.epoch, member.previous_epoch) == (1, 1)
    assert member.session_deadline == 15.0
    assert member.names == {"t"}


def impossible(group: ClassicGroup, **config: object) -> ErrorCode:
    settings = GroupConfig(**config)  # type: ignore[arg-type]
    with pytest.raises(Refusal) as refusal:
        upgraded(group, settings, FakeClusterPort(t=4), 0.0)
    return refusal.value.code


def test_groups_that_cannot_be_taken_over() -> None:
    not_found = ErrorCode.GROUP_ID_NOT_FOUND
    for policy in ("disabled", "downgrade"):
        assert impossible(stable("1"), migration_policy=policy) == not_found
    group = stable("1")
    group.protocol_type = "connect"
    assert impossible(group) == not_found
    for wrong in (b"for 0", b"\xff\xff", assignment({"t": [0]}, b"sticky")):
        group = stable("1")
        group.members["client-1"].assignment = wrong
        assert impossible(group) == not_found
    group = stable("1")
    group.members["client-1"].protocols = (("range", b"?"),)
    assert impossible(group) == not_found
    group = stable("1")
    group.members["client-1"].protocols = (("other", subscription()),)
    assert impossible(group) == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_partition_with_two_owners_prevents_an_upgrade() -> None:
    group = stable("1")
    other = replace(group.members["client-1"], id="client-2")
    group.members["client-2"] = other
    assert impossible(group) == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_member_that_never_synced_has_nothing() -> None:
    group = stable("1")
    group.members["client-1"].assignment = b""
    found = upgraded(group, GroupConfig(), FakeClusterPort(t=4), 0.0)
    assert not found.members["client-1"].assigned


def test_the_last_member_of_the_protocol_leaves(driver: MixedDriver) -> None:
    settled(driver)
    epoch, target = driver.group.epoch, driver.group.target["c"]
    driver.send("a", -1)
    assert driver.group.downgrade is Downgrade.REBALANCE
    assert driver.group.epoch == epoch
    classic = downgraded(driver.group, 3.0, 7)
    assert (classic.generation, classic.protocol, classic.leader) == (
        epoch,
        "range",
        "c",
    )
    assert classic.state is ClassicGroupState.STABLE
    told = read_assignment(classic.members["c"].assignment)
    assert {
        (driver.cluster.topic_id(one.topic), number)
        for one in told.assigned_partitions
        for number in one.partitions
    } == target
    assert classic.members["c"].session_deadline == 13.0
    assert driver.hear() == ErrorCode.NONE  # of the group that was


def test_a_group_does_not_become_classic_when_it_may_not() -> None:
    driver = MixedDriver(migration_policy="upgrade")
    settled(driver)
    driver.send("a", -1)
    assert driver.group.downgrade is None
    assert driver.group.members.keys() == {"c"}


def test_whoever_leaves_a_group_of_classic_members_makes_it_one(
    driver: MixedDriver,
) -> None:
    settled(driver)
    driver.classic("d")
    assert driver.group.leave([("a", None), ("d", None)]) == [0, 0]
    assert driver.group.downgrade is Downgrade.REBALANCE
    # A dynamic member that changes its protocol under its id does not downgrade it.
    other = MixedDriver()
    other.join("a")
    other.classic("c")
    other.classic("a")
    assert other.group.downgrade is None
    other.group.leave([("c", None)])
    assert other.group.downgrade is Downgrade.REBALANCE


def test_a_group_is_downgraded_by_a_session_that_ends(driver: MixedDriver) -> None:
    settled(driver)
    driver.group.tick(100.0)
    # The other member is that of the classic group.
    assert driver.group.downgrade is Downgrade.REBALANCE
    assert driver.group.members.keys() == {"c"}


def test_partitions_beyond_a_subscription_are_revoked() -> None:
    group, cluster = stable("1"), FakeClusterPort(t=4, u=2)
    group.members["client-1"].instance_id = "i"
    group.static["i"] = "client-1"
    group.members["client-1"].assignment = assignment({"t": [0, 1], "u": [0, 1]})
    found = upgraded(group, GroupConfig(), cluster, 0.0)
    driver = MixedDriver()
    driver.group = found
    reply = driver.join("a", instance_id="i")
    # Its subscription has not changed, so the target is the leader's assignment.
    assert (reply.epoch, found.epoch, found.target["a"]) == (1, 1, found.target["a"])
    assert numbers(reply) == {0, 1}
