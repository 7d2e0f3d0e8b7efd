"""The blobs that members exchange."""

from __future__ import annotations

import struct
from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import given

from kafkaio._machines.membership.subscription import (
    Subscription,
    decode_assignment,
    decode_free,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kafkaio.errors import ProtocolError
from kafkaio.types import TopicPartition

NAMES = st.text("abc-.", min_size=1, max_size=5)
PARTITIONS = st.frozensets(st.builds(TopicPartition, NAMES, st.integers(0, 99)))


@given(
    st.builds(
        Subscription,
        topics=st.frozensets(NAMES),
        owned=PARTITIONS,
        generation=st.integers(-1, 2**31 - 1),
        rack=st.none() | NAMES,
        user_data=st.none() | st.binary(max_size=9),
        group_instance_id=st.none() | NAMES,
        withheld=PARTITIONS,
    )
)
def test_a_subscription_comes_back(subscription: Subscription) -> None:
    blob = encode_subscription(subscription)
    assert decode_subscription(blob, subscription.group_instance_id) == subscription


@given(PARTITIONS)
def test_an_assignment_comes_back(partitions: frozenset[TopicPartition]) -> None:
    assert decode_assignment(encode_assignment(partitions)) == partitions


@given(PARTITIONS, st.none() | PARTITIONS)
def test_what_is_free_comes_back_beside_the_share(
    partitions: frozenset[TopicPartition], free: frozenset[TopicPartition] | None
) -> None:
    blob = encode_assignment(partitions, free)
    assert decode_assignment(blob) == partitions
    assert decode_free(blob) == free


def test_a_word_of_ours_stands_behind_what_an_assignor_reads() -> None:
    plain = Subscription(topics=frozenset({"t"}), user_data=b"\0\0\0\5")
    marked = replace(plain, withheld=frozenset({TopicPartition("t", 1)}))
    start = encode_subscription(plain).index(b"\0\0\0\5")
    assert encode_subscription(marked)[start:].startswith(b"\0\0\0\5")


@pytest.mark.parametrize(
    "theirs",
    [
        b"kafkaio withheld",
        b"1234kafkaio withheld",
        b"\0\0\0\2\0\0\0\2kafkaio withheld",
        b"\xff\xff\xff\xffkafkaio withheld",
    ],
)
def test_what_only_looks_like_our_word_is_the_assignors(theirs: bytes) -> None:
    said = Subscription(topics=frozenset({"t"}), user_data=theirs)
    assert decode_subscription(encode_subscription(said)) == said


def test_the_bytes_of_java() -> None:
    # ConsumerProtocol.serializeSubscription of kafka-clients 4.3.1, version 3.
    blob = encode_subscription(
        Subscription(
            topics=frozenset({"b", "a"}),
            owned=frozenset({TopicPartition("a", 1), TopicPartition("a", 0)}),
            generation=7,
        )
    )
    assert blob == bytes.fromhex(
        "0003 00000002 000161 000162 ffffffff 00000001 000161 00000002 00000000"
        "00000001 00000007 ffff"
    )


def test_an_old_version_has_less() -> None:
    blob = struct.pack(">hih1si", 0, 1, 1, b"t", -1)
    assert decode_subscription(blob) == Subscription(topics=frozenset({"t"}))


def test_a_newer_version_is_read_as_ours_and_its_rest_ignored() -> None:
    blob = encode_subscription(Subscription(topics=frozenset({"t"}), generation=3))
    newer = struct.pack(">h", 9) + blob[2:] + b"something new"
    assert decode_subscription(newer).generation == 3


@pytest.mark.parametrize("blob", [b"", b"\0", b"\xff\xff\0\0\0\0", b"\0\0\0\0\0\x09"])
def test_what_is_no_blob_is_refused(blob: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_assignment(blob)
