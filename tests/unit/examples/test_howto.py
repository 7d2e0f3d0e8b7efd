"""The code of the how-to pages runs as it is printed there."""

from __future__ import annotations

import asyncio
import json
import os
import re
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    load_pem_private_key,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import (
    serialize_key_and_certificates,
)

import kafkaio
from kafkaio import TopicPartition
from kafkaio._config import ConsumerConfig
from kafkaio.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafkaio.registry import Avro, Registry
from kafkaio.testing import Broker, SchemaRegistry
from tests.fakes.broker import FakeCluster
from tests.pages import python_blocks, run_block as run
from tests.support.patience import HANGS
from tests.support.proxies import ForwardProxy, proxy_server
from tests.unit.consumer.fake_log import FakeLogs

ROOT = Path(__file__).parents[3]
LOCAL = "localhost:9092"


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    topics = {"orders": 1, "prices": 3, "events": 2}
    async with Broker(topics=topics) as broker, asyncio.timeout(HANGS):
        yield broker


# tls.md


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> trustme.CA:
    """A CA; its files and those of a client are in the working directory."""
    monkeypatch.chdir(tmp_path)
    authority = trustme.CA()
    authority.cert_pem.write_to_path("ca.pem")
    client = authority.issue_cert("alice@clients.test")
    client.private_key_and_cert_chain_pem.write_to_path("client.pem")
    client.cert_chain_pems[0].write_to_path("client.crt")
    for name in ("client.key", "key.pem"):
        client.private_key_pem.write_to_path(name)
    write_pkcs12("client.p12", client, "key-password")
    write_pkcs12("trust.p12", authority, "trust-password")
    monkeypatch.setenv("KEY_PASSWORD", "key-password")
    monkeypatch.setenv("TRUST_PASSWORD", "trust-password")
    return authority


def write_pkcs12(
    name: str, source: trustme.CA | trustme.LeafCert, password: str
) -> None:
    """Write a key store, or the trust store of an authority."""
    if isinstance(source, trustme.CA):
        certificates = [x509.load_pem_x509_certificate(source.cert_pem.bytes())]
        key = certificate = None
    else:
        chain = b"".join(pem.bytes() for pem in source.cert_chain_pems)
        certificate, *certificates = x509.load_pem_x509_certificates(chain)
        key = load_pem_private_key(source.private_key_pem.bytes(), None)
    hidden = BestAvailableEncryption(password.encode())
    data = serialize_key_and_certificates(
        None, key, certificate, certificates or None, hidden
    )
    Path(name).write_bytes(data)


@asynccontextmanager
async def behind_tls(
    authority: trustme.CA, *, host: str = "127.0.0.1", mutual: bool = False
) -> AsyncIterator[str]:
    """A broker that advertises a TLS proxy, which is the only way to it."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(host).configure_cert(context)
    if mutual:
        authority.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
    targets: list[int] = []

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                writer.write(data)
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection("127.0.0.1", targets[0])
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(copy(reader, there[1]))
            tasks.create_task(copy(there[0], writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    async with Broker(topics={"orders": 1}) as broker:
        (node,) = broker.nodes.values()
        targets.append(node.port)
        node.endpoints["PLAINTEXT"].port = port  # the advertised one
        async with server, asyncio.timeout(HANGS):
            yield f"127.0.0.1:{port}"


def tls_blocks(address: str = "") -> list[str]:
    """The blocks; files are those of `authority`, and one of them has both parts."""
    files = {"/etc/kafka/": "", "/tls/tls.crt": "client.crt", "/tls/tls.key": "key.pem"}
    return python_blocks("howto/tls.md", {"kafka.example.com:9093": address} | files)


async def end_of(address: str, **options: Any) -> int:
    orders = TopicPartition("orders", 0)
    async with kafkaio.Consumer(address, assign=[orders], **options) as consumer:
        return (await consumer.end_offsets([orders]))[orders]


async def test_tls(authority: trustme.CA) -> None:
    trusting = ssl.create_default_context(cafile="ca.pem")
    options = {"security_protocol": "SSL", "ssl_context": trusting}
    async with behind_tls(authority) as address:
        await run(tls_blocks(address)[0])
        assert await end_of(address, **options) == 1


async def test_a_client_certificate(authority: trustme.CA) -> None:
    async with behind_tls(authority, mutual=True) as address:
        names = await run(tls_blocks(address)[-1], {"ssl": ssl, "kafkaio": kafkaio})
        options = {"security_protocol": "SSL", "ssl_context": names["tls"]}
        assert await end_of(address, **options) == 1


async def test_certificates_by_options(authority: trustme.CA) -> None:
    ways = [block for block in tls_blocks() if block.startswith("options = ")]
    assert len(ways) == 3
    async with behind_tls(authority, mutual=True) as address:
        for way in ways:
            options = (await run(way, {"os": os}))["options"]
            trusting = {"ssl_truststore_location": "ca.pem"} | options
            assert await end_of(address, security_protocol="SSL", **trusting) == 0


async def test_what_tls_fails_with(authority: trustme.CA) -> None:
    page = (ROOT / "docs/howto/tls.md").read_text()

    async def refused(address: str, **options: Any) -> str:
        client = kafkaio.Client(
            address, default_api_timeout_ms=500, log=False, **options
        )
        with pytest.raises(kafkaio.NetworkError) as caught:
            await client.start()
        await client.close()
        return f"{type(caught.value).__name__}: {caught.value}"

    trusting = ssl.create_default_context(cafile="ca.pem")
    async with behind_tls(authority) as address:
        message = await refused(address, security_protocol="SSL")
        assert re.match("AuthenticationError: .*TLS handshake: .*certificate", message)
        assert "unable to get local issuer certificate" in message
        message = await refused(address)
        assert message.startswith("BrokerNotAvailable: ")
    async with behind_tls(authority, host="other.example") as address:
        message = await refused(address, security_protocol="SSL", ssl_context=trusting)
        assert re.match("AuthenticationError: .*mismatch", message), message
    async with Broker() as plain:
        message = await refused(plain.bootstrap_servers, security_protocol="SSL")
    assert re.match("BrokerNotAvailable: .*Does the listener speak TLS?", message)
    with pytest.raises(kafkaio.ConfigurationError) as caught:
        kafkaio.Producer(LOCAL, ssl_context=trusting)
    assert f"ConfigurationError: {caught.value}" in page
    properties = {"bootstrap.servers": LOCAL, "security.protocol": "SSL"}
    kafkaio.Producer.from_properties(properties | {"ssl.context": trusting})


# proxies.md


async def test_proxies(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROXY_PASSWORD", "orders-secret")
    proxy = ForwardProxy("socks5", ("orders", "orders-secret"))
    async with proxy_server(proxy):
        places = {
            "broker1:9092": broker.bootstrap_servers,
            "proxy.example.com:1080": f"127.0.0.1:{proxy.port}",
        }
        (block,) = python_blocks("howto/proxies.md", places)
        await run(block)
    assert proxy.asked
    orders = TopicPartition("orders", 0)
    async with kafkaio.Consumer(broker.bootstrap_servers, assign=[orders]) as consumer:
        assert (await consumer.end_offsets([orders]))[orders] == 1


# json.md


async def test_json(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    typed, plain, bad = python_blocks(
        "howto/json.md", {LOCAL: broker.bootstrap_servers}
    )
    for program in (typed, plain):
        await run(program)
        assert capsys.readouterr().out == "b'customer-7' 12.5\n"
    broker.create_topic("orders.invalid")
    invalid = TopicPartition("orders.invalid", 0)
    async with (
        kafkaio.Producer(broker.bootstrap_servers) as producer,
        kafkaio.Consumer(
            broker.bootstrap_servers, assign=[invalid], auto_offset_reset="earliest"
        ) as consumer,
        asyncio.TaskGroup() as tasks,
    ):
        service = tasks.create_task(run(bad))
        values = [b"{", None, b'{"id": 2}', b'{"id": 3, "amount": 1.5}', b"[]"]
        await producer.send_many("orders", values)
        assert [(await anext(consumer)).value for _ in range(3)] == [
            b"{",
            b'{"id": 2}',
            b"[]",
        ]
        service.cancel()
    assert capsys.readouterr().out == "charge 12.5\ncharge 12.5\ncharge 1.5\n"


async def test_a_serializer_and_none(broker: Broker) -> None:
    called: list[object] = []

    def to_json(value: object) -> bytes | None:
        called.append(value)
        return None if value == "gone" else json.dumps(value).encode()

    server = broker.bootstrap_servers
    async with kafkaio.Producer(server, value_serializer=to_json) as producer:
        await producer.send("orders", None, key=b"k")
        await producer.send("orders", "gone", key=b"k")
        for call in (
            producer.send("orders", {1, 2}),
            producer.enqueue("orders", {1, 2}),
            producer.send_many("orders", [1, {1, 2}]),
        ):
            with pytest.raises(TypeError, match="set is not JSON"):
                await call
    assert None not in called
    async with kafkaio.Consumer(
        server,
        topics="orders",
        auto_offset_reset="earliest",
        value_deserializer=called.append,
    ) as consumer:
        poll = await consumer.poll(timeout=5)
        assert [record.value for record in poll.records] == [None, None]
        orders = TopicPartition("orders", 0)
        assert await consumer.end_offsets([orders]) == {orders: 2}
    assert b"null" not in called


async def test_a_deserializer_that_raises_gets_the_record_again(broker: Broker) -> None:
    server = broker.bootstrap_servers
    broker.control.add_partitions("orders", 2)
    async with kafkaio.Producer(server) as producer:
        await producer.send("orders", b"{", partition=0)
        await producer.send("orders", b"2", partition=0)
    async with (
        kafkaio.Producer(server) as producer,
        kafkaio.Consumer(
            server,
            topics="orders",
            auto_offset_reset="earliest",
            value_deserializer=json.loads,
        ) as consumer,
    ):
        reads = (consumer.__anext__, consumer.poll, consumer.batches().__anext__)
        errors: list[kafkaio.DeserializationError] = []
        others = 0  # of the other partition, one at a time
        for read in (*reads, *reads):
            try:
                await read()
            except kafkaio.DeserializationError as error:
                errors.append(error)
            else:
                others += 1
            await producer.send("orders", b"3", partition=1)
        for error in errors:
            assert error.topic_partition == TopicPartition("orders", 0)
            assert error.record.value == b"{"
            assert isinstance(error.__cause__, ValueError)
        assert len(errors) >= 2
        assert others >= 2
        orders = TopicPartition("orders", 0)
        assert await consumer.position(orders) == 0
        consumer.seek(orders, 1)
        values = [(await anext(consumer)).value for _ in range(7 - others)]
        assert sorted(values) == [2] + [3] * (6 - others)


# compression.md


async def test_compression(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    sending, comparing = python_blocks(
        "howto/compression.md", {LOCAL: broker.bootstrap_servers}
    )
    await run(sending)
    async with kafkaio.Consumer(
        broker.bootstrap_servers, topics="events", auto_offset_reset="earliest"
    ) as consumer:
        assert sum((await consumer.lag()).values()) == 10_000
        assert (await anext(consumer)).value.startswith(b'{"id"')
    names = await run(comparing)
    await names["compare"]([b'{"id": %d, "kind": "click"}' % n for n in range(5_000)])
    lines = capsys.readouterr().out.replace(",", "").splitlines()
    sizes = {line.split()[0]: int(line.split()[1]) for line in lines}
    assert sizes.keys() == {"none", "lz4", "zstd", "gzip", "snappy"}
    assert sizes["zstd"] < sizes["lz4"] < sizes["none"]
    assert max(sizes, key=sizes.__getitem__) == "none"


async def test_the_limits_on_a_batch(broker: Broker) -> None:
    broker.create_topic("small", configs={"max.message.bytes": "20000"})
    batches: list[int] = []

    class Observer:
        def batch_sent(self, partition: object, records: int, size: int) -> None:
            del partition, size
            batches.append(records)

    async with kafkaio.Producer(
        broker.bootstrap_servers, compression_type="lz4", observer=Observer()
    ) as producer:
        with pytest.raises(kafkaio.RecordTooLarge, match="max_request_size"):
            await producer.send("events", b"x" * 1_100_000)
        assert batches == []
        # The broker counts the compressed size.
        await producer.send("small", b"x" * 500_000)
    async with kafkaio.Producer(
        broker.bootstrap_servers, observer=Observer()
    ) as producer:
        values = [b"x" * 1_000] * 100
        batches.clear()
        await producer.send_many("small", values)
        assert batches[0] == 100
        batches.clear()
        await producer.send_many("small", values)
        assert max(batches) < 100
        deliveries = [
            await producer.enqueue("small", b"x" * size) for size in (100, 30_000, 100)
        ]
        with pytest.raises(kafkaio.RecordTooLarge, match=r"max\.message\.bytes"):
            await deliveries[1]
        await deliveries[0]
        await deliveries[2]


# read-to-the-end.md


async def test_read_to_the_end(
    broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    program, others, ends, following = python_blocks(
        "howto/read-to-the-end.md", {LOCAL: broker.bootstrap_servers, "4711": "0"}
    )
    await run(program)  # an empty topic
    async with kafkaio.Producer(broker.bootstrap_servers) as producer:
        for n in range(100):
            await producer.enqueue("prices", b"%d" % n, key=b"%d" % (n % 10))
        await producer.flush()
        await producer.send("prices", None, key=b"3")
        # No record reaches the end of a partition whose records were deleted.
        await producer.send("prices", b"old", partition=2)
        async with kafkaio.Client(broker.bootstrap_servers) as client:
            partition = DeleteRecordsPartition(partition_index=2, offset=-1)
            topic = DeleteRecordsTopic(name="prices", partitions=[partition])
            request = DeleteRecordsRequest(topics=[topic], timeout_ms=1000)
            reply = await client.request(
                request, to=kafkaio.Leader(TopicPartition("prices", 2))
            )
            assert reply.topics[0].partitions[0].error_code == 0
        names = await run(program)
        nothing, some = capsys.readouterr().out.splitlines()
        assert nothing == "0 prices"
        assert re.fullmatch(r"[1-9] prices", some)

        class Cache(dict[bytes, bytes]):
            def __setitem__(self, key: bytes, value: bytes) -> None:
                super().__setitem__(key, value)
                if value == b"new":
                    raise EOFError

        names["cache"] = Cache()
        async with kafkaio.Consumer(
            broker.bootstrap_servers, topics="prices", auto_offset_reset="earliest"
        ) as names["consumer"]:
            await producer.send("prices", b"new", key=b"a", partition=0)
            with pytest.raises(EOFError):
                await run(following, names)
            capsys.readouterr()
            names["consumer"].seek_to_beginning()
            await run(others, names)
            first, *rest = capsys.readouterr().out.splitlines()
            # The new one is read again; those of partition 2 were deleted.
            assert re.fullmatch(r"[1-9]\d+ records", first)
            assert rest == []  # they are all read
            names["consumer"].seek_to_beginning()
            await run(ends, names)


# read-ranges.md


async def test_read_ranges(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyarrow", exc_type=ImportError)
    (program,) = python_blocks(
        "howto/read-ranges.md", {LOCAL: broker.bootstrap_servers}
    )
    async with kafkaio.Producer(broker.bootstrap_servers) as producer:
        await producer.send("orders", b"too old", timestamp=1_000)
        for n in range(5):
            await producer.send("orders", b"%d" % n)
    names = await run(program)
    assert capsys.readouterr().out == "5 orders\n"
    async with kafkaio.Client(broker.bootstrap_servers) as client:
        table = await names["last_hour"](client, "orders")
        assert table["value"].to_pylist() == ["0", "1", "2", "3", "4"]
        assert table["offset"].to_pylist() == [1, 2, 3, 4, 5]
        assert (await names["last_hour"](client, "events")).num_rows == 0


# tables.md; the programs for other libraries run in tests/tables


async def test_tables(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyarrow", exc_type=ImportError)
    blocks = python_blocks("howto/tables.md", {LOCAL: broker.bootstrap_servers})
    blocking, *_, in_coroutines = blocks
    async with kafkaio.Producer(broker.bootstrap_servers) as producer:
        await producer.send("orders", b"too old", timestamp=1_000)
        await producer.send("orders", b"two apples")
        await producer.send("prices", b"3")
    names = await run(blocking)
    await asyncio.to_thread(names["main"])
    await run(in_coroutines)
    assert capsys.readouterr().out.splitlines() == [
        "1 orders",
        "[{'partition': 0, 'offset': 1, 'value': 'two apples'}]",
        "1 prices, 2 orders",
    ]


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
async def test_the_end_is_a_marker(isolation: str) -> None:
    async with FakeCluster(nodes=1, topics={"one": 1}) as cluster:
        log = FakeLogs(cluster).log("one")
        log.append([b"seen"])
        log.marker(1, commit=True)
        if isolation == "read_committed":
            log.last_stable = log.end
            log.append([b"open"])
        options = {"auto_offset_reset": "earliest", "isolation_level": isolation}
        config = ConsumerConfig.of(cluster.bootstrap, options)
        async with (
            asyncio.timeout(HANGS),
            kafkaio.Consumer.from_config(
                config, dial=cluster.dial, topics="one"
            ) as consumer,
        ):
            found = [record.value async for record in consumer.records(until="latest")]
    assert found == [b"seen"]


# tests.md


async def run_pytest(directory: Path, *options: str) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += ["-p", "kafkaio.testing.pytest_plugin", *options]
    here = {"PYTHONPATH": str(ROOT)}
    with anyio.fail_after(60):
        done = await anyio.run_process(
            command,
            cwd=directory,
            check=False,
            stderr=subprocess.STDOUT,
            env=os.environ | here,
        )
    output = done.stdout.decode()
    assert done.returncode == 0, output
    return output


async def test_tests(tmp_path: Path) -> None:
    service, tests, with_anyio, without = python_blocks("howto/tests.md")
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n"
    )
    (tmp_path / "billing.py").write_text(service)
    (tmp_path / "test_billing.py").write_text(tests)
    (tmp_path / "test_without.py").write_text(without)
    (tmp_path / "with_anyio").mkdir()
    (tmp_path / "with_anyio" / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "with_anyio" / "test_anyio.py").write_text(with_anyio)
    options = ["-k", "not real", "-W", "error", "--ignore", "with_anyio"]
    output = await run_pytest(tmp_path, *options)
    assert "3 passed, 1 deselected" in output
    options = ["-p", "no:asyncio", "-W", "error"]
    output = await run_pytest(tmp_path / "with_anyio", *options)
    assert "1 passed" in output


# typed-topics.md


async def test_typed_topics(
    broker: Broker, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    program, changed, check, test = python_blocks("howto/typed-topics.md")
    async with SchemaRegistry() as schemas, Registry(schemas.url) as registry:
        places = {"http://localhost:8081": schemas.url, LOCAL: broker.bootstrap_servers}
        for place, there in places.items():
            program = program.replace(place, there)
        service = asyncio.create_task(run(program))
        output = ""
        while output != "anna pays 900\n":  # the program prints, and tells nobody
            await asyncio.sleep(0.01)
            assert not service.done(), await service
            output += capsys.readouterr().out
        service.cancel()
        await asyncio.wait([service])
        page = (ROOT / "docs/howto/typed-topics.md").read_text()
        (shown,) = re.findall(r"^```json\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
        registered = await registry.latest("orders-value")
        assert json.loads(registered.schema.text) == json.loads(shown)
        names = {"Avro": Avro, "registry": registry}
        names = await run(program.partition("class Shop")[0], names)
        await run(changed, names)
        await run(check, names)
        await run(changed.replace(' = "EUR"', ""), names)
        with pytest.raises(AssertionError, match="currency"):
            await run(check, names)
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n"
    )
    (tmp_path / "shop.py").write_text(python_blocks("howto/typed-topics.md")[0])
    (tmp_path / "test_shop.py").write_text(test)
    assert "2 passed" in await run_pytest(tmp_path, "-W", "error")
