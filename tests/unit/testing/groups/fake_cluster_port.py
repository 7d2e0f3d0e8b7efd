from __future__ import annotations

from collections.abc import Iterator, Sequence
from uuid import UUID, uuid5

from kafkaio.testing._groups.cluster_port import KeyValue, Stored, TransactionEnd

NAMESPACE = UUID(int=1)


class FakeClusterPort:
    """A cluster of one shard, led by node 0, with topics by name."""

    def __init__(self, **topics: int) -> None:
        self.topics = topics
        self.leader = 0
        self.has_epochs_of_4_4 = True
        self.records: list[KeyValue] = []

    def shard_of(self, group: str) -> int:
        return 0

    def shards(self) -> list[int]:
        return [0]

    def coordinator(self, shard: int) -> int:
        return self.leader

    def write(
        self,
        shard: int,
        records: Sequence[KeyValue],
        now_ms: int,
        producer: tuple[int, int] | None = None,
    ) -> int:
        self.records += records
        return len(self.records) - len(records)

    def read(self, shard: int) -> Iterator[Stored | TransactionEnd]:
        for offset, (key, value) in enumerate(self.records):
            yield Stored(key, value, offset)

    def topic_id(self, name: str) -> UUID | None:
        return uuid5(NAMESPACE, name) if name in self.topics else None

    def topic_name(self, topic_id: UUID) -> str | None:
        return next(
            (one for one in self.topics if self.topic_id(one) == topic_id), None
        )

    def partition_count(self, name: str) -> int:
        return self.topics.get(name, 0)

    def topic_names(self) -> list[str]:
        return list(self.topics)
