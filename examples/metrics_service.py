"""A service that works on orders and serves its figures to Prometheus.

    python examples/metrics_service.py                               # a demonstration
    python examples/metrics_service.py --bootstrap localhost:9092 --port 9100

One observer counts for the producer and the consumer. The figures are at
http://localhost:PORT/metrics; grafana/kafkaio.json is a dashboard for them. Without
--bootstrap the service runs on an embedded broker, reads its own page once and prints
some lines of it. It needs ``pip install 'kafkaio[prometheus]'``.
"""

from __future__ import annotations

import argparse
import asyncio
from urllib.request import urlopen

import prometheus_client

import kafkaio
from kafkaio.metrics.prometheus import PrometheusObserver
from kafkaio.testing import Broker

TOPIC = "orders"
#: What the demonstration prints.
SHOWN = (
    "kafkaio_produced_records_total",
    "kafkaio_consumed_records_total",
    "kafkaio_consumer_lag{",
    "kafkaio_commit_seconds_count",
)


def fetch(address: str) -> str:
    with urlopen(address) as page:  # noqa: S310 - the page of this process
        text: str = page.read().decode()
        return text


async def serve(bootstrap: str, port: int, count: int | None) -> str:
    """Send orders and work on them; return the page of figures after ``count``."""
    server, thread = prometheus_client.start_http_server(port, "localhost")
    observer = PrometheusObserver(client_id="orders")
    try:
        async with (
            kafkaio.Producer(bootstrap, observer=observer) as producer,
            kafkaio.Consumer(
                bootstrap,
                topics=TOPIC,
                group_id="orders",
                auto_offset_reset="earliest",
                observer=observer,
            ) as consumer,
        ):
            sent = read = 0
            while count is None or read < count:
                values = [b"order %d" % n for n in range(sent, sent + 100)]
                sent += len(await producer.send_many(TOPIC, values))
                while read < sent:
                    read += len((await consumer.poll(timeout=1.0)).records)
            await consumer.commit()
            address = f"http://localhost:{server.server_port}/metrics"
            return await asyncio.to_thread(fetch, address)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


async def demonstrate() -> None:
    async with Broker(topics={TOPIC: 3}) as broker:
        page = await serve(broker.bootstrap_servers, 0, 500)
    for line in page.splitlines():
        if line.startswith(SHOWN):
            print(line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bootstrap", help="host:port of a broker")
    parser.add_argument("--port", type=int, default=9100)
    args = parser.parse_args()
    if args.bootstrap is None:
        asyncio.run(demonstrate())
    else:
        asyncio.run(serve(args.bootstrap, args.port, None))


if __name__ == "__main__":
    main()
