"""Draws the pictures in the docs that show what the machines decide.

``python -m codegen.pictures`` writes ``docs/_static/*.svg``; with ``--check`` it only
compares, and fails if a picture is out of date. What is drawn is what `Schedule`, which
decides for ``Consumer.run``, says of a few records.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

from kafkaio._machines.schedule import Job, Ordering, Schedule
from kafkaio.types import Record, TopicPartition

STATIC: Final = Path(__file__).parent.parent / "docs" / "_static"
PARTITION: Final = TopicPartition("orders", 0)
FONT: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"
CODE: Final = "ui-monospace, 'SF Mono', Menlo, Consolas, monospace"
INK: Final = "#1f2933"
FAINT: Final = "#66717d"
LINE: Final = "#c3cad2"
MARK: Final = "#c2410c"
#: Fill and edge of a record: finished, in hand, waiting.
DONE: Final = ("#bfe5c8", "#2f8f4e")
IN_HAND: Final = ("#ffe0a3", "#c27c0e")
WAITING: Final = ("#ffffff", LINE)
#: Fill and edge of the records of each key.
KEYS: Final[Mapping[str, tuple[str, str]]] = {
    "a": ("#c9dcfb", "#3468c0"),
    "b": ("#bfe5c8", "#2f8f4e"),
    "c": ("#ffe0a3", "#c27c0e"),
    "d": ("#e5d0f5", "#8147b5"),
}


@dataclass
class Picture:
    """An SVG under way, on a card that is readable on a light and on a dark page."""

    width: int
    height: int
    title: str
    parts: list[str] = field(default_factory=list)

    def text(  # noqa: PLR0913
        self,
        x: float,
        y: float,
        words: str,
        *,
        size: int = 14,
        colour: str = INK,
        anchor: str = "start",
        font: str = FONT,
    ) -> None:
        """Add words, the base line of which begins, ends or is centred at (x, y)."""
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" font-family="{font}" font-size="{size}" '
            f'fill="{colour}" text-anchor="{anchor}">{escape(words)}</text>'
        )

    def box(
        self, x: float, y: float, width: float, height: float, look: tuple[str, str]
    ) -> None:
        """Add a box with the fill and the edge of ``look``."""
        fill, edge = look
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4" '
            f'fill="{fill}" stroke="{edge}" stroke-width="1.5"/>'
        )

    def line(self, x: float, y: float, to_x: float, to_y: float, colour: str) -> None:
        """Add a line."""
        self.parts.append(
            f'<path d="M {x:g} {y:g} L {to_x:g} {to_y:g}" stroke="{colour}" '
            f'stroke-width="1.5" fill="none"/>'
        )

    def svg(self) -> str:
        """The text of the file."""
        inside = "\n".join(self.parts)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" '
            f'height="{self.height}" viewBox="0 0 {self.width} {self.height}" '
            f'role="img">\n<title>{escape(self.title)}</title>\n'
            f'<rect x="0.75" y="0.75" width="{self.width - 1.5:g}" '
            f'height="{self.height - 1.5:g}" rx="8" fill="#fcfcfd" stroke="{LINE}"/>\n'
            f"{inside}\n</svg>\n"
        )


# ---- what is decided -----------------------------------------------------------------


def records(keys: Sequence[str | None]) -> list[Record]:
    """Records of one partition with these keys, and offsets from 0 on."""
    return [
        Record(
            topic=PARTITION.topic,
            partition=PARTITION.partition,
            offset=offset,
            timestamp=0,
            key=None if key is None else key.encode(),
            value=b"",
        )
        for offset, key in enumerate(keys)
    ]


@dataclass(frozen=True)
class Span:
    """A handler that ran: which record, on which worker, and when."""

    record: Record
    worker: int
    begin: float
    end: float


def work(
    keys: Sequence[str | None], seconds: Sequence[float], workers: int, by: Ordering
) -> tuple[list[Span], list[tuple[float, int]]]:
    """Let `Schedule` give records to workers, each of which takes its time.

    Returns:
        The handlers that ran; and each time with the offset up to which the partition
        could be committed from then on.
    """
    schedule = Schedule(by, limit=2 * len(keys))
    schedule.open(PARTITION)
    schedule.add(PARTITION, records(keys))
    free, running = [*range(workers)], list[tuple[float, int, Job]]()
    spans, committed, now = list[Span](), [(0.0, 0)], 0.0
    while True:
        while free and (job := schedule.next()) is not None:
            worker, offset = heappop(free), job.record.offset
            heappush(running, (now + seconds[offset], worker, job))
            spans.append(Span(job.record, worker, now, now + seconds[offset]))
        if not running:
            return spans, committed
        now, worker, job = heappop(running)
        schedule.finished(job)
        heappush(free, worker)
        first = schedule.first_unfinished(PARTITION)
        upto = len(keys) if first is None else first.offset
        if upto != committed[-1][1]:
            committed.append((now, upto))


# ---- the pictures --------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One way to read, at one moment: the state of each of ten records."""

    code: str
    said: str
    finished: frozenset[int]
    in_hand: frozenset[int]
    committed: int | None

    def look(self, offset: int) -> tuple[str, str]:
        """Fill and edge of a record's box."""
        if offset in self.finished:
            return DONE
        return IN_HAND if offset in self.in_hand else WAITING


def run_row() -> Row:
    """``run`` with three handlers, of which the one of record 3 is slow."""
    spans, committed = work([None] * 10, [3, 4, 5, 9, 2, 9, 9, 9, 9, 9], 3, "none")
    now = 6.5
    return Row(
        "run(handler, concurrency=3)",
        "4 is finished, and waits for 3",
        frozenset(s.record.offset for s in spans if s.end <= now),
        frozenset(s.record.offset for s in spans if s.begin <= now < s.end),
        [offset for at, offset in committed if at <= now][-1],
    )


def rows() -> list[Row]:
    """The rows; tests/unit/examples/test_reading.py shows the first two."""
    upto_six, upto_four = frozenset(range(6)), frozenset(range(4))
    run = run_row()
    return [
        Row(
            "async for record in consumer",
            "asking for 6 has finished 5",
            upto_six,
            frozenset({6}),
            6,
        ),
        Row(
            "poll(max_records=4), batches(...)",
            "the next call finishes these four",
            upto_four,
            frozenset(range(4, 8)),
            4,
        ),
        run,
        Row(
            "ShareConsumer",
            "each record is acknowledged by itself",
            run.finished,
            run.in_hand,
            None,
        ),
    ]


def committed_picture() -> Picture:
    """What is committed in the middle of the work, for each way to read."""
    cell, left, top, step = 40, 300, 62, 74
    shown = rows()
    picture = Picture(740, top + step * len(shown) - 10, "What is committed when")
    legend = (("finished", DONE), ("in hand", IN_HAND), ("fetched", WAITING))
    for n, (word, look) in enumerate(legend):
        x: float = left + 120 * n
        picture.box(x, 16, 18, 18, look)
        picture.text(x + 26, 30, word, size=13)
    picture.text(20, 30, "one partition, records 0 to 9", size=13, colour=FAINT)
    for n, row in enumerate(shown):
        y = top + step * n
        picture.text(20, y + 17, row.code, size=13, font=CODE)
        picture.text(20, y + 36, row.said, size=12, colour=FAINT)
        for offset in range(10):
            x = left + cell * offset
            picture.box(x, y, cell - 6, 30, row.look(offset))
            picture.text(x + cell / 2 - 3, y + 20, str(offset), anchor="middle")
        if row.committed is not None:
            x = left + cell * row.committed - 3
            picture.line(x, y - 6, x, y + 40, MARK)
            words = f"committed: {row.committed}"
            picture.text(x + 6, y + 48, words, size=12, colour=MARK)
    return picture


def keys_picture() -> Picture:
    """Which records handlers work on, and when, with ``ordering="key"``."""
    keys = ["a", "b", "a", "c", "a", "b", "d", "c"]
    seconds = [3.0, 2, 2, 4, 2, 3, 3, 2]
    spans, committed = work(keys, seconds, 3, "key")
    scale, left, top, step = 64.0, 150, 86, 44
    end = max(span.end for span in spans)
    picture = Picture(int(left + scale * end + 30), 300, "Records of a key take turns")
    picture.text(20, 35, "records in the log", size=13, colour=FAINT)
    for offset, key in enumerate(keys):
        x: float = left + 50 * offset
        picture.box(x, 14, 44, 32, KEYS[key])
        picture.text(x + 22, 35, f"{offset} {key}", anchor="middle", font=CODE)
    for worker in range(3):
        y = top + step * worker
        picture.text(20, y + 21, f"handler {worker + 1}", size=13, colour=FAINT)
        picture.line(left, y + 16, left + scale * end, y + 16, "#eceff2")
    for span in spans:
        x, y = left + scale * span.begin, top + step * span.worker
        key = (span.record.key or b"").decode()
        picture.box(x, y, scale * (span.end - span.begin) - 3, 32, KEYS[key])
        words = f"{span.record.offset} {key}"
        middle = x + scale * (span.end - span.begin) / 2
        picture.text(middle, y + 21, words, anchor="middle", font=CODE)
    y = top + step * 3 + 30
    picture.text(20, y + 5, "committed up to", size=13, colour=MARK)
    picture.line(left, y, left + scale * end, y, MARK)
    for at, offset in committed:
        x = left + scale * at
        picture.line(x, y - 6, x, y + 6, MARK)
        picture.text(x, y + 24, str(offset), size=13, colour=MARK, anchor="middle")
    words = "time: a line for each handler, concurrency=3; 2 waits for 0, 4 for 2"
    picture.text(left, 288, words, size=12, colour=FAINT)
    return picture


def pictures() -> dict[str, str]:
    """All pictures, by the names of their files."""
    return {
        "committed.svg": committed_picture().svg(),
        "keys.svg": keys_picture().svg(),
    }


def main(arguments: list[str]) -> int:
    """Write the pictures, or with ``--check`` tell whether they are up to date."""
    stale = [
        name
        for name, svg in pictures().items()
        if not (path := STATIC / name).exists() or path.read_text() != svg
    ]
    if "--check" in arguments:
        if stale:
            print(f"out of date: {', '.join(stale)}")
        return 1 if stale else 0
    for name in stale:
        (STATIC / name).write_text(pictures()[name])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
