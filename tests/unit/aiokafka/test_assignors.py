"""Assignors of aiokafka: as names of kafkaio's, and as they are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given, strategies as st

import kafkaio
from kafkaio import TopicPartition
from kafkaio.aiokafka.cluster import ClusterMetadata
from kafkaio.aiokafka.coordinator.assignors._adapted import adapted
from kafkaio.aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafkaio.aiokafka.coordinator.assignors.range import RangePartitionAssignor
from kafkaio.aiokafka.coordinator.assignors.roundrobin import (
    RoundRobinPartitionAssignor,
)
from kafkaio.aiokafka.coordinator.assignors.sticky.sticky_assignor import (
    StickyPartitionAssignor,
)
from kafkaio.aiokafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)
from kafkaio.testing import Broker

LAYOUT = kafkaio.Layout({"a": 3, "b": 2}, {TopicPartition("a", 0): 1})


class Topics:
    """As much of a cluster as an assignor reads."""

    def __init__(self, partitions: Mapping[str, int]) -> None:
        self._partitions = partitions

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        count = self._partitions.get(topic)
        return None if count is None else set(range(count))


names = st.sampled_from(["a", "b", "c", "missing"])


@given(
    partitions=st.dictionaries(
        names.filter(lambda n: n != "missing"), st.integers(0, 7)
    ),
    members=st.dictionaries(
        st.sampled_from(["m1", "m2", "m3", "m4"]),
        st.lists(names, min_size=1, unique=True),
        min_size=1,
    ),
)
@pytest.mark.parametrize("module", ["range", "roundrobin"])
def test_range_and_round_robin_divide_as_aiokafka(
    module: str, partitions: dict[str, int], members: dict[str, list[str]]
) -> None:
    pytest.importorskip("aiokafka")
    from aiokafka.coordinator.assignors import range as range_, roundrobin
    from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata as Theirs

    theirs, ours = {
        "range": (range_.RangePartitionAssignor, RangePartitionAssignor),
        "roundrobin": (
            roundrobin.RoundRobinPartitionAssignor,
            RoundRobinPartitionAssignor,
        ),
    }[module]
    cluster: Any = Topics(partitions)
    found = ours.assign(
        cluster,
        {
            m: ConsumerProtocolMemberMetadata(0, each, b"")
            for m, each in members.items()
        },
    )
    expected = theirs.assign(
        cluster, {m: Theirs(0, each, b"") for m, each in members.items()}
    )
    assert {m: sorted(each.partitions()) for m, each in found.items()} == {
        m: sorted(each.partitions()) for m, each in expected.items()
    }


@pytest.mark.parametrize("kind", [RangePartitionAssignor, RoundRobinPartitionAssignor])
def test_ready_assignors_need_no_data(kind: type[AbstractPartitionAssignor]) -> None:
    made = kind.metadata({"a"})
    assert made == ConsumerProtocolMemberMetadata(0, ["a"], b"")
    kind.on_assignment(ConsumerProtocolMemberAssignment(0, [("a", [0])], b""))
    assert kind.metadata({"a"}) == made


def test_ready_assignors_are_those_of_kafkaio() -> None:
    assert adapted(
        [RoundRobinPartitionAssignor, RangePartitionAssignor, StickyPartitionAssignor]
    ) == ["roundrobin", "range", "sticky"]


def test_no_assignor() -> None:
    with pytest.raises(kafkaio.ConfigurationError, match="names no assignor"):
        adapted([])


class Own(AbstractPartitionAssignor):
    """Gives everything to the member that shouts loudest."""

    name = "own"
    seen: list[list[TopicPartition]] = []  # noqa: RUF012

    @classmethod
    def assign(
        cls,
        cluster: ClusterMetadata,
        members: Mapping[str, ConsumerProtocolMemberMetadata],
    ) -> dict[str, ConsumerProtocolMemberAssignment]:
        loudest = max(members, key=lambda each: (members[each].user_data, each))
        everything = [
            (topic, sorted(cluster.partitions_for_topic(topic) or ()))
            for topic in sorted(members[loudest].subscription)
        ]
        return {
            each: ConsumerProtocolMemberAssignment(
                0, everything if each == loudest else [], b""
            )
            for each in members
        }

    @classmethod
    def metadata(cls, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        return ConsumerProtocolMemberMetadata(0, [*topics], b"loud")

    @classmethod
    def on_assignment(cls, assignment: ConsumerProtocolMemberAssignment) -> None:
        cls.seen.append(assignment.partitions())


def one(kind: type[AbstractPartitionAssignor]) -> kafkaio.Assignor:
    (assignor,) = adapted([kind])
    assert isinstance(assignor, kafkaio.Assignor)
    return assignor


def subscription(*topics: str, **more: Any) -> kafkaio.Subscription:
    return kafkaio.Subscription(topics=frozenset(topics), **more)


def test_an_assignor_of_the_program() -> None:
    assignor = one(Own)
    assert (assignor.name, assignor.cooperative) == ("own", False)
    assert repr(assignor) == "<assignor 'own' of aiokafka>"
    assert assignor.user_data(subscription("a")) == b"loud"
    found = assignor.assign(
        LAYOUT,
        {
            "m1": subscription("a", "b", user_data=b"zz"),
            "m2": subscription("a"),
        },
    )
    assert sorted(found["m1"]) == [
        *(TopicPartition("a", n) for n in range(3)),
        *(TopicPartition("b", n) for n in range(2)),
    ]
    assert not found["m2"]


def test_row_on_assignment_is_called_before_the_next_rebalance() -> None:
    """``on_assignment`` is called before the next rebalance, and not at once."""
    Own.seen.clear()
    assignor = one(Own)
    owned = frozenset({TopicPartition("a", 1), TopicPartition("b", 0)})
    assignor.user_data(subscription("a", "b"))
    assert not Own.seen
    assignor.user_data(subscription("a", "b", owned=owned))
    assignor.user_data(subscription("a", "b", owned=owned))
    assert Own.seen == [sorted(owned)]


class Talkative(Own):
    @classmethod
    def assign(
        cls,
        cluster: ClusterMetadata,
        members: Mapping[str, ConsumerProtocolMemberMetadata],
    ) -> dict[str, ConsumerProtocolMemberAssignment]:
        return {each: ConsumerProtocolMemberAssignment(0, [], b"x") for each in members}


def test_row_user_data_of_an_assignment() -> None:
    """An assignor that sends data with an assignment is refused."""
    with pytest.raises(NotImplementedError, match="user_data of an assignment"):
        one(Talkative).assign(LAYOUT, {"m1": subscription("a")})


class Greedy(Own):
    @classmethod
    def metadata(cls, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        return ConsumerProtocolMemberMetadata(0, [*topics, "more"], b"")


def test_row_an_assignor_that_changes_the_subscription() -> None:
    """An assignor whose ``metadata`` changes the subscription is refused."""
    with pytest.raises(NotImplementedError, match="changes the subscription"):
        one(Greedy).user_data(subscription("a"))


class Stickier(StickyPartitionAssignor):
    pass


def test_row_the_sticky_assignor_cannot_be_called_or_inherited() -> None:
    """``StickyPartitionAssignor`` only names the assignor of kafkaio."""
    with pytest.raises(kafkaio.ConfigurationError, match="Stickier inherits"):
        adapted([Stickier])
    assignment = ConsumerProtocolMemberAssignment(0, [], b"")
    calls: list[tuple[Callable[..., object], tuple[object, ...]]] = [
        (StickyPartitionAssignor.assign, (ClusterMetadata(), {})),
        (StickyPartitionAssignor.metadata, (["a"],)),
        (StickyPartitionAssignor.on_assignment, (assignment,)),
        (StickyPartitionAssignor.on_generation_assignment, (1,)),
        (StickyPartitionAssignor.parse_member_metadata, (None,)),
    ]
    for call, arguments in calls:
        with pytest.raises(NotImplementedError, match=call.__name__):
            call(*arguments)


class ByShape:
    """An object that behaves like an assignor's class."""

    name = "shape"
    metadata = Own.metadata
    assign = Own.assign
    on_assignment = Own.on_assignment


async def test_a_group_with_an_assignor_of_the_program() -> None:
    shape: Any = ByShape()
    async with (
        Broker(topics={"a": 4}) as broker,
        kafkaio.Consumer(
            broker.bootstrap_servers,
            topics="a",
            group_id="g",
            group_protocol="classic",
            partition_assignment_strategy=adapted([shape]),
        ) as consumer,
    ):
        expected = [TopicPartition("a", number) for number in range(4)]
        assert sorted(consumer.assignment) == expected


@pytest.mark.parametrize("name", ["sticky", "roundrobin", "range"])
async def test_a_group_with_members_of_both_clients(name: str) -> None:
    theirs = pytest.importorskip("aiokafka")
    kind = {
        "sticky": "sticky.sticky_assignor.StickyPartitionAssignor",
        "roundrobin": "roundrobin.RoundRobinPartitionAssignor",
        "range": "range.RangePartitionAssignor",
    }[name]
    module, _, last = f"aiokafka.coordinator.assignors.{kind}".rpartition(".")
    assignor = getattr(import_module(module), last)
    async with Broker(topics={"t": 4}) as broker:
        # The first member leads the group, and so assigns by aiokafka's code.
        other = theirs.AIOKafkaConsumer(
            "t",
            bootstrap_servers=broker.bootstrap_servers,
            group_id="g",
            partition_assignment_strategy=(assignor,),
            heartbeat_interval_ms=100,
        )
        await other.start()
        async with (
            kafkaio.Consumer(
                broker.bootstrap_servers,
                topics="t",
                group_id="g",
                group_protocol="classic",
                partition_assignment_strategy=[name],
                heartbeat_interval_ms=100,
            ) as consumer,
            asyncio.timeout(30),
        ):
            while True:
                await other.getmany(timeout_ms=20)
                await consumer.poll(timeout=0.02)
                one, two = other.assignment(), consumer.assignment
                if len(one) == len(two) == 2 and not one & two:
                    break
            await other.stop()
            while len(consumer.assignment) < 4:
                await consumer.poll(timeout=0.02)
