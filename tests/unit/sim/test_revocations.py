"""Each law about partitions that are kept, broken once."""

import pytest

from tests.sim.checker import Checker, Session
from tests.sim.revocations import PATIENCE, Keep, Watch, keeping
from tests.sim.violation import Violation


class World:
    def __init__(self) -> None:
        self.now = 0.0
        self.violations: list[Violation] = []
        self.checker = Checker(self, 3, lambda: self.now, self.violations.append)
        self.asked: list[int] = []
        self.session = Session("a", lambda: "a", lambda: self.asked)
        self.checker.began(self.session)
        self.checker.assigned(self.session, [0, 1, 2])

    def written(self, partition: int, start: int) -> list[bytes]:
        return [f"k{partition}:{n + 10 * partition}".encode() for n in range(start, 2)]

    def committed(self, partition: int) -> int:
        return -1

    def is_member(self, member_id: str) -> bool:
        return True

    @property
    def laws(self) -> list[str]:
        return [violation.law for violation in self.violations]

    def look(self, seconds: float, *, goes_on: bool = True) -> None:
        watch = Watch(self.checker, lambda: self.now, goes_on=goes_on)
        for _ in range(round(seconds)):
            self.now += 1.0
            watch.look(is_calm=True)

    def read(self, partition: int, offset: int) -> None:
        value = self.written(partition, offset)[0]
        self.checker.handed_out(self.session, partition, offset, value)


@pytest.fixture
def world() -> World:
    return World()


def test_what_is_kept_cannot_be_given_up(world: World) -> None:
    keep = Keep(world.session)
    keep.only([0, 1, 7])
    keep.only([1])
    world.checker.revoked(world.session, [0])
    assert world.laws == []
    with keeping(world.session, [1]):
        keep.only()
        world.checker.revoked(world.session, [1])
    assert world.laws == ["revoked while in use"]
    keep.only([1])  # too late
    assert world.session.held[1].keeps == 0


def test_who_closes_keeps_nothing_for_ever(world: World) -> None:
    Keep(world.session).only([0])
    world.session.patience = 5.0
    world.now = 5.0
    world.checker.revoked(world.session, [0])
    assert world.laws == []


def test_what_was_begun_has_to_be_done(world: World) -> None:
    checker, session = world.checker, world.session
    first = checker.begun(session, 0, (0, b"k0:0"), "x")
    assert checker.begun(session, 0, (1, b"k0:1"), "y") is first is not None
    checker.done(session, 0, first, 1)
    assert (first.finished, checker.frontier[0]) == (0, 0)
    checker.revoked(session, [0])
    assert world.laws == ["revoked while in use"]
    checker.done(session, 0, first, 0)
    assert (first.finished, checker.frontier[0]) == (2, 2)
    assert checker.begun(session, 0, (1, b"k0:1"), "y") is None
    assert world.laws[1:] == ["read and not assigned"]


def test_what_is_begun_is_in_order(world: World) -> None:
    for offset in (0, 1):
        world.checker.begun(world.session, 0, (offset, b"k0:%d" % offset), "x")
    assert world.laws == ["out of order"]


def test_a_deadline_is_kept(world: World) -> None:
    world.session.held[0].deadline = world.session.held[1].deadline = 3.0
    world.checker.revoked(world.session, [1])
    world.look(5)
    assert world.laws == []
    world.look(1)
    assert world.laws == ["held past the deadline"]


def test_the_other_partitions_are_read_meanwhile(world: World) -> None:
    world.asked = [0]
    Keep(world.session).only([0])
    world.read(2, 0)
    world.read(2, 1)  # all there is
    world.look(PATIENCE + 1)
    assert world.laws == []
    world.read(1, 0)
    world.look(PATIENCE + 1)
    assert world.laws == []
    world.look(1)
    assert world.laws == ["stopped by a revoke"]


def test_nobody_expects_records_where_there_is_a_reason(world: World) -> None:
    world.look(30)  # nothing is kept
    world.asked = [0]
    Keep(world.session).only([0])
    world.look(30, goes_on=False)  # everything is asked back with this protocol
    world.session.is_at_work = True
    world.look(30)
    assert world.laws == []


def test_a_group_has_settled_when_each_partition_has_one_owner(world: World) -> None:
    assert world.checker.unassigned() == {}
    world.asked = [1]
    assert world.checker.unassigned() == {1: 1}
    world.checker.reported(world.session)
    world.checker.lost(world.session, [0])
    assert world.checker.unassigned() == {0: 0, 1: 1}


def test_a_key_may_move_when_partitions_are_added(world: World) -> None:
    world.checker.grew(1)
    assert world.checker.unassigned() == {3: 0}
    assert world.checker.unread() == {0: 2, 1: 2, 2: 2, 3: 2}
    assert world.laws == []


def test_who_caught_up_has_no_excuse(world: World) -> None:
    checker, session = world.checker, world.session
    world.read(0, 0)
    checker.finished(session, [0])
    checker.commit_failed_for(session, [0])
    checker.commit_succeeded(session, [0])
    checker.revoked(session, [0])
    checker.reported(session, [1, 2])
    checker.assigned(session, [0])
    world.read(0, 0)
    assert world.laws == ["repeated without need"]


def test_what_is_given_up_may_come_again_at_once(world: World) -> None:
    world.checker.revoked(world.session, [0])
    world.checker.assigned(world.session, [0])
    assert not world.session.held[0].is_revoked
    assert world.laws == []


def test_commits_do_not_go_back(world: World) -> None:
    class Committed(World):
        def committed(self, partition: int) -> int:
            return 1

    there = Committed()
    there.checker.frontier[0] = 1
    there.read(0, 1)
    there.checker.committing(there.session, {0: 0}, lambda: True)
    there.checker.seeked(there.session, 0, 0)
    there.checker.committing(there.session, {0: 0}, lambda: True)
    assert there.laws == ["committed less"]
