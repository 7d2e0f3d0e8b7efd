"""Runs rows: each way in a process of its own, in rounds in which all take turns."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import statistics
import sys
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import kafkaio
from benchmarks.rows.machine import GO_MODULE, busy, ours
from benchmarks.rows.model import Measure, Result, Row, Topic, Way
from kafkaio.admin import NewTopic

#: A run that takes longer has failed.
RUN_SECONDS = 120
#: Kafka creates no more than 10,000 partitions at a time.
STEP = 5_000
#: Distinct values of a topic. They are text, so that codecs have something to do.
VALUES = 500
WORDS = (
    "order shipped payment refused basket customer invoice parcel returned address"
    " created updated cancelled priority express standard insured weight region depot"
)
#: Bounds the disk of topics that are written to.
BOUNDED = {"retention.bytes": f"{64 * 2**20}", "segment.bytes": f"{64 * 2**20}"}

Figures = dict[str, list[float]]


class Failed(Exception):
    """A run ended otherwise than with its result."""


def values(size: int) -> list[bytes]:
    """Return distinct values of a size: text of words and numbers."""
    dice = random.Random(size)
    if size > 2**20:
        return [dice.randbytes(size).replace(b"\n", b"_")]
    made, words = [], WORDS.split()
    for _ in range(VALUES):
        text = f"{dice.getrandbits(128):032x}"
        while len(text) < size:
            text += f" {dice.choice(words)} {dice.randrange(10**6)}"
        made.append(text[:size].encode())
    return made


class Bench:
    """Brokers' addresses, topics that are there, and what runs need on disk.

    Attributes:
        places: bootstrap addresses by the names that rows have for them.
        other: percent of a core that everything else used, of each run.
    """

    def __init__(
        self, places: Mapping[str, str], folder: Path, authority: Path | None
    ) -> None:
        self.places = places
        self.other: list[float] = []
        self._folder = folder
        self._authority = authority
        self._id = uuid.uuid4().hex[:6]
        self._filled: dict[Topic, str] = {}
        self._made = 0

    async def __aenter__(self) -> Bench:
        self._admin = kafkaio.Admin(self.places["near"])
        await self._admin.start()
        await self._build()
        return self

    async def __aexit__(self, *_: object) -> None:
        # The broker may not be ours.
        await self._delete(self._filled.values())
        await self._admin.close()

    async def measure(self, row: Row, rounds: int) -> Mapping[str, Figures]:
        """Return the figures of each way of a row, by measure."""
        topic = await self._topic(row.topic)
        try:
            return await self._measure(row, topic, rounds)
        finally:
            if not row.topic.records:
                await self._delete([topic])

    async def _measure(
        self, row: Row, topic: str, rounds: int
    ) -> Mapping[str, Figures]:
        found: dict[str, Figures] = {}
        if row.is_start:  # bytecode is written, and files are cached
            for way in row.ways:
                await self._checked(row, way, self._spec(row, way, topic))
        for number in range(rounds):
            # Another one begins each round.
            at = number % len(row.ways)
            for way in row.ways[at:] + row.ways[:at]:
                spec = self._spec(row, way, topic)
                result = await self._checked(row, way, spec)
                figures = found.setdefault(way.label, {})
                for measure in row.measures:
                    figure = measure.of(result, spec)
                    figures.setdefault(measure.name, []).append(figure)
        return {way.label: found[way.label] for way in row.ways}

    # ---- topics

    async def _delete(self, names: Iterable[str]) -> None:
        for name in names:
            # What was measured counts, even if the broker keeps its topics.
            with contextlib.suppress(kafkaio.KafkaError):
                await self._admin.delete_topics([name], timeout=120)

    async def _topic(self, topic: Topic) -> str:
        if topic in self._filled:
            return self._filled[topic]
        self._made += 1
        name = f"rows-{self._id}-{self._made}"
        configs = {} if topic.records else dict(BOUNDED)
        if topic.large:
            configs["max.message.bytes"] = f"{8 * 2**20}"
        begun = min(topic.partitions, STEP)
        made = NewTopic(name, begun, 1, configs=configs)
        await self._admin.create_topics([made], timeout=120)
        for count in range(begun + STEP, topic.partitions + STEP, STEP):
            more = {name: min(count, topic.partitions)}
            await self._admin.create_partitions(more, timeout=120)
        await self._end(name, topic.partitions)  # waits until there are leaders
        if topic.records:
            await self._fill(name, topic)
            self._filled[topic] = name
        return name

    async def _fill(self, name: str, topic: Topic) -> None:
        """Divide records among all partitions alike."""
        texts, each = values(topic.size), topic.records // topic.partitions
        key = b"key-000000000000" if topic.keyed else None
        trace = [("trace", b"0123456789abcdef"), ("source", b"checkout")]
        headers = trace if topic.keyed else []
        async with kafkaio.Producer(
            self.places["near"],
            batch_size=topic.batch,
            linger_ms=100,
            compression_type=topic.compression,
        ) as producer:
            for partition in range(topic.partitions):
                for number in range(each):
                    text = texts[number % len(texts)]
                    _ = await producer.enqueue(  # the flush waits
                        name, text, key=key, headers=headers, partition=partition
                    )
            await producer.flush()

    async def _end(self, name: str, partitions: int) -> int:
        """Return the sum of the end offsets, once all partitions are known."""
        places = [kafkaio.TopicPartition(name, n) for n in range(partitions)]
        near = self.places["near"]
        async with (
            asyncio.timeout(240),
            # Another one each time: it would go on asking for topics that are deleted.
            kafkaio.Consumer(near, isolation_level="read_committed") as consumer,
        ):
            # The broker gives no signal.
            while len(await consumer.partitions_for_topic(name)) < partitions:  # noqa: ASYNC110
                await asyncio.sleep(0.5)
            ends = await consumer.end_offsets(places, timeout=120)
        return sum(ends.values())

    async def _committed(self, name: str, partitions: int) -> int:
        """Read a topic to its end, and return how many records it has."""
        places = [kafkaio.TopicPartition(name, n) for n in range(partitions)]
        async with kafkaio.Consumer(
            self.places["near"],
            assign=places,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        ) as consumer:
            return len(await consumer.read_to_end())

    # ---- runs

    def _spec(self, row: Row, way: Way, topic: str) -> dict[str, object]:
        size = row.topic.size
        file = self._folder / f"values-{size}"
        if not file.exists():
            file.write_bytes(b"\n".join(values(size)))
        spec: dict[str, object] = {
            "program": way.program,
            "bootstrap": self.places[row.place],
            "topic": topic,
            "partitions": row.topic.partitions,
            "records": max(int(row.records * way.part), 1),
            "size": size,
            "values": str(file),
            "keyed": row.topic.keyed,
        }
        if row.place == "tls":
            spec["ca"] = str(self._authority)
        if row.in_group:
            spec["group"] = f"rows-{uuid.uuid4().hex}"
        return {**spec, **row.spec}

    async def _checked(self, row: Row, way: Way, spec: Mapping[str, object]) -> Result:
        """Run once, and count what was read, or what the topic has now."""
        name, partitions = str(spec["topic"]), row.topic.partitions
        # Markers of transactions have offsets, too.
        size = self._end if "each" not in spec else self._committed
        before = 0 if row.topic.records else await size(name, partitions)
        result = await self._run(way, spec)
        if "written" in result:
            grown = await size(name, partitions) - before
            if grown != result["written"]:
                raise Failed(f"{row.name}, {way.label}: {grown} of {result} written")
        wanted, count = spec["records"], result["count"]
        assert isinstance(wanted, int)
        callers = row.spec.get("callers", 1)
        assert isinstance(callers, int)
        if "memory" not in result and count < wanted // callers * callers:
            raise Failed(f"{row.name}, {way.label}: {count} of {wanted}")
        return result

    async def _run(self, way: Way, spec: Mapping[str, object]) -> Result:
        if way.client == "franz-go":
            command = [str(self._folder / "franz-go")]
        else:
            command = [sys.executable, "-m", "benchmarks.rows.worker"]
        at, spent, own = time.perf_counter(), busy(), ours()
        text = await output([*command, json.dumps(spec)])
        taken = time.perf_counter() - at
        other = busy() - spent - (ours() - own)
        self.other.append(max(100 * other / taken, 0.0))
        found: dict[str, float] = json.loads(text.splitlines()[-1])
        return found

    async def _build(self) -> None:
        program = str(self._folder / "franz-go")
        await output(["go", "build", "-o", program, "."], GO_MODULE)


def environment() -> dict[str, str]:
    """Return the variables of a run, without those that make Python slower."""
    slower = {"PYTHONDONTWRITEBYTECODE", "PYTHONASYNCIODEBUG"}
    kept = {name: value for name, value in os.environ.items() if name not in slower}
    return {**kept, "PYTHONPATH": str(Path.cwd())}


async def output(command: Sequence[str], folder: Path | None = None) -> str:
    """Run a program to its end, and return what it wrote."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=environment(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(RUN_SECONDS):
            out, problems = await process.communicate()
    except BaseException as error:
        process.kill()
        await process.wait()
        if isinstance(error, TimeoutError):
            raise Failed(f"{command} took {RUN_SECONDS} s") from None
        raise
    if process.returncode:
        raise Failed(f"{command}: {problems.decode()[-2_000:]}")
    return out.decode()


def medians(figures: Figures, measures: Iterable[Measure]) -> dict[str, object]:
    """Return the median and all figures of each measure."""
    return {
        each.name: {
            "median": statistics.median(figures[each.name]),
            "all": figures[each.name],
        }
        for each in measures
    }
