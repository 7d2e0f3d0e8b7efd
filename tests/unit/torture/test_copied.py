"""The counting of `tests.torture` finds what an exact copy must not have."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.torture.copied import (
    Coordinated,
    Evidence,
    Replay,
    committed_by_dump,
    coordinated_by_dump,
    judge,
    open_by_batches,
)
from tests.torture.inspection import read_offsets

#: Two records of key 7 and one of key 8, copied by members a and b.
READ = ["7 0 a", "8 0 b", "7 1 b"]
FINE = Evidence(
    sent={7: 2, 8: 1},
    read=READ,
    replay=Replay({"out-0": ["7 0 a", "7 1 b"], "out-1": ["8 0 b"]}),
    ends={0: 2, 1: 1},
    committed={0: 2, 1: 1},
    coordinated=Coordinated(committed=2, aborted=1),
)


def read(*values: str) -> Evidence:
    """Evidence in which the reader and the files have these values."""
    return replace(FINE, read=values, replay=Replay({"out-0": list(values)}))


def test_an_exact_copy() -> None:
    verdict = judge(FINE)
    assert not verdict.wrong
    assert str(verdict) == (
        "3 records; transactions: 2 committed, 1 aborted; no events\n"
        "duplicates 0, losses 0\nfine"
    )


def test_a_loss() -> None:
    verdict = judge(read("7 0 a", "8 0 b"))
    assert verdict.losses == 1
    assert verdict.wrong == ["number 1 of key 7 was lost"]


def test_a_duplicate() -> None:
    verdict = judge(read(*READ, "7 1 a"))
    assert (verdict.duplicates, verdict.losses) == (1, 0)
    assert verdict.wrong == ["number 1 of key 7 was copied 2 times, by b, a"]


def test_a_record_that_was_never_sent() -> None:
    assert judge(read(*READ, "8 1 a")).wrong == [
        "Sent(key=8, number=1) was never sent; by a"
    ]


def test_records_of_a_key_out_of_order() -> None:
    assert judge(read("7 1 b", "8 0 b", "7 0 a")).wrong == [
        "key 7: 0 by a is after 1 by b"
    ]


def test_more_violations_than_are_shown() -> None:
    verdict = judge(replace(read(), sent={7: 30}))
    assert verdict.losses == 30
    assert str(verdict).splitlines()[-2:] == ["... 30 in all", "VIOLATED"]


@pytest.mark.parametrize(
    ("read_values", "in_files", "wrong"),
    [
        (READ, [*READ, "7 1 a"], "1 times more in the files than read"),
        ([*READ, "7 1 a"], READ, "1 times more read than in the files"),
    ],
)
def test_the_reader_and_the_files_differ(
    read_values: list[str], in_files: list[str], wrong: str
) -> None:
    evidence = replace(FINE, read=read_values, replay=Replay({"out-0": in_files}))
    copy = "Copy(sent=Sent(key=7, number=1), member='a')"
    assert f"{copy} is {wrong}" in judge(evidence).wrong


def test_offsets_that_are_not_the_end() -> None:
    assert judge(replace(FINE, committed={0: 1})).wrong == [
        "input partition 0 ends at 2, and 1 is committed",
        "input partition 1 ends at 1, and None is committed",
    ]


def test_transactions_that_never_ended() -> None:
    replay = replace(FINE.replay, open={("out-0", 5)})
    coordinated = Coordinated(committed=2, open={"id-1": "PrepareCommit"})
    evidence = replace(FINE, replay=replay, coordinated=coordinated, hanging=["out-0"])
    assert judge(evidence).wrong == [
        "out-0: open transaction of producer 5",
        "transaction of id-1 is still PrepareCommit",
        "hanging: out-0",
    ]


def test_a_transaction_log_that_was_not_understood() -> None:
    assert judge(replace(FINE, coordinated=Coordinated())).wrong == [
        "the transaction log shows no committed transaction"
    ]


def test_members_that_failed() -> None:
    assert judge(replace(FINE, failed=["a: KeyError"])).wrong == ["failed: a: KeyError"]


def batch(offset: int, producer: int, *, control: bool = False) -> str:
    transactional = "false" if producer < 0 else "true"
    return (
        f"baseOffset: {offset} lastOffset: {offset} count: 1 baseSequence: 0 "
        f"lastSequence: 0 producerId: {producer} producerEpoch: 3 "
        f"partitionLeaderEpoch: 0 isTransactional: {transactional} "
        f"isControl: {'true' if control else 'false'}"
    )


def payload(offset: int, value: str) -> str:
    return (
        f"| offset: {offset} CreateTime: 1 keySize: 1 valueSize: 5 sequence: 0 "
        f"headerKeys: [] key: 7 payload: {value}"
    )


def marker(offset: int, kind: str) -> str:
    return (
        f"| offset: {offset} CreateTime: 1 keySize: 4 valueSize: 6 sequence: -1 "
        f"headerKeys: [] endTxnMarker: {kind} coordinatorEpoch: 0"
    )


FILE = "Dumping /tmp/node1/data/out-0/00000000000000000000.log"
NEXT = "Dumping /tmp/node1/data/out-1/00000000000000000000.log"


def test_replay_of_two_producers_one_of_which_aborts() -> None:
    replay = committed_by_dump(
        [
            FILE,
            "Log starting offset: 0",
            *(batch(0, 1), payload(0, "7 0 a")),
            *(batch(1, 2), payload(1, "7 0 b")),
            *(batch(2, 2, control=True), marker(2, "ABORT")),
            *(batch(3, 1, control=True), marker(3, "COMMIT")),
        ]
    )
    assert replay == Replay({"out-0": ["7 0 a"]}, aborted=1)


def test_replayed_records_are_in_the_order_of_their_offsets() -> None:
    replay = committed_by_dump(
        [
            FILE,
            *(batch(0, 1), payload(0, "7 0 a")),
            *(batch(1, 2), payload(1, "7 1 b")),
            *(batch(2, -1), payload(2, "8 0 c")),
            *(batch(3, 2, control=True), marker(3, "COMMIT")),
            *(batch(4, 1, control=True), marker(4, "COMMIT")),
        ]
    )
    assert replay.committed == {"out-0": ["7 0 a", "7 1 b", "8 0 c"]}


def test_replay_of_a_transaction_in_two_partitions_one_of_which_has_no_end() -> None:
    replay = committed_by_dump(
        [
            *(FILE, batch(0, 1), payload(0, "7 0 a")),
            *(NEXT, batch(0, 1), payload(0, "8 0 a")),
            *(batch(1, 1, control=True), marker(1, "COMMIT")),
        ]
    )
    assert replay.committed == {"out-1": ["8 0 a"]}
    assert replay.open == {("out-0", 1)}


def test_open_transactions_by_batches_alone() -> None:
    assert open_by_batches(
        [
            *(FILE, batch(0, 1), batch(1, 2), batch(2, 1, control=True), batch(3, -1)),
            *(NEXT, batch(0, 1), batch(1, 1, control=True), batch(2, 1)),
        ]
    ) == {("out-0", 2), ("out-1", 1)}


def state(transactional_id: str, status: object) -> str:
    return (
        "| offset: 7 CreateTime: 1 keySize: 7 valueSize: 45 sequence: -1 "
        f'key: {{"type":"0","data":{{"transactionalId":"{transactional_id}"}}}} '
        'payload: {"version":"1","data":{"producerId":0,"producerEpoch":0,'
        f'"transactionTimeoutMs":60000,"transactionStatus":{status},'
        '"transactionPartitions":[]}}'
    )


def test_transactions_by_the_log_of_their_coordinators() -> None:
    lines = [state("a-1", status) for status in (0, 1, 2, 4)]
    lines += [state("a-1", status) for status in (1, 3)]
    lines += [state("b-1", 0), "unreadable"]
    # The tool of Kafka 4.4 prints names.
    lines += [state("c-1", f'"{name}"') for name in ("Ongoing", "PrepareCommit")]
    found = coordinated_by_dump(lines)
    left = {"a-1": "PrepareAbort", "c-1": "PrepareCommit"}
    assert found == Coordinated(committed=2, aborted=1, open=left)


def test_offsets_of_the_group_command() -> None:
    assert read_offsets(
        [
            "",
            "GROUP   TOPIC  PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG  ID",
            "orders  in     0          12              12              0    -",
            "orders  in     1          -               3               -    -",
        ]
    ) == ({0: 12}, {0: 12, 1: 3})
