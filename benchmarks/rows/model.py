"""A row of the table: the work, the clients that do it, and the bars of ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

CompressionName = Literal["none", "lz4", "zstd"]
Spec = Mapping[str, object]
#: What a program returned: its count, and seconds or MiB by name.
Result = Mapping[str, float]

MIB = 2**20


@dataclass(frozen=True)
class Measure:
    """A figure of a run.

    Attributes:
        name: stands in keys of the series.
        unit: as the page prints it.
        is_rate: whether more is better.
    """

    name: str
    unit: str
    is_rate: bool = False

    def of(self, result: Result, spec: Spec) -> float:
        """Compute the figure."""
        count = result["count"]
        if self.name == "memory":
            return result["memory"]
        if self.name == "median":
            return result["median"] * 1e3
        cpu, wall = result["cpu"], result["wall"]
        size = spec["size"]
        assert isinstance(size, int)
        figures = {
            "cpu": cpu / count * 1e6,
            "process": cpu * 1e3,
            "time": wall * 1e3,
            "rate": size * count / wall / 1e6,
            "count": count / wall,
            "idle": 100 * cpu / wall,
        }
        return figures[self.name]


CPU = Measure("cpu", "µs of CPU")  # noqa: RUF001 - the micro sign
PROCESS = Measure("process", "ms of CPU")
TIME = Measure("time", "ms")
MEDIAN = Measure("median", "ms, median")
RATE = Measure("rate", "MB/s", is_rate=True)
COUNT = Measure("count", "a second", is_rate=True)
MEMORY = Measure("memory", "MiB")
IDLE = Measure("idle", "% of a core")


@dataclass(frozen=True)
class Bar:
    """The most that a figure may be, as a ratio to another of the same run.

    A rate has to be at least that ratio instead.

    Attributes:
        ratio: the bound; of a figure itself if there is no other.
        client: whose figure, of the same row; "" for the fastest peer.
        way: the way of kafkaio whose figure it is, instead.
        row: the row of that way, if it is another one.
        absolute: the bound of the figure itself, instead of all that.
    """

    ratio: float = 1.0
    client: str = ""
    way: str = ""
    row: str = ""
    absolute: float | None = None


@dataclass(frozen=True)
class Way:
    """How one client does the work of a row.

    Attributes:
        client: its name in the table.
        program: a function of `work`, or a program of the Go module.
        call: what distinguishes ways of one client.
        bars: by the names of measures; of kafkaio only.
        part: how much of the row's records this way does, for slow ones.
    """

    client: str
    program: str
    call: str = ""
    bars: Mapping[str, Bar] = field(default_factory=dict)
    part: float = 1.0

    @property
    def label(self) -> str:
        return f"{self.client} {self.call}".strip()


@dataclass(frozen=True, kw_only=True)
class Topic:
    """The topic of a row; rows whose topics are equal and filled share one.

    Attributes:
        partitions: how many.
        records: how many it is filled with; 0 for a topic that is written to.
        size: bytes of a value.
        keyed: whether records have a key and headers.
        compression: of the batches that it is filled with.
        batch: bytes of the batches that it is filled with, before compression.
        large: whether it takes records of up to 8 MiB.
    """

    partitions: int = 4
    records: int = 0
    size: int = 100
    keyed: bool = False
    compression: CompressionName = "none"
    batch: int = 16_384
    large: bool = False


@dataclass(frozen=True, kw_only=True)
class Row:
    """Some work that several clients do in one run.

    Attributes:
        name: of ``--only`` and of the series.
        title: what stands in the table.
        section: groups rows of the page; see `table`.
        place: ``near``, ``tls``, or ``far20`` and ``far50`` for a round trip of so many
            milliseconds.
        measures: the figures that are taken of a run.
        records: what a run does so many times.
        spec: more of what programs read.
        in_group: whether readers are members of a group of their own.
        is_start: whether a process is measured from its beginning, so that a first
            round is not counted.
    """

    name: str
    title: str
    section: str
    ways: tuple[Way, ...]
    topic: Topic
    measures: tuple[Measure, ...] = (CPU,)
    place: str = "near"
    records: int = 1
    spec: Spec = field(default_factory=dict)
    in_group: bool = False
    is_start: bool = False
