"""A power cut at every write, flush and change of names: nothing flushed is lost."""

import random
from collections.abc import Callable

import pytest

from kafkaio.testing._log import Log, LogConfig
from tests.unit.testing.log.batches import NOW, batch, contents, keyed
from tests.unit.testing.log.crash import CrashStorage, PowerCut

CONFIG = LogConfig(segment_bytes=300, index_interval_bytes=100, flush_messages=5)


class Witness:
    """What was appended, and how much of it was flushed."""

    def __init__(self, storage: CrashStorage, config: LogConfig = CONFIG) -> None:
        self.storage = storage
        self.config = config
        self.log = Log.open(storage, config, NOW)
        self.values: dict[int, bytes] = {}
        self.flushed = 0
        self.start = 0
        self.marks: list[int] = []

    def append(self, n: int) -> None:
        offset = self.log.end_offset
        value = b"value %d" % n
        self.values[offset] = value
        raw = keyed([(b"key %d" % (n % 3), value)], timestamp=NOW + n)
        self.log.append(raw, leader_epoch=n // 8, now_ms=NOW)

    def flush(self) -> None:
        end = self.log.end_offset
        self.log.flush()
        self.flushed = end

    def check(self, survivor: CrashStorage) -> Log:
        log = Log.open(survivor, self.config, NOW)
        records = contents(log)
        found = {record.offset: record.value for record in records}
        assert [r.offset for r in records] == sorted(found)
        assert log.start_offset <= log.end_offset
        assert log.end_offset >= self.flushed
        assert all(self.values[offset] == value for offset, value in found.items())
        self.check_kept(set(found), log)
        # It can be appended to, and opens again without a problem.
        log.append(keyed([(b"k", b"more")]), leader_epoch=99, now_ms=NOW)
        log.close()
        again = Log.open(survivor, self.config, NOW)
        assert again.recovery.problem is None
        assert contents(again)[-1].value == b"more"
        return log

    def check_kept(self, found: set[int], log: Log) -> None:
        expected = set(range(max(self.start, log.start_offset), self.flushed))
        assert log.start_offset <= self.start
        assert expected <= found
        assert found == set(range(log.start_offset, max(found, default=-1) + 1))


def appending(witness: Witness) -> None:
    for n in range(20):
        witness.append(n)
        if n % 4 == 3:
            witness.flush()


def deleting(witness: Witness) -> None:
    appending(witness)
    witness.start = 9
    witness.log.delete_records(9)
    witness.append(30)
    witness.start = witness.log.end_offset
    witness.log.delete_records(witness.start)
    witness.append(31)
    witness.flush()


def retaining(witness: Witness) -> None:
    appending(witness)
    witness.start = witness.log.end_offset
    witness.log.config = LogConfig(segment_bytes=300, retention_bytes=400)
    witness.log.apply_retention(NOW)
    witness.log.config = LogConfig(segment_bytes=300, retention_ms=5)
    witness.log.apply_retention(NOW + 1000)
    witness.append(40)
    witness.flush()


def truncating(witness: Witness) -> None:
    appending(witness)
    witness.flushed = 6
    witness.log.truncate_to(6)
    witness.append(50)
    witness.flush()


SCRIPTS = [appending, deleting, retaining, truncating]


def steps_of(script: Callable[[Witness], None]) -> int:
    storage = CrashStorage()
    script(Witness(storage))
    return storage.steps


def cut(
    script: Callable[[Witness], None], kind: type[Witness], step: int, seed: int
) -> None:
    storage = CrashStorage()
    witness = kind(storage)
    storage.stop_at = step
    try:
        script(witness)
    except PowerCut:
        pass
    else:
        assert step <= 3  # while the log was opened: nothing was promised yet
    survivor = storage.after_cut(random.Random(f"{step} {seed}"))
    witness.check(survivor)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda s: s.__name__)
def test_nothing_flushed_is_lost(script: Callable[[Witness], None]) -> None:
    steps = steps_of(script)
    assert steps > 40
    for step in range(4, steps):
        for seed in range(2):
            cut(script, Witness, step, seed)


class Keeper(Witness):
    """The newest flushed record of each key, or a newer one, must be there."""

    def check_kept(self, found: set[int], log: Log) -> None:
        for key in range(3):
            offsets = [o for o, v in self.values.items() if int(v[6:]) % 3 == key]
            flushed = [offset for offset in offsets if offset < self.flushed]
            if flushed:
                assert max(flushed) in found or max(offsets) in found


def compacting(witness: Witness) -> None:
    witness.log.config = LogConfig(segment_bytes=300, cleanup_policy="compact")
    appending(witness)
    witness.marks.append(witness.storage.steps)
    witness.log.compact(NOW)
    witness.marks.append(witness.storage.steps)
    for n in range(21, 27):
        witness.append(n)
    witness.flush()
    witness.log.compact(NOW)
    witness.append(27)
    witness.flush()


def test_compaction_never_loses_the_newest_of_a_key() -> None:
    witness = Keeper(CrashStorage())
    compacting(witness)
    begin, end = witness.marks
    for step in range(begin, witness.storage.steps):
        # The names change within the pass, so a crash can leave many states.
        for seed in range(25 if step <= end else 2):
            cut(compacting, Keeper, step, seed)


def test_a_power_cut_within_a_power_cuts_repair() -> None:
    for seed in range(60):
        dice = random.Random(seed)
        storage = CrashStorage()
        witness = Witness(storage)
        storage.stop_at = dice.randrange(20, 60)
        with pytest.raises(PowerCut):
            appending(witness)
        survivor = storage.after_cut(dice)
        survivor.stop_at = dice.randrange(8)
        try:
            Log.open(survivor, CONFIG, NOW)
        except PowerCut:
            survivor = survivor.after_cut(dice)
        survivor.stop_at = None
        witness.check(survivor)


# The two kinds of corruption, one by one


def stored(count: int) -> tuple[CrashStorage, Log]:
    storage = CrashStorage()
    log = Log.open(storage, LogConfig(segment_bytes=400), NOW)
    for n in range(count):
        log.append(batch(b"%d" % n, timestamp=NOW + n), leader_epoch=n, now_ms=NOW)
    log.close()
    return storage, log


@pytest.mark.parametrize("lost", [1, 30, 61, 68])
def test_a_tail_that_was_not_written_is_cut_off(lost: int) -> None:
    storage, log = stored(3)
    file = storage.files["00000000000000000000.log"]
    del file.data[-lost:]
    again = Log.open(storage, log.config, NOW)
    assert [r.offset for r in contents(again)] == [0, 1]
    assert again.recovery.problem is not None
    assert again.leader_epochs == ((0, 0), (1, 1))
    assert again.end_offset == 2


@pytest.mark.parametrize("nonsense", [bytes(100), b"\xff" * 100, b"nonsense" * 20])
def test_a_block_that_was_added_is_cut_off(nonsense: bytes) -> None:
    storage, log = stored(3)
    storage.files["00000000000000000000.log"].data += nonsense
    again = Log.open(storage, log.config, NOW)
    assert again.recovery.problem is not None
    assert again.segments == log.segments


def test_a_bad_block_in_the_middle_ends_the_log() -> None:
    storage, log = stored(20)
    first, second, third = log.segments[:3]
    file = storage.files[f"{second.base_offset:020d}.log"]
    position = second.size_bytes // 2
    file.data[position : position + 8] = b"nonsense"
    again = Log.open(storage, log.config, NOW)
    assert again.recovery.removed_segments == len(log.segments) - 2
    assert second.base_offset < again.end_offset < third.base_offset
    assert again.segments[0] == first
    names = storage.names()
    assert f"{third.base_offset:020d}.log" not in names
    assert f"{third.base_offset:020d}.index" not in names


def test_a_flipped_bit_anywhere_in_a_checked_field_is_noticed() -> None:
    raw = batch(b"some value")
    for position in range(16, len(raw)):
        storage, log = stored(1)
        end = log.size_bytes
        file = storage.files["00000000000000000000.log"]
        file.data += b"\0\0\0\0\0\0\0\1" + raw[8:]
        file.data[end + position] ^= 1 << position % 8
        assert Log.open(storage, log.config, NOW).end_offset == 1


def test_offsets_that_do_not_grow_are_corrupt() -> None:
    storage, log = stored(2)
    file = storage.files["00000000000000000000.log"]
    file.data += file.data[: len(file.data) // 2]
    again = Log.open(storage, log.config, NOW)
    assert (again.end_offset, again.size_bytes) == (2, log.size_bytes)


def test_an_offset_too_far_for_the_indexes_is_corrupt() -> None:
    storage, log = stored(1)
    file = storage.files["00000000000000000000.log"]
    file.data += (2**31).to_bytes(8, "big") + batch(b"far")[8:]
    assert Log.open(storage, log.config, NOW).end_offset == 1


@pytest.mark.parametrize(
    "text", [b"", b"nonsense", b"1\n0\n", b"0\n9\n1 1\n", b"0\n2\n5 5\n4 9\n", b"\xff"]
)
def test_a_bad_checkpoint_is_rewritten(text: bytes) -> None:
    storage, log = stored(5)
    storage.files["leader-epoch-checkpoint"].data[:] = text
    is_start = text.startswith(b"0\n")
    storage.open("log-start-offset-checkpoint").append(b"" if is_start else text)
    again = Log.open(storage, log.config, NOW)
    assert again.leader_epochs == log.leader_epochs
    assert again.start_offset == 0


def test_data_lost_below_the_start_leaves_an_empty_log() -> None:
    storage, log = stored(5)
    log.delete_records(5)
    del storage.files["00000000000000000000.log"].data[:]
    again = Log.open(storage, log.config, NOW)
    assert (again.start_offset, again.end_offset) == (5, 5)
