"""What is kept of share partitions: the state that a next leader continues from.

It is written to ``__share_group_state``, one snapshot for each change, and read from
there on first use. So a broker with a data directory finds it again after a restart.
"""

from __future__ import annotations

import struct
from base64 import urlsafe_b64encode
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from kafkaio._named_tuple import NamedTuple
from kafkaio._records.builder import encode_batch
from kafkaio.protocol._codec import decode, encode
from kafkaio.testing._broker.batches import batches_of
from kafkaio.testing._broker.cluster import (
    SHARE_STATE_TOPIC,
    EmbeddedCluster,
    java_hash,
)
from kafkaio.testing._broker.partition import EmbeddedPartition
from kafkaio.testing._log.segment import decode as decode_records
from kafkaio.testing._share.formats import (
    UPDATE,
    SnapshotValue,
    StateBatch,
    UpdateValue,
    read_state_key,
    state_key,
)
from kafkaio.testing._share.inflight import RecordState
from kafkaio.testing._share.partition import ShareImage

#: The start of a share partition of which nothing was delivered yet.
UNINITIALIZED: Final = -1
_VERSION: Final = struct.pack(">h", 0)
_READ_BYTES: Final = 1 << 20


class ShareKey(NamedTuple):
    """A share partition: a group, a topic's id, and the partition's number."""

    group: str
    topic_id: UUID
    partition: int


@dataclass(frozen=True, slots=True)
class KeptState:
    """The state of a share partition.

    Attributes:
        image: its records.
        epoch: grows when an administrator changes the start.
        leader_epoch: the leader epoch of the last change.
        snapshots: the number of changes.
    """

    image: ShareImage
    epoch: int = 0
    leader_epoch: int = 0
    snapshots: int = 0


class ShareStates:
    """The states of all share partitions.

    Args:
        cluster: has the topic that they are written to.
    """

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster
        self._states: dict[ShareKey, KeptState] = {}
        topic = cluster.topics.get(SHARE_STATE_TOPIC)
        for partition in [] if topic is None else topic.partitions:
            self._read(partition)

    def get(self, key: ShareKey) -> KeptState | None:
        """Return the state of a share partition; None if the group does not have it."""
        return self._states.get(key)

    def of_group(self, group: str) -> dict[UUID, dict[int, KeptState]]:
        """Return the states of a group, by topic id and partition."""
        found: dict[UUID, dict[int, KeptState]] = {}
        for key in sorted(key for key in self._states if key.group == group):
            found.setdefault(key.topic_id, {})[key.partition] = self._states[key]
        return found

    def initialize(self, key: ShareKey) -> bool:
        """Add a share partition; return False if it is there already."""
        if key in self._states:
            return False
        self._put(key, KeptState(ShareImage(UNINITIALIZED)))
        return True

    def write(
        self, key: ShareKey, image: ShareImage, epoch: int, leader_epoch: int
    ) -> bool:
        """Keep a change; return False if the leader's state is not the current one."""
        state = self._states.get(key)
        if state is None or state.epoch != epoch:
            return False
        self._put(key, replace(state, image=image, leader_epoch=leader_epoch))
        return True

    def reset(self, key: ShareKey, start: int) -> None:
        """Change the start, for the leader that reads the state next."""
        before = self._states.get(key) or KeptState(ShareImage(start))
        self._put(key, replace(before, image=ShareImage(start), epoch=before.epoch + 1))

    def remove(self, key: ShareKey) -> None:
        """Forget a share partition."""
        if self._states.pop(key, None) is not None:
            self._append(key, None)

    # ---- the topic ---------------------------------------------------------------

    def _put(self, key: ShareKey, state: KeptState) -> None:
        state = replace(state, snapshots=state.snapshots + 1)
        self._states[key] = state
        now_ms = self._cluster.clock.wall_ms()
        value = SnapshotValue(
            snapshot_epoch=state.snapshots - 1,
            state_epoch=state.epoch,
            leader_epoch=state.leader_epoch,
            start_offset=state.image.start,
            create_timestamp=now_ms,
            write_timestamp=now_ms,
            state_batches=[
                StateBatch(
                    first_offset=first,
                    last_offset=last,
                    delivery_state=kind,
                    delivery_count=count,
                )
                for first, last, kind, count in state.image.runs
            ],
            delivery_complete_count=state.image.completed,
        )
        self._append(key, _VERSION + encode(value, 0))

    def _append(self, key: ShareKey, value: bytes | None) -> None:
        now_ms = self._cluster.clock.wall_ms()
        # Kafka's own hash: a log that a real broker wrote has the key in the same
        # partition.
        topic_id = urlsafe_b64encode(key.topic_id.bytes).decode().rstrip("=")
        name = f"{key.group}:{topic_id}:{key.partition}"
        partitions = self._cluster.share_state_topic().partitions
        partition = partitions[abs(java_hash(name)) % len(partitions)]
        row = (now_ms, state_key(*key), value, ())
        partition.append(encode_batch([row]), now_ms)

    def _read(self, partition: EmbeddedPartition) -> None:
        log = partition.log
        offset = log.start_offset
        while offset < log.end_offset:
            data = log.read(offset, _READ_BYTES)
            if not data:
                return
            for header, raw in batches_of(data):
                offset = header.next_offset
                for record in decode_records(raw, 0):
                    if record.key is not None:
                        self._apply(record.key, record.value)

    def _apply(self, raw_key: bytes, value: bytes | None) -> None:
        kind, group, topic_id, index = read_state_key(raw_key)
        key = ShareKey(group, topic_id, index)
        if value is None:
            self._states.pop(key, None)
        elif kind == UPDATE:
            found = decode(UpdateValue, 0, value[len(_VERSION) :])
            before = self._states.get(key)
            if before is not None:
                image = _updated(before.image, found)
                self._states[key] = replace(
                    before, image=image, leader_epoch=found.leader_epoch
                )
        else:
            snapshot = decode(SnapshotValue, 0, value[len(_VERSION) :])
            self._states[key] = KeptState(
                ShareImage(snapshot.start_offset, _runs(snapshot.state_batches)),
                snapshot.state_epoch,
                snapshot.leader_epoch,
                snapshot.snapshot_epoch + 1,
            )


_Runs = tuple[tuple[int, int, RecordState, int], ...]


def _runs(batches: list[StateBatch]) -> _Runs:
    return tuple(
        (
            one.first_offset,
            one.last_offset,
            RecordState(one.delivery_state),
            one.delivery_count,
        )
        for one in batches
    )


def _updated(image: ShareImage, update: UpdateValue) -> ShareImage:
    """Apply an update: what it names replaces what was known of these offsets."""
    start = image.start if update.start_offset < 0 else update.start_offset
    runs = list(_runs(update.state_batches))
    named = [(first, last) for first, last, *_ in runs]
    for first, last, state, count in image.runs:
        left = [(first, last)]
        for base, end in named:
            left = [
                part
                for low, high in left
                for part in ((low, min(high, base - 1)), (max(low, end + 1), high))
                if part[0] <= part[1]
            ]
        runs += [(low, high, state, count) for low, high in left]
    kept = sorted(
        (max(first, start), last, state, count)
        for first, last, state, count in runs
        if last >= start
    )
    return ShareImage(start, tuple(kept))
