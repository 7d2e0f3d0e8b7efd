"""The port of group coordinators to the cluster: offsets partitions and topics.

A shard, as in Kafka's own coordinator, is one partition of ``__consumer_offsets`` with
the groups whose names hash to it. Its leader coordinates them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeAlias
from uuid import UUID

from kafkaio._named_tuple import NamedTuple
from kafkaio._records.builder import BatchBuilder, encode_batch
from kafkaio.testing._broker.batches import batches_of, marker_of, producer_of
from kafkaio.testing._broker.cluster import OFFSETS_TOPIC, EmbeddedCluster
from kafkaio.testing._broker.partition import EmbeddedPartition
from kafkaio.testing._log import LogBatchHeader, read_header
from kafkaio.testing._log.segment import decode

#: A record of a shard; a value of None deletes what was written for the key.
KeyValue: TypeAlias = tuple[bytes, bytes | None]


class Stored(NamedTuple):
    """A record that was read from a shard.

    Attributes:
        key: its key.
        value: its value; None deletes what was written for the key.
        offset: its offset.
        producer_id: the producer in whose transaction it was written; -1 for none.
    """

    key: bytes
    value: bytes | None
    offset: int = -1
    producer_id: int = -1


class TransactionEnd(NamedTuple):
    """The end of a producer's transaction in a shard."""

    producer_id: int
    is_commit: bool


_READ_BYTES = 1 << 20


class ClusterPort(Protocol):
    """The cluster as its group coordinators see it."""

    @property
    def has_epochs_of_4_4(self) -> bool:
        """Whether the epochs of KIP-848 groups are those of Kafka 4.4."""
        ...

    def shard_of(self, group: str) -> int:
        """Return the shard that a group belongs to."""
        ...

    def shards(self) -> list[int]:
        """Return every shard."""
        ...

    def coordinator(self, shard: int) -> int:
        """Return the node that coordinates a shard's groups, -1 for none."""
        ...

    def write(
        self,
        shard: int,
        records: Sequence[KeyValue],
        now_ms: int,
        producer: tuple[int, int] | None = None,
    ) -> int:
        """Append records to a shard; return the offset of the first.

        Args:
            shard: the shard.
            records: the records.
            now_ms: the wall clock.
            producer: producer id and epoch of the transaction that they belong to.
        """
        ...

    def read(self, shard: int) -> Iterator[Stored | TransactionEnd]:
        """Read what was appended to a shard, oldest first."""
        ...

    def topic_id(self, name: str) -> UUID | None:
        """Return a topic's id, None if the topic does not exist."""
        ...

    def topic_name(self, topic_id: UUID) -> str | None:
        """Return a topic's name, None if the topic does not exist."""
        ...

    def partition_count(self, name: str) -> int:
        """Return the number of partitions of a topic, 0 if the topic does not exist."""
        ...

    def topic_names(self) -> Iterable[str]:
        """Return the names of all topics that patterns are matched against."""
        ...


class BrokerClusterPort:
    """A `ClusterPort` of the embedded broker: shards are logs of the offsets topic."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster

    @property
    def has_epochs_of_4_4(self) -> bool:
        """Whether the epochs of KIP-848 groups are those of Kafka 4.4."""
        return self._cluster.rules.has_epochs_of_4_4

    def shard_of(self, group: str) -> int:
        """Return the shard that a group belongs to."""
        return self._cluster.offsets_partition(group).index

    def shards(self) -> list[int]:
        """Return every shard; none before the first group."""
        topic = self._cluster.topics.get(OFFSETS_TOPIC)
        return [] if topic is None else list(range(len(topic.partitions)))

    def _shard(self, shard: int) -> EmbeddedPartition:
        return self._cluster.topics[OFFSETS_TOPIC].partitions[shard]

    def coordinator(self, shard: int) -> int:
        """Return the node that leads the shard's partition, -1 for none."""
        return self._shard(shard).leader

    def write(
        self,
        shard: int,
        records: Sequence[KeyValue],
        now_ms: int,
        producer: tuple[int, int] | None = None,
    ) -> int:
        """Append records to a shard, in one batch; return the offset of the first."""
        partition = self._shard(shard)
        rows = ((now_ms, key, value, ()) for key, value in records)
        if producer is None:
            return partition.append(encode_batch(rows), now_ms).base_offset
        builder = BatchBuilder(target_size=2**31 - 1, transactional=True)
        for row in rows:
            builder.try_append(*row)
        batch = builder.build(producer_id=producer[0], producer_epoch=producer[1])
        written = producer_of(read_header(batch))
        return partition.append(batch, now_ms, written).base_offset

    def read(self, shard: int) -> Iterator[Stored | TransactionEnd]:
        """Read what was appended to a shard, oldest first."""
        log = self._shard(shard).log
        offset = log.start_offset
        while offset < log.end_offset:
            data = log.read(offset, _READ_BYTES)
            if not data:
                return
            for header, raw in batches_of(data):
                if header.is_control:
                    marker = marker_of(header, raw)
                    if marker is not None:
                        # In the order of the log: it ends what came before.
                        yield TransactionEnd(marker.producer_id, marker.is_commit)
                else:
                    yield from _records(header, raw, offset)
                offset = header.next_offset

    def topic_id(self, name: str) -> UUID | None:
        """Return a topic's id, None if nodes know of no such topic."""
        topic = self._cluster.known(name)
        return None if topic is None else topic.topic_id

    def topic_name(self, topic_id: UUID) -> str | None:
        """Return a topic's name, None if nodes know of no such topic."""
        topic = self._cluster.known_by_id(topic_id)
        return None if topic is None else topic.name

    def partition_count(self, name: str) -> int:
        """Return the number of partitions of a topic, 0 if the topic does not exist."""
        topic = self._cluster.known(name)
        return 0 if topic is None else len(topic.partitions)

    def topic_names(self) -> list[str]:
        """Return the names of all topics, internal ones included."""
        return [one.name for one in self._cluster.visible()]


def _records(header: LogBatchHeader, raw: bytes, start_offset: int) -> Iterator[Stored]:
    producer_id = header.producer_id if header.is_transactional else -1
    for record in decode(raw, start_offset):
        if record.key is not None:
            yield Stored(record.key, record.value, record.offset, producer_id)
