"""KIP-848 groups in the offsets topic: written and read again."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings

from kafkaio.protocol._codec import decode, encode
from kafkaio.testing._broker.group_config import GroupConfig
from kafkaio.testing._groups.classic import ClassicGroup
from kafkaio.testing._groups.journal import Group, Journal
from kafkaio.testing._groups.kip848 import Kip848Group
from kafkaio.testing._groups.kip848_records import Kind, image_of
from kafkaio.testing._groups.record_formats import (
    ClassicMemberMetadata,
    CurrentAssignmentValue,
    MemberValue,
    TopicPartitionsWithEpochs,
)
from kafkaio.testing._groups.records import key_parts, part_key
from tests.unit.testing.groups.fake_cluster_port import FakeClusterPort
from tests.unit.testing.groups.test_kip848 import Driver
from tests.unit.testing.groups.test_kip848_laws import STEPS, step
from tests.unit.testing.groups.test_migration import MixedDriver, settled


def kinds(cluster: FakeClusterPort) -> list[tuple[int, str, bool]]:
    """Return kind and part of each record, and whether it is a tombstone."""
    told = [(key_parts(key), value) for key, value in cluster.records]
    return [(kind, part, value is None) for (kind, _, part), value in told]


def read(cluster: FakeClusterPort, **config: float) -> Group:
    chosen = GroupConfig(**config)  # type: ignore[arg-type]
    (group,), _ = Journal(cluster, lambda: 20_000).read(0, chosen, 5.0)
    return group


def restored(cluster: FakeClusterPort) -> Kip848Group:
    group = read(cluster)
    assert isinstance(group, Kip848Group)
    return group


@pytest.fixture
def driver() -> MixedDriver:
    return MixedDriver()


def journal_of(driver: Driver) -> Journal:
    return Journal(driver.cluster, lambda: round(driver.now * 1000))


def test_what_is_written_and_in_which_order(driver: MixedDriver) -> None:
    journal = journal_of(driver)
    driver.join("a")
    journal.save(driver.group)
    assert kinds(driver.cluster) == [
        (Kind.MEMBER, "a", False),
        (Kind.GROUP, "", False),
        (Kind.TARGET, "a", False),
        (Kind.TARGET_EPOCH, "", False),
        (Kind.CURRENT, "a", False),
    ]
    driver.cluster.records.clear()
    driver.beat("a")
    journal.save(driver.group)
    assert not driver.cluster.records
    driver.send("a", -1)
    journal.save(driver.group)
    assert kinds(driver.cluster) == [
        (Kind.CURRENT, "a", True),
        (Kind.TARGET, "a", True),
        (Kind.MEMBER, "a", True),
        (Kind.GROUP, "", False),
        (Kind.TARGET_EPOCH, "", False),
    ]


def test_a_group_that_is_removed_leaves_nothing(driver: MixedDriver) -> None:
    journal = journal_of(driver)
    driver.join("a", regex="t.*")
    driver.group.tick(0.0)
    journal.save(driver.group)
    assert (Kind.PATTERN, "t.*", False) in kinds(driver.cluster)
    driver.cluster.records.clear()
    journal.remove("g")
    assert kinds(driver.cluster) == [
        (Kind.CURRENT, "a", True),
        (Kind.TARGET, "a", True),
        (Kind.TARGET_EPOCH, "", True),
        (Kind.MEMBER, "a", True),
        (Kind.PATTERN, "t.*", True),
        (Kind.GROUP, "", True),
    ]


def test_a_group_is_restored_as_it_was(driver: MixedDriver) -> None:
    journal = journal_of(driver)
    settled(driver)
    driver.join("i", instance_id="i", rack="r", assignor="range", regex="t.*")
    driver.beat("a")
    driver.now = 1.0
    driver.group.tick(1.0)
    journal.save(driver.group)
    group = restored(driver.cluster)
    assert image_of(group) == image_of(driver.group)
    assert group.members["a"].revoking
    assert group.members["c"].classic == driver.group.members["c"].classic
    assert group.static == {"i": "i"}
    assert group.subscriptions.matches == {"t.*": {"t"}}
    assert group.subscriptions.due == 605.0
    # Sessions are renewed, and so is the time to revoke.
    assert {one.session_deadline for one in group.members.values()} == {50.0}
    assert group.members["a"].revoke_deadline == 65.0
    # Nothing is written for a group that was only read.
    written = len(driver.cluster.records)
    journal = Journal(driver.cluster, lambda: 0)
    (group,), _ = journal.read(0, GroupConfig(), 5.0)  # type: ignore[assignment]
    journal.save(group)
    assert len(driver.cluster.records) == written


def test_members_continue_with_their_epochs(driver: MixedDriver) -> None:
    journal = journal_of(driver)
    driver.join("a")
    driver.join("b")
    driver.settle()
    journal.save(driver.group)
    driver.group = restored(driver.cluster)
    for member in "ab":
        reply = driver.beat(member)
        assert (reply.error, reply.epoch, reply.assignment) == (0, 3, None)


def test_topics_that_changed_meanwhile_start_a_new_epoch(driver: MixedDriver) -> None:
    journal = journal_of(driver)
    driver.join("a")
    journal.save(driver.group)
    driver.cluster.topics["t"] += 1
    driver.group = restored(driver.cluster)
    assert driver.group.epoch == 3
    driver.settle()
    assert driver.epochs["a"] == 3
    assert len(driver.owned["a"]) == 5


def test_a_pattern_that_was_not_matched_yet_is_matched_soon(
    driver: MixedDriver,
) -> None:
    journal = journal_of(driver)
    driver.join("a", regex="t.*")
    journal.save(driver.group)
    assert restored(driver.cluster).subscriptions.due == 5.0


def test_the_time_of_the_last_assignment_counts(driver: MixedDriver) -> None:
    journal = journal_of(driver)
    driver.now = 19.0
    driver.join("a")
    journal.save(driver.group)
    group = read(driver.cluster, assignment_interval=3.0)
    assert isinstance(group, Kip848Group)
    group.rebalance()
    member = group.members["a"]
    group.assign(member, 6.9)
    assert group.target_epoch == 2
    group.assign(member, 7.0)
    assert group.target_epoch == 3


def test_what_brokers_before_4_3_wrote_has_the_epoch_of_the_member(
    driver: MixedDriver,
) -> None:
    journal = journal_of(driver)
    driver.join("a")
    journal.save(driver.group)
    topic_id = driver.cluster.topic_id("t")
    assert topic_id is not None
    value = CurrentAssignmentValue(
        member_epoch=2,
        assigned_partitions=[
            TopicPartitionsWithEpochs(topic_id=topic_id, partitions=[0, 1])
        ],
    )
    key = part_key(Kind.CURRENT, "g", "a")
    driver.cluster.records.append((key, struct.pack(">h", 0) + encode(value, 0)))
    assert restored(driver.cluster).members["a"].assigned == {
        (topic_id, 0): 2,
        (topic_id, 1): 2,
    }


def test_unknown_kinds_are_ignored(driver: MixedDriver) -> None:
    journal = journal_of(driver)
    driver.join("a")
    journal.save(driver.group)
    driver.cluster.records.append((part_key(17, "streams"), b"?"))
    driver.cluster.records.append((part_key(4, "g"), b"?"))
    assert image_of(restored(driver.cluster)) == image_of(driver.group)


def test_a_group_without_its_own_record_is_none(driver: MixedDriver) -> None:
    journal = journal_of(driver)
    driver.join("a")
    journal.save(driver.group)
    driver.cluster.write(0, [(part_key(Kind.GROUP, "g"), None)], 0)
    assert isinstance(read(driver.cluster), ClassicGroup)


@given(STEPS)
@settings(max_examples=40)
def test_records_restore_a_group_in_any_state(steps: list[tuple[str, str]]) -> None:
    driver = Driver(partitions=3)
    journal = journal_of(driver)
    compact: dict[bytes, bytes | None] = {}
    for action, member in steps:
        step(driver, action, member)
        journal.save(driver.group)
    if not steps:
        return
    driver.group.subscriptions.refresh_topics(driver.group.members.values())
    journal.save(driver.group)
    compact.update(driver.cluster.records)
    for records in (driver.cluster.records, list(compact.items())):
        cluster = FakeClusterPort(**driver.cluster.topics)
        cluster.records = records
        assert image_of(restored(cluster)) == image_of(driver.group)


def test_a_member_that_is_not_classic_is_marked_so() -> None:
    # As Kafka, which reads a record without the tag as that of a classic member.
    value = encode(MemberValue(classic_member_metadata=None), 0)
    assert value.endswith(b"\x01\x00\x01\x00")
    assert decode(MemberValue, 0, value).classic_member_metadata is None
    classic = ClassicMemberMetadata(session_timeout_ms=7)
    value = encode(MemberValue(classic_member_metadata=classic), 0)
    assert value.endswith(b"\x01\x00\x07\x01\x00\x00\x00\x07\x01\x00")
    assert decode(MemberValue, 0, value).classic_member_metadata == classic
    assert encode(MemberValue(), 0).endswith(b"\x00\x00")
