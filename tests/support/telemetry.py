"""What clients push to a real Kafka with a plug-in that keeps it, and what is in it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

import anyio
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from kafkaio.testing.kafka import Kafka
from kafkaio.testing.kafka.releases import find_release
from tests.support.java import Toolbox

SOURCE: Final = Path(__file__).parents[1] / "java" / "telemetry"


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
        with anyio.fail_after(30):
            while not enough(found := self.pushes(client_id)):  # noqa: ASYNC110
                await anyio.sleep(0.05)
        return found


@asynccontextmanager
async def kafka_with_sink(directory: Path) -> AsyncIterator[tuple[Kafka, Sink]]:
    """Run a real Kafka to which clients can push their metrics."""
    release = find_release("4.3")
    program = Toolbox(release).program(SOURCE)
    jar = await program.jar(directory / "telemetry.jar")
    file = directory / "pushes"
    async with Kafka(
        version="4.3",
        plugins=[jar],
        config={"metric.reporters": "TelemetrySink", "telemetry.sink": str(file)},
    ) as kafka:
        yield kafka, Sink(file)
