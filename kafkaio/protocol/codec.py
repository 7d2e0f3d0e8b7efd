"""Messages to bytes and back.

The function that encodes or decodes one class at one version is compiled when it is
first needed, and kept: ``_encoder`` and ``_decoder`` say how.
"""

from __future__ import annotations

import struct
from typing import TypeVar

from kafkaio.errors import ProtocolError, UnsupportedVersion
from kafkaio.protocol._decoder import Decoder, compile_decoder
from kafkaio.protocol._encoder import Encoder, compile_encoder
from kafkaio.protocol.message import Buffer, Message

__all__ = ["decode", "decode_from", "encode", "encode_into", "encode_parts"]

MessageT = TypeVar("MessageT", bound=Message)

_ENCODERS: dict[tuple[type[Message], int], Encoder] = {}
_DECODERS: dict[tuple[type[Message], int], Decoder] = {}

#: What a compiled decoder raises when the bytes make no sense.
_MALFORMED = (ProtocolError, IndexError, struct.error, UnicodeDecodeError)
#: What a compiled encoder raises when a value has the wrong type or does not fit.
_UNFIT = (ProtocolError, struct.error, AttributeError, TypeError, ValueError)


def encode(message: Message, version: int) -> bytes:
    """Return the bytes of ``message`` at ``version``, without header or length.

    Raises:
        UnsupportedVersion: if the class has no such version, or the version cannot
            carry a field that is set and that may not be silently dropped.
        ProtocolError: if a value has the wrong type or is out of range.
    """
    parts = encode_parts(message, version)
    return bytes(parts[0]) if len(parts) == 1 else b"".join(parts)


def encode_parts(message: Message, version: int) -> list[Buffer]:
    """Return the bytes of ``message`` as buffers to be sent one after the other.

    Large record data is in the list as it was given, not copied: it must not change
    until it has been sent. Raises as ``encode``.
    """
    return encode_into(message, version, bytearray())


def encode_into(message: Message, version: int, out: bytearray) -> list[Buffer]:
    """Like ``encode_parts``, but the first buffer is ``out``, continued.

    Raises as ``encode``; then what ``out`` holds is not defined.
    """
    encoder = _ENCODERS.get((type(message), version))
    if encoder is None:
        _check_version(type(message), version)
        encoder = compile_encoder(type(message), version)
        _ENCODERS[type(message), version] = encoder
    parts: list[Buffer] = []
    try:
        encoder(message, out, parts)
    except _UNFIT as error:
        raise ProtocolError(
            f"{message.NAME} v{version}: a value does not fit its field: {error}"
        ) from error
    return parts


def decode(
    message: type[MessageT],
    version: int,
    data: Buffer,
    position: int = 0,
    *,
    exact: bool = True,
) -> MessageT:
    """Return the message that ``data`` has at ``position``.

    Record data is not copied: it comes as a memoryview into ``data``, so it is valid
    as long as ``data`` stays unchanged. All else is copied.

    Args:
        message: the class to decode.
        version: its version on the wire.
        data: the bytes.
        position: where the message begins in them, behind header and length.
        exact: whether bytes behind the message are an error.

    Raises:
        UnsupportedVersion: if the class has no such version.
        ProtocolError: if the bytes are not such a message. Nothing else is raised,
            whatever the bytes, and memory stays in proportion to their number.
    """
    found, position = decode_from(message, version, data, position)
    if exact and position != len(data):
        raise ProtocolError(
            f"{message.NAME} v{version}: {len(data) - position} bytes are left over"
        )
    return found


def decode_from(
    message: type[MessageT], version: int, data: Buffer, position: int
) -> tuple[MessageT, int]:
    """Return the message at ``position``, and the position behind it.

    Raises as ``decode``.
    """
    decoder = _DECODERS.get((message, version))
    if decoder is None:
        _check_version(message, version)
        decoder = _DECODERS[message, version] = compile_decoder(message, version)
    try:
        found, position = decoder(data, position, len(data))
    except _MALFORMED as error:
        raise ProtocolError(
            f"{message.NAME} v{version} cannot be read from {len(data)} bytes: {error}"
        ) from error
    assert isinstance(found, message)
    return found, position


def _check_version(message: type[Message], version: int) -> None:
    if not message.MIN_VERSION <= version <= message.LAST_VERSION:
        raise UnsupportedVersion(
            f"{message.NAME} has versions {message.MIN_VERSION} to "
            f"{message.LAST_VERSION}, not {version}"
        )
