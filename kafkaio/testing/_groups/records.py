"""Records of ``__consumer_offsets`` in Kafka's format: offsets and classic groups.

The version of a key is the kind of its record: 1 is a committed offset, 2 a classic
group; those of KIP-848 groups are in ``kip848_records``. A record without a value (a
tombstone) deletes what was written for its key.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from uuid import UUID

from kafkaio.testing._groups.classic import ClassicGroup
from kafkaio.testing._groups.classic_member import ClassicGroupState, ClassicMember
from kafkaio.testing._groups.offsets import Committed, Place

_OFFSET_KEY = 1
_GROUP_KEY = 2
# The kinds of records of KIP-848 groups.
_KIP848_KEYS = (3, 5, 6, 7, 8, 16)
# Those of share groups.
_SHARE_KEYS = (10, 11, 12, 13, 14)
_VALUE_VERSION = 3
_FIRST_OFFSET_WITH_EPOCH = 3
_FIRST_FLEXIBLE_OFFSET = 4
_LAST_OFFSET_VALUE = 4
_FIRST_GROUP_WITH_TIME = 2
_FIRST_GROUP_WITH_STATIC = 3
_FIRST_FLEXIBLE_GROUP = 4
_LAST_GROUP_VALUE = 4


@dataclass(frozen=True, slots=True)
class GroupImage:
    """The content of a classic group's record."""

    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    timestamp_ms: int
    members: tuple[ClassicMember, ...]


class _FieldReader:
    """Reads a record; with ``is_flexible``, lengths are compact and there are tags."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self.is_flexible = False

    def version(self, last: int) -> int:
        """Read the version that a value begins with.

        Raises:
            ValueError: the version is unknown.
        """
        found = self.number(">h")
        if not 0 <= found <= last:
            raise ValueError(f"unknown version {found} of a coordinator record")
        return found

    @property
    def is_at_end(self) -> bool:
        return self._at == len(self._data)

    def number(self, kind: str) -> int:
        (value,) = struct.unpack_from(kind, self._data, self._at)
        self._at += struct.calcsize(kind)
        assert isinstance(value, int)
        return value

    def take(self, size: int) -> bytes:
        found = self._data[self._at : self._at + size]
        self._at += size
        return found

    def length(self, kind: str) -> int:
        """Read a length; a compact one is written plus one."""
        return self._varint() - 1 if self.is_flexible else self.number(kind)

    def text(self) -> str | None:
        size = self.length(">h")
        return None if size < 0 else self.take(size).decode()

    def blob(self) -> bytes:
        return self.take(self.length(">i"))

    def tags(self) -> dict[int, bytes]:
        """Read the tagged fields, which end a structure of a flexible version."""
        if not self.is_flexible:
            return {}
        count = self._varint()
        return {self._varint(): self.take(self._varint()) for _ in range(count)}

    def _varint(self) -> int:
        found = shift = 0
        while True:
            byte = self.number(">B")
            found |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return found


def _text(value: str | None) -> bytes:
    if value is None:
        return b"\xff\xff"
    data = value.encode()
    return struct.pack(">h", len(data)) + data


def _blob(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


def offset_key(group: str, place: Place) -> bytes:
    """Return the key of a committed offset."""
    head = struct.pack(">h", _OFFSET_KEY)
    return head + _text(group) + _text(place[0]) + struct.pack(">i", place[1])


def group_key(group: str) -> bytes:
    """Return the key of a classic group."""
    return part_key(_GROUP_KEY, group)


def part_key(kind: int, group: str, part: str | None = None) -> bytes:
    """Return the key of a record of a group, or of a named part of it."""
    head = struct.pack(">h", kind) + _text(group)
    return head if part is None else head + _text(part)


def key_parts(key: bytes) -> tuple[int, str, str]:
    """Return kind, group and part of a key of `part_key`; "" if it has no part."""
    reader = _FieldReader(key)
    kind, group = reader.number(">h"), reader.text() or ""
    return kind, group, "" if reader.is_at_end else reader.text() or ""


def read_key(key: bytes) -> tuple[str, Place | None] | None:
    """Return the group and, for an offset, its partition; None for unknown kinds."""
    reader = _FieldReader(key)
    kind = reader.number(">h")
    # Streams groups have records of their own in the same topic.
    if kind not in {0, _OFFSET_KEY, _GROUP_KEY, *_KIP848_KEYS, *_SHARE_KEYS}:
        return None
    group = reader.text() or ""
    if kind not in {0, _OFFSET_KEY}:
        return group, None
    return group, (reader.text() or "", reader.number(">i"))


def offset_value(committed: Committed) -> bytes:
    """Return the value of a committed offset."""
    return b"".join(
        (
            struct.pack(
                ">hqi", _VALUE_VERSION, committed.offset, committed.leader_epoch
            ),
            _text(committed.metadata),
            struct.pack(">q", committed.timestamp),
        )
    )


def read_offset(value: bytes) -> Committed:
    """Read the value of a committed offset, in any version that Kafka has written.

    Versions 0 to 2 have no leader epoch; version 1 has an expiration time; version 4 is
    flexible and has the topic's id.

    Raises:
        ValueError: the version is unknown.
    """
    reader = _FieldReader(value)
    version = reader.version(_LAST_OFFSET_VALUE)
    reader.is_flexible = version >= _FIRST_FLEXIBLE_OFFSET
    offset = reader.number(">q")
    epoch = reader.number(">i") if version >= _FIRST_OFFSET_WITH_EPOCH else -1
    metadata, timestamp = reader.text() or "", reader.number(">q")
    expires = reader.number(">q") if version == 1 else -1
    topic_id = reader.tags().get(0, b"")
    return Committed(
        offset,
        epoch,
        metadata,
        timestamp,
        expires if expires >= 0 else None,
        UUID(bytes=topic_id) if topic_id.strip(b"\0") else None,
    )


def group_value(image: GroupImage) -> bytes:
    """Return the value of a classic group."""
    parts = [
        struct.pack(">h", _VALUE_VERSION),
        _text(image.protocol_type),
        struct.pack(">i", image.generation),
        _text(image.protocol),
        _text(image.leader),
        struct.pack(">qi", image.timestamp_ms, len(image.members)),
    ]
    for member in image.members:
        subscription = member.metadata(image.protocol) if image.protocol else b""
        parts += (
            _text(member.id),
            _text(member.instance_id),
            _text(member.client_id),
            _text(member.client_host),
            struct.pack(
                ">ii",
                round(member.rebalance_timeout * 1000),
                round(member.session_timeout * 1000),
            ),
            _blob(subscription),
            _blob(member.assignment),
        )
    return b"".join(parts)


def read_group(value: bytes) -> GroupImage:
    """Read the value of a classic group, in any version that Kafka has written.

    Rebalance timeouts exist since version 1, the time of the last change since version
    2, static members since version 3; version 4 is flexible.

    Raises:
        ValueError: the version is unknown.
    """
    reader = _FieldReader(value)
    version = reader.version(_LAST_GROUP_VALUE)
    reader.is_flexible = version >= _FIRST_FLEXIBLE_GROUP
    protocol_type = reader.text() or ""
    generation = reader.number(">i")
    protocol, leader = reader.text(), reader.text()
    timestamp = reader.number(">q") if version >= _FIRST_GROUP_WITH_TIME else -1
    count = reader.length(">i")
    members = tuple(_read_member(reader, version, protocol or "") for _ in range(count))
    return GroupImage(protocol_type, generation, protocol, leader, timestamp, members)


def _read_member(reader: _FieldReader, version: int, protocol: str) -> ClassicMember:
    member_id = reader.text()
    instance_id = reader.text() if version >= _FIRST_GROUP_WITH_STATIC else None
    client_id, client_host = reader.text(), reader.text()
    rebalance_ms = reader.number(">i") if version else -1
    session_ms = reader.number(">i")
    if not version:
        # Before version 1 the session timeout was the rebalance timeout, too.
        rebalance_ms = session_ms
    member = ClassicMember(
        id=member_id or "",
        instance_id=instance_id,
        client_id=client_id or "",
        client_host=client_host or "",
        session_timeout=session_ms / 1000,
        rebalance_timeout=rebalance_ms / 1000,
        # The record has the metadata of the chosen protocol only; the others are known
        # when the member joins again.
        protocols=((protocol, reader.blob()),),
        assignment=reader.blob(),
    )
    reader.tags()
    return member


def image_of(group: ClassicGroup, now_ms: int) -> GroupImage:
    """Return the content of a group's record; members only if it has a protocol."""
    return GroupImage(
        group.protocol_type or "",
        group.generation,
        group.protocol,
        group.leader,
        now_ms,
        tuple(group.members.values()) if group.protocol else (),
    )


def restore(group: ClassicGroup, image: GroupImage, now: float) -> None:
    """Restore a new group from its record; all sessions are renewed."""
    group.protocol_type = image.protocol_type or None
    group.generation = image.generation
    group.protocol = image.protocol
    group.leader = image.leader
    group.empty_since_ms = image.timestamp_ms
    # A group is written only in these states.
    group.state = ClassicGroupState.STABLE if image.members else ClassicGroupState.EMPTY
    for member in image.members:
        group.members[member.id] = member
        if member.instance_id is not None:
            group.static[member.instance_id] = member.id
        member.renew_session(now)
