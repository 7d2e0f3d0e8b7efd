"""What group coordinators need of the cluster: offsets partitions and topics.

A shard, as in Kafka's own coordinator, is one partition of ``__consumer_offsets`` with
the groups whose names hash to it. Its leader coordinates them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeAlias
from uuid import UUID

from kafkaio._records.batch import read_batches
from kafkaio._records.builder import encode_batch
from kafkaio.testing.broker.cluster import OFFSETS_TOPIC, Cluster
from kafkaio.testing.broker.partition import Partition

__all__ = ["BrokerClusterPort", "ClusterPort", "KeyValue"]

#: A record of a shard; a value of None deletes what was written for the key.
KeyValue: TypeAlias = tuple[bytes, bytes | None]

_READ_BYTES = 1 << 20


class ClusterPort(Protocol):
    """The cluster as its group coordinators see it."""

    def shard_of(self, group: str) -> int:
        """Return the shard that a group belongs to."""
        ...

    def shards(self) -> list[int]:
        """Return every shard."""
        ...

    def coordinator(self, shard: int) -> int:
        """Return the node that coordinates a shard's groups, -1 for none."""
        ...

    def write(self, shard: int, records: Sequence[KeyValue], now_ms: int) -> None:
        """Append records to a shard."""
        ...

    def read(self, shard: int) -> Iterator[KeyValue]:
        """Read what was appended to a shard, oldest first."""
        ...

    def topic_id(self, name: str) -> UUID | None:
        """Return a topic's id, None if there is no such topic."""
        ...

    def topic_name(self, topic_id: UUID) -> str | None:
        """Return a topic's name, None if there is no such topic."""
        ...

    def partition_count(self, name: str) -> int:
        """Return the number of partitions of a topic, 0 if there is no such topic."""
        ...

    def topic_names(self) -> Iterable[str]:
        """Return the names of all topics that patterns are matched against."""
        ...


class BrokerClusterPort:
    """A `ClusterPort` of the embedded broker: shards are logs of the offsets topic."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def shard_of(self, group: str) -> int:
        """Return the shard that a group belongs to."""
        return self._cluster.offsets_partition(group).index

    def shards(self) -> list[int]:
        """Return every shard; none before the first group."""
        topic = self._cluster.topics.get(OFFSETS_TOPIC)
        return [] if topic is None else list(range(len(topic.partitions)))

    def _shard(self, shard: int) -> Partition:
        return self._cluster.topics[OFFSETS_TOPIC].partitions[shard]

    def coordinator(self, shard: int) -> int:
        """Return the node that leads the shard's partition, -1 for none."""
        return self._shard(shard).leader

    def write(self, shard: int, records: Sequence[KeyValue], now_ms: int) -> None:
        """Append records to a shard, in one batch."""
        batch = encode_batch((now_ms, key, value, ()) for key, value in records)
        self._shard(shard).append(batch, now_ms)

    def read(self, shard: int) -> Iterator[KeyValue]:
        """Read what was appended to a shard, oldest first."""
        log = self._shard(shard).log
        offset = log.start_offset
        while offset < log.end_offset:
            data = log.read(offset, _READ_BYTES)
            if not data:
                return
            for batch in read_batches(data):
                for record in batch.decode("", shard, offset):
                    if record.key is not None:
                        yield record.key, record.value
                offset = batch.last_offset + 1

    def topic_id(self, name: str) -> UUID | None:
        """Return a topic's id, None if nodes know of no such topic."""
        topic = self._cluster.known(name)
        return None if topic is None else topic.topic_id

    def topic_name(self, topic_id: UUID) -> str | None:
        """Return a topic's name, None if nodes know of no such topic."""
        topic = self._cluster.known_by_id(topic_id)
        return None if topic is None else topic.name

    def partition_count(self, name: str) -> int:
        """Return the number of partitions of a topic, 0 if there is no such topic."""
        topic = self._cluster.known(name)
        return 0 if topic is None else len(topic.partitions)

    def topic_names(self) -> list[str]:
        """Return the names of all topics, internal ones included."""
        return [one.name for one in self._cluster.visible()]
