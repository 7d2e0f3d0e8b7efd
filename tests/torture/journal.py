"""A journal of events, one line each: members write it, the verdict reads it.

A line is ``seconds member word details``; the clock is that of the machine, so lines
of several processes can be put in order. Lines are in the kernel's hands when `write`
returns: a process may be killed right after.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from kafkaio.types import OffsetAndMetadata, TopicPartition

#: The author of events of the whole run, as against those of one member.
DIRECTOR: Final = "-"

Partitions: TypeAlias = frozenset[int]


@dataclass(frozen=True, slots=True)
class Line:
    """An event.

    Attributes:
        at: seconds of the monotonic clock.
        member: the member, of which no two have the same name.
        word: what happened.
        details: what it happened to.
    """

    at: float
    member: str
    word: str
    details: tuple[str, ...]

    @property
    def partitions(self) -> Partitions:
        """The partitions of an assignment or a loss."""
        return frozenset(map(int, self.details))

    @property
    def offsets(self) -> dict[int, int]:
        """The offsets of a commit, by partition."""
        pairs = (pair.split(":") for pair in self.details)
        return {int(partition): int(offset) for partition, offset in pairs}


class Journal:
    """The journal of one process.

    Args:
        path: the file; lines are added to it.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def close(self) -> None:
        os.close(self._file)

    def write(self, member: str, word: str, *details: object) -> None:
        text = " ".join((f"{time.monotonic():.6f}", member, word, *map(str, details)))
        os.write(self._file, text.replace("\n", "; ").encode() + b"\n")


class Watch:
    """Observes a consumer, and writes its rebalances and commits to the journal."""

    def __init__(self, journal: Journal, member: str) -> None:
        self._journal = journal
        self._member = member

    def rebalance(
        self,
        state: str,
        assigned: Iterable[TopicPartition],
        revoked: Iterable[TopicPartition],
        lost: Iterable[TopicPartition],
    ) -> None:
        del state
        changes = {"lost": lost, "revoked": revoked, "assigned": assigned}
        for word, partitions in changes.items():
            if numbers := sorted(tp.partition for tp in partitions):
                self._journal.write(self._member, word, *numbers)

    def offsets_committed(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], seconds: float
    ) -> None:
        pairs = (f"{tp.partition}:{at.offset}" for tp, at in offsets.items())
        self._journal.write(self._member, "committed", *pairs)


def parse(text: str) -> Line:
    at, member, word, *details = text.split()
    return Line(float(at), member, word, tuple(details))


class Journals:
    """Reads all journals of a directory, up to their current ends.

    Args:
        directory: where they are.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._places: dict[Path, int] = {}

    def news(self) -> Iterator[Line]:
        """Return the complete lines that were added since the last call."""
        for path in sorted(self._directory.glob("*.journal")):
            with path.open("rb") as file:
                file.seek(self._places.get(path, 0))
                data = file.read()
            whole = data[: data.rfind(b"\n") + 1]
            self._places[path] = self._places.get(path, 0) + len(whole)
            for line in whole.decode().splitlines():
                yield parse(line)
