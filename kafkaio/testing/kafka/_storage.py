"""Format a broker's log directory, as ``kafka-storage format`` does, without a JVM.

A KRaft log directory is born with two files: ``meta.properties`` names the
cluster and the node; ``bootstrap.checkpoint`` is a snapshot of the metadata log
that sets feature levels and SCRAM users (KIP-584, KIP-631, KIP-900). If voters can be
added and removed, the first of them has a third file: a snapshot of the metadata log's
partition that names the voters (KIP-853).
"""

import base64
import hashlib
import hmac
import struct
import uuid
from collections.abc import Mapping, Sequence
from typing import Final

from kafkaio._records._impl import crc32c
from kafkaio._records._layout import encode_varint
from kafkaio.protocol._codec import encode
from kafkaio.protocol._primitives import uvarint
from kafkaio.protocol.messages.kraft_version_record import KRaftVersionRecord
from kafkaio.protocol.messages.voters_record import (
    Endpoint,
    KRaftVersionFeature,
    Voter,
    VotersRecord,
)

_CONTROL_ATTRIBUTE: Final = 0x20
_SNAPSHOT_HEADER_KEY: Final = struct.pack(">hh", 0, 3)
_SNAPSHOT_FOOTER_KEY: Final = struct.pack(">hh", 0, 4)
_KRAFT_VERSION_KEY: Final = struct.pack(">hh", 0, 5)
_VOTERS_KEY: Final = struct.pack(">hh", 0, 6)
_SNAPSHOT_HEADER: Final = b"\0" * 11  # version, last contained timestamp, no tags
_SNAPSHOT_FOOTER: Final = b"\0" * 3
# Frame version, api key and version of the record kinds in the metadata log.
_FEATURE_LEVEL_RECORD: Final = b"\x01\x0c\x00"
_SCRAM_RECORD: Final = b"\x01\x0b\x00"
#: The file in its log directory from which a node reads the voters.
VOTERS_FILE: Final = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
_DYNAMIC: Final = KRaftVersionRecord(kraft_version=1)
_MECHANISMS: Final = ((1, "sha256"), (2, "sha512"))
SCRAM_ITERATIONS: Final = 4096


def random_uuid() -> str:
    """Return a new id in Kafka's spelling: base64 of 16 bytes, no padding."""
    text = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
    # On a command line a leading dash would make the id an option.
    return text.replace("-", "A", 1) if text.startswith("-") else text


def _compact(data: bytes) -> bytes:
    return uvarint(len(data) + 1) + data


def _record(delta: int, key: bytes | None, value: bytes) -> bytes:
    spelled_key = encode_varint(-1) if key is None else encode_varint(len(key)) + key
    body = b"".join(
        (
            b"\0",
            encode_varint(0),
            encode_varint(delta),
            spelled_key,
            encode_varint(len(value)),
            value,
            encode_varint(0),
        )
    )
    return encode_varint(len(body)) + body


def _batch(
    base: int,
    records: Sequence[tuple[bytes | None, bytes]],
    *,
    control: bool,
    now_ms: int,
) -> bytes:
    attributes = _CONTROL_ATTRIBUTE if control else 0
    count = len(records)
    body = struct.pack(
        ">hiqqqhii", attributes, count - 1, now_ms, now_ms, -1, -1, -1, count
    ) + b"".join(_record(i, key, value) for i, (key, value) in enumerate(records))
    # Nine bytes of the header come behind the length: epoch, magic byte and checksum.
    return struct.pack(">qiibI", base, len(body) + 9, 0, 2, crc32c(body)) + body


def feature_record(name: str, level: int) -> bytes:
    """Return a FeatureLevelRecord: feature ``name`` is finalized at ``level``."""
    return (
        _FEATURE_LEVEL_RECORD + _compact(name.encode()) + struct.pack(">hb", level, 0)
    )


def scram_records(user: str, password: str, salt: bytes) -> list[bytes]:
    """Return the credentials of a user, one record per mechanism (RFC 5802)."""
    records = []
    for mechanism, digest in _MECHANISMS:
        salted = hashlib.pbkdf2_hmac(digest, password.encode(), salt, SCRAM_ITERATIONS)
        client_key = hmac.digest(salted, b"Client Key", digest)
        records.append(
            b"".join(
                (
                    _SCRAM_RECORD,
                    _compact(user.encode()),
                    bytes([mechanism]),
                    _compact(salt),
                    _compact(hashlib.new(digest, client_key).digest()),
                    _compact(hmac.digest(salted, b"Server Key", digest)),
                    struct.pack(">ib", SCRAM_ITERATIONS, 0),
                )
            )
        )
    return records


def bootstrap_checkpoint(
    features: Mapping[str, int],
    users: Mapping[str, str],
    *,
    now_ms: int,
    salt: bytes,
) -> bytes:
    """Return the bytes of ``bootstrap.checkpoint``.

    Args:
        features: Feature levels to finalise.
        users: SCRAM users and their passwords.
        now_ms: The batches' timestamp, milliseconds since 1970.
        salt: The salt of every SCRAM credential.
    """
    values = [feature_record(name, level) for name, level in features.items()]
    for user, password in users.items():
        values += scram_records(user, password, salt)
    header = [(_SNAPSHOT_HEADER_KEY, _SNAPSHOT_HEADER)]
    footer = [(_SNAPSHOT_FOOTER_KEY, _SNAPSHOT_FOOTER)]
    records = [(None, value) for value in values]
    # Offsets go on over all three batches.
    end = 1 + len(records)
    return (
        _batch(0, header, control=True, now_ms=now_ms)
        + _batch(1, records, control=False, now_ms=now_ms)
        + _batch(end, footer, control=True, now_ms=now_ms)
    )


def voters_checkpoint(
    node_id: int, directory_id: str, listener: str, port: int, *, now_ms: int
) -> bytes:
    """Return the bytes of `VOTERS_FILE` of a controller that is the only voter.

    Args:
        node_id: Its id.
        directory_id: The id of its log directory, in Kafka's spelling.
        listener: The name of its listener.
        port: The listener's port on 127.0.0.1.
        now_ms: The batches' timestamp, milliseconds since 1970.
    """
    voter = Voter(
        voter_id=node_id,
        voter_directory_id=uuid.UUID(
            bytes=base64.urlsafe_b64decode(directory_id + "==")
        ),
        endpoints=[Endpoint(name=listener, host="127.0.0.1", port=port)],
        kraft_version_feature=KRaftVersionFeature(max_supported_version=1),
    )
    head = [
        (_SNAPSHOT_HEADER_KEY, _SNAPSHOT_HEADER),
        (_KRAFT_VERSION_KEY, encode(_DYNAMIC, 0)),
        (_VOTERS_KEY, encode(VotersRecord(voters=[voter]), 0)),
    ]
    footer = [(_SNAPSHOT_FOOTER_KEY, _SNAPSHOT_FOOTER)]
    return _batch(0, head, control=True, now_ms=now_ms) + _batch(
        len(head), footer, control=True, now_ms=now_ms
    )


def meta_properties(cluster_id: str, node_id: int, directory_id: str) -> str:
    """Return the text of ``meta.properties`` for a new log directory."""
    return (
        f"version=1\ncluster.id={cluster_id}\nnode.id={node_id}\n"
        f"directory.id={directory_id}\n"
    )
