"""The files a log directory is born with."""

import base64
import hashlib
import hmac
import struct

from crc32c import crc32c
from hypothesis import given, strategies as st

from kafkaio.testing.kafka._storage import (
    SCRAM_ITERATIONS,
    bootstrap_checkpoint,
    feature_record,
    meta_properties,
    random_uuid,
    scram_records,
    voters_checkpoint,
)

# Written by `kafka-storage format` of 4.3.1 for `metadata.version` 30, by layout:
# frame version, api key 12, version, compact string, level, no tagged fields.
METADATA_VERSION_30 = b"\x01\x0c\x00\x11metadata.version\x00\x1e\x00"


def batches(data: bytes) -> list[tuple[int, int, int, bytes]]:
    """Split into base offset, attributes, record count, records; check each CRC."""
    found = []
    while data:
        base, length, epoch, magic, crc = struct.unpack_from(">qiibI", data)
        body, data = data[21 : 12 + length], data[12 + length :]
        assert (epoch, magic, crc) == (0, 2, crc32c(body))
        attributes, delta = struct.unpack_from(">hi", body)
        (count,) = struct.unpack_from(">i", body, 36)
        assert delta == count - 1
        found.append((base, attributes, count, body[40:]))
    return found


def test_a_feature_level_is_spelled_as_kafka_spells_it() -> None:
    assert feature_record("metadata.version", 30) == METADATA_VERSION_30


def test_the_checkpoint_is_a_header_the_records_and_a_footer() -> None:
    data = bootstrap_checkpoint(
        {"metadata.version": 30, "group.version": 0}, {}, now_ms=1, salt=b""
    )
    header, records, footer = batches(data)
    assert header[:3] == (0, 0x20, 1)
    assert records[:3] == (1, 0, 2)
    assert footer[:3] == (3, 0x20, 1)
    assert struct.pack(">hh", 0, 3) in header[3]
    assert struct.pack(">hh", 0, 4) in footer[3]
    assert METADATA_VERSION_30 in records[3]
    assert feature_record("group.version", 0) in records[3]


@given(
    levels=st.dictionaries(
        st.text("abc.", min_size=1), st.integers(0, 2**15 - 1), min_size=1
    ),
    now_ms=st.integers(0, 2**62),
)
def test_offsets_run_on_through_the_checkpoint(
    levels: dict[str, int], now_ms: int
) -> None:
    data = bootstrap_checkpoint(levels, {}, now_ms=now_ms, salt=b"")
    header, records, footer = batches(data)
    assert records[0] == header[0] + header[2]
    assert footer[0] == records[0] + records[2]
    assert records[2] == len(levels)


def test_scram_credentials_hold_the_keys_of_rfc_5802() -> None:
    salt = bytes(range(24))
    first, second = scram_records("bob", "secret", salt)
    for record, mechanism, name in ((first, 1, "sha256"), (second, 2, "sha512")):
        salted = hashlib.pbkdf2_hmac(name, b"secret", salt, SCRAM_ITERATIONS)
        client = hmac.new(salted, b"Client Key", name).digest()
        stored = hashlib.new(name, client).digest()
        server = hmac.new(salted, b"Server Key", name).digest()
        assert record.startswith(b"\x01\x0b\x00\x04bob" + bytes([mechanism, 25]) + salt)
        assert stored in record
        assert server in record
        assert record.endswith(b"\x00\x00\x10\x00\x00")


def test_users_add_a_record_a_mechanism() -> None:
    data = bootstrap_checkpoint({"f": 1}, {"a": "x", "b": "y"}, now_ms=1, salt=b"s")
    assert batches(data)[1][2] == 5


def test_ids_are_16_bytes_in_base64_and_never_look_like_options() -> None:
    for _ in range(300):
        text = random_uuid()
        assert len(base64.urlsafe_b64decode(text + "==")) == 16
        assert not text.startswith("-")


def test_meta_properties_name_the_cluster_and_the_node() -> None:
    lines = meta_properties("c", 7, "d").splitlines()
    assert lines == ["version=1", "cluster.id=c", "node.id=7", "directory.id=d"]


def test_the_voters_are_spelled_as_kafka_spells_them() -> None:
    """As ``kafka-storage format --standalone`` of 4.3.1 writes them."""
    data = voters_checkpoint(1, "thecjZX7T6edLalQJ-39xw", "CONTROLLER", 20001, now_ms=1)
    head, footer = batches(data)
    assert head[:3] == (0, 0x20, 3)
    assert footer[:3] == (3, 0x20, 1)
    version = bytes.fromhex("0000 0001 00")
    voters = (
        bytes.fromhex("0000 02 00000001 b6179c8d95fb4fa79d2da95027edfdc7 02 0b")
        + b"CONTROLLER\x0a127.0.0.1"
        + bytes.fromhex("4e21 00 0000 0001 00 00 00")
    )
    assert struct.pack(">hh", 0, 5) + b"\x0a" + version in head[3]
    assert struct.pack(">hh", 0, 6) + b"\x6e" + voters in head[3]
