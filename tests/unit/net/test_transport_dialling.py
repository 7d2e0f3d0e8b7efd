"""Names and addresses: who is asked, who is tried, and what is waited for."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import pytest
import trustme

from kafkaio._net import resolver
from kafkaio._net.dialling import TcpDial
from kafkaio._net.race import STAGGER, Race
from kafkaio._net.resolver import MOST_THREADS, Resolver, interleaved
from kafkaio._net.transport import DialOptions, TransportPort
from kafkaio.errors import AuthenticationError, BrokerNotAvailable
from kafkaio.protocol._message import Buffer
from tests.support.patience import HANGS
from tests.support.sockets import black_hole, refusing, silent

V4, V6 = socket.AF_INET, socket.AF_INET6


def options(**changes: object) -> DialOptions:
    return DialOptions(**{"timeout": 20.0, "max_frame_size": 2**20, **changes})  # type: ignore[arg-type]


class Sink:
    def __init__(self) -> None:
        self.ended = asyncio.Event()

    def frame_received(self, frame: Buffer) -> None:
        """Nothing is expected."""

    def connection_lost(self, cause: BaseException | None) -> None:
        self.ended.set()


@asynccontextmanager
async def listening(context: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.read()
        except OSError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        for _ in range(20):  # let it see what its clients did last
            await asyncio.sleep(0)
        server.close()
        await server.wait_closed()
        for _ in range(20):
            await asyncio.sleep(0)


def found(*ports: int) -> list[tuple[Any, ...]]:
    """What the system answers for a name with these addresses."""
    return [(V4, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)) for port in ports]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[], Any]]:
    """What names stand for; each is asked for in a thread."""
    table: dict[str, Callable[[], Any]] = {}

    def look_up(host: str, port: int, *_: object, **__: object) -> Any:
        return table[host]()

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return table


async def hang_up(transport: TransportPort, sink: Sink) -> None:
    transport.close()
    await sink.ended.wait()


# ---- names -----------------------------------------------------------------------


async def test_the_applications_threads_may_all_be_busy() -> None:
    loop, release = asyncio.get_running_loop(), threading.Event()
    loop.set_default_executor(ThreadPoolExecutor(1))
    busy = loop.run_in_executor(None, release.wait)
    try:
        async with listening() as port:
            sink = Sink()
            await hang_up(await TcpDial()("localhost", port, sink, options()), sink)
    finally:
        release.set()
        await busy


async def test_callers_share_a_look_up(names: dict[str, Callable[[], Any]]) -> None:
    release, count = threading.Event(), 0

    def look_up() -> Any:
        nonlocal count
        count += 1
        release.wait()
        return found(9092)

    names["kafka.example"] = look_up
    asked = Resolver()
    callers = [
        asyncio.create_task(asked.resolve("kafka.example", 9092, 20)) for _ in range(20)
    ]
    await asyncio.sleep(0)
    callers[0].cancel()
    release.set()
    results = await asyncio.gather(*callers, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError)
    assert results[1:] == [[(V4, ("127.0.0.1", 9092))]] * 19
    assert count == 1


async def test_threads_are_bounded_and_come_back(
    names: dict[str, Callable[[], Any]],
) -> None:
    release, asked = threading.Event(), Resolver()

    def hang() -> Any:
        release.wait()
        return found(9092)

    hosts = [f"{number}.example" for number in range(3 * MOST_THREADS)]
    names.update(dict.fromkeys(hosts, hang))
    names["late.example"] = lambda: found(1)
    results = await asyncio.gather(
        *(asked.resolve(host, 9092, 0.05) for host in hosts), return_exceptions=True
    )
    assert {type(each) for each in results} == {TimeoutError}
    hanging = [each for each in threading.enumerate() if ".example" in each.name]
    assert len(hanging) == MOST_THREADS
    assert all(each.daemon for each in hanging)
    # Nobody waits for the others any more: they are not looked up.
    late = asyncio.create_task(asked.resolve("late.example", 1, 20))
    await asyncio.sleep(0)
    release.set()
    assert await late == [(V4, ("127.0.0.1", 1))]
    for each in hanging:
        each.join()


async def test_the_last_addresses_stand_in_for_a_slow_answer(
    names: dict[str, Callable[[], Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolver, "SLOW", 0.02)
    release, asked = threading.Event(), Resolver()
    names["kafka.example"] = lambda: found(1)
    assert await asked.resolve("kafka.example", 9092, 20) == [(V4, ("127.0.0.1", 1))]

    def slow() -> Any:
        release.wait()
        return found(2)

    names["kafka.example"] = slow
    assert await asked.resolve("kafka.example", 9092, 20) == [(V4, ("127.0.0.1", 1))]
    monkeypatch.setattr(resolver, "SLOW", 20.0)
    late = asyncio.create_task(asked.resolve("kafka.example", 9092, 20))
    await asyncio.sleep(0)
    release.set()
    assert await late == [(V4, ("127.0.0.1", 2))]


def fail(code: int) -> Callable[[], Any]:
    def look_up() -> Any:
        raise socket.gaierror(code, "failed")

    return look_up


async def test_the_last_addresses_stand_in_for_a_name_server_that_fails(
    names: dict[str, Callable[[], Any]],
) -> None:
    asked = Resolver()
    names["kafka.example"] = fail(socket.EAI_AGAIN)
    with pytest.raises(socket.gaierror):
        await asked.resolve("kafka.example", 9092, 20)
    names["kafka.example"] = lambda: found(1)
    await asked.resolve("kafka.example", 9092, 20)
    names["kafka.example"] = fail(socket.EAI_AGAIN)
    assert await asked.resolve("kafka.example", 9092, 20) == [(V4, ("127.0.0.1", 1))]
    # That there is no such name is an answer: its addresses may be another's by now.
    for code in (socket.EAI_NONAME, socket.EAI_AGAIN):
        names["kafka.example"] = fail(code)
        with pytest.raises(socket.gaierror):
            await asked.resolve("kafka.example", 9092, 20)


async def test_a_look_up_that_hangs_is_asked_again(
    names: dict[str, Callable[[], Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolver, "STALE", 0.0)
    release, asked = threading.Event(), Resolver()
    names["kafka.example"] = release.wait
    with pytest.raises(TimeoutError):
        await asked.resolve("kafka.example", 9092, 0.02)
    names["kafka.example"] = lambda: found(3)
    assert await asked.resolve("kafka.example", 9092, 20) == [(V4, ("127.0.0.1", 3))]
    release.set()


async def test_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    for _ in range(2):
        with pytest.raises(BrokerNotAvailable, match="resolve name: can't start"):
            await TcpDial()("kafka.example", 9092, Sink(), options())


async def test_a_name_server_that_hangs_is_waited_for_within_the_limit(
    names: dict[str, Callable[[], Any]],
) -> None:
    release = threading.Event()
    names["kafka.example"] = release.wait
    with pytest.raises(
        BrokerNotAvailable,
        match=r"kafka\.example:9092: resolve name: no answer within 0\.\d+ s",
    ):
        await TcpDial()("kafka.example", 9092, Sink(), options(timeout=0.1))
    release.set()


HANGING = f"""
import asyncio, socket, time
socket.getaddrinfo = lambda *_, **__: time.sleep(2 * {HANGS})
import kafkaio
async def main():
    client = kafkaio.Client("kafka.example:1", default_api_timeout_ms=300)
    try:
        await client.start()
    except kafkaio.KafkaError as error:
        print(type(error).__name__)
    await client.close()
asyncio.run(main())
"""


def test_a_process_ends_although_its_name_server_hangs() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HANGING], capture_output=True, timeout=HANGS, check=True
    )
    assert done.stdout.strip()


@pytest.mark.parametrize(
    ("host", "port"), [("a\0b.example", 9092), ("a..b", 9092), ("127.0.0.1", 70_000)]
)
async def test_what_is_no_address(host: str, port: int) -> None:
    with pytest.raises(BrokerNotAvailable):
        await TcpDial()(host, port, Sink(), options())


def test_families_take_turns() -> None:
    def address(family: socket.AddressFamily, number: int) -> Any:
        return family, (str(number), 1)

    given = [address(V6, 1), address(V6, 2), address(V6, 3), address(V4, 4)]
    assert interleaved(given) == [given[0], given[3], given[1], given[2]]
    assert interleaved(given[:2]) == given[:2]
    assert interleaved([]) == []


# ---- addresses -------------------------------------------------------------------


async def test_a_dead_first_address_costs_a_moment(
    names: dict[str, Callable[[], Any]],
) -> None:
    sink = Sink()
    async with listening() as port:
        with black_hole() as dead:
            names["kafka.example"] = lambda: found(dead, port)
            began = time.monotonic()
            limit = options(timeout=HANGS)
            transport = await TcpDial()("kafka.example", 9092, sink, limit)
            taken = time.monotonic() - began
        await hang_up(transport, sink)
    assert STAGGER <= taken + 0.01 < HANGS / 4  # it took a half of the limit


async def test_addresses_that_refuse_cost_nothing(
    names: dict[str, Callable[[], Any]],
) -> None:
    sink = Sink()
    async with listening() as port:
        dead = [refusing() for _ in range(40)]
        names["kafka.example"] = lambda: found(*dead, port)
        began = time.monotonic()
        await hang_up(await TcpDial()("kafka.example", 9092, sink, options()), sink)
        assert time.monotonic() - began < 40 * STAGGER / 2


async def test_ten_dead_addresses_take_no_longer_than_one(
    names: dict[str, Callable[[], Any]],
) -> None:
    with ExitStack() as stack:
        dead = [stack.enter_context(black_hole()) for _ in range(10)]
        names["kafka.example"] = lambda: found(*dead)
        began = time.monotonic()
        with pytest.raises(BrokerNotAvailable) as caught:
            await TcpDial()("kafka.example", 9092, Sink(), options(timeout=0.3))
        assert time.monotonic() - began < 10
    text = str(caught.value)
    assert "127.0.0.1: connect: no answer within 0." in text
    assert text.endswith("; and 2 more")


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


async def test_a_handshake_that_hangs_leaves_time_to_the_others(
    authority: trustme.CA, names: dict[str, Callable[[], Any]]
) -> None:
    sink = Sink()
    async with listening(server_tls(authority, "kafka.example")) as port:
        with silent() as first, silent() as second:
            names["kafka.example"] = lambda: found(first, second, port)
            how = options(timeout=1.5, ssl_context=client_tls(authority))
            transport = await TcpDial()("kafka.example", 9092, sink, how)
        await hang_up(transport, sink)


async def test_a_handshake_that_hangs_is_waited_for_once(
    authority: trustme.CA, names: dict[str, Callable[[], Any]]
) -> None:
    dial, how = TcpDial(), options(timeout=0.8, ssl_context=client_tls(authority))
    async with listening(server_tls(authority, "kafka.example")) as port:
        with socket.create_server(("127.0.0.1", 0)) as hangs:
            hangs.setblocking(False)
            names["kafka.example"] = lambda: found(hangs.getsockname()[1], port)
            sinks = [Sink() for _ in range(3)]
            made = [await dial("kafka.example", 9092, sink, how) for sink in sinks]
            hangs.accept()[0].close()
            with pytest.raises(BlockingIOError):  # the others went by
                hangs.accept()
        for transport, sink in zip(made, sinks, strict=True):
            await hang_up(transport, sink)


async def test_all_handshakes_hang(
    authority: trustme.CA, names: dict[str, Callable[[], Any]]
) -> None:
    with silent() as first, silent() as second:
        names["kafka.example"] = lambda: found(first, second)
        how = options(timeout=0.3, ssl_context=client_tls(authority))
        began = time.monotonic()
        with pytest.raises(BrokerNotAvailable) as caught:
            await TcpDial()("kafka.example", 9092, Sink(), how)
        assert time.monotonic() - began < 10
    assert str(caught.value).count("TLS handshake: no answer within") == 2


async def test_a_bad_certificate_beside_a_good_one(
    authority: trustme.CA, names: dict[str, Callable[[], Any]]
) -> None:
    sink = Sink()
    async with (
        listening(server_tls(authority, "other.example")) as bad,
        listening(server_tls(authority, "kafka.example")) as good,
    ):
        how = options(ssl_context=client_tls(authority))
        names["kafka.example"] = lambda: found(bad, good)
        await hang_up(await TcpDial()("kafka.example", 9092, sink, how), sink)
        names["kafka.example"] = lambda: found(bad)
        with pytest.raises(AuthenticationError, match="Hostname mismatch"):
            await TcpDial()("kafka.example", 9092, Sink(), how)


@pytest.mark.parametrize("host", ["broker.ns.svc.cluster.local.", "localhost."])
async def test_a_dot_at_the_end_is_for_the_name_server_alone(
    authority: trustme.CA, names: dict[str, Callable[[], Any]], host: str
) -> None:
    asked: list[str | None] = []
    context = server_tls(authority, host.removesuffix("."))
    context.sni_callback = lambda _, name, __: asked.append(name)
    sink = Sink()
    async with listening(context) as port:
        names[host] = lambda: found(port)  # with its dot
        how = options(ssl_context=client_tls(authority))
        await hang_up(await TcpDial()(host, port, sink, how), sink)
    assert asked == [host.removesuffix(".")]


async def test_a_dial_that_is_cancelled_anywhere_leaves_nothing_open(
    authority: trustme.CA,
    names: dict[str, Callable[[], Any]],
    recwarn: pytest.WarningsRecorder,
) -> None:
    async with listening(server_tls(authority, "kafka.example")) as port:
        dead = refusing()
        names["kafka.example"] = lambda: found(dead, port, port)
        how = options(ssl_context=client_tls(authority))
        steps = 0
        while True:
            sink = Sink()
            task = asyncio.create_task(TcpDial()("kafka.example", 9092, sink, how))
            for _ in range(steps):
                await asyncio.sleep(0.0002)
            if task.done():
                break
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled():  # it was done before the cancellation came
                await hang_up(task.result(), sink)
            steps += 1
        await hang_up(task.result(), sink)
    gc.collect()
    assert not [each for each in recwarn if each.category is ResourceWarning]


async def test_of_two_that_succeed_at_once_one_is_closed() -> None:
    socks = [socket.socket(), socket.socket()]
    ready = asyncio.Event()

    async def connect(sock: socket.socket) -> socket.socket:
        await ready.wait()
        return sock

    race = Race([lambda: connect(socks[0]), lambda: connect(socks[1])])
    loop = asyncio.get_running_loop()
    running = asyncio.create_task(race.run(loop.time() + 20))
    await asyncio.sleep(1.5 * STAGGER)
    ready.set()
    won = await running
    assert won is not None
    assert race.winner is not None
    assert won is socks[race.winner]
    assert [sock.fileno() >= 0 for sock in socks].count(True) == 1
    won.close()


# ---- socket options --------------------------------------------------------------

#: Seconds without news, between probes, and how many; Linux and macOS name the first
#: one differently.
PROBES = {
    name: value
    for name, value in {
        "TCP_KEEPIDLE": 60,
        "TCP_KEEPALIVE": 60,
        "TCP_KEEPINTVL": 10,
        "TCP_KEEPCNT": 3,
        "TCP_USER_TIMEOUT": 45_000,
    }.items()
    if hasattr(socket, name)
}


@pytest.mark.parametrize("has_tls", [False, True], ids=["plain", "tls"])
async def test_dead_connections_are_probed(
    authority: trustme.CA, has_tls: bool
) -> None:
    sink, context = Sink(), server_tls(authority, "localhost") if has_tls else None
    async with listening(context) as port:
        ours = client_tls(authority) if has_tls else None
        how = options(ssl_context=ours, user_timeout=45.0)
        transport = await TcpDial()("localhost", port, sink, how)
        sock = transport._transport.get_extra_info("socket")  # type: ignore[attr-defined]
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert PROBES
        assert {
            name: sock.getsockopt(socket.IPPROTO_TCP, getattr(socket, name))
            for name in PROBES
        } == PROBES
        await hang_up(transport, sink)


async def test_a_system_without_these_options(monkeypatch: pytest.MonkeyPatch) -> None:
    sink = Sink()
    for name in PROBES:
        monkeypatch.setattr(socket, name, 10_000)  # Linux refuses it
    async with listening() as port:
        await hang_up(await TcpDial()("127.0.0.1", port, sink, options()), sink)
    for name in PROBES:
        monkeypatch.delattr(socket, name)
    sink = Sink()
    async with listening() as port:
        await hang_up(await TcpDial()("127.0.0.1", port, sink, options()), sink)
