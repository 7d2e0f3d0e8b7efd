"""Encode messages to bytes, and decode them.

A function that encodes or decodes one class at one version is compiled on first use and
then cached; ``_encoder`` and ``_decoder`` describe how.
"""

from __future__ import annotations

import struct
from collections.abc import Generator
from typing import TypeVar

from kafkaio.errors import ProtocolError, UnsupportedVersion
from kafkaio.protocol._decoder import (
    Decoder,
    SlicedDecoder,
    compile_decoder,
    compile_sliced_decoder,
)
from kafkaio.protocol._encoder import Encoder, compile_encoder
from kafkaio.protocol._message import Buffer, Message, Response, layout

MessageT = TypeVar("MessageT", bound=Message)

_ENCODERS: dict[tuple[type[Message], int], Encoder] = {}
_DECODERS: dict[tuple[type[Message], int], Decoder] = {}
_SLICED: dict[tuple[type[Message], int], SlicedDecoder] = {}

#: Exceptions of a compiled decoder for malformed bytes.
_MALFORMED = (ProtocolError, IndexError, struct.error, UnicodeDecodeError)
#: Exceptions of a compiled encoder for a value of a wrong type or size.
_UNFIT = (ProtocolError, struct.error, AttributeError, TypeError, ValueError)


def encode(message: Message, version: int) -> bytes:
    """Return the bytes of ``message`` at ``version``, without header or length.

    Raises:
        UnsupportedVersion: if the class has no such version, or the version cannot
            carry a field that is set and must not be dropped silently.
        ProtocolError: if a value has the wrong type or is out of range.
    """
    parts = encode_parts(message, version)
    return bytes(parts[0]) if len(parts) == 1 else b"".join(parts)


def encode_parts(message: Message, version: int) -> list[Buffer]:
    """Return the bytes of ``message`` as buffers to send one after the other.

    Large record data is not copied: the list holds the caller's buffers, which must not
    change until they have been sent. Raises what ``encode`` raises.
    """
    return encode_into(message, version, bytearray())


def encode_into(message: Message, version: int, out: bytearray) -> list[Buffer]:
    """Encode as ``encode_parts`` does, appending the first buffer to ``out``.

    Raises what ``encode`` raises; the content of ``out`` is then undefined.
    """
    encoder = _ENCODERS.get((type(message), version))
    if encoder is None:
        _check_version(type(message), version)
        # Compiled on first use: a process uses a few of the hundreds of versions.
        encoder = compile_encoder(type(message), version)
        _ENCODERS[type(message), version] = encoder
    # Filled by the encoder: record data in between is not copied.
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
    """Return the message that begins at ``position`` in ``data``.

    Record data is not copied: it is a memoryview into ``data``, valid as long as
    ``data`` does not change. Everything else is copied.

    Args:
        message: the class to decode.
        version: its version on the wire.
        data: the bytes.
        position: where the message begins, after length and header.
        exact: whether bytes after the message are an error.

    Raises:
        UnsupportedVersion: if the class has no such version.
        ProtocolError: if the bytes are not such a message. No input raises anything
            else, and the memory used is proportional to the size of the input.
    """
    found, position = decode_from(message, version, data, position)
    if exact and position != len(data):
        _check_rest(message, version, data, position)
    return found


def compiled_encoder(message: type[Message], version: int) -> Encoder | None:
    """Return the function that encodes a class at one version; None before it is used.

    For callers that encode one class again and again. What goes wrong in it is said by
    ``encode_into``, called with the same message.
    """
    return _ENCODERS.get((message, version))


def compiled_decoder(message: type[Message], version: int) -> Decoder | None:
    """Return the function that decodes a class at one version; None before it is used.

    The same holds as for ``compiled_encoder``, with ``decode``.
    """
    return _DECODERS.get((message, version))


def decode_in_slices(
    message: type[MessageT],
    version: int,
    data: Buffer,
    position: int,
    *,
    max_memory: int,
) -> Generator[None, None, MessageT]:
    """Decode as ``decode`` does, a few KiB at a time; yields in between.

    A slice takes at most some milliseconds. Returns the message.

    Args:
        message: as for ``decode``.
        version: as for ``decode``.
        data: as for ``decode``.
        position: as for ``decode``.
        max_memory: the most bytes of memory that the message may fill. They are
            counted as on CPython on a machine of 64 bits.

    Raises:
        UnsupportedVersion: if the class has no such version.
        ProtocolError: if the bytes are not such a message, or it takes more memory.
    """
    decoder = _SLICED.get((message, version))
    if decoder is None:
        _check_version(message, version)
        decoder = _SLICED[message, version] = compile_sliced_decoder(message, version)
    end = len(data)
    try:
        found, position = yield from decoder(data, position, end, max_memory)
    except _MALFORMED as error:
        raise _unreadable(message, version, end, error) from error
    if position != end:
        _check_rest(message, version, data, position)
    assert isinstance(found, message)
    return found


def decode_from(
    message: type[MessageT], version: int, data: Buffer, position: int
) -> tuple[MessageT, int]:
    """Return the message at ``position``, and the position after it.

    Raises what ``decode`` raises.
    """
    decoder = _DECODERS.get((message, version))
    if decoder is None:
        _check_version(message, version)
        decoder = _DECODERS[message, version] = _decoder_of(message, version)
    try:
        found, position = decoder(data, position, len(data))
    except _MALFORMED as error:
        raise _unreadable(message, version, len(data), error) from error
    assert isinstance(found, message)
    return found, position


def _decoder_of(message: type[Message], version: int) -> Decoder:
    # A new version of a request leaves many an answer as it was.
    wanted = layout(message, version), message.is_flexible(version)
    for (kind, other), decoder in _DECODERS.items():
        if kind is message and wanted == (
            layout(message, other),
            message.is_flexible(other),
        ):
            return decoder
    return compile_decoder(message, version)


def _unreadable(
    message: type[Message], version: int, size: int, error: Exception
) -> ProtocolError:
    return ProtocolError(
        f"{message.NAME} v{version} cannot be read from {size} bytes: {error}"
    )


def _check_rest(
    message: type[Message], version: int, data: Buffer, position: int
) -> None:
    """Check what follows a message: nothing, but for one byte that says nothing.

    Some servers write the empty section of tagged fields at the end of an answer twice,
    librdkafka's mock cluster among them. More bytes, or another one, mean that the
    message was read in a wrong way.
    """
    left = len(data) - position
    # Not in requests: a broker is strict with its clients, as Kafka is.
    is_flexible = issubclass(message, Response) and message.is_flexible(version)
    if not (is_flexible and left == 1 and data[position] == 0):
        raise ProtocolError(f"{message.NAME} v{version}: {left} bytes are left over")


def _check_version(message: type[Message], version: int) -> None:
    if not message.MIN_VERSION <= version <= message.LAST_VERSION:
        raise UnsupportedVersion(
            f"{message.NAME} has versions {message.MIN_VERSION} to "
            f"{message.LAST_VERSION}, not {version}"
        )
