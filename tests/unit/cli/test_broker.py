"""``kafkaio broker``: it starts, serves, ends on a signal, and reports errors."""

import asyncio
import json
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import kafkaio
from kafkaio._cli import main
from kafkaio.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kafkaio.protocol.messages.metadata import MetadataRequest
from tests.support.cli import validate
from tests.support.patience import HANGS

#: The command on a loop that cannot watch signals, as on Windows.
WITHOUT_SIGNALS = """
import asyncio, sys
from kafkaio._cli import main

class Loop(asyncio.SelectorEventLoop):
    def add_signal_handler(self, *_):
        raise NotImplementedError
    remove_signal_handler = add_signal_handler

class Policy(asyncio.DefaultEventLoopPolicy):
    _loop_factory = Loop

asyncio.set_event_loop_policy(Policy())
sys.exit(main(["broker", "--port", "0"]))
"""


@asynccontextmanager
async def running(
    *command: str, signal_number: int = signal.SIGTERM
) -> AsyncIterator[str]:
    """Run a broker, and end it by a signal; its addresses."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *command),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(HANGS):
            first = (await process.stdout.readline()).decode()
            second = (await process.stdout.readline()).decode()
        assert "for development and tests only" in first
        yield second.removeprefix("listening at ").strip()
    finally:
        process.send_signal(signal_number)
        async with asyncio.timeout(HANGS):
            _, said = await process.communicate()
    # In debug mode asyncio may report that the machine is slow.
    errors = [line for line in said.decode().splitlines() if "Executing <" not in line]
    assert (process.returncode, errors) == (0, [])


async def test_it_serves_until_a_signal() -> None:
    command = ("-m", "kafkaio", "broker", "--port", "0", "--nodes", "2")
    async with running(*command) as servers:
        assert len(servers.split(",")) == 2
        async with kafkaio.Producer(servers) as producer:
            meta = await producer.send("orders", b"v")
        assert meta.offset == 0


@pytest.mark.parametrize("option", ["--json", "--jsonl"])
async def test_where_it_listens_is_a_document_of_one_line(option: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "kafkaio", "broker", "--port", "0", "--nodes", "2"),
        option,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(HANGS):
            document = json.loads(await process.stdout.readline())
        validate(document, "broker")
        servers = document["bootstrap_servers"]
        assert len(servers.split(",")) == 2
        async with kafkaio.Client(servers):
            pass
    finally:
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(HANGS):
            rest, said = await process.communicate()
    assert (process.returncode, rest) == (0, b"")
    assert b"for development and tests only" in said


async def test_security_is_switched_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOBS", "pass:word")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "kafkaio", "broker", "--port", "0", "--json"),
        *("--sasl", "--tls", "--acls", "--topic", "t"),
        *("--user", "bob:${env:BOBS}", "--user", "carol:c"),
        *("--config", "super.users=User:bob"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(HANGS):
            document = json.loads(await process.stdout.readline())
        validate(document, "broker")
        listeners = document["listeners"]
        assert set(listeners) == {"PLAINTEXT", "SASL", "SSL", "MTLS", "SASL_SSL"}
        files = document["certificates"]
        assert set(files["clients"]) == {"bob", "carol"}
        login = {"sasl_mechanism": "SCRAM-SHA-256", "security_protocol": "SASL_SSL"}
        trust = {"ssl_truststore_location": files["authority"]}
        for name, password, is_allowed in [
            ("bob", "pass:word", True),
            ("carol", "c", False),
        ]:
            async with kafkaio.Producer(
                listeners["SASL_SSL"]["servers"],
                sasl_username=name,
                sasl_password=password,
                **login,
                **trust,
            ) as producer:
                if is_allowed:
                    assert (await producer.send("t", b"v")).offset == 0
                else:
                    with pytest.raises(kafkaio.AuthorizationError):
                        await producer.send("t", b"v")
        # The listener without a login is one of strangers, who are no super users here.
        async with kafkaio.Producer(document["bootstrap_servers"]) as producer:
            with pytest.raises(kafkaio.AuthorizationError):
                await producer.send("t", b"v")
    finally:
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(HANGS):
            _, said = await process.communicate()
    assert process.returncode == 0
    assert b"no config" not in said


async def test_it_says_that_it_listens_on_all_interfaces() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "kafkaio", "broker", "--port", "0"),
        *("--host", "0.0.0.0", "--sasl"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(HANGS):
            lines = [await process.stdout.readline() for _ in range(3)]
        _, plain, sasl = (line.decode() for line in lines)
        found = re.fullmatch(
            r"listening at 0\.0\.0\.0:(\d+) \(all interfaces\); "
            r"clients on this machine connect to localhost:\1\n",
            plain,
        )
        assert found is not None
        assert sasl.startswith("SASL listening at 0.0.0.0:")
        async with kafkaio.Producer(f"localhost:{found[1]}") as producer:
            assert (await producer.send("orders", b"v")).offset == 0
    finally:
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(HANGS):
            _, said = await process.communicate()
    assert process.returncode == 0
    assert f"everybody who reaches 0.0.0.0:{found[1]}" in said.decode()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_it_where_the_loop_cannot_watch_signals(
    number: signal.Signals,
) -> None:
    async with running("-c", WITHOUT_SIGNALS, signal_number=number) as servers:
        assert servers.startswith("127.0.0.1:")


async def test_topics_and_configs_are_given(tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text("# for tests\nnum.partitions=5\nlog.retention.hours = 2\n")
    given = (
        *("--topic", "orders:3", "--topic", "bills"),
        *("--properties", str(properties), "--config", "num.partitions=4"),
        *("--config", "auto.create.topics.enable=false"),
    )
    async with (
        running("-m", "kafkaio", "broker", "--port", "0", *given) as servers,
        kafkaio.Client(servers) as client,
    ):
        metadata = await client.request(MetadataRequest(topics=None))
        counts = {one.name: len(one.partitions) for one in metadata.topics}
        assert counts == {"orders": 3, "bills": 1}
        asked = DescribeConfigsResource(
            resource_type=4, resource_name="0", configuration_keys=None
        )
        request = DescribeConfigsRequest(resources=[asked])
        (found,) = (await client.request(request, to=kafkaio.Controller)).results
        values = {one.name: one.value for one in found.configs}
        assert values["num.partitions"] == "4"
        assert values["log.retention.hours"] == "2"
        assert values["auto.create.topics.enable"] == "false"


@pytest.mark.parametrize("words", [["s3cret"], ["bob:"], [":s3cret"]])
def test_a_password_is_never_repeated(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    line = refusal(capsys, "--sasl", "--user", *words)
    assert "it is not NAME:PASSWORD" in line
    assert "s3cret" not in line


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that something listens at."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def refusal(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The line that a command prints before it exits with code 2."""
    try:
        code: object = main(["broker", *words])
    except SystemExit as ended:
        code = ended.code
    said = capsys.readouterr()
    assert (code, said.out) == (2, "")
    assert said.err.endswith("\n")
    (line,) = said.err.splitlines()
    assert line.startswith("kafkaio broker: ")
    return line


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--port", "70000"], "'70000' is not a port"),
        (["--port", "-1"], "'-1' is not a port"),
        (["--port", "http"], "'http' is not a port"),
        (
            ["--port", "65535", "--nodes", "2"],
            "2 listeners from port 65535 need ports above 65535",
        ),
        (["--nodes", "0"], "'0' is not a number of at least 1"),
        (["--nodes", "many"], "'many' is not a number of at least 1"),
        (["--as-version", "9.9"], "must be one of 2.1, 2.8"),
        (["--host", "192.0.2.1"], "192.0.2.1: "),
        (["--host", "host.invalid"], "host.invalid: "),
        (["--topic", "a/b"], "invalid name 'a/b'"),
        (["--user", "bob:x"], "--user needs --sasl or --tls"),
        (["--sasl", "--user", "b:${env:KAFKAIO_NO_SUCH}"], "cannot be resolved"),
        (["--config", "advertised.listeners=PLAINTEXT://0.0.0.0:1"], "no client can"),
        (["--config", "super.users=bob"], "not of the form User:NAME"),
        (["--topic", "a:none"], "'none' is not a number of at least 1"),
        (["--config", "num.partitions"], "'num.partitions' is not NAME=VALUE"),
        (["--config", "num.partitions=x"], "num.partitions=x: "),
        (["--config", "listeners=SSL://:9093"], "only PLAINTEXT can be set here"),
        (["--properties", "/no/such/file"], "/no/such/file: No such file"),
    ],
)
def test_it_reports_an_error_in_one_line(
    words: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = words if words[0] in {"--port", "--config"} else ["--port", "0", *words]
    assert reason in refusal(capsys, *words)


def test_a_port_in_use(taken: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert "in use" in refusal(capsys, "--port", str(taken))
    listeners = f"listeners=PLAINTEXT://127.0.0.1:{taken}"
    assert "in use" in refusal(capsys, "--config", listeners)


@pytest.mark.parametrize("content", [None, "{", "[]", "{}"])
def test_a_data_directory_of_something_else(
    content: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "data"
    if content is None:
        place.write_text("")
    else:
        place.mkdir()
        (place / "cluster.json").write_text(content)
    line = refusal(capsys, "--port", "0", "--data-dir", str(place))
    assert line.startswith(f"kafkaio broker: {place}")


def test_a_directory_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Not even root can create a file where a directory has its name.
    (tmp_path / "cluster.json.new").mkdir()
    line = refusal(capsys, "--port", "0", "--data-dir", str(tmp_path))
    assert str(tmp_path) in line


def test_an_unknown_config_is_reported(
    taken: int, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--port", str(taken), "--config", "num.partition=3"]
    assert main(["broker", *words]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first.endswith("no config num.partition; did you mean num.partitions?")
    assert "in use" in second


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"kafkaio {kafkaio.__version__}\n"
