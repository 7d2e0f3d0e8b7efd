"""Split a stream of bytes into frames."""

from __future__ import annotations

import struct

from kafkaio.errors import ProtocolError
from kafkaio.protocol.message import Buffer

__all__ = ["LENGTH_SIZE", "FrameBuffer", "frame_size"]

#: The bytes before each frame, which say how long it is.
LENGTH_SIZE = 4

_LENGTH = struct.Struct(">i")


def frame_size(data: Buffer, position: int, max_frame_size: int) -> int:
    """Return the length of a frame, read from the four bytes at ``position``.

    For whoever splits a stream without FrameBuffer, such as a reader that receives
    large frames straight into a buffer of their size.

    Raises:
        ProtocolError: if the length is negative or above ``max_frame_size``.
    """
    size: int = _LENGTH.unpack_from(data, position)[0]
    if not 0 <= size <= max_frame_size:
        raise ProtocolError(
            f"a frame announces {size} bytes; at most {max_frame_size} are allowed"
            " (is this port a Kafka listener of the right security protocol?)"
        )
    return size


class FrameBuffer:
    """Collects bytes until frames are complete.

    However the stream is cut, the frames are the same. A frame's memory grows with the
    bytes that have arrived, not with the length that its sender announces. After an
    error the stream cannot be understood any more: discard the buffer with it.
    """

    def __init__(self, max_frame_size: int) -> None:
        self._max = max_frame_size
        # What has come of an unfinished frame, its length field included.
        self._partial = bytearray()
        # How many bytes `_partial` needs before it can be looked at again.
        self._needed = LENGTH_SIZE

    def __len__(self) -> int:
        """Return how many bytes wait for the rest of their frame."""
        return len(self._partial)

    def feed(self, data: Buffer) -> list[Buffer]:
        """Return the frames that ``data`` completes, in order, without their lengths.

        The frames are copies: ``data`` may be overwritten afterwards.

        Raises:
            ProtocolError: if a length is negative or above the limit. Frames before
                it in ``data`` are lost with it.
        """
        frames: list[Buffer] = []
        view = memoryview(data)
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
        """Go on with the unfinished frame; return the position behind what it took."""
        position = self._take(view, 0)
        if len(self._partial) == self._needed == LENGTH_SIZE:
            # Only now is the whole length field there. For an empty frame it is all.
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
