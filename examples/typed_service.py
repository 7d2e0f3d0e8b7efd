"""A service that bills orders with a schema, while the schema grows.

    python examples/typed_service.py                              # a demonstration
    python examples/typed_service.py --bootstrap localhost:9092 \
        --registry http://localhost:8081                          # until SIGTERM

The service reads orders and writes an invoice for each, both in Avro; the registry
keeps their schemas. Before it reads the first order it registers its own schema, and
asks for that of the orders: a registry that cannot be reached, or does not let it in,
ends it at its start. An order that cannot be read goes to a topic of its own, with its
bytes.

Without --bootstrap and --registry an embedded broker and a registry in process are
used. Two programs write orders: an old one, whose schema has no currency, and a new
one. One record is no order at all. Then a program tries a schema that would break the
service, and the registry refuses it.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from dataclasses import dataclass
from typing import TypeVar

import kafkaio
from kafkaio.registry import Avro, Registry, Schema
from kafkaio.serde import String
from kafkaio.testing import Broker, SchemaRegistry

K = TypeVar("K")
V = TypeVar("V")


@dataclass
class Order:
    """An order, as the service reads it."""

    id: int
    customer: str
    cents: int
    currency: str = "EUR"  # old orders have none


@dataclass
class Invoice:
    """What a customer has to pay for an order."""

    order: int
    amount: str


class Service:
    """Writes an invoice for each order until it is stopped."""

    def __init__(self, bootstrap: str, registry: Registry) -> None:
        self.bootstrap = bootstrap
        self._registry = registry
        self._invoices = Avro(Invoice, registry)
        self.orders = kafkaio.Topic("orders", key=String(), value=Avro(Order, registry))
        self.invoices = kafkaio.Topic("invoices", key=String(), value=self._invoices)
        self.stopping = asyncio.Event()

    async def run(self) -> None:
        async with (
            kafkaio.Producer(self.bootstrap) as producer,
            kafkaio.Consumer(
                self.bootstrap,
                topics=self.orders,
                group_id="typed-service",
                auto_offset_reset="earliest",
            ) as consumer,
            asyncio.TaskGroup() as tasks,
        ):
            await self._invoices.prepare(self.invoices.name)
            await self._registry.latest(f"{self.orders.name}-value")
            tasks.create_task(self._stop(consumer))
            print("ready", flush=True)

            async def bill(record: kafkaio.Record[str, Order]) -> None:
                order = record.value
                amount = f"{order.cents / 100:.2f} {order.currency}"
                invoice = Invoice(order.id, amount)
                await producer.send(self.invoices, invoice, key=order.customer)
                print(f"{order.customer} pays {amount}", flush=True)

            dead = kafkaio.DeadLetter(producer, "orders.dead")
            await consumer.run(bill, dead_letter=dead)

    async def _stop(self, consumer: kafkaio.Consumer[str, Order]) -> None:
        await self.stopping.wait()
        await consumer.close(timeout=20)


#: The schema of programs of last year, which may be in any language.
OLD_ORDER = """
{
  "type": "record",
  "name": "Order",
  "fields": [
    {"name": "id", "type": "long"},
    {"name": "customer", "type": "string"},
    {"name": "cents", "type": "long"}
  ]
}
"""
#: A schema that readers of the others cannot read: the amount became a text.
BREAKING = OLD_ORDER.replace('"cents", "type": "long"', '"cents", "type": "string"')
SUBJECT = "orders-value"


class Shop:
    """Two programs that write orders: an old one and a new one."""

    def __init__(self, bootstrap: str, registry: Registry) -> None:
        self.bootstrap = bootstrap
        self.registry = registry

    async def sell(self, count: int) -> None:
        old = Avro(OLD_ORDER, self.registry)
        new = Avro(Order, self.registry)
        old_orders = kafkaio.Topic("orders", key=String(), value=old)
        new_orders = kafkaio.Topic("orders", key=String(), value=new)
        async with kafkaio.Producer(self.bootstrap) as producer:
            await old.prepare("orders")
            await new.prepare("orders")
            for n in range(0, count, 2):
                name = f"customer-{n % 10}"
                order = {"id": n, "customer": name, "cents": 100 * n}
                _ = await producer.enqueue(old_orders, order, key=name)
                dollars = Order(n + 1, name, 100 * n, currency="USD")
                _ = await producer.enqueue(new_orders, dollars, key=name)
            await producer.send("orders", b"no order at all", key=b"customer-0")

    async def break_it(self) -> str:
        """Try a change that would break the service; return why it is refused."""
        try:
            await self.registry.register(SUBJECT, Schema(BREAKING))
        except kafkaio.SchemaError as error:
            return error.reason
        return ""


async def read(consumer: kafkaio.Consumer[K, V], count: int) -> list[V]:
    """Return the values of the first records."""
    async with consumer, asyncio.timeout(60):
        return [(await anext(consumer)).value for _ in range(count)]


async def demonstrate(count: int) -> bool:
    topics = {"orders": 4, "invoices": 1, "orders.dead": 1}
    async with (
        Broker(topics=topics) as broker,
        SchemaRegistry() as schemas,
        Registry(schemas.url) as registry,
        asyncio.TaskGroup() as tasks,
    ):
        bootstrap = broker.bootstrap_servers
        service = Service(bootstrap, registry)
        shop = Shop(bootstrap, registry)
        await shop.sell(count)
        tasks.create_task(service.run())
        invoices = await read(
            kafkaio.Consumer(
                bootstrap, topics=service.invoices, auto_offset_reset="earliest"
            ),
            count,
        )
        dead = await read(
            kafkaio.Consumer(
                bootstrap, topics="orders.dead", auto_offset_reset="earliest"
            ),
            1,
        )
        reason = await shop.break_it()
        requests = registry.statistics().requests
        service.stopping.set()
    billed = {invoice.order for invoice in invoices}
    euros = sum(invoice.amount.endswith("EUR") for invoice in invoices)
    print(f"{len(billed)} of {count} orders billed, {euros} in euros")
    print("dead letter:", dead)
    print("refused:", reason)
    print("requests to the registry:", requests)
    return billed == set(range(count)) and dead == [b"no order at all"] and bool(reason)


async def serve(bootstrap: str, url: str) -> None:
    async with Registry(url) as registry:
        service = Service(bootstrap, registry)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, service.stopping.set)
        await service.run()


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--bootstrap", help="a running Kafka")
    parser.add_argument("--registry", help="the URL of a running schema registry")
    parser.add_argument(
        "--records", type=int, default=200, help="orders of the demonstration"
    )
    args = parser.parse_args()
    if (args.bootstrap is None) != (args.registry is None):
        parser.error("--bootstrap and --registry go together")
    if args.bootstrap is None:
        return 0 if await demonstrate(args.records) else 1
    await serve(args.bootstrap, args.registry)
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
