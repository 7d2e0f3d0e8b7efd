"""What a schema costs: CPU per record of kafkaio's serdes and of confluent-kafka's.

Run it from the root of the repository as ``python -m benchmarks.registry``. It needs
the extra ``registry`` and ``confluent-kafka[schemaregistry,avro]``; no registry and no
broker: kafkaio's serdes ask one in memory, confluent-kafka's ask ``mock://``, and both
once. The record has six fields, one of them a list of two records.

Every case runs in turns, in an order that changes from round to round, so that other
work on the machine hits all of them. What counts are ratios within one run: the bars
are 2.5 and 3.0 microseconds where bare fastavro takes 1.8 and 2.0.
"""

from __future__ import annotations

import argparse
import gc
import io
import itertools
import json
import random
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import UUID

import fastavro
import pyarrow as pa
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext as Context

from kafkaio.registry import Avro, JsonSchema, RegisteredSchema, Schema
from kafkaio.serde import DeserializationContext, SerializationContext

TOPIC = "orders"
#: Records of a batch of columns.
BATCH = 1000
#: The most that a case may cost, as a ratio to bare fastavro in the same run.
BARS = {"write dict": 2.5 / 1.8, "read dict": 3.0 / 2.0}
#: The most that a schema that is cached may cost, in the same unit: 0.3 of 1.8.
HIT = 0.3 / 1.8

TIME = {"type": "long", "logicalType": "timestamp-micros"}
LINE = {
    "type": "record",
    "name": "Line",
    "fields": [
        {"name": "sku", "type": "string"},
        {"name": "quantity", "type": "int"},
    ],
}
SCHEMA = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "customer", "type": "long"},
        {"name": "amount", "type": "double"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {
            "name": "created",
            "type": {"type": "long", "logicalType": "timestamp-micros"},
        },
        {"name": "lines", "type": {"type": "array", "items": LINE}},
    ],
}


@dataclass(slots=True)
class Line:
    sku: str
    quantity: int


@dataclass(slots=True)
class Order:
    id: str
    customer: int
    amount: float
    note: str | None
    created: datetime
    lines: list[Line]


CREATED = datetime(2026, 1, 1, tzinfo=UTC)
ORDER = Order("order-17", 7, 19.5, None, CREATED, [Line("a-1", 1), Line("b-2", 2)])
VALUE: dict[str, object] = {
    "id": ORDER.id,
    "customer": ORDER.customer,
    "amount": ORDER.amount,
    "note": ORDER.note,
    "created": ORDER.created,
    "lines": [{"sku": each.sku, "quantity": each.quantity} for each in ORDER.lines],
}


class OneSchema:
    """A registry in memory that has what it is given."""

    def __init__(self) -> None:
        self._schemas: list[Schema] = []

    def known(self, schema_id: int | UUID) -> Schema | None:
        return self._schemas[schema_id - 1] if isinstance(schema_id, int) else None

    def known_id(self, subject: str, schema: Schema) -> RegisteredSchema | None:
        self._schemas.append(schema)
        return RegisteredSchema(subject, 1, len(self._schemas), schema)

    async def references(self, schema: Schema) -> Mapping[str, Schema]:
        return {}


def cases() -> dict[str, Callable[[], object]]:
    """Return what is measured: functions that write or read one record."""
    parsed = fastavro.parse_schema(SCHEMA)

    def fastavro_write() -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, VALUE)
        return out.getvalue()

    payload = fastavro_write()

    def fastavro_read() -> object:
        return fastavro.schemaless_reader(io.BytesIO(payload), parsed, None)

    registry: Any = OneSchema()
    dicts, orders = Avro(SCHEMA, registry), Avro(Order, registry)
    writing = SerializationContext(TOPIC, [], is_key=False)
    reading = DeserializationContext(TOPIC, (), is_key=False)
    dict_data, order_data = (
        dicts.serialize(VALUE, writing),
        orders.serialize(ORDER, writing),
    )
    assert isinstance(dict_data, bytes)
    assert isinstance(order_data, bytes)
    assert dicts.deserialize(dict_data, reading) == VALUE
    assert orders.deserialize(order_data, reading) == ORDER

    client = SchemaRegistryClient.new_client({"url": "mock://"})
    theirs = AvroSerializer(client, json.dumps(SCHEMA))
    their_reader = AvroDeserializer(client)
    context = Context(TOPIC, MessageField.VALUE)
    their_data = theirs(VALUE, context)
    assert their_reader(their_data, context) == VALUE
    assert their_data[5:] == dict_data[5:]
    return {
        "write fastavro": fastavro_write,
        "write dict": lambda: dicts.serialize(VALUE, writing),
        "write class": lambda: orders.serialize(ORDER, writing),
        "write confluent": lambda: theirs(VALUE, context),
        "read fastavro": fastavro_read,
        "read dict": lambda: dicts.deserialize(dict_data, reading),
        "read class": lambda: orders.deserialize(order_data, reading),
        "read confluent": lambda: their_reader(their_data, context),
    }


def batches() -> dict[str, Callable[[], object]]:
    """Return what makes Arrow columns of a batch, record by record and at once."""
    registry: Any = OneSchema()
    avro = Avro(SCHEMA, registry)
    text, integer = {"type": "string"}, {"type": "integer"}
    line = {"properties": {"sku": text, "quantity": integer}}
    properties = {
        "id": text,
        "customer": integer,
        "amount": {"type": "number"},
        "note": text,
        "created": integer,
        "lines": {"type": "array", "items": line},
    }
    plain = JsonSchema({"properties": properties}, registry, validate=False)
    value = {**VALUE, "note": "n", "created": 1}
    writing = SerializationContext(TOPIC, [], is_key=False)
    reading = DeserializationContext(TOPIC, (), is_key=False)
    made: dict[str, Callable[[], object]] = {}
    for name, serde, one in (("avro", avro, VALUE), ("json", plain, value)):
        data = serde.serialize(one, writing)
        assert isinstance(data, bytes)
        batch = [data] * BATCH
        serde.deserialize(data, reading)
        whole = serde.to_arrow(batch)
        assert whole is not None

        def each(
            serde: Any = serde, batch: list[bytes] = batch, kind: Any = whole.type
        ) -> object:
            rows = [serde.deserialize(data, reading) for data in batch]
            return pa.array(rows, type=kind)

        assert each() == whole
        made[f"{name} each"] = each
        made[f"{name} arrow"] = partial(serde.to_arrow, batch)
    return made


def hit() -> dict[str, Callable[[], object]]:
    """Return what finds a cached schema, around a format that does nothing."""
    registry: Any = OneSchema()
    serde = Avro({"type": "fixed", "name": "Nothing", "size": 0}, registry)
    writing = SerializationContext(TOPIC, [], is_key=False)
    reading = DeserializationContext(TOPIC, (), is_key=False)
    data = serde.serialize(b"", writing)
    assert isinstance(data, bytes)
    core = serde._core
    writer = core._of_values[TOPIC]
    object.__setattr__(writer, "write", _nothing)
    core.deserialize(data, reading)
    core._readers[data[:5]] = _nothing
    return {
        "hit nothing": lambda: _nothing(b"", 0),
        "hit write": lambda: serde.serialize(b"", writing),
        "hit read": lambda: serde.deserialize(data, reading),
    }


def _nothing(value: object, start: int = 0) -> object:
    return value


def cpu(case: Callable[[], object], count: int) -> float:
    """Return the microseconds of processor time for one call."""
    gc.collect()
    began = time.process_time()
    for _ in itertools.repeat(None, count):
        case()
    return (time.process_time() - began) / count * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--records", type=int, default=10_000)
    args = parser.parse_args()
    measured = cases() | hit() | batches()
    costs: dict[str, list[float]] = {name: [] for name in measured}
    for number in range(args.rounds + 1):
        for name in random.sample(sorted(measured), len(measured)):
            is_batch = name.split()[0] in ("avro", "json")
            calls = args.records // BATCH if is_batch else args.records
            cost = cpu(measured[name], calls) / (BATCH if is_batch else 1)
            if number:  # the first round warms up
                costs[name].append(cost)
    middle = {name: statistics.median(found) for name, found in costs.items()}
    for name, found in costs.items():
        kind = name.split()[0]
        if kind == "hit":
            cost = middle[name] - middle["hit nothing"]
            ratio, bar = cost / middle["write fastavro"], HIT
        else:
            cost = middle[name]
            unit = f"{kind} fastavro" if kind in ("read", "write") else "read fastavro"
            ratio, bar = cost / middle[unit], BARS.get(name, 0.0)
        verdict = (
            "" if not bar else f"  at most {bar:.2f}: {'ok' if ratio <= bar else 'NO'}"
        )
        print(
            f"{name:16} {cost:6.2f} us ({min(found):.2f} to {max(found):.2f})"
            f"  {ratio:5.2f} times fastavro{verdict}"
        )


if __name__ == "__main__":
    main()
