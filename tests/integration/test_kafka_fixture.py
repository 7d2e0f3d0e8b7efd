"""A real Kafka of our own: its processes, its files, and whom it lets in."""

import asyncio
import signal
import socket
import ssl
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from kafkaio.admin import Admin, GroupState, NewTopic
from kafkaio.testing.kafka import KafkaNotStarted, real_kafka as choose
from kafkaio.testing.kafka._cluster import JvmCluster
from kafkaio.testing.kafka._nodes import JvmNode
from kafkaio.testing.kafka._source import parse_bootstrap
from kafkaio.testing.kafka._wire import metadata
from kafkaio.types import TopicPartition
from tests.support.java import JavaFailed, Toolbox
from tests.support.kafka import Kafka, run_tool
from tests.support.patience import HANGS

# It starts every version itself.
pytestmark = [
    pytest.mark.kafka_versions("newest"),
    pytest.mark.not_embedded("is about the processes of a real Kafka"),
    pytest.mark.slow,
    pytest.mark.timeout(120),
]


def nodes_of(kafka: Kafka) -> list[JvmNode]:
    assert isinstance(kafka.engine, JvmCluster)
    return list(kafka.engine.nodes.values())


def directory_of(kafka: Kafka) -> Path:
    return nodes_of(kafka)[0].directory.parent


def alive(pid: int) -> bool:
    """Whether a process runs; one that ended but was not waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def broker_ids(address: tuple[str, int]) -> set[int]:
    return set(metadata(address).brokers)


# One broker


async def test_nothing_is_left_after_the_block() -> None:
    async with Kafka() as kafka:
        pids = [node.pid for node in nodes_of(kafka)]
        directory = directory_of(kafka)
        (address,) = parse_bootstrap(kafka.bootstrap_servers)
        assert all(pid and alive(pid) for pid in pids)
        assert directory.exists()
    assert not any(pid and alive(pid) for pid in pids)
    assert not directory.exists()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, 1).close()


async def test_a_killed_broker_comes_back_with_its_data() -> None:
    async with Kafka() as kafka:
        (address,) = parse_bootstrap(kafka.bootstrap_servers)
        await kafka.create_topic("kept", partitions=2)
        before = nodes_of(kafka)[0].pid
        await kafka.kill(1)
        with pytest.raises(ConnectionRefusedError):
            metadata(address)
        await kafka.start(1)
        assert nodes_of(kafka)[0].pid != before
        assert len(metadata(address, ("kept",)).topics["kept"]) == 2


async def test_a_paused_broker_keeps_its_port_and_says_nothing() -> None:
    async with Kafka() as kafka:
        (address,) = parse_bootstrap(kafka.bootstrap_servers)
        await kafka.pause(1)
        with pytest.raises(TimeoutError):
            metadata(address, timeout=0.3)
        await kafka.resume(1)
        assert set(metadata(address, timeout=10).brokers) == {1}
        await kafka.pause(1)
        pid = nodes_of(kafka)[0].pid
    assert pid is not None
    assert not alive(pid)  # a halted process ends too


# Starts that do not end well


@pytest.mark.parametrize("delay", [0.0, 0.1, 0.4, 0.7])
async def test_a_cancelled_start_leaves_nothing(delay: float) -> None:
    kafka = Kafka(brokers=3)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(delay), kafka:
            pytest.fail("started")
    engine = kafka.engine
    assert isinstance(engine, JvmCluster)
    assert all(node.pid is None for node in engine.nodes.values())
    await asyncio.sleep(0.1)  # the abandoned thread must not start anything more
    assert all(node.pid is None for node in engine.nodes.values())
    assert not any(node.directory.exists() for node in engine.nodes.values())


async def test_a_broker_that_cannot_start_says_why() -> None:
    with pytest.raises(KafkaNotStarted, match=r"log\.segment\.bytes"):
        async with Kafka(config={"log.segment.bytes": "many"}):
            pytest.fail("started")


SCRIPT = """
import signal, sys, time
from kafkaio.testing.kafka import Kafka
# A shell that runs us in the background has it ignored, and we would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
with Kafka() as kafka:
    nodes = kafka.engine.nodes.values()
    print(kafka.engine.directory, *(node.pid for node in nodes), flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_nothing_outlives_the_process(number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        directory, *pids = parent.stdout.readline().split()
        assert all(alive(int(pid)) for pid in pids)
        parent.send_signal(number)
        parent.wait(60)
    end = time.monotonic() + HANGS
    while any(alive(int(pid)) for pid in pids) or Path(directory).exists():
        assert time.monotonic() < end
        time.sleep(0.02)


# SASL and TLS


def tool_config(directory: Path, **settings: str) -> str:
    file = directory / "client.properties"
    lines = [f"{key.replace('_', '.')}={value}\n" for key, value in settings.items()]
    file.write_text("".join(lines))
    return str(file)


JAAS = "org.apache.kafka.common.security"
LOGIN = {
    "PLAIN": f'{JAAS}.plain.PlainLoginModule required username="bob" password="%s";',
    "SCRAM-SHA-256": (
        f'{JAAS}.scram.ScramLoginModule required username="bob" password="%s";'
    ),
}
LOGIN["SCRAM-SHA-512"] = LOGIN["SCRAM-SHA-256"]
VERSIONS = "kafka.admin.BrokerApiVersionsCommand"
NEW_VERSIONS = "org.apache.kafka.tools.BrokerApiVersionsCommand"


async def logs_in(kafka: Kafka, config: str) -> bool:
    """Whether a Java client gets as far as the broker's list of APIs."""
    old = kafka.options.release.zookeeper or kafka.options.release.short == "3.9"
    try:
        output = await run_tool(
            kafka,
            VERSIONS if old else NEW_VERSIONS,
            *("--bootstrap-server", kafka.bootstrap("SASL")),
            *("--command-config", config),
            timeout=10,
        )
    except TimeoutError:  # the tool of 2.8 at times hangs when it is refused
        return False
    return "Fetch(1)" in output.stdout


async def check_sasl(kafka: Kafka, mechanism: str, directory: Path) -> None:
    for password, accepted in (("secret", True), ("wrong", False)):
        config = tool_config(
            directory,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=mechanism,
            sasl_jaas_config=LOGIN[mechanism] % password,
            default_api_timeout_ms="5000",
            request_timeout_ms="5000",
        )
        assert await logs_in(kafka, config) is accepted


async def check_tls(kafka: Kafka) -> None:
    def peer(listener: str, user: str | None) -> str:
        host, port = parse_bootstrap(kafka.bootstrap(listener))[0]
        context = kafka.certificates.client_context(user)
        with (
            socket.create_connection((host, port), 10) as raw,
            context.wrap_socket(raw, server_hostname=host) as secured,
        ):
            secured.settimeout(2)
            # With TLS 1.3 a refusal of our certificate arrives after the handshake.
            with suppress(TimeoutError):
                secured.recv(1)
            return secured.version() or ""

    assert (await asyncio.to_thread(peer, "SSL", None)).startswith("TLSv1")
    assert (await asyncio.to_thread(peer, "MTLS", "bob")).startswith("TLSv1")
    with pytest.raises(ssl.SSLError):
        await asyncio.to_thread(peer, "MTLS", None)


@pytest.mark.parametrize("mechanism", LOGIN)
async def test_listeners_take_sasl_and_tls(mechanism: str, tmp_path: Path) -> None:
    async with Kafka(sasl=True, tls=True, users={"bob": "secret"}) as kafka:
        await check_tls(kafka)
        await check_sasl(kafka, mechanism, tmp_path)
        with pytest.raises(KeyError):
            kafka.bootstrap("OTHER")


@pytest.mark.parametrize("version", ["4.0", "3.9", "2.8", "2.1"])
async def test_an_older_release_boots(version: str, tmp_path: Path) -> None:
    async with Kafka(2, version, sasl=True, tls=True, users={"bob": "secret"}) as kafka:
        await kafka.create_topic("t", partitions=2, replication_factor=2)
        await check_tls(kafka)
        await kafka.kill(2)
        await kafka.start(2)
        first, second = parse_bootstrap(kafka.bootstrap_servers)
        assert broker_ids(first) == broker_ids(second) == {1, 2}
    async with Kafka(1, version, sasl=True, users={"bob": "secret"}) as kafka:
        await check_sasl(kafka, "SCRAM-SHA-256", tmp_path)


async def test_feature_levels_are_as_asked_for() -> None:
    async with Kafka(features={"group.version": 0, "transaction.version": 1}) as kafka:
        output = await run_tool(
            kafka,
            "org.apache.kafka.tools.FeatureCommand",
            *("--bootstrap-server", kafka.bootstrap_servers, "describe"),
        )
        # ConsumerGroupDescribe refuses all groups: the older API is asked of them.
        async with Admin(kafka.bootstrap_servers) as admin:
            place = {TopicPartition("t", 0): 0}
            await admin.create_topics([NewTopic("t", 1, 1)])
            await admin.alter_consumer_group_offsets("g", place)
            (group,) = (await admin.describe_consumer_groups(["g"])).values()
    assert group.state is GroupState.EMPTY
    levels = {
        line.split()[1]: line.split("FinalizedVersionLevel:")[1].split()[0]
        for line in output.lines
        if "FinalizedVersionLevel:" in line
    }
    assert levels["group.version"] == "0"
    assert levels["transaction.version"] == "1"
    assert levels["share.version"] == "2"
    assert levels["metadata.version"] == "4.4-IV2"


# Someone else's cluster


async def test_a_running_cluster_is_used_and_left_alone(
    real_kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKAIO_BOOTSTRAP", real_kafka.bootstrap_servers)
    async with choose() as kafka:
        assert kafka.bootstrap_servers == real_kafka.bootstrap_servers
        assert kafka.node_ids == []
        with pytest.raises(RuntimeError, match="not ours"):
            await kafka.kill(1)
    (address,) = parse_bootstrap(real_kafka.bootstrap_servers)
    assert broker_ids(address) == {1}


async def test_a_cluster_that_does_not_answer_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        host, port = unused.getsockname()
        monkeypatch.setenv("KAFKAIO_BOOTSTRAP", f"{host}:{port}")
        with pytest.raises(KafkaNotStarted, match=f"{port}"):
            async with choose():
                pytest.fail("started")


# Java programs of ours

ECHO = """
import java.util.Scanner;
import org.apache.kafka.common.utils.internals.AppInfoParser;

public class Echo {
    public static void main(String[] args) {
        System.out.println(AppInfoParser.getVersion() + " " + String.join(",", args));
        System.err.println("to the log");
        Scanner in = new Scanner(System.in);
        while (in.hasNextLine()) System.out.println("<" + in.nextLine() + ">");
    }
}
"""


async def test_java_programs_run_to_their_end(
    real_kafka: Kafka, tmp_path: Path
) -> None:
    source = tmp_path / "Echo.java"
    source.write_text(ECHO)
    program = Toolbox(real_kafka.options.release).program(source)
    output = await program.run("a", "b", stdin="x\ny\n")
    version = real_kafka.options.release.version
    assert output.lines == [f"{version} a,b", "<x>", "<y>"]
    assert (output.returncode, output.stderr) == (0, "to the log\n")


async def test_java_programs_run_on(real_kafka: Kafka, tmp_path: Path) -> None:
    source = tmp_path / "Echo.java"
    source.write_text(ECHO)
    program = Toolbox(real_kafka.options.release).program(source)
    async with await program.start("a") as running:
        assert (await running.readline()).endswith(" a")
        await running.write("one\n")
        assert await running.readline() == "<one>"
        with pytest.raises(TimeoutError):
            await running.readline(timeout=0.05)
        pid = running.pid
        assert "to the log" in running.stderr
        assert alive(pid)
    assert not alive(pid)
    async with await program.start() as running:
        await running.close_input()
        assert len([line async for line in running]) == 1
        assert await running.wait() == 0


async def test_java_that_does_not_compile_says_so(
    real_kafka: Kafka, tmp_path: Path
) -> None:
    source = tmp_path / "Broken.java"
    source.write_text("public class Broken { int x = ; }")
    with pytest.raises(JavaFailed, match="illegal start of expression"):
        await Toolbox(real_kafka.options.release).program(source).run()
