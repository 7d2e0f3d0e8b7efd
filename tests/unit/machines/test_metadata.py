import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from kafkaio._machines.metadata import (
    ClusterView,
    Epochs,
    Merged,
    TopicView,
    UnavailableTopics,
    merge,
    with_leader,
)
from kafkaio.errors import ProtocolError
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.protocol._message import ZERO_UUID
from kafkaio.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafkaio.types import Broker, TopicPartition

A, B = uuid.UUID(int=1), uuid.UUID(int=2)
T0 = TopicPartition("t", 0)


def partition(
    leader: int = 0, epoch: int = -1, number: int = 0, error: int = 0
) -> MetadataResponsePartition:
    return MetadataResponsePartition(
        partition_index=number,
        leader_id=leader,
        leader_epoch=epoch,
        error_code=error,
        replica_nodes=[0, 1],
        isr_nodes=[0],
        offline_replicas=[1],
    )


def topic(
    *partitions: MetadataResponsePartition,
    name: str | None = "t",
    topic_id: uuid.UUID = ZERO_UUID,
    error: int = 0,
) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=name, topic_id=topic_id, error_code=error, partitions=list(partitions)
    )


def answer(*topics: MetadataResponseTopic, brokers: int = 2) -> MetadataResponse:
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=n, host=f"h{n}", port=9092 + n)
            for n in range(brokers)
        ],
        cluster_id="c",
        controller_id=0,
        topics=list(topics),
    )


class Known:
    """A view and the epochs that belong to it."""

    def __init__(self) -> None:
        self.view = ClusterView()
        self.epochs = Epochs()

    def take(
        self, *topics: MetadataResponseTopic, version: int = 13, partial: bool = False
    ) -> Merged:
        merged = merge(
            self.view, self.epochs, answer(*topics), version, partial=partial
        )
        assert merged is not None
        self.view = merged.view
        return merged


def test_what_a_view_tells() -> None:
    known = Known()
    internal = MetadataResponseTopic(name="__x", is_internal=True)
    known.take(
        topic(
            partition(1, 5, 1), partition(-1, 7, 0, E.LEADER_NOT_AVAILABLE), topic_id=A
        ),
        internal,
        topic(name="bad", error=E.INVALID_TOPIC_EXCEPTION),
        topic(name=None, topic_id=B, error=E.UNKNOWN_TOPIC_ID),
    )
    view = known.view
    assert view.topics == {"t", "__x"}
    assert view.brokers[1] == Broker(1, "h1", 9093)
    assert (view.cluster_id, view.controller_id, view.number) == ("c", 0, 1)
    assert view.topic_id("t") == A
    assert view.topic_name(A) == "t"
    assert view.topic_name(B) is None
    assert view.topic_id("__x") is None
    assert view.topic_id("?") is None
    assert view.partition_count("t") == 2
    assert view.partition_count("bad") is None
    assert view.partition_count("?") is None
    assert [p.partition for p in view.partitions("t")] == [0, 1]
    assert view.partitions("?") == ()
    assert view.leader(T0) is None
    assert view.leader(TopicPartition("t", 1)) == 1
    assert view.leader(TopicPartition("t", 9)) is None
    assert view.leader(TopicPartition("?", 0)) is None
    assert view.topic_error("bad") == E.INVALID_TOPIC_EXCEPTION
    assert view.topic_error("?") == E.NONE
    assert view.is_internal("__x")
    assert not view.is_internal("t")
    assert not view.is_internal("?")
    one = view.partition(TopicPartition("t", 1))
    assert one is not None
    assert (one.leader_epoch, one.replicas, one.isr, one.offline) == (
        5,
        (0, 1),
        (0,),
        (1,),
    )


def test_an_answer_without_brokers_says_nothing() -> None:
    assert merge(ClusterView(), Epochs(), answer(brokers=0), 13, partial=False) is None


def test_a_full_answer_drops_what_it_leaves_out_and_a_partial_one_does_not() -> None:
    known = Known()
    known.take(topic(partition(), name="a"))
    known.take(topic(partition(), name="b"), partial=True)
    assert known.view.topics == {"a", "b"}
    known.take(topic(partition(), name="b"))
    assert known.view.topics == {"b"}


def test_an_old_epoch_keeps_the_cached_leader() -> None:
    known = Known()
    known.take(topic(partition(1, 5), topic_id=A))
    stale = known.take(topic(partition(0, 4), topic_id=A))
    assert known.view.leader(T0) == 1
    assert stale.unsettled == {"t"}
    assert not stale.progressed
    same = known.take(topic(partition(0, 5), topic_id=A))
    assert known.view.leader(T0) == 0
    assert not same.unsettled


def test_an_old_epoch_never_leads_even_when_nothing_is_cached() -> None:
    known = Known()
    known.take(topic(partition(1, 5), topic_id=A))
    known.take(topic(topic_id=A, error=E.UNKNOWN_TOPIC_OR_PARTITION))
    stale = known.take(topic(partition(0, 4), topic_id=A))
    assert known.view.leader(T0) is None
    assert known.view.partition_count("t") == 1
    assert stale.unsettled == {"t"}


def test_an_epoch_that_nobody_confirms_is_dropped() -> None:
    known = Known()
    known.take(topic(partition(1, 5)))
    known.take(topic(partition(2, 2**31 - 1)))  # a lie
    for _ in range(19):
        assert known.take(topic(partition(1, 5))).unsettled == {"t"}
        assert known.view.leader(T0) == 2
    assert not known.take(topic(partition(1, 5))).unsettled
    assert known.view.leader(T0) == 1
    known.take(topic(partition(0, 6)))
    assert known.view.leader(T0) == 0


def test_only_old_epochs_in_a_row_refute_the_newest() -> None:
    known = Known()
    known.take(topic(partition(1, 5)))
    for _ in range(3):
        for _ in range(15):
            known.take(topic(partition(2, 4)))  # a broker that lags behind
        known.take(topic(partition(1, 5)))
        assert known.view.leader(T0) == 1


@pytest.mark.parametrize("numbers", [[0, 2], [1], [0, 0], [0, 2**31 - 1]])
def test_partitions_with_a_hole_are_no_topic(numbers: list[int]) -> None:
    def told(numbers: list[int]) -> MetadataResponseTopic:
        parts = [replace(partition(1, 5), partition_index=n) for n in numbers]
        return replace(topic(topic_id=A), partitions=parts)

    known = Known()
    assert known.take(told(numbers)).unsettled == {"t"}
    assert known.view.partition_count("t") is None
    known.take(told([0, 1]))
    assert known.take(told(numbers)).unsettled == {"t"}
    assert known.view.partition_count("t") == 2


def test_another_topic_of_the_same_name_starts_anew() -> None:
    known = Known()
    known.take(topic(partition(1, 5), topic_id=A))
    known.take(topic(partition(0, 0), topic_id=B))
    assert known.view.leader(T0) == 0
    assert known.epochs.get(T0) == 0
    known.take(topic(topic_id=B, error=E.UNKNOWN_TOPIC_OR_PARTITION))
    known.take(topic(partition(1, 0), topic_id=A))
    assert known.view.leader(T0) == 1


def test_a_partition_of_an_earlier_topic_is_never_a_stand_in() -> None:
    known = Known()
    known.take(topic(partition(1, 5), topic_id=A))
    known.epochs.identify("t", B)
    known.epochs.raise_to(T0, 9)
    known.take(topic(partition(0, 3), topic_id=B))
    assert known.view.leader(T0) is None


def test_without_ids_a_vanished_topic_starts_anew() -> None:
    known = Known()
    known.take(topic(partition(1, 5)), version=9)
    known.take(topic(error=E.UNKNOWN_TOPIC_OR_PARTITION), version=9)
    known.take(topic(partition(0, 0)), version=9)
    assert known.view.leader(T0) == 0


def test_epochs_before_version_9_are_dropped() -> None:
    known = Known()
    known.take(topic(partition(1, 5)))
    known.take(topic(partition(0, 4)), version=8)
    assert known.view.leader(T0) == 0
    found = known.view.partition(T0)
    assert found is not None
    assert found.leader_epoch == -1
    assert known.epochs.get(T0) == -1


def test_a_partition_with_an_error_may_have_a_useful_epoch() -> None:
    known = Known()
    merged = known.take(topic(partition(-1, 6, error=E.LEADER_NOT_AVAILABLE)))
    assert merged.unsettled == {"t"}
    assert known.epochs.get(T0) == 6
    known.take(topic(partition(-1, -1, error=E.LISTENER_NOT_FOUND)))
    assert known.epochs.get(T0) == 6


def test_a_replica_that_is_down_is_no_reason_to_ask_again() -> None:
    merged = Known().take(topic(partition(0, 1, error=E.REPLICA_NOT_AVAILABLE)))
    assert not merged.unsettled


@pytest.mark.parametrize(
    ("error", "unsettled"),
    [
        (E.LEADER_NOT_AVAILABLE, True),
        (E.UNKNOWN_TOPIC_OR_PARTITION, True),
        (E.TOPIC_AUTHORIZATION_FAILED, False),
        (E.INVALID_TOPIC_EXCEPTION, False),
        (31_000, False),
    ],
)
def test_topics_that_cannot_be_described(error: int, unsettled: bool) -> None:
    known = Known()
    merged = known.take(topic(error=error))
    assert merged.unsettled == ({"t"} if unsettled else set())
    assert known.view.topic_error("t") == (error if error < 31_000 else -1)


def test_progress_is_what_is_new() -> None:
    known = Known()
    first = topic(partition(1, 5))
    assert known.take(first).progressed
    assert not known.take(first).progressed
    assert known.take(topic(partition(1, 6))).progressed
    assert known.take(topic(partition(1, 6)), topic(name="u"), partial=True).progressed


def test_epochs_are_forgotten_with_their_topics() -> None:
    epochs = Epochs()
    epochs.raise_to(T0, 3)
    epochs.identify("t", A)
    epochs.raise_to(TopicPartition("u", 0), 4)
    epochs.retain(["u"])
    assert epochs.get(T0) == -1
    assert not epochs.has_id("t")
    assert epochs.get(TopicPartition("u", 0)) == 4
    assert not epochs.raise_to(TopicPartition("u", 0), 4)
    epochs.drop(TopicPartition("?", 0))


# ---- hints -----------------------------------------------------------------------


def led(leader: int = 0, epoch: int = 5) -> Known:
    known = Known()
    known.take(topic(partition(leader, epoch), partition(0, 1, 1), topic_id=A))
    return known


def test_a_newer_leader_is_taken_over() -> None:
    known = led()
    view = with_leader(known.view, known.epochs, T0, (7, 6), [Broker(7, "h7", 1)])
    assert view is not None
    assert view.leader(T0) == 7
    assert view.brokers[7] == Broker(7, "h7", 1)
    assert view.leader(TopicPartition("t", 1)) == 0
    assert view.number == known.view.number + 1
    assert known.view.leader(T0) == 0
    known.view = view
    known.take(topic(partition(0, 5), topic_id=A))
    assert known.view.leader(T0) == 7


@pytest.mark.parametrize(
    ("tp", "leader"),
    [
        (T0, (1, 5)),
        (T0, (1, 4)),
        (T0, (1, -1)),
        (T0, (-1, 6)),
        (T0, (9, 6)),
        (TopicPartition("t", 5), (1, 6)),
        (TopicPartition("?", 0), (1, 6)),
    ],
)
def test_other_hints_are_ignored(tp: TopicPartition, leader: tuple[int, int]) -> None:
    known = led()
    assert with_leader(known.view, known.epochs, tp, leader) is None


def test_a_hint_older_than_what_was_seen_elsewhere_is_ignored() -> None:
    known = led()
    known.epochs.raise_to(T0, 8)
    assert with_leader(known.view, known.epochs, T0, (1, 7)) is None


# ---- laws ------------------------------------------------------------------------

described = st.builds(
    lambda leader, epoch, error, topic_id: topic(
        partition(leader, epoch, 0, error), topic_id=topic_id
    ),
    st.integers(-1, 2),
    st.integers(-1, 6),
    st.sampled_from([0, 5, 9]),
    st.sampled_from([ZERO_UUID, A]),
)
failed = st.builds(
    lambda error: topic(topic_id=A, error=error), st.sampled_from([3, 5, 17, 29])
)
steps = st.lists(
    st.tuples(st.lists(described | failed, max_size=1), st.booleans()), max_size=8
)


def runs(
    known: Known, script: list[tuple[list[MetadataResponseTopic], bool]]
) -> Iterator[Merged]:
    for topics, partial in script:
        yield known.take(*topics, partial=partial)


@given(steps)
def test_merging_twice_is_merging_once(script) -> None:
    known = Known()
    for (topics, partial), merged in zip(script, runs(known, script), strict=True):
        again = merge(known.view, known.epochs, answer(*topics), 13, partial=partial)
        assert again is not None
        assert replace(again.view, number=merged.view.number) == merged.view
        assert not again.progressed


@given(steps)
def test_a_stale_epoch_never_leads(script) -> None:
    known = Known()
    # The topic has an id from the start, so nothing ever voids its epochs.
    known.epochs.identify("t", A)
    highest = -1
    for merged in runs(known, script):
        found = merged.view.partition(T0)
        if found is None or found.leader_epoch < 0:
            continue
        assert found.leader_epoch >= highest
        highest = found.leader_epoch


@given(steps)
def test_views_do_not_change(script) -> None:
    known = Known()
    seen = [(m.view, repr(m.view)) for m in runs(known, script)]
    assert all(repr(view) == text for view, text in seen)
    assert [view.number for view, _ in seen] == list(range(1, len(seen) + 1))


def described(**errors: E) -> ClusterView:
    return ClusterView(by_name={n: TopicView(n, error=e) for n, e in errors.items()})


def test_each_unavailable_topic_is_reported_at_once() -> None:
    unavailable, wanted = UnavailableTopics(may_create=False), frozenset("abcd")
    view = described(
        a=E.INVALID_TOPIC_EXCEPTION,
        b=E.UNKNOWN_TOPIC_OR_PARTITION,
        c=E.LEADER_NOT_AVAILABLE,
        d=E.NONE,
        e=E.TOPIC_AUTHORIZATION_FAILED,
    )
    reported = (("a", E.INVALID_TOPIC_EXCEPTION), ("b", E.UNKNOWN_TOPIC_OR_PARTITION))
    assert unavailable.update(view, wanted, 0.0) == reported
    assert unavailable.update(view, wanted, 9.0) == ()
    # An answer about other topics says nothing of it.
    assert unavailable.update(described(d=E.NONE), wanted, 10.0) == ()
    assert unavailable.update(view, wanted, 11.0) == ()
    assert unavailable.update(described(a=E.NONE), wanted, 12.0) == ()
    assert unavailable.update(view, wanted, 13.0) == reported[:1]
    # A topic that is wanted again later is reported again.
    assert unavailable.update(view, frozenset(), 14.0) == ()
    assert unavailable.update(view, frozenset("e"), 15.0) == (
        ("e", E.TOPIC_AUTHORIZATION_FAILED),
    )
    assert unavailable.update(view, wanted, 16.0) == reported


def test_a_topic_that_stays_unavailable_is_reported_again_and_again() -> None:
    unavailable, wanted = UnavailableTopics(may_create=False), frozenset("a")
    view = described(a=E.UNKNOWN_TOPIC_OR_PARTITION)
    times = [at for at in range(20_000) if unavailable.update(view, wanted, float(at))]
    assert times[:6] == [0, 30, 90, 210, 450, 930]
    assert times[-1] - times[-2] == 3600
    # It was there in between.
    assert unavailable.update(described(a=E.NONE), wanted, 20_000.0) == ()
    assert unavailable.update(view, wanted, 20_001.0)
    assert unavailable.update(view, wanted, 20_031.0)


def test_a_topic_that_is_being_created_is_not_reported() -> None:
    unavailable, wanted = UnavailableTopics(may_create=True), frozenset("ab")
    missing = described(a=E.UNKNOWN_TOPIC_OR_PARTITION, b=E.INVALID_TOPIC_EXCEPTION)
    assert unavailable.update(missing, wanted, 0.0) == (
        ("b", E.INVALID_TOPIC_EXCEPTION),
    )
    assert unavailable.update(missing, wanted, 0.4) == ()
    assert unavailable.update(described(a=E.NONE), wanted, 0.5) == ()
    assert unavailable.update(missing, wanted, 9.0) == ()
    assert unavailable.update(missing, wanted, 9.5) == (
        ("a", E.UNKNOWN_TOPIC_OR_PARTITION),
    )


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"brokers": 4}, "names 4 brokers; max_brokers allows 3"),
        ({"name": "x" * 250}, "a topic of 250 characters"),
        ({"partition": -1}, "a partition with a negative number"),
    ],
)
def test_an_answer_that_no_cluster_gives_changes_nothing(
    changes: dict[str, Any], match: str
) -> None:
    brokers = [
        MetadataResponseBroker(node_id=number, host="h", port=1)
        for number in range(changes.get("brokers", 3))
    ]
    partition = MetadataResponsePartition(partition_index=changes.get("partition", 0))
    topic = MetadataResponseTopic(
        name=changes.get("name", "x" * 249), partitions=[partition]
    )
    response = MetadataResponse(brokers=brokers, topics=[topic])
    with pytest.raises(ProtocolError, match=match):
        merge(ClusterView(), Epochs(), response, 9, partial=False, max_brokers=3)


def test_a_topic_without_a_name_is_left_out() -> None:
    topics = [MetadataResponseTopic(name=None), MetadataResponseTopic(name="t")]
    brokers = [MetadataResponseBroker(node_id=1, host="h", port=1)]
    response = MetadataResponse(brokers=brokers, topics=topics)
    merged = merge(ClusterView(), Epochs(), response, 12, partial=False)
    assert merged is not None
    assert set(merged.view.by_name) == {"t"}
