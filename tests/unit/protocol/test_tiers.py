"""The interpreter does what compiled functions do, and gives way to them in time."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from random import Random

import pytest
from hypothesis import Phase, given, settings, strategies as st

from kafkaio.errors import KafkaError, ProtocolError
from kafkaio.protocol import _codec
from kafkaio.protocol._codec import (
    decode,
    decode_from,
    encode,
    encode_into,
    encode_parts,
)
from kafkaio.protocol._message import Buffer, Message, Struct
from kafkaio.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from kafkaio.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkaio.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.unit.protocol.populate import message_classes, populate, versions
from tests.unit.protocol.tiers import Tier, tier_of, unused

#: Positions of one message at which a byte is changed, or the message is cut off.
POSITIONS = 8
#: To shrink an example would take minutes; it is short enough.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
#: Values that no field takes.
MISFITS = (None, "x" * 40_000, "\ud800", 1 << 64, -(1 << 15), 1.5, b"x", [None], ())


def outcome(call: Callable[[], object]) -> object:
    """What a call returns, or the whole text of its error."""
    try:
        return call()
    except KafkaError as error:
        return f"{type(error).__name__}: {error}"


def encoded(message: Message, version: int) -> object:
    """The bytes, and the types of the buffers that hold them."""
    found = outcome(lambda: encode_parts(message, version))
    if isinstance(found, str):
        return found
    assert isinstance(found, list)
    return [(type(part), bytes(part)) for part in found]


def decoded(kind: type[Message], version: int, data: Buffer) -> object:
    """The message as bytes and as text, because NaN is not equal to itself."""
    found = outcome(lambda: decode_from(kind, version, data, 0))
    if isinstance(found, str):
        return found
    assert isinstance(found, tuple)
    message, position = found
    return described(message), position


def described(value: object) -> object:
    """The types and values of all that a message holds."""
    if isinstance(value, Struct):
        fields = [described(getattr(value, field.name)) for field in value.SCHEMA]
        return type(value), fields
    if isinstance(value, list):
        return [described(item) for item in value]
    if isinstance(value, memoryview):
        return memoryview, bytes(value)
    return type(value), repr(value)


def same(call: Callable[[], object]) -> None:
    with tier_of(Tier.INTERPRETED):
        interpreted = call()
    with tier_of(Tier.COMPILED):
        assert call() == interpreted


@pytest.mark.parametrize("kind", message_classes(), ids=lambda kind: kind.NAME)
@settings(max_examples=3, phases=PHASES)
@given(st.randoms(use_true_random=False))
def test_both_decode_the_same(kind: type[Message], random: Random) -> None:
    for version in versions(kind):
        data = encode(populate(kind, version, random), version)
        for form in (bytes, bytearray, memoryview):
            same(partial(decoded, kind, version, form(data)))
        for changed in changes(data, random):
            same(partial(decoded, kind, version, changed))


@pytest.mark.parametrize("kind", message_classes(), ids=lambda kind: kind.NAME)
@settings(max_examples=3, phases=PHASES)
@given(st.randoms(use_true_random=False))
def test_both_encode_the_same(kind: type[Message], random: Random) -> None:
    for version in versions(kind):
        message = populate(kind, version, random)
        # Other versions have no place for some of it.
        for other in {version, kind.MIN_VERSION, kind.LAST_VERSION}:
            same(partial(encoded, message, other))
        for changed in misfits(message, random):
            same(partial(encoded, changed, version))


def misfits(message: Message, random: Random) -> list[Message]:
    """Copies of a message, each with a value that does not fit its field."""
    found = []
    for field in message.SCHEMA:
        changed = copy(message)
        value = getattr(message, field.name)
        if isinstance(value, list) and value and isinstance(value[0], Struct):
            inner = copy(value[0])
            name = random.choice(inner.SCHEMA).name
            setattr(inner, name, random.choice(MISFITS))
            setattr(changed, field.name, [*value, inner])
        else:
            setattr(changed, field.name, random.choice(MISFITS))
        found.append(changed)
    return found


def changes(data: bytes, random: Random) -> list[bytes]:
    """The bytes cut off, with a byte that is another, and with bytes put in."""
    found = []
    for _ in range(POSITIONS):
        position = random.randrange(len(data) + 1)
        byte = bytes([random.choice((0, 1, 2, 0x7F, 0x80, 0xFF))])
        found += [
            data[:position],
            data[:position] + byte + data[position + 1 :],
            data[:position] + byte + data[position:],
        ]
    return found


def is_compiled(kind: type[Message], version: int) -> bool:
    table: object = _codec._ENCODERS | _codec._DECODERS
    assert isinstance(table, dict)
    return (kind, version) in table


def test_a_message_that_comes_often_is_compiled() -> None:
    with unused():
        for _ in range(64):
            assert not is_compiled(HeartbeatRequest, 4)
            data = encode(HeartbeatRequest(group_id="g"), 4)
            assert not is_compiled(HeartbeatResponse, 4)
            decode(HeartbeatResponse, 4, encode(HeartbeatResponse(error_code=3), 4))
        assert encode(HeartbeatRequest(group_id="g"), 4) == data
        assert is_compiled(HeartbeatRequest, 4)
        answer = encode(HeartbeatResponse(error_code=3), 4)
        assert decode(HeartbeatResponse, 4, answer) == HeartbeatResponse(error_code=3)
        assert is_compiled(HeartbeatResponse, 4)
        assert not _codec._WRITERS
        assert not _codec._READERS


def test_malformed_bytes_count_as_a_message() -> None:
    with unused():
        for _ in range(65):
            with pytest.raises(ProtocolError):
                decode(HeartbeatResponse, 4, b"")
        assert is_compiled(HeartbeatResponse, 4)


def test_a_long_answer_is_compiled_at_once() -> None:
    answer = ApiVersionsResponse(api_keys=[ApiVersion(api_key=i) for i in range(1000)])
    data = encode(answer, 3)
    with unused():
        assert decode(ApiVersionsResponse, 3, data) == answer
        assert is_compiled(ApiVersionsResponse, 3)


def test_a_long_request_is_compiled_in_the_middle() -> None:
    # The buffers of the first topic are complete when it turns out.
    large = bytes(10_000)
    topics = [
        TopicProduceData(
            name=name,
            partition_data=[
                PartitionProduceData(index=i, records=records) for i in range(count)
            ],
        )
        for name, records, count in (("a", large, 2), ("b", b"small", 1000))
    ]
    request = ProduceRequest(topic_data=topics)
    with tier_of(Tier.COMPILED):
        whole = encode(request, 9)
    with unused():
        out = bytearray(b"head")
        parts = encode_into(request, 9, out)
        assert is_compiled(ProduceRequest, 9)
    assert parts[0] is out
    assert b"".join(parts) == b"head" + whole
    assert sum(part is large for part in parts) == 2


def test_another_thread_may_compile_at_the_same_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The other versions of an answer are looked at while one is added."""
    layout, answer = _codec.layout, HeartbeatResponse(error_code=3)
    threads = iter(range(1000))

    def meanwhile(kind: type[Message], version: int) -> object:
        _codec._DECODERS[HeartbeatRequest, 100 + next(threads)] = _codec._DECODERS[
            HeartbeatResponse, 0
        ]
        return layout(kind, version)

    with unused():
        for version in (0, 1):
            for _ in range(65):
                decode(HeartbeatResponse, version, encode(answer, version))
        monkeypatch.setattr(_codec, "layout", meanwhile)
        for _ in range(65):
            assert decode(HeartbeatResponse, 4, encode(answer, 4)) == answer
