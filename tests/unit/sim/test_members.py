from dataclasses import replace

import pytest

from kafkaio._net.transport import Dial
from kafkaio.errors import Fenced, KafkaError
from kafkaio.types import TopicPartition
from tests.sim.checker import Checker, Session
from tests.sim.members import Member
from tests.sim.scenario import rebalancing
from tests.sim.violation import Violation


class World:
    """Environment whose group has one member."""

    bootstrap_servers = "h:1"

    def __init__(self, *, static: bool) -> None:
        self.scenario = replace(rebalancing(1), static=float(static))
        self.member_id = "old"
        self.violations: list[Violation] = []
        self.checker = Checker(self, 1, lambda: 0.0, self.violations.append)

    def written(self, partition: int, start: int) -> list[bytes]:
        raise AssertionError((partition, start))

    def committed(self, partition: int) -> int:
        raise AssertionError(partition)

    def is_member(self, member_id: str) -> bool:
        return member_id == self.member_id

    def dial_of(self, client: str) -> Dial:
        raise AssertionError(client)

    def say(self, what: str) -> None:
        assert what

    def vanished(self, client: str) -> None:
        raise AssertionError(client)


@pytest.mark.parametrize(
    ("static", "joins_as", "in_group", "is_explained"),
    [
        (True, "new", "old", True),
        (True, "new", "newer", False),
        (True, "old", "old", False),
        (False, "new", "old", False),
    ],
)
def test_a_static_member_may_be_known_by_an_older_id(
    *, static: bool, joins_as: str, in_group: str, is_explained: bool
) -> None:
    world = World(static=static)
    member = Member(world, 0)
    member.session = Session("member-0.0", lambda: "old")
    member._told(world.checker.assigned, "has")([TopicPartition("orders", 0)])
    world.member_id = in_group
    member.session.joins_as = joins_as
    error: KafkaError = Fenced("refused", code=82, name="FENCED_INSTANCE_ID")
    member._raised(error)
    laws = [one.law for one in world.violations]
    assert laws == ([] if is_explained else ["raised"])
