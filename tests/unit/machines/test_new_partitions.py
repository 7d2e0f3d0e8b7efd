"""Which partitions are new to a consumer."""

from __future__ import annotations

from uuid import UUID

from kafkaio._machines.metadata import ClusterView, PartitionView, TopicView
from kafkaio._machines.positions import (
    KnownTopic,
    NewPartitionDetector,
    follows_committed,
)
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.types import TopicPartition

ID, OTHER = UUID(int=1), UUID(int=2)
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def tps(topic: str, *numbers: int) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in numbers]


def view(number: int, error: ErrorCode | None = None, **topics: int) -> ClusterView:
    described = {
        name: TopicView(
            name, ID, partitions={n: PartitionView(name, n) for n in range(size)}
        )
        for name, size in topics.items()
    }
    if error is not None:
        described["t"] = TopicView("t", None, error=error)
    return ClusterView(by_name=described, number=number)


def named(*names: str, at: ClusterView | None = None) -> NewPartitionDetector:
    made = NewPartitionDetector()
    made.subscribed(frozenset(names).__contains__, names, at or view(1))
    return made


def news(
    made: NewPartitionDetector, at: ClusterView, *partitions: TopicPartition
) -> list:
    return [made.is_new(tp, at) for tp in partitions]


def test_what_was_there_at_the_subscription_is_not_new():
    made = named("t", at=view(1, t=2))
    later = view(2, t=4)
    made.described(later)
    assert news(made, later, *tps("t", 0, 1, 2, 3)) == [False, False, True, True]


def test_a_topic_is_remembered_when_the_metadata_first_has_it():
    made = named("t")
    assert news(made, view(1), *tps("t", 0)) == [None]
    made.described(view(2, t=1))
    made.described(view(3, t=2))
    assert news(made, view(3, t=2), *tps("t", 0, 1)) == [False, True]


def test_a_topic_that_did_not_exist_is_new():
    made = named("t")
    made.described(view(2, UNKNOWN))
    assert news(made, view(3, t=1), *tps("t", 0)) == [True]


def test_an_error_from_before_the_subscription_may_be_out_of_date():
    stale = view(1, UNKNOWN)
    made = named("t", at=stale)
    made.described(stale)
    assert news(made, stale, *tps("t", 0)) == [None]
    made.described(view(2, t=1))
    assert news(made, view(2, t=1), *tps("t", 0)) == [False]


def test_other_errors_say_nothing_about_the_topic():
    made = named("t")
    made.described(view(2, ErrorCode.LEADER_NOT_AVAILABLE))
    assert news(made, view(2), *tps("t", 0)) == [None]


def test_a_topic_with_another_id_is_new():
    made = named("t", at=view(1, t=2))
    again = ClusterView(
        by_name={"t": TopicView("t", OTHER, partitions={0: PartitionView("t", 0)})}
    )
    assert news(made, again, *tps("t", 0)) == [True]
    assert made.is_created_again("t", again)
    assert not made.is_created_again("t", view(2, t=2))
    assert not made.is_created_again("u", again)
    without_ids = ClusterView(by_name={"t": TopicView("t", None)})
    assert not made.is_created_again("t", without_ids)


def test_a_pattern_knows_all_topics_once_they_are_listed():
    made = NewPartitionDetector()
    made.subscribed(lambda _: True, (), view(1, t=1))
    now = view(2, t=2, u=1, v=1)
    assert news(made, now, *tps("t", 0), *tps("u", 0)) == [None, None]
    made.listed({"t": KnownTopic(ID, 1), "v": None})
    assert news(made, now, *tps("t", 0, 1), *tps("u", 0)) == [False, True, True]
    assert news(made, now, *tps("v", 0)) == [None]  # could not be described
    made.described(now)
    assert news(made, now, *tps("v", 0)) == [False]


def test_a_changed_subscription_keeps_what_it_shares_with_the_old_one():
    made = named("t", "gone", at=view(1, t=1, gone=1))
    later = view(2, t=2, u=2)
    made.subscribed({"t", "u"}.__contains__, ("t", "u"), later)
    assert news(made, later, *tps("t", 0, 1), *tps("u", 0, 1)) == [
        *(False, True),
        *(False, False),
    ]
    made.subscribed({"gone"}.__contains__, ("gone",), view(3, gone=3))
    assert news(made, view(3, gone=3), *tps("gone", 2)) == [False]


def test_sisters_are_what_was_there():
    made = named("t", at=view(1, t=2))
    assert made.sisters("t") == set(tps("t", 0, 1))
    assert made.sisters("u") == frozenset()


def test_behind_all_that_was_committed_it_is_new():
    assert follows_committed(tps("t", 1, 3, 4), tps("t", 0, 2)) == set(tps("t", 3, 4))
    assert follows_committed(tps("t", 0, 1), ()) == frozenset()
    assert follows_committed(tps("t", 5), tps("u", 0)) == frozenset()
