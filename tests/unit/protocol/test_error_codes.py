"""Codes and the exceptions that stand for them."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from kafkaio import errors
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._broker_errors import broker_error
from kafkaio.protocol._error_codes import ErrorCode

#: Codes that Kafka's client retries, from the protocol's documentation.
RETRIABLE = (
    {2, 3, 5, 6, 7, 9, 13, 14, 15, 16, 19, 20, 41, 51, 56, 70, 71, 72, 74, 75, 78}
    | {80, 83, 84, 88, 89, 100, 103, 106, 122, 123, 133}
)  # fmt: skip


def test_retriable_codes() -> None:
    assert {code for code in ErrorCode if code.retriable} == RETRIABLE


def test_the_facts_are_those_of_the_generator() -> None:
    path = Path(__file__).parents[3] / "codegen" / "errors.json"
    facts = json.loads(path.read_text())
    assert {f["code"]: f["name"] for f in facts} == {c.value: c.name for c in ErrorCode}


@pytest.mark.parametrize("number", [-2, 9999, 32767])
def test_an_unknown_code_is_an_unknown_error(number: int) -> None:
    assert ErrorCode(number) is ErrorCode.UNKNOWN_SERVER_ERROR
    error = broker_error(number, "no idea")
    assert type(error) is errors.BrokerError
    assert (error.code, error.name) == (number, "UNKNOWN_SERVER_ERROR")
    assert error.retriable is False


def test_only_numbers_are_codes() -> None:
    with pytest.raises(ValueError, match="not a valid ErrorCode"):
        ErrorCode("NONE")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (1, errors.OffsetOutOfRange),
        (3, errors.UnknownTopicOrPartition),
        (100, errors.UnknownTopicOrPartition),
        (29, errors.AuthorizationError),
        (30, errors.AuthorizationError),
        (31, errors.AuthorizationError),
        (53, errors.AuthorizationError),
        (65, errors.AuthorizationError),
        (47, errors.Fenced),
        (82, errors.Fenced),
        (90, errors.Fenced),
        (110, errors.Fenced),
        (25, errors.GroupError),
        (27, errors.GroupError),
        (113, errors.GroupError),
        (35, errors.BrokerError),
        (7, errors.BrokerError),
    ],
)
def test_exceptions(code: int, kind: type[errors.BrokerError]) -> None:
    error = broker_error(code, "asked for it")
    assert type(error) is kind
    assert error.code == code
    assert error.name == ErrorCode(code).name
    assert error.retriable == (code in RETRIABLE)
    assert str(error) == f"asked for it [{error.name}, code {code}]"


def test_every_code_has_an_exception() -> None:
    for code in ErrorCode:
        assert broker_error(code, "x").name == code.name


@pytest.mark.parametrize(
    ("code", "api", "kind", "name", "right", "text"),
    [
        (29, ApiKey.PRODUCE, "topic", "t", "WRITE", "needs WRITE on topic 't'"),
        (29, ApiKey.FETCH, "topic", "t", "READ", "needs READ on topic 't'"),
        (
            *(29, ApiKey.METADATA, "topic", "t", "DESCRIBE"),
            "there is no topic 't', or the principal may not DESCRIBE it",
        ),
        (30, ApiKey.JOIN_GROUP, "group", "g", "READ", "needs READ on group 'g'"),
        (30, ApiKey.FIND_COORDINATOR, "group", "g", "DESCRIBE", "DESCRIBE on group"),
        (31, ApiKey.CREATE_ACLS, "cluster", "", "ALTER", "needs ALTER on the cluster"),
        (
            *(31, ApiKey.INIT_PRODUCER_ID, "cluster", "", "IDEMPOTENT_WRITE"),
            "needs WRITE on a topic, or IDEMPOTENT_WRITE on the cluster",
        ),
        (
            *(53, ApiKey.INIT_PRODUCER_ID, "transactional id", "x", "WRITE"),
            "needs WRITE on transactional id 'x'",
        ),
        (65, ApiKey.DESCRIBE_DELEGATION_TOKEN, "delegation token", "", "", "refused ["),
        (29, 12_345, "topic", "t", "", "refused ["),
        (29, -1, "topic", "t", "", "refused ["),
    ],
)
def test_a_refusal_names_what_it_is_about(
    code: int, api: int, kind: str, name: str, right: str, text: str
) -> None:
    error = broker_error(
        code, "refused", api=api, topic="t", group="g", transactional_id="x"
    )
    assert isinstance(error, errors.AuthorizationError)
    assert (error.resource_type, error.resource, error.operation) == (kind, name, right)
    assert text in str(error)
    assert (error.code, error.retriable) == (code, False)
    copied = pickle.loads(pickle.dumps(error))
    assert copied.operation == right


def test_a_refusal_of_an_unknown_topic() -> None:
    error = broker_error(29, "refused", api=ApiKey.FETCH)
    assert "the principal needs READ on the topic" in str(error)
