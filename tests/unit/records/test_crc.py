"""CRC-32C: by an instruction, by tables, and by the package."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, strategies as st

from kafkaio._records import _crc
from kafkaio._records._impl import accelerated, crc32c, crc32c_over

Checksum = Callable[..., int]


def ways() -> dict[str, Checksum]:
    found: dict[str, Checksum] = {"package": _crc.crc32c, "used": crc32c}
    if accelerated:
        from kafkaio._records import _speedups as codec

        found["compiled"] = codec.crc32c
        found["table"] = partial(codec.crc32c, by_table=True)
    return found


WAYS = ways()


@pytest.mark.parametrize("way", WAYS)
def test_published_values(way: str) -> None:
    # The check value of the catalogue of CRCs, and the examples of RFC 3720, B.4.
    checksum = WAYS[way]
    assert checksum(b"123456789") == 0xE3069283
    assert checksum(bytes(32)) == 0x8A9136AA
    assert checksum(b"\xff" * 32) == 0x62A8AB43
    assert checksum(bytes(range(32))) == 0x46DD794E
    assert checksum(bytes(range(31, -1, -1))) == 0x113FDB5C
    assert checksum(b"") == 0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "size", [1, 7, 8, 9, 767, 768, 769, 1536, 12_287, 12_288, 12_289, 100_003]
)
def test_all_ways_agree_at_the_ends_of_blocks(way: str, size: int) -> None:
    data = random.Random(size).randbytes(size + 3)
    for start in range(4):  # the data need not be aligned
        part = memoryview(data)[start : start + size]
        for value in (0, 1, 0xFFFF_FFFF):
            assert WAYS[way](part, value) == _crc.crc32c(part, value)


@given(data=st.binary(max_size=3_000), cut=st.integers(0, 3_000))
def test_a_checksum_can_be_continued(data: bytes, cut: int) -> None:
    for checksum in WAYS.values():
        found = checksum(data[cut:], checksum(data[:cut]))
        assert found == checksum(data) == _crc.crc32c(data)


@pytest.mark.parametrize("way", WAYS)
def test_wrong_types(way: str) -> None:
    for wrong in (None, "text", 5):
        with pytest.raises(TypeError):
            WAYS[way](wrong)


@pytest.mark.skipif(not accelerated, reason="the codec is not compiled")
def test_what_is_not_contiguous_is_refused() -> None:
    with pytest.raises(BufferError):
        WAYS["compiled"](memoryview(b"abcdef")[::2])


OVER = {"python": _crc.crc32c_over, "used": crc32c_over}


@given(
    pair=st.integers(0, 60).flatmap(
        lambda size: st.tuples(*[st.binary(min_size=size, max_size=size)] * 2)
    ),
    rest=st.binary(max_size=3_000),
)
def test_a_difference_behind_more_data(pair: tuple[bytes, bytes], rest: bytes) -> None:
    one, other = pair
    difference = crc32c(one) ^ crc32c(other)
    expected = crc32c(one + rest) ^ crc32c(other + rest)
    for over in OVER.values():
        assert over(difference, len(rest)) == expected


@given(
    difference=st.integers(0, 2**32 - 1),
    sizes=st.tuples(st.integers(0, 70_000), st.integers(0, 70_000)),
)
def test_a_difference_goes_on(difference: int, sizes: tuple[int, int]) -> None:
    first, second = sizes
    expected = _crc.crc32c_over(difference, first + second)
    for over in OVER.values():
        assert over(over(difference, first), second) == expected


@pytest.mark.skipif(not accelerated, reason="it takes too long")
def test_a_difference_behind_as_much_as_a_batch_may_have() -> None:
    half = crc32c_over(1, 2**30)
    assert crc32c_over(half, 2**30) == crc32c_over(1, 2**31)
    assert crc32c_over(half, 2**30 - 1) == crc32c_over(1, 2**31 - 1)
