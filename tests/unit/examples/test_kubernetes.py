"""The worker for Kubernetes, run as a pod runs it; its guide's page says the truth."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

import kafkaio
from examples.kubernetes_worker import Settings
from kafkaio.testing import Broker, GroupConfig
from tests.pages import python_blocks, run_block
from tests.support.patience import HANGS

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "kubernetes_worker.py"
PAGE = ROOT / "docs" / "guide" / "kubernetes.md"
COUNT = 300
CONFIGS = (kafkaio.ClientConfig, kafkaio.ProducerConfig, kafkaio.ConsumerConfig)


# ---- the example as a process --------------------------------------------------------


class Pod:
    """A process of the worker."""

    def __init__(self, process: Process, port: int) -> None:
        self.process = process
        self.port = port

    async def probe(self, path: str) -> int:
        """The status that a probe gets."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: pod\r\n\r\n".encode())
        answer = await reader.read()
        writer.close()
        return int(answer.split()[1])

    async def until(self, path: str, status: int) -> None:
        while True:
            if await self.probe(path) == status:
                return
            await asyncio.sleep(0.02)

    async def stop(self) -> tuple[int, float]:
        """Send SIGTERM; return how many orders it has done, and its seconds to stop."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.stdout is not None
        output = (await self.process.stdout.read()).decode()
        assert await self.process.wait() == 0, output
        found = re.search(r"stopped after (\d+) orders, in ([\d.]+) s", output)
        assert found is not None, output
        return int(found[1]), float(found[2])


@asynccontextmanager
async def pod(servers: str, **env: str) -> AsyncIterator[Pod]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", str(EXAMPLE), "--serve"),
        stdout=PIPE,
        env={**os.environ, "KAFKA": servers, "PORT": "0", **env},
    )
    try:
        async with asyncio.timeout(HANGS):
            assert process.stdout is not None
            line = (await process.stdout.readline()).decode()
            yield Pod(process, int(line.rpartition(" ")[2]))
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_it_stops_on_sigterm_and_the_next_pod_goes_on() -> None:
    async with Broker(topics={"orders": 3, "invoices": 1}) as broker:
        servers = broker.bootstrap_servers
        invoices: Counter[bytes | None] = Counter()
        async with (
            kafkaio.Producer(servers) as producer,
            kafkaio.Consumer(
                servers, topics="invoices", auto_offset_reset="earliest"
            ) as consumer,
        ):
            orders = [b"%d" % n for n in range(COUNT)]
            done = 0
            async with pod(servers, POD_NAME="worker-0") as first:
                await first.until("/ready", 200)
                assert await first.probe("/live") == 200
                assert await first.probe("/other") == 404
                await producer.send_many("orders", orders[: COUNT // 2])
                while invoices.total() < COUNT // 4:
                    invoices[(await anext(consumer)).value] += 1
                done += (await first.stop())[0]
            await producer.send_many("orders", orders[COUNT // 2 :])
            async with pod(servers, POD_NAME="worker-0") as second:
                while invoices.total() < COUNT:
                    invoices[(await anext(consumer)).value] += 1
                done += (await second.stop())[0]
    assert invoices == Counter(b"invoice for %d" % n for n in range(COUNT))
    assert done == COUNT


async def test_without_kafka_it_lives_is_not_ready_and_stops_in_time() -> None:
    async with Broker(topics={"orders": 3, "invoices": 1}) as broker:
        servers = broker.bootstrap_servers
        async with kafkaio.Producer(servers) as producer:
            await producer.send_many("orders", [b"%d" % n for n in range(COUNT)])
        process = pod(servers, STOP_SECONDS="1")
        worker = await process.__aenter__()
        await worker.until("/ready", 200)
    try:
        await worker.until("/ready", 503)
        assert await worker.probe("/live") == 200
        seconds = (await worker.stop())[1]
    finally:
        await process.__aexit__(None, None, None)
    assert seconds < 20  # by itself it would take a minute and more


async def test_without_kafka_from_the_start_it_stops_at_once() -> None:
    async with pod("127.0.0.1:1", STOP_SECONDS="1") as worker:
        assert await worker.probe("/live") == 200
        assert await worker.probe("/ready") == 503
        assert (await worker.stop())[0] == 0


async def test_the_stop_of_the_page() -> None:
    (block,) = python_blocks("guide/kubernetes.md")
    stop = (await run_block(block))["stop"]
    async with Broker(topics={"orders": 1}) as broker, asyncio.timeout(HANGS):
        servers = broker.bootstrap_servers
        consumer = kafkaio.Consumer(servers, topics="orders", group_id="invoicing")
        producer = kafkaio.Producer(servers)
        await consumer.start()
        await producer.start()
        delivery = await producer.enqueue("orders", b"1")
        await stop(consumer, producer, 20)
        assert (await delivery).offset == 0
        states = {consumer.statistics().state, producer.statistics().state}
        assert states == {"closed"}


# ---- static members ------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_a_rolling_restart_of_static_members_moves_nothing(
    protocol: Any,
) -> None:
    news: list[str] = []
    # With KIP-848 the interval is the brokers'.
    options: Any = {"heartbeat_interval_ms": 100} if protocol == "classic" else {}

    async def member(name: str) -> kafkaio.Consumer:
        async def changed(partitions: object) -> None:
            news.append(name)

        consumer = kafkaio.Consumer(
            broker.bootstrap_servers,
            topics="orders",
            group_id="invoicing",
            group_protocol=protocol,
            group_instance_id=name,
            on_assigned=changed,
            on_revoked=changed,
            **options,
        )
        await consumer.start()
        return consumer

    groups = GroupConfig(consumer_heartbeat_interval=0.1)
    async with (
        Broker(topics={"orders": 6}, groups=groups) as broker,
        asyncio.timeout(HANGS),
    ):
        names = ["worker-0", "worker-1", "worker-2"]
        members = {name: await member(name) for name in names}
        while {len(m.assignment) for m in members.values()} != {2}:
            async with asyncio.TaskGroup() as tasks:
                for each in members.values():
                    tasks.create_task(each.poll(timeout=0.05))
        before = {name: m.assignment for name, m in members.items()}
        generation = members["worker-0"].statistics().generation
        for name in reversed(names):  # as a StatefulSet does it
            others = {*names} - {name}
            news.clear()
            await members[name].close()
            members[name] = await member(name)
            assert members[name].assignment == before[name]
            assert not others.intersection(news)
        assert {name: m.assignment for name, m in members.items()} == before
        if protocol == "classic":  # KIP-848 counts for each member
            numbers = {m.statistics().generation for m in members.values()}
            assert numbers == {generation}
        for each in members.values():
            await each.close()


# ---- the manifest --------------------------------------------------------------------


def manifests() -> dict[str, dict[str, Any]]:
    blocks = re.findall(
        r"^```yaml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL
    )
    found = [each for block in blocks for each in yaml.safe_load_all(block)]
    return {each["kind"]: each for each in found}


def test_the_manifest_fits_the_worker() -> None:
    found = manifests()
    assert {"StatefulSet", "Service", "ScaledObject"} <= found.keys()
    stateful = found["StatefulSet"]["spec"]
    assert stateful["serviceName"] == found["Service"]["metadata"]["name"]
    spec = stateful["template"]["spec"]
    (container,) = spec["containers"]
    env = {each["name"]: each for each in container["env"]}
    assert env["POD_NAME"]["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.name"
    settings = Settings.from_environment(
        {name: each.get("value", name) for name, each in env.items()}
    )
    assert settings.pod_name == "POD_NAME"
    assert {*env} <= {*re.findall(r"env\.get\(\"(\w+)\"", EXAMPLE.read_text())}
    grace = spec["terminationGracePeriodSeconds"]
    pre_stop = container.get("lifecycle", {}).get("preStop", {}).get("sleep", {})
    assert pre_stop.get("seconds", 0) + settings.stop_seconds < grace
    (port,) = container["ports"]
    assert port["containerPort"] == settings.port
    probes = {
        "startupProbe": "/live",
        "livenessProbe": "/live",
        "readinessProbe": "/ready",
    }
    for name, path in probes.items():
        asked = container[name]["httpGet"]
        assert (asked["path"], asked["port"]) == (path, port["name"])
    assert "--serve" in container["command"]
    # A container of more than one process would need one that passes SIGTERM on.
    assert container["command"][0] == "python"


def test_the_settings_that_the_page_names_are_there() -> None:
    text = PAGE.read_text()
    grace = re.findall(r"terminationGracePeriodSeconds: (\d+)", text)
    assert grace
    options = set(re.findall(r"`(\w+_ms)\b", text))
    known = {field for each in CONFIGS for field in each.__dataclass_fields__}
    assert options <= known
    assert options
