"""Encode messages to bytes, and decode them.

A class at one version is encoded and decoded by ``_interpreter`` at first. After some
work a function of its own is compiled and then cached: see ``_encoder``, ``_decoder``.
"""

from __future__ import annotations

import struct
from collections.abc import Generator
from typing import TYPE_CHECKING, TypeVar

from kafkaio.errors import ProtocolError, UnsupportedVersion
from kafkaio.protocol._interpreter import FILLED, Exhausted, Reader, Writer
from kafkaio.protocol._message import Buffer, Message, Response, layout

if TYPE_CHECKING:
    from kafkaio.protocol._decoder import Decoder, SlicedDecoder
    from kafkaio.protocol._encoder import Encoder

MessageT = TypeVar("MessageT", bound=Message)

#: What is compiled.
_ENCODERS: dict[tuple[type[Message], int], Encoder] = {}
_DECODERS: dict[tuple[type[Message], int], Decoder] = {}
_SLICED: dict[tuple[type[Message], int], SlicedDecoder] = {}
#: What interprets the others that have been used.
_WRITERS: dict[tuple[type[Message], int], Writer] = {}
_READERS: dict[tuple[type[Message], int], Reader] = {}

#: Exceptions of a decoder for malformed bytes.
MALFORMED = (ProtocolError, IndexError, struct.error, UnicodeDecodeError)
#: Exceptions of an encoder for a value of a wrong type or size.
UNFIT = (ProtocolError, struct.error, AttributeError, TypeError, ValueError)


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
    # Filled by the encoder: record data in between is not copied.
    parts: list[Buffer] = []
    encoder = _ENCODERS.get((type(message), version))
    try:
        if encoder is None:
            encode_rare(message, version, out, parts)
        else:
            encoder(message, out, parts)
    except UNFIT as error:
        raise unfit(type(message), version, error) from error
    return parts


def encode_rare(
    message: Message, version: int, out: bytearray, parts: list[Buffer]
) -> Encoder | None:
    """Encode a message whose encoder the caller does not have; raises ``UNFIT``.

    The interpreter does it until it is exhausted. Then the encoder is compiled.

    Returns:
        The encoder, to be called from now on; None while there is none.

    Raises:
        UnsupportedVersion: if the class has no such version.
    """
    key = kind, _ = type(message), version
    encoder = _ENCODERS.get(key)
    if encoder is None:
        writer = _WRITERS.get(key)
        if writer is None:
            check_version(kind, version)
            writer = _WRITERS[key] = Writer(kind, version)
        size = len(out)
        try:
            writer.encode(message, out, parts)
        except Exhausted:
            from kafkaio.protocol._encoder import compile_encoder

            encoder = _ENCODERS[key] = compile_encoder(kind, version)
            _WRITERS.pop(key, None)  # unless another thread did
        else:
            return None
        # It begins again; the first buffer may have been finished already.
        del out[size:]
        parts.clear()
    encoder(message, out, parts)
    return encoder


def unfit(message: type[Message], version: int, error: Exception) -> ProtocolError:
    """Return the error to raise for one of ``UNFIT``."""
    return ProtocolError(
        f"{message.NAME} v{version}: a value does not fit its field: {error}"
    )


def encode_by(message: type[Message], version: int, encoder: Encoder) -> None:
    """Have the messages of a class encoded by a function of its own.

    Args:
        message: a class that nothing has encoded yet.
        version: the version that the function writes.
        encoder: appends the message to a buffer, and the buffer to a list; its errors
            about values are those of a compiled one.
    """
    _ENCODERS[message, version] = encoder


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
        check_rest(message, version, data, position)
    return found


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
    end, done = len(data), None
    decoder = _SLICED.get((message, version))
    try:
        if decoder is None:
            done = _interpret(message, version, data, position, max_memory)
        if done is None:
            decoder = decoder or _compile_sliced(message, version)
            done = yield from decoder(data, position, end, max_memory)
    except MALFORMED as error:
        raise unreadable(message, version, end, error) from error
    found, position = done
    if position != end:
        check_rest(message, version, data, position)
    assert isinstance(found, message)
    return found


def _interpret(
    message: type[Message], version: int, data: Buffer, position: int, max_memory: int
) -> tuple[Message, int] | None:
    """Decode what is large for its records, of which nothing is to be decoded.

    The first answer to a Fetch is one. Returns None if the interpreter is exhausted
    before the end of the message, or might fill too much memory until then.
    """
    if (message, version) in _DECODERS or max_memory < FILLED + len(data):
        return None
    try:
        return _reader(message, version).decode(data, position, len(data))
    except Exhausted:
        return None


def _compile_sliced(message: type[Message], version: int) -> SlicedDecoder:
    from kafkaio.protocol._decoder import compile_sliced_decoder  # large ones only

    check_version(message, version)
    decoder = _SLICED[message, version] = compile_sliced_decoder(message, version)
    return decoder


def _reader(message: type[Message], version: int) -> Reader:
    reader = _READERS.get((message, version))
    if reader is None:
        check_version(message, version)
        reader = _READERS[message, version] = Reader(message, version)
    return reader


def decode_from(
    message: type[MessageT], version: int, data: Buffer, position: int
) -> tuple[MessageT, int]:
    """Return the message at ``position``, and the position after it.

    Raises what ``decode`` raises.
    """
    decoder = _DECODERS.get((message, version))
    try:
        if decoder is None:
            found, position, _ = decode_rare(message, version, data, position)
        else:
            found, position = decoder(data, position, len(data))
    except MALFORMED as error:
        raise unreadable(message, version, len(data), error) from error
    assert isinstance(found, message)
    return found, position


def decode_rare(
    message: type[Message], version: int, data: Buffer, position: int
) -> tuple[Message, int, Decoder | None]:
    """Decode a message whose decoder the caller does not have; raises ``MALFORMED``.

    The interpreter does it until it is exhausted. Then the decoder is compiled.

    Returns:
        The message, the position after it, and the decoder, to be called from now on;
        None while there is none.

    Raises:
        UnsupportedVersion: if the class has no such version.
    """
    key = message, version
    decoder = _DECODERS.get(key)
    if decoder is None:
        try:
            return *_reader(message, version).decode(data, position, len(data)), None
        except Exhausted:
            decoder = _DECODERS[key] = _decoder_of(message, version)
            _READERS.pop(key, None)  # unless another thread did
    return *decoder(data, position, len(data)), decoder


def _decoder_of(message: type[Message], version: int) -> Decoder:
    # A new version of a request leaves many an answer as it was.
    wanted = layout(message, version), message.is_flexible(version)
    # A copy: another thread may compile one meanwhile.
    for (kind, other), decoder in list(_DECODERS.items()):
        if kind is message and wanted == (
            layout(message, other),
            message.is_flexible(other),
        ):
            return decoder
    from kafkaio.protocol._decoder import compile_decoder

    return compile_decoder(message, version)


def unreadable(
    message: type[Message], version: int, size: int, error: Exception
) -> ProtocolError:
    """Return the error to raise for one of ``MALFORMED``."""
    return ProtocolError(
        f"{message.NAME} v{version} cannot be read from {size} bytes: {error}"
    )


def check_rest(
    message: type[Message], version: int, data: Buffer, position: int
) -> None:
    """Check what follows a message: nothing, or one byte that says nothing.

    Some servers write the empty section of tagged fields at the end of an answer twice,
    librdkafka's mock cluster among them. More bytes, or another one, mean that the
    message was read in a wrong way.
    """
    left = len(data) - position
    # Not in requests: a broker is strict with its clients, as Kafka is.
    is_flexible = issubclass(message, Response) and message.is_flexible(version)
    if not (is_flexible and left == 1 and data[position] == 0):
        raise ProtocolError(f"{message.NAME} v{version}: {left} bytes are left over")


def check_version(message: type[Message], version: int) -> None:
    """Raise UnsupportedVersion if the class has no such version."""
    if not message.MIN_VERSION <= version <= message.LAST_VERSION:
        raise UnsupportedVersion(
            f"{message.NAME} has versions {message.MIN_VERSION} to "
            f"{message.LAST_VERSION}, not {version}"
        )
