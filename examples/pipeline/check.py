"""Prove the output of the pipeline from its input.

The input is read from Kafka and compared with what was generated: so it is complete.
What must come out is computed from it in plain Python (`orders.py`), and compared with
every record and row that is there: what is missing, wrong, or there twice is named.

    python examples/pipeline/check.py HOST:PORT NAME DIRECTORY
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote, urlparse

import orders
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset

import kafkaio
from kafkaio.arrow import read_ranges


async def problems(
    kafka: str,
    name: str,
    directory: Path,
    seed: int,
    count: int,
) -> list[str]:
    """Return a sentence for each thing that is not as it must be; none if all is."""
    made = orders.orders(seed, count)
    region_of = orders.regions(seed)
    begin, end = orders.BACKFILL
    chosen = [order for order in made if begin <= order.received < end]
    async with kafkaio.Client(kafka) as client:
        incoming = [
            (int(key), value)
            async for key, value in committed(client, f"{name}.orders")
        ]
        streamed = await totals(client, f"{name}.revenue")
        filled = await totals(client, f"{name}.backfill")
    return [
        *differences(
            "the topic of orders",
            incoming,
            [(order.customer, order.value) for order in made],
        ),
        *differences(
            "the stream's revenue",
            streamed,
            orders.streamed_revenue(made, region_of).items(),
        ),
        *differences(
            "the stream's Parquet",
            rows(committed_files(directory / "orders")),
            expected_rows(made, region_of),
        ),
        *differences(
            "the backfill's revenue",
            filled,
            orders.revenue(chosen, region_of).items(),
        ),
        *differences(
            "the backfill's Parquet",
            rows(sorted((directory / "backfill").glob("*.parquet"))),
            expected_rows(chosen, region_of),
        ),
    ]


def differences(
    what: str, found: Iterable[object], expected: Iterable[object]
) -> Iterator[str]:
    """Yield how what was found differs from what must be there, in any order."""
    there, wanted = Counter(found), Counter(expected)
    if not wanted:
        yield f"{what}: nothing is expected, so that nothing is shown"
    for item, number in list((wanted - there).items())[:5]:
        yield f"{what} lacks {item}" + (f", {number} times" if number > 1 else "")
    for item, number in list((there - wanted).items())[:5]:
        more = "once more than" if item in wanted else "and nothing like it is"
        yield f"{what} has {item}, {more} expected ({number})"


async def committed(
    client: kafkaio.Client, topic: str
) -> AsyncIterator[tuple[str, str]]:
    """Yield key and value of all committed records of a topic."""
    numbers = (await client.partitions_for(topic))[topic]
    places = [kafkaio.TopicPartition(topic, number) for number in numbers]
    begins = await client.offsets(dict.fromkeys(places, "earliest"))
    ends = await client.offsets(
        dict.fromkeys(places, "latest"), isolation_level="read_committed"
    )
    ranges = [
        kafkaio.OffsetRange(place, begin.offset, end.offset)
        for place in places
        if (begin := begins[place]) and (end := ends[place])
    ]
    batches = read_ranges(
        client,
        ranges,
        schema=pa.schema({"key": pa.string(), "value": pa.string()}),
        isolation_level="read_committed",
    )
    async for batch in batches:
        for row in batch.to_pylist():
            yield row["key"], row["value"]


async def totals(
    client: kafkaio.Client, topic: str
) -> list[tuple[tuple[int, str], tuple[int, int]]]:
    """Return the revenue that a topic has: a window and region, and what it says."""
    found = []
    async for _, value in committed(client, topic):
        row = json.loads(value)
        place = row["window"], row["region"]
        found.append((place, (row["orders"], row["cents"])))
    return found


def committed_files(directory: Path) -> list[Path]:
    """Return the files that Spark's file sink has committed; others may be there."""
    log = directory / "_spark_metadata"
    entries = sorted(log.iterdir()) if log.exists() else []
    found = set()
    for entry in entries:
        if entry.name.startswith("."):
            continue
        for line in entry.read_text().splitlines()[1:]:
            found.add(Path(unquote(urlparse(json.loads(line)["path"]).path)))
    return sorted(found)


Row = tuple[int, int, int, int, int, str]


def rows(files: list[Path]) -> list[Row]:
    if not files:
        return []
    table = pyarrow.dataset.dataset([str(path) for path in files]).to_table()
    times = [
        pc.cast(table[name].cast(pa.timestamp("ms", tz="UTC")), pa.int64()).to_pylist()
        for name in ("at", "received")
    ]
    others = [table[name].to_pylist() for name in ("number", "customer", "cents")]
    number, customer, cents = others
    return list(
        zip(number, customer, *times, cents, table["region"].to_pylist(), strict=True)
    )


def expected_rows(
    made: Iterable[orders.Order], region_of: dict[int, str]
) -> Iterator[Row]:
    for order in made:
        if order.number is not None:
            region = region_of.get(order.customer, orders.NO_REGION)
            yield (
                order.number,
                order.customer,
                order.at,
                order.received,
                order.cents,
                region,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("kafka")
    parser.add_argument("name")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--orders", type=int, default=4_000)
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()
    found = asyncio.run(
        problems(args.kafka, args.name, args.directory, args.seed, args.orders)
    )
    raise SystemExit("\n".join(found) or None)


if __name__ == "__main__":
    main()
