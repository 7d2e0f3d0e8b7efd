"""Members of a share group by three clients, each in a process of its own.

`SharePeer` starts, kills, pauses and ends one. Members write journals of JSON lines,
which `Deliveries` reads and judges. An event is one of

- ``started``, ``left``, ``failed``: of the member;
- ``got``: ``[partition, offset, number, delivery count]`` of each record, for kafkaio
  followed by whether it is lost already;
- ``accepted``: ``[partition, offset, number]`` of records whose acceptance the leader
  has answered with success;
- ``refused``: ``[partition, offset, reason]`` of the others.

The clock is that of the machine, so events of several members can be put in order.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeAlias

from kafkaio.testing.kafka._releases import find_release
from tests.support.java import RunningJava, Toolbox
from tests.support.patience import HANGS

__all__ = ["CLIENTS", "Client", "Deliveries", "Delivery", "SharePeer"]

Client: TypeAlias = Literal["java", "confluent", "kafkaio"]
#: All of them.
CLIENTS: Final[tuple[Client, ...]] = ("java", "confluent", "kafkaio")
_ROOT: Final = Path(__file__).parent.parent.parent
_TOOLS: Final = Toolbox(find_release())  # its clients speak to all that have groups
_JAVA: Final = _TOOLS.program(_ROOT / "tests" / "java" / "group", "ShareMember")

_Place: TypeAlias = tuple[int, int]


class SharePeer:
    """A member in a process of its own; an async context manager.

    The way out kills a process that still runs.

    Args:
        client: whose member it is.
        name: of the member; no two of a group have the same.
        servers: bootstrap servers.
        group: the share group.
        topic: its topic, whose values are numbers.
        directory: where the journal is written.
        most: the most records that it takes at a time.
    """

    def __init__(
        self,
        client: Client,
        name: str,
        servers: str,
        group: str,
        topic: str,
        directory: Path,
        most: int = 100,
    ) -> None:
        self.client = client
        self.name = name
        self.journal = directory / f"{name}.jsonl"
        words = (servers, group, topic, name, str(self.journal), str(most))
        self._words = words
        self._java: RunningJava | None = None
        self._python: asyncio.subprocess.Process | None = None

    def __repr__(self) -> str:
        return f"<SharePeer {self.name} of {self.client}>"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.kill()

    async def start(self) -> None:
        """Start the process; it joins by itself, see `joined`."""
        if self.client == "java":
            java = await _JAVA.start(*self._words)
            self._java = await java.__aenter__()
            return
        self._python = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.support.share_member", self.client),
            *self._words,
            stdin=asyncio.subprocess.PIPE,
            cwd=_ROOT,
        )

    @property
    def is_running(self) -> bool:
        """Whether it was started, and neither killed nor ended."""
        return self._java is not None or self._python is not None

    async def got(self, count: int = 1, timeout: float = HANGS) -> None:
        """Wait until it has got so many records.

        Raises:
            TimeoutError: it has not in time.
            RuntimeError: it failed.
        """
        async with asyncio.timeout(timeout):
            while True:
                events = list(events_of(self.journal))
                failed = [it["what"] for it in events if it["event"] == "failed"]
                if failed:
                    raise RuntimeError(f"{self!r} failed: {failed[0]}")
                if (
                    sum(len(it["what"]) for it in events if it["event"] == "got")
                    >= count
                ):
                    return
                await asyncio.sleep(0.05)

    def pause(self) -> None:
        """Freeze the process (SIGSTOP): it neither accepts nor renews."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a frozen process go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        process = self._java or self._python
        assert process is not None
        assert process.pid is not None
        os.kill(process.pid, number)

    async def kill(self) -> None:
        """Kill the process (SIGKILL), if it runs."""
        if self._java is not None:
            java, self._java = self._java, None
            await java.__aexit__(None, None, None)
        if self._python is not None:
            python, self._python = self._python, None
            if python.returncode is None:
                python.kill()
            await python.wait()

    async def end(self, timeout: float = HANGS) -> None:
        """Have it accept what it holds, leave, and end.

        Raises:
            TimeoutError: it has not in time.
            RuntimeError: it failed.
        """
        if self._java is not None:
            await self._java.close_input()
            status = await self._java.wait(timeout)
        else:
            assert self._python is not None
            assert self._python.stdin is not None
            self._python.stdin.close()
            async with asyncio.timeout(timeout):
                status = await self._python.wait()
        await self.kill()
        if status:
            raise RuntimeError(f"{self!r} ended with {status}")


def events_of(journal: Path, start: int = 0) -> Iterator[dict[str, Any]]:
    """The complete lines of a journal, from a byte on."""
    for line in _lines(journal, start):
        yield json.loads(line)


def _lines(journal: Path, start: int) -> list[bytes]:
    if not journal.exists():
        return []
    with journal.open("rb") as file:
        file.seek(start)
        data = file.read()
    return data[: data.rfind(b"\n") + 1].splitlines(keepends=True)


@dataclass(frozen=True)
class Delivery:
    """A record that a member got.

    Attributes:
        at: when its application had it.
        member: the member.
        count: the delivery count that it was told; 0 for none.
        is_lost: whether kafkaio said at once that the lock is gone.
    """

    at: float
    member: str
    count: int
    is_lost: bool


@dataclass
class Deliveries:
    """What all members of a group got and accepted, as far as their journals say it.

    Args:
        directory: where the journals are.

    Attributes:
        numbers: the number of each record, by partition and offset.
        got: the deliveries of each record.
        accepted: when its acceptance was answered, for the first time, and to whom.
        told: the members that were told that a record was theirs no longer: their
            acceptance was refused, or kafkaio reported the lock as lost.
        gone: the members that have left; those that were killed have not.
        last_at: the time of the last delivery.
    """

    directory: Path
    numbers: dict[_Place, int] = field(default_factory=dict)
    got: dict[_Place, list[Delivery]] = field(default_factory=dict)
    accepted: dict[_Place, tuple[float, str]] = field(default_factory=dict)
    told: dict[_Place, set[str]] = field(default_factory=lambda: defaultdict(set))
    gone: set[str] = field(default_factory=set)
    last_at: float = 0.0
    _read: dict[Path, int] = field(default_factory=dict)

    def update(self) -> None:
        """Read what members have journalled since the last call.

        Raises:
            AssertionError: a member has failed.
        """
        for journal in sorted(self.directory.glob("*.jsonl")):
            for line in _lines(journal, self._read.get(journal, 0)):
                self._read[journal] = self._read.get(journal, 0) + len(line)
                self._add(json.loads(line))

    def _add(self, event: dict[str, Any]) -> None:
        at, member, what = event["at"], event["member"], event["what"]
        match event["event"]:
            case "got":
                self._got(at, member, what)
            case "accepted":
                for partition, offset, _ in what:
                    answer = self.accepted.get((partition, offset), (at, member))
                    self.accepted[partition, offset] = min(answer, (at, member))
            case "refused":
                for partition, offset, _ in what:
                    self.told[partition, offset].add(member)
            case "lost":
                for partition, first, last, _ in what:
                    for offset in range(first, last + 1):
                        self.told[partition, offset].add(member)
            case other:
                self._ended(other, member, what)

    def _got(self, at: float, member: str, what: list[Any]) -> None:
        self.last_at = max(self.last_at, at)
        for partition, offset, number, count, *rest in what:
            self.numbers[partition, offset] = number
            delivery = Delivery(at, member, count, any(rest))
            self.got.setdefault((partition, offset), []).append(delivery)

    def _ended(self, how: str, member: str, why: object) -> None:
        if how == "failed":
            raise AssertionError(f"{member} failed: {why}")
        if how == "left":
            self.gone.add(member)

    @property
    def done(self) -> set[int]:
        """The numbers whose acceptance a leader has answered with success."""
        return {self.numbers[place] for place in self.accepted if place in self.numbers}

    def of(self, member: str) -> set[int]:
        """The numbers that one member has got."""
        return {
            self.numbers[place]
            for place, row in self.got.items()
            if any(each.member == member for each in row)
        }

    def dead(self, limit: int) -> set[int]:
        """The numbers without an accepted acceptance that had all their deliveries."""
        return {
            self.numbers[place]
            for place, row in self.got.items()
            if place not in self.accepted and max(it.count for it in row) >= limit
        }

    @property
    def seen(self) -> set[int]:
        """The numbers that a member has got."""
        return set(self.numbers.values())

    def most(self) -> int:
        """The highest delivery count that a member was told."""
        counts = (each.count for row in self.got.values() for each in row)
        return max(counts, default=0)

    def repeated(self) -> int:
        """How many records were delivered more than once."""
        return sum(len(row) > 1 for row in self.got.values())

    def unannounced(self) -> list[tuple[_Place, list[Delivery]]]:
        """Records that were delivered several times, and nobody was told.

        Of several deliveries to members that live, all but one have a count above 1,
        or their member was told that the record is its own no longer.
        """
        found = []
        for place, row in self.got.items():
            quiet = {
                each.member
                for each in row
                if each.count <= 1
                and not each.is_lost
                and each.member in self.gone
                and each.member not in self.told.get(place, ())
            }
            if len(quiet) > 1:
                found.append((place, row))
        return found

    def after_acceptance(self) -> list[tuple[_Place, float, Delivery]]:
        """Deliveries anew of records whose acceptance had been answered before.

        What a member had acquired before may come to its application later. If it is
        another member, the record was acquired anew since then, so that the count of
        the delivery is no higher than those before the answer. If it is the member that
        has accepted the record, that counted, since it had the lock again.
        """
        found = []
        for place, (at, owner) in self.accepted.items():
            row = self.got.get(place, [])
            before = max((it.count for it in row if it.at <= at), default=0)
            found += [
                (place, at, it)
                for it in row
                if it.at > at and it.count > before and it.member != owner
            ]
        return found
