from __future__ import annotations

from dataclasses import replace

import pytest

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing._broker.group_config import GroupConfig
from kafkaio.testing._groups.assignors import Slot
from kafkaio.testing._groups.kip848 import HeartbeatReply, Kip848Group
from kafkaio.testing._groups.kip848_member import Kip848Heartbeat
from tests.unit.testing.groups.fake_cluster_port import FakeClusterPort

TOPIC = frozenset({"t"})


class Driver:
    """Members that do what a client does, by name."""

    def __init__(self, *, partitions: int = 4, **config: float | str) -> None:
        self.cluster = FakeClusterPort(t=partitions)
        settings = GroupConfig(**config)  # type: ignore[arg-type]
        self.group = Kip848Group("g", settings, self.cluster)
        self.now = 0.0
        self.epochs: dict[str, int] = {}
        self.owned: dict[str, set[int]] = {}

    def slots(self, numbers: set[int] | range, topic: str = "t") -> frozenset[Slot]:
        topic_id = self.cluster.topic_id(topic)
        assert topic_id is not None
        return frozenset((topic_id, one) for one in numbers)

    def send(self, member: str, epoch: int, **fields: object) -> HeartbeatReply:
        beat = replace(Kip848Heartbeat(member_id=member, epoch=epoch), **fields)  # type: ignore[arg-type]
        reply = self.group.heartbeat(beat, self.now)
        if not reply.error:
            self.epochs[member] = reply.epoch
        return reply

    def join(self, member: str, **fields: object) -> HeartbeatReply:
        said: dict[str, object] = {
            "rebalance_timeout": 60.0,
            "names": TOPIC,
            "owned": frozenset(),
        }
        reply = self.send(member, 0, **(said | fields))
        self._take(member, reply)
        return reply

    def beat(self, member: str, **fields: object) -> HeartbeatReply:
        return self.send(member, self.epochs[member], **fields)

    def ack(self, member: str) -> HeartbeatReply:
        reply = self.beat(member, owned=self.slots(self.owned[member]))
        self._take(member, reply)
        return reply

    def _take(self, member: str, reply: HeartbeatReply) -> None:
        if reply.assignment is not None:
            self.owned[member] = numbers(reply)

    def settle(self) -> None:
        for _ in range(6):
            for member in list(self.owned):
                if member in self.group.members:
                    self._take(member, self.beat(member))
                    self.ack(member)


def numbers(reply: HeartbeatReply) -> set[int]:
    assert reply.assignment is not None
    return {partition for _, partition in reply.assignment}


def test_one_member_has_everything_at_once() -> None:
    driver = Driver()
    assert driver.group.state == "Empty"
    reply = driver.join("a")
    assert (reply.error, reply.epoch, numbers(reply)) == (0, 2, {0, 1, 2, 3})
    assert driver.group.state == "Stable"
    assert driver.beat("a").assignment is None


def test_a_full_request_gets_its_assignment_again() -> None:
    driver = Driver()
    driver.join("a")
    reply = driver.beat(
        "a", rebalance_timeout=60.0, names=TOPIC, owned=driver.slots(range(4))
    )
    assert numbers(reply) == {0, 1, 2, 3}


def test_a_member_gets_nothing_before_the_other_has_revoked_it() -> None:
    driver = Driver()
    driver.join("a")
    second = driver.join("b")
    assert (second.epoch, numbers(second)) == (3, set())
    assert driver.group.state == "Reconciling"
    revoked = driver.beat("a")
    assert revoked.epoch == 2  # the old one, until it has acknowledged
    kept = numbers(revoked)
    assert len(kept) == 2
    assert driver.beat("b").assignment is None
    assert driver.beat("a").assignment is None  # silence acknowledges nothing
    driver.owned["a"] = kept
    assert driver.ack("a").epoch == 3
    assert numbers(driver.beat("b")) == {0, 1, 2, 3} - kept
    assert driver.group.state == "Stable"


def test_a_revocation_is_acknowledged_as_a_whole() -> None:
    driver = Driver()
    driver.join("a")
    driver.join("b")
    kept = numbers(driver.beat("a"))
    pending = min({0, 1, 2, 3} - kept)
    reply = driver.beat("a", owned=driver.slots(kept | {pending}))
    assert (reply.epoch, reply.assignment) == (2, None)
    assert driver.beat("b").assignment is None


def test_a_member_that_does_not_revoke_in_time_is_removed() -> None:
    driver = Driver()
    driver.join("a", rebalance_timeout=4.0)
    driver.join("b")
    driver.now = 1.0
    driver.beat("a")
    for now in (2.0, 3.0, 4.0):
        driver.now = now
        driver.beat("a", rebalance_timeout=600.0)  # extends nothing
        driver.beat("b")
        driver.group.tick(now)
    assert driver.group.deadline == 5.0
    driver.now = 5.0
    driver.group.tick(5.0)
    assert driver.beat("a").error == ErrorCode.UNKNOWN_MEMBER_ID
    assert numbers(driver.beat("b")) == {0, 1, 2, 3}


def test_a_member_whose_session_ends_is_removed() -> None:
    driver = Driver()
    driver.join("a")
    driver.now = 44.0
    driver.join("b")
    driver.group.tick(45.0)
    assert list(driver.group.members) == ["b"]
    assert numbers(driver.beat("b")) == {0, 1, 2, 3}


def test_leaving_frees_partitions_at_once() -> None:
    driver = Driver()
    driver.join("a")
    driver.join("b")
    driver.settle()
    reply = driver.send("a", -1)
    assert (reply.error, reply.epoch) == (0, -1)
    assert numbers(driver.beat("b")) == {0, 1, 2, 3}
    assert driver.send("a", -1).error == ErrorCode.UNKNOWN_MEMBER_ID


def test_epochs_that_are_not_the_members_are_fenced() -> None:
    driver = Driver()
    driver.join("a")
    assert driver.send("a", 3).error == ErrorCode.FENCED_MEMBER_EPOCH
    driver.join("b")
    driver.settle()
    assert driver.epochs["a"] == 3
    assert driver.send("a", 2).error == ErrorCode.FENCED_MEMBER_EPOCH
    assert driver.send("x", 1).error == ErrorCode.UNKNOWN_MEMBER_ID


def test_the_previous_epoch_is_good_with_nothing_owned_that_is_not_assigned() -> None:
    driver = Driver()
    driver.join("a")
    driver.join("b")
    driver.settle()
    owned = driver.slots(driver.owned["a"])
    assert driver.send("a", 2, owned=owned).epoch == 3
    everything = driver.slots(range(4))
    fenced = driver.send("a", 2, owned=everything)
    assert fenced.error == ErrorCode.FENCED_MEMBER_EPOCH


def test_what_a_member_does_not_own_it_need_not_revoke() -> None:
    driver = Driver()
    driver.group.manual = {"a": driver.slots({0})}
    driver.join("a")
    driver.group.manual = {"a": driver.slots({1})}
    driver.group.rebalance()
    assert driver.beat("a").assignment == frozenset()
    old = driver.epochs["a"]
    driver.beat("a", owned=frozenset())  # the answer, which assigns 1, is lost
    driver.group.manual = {"a": frozenset()}
    driver.group.rebalance()
    reply = driver.send("a", old, owned=frozenset())
    assert (reply.epoch, reply.assignment) == (driver.group.epoch, frozenset())
    assert driver.group.state == "Stable"


def test_the_previous_epoch_is_forgotten_while_a_member_waits_for_others() -> None:
    driver = Driver()
    driver.join("a")
    driver.join("b")
    driver.join("c")
    assert driver.beat("b").epoch == 4  # from 3, and nothing is free for it yet
    assert driver.send("b", 3, owned=frozenset()).epoch == 4
    assert driver.beat("b").epoch == 4
    fenced = driver.send("b", 3, owned=frozenset())
    assert fenced.error == ErrorCode.FENCED_MEMBER_EPOCH


def test_unsubscribed_partitions_are_revoked_before_an_earlier_revocation_ends() -> (
    None
):
    driver = Driver()
    driver.cluster.topics["u"] = 2
    driver.join("a", names=frozenset({"t", "u"}))
    driver.join("b", names=frozenset({"u"}))
    kept = driver.beat("a").assignment
    assert kept is not None
    reply = driver.beat("a", names=frozenset({"u"}))
    assert reply.epoch == 2
    only = frozenset(one for one in kept if one[0] == driver.cluster.topic_id("u"))
    assert reply.assignment == only
    assert driver.beat("a", names=frozenset({"u"})).assignment is None


def test_a_member_without_topics_starts_no_new_epoch() -> None:
    driver = Driver()
    assert driver.join("a", names=frozenset()).epoch == 1
    assert driver.join("b", names=frozenset()).epoch == 1
    driver.send("b", -1)
    assert (driver.group.epoch, driver.group.state) == (2, "Assigning")


def test_a_member_that_joins_again_keeps_its_target() -> None:
    driver = Driver()
    driver.join("a")
    driver.join("b")
    driver.settle()
    epoch = driver.group.epoch
    before = driver.owned["a"]
    assert numbers(driver.join("a")) == before
    assert driver.group.epoch == epoch


def test_joining_again_acknowledges_a_revocation() -> None:
    driver = Driver()
    driver.join("a")
    driver.join("b")
    driver.beat("a")
    reply = driver.join("a")
    assert (reply.epoch, len(numbers(reply))) == (3, 2)


def test_a_changed_subscription_starts_a_new_epoch() -> None:
    driver = Driver()
    driver.cluster.topics["u"] = 1
    driver.join("a")
    driver.beat("a", names=frozenset({"u"}))
    reply = driver.beat("a", owned=frozenset())
    assert reply.assignment == driver.slots({0}, "u")
    assert driver.group.epoch == 3


def test_a_topic_that_grows_or_is_created_starts_a_new_epoch() -> None:
    driver = Driver()
    driver.join("a", names=frozenset({"t", "later"}))
    driver.cluster.topics["t"] = 5
    assert numbers(driver.beat("a")) == {0, 1, 2, 3, 4}
    driver.cluster.topics["later"] = 1
    driver.group.tick(0.0)
    found = driver.beat("a").assignment
    assert found is not None
    assert len(found) == 6


def test_a_full_group() -> None:
    driver = Driver(max_size=1)
    driver.join("a")
    assert driver.join("b").error == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_the_target_waits_for_the_assignment_interval() -> None:
    driver = Driver(assignment_interval=1.0)
    assert numbers(driver.join("a")) == {0, 1, 2, 3}
    assert driver.join("b").epoch == 2
    assert driver.beat("a").assignment is None
    assert driver.group.state == "Assigning"
    driver.now = 1.0
    assert len(numbers(driver.beat("a"))) == 2


def test_the_assignor_is_the_one_that_most_want() -> None:
    driver = Driver()
    driver.join("a")
    assert driver.group.assignor == "uniform"
    driver.join("b", assignor="range")
    assert driver.group.assignor == "range"
    driver.settle()
    assert driver.owned == {"a": {0, 1}, "b": {2, 3}}


def test_of_two_assignors_the_one_that_only_this_member_wants_is_taken() -> None:
    driver = Driver()
    driver.join("z", assignor="range")
    driver.join("y", assignor="uniform")
    assert driver.group.target["z"] == driver.slots({0, 1})  # which it keeps
    driver.group.epoch += 1
    driver.beat("z")
    assert driver.group.target["z"] == driver.slots({2, 3})  # by name
    assert driver.group.assignor == "uniform"


def test_another_assignor_starts_an_epoch() -> None:
    """As Kafka 4.4: before, it was used for the next epoch, whatever started it."""
    for is_new, epochs in ((False, [2, 2, 2, 2]), (True, [2, 3, 3, 4])):
        driver = Driver()
        driver.cluster.has_epochs_of_4_4 = is_new
        assert driver.join("a", assignor="range").epoch == 2
        found = [driver.group.epoch]
        for wanted in ("uniform", "uniform", "range"):
            driver.beat("a", assignor=wanted)
            found.append(driver.group.epoch)
        assert found == epochs


def test_votes_that_are_equal_start_an_epoch_with_each_heartbeat() -> None:
    """As Kafka 4.4.0 does: it describes one assignor, and would use the other."""
    driver = Driver()
    driver.join("a", assignor="range")
    driver.join("b", assignor="uniform")
    driver.beat("a")
    driver.beat("a")
    assert (driver.group.epoch, driver.group.target_epoch) == (5, 5)
    driver.beat("b")
    assert driver.group.epoch == 5


@pytest.mark.parametrize(("is_new", "target"), [(False, 2), (True, 3)])
def test_the_target_of_a_group_that_becomes_empty(is_new: bool, target: int) -> None:
    """Kafka 4.4 has it at once, and the next member has not to wait for its own."""
    driver = Driver(assignment_interval=10.0)
    driver.cluster.has_epochs_of_4_4 = is_new
    driver.join("a")
    driver.send("a", -1)
    assert (driver.group.epoch, driver.group.target_epoch) == (3, target)
    owned = driver.join("b").assignment
    assert owned == (driver.slots(range(4)) if is_new else frozenset())


def test_a_target_by_hand() -> None:
    driver = Driver()
    driver.join("a")
    driver.join("b")
    driver.group.manual = {"b": driver.slots({3})}
    driver.group.rebalance()
    driver.settle()
    assert driver.owned == {"a": set(), "b": {3}}


# Patterns


def test_a_pattern_is_matched_after_the_answer() -> None:
    driver = Driver()
    driver.cluster.topics |= {"tt": 1, "x": 1}
    reply = driver.join("a", names=None, regex="t+")
    assert reply.assignment == frozenset()
    assert driver.group.deadline == 0.0
    driver.group.tick(0.0)
    reply = driver.beat("a")
    assert reply.assignment is not None
    assert len(reply.assignment) == 5
    assert driver.group.deadline == 45.0


def test_a_pattern_is_matched_again_later_and_cleared_by_an_empty_one() -> None:
    driver = Driver(consumer_session_timeout=1000.0)
    driver.join("a", names=frozenset(), regex="t.*")
    driver.group.tick(0.0)
    driver.beat("a")
    driver.cluster.topics["tt"] = 1
    driver.now = 599.0
    driver.group.tick(599.0)
    assert driver.beat("a").assignment is None
    driver.now = 600.0
    driver.group.tick(600.0)
    reply = driver.beat("a")
    assert reply.assignment is not None
    assert len(reply.assignment) == 5
    driver.beat("a", regex="")
    assert driver.beat("a", owned=frozenset()).epoch == driver.group.epoch
    assert not driver.group.members["a"].assigned


@pytest.mark.parametrize("pattern", ["(", "a(?=b)", r"(a)\1", "(?<!a)b"])
def test_patterns_that_re2_refuses(pattern: str) -> None:
    driver = Driver()
    reply = driver.join("a", regex=pattern)
    assert reply.error == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert not driver.group.members


# Static members


def test_a_static_member_that_left_for_a_while_takes_its_place_again() -> None:
    driver = Driver()
    driver.join("a", instance_id="i")
    driver.join("b")
    driver.settle()
    had = driver.owned.pop("a")
    epoch = driver.group.epoch
    assert driver.send("a", -2, instance_id="i").epoch == -2
    driver.beat("b")
    assert driver.group.epoch == epoch
    assert driver.send("a", 2, instance_id="i").error == ErrorCode.FENCED_MEMBER_EPOCH
    reply = driver.join("a2", instance_id="i")
    assert (numbers(reply), reply.epoch) == (had, epoch)
    assert driver.send("a", 2, instance_id="i").error == ErrorCode.FENCED_INSTANCE_ID
    assert driver.send("a", -1, instance_id="i").error == ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_may_return_under_its_id() -> None:
    driver = Driver()
    driver.join("a", instance_id="i")
    driver.send("a", -2, instance_id="i")
    assert numbers(driver.join("a", instance_id="i")) == {0, 1, 2, 3}


def test_a_static_member_cannot_be_replaced_before_it_left() -> None:
    driver = Driver()
    driver.join("a", instance_id="i")
    for member_id in ("a", "a2"):
        reply = driver.join(member_id, instance_id="i")
        assert reply.error == ErrorCode.UNRELEASED_INSTANCE_ID


def test_a_static_member_that_does_not_return_is_removed() -> None:
    driver = Driver()
    driver.join("a", instance_id="i")
    driver.send("a", -2, instance_id="i")
    driver.group.tick(45.0)
    assert not driver.group.members
    assert not driver.group.static


def test_instance_ids_that_nobody_has() -> None:
    driver = Driver()
    driver.join("a")
    assert driver.send("a", 1, instance_id="i").error == ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.send("a", -1, instance_id="i").error == ErrorCode.UNKNOWN_MEMBER_ID


def test_an_administrator_removes_members() -> None:
    driver = Driver()
    driver.join("a", instance_id="i")
    driver.join("b")
    epoch = driver.group.epoch
    assert driver.group.leave([("x", None), ("x", "i"), ("a", "other")]) == [
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert driver.group.epoch == epoch
    assert driver.group.leave([("", "i"), ("b", None), ("b", None)]) == [0, 0, 0]
    assert driver.group.epoch == epoch + 1
    assert not driver.group.members


# Commits


def test_commits() -> None:
    driver = Driver()

    def check(
        member: str, epoch: int, numbers: set[int] | range = range(4)
    ) -> ErrorCode:
        slots = driver.slots(numbers)
        return driver.group.check_commit(member, epoch, slots)

    assert check("", -1) == ErrorCode.NONE
    driver.join("a")
    assert check("", -1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert check("a", 2) == ErrorCode.NONE
    assert check("a", 3) == ErrorCode.STALE_MEMBER_EPOCH
    driver.join("b")
    driver.owned["a"] = numbers(driver.beat("a"))
    assert check("a", 2) == ErrorCode.NONE
    driver.settle()
    kept, gone = driver.owned["a"], driver.owned["b"]
    assert check("a", 2, kept) == ErrorCode.NONE
    assert check("a", 2, kept | gone) == ErrorCode.STALE_MEMBER_EPOCH
    assert check("b", 2, gone) == ErrorCode.STALE_MEMBER_EPOCH


def test_fetches_of_members() -> None:
    driver = Driver()
    check = driver.group.check_fetch
    assert check("", -1) == ErrorCode.UNKNOWN_MEMBER_ID
    driver.join("a")
    assert check("a", 2) == ErrorCode.NONE
    assert check("a", 1) == ErrorCode.STALE_MEMBER_EPOCH


def test_unsubscribed_partitions_are_revoked_before_there_is_a_new_target() -> None:
    driver = Driver(assignment_interval=1.0)
    driver.cluster.topics["u"] = 1
    both = frozenset({"t", "u"})
    driver.join("a", names=both)
    driver.join("i", instance_id="i", names=both)
    member = driver.group.members["a"]
    reply = driver.beat("a", names=frozenset({"u"}))
    assert reply.assignment == driver.slots({0}, "u")
    assert (member.state.name, member.epoch, len(member.revoking)) == (
        "UNREVOKED",
        2,
        4,
    )
    other = Driver(assignment_interval=1.0)
    other.cluster.topics["u"] = 1
    other.join("a", names=both)
    reply = other.beat("a", names=frozenset({"u"}), owned=frozenset())
    member = other.group.members["a"]
    assert (member.state.name, member.epoch, member.revoking) == ("STABLE", 2, {})
