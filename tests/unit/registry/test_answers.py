"""What a registry answers is foreign: whatever it is, it is read or it is an error."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given, strategies as st

from kafkaio.errors import RegistryError, SchemaError
from kafkaio.registry import RegisteredSchema, Schema, SchemaReference
from kafkaio.registry._answers import (
    Reply,
    Where,
    error_of,
    parsed,
    read_compatibility,
    read_level,
    read_names,
    read_numbers,
    read_registered,
    read_schema,
    read_version,
)

GUID = UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
WHERE = Where("http://registry:8081/subjects/orders/versions", "orders", ("s3cret",))
READERS = [
    lambda body: read_schema(body, WHERE, asked=1),
    lambda body: read_schema(body, WHERE, asked=GUID),
    lambda body: read_version(body, WHERE),
    lambda body: read_registered(body, WHERE, schema=Schema("x")),
    lambda body: read_version(body, WHERE, version=3),
    lambda body: read_registered(body, WHERE, schema=Schema("x"), number=7),
    lambda body: read_numbers(body, WHERE),
    lambda body: read_names(body, WHERE),
    lambda body: read_compatibility(body, WHERE),
    lambda body: read_level(body, WHERE),
]
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["AVRO", "orders", str(GUID), "BACKWARD"])
)
NAMES = st.sampled_from(
    [
        *("id", "version", "schema", "schemaType", "subject", "guid", "references"),
        *("name", "is_compatible", "messages", "compatibilityLevel", "error_code"),
        *("message",),
    ]
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner),
    max_leaves=12,
)


def body_of(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


@given(JSON.map(lambda value: json.dumps(value).encode()) | st.binary())
@example(b"[" * 100_000)
@example(b'{"id": 1e999, "version": NaN}')
@example(b'{"id": ' + b"9" * 5_000 + b"}")
@example(b"\xff\xfe")
def test_any_answer_is_read_or_refused(body: bytes) -> None:
    for read in READERS:
        error = None
        try:
            read(body)
        except RegistryError as raised:
            error = raised
        if error is not None:
            assert len(str(error)) < 5_000
            assert str(error).isprintable()
            assert not error.retriable
    failed = error_of(Reply(409, body), WHERE)
    assert isinstance(failed, SchemaError)
    assert failed.reason
    assert str(failed).isprintable()


def test_a_schema_by_its_id() -> None:
    body = body_of(
        schema="message A {}",
        schemaType="PROTOBUF",
        references=[{"name": "b.proto", "subject": "b", "version": 2}],
        unknown={"more": 1},
    )
    found = read_schema(body, WHERE, asked=5)
    assert found == Schema(
        "message A {}", "PROTOBUF", (SchemaReference("b.proto", "b", 2),)
    )


def test_a_schema_without_a_type_is_avro() -> None:
    assert read_schema(body_of(schema="{}"), WHERE, asked=5) == Schema("{}", "AVRO")


def test_a_registered_schema() -> None:
    fields = {"subject": "orders", "id": 7, "version": 3, "schema": "x"}
    body = body_of(**fields, guid=str(GUID))
    found = read_version(body, WHERE)
    assert found == RegisteredSchema("orders", 3, 7, Schema("x"), GUID)


def test_an_id_alone_is_an_answer_to_a_registration() -> None:
    found = read_registered(body_of(id=7), WHERE, schema=Schema("mine"))
    assert found == RegisteredSchema("orders", 0, 7, Schema("mine"))


def test_a_registry_that_repeats_a_schema_in_part() -> None:
    # As Apicurio, which leaves the type out.
    mine = Schema("message A {}", "PROTOBUF", (SchemaReference("b", "b", 1),))
    body = body_of(subject="orders", version=2, id=7, schema=mine.text)
    found = read_registered(body, WHERE, schema=mine)
    assert found == RegisteredSchema("orders", 2, 7, mine)
    body = body_of(subject="orders", version=2, id=7, schemaType="JSON")
    with pytest.raises(RegistryError, match="not PROTOBUF"):
        read_registered(body, WHERE, schema=mine)


def test_the_default_context_is_not_another_subject() -> None:
    where = Where("http://r", ":.:orders")
    body = body_of(subject="orders", id=7, version=3, schema="x")
    assert read_version(body, where).subject == ":.:orders"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"subject": "others"}, "about the subject 'others'"),
        ({"subject": None}, "no subject"),
        ({"version": 4}, "about version 4"),
        ({"version": 0}, "not from 1 to 2147483647"),
        ({"version": "3"}, "no version that is an integer"),
        ({"version": True}, "no version that is an integer"),
        ({"id": -1}, "not from 0"),
        ({"id": 2**31}, "not from 0"),
        ({"id": 7.0}, "no id that is an integer"),
        ({"schema": 1}, "no schema"),
        ({"schemaType": "XSD"}, "type 'XSD'"),
        ({"references": {}}, "references are not a list"),
        ({"references": [1]}, "not a JSON object"),
        ({"references": [{"name": "a", "subject": "b", "version": 0}]}, "version of a"),
        ({"references": [{"name": "a", "version": 1}]}, "no name and subject"),
        ({"guid": "?"}, "not a UUID"),
    ],
)
def test_answers_that_are_wrong(fields: dict[str, Any], problem: str) -> None:
    right = {"subject": "orders", "id": 7, "version": 3, "schema": "x"}
    read_version(body_of(**right), WHERE, version=3)
    with pytest.raises(RegistryError, match=problem) as caught:
        read_version(body_of(**{**right, **fields}), WHERE, version=3)
    assert caught.value.status == 200


def test_a_registry_that_lies_about_ids() -> None:
    with pytest.raises(RegistryError, match="another id: 6"):
        read_schema(body_of(schema="x", id=6), WHERE, asked=5)
    with pytest.raises(RegistryError, match="GUID"):
        read_schema(body_of(schema="x", guid=str(UUID(int=1))), WHERE, asked=GUID)
    body = body_of(id=8, version=1, subject="orders")
    with pytest.raises(RegistryError, match="has the id 8, and had 7"):
        read_registered(body, WHERE, schema=Schema("x"), number=7)


def test_verdicts() -> None:
    body = body_of(is_compatible=False, messages=["a", 1, "\x1b[31mb"])
    found = read_compatibility(body, WHERE)
    assert not found.is_compatible
    assert found.reasons == ("a", "[31mb")
    with pytest.raises(RegistryError, match="is_compatible"):
        read_compatibility(body_of(is_compatible="no"), WHERE)


def test_levels() -> None:
    assert read_level(body_of(compatibilityLevel="FULL"), WHERE) == "FULL"
    with pytest.raises(RegistryError, match="compatibilityLevel"):
        read_level(body_of(other="FULL"), WHERE)


def test_what_is_no_json_says_where() -> None:
    with pytest.raises(
        RegistryError, match=r"http://registry:8081.*not JSON"
    ) as caught:
        parsed(b"<html>", WHERE)
    # The parser's error has the whole body.
    assert caught.value.__cause__ is caught.value.__context__ is None


@pytest.mark.parametrize("code", [40401, 40402, 40403, 40407])
def test_there_is_no_such_schema(code: int) -> None:
    body = body_of(error_code=code, message="not found")
    error = error_of(Reply(404, body), WHERE)
    assert isinstance(error, SchemaError)
    assert (error.subject, error.reason) == ("orders", "not found")
    assert (error.status, error.code, error.retriable) == (404, code, False)


@pytest.mark.parametrize("body", [b"<html>", body_of(error_code=404, message="?")])
def test_a_path_that_no_registry_has_is_not_a_missing_schema(body: bytes) -> None:
    error = error_of(Reply(404, body), WHERE)
    assert not isinstance(error, SchemaError)
    assert "is the path of the url right" in str(error)


@pytest.mark.parametrize(("status", "code"), [(409, 409), (422, 42201), (422, 42202)])
def test_a_schema_that_is_refused(status: int, code: int) -> None:
    body = body_of(error_code=code, message="reader cannot read")
    error = error_of(Reply(status, body), WHERE)
    assert isinstance(error, SchemaError)
    assert (error.status, error.code) == (status, code)
    assert error.reason == "reader cannot read"


@pytest.mark.parametrize(
    ("status", "retriable", "hint"),
    [
        (301, False, "not followed"),
        (400, False, "status 400"),
        (401, False, "basic_auth="),
        (403, False, "may not do that"),
        (407, False, "proxy="),
        (408, True, "status 408"),
        (429, True, "status 429"),
        (500, True, "status 500"),
        (501, False, "status 501"),
        (503, True, "status 503"),
    ],
)
def test_other_statuses(status: int, retriable: bool, hint: str) -> None:
    error = error_of(Reply(status, body_of(error_code=50001, message="why")), WHERE)
    assert type(error) is RegistryError
    assert (error.status, error.code, error.retriable) == (status, 50001, retriable)
    assert hint in str(error)
    assert "why" in str(error)


def test_a_redirect_shows_where_and_no_secret() -> None:
    location = "https://user:pass@other.example/x?token=abc"
    error = error_of(Reply(301, location=location), WHERE)
    assert "other.example" in str(error)
    assert "pass" not in str(error).replace("pass the final", "")
    assert "abc" not in str(error)


def test_texts_are_bounded_and_hide_what_was_sent() -> None:
    text = "password s3cret " + "x" * 100_000
    error = error_of(Reply(409, body_of(message=text)), WHERE)
    assert "s3cret" not in str(error)
    assert "[hidden]" in str(error)
    assert len(str(error)) < 2_100
    long = Where("http://r/" + "y" * 10_000)
    assert len(str(error_of(Reply(500), long))) < 500
