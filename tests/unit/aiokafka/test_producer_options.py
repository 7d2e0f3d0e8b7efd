"""The constructor of `AIOKafkaProducer`: options, defaults and what is refused."""

from __future__ import annotations

import asyncio
import ssl
import warnings
from typing import Any

import pytest

import kafkaio
from kafkaio.aiokafka import AIOKafkaProducer
from tests.unit.aiokafka.side import SIDES, side


def options_of(**given: Any) -> dict[str, object]:
    producer = AIOKafkaProducer(**given)
    producer._closed = True  # nothing to warn of: it was never started
    return dict(producer._options)


async def test_the_defaults_are_aiokafkas() -> None:
    assert options_of() == {
        "acks": 1,
        "enable_idempotence": False,
        "compression_type": "none",
        "batch_size": 16_384,
        "max_request_size": 1_048_576,
        "linger_ms": 0,
        "max_block_ms": 40_000,
        "delivery_timeout_ms": 40_000,
        "max_in_flight_requests_per_connection": 1,
    }


async def test_idempotence_waits_for_all_replicas() -> None:
    options = options_of(enable_idempotence=True)
    assert options["acks"] == "all"
    assert options["enable_idempotence"] is True
    assert options["max_in_flight_requests_per_connection"] == 5


async def test_row_a_record_of_an_idempotent_producer_has_a_time_limit() -> None:
    """aiokafka tries to write it for ever, and its future waits as long."""
    assert options_of(enable_idempotence=True)["delivery_timeout_ms"] == 120_000
    slow = options_of(enable_idempotence=True, request_timeout_ms=200_000)
    assert slow["delivery_timeout_ms"] == 200_000


async def test_a_transactional_id_implies_idempotence() -> None:
    options = options_of(transactional_id="billing", transaction_timeout_ms=7_000)
    assert options["enable_idempotence"] is True
    assert options["transactional_id"] == "billing"
    assert options["transaction_timeout_ms"] == 7_000


async def test_a_transaction_timeout_means_nothing_without_transactions() -> None:
    assert "transaction_timeout_ms" not in options_of(transaction_timeout_ms=7_000)


async def test_lingering_adds_to_the_time_of_a_record() -> None:
    options = options_of(linger_ms=2.5, request_timeout_ms=1_000)
    assert options["delivery_timeout_ms"] == 1_003


@SIDES
@pytest.mark.parametrize(
    "wrong",
    [
        {"acks": 122},
        {"acks": "some"},
        {"acks": 1, "enable_idempotence": True},
        {"acks": 0, "transactional_id": "billing"},
        {"compression_type": "my_custom"},
        {"security_protocol": "SOME"},
        {"security_protocol": "SSL"},
        {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "NONE"},
        {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN"},
    ],
    ids=str,
)
async def test_what_is_refused(name: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        side(name).top.AIOKafkaProducer(**wrong)


@pytest.mark.parametrize(
    "wrong", [{"max_batch_size": -1}, {"request_timeout_ms": 0}, {"linger_ms": -1}]
)
async def test_an_impossible_number_is_refused_at_once(wrong: dict[str, Any]) -> None:
    with pytest.raises(kafkaio.ConfigurationError):
        AIOKafkaProducer(**wrong)


@SIDES
@pytest.mark.parametrize("acks", [0, 1, -1, "all"])
async def test_each_number_of_acks_is_taken(name: str, acks: object) -> None:
    producer = side(name).top.AIOKafkaProducer(acks=acks)
    await producer.stop()


@SIDES
async def test_client_ids_are_counted(name: str) -> None:
    first, second = (side(name).top.AIOKafkaProducer() for _ in range(2))
    prefix, _, number = first.client._client_id.rpartition("-")
    assert prefix == "aiokafka-producer"
    assert second.client._client_id == f"aiokafka-producer-{int(number) + 1}"
    await first.stop()
    await second.stop()


@SIDES
async def test_instrumentations_find_what_they_read(name: str) -> None:
    producer = side(name).producer("broker:9092", client_id="mine")
    assert producer.client._bootstrap_servers == "broker:9092"
    assert producer.client._client_id == "mine"
    assert producer._closed is False
    assert producer._key_serializer is None
    assert producer._value_serializer is None
    await producer.stop()
    assert producer._closed is True


@SIDES
def test_it_needs_an_event_loop(name: str) -> None:
    with warnings.catch_warnings():
        # aiokafka asks for the current loop, and there is none.
        warnings.simplefilter("ignore", DeprecationWarning)
        with pytest.raises(RuntimeError):
            side(name).top.AIOKafkaProducer()


@SIDES
def test_a_loop_may_be_given(name: str) -> None:
    loop = asyncio.new_event_loop()
    with pytest.warns(DeprecationWarning, match="loop"):
        producer = side(name).top.AIOKafkaProducer(loop=loop)
    loop.run_until_complete(producer.stop())
    loop.close()


@SIDES
async def test_a_version_of_the_brokers_has_no_effect(name: str) -> None:
    with pytest.warns(DeprecationWarning, match="api_version"):
        producer = side(name).top.AIOKafkaProducer(api_version="2.0")
    await producer.stop()


async def test_tls_and_a_login_reach_the_client() -> None:
    context = ssl.create_default_context()
    producer = AIOKafkaProducer(
        security_protocol="SASL_SSL",
        ssl_context=context,
        sasl_mechanism="SCRAM-SHA-256",
        sasl_plain_username="ann",
        sasl_plain_password="secret",
    )
    options = producer.client._options
    assert options["ssl_context"] is context
    assert options["sasl_mechanism"] == "SCRAM-SHA-256"
    assert options["sasl_username"] == "ann"
    await producer.stop()
