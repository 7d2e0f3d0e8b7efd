"""What the answer to EndTxn says of a transaction that another process ends."""

from __future__ import annotations

import pickle

import pytest

from kafkaio._machines.detached import DetachedEnd, DetachedTransaction, end_of
from kafkaio._machines.sequence import IdAndEpoch
from kafkaio._machines.transaction import End, Protocol

COMMIT, ABORT = True, False


@pytest.mark.parametrize(
    ("code", "is_commit", "was_lost", "found"),
    [
        (0, COMMIT, False, DetachedEnd.DONE),
        (0, COMMIT, True, DetachedEnd.DONE),
        (0, ABORT, True, DetachedEnd.DONE),
        (48, COMMIT, False, DetachedEnd.OTHERWISE),
        (48, COMMIT, True, DetachedEnd.OTHERWISE),
        (48, ABORT, False, DetachedEnd.OTHERWISE),
        (47, COMMIT, False, DetachedEnd.FENCED),
        (90, COMMIT, False, DetachedEnd.FENCED),
        # The one that was lost may have been taken before the newer producer came.
        (90, COMMIT, True, DetachedEnd.UNKNOWN),
        (49, COMMIT, True, DetachedEnd.UNKNOWN),
        (90, ABORT, True, DetachedEnd.FENCED),
        (49, COMMIT, False, DetachedEnd.REFUSED),
        (53, ABORT, True, DetachedEnd.REFUSED),
        (-1, COMMIT, False, DetachedEnd.REFUSED),
    ],
)
def test_what_an_answer_says(
    code: int, is_commit: bool, was_lost: bool, found: DetachedEnd
) -> None:
    assert end_of(code, is_commit=is_commit, was_lost=was_lost) is found


@pytest.mark.parametrize("protocol", Protocol)
def test_it_survives_the_way_to_another_process(protocol: Protocol) -> None:
    end = End(IdAndEpoch(7, 3), protocol, is_commit=True)
    made = DetachedTransaction.of("billing", end, is_empty=False)
    found = pickle.loads(pickle.dumps(made))
    assert found == made
    assert hash(found) == hash(made)
    assert found.end(commit=True) == end
    assert found.end(commit=False) == End(IdAndEpoch(7, 3), protocol, is_commit=False)


def test_the_newest_protocol_is_assumed() -> None:
    assert DetachedTransaction("t", 7, 3).end(commit=True) == End(
        IdAndEpoch(7, 3), Protocol.TV2, is_commit=True
    )
