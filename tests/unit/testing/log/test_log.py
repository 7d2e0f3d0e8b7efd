"""The log: appends, reads, searches and deletion."""

import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kafkaio._records._impl import crc32c
from kafkaio._records.batch import Compression, encode_batch, read_batches
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing._log import (
    BatchListTooLargeError,
    BatchTooLargeError,
    CorruptBatchError,
    DiskStorage,
    InvalidBatchError,
    InvalidTimestampError,
    Log,
    LogConfig,
    LogError,
    MemoryStorage,
    OffsetOutOfRangeError,
    StoragePort,
    TimestampOffset,
)
from tests.unit.testing.log.batches import NOW, batch, contents, keyed, records, values

SMALL = LogConfig(segment_bytes=300, index_interval_bytes=100)


@pytest.fixture(params=["memory", "disk"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StoragePort]:
    is_memory = request.param == "memory"
    made = MemoryStorage() if is_memory else DiskStorage(tmp_path / "orders-0")
    yield made
    made.close()


def opened(storage: StoragePort, config: LogConfig | None = None) -> Log:
    return Log.open(storage, config or LogConfig(), NOW)


def filled(storage: StoragePort, count: int, config: LogConfig = SMALL) -> Log:
    log = opened(storage, config)
    for n in range(count):
        log.append(batch(b"%d" % n, timestamp=NOW + n), leader_epoch=0, now_ms=NOW)
    return log


# Appending


def test_a_new_log_is_empty(storage: StoragePort) -> None:
    log = opened(storage)
    assert (log.start_offset, log.end_offset, log.size_bytes) == (0, 0, 0)
    assert log.read(0, 1000) == b""
    assert log.max_timestamp() is None
    assert log.offset_for_timestamp(0) is None
    assert log.end_offset_for_epoch(0) == (-1, -1)


def test_a_leader_sets_offset_and_epoch(storage: StoragePort) -> None:
    log = opened(storage)
    log.append(batch(b"a", b"b"), leader_epoch=3, now_ms=NOW)
    done = log.append(batch(b"c") + batch(b"d", b"e"), leader_epoch=5, now_ms=NOW)

    assert (done.base_offset, done.last_offset, done.log_append_time) == (2, 4, -1)
    found = contents(log)
    assert [(r.offset, r.leader_epoch, r.value) for r in found] == [
        (0, 3, b"a"),
        (1, 3, b"b"),
        (2, 5, b"c"),
        (3, 5, b"d"),
        (4, 5, b"e"),
    ]
    assert log.leader_epochs == ((3, 0), (5, 2))


def test_log_append_time_replaces_the_producers(storage: StoragePort) -> None:
    log = opened(storage, LogConfig(message_timestamp_type="LogAppendTime"))
    done = log.append(batch(b"a", timestamp=5), leader_epoch=0, now_ms=NOW)
    assert done.log_append_time == NOW
    assert [r.timestamp for r in contents(log)] == [NOW]


def sealed(raw: bytes, position: int, field: str, value: int) -> bytes:
    copy = bytearray(raw)
    struct.pack_into(field, copy, position, value)
    struct.pack_into(">I", copy, 17, crc32c(copy[21:]))
    return bytes(copy)


GOOD = batch(b"a", b"b")
PACKED = batch(bytes(300), compression=Compression.ZSTD)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", InvalidBatchError),
        (GOOD[:40], CorruptBatchError),
        (GOOD[:-1], CorruptBatchError),
        (GOOD + b"\0", CorruptBatchError),
        (GOOD[:-1] + b"\xff", CorruptBatchError),
        (sealed(GOOD, 8, ">i", 20), CorruptBatchError),
        (sealed(GOOD, 16, ">b", 1), CorruptBatchError),
        (sealed(GOOD, 23, ">i", 7), CorruptBatchError),
        (sealed(GOOD, 23, ">i", -1), CorruptBatchError),
        (sealed(GOOD, 57, ">i", 0), CorruptBatchError),
        (sealed(GOOD, 61, ">b", 3), InvalidBatchError),
        (sealed(PACKED, 61, ">i", 0), InvalidBatchError),
        (batch(bytes(500)), BatchTooLargeError),
        (batch(bytes(300)) * 3, BatchListTooLargeError),
        (batch(timestamp=NOW + 3_600_001), InvalidTimestampError),
        (batch(timestamp=NOW - 1001), InvalidTimestampError),
    ],
)
def test_a_refused_append_changes_nothing(data: bytes, error: type[LogError]) -> None:
    config = LogConfig(
        max_message_bytes=500,
        segment_bytes=1000,
        message_timestamp_before_max_ms=1000,
    )
    log = opened(MemoryStorage(), config)
    log.append(batch(b"before"), leader_epoch=0, now_ms=NOW)
    with pytest.raises(error) as caught:
        log.append(data, leader_epoch=1, now_ms=NOW)
    assert caught.value.error_code is not ErrorCode.UNKNOWN_SERVER_ERROR
    assert values(log) == [(0, b"before")]
    assert log.leader_epochs == ((0, 0),)


def test_a_missing_timestamp_is_not_too_old() -> None:
    log = opened(MemoryStorage(), LogConfig(message_timestamp_before_max_ms=1))
    log.append(batch(b"a", timestamp=-1), leader_epoch=0, now_ms=NOW)
    assert log.end_offset == 1


def test_a_compacted_log_requires_keys() -> None:
    log = opened(MemoryStorage(), LogConfig(cleanup_policy="compact"))
    with pytest.raises(InvalidBatchError):
        log.append(batch(b"a"), leader_epoch=0, now_ms=NOW)
    nonsense = sealed(batch(b"a", key=b"k"), 61, ">b", 3)
    with pytest.raises(InvalidBatchError):
        log.append(nonsense, leader_epoch=0, now_ms=NOW)
    log.append(batch(b"a", key=b"k"), leader_epoch=0, now_ms=NOW)
    assert log.end_offset == 1


def test_a_follower_keeps_what_the_leader_set(storage: StoragePort) -> None:
    leader = opened(MemoryStorage())
    leader.append(batch(b"a", b"b"), leader_epoch=2, now_ms=NOW)
    leader.append(batch(b"c"), leader_epoch=4, now_ms=NOW)
    data = leader.read(0, 10_000)

    follower = opened(storage)
    follower.append_as_follower(data, now_ms=NOW)
    assert follower.read(0, 10_000) == data
    assert follower.leader_epochs == leader.leader_epochs
    with pytest.raises(InvalidBatchError):
        follower.append_as_follower(data, now_ms=NOW)
    assert follower.end_offset == 3


# Rolling and flushing


def test_segments_are_named_by_their_base_offset(tmp_path: Path) -> None:
    log = filled(DiskStorage(tmp_path), 10)
    log.close()
    bases = [segment.base_offset for segment in log.segments]
    assert len(bases) > 2
    logs = sorted(path.name for path in tmp_path.glob("*.log"))
    assert logs == [f"{base:020d}.log" for base in bases]
    assert all(segment.size_bytes <= 300 for segment in log.segments)


def test_a_segment_is_rolled_by_the_time_in_its_records(storage: StoragePort) -> None:
    log = opened(storage, LogConfig(segment_ms=1000))
    for timestamp in (NOW, NOW + 1000, NOW + 1001):
        log.append(batch(b"a", timestamp=timestamp), leader_epoch=0, now_ms=NOW)
    assert [s.base_offset for s in log.segments] == [0, 2]


def test_without_timestamps_it_is_rolled_by_its_age(storage: StoragePort) -> None:
    log = opened(storage, LogConfig(segment_ms=1000))
    for now in (NOW, NOW + 1000, NOW + 1001):
        log.append(batch(b"a", timestamp=-1), leader_epoch=0, now_ms=now)
    assert [s.base_offset for s in log.segments] == [0, 2]


def test_an_empty_segment_is_never_rolled(storage: StoragePort) -> None:
    log = opened(storage)
    log.roll(NOW)
    assert len(log.segments) == 1


class Spy(MemoryStorage):
    """Counts the flushes of batches."""

    def __init__(self) -> None:
        super().__init__()
        self.flushes = 0

    def open(self, name: str):  # type: ignore[no-untyped-def]
        file = super().open(name)
        spy = self

        class Counted(type(file)):  # type: ignore[misc]
            __slots__ = ()

            def flush(self) -> None:
                spy.flushes += name.endswith(".log")

        file.__class__ = Counted
        return file


def test_the_log_is_flushed_after_flush_messages() -> None:
    storage = Spy()
    log = opened(storage, LogConfig(flush_messages=3))
    for _ in range(4):
        log.append(batch(b"a", b"b"), leader_epoch=0, now_ms=NOW)
    assert storage.flushes == 2


def test_the_log_is_flushed_after_flush_ms() -> None:
    storage = Spy()
    log = opened(storage, LogConfig(flush_ms=100))
    assert not log.flush_if_due(NOW + 1000)
    log.append(batch(), leader_epoch=0, now_ms=NOW + 1000)
    assert not log.flush_if_due(NOW + 1099)
    assert log.flush_if_due(NOW + 1100)
    assert not log.flush_if_due(NOW + 9000)
    log.append(batch(), leader_epoch=0, now_ms=NOW + 9000)
    log.append(batch(), leader_epoch=0, now_ms=NOW + 9100)
    assert storage.flushes == 2


# Reading


def test_a_read_begins_with_the_batch_that_has_the_offset(storage: StoragePort) -> None:
    log = opened(storage)
    log.append(batch(b"a", b"b", b"c"), leader_epoch=0, now_ms=NOW)
    log.append(batch(b"d"), leader_epoch=0, now_ms=NOW)
    assert [r.offset for r in records(log.read(2, 10_000))] == [0, 1, 2, 3]
    assert [r.offset for r in records(log.read(3, 10_000))] == [3]
    assert log.read(4, 10_000) == b""


def test_a_read_is_bounded_in_bytes(storage: StoragePort) -> None:
    log = filled(storage, 9, LogConfig(index_interval_bytes=100))
    one = log.size_bytes // 9
    assert len(log.read(2, 3 * one + 5)) == 3 * one
    assert len(log.read(2, 3 * one)) == 3 * one
    assert len(log.read(2, one - 1)) == one
    assert log.read(2, one - 1, min_one=False) == b""
    assert len(log.read(0, 0)) == one


@pytest.mark.parametrize("up_to", range(10))
def test_a_read_stops_before_up_to(storage: StoragePort, up_to: int) -> None:
    log = opened(storage, LogConfig(index_interval_bytes=100))
    for n in range(5):
        log.append(batch(b"%d" % n, b"x"), leader_epoch=0, now_ms=NOW)
    found = records(log.read(1, 10_000, up_to=up_to))
    assert [r.offset for r in found] == list(range(up_to - up_to % 2))


@pytest.mark.parametrize("offset", [-1, 3, 11])
def test_offsets_outside_are_refused(offset: int) -> None:
    log = filled(MemoryStorage(), 10)
    log.delete_records(4)
    with pytest.raises(OffsetOutOfRangeError):
        log.read(offset, 100)


# Searching


def test_a_timestamp_finds_the_first_record_that_is_not_older(
    storage: StoragePort,
) -> None:
    log = opened(storage, SMALL)
    for n in (0, 10, 5, 20, 15, 20):
        rows = [(NOW + n + i, None, b"v", ()) for i in (0, 1)]
        log.append(encode_batch(rows), leader_epoch=n, now_ms=NOW)
    assert log.offset_for_timestamp(0) == TimestampOffset(0, NOW, 0)
    assert log.offset_for_timestamp(NOW + 1) == (1, NOW + 1, 0)
    assert log.offset_for_timestamp(NOW + 6) == (2, NOW + 10, 10)
    assert log.offset_for_timestamp(NOW + 12) == (6, NOW + 20, 20)
    assert log.offset_for_timestamp(NOW + 22) is None
    assert log.max_timestamp() == (7, NOW + 21, 20)
    log.delete_records(3)
    assert log.offset_for_timestamp(0) == (3, NOW + 11, 10)
    log.delete_records(12)
    assert log.offset_for_timestamp(0) is None
    assert log.max_timestamp() == (7, NOW + 21, 20)  # though it is deleted


def test_leader_epochs_end_where_the_next_begins(storage: StoragePort) -> None:
    log = opened(storage)
    for epoch in (1, 1, 3, 6):
        log.append(batch(b"a", b"b"), leader_epoch=epoch, now_ms=NOW)
    assert log.end_offset_for_epoch(0) == (0, 0)
    assert log.end_offset_for_epoch(1) == (1, 4)
    assert log.end_offset_for_epoch(2) == (1, 4)
    assert log.end_offset_for_epoch(5) == (3, 6)
    assert log.end_offset_for_epoch(6) == (6, 8)
    assert log.end_offset_for_epoch(7) == (-1, -1)
    assert log.end_offset_for_epoch(-1) == (-1, -1)
    log.assign_epoch(8)
    assert log.end_offset_for_epoch(7) == (6, 8)
    log.assign_epoch(9)  # nobody appended in epoch 8
    log.assign_epoch(2)  # a latecomer says nothing
    assert log.leader_epochs == ((1, 0), (3, 4), (6, 6), (9, 8))


# Deletion


def test_deleted_records_stay_deleted(storage: StoragePort) -> None:
    log = filled(storage, 20)
    before = len(log.segments)
    assert log.delete_records(11) == 11
    assert log.delete_records(3) == 11
    assert len(log.segments) < before
    assert [offset for offset, _ in values(log)] == list(range(11, 20))
    with pytest.raises(OffsetOutOfRangeError):
        log.delete_records(21)
    assert log.leader_epochs == ((0, 11),)
    log.close()
    again = opened(storage, SMALL)
    assert (again.start_offset, again.leader_epochs) == (11, ((0, 11),))


def test_all_records_can_be_deleted(storage: StoragePort) -> None:
    log = filled(storage, 20)
    assert log.delete_records(20) == 20
    assert (log.start_offset, log.end_offset) == (20, 20)
    log.append(batch(b"next"), leader_epoch=0, now_ms=NOW)
    assert values(log) == [(20, b"next")]


def test_truncation_removes_the_end(storage: StoragePort) -> None:
    log = filled(storage, 20)
    log.append(batch(b"x"), leader_epoch=1, now_ms=NOW)
    log.truncate_to(50)
    assert log.end_offset == 21
    log.truncate_to(7)
    assert [offset for offset, _ in values(log)] == list(range(7))
    assert log.leader_epochs == ((0, 0),)
    log.append(batch(b"other"), leader_epoch=2, now_ms=NOW)
    assert values(log)[-1] == (7, b"other")
    log.close()
    again = opened(storage, SMALL)
    assert again.recovery.problem is None
    assert values(again) == values(log)


def test_a_batch_that_has_the_start_is_truncated_as_a_whole(
    storage: StoragePort,
) -> None:
    log = opened(storage)
    log.append(batch(b"a", b"b", b"c"), leader_epoch=0, now_ms=NOW)
    log.delete_records(1)
    log.truncate_to(2)
    assert (log.start_offset, log.end_offset, values(log)) == (1, 1, [])
    log.append(batch(b"again"), leader_epoch=0, now_ms=NOW)
    assert values(log) == [(1, b"again")]


def test_a_follower_rolls_too() -> None:
    leader = filled(MemoryStorage(), 9, LogConfig())
    follower = opened(MemoryStorage(), SMALL)
    follower.append_as_follower(leader.read(0, 10_000), now_ms=NOW)
    assert len(follower.segments) > 2
    assert values(follower) == values(leader)


def test_an_offset_too_far_for_the_indexes_rolls() -> None:
    follower = opened(MemoryStorage())
    near = filled(MemoryStorage(), 1).read(0, 1000)
    far = (2**31).to_bytes(8, "big") + near[8:]
    follower.append_as_follower(near + far, now_ms=NOW)
    assert [s.next_offset for s in follower.segments] == [1, 2**31 + 1]
    assert [r.offset for r in records(follower.read(1, 1000))] == [2**31]


def test_a_batch_larger_than_a_chunk_is_read_whole(storage: StoragePort) -> None:
    log = opened(storage, LogConfig(max_message_bytes=10**7))
    for size in (10, 600_000, 10, 300_000):
        log.append(batch(bytes(size)), leader_epoch=0, now_ms=NOW)
    log.close()
    again = opened(storage, log.config)
    assert again.recovery.problem is None
    assert again.size_bytes == log.size_bytes > 900_000
    assert [len(r.value or b"") for r in contents(again)] == [10, 600_000, 10, 300_000]


def test_truncation_below_the_start_empties(storage: StoragePort) -> None:
    log = filled(storage, 20)
    log.delete_records(10)
    log.truncate_to(5)
    assert (log.start_offset, log.end_offset, log.leader_epochs) == (5, 5, ())
    log.close()
    assert opened(storage, SMALL).end_offset == 5


def test_old_segments_are_deleted(storage: StoragePort) -> None:
    log = filled(storage, 20, replace(SMALL, retention_ms=1000))
    first, second = log.segments[:2]
    assert log.apply_retention(NOW + 1000) == 0
    assert log.apply_retention(first.max_timestamp + 1001, up_to=1) == 0
    assert log.apply_retention(first.max_timestamp + 1001) == 1
    assert log.start_offset == second.base_offset
    log.apply_retention(NOW + 10_000)
    assert (log.start_offset, log.end_offset, log.size_bytes) == (20, 20, 0)
    assert [s.base_offset for s in log.segments] == [20]


def test_large_logs_lose_their_oldest_segments(storage: StoragePort) -> None:
    log = filled(storage, 20, replace(SMALL, retention_bytes=650, retention_ms=-1))
    count = log.apply_retention(NOW + 10**12)
    assert count > 0
    assert 650 <= log.size_bytes < 650 + 300


def test_a_compacted_log_is_deleted_only_below_its_start() -> None:
    config = replace(SMALL, cleanup_policy="compact", retention_ms=0)
    log = opened(MemoryStorage(), config)
    for n in range(20):
        log.append(keyed([(b"%d" % n, b"v")]), leader_epoch=0, now_ms=NOW)
    assert log.apply_retention(NOW + 10_000) == 0


def test_retention_does_not_disturb_readers(storage: StoragePort) -> None:
    log = filled(storage, 40, replace(SMALL, retention_ms=1000))
    seen: list[int] = []
    offset = 0
    while offset < log.end_offset:
        try:
            data = log.read(offset, 200)
        except OffsetOutOfRangeError:
            offset = log.start_offset
            continue
        batches = list(read_batches(data))
        seen += [one.base_offset for one in batches]
        offset = batches[-1].next_offset
        log.apply_retention(NOW + 996 + offset)
    assert seen == sorted(seen)
    assert seen[-1] == 39
    assert log.start_offset > 0


# Storage


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device is full here")
def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "full").symlink_to("/dev/full")
    storage = DiskStorage(tmp_path)
    file = storage.open("full")
    with pytest.raises(OSError, match="No space"):
        file.append(b"data")
    assert file.size == 0
    storage.close()


def test_files_are_read_appended_to_and_truncated(storage: StoragePort) -> None:
    file = storage.open("name")
    file.append(b"1234")
    file.truncate(2)
    file.append(b"56")
    assert (file.size, file.read(1, 9), file.read(9, 9)) == (4, b"256", b"")
    file.close()
    storage.replace("name", "other")
    assert storage.names() == ["other"]
    assert storage.open("other").read(0, 9) == b"1256"
    storage.remove("other")
    storage.remove("other")
    assert storage.names() == []


# Opening again


@pytest.mark.parametrize("codec", list(Compression))
def test_a_log_opens_as_it_was_closed(storage: StoragePort, codec: Compression) -> None:
    log = opened(storage, SMALL)
    for n in range(20):
        one = batch(b"%d" % n, b"x" * 20, timestamp=NOW + n, compression=codec)
        log.append(one, leader_epoch=n // 7, now_ms=NOW)
    log.close()
    again = opened(storage, SMALL)
    assert again.segments == log.segments
    assert again.leader_epochs == log.leader_epochs
    assert contents(again) == contents(log)
    assert again.recovery.problem is None


def test_configs_are_read_by_kafkas_names() -> None:
    config = LogConfig.from_topic(
        {"retention.ms": "5", "cleanup.policy": "compact,delete", "min.insync": "1"}
    )
    assert config == LogConfig(retention_ms=5, cleanup_policy="compact,delete")
    assert config.is_compacted
    assert config.is_deleted
    with pytest.raises(ValueError, match="five"):
        LogConfig.from_topic({"segment.bytes": "five"})
