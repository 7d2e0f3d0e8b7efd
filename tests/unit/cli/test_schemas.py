"""``kafkaio schemas``, and how the registry is found."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from kafkaio._cli.shell.connection import ConnectionOptions
from kafkaio._cli.shell.given import Given
from kafkaio._config import ProducerConfig
from kafkaio.registry import Schema
from kafkaio.testing import SchemaRegistry
from tests.support.cli import Result, environment, run, run_beside

RECORD = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
WIDER = RECORD.replace("]}", ',{"name":"b","type":"int","default":0}]}')
OTHER = RECORD.replace('"int"', '"string"')


@pytest.fixture
async def registry() -> AsyncIterator[SchemaRegistry]:
    async with SchemaRegistry() as registry:
        yield registry


async def schemas(registry: SchemaRegistry, *words: str, **more: Any) -> Result:
    return await run_beside("schemas", *words, "--registry", registry.url, **more)


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], str]:
    def write(text: str, name: str = "r.avsc") -> str:
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


async def test_schemas_are_registered_listed_and_shown(
    registry: SchemaRegistry, written: Callable[..., str]
) -> None:
    done = await schemas(registry, "register", "a-value", written(RECORD))
    assert done.check().rows == [
        ["SUBJECT", "VERSION", "ID", "TYPE"],
        ["a-value", "1", "1", "AVRO"],
    ]
    again = await schemas(registry, "register", "a-value", "-", "--json", typed=RECORD)
    assert again.check().document["schemas"][0]["version"] == 1
    (await schemas(registry, "register", "a-value", written(WIDER))).check()
    (await schemas(registry, "register", "b", written("{}", "b.json"))).check()
    proto = 'syntax = "proto3"; message M { int32 a = 1; }'
    (await schemas(registry, "register", "c", written(proto, "c.proto"))).check()

    listed = await schemas(registry, "list")
    assert listed.check().rows[1:] == [
        ["a-value", "2", "2", "AVRO"],
        ["b", "1", "3", "JSON"],
        ["c", "1", "4", "PROTOBUF"],
    ]
    every = await schemas(registry, "list", "a*", "--all", "--json")
    assert [row["version"] for row in every.check().document["schemas"]] == [1, 2]
    regex = await schemas(registry, "list", "--regex", "[bc]", "--jsonl")
    assert [row["subject"] for row in regex.check().lines] == ["b", "c"]

    assert (await schemas(registry, "get", "a-value")).check().out == f"{WIDER}\n"
    old = await schemas(registry, "get", "a-value", "--version", "1")
    assert old.check().out == f"{RECORD}\n"
    by_id = (await schemas(registry, "get", "--id", "2", "--json")).check().document
    assert (by_id["subject"], by_id["id"], by_id["schema"]) == ("", 2, WIDER)
    document = (await schemas(registry, "get", "c", "--json")).check().document
    assert (document["type"], document["version"]) == ("PROTOBUF", 1)
    (line,) = (await schemas(registry, "get", "c", "--jsonl")).check().lines
    assert line["references"] == []


async def test_a_schema_may_use_others(
    registry: SchemaRegistry, written: Callable[..., str]
) -> None:
    registry.register("base", Schema(RECORD))
    text = '{"type":"record","name":"S","fields":[{"name":"r","type":"R"}]}'
    words = ("register", "s", written(text), "--reference", "R=base:1")
    (await schemas(registry, *words)).check()
    found = (await schemas(registry, "get", "s", "--json")).check().document
    assert found["references"] == [{"name": "R", "subject": "base", "version": 1}]
    wrong = await schemas(registry, "register", "s", written(text), "--reference", "R")
    assert "'R' is not NAME=SUBJECT:VERSION" in wrong.check(2).err


async def test_a_check_answers_by_its_exit_code(
    registry: SchemaRegistry, written: Callable[..., str]
) -> None:
    registry.register("r", Schema(RECORD))
    good = await schemas(registry, "check", "r", written(WIDER), "--json")
    assert good.check().document["is_compatible"] is True
    bad = await schemas(registry, "check", "r", written(OTHER), "--json")
    document = bad.check(1).document
    assert document["is_compatible"] is False
    assert document["reasons"]
    assert document["errors"] == []
    shown = await schemas(registry, "check", "r", written(OTHER), "--version", "1")
    assert [row for row in shown.check(1).rows if row != [""]][:3] == [
        ["SUBJECT", "VERSION", "COMPATIBLE"],
        ["r", "1", "no"],
        ["REASON"],
    ]
    refused = await schemas(registry, "register", "r", written(OTHER))
    assert "r" in refused.check(1).err
    (await schemas(registry, "compatibility", "r", "--set", "none")).check()
    (await schemas(registry, "register", "r", written(OTHER))).check()


async def test_levels_of_compatibility(registry: SchemaRegistry) -> None:
    registry.register("r", Schema(RECORD))
    first = await schemas(registry, "compatibility")
    assert first.check().rows == [["SUBJECT", "LEVEL"], ["-", "BACKWARD"]]
    done = await schemas(registry, "compatibility", "r", "--set", "full", "--json")
    assert done.check().document == {"subject": "r", "level": "FULL", "errors": []}
    found = await schemas(registry, "compatibility", "r", "--json")
    assert found.check().document["level"] == "FULL"
    assert (await schemas(registry, "compatibility")).rows[1][1] == "BACKWARD"


async def test_a_deletion_asks_first(registry: SchemaRegistry) -> None:
    registry.register("r", Schema(RECORD))
    registry.register("r", Schema(WIDER))
    registry.register("s", Schema(RECORD))
    refused = (await schemas(registry, "delete", "r", "--permanent")).check(2)
    assert "delete all versions of subject r for good" in refused.err
    assert "confirm it with --yes" in refused.err
    assert registry.subjects() == ["r", "s"]
    one = await schemas(registry, "delete", "r", "--version", "1", "-y")
    assert one.check().rows == [["SUBJECT", "VERSION"], ["r", "1"]]
    some = (await schemas(registry, "delete", "r", "x", "-y", "--json")).check(3)
    assert some.document["versions"] == [{"subject": "r", "version": 2}]
    assert [each["item"] for each in some.document["errors"]] == ["x"]
    gone = await schemas(registry, "delete", "*", "--permanent", "-y", "--json")
    assert gone.check().document["permanent"] is True
    assert registry.subjects() == []
    none = (await schemas(registry, "delete", "x*", "-y")).check(1)
    assert "no subject matches 'x*'" in none.err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("get",), 2, "name a SUBJECT, or an id by --id"),
        (("get", "r", "--id", "1"), 2, "name a SUBJECT, or an id by --id"),
        (("get", "--id", "1", "--version", "1"), 2, "exclude each other"),
        (("get", "r", "--version", "0"), 2, "'0' is neither a number nor latest"),
        (("get", "nope"), 1, "nope"),
        (("get", "--id", "77"), 1, "77"),
        (("register", "r", "/no/such"), 2, "/no/such: No such file"),
        (("list", "nope"), 1, "nope"),
    ],
)
async def test_what_is_wrong(
    registry: SchemaRegistry, words: tuple[str, ...], code: int, message: str
) -> None:
    result = (await schemas(registry, *words)).check(code)
    assert message in result.err
    assert len(result.err.splitlines()) == 1


async def test_a_schema_that_is_none(
    registry: SchemaRegistry, written: Callable[..., str]
) -> None:
    failed = await schemas(registry, "register", "r", written("{"))
    assert "r" in failed.check(1).err


async def test_the_registry_of_the_environment_and_its_login(tmp_path: Path) -> None:
    async with SchemaRegistry(users={"alice": "se:cret"}) as registry:
        registry.register("r", Schema(RECORD))
        with environment(
            KAFKAIO_REGISTRY_URL=registry.url,
            KAFKAIO_REGISTRY_USER_INFO="alice:se:cret",
        ):
            shown = await run_beside("schemas", "list")
            assert shown.check().rows[1:] == [["r", "1", "1", "AVRO"]]
        with environment(KAFKAIO_REGISTRY_URL=registry.url):
            refused = (await run_beside("schemas", "list")).check(1)
            assert "401" in refused.err or "nauthorized" in refused.err
            login = ("-X", "basic.auth.user.info=alice:se:cret")
            warned = (await run_beside("schemas", "list", *login)).check()
            assert "can read basic.auth.user.info on the command line" in warned.err
            assert "se:cret" not in warned.err
            file = tmp_path / "r.properties"
            file.write_text("basic.auth.user.info=alice:se:cret\nlinger.ms=5\n")
            (await run_beside("schemas", "list", "--config", str(file))).check()


def registry_of(given: Given, **variables: str) -> dict[str, object]:
    options = ConnectionOptions(given, {"XDG_CONFIG_HOME": "/nonexistent", **variables})
    return options.registry_properties(None)


def test_the_options_of_a_registry() -> None:
    url = "schema.registry.url"
    assert registry_of(Given())[url] == "http://localhost:8081"
    env = {"KAFKAIO_REGISTRY_URL": "http://env"}
    assert registry_of(Given(), **env)[url] == "http://env"
    given = Given(properties={"schema_registry_url": "http://x", "linger.ms": "5"})
    assert registry_of(given, **env)[url] == "http://x"
    assert (
        ConnectionOptions(given, env).registry_properties("http://o")[url] == "http://o"
    )
    assert "linger.ms" not in registry_of(given)
    # One profile serves all commands: no client of the cluster sees these.
    found = ConnectionOptions(given, {**env, "XDG_CONFIG_HOME": "/x"})
    assert not [n for n in found.properties(ProducerConfig) if n.startswith("schema.")]
    login = Given(properties={"basic.auth.user.info": "a:b"})
    both = registry_of(login, KAFKAIO_REGISTRY_USER_INFO="c:d")
    assert both["schema.registry.basic.auth.user.info"] == "a:b"
    assert "basic.auth.user.info" not in both


@pytest.mark.parametrize(
    ("name", "value", "is_secret"),
    [
        ("basic.auth.user.info", "a:b", True),
        ("schema.registry.bearer.auth.token", "t", True),
        ("schema.registry.ssl.key.password", "p", True),
        ("schema.registry.url", "http://a:b@host", True),
        ("schema.registry.url", "http://host", False),
        ("schema.registry.basic.auth.credentials.source", "USER_INFO", False),
    ],
)
def test_secrets_on_the_command_line(name: str, value: str, is_secret: bool) -> None:
    options = ConnectionOptions(Given(properties={name: value}), {})
    assert options.secrets_on_the_command_line() == ([name] if is_secret else [])


def test_a_wrong_option_of_the_registry() -> None:
    failed = run("schemas", "list", "-X", "schema.registry.ulr=x").check(2)
    assert "unknown property 'ulr'" in failed.err
    failed = run("schemas", "list", "-r", "ftp://x").check(2)
    assert len(failed.err.splitlines()) == 1


async def test_subjects_are_completed(
    registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.register("orders-value", Schema(RECORD))
    registry.register("other", Schema(RECORD))
    monkeypatch.setenv("_KAFKAIO_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", f"kafkaio schemas get -r {registry.url} ord")
    monkeypatch.setenv("COMP_CWORD", "5")
    shown = await run_beside()
    assert shown.out.split() == ["plain,orders-value"]


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("httpx", "httpcore"):
        monkeypatch.setitem(sys.modules, module, None)
    failed = run("schemas", "list").check(2)
    assert failed.err == (
        "kafkaio schemas list: a schema registry needs more packages: "
        "pip install 'kafkaio[registry]'\n"
    )
