"""Bytes that Kafka's own classes wrote."""

from __future__ import annotations

import pytest

from kafkaio.protocol._codec import decode, encode
from kafkaio.protocol._message import Message
from tests.unit.protocol.golden import BYTES, MESSAGES

pytestmark = pytest.mark.usefixtures("tier")

CASES = [
    pytest.param(message, version, bytes.fromhex(text), id=f"{message.NAME}-{version}")
    for (message, version), text in zip(MESSAGES, BYTES, strict=True)
]


@pytest.mark.parametrize(("message", "version", "data"), CASES)
def test_encodes_to_the_bytes_of_java(
    message: Message, version: int, data: bytes
) -> None:
    assert encode(message, version).hex() == data.hex()


@pytest.mark.parametrize(("message", "version", "data"), CASES)
def test_decodes_the_bytes_of_java(message: Message, version: int, data: bytes) -> None:
    assert decode(type(message), version, data) == message
