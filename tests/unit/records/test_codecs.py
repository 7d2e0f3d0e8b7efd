"""The loops over records, on both codecs."""

from __future__ import annotations

from types import MappingProxyType, ModuleType

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from kafkaio._records._layout import Origin
from kafkaio.errors import CorruptRecord, UsageError
from kafkaio.types import Record, TimestampType
from tests.unit.records.strategies import (
    MAX_INT64,
    field,
    origin,
    plain_records,
    record,
    record_lists,
    varint,
)

NOW = 1_700_000_000_000
law = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def write(codec: ModuleType, records: list) -> tuple[bytes, int]:
    writer = codec.RecordWriter(2**31 - 1)
    for index, (timestamp, key, value, headers) in enumerate(records):
        assert writer.try_append(timestamp, key, value, headers) == index
    return writer.section(), writer.first_timestamp


def outcome(decode, *args: object) -> object:
    try:
        return decode(*args)
    except CorruptRecord as error:
        return str(error)


@law
@given(records=record_lists)
def test_what_is_written_is_read(codec: ModuleType, records: list) -> None:
    section, base = write(codec, records)
    decoded = codec.decode_records(
        section, 0, len(records), origin(base_timestamp=base)
    )
    assert decoded == [
        Record("orders", 3, 100 + index, *plain, TimestampType.CREATE, 5)
        for index, plain in enumerate(records)
    ]
    assert {type(r) for r in decoded} == {codec.Record}
    assert {type(r.headers) for r in decoded} == {tuple}


@law
@given(records=record_lists)
def test_size_counts_every_byte(codec: ModuleType, records: list) -> None:
    writer = codec.RecordWriter(2**31 - 1)
    for plain in records:
        writer.try_append(*plain)
    assert writer.size_bytes == 61 + len(writer.section())
    assert writer.count == len(records)
    assert writer.first_timestamp == records[0][0]
    assert writer.max_timestamp == max(plain[0] for plain in records)


@law
@given(records=record_lists, target=st.integers(0, 2_000))
def test_never_passes_the_target_after_the_first_record(
    codec: ModuleType, records: list, target: int
) -> None:
    writer = codec.RecordWriter(target)
    for plain in records:
        before = writer.size_bytes, writer.count, writer.section()
        index = writer.try_append(*plain)
        if index == -1:
            assert before == (writer.size_bytes, writer.count, writer.section())
            lone = codec.RecordWriter(0)
            lone.try_append(*plain)
            # It was refused for its size: the deltas may add some bytes.
            assert writer.size_bytes + lone.size_bytes - 61 + 20 > target
        else:
            assert index == 0 or writer.size_bytes <= target


@law
@given(records=record_lists, start=st.integers(90, 140))
def test_start_offset_leaves_out_what_is_before(
    codec: ModuleType, records: list, start: int
) -> None:
    section, base = write(codec, records)
    every = codec.decode_records(section, 0, len(records), origin(base_timestamp=base))
    some = codec.decode_records(
        section, 0, len(records), origin(base_timestamp=base, start_offset=start)
    )
    assert some == [r for r in every if r.offset >= start]


@law
@given(plain=plain_records)
def test_wire_format_is_what_the_specification_says(
    codec: ModuleType, plain: tuple
) -> None:
    _, key, value, headers = plain
    encoded = varint(len(headers)) + b"".join(
        field(name.encode()) + field(data) for name, data in headers
    )
    section, _ = write(codec, [plain])
    assert section == record(key=key, value=value, headers=encoded)


def test_a_record_that_just_fits(codec: ModuleType) -> None:
    writer = codec.RecordWriter(61 + 2 * len(record()))
    assert [writer.try_append(NOW, None, b"v") for _ in range(3)] == [0, 1, -1]


def test_long_batches_count_past_two_byte_deltas(codec: ModuleType) -> None:
    records = [(NOW + i * 1_000, None, b"", ()) for i in range(9_000)]
    section, base = write(codec, records)
    decoded = codec.decode_records(section, 0, 9_000, origin(base_timestamp=base))
    assert [r.offset for r in decoded] == list(range(100, 9_100))
    assert [r.timestamp for r in decoded] == [r[0] for r in records]


def test_large_fields(codec: ModuleType) -> None:
    big = bytes(range(256)) * 10_000
    name = "n" * 20_000
    section, base = write(codec, [(NOW, big, big[1:], ((name, big[2:]),))])
    (decoded,) = codec.decode_records(section, 0, 1, origin(base_timestamp=base))
    assert (decoded.key, decoded.value) == (big, big[1:])
    assert decoded.headers == ((name, big[2:]),)


def test_headers_may_be_a_mapping_or_a_list(codec: ModuleType) -> None:
    pairs = (("b", b"1"), ("a", None))
    expected, _ = write(codec, [(NOW, None, None, pairs)])
    for headers in (dict(pairs), list(pairs), MappingProxyType(dict(pairs))):
        assert write(codec, [(NOW, None, None, headers)])[0] == expected


def test_position_skips_a_batch_header(codec: ModuleType) -> None:
    data = b"x" * 61 + record(key=b"k")
    (decoded,) = codec.decode_records(data, 61, 1, origin())
    assert decoded.key == b"k"


def test_log_append_time_replaces_every_timestamp(codec: ModuleType) -> None:
    data = record(timestamp_delta=5) + record(timestamp_delta=2**62, offset_delta=1)
    stamped = origin(
        base_timestamp=MAX_INT64,
        log_append_time=77,
        timestamp_type=TimestampType.LOG_APPEND,
    )
    decoded = codec.decode_records(data, 0, 2, stamped)
    assert [r.timestamp for r in decoded] == [77, 77]
    assert {r.timestamp_type for r in decoded} == {TimestampType.LOG_APPEND}


def test_gaps_that_compaction_left(codec: ModuleType) -> None:
    data = b"".join(record(offset_delta=delta) for delta in (3, 4, 70, 9_000))
    decoded = codec.decode_records(data, 0, 4, origin(last_offset_delta=9_000))
    assert [r.offset for r in decoded] == [103, 104, 170, 9_100]


def test_header_name_that_is_not_utf8_is_shown_as_java_shows_it(
    codec: ModuleType,
) -> None:
    data = record(headers=varint(1) + field(b"a\xff") + field(b"1"))
    (decoded,) = codec.decode_records(data, 0, 1, origin())
    assert decoded.headers == (("a\ufffd", b"1"),)


def test_extreme_timestamps_are_read(codec: ModuleType) -> None:
    for base, delta in ((MAX_INT64, 0), (MAX_INT64, -(2**63)), (-(2**63), 2**63 - 1)):
        (decoded,) = codec.decode_records(
            record(timestamp_delta=delta), 0, 1, origin(base_timestamp=base)
        )
        assert decoded.timestamp == base + delta


def body(data: bytes) -> bytes:
    return varint(len(data)) + data


DELTAS = b"\0\0\0"
CORRUPT = {
    "no record at all": (b"", 1, {}),
    "negative count": (b"", -1, {}),
    "count past the bytes": (record(), 2, {}),
    "count past the bytes, barely": (record(key=b"12345"), 2, {}),
    "bytes behind the last record": (record() + b"\0", 1, {}),
    "bytes in an empty batch": (b"\0", 0, {}),
    "negative length": (varint(-7) + bytes(20), 1, {}),
    "length of two bytes past the end": (varint(100) + bytes(20), 1, {}),
    "length of four bytes past the end": (varint(2**27) + bytes(20), 1, {}),
    "length that only 64 bits hold": (varint(2**62) + bytes(20), 1, {}),
    "length ends amid a varint": (b"\xff" * 8, 1, {}),
    "varint of eleven bytes": (b"\x80" * 10 + b"\1" + bytes(20), 1, {}),
    "varint of 65 bits": (b"\xff" * 9 + b"\2" + bytes(20), 1, {}),
    "timestamp delta of 65 bits": (
        body(b"\0" + b"\x80" * 9 + b"\2" + b"\0\1\1\0"),
        1,
        {"log_append_time": 9},
    ),
    "length too short for the record": (b"\2" + record()[1:], 1, {}),
    "length too long for the record": (body(record()[1:] + b"\0"), 1, {}),
    "offset delta past the last one": (
        record(offset_delta=8),
        1,
        {"last_offset_delta": 7},
    ),
    "negative offset delta": (record(offset_delta=-1), 1, {}),
    "negative offset delta of three bytes": (record(offset_delta=-9_999), 1, {}),
    "negative key length": (body(DELTAS + varint(-2) + b"\1\0\0"), 1, {}),
    "negative key length of two bytes": (body(DELTAS + varint(-99) + b"\1\0"), 1, {}),
    "key past the record": (body(DELTAS + varint(9) + b"\1\0\0"), 1, {}),
    "key far past the record": (body(DELTAS + varint(2**40) + b"\1\0"), 1, {}),
    "negative value length": (body(DELTAS + b"\1" + varint(-2) + b"\0\0"), 1, {}),
    "negative value length, two bytes": (body(DELTAS + b"\1\xc7\1\0\0"), 1, {}),
    "value past the record": (body(DELTAS + b"\1" + varint(9) + b"\0\0"), 1, {}),
    "value far past the record": (body(DELTAS + b"\1" + varint(2**62)), 1, {}),
    "value takes the next record's bytes": (
        body(DELTAS + b"\1" + varint(4) + b"\0") + record(),
        2,
        {},
    ),
    "negative header count": (record(headers=varint(-1)), 1, {}),
    "header count past the bytes": (record(headers=varint(1)), 1, {}),
    "huge header count": (record(headers=varint(2**31)), 1, {}),
    "null header name": (record(headers=varint(1) + b"\1\1"), 1, {}),
    "negative header value": (record(headers=b"\2\0" + varint(-2)), 1, {}),
    "header name past the record": (record(headers=b"\2\x20\0"), 1, {}),
    "header value past the record": (record(headers=b"\2\0\x20"), 1, {}),
    "timestamp past 64 bits": (
        record(timestamp_delta=2),
        1,
        {"base_timestamp": MAX_INT64 - 1},
    ),
    "timestamp past 64 bits by a long delta": (
        record(timestamp_delta=2**62),
        1,
        {"base_timestamp": 2**62 - 1 + 1},
    ),
    "timestamp before 64 bits": (
        record(timestamp_delta=-(2**63)),
        1,
        {"base_timestamp": -1},
    ),
    "left-out record past its length": (
        varint(2) + record()[1:],
        1,
        {"start_offset": 10**9},
    ),
    "left-out record whose offset is the next record's length": (
        b"\4\0\0" + record(value=b"v" * 20),
        2,
        {"start_offset": 10**9},
    ),
    "left-out record past the end": (
        varint(40) + record()[1:],
        1,
        {"start_offset": 10**9},
    ),
}


@pytest.mark.parametrize("case", CORRUPT)
def test_corrupt_record(codec: ModuleType, case: str) -> None:
    data, count, changes = CORRUPT[case]
    with pytest.raises(CorruptRecord):
        codec.decode_records(data, 0, count, origin(**changes))


def test_every_cut_is_corrupt(codec: ModuleType) -> None:
    headers = varint(2) + field(b"n") + field(b"v") + field(b"m") + field(None)
    data = record(key=b"k" * 70, value=b"v" * 70, headers=headers)
    for size in range(len(data)):
        with pytest.raises(CorruptRecord):
            codec.decode_records(data[:size], 0, 1, origin())


@law
@given(data=st.binary(max_size=60), count=st.integers(-1, 6))
def test_arbitrary_bytes_raise_nothing_else(
    codec: ModuleType, data: bytes, count: int
) -> None:
    result = outcome(codec.decode_records, data, 0, count, origin())
    assert isinstance(result, str) or len(result) == count


@pytest.mark.parametrize("timestamp", [-2, -(2**63), 2**63, 2**63 - 1])
def test_impossible_timestamp(codec: ModuleType, timestamp: int) -> None:
    writer = codec.RecordWriter(1_000)
    with pytest.raises(UsageError, match="timestamp"):
        writer.try_append(timestamp, None, b"v")
    assert (writer.count, writer.size_bytes, writer.section()) == (0, 61, b"")
    assert writer.first_timestamp == writer.max_timestamp == -1


@pytest.mark.parametrize(
    ("key", "value", "headers", "message"),
    [
        ("text", b"", (), "a key is bytes or None, not str"),
        (b"", bytearray(), (), "a value is bytes or None, not bytearray"),
        (b"", "", (), "a value is bytes or None, not str"),
        (b"", b"", [(b"name", b"")], "a header's name is str, not bytes"),
        (b"", b"", [("name", "")], "a header value is bytes or None, not str"),
    ],
)
def test_wrong_types(
    codec: ModuleType, key: object, value: object, headers: object, message: str
) -> None:
    writer = codec.RecordWriter(1_000)
    writer.try_append(NOW, b"first", b"record")
    before = writer.count, writer.size_bytes, writer.section()
    with pytest.raises(TypeError, match=message):
        writer.try_append(NOW + 9, key, value, headers)
    assert before == (writer.count, writer.size_bytes, writer.section())
    assert writer.max_timestamp == NOW


def test_header_name_that_is_no_text(codec: ModuleType) -> None:
    writer = codec.RecordWriter(1_000)
    with pytest.raises(UsageError, match="Unicode"):
        writer.try_append(NOW, None, None, [("\ud800", b"")])
    assert writer.count == 0


def test_close(codec: ModuleType) -> None:
    writer = codec.RecordWriter(1_000)
    with pytest.raises(UsageError, match="without records"):
        writer.close()
    assert writer.try_append(NOW, None, b"v") == 0
    writer.close()
    assert writer.try_append(NOW, None, b"v") == -1
    assert writer.count == 1


# The twins do the same on any input.

origins = st.builds(
    lambda base_timestamp, start, stamped: origin(
        base_timestamp=base_timestamp,
        start_offset=start,
        last_offset_delta=40,
        log_append_time=9 if stamped else None,
    ),
    st.integers(-(2**63), MAX_INT64) | st.just(NOW),
    st.integers(90, 120) | st.just(0),
    st.booleans(),
)
awkward = st.sampled_from([-(2**63), -(2**31), -2, -1, 0, 1, 63, 64, 8191, 8192, 2**62])
forged_records = st.builds(
    lambda delta, offset, key, value, headers, extra: record(
        timestamp_delta=delta,
        offset_delta=offset,
        key=key,
        value=value,
        headers=headers + extra,
    ),
    awkward | st.integers(-(2**63), MAX_INT64),
    awkward | st.integers(0, 40),
    st.none() | st.binary(max_size=70),
    st.none() | st.binary(max_size=70),
    st.sampled_from([b"\0", b"\2\2a\2b", b"\4\2a\1\0\0", b"\2\4\xc3\x28\1", b"\1"]),
    st.just(b"") | st.binary(max_size=2),
)


@st.composite
def damaged_sections(draw: st.DrawFn) -> tuple[bytes, int]:
    """Records with one byte changed or none, and a count that may be wrong."""
    records = draw(st.lists(forged_records, max_size=5))
    off_by = draw(st.sampled_from([0, 0, 0, 1, -1]))
    flip = draw(st.none() | st.tuples(st.integers(0, 200), st.integers(1, 255)))
    data = bytearray(b"".join(records))
    if flip is not None and data:
        place, bits = flip
        data[place % len(data)] ^= bits
    return bytes(data), len(records) + off_by


@law
@given(records=record_lists, target=st.integers(60, 3_000))
def test_twins_write_alike(twins: tuple, records: list, target: int) -> None:
    states = []
    for codec in twins:
        writer = codec.RecordWriter(target)
        indexes = [writer.try_append(*plain) for plain in records]
        states.append(
            (
                indexes,
                writer.section(),
                writer.count,
                writer.size_bytes,
                writer.first_timestamp,
                writer.max_timestamp,
            )
        )
    assert states[0] == states[1]


@law
@given(section=damaged_sections(), at=origins)
def test_twins_read_alike(twins: tuple, section: tuple[bytes, int], at: Origin) -> None:
    data, count = section
    args = (data, 0, count, at)
    pure, compiled = (outcome(codec.decode_records, *args) for codec in twins)
    assert pure == compiled


@law
@given(data=st.binary(max_size=40), count=st.integers(0, 4), at=origins)
def test_twins_refuse_alike(twins: tuple, data: bytes, count: int, at: Origin) -> None:
    pure, compiled = (
        outcome(codec.decode_records, data, 0, count, at) for codec in twins
    )
    assert pure == compiled
