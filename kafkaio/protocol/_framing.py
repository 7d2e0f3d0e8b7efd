"""Split a stream of bytes into frames: an int32 length, then so many bytes."""

from __future__ import annotations

import struct

from kafkaio.errors import ProtocolError
from kafkaio.protocol._message import Buffer

#: Size in bytes of the length field that precedes each frame.
LENGTH_SIZE = 4

_LENGTH = struct.Struct(">i")


def frame_size(data: Buffer, position: int, max_frame_size: int) -> int:
    """Return the length of a frame, read from the four bytes at ``position``.

    For code that splits a stream without FrameBuffer, such as a reader that receives a
    large frame directly into a buffer of its size.

    Raises:
        ProtocolError: if the length is negative or above ``max_frame_size``.
    """
    size: int = _LENGTH.unpack_from(data, position)[0]
    if not 0 <= size <= max_frame_size:
        raise ProtocolError(_unacceptable(data, position, size, max_frame_size))
    return size


#: The first bytes of peers of other protocols: TLS records, HTTP, SSH.
_FOREIGN = (b"\x15\x03", b"\x16\x03", b"HTTP", b"SSH-")


def _unacceptable(data: Buffer, position: int, size: int, limit: int) -> str:
    # TLS or HTTP at this place is the usual cause of an impossible length.
    start = bytes(data[position : position + LENGTH_SIZE])
    hint = "is this port a Kafka listener of the right security protocol?"
    if size >= 0 and not start.startswith(_FOREIGN):
        hint = f"see the option max_response_size; or {hint}"
    return f"a frame announces {size} bytes; at most {limit} are allowed ({hint})"


class FrameBuffer:
    """Collects bytes until frames are complete.

    The frames do not depend on how the stream is cut into pieces. The memory of a frame
    grows with the bytes that have arrived, not with the length that the sender
    announces. After an error the frame boundaries are lost: discard the buffer and the
    connection.
    """

    def __init__(self, max_frame_size: int) -> None:
        self._max = max_frame_size
        # The bytes of an unfinished frame, its length field included.
        self._partial = bytearray()
        # The size at which `_partial` holds a length field, or a whole frame.
        self._needed = LENGTH_SIZE

    def __len__(self) -> int:
        """Return the number of bytes of the unfinished frame."""
        return len(self._partial)

    def feed(self, data: Buffer) -> list[Buffer]:
        """Return the frames that ``data`` completes, in order, without their lengths.

        The frames are copies: ``data`` may be overwritten afterwards.

        Raises:
            ProtocolError: if a length is negative or above the limit. Frames before
                it in ``data`` are lost too.
        """
        frames: list[Buffer] = []
        view = memoryview(data)
        # The usual case is a whole frame in one piece, which is copied once.
        position = self._continue(view, frames) if self._partial else 0
        while len(view) - position >= LENGTH_SIZE:
            size = frame_size(view, position, self._max)
            stop = position + LENGTH_SIZE + size
            if stop > len(view):
                self._needed = LENGTH_SIZE + size
                break
            frames.append(bytes(view[position + LENGTH_SIZE : stop]))
            position = stop
        self._partial += view[position:]
        return frames

    def _continue(self, view: memoryview, frames: list[Buffer]) -> int:
        """Continue the unfinished frame; return the position after its bytes."""
        position = self._take(view, 0)
        if len(self._partial) == self._needed == LENGTH_SIZE:
            # The length field is complete; with an empty frame, so is the frame.
            self._needed += frame_size(self._partial, 0, self._max)
            position = self._take(view, position)
        if len(self._partial) == self._needed:
            frames.append(memoryview(self._partial)[LENGTH_SIZE:])
            self._partial = bytearray()
            self._needed = LENGTH_SIZE
        return position

    def _take(self, view: memoryview, position: int) -> int:
        stop = position + self._needed - len(self._partial)
        self._partial += view[position:stop]
        return min(stop, len(view))
