"""A worker for Kubernetes: probes, a clean stop in bounded time, static members.

    python examples/kubernetes_worker.py                       # a demonstration
    KAFKA=kafka:9092 POD_NAME=worker-0 python examples/kubernetes_worker.py --serve

It reads ``orders``, works on up to a hundred of them at a time, and sends an invoice
for each. The guide's page on Kubernetes has the manifest and explains the settings,
which are variables of the environment:

    KAFKA            bootstrap servers
    POD_NAME         name of the pod, if it is one of a StatefulSet: the member's name
    PORT             of the probes
    STOP_SECONDS     time from SIGTERM to the end; less than the grace period

Without --serve, a worker runs on an embedded broker until it has done all orders.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import kafkaio
from kafkaio.testing import Broker

ORDERS, INVOICES = "orders", "invoices"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the manifest sets."""

    kafka: str = "localhost:9092"
    pod_name: str | None = None
    port: int = 8080
    stop_seconds: float = 20.0

    @classmethod
    def from_environment(cls, env: Mapping[str, str]) -> Settings:
        return cls(
            kafka=env.get("KAFKA", cls.kafka),
            pod_name=env.get("POD_NAME"),
            port=int(env.get("PORT", cls.port)),
            stop_seconds=float(env.get("STOP_SECONDS", cls.stop_seconds)),
        )


class Worker:
    """Sends an invoice for each order, until `stop` is called."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        # Consumer and producer share a client: one set of connections, which tells
        # whether the cluster can be reached.
        self.client = kafkaio.Client(settings.kafka, client_id="invoicing")
        self.consumer = kafkaio.Consumer(
            self.client,
            topics=ORDERS,
            group_id="invoicing",
            group_instance_id=settings.pod_name,
            auto_offset_reset="earliest",
        )
        self.producer = kafkaio.Producer(self.client)
        self.done = 0
        self.is_stopping = False

    async def handle(self, order: kafkaio.Record) -> None:
        await asyncio.sleep(0.01)  # ask a database, call another service ...
        invoice = b"invoice for " + (order.value or b"nothing")
        await self.producer.send(INVOICES, invoice, key=order.key)
        self.done += 1

    async def run(self) -> None:
        """Work until `stop` is called. If anything fails, so does this."""
        try:
            await self.client.start()
            await self.producer.start()
            await self.consumer.start()
            await self.consumer.run(self.handle, concurrency=100)
        except kafkaio.ClosedError:
            if not self.is_stopping:
                raise
        finally:
            await self.stop()

    async def stop(self) -> None:
        """Finish what was begun, commit, leave; all within ``stop_seconds``.

        In the order in which work flows: the handlers that still run need the producer.
        """
        self.is_stopping = True
        by = time.monotonic() + self.settings.stop_seconds
        for part, share in ((self.consumer, 0.6), (self.producer, 0.9)):
            left = max(0.0, by - time.monotonic())
            await part.close(timeout=share * left)
        await self.client.close(timeout=max(0.0, by - time.monotonic()))

    # What the probes ask

    def is_alive(self) -> bool:
        """Whether a restart would not help. That Kafka is away is no reason for one.

        A blocked event loop answers no probe at all, and so is found as well.
        """
        states = {self.consumer.statistics().state, self.producer.statistics().state}
        return "failed" not in states

    def is_ready(self) -> bool:
        """Whether it is a member of its group, and a broker can be reached."""
        consumer = self.consumer.statistics()
        is_member = consumer.state == "running" and consumer.generation >= 0
        connections = self.client.statistics().connections
        return is_member and any(each.state == "READY" for each in connections)


async def serve_probes(
    port: int, probes: Mapping[str, Callable[[], bool]]
) -> asyncio.Server:
    """Answer ``GET /NAME`` by 200 or 503. A service with a web server uses that."""

    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            async with asyncio.timeout(5):
                request = await reader.readline()
                while await reader.readline() not in {b"\r\n", b"\n", b""}:
                    pass
                path = request.split(b" ")[1].decode() if b" " in request else ""
                probe = probes.get(path)
                status = "404 Not Found"
                if probe is not None:
                    status = "200 OK" if probe() else "503 Service Unavailable"
                head = "Content-Length: 0\r\nConnection: close"
                writer.write(f"HTTP/1.1 {status}\r\n{head}\r\n\r\n".encode())
                await writer.drain()
        except (OSError, TimeoutError, ValueError):
            pass  # whoever asked has gone, or sent something else
        finally:
            writer.close()

    # All interfaces: the kubelet asks at the pod's address. "::" where that is IPv6.
    return await asyncio.start_server(answer, "0.0.0.0", port)  # noqa: S104


async def serve(settings: Settings) -> int:
    """Run a worker until SIGTERM. Returns the exit code: 0 if it stopped as told."""
    worker = Worker(settings)
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    probes = {"/live": worker.is_alive, "/ready": worker.is_ready}
    async with await serve_probes(settings.port, probes) as server:
        print("probes on port", server.sockets[0].getsockname()[1], flush=True)
        running = asyncio.create_task(worker.run())
        stopping = asyncio.create_task(told.wait())
        await asyncio.wait([running, stopping], return_when="FIRST_COMPLETED")
        began = time.monotonic()
        if told.is_set():
            await worker.stop()
        stopping.cancel()
        await running  # raises what has ended it
    seconds = time.monotonic() - began
    print(f"stopped after {worker.done} orders, in {seconds:.1f} s", flush=True)
    return 0


async def demonstrate(count: int) -> bool:
    """Do all orders on an embedded broker, and stop."""
    async with Broker(topics={ORDERS: 3, INVOICES: 1}) as broker:
        servers = broker.bootstrap_servers
        async with kafkaio.Producer(servers) as producer:
            await producer.send_many(ORDERS, [b"order %d" % n for n in range(count)])
        worker = Worker(Settings(kafka=servers, pod_name="worker-0"))
        async with (
            asyncio.TaskGroup() as tasks,
            kafkaio.Consumer(
                servers, topics=INVOICES, auto_offset_reset="earliest"
            ) as invoices,
        ):
            tasks.create_task(worker.run())
            for _ in range(count):
                await anext(invoices)
            print("alive:", worker.is_alive(), "- ready:", worker.is_ready())
            await worker.stop()
    print(f"{worker.done} of {count} orders done")
    return worker.done == count


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--serve", action="store_true", help="run until SIGTERM")
    parser.add_argument(
        "--records", type=int, default=300, help="orders of the demonstration"
    )
    args = parser.parse_args()
    if args.serve:
        return await serve(Settings.from_environment(os.environ))
    return 0 if await demonstrate(args.records) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
