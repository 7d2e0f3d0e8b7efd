"""The hash of keys: the twins agree, and both with the reference's own vectors."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest
from hypothesis import given, strategies as st

from kafkaio._machines import partitioner
from kafkaio._records import _impl
from tests.unit.records.test_codecs import law


def hashing(codec: ModuleType) -> ModuleType:
    if codec.__name__.endswith("_pure"):
        return importlib.import_module("kafkaio._records._murmur2")
    return codec


@pytest.mark.parametrize(
    ("data", "expected"),
    [  # of Kafka's own UtilsTest
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_reference_vectors(codec: ModuleType, data: bytes, expected: int) -> None:
    assert hashing(codec).murmur2(data) == expected


@law
@given(data=st.binary(max_size=100), count=st.integers(1, 2**31 - 1))
def test_twins_agree(twins: tuple, data: bytes, count: int) -> None:
    pure, compiled = (hashing(codec) for codec in twins)
    assert pure.murmur2(data) == compiled.murmur2(data)
    assert pure.key_partition(data, count) == compiled.key_partition(data, count)
    assert 0 <= compiled.key_partition(data, count) < count


def test_no_partitions(codec: ModuleType) -> None:
    with pytest.raises(ZeroDivisionError):
        hashing(codec).key_partition(b"key", 0)


def test_the_partitioner_uses_the_chosen_codec() -> None:
    assert partitioner.murmur2 is _impl.murmur2
    assert partitioner.key_partition is _impl.key_partition
