"""Real sockets, on loopback only."""

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager

import pytest
import trustme

from kafkaio._net.connection import LINGER, Connection
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._net.dialling import TcpDial
from kafkaio._net.settings import NetSettings
from kafkaio._net.transport import DialOptions, TransportPort
from kafkaio._runtime.clock import now
from kafkaio._runtime.observer import Observer
from kafkaio.errors import AuthenticationError, BrokerNotAvailable, ProtocolError
from kafkaio.protocol._headers import decode_request_header, encode_response
from kafkaio.protocol._message import Buffer
from kafkaio.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from kafkaio.types import Broker

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def options(**changes: object) -> DialOptions:
    return DialOptions(**{"timeout": 5.0, "max_frame_size": 2**22, **changes})  # type: ignore[arg-type]


class Sink:
    """Collects frames; ``wait`` returns when so many have come, or the end has."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.ended: asyncio.Future[BaseException | None] = (
            asyncio.get_running_loop().create_future()
        )
        self._changed = asyncio.Event()

    def frame_received(self, frame: Buffer) -> None:
        self.frames.append(bytes(frame))
        self._changed.set()

    def connection_lost(self, cause: BaseException | None) -> None:
        self.ended.set_result(cause)

    async def wait(self, count: int) -> None:
        while len(self.frames) < count:
            self._changed.clear()
            await self._changed.wait()


@asynccontextmanager
async def server(
    serve: Serve, context: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    writers = []

    async def handle(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        writers.append(writer)
        try:
            await serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    listener = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=context)
    try:
        yield listener.sockets[0].getsockname()[1]
    finally:
        for _ in range(20):  # let it see what its clients did last
            await asyncio.sleep(0)
        listener.close()
        for writer in writers:
            if not writer.is_closing():  # CPython 3.11.2 cannot abort TLS then
                writer.transport.abort()
        await listener.wait_closed()
        await asyncio.sleep(0.01)


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()


async def finish(transport: TransportPort, sink: Sink) -> None:
    transport.close()
    assert await sink.ended is None


def framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


async def test_frames_go_both_ways() -> None:
    sink = Sink()
    async with server(echo) as port:
        transport = await TcpDial()(
            "127.0.0.1",
            port,
            sink,
            options(send_buffer_bytes=65_536, receive_buffer_bytes=65_536),
        )
        large = bytes(range(256)) * 4096
        parts = [framed(b"small"), framed(b"two"), struct.pack(">i", len(large))]
        transport.write([*parts, memoryview(large), framed(b"")])
        await sink.wait(4)
        assert sink.frames == [b"small", b"two", large, b""]
        assert transport.received == len(large) + 9 + 7 + 4 + 4
        assert transport.unsent == 0
        await finish(transport, sink)
        # Nothing happens any more.
        transport.write([b"x"])
        transport.close()
        transport.abort()
        assert transport.unsent == 0


async def test_tcp_options_are_set() -> None:
    sink = Sink()
    async with server(echo) as port:
        transport = await TcpDial()("127.0.0.1", port, sink, options())
        sock = transport._transport.get_extra_info("socket")  # type: ignore[attr-defined]
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        await finish(transport, sink)


async def test_the_peer_closes() -> None:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(framed(b"bye"))

    sink = Sink()
    async with server(hang_up) as port:
        await TcpDial()("127.0.0.1", port, sink, options())
        assert await sink.ended is None
        assert sink.frames == [b"bye"]


async def test_a_frame_over_the_limit_breaks_the_connection() -> None:
    sink = Sink()
    async with server(echo) as port:
        transport = await TcpDial()(
            "127.0.0.1", port, sink, options(max_frame_size=100)
        )
        transport.write([framed(bytes(101))])
        cause = await sink.ended
        assert isinstance(cause, ProtocolError)
        assert "101" in str(cause)


async def test_a_refused_connection_names_host_step_and_cause() -> None:
    port = free_port()
    with pytest.raises(BrokerNotAvailable) as caught:
        await TcpDial()("127.0.0.1", port, Sink(), options())
    text = str(caught.value)
    assert text.startswith(f"127.0.0.1:{port}: 127.0.0.1: connect: ")
    assert "refused" in text.lower() or "Connect call failed" in text
    assert isinstance(caught.value.__cause__, OSError)
    assert caught.value.retriable


async def test_a_blackholed_address_times_out() -> None:
    # A listener whose backlog is full answers no packet: as good as a black hole.
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = listener.getsockname()
        with ExitStack() as filler:
            for _ in range(4):
                sock = filler.enter_context(socket.socket())
                sock.setblocking(False)
                sock.connect_ex(address)
            # A busy machine comes to the connection later than to the call.
            with pytest.raises(
                BrokerNotAvailable, match=r"connect: no answer within 0\.0\d s"
            ):
                await TcpDial()("127.0.0.1", address[1], Sink(), options(timeout=0.05))


async def test_every_address_of_a_name_is_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sink = Sink()
    dead = free_port()
    async with server(echo) as port:
        found = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", each))
            for each in (dead, port)
        ]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        transport = await TcpDial()("kafka.example", port, sink, options())
        transport.write([framed(b"x")])
        await sink.wait(1)
        await finish(transport, sink)
    found = [found[0], (*found[0][:4], ("127.0.0.2", dead))]
    with pytest.raises(BrokerNotAvailable) as caught:
        await TcpDial()("kafka.example", dead, Sink(), options())
    assert str(caught.value).count("connect: ") == 2


async def test_a_name_that_does_not_resolve(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> list[tuple[object, ...]]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(
        BrokerNotAvailable, match=r"kafka\.example:9092: resolve name: .*not known"
    ):
        await TcpDial()("kafka.example", 9092, Sink(), options())


async def test_a_name_that_is_none() -> None:
    with pytest.raises(BrokerNotAvailable, match="resolve name"):
        await TcpDial()("a" * 70 + ".example", 9092, Sink(), options())


async def test_ipv6() -> None:
    with pytest.raises(BrokerNotAvailable, match=r"::1: connect: "):
        await TcpDial()("::1", free_port(), Sink(), options())


async def test_a_cancelled_dial_leaves_nothing_open() -> None:
    async with server(echo) as port:
        task = asyncio.create_task(TcpDial()("127.0.0.1", port, Sink(), options()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


# ---- TLS -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def server_tls(authority: trustme.CA, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context


def client_tls(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


async def test_tls(authority: trustme.CA) -> None:
    sink = Sink()
    async with server(echo, server_tls(authority, "localhost")) as port:
        transport = await TcpDial()(
            "localhost", port, sink, options(ssl_context=client_tls(authority))
        )
        transport.write([framed(bytes(300_000))])
        await sink.wait(1)
        assert sink.frames == [bytes(300_000)]
        await finish(transport, sink)


@pytest.mark.parametrize("first", ["close", "abort"])
async def test_tls_that_is_ended_again_and_again(
    authority: trustme.CA, first: str
) -> None:
    sink = Sink()
    async with server(echo, server_tls(authority, "localhost")) as port:
        transport = await TcpDial()(
            "localhost", port, sink, options(ssl_context=client_tls(authority))
        )
        getattr(transport, first)()
        transport.close()
        transport.close()
        unsent = transport.unsent  # perhaps some bytes of the handshake
        transport.write([framed(bytes(1_000))])
        assert transport.unsent == unsent < 1_000
        transport.abort()
        transport.close()
        transport.abort()
        assert transport.unsent < 1_000
        await sink.ended
        transport.close()
        transport.abort()


async def test_tls_checks_the_host_name(authority: trustme.CA) -> None:
    async with server(echo, server_tls(authority, "other.example")) as port:
        with pytest.raises(
            AuthenticationError, match=r"TLS handshake: .*certificate verify failed"
        ) as caught:
            await TcpDial()(
                "localhost", port, Sink(), options(ssl_context=client_tls(authority))
            )
        assert not caught.value.retriable


async def test_tls_to_a_plain_port() -> None:
    async def babble(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"\0\0\0\5hello")

    context = ssl.create_default_context()
    async with server(babble) as port:
        with pytest.raises(AuthenticationError, match="TLS handshake"):
            await TcpDial()("127.0.0.1", port, Sink(), options(ssl_context=context))


async def test_a_peer_that_hangs_up_on_tls_may_be_tried_again() -> None:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    context = ssl.create_default_context()
    async with server(hang_up) as port:
        with pytest.raises(BrokerNotAvailable, match="TLS handshake"):
            await TcpDial()("127.0.0.1", port, Sink(), options(ssl_context=context))


async def test_a_peer_that_hangs_in_tls_times_out() -> None:
    async def hang(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    context = ssl.create_default_context()
    async with server(hang) as port:
        with pytest.raises(
            BrokerNotAvailable, match=r"TLS handshake: no answer within 0\.[01]\d* s"
        ):
            await TcpDial()(
                "127.0.0.1", port, Sink(), options(ssl_context=context, timeout=0.1)
            )


async def test_plain_to_a_tls_port_says_so() -> None:
    async def alert(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"\x15\x03\x03\x00\x02\x02\x46")  # protocol_version

    sink = Sink()
    async with server(alert) as port:
        transport = await TcpDial()("127.0.0.1", port, sink, options())
        transport.write([framed(b"hello")])
        assert "speaks TLS" in str(await sink.ended)


# ---- a connection over a socket ----------------------------------------------------


async def broker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers ApiVersions and nothing else."""
    while True:
        size = struct.unpack(">i", await reader.readexactly(4))[0]
        header, _ = decode_request_header(await reader.readexactly(size))
        answer = ApiVersionsResponse(api_keys=[ApiVersion(api_key=18, max_version=4)])
        version = header.request_api_version
        writer.write(encode_response(answer, version, header.correlation_id))


async def test_a_connection_negotiates_over_a_socket() -> None:
    lost: list[BaseException | None] = []
    settings = NetSettings()
    async with server(broker) as port:
        peer = Broker(1, "127.0.0.1", port)
        connection = Connection(
            peer,
            ConnectionClass.SHARED,
            settings.identity("broker 1", peer),
            Observer(),
            lambda _, cause: lost.append(cause),
        )
        await connection.open(TcpDial(), settings.dial_options(5))
        assert connection.is_ready
        assert connection.versions.max_version(18) == 4
        assert connection.statistics().bytes_received > 0
        connection.close()
        await connection.wait_gone(now() + LINGER)
        assert lost == [None]
    assert len(asyncio.all_tasks()) == 1
