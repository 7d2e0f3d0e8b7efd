"""Plans of where replicas should be: what holds for every cluster, and small cases."""

from collections import Counter

import pytest
from hypothesis import given, settings, strategies as st

from kafkaio._cli.reassignment.plan import Impossible, moved_replicas, plan
from kafkaio.types import TopicPartition

few = settings(max_examples=30)

Replicas = dict[TopicPartition, tuple[int, ...]]


@st.composite
def clusters(
    draw: st.DrawFn, *, racks: bool = False, topics: int = 3
) -> tuple[Replicas, dict[int, str | None]]:
    """Brokers, and partitions whose replicas are somewhere, on lost brokers too."""
    brokers: dict[int, str | None] = {}
    for node in range(draw(st.integers(2, 7))):
        brokers[node] = draw(st.sampled_from("abc")) if racks else None
    nodes = st.sampled_from([*brokers, 90, 91])
    replicas: Replicas = {}
    for topic in range(draw(st.integers(1, topics))):
        count = draw(st.integers(1, min(3, len(brokers))))
        for number in range(draw(st.integers(1, 8))):
            there = draw(
                st.lists(nodes, min_size=count, max_size=count, unique=True).map(tuple)
            )
            replicas[TopicPartition(f"t{topic}", number)] = there
    return replicas, brokers


def spread(counted: Counter[int], nodes: dict[int, str | None]) -> int:
    loads = [counted[node] for node in nodes]
    return max(loads) - min(loads)


def of_topic(replicas: Replicas, topic: str) -> Counter[int]:
    return Counter(
        node for tp, there in replicas.items() if tp.topic == topic for node in there
    )


@few
@given(clusters(racks=True), st.none() | st.integers(1, 2))
def test_partitions_are_whole_and_spread_over_racks(
    cluster: tuple[Replicas, dict[int, str | None]], factor: int | None
) -> None:
    current, brokers = cluster
    after = current | plan(current, brokers, factor)
    sizes = Counter(brokers.values())
    for tp, there in after.items():
        assert len(set(there)) == len(there) == (factor or len(current[tp]))
        assert set(there) <= set(brokers)
        in_rack = Counter(brokers[node] for node in there)
        not_full = [in_rack[rack] for rack in sizes if in_rack[rack] < sizes[rack]]
        assert max(in_rack.values()) - min(not_full, default=99) <= 1


@few
@given(clusters())
def test_without_racks_topics_brokers_and_leaders_are_even(
    cluster: tuple[Replicas, dict[int, str | None]],
) -> None:
    current, brokers = cluster
    after = current | plan(current, brokers)
    for topic in {tp.topic for tp in after}:
        assert spread(of_topic(after, topic), brokers) <= 1
    assert spread(Counter(node for t in after.values() for node in t), brokers) <= 1


@few
@given(clusters(racks=True))
def test_within_a_rack_topics_and_brokers_are_even(
    cluster: tuple[Replicas, dict[int, str | None]],
) -> None:
    current, brokers = cluster
    after = current | plan(current, brokers)
    total = Counter(node for there in after.values() for node in there)
    for rack in set(brokers.values()):
        inside = {node: rack for node in brokers if brokers[node] == rack}
        assert spread(total, inside) <= 1
        for topic in {tp.topic for tp in after}:
            assert spread(of_topic(after, topic), inside) <= 1


@few
@given(clusters(racks=True))
def test_a_plan_for_what_was_planned_changes_nothing(
    cluster: tuple[Replicas, dict[int, str | None]],
) -> None:
    current, brokers = cluster
    after = current | plan(current, brokers)
    assert plan(after, brokers) == {}


@few
@given(clusters(topics=1))
def test_for_one_topic_no_plan_copies_less(
    cluster: tuple[Replicas, dict[int, str | None]],
) -> None:
    current, brokers = cluster
    here = {
        tp: tuple(node for node in there if node in brokers)
        for tp, there in current.items()
    }
    loads = of_topic(here, "t0")
    total = sum(len(there) for there in current.values())
    low, more = divmod(total, len(brokers))
    by_load = sorted(brokers, key=lambda node: -loads[node])
    wanted = {node: low + (at < more) for at, node in enumerate(by_load)}
    least = sum(max(0, wanted[node] - loads[node]) for node in brokers)
    changed = plan(current, brokers)
    if all(len(there) == len(current[tp]) for tp, there in here.items()):
        assert moved_replicas(current, changed) == least
    else:
        assert moved_replicas(current, changed) >= least


def evenness(leaders: Counter[int]) -> int:
    return sum(count * count for count in leaders.values())


@few
@given(clusters(topics=2))
def test_no_single_swap_makes_leaders_more_even(
    cluster: tuple[Replicas, dict[int, str | None]],
) -> None:
    current, brokers = cluster
    after = current | plan(current, brokers)
    for topic in {tp.topic for tp in after}:
        mine = {tp: there for tp, there in after.items() if tp.topic == topic}
        leaders = Counter(there[0] for there in mine.values())
        for there in mine.values():
            for node in there[1:]:
                other = leaders + Counter([node])
                other[there[0]] -= 1
                assert evenness(other) >= evenness(leaders)


def on(*replicas: tuple[int, ...]) -> Replicas:
    return {TopicPartition("t", at): there for at, there in enumerate(replicas)}


def test_a_new_broker_gets_its_share_and_nothing_else_moves() -> None:
    current = on((1,), (2,), (1,), (2,), (1,), (2,))
    changed = plan(current, {1: None, 2: None, 3: None})
    assert sorted(changed.values()) == [(3,), (3,)]


def test_leaders_pass_along_a_chain_without_copying() -> None:
    current = on((1, 2), (1, 2), (1, 3), (1, 3), (2, 3), (2, 3))
    changed = plan(current, dict.fromkeys((1, 2, 3)))
    after = current | changed
    assert moved_replicas(current, changed) == 0
    assert Counter(there[0] for there in after.values()) == {1: 2, 2: 2, 3: 2}


def test_a_broker_that_is_not_given_loses_everything() -> None:
    current = on((1, 2), (2, 3), (3, 1))
    after = current | plan(current, {1: None, 2: None})
    assert {frozenset(there) for there in after.values()} == {frozenset({1, 2})}


def test_more_replicas_go_to_the_racks_that_have_none() -> None:
    racks: dict[int, str | None] = {1: "a", 2: "a", 3: "b", 4: "c"}
    after = plan(on((1,)), racks, 3)
    assert set(after[TopicPartition("t", 0)]) == {1, 3, 4}


def test_fewer_replicas_leave_the_rack_that_has_two() -> None:
    racks: dict[int, str | None] = {1: "a", 2: "a", 3: "b"}
    after = plan(on((1, 2, 3)), racks, 2)
    assert set(after[TopicPartition("t", 0)]) == {1, 3}


@pytest.mark.parametrize(
    ("brokers", "reason"),
    [
        ({1: None}, "2 replicas of t-0 need more than 1 brokers"),
        ({1: "a", 2: None, 3: None}, "only some brokers have a rack: not 2, 3"),
    ],
)
def test_what_cannot_be_planned_says_why(
    brokers: dict[int, str | None], reason: str
) -> None:
    with pytest.raises(Impossible, match=reason):
        plan(on((1, 2)), brokers)


def test_a_large_cluster_is_planned() -> None:
    current = {
        TopicPartition(f"t{topic}", number): (number % 3, (number + 1) % 3)
        for topic in range(20)
        for number in range(20)
    }
    brokers: dict[int, str | None] = {node: "abc"[node % 3] for node in range(9)}
    after = current | plan(current, brokers)
    total = Counter(node for there in after.values() for node in there)
    assert spread(total, brokers) <= 1
