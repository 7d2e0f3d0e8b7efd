"""The judge of `tests.torture` finds what must not be, and knows what may."""

from __future__ import annotations

import pytest

from tests.torture.journal import parse
from tests.torture.verdict import Place, Sent, Verdict, judge

#: Three records of one key in one partition.
SENT = {Place(0, offset): Sent(7, offset) for offset in range(3)}


def judged(*lines: str, end: int = 3) -> Verdict:
    """Judge lines that happened one after the other; ``did 1`` is offset 1."""
    parsed = []
    for at, text in enumerate(["a assigned 0", "b assigned 0", *lines]):
        member, word, *rest = text.split()
        if word == "did":
            rest = ["0", rest[0], "7", rest[-1]]
        parsed.append(parse(" ".join((str(at), member, word, *rest))))
    return judge(SENT, parsed, {0: end})


DONE = "a joined", "a did 0", "a did 1", "a did 2", "a committed 0:3"


def test_all_done_once_is_fine() -> None:
    verdict = judged(*DONE, "a left")
    assert not verdict.wrong
    assert str(verdict) == (
        "3 records, 1 members: joined 1, left 1\ngaps: 0; duplicates: none\nfine"
    )


def test_a_gap() -> None:
    verdict = judged("a did 0", "a did 1", "a committed 0:3")
    assert verdict.gaps == 1
    assert verdict.wrong == ["Place(partition=0, offset=2) was never done"]


def test_what_was_passed_over_for_a_while() -> None:
    verdict = judged("a did 0", "a did 2", "a did 1", "a committed 0:3")
    assert verdict.wrong == ["a did number 2 of key 7 first, before 1"]


def test_another_record_than_was_sent() -> None:
    (first, *_) = judged("a did 0 1", *DONE).wrong
    assert first == "Place(partition=0, offset=0) is not what was sent: 7 1"


def test_less_is_committed_than_was_done() -> None:
    assert judged(*DONE, end=2).wrong == ["partition 0 ends at 3, and 2 is committed"]


def test_a_member_that_failed() -> None:
    assert judged(*DONE, "b failed KeyError: 1").wrong == ["b failed: KeyError: 1"]


@pytest.mark.parametrize(
    ("first", "why"),
    [
        (("a did 0", "a killed"), "killed"),
        (("a did 0", "a cancelled"), "cancelled"),
        (("a did 0", "a stalling 15", "a lost 0"), "stalled"),
        # It went on with what it had begun, and lost long ago.
        (("a stalling 15", "a lost 0", "a did 0"), "stalled"),
        (
            ("a joining lanes classic", "a did 0", "- broker-killed 1", "a lost 0"),
            "left without its coordinator",
        ),
    ],
)
def test_again_after_a_death(first: tuple[str, ...], why: str) -> None:
    again = (line.replace("a", "b", 1) for line in DONE)
    verdict = judged(*first, *again)
    assert not verdict.wrong
    assert verdict.duplicates == {f"after a member was {why}": 1}


def test_what_a_member_had_begun_before_it_lost_and_got_the_partition_again() -> None:
    # The fourth line is at second 5: the work that began at 2 was to end there.
    verdict = judged("a stalling 3.0 0 0", "a lost 0", "a assigned 0", "a did 0", *DONE)
    assert verdict.duplicates == {"after a member was stalled": 1}
    assert not verdict.wrong
    early = judged("a stalling 9.0 0 0", "a lost 0", "a assigned 0", "a did 0", *DONE)
    assert early.duplicates == {"unexplained": 1}


@pytest.mark.parametrize(
    "first",
    [
        ("a did 0", "a left"),
        # Whatever became of it: it was committed.
        ("a did 0", "a committed 0:1", "a killed"),
        ("a did 0", "a committed 0:1", "a stalling 15", "a lost 0"),
        # Lost, and nobody knows why: coordinators of KIP-848 do not forget.
        ("a did 0", "a lost 0"),
        ("a joining lanes consumer", "a did 0", "- broker-killed 1", "a lost 0"),
        # What was lost is another partition, or another assignment of it.
        ("a assigned 1", "a did 0", "a stalling 15", "a lost 1"),
        ("a did 0", "a revoked 0", "a assigned 0", "a stalling 15", "a lost 0"),
    ],
)
def test_again_without_an_excuse(first: tuple[str, ...]) -> None:
    again = (line.replace("a", "b", 1) for line in DONE)
    verdict = judged(*first, *again)
    assert verdict.duplicates == {"unexplained": 1}
    (wrong,) = verdict.wrong
    assert wrong.startswith("Place(partition=0, offset=0) was done more than once")


def test_one_that_did_not_know_yet_that_it_had_lost() -> None:
    verdict = judged("b stalling 15", *DONE, "b did 1", "b lost 0")
    assert not verdict.wrong
    assert verdict.duplicates == {"after a member was stalled": 1}


def test_a_third_time_needs_another_excuse() -> None:
    rest = (line.replace("a", "c", 1) for line in DONE)
    verdict = judged("a did 0", "a killed", "b did 0", "c assigned 0", *rest)
    assert verdict.duplicates == {"after a member was killed": 1, "unexplained": 1}
