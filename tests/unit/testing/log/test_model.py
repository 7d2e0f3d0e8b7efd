"""The log against a model: a list of batches, whatever is done to either."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kafkaio._records.batch import Compression, encode_batch, read_batches
from kafkaio.testing._log import Log, LogConfig, MemoryStorage, OffsetOutOfRangeError
from tests.unit.testing.log.batches import NOW, contents

CONFIG = LogConfig(
    segment_bytes=600, index_interval_bytes=150, retention_ms=500, retention_bytes=2000
)


@dataclass
class Batch:
    base: int
    epoch: int
    rows: list[tuple[int, bytes]]

    @property
    def next(self) -> int:
        return self.base + len(self.rows)


class LogMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.storage = MemoryStorage()
        self.log = Log.open(self.storage, CONFIG, NOW)
        self.batches: list[Batch] = []
        self.start = 0
        self.epoch = 0

    @property
    def end(self) -> int:
        return self.batches[-1].next if self.batches else self.start

    @property
    def rows(self) -> list[tuple[int, int, bytes, int]]:
        return [
            (batch.base + n, at, value, batch.epoch)
            for batch in self.batches
            for n, (at, value) in enumerate(batch.rows)
            if batch.base + n >= self.start
        ]

    @rule(
        sizes=st.lists(st.integers(1, 40), min_size=1, max_size=4),
        steps=st.lists(st.integers(-20, 50), min_size=4, max_size=4),
        codec=st.sampled_from(list(Compression)),
        is_new_epoch=st.booleans(),
    )
    def append(
        self, sizes: list[int], steps: list[int], codec: Compression, is_new_epoch: bool
    ) -> None:
        self.epoch += is_new_epoch
        base = self.end
        rows = [
            (NOW + base * 5 + step, b"%d" % n * size)
            for n, (size, step) in enumerate(zip(sizes, steps, strict=False))
        ]
        raw = encode_batch([(at, None, v, ()) for at, v in rows], compression=codec)
        done = self.log.append(raw, leader_epoch=self.epoch, now_ms=NOW)
        assert (done.base_offset, done.last_offset) == (base, base + len(rows) - 1)
        self.batches.append(Batch(base, self.epoch, rows))

    @rule()
    def reopen(self) -> None:
        self.log.close()
        self.log = Log.open(self.storage, CONFIG, NOW)
        assert self.log.recovery.problem is None

    @rule()
    def reopen_without_closing(self) -> None:
        before = self.log.segments
        self.log = Log.open(self.storage, CONFIG, NOW)
        assert self.log.segments == before

    @rule()
    def roll(self) -> None:
        self.log.roll(NOW)

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        before = data.draw(st.integers(0, self.end))
        self.start = max(self.start, before)
        assert self.log.delete_records(before) == self.start
        if not [batch for batch in self.batches if batch.next > self.start]:
            self.batches = [Batch(self.start, self.epoch, [])]

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.start, self.end))
        self.log.truncate_to(offset)
        kept = [batch for batch in self.batches if batch.next <= offset]
        if offset == self.end:
            kept = self.batches
        self.batches = kept
        end = self.log.end_offset
        if not kept or end <= self.start:
            # The batch that has the start is removed as a whole; the start stays.
            assert end == self.start
            self.batches = [Batch(end, self.epoch, [])]

    @rule(later=st.integers(0, 1500))
    def retain(self, later: int) -> None:
        self.log.apply_retention(NOW + self.end * 5 + later)
        assert self.log.start_offset >= self.start
        self.start = self.log.start_offset
        assert self.log.size_bytes < 2000 + 600 * 2

    @invariant()
    def the_same_records_are_read(self) -> None:
        found = [
            (r.offset, r.timestamp, r.value, r.leader_epoch) for r in contents(self.log)
        ]
        assert found == self.rows
        assert (self.log.start_offset, self.log.end_offset) == (self.start, self.end)

    @invariant()
    def timestamps_are_found(self) -> None:
        for timestamp in range(NOW - 20, NOW + self.end * 5 + 60, 37):
            expected = [row for row in self.rows if row[1] >= timestamp][:1]
            found = self.log.offset_for_timestamp(timestamp)
            actual = [] if found is None else [(found.offset, found.timestamp)]
            assert actual == [row[:2] for row in expected]

    @invariant()
    def reads_are_bounded(self) -> None:
        for offset in {self.start, (self.start + self.end) // 2, self.end}:
            for limit in (0, 150, 400):
                batches = list(read_batches(self.log.read(offset, limit)))
                size = sum(one.size_bytes for one in batches)
                assert size <= limit or len(batches) == 1
                assert bool(batches) == (offset < self.end)
                assert not batches or batches[0].next_offset > offset
        with pytest.raises(OffsetOutOfRangeError):
            self.log.read(self.end + 1, 1)


LogMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=25)
TestLog = LogMachine.TestCase
