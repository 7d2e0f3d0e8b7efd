"""Whether output topics, offsets and transaction log show a copy made exactly once.

Everything here is computed from the text that Kafka's own tools print, with none of
kafkaio's code:

* `committed_by_dump` replays a dump of the log: records of a producer wait until its
  control batch tells their fate.
* `judge` compares what was sent with what a read_committed reader saw and with that
  replay: the same records, each once, those of a key in their order.
* The group has committed the end of every partition of the input.
* No transaction is open: neither at a partition nor at the coordinator.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from tests.torture.verdict import Sent

_SHOWN: Final = 10
_FILE: Final = re.compile(r"Dumping (.*)/([^/]+)/(\d+)\.log")
_BATCH: Final = re.compile(
    r"baseOffset: (\d+) .*producerId: (-?\d+) producerEpoch: (-?\d+) .*"
    r"isTransactional: (true|false) isControl: (true|false)"
)
_MARKER: Final = re.compile(r"endTxnMarker: (COMMIT|ABORT)")
_PAYLOAD: Final = re.compile(r"\| offset: (\d+) .* payload: (.*)$")
_STATE: Final = re.compile(r'"transactionalId":"([^"]+)".*"transactionStatus":"?(\w+)')
#: The states of a transaction by their numbers. Before Kafka 4.4 the tool prints these.
_STATES: Final = (
    *("Empty", "Ongoing", "PrepareCommit", "PrepareAbort"),
    *("CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence"),
)
#: Those in which it is over.
_CLOSED: Final = {"Empty", "CompleteCommit", "CompleteAbort", "Dead"}


class Copy(NamedTuple):
    """A record of the output: which record of the input it copies, and by whom."""

    sent: Sent
    member: str


def read_copy(value: str) -> Copy:
    """Read the value of a record of the output: ``key number member``."""
    key, number, member = value.split()
    return Copy(Sent(int(key), int(number)), member)


@dataclass
class Replay:
    """What the log of partitions contains.

    Attributes:
        committed: the values of committed records, by partition directory, in order.
        aborted: how many records were aborted.
        open: partition directories with a transaction that has no end, and the
            producer ids of these transactions.
    """

    committed: dict[str, list[str]] = field(default_factory=dict)
    aborted: int = 0
    open: set[tuple[str, int]] = field(default_factory=set)


def committed_by_dump(lines: Iterable[str]) -> Replay:
    """Replay the output of ``DumpLogSegments --print-data-log``, files in order.

    Records become visible in the order of their offsets, as for a read_committed
    reader, and not in the order in which their transactions ended.
    """
    replaying = _Replaying()
    for line in lines:
        replaying.read(line)
    return replaying.end()


class _Replaying:
    """The replay of a dump, up to some line."""

    def __init__(self) -> None:
        self._replay = Replay()
        self._directory = ""
        self._producer = -1
        self._is_transactional = False
        #: Committed records by directory and offset.
        self._placed: dict[str, dict[int, str]] = defaultdict(dict)
        #: Records of open transactions by directory and producer.
        self._waiting: dict[tuple[str, int], list[tuple[int, str]]] = {}

    def read(self, line: str) -> None:
        if found := _FILE.search(line):
            self._directory = found[2]
        elif found := _BATCH.search(line):
            self._producer = int(found[2])
            self._is_transactional = found[4] == "true"
            if self._is_transactional and found[5] == "false":
                self._waiting.setdefault((self._directory, self._producer), [])
        elif found := _MARKER.search(line):
            self._end_transaction(found[1])
        elif found := _PAYLOAD.search(line):
            record = int(found[1]), found[2]
            if self._is_transactional:
                self._waiting[self._directory, self._producer].append(record)
            else:
                self._placed[self._directory].update([record])

    def _end_transaction(self, verdict: str) -> None:
        records = self._waiting.pop((self._directory, self._producer), [])
        if verdict == "COMMIT":
            self._placed[self._directory].update(records)
        else:
            self._replay.aborted += len(records)

    def end(self) -> Replay:
        for where, records in self._placed.items():
            self._replay.committed[where] = [records[at] for at in sorted(records)]
        self._replay.open = set(self._waiting)
        return self._replay


def open_by_batches(lines: Iterable[str]) -> set[tuple[str, int]]:
    """Return the partition directories and producers whose last batch is no marker.

    For topics whose records are not text: batches are enough to tell.
    """
    found_open: dict[tuple[str, int], bool] = {}
    directory = ""
    for line in lines:
        if found := _FILE.search(line):
            directory = found[2]
        elif (found := _BATCH.search(line)) and found[4] == "true":
            found_open[directory, int(found[2])] = found[5] == "false"
    return {key for key, is_open in found_open.items() if is_open}


@dataclass
class Coordinated:
    """What the transaction log says.

    Attributes:
        committed: transactions that were to be committed, as the coordinators decided.
        aborted: those that were to be aborted.
        open: transactional ids in the middle of a transaction, with its state.
    """

    committed: int = 0
    aborted: int = 0
    open: dict[str, str] = field(default_factory=dict)


def coordinated_by_dump(lines: Iterable[str]) -> Coordinated:
    """Read ``DumpLogSegments --transaction-log-decoder`` of ``__transaction_state``."""
    found = Coordinated()
    for transactional_id, state in _states(lines):
        found.committed += state == "PrepareCommit"
        found.aborted += state == "PrepareAbort"
        if state in _CLOSED:
            found.open.pop(transactional_id, None)
        else:
            found.open[transactional_id] = state
    return found


def _states(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        if found := _STATE.search(line):
            state = found[2]
            yield found[1], _STATES[int(state)] if state.isdigit() else state


@dataclass
class Evidence:
    """What a run left behind.

    Attributes:
        sent: every record of the input, in the order of its offsets by key.
        read: the values that a read_committed reader saw, in its order.
        replay: what the files of the output contain.
        ends: the end of each partition of the input that has records.
        committed: what the group has committed.
        coordinated: what the transaction log says.
        hanging: lines of ``TransactionsCommand find-hanging``, and open transactions
            of other topics.
        failed: members that failed, with reasons.
    """

    sent: Mapping[int, int]
    read: Iterable[str]
    replay: Replay
    ends: Mapping[int, int]
    committed: Mapping[int, int]
    coordinated: Coordinated = field(default_factory=Coordinated)
    hanging: Iterable[str] = ()
    failed: Iterable[str] = ()


@dataclass
class CopyVerdict:
    """The result of a run.

    Attributes:
        records: how many there were to copy.
        duplicates: copies beyond the first of a record.
        losses: records without a copy.
        transactions: what the coordinators decided.
        events: how often what happened.
        wrong: every violation, in words.
    """

    records: int
    duplicates: int = 0
    losses: int = 0
    transactions: Coordinated = field(default_factory=Coordinated)
    events: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        events = ", ".join(f"{word} {n}" for word, n in sorted(self.events.items()))
        lines = [
            f"{self.records} records; transactions: {self.transactions.committed} "
            f"committed, {self.transactions.aborted} aborted; {events or 'no events'}",
            f"duplicates {self.duplicates}, losses {self.losses}",
            *self.wrong[:_SHOWN],
        ]
        if len(self.wrong) > _SHOWN:
            lines.append(f"... {len(self.wrong)} in all")
        return "\n".join([*lines, "VIOLATED" if self.wrong else "fine"])


def judge(evidence: Evidence) -> CopyVerdict:
    """Compare the input with what became of it.

    ``evidence.sent`` has the number of records of each key; they are numbered from 0.
    """
    verdict = CopyVerdict(
        sum(evidence.sent.values()), transactions=evidence.coordinated
    )
    read = [read_copy(value) for value in evidence.read]
    if not evidence.coordinated.committed:
        verdict.wrong.append("the transaction log shows no committed transaction")
    _judge_copies(verdict, evidence.sent, read)
    _judge_order(verdict, read)
    _judge_replay(verdict, read, evidence.replay)
    for partition, end in sorted(evidence.ends.items()):
        if (at := evidence.committed.get(partition)) != end:
            verdict.wrong.append(
                f"input partition {partition} ends at {end}, and {at} is committed"
            )
    for directory, producer in sorted(evidence.replay.open):
        verdict.wrong.append(f"{directory}: open transaction of producer {producer}")
    for name, state in sorted(evidence.coordinated.open.items()):
        verdict.wrong.append(f"transaction of {name} is still {state}")
    verdict.wrong += [f"hanging: {line}" for line in evidence.hanging]
    verdict.wrong += [f"failed: {line}" for line in evidence.failed]
    return verdict


def _judge_copies(
    verdict: CopyVerdict, sent: Mapping[int, int], read: list[Copy]
) -> None:
    by: dict[Sent, list[str]] = defaultdict(list)
    for copy in read:
        by[copy.sent].append(copy.member)
    for key, count in sorted(sent.items()):
        for number in range(count):
            members = by.pop(Sent(key, number), [])
            if not members:
                verdict.losses += 1
                verdict.wrong.append(f"number {number} of key {key} was lost")
            elif len(members) > 1:
                verdict.duplicates += len(members) - 1
                verdict.wrong.append(
                    f"number {number} of key {key} was copied {len(members)} times, "
                    f"by {', '.join(members)}"
                )
    for stranger, members in by.items():
        verdict.wrong.append(f"{stranger} was never sent; by {', '.join(members)}")


def _judge_order(verdict: CopyVerdict, read: list[Copy]) -> None:
    last: dict[int, Copy] = {}
    for copy in read:
        before = last.get(copy.sent.key)
        if before is not None and copy.sent.number < before.sent.number:
            verdict.wrong.append(
                f"key {copy.sent.key}: {copy.sent.number} by {copy.member} is after "
                f"{before.sent.number} by {before.member}"
            )
        last[copy.sent.key] = copy


def _judge_replay(verdict: CopyVerdict, read: list[Copy], replay: Replay) -> None:
    """The reader and the files must agree, or one of the two is misread."""
    in_files = Counter(
        read_copy(value) for values in replay.committed.values() for value in values
    )
    seen = Counter(read)
    for copy, count in (in_files - seen).items():
        verdict.wrong.append(f"{copy} is {count} times more in the files than read")
    for copy, count in (seen - in_files).items():
        verdict.wrong.append(f"{copy} is {count} times more read than in the files")
