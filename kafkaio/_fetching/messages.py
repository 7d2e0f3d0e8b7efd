"""Converts the plan of a fetch to a request, and an answer to data by partition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

from kafkaio._dataclass import dataclass
from kafkaio._machines.fetch_session import FetchPlan, FetchTarget
from kafkaio.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from kafkaio.types import TopicPartition

#: Fetch names topics by id from version 13 on (KIP-516).
_FIRST_VERSION_BY_ID: Final = 13
_LAST_VERSION_BY_NAME: Final = 12
#: Session id and epoch of a fetch outside of any session (KIP-227).
_NO_SESSION: Final = 0
_NO_EPOCH: Final = -1
#: The most partitions, and bytes of records, of a small answer.
_FEW: Final = 32
_SMALL: Final = 65_536


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """The limits of a fetch as a whole.

    Attributes:
        max_wait_ms: how long the broker may wait for ``min_bytes``.
        min_bytes: the bytes of records that it waits for.
        max_bytes: most bytes of the answer.
        isolation_level: 1 reads committed transactions only.
        rack: the client's rack, empty to fetch from leaders alone (KIP-392).
    """

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    rack: str = ""


def can_use_ids(version: int, targets: Mapping[TopicPartition, FetchTarget]) -> bool:
    """Whether a fetch can name its topics by id: version and metadata have ids."""
    return takes_ids(version) and have_ids(targets.values())


def takes_ids(version: int) -> bool:
    """Whether a version of Fetch names topics by id."""
    return version >= _FIRST_VERSION_BY_ID


def have_ids(targets: Iterable[FetchTarget]) -> bool:
    """Whether the metadata have the ids of all topics."""
    return all(target.topic_id.int for target in targets)


def highest_version(plan: FetchPlan) -> int | None:
    """Return the highest version that can carry a plan; None for the newest."""
    return None if plan.by_id else _LAST_VERSION_BY_NAME


def sessionless(
    version: int, targets: Mapping[TopicPartition, FetchTarget]
) -> FetchPlan:
    """Plan a fetch outside of any session, which names all its partitions.

    Args:
        version: the version of Fetch that the broker supports.
        targets: the partitions, in the order of preference.
    """
    by_id = can_use_ids(version, targets)
    return FetchPlan(_NO_SESSION, _NO_EPOCH, targets, targets, (), by_id)


def fetch_request(plan: FetchPlan, limits: FetchLimits) -> FetchRequest:
    """Make the request of a plan."""
    return FetchRequest(
        max_wait_ms=limits.max_wait_ms,
        min_bytes=limits.min_bytes,
        max_bytes=limits.max_bytes,
        isolation_level=limits.isolation_level,
        session_id=plan.session_id,
        session_epoch=plan.epoch,
        topics=_topics(plan.to_send),
        forgotten_topics_data=_forgotten(plan.forgotten),
        rack_id=limits.rack,
    )


def _topics(targets: Mapping[TopicPartition, FetchTarget]) -> list[FetchTopic]:
    # Partitions keep their order; only neighbours of one topic share an entry, because
    # the broker serves them in the order of the request until the answer is full.
    topics: list[FetchTopic] = []
    for (name, number), target in targets.items():
        if not topics or topics[-1].topic != name:
            topics.append(FetchTopic(topic=name, topic_id=target.topic_id))
        topics[-1].partitions.append(
            FetchPartition(
                partition=number,
                current_leader_epoch=target.leader_epoch,
                fetch_offset=target.offset,
                partition_max_bytes=target.max_bytes,
            )
        )
    return topics


def _forgotten(
    partitions: Iterable[tuple[TopicPartition, UUID]],
) -> list[ForgottenTopic]:
    topics: dict[tuple[str, UUID], ForgottenTopic] = {}
    for (name, number), topic_id in partitions:
        topic = topics.setdefault(
            (name, topic_id), ForgottenTopic(topic=name, topic_id=topic_id)
        )
        topic.partitions.append(number)
    return list(topics.values())


def answers(
    plan: FetchPlan, response: FetchResponse
) -> dict[TopicPartition, PartitionData]:
    """Return the parts of an answer by partition.

    A topic id that the plan does not have becomes its text, which matches no requested
    partition, so that the session recognizes a stray answer.
    """
    if not response.responses:
        return {}  # most answers of a session without news
    # Keyed by int: hashing a UUID calls a method written in Python.
    names = (
        {target.topic_id.int: tp.topic for tp, target in plan.wanted.items()}
        if plan.by_id
        else {}
    )
    found: dict[TopicPartition, PartitionData] = {}
    for topic in response.responses:
        name = topic.topic
        if plan.by_id:
            name = names.get(topic.topic_id.int) or str(topic.topic_id)
        for data in topic.partitions:
            found[TopicPartition(name, data.partition_index)] = data
    return found


def is_small(response: FetchResponse) -> bool:
    """Whether an answer takes well under a millisecond to judge."""
    partitions = [data for topic in response.responses for data in topic.partitions]
    size = sum(len(data.records or b"") for data in partitions)
    return len(partitions) <= _FEW and size <= _SMALL
