"""Brokers by SOCKS 5 and CONNECT, on loopback."""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import Callable
from typing import Any

import pytest

import kafkaio
from kafkaio import AuthenticationError, BrokerNotAvailable, ConfigurationError
from kafkaio._config.proxy import Proxy, parse_proxy
from kafkaio._net import settings, tunnel
from kafkaio._net.dialling import TcpDial
from kafkaio._net.transport import DialOptions
from kafkaio.testing import Broker
from tests.support.patience import HANGS
from tests.support.proxies import ForwardProxy, proxy_server
from tests.support.sockets import black_hole, refusing

#: Loaded before an attempt is timed, as by a client.
assert tunnel
LOGIN = "alice:alice-secret"
WANTED = ("alice", "alice-secret")
ALL = ["socks5", "socks5h", "http"]


class Sink:
    """Expects nothing."""

    def frame_received(self, frame: object) -> None:
        raise AssertionError(frame)

    def connection_lost(self, cause: BaseException | None) -> None:
        """Nothing to do."""


def by(url: str, seconds: float = 20.0) -> DialOptions:
    return DialOptions(timeout=seconds, max_frame_size=2**20, proxy=parse_proxy(url))


async def refused(url: str, host: str = "127.0.0.1", seconds: float = 20.0) -> str:
    """The text of the error of an attempt to connect."""
    with pytest.raises(BrokerNotAvailable) as caught:
        await TcpDial()(host, 9092, Sink(), by(url, seconds))
    return str(caught.value)


def kind_of(scheme: str) -> str:
    return "http" if scheme == "http" else "socks5"


# ---- whole clients ---------------------------------------------------------------


@pytest.mark.parametrize("scheme", ALL)
@pytest.mark.parametrize("piecewise", [False, True], ids=["", "piecewise"])
async def test_records_go_through_it(scheme: str, piecewise: bool) -> None:
    proxy = ForwardProxy(kind_of(scheme), WANTED, piecewise=piecewise)
    async with proxy_server(proxy), Broker(topics={"t": 1}) as broker:
        options: dict[str, Any] = {"proxy": proxy.url(scheme, LOGIN)}
        servers = broker.bootstrap_servers
        async with kafkaio.Producer(servers, **options) as producer:
            await producer.send("t", b"1")
        async with kafkaio.Consumer(
            servers, topics="t", auto_offset_reset="earliest", **options
        ) as consumer:
            async for record in consumer:
                assert record.value == b"1"
                break
        async with kafkaio.Admin(servers, **options) as admin:
            assert "t" in await admin.list_topics()
        host, _, port = servers.rpartition(":")
        assert set(proxy.asked) == {(host, int(port))}


@pytest.mark.parametrize("scheme", ALL)
async def test_who_looks_names_up(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[str] = []

    def look_up(host: str, port: int, **_: object) -> Any:
        looked_up.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    proxy = ForwardProxy(kind_of(scheme), names={"kafka.internal": "127.0.0.1"})
    async with proxy_server(proxy), Broker() as broker:
        port = int(broker.bootstrap_servers.rpartition(":")[2])
        transport = await TcpDial()(
            "kafka.internal", port, Sink(), by(proxy.url(scheme))
        )
        transport.close()
        assert proxy.asked == [
            ("127.0.0.1" if scheme == "socks5" else "kafka.internal", port)
        ]
        assert looked_up == (["kafka.internal"] if scheme == "socks5" else [])


@pytest.mark.parametrize("scheme", ALL)
async def test_tls_and_sasl_go_through_it(scheme: str) -> None:
    proxy = ForwardProxy(kind_of(scheme), WANTED)
    users = {"bob": "bob-secret"}
    async with (
        proxy_server(proxy),
        Broker(sasl=True, tls=True, users=users) as broker,
        kafkaio.Client(
            broker.bootstrap("SASL_SSL"),
            proxy=proxy.url(scheme, LOGIN),
            security_protocol="SASL_SSL",
            sasl_mechanism="SCRAM-SHA-256",
            sasl_username="bob",
            sasl_password="bob-secret",
            ssl_truststore_location=str(broker.certificates.authority),
        ) as client,
    ):
        await client.request(kafkaio.messages.MetadataRequest(topics=[]))
        assert proxy.asked


# ---- errors ------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ALL)
@pytest.mark.parametrize("login", ["", "alice:wrong-secret"])
async def test_a_login_that_is_refused_ends_a_client_at_once(
    scheme: str, login: str
) -> None:
    proxy = ForwardProxy(kind_of(scheme), WANTED)
    async with proxy_server(proxy):
        url = proxy.url(scheme, login)
        with pytest.raises(AuthenticationError) as caught:
            async with kafkaio.Client("127.0.0.1:9092", proxy=url):
                pass
    text = str(caught.value)
    assert f"proxy {proxy.url(scheme)}" in text
    wanted = "does not accept the user and the password" if login else "wants a user"
    assert wanted in text
    assert "secret" not in text
    assert not caught.value.retriable


@pytest.mark.parametrize("scheme", ALL)
async def test_what_a_proxy_says_is_told(scheme: str) -> None:
    proxy = ForwardProxy(kind_of(scheme), fails="refused")
    async with proxy_server(proxy):
        text = await refused(proxy.url(scheme, "bob:bob-secret"))
    assert f"proxy {proxy.url(scheme)}: connect: the proxy says: " in text
    assert ("502 Bad Gateway" if scheme == "http" else "refused") in text


@pytest.mark.parametrize("scheme", ALL)
async def test_no_proxy_there(scheme: str) -> None:
    port = refusing()
    text = await refused(f"{scheme}://{LOGIN}@127.0.0.1:{port}")
    assert f"proxy {scheme}://127.0.0.1:{port}: connect: the proxy cannot be" in text


@pytest.mark.parametrize("scheme", ALL)
async def test_the_name_of_a_proxy_that_is_none(
    scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    text = await refused(f"{scheme}://proxy.example:1080")
    assert f"proxy {scheme}://proxy.example:1080: connect: resolve the proxy's" in text


@pytest.mark.parametrize("scheme", ALL)
@pytest.mark.parametrize("hangs_at", ["greeting", "request"])
async def test_a_proxy_that_hangs_is_within_the_limit(
    scheme: str, hangs_at: str
) -> None:
    proxy = ForwardProxy(kind_of(scheme), hangs_at=hangs_at)
    async with proxy_server(proxy):
        async with asyncio.timeout(HANGS):
            text = await refused(proxy.url(scheme), seconds=0.3)
    assert f"proxy {proxy.url(scheme)}: connect: " in text
    # The proxy has 95 % of the time, which on a busy machine may end as late.
    assert "answer within 0." in text


async def test_a_proxy_that_takes_no_connection_is_within_the_limit() -> None:
    with black_hole() as port:
        text = await refused(f"socks5h://127.0.0.1:{port}", seconds=0.3)
    assert f"proxy socks5h://127.0.0.1:{port}: connect: " in text
    assert text.endswith(" s")
    assert "no answer within 0." in text


@pytest.mark.parametrize("scheme", ALL)
@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\0",
        b"\5",
        b"\5\1",
        b"\5\7",
        b"\4\0",
        b"\5\0\5\0\0\7",
        b"\5\0\5\x63\0\1",
        b"\5\0\5\0\0\1\0\0",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nmore",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 301 Moved\r\nLocation: /\r\n\r\n",
        b"x" * 100_000,
        b"\x15\x03\x01\x00\x02\x02\x46",
    ],
)
async def test_what_is_no_proxy(scheme: str, answer: bytes) -> None:
    proxy = ForwardProxy(kind_of(scheme), answer=answer)
    async with proxy_server(proxy):
        with pytest.raises((BrokerNotAvailable, AuthenticationError)) as caught:
            await TcpDial()("127.0.0.1", 9092, Sink(), by(proxy.url(scheme)))
    assert f"proxy {proxy.url(scheme)}" in str(caught.value)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("scheme", ["socks5h", "http"])
async def test_a_name_that_cannot_be_sent(scheme: str) -> None:
    proxy = ForwardProxy(kind_of(scheme))
    async with proxy_server(proxy):
        for host in (
            "a" * 300,
            "a." * 200,
            "a..b",
            "bücher\ud800.example",
            "a\r\nHost: b",
            "a b",
            "a\0b",
        ):
            text = await refused(proxy.url(scheme), host)
            assert "proxy" in text
            assert len(text) < 1000
        with pytest.raises(BrokerNotAvailable, match="proxy"):
            await TcpDial()("kafka.example", 70_000, Sink(), by(proxy.url(scheme)))


async def test_addresses_are_tried_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with Broker() as broker:
        port = int(broker.bootstrap_servers.rpartition(":")[2])
        found = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in ("192.0.2.1", "127.0.0.1")
        ]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        # The proxy cannot reach the first one.
        proxy = ForwardProxy("socks5", names={"192.0.2.1": "127.0.0.3"})
        async with proxy_server(proxy):
            transport = await TcpDial()("kafka.example", port, Sink(), by(proxy.url()))
            transport.close()
        assert [host for host, _ in proxy.asked] == ["192.0.2.1", "127.0.0.1"]


@pytest.mark.parametrize("scheme", ALL)
async def test_cancelled_anywhere_nothing_is_left_open(
    scheme: str, recwarn: pytest.WarningsRecorder
) -> None:
    proxy = ForwardProxy(kind_of(scheme), WANTED)
    async with proxy_server(proxy), Broker() as broker:
        port = int(broker.bootstrap_servers.rpartition(":")[2])
        how, steps = by(proxy.url(scheme, LOGIN)), 0
        while True:
            work = TcpDial()("127.0.0.1", port, Sink(), how)
            task = asyncio.create_task(work)
            for _ in range(steps):
                await asyncio.sleep(0.0002)
            task.cancel()
            await asyncio.wait([task])
            steps += 1
            if not task.cancelled():
                task.result().close()
                break
        await asyncio.sleep(0.01)
    gc.collect()
    assert not [
        str(each.message) for each in recwarn if each.category is ResourceWarning
    ]


# ---- the option ------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["python_socks", "h11"])
def test_without_the_extra(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = settings.find_spec

    def find(name: str) -> Any:
        return None if name == missing else real(name)

    monkeypatch.setattr(settings, "find_spec", find)
    with pytest.raises(ConfigurationError, match=r"pip install kafkaio\[proxy\]"):
        kafkaio.Producer("localhost:9092", proxy="socks5://localhost:1080")


Make = Callable[..., Any]


@pytest.mark.parametrize(
    "make", [kafkaio.Client, kafkaio.Producer, kafkaio.Consumer, kafkaio.Admin]
)
def test_all_classes_have_it(make: Make) -> None:
    url = f"socks5h://{LOGIN}@localhost:1080"
    options = {"topics": "t"} if make is kafkaio.Consumer else {}
    for made in (
        make("localhost:9092", proxy=url, **options),
        make.from_properties(  # type: ignore[attr-defined]
            {"bootstrap.servers": "localhost:9092", "proxy": url}, **options
        ),
    ):
        assert "secret" not in repr(made)
        if not isinstance(made, kafkaio.Consumer):
            assert made.config.proxy == url
            assert "secret" not in repr(made.config)


def test_a_proxy_has_no_password_in_its_text() -> None:
    proxy = parse_proxy(f"socks5://alice:{'alice-secret'}@[::1]:1080/")
    assert proxy == Proxy("socks5", "::1", 1080, "alice", "alice-secret")
    assert str(proxy) == "socks5://[::1]:1080"
    assert "secret" not in repr(proxy)
    assert parse_proxy("http://a:b%40%3A%2F@h:1").password == "b@:/"
    assert parse_proxy("http://a:@h:1").password == ""


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("alice:alice-secret@proxy:1080", "is not a URL"),
        ("https://alice:alice-secret@proxy:1080", "is not a URL"),
        ("socks5://alice:alice-secret/@proxy:1080", "is not a URL"),
        ("socks5://alice:alice-secret@proxy", "no host and port"),
        ("socks5://alice:alice-secret@:1080", "no host and port"),
        ("socks5://alice:alice-secret@proxy:99999", "is not a URL"),
        ("socks5://alice:alice-secret@[::1:1080", "is not a URL"),
        ("socks5://alice:alice-secret@proxy:1080/x", "more than host and port"),
        ("socks5://alice:alice-secret@proxy:1080?x", "more than host and port"),
        ("socks5://alice-secret@proxy:1080", "alone"),
        ("socks5://:alice-secret@proxy:1080", "alone"),
        ("socks5://alice:alice-secret%C3%A9@proxy:1080", "ASCII"),
        (f"socks5://alice:{'alice-secret' * 30}@proxy:1080", "255"),
        ("http://a%3Ab:alice-secret@proxy:1080", "colon"),
        ("", "is not a URL"),
        (7, r"proxy \(int\) has the wrong type"),
    ],
)
def test_what_is_no_proxys_address(url: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        kafkaio.Client("localhost:9092", proxy=url)
    assert "secret" not in str(caught.value)
    with pytest.raises(ConfigurationError, match=message):
        kafkaio.Client.from_properties(
            {"bootstrap.servers": "localhost:9092", "proxy": url}
        )


def test_a_shared_client_has_its_own() -> None:
    with pytest.raises(ConfigurationError, match="option of the client"):
        kafkaio.Producer(
            kafkaio.Client("localhost:9092"),
            proxy="socks5://localhost:1080",
        )


async def test_tls_to_the_broker_is_checked_by_its_own_name() -> None:
    proxy = ForwardProxy("socks5", names={"kafka.internal": "127.0.0.1"})
    async with proxy_server(proxy), Broker(tls=True) as broker:
        port = broker.bootstrap("SSL").rpartition(":")[2]
        client = kafkaio.Client(
            f"kafka.internal:{port}",
            proxy=proxy.url("socks5h"),
            security_protocol="SSL",
            ssl_truststore_location=str(broker.certificates.authority),
        )
        with pytest.raises(AuthenticationError, match="Hostname mismatch"):
            await client.start()
        await client.close()
