"""Each law, broken once."""

from collections.abc import Callable

import pytest

from tests.sim.checker import Checker, Session
from tests.sim.violation import Violation


class Cluster:
    def __init__(self) -> None:
        self.logs: dict[int, list[bytes]] = {0: [], 1: []}
        self.commits: dict[int, int] = {}
        self.gone: set[str] = set()

    def written(self, partition: int, start: int) -> list[bytes]:
        return self.logs[partition][start:]

    def committed(self, partition: int) -> int:
        return self.commits.get(partition, -1)

    def is_member(self, member_id: str) -> bool:
        return member_id not in self.gone


class World:
    def __init__(self) -> None:
        self.cluster = Cluster()
        self.violations: list[Violation] = []
        self.checker = Checker(self.cluster, 2, lambda: 1.0, self.violations.append)

    @property
    def laws(self) -> list[str]:
        return [violation.law for violation in self.violations]

    def session(self, name: str, *partitions: int) -> Session:
        session = Session(name, lambda: name)
        self.checker.began(session)
        self.checker.assigned(session, partitions)
        return session

    def write(self, count: int, partition: int = 0) -> None:
        for _ in range(count):
            number = self.checker.sent()
            log = self.cluster.logs[partition]
            log.append(b"k%d:%d" % (partition, number))
            self.checker.acked(number, (partition, len(log) - 1))

    def commit(
        self, session: Session, offsets: dict[int, int], *, is_open: bool = True
    ) -> None:
        self.checker.committing(session, offsets, lambda: is_open)

    def read(self, session: Session, *offsets: int, partition: int = 0) -> None:
        for offset in offsets:
            value = self.cluster.logs[partition][offset]
            self.checker.handed_out(session, partition, offset, value)


@pytest.fixture
def world() -> World:
    return World()


def test_a_life_in_order_breaks_no_law(world: World) -> None:
    world.write(6)
    first = world.session("a", 0)
    world.read(first, 0, 1, 2)
    world.checker.finished(first)
    world.commit(first, {0: 3})
    world.cluster.commits[0] = 3
    world.checker.revoked(first, [0])
    world.checker.reported(first)
    second = world.session("b", 0)
    world.read(second, 3, 4, 5)
    assert world.checker.unread() == {}
    assert world.checker.uncommitted() == {0: 3}
    world.checker.over(second, in_order=True)
    world.checker.over(first, in_order=True)
    world.checker.check_acknowledged()
    assert world.laws == []
    assert (world.checker.delivered, world.checker.repeated) == (6, 0)


def test_what_was_acknowledged_has_to_be_there(world: World) -> None:
    world.write(2)
    world.cluster.logs[0].pop()
    world.checker.sent()
    world.checker.failed_to_send(world.checker.sent())
    world.checker.check_acknowledged()
    assert world.laws == ["acknowledged and lost", "never answered"]


@pytest.mark.parametrize(
    ("values", "law"),
    [
        ([b"a:0", b"a:1", b"a:0"], "written out of order"),
        ([b"a:0", b"a:0"], "written twice"),
    ],
)
def test_the_log_keeps_the_order(world: World, values: list[bytes], law: str) -> None:
    world.cluster.logs[0] = values
    world.checker.read_logs()
    assert world.laws == [law]


def test_a_key_stays_in_its_partition(world: World) -> None:
    world.cluster.logs = {0: [b"a:0"], 1: [b"a:1"]}
    world.checker.read_logs()
    assert world.laws == ["in two partitions"]


def test_a_value_is_what_was_written(world: World) -> None:
    world.write(1)
    session = world.session("a", 0)
    world.checker.handed_out(session, 0, 0, b"other")
    assert world.laws == ["not what was written"]


def test_offsets_follow_each_other(world: World) -> None:
    world.write(4)
    session = world.session("a", 0)
    world.read(session, 0, 2)
    assert world.laws == ["out of order", "record skipped"]


def test_reading_begins_at_the_commit(world: World) -> None:
    world.write(4)
    world.cluster.commits[0] = 2
    world.read(world.session("a", 0), 3)
    assert world.laws == ["wrong start", "record skipped"]


def test_who_has_no_partition_gets_no_record(world: World) -> None:
    world.write(2)
    session = world.session("a", 0)
    world.checker.revoked(session, [0])
    world.read(session, 0)
    world.checker.lost(session, [0])
    world.read(session, 0)
    assert world.laws == ["read and not assigned"] * 2


def test_records_come_again_after_a_crash_only(world: World) -> None:
    world.write(4)
    first = world.session("a", 0)
    world.read(first, 0, 1)
    world.checker.finished(first)
    world.checker.over(first, in_order=False)
    second = world.session("b", 0)
    world.read(second, 0, 1)
    assert (world.laws, world.checker.repeated) == ([], 2)
    world.checker.finished(second)
    world.checker.over(second, in_order=True)
    world.read(world.session("c", 0), 0)
    assert world.laws == ["repeated without need"]


@pytest.mark.parametrize(
    "excuse",
    [
        lambda checker, session: checker.commit_failed_for(session),
        lambda checker, session: checker.lost(session, [0]),
        lambda checker, session: None,  # what was in hand was not finished
    ],
)
def test_records_come_again_when_they_could_not_be_committed(
    world: World, excuse: Callable[[Checker, Session], None]
) -> None:
    world.write(2)
    first = world.session("a", 0)
    world.read(first, 0, 1)
    excuse(world.checker, first)
    world.checker.over(first, in_order=True)
    world.read(world.session("b", 0), 0, 1)
    assert world.laws == []


def test_two_members_cannot_have_one_partition(world: World) -> None:
    first = world.session("a", 0)
    world.session("b", 0)
    world.checker.assigned(first, [0])
    assert world.laws == ["two owners", "assigned twice", "two owners"]


def test_who_is_out_of_the_group_and_cannot_know_counts_for_nothing(
    world: World,
) -> None:
    world.write(4)
    first = world.session("a", 0)
    world.read(first, 0)
    world.cluster.gone.add("a")
    second = world.session("b", 0)
    world.read(first, 1, 2)
    world.read(second, 0, 1)
    assert world.checker.frontier[0] == 2
    world.read(first, 1)
    assert world.laws == ["out of order"]


def test_who_is_taken_back_goes_on(world: World) -> None:
    world.write(4)
    session = world.session("a", 0)
    world.read(session, 0)
    world.cluster.gone.add("a")
    world.read(session, 1)
    world.cluster.gone.clear()
    world.read(session, 2)
    assert (world.laws, world.checker.frontier[0]) == ([], 3)
    world.checker.frontier[0] = 2
    world.read(session, 3)
    assert world.laws == ["record skipped"]


def test_what_was_committed_was_read(world: World) -> None:
    world.write(4)
    first = world.session("a", 0)
    world.read(first, 0)
    world.cluster.gone.add("a")
    world.read(first, 1, 2)
    world.checker.finished(first)
    world.cluster.gone.clear()
    world.commit(first, {0: 3})
    world.cluster.commits[0] = 3
    assert world.checker.unread() == {0: 1}
    world.checker.over(first, in_order=True)
    world.read(world.session("b", 0), 3)
    assert world.laws == []


@pytest.mark.parametrize("is_open", [False, True])
def test_a_commit_that_comes_late_explains_that_records_come_again(
    world: World, *, is_open: bool
) -> None:
    world.write(4)
    first = world.session("a", 0)
    world.read(first, 0, 1, 2)
    world.checker.finished(first)
    world.commit(first, {0: 2}, is_open=is_open)
    world.commit(first, {0: 3})
    world.checker.over(first, in_order=True)
    world.cluster.commits[0] = 2
    world.read(world.session("b", 0), 2)
    assert world.laws == (["repeated without need"] if is_open else [])


def test_going_back_is_the_users_right(world: World) -> None:
    world.write(4)
    session = world.session("a", 0)
    world.read(session, 0, 1, 2)
    world.checker.seeked(session, 0, 1)
    world.read(session, 1, 2, 3)
    assert world.laws == []
    world.checker.seeked(session, 0, 1)
    world.read(session, 3)
    assert world.laws == ["out of order"]


def test_commits_are_of_what_is_held_and_finished(world: World) -> None:
    world.write(4)
    session = world.session("a", 0)
    world.read(session, 0, 1)
    world.checker.finished(session)
    world.read(session, 2)
    world.commit(session, {0: 2})
    assert world.laws == []
    world.commit(session, {0: 3, 1: 0})
    assert world.laws == ["committed too much", "committed after release"]


def test_what_is_asked_back_may_be_committed_till_the_group_is_told(
    world: World,
) -> None:
    session = world.session("a", 0, 1)
    world.checker.revoked(session, [0])
    world.commit(session, {0: 0})
    assert world.laws == []
    world.checker.reported(session, still={0, 1})
    world.commit(session, {0: 0})
    assert world.laws == []
    world.checker.reported(session, still={1})
    world.commit(session, {0: 0, 1: 0})
    world.checker.revoked(session, [0])
    assert world.laws == ["committed after release", "revoked and not assigned"]


def test_a_violation_tells_when_and_what(world: World) -> None:
    world.checker.break_law("of nature", "apple fell up")
    assert str(world.violations[0]) == "    1.000 s  of nature: apple fell up"
