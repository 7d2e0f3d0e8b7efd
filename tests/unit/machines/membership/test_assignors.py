"""The laws of every assignor, and each one's own."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Collection, Mapping

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from kafkaio._machines.membership.assignors import (
    ASSIGNORS,
    CooperativeStickyAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    resolve,
)
from kafkaio._machines.membership.subscription import Assignor, Subscription
from kafkaio.errors import ConfigurationError
from kafkaio.types import TopicPartition

TOPICS = ["a", "b", "c"]
Members = dict[str, Subscription]
Shares = Mapping[str, Collection[TopicPartition]]

counts_of = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 7))


@st.composite
def members_of(draw: st.DrawFn, *, equal: bool = False) -> Members:
    names = draw(st.sets(st.sampled_from("pqrst"), min_size=1))
    topics = st.frozensets(st.sampled_from([*TOPICS, "unknown"]))
    common = draw(topics)
    return {
        name: Subscription(
            topics=common if equal else draw(topics),
            owned=draw(
                st.frozensets(
                    st.builds(
                        TopicPartition, st.sampled_from(TOPICS), st.integers(0, 8)
                    )
                )
            ),
            generation=draw(st.integers(-1, 3)),
            group_instance_id=draw(st.none() | st.just(f"static-{name}")),
        )
        for name in names
    }


def settle(
    counts: Mapping[str, int], members: Members, rounds: int = 4
) -> tuple[Members, Shares]:
    """Rebalance until nothing moves; each member gives up what it was not given."""
    for generation in range(10, 10 + rounds):
        shares = CooperativeStickyAssignor().assign(counts, members)
        members = {
            name: Subscription(
                topics=s.topics,
                owned=frozenset(shares[name]),
                generation=generation,
            )
            for name, s in members.items()
        }
    return members, shares


def check_complete(counts: Mapping[str, int], members: Members, shares: Shares) -> None:
    assert shares.keys() == members.keys()
    dealt = [tp for share in shares.values() for tp in share]
    assert len(dealt) == len(set(dealt))
    for name, share in shares.items():
        assert {tp.topic for tp in share} <= members[name].topics
    read = {topic for s in members.values() for topic in s.topics}
    assert set(dealt) == {
        TopicPartition(topic, n)
        for topic, count in counts.items()
        if topic in read
        for n in range(count)
    }


@pytest.mark.parametrize("assignor", [RangeAssignor(), RoundRobinAssignor()], ids=str)
@settings(deadline=None, max_examples=40)
@given(counts=counts_of, members=members_of())
def test_every_partition_goes_to_one_of_its_readers(
    assignor: Assignor, counts: dict[str, int], members: Members
) -> None:
    shares = assignor.assign(counts, members)
    check_complete(counts, members, shares)
    turned = dict(reversed(members.items()))
    assert assignor.assign(dict(reversed(counts.items())), turned) == shares
    assert assignor.user_data(next(iter(members.values()))) is None


@settings(deadline=None, max_examples=40)
@given(counts=counts_of, members=members_of(equal=True))
def test_round_robin_is_even_among_equals(
    counts: dict[str, int], members: Members
) -> None:
    sizes = [len(s) for s in RoundRobinAssignor().assign(counts, members).values()]
    assert max(sizes) - min(sizes) <= 1


@settings(deadline=None, max_examples=40)
@given(counts=counts_of, members=members_of(equal=True))
def test_range_is_even_topic_by_topic_and_in_runs(
    counts: dict[str, int], members: Members
) -> None:
    shares = RangeAssignor().assign(counts, members)
    for topic in counts:
        runs = [
            [tp.partition for tp in s if tp.topic == topic] for s in shares.values()
        ]
        sizes = [len(run) for run in runs]
        assert max(sizes) - min(sizes) <= 1
        assert all(run == list(range(run[0], run[-1] + 1)) for run in runs if run)


def test_range_and_round_robin_as_java_has_them() -> None:
    both = Subscription(topics=frozenset({"a", "b"}))
    members = {"m2": both, "m1": both}
    assert RangeAssignor().assign({"a": 3, "b": 3}, members) == {
        "m1": [("a", 0), ("a", 1), ("b", 0), ("b", 1)],
        "m2": [("a", 2), ("b", 2)],
    }
    assert RoundRobinAssignor().assign({"a": 3, "b": 3}, members) == {
        "m1": [("a", 0), ("a", 2), ("b", 1)],
        "m2": [("a", 1), ("b", 0), ("b", 2)],
    }


def test_static_members_go_first_by_their_names() -> None:
    topics = frozenset({"a"})
    members = {
        "x": Subscription(topics=topics, group_instance_id="2"),
        "y": Subscription(topics=topics, group_instance_id="1"),
        "a": Subscription(topics=topics),
    }
    shares = RangeAssignor().assign({"a": 3}, members)
    assert shares == {"y": [("a", 0)], "x": [("a", 1)], "a": [("a", 2)]}


# ---- cooperative sticky


@settings(deadline=None, max_examples=40)
@given(counts=counts_of, members=members_of())
def test_nothing_is_given_away_before_it_is_given_up(
    counts: dict[str, int], members: Members
) -> None:
    shares = CooperativeStickyAssignor().assign(counts, members)
    for name, share in shares.items():
        for tp in set(share) - members[name].owned:
            holders = [m for m, s in members.items() if tp in s.owned]
            assert not holders
    dealt = [tp for share in shares.values() for tp in share]
    assert len(dealt) == len(set(dealt))


@settings(deadline=None, max_examples=40)
@given(counts=counts_of, members=members_of())
def test_it_settles_complete_and_balanced(
    counts: dict[str, int], members: Members
) -> None:
    settled, shares = settle(counts, members)
    check_complete(counts, settled, shares)
    # And then nothing moves any more.
    assert CooperativeStickyAssignor().assign(counts, settled) == shares
    # No partition could go to a reader that has two less.
    for name, share in shares.items():
        for tp in share:
            for other, subscription in settled.items():
                if tp.topic in subscription.topics:
                    assert len(share) - len(shares[other]) <= 1, (name, other)


@settings(deadline=None, max_examples=40)
@given(counts=counts_of, members=members_of(equal=True))
def test_equals_differ_by_one_at_most(counts: dict[str, int], members: Members) -> None:
    _, shares = settle(counts, members)
    sizes = [len(share) for share in shares.values()]
    assert max(sizes) - min(sizes) <= 1


@settings(deadline=None, max_examples=40)
@given(
    counts=st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 2)),
    members=members_of(),
)
def test_the_balance_is_the_best_there_is(
    counts: dict[str, int], members: Members
) -> None:
    _, shares = settle(counts, members)
    found = sum(len(share) ** 2 for share in shares.values())
    partitions = [(t, n) for t, c in counts.items() for n in range(c)]
    readers = [
        [name for name, s in members.items() if topic in s.topics]
        for topic, _ in partitions
    ]
    best = min(
        sum(choice.count(name) ** 2 for name in members)
        for choice in itertools.product(*[r for r in readers if r])
    )
    assert found == best


@settings(deadline=None, max_examples=40)
@given(counts=counts_of, members=members_of(equal=True), data=st.data())
def test_who_stays_keeps_what_the_balance_allows(
    counts: dict[str, int], members: Members, data: st.DataObject
) -> None:
    settled, before = settle(counts, members)
    gone = data.draw(st.sampled_from(sorted(settled)))
    rest = {name: s for name, s in settled.items() if name != gone}
    if rest:
        _, after = settle(counts, rest)
        for name in rest:
            assert set(before[name]) <= set(after[name])
    topics = settled[gone].topics
    _, more = settle(counts, {**settled, "z": Subscription(topics=topics)})
    moved = sum(len(set(before[name]) - set(more[name])) for name in before)
    assert moved == len(more["z"])


def test_partitions_move_along_a_chain_of_members() -> None:
    # p cannot give to r directly, but q can pass something on.
    members = {
        "p": Subscription(
            topics=frozenset("a"),
            owned=frozenset(TopicPartition("a", n) for n in range(4)),
            generation=1,
        ),
        "q": Subscription(
            topics=frozenset("ab"),
            owned=frozenset(TopicPartition("b", n) for n in range(3)),
            generation=1,
        ),
        "r": Subscription(topics=frozenset("b"), generation=1),
    }
    first = CooperativeStickyAssignor().assign({"a": 4, "b": 3}, members)
    # On the move, so in no share yet.
    assert first == {
        "p": [("a", 0), ("a", 1), ("a", 2)],
        "q": [("b", 0)],
        "r": [],
    }
    _, last = settle({"a": 4, "b": 3}, members)
    assert last == {
        "p": [("a", 0), ("a", 1), ("a", 2)],
        "q": [("a", 3), ("b", 0)],
        "r": [("b", 1), ("b", 2)],
    }


def test_the_later_generation_is_right_and_equals_are_not() -> None:
    topics = frozenset({"a"})
    claim = frozenset({TopicPartition("a", 0)})
    old = Subscription(topics=topics, owned=claim, generation=1)
    new = Subscription(topics=topics, owned=claim, generation=2)
    assign = CooperativeStickyAssignor().assign
    assert assign({"a": 1}, {"p": old, "q": new}) == {"p": [], "q": [("a", 0)]}
    # Neither is believed; and as both hold it, whoever does not get it must let go.
    assert assign({"a": 1}, {"p": new, "q": new}) == {"p": [("a", 0)], "q": []}


def test_the_generation_may_come_in_the_user_data() -> None:
    topics = frozenset({"a"})
    claim = frozenset({TopicPartition("a", 0)})
    field = Subscription(topics=topics, owned=claim, generation=4)
    data = Subscription(topics=topics, owned=claim, user_data=struct.pack(">i", 5))
    short = Subscription(topics=topics, owned=claim, user_data=b"\0")
    assign = CooperativeStickyAssignor().assign
    assert assign({"a": 1}, {"p": field, "q": data})["q"] == [("a", 0)]
    assert assign({"a": 1}, {"p": short, "q": data})["q"] == [("a", 0)]
    assert CooperativeStickyAssignor().user_data(field) == struct.pack(">i", 4)


def test_many_members_and_partitions_are_quick() -> None:
    topics = frozenset({"a"})
    members = {f"m{n:03}": Subscription(topics=topics) for n in range(200)}
    shares = CooperativeStickyAssignor().assign({"a": 5000}, members)
    assert {len(share) for share in shares.values()} == {25}


# ---- choosing


def test_names_and_objects_are_resolved_in_order() -> None:
    class Mine(RangeAssignor):
        name = "mine"

    mine = Mine()
    assert resolve(["roundrobin", mine]) == (ASSIGNORS["roundrobin"], mine)


@pytest.mark.parametrize(
    ("strategy", "text"),
    [([], "names no"), (["rnge"], "rnge"), ([3], "3"), (["range", "range"], "twice")],
)
def test_what_is_no_strategy(strategy: list[object], text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        resolve(strategy)
