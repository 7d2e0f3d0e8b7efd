"""`Registry` over HTTP: each call, what it asks, and what it keeps."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import math
import pickle
import threading
from collections.abc import Callable, Coroutine
from typing import Any
from uuid import UUID

import anyio
import pytest

from kafkaio.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ConfigurationError,
    KafkaError,
    RegistryError,
    SchemaError,
    UsageError,
)
from kafkaio.registry import (
    Compatibility,
    RegisteredSchema,
    Registry,
    Schema,
    SchemaReference,
)
from tests.support.patience import HANGS
from tests.support.registries import FakeRegistry, answer, refusal

SCHEMA = Schema('{"type": "string"}')
OTHER = Schema('{"type": "int"}')


def paths(fake: FakeRegistry) -> list[str]:
    return [f"{asked.method} {asked.path}" for asked in fake.asked]


# ---- schemas by id -------------------------------------------------------------------


async def test_a_schema_is_asked_for_once(fake: FakeRegistry) -> None:
    number = fake.add("orders", SCHEMA.text)
    registry = Registry(fake.url)
    assert registry.known(number) is None
    assert await registry.schema(number) == SCHEMA
    assert await registry.schema(number) == SCHEMA
    assert registry.known(number) == SCHEMA
    assert paths(fake) == [f"GET /schemas/ids/{number}"]


async def test_a_thousand_tasks_ask_once(fake: FakeRegistry) -> None:
    number = fake.add("orders", SCHEMA.text)
    registry = Registry(fake.url)
    async with asyncio.timeout(HANGS), asyncio.TaskGroup() as group:
        tasks = [group.create_task(registry.schema(number)) for _ in range(1_000)]
    assert {task.result() for task in tasks} == {SCHEMA}
    assert len(fake.asked) == 1
    assert registry.statistics().requests == 1


async def test_an_id_that_is_not_there_is_asked_for_once(fake: FakeRegistry) -> None:
    registry = Registry(fake.url)
    for _ in range(3):
        with pytest.raises(SchemaError, match="Schema 5 not found") as caught:
            await registry.schema(5)
        assert (caught.value.status, caught.value.code) == (404, 40403)
        assert not caught.value.retriable
    assert len(fake.asked) == 1
    assert registry.statistics().unknown == 1


async def test_an_id_that_is_not_there_may_come(fake: FakeRegistry) -> None:
    registry = Registry(fake.url, unknown_ttl=0)
    with pytest.raises(SchemaError):
        await registry.schema(1)
    fake.add("orders", SCHEMA.text)
    assert await registry.schema(1) == SCHEMA


async def test_a_registration_makes_an_id_known(fake: FakeRegistry) -> None:
    registry = Registry(fake.url, unknown_ttl=math.inf)
    with pytest.raises(SchemaError):
        await registry.schema(1)
    found = await registry.register("orders", SCHEMA)
    assert found.id == 1
    assert registry.statistics().unknown == 0
    assert await registry.schema(1) == SCHEMA


@pytest.mark.parametrize("number", [-1, 2**31])
async def test_a_number_that_is_no_id_is_not_asked_for(
    fake: FakeRegistry, number: int
) -> None:
    with pytest.raises(SchemaError, match="is not the id"):
        await Registry(fake.url).schema(number)
    assert not fake.asked


async def test_a_schema_of_another_context(fake: FakeRegistry) -> None:
    fake.add("orders", SCHEMA.text)
    registry = Registry(fake.url)
    subject = ":.staging:orders"
    assert await registry.schema(1, subject=subject) == SCHEMA
    assert fake.asked[-1].query == {"subject": subject}
    # An id means something else in each context.
    assert registry.known(1) is None
    await registry.schema(1, subject=subject)
    assert len(fake.asked) == 1


async def test_a_schema_by_its_guid() -> None:
    async with FakeRegistry(has_guids=True) as fake:
        guid = fake.guid(fake.add("orders", SCHEMA.text))
        registry = Registry(fake.url)
        assert await registry.schema_by_guid(guid) == SCHEMA
        assert registry.known(guid) == SCHEMA
        assert await registry.schema_by_guid(guid) == SCHEMA
        assert len(fake.asked) == 1
        with pytest.raises(SchemaError):
            await registry.schema_by_guid(UUID(int=1))


async def test_a_registry_without_guids(fake: FakeRegistry) -> None:
    with pytest.raises(RegistryError, match="does this registry have") as caught:
        await Registry(fake.url).schema_by_guid(UUID(int=1))
    # It says nothing about this GUID, so that is not taken for unknown.
    assert not isinstance(caught.value, SchemaError)


# ---- registering and looking up ------------------------------------------------------


async def test_registering(fake: FakeRegistry) -> None:
    registry = Registry(fake.url)
    found = await registry.register("orders", SCHEMA)
    assert found == RegisteredSchema("orders", 1, 1, SCHEMA)
    # The id alone is the answer, so the version is asked for.
    assert paths(fake) == ["POST /subjects/orders/versions", "POST /subjects/orders"]
    assert fake.asked[0].json == {"schema": SCHEMA.text}
    assert fake.asked[0].headers["content-type"] == (
        "application/vnd.schemaregistry.v1+json"
    )
    assert registry.known(1) == SCHEMA
    assert registry.known_id("orders", Schema(SCHEMA.text)) == found
    assert registry.known_id("orders", OTHER) is None
    assert registry.known_id("others", SCHEMA) is None
    assert await registry.register("orders", Schema(SCHEMA.text)) == found
    assert await registry.lookup("orders", SCHEMA) == found
    assert await registry.prepare("orders", SCHEMA) == found
    assert len(fake.asked) == 2


async def test_a_registry_that_answers_with_everything() -> None:
    async with FakeRegistry(has_guids=True) as fake:
        registry = Registry(fake.url)
        found = await registry.register("orders", SCHEMA)
        assert found.guid == fake.guid(1)
        assert registry.known(fake.guid(1)) == SCHEMA
        assert len(fake.asked) == 1


async def test_a_thousand_tasks_register_once(fake: FakeRegistry) -> None:
    registry = Registry(fake.url)
    async with asyncio.timeout(HANGS), asyncio.TaskGroup() as group:
        for _ in range(1_000):
            group.create_task(registry.prepare("orders", Schema(SCHEMA.text)))
    assert len(fake.asked) == 2


async def test_what_a_request_says_of_a_schema(fake: FakeRegistry) -> None:
    reference = SchemaReference("other.proto", "other", 3)
    schema = Schema("message A {}", "PROTOBUF", (reference,))
    found = await Registry(fake.url).register("orders", schema, normalize=True)
    assert fake.asked[0].json == {
        "schema": schema.text,
        "schemaType": "PROTOBUF",
        "references": [{"name": "other.proto", "subject": "other", "version": 3}],
    }
    assert [asked.query for asked in fake.asked] == [{"normalize": "true"}] * 2
    assert found.schema == schema


async def test_a_login_that_may_register_and_not_read(fake: FakeRegistry) -> None:
    fake.faults.extend([answer({"id": 12}), refusal(403)])
    found = await Registry(fake.url).register("orders", SCHEMA)
    assert (found.id, found.version) == (12, 0)


async def test_two_ids_for_one_schema(fake: FakeRegistry) -> None:
    fake.faults.append(answer({"id": 12}))
    fake.add("orders", SCHEMA.text)
    registry = Registry(fake.url)
    with pytest.raises(RegistryError, match="has the id 1, and had 12"):
        await registry.register("orders", SCHEMA)
    assert registry.known_id("orders", SCHEMA) is None


async def test_looking_up(fake: FakeRegistry) -> None:
    registry = Registry(fake.url)
    with pytest.raises(SchemaError, match="Subject 'orders' not found") as caught:
        await registry.lookup("orders", SCHEMA)
    assert (caught.value.subject, caught.value.code) == ("orders", 40401)
    fake.add("orders", SCHEMA.text)
    with pytest.raises(SchemaError) as caught:
        await registry.prepare("orders", OTHER, register=False)
    assert caught.value.code == 40403
    found = await registry.prepare("orders", SCHEMA, register=False)
    assert found == RegisteredSchema("orders", 1, 1, SCHEMA)
    assert len(fake.subjects["orders"]) == 1


@pytest.mark.parametrize("status", [409, 422])
async def test_a_schema_that_is_refused(fake: FakeRegistry, status: int) -> None:
    fake.always = refusal(status, message="type does not match")
    registry = Registry(fake.url)
    with pytest.raises(SchemaError, match="subject 'orders': type does not") as caught:
        await registry.prepare("orders", SCHEMA)
    assert caught.value.reason == "type does not match"
    assert caught.value.status == status
    assert len(fake.asked) == 1
    fake.always = refusal(409, message="again")
    # A refusal is not kept: the level of compatibility may change.
    with pytest.raises(SchemaError, match="again"):
        await registry.prepare("orders", SCHEMA)


@pytest.mark.parametrize(
    ("subject", "path"),
    [
        ("a/b", "a%2Fb"),
        ("größe ☃", "gr%C3%B6%C3%9Fe%20%E2%98%83"),
        ("a?b#c%2F", "a%3Fb%23c%252F"),
        (":.ctx:orders", "%3A.ctx%3Aorders"),
        (".", "%2E"),
        ("..", "%2E%2E"),
        ("com.example.Order", "com.example.Order"),
    ],
)
async def test_every_subject_is_one_part_of_the_path(
    fake: FakeRegistry, subject: str, path: str
) -> None:
    registry = Registry(f"{fake.url}/apis/ccompat/v7/")
    fake.always = answer([1])
    assert await registry.versions(subject) == [1]
    assert fake.asked[0].target == f"/apis/ccompat/v7/subjects/{path}/versions"


# ---- subjects ------------------------------------------------------------------------


async def test_the_latest_version(fake: FakeRegistry) -> None:
    registry = Registry(fake.url, latest_ttl=math.inf)
    assert registry.known_latest("orders") is None
    fake.add("orders", SCHEMA.text)
    found = await registry.latest("orders")
    assert found == RegisteredSchema("orders", 1, 1, SCHEMA)
    assert registry.known_latest("orders") == found
    fake.add("orders", OTHER.text)
    assert await registry.latest("orders") == found
    assert len(fake.asked) == 1
    # A registration of one's own is seen at once.
    await registry.register("orders", Schema('"long"'))
    assert (await registry.latest("orders")).version == 3


async def test_the_latest_version_each_time(fake: FakeRegistry) -> None:
    registry = Registry(fake.url, latest_ttl=0)
    fake.add("orders", SCHEMA.text)
    assert (await registry.latest("orders")).version == 1
    fake.add("orders", OTHER.text)
    assert (await registry.latest("orders")).version == 2


async def test_versions(fake: FakeRegistry) -> None:
    registry = Registry(fake.url)
    fake.add("orders", SCHEMA.text)
    fake.add("orders", OTHER.text)
    assert await registry.versions("orders") == [1, 2]
    found = await registry.version("orders", 2)
    assert found == RegisteredSchema("orders", 2, 2, OTHER)
    assert await registry.version("orders", 2) == found
    assert registry.known(2) == OTHER
    assert paths(fake).count("GET /subjects/orders/versions/2") == 1
    with pytest.raises(SchemaError) as caught:
        await registry.version("orders", 3)
    assert caught.value.code == 40402
    await registry.versions("orders", deleted=True)
    assert fake.asked[-1].query == {"deleted": "true"}


async def test_subjects(fake: FakeRegistry) -> None:
    registry = Registry(fake.url)
    fake.add("orders-key", SCHEMA.text)
    fake.add("payments", SCHEMA.text)
    assert await registry.subjects() == ["orders-key", "payments"]
    assert not fake.asked[-1].query
    # Also where the registry does not know the parameter.
    assert await registry.subjects("pay", deleted=True) == ["payments"]
    assert fake.asked[-1].query == {"subjectPrefix": "pay", "deleted": "true"}
    assert await registry.subjects(":*:") == ["orders-key", "payments"]


async def test_checking(fake: FakeRegistry) -> None:
    registry = Registry(fake.url)
    with pytest.raises(SchemaError) as caught:
        await registry.check("orders", SCHEMA)
    assert caught.value.code == 40401
    fake.add("orders", SCHEMA.text)
    assert await registry.check("orders", OTHER) == Compatibility(True)
    assert fake.asked[-1].path == "/compatibility/subjects/orders/versions/latest"
    assert fake.asked[-1].query == {"verbose": "true"}
    fake.faults.append(answer({"is_compatible": False, "messages": ["because"]}))
    found = await registry.check("orders", OTHER, 1)
    assert found == Compatibility(False, ("because",))
    assert fake.asked[-1].path == "/compatibility/subjects/orders/versions/1"


async def test_levels_of_compatibility(fake: FakeRegistry) -> None:
    registry = Registry(fake.url)
    assert await registry.compatibility() == "BACKWARD"
    await registry.set_compatibility("FULL")
    assert await registry.compatibility("orders") == "FULL"
    assert fake.asked[-1].query == {"defaultToGlobal": "true"}
    await registry.set_compatibility("NONE", "orders")
    assert await registry.compatibility("orders") == "NONE"
    assert await registry.compatibility() == "FULL"
    with pytest.raises(ArgumentValueError, match="FULL_TRANSITIVE"):
        await registry.set_compatibility("full")


async def test_deleting_forgets(fake: FakeRegistry) -> None:
    registry = Registry(fake.url)
    await registry.register("orders", SCHEMA)
    await registry.register("others", SCHEMA)
    await registry.register("orders", OTHER)
    await registry.latest("orders")
    assert registry.known_id("orders", SCHEMA) is not None
    assert await registry.delete("orders", 1) == [1]
    assert registry.known_id("orders", SCHEMA) is None
    assert registry.known_latest("orders") is None
    assert registry.known_id("others", SCHEMA) is not None
    assert await registry.delete("orders") == [1]
    with pytest.raises(SchemaError):
        await registry.delete("orders")
    # Records that were written with it are still to be read.
    assert registry.known(1) == SCHEMA


async def test_deleting_permanently(fake: FakeRegistry) -> None:
    registry = Registry(fake.url)
    fake.add("orders", SCHEMA.text)
    fake.faults.extend([answer([1]), answer([1])])
    assert await registry.delete("orders", permanent=True) == [1]
    assert [asked.query for asked in fake.asked] == [{}, {"permanent": "true"}]
    # What was deleted before.
    fake.faults.extend([refusal(404, 40404), answer([1])])
    assert await registry.delete("orders", permanent=True) == [1]
    fake.faults.append(refusal(422, 42206))
    with pytest.raises(SchemaError):
        await registry.delete("orders", permanent=True)


async def test_a_host_and_a_path_beyond_ascii() -> None:
    registry = Registry("http://user:secret@bücher.example/schémas/")
    assert "http://xn--bcher-kva.example/sch%C3%A9mas" in repr(registry)


# ---- references ----------------------------------------------------------------------


def refers(*subjects: str) -> list[dict[str, Any]]:
    return [{"name": each, "subject": each, "version": 1} for each in subjects]


async def test_references_come_in_the_order_of_need(fake: FakeRegistry) -> None:
    fake.add("a", "A", references=refers("b", "c"))
    fake.add("b", "B", references=refers("c", "d"))
    fake.add("c", "C", references=refers("d"))
    fake.add("d", "D")
    registry = Registry(fake.url)
    schema = (await registry.latest("a")).schema
    found = await registry.references(schema)
    assert list(found) == ["d", "c", "b"]
    assert [each.text for each in found.values()] == ["D", "C", "B"]
    assert await registry.references(found["d"]) == {}
    asked = len(fake.asked)
    assert await registry.references(schema) == found
    assert len(fake.asked) == asked


@pytest.mark.parametrize("size", [1, 1_000])
async def test_references_in_a_circle(fake: FakeRegistry, size: int) -> None:
    fake.add("a", "A", references=refers("b"))
    fake.add("b", "B", references=refers("a"))
    registry = Registry(fake.url, cache_size=size)
    schema = Schema("root", references=(SchemaReference("a", "a", 1),))
    with pytest.raises(SchemaError, match="in a circle by 'a'"):
        await registry.references(schema)


async def test_two_references_of_one_name(fake: FakeRegistry) -> None:
    fake.add("a", "A")
    fake.add("b", "B")
    fake.add("same", "A")
    references = (SchemaReference("x", "a", 1), SchemaReference("x", "same", 1))
    registry = Registry(fake.url)
    found = await registry.references(Schema("root", references=references))
    assert [each.text for each in found.values()] == ["A"]
    references = (SchemaReference("x", "a", 1), SchemaReference("x", "b", 1))
    with pytest.raises(SchemaError, match="have the name 'x' and differ"):
        await registry.references(Schema("root", references=references))


async def test_references_without_an_end(fake: FakeRegistry) -> None:
    async def deeper(asked: Any) -> Any:
        subject = asked.parts[1]
        return answer(
            {
                "subject": subject,
                "version": 1,
                "id": len(subject),
                "schema": subject,
                "references": refers(f"{subject}x"),
            }
        )

    fake.always = deeper
    schema = Schema("root", references=(SchemaReference("x", "x", 1),))
    with pytest.raises(SchemaError, match="100 deep"):
        await Registry(fake.url).references(schema)


async def test_references_take_no_longer_than_the_limit(fake: FakeRegistry) -> None:
    fake.always = fake.hang
    schema = Schema("root", references=(SchemaReference("x", "x", 1),))
    with pytest.raises(RegistryError) as caught:
        await Registry(fake.url, timeout=0.2).references(schema)
    assert caught.value.retriable


# ---- life ----------------------------------------------------------------------------


async def test_nobody_has_to_close_it(fake: FakeRegistry) -> None:
    fake.add("orders", SCHEMA.text)
    registry = Registry(fake.url)
    await registry.schema(1)
    await fake.until(lambda: not fake.open)
    await registry.versions("orders")
    await fake.until(lambda: not fake.open)
    assert fake.connections == 2


async def test_a_block_keeps_connections(fake: FakeRegistry) -> None:
    fake.add("orders", SCHEMA.text)
    registry = Registry(fake.url)
    async with registry as same, registry:
        assert same is registry
        for _ in range(3):
            await registry.versions("orders")
    await fake.until(lambda: not fake.open)
    assert fake.connections == 1
    assert await registry.versions("orders") == [1]


async def test_a_registry_that_was_restarted(fake: FakeRegistry) -> None:
    fake.add("orders", SCHEMA.text)
    registry = Registry(fake.url, timeout=HANGS)
    async with registry:
        assert await registry.versions("orders") == [1]
        # The connection that is kept is gone.
        await fake.stop()
        await fake.start()
        assert await registry.versions("orders") == [1]
    assert fake.connections == 2
    # It was seen before a request was written into it.
    assert registry.statistics().retries == 0


def test_on_anyio() -> None:
    async def main() -> None:
        async with FakeRegistry() as fake:
            fake.add("orders", SCHEMA.text)
            registry = Registry(fake.url)
            with anyio.fail_after(HANGS):
                async with anyio.create_task_group() as group:
                    for _ in range(10):
                        group.start_soon(registry.schema, 1)
            assert len(fake.asked) == 1
            fake.always = fake.hang
            with anyio.move_on_after(0.05) as scope:
                await registry.versions("orders")
            assert scope.cancelled_caught
            assert not registry.statistics().in_flight

    anyio.run(main)


async def test_closing_ends_connections_and_not_the_registry(
    fake: FakeRegistry,
) -> None:
    fake.add("orders", SCHEMA.text)
    registry = Registry(fake.url)
    async with registry:
        await registry.versions("orders")
        await registry.close()
        await fake.until(lambda: not fake.open)
        assert await registry.versions("orders") == [1]
    await registry.close()
    assert await registry.versions("orders") == [1]


def served(work: Callable[[FakeRegistry], Coroutine[Any, Any, None]]) -> None:
    """Run a coroutine beside a registry, on an event loop of its own."""

    async def main() -> None:
        async with FakeRegistry() as fake:
            fake.add("orders", SCHEMA.text)
            await work(fake)

    asyncio.run(main())


def test_one_registry_on_several_loops_one_after_the_other() -> None:
    registries: list[Registry] = []
    port = 0

    async def work(fake: FakeRegistry) -> None:
        if not registries:
            registries.append(Registry(fake.url))
        async with registries[0]:
            assert await registries[0].versions("orders") == [1]

    async def main() -> None:
        nonlocal port
        fake = FakeRegistry()
        fake.port = port
        async with fake:
            port = fake.port
            fake.add("orders", SCHEMA.text)
            await work(fake)

    for _ in range(3):
        asyncio.run(main())
    assert registries[0].statistics().requests == 3


def test_one_registry_in_several_threads_at_once() -> None:
    failures: list[BaseException] = []
    threads = 4

    def use(registry: Registry, subject: str) -> None:
        async def main() -> None:
            async with registry:
                for number in range(20):
                    await registry.register(f"{subject}-{number}", SCHEMA)
                    await registry.schema(1)
                    await registry.versions("orders")

        try:
            asyncio.run(main())
        except BaseException as error:  # noqa: BLE001 - raised by the test
            failures.append(error)

    async def work(fake: FakeRegistry) -> None:
        registry = Registry(fake.url, cache_size=3)
        running = [
            threading.Thread(target=use, args=(registry, f"s{number}"))
            for number in range(threads)
        ]
        for thread in running:
            thread.start()
        for thread in running:
            await asyncio.to_thread(thread.join, HANGS)
        assert registry.statistics().in_flight == 0

    served(work)
    assert not failures


def test_a_loop_that_ends_with_a_request_under_way() -> None:
    async def work(fake: FakeRegistry) -> None:
        fake.always = fake.hang
        registry = Registry(fake.url)
        left.append(asyncio.ensure_future(registry.schema(1)))
        await fake.until(lambda: bool(fake.asked))

    left: list[asyncio.Future[Schema]] = []
    # Warnings are errors, also those of connections that are left open.
    served(work)
    assert left[0].cancelled()


def test_without_an_event_loop() -> None:
    registry = Registry("http://localhost:1")
    assert registry.known(1) is None
    assert registry.known_id("orders", SCHEMA) is None
    assert registry.statistics().requests == 0
    coroutine = registry.schema(1)
    with pytest.raises(UsageError, match="asyncio"):
        coroutine.send(None)


# ---- looks ---------------------------------------------------------------------------


async def test_statistics(fake: FakeRegistry) -> None:
    registry = Registry(fake.url, retries=1)
    await registry.register("orders", SCHEMA)
    registry.known(1)
    registry.known(9)
    registry.known_id("orders", SCHEMA)
    fake.always = refusal(500)
    with pytest.raises(RegistryError):
        await registry.versions("orders")
    found = registry.statistics()
    assert (found.requests, found.retries, found.errors) == (4, 1, 1)
    assert (found.schemas, found.ids, found.versions, found.unknown) == (1, 1, 1, 0)
    assert (found.hits, found.in_flight) == (2, 0)
    assert found.misses >= 2
    with pytest.raises(AttributeError):
        found.requests = 0  # type: ignore[misc]


async def test_a_repr_has_no_secret() -> None:
    registry = Registry(
        "http://user:pa55word@one:8081, http://two/path/",
        headers={"X-Key": "k3y-value"},
    )
    shown = repr(registry)
    assert "http://one:8081" in shown
    assert "http://two/path" in shown
    for secret in ("pa55word", "k3y-value", "user"):
        assert secret not in shown
    for name in ("_settings", "_login", "_http"):
        assert "pa55word" not in repr(getattr(registry, name))
        assert "k3y-value" not in repr(getattr(registry, name))


@pytest.mark.parametrize("how", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_registry_is_not_pickled(how: Callable[[object], object]) -> None:
    with pytest.raises(TypeError, match="it has a login"):
        how(Registry("http://user:secret@localhost"))


async def test_the_log(fake: FakeRegistry, caplog: pytest.LogCaptureFixture) -> None:
    registry = Registry(fake.url, basic_auth=("user", "pa55word"))
    caplog.set_level(logging.DEBUG, "kafkaio.registry")
    with pytest.raises(SchemaError):
        await registry.schema(7)
    assert f"GET {fake.url}/schemas/ids/7: 404 in" in caplog.text
    assert "pa55word" not in caplog.text


# ---- arguments -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"url": ""}, "needs http"),
        ({"url": []}, "0 addresses"),
        ({"url": 5}, "must be a str or a list"),
        ({"url": [5]}, "must be a str, not int"),
        ({"url": "localhost:8081"}, "needs http"),
        ({"url": "ftp://secret@host"}, "needs http"),
        ({"url": "http://"}, "needs http"),
        ({"url": "http://host:port"}, "not a URL"),
        ({"url": "http://host?token=secret"}, "no query"),
        ({"url": "http://host/a b"}, "spaces"),
        ({"url": "http://secret..b"}, "valid name"),
        ({"url": f"http://{'a' * 70}"}, "valid name"),
        ({"url": "mock://test"}, "registry in process"),
        ({"basic_auth": ("a",)}, "user and a password"),
        ({"basic_auth": "secret"}, "user and a password"),
        ({"basic_auth": ("a:b", "secret")}, "colon"),
        ({"basic_auth": ("a", "secret"), "bearer_token": "x"}, "one of basic_auth"),
        ({"url": "http://a:secret@h", "basic_auth": ("a", "b")}, "one of basic_auth"),
        ({"url": "http://a:secret@h", "bearer_token": "b"}, "one of bearer_token"),
        ({"bearer_token": "a secret"}, "spaces"),
        ({"bearer_token": ""}, "empty"),
        ({"bearer_token": 5}, "async callable"),
        ({"headers": {"A": "secret\r\nB: c"}}, "beyond ASCII"),
        ({"headers": {"A b": "c"}}, "not one of HTTP"),
        ({"headers": {"Authorization": "secret"}}, "made by Registry"),
        ({"headers": {"A": 5}}, "texts"),
        ({"headers": [5]}, "mapping"),
        ({"tls": 5, "url": "https://h"}, "RegistryTls"),
        ({"tls": object()}, "no effect"),
        ({"proxy": "secret"}, "scheme and a host"),
        ({"proxy": 5}, "must be a str"),
        ({"timeout": 0}, "more than 0"),
        ({"timeout": math.inf}, "finite"),
        ({"timeout": "10"}, "seconds"),
        ({"timeout": math.nan}, "seconds"),
        ({"retries": -1}, "0 to 1000"),
        ({"retries": 1.5}, "int"),
        ({"cache_size": 0}, "at least 1"),
        ({"latest_ttl": -1}, "0 seconds or more"),
        ({"unknown_ttl": None}, "seconds"),
        ({"max_schema_bytes": 0}, "at least 1"),
    ],
)
def test_arguments_that_are_wrong(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=problem) as caught:
        Registry(**{"url": "http://localhost:8081", **given})
    assert "secret" not in str(caught.value)


def test_nothing_happens_at_first() -> None:
    assert Registry("http://no.such.host.invalid").statistics().requests == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda r: r.schema("1"),
        lambda r: r.schema(True),
        lambda r: r.schema_by_guid("x"),
        lambda r: r.register("", SCHEMA),
        lambda r: r.register(5, SCHEMA),
        lambda r: r.register("s", "text"),
        lambda r: r.register("\ud800", SCHEMA),
        lambda r: r.version("s", 0),
        lambda r: r.version("s", "1"),
        lambda r: r.check("s", SCHEMA, "newest"),
        lambda r: r.subjects(5),
    ],
)
async def test_arguments_of_calls(call: Callable[[Registry], Any]) -> None:
    with pytest.raises((ArgumentTypeError, ArgumentValueError)):
        await call(Registry("http://localhost:1"))


async def test_a_schema_that_is_too_large_is_not_sent(fake: FakeRegistry) -> None:
    registry = Registry(fake.url)
    large = Schema(json.dumps({"doc": "x" * 10_000_000}))
    with pytest.raises(SchemaError, match="max_schema_bytes=4194304") as caught:
        await registry.register("orders", large)
    assert len(str(caught.value)) < 200
    assert not fake.asked


def test_errors_can_be_copied() -> None:
    error = SchemaError("orders", "no", status=409, code=409)
    again = pickle.loads(pickle.dumps(error))
    assert isinstance(again, KafkaError)
    assert (again.subject, again.reason, again.status) == ("orders", "no", 409)


def test_configuration_errors_are_value_errors() -> None:
    with pytest.raises(ValueError, match="needs http"):
        Registry("nowhere")
    assert issubclass(ConfigurationError, ValueError)
