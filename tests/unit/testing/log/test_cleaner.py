"""Compaction: what stays of each key, each producer and each tombstone."""

import random
from dataclasses import replace

import pytest

from kafkaio._records.batch import (
    BatchBuilder,
    Compression,
    ControlType,
    EndTxnMarker,
    control_batch,
    read_batches,
)
from kafkaio.testing._log import Log, LogConfig, MemoryStorage
from tests.unit.testing.log.batches import NOW, batch, contents, keyed, values

CONFIG = LogConfig(cleanup_policy="compact", delete_retention_ms=1000)


def opened(config: LogConfig = CONFIG) -> Log:
    return Log.open(MemoryStorage(), config, NOW)


def append(log: Log, *pairs: tuple[bytes, bytes | None], **options: object) -> None:
    raw = keyed(pairs, **options)  # type: ignore[arg-type]
    log.append(raw, leader_epoch=0, now_ms=NOW)


@pytest.mark.parametrize("codec", list(Compression))
def test_the_newest_record_of_each_key_stays(codec: Compression) -> None:
    log = opened()
    append(log, (b"a", b"1"), (b"b", b"2"), (b"a", b"3"), compression=codec)
    append(log, (b"a", b"4"), (b"c", b"5"), compression=codec)
    before = {record.offset: record for record in contents(log)}
    log.roll(NOW)
    assert log.compact(NOW)
    assert values(log) == [(1, b"2"), (3, b"4"), (4, b"5")]
    # Key, headers, time and epoch are those that they had.
    assert [before[r.offset] for r in contents(log)] == contents(log)
    assert (log.start_offset, log.end_offset) == (0, 5)
    assert not log.compact(NOW)


def test_the_newest_segment_is_left_alone() -> None:
    log = opened()
    append(log, (b"a", b"1"))
    log.roll(NOW)
    append(log, (b"a", b"2"))
    assert not log.compact(NOW)
    assert values(log) == [(0, b"1"), (1, b"2")]


def test_reads_go_on_from_offsets_that_are_gone() -> None:
    log = opened()
    for n in range(10):
        append(log, (b"k", b"%d" % n))
    log.roll(NOW)
    append(log, (b"other", b"x"))
    log.compact(NOW)
    for offset in range(10):
        data = log.read(offset, 10_000)
        assert next(read_batches(data)).last_offset == 9
    assert next(read_batches(log.read(10, 10_000))).base_offset == 10


def test_small_segments_are_joined() -> None:
    log = opened(replace(CONFIG, segment_bytes=300))
    for n in range(30):
        append(log, (b"%d" % (n % 2), b"value %d" % n))
    before = len(log.segments)
    log.roll(NOW)
    log.compact(NOW)
    assert before > 5
    assert [s.base_offset for s in log.segments] == [0, 30]
    assert values(log) == [(28, b"value 28"), (29, b"value 29")]


def test_a_tombstone_stays_for_a_while() -> None:
    log = opened()
    append(log, (b"a", b"1"), (b"b", b"2"))
    append(log, (b"a", None), (b"b", b"3"))
    log.roll(NOW)
    assert log.compact(NOW)
    assert values(log) == [(2, None), (3, b"3")]
    assert [r.timestamp for r in contents(log)] == [NOW, NOW]
    (one,) = read_batches(log.read(0, 10_000))
    assert (one.has_delete_horizon, one.base_timestamp) == (True, NOW + 1000)
    assert not log.compact(NOW + 999)
    assert log.compact(NOW + 1000)
    assert values(log) == [(3, b"3")]
    assert not next(read_batches(log.read(0, 10_000))).has_delete_horizon


def test_a_younger_record_is_not_compacted() -> None:
    log = opened(replace(CONFIG, min_compaction_lag_ms=500))
    append(log, (b"a", b"1"))
    append(log, (b"a", b"2"))
    log.roll(NOW)
    assert not log.compact(NOW + 499)
    assert not log.compact(NOW + 500, up_to=1)
    assert log.compact(NOW + 500, up_to=2)
    assert values(log) == [(1, b"2")]


def test_a_record_without_a_key_is_removed() -> None:
    log = opened(LogConfig())
    log.append(batch(b"no key"), leader_epoch=0, now_ms=NOW)
    append(log, (b"a", b"1"))
    log.roll(NOW)
    log.config = CONFIG
    assert log.compact(NOW)
    assert values(log) == [(1, b"1")]


def produced(key: bytes, sequence: int, codec: Compression) -> bytes:
    builder = BatchBuilder(compression=codec)
    builder.try_append(NOW, key, b"v")
    return builder.build(producer_id=7, producer_epoch=1, base_sequence=sequence)


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.ZSTD])
def test_a_producers_newest_batch_stays_without_records(codec: Compression) -> None:
    log = opened()
    for sequence in range(2):
        log.append(produced(b"a", sequence, codec), leader_epoch=0, now_ms=NOW)
    append(log, (b"a", b"newest"))
    log.roll(NOW)
    log.compact(NOW)
    empty, last = read_batches(log.read(0, 10_000))
    assert (empty.base_offset, empty.count, empty.last_offset) == (1, 0, 1)
    assert (empty.producer_id, empty.base_sequence) == (7, 1)
    assert last.base_offset == 2


def test_control_records_stay() -> None:
    log = opened()
    marker = EndTxnMarker(ControlType.COMMIT)
    raw = control_batch(marker, producer_id=7, producer_epoch=1, timestamp=NOW)
    log.append(raw, leader_epoch=0, now_ms=NOW)
    append(log, (b"a", b"1"))
    append(log, (b"a", b"2"))
    log.roll(NOW)
    log.compact(NOW)
    one, two = read_batches(log.read(0, 10_000))
    assert one.is_control
    assert two.base_offset == 2


def test_log_append_time_stays() -> None:
    log = opened(replace(CONFIG, message_timestamp_type="LogAppendTime"))
    append(log, (b"a", b"1"), (b"a", b"2"), timestamp=5)
    log.roll(NOW)
    log.compact(NOW)
    assert [(r.timestamp, r.value) for r in contents(log)] == [(NOW, b"2")]


def test_the_log_opens_as_it_was_compacted() -> None:
    dice = random.Random(5)
    storage = MemoryStorage()
    log = Log.open(storage, replace(CONFIG, segment_bytes=500), NOW)
    expected: dict[bytes, bytes | None] = {}
    for n in range(300):
        key = b"%d" % dice.randrange(20)
        value = b"%d" % n if dice.random() < 0.8 else None
        expected[key] = value
        append(log, (key, value))
        if dice.random() < 0.05:
            log.compact(NOW + n * 100)
    log.roll(NOW)
    log.compact(NOW + 100_000)
    log.compact(NOW + 200_000)
    found = {record.key: record.value for record in contents(log)}
    assert found == {key: value for key, value in expected.items() if value}
    log.close()
    again = Log.open(storage, log.config, NOW)
    assert again.segments == log.segments
    assert contents(again) == contents(log)


def test_joined_segments_left_by_a_crash_are_removed() -> None:
    storage = MemoryStorage()
    log = Log.open(storage, replace(CONFIG, segment_bytes=200), NOW)
    for n in range(12):
        append(log, (b"%d" % (n % 6), b"value %d" % n))
    log.roll(NOW)
    second = log.segments[1]
    name = f"{second.base_offset:020d}.log"
    old = storage.open(name).read(0, second.size_bytes)
    log.config = replace(CONFIG, segment_bytes=2000)
    log.compact(NOW)
    log.close()
    before = contents(log)

    storage.open(name).append(old)
    storage.open("00000000000000000000.log.cleaned").append(b"half of")
    again = Log.open(storage, log.config, NOW)
    assert again.segments == log.segments
    assert contents(again) == before
    assert again.recovery.removed_segments == 1
    assert name not in storage.names()
    assert "00000000000000000000.log.cleaned" not in storage.names()


def test_a_log_without_compaction_is_not_compacted() -> None:
    log = opened(LogConfig())
    append(log, (b"a", b"1"), (b"a", b"2"))
    log.roll(NOW)
    assert not log.compact(NOW)
    assert values(log) == [(0, b"1"), (1, b"2")]


def test_records_since_the_last_pass_are_cleaned() -> None:
    log = opened()
    for n in range(4):
        append(log, (b"a", b"%d" % n), (b"b", b"%d" % n))
        log.roll(NOW)
        assert log.compact(NOW) == (n > 0)
        assert not log.compact(NOW)
        assert values(log) == [(2 * n, b"%d" % n), (2 * n + 1, b"%d" % n)]
    log.truncate_to(6)
    append(log, (b"c", b"x"), (b"c", b"y"))
    log.roll(NOW)
    assert log.compact(NOW)
    assert values(log) == [(log.end_offset - 1, b"y")]
