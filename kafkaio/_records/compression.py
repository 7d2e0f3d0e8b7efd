"""The five compression codecs, with a limit on the decompressed bytes.

The settings follow what Java writes and accepts. Its consumers and brokers refuse LZ4
frames with linked blocks. It writes snappy in the framing of snappy-java ("xerial"),
while librdkafka writes a raw block; both are read. Any batch can be a decompression
bomb, so no codec produces more output than the limit and one chunk.

Bytes behind the end of the data are handled as in Java. Further gzip members, snappy
streams and zstd frames are read. Other bytes behind gzip data, up to three bytes behind
snappy blocks, and all bytes behind an lz4 frame are ignored. Other bytes behind snappy
or zstd data are an error.

A batch that decompresses to many megabytes would block the event loop for long, so
decompression can be stopped and continued (`Decompressor.begin`).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, assert_never

from kafkaio._records._layout import BytesLike as BytesLike
from kafkaio.errors import ConfigurationError, CorruptRecord, RecordTooLarge

if TYPE_CHECKING:
    import lz4.frame
    import zstandard

#: The default limit of bytes that one batch may decompress to: the default of the
#: option ``max_decompressed_batch_size``.
DEFAULT_LIMIT = 512 * 1024 * 1024


class Compression(IntEnum):
    """The codec of a batch, by the number in bits 0 to 2 of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


_LIBRARIES = {
    Compression.SNAPPY: "cramjam",
    Compression.LZ4: "lz4.frame",
    Compression.ZSTD: "zstandard",
}
_CHUNK = 256 * 1024
#: The bytes of input that gzip gets at a time.
_GZIP_PIECE = 16 * 1024
_SNAPPY_BLOCK = 32 * 1024
_XERIAL_MAGIC = b"\x82SNAPPY\0"
# The magic number, the version and the oldest compatible version, both 1.
_XERIAL_HEADER = _XERIAL_MAGIC + b"\0\0\0\1\0\0\0\1"
_INT32 = struct.Struct(">i")
_GZIP_WBITS = 31
# Magic number and method of a gzip member, and the bytes of the smallest one.
_GZIP_START = b"\x1f\x8b\x08"
_GZIP_LEAST = 18
# Flags of a gzip header.
_GZIP_CHECK, _GZIP_EXTRA, _GZIP_NAME, _GZIP_COMMENT = 2, 4, 8, 16
_DEFAULT_LEVEL = {Compression.GZIP: -1, Compression.LZ4: 9, Compression.ZSTD: 3}
# In Java this level, the default, means the fast compressor; in the library that is 0.
_LZ4_FAST_IN_JAVA = 9
# Errors that are raised as they are.
_TOLD = (ConfigurationError, CorruptRecord, RecordTooLarge)


@cache
def _library(name: str) -> ModuleType:
    """Import the library of a codec, when the first batch needs it.

    Raises:
        ConfigurationError: it cannot be imported.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise ConfigurationError(
            f"compression needs the package {name.partition('.')[0]}, which cannot be "
            f"imported: {error}"
        ) from error


class Compressor:
    """Compresses batches with one codec and level.

    A producer keeps one, so that the context of zstd is created once. It is not
    thread-safe.

    Args:
        codec: the codec.
        level: the level on the codec's own scale, None for Java's default: -1 for gzip,
            3 for zstd, and 9 for lz4, where it means the fast compressor, as in Java.
            Snappy has no levels.

    Raises:
        ConfigurationError: the library of the codec is not installed.
    """

    __slots__ = ("_level", "_library", "_zstd", "codec")

    def __init__(self, codec: Compression, level: int | None = None) -> None:
        self.codec: Compression = codec
        self._level = _DEFAULT_LEVEL.get(codec, 0) if level is None else level
        library = _LIBRARIES.get(codec)
        self._library = None if library is None else _library(library)
        self._zstd: zstandard.ZstdCompressor | None = None
        if codec is Compression.ZSTD:
            assert self._library is not None
            self._zstd = self._library.ZstdCompressor(level=self._level)

    def compress(self, data: BytesLike) -> bytes:
        """Return ``data`` compressed, in Java's framing."""
        match self.codec:
            case Compression.NONE:
                return bytes(data)
            case Compression.GZIP:
                return self._gzip(data)
            case Compression.SNAPPY:
                return _snappy(data)
            case Compression.LZ4:
                return self._lz4(data)
            case Compression.ZSTD:
                return self._zstandard(data)
            case never:
                assert_never(never)

    def _gzip(self, data: BytesLike) -> bytes:
        import zlib

        stream = zlib.compressobj(self._level, zlib.DEFLATED, _GZIP_WBITS)
        return stream.compress(data) + stream.flush()

    def _lz4(self, data: BytesLike) -> bytes:
        level = 0 if self._level == _LZ4_FAST_IN_JAVA else self._level
        library = self._library
        assert library is not None
        compressed: bytes = library.compress(
            data,
            compression_level=level,
            block_size=library.BLOCKSIZE_MAX64KB,
            block_linked=False,
            store_size=False,
        )
        return compressed

    def _zstandard(self, data: BytesLike) -> bytes:
        assert self._zstd is not None
        return self._zstd.compress(data)


class Decompression:
    """Data that is being decompressed, chunk by chunk.

    Args:
        codec: the codec.
        chunks: produces the decompressed chunks.
    """

    __slots__ = ("_chunks", "_codec", "_parts")

    def __init__(self, codec: Compression, chunks: Iterator[bytes]) -> None:
        self._codec = codec
        self._chunks = chunks
        self._parts: list[bytes] = []

    def go_on(self, most: int) -> bool:
        """Produce chunks until there are more than ``most`` bytes of them, or no more.

        Returns:
            Whether everything is decompressed.

        Raises:
            CorruptRecord: the data is not valid for the codec.
            RecordTooLarge: it decompresses to more than the limit.
        """
        left = most
        try:
            for chunk in self._chunks:
                self._parts.append(chunk)
                left -= len(chunk)
                if left < 0:
                    return False
        except _TOLD:
            raise
        except Exception as error:
            raise _corrupt(self._codec, error) from error
        return True

    def result(self) -> bytes:
        """Return everything that was decompressed."""
        parts = self._parts
        return parts[0] if len(parts) == 1 else b"".join(parts)


def _corrupt(codec: Compression, error: Exception) -> CorruptRecord:
    # Each library has its own exceptions; they all mean corrupt data.
    return CorruptRecord(
        f"the {codec.name.lower()} data of a batch cannot be read: {error}"
    )


class Decompressor:
    """Decompresses batches of any codec.

    A consumer keeps one, so that the contexts of zstd and lz4 are created once. It is
    not thread-safe.
    """

    __slots__ = ("_lz4", "_zstd")

    def __init__(self) -> None:
        self._zstd: zstandard.ZstdDecompressor | None = None
        self._lz4: lz4.frame.LZ4FrameDecompressor | None = None

    def decompress(
        self, codec: Compression, data: BytesLike, limit: int = DEFAULT_LIMIT
    ) -> bytes:
        """Return ``data`` decompressed, at most ``limit`` bytes.

        No more output than the limit and one chunk is produced. In addition, zstd
        reserves a window of up to 128 MiB if the data asks for it, but uses no more of
        it than its output.

        Raises:
            CorruptRecord: ``data`` is not valid for the codec.
            RecordTooLarge: it decompresses to more than ``limit`` bytes.
            ConfigurationError: the library of the codec is not installed.
        """
        made = self.begin(codec, data, limit, limit)
        assert isinstance(made, bytes)  # no chunk is beyond the limit
        return made

    def begin(
        self, codec: Compression, data: BytesLike, limit: int, most: int
    ) -> bytes | Decompression:
        """Decompress as `decompress` does, but stop after more than ``most`` bytes.

        Raw blocks of snappy cannot be stopped.

        Args:
            codec: the codec.
            data: what to decompress; it must not change before the end.
            limit: the most bytes that it may decompress to.
            most: bytes to produce at once, in chunks of 256 KiB.

        Returns:
            The decompressed bytes; or what continues, if there are more than ``most``.
        """
        try:
            made = self._at_once(codec, data, limit, most)
            if made is not None:
                return made
            running = Decompression(codec, self._chunks(codec, data, limit))
        except _TOLD:
            raise
        except Exception as error:
            raise _corrupt(codec, error) from error
        if running.go_on(most):
            return running.result()
        # The unfinished batch keeps these contexts, so the next batch needs others.
        self._zstd = self._lz4 = None
        return running

    def _at_once(
        self, codec: Compression, data: BytesLike, limit: int, most: int
    ) -> bytes | None:
        if codec is Compression.NONE:
            _check_limit(len(data), limit)
            return bytes(data)
        if codec is not Compression.ZSTD:
            return None
        # A frame has its content size only if the writer knew it in advance, as
        # librdkafka and this client do. Frames without it, such as Java's, and several
        # frames in sequence are read as a stream, which takes longer.
        library = _library(_LIBRARIES[Compression.ZSTD])
        if self._zstd is None:
            self._zstd = library.ZstdDecompressor()
        if 0 < library.frame_content_size(data) <= min(limit, most):
            try:
                return self._zstd.decompress(data, allow_extra_data=False)
            except library.ZstdError:
                # Perhaps another frame follows: the stream reads all of them.
                pass
        return None

    def _chunks(
        self, codec: Compression, data: BytesLike, limit: int
    ) -> Iterator[bytes]:
        match codec:
            case Compression.NONE:
                return iter((bytes(data),))
            case Compression.GZIP:
                return _gunzip(data, limit)
            case Compression.SNAPPY:
                return _unsnappy(data, limit)
            case Compression.LZ4:
                return self._unlz4(data, limit)
            case Compression.ZSTD:
                return self._unzstd(data, limit)
            case never:
                assert_never(never)

    def _unzstd(self, data: BytesLike, limit: int) -> Iterator[bytes]:
        library = _library(_LIBRARIES[Compression.ZSTD])
        zstd = self._zstd
        assert zstd is not None  # `_at_once` was first
        claimed: int = library.frame_content_size(data)
        total = 0
        with zstd.stream_reader(data, read_across_frames=True) as stream:
            while chunk := stream.read(_CHUNK):
                total += len(chunk)
                _check_limit(total, limit)
                yield chunk
        # The stream ends without an error where the data ends, even within a frame.
        if total < claimed:
            raise CorruptRecord("the zstd data of a batch ends too early")

    def _unlz4(self, data: BytesLike, limit: int) -> Iterator[bytes]:
        stream = self._lz4
        if stream is None:
            library = _library(_LIBRARIES[Compression.LZ4])
            stream = self._lz4 = library.LZ4FrameDecompressor()
        stream.reset()
        total = 0
        rest: BytesLike = data
        while not stream.eof:
            chunk = stream.decompress(rest, max_length=_CHUNK)
            # The decompressor keeps the input that it has not used.
            rest = b""
            if not chunk and not stream.eof:
                raise CorruptRecord("the lz4 frame of a batch ends too early")
            total += len(chunk)
            _check_limit(total, limit)
            yield chunk


def _snappy(data: BytesLike) -> bytes:
    # Blocks of 32 KiB in the framing of Xerial's library, which Java's client uses.
    view = memoryview(data)
    snappy = _library(_LIBRARIES[Compression.SNAPPY]).snappy
    parts = [_XERIAL_HEADER]
    for start in range(0, len(view), _SNAPPY_BLOCK):
        block = bytes(snappy.compress_raw(view[start : start + _SNAPPY_BLOCK]))
        parts.append(_INT32.pack(len(block)))
        parts.append(block)
    return b"".join(parts)


def _check_limit(size: int, limit: int) -> None:
    if size > limit:
        raise RecordTooLarge(
            "a batch decompresses to more than the limit of "
            f"max_decompressed_batch_size={limit} bytes"
        )


def _gunzip(data: BytesLike, limit: int) -> Iterator[bytes]:
    import zlib

    total = position = 0
    view = memoryview(data)
    while True:  # one gzip member after the other
        stream = zlib.decompressobj(_GZIP_WBITS)
        while not stream.eof:
            # In pieces, because each call copies the input that it leaves. With many
            # small members, the whole rest would be copied for each of them.
            piece = view[position : position + _GZIP_PIECE]
            chunk = stream.decompress(piece, _CHUNK)
            left = stream.unused_data or stream.unconsumed_tail
            position += len(piece) - len(left)
            if not chunk and len(left) == len(piece) and not stream.eof:
                raise CorruptRecord("the gzip data of a batch ends too early")
            total += len(chunk)
            _check_limit(total, limit)
            yield chunk
        if not _begins_member(bytes(view[position : position + _GZIP_PIECE])):
            return


def _begins_member(data: bytes) -> bool:
    """Return whether a whole and valid header of a gzip member is there."""
    if len(data) <= _GZIP_LEAST or not data.startswith(_GZIP_START):
        return False
    flags, end = data[3], 10
    if flags & _GZIP_EXTRA:
        end += 2 + int.from_bytes(data[end : end + 2], "little")
    for flag in (_GZIP_NAME, _GZIP_COMMENT):
        if flags & flag:
            end = data.find(b"\0", end) + 1
            if not end:
                return False
    if flags & _GZIP_CHECK:
        import zlib

        checksum = zlib.crc32(data[:end]) & 0xFFFF
        if checksum != int.from_bytes(data[end : end + 2], "little"):
            return False
        end += 2
    return end <= len(data)


def _unsnappy(data: BytesLike, limit: int) -> Iterator[bytes]:
    view = memoryview(data)
    if view[:8] != _XERIAL_MAGIC:
        yield _unsnappy_block(view, 0, limit)
        return
    position = total = 0
    while len(view) - position >= _INT32.size:
        if view[position : position + 8] == _XERIAL_MAGIC:
            # Several streams can follow each other. Their header cannot be mistaken for
            # the length of a block, because the length would be negative.
            position += len(_XERIAL_HEADER)
            continue
        (size,) = _INT32.unpack_from(view, position)
        position += 4
        if not 0 < size <= len(view) - position:
            raise CorruptRecord(f"a snappy block claims {size} bytes")
        block = _unsnappy_block(view[position : position + size], total, limit)
        position += size
        total += len(block)
        yield block


def _unsnappy_block(block: memoryview, total: int, limit: int) -> bytes:
    # A block states its size first, so that nothing is allocated for one too large.
    snappy = _library(_LIBRARIES[Compression.SNAPPY]).snappy
    _check_limit(total + snappy.decompress_raw_len(block), limit)
    return bytes(snappy.decompress_raw(block))
