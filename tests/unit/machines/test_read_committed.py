from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, strategies as st

from kafkaio._machines.read_committed import ReadCommitted, ReadUncommitted


@dataclass
class FakeBatch:
    last_offset: int
    producer_id: int = -1
    is_transactional: bool = False
    is_control: bool = False
    marker: int | None = None
    aborted: bool = False

    def control_type(self) -> int | None:
        return self.marker


def data(last: int, pid: int) -> FakeBatch:
    return FakeBatch(last, pid, is_transactional=True)


def marker(last: int, pid: int, kind: int | None) -> FakeBatch:
    return FakeBatch(last, pid, is_transactional=True, is_control=True, marker=kind)


def test_uncommitted_leaves_out_markers_alone():
    sieve = ReadUncommitted()
    assert sieve.passes(data(0, 1))
    assert not sieve.passes(marker(1, 1, 0))


def test_an_aborted_transaction_ends_with_its_marker():
    sieve = ReadCommitted([(1, 5), (1, 0), (2, 2)])
    assert not sieve.passes(data(1, 1))
    assert sieve.passes(data(2, 3))  # another producer
    assert not sieve.passes(data(3, 2))
    assert not sieve.passes(marker(4, 1, 0))
    assert not sieve.passes(data(5, 1))  # its second one
    assert not sieve.passes(marker(6, 1, 0))
    assert sieve.passes(data(7, 1))
    assert not sieve.passes(data(8, 2))


def test_a_batch_without_a_transaction_passes():
    sieve = ReadCommitted([(1, 0)])
    assert sieve.passes(FakeBatch(0, 1))


def test_commit_markers_and_cleaned_ones_end_nothing():
    sieve = ReadCommitted([(1, 0)])
    assert not sieve.passes(data(0, 1))
    assert not sieve.passes(marker(1, 2, 1))
    assert not sieve.passes(marker(2, 1, None))
    assert not sieve.passes(marker(2, 1, 1))
    assert not sieve.passes(data(3, 1))


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[FakeBatch], list[tuple[int, int]]]:
    """A log of interleaved transactions and its list of aborted ones, shuffled."""
    log: list[FakeBatch] = []
    open_since: dict[int, list[FakeBatch]] = {}
    first: dict[int, int] = {}
    aborted: list[tuple[int, int]] = []
    for offset in range(draw(st.integers(0, 40))):
        pid = draw(st.integers(0, 3))
        kind = draw(st.sampled_from(["data", "data", "plain", "commit", "abort"]))
        if kind == "plain":
            log.append(FakeBatch(offset))
        elif kind == "data" or pid not in first:
            batch = data(offset, pid)
            first.setdefault(pid, offset)
            open_since.setdefault(pid, []).append(batch)
            log.append(batch)
        else:
            mine = open_since.pop(pid)
            if kind == "abort":
                aborted.append((pid, first[pid]))
                for batch in mine:
                    batch.aborted = True
            del first[pid]
            log.append(marker(offset, pid, int(kind == "commit")))
    return log, draw(st.permutations(aborted))


@given(logs(), st.data())
def test_aborted_data_is_never_delivered_and_the_rest_always_is(
    built: tuple[list[FakeBatch], list[tuple[int, int]]], draws: st.DataObject
):
    log, aborted = built
    begin = draws.draw(st.integers(0, len(log)))
    ends = {}
    for index, batch in enumerate(log):
        if batch.is_control and batch.marker == 0:
            ends[batch.producer_id, index] = index
    # A broker lists the transactions whose marker is at or after the offset asked for.
    listed = []
    for pid, start in aborted:
        end = min(i for (p, i) in ends if p == pid and i > start)
        if end >= begin:
            listed.append((pid, start))
    sieve = ReadCommitted(listed)
    for batch in log[begin:]:
        assert sieve.passes(batch) is not (batch.is_control or batch.aborted)
