"""A record of a few compressed KiB must not become gigabytes of headers."""

import pytest

from kafkaio._records import _impl
from kafkaio._records._layout import MAX_HEADERS, Origin, encode_varint
from kafkaio.errors import CorruptRecord
from kafkaio.types import TimestampType

ORIGIN = Origin("t", 0, 0, 0, 0, 0, None, TimestampType.CREATE, 0)


def record(headers: int) -> bytes:
    """A record without key and value; its headers have no name and no value."""
    fields = b"\0\0\0\1\1" + encode_varint(headers) + b"\0\1" * headers
    return encode_varint(len(fields)) + fields


@pytest.mark.parametrize("headers", [0, 1, 1_000])
def test_headers_are_read(headers: int) -> None:
    [found] = _impl.decode_records(record(headers), 0, 1, ORIGIN)
    assert found.headers == (("", None),) * headers


def test_more_headers_than_any_record_has_are_refused() -> None:
    with pytest.raises(CorruptRecord):
        _impl.decode_records(record(MAX_HEADERS + 1), 0, 1, ORIGIN)
