"""Our shares are those of Kafka's own assignors; sticky ones are at least as good."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from kafkaio._machines.membership.assignors import ASSIGNORS
from kafkaio._machines.membership.layout import Layout
from kafkaio._machines.membership.subscription import Subscription
from kafkaio.testing.kafka._releases import find_release
from kafkaio.types import TopicPartition
from tests.support.java import Toolbox

# It needs no broker, so once is enough.
pytestmark = [
    pytest.mark.kafka_versions("newest"),
    pytest.mark.not_embedded("asks no broker that runs"),
]

SOURCES = Path(__file__).parent.parent / "java" / "group"
TOPICS = ["a", "b", "c"]
RACKS = ["x", "y", "z"]
Shares = dict[str, frozenset[TopicPartition]]


class Case(NamedTuple):
    layout: Layout
    members: dict[str, Subscription]

    def question(self, assignor: str) -> str:
        # Kafka's leader asks for the topics that somebody reads, and no others.
        read = {topic for s in self.members.values() for topic in s.topics}
        racks = self.layout.racks
        topics = (
            f"{topic}="
            + ",".join(
                "+".join(sorted(racks.get(TopicPartition(topic, n), ())))
                for n in range(count)
            )
            for topic, count in self.layout.counts.items()
            if topic in read
        )
        members = (
            f"{name}:{s.group_instance_id or ''}:{','.join(sorted(s.topics))}"
            f":{s.rack or ''}:{(s.user_data or b'').hex()}"
            for name, s in self.members.items()
        )
        return " ".join([assignor, *topics, "/", *members])

    def ours(self, assignor: str) -> Shares:
        shares = ASSIGNORS[assignor].assign(*self)
        return {name: frozenset(share) for name, share in shares.items()}

    def unevenness(self, shares: Shares) -> int:
        return sum(len(share) ** 2 for share in shares.values())

    def near(self, shares: Shares) -> int:
        return sum(
            self.layout.is_near(tp, self.members[name].rack)
            for name, share in shares.items()
            for tp in share
        )


def case(dice: random.Random, *, racks: bool, equal: bool = False) -> Case:
    counts = {t: dice.randint(1, 7) for t in dice.sample(TOPICS, dice.randint(1, 3))}
    places = RACKS[: dice.randint(1, 3)]
    common = frozenset(dice.sample(TOPICS, dice.randint(1, 3)))
    # Many have the same number of partitions, as topics that are joined do.
    if dice.random() < 0.5:
        counts = dict.fromkeys(counts, dice.randint(1, 7))
    return Case(
        Layout(
            counts,
            racks={
                TopicPartition(topic, n): frozenset(
                    dice.sample(places, dice.randint(1, min(2, len(places))))
                )
                for topic, count in counts.items()
                for n in range(count)
                if racks
            },
        ),
        {
            f"m{number}": Subscription(
                topics=common
                if equal
                else frozenset(dice.sample(TOPICS, dice.randint(1, 3))),
                group_instance_id=dice.choice([None, f"i{9 - number}"]),
                rack=dice.choice([*RACKS, None]) if racks else None,
            )
            for number in range(dice.randint(1, 5))
        },
    )


async def java(assignor: str, cases: Collection[Case]) -> list[Shares]:
    """What Kafka's own assignor says."""
    program = Toolbox(find_release()).program(SOURCES, "AssignorOracle")
    questions = "".join(f"{case.question(assignor)}\n" for case in cases)
    output = await program.run(stdin=questions)
    return [_parse(line) for line in output.lines]


def _parse(line: str) -> Shares:
    shares = dict[str, frozenset[TopicPartition]]()
    for word in line.split(" "):
        name, _, share = word.partition("=")
        pairs = (tp.split("-") for tp in share.split(",") if tp)
        shares[name] = frozenset(TopicPartition(t, int(n)) for t, n in pairs)
    return shares


def remember(case: Case, shares: Mapping[str, Collection[TopicPartition]]) -> Case:
    """The same members as they join next, with what they had in their user data."""
    told = ASSIGNORS["sticky"].user_data
    members = dict[str, Subscription]()
    for name, s in case.members.items():
        last = Subscription(
            topics=s.topics, owned=frozenset(shares[name]), generation=1
        )
        members[name] = Subscription(topics=s.topics, rack=s.rack, user_data=told(last))
    return Case(case.layout, members)


@pytest.mark.parametrize(
    ("assignor", "racks"), [("range", False), ("range", True), ("roundrobin", True)]
)
async def test_the_shares_are_those_of_java(assignor: str, racks: bool) -> None:
    dice = random.Random(848)
    cases = [case(dice, racks=racks) for _ in range(800)]
    for each, theirs in zip(cases, await java(assignor, cases), strict=True):
        assert each.ours(assignor) == theirs, each.question(assignor)


async def sticky(
    *, racks: bool, equal: bool
) -> tuple[list[Case], list[Shares], list[Shares]]:
    """Cases in which a member of a group is gone, what they had, and Java's answers."""
    dice = random.Random(881)
    fresh = [case(dice, racks=racks, equal=equal) for _ in range(300)]
    before = await java("sticky", fresh)
    # Java gave, and our user data tells Java.
    later = [remember(each, had) for each, had in zip(fresh, before, strict=True)]
    for each in later:
        if len(each.members) > 1:
            each.members.pop(dice.choice(sorted(each.members)))
    return later, before, await java("sticky", later)


@pytest.mark.parametrize("equal", [True, False])
async def test_sticky_is_as_even_as_java_and_moves_no_more(equal: bool) -> None:
    evener = 0
    cases, before, answers = await sticky(racks=False, equal=equal)
    for each, had, theirs in zip(cases, before, answers, strict=True):
        ours = each.ours("sticky")
        gain = each.unevenness(theirs) - each.unevenness(ours)
        assert gain >= 0, each
        evener += gain > 0
        kept, kept_by_java = (
            sum(len(shares[m] & had[m]) for m in each.members)
            for shares in (ours, theirs)
        )
        # To be more even than Java takes a move that Java did not make.
        assert gain or kept >= kept_by_java, each
    assert not (equal and evener)


@pytest.mark.parametrize("equal", [True, False])
async def test_sticky_with_racks_is_as_even_as_java_and_about_as_near(
    equal: bool,
) -> None:
    near = near_of_java = 0
    cases, _, answers = await sticky(racks=True, equal=equal)
    for each, theirs in zip(cases, answers, strict=True):
        ours = each.ours("sticky")
        assert each.unevenness(ours) <= each.unevenness(theirs), each
        near += each.near(ours)
        near_of_java += each.near(theirs)
    assert near > near_of_java * 0.97, (near, near_of_java)
