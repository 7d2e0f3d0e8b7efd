"""The embedded registry over HTTP: logins, faults, restarts, other people's clients."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest
import trustme

from kafkaio.registry import Schema, SchemaReference
from kafkaio.testing import SchemaRegistry
from tests.support.patience import HANGS

INT = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
TEXT = INT.replace('"int"', '"string"')


@pytest.fixture
async def registry() -> AsyncIterator[SchemaRegistry]:
    async with SchemaRegistry() as registry:
        yield registry


@pytest.fixture
async def http(registry: SchemaRegistry) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=registry.url, timeout=HANGS) as client:
        yield client


async def test_it_speaks_http(
    registry: SchemaRegistry, http: httpx.AsyncClient
) -> None:
    body = {"schema": INT}
    reply = await http.post("/subjects/a%2Fb/versions", json=body)
    assert reply.status_code == 200
    assert reply.headers["content-type"] == "application/vnd.schemaregistry.v1+json"
    assert reply.json()["id"] == 1
    assert registry.subjects() == ["a/b"]
    reply = await http.get("/schemas/ids/2", params={"subject": "a"})
    assert reply.status_code == 404
    assert reply.json() == {"error_code": 40403, "message": "Schema 2 not found"}
    first, second = registry.requests
    assert (first.method, first.path) == ("POST", "/subjects/a%2Fb/versions")
    assert (json.loads(first.body), first.status) == (body, 200)
    assert (dict(second.query), second.status) == ({"subject": "a"}, 404)
    assert registry.count("GET /schemas/ids/*") == 1
    assert registry.count("* /subjects/*") == 1


async def test_a_connection_serves_many_requests_and_many_connections_at_once(
    registry: SchemaRegistry, http: httpx.AsyncClient
) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(http.get("/subjects")) for _ in range(50)]
    assert {task.result().json() == [] for task in tasks} == {True}
    assert registry.count("GET /subjects") == 50


async def test_requests_that_come_in_one_piece_and_in_single_bytes(
    registry: SchemaRegistry,
) -> None:
    port = int(registry.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    request = b"GET /subjects HTTP/1.1\r\nHost: a\r\n\r\n"
    writer.write(request * 3)
    for each in range(len(request)):
        writer.write(request[each : each + 1])
        await asyncio.sleep(0)
    for _ in range(4):
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200")
        assert await reader.readexactly(2) == b"[]"
    writer.write(b"nonsense\r\n\r\n")
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 400")
    assert await reader.read() == b""
    writer.close()


@pytest.mark.parametrize("how", ["a huge body", "half a request"])
async def test_a_client_that_is_not_served(
    registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr("kafkaio.testing._registry.http._LARGEST_BODY", 1000)
    port = int(registry.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        b"POST /subjects/a HTTP/1.1\r\nHost: a\r\nContent-Length: 5000\r\n\r\n"
    )
    if how == "half a request":
        writer.write_eof()
        assert (await reader.read()).startswith(b"HTTP/1.1 400")
    else:
        writer.write(bytes(5000))
        assert (await reader.read()).startswith(b"HTTP/1.1 413")
    writer.close()


async def test_a_large_schema(http: httpx.AsyncClient) -> None:
    text = json.dumps({"type": "string", "doc": "x" * 10_000_000})
    reply = await http.post("/subjects/a/versions", json={"schema": text})
    assert reply.status_code == 200
    found = (await http.get("/schemas/ids/1")).json()
    assert json.loads(found["schema"]) == json.loads(text)


async def test_it_is_filled_without_requests(
    registry: SchemaRegistry, http: httpx.AsyncClient
) -> None:
    line = registry.register("line", Schema(INT))
    assert (line.id, line.version, line.subject) == (1, 1, "line")
    order = Schema('["null","R"]', "AVRO", (SchemaReference("R", "line", 1),))
    registry.register("order", order)
    found = (await http.get("/subjects/order/versions/1")).json()
    assert found["references"] == [{"name": "R", "subject": "line", "version": 1}]
    with pytest.raises(ValueError, match="incompatible"):
        registry.register("line", Schema(TEXT))
    registry.set_compatibility("NONE", "line")
    assert registry.register("line", Schema(TEXT)).version == 2
    with pytest.raises(ValueError, match="Invalid compatibility level"):
        registry.set_compatibility("SOME")  # type: ignore[arg-type]


# ---- logins --------------------------------------------------------------------------


async def test_logins() -> None:
    settings: dict[str, Any] = {"users": {"alice": "alice-secret"}, "tokens": ["t0k"]}
    async with SchemaRegistry(**settings) as registry:
        async with httpx.AsyncClient(base_url=registry.url) as client:

            async def status(**how: Any) -> int:
                return (await client.get("/subjects", **how)).status_code

            assert await status() == 401
            assert await status(auth=("alice", "wrong-secret")) == 401
            assert await status(auth=("bob", "alice-secret")) == 401
            assert await status(auth=("alice", "alice-secret")) == 200
            assert await status(headers={"Authorization": "Basic %"}) == 401
            assert await status(headers={"Authorization": "Bearer no"}) == 401
            assert await status(headers={"Authorization": "Bearer t0k"}) == 200
            registry.tokens.clear()
            assert await status(headers={"Authorization": "Bearer t0k"}) == 401
        assert "secret" not in repr(registry.requests)


async def test_tls() -> None:
    authority = trustme.CA()
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(server)
    client = ssl.create_default_context()
    authority.configure_trust(client)
    async with SchemaRegistry(tls=server) as registry:
        assert registry.url.startswith("https://")
        async with httpx.AsyncClient(verify=client) as http:
            assert (await http.get(f"{registry.url}/subjects")).json() == []


# ---- faults --------------------------------------------------------------------------


async def test_a_status(registry: SchemaRegistry, http: httpx.AsyncClient) -> None:
    rule = registry.faults.on(
        "POST *", status=503, code=50005, message="gone", retry_after=2.5, times=2
    )
    for _ in range(2):
        reply = await http.post("/subjects/a/versions", json={"schema": INT})
        assert reply.status_code == 503
        assert reply.headers["retry-after"] == "2.5"
        assert reply.json() == {"error_code": 50005, "message": "gone"}
    assert registry.subjects() == []
    reply = await http.post("/subjects/a/versions", json={"schema": INT})
    assert (reply.status_code, rule.count) == (200, 2)


async def test_requests_hang_until_the_rule_is_removed(
    registry: SchemaRegistry, http: httpx.AsyncClient
) -> None:
    registry.register("a", Schema(INT))
    rule = registry.faults.on("GET /schemas/ids/1", hang=True)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(http.get("/schemas/ids/1"))
        await registry.wait_for("GET /schemas/ids/1", timeout=HANGS)
        assert (await http.get("/subjects")).json() == ["a"]
        assert not waiting.done()
        assert registry.requests[0].status is None
        registry.faults.remove(rule)
    assert waiting.result().json()["schema"] == INT
    assert registry.requests[0].status == 200


async def test_who_gives_up_a_hanging_request_hurts_nobody(
    registry: SchemaRegistry, http: httpx.AsyncClient
) -> None:
    registry.faults.on("GET /subjects", hang=True)
    task = asyncio.ensure_future(http.get("/subjects"))
    await registry.wait_for("GET /subjects", timeout=HANGS)
    task.cancel()
    await asyncio.wait([task])
    await asyncio.sleep(0)
    registry.faults.clear()
    assert (await http.get("/subjects")).json() == []


async def test_a_delay(registry: SchemaRegistry, http: httpx.AsyncClient) -> None:
    registry.faults.on("GET /subjects", delay=0.05)
    loop = asyncio.get_running_loop()
    start = loop.time()
    assert (await http.get("/subjects")).json() == []
    # A timer of the loop may be early by the resolution of its clock.
    assert loop.time() - start > 0.04


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_lost_connection(
    registry: SchemaRegistry, http: httpx.AsyncClient, when: Any
) -> None:
    registry.faults.on("POST *", disconnect=when, times=1)
    with pytest.raises(httpx.TransportError):
        await http.post("/subjects/a/versions", json={"schema": INT})
    assert registry.subjects() == ([] if when == "before" else ["a"])


async def test_a_wrong_body(registry: SchemaRegistry, http: httpx.AsyncClient) -> None:
    registry.faults.on("GET *", body=b"<html>", times=1)
    registry.faults.on("GET *", body=b"{}", status=502)
    reply = await http.get("/subjects")
    assert (reply.status_code, reply.content) == (200, b"<html>")
    reply = await http.get("/subjects")
    assert (reply.status_code, reply.content) == (502, b"{}")


async def test_it_lies_about_ids(
    registry: SchemaRegistry, http: httpx.AsyncClient
) -> None:
    registry.register("a", Schema(INT))
    registry.register("b", Schema(TEXT))
    registry.faults.on("* *", schema_id=2)
    assert (await http.get("/schemas/ids/1")).json()["schema"] == TEXT
    assert (await http.get("/schemas/ids/1/subjects")).json() == ["b"]
    reply = await http.post("/subjects/a/versions", json={"schema": INT})
    assert reply.json()["id"] == 2
    registry.faults.clear()
    assert (await http.get("/schemas/ids/1")).json()["schema"] == INT


async def test_a_share_of_the_requests(
    registry: SchemaRegistry, http: httpx.AsyncClient
) -> None:
    async def statuses() -> list[int]:
        registry.faults.clear()
        registry.faults.on("GET *", status=500, rate=0.5, seed=7)
        return [(await http.get("/subjects")).status_code for _ in range(20)]

    first = await statuses()
    assert set(first) == {200, 500}
    assert await statuses() == first


@pytest.mark.parametrize(
    "make",
    [
        lambda faults: faults.on("/subjects", status=500),
        lambda faults: faults.on("PATCH /subjects", status=500),
        lambda faults: faults.on("GET subjects", status=500),
        lambda faults: faults.on("GET /subjects"),
    ],
)
def test_a_rule_that_can_never_happen(make: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match=r"subjects.: (must be|say how)"):
        make(SchemaRegistry().faults)


# ---- life ----------------------------------------------------------------------------


async def test_what_it_knows_outlives_a_restart_on_the_same_port() -> None:
    registry = SchemaRegistry()
    assert "stopped" in repr(registry)
    with pytest.raises(RuntimeError, match="not been started"):
        _ = registry.url
    async with registry, httpx.AsyncClient() as http:
        url = registry.url
        assert url in repr(registry)
        await http.post(f"{url}/subjects/a/versions", json={"schema": INT})
        await registry.stop()
        with pytest.raises(httpx.TransportError):
            await http.get(f"{url}/subjects")
        await registry.start()
        await registry.start()
        assert registry.url == url
        assert (await http.get(f"{url}/subjects")).json() == ["a"]
        assert (await http.get(f"{url}/schemas/ids/1")).json()["schema"] == INT
    await registry.stop()


async def test_it_closes_connections_and_takes_new_ones(
    registry: SchemaRegistry,
) -> None:
    port = int(registry.url.rpartition(":")[2])
    for _ in range(2):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /subjects HTTP/1.1\r\nHost: a\r\n\r\n")
        await reader.readuntil(b"[]")
        registry.disconnect()
        assert await reader.read() == b""
        writer.close()


async def test_it_waits_for_requests(
    registry: SchemaRegistry, http: httpx.AsyncClient
) -> None:
    with pytest.raises(TimeoutError):
        await registry.wait_for("GET /subjects", timeout=0.001)
    await http.get("/subjects")
    await registry.wait_for("GET /subjects", timeout=HANGS)
    async with asyncio.TaskGroup() as group:
        group.create_task(registry.wait_for("GET *", 3, timeout=HANGS))
        group.create_task(http.get("/subjects"))
        group.create_task(http.get("/subjects"))
