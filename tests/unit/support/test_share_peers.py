"""What is read from the journals of share groups' members, and how it is judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.share_peers import Deliveries
from tests.torture.sharing import LIMIT, judge


class Told:
    """Journals that a test writes."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.found = Deliveries(directory)

    def tell(self, member: str, at: float, event: str, *what: Any) -> None:
        line = {"at": at, "member": member, "event": event, "what": what}
        with (self._directory / f"{member}.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")

    def wrong(self, records: int, *left: int) -> list[str]:
        self.found.update()
        return judge(self.found, records, set(left)).wrong


@pytest.fixture
def told(tmp_path: Path) -> Told:
    return Told(tmp_path)


def test_all_is_well(told: Told) -> None:
    told.tell("java-1", 1, "got", [0, 0, 0, 1], [0, 1, 1, 1])
    told.tell("java-1", 2, "accepted", [0, 0, 0], [0, 1, 1])
    told.tell("java-1", 3, "left")
    assert told.wrong(2) == []
    assert told.found.done == told.found.seen == told.found.of("java-1") == {0, 1}


def test_what_was_never_delivered(told: Told) -> None:
    told.tell("java-1", 1, "got", [0, 0, 0, 1])
    told.tell("java-1", 2, "accepted", [0, 0, 0])
    assert told.wrong(3) == ["2 records were never delivered: 1, 2"]


def test_what_was_not_accepted(told: Told) -> None:
    told.tell("java-1", 1, "got", [0, 0, 0, 1])
    told.tell("java-1", 2, "refused", [0, 0, "no"])
    assert told.wrong(1, 0) == ["1 records were not accepted: 0"]


def test_what_used_up_its_deliveries(told: Told) -> None:
    told.tell("java-1", 1, "got", [0, 0, 0, LIMIT])
    assert told.wrong(1) == ["1 records used up their deliveries: 0"]
    told.tell("java-1", 2, "got", [0, 0, 0, LIMIT + 1])
    told.tell("java-1", 3, "accepted", [0, 0, 0])
    assert told.wrong(1) == [f"a record was delivered {LIMIT + 1} times, of {LIMIT}"]


def test_what_was_delivered_after_its_acceptance(told: Told) -> None:
    told.tell("java-1", 1, "got", [0, 0, 0, 1])
    told.tell("java-1", 2, "accepted", [0, 0, 0])
    told.tell("kafkaio-1", 3, "got", [0, 0, 0, 2, False])
    assert "1 were delivered after their acceptance" in told.wrong(1)[0]


def test_what_a_frozen_member_hands_out_late(told: Told) -> None:
    told.tell("java-1", 1, "got", [0, 0, 0, 2])
    told.tell("java-1", 2, "accepted", [0, 0, 0])
    told.tell("kafkaio-1", 3, "got", [0, 0, 0, 1, True])
    assert told.wrong(1) == []


def test_what_was_locked_again_when_it_was_accepted(told: Told) -> None:
    told.tell("java-1", 1, "got", [0, 0, 0, 1])
    told.tell("java-1", 5, "accepted", [0, 0, 0])
    told.tell("java-1", 6, "got", [0, 0, 0, 2])
    assert told.wrong(1) == []


def test_a_repetition_that_nobody_was_told_of(told: Told) -> None:
    for member in ("java-1", "kafkaio-1"):
        told.tell(member, 1, "got", [0, 0, 0, 1])
        told.tell(member, 4, "left")
    told.tell("java-1", 2, "accepted", [0, 0, 0])
    assert "1 repetitions were not announced" in told.wrong(1)[0]
    told.tell("kafkaio-1", 3, "lost", [0, 0, 5, "the lock has run out"])
    assert told.wrong(1) == []


def test_a_repetition_of_what_a_killed_member_had(told: Told) -> None:
    told.tell("java-1", 1, "got", [0, 0, 0, 1])
    told.tell("java-2", 2, "got", [0, 0, 0, 1])
    told.tell("java-2", 3, "accepted", [0, 0, 0])
    told.tell("java-2", 4, "left")
    assert told.wrong(1) == []


def test_a_line_that_is_not_whole_is_read_later(told: Told, tmp_path: Path) -> None:
    told.tell("java-1", 1, "got", [0, 0, 0, 1])
    path = tmp_path / "java-1.jsonl"
    whole = path.read_text()
    path.write_text(whole[:20])
    assert told.wrong(0) == []
    path.write_text(whole)
    told.found.update()
    assert told.found.seen == {0}


def test_a_member_that_failed(told: Told) -> None:
    told.tell("java-1", 1, "failed", "OutOfMemoryError")
    with pytest.raises(AssertionError, match="java-1 failed"):
        told.wrong(0)
