"""Registries that are dead, slow, wrong or malicious; calls that are cancelled."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import socket
import ssl
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
import trustme

from kafkaio.errors import RegistryError, SchemaError
from kafkaio.registry import Registry, Schema
from tests.support.loops import REAL_LOOPS
from tests.support.patience import HANGS
from tests.support.registries import (
    Answer,
    Asked,
    FakeRegistry,
    answer,
    honest,
    refusal,
)

SCHEMA = Schema('{"type": "string"}')
#: Seconds, where the limit is what ends a call.
SHORT = 0.3
BODY = json.dumps({"schema": "x"}).encode()


def raw(body: bytes, headers: str = "", status: str = "200 OK") -> Answer:
    return Answer(raw=f"HTTP/1.1 {status}\r\n{headers}\r\n".encode() + body)


def closed_port() -> int:
    """A port of this machine where nobody listens."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


# ---- what may pass -------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
async def test_a_failure_that_passes(fake: FakeRegistry, status: int) -> None:
    fake.add("orders", SCHEMA.text)
    fake.faults.extend([refusal(status), refusal(status)])
    registry = Registry(fake.url, timeout=HANGS)
    assert await registry.schema(1) == SCHEMA
    assert len(fake.asked) == 3
    assert registry.statistics().retries == 2


@pytest.mark.parametrize(
    "fault",
    [
        None,  # closes the connection
        raw(b"", "Content-Length: 10\r\n"),
        raw(BODY[:5], f"Content-Length: {len(BODY)}\r\n"),
        raw(b'5\r\n{"sch', "Transfer-Encoding: chunked\r\n"),
        raw(b"zzz\r\n", "Transfer-Encoding: chunked\r\n"),
        Answer(raw=b"SSH-2.0-OpenSSH_9.6\r\n"),
        Answer(raw=b"HTTP/1.1 200 OK\r\nbroken header\r\n\r\n"),
    ],
)
async def test_an_answer_that_breaks_off(fake: FakeRegistry, fault: Any) -> None:
    fake.add("orders", SCHEMA.text)
    fake.faults.append(fault)
    assert await Registry(fake.url, timeout=HANGS).schema(1) == SCHEMA
    assert len(fake.asked) == 2


async def test_failures_that_do_not_pass(fake: FakeRegistry) -> None:
    fake.always = refusal(503, 50301, "no leader")
    registry = Registry(fake.url, retries=1, timeout=HANGS)
    with pytest.raises(RegistryError, match="status 503: no leader") as caught:
        await registry.schema(1)
    assert (caught.value.status, caught.value.code) == (503, 50301)
    assert caught.value.retriable
    assert not isinstance(caught.value, SchemaError)
    assert f"{fake.url}/schemas/ids/1" in str(caught.value)
    assert len(fake.asked) == 2
    # Nothing of it is kept: the next call asks again.
    fake.add("orders", SCHEMA.text)
    fake.always = honest
    assert await registry.schema(1) == SCHEMA


async def test_nobody_listens() -> None:
    registry = Registry(f"http://127.0.0.1:{closed_port()}", retries=1)
    with pytest.raises(RegistryError, match="ConnectError") as caught:
        await registry.schema(1)
    assert caught.value.retriable
    assert caught.value.status is None
    # The frames of another library's traceback would show the headers.
    assert caught.value.__cause__ is caught.value.__context__ is None


async def test_a_name_that_is_not_there() -> None:
    registry = Registry("http://no-such-host.invalid", retries=0)
    with pytest.raises(RegistryError) as caught:
        await registry.schema(1)
    assert caught.value.retriable


async def test_a_registry_that_says_nothing(fake: FakeRegistry) -> None:
    fake.always = fake.hang
    began = asyncio.get_running_loop().time()
    with pytest.raises(RegistryError, match=r"no answer within .* attempts") as caught:
        await Registry(fake.url, timeout=SHORT).schema(1)
    assert caught.value.retriable
    # It ends earlier where a pause and another attempt do not fit any more.
    assert asyncio.get_running_loop().time() - began >= SHORT / 2
    # An attempt has a share of the time, so that there is another one.
    assert len(fake.asked) > 1


async def test_an_answer_that_stops_in_the_middle(fake: FakeRegistry) -> None:
    fake.always = Answer(raw=raw(b"{", "Content-Length: 9\r\n").raw, stays_open=True)
    with pytest.raises(RegistryError, match="no answer within") as caught:
        await Registry(fake.url, timeout=SHORT).schema(1)
    assert caught.value.retriable


async def test_a_registry_that_comes_back(
    fake: FakeRegistry,
    caplog: pytest.LogCaptureFixture,
    request: pytest.FixtureRequest,
) -> None:
    refused = asyncio.Event()

    class Waiting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "ConnectError" in record.getMessage():
                refused.set()

    fake.add("orders", SCHEMA.text)
    await fake.stop()
    caplog.set_level(logging.DEBUG, "kafkaio.registry")
    handler = Waiting()
    logging.getLogger("kafkaio.registry").addHandler(handler)
    request.addfinalizer(
        lambda: logging.getLogger("kafkaio.registry").removeHandler(handler)
    )
    registry = Registry(fake.url, timeout=HANGS, retries=1_000)
    task = asyncio.ensure_future(registry.schema(1))
    # It has tried, in vain.
    await refused.wait()
    await fake.start()
    assert await task == SCHEMA


# ---- Retry-After ---------------------------------------------------------------------


async def test_a_pause_that_is_asked_for(fake: FakeRegistry) -> None:
    fake.add("orders", SCHEMA.text)
    fake.faults.append(Answer(429, b"", {"Retry-After": "1"}))
    began = asyncio.get_running_loop().time()
    assert await Registry(fake.url, timeout=HANGS).schema(1) == SCHEMA
    assert asyncio.get_running_loop().time() - began >= 0.9


@pytest.mark.parametrize("text", ["3600", "Fri, 31 Dec 2099 23:59:59 GMT", "9" * 400])
async def test_a_pause_beyond_the_limit_is_not_made(
    fake: FakeRegistry, text: str
) -> None:
    fake.always = Answer(429, b"", {"Retry-After": text})
    with pytest.raises(RegistryError, match="status 429") as caught:
        await Registry(fake.url, timeout=10).schema(1)
    assert caught.value.retriable
    assert len(fake.asked) == 1


@pytest.mark.parametrize(
    "text", ["", "soon", "-5", "Thu, 01 Jan 1970 00:00:00 GMT", "٣", "1e9"]
)
async def test_a_pause_that_cannot_be_read(fake: FakeRegistry, text: str) -> None:
    fake.add("orders", SCHEMA.text)
    header = {"Retry-After": text} if text.isascii() else {}
    fake.faults.append(Answer(503, b"", header))
    assert await Registry(fake.url, timeout=HANGS).schema(1) == SCHEMA


# ---- several addresses ---------------------------------------------------------------


async def test_the_next_address_is_asked_at_once(fake: FakeRegistry) -> None:
    fake.add("orders", SCHEMA.text)
    fake.add("others", SCHEMA.text)
    dead = f"http://127.0.0.1:{closed_port()}"
    registry = Registry(f"{dead}, {fake.url}", timeout=HANGS)
    assert await registry.schema(1) == SCHEMA
    found = registry.statistics()
    assert (found.requests, found.retries) == (2, 1)
    # The one that answered is asked first from now on.
    await registry.versions("orders")
    assert registry.statistics().retries == 1


async def test_an_address_that_fails_is_left_for_the_other(fake: FakeRegistry) -> None:
    fake.always = refusal(500)
    async with FakeRegistry() as other:
        other.add("orders", SCHEMA.text)
        registry = Registry([fake.url, other.url], timeout=HANGS)
        assert await registry.schema(1) == SCHEMA
        assert (len(fake.asked), len(other.asked)) == (1, 1)
        other.always = refusal(500)
        fake.always = honest
        fake.add("orders", SCHEMA.text)
        assert await registry.versions("orders") == [1]
        assert (len(fake.asked), len(other.asked)) == (2, 2)


async def test_a_refusal_is_not_asked_of_another_address(fake: FakeRegistry) -> None:
    async with FakeRegistry() as other:
        with pytest.raises(SchemaError):
            await Registry([fake.url, other.url]).schema(1)
        assert not other.asked


async def test_all_addresses_are_dead() -> None:
    urls = [f"http://127.0.0.1:{closed_port()}" for _ in range(3)]
    registry = Registry(urls, retries=1)
    with pytest.raises(RegistryError):
        await registry.schema(1)
    assert registry.statistics().requests == 6


# ---- what does not pass --------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 401, 403, 405, 501])
async def test_a_refusal_is_final(fake: FakeRegistry, status: int) -> None:
    fake.always = refusal(status, message="because")
    with pytest.raises(RegistryError, match="because") as caught:
        await Registry(fake.url).schema(1)
    assert caught.value.status == status
    assert not caught.value.retriable
    assert len(fake.asked) == 1


async def test_a_redirect_is_not_followed(fake: FakeRegistry) -> None:
    async with FakeRegistry() as other:
        fake.always = Answer(302, b"", {"Location": f"{other.url}/schemas/ids/1"})
        registry = Registry(fake.url, basic_auth=("user", "secret"))
        with pytest.raises(RegistryError, match="redirects to") as caught:
            await registry.schema(1)
        assert not caught.value.retriable
        assert not other.asked


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "not JSON"),
        (b'{"schema": "x"', "not JSON"),
        (b"<html>Welcome</html>", "is this the url of a schema registry"),
        (b"[]", "not a JSON object"),
        (b"[" * 200_000, "nested too deeply|not JSON"),
        (b'{"schema": 5}', "no schema"),
        (b'{"schema": "x", "id": 2}', "another id: 2"),
    ],
)
async def test_an_answer_that_is_wrong(
    fake: FakeRegistry, body: bytes, problem: str
) -> None:
    fake.always = Answer(200, body)
    registry = Registry(fake.url)
    with pytest.raises(RegistryError, match=problem) as caught:
        await registry.schema(1)
    assert not caught.value.retriable
    assert caught.value.status == 200
    assert len(fake.asked) == 1
    assert registry.statistics().errors == 1
    assert registry.known(1) is None


async def test_a_registry_that_answers_for_another_subject(fake: FakeRegistry) -> None:
    fake.add("others", SCHEMA.text)
    fake.always = answer(
        {"subject": "others", "version": 1, "id": 1, "schema": SCHEMA.text}
    )
    registry = Registry(fake.url)
    calls: list[Awaitable[object]] = [
        registry.latest("orders"),
        registry.version("orders", 1),
        registry.lookup("orders", SCHEMA),
        registry.register("orders", SCHEMA),
    ]
    for call in calls:
        with pytest.raises(RegistryError, match="about the subject 'others'"):
            await call
    assert registry.known_id("orders", SCHEMA) is None
    assert registry.known_latest("orders") is None


async def test_an_answer_that_is_too_large(fake: FakeRegistry) -> None:
    large = json.dumps({"schema": "x" * 10_000_000}).encode()
    fake.always = Answer(200, large)
    with pytest.raises(SchemaError, match="max_schema_bytes=4194304") as caught:
        await Registry(fake.url).schema(1)
    assert not caught.value.retriable
    assert len(fake.asked) == 1
    registry = Registry(fake.url, max_schema_bytes=20_000_000)
    assert len((await registry.schema(1)).text) == 10_000_000


async def test_an_answer_without_an_end(fake: FakeRegistry) -> None:
    # The size is not announced, and there is no end.
    fake.always = raw(b"x" * 100_000)
    with pytest.raises(SchemaError, match="more than max_schema_bytes=1000 bytes"):
        await Registry(fake.url, max_schema_bytes=1_000).schema(1)


async def test_an_answer_that_is_compressed(fake: FakeRegistry) -> None:
    fake.always = Answer(200, BODY, {"Content-Encoding": "gzip"})
    with pytest.raises(RegistryError, match="compressed"):
        await Registry(fake.url).schema(1)
    assert fake.asked[0].headers["accept-encoding"] == "identity"


# ---- deletions -----------------------------------------------------------------------


@pytest.mark.parametrize("fault", [None, refusal(500), refusal(504)])
async def test_a_deletion_that_may_have_been_done_is_not_repeated(
    fake: FakeRegistry, fault: Any
) -> None:
    fake.add("orders", SCHEMA.text)
    fake.faults.append(fault)
    with pytest.raises(RegistryError) as caught:
        await Registry(fake.url, timeout=HANGS).delete("orders")
    assert caught.value.retriable
    assert len(fake.asked) == 1


@pytest.mark.parametrize("fault", [refusal(429), refusal(503)])
async def test_a_deletion_that_was_not_done_is_repeated(
    fake: FakeRegistry, fault: Any
) -> None:
    fake.add("orders", SCHEMA.text)
    fake.faults.append(fault)
    assert await Registry(fake.url, timeout=HANGS).delete("orders") == [1]


# ---- callers that share a request ----------------------------------------------------


async def test_all_who_wait_get_the_error(fake: FakeRegistry) -> None:
    fake.always = refusal(404, 40403, "not there")
    registry = Registry(fake.url)
    found = await asyncio.gather(
        *(registry.schema(1) for _ in range(5)), return_exceptions=True
    )
    assert {str(error) for error in found} == {"not there"}
    # Each has one of its own: a raise adds to the traceback of what it raises.
    assert len({id(error) for error in found}) == 5
    assert len(fake.asked) == 1


async def test_one_that_is_cancelled_does_not_end_the_others(
    fake: FakeRegistry,
) -> None:
    fake.add("orders", SCHEMA.text)
    release = asyncio.Event()

    async def wait(asked: Asked) -> Answer:
        del asked
        await release.wait()
        return answer({"schema": SCHEMA.text})

    fake.always = wait
    registry = Registry(fake.url, timeout=HANGS)
    first, second = (asyncio.ensure_future(registry.schema(1)) for _ in range(2))
    await fake.until(lambda: bool(fake.asked))
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    third = asyncio.ensure_future(registry.schema(1))
    release.set()
    assert await second == await third == SCHEMA
    assert len(fake.asked) == 1


async def test_a_request_that_hangs_holds_back_no_other(fake: FakeRegistry) -> None:
    fake.add("orders", SCHEMA.text)
    fake.faults.append(fake.hang)
    registry = Registry(fake.url, timeout=HANGS)
    async with registry:
        hanging = asyncio.ensure_future(registry.schema(1))
        await fake.until(lambda: bool(fake.asked))
        assert await registry.versions("orders") == [1]
        hanging.cancel()
        await asyncio.wait([hanging])


async def test_when_all_are_cancelled_the_request_ends(fake: FakeRegistry) -> None:
    fake.always = fake.hang
    registry = Registry(fake.url, timeout=HANGS)
    tasks = [asyncio.ensure_future(registry.schema(1)) for _ in range(3)]
    await fake.until(lambda: bool(fake.asked))
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert all(task.cancelled() for task in tasks)
    assert not registry.statistics().in_flight
    assert not [t for t in asyncio.all_tasks() if "registry" in t.get_name()]
    # Who comes afterwards asks anew.
    fake.add("orders", SCHEMA.text)
    fake.always = honest
    assert await registry.schema(1) == SCHEMA


async def test_a_request_that_something_else_cancels(fake: FakeRegistry) -> None:
    fake.always = fake.hang
    registry = Registry(fake.url, timeout=HANGS)
    task = asyncio.ensure_future(registry.schema(1))
    await fake.until(lambda: bool(fake.asked))
    for each in asyncio.all_tasks():
        if "schema registry" in each.get_name():
            each.cancel()
    with pytest.raises(RegistryError, match="something else") as caught:
        await task
    assert caught.value.retriable


# ---- cancelled at every await --------------------------------------------------------


def contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    authority = trustme.CA()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(server)
    client = ssl.create_default_context()
    authority.configure_trust(client)
    return server, client


async def steps(task: asyncio.Future[Any], count: int) -> bool:
    """Let the loop run so many rounds; return whether the task has ended."""
    for _ in range(count):
        if task.done():
            break
        await asyncio.sleep(0)
    return task.done()


@pytest.mark.parametrize("loop", REAL_LOOPS.values(), ids=REAL_LOOPS)
@pytest.mark.parametrize(
    ("is_encrypted", "twice"), [(False, False), (True, False), (True, True)]
)
def test_cancelled_at_every_await(
    monkeypatch: pytest.MonkeyPatch,
    loop: Callable[[], asyncio.AbstractEventLoop],
    *,
    is_encrypted: bool,
    twice: bool,
) -> None:
    left: list[str] = []
    monkeypatch.setattr(
        sys, "unraisablehook", lambda found: left.append(repr(found.exc_value))
    )
    server, client = contexts() if is_encrypted else (None, None)

    async def one(fake: FakeRegistry, count: int) -> bool:
        registry = Registry(fake.url, tls=client, timeout=HANGS)
        task = asyncio.ensure_future(registry.schema(1))
        has_ended = await steps(task, count)
        task.cancel()
        if twice:
            await asyncio.sleep(0)
            task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        del task
        gc.collect()
        return has_ended

    async def main() -> None:
        # A peer that breaks off a handshake is none of its errors.
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        async with FakeRegistry(context=server) as fake:
            fake.add("orders", SCHEMA.text)
            count = ended = 0
            until = time.monotonic() + HANGS
            while ended < 3 and time.monotonic() < until:
                ended += await one(fake, count)
                count += 1
            assert ended == 3
            assert count > 10

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(main())
    gc.collect()
    assert not left


async def test_a_time_limit_of_the_caller(fake: FakeRegistry) -> None:
    fake.always = fake.hang
    registry = Registry(fake.url, timeout=HANGS)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(SHORT):
            await registry.schema(1)
    assert not registry.statistics().in_flight


# ---- whatever comes ------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda r: r.schema(1),
        lambda r: r.register("orders", SCHEMA),
        lambda r: r.lookup("orders", SCHEMA),
        lambda r: r.latest("orders"),
        lambda r: r.version("orders", 1),
        lambda r: r.versions("orders"),
        lambda r: r.subjects(),
        lambda r: r.check("orders", SCHEMA),
        lambda r: r.delete("orders"),
        lambda r: r.compatibility(),
        lambda r: r.set_compatibility("FULL"),
    ],
)
@pytest.mark.parametrize(
    "body",
    [b"", b"null", b"{}", b'"x"', b"[{}]", b'{"id": "1"}', b"\xff", b"[1, null]"],
)
async def test_nonsense_is_an_error_of_the_registry(
    fake: FakeRegistry, call: Callable[[Registry], Awaitable[Any]], body: bytes
) -> None:
    fake.always = Answer(200, body)
    if body in {b"null", b"{}", b'"x"', b"[{}]", b'{"id": "1"}', b"[1, null]"}:
        with suppress(RegistryError):
            await call(Registry(fake.url))
    else:
        with pytest.raises(RegistryError):
            await call(Registry(fake.url))
    assert len(fake.asked) == 1
