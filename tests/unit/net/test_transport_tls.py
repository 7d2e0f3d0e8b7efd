"""TLS over real sockets on loopback, and in memory: refusals and misbehaving peers."""

import asyncio
import datetime
import os
import socket
import ssl
import struct
import sys
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
import trustme
from hypothesis import given, settings, strategies as st

from kafkaio._net import socket_writer
from kafkaio._net.connection import Connection
from kafkaio._net.connection_class import ConnectionClass
from kafkaio._net.dialling import TcpDial
from kafkaio._net.settings import NetSettings
from kafkaio._net.tls import TlsLayer, explained
from kafkaio._net.transport import DialOptions, TcpTransport
from kafkaio._runtime.observer import Observer
from kafkaio.errors import AuthenticationError, BrokerNotAvailable
from kafkaio.protocol._message import Buffer
from kafkaio.types import Broker
from tests.support.patience import HANGS

AUTHORITY = trustme.CA()
OTHER = trustme.CA()
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def server_tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    AUTHORITY.issue_cert("localhost").configure_cert(context)
    return context


def client_tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    AUTHORITY.configure_trust(context)
    return context


def options(context: ssl.SSLContext | None, timeout: float = 5.0) -> DialOptions:
    return DialOptions(timeout=timeout, max_frame_size=2**24, ssl_context=context)


def framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


class Sink:
    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.ended: asyncio.Future[BaseException | None] = (
            asyncio.get_running_loop().create_future()
        )

    def frame_received(self, frame: Buffer) -> None:
        self.frames.append(bytes(frame))

    def connection_lost(self, cause: BaseException | None) -> None:
        self.ended.set_result(cause)


class Peer:
    """The server's side of TLS by hand, over a plain stream, so that it can lie."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self.reader, self.writer = reader, writer
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = (context or server_tls()).wrap_bio(
            self.incoming, self.outgoing, server_side=True
        )

    async def flight(self) -> bytes:
        """Read until the handshake has something to say, and return that."""
        while not self.outgoing.pending:
            self.incoming.write(await self.reader.read(65_536))
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                continue
        return self.outgoing.read()

    async def shake(self) -> None:
        self.writer.write(await self.flight())
        while True:
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                self.incoming.write(await self.reader.read(65_536))
            else:
                break
        self.writer.write(self.outgoing.read())

    def sealed(self, data: bytes) -> bytes:
        self.tls.write(data)
        return self.outgoing.read()


def sockets(port: int) -> int:
    """How many sockets to or of a port are open; 0 where that cannot be seen."""
    if sys.platform != "linux":
        return 0
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    ends = f":{port:04X}"
    # The inode of one that only the kernel still knows is 0.
    return sum(
        row[9] != "0" and (row[1].endswith(ends) or row[2].endswith(ends))
        for row in rows
    )


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(HANGS):
        while not is_so():  # noqa: ASYNC110 - nothing reports it
            await asyncio.sleep(0.001)


@asynccontextmanager
async def listening(serve: Serve) -> AsyncIterator[int]:
    """A plain server; checks that client and server leave nothing."""
    tasks: set[asyncio.Task[None]] = set()

    async def handle(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await serve(reader, writer)
        except (ConnectionError, ssl.SSLError):
            pass
        finally:
            writer.close()

    listener = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    try:
        yield port
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        listener.close()
        await listener.wait_closed()
        await until(lambda: len(asyncio.all_tasks()) == 1)
        await until(lambda: not sockets(port))


async def stall(reader: asyncio.StreamReader) -> None:
    while await reader.read(65_536):
        pass


# ---- a peer that misbehaves in the handshake ------------------------


@pytest.mark.timeout(60)
@pytest.mark.parametrize("how", ["close", "stall", "garbage", "alert", "reset"])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.2, 0.5, 0.9, 0.99])
async def test_a_peer_that_misbehaves_in_the_handshake(how: str, share: float) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        flight = await Peer(reader, writer).flight()
        writer.write(flight[: int(len(flight) * share)])
        if how == "garbage":
            writer.write(os.urandom(len(flight)) + bytes(20_000))
        if how == "alert":  # one much longer than any alert may be
            writer.write(b"\x15\x03\x03\x40\x00" + b"\x02" * 0x4000)
        if how == "reset":
            writer.transport.abort()
        if how in {"stall", "garbage", "alert"}:
            await stall(reader)

    # By its address, since the look-up of a name would take a part of the time.
    context = client_tls()
    context.check_hostname = False
    async with listening(serve) as port:
        with pytest.raises((AuthenticationError, BrokerNotAvailable)) as caught:
            await TcpDial()("127.0.0.1", port, Sink(), options(context, 0.3))
    text = str(caught.value)
    assert "TLS handshake" in text
    if how in {"close", "reset"}:
        assert isinstance(caught.value, BrokerNotAvailable)
        assert "Does the listener speak TLS? See security_protocol" in text
    if how == "stall":
        assert "no answer within 0." in text


async def test_a_cancelled_handshake_leaves_nothing() -> None:
    reached = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read(1)
        reached.set()
        await stall(reader)

    async with listening(serve) as port:
        task = asyncio.create_task(
            TcpDial()("localhost", port, Sink(), options(client_tls()))
        )
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_port_without_tls_is_told_at_once() -> None:
    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with listening(serve) as port:
        with pytest.raises(
            AuthenticationError, match="the port does not speak TLS"
        ) as caught:
            await TcpDial()("localhost", port, Sink(), options(client_tls()))
    assert caught.value.mechanism == "TLS"
    assert caught.value.broker == f"localhost:{port}"
    assert "security_protocol" in str(caught.value)


async def test_a_name_that_no_certificate_can_have() -> None:
    async def serve(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await stall(reader)

    async with listening(serve):
        with pytest.raises(OSError, match=r"'\.x' cannot be used"):
            TlsLayer(TcpTransport(1_000, None), client_tls(), ".x", ".x:1")


@pytest.mark.parametrize(
    ("context", "host", "hint"),
    [
        (ssl.create_default_context(), "localhost", "See ssl_truststore_location"),
        (client_tls(), "127.0.0.1", "see its advertised.listeners"),
    ],
)
async def test_a_certificate_that_is_not_accepted(
    context: ssl.SSLContext, host: str, hint: str
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await Peer(reader, writer).shake()

    async with listening(serve) as port:
        with pytest.raises(AuthenticationError, match="verify failed") as caught:
            await TcpDial()(host, port, Sink(), options(context))
    assert hint in str(caught.value)


# ---- a peer that misbehaves later ------------------------


@pytest.mark.parametrize("end", ["close", "notify", "cut", "garbage", "alert"])
async def test_a_peer_that_ends_or_breaks_the_stream(end: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer)
        await peer.shake()
        writer.write(peer.sealed(framed(b"one")))
        record = peer.sealed(framed(b"two"))
        writer.write(record if end in {"close", "notify"} else b"")
        if end == "notify":
            with pytest.raises(ssl.SSLWantReadError):
                peer.tls.unwrap()
            writer.write(peer.outgoing.read())
            await stall(reader)
        if end == "cut":
            writer.write(record[:-1])
        if end == "garbage":
            writer.write(record[:-1] + bytes([record[-1] ^ 1]))
            await stall(reader)
        if end == "alert":
            writer.write(b"\x15\x03\x03\x50\x00" + bytes(0x5000))
            await stall(reader)

    sink = Sink()
    async with listening(serve) as port:
        transport = await TcpDial()("localhost", port, sink, options(client_tls()))
        cause = await asyncio.wait_for(sink.ended, 5)
        assert transport.unsent == 0
        transport.write([framed(b"x")])
        transport.close()
    if end in {"garbage", "alert"}:
        assert isinstance(cause, ssl.SSLError)
        assert sink.frames == [b"one"]
    else:
        assert cause is None
        assert sink.frames == ([b"one"] if end == "cut" else [b"one", b"two"])


async def test_a_close_sends_everything_and_close_notify() -> None:
    seen = bytearray()
    over = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer)
        await peer.shake()
        writer.write(peer.sealed(framed(b"welcome")))
        while not over.is_set():
            try:
                piece = peer.tls.read(65_536)
            except ssl.SSLWantReadError:
                peer.incoming.write(await reader.read(65_536))
                continue
            seen.extend(piece)
            if not piece:  # close_notify
                over.set()

    sink = Sink()
    parts: list[Buffer] = [b"small", memoryview(bytes(range(256)) * 20_000), b"end"]
    async with listening(serve) as port:
        transport = await TcpDial()("localhost", port, sink, options(client_tls()))
        # What is not read when a socket closes makes the system drop what is not sent.
        await until(lambda: bool(sink.frames))
        transport.write(parts)
        transport.write([b""])
        transport.close()
        transport.write([b"not sent"])
        transport.close()
        assert await sink.ended is None
        await asyncio.wait_for(over.wait(), 5)
    assert bytes(seen) == b"".join(parts)


async def test_writes_wait_for_a_peer_that_does_not_read() -> None:
    go_on = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await Peer(reader, writer).shake()
        await go_on.wait()
        await stall(reader)

    sink = Sink()
    async with listening(serve) as port:
        transport = await TcpDial()("localhost", port, sink, options(client_tls()))
        transport.write([memoryview(bytes(2**25))])
        assert transport.unsent > 2**20
        go_on.set()
        await until(lambda: not transport.unsent)
        transport.abort()
        transport.abort()
        assert await sink.ended is None


async def test_what_waits_is_kept_once_as_it_is_encrypted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket_writer, "copies", lambda _: sys.platform != "win32")
    go_on = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await Peer(reader, writer).shake()
        await go_on.wait()
        await stall(reader)

    sink = Sink()
    async with listening(serve) as port:
        transport = await TcpDial()("localhost", port, sink, options(client_tls()))
        block = bytes(2**25)
        tracemalloc.start()
        try:
            transport.write([b"head", block])
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert 2**24 < transport.unsent < peak < 1.1 * 2**25
        go_on.set()
        await until(lambda: not transport.unsent)
        transport.abort()
        assert await sink.ended is None


@pytest.mark.parametrize("is_closed", [False, True])
async def test_a_write_that_fails_ends_the_connection(
    *, is_closed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket_writer, "copies", lambda _: sys.platform != "win32")
    go_on = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer)
        await peer.shake()
        await go_on.wait()
        writer.write(peer.sealed(framed(b"late")))
        writer.transport.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0"
        )
        writer.transport.abort()  # a reset

    sink = Sink()
    async with listening(serve) as port:
        transport = await TcpDial()("localhost", port, sink, options(client_tls()))
        transport.write([bytes(2**25)])
        if is_closed:
            transport.close()
        go_on.set()
        assert isinstance(await sink.ended, ConnectionError)
        assert transport.unsent == 0
        assert not (is_closed and sink.frames)


async def test_reading_can_be_paused() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer)
        await peer.shake()
        writer.write(peer.sealed(framed(b"x" * 30_000) * 100))
        await stall(reader)

    class Pausing(Sink):
        def frame_received(self, frame: Buffer) -> None:
            super().frame_received(frame)
            transport._pause(True)

    sink = Pausing()
    async with listening(serve) as port:
        dialled = await TcpDial()("localhost", port, sink, options(client_tls()))
        assert isinstance(dialled, TcpTransport)
        transport = dialled
        while len(sink.frames) < 100:
            before = len(sink.frames)
            transport._pause(False)
            await until(lambda before=before: len(sink.frames) > before)
        transport.close()
        transport._pause(False)
        assert await sink.ended is None
    assert sink.frames == [b"x" * 30_000] * 100


# ---- a client that the peer refuses ------------------------


def refusing(version: ssl.TLSVersion) -> ssl.SSLContext:
    context = server_tls()
    context.maximum_version = version
    context.verify_mode = ssl.CERT_REQUIRED
    AUTHORITY.configure_trust(context)
    return context


def shown(who: str) -> ssl.SSLContext:
    context = client_tls()
    past = datetime.datetime(2001, 1, 1, tzinfo=datetime.UTC)
    if who == "other":
        OTHER.issue_cert("alice").configure_cert(context)
    elif who == "expired":
        AUTHORITY.issue_cert("alice", not_after=past).configure_cert(context)
    elif who == "right":
        AUTHORITY.issue_cert("alice").configure_cert(context)
    return context


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize(
    ("who", "words"),
    [
        ("none", "wants"),
        ("other", "does not trust the authority"),
        ("expired", "has expired"),
    ],
)
async def test_a_refused_client_certificate(
    version: ssl.TLSVersion, who: str, words: str
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer, refusing(version))
        with pytest.raises(ssl.SSLError):
            await peer.shake()
        writer.write(peer.outgoing.read())  # the alert
        await stall(reader)

    async with listening(serve) as port:
        with pytest.raises(AuthenticationError, match=words) as caught:
            await open_connection(port, options(shown(who)))
    error = caught.value
    assert (error.mechanism, error.broker) == ("TLS", f"localhost:{port}")
    assert "alert" in error.reason
    assert "ssl_keystore_location" in str(error)
    assert not error.retriable


async def test_an_accepted_client_certificate() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer, refusing(ssl.TLSVersion.TLSv1_3))
        await peer.shake()
        writer.write(peer.sealed(framed(b"welcome")))

    sink = Sink()
    async with listening(serve) as port:
        await TcpDial()("localhost", port, sink, options(shown("right")))
        assert await sink.ended is None
    assert sink.frames == [b"welcome"]


async def open_connection(port: int, how: DialOptions) -> None:
    broker = Broker(1, "localhost", port)
    connection = Connection(
        broker,
        ConnectionClass.SHARED,
        NetSettings().identity("broker 1", broker),
        Observer(),
        lambda *_: None,
    )
    await connection.open(TcpDial(), how)


async def test_plaintext_to_a_tls_port_ends_at_once() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"\x15\x03\x03\x00\x02\x02\x50")  # what Java's brokers say
        await stall(reader)

    async with listening(serve) as port:
        with pytest.raises(AuthenticationError, match="the peer speaks TLS") as caught:
            await open_connection(port, options(None))
    assert "security_protocol='SSL'" in str(caught.value)


def test_an_alert_of_any_kind_is_explained() -> None:
    error = ssl.SSLError(1, "[SSL: TLSV1_ALERT_INTERNAL_ERROR] internal")
    error.reason = "TLSV1_ALERT_INTERNAL_ERROR"
    assert "TLS failed there" in explained(error)
    assert explained(ssl.SSLError("odd")) == "('odd',)"


# ---- any cut of the ciphertext ------------------------


class Wire(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = bytearray()
        self.is_closed = False

    def write(self, data: Any) -> None:
        self.sent += data

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_closed = True


def deliver(layer: TlsLayer, data: bytes) -> None:
    while data:
        space = layer.get_buffer(-1)
        size = min(len(space), len(data))
        space[:size] = data[:size]
        layer.buffer_updated(size)
        data = data[size:]


SERVER = server_tls()
CLIENT = client_tls()


@settings(max_examples=40)
@given(
    sizes=st.lists(st.one_of(st.integers(0, 200), st.integers(0, 150_000)), max_size=4),
    cuts=st.lists(st.integers(1, 40_000), min_size=1, max_size=10),
    record=st.sampled_from([100, 5_000, 16_384, 1_000_000]),
)
def test_any_cut_of_the_ciphertext_yields_the_same_frames(
    sizes: list[int], cuts: list[int], record: int
) -> None:
    async def run() -> None:
        sink, wire = Sink(), Wire()
        layer = TlsLayer(TcpTransport(2**24, sink), CLIENT, "localhost", "localhost:1")
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        peer = SERVER.wrap_bio(incoming, outgoing, server_side=True)
        layer.connection_made(wire)
        # The last bounds how many pieces there are.
        turns = cycle([*cuts, 9_000])

        def feed(data: bytes) -> None:
            while data:
                size = next(turns)
                deliver(layer, data[:size])
                data = data[size:]

        while not layer.secured.done():
            incoming.write(bytes(wire.sent))
            wire.sent.clear()
            with suppress(ssl.SSLWantReadError):
                peer.do_handshake()
            feed(outgoing.read())
        incoming.write(bytes(wire.sent))
        peer.do_handshake()
        frames = [bytes([number % 256]) * size for number, size in enumerate(sizes)]
        stream = b"".join(framed(frame) for frame in frames)
        for at in range(0, len(stream), record):
            peer.write(stream[at : at + record])
        feed(outgoing.read())
        assert sink.frames == frames
        assert not wire.is_closed

    asyncio.run(run())
