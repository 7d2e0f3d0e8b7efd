"""What clients push to a real Kafka with a plug-in that keeps it, and what is in it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import UUID

import anyio
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from kafkaio import Client
from kafkaio.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
)
from kafkaio.protocol.messages.push_telemetry import PushTelemetryRequest
from kafkaio.testing.kafka._releases import find_release
from tests.support.java import Toolbox
from tests.support.kafka import Kafka
from tests.support.patience import HANGS

SOURCE: Final = Path(__file__).parents[1] / "java" / "telemetry"


#: What a real Kafka 4.3 answers to the requests of `raw_codes`.
CODES: Final = {
    "a subscription": 0,
    "asked again": 89,
    "the first push": 0,
    "a push too soon": 89,
    "no instance id": 42,
    "wrong subscription": 117,
    "asked after that": 0,
    "unknown codec": 76,
    "too large": 118,
    "not compressed so": 87,
    "empty": 0,
    "the last push, too soon": 0,
    "after the last push": 42,
    "unknown instance": 117,
}


class Value(NamedTuple):
    """One value of a push.

    Attributes:
        name: the metric.
        kind: ``gauge``, or ``sum``.
        temporality: 1 for delta, 2 for cumulative; 0 for a gauge.
        is_monotonic: whether the sum only grows.
        attributes: what it is about.
        value: the number.
    """

    name: str
    kind: str
    temporality: int
    is_monotonic: bool
    attributes: dict[str, str]
    value: float


class Pushed(NamedTuple):
    """One push, as the plug-in had it."""

    client_id: str
    instance_id: str
    is_terminating: bool
    resource: dict[str, str]
    values: list[Value]


def parsed(data: bytes) -> tuple[dict[str, str], list[Value]]:
    """Return the resource and the values of a message ``MetricsData``."""
    message = MetricsData.FromString(data)
    resource: dict[str, str] = {}
    values = []
    for part in message.resource_metrics:
        resource |= {
            one.key: one.value.string_value for one in part.resource.attributes
        }
        for metric in (one for scope in part.scope_metrics for one in scope.metrics):
            kind = str(metric.WhichOneof("data"))
            data_of = metric.sum if kind == "sum" else metric.gauge
            for point in data_of.data_points:
                about = {one.key: one.value.string_value for one in point.attributes}
                number = getattr(point, str(point.WhichOneof("value")))
                temporality = metric.sum.aggregation_temporality
                values.append(
                    Value(
                        metric.name,
                        kind,
                        temporality,
                        metric.sum.is_monotonic,
                        about,
                        float(number),
                    )
                )
    return resource, values


def shapes(values: Iterable[Value]) -> dict[str, set[tuple[str, int, tuple[str, ...]]]]:
    """Return, by name, the types of metrics and the names of their attributes."""
    found = defaultdict(set)
    for one in values:
        shape = one.kind, one.temporality, tuple(sorted(one.attributes))
        found[one.name].add(shape)
    return dict(found)


class Sink:
    """The file in which the plug-in of a broker writes what is pushed."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def pushes(self, client_id: str) -> list[Pushed]:
        """Return what a client has pushed so far."""
        found = []
        lines = (
            self._file.read_text("utf-8").splitlines() if self._file.exists() else []
        )
        for line in lines:
            client, instance, last, _, data = line.split(" ")
            if client == client_id and data.startswith("="):
                resource, values = parsed(bytes.fromhex(data[1:]))
                found.append(Pushed(client, instance, last == "true", resource, values))
        return found

    async def wait_for(
        self, client_id: str, enough: Callable[[list[Pushed]], bool]
    ) -> list[Pushed]:
        """Wait until what a client has pushed is enough."""
        with anyio.fail_after(HANGS):
            while not enough(found := self.pushes(client_id)):  # noqa: ASYNC110
                await anyio.sleep(0.05)
        return found


async def raw_codes(servers: str, interval: float) -> dict[str, int]:
    """Return the codes of requests by hand: everything that a broker refuses, in turn.

    Args:
        servers: a broker with a subscription to all, and ``telemetry.max.bytes``
            of 200,000.
        interval: its interval in seconds.
    """
    found: dict[str, int] = {}
    async with Client(servers, enable_metrics_push=False, client_id="raw") as client:
        answer = await client.request(GetTelemetrySubscriptionsRequest())
        found["a subscription"] = answer.error_code

        async def push(what: str, **changed: Any) -> None:
            given: dict[str, Any] = {
                "client_instance_id": answer.client_instance_id,
                "subscription_id": answer.subscription_id,
                "metrics": b"",
            }
            pushed = await client.request(PushTelemetryRequest(**given | changed))
            found[what] = pushed.error_code

        async def later(what: str, **changed: Any) -> None:
            await anyio.sleep(interval * 1.1)
            await push(what, **changed)

        again = GetTelemetrySubscriptionsRequest(
            client_instance_id=answer.client_instance_id
        )
        found["asked again"] = (await client.request(again)).error_code
        await push("the first push")
        await push("a push too soon")
        await push("no instance id", client_instance_id=UUID(int=0))
        await later("wrong subscription", subscription_id=answer.subscription_id + 1)
        found["asked after that"] = (await client.request(again)).error_code
        await later("unknown codec", compression_type=9)
        await later("too large", metrics=bytes(200_001))
        await later("not compressed so", compression_type=1, metrics=b"no gzip")
        await later("empty")
        await push("the last push, too soon", terminating=True)
        await push("after the last push")
        unknown = UUID(int=77)
        await push("unknown instance", client_instance_id=unknown, subscription_id=1)
    return found


@asynccontextmanager
async def kafka_with_sink(directory: Path) -> AsyncIterator[tuple[Kafka, Sink]]:
    """Run a real Kafka to which clients can push their metrics."""
    release = find_release()
    program = Toolbox(release).program(SOURCE)
    jar = await program.jar(directory / "telemetry.jar")
    file = directory / "pushes"
    async with Kafka(
        plugins=[jar],
        config={
            "metric.reporters": "TelemetrySink",
            "telemetry.sink": str(file),
            "telemetry.max.bytes": 200_000,
        },
    ) as kafka:
        yield kafka, Sink(file)
