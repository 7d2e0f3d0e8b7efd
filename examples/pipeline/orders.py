"""The input of the pipeline, and what must come out of it. No Spark is needed here.

Orders and customers are generated from a seed. So `check.py` can compute in plain
Python what the pipeline computes in Spark, and compare.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

#: When the first order came in.
BEGIN = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1000)
MINUTE = 60_000
HOUR = 60 * MINUTE
WINDOW = 15 * MINUTE
#: How far an order's own time may lie behind the latest one that was seen.
WATERMARK = HOUR
#: Which orders are computed again, by when they were received: those of an hour.
BACKFILL = BEGIN + HOUR, BEGIN + 2 * HOUR
CUSTOMERS = 60
REGIONS = ("east", "north", "south", "west")
NO_REGION = "unknown"


@dataclass(frozen=True)
class Order:
    """An order as it is in the topic.

    Attributes:
        received: timestamp of the record, in milliseconds: the later the record, the
            later the time.
        customer: the record's key.
        value: the record's value: JSON, as a rule.
        number: None for a value that is no order.
        at: when the order was made. Up to five minutes earlier than ``received``, as a
            rule.
        cents: its amount.
    """

    received: int
    customer: int
    value: str
    number: int | None = None
    at: int = 0
    cents: int = 0

    @property
    def window(self) -> int:
        return self.at // WINDOW * WINDOW


def orders(seed: int, count: int) -> list[Order]:
    """Make orders, five seconds apart on average; some are broken, some a day late."""
    dice = random.Random(seed)
    made = []
    received = BEGIN
    for number in range(count):
        received += dice.randrange(10_000)
        customer = dice.randrange(CUSTOMERS + 5)  # the last five are unknown
        if dice.random() < 0.01:
            made.append(Order(received, customer, '{"number": oops'))
            continue
        late = 24 * HOUR if is_past_half(number, count) and dice.random() < 0.01 else 0
        at = received - dice.randrange(5 * MINUTE) - late
        cents = dice.randrange(1, 100_000)
        iso = datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds")
        value = json.dumps({"number": number, "at": iso, "cents": cents})
        made.append(Order(received, customer, value, number, at, cents))
    return made


def is_past_half(number: int, count: int) -> bool:
    # Only then is it certain that the stream leaves late ones out: Spark judges them by
    # the watermark with which the micro-batch before this one began, so in the third
    # micro-batch at the earliest.
    return number > count // 2


def customers(seed: int) -> list[tuple[int, str | None]]:
    """Make the changes of customers: number and value, None for one who has left."""
    dice = random.Random(seed + 1)
    changes: list[tuple[int, str | None]] = []
    for _ in range(3):
        for number in range(CUSTOMERS):
            if dice.random() < 0.9:
                region = json.dumps({"region": dice.choice(REGIONS)})
                changes.append((number, None if dice.random() < 0.05 else region))
    return changes


def regions(seed: int) -> dict[int, str]:
    """Return the region of each customer after all changes."""
    last = dict(customers(seed))
    return {
        number: json.loads(value)["region"]
        for number, value in last.items()
        if value is not None
    }


#: Start of the window and region -> number of orders and sum of cents.
Revenue = dict[tuple[int, str], tuple[int, int]]


def revenue(made: Iterable[Order], region_of: dict[int, str]) -> Revenue:
    """Compute the revenue of each window and region."""
    counts: dict[tuple[int, str], int] = defaultdict(int)
    cents: dict[tuple[int, str], int] = defaultdict(int)
    for order in made:
        if order.number is not None:
            place = order.window, region_of.get(order.customer, NO_REGION)
            counts[place] += 1
            cents[place] += order.cents
    return {place: (counts[place], cents[place]) for place in counts}


def streamed_revenue(made: list[Order], region_of: dict[int, str]) -> Revenue:
    """Compute the revenue that the stream has written once it has read all orders.

    Those are the windows that the watermark has passed. Orders that came in a day late
    found their windows closed.
    """
    in_time = [order for order in made if order.received - order.at < HOUR]
    watermark = max(order.at for order in in_time if order.number is not None)
    watermark -= WATERMARK
    found = revenue(in_time, region_of)
    return {
        place: row for place, row in found.items() if place[0] + WINDOW <= watermark
    }
