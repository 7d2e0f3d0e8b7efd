from __future__ import annotations

from uuid import UUID

from hypothesis import given, settings, strategies as st

from kafkaio.testing._groups.assignors import ASSIGNORS, Spec, range_, uniform

T, U = UUID(int=1), UUID(int=2)


def spec(
    subscriptions: dict[str, set[UUID]],
    partitions: dict[UUID, int],
    current: dict[str, set[tuple[UUID, int]]] | None = None,
    instances: dict[str, str] | None = None,
) -> Spec:
    return Spec(
        subscriptions={one: frozenset(it) for one, it in subscriptions.items()},
        partitions=partitions,
        current={one: frozenset(it) for one, it in (current or {}).items()},
        instances=instances or {},
    )


def test_range_puts_equal_partitions_together() -> None:
    found = range_(spec({"a": {T, U}, "b": {T, U}}, {T: 3, U: 3}))
    assert found["a"] == {(T, 0), (T, 1), (U, 0), (U, 1)}
    assert found["b"] == {(T, 2), (U, 2)}


def test_range_keeps_a_static_member_in_its_place() -> None:
    found = range_(spec({"z": {T}, "b": {T}}, {T: 2}, instances={"z": "a"}))
    assert found["z"] == {(T, 0)}


def test_uniform_moves_only_what_it_must() -> None:
    current = {"a": {(T, 0), (T, 1), (T, 2), (T, 3)}}
    found = uniform(spec({"a": {T}, "b": {T}}, {T: 4}, current))
    assert len(found["a"]) == len(found["b"]) == 2
    again = uniform(
        spec({"a": {T}, "b": {T}}, {T: 4}, {one: set(it) for one, it in found.items()})
    )
    assert again == found


def test_uniform_gives_a_partition_of_two_owners_to_one() -> None:
    found = uniform(spec({"a": {T}, "b": {T}}, {T: 1}, {"a": {(T, 0)}, "b": {(T, 0)}}))
    assert sorted(map(len, found.values())) == [0, 1]


def test_uniform_with_different_subscriptions() -> None:
    found = uniform(spec({"a": {T, U}, "b": {U}}, {T: 2, U: 2}))
    assert found == {"a": {(T, 0), (T, 1)}, "b": {(U, 0), (U, 1)}}


topics = st.sets(st.sampled_from([T, U]))


@given(
    st.dictionaries(st.sampled_from("abcde"), topics, min_size=1),
    st.integers(0, 7),
    st.integers(0, 7),
    st.sampled_from(sorted(ASSIGNORS)),
)
@settings(max_examples=60)
def test_every_subscribed_partition_has_one_owner(
    subscriptions: dict[str, set[UUID]], in_t: int, in_u: int, assignor: str
) -> None:
    partitions = {T: in_t, U: in_u}
    found = ASSIGNORS[assignor](spec(subscriptions, partitions))
    assert found.keys() == subscriptions.keys()
    given_out = [slot for slots in found.values() for slot in slots]
    assert len(given_out) == len(set(given_out))
    wanted = {topic for it in subscriptions.values() for topic in it}
    assert set(given_out) == {
        (topic, number) for topic in wanted for number in range(partitions[topic])
    }
    for member, slots in found.items():
        assert {topic for topic, _ in slots} <= subscriptions[member]
