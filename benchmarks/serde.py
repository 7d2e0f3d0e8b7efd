"""What JSON without a registry costs: CPU per value of `kafkaio.serde.Json`.

Run it from the root of the repository as ``python -m benchmarks.serde``; it needs
msgspec. Every case runs in turns, in an order that changes from round to round, so that
other work on the machine hits all of them. The bar is a ratio within one run: with a
class of msgspec `Json` takes at most 1.3 of what msgspec takes alone.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from kafkaio.serde import DeserializationContext, Json, SerializationContext

#: The most that `Json` may cost, as a ratio to msgspec alone.
BAR = 1.3
VALUES = 2_000
WRITING = SerializationContext("orders", [], is_key=False)
READING = DeserializationContext("orders", (), is_key=False)


class StructLine(msgspec.Struct):
    sku: str
    quantity: int


class StructOrder(msgspec.Struct):
    id: str
    customer: int
    amount: float
    paid: bool
    lines: list[StructLine]
    note: str | None = None


@dataclass
class Line:
    sku: str
    quantity: int


@dataclass
class Order:
    id: str
    customer: int
    amount: float
    paid: bool
    lines: list[Line]
    note: str | None = None


def cases() -> dict[str, Callable[[], object]]:
    struct = StructOrder(
        "o-1", 7, 19.99, paid=True, lines=[StructLine("a", 2), StructLine("b", 1)]
    )
    order = Order("o-1", 7, 19.99, paid=True, lines=[Line("a", 2), Line("b", 1)])
    encode = msgspec.json.Encoder().encode
    decode = msgspec.json.Decoder(StructOrder).decode
    of_struct, of_dataclass = Json(StructOrder), Json(Order)
    data = encode(struct)
    assert of_dataclass.serialize(order, WRITING) == data
    assert of_dataclass.deserialize(data, READING) == order
    return {
        "write, msgspec": lambda: encode(struct),
        "write, Json of a Struct": lambda: of_struct.serialize(struct, WRITING),
        "write, json.dumps(asdict())": lambda: json.dumps(dataclasses.asdict(order)),
        "write, Json of a dataclass": lambda: of_dataclass.serialize(order, WRITING),
        "read, msgspec": lambda: decode(data),
        "read, Json of a Struct": lambda: of_struct.deserialize(data, READING),
        "read, json.loads": lambda: json.loads(data),
        "read, Json of a dataclass": lambda: of_dataclass.deserialize(data, READING),
    }


def measure(rounds: int) -> dict[str, float]:
    """Return the median nanoseconds of CPU for a value in each case."""
    todo = list(cases().items())
    found: dict[str, list[float]] = {name: [] for name, _ in todo}
    dice = random.Random(1)
    for _ in range(rounds):
        dice.shuffle(todo)
        for name, run in todo:
            start = time.process_time_ns()
            for _ in range(VALUES):
                run()
            found[name].append((time.process_time_ns() - start) / VALUES)
    return {name: statistics.median(times) for name, times in found.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rounds", type=int, nargs="?", default=31)
    found = measure(parser.parse_args().rounds)
    for name in cases():
        print(f"{name:30} {found[name]:8.0f} ns")
    is_good = True
    for what in ("write", "read"):
        ratio = found[f"{what}, Json of a Struct"] / found[f"{what}, msgspec"]
        is_good &= ratio <= BAR
        print(f"{what}: {ratio:.2f} of msgspec, and {BAR} is the bar")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
