"""The generator's rules; that its output is current is checked against the jar."""

from __future__ import annotations

from typing import Any

import pytest

from codegen.emit_messages import message_module, module_of
from codegen.facts import MessageFact, parse, snake
from codegen.names import class_names, public_names


def schema(name: str, *fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "apiKey": 7,
        "type": "request" if name.endswith("Request") else "response",
        "name": name,
        "validVersions": "2-5",
        "flexibleVersions": "4+",
        "fields": list(fields),
    } | more


def facts(*arguments: Any, **more: Any) -> MessageFact:
    found = parse(schema(*arguments, **more))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("camel", "expected"),
    [
        ("TransactionalId", "transactional_id"),
        ("timeoutMs", "timeout_ms"),
        ("ISRNodes", "isr_nodes"),
        ("KRaftVersion", "kraft_version"),
        ("Enable2Pc", "enable_2pc"),
        ("V3AndBelowTopics", "v3_and_below_topics"),
    ],
)
def test_snake(camel: str, expected: str) -> None:
    assert snake(camel) == expected


def test_modules() -> None:
    assert module_of("ListOffsetsRequest") == module_of("ListOffsetsResponse")
    assert module_of("ListOffsetsRequest") == "list_offsets"
    assert module_of("RequestHeader") == "request_header"
    assert module_of("EndTxnMarker") == "end_txn_marker"


def test_ranges_are_cut_to_those_of_the_message() -> None:
    message = facts(
        "XRequest",
        {"name": "A", "type": "int32", "versions": "0+"},
        {"name": "B", "type": "string", "versions": "3-4", "nullableVersions": "4+"},
        {"name": "C", "type": "int8", "versions": "0-1"},
        {"name": "D", "type": "int8", "versions": "5", "default": "0x10"},
    )
    assert (message.versions, message.stable, message.flexible_from) == ((2, 5), 5, 4)
    assert [(f.name, f.versions, f.nullable) for f in message.fields] == [
        ("a", (2, 5), None),
        ("b", (3, 4), (4, 4)),
        ("d", (5, 5), None),
    ]
    assert message.fields[2].default == 16


def test_an_unstable_last_version() -> None:
    assert facts("XRequest", latestVersionUnstable=True).stable == 4
    assert facts("XRequest", flexibleVersions="none").flexible_from is None
    assert parse(schema("XRequest", validVersions="none")) is None


@pytest.mark.parametrize(
    ("kind", "default", "expected"),
    [
        ("bool", "true", True),
        ("bool", "false", ()),
        ("int64", "-1", -1),
        ("int32", 0, ()),
        ("string", "null", None),
        ("string", "", ()),
        ("string", "x", "x"),
        ("float64", "1.5", 1.5),
        ("[]int32", "null", None),
    ],
)
def test_defaults(kind: str, default: object, expected: object) -> None:
    field = {"name": "A", "type": kind, "versions": "0+", "default": default}
    (fact,) = facts("XRequest", field | {"nullableVersions": "0+"}).fields
    assert fact.default == expected


def struct(name: str) -> dict[str, Any]:
    field = {"name": "V", "type": "int8", "versions": "0+"}
    return {"name": name, "type": f"[]{name}", "versions": "0+", "fields": [field]}


def test_structs_of_one_name_are_prefixed() -> None:
    request = facts("XRequest", struct("Topic"), struct("Own"))
    response = facts("XResponse", struct("Topic"), struct("XRequest"))
    assert class_names([request, response]) == {
        ("XRequest", "Topic"): "XRequestTopic",
        ("XRequest", "Own"): "Own",
        ("XResponse", "Topic"): "XResponseTopic",
        ("XResponse", "XRequest"): "XResponseXRequest",
    }


def test_classes_that_would_still_collide_are_an_error() -> None:
    request = facts("XRequest", struct("Topic"), struct("XResponseTopic"))
    response = facts("XResponse", struct("Topic"))
    with pytest.raises(ValueError, match="two classes of one name"):
        message_module([request, response])


def test_structs_of_one_name_in_several_modules_are_prefixed_in_the_package() -> None:
    modules = {
        "x": {("XRequest", "Topic"): "Topic", ("XResponse", "Own"): "Own"},
        "y": {("YResponse", "Topic"): "Topic", ("YRequest", "Data"): "Data"},
    }
    tops = ["XRequest", "XResponse", "YRequest", "YResponse", "Data"]
    assert public_names(modules, tops) == {
        "XRequestTopic": ("x", "Topic"),
        "Own": ("x", "Own"),
        "YResponseTopic": ("y", "Topic"),
        "YRequestData": ("y", "Data"),
    }


def test_public_names_that_would_still_collide_are_an_error() -> None:
    modules = {"x": {("X", "Topic"): "Topic"}, "y": {("Y", "Topic"): "Topic"}}
    for taken in (["XTopic"], ["YTopic"]):
        with pytest.raises(ValueError, match="two classes would have the name"):
            public_names(modules, taken)
    modules["z"] = {("Z", "XTopic"): "XTopic"}
    with pytest.raises(ValueError, match="two classes would have the name XTopic"):
        public_names(modules, [])


@pytest.mark.parametrize(
    "field",
    [
        {"name": "A", "type": "int8", "versions": "latest"},
        {"name": "A", "type": "records", "versions": "0+", "taggedVersions": "0+"},
        struct("A") | {"taggedVersions": "0+", "nullableVersions": "0+"},
    ],
)
def test_what_the_codec_does_not_know_is_an_error(field: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"range|tagged"):
        parse(schema("XRequest", field))
