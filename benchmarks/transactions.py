"""Transactions, and copies made exactly once: kafkaio beside other clients.

    export KAFKAIO_BENCH_RUNNER=path/to/the/runner
    python benchmarks/transactions.py --scenario x1-1,x1-1000 --repeat 5 --json out.json

The scenarios are additional ones of the runner (see ``README.md``), which measures one
client per process and lets clients take turns. ``x1-N`` writes transactions of N
records of 100 bytes, one after the other, to four partitions. ``x1-each`` writes one
record to each of twelve partitions on three brokers. ``x1-plain`` writes records
without transactions. ``x2-N`` copies a topic in transactions of N records, ``x2-plain``
at least once. The program starts a broker with Kafka's own timers, or three for
``x1-each``, unless ``--bootstrap`` names a running cluster. At the end it prints
kafkaio's medians beside the bars that it must reach.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

RUNNER_VARIABLE = "KAFKAIO_BENCH_RUNNER"
HERE = Path(__file__).resolve()
K = 1000
V100 = {"value": "ascii", "size": 100}
X1 = {"kind": "transact", "partitions": 4, **V100}
X2 = {"kind": "copy", "partitions": 4, "records": 1000 * K, **V100}
PLAIN = {"kind": "produce", "partitions": 4, "records": 500 * K, **V100}

#: Titles and settings, as the runner has them; ``per`` is records a transaction.
SCENARIOS: dict[str, tuple[str, dict[str, object]]] = {
    "x1-1": ("1 record a transaction", X1 | {"records": 1000, "per": 1}),
    "x1-10": ("10 records a transaction", X1 | {"records": 8 * K, "per": 10}),
    "x1-100": ("100 records a transaction", X1 | {"records": 60 * K, "per": 100}),
    "x1-1000": ("1,000 records a transaction", X1 | {"records": 300 * K, "per": K}),
    "x1-10000": (
        "10,000 records a transaction",
        X1 | {"records": 600 * K, "per": 10 * K},
    ),
    "x1-each": (
        "a record to each of 12 partitions",
        X1 | {"records": 3600, "per": 12, "partitions": 12, "each": True},
    ),
    "x1-plain": ("records without transactions", PLAIN),
    "x2-1000": ("copy, 1,000 records a transaction", X2 | {"per": K}),
    "x2-10000": ("copy, 10,000 records a transaction", X2 | {"per": 10 * K}),
    "x2-plain": ("copy, at least once", X2 | {"per": 0}),
}
CLUSTER = {"x1-each"}  # three brokers, replication factor 3
EXTRA_SPEC = {
    "per": 1,  # records a transaction; 0 means without transactions
    "each": False,  # one record to each partition
    "output": "",  # of a copy
    "transactional_id": "",
    "options": {},  # further options of a producer of kafkaio
}
CPU_PER_RECORD = "cpu \N{MICRO SIGN}s/rec"  # as the runner spells it
WARM = 5  # transactions before the clock starts


# ---- what a worker does


async def transact(client, s):
    """Transactions one after the other; the clock stops when the last is committed."""
    from core import Window, load_pool, spread_of

    pool = load_pool(s.pool_file)
    await client.open_transactions()
    whole, acked = [], []
    count = max(1, s.records // s.per)
    made = [
        [pool[(n * s.per + i) % len(pool)] for i in range(s.per)]
        for n in range(min(count, len(pool)))
    ]
    for n in range(WARM):
        await client.transact(s.topic, made[n % len(made)])
    clock = time.perf_counter
    with Window(s.broker_pid) as window:
        for n in range(count):
            began = clock()
            at = await client.transact(s.topic, made[n % len(made)])
            whole.append(clock() - began)
            if at:
                acked.append(at - began)
    await client.close_transactions()
    figures = {
        **window.figures,
        "count": count * s.per,
        "warm": WARM * s.per,
        "transactions": count,
        "transaction_ms": spread_of(whole, 1e3),
    }
    if acked:
        figures["acked_ms"] = spread_of(acked, 1e3)
    return figures


async def copy(client, s):
    """Copy a topic; the clock starts when the first records are handed out."""
    from core import Window

    window = Window(s.broker_pid)
    copied, transactions = await client.copy(window.__enter__)
    window.__exit__()
    await client.close_copy()
    return {
        **window.figures,
        "count": copied,
        "warm": 0,
        "transactions": transactions,
    }


# ---- the runner, with more scenarios


def extend(bench):
    """Give the runner's module the scenarios of this one; return its Runner."""
    import core
    import scenarios

    core.SPEC_DEFAULTS.update(EXTRA_SPEC)
    bench.SCENARIOS.update(SCENARIOS)
    bench.NEEDS.update(transact="transact", copy="copy")
    scenarios.KINDS.update(transact=transact, copy=copy)
    of_runner = bench.figures
    bench.figures = lambda row: transaction_figures(row, of_runner(row))
    return runner_of(bench)


def runner_of(bench):
    """Return the class of a runner that knows transactions and copies."""
    from confluent_kafka.admin import NewTopic
    from control import Control

    class Replicated(Control):
        def create(self, topic, partitions):
            made = self.admin.create_topics([NewTopic(topic, partitions, 3)])
            made[topic].result(30)

    class Runner(Measures, bench.Runner):
        def __init__(self, args):
            super().__init__(args)
            if args.brokers == 3:
                self.control = Replicated(args.bootstrap)

    return Runner


class Measures:
    """The runs of transactions and copies, for the runner's own class."""

    def command(self, spec):
        if spec["client"] and self.clients[spec["client"]].external:
            return super().command(spec)
        return [sys.executable, str(HERE), "--worker", json.dumps(spec)], None

    def measure(self, client, scen, conf, rep, profile=""):
        if conf["kind"] == "transact":
            return self.measure_transactions(client, scen, conf, profile)
        if conf["kind"] == "copy":
            return self.measure_copy(client, scen, conf, profile)
        return super().measure(client, scen, conf, rep, profile)

    def measure_transactions(self, client, scen, conf, profile):
        partitions = conf["partitions"]
        with self.fresh_topic(scen, partitions) as topic:
            spec = self.spec(client, conf, topic=topic, profile=profile)
            spec |= {"transactional_id": topic, "options": self.args.options}
            with self.lock():
                found = self.run(spec, self.args.timeout)
            self.check(topic, partitions, found["count"] + found["warm"])
            return found

    def measure_copy(self, client, scen, conf, profile):
        partitions, records = conf["partitions"], conf["records"]
        source = self.filled_topic(conf)
        with self.fresh_topic(scen, partitions) as topic:
            spec = self.spec(client, conf, topic=source, profile=profile)
            spec |= {"transactional_id": topic, "options": self.args.options}
            spec |= {"output": topic, "group": topic, "expect": records}
            with self.lock():
                found = self.run(spec, self.args.timeout)
            self.check(topic, partitions, records, found["count"])
            return found

    def check(self, topic, partitions, *wanted):
        """A read_committed reader must see so many records."""
        seen = committed_records(self.args.bootstrap, topic, partitions)
        if any(seen != count for count in wanted):
            raise RuntimeError(f"{wanted} committed, a reader sees {seen}")


def committed_records(bootstrap: str, topic: str, partitions: int) -> int:
    """Count what a read_committed reader of confluent-kafka sees."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

    reader = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench-count",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    try:
        reader.assign(
            [TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(partitions)]
        )
        ended: set[int] = set()
        seen, deadline = 0, time.monotonic() + 60
        # EndTxn is answered before its markers are written: the last ones may be late.
        settled = time.monotonic() + 1
        while len(ended) < partitions or time.monotonic() < settled:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{topic} was not read to its end")
            for message in reader.consume(10_000, 0.2):
                if message.error() is None:
                    seen += 1
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    ended.add(message.partition())
    finally:
        reader.close()
    return seen


def transaction_figures(row: Mapping, found: dict) -> dict:
    """The figures of one run."""
    if row["kind"] not in {"transact", "copy"}:
        return found
    count = row["transactions"]
    if count:
        found = {
            "txn/s": count / row["wall"],
            "cpu ms/txn": row["cpu"] / count * 1e3,
        } | found
    found["krec/s"] = row["count"] / row["wall"] / 1e3
    found[CPU_PER_RECORD] = row["cpu"] / row["count"] * 1e6
    for name in ("transaction_ms", "acked_ms"):
        if name in row:
            word = name.removesuffix("_ms")
            found |= {f"{word} {q} ms": row[name][q] for q in ("p50", "p90", "p99")}
    return found


# ---- the bars


@dataclass(frozen=True)
class Bar:
    """What kafkaio must reach in a scenario.

    Attributes:
        figure: of kafkaio.
        against: the other clients, the better of which counts; in other scenarios
            than this one if `scenario` says so.
        limit: the share of the others' figure.
        most: whether the share is a most, or a least.
        scenario: whose figure the share is of.
        plus: added to the limit, in the unit of the figure.
        other: the others' figure, if it is not the same.
    """

    figure: str
    against: tuple[str, ...]
    limit: float
    most: bool
    scenario: str = ""
    plus: float = 0.0
    other: str = ""


US = ("kafkaio",)
PEERS = ("java", "confluent")
BARS: Mapping[str, Sequence[Bar]] = {
    "x1-1": [
        Bar("cpu ms/txn", ("confluent",), 0.6, most=True),
        Bar("cpu ms/txn", ("aiokafka",), 0.25, most=True),
        Bar("txn/s", PEERS, 1.3, most=False),
        Bar("transaction p90 ms", ("java",), 0.5, most=True),
    ],
    "x1-100": [
        Bar("cpu ms/txn", ("confluent",), 0.8, most=True),
        Bar("cpu ms/txn", ("aiokafka",), 0.2, most=True),
        Bar("txn/s", PEERS, 1.2, most=False),
    ],
    "x1-1000": [
        Bar("cpu ms/txn", ("confluent",), 0.6, most=True),
        # 1,000 records at our plain microseconds each are as many ms a transaction.
        Bar(
            *("cpu ms/txn", US, 1.0),
            most=True,
            scenario="x1-plain",
            other=CPU_PER_RECORD,
            plus=0.45,
        ),
        Bar("krec/s", PEERS, 1.3, most=False),
    ],
    "x1-10000": [Bar("krec/s", US, 0.6, most=False, scenario="x1-plain")],
    "x1-each": [Bar("acked p50 ms", ("java",), 0.7, most=True)],
    "x2-1000": [Bar("krec/s", ("confluent",), 1.0, most=False)],
    "x2-10000": [Bar("krec/s", US, 0.5, most=False, scenario="x2-plain")],
}


class Medians:
    """The medians of all runs that succeeded."""

    def __init__(self, runs, figures) -> None:
        self._found: dict[tuple[str, str], list[Mapping[str, float]]] = {}
        for row in runs:
            if row["ok"]:
                key = row["scenario"], row["client"]
                self._found.setdefault(key, []).append(figures(row))

    def of(self, scenario: str, client: str, figure: str) -> float | None:
        rows = self._found.get((scenario, client), [])
        values = [row[figure] for row in rows if row.get(figure) is not None]
        return statistics.median(values) if values else None


def bar_lines(medians: Medians, clients: Sequence[str]) -> Iterator[str]:
    """Compare each kafkaio client with the bars; one line each."""
    for scenario, bars in BARS.items():
        for bar in bars:
            for client in clients:
                if line := _bar_line(medians, scenario, bar, client):
                    yield line


def _bar_line(medians: Medians, scenario: str, bar: Bar, client: str) -> str | None:
    ours = medians.of(scenario, client, bar.figure)
    where, what = bar.scenario or scenario, bar.other or bar.figure
    others = {
        name: value
        for name in (client if each == "kafkaio" else each for each in bar.against)
        if (value := medians.of(where, name, what)) is not None
    }
    if ours is None or not others:
        return None
    better = min if bar.most else max
    name = better(others, key=lambda each: others[each])
    limit = bar.limit * others[name] + bar.plus
    is_held = ours <= limit if bar.most else ours >= limit
    return (
        f"{scenario:9} {client:16} {bar.figure:20}{ours:10.3f}  "
        f"{'at most' if bar.most else 'at least'} {limit:10.3f} "
        f"({bar.limit} of {name}'s {others[name]:.3f}"
        f"{f' + {bar.plus}' if bar.plus else ''}; ratio {ours / others[name]:.2f})  "
        f"{'held' if is_held else 'MISSED'}"
    )


# ---- the program


@contextlib.contextmanager
def brokers(args: argparse.Namespace, count: int) -> Iterator[str]:
    """Run brokers with Kafka's own timers, threads and buffers; give an address."""
    from kafkaio.testing.kafka import Kafka

    if args.bootstrap:
        yield args.bootstrap
        return
    with Kafka(brokers=count, version=args.kafka, fast=False, heap=args.heap) as kafka:
        # The runner wants one address, and finds the process that listens there.
        yield kafka.bootstrap_servers.split(",")[0]


def option(text: str) -> tuple[str, object]:
    name, _, value = text.partition("=")
    return name, json.loads(value)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runner", type=Path, default=os.environ.get(RUNNER_VARIABLE))
    parser.add_argument(
        "--scenario", default="x1-1,x1-10,x1-100,x1-1000,x1-10000,x1-plain,x1-each"
    )
    parser.add_argument("--clients", default="kafkaio,confluent,aiokafka,java")
    parser.add_argument("--records", type=int, default=0, help="instead of their own")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", default="", help="keep every run in this file")
    parser.add_argument(
        "--option",
        type=option,
        action="append",
        default=[],
        dest="options",
        help="name=value (JSON) of the producer of the client kafkaio-options",
    )
    parser.add_argument("--bootstrap", default="", help="a running cluster: HOST:PORT")
    parser.add_argument("--kafka", default="4.4", help="version of the brokers")
    parser.add_argument("--heap", default="1g", help="each broker's largest heap")
    parser.add_argument("--timeout", type=float, default=300, help="seconds per run")
    parser.add_argument("--quiet", type=float, default=0, help="as the runner has it")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.runner is None or not (args.runner / "bench.py").is_file():
        parser.error(f"name the folder of the runner: ${RUNNER_VARIABLE}")
    return args


def load_runner(runner: Path):
    """Import the runner's bench.py with our clients and scenarios."""
    sys.path.insert(0, str(runner))
    adapters = [str(HERE.with_name("transactions_adapter.py"))]
    adapters += filter(None, [os.environ.get("BENCH_ADAPTERS")])
    os.environ["BENCH_ADAPTERS"] = os.pathsep.join(adapters)
    os.environ[RUNNER_VARIABLE] = str(runner)
    import bench

    return bench, extend(bench)


def run(args: argparse.Namespace, bench, runner_class) -> int:
    rows: list[dict] = []
    scenarios = args.scenario.split(",")
    for count, some in (
        (1, [s for s in scenarios if s not in CLUSTER]),
        (3, [s for s in scenarios if s in CLUSTER]),
    ):
        if not some:
            continue
        with brokers(args, count) as bootstrap:
            settings = argparse.Namespace(
                **vars(args)
                | {
                    "scenario": ",".join(some),
                    "bootstrap": bootstrap,
                    "options": dict(args.options),
                    "brokers": count,
                },
                seconds=0,
                lock="",
                lock_hold=0,
                verify="once",
                profile_dir="",
                no_idempotence=False,
                data=str(Path(tempfile.gettempdir()) / "kafkabench"),
            )
            settings.json = ""  # written below, for both clusters together
            runner = runner_class(settings)
            runner.go()
            rows += runner.runs
    if args.json:
        Path(args.json).write_text(json.dumps({"runs": rows}, indent=1))
    ours = [name for name in args.clients.split(",") if name.startswith("kafkaio")]
    for line in bar_lines(Medians(rows, bench.figures), ours):
        print(line)
    return 0 if all(row["ok"] for row in rows) else 1


def main() -> int:
    args = arguments()
    bench, runner_class = load_runner(args.runner)
    if args.worker:
        bench.worker(args.worker)
        return 0
    return run(args, bench, runner_class)


if __name__ == "__main__":
    sys.exit(main())
