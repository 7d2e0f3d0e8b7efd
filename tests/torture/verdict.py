"""Whether a run kept what a group of consumers promises.

* No gap: every record that was acknowledged to the producer was worked on, and those
  of a key in their order, each for the first time when all before it were.
* Nothing committed comes again: a record is worked on twice only if the member that
  did it first died, or lost its partition by a stall, before it was committed.
* What the group has committed at the end is the end of every partition.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from tests.torture.journal import Line

_SHOWN: Final = 10
#: Seconds until a group has a coordinator again, and its members know it.
_FAILOVER_SECONDS: Final = 20.0


class Place(NamedTuple):
    """The place of a record."""

    partition: int
    offset: int


class Sent(NamedTuple):
    """The identity of a record: its key, and its number among those of the key."""

    key: int
    number: int


class Deed(NamedTuple):
    """A member processed a record; the time at which it had done so."""

    at: float
    member: str


@dataclass
class Verdict:
    """The result of a run.

    Attributes:
        records: how many were acknowledged to the producer.
        members: how many members took part.
        events: what happened to members and brokers, counted.
        duplicates: records worked on once more, by what explains it.
        wrong: what must not be, in words.
    """

    records: int
    members: int = 0
    events: Counter[str] = field(default_factory=Counter)
    duplicates: Counter[str] = field(default_factory=Counter)
    gaps: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        events = ", ".join(f"{word} {n}" for word, n in sorted(self.events.items()))
        twice = ", ".join(f"{n} {why}" for why, n in sorted(self.duplicates.items()))
        lines = [
            f"{self.records} records, {self.members} members: {events}",
            f"gaps: {self.gaps}; duplicates: {twice or 'none'}",
            *self.wrong[:_SHOWN],
        ]
        if len(self.wrong) > _SHOWN:
            lines.append(f"... {len(self.wrong)} in all")
        return "\n".join([*lines, "VIOLATED" if self.wrong else "fine"])


@dataclass
class _Term:
    """The time during which a member owned a partition.

    Attributes:
        began: when it was assigned.
        ended: when it was given up or lost.
        end: which of the two.
        committed: what was committed last.
    """

    began: float
    ended: float = float("inf")
    end: str = ""
    committed: int = -1


class _Lives:
    """The history of each member and of its assignments."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._deaths: dict[str, str] = {}
        self._stalls: dict[str, float] = {}
        # Of slow records: when the work on them began, and when it had to end.
        self._long_works: dict[tuple[str, Place], tuple[float, float]] = {}
        self._classic: set[str] = set()
        # When brokers stopped, each of them possibly the group coordinator.
        self._broker_deaths: list[float] = []
        self._terms: dict[tuple[str, int], list[_Term]] = defaultdict(list)
        for line in lines:
            self._live(line)
            self._own(line)

    def _live(self, line: Line) -> None:
        match line.word:
            case "joining" if "consumer" not in line.details:
                self._classic.add(line.member)
            case "killed" | "cancelled":
                self._deaths.setdefault(line.member, line.word)
            case "stalling":
                self._stalls.setdefault(line.member, line.at)
                seconds, *place = line.details
                if place:
                    work = line.member, Place(*map(int, place))
                    # The clock was read before it was told to wait.
                    self._long_works[work] = line.at, line.at + float(seconds) - 0.1
            case "broker-killed" | "broker-stopped":
                self._broker_deaths.append(line.at)
            case _:
                pass

    def _own(self, line: Line) -> None:
        match line.word:
            case "assigned":
                for number in line.partitions:
                    self._terms[line.member, number].append(_Term(line.at))
            case "lost" | "revoked":
                for number in line.partitions:
                    term = self._terms[line.member, number][-1]
                    term.ended, term.end = line.at, line.word
            case "committed":
                for number, offset in line.offsets.items():
                    self._terms[line.member, number][-1].committed = offset
            case _:
                pass

    def _term(self, deed: Deed, place: Place) -> _Term:
        """The last assignment that had begun when the work did."""
        terms = self._terms[deed.member, place.partition]
        began, due = self._long_works.get((deed.member, place), (deed.at, deed.at))
        if deed.at < due:  # it lost and got the partition, and did it anew meanwhile
            began = deed.at
        return [term for term in terms if term.began <= began][-1]

    def has_committed(self, deed: Deed, place: Place) -> bool:
        """Whether a member committed its work, as far as it knows."""
        return self._term(deed, place).committed > place.offset

    def was_given_up(self, deed: Deed, place: Place) -> bool:
        """Whether the member had declared its work on the partition complete."""
        term = self._term(deed, place)
        return term.end == "revoked" and term.ended < deed.at

    def excuse(self, deed: Deed, place: Place) -> str | None:
        """The reason why a member did not commit its work, if there is one."""
        if self.has_committed(deed, place):
            return None
        if deed.member in self._deaths:
            return self._deaths[deed.member]
        term = self._term(deed, place)
        if term.end != "lost":
            return None
        if self._stalls.get(deed.member, term.ended) < term.ended:
            return "stalled"
        # If the coordinator of a classic group dies in a rebalance, the new generation
        # is lost: its successor has no member of that generation.
        is_left = deed.member in self._classic and any(
            0 < term.ended - died < _FAILOVER_SECONDS for died in self._broker_deaths
        )
        return "left without its coordinator" if is_left else None


def judge(
    sent: Mapping[Place, Sent], lines: Iterable[Line], ends: Mapping[int, int]
) -> Verdict:
    """Compare the acknowledged, the processed and the committed records.

    Args:
        sent: every record that was acknowledged to the producer.
        lines: all journals.
        ends: what the group has committed at last, by partition.
    """
    ordered = sorted(lines, key=lambda line: line.at)
    verdict = Verdict(len(sent))
    lives = _Lives(ordered)
    deeds: dict[Place, list[Deed]] = defaultdict(list)
    reached: dict[int, int] = defaultdict(int)
    for line in ordered:
        if line.word != "did":
            if line.word == "failed":
                reason = " ".join(line.details)
                verdict.wrong.append(f"{line.member} failed: {reason}")
            continue
        partition, offset, key, number = map(int, line.details)
        place = Place(partition, offset)
        if sent.get(place, (key, number)) != (key, number):
            verdict.wrong.append(f"{place} is not what was sent: {key} {number}")
        deed, before = Deed(line.at, line.member), deeds[place]
        if lives.was_given_up(deed, place):
            verdict.wrong.append(f"{line.member} did {place} when it had given it up")
        before.append(deed)
        if len(before) > 1:
            _judge_again(verdict, lives, place, before)
        elif number > reached[key]:  # of those in between, nobody has to say more
            verdict.wrong.append(
                f"{line.member} did number {number} of key {key} first, "
                f"before {reached[key]}"
            )
        reached[key] = max(reached[key], number + 1)
    _judge_gaps(verdict, sent, deeds)
    _judge_ends(verdict, sent, ends)
    _count(verdict, ordered)
    return verdict


def _judge_again(
    verdict: Verdict, lives: _Lives, place: Place, deeds: list[Deed]
) -> None:
    """Of all members that processed a record, at most one may have no excuse."""
    excuses = [lives.excuse(deed, place) for deed in deeds]
    known = [excuse for excuse in excuses if excuse]
    if len(excuses) - len(known) > 1:
        who = ", ".join(
            f"{deed.member} at {deed.at:.3f}"
            f"{' (committed)' if lives.has_committed(deed, place) else ''}"
            for deed in deeds
        )
        verdict.wrong.append(f"{place} was done more than once, by {who}")
        verdict.duplicates["unexplained"] += 1
    else:
        verdict.duplicates[f"after a member was {known[0]}"] += 1


def _judge_gaps(
    verdict: Verdict, sent: Mapping[Place, Sent], deeds: Mapping[Place, list[Deed]]
) -> None:
    missing = [place for place in sent if place not in deeds]
    verdict.gaps = len(missing)
    verdict.wrong += [f"{place} was never done" for place in missing]


def _judge_ends(
    verdict: Verdict, sent: Mapping[Place, Sent], ends: Mapping[int, int]
) -> None:
    wanted: dict[int, int] = defaultdict(int)
    for place in sent:
        wanted[place.partition] = max(wanted[place.partition], place.offset + 1)
    for partition, end in wanted.items():
        if ends.get(partition) != end:
            verdict.wrong.append(
                f"partition {partition} ends at {end}, "
                f"and {ends.get(partition)} is committed"
            )


def _count(verdict: Verdict, lines: list[Line]) -> None:
    counted = {"joined", "left", "killed", "cancelled", "stalling", "blocked"}
    counted |= {"broker-killed", "broker-stopped"}
    verdict.events.update(line.word for line in lines if line.word in counted)
    verdict.members = len({line.member for line in lines if line.word == "joined"})
    stalled: set[str] = set()
    for line in lines:
        if line.word == "stalling":
            stalled.add(line.member)
        elif line.word == "lost":
            verdict.events["lost" if line.member in stalled else "lost, no stall"] += 1
