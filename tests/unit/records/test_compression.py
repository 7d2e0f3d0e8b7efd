"""The five codecs: round trip, foreign framings, bombs and broken data."""

from __future__ import annotations

import gzip
import random
import sys
import tracemalloc
import zlib

import cramjam
import lz4.frame
import pytest
import zstandard
from hypothesis import given, strategies as st

from kafkaio._records import compression
from kafkaio._records.compression import (
    Compression,
    Compressor,
    Decompression,
    Decompressor,
)
from kafkaio.errors import ConfigurationError, CorruptRecord, RecordTooLarge

CODECS = list(Compression)
REAL_CODECS = CODECS[1:]
MIB = 1024 * 1024
# Above and below the block sizes of snappy and lz4 and the chunk that bounds output.
SIZES = [0, 1, 32_768, 32_769, 65_536, 65_537, 262_144, 262_145, 1_000_000]


def sample(size: int) -> bytes:
    return (b"".join(b"%d;" % number for number in range(size // 2 + 1)))[:size]


@pytest.fixture
def decompressor() -> Decompressor:
    return Decompressor()


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("size", SIZES)
def test_round_trip(codec: Compression, size: int, decompressor: Decompressor) -> None:
    data = sample(size)
    compressed = Compressor(codec).compress(data)
    assert decompressor.decompress(codec, compressed) == data
    assert decompressor.decompress(codec, memoryview(compressed), size) == data


@pytest.mark.parametrize("codec", CODECS)
def test_contexts_can_be_used_again(codec: Compression) -> None:
    compressor, decompressor = Compressor(codec), Decompressor()
    for data in (sample(100), b"", sample(90_000)):
        assert decompressor.decompress(codec, compressor.compress(data)) == data
        with pytest.raises(RecordTooLarge):
            decompressor.decompress(codec, compressor.compress(sample(9)), 8)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("size", [1, 70_000, 600_000])
def test_limit_is_named(
    codec: Compression, size: int, decompressor: Decompressor
) -> None:
    compressed = Compressor(codec).compress(sample(size))
    option = f"max_decompressed_batch_size={size - 1} bytes"
    with pytest.raises(RecordTooLarge, match=option):
        decompressor.decompress(codec, compressed, size - 1)


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.LZ4, Compression.ZSTD])
def test_bomb_takes_no_more_than_the_limit_and_a_chunk(codec: Compression) -> None:
    bomb = Compressor(codec).compress(bytes(64 * MIB))
    decompressor = Decompressor()
    tracemalloc.start()
    try:
        with pytest.raises(RecordTooLarge, match="limit"):
            decompressor.decompress(codec, bomb, MIB)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3 * MIB


def test_snappy_bomb_is_refused_by_its_claim(decompressor: Decompressor) -> None:
    # Raw snappy begins with the size of what it holds; here 4 GiB less one byte.
    claim = b"\xff\xff\xff\xff\x0f"
    framed = Compressor(Compression.SNAPPY).compress(b"")
    framed += len(claim).to_bytes(4, "big") + claim
    for data in (claim, framed):
        with pytest.raises(RecordTooLarge, match="limit"):
            decompressor.decompress(Compression.SNAPPY, data)


def test_small_snappy_blocks_add_up(decompressor: Decompressor) -> None:
    data = Compressor(Compression.SNAPPY).compress(sample(100_000))
    with pytest.raises(RecordTooLarge, match="limit"):
        decompressor.decompress(Compression.SNAPPY, data, 99_999)


@pytest.mark.parametrize("codec", REAL_CODECS)
def test_truncated(codec: Compression, decompressor: Decompressor) -> None:
    data = sample(3_000)
    compressed = Compressor(codec).compress(data)
    for size in range(len(compressed)):
        try:
            result = decompressor.decompress(codec, compressed[:size])
        except CorruptRecord:
            continue
        # zstd gives what it has, xerial frames end anywhere: less than went in.
        assert len(result) < len(data)
        assert data.startswith(result)


@given(codec=st.sampled_from(REAL_CODECS), data=st.binary(max_size=100))
def test_arbitrary_bytes_raise_nothing_else(codec: Compression, data: bytes) -> None:
    decompressor = Decompressor()
    prefixes = {
        Compression.GZIP: b"\x1f\x8b\x08",
        Compression.SNAPPY: b"\x82SNAPPY\0\0\0\0\1\0\0\0\1",
        Compression.LZ4: b"\x04\x22\x4d\x18\x60\x40\x82",
        Compression.ZSTD: b"\x28\xb5\x2f\xfd",
    }
    for candidate in (data, prefixes[codec] + data):
        try:
            result = decompressor.decompress(codec, candidate, 10_000)
        except (CorruptRecord, RecordTooLarge):
            continue
        assert len(result) <= 10_000


def test_corrupt_data_names_the_codec(decompressor: Decompressor) -> None:
    for codec in (Compression.GZIP, Compression.LZ4, Compression.ZSTD):
        with pytest.raises(CorruptRecord, match=codec.name.lower()) as caught:
            decompressor.decompress(codec, b"no such thing")
        assert caught.value.__cause__ is not None


def test_gzip_members_may_follow_each_other(decompressor: Decompressor) -> None:
    data = gzip.compress(b"one") + gzip.compress(b"") + gzip.compress(b"two" * 90_000)
    expected = b"one" + b"two" * 90_000
    assert decompressor.decompress(Compression.GZIP, data) == expected


def test_gzip_members_are_not_copied_as_often_as_there_are_members(
    decompressor: Decompressor, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = 0

    class Stream:
        def __init__(self, wbits: int) -> None:
            self._stream = zlib_stream(wbits)

        def decompress(self, data: bytes, most: int) -> bytes:
            nonlocal left
            made = self._stream.decompress(data, most)
            left += len(self._stream.unused_data) + len(self._stream.unconsumed_tail)
            return made

        def __getattr__(self, name: str) -> object:
            return getattr(self._stream, name)

    zlib_stream = zlib.decompressobj
    monkeypatch.setattr(zlib, "decompressobj", Stream)
    members = gzip.compress(b"") * 5_000
    assert decompressor.decompress(Compression.GZIP, members) == b""
    assert left < 5_000 * 16 * 1024 < 5_000 * len(members) / 2


def test_gzip_data_may_end_where_a_piece_of_it_does(decompressor: Decompressor) -> None:
    data = random.Random(5).randbytes(70_000)
    for level in (0, 1):
        once = gzip.compress(data, level)
        for cut in range(3):
            twice = once + gzip.compress(data[: 16_384 - cut], 0)
            found = decompressor.decompress(Compression.GZIP, twice)
            assert found == data + data[: 16_384 - cut]


@pytest.mark.parametrize(
    "rest",
    [
        b"?",
        b"\0" * 40,
        b"\x1f\x8b\x08",
        b"\x1f\x8b\x09" * 9,
        b"\x1f\x8b\x08" + b"?" * 30,  # fields that do not end
        b"\x1f\x8b\x08\x08" + b"?" * 30,
        b"\x1f\x8b\x08\x02" + bytes(30),  # another checksum
    ],
)
def test_bytes_behind_gzip_data_are_ignored(
    decompressor: Decompressor, rest: bytes
) -> None:
    data = gzip.compress(b"one")
    assert decompressor.decompress(Compression.GZIP, data + rest) == b"one"
    assert decompressor.decompress(Compression.GZIP, data * 2 + rest) == b"oneone"


def test_all_fields_of_a_gzip_header_are_read(decompressor: Decompressor) -> None:
    plain = gzip.compress(b"one", mtime=0)
    head = plain[:3] + b"\x1e" + plain[4:10] + b"\3\0abcname\0comment\0"
    head += (zlib.crc32(head) & 0xFFFF).to_bytes(2, "little")
    data = plain + head + plain[10:]
    assert decompressor.decompress(Compression.GZIP, data) == b"oneone"


def test_a_gzip_member_that_is_damaged_is_not_ignored(
    decompressor: Decompressor,
) -> None:
    data = gzip.compress(b"one")
    for wrong in (data[:-1] + b"?", data[:10] + b"?" * 20, data[:-1]):
        with pytest.raises(CorruptRecord):
            decompressor.decompress(Compression.GZIP, data + wrong)


def test_gzip_default_level_is_javas() -> None:
    data = sample(50_000)
    stream = zlib.compressobj(-1, zlib.DEFLATED, 31)
    expected = stream.compress(data) + stream.flush()
    assert Compressor(Compression.GZIP).compress(data) == expected


def test_raw_snappy_is_read(decompressor: Decompressor) -> None:
    raw = bytes(cramjam.snappy.compress_raw(sample(100_000)))
    assert decompressor.decompress(Compression.SNAPPY, raw) == sample(100_000)


def test_xerial_streams_may_follow_each_other(decompressor: Decompressor) -> None:
    compress = Compressor(Compression.SNAPPY).compress
    data = compress(b"one") + compress(b"two")
    assert decompressor.decompress(Compression.SNAPPY, data) == b"onetwo"


def test_snappy_is_written_in_blocks_of_32_kib() -> None:
    data = Compressor(Compression.SNAPPY).compress(sample(70_000))
    assert data[:16] == b"\x82SNAPPY\0\0\0\0\1\0\0\0\1"
    sizes = []
    position = 16
    while position < len(data):
        size = int.from_bytes(data[position : position + 4], "big")
        block = data[position + 4 : position + 4 + size]
        sizes.append(len(bytes(cramjam.snappy.decompress_raw(block))))
        position += 4 + size
    assert sizes == [32_768, 32_768, 4_464]


@pytest.mark.parametrize("size", [-1, 0, 99])
def test_impossible_snappy_block(size: int, decompressor: Decompressor) -> None:
    header = Compressor(Compression.SNAPPY).compress(b"")
    data = header + size.to_bytes(4, "big", signed=True) + b"\1\0a"
    with pytest.raises(CorruptRecord, match="block claims"):
        decompressor.decompress(Compression.SNAPPY, data)


@pytest.mark.parametrize("level", [None, 1, 9, 12])
def test_lz4_frames_are_those_that_java_accepts(level: int | None) -> None:
    frame = Compressor(Compression.LZ4, level).compress(sample(200_000))
    info = lz4.frame.get_frame_info(frame)
    assert not info["block_linked"]
    assert info["block_size_id"] == lz4.frame.BLOCKSIZE_MAX64KB
    assert info["content_size"] == 0


def test_lz4_level_nine_is_the_fast_compressor_as_in_java() -> None:
    data = sample(100_000)
    fast = lz4.frame.compress(
        data,
        compression_level=0,
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    assert Compressor(Compression.LZ4).compress(data) == fast
    assert Compressor(Compression.LZ4, 9).compress(data) == fast
    assert len(Compressor(Compression.LZ4, 10).compress(data)) < len(fast)


def test_bytes_behind_an_lz4_frame_are_ignored(decompressor: Decompressor) -> None:
    frame = lz4.frame.compress(b"one")
    for rest in (b"?", bytes(40), frame):
        assert decompressor.decompress(Compression.LZ4, frame + rest) == b"one"


def test_bytes_behind_snappy_blocks(decompressor: Decompressor) -> None:
    data = Compressor(Compression.SNAPPY).compress(b"one")
    for rest in (b"?", b"???"):
        assert decompressor.decompress(Compression.SNAPPY, data + rest) == b"one"
    with pytest.raises(CorruptRecord):
        decompressor.decompress(Compression.SNAPPY, data + b"????")


def test_bytes_behind_a_zstd_frame_are_an_error(decompressor: Decompressor) -> None:
    for says_size in (True, False):
        frame = zstandard.ZstdCompressor(write_content_size=says_size).compress(b"one")
        for rest in (b"?", b"?" * 40):
            with pytest.raises(CorruptRecord):
                decompressor.decompress(Compression.ZSTD, frame + rest)


@pytest.mark.parametrize("codec", REAL_CODECS)
def test_decompression_in_parts(codec: Compression, decompressor: Decompressor) -> None:
    data = sample(2 * MIB)
    compressed = Compressor(codec).compress(data)
    running = decompressor.begin(codec, compressed, 2 * MIB, MIB)
    assert isinstance(running, Decompression)
    # Another batch is read in between: it has contexts of its own.
    small = Compressor(codec).compress(b"small")
    steps = 0
    while not running.go_on(1000):
        assert decompressor.decompress(codec, small) == b"small"
        steps += 1
    assert running.result() == data
    assert steps >= 3
    assert decompressor.begin(codec, compressed, 2 * MIB, 2 * MIB) == data


@pytest.mark.parametrize("codec", REAL_CODECS)
def test_the_limit_holds_in_parts(
    codec: Compression, decompressor: Decompressor
) -> None:
    compressed = Compressor(codec).compress(sample(2 * MIB))
    running = decompressor.begin(codec, compressed, 2 * MIB - 1, 1000)
    assert isinstance(running, Decompression)
    with pytest.raises(RecordTooLarge):
        running.go_on(4 * MIB)


def test_zstd_with_and_without_content_size(decompressor: Decompressor) -> None:
    data = sample(700_000)
    for says_size in (True, False):
        frame = zstandard.ZstdCompressor(write_content_size=says_size).compress(data)
        assert decompressor.decompress(Compression.ZSTD, frame) == data


def test_zstd_frames_may_follow_each_other(decompressor: Decompressor) -> None:
    compress = zstandard.ZstdCompressor().compress
    data = compress(b"one") + compress(b"two")
    assert decompressor.decompress(Compression.ZSTD, data) == b"onetwo"


def test_zstd_frames_that_hold_nothing_hide_nothing(
    decompressor: Decompressor,
) -> None:
    skippable = b"\x50\x2a\x4d\x18" + (3).to_bytes(4, "little") + b"abc"
    for empty in (skippable, zstandard.ZstdCompressor().compress(b"")):
        data = empty + zstandard.ZstdCompressor().compress(b"one")
        assert decompressor.decompress(Compression.ZSTD, data) == b"one"


def test_zstd_frame_that_is_cut(decompressor: Decompressor) -> None:
    frame = zstandard.ZstdCompressor().compress(sample(9_000))
    for size in range(len(frame) - 20, len(frame)):
        with pytest.raises(CorruptRecord, match="zstd data of a batch ends too early"):
            decompressor.decompress(Compression.ZSTD, frame[:size])


@pytest.mark.parametrize("codec", list(Compression)[1:])
def test_contexts_are_fit_for_use_after_a_failure(
    decompressor: Decompressor, codec: Compression
) -> None:
    data = sample(300_000)
    compressed = Compressor(codec).compress(data)
    for _ in range(2):
        assert decompressor.decompress(codec, compressed) == data
        for wrong, limit in ((compressed[:-9], 10**6), (compressed, 9), (b"no", 1)):
            with pytest.raises((CorruptRecord, RecordTooLarge)):
                decompressor.decompress(codec, wrong, limit)
    assert decompressor.decompress(codec, compressed) == data


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.ZSTD])
def test_levels_are_used(codec: Compression) -> None:
    outputs = {Compressor(codec, level).compress(sample(20_000)) for level in (1, 9)}
    assert len(outputs) == 2


@pytest.mark.parametrize(
    ("codec", "library"),
    [
        (Compression.SNAPPY, "cramjam"),
        (Compression.LZ4, "lz4"),
        (Compression.ZSTD, "zstandard"),
    ],
)
def test_a_library_that_is_missing_is_named(
    codec: Compression, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = Compressor(codec).compress(b"abc")
    compression._library.cache_clear()
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, "lz4.frame")
    try:
        with pytest.raises(ConfigurationError, match=f"the package {library}"):
            Compressor(codec)
        with pytest.raises(ConfigurationError, match=f"the package {library}"):
            Decompressor().decompress(codec, data)
        assert Compressor(Compression.GZIP).compress(b"abc")
    finally:
        compression._library.cache_clear()
