"""kafkaio's data source beside Spark's own connector, in the same sessions.

Run it from the root of the repository as ``python -m benchmarks.spark [group ...]``. It
starts an Apache Kafka, fills a topic, and runs each group of cases in a process of its
own, which has one session of Spark. The cases of a group take turns, so that whatever
else the machine does hits all of them. The first round of each is cold and is not
counted; medians of the others are compared with the first case.

Processor time is that of the driver's JVM and of all Python processes, from /proc. The
memory of Python is the largest sum of proportional set sizes (PSS) of the processes
that the JVM has started, seen in a round of its own.

The groups ``far`` and ``once`` are 20 ms away from the broker, by a proxy that delays
what passes (`benchmarks.delay`). The group ``small`` has micro-batches of 12,000 rows.
Beside it stands a source that reads nothing (`benchmarks.nothing`): it takes what Spark
takes for its own Python processes.

The group ``start`` needs no Spark. It compares what a planning process imports of
kafkaio with ``import pyspark.worker``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import psutil
import pyarrow as pa

from benchmarks.delay import add_listeners, proxying
from benchmarks.nothing import NothingSource
from kafkaio import Producer
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.kafka._topics import TopicSpec, make_topic, remove_topics
from kafkaio.testing.kafka._wire import Address
from tests.spark.sessions import Sessions, Settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GROUPS = (
    *("start", "read", "parquet", "available", "copy", "micro", "write", "pure"),
    *("small", "wide", "far", "once"),
)
PARTITIONS = 4
#: Of the topic ``wide``.
WIDE = 200
#: Records of the topic ``wide``.
WIDE_RECORDS = 10_000
#: The micro-batches of the group ``small``: their number, and the rows of each.
SMALL, SMALL_ROWS = 20, 12_000
#: The micro-batches of the group ``once``.
ONCE, ONCE_ROWS = 10, 2_000
#: The connector takes a minute for each round of these: half a second for each
#: partition that it reads to the end of its log. So two warm rounds are the most.
SLOW = {"wide", "far"}
#: Seconds of a round trip to a broker that is far away.
FAR = 0.020
VALUE_BYTES = 100
#: The topics of the groups that do not read ``--topic``: partitions and records.
TOPICS = {
    "small": (PARTITIONS, SMALL * SMALL_ROWS),
    "wide": (WIDE, WIDE_RECORDS),
    "once": (PARTITIONS, ONCE * ONCE_ROWS),
}
#: The connector with larger fetches.
TUNED = {
    "kafka.max.partition.fetch.bytes": str(8 << 20),
    "kafka.fetch.max.bytes": str(100 << 20),
    "kafka.max.poll.records": "20000",
}
MOST_SECONDS = 60.0


class Bars(NamedTuple):
    """The largest shares of the first case's wall and processor time."""

    wall: float | None = None
    cpu: float | None = None


class Case(NamedTuple):
    """One variant of a group.

    Attributes:
        run: what is timed; its result goes to ``check``.
        check: raises if the result is wrong; not timed.
        bars: against the case that it is compared with.
    """

    run: Callable[[], object]
    check: Callable[[object], None]
    bars: Bars = Bars()
    #: Bars against the second case: the connector, tuned.
    tuned: Bars = Bars()
    #: The case that it is compared with; the first by default.
    base: str = ""


class Cost(NamedTuple):
    """What one run took, in seconds."""

    wall: float
    jvm: float
    python: float
    broker: float

    @property
    def cpu(self) -> float:
        return self.jvm + self.python


class Used(NamedTuple):
    """Processor time that was used so far, in seconds."""

    jvm: float
    python: float
    broker: float


class Bench:
    """The session and the topics of a group.

    Args:
        spark: the session.
        args: of the command line.
        directory: for checkpoints and files.
    """

    def __init__(
        self, spark: SparkSession, args: argparse.Namespace, directory: Path
    ) -> None:
        self.spark = spark
        self.servers: str = args.bootstrap
        self.far = {"kafka.bootstrap.servers": args.far}
        self.topic: str = args.topic
        self.records: int = args.records
        self.written = max(args.records // 2, 1)
        self.broker = psutil.Process(args.broker_pid)
        self.directory = directory

    # ---- what is run -----------------------------------------------------------------

    def read(self, source: str, schema: str = "", **options: str) -> DataFrame:
        reader = self.spark.read.format(source).options(**self._given(options))
        return (reader.schema(schema) if schema else reader).load()

    def total(self, frame: DataFrame, count: str = "*") -> tuple[int, int]:
        sums = frame.selectExpr(f"count({count}) as rows", "sum(length(value)) as size")
        row = sums.collect()[0]
        return row.rows, row.size

    def is_total(self, found: object) -> None:
        self.is_total_of(self.records)(found)

    def is_total_of(self, records: int) -> Callable[[object], None]:
        def check(found: object) -> None:
            expected = (records, records * VALUE_BYTES)
            assert found == expected, (found, expected)

        return check

    def parquet(self, frame: DataFrame) -> str:
        target = str(self.directory / "parquet")
        rows = frame.select("key", "value").write.mode("overwrite")
        rows.option("compression", "snappy").parquet(target)
        return target

    def is_parquet(self, target: object) -> None:
        self.is_total(self.total(self.spark.read.parquet(str(target))))

    def stream(self, source: str, records: int = 0, **options: str) -> list[int]:
        """Read a topic as a stream; return the number of rows of each batch."""
        found: list[int] = []

        def count(batch: DataFrame, _: int) -> None:
            found.append(self.total(batch)[0])

        read = self._stream(source, records, **options)
        self._await(read.writeStream.foreachBatch(count))
        return found

    def is_stream(
        self, batches: int, records: int | None = None
    ) -> Callable[[object], None]:
        def check(found: object) -> None:
            assert isinstance(found, list)
            assert sum(found) == (self.records if records is None else records), found
            assert batches - 1 <= len(found) <= batches + 1, found

        return check

    def copy(self, source: str) -> str:
        target = self.new_topic()
        rows = self._stream(source, self.records // 4).select("key", "value")
        write = rows.writeStream.format(source)
        self._await(write.options(**self._target(target)))
        return target

    def copy_far(self, source: str, **options: str) -> str:
        """Copy the topic ``once`` in small micro-batches, all of it far away."""
        target = self.new_topic()
        rows = self._stream(source, ONCE_ROWS, subscribe="once", **self.far)
        write = rows.select("key", "value").writeStream.format(source)
        self._await(write.options(**{**self._target(target), **self.far, **options}))
        return target

    def is_copy_far(self, target: object) -> None:
        self._is_written(str(target), ONCE * ONCE_ROWS)

    def is_copy(self, target: object) -> None:
        self._is_written(str(target), self.records)

    def write(self, source: str, **options: str) -> str:
        target = self.new_topic()
        made = self.spark.range(0, self.written, 1, PARTITIONS).selectExpr(
            "cast(lpad(cast(id as string), 8, '0') as binary) as key",
            f"cast(rpad(cast(id as string), {VALUE_BYTES}, 'x') as binary) as value",
        )
        write = made.write.format(source).mode("append")
        write.options(**{**self._target(target), **options}).save()
        return target

    def write_once(self) -> str:
        app = uuid.uuid4().hex
        return self.write("kafkaio", exactlyOnce="true", txnAppId=app, txnVersion="0")

    def is_written(self, target: object) -> None:
        self._is_written(str(target), self.written)

    # ---- parts -----------------------------------------------------------------------

    def _given(self, options: Mapping[str, str]) -> dict[str, str]:
        servers = {"kafka.bootstrap.servers": self.servers}
        return {**servers, "subscribe": self.topic, **options}

    def _target(self, topic: str) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self.servers, "topic": topic}

    def _stream(self, source: str, records: int, **options: str) -> DataFrame:
        if source == "nothing":
            made = self.spark.readStream.format(source).options(**options)
            return made.option("limit", str(records)).load()
        given = self._given({"startingOffsets": "earliest", **options})
        if records:
            given["maxOffsetsPerTrigger"] = str(records)
        return self.spark.readStream.format(source).options(**given).load()

    def _await(self, write: object) -> None:
        checkpoint = self.directory / uuid.uuid4().hex
        query = (
            write.option("checkpointLocation", str(checkpoint))  # type: ignore[attr-defined]
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        shutil.rmtree(checkpoint)

    def _addresses(self) -> list[Address]:
        host, _, port = self.servers.partition(":")
        return [(host, int(port))]

    def new_topic(self) -> str:
        name = f"out-{uuid.uuid4().hex}"
        make_topic(self._addresses, TopicSpec(name, PARTITIONS, 1, {}), MOST_SECONDS)
        return name

    def _is_written(self, topic: str, records: int) -> None:
        """Count what a topic has, as consumers that read committed see it."""
        rows = self.spark.read.format("kafkaio").options(**self._given({}))
        committed = {"subscribe": topic, "kafka.isolation.level": "read_committed"}
        found = rows.options(**committed).schema("value binary").load().count()
        assert found == records, (found, records)
        remove_topics(self._addresses, [topic], MOST_SECONDS)

    # ---- measuring -------------------------------------------------------------------

    def used(self) -> Used:
        me = psutil.Process()
        own = me.cpu_times()
        jvm, python = 0.0, own.user + own.system
        for child in me.children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                is_java = "java" in child.name()
                times = child.cpu_times()
                # What has ended is counted by whoever started it.
                ended = times.children_user + times.children_system
                jvm += (times.user + times.system) * is_java
                python += ended + (times.user + times.system) * (not is_java)
        broker = self.broker.cpu_times()
        return Used(jvm, python, broker.user + broker.system)

    def cost(self, case: Case) -> Cost:
        before, began = self.used(), time.perf_counter()
        result = case.run()
        wall, after = time.perf_counter() - began, self.used()
        case.check(result)
        return Cost(wall, *(b - a for a, b in zip(before, after, strict=True)))

    def memory(self, case: Case) -> float:
        """Return the most memory of Python below the JVM during a run, in MB."""
        most, ended = 0, threading.Event()

        def sample() -> None:
            nonlocal most
            while not ended.wait(0.2):
                most = max(most, python_pss())

        thread = threading.Thread(target=sample)
        thread.start()
        try:
            case.check(case.run())
        finally:
            ended.set()
            thread.join()
        return most / 1e6


def python_pss() -> int:
    total = 0
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if "java" not in child.name():
                total += child.memory_full_info().pss
    return total


def cases(group: str, b: Bench) -> dict[str, Case]:
    """Return the cases of a group; the first is Spark's connector at its defaults."""
    total, stream = b.is_total, b.is_stream
    if group == "read":
        return {
            "connector": Case(lambda: b.total(b.read("kafka")), total),
            "connector, tuned": Case(lambda: b.total(b.read("kafka", **TUNED)), total),
            "kafkaio": Case(
                lambda: b.total(b.read("kafkaio")), total, Bars(0.33, 0.60), Bars(0.45)
            ),
            "kafkaio, value alone": Case(
                lambda: b.total(b.read("kafkaio", "value binary"), "value"),
                total,
                Bars(0.28, 0.50),
            ),
        }
    if group == "parquet":
        two = "key binary, value binary"
        return {
            "connector": Case(lambda: b.parquet(b.read("kafka")), b.is_parquet),
            "kafkaio": Case(
                lambda: b.parquet(b.read("kafkaio")), b.is_parquet, Bars(0.50, 0.66)
            ),
            "kafkaio, two columns": Case(
                lambda: b.parquet(b.read("kafkaio", two)), b.is_parquet
            ),
        }
    if group == "available":
        return {
            "connector": Case(lambda: b.stream("kafka"), stream(1)),
            "kafkaio": Case(lambda: b.stream("kafkaio"), stream(1), Bars(0.75, 0.80)),
        }
    if group == "copy":
        return {
            "connector": Case(lambda: b.copy("kafka"), b.is_copy),
            "kafkaio": Case(lambda: b.copy("kafkaio"), b.is_copy, Bars(0.85, 0.80)),
        }
    if group == "micro":
        size = max(b.records // 50, 1)
        return {
            "connector": Case(lambda: b.stream("kafka", size), stream(50)),
            "kafkaio": Case(
                lambda: b.stream("kafkaio", size), stream(50), Bars(0.90, 0.85)
            ),
        }
    if group == "write":
        return {
            "connector": Case(lambda: b.write("kafka"), b.is_written),
            "kafkaio": Case(lambda: b.write("kafkaio"), b.is_written, Bars(0.55, 0.65)),
            "kafkaio, exactlyOnce": Case(b.write_once, b.is_written, Bars(0.65, 0.65)),
        }
    if group in NEW_GROUPS:
        return NEW_GROUPS[group](b)
    assert group == "pure"
    return {
        "connector": Case(lambda: b.total(b.read("kafka")), total),
        "kafkaio, pure Python": Case(
            lambda: b.total(b.read("kafkaio")), total, Bars(1.2)
        ),
    }


def small_cases(b: Bench) -> dict[str, Case]:
    rows = SMALL * SMALL_ROWS
    made = {"rows": str(rows), "size": str(VALUE_BYTES)}

    def run(source: str, **options: str) -> Case:
        check = b.is_stream(SMALL, rows)
        return Case(lambda: b.stream(source, SMALL_ROWS, **options), check)

    return {
        "connector": run("kafka", subscribe="small"),
        "kafkaio": run("kafkaio", subscribe="small")._replace(bars=Bars(1.1)),
        "Python, reads nothing": run("nothing", **made),
    }


def wide_cases(b: Bench) -> dict[str, Case]:
    """Reads of 200 partitions, in batches and in a stream."""
    return far_cases(b, {})


def far_cases(b: Bench, where: Mapping[str, str] | None = None) -> dict[str, Case]:
    """The same; what is read of each partition is bundled into two tasks."""
    given = {"subscribe": "wide", **(b.far if where is None else where)}
    bundled = {**given, "minRecordsPerTask": str(WIDE_RECORDS // 2)}
    total, stream = b.is_total_of(WIDE_RECORDS), b.is_stream(1, WIDE_RECORDS)
    bar = Bars(0.7)
    return {
        "connector": Case(lambda: b.total(b.read("kafka", **given)), total),
        "kafkaio, bundled": Case(
            lambda: b.total(b.read("kafkaio", **bundled)), total, bar
        ),
        "connector, stream": Case(lambda: b.stream("kafka", **given), stream),
        "kafkaio, stream": Case(
            lambda: b.stream("kafkaio", **given), stream, bar, base="connector, stream"
        ),
    }


def once_cases(b: Bench) -> dict[str, Case]:
    least = "kafkaio, at least once"
    return {
        "connector": Case(lambda: b.copy_far("kafka"), b.is_copy_far),
        least: Case(lambda: b.copy_far("kafkaio"), b.is_copy_far),
        "kafkaio, exactlyOnce": Case(
            lambda: b.copy_far("kafkaio", exactlyOnce="true"),
            b.is_copy_far,
            Bars(1.3),
            base=least,
        ),
    }


NEW_GROUPS: Mapping[str, Callable[[Bench], dict[str, Case]]] = {
    "small": small_cases,
    "wide": wide_cases,
    "far": far_cases,
    "once": once_cases,
}


def beside(value: float, bar: float | None) -> str:
    if bar is None:
        return f"{value:5.2f}" + " " * 8
    return f"{value:5.2f}{'<=' if value <= bar else '> '}{bar:<5.2f}{' '}"


class Summary(NamedTuple):
    """The medians of a case, and the bars it is held to."""

    name: str
    case: Case
    rounds: list[Cost]
    memory: float

    @property
    def middle(self) -> Cost:
        warm = self.rounds[1:]
        return Cost(*(median(column) for column in zip(*warm, strict=True)))

    def line(self, base: Cost, tuned: Cost | None) -> str:
        middle, bars = self.middle, self.case.bars
        least = min(cost.wall for cost in self.rounds[1:])
        text = (
            f"  {self.name:23} cold {self.rounds[0].wall:6.2f} | "
            f"wall {middle.wall:6.2f} (min {least:6.2f}) "
            f"x{beside(middle.wall / base.wall, bars.wall)}| "
            f"cpu {middle.jvm:6.2f} + {middle.python:5.2f} "
            f"x{beside(middle.cpu / base.cpu, bars.cpu)}| "
            f"broker {middle.broker:5.2f} | python {self.memory:5.0f} MB"
        )
        if tuned is not None and self.case.tuned.wall is not None:
            ratio = beside(middle.wall / tuned.wall, self.case.tuned.wall)
            text += f" | x{ratio.rstrip()} of tuned"
        return text


def run_group(group: str, args: argparse.Namespace) -> None:
    """Run all cases of a group in this process, and print a line for each."""
    with tempfile.TemporaryDirectory(prefix="kafkaio-bench-") as name, Sessions() as s:
        directory = Path(name)
        settings = Settings(
            directory=directory,
            master="local[2]",
            memory=args.heap,
            java_options="",
            unix_sockets=group in {"micro", "small"},
        )
        bench = Bench(s.get(settings), args, directory)
        bench.spark.dataSource.register(NothingSource)
        chosen = cases(group, bench)
        rounds: dict[str, list[Cost]] = {name: [] for name in chosen}
        warm = min(args.rounds, 2) if group in SLOW else args.rounds
        for _ in range(warm + 1):
            for name, case in chosen.items():
                rounds[name].append(bench.cost(case))
        memory = {
            name: 0.0 if group in SLOW else bench.memory(case)
            for name, case in chosen.items()
        }
    summaries = [
        Summary(name, case, rounds[name], memory[name]) for name, case in chosen.items()
    ]
    first = summaries[0].name
    middles = {summary.name: summary.middle for summary in summaries}
    tuned = next((s.middle for s in summaries if s.name.endswith("tuned")), None)
    topic = "wide" if group == "far" else group
    records = TOPICS[topic][1] if topic in TOPICS else args.records
    print(f"{group}: {records} records, {warm} warm rounds", flush=True)
    for summary in summaries:
        base = middles[summary.case.base or first]
        print(summary.line(base, tuned), flush=True)
    if args.json is not None:
        result = {
            "group": group,
            "records": records,
            "rounds": rounds,
            "medians": middles,
            "ratios": {
                s.name: s.middle.wall / middles[s.case.base or first].wall
                for s in summaries
            },
        }
        with args.json.open("a") as out:
            print(json.dumps(result), file=out)


# ---- the cost of a start -------------------------------------------------------------

#: What planning processes do: plan a batch or a stream, or commit what was written.
PLANS = {
    "plan of a batch": "source.reader(columns).partitions()\n",
    "plan of a stream": (
        "from pyspark.sql.streaming.datasource import ReadAllAvailable\n"
        "reader = source.streamReader(columns)\n"
        "start = reader.initialOffset()\n"
        "reader.partitions(start, reader.latestOffset(start, ReadAllAvailable()))\n"
    ),
    "commit of a write": "sink.writer(columns, False).commit([])\n",
}
PREPARED = (
    "from pyspark.sql.types import BinaryType, StructField, StructType\n"
    "from kafkaio.spark._source import KafkaSource\n"
    "columns = StructType([StructField('value', BinaryType())])\n"
    "servers = {{'kafka.bootstrap.servers': {servers!r}}}\n"
    "source = KafkaSource({{**servers, 'subscribe': {topic!r}}})\n"
    "sink = KafkaSource({{**servers, 'topic': {topic!r}}})\n"
)
BASE = "import asyncio, pyarrow, pyspark.worker, pyspark.sql.worker.utils\n"
#: Around a plan: prints what it has loaded, beside what is loaded in any case.
BEFORE = "import json, sys\nknown = set(sys.modules)\n"
AFTER = "print(json.dumps([name for name in sys.modules if name not in known]))\n"
START_BAR = 0.40


#: Before the interpreter ends, which takes the longer the more is loaded.
TAKEN = "\nimport time\nprint(time.process_time(), flush=True)\n"


def cpu_of(code: str) -> float:
    """Return the user and system time of a new interpreter that runs some code."""
    return float(output_of(code + TAKEN))


def output_of(code: str) -> str:
    command = [sys.executable, "-c", code]
    out = subprocess.run(  # noqa: S603 - ours
        command, check=True, stdout=subprocess.PIPE, text=True, env=plain_environment()
    )
    return out.stdout


def plain_environment() -> dict[str, str]:
    """Return this environment; with it, Python compiles each module once only."""
    without = {"PYTHONDONTWRITEBYTECODE", "PYTHONASYNCIODEBUG"}
    return {name: value for name, value in os.environ.items() if name not in without}


def loads(names: list[str]) -> str:
    """Return code that imports modules, and freezes the collector as planning does."""
    return (
        f"import importlib\nfor name in {names!r}:\n"
        "    module = importlib.import_module(name)\n"
        "    if name == 'kafkaio.spark._runtime': module.freeze()\n"
    )


def run_start(args: argparse.Namespace) -> None:
    """Print what planning imports of kafkaio, beside ``import pyspark.worker``."""
    prepared = PREPARED.format(servers=args.bootstrap, topic=args.topic)
    codes = {"nothing": "pass", "pyspark.worker": "import pyspark.worker"}
    for name, plan in PLANS.items():
        found = json.loads(output_of(BASE + BEFORE + prepared + plan + AFTER))
        spark = [each for each in found if each.partition(".")[0] == "pyspark"]
        rest = [each for each in found if each not in spark and importable(each)]
        codes[f"{name}, without"] = BASE + loads(spark)
        codes[name] = BASE + loads(spark) + loads(rest)
    times: dict[str, list[float]] = {name: [] for name in codes}
    for number in range(args.start_rounds + 1):
        for name, code in codes.items():
            taken = cpu_of(code)
            if number:
                times[name].append(taken)
    middle = {name: median(taken) for name, taken in times.items()}
    unit = middle["pyspark.worker"] - middle["nothing"]
    print(f"start: import pyspark.worker {unit * 1000:.0f} ms of processor time")
    for name in PLANS:
        extra = middle[name] - middle[f"{name}, without"]
        ratio = beside(extra / unit, START_BAR)
        print(f"  {name:22} kafkaio {extra * 1000:6.1f} ms x{ratio}", flush=True)


def importable(name: str) -> bool:
    """Return whether a module can be imported by its name in another process."""
    return not name.startswith(("__", "_cython_"))


# ---- the command ---------------------------------------------------------------------


async def fill(servers: str, topic: str, records: int) -> None:
    """Write records with keys of 8 bytes and random values."""
    blob = os.urandom(VALUE_BYTES * 50_000)
    async with Producer(servers, batch_size=1 << 16, buffer_memory=1 << 28) as producer:
        for first in range(0, records, 50_000):
            numbers = range(first, min(first + 50_000, records))
            keys = pa.array([b"%08d" % n for n in numbers], pa.binary())
            starts = [VALUE_BYTES * (n - first) for n in numbers]
            values = pa.array([blob[i : i + VALUE_BYTES] for i in starts], pa.binary())
            table = pa.table({"key": keys, "value": values})
            await producer.send_table(topic, table, key="key")


def processes_of(kafka: Kafka) -> list[int]:
    below = psutil.Process().children(recursive=True)
    return [child.pid for child in below if "java" in child.name()]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("groups", nargs="*", metavar="group", help=", ".join(GROUPS))
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=5, help="warm rounds")
    parser.add_argument("--start-rounds", type=int, default=11)
    parser.add_argument("--heap", default="3g", help="of the driver")
    parser.add_argument("--json", type=Path, help="appends every round to this file")
    parser.add_argument("--in-group", help=argparse.SUPPRESS)
    parser.add_argument("--bootstrap", help=argparse.SUPPRESS)
    parser.add_argument("--far", help=argparse.SUPPRESS)
    parser.add_argument("--broker-pid", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--topic", default="bench", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.in_group:
        run_group(args.in_group, args)
        return 0
    if unknown := set(args.groups) - set(GROUPS):
        parser.error(f"no such group: {', '.join(sorted(unknown))}")
    groups = args.groups or GROUPS
    with Kafka(fast=False, heap="1g") as kafka, far_away(kafka) as args.far:
        args.bootstrap = kafka.bootstrap_servers
        topics = {args.topic: (PARTITIONS, args.records), **TOPICS}
        for topic, (partitions, records) in topics.items():
            kafka.create_topic_blocking(topic, partitions)
            asyncio.run(fill(args.bootstrap, topic, records))
        for group in groups:
            if group == "start":
                run_start(args)
            else:
                own_process(group, args, kafka)
    return 0


@contextmanager
def far_away(kafka: Kafka) -> Iterator[str]:
    """Restart a broker with a listener that is far away, for so long; its address."""
    [route] = asyncio.run(add_listeners(kafka, [FAR]))
    with proxying([route]):
        yield f"127.0.0.1:{route[1]}"


def own_process(group: str, args: argparse.Namespace, kafka: Kafka) -> None:
    """Run a group in a new process, which inherits the arguments."""
    [broker] = processes_of(kafka)
    command = [sys.executable, "-m", "benchmarks.spark", "--in-group", group]
    command += ["--bootstrap", args.bootstrap, "--broker-pid", str(broker)]
    command += ["--records", str(args.records), "--rounds", str(args.rounds)]
    command += ["--heap", args.heap, "--topic", args.topic, "--far", args.far]
    if args.json is not None:
        command += ["--json", str(args.json)]
    environment = plain_environment()
    if group == "pure":
        environment["KAFKAIO_CODEC"] = "python"
    subprocess.run(command, check=True, env=environment)  # noqa: S603 - ours


if __name__ == "__main__":
    sys.exit(main())
