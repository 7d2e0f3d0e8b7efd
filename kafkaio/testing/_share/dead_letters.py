"""The dead letters of share groups, which brokers write since Kafka 4.4 (KIP-1191)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kafkaio._records.builder import encode_batch
from kafkaio.testing._broker.batches import batches_of
from kafkaio.testing._broker.cluster import AT_ONCE, EmbeddedCluster, Topic
from kafkaio.testing._broker.configs import GROUP
from kafkaio.testing._broker.partition import NO_LEADER, EmbeddedPartition
from kafkaio.testing._broker.refusal import Refusal
from kafkaio.testing._log.segment import decode
from kafkaio.testing._share.partition import DeadRecords

_FIRST_LEVEL: Final = 2
_TOPIC: Final = "errors.deadletterqueue.topic.name"
_COPIES: Final = "errors.deadletterqueue.copy.record.enable"
_PREFIX: Final = "errors.deadletterqueue.topic.name.prefix"
_CREATES: Final = "errors.deadletterqueue.auto.create.topics.enable"
_ENABLED: Final = "errors.deadletterqueue.group.enable"
_REJECTED: Final = b"Offset rejected by client."
_TOO_OFTEN: Final = b"Offset delivery count exceeded the threshold."

Content = tuple[bytes | None, bytes | None]


class DeadLetters:
    """Writes what was rejected, or delivered too often, to the topics of the groups.

    As in Kafka, nothing is written and nobody is told if the cluster's level of
    ``share.version`` is below 2, or if the topic does not exist, has not the prefix
    that brokers demand, or does not allow it by its config.

    Args:
        cluster: has the topics and the configs.
    """

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster

    def write(
        self, group: str, source: EmbeddedPartition, dead: Sequence[DeadRecords]
    ) -> None:
        """Write a letter for each record.

        Args:
            group: the group.
            source: the partition that has the records.
            dead: the records.
        """
        topic = self._topic(group)
        if topic is None:
            return
        # Kafka's choice: letters of one partition lie in one.
        target = topic.partitions[source.index % len(topic.partitions)]
        if target.leader == NO_LEADER:
            return
        copies = self._cluster.configs.of(GROUP, group).get(_COPIES) == "true"
        now_ms = self._cluster.clock.wall_ms()
        for found in dead:
            rows = [
                (now_ms, *content, _headers(group, source, offset, found))
                for offset, content in _contents(source, found, copies=copies)
            ]
            if rows:
                target.append(encode_batch(rows), now_ms)

    def _topic(self, group: str) -> Topic | None:
        """Return the topic of a group; None if nothing can be written."""
        cluster = self._cluster
        name = cluster.configs.of(GROUP, group).get(_TOPIC, "")
        prefix = cluster.configs.in_force(_PREFIX) or ""
        if (
            not name
            or not name.startswith(prefix)
            or cluster.level_of("share.version") < _FIRST_LEVEL
        ):
            return None
        topic = cluster.topics.get(name)
        if topic is None and cluster.configs.in_force(_CREATES) == "true":
            topic = self._create(name)
        if topic is None or topic.settings.get(_ENABLED) != "true":
            return None
        return topic

    def _create(self, name: str) -> Topic | None:
        configs = self._cluster.configs
        partitions = int(configs.in_force("num.partitions") or 1)
        factor = int(configs.in_force("default.replication.factor") or 1)
        factor = min(factor, len(self._cluster.live))
        try:
            return self._cluster.create_topic(
                name, partitions, factor, {_ENABLED: "true"}, AT_ONCE
            )
        except Refusal:
            return None


def _headers(
    group: str, source: EmbeddedPartition, offset: int, found: DeadRecords
) -> tuple[tuple[str, bytes], ...]:
    return (
        ("__dlq.errors.topic", source.topic.encode()),
        ("__dlq.errors.partition", str(source.index).encode()),
        ("__dlq.errors.offset", str(offset).encode()),
        ("__dlq.errors.group", group.encode()),
        ("__dlq.errors.delivery.count", str(found.deliveries).encode()),
        ("__dlq.errors.message", _REJECTED if found.is_rejected else _TOO_OFTEN),
    )


def _contents(
    source: EmbeddedPartition, found: DeadRecords, *, copies: bool
) -> Iterator[tuple[int, Content]]:
    """Yield the offsets, with key and value if the group wants copies."""
    contents: dict[int, Content] = {}
    if copies:
        contents = dict(_read(source, found.first, found.last))
    for offset in range(found.first, found.last + 1):
        yield offset, contents.get(offset, (None, None))


def _read(
    source: EmbeddedPartition, first: int, last: int
) -> Iterator[tuple[int, Content]]:
    offset = max(first, source.start_offset)
    while offset <= last:
        data = source.log.read(offset, 1)
        if not data:
            return
        for header, raw in batches_of(data):
            if not header.is_control:
                for record in decode(raw):
                    if first <= record.offset <= last:
                        yield record.offset, (record.key, record.value)
            offset = header.next_offset
