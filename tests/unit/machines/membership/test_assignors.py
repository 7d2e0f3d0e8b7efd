"""The laws of every assignor, and each one's own."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Collection, Mapping
from dataclasses import replace
from time import process_time

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from kafkaio._machines.membership.assignors import (
    ASSIGNORS,
    BrokerRangeAssignor,
    CooperativeStickyAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
    resolve,
)
from kafkaio._machines.membership.assignors.balance import balance
from kafkaio._machines.membership.classic.leader import MAX_MEMBERS, Leadership
from kafkaio._machines.membership.layout import Layout
from kafkaio._machines.membership.subscription import (
    MAX_BLOB,
    Assignor,
    Subscription,
    decode_subscription,
    encode_subscription,
)
from kafkaio.errors import ConfigurationError, ProtocolError
from kafkaio.protocol.messages.join_group import JoinGroupResponseMember
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


def settle(layout: Layout, members: Members, rounds: int = 4) -> tuple[Members, Shares]:
    """Rebalance until nothing moves; each member gives up what it was not given."""
    for generation in range(10, 10 + rounds):
        shares = CooperativeStickyAssignor().assign(layout, members)
        members = {
            name: Subscription(
                topics=s.topics,
                owned=frozenset(shares[name]),
                generation=generation,
                rack=s.rack,
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


@pytest.mark.parametrize(
    "assignor",
    [RangeAssignor(), RoundRobinAssignor(), BrokerRangeAssignor()],
    ids=lambda assignor: assignor.name,
)
@settings(max_examples=40)
@given(counts=counts_of, members=members_of())
def test_every_partition_goes_to_one_of_its_readers(
    assignor: Assignor, counts: dict[str, int], members: Members
) -> None:
    shares = assignor.assign(Layout(counts), members)
    check_complete(counts, members, shares)
    turned = dict(reversed(members.items()))
    assert assignor.assign(Layout(dict(reversed(counts.items()))), turned) == shares
    assert assignor.user_data(next(iter(members.values()))) is None


@settings(max_examples=40)
@given(counts=counts_of, members=members_of(equal=True))
def test_round_robin_is_even_among_equals(
    counts: dict[str, int], members: Members
) -> None:
    sizes = [
        len(s) for s in RoundRobinAssignor().assign(Layout(counts), members).values()
    ]
    assert max(sizes) - min(sizes) <= 1


@settings(max_examples=40)
@given(counts=counts_of, members=members_of(equal=True))
def test_range_is_even_topic_by_topic_and_in_runs(
    counts: dict[str, int], members: Members
) -> None:
    shares = RangeAssignor().assign(Layout(counts), members)
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
    assert RangeAssignor().assign(Layout({"a": 3, "b": 3}), members) == {
        "m1": [("a", 0), ("a", 1), ("b", 0), ("b", 1)],
        "m2": [("a", 2), ("b", 2)],
    }
    assert RoundRobinAssignor().assign(Layout({"a": 3, "b": 3}), members) == {
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
    shares = RangeAssignor().assign(Layout({"a": 3}), members)
    assert shares == {"y": [("a", 0)], "x": [("a", 1)], "a": [("a", 2)]}


# ---- cooperative sticky


@settings(max_examples=40)
@given(counts=counts_of, members=members_of())
def test_nothing_is_assigned_before_it_is_released(
    counts: dict[str, int], members: Members
) -> None:
    shares = CooperativeStickyAssignor().assign(Layout(counts), members)
    for name, share in shares.items():
        for tp in set(share) - members[name].owned:
            holders = [m for m, s in members.items() if tp in s.owned]
            assert not holders
    dealt = [tp for share in shares.values() for tp in share]
    assert len(dealt) == len(set(dealt))


@settings(max_examples=40)
@given(counts=counts_of, members=members_of())
def test_it_settles_complete_and_balanced(
    counts: dict[str, int], members: Members
) -> None:
    settled, shares = settle(Layout(counts), members)
    check_complete(counts, settled, shares)
    # And then nothing moves any more.
    assert CooperativeStickyAssignor().assign(Layout(counts), settled) == shares
    # No partition could go to a reader that has two less.
    for name, share in shares.items():
        for tp in share:
            for other, subscription in settled.items():
                if tp.topic in subscription.topics:
                    assert len(share) - len(shares[other]) <= 1, (name, other)


@settings(max_examples=40)
@given(counts=counts_of, members=members_of(equal=True))
def test_equals_differ_by_one_at_most(counts: dict[str, int], members: Members) -> None:
    _, shares = settle(Layout(counts), members)
    sizes = [len(share) for share in shares.values()]
    assert max(sizes) - min(sizes) <= 1


@settings(max_examples=40)
@given(
    counts=st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 2)),
    members=members_of(),
)
def test_the_balance_is_the_best_there_is(
    counts: dict[str, int], members: Members
) -> None:
    _, shares = settle(Layout(counts), members)
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


@settings(max_examples=40)
@given(counts=counts_of, members=members_of(equal=True), data=st.data())
def test_who_stays_keeps_what_the_balance_allows(
    counts: dict[str, int], members: Members, data: st.DataObject
) -> None:
    settled, before = settle(Layout(counts), members)
    gone = data.draw(st.sampled_from(sorted(settled)))
    rest = {name: s for name, s in settled.items() if name != gone}
    if rest:
        _, after = settle(Layout(counts), rest)
        for name in rest:
            assert set(before[name]) <= set(after[name])
    topics = settled[gone].topics
    _, more = settle(Layout(counts), {**settled, "z": Subscription(topics=topics)})
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
    first = CooperativeStickyAssignor().assign(Layout({"a": 4, "b": 3}), members)
    # On the move, so in no share yet.
    assert first == {
        "p": [("a", 0), ("a", 1), ("a", 2)],
        "q": [("b", 0)],
        "r": [],
    }
    _, last = settle(Layout({"a": 4, "b": 3}), members)
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
    assert assign(Layout({"a": 1}), {"p": old, "q": new}) == {"p": [], "q": [("a", 0)]}
    # Neither is believed; and as both hold it, whoever does not get it must let go.
    assert assign(Layout({"a": 1}), {"p": new, "q": new}) == {"p": [("a", 0)], "q": []}


def test_the_generation_may_come_in_the_user_data() -> None:
    topics = frozenset({"a"})
    claim = frozenset({TopicPartition("a", 0)})
    field = Subscription(topics=topics, owned=claim, generation=4)
    data = Subscription(topics=topics, owned=claim, user_data=struct.pack(">i", 5))
    short = Subscription(topics=topics, owned=claim, user_data=b"\0")
    assign = CooperativeStickyAssignor().assign
    assert assign(Layout({"a": 1}), {"p": field, "q": data})["q"] == [("a", 0)]
    assert assign(Layout({"a": 1}), {"p": short, "q": data})["q"] == [("a", 0)]
    assert CooperativeStickyAssignor().user_data(field) == struct.pack(">i", 4)


def test_many_members_and_partitions_are_quick() -> None:
    topics = frozenset({"a"})
    members = {f"m{n:03}": Subscription(topics=topics) for n in range(200)}
    shares = CooperativeStickyAssignor().assign(Layout({"a": 5000}), members)
    assert {len(share) for share in shares.values()} == {25}


# ---- racks, as in KIP-881

RACKS = ["x", "y", "z"]


@st.composite
def racked(
    draw: st.DrawFn, *, equal: bool = False, named: bool = False
) -> tuple[Layout, Members]:
    """A layout with racks, and members that may name theirs."""
    counts = draw(counts_of)
    every = [TopicPartition(t, n) for t, count in counts.items() for n in range(count)]
    places = st.frozensets(st.sampled_from(RACKS), min_size=int(named), max_size=2)
    rack = st.sampled_from(RACKS) if named else st.none() | st.sampled_from(RACKS)
    members = {
        name: replace(subscription, rack=draw(rack))
        for name, subscription in draw(members_of(equal=equal)).items()
    }
    return Layout(counts, racks={tp: draw(places) for tp in every}), members


@pytest.mark.parametrize(
    "assignor",
    [RangeAssignor(), StickyAssignor()],
    ids=lambda assignor: assignor.name,
)
@settings(max_examples=60)
@given(case=racked(equal=True))
def test_racks_cost_no_balance(
    assignor: Assignor, case: tuple[Layout, Members]
) -> None:
    layout, members = case
    shares = assignor.assign(layout, members)
    check_complete(layout.counts, members, shares)
    plain = assignor.assign(Layout(layout.counts), members)

    def sizes(shares: Shares, topics: Collection[str]) -> list[int]:
        return sorted(
            sum(tp.topic in topics for tp in share) for share in shares.values()
        )

    # Range is even topic by topic only.
    by_topic = isinstance(assignor, RangeAssignor)
    for topics in TOPICS if by_topic else ["".join(TOPICS)]:
        assert sizes(shares, topics) == sizes(plain, topics)
    assert all(share == sorted(share) for share in map(list, shares.values()))


@settings(max_examples=60)
@given(case=racked(equal=True, named=True))
def test_with_racks_it_settles_and_no_exchange_is_left_to_make(
    case: tuple[Layout, Members],
) -> None:
    layout, members = case
    settled, shares = settle(layout, members, rounds=8)
    check_complete(layout.counts, settled, shares)
    assert CooperativeStickyAssignor().assign(layout, settled) == shares
    far = [
        (name, tp)
        for name, share in shares.items()
        for tp in share
        if not layout.is_near(tp, settled[name].rack)
    ]
    for (one, a), (two, b) in itertools.combinations(far, 2):
        assert not layout.is_near(a, settled[two].rack), (one, two)
        assert not layout.is_near(b, settled[one].rack), (one, two)


@settings(max_examples=40)
@given(case=racked())
def test_racks_among_unequal_subscriptions_settle_too(
    case: tuple[Layout, Members],
) -> None:
    layout, members = case
    settled, shares = settle(layout, members)
    check_complete(layout.counts, settled, shares)
    assert CooperativeStickyAssignor().assign(layout, settled) == shares


def at(*numbers: int, topic: str = "a") -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(topic, number) for number in numbers)


def test_a_partition_moves_to_the_rack_it_is_in() -> None:
    topics = frozenset("a")
    layout = Layout(
        {"a": 4},
        racks={
            TopicPartition("a", n): frozenset({"x" if n % 2 else "y"}) for n in range(4)
        },
    )
    members = {
        "p": Subscription(topics=topics, owned=at(0, 1), generation=1, rack="x"),
        "q": Subscription(topics=topics, owned=at(2, 3), generation=1, rack="y"),
    }
    first = CooperativeStickyAssignor().assign(layout, members)
    assert first == {"p": sorted(at(1)), "q": sorted(at(2))}
    _, last = settle(layout, members)
    assert last == {"p": sorted(at(1, 3)), "q": sorted(at(0, 2))}
    # Where nothing is near, nothing moves.
    lost = {name: replace(s, rack="z") for name, s in members.items()}
    assert CooperativeStickyAssignor().assign(layout, lost) == {
        "p": sorted(at(0, 1)),
        "q": sorted(at(2, 3)),
    }


def test_a_partition_that_is_free_goes_where_it_is_near() -> None:
    layout = Layout({"a": 1, "b": 1}, racks={TopicPartition("a", 0): frozenset({"y"})})
    members = {
        "p": Subscription(topics=frozenset("ab"), rack="x"),
        "q": Subscription(topics=frozenset("a"), rack="y"),
    }
    assert CooperativeStickyAssignor().assign(layout, members) == {
        "p": sorted(at(0, topic="b")),
        "q": sorted(at(0)),
    }


def test_range_keeps_topics_together_where_racks_allow_it() -> None:
    racks = {
        TopicPartition(topic, n): frozenset({"xyx"[n]})
        for topic in "ab"
        for n in range(3)
    }
    topics = frozenset("ab")
    members = {
        "p": Subscription(topics=topics, rack="y"),
        "q": Subscription(topics=topics, rack="x"),
    }
    layout = Layout({"a": 3, "b": 3}, racks=racks)
    assert RangeAssignor().assign(layout, members) == {
        "p": sorted(at(1) | at(1, topic="b")),
        "q": sorted(at(0, 2) | at(0, 2, topic="b")),
    }
    # By itself, a topic is divided alike.
    alone = RangeAssignor().assign(Layout({"a": 3}, racks=racks), members)
    assert alone == {"p": sorted(at(1)), "q": sorted(at(0, 2))}


def test_what_is_near_to_nobody_goes_where_there_is_room() -> None:
    racks = {
        TopicPartition(topic, n): frozenset({"zx"[n]}) for topic in "ab" for n in (0, 1)
    }
    group = {n: Subscription(topics=frozenset("ab"), rack=r) for n, r in ("px", "qy")}
    assert RangeAssignor().assign(Layout({"a": 2, "b": 2}, racks=racks), group) == {
        "p": sorted(at(1) | at(1, topic="b")),
        "q": sorted(at(0) | at(0, topic="b")),
    }


def test_a_topic_that_is_everywhere_is_divided_as_without_racks() -> None:
    racks = {
        TopicPartition("a", 0): frozenset({"y"}),
        TopicPartition("a", 1): frozenset({"x"}),
        **{tp: frozenset({"x"}) for tp in at(0, 1, 2, topic="b")},
    }
    group = {n: Subscription(topics=frozenset("ab"), rack=r) for n, r in ("px", "qy")}
    assert RangeAssignor().assign(Layout({"a": 2, "b": 3}, racks=racks), group) == {
        "p": sorted(at(1) | at(0, 1, topic="b")),
        "q": sorted(at(0) | at(2, topic="b")),
    }


def test_racks_that_are_everywhere_or_nowhere_make_no_difference() -> None:
    topics = frozenset("a")
    members = {name: Subscription(topics=topics, rack="x") for name in "pq"}
    plain = RangeAssignor().assign(Layout({"a": 3}), members)
    for rack in "xy":
        racks = {tp: frozenset({rack}) for tp in at(0, 1, 2)}
        layout = Layout({"a": 3}, racks=racks)
        assert RangeAssignor().assign(layout, members) == plain


def test_what_is_outgrown() -> None:
    (tp,) = at(0)
    old = Layout({"a": 1}, {tp: 1}, {tp: frozenset("x")})
    assert not old.has_racks_beyond(old)
    assert not Layout({"a": 1}, racks={tp: frozenset()}).has_racks_beyond(old)
    assert Layout({"a": 1}, racks={tp: frozenset("xy")}).has_racks_beyond(old)
    assert old.of(()) == Layout({})
    assert old.of(["a", "b"]) == old


# ---- sticky


def with_user_data(members: Members) -> Members:
    """As members of an eager group join: what they had is in the user data alone."""
    return {
        name: Subscription(topics=s.topics, user_data=StickyAssignor().user_data(s))
        for name, s in members.items()
    }


@settings(max_examples=40)
@given(counts=counts_of, members=members_of())
def test_sticky_gives_at_once_what_cooperative_settles_on(
    counts: dict[str, int], members: Members
) -> None:
    shares = StickyAssignor().assign(Layout(counts), with_user_data(members))
    check_complete(counts, members, shares)
    given_now = CooperativeStickyAssignor().assign(Layout(counts), members)
    for name, share in shares.items():
        assert set(given_now[name]) <= set(share)


def test_user_data_of_other_clients() -> None:
    topics = frozenset("a")
    new = Subscription(
        topics=topics, user_data=bytes.fromhex("00000001000161000000010000000000000007")
    )
    old = replace(new, user_data=bytes.fromhex("000000010001610000000100000001"))
    none = Subscription(topics=topics)
    bad = replace(none, user_data=b"\0\0\0\xff")
    assign = StickyAssignor().assign
    told = Subscription(topics=topics, owned=at(0), generation=7)
    assert StickyAssignor().user_data(told) == new.user_data
    layout = Layout({"a": 2})
    assert assign(layout, {"q": new, "p": none})["q"] == sorted(at(0))
    assert assign(layout, {"p": old, "q": bad})["p"] == sorted(at(1))
    # The later generation is right, and a claim without one is the oldest.
    stale = replace(new, user_data=new.user_data and new.user_data[:-4])
    assert assign(Layout({"a": 1}), {"p": stale, "q": new})["q"] == sorted(at(0))


# ---- broker range


@settings(max_examples=60)
@given(leaders=st.lists(st.integers(0, 4), max_size=12), members=st.integers(1, 5))
def test_each_member_talks_to_few_brokers(leaders: list[int], members: int) -> None:
    layout = Layout(
        {"a": len(leaders)},
        {TopicPartition("a", n): node for n, node in enumerate(leaders)},
    )
    group = {f"m{n}": Subscription(topics=frozenset("a")) for n in range(members)}
    shares = BrokerRangeAssignor().assign(layout, group)
    sizes = [len(share) for share in shares.values()]
    assert max(sizes) - min(sizes) <= 1
    talks = {
        (name, layout.leaders[tp]) for name, share in shares.items() for tp in share
    }
    assert len(talks) <= max(0, len(set(leaders)) + members - 1)


def test_broker_range_by_example() -> None:
    group = {name: Subscription(topics=frozenset("a")) for name in "pq"}
    leaders = {TopicPartition("a", n): n % 2 for n in range(5)}
    shares = BrokerRangeAssignor().assign(Layout({"a": 6}, leaders), group)
    # Number 5 has no leader.
    assert shares == {"p": sorted(at(0, 2, 4)), "q": sorted(at(1, 3, 5))}


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


# ---- bounded work ------------------------------------------------------------------


def test_a_large_group_of_unequal_members_takes_bounded_work() -> None:
    # 300 members with 25 of 50 topics each: it once took minutes.
    layout = Layout({f"t{number}": 20 for number in range(50)})
    members = {
        f"m{number}": Subscription(
            topics=frozenset(f"t{(number * 7 + each) % 50}" for each in range(25))
        )
        for number in range(300)
    }
    before = process_time()
    assigned = balance(layout, members)
    assert process_time() - before < 5
    sizes = sorted(map(len, assigned.values()))
    assert sum(sizes) == 1_000
    assert sizes[-1] - sizes[0] <= 1


def test_a_search_that_takes_too_long_ends_with_a_valid_assignment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kafkaio._machines.membership.assignors.balance._MOST_STEPS", 1)
    layout = Layout({"a": 4, "b": 1})
    members = {
        "x": Subscription(
            topics=frozenset("a"),
            owned=frozenset(TopicPartition("a", n) for n in range(4)),
            generation=1,
        ),
        "y": Subscription(topics=frozenset("ab")),
    }
    assigned = balance(layout, members)
    assert sorted(tp for each in assigned.values() for tp in each) == [
        *(TopicPartition("a", n) for n in range(4)),
        TopicPartition("b", 0),
    ]
    assert len(assigned["x"]) == 4


def test_a_leader_takes_no_more_members_than_a_group_can_have() -> None:
    blob = encode_subscription(Subscription(topics=frozenset("t")))

    def members(count: int) -> list[JoinGroupResponseMember]:
        return [
            JoinGroupResponseMember(member_id=str(number), metadata=blob)
            for number in range(count)
        ]

    assert len(Leadership.from_members(members(MAX_MEMBERS)).members) == MAX_MEMBERS
    with pytest.raises(ProtocolError, match="at most 10000 members"):
        Leadership.from_members(members(MAX_MEMBERS + 1))


def test_a_leader_takes_no_more_subscriptions_than_it_can_assign(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leader = "kafkaio._machines.membership.classic.leader"
    monkeypatch.setattr(f"{leader}.MAX_ENTRIES", 5)
    blob = encode_subscription(
        Subscription(topics=frozenset("ab"), owned=frozenset({TopicPartition("a", 0)}))
    )
    member = JoinGroupResponseMember(member_id="m", metadata=blob)
    assert set(Leadership.from_members([member]).members) == {"m"}
    with pytest.raises(ProtocolError, match="5 subscribed topics"):
        Leadership.from_members([member, replace(member, member_id="n")])


def test_a_subscription_that_is_too_long_is_refused() -> None:
    with pytest.raises(ProtocolError, match="4194305 bytes are too many"):
        decode_subscription(bytes(MAX_BLOB + 1))
