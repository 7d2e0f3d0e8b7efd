"""Compaction: keeps the newest record of each key, the newest batch of each producer.

The batch of a producer is kept, without records if necessary, because its header is
what is known of the producer's sequence numbers after a restart. Records of aborted
transactions are removed; no other record is removed for their sake. Control batches
stay.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from kafkaio._records._impl import crc32c
from kafkaio._records._layout import (
    ATTRIBUTES_OFFSET,
    BATCH_HEADER,
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    CRC_OFFSET,
    DELETE_HORIZON,
    LENGTH_END,
    encode_varint,
)
from kafkaio._records.compression import Compression, Compressor
from kafkaio.testing._log.config import LogConfig
from kafkaio.testing._log.epochs import LeaderEpochs
from kafkaio.testing._log.header import LogBatchHeader
from kafkaio.testing._log.recovery import CLEANED_SUFFIX
from kafkaio.testing._log.segment import (
    MAX_RELATIVE,
    Segment,
    StoredBatch,
    decode,
    name_of,
)
from kafkaio.testing._log.storage import MemoryStorage, StoragePort
from kafkaio.types import Record

#: Later than any time: no tombstone can be removed.
NO_HORIZON = 2**63 - 1

_HEADER = struct.Struct(BATCH_HEADER)
_CRC = struct.Struct(">I")


def _field(data: bytes | None) -> bytes:
    return encode_varint(-1) if data is None else encode_varint(len(data)) + data


def _encode(record: Record, base_offset: int, base_timestamp: int) -> bytes:
    parts = [
        b"\0",
        encode_varint(record.timestamp - base_timestamp),
        encode_varint(record.offset - base_offset),
        _field(record.key),
        _field(record.value),
        encode_varint(len(record.headers)),
    ]
    for name, value in record.headers:
        parts += (_field(name.encode()), _field(value))
    body = b"".join(parts)
    return encode_varint(len(body)) + body


def rewrite(
    batch: StoredBatch, records: Sequence[Record], horizon: int | None
) -> bytes:
    """Return ``batch`` with only ``records``; its offsets and its codec stay.

    Args:
        batch: the stored batch.
        records: some of its records, possibly none.
        horizon: the time from which its tombstones can be removed; None if it has no
            tombstones.
    """
    header = batch.header
    attributes = header.attributes & ~DELETE_HORIZON
    base_timestamp = records[0].timestamp if records else header.base_timestamp
    if horizon is not None:
        attributes |= DELETE_HORIZON
        base_timestamp = horizon
    section = b"".join(_encode(r, header.base_offset, base_timestamp) for r in records)
    codec = Compression(attributes & CODEC_MASK)
    if codec is not Compression.NONE:
        # A batch without records is not compressed, as in Kafka.
        if records:
            section = Compressor(codec).compress(section)
        else:
            attributes &= ~CODEC_MASK
    newest = header.max_timestamp
    if not header.is_log_append_time and records:
        newest = max(record.timestamp for record in records)
    replaced = header._replace(
        length=BATCH_HEADER_SIZE - LENGTH_END + len(section),
        attributes=attributes,
        base_timestamp=base_timestamp,
        max_timestamp=newest,
        record_count=len(records),
    )
    raw = bytearray(_HEADER.pack(*replaced)) + section
    _CRC.pack_into(raw, CRC_OFFSET, crc32c(memoryview(raw)[ATTRIBUTES_OFFSET:]))
    return bytes(raw)


class Cleaner:
    """One pass over the older segments of a log.

    Args:
        storage: the files of the log.
        config: the configs of the log.
        now_ms: the time, in milliseconds since the epoch.
        is_aborted: returns whether a batch is part of an aborted transaction.

    Attributes:
        next_horizon: when the next of the remaining tombstones can be removed.
    """

    __slots__ = (
        "_config",
        "_is_aborted",
        "_newest",
        "_now_ms",
        "_producers",
        "_storage",
        "next_horizon",
    )

    def __init__(
        self,
        storage: StoragePort,
        config: LogConfig,
        now_ms: int,
        is_aborted: Callable[[LogBatchHeader], bool] = lambda header: False,
    ) -> None:
        self._storage = storage
        self._config = config
        self._is_aborted = is_aborted
        self._now_ms = now_ms
        self._newest: dict[bytes, int] = {}
        self._producers: dict[int, int] = {}
        self.next_horizon: int = NO_HORIZON

    def clean(
        self, segments: tuple[Segment, ...], cleanable: Sequence[Segment]
    ) -> tuple[tuple[Segment, ...], bool]:
        """Clean the ``cleanable`` segments, and join those that have become small.

        Returns:
            All segments, and whether any of them was rewritten.
        """
        self._learn(segments, cleanable)
        result: list[Segment] = []
        is_changed = False
        group: list[Segment] = []
        written: list[bytes] = []
        for segment in cleanable:
            batches = self._cleaned(segment)
            if group and not self._fits(group[0], segment, written, batches):
                is_changed |= self._replace(group, written)
                result.append(group[0])
                group, written = [], []
            group.append(segment)
            written += batches
        if group:
            is_changed |= self._replace(group, written)
            result.append(group[0])
        return (*result, *segments[len(cleanable) :]), is_changed

    def cleanable(self, segments: tuple[Segment, ...], up_to: int) -> list[Segment]:
        """The segments that can be cleaned, oldest first.

        Never the newest segment; and none from the first one on that has a record
        younger than ``min_compaction_lag_ms`` or extends beyond ``up_to``.
        """
        youngest = self._now_ms - self._config.min_compaction_lag_ms
        has_lag = self._config.min_compaction_lag_ms > 0
        cleanable: list[Segment] = []
        for segment in segments[:-1]:
            is_young = has_lag and segment.largest_timestamp > youngest
            if is_young or segment.next_offset > up_to:
                break
            cleanable.append(segment)
        return cleanable

    def _learn(self, segments: Sequence[Segment], cleanable: Sequence[Segment]) -> None:
        for segment in cleanable:
            for batch in segment.batches():
                # An aborted record must not replace an older one: no reader sees it.
                if batch.header.is_control or self._is_aborted(batch.header):
                    continue
                for record in decode(batch.raw):
                    if record.key is not None:
                        self._newest[record.key] = record.offset
        for segment in segments:
            for batch in segment.batches():
                # The last batch of a producer has its newest sequence number, from
                # which a leader knows repeated batches.
                if batch.header.producer_id >= 0 and not batch.header.is_control:
                    producer = batch.header.producer_id
                    self._producers[producer] = batch.header.last_offset

    def _cleaned(self, segment: Segment) -> list[bytes]:
        cleaned: list[bytes] = []
        for batch in segment.batches():
            raw = batch.raw if batch.header.is_control else self._filtered(batch)
            if raw is not None:
                cleaned.append(raw)
        return cleaned

    def _filtered(self, batch: StoredBatch) -> bytes | None:
        header = batch.header
        horizon = header.base_timestamp if header.attributes & DELETE_HORIZON else None
        records = decode(batch.raw)
        is_past = horizon is not None and horizon <= self._now_ms
        kept = [r for r in records if self._is_kept(r, is_past=is_past)]
        if self._is_aborted(header):
            kept = []
        # An empty batch stays for the sequence number of its producer, see `_learn`.
        if not kept and self._producers.get(header.producer_id) != header.last_offset:
            return None
        has_tombstones = any(record.value is None for record in kept)
        if not has_tombstones:
            horizon = None
        # The first pass that meets a tombstone decides when it can be removed
        # (KIP-534), so that readers have the time to see it.
        elif horizon is None:
            horizon = self._now_ms + self._config.delete_retention_ms
        if horizon is not None:
            self.next_horizon = min(self.next_horizon, horizon)
            if not header.attributes & DELETE_HORIZON:
                return rewrite(batch, kept, horizon)
        if len(kept) == len(records):
            return batch.raw
        return rewrite(batch, kept, horizon)

    def _is_kept(self, record: Record, *, is_past: bool) -> bool:
        if record.key is None or self._newest.get(record.key, -1) > record.offset:
            return False
        return record.value is not None or not is_past

    def _fits(
        self,
        first: Segment,
        segment: Segment,
        written: Sequence[bytes],
        batches: Sequence[bytes],
    ) -> bool:
        size = sum(map(len, written)) + sum(map(len, batches))
        # The joined segment has the base of the first, and its indexes have relative
        # offsets.
        is_near = segment.next_offset - 1 - first.base_offset <= MAX_RELATIVE
        return size <= self._config.segment_bytes and is_near

    def _replace(self, group: Sequence[Segment], batches: Sequence[bytes]) -> bool:
        # The joined file replaces the first segment of the group in one step. If the
        # process ends before the others are removed, recovery recognises them: they
        # begin below the end of the joined one.
        first, *others = group
        size = sum(map(len, batches))
        if not others and size == first.size_bytes and self._is_same(first, batches):
            return False
        scratch = name_of(first.base_offset, ".log") + CLEANED_SUFFIX
        file = self._storage.open(scratch)
        # A pass that was broken off may have left one.
        file.truncate(0)
        for raw in batches:
            file.append(raw)
        file.flush()
        file.close()
        first.replace_by(scratch)
        # The log knows the epochs already; those found here are discarded.
        first.recover(LeaderEpochs(MemoryStorage()))
        first.complete()
        for segment in others:
            segment.remove()
        self._storage.sync()
        return True

    @staticmethod
    def _is_same(segment: Segment, batches: Sequence[bytes]) -> bool:
        return [batch.raw for batch in segment.batches()] == list(batches)
