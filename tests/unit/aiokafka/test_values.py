"""Structs, the partitioner, and the functions of ``helpers`` and ``util``."""

from __future__ import annotations

import asyncio
import pickle
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trustme
from hypothesis import given, strategies as st

import kafkaio
from kafkaio import aiokafka
from kafkaio._records._murmur2 import murmur2
from kafkaio.aiokafka import partitioner, util
from kafkaio.aiokafka.helpers import create_ssl_context
from kafkaio.aiokafka.structs import (
    ConsumerRecord,
    OffsetAndMetadata,
    RecordMetadata,
    TopicPartition,
)

TP = TopicPartition("t", 1)


# ---- records -------------------------------------------------------------------------


def test_records_of_kafkaio_are_consumer_records() -> None:
    record = kafkaio.Record("t", 0, 1, 2, None, b"v")
    pure = kafkaio.types.Record("t", 0, 1, 2, None, b"v")
    for each in (record, pure):
        assert isinstance(each, ConsumerRecord)
        assert issubclass(type(each), ConsumerRecord)
    assert not isinstance(object(), ConsumerRecord)
    assert not issubclass(int, ConsumerRecord)


def test_a_program_makes_consumer_records() -> None:
    record: ConsumerRecord[bytes, str] = ConsumerRecord(
        topic="t",
        partition=1,
        offset=2,
        timestamp=3,
        timestamp_type=0,
        key=b"k",
        value="v",
        checksum=None,
        serialized_key_size=1,
        serialized_value_size=1,
        headers=[("h", b"x")],
    )
    assert isinstance(record, ConsumerRecord)
    assert (record.topic, record.key, record.value) == ("t", b"k", "v")
    assert pickle.loads(pickle.dumps(record)) == record
    record.value = "other"
    assert record.value == "other"


def test_partitions_are_those_of_kafkaio() -> None:
    assert aiokafka.TopicPartition is kafkaio.TopicPartition
    assert RecordMetadata("t", 1, TP, 2, 3, 0, None).topic_partition == TP


# ---- partitioner ---------------------------------------------------------------------


@given(st.binary(max_size=40))
def test_murmur2_is_that_of_the_producer(data: bytes) -> None:
    # The sign bit is masked where a partition is chosen.
    assert partitioner.murmur2(data) & 0x7FFFFFFF == murmur2(data) & 0x7FFFFFFF
    assert 0 <= partitioner.murmur2(data) < 2**32


@given(st.binary(max_size=40))
def test_murmur2_is_that_of_aiokafka(data: bytes) -> None:
    theirs = pytest.importorskip("aiokafka.partitioner")
    assert partitioner.murmur2(data) == theirs.murmur2(data)


def test_partitions_of_keys_and_of_none() -> None:
    choose = partitioner.DefaultPartitioner()
    # A key has its partition, whether that has a leader or not.
    assert {choose(b"key", [5, 6, 7], [n]) for n in (5, 6, 7)} == {
        5 + (partitioner.murmur2(b"key") & 0x7FFFFFFF) % 3
    }
    assert {choose(None, [0, 1, 2], [2]) for _ in range(9)} == {2}
    assert {choose(None, [0, 1, 2], []) for _ in range(99)} == {0, 1, 2}


# ---- util ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0.9", (0, 9, 0)), ("0.10.2", (0, 10, 2)), ("2.8.1", (2, 8, 1))],
)
def test_versions(text: str, expected: tuple[int, ...]) -> None:
    assert util.parse_kafka_version(text) == expected


@pytest.mark.parametrize(
    "text", ["auto", "0.8.2", "3.0", "1", "1.2.3.4", "", "1.x", "1.\u0662", "1" * 9000]
)
def test_what_is_no_version(text: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the text is the version
        util.parse_kafka_version(text)
    assert raised.value.args == (text,)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (5, OffsetAndMetadata(5, "")),
        ((5, "m"), OffsetAndMetadata(5, "m")),
        (OffsetAndMetadata(5, "m"), OffsetAndMetadata(5, "m")),
    ],
)
def test_offsets_to_commit(given: Any, expected: OffsetAndMetadata) -> None:
    assert util.commit_structure_validate({TP: given}) == {TP: expected}


@pytest.mark.parametrize(
    ("offsets", "kind"),
    [
        ({}, ValueError),
        (None, ValueError),
        ([(TP, 1)], ValueError),
        ({TP: "text"}, ValueError),
        ({TP: (1, 2, 3)}, ValueError),
        ({TP: (1, None)}, TypeError),
        ({("t", 0): 1}, TypeError),
    ],
)
def test_offsets_that_cannot_be_committed(offsets: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        util.commit_structure_validate(offsets)


async def test_futures_tasks_and_limits() -> None:
    future: asyncio.Future[int] = util.create_future()
    task = util.create_task(asyncio.sleep(0, 3))
    future.set_result(2)
    assert (await future, await task) == (2, 3)
    assert await util.wait_for(asyncio.sleep(0, 4)) == 4
    with pytest.raises(TimeoutError):
        await util.wait_for(asyncio.Event().wait(), 0.001)
    assert util.get_running_loop() is asyncio.get_running_loop()


def test_no_loop_runs() -> None:
    makers: list[Callable[[], object]] = [util.get_running_loop, util.create_future]
    for make in makers:
        with pytest.raises(RuntimeError, match="async function"):
            make()


# ---- TLS -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    issued = authority.issue_cert("client.example.com")
    issued.private_key_and_cert_chain_pem.write_to_path(folder / "both.pem")
    issued.private_key_pem.write_to_path(folder / "key.pem")
    issued.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    return folder


def test_tls_settings_check_the_broker(certificates: Path) -> None:
    context = create_ssl_context(cafile=str(certificates / "ca.pem"))
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert len(context.get_ca_certs()) == 1


def test_certificates_of_the_client(certificates: Path) -> None:
    text = (certificates / "ca.pem").read_text()
    for files in (
        {"certfile": certificates / "both.pem"},
        {"certfile": certificates / "cert.pem", "keyfile": certificates / "key.pem"},
    ):
        create_ssl_context(cadata=text, password="", **files)
    with pytest.raises(ssl.SSLError):
        create_ssl_context(certfile=certificates / "cert.pem")
    with pytest.raises(FileNotFoundError):
        create_ssl_context(cafile=str(certificates / "nothing.pem"))
