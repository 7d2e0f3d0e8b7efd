"""The three requests a test cluster needs, spoken over a plain blocking socket.

It does not use ``kafkaio.protocol``: what prepares a test must not depend on the
code under test. Metadata v1 and CreateTopics v2 are understood by every
release from 2.1 to 4.x (KIP-896 keeps them); so is DeleteTopics v1.
"""

import socket
import struct
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from kafkaio._public import public

Address: TypeAlias = tuple[str, int]

_METADATA: Final = 3
_METADATA_VERSION: Final = 1
_CREATE_TOPICS: Final = 19
_CREATE_TOPICS_VERSION: Final = 2
_DELETE_TOPICS: Final = 20
_DELETE_TOPICS_VERSION: Final = 1
_CORRELATION_ID: Final = 1
_CLIENT_ID: Final = b"kafkaio-testing"
_LARGEST_ANSWER: Final = 64 * 1024 * 1024
NO_ERROR: Final = 0
UNKNOWN_TOPIC: Final = 3
TOPIC_ALREADY_EXISTS: Final = 36
NOT_CONTROLLER: Final = 41


@public("kafkaio.testing.kafka")
class TopicNotCreated(RuntimeError):
    """A broker refused to create a topic; carries the error code."""

    def __init__(self, name: str, code: int, message: str | None):
        super().__init__(f"topic {name}: error {code}: {message}")
        self.code = code


@dataclass(frozen=True, slots=True)
class WirePartition:
    """One partition as a broker describes it; leader -1 means none."""

    index: int
    leader: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WireMetadata:
    """The metadata of one broker."""

    brokers: dict[int, Address]
    controller: int
    topics: dict[str, tuple[WirePartition, ...]]


class _WireReader:
    def __init__(self, data: bytes):
        self._data = data
        self._at = 0

    def _take(self, layout: str) -> int:
        (value,) = struct.unpack_from(layout, self._data, self._at)
        self._at += struct.calcsize(layout)
        return int(value)

    def int8(self) -> int:
        return self._take(">b")

    def int16(self) -> int:
        return self._take(">h")

    def int32(self) -> int:
        return self._take(">i")

    def string(self) -> str | None:
        length = self.int16()
        if length < 0:
            return None
        text = self._data[self._at : self._at + length].decode()
        self._at += length
        return text

    def each(self) -> Iterator[int]:
        """Iterate over an array; null is an empty array."""
        return iter(range(self.int32()))

    def numbers(self) -> tuple[int, ...]:
        return tuple(self.int32() for _ in self.each())


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _read_exactly(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise ConnectionError("closed before the answer")
        data += piece
    return bytes(data)


def _call(
    address: Address, key: int, version: int, body: bytes, timeout: float
) -> bytes:
    """Send one request and return the answer behind its correlation id.

    Raises:
        OSError: No complete answer came in time from that address.
    """
    with socket.create_connection(address, timeout) as connection:
        # A port of the ephemeral range without a listener can connect to itself.
        if connection.getsockname() == connection.getpeername():
            raise ConnectionError("connected to ourselves")
        head = struct.pack(">hhih", key, version, _CORRELATION_ID, len(_CLIENT_ID))
        request = head + _CLIENT_ID + body
        connection.sendall(struct.pack(">i", len(request)) + request)
        (size,) = struct.unpack(">i", _read_exactly(connection, 4))
        # Another program may listen at this port.
        if not 4 <= size <= _LARGEST_ANSWER:
            raise ConnectionError(f"not an answer of Kafka's: {size} bytes")
        return _read_exactly(connection, size)[4:]


def read_metadata(data: bytes) -> WireMetadata:
    """Decode a Metadata v1 response body."""
    reader = _WireReader(data)
    brokers: dict[int, Address] = {}
    for _ in reader.each():
        node_id, host, port = reader.int32(), reader.string(), reader.int32()
        reader.string()  # rack
        brokers[node_id] = (host or "", port)
    controller = reader.int32()
    topics: dict[str, tuple[WirePartition, ...]] = {}
    for _ in reader.each():
        reader.int16()  # a topic with an error has no partitions
        name = reader.string() or ""
        reader.int8()  # internal
        topics[name] = tuple(_read_partition(reader) for _ in reader.each())
    return WireMetadata(brokers, controller, topics)


def _read_partition(reader: _WireReader) -> WirePartition:
    reader.int16()  # shows as leader -1
    index, leader = reader.int32(), reader.int32()
    return WirePartition(index, leader, reader.numbers(), reader.numbers())


def metadata(
    address: Address, topics: tuple[str, ...] = (), timeout: float = 1.0
) -> WireMetadata:
    """Request the metadata of one broker.

    Raises:
        OSError: The broker does not answer.
    """
    # Version 1: an empty array asks for no topic, and creates none.
    body = struct.pack(">i", len(topics)) + b"".join(map(_string, topics))
    try:
        return read_metadata(
            _call(address, _METADATA, _METADATA_VERSION, body, timeout)
        )
    except struct.error as error:
        raise ConnectionError(f"short answer: {error}") from error


def create_topics_body(
    name: str,
    partitions: int,
    replication_factor: int,
    config: Mapping[str, str],
    timeout: float,
) -> bytes:
    """Encode a CreateTopics v2 request body for one topic."""
    entries = b"".join(_string(key) + _string(value) for key, value in config.items())
    return b"".join(
        (
            struct.pack(">i", 1),
            _string(name),
            struct.pack(">ihi", partitions, replication_factor, 0),
            struct.pack(">i", len(config)),
            entries,
            struct.pack(">ib", int(timeout * 1000), 0),
        )
    )


def create_topic(address: Address, body: bytes, timeout: float) -> None:
    """Send a CreateTopics v2 body to one broker.

    Raises:
        TopicNotCreated: The broker answered with an error.
        OSError: The broker does not answer.
    """
    answer = _call(address, _CREATE_TOPICS, _CREATE_TOPICS_VERSION, body, timeout)
    reader = _WireReader(answer)
    reader.int32()  # throttle time
    for _ in reader.each():
        name, code, message = reader.string(), reader.int16(), reader.string()
        if code != NO_ERROR:
            raise TopicNotCreated(name or "", code, message)


def delete_topics(
    address: Address, names: Collection[str], timeout: float
) -> dict[str, int]:
    """Ask one broker to delete topics.

    Returns:
        The error code of each that is still there.

    Raises:
        OSError: The broker does not answer.
    """
    body = struct.pack(">i", len(names)) + b"".join(map(_string, names))
    body += struct.pack(">i", int(timeout * 1000))
    answer = _call(address, _DELETE_TOPICS, _DELETE_TOPICS_VERSION, body, timeout)
    reader = _WireReader(answer)
    reader.int32()  # throttle time
    codes = {reader.string() or "": reader.int16() for _ in reader.each()}
    return {
        n: code for n, code in codes.items() if code not in {NO_ERROR, UNKNOWN_TOPIC}
    }
