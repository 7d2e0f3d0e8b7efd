"""What is fuzzed: functions of bytes, and the errors that each may raise.

The first bytes choose the message, the version or the codec, so that one corpus serves
all of a kind.
"""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from kafkaio._machines.membership.classic.leader import Leadership
from kafkaio._machines.membership.subscription import (
    Subscription,
    decode_assignment,
    decode_free,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kafkaio._machines.sasl.gssapi import Gssapi
from kafkaio._machines.sasl.mechanism import MechanismPort
from kafkaio._machines.sasl.oauthbearer import OAuthBearer
from kafkaio._machines.sasl.plain import Plain
from kafkaio._machines.sasl.scram import SaltedPasswords, Scram
from kafkaio._records import _pure
from kafkaio._records._layout import BATCH_HEADER_SIZE, Origin
from kafkaio._records.batch import read_batches
from kafkaio._records.builder import BatchBuilder
from kafkaio._records.compression import Compression
from kafkaio.errors import (
    AuthenticationError,
    ConfigurationError,
    CorruptRecord,
    ProtocolError,
    RecordTooLarge,
    UnsupportedVersion,
)
from kafkaio.protocol import _codec as codec
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._framing import FrameBuffer
from kafkaio.protocol._headers import (
    decode_api_versions,
    decode_request,
    encode_request,
)
from kafkaio.protocol._message import Message
from kafkaio.protocol._requests import request_type
from kafkaio.protocol.messages.api_versions import ApiVersionsRequest
from kafkaio.protocol.messages.join_group import JoinGroupResponseMember
from kafkaio.testing._log.epochs import read_epochs
from kafkaio.testing._log.inspect import verify
from kafkaio.types import Record, TimestampType, Token, TopicPartition

try:
    from kafkaio._records import _speedups as compiled
except ImportError:  # it is not built
    compiled = _pure  # type: ignore[assignment]

__all__ = ["TARGETS", "Target", "seeds"]

Target = Callable[[bytes], None]

#: The most memory that the records of one batch may take here.
_LIMIT: Final = 1 << 20


@lru_cache(maxsize=1)
def messages() -> Sequence[tuple[type[Message], int]]:
    """Every request and response, in every version."""
    found: list[tuple[type[Message], int]] = []
    for key in ApiKey:
        try:
            request = request_type(key)
        except ProtocolError:  # requests among brokers alone
            continue
        for kind in (request, request.response_type()):
            versions = range(kind.MIN_VERSION, kind.LAST_VERSION + 1)
            found += [(kind, version) for version in versions]
    return found


def message(data: bytes) -> None:
    """Decode a message; both decoders agree, and it survives a round trip."""
    known = messages()
    kind, version = known[int.from_bytes(data[:2]) % len(known)]
    body = data[2:]
    try:
        whole = codec.decode(kind, version, body)
    except ProtocolError:
        whole = None
    sliced = _in_slices(kind, version, body)
    assert (whole is None) == (sliced is None), "the sliced decoder disagrees"
    if whole is None or sliced is None:
        return
    # Not compared as objects: NaN is not equal to itself.
    written = codec.encode(whole, version)
    assert codec.encode(sliced, version) == written, "it finds another value"
    again = codec.decode(kind, version, written)
    assert codec.encode(again, version) == written, "it changes on a round trip"


def _in_slices(kind: type[Message], version: int, body: bytes) -> Message | None:
    slices = codec.decode_in_slices(kind, version, body, 0, max_memory=1 << 40)
    while True:
        try:
            next(slices)
        except StopIteration as end:
            found: Message = end.value
            return found
        except ProtocolError:
            return None


def frames(data: bytes) -> None:
    """Cut a stream, and read what it has as requests and as ApiVersions answers."""
    buffer = FrameBuffer(1 << 16)
    try:
        found = buffer.feed(data)
    except ProtocolError:
        found = [data]
    for frame in found:
        for read in (decode_request, lambda frame: decode_api_versions(4, frame)):
            try:
                read(frame)
            except (ProtocolError, UnsupportedVersion):
                continue


def batches(data: bytes) -> None:
    """Read fetched bytes as batches of any format, and their records."""
    check = bool(data[:1] and data[0] & 1)
    try:
        for batch in read_batches(data[1:], check_crcs=check, max_decompressed=_LIMIT):
            repr(batch)
            for record in batch.iterate("t", 0):
                _look(record)
    except (CorruptRecord, RecordTooLarge):
        return


def _look(record: Record) -> None:
    record.key, record.value, record.headers, record.timestamp, record.offset  # noqa: B018


def records(data: bytes) -> None:
    """Decode the records of a batch: the compiled codec and the pure one agree."""
    count = data[0] if data else 0
    origin = Origin("t", 0, 0, 100, 0x7FFFFFFF, 1_000, None, TimestampType.CREATE, 5)
    assert _decoded(_pure, data, count, origin) == _decoded(
        compiled, data, count, origin
    ), "the codecs disagree"


def _decoded(module: object, data: bytes, count: int, origin: Origin) -> object:
    try:
        found = module.decode_records(data, 1, count, origin)  # type: ignore[attr-defined]
        return [
            (r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in found
        ]
    except CorruptRecord:
        return None


def subscriptions(data: bytes) -> None:
    """Read what other members of a group and their leader send."""
    for read in (decode_subscription, decode_assignment, decode_free):
        try:
            read(data)
        except ProtocolError:
            continue
    members = [
        JoinGroupResponseMember(member_id=str(number), metadata=part)
        for number, part in enumerate(data.split(b"||"))
    ]
    try:
        Leadership.from_members(members)
    except ProtocolError:
        return


class _Context:
    """A Kerberos that believes everything; a `SecurityContext`."""

    is_complete = False

    def step(self, token: bytes | None) -> bytes:
        self.is_complete = token == b"done"
        return token or b"secret"

    def wrap(self, message: bytes) -> bytes:
        return message

    def unwrap(self, message: bytes) -> bytes:
        return message


def sasl(data: bytes) -> None:
    """Answer each mechanism with the parts of the input."""
    mechanisms: list[MechanismPort] = [
        Plain("user", "secret"),
        OAuthBearer(Token(value="abc", expires=1e12)),
        Gssapi(_Context()),
        *(
            Scram(
                name,
                "user",
                "secret",
                nonce="abc",
                max_iterations=5_000,
                salted=SaltedPasswords(),
            )
            for name in ("SCRAM-SHA-256", "SCRAM-SHA-512")
        ),
    ]
    for mechanism in mechanisms:
        reason = _refusal(mechanism, deque(data.split(b"||")))
        assert "secret" not in reason, "an error shows the password"


def _refusal(mechanism: MechanismPort, challenges: deque[bytes]) -> str:
    outcome = mechanism.begin()
    try:
        while challenges and outcome is not None:
            if callable(outcome):
                outcome = outcome()
            outcome = mechanism.receive(challenges.popleft())
    except (AuthenticationError, ProtocolError) as error:
        return str(error)
    return ""


_FILES: Final = (
    "00000000000000000000.log",
    "00000000000000000000.index",
    "00000000000000000000.timeindex",
    "00000000000000000000.txnindex",
    "00000000000000000000.snapshot",
    "leader-epoch-checkpoint",
)


def journal(data: bytes) -> None:
    """Verify a file of the embedded broker's log: it has problems or none."""
    name = _FILES[data[0] % len(_FILES)] if data else _FILES[0]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data[1:])
        for problem in verify(path):
            str(problem)
    try:
        read_epochs(data[1:])
    except ValueError:
        return


TARGETS: Final[dict[str, Target]] = {
    target.__name__: target
    for target in (message, frames, batches, records, subscriptions, sasl, journal)
}


def seeds(target: str) -> list[bytes]:
    """Inputs to begin with."""
    match target:
        case "message":
            return [
                number.to_bytes(2) + codec.encode(kind(), version)
                for number, (kind, version) in enumerate(messages())
                if _can_be_empty(kind, version)
            ]
        case "frames":
            request = ApiVersionsRequest(
                client_software_name="kafkaio", client_software_version="1"
            )
            return [encode_request(request, v, 7, "me") for v in range(5)]
        case "batches":
            return [bytes([1]) + data for data in _batches()]
        case "records":
            data = _batches()[0]
            return [bytes([2]) + data[BATCH_HEADER_SIZE:]]
        case "journal":
            epochs = b"0\n1\n0 0\n"
            return [bytes([0]) + data for data in _batches()] + [b"\5" + epochs]
        case "subscriptions":
            owned = frozenset({TopicPartition("t", 0)})
            subscription = Subscription(topics=frozenset({"t"}), owned=owned)
            return [encode_subscription(subscription), encode_assignment(owned, owned)]
        case _:
            return [
                b"r=abcdef,s=c2FsdA==,i=4096||v=c2ln",
                b'{"status":"invalid_token"}||',
                b"token||done||\1\0\0\0||",
            ]


def _can_be_empty(kind: type[Message], version: int) -> bool:
    try:
        codec.encode(kind(), version)
    except (ProtocolError, UnsupportedVersion):
        return False
    return True


def _batches() -> list[bytes]:
    """Batches of two records, with each codec that is here."""
    found = []
    for compression in Compression:
        try:
            builder = BatchBuilder(compression=compression, target_size=1000)
        except ConfigurationError:
            continue
        builder.try_append(1_000, b"key", b"value" * 20, [("name", b"x")])
        builder.try_append(1_001, None, None, ())
        found.append(bytes(builder.build()))
    return found
